"""Many logistic regressions on the same people at once, with weights and shares as outcomes.

Bootstrap replicates differ in their weights only, so they share their products over rows and, for
the first steps, one Hessian, that of their mean weight; where that has not been enough, each goes
on with its own. For a single regression this is Newton's method.
"""

from __future__ import annotations

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
    margin = rows @ theta
    loss = _loss(margin, theta, outcome, w, penalty)
    for number in range(max_steps):
        p = expit(margin)
        gradient = rows.T @ (w * (p - outcome)) + penalty * theta
        away = np.abs(gradient).max(axis=0) > tol * total
        if not away.any():
            return theta[:, 0] if one else theta
        # Where nobody is uncertain any more, the ridge keeps steps finite.
        ridge = penalty[:, 0] + 1e-9 * max(1.0, float(total.mean()))
        curve = w * p * (1 - p)
        step = np.zeros_like(theta)
        if one or number >= _SHARED_STEPS:
            for k in np.flatnonzero(away):
                step[:, k] = _solve(rows, curve[:, k], ridge, gradient[:, k])
        else:
            step[:, away] = _solve(rows, curve.mean(axis=1), ridge, gradient[:, away])
        theta, margin, loss = _descend(
            rows, theta, margin, loss, step, gradient, (outcome, w, penalty)
        )
    raise InputError(
        f"logistic regression on {len(X)} rows did not come to an end in {max_steps} steps; scale "
        f"the features, or raise l2, which is {l2}."
    )


def _solve(rows: Floats, curve: Floats, ridge: Floats, gradient: Floats) -> Floats:
    hessian = (rows * curve[:, None]).T @ rows
    hessian[np.diag_indices_from(hessian)] += ridge
    return np.asarray(linalg.solve(hessian, gradient, assume_a="pos"))


def _loss(margin: Floats, theta: Floats, y: Floats, w: Floats, penalty: Floats) -> Floats:
    losses = np.logaddexp(0.0, margin) - y * margin
    return np.asarray((w * losses).sum(axis=0) + 0.5 * (penalty * theta**2).sum(axis=0))


def _descend(
    rows: Floats,
    theta: Floats,
    margin: Floats,
    loss: Floats,
    step: Floats,
    gradient: Floats,
    problem: tuple[Floats, Floats, Floats],
) -> tuple[Floats, Floats, Floats]:
    """Go along the step, for each regression as far as its loss goes down enough."""
    slope = (step * gradient).sum(axis=0)
    along = rows @ step
    length = np.ones(theta.shape[1])
    for _ in range(_HALVINGS):
        tried = theta - length * step
        after = _loss(margin - length * along, tried, *problem)
        # Rounding of a large sum must not stop the last, tiny steps.
        high = after > loss - 1e-4 * length * slope + 1e-12 * np.abs(loss)
        if not high.any():
            break
        length = np.where(high, length / 2, length)
    return tried, margin - length * along, after
