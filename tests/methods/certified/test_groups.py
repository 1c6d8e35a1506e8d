"""Groups: equal rates by ranks within them, a certificate for each, and a floor for everybody."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from methods.certified.known_truth import ALPHA, rngs, start
from secondlook.lab.simulate.people import People
from secondlook.lab.simulate.populations import draw_applicants

N, ROUNDS = 800, 20


@dataclass(frozen=True)
class TwoGroups:
    """x ~ N(0, 1) in A and N(−gap, 1) in B; worse by ``bias`` in B at the same x."""

    gap: float = 0.8
    bias: float = 0.0
    features = ("x",)
    groups = ("A", "B")

    def draw(self, n, rng):
        in_b = rng.random(n) < 0.4
        return People((rng.normal(size=n) - self.gap * in_b)[:, None], np.where(in_b, "B", "A"))

    def probability_good(self, people):
        return expit(1.2 + 2 * people.X[:, 0] - self.bias * (people.group == "B"))

    def of_group(self, name, n=4000):
        x = norm.ppf((np.arange(n) + 0.5) / n) - self.gap * (name == "B")
        return People(x[:, None], np.full(n, name))


def choice_of(classifier, name):
    """Return what the last round deployed for a group."""
    return classifier._choices["AB".index(name) if len(classifier._choices) > 1 else 0]


def policy_of(classifier, population, name):
    """Return the probabilities that a group's people have in the last round, and P(good)."""
    people, choice = population.of_group(name), choice_of(classifier, name)
    standing = choice.ladder.locate(people.X, np.full(len(people), "AB".index(name)))
    return choice.ladder.policy(standing, choice.rung), population.probability_good(people)


def breaks_the_bound(classifier, population, name):
    """Say whether a certified policy makes too many mistakes in a group."""
    if not choice_of(classifier, name).certified:
        return False
    pi, good = policy_of(classifier, population, name)
    return pi @ (1 - good) / pi.sum() > ALPHA


def rounds(classifier, population, rng, n_rounds=ROUNDS):
    for _ in range(n_rounds):
        batch = draw_applicants(population, N, rng)
        decided = classifier.decide(batch.people.X, sensitive_features=batch.people.group)
        classifier.observe(decided.ids[decided.accepted], batch.outcome[decided.accepted])
        yield decided, batch


def test_ranks_within_groups_give_equal_rates():
    population = TwoGroups()
    gaps = {}
    for ranks in ("within_group", "overall"):
        for rng in rngs(41, 2):
            classifier = start(population, rng, ranks=ranks, horizon=ROUNDS)
            for _ in rounds(classifier, population, rng):
                rates = [policy_of(classifier, population, name)[0].mean() for name in "AB"]
                gaps.setdefault(ranks, []).append((rates[0] - rates[1]) / max(rates))
    assert np.abs(gaps["within_group"]).max() <= 0.2
    assert np.abs(gaps["within_group"]).mean() <= 0.07
    assert np.mean(gaps["overall"]) >= 0.3  # the control


def test_each_group_keeps_its_own_bound():
    """Group B is worse at the same x: one certificate for all says nothing of it."""
    population = TwoGroups(gap=0.3, bias=0.8)
    violating = {"per_group": 0, "overall": 0}
    n_certified = 0
    for certify in violating:
        for rng in rngs(42, 4):
            classifier = start(population, rng, certify=certify, horizon=ROUNDS)
            broken = False
            for decided, _ in rounds(classifier, population, rng):
                broken |= any(breaks_the_bound(classifier, population, name) for name in "AB")
                if broken:
                    break
                if certify == "per_group":
                    reports = classifier.rounds_[-2:]
                    assert [one.group for one in reports] == ["A", "B"]
                    assert {one.round for one in reports} == {decided.round}
                    every = all(one.status == "certified" for one in reports)
                    assert decided.certified == every
                    n_certified += every
            violating[certify] += broken
    assert n_certified > 20
    assert violating["per_group"] == 0
    assert violating["overall"] >= 3  # the control


def test_groups_share_delta():
    rng = np.random.default_rng(0)
    classifier = start(TwoGroups(), rng, certify="per_group", delta=0.1, monitor=0.04)
    assert [engine.rules.delta for engine in classifier._engines] == [0.05, 0.05]
    assert [engine.rules.monitor for engine in classifier._engines] == [0.02, 0.02]


@pytest.mark.parametrize("floor", [0.003, 0.05])
@pytest.mark.parametrize("options", [{}, {"ranks": "within_group"}, {"certify": "per_group"}])
def test_everybody_has_the_floor(floor, options):
    population, rng = TwoGroups(), np.random.default_rng(1)
    classifier = start(population, rng, floor=floor, **options)
    for decided, _ in rounds(classifier, population, rng, 6):
        assert decided.propensity.min() >= floor
        assert decided.propensity.max() == 1
        assert decided.propensity.min() <= 1.1 * floor + 1e-3
    rng = np.random.default_rng(1)
    classifier = start(population, rng, **options)
    assert next(rounds(classifier, population, rng))[0].propensity.min() < floor


def test_a_certificate_for_each_of_one_group_is_one_for_all():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 1))
    y = (rng.random(400) < expit(1 + 2 * X[:, 0])).astype(int)
    accepted = rng.random(400) < 0.7
    together = []
    for certify in ("overall", "per_group"):
        classifier = start(TwoGroups(), rng, certify=certify, random_state=2)
        classifier.fit(X, y, accepted=accepted)
        together.append(classifier.decide(X).propensity)
    assert np.array_equal(*together)
