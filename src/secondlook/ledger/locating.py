"""Where the rows of an entry were changed, as far as that can be known.

An entry's hash tells that something was changed, and not what. But changes that are taken back
make the hash fit again: whoever finds them has proved that they were made, that there were no
others, and what had been there. Changed decisions are looked for here, among what comes out when a
batch is decided again and among all changes of a single flag; ``locating_told`` looks for changed
outcomes, overrides and erasures. Where nothing makes the hash fit, what still comes out otherwise
than recorded is named, and proves nothing more than that.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from secondlook.core.decisions import Decisions
from secondlook.ledger.base import DecisionRows, Entry, Facts
from secondlook.ledger.chain import joined, packed
from secondlook.ledger.kept_outcomes import KeptOutcomes
from secondlook.ledger.replay import differences

__all__ = ["Change", "DecidedAgain", "Locates", "Rows", "changed_decisions"]
__all__ += ["first_otherwise", "now_called", "others_too", "shown", "who", "with_others"]

Bools = NDArray[np.bool_]

_MOST_HASHED = 3 * 10**9  # bytes, for one search: some seconds
_DECISIONS = 2  # its place in ``content_parts``
_NAMED = 5  # people, in a message
_SHOWN = reprlib.Repr()
_SHOWN.maxstring = _SHOWN.maxother = 100


@dataclass(frozen=True)
class DecidedAgain:
    """A batch as it comes out again, and for whom that says something.

    Attributes
    ----------
    decided, fold
        What comes out; ``fold`` is None where there is none.
    rows
        Who is there.
    drawn
        Whose acceptance and its probability come out again too.
    close
        By how much numbers may differ from one machine to another.
    """

    decided: Decisions
    fold: NDArray[np.int64] | None
    rows: Bools
    drawn: Bools
    close: float

    def differences(self, recorded: DecisionRows, close: float) -> dict[str, Bools]:
        """Say for each value of a decision where it differs from what is recorded."""
        return differences(
            recorded, self.decided, fold=self.fold, rows=self.rows, drawn=self.drawn, close=close
        )


@runtime_checkable
class Locates(Protocol):
    """A reader that can tell more of what does not fit."""

    def where(
        self,
        entry: Entry,
        again: Callable[[], DecidedAgain | None],
        kept: Callable[[], KeptOutcomes | None],
    ) -> str | None:
        """Say what ``check`` said of an entry, with the place; None if no more is known.

        ``again`` decides the entry's batch again, ``kept`` finds what was stored of outcomes later;
        both may raise.
        """

    def uncovered(self, name: str, n_people: int) -> str | None:
        """Say which row of what ``count`` counts belongs to no entry; None if that is not known."""


@dataclass(frozen=True)
class Change:
    """A value that was changed, or seems so: in which table, whose, and how."""

    table: str
    what: str
    person: int
    how: str
    others: tuple[int, ...] = ()  # whose other values were changed too, a number each

    def words(self, whose: str) -> str:
        """Return the change as a sentence about somebody."""
        what = f"the {self.what} of {whose} {self.how}"
        others = others_too(self.others, "value was", "values were")
        return f"its rows of {self.table} were changed: {what}{others}"


def with_others(found: Sequence[Change]) -> Change | None:
    """Return the first of some changes, which names whose the others are; None if there is none."""
    return replace(found[0], others=tuple(one.person for one in found[1:])) if found else None


def others_too(persons: Sequence[int], one: str, many: str) -> str:
    """Return how many others were changed too, and whose, as the end of a sentence.

    Examples
    --------
    >>> others_too([7, 9, 9], "value was", "values were")
    ', and 3 other values were changed (persons 7, 9)'
    >>> others_too([], "value was", "values were")
    ''
    """
    if not persons:
        return ""
    who = sorted(set(persons))
    named = ", ".join(map(str, who[:_NAMED])) + (" and more" if len(who) > _NAMED else "")
    n, what = len(persons), one if len(persons) == 1 else many
    return f", and {n:,} other {what} changed (person{'s' if len(who) > 1 else ''} {named})"


@dataclass(frozen=True)
class Rows:
    """The rows of an entry as they are found, and the hash that they should have.

    Attributes
    ----------
    facts, rounds
        What is found; ``rounds`` by person, since ``facts`` have one for all.
    round
        What the entry itself says of its round; None if nothing.
    first
        Number of the entry's first person.
    content
        The entry's hash of its rows.
    parts
        Gives the hashes that ``content`` is made of, for the facts as they might have been.
    """

    facts: Facts
    rounds: Sequence[Any]
    round: int | None
    first: int
    content: bytes
    parts: Callable[[Facts], list[bytes]]

    def fit(self, **facts: Any) -> bool:
        """Return if the hash is that of other facts."""
        return joined(self.parts(replace(self.facts, **facts))) == self.content

    def room(self, size: int) -> int:
        """Return how often so many bytes may be hashed in one search."""
        return _MOST_HASHED // max(size, 1)

    def first_fit(
        self, edits: Iterable[tuple[Change, bytes]], at: int, size: int, facts: Facts | None = None
    ) -> Change | None:
        """Return the change without which the hash fits; ``edits`` give the hash of one part."""
        parts = self.parts(self.facts if facts is None else facts)
        for change, digest in islice(edits, self.room(size)):
            parts[at] = digest
            if joined(parts) == self.content:
                return change
        return None


def changed_decisions(rows: Rows, again: DecidedAgain | None) -> Change | None:
    """Return which decision was changed, if that can be proved."""
    recorded = rows.facts.decisions
    if recorded is None:
        return None
    recorded = replace(recorded, round=recorded.round if rows.round is None else rows.round)
    past = _as_a_history_is(recorded) if rows.round == 0 else ()
    for one in chain([recorded], _as_they_come_out(recorded, again), past):
        if rows.fit(decisions=one):
            return _first_change(rows, one)
    facts = replace(rows.facts, decisions=recorded)
    flipped = rows.first_fit(_flips(recorded, rows.first), _DECISIONS, 40 * len(rows.rounds), facts)
    strange = enumerate(rows.rounds, start=rows.first)
    others = tuple(person for person, one in strange if one != recorded.round)
    return None if flipped is None else replace(flipped, others=others)


def _as_they_come_out(recorded: DecisionRows, again: DecidedAgain | None) -> Iterator[DecisionRows]:
    """Yield decisions as recorded but for what comes out otherwise, to the bit and about."""
    if again is None:
        return
    decided = again.decided
    cut = None if decided.threshold is None else decided.threshold.astype(np.float64)
    made: dict[str, Any] = {
        "accepted": decided.accepted,
        "exploit": decided.exploit,
        "score": decided.score,
        "propensity": decided.propensity,
        "threshold": cut,
        "fold": again.fold,
    }
    # A column that is empty, or should be, may have been changed as a whole.
    cut, fold = (_if_both(getattr(recorded, name), made[name]) for name in ("threshold", "fold"))
    for one in (recorded, replace(recorded, threshold=cut, fold=fold)):
        for close in (0.0, again.close):
            other = again.differences(one, close)
            mixed: dict[str, Any] = {
                name: np.where(other[_called(name)], values, getattr(one, name))
                for name, values in made.items()
                if _called(name) in other
            }
            yield replace(one, **mixed)


def _as_a_history_is(recorded: DecisionRows) -> list[DecisionRows]:
    """Return a history's decisions: without numbers, and everybody accepted is in the region."""
    none = np.full(recorded.accepted.size, np.nan)
    bare = replace(recorded, score=none, propensity=none, threshold=None, fold=None)
    same = (replace(bare, accepted=one, exploit=one) for one in (bare.accepted, bare.exploit))
    return [bare, *same]


