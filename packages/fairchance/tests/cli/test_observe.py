"""``fairchance observe``: outcomes, corrections and the rows that it refuses."""

from __future__ import annotations

import shutil
import sqlite3

import numpy as np
import pandas as pd
import pytest

from cli.lender_files import (
    CERTIFIED,
    PROGRAM,
    answer,
    apply,
    call,
    causes,
    done,
    entries,
    people,
    refused,
    start,
    tell,
)
from fairchance.ledger import Program, verify
from fairchance.ledger.replay import State
from fairchance.ledger.sql import Writer
from golden import transcript


@pytest.fixture
def decided(lender):
    """Return a program with a decided batch, and the accepted and rejected ids."""
    apply()
    done("decide", "applicants.csv", "-o", "decisions.csv")
    got = answer()
    yes = got["id"][got["decision"] == "accept"].tolist()
    return lender, yes, got["id"][got["decision"] == "reject"].tolist()


def test_a_file_with_good_and_bad_exchanged_is_refused_unless_confirmed(lender):
    apply(400)
    done("decide", "applicants.csv", "-o", "decisions.csv")
    got = answer().merge(people(400, 1000)[["id", "outcome"]], on="id")
    got = got[got["decision"] == "accept"]
    words = {"repaid": "default", "default": "repaid"}
    tell([(name, words[outcome]) for name, outcome in zip(got["id"], got["outcome"], strict=True)])
    message = refused("observe", "outcomes.csv")
    assert "are good and bad exchanged" in message
    assert "--unlike-expected" in message
    assert entries(lender, "outcomes") == []
    assert done("observe", "outcomes.csv", code=2)["error"]["code"] == "input"
    result = done("observe", "outcomes.csv", "--unlike-expected")
    assert result["unlike_expected"]["stops"]
    assert result["unlike_expected"] == entries(lender, "outcomes")[0].says["unlike_expected"]
    assert result["recorded"]["good"] + result["recorded"]["bad"] == len(got)
    assert done("observe", "outcomes.csv")["unlike_expected"] is None  # nothing is new
    tell([*zip(got["id"], got["outcome"], strict=True)])
    assert "contradict the record" in refused("observe", "outcomes.csv")
    result = done("observe", "outcomes.csv", "--unlike-expected")
    assert result["unlike_expected"]["corrected"] == result["corrections"] == len(got)


