"""What numbers a history had: rounded outward, kept with the classifier, and never decisive."""

from __future__ import annotations

import json
from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import secondlook as sl
from secondlook.methods.storage import dumps, loads
from secondlook.people.intake import Range, chance_beyond, n_beyond, ranges_of, rounded_outward


@pytest.mark.parametrize(
    ("extremes", "bounds"),
    [
        ((339.0, 10_636.0), (300.0, 12_000.0)),
        ((0.0, 1.0), (0.0, 1.0)),
        ((18.0, 69.0), (18.0, 70.0)),
        ((1953.0, 2004.0), (1950.0, 2010.0)),
        ((-4.1, -0.7), (-4.5, -0.7)),
        ((0.0, 0.0), (0.0, 0.0)),
        ((2030.0, 2030.0), (2000.0, 2500.0)),
        ((0.123, 0.456), (0.12, 0.5)),
    ],
)
def test_bounds_are_round_numbers_outward(extremes, bounds):
    assert rounded_outward(*extremes) == bounds


numbers = st.floats(allow_nan=False, allow_infinity=False)


@given(numbers, numbers)
def test_bounds_enclose_the_extremes_whatever_their_size(one, other):
    least, largest = min(one, other), max(one, other)
    low, high = rounded_outward(least, largest)
    assert low <= least <= largest <= high
    low, high = rounded_outward(least, largest, few=(True, True))
    assert low <= least <= largest <= high


@given(st.floats(1e-6, 1e9), st.floats(1e-6, 1e9))
def test_a_bound_is_near_and_shared_by_many_extremes(one, other):
    least, largest = min(one, other), max(one, other)
    low, high = rounded_outward(least, largest)
    assert least - low <= 0.26 * min(least, largest - least or least)
    assert high - largest <= 0.26 * min(largest, largest - least or largest)


@pytest.mark.parametrize("n", [4, 5])
def test_an_extreme_that_is_round_is_a_bound_only_if_several_had_it(n):
    ages = np.r_[[18.0] * n, [40.0] * 50, [70.0] * n]
    flags = np.r_[[0.0] * n, [1.0] * (n + 50)]
    kept = ranges_of(np.column_stack([ages, flags]), None)
    expected = [(18.0, 70.0), (0.0, 1.0)] if n == 5 else [(16.0, 80.0), (-0.1, 1.0)]
    assert [one[:2] for one in kept.values()] == expected


def test_an_extreme_cannot_be_inferred_from_its_bound():
    tops = np.linspace(10_400.5, 11_999.5, 200)
    assert {rounded_outward(339.0, top)[1] for top in tops.tolist()} == {12_000.0}


@pytest.mark.parametrize(("n_past", "n_new"), [(2, 1), (3, 4), (5, 3), (4, 6)])
def test_the_chance_is_that_of_all_orders_counted(n_past, n_new):
    people = range(n_past + n_new)
    beyond = [
        sum(not old[0] < one < old[-1] for one in people if one not in old)
        for old in combinations(people, n_past)
    ]
    for least in range(n_new + 2):
        counted = np.mean(np.array(beyond) >= least)
        assert chance_beyond(n_past, n_new, least) == pytest.approx(counted, abs=1e-12)


def test_the_chance_of_large_batches_is_a_number():
    assert chance_beyond(1000, 100_000, 0) == 1.0
    assert chance_beyond(1000, 100_000, 1) == pytest.approx(1.0, abs=1e-3)
    assert 0 <= chance_beyond(1000, 100_000, 50_001) < 1e-200
    assert chance_beyond(1, 5, 5) == 1.0


def test_missing_values_are_neither_in_a_range_nor_beyond_it():
    X = np.array([[1.0, np.nan], [4.0, np.nan], [np.nan, np.nan]])
    assert ranges_of(X, None) == {0: (0.9, 4.5, 2)}
    assert n_beyond(np.array([0.5, 1.0, np.nan, 4.0, 9.0, np.inf]), Range(1.0, 4.0, 2)) == (3, 5)


@pytest.mark.parametrize("kind", [sl.PartialFeedbackClassifier, sl.CertifiedClassifier])
@pytest.mark.parametrize("table", [np.asarray, pd.DataFrame, "named", pl.DataFrame])
def test_classifiers_show_the_ranges_of_the_history(rng, kind, table):
    X = np.column_stack([rng.uniform(339, 10_636, 300), rng.uniform(0.2, 0.9, 300)])
    X[:2] = [[339, 0.2], [10_636, 0.9]]
    named = {"income": X[:, 0], "share": X[:, 1]}
    frame = (
        pd.DataFrame(named) if table == "named" else table(X if table != pl.DataFrame else named)
    )
    fitted = kind(random_state=0).fit(frame, X[:, 0] > 3000, accepted=X[:, 0] > 1000)
    names = (0, 1) if table in (np.asarray, pd.DataFrame) else ("income", "share")
    expected = dict(zip(names, [Range(300, 12_000, 300), Range(0.18, 1.0, 300)], strict=True))
    assert fitted.feature_ranges_ == expected
    assert loads(dumps(fitted)).feature_ranges_ == expected
    with pytest.raises(AttributeError):
        fitted.feature_ranges_ = {}
    fitted.decide(frame)  # ranges stay those of the history
    assert fitted.feature_ranges_ == expected


def test_groups_that_are_features_and_columns_of_text_have_no_range(rng):
    X = rng.uniform(1, 2, size=(200, 1))
    group = np.arange(200) % 2
    fitted = sl.PartialFeedbackClassifier(group_as_feature=True, random_state=0)
    fitted.fit(X, X[:, 0] > 1.5, sensitive_features=group)
    assert list(fitted.feature_ranges_) == [0]
    frame = pd.DataFrame({"job": np.where(group, "a", "b"), "age": X[:, 0]})
    head = make_column_transformer((OneHotEncoder(), ["job"]), remainder="passthrough")
    learner = make_pipeline(head, LogisticRegression())
    fitted = sl.PartialFeedbackClassifier(learner=learner, random_state=0)
    assert list(fitted.fit(frame, X[:, 0] > 1.5).feature_ranges_) == ["age"]


def test_nothing_of_an_extreme_is_left_when_its_holder_is_forgotten(rng):
    X = rng.normal(5000, 500, size=(300, 1))
    X[7] = 10_636.125
    fitted = sl.PartialFeedbackClassifier(random_state=0).fit(X, X[:, 0] > 5000)
    fitted.forget([7])
    assert fitted.feature_ranges_[0].high == 11_000
    assert "10636" not in json.dumps(fitted._intake.ranges)


def test_cells_have_no_ranges(rng):
    cell = rng.integers(0, 3, 200)
    fitted = sl.FiniteClassifier(random_state=0).fit(cell, rng.random(200) < 0.6)
    assert fitted.feature_ranges_ is None
