"""What all baselines share: who may be told of, keyed coins, learning only before a decision."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fairchance.errors import InputError, UnknownIdError
from fairchance_lab.baselines.base import Baseline, Decided


class Coin(Baseline):
    """Accepts everybody with the share of good seen so far, and counts how often it learned."""

    def __init__(self, *, group_as_feature=False, pos_label=None, random_state=None):
        self.group_as_feature = group_as_feature
        self.pos_label = pos_label
        self.random_state = random_state

    def _start(self, history):
        self.seen = history
        self.n_learned = 0
        self._learn()

    def _learn(self):
        self.n_learned += 1
        self.p = float(self._labelled().outcome.mean())

    def _probabilities(self, people):
        return np.full(len(people), self.p)


class Failing(Coin):
    def _decide(self, batch) -> Decided:
        raise RuntimeError("no decision")


@pytest.fixture
def history(rng):
    X = rng.normal(size=(60, 2))
    accepted = np.arange(60) % 3 > 0
    outcome = np.where(accepted, (np.arange(60) % 2).astype(float), np.nan)
    group = np.where(np.arange(60) % 4, "A", "B")
    return X, outcome, accepted, group


def started(history, seed=0, **options):
    X, outcome, accepted, group = history
    method = Coin(random_state=seed, **options)
    return method.fit(X, outcome, accepted=accepted, sensitive_features=group)


def decided(method, rng, n=200):
    X = rng.normal(size=(n, 2))
    group = np.where(rng.random(n) < 0.5, "A", "B")
    return X, group, method.decide(X, sensitive_features=group)


def test_a_rejected_person_has_no_slot(history, rng):
    method = started(history)
    _, _, batch = decided(method, rng)
    accepted, rejected = batch.ids[batch.accepted], batch.ids[~batch.accepted]
    for ids, named in (
        (rejected[:2], f"2 of 2 ids .*{rejected[0]}"),
        ([accepted[0], rejected[0]], f"1 of 2 ids .*{rejected[0]}"),
        ([10**9], f"1 of 1 ids .*{10**9}"),
        ([0], "1 of 1 ids .* 0"),  # of the history
    ):
        with pytest.raises(UnknownIdError, match=named):
            method.observe(ids, [1] * len(ids))
    assert method.n_outcomes_ == 40
    assert len(method._rejected()) == rejected.size + 20
    assert not hasattr(method._rejected(), "outcome")
    everybody = method._all_applicants()
    assert len(everybody) == 260
    assert not hasattr(everybody, "outcome")


def test_outcomes_of_the_rejected_are_not_read(history):
    X, outcome, accepted, group = history
    answers = []
    for lie in (np.nan, 0.0, 1.0, -7.0):
        told = np.where(accepted, outcome, lie)
        method = Coin(random_state=0).fit(X, told, accepted=accepted, sensitive_features=group)
        answers.append(method.decide(X, sensitive_features=group).accepted.tolist())
        assert method.seen.outcome.size == 40
    assert all(answer == answers[0] for answer in answers)


def test_learning_waits_for_the_next_round(history, rng):
    method = started(history)
    X, group, batch = decided(method, rng)
    before = method.acceptance_probability(X, sensitive_features=group)
    assert before == pytest.approx(0.5)
    method.observe(batch.ids[batch.accepted], np.ones(batch.accepted.sum()))
    assert method.acceptance_probability(X, sensitive_features=group) == pytest.approx(0.5)
    assert method.n_learned == 1
    n = int(batch.accepted.sum())
    _, _, batch = decided(method, rng)
    assert batch.propensity == pytest.approx((20 + n) / (40 + n))
    decided(method, rng)
    assert method.n_learned == 2  # nothing has come since


def test_coins_go_by_id_and_not_by_row(history, rng):
    X = rng.normal(size=(100, 2))
    group = np.where(rng.random(100) < 0.5, "A", "B")
    ids = np.arange(1000, 1100)
    order = rng.permutation(100)
    one = started(history).decide(X, sensitive_features=group, ids=ids)
    other = started(history).decide(X[order], sensitive_features=group[order], ids=ids[order])
    assert one.accepted[order].tolist() == other.accepted.tolist()
    assert 20 < one.accepted.sum() < 80
    seeds = [
        started(history, seed).decide(X, sensitive_features=group, ids=ids).accepted.tolist()
        for seed in (0, 1)
    ]
    assert seeds[0] == one.accepted.tolist() != seeds[1]


def test_coins_have_their_probability_and_are_new_every_round(history, rng):
    method = started(history)
    rounds = [decided(method, rng, 2000)[2].accepted for _ in range(5)]
    heads = int(sum(one.sum() for one in rounds))
    assert stats.binomtest(heads, 10_000, 0.5).pvalue > 1e-4
    assert stats.binomtest(heads, 10_000, 0.45).pvalue < 1e-4  # a wrong probability is noticed
    agree = int((rounds[0] == rounds[1]).sum())
    assert stats.binomtest(agree, 2000, 0.5).pvalue > 1e-4


def test_outcomes_may_come_in_parts_again_and_be_corrected(history, rng):
    whole, parts = started(history), started(history)
    X = rng.normal(size=(100, 2))
    group = np.array(["A", "B"] * 50)
    for method in (whole, parts):
        batch = method.decide(X, sensitive_features=group)
    ids = batch.ids[batch.accepted]
    outcome = (np.arange(ids.size) % 5 > 0).astype(int)
    whole.observe(ids, outcome)
    parts.observe(ids[::2], outcome[::2]).observe(ids[1::2], outcome[1::2])
    parts.observe(ids[:3], outcome[:3])
    one, other = (m.decide(X, sensitive_features=group) for m in (whole, parts))
    assert one.propensity.tolist() == other.propensity.tolist()
    with pytest.raises(InputError, match="correct"):
        parts.observe(ids[:1], 1 - outcome[:1])
    with pytest.raises(InputError, match=f"id.* {ids[0]}"):
        parts.correct([ids[0], ids[0]], [0, 1])
    parts.correct(ids, np.zeros(ids.size))
    assert parts.decide(X, sensitive_features=group).propensity[0] < other.propensity[0]


def test_labelled_rows_know_round_and_propensity(history, rng):
    method = started(history)
    X, _, batch = decided(method, rng)
    ids = batch.ids[batch.accepted]
    method.observe(ids, np.arange(ids.size) % 2)
    rows = method._labelled()
    assert np.isnan(rows.propensity[rows.round == 0]).all()
    own = rows.own()
    assert len(own) == ids.size == (rows.round == 1).sum()
    assert own.propensity == pytest.approx(0.5)
    assert own.X.tolist() == X[batch.accepted].tolist()
    assert own.outcome.tolist() == (np.arange(ids.size) % 2).tolist()


def test_an_id_is_used_once(history, rng):
    method = started(history)
    _, _, batch = decided(method, rng, 10)
    with pytest.raises(InputError, match="10 of 10"):
        method.decide(rng.normal(size=(10, 2)), sensitive_features=["A"] * 10, ids=batch.ids)
    assert decided(method, rng, 10)[2].round == 2


def test_a_round_that_fails_is_no_round(history, rng):
    X, outcome, accepted, group = history
    method = Failing(random_state=0).fit(X, outcome, accepted=accepted, sensitive_features=group)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no decision"):
            method.decide(X, sensitive_features=group)
    assert method._round == 0


def test_a_history_that_cannot_be_read_loses_nothing(history, rng):
    method = started(history)
    decided(method, rng)
    with pytest.raises(InputError, match="class"):
        method.fit(np.zeros((5, 2)), np.ones(5))
    assert decided(method, rng)[2].round == 2


def test_a_setting_must_be_known():
    with pytest.raises(InputError, match=r"Coin.* none.* 'aligned'"):
        Coin.setting("aligned")