@pytest.mark.parametrize("word", ["withdrawn", "not_taken"])
def test_a_file_that_leaves_a_round_without_outcomes_is_refused_unless_confirmed(
    tmp_path, monkeypatch, word
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAIRCHANCE_LEDGER", url := f"sqlite:///{tmp_path}/words.db")
    start(
        url,
        tmp_path,
        PROGRAM.replace(
            'withdrawn = "fraud"',
            'withdrawn = "withdrawn"\nnot_taken = "not_taken"\nnot_taken_within = "1 round"',
        ),
    )
    program = Program.open(url)
    apply()
    done("decide", "applicants.csv", "-o", "decisions.csv")
    yes = answer().query("decision == 'accept'")["id"].tolist()
    some = len(yes) // 3
    tell(zip(yes[:some], [word] * some, strict=True))  # a list of some of the round is usual
    assert done("observe", "outcomes.csv")["unlike_expected"] is None
    tell(zip(yes, [word] * len(yes), strict=True))
    message = refused("observe", "outcomes.csv")
    assert f"{len(yes)} of {len(yes)} applicants" in message
    assert "--unlike-expected" in message
    assert len(entries(program, "outcomes")) == 1
    said = done("observe", "outcomes.csv", "--unlike-expected")["unlike_expected"]
    assert (said["stops"], said[word], said["of"]) == (True, len(yes), len(yes))
    assert verify(program.ledger).ok


def test_corrections_among_many_known_outcomes_pass(decided):
    _, yes, _ = decided
    outcomes = ["repaid"] * (len(yes) - 3) + ["default"] * 3
    tell(zip(yes, outcomes, strict=True))
    done("observe", "outcomes.csv")
    tell(zip(yes, [*outcomes[:-6], *outcomes[-3:], *outcomes[-6:-3]], strict=True))
    result = done("observe", "outcomes.csv")
    assert (result["corrections"], result["unlike_expected"]) == (6, None)


def test_corrections_can_be_disallowed(decided):
    program, yes, _ = decided
    tell([(yes[0], "repaid"), (yes[1], "repaid")])
    done("observe", "outcomes.csv")
    tell([(yes[0], "default"), (yes[1], "repaid"), (yes[2], "default")])
    result = done("observe", "outcomes.csv", "--no-corrections")
    assert (result["corrections"], result["known_already"], result["recorded"]["bad"]) == (0, 1, 1)
    assert causes(result["refused"]) == {"other_outcome": 1}
    assert program.standing(yes[:3]).states == ["good", "good", "bad"]
    assert done("observe", "outcomes.csv")["corrections"] == 1


def test_every_kind_of_row_in_a_file_of_outcomes(decided):
    program, accepted, rejected = decided
    tell([(accepted[0], "repaid"), (accepted[1], "default"), (accepted[2], "fraud")])
    assert done("observe", "outcomes.csv", "--by", "anna")["recorded"] == {
        "good": 1,
        "bad": 1,
        "withdrawn": 1,
        "not_taken": 0,
    }
    rows = [
        (accepted[0], "1.0"),  # known already, in another word
        (accepted[1], "repaid"),  # a correction
        (accepted[2], "fraud"),  # known already
        (accepted[3], "repaid"),
        (accepted[3], "1"),  # the same in another word
        (accepted[4], "default"),
        (accepted[5], ""),  # pending
        (accepted[6], "fraud"),
        (accepted[7], "repaid"),
        (accepted[7], "default"),  # contradictory
        (accepted[8], "perhaps"),
        (rejected[0], "repaid"),
        ("unknown", "repaid"),
        ("", "repaid"),
        (accepted[9], "repaid"),
        (accepted[9], ""),  # known now
    ]
    frame = pd.DataFrame(rows, columns=["id", "outcome"]).assign(remark="late")
    frame.to_csv("outcomes.csv", index=False)
    result = done("observe", "outcomes.csv", "--by", "bert")
    assert result["recorded"] == {"good": 2, "bad": 1, "withdrawn": 1, "not_taken": 0}
    assert (result["corrections"], result["known_already"], result["pending"]) == (1, 2, 1)
    assert result["ignored_columns"] == ["remark"]
    assert result["refused"]["rows"] == 6
    refusals = pd.read_csv("outcomes.refused.csv", keep_default_na=False)
    assert refusals["id"].tolist() == [
        accepted[7],
        accepted[7],
        accepted[8],
        rejected[0],
        "unknown",
        "",
    ]
    assert refusals["reason_code"].tolist() == [
        *("two_outcomes", "two_outcomes", "not_a_label", "not_accepted", "unknown", "no_id")
    ]
    standing = program.standing(accepted[:11])
    assert standing.states == [
        "good",
        "good",
        "withdrawn",
        "good",
        "bad",
        None,
        "withdrawn",
        None,
        None,
        "good",
        None,
    ]
    (correction,) = entries(program, "correction")
    assert correction.by == "bert"
    head = program.checkpoint()
    again = done("observe", "outcomes.csv")
    assert again["recorded"] == {"good": 0, "bad": 0, "withdrawn": 0, "not_taken": 0}
    assert (again["corrections"], again["known_already"]) == (0, 7)
    assert program.checkpoint() == head
    output = call("observe", "outcomes.csv").stdout
    assert "0 outcomes recorded, 7 known already.\nEmpty for 1 person, without a change" in output
    assert "Not read: the columns 'remark'.\n" in output
    assert verify(program.ledger).ok


def test_withdrawal_can_be_undone_only_without_a_certificate(decided, tmp_path):
    program, yes, _ = decided
    tell([(yes[0], "fraud"), (yes[1], "repaid")])
    done("observe", "outcomes.csv")
    tell([(yes[0], "repaid"), (yes[1], "fraud")])
    assert done("observe", "outcomes.csv")["corrections"] == 2
    assert program.standing(yes[:2]).states == ["good", "withdrawn"]

    url = f"sqlite:///{tmp_path}/certified.db"
    start(url, tmp_path, CERTIFIED, n=200)
    done("decide", "applicants.csv", "-o", "decisions.csv", "--ledger", url)
    yes = answer()["id"][answer()["decision"] == "accept"].tolist()
    tell([(yes[0], "fraud"), (yes[1], "repaid")])
    done("observe", "outcomes.csv", "--ledger", url)
    tell([(yes[0], "repaid"), (yes[1], "fraud"), (yes[2], "repaid")])
    result = done("observe", "outcomes.csv", "--ledger", url)
    assert (result["corrections"], result["recorded"]["good"], result["refused"]["rows"]) == (
        0,
        1,
        2,
    )
    assert Program.open(url).standing(yes[:3]).states == ["withdrawn", "good", "good"]


def test_outcomes_of_the_history_can_be_corrected(decided):
    program, _, _ = decided
    past = people(400)
    known = past[past["income"] >= -0.3].iloc[:4]
    other = np.where(known["outcome"] == "repaid", "default", "repaid")
    tell(list(zip(known["id"], [*other[:2], *known["outcome"][2:]], strict=True)))
    result = done("observe", "outcomes.csv")
    assert (result["corrections"], result["known_already"], result["refused"]["rows"]) == (2, 2, 0)
    assert verify(program.ledger).ok


def test_crash_between_outcomes_and_corrections_records_nothing(decided, monkeypatch):
    program, yes, _ = decided
    tell([(yes[2], "repaid")])
    done("observe", "outcomes.csv")
    tell([(yes[0], "repaid"), (yes[1], "fraud"), (yes[2], "default")])
    head, learn, learned = program.checkpoint(), State.learn, []

    def die(self, reader, entry, persons, names, states):
        if entry.kind == "correction":
            raise KeyboardInterrupt
        learned.extend(states)
        learn(self, reader, entry, persons, names, states)

    with monkeypatch.context() as patch:
        patch.setattr(State, "learn", die)
        assert call("observe", "outcomes.csv").exit_code == 130
    assert learned == ["good", "withdrawn"]
    assert program.checkpoint() == head
    result = done("observe", "outcomes.csv")
    assert result["recorded"] == {"good": 1, "bad": 0, "withdrawn": 1, "not_taken": 0}
    assert program.standing(yes[:3]).states == ["good", "withdrawn", "bad"]


def test_a_repeated_request_records_nothing(decided):
    """Not even if its outcomes were corrected or their applicants erased meanwhile."""
    program, yes, no = decided
    rows = [(yes[0], "repaid"), (yes[1], "default"), (yes[2], "fraud"), (no[0], "repaid")]
    tell(rows)
    first = done("observe", "outcomes.csv", "--request", "march")
    assert (first["recorded"]["good"], first["refused"]["rows"], first["repeats"]) == (1, 1, None)
    tell([(yes[0], "default")])
    assert done("observe", "outcomes.csv")["corrections"] == 1
    program.erase(yes[1:2], "asked", early=True)
    head = program.checkpoint()
    for options in ([], ["--no-corrections"]):
        tell(rows)
        again = done("observe", "outcomes.csv", "--request", "march", *options)
        assert (again["known_already"], again["corrections"], again["refused"]["rows"]) == (3, 0, 1)
        (entry,) = [each for each in entries(program, "outcomes") if each.key == "march"]
        assert again["repeats"]["entry"] == entry.number
    assert (
        "Nothing changed: request 'march' was"
        in call("observe", "outcomes.csv", "--request", "march").stdout
    )
    for other in ([*rows, (yes[3], "repaid")], rows[1:], [(yes[0], "default"), *rows[1:]]):
        tell(other)
        assert "with other content" in refused("observe", "outcomes.csv", "--request", "march")
    assert program.checkpoint() == head
    tell([(yes[0], "default")])  # all of it is known, and stays known under this name
    done("observe", "outcomes.csv", "--request", "april")
    tell([(yes[0], "repaid")])
    done("observe", "outcomes.csv")
    tell([(yes[0], "default")])
    again = done("observe", "outcomes.csv", "--request", "april")
    assert (again["known_already"], again["corrections"]) == (1, 0)
    assert program.standing(yes[:1]).states == ["good"]
    assert verify(program.ledger, relearn=True).ok


def test_strict_records_nothing_if_a_row_is_refused(decided, tmp_path):
    program, accepted, rejected = decided
    head = program.checkpoint()
    tell([(accepted[0], "repaid"), (rejected[0], "repaid")])
    sentence = refused("observe", "outcomes.csv", "--strict")
    assert f"outcomes.csv, row 2 (id '{rejected[0]}')" in sentence
    assert program.checkpoint() == head
    assert not (tmp_path / "outcomes.refused.csv").exists()


def test_unreadable_outcome_files(decided):
    program, yes, _ = decided
    head = program.checkpoint()
    pd.DataFrame({"id": yes[:1], "result": ["repaid"]}).to_csv("outcomes.csv", index=False)
    assert "outcomes.csv has no column 'outcome'" in refused("observe", "outcomes.csv")
    assert "there is no file 'none.csv'" in refused("observe", "none.csv")
    tell([(yes[0], "repaid")])
    words = refused("observe", "outcomes.csv", "--refused", "outcomes.csv")
    assert "replace the input" in words
    assert program.checkpoint() == head


def test_numeric_outcomes_with_gaps_from_pandas(decided):
    program, yes, _ = decided
    outcomes = pd.DataFrame({"id": yes[:3], "outcome": [1.0, 0.0, np.nan]})
    outcomes.to_parquet("outcomes.parquet")
    result = done("observe", "outcomes.parquet")
    assert result["recorded"] == {"good": 1, "bad": 1, "withdrawn": 0, "not_taken": 0}
    assert (result["pending"], result["refused"]["rows"]) == (1, 0)
    assert program.standing(yes[:3]).states == ["good", "bad", None]


def test_empty_outcome_records_nothing_and_is_reported(decided):
    program, accepted, rejected = decided
    tell([(accepted[0], "repaid")])
    done("observe", "outcomes.csv")
    head = program.checkpoint()
    rows = [
        (accepted[0], ""),
        (accepted[1], ""),
        (accepted[1], ""),
        (accepted[2], ""),
        (rejected[0], ""),
        ("unknown", ""),
    ]
    tell(rows)
    result = done("observe", "outcomes.csv")
    assert result["empty"] == {"not_yet_known": 2, "known_already": 1, "not_accepted": 1}
    assert result["pending"] == 2
    assert causes(result["refused"]) == {"unknown": 1}
    assert (
        "0 outcomes recorded.\nEmpty for 4 people, without a change of the record: 2 not yet "
        "known, 1 known already, 1 not accepted.\n"
    ) in call("observe", "outcomes.csv").stdout
    assert program.checkpoint() == head
    assert program.standing(accepted[:3]).states == ["good", None, None]
    tell([(accepted[1], "repaid"), (accepted[1], "")])  # the known outcome counts, in any row
    assert sum(done("observe", "outcomes.csv")["empty"].values()) == 0
    tell([("unknown", "")])
    assert call("observe", "outcomes.csv").exit_code == 2


def test_overridden_applicants_have_outcomes_by_their_final_decision(decided):
    program, accepted, rejected = decided
    program.override(accepted[:1], False, "fraud was found")
    program.override(rejected[:1], True, "has a guarantor")
    tell([(accepted[0], "repaid"), (rejected[0], "repaid")])
    result = done("observe", "outcomes.csv")
    assert (result["recorded"]["good"], result["refused"]["rows"]) == (1, 1)
    assert program.standing([accepted[0], rejected[0]]).states == [None, "good"]
    assert result["so_far"]["by_override"] == {"accepted": 1, "known": 1}
    assert result["so_far"]["known"] == 0
    output = call("observe", "outcomes.csv").stdout
    assert " are pending. Not counted: 1 accepted with an override (1 known).\n" in output


def test_file_without_outcomes_is_no_error(decided):
    program, *_ = decided
    head = program.checkpoint()
    tell([])
    result = done("observe", "outcomes.csv")
    assert set(result["recorded"].values()) == {0}
    assert call("observe", "outcomes.csv").stdout.startswith("0 outcomes recorded")
    assert program.checkpoint() == head
    (pd.read_csv("outcomes.csv")[["id"]]).to_csv("outcomes.csv", index=False)
    assert "has no column 'outcome'" in refused("observe", "outcomes.csv")


def fail_on(patch, kind):
    """Make the database refuse entries of a kind, as a full disk would."""
    append = Writer.append

    def refuse(self, this, *arguments, **options):
        if this == kind:
            raise sqlite3.OperationalError("database or disk is full")
        return append(self, this, *arguments, **options)

    patch.setattr(Writer, "append", refuse)


@pytest.mark.parametrize("config", ["plain", "certified"])
def test_file_is_recorded_whole_or_not_at_all(lender, config, tmp_path, monkeypatch):
    program = lender
    if config == "certified":
        (tmp_path / "other").mkdir()
        url = f"sqlite:///{tmp_path}/other/lender.db"
        monkeypatch.setenv("FAIRCHANCE_LEDGER", url)
        start(url, tmp_path / "other", CERTIFIED)
        program = Program.open(url)
    apply()
    done("decide", "applicants.csv", "-o", "decisions.csv")
    yes = answer().query("decision == 'accept'")["id"].tolist()
    tell([(yes[0], "repaid")])
    done("observe", "outcomes.csv")
    # A file with new outcomes, a correction that fails, and a withdrawal.
    rows = [(yes[0], "default"), (yes[1], "repaid"), (yes[2], "default"), (yes[3], "fraud")]
    tell(rows)
    head = program.checkpoint()
    with monkeypatch.context() as patch:
        fail_on(patch, "correction")
        words = refused("observe", "outcomes.csv", code=2)
    assert "database or disk is full" in words
    assert program.checkpoint() == head
    assert program.standing(yes[:4]).states == ["good", None, None, None]

    result = done("observe", "outcomes.csv")
    assert result["recorded"] == {"good": 1, "bad": 1, "withdrawn": 1, "not_taken": 0}
    assert result["corrections"] == 1
    assert program.standing(yes[:4]).states == ["bad", "good", "bad", "withdrawn"]
    kinds = [entry.says["rows"]["n"] for entry in entries(program, "outcomes")]
    assert (len(kinds), len(entries(program, "correction"))) == (2, 1)
    assert verify(program.ledger, relearn=True).ok
    assert done("observe", "outcomes.csv")["known_already"] == 4
    assert Program.open(str(program.ledger.engine.url)).checkpoint() == program.checkpoint()


OTHER = {"repaid": "default", "default": "repaid"}


@pytest.fixture(scope="module")
def two_rounds(tmp_path_factory):
    """Return a folder with a certified program after two rounds, and their outcomes."""
    folder, known = tmp_path_factory.mktemp("pilot"), {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("FAIRCHANCE_LEDGER", f"sqlite:///{folder}/pilot.db")
        start(f"sqlite:///{folder}/pilot.db", folder, CERTIFIED, n=200)
        for first in (1000, 2000):
            outcome = apply(200, first).set_index("id")["outcome"]
            done("decide", "applicants.csv", "-o", "decisions.csv")
            yes = answer()["id"][answer()["decision"] == "accept"]
            tell(list(outcome[yes].items()))
            result = done("observe", "outcomes.csv")
            assert (result["certificates_dropped"], result["testing_began_again"]) == (0, [])
            known |= outcome[yes].to_dict()
    return folder, known


@pytest.fixture
def pilot(two_rounds, tmp_path, monkeypatch):
    """Return a copy of that program, and the accepted applicants with their outcomes."""
    folder, known = two_rounds
    for file in folder.glob("pilot.db*"):
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("FAIRCHANCE_LEDGER", f"sqlite:///{tmp_path}/pilot.db")
    return Program.open(f"sqlite:///{tmp_path}/pilot.db"), known


def wrong(known, n):
    return [(name, OTHER[outcome]) for name, outcome in list(known.items())[:n]]


def test_observe_reports_the_cost_of_a_correction(pilot):
    program, known = pilot
    tell(wrong(known, 1))
    result = done("observe", "outcomes.csv")
    (restart,) = result["testing_began_again"]
    assert (restart["round"], restart["n_outcomes"]) == (3, len(known))
    assert result["certificates_dropped"] == 0
    tell(wrong(known, 3))
    assert done("observe", "outcomes.csv")["testing_began_again"] == []
    assert verify(program.ledger, relearn=True).ok


def test_decide_reports_when_and_why_tests_began_again(pilot):
    _, known = pilot
    tell(wrong(known, 1))
    done("observe", "outcomes.csv")
    outcome = apply(200, 3000).set_index("id")["outcome"]
    words = ("decide", "applicants.csv", "-o", "decisions.csv")
    for _ in range(2):  # the second time from the record
        (record,) = done(*words)["rounds"]
        assert (record["tests_began"], record["n_tested"]) == (3, 0)
    yes = answer()["id"][answer()["decision"] == "accept"]
    tell([(name, "repaid" if at else outcome[name]) for at, name in enumerate(yes)])
    done("observe", "outcomes.csv")
    apply(200, 4000)
    (record,) = done(*words)["rounds"]
    assert (record["tests_began"], record["n_tested"]) == (3, len(yes))
    assert record["more_outcomes"] > 0


def test_new_outcomes_in_the_same_file_count_as_discarded(pilot):
    program, known = pilot
    outcome = apply(200, 3000).set_index("id")["outcome"]
    done("decide", "applicants.csv", "-o", "decisions.csv")
    yes = answer()["id"][answer()["decision"] == "accept"]
    tell([*outcome[yes].items(), *wrong(known, 2)])
    result = done("observe", "outcomes.csv")
    assert sum(result["recorded"].values()) == len(yes)
    n = len(known) + len(yes)
    again = {"group": None, "round": 4, "n_outcomes": n, "after": "correction"}
    assert result["testing_began_again"] == [again]
    kinds = [
        entry.kind for entry in entries(program, None) if entry.kind in ("outcomes", "correction")
    ]
    assert kinds == ["outcomes"] * 3 + ["correction"]


def test_status_and_report_show_that_tests_began_again(pilot):
    _, known = pilot
    tell(wrong(known, 5))
    done("observe", "outcomes.csv", "--unlike-expected")

    def promised():
        return next(one for one in done("status")["checks"] if one["question"] == "certificate")

    assert promised()["facts"]["n_corrected_since"] == 5
    apply(200, 3000)
    done("decide", "applicants.csv", "-o", "decisions.csv")
    facts = promised()["facts"]
    assert facts["n_corrected_since"] == 0
    assert facts["needs"][0]["tests_began"] == 3
    assert "round 3" in promised()["message"]
    done("report", "--out", "report.html")
    with open("report.html", encoding="utf-8") as page:
        assert "round 3" in page.read()


def test_refused_row_of_the_history_does_not_stop_others(pilot):
    program, _ = pilot
    past = people(200)
    past = past[past["income"] >= -0.3].iloc[:3]
    outcome = apply(100, 3000).set_index("id")["outcome"]
    done("decide", "applicants.csv", "-o", "decisions.csv")
    name = answer()["id"][answer()["decision"] == "accept"].iloc[0]
    (same, first), (other, second), (gone, _) = past[["id", "outcome"]].to_numpy().tolist()
    tell([(other, OTHER[second]), (gone, "fraud"), (same, first), (name, outcome[name])])
    result = done("observe", "outcomes.csv")
    assert sum(result["recorded"].values()) == 1
    assert (result["known_already"], result["corrections"], result["refused"]["rows"]) == (1, 0, 2)
    assert causes(result["refused"]) == {"history_final": 2}
    got = answer(result["refused"]["file"])
    assert got["id"].tolist() == [other, gone]
    state = "good" if outcome[name] == "repaid" else "bad"
    assert program.standing([name]).states == [state]


def test_what_the_command_prints(decided, golden):
    _, yes, no = decided
    tell(
        [
            *((name, "repaid") for name in yes[:8]),
            *((yes[8], "default"), (yes[9], ""), (yes[10], "fraud")),
            *((yes[11], "repaid"), (yes[11], "default"), (yes[12], "perhaps")),
            *((no[0], "repaid"), ("nobody", "repaid"), ("", "repaid")),
        ]
    )
    pd.read_csv("outcomes.csv").assign(remark="late").to_csv("outcomes.csv", index=False)
    tell([(yes[0], "default")], "other.csv")
    tell([(name, "default") for name in yes], "exchanged.csv")
    golden(
        "observe",
        transcript(
            "observe outcomes.csv --strict",
            "observe outcomes.csv --request june",
            "observe outcomes.csv --request june",
            "observe other.csv --request june",
            "observe other.csv --no-corrections",
            "observe other.csv",
            "observe exchanged.csv",
            "observe exchanged.csv --unlike-expected",
        ),
    )


def test_words_for_outcomes_in_any_case_and_unknown_ones_by_word(decided):
    program, yes, _ = decided
    words = ["REPAID", " Default", "repayed", "repayed", "still open", "Default "]
    tell([*zip(yes, words, strict=False)])
    result = done("observe", "outcomes.csv")
    assert result["recorded"] == {"good": 1, "bad": 2, "withdrawn": 0, "not_taken": 0}
    first, second = result["refused"]["causes"]
    assert (first["rows"], first["mistakes"][0]["value"]) == (2, "repayed")
    assert (second["rows"], second["mistakes"][0]["value"]) == (1, "still open")
    tell([(yes[6], "repaid"), (yes[7], "defaultd"), (yes[8], "lost"), (yes[9], "fraud")])
    lines = call("observe", "outcomes.csv").stdout.splitlines()
    (line,) = [line for line in lines if "'defaultd'" in line]
    assert line.startswith("  1 × ")
    assert line.endswith("(did you mean 'default'?)")
    assert lines[-1] == "No outcome recorded from this file is bad; is one of the refused words?"
    assert program.standing(yes[:3]).states == ["good", "bad", None]
