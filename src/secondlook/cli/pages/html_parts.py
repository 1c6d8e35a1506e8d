"""Parts of an HTML page: tables, lists and figures, with labels for screen readers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

__all__ = ["cell", "figure", "heads", "inline_svg", "sentence_list", "table"]


def figure(name: str, svg: str, spoken: str, caption: str) -> str:
    """Return a figure with its caption and a text for screen readers."""
    return (
        f'<figure id="{name}">{inline_svg(svg, name, spoken)}'
        f"<figcaption>{escape(caption)}.</figcaption></figure>\n"
    )


def inline_svg(svg: str, name: str, spoken: str) -> str:
    """Return an SVG figure for a page, with ids of its own and a text for screen readers."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{name}--', svg)
    svg = re.sub(r'(href="|url\()#', rf"\g<1>#{name}--", svg)
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(spoken)}"', 1)


def cell(text: str, more: str = "") -> str:
    """Return a cell of a table, with small print below."""
    below = f'<span class="more">{more}</span>' if more else ""
    return f"<td>{text}{below}</td>"


def table(
    title: str, note: str, head: str, rows: Sequence[tuple[str, str]], corner: str = "Method"
) -> str:
    """Return a table with its caption; a row is a name and its cells."""
    body = "".join(f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>\n' for name, cells in rows)
    return (
        f'<div class="table"><table><caption><strong>{escape(title)}.</strong> {escape(note)}'
        f"</caption>\n<thead>{head.replace('CORNER', corner)}</thead>\n<tbody>{body}</tbody>"
        "</table></div>\n"
    )


def heads(titles: Sequence[str]) -> str:
    """Return a row of column titles; ``table`` fills in the first."""
    cells = "".join(f'<th scope="col">{escape(title)}</th>' for title in titles)
    return f'<tr><th scope="col">CORNER</th>{cells}</tr>'


def sentence_list(kind: str, sentences: Sequence[str]) -> str:
    """Return sentences as a list; ``kind`` is its class."""
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return f'<ul class="{kind}">{items}</ul>\n'
