"""``fairchance status``, and options that reading commands refuse."""

from __future__ import annotations

import json
import math
from dataclasses import asdict

import numpy as np
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

import fairchance as fc
from cli.hostile_lender import EXPORTED, HOSTILE, refused, run
from fairchance.errors import LedgerError
from fairchance.ledger import Program, SqlLedger
from fairchance.ledger.health import Check
from fairchance.ledger.status_data import status_data
from fairchance.ledger.summary import summarise
from fairchance.words import LIGHTS
from golden import transcript
from ledger_worlds import certified, started


def test_status_is_the_same_in_text_and_json(hostile_lender):
    url, program, result, _ = hostile_lender
    summary = summarise(program.ledger)
    output = run("status", "--ledger", url).stdout
    data = json.loads(run("status", "--ledger", url, "--json").stdout)
    assert data["checkpoint"] == str(program.checkpoint())
    last = f"Checkpoint: {program.checkpoint()}\n"
    assert last in output
    accepted = sum(int(decided.accepted.sum()) for decided, *_ in result)
    assert data["people"]["accepted"] == accepted
    assert data["people"]["decided"] == 240
    assert (data["people"]["erased"], data["people"]["overridden"]) == (2, 2)
    by_hand = data["people"]["accepted_and_overridden"], data["people"]["accepted_by_hand"]
    assert by_hand == (1, 1)
    assert accepted - data["people"]["accepted_and_overridden"] == summary.outcomes.accepted
    assert data["enters_next"] == []
    whole = summary.outcomes
    assert data["outcomes"]["all"] == {
        "good": whole.good,
        "bad": whole.bad,
        "withdrawn": 1,
        "not_taken": 0,
        "taken": whole.accepted,
        "pending": whole.pending,
        "fdr": whole.fdr,
        "interval": [whole.mistakes().low, whole.mistakes().high],
        "range": list(whole.range),
    }
    assert data["outcomes"]["by_override"]["pending"] == 1
    assert [value["round"] for value in data["rounds"]] == [1, 2, 3]
    assert [item["n_accepted"] for item in data["rounds"]] == [
        int(d.accepted.sum()) for d, *_ in result
    ]
    assert {group["group"] for group in data["groups"]} == {*HOSTILE, None}
    assert [change["kind"] for change in data["changes"]] == ["override", "override", "erasure"]
    row = next(line for line in output.splitlines() if line.strip().startswith("all "))
    cells = row.split()
    assert cells[1:6] == [
        f"{n}" for n in (whole.accepted, whole.good, whole.bad, whole.withdrawn, whole.pending)
    ]
    assert cells[6] == f"{whole.fdr:.3f}"


def test_what_status_prints(hostile_lender, golden, tmp_path):
    """Also that markup of the terminal is printed as it is."""
    url, new = hostile_lender[0], f"sqlite:///{tmp_path}/new.db"
    X = np.random.default_rng(0).normal(size=(80, 2))
    Program.create(new, fc.PartialFeedbackClassifier(random_state=0), X, X[:, 0] > 0)
    printed = transcript(
        f"status {url} --late 250 --rounds 2", f"status {new}", f"status {new} --program loans"
    )
    golden("status", printed.replace(url, "sqlite:///lender.db").replace(new, "sqlite:///new.db"))


def test_status_begins_with_a_verdict_and_late_outcomes(hostile_lender):
    url, program, _, _ = hostile_lender
    summary = summarise(program.ledger)
    late = summary.waiting(250.0).n
    assert 0 < late < summary.waiting().n
    data = json.loads(run("status", "--ledger", url, "--json", "--late", 250).stdout)
    assert data["late"]["n"] == late
    (check,) = [one for one in data["checks"] if (one["finding"], one["group"]) == ("late", "")]
    assert (check["facts"]["n"], check["facts"]["days"]) == (late, 250)
    assert check["facts"]["oldest"] == pytest.approx(400, abs=1)
    output = run("status", "--ledger", url, "--late", 250, "--rounds", 2).stdout
    assert output.index(f"• AMBER: {check['message']}") < output.index("Outcomes so far")
    lines = output.splitlines()
    assert lines[0] == data["message"]
    assert lines[0].startswith(f"{data['light'].upper()}: ")
    assert [value["light"] for value in data["checks"]] == sorted(
        (value["light"] for value in data["checks"]), key=LIGHTS.index
    )


