"""Group constraints on a decision rule, as objects: a new constraint is a new class.

A constraint compares one or more rates of all groups: each is the weight of some kinds of decisions
over the weight of more kinds (:class:`~fairchance.core.metrics.ConfusionRate`), where a
decision is 0 or 1, or a likelihood in the smooth version. It bounds either the largest minus the
smallest rate of a group (``difference``) or the smallest over the largest (``ratio``). With
several protected attributes side by side, groups are the levels of each attribute in turn, and
the bound holds for every attribute. A group without a rate, such as the FDR of a group in which no
one is accepted, is left out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from fairchance.core.metrics import (
    FALSE_DISCOVERY_RATE,
    FALSE_OMISSION_RATE,
    FALSE_POSITIVE_RATE,
    SELECTION_RATE,
    TRUE_POSITIVE_RATE,
    ConfusionRate,
    difference,
    ratio,
)
from fairchance.core.saved import saved
from fairchance.errors import InputError

__all__ = [
    "EqualizedOdds",
    "FalseDiscoveryRateParity",
    "FalseOmissionRateParity",
    "FalsePositiveRateParity",
    "RateParity",
    "SelectionRateParity",
    "TruePositiveRateParity",
]

_DEFAULT = 0.05


@dataclass(frozen=True)
class RateParity(ABC):
    """Similar rates in all groups.

    Parameters
    ----------
    difference
        Bound on the largest minus the smallest rate of a group, in [0, 1]; 0.05 if neither bound is
        given.
    ratio
        Bound on the smallest over the largest rate of a group, in (0, 1], instead of a difference.
    attributes
        Per protected attribute, the level of each group; empty means that the groups themselves
        are compared. A classifier with ``attributes="side_by_side"`` fills it in at ``fit``.
    """

    difference: float | None = None
    ratio: float | None = field(default=None, kw_only=True)
    attributes: tuple[tuple[int, ...], ...] = field(default=(), kw_only=True, repr=False)

    def __post_init__(self) -> None:
        if self.difference is not None and self.ratio is not None:
            raise InputError(
                f"a constraint bounds either a difference or a ratio of rates, got "
                f"difference={self.difference} and ratio={self.ratio}; leave one out."
            )
        if self.ratio is not None and not 0 < self.ratio <= 1:
            raise InputError(
                f"ratio bounds the smallest over the largest rate and must be in (0, 1], "
                f"got {self.ratio}."
            )
        if self.difference is None and self.ratio is None:
            object.__setattr__(self, "difference", _DEFAULT)
        if self.difference is not None and not 0 <= self.difference <= 1:
            raise InputError(
                f"difference bounds a gap between two rates and must be in [0, 1], "
                f"got {self.difference}."
            )

    @property
    @abstractmethod
    def compared(self) -> tuple[ConfusionRate, ...]:
        """The rates that are compared; the bound holds for each. A class attribute will do."""

    @property
    def bound(self) -> tuple[float, float]:
        """The numbers r and d such that the constraint is r · largest − smallest ≤ d.

        Examples
        --------
        >>> SelectionRateParity(0.1).bound, SelectionRateParity(ratio=0.8).bound
        ((1.0, 0.1), (0.8, 0.0))
        """
        return (1.0, self.difference or 0.0) if self.ratio is None else (self.ratio, 0.0)

    @property
    def largest_disparity(self) -> float:
        """The bound on :meth:`spread`."""
        factor, apart = self.bound
        return 1 - factor + apart

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
        """Return the largest :meth:`spread` between the levels of one attribute."""
        return max(
            self.spread(self.rates(decisions, outcomes, weight, level[group], int(level.max()) + 1))
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
        """Return each compared rate (a row) of each group; NaN if its whole has no weight."""
        kinds = [
            np.bincount(group, weight * d * (outcomes == y), n_groups)
            for d in (1 - decisions, decisions)
            for y in (0, 1)
        ]
        return np.array([rate(*kinds) for rate in self.compared])

    def spread(self, rates: NDArray[np.float64]) -> float:
        """Return the disparity of rates along the last axis, the largest if there are several rows.

        This is the largest minus the smallest; as a share of the largest if a ratio is bounded. It
        is 0 with fewer than two rates.

        Examples
        --------
        >>> rates = np.array([0.5, 0.4, np.nan])
        >>> [round(SelectionRateParity(**b).spread(rates), 3) for b in ({}, {"ratio": 0.9})]
        [0.1, 0.2]
        """
        found = difference(rates) if self.ratio is None else 1 - ratio(rates)
        return float(np.max(np.nan_to_num(found), initial=0.0))


@saved
class SelectionRateParity(RateParity):
    """Demographic parity: groups are accepted at similar rates (the paper's experiments).

    Examples
    --------
    >>> accepted, good = np.array([1.0, 1, 0, 1, 0, 0]), np.array([1, 0, 1, 1, 1, 0])
    >>> group, one = np.array([0, 0, 0, 1, 1, 1]), np.ones(6)
    >>> SelectionRateParity().rates(accepted, good, one, group, n_groups=2).round(2).tolist()
    [[0.67, 0.33]]
    """

    compared = (SELECTION_RATE,)


@saved
class TruePositiveRateParity(RateParity):
    """Equal opportunity: good applicants of each group are accepted at similar rates.

    Examples
    --------
    >>> accepted, good = np.array([1.0, 1, 0, 1, 0, 0]), np.array([1, 0, 1, 1, 1, 0])
    >>> group, one = np.array([0, 0, 0, 1, 1, 1]), np.ones(6)
    >>> TruePositiveRateParity().rates(accepted, good, one, group, n_groups=2).round(2).tolist()
    [[0.5, 0.5]]
    """

    compared = (TRUE_POSITIVE_RATE,)


@saved
class FalsePositiveRateParity(RateParity):
    """Bad applicants of each group are accepted at similar rates.

    Examples
    --------
    >>> accepted, good = np.array([1.0, 1, 0, 1, 0, 0]), np.array([1, 0, 1, 1, 1, 0])
    >>> group, one = np.array([0, 0, 0, 1, 1, 1]), np.ones(6)
    >>> FalsePositiveRateParity().rates(accepted, good, one, group, n_groups=2).round(2).tolist()
    [[1.0, 0.0]]
    """

    compared = (FALSE_POSITIVE_RATE,)


@saved
class EqualizedOdds(RateParity):
    """Good applicants of each group are accepted at similar rates, and so are bad ones.

    Examples
    --------
    >>> accepted, good = np.array([1.0, 1, 0, 1, 0, 0]), np.array([1, 0, 1, 1, 1, 0])
    >>> group, one = np.array([0, 0, 0, 1, 1, 1]), np.ones(6)
    >>> EqualizedOdds().rates(accepted, good, one, group, n_groups=2).round(2).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """

    compared = (TRUE_POSITIVE_RATE, FALSE_POSITIVE_RATE)


@saved
class FalseDiscoveryRateParity(RateParity):
    """Predictive parity: shares of bad among the accepted are similar.

    A group in which no one is accepted has no such share and is not compared.

    Examples
    --------
    >>> accepted, good = np.array([1.0, 1, 0, 1, 0, 0]), np.array([1, 0, 1, 1, 1, 0])
    >>> group, one = np.array([0, 0, 0, 1, 1, 1]), np.ones(6)
    >>> FalseDiscoveryRateParity().rates(accepted, good, one, group, n_groups=2).round(2).tolist()
    [[0.5, 0.0]]
    """

    compared = (FALSE_DISCOVERY_RATE,)


@saved
class FalseOmissionRateParity(RateParity):
    """Shares of good among the rejected are similar.

    A group in which no one is rejected has no such share and is not compared.

    Examples
    --------
    >>> accepted, good = np.array([1.0, 1, 0, 1, 0, 0]), np.array([1, 0, 1, 1, 1, 0])
    >>> group, one = np.array([0, 0, 0, 1, 1, 1]), np.ones(6)
    >>> FalseOmissionRateParity().rates(accepted, good, one, group, n_groups=2).round(2).tolist()
    [[1.0, 0.5]]
    """

    compared = (FALSE_OMISSION_RATE,)
