"""Everybody ever decided on: the accepted with their slots for outcomes, the rejected as names."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.core.ordering import order_of
from secondlook.errors import InputError, UnknownIdError
from secondlook.people.ids import IdIndex, increasing, keyed_bits, round_key
from secondlook.people.intake import Batch
from secondlook.people.observed import NEVER, PENDING, ObservedRows

__all__ = [
    "REJECTED",
    "Memory",
    "check_accepted",
    "check_decided",
    "check_known",
    "check_none_rejected",
    "check_recorded",
]

REJECTED = -1  # place of somebody who has none
_FOLD = 3  # purpose of the randomness that assigns halves
_SECOND = np.uint64(1 << 63)  # from which on it is the second


class Memory:
    """Two folds of accepted people, and an index of all ids.

    Parameters
    ----------
    seed
        Seed of the keyed randomness; a person's fold is a function of it and of the id.
    hashed
        Keep the people of a round in the order of their hashed ids, as earlier versions did: some
        learners make other models of the same rows in another order.
    """

    _hashed = True  # in what earlier versions saved

    def __init__(self, seed: int, *, hashed: bool = False) -> None:
        if not hashed:
            self._hashed = False
        self._fold_key = round_key(seed, 0, _FOLD)
        self.folds = [ObservedRows(), ObservedRows()]
        self.index = IdIndex()

    def check_new(self, batch: Batch) -> None:
        """Raise if an id of a batch was decided on before."""
        known = self.index.known(batch.bits)
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
        round: int,
        outcome: NDArray[np.int8] | None = None,
    ) -> None:
        """Write down who was decided on in a round.

        ``outcome`` has one entry per accepted person; None means that all are still to come.
        """
        rows = np.flatnonzero(accepted)
        keyed = keyed_bits(batch.bits, self._fold_key, rows)
        if self._hashed or not batch.in_order:  # by id, not by row
            order = order_of(keyed if self._hashed else batch.bits.take(rows))
            rows, keyed = rows.take(order), keyed.take(order)
            outcome = None if outcome is None else outcome.take(order)
        second = keyed >= _SECOND
        most = 2 * (max(map(len, self.folds)) + rows.size)
        place: NDArray[Any] = np.full(len(batch), REJECTED, np.int32 if most < 2**31 else np.int64)
        for number, chosen in enumerate((np.flatnonzero(~second), np.flatnonzero(second))):
            mine = rows.take(chosen)
            at = self.folds[number].append(
                batch.X,
                batch.group.take(mine) if batch.tells_groups else None,
                PENDING if outcome is None else outcome.take(chosen),
                round,
                rows=mine,
            )
            place[mine] = np.arange(2 * at.start, 2 * at.stop, 2, dtype=place.dtype) + number
        self.index.add(batch.bits, place, in_order=batch.in_order)

    def fold_of(self, bits: NDArray[np.uint64]) -> NDArray[np.intp]:
        """Return the fold that people fall into if they are accepted."""
        return (keyed_bits(bits, self._fold_key) >= _SECOND).astype(np.intp)

    def observe(
        self,
        ids: NDArray[Any],
        bits: NDArray[np.uint64],
        outcome: NDArray[np.int8],
        *,
        correcting: bool = False,
    ) -> tuple[NDArray[np.intp], NDArray[np.int8]]:
        """Fill in outcomes, or correct recorded ones, all or none.

        Returns
        -------
        changed
            Which of the ids got another outcome than they had.
        before
            The outcomes that these had.
        """
        place = self.index.find(bits)
        check_accepted(ids, place)
        if not increasing(bits):
            _check_agree(ids, place, outcome)
        slots = []
        before = np.empty(outcome.size, np.int8)
        for number, fold in enumerate(self.folds):
            mine = np.flatnonzero((place & 1) == number)
            positions, told = place.take(mine) >> 1, outcome.take(mine)
            recorded = fold.column("outcome").take(positions)
            check_recorded(ids.take(mine), recorded, told, correcting)
            before[mine] = recorded
            slots.append((fold, positions, told))
        for fold, positions, told in slots:
            fold.column("outcome")[positions] = told
        changed = np.flatnonzero(before != outcome)
        return changed, before[changed]

    def withdraw(self, ids: NDArray[Any], bits: NDArray[np.uint64]) -> bool:
        """Write down that outcomes will never be known; say whether one was until now."""
        place = self.index.find(bits)
        check_accepted(ids, place)
        was_known = False
        for number, fold in enumerate(self.folds):
            outcome, positions = fold.column("outcome"), place[place % 2 == number] // 2
            was_known |= bool((outcome[positions] >= 0).any())
            outcome[positions] = NEVER
        return was_known

    def forget(self, ids: NDArray[Any], bits: NDArray[np.uint64]) -> list[NDArray[np.int64]]:
        """Take people out for good; return the new position of each old one, by fold."""
        place = self.index.find(bits)
        check_known(ids, place)
        moved = [
            fold.remove(place[(place >= 0) & (place % 2 == number)] // 2)
            for number, fold in enumerate(self.folds)
        ]
        self.index.remove(bits, moved)
        return moved

    def waiting(self, t: int, maturity: int | None) -> tuple[int, ...] | None:
        """Return the rounds before ``t`` that are neither complete nor mature."""
        if maturity is None:
            return None
        pending = [
            fold.column("round")[fold.column("outcome") == PENDING]
            for fold in self.folds
            if len(fold)
        ]
        rounds = np.unique(np.concatenate(pending)) if pending else np.empty(0, np.int64)
        return tuple(rounds[t - rounds <= maturity].tolist())

    @property
    def n_outcomes(self) -> int:
        """Number of outcomes known."""
        return sum(int(fold.known_outcomes().sum()) for fold in self.folds)


def check_accepted(ids: NDArray[Any], place: NDArray[np.int64]) -> None:
    """Raise unless everybody of whom an outcome is told was accepted."""
    check_decided(ids, place)
    check_none_rejected(ids, place == REJECTED)


def check_decided(ids: NDArray[Any], place: NDArray[np.int64]) -> None:
    """Raise unless everybody of whom an outcome is told was decided on."""
    unknown = np.flatnonzero(place == IdIndex.UNKNOWN)
    if unknown.size:
        raise UnknownIdError(
            f"{unknown.size} of {ids.size} ids were never decided on, so they can have no "
            f"outcome, first {ids[unknown[0]].item()!r}; nothing was recorded, remove or "
            f"correct them."
        )


def check_none_rejected(ids: NDArray[Any], rejected: NDArray[np.bool_]) -> None:
    """Raise if an outcome is told of somebody who was rejected."""
    if rejected.any():
        raise UnknownIdError(
            f"{int(rejected.sum())} of {ids.size} ids were rejected, first "
            f"{ids[np.argmax(rejected)].item()!r}, and outcomes are known for accepted people "
            f"only; nothing was recorded, remove them."
        )


def check_known(ids: NDArray[Any], place: NDArray[np.int64]) -> None:
    """Raise unless everybody who is to be forgotten is known."""
    unknown = np.flatnonzero(place == IdIndex.UNKNOWN)
    if unknown.size:
        raise UnknownIdError(
            f"{unknown.size} of {ids.size} ids are not known, first {ids[unknown[0]].item()!r}: "
            f"they were never decided on, or are forgotten already; nobody was forgotten, remove "
            f"them."
        )


def _check_agree(ids: NDArray[Any], place: NDArray[np.int64], outcome: NDArray[np.int8]) -> None:
    """Raise if somebody is told of twice, with different outcomes."""
    order = order_of(place.view(np.uint64))
    places, outcomes = place.take(order), outcome.take(order)
    again = (places[1:] == places[:-1]) & (outcomes[1:] != outcomes[:-1])
    if again.any():
        name = ids[order[np.flatnonzero(again)[0]]].item()
        raise InputError(f"outcomes contradict each other for id {name!r}; give one per id.")


def check_recorded(
    ids: NDArray[Any],
    recorded: NDArray[np.int8],
    outcome: NDArray[np.int8],
    correcting: bool,
) -> None:
    """Raise if a recorded outcome would change by the way, or is to be corrected too early."""
    pending = recorded == PENDING
    wrong = pending if correcting else ~pending & (recorded != outcome)
    if not wrong.any():
        return
    name = ids[np.flatnonzero(wrong)[0]].item()
    if correcting:
        raise InputError(
            f"no outcome is recorded for id {name!r}, so there is nothing to correct; nothing was "
            f"changed, tell it with observe."
        )
    raise InputError(
        f"the outcome of id {name!r} is recorded already and differs from the one given now; "
        f"nothing was changed, so check which one is right, and tell a correction with correct."
    )
