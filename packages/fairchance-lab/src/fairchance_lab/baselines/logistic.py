"""Logistic regressions of the baselines, by scikit-learn; outcomes may be shares."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgWarning
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from fairchance.errors import InputError

__all__ = ["fit_logistics", "linear_scores"]

Floats = NDArray[np.float64]


def linear_scores(X: Floats, theta: Floats) -> Floats:
    """Return P(good) under models with the intercept as last coefficient, a column each."""
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

    Outcomes are 0, 1 or a share between, which counts as a good and a bad row with these weights.
    Coefficients have the intercept last, a column for each column of weights.

    Examples
    --------
    >>> X = np.array([[0.0], [0.0], [1.0], [1.0]])
    >>> theta = fit_logistics(X, [0.25, 0.25, 0.75, 0.75], l2=0.0)
    >>> linear_scores(X, theta).round(6).tolist()
    [0.25, 0.25, 0.75, 0.75]
    """
    share = np.asarray(y, dtype=np.float64)
    weights = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=np.float64)
    columns = weights.reshape(len(X), -1)
    n_models, n_features = columns.shape[1], X.shape[1]
    starts = np.zeros((n_features + 1, n_models))
    if start is not None:
        starts += start.reshape(n_features + 1, -1)
    rows, good = np.vstack([X, X]), np.repeat([1, 0], len(X))
    model = LogisticRegression(
        C=1 / l2 if l2 > 0 else np.inf,
        solver="newton-cholesky",
        tol=tol,
        max_iter=max_steps,
        warm_start=True,
    )
    theta = np.empty_like(starts)
    for k, (column, first) in enumerate(zip(columns.T, starts.T, strict=True)):
        model.classes_ = np.array([0, 1])
        model.coef_, model.intercept_ = first[None, :-1], first[-1:]
        split = np.concatenate([column * share, column * (1 - share)])
        with warnings.catch_warnings():
            # Rows of a single outcome end with a flat loss, which the solver can handle.
            warnings.simplefilter("ignore", LinAlgWarning)
            warnings.simplefilter("error", ConvergenceWarning)
            try:
                model.fit(rows, good, split)
            except ConvergenceWarning:
                raise InputError(
                    f"logistic regression on {len(X)} rows did not converge in {max_steps} steps; "
                    f"scale the features, or raise l2, which is {l2}."
                ) from None
        theta[:, k] = np.append(model.coef_[0], model.intercept_)
    return theta[:, 0] if weights.ndim == 1 else theta
