"""Which outcomes, overrides or erasures of an entry were changed, if that can be proved.

All rows of a kind have one hash, so that no row can be judged alone: only all changes that were
made, taken back together, make it fit. They are looked for among rows that cannot be there, among
outcomes as a later state has them, and among all ways to change one row, two, and so on, as long as
it takes seconds to try them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import accumulate, chain, combinations, islice
from math import comb
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from secondlook.ledger.base import STATES, Ints, OutcomeRows, OverrideRows
from secondlook.ledger.chain import NOTHING, packed
from secondlook.ledger.locating import Change, Rows, shown, with_others

__all__ = ["Guesses", "changed_told"]

_OUTCOMES, _OVERRIDES, _ERASED = 3, 4, 5  # places in ``content_parts``
_EACH = 8000  # bytes that are hashed in the time of all else that a try takes
_NONE = OutcomeRows(np.empty(0, np.int64), [])


@dataclass(frozen=True)
class Guesses:
    """What else might have been there.

    Attributes
    ----------
    missing
        Gives at most so many people of whom an outcome might have been taken away.
    impossible
        People, by table, of whom nothing can have been told.
    kept
        Gives outcomes as they might have been, by what was stored later.
    """

    missing: Callable[[int], Iterable[int]]
    impossible: Callable[[], dict[str, set[int]]]
    kept: Callable[[OutcomeRows], Iterable[OutcomeRows]]


def changed_told(rows: Rows, guesses: Guesses) -> Change | None:
    """Return which outcome, override or erasure was changed, with others that were too.

    Parameters
    ----------
    rows
        The rows of an entry.
    guesses
        What else might have been there.
    """
    changed, erased, impossible = rows.facts.overrides, rows.facts.erased, guesses.impossible()
    found = _changed_outcomes(rows, guesses, impossible.get("outcomes", set()))
    if not found and changed is not None:
        change = Change("overrides", "override", 0, "")
        found = _taken_back(rows, _OVERRIDES, change, [*_override_rows(changed)])
    if not found and erased is not None:
        found = _unerased(rows, erased, impossible.get("erasures", set()))
    return with_others(found)


def _changed_outcomes(rows: Rows, guesses: Guesses, impossible: set[int]) -> list[Change]:
    """Return how outcomes differ from those that fit the hash; nothing if these are not found."""
    told = _NONE if rows.facts.outcomes is None else rows.facts.outcomes
    stays = [at for at, one in enumerate(told.persons.tolist()) if one not in impossible]
    possible = OutcomeRows(told.persons[stays], [told.states[at] for at in stays])
    for one in chain([possible], guesses.kept(possible)):
        if rows.fit(outcomes=one):
            return _differences(one, told)
    lost = guesses.missing(rows.room(max(20 * (len(stays) + 1), _EACH)) // len(STATES))
    change = Change("outcomes", "outcome", 0, "")
    found = _taken_back(
        rows, _OUTCOMES, change, sorted(_outcome_rows(possible, lost), key=itemgetter(0))
    )
    also = _differences(possible, told) if found else []
    return sorted([*found, *also], key=lambda change: change.person)


def _differences(was: OutcomeRows, now: OutcomeRows) -> list[Change]:
    before, after = (dict(zip(one.persons.tolist(), one.states, strict=True)) for one in (was, now))
    return [
        Change("outcomes", "outcome", person, _how(before.get(person), after.get(person)))
        for person in sorted(before.keys() | after.keys())
        if before.get(person) != after.get(person)
    ]


def _how(was: str | None, now: str | None) -> str:
    if was is None:
        return "was not there"
    return f"was {was!r} and is {'gone' if now is None else repr(now)}"


class _Row(NamedTuple):
    """Somebody's row that is there or might have been, and what else it might have been.

    Texts are as they are hashed, empty for a row that is not there; each other one comes with how
    the row was changed from it.
    """

    person: int
    text: str
    others: Iterable[tuple[str, str]]


def _outcome_rows(told: OutcomeRows, lost: Iterable[int]) -> Iterator[_Row]:
    now = dict(zip(told.persons.tolist(), told.states, strict=True))
    for person, state in [*now.items(), *((one, None) for one in lost)]:
        yield _Row(person, _outcome_text(person, state), _other_outcomes(person, state))


def _other_outcomes(person: int, now: str | None) -> Iterator[tuple[str, str]]:
    for was in (None, *STATES):
        if was != now:
            yield _outcome_text(person, was), _how(was, now)


def _outcome_text(person: int, state: str | None) -> str:
    return "" if state is None else repr((person, state))


def _override_rows(changed: OverrideRows) -> Iterator[_Row]:
    taken = changed.accepted.astype(int).tolist()
    reasons = sorted(set(changed.reasons))
    for one in zip(changed.persons.tolist(), taken, changed.reasons, strict=True):
        yield _Row(one[0], repr(one), _other_overrides(*one, reasons))


def _other_overrides(
    person: int, accepted: int, reason: str, reasons: Sequence[str]
) -> Iterator[tuple[str, str]]:
    yield "", "was not there"
    how = f"was {bool(1 - accepted)} and is {bool(accepted)}"
    yield repr((person, 1 - accepted, reason)), how
    for why in reasons:
        if why != reason:
            how = f"had the reason {shown(why)} and has {shown(reason)}"
            yield repr((person, accepted, why)), how


class _Edit(NamedTuple):
    """A change taken back: the bytes from ``start`` to ``end`` were others."""

    row: int
    start: int
    end: int
    text: bytes
    how: str


def _taken_back(rows: Rows, at: int, change: Change, found: Sequence[_Row]) -> list[Change]:
    """Return the changes without which the hash fits; nothing if none do, or to try takes long.

    Parameters
    ----------
    rows
        The rows of an entry.
    at
        Which of the parts of its hash is that of ``found``.
    change
        What to call a change of one, but for whose it is and how.
    found
        Rows in their order.
    """
    pieces = [_piece(one.text) for one in found]
    ends = [*accumulate(map(len, pieces), initial=0)]
    parts, whole = rows.parts(rows.facts), b"".join(pieces)
    before, after = b"".join(parts[:at]), b"".join(parts[at + 1 :])
    room = rows.room(max(len(whole), _EACH))
    every = (
        _Edit(row, ends[row], ends[row + 1], _piece(text), how)
        for row, one in enumerate(found)
        for text, how in one.others
    )
    for chosen in islice(_choices([*islice(every, room)], len(found), room), room):
        digest = _digest_without(whole, chosen)
        if digest is not None and sha256(before + digest + after).digest() == rows.content:
            return [replace(change, person=found[one.row].person, how=one.how) for one in chosen]
    return []


def _choices(edits: Sequence[_Edit], n_rows: int, room: int) -> Iterator[tuple[_Edit, ...]]:
    """Yield all ways to choose one change, two, and so on, as long as there is room for them all.

    What takes fewest tries comes first: rows that are gone may have been many people's.
    """
    there = [one for one in edits if one.end > one.start]
    ways = [(len(edits), 1, edits)]
    for among in (there, edits):
        for n in range(2, n_rows + 1):
            tries = comb(len(among), n)
            if tries > room:
                break
            ways.append((tries, n, among))
    for _, n, among in sorted(ways, key=lambda way: way[:2]):
        yield from combinations(among, n)


def _piece(text: str) -> bytes:
    return f", {text}".encode() if text else b""


def _digest_without(whole: bytes, chosen: Sequence[_Edit]) -> bytes | None:
    """Return ``digest_of_rows`` without some changes; None if two are of one row."""
    kept, at, last = list[bytes](), 0, -1
    for one in chosen:
        if one.row == last:
            return None
        kept += [whole[at : one.start], one.text]
        at, last = one.end, one.row
    kept.append(whole[at:])
    return sha256(b"[%b]" % b"".join(kept)[2:]).digest()


def _unerased(rows: Rows, erased: Ints, impossible: set[int]) -> list[Change]:
    """Return who was not erased: everybody who cannot have been, or somebody."""
    change = Change("erasures", "erasure", 0, "was not there")
    guess = [at for at, one in enumerate(erased.tolist()) if one in impossible]
    if rows.fit(erased=_without(erased, guess)):
        return [replace(change, person=int(erased[at])) for at in guess]
    parts = rows.parts(rows.facts)
    for at in range(min(erased.size, rows.room(8 * erased.size))):
        others = _without(erased, [at])
        parts[_ERASED] = NOTHING if others is None else packed(others)
        if rows.content == sha256(b"".join(parts)).digest():
            return [replace(change, person=int(erased[at]))]
    return []


def _without(erased: Ints, rows: list[int]) -> Ints | None:
    others = np.delete(erased, rows)
    return others if others.size else None
