"""Names of applications, everybody's cell, and a slot for the outcome of whoever was accepted.

Ids that follow one another are kept as their first and their number, and looked up by subtraction;
others go into an index. A person takes a few bytes: the cell, and if they were accepted the row and
the outcome. Nobody who was rejected has a slot for one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.errors import InputError
from secondlook.people.ids import IdIndex, id_bits
from secondlook.people.store import (
    NEVER,
    PENDING,
    REJECTED,
    check_decided,
    check_known,
    check_none_rejected,
    check_recorded,
)

__all__ = ["Ledger", "PeopleOfRound", "first_of_consecutive"]

Heads = NDArray[np.int64]
Rows = NDArray[np.int64]

_FORGOTTEN = -1  # cell of somebody of whom nothing is known any more
_ROWS = 2**40  # a place is the number of a round times this, plus the row


def first_of_consecutive(ids: NDArray[Any]) -> int | None:
    """Return the first of ids that follow one another, None for others.

    Examples
    --------
    >>> first_of_consecutive(np.array([7, 8, 9])), first_of_consecutive(np.array([7, 9, 8]))
    (7, None)
    """
    if ids.dtype.kind != "i" or ids.size == 0 or ids[-1] - ids[0] != ids.size - 1:
        return None
    return int(ids[0]) if np.all(ids[1:] > ids[:-1]) else None


@dataclass(frozen=True)
class PeopleOfRound:
    """The people of one round.

    Attributes
    ----------
    first
        First id if they follow one another, else None.
    cell
        Cell of everybody, in a type that is as small as can be.
    whole
        Whether nobody was forgotten.
    row, outcome
        Of the accepted: their rows, in order, and outcomes.
    group
        Groups of the accepted where cells have none and a fit may see them, else None.
    """

    first: int | None
    cell: NDArray[np.signedinteger]
    whole: bool
    row: NDArray[np.uint32]
    outcome: NDArray[np.int8]
    group: NDArray[np.signedinteger] | None = None

    def slots(self, row: NDArray[Any]) -> Rows:
        """Return the slots of rows, REJECTED for those that have none."""
        if row.size == self.row.size and np.array_equal(row, self.row):
            return np.arange(row.size)
        if self.row.size == 0:
            return np.full(row.shape, REJECTED, np.int64)
        slot = np.searchsorted(self.row, row.astype(np.uint32))
        slot[slot == self.row.size] = 0
        return np.where(self.row[slot] == row, slot, REJECTED)

    def known(self, row: NDArray[Any]) -> NDArray[np.bool_]:
        """Say which rows are of somebody who was not forgotten."""
        if self.whole:
            return np.ones(row.shape, np.bool_)
        return np.asarray(self.cell[row] != _FORGOTTEN)

    def bins(self, slot: Any, n_groups: int) -> Rows:
        """Return where people in slots are counted: by cell, and within it by group."""
        bins: Rows = self.cell[self.row[slot]].astype(np.int64)
        if self.group is not None:
            bins *= n_groups
            bins += self.group[slot]
        return bins

    def without(self, row: Rows) -> PeopleOfRound:
        """Return the round without some people; rows of the others stay what they are."""
        stays = ~np.isin(self.row, row)
        cell = self.cell.copy()
        cell[row] = _FORGOTTEN
        group = None if self.group is None else self.group[stays]
        return replace(
            self,
            cell=cell,
            whole=False,
            row=self.row[stays],
            outcome=self.outcome[stays],
            group=group,
        )


class Ledger:
    """Everybody ever decided on.

    Outcomes are counted in bins: a bin is a cell, or where fits see groups and cells do not, a cell
    and a group, with the group running fastest.

    Parameters
    ----------
    n_groups
        Groups in a cell.

    Examples
    --------
    >>> ledger, ids = Ledger(), np.arange(3)
    >>> ledger.record(ids, id_bits(ids), np.array([True, False, True]), np.array([0, 0, 1]))
    >>> good, bad = ledger.observe(np.array([2]), np.array([1], np.int8), n_cells=2)
    >>> good.tolist(), bad.tolist()
    ([0, 1], [0, 0])
    """

    def __init__(self, n_groups: int = 1) -> None:
        self._n_groups = n_groups
        self._rounds: list[PeopleOfRound] = []
        self._index = IdIndex()

    def check_new(self, ids: NDArray[Any], bits: NDArray[np.uint64]) -> None:
        """Raise if an id was decided on before."""
        if ids.size == 0:
            return
        known = np.zeros(ids.size, np.bool_)
        for _, people, mine in self._consecutive(ids):
            known[mine] |= people.known(ids[mine] - (people.first or 0))
        if self._index.overlaps(bits):
            known |= self._index.find(bits) != IdIndex.UNKNOWN
        if known.any():
            raise InputError(
                f"{int(known.sum())} of {ids.size} ids were decided on before, first "
                f"{ids[np.argmax(known)].item()!r}; ids are unique for ever, so if this is the "
                f"same batch use its first decisions, and if a person applies again give a new id."
            )

    def record(
        self,
        ids: NDArray[Any],
        bits: NDArray[np.uint64],
        accepted: NDArray[np.bool_],
        cell: NDArray[np.signedinteger],
        outcome: NDArray[np.int8] | None = None,
        group: NDArray[np.intp] | None = None,
    ) -> None:
        """Write down who was decided on.

        ``cell`` and ``group`` have an entry per person, ``outcome`` one per accepted person; None
        means that all are still to come.
        """
        row = np.flatnonzero(accepted)
        first = first_of_consecutive(ids)
        known = np.full(row.size, PENDING, np.int8) if outcome is None else outcome.copy()
        if first is None and ids.size:
            self._index.add(bits, len(self._rounds) * _ROWS + np.arange(ids.size))
        largest = int(cell.max()) if cell.size else 0
        people = PeopleOfRound(
            first,
            cell.astype(_smallest(largest)),
            True,
            row.astype(np.uint32),
            known,
            None if group is None else group[row].astype(_smallest(self._n_groups)),
        )
        self._rounds.append(people)

    def observe(
        self,
        ids: NDArray[Any],
        outcome: NDArray[np.int8],
        n_cells: int,
        *,
        correcting: bool = False,
    ) -> tuple[Heads, Heads]:
        """Fill in outcomes, or correct recorded ones, all or none.

        Returns
        -------
        good, bad
            What that adds to the outcomes of each bin.
        """
        place = self._find(ids)
        check_decided(ids, place)
        ids, place, outcome = _once_each(ids, place, outcome)
        parts = self._slots(ids, place)
        for people, slot, mine in parts:
            check_recorded(ids[mine], people.outcome[slot], outcome[mine], correcting)
        return self._fill_in([(*part[:2], outcome[part[2]]) for part in parts], n_cells)

    def withdraw(self, ids: NDArray[Any], n_cells: int) -> tuple[Heads, Heads]:
        """Write down that outcomes will never be known; return what that adds to each bin."""
        place = self._find(ids)
        check_decided(ids, place)
        place, first = np.unique(place, return_index=True)
        never = ((*part[:2], NEVER) for part in self._slots(ids[first], place))
        return self._fill_in(list(never), n_cells)

    def recorded(self, ids: NDArray[Any]) -> NDArray[np.int8]:
        """Return the outcomes of accepted people as they stand now."""
        place = self._find(ids)
        check_decided(ids, place)
        found = np.empty(ids.size, np.int8)
        for people, slot, mine in self._slots(ids, place):
            found[mine] = people.outcome[slot]
        return found

    def forget(self, ids: NDArray[Any], n_cells: int) -> tuple[Heads, Heads, Heads]:
        """Take people out for good.

        Returns
        -------
        applicants, good, bad
            What that adds, below 0, to the people of each cell and to the outcomes of each bin.
        """
        place = self._find(ids)
        check_known(ids, place)
        heads = np.zeros(n_cells, np.int64)
        good, bad = self._nothing(n_cells)
        for number, row, _ in _by_round(np.unique(place)):
            people = self._rounds[number]
            heads -= np.bincount(people.cell[row], minlength=n_cells)
            gone = np.isin(people.row, row)
            good -= self._counted(people, n_cells, gone & (people.outcome == 1))
            bad -= self._counted(people, n_cells, gone & (people.outcome == 0))
            self._rounds[number] = people.without(row)
        self._index.remove(id_bits(ids), [])
        return heads, good, bad

    def renumber(self, new: NDArray[np.int64]) -> None:
        """Give cells other numbers: ``new`` has that of each old one, −1 where nobody is in it."""
        after = np.append(new, _FORGOTTEN)  # found by the cell −1
        self._rounds = [
            replace(one, cell=after[one.cell].astype(one.cell.dtype)) for one in self._rounds
        ]

    def outcomes(self, n_cells: int) -> tuple[Heads, Heads]:
        """Count all recorded outcomes, good and bad, by bin."""
        good, bad = self._nothing(n_cells)
        for people in self._rounds:
            good += self._counted(people, n_cells, people.outcome == 1)
            bad += self._counted(people, n_cells, people.outcome == 0)
        return good, bad

    def unripe(self, t: int, maturity: int, n_cells: int) -> tuple[Heads, Heads]:
        """Return what maturity adds to the recorded outcomes of each bin, good and bad, in round t.

        Of a round with outcomes still to come nothing counts until it is mature; then the missing
        count as bad.
        """
        good, bad = self._nothing(n_cells)
        for number, people in enumerate(self._rounds):
            pending = people.outcome == PENDING
            if not pending.any():
                continue
            if t - number > maturity:
                bad += self._counted(people, n_cells, pending)
            else:
                good -= self._counted(people, n_cells, people.outcome == 1)
                bad -= self._counted(people, n_cells, people.outcome == 0)
        return good, bad

    def _fill_in(
        self, parts: list[tuple[PeopleOfRound, Any, Any]], n_cells: int
    ) -> tuple[Heads, Heads]:
        """Write outcomes into slots that are all right; return what that adds to each bin."""
        good, bad = self._nothing(n_cells)
        for people, slot, now in parts:
            bins, before = people.bins(slot, self._n_groups), people.outcome[slot]
            good += _count(bins, now == 1, good.size) - _count(bins, before == 1, good.size)
            bad += _count(bins, now == 0, bad.size) - _count(bins, before == 0, bad.size)
            people.outcome[slot] = now
        return good, bad

    def _nothing(self, n_cells: int) -> tuple[Heads, Heads]:
        n_bins = n_cells * self._n_groups
        return np.zeros(n_bins, np.int64), np.zeros(n_bins, np.int64)

    def _counted(self, people: PeopleOfRound, n_cells: int, who: NDArray[np.bool_]) -> Heads:
        bins = people.bins(np.flatnonzero(who), self._n_groups)
        return np.bincount(bins, minlength=n_cells * self._n_groups)

    def _slots(self, ids: NDArray[Any], place: Rows) -> list[tuple[PeopleOfRound, Any, Any]]:
        """Return the slots of people who are known, by round; raise unless all were accepted."""
        found, rejected = [], np.zeros(place.size, np.bool_)
        for number, row, mine in _by_round(place):
            people = self._rounds[number]
            slot = people.slots(row)
            rejected[mine] = slot == REJECTED
            found.append((people, slot, mine))
        check_none_rejected(ids, rejected)
        return found

    def _consecutive(self, ids: NDArray[Any]) -> Iterator[tuple[int, PeopleOfRound, Any]]:
        """Yield rounds whose ids follow one another, with which of these may be among them."""
        if ids.dtype.kind != "i":
            return
        low, high = int(ids.min()), int(ids.max())
        for number, people in enumerate(self._rounds):
            if people.first is None:
                continue
            end = people.first + people.cell.size
            if low >= people.first and high < end:
                yield number, people, slice(None)
            elif low < end and high >= people.first:
                yield number, people, np.flatnonzero((ids >= people.first) & (ids < end))

    def _find(self, ids: NDArray[Any]) -> Rows:
        """Return everybody's place; IdIndex.UNKNOWN for who has none."""
        place = np.full(ids.size, IdIndex.UNKNOWN, np.int64)
        if ids.size == 0:
            return place
        for number, people, mine in self._consecutive(ids):
            row = ids[mine] - (people.first or 0)
            if people.whole:
                place[mine] = row + number * _ROWS
            else:
                place[mine] = np.where(people.known(row), row + number * _ROWS, place[mine])
        left = np.flatnonzero(place == IdIndex.UNKNOWN)
        if left.size:
            place[left] = self._index.find(id_bits(ids[left]))
        return place


