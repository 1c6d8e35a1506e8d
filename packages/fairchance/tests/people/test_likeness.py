"""Batches against the history and the last round: what is kept, and what is found."""

from __future__ import annotations

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

import fairchance as fc
from classifier_checks import (
    check_a_batch_unlike_the_history_stops_and_changes_nothing,
    check_numbers_without_names_are_compared_by_position,
)
from fairchance.errors import InputError, LearningWarning
from fairchance.people.columns import TableColumns
from fairchance.people.likeness import ENOUGH, Checks, Likeness, excess, outward

# What is kept of the history

numbers = st.floats(allow_nan=False, allow_infinity=False)


@given(numbers, numbers)
def test_bounds_enclose_the_extremes_whatever_their_size(one, other):
    least, largest = min(one, other), max(one, other)
    low, high = outward(least, largest)
    assert low <= least <= largest <= high


@given(st.floats(1e-6, 1e9), st.floats(1e-6, 1e9))
def test_a_bound_is_near(one, other):
    least, largest = min(one, other), max(one, other)
    low, high = outward(least, largest)
    assert least - low <= 0.51 * min(least, largest - least or least)
    assert high - largest <= 0.51 * min(largest, largest - least or largest)


def test_an_extreme_cannot_be_inferred_from_its_bound():
    tops = np.linspace(10_400.5, 14_999.5, 200)
    assert {outward(339.0, top)[1] for top in tops.tolist()} == {15_000.0}


def known(table, missing_values=()):
    columns = TableColumns.of(table, missing_values)
    return columns, Likeness.of(columns, columns.codes(table))


def test_the_counts_of_a_history_and_of_a_batch_are_those_of_the_columns():
    jobs = ["clerk"] * 9 + ["nurse"] * 5 + ["pilot", "pilot", "cook", None]
    history = pd.DataFrame({"job": jobs, "age": [*range(20, 37), np.nan]})
    columns, kept = known(history)
    assert [one.counts[:3] for one in kept.columns] == [(18, 1, 3), (18, 1, 0)]
    batch = pd.DataFrame({"job": ["cook", "clerk", "baker", None], "age": [30.0, 30, 99, np.nan]})
    assert kept.count(columns.codes(batch))[:2, :3].tolist() == [[4, 1, 2], [4, 1, 1]]


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
    ("changed", "column", "code", "stops"),
    [
        ({"age": lambda x: np.nan}, "age", "missing", True),
        ({"job": lambda x: np.where(np.arange(700) < 679, "N" + x, x)}, "job", "unseen", True),
        ({"income": lambda x: 1000 * x}, "income", "outside", True),
        ({"income": lambda x: 100 * x}, "income", "outside", True),
        ({"rate": lambda x: 10 * x}, "rate", "outside", True),  # 5,5 read as 55
        ({"born": lambda x: x + pd.DateOffset(years=100)}, "born", "outside", True),
        ({"age": lambda x: x.where(np.arange(700) % 5 > 0)}, "age", "missing", False),
        ({"job": lambda x: x.where(np.arange(700) % 5 > 0, "N")}, "job", "unseen", False),
        ({"income": lambda x: x.where(np.arange(700) % 5 > 0, -1)}, "income", "outside", False),
    ],
)
def test_columns_that_went_wrong_are_found(changed, column, code, stops):
    columns, kept = known(lenders(2000))
    assert kept.compare(kept.count(columns.codes(lenders(700, 1))), Checks()) == ()
    batch = lenders(700, 1).assign(**{name: lambda f, n=name: changed[n](f[n]) for name in changed})
    (one,) = kept.compare(kept.count(columns.codes(batch)), Checks())
    assert (one.column, one.code, one.stops, one.since) == (column, code, stops, "history")
    off = kept.compare(kept.count(columns.codes(batch)), Checks(stop=1, warn=1))
    assert off == ()


def test_a_range_of_dates_is_one_of_days():
    columns, kept = known(lenders(2000))
    late = lenders(700, 1).assign(born=pd.Timestamp("2066-01-01"))
    (one,) = kept.compare(kept.count(columns.codes(late)), Checks())
    assert (one.column, one.low < "1930-01-01", one.high > "2003-12-01") == ("born", True, True)
    assert {*vars(one)} - {*one.as_dict()} == {"other", "moves"}


def test_fields_that_do_not_apply_are_left_out_of_the_record():
    columns, kept = known(lenders(2000))
    (one,) = kept.compare(kept.count(columns.codes(lenders(700).assign(age=np.nan))), Checks())
    assert {*vars(one)} - {*one.as_dict()} == {"low", "high", "other", "moves"}
    assert (one.n, one.of, one.usual) == (700, 700, kept.columns[0].counts[1] / 2000)


