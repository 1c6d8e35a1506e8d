"""What is refused, in which words, and what is odd but allowed."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from methods.certified.known_truth import Slope, play, start
from secondlook import CertifiedClassifier
from secondlook.errors import InputError, LearningWarning, UnknownIdError
from secondlook.lab.simulate.populations import draw_applicants


@pytest.fixture
def classifier(rng):
    return start(Slope(), rng, random_state=0)


@pytest.fixture
def batch(rng):
    return draw_applicants(Slope(), 100, rng)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alpha": 0}, "alpha must be a number in (0, 1), got 0."),
        ({"alpha": 1.0}, "alpha must be a number in (0, 1), got 1.0."),
        ({"alpha": "0.1"}, "alpha must be a number in (0, 1), got '0.1'."),
        ({"alpha": float("nan")}, "alpha must be a number in (0, 1), got nan."),
        ({"delta": 0.0}, "delta must be a number in (0, 1), got 0.0."),
        ({"delta": 1.5}, "delta must be a number in (0, 1), got 1.5."),
        ({"floor": -0.01}, "floor must be a number in [0, 0.1], got -0.01."),
        ({"floor": 0.2}, "floor must be a number in [0, 0.1], got 0.2."),
        ({"monitor": 0.6}, "monitor must be a number in [0, 0.5], got 0.6."),
        ({"monitor": None}, "monitor must be a number in [0, 0.5], got None."),
        ({"horizon": 0}, "horizon counts rounds and must be 1 or more, got 0."),
        ({"horizon": 2.5}, "horizon counts rounds and must be 1 or more, got 2.5."),
        ({"patience": 0}, "patience counts rounds and must be 1 or more, got 0."),
        (
            {"ranks": "group"},
            "ranks must be one of ('overall', 'within_group'), got 'group'.",
        ),
        (
            {"certify": "none"},
            "certify must be one of ('overall', 'per_group'), got 'none'.",
        ),
        ({"utility": "accuracy"}, "utility must be a Utility or None, got 'accuracy'."),
    ],
)
def test_settings_out_of_range(rng, options, words):
    with pytest.raises(InputError, match=re.escape(words)):
        start(Slope(), rng, **options)


def test_nobody_is_decided_on_twice(classifier, batch):
    X = batch.people.X
    classifier.decide(X, ids=np.arange(1000, 1100))
    with pytest.raises(
        InputError,
        match="2 of 3 ids were decided on before, first 1000",
    ):
        classifier.decide(X[:3], ids=[1000, 1099, 5000])
    assert len(classifier.rounds_) == 1
    assert classifier.decide(X[:3], ids=[5000, 5001, 5002]).round == 2  # nothing was recorded


def test_outcomes_that_nobody_can_have(classifier, batch):
    decided = classifier.decide(batch.people.X, ids=np.arange(1000, 1100))
    rejected = decided.ids[~decided.accepted]
    taken = decided.ids[decided.accepted]
    for ids, words in (
        ([taken[0], rejected[0]], f"1 of 2 ids were rejected, first {rejected[0]}"),
        ([taken[0], 9999], "1 of 2 ids were never decided on.* first 9999"),
    ):
        with pytest.raises(UnknownIdError, match=words):
            classifier.observe(ids, [1, 1])
    with pytest.raises(InputError, match=f"contradict each other for id {taken[0]}"):
        classifier.observe([taken[0], taken[0]], [0, 1])
    assert classifier._engines[0].known_rows().size == 0
    classifier.observe([taken[0], taken[0]], [1, 1]).observe([taken[0]], [1])
    assert classifier._engines[0].known_rows().size == 1
    classifier.observe([], [])


def test_outcomes_of_the_history_were_told_with_fit(batch):
    accepted = np.arange(100) % 2 == 0
    classifier = CertifiedClassifier().fit(
        batch.people.X, batch.outcome, accepted=accepted, ids=np.arange(100)
    )
    with pytest.raises(UnknownIdError, match="1 of 1 ids belong to the history, first 0"):
        classifier.observe([0], [1])
    with pytest.raises(UnknownIdError, match="were rejected"):
        classifier.observe([1], [1])
    with pytest.raises(InputError, match="were decided on before, first 7"):
        classifier.decide(batch.people.X[:1], ids=[7])


def test_a_history_without_rejected_people_warns(batch):
    X, y = batch.people.X, batch.outcome
    with pytest.warns(LearningWarning, match="No applicant of the history was rejected"):
        classifier = CertifiedClassifier(random_state=0).fit(X, y)
    assert classifier.decide(X).round == 1
    learner = HistGradientBoostingClassifier(max_iter=5)
    CertifiedClassifier(learner=learner).fit(X, y)  # which has nothing to learn of selection


def test_a_failed_fit_leaves_everything_as_it_was(classifier, batch):
    X = batch.people.X
    classifier.decide(X)
    with pytest.raises(ValueError, match=r".+"):
        classifier.fit(X, np.full(100, 2.5))
    assert len(classifier.rounds_) == 1
    assert classifier.decide(X).round == 2


def test_an_unknown_horizon(rng):
    classifier = start(Slope(), rng, horizon=None)
    policies = play(classifier, Slope(), rng, n=150, rounds=100, truth=False)
    (engine,) = classifier._engines
    assert policies[-1].certified
    assert [ladder.frozen for ladder in engine.ladders] == sorted(
        ladder.frozen for ladder in engine.ladders
    )
    assert len(engine.ladders) == 6  # 1, 4, 8, 16, then 40 and 80
    assert engine.delta_spent < 0.1


def test_small_and_uneven_batches(rng):
    classifier = start(Slope(), rng)
    for n in (1, 3, 200, 1, 50):
        people = draw_applicants(Slope(), n, rng)
        decided = classifier.decide(people.people.X)
        assert np.all((decided.propensity >= 0) & (decided.propensity <= 1))
        classifier.observe(decided.ids[decided.accepted], people.outcome[decided.accepted])
    assert len(classifier.rounds_) == 5


def test_before_any_round_nobody_is_accepted(classifier, batch):
    assert not classifier.accepts(batch.people.X).any()
    decided = classifier.decide(batch.people.X)
    assert np.array_equal(classifier.accepts(batch.people.X), decided.exploit)
    assert np.all(decided.propensity[decided.exploit] == 1)


@pytest.mark.filterwarnings("ignore:No applicant of the history was rejected")
@parametrize_with_checks(
    [
        CertifiedClassifier(),
        CertifiedClassifier(ranks="within_group", floor=0.01, horizon=10),
        CertifiedClassifier(certify="per_group"),
        CertifiedClassifier(learner=HistGradientBoostingClassifier(max_iter=20)),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
