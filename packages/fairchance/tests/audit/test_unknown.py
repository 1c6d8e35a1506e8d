"""The map of applicants about whom a log says nothing."""

from __future__ import annotations

import datetime as dt
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairchance import Revenue
from fairchance.audit import Condition, DecisionLog, unknown
from fairchance.audit.unknown import _rounded
from fairchance.errors import InputError

N = 3000


def applicants(rng, n=N):
    """Return a table with every kind of column, and values missing from all kinds."""
    purposes = rng.choice(
        ["car", "tv", "house", "boat", "kite"], n, p=[0.4, 0.3, 0.2, 0.0995, 0.0005]
    )
    frame = pd.DataFrame(
        {
            "income": rng.lognormal(7.5, 0.5, n),
            "age": rng.integers(18, 80, n).astype(float),
            "purpose": purposes.astype(object),
            "owner": rng.random(n) < 0.5,
            "since": pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 3000, n), "D"),
        }
    )
    for name in ("income", "age", "purpose", "since"):
        frame.loc[rng.random(n) < 0.1, name] = None
    return frame


def decided(rng, X, propensity, **columns):
    """Return a log in which three of four are good."""
    accepted = rng.random(len(propensity)) < propensity
    outcome = np.where(accepted, rng.random(len(propensity)) < 0.75, np.nan)
    return DecisionLog(accepted, propensity, outcome, X=X, **columns)


def selected(frame, conditions):
    """Return whom conditions select, read from the raw table."""
    inside = np.ones(len(frame), bool)
    for each in conditions:
        column = frame[each.column]
        if each.kind == "category":
            is_it = column == each.is_ if each.is_ is not None else ~column.isin(each.is_not)
            inside &= is_it.to_numpy()
            continue
        gone = column.isna().to_numpy()
        if each.kind == "date":
            column = (column - pd.Timestamp(0)) / pd.Timedelta(days=1)
        values = column.to_numpy(float)
        inside &= np.where(gone, each.missing, (values >= each.low) & (values < each.high))
    return inside


