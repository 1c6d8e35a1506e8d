"""The mean probability of acceptance is the mean over copies of the classifier, round by round."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest

import fairchance as fc
from fairchance.errors import InputError
from small_worlds import lender_world

SIZES = (100, 250, 60, 200)


def algorithm_1(**options):
    options = {"strategy": fc.GroupShare()} | options
    return fc.PartialFeedbackClassifier(random_state=3, **options)


def certified(**options):
    return fc.CertifiedClassifier(horizon=6, random_state=3, **options)


def brute_force(classifier, *, correct=False):
    """Decide rounds of different sizes; return other people and their mean over the policies."""
    world = lender_world(0, n_batch=max(SIZES), n_rounds=len(SIZES) + 1)
    past = world.history()
    classifier.fit(
        past.people.X, past.outcomes, accepted=past.accepted, sensitive_features=past.people.group
    )
    batches = [one.applicants for one in world.batches()]
    others = batches.pop().people
    sum_of = np.zeros(len(others))
    for n, batch in zip(SIZES, batches, strict=True):
        X, group = batch.people.X[:n], batch.people.group[:n]
        decided = classifier.decide(X, sensitive_features=group)
        then = deepcopy(classifier)
        sum_of += n * then.acceptance_probability(others.X, sensitive_features=others.group)
        taken = np.flatnonzero(decided.accepted)
        classifier.observe(decided.ids[taken], batch.outcome[taken])
        if correct:
            with pytest.warns(fc.errors.LearningWarning):
                classifier.correct(decided.ids[taken[:1]], 1 - batch.outcome[taken[:1]])
    return others, sum_of / sum(SIZES)


@pytest.mark.parametrize(
    "classifier",
    [
        algorithm_1(),
        algorithm_1(first_round="drawn", thresholds="per_group"),
        algorithm_1(coverage=fc.SumOfG(), strategy=fc.ScoreWeighted()),
        certified(),
        certified(certify="per_group", floor=0.02),
        certified(ranks="within_group"),
    ],
)
def test_it_is_the_mean_over_the_policies_of_all_rounds(classifier):
    others, mean = brute_force(classifier)
    found = classifier.mean_acceptance(others.X, sensitive_features=others.group)
    np.testing.assert_allclose(found, mean, rtol=1e-9, atol=1e-12)
    last = classifier.acceptance_probability(others.X, sensitive_features=others.group)
    assert np.abs(found - last).max() > 0.01  # the policies differ


def test_policies_before_a_restart_count():
    classifier = certified()
    others, mean = brute_force(classifier, correct=True)
    found = classifier.mean_acceptance(others.X, sensitive_features=others.group)
    np.testing.assert_allclose(found, mean, rtol=1e-9)


@pytest.mark.parametrize("make", [algorithm_1, certified])
def test_it_is_the_same_after_saving(make, tmp_path):
    classifier = make()
    others, _ = brute_force(classifier)
    fc.save(classifier, tmp_path / "kept.skops")
    again = fc.load(tmp_path / "kept.skops")
    one, other = (
        each.mean_acceptance(others.X, sensitive_features=others.group)
        for each in (classifier, again)
    )
    assert np.array_equal(one, other)


@pytest.mark.parametrize("make", [algorithm_1, certified])
def test_no_round_has_no_mean(make, rng):
    X = rng.normal(size=(200, 2))
    classifier = make().fit(X, X[:, 0] > 0, accepted=X[:, 1] > -1)
    with pytest.raises(InputError):
        classifier.mean_acceptance(X)
