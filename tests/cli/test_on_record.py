"""Experiments with ``--ledger``: what ran once more is on record, proved, and the same."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from secondlook.cli.app import app
from secondlook.lab.experiments import on_ledger
from secondlook.ledger import Checkpoint, SqlLedger, verify

WORLD = """
methods = ["{first}", "no-exploration"]
repetitions = 2
[world]
data = "lender"
n_history = 400
n_batch = 80
n_rounds = 3
[world.feedback]
delay = {{ kind = "fixed", after = 1 }}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("TERM", "dumb")
    # Drawing takes most of the time, and is tested elsewhere.
    monkeypatch.setattr("secondlook.cli.runs.write_report", lambda *arguments: None)
    return tmp_path


def simulate(folder, first="plain", *more, url="sqlite:///ledger.db", seed=0, out="out"):
    (folder / "world.toml").write_text(WORLD.format(first=first))
    options = ("--out", out, "--ledger", url, "--jobs", "1", "--seed", str(seed))
    return CliRunner().invoke(app, ["simulate", "world.toml", *options, *more])


@pytest.mark.parametrize("first", ["plain", "certified"])
def test_the_first_method_runs_through_a_ledger_that_is_proved(folder, first):
    url = "sqlite:///out/ledger.db"  # in a folder that the run makes, as in the demo
    told = simulate(folder, first, "--json", url=url)
    assert told.exit_code == 0, told.stderr
    proof = json.loads(told.stdout)["ledger"]
    assert (proof["program"], proof["decisions"]) == (first, 3 * 80)
    found = verify(SqlLedger(url), first)
    assert found.ok
    assert str(found.head) == proof["checkpoint"]
    assert found.n_entries == proof["entries"] == Checkpoint.read(proof["checkpoint"]).number
    # Once more: everything is there, nothing is added, and it is said in one line.
    again = simulate(folder, first, url=url, out="again")
    assert again.exit_code == 0, again.stderr
    (line,) = [one for one in again.stdout.splitlines() if one.startswith("On the record")]
    assert line == (
        f"On the record ({first}): {proof['entries']} entries fit, 240 decisions made again; "
        f"checkpoint {proof['checkpoint']}"
    )


def test_a_ledger_of_other_decisions_is_refused(folder, monkeypatch):
    assert simulate(folder).exit_code == 0
    other = simulate(folder, seed=1, out="other")
    assert other.exit_code == 2
    assert "program 'plain' with other settings" in other.stderr
    run_and_count = on_ledger.run_and_count

    def one_more(*arguments):
        counts = run_and_count(*arguments)
        counts["n_accepted"] = counts["n_accepted"] + (np.arange(counts["n_accepted"].size) == 3)
        return counts

    monkeypatch.setattr(on_ledger, "run_and_count", one_more)
    said = simulate(folder, url="sqlite:///third.db", out="third").stderr
    assert re.search(r"'plain' differ from this run, first in round 2 \(n_accepted\)", said)


def test_what_a_ledger_cannot_keep_is_refused_before_anything_runs(folder):
    for arguments, words in (
        (["simulate", "world.toml"], "cannot record the reference 'opt-offline'"),
        (
            ["reproduce", "german", "--switch", "C1"],
            "a ledger cannot record deviations of the released code, got C1",
        ),
    ):
        (folder / "world.toml").write_text(WORLD.format(first="opt-offline"))
        told = CliRunner().invoke(
            app, [*arguments, "--out", "none", "--ledger", "sqlite:///ledger.db"]
        )
        assert told.exit_code == 2
        assert words in told.stderr
        assert not (folder / "none").exists()
        assert not (folder / "ledger.db").exists()


def test_a_method_that_is_no_classifier_of_ours_is_refused(folder):
    told = simulate(folder, "epsilon-greedy-aligned")
    assert told.exit_code == 2
    assert "a ledger records classifiers of this library" in told.stderr
    assert not (folder / "ledger.db").exists()


def test_a_ledger_that_does_not_prove_itself_has_its_own_exit_code(folder):
    assert simulate(folder).exit_code == 0
    ledger = SqlLedger("sqlite:///ledger.db")
    with ledger.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE entries SET \"by\" = 'nobody' WHERE number = 2")
    told = simulate(folder, out="again")
    assert told.exit_code == 4
    assert "secondlook: entry" in told.stderr
    assert "On the record" not in told.stdout
