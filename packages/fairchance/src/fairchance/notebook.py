"""How objects look in a notebook: a sentence, a small table, and notes, as escaped HTML."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, SupportsIndex, TypeVar, overload

from fairchance.errors import visible
from fairchance.words import counted

__all__ = ["Record", "Records", "in_words"]

_ROWS = 20  # records in a table
_LONG = 60  # characters in a cell
# Text keeps the notebook's colours, light or dark, and formulas in names are not typeset.
_BLOCK = '<div class="tex2jax_ignore mathjax_ignore" style="overflow-x:auto" tabindex="0">{}</div>'
_TEXT = '<p style="margin:.3em 0;overflow-wrap:anywhere">{}</p>'
_CELL = "padding:.2em .8em;text-align:{};border-bottom:1px solid {}"


def in_words(
    lead: str,
    *notes: str,
    titles: Sequence[str] = (),
    rows: Iterable[Sequence[Any]] = (),
    left_out: int = 0,
) -> str:
    r"""Return a sentence in bold, a table and notes below it as HTML; all text is escaped.

    Parameters
    ----------
    lead, notes
        Sentences; empty ones are left out.
    titles, rows
        The table.
    left_out
        Number of rows that are not shown.

    Examples
    --------
    >>> html = in_words("<b>\x1b", titles=["id"], rows=[["$a$"]])
    >>> "<b>&lt;b&gt;\\x1b</b>" in html, html.count("</td>")
    (True, 1)
    """
    body = "".join(
        f"<tr>{''.join(_cell('td', i, value) for i, value in enumerate(row))}</tr>" for row in rows
    )
    parts = [_TEXT.format(f"<b>{_escaped(lead)}</b>")]
    if body:
        head = "".join(_cell("th", i, title) for i, title in enumerate(titles))
        parts.append(
            f'<table style="border-collapse:collapse;font-variant-numeric:tabular-nums">'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )
    notes = (f"{left_out:,} more are not shown." if left_out else "", *notes)
    parts += [_TEXT.format(_escaped(note)) for note in notes if note]
    return _BLOCK.format("".join(parts))


def _escaped(value: Any) -> str:
    return escape(visible(str(value)))


def _cell(tag: str, position: int, value: Any) -> str:
    """Return a cell; a long text is cut, and whole when the mouse is over it."""
    text, more = str(value), ""
    if len(text) > _LONG:
        text, more = f"{text[:_LONG]}…", f' title="{_escaped(text)}"'
    line = "currentColor" if tag == "th" else "rgba(128,128,128,.3)"
    style = _CELL.format("right" if position else "left", line)
    scope = ' scope="col"' if tag == "th" else ""
    return f'<{tag}{scope}{more} style="{style}">{_escaped(text)}</{tag}>'


class Record(ABC):
    """A record that a notebook shows in words."""

    @property
    def _noun(self) -> str:
        return "record"

    def _lead(self) -> str:
        """Return what it is, in one sentence."""
        return f"{self._noun.capitalize()} {next(iter(self._row().values()))}"

    @abstractmethod
    def _row(self) -> dict[str, Any]:
        """Return what a table shows: values for readers by the titles of their columns."""

    def _notes(self) -> Iterable[str]:
        """Return sentences that explain it."""
        return ()

    def _repr_html_(self) -> str:
        row = self._row()
        return in_words(self._lead(), *self._notes(), titles=[*row], rows=[[*row.values()]])


R_co = TypeVar("R_co", bound=Record, covariant=True)


class Records(tuple[R_co, ...]):
    """A tuple of records that a notebook shows as a table.

    Examples
    --------
    >>> class Paid(Record):
    ...     def _row(self):
    ...         return {"id": "a17", "outcome": "good"}
    >>> Records([Paid(), Paid()])[:1]._repr_html_().count("a17")
    1
    """

    __slots__ = ()

    @overload
    def __getitem__(self, key: SupportsIndex) -> R_co: ...
    @overload
    def __getitem__(self, key: slice) -> Records[R_co]: ...
    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return Records(found) if isinstance(key, slice) else found

    def _repr_html_(self) -> str:
        rows = [record._row() for record in self[-_ROWS:]]
        lead = counted(len(self), self[0]._noun) if rows else "None yet"
        hidden = len(self) - len(rows)
        titles = [*rows[-1]] if rows else []
        return in_words(
            f"The last {len(rows)} of {lead}" if hidden else lead,
            titles=titles,
            rows=[[row.get(title, "") for title in titles] for row in rows],
        )
