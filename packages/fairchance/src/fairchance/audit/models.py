"""Models of acceptances and outcomes, each applied to rows that it has not seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from fairchance.people.columns import TableColumns

__all__ = ["MOST_CATEGORIES", "cross_fitted", "estimate_propensity", "few_categories"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

MOST_CATEGORIES = 255  # that gradient boosting takes
_FITTED = 100_000  # rows that one model learns from; more would not improve it much
_ENOUGH = 50  # rows of each kind, before which the model is a constant
_FOLDS = 5
_LEAST = 0.01  # estimated probability of acceptance


def cross_fitted(
    X: Floats,
    categories: list[int],
    target: Bools,
    usable: Bools,
    n_folds: int,
    rng: np.random.Generator,
) -> Floats:
    """Return P(target | x) of every row, by models that have not seen the row's target.

    Gradient boosting, fitted to the usable rows of all folds but one and applied to that one. It
    stops once rows that it sets aside no longer profit: without that, probabilities from a few
    hundred rows are far too close to 0 and 1.
    """
    fold = rng.integers(n_folds, size=len(X))
    estimate = np.empty(len(X))
    for k in range(n_folds):
        rows = np.flatnonzero(usable & (fold != k))
        if rows.size > _FITTED:
            rows = rng.choice(rows, _FITTED, replace=False)
        here = np.flatnonzero(fold == k)
        counts = np.bincount(target[rows], minlength=2)
        if counts.min() < _ENOUGH or not here.size:
            estimate[here] = (counts[1] + 1) / (rows.size + 2)
            continue
        model = HistGradientBoostingClassifier(
            learning_rate=0.08,
            max_iter=100,
            max_leaf_nodes=15,
            l2_regularization=1.0,
            categorical_features=categories,
            early_stopping=True,
            random_state=0,
        )
        with threadpool_limits(1):  # several threads on a busy machine are many times slower
            estimate[here] = model.fit(X[rows], target[rows]).predict_proba(X[here])[:, 1]
    return estimate


def few_categories(columns: TableColumns, codes: Floats) -> list[int]:
    """Return the columns of categories that gradient boosting takes as such; others are numbers."""
    largest = {at: np.nanmax(codes[:, at], initial=0) for at in columns.categorical}
    return [at for at, code in largest.items() if code < MOST_CATEGORIES]


def estimate_propensity(
    X: Floats, categories: list[int], accepted: Bools, random_state: int = 0
) -> Floats:
    """Return the probability with which applicants like each one were accepted.

    No applicant has less than 1 %, and none who was rejected more than 99 %: beyond that, a model
    says nothing, and weights of 1/p would be large for no reason.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 2))
    >>> accepted = rng.random(4000) < np.where(X[:, 0] > 0, 0.8, 0.3)
    >>> p = estimate_propensity(X, [], accepted)
    >>> round(float(p[X[:, 0] > 0].mean()), 1), round(float(p[X[:, 0] < 0].mean()), 1)
    (0.8, 0.3)
    """
    rng = np.random.default_rng(random_state)
    p = cross_fitted(X, categories, accepted, np.ones_like(accepted), _FOLDS, rng)
    return np.clip(p, _LEAST, np.where(accepted, 1.0, 1 - _LEAST))
