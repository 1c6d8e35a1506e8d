"""Rates of decisions once outcomes are known, and how far those of groups are apart.

A log under partial feedback shows the outcomes of the accepted only. The selection rate and the
false discovery rate follow from it at once; the other rates need the outcomes of the rejected, and
the learners estimate them from the accepted with the weights η_w.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

__all__ = [
    "FALSE_DISCOVERY_RATE",
    "FALSE_OMISSION_RATE",
    "FALSE_POSITIVE_RATE",
    "RATES",
    "SELECTION_RATE",
    "TRUE_POSITIVE_RATE",
    "ConfusionRate",
    "difference",
    "exact_interval",
    "ratio",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ConfusionRate:
    """Share of some of the four kinds of decisions: rejected or accepted, bad or good.

    Parameters
    ----------
    name
        The rate's name, as that of an attribute.
    part, whole
        Whether the rejected bad, the rejected good, the accepted bad and the accepted good count,
        1 or 0 each, as numerator and as denominator; this is the order of γ.

    Examples
    --------
    >>> float(FALSE_DISCOVERY_RATE(5, 2, 1, 3))  # 1 bad among 4 accepted
    0.25
    """

    name: str
    part: tuple[int, int, int, int]
    whole: tuple[int, int, int, int]

    def __call__(
        self,
        rejected_bad: ArrayLike,
        rejected_good: ArrayLike,
        accepted_bad: ArrayLike,
        accepted_good: ArrayLike,
    ) -> Floats:
        """Return the rate from the number or weight of each kind; NaN if the whole is 0."""
        kinds = rejected_bad, rejected_good, accepted_bad, accepted_good
        part, whole = (
            np.asarray(
                sum(np.asarray(kind, np.float64) for kind in itertools.compress(kinds, used))
            )
            for used in (self.part, self.whole)
        )
        out = np.full(whole.shape, np.nan)
        return np.asarray(np.divide(part, whole, out=out, where=whole > 0))

    @property
    def is_of_decided(self) -> bool:
        """Whether decisions change the whole, so that the rate is not linear in them."""
        return self.whole[:2] != self.whole[2:]


SELECTION_RATE = ConfusionRate("selection_rate", (0, 0, 1, 1), (1, 1, 1, 1))
TRUE_POSITIVE_RATE = ConfusionRate("true_positive_rate", (0, 0, 0, 1), (0, 1, 0, 1))
FALSE_POSITIVE_RATE = ConfusionRate("false_positive_rate", (0, 0, 1, 0), (1, 0, 1, 0))
FALSE_DISCOVERY_RATE = ConfusionRate("false_discovery_rate", (0, 0, 1, 0), (0, 0, 1, 1))
FALSE_OMISSION_RATE = ConfusionRate("false_omission_rate", (0, 1, 0, 0), (1, 1, 0, 0))
RATES = (
    SELECTION_RATE,
    TRUE_POSITIVE_RATE,
    FALSE_POSITIVE_RATE,
    FALSE_DISCOVERY_RATE,
    FALSE_OMISSION_RATE,
)


def exact_interval(bad: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the exact confidence interval of a share (Clopper and Pearson).

    At its lower end ``bad`` or more, and at its upper end ``bad`` or fewer of ``n`` have the
    probability (1 − ``confidence``) / 2.

    Examples
    --------
    >>> [round(end, 3) for end in exact_interval(3, 40)]
    [0.016, 0.204]
    """
    tail = (1 - confidence) / 2
    low = betaincinv(bad, n - bad + 1, tail) if bad > 0 else 0.0
    high = betaincinv(bad + 1, n - bad, 1 - tail) if bad < n else 1.0
    return float(low), float(high)


def difference(rates: ArrayLike) -> Floats:
    """Return the largest minus the smallest rate along the last axis, as fairlearn does.

    Rates that are NaN are left out; with fewer than two others the result is NaN.

    Examples
    --------
    >>> float(difference([0.5, 0.8, np.nan])), float(ratio([0.5, 0.8, np.nan]))
    (0.30000000000000004, 0.625)
    """
    smallest, largest = _ends(rates)
    return largest - smallest


def ratio(rates: ArrayLike) -> Floats:
    """Return the smallest over the largest rate along the last axis, as fairlearn does.

    Rates that are NaN are left out; with fewer than two others, or if all are 0, the result is NaN.
    """
    smallest, largest = _ends(rates)
    out = np.full(largest.shape, np.nan)
    return np.asarray(np.divide(smallest, largest, out=out, where=largest > 0))


def _ends(rates: ArrayLike) -> tuple[Floats, Floats]:
    """Return the smallest and the largest known rate along the last axis; NaN if not comparable."""
    rates = np.asarray(rates, dtype=np.float64)
    alone = (~np.isnan(rates)).sum(axis=-1) < 2
    low, high = (end.reduce(rates, axis=-1, initial=np.nan) for end in (np.fmin, np.fmax))
    return np.where(alone, np.nan, low), np.where(alone, np.nan, high)
