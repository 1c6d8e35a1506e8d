"""Many classes: what may change, be shuffled or saved without changing a decision."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from claims import claims, claims_classifier, go, started
from secondlook import (
    GroupShare,
    PartialFeedbackClassifier,
    Revenue,
    load,
    save,
)
from secondlook.methods.many_classes import ManyClassClassifier
from small_worlds import lender_world


@pytest.mark.parametrize("seed", range(3))
def test_two_classes_decide_as_the_two_class_classifier(seed):
    """The same people, draws and probabilities, round by round, and not those of another worth."""

    def decisions(kind, **options):
        world = lender_world(seed, n_batch=300, n_rounds=6)
        past = world.history()
        classifier = kind(
            learner=LogisticRegression(), strategy=GroupShare(), random_state=seed, **options
        ).fit(
            past.people.X,
            past.outcomes,
            accepted=past.accepted,
            sensitive_features=past.people.group,
        )
        made = []
        for batch in world.batches():
            people = batch.applicants.people
            decided = classifier.decide(people.X, sensitive_features=people.group)
            classifier.observe(
                decided.ids[decided.accepted], batch.applicants.outcome[decided.accepted]
            )
            made.append(decided)
        return made, classifier.rounds_

    worth = Revenue(gain=200, loss=300)
    two, two_rounds = decisions(PartialFeedbackClassifier, utility=worth)
    many, many_rounds = decisions(ManyClassClassifier, utility=np.reshape(worth.gamma, (2, 2)))
    for one, other in zip(two, many, strict=True):
        assert np.array_equal(one.accepted, other.accepted)
        assert np.array_equal(one.exploit, other.exploit)
        assert np.allclose(one.score, other.score, rtol=0, atol=1e-11)
        assert np.allclose(one.propensity, other.propensity, rtol=0, atol=1e-9)
        assert np.array_equal(other.decision == 1, other.accepted)
    fdr = [[record.estimated_fdr for record in rounds[1:]] for rounds in (two_rounds, many_rounds)]
    assert np.allclose(*fdr)
    other_worth, _ = decisions(ManyClassClassifier, utility=Revenue(gain=200, loss=2000))
    assert any(
        not np.array_equal(one.accepted, other.accepted)
        for one, other in zip(two, other_worth, strict=True)
    )


def test_outcomes_of_the_rejected_change_nothing():
    def decisions(instead):
        rng = np.random.default_rng(3)
        X, outcome, group = claims(600, rng)
        accepted = X[:, 1] > 0
        classifier = claims_classifier().fit(
            X, np.where(accepted, outcome, instead), accepted=accepted, sensitive_features=group
        )
        return [one.propensity for one, _ in go(classifier, rng)]

    assert all(map(np.array_equal, decisions("honest"), decisions("never heard of")))


def test_order_of_rows_and_of_outcomes_does_not_matter():
    def decisions(shuffled):
        rng, order = np.random.default_rng(5), np.random.default_rng(6)

        def permutation(n):
            return order.permutation(n) if shuffled else np.arange(n)

        X, outcome, group = claims(500, rng)
        at = permutation(500)
        classifier = claims_classifier().fit(
            X[at],
            outcome[at],
            accepted=(X[:, 1] > 0)[at],
            sensitive_features=group[at],
            ids=at,
        )
        made = {}
        for t in range(1, 5):
            X, outcome, group = claims(300, rng)
            at = permutation(300)
            decided = classifier.decide(X[at], sensitive_features=group[at], ids=1000 * t + at)
            who = permutation(300)
            for part in np.array_split(who[decided.accepted[who]], 3 if shuffled else 1):
                classifier.observe(decided.ids[part], outcome[at][part])
            made |= dict(zip(decided.ids.tolist(), decided.decision.tolist(), strict=True))
        return made

    assert decisions(shuffled=False) == decisions(shuffled=True)


@pytest.mark.parametrize("learner", [None, LogisticRegression()], ids=["default", "scikit-learn"])
def test_a_saved_classifier_goes_on_as_it_was(tmp_path, learner):
    classifier, rng = started(learner=learner)
    go(classifier, rng, n_rounds=2)
    path = tmp_path / "claims.secondlook"
    save(classifier, path)
    again = load(path)
    assert repr(again.rounds_) == repr(classifier.rounds_)
    one, other = (go(c, np.random.default_rng(9)) for c in (classifier, again))
    for (first, _), (second, _) in zip(one, other, strict=True):
        assert np.array_equal(first.decision, second.decision)
        assert np.array_equal(first.propensity, second.propensity)
    assert repr(again.rounds_) == repr(classifier.rounds_)
