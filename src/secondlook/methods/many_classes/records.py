"""What was decided where there are many classes: one batch, and one round class by class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.core.decisions import Decisions, Round
from secondlook.methods.many_classes.decision_table import DecisionTable
from secondlook.people.intake import Batch
from secondlook.people.store import GrowingArray, PeopleStore

__all__ = ["GivenDecisions", "ManyClassDecisions", "ManyClassRound", "class_counts"]

_NOT_KNOWN = -1


@dataclass(frozen=True, repr=False, kw_only=True)
class ManyClassDecisions(Decisions):
    """The decisions on one batch; ``accepted`` are those whose outcome will be seen.

    Attributes
    ----------
    decision
        Name of the decision that each person got.
    """

    decision: NDArray[Any]

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the decisions as named columns."""
        return {"id": self.ids, "decision": self.decision} | super().columns()


@dataclass(frozen=True, kw_only=True)
class ManyClassRound(Round):
    """What happened in one round, class by class; outcomes are those that have come by now.

    Attributes
    ----------
    multiplier
        λ, the price of a mistake in this round's rule.
    decided
        How many people got each decision.
    seen
        How many outcomes of each class have come.
    error_share
        Per observed decision, the share of mistakes among those of its outcomes that have come; NaN
        if none has.
    recall
        Per class, the share of those seen whose decision the class is good for; NaN if none is
        seen. It says nothing of the rejected.
    """

    multiplier: float
    decided: dict[Any, int]
    seen: dict[Any, int]
    error_share: dict[Any, float]
    recall: dict[Any, float]

    @staticmethod
    def of(
        record: Round,
        multiplier: float,
        decided: tuple[int, ...],
        seen: NDArray[np.intp],
        table: DecisionTable,
    ) -> ManyClassRound:
        """Complete a record by a table of outcomes, a row a decision and a column a class."""
        right = seen * np.array(table.good)
        per_decision, per_class = seen.sum(axis=1), seen.sum(axis=0)
        with np.errstate(invalid="ignore"):
            errors = 1 - right.sum(axis=1) / per_decision
            recall = right.sum(axis=0) / per_class
        named = zip(table.decisions, errors.tolist(), table.observed, strict=True)
        return ManyClassRound(
            **vars(record),
            multiplier=multiplier,
            decided=dict(zip(table.decisions, decided, strict=True)),
            seen=dict(zip(table.classes, per_class.tolist(), strict=True)),
            error_share={name: share for name, share, observed in named if observed},
            recall=dict(zip(table.classes, recall.tolist(), strict=True)),
        )


class GivenDecisions:
    """The decision that each accepted person got, in the place of the store."""

    def __init__(self) -> None:
        self._folds = [GrowingArray(np.empty(0, np.int16)) for _ in range(2)]

    def record(
        self,
        people: PeopleStore,
        batch: Batch,
        accepted: NDArray[np.bool_],
        decision: NDArray[np.intp] | None,
    ) -> None:
        """Write down codes of decisions after the store has recorded a batch; None: not known."""
        place = people.find(batch.bits[accepted])
        for number, (fold, kept) in enumerate(zip(people.parts, self._folds, strict=True)):
            kept.append(np.full(len(fold) - kept.view().size, _NOT_KNOWN, np.int16))
            if decision is not None:
                mine = place % 2 == number
                kept.view()[place[mine] // 2] = decision[accepted][mine]

    def follow(self, moved: list[NDArray[np.int64]]) -> None:
        """Drop whoever has no new position; the others stay in their order."""
        self._folds = [
            GrowingArray(kept.view()[positions >= 0])
            for kept, positions in zip(self._folds, moved, strict=True)
        ]

    def outcomes(self, people: PeopleStore, shape: tuple[int, int, int]) -> NDArray[np.intp]:
        """Count the outcomes that have come by round, decision and class."""
        total = np.zeros(shape, np.intp)
        for fold, kept in zip(people.parts, self._folds, strict=True):
            total += class_counts(fold["round"], kept.view(), fold["outcome"], shape)
        return total


def class_counts(
    round: NDArray[Any],
    decision: NDArray[Any],
    outcome: NDArray[Any],
    shape: tuple[int, int, int],
) -> NDArray[np.intp]:
    """Count outcomes by round (from 1), decision and class; negative codes are left out.

    Examples
    --------
    >>> rounds, decisions, outcomes = np.array([1, 1, 2]), np.array([1, 1, 0]), np.array([0, -1, 1])
    >>> class_counts(rounds, decisions, outcomes, (2, 2, 2)).tolist()
    [[[0, 0], [1, 0]], [[0, 1], [0, 0]]]
    """
    used = (round > 0) & (decision >= 0) & (outcome >= 0)
    codes = (round[used] - 1, decision[used], outcome[used])
    at = np.ravel_multi_index(tuple(one.astype(np.intp) for one in codes), shape)
    return np.bincount(at, minlength=int(np.prod(shape))).reshape(shape)
