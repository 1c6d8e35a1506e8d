"""Curves of the good and bad weight that each cut of a ranked group accepts.

A *cut* c of a group accepts its c highest distinct scores, so rows with equal scores are accepted
together. Along its cuts a group is a curve of (G, B), the weights of the good and the bad people
accepted; utility, the FDR bound and the least selection rate are all linear in them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairchance.core.metrics import ConfusionRate
from fairchance.errors import InputError

# Constraints count as met when they are missed by no more than this (all are shares).
TOLERANCE = 1e-12

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ThresholdBounds:
    """The constraints, as shares, with :data:`TOLERANCE` already granted.

    ``max_fdr`` and ``least`` hold over all rows, or if ``per_group`` within each group. For each
    rate that is compared, ``ratio · largest − smallest ≤ difference``.
    """

    max_fdr: float
    least: float
    difference: float
    ratio: float = 1.0
    per_group: bool = False

    def relaxed(self, violation: float) -> ThresholdBounds:
        """Allow both the selection rate and the disparity to miss by ``violation``."""
        return replace(self, least=self.least - violation, difference=self.difference + violation)

    def lowest(self, rate: Any) -> Any:
        """Return the lowest rate that goes with a rate."""
        return self.ratio * rate - self.difference

    def highest(self, rate: Any) -> Any:
        """Return the highest rate that goes with a rate."""
        return (rate + self.difference) / self.ratio

    def excess(self, rates: Floats) -> Floats:
        """Return by how much rates along the first axis miss the bound, the worst along the last.

        A rate that is NaN restricts nothing; the excess is −inf if there are no others.
        """
        smallest, largest = (end.reduce(rates, initial=np.nan) for end in (np.fmin, np.fmax))
        over = self.lowest(largest) - smallest
        return np.asarray(np.where(np.isnan(over), -np.inf, over).max(axis=-1, initial=-np.inf))


@dataclass(frozen=True)
class Curve:
    """The distinct scores of a group, highest first, and the weight that each cut accepts.

    ``good``, ``bad`` and ``rate`` have one entry more than ``score``: cut 0 accepts no row.
    ``rate`` has a column for each rate that a fairness constraint compares, NaN where it has none.
    """

    score: Floats
    good: Floats
    bad: Floats
    rate: Floats

    def threshold(self, cut: int) -> float:
        """Midpoint between the lowest accepted and the next lower score.

        The lowest score itself if all rows are accepted: lower scores were never seen.
        """
        if cut == 0:
            return math.inf
        accepted = float(self.score[cut - 1])
        if cut == self.score.size:
            return accepted
        below = float(self.score[cut])
        middle = below / 2 + accepted / 2
        # Halving two adjacent floats may round down to the rejected one.
        return middle if below < middle <= accepted else accepted


class Points(NamedTuple):
    """A curve as a search sees it, each per unit weight of all rows; index = cut."""

    worth: Floats
    slack: Floats
    accepted: Floats
    rate: Floats

    def take(self, cuts: NDArray[np.intp]) -> Points:
        """Only these cuts."""
        return Points(*(column[cuts] for column in self))


def absent_points(n_rates: int) -> Points:
    """Return an absent group: a single cut, which accepts no row and has no rate."""
    return Points(np.zeros(1), np.zeros(1), np.zeros(1), np.full((1, n_rates), np.nan))


def exact_weights(weight: Floats) -> Floats:
    """Round weights to whole multiples of about 2⁻⁵² of their total, and count in those.

    Sums of them are exact in float64, hence the same in whatever order the rows come; whole
    weights stay in exact proportion.
    """
    if weight.size == 0:
        return weight
    exponent = math.frexp(float(weight.max()))[1] + math.frexp(float(weight.size))[1]
    whole: Floats = np.rint(np.ldexp(weight, 52 - exponent))
    return whole


def distinct_ends(score: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Order of the rows, highest score first, and the last place of each distinct score in it."""
    order = np.argsort(score)[::-1]
    ranked = score[order]
    last = np.append(ranked[1:] != ranked[:-1], True) if score.size else np.zeros(0, dtype=bool)
    return order, np.flatnonzero(last)


def running(weight: Floats, order: NDArray[np.intp], ends: NDArray[np.intp]) -> Floats:
    """Weight accepted at every cut, beginning with none."""
    return np.concatenate(([0.0], np.cumsum(weight[order])[ends]))


def rates_along(good: Floats, bad: Floats, compared: Sequence[ConfusionRate]) -> Floats:
    """Rates at every cut, from the weights that it accepts; the last cut accepts all."""
    rates = [rate(bad[-1] - bad, good[-1] - good, bad, good) for rate in compared]
    return np.array(rates).reshape(-1, good.size).T


def make_points(
    good: Floats, bad: Floats, rate: Floats, gains: tuple[float, float], max_fdr: float
) -> Points:
    """Points of accepted shares; the total of ``slack = max_fdr·(G + B) − B`` must be ≥ 0."""
    accepted = good + bad
    return Points(gains[0] * good + gains[1] * bad, max_fdr * accepted - bad, accepted, rate)


@dataclass(frozen=True)
class ScoredRows:
    """The rows of positive weight; sums of their weights are exact in any order."""

    score: Floats
    group: NDArray[np.intp]
    good: Floats
    bad: Floats

    @classmethod
    def of(
        cls,
        score: ArrayLike,
        outcome: ArrayLike,
        weight: ArrayLike,
        group: ArrayLike,
        n_groups: int,
    ) -> ScoredRows:
        """Check the arguments and leave out rows of weight 0."""
        s, w = np.asarray(score, dtype=np.float64), np.asarray(weight, dtype=np.float64)
        y, z = np.asarray(outcome), np.asarray(group)
        _check_rows(s, y, w, z, n_groups)
        w = exact_weights(w)
        if not w.all():
            used = np.flatnonzero(w)
            s, y, w, z = (column.take(used) for column in (s, y, w, z))
        y = y.astype(np.int8)
        return cls(s, z.astype(np.intp), w * y, w * (1 - y))

    def curve(self, g: int, compared: Sequence[ConfusionRate]) -> Curve:
        """Curve of one group, with the rates to compare."""
        at = np.flatnonzero(self.group == g)
        order, ends = distinct_ends(self.score[at])
        good, bad = (running(weight[at], order, ends) for weight in (self.good, self.bad))
        return Curve(self.score[at][order][ends], good, bad, rates_along(good, bad, compared))


def _check_rows(s: Floats, y: NDArray[Any], w: Floats, z: NDArray[Any], n_groups: int) -> None:
    if s.ndim != 1 or not s.shape == y.shape == w.shape == z.shape:
        raise InputError(
            "score, outcome, weight and group must be one-dimensional and of one length, "
            f"got shapes {s.shape}, {y.shape}, {w.shape} and {z.shape}."
        )
    if not np.isfinite(s).all():
        raise InputError(f"every score must be finite, got {s[~np.isfinite(s)][0]}.")
    if not (np.isfinite(w) & (w >= 0)).all():
        bad = w[~(np.isfinite(w) & (w >= 0))][0]
        raise InputError(f"every weight must be finite and at least 0, got {bad}.")
    if not ((y == 0) | (y == 1)).all():
        raise InputError(
            f"every outcome must be 0 (bad) or 1 (good), got {y[(y != 0) & (y != 1)][0]}; "
            "leave out rows with unknown outcomes."
        )
    if z.size and not (np.issubdtype(z.dtype, np.integer) and 0 <= z.min() <= z.max() < n_groups):
        raise InputError(f"every group must be a whole number in 0 … {n_groups - 1}.")
