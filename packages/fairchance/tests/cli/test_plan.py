"""``fairchance plan --history`` with the files that lenders have."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from cli.lender_files import call, done, people, refused
from fairchance.cli.commands.plan import print_plan
from fairchance.cli.files.planned_history import read_history
from fairchance.simulate.plan import UntilCertified

ROLES = ("--outcome", "outcome", "--group", "sex")
FEW = ("--people", "150", "--rounds", "2", "--repetitions", "2", "--jobs", "1")


@pytest.fixture(autouse=True)
def loans(tmp_path, monkeypatch):
    """Write a history with ids, text and missing outcomes; return it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    applicants = people(300)
    applicants.insert(0, "row", np.arange(300)[::-1] + 17)
    applicants["account_id"] = np.random.default_rng(0).permutation(10_000)[:300]
    applicants["amount"] = np.random.default_rng(1).permutation(10_000)[
        :300
    ]  # differs, and is no id
    applicants["approved"] = (applicants["income"] > -0.3).astype(int)
    applicants.loc[applicants["approved"] == 0, "outcome"] = None
    applicants["since"] = pd.Timestamp("2031-01-01")
    applicants["town"] = np.where(applicants.index % 3, "Ulm", "Bonn")
    applicants.to_csv("loans.csv", index=False)
    applicants.to_parquet("loans.parquet", index=False)
    return applicants


@pytest.mark.parametrize("file", ["loans.csv", "loans.parquet"])
def test_history_without_changes(loans, file):
    result = done("plan", "--history", file, *ROLES, "--good-outcome", "repaid", *FEW)
    known = loans["outcome"].notna()
    assert result["history"] == {
        "people": known.sum(),
        "good": (loans["outcome"] == "repaid").sum(),
        "rows_rejected": 0,
        "rows_unclear": 0,
        "outcomes_not_read": 0,
        "rows_without_outcome": (~known).sum(),
        "rows_unusable": 0,
        "features": ["income", "debt", "amount", "approved", "since", "town"],
        "columns_left_out": {
            "row": "has a different number for each applicant, like an identifier",
            "id": "has no value that 5 applicants share, like an identifier",
            "account_id": "has a different number for each applicant, like an identifier",
        },
        "people_drawn": 150 * 3,
    }
    assert [value["whom"] for value in result["certificate"]] == ["everybody", "f", "m"]


def test_used_and_unused_columns_are_printed(loans):
    words = ("plan", "--history", "loans.csv", *ROLES, "--good-outcome", "repaid", *FEW)
    output = call(*words).stdout
    n = loans["outcome"].isna().sum()
    assert f"left out: {n} rows without an outcome." in output
    assert "Features: income, debt, amount, approved, since, town.\n" in output
    assert "Left out: 'row' has a different number for each applicant, like an identif" in output
    assert (
        "as if all applicants were like people with a known outcome; if others are worse" in output
    )
    assert f"draws 450 people with replacement from {300 - n} rows" in output
    output = call(*words, "--features", "income,debt").stdout
    assert "Features: income, debt.\n" in output
    assert "Left out" not in output


def test_applicants_are_those_of_the_file(loans):
    loans.loc[[2, 5], "debt"] = np.nan
    known = np.flatnonzero(loans["outcome"].notna())
    loans["income"] = loans["income"].astype(object)
    loans.loc[known[0], "income"], loans.loc[known[1], "sex"] = "lots", None
    loans.to_csv("gaps.csv", index=False)
    past = read_history(
        Path("gaps.csv"),
        outcome="outcome",
        group="sex",
        good="default",
        features=["income", "debt", "town"],
    )
    kept = loans.loc[known[2:]]
    assert past.unusable == 2
    gap, town = kept["debt"].isna(), kept["town"]
    columns = [kept["income"].astype(float), kept["debt"].fillna(kept["debt"].median()), gap]
    expected = np.column_stack([*columns, town == "Bonn", town == "Ulm"])
    assert gap.any()
    np.testing.assert_allclose(past.table.X, expected)
    assert past.table.outcome.tolist() == (kept["outcome"] == "default").tolist()
    assert past.table.group.tolist() == kept["sex"].tolist()


@pytest.mark.parametrize("values", [(1, 0), (1.0, 0.0), (True, False), ("1", "0")])
def test_ones_and_zeros_need_no_good_outcome(loans, values, tmp_path):
    good = loans["outcome"] == "repaid"
    loans["outcome"] = [
        None if missing else values[0] if value else values[1]
        for value, missing in zip(good, loans["outcome"].isna(), strict=True)
    ]
    loans.to_parquet("ones.parquet", index=False)
    past = read_history(tmp_path / "ones.parquet", outcome="outcome", group="sex")
    assert past.table.outcome.sum() == good.sum() > 0
    assert past.without_outcome == loans["outcome"].isna().sum()


def test_errors_name_the_options(loans):
    loans.assign(outcome=loans["outcome"].mask(loans.index == 9, "late")).to_csv("3.csv")
    loans.assign(outcome="").to_csv("none.csv", index=False)
    loans.assign(sex=loans["sex"].mask(loans.index > 40)).to_csv("gaps.csv", index=False)
    (loans[["id", "sex", "outcome"]]).to_csv("text.csv", index=False)
    good = ("--good-outcome", "repaid")
    for words, sentence in (
        (("loans.csv", *ROLES), "unclear which is good; name the good value with --good-outcome"),
        (("loans.csv", *ROLES, "--good-outcome", "paid"), "--good-outcome must be one of the val"),
        (("3.csv", *ROLES, *good), "must have exactly two values where it is known, got 3"),
        (("none.csv", *ROLES, *good), "no row of none.csv has an outcome in 'outcome'"),
        (("gaps.csv", *ROLES, *good), "rows of gaps.csv with an outcome lack the group, or have"),
        (("text.csv", *ROLES, *good), "no column of text.csv can be used as a feature: 'id' has"),
        (("loans.csv", *ROLES, *good, "--features", "id"), "no column of loans.csv can be used"),
        (("loans.csv", *ROLES, *good, "--features", "x"), "no column 'x', which --features names"),
        (("loans.csv", *ROLES[:3], "race", *good), "no column 'race', which --group names"),
        (("loans.csv", *ROLES, *good, "--features", "outcome"), "cannot also be --group or among"),
    ):
        message = refused("plan", "--history", *words, *FEW)
        assert sentence in message, message
        assert "=" not in message  # no argument of Python's
    assert "name it with --history" in refused("plan", "--features", "income", *FEW)