def _if_both(one: NDArray[Any] | None, other: NDArray[Any] | None) -> NDArray[Any] | None:
    return other if one is None or other is None else one


def _called(column: str) -> str:
    return "region" if column == "exploit" else column


def _first_change(rows: Rows, was: DecisionRows) -> Change | None:
    """Return the first value that is recorded otherwise than it was; proved by the hash."""
    now, n = rows.facts.decisions, len(rows.rounds)
    assert now is not None
    rounds = np.empty(n, object)
    rounds[:] = rows.rounds
    found: dict[str, tuple[Any, Any]] = {
        "accepted": (was.accepted, now.accepted),
        "region": (was.exploit, now.exploit),
        "score": (was.score, now.score),
        "propensity": (was.propensity, now.propensity),
        "threshold": (_or_full(was.threshold, n, np.nan), _or_full(now.threshold, n, np.nan)),
        "fold": (_or_full(was.fold, n, -1), _or_full(now.fold, n, -1)),
        "round": (np.full(n, was.round, object), rounds),
    }
    others = np.stack([~_same(*pair) for pair in found.values()])
    if not others.any():
        return None
    row, *beside = np.nonzero(others.T)[0].tolist()  # a row for each value
    what = list(found)[int(np.argmax(others[:, row]))]
    before, after = (_value(what, one[row]) for one in found[what])
    how = f"was {before} and is {after}"
    others_of = tuple(rows.first + one for one in beside)
    return Change("decisions", what, rows.first + row, how, others_of)


