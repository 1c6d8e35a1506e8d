"""The promise of docs/guarantees.md on populations with and without good policies."""

from __future__ import annotations

import numpy as np
import pytest

from fairchance import CertifiedClassifier
from fairchance.simulate.populations import Lender, constrained_optimum, draw_applicants
from methods.certified.controls import HistoryTrusted, PlugIn, WeightsDropped, with_engine
from methods.certified.known_truth import (
    ALPHA,
    DELTA,
    QUICK,
    UTILITY,
    Flat,
    Slope,
    playing,
    rngs,
    start,
    too_many,
)

CONTROL_RUNS = 15
# In a population where nothing can be ranked, a history is as often wrong as right.
pytestmark = pytest.mark.filterwarnings("ignore:The history ranks")


def null_run(rng, rounds, **options):
    """Return whether a run is ever certified although every policy just breaks the bound."""
    population = Flat()
    classifier = start(population, rng, **options)
    policies = playing(classifier, population, rng, rounds=rounds, truth=False)
    return any(policy.certified for policy in policies)


def test_null_runs_are_seldom_certified():
    """Nine runs of 24 fail it, by the exact binomial: a rate of one half does so in 92 of 100."""
    certified = sum(null_run(rng, 20, learner=QUICK) for rng in rngs(20, 24))
    assert not too_many(certified, 24, DELTA)


@pytest.mark.long
def test_null_runs_are_seldom_certified_in_300_full_runs():
    """Exact binomial; a false alarm of this test has probability 0.001."""
    certified = sum(null_run(rng, 39, learner=None) for rng in rngs(21, 300))
    assert not too_many(certified, 300, DELTA)


def violating_runs(method, **options):
    """Return in how many runs some certified round broke the bound, by the true P(good)."""
    population, count = Slope(), 0
    for rng in rngs(11, CONTROL_RUNS):
        classifier = start(population, rng, n_history=1500, method=method, **options)
        certified = (
            policy.fdr
            for policy in playing(classifier, population, rng, n=300, rounds=30)
            if policy.certified
        )
        first = next(certified, None)
        assert first is not None
        count += first > ALPHA or any(fdr > ALPHA for fdr in certified)  # to the first that does
    return count


@pytest.mark.parametrize("learner", [QUICK, pytest.param(None, marks=pytest.mark.long)])
def test_certified_rounds_keep_the_bound(learner):
    """Fails if the exact binomial rejects a rate of δ, at a false-alarm rate of 0.05."""
    violating = violating_runs(CertifiedClassifier, learner=learner)
    assert not too_many(violating, CONTROL_RUNS, DELTA, false_alarm=0.05)


@pytest.mark.parametrize("broken", [PlugIn, WeightsDropped, HistoryTrusted])
def test_controls_break_the_bound(broken):
    assert violating_runs(with_engine(broken), learner=QUICK) >= 12


def test_late_utility_comes_close_to_the_constrained_optimum():
    population, n, rounds = Lender(), 1000, 30
    best = constrained_optimum(population, UTILITY, ALPHA, rng=np.random.default_rng(0))
    assert best.fdr == pytest.approx(ALPHA, abs=0.001)  # the bound binds
    shares = []
    for rng in rngs(12, 2):
        classifier = start(population, rng, n_history=1000, horizon=rounds)
        late = []
        for t in range(rounds):
            batch = draw_applicants(population, n, rng)
            decided = classifier.decide(batch.people.X, sensitive_features=batch.people.group)
            taken = decided.accepted
            classifier.observe(decided.ids[taken], batch.outcome[taken])
            if t >= rounds - 8:
                assert decided.certified
                good = batch.probability_good
                late.append(UTILITY.expected(decided.propensity, good).mean())
        shares.append(np.mean(late) / best.utility)
    assert np.mean(shares) >= 0.85
    assert min(shares) >= 0.75
