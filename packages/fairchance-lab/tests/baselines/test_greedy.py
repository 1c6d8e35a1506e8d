"""Greedy, ε-greedy, Thompson sampling, and the frozen past."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression

from fairchance.errors import InputError
from fairchance_lab.baselines.greedy import (
    BootstrapThompson,
    EpsilonGreedy,
    FrozenPast,
    Greedy,
)

SLOPE = np.array([1.5, -1.0])


def people(rng, n):
    X = rng.normal(size=(n, 2))
    return X, (rng.random(n) < 1 / (1 + np.exp(-1 - X @ SLOPE))).astype(int)


def history(rng, n=600):
    X, y = people(rng, n)
    accepted = X[:, 0] > -0.3
    return X, np.where(accepted, y, -5), accepted


def started(method, rng):
    X, y, accepted = history(rng)
    return method.fit(X, y, accepted=accepted)


def rounds(method, rng, n_rounds=3, n=400):
    """Run some rounds and return everything that was labelled, by the test's own books."""
    seen = []
    for _ in range(n_rounds):
        X, y = people(rng, n)
        batch = method.decide(X)
        method.observe(batch.ids[batch.accepted], y[batch.accepted])
        seen.append((X, y, batch))
    return seen


def test_greedy_is_a_cut_off_on_the_model_of_everybody_accepted(rng):
    X, y, accepted = history(rng)
    method = Greedy(0.7).fit(X, y, accepted=accepted)
    seen = rounds(method, rng)
    rows = [X[accepted], *(one[batch.accepted] for one, _, batch in seen)]
    outcomes = [y[accepted], *(one[batch.accepted] for _, one, batch in seen)]
    model = LogisticRegression(C=1.0, tol=1e-10).fit(np.vstack(rows), np.concatenate(outcomes))
    X, _ = people(rng, 500)
    batch = method.decide(X)
    assert batch.score == pytest.approx(model.predict_proba(X)[:, 1], abs=1e-4)
    assert batch.accepted.tolist() == (batch.score >= 0.7).tolist()
    assert batch.propensity.tolist() == batch.accepted.astype(float).tolist()
    assert batch.exploit.all()
    assert method.accepts(X).tolist() == batch.accepted.tolist()


def test_settings_are_cut_offs():
    for kind in (Greedy, EpsilonGreedy, BootstrapThompson):
        assert kind.setting("published").cutoff == 0.5
        assert kind.setting("aligned").cutoff == pytest.approx(500 / 700)


def test_epsilon_falls_as_it_says():
    line = EpsilonGreedy(epsilon=0.2, last=0.05, horizon=4)
    assert [line.epsilon_of(t) for t in range(1, 7)] == pytest.approx(
        [0.2, 0.15, 0.1, 0.05, 0.05, 0.05]
    )
    published = EpsilonGreedy.setting("published", horizon=39)
    falling = [published.epsilon_of(t) for t in range(1, 40)]
    assert falling == pytest.approx(np.linspace(0.2, 0.01, 39))


@pytest.mark.parametrize(("epsilon", "last"), [(0.4, 0.1), (0.05, 0.05)])
def test_epsilon_greedy_accepts_below_the_cut_off_and_never_rejects_above_it(rng, epsilon, last):
    """Over 4 rounds, an exact test a round at 1e-4; a coin that is fair instead fails it."""
    method = EpsilonGreedy(0.7, epsilon=epsilon, last=last, horizon=4, random_state=1)
    method = started(method, rng)
    for t, (_, _, batch) in enumerate(rounds(method, rng, 4, 3000)):
        now = epsilon + t * (last - epsilon) / 3
        above = batch.score >= 0.7
        assert batch.accepted[above].all()
        assert batch.propensity == pytest.approx(np.where(above, 1.0, now))
        n, heads = int((~above).sum()), int(batch.accepted[~above].sum())
        assert stats.binomtest(heads, n, now).pvalue > 1e-4
        assert stats.binomtest(heads, n, now / 2).pvalue < 1e-4  # a random action by a fair coin
        assert batch.explored.sum() == heads


