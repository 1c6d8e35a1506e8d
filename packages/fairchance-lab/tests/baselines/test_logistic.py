"""Logistic regressions with columns of weights, shares as outcomes and given starts."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fairchance.errors import InputError
from fairchance_lab.baselines.logistic import fit_logistics, linear_scores


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(300, 4)) * [1.0, 5.0, 0.2, 1.0]
    y = (rng.random(300) < 1 / (1 + np.exp(2.5 - X[:, 0] + 0.3 * X[:, 1]))).astype(int)
    return X, y


def by_scikit_learn(X, y, weight, l2):
    model = LogisticRegression(C=1 / l2, tol=1e-12, solver="newton-cholesky", max_iter=1000)
    model.fit(X, y, sample_weight=weight)
    return np.append(model.coef_[0], model.intercept_)


@pytest.mark.parametrize("l2", [0.1, 1.0, 30.0])
def test_a_single_regression(rows, l2):
    X, y = rows
    theta = fit_logistics(X, y, l2=l2, tol=1e-10)
    assert theta == pytest.approx(by_scikit_learn(X, y, None, l2), abs=1e-6)


def test_columns_of_weights_are_separate_regressions(rows, rng):
    X, y = rows
    keep = np.flatnonzero((y == 0) | (np.cumsum(y) <= 8))
    X, y = X[keep], y[keep]
    weight = rng.poisson(1.0, (len(y), 12)).astype(float)
    weight[:, weight[y == 1].sum(axis=0) == 0] = 1.0
    together = fit_logistics(X, y, weight, tol=1e-10)
    assert together.shape == (5, 12)
    for k in range(12):
        alone = by_scikit_learn(X, y, weight[:, k], 1.0)
        assert together[:, k] == pytest.approx(alone, abs=1e-5), k


def test_a_share_is_a_good_and_a_bad_row_with_weights(rows, rng):
    X, _ = rows
    share = rng.random(len(X))
    twice = by_scikit_learn(
        np.vstack([X, X]),
        np.repeat([1, 0], len(X)),
        np.concatenate([share, 1 - share]),
        1.0,
    )
    assert fit_logistics(X, share, tol=1e-10) == pytest.approx(twice, abs=1e-6)


def test_the_start_does_not_matter(rows, rng):
    X, y = rows
    cold = fit_logistics(X, y, tol=1e-11)
    warm = fit_logistics(X, y, start=rng.normal(size=5) * 3, tol=1e-11)
    assert warm == pytest.approx(cold, abs=1e-8)


def test_scores_have_a_column_a_model(rows, rng):
    X, _ = rows
    theta = rng.normal(size=(5, 3))
    scores = linear_scores(X, theta)
    for k in range(3):
        margin = X @ theta[:4, k] + theta[4, k]
        assert scores[:, k] == pytest.approx(1 / (1 + np.exp(-margin)))


def test_a_problem_without_solution_is_an_error():
    X = np.array([[-1.0], [1.0]])
    with pytest.raises(InputError, match="5 steps"):
        fit_logistics(X, [0, 1], l2=0.0, tol=1e-12, max_steps=5)
