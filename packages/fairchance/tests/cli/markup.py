"""Text that tries to be markup, and the elements of a page."""

from __future__ import annotations

from html.parser import HTMLParser

HOSTILE = '</script><script>window.pwned=1</script>"><img src=x onerror=pwned=1>\u202e\x85\x1b'


def elements(html):
    """Return the tags of a page with their attributes."""
    found = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attributes: found.append((tag, dict(attributes)))
    parser.feed(html)
    return found
