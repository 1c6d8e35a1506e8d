"""FiniteClassifier: accepted forms of input, refused ones, and warnings."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairchance import FdrBudget, Limited, MeanPastScore, Uniform
from fairchance.errors import InputError, LearningWarning, UnknownIdError
from fairchance.methods.storage import dumps
from fairchance.simulate.populations import FiniteDomain
from fairchance_lab.finite import CountedOutcomes, FiniteClassifier, NormalisedG
from finite.small_domain import (
    DOMAIN,
    PAST,
    REVENUE,
    decide,
    draw,
    fitted,
    run,
    without_history,
)


@parametrize_with_checks([FiniteClassifier()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_with_strings_and_string_ids(rng, frame):
    n = 400
    job = rng.choice(["baker", "cook"], n)
    repaid = np.where(rng.random(n) < np.where(job == "cook", 0.97, 0.6), "repaid", "lost")
    classifier = FiniteClassifier(REVENUE, pos_label="repaid", random_state=0)
    names = np.array([f"p{i}" for i in range(2 * n)])
    X = frame({"job": job, "home": rng.integers(3, size=n)})
    classifier.fit(X, repaid, accepted=job == "cook", ids=names[:n])
    batch = classifier.decide(X, ids=names[n:])
    classifier.observe(batch.ids[batch.accepted], repaid[batch.accepted])
    assert isinstance(batch.to_frame(), frame)
    assert classifier.predict_proba(X).shape == (n, 2)
    assert set(classifier.predict(X)) <= {"repaid", "lost"}
    assert classifier.n_outcomes_ == (job == "cook").sum() + batch.accepted.sum()
    with pytest.raises(InputError, match="ids"):
        classifier.decide(X)


def test_column_of_cell_numbers(rng):
    cell = rng.integers(5, size=1000)
    good = (rng.random(1000) < 0.95).astype(int)
    classifier = FiniteClassifier(REVENUE, random_state=0).fit(cell, good, accepted=cell < 3)
    batch = classifier.decide(cell)
    assert np.array_equal(batch.exploit, cell < 3)
    assert classifier.groups_ is None


def test_empty_batch_is_not_a_round():
    classifier = run(np.random.default_rng(0), n_rounds=2)
    w = classifier.coverage_
    batch = classifier.decide(np.zeros((0, 2), int), sensitive_features=[])
    assert len(batch) == 0
    assert len(classifier.rounds_) == 2
    assert np.array_equal(classifier.coverage_, w)


def test_past_policy_without_a_history(rng):
    classifier = without_history()
    people, good = draw(rng, 300)
    batch = decide(classifier, people)
    assert np.array_equal(batch.exploit, PAST[DOMAIN.cell_of(people)] > 0)
    assert batch.explored.any()
    assert classifier.observe(batch.ids[batch.accepted], good[batch.accepted]).n_outcomes_ > 0


def test_past_policy_as_a_function(rng):
    people, good = draw(rng, 300)
    classifier = FiniteClassifier(REVENUE, random_state=0)
    classifier.fit(
        people.X,
        good,
        accepted=people.X[:, 0] == 0,
        sensitive_features=people.group,
        past_policy=lambda X, group: (X[:, 0] == 0) & (group == "a"),
    )
    batch = classifier.decide(
        [[0, 5], [1, 5], [0, 5]], sensitive_features=["a", "a", "b"], unlike_history=True
    )
    assert batch.exploit.tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hypothesis": "trees"}, "hypothesis .*'trees'"),
        ({"constraints": "none"}, "constraints .*'none'"),
        ({"weights": "acceptance"}, "weights .*'acceptance'"),
        ({"first_round": "third"}, "first_round .*'third'"),
        ({"utility": "revenue"}, "utility .*'revenue'"),
        ({"noise": 0.1}, r"noise .*0\.1"),
        ({"gap": 2.0}, r"gap .*2\.0"),
        ({"min_outcomes": -1}, "min_outcomes .*-1"),
        ({"maturity": -1}, "maturity .*-1"),
        ({"maturity": 1.5}, r"maturity .*1\.5"),
        ({"coverage": MeanPastScore()}, "coverage .*MeanPastScore"),
        ({"strategy": 3}, "strategy .*3"),
        ({"cut_score": 1.0}, r"cut_score .*1\.0"),
    ],
)
def test_wrong_options_are_refused(rng, options, message):
    with pytest.raises(InputError, match=message):
        fitted(rng, **options)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"domain": (DOMAIN.X, None)}, "domain"),
        ({"domain": DOMAIN.X}, "domain"),
        ({"domain": ([[1, 1], [1, 1]], ["a", "a"])}, "cell"),
        ({"past_policy": PAST[:3]}, r"8 .*\(3,\)"),
        ({"past_policy": PAST * 2}, r"past_policy .*\[0, 1\]"),
        ({"past_policy": lambda X, group: [1]}, r"8 .*\(1,\)"),
        ({"past_policy": lambda X, group: X[:, 0] - 1}, r"past_policy .*\[0, 1\]"),
        ({"X": None, "past_policy": None}, "past_policy"),
        ({"X": None, "domain": None}, "domain.* past_policy"),
        ({"sensitive_features": None}, "sensitive_features"),
    ],
)
def test_wrong_history_is_refused(rng, changes, message):
    people, good = draw(rng, 100)
    arguments = {
        "X": people.X,
        "y": good,
        "sensitive_features": people.group,
        "domain": (DOMAIN.X, DOMAIN.group),
        "past_policy": PAST,
    }
    with pytest.raises(InputError, match=message):
        FiniteClassifier().fit(**(arguments | changes))


def test_wrong_batches_and_outcomes_change_nothing(rng):
    classifier = run(rng, n_rounds=2)
    rejected = classifier.decide([[1, 1]], sensitive_features=["a"])
    assert not rejected.accepted.any()
    before = dumps(classifier)
    for X, options, message in [
        ([[np.nan, 1.0]], {"sensitive_features": ["a"]}, "column '0' .*1 rows"),
        ([[1, 1]], {"sensitive_features": ["c"]}, "'c'"),
        ([[1, 1]], {}, "sensitive_features"),
        ([[1, 1, 1]], {"sensitive_features": ["a"]}, " 2 "),
        ([[1, 1]], {"sensitive_features": ["a", "b"]}, " 1 "),
        ([[1, 1]] * 2, {"sensitive_features": ["a"] * 2, "ids": [5000, 5000]}, "5000"),
        ([[1, 1]], {"sensitive_features": ["a"], "ids": [3]}, "1 of 1 ids"),
        ([[1, 1]], {"sensitive_features": ["a"], "ids": ["x"]}, "integers"),
    ]:
        with pytest.raises(InputError, match=message):
            classifier.decide(X, **options)
    for ids, outcomes, kind, message in [
        (rejected.ids, [1], UnknownIdError, str(rejected.ids[0])),
        ([10**6], [1], UnknownIdError, "1000000"),
        (rejected.ids, [2], InputError, "2"),
    ]:
        with pytest.raises(kind, match=message):
            classifier.observe(ids, outcomes)
    assert dumps(classifier) == before


def test_wrong_strategies_and_changed_options_are_refused(rng):
    classifier = run(rng, n_rounds=2)
    n_cells = classifier.rounds_[-1].n_cells
    classifier.set_params(strategy=lambda X, score, group: np.zeros(score.shape))
    with pytest.raises(InputError, match="strategy"):
        classifier.decide([[9, 9]], sensitive_features=["a"])
    classifier.set_params(strategy=None, coverage=CountedOutcomes())
    with pytest.raises(InputError, match=r"coverage .*None .*CountedOutcomes"):
        classifier.decide([[1, 1]], sensitive_features=["a"])
    assert len(classifier.rounds_) == 2
    assert len(classifier.cells_[0]) == n_cells


def test_warning_if_no_cell_is_known(rng):
    people, _ = draw(rng, 100)
    classifier = fitted(rng, coverage=NormalisedG(threshold=3), first_round="cut")
    with pytest.warns(LearningWarning, match="exploit"):
        decide(classifier, people)


def test_warning_if_the_constraints_cannot_be_met(rng):
    domain = FiniteDomain([[0], [1]], ["a", "a"], mass=[1, 1], good=[0.95, 0.5])
    budget = FdrBudget(min_selection_rate=0.99)
    classifier = fitted(rng, domain=domain, past=np.ones(2), budget=budget, first_round="learned")
    with pytest.warns(LearningWarning, match="min_selection_rate"):
        batch = decide(classifier, domain.draw(100, rng))
    assert not batch.accepted.any()
    assert not classifier.rounds_[-1].feasible


def test_limits_on_exploration_are_refused():
    y = np.arange(60) % 2
    with pytest.raises(InputError, match="limits"):
        FiniteClassifier(strategy=Limited(Uniform(), exposure=5, amount=1)).fit(y, y)
