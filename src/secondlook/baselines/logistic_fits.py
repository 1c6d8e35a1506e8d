"""Many weighted logistic fits to the same rows at once: bootstraps, and models with a few rows more.

All fits share one Cholesky factor, that of the Hessian of their mean, and every step is two matrix
products. How far a fit is from its minimum is told by its own gradient, so sharing costs steps and
never accuracy.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from secondlook.errors import InputError, LearningWarning

__all__ = ["curvature", "fit_logistic", "fit_many", "with_intercept"]

Floats = NDArray[np.float64]

_MOST_STEPS = 200
_OVERSHOT = 0.9  # share of the slope that a step may turn round


def with_intercept(X: Floats) -> Floats:
    """Return the features behind a column of ones."""
    return np.column_stack([np.ones(len(X)), X])


def curvature(design: Floats, weight: Floats, model: Floats, l2: float) -> Floats:
    """Return the Hessian of ``Σ w·logloss + l2/2·|coef|²`` at a model; the intercept is free."""
    p = expit(design @ model)
    hessian = (design * (weight * p * (1 - p))[:, None]).T @ design
    hessian[np.diag_indices_from(hessian)] += _penalty(design.shape[1], l2) + 1e-9
    return np.asarray(hessian)


def fit_logistic(design: Floats, outcome: NDArray[np.int8], *, l2: float = 1.0) -> Floats:
    """Return intercept and coefficients of one logistic fit.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 1))
    >>> y = (rng.random(500) < expit(1 + 2 * X[:, 0])).astype(np.int8)
    >>> fit_logistic(with_intercept(X), y).round(1).tolist()
    [0.9, 2.0]
    """
    start = np.zeros((design.shape[1], 1))
    return fit_many(design, outcome, np.ones((len(design), 1)), start, l2=l2, tol=1e-10)[:, 0]


def fit_many(
    design: Floats,
    outcome: NDArray[np.int8],
    weight: Floats,
    start: Floats,
    *,
    l2: float = 1.0,
    tol: float = 1e-3,
) -> Floats:
    """Return the minimisers of ``Σ_i w_ik·logloss_i + l2/2·|coef|²``, a column for each k.

    Parameters
    ----------
    design
        Rows with a first column of ones, whose coefficient is not penalised.
    outcome
        1 good, 0 bad, a fraction for something in between.
    weight
        Weight of row i in fit k, at least 0.
    start
        Where each fit starts, a column each.
    l2
        Strength of the penalty, above 0.
    tol
        Largest squared Newton decrement, gradientᵀ·H⁻¹·gradient: the squared distance from the
        minimum in units of the estimate's own standard error.
    """
    if not l2 > 0:
        raise InputError(f"l2 must be above 0, got {l2!r}; a small one such as 1e-3 will do.")
    theta, good = start.copy(), np.asarray(outcome, dtype=np.float64)[:, None]
    penalty = _penalty(design.shape[1], l2)[:, None]
    mean_weight = weight.mean(axis=1)
    factor, slope = _refreshed(design, mean_weight, theta, l2), _slope(design, weight, good)
    gradient = slope(theta) + penalty * theta
    size, since = np.ones(theta.shape[1]), 0
    for _ in range(_MOST_STEPS):
        step = cho_solve(factor, gradient)
        fall = (gradient * step).sum(axis=0)
        open_fits = np.flatnonzero(fall > tol)
        if open_fits.size == 0:
            return theta
        if since >= 5:
            factor, since = _refreshed(design, mean_weight, theta, l2), 0
            continue
        tried = theta[:, open_fits] - size[open_fits] * step[:, open_fits]
        there = slope(tried, open_fits) + penalty * tried
        short = (there * step[:, open_fits]).sum(axis=0) >= -_OVERSHOT * fall[open_fits]
        kept = open_fits[short]
        theta[:, kept], gradient[:, kept] = tried[:, short], there[:, short]
        size[open_fits] = np.where(short, np.minimum(1.0, 1.5 * size[open_fits]), 0.5 * size[open_fits])
        since += 1
    warnings.warn(
        f"{open_fits.size} of {theta.shape[1]} logistic fits stopped after {_MOST_STEPS} steps, "
        f"short of their minimum; a larger l2 helps where outcomes can be separated.",
        LearningWarning,
        stacklevel=2,
    )
    return theta


def _penalty(n_columns: int, l2: float) -> Floats:
    return np.append(0.0, np.full(n_columns - 1, l2))


def _refreshed(design: Floats, weight: Floats, theta: Floats, l2: float):  # type: ignore[no-untyped-def]
    return cho_factor(curvature(design, weight, theta.mean(axis=1), l2))


def _slope(design: Floats, weight: Floats, good: Floats):  # type: ignore[no-untyped-def]
    """Return the gradient of the weighted log-losses, of all fits or of some."""

    def slope(theta: Floats, fits: NDArray[np.intp] | None = None) -> Floats:
        excess = expit(design @ theta)
        excess -= good
        excess *= weight if fits is None or fits.size == weight.shape[1] else weight[:, fits]
        return np.asarray(design.T @ excess)

    return slope
