"""``fairchance status``, and options that reading commands refuse."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from io import StringIO

import numpy as np
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from rich.console import Console

import fairchance as fc
from cli.hostile_lender import EXPORTED, HOSTILE, refused, run
from fairchance.cli.commands.status import as_data, print_status
from fairchance.errors import LedgerError
from fairchance.ledger import Program, SqlLedger
from fairchance.ledger.health import LIGHTS, PILOT_ADVICE, check_health
from fairchance.ledger.summary import Change, Outcomes, Promise, summarise
from round_records import a_pilot, a_round


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
        "indeterminate": 1,
        "pending": whole.pending,
        "fdr": whole.fdr,
        "interval": list(whole.interval),
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
        f"{n}" for n in (whole.accepted, whole.good, whole.bad, whole.indeterminate, whole.pending)
    ]
    assert cells[6] == f"{whole.fdr:.3f}"
    assert "2 overridden; 0 outcomes corrected; 0 people held, 2 erased." in output
    assert "[b]🙂" in output  # no markup of the terminal's either


LATE = ("pending", "")


def attention(summary, late):
    """Return what is found by checks that are not green, with what it means."""
    return [
        f"{check.finding} {check.meaning}".strip()
        for check in check_health(replace(summary, groups=()), late)
        if check.light != "green"
    ]


def test_status_begins_with_a_verdict_and_late_outcomes(hostile_lender):
    url, program, _, _ = hostile_lender
    summary = summarise(program.ledger)
    late = summary.waiting(250.0).n
    assert 0 < late < summary.waiting().n
    data = json.loads(run("status", "--ledger", url, "--json", "--late", 250).stdout)
    assert data["late"]["n"] == late
    (check,) = [value for value in data["checks"] if (value["question"], value["group"]) == LATE]
    sentence = check["finding"]
    assert sentence.startswith(
        f"{late} accepted applicants have waited for an outcome for 250 days"
    )
    assert "the oldest for 400 days" in sentence
    assert not any("wait" in item for item in attention(summary, 500.0))
    output = run("status", "--ledger", url, "--late", 250, "--rounds", 2).stdout
    assert output.index(f"• AMBER: {sentence}") < output.index("Outcomes so far")
    lines = output.splitlines()
    assert lines[0] == data["verdict"]
    assert lines[0].startswith(f"{data['light'].upper()}: ")
    assert [value["light"] for value in data["checks"]] == sorted(
        (value["light"] for value in data["checks"]), key=LIGHTS.index
    )
    assert "Earlier rounds not shown: 1 (--rounds)." in output


def test_mistakes_pilots_and_dropped_certificates_need_attention(hostile_lender):
    result = replace(summarise(hostile_lender[1].ledger), promise=Promise(alpha=0.15))
    quiet = replace(result, outcomes=Outcomes(90, 10, 0, 0), rounds=result.rounds[:1])
    noted = a_round()
    quiet = replace(quiet, rounds=(replace(result.rounds[0], records=(noted,), n_explored=1),))
    assert attention(quiet, 1000.0) == []
    pilot = a_pilot(more_outcomes=40.0, n_outcomes=100)
    value = replace(quiet.rounds[0], records=(pilot,))
    (sentence,) = attention(replace(quiet, rounds=(value,)), 1000.0)
    assert all(part in sentence for part in ("1 of 1", "40 more outcomes", PILOT_ADVICE))
    says = {"what": "dropped", "round": 7, "why": "correction"}
    gone = Change("certificate", 31, "2031-01-01T00:00:00+00:00", "me", 0, says)
    assert attention(replace(quiet, changes=(gone,)), 1000.0) == [
        "Certificates were dropped once, last after round 7 by a correction (entry 31), and "
        "testing began again. Rounds are pilots until there is new evidence."
    ]
    kept = replace(quiet.rounds[0], certified=True, entry=32)
    assert attention(replace(quiet, changes=(gone,), rounds=(kept,)), 1000.0) == []
    output = attention(replace(quiet, promise=Promise(problem="a type is not trusted.")), 1000.0)
    assert output[0].endswith("nothing is compared with α. A type is not trusted.")


def pilots(result, awaited, **settings):
    """Return a summary of pilots with pending outcomes."""
    n_known = result.outcomes.known
    rounds = tuple(
        replace(
            result.rounds[0],
            round=t + 1,
            records=(a_pilot(round=t + 1, n_outcomes=n_known),),
            outcomes=Outcomes(30, 5, 0, n),
            n_explored=1,
            awaited=n,
        )
        for t, n in enumerate(awaited)
    )
    settings = {"alpha": 0.2, "delta": 0.1, "maturity": 2} | settings
    return replace(result, rounds=rounds, promise=Promise(**settings))


def test_pilots_report_what_their_tests_wait_for(hostile_lender):
    late = pilots(summarise(hostile_lender[1].ledger), [39, 40, 80], patience=12)
    (sentence,) = attention(late, 1000.0)
    for part in ("3 of 3", "ound 1 ", "39 outcomes", "round 13", "105 known", PILOT_ADVICE):
        assert part in sentence
    more = replace(late.outcomes, good=late.outcomes.good + 1)
    (sentence,) = attention(replace(late, outcomes=more), 1000.0)
    assert "from when round 3 was decided" in sentence
    data = as_data(late, 1000.0)
    assert data["enters_next"][0] | {"group": 0} == {
        "group": 0,
        "round": 1,
        "awaited": 39,
        "awaited_before": 0,
        "matures": 0,
        "at_latest": 13,
        "n_known": 105,
        "oldest": 1,
        "ids": (),
    }
    done = pilots(late, [0, 0, 0], maturity=0)
    assert "enters" not in attention(done, 1000.0)[0]


def test_singular_and_plural(hostile_lender):
    result = replace(summarise(hostile_lender[1].ledger), n_held=1, n_expired=1)
    console = Console(file=StringIO(), width=200)
    print_status(console, result, 180, 12)
    output = console.file.getvalue()
    assert "; 1 person held, 2 erased." in output
    assert "is over for 1 person. Erase" in output


def test_status_of_a_program_without_rounds(tmp_path):
    url = f"sqlite:///{tmp_path}/new.db"
    X = np.random.default_rng(0).normal(size=(80, 2))
    Program.create(url, fc.PartialFeedbackClassifier(random_state=0), X, X[:, 0] > 0)
    assert "No batch has been decided yet." in run("status", "--ledger", url).stdout
    assert json.loads(run("status", "--ledger", url, "--json").stdout)["rounds"] == []
    run("report", "--ledger", url, "-o", tmp_path / "r.html")
    assert "No batch has been decided yet." in (tmp_path / "r.html").read_text()
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
        ("must name a file, such as", "report", "--ledger", url, "-o", tmp_path),
        ("cannot be written", "report", "--ledger", url, "-o", tmp_path / "no" / "r.html"),
        ("a file that ends in .csv or .parquet", "export", "--ledger", url, "-o", "d.xlsx"),
        ("a file that ends in .jsonl", "export", "--ledger", url, "-o", "d.csv", "--entries"),
        ("writes nothing; leave out", "export", "--ledger", url, "--checkpoint", "--entries"),
        ("cannot be written", "export", "--ledger", url, "-o", tmp_path / "no" / "d.csv"),
    ):
        refused(words, *arguments)
    refused_json = run("export", "--ledger", url, "--json", code=2)
    assert "would both go to standard output" in refused_json.stderr
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
    assert "Everything fits" in run("verify", url).stdout
    assert Program.open(url).name == "cards"
    Program.create(url, clf, X, X[:, 0] > 0)
    refused("2 programs, 'cards', 'main'", "status", url)
    with pytest.raises(LedgerError, match="'cards', 'main'"):
        Program.open(url)
    assert Program.open(url, "main").name == "main"
