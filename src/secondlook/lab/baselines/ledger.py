"""Whom a baseline decided on: the accepted with slots for outcomes, the rejected without any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.errors import InputError
from secondlook.people.batches import Batch
from secondlook.people.ids import IdIndex
from secondlook.people.store import PENDING, REJECTED, GrowingArray, check_accepted, check_recorded

__all__ = ["Labelled", "Ledger", "Unlabelled"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Labelled:
    """Accepted people whose outcomes have come, in the order of rounds and, within, of ids.

    Attributes
    ----------
    X, group
        Features, and codes of groups.
    outcome
        1 good, 0 bad.
    propensity
        The probability with which each was accepted; NaN where that is not known, as for everybody
        of the history.
    round
        The round of the decision, 0 for the history.
    """

    X: Floats
    group: NDArray[np.intp]
    outcome: NDArray[np.int8]
    propensity: Floats
    round: NDArray[np.int32]

    def __len__(self) -> int:
        return int(self.outcome.size)

    def own(self) -> Labelled:
        """Return those of our own rounds, without the history."""
        return self.of(self.round > 0)

    def of(self, rows: NDArray[Any]) -> Labelled:
        """Return some of the rows."""
        columns = (self.X, self.group, self.outcome, self.propensity, self.round)
        return Labelled(*(column[rows] for column in columns))


@dataclass(frozen=True)
class Unlabelled:
    """People with features and groups; there is nothing else to know of them."""

    X: Floats
    group: NDArray[np.intp]
    round: NDArray[np.int32]

    def __len__(self) -> int:
        return int(self.group.size)


class Ledger:
    """Accepted people with slots for outcomes, rejected people with none, and everybody's ids."""

    def __init__(self, n_features: int) -> None:
        shared = {"X": (np.float64, (0, n_features)), "group": (np.intp, (0,))}
        own = {"outcome": (np.int8, (0,)), "propensity": (np.float64, (0,))}
        stamp = {"round": (np.int32, (0,))}
        self._accepted = _columns(shared | own | stamp)
        self._rejected = _columns(shared | stamp)
        self._index = IdIndex()

    def check_new(self, batch: Batch) -> None:
        """Raise if somebody was decided on before."""
        known = np.flatnonzero(self._index.find(batch.bits) != IdIndex.UNKNOWN)
        if known.size:
            raise InputError(
                f"{known.size} of {len(batch)} ids were decided on before, first "
                f"{batch.ids[known[0]].item()!r}; ids are unique for ever, so if this is the same "
                f"batch use its first decisions, and if a person applies again give a new id."
            )

    def record(
        self,
        batch: Batch,
        accepted: NDArray[np.bool_],
        propensity: Floats,
        round: int,
        outcome: NDArray[np.int8] | None = None,
    ) -> None:
        """Write down a round; ``outcome`` has one entry per accepted person, None if to come."""
        order = np.argsort(batch.bits, kind="stable")  # by id, not by row
        kept, left = order[accepted[order]], order[~accepted[order]]
        known = np.full(len(batch), PENDING, np.int8)
        if outcome is not None:
            known[accepted] = outcome
        place = np.full(len(batch), REJECTED, dtype=np.int64)
        place[kept] = self._accepted["group"].view().size + np.arange(kept.size)
        for store, rows in ((self._accepted, kept), (self._rejected, left)):
            store["X"].append(np.asarray(batch.X, dtype=np.float64)[rows])
            store["group"].append(batch.group[rows])
            store["round"].append(np.full(rows.size, round, np.int32))
        self._accepted["outcome"].append(known[kept])
        self._accepted["propensity"].append(propensity[kept])
        self._index.add(batch.bits, place, in_order=batch.in_order)

    def observe(
        self,
        ids: NDArray[Any],
        bits: NDArray[np.uint64],
        outcome: NDArray[np.int8],
        *,
        correcting: bool = False,
    ) -> bool:
        """Fill in outcomes, all or none, and say whether anything changed."""
        place = self._index.find(bits)
        check_accepted(ids, place)
        order = np.argsort(place, kind="stable")
        again = (np.diff(place[order]) == 0) & (np.diff(outcome[order]) != 0)
        if again.any():
            name = ids[order[np.flatnonzero(again)[0]]].item()
            raise InputError(f"outcomes contradict each other for id {name!r}; give one per id.")
        slots = self._accepted["outcome"].view()
        before = slots[place]
        check_recorded(ids, before, outcome, correcting)
        slots[place] = outcome
        return bool(np.any(before != outcome))

    def labelled(self) -> Labelled:
        """Return the accepted whose outcomes are known."""
        columns = {name: array.view() for name, array in self._accepted.items()}
        known = columns["outcome"] != PENDING
        return Labelled(
            columns["X"][known],
            columns["group"][known],
            columns["outcome"][known],
            columns["propensity"][known],
            columns["round"][known],
        )

    def rejected(self) -> Unlabelled:
        """Return everybody who was rejected."""
        return Unlabelled(*(self._rejected[name].view() for name in ("X", "group", "round")))

    def everybody(self) -> Unlabelled:
        """Return everybody ever decided on, the history included, without outcomes."""
        both = [
            np.concatenate([self._accepted[name].view(), self._rejected[name].view()])
            for name in ("X", "group", "round")
        ]
        return Unlabelled(*both)


def _columns(kinds: dict[str, tuple[Any, tuple[int, ...]]]) -> dict[str, GrowingArray]:
    return {name: GrowingArray(np.empty(shape, kind)) for name, (kind, shape) in kinds.items()}
