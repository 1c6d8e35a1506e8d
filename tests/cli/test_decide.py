"""``secondlook decide``: on the record first, and the rest of a file goes on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import binomtest

import secondlook as sl
from cli.lender_files import (
    CERTIFIED,
    PROGRAM,
    answer,
    apply,
    call,
    done,
    people,
    refused,
    start,
    tell,
)
from secondlook.cli.commands.decide import promise_message
from secondlook.cli.files.refusals import refused_message
from secondlook.cli.messages import mistakes_so_far_message
from secondlook.ledger import Program, verify
from secondlook.people.reasons import in_words

COLUMNS = [
    "id",
    "decision",
    "region",
    "score",
    "threshold",
    "propensity",
    "round",
    "certified",
    "reasons",
]


def test_decisions_are_those_of_the_classifier(lender):
    twin = sl.PartialFeedbackClassifier(
        utility=sl.Revenue(gain=200, loss=300), budget=sl.FdrBudget(alpha=0.2), random_state=3
    )
    past = people(400)
    features = ["income", "debt"]
    twin.fit(
        past[features],
        (past["outcome"] == "repaid").astype(int),
        accepted=past["income"] >= -0.3,
        sensitive_features=past[["sex"]],
        ids=past["id"],
    )
    outcomes = []
    for start_at in (1000, 2000, 3000):
        new = apply(start=start_at)
        told = done("decide", "applicants.csv", "-o", "decisions.csv")
        expected = twin.decide(new[features], sensitive_features=new[["sex"]], ids=new["id"])
        got = answer()
        assert list(got.columns) == COLUMNS
        assert got["id"].tolist() == new["id"].tolist()
        assert (got["decision"] == "accept").tolist() == expected.accepted.tolist()
        assert got["region"].tolist() == expected.region.tolist()
        np.testing.assert_allclose(got["propensity"], expected.propensity)
        np.testing.assert_allclose(got["score"], expected.score, rtol=1e-6)
        yes = expected.accepted
        assert told["accepted"] == yes.sum() > 0
        assert told["rejected"] == (~yes).sum() > 0
        assert told["explored"] == expected.explored.sum()
        assert told["exploited"] == yes.sum() - expected.explored.sum()
        assert told["round"] == expected.round == got["round"].unique()
        tell(list(zip(new["id"], new["outcome"], strict=True)))
        told = done("observe", "outcomes.csv")
        assert told["recorded"]["good"] == (new["outcome"][yes] == "repaid").sum()
        assert told["recorded"]["bad"] == (new["outcome"][yes] == "default").sum()
        assert told["refused"]["rows"] == (~yes).sum()
        twin.observe(new["id"][yes], (new["outcome"][yes] == "repaid").astype(int))
        outcomes += new["outcome"][yes].tolist()
        n, bad = len(outcomes), outcomes.count("default")
        share = binomtest(bad, n).proportion_ci(method="exact")
        so_far = told["so_far"]
        assert (so_far["bad"], so_far["known"], so_far["pending"]) == (bad, n, 0)
        assert so_far["interval"] == pytest.approx([share.low, share.high])
    said = call("observe", "outcomes.csv").stdout
    assert f"So far {bad} of {n} known outcomes are bad: {100 * bad / n:.3g} % (95 % inter" in said
    assert "against a bound of 20 %; 0 are pending." in said
    assert verify(lender.ledger).ok


def test_the_refused_have_reasons_and_nobody_is_told_of_a_draw(lender):
    apply(300)
    said = call("decide", "applicants.csv", "-o", "decisions.csv")
    got = answer()
    no = got["decision"] == "reject"
    assert (got["reasons"][~no] == "").all()
    recorded = lender.reasons(got["id"][no].tolist())
    assert got["reasons"][no].tolist() == [in_words(recorded[one]) for one in got["id"][no]]
    assert got["reasons"][no].str.contains("income|debt|no single feature").all()
    handed_out = (said.stdout + said.stderr + Path("decisions.csv").read_text()).lower()
    for word in ("drawn", "draw", "lottery", "luck", "random", "chance"):
        assert word not in handed_out


def test_the_same_again_is_answered_from_the_record(lender, tmp_path):
    new = apply()
    first = done("decide", "applicants.csv", "-o", "decisions.csv", "--by", "anna")
    assert first["recorded_before"] is None
    head, kept = lender.checkpoint(), (tmp_path / "decisions.csv").read_bytes()
    # The same people in other files: columns in another order, one more, parquet, standard input.
    other = new[["debt", "sex", "outcome", "id", "income"]].assign(remark="=1+1")
    pq.write_table(pa.Table.from_pandas(other), "other.parquet")
    text = (tmp_path / "applicants.csv").read_text()
    for words, stdin in (
        (["applicants.csv"], None),
        (["other.parquet"], None),
        (["-"], text),
    ):
        told = done("decide", *words, "-o", "again.csv", stdin=stdin)
        assert told["batch"] == first["batch"]
        assert told["recorded_before"]["by"] == "anna"
        assert (tmp_path / "again.csv").read_bytes() == kept
    said = call("decide", "applicants.csv", "-o", "decisions.csv").stdout
    assert f"Recorded before as batch {first['batch']} (by anna at 20" in said
    assert "answered from the record." in said
    assert lender.checkpoint() == head


def test_another_batch_has_another_name(lender):
    new = apply()
    name = done("decide", "applicants.csv", "-o", "decisions.csv")["batch"]
    new.loc[7, "income"] += 1e-9
    new["id"] = [f"b{at}" for at in range(len(new))]
    new.to_csv("applicants.csv", index=False)
    names = {name, done("decide", "applicants.csv", "-o", "decisions.csv")["batch"]}
    new["id"] = [f"c{at}" for at in range(len(new))]
    new.to_csv("applicants.csv", index=False)
    names.add(done("decide", "applicants.csv", "-o", "decisions.csv")["batch"])
    assert len(names) == 3


def test_without_a_name_a_batch_is_known_by_its_people(lender, tmp_path):
    first = apply(60)
    name = done("decide", "applicants.csv", "-o", "decisions.csv")["batch"]
    both = pd.concat([first.iloc[:10], people(40, 5000).drop(columns="outcome")])
    both.to_csv("applicants.csv", index=False)
    told = done("decide", "applicants.csv", "-o", "decisions.csv")
    assert (told["people"], told["refused"]["rows"], told["recorded_before"]) == (40, 10, None)
    kept = (tmp_path / "decisions.csv").read_bytes()
    again = done("decide", "applicants.csv", "-o", "again.csv")
    assert again["batch"] == told["batch"] != name
    assert (again["people"], again["refused"]["rows"]) == (40, 10)
    assert (tmp_path / "again.csv").read_bytes() == kept
    first.iloc[:10].to_csv("applicants.csv", index=False)  # a part of a batch is not that batch
    sentence = refused("decide", "applicants.csv", "-o", "decisions.csv")
    assert "none of the 10 rows" in sentence
    first.assign(income=first["income"] + 1).to_csv("applicants.csv", index=False)
    assert "with other content" in refused("decide", "applicants.csv", "-o", "decisions.csv")


@pytest.mark.parametrize("change", ["feature", "group", "less", "more", "others"])
def test_the_same_name_with_other_content_is_refused(lender, tmp_path, change):
    new = apply()
    done("decide", "applicants.csv", "-o", "decisions.csv", "--batch", "may")
    head, kept = lender.checkpoint(), (tmp_path / "decisions.csv").read_bytes()
    if change == "feature":
        new.loc[5, "debt"] += 1
    elif change == "group":
        new.loc[5, "sex"] = "m" if new.loc[5, "sex"] == "f" else "f"
    elif change == "less":
        new = new.iloc[:-1]
    elif change == "more":
        new = pd.concat([new, people(1, 5000)])
    else:
        new = people(400).iloc[:50]  # the history's
    new.to_csv("applicants.csv", index=False)
    sentence = refused("decide", "applicants.csv", "-o", "decisions.csv", "--batch", "may")
    assert "'may'" in sentence
    assert "was recorded" in sentence
    assert "take another name" in sentence
    assert lender.checkpoint() == head
    assert (tmp_path / "decisions.csv").read_bytes() == kept


def test_a_pipe_gets_the_table_and_nothing_else(lender, tmp_path):
    new = apply(30)
    found = call("decide", "-", "-o", "-", stdin=(tmp_path / "applicants.csv").read_text())
    assert found.exit_code == 0
    (tmp_path / "piped.csv").write_text(found.stdout)
    assert answer("piped.csv")["id"].tolist() == new["id"].tolist()
    assert "Round 1: " in found.stderr
    assert "Decisions:" not in found.stderr


def test_parquet_out_keeps_the_kinds_of_columns(lender):
    apply(30)
    done("decide", "applicants.csv", "-o", "decisions.parquet")
    table = pq.read_table("decisions.parquet")
    assert table.column_names == COLUMNS
    kinds = [str(one.type) for one in table.columns]
    assert kinds == ["string"] * 3 + ["double"] * 3 + ["int64", "bool", "string"]


def test_a_certified_program_says_what_a_round_promises(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path}/lender.db"
    start(url, tmp_path, CERTIFIED, n=200)
    apply()
    told = done("decide", "applicants.csv", "-o", "decisions.csv", "--ledger", url)
    assert told["certified"] is False
    assert told["promise"].startswith("Pilot: no promise yet")
    assert told["so_far"]["alpha"] == 0.2


def test_promises_in_words():
    sure = {"status": "certified", "group": None, "message": ""}
    words = "Certified: with confidence 95 %, at most 12.5 % bad under the rule of this round."
    assert promise_message([sure], 0.125, 0.05) == words
    pilot = {"status": "pilot", "group": "m", "more_outcomes": float("nan")}
    both = [sure | {"group": "f"}, pilot | {"tests_began": 1, "next_n_tested": 0}]
    words = (
        "Pilot for m: no promise yet; there are too few outcomes to say how many more one needs."
    )
    assert promise_message(both, 0.125, 0.05).endswith(f"of this round. {words}")
    held = {"estimated_fdr": 0.0734, "calibrated": False, "n_outcomes": 1200, "note": "Careful."}
    words = promise_message([held], 0.15, None)
    assert "about 7.34 % bad are expected" in words
    assert "a bound of 15 %; an estimate from 1,200 outcomes, and it rests on the history" in words
    assert words.endswith("Careful.")
    so_far = {"known": 0, "pending": 1, "by_override": {"accepted": 0, "known": 0}}
    assert mistakes_so_far_message(so_far) == "So far no outcome is known; 1 is pending."
    assert "no estimate yet" in promise_message([held | {"estimated_fdr": "nan"}], 0.15, None)


def test_few_reasons_are_named_and_the_others_counted():
    lines = refused_message(
        {"rows": 21, "file": "no.csv", "reasons": {f"r{at}": 6 - at for at in range(6)}}
    )
    assert lines[0] == "21 rows refused, with the reasons in no.csv:"
    assert lines[1:] == [f"  {6 - at} × r{at}" for at in range(5)] + ["  1 for other reasons"]
    assert refused_message({"rows": 0, "file": None, "reasons": {}}) == []


def test_a_program_made_in_python_reads_files_by_the_names_it_has(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path}/x.db"
    past = people(300)
    past["sex"] = (past["sex"] == "f").astype(int)
    good = past["outcome"] == "repaid"
    clf = sl.PartialFeedbackClassifier(budget=sl.FdrBudget(alpha=0.3), random_state=0)
    features = ["income", "debt"]
    Program.create(url, clf, past[features], good, sensitive_features=past["sex"].to_numpy())
    new = people(50, 1000)
    new["sex"] = (new["sex"] == "f").astype(int)
    new = new.rename(columns={"sex": "group"}).assign(id=np.arange(50) + 1000).astype({"id": str})
    new.loc[3, "id"] = "007"
    new.loc[4, "id"] = "x"
    new.to_csv("applicants.csv", index=False)
    told = done("decide", "applicants.csv", "-o", "decisions.csv", "--ledger", url)
    assert told["refused"]["reasons"] == {"'id' must be a whole number, as in the history": 2}
    got = pd.read_csv("decisions.csv")
    assert got["id"].tolist() == [1000, 1001, 1002, *range(1005, 1050)]
    yes = got["id"][got["decision"] == "accept"].tolist()
    tell([(yes[0], "True"), (yes[1], "false"), (yes[2], "repaid"), ("007", "true")])
    told = done("observe", "outcomes.csv", "--ledger", url)
    assert (told["recorded"]["good"], told["recorded"]["bad"]) == (1, 1)
    assert told["refused"]["rows"] == 2
    assert verify(Program.open(url).ledger).ok


def test_a_program_whose_columns_have_no_names_cannot_read_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path}/x.db"
    X = np.random.default_rng(0).normal(size=(100, 2))
    clf = sl.PartialFeedbackClassifier(random_state=0)
    Program.create(url, clf, X, (X[:, 0] > 0).astype(int))
    apply()
    sentence = refused("decide", "applicants.csv", "-o", "decisions.csv", "--ledger", url)
    assert "have no names" in sentence


def with_text(url, folder, learner):
    """Decide on people one of whom lacks a number, and one has a text that nobody had before."""
    (folder / "program.toml").write_text(PROGRAM + f'learner = "{learner}"\n')
    past = people(200)
    past["region"] = np.where(past.index % 3 == 0, "north", "south")
    past.to_csv(folder / "history.csv", index=False)
    done("init", "--ledger", url, "--config", folder / "program.toml", folder / "history.csv")
    new = people(40, 1000).assign(region="north")
    new.loc[2, "debt"] = np.nan
    new.loc[3, "region"] = "a place nobody knew"
    new.to_csv(folder / "applicants.csv", index=False)
    file, out = folder / "applicants.csv", folder / "decisions.csv"
    told = done("decide", file, "-o", out, "--ledger", url)
    kept = out.read_bytes()
    again = done("decide", file, "-o", out, "--ledger", url)
    assert again["recorded_before"] is not None
    assert out.read_bytes() == kept
    return told


def test_columns_of_text(tmp_path):
    told = with_text(f"sqlite:///{tmp_path}/x.db", tmp_path, "logistic")
    words = (
        "'debt' is missing, which only a program with missing = 'impute' or learner = "
        "'gradient-boosting' takes"
    )
    assert (told["people"], told["refused"]["reasons"]) == (39, {words: 1})


@pytest.mark.long
def test_missing_numbers_where_the_learner_takes_them(tmp_path):
    told = with_text(f"sqlite:///{tmp_path}/x.db", tmp_path, "gradient-boosting")
    assert (told["people"], told["refused"]["rows"]) == (40, 0)


def test_one_json_object_is_printed_for_errors_too(lender):
    found = call("decide", "none.csv", "-o", "decisions.csv", "--json")
    assert json.loads(found.stdout)["code"] == found.exit_code == 2
