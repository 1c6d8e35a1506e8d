"""``secondlook plan --history`` with files as lenders have them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cli.lender_files import call, done, people, refused
from secondlook.cli.planned_history import read_history
from secondlook.errors import InputError

ROLES = ("--outcome", "outcome", "--group", "sex")
FEW = ("--people", "150", "--rounds", "2", "--repetitions", "2", "--jobs", "1")


@pytest.fixture(autouse=True)
def loans(tmp_path, monkeypatch):
    """Write a history with ids, text and people without outcome; return it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    found = people(300)
    found.insert(0, "row", np.arange(300)[::-1] + 17)
    found["account_id"] = np.random.default_rng(0).permutation(10_000)[:300]
    found["amount"] = np.random.default_rng(1).permutation(10_000)[:300]  # differs, and is no id
    found["approved"] = (found["income"] > -0.3).astype(int)
    found.loc[found["approved"] == 0, "outcome"] = None
    found["since"] = pd.Timestamp("2031-01-01")
    found.to_csv("loans.csv", index=False)
    found.to_parquet("loans.parquet", index=False)
    return found


@pytest.mark.parametrize("file", ["loans.csv", "loans.parquet"])
def test_a_history_as_it_is(loans, file):
    told = done("plan", "--history", file, *ROLES, "--good-outcome", "repaid", *FEW)
    known = loans["outcome"].notna()
    assert told["history"] == {
        "people": known.sum(),
        "good": (loans["outcome"] == "repaid").sum(),
        "rows_without_outcome": (~known).sum(),
        "rows_with_gaps": 0,
        "features": ["income", "debt", "amount"],
        "columns_left_out": {
            "row": "an id",
            "id": "text",
            "account_id": "an id",
            "approved": "the same in every row",
            "since": "dates or times",
        },
        "people_drawn": 150 * 3,
    }
    assert [one["whom"] for one in told["certificate"]] == ["everybody", "f", "m"]


def test_lines_say_what_is_used_and_what_is_not(loans):
    words = ("plan", "--history", "loans.csv", *ROLES, "--good-outcome", "repaid", *FEW)
    said = call(*words).stdout
    n = loans["outcome"].isna().sum()
    assert f"left out: {n} rows without an outcome." in said
    assert "Features: income, debt, amount.\n" in said
    assert "Not used: row (an id), id (text), account_id (an id), approved (the same" in said
    assert "as if all applicants were like people with a known outcome; if others are worse" in said
    assert f"draws 450 people with replacement from {300 - n} rows" in said
    said = call(*words, "--features", "income,debt").stdout
    assert "Features: income, debt.\n" in said
    assert "Not used" not in said


def test_the_people_are_those_of_the_file(loans):
    loans.loc[[2, 5], "debt"] = np.nan
    loans.to_csv("gaps.csv", index=False)
    found = read_history(
        Path("gaps.csv"),
        outcome="outcome",
        group="sex",
        good="default",
        features=["income", "debt"],
    )
    kept = loans[loans["outcome"].notna() & loans["debt"].notna()]
    assert found.with_gaps == loans.loc[[2, 5], "outcome"].notna().sum() > 0
    assert np.allclose(found.table.X, kept[["income", "debt"]])
    assert found.table.outcome.tolist() == (kept["outcome"] == "default").tolist()
    assert found.table.group.tolist() == kept["sex"].tolist()


@pytest.mark.parametrize("values", [(1, 0), (1.0, 0.0), (True, False), ("1", "0")])
def test_ones_and_zeros_need_no_word(loans, values, tmp_path):
    good = loans["outcome"] == "repaid"
    loans["outcome"] = [
        None if missing else values[0] if one else values[1]
        for one, missing in zip(good, loans["outcome"].isna(), strict=True)
    ]
    loans.to_parquet("ones.parquet", index=False)
    found = read_history(tmp_path / "ones.parquet", outcome="outcome", group="sex")
    assert found.table.outcome.sum() == good.sum() > 0
    assert found.without_outcome == loans["outcome"].isna().sum()


def test_what_is_wrong_names_the_options(loans):
    loans.assign(outcome=loans["outcome"].mask(loans.index == 9, "late")).to_csv("3.csv")
    loans.assign(outcome="").to_csv("none.csv", index=False)
    loans.assign(debt=loans["debt"].mask(loans.index > 40)).to_csv("gaps.csv", index=False)
    (loans[["id", "sex", "outcome"]]).to_csv("text.csv", index=False)
    good = ("--good-outcome", "repaid")
    for words, sentence in (
        (("loans.csv", *ROLES), "of which none is plainly the good one; name it with --good-outc"),
        (("loans.csv", *ROLES, "--good-outcome", "paid"), "--good-outcome must be one of the val"),
        (("3.csv", *ROLES, *good), "must have exactly two values where it is known, got 3"),
        (("none.csv", *ROLES, *good), "no row of none.csv has an outcome in 'outcome'"),
        (("gaps.csv", *ROLES, *good), "most often 'debt' ("),
        (("text.csv", *ROLES, *good), "text.csv has no column of numbers to decide by"),
        (("loans.csv", *ROLES, *good, "--features", "id"), "'id' of loans.csv hold something else"),
        (("loans.csv", *ROLES, *good, "--features", "x"), "no column 'x', which --features names"),
        (("loans.csv", *ROLES[:3], "race", *good), "no column 'race', which --group names"),
        (("loans.csv", *ROLES, *good, "--features", "outcome"), "can be neither --group nor amon"),
    ):
        said = refused("plan", "--history", *words, *FEW)
        assert sentence in said, said
        assert "=" not in said  # no argument of Python's
    assert "name it with --history" in refused("plan", "--features", "income", *FEW)


def test_infinite_values(loans, tmp_path):
    loans.assign(debt=np.inf).to_parquet("inf.parquet")
    with pytest.raises(InputError, match="'debt' must be finite, got infinity"):
        read_history(
            tmp_path / "inf.parquet",
            outcome="outcome",
            group="sex",
            good="repaid",
            features=["debt"],
        )


def test_a_plan_without_a_history_says_nothing_of_one():
    found = call("plan", "--good", "0.85", "--auc", "0.9", *FEW, "--json")
    assert "history" not in json.loads(found.stdout)
