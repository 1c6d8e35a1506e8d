"""The direct search of a linear rule, against enumeration and its own promises."""

from __future__ import annotations

import numpy as np
import pytest

from fairchance.core.utility import Revenue
from fairchance.learners.logistic import ConstrainedLogistic
from fairchance.learners.thresholds import shared_threshold
from fairchance.simulate.worlds import whole_population
from fairchance_lab.baselines import direct_search
from fairchance_lab.baselines.direct_search import search_linear_rule
from fairchance_lab.datasets import load

TASK = {"utility": Revenue(200, 500), "max_fdr": 0.2}


def sample(rng, n, d=2):
    """Return rows whose log-odds are not linear, on features of different scales."""
    X = rng.normal(size=(n, d)) * 10.0 ** np.arange(d) + 3
    margin = (X[:, 0] - 3) + 2 * np.sin(X[:, -1]) + 0.5
    return X, (rng.random(n) < 1 / (1 + np.exp(-margin))).astype(int), rng.exponential(size=n)


def point_of(score, y, weight, **task):
    return shared_threshold(score, y, weight, np.zeros(len(y), int), 1, **task)


def best_of_all_directions(X, y, weight, **task):
    """Return the largest utility over all directions of two features.

    The order of the scores changes only where the direction is at a right angle to the difference
    of two rows, so one direction between each two such angles is enough.
    """
    i, j = np.triu_indices(len(y), 1)
    across = np.arctan2(*(X[i] - X[j]).T[::-1]) + np.pi / 2
    angles = np.sort(np.concatenate([across, across + np.pi]) % (2 * np.pi))
    middle = (angles + np.append(angles[1:], angles[0] + 2 * np.pi)) / 2
    scores = (X @ [np.cos(angle), np.sin(angle)] for angle in middle)
    return max(point_of(score, y, weight, **task).utility for score in scores)


def test_it_comes_close_to_the_best_of_all_directions():
    shares = []
    for seed in range(8):
        X, y, weight = sample(np.random.default_rng(seed), 30)
        best = best_of_all_directions(X, y, weight, **TASK)
        _, point = search_linear_rule(X, y, weight, **TASK)
        assert point.utility <= best + 1e-9
        shares.append(point.utility / best)
    assert np.mean(shares) > 0.99


@pytest.mark.parametrize("max_fdr", [0.02, 0.1, 0.3])
def test_the_rule_keeps_its_bound_and_is_never_worse_than_the_logistic_fit(rng, max_fdr):
    task = {"utility": TASK["utility"], "max_fdr": max_fdr}
    X, y, weight = sample(rng, 300, 3)
    rule, point = search_linear_rule(X, y, weight, **task)
    score = rule.score(X, np.zeros(300, int))
    assert ((score >= 0) & (score <= 1)).all()
    accepted = score >= point.thresholds[0]
    taken = weight * accepted
    assert taken @ (1 - y) <= (max_fdr + 1e-9) * taken.sum()
    assert point.utility == pytest.approx(TASK["utility"].mean(accepted, y, weight))
    Z = (X - X.mean(0)) / X.std(0)
    logistic = ConstrainedLogistic().fit(Z, y, weight * (300 / weight.sum()))
    before = point_of(logistic.decision_function(Z), y, weight, **task)
    assert point.utility >= before.utility - 1e-9


def test_order_and_scale_of_the_rows_do_not_matter(rng, monkeypatch):
    monkeypatch.setattr(direct_search, "_MOST_ROWS", 150)  # so that rows are thinned too
    X, y, weight = sample(rng, 300, 3)
    rule, point = search_linear_rule(X, y, weight, **TASK)
    order = rng.permutation(300)
    same, same_point = search_linear_rule(X[order], y[order], weight[order], **TASK)
    assert np.array_equal(same.coef, rule.coef)
    assert same_point.utility == pytest.approx(point.utility)
    # Powers of two keep every number exact.
    scale = np.array([4.0, 0.5, 1.0])
    scaled, scaled_point = search_linear_rule(X * scale, y, 8 * weight, **TASK)
    assert np.array_equal(scaled.coef * scale, rule.coef)
    assert scaled_point.utility == pytest.approx(point.utility)


def test_what_a_direction_earns_is_that_of_the_exact_threshold(rng):
    X, y, weight = sample(rng, 200, 3)
    X[:, 0] = np.round(X[:, 0])  # equal scores
    rows = direct_search._Rows.of(X, y, weight)
    for direction in (*np.eye(3), *rng.normal(size=(5, 3))):
        point = point_of(rows.X @ direction, rows.outcome, rows.weight, **TASK)
        earned = direct_search._earned(rows, direction, TASK["utility"], TASK["max_fdr"])
        assert earned / rows.weight.sum() == pytest.approx(point.utility)


def test_on_german_credit_no_random_restarts_find_much_more():
    """Climbs with other steps and a generator of their own, as an independent trial had them."""
    people = whole_population(load("german"))
    X = (people.people.X - people.people.X.mean(0)) / people.people.X.std(0)
    y, ones, task = people.good.astype(int), np.ones(len(X)), TASK | {"max_fdr": 0.15}
    _, point = search_linear_rule(X, y, **task)
    rng, found = np.random.default_rng(7), 0.0
    for _ in range(8):
        best = rng.normal(size=X.shape[1])
        earned = point_of(X @ best, y, ones, **task).utility
        for step in np.geomspace(0.5, 0.01, 600):
            tried = best / np.linalg.norm(best) + step * rng.normal(size=best.size) / 3
            worth = point_of(X @ tried, y, ones, **task).utility
            if worth > earned:
                best, earned = tried, worth
        found = max(found, earned)
    assert point.utility >= 35  # the gradient search before it: 28.7
    assert point.utility >= found


def test_rows_without_weight_do_not_matter(rng):
    X, y, weight = sample(rng, 200)
    weight[:50] = 0
    rule, _ = search_linear_rule(X, y, weight, **TASK)
    same, _ = search_linear_rule(X[50:], y[50:], weight[50:], **TASK)
    assert np.array_equal(same.coef, rule.coef)


def test_it_finds_more_than_a_logistic_fit_on_other_rows_too():
    X, y, _ = sample(np.random.default_rng(0), 20_000, 3)
    fit, rest = slice(0, 10_000), slice(10_000, None)
    rule, _ = search_linear_rule(X[fit], y[fit], utility=Revenue(200, 500), max_fdr=0.12)
    logistic = ConstrainedLogistic().fit(X[fit], y[fit])
    found, before = (
        point_of(score, y[rest], np.ones(10_000), utility=Revenue(200, 500), max_fdr=0.12).utility
        for score in (
            rule.score(X[rest], np.zeros(10_000, int)),
            logistic.decision_function(X[rest]),
        )
    )
    assert found >= before


def test_constant_features_are_allowed(rng):
    X = np.ones((40, 2))
    y = np.arange(40) % 2
    rule, point = search_linear_rule(X, y, **TASK)
    assert np.isfinite(rule.coef).all()
    assert point.utility == 0
