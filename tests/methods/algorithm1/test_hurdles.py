"""Hurdles in log-odds against scores, one person and one round at a time."""

from __future__ import annotations

import numpy as np
import pytest

from secondlook.methods.algorithm1.block_scores import LinearScores, Scorer, Stack
from secondlook.methods.algorithm1.hurdles import Hurdles, LogOddsHurdles
from secondlook.people.likelihoods import ConstantLikelihood, LinearLikelihood

N, FEATURES, ROUNDS = 3000, 4, 12


def models(seed: int, dtype: type) -> tuple[np.ndarray, Stack]:
    """Return people and linear models."""
    rng = np.random.default_rng([11, seed])
    X = rng.normal(size=(N, FEATURES)).astype(dtype)
    half = rng.normal(size=(FEATURES + 1, ROUNDS)).astype(dtype)
    return X, Stack(half[:-1], half[-1])


def reached_one_by_one(X: np.ndarray, stack: Stack, cuts: np.ndarray) -> np.ndarray:
    """Score in double precision, and compare; a row a round."""
    h = X.astype(float) @ stack.half_coef.astype(float) + stack.half_intercept.astype(float)
    return ((0.5 + 0.5 * np.tanh(h)) >= cuts).T


def hurdles_of(stack: Stack, cuts: np.ndarray) -> Hurdles:
    log_odds = LogOddsHurdles.of(stack.half_coef, stack.half_intercept, cuts)
    return Hurdles(np.arange(ROUNDS), cuts, log_odds)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_groups", [1, 3])
def test_whoever_surely_reaches_a_hurdle_has_the_score(dtype, n_groups):
    for seed in range(5):
        X, stack = models(seed, dtype)
        rng = np.random.default_rng(seed)
        cuts = rng.uniform(0.05, 0.95, (n_groups, ROUNDS)).astype(dtype)
        group = rng.integers(0, n_groups, N)
        expected = reached_one_by_one(X, stack, cuts[group])
        hurdles = hurdles_of(stack, cuts)
        reached, unsure = hurdles.log_odds.reached(X, group)
        sure = np.setdiff1d(np.arange(N), unsure)
        assert sure.size > 0.99 * N
        np.testing.assert_array_equal(reached[:, sure], expected[:, sure])
        settled = LinearScores(X, group, stack).reached(hurdles)
        np.testing.assert_array_equal(settled[:, sure], reached[:, sure])
        score = LinearScores(X, group, stack).table(np.arange(ROUNDS))
        np.testing.assert_array_equal(settled, hurdles.reached_by(score, group))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_people_at_a_cut_are_not_sure(dtype):
    X, stack = models(7, dtype)
    group = np.zeros(N, np.intp)
    score = LinearScores(X, group, stack).table(np.arange(ROUNDS))
    rows = np.arange(ROUNDS) * 10
    cuts = score[rows, np.arange(ROUNDS)][None]  # each is somebody's very score
    hurdles = hurdles_of(stack, cuts)
    _, unsure = hurdles.log_odds.reached(X, group)
    assert np.isin(rows, unsure).all()
    reached = LinearScores(X, group, stack).reached(hurdles)
    assert reached[np.arange(ROUNDS), rows].all()
    just_above = hurdles_of(stack, np.nextafter(cuts, dtype(2)))
    missed = LinearScores(X, group, stack).reached(just_above)
    assert not missed[np.arange(ROUNDS), rows].any()


