"""Many logistic regressions on the same people at once, with weights and shares as outcomes.

Bootstrap replicates differ in their weights only, so they share their products over rows and, for
the first steps, one Hessian, that of their mean weight; where that has not been enough, each goes
on with its own. For a single regression this is Newton's method.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from scipy.special import expit

from secondlook.errors import InputError

__all__ = ["fit_logistics", "linear_scores"]

Floats = NDArray[np.float64]

_HALVINGS = 30
_SHARED_STEPS = 6


def linear_scores(X: Floats, theta: Floats) -> Floats:
    """Return P(good) under models whose last coefficient is the intercept, a column each."""
    return np.asarray(expit(X @ theta[:-1] + theta[-1]))


def fit_logistics(
    X: Floats,
    y: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    l2: float = 1.0,
    start: Floats | None = None,
    tol: float = 1e-7,
    max_steps: int = 200,
) -> Floats:
    """Minimise Σ w·logloss + l2/2·|coef|² for each column of weights; the intercept is free.

    Parameters
    ----------
    X
        Features.
    y
        Outcomes: 0, 1 or a share between, which counts as so much of a good person and the rest of
        a bad one.
    weight
        Weights, one column a regression, or one for all; None means 1.
    l2
        Strength of the penalty.
    start
        Where to begin, one column a regression; None means 0.
    tol
        Largest entry of the mean gradient at the solution.
    max_steps
        Largest number of steps; not to have come to an end by then is an error.

    Returns
    -------
    Floats
        Coefficients with the intercept last; a column a regression, one axis if weights had one.

    Examples
    --------
    >>> X = np.array([[0.0], [0.0], [1.0], [1.0]])
    >>> theta = fit_logistics(X, [0.25, 0.25, 0.75, 0.75], l2=0.0)
    >>> linear_scores(X, theta).round(6).tolist()
    [0.25, 0.25, 0.75, 0.75]
    """
    outcome = np.asarray(y, dtype=np.float64)[:, None]
    weights = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=np.float64)
    one = weights.ndim == 1
    w = weights[:, None] if one else weights
    rows = np.column_stack([X, np.ones(len(X))])
    penalty = np.append(np.full(X.shape[1], float(l2)), 0.0)[:, None]
    theta = np.zeros((rows.shape[1], w.shape[1]))
    if start is not None:
        theta += start[:, None] if start.ndim == 1 else start
    total = w.sum(axis=0)
    problem = _Problem(rows, outcome, w, penalty)
    margin = rows @ theta
    p, gradient = problem.at(margin, theta)
    for number in range(max_steps):
        away = np.abs(gradient).max(axis=0) > tol * total
        if not away.any():
            return theta[:, 0] if one else theta
        # Where nobody is uncertain any more, the ridge keeps steps finite.
        ridge = penalty[:, 0] + 1e-9 * max(1.0, float(total.mean()))
        p *= w * (1 - p)
        step = np.zeros_like(theta)
        if one or number >= _SHARED_STEPS:
            for k in np.flatnonzero(away):
                step[:, k] = _solve(rows, p[:, k], ridge, gradient[:, k])
        else:
            step[:, away] = _solve(rows, p.mean(axis=1), ridge, gradient[:, away])
        theta, margin, p, gradient = problem.along(step, theta, margin, gradient)
    raise InputError(
        f"logistic regression on {len(X)} rows did not come to an end in {max_steps} steps; scale "
        f"the features, or raise l2, which is {l2}."
    )


@dataclass(frozen=True)
class _Problem:
    """Rows with the intercept's column, outcomes, weights and penalties."""

    rows: Floats
    outcome: Floats
    weight: Floats
    penalty: Floats

    def at(self, margin: Floats, theta: Floats) -> tuple[Floats, Floats]:
        """Return likelihoods and the gradient."""
        p = np.asarray(expit(margin))
        return p, self.rows.T @ (self.weight * (p - self.outcome)) + self.penalty * theta

    def along(
        self, step: Floats, theta: Floats, margin: Floats, gradient: Floats
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Go along a step, for each regression as far as its gradient becomes smaller.

        Along a Newton step the length of a convex function's gradient falls at first, so some
        length will do.
        """
        size = (gradient**2).sum(axis=0)
        along = self.rows @ step
        length = np.ones(theta.shape[1])
        for _ in range(_HALVINGS):
            tried, moved = theta - length * step, margin - length * along
            p, after = self.at(moved, tried)
            # The last steps may be too small to tell.
            high = (after**2).sum(axis=0) > size * (1 - 1e-4 * length) + 1e-30
            high &= (step != 0).any(axis=0)
            if not high.any():
                break
            length = np.where(high, length / 2, length)
        return tried, moved, p, after


def _solve(rows: Floats, curve: Floats, ridge: Floats, gradient: Floats) -> Floats:
    hessian = (rows * curve[:, None]).T @ rows
    hessian[np.diag_indices_from(hessian)] += ridge
    return np.asarray(linalg.solve(hessian, gradient, assume_a="pos"))
