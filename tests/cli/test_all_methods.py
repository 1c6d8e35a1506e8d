"""All methods by one word, and failures told to people and to programs."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from secondlook.cli import runs
from secondlook.cli.app import app
from secondlook.lab.experiments import methods
from secondlook.lab.experiments.methods import METHODS, SETS, expand_names
from secondlook.lab.experiments.runner import run_experiment

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
    monkeypatch.setattr("secondlook.cli.runs.write_report", lambda *_: None)


def call(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


@pytest.fixture
def asked(monkeypatch):
    """Return the experiments that would have run."""
    seen = []

    def look(experiment, source, run):
        seen.append(experiment)
        quick = ("greedy-aligned",)
        return run_experiment(replace(experiment, methods=quick, repetitions=1), source, run)

    monkeypatch.setattr(runs, "run_experiment", look)
    return seen


def test_all_stands_for_every_method(asked, monkeypatch):
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
    assert "secondlook[deep]" in result.stderr


def test_methods_lists_the_sets():
    words = call("methods").stdout
    assert "not-deep" in words
    assert "kilbertus-icml" in words


def test_a_failure_is_told_to_people_and_programs(tmp_path, monkeypatch):
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
    assert "diverges (1 of 3 failed) " in words
    assert f"“Diverges” failed in 1 of 3 (seed {made[1]})" in words
    assert "Error: FloatingPointError: the loss is not a number (at " in words
    assert "assumes: At equal features, the rejected are bad" in words
    found = json.loads(call("simulate", "world.toml", "--out", "run", "--json").stdout)
    rows = {row["method"]: row for row in found["summary"]}
    (failure,) = rows["diverges"]["failed_repetitions"]
    assert (failure["repetition"], failure["seed"]) == (1, made[1])
    assert rows["greedy-aligned"]["failed_repetitions"] == []
    for metric in ("acceptance_rate", "pooled_true_positive_rate_difference", "fdr"):
        assert rows["diverges"][metric] is not None
        assert f"{metric}_standard_error" in rows["diverges"]
