"""Curves of the good and bad weight that each cut of a ranked group accepts.

A *cut* c of a group accepts its c highest distinct scores, so rows with equal scores are accepted
together. Along its cuts a group is a curve of (G, B), the weights of the good and the bad people
accepted; utility, the FDR bound and the least selection rate are all linear in them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secondlook.core.fairness import RateParity
from secondlook.errors import InputError

# Constraints count as met when they are missed by no more than this (all are shares).
TOLERANCE = 1e-12

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ThresholdBounds:
    """The constraints, as shares, with :data:`TOLERANCE` already granted.

    ``max_fdr`` and ``least`` hold over all rows, or if ``per_group`` within each group.
    """

    max_fdr: float
    least: float
    difference: float
    per_group: bool = False

    def relaxed(self, violation: float) -> ThresholdBounds:
        """Allow both the selection rate and the disparity to miss by ``violation``."""
        return replace(self, least=self.least - violation, difference=self.difference + violation)


@dataclass(frozen=True)
class Curve:
    """The distinct scores of a group, highest first, and the weight that each cut accepts.

    ``good``, ``bad`` and ``rate`` have one entry more than ``score``: cut 0 accepts no row.
    ``rate`` is the group's share in a fairness constraint, NaN if no row counts.
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


# An absent group: a single cut, which accepts no row and has no rate.
ABSENT = Points(np.zeros(1), np.zeros(1), np.zeros(1), np.full(1, np.nan))


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


def share(counted: Floats) -> Floats:
    """Rate along a curve of counted weight; NaN if no row counts."""
    total = counted[-1]
    return counted / total if total > 0 else np.full(counted.shape, np.nan)


def make_curve(score: Floats, good: Floats, bad: Floats, counted: Floats | None) -> Curve:
    """Curve of one group's rows; ``counted`` are their weights in the fairness rate, if any."""
    order, ends = distinct_ends(score)
    accepted_good, accepted_bad = running(good, order, ends), running(bad, order, ends)
    if counted is None:
        rate = np.full(accepted_good.shape, np.nan)
    else:
        rate = share(running(counted, order, ends))
    return Curve(score[order][ends], accepted_good, accepted_bad, rate)


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
    counted: Floats | None
    n_groups: int

    @classmethod
    def of(
        cls,
        score: ArrayLike,
        outcome: ArrayLike,
        weight: ArrayLike,
        group: ArrayLike,
        n_groups: int,
        fairness: RateParity | None,
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
        counted = None if fairness is None else w * fairness.counts(y)
        return cls(s, z.astype(np.intp), w * y, w * (1 - y), counted, n_groups)

    def curve(self, g: int) -> Curve:
        """Curve of one group."""
        at = np.flatnonzero(self.group == g)
        counted = None if self.counted is None else self.counted[at]
        return make_curve(self.score[at], self.good[at], self.bad[at], counted)


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
