"""A small stream of two groups, and what every baseline must keep whatever it does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import clone

from fairchance.errors import InputError, UnknownIdError
from fairchance.simulate.run import run
from fairchance_lab.datasets import load
from fairchance_lab.paper.experiment import paper_experiment

N = 240


@dataclass(frozen=True)
class Earned:
    """Revenue a round (200 a good person, −500 a bad one), and shares over all rounds."""

    revenue: float
    fdr: float
    acceptance: float


def on_german(method, seed=0):
    """Return what a method earns in one run of the paper's German credit experiment."""
    world = paper_experiment("german").world.build(load("german"), seed)
    past = world.history()
    method = clone(method).fit(
        past.people.X,
        past.outcomes,
        accepted=past.accepted,
        sensitive_features=past.people.group,
    )
    results = list(run(method, world))
    accepted = np.concatenate([one.decided.accepted for one in results])
    good = np.concatenate([one.applicants.outcome for one in results]) == 1
    n_good, n_bad = (accepted & good).sum(), (accepted & ~good).sum()
    revenue = (200 * n_good - 500 * n_bad) / len(results)
    return Earned(float(revenue), n_bad / max(1, accepted.sum()), float(accepted.mean()))


def people(n, rng):
    """Return features, groups and outcomes."""
    X = rng.normal(size=(n, 3))
    group = np.where(rng.random(n) < 0.35, "B", "A")
    good = rng.random(n) < 1 / (1 + np.exp(-0.7 - 1.4 * X[:, 0] + 0.7 * X[:, 1]))
    return X, group, good.astype(int)


def started(method, seed=0, n=400):
    """Return a method fitted to a history that accepted by the first feature."""
    X, group, good = people(n, np.random.default_rng([seed, 1]))
    accepted = X[:, 0] > -0.4
    return clone(method).fit(X, good, accepted=accepted, sensitive_features=group)


def play(method, rounds=4, seed=0, lie=False, shuffled=False):
    """Return the accepted of each round as sets of ids, and the propensities by id.

    ``lie`` changes the outcome of everybody rejected, ``shuffled`` the order of rows and of
    outcomes.
    """
    X, group, good = people(400, np.random.default_rng([seed, 1]))
    accepted = X[:, 0] > -0.4
    past = np.where(accepted, good, 1 - good if lie else good)
    order = np.random.default_rng(5).permutation(400) if shuffled else np.arange(400)
    method = clone(method).fit(
        X[order],
        past[order],
        accepted=accepted[order],
        sensitive_features=group[order],
        ids=order,
    )
    chosen, propensity = [], []
    for t in range(rounds):
        X, group, good = people(N, np.random.default_rng([seed, 2, t]))
        ids = 1000 + N * t + np.arange(N)
        order = np.random.default_rng(t).permutation(N) if shuffled else np.arange(N)
        batch = method.decide(X[order], sensitive_features=group[order], ids=ids[order])
        known = {int(one): t for one in batch.ids[batch.accepted]}
        names = np.array(sorted(known, reverse=shuffled))
        method.observe(names, good[names - ids[0]])
        chosen.append(set(known))
        propensity.append(batch.propensity[np.argsort(order)])
    return chosen, np.concatenate(propensity)


def check_promises(method):
    """Run what every baseline must pass."""
    chosen, propensity = play(method)
    assert 0 < sum(map(len, chosen)) < 4 * N
    again, same = play(method, lie=True)
    assert again == chosen
    np.testing.assert_array_equal(same, propensity)
    assert play(method, shuffled=True)[0] == chosen
    taken = np.isin(1000 + np.arange(4 * N), list(set().union(*chosen)))
    assert not taken[propensity == 0].any()
    assert taken[propensity == 1].all()
    if method.propensity_known:
        assert not np.isnan(propensity).any()

    fitted = started(method)
    for t in range(6):
        X, group, good = people(N, np.random.default_rng([9, t]))
        batch = fitted.decide(X, sensitive_features=group)
        if not batch.accepted.all():
            break
        fitted.observe(batch.ids, good)
    for unknown in (batch.ids[~batch.accepted][0], 10**6):
        with pytest.raises(UnknownIdError, match=str(unknown)):
            fitted.observe([unknown], [1])
    p = fitted.acceptance_probability(X, sensitive_features=group)
    assert p.shape == (N,)
    assert np.all((p >= 0) & (p <= 1))
    known = ~np.isnan(batch.propensity)
    np.testing.assert_allclose(p[known], batch.propensity[known], atol=1e-12)
    before = fitted.accepts(X, sensitive_features=group)
    fitted.observe(batch.ids[batch.accepted], 1 - good[batch.accepted])
    # What has come is learned by the next decision, not by asking.
    np.testing.assert_array_equal(fitted.accepts(X, sensitive_features=group), before)


def check_refusals(method, wrong):
    """Try each wrong parameter, and expect a sentence that names it."""
    for name, value in wrong:
        with pytest.raises(InputError, match=name):
            started(clone(method).set_params(**{name: value}))