@pytest.mark.parametrize("n", [1, ENOUGH - 1, ENOUGH])
def test_few_applicants_are_not_compared(n):
    columns, kept = known(lenders(2000))
    odd = lenders(n, 1).assign(age=np.nan, job="N", income=1e9)
    found = kept.compare(kept.count(columns.codes(odd)), Checks())
    assert {one.column for one in found} == ({"age", "job", "income"} if n == ENOUGH else set())
    columns, few = known(lenders(n)[["income"]])
    codes = columns.codes(lenders(700, 1)[["income"]] * 1000)
    assert bool(few.compare(few.count(codes), Checks())) == (n == ENOUGH)


def test_counts_of_few_applicants_add_up():
    columns, kept = known(lenders(2000))
    odd = columns.codes(lenders(ENOUGH, 1).assign(age=np.nan))
    at_once = kept.compare(kept.count(odd), Checks())
    for rows in (odd[:7], odd[7:15]):
        assert kept.compare(kept.count(rows), Checks()) == ()
        kept.remember(kept.count(rows))
    assert kept.compare(kept.count(odd[15:]), Checks()) == at_once
    kept.remember(kept.count(odd[15:]))
    few, many = kept.windows
    for counts in (few.last, many.waiting):
        np.testing.assert_array_equal(counts, kept.count(odd))
    assert (few.waiting, many.last) == (None, None)


def test_a_batch_like_the_last_round_is_reported_and_not_stopped_again():
    columns, kept = known(lenders(2000))
    for seed, share, stops in ((1, 0.6, True), (2, 0.6, False), (3, 1.0, True), (4, 0.0, None)):
        batch = lenders(700, seed)
        batch["age"] = batch["age"].where(np.arange(700) >= share * 700)
        counts = kept.count(columns.codes(batch))
        found = [(one.column, one.stops) for one in kept.compare(counts, Checks())]
        assert found == [("age", stops)] * (stops is not None)
        kept.remember(counts)
    assert kept.compare(kept.count(columns.codes(lenders(700).assign(age=np.nan))), Checks())[
        0
    ].stops


def test_what_differs_from_the_last_round_only_is_reported():
    """The column is mostly missing in the history, then it is known, and then it goes blank."""
    columns, kept = known(lenders(2000))
    kept.remember(kept.count(columns.codes(lenders(700, 1).assign(debts=[1.0, 2.0] * 350))))
    (one,) = kept.compare(kept.count(columns.codes(lenders(700, 3))), Checks())
    found = (one.column, one.code, one.since, one.usual, one.stops)
    assert found == ("debts", "missing", "last round", 0.0, False)


def test_noise_is_no_difference():
    rng = np.random.default_rng(7)
    for usual, of in ((0.02, 20), (0.15, 20), (0.15, 200), (0.5, 60)):
        drawn = rng.binomial(of, usual, 4000).tolist()
        assert sum(excess(n, of, usual) > 0 for n in drawn) <= 2
    assert excess(9, 60, 0.0, 300) == 0.15


def test_random_parts_of_one_population_are_alike():
    for seed in range(20):
        columns, kept = known(lenders(ENOUGH * (1 + seed), seed))
        counts = kept.count(columns.codes(lenders(700, 100 + seed)))
        assert not any(one.stops for one in kept.compare(counts, Checks()))


def test_groups_that_no_other_applicant_had_are_usual():
    """A history in which a third have a group of their own, such as a village."""
    kept = Likeness(()).with_groups(("village",), np.r_[np.arange(100), [100] * 200][None])
    (column,) = kept.columns
    assert (column.counts[:3], column.code) == ((300, 0, 100), "group")
    none = np.empty((1, 0))
    for n_new, stops in ((40, []), (90, [True])):
        counts = kept.count(none, np.r_[[101] * n_new, [100] * (100 - n_new)][None])
        assert counts[:1, :3].tolist() == [[100, 0, n_new]]
        assert [one.stops for one in kept.compare(counts, Checks())] == stops


@pytest.mark.parametrize("levels", [{"stop": 0}, {"stop": 1.5}, {"warn": True}, {"warn": 0.4}])
def test_thresholds_are_differences_of_shares(levels):
    with pytest.raises(InputError) as error:
        Checks(**levels)
    assert error.value.option == "checks"


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
    with pytest.raises(InputError, match="False"):
        clf.set_params(checks=False).decide(X)


# Files with mistakes inside the history's range


