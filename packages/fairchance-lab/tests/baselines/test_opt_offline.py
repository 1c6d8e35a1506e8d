"""OPT-OFFLINE against brute force over all cuts and scikit-learn's own fits."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fairchance import Revenue
from fairchance.simulate.run import run
from fairchance_lab.baselines.opt_offline import OptOffline
from small_worlds import lender_world

MONEY = Revenue(gain=200, loss=500)


def people(n, seed=0, strength=1.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    chance = 1 / (1 + np.exp(-0.4 - strength * X[:, 0] + 0.8 * X[:, 1]))
    return X, (rng.random(n) < chance).astype(np.int8)


def best_by_brute_force(score, y, alpha, gain=200, loss=500):
    """Return the largest revenue of a cut whose FDR is at most α, trying every one."""
    best = 0.0
    for cut in np.unique(score):
        taken = y[score >= cut]
        if (taken == 0).mean() <= alpha:
            best = max(best, gain * (taken == 1).sum() - loss * (taken == 0).sum())
    return best


def revenue(accepted, y, gain=200, loss=500):
    return gain * (y[accepted] == 1).sum() - loss * (y[accepted] == 0).sum()


def halves(n, seed):
    """Return the rows that fit and the rows that set the cut."""
    return np.array_split(np.random.default_rng(seed).permutation(n), 2)


@pytest.mark.parametrize("alpha", [0.05, 0.15, 0.3])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_offline_cut_is_the_best_on_the_held_out_half(alpha, seed):
    X, y = people(500, seed)
    reference = OptOffline(MONEY, alpha, random_state=seed).fit(X, y)
    fit_on, set_on = halves(500, seed)
    model = LogisticRegression(C=1.0, tol=1e-9).fit(X[fit_on], y[fit_on])
    score = model.predict_proba(X[set_on])[:, 1]
    best = best_by_brute_force(score, y[set_on], alpha)
    assert best > 0
    accepted = reference.decide(X[set_on]).accepted
    assert revenue(accepted, y[set_on]) == best
    assert (y[set_on][accepted] == 0).mean() <= alpha


def test_the_offline_scores_are_those_of_a_fit_to_the_other_half():
    X, y = people(400)
    reference = OptOffline(MONEY, random_state=3).fit(X, y)
    model = LogisticRegression(C=1.0, tol=1e-9).fit(X[halves(400, 3)[0]], y[halves(400, 3)[0]])
    decided = reference.decide(X)
    assert decided.score == pytest.approx(model.predict_proba(X)[:, 1], abs=1e-4)
    assert decided.exploit.all()
    assert np.array_equal(decided.propensity, decided.accepted)


def test_the_offline_rule_is_fixed():
    X, y = people(300)
    reference = OptOffline(MONEY).fit(X, y)
    first = reference.decide(X[:100])
    reference.observe(first.ids, 1 - y[:100])
    reference.correct(first.ids, y[:100])
    second = reference.decide(X[:100])
    assert np.array_equal(first.accepted, second.accepted)
    assert np.array_equal(reference.accepts(X[:100]), first.accepted)
    assert not set(first.ids) & set(second.ids)
    assert (first.round, second.round) == (1, 2)
    assert reference.decide(X[:2], ids=["a", "b"]).ids.tolist() == ["a", "b"]


def test_nobody_is_accepted_where_no_cut_is_allowed():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 2)), (rng.random(400) < 0.05).astype(np.int8)
    assert not OptOffline(MONEY, 0.01).fit(X, y).decide(X).accepted.any()


def test_the_offline_fit_can_hold_the_bound_too():
    X, y = people(400)
    fit_on, _ = halves(400, 0)
    shares = []
    for place in ("thresholds", "both"):
        reference = OptOffline(MONEY, 0.1, bounds_in=place, random_state=0)
        p = reference.fit(X, y).decide(X[fit_on]).score
        shares.append(p[y[fit_on] == 0].sum() / p.sum())
    assert shares[1] <= 0.1 + 1e-4 < shares[0]


def test_with_the_bound_in_the_fit_the_offline_cut_earns_most_and_nothing_else():
    X, y = people(400)
    _, set_on = halves(400, 0)
    reference = OptOffline(MONEY, 0.02, bounds_in="fit", random_state=0).fit(X, y)
    score = reference.decide(X[set_on]).score
    worth = np.where(y[set_on] == 1, MONEY.gain_good, MONEY.gain_bad)
    earned = [worth[score >= cut].sum() for cut in np.append(score, np.inf)]
    accepted = reference.accepts(X[set_on])
    assert worth[accepted].sum() == pytest.approx(max(earned))
    assert (y[set_on][accepted] == 0).mean() > 0.02


def test_the_group_is_seen_where_methods_see_it(rng):
    """Only the group tells good from bad: without it nobody can be accepted."""
    X = rng.normal(size=(800, 1))
    group = rng.choice(["a", "b"], 800)
    good = np.where(group == "b", 1, (rng.random(800) < 0.3).astype(int)).astype(np.int8)
    blind = OptOffline(Revenue(gain=200, loss=500)).fit(X, good)
    assert blind.decide(X).accepted.mean() < 0.1
    seeing = OptOffline(Revenue(gain=200, loss=500), groups=("a", "b"))
    seeing.fit(X, good, sensitive_features=group)
    assert np.array_equal(seeing.decide(X, sensitive_features=group).accepted, group == "b")


def test_it_accepts_by_one_fixed_rule():
    world = lender_world(5, n_rounds=2)
    past = world.full_history()
    method = OptOffline(Revenue(gain=200, loss=300)).fit(past.people.X, past.outcome)
    for result in run(method, world):
        p = method.acceptance_probability(result.applicants.people.X)
        assert np.array_equal(p, result.decided.accepted)
