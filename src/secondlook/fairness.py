"""Group constraints on a decision rule, as objects: a new constraint is a new class.

A rate of group z is ``Σ w·d·m·1{z} / Σ w·m·1{z}``: ``d`` is the decision (0/1, or a likelihood in
the smooth version), ``w`` a weight and ``m`` says who counts in it. A constraint bounds the largest
difference of that rate between any two groups; subclasses say who counts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from secondlook.errors import InputError

__all__ = ["RateParity", "SelectionRateParity", "TruePositiveRateParity"]


@dataclass(frozen=True)
class RateParity(ABC):
    """Largest minus smallest group rate is at most ``difference``.

    Parameters
    ----------
    difference
        The bound, in [0, 1].
    """

    difference: float = 0.05

    def __post_init__(self) -> None:
        if not 0 <= self.difference <= 1:
            raise InputError(
                f"difference bounds a gap between two rates and must be in [0, 1], "
                f"got {self.difference}."
            )

    @abstractmethod
    def counts(self, outcomes: NDArray[np.int8]) -> NDArray[np.bool_]:
        """Whose decisions enter the rate, given everybody's outcome (1 = good)."""

    def rates(
        self,
        decisions: NDArray[np.float64],
        outcomes: NDArray[np.int8],
        weight: NDArray[np.float64],
        group: NDArray[np.intp],
        n_groups: int,
    ) -> NDArray[np.float64]:
        """Rate of each group; NaN where nobody counts."""
        counted = weight * self.counts(outcomes)
        total = np.bincount(group, counted, n_groups)
        chosen = np.bincount(group, counted * decisions, n_groups)
        rates = np.full(n_groups, np.nan)
        np.divide(chosen, total, out=rates, where=total > 0)
        return rates


def disparity(rates: NDArray[np.float64]) -> float:
    """Largest minus smallest rate over the groups that have one; 0 with fewer than two."""
    known = rates[~np.isnan(rates)]
    return float(np.ptp(known)) if known.size > 1 else 0.0


class SelectionRateParity(RateParity):
    """Demographic parity: groups are accepted at similar rates (the paper's experiments).

    Examples
    --------
    >>> SelectionRateParity(0.05).counts(np.array([0, 1], dtype=np.int8)).tolist()
    [True, True]
    """

    def counts(self, outcomes: NDArray[np.int8]) -> NDArray[np.bool_]:
        """Everybody counts."""
        return np.ones(outcomes.shape, dtype=np.bool_)


class TruePositiveRateParity(RateParity):
    """Equal opportunity: the good people of each group are accepted at similar rates.

    Examples
    --------
    >>> TruePositiveRateParity(0.05).counts(np.array([0, 1], dtype=np.int8)).tolist()
    [False, True]
    """

    def counts(self, outcomes: NDArray[np.int8]) -> NDArray[np.bool_]:
        """Only good people count."""
        return np.asarray(outcomes == 1)
