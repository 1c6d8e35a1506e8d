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
from fairchance.cli import output
from fairchance.cli.commands.plan import past_populations, print_plan, print_starts, read_past
from fairchance.cli.files.histories import read_history
from fairchance.ledger.config import read_config
from fairchance.simulate.plan import PlannedStart, UntilCertified
from golden import transcript

ROLES = ("--outcome", "outcome", "--group", "sex")
ACCEPTED = (*ROLES, "--good-outcome", "repaid", "--accepted", "approved")
FEW = ("--people", "150", "--rounds", "2", "--repetitions", "2", "--jobs", "1")


def read(file, good="repaid", accepted="", features=()):
    """Return a history, and its applicants if the rejected are like the accepted."""
    past = read_past(Path(file), "outcome", "sex", accepted, good, features)
    return past, next(iter(past_populations(past, "sex").values()))


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
    result = done("plan", "--history", file, *ACCEPTED, *FEW)
    found = result["history"]
    features = [column["column"] for column in found.pop("features")]
    assert features == ["income", "debt", "amount", "town"]
    n, n_good = loans["approved"].sum(), (loans["outcome"] == "repaid").sum()
    earns = found.pop("today_earns")
    assert earns["file"] == pytest.approx((200 * n_good - 500 * (n - n_good)) / 300)
    assert found == {
        "people": 300,
        "accepted": n,
        "good": n_good,
        "bad": n - n_good,
        "not_taken": 0,
        "accepted_without_outcome": 0,
        "outcomes_not_read": 0,
        "refused": 0,
        "refused_rows": None,
        "causes": [],
        "left_out": {
            "row": "identifier",
            "id": "identifier",
            "account_id": "identifier",
            "since": "applied",
        },
    }
    whom = [(value["rejected"], value["whom"]) for value in result["certificate"]]
    assert whom == [(kind, name) for kind in ("alike", "bad") for name in ("everybody", "f", "m")]


def test_used_and_unused_columns_are_printed(golden):
    words = ("plan", "--history", "loans.csv", *ACCEPTED, *FEW)
    few = "--people 300 --rounds 9 --repetitions 2 --jobs 1"
    output = call(*words, "--features", "income,debt,sex,debt").stdout
    assert output.count("\ndebt ") == 1
    assert "\namount " not in output
    assert "'amount'" in output.partition("Left out:")[2]
    golden(
        "plan",
        transcript(
            " ".join(words),
            f"plan --good 0.85 --auc 0.9 {few} --delay 1-4",
            "plan --history loans.csv --outcome outcome --group sex",
            "plan --delay soon",
            "plan --groups A,B",
        ),
        ranked=True,
    )


def test_applicants_are_those_of_the_file(loans):
    loans.loc[[2, 5], "debt"] = np.nan
    known = np.flatnonzero(loans["outcome"].notna())
    loans["income"] = loans["income"].astype(object)
    loans.loc[known[0], "income"], loans.loc[known[1], "sex"] = "lots", None
    loans.to_csv("gaps.csv", index=False)
    past, applicants = read("gaps.csv", "default", features=("income", "debt", "town"))
    kept = loans.drop(index=known[:2])
    assert len(past.refused) == 2
    gap, town = kept["debt"].isna(), kept["town"]
    columns = [kept["income"].astype(float), kept["debt"].fillna(kept["debt"].median()), gap]
    expected = np.column_stack([*columns, town == "Bonn", town == "Ulm"])
    assert gap.any()
    np.testing.assert_allclose(applicants.X, expected)
    assert applicants.accepted.tolist() == kept["outcome"].notna().tolist()
    assert applicants.group.tolist() == kept["sex"].tolist()


@pytest.mark.parametrize("values", [(1, 0), (1.0, 0.0), (True, False), ("1", "0")])
def test_ones_and_zeros_need_no_good_outcome(loans, values):
    good = loans["outcome"] == "repaid"
    loans["outcome"] = [
        None if missing else values[0] if value else values[1]
        for value, missing in zip(good, loans["outcome"].isna(), strict=True)
    ]
    loans.to_parquet("ones.parquet", index=False)
    past, _ = read("ones.parquet", good="", accepted="approved")
    assert past.good.sum() == good.sum() > 0
    assert (~past.accepted).sum() == loans["outcome"].isna().sum()