def _smallest(largest: int) -> np.dtype[Any]:
    """Return the smallest type with a sign that holds a number."""
    return np.min_scalar_type(-largest - 1)


def _count(bins: Rows, chosen: Any, n_bins: int) -> Heads:
    chosen = np.broadcast_to(chosen, bins.shape)
    return np.bincount(bins[chosen], minlength=n_bins)


def _by_round(place: Rows) -> Iterator[tuple[int, Rows, Any]]:
    """Split places by round: its number, rows, and which of the places these are."""
    if place.size == 0:
        return
    low, high = int(place.min()) // _ROWS, int(place.max()) // _ROWS
    if low == high:
        yield low, place - low * _ROWS, slice(None)
        return
    number = place // _ROWS
    for one in np.unique(number).tolist():
        mine = number == one
        yield one, place[mine] % _ROWS, mine


def _once_each(
    ids: NDArray[Any], place: Rows, outcome: NDArray[np.int8]
) -> tuple[NDArray[Any], Rows, NDArray[np.int8]]:
    """Leave out ids that stand there more than once; they must not contradict each other."""
    if np.all(place[1:] > place[:-1]):
        return ids, place, outcome
    order = np.argsort(place, kind="stable")
    ids, place, outcome = ids[order], place[order], outcome[order]
    again = place[1:] == place[:-1]
    wrong = again & (outcome[1:] != outcome[:-1])
    if wrong.any():
        name = ids[np.argmax(wrong)].item()
        raise InputError(f"outcomes contradict each other for id {name!r}; give one per id.")
    first = np.append(True, ~again)
    return ids[first], place[first], outcome[first]
