"""Bad input: one sentence each, and nothing recorded before is lost or changed."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from classifier_checks import (
    OBVIOUS,
    UNCLEAR,
    check_obvious_outcomes_need_no_name,
    check_unclear_outcomes_must_be_named,
)
from fairchance import (
    CertifiedClassifier,
    FdrBudget,
    PartialFeedbackClassifier,
    SelectionRateParity,
)
from fairchance.errors import InputError, UnknownIdError
from sentences import one_full_stop

N = 40


@pytest.fixture
def data(rng):
    X = rng.normal(size=(N, 2))
    y = (X[:, 0] > 0).astype(int)
    group = np.repeat(["a", "b"], N // 2)
    return X, y, group


@pytest.fixture
def fitted(data):
    X, y, group = data
    return PartialFeedbackClassifier(random_state=0).fit(
        X, y, sensitive_features=group, ids=[f"h{i}" for i in range(N)]
    )


def changed(X, row, column, value):
    X = X.copy()
    X[row, column] = value
    return X


FIT = {
    "infinite": (
        lambda X, y, z: {"X": changed(X, 5, 1, np.inf), "y": y},
        r"X contains inf in 1 of 40 rows, first in row 5, column 1; every feature must be a finite",
    ),
    "nothing known": (
        lambda X, y, z: {"X": np.full((N, 2), np.nan), "y": y},
        r"X has no column to decide by: 0 is empty in the whole history; 1 is empty in the whole",
    ),
    "nobody accepted": (
        lambda X, y, z: {"X": X, "y": y, "accepted": np.zeros(N, bool)},
        r"none of the 40 applicants of the history was accepted",
    ),
    "one class": (
        lambda X, y, z: {"X": X, "y": np.ones(N, int)},
        r"only one class of outcome, 1; two are needed",
    ),
    "one class among the accepted": (
        lambda X, y, z: {"X": X, "y": y, "accepted": y == 1},
        r"only one class of outcome, 1; two are needed",
    ),
    "outcome missing": (
        lambda X, y, z: {"X": X, "y": np.where(np.arange(N) < 2, np.nan, y)},
        r"y has no outcome \(NaN or None\) for 2 accepted applicants",
    ),
    "lone member": (
        lambda X, y, z: {"X": X, "y": y, "sensitive_features": ["only", *z[1:]]},
        r"the group 'only' has one member in the history; a group needs at least two",
    ),
    "group missing": (
        lambda X, y, z: {"X": X, "y": y, "sensitive_features": [None, *z[1:]]},
        r"sensitive_features has missing values",
    ),
    "duplicate ids": (
        lambda X, y, z: {"X": X, "y": y, "ids": [7, 7, *range(100, 100 + N - 2)]},
        r"ids must be unique, got 7 more than once; a person who applies again needs a new id",
    ),
    "ids that are no names": (
        lambda X, y, z: {"X": X, "y": y, "ids": np.arange(N) / 2},
        r"ids must be integers or strings, got 0.0; convert them first",
    ),
    "accepted is no decision": (
        lambda X, y, z: {"X": X, "y": y, "accepted": np.full(N, 2)},
        r"accepted must be True or False \(1 or 0\) for each row, got 2",
    ),
    "a column of lists": (
        lambda X, y, z: {
            "X": pd.DataFrame({"a": X[:, 0], "jobs": [[job] for job in z.tolist()]}),
            "y": y,
        },
        r"the column 'jobs' holds \['a'\]; a column may hold numbers, text, categories, truth val",
    ),
    "a column of two types": (
        lambda X, y, z: {"X": pd.DataFrame({"a": X[:, 0], "job": [1, *z[1:].tolist()]}), "y": y},
        r"the column 'job' holds 1 and 'a'; a column may hold numbers, text, .* convert it to one",
    ),
    "lengths": (
        lambda X, y, z: {"X": X, "y": y, "sensitive_features": z[:5]},
        r"sensitive_features must be one column with one value per row of X, 40 in all, got shape",
    ),
}


@pytest.mark.parametrize("case", FIT)
def test_fit(data, case):
    arguments, message = FIT[case]
    with pytest.raises(InputError, match=message) as error:
        PartialFeedbackClassifier().fit(**arguments(*data))
    one_full_stop(error)


DECIDE = {
    "mostly missing": (
        lambda X, z: {"X": changed(X, slice(21), 0, np.nan)},
        r"21 of 40 applicants have no value in column 0",
    ),
    "infinite": (
        lambda X, z: {"X": changed(X, 0, 0, -np.inf)},
        r"X contains inf in 1 of 40 rows",
    ),
    "empty": (
        lambda X, z: {"X": X[:0], "sensitive_features": z[:0], "ids": []},
        r"the batch is empty; pass at least one application",
    ),
    "unseen group": (
        lambda X, z: {"sensitive_features": ["new", *z[1:]]},
        r"holds the group 'new', which the history does not have; known are 'a', 'b'; map it",
    ),
    "no group": (
        lambda X, z: {"sensitive_features": None},
        r"sensitive_features is missing: fit got the groups 'a', 'b'",
    ),
    "known id": (
        lambda X, z: {"ids": ["h3", *(f"n{i}" for i in range(N - 1))]},
        r"1 of 40 ids were decided on before, first 'h3';",
    ),
    "duplicate ids": (
        lambda X, z: {"ids": ["twice", "twice", *(f"n{i}" for i in range(N - 2))]},
        r"ids must be unique, got 'twice' more than once",
    ),
    "another kind of ids": (
        lambda X, z: {"ids": np.arange(N)},
        r"ids must be strings, as in the history, got integers",
    ),
    "no ids": (lambda X, z: {"ids": None}, r"ids must be given, since those of the history were"),
}


@pytest.mark.parametrize("case", DECIDE)
def test_decide_changes_nothing(fitted, data, case):
    X, _, group = data
    arguments, message = DECIDE[case]
    good = {"X": X, "sensitive_features": group, "ids": [f"b{i}" for i in range(N)]}
    expected = copy.deepcopy(fitted).decide(**good)
    with pytest.raises(InputError, match=message) as error:
        fitted.decide(**(good | arguments(X, group)))
    one_full_stop(error)
    again = fitted.decide(**good)
    assert again.round == 1
    assert np.array_equal(again.propensity, expected.propensity)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["income"], r"X is missing the columns 'debt'; allowed are 'income', 'debt', in this"),
        (["debt", "income"], r"X has the columns of fit in another order; allowed are 'income'"),
        (["income", "debt", "x"], r"X has columns that fit never saw: 'x'; allowed are 'income'"),
    ],
)
def test_columns(data, columns, message):
    X, y, _ = data
    classifier = PartialFeedbackClassifier().fit(pd.DataFrame(X, columns=["income", "debt"]), y)
    frame = pd.DataFrame(0.0, index=range(3), columns=columns)
    with pytest.raises(InputError, match=message) as error:
        classifier.decide(frame)
    one_full_stop(error)
    assert classifier.rounds_ == ()


def test_outcomes(fitted, data):
    X, _, group = data
    ids = np.array([f"b{i}" for i in range(N)])
    decided = fitted.decide(X, sensitive_features=group, ids=ids)
    taken, turned_away = ids[decided.accepted], ids[~decided.accepted]
    fitted.observe(taken[:1], [1])
    known = fitted.n_outcomes_
    cases = [
        (turned_away[:1], [1], UnknownIdError, r"1 of 1 ids were rejected, first"),
        (["nobody"], [1], UnknownIdError, r"1 of 1 ids were never decided on, .*first 'nobody'"),
        (taken[:1], [0], InputError, r"is recorded already and differs from the one given now"),
        ([taken[1], taken[1]], [0, 1], InputError, r"outcomes contradict each other for id"),
        (taken[1:2], [2], InputError, r"outcomes must be 0 or 1, as in the history, got 2"),
        (taken[1:2], [np.nan], InputError, r"got nan; map it to one of them, or leave out"),
        # One wrong line among right ones: none of them is recorded.
        ([*taken[1:3], "nobody"], [1, 1, 1], UnknownIdError, r"nothing was recorded"),
    ]
    for names, outcomes, kind, message in cases:
        with pytest.raises(kind, match=message) as error:
            fitted.observe(names, outcomes)
        one_full_stop(error)
        assert fitted.n_outcomes_ == known
    fitted.observe(taken[:1], [1])  # the same again is no contradiction
    assert fitted.n_outcomes_ == known


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, 15, float("nan"), "0.15", None])
def test_alpha(alpha):
    with pytest.raises(InputError, match=r"alpha bounds the false discovery rate and must be a"):
        FdrBudget(alpha=alpha)


def test_alpha_exploit():
    with pytest.raises(InputError, match=r"must be in \(0, alpha\) = \(0, 0.15\), got 0.15"):
        FdrBudget(alpha=0.15, exploit=0.15)


@pytest.mark.parametrize(
    ("g", "found"),
    [(0.0, "40 zero"), (-1.0, "40 negative"), (np.nan, "40 NaN"), (np.inf, "40 infinite")],
)
def test_strategy_must_be_positive(rng, g, found):
    X = rng.normal(size=(200, 1))
    y = (rng.random(200) < 0.9).astype(int)
    known = X[:, 0] > 0
    classifier = PartialFeedbackClassifier(
        strategy=lambda X, score, group: np.full(score.shape, g), random_state=0
    ).fit(X, y, accepted=known)
    batch = np.concatenate([np.full((60, 1), 2.0), np.full((40, 1), -2.0)])
    with pytest.raises(InputError, match=f"got {found} among 40") as error:
        classifier.decide(batch)
    one_full_stop(error)
    assert classifier.rounds_ == ()


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (
            {"thresholds": "many"},
            r"thresholds must be one of \('shared', 'per_group'\), got 'many'",
        ),
        ({"budget": 0.15}, r"budget must be a FdrBudget or None, got 0.15"),
        ({"weight_cap": 0.5}, r"weight_cap must be 1 or more, or None, got 0.5"),
        ({"min_outcomes": 0}, r"min_outcomes must be 1 or more, or None, got 0"),
        ({"strategy": 3}, r"strategy must be a Strategy or a function of"),
        ({"learner": "logistic"}, r"learner must be a scikit-learn classifier with predict_proba"),
        ({"fairness": SelectionRateParity(0.1)}, r"pass sensitive_features to fit"),
        ({"pos_label": "yes"}, r"pos_label must be one of the outcomes \[0, 1\], got 'yes'"),
    ],
)
def test_options(data, option, message):
    X, y, _ = data
    with pytest.raises(InputError, match=message) as error:
        PartialFeedbackClassifier(**option).fit(X, y)
    one_full_stop(error)


CLASSIFIERS = {
    "algorithm 1": PartialFeedbackClassifier(random_state=0),
    "certified": CertifiedClassifier(learner=LogisticRegression(), random_state=0),
}


@pytest.mark.parametrize("labels", UNCLEAR, ids=str)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_outcomes_whose_meaning_is_not_obvious_must_be_named_to_decide(name, labels, tmp_path):
    check_unclear_outcomes_must_be_named(
        CLASSIFIERS[name], labels, tmp_path, {"pos_label": labels[0]}
    )


@pytest.mark.parametrize("labels", OBVIOUS, ids=str)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_obvious_outcomes_need_no_name(name, labels):
    check_obvious_outcomes_need_no_name(CLASSIFIERS[name], labels)


def test_a_function_need_be_positive_on_candidates_only(rng):
    """Later rounds ask it about others too; whoever it gives nothing had no chance."""
    X = rng.normal(size=(400, 1))
    y = (rng.random(400) < 0.9).astype(int)
    classifier = PartialFeedbackClassifier(
        strategy=lambda X, score, group: np.where(X[:, 0] < 0.5, 1.0, np.nan), random_state=0
    ).fit(X, y, accepted=X[:, 0] > 0)
    for _ in range(4):
        decided = classifier.decide(X)
        classifier.observe(decided.ids[decided.accepted], y[decided.accepted])
    assert np.isfinite(classifier.coverage_of(X)).all()


def test_past_policy_must_be_a_policy(data):
    X, y, _ = data
    with pytest.raises(InputError, match=r"past_policy must be a function of X that returns"):
        PartialFeedbackClassifier().fit(X, y, past_policy=3)
    with pytest.raises(InputError, match=r"past_policy must return one probability in \[0, 1\]"):
        PartialFeedbackClassifier().fit(X, y, past_policy=lambda X: X[:, 0] * 5)