def test_a_mistake_is_named(loans):
    loans.assign(outcome=loans["outcome"].mask(loans.index == 9, "late")).to_csv("3.csv")
    loans.assign(outcome="").to_csv("none.csv", index=False)
    loans.assign(sex=loans["sex"].mask(loans.index > 40)).to_csv("gaps.csv", index=False)
    (loans[["id", "sex", "outcome"]]).to_csv("text.csv", index=False)
    good = ("--good-outcome", "repaid")
    for words, value in (
        (("loans.csv", *ROLES), "'default'"),
        (("loans.csv", *ROLES, "--good-outcome", "paid"), "'paid'"),
        (("3.csv", *ROLES, *good), "'late'"),
        (("none.csv", *ROLES, *good), "0"),
        (("gaps.csv", *ACCEPTED), "259 of 300"),
        (("text.csv", *ROLES, *good), "'id'"),
        (("loans.csv", *ROLES, *good, "--features", "id"), "loans.csv"),
        (("loans.csv", *ROLES, *good, "--features", "x"), "'x'"),
        (("loans.csv", *ROLES[:3], "race", *good), "'race'"),
        (("loans.csv", *ROLES, *good, "--features", "outcome"), "'outcome'"),
        (("loans.csv", *ROLES, *good, "--features", "sex"), "'sex'"),
        (("loans.csv", *ROLES, *good), "'approved'"),
    ):
        message = refused("plan", "--history", *words, *FEW)
        assert value in message, message
        assert "=" not in message  # no argument of Python's
    assert done("plan", "--features", "income", *FEW, code=2)["error"]["option"] == "--history"


@pytest.mark.parametrize("words", [("1", "0"), ("Yes", "no"), (True, False), ("y", "N ")])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_outcomes_of_rejected_applicants_are_not_read(loans, tmp_path, words, kind):
    taken = loans["approved"] == 1
    loans["approved"] = np.where(taken, *words)
    if kind == "parquet" and isinstance(words[0], str):
        loans["approved"] = loans["approved"].astype("category")
    result = []
    for report in (None, "repaid", "default"):  # outcomes of rejected applicants in the file
        file = tmp_path / f"{report}.{kind}"
        told_all = loans.assign(outcome=loans["outcome"].where(taken, report))
        (told_all.to_csv if kind == "csv" else told_all.to_parquet)(file, index=False)
        result.append(read(file, accepted="approved"))
    n, none = (~taken).sum(), result[0][1]
    assert [past.n_unread for past, _ in result] == [0, n, n]
    for past, applicants in result:
        assert len(past.refused) == 0
        assert np.array_equal(applicants.X, none.X)
        assert applicants.rejected_good == none.rejected_good
        assert "approved" not in (*applicants.features, *past.as_dict()["left_out"])
    _, free = read(tmp_path / f"repaid.{kind}")
    assert free.accepted.all()  # the option is what keeps them out
    assert not none.accepted.all()


def test_rejected_applicants_and_unread_outcomes_are_counted(loans):
    waits = loans.index[loans["approved"] == 1][-2:]
    taken = loans["approved"].astype(str).mask(loans.index < 5, "perhaps").mask(loans.index == 5)
    loans["outcome"] = loans["outcome"].fillna("default").mask(loans.index.isin(waits))
    loans.assign(approved=taken).to_csv("all.csv", index=False)
    output = call("plan", "--history", "all.csv", *ACCEPTED, *FEW).stdout
    rejected = (taken == "0").sum()
    n = ((taken == "1") & loans["outcome"].notna()).sum()
    assert f"{n + rejected} people: {n} accepted (" in output
    assert f"{rejected} rejected\nNot read: {rejected} outcomes of rejected applicants\n" in output
    found = done("plan", "--history", "all.csv", *ACCEPTED, *FEW)["history"]
    assert sorted(cause["rows"] for cause in found["causes"]) == [1, 2, 5]


def test_column_without_past_decisions_is_refused(loans):
    loans.assign(approved=0).to_csv("all_rejected.csv", index=False)
    loans.assign(approved=0.5).to_csv("half.csv", index=False)
    for words, value in (
        (("loans.csv", *ACCEPTED[:-1], "since"), "loans.csv"),
        (("loans.csv", *ACCEPTED[:-1], "sex"), "'sex'"),
        (("loans.csv", *ACCEPTED[:-1], "x"), "'x'"),
        (("loans.csv", *ACCEPTED[:-1], "id"), "'id'"),
        (("all_rejected.csv", *ACCEPTED), "'outcome'"),
        (("half.csv", *ACCEPTED), "'approved'"),
        (("loans.csv", *ACCEPTED, "--features", "income,approved"), "'approved'"),
    ):
        assert value in refused("plan", "--history", *words, *FEW)


def test_plan_without_a_history_does_not_mention_it():
    result = call("plan", "--good", "0.85", "--auc", "0.9", *FEW, "--json")
    assert "history" not in json.loads(result.stdout)


def test_numbers_of_a_plan_are_not_cut_in_a_narrow_window(capsys):
    money = (1050, 1500, 25_950)
    result = [
        UntilCertified("everybody", 1.0, (9, 11, 14), (950, 1530, 2159), (62, 66, 70), money),
        UntilCertified("northern branches", 0.0, *[(math.nan,) * 3] * 4),
    ]
    print_plan(Console(width=80), result)
    output = capsys.readouterr().out
    assert max(map(len, output.splitlines())) <= 80
    for words in ("everybody", "northern branches", "1,500"):
        assert words in output
    print_plan(Console(width=120), result)
    assert "66 (62–70)" in capsys.readouterr().out


CONFIG = """
[columns]
id = "row"
outcome = "outcome"
accepted = "approved"
groups = ["sex"]
features = ["income", "town"]
[outcomes]
good = "repaid"
bad = "default"
not_taken = "refused"
not_taken_within = "2 rounds"
[classifier]
kind = "certified"
alpha = 0.21
utility = { good = 3, bad = -7 }
maturity = 1
patience = 4
"""