@pytest.mark.parametrize(
    ("light", "on_red", "on_amber"), [("red", 6, 6), ("amber", 0, 7), ("green", 0, 0)]
)
def test_status_fails_on_a_light_if_asked_to(hostile_lender, monkeypatch, light, on_red, on_amber):
    url = hostile_lender[0]
    checks = [Check("data", "made_up", light), Check("record", "made_up", "green")]
    monkeypatch.setattr("fairchance.ledger.health.QUESTIONS", (lambda _: checks,))
    run("status", url, "--late", 9999)
    for fail_on, code in (("red", on_red), ("amber", on_amber)):
        options = ("status", url, "--late", 9999, "--fail-on", fail_on)
        assert run(*options, code=code).stdout.startswith(f"{light.upper()}: ")
        assert json.loads(run(*options, "--json", code=code).stdout)["light"] == light
    refused("--fail-on must be red or amber", "status", url, "--fail-on", "green")


def test_json_has_sentences_under_one_key_only(hostile_lender):
    """All other texts are names, values, codes and what users wrote."""
    data = json.loads(run("status", "--ledger", hostile_lender[0], "--json").stdout)

    def texts(value, key=""):
        if isinstance(value, dict):
            return [text for name, part in value.items() for text in texts(part, name)]
        if isinstance(value, list):
            return [text for part in value for text in texts(part, key)]
        return [(key, value)] if isinstance(value, str) else []

    ours = [(key, text) for key, text in texts(data) if text.endswith(".") and " " in text]
    assert {key for key, _ in ours} == {"message"}


def test_pilots_report_what_their_tests_wait_for(tmp_path):
    program, _, (one, two) = started(f"sqlite:///{tmp_path}/x.db", certified(), n_rounds=2)
    for batch in (one, two):
        program.decide(batch.people.X, sensitive_features=batch.people.group)
    summary = program.summary()
    data = status_data(summary, 1000.0)
    (waits,) = data["enters_next"]
    assert waits == asdict(summary.next_tested())
    assert (waits["round"], waits["awaited"]) == (1, summary.rounds[0].awaited)
    (check,) = [one for one in data["checks"] if one["question"] == "certificate"]
    assert (check["finding"], check["facts"]["waits"]) == ("pilot", [waits])


def test_a_program_without_rounds_is_shown_and_exported(tmp_path):
    url = f"sqlite:///{tmp_path}/new.db"
    X = np.random.default_rng(0).normal(size=(80, 2))
    Program.create(url, fc.PartialFeedbackClassifier(random_state=0), X, X[:, 0] > 0)
    assert json.loads(run("status", "--ledger", url, "--json").stdout)["rounds"] == []
    table = pc.read_csv(_written(tmp_path / "d.csv", run("export", "--ledger", url).stdout_bytes))
    assert table.column_names == EXPORTED
    assert table.num_rows == 0
    run("export", "--ledger", url, "-o", tmp_path / "d.parquet")
    assert pq.read_table(tmp_path / "d.parquet").num_rows == 0


def _written(path, content):
    path.write_bytes(content)
    return path


def test_invalid_options_are_refused(hostile_lender, tmp_path):
    url, *_ = hostile_lender
    for words, *arguments in (
        ("'x'", "status", "--ledger", url, "--program", "x"),
        ("'x'", "export", "--ledger", url, "--program", "x"),
        ("'x'", "report", "--ledger", url, "--program", "x"),
        ("FAIRCHANCE_LEDGER", "report"),
        ("--out", "report", "--ledger", url, "-o", tmp_path),
        (str(tmp_path / "no"), "report", "--ledger", url, "-o", tmp_path / "no" / "r.html"),
        (r"\.csv or \.parquet", "export", "--ledger", url, "-o", "d.xlsx"),
        (r"\.jsonl", "export", "--ledger", url, "-o", "d.csv", "--entries"),
        ("--checkpoint", "export", "--ledger", url, "--checkpoint", "--entries"),
        (str(tmp_path / "no"), "export", "--ledger", url, "-o", tmp_path / "no" / "d.csv"),
    ):
        refused(words, *arguments)
    refused_json = run("export", "--ledger", url, "--json", code=2)
    assert "--out" in refused_json.stderr
    assert list(tmp_path.iterdir()) == []


