"""A file of outcomes: what in it is new, what was known, and what cannot be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from secondlook.cli.files.refusals import Refusals
from secondlook.cli.files.rows import check_there, cut, outcome_states, trimmed
from secondlook.cli.files.tables import read_listed
from secondlook.cli.programs.spelling import as_recorded

if TYPE_CHECKING:
    from secondlook.ledger.base import Standing
    from secondlook.ledger.config import Labels, Roles
    from secondlook.ledger.program import Program

__all__ = ["Told", "read_outcomes"]

_NOBODY = "the id was never decided on, or is erased"


@dataclass(frozen=True)
class Told:
    """What a file says that can be used, one place per application.

    Attributes
    ----------
    ids, states
        Who, and what became of it.
    before
        What the record says, "" for nothing.
    past
        Who is of the history.
    empty
        Of how many people the file tells nothing but an empty outcome: who wait for one
        (``not_yet_known``), have one on record (``known_already``), or do not stand accepted
        (``not_accepted``). Nothing is recorded for them.
    ignored
        Columns that were not read.
    refusals
        The rows that are left out.
    """

    ids: NDArray[Any]
    states: NDArray[np.str_]
    before: NDArray[np.str_]
    past: NDArray[np.bool_]
    empty: dict[str, int]
    ignored: list[str]
    refusals: Refusals

    @property
    def news(self) -> NDArray[np.bool_]:
        """Whose outcome is not recorded like this already."""
        return np.asarray(self.states != self.before, np.bool_)

    def counts(self) -> dict[str, Any]:
        """Return how much was new and how much was not."""
        from secondlook.ledger.base import STATES  # noqa: PLC0415 - an extra

        first = self.before == ""
        return {
            "recorded": {one: int((first & (self.states == one)).sum()) for one in STATES},
            "corrections": int((self.news & ~first).sum()),
            "corrected": self._corrected(),
            "known_already": int((~self.news).sum()),
            "pending": self.empty["not_yet_known"],
            "empty": self.empty,
            "ignored_columns": self.ignored,
        }

    def _corrected(self) -> list[dict[str, Any]]:
        """Return what contradicts the record, one by one."""
        rows = np.flatnonzero(self.news & (self.before != ""))
        columns = (self.ids, self.before, self.states, self.past)
        return [
            dict(zip(("id", "before", "now", "history"), row, strict=True))
            for row in zip(*(one[rows].tolist() for one in columns), strict=True)
        ]


def read_outcomes(
    program: Program,
    roles: Roles,
    labels: Labels,
    path: str,
    source: str,
    *,
    corrections: bool = True,
) -> Told:
    """Read a file of outcomes, and compare it with the record.

    Parameters
    ----------
    program
        Whose people they are.
    roles, labels
        Which columns to read, and what the words in them mean.
    path
        The file, as for ``read_table``.
    source
        What messages call it.
    corrections
        Whether what contradicts the record is a correction; if not, it is refused.
    """
    sent, column = read_listed(path, roles.id, text=(roles.outcome,), may_be_empty=True)
    table = sent.table
    check_there(table, (column, roles.outcome), source)
    plain = trimmed(table, column)[column].to_pylist()
    meant = as_recorded(program, table[column].to_pylist(), plain)
    ids = np.array([one or "" for one in meant], np.object_)
    states = outcome_states(table[roles.outcome], labels)
    refusals = Refusals(table, ids.tolist(), sent.as_written, (column, roles.outcome))
    nobody = np.array([not one or "\0" in one for one in ids], np.bool_)
    refusals.add(np.flatnonzero(nobody), f"{column!r} is empty or holds NUL, so names nobody")
    _refuse_unknown_labels(table[roles.outcome], states, labels, refusals)
    empty = _empty(program, ids, states, refusals)
    rows = np.flatnonzero(refusals.usable & (states != ""))
    rows = rows[~_contradictory(ids, states, rows, refusals)]
    names, first, place = np.unique(ids[rows], return_index=True, return_inverse=True)
    told = states[rows][first]
    standing = program.standing(names)
    before = np.array([one or "" for one in standing.states], np.str_)
    usable = np.ones(names.size, np.bool_)
    ruled_out = (before != "") & (told != before) & (not corrections)
    another = [(ruled_out, "the record tells another outcome, and corrections were ruled out")]
    for wrong, words in [*_cannot_be(told, before, standing, program.classifier), *another]:
        refusals.add(rows[(wrong & usable)[place]], words)
        usable &= ~wrong
    return Told(
        names[usable],
        told[usable],
        before[usable],
        standing.round[usable] == 0,
        empty,
        [one for one in table.column_names if one not in (column, roles.outcome)],
        refusals,
    )


def _empty(
    program: Program, ids: NDArray[Any], states: NDArray[np.str_], refusals: Refusals
) -> dict[str, int]:
    """Count people with an empty outcome and no other; refuse rows of those who are not known."""
    rows = np.flatnonzero(refusals.usable & (states == ""))
    rows = rows[~np.isin(ids[rows].astype(np.str_), ids[states != ""].astype(np.str_))]
    names, place = np.unique(ids[rows], return_inverse=True)
    standing = program.standing(names)
    unknown = standing.persons < 0
    refusals.add(rows[unknown[place]], _NOBODY)
    told = np.array([one is not None for one in standing.states], np.bool_)
    return {
        "not_yet_known": int((standing.accepted & ~told & ~unknown).sum()),
        "known_already": int((told & ~unknown).sum()),
        "not_accepted": int((~standing.accepted & ~told & ~unknown).sum()),
    }


def _refuse_unknown_labels(
    column: Any, states: NDArray[np.str_], labels: Labels, refusals: Refusals
) -> None:
    rows = np.flatnonzero(states == "?")
    values = column.take(rows).to_pylist()
    shown = [cut(one) for one in values]
    refusals.add_each(rows, "the outcome ", shown, f" is none of {labels.listed()}")


def _contradictory(
    ids: NDArray[Any], states: NDArray[np.str_], rows: NDArray[np.int64], refusals: Refusals
) -> NDArray[np.bool_]:
    """Refuse everybody of whom a file tells two things, since nobody knows which is meant."""
    from secondlook.ledger.base import STATES  # noqa: PLC0415 - an extra

    names, place = np.unique(ids[rows], return_inverse=True)
    code = np.searchsorted(sorted(STATES), states[rows])
    low, high = np.full(names.size, len(STATES)), np.full(names.size, -1)
    np.minimum.at(low, place, code)
    np.maximum.at(high, place, code)
    twice = (low < high)[place]
    refusals.add(rows[twice], "the file tells more than one outcome of this id")
    return np.asarray(twice, np.bool_)


def _cannot_be(
    told: NDArray[np.str_], before: NDArray[np.str_], standing: Standing, classifier: Any
) -> list[tuple[NDArray[np.bool_], str]]:
    """Return whose outcome a program would refuse, with the reasons."""
    from secondlook.ledger.telling import are_final  # noqa: PLC0415 - an extra

    for_good = are_final(classifier)
    past = for_good & (standing.round == 0) & (told != before)
    never, known = "indeterminate", np.isin(before, ("good", "bad"))
    return [
        (standing.persons < 0, _NOBODY),
        (~standing.accepted, "the person does not stand accepted, so there is no outcome to know"),
        (
            past,
            "the person is the history's, whose outcomes a certified program takes as they were",
        ),
        (
            for_good & (before == never) & (told != never),
            "it is on record that the outcome will never be known, for good where certificates "
            "rest on it",
        ),
        (
            for_good & known & (told == never),
            "an outcome is on record, and it cannot be withdrawn where certificates rest on it",
        ),
    ]
