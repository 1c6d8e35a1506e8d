"""The offline references against brute force over all cuts and scikit-learn's own fits."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from secondlook import Revenue
from secondlook.errors import InputError
from secondlook.lab.baselines.opt_offline import OfflineOptimum, OracleOptimum
from secondlook.lab.simulate.run import run
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
    reference = OfflineOptimum(MONEY, alpha, random_state=seed).fit(X, y)
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
    reference = OfflineOptimum(MONEY, random_state=3).fit(X, y)
    model = LogisticRegression(C=1.0, tol=1e-9).fit(X[halves(400, 3)[0]], y[halves(400, 3)[0]])
    decided = reference.decide(X)
    assert decided.score == pytest.approx(model.predict_proba(X)[:, 1], abs=1e-4)
    assert decided.exploit.all()
    assert np.array_equal(decided.propensity, decided.accepted)


def test_the_offline_rule_is_fixed():
    X, y = people(300)
    reference = OfflineOptimum(MONEY).fit(X, y)
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
    assert not OfflineOptimum(MONEY, 0.01).fit(X, y).decide(X).accepted.any()


def test_the_offline_fit_can_hold_the_bound_too():
    X, y = people(400)
    fit_on, _ = halves(400, 0)
    shares = []
    for constrained in (False, True):
        reference = OfflineOptimum(MONEY, 0.1, constrain_fit=constrained, random_state=0)
        p = reference.fit(X, y).decide(X[fit_on]).score
        shares.append(p[y[fit_on] == 0].sum() / p.sum())
    assert shares[1] <= 0.1 + 1e-4 < shares[0]


@pytest.fixture(scope="module")
def stream():
    return [people(n, seed) for seed, n in enumerate((120, 120, 90, 150), start=5)]


def whole(stream):
    return tuple(np.concatenate(parts) for parts in zip(*stream, strict=True))


def test_the_oracle_scores_each_batch_by_a_fit_to_all_others(stream):
    oracle = OracleOptimum(MONEY).fit(stream)
    for left_out, (X, _) in enumerate(stream):
        rest = whole([batch for i, batch in enumerate(stream) if i != left_out])
        model = LogisticRegression(C=1.0, tol=1e-9).fit(*rest)
        assert oracle.decide(X).score == pytest.approx(model.predict_proba(X)[:, 1], abs=1e-4)


def test_hindsight_scores_all_batches_by_one_fit_to_all(stream):
    oracle = OracleOptimum(MONEY, cross_fit=False).fit(stream)
    model = LogisticRegression(C=1.0, tol=1e-9).fit(*whole(stream))
    for X, _ in stream:
        assert oracle.decide(X).score == pytest.approx(model.predict_proba(X)[:, 1], abs=1e-4)


@pytest.mark.parametrize("cross_fit", [True, False])
@pytest.mark.parametrize("alpha", [0.05, 0.15, 0.25])
def test_the_oracle_cuts_best_on_the_whole_stream_within_the_bound(stream, alpha, cross_fit):
    oracle = OracleOptimum(MONEY, alpha, cross_fit=cross_fit).fit(stream)
    decided = [oracle.decide(X) for X, _ in stream]
    _, y = whole(stream)
    accepted = np.concatenate([one.accepted for one in decided])
    score = np.concatenate([one.score for one in decided])
    assert (y[accepted] == 0).mean() <= alpha
    assert revenue(accepted, y) == best_by_brute_force(score, y, alpha) > 0


def test_the_oracle_refuses_a_batch_that_is_not_the_next(stream):
    oracle = OracleOptimum(MONEY).fit(stream)
    with pytest.raises(InputError, match=r"knows the 4 batches .*batch 1 is not the next") as error:
        oracle.decide(stream[2][0])
    assert str(error.value).endswith("fit it to this one.")
    for X, _ in stream:
        oracle.decide(X)
    with pytest.raises(InputError, match="batch 5 is not the next of them"):
        oracle.decide(stream[0][0])


def test_the_oracle_needs_two_batches(stream):
    with pytest.raises(InputError, match="at least 2 batches, got 1"):
        OracleOptimum(MONEY).fit(stream[:1])


def test_references_go_through_a_world():
    world = lender_world(0, n_batch=100, n_rounds=3)
    batches = [(one.applicants.people.X, one.applicants.outcome) for one in world.batches()]
    results = list(run(OracleOptimum(MONEY).fit(batches), world))
    assert len(results) == 3
    accepted = np.concatenate([one.decided.accepted for one in results])
    outcome = np.concatenate([one.applicants.outcome for one in results])
    assert accepted.any()
    assert (outcome[accepted] == 0).mean() <= 0.15


def test_the_oracle_refuses_other_people_of_the_same_number(stream):
    oracle = OracleOptimum(MONEY).fit(stream)
    with pytest.raises(InputError, match="batch 1 is not the next"):
        oracle.decide(stream[1][0])


def test_references_see_the_group_where_methods_do(rng):
    """Only the group tells good from bad: without it nobody can be accepted."""
    X = rng.normal(size=(800, 1))
    group = rng.choice(["a", "b"], 800)
    good = np.where(group == "b", 1, (rng.random(800) < 0.3).astype(int)).astype(np.int8)
    blind = OfflineOptimum(Revenue(gain=200, loss=500)).fit(X, good)
    assert blind.decide(X).accepted.mean() < 0.1
    seeing = OfflineOptimum(Revenue(gain=200, loss=500), groups=("a", "b"))
    seeing.fit(X, good, sensitive_features=group)
    assert np.array_equal(seeing.decide(X, sensitive_features=group).accepted, group == "b")
    oracle = OracleOptimum(Revenue(gain=200, loss=500), groups=("a", "b"))
    halves = [(X[:400], good[:400]), (X[400:], good[400:])]
    oracle.fit(halves, sensitive_features=[group[:400], group[400:]])
    accepted = oracle.decide(X[:400]).accepted
    assert accepted[group[:400] == "b"].all()
    assert accepted[group[:400] == "a"].mean() < 0.2