def test_status_writes_nothing(hostile_lender):
    url, program, *_ = hostile_lender
    before = program.checkpoint()
    for command in (["status"], ["export"], ["export", "--entries"]):
        run(*command, "--ledger", url)
    assert SqlLedger(url).programs() == ["main"]
    assert program.checkpoint() == before
    assert not math.isnan(summarise(program.ledger).outcomes.fdr)


def test_a_ledger_is_named_as_an_argument_or_an_option(hostile_lender, tmp_path):
    url, program, *_ = hostile_lender
    head = str(program.checkpoint())
    outputs = {"export": "d.csv", "report": "r.html"}
    for command in ("status", "verify", "export", "report"):
        more = ["-o", tmp_path / outputs[command]] if command in outputs else []
        data = json.loads(run(command, url, "--json", *more).stdout)
        assert data["checkpoint"] == head
        refused("--ledger", command, url, "--ledger", f"{url}2", *more)


def test_the_only_program_needs_no_name(tmp_path):
    url = f"sqlite:///{tmp_path}/new.db"
    X = np.random.default_rng(0).normal(size=(80, 2))
    clf = fc.PartialFeedbackClassifier(random_state=0)
    Program.create(url, clf, X, X[:, 0] > 0, name="cards")
    assert json.loads(run("status", url, "--json").stdout)["program"] == "cards"
    assert json.loads(run("verify", url, "--json").stdout)["ok"]
    assert Program.open(url).name == "cards"
    Program.create(url, clf, X, X[:, 0] > 0)
    refused("2 .*'cards', 'main'", "status", url)
    with pytest.raises(LedgerError, match="'cards', 'main'"):
        Program.open(url)
    assert Program.open(url, "main").name == "main"


def test_status_tells_a_receiver_of_changed_lights(lender, monkeypatch, golden):
    url = "https://example.org/alerts"
    monkeypatch.setattr("fairchance.ledger.alerts.Receiver.send", lambda *_: None)
    command = "status --notify"
    text = transcript(command)
    monkeypatch.setenv("FAIRCHANCE_ALERTS_URL", url)
    text += transcript(command)
    monkeypatch.setenv("FAIRCHANCE_ALERTS_SECRET", "eDl" * 12)
    text += transcript(f"{command} --no-groups", command, command)
    golden("alert", text)
    assert (
        json.loads(run("status", lender_url(lender), "--notify", "--json").stdout)["alert"] is None
    )


def test_an_alert_that_nobody_takes_ends_with_exit_code_3(lender, monkeypatch):
    monkeypatch.setattr("fairchance.ledger.alerts._PAUSES", ())
    monkeypatch.setenv("FAIRCHANCE_ALERTS_SECRET", "eDl" * 12)
    monkeypatch.setenv("FAIRCHANCE_ALERTS_URL", "http://127.0.0.1:9/")
    found = json.loads(run("status", lender_url(lender), "--notify", "--json", code=3).stdout)
    assert found["error"]["code"] == "unavailable"
    assert run("status", lender_url(lender), "--notify", code=3).stdout.startswith("AMBER: ")


def test_an_alert_that_nobody_takes_hides_no_light(lender, monkeypatch):
    monkeypatch.setattr("fairchance.ledger.alerts._PAUSES", ())
    monkeypatch.setenv("FAIRCHANCE_ALERTS_SECRET", "eDl" * 12)
    monkeypatch.setenv("FAIRCHANCE_ALERTS_URL", "http://127.0.0.1:9/")
    asked = ("status", lender_url(lender), "--notify", "--fail-on")
    ran = run(*asked, "amber", code=7)
    assert ran.stdout.startswith("AMBER: ")
    assert "127.0.0.1" in ran.stderr
    found = json.loads(run(*asked, "amber", "--json", code=7).stdout)
    assert (found["light"], "alert" in found) == ("amber", False)
    run(*asked, "red", code=3)


def lender_url(program):
    return program.ledger.engine.url.render_as_string()
