"""FAIR-CLF: exploits only, learns from every outcome alike, and holds parity on its rows."""

from __future__ import annotations

import numpy as np
import pytest

from fairchance.learners.logistic import ConstrainedLogistic
from fairchance.simulate.run import run
from fairchance_lab.experiments.methods import ALGORITHM1, make_classifier
from fairchance_lab.experiments.spec import Goal
from small_worlds import lender_world


def started(world, name="fair-clf", **options):
    past = world.history()
    return make_classifier(ALGORITHM1[name], Goal(), options, seed=1).fit(
        past.people.X,
        past.outcomes,
        accepted=past.accepted,
        sensitive_features=past.people.group,
    )


@pytest.fixture
def fits(monkeypatch):
    """Return the weights of rows that each fit was given."""
    weights = []

    def watched(self, X, y, sample_weight=None, **arguments):
        weights.append(sample_weight)
        return real(self, X, y, sample_weight, **arguments)

    real = ConstrainedLogistic.fit
    monkeypatch.setattr(ConstrainedLogistic, "fit", watched)
    return weights


def test_nobody_is_explored_and_everybody_is_known():
    world = lender_world(0)
    method = started(world)
    for result in run(method, world):
        decided = result.decided
        assert decided.exploit.all()
        assert not decided.explored.any()
        assert set(np.unique(decided.propensity)) <= {0.0, 1.0}
        group = result.applicants.people.group
        cuts = dict(zip(method.groups_, method.rounds_[-1].thresholds, strict=True))
        cut = np.array([cuts[name] for name in group])
        clear = np.abs(decided.score - cut) > 1e-5
        assert np.array_equal(decided.accepted[clear], (decided.score >= cut)[clear])
    assert method.n_outcomes_ > world.history().accepted.sum() + 100


def test_every_outcome_so_far_counts_once(fits):
    world = lender_world(1)
    method = started(world)
    known = int(world.history().accepted.sum())
    for result in run(method, world):
        record, weight = method.rounds_[-1], fits[-1]
        used = weight[weight > 0]
        assert used == pytest.approx(1.0)
        assert record.n_outcomes + used.size == known
        assert record.effective_sample_size == pytest.approx(record.n_outcomes)
        assert not record.calibrated
        known += int(result.decided.accepted.sum())
        assert method.n_outcomes_ == known


@pytest.mark.parametrize("difference", [0.05, 0.01])
def test_parity_and_the_bound_hold_on_the_rows_it_learned_from(difference):
    """Recounted on the held-out half of the labelled rows, with the round's own cuts."""
    world = lender_world(2, n_batch=400)
    method = started(world, fairness_difference=difference)
    rounds = run(method, world)
    for _ in range(5):
        next(rounds)
        record = method.rounds_[-1]
        assert record.feasible
        fold = method._people.parts[1]
        learned = fold["round"] < record.round
        rows = learned & fold.known_outcomes()
        X, group, good = fold.X[rows], fold["group"][rows], fold["outcome"][rows] == 1
        score = method._learned.likelihood.score(X, group)
        accepted = score >= np.asarray(record.thresholds)[group]
        assert rows.sum() == record.n_outcomes
        rates = [accepted[group == z].mean() for z in (0, 1)]
        assert abs(rates[0] - rates[1]) <= difference + 1e-9
        assert abs(rates[0] - rates[1]) == pytest.approx(record.disparity)
        assert (~good[accepted]).mean() <= 0.15 + 1e-9
        assert (~good[accepted]).mean() == pytest.approx(record.estimated_fdr)


def test_alpha_is_constant_unless_a_schedule_is_given():
    world = lender_world(3, n_rounds=3)
    constant, scheduled = started(world), started(world, "fair-clf-schedule")
    for method in (constant, scheduled):
        list(run(method, world))
    assert [one.alpha_exploit for one in constant.rounds_] == [0.15] * 3
    want = [0.075 * t**0.2 for t in (1, 2, 3)]
    assert [one.alpha_exploit for one in scheduled.rounds_] == pytest.approx(want)
    for method in (constant, scheduled):
        assert all(one.estimated_fdr <= one.alpha_exploit + 0.001 for one in method.rounds_)


def test_round_1_is_learned_from_the_history():
    world = lender_world(4, n_rounds=1)
    method = started(world)
    list(run(method, world))
    assert method.rounds_[0].n_outcomes > 0
    assert not method.rounds_[0].follows


def test_everybody_is_known_however_unlikely_the_past_was_to_accept_them(rng):
    X = rng.normal(size=(4000, 1))
    good = (rng.random(4000) < 0.7).astype(int)
    method = make_classifier(ALGORITHM1["fair-clf"], Goal(), {})
    group = rng.choice(["a", "b"], 4000)
    method.fit(
        X,
        good,
        accepted=X[:, 0] > 0,
        sensitive_features=group,
        past_policy=lambda X: (X[:, 0] > 0).astype(float),
    )
    assert method.decide(-np.abs(X), sensitive_features=group, unlike_history=True).exploit.all()


def test_it_accepts_for_sure_or_not_at_all():
    world = lender_world(3, n_rounds=3)
    past = world.history()
    method = make_classifier(ALGORITHM1["fair-clf"], Goal(loss=300.0), {}).fit(
        past.people.X,
        past.outcomes,
        accepted=past.accepted,
        sensitive_features=past.people.group,
    )
    for result in run(method, world):
        people = result.applicants.people
        p = method.acceptance_probability(people.X, sensitive_features=people.group)
        assert np.array_equal(p, result.decided.accepted)