def borrowers(n, seed=0):
    """Return applicants whose loans are larger if they earn more, and their outcomes."""
    rng = np.random.default_rng([8, seed])
    income = np.exp(rng.normal(7.8, 0.5, n))
    X = pd.DataFrame(
        {
            "income": np.round(income),
            "loan": np.round(3 * income * np.exp(rng.normal(0, 0.1, n))),
            "debt": np.round(np.exp(rng.normal(6.8, 0.9, n))),
            "years": rng.integers(0, 30, n).astype(float),
            "owner": (rng.random(n) < 0.2).astype(float),
            "job": rng.choice(["clerk", "nurse", "pilot"], n, p=[0.7, 0.2, 0.1]),
        }
    )
    odds = np.log(income) - 7.8 - 0.6 * (np.log(X["debt"] + 1) - 6.8) + 2
    return X, (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int)


def exchanged(X):
    return X.assign(income=X["debt"], debt=X["income"])


MISTAKES = {
    "another unit": (
        lambda X: X.assign(income=2 * X["income"], debt=X["debt"] / 10),
        {("income", "above"), ("debt", "below")},
    ),
    "headers exchanged": (exchanged, {("income", "below"), ("debt", "above")}),
    "sorted alone": (
        lambda X: X.assign(income=np.sort(X["income"])),
        {("income", "together")},
    ),
    "truth values for years": (
        lambda X: X.assign(years=X["years"] > 15),
        {("years", "below")},
    ),
    "years for truth values": (lambda X: X.assign(owner=X["years"]), {("owner", "outside")}),
    "truth values exchanged": (lambda X: X.assign(owner=1 - X["owner"]), {("owner", "above")}),
    "one text for all": (lambda X: X.assign(job="pilot"), {("job", "is")}),
    "three impossible numbers": (
        lambda X: X.assign(debt=X["debt"].where(np.arange(len(X)) >= 3, 1e308)),
        {("debt", "far")},
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_inside_the_range_stop_a_batch(mistake):
    """Incomes doubled and debts divided by ten tripled acceptances without a word."""
    change, expected = MISTAKES[mistake]
    columns, kept = known(borrowers(2000)[0])
    right = borrowers(200, 1)[0]
    right.loc[[0, 1], "income"] = kept.columns[0].low, kept.columns[0].high
    assert kept.compare(kept.count(columns.codes(right)), Checks()) == ()
    found = kept.compare(kept.count(columns.codes(change(right))), Checks())
    assert {(one.column, one.code) for one in found if one.stops} >= expected
    assert kept.compare(kept.count(columns.codes(change(right))), Checks(stop=1, warn=1)) == ()


def test_mistakes_are_found_in_single_calls_too():
    columns, kept = known(borrowers(2000)[0])
    wrong = MISTAKES["another unit"][0](borrowers(200, 1)[0])
    codes, stops = columns.codes(wrong), []
    for at in range(200):
        counts = kept.count(codes[at : at + 1])
        stops.append(any(one.stops for one in kept.compare(counts, Checks())))
        kept.remember(counts, confirmed=stops[-1])
    assert 19 <= stops.index(True) <= 60
    assert sum(stops) == 1  # later applicants are like those that were confirmed


def test_a_correlation_is_that_of_the_sides():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(1000, 1)) @ [[1.0, -1.0]] + 0.3 * rng.normal(size=(1000, 2))
    kept = Likeness.of(TableColumns.of(x), x)
    one, other = kept.columns
    high = [column.count(x[:, at])[1] for at, column in enumerate((one, other))]
    assert (one.partner, other.partner, one.counts[-1]) == (1, 0, int((high[0] & high[1]).sum()))
    (apart,) = kept.compare(kept.count(np.c_[x[:, 0], x[::-1, 1]]), Checks())
    assert (apart.column, apart.other, apart.code, apart.stops) == (0, 1, "together", True)
    assert apart.usual == np.mean(high[0] == high[1])
    assert apart.n == np.sum(high[0] == high[1][::-1])


@pytest.mark.parametrize("way", ["algorithm 1", "certified"])
def test_decide_stops_for_mistakes_inside_the_range(way):
    numbers = ["income", "loan", "debt", "years", "owner"]
    X, good = borrowers(1000)
    clf = WAYS[way]().fit(X[numbers] / 1000, good)
    right = borrowers(200, 1)[0][numbers] / 1000
    for mistake in (
        "another unit",
        "headers exchanged",
        "sorted alone",
        "three impossible numbers",
    ):
        with pytest.raises(InputError, match="unlike the history") as error:
            clf.decide(MISTAKES[mistake][0](right))
        assert error.value.option == "unlike_history"
    assert clf.rounds_ == ()
    assert clf.decide(right).unlike == ()


def lender(X, share, rng):
    """Return the decisions of a score cut with an error of its own."""
    score = np.log(X["income"]) - 0.4 * np.log(X["debt"] + 1) + rng.normal(0, 0.3, len(X))
    return (score >= np.quantile(score, 1 - share)).to_numpy()


@pytest.mark.parametrize("way", ["algorithm 1", "certified"])
def test_exchanged_decisions_of_the_lender_stop_a_batch(way):
    rng, numbers = np.random.default_rng(9), ["income", "loan", "debt", "years"]
    X, good = borrowers(2000)
    clf = WAYS[way]().fit(X[numbers] / 1000, good, accepted=lender(X, 0.5, rng))
    now = borrowers(300, 1)[0]
    theirs = lender(now, 0.5, rng)
    with pytest.raises(InputError, match="exchanged in the lender's decisions") as error:
        clf.decide(now[numbers] / 1000, incumbent=~theirs)
    assert error.value.option == "unlike_history"
    assert clf.rounds_ == ()
    (one,) = clf.decide(now[numbers] / 1000, incumbent=~theirs, unlike_history=True).unlike
    assert (one.column, one.code, one.stops) == ("incumbent", "decided", True)
    other = next(column for column in clf._intake.likeness.columns if column.name == one.other)
    high = now[one.other] / 1000 > other.marks[other.side]
    assert one.n == np.sum(high == ~theirs)
    assert clf.decide(now[numbers] / 1000, incumbent=theirs).unlike == ()


@pytest.mark.parametrize("comes", [False, True])
def test_a_small_history_does_not_say_how_decisions_go_with_a_column(comes):
    """Its decisions are known; those of a batch may be, and are not compared."""
    x = np.random.default_rng(0).normal(size=(100, 1))
    clf = fc.CertifiedClassifier(random_state=0).fit(x[:50], x[:50, 0] > 1, accepted=x[:50, 0] > 0)
    incumbent = {"incumbent": x[50:, 0] > 0} if comes else {}
    assert clf.decide(x[50:], **incumbent).unlike == ()


@pytest.mark.parametrize("stop", [1, 0.3])
def test_other_shares_and_calls_without_decisions_are_honest(stop):
    rng, X = np.random.default_rng(10), borrowers(4000)[0]
    columns = TableColumns.of(X)
    kept = Likeness.of(columns, columns.codes(X), None, lender(X, 0.5, rng))
    for seed, share in enumerate([0.05, 0.2, None, 0.8, 0.95, None, 1, 0] * 4):
        now = borrowers(150, seed)[0]
        theirs = None if share is None else lender(now, share, rng)
        counts = kept.count(columns.codes(now), None, theirs)
        assert kept.compare(counts, Checks(stop=stop)) == ()
        kept.remember(counts)
    wrong = kept.count(columns.codes(X), None, ~lender(X, 0.5, rng))
    assert [one.stops for one in kept.compare(wrong, Checks(stop=stop))] == [True] * (stop < 1)


def test_a_drift_in_small_steps_is_reported_and_not_stopped():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(2000, 1))
    kept = Likeness.of(TableColumns.of(X), X)
    found = ()
    for step in range(30):
        counts = kept.count(rng.normal(0.05 * step, 1, size=(600, 1)))
        found = kept.compare(counts, Checks())
        assert not any(one.stops for one in found)
        kept.remember(counts)
    assert [one.code for one in found] == ["above"]
    assert found[0].n / found[0].of - found[0].usual > 0.45


