"""Wei 2021: thresholds against a lattice solved without a grid, cells and doubt by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta
from sklearn.linear_model import LogisticRegression

from baselines.playing import N, check_promises, check_refusals, on_german, people, started
from fairchance_lab.baselines.wei import (
    WeiBootstrap,
    WeiFinite,
    acceptance_threshold,
    effective_discount,
)

SPECIFIED = [
    (0.5, 0.9, {1: 0.2101, 2: 0.2873, 5: 0.3833, 10: 0.4326, 100: 0.4918}),
    (0.5, 0.99, {2: 0.0886, 10: 0.3243, 100: 0.4722}),
    (5 / 7, 0.9, {2: 0.5138, 10: 0.6532}),
    (5 / 7, 0.99, {1: 0.1303, 2: 0.2618, 5: 0.4492, 10: 0.5508, 50: 0.6682, 100: 0.6890}),
    (5 / 7, 0.999, {10: 0.4262, 100: 0.6573}),
]


def going_on(mean, nu, cost, discount, depth, cut=None):
    """Return what it is worth to accept once and then go on, on the exact tree of outcomes.

    Going on is best, or by ``cut(n_outcomes)``. After ``depth`` outcomes the mean counts as known.
    """
    tip = (mean * nu + np.arange(depth + 1)) / (nu + depth)
    value = np.maximum(tip - cost, 0) / (1 - discount)
    for k in range(depth - 1, -1, -1):
        at = (mean * nu + np.arange(k + 1)) / (nu + k)
        more = at - cost + discount * (at * value[1 : k + 2] + (1 - at) * value[: k + 1])
        value = np.maximum(more, 0) if cut is None else np.where(at > cut(nu + k), more, 0)
    return more[0]


@pytest.mark.parametrize(("cost", "discount", "values"), SPECIFIED)
def test_thresholds_are_those_of_the_specification(cost, discount, values):
    got = acceptance_threshold(list(values), cost, discount)
    np.testing.assert_allclose(got, list(values.values()), atol=1e-3)


@pytest.mark.parametrize("nu", [0.1, 0.25, 0.6, 1.0, 1.5, 3.3, 8.0, 40.0])
def test_at_the_threshold_accepting_is_worth_nothing(nu):
    """By the exact tree, a little above it is worth something and a little below less than it."""
    for cost, discount in ((5 / 7, 0.97), (0.4, 0.9)):
        level = float(acceptance_threshold(nu, cost, discount))
        assert going_on(level + 2e-3, nu, cost, discount, 400) > 0
        assert going_on(level - 2e-3, nu, cost, discount, 400) < 0


def test_no_other_threshold_earns_more():
    """From a prior of two outcomes; impatience and recklessness both cost."""
    cost, discount, nu, mean = 5 / 7, 0.98, 2.0, 0.6
    knots = np.arange(2.0, 402.0)
    level = acceptance_threshold(knots, cost, discount)
    best = going_on(mean, nu, cost, discount, 400)
    ours = going_on(mean, nu, cost, discount, 400, lambda n: level[int(n) - 2])
    assert ours == pytest.approx(best, rel=1e-5)
    for shift in (-0.1, -0.03, 0.03, 0.1):
        other = going_on(mean, nu, cost, discount, 400, lambda n, s=shift: level[int(n) - 2] + s)
        assert other < best * (1 - 1e-4)


def test_thresholds_rise_to_the_cost_and_start_where_one_outcome_tells_all():
    nu = np.concatenate([np.linspace(0, 20, 300), np.geomspace(20, 1e6, 200)])
    level = acceptance_threshold(nu, 5 / 7, 0.995)
    assert np.all(np.diff(level) > -1e-9)
    assert level[-1] == pytest.approx(5 / 7, abs=1e-4)
    assert np.all(level < 5 / 7)
    known_after_one = 5 / 7 * 0.005 / (0.005 + 0.995 * 2 / 7)
    assert level[0] == pytest.approx(known_after_one)
    patient, hasty = (acceptance_threshold([0.5, 5, 50], 5 / 7, g) for g in (0.995, 0.9))
    assert np.all(patient < hasty - 1e-3)


def test_many_discounts_are_interpolated_between_solved_ones():
    gamma, nu = np.array([0.05, 0.3, 0.83, 0.957, 0.9931, 0.9992]), np.array([2, 3, 8, 17, 60, 300])
    each = [float(acceptance_threshold(n, 0.6, g)) for n, g in zip(nu, gamma, strict=True)]
    np.testing.assert_allclose(acceptance_threshold(nu, 0.6, gamma), each, atol=1e-3)


def test_the_discount_of_a_cell_is_the_mean_over_waiting_times():
    wait = np.arange(1, 20_000)
    for gamma, p in ((0.99, 0.02), (0.9, 0.5), (0.999, 0.3)):
        mean = (gamma**wait * p * (1 - p) ** (wait - 1)).sum()
        assert effective_discount(gamma, p) == pytest.approx(mean, rel=1e-9)


def test_cells_open_by_counts_made_by_hand():
    method = started(WeiFinite(0.7, n_cells=6, discount=0.995, prior_count=3.0, random_state=1))
    X0, _, y0 = people(400, np.random.default_rng([0, 1]))
    taken0 = X0[:, 0] > -0.4
    n_cells, cell_of = 6, method._cells_of
    home, goods, counts = cell_of(X0), np.zeros(n_cells), np.zeros(n_cells)
    arrived = np.bincount(home, minlength=n_cells)
    for t in range(4):
        past = [taken0 & (home == c) for c in range(n_cells)]
        prior = np.array([(y0[rows].sum() + 1) / (rows.sum() + 2) for rows in past])
        mean = (3 * prior + goods) / (3 + counts)
        p = arrived / arrived.sum()
        level = acceptance_threshold(3 + counts, 0.7, 0.995 * p / (0.005 + 0.995 * p))
        X, z, y = people(N, np.random.default_rng([7, t]))
        batch = method.decide(X, sensitive_features=z)
        np.testing.assert_array_equal(batch.accepted, (mean > level)[cell_of(X)])
        np.testing.assert_allclose(batch.score, mean[cell_of(X)])
        method.observe(batch.ids[batch.accepted], y[batch.accepted])
        arrived += np.bincount(cell_of(X), minlength=n_cells)
        seen = cell_of(X)[batch.accepted]
        goods += np.bincount(seen, y[batch.accepted], n_cells)
        counts += np.bincount(seen, minlength=n_cells)
    assert 0 < (mean > level).sum() < n_cells


def test_a_cell_once_closed_stays_closed():
    method = started(WeiFinite(0.7, n_cells=8, random_state=1))
    closed = np.zeros(8, bool)
    for t in range(6):
        X, z, y = people(N, np.random.default_rng([11, t]))
        batch = method.decide(X, sensitive_features=z)
        open_now = np.unique(method._cells_of(X)[batch.accepted])
        assert not closed[open_now].any()
        closed |= ~np.isin(np.arange(8), open_now)
        method.observe(batch.ids[batch.accepted], y[batch.accepted])
    assert 0 < closed.sum() < 8


def test_doubt_counts_as_the_outcomes_that_would_leave_it():
    """The variance of Beta(νμ, ν(1−μ)) gives ν back."""
    method = started(WeiBootstrap(random_state=0))
    quantiles = (np.arange(4000) + 0.5) / 4000
    for mean, count in ((0.7, 12.0), (0.3, 90.0)):
        draws = beta.ppf(quantiles, count * mean, count * (1 - mean))
        logit = np.log(draws / (1 - draws))
        method._models = np.zeros((4, 4001))
        method._models[-1] = np.append(np.log(mean / (1 - mean)), logit)
        got_mean, got_count = method._doubt(np.zeros((1, 3)))
        assert got_mean[0] == pytest.approx(mean)
        assert got_count[0] == pytest.approx(count, rel=2e-3)


def test_bootstrap_models_are_logistic_fits_and_their_doubt_decides():
    method = started(WeiBootstrap(5 / 7, n_models=5, discount=0.99, random_state=2))
    X0, _, y0 = people(400, np.random.default_rng([0, 1]))
    rows = X0[:, 0] > -0.4
    weight = method._weights.view()
    assert weight.shape == (rows.sum(), 6)
    assert np.all(weight[:, 0] == 1)
    assert weight[:, 1:].mean() == pytest.approx(1, abs=0.1)
    assert weight[:, 1:].var() == pytest.approx(1, abs=0.25)
    for k in range(6):
        own = LogisticRegression(C=1.0, tol=1e-10).fit(X0[rows], y0[rows], weight[:, k])
        np.testing.assert_allclose(method._models[:-1, k], own.coef_[0], atol=2e-3)
    X, z, _ = people(N, np.random.default_rng(4))
    batch = method.decide(X, sensitive_features=z)
    scores = 1 / (1 + np.exp(-(X @ method._models[:-1] + method._models[-1])))
    mean, variance = scores[:, 0], scores[:, 1:].var(axis=1, ddof=1)
    level = [
        float(acceptance_threshold(max(m * (1 - m) / v - 1, 1e-3), 5 / 7, 0.99))
        for m, v in zip(mean, variance, strict=True)
    ]
    np.testing.assert_array_equal(batch.accepted, mean > np.array(level))
    assert (batch.accepted & (mean < 5 / 7)).any()
    assert not (~batch.accepted & (mean > 5 / 7)).any()


def test_without_a_discount_the_people_to_come_set_it():
    method = started(WeiBootstrap(horizon=10))
    assert method._discount == pytest.approx(1 - 1 / 4000)


@pytest.mark.parametrize(
    "method",
    [
        WeiFinite(5 / 7, n_cells=10, discount=0.99, random_state=0),
        WeiBootstrap(5 / 7, n_models=6, discount=0.99, random_state=0),
    ],
)
def test_what_every_baseline_keeps(method):
    check_promises(method)


def test_wrong_parameters_are_named():
    check_refusals(
        WeiFinite(),
        [
            ("cost", 1.0),
            ("discount", 1.0),
            ("horizon", 0),
            ("n_cells", 0),
            ("prior_count", 0.0),
        ],
    )
    check_refusals(WeiBootstrap(), [("cost", 0), ("n_models", 1), ("l2", -1.0)])
    with pytest.raises(ValueError, match=r"cost.* 1.2"):
        acceptance_threshold(1.0, 1.2, 0.9)
    with pytest.raises(ValueError, match=r"discount.* 1.0"):
        acceptance_threshold(1.0, 0.5, [0.9, 1.0])


def test_settings_break_even_where_they_say():
    for method in (WeiFinite, WeiBootstrap):
        assert method.setting("aligned").cost == pytest.approx(500 / 700)
        assert method.setting("published").cost == 0.5


@pytest.mark.parametrize(
    ("method", "low", "high"),
    [
        (WeiFinite, 9000, 19_000),
        pytest.param(WeiBootstrap, 7000, 14_000, marks=pytest.mark.long),
    ],
)
def test_on_german_credit_cells_and_doubt_earn_as_measured(method, low, high):
    """Wide bands around the means of 8 runs."""
    aligned = on_german(method.setting("aligned", random_state=0))
    published = on_german(method.setting("published", random_state=0))
    assert low < aligned.revenue < high
    assert published.revenue < 0.7 * low
    assert aligned.fdr < 0.26 < published.fdr < 0.31
