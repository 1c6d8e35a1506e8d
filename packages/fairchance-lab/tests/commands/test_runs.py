"""Runs of experiments: sets of methods, failures, and runs recorded in a ledger."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from fairchance.cli.app import app
from fairchance.ledger import Checkpoint, SqlLedger, verify
from fairchance_lab import runs
from fairchance_lab.experiments import methods, on_ledger
from fairchance_lab.experiments.methods import METHODS, SETS, expand_names
from fairchance_lab.experiments.runner import run_experiment

WORLD = """
methods = ["diverges", "greedy-aligned", "fuzzy-augmentation-aligned"]
repetitions = 3
published = "german_gender"
[world]
data = "lender"
n_batch = 200
n_rounds = 2
"""


@pytest.fixture(autouse=True)
def bare_machine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr("fairchance_lab.runs.write_report", lambda *_: None)


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def asked(monkeypatch):
    """Return the experiments that the command would run."""
    seen = []

    def look(experiment, source, run):
        seen.append(experiment)
        quick = ("greedy-aligned",)
        return run_experiment(replace(experiment, methods=quick, repetitions=1), source, run)

    monkeypatch.setattr(runs, "run_experiment", look)
    return seen


def test_all_means_every_method(asked, monkeypatch):
    assert call("reproduce", "german", "--methods", "all", "--out", "a").exit_code == 0
    assert asked[-1].methods == SETS["all"]
    result = call("reproduce", "german", "--methods", "all", "--quick", "--out", "b")
    assert asked[-1].methods == expand_names(["all"], quick=True)
    assert "Left out" not in result.stderr
    call("reproduce", "german", "--methods", "not-deep,plain", "--out", "c")
    assert sorted(asked[-1].methods) == sorted(SETS["not-deep"])
    monkeypatch.setattr(methods, "find_spec", lambda name: None)
    result = call("reproduce", "german", "--methods", "all", "--out", "d")
    assert "Left out: fairall-published" in result.stderr
    assert "fairchance[deep]" in result.stderr


def test_methods_lists_the_sets():
    words = call("methods").stdout
    assert "not-deep" in words
    assert "kilbertus-icml" in words


def test_failures_are_reported_in_text_and_json(tmp_path, monkeypatch):
    made = []

    def make(setup):
        made.append(setup.seed)
        if len(made) == 2:
            raise FloatingPointError("the loss is not a number")
        return METHODS["greedy-aligned"][1](setup)

    monkeypatch.setitem(METHODS, "diverges", ("Diverges", make))
    (tmp_path / "world.toml").write_text(WORLD)
    result = call("simulate", "world.toml", "--jobs", 1, "--out", "run")
    assert result.exit_code == 0, result.exception
    words = " ".join(result.stdout.split())
    assert f"“Diverges” failed in 1 of 3 repetitions (seed {made[1]})" in words
    assert "Error: FloatingPointError: the loss is not a number (at " in words
    assert "assumes" not in words  # that is in the report
    output = json.loads(call("simulate", "world.toml", "--out", "run", "--json").stdout)
    rows = {row["method"]: row for row in output["summary"]}
    (failure,) = output["failures"]
    assert (failure["repetition"], failure["seed"]) == (1, made[1])
    assert rows["diverges"]["failed_repetitions"] == 1
    assert rows["greedy-aligned"]["failed_repetitions"] == 0
    again = ("simulate", "world.toml", "--out", "run")
    printed = call(*again, "--csv")
    assert (tmp_path / "run" / "tables" / "overview.csv").read_text() == printed.stdout
    assert "FloatingPointError" in printed.stderr
    assert (tmp_path / "run" / "tables" / "overview.tex").read_text() == call(
        *again, "--latex"
    ).stdout
    tested = json.loads(call(*again, "--json", "--against", "diverges").stdout)["against"]
    assert [row["method"] for row in tested] == ["greedy-aligned", "fuzzy-augmentation-aligned"] * 3
    for metric in ("acceptance_rate", "pooled_true_positive_rate_difference", "fdr"):
        assert rows["diverges"][metric] is not None
        assert f"{metric}_standard_error" in rows["diverges"]


RECORDED_WORLD = """
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
    # Drawing takes most of the time and is tested elsewhere.
    monkeypatch.setattr("fairchance_lab.runs.write_report", lambda *arguments: None)
    return tmp_path


def simulate(folder, first="plain", *more, url="sqlite:///ledger.db", seed=0, out="out"):
    (folder / "world.toml").write_text(RECORDED_WORLD.format(first=first))
    options = ("--out", out, "--ledger", url, "--jobs", "1", "--seed", str(seed))
    return CliRunner().invoke(app, ["simulate", "world.toml", *options, *more])


@pytest.mark.parametrize("first", ["plain", "certified"])
def test_first_method_is_recorded_in_a_verified_ledger(folder, first):
    url = "sqlite:///out/ledger.db"  # in a folder that the run makes, as in the demo
    result = simulate(folder, first, "--json", url=url)
    assert result.exit_code == 0, result.stderr
    proof = json.loads(result.stdout)["ledger"]
    assert (proof["program"], proof["decisions"]) == (first, 3 * 80)
    verification = verify(SqlLedger(url), first)
    assert verification.ok
    assert str(verification.head) == proof["checkpoint"]
    assert verification.n_entries == proof["entries"] == Checkpoint.read(proof["checkpoint"]).number
    # A second run adds nothing to the ledger and prints a single line.
    again = simulate(folder, first, url=url, out="again")
    assert again.exit_code == 0, again.stderr
    assert len(again.stdout.splitlines()) <= 25
    (line,) = [value for value in again.stdout.splitlines() if value.startswith("Ledger: ")]
    assert line == f"Ledger: {url} ({proof['entries']} entries verified, 240 decisions made again)"


def test_ledger_with_other_decisions_is_refused(folder, monkeypatch):
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
    output = simulate(folder, url="sqlite:///third.db", out="third").stderr
    assert re.search(r"'plain' differ from this run, first in round 2 \(n_accepted\)", output)


def test_unrecordable_experiments_are_refused_before_running(folder):
    for arguments, words in (
        (["simulate", "world.toml"], "cannot record the reference 'opt-offline'"),
        (
            ["reproduce", "german", "--switch", "C1"],
            "a ledger cannot record deviations of the released code, got C1",
        ),
    ):
        (folder / "world.toml").write_text(RECORDED_WORLD.format(first="opt-offline"))
        result = CliRunner().invoke(
            app, [*arguments, "--out", "none", "--ledger", "sqlite:///ledger.db"]
        )
        assert result.exit_code == 2
        assert words in result.stderr
        assert not (folder / "none").exists()
        assert not (folder / "ledger.db").exists()


def test_unrecordable_method_is_refused(folder):
    result = simulate(folder, "epsilon-greedy-aligned")
    assert result.exit_code == 2
    assert "a ledger records classifiers of this library" in result.stderr
    assert not (folder / "ledger.db").exists()


def test_ledger_that_fails_verification_has_its_own_exit_code(folder):
    assert simulate(folder).exit_code == 0
    ledger = SqlLedger("sqlite:///ledger.db")
    with ledger.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE entries SET \"by\" = 'other' WHERE number = 2")
    result = simulate(folder, out="again")
    assert result.exit_code == 4
    assert "fairchance: entry" in result.stderr
    assert "On the record" not in result.stdout
