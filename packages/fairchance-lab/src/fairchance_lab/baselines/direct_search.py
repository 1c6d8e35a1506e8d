"""Search a linear rule of large utility under the FDR bound directly.

A logistic fit maximises likelihood. Where the log-odds are not linear, another direction accepts
more people under the same bound, because only the people near the threshold matter to it. Utility
as a function of the direction jumps and has many local optima. So the search takes steps at random
and keeps those that earn more, with shorter steps once longer ones fail, and does so from many
starts: half of them from the logistic fit, the others from a random direction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairchance.core.utility import Utility
from fairchance.learners.logistic import ConstrainedLogistic
from fairchance.learners.thresholds import OperatingPoint, shared_threshold
from fairchance.people.likelihoods import LinearLikelihood

__all__ = ["search_linear_rule"]

Floats = NDArray[np.float64]

# Many climbs cost little among few people, who also have the most local optima.
_VISITS, _LEAST_CLIMBS, _MOST_CLIMBS = 250_000, 8, 40  # rows over all climbs, and numbers of climbs
_MOST_ROWS = 50_000  # to climb on; far fewer are fitted too well, and the rule does worse on others
_FIRST_STEP, _LAST_STEP, _SHORTER = 0.5, 0.01, 0.6  # lengths, against a direction of length 1
_PATIENCE = 30  # steps that earn no more, before steps become shorter
_LEAST_SLOPE = 0.01  # of the log-odds, per standard deviation of the score


def search_linear_rule(
    X: ArrayLike,
    outcome: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    utility: Utility,
    max_fdr: float,
) -> tuple[LinearLikelihood, OperatingPoint]:
    """Return a linear rule of large utility under the bound, and its operating point.

    The rule accepts where ``likelihood.score`` is at least ``point.thresholds[0]``. The likelihood
    is a logistic fit to the outcomes along the direction found. On these rows its utility is at
    least that of a logistic fit to all features, and the bound is met as :func:`shared_threshold`
    meets it. It is the best of many local optima, and the order of the rows does not change it.

    Parameters
    ----------
    X
        Features, finite numbers.
    outcome
        1 for good and 0 for bad; both must occur.
    weight
        Weight of each row, at least 0; None means 1.
    utility
        What is maximised.
    max_fdr
        The bound, on these rows.

    Examples
    --------
    Only a high first feature makes a good outcome nearly certain; a logistic model sees the second:

    >>> from fairchance.core.utility import Revenue
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> p = np.where(X[:, 0] > 1, 0.95, 0.7 / (1 + np.exp(-2 * X[:, 1])))
    >>> good = (rng.random(1000) < p).astype(int)
    >>> task = {"utility": Revenue(200, 500), "max_fdr": 0.15}
    >>> _, point = search_linear_rule(X, good, **task)
    >>> logistic = ConstrainedLogistic().fit(X, good).decision_function(X)
    >>> rows = good, np.ones(1000), np.zeros(1000, int), 1
    >>> round(shared_threshold(logistic, *rows, **task).utility, 1), round(point.utility, 1)
    (7.6, 27.3)
    """
    rows = _Rows.of(X, outcome, weight)
    first = _fitted(rows.X, rows)
    found = _search(rows, first.coef, utility, max_fdr)
    rules = [rows.unscaled(rule) for rule in (first, _along(found, rows))]
    points = [
        shared_threshold(
            rule.score(rows.raw, rows.group),
            rows.outcome,
            rows.weight,
            rows.group,
            1,
            utility=utility,
            max_fdr=max_fdr,
        )
        for rule in rules
    ]
    best = int(points[1].utility > points[0].utility)
    return rules[best], points[best]


@dataclass(frozen=True)
class _Rows:
    """The rows of positive weight in an order of their own, with standardised features."""

    raw: Floats
    X: Floats
    outcome: NDArray[np.int8]
    weight: Floats
    group: NDArray[np.intp]
    centre: Floats
    scale: Floats

    @classmethod
    def of(cls, X: ArrayLike, outcome: ArrayLike, weight: ArrayLike | None) -> _Rows:
        raw, y = np.asarray(X, dtype=np.float64), np.asarray(outcome)
        w = np.ones(y.shape) if weight is None else np.asarray(weight, dtype=np.float64)
        # Sums of the same rows in another order differ in their last bits, which can lead a search
        # elsewhere.
        order = np.lexsort((w, y, *raw.T))
        order = order[w[order] > 0]
        raw, y, w = raw[order], y[order].astype(np.int8), w[order] / w[order].mean()
        centre = np.average(raw, axis=0, weights=w)
        scale = np.sqrt(np.average((raw - centre) ** 2, axis=0, weights=w))
        scale[scale <= 1e-12 * np.abs(centre)] = 1.0
        scale[scale == 0] = 1.0
        group = np.zeros(y.size, np.intp)
        return cls(raw, (raw - centre) / scale, y, w, group, centre, scale)

    def unscaled(self, rule: LinearLikelihood) -> LinearLikelihood:
        """Return a rule on the raw features."""
        coef = rule.coef / self.scale
        return LinearLikelihood(coef, float(rule.intercept - coef @ self.centre))

    def thinned(self, coef: Floats, most: int) -> _Rows:
        """Return at most so many rows, evenly spaced in the order of their scores."""
        n = self.outcome.size
        if n <= most:
            return self
        at = np.argsort(self.X @ coef, kind="stable")[np.arange(most) * n // most]
        return replace(
            self,
            raw=self.raw[at],
            X=self.X[at],
            outcome=self.outcome[at],
            weight=self.weight[at],
            group=self.group[at],
        )


def _search(rows: _Rows, first: Floats, utility: Utility, max_fdr: float) -> Floats:
    """Return the best direction of all climbs."""
    rng = np.random.default_rng(0)
    n, d = rows.X.shape
    climbs = int(np.clip(_VISITS // n, _LEAST_CLIMBS, _MOST_CLIMBS))
    some = rows.thinned(first, _MOST_ROWS)
    starts = rng.normal(size=(climbs, d))
    starts[::2] = first
    found = [_climb(some, start, utility, max_fdr, rng) for start in starts]
    return max(found, key=lambda direction: _earned(rows, direction, utility, max_fdr))


def _climb(
    rows: _Rows, start: Floats, utility: Utility, max_fdr: float, rng: np.random.Generator
) -> Floats:
    """Return a direction that steps at random could not improve."""
    best, earned = start, _earned(rows, start, utility, max_fdr)
    step, failed = _FIRST_STEP, 0
    while step > _LAST_STEP:
        length = float(np.linalg.norm(best)) or 1.0
        tried = best / length + step * rng.normal(size=best.size) / np.sqrt(best.size)
        worth = _earned(rows, tried, utility, max_fdr)
        if worth > earned:
            best, earned, failed = tried, worth, 0
        else:
            failed += 1
        if failed == _PATIENCE:
            step, failed = step * _SHORTER, 0
    return best


def _earned(rows: _Rows, direction: Floats, utility: Utility, max_fdr: float) -> float:
    """Return the largest utility of thresholds on a direction under the bound; 0 for none.

    It equals that of :func:`shared_threshold`, which checks its input, less that of rejecting all.
    """
    score = rows.X @ direction
    order = np.argsort(score)[::-1]
    weight, score = rows.weight[order], score[order]
    accepted, good = np.cumsum(weight), np.cumsum(weight * rows.outcome[order])
    bad = accepted - good
    worth = utility.gain_good * good + utility.gain_bad * bad
    last = np.append(score[1:] != score[:-1], True)  # equal scores go together
    allowed = last & (bad <= (max_fdr + 1e-12) * accepted)
    return float(np.max(worth, where=allowed, initial=0.0))


def _fitted(X: Floats, rows: _Rows) -> LinearLikelihood:
    """Return a logistic fit."""
    model = ConstrainedLogistic().fit(X, rows.outcome, rows.weight)
    return LinearLikelihood(model.coef_[0], float(model.intercept_[0]))


def _along(direction: Floats, rows: _Rows) -> LinearLikelihood:
    """Return the likelihood of a good outcome along a direction; it grows with the score."""
    score = rows.X @ direction
    scale = float(np.std(score)) or 1.0  # so that the penalty of the fit means the same
    fit = _fitted((score / scale)[:, None], rows)
    slope = max(float(fit.coef[0]), _LEAST_SLOPE)
    return LinearLikelihood(direction * (slope / scale), fit.intercept)