def test_a_plan_reads_the_configuration_of_the_program(loans):
    """With its words, of which there are more than two, and its settings; options come first."""
    loans.loc[loans.index[loans["approved"] == 1][:9], "outcome"] = "refused"
    loans.to_csv("words.csv", index=False)
    Path("program.toml").write_text(CONFIG)
    words = ("plan", "--history", "words.csv", "--config", "program.toml")
    found = done(*words, "--patience", "3", "--people", "500", "--rounds", "6", *FEW[4:])
    taken = loans.query("outcome != 'refused' and approved == 1")
    assert found["history"]["not_taken"] == 9
    assert found["history"]["good"] + found["history"]["bad"] == len(taken)
    assert [one["column"] for one in found["history"]["features"]] == ["income", "town"]
    assert (found["maturity"], found["patience"]) == (1, 3)
    assert 0.21 in [one["bound"] for one in found["certificate"][0]["curve"]]
    bad = found["history"]["bad"]
    earned = 3 * (len(taken) - bad) - 7 * bad
    assert found["history"]["today_earns"]["file"] == pytest.approx(earned / len(loans))
    assert found["history"]["today_earns"]["plan"] == pytest.approx(earned / len(loans), abs=0.15)
    assert "incumbent" in call(*words, *FEW).stdout  # for the recommended start it needs this role
    assert "'nobody'" in refused(*words, "--group", "nobody", *FEW)
    assert done(*words, "--outcome", "outcome", *FEW, code=2)["error"]["option"] == "--config"
    assert done("plan", "--config", "program.toml", *FEW, code=2)["error"]["option"] == "--history"


def test_applicants_who_would_not_take_the_loan_are_left_out(loans):
    taken, rejected = loans["approved"] == 1, loans["approved"] == 0
    loans["outcome"] = loans["outcome"].mask(taken & (loans.index % 2 == 0), "refused")
    many = pd.concat([loans] * 10, ignore_index=True)
    many["row"] = range(len(many))
    many.to_csv("words.csv", index=False)
    Path("program.toml").write_text(CONFIG)
    past = read_history("words.csv", read_config(Path("program.toml")))
    for applicants in past_populations(past, "").values():
        assert applicants.accepted.sum() == past.taken.sum()
        take_up = (~applicants.accepted).sum() / (10 * rejected.sum())
        assert take_up == pytest.approx(past.taken.sum() / past.accepted.sum(), abs=0.04)


def test_repetitions_are_refused_before_anything_is_read():
    assert "2" in call("plan", "--history", "nowhere.csv", "--repetitions", "1").stderr


@pytest.mark.parametrize(
    ("added", "first", "end"),
    [
        ((5.0,), "Recommended start", "runs)."),
        ((-5.0,), "No start earns", "runs)."),
        ((5.0, 1.0), "Recommended start", "bad."),
        ((5.0, -1.0), "Recommended start", "No start earns more in both cases."),
        ((-1.0, -5.0), "No start is recommended", "No start earns more in both cases."),
    ],
)
def test_the_first_sentence_says_whether_a_start_beats_todays_policy(capsys, added, first, end):
    kinds = ("alike", "bad") if len(added) > 1 else ("",)
    starts = [
        PlannedStart("pilot", 2, 1.0, 1.0, (10.0 + more,), (10.0,), more, more, kind)
        for more, kind in zip(added, kinds, strict=True)
    ]
    print_starts(Console(width=200), starts, starts)
    said = capsys.readouterr().out.replace("\n", " ")
    assert said.startswith(first)
    assert end in said


def test_progress_is_printed_in_a_pipe_too(capsys, monkeypatch):
    monkeypatch.setattr(output, "_FIRST_LINE", 0)
    with output.counting_bar("runs", quiet=False) as progress:
        progress(1, 3)
        progress(2, 3)  # too soon after
    assert capsys.readouterr().err == "runs: 1 of 3\n"


def test_a_plan_needs_no_group_and_recommends_a_way_of_starting():
    words = ("plan", "--history", "loans.csv", "--outcome", "outcome", *ACCEPTED[4:], *FEW)
    found = done(*words)
    assert [one["whom"] for one in found["certificate"]] == ["everybody"] * 2
    added = {(one["rejected"], one["way"]): one["added"] for one in found["starts"]}
    ways = [way for kind, way in added if kind == "bad"]
    assert ways == ["pilot", "pilot-history", "incumbent", "history", "ramp"]
    worse = {way: min(added["alike", way], added["bad", way]) for way in ways}
    assert worse[found["recommended"]] == max(worse.values())
    # A protected column is never a feature silently.
    assert "sex" not in [column["column"] for column in found["history"]["features"]]
    printed = call(*words).stdout.splitlines()
    (said,) = [line for line in printed if line.startswith(("Recommended start", "No start"))]
    assert printed.index(said) < [line.strip() for line in printed].index(
        "Earned, by year of 12 rounds; means"
    )
