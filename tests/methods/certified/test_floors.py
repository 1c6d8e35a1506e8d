"""A floor by any strategy: its mean, its quotas, that it is frozen, and that the promise holds."""

from __future__ import annotations

import numpy as np
import pytest

from methods.certified.known_truth import ALPHA, start
from secondlook import CertifiedClassifier, EqualGroups, GroupShare, ScoreWeighted, Uniform
from secondlook.errors import InputError
from secondlook.lab.simulate.people import People
from secondlook.lab.simulate.populations import draw_applicants
from secondlook.methods.certified.ladder import Floor

SHARE = 0.02
STRATEGIES = [
    Uniform(),
    ScoreWeighted(),
    ScoreWeighted(beta=0.3),
    GroupShare(),
    GroupShare(reading="product"),
    EqualGroups(),
    ScoreWeighted() * EqualGroups(),
]


class ThreeGroups:
    """x ~ N(0, 1), lower in B and lower still in C, of whom there are few."""

    features = ("x",)
    groups = ("A", "B", "C")

    def draw(self, n, rng):
        z = rng.choice(3, n, p=[0.6, 0.3, 0.1])
        return People((rng.normal(size=n) - 0.5 * z)[:, None], np.array(self.groups)[z])

    def probability_good(self, people):
        return 1 / (1 + np.exp(-1.5 - 2 * people.X[:, 0]))


@pytest.fixture
def people(rng):
    group = rng.choice(3, 3000, p=[0.6, 0.3, 0.1])
    return rng.uniform(0.02, 0.98, 3000) * (1 - 0.3 * group), group


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_the_mean_chance_over_reference_people_is_the_share(strategy, people):
    score, group = people
    floor = Floor.freeze(strategy, SHARE, None, score, group, 3)
    chance = floor.chance(None, score, group)
    assert chance.mean() == pytest.approx(SHARE)
    assert chance.min() > 0


def test_group_share_gives_each_group_its_part(people):
    score, group = people
    chance = Floor.freeze(GroupShare(), SHARE, None, score, group, 3).chance(None, score, group)
    by_score = Floor.freeze(ScoreWeighted(), SHARE, None, score, group, 3)
    for z in range(3):
        assert chance[group == z].mean() == pytest.approx(SHARE)
    assert by_score.chance(None, score, group)[group == 2].mean() < 0.8 * SHARE  # the control


def test_a_frozen_floor_does_not_look_at_the_batch(people):
    score, group = people
    floor = Floor.freeze(GroupShare(), SHARE, None, score, group, 3)
    whole = floor.chance(None, score, group)
    some = np.flatnonzero((group == 2) | (score > 0.7))
    assert np.array_equal(floor.chance(None, score[some], group[some]), whole[some])


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_everybody_can_be_explored_and_ratios_stay_bounded(strategy, rng):
    """What the proof needs of a rung: a fixed policy, and π_j/π_d ≤ exp((q_j − q_d)/τ)."""
    population = ThreeGroups()
    classifier = start(population, rng, floor=SHARE, strategy=strategy, horizon=10)
    for _ in range(4):
        batch = draw_applicants(population, 500, rng)
        decided = classifier.decide(batch.people.X, sensitive_features=batch.people.group)
        classifier.observe(decided.ids[decided.accepted], batch.outcome[decided.accepted])
        assert decided.propensity.min() > 1e-4
        assert decided.propensity.max() <= 1
    group = np.searchsorted(population.groups, batch.people.group)
    for ladder in classifier._engines[0].ladders:
        pi = ladder.policies(ladder.locate(batch.people.X, group))
        for rung in (0, 20, 60):
            apart = np.maximum(0, ladder.grid - ladder.grid[rung]) / ladder.tau
            assert np.all(np.log(pi / pi[:, [rung]]) <= apart + 1e-9)


def test_certified_rounds_keep_the_bound_with_a_floor(rng):
    """The FDR of a certified round counts those whom the floor let in."""
    population = ThreeGroups()
    everybody = draw_applicants(population, 10_000, rng)
    good = everybody.probability_good
    certified, floored = 0, 0.0
    for seed in range(4):
        own = np.random.default_rng(seed)
        classifier = start(population, own, floor=SHARE, strategy=GroupShare(), horizon=20)
        for _ in range(20):
            batch = draw_applicants(population, 800, own)
            decided = classifier.decide(batch.people.X, sensitive_features=batch.people.group)
            classifier.observe(decided.ids[decided.accepted], batch.outcome[decided.accepted])
            if decided.certified:
                p = classifier.acceptance_probability(
                    everybody.people.X, sensitive_features=everybody.people.group
                )
                certified += 1
                assert p @ (1 - good) / p.sum() <= ALPHA
                floored = max(floored, p[good < 0.2].min())
    assert certified > 20
    assert floored > 0


def test_a_function_of_the_users_own_spreads_the_floor(rng):
    X = rng.normal(size=(600, 2))
    good = (X[:, 0] + rng.normal(size=600) > 0).astype(int)

    def near(X, score, group):
        return np.exp(-(X[:, 1] ** 2))

    classifier = CertifiedClassifier(floor=0.05, strategy=near, random_state=0)
    classifier.fit(X, good, accepted=X[:, 1] > -1)
    new = np.array([[-9.0, 0.0], [-9.0, 2.0]])
    p = classifier.decide(np.vstack([new, X])).propensity[:2]
    assert p[0] / p[1] == pytest.approx(np.exp(4), rel=1e-6)


def test_a_strategy_that_leaves_people_out_is_refused(rng):
    X = rng.normal(size=(100, 1))
    good = (X[:, 0] > 0).astype(int)
    classifier = CertifiedClassifier(floor=0.01, strategy=lambda X, s, z: (s > 0.5) * 1.0)
    with pytest.raises(InputError, match="a positive finite number for every candidate"):
        classifier.fit(X, good, accepted=X[:, 0] > -1).decide(X)
    with pytest.raises(InputError, match="strategy must be a Strategy or a function"):
        CertifiedClassifier(floor=0.01, strategy="uniform").fit(X, good, accepted=X[:, 0] > -1)