def test_without_the_bound_on_rounding_somebody_would_be_judged_wrongly():
    """A control: features far from 0 whose products cancel, in single precision."""
    X, stack = models(3, np.float64)
    X[:, 0] += 1e5
    half_intercept = stack.half_intercept - 1e5 * stack.half_coef[0]
    stack = Stack(stack.half_coef, half_intercept)
    cuts, group = np.full((1, ROUNDS), 0.5), np.zeros(N, np.intp)
    expected = reached_one_by_one(X, stack, cuts[group])
    hurdles = hurdles_of(stack, cuts)
    reached, unsure = hurdles.log_odds.reached(X, group)
    sure = np.setdiff1d(np.arange(N), unsure)
    assert 0 < sure.size < N
    np.testing.assert_array_equal(reached[:, sure], expected[:, sure])
    np.testing.assert_array_equal(LinearScores(X, group, stack).reached(hurdles), expected)
    bold = LogOddsHurdles(
        hurdles.log_odds.coef,
        0 * hurdles.log_odds.steps,
        hurdles.log_odds.low,
        hurdles.log_odds.high,
    )
    reached, unsure = bold.reached(X, group)
    sure = np.setdiff1d(np.arange(N), unsure)
    assert not np.array_equal(reached[:, sure], expected[:, sure])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("cut", [-np.inf, -1.0, 0.0, 1e-30, 1e-17, 1 - 1e-7, 1.0, 1.5, np.inf])
@pytest.mark.parametrize("intercept", [0.0, np.inf, -np.inf])
def test_cuts_at_the_ends_and_infinite_intercepts(dtype, cut, intercept):
    X, _ = models(4, dtype)
    X *= 20  # scores of 0 and 1 up to the last bit
    likelihoods = [LinearLikelihood(np.array([1.0, -1.0, 0.5, 2.0]), intercept)]
    scorer, group = Scorer(likelihoods, X), np.zeros(N, np.intp)
    _, scores = next(scorer.blocks(X, group))
    hurdles = scorer.hurdles(np.zeros(1, np.intp), np.full((1, 1), cut, dtype))
    expected = scores.table(np.zeros(1, np.intp)) >= dtype(cut)
    np.testing.assert_array_equal(scores.reached(hurdles), expected.T)


def test_features_beyond_single_precision_are_scored_in_full():
    X, stack = models(5, np.float64)
    X[0, 0], X[1, 1] = 1e39, -1e300
    cuts, group = np.full((1, ROUNDS), 0.3), np.zeros(N, np.intp)
    hurdles = hurdles_of(stack, cuts)
    assert hurdles.log_odds.reached(X, group)[1].size == N
    expected = reached_one_by_one(X, stack, cuts[group])
    np.testing.assert_array_equal(LinearScores(X, group, stack).reached(hurdles), expected)


def test_products_beyond_single_precision_are_scored_in_full():
    """Numbers that single precision holds, whose products it does not, cancel in double."""
    X, stack = models(6, np.float64)
    X[:, 1] = X[:, 0] = 2.0**66
    coef = np.zeros_like(stack.half_coef)
    coef[0], coef[1] = 2.0**66, -(2.0**66)
    stack = Stack(coef, stack.half_intercept)
    cuts, group = np.full((1, ROUNDS), 0.5), np.zeros(N, np.intp)
    hurdles = hurdles_of(stack, cuts)
    assert hurdles.log_odds.reached(X, group)[1].size == N
    expected = np.tile(stack.half_intercept[:, None] >= 0, N)
    assert 0 < expected.mean() < 1
    np.testing.assert_array_equal(LinearScores(X, group, stack).reached(hurdles), expected)


@pytest.mark.parametrize(("cut", "told"), [(-0.5, True), (0.0, True), (1.5, False)])
def test_cuts_that_everybody_or_nobody_reaches_need_no_score(cut, told):
    X, stack = models(8, np.float32)
    hurdles = hurdles_of(stack, np.full((1, ROUNDS), cut, np.float32))
    reached, unsure = hurdles.log_odds.reached(X, np.zeros(N, np.intp))
    assert unsure.size == 0
    assert np.all(reached == told)


def test_other_likelihoods_are_compared_by_their_scores():
    X, group = np.zeros((4, 2)), np.array([0, 1, 1, 0])
    scorer = Scorer([ConstantLikelihood(0.3), ConstantLikelihood(0.6)], X)
    ((_, scores),) = scorer.blocks(X, group)
    hurdles = scorer.hurdles(np.array([0, 1, 1]), np.array([[0.3, 0.7, 0.5], [0.4, 0.6, 0.5]]))
    assert hurdles.log_odds is None
    by_hand = [[True, False, False, True], [False, True, True, False], [True] * 4]
    assert scores.reached(hurdles).tolist() == by_hand
