"""Which cells count as known, when they become so, and that they stay so."""

from __future__ import annotations

import numpy as np
import pytest

from methods.finite.small_domain import DOMAIN, PAST, REVENUE, draw, run
from secondlook import (
    SummedAcceptance,
    SumOfG,
    Uniform,
)
from secondlook.methods.finite import CountedOutcomes, FiniteClassifier, NormalisedG


@pytest.mark.parametrize(
    "coverage",
    [NormalisedG(0.2), CountedOutcomes(5), SummedAcceptance(threshold=0.3), SumOfG(threshold=0.9)],
)
def test_known_cells_stay_known(coverage):
    classifier = run(np.random.default_rng(0), coverage=coverage, n_rounds=8)
    regions = np.array([policy.exploit for policy in classifier.policies_])
    assert np.all(regions[1:] >= regions[:-1])
    assert regions[-1].sum() > regions[0].sum()


def test_what_f_0_covers_stays_known_while_outcomes_are_still_to_come(rng):
    classifier = FiniteClassifier(REVENUE, coverage=CountedOutcomes(10), random_state=0)
    classifier.fit(None, None, domain=(DOMAIN.X, DOMAIN.group), past_policy=PAST)
    for n_known in (0, 1):
        people, good = draw(rng, 300)
        batch = classifier.decide(people.X, sensitive_features=people.group)
        assert np.array_equal(classifier.policies_[-1].exploit, PAST > 0), n_known
        one = np.flatnonzero(batch.accepted & (good == 1))[:1]
        classifier.observe(batch.ids[one], good[one])


def test_coverage_by_counting_is_the_number_of_outcomes():
    classifier = run(np.random.default_rng(0), coverage=CountedOutcomes(8), n_rounds=5)
    assert np.array_equal(classifier.coverage_, classifier.counts_.outcomes)
    new = classifier.policies_[-1].exploit & ~classifier.policies_[0].exploit
    assert new.any()
    assert np.all(classifier.counts_.outcomes[new] > 8)


def test_summed_acceptance_is_the_sum_of_what_the_policies_accept():
    classifier = run(
        np.random.default_rng(3), coverage=SummedAcceptance(reference_size=100), n_rounds=4
    )
    summed = sum(4 * policy.acceptance for policy in classifier.policies_)
    assert classifier.coverage_ == pytest.approx(PAST + summed)


def test_a_cell_without_outcomes_is_not_given_up():
    """Coverage alone would move cells on that nobody has ever shown an outcome of."""
    options = {"coverage": NormalisedG(0.05), "strategy": Uniform(), "n_rounds": 2, "n": 40}
    careful, literal = (
        run(np.random.default_rng(0), min_outcomes=least, **options) for least in (1, 0)
    )
    unseen = literal.counts_.outcomes == 0
    assert literal.policies_[-1].exploit[unseen].any()
    assert not careful.policies_[-1].exploit[careful.counts_.outcomes == 0].any()


def test_a_new_cell_is_unexplored():
    classifier = run(np.random.default_rng(0))
    X = np.vstack([np.tile([0, 0], (50, 1)), np.tile([7, 7], (50, 1))])
    batch = classifier.decide(X, sensitive_features=["a"] * 100)
    assert batch.exploit[:50].all()
    assert not batch.exploit[50:].any()
    assert classifier.rounds_[-1].n_cells == 9
    assert np.all(batch.propensity[50:] > 0)
    assert not classifier.accepts([[7, 7], [8, 8]], sensitive_features=["a", "a"]).any()
    assert classifier.coverage_of([[9, 9]], sensitive_features=["a"]).tolist() == [0.0]
    assert classifier.rounds_[-1].n_cells == 9  # asking adds no cell
