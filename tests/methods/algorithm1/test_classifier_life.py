"""What a classifier lives through: refits, changed options, odd learners, odd outcomes."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from secondlook import (
    ConstrainedLogistic,
    FdrBudget,
    MeanPastScore,
    PartialFeedbackClassifier,
    PerGroup,
    PositiveRate,
    PowerSchedule,
    Revenue,
    Uniform,
)
from secondlook.errors import InputError, LearningWarning, UnknownIdError
from secondlook.lab.simulate.populations import Lender
from secondlook.lab.simulate.run import run


def test_a_history_that_cannot_be_read_leaves_what_was_known(make_classifier):
    classifier, world = make_classifier(n_batch=100, n_rounds=1)
    (batch,) = world.batches()
    people, truth = batch.applicants.people, batch.applicants.outcome
    decided = classifier.decide(people.X, sensitive_features=people.group)
    for wrong in (people.X * np.nan, people.X[:, :2]):
        with pytest.raises(ValueError, match=r"NaN|group"):
            classifier.fit(wrong, truth, sensitive_features=["A"] * 99 + ["C"])
    classifier.observe(decided.ids[decided.accepted], truth[decided.accepted])
    assert classifier.decide(people.X, sensitive_features=people.group).round == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"coverage": MeanPastScore()}, "coverage was .* when the history was fitted and is"),
        ({"learner": LogisticRegression()}, "learner was None when the history was fitted"),
        ({"random_state": 7}, "random_state was 0 when the history was fitted and is 7 now"),
        ({"thresholds": "per_gruop"}, "thresholds must be one of"),
    ],
)
def test_options_that_may_not_change_between_rounds(make_classifier, change, message):
    classifier, _ = make_classifier()
    people = Lender().draw(100, np.random.default_rng(0))
    before = classifier.get_params(deep=False)
    with pytest.raises(ValueError, match=message):
        classifier.set_params(**change).decide(people.X, sensitive_features=people.group)
    classifier.set_params(**before).decide(people.X, sensitive_features=people.group)
    classifier.set_params(budget=FdrBudget(0.3), strategy=Uniform())  # these may
    assert classifier.decide(people.X, sensitive_features=people.group).round == 2


def test_overconfident_scores_keep_the_bound(rng):
    """Scores that pile up at 1 leave no room for a threshold that is a little too low."""
    n = 4000
    truth = rng.random(n) < 0.6
    signal = np.where(truth, 1.0, -1.0)[:, None] * 0.35
    X = signal + rng.normal(size=(n, 1)) + 0.3 * rng.normal(size=(n, 20))
    classifier = PartialFeedbackClassifier(
        utility=PositiveRate(), learner=GaussianNB(), random_state=0
    ).fit(X[:2000], truth[:2000])
    accepted = classifier.accepts(X[2000:])
    f = classifier._learned
    assert accepted.any()
    assert (1 - truth[2000:][accepted]).mean() < f.estimated_fdr + 0.06


def test_a_likelihood_per_group_needs_the_group(make_classifier):
    for split in ("half", "cross"):
        classifier, _ = make_classifier(learner=PerGroup(), split=split)
        people = Lender().draw(50, np.random.default_rng(0))
        with pytest.raises(ValueError, match="sensitive_features is missing"):
            classifier.predict_proba(people.X)


def test_a_past_classifier_must_say_what_accepted_means(rng):
    X = rng.normal(size=(300, 1))
    taken, y = X[:, 0] > 0, (rng.random(300) < 0.7).astype(int)
    words = LogisticRegression().fit(X, np.where(taken, "accepted", "rejected"))
    with pytest.raises(
        ValueError, match=r"classes 0 and 1 \(or False and True\), got \['accepted'"
    ):
        PartialFeedbackClassifier().fit(X, y, accepted=taken, past_policy=words)
    past = LogisticRegression().fit(pd.DataFrame(X, columns=["x"]), taken)
    classifier = PartialFeedbackClassifier(random_state=0).fit(
        X, y, accepted=taken, past_policy=past
    )
    decided = classifier.decide(X)
    assert np.mean(decided.exploit == taken) > 0.95


def test_the_past_is_imitated_without_the_constraints_on_the_future(rng):
    X = rng.normal(size=(600, 2))
    y = (rng.random(600) < 0.6).astype(int)
    accepted = rng.random(600) < 1 / (1 + np.exp(-2 * X[:, 0]))
    tight = ConstrainedLogistic(max_fdr=0.39)
    for learner in (tight, make_pipeline(StandardScaler(), tight)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            classifier = PartialFeedbackClassifier(learner=learner, random_state=0)
            classifier.fit(X, y, accepted=accepted)
        score = classifier._past.likelihood.score(X, np.zeros(600, np.intp))
        assert score.mean() == pytest.approx(accepted.mean(), abs=0.02)


@pytest.mark.parametrize("learner", [None, RandomForestClassifier(10, random_state=0)])
def test_order_of_the_history_does_not_matter(rng, learner):
    X = rng.normal(size=(300, 2))
    y = (rng.random(300) < 0.7).astype(int)
    accepted = rng.random(300) < 1 / (1 + np.exp(-2 * X[:, 0]))
    decided = []
    for order in (np.arange(300), rng.permutation(300)):
        classifier = PartialFeedbackClassifier(learner=learner, random_state=0)
        classifier.fit(X[order], y[order], accepted=accepted[order], ids=order)
        decided.append(classifier.decide(X, ids=np.arange(1000, 1300)))
    one, other = decided
    assert np.array_equal(one.accepted, other.accepted)
    assert np.array_equal(one.score, other.score)
    assert np.array_equal(one.propensity, other.propensity)


def test_observing_nothing_changes_nothing(make_classifier):
    classifier, _ = make_classifier()
    known = classifier.n_outcomes_
    assert classifier.observe([], []).n_outcomes_ == known


@pytest.mark.parametrize(
    "y",
    [
        [1, None, 0, None, 1, 0],
        pd.array([True, None, False, None, True, False], dtype="boolean"),
        pl.Series([True, None, False, None, True, False]),
        np.array([1, "unknown", 0, "rejected", 1, 0], dtype=object),
        np.array([1, np.nan, 0, np.nan, 1, 0]),
    ],
    ids=["none", "pandas", "polars", "words", "nan"],
)
def test_the_rejected_may_have_anything_in_place_of_an_outcome(y):
    X = np.arange(6.0)[:, None]
    accepted = [True, False, True, False, True, True]
    classifier = PartialFeedbackClassifier(random_state=0).fit(X, y, accepted=accepted)
    assert len(classifier.classes_) == 2
    assert classifier.n_outcomes_ == 4


def test_what_was_logged_cannot_be_changed(make_classifier):
    classifier, world = make_classifier(n_batch=50, n_rounds=1)
    for _ in run(classifier, world):
        pass
    with pytest.raises(ValueError, match="read-only"):
        classifier.policies_[0].thresholds[:] = 2


def test_accepting_nobody_is_said_aloud(rng):
    """Here because the good outcome was taken for the bad one."""
    X = rng.normal(size=(600, 1))
    y = np.where(rng.random(600) < 0.9, "repaid", "written off")
    classifier = PartialFeedbackClassifier(random_state=0).fit(X, y)
    with pytest.warns(LearningWarning, match=r"check that 'written off' is the good outcome"):
        decided = classifier.decide(X)
    assert not decided.accepted.any()
    assert "pos_label" in classifier.rounds_[0].note
    named = PartialFeedbackClassifier(pos_label="repaid", random_state=0).fit(X, y)
    assert repr(named.decide(X)).startswith("Decisions(round 1: 600 people, ")


def test_thresholds_follow_the_schedule_without_new_outcomes(make_classifier):
    """A run that the bound stopped goes on once the schedule allows more, though no news comes."""
    options = {"weights": "none", "budget": FdrBudget(0.15, PowerSchedule(start=0.001, power=2.5))}
    classifier, world = make_classifier(n_batch=400, n_rounds=7, **options)
    for batch in world.batches():
        people = batch.applicants.people
        classifier.decide(people.X, sensitive_features=people.group)
    cuts = [one.thresholds[0] for one in classifier.rounds_]
    assert cuts[6] < cuts[1] - 0.1
    assert classifier.rounds_[6].n_exploited > classifier.rounds_[1].n_exploited + 50


def test_options_that_may_change_between_rounds_count_at_once(make_classifier):
    classifier, world = make_classifier(n_batch=400, n_rounds=3)
    cuts = []
    for batch, loss in zip(world.batches(), (300, 300, 5000), strict=True):
        people = batch.applicants.people
        classifier.set_params(utility=Revenue(gain=200, loss=loss), weights="none")
        classifier.set_params(budget=FdrBudget(0.5, 0.4))
        classifier.decide(people.X, sensitive_features=people.group)
        cuts.append(classifier.rounds_[-1].thresholds[0])
    assert cuts[2] > cuts[1]


def test_accepts_is_the_classifier_that_decided(make_classifier):
    classifier, world = make_classifier(n_rounds=2)
    for batch in world.batches():  # round 1 follows the past, round 2 what was learned
        people = batch.applicants.people
        decided = classifier.decide(people.X, sensitive_features=people.group)
        accepts = classifier.accepts(people.X, sensitive_features=people.group)
        assert np.array_equal(accepts[decided.exploit], decided.accepted[decided.exploit])


def test_a_corrected_outcome_counts_as_if_it_had_been_right_at_once(make_classifier):
    right, world = make_classifier(n_rounds=1)
    wrong, _ = make_classifier(n_rounds=1)
    (batch,) = world.batches()
    people, truth = batch.applicants.people, batch.applicants.outcome
    for classifier, told in ((right, truth), (wrong, 1 - truth)):
        decided = classifier.decide(people.X, sensitive_features=people.group)
        classifier.observe(decided.ids[decided.accepted], told[decided.accepted])
    wrong.correct(decided.ids[decided.accepted], truth[decided.accepted])
    again = Lender().draw(200, np.random.default_rng(0))
    one, other = (
        classifier.decide(again.X, sensitive_features=again.group) for classifier in (right, wrong)
    )
    assert np.array_equal(one.score, other.score)
    assert np.array_equal(one.accepted, other.accepted)


def test_only_recorded_outcomes_can_be_corrected(make_classifier):
    classifier, world = make_classifier(n_rounds=1)
    (batch,) = world.batches()
    people = batch.applicants.people
    decided = classifier.decide(people.X, sensitive_features=people.group)
    first = decided.ids[decided.accepted][:1]
    with pytest.raises(InputError, match="nothing to correct"):
        classifier.correct(first, [1])
    classifier.observe(first, [1])
    with pytest.raises(InputError, match=r"recorded already and differs .* with correct"):
        classifier.observe(first, [0])
    with pytest.raises(UnknownIdError, match="were rejected"):
        classifier.correct(decided.ids[~decided.accepted][:1], [1])


def test_folds_are_halves_that_depend_on_seed_and_id_only():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 1)), rng.integers(0, 2, 2000)
    folds = []
    for seed, order in ((1, np.arange(2000)), (1, rng.permutation(2000)), (2, np.arange(2000))):
        classifier = PartialFeedbackClassifier(random_state=seed)
        classifier.fit(X[order], y[order], ids=np.arange(2000)[order])
        folds.append(set(np.flatnonzero(classifier.fold_of(np.arange(2000)) == 0).tolist()))
        kept = classifier._people.parts[0].X[:, 0]
        assert np.array_equal(kept, X[sorted(folds[-1]), 0])
    assert folds[0] == folds[1] != folds[2]
    assert abs(len(folds[0]) - 1000) < 5 * np.sqrt(500)  # five standard deviations
    assert abs(len(folds[0] & folds[2]) - 500) < 5 * np.sqrt(375)


@pytest.mark.parametrize("ids", [[-3, -2, -1], [7, 8, 9], [9, 3, 5], [-5, 4, 6]])
def test_the_next_ids_come_after_the_largest(ids):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    clf = PartialFeedbackClassifier(random_state=0).fit(X, y, ids=np.arange(-100, -40))
    clf.decide(X[:3], ids=ids)
    assert clf.decide(X[:2]).ids.tolist() == [max(0, max(ids) + 1), max(0, max(ids) + 1) + 1]
