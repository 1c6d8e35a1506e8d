"""``secondlook observe``: outcomes of those who stand accepted, each row with its answer."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cli.lender_files import (
    CERTIFIED,
    answer,
    apply,
    call,
    done,
    entries,
    people,
    refused,
    start,
    tell,
)
from secondlook.ledger import Program, verify
from secondlook.ledger.replay import State


@pytest.fixture
def decided(lender):
    """Return a program with one batch, and the ids that it accepted and rejected."""
    apply()
    done("decide", "applicants.csv", "-o", "decisions.csv")
    got = answer()
    yes = got["id"][got["decision"] == "accept"].tolist()
    return lender, yes, got["id"][got["decision"] == "reject"].tolist()


def test_corrections_can_be_ruled_out(decided):
    program, yes, _ = decided
    tell([(yes[0], "repaid"), (yes[1], "repaid")])
    done("observe", "outcomes.csv")
    tell([(yes[0], "default"), (yes[1], "repaid"), (yes[2], "default")])
    told = done("observe", "outcomes.csv", "--no-corrections")
    assert (told["corrections"], told["known_already"], told["recorded"]["bad"]) == (0, 1, 1)
    words = "the record has another outcome, and corrections are not allowed"
    assert told["refused"]["reasons"] == {words: 1}
    assert program.standing(yes[:3]).states == ["good", "good", "bad"]
    assert done("observe", "outcomes.csv")["corrections"] == 1


def test_every_kind_of_row_in_a_file_of_outcomes(decided):
    program, yes, no = decided
    tell([(yes[0], "repaid"), (yes[1], "default"), (yes[2], "fraud")])
    assert done("observe", "outcomes.csv", "--by", "anna")["recorded"] == {
        "good": 1,
        "bad": 1,
        "indeterminate": 1,
    }
    rows = [
        (yes[0], "1.0"),  # known already, in another word
        (yes[1], "repaid"),  # a correction
        (yes[2], "fraud"),  # known already
        (yes[3], "repaid"),
        (yes[3], "1"),  # the same in another word
        (yes[4], "default"),
        (yes[5], ""),  # pending
        (yes[6], "fraud"),
        (yes[7], "repaid"),
        (yes[7], "default"),  # contradictory
        (yes[8], "perhaps"),
        (no[0], "repaid"),
        ("nobody", "repaid"),
        ("", "repaid"),
        (yes[9], "repaid"),
        (yes[9], ""),  # known now
    ]
    frame = pd.DataFrame(rows, columns=["id", "outcome"]).assign(remark="late")
    frame.to_csv("outcomes.csv", index=False)
    told = done("observe", "outcomes.csv", "--by", "bert")
    assert told["recorded"] == {"good": 2, "bad": 1, "indeterminate": 1}
    assert (told["corrections"], told["known_already"], told["pending"]) == (1, 2, 1)
    assert told["ignored_columns"] == ["remark"]
    assert told["refused"]["rows"] == 6
    refusals = pd.read_csv("outcomes.refused.csv", keep_default_na=False)
    assert refusals["id"].tolist() == [yes[7], yes[7], yes[8], no[0], "nobody", ""]
    for reason, words in zip(
        refusals["reason"],
        [
            "the file has different outcomes for this id",
            "the file has different outcomes for this id",
            "the outcome 'perhaps' is none of 'repaid' (good), '1' (good), 'default' (bad)",
            "the applicant is not accepted",
            "the id was never decided on",
            "'id' is empty",
        ],
        strict=True,
    ):
        assert words in reason
    standing = program.standing(yes[:11])
    assert standing.states == [
        "good",
        "good",
        "indeterminate",
        "good",
        "bad",
        None,
        "indeterminate",
        None,
        None,
        "good",
        None,
    ]
    (correction,) = entries(program, "correction")
    assert correction.by == "bert"
    head = program.checkpoint()
    again = done("observe", "outcomes.csv")
    assert again["recorded"] == {"good": 0, "bad": 0, "indeterminate": 0}
    assert (again["corrections"], again["known_already"]) == (0, 7)
    assert program.checkpoint() == head
    said = call("observe", "outcomes.csv").stdout
    assert "0 outcomes recorded, 7 known already.\nEmpty for 1 person, for whom nothing" in said
    assert "Not read: the columns 'remark'.\n" in said
    assert verify(program.ledger).ok


def test_a_withdrawal_can_be_taken_back_only_where_no_certificate_rests_on_it(decided, tmp_path):
    program, yes, _ = decided
    tell([(yes[0], "fraud"), (yes[1], "repaid")])
    done("observe", "outcomes.csv")
    tell([(yes[0], "repaid"), (yes[1], "fraud")])
    assert done("observe", "outcomes.csv")["corrections"] == 2
    assert program.standing(yes[:2]).states == ["good", "indeterminate"]

    url = f"sqlite:///{tmp_path}/certified.db"
    start(url, tmp_path, CERTIFIED, n=200)
    done("decide", "applicants.csv", "-o", "decisions.csv", "--ledger", url)
    yes = answer()["id"][answer()["decision"] == "accept"].tolist()
    tell([(yes[0], "fraud"), (yes[1], "repaid")])
    done("observe", "outcomes.csv", "--ledger", url)
    tell([(yes[0], "repaid"), (yes[1], "fraud"), (yes[2], "repaid")])
    told = done("observe", "outcomes.csv", "--ledger", url)
    assert (told["corrections"], told["recorded"]["good"], told["refused"]["rows"]) == (0, 1, 2)
    assert Program.open(url).standing(yes[:3]).states == ["indeterminate", "good", "good"]


def test_outcomes_of_the_history_can_be_corrected(decided):
    program, _, _ = decided
    past = people(400)
    known = past[past["income"] >= -0.3].iloc[:4]
    other = np.where(known["outcome"] == "repaid", "default", "repaid")
    tell(list(zip(known["id"], [*other[:2], *known["outcome"][2:]], strict=True)))
    told = done("observe", "outcomes.csv")
    assert (told["corrections"], told["known_already"], told["refused"]["rows"]) == (2, 2, 0)
    assert verify(program.ledger).ok


def test_a_crash_between_outcomes_and_withdrawals_leaves_nothing_half_done(decided, monkeypatch):
    program, yes, _ = decided
    tell([(yes[0], "repaid"), (yes[1], "fraud"), (yes[2], "default")])
    head, learn, learned = program.checkpoint(), State.learn, []

    def die(self, entry, ids, states):
        if "indeterminate" in states:
            raise KeyboardInterrupt
        learned.extend(states)
        learn(self, entry, ids, states)

    with monkeypatch.context() as patch:
        patch.setattr(State, "learn", die)
        assert call("observe", "outcomes.csv").exit_code == 130
    assert learned == ["good", "bad"]
    assert program.checkpoint() == head
    told = done("observe", "outcomes.csv")
    assert told["recorded"] == {"good": 1, "bad": 1, "indeterminate": 1}
    assert program.standing(yes[:3]).states == ["good", "indeterminate", "bad"]


def test_observing_strictly_records_nothing_if_a_row_is_refused(decided, tmp_path):
    program, yes, no = decided
    head = program.checkpoint()
    tell([(yes[0], "repaid"), (no[0], "repaid")])
    sentence = refused("observe", "outcomes.csv", "--strict")
    assert f"outcomes.csv, row 2 (id '{no[0]}'): the applicant is not accepted" in sentence
    assert program.checkpoint() == head
    assert not (tmp_path / "outcomes.refused.csv").exists()


def test_files_of_outcomes_that_cannot_be_read(decided):
    program, yes, _ = decided
    head = program.checkpoint()
    pd.DataFrame({"id": yes[:1], "result": ["repaid"]}).to_csv("outcomes.csv", index=False)
    assert "outcomes.csv has no column 'outcome'" in refused("observe", "outcomes.csv")
    assert "there is no file 'none.csv'" in refused("observe", "none.csv")
    tell([(yes[0], "repaid")])
    words = refused("observe", "outcomes.csv", "--refused", "outcomes.csv")
    assert "replace the input" in words
    assert program.checkpoint() == head


def test_numbers_with_gaps_as_pandas_keeps_them(decided):
    program, yes, _ = decided
    told = pd.DataFrame({"id": yes[:3], "outcome": [1.0, 0.0, np.nan]})
    told.to_parquet("outcomes.parquet")
    found = done("observe", "outcomes.parquet")
    assert found["recorded"] == {"good": 1, "bad": 1, "indeterminate": 0}
    assert (found["pending"], found["refused"]["rows"]) == (1, 0)
    assert program.standing(yes[:3]).states == ["good", "bad", None]


def test_an_empty_outcome_records_nothing_and_is_told_of(decided):
    program, yes, no = decided
    tell([(yes[0], "repaid")])
    done("observe", "outcomes.csv")
    head = program.checkpoint()
    rows = [(yes[0], ""), (yes[1], ""), (yes[1], ""), (yes[2], ""), (no[0], ""), ("nobody", "")]
    tell(rows)
    told = done("observe", "outcomes.csv")
    assert told["empty"] == {"not_yet_known": 2, "known_already": 1, "not_accepted": 1}
    assert told["pending"] == 2
    assert told["refused"]["reasons"] == {"the id was never decided on, or is erased": 1}
    assert (
        "0 outcomes recorded.\nEmpty for 4 people, for whom nothing was recorded: 2 not yet "
        "known, 1 known already, 1 not accepted.\n"
    ) in call("observe", "outcomes.csv").stdout
    assert program.checkpoint() == head
    assert program.standing(yes[:3]).states == ["good", None, None]
    tell([(yes[1], "repaid"), (yes[1], "")])  # what is told counts, in whatever row
    assert sum(done("observe", "outcomes.csv")["empty"].values()) == 0
    tell([("nobody", "")])
    assert call("observe", "outcomes.csv").exit_code == 2


def test_overridden_people_have_outcomes_as_they_stand(decided):
    program, yes, no = decided
    program.override(yes[:1], False, "fraud was found")
    program.override(no[:1], True, "has a guarantor")
    tell([(yes[0], "repaid"), (no[0], "repaid")])
    told = done("observe", "outcomes.csv")
    assert (told["recorded"]["good"], told["refused"]["rows"]) == (1, 1)
    assert program.standing([yes[0], no[0]]).states == [None, "good"]
    assert told["so_far"]["by_override"] == {"accepted": 1, "known": 1}
    assert told["so_far"]["known"] == 0
    said = call("observe", "outcomes.csv").stdout
    assert " are pending. Not counted: 1 accepted with an override (1 known).\n" in said


def test_a_month_without_outcomes_is_no_error(decided):
    program, *_ = decided
    head = program.checkpoint()
    tell([])
    told = done("observe", "outcomes.csv")
    assert set(told["recorded"].values()) == {0}
    assert call("observe", "outcomes.csv").stdout.startswith("0 outcomes recorded")
    assert program.checkpoint() == head
    (pd.read_csv("outcomes.csv")[["id"]]).to_csv("outcomes.csv", index=False)
    assert "has no column 'outcome'" in refused("observe", "outcomes.csv")
