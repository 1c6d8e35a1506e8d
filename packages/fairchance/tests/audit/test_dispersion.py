"""The test between rounds: its level, its power, and what it must not compare."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit
from scipy.stats import binom, chi2_contingency
from sklearn.linear_model import LogisticRegression

from fairchance import CertifiedClassifier, Revenue
from fairchance.audit.dispersion import LEVEL, dispersion

RUNS = 1000


def lives(seed, *, sigma=0.0, n=300, rates=(0.1,), rounds=12):
    """Yield counts of bad and known outcomes and the policy of each round, for many programs."""
    rng = np.random.default_rng(seed)
    policy = np.repeat(np.arange(len(rates)), rounds // len(rates))
    for _ in range(RUNS):
        known = rng.integers(n // 2, 2 * n, policy.size)
        share = np.array(rates)[policy] + sigma * rng.normal(size=policy.size)
        yield rng.binomial(known, np.clip(share, 0, 1)), known, policy


def n_lights(lives, shock=0.0):
    found = [dispersion(*life, shock) for life in lives]
    return sum(one is not None and one.p < LEVEL for one in found)


@pytest.mark.parametrize("n", [60, 300, 3000])
@pytest.mark.parametrize("rates", [(0.1,), (0.05, 0.1, 0.2)])
def test_independent_applicants_give_a_false_light_at_the_stated_level(n, rates):
    """Also if the policy changed, and its share of bad with it; false alarm 0.001."""
    lights = n_lights(lives(1, n=n, rates=rates))
    assert binom.sf(lights - 1, RUNS, LEVEL) > 1e-3


def test_comparing_rounds_of_different_policies_is_false():
    some = ((bad, known, [0] * len(known)) for bad, known, _ in lives(2, rates=(0.08, 0.12)))
    assert binom.sf(n_lights(some) - 1, RUNS, LEVEL) < 1e-6


@pytest.mark.parametrize("sigma", [0.02, 0.04])
def test_shocks_of_the_stated_size_give_no_light(sigma):
    lights = n_lights(lives(3, sigma=sigma, rates=(0.15,)), shock=sigma)
    assert binom.sf(lights - 1, RUNS, LEVEL) > 1e-3
    not_told = n_lights(lives(3, sigma=sigma, rates=(0.15,)))
    assert binom.sf(not_told - 1, RUNS, LEVEL) < 1e-6


@pytest.mark.parametrize(
    ("sigma", "n", "least"), [(0.02, 1000, 0.7), (0.03, 400, 0.6), (0.04, 300, 0.8)]
)
def test_a_year_of_shocks_gives_a_light(sigma, n, least):
    assert n_lights(lives(4, sigma=sigma, n=n)) > least * RUNS


def test_it_is_the_test_of_homogeneity(rng):
    known = rng.integers(100, 400, 9)
    bad = rng.binomial(known, 0.2)
    expected = chi2_contingency(np.array([bad, known - bad]), correction=False)
    assert dispersion(bad, known, [0] * 9).p == pytest.approx(expected.pvalue)


def test_the_estimated_shock_is_near_the_truth_and_covers_it():
    found = [dispersion(*life) for life in lives(5, sigma=0.03, n=600)]
    assert np.median([one.shock for one in found]) == pytest.approx(0.03, abs=0.003)
    right = sum(one.low <= 0.03 <= one.high for one in found)
    assert 0.93 < right / RUNS < 0.97
    assert all(one.low <= one.shock <= one.high for one in found)


def test_the_estimated_shock_explains_what_was_seen(rng):
    """With it the light is out; the likelihood of a normal shock has its top nearby."""
    known = np.full(40, 800)
    bad = rng.binomial(known, np.clip(0.15 + 0.04 * rng.normal(size=40), 0, 1))
    found, x = dispersion(bad, known, [0] * 40), bad / known
    assert found.p < LEVEL < dispersion(bad, known, [0] * 40, found.shock).p

    def minus_log_likelihood(sigma):
        v = x.mean() * (1 - x.mean()) / 800 + sigma**2
        return (np.log(v) + (x - x.mean()) ** 2 / v).sum()

    best = minimize_scalar(minus_log_likelihood, (0, 0.2), (0, 0.2), method="bounded").x
    assert found.shock == pytest.approx(best, abs=0.003)


@pytest.mark.parametrize(
    ("bad", "known", "policies"),
    [
        ([], [], []),
        ([5], [50], ["a"]),
        ([5, 6], [50, 50], ["a", "b"]),
        ([0, 1], [9, 0], ["a", "a"]),
    ],
)
def test_too_little_is_no_answer(bad, known, policies):
    assert dispersion(bad, known, policies) is None


def program_of(seed, sigma, shock, rounds=24, n=600):
    """Return whether a program with shocks has a light after each round."""
    rng = np.random.default_rng([6, seed])

    def draw(n, shock=0.0):
        X = rng.normal(size=(n, 3))
        bad = expit(-2.2 - 1.2 * X[:, 0] - 0.6 * X[:, 1])
        return X, (rng.random(n) >= bad + shock).astype(int)

    X, good = draw(1500)
    classifier = CertifiedClassifier(
        alpha=0.15,
        learner=LogisticRegression(),
        random_state=seed,
        shock=shock,
        utility=Revenue(200, 600),
    )
    classifier.fit(X, good, accepted=X[:, 0] < 0.3)
    bad, known, policies, lights = [], [], [], []
    for _ in range(rounds):
        X, good = draw(n, sigma * rng.normal())
        decided = classifier.decide(X)
        classifier.observe(decided.ids[decided.accepted], good[decided.accepted])
        record = classifier.rounds_[-1]
        bad.append(int((good[decided.accepted] == 0).sum()))
        known.append(record.n_accepted)
        policies.append((record.tests_began, record.ladder, record.share))
        found = dispersion(bad, known, policies, shock)
        lights.append(found is not None and found.p < LEVEL)
    return lights


@pytest.mark.long
@pytest.mark.parametrize(("sigma", "shock"), [(0.0, 0.0), (0.02, 0.02)])
def test_policies_that_outcomes_choose_give_no_more_lights(sigma, shock):
    """Which rungs stay depends on earlier outcomes; over all looks, at most 10 %."""
    lights = [program_of(seed, sigma, shock) for seed in range(100)]
    assert binom.sf(sum(life[-1] for life in lights) - 1, 100, LEVEL) > 1e-3
    assert binom.sf(sum(map(any, lights)) - 1, 100, 0.1) > 1e-3


@pytest.mark.long
def test_a_program_with_shocks_has_a_light_within_two_years():
    assert sum(program_of(seed, 0.03, 0.0)[-1] for seed in range(20)) >= 15


def test_a_policy_without_outcomes_is_left_out():
    """Warnings are errors here: a share of nothing would be one."""
    alike = [52, 47, 50, 49], [500] * 4, ["a"] * 4
    more = [*alike[0], 0], [*alike[1], 0], [*alike[2], "b"]
    assert dispersion(*more) == dispersion(*alike)
    assert dispersion([0], [0], ["b"]) is None
