"""Scores under many models at once: the mean of models and how far it may be off."""

from __future__ import annotations

import numpy as np
import pytest

from logged_rounds import N_FEATURES
from secondlook.methods.algorithm1.block_scores import Bar, LinearScores, Stack


def mean_of_models(
    seed: int, n_models: int = 6, apart: float = 1.0
) -> tuple[np.ndarray, np.ndarray, Stack]:
    """Return halved coefficients with intercepts, weights, and the stack of these models."""
    rng = np.random.default_rng([6, seed])
    one = rng.normal(size=(N_FEATURES + 1, 1))
    half = one + apart * rng.normal(size=(N_FEATURES + 1, n_models))
    return half, rng.integers(1, 5, n_models).astype(float), Stack(half[:-1], half[-1])


@pytest.mark.parametrize("seed", range(20))
def test_the_mean_of_models_is_off_by_no_more_than_their_spread(seed):
    half, weights, stack = mean_of_models(seed)
    X = np.random.default_rng(seed).normal(size=(500, N_FEATURES))
    bar = Bar.of(weights, 1.0, stack)
    middle = X @ bar.mean + bar.intercept
    h = X @ half[:-1] + half[-1]
    np.testing.assert_allclose(middle, h @ weights / weights.sum())
    q = ((h - middle[:, None]) ** 2) @ weights
    error = q / np.sqrt(27) / weights.sum() * 2
    np.testing.assert_allclose(LinearScores(X, np.zeros(500, np.intp), stack)._error(bar), error)
    assert np.all(error <= X**2 @ bar.bound + bar.least_error)
    exact = (1 / (1 + np.exp(-2 * h))) @ weights
    assert np.all(np.abs(exact - weights.sum() * (1 + np.tanh(middle)) / 2) <= q / np.sqrt(27))


def test_the_spread_of_models_does_not_depend_on_the_units_of_features():
    _, weights, stack = mean_of_models(0)
    units = 10.0 ** np.linspace(-5, 3, N_FEATURES)
    X = np.random.default_rng(0).normal(size=(500, N_FEATURES))
    bar = Bar.of(weights, 1.0, stack)
    other = Bar.of(weights, 1.0, Stack(stack.half_coef / units[:, None], stack.half_intercept))
    np.testing.assert_allclose(X**2 @ bar.bound, (X * units) ** 2 @ other.bound)
    assert other.least_error == pytest.approx(bar.least_error)


@pytest.mark.parametrize("level", [2.0, 4.0])
def test_models_that_differ_in_their_intercepts_only_are_not_taken_for_one(level):
    """The quick bound on the error of their mean is all in its constant then."""
    half, weights, _ = mean_of_models(2)
    half[:-1] = half[:-1, :1]
    half[-1] = [-3, -2, 0, 1, 2, 3]
    stack = Stack(half[:-1], half[-1])
    X = np.random.default_rng(3).normal(size=(3000, N_FEATURES))
    h = X @ half[:-1] + half[-1]
    total = 0.5 * (1 + np.tanh(h)) @ weights
    by_mean = 0.5 * weights.sum() * (1 + np.tanh(h @ weights / weights.sum()))
    scores, bar = LinearScores(X, np.zeros(3000, np.intp), stack), Bar.of(weights, level, stack)
    wrong = np.flatnonzero((by_mean > level) != (total > level))
    assert wrong.size
    quickly, doubtful = scores.exceeds_for_sure(bar)
    assert np.isin(wrong, doubtful).all()
    sure = np.setdiff1d(np.arange(3000), doubtful)
    np.testing.assert_array_equal(quickly[sure], (total > level)[sure])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("past", [0, 3, 5])
def test_beside_a_past_that_accepted_everybody_nobody_is_settled_by_the_mean(past):
    half, weights, _ = mean_of_models(4)
    half[:, past] = 0.0
    half[-1, past] = np.inf
    stack = Stack(half[:-1], half[-1])
    X = np.random.default_rng(5).normal(size=(500, N_FEATURES))
    scores = LinearScores(X, np.zeros(500, np.intp), stack)
    total = scores.table(np.arange(weights.size)) @ weights
    bar = Bar.of(weights, float(np.median(total)), stack)
    assert scores.exceeds_for_sure(bar)[1].size == 500
    np.testing.assert_array_equal(scores.exceeds(bar), total > bar.level)


def test_models_that_share_a_coefficient_are_no_further_apart_for_it():
    half, weights, _ = mean_of_models(1)
    half[0] = 0.25  # the mean of which is exact
    bar = Bar.of(weights, 1.0, Stack(half[:-1], half[-1]))
    assert bar.bound[0] == pytest.approx(0, abs=1e-30)
    assert np.isfinite(bar.bound).all()
    assert bar.bound[1] > 0


def test_no_smaller_bound_on_the_error_of_the_mean_holds():
    """Two models close to each other, where tanh bends most, reach it."""
    h, d = np.arctanh(1 / np.sqrt(3)), 1e-3
    exact = np.sum(1 / (1 + np.exp(-2 * (h + np.array([d, -d])))))
    assert abs(exact - (1 + np.tanh(h))) / (2 * d**2 / np.sqrt(27)) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("apart", [0.3, 1.0])
def test_who_exceeds_a_level_does_not_depend_on_short_cuts(dtype, apart):
    half, weights, stack = mean_of_models(30, apart=apart)
    stack = Stack(half[:-1].astype(dtype), half[-1].astype(dtype))
    X, group = (
        np.random.default_rng(31).normal(size=(20_000, N_FEATURES)),
        np.zeros(20_000, np.intp),
    )
    X[0, 0], X = 1e38, X.astype(dtype)  # its square is beyond single precision
    h = X.astype(float) @ half[:-1] + half[-1]
    total = 0.5 * (1 + np.tanh(h)) @ weights
    by_mean = 0.5 * weights.sum() * (1 + np.tanh(h @ weights / weights.sum()))
    tolerance = 1e-9 if dtype is np.float64 else 1e-4
    for level in np.quantile(total, [0.1, 0.5, 0.9]):
        scores, bar = LinearScores(X, group, stack), Bar.of(weights, float(level), stack)
        exceeds = scores.exceeds(bar)
        clear = np.abs(total - level) > tolerance
        assert clear.mean() > 0.99
        np.testing.assert_array_equal(exceeds[clear], total[clear] > level)
        wrong = (by_mean > level) != (total > level)
        assert wrong.any()  # the mean alone would not do
        with_spread = scores._exceeds_by_mean(bar, scores._error(bar))
        assert with_spread[1].size < 19_000
        for quickly, doubtful in (with_spread, scores.exceeds_for_sure(bar)):
            sure = np.setdiff1d(np.arange(20_000), doubtful)
            assert sure.size > 1000 or apart == 1
            np.testing.assert_array_equal(quickly[sure], exceeds[sure])
            assert not wrong[np.intersect1d(sure, np.flatnonzero(clear))].any()
