"""Classifiers that decide rounds for several protected attributes, crossed or side by side."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import expit

from attribute_gaps import gaps
from secondlook import (
    CertifiedClassifier,
    ConstrainedLogistic,
    GroupShare,
    PartialFeedbackClassifier,
    Revenue,
    SelectionRateParity,
    load,
    save,
)
from secondlook.core.metrics import by_group
from secondlook.errors import InputError
from secondlook.learners.thresholds import shared_threshold
from secondlook.learners.wrap import fit_likelihood
from secondlook.methods.algorithm1 import learning

pytestmark = pytest.mark.filterwarnings("ignore:No threshold keeps")


def applicants(rng, n):
    """Return features, a frame of two attributes, and outcomes."""
    sex, age = rng.random(n) < 0.5, rng.integers(3, size=n)
    X = rng.normal(size=(n, 3))
    X[:, 0] += 0.8 * sex
    X[:, 1] -= 0.5 * age
    good = (rng.random(n) < expit(1 + X[:, 0] + 0.7 * X[:, 1])).astype(int)
    frame = pd.DataFrame(
        {"sex": np.where(sex, "m", "f"), "age": np.array(["20", "40", "60+"])[age]}
    )
    return X, frame, good


def rounds(classifier, *, convert=lambda frame: frame, n_rounds=4, seed=0):
    rng = np.random.default_rng(seed)
    X, frame, good = applicants(rng, 500)
    accepted = rng.random(500) < expit(1 + X[:, 0])
    classifier.fit(X, good, accepted=accepted, sensitive_features=convert(frame))
    for _ in range(n_rounds):
        X, frame, good = applicants(rng, 300)
        decided = classifier.decide(X, sensitive_features=convert(frame))
        classifier.observe(decided.ids[decided.accepted], good[decided.accepted])
        yield decided, frame


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (PartialFeedbackClassifier, {"strategy": GroupShare()}),
        (PartialFeedbackClassifier, {"fairness": SelectionRateParity(0.1)}),
        (CertifiedClassifier, {"ranks": "within_group", "alpha": 0.3}),
    ],
)
def test_crossing_is_what_a_caller_could_do_by_hand(kind, options):
    def by_hand(frame):
        return (frame["sex"] + ", " + frame["age"]).to_numpy()

    runs = [
        [decided for decided, _ in rounds(kind(random_state=0, **options), convert=convert)]
        for convert in (lambda frame: frame, by_hand, pl.from_pandas)
    ]
    for one, *others in zip(*runs, strict=True):
        for other in others:
            assert np.array_equal(one.accepted, other.accepted)
            assert np.array_equal(one.propensity, other.propensity)


def test_crossed_groups_have_readable_names_and_the_usual_sentences():
    classifier = PartialFeedbackClassifier(random_state=0)
    next(rounds(classifier))
    labels = ["f, 20", "f, 40", "f, 60+", "m, 20", "m, 40", "m, 60+"]
    assert classifier.groups_.tolist() == labels
    X = np.zeros((1, 3))
    with pytest.raises(InputError) as strange:
        classifier.decide(X, sensitive_features=pd.DataFrame({"sex": ["f"], "age": ["80"]}))
    assert str(strange.value) == (
        f"sensitive_features holds the group 'f, 80', which the history does not have; known are "
        f"{', '.join(map(repr, labels))}; map it to one of these, or fit again with a history that "
        f"has it."
    )
    with pytest.raises(InputError, match="fit got the groups 'f, 20', 'f, 40', 'f, 60\\+'"):
        classifier.decide(X)
    rng = np.random.default_rng(0)
    X, frame, good = applicants(rng, 100)
    frame.loc[0] = ["m", "100"]
    with pytest.raises(InputError, match="the group 'm, 100' has one member in the history"):
        classifier.fit(X, good, sensitive_features=frame)
    assert classifier.groups_.tolist() == labels  # what was known is not lost


def test_side_by_side_the_threshold_keeps_the_bound_for_every_attribute(monkeypatch):
    """What the classifier asks for and gets, judged person by person."""
    asked = []

    def watched(score, outcome, weight, group, n_groups, **options):
        point = shared_threshold(score, outcome, weight, group, n_groups, **options)
        asked.append((point, score, outcome, weight, group))
        return point

    monkeypatch.setattr(learning, "shared_threshold", watched)
    levels = ((0,) * 3 + (1,) * 3, (0, 1, 2) * 2)
    worst = {}
    for attributes in ("side_by_side", "crossed"):
        asked.clear()
        classifier = PartialFeedbackClassifier(
            fairness=SelectionRateParity(0.12),
            attributes=attributes,
            utility=Revenue(200, 300),
            split="cross",
            random_state=0,
        )
        for _ in rounds(classifier):
            pass
        assert classifier.rounds_[-1].disparity == asked[-1][0].disparity
        used = {"side_by_side": levels, "crossed": (tuple(range(6)),)}[attributes]
        for point, score, outcome, weight, group in asked:
            accepted = (score >= point.thresholds[group]).astype(float)
            found = max(gaps(SelectionRateParity, accepted, outcome, weight, group, used))
            assert point.disparity == pytest.approx(found)
            assert not point.feasible or found <= 0.12 + 1e-9
            worst.setdefault(attributes, []).append(found)
    assert worst["side_by_side"] != worst["crossed"]


def test_side_by_side_the_fit_keeps_the_bound_for_every_attribute():
    learner = ConstrainedLogistic(fairness=SelectionRateParity(0.03))
    for kind in (PartialFeedbackClassifier, CertifiedClassifier):
        classifier = kind(
            learner=learner, attributes="side_by_side", group_mode="blind", random_state=0
        )
        for _ in rounds(classifier):
            pass
        assert classifier.learner.fairness.attributes == ()  # the caller's own stays as it was
        fitted = classifier._learner if kind is CertifiedClassifier else classifier._learners[0]
        assert fitted.fairness.attributes == ((0, 0, 0, 1, 1, 1), (0, 1, 2, 0, 1, 2))
    # In the certified one everybody counts alike, so that its fit can be judged on its rows.
    past, own = classifier._history, classifier._engines[0].rows
    X, group = np.vstack([past.X, own.X]), np.concatenate([past.group, own["group"]])
    good, alike = np.concatenate([past.outcome, own["outcome"]]), np.ones(len(X))
    likelihood, _ = fit_likelihood(fitted, X, good, alike, group, 6)
    levels = fitted.fairness.attributes
    found = gaps(SelectionRateParity, likelihood.score(X, group), good, alike, group, levels)
    assert max(found) <= 0.03 + 1e-5
    free = ConstrainedLogistic().fit(X, good).predict_proba(X)[:, 1]
    assert min(gaps(SelectionRateParity, free, good, alike, group, levels)) > 0.06


def test_side_by_side_with_thresholds_per_group_is_refused():
    options = {"attributes": "side_by_side", "thresholds": "per_group"}
    with pytest.raises(InputError, match=r"needs thresholds='shared', got 'per_group'; share them"):
        next(rounds(PartialFeedbackClassifier(fairness=SelectionRateParity(), **options)))
    next(rounds(PartialFeedbackClassifier(**options)))  # without a constraint, by combination
    allowed = r"attributes must be one of \('crossed', 'side_by_side'\), got 'each'"
    with pytest.raises(InputError, match=allowed):
        next(rounds(CertifiedClassifier(attributes="each")))


@pytest.mark.parametrize("attributes", ["crossed", "side_by_side"])
@pytest.mark.parametrize("kind", [PartialFeedbackClassifier, CertifiedClassifier])
def test_counts_go_by_attribute_or_by_combination(kind, attributes):
    classifier = kind(attributes=attributes, group_mode="audit", random_state=0)
    expected = [
        (decided.round, row.attribute, row.group, row.n_people, row.n_accepted)
        for decided, frame in rounds(classifier)
        for row in by_group(decided.accepted, frame, attributes=attributes)
    ]
    counted = [tuple(vars(one).values())[:5] for one in classifier.group_counts_]
    assert counted == expected
    assert len(counted) == 4 * (6 if attributes == "crossed" else 5)


@pytest.mark.parametrize("attributes", ["crossed", "side_by_side"])
def test_attributes_are_kept_in_files(attributes, tmp_path):
    classifier = PartialFeedbackClassifier(
        attributes=attributes,
        fairness=SelectionRateParity(0.1),
        learner=ConstrainedLogistic(fairness=SelectionRateParity(0.1)),
        random_state=0,
    )
    for _ in rounds(classifier, n_rounds=2):
        pass
    save(classifier, tmp_path / "file")
    loaded = load(tmp_path / "file")
    assert loaded.groups_.tolist() == classifier.groups_.tolist()
    assert loaded.group_counts_ == classifier.group_counts_
    rng = np.random.default_rng(5)
    for _ in range(3):
        X, frame, good = applicants(rng, 200)
        one, other = (c.decide(X, sensitive_features=frame) for c in (classifier, loaded))
        assert np.array_equal(one.accepted, other.accepted)
        for c in (classifier, loaded):
            c.observe(one.ids[one.accepted], good[one.accepted])
    assert repr(loaded.rounds_) == repr(classifier.rounds_)
