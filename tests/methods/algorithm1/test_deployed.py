"""What decided the last round, as the classifiers tell it to whoever keeps a record."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import secondlook as sl
from secondlook.errors import LearningWarning
from small_worlds import lender_world


def lived(classifier, n_rounds, **options):
    """Return a classifier after some rounds, and the last of them with its outcomes."""
    world = lender_world(0, n_rounds=max(1, n_rounds), **options)
    past = world.history()
    history = {"accepted": past.accepted, "sensitive_features": past.people.group}
    classifier.fit(past.people.X, past.outcomes, **history)
    decided = outcome = None
    for one in [*world.batches()][:n_rounds]:
        people, outcome = one.applicants.people, one.applicants.outcome
        decided = classifier.decide(people.X, sensitive_features=people.group)
        classifier.observe(decided.ids[decided.accepted], outcome[decided.accepted])
    return classifier, decided, outcome


@pytest.mark.parametrize("kind", [sl.PartialFeedbackClassifier, sl.CertifiedClassifier])
def test_before_any_round_nothing_is_deployed(kind):
    with pytest.raises(NotFittedError):
        _ = kind().deployed_
    assert not hasattr(kind(), "deployed_")
    assert not lived(kind(random_state=0), 0)[0].deployed_


def test_algorithm_1_follows_the_past_first_and_then_what_it_has_learned():
    first, decided, _ = lived(sl.PartialFeedbackClassifier(random_state=0), 1)
    assert first.deployed_.follows_past
    assert first.deployed_.n_final <= 1
    later, decided, _ = lived(sl.PartialFeedbackClassifier(random_state=0), 3)
    deployed = later.deployed_
    assert not deployed.follows_past
    assert deployed.policy is later.policies_[-1]
    assert deployed.n_final == len(later.policies_) - 1  # the last may still be extended
    assert tuple(deployed.f.thresholds) == later.rounds_[-1].thresholds
    assert np.array_equal(decided.threshold, np.full(len(decided), deployed.f.thresholds[0]))


def test_the_policy_of_a_round_stays_what_it_was_while_outcomes_come():
    classifier, decided, outcome = lived(sl.PartialFeedbackClassifier(random_state=0), 2)
    before = classifier.deployed_
    name = decided.ids[decided.accepted][:1]
    classifier.correct(name, 1 - outcome[decided.accepted][:1])
    after = classifier.deployed_
    assert after.f is before.f
    assert after.policy is before.policy
    assert (after.follows_past, after.n_final) == (before.follows_past, before.n_final)
    with pytest.raises(AttributeError):
        before.f = None


@pytest.mark.parametrize(("certify", "n"), [("overall", 1), ("per_group", 2)])
def test_the_certified_method_tells_a_rung_for_each_certificate(certify, n):
    classifier = sl.CertifiedClassifier(alpha=0.4, delta=0.3, certify=certify, random_state=0)
    classifier, decided, _ = lived(classifier, 3, n_batch=500)
    deployed = classifier.deployed_
    assert len(deployed) == n
    assert tuple(one.record for one in deployed) == classifier.rounds_[-n:]
    for one in deployed:
        assert one.ladder.grid[one.rung] == one.record.share
        assert one.certified == (one.record.status == "certified")
        assert one.ladder.frozen <= one.record.round == 3
        assert (one.restarts, one.stage_began) == (0, 1)
    assert decided.certified == all(one.certified for one in deployed)


def test_a_restart_is_told_at_once_and_the_round_stays_what_it_was():
    classifier, decided, outcome = lived(sl.CertifiedClassifier(random_state=0), 2)
    (before,) = classifier.deployed_
    first = np.flatnonzero(decided.accepted)[:1]
    with pytest.warns(LearningWarning, match=f"the evidence of {before.n_tested} outcomes is"):
        classifier.correct(decided.ids[first], 1 - outcome[first])
    (after,) = classifier.deployed_
    assert (after.restarts, after.stage_began, after.n_tested) == (1, 3, 0)
    assert (after.ladder, after.rung, after.record) == (before.ladder, before.rung, before.record)
