"""The promises on a population whose truth is known in closed form (docs/guarantees.md)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import wilcoxon

from fairchance import FdrBudget, GroupShare, PartialFeedbackClassifier, Revenue
from fairchance.simulate.populations import Lender, constrained_optimum
from fairchance.simulate.run import run
from small_worlds import lender_world

ALPHA, SEEDS, ROUNDS, BATCH = 0.15, 20, 40, 1000
UTILITY = Revenue(gain=200, loss=300)  # the bound on mistakes binds: break-even is at 60 %
# Selected on features only; the well-to-do are over-represented.
POPULATION = Lender(past_intercept=1.0, past_slope=3.0, past_penalty=1.0)


pytestmark = pytest.mark.xdist_group("population")  # one worker runs the population once


@dataclass
class Summary:
    """Figures of one run, from the true P(good | x), not from the outcomes drawn."""

    pooled_fdr: float
    late_share: float  # utility in the last quarter over the constrained optimum
    known_first: float
    known_last: float
    excess: float  # mean over rounds of FDR among the exploited minus α_exploit


def summary(seed, optimum, **options):
    world = lender_world(
        seed, n_history=2 * BATCH, n_batch=BATCH, n_rounds=ROUNDS, population=POPULATION
    )
    past = world.history()
    classifier = PartialFeedbackClassifier(
        UTILITY, FdrBudget(ALPHA), strategy=GroupShare(), random_state=seed, **options
    ).fit(
        past.people.X,
        past.outcomes,
        accepted=past.accepted,
        sensitive_features=past.people.group,
    )
    bad = taken = 0.0
    utility, known, excess = [], [], []
    for result in run(classifier, world):
        decided, p = result.decided, result.applicants.probability_good
        bad, taken = bad + (1 - p[decided.accepted]).sum(), taken + decided.accepted.sum()
        utility.append(UTILITY.expected(decided.accepted, p).mean())
        known.append(decided.exploit.mean())
        if decided.round > 1:  # round 1 is f_0's
            exploited = decided.accepted & decided.exploit
            excess.append((1 - p[exploited]).mean() - classifier.rounds_[-1].alpha_exploit)
    late = np.mean(utility[-ROUNDS // 4 :]) / optimum
    return Summary(bad / taken, late, known[0], known[-1], float(np.mean(excess)))


@pytest.fixture(scope="module")
def runs():
    optimum = constrained_optimum(POPULATION, UTILITY, ALPHA, rng=np.random.default_rng(0)).utility
    return {
        weights: [summary(seed, optimum, weights=weights) for seed in range(SEEDS)]
        for weights in ("acceptance", "none")
    }


def mean(runs, name):
    return np.mean([getattr(one, name) for one in runs])


def test_mistakes_stay_under_the_bound(runs):
    assert mean(runs["acceptance"], "pooled_fdr") <= ALPHA + 0.01
    assert max(one.pooled_fdr for one in runs["acceptance"]) <= ALPHA + 0.01


def test_the_exploit_region_grows(runs):
    assert all(one.known_last > one.known_first + 0.2 for one in runs["acceptance"])


def test_utility_comes_close_to_that_of_full_knowledge(runs):
    assert mean(runs["acceptance"], "late_share") >= 0.95


def test_without_weights_the_exploited_break_their_own_bound(runs):
    """The accepted over-represent the good, so an unweighted estimate of mistakes is too low."""
    weighted = np.array([one.excess for one in runs["acceptance"]])
    unweighted = np.array([one.excess for one in runs["none"]])
    assert weighted.mean() <= 0
    assert np.median(unweighted) > 0
    # Seed by seed, on the same people: a false alarm has probability 0.01.
    assert wilcoxon(unweighted, weighted, alternative="greater").pvalue < 0.01
