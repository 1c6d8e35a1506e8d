"""Small batches, empty groups, and evidence that comes while deciding."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from methods.certified.known_truth import Slope, play, start
from secondlook import CertifiedClassifier
from secondlook.errors import LearningWarning
from secondlook.methods.certified.evidence import DriftMonitor


def test_a_learner_that_takes_nobody_less_than_one_person_decides(rng):
    X = rng.normal(size=(400, 1))
    y = (rng.random(400) < 0.8).astype(int)
    learner = HistGradientBoostingClassifier(max_iter=5)
    classifier = CertifiedClassifier(learner=learner, random_state=0)
    assert len(classifier.fit(X, y, accepted=X[:, 0] > -1).decide(X)) == 400


def test_a_tiny_first_batch_does_not_make_the_pilot_generous(rng):
    classifier = start(Slope(), rng, random_state=0)
    classifier.decide(rng.normal(size=(1, 1)))
    assert classifier.decide(rng.normal(size=(2000, 1))).accepted.mean() < 0.4


def test_drift_is_noticed_when_patience_ends_while_deciding(rng):
    classifier = start(Slope(), rng, patience=1, random_state=0)
    play(classifier, Slope(), rng, n=300, rounds=10)
    assert classifier.rounds_[-1].status == "certified"
    for _ in range(12):  # nothing comes back: everybody counts as bad
        batch = classifier.decide(rng.normal(size=(300, 1)))
    assert classifier._engines[0].stage.restarts > 0
    assert not batch.certified


def test_the_monitor_works_for_large_alpha():
    monitor = DriftMonitor(0.6)
    monitor.add(np.array([True] * 90 + [False] * 10))
    assert monitor.log_wealth() > np.log(20)


def test_corrections_restart_once_and_not_again_while_nothing_is_tested(rng):
    classifier = start(Slope(), rng, random_state=0)
    ids = []
    for _ in range(3):
        X = rng.normal(size=(300, 1))
        batch = classifier.decide(X)
        taken = batch.ids[batch.accepted]
        classifier.observe(taken, np.ones(taken.size, int))
        ids.extend(taken.tolist())
    with pytest.warns(LearningWarning, match="had been tested"):
        classifier.correct(ids[:1], [0])
    for name in ids[1:10]:  # and warnings are errors here
        classifier.correct([name], [0])
    assert classifier._engines[0].stage.restarts == 1


def test_each_group_is_scored_by_its_own_model(rng):
    """The score helps one group and harms the other: each model learns its own slope."""
    X = rng.normal(size=(4000, 1))
    group = rng.choice(["A", "B"], 4000)
    slope = np.where(group == "A", 2.0, -2.0)
    good = (rng.random(4000) < 1 / (1 + np.exp(-1 - slope * X[:, 0]))).astype(int)
    accepted = rng.random(4000) < 0.7
    classifier = CertifiedClassifier(certify="per_group", random_state=0)
    classifier.fit(X, good, accepted=accepted, sensitive_features=group)
    decided = classifier.decide(X, sensitive_features=group)
    likely = classifier.predict_proba(X, sensitive_features=group)[:, 1]
    for name, sign in (("A", 1), ("B", -1)):
        mine = group == name
        for score in (decided.score, likely, decided.propensity):
            assert sign * np.corrcoef(score[mine], X[mine, 0])[0, 1] > 0.3


@pytest.mark.parametrize("missing", ["A", "B"])
def test_a_group_may_be_missing_from_a_batch(rng, missing):
    X = rng.normal(size=(600, 1))
    group = np.where(np.arange(600) % 2 == 0, "A", "B")
    good = (rng.random(600) < 0.8).astype(int)
    classifier = CertifiedClassifier(certify="per_group", random_state=0)
    classifier.fit(X, good, accepted=X[:, 0] > -0.5, sensitive_features=group)
    there = group != missing
    assert len(classifier.decide(X[there], sensitive_features=group[there])) == 300
    assert classifier.decide(X, sensitive_features=group).accepted.mean() < 0.6