def _or_full(column: NDArray[Any] | None, n: int, value: float) -> NDArray[Any]:
    return np.full(n, value) if column is None else column


def _same(one: NDArray[Any], other: NDArray[Any]) -> Bools:
    same = np.asarray(one == other, np.bool_)
    if one.dtype.kind == "f":
        same |= np.isnan(one) & np.isnan(other)
    return same


def _value(what: str, value: Any) -> str:
    if what == "region":
        return "exploit" if value else "explore"
    value = value.item() if isinstance(value, np.generic) else value
    is_none = (isinstance(value, float) and math.isnan(value)) or (what == "fold" and value == -1)
    return "none" if is_none else shown(value)


def _flips(decided: DecisionRows, first: int) -> Iterator[tuple[Change, bytes]]:
    """Yield every change of one flag, with the hash of the decisions without it."""
    flags = {"accepted": decided.accepted, "region": decided.exploit}
    columns = {name: one.astype(np.int64) for name, one in flags.items()}
    for what, column in columns.items():
        for row in range(column.size):
            now, was = _value(what, bool(column[row])), _value(what, not column[row])
            column[row] ^= 1
            digest = packed(
                np.array([decided.round]), *columns.values(), decided.score, decided.propensity
            )
            column[row] ^= 1
            yield Change("decisions", what, first + row, f"was {was} and is {now}"), digest


def first_otherwise(rows: Rows, again: DecidedAgain | None) -> Change | None:
    """Return which decision does not come out as recorded; that it was changed is not proved.

    What rests on the person alone goes first: in a draw, one person's chance follows from all.
    """
    recorded = rows.facts.decisions
    if recorded is None:
        return None
    strange = [one != rows.round for one in rows.rounds]
    if rows.round is not None and any(strange):
        row = strange.index(True)
        how = f"is {shown(rows.rounds[row])}, and that of its entry {rows.round}"
        return Change("decisions", "round", rows.first + row, how)
    found = {} if again is None else again.differences(recorded, again.close)
    for names in (("score", "threshold", "region", "fold"), ("accepted", "propensity")):
        places = [
            (int(np.argmax(found[one])), one) for one in names if one in found and found[one].any()
        ]
        if places:
            row, what = min(places, key=lambda one: one[0])
            how = "comes out otherwise than recorded"
            return Change("people or decisions", what, rows.first + row, how)
    return None


def shown(value: Any) -> str:
    """Return a value as messages show it: whatever it is, and not too long."""
    return _SHOWN.repr(value)


def who(person: int, application: Any) -> str:
    """Return what messages call somebody whose name is proved, or was erased."""
    return (
        f"person {person}"
        if application is None
        else f"application {shown(application)} (person {person})"
    )


def now_called(person: int, application: Any) -> str:
    """Return what messages call somebody whose name may be what was changed."""
    return (
        f"person {person}"
        if application is None
        else f"person {person}, now called {shown(application)},"
    )
