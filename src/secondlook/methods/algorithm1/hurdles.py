"""Whose score reaches a cut, round by round.

Of a linear model that needs no score: σ(2h) reaches c where h reaches artanh(2c − 1). Half log-odds
in single precision settle that for nearly everybody, with a proven bound on their error; the others
are scored in full.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Hurdles", "LogOddsHurdles", "per_person_table"]

Floats = NDArray[np.floating]
Groups = NDArray[np.intp]

_EPS = float(np.finfo(np.float32).eps)
_HUGE = 1e30  # beyond it single precision might overflow
_WIDEST = 0.1  # half log-odds over which a score is as good as linear


def per_person_table(per_group: Floats, group: Groups) -> Floats:
    """Spread a table (group, round) over people; one row for all is left as it is."""
    return per_group if per_group.shape[0] == 1 else per_group[group]


@dataclass(frozen=True)
class Hurdles:
    """In each round a likelihood, and the score from which it accepts.

    Attributes
    ----------
    likelihoods
        Position of each round's likelihood.
    cuts
        Table (group, round), with one row for all groups if no round tells them apart.
    log_odds
        The same in half log-odds, if all likelihoods are linear.
    """

    likelihoods: NDArray[np.intp]
    cuts: Floats
    log_odds: LogOddsHurdles | None = None

    def reached_by(self, score: Floats, group: Groups) -> NDArray[np.bool_]:
        """Say who reaches each, with a row a round, of scores with a column a round."""
        return np.asarray(score >= per_person_table(self.cuts, group)).T


@dataclass(frozen=True)
class LogOddsHurdles:
    """Cuts of half log-odds without their intercepts, with a row a round.

    Attributes
    ----------
    coef
        Halved coefficients in single precision, (round, feature).
    steps
        What rounding may do to a product, as a multiple of |x|, (round, feature).
    low, high
        (round, group): below which the score surely misses its cut, and from which it surely
        reaches it, were it not for the rounding of products.
    """

    coef: NDArray[np.float32]
    steps: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @staticmethod
    def of(half_coef: Floats, half_intercept: Floats, cuts: Floats) -> LogOddsHurdles:
        """Return the cuts of scores, (group, round), for linear models with a column a round."""
        low, high = _in_log_odds(cuts.T, half_intercept[:, None])
        with np.errstate(over="ignore"):
            coef = half_coef.T.astype(np.float32)
        # A sum of d products of rounded numbers, in single precision, and maybe again in full.
        steps = np.abs(half_coef.T).astype(np.float64) * (2 * half_coef.shape[0] + 8) * _EPS
        return LogOddsHurdles(coef, steps, low, high)

    def reached(self, X: Floats, group: Groups) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
        """Say who reaches each, with a row a round, and of which people that is not certain."""
        with np.errstate(over="ignore", invalid="ignore"):
            features = X.T.astype(np.float32, order="C")
            largest = np.abs(features).max(axis=1).astype(np.float64)
            error = self.steps @ largest
        if not max(error.max(), largest.max()) < _HUGE:
            return np.zeros((error.size, X.shape[0]), np.bool_), np.arange(X.shape[0])
        half, error = self.coef @ features, error[:, None]
        reached = half >= _per_person((self.high + error).astype(np.float32), group)
        unsure = half >= _per_person((self.low - error).astype(np.float32), group)
        unsure ^= reached
        return reached, np.flatnonzero(unsure.any(axis=0))


def _in_log_odds(
    cut: Floats, half_intercept: Floats
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a range of half log-odds in which a score may or may not reach its cut."""
    s, eps = cut.astype(np.float64), float(np.finfo(cut.dtype).eps)
    with np.errstate(invalid="ignore", divide="ignore"):
        at = np.arctanh(2 * np.clip(s, 0, 1) - 1) - half_intercept
        # ds = 2·s·(1 − s)·dh, and a score is within a few of its last bits.
        blur = 16 * eps / (s * (1 - s)) + _EPS * np.abs(at)
        low, high = at - blur, at + blur
    blurred = ~(blur < _WIDEST)
    low[blurred], high[blurred] = -np.inf, np.inf
    everybody = (s <= 0) | (half_intercept == np.inf) & (s < 1)
    nobody = ~(s <= 1) | (half_intercept == -np.inf) & (s > 0)
    low[everybody] = high[everybody] = -np.inf
    low[nobody] = high[nobody] = np.inf
    return low, high


def _per_person(per_group: Floats, group: Groups) -> Floats:
    """Spread a table (round, group) over people; one column for all is left as it is."""
    return per_group if per_group.shape[1] == 1 else per_group[:, group]