POLICIES = {
    "income": lambda X: X["income"] > 1500,
    "income or none": lambda X: (X["income"] > 1500) | X["income"].isna(),
    "no income": lambda X: X["income"].isna(),
    "band": lambda X: X["age"].between(30, 50) & (X["purpose"] != "car"),
    "since": lambda X: X["since"] < pd.Timestamp("2019-06-01"),
    "owner": lambda X: X["owner"] & (X["purpose"] == "tv"),
    "missing": lambda X: X["purpose"].isna() | (X["purpose"] == "kite"),
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("depth", [1, 3, 5])
def test_slices_are_a_partition_and_their_words_select_them(policy, depth):
    rng = np.random.default_rng(1)
    X = applicants(rng)
    p = np.where(POLICIES[policy](X), 0.8, 0.05)
    log = decided(rng, X, p, sensitive_features=rng.choice(["f", "m"], N))
    found = unknown(log, depth=depth)
    members = np.array([selected(X, each.conditions) for each in found.slices])
    assert (members.sum(axis=0) == 1).all()
    group = log.groups[0].codes
    for each, inside in zip(found.slices, members, strict=True):
        # One less: a tree of scikit-learn 1.7 counts missing values on the wrong side of a cut.
        assert each.n_people == inside.sum() >= 4 * found.needed - 1
        assert each.n_accepted == (log.accepted & inside).sum()
        assert each.n_outcomes == (log.known & inside).sum()
        assert each.expected == pytest.approx(p[inside].sum())
        assert each.chance == pytest.approx(p[inside].mean())
        assert each.largest_chance == p[inside].max()
        assert each.of_groups["group m"] == pytest.approx(inside[group == 1].mean())
        assert len(each.conditions) <= depth
    assert sum(each.share for each in found.slices) == pytest.approx(1)


def test_conditions_in_words():
    rng = np.random.default_rng(2)
    X = applicants(rng)
    cases = {
        "income": {"income below 1,500 or missing", "income 1,500 or more"},
        "income or none": {"income below 1,500", "income 1,500 or more or missing"},
        "no income": {"income missing", "income not missing"},
        "since": {"since before 1 June 2019", "since from 1 June 2019 or missing"},
    }
    for policy, words in cases.items():
        log = decided(rng, X, np.where(POLICIES[policy](X), 0.8, 0.0))
        assert {str(each) for each in unknown(log, depth=1).slices} == words
    log = decided(rng, X, np.where(POLICIES["owner"](X), 0.8, 0.0))
    words = {frozenset(map(str, each.conditions)) for each in unknown(log, depth=2).slices}
    assert words == {
        frozenset({"purpose not tv"}),
        frozenset({"purpose tv", "owner no"}),
        frozenset({"purpose tv", "owner yes"}),
    } or words == {
        frozenset({"owner no"}),
        frozenset({"owner yes", "purpose tv"}),
        frozenset({"owner yes", "purpose not tv"}),
    }
    assert str(Condition("age", "number", -1.5, 3.0)) == "age from −1.5 to below 3"
    assert str(Condition("on", "date", 18262.0, 18293.5)) == (
        "on from 1 January 2020 to before 1 February 2020, 12:00 UTC"
    )


@given(st.integers(-3000, 3000), st.integers(1, 500), st.integers(0, 6))
def test_no_rounder_number_separates_two_values(least, gap, digits):
    def zeros(number):
        return len(str(number)) - len(str(number).rstrip("0")) if number else 99

    scale = 10**digits
    number = _rounded(least / scale, (least + gap) / scale, "number")
    assert least / scale < number <= (least + gap) / scale
    roundest = max(zeros(each) for each in range(least + 1, least + gap + 1))
    assert zeros(round(number * scale)) == roundest


def test_what_exploring_costs():
    rng = np.random.default_rng(3)
    x = np.repeat([0.0, 1.0, 2.0], 200)
    p = np.repeat([0.0, 0.02, 0.9], 200)
    accepted = np.zeros(600, bool)
    accepted[[200, 250, 300, 350]] = True
    accepted[400:] = rng.random(200) < 0.9
    outcome = np.where(accepted, 1.0, np.nan)
    outcome[[200, 250]] = 0.0, np.nan  # bad, and pending
    outcome[400:420] = np.where(accepted[400:420], 0.0, np.nan)
    log = DecisionLog(
        accepted, p, outcome, X=x[:, None], round=np.tile([1, 2], 300), sensitive_features=x > 0
    )
    found = unknown(log, utility=Revenue(gain=200, loss=500), needed=30, explore=0.25)
    nothing, little, known = sorted(found.slices, key=lambda each: each.chance)
    assert (nothing.unknown, little.unknown, known.unknown) == (True, True, False)
    assert (nothing.n_outcomes, nothing.still_needed, nothing.n_without_chance) == (0, 30, 200)
    assert nothing.cost_at_most == 30 * 500
    assert nothing.extrapolated
    assert nothing.cost_expected == pytest.approx(30 * 500 * nothing.bad_share)
    assert nothing.rounds == math.ceil(30 / (0.25 * 100))
    assert nothing.cost_per_round == 0.25 * 100 * 500
    assert (little.n_outcomes, little.n_pending, little.still_needed) == (3, 1, 26)
    assert little.extrapolated  # two good outcomes of three say hardly anything
    assert little.cost_expected == pytest.approx(26 * 500 * little.bad_share)
    assert not known.extrapolated
    of_known = outcome[400:][accepted[400:]]
    assert known.bad_share == pytest.approx(1 - of_known.mean())
    assert (known.still_needed, known.cost_at_most, known.cost_per_round) == (0, 0.0, 0.0)
    assert found.of_groups == {"group False": 1.0, "group True": 0.5}
    verdict = found.verdict()
    for words in ("400 of 600", "66.7 %", "under 30 outcomes", "56 more", "28,000"):
        assert words in verdict


def test_outcomes_of_few_cost_what_the_model_expects():
    x = np.repeat([0.0, 1.0], 200)
    accepted = np.arange(400) >= 198  # two of the first slice, who are both good
    outcome = np.where(accepted, np.arange(400) % 2 == 0, np.nan)
    outcome[198:200] = 1.0
    p, X = np.where(x, 1.0, 0.01), x[:, None]
    (few,) = unknown(DecisionLog(accepted, p, outcome, X=X)).unknown
    assert (few.n_outcomes, few.extrapolated) == (2, True)
    assert few.bad_share == pytest.approx(0.5, abs=0.1)
    assert few.cost_expected == pytest.approx(28 * few.bad_share)
    outcome[198:200] = np.nan
    pending = unknown(DecisionLog(accepted, p, outcome, X=X), needed=2)
    assert "pending outcomes are enough" in pending.verdict()


def test_a_log_that_knows_everybody_and_hides_some():
    rng = np.random.default_rng(4)
    X = rng.random((2000, 2))
    p = np.where(np.arange(2000) % 10 == 0, 0.0, 0.8)  # not a matter of features
    found = unknown(decided(rng, X, p))
    assert found.unknown == ()
    assert found.verdict().startswith("Every slice")
    assert "200 applicants had no chance" in found.verdict()


def test_the_mixture_counts_if_there_is_one():
    rng = np.random.default_rng(5)
    X, p = np.arange(1000.0)[:, None], np.where(np.arange(1000) < 500, 0.0, 0.8)
    log = decided(rng, X, p, mixture=np.where(p > 0, 0.8, 0.4))
    assert unknown(log).slices[0].largest_chance == 0.4


def test_erased_applicants_are_left_out():
    rng = np.random.default_rng(6)
    X = applicants(rng, 500)
    found = unknown(decided(rng, X, np.full(500, 0.5), erased=np.arange(500) < 20))
    assert (found.n_people, found.n_erased) == (480, 20)
    assert "20 applicants" in found._repr_html_()


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_tables_come_back_in_the_kind_of_the_log(kind):
    rng = np.random.default_rng(7)
    income = rng.integers(500, 4000, 900)
    X = kind({"income": income, "when": [dt.date(2020, 1, 1)] * 900})
    table = unknown(decided(rng, X, np.where(income < 1200, 0.0, 0.9))).to_frame()
    assert isinstance(table, kind)
    assert list(table["slice"]) == ["income below 1,200", "income 1,200 or more"]
    assert list(table["unknown"]) == [True, False]


def test_few_applicants_are_one_slice():
    found = unknown(DecisionLog([1, 0], [0.5, 0.5], [1, np.nan], X=np.array([[1.0], [2.0]])))
    (only,) = found.slices
    assert str(only) == "all applicants"
    assert (only.n_people, only.unknown, only.still_needed) == (2, True, 29)


def test_bad_input():
    log = DecisionLog([1, 0], [0.5, 0.5], [1, np.nan])
    with pytest.raises(InputError):
        unknown(log)
    log = DecisionLog([1, 0], [0.5, 0.5], [1, np.nan], X=np.array([[1.0], [2.0]]))
    for options in ({"needed": 0}, {"depth": 1.5}, {"explore": 0.0}, {"needed": True}):
        with pytest.raises(InputError, match=str(next(iter(options.values())))):
            unknown(log, **options)
