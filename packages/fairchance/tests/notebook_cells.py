"""What a notebook shows of an object, taken apart, and names that try to be code."""

from __future__ import annotations

from html.parser import HTMLParser

NAME = "<script>alert(\"'1'\")</script>$x$"
HOSTILE = f"{NAME}\x1b[31m\u202e" + "n" * 300
TAGS = {"div", "p", "b", "table", "thead", "tbody", "tr", "th", "td"}


class Page(HTMLParser):
    """The tags and texts of a piece of HTML; a tag that is not closed in its place is an error."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.attributes, self.texts = [], [], set(), []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return " ".join(self.texts)


def shown(value):
    page = Page(value._repr_html_())
    assert set(page.tags) <= TAGS
    assert page.attributes <= {"class", "scope", "style", "tabindex", "title"}
    assert page.text.isprintable()
    return page