ACCEPTED = (*ROLES, "--good-outcome", "repaid", "--accepted", "approved")


@pytest.mark.parametrize("words", [("1", "0"), ("Yes", "no"), (True, False), ("y", "N ")])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_outcomes_of_rejected_applicants_are_not_read(loans, tmp_path, words, kind):
    taken = loans["approved"] == 1
    loans["approved"] = np.where(taken, *words)
    if kind == "parquet" and isinstance(words[0], str):
        loans["approved"] = loans["approved"].astype("category")
    options = {"outcome": "outcome", "group": "sex", "good": "repaid", "accepted": "approved"}
    result = []
    for report in (None, "repaid", "default"):  # outcomes of rejected applicants in the file
        file = tmp_path / f"{report}.{kind}"
        told_all = loans.assign(outcome=loans["outcome"].where(taken, report))
        (told_all.to_csv if kind == "csv" else told_all.to_parquet)(file, index=False)
        result.append(read_history(file, **options))
    none, *others = result
    assert none.rejected == (~taken).sum() > 0
    assert [value.unread for value in result] == [0, none.rejected, none.rejected]
    for item in result:
        assert (item.unclear, item.without_outcome) == (0, 0)
        assert np.array_equal(item.table.X, none.table.X)
        assert np.array_equal(item.table.outcome, none.table.outcome)
        assert "approved" not in (*item.table.features, *item.left_out)
    free = read_history(tmp_path / f"repaid.{kind}", **(options | {"accepted": ""}))
    assert len(free.table) == len(loans) > len(none.table)  # the option is what keeps them out
    assert others[0].as_dict()["outcomes_not_read"] == none.rejected


def test_rejected_applicants_and_unread_outcomes_are_counted(loans):
    waits = loans.index[loans["approved"] == 1][:2]
    taken = loans["approved"].astype(str).mask(loans.index < 5, "perhaps").mask(loans.index == 5)
    loans["outcome"] = loans["outcome"].fillna("default").mask(loans.index.isin(waits))
    loans.assign(approved=taken).to_csv("all.csv", index=False)
    output = call("plan", "--history", "all.csv", *ACCEPTED, *FEW).stdout
    rejected, waiting = (taken == "0").sum(), (loans["outcome"].isna() & (taken == "1")).sum()
    n = ((taken == "1") & loans["outcome"].notna()).sum()
    assert f"{n} people with a known outcome" in output
    assert (
        f"left out: {waiting} rows without an outcome, {rejected} of people who were not accepted, "
        f"6 that say neither yes nor no to that.\nNot read: {rejected} outcomes of rejected "
        "applicants.\n"
    ) in output
    assert "as if all applicants were like people with a known outcome" in output


def test_column_without_past_decisions_is_refused(loans):
    loans.assign(approved=0).to_csv("all_rejected.csv", index=False)
    loans.assign(approved=0.5).to_csv("half.csv", index=False)
    for words, sentence in (
        (("loans.csv", *ACCEPTED[:-1], "since"), "no past decision in 'since' (--accepted)"),
        (("loans.csv", *ACCEPTED[:-1], "sex"), "'sex' of past decisions cannot also be"),
        (("loans.csv", *ACCEPTED[:-1], "x"), "no column 'x', which --accepted names"),
        (
            ("loans.csv", *ACCEPTED[:-1], "id"),
            "300 of 300 rows of loans.csv have no past decision in 'id' (--accepted), which must "
            "be 1 or 0, true or false, yes or no, y or n, accept or reject, got 'a00000'; name",
        ),
        (
            ("all_rejected.csv", *ACCEPTED),
            "no accepted row of all_rejected.csv has an outcome in 'outcome'",
        ),
        (("half.csv", *ACCEPTED), "no past decision in 'approved' (--accepted), which must be 1"),
        (("loans.csv", *ACCEPTED, "--features", "income,approved"), "or among --features"),
    ):
        assert sentence in refused("plan", "--history", *words, *FEW)
    assert "name it with --history" in refused("plan", "--accepted", "approved", *FEW)


def test_plan_without_a_history_does_not_mention_it():
    result = call("plan", "--good", "0.85", "--auc", "0.9", *FEW, "--json")
    assert "history" not in json.loads(result.stdout)


def test_numbers_of_a_plan_are_not_cut_in_a_narrow_window(capsys):
    money = (1050, 1500, 25_950)
    result = [
        UntilCertified("everybody", 1.0, (9, 11, 14), (950, 1530, 2159), (62, 66, 70), money),
        UntilCertified("northern branches", 0.0, *[(math.nan,) * 3] * 4),
    ]
    print_plan(Console(width=80), result, json_wanted=False)
    output = capsys.readouterr().out
    assert max(map(len, output.splitlines())) <= 80
    for words in ("everybody", "northern branches", "1,500"):
        assert words in output
    print_plan(Console(width=120), result, json_wanted=False)
    assert "66 (62–70)" in capsys.readouterr().out
