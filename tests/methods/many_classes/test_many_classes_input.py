"""Many classes: classes, decisions, worth and people in every form they may come in."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from claims import CLASSES, UTILITY, claims, claims_classifier
from secondlook.errors import InputError
from secondlook.methods.many_classes import ManyClassClassifier


@parametrize_with_checks(
    [
        ManyClassClassifier(),
        ManyClassClassifier(
            learner=HistGradientBoostingClassifier(max_iter=15), first_round="learned"
        ),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_a_class_that_comes_later_must_be_named():
    rng = np.random.default_rng(0)
    X, outcome, _ = claims(600, rng)
    early = np.where(outcome == "fraud", "sloppy", outcome)
    options = {"classes": ("sloppy", "honest", "fraud"), "first_round": "learned"}
    named = claims_classifier(strategy=None, **options).fit(X, early)
    assert named.classes_.tolist() == sorted(options["classes"])
    assert np.all(named.predict_proba(X)[:, 0] == 0)  # nothing is known of fraud yet
    decided = named.decide(X)
    named.observe(decided.ids[decided.accepted], outcome[decided.accepted])
    assert named.rounds_[0].seen["fraud"] == sum(outcome[decided.accepted] == "fraud") > 0
    named.decide(X)
    assert np.all(named.predict_proba(X)[:, 0] > 0)

    unnamed = ManyClassClassifier(random_state=0).fit(X, early)
    decided = unnamed.decide(X)
    assert decided.accepted.any()
    with pytest.raises(InputError, match=r"outcomes must be among .*got 'fraud'; name a class"):
        unnamed.observe(decided.ids[decided.accepted], ["fraud"] * int(decided.accepted.sum()))
    by_worth = claims_classifier(strategy=None).fit(X, early)  # the utility names all three
    assert by_worth.classes_.tolist() == CLASSES.tolist()
    with pytest.raises(InputError, match=r"y must be among the classes .*got 'fraud'"):
        ManyClassClassifier(classes=("honest", "sloppy")).fit(X, outcome)


def test_a_matrix_follows_the_order_of_names():
    """The same worth as a dict of dicts and as a matrix with rows and columns of any order."""
    rng = np.random.default_rng(0)
    X, outcome, _ = claims(600, rng)
    classes, names = ["sloppy", "fraud", "honest"], ["part", "refuse", "pay"]
    matrix = [[UTILITY[name][one] for one in classes] for name in names]
    by_dict = claims_classifier(strategy=None).fit(X, outcome)
    by_matrix = claims_classifier(
        strategy=None, utility=matrix, decisions=names, classes=classes
    ).fit(X, outcome)
    assert by_matrix.decisions_.tolist() == names
    assert np.array_equal(by_dict.best_decision(X), by_matrix.best_decision(X))
    assert set(by_dict.best_decision(X)) == set(names)
    swapped = claims_classifier(
        strategy=None, utility=matrix, decisions=names, classes=sorted(classes)
    ).fit(X, outcome)
    assert not np.array_equal(by_dict.best_decision(X), swapped.best_decision(X))


def test_numbers_as_classes_and_decisions_of_several_types():
    rng = np.random.default_rng(0)
    X, outcome, _ = claims(600, rng)
    codes = np.searchsorted(CLASSES, outcome)
    classifier = ManyClassClassifier(
        utility={"no": {0: 0, 1: 0, 2: 0}, 1: {0: -20, 1: 5, 2: -2}},
        observed=1,
        random_state=0,
    ).fit(X, codes)
    decided = classifier.decide(X)
    assert set(decided.decision.tolist()) == {"no", 1}
    assert np.array_equal(decided.decision == 1, decided.accepted)
    assert classifier.predict(X).dtype.kind == "i"


def test_past_decisions_in_place_of_accepted():
    rng = np.random.default_rng(0)
    X, outcome, group = claims(600, rng)
    given = np.where(X[:, 1] > 0, np.where(X[:, 0] > 0, "part", "pay"), "refuse")
    by_name = claims_classifier().fit(X, outcome, decisions=given, sensitive_features=group)
    by_flag = claims_classifier().fit(
        X, outcome, accepted=given != "refuse", sensitive_features=group
    )
    batch = {"X": X, "sensitive_features": group}
    assert np.array_equal(by_name.decide(**batch).propensity, by_flag.decide(**batch).propensity)
    with pytest.raises(InputError, match=r"decisions names 'ask', which is not among"):
        claims_classifier().fit(X, outcome, decisions=np.where(given == "pay", "ask", given))
    with pytest.raises(InputError, match=r"if observed= names the decisions"):
        ManyClassClassifier().fit(X, outcome, decisions=given)


def test_frames_in_frames_out():
    rng = np.random.default_rng(0)
    X, outcome, _ = claims(400, rng)
    frame = pd.DataFrame(X, columns=["debt", "income"])
    classifier = claims_classifier(strategy=None).fit(frame, pd.Series(outcome))
    table = classifier.decide(frame).to_frame()
    assert isinstance(table, pd.DataFrame)
    assert table["decision"].isin(UTILITY).all()
    assert len(pd.DataFrame(classifier.rounds_)) == 1
