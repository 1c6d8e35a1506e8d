"""A log reads any table of decisions, and refuses what cannot have happened."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fairchance.audit import DecisionLog, Rule, evaluate
from fairchance.audit.models import estimate_propensity
from fairchance.errors import InputError
from mixed_tables import KINDS, applicants

ACCEPTED, P = [True, True, False], [1.0, 0.5, 0.5]


def columns(n=60):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, n)
    accepted = rng.random(n) < p
    return {
        "took": accepted,
        "p": p,
        "repaid": np.where(accepted, rng.random(n) < 0.8, np.nan),
        "sex": rng.choice(["f", "m"], n),
        "month": np.arange(n) // 20 + 1,
        "points": rng.normal(size=n),
        "income": rng.normal(size=n),
        "town": rng.choice(["x", "y", "z"], n),
    }


NAMES = {
    "accepted": "took",
    "propensity": "p",
    "outcome": "repaid",
    "group": "sex",
    "round": "month",
    "score": "points",
}


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_log_of_named_columns_of_any_frame(kind):
    table = columns()
    log = DecisionLog.from_frame(kind(table), features=["income"], **NAMES)
    for name, of in (("accepted", "took"), ("propensity", "p"), ("score", "points")):
        assert np.array_equal(getattr(log, name), table[of])
    assert np.array_equal(log.outcome, table["repaid"], equal_nan=True)
    assert np.array_equal(log.round, table["month"])
    (group,) = log.groups
    assert group.attribute == "sex"
    assert np.array_equal(np.array(group.names)[group.codes], table["sex"])
    assert log.features == ("income",)
    assert log.table[1].shape == (60, 1)
    # Columns that models may not use are there for rules.
    assert type(log.X) is type(kind(table))
    assert list(log.X.columns if kind is not pa.table else log.X.column_names) == ["income", "town"]
    assert not log.estimated


def test_arrays_lists_and_frames_give_the_same_log():
    table = columns()
    of_arrays = DecisionLog(table["took"], table["p"], table["repaid"], round=table["month"])
    of_lists = DecisionLog(*(table[name].tolist() for name in ("took", "p", "repaid", "month")[:3]))
    for name in ("accepted", "propensity", "outcome", "withdrawn"):
        one, other = getattr(of_arrays, name), getattr(of_lists, name)
        assert np.array_equal(one, other, equal_nan=True)
    assert of_arrays.round.max() == 3
    assert (of_lists.round == 1).all()
    assert of_arrays.backend == "numpy"


@pytest.mark.parametrize(
    "outcome",
    [
        [1, 0, np.nan],
        [True, False, None],
        ["good", "bad", None],
        ["good", "bad", ""],
        pd.Series([True, False, None], dtype="boolean"),
        pl.Series([1, 0, None]),
        pa.chunked_array([["good", "bad", None]]),
        np.ma.array([1, 0, 1], mask=[False, False, True]),
    ],
)
def test_outcomes_and_how_they_are_missing(outcome):
    log = DecisionLog([True, True, True], [0.5, 0.5, 0.5], outcome)
    assert np.array_equal(log.outcome, [1, 0, np.nan], equal_nan=True)
    assert log.pending.tolist() == [False, False, True]


def test_outcomes_of_other_labels_need_the_good_one():
    outcome = ["repaid", "default", "repaid"]
    log = DecisionLog([True] * 3, [0.5] * 3, outcome, pos_label="repaid")
    assert log.outcome.tolist() == [1, 0, 1]
    with pytest.raises(InputError, match="pos_label"):
        DecisionLog([True] * 3, [0.5] * 3, outcome)
    # A misspelt label would make every outcome bad.
    for spelt in ("Repaid", "paid"):
        with pytest.raises(InputError, match=f"'{spelt}'"):
            DecisionLog([True] * 3, [0.5] * 3, outcome, pos_label=spelt)
        with pytest.raises(InputError, match=f"'{spelt}'"):
            DecisionLog([True] * 2, [0.5] * 2, ["repaid"] * 2, pos_label=spelt)


def test_probabilities_that_contradict_the_decisions_are_refused(rng):
    p = rng.choice([0.1, 0.5, 0.9], 4000)
    accepted = rng.random(4000) < p
    outcome = np.where(accepted, 1.0, np.nan)
    assert len(DecisionLog(accepted, p, outcome)) == 4000
    taken = np.where(accepted, p, 1 - p)  # the probability of the decision, as bandits log it
    for wrong in (taken, np.full(4000, 0.6)):
        with pytest.raises(InputError):
            DecisionLog(accepted, wrong, outcome)
    with pytest.raises(InputError):
        DecisionLog(accepted[accepted], p[accepted], outcome[accepted])
    assert DecisionLog([True], [1 + 1e-12], [1]).propensity.tolist() == [1.0]


def test_an_export_is_read_as_one_only_if_nothing_else_is_asked_for():
    same = {"erased": False, "drawn": False, "accepted": True, "propensity": 1.0, "round": 1}
    same |= {"score": 0.5, "override": None, "outcome": "good"}
    table = pd.DataFrame({"id": range(40), **same, "later": ["bad", "good"] * 20})
    assert DecisionLog.from_frame(table).outcome.mean() == 1
    assert DecisionLog.from_frame(table.drop(columns="id")).outcome.mean() == 1
    assert DecisionLog.from_frame(table, outcome="later").outcome.mean() == 0.5
    assert DecisionLog.from_frame(table, estimated=True).estimated
    twice = pd.concat([table, table[:1]])
    with pytest.raises(InputError, match="0"):
        DecisionLog.from_frame(twice)


def test_states_beside_good_and_bad():
    log = DecisionLog([True] * 4, [0.5] * 4, ["good", "withdrawn", None, "not_taken"])
    assert log.withdrawn.tolist() == [False, True, False, False]
    assert log.not_taken.tolist() == [False, False, False, True]
    assert log.taken.tolist() == [True, True, True, False]
    assert log.pending.tolist() == [False, False, True, False]
    for name in ("withdrawn", "not_taken"):
        log = DecisionLog([True] * 2, [0.5] * 2, [1, np.nan], **{name: [False, True]})
        assert getattr(log, name).tolist() == [False, True]
        assert not log.pending.any()


def test_decisions_of_the_incumbent_may_be_missing():
    table = pd.DataFrame({"accepted": [1, 1, 0], "propensity": 0.5, "outcome": [1, 0, None]})
    log = DecisionLog.from_frame(table.assign(own=[1, None, 0]), incumbent="own")
    assert np.array_equal(log.incumbent, [1, np.nan, 0], equal_nan=True)
    assert log.select([0, 2]).incumbent.tolist() == [1, 0]
    assert DecisionLog.from_frame(table.assign(own=None), incumbent="own").incumbent is None


def test_the_last_complete_round_is_before_the_first_pending_outcome():
    rounds, outcome = [1, 2, 3], [1, np.nan, 0]
    assert DecisionLog([True] * 3, [0.5] * 3, outcome, round=rounds).last_complete_round == 1
    log = DecisionLog([True] * 3, [0.5] * 3, outcome, round=rounds, withdrawn=[False, True, False])
    assert log.last_complete_round == 3


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"propensity": [1.0, 0.0, 0.5]}, ["row 1", "0.0"]),
        ({"propensity": [1.0, 0.5, 1.0]}, ["row 2", "1.0"]),
        ({"propensity": [1.0, np.nan, 0.5]}, ["row 1", "NaN"]),
        ({"propensity": [1.0, None, 0.5]}, ["row 1", "NaN"]),
        ({"propensity": [1.0, 50.0, 0.5]}, ["row 1", "50.0"]),
        ({"propensity": [1.0, 0.5, -0.1]}, ["row 2", "-0.1"]),
        ({"propensity": ["high", "low", "low"]}, ["'high'"]),
        ({"propensity": [1.0, 0.5]}, ["accepted", "2"]),
        ({"propensity": []}, []),
        ({"accepted": ["yes", "no", "no"]}, ["'yes'"]),
        ({"accepted": [True, None, False]}, ["accepted", "row 1"]),
        ({"accepted": pd.array([True, None, False], "boolean")}, ["accepted", "row 1"]),
        ({"outcome": [1, 0, 1]}, ["row 2"]),
        ({"outcome": [1, 0]}, ["outcome", "(2,)"]),
        ({"outcome": [0, 1, 2]}, ["0, 1, 2"]),
        ({"withdrawn": [False, False, True]}, ["row 2"]),
        ({"withdrawn": [True, False, False]}, ["row 0"]),
        ({"not_taken": [False, False, True]}, ["row 2"]),
        ({"not_taken": [False, True, False]}, ["row 1"]),
        ({"incumbent": [1, 0, 2]}, ["incumbent", "2.0", "row 2"]),
        ({"round": [1, 1.5, 2]}, ["1.5"]),
        ({"round": [1, 2]}, ["round", "(2,)"]),
        ({"score": ["a", "b", "c"]}, ["score", "'a'"]),
        ({"mixture": [0.5, 0.0, 0.5]}, ["row 1", "0.0"]),
        ({"mixture": [0.5, 1.5, 0.5]}, ["row 1", "1.5"]),
        ({"X": np.zeros((2, 1))}, ["X", "3", "2"]),
        ({"sensitive_features": ["f", "m"]}, ["sensitive_features", "3"]),
        ({"sensitive_features": ["f", "m", None]}, ["sensitive_features"]),
        ({"propensity": None}, []),
    ],
)
def test_what_is_refused(given, words):
    columns = {"accepted": ACCEPTED, "propensity": P, "outcome": [1, 0, np.nan]} | given
    with pytest.raises(InputError) as error:
        DecisionLog(**columns)
    for word in words:
        assert word in str(error.value)


def test_a_frame_without_a_named_column_is_refused():
    table = columns()
    with pytest.raises(InputError, match="'income2'"):
        DecisionLog.from_frame(pd.DataFrame(table), features=["income2"], **NAMES)
    with pytest.raises(InputError, match="ndarray"):
        DecisionLog.from_frame(np.zeros((3, 3)))


@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_of_a_table_without_any_are_estimated(rng, kind):
    n = 4000
    X, good, _ = applicants(rng, n, "pandas")
    chance = np.where(X["job"] == "nurse", 0.8, 0.3)
    accepted = rng.random(n) < chance
    X["took"], X["repaid"] = accepted, np.where(accepted, good, np.nan)
    features = ["job", "age", "owner", "since", "income"]
    log = DecisionLog.from_frame(
        KINDS[kind](X), accepted="took", propensity=None, outcome="repaid", features=features
    )
    assert log.estimated
    for job in ("nurse", "clerk"):
        here = (X["job"] == job).to_numpy()
        assert abs(log.propensity[here].mean() - chance[here][0]) < 0.05
    found = evaluate(log, Rule("income", ">=", 20.0))
    fdr = found.of("false_discovery_rate")
    assert abs(fdr.value - (1 - good[X["income"] >= 20].mean())) < 0.03
    # Control: those whom the past accepted differ from others.
    kept = accepted & (X["income"] >= 20)
    assert abs(1 - good[kept].mean() - (1 - good[X["income"] >= 20].mean())) > 0.03
    assert np.isnan(fdr.low)
    with pytest.raises(InputError):
        DecisionLog.from_frame(KINDS[kind](X), accepted="took", propensity=None, outcome="repaid")


def test_an_estimated_probability_leaves_what_happened_possible(rng):
    X = rng.normal(size=(3000, 1))
    accepted = X[:, 0] > 0  # the features decide
    p = estimate_propensity(X, [], accepted)
    assert p[accepted].min() > 0
    assert p[accepted].max() > 0.98
    assert p[~accepted].max() < 1
    alone = estimate_propensity(X, [], np.ones(3000, np.bool_))
    assert alone.min() > 0.99


def test_an_estimate_does_not_see_the_decision_on_the_applicant(rng):
    X = rng.normal(size=(2000, 3))
    accepted = rng.random(2000) < 0.5  # the features say nothing
    p = estimate_propensity(X, [], accepted)
    assert abs(p[accepted].mean() - p[~accepted].mean()) < 0.02


def test_a_selection_keeps_everything_of_its_rows():
    table = columns()
    log = DecisionLog.from_frame(pd.DataFrame(table), features=["income"], **NAMES)
    rows = log.round == 2
    some = log.select(rows)
    assert len(some) == 20
    for name in ("accepted", "propensity", "outcome", "round", "score"):
        assert np.array_equal(getattr(some, name), getattr(log, name)[rows], equal_nan=True)
    assert np.array_equal(some.groups[0].codes, log.groups[0].codes[rows])
    assert some.X["town"].tolist() == table["town"][rows].tolist()
    assert some.table[1].shape == (20, 1)
    with pytest.raises(InputError):
        log.select(np.zeros(60, np.bool_))


def test_estimated_probabilities_know_that_the_past_looked_at_groups(rng):
    X, sex = rng.normal(size=(3000, 2)), rng.choice(["f", "m"], 3000)
    accepted = rng.random(3000) < np.where(sex == "f", 0.2, 0.7)
    outcome = np.where(accepted, 1.0, np.nan)
    log = DecisionLog(accepted, None, outcome, X=X, sensitive_features=sex)
    assert abs(log.propensity[sex == "f"].mean() - 0.2) < 0.05
    assert abs(log.propensity[sex == "m"].mean() - 0.7) < 0.05
