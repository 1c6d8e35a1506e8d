"""Many classes: whatever is refused is told in one sentence and changes nothing."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from claims import GOOD, UTILITY, claims, claims_classifier, go, started
from secondlook import (
    FdrBudget,
    PerGroup,
    Uniform,
)
from secondlook.errors import InputError, UnknownIdError
from secondlook.methods.many_classes import ManyClassClassifier


def one_sentence(error):
    text = str(error.value)
    assert text.endswith("."), text
    assert ". " not in text, text


SETTINGS = {
    "a decision too few": (
        {"utility": [[0, 0, 0], [1, 1, 1]], "good": None, "observed": None},
        r"utility must be a finite number for each of the decisions \['fraud', 'honest'",
    ),
    "worth of nothing": (
        {"utility": UTILITY | {"part": UTILITY["part"] | {"fraud": np.nan}}},
        r"utility must be a finite number for each of the decisions",
    ),
    "a row that is none": (
        {"utility": UTILITY | {"part": 3}},
        r"utility must give each decision a dict from class to worth, got 3 for 'part'",
    ),
    "a class too few": (
        {"utility": UTILITY | {"part": {"honest": 1}}},
        r"utility\['part'\] must have an entry for each of the classes \['fraud', 'honest'",
    ),
    "names and rows differ": (
        {"decisions": ("refuse", "pay")},
        r"utility must have an entry for each of the decisions \['refuse', 'pay'\] and no other",
    ),
    "the same decision twice": (
        {"utility": np.eye(3), "decisions": ("a", "b", "b")},
        r"decisions must differ from one another",
    ),
    "the same class twice": (
        {"classes": ("fraud", "honest", "sloppy", "fraud")},
        r"classes must differ from one another",
    ),
    "decisions that are no classes": (
        {"utility": None, "decisions": ("a", "b")},
        r"utility must be given where decisions are no classes",
    ),
    "observed is no decision": (
        {"observed": ("pay", "wait")},
        r"observed names 'wait', which is not among the decisions \['refuse', 'pay', 'part'\]",
    ),
    "everything observed": (
        {"observed": tuple(UTILITY)},
        r"observed must name at least one decision and leave out at least one",
    ),
    "nothing observed": ({"observed": ()}, r"observed must name at least one decision"),
    "good is no class": (
        {"good": ("nice",)},
        r"good names 'nice', which is not among the classes",
    ),
    "good of no decision": (
        {"good": GOOD | {"wait": ("honest",)}},
        r"good names 'wait', which is not among the decisions",
    ),
    "good of one only": (
        {"good": {"pay": ("honest",)}},
        r"good must name the good classes of every observed decision, got none for 'part'",
    ),
    "nothing good": ({"good": ()}, r"good must name at least one class for 'pay', got none"),
    "good not given": (
        {"good": None},
        r"good must be given where an observed decision is no class",
    ),
    "a model per group": ({"learner": PerGroup()}, r"learner must not be PerGroup"),
    "no budget": ({"budget": 0.2}, r"budget must be a FdrBudget or None, got 0.2"),
    "no such weights": ({"weights": "some"}, r"weights must be one of"),
    "no weights taken": (
        {"learner": KNeighborsClassifier()},
        r"KNeighborsClassifier does not take sample_weight",
    ),
}


@pytest.mark.parametrize("case", SETTINGS)
def test_settings(case):
    options, message = SETTINGS[case]
    X, outcome, _ = claims(300, np.random.default_rng(0))
    with pytest.raises(InputError, match=message) as error:
        claims_classifier(**options).fit(X, outcome, accepted=X[:, 1] > 0)
    one_sentence(error)


FIT = {
    "NaN": ({"X": np.full((300, 2), np.nan)}, r"X contains NaN or inf in 300 of 300 rows"),
    "one class": ({"y": ["honest"] * 300}, r"show only one class of outcome, 'honest'; at least"),
    "missing": ({"y": [None] * 300}, r"y has no outcome \(NaN or None\) for 300 accepted people"),
    "ids": ({"ids": np.zeros(300, int)}, r"ids must be unique, got 0 more than once"),
    "nobody": ({"accepted": np.zeros(300, bool)}, r"nobody among the 300 people of the history"),
}


@pytest.mark.parametrize("case", FIT)
def test_bad_history(case):
    arguments, message = FIT[case]
    X, outcome, group = claims(300, np.random.default_rng(0))
    with pytest.raises(InputError, match=message) as error:
        claims_classifier().fit(**({"X": X, "y": outcome, "sensitive_features": group} | arguments))
    one_sentence(error)


def test_too_many_classes():
    X, _, _ = claims(300, np.random.default_rng(0))
    with pytest.raises(InputError, match=r"at most 127 classes, got 150; merge some") as error:
        ManyClassClassifier().fit(X, np.arange(300) // 2)
    one_sentence(error)


DECIDE = {
    "NaN": ({"X": np.full((50, 2), np.inf)}, r"X contains NaN or inf in 50 of 50 rows"),
    "empty": (
        {"X": np.empty((0, 2)), "sensitive_features": [], "ids": []},
        r"the batch is empty; pass at least one application",
    ),
    "group": ({"sensitive_features": ["C"] * 50}, r"holds the group 'C', which the history does"),
    "no group": ({"sensitive_features": None}, r"sensitive_features is missing"),
    "known ids": ({"ids": np.arange(50)}, r"50 of 50 ids were decided on before, first 0"),
    "twice": ({"ids": np.full(50, 9000)}, r"ids must be unique, got 9000 more than once"),
}


@pytest.mark.parametrize("case", DECIDE)
def test_a_bad_batch_changes_nothing(case):
    arguments, message = DECIDE[case]
    classifier, rng = started()
    X, _, group = claims(50, rng)
    batch = {"X": X, "sensitive_features": group}
    expected = copy.deepcopy(classifier).decide(**batch)
    with pytest.raises(InputError, match=message) as error:
        classifier.decide(**(batch | arguments))
    one_sentence(error)
    again = classifier.decide(**batch)
    assert again.round == 1
    assert np.array_equal(again.propensity, expected.propensity)


def test_bad_outcomes_change_nothing():
    classifier, rng = started()
    ((decided, _),) = go(classifier, rng, n_rounds=1)
    X, _, group = claims(300, rng)
    decided = classifier.decide(X, sensitive_features=group)
    taken, turned_away = decided.ids[decided.accepted], decided.ids[~decided.accepted]
    classifier.observe(taken[:1], ["sloppy"])
    seen = classifier.rounds_[1].seen
    for ids, outcomes, kind, message in [
        (turned_away[:1], ["honest"], UnknownIdError, r"1 of 1 ids were rejected"),
        ([10**6], ["honest"], UnknownIdError, r"were never decided on"),
        (taken[:1], ["honest"], InputError, r"is recorded already and differs"),
        (taken[1:2], ["nice"], InputError, r"outcomes must be among the classes .*got 'nice'"),
        (taken[1:2], [None], InputError, r"outcomes must be among the classes .*got None"),
        ([*taken[1:3], 10**6], ["honest"] * 3, UnknownIdError, r"nothing was recorded"),
    ]:
        with pytest.raises(kind, match=message) as error:
            classifier.observe(ids, outcomes)
        one_sentence(error)
        assert classifier.rounds_[1].seen == seen
    with pytest.raises(InputError, match=r"so there is nothing to correct"):
        classifier.correct(taken[1:2], ["honest"])


def test_what_decisions_rest_on_cannot_be_changed_between_rounds():
    classifier, rng = started()
    go(classifier, rng, n_rounds=1)
    X, _, group = claims(50, rng)
    for name, value in [("good", ("honest",)), ("observed", ("pay",)), ("coverage", Uniform())]:
        before = getattr(classifier, name)
        classifier.set_params(**{name: value})
        with pytest.raises(InputError, match=r"must stay what|coverage must be a|good must"):
            classifier.decide(X, sensitive_features=group)
        classifier.set_params(**{name: before})
    classifier.set_params(budget=FdrBudget(0.1))  # the budget may change
    classifier.decide(X, sensitive_features=group)
    assert classifier.rounds_[-1].alpha_exploit < 0.1
