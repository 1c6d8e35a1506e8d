"""Commands beside the lender's own process: its decisions, the ramp, and loans not taken."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cli.lender_files import PROGRAM, answer, call, causes, done, people, refused, tell
from fairchance.audit import DecisionLog, added_profit, evaluate, take_up
from fairchance.ledger import Program, verify
from fairchance.ledger.summary import read_details
from fairchance.pages.page import PageTable
from fairchance.pages.program import program_page
from golden import transcript

BESIDE = (
    PROGRAM.replace('groups = ["sex"]', 'groups = ["sex"]\nincumbent = "d"\nbarred = "minor"')
    .replace('withdrawn = "fraud"', 'not_taken = "off"\nnot_taken_within = "1 round"')
    .replace("[columns]", "[program]\nramp = 0\n[columns]")
)


def applicants(n=80, start=1000, name="applicants.csv"):
    """Write applicants with the lender's own decisions; return them."""
    frame = people(n, start).drop(columns="outcome")
    frame["d"] = np.where(frame["income"] > 0, "yes", "no")
    frame["minor"] = (np.arange(n) % 10 == 0) & (frame["d"] == "no")
    frame.to_csv(name, index=False)
    return frame


@pytest.fixture
def beside(tmp_path, monkeypatch):
    """Start a program in shadow mode, in the current folder; return it."""
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path}/lender.db"
    monkeypatch.setenv("FAIRCHANCE_LEDGER", url)
    past = people(400)
    past.loc[past["income"] < -0.3, "outcome"] = ""
    past.loc[past.index[past["outcome"] != ""][:20], "outcome"] = "off"
    past.to_csv("history.csv", index=False)
    tmp_path.joinpath("program.toml").write_text(BESIDE)
    made = done("init", "--config", "program.toml", "history.csv")
    assert (made["not_taken"], made["accepted"]) == (20, made["good"] + made["bad"] + 20)
    return Program.open(url)


def test_files_have_the_lenders_own_decisions(beside):
    sent = applicants()
    result = done("decide", "applicants.csv", "-o", "decisions.csv")
    assert (result["status"], result["ramp"]) == ("shadow", 0.0)
    decided = answer()
    assert decided.columns.tolist()[-2:] == ["incumbent", "barred"]
    assert (decided["incumbent"] == (sent["d"] == "yes")).all()
    assert (decided["barred"] == sent["minor"]).all()
    assert ((decided["decision"] == "accept") == decided["incumbent"]).all()
    assert done("ramp", "1") == {"ramp": 1.0, "paused": False, "recorded": True}
    applicants(start=2000)
    assert done("decide", "applicants.csv", "-o", "two.csv")["ramp"] == 1.0
    call("export", "-o", "all.csv")
    exported = pd.read_csv("all.csv")
    assert exported["ramp"].tolist() == [0.0] * 80 + [1.0] * 80
    assert (exported["incumbent"][:80] == decided["incumbent"]).all()
    assert verify(beside.ledger).ok


def test_rows_without_the_lenders_decision_are_refused(beside):
    sent = applicants()
    sent["d"] = sent["d"].where(np.arange(80) != 3, "").where(np.arange(80) != 4, "perhaps")
    sent["minor"] = sent["minor"].astype(object).where(np.arange(80) != 5, "")
    sent.loc[6, ["d", "minor"]] = "yes", True
    sent.to_csv("applicants.csv", index=False)
    result = done("decide", "applicants.csv", "-o", "decisions.csv")
    assert causes(result["refused"]) == {
        "no_decision": 1,  # of each column
        "not_a_decision": 1,
        "barred_and_accepted": 1,
    }
    assert (result["people"], result["refused"]["rows"]) == (76, 4)
    assert (result["incumbent"], result["barred"]) == tuple(
        answer()[name].sum() for name in ("incumbent", "barred")
    )
    sent.drop(columns="d").to_csv("other.csv", index=False)
    assert "'d'" in refused("decide", "other.csv", "-o", "x.csv")


