"""``fairchance verify``: messages, JSON, exit codes."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest
from typer.testing import CliRunner

from fairchance.cli.app import app
from ledger_worlds import algorithm_1, started


@pytest.fixture
def ledger(tmp_path):
    url = f"sqlite:///{tmp_path}/lender.db"
    program, _, (one, *_) = started(url, algorithm_1(), n_batch=50)
    program.decide(one.people.X, sensitive_features=one.people.group, batch="b1")
    return url, tmp_path / "lender.db", program


def run(*options):
    return CliRunner().invoke(app, ["verify", *map(str, options)])


def test_an_honest_ledger(ledger):
    url, _, program = ledger
    output = run(url)
    assert output.exit_code == 0
    kept = str(program.checkpoint())
    assert kept in output.stdout
    told = json.loads(run(url, "--checkpoint", kept, "--json").stdout)
    assert told == {
        "ok": True,
        "message": None,
        "checkpoint": kept,
        "entries": 4,
        "decisions": 50,
        "not_repeated": 0,
        "learned_again": None,
        "not_learned_from": None,
        "skipped": [],
        "open_round": None,
        "not_checked": None,
        "moved": None,
        "other_programs": [],
        "groups": {
            "mode": "aware",
            "n_decisions": 0,
            "n_rounds": 0,
            "uses": told["groups"]["uses"],
        },
    }
    assert any("GroupShare" in use for use in told["groups"]["uses"])
    assert json.loads(run(url, "--relearn", "--json").stdout)["learned_again"] == 50


def test_other_programs_are_named_and_files_are_compacted_without_one(ledger):
    url, _, _ = ledger
    started(url, algorithm_1(), n_batch=50, name="other")
    found = json.loads(run(url, "--program", "other", "--json").stdout)
    assert found["other_programs"] == ["main"]
    compacted = CliRunner().invoke(app, ["erase", "--compact", "--ledger", url])
    assert compacted.exit_code == 0


def test_groups_that_did_not_decide(tmp_path):
    url = f"sqlite:///{tmp_path}/lender.db"
    classifier = algorithm_1(group_mode="audit", strategy=None)
    program, _, (one, two, *_) = started(url, classifier, n_batch=50)
    for batch in (one, two):
        program.decide(batch.people.X, sensitive_features=batch.people.group)
    found = json.loads(run(url, "--json").stdout)["groups"]
    assert found == {"mode": "audit", "n_decisions": 100, "n_rounds": 2, "uses": []}


def test_a_checkpoint_from_a_file(ledger, monkeypatch):
    url, path, program = ledger
    monkeypatch.chdir(path.parent)
    kept = str(program.checkpoint())
    (path.parent / "kept.txt").write_text(f"{kept}\n")
    (path.parent / "other.txt").write_text(kept.replace("4:", "5:", 1))
    for name in ("kept.txt", "@kept.txt", path.parent / "kept.txt"):
        assert run(url, "--checkpoint", name).exit_code == 0
    output = run(url, "--checkpoint", "other.txt")
    assert (output.exit_code, "entry 5" in output.stdout) == (4, True)
    assert "'none.txt'" in run(url, "--checkpoint", "@none.txt").stderr


def test_a_changed_ledger(ledger):
    url, path, _ = ledger
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE people SET accepted = 1 - accepted WHERE person = 610")
    output = run(url)
    assert output.exit_code == 4
    assert "entry 4 (batch 'b1')" in output.stdout
    assert "application '610' (person 610)" in output.stdout
    assert json.loads(run(url, "--json").stdout)["ok"] is False


@pytest.mark.parametrize(
    ("options", "value"),
    [(["sqlite:///nowhere.db"], "{here}/nowhere.db"), (["lender.db"], "'lender.db'")],
)
def test_invalid_arguments(options, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    output = run(*options)
    assert output.exit_code == 2
    assert value.format(here=tmp_path) in output.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_program_or_checkpoint(ledger):
    url, _, _ = ledger
    output = run(url, "--program", "loans")
    assert (output.exit_code, "'loans'" in output.stderr) == (2, True)
    output = run(url, "--checkpoint", "7")
    assert (output.exit_code, "'7'" in output.stderr) == (2, True)
