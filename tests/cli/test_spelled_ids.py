"""Ids with white space around them, and ids that are numbers: whom a command means by them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cli.lender_files import PROGRAM, answer, call, done, people, refused
from secondlook import PartialFeedbackClassifier
from secondlook.ledger import Program, verify

LARGEST = 2**63 - 1


@pytest.fixture
def two(lender, monkeypatch):
    """Return a program that knows "1" and " 1" as two people, as earlier versions took them."""
    frame = people(40, 1000).drop(columns="outcome")
    frame.loc[0, "id"], frame.loc[1, "id"] = "1", " 1"
    with monkeypatch.context() as patch:
        patch.setattr("secondlook.ledger.program.check_spelling", lambda *_: None)
        X, sex = frame[["income", "debt"]], frame[["sex"]]
        lender.decide(X, sensitive_features=sex, ids=frame["id"].tolist(), batch="old")
    frame.to_csv("applicants.csv", index=False)
    return lender


def is_known(program, *names):
    return (program.standing(list(names)).persons >= 0).tolist()


def erase(*words):
    return ("erase", *words, "--early", "--yes", "--reason", "asked for")


def test_nobody_is_erased_in_the_place_of_another(two):
    assert done(*erase("--id", " 1"))["erased"] == 1
    assert is_known(two, "1", " 1") == [True, False]
    # The same once more does not reach the other, who is called almost so.
    assert refused(*erase("--id", " 1")) == (
        "ids that are unknown or erased cannot be erased, got ' 1'; nothing was "
        "recorded, leave it out."
    )
    Path("them.csv").write_text("id\n 1\n")
    assert done(*erase("them.csv"), code=2)["erased"] == 0
    assert is_known(two, "1") == [True]
    assert done(*erase("--id", "1"))["erased"] == 1
    assert is_known(two, "1") == [False]


def test_a_file_names_both(two):
    Path("them.csv").write_text("id\n 1\n")
    assert done("hold", "them.csv", "--reason", "a dispute")["held"] == 1
    assert "under hold" in refused(*erase("--id", " 1"))
    assert done(*erase("--id", "1"))["erased"] == 1
    assert is_known(two, "1", " 1") == [False, True]


def test_white_space_around_an_id_that_nobody_has_does_not_matter(two):
    Path("them.csv").write_text("id\na01004 \n\ta01005\n")
    assert done("hold", "them.csv", "--reason", "a dispute")["held"] == 2
    assert done("hold", "--id", " a01006", "--reason", "a dispute")["held"] == 1
    assert done(*erase("--id", " a01007 "))["erased"] == 1
    assert is_known(two, "a01007") == [False]


def test_outcomes_go_to_whom_they_name(two):
    standing = two.standing(["1", " 1"])
    for name, stands in zip(["1", " 1"], standing.accepted, strict=True):
        if not stands:
            two.override([name], True, "so that there is an outcome")
    Path("outcomes.csv").write_text("id,outcome\n 1,default\n")
    assert done("observe", "outcomes.csv")["recorded"]["bad"] == 1
    assert two.standing(["1", " 1"]).states == [None, "bad"]
    Path("outcomes.csv").write_text("id,outcome\n 1,default\n1,repaid\n")
    told = done("observe", "outcomes.csv")
    assert (told["recorded"]["good"], told["known_already"]) == (1, 1)
    assert two.standing(["1", " 1"]).states == ["good", "bad"]


def test_a_batch_with_both_is_answered_from_the_record(two):
    head = two.checkpoint()
    told = done("decide", "applicants.csv", "-o", "decisions.csv")
    assert (told["batch"], told["people"], told["refused"]["rows"]) == ("old", 40, 0)
    assert answer()["id"].tolist()[:2] == ["1", " 1"]
    assert two.checkpoint() == head


ODD = {
    "a\u200bb": "the invisible character U+200B",
    "Zoe\u0308": "another form of its characters than Unicode's NFC",
}


def test_ids_that_could_be_taken_for_others_are_refused_row_by_row(lender):
    frame = people(40, 1000).drop(columns="outcome")
    frame.loc[[3, 5], "id"] = list(ODD)
    frame.to_csv("applicants.csv", index=False)
    told = done("decide", "applicants.csv", "-o", "decisions.csv")
    assert (told["people"], told["refused"]["rows"]) == (38, 2)
    refusals = pd.read_csv("applicants.refused.csv", dtype=str)
    assert dict(zip(refusals["id"], refusals["reason"], strict=True)) == {
        one: f"'id' has {why}, so that one applicant could have two ids; write it in one way only"
        for one, why in ODD.items()
    }
    again = done("decide", "applicants.csv", "-o", "decisions.csv")
    assert (again["recorded_before"] is not None, again["people"]) == (True, 38)


def test_a_history_goes_without_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    past = people(60)
    past.loc[[3, 5], "id"] = list(ODD)
    past.to_csv("history.csv", index=False)
    Path("program.toml").write_text(PROGRAM)
    words = ("init", "--config", "program.toml", "history.csv", "--ledger", "sqlite:///new.db")
    told = done(*words)
    assert (told["people"], told["refused"]) == (58, 2)


@pytest.mark.parametrize("odd", list(ODD))
def test_those_on_record_are_answered_from_it(lender, monkeypatch, odd):
    frame = people(20, 1000).drop(columns="outcome")
    frame.loc[0, "id"] = odd
    frame.to_csv("applicants.csv", index=False)
    with monkeypatch.context() as patch:
        patch.setattr("secondlook.ledger.program.check_spelling", lambda *_: None)
        X, sex = frame[["income", "debt"]], frame[["sex"]]
        lender.decide(X, sensitive_features=sex, ids=frame["id"].tolist(), batch="old")
    told = done("decide", "applicants.csv", "-o", "decisions.csv")
    assert (told["batch"], told["people"], told["refused"]["rows"]) == ("old", 20, 0)


@pytest.fixture
def numbered(tmp_path, monkeypatch):
    """Return a program whose ids are numbers."""
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path}/numbered.db"
    monkeypatch.setenv("SECONDLOOK_LEDGER", url)
    past = people(200)
    good = (past["outcome"] == "repaid").astype(int)
    return Program.create(
        url,
        PartialFeedbackClassifier(random_state=0),
        past[["income", "debt"]],
        good,
        accepted=past["income"] > 0,
        ids=np.arange(200) + 1000,
    )


def decide_on(ids, name="applicants.csv"):
    frame = people(len(ids), 5000).drop(columns=["outcome", "sex"]).assign(id=ids)
    frame.to_csv(name, index=False)
    return done("decide", name, "-o", "decisions.csv", "--most-refused", 1)


def test_every_number_that_an_id_can_be_is_decided_on(numbered):
    ends = [str(LARGEST), str(-LARGEST - 1), str(10**18), "0", "-7"]
    told = decide_on(ends)
    assert (told["people"], told["refused"]["rows"]) == (5, 0)
    assert answer()["id"].tolist() == ends
    assert (numbered.standing(ends).persons >= 0).all()
    assert verify(numbered.ledger).ok


def test_what_no_id_can_be_is_refused_with_its_reason(numbered):
    told = decide_on(["5", str(LARGEST + 1), str(-LARGEST - 2), "9" * 40, "007", "1e3", "-0"])
    assert told["people"] == 1
    assert told["refused"]["reasons"] == {
        f"'id' must be a whole number from {-LARGEST - 1} to {LARGEST}, as in the history": 3,
        "'id' must be a whole number, as in the history": 3,
    }


def test_digits_of_other_scripts_are_not_taken_for_a_number_on_record(numbered):
    decide_on(["12"], "first.csv")
    told = decide_on(["1２", "13"])
    assert told["people"] == 1
    refusals = pd.read_csv("applicants.refused.csv", dtype=str)
    assert refusals["id"].tolist() == ["1２"]
    assert refusals["reason"].tolist() == ["'id' must be a whole number, as in the history"]
    assert call("decide", "applicants.csv", "-o", "again.csv").exit_code == 0
