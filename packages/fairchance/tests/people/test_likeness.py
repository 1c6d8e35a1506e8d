"""Batches against the history and the last rounds: what is kept, what is found, and by chance."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import fairchance as fc
from classifier_checks import (
    check_a_batch_unlike_the_history_stops_and_changes_nothing,
    check_numbers_without_names_are_compared_by_position,
)
from fairchance.errors import InputError
from fairchance.people import likeness as module
from fairchance.people.columns import SEVERAL, TableColumn, TableColumns
from fairchance.people.likeness import (
    Checks,
    Likeness,
    Unlike,
    chance_beyond,
    chance_of_more,
    rounded_outward,
)

# What is kept of the history


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


def test_an_extreme_cannot_be_inferred_from_its_bound():
    tops = np.linspace(10_400.5, 11_999.5, 200)
    assert {rounded_outward(339.0, top)[1] for top in tops.tolist()} == {12_000.0}


def known(table, missing_values=()):
    columns = TableColumns.of(table, missing_values)
    return columns, Likeness.of(columns, columns.codes(table))


@pytest.mark.parametrize("n", [4, 5])
def test_an_extreme_that_is_round_is_a_bound_only_if_several_had_it(n):
    ages = np.r_[[18.0] * n, [40.0] * 50, [70.0] * n]
    flags = np.r_[[0.0] * n, [1.0] * (n + 50)]
    _, kept = known(np.column_stack([ages, flags]))
    expected = [(18.0, 70.0), (0.0, 1.0)] if n == 5 else [(16.0, 80.0), (-0.1, 1.0)]
    assert [(one.low, one.high) for one in kept.columns] == expected


def test_the_counts_of_a_history_and_of_a_batch_are_those_of_the_columns():
    jobs = ["clerk"] * 9 + ["nurse"] * 5 + ["pilot", "pilot", "cook", None]
    history = pd.DataFrame({"job": jobs, "age": [*range(20, 37), np.nan]})
    columns, kept = known(history)
    job, age = kept.columns
    # Each nurse has four others, so each would be new to a history without that one.
    assert (job.n, job.missing, job.strange, job.most) == (18, 1, 8, 9)
    assert (age.n, age.missing, age.strange, age.most) == (18, 1, 0, 1)
    batch = pd.DataFrame({"job": ["cook", "clerk", "baker", None], "age": [30.0, 30, 30, np.nan]})
    assert kept.count(columns.codes(batch)).tolist() == [[4, 1, 2, 0], [4, 1, 0, 3]]
    strangers = pd.DataFrame({"job": ["baker"] * 4, "age": [19.0, 99, 20, 21]})
    assert kept.count(columns.codes(strangers)).tolist() == [[4, 0, 4, 0], [4, 0, 1, 0]]


@pytest.mark.parametrize("kind", [fc.PartialFeedbackClassifier, fc.CertifiedClassifier])
def test_nothing_of_an_extreme_is_left_when_its_holder_is_forgotten(rng, kind):
    X = rng.normal(5000, 500, size=(300, 1))
    X[7] = 10_636.125
    fitted = kind(learner=LogisticRegression(), random_state=0).fit(X, (X[:, 0] > 5000).astype(int))
    fitted.decide(X + 0.5)
    fitted.forget([7])
    (kept,) = fitted._intake.likeness.columns
    assert kept.high == 11_000
    assert "10636" not in repr(vars(fitted._intake.likeness))


# Chance


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


@pytest.mark.parametrize(("n_past", "of_past", "of"), [(0, 4, 3), (2, 5, 4), (3, 3, 3)])
def test_the_chance_of_a_share_is_that_of_all_splits_counted(n_past, of_past, of):
    for n in range(of + 1):
        odd = set(range(n + n_past))
        splits = list(combinations(range(of + of_past), of))
        counted = np.mean([len(odd.intersection(split)) >= n for split in splits])
        assert chance_of_more(n, of, n_past, of_past) == pytest.approx(counted, abs=1e-12)


def towns_and_numbers(rng, n):
    """Return numbers, flags and towns of which many are rare, with missing values."""
    columns = [
        np.exp(rng.normal(size=n)),
        rng.poisson(0.8, n),
        rng.random(n) < 0.3,
        rng.zipf(1.5, n),
    ]
    table = np.column_stack(columns).astype(float)
    table[rng.random(table.shape) < 0.1] = np.nan
    return table


def with_codes(table, often):
    """Return towns as ``TableColumns`` codes them."""
    place = {town: float(at) for at, town in enumerate(often)}
    coded = [
        town if np.isnan(town) else place.get(town, len(often)) for town in table[:, 3].tolist()
    ]
    return np.column_stack([table[:, :3], coded])


def groups_of(rng, n):
    """Return an attribute with many rare values, and one with a few."""
    return rng.zipf(1.5, n), rng.choice(4, n, p=[0.6, 0.3, 0.07, 0.03])


def levels(groups, known):
    """Return groups as ``Attributes`` does, new ones after the known."""
    return np.array(
        [
            np.where(np.isin(group, values), np.searchsorted(values, group), values.size)
            for group, values in zip(groups, known, strict=True)
        ]
    )


@pytest.mark.parametrize("n_past", [20, 300])
def test_batches_like_the_history_are_found_no_more_often_than_stated(monkeypatch, n_past):
    monkeypatch.setattr(module, "_LEAST", 0)

    def found(level, n_batches):
        monkeypatch.setattr(module, "FALSE_ALARMS", level)
        rng, n = np.random.default_rng(7), 0
        for _ in range(n_batches // 2):
            past = towns_and_numbers(rng, n_past)
            towns, counts = np.unique(past[:, 3], return_counts=True)
            often = towns[(counts >= SEVERAL) & ~np.isnan(towns)].tolist()
            kinds = ("number", "number", "flag", "category")
            columns = [TableColumn(kind, kind) for kind in kinds]
            columns[3] = TableColumn("town", "category", categories=tuple(map(str, often)))
            kept = Likeness.of(TableColumns(tuple(columns), True), with_codes(past, often))
            groups = groups_of(rng, n_past)
            known_groups = [np.unique(group) for group in groups]
            kept = kept.with_groups(("town", "sex"), levels(groups, known_groups))
            for size in rng.choice([1, 5, 40, 200], 2).tolist():
                counts = kept.count(
                    with_codes(towns_and_numbers(rng, size), often),
                    levels(groups_of(rng, size), known_groups),
                )
                n += bool(kept.compare(counts, Checks(warn=1e-9)))
                kept.remember(counts)
        return n

    assert found(1e-4, 200) == 0
    stated, n_batches = 0.1, 200
    assert binomtest(found(stated, n_batches), n_batches, stated, "greater").pvalue > 1e-4
    # Without the correction for the number of tests, they would be more.
    without = stated * module._TESTS * 6
    assert binomtest(found(without, n_batches), n_batches, stated, "greater").pvalue < 1e-4


@pytest.mark.parametrize(
    ("n_past", "n_new", "is_stopped"),
    [(2, 400, False), (12, 3, False), (12, 20, True), (400, 2, False), (400, 3, True)],
)
def test_what_stops_depends_on_the_sizes_of_history_and_batch(n_past, n_new, is_stopped):
    """All new applicants are out of range; in small samples, that may be chance."""
    _, kept = known(np.linspace(300, 12_000, n_past)[:, None])
    found = kept.compare(kept.count(np.full((n_new, 1), 5e5) + np.arange(n_new)[:, None]), Checks())
    assert any(one.stops for one in found) == is_stopped


# What is found


def lenders(n, seed=0):
    rng = np.random.default_rng([3, seed])
    return pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.04, np.nan, rng.integers(18, 75, n)),
            "income": np.round(np.exp(rng.normal(7.8, 0.5, n))),
            "rate": np.round(rng.uniform(0.5, 9.5, n), 1),
            "born": pd.Timestamp("1930-01-01") + pd.to_timedelta(rng.integers(0, 27_000, n), "D"),
            "job": rng.choice(["clerk", "nurse", "pilot", "cook"], n),
            "debts": np.where(rng.random(n) < 0.9, np.nan, 1.0),
            "bonus": np.where(rng.random(n) < 0.6, np.nan, rng.normal(size=n)),
        }
    )


@pytest.mark.parametrize(
    ("changed", "column", "what", "stops"),
    [
        ({"age": lambda x: np.nan}, "age", "missing", True),
        ({"job": lambda x: np.where(np.arange(700) < 679, "N" + x, x)}, "job", "unseen", True),
        ({"income": lambda x: 1000 * x}, "income", "outside", True),
        ({"income": lambda x: 100 * x}, "income", "outside", True),
        ({"rate": lambda x: 10 * x}, "rate", "outside", True),  # 5,5 read as 55
        ({"born": lambda x: x + pd.DateOffset(years=100)}, "born", "outside", True),
        ({"income": lambda x: 2000.0}, "income", "constant", True),
        ({"job": lambda x: "clerk"}, "job", "constant", False),  # perhaps a file of clerks
        ({"age": lambda x: x.where(np.arange(700) % 5 > 0)}, "age", "missing", False),
        ({"job": lambda x: x.where(np.arange(700) % 5 > 0, "N")}, "job", "unseen", False),
        ({"income": lambda x: x.where(np.arange(700) % 5 > 0, -1)}, "income", "outside", False),
        ({"bonus": lambda x: x.fillna(0)}, "bonus", "missing", False),  # blanks that were filled in
    ],
)
def test_columns_that_went_wrong_are_found(changed, column, what, stops):
    columns, kept = known(lenders(2000))
    assert kept.compare(kept.count(columns.codes(lenders(700, 1))), Checks()) == ()
    batch = lenders(700, 1).assign(**{name: lambda f, n=name: changed[n](f[n]) for name in changed})
    (one,) = kept.compare(kept.count(columns.codes(batch)), Checks())
    assert (one.column, one.what, one.stops, one.since) == (column, what, stops, "history")
    off = kept.compare(kept.count(columns.codes(batch)), Checks(stop=1, warn=1))
    assert off == ()


def test_the_words_name_the_column_and_both_shares():
    columns, kept = known(lenders(2000))
    batch = lenders(700, 1).assign(age=np.nan, born=pd.Timestamp("2066-01-01"), income=-1.0)
    found = {
        one.column: str(one) for one in kept.compare(kept.count(columns.codes(batch)), Checks())
    }
    share = kept.columns[0].missing / 2000
    assert found["age"].startswith(
        f"700 of 700 applicants have no value in 'age' ({100 * share:.3g} % in"
    )
    assert "outside 1890-" in found["born"]
    assert Unlike(
        **{"column": "a", "what": "constant", "n": 9, "of": 9, "share": 0.1}
        | {"since": "history", "stops": False}
    ).as_dict().keys() == {"column", "what", "n", "of", "share", "since", "stops"}


def test_one_or_two_odd_applicants_never_stop_a_batch():
    columns, kept = known(lenders(20_000))
    for n in (1, 2):
        odd = lenders(n, 1).assign(age=np.nan, job="N", income=1e9)
        assert kept.compare(kept.count(columns.codes(odd)), Checks()) == ()


def test_a_batch_like_one_that_was_decided_anyway_is_not_stopped_again():
    columns, kept = known(lenders(2000))

    def found(seed, share):
        batch = lenders(700, seed)
        batch["age"] = batch["age"].where(np.arange(700) >= share * 700)
        return kept.count(columns.codes(batch)), lambda counts: kept.compare(counts, Checks())

    for seed, share, stops in ((1, 0.6, True), (2, 0.6, False), (3, 0.62, False), (4, 1.0, True)):
        counts, compare = found(seed, share)
        (one,) = compare(counts)
        assert (one.column, one.stops) == ("age", stops)
        kept.remember(counts)
    for seed in range(5, 5 + module._ROUNDS):  # usual rounds, after which it is new again
        kept.remember(found(seed, 0)[0])
    assert found(99, 0.6)[1](found(99, 0.6)[0])[0].stops


def test_a_small_round_by_chance_excuses_no_later_batch():
    columns, kept = known(lenders(2000))
    kept.remember(kept.count(columns.codes(lenders(1, 1).assign(age=np.nan))))
    counts = kept.count(columns.codes(lenders(700, 2).assign(age=np.nan)))
    assert kept.compare(counts, Checks())[0].stops


def test_what_differs_from_the_last_rounds_only_is_reported():
    """The column is mostly missing in the history, then it is known, and then it goes blank."""
    columns, kept = known(lenders(2000))
    for seed in (1, 2):
        kept.remember(kept.count(columns.codes(lenders(700, seed).assign(debts=[1.0, 2.0] * 350))))
    counts = kept.count(columns.codes(lenders(700, 3).assign(debts=np.nan)))
    found = [one for one in kept.compare(counts, Checks()) if one.since == "last rounds"]
    usual = kept.count(columns.codes(lenders(700, 3)))
    assert [(one.column, one.what, one.stops) for one in found] == []  # against the history first
    (one,) = (one for one in kept.compare(usual, Checks()) if one.column == "debts")
    assert (one.what, one.since, one.share, one.stops) == ("missing", "last rounds", 0.0, False)


def test_a_column_that_is_good_again_is_not_reported():
    """After a blank batch, 4 % missing were reported against 32 % in the last rounds."""
    columns, kept = known(lenders(2000))
    wrong = lenders(700, 1).assign(age=np.nan, job="N")
    for batch in (wrong, lenders(700, 2), lenders(700, 3)):
        counts = kept.count(columns.codes(batch))
        found = kept.compare(counts, Checks())
        assert {one.column for one in found} == ({"age", "job"} if batch is wrong else set())
        kept.remember(counts)
    (one,) = kept.compare(kept.count(columns.codes(lenders(700, 4).assign(debts=1.0))), Checks())
    assert (one.column, one.n, one.since) == ("debts", 0, "history")
    assert "default" in str(one)  # not whether it is filled in


def test_groups_that_no_other_applicant_had_are_usual():
    """A history in which a third have a group of their own, such as a village."""
    kept = Likeness(()).with_groups(("village",), np.r_[np.arange(100), [100] * 200][None])
    (column,) = kept.columns
    assert (column.n, column.strange, column.what) == (300, 100, "group")
    none = np.empty((1, 0))
    for n_new, stops in ((40, []), (90, [True])):
        counts = kept.count(none, np.r_[[101] * n_new, [100] * (100 - n_new)][None])
        assert counts.tolist() == [[100, 0, n_new, 0]]
        assert [one.stops for one in kept.compare(counts, Checks())] == stops


@pytest.mark.parametrize("levels", [{"stop": 0}, {"stop": 1.5}, {"warn": True}, {"warn": 0.4}])
def test_levels_are_differences_of_shares(levels):
    with pytest.raises(InputError, match="of checks must"):
        Checks(**levels)


# Classifiers

WAYS = {
    "algorithm 1": lambda: fc.PartialFeedbackClassifier(random_state=0),
    "certified": lambda: fc.CertifiedClassifier(learner=LogisticRegression(), random_state=0),
    "raw": lambda: fc.PartialFeedbackClassifier(
        learner=make_pipeline(
            make_column_transformer(
                (OneHotEncoder(handle_unknown="ignore"), ["job"]), remainder="passthrough"
            ),
            LogisticRegression(),
        ),
        random_state=0,
    ),
}


@pytest.mark.parametrize(
    ("way", "kind"),
    [
        *((way, pd.DataFrame) for way in WAYS),
        *((way, pl.DataFrame) for way in WAYS if way != "raw"),  # its pipeline selects by pandas
    ],
)
def test_decide_stops_for_what_is_unlike_and_changes_nothing(way, kind):
    check_a_batch_unlike_the_history_stops_and_changes_nothing(WAYS[way](), kind)


def test_numbers_without_names_are_compared_by_position():
    check_numbers_without_names_are_compared_by_position(WAYS["algorithm 1"]())


def test_levels_and_the_switch_are_options_of_a_classifier(rng):
    X = rng.normal(size=(300, 1))
    good = (rng.random(300) < 0.97).astype(int)
    clf = fc.PartialFeedbackClassifier(checks=fc.Checks(stop=1, warn=1), random_state=0)
    assert clf.fit(X, good).decide(100 + X).unlike == ()
    with pytest.raises(InputError, match="checks must be None or Checks"):
        clf.set_params(checks=False).decide(X)
