"""The frame of HTML reports: escaping, terms, and a file that needs nothing else."""

import json
import math
import re

import altair as alt
import pytest

from cli.markup import HOSTILE, elements
from fairchance.pages.page import Card, Code, Figure, Page, PageTable, Section, render, write


def _chart(title="Earned"):
    rows = [{"x": 1, "name": title}]
    return alt.Chart(alt.Data(values=rows), title=title).mark_point().encode(x="x:Q")


def _page(text="Mistakes are under α, and mistakes stay there."):
    table = PageTable(text, text, ["a", text], [[text, (text, text)]], prose=[1])
    parts = [text, [text], table, Figure("two", _chart(text), text, text), Code(text)]
    inner = Section("inner", text, text, [text])
    return Page(
        "page",
        text,
        text,
        text,
        "green",
        [Card(text, text, text, "red")],
        Figure("one", _chart(text), text, text),
        [Section("section", text, text, [*parts, inner]), Section("empty", "Empty", "nothing")],
    )


def test_hostile_text_is_escaped_everywhere():
    plain, hostile = (render("t", [_page(text)], text) for text in ("harmless", HOSTILE))
    assert [tag for tag, _ in elements(hostile)] == [tag for tag, _ in elements(plain)]
    assert hostile.count("&lt;img") >= 15


def test_charts_hold_data_that_json_can_say_and_people_can_see():
    rows = [{"x": math.nan, "name": HOSTILE}]
    chart = alt.Chart(alt.Data(values=rows)).mark_point().encode(x="x:Q")
    (row,) = json.loads(Figure("one", chart, "").spec)["data"]["values"]
    assert row == {"x": None, "name": HOSTILE[:-3] + r"\u202e\x85\x1b"}


def test_terms_are_explained_once_and_numbered():
    html = render("t", [_page()], "made")
    assert html.count('class="term"') == html.count('<li id="note-') == 2  # mistakes and α
    assert re.search(r'aria-describedby="note-1">Mistakes</span>', html)


def test_empty_sections_are_left_out():
    html = render("t", [_page()], "made")
    assert 'id="section"' in html
    assert 'id="empty"' not in html


def test_the_file_loads_nothing_from_elsewhere():
    html = render("t", [_page()], "made")
    assert "default-src 'none'" in html
    for _, attributes in elements(html):
        assert not {"src", "href", "action"} & attributes.keys()


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    write("old", path)
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        write("new", path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
