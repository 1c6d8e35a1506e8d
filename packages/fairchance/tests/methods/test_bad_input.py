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
        "inf.*1.*40.*5.*1",
    ),
    "nothing known": (
        lambda X, y, z: {"X": np.full((N, 2), np.nan), "y": y},
        "X.*0.*1",
    ),
    "nobody accepted": (
        lambda X, y, z: {"X": X, "y": y, "accepted": np.zeros(N, bool)},
        "40",
    ),
    "one class": (
        lambda X, y, z: {"X": X, "y": np.ones(N, int)},
        "1",
    ),
    "one class among the accepted": (
        lambda X, y, z: {"X": X, "y": y, "accepted": y == 1},
        "1",
    ),
    "outcome missing": (
        lambda X, y, z: {"X": X, "y": np.where(np.arange(N) < 2, np.nan, y)},
        r"y.*\(NaN or None\).*2",
    ),
    "lone member": (
        lambda X, y, z: {"X": X, "y": y, "sensitive_features": ["only", *z[1:]]},
        "'only'",
    ),
    "group missing": (
        lambda X, y, z: {"X": X, "y": y, "sensitive_features": [None, *z[1:]]},
        "sensitive_features",
    ),
    "duplicate ids": (
        lambda X, y, z: {"X": X, "y": y, "ids": [7, 7, *range(100, 100 + N - 2)]},
        "ids.*7",
    ),
    "ids that are no names": (
        lambda X, y, z: {"X": X, "y": y, "ids": np.arange(N) / 2},
        "ids.*0.0",
    ),
    "accepted is no decision": (
        lambda X, y, z: {"X": X, "y": y, "accepted": np.full(N, 2)},
        r"accepted.*\(1 or 0\).*2",
    ),
    "a column of lists": (
        lambda X, y, z: {
            "X": pd.DataFrame({"a": X[:, 0], "jobs": [[job] for job in z.tolist()]}),
            "y": y,
        },
        r"'jobs'.*\['a'\]",
    ),
    "a column of two types": (
        lambda X, y, z: {"X": pd.DataFrame({"a": X[:, 0], "job": [1, *z[1:].tolist()]}), "y": y},
        "'job'.*1.*'a'",
    ),
    "lengths": (
        lambda X, y, z: {"X": X, "y": y, "sensitive_features": z[:5]},
        "sensitive_features.*40",
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
        "21.*40.*0",
    ),
    "infinite": (
        lambda X, z: {"X": changed(X, 0, 0, -np.inf)},
        "inf.*1.*40",
    ),
    "empty": (
        lambda X, z: {"X": X[:0], "sensitive_features": z[:0], "ids": []},
        None,
    ),
    "unseen group": (
        lambda X, z: {"sensitive_features": ["new", *z[1:]]},
        "'new'.*'a'.*'b'",
    ),
    "no group": (
        lambda X, z: {"sensitive_features": None},
        "sensitive_features.*'a'.*'b'",
    ),
    "known id": (
        lambda X, z: {"ids": ["h3", *(f"n{i}" for i in range(N - 1))]},
        "1.*40.*'h3'",
    ),
    "duplicate ids": (
        lambda X, z: {"ids": ["twice", "twice", *(f"n{i}" for i in range(N - 2))]},
        "ids.*'twice'",
    ),
    "another kind of ids": (
        lambda X, z: {"ids": np.arange(N)},
        "ids",
    ),
    "no ids": (lambda X, z: {"ids": None}, "ids"),
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


def test_columns(data):
    X, y, _ = data
    history = pd.DataFrame(X, columns=["income", "debt"])
    classifier = PartialFeedbackClassifier().fit(history, y)
    with pytest.raises(InputError, match=r"X.*'debt'.*'income'.*'debt'") as error:
        classifier.decide(history[["income"]])
    one_full_stop(error)
    assert classifier.rounds_ == ()
    expected = copy.deepcopy(classifier).decide(history)
    more = history.assign(name="someone")[["name", "debt", "income"]]
    assert np.array_equal(classifier.decide(more).propensity, expected.propensity)


def test_outcomes(fitted, data):
    X, _, group = data
    ids = np.array([f"b{i}" for i in range(N)])
    decided = fitted.decide(X, sensitive_features=group, ids=ids)
    taken, turned_away = ids[decided.accepted], ids[~decided.accepted]
    fitted.observe(taken[:1], [1])
    known = fitted.n_outcomes_
    cases = [
        (turned_away[:1], [1], UnknownIdError, "1"),
        (["nobody"], [1], UnknownIdError, "1.*'nobody'"),
        (taken[:1], [0], InputError, None),
        ([taken[1], taken[1]], [0, 1], InputError, "outcomes"),
        (taken[1:2], [2], InputError, "outcomes.*0.*1.*2"),
        (taken[1:2], [np.nan], InputError, "nan"),
        # One wrong line among right ones: none of them is recorded.
        ([*taken[1:3], "nobody"], [1, 1, 1], UnknownIdError, "nobody"),
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
    with pytest.raises(InputError, match="alpha"):
        FdrBudget(alpha=alpha)


def test_alpha_exploit():
    with pytest.raises(InputError, match=r"\(0, alpha\).*\(0, 0.15\).*0.15"):
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
    with pytest.raises(InputError, match=f"{found}.*40") as error:
        classifier.decide(batch, unlike_history=True)
    one_full_stop(error)
    assert classifier.rounds_ == ()


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (
            {"thresholds": "many"},
            r"thresholds.*\('shared', 'per_group'\).*'many'",
        ),
        ({"budget": 0.15}, "budget.*FdrBudget.*0.15"),
        ({"weight_cap": 0.5}, "weight_cap.*1.*0.5"),
        ({"min_outcomes": 0}, "min_outcomes.*1.*0"),
        ({"strategy": 3}, "strategy"),
        ({"learner": "logistic"}, "learner.*predict_proba"),
        ({"fairness": SelectionRateParity(0.1)}, "sensitive_features"),
        ({"pos_label": "yes"}, r"pos_label.*\[0, 1\].*'yes'"),
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
    with pytest.raises(InputError, match="past_policy"):
        PartialFeedbackClassifier().fit(X, y, past_policy=3)
    with pytest.raises(InputError, match=r"past_policy.*\[0, 1\]"):
        PartialFeedbackClassifier().fit(X, y, past_policy=lambda X: X[:, 0] * 5)
