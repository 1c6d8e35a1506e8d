"""ManyClassClassifier: accepted forms of input, and refused ones."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from claims import CLASSES, GOOD, UTILITY, claims, claims_classifier, go, started
from fairchance import FdrBudget, PerGroup, Uniform
from fairchance.errors import InputError, UnknownIdError
from fairchance_lab.many_classes import ManyClassClassifier


@parametrize_with_checks([ManyClassClassifier()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_classes_missing_in_the_history_must_be_named():
    rng = np.random.default_rng(0)
    X, outcome, _ = claims(600, rng)
    early = np.where(outcome == "fraud", "sloppy", outcome)
    options = {"classes": ("sloppy", "honest", "fraud"), "first_round": "learned"}
    named = claims_classifier(strategy=None, **options).fit(X, early)
    assert named.classes_.tolist() == sorted(options["classes"])
    assert np.all(named.predict_proba(X)[:, 0] == 0)  # no fraud in the history
    decided = named.decide(X)
    named.observe(decided.ids[decided.accepted], outcome[decided.accepted])
    assert named.rounds_[0].seen["fraud"] == sum(outcome[decided.accepted] == "fraud") > 0
    named.decide(X)
    assert np.all(named.predict_proba(X)[:, 0] > 0)

    unnamed = ManyClassClassifier(classes=("sloppy", "honest"), random_state=0).fit(X, early)
    decided = unnamed.decide(X)
    assert decided.accepted.any()
    with pytest.raises(InputError, match=r"outcomes.* 'fraud'.*classes="):
        unnamed.observe(decided.ids[decided.accepted], ["fraud"] * int(decided.accepted.sum()))
    by_utility = claims_classifier(strategy=None).fit(X, early)  # the utility names all three
    assert by_utility.classes_.tolist() == CLASSES.tolist()
    with pytest.raises(InputError, match=r"y .*'fraud'"):
        ManyClassClassifier(classes=("honest", "sloppy")).fit(X, outcome)


def test_utility_matrix_follows_the_order_of_names():
    """The same utility as a dict of dicts and as a matrix with rows and columns in any order."""
    rng = np.random.default_rng(0)
    X, outcome, _ = claims(600, rng)
    classes, names = ["sloppy", "fraud", "honest"], ["part", "refuse", "pay"]
    matrix = [[UTILITY[name][label] for label in classes] for name in names]
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


def test_integer_classes_and_decisions_of_mixed_types():
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


def test_decisions_replace_accepted():
    rng = np.random.default_rng(0)
    X, outcome, group = claims(600, rng)
    given = np.where(X[:, 1] > 0, np.where(X[:, 0] > 0, "part", "pay"), "refuse")
    by_name = claims_classifier().fit(X, outcome, decisions=given, sensitive_features=group)
    by_flag = claims_classifier().fit(
        X, outcome, accepted=given != "refuse", sensitive_features=group
    )
    batch = {"X": X, "sensitive_features": group}
    assert np.array_equal(by_name.decide(**batch).propensity, by_flag.decide(**batch).propensity)
    with pytest.raises(InputError, match=r"decisions names 'ask'"):
        claims_classifier().fit(X, outcome, decisions=np.where(given == "pay", "ask", given))
    with pytest.raises(InputError, match=r"decisions needs observed="):
        ManyClassClassifier().fit(X, outcome, decisions=given)


def test_data_frames_give_data_frames():
    rng = np.random.default_rng(0)
    X, outcome, _ = claims(400, rng)
    frame = pd.DataFrame(X, columns=["debt", "income"])
    classifier = claims_classifier(strategy=None).fit(frame, pd.Series(outcome))
    table = classifier.decide(frame).to_frame()
    assert isinstance(table, pd.DataFrame)
    assert table["decision"].isin(UTILITY).all()
    assert len(pd.DataFrame(classifier.rounds_)) == 1


# Options that are refused, with a value that the message must contain.
NAMED = {"classes": ("fraud", "honest", "sloppy")}
OPTIONS = {
    "too few rows": (
        {"utility": [[0, 0, 0], [1, 1, 1]], "good": None, "observed": None, **NAMED},
        r"utility .*'fraud', 'honest'",
    ),
    "NaN utility": (
        {"utility": UTILITY | {"part": UTILITY["part"] | {"fraud": np.nan}}},
        "utility.* nan",
    ),
    "row is a number": ({"utility": UTILITY | {"part": 3}}, r"utility.*'part'"),
    "class missing in a row": (
        {"utility": UTILITY | {"part": {"honest": 1}}},
        r"utility\['part'\] .*'fraud', 'honest'",
    ),
    "names differ from rows": (
        {"decisions": ("refuse", "pay")},
        r"utility .*\['refuse', 'pay'\]",
    ),
    "duplicate decision": (
        {"utility": np.eye(3), "decisions": ("a", "b", "b"), **NAMED},
        r"decisions .*\['a', 'b', 'b'\]",
    ),
    "duplicate class": (
        {"classes": ("fraud", "honest", "sloppy", "fraud")},
        r"classes .*'fraud', 'honest', 'sloppy', 'fraud'",
    ),
    "decisions are not classes": (
        {"utility": None, "decisions": ("a", "b"), **NAMED},
        r"utility .*\['a', 'b'\]",
    ),
    "observed is not a decision": (
        {"observed": ("pay", "wait")},
        r"observed names 'wait'.*\['refuse', 'pay', 'part'\]",
    ),
    "all observed": ({"observed": tuple(UTILITY)}, r"observed .*'refuse', 'pay', 'part'"),
    "none observed": ({"observed": ()}, r"observed .*\[\]"),
    "good is not a class": ({"good": ("nice",)}, r"good names 'nice'"),
    "good for an unknown decision": (
        {"good": GOOD | {"wait": ("honest",)}},
        r"good names 'wait'",
    ),
    "good for one of two": ({"good": {"pay": ("honest",)}}, r"good .*'part'"),
    "no class is good": ({"good": ()}, r"good .*'pay'"),
    "good not given": ({"good": None}, r"good .*'pay'"),
    "learner per group": ({"learner": PerGroup()}, r"learner .*PerGroup"),
    "budget is a number": ({"budget": 0.2}, r"budget .*0\.2"),
    "unknown weights": ({"weights": "some"}, r"weights .*'some'"),
    "learner without weights": (
        {"learner": KNeighborsClassifier()},
        r"KNeighborsClassifier .*sample_weight",
    ),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_wrong_options_are_refused(case):
    options, message = OPTIONS[case]
    X, outcome, _ = claims(300, np.random.default_rng(0))
    with pytest.raises(InputError, match=message):
        claims_classifier(**options).fit(X, outcome, accepted=X[:, 1] > 0)


FIT = {
    "NaN": ({"X": np.full((300, 2), np.nan)}, r"X .*300 of 300 rows"),
    "single class": ({"y": ["honest"] * 300}, r"'honest'"),
    "missing outcomes": ({"y": [None] * 300}, r"y .*300"),
    "duplicate ids": ({"ids": np.zeros(300, int)}, "ids.* 0 "),
    "none accepted": ({"accepted": np.zeros(300, bool)}, r"300 .*history"),
}


@pytest.mark.parametrize("case", FIT)
def test_wrong_history_is_refused(case):
    arguments, message = FIT[case]
    X, outcome, group = claims(300, np.random.default_rng(0))
    with pytest.raises(InputError, match=message):
        claims_classifier().fit(**({"X": X, "y": outcome, "sensitive_features": group} | arguments))


def test_more_than_127_classes_are_refused():
    X, _, _ = claims(300, np.random.default_rng(0))
    with pytest.raises(InputError, match=r"127 classes.*150"):
        ManyClassClassifier().fit(X, np.arange(300) // 2)


DECIDE = {
    "NaN": ({"X": np.full((50, 2), np.nan)}, r"X .*50 of 50 rows"),
    "empty": ({"X": np.empty((0, 2)), "sensitive_features": [], "ids": []}, "empty"),
    "unknown group": ({"sensitive_features": ["C"] * 50}, r"sensitive_features .*'C'"),
    "groups missing": ({"sensitive_features": None}, "sensitive_features"),
    "known ids": ({"ids": np.arange(50)}, r"50 of 50 ids"),
    "duplicate ids": ({"ids": np.full(50, 9000)}, "ids.* 9000"),
}


@pytest.mark.parametrize("case", DECIDE)
def test_refused_batch_changes_nothing(case):
    arguments, message = DECIDE[case]
    classifier, rng = started()
    X, _, group = claims(50, rng)
    batch = {"X": X, "sensitive_features": group}
    expected = copy.deepcopy(classifier).decide(**batch)
    with pytest.raises(InputError, match=message):
        classifier.decide(**(batch | arguments))
    again = classifier.decide(**batch)
    assert again.round == 1
    assert np.array_equal(again.propensity, expected.propensity)


def test_refused_outcomes_change_nothing():
    classifier, rng = started()
    ((decided, _),) = go(classifier, rng, n_rounds=1)
    X, _, group = claims(300, rng)
    decided = classifier.decide(X, sensitive_features=group)
    accepted, rejected = decided.ids[decided.accepted], decided.ids[~decided.accepted]
    classifier.observe(accepted[:1], ["sloppy"])
    seen = classifier.rounds_[1].seen
    for ids, outcomes, kind, message in [
        (rejected[:1], ["honest"], UnknownIdError, f"1 of 1 ids .*{rejected[0]}"),
        ([10**6], ["honest"], UnknownIdError, r"1000000"),
        (accepted[:1], ["honest"], InputError, str(accepted[0])),
        (accepted[1:2], ["nice"], InputError, r"outcomes .*'nice'"),
        (accepted[1:2], [None], InputError, r"outcomes .*None"),
        ([*accepted[1:3], 10**6], ["honest"] * 3, UnknownIdError, r"1 of 3 ids.*1000000"),
    ]:
        with pytest.raises(kind, match=message):
            classifier.observe(ids, outcomes)
        assert classifier.rounds_[1].seen == seen
    with pytest.raises(InputError, match=str(accepted[1])):
        classifier.correct(accepted[1:2], ["honest"])


def test_options_that_decisions_depend_on_must_not_change():
    classifier, rng = started()
    go(classifier, rng, n_rounds=1)
    X, _, group = claims(50, rng)
    for name, value in [("good", ("honest",)), ("observed", ("pay",)), ("coverage", Uniform())]:
        before = getattr(classifier, name)
        classifier.set_params(**{name: value})
        with pytest.raises(InputError, match=name):
            classifier.decide(X, sensitive_features=group)
        classifier.set_params(**{name: before})
    classifier.set_params(budget=FdrBudget(0.1))  # the budget may change
    classifier.decide(X, sensitive_features=group)
    assert classifier.rounds_[-1].alpha_exploit < 0.1