def test_a_file_with_another_decision_of_the_lender_is_refused(beside):
    sent = applicants()
    done("decide", "applicants.csv", "-o", "decisions.csv")
    sent.loc[1, "d"] = "yes" if sent.loc[1, "d"] == "no" else "no"
    sent.to_csv("applicants.csv", index=False)
    before = beside.checkpoint()
    assert "incumbent" in refused("decide", "applicants.csv", "-o", "decisions.csv")
    assert beside.checkpoint() == before


def test_a_pause_without_the_lenders_decisions_has_its_own_exit_code(lender):
    people(20, 5000).drop(columns="outcome").to_csv("applicants.csv", index=False)
    assert done("pause", "--request", "stop")["paused"]
    assert not done("pause", "--request", "stop")["recorded"]
    error = done("decide", "applicants.csv", "-o", "d.csv", code=5)["error"]
    assert error["code"] == "paused"
    assert not done("resume")["paused"]
    done("decide", "applicants.csv", "-o", "d.csv")
    assert "incumbent" in refused("ramp", "0.5")
    assert "1.5" in refused("ramp", "1.5")


def test_loans_not_taken_come_with_outcomes(beside):
    sent = applicants()
    done("decide", "applicants.csv", "-o", "decisions.csv")
    yes = sent["id"][sent["d"] == "yes"].tolist()
    tell([(yes[0], "off"), (yes[1], "repaid"), (yes[2], "default")])
    result = done("observe", "outcomes.csv", "--unlike-expected")
    assert result["recorded"] == {"good": 1, "bad": 1, "withdrawn": 0, "not_taken": 1}
    tell([(yes[1], "off"), (yes[0], "off"), (yes[3], "off")])
    result = done("observe", "outcomes.csv")
    assert causes(result["refused"]) == {"taken": 1}
    assert (result["recorded"]["not_taken"], result["known_already"]) == (1, 1)
    for start in (2000, 3000):
        applicants(start=start)
        done("decide", "applicants.csv", "-o", "more.csv")
    tell([(yes[4], "off"), (yes[0], "off")])
    result = done("observe", "outcomes.csv")
    assert causes(result["refused"]) == {"take_up_over": 1}
    status = done("status")
    whole = status["outcomes"]["all"]
    assert (whole["not_taken"], whole["taken"]) == (2, status["people"]["accepted"] - 2)
    assert (status["ramp"], status["people"]["barred"] > 0) == (0.0, True)
    assert [row["status"] for row in status["rounds"]] == ["shadow"] * 3
    assert sum(group["outcomes"]["not_taken"] for group in status["groups"]) == 2
    call("report", "-o", "report.html")
    assert verify(beside.ledger).ok


def test_pages_show_take_up_files_of_outcomes_and_authors_in_shadow_mode(beside):
    sent = applicants()
    done("decide", "applicants.csv", "-o", "decisions.csv", "--by", "job")
    yes = sent["id"][sent["d"] == "yes"].tolist()
    tell([(one, "off" if at < 5 else "repaid") for at, one in enumerate(yes[:20])])
    done("observe", "outcomes.csv", "--by", "desk")
    summary = beside.summary()
    page = program_page(summary, read_details(beside.ledger, summary), 180.0)
    parts = [part for section in page.sections for part in section.parts]
    shown = {part.title: part.rows for part in parts if isinstance(part, PageTable)}
    assert shown["Take-up so far"][0][:4] == ["all", str(len(yes)), str(len(yes) - 5), "5"]
    events = [(row[1], row[2], row[4]) for row in shown["Events"]]
    assert events == [("outcomes", "20", "desk"), ("round", "80", "job")]


def test_what_the_commands_print(beside, golden):
    sent = applicants()
    yes = sent["id"][sent["d"] == "yes"].tolist()
    tell([(one, "off" if at < 5 else "repaid") for at, one in enumerate(yes[:20])])
    applicants(start=2000, name="second.csv")
    golden(
        "own_process",
        transcript(
            "init --check --config program.toml history.csv --program other",
            "decide applicants.csv -o decisions.csv --batch first",
            "ramp 0.05",
            "pause --request stop",
            "pause --request stop",
            "resume",
            "ramp 2",
            "handover",
            "observe outcomes.csv",
            "decide second.csv -o second-decisions.csv --batch second",
            "status",
        ),
    )


