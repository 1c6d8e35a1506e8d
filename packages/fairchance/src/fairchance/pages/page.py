"""The frame of every HTML report: a verdict, cards, one figure, then sections that unfold.

A page is plain data; ``page.html.jinja`` lays it out and escapes every text. The file needs no
network: styles, scripts and the chart library are inside it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from fairchance.errors import InputError, to_install, visible

try:
    import vl_convert
    from altair.utils._importers import vl_version_for_vl_convert
    from altair.utils.schemapi import debug_mode
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup, escape
except ImportError as missing:  # pragma: no cover (an extra)
    raise InputError(
        f"reports need altair, vl-convert and jinja2; {to_install('report')} installs them."
    ) from missing

__all__ = ["Card", "Code", "Figure", "Link", "Page", "PageTable", "Part", "Section", "render"]
__all__ += ["asset", "render_article", "unchecked", "write"]

# Explained where they first occur on a page, whatever the case of their first letter.
_TERMS = {
    "α": "The bound on mistakes that the user set: at most this share of accepted applicants may "
    "turn out bad.",
    "δ": "The chance, over all certified rounds together, that a certificate is wrong.",
    "mistakes": "Accepted applicants with a bad outcome, as a share of accepted applicants with a "
    "known outcome. Also called false discovery rate, FDR.",
    "FDR": "False discovery rate: the share of bad outcomes among accepted applicants.",
    "certified": "With confidence 1 − δ, at most a share α of the applicants whom this policy "
    "accepts in the long run is bad.",
    "pilot": "A round without a certificate: the program learns, and promises nothing.",
    "evidence": "The logarithm of the gain of a bet that the policy keeps the bound. Enough gain "
    "gives a certificate.",
    "explored": "Accepted by a draw with known probability, in order to learn about applicants "
    "like them.",
    "by score": "Accepted because enough is known about similar applicants.",
    "ceiling": "What gradient boosting would earn within α if it knew all outcomes.",
    "pending": "Accepted, and the outcome is not known yet.",
    "95 % interval": "If the whole were repeated many times, about 95 % of such intervals would "
    "contain the true value.",
    "standard error": "How far a mean over repetitions is typically off, by chance alone.",
    "selection rate": "Accepted applicants of a group, as a share of its applicants.",
    "true positive rate": "Accepted applicants of a group with a good outcome, as a share of all "
    "who would have one.",
    "repetitions": "Independent runs of the whole experiment, with other applicants each time.",
    "overridden": "Decided by a person against the program. The program learns nothing from them.",
    "at all times": "The interval may be looked at as often as one likes: it is right at all times "
    "together, with the stated probability.",
    "not identified": "The record has too few outcomes of such applicants to estimate a number; "
    "bounds let all that it does not cover be good, and bad.",
    "propensities": "The probabilities with which the program accepted each applicant.",
    "checkpoint": "The end of the chain of entries. If it is kept elsewhere, any later change of "
    "the record before it is found.",
}
# Altair checks charts against a schema, which takes more than half of the time; tests do that.
unchecked = debug_mode(False)
_TERM = re.compile(
    "|".join(rf"(?<!\w){re.escape(term)}(?!\w)" for term in sorted(_TERMS, key=len, reverse=True)),
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Card:
    """One answer of the first screen.

    Attributes
    ----------
    title, value
        What is answered, and the answer in a few characters.
    text
        One sentence that says what the value means.
    light
        ``"green"``, ``"amber"``, ``"red"``, or empty if there is nothing to judge.
    """

    title: str
    value: str
    text: str
    light: str = ""


@dataclass(frozen=True)
class Figure:
    """A chart (altair), with a caption and what a screen reader says instead of it."""

    id: str
    chart: Any
    caption: str
    spoken: str = ""

    @property
    def spec(self) -> Markup:
        """The chart as JSON that cannot end the script element it is in."""
        text = json.dumps(_visible(self.chart.to_dict(validate=False)), separators=(",", ":"))
        return Markup(text.replace("<", "\\u003c"))


def _visible(value: Any) -> Any:
    """Return the data of a chart with visible texts, and without numbers that JSON lacks."""
    if isinstance(value, dict):
        return {key: _visible(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_visible(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return visible(value) if isinstance(value, str) else value


class Link(str):
    """A cell that leads elsewhere in the same document."""

    to: str

    def __new__(cls, text: str, to: str) -> Link:
        """Return a text with a place to go to."""
        made = super().__new__(cls, text)
        made.to = to
        return made


@dataclass(frozen=True)
class PageTable:
    """A table.

    Attributes
    ----------
    title, note
        What it shows, and sentences that explain it.
    titles
        Titles of the columns.
    rows
        Cells by row: text, which may be a ``Link``, or text with small print. The first names the
        row.
    prose
        Positions of columns that hold sentences.
    """

    title: str
    note: str
    titles: Sequence[str]
    rows: Sequence[Sequence[str | tuple[str, str]]]
    prose: Sequence[int] = ()


@dataclass(frozen=True)
class Code:
    """Text to copy, such as a command or a hash."""

    text: str


@dataclass(frozen=True)
class Section:
    """A part of a page that unfolds; inside another section, a part with a heading.

    Attributes
    ----------
    id, title
        Its address in the page, and its title.
    brief
        One line that is shown while the section is closed.
    parts
        A text is a paragraph, a list of texts has bullets.
    open
        Whether it is unfolded at first.
    """

    id: str
    title: str
    brief: str = ""
    parts: Sequence[Part] = ()
    open: bool = False


Part = str | list[str] | PageTable | Figure | Code | Section


@dataclass(frozen=True)
class Page:
    """What one program or one experiment shows.

    Attributes
    ----------
    id, title
        Its address in the file, and its title.
    about
        One sentence: what was counted or run, and when.
    verdict, light
        The answer in one or two sentences, and its colour.
    cards, figure
        The rest of the first screen.
    sections
        Details; empty sections are left out.
    """

    id: str
    title: str
    about: str
    verdict: str
    light: str
    cards: Sequence[Card] = ()
    figure: Figure | None = None
    sections: Sequence[Section] = ()


class _Terms:
    """Explains each term where it first occurs, and numbers the notes for print."""

    def __init__(self) -> None:
        self.notes: dict[str, str] = {}

    def explain(self, text: object) -> Markup:
        """Return escaped text, with terms that occur for the first time explained."""
        explained = _TERM.sub(self._note, str(escape(text)))
        return Markup(explained.replace(" %", "\u00a0%"))  # a line must not end before it

    def _note(self, match: re.Match[str]) -> str:
        word = match.group()
        term = next(t for t in _TERMS if t.lower() == word.lower())
        if term in self.notes:
            return word
        self.notes[term] = _TERMS[term]
        n = len(self.notes)
        return (
            f'<span role="button" class="term" tabindex="0" aria-describedby="note-{n}">'
            f'{word}</span><sup class="print">{n}</sup>'
        )


def render(title: str, pages: Sequence[Page], made: str) -> str:
    """Return one HTML file with a page for each program or experiment.

    Parameters
    ----------
    title
        Title of the window.
    pages
        What to show, in order.
    made
        How and when the file was made, for its end.
    """
    js = f"{asset('page.js')}prepare();\n"
    given = {"title": title, "made": made, "css": Markup(asset("page.css")), "js": Markup(js)}
    # The library has characters that ``visible`` would escape, so it comes last.
    return _laid_out("page.html.jinja", pages, given).replace("/* vega */", asset("vega.js"), 1)


def render_article(page: Page) -> str:
    """Return a page as HTML without a frame, for a document that has it."""
    return _laid_out("article.html.jinja", [page], {})


def _laid_out(template: str, pages: Sequence[Page], given: dict[str, Any]) -> str:
    terms = _Terms()
    environment = Environment(
        loader=PackageLoader("fairchance.pages", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["explain"] = terms.explain
    environment.tests["long"] = lambda text: max(map(len, text.split()), default=0) > 30
    environment.tests["part"] = lambda part, name: type(part).__name__ == name
    html = environment.get_template(template).render(pages=pages, notes=terms.notes, **given)
    return "\n".join(map(visible, html.lstrip().split("\n")))


@cache
def asset(name: str) -> str:
    """Return a stylesheet or script: ``"page.css"``, ``"page.js"``, or ``"vega.js"``."""
    if name != "vega.js":
        return resources.files("fairchance.pages").joinpath(name).read_text(encoding="utf-8")
    bundle: str = vl_convert.javascript_bundle(  # type: ignore[call-arg]
        vl_version=vl_version_for_vl_convert()
    )
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def write(text: str, path: Path) -> None:
    """Write a file that appears whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    finally:
        with suppress(OSError):  # neither the file nor its folder may exist
            part.unlink()
