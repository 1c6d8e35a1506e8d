"""Scores in [0, 1] as Beta distributions: fitting one, and mending it from part of its range."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaincinv, btdtria, polygamma, psi

from secondlook.errors import InputError

__all__ = ["ScoreDensity", "weighted_quantile"]

Floats = NDArray[np.float64]

_EDGE = 1e-6  # scores are kept so far from 0 and 1
_SHAPES = (1e-2, 1e3)
_STEPS = 100


@dataclass(frozen=True)
class ScoreDensity:
    """A Beta(a, b) density of scores of which one quantile is watched.

    Attributes
    ----------
    a, b
        Its shape; a is learned, b stays.
    level
        τ: the watched quantile ω is the score below which a share τ lies.

    Examples
    --------
    >>> density = ScoreDensity(2.0, 2.0, level=0.5)
    >>> round(float(density.reference), 6), round(float(density.cdf(0.25)), 6)
    (0.5, 0.15625)
    """

    a: float
    b: float
    level: float

    @staticmethod
    def fit(scores: Floats, level: float) -> ScoreDensity:
        """Return the density of largest likelihood, by Newton's method."""
        if scores.size < 2 or np.ptp(scores) == 0:
            raise InputError(
                f"a density of scores needs at least two different ones, got {scores.size}; the "
                f"history needs more accepted people of each outcome."
            )
        s = np.clip(scores, _EDGE, 1 - _EDGE)
        target = np.array([np.log(s).mean(), np.log1p(-s).mean()])
        shape = _by_moments(s)
        for _ in range(_STEPS):
            gradient = target - psi(shape) + psi(shape.sum())
            curve = np.diag(polygamma(1, shape)) - polygamma(1, shape.sum())
            step = np.linalg.solve(curve, gradient)
            shape = np.clip(shape + step, shape / 4, shape * 4)  # shapes stay positive
            if np.abs(step).max() < 1e-10 * shape.max():
                break
        a, b = np.clip(shape, *_SHAPES)
        return ScoreDensity(float(a), float(b), level)

    @property
    def reference(self) -> float:
        """ω: the score below which a share τ lies."""
        return float(self.quantile(self.level))

    def cdf(self, score: ArrayLike) -> Floats:
        """Return the share below a score."""
        return np.asarray(betainc(self.a, self.b, np.clip(score, 0, 1)))

    def quantile(self, share: ArrayLike) -> Floats:
        """Return the score below which a share lies; shares beyond [0, 1] are the ends."""
        return np.asarray(betaincinv(self.a, self.b, np.clip(share, 0, 1)))

    def with_reference(self, score: float) -> ScoreDensity:
        """Return the density with the same b whose watched quantile is this score."""
        a = btdtria(self.level, self.b, np.clip(score, _EDGE, 1 - _EDGE))
        return replace(self, a=float(np.clip(a, *_SHAPES)))

    def mended(self, scores: Floats, weight: Floats, above: float) -> ScoreDensity:
        """Return what scores from ``above`` on say of the watched quantile.

        Within what is left of the density there, ω is the quantile 1 − (1−τ)/(1−F(above)). Where it
        is not within, these scores say nothing of it, and the density stays.
        """
        seen = scores >= above
        left = 1 - float(self.cdf(above))
        inside = 1 - (1 - self.level) / left if left > 0 else 0.0
        if not seen.any() or not 0 < inside < 1:
            return self
        return self.with_reference(weighted_quantile(scores[seen], weight[seen], inside))


def weighted_quantile(scores: Floats, weight: Floats, share: float) -> float:
    """Return the smallest score below or at which at least a share of the weight lies.

    Examples
    --------
    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0]), 0.5)
    2.0
    """
    order = np.argsort(scores, kind="stable")
    reached = np.cumsum(weight[order])
    place = np.searchsorted(reached, share * reached[-1] * (1 - 1e-12))
    return float(scores[order[min(int(place), scores.size - 1)]])


def _by_moments(s: Floats) -> Floats:
    mean, variance = s.mean(), s.var()
    return np.asarray(np.array([mean, 1 - mean]) * max(mean * (1 - mean) / variance - 1, 0.1))
