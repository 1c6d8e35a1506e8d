"""Group constraints on a decision rule, as objects: a new constraint is a new class.

A rate of group z is ``Σ w·d·m·1{z} / Σ w·m·1{z}``: ``d`` is the decision (0/1, or a likelihood in
the smooth version), ``w`` a weight and ``m`` is 1 for rows that count. A constraint bounds the
largest difference of that rate between any two groups; subclasses define which rows count. With
several protected attributes side by side, z runs over the levels of each attribute in turn, and the
bound holds for every attribute.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from secondlook.core.saved import saved
from secondlook.errors import InputError

__all__ = ["RateParity", "SelectionRateParity", "TruePositiveRateParity"]


@dataclass(frozen=True)
class RateParity(ABC):
    """Largest minus smallest group rate is at most ``difference``.

    Parameters
    ----------
    difference
        The bound, in [0, 1].
    attributes
        Per protected attribute, the level of each group; empty means that the groups themselves
        are compared. A classifier with ``attributes="side_by_side"`` fills it in at ``fit``.
    """

    difference: float = 0.05
    attributes: tuple[tuple[int, ...], ...] = field(default=(), kw_only=True, repr=False)

    def __post_init__(self) -> None:
        if not 0 <= self.difference <= 1:
            raise InputError(
                f"difference bounds a gap between two rates and must be in [0, 1], "
                f"got {self.difference}."
            )

    @abstractmethod
    def counts(self, outcomes: NDArray[np.int8]) -> NDArray[np.bool_]:
        """Return which rows count in the rate, given their outcomes (1 = good)."""

    def over(self, attributes: tuple[tuple[int, ...], ...]) -> Self:
        """Return the same bound over each of several attributes.

        Examples
        --------
        >>> sexes, ages = (0, 0, 1, 1), (0, 1, 0, 1)  # of four groups
        >>> SelectionRateParity(0.1).over((sexes, ages)).levels(4)[1].tolist()
        [0, 1, 0, 1]
        """
        return replace(self, attributes=attributes)

    def levels(self, n_groups: int) -> tuple[NDArray[np.intp], ...]:
        """Return what is compared: per attribute, the level of each group."""
        if not self.attributes:
            return (np.arange(n_groups),)
        return tuple(np.array(levels, dtype=np.intp) for levels in self.attributes)

    def disparity(
        self,
        decisions: NDArray[np.float64],
        outcomes: NDArray[np.int8],
        weight: NDArray[np.float64],
        group: NDArray[np.intp],
        n_groups: int,
    ) -> float:
        """Return the largest difference between two levels of one attribute."""
        return max(
            disparity(self.rates(decisions, outcomes, weight, level[group], int(level.max()) + 1))
            for level in self.levels(n_groups)
        )

    def rates(
        self,
        decisions: NDArray[np.float64],
        outcomes: NDArray[np.int8],
        weight: NDArray[np.float64],
        group: NDArray[np.intp],
        n_groups: int,
    ) -> NDArray[np.float64]:
        """Return the rate of each group; NaN if no row counts."""
        counted = weight * self.counts(outcomes)
        total = np.bincount(group, counted, n_groups)
        chosen = np.bincount(group, counted * decisions, n_groups)
        rates = np.full(n_groups, np.nan)
        np.divide(chosen, total, out=rates, where=total > 0)
        return rates


def disparity(rates: NDArray[np.float64]) -> float:
    """Return the largest minus the smallest rate; 0 with fewer than two rates."""
    known = rates[~np.isnan(rates)]
    return float(np.ptp(known)) if known.size > 1 else 0.0


@saved
class SelectionRateParity(RateParity):
    """Demographic parity: groups are accepted at similar rates (the paper's experiments).

    Examples
    --------
    >>> SelectionRateParity(0.05).counts(np.array([0, 1], dtype=np.int8)).tolist()
    [True, True]
    """

    def counts(self, outcomes: NDArray[np.int8]) -> NDArray[np.bool_]:
        """Return that all rows count."""
        return np.ones(outcomes.shape, dtype=np.bool_)


@saved
class TruePositiveRateParity(RateParity):
    """Equal opportunity: good applicants of each group are accepted at similar rates.

    Examples
    --------
    >>> TruePositiveRateParity(0.05).counts(np.array([0, 1], dtype=np.int8)).tolist()
    [False, True]
    """

    def counts(self, outcomes: NDArray[np.int8]) -> NDArray[np.bool_]:
        """Return that rows with good outcomes count."""
        return np.asarray(outcomes == 1)