def test_far_more_certain_acceptances_than_expected_stop_a_batch():
    """Ten columns move by half a standard deviation each, none of them by enough to stop."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(2000, 10))
    good = (rng.random(2000) < 1 / (1 + np.exp(-X.sum(axis=1)))).astype(int)
    clf = fc.CertifiedClassifier(learner=LogisticRegression(), random_state=0).fit(X, good)
    better = rng.normal(0.5, 1, size=(400, 10))
    with (
        pytest.raises(InputError, match="accepted for sure") as error,
        pytest.warns(LearningWarning),
    ):
        clf.decide(better)
    assert error.value.option == "unlike_history"
    assert clf.rounds_ == ()
    (one,) = (one for one in clf.decide(better, unlike_history=True).unlike if one.stops)
    assert (one.code, one.of, one.n / one.of > one.usual + 0.3) == ("certain", 400, True)
    with pytest.warns(LearningWarning):
        again = clf.decide(rng.normal(0.5, 1, size=(400, 10))).unlike
    assert ("certain", False) in {(one.code, one.stops) for one in again}  # as in the last round
    assert clf.decide(rng.normal(size=(400, 10))).unlike == ()


def test_certain_acceptances_add_up_over_calls_and_policies():
    kept = Likeness(())
    none = kept.count(np.empty((1, 0)))
    found = []
    for share in [0.1, 0.3] * 50:
        counts = kept.count_certain(none, 1, 1, share)
        found.append(kept.compare_certain(counts, Checks()))
        kept.remember(counts)
    (one,) = found[ENOUGH - 1]
    assert not any(found[: ENOUGH - 1])
    assert (one.n, one.of, one.stops) == (ENOUGH, ENOUGH, True)
    assert one.usual == pytest.approx(0.2)