def test_thompson_accepts_with_the_share_of_models_that_do(rng):
    method = started(BootstrapThompson(0.7, n_models=10, random_state=3), rng)
    (X, _, batch) = rounds(method, rng, 1, 20_000)[0]
    margins = X @ method._models[:2] + method._models[2]
    want = (1 / (1 + np.exp(-margins)) >= 0.7).mean(axis=1)
    assert batch.propensity == pytest.approx(want)
    tried = 0
    for p in np.unique(want):
        who = np.isclose(want, p)
        if 0 < p < 1 and who.sum() > 200:
            tried += 1
            heads = int(batch.accepted[who].sum())
            assert stats.binomtest(heads, int(who.sum()), p).pvalue > 1e-5
    assert tried >= 3
    assert not batch.accepted[want == 0].any()


def test_bootstrap_models_scatter_as_the_estimate_does(rng):
    """Their spread is that of the fit: the inverse of the information."""
    X, y = people(rng, 4000)
    method = BootstrapThompson(n_models=400, l2=0.0, random_state=0).fit(X, y)
    rows = np.column_stack([X, np.ones(len(X))])
    p = 1 / (1 + np.exp(-rows @ method._theta))
    covariance = np.linalg.inv((rows * (p * (1 - p))[:, None]).T @ rows)
    spread = method._models.std(axis=1)
    # The standard deviation of 400 draws is known to about 1/√800 of itself.
    assert spread == pytest.approx(np.sqrt(np.diag(covariance)), rel=0.16)


def test_doubt_and_with_it_exploring_shrink_with_outcomes(rng):
    method = started(BootstrapThompson(0.7, random_state=0), rng)
    open_share = [
        ((batch.propensity > 0) & (batch.propensity < 1)).mean()
        for _, _, batch in rounds(method, rng, 12, 1000)
    ]
    assert open_share[-1] < 0.6 * open_share[0]


def test_a_bootstrap_without_any_bad_person_takes_everybody(rng):
    X, y = people(rng, 200)
    keep = np.flatnonzero((y == 1) | (np.cumsum(1 - y) == 1))
    method = BootstrapThompson(n_models=30, random_state=0).fit(X[keep], y[keep])
    assert np.isfinite(method._models).all()
    assert np.abs(method._models).max() < 20


def test_the_past_is_imitated_with_its_intercept_and_never_moves(rng):
    X, y, accepted = history(rng)
    method = FrozenPast().fit(X, y, accepted=accepted)
    before = method.acceptance_probability(X)
    assert (before == accepted).mean() > 0.97
    rounds(method, rng)
    assert method.acceptance_probability(X).tolist() == before.tolist()
    # Without an intercept the cut would lie at 0, not at -0.3.
    between = np.array([[-0.15, 0.0]])
    assert method.accepts(between).tolist() == [True]


def test_the_past_may_be_given(rng):
    X, y, accepted = history(rng)
    method = FrozenPast(lambda X: (X[:, 1] > 0).astype(float)).fit(X, y, accepted=accepted)
    assert method.accepts(X).tolist() == (X[:, 1] > 0).tolist()
    everybody = FrozenPast().fit(X, np.where(accepted, y, 0))
    assert everybody.accepts(X).all()


@pytest.mark.parametrize(
    ("method", "named"),
    [
        (Greedy(1.0), "cutoff.* 1.0"),
        (Greedy(l2=-1), "l2.* -1"),
        (EpsilonGreedy(epsilon=1.5), "epsilon.* 1.5"),
        (EpsilonGreedy(horizon=1), "horizon.* 1"),
        (EpsilonGreedy(last="2"), "last.* '2'"),
        (BootstrapThompson(n_models=1), "n_models.* 1"),
    ],
)
def test_parameters_are_checked(rng, method, named):
    with pytest.raises(InputError, match=named):
        started(method, rng)


def test_methods_to_compare_with_take_numbers_only():
    mixed = pd.DataFrame({"income": np.arange(40.0), "job": ["clerk", "smith"] * 20})
    with pytest.raises(InputError, match="'job'"):
        Greedy().fit(mixed, np.arange(40) % 3 > 0)