def test_an_audit_knows_the_lenders_own_decisions_and_loans_not_taken(beside):
    """The log of a ledger and that of its export are the same, and answer about d."""
    for start, ramp in ((1000, 0), (2000, 1)):
        done("ramp", ramp)
        applicants(start=start)
        done("decide", "applicants.csv", "-o", f"{start}.csv")
        ids = answer(f"{start}.csv").query("decision == 'accept'")["id"]
        states = np.array(["repaid", "default", "off", "repaid"])[np.arange(len(ids)) % 4]
        tell(list(zip(ids, states, strict=True)))
        done("observe", "outcomes.csv", "--unlike-expected")
    call("export", "-o", "all.csv", "--features", "--groups")
    log, read = beside.decision_log(), DecisionLog.from_frame(pd.read_csv("all.csv"))
    for name in ("incumbent", "not_taken", "exploit", "outcome"):
        assert np.array_equal(getattr(log, name), getattr(read, name), equal_nan=True)
    assert log.not_taken.sum() > 10
    shadow = log.select(log.round == 1)
    assert evaluate(shadow, "incumbent").of("selection_rate").value == shadow.accepted.mean()
    assert added_profit(shadow).value == 0
    assert [row.group for row in take_up(log)][:3] == ["", "exploit", "explore"]


REASONS = """
[reasons]
income = { code = "R1", text = "Your income is low." }
"missing debt" = { code = "R2", text = "You did not state your debts." }
"""


def test_letters_have_the_lenders_sentences_and_codes(tmp_path, monkeypatch):
    """Only where the program rejected: the score does not explain the lender's own rejections."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAIRCHANCE_LEDGER", f"sqlite:///{tmp_path}/lender.db")
    past = people(400)
    past.loc[past["income"] < -0.3, "outcome"] = ""
    past.to_csv("history.csv", index=False)
    tmp_path.joinpath("program.toml").write_text(BESIDE + REASONS)
    output = call("init", "--config", "program.toml", "history.csv").stdout
    assert "[reasons] has no sentence for 'debt'; letters give the name.\n" in output
    applicants()
    done("decide", "applicants.csv", "-o", "shadow.csv")
    assert (answer("shadow.csv")["letter"] == "").all()
    done("ramp", "1")
    applicants(start=2000)
    done("decide", "applicants.csv", "-o", "decisions.csv")
    decided = answer()
    letters = decided["letter"]
    assert ((letters != "") == ((decided["decision"] == "reject") & ~decided["barred"])).all()
    told = decided["reasons"].str.contains("income") & (letters != "")
    assert told.sum() > 10
    assert letters[told].str.contains("R1: Your income is low.", regex=False).all()
    assert not letters[~told].str.contains("R1").any()
    call("export", "-o", "all.csv")
    exported = pd.read_csv("all.csv")["letter"]
    assert exported[:80].isna().all()
    assert exported[80:].fillna("").tolist() == letters.tolist()
    call("report", "--out", "page.html")
    assert "income (R1)" in tmp_path.joinpath("page.html").read_text()


def test_a_sentence_about_an_unknown_column_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people(100).to_csv("history.csv", index=False)
    start = ["init", "--ledger", "sqlite:///x.db", "--config", "program.toml", "history.csv"]
    for name in ("incme", "sex", "missing incme"):
        wrong = REASONS.replace("income =", f'"{name}" =')
        tmp_path.joinpath("program.toml").write_text(PROGRAM + wrong)
        assert f"{name!r}, which is not a feature" in refused(*start)
    wrong = REASONS.replace('code = "R1", ', "")
    tmp_path.joinpath("program.toml").write_text(PROGRAM + wrong)
    assert "[reasons] income must be such as" in refused(*start)
    assert not tmp_path.joinpath("x.db").exists()
