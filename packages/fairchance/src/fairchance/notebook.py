"""How objects look in a notebook and if printed: a sentence, a small table, and notes.

A class that is ``Displayed`` is looked up in ``VIEWS`` by its name, or that of a base class.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar, overload

from fairchance.errors import visible
from fairchance.words import amount, audits, counted, percent, rounds, share
from fairchance.words.batches import unlike_words

if TYPE_CHECKING:
    from fairchance.core.decisions import (
        CertifiedRound,
        ClosedRound,
        Correction,
        CurvePoint,
        Decisions,
        GroupCount,
        Round,
    )

__all__ = ["ROWS", "VIEWS", "Displayed", "Records", "View", "in_words"]

_ROWS = 20  # records in a table
_SHOWN = 10  # decisions in a table
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


@dataclass(frozen=True)
class View:
    """What a notebook shows: a sentence, notes, and a table with the number of rows left out."""

    lead: str
    notes: Iterable[str] = ()
    titles: Sequence[str] = ()
    rows: Iterable[Sequence[Any]] = ()
    left_out: int = 0


class Displayed:
    """An object that a notebook and ``print`` show in words, by its view or as a row of a table."""

    def _repr_html_(self) -> str | None:
        view = self._view()
        return None if view is None else _html(view)

    def __str__(self) -> str:
        view = self._view()
        return repr(self) if view is None else _text(view)

    def _view(self) -> View | None:
        view, row = _found(self, VIEWS), _found(self, ROWS)
        if view is None:
            return None if row is None else _of_rows(type(self).__name__, [row(self)])
        return view(self)  # type: ignore[no-any-return]


D_co = TypeVar("D_co", bound=Displayed, covariant=True)


class Records(tuple[D_co, ...]):
    """A tuple of records that a notebook shows as a table."""

    __slots__ = ()

    @overload
    def __getitem__(self, key: SupportsIndex) -> D_co: ...
    @overload
    def __getitem__(self, key: slice) -> Records[D_co]: ...
    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return Records(found) if isinstance(key, slice) else found

    def _repr_html_(self) -> str:
        shown = self[-_ROWS:]
        rows = [row(record) for record in shown if (row := _found(record, ROWS))]
        lead = counted(len(self), "record") if self else "None yet"
        lead = f"The last {len(shown)} of {lead}" if len(shown) < len(self) else lead
        return _html(_of_rows(lead, rows))


def _found(shown: Any, known: dict[str, Callable[[Any], Any]]) -> Callable[[Any], Any] | None:
    """Return what is known for the class of an object, or for its nearest base class."""
    names = (kind.__name__ for kind in type(shown).__mro__)
    return next((known[name] for name in names if name in known), None)


def _html(view: View) -> str:
    return in_words(
        view.lead, *view.notes, titles=view.titles, rows=view.rows, left_out=view.left_out
    )


def _text(view: View) -> str:
    table = [[*map(str, row)] for row in (view.titles, *view.rows)] if view.titles else []
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ["  ".join(map(str.rjust, row, widths)) for row in table]
    left_out = [f"{view.left_out:,} more are not shown."] if view.left_out else []
    return "\n".join(map(visible, [view.lead, *lines, *left_out, *filter(None, view.notes)]))


def _of_rows(lead: str, rows: Sequence[dict[str, Any]], notes: Iterable[str] = ()) -> View:
    titles = [*rows[-1]] if rows else []
    return View(lead, notes, titles, [[row.get(title, "") for title in titles] for row in rows])


# The views of decisions and records


def _decisions(decided: Decisions) -> View:
    accepted, explored = int(decided.accepted.sum()), int(decided.explored.sum())
    columns = {name: values[:_SHOWN].tolist() for name, values in decided.columns().items()}
    del columns["round"]
    return View(
        _decided(decided, len(decided), accepted, explored),
        map(unlike_words, decided.unlike),
        [*columns],
        [[_shown(value) for value in row] for row in zip(*columns.values(), strict=True)],
        max(0, len(decided) - _SHOWN),
    )


def _closed_round(closed: ClosedRound) -> View:
    lead = _decided(closed, closed.n_people, closed.n_accepted, closed.n_explored)
    return View(lead, map(unlike_words, closed.unlike))


def _decided(of: Decisions | ClosedRound, n: int, accepted: int, explored: int) -> str:
    return (
        f"Round {of.round}: {accepted:,} of {counted(n, 'applicant')} accepted, "
        f"{explored:,} of them explored; {'certified' if of.certified else 'no certificate'}"
    )


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return share(value) if isinstance(value, float) else str(value)


def _round(record: Round) -> View:
    n, of = record.n_exploited + record.n_explored, counted(record.n_people, "applicant")
    row = _found(record, ROWS)
    assert row is not None
    lead = f"Round {record.round}: {n:,} of {of} accepted"
    return _of_rows(lead, [row(record)], rounds.about_round(record))


def _round_row(record: Round) -> dict[str, Any]:
    return {
        "round": record.round,
        "applied": f"{record.n_people:,}",
        "accepted": f"{record.n_exploited + record.n_explored:,}",
        "explored": f"{record.n_explored:,}",
        "mistakes allowed": percent(record.alpha_exploit),
        "mistakes estimated": percent(record.estimated_fdr),
        "outcomes": f"{record.n_outcomes:,}",
    }


def _certified_round(record: CertifiedRound) -> View:
    group = "" if record.group is None else f", group {record.group}"
    lead = (
        f"Round {record.round}{group}, {record.status}: {record.n_accepted:,} of "
        f"{counted(record.n_people, 'applicant')} accepted"
    )
    rows = [*map(_curve_row, record.curve)] or [_certified_row(record)]
    return _of_rows(lead, rows, _certified_notes(record))


def _certified_notes(record: CertifiedRound) -> Iterator[str]:
    yield from rounds.about_certificate(record)
    if record.status == "certified":
        yield rounds.sentence(rounds.needed(record.more_outcomes, certified=True))
    if record.n_awaited:
        missed = counted(record.n_awaited, "outcome was", "outcomes were")
        yield f"When it was decided, {missed} missing in round {record.awaited_round}."
    if record.curve:
        yield f"The table has what the rule would earn at several bounds. {rounds.ABOUT_CURVE}"


def _certified_row(record: CertifiedRound) -> dict[str, Any]:
    evidence = "–"  # no certificate is possible here
    if math.isfinite(record.threshold):
        evidence = percent(max(0.0, record.log_wealth) / record.threshold)
    return {
        "round": record.round,
        **({} if record.group is None else {"group": record.group}),
        "status": record.status,
        "applied": f"{record.n_people:,}",
        "accepted": f"{record.n_accepted:,}",
        "outcomes": f"{record.n_outcomes:,}",
        "evidence": evidence,
        "mistakes estimated": percent(record.estimated_fdr),
    }


def _count_row(count: GroupCount) -> dict[str, Any]:
    return {
        "round": count.round,
        "attribute": count.attribute,
        "group": count.group,
        "applied": f"{count.n_people:,}",
        "accepted": f"{count.n_accepted:,}",
        "explored": f"{count.n_explored:,}",
    }


def _correction_row(one: Correction) -> dict[str, Any]:
    before = "–" if one.before is None else one.before
    return {"id": one.id, "after round": one.round, "before": before, "now": one.after}


def _curve_row(point: CurvePoint) -> dict[str, Any]:
    return {
        "mistakes at most": percent(point.bound),
        "policy": "certified" if point.certified else "estimate",
        "accepted by score": percent(point.share),
        "earned per applicant": amount(point.earned),
        "mistakes estimated": percent(point.estimated_fdr),
    }


# By the name of a class, so that this module imports none of them; other packages add theirs.
VIEWS: dict[str, Callable[[Any], View]] = {
    "Decisions": _decisions,
    "ClosedRound": _closed_round,
    "Round": _round,
    "CertifiedRound": _certified_round,
    "Note": lambda note: View(rounds.note_text(note)),
    "Evaluation": lambda one: View(*audits.evaluation_view(one)),
    "GroupAudit": lambda audit: View(*audits.groups_view(audit)),
    "UnknownMap": lambda found: View(*audits.unknown_view(found)),
}
# The rows of tables of records: what readers see, by the titles of columns.
ROWS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "Round": _round_row,
    "CertifiedRound": _certified_row,
    "GroupCount": _count_row,
    "Correction": _correction_row,
    "CurvePoint": _curve_row,
}
