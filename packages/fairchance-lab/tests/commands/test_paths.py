"""Paths that research commands must not read from or write to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cli.lender_files import call, done, people, refused, start
from fairchance.cli.app import LAB
from fairchance.ledger import SqlLedger, verify

WORLD = """
methods = ["plain"]
repetitions = 1
[world]
data = "lender"
n_history = 400
n_batch = 60
n_rounds = 2
"""
ANSWER_TO_NOTHING = {"compare", "datasets", "switches", "methods"}


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.delenv("FAIRCHANCE_LEDGER", raising=False)
    (tmp_path / "a-file").write_text("not a folder")
    (tmp_path / "world.toml").write_text(WORLD)


@pytest.mark.parametrize("command", [name for name in LAB if name not in ANSWER_TO_NOTHING])
def test_command_without_arguments_names_what_it_needs(command):
    result = call(command)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Missing argument" in result.stderr or "Missing option" in result.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("simulate missing.toml", "there is no file missing.toml; name a TOML file of a world, "),
        ("compare missing.toml", "there is no file missing.toml; name a TOML file of a world, "),
        (
            "results missing",
            "there are no results at missing; name the folder of a run, ",
        ),
        (
            "compare world.toml --methods ,",
            "--methods must name at least one method, got ','; fairchance methods lists them.",
        ),
    ],
)
def test_wrong_paths_are_refused_before_anything_runs(words, sentence, tmp_path):
    assert refused(*words.split()).startswith(sentence)
    assert not (tmp_path / "results").exists()


def test_results_name_the_unwritable_path(monkeypatch):
    monkeypatch.setattr("fairchance_lab.runs.write_report", lambda *_: None)
    done("simulate", "world.toml", "--jobs", 1, "--out", "run")
    for option, place in (("--figures", "a-file"), ("--out", "a-file/x.html")):
        sentence = refused("results", "run", option, place)
        assert sentence == f"{place} cannot be written (File exists); choose another place."


def test_page_of_runs_never_replaces_the_ledger(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path}/lender.db"
    start(url, tmp_path, n=60)
    monkeypatch.setenv("FAIRCHANCE_LEDGER", url)
    Path("run").mkdir()
    os.symlink("lender.db", "page.html")
    assert "replace the ledger" in refused("results", "run", "-o", "page.html")
    os.symlink("loop.html", "loop.html")
    refused("results", "run", "-o", "loop.html")
    assert verify(SqlLedger(url)).ok


def test_results_of_a_run_never_replace_its_data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people(60).drop(columns="id").to_parquet("results.parquet")
    before = Path("results.parquet").read_bytes()
    columns = '[world.columns]\noutcome = "outcome"\ngood = "repaid"\ngroup = "sex"\n'
    Path("world.toml").write_text(WORLD.replace('"lender"', '"results.parquet"') + columns)
    assert refused("simulate", "world.toml", "--jobs", 1, "--out", ".") == (
        "results would replace the data in 'results.parquet'; choose another folder."
    )
    assert Path("results.parquet").read_bytes() == before
