"""Runs of experiments: sets of methods, and failures."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from fairchance.cli.app import app
from fairchance_lab import runs
from fairchance_lab.experiments import methods
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
    assert "fairchance-lab[deep]" in result.stderr


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
    assert "FloatingPointError: the loss is not a number (at " in words
    assert str(made[1]) in words
    output = json.loads(call("simulate", "world.toml", "--out", "run", "--json").stdout)
    rows = {row["method"]: row for row in output["summary"]}
    (failure,) = output["failures"]
    assert (failure["repetition"], failure["seed"]) == (1, made[1])
    assert rows["diverges"]["failed_repetitions"] == 1
    assert rows["greedy-aligned"]["failed_repetitions"] == 0
    again = ("simulate", "world.toml", "--out", "run")
    tested = json.loads(call(*again, "--json", "--against", "diverges").stdout)["against"]
    assert [row["method"] for row in tested] == ["greedy-aligned", "fuzzy-augmentation-aligned"] * 3
    for metric in ("acceptance_rate", "pooled_true_positive_rate_difference", "fdr"):
        assert rows["diverges"][metric] is not None
        assert f"{metric}_standard_error" in rows["diverges"]
