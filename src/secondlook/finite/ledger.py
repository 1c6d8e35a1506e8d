"""Names of applications, and a slot for the outcome of everybody who was accepted.

Ids that follow one another are kept as their first and their number, and looked up by subtraction;
others go into an index. A slot takes a few bytes: the row, the cell, the outcome. Nobody who was
rejected has one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.errors import InputError, UnknownIdError
from secondlook.ids import IdIndex, id_bits
from secondlook.memory import check_recorded
from secondlook.observed import PENDING

__all__ = ["Ledger", "Page", "first_of_consecutive"]

Heads = NDArray[np.int64]

_REJECTED = -1
_SLOTS = 2**40  # a place is the number of a round times this, plus the slot


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
class Page:
    """The people of one round; arrays have an entry per accepted person."""

    first: int | None
    n_people: int
    row: NDArray[np.uint32]
    cell: NDArray[np.int32]
    outcome: NDArray[np.int8]

    def slots(self, row: NDArray[Any]) -> Heads:
        """Return the slots of rows, _REJECTED for those that have none."""
        if row.size == self.row.size and np.array_equal(row, self.row):
            return np.arange(row.size)
        if self.row.size == 0:
            return np.full(row.shape, _REJECTED, np.int64)
        slot = np.searchsorted(self.row, row.astype(np.uint32))
        slot[slot == self.row.size] = 0
        return np.where(self.row[slot] == row, slot, _REJECTED)


class Ledger:
    """Everybody ever decided on.

    Examples
    --------
    >>> ledger, ids = Ledger(), np.arange(3)
    >>> ledger.record(ids, id_bits(ids), np.array([True, False, True]), np.array([0, 0, 1]))
    >>> good, bad = ledger.observe(np.array([2]), np.array([1], np.int8), n_cells=2)
    >>> good.tolist(), bad.tolist()
    ([0, 1], [0, 0])
    """

    def __init__(self) -> None:
        self._pages: list[Page] = []
        self._index = IdIndex()

    def check_new(self, ids: NDArray[Any], bits: NDArray[np.uint64]) -> None:
        """Raise if an id was decided on before."""
        if ids.size == 0:
            return
        known = np.zeros(ids.size, np.bool_)
        if ids.dtype.kind == "i":
            low, high = int(ids.min()), int(ids.max())
            for page in self._consecutive():
                first, last = page.first or 0, (page.first or 0) + page.n_people - 1
                if low <= last and high >= first:
                    known |= (ids >= first) & (ids <= last)
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
        cell: NDArray[np.int32],
        outcome: NDArray[np.int8] | None = None,
    ) -> None:
        """Write down who was decided on.

        ``cell`` has an entry per person, ``outcome`` one per accepted person; None means that all
        are still to come.
        """
        row = np.flatnonzero(accepted)
        first = first_of_consecutive(ids)
        known = np.full(row.size, PENDING, np.int8) if outcome is None else outcome.copy()
        if first is None and ids.size:
            place = np.full(ids.size, _REJECTED, np.int64)
            place[row] = len(self._pages) * _SLOTS + np.arange(row.size)
            self._index.add(bits, place)
        page = Page(first, ids.size, row.astype(np.uint32), cell[row].astype(np.int32), known)
        self._pages.append(page)

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
            What that adds to the outcomes of each cell.
        """
        place = self._find(ids)
        _check_places(ids, place)
        ids, place, outcome = _once_each(ids, place, outcome)
        good, bad = np.zeros(n_cells, np.int64), np.zeros(n_cells, np.int64)
        parts = self._by_page(place)
        for page, slot, mine in parts:
            check_recorded(ids[mine], page.outcome[slot], outcome[mine], correcting)
        for page, slot, mine in parts:
            cell, before, now = page.cell[slot], page.outcome[slot], outcome[mine]
            good += _per_cell(cell, now == 1, n_cells) - _per_cell(cell, before == 1, n_cells)
            bad += _per_cell(cell, now == 0, n_cells) - _per_cell(cell, before == 0, n_cells)
            page.outcome[slot] = now
        return good, bad

    def recorded(self, ids: NDArray[Any]) -> NDArray[np.int8]:
        """Return the outcomes of accepted people as they stand now."""
        place = self._find(ids)
        _check_places(ids, place)
        found = np.empty(ids.size, np.int8)
        for page, slot, mine in self._by_page(place):
            found[mine] = page.outcome[slot]
        return found

    def _by_page(self, place: Heads) -> list[tuple[Page, Any, Any]]:
        if place.size == 0:
            return []
        low, high = int(place.min()) // _SLOTS, int(place.max()) // _SLOTS
        if low == high:
            return [(self._pages[low], place - low * _SLOTS, slice(None))]
        number = place // _SLOTS
        return [
            (self._pages[one], place[number == one] % _SLOTS, number == one)
            for one in np.unique(number).tolist()
        ]

    def _consecutive(self) -> list[Page]:
        return [page for page in self._pages if page.first is not None]

    def _find(self, ids: NDArray[Any]) -> Heads:
        """Return everybody's place; _REJECTED and IdIndex.UNKNOWN for who has none."""
        place = np.full(ids.size, IdIndex.UNKNOWN, np.int64)
        if ids.size == 0:
            return place
        if ids.dtype.kind == "i":
            low, high = int(ids.min()), int(ids.max())
            for number, page in enumerate(self._pages):
                if page.first is None or low >= page.first + page.n_people or high < page.first:
                    continue
                all_here = low >= page.first and high < page.first + page.n_people
                mine = (ids >= page.first) & (ids < page.first + page.n_people)
                slot = page.slots(ids - page.first if all_here else ids[mine] - page.first)
                slot[slot != _REJECTED] += number * _SLOTS
                if all_here:
                    return slot
                place[mine] = slot
        left = np.flatnonzero(place == IdIndex.UNKNOWN)
        place[left] = self._index.find(id_bits(ids[left]))
        return place


def _per_cell(cell: NDArray[np.int32], chosen: NDArray[np.bool_], n_cells: int) -> Heads:
    return np.bincount(cell[chosen], minlength=n_cells)


def _check_places(ids: NDArray[Any], place: Heads) -> None:
    if place.size == 0 or place.min() >= 0:
        return
    unknown, rejected = (np.flatnonzero(place == what) for what in (IdIndex.UNKNOWN, _REJECTED))
    if unknown.size:
        raise UnknownIdError(
            f"{unknown.size} of {ids.size} ids were never decided on, so they can have no "
            f"outcome, first {ids[unknown[0]].item()!r}; nothing was recorded, remove or "
            f"correct them."
        )
    raise UnknownIdError(
        f"{rejected.size} of {ids.size} ids were rejected, first "
        f"{ids[rejected[0]].item()!r}, and outcomes are known for accepted people only; "
        f"nothing was recorded, remove them."
    )


def _once_each(
    ids: NDArray[Any], place: Heads, outcome: NDArray[np.int8]
) -> tuple[NDArray[Any], Heads, NDArray[np.int8]]:
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
