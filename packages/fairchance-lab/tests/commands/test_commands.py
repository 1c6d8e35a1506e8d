"""Research commands: lists, runs, their pages, errors and imports."""

from __future__ import annotations

import re
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from cli.calls import in_a_fresh_interpreter, process, refused_with
from cli.lender_files import call, done
from experiments.loan_files import write_loans
from experiments.small_experiment import SMALL
from fairchance.cli import app
from fairchance.errors import InputError
from fairchance.simulate.populations import Lender
from fairchance_lab.datasets import CATALOGUE, acs, fico
from fairchance_lab.experiments import (
    PAPER_EXPERIMENTS,
    SHORT_WORLD,
    check_paper_experiment,
)
from fairchance_lab.experiments.results import read_results, write_results
from fairchance_lab.experiments.runner import Run, run_experiment
from fairchance_lab.experiments.world_file import read_world_file
from fairchance_lab.paper.experiment import EXPERIMENTS, paper_experiment
from fairchance_lab.paper.released import DEVIATIONS, SWITCHES, count_deviations
from fairchance_lab.paper.theory import Setting, feasibility, theory_lines

WORLD = """
methods = ["opt-offline"]
repetitions = 2
[world]
data = "lender"
n_batch = 60
n_rounds = 2
"""


@pytest.fixture(autouse=True)
def bare_machine(tmp_path, monkeypatch):
    """Use an empty folder, no data and a wide terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FAIRCHANCE_DATA", raising=False)
    monkeypatch.setenv("FAIRCHANCE_CACHE", str(tmp_path / "cache"))
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "*")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Return the folder of a small complete run."""
    folder = tmp_path_factory.mktemp("small")
    run_experiment(replace(SMALL, vary={}, repetitions=2), Lender(), Run(folder, 1))
    return folder


def test_all_commands_of_the_lab_are_known_to_the_product():
    """The product names them if the lab is not installed."""
    found = [one.name for one in app.COMMANDS.values() if one.panel == app.EXPERIMENTS]
    assert sorted(found) == sorted(app.LAB)


# Lists


def test_switches_are_listed():
    assert set(done("switches")) == set(DEVIATIONS)
    words = call("switches").stdout
    assert all(name in words for name in SWITCHES)
    assert count_deviations() in " ".join(words.split())


def test_methods_are_listed():
    names = done("methods")
    assert {"plain", "fair-clf", "opt-offline"} <= set(names)
    assert all(name in call("methods").stdout for name in names)
    values = done("methods", "kilbertus-icml")
    assert values["cost"] == {"value": 0.6, "source": "the paper implemented here"}
    words = call("methods", "kilbertus-icml").stdout
    assert all(name in words for name in values)
    refused_with("'plain'", "methods", "plain")


def test_data_sets_are_listed_with_their_location(monkeypatch):
    rows = {row["name"]: row for row in done("datasets")}
    assert set(rows) == {*CATALOGUE, "lender"}
    assert rows["german"]["state"] == "bundled"
    assert rows["adult-ca-2019"]["state"] == "download"
    assert rows["acs-ca-2018-sample"]["state"] == "absent"
    assert rows["adult-ca-2019"]["groups"] == ["race", "gender"]
    assert (rows["taiwan"]["gain"], rows["taiwan"]["alpha"]) == (200, 0.15)
    assert all(row["utility"] for row in rows.values())
    monkeypatch.setenv("COLUMNS", "80")
    words = call("datasets").stdout
    for row in rows.values():  # never cut short
        assert row["name"] in words
        assert row["where"] in words
        assert row["source"] in words
    assert "acs:CA:2018" in words
    refused_with("data .*'nowhere'", "datasets", "--data", "nowhere")


# Runs


def test_reproduce_writes_results_a_report_and_figures(tmp_path, monkeypatch):
    """Run two repetitions of the experiment, then read the stored results as JSON."""
    command = ("reproduce", "german", "--repetitions", 2, "--methods", "plain,opt-offline")
    command = (*command, "--jobs", 1, "--out", "german")
    result = call(*command)
    assert result.exit_code == 0, result.exception
    folder = tmp_path / "german"
    results = read_results(folder)
    assert results.methods == ("plain", "opt-offline")
    assert results.shape == (1, 2, 2, 39, 2)
    page = (folder / "report.html").read_text()
    assert page.lstrip().lower().startswith("<!doctype html>")
    names = {path.stem for path in (folder / "figures").glob("*.svg")}
    assert names
    assert names == {path.stem for path in (folder / "figures").glob("*.png")}
    assert "Algorithm 1" in result.stdout
    assert str(folder / "report.html") in result.stdout
    before = {path: path.stat().st_mtime_ns for path in (folder / "parts").iterdir()}

    written = done("results", "german", "--out", "again.html")
    assert "again.html" in str(written)
    assert (tmp_path / "again.html").read_text() == page

    monkeypatch.setattr("fairchance_lab.runs.write_report", None)  # results are only printed again
    actual = done(*command)
    assert {path: path.stat().st_mtime_ns for path in (folder / "parts").iterdir()} == before
    assert Path(actual["results"]) == Path("german/results.parquet")
    assert actual["about"] == results.about
    summary = {row["method"]: row for row in actual["summary"]}
    accepted, good = (results.count(f"n_{name}") for name in ("accepted", "accepted_good"))
    for i, method in enumerate(results.methods):
        bad = (accepted - good)[0, i].sum(axis=(1, 2))
        earned = (200 * good - 500 * (accepted - good))[0, i].sum(axis=-1).mean() / 1000
        row = summary[method]
        assert row["revenue"] == pytest.approx(earned)
        assert row["pooled_fdr"] == pytest.approx((bad / accepted[0, i].sum((1, 2))).mean())
    assert summary["plain"]["published_revenue"] == 6.4


@pytest.fixture
def undrawn(monkeypatch):
    """Record the calls of the report without drawing it, to save time."""
    calls = []
    for module in ("runs", "page"):
        name = f"fairchance_lab.{module}.write_report"
        monkeypatch.setattr(name, lambda *given: calls.append(given) or [])
    return calls


def test_simulate_runs_a_file(tmp_path, undrawn):
    (tmp_path / "mine.toml").write_text(WORLD)
    result = done("simulate", "mine.toml", "--repetitions", 1, "--seed", 5, "--jobs", 1)
    folder = Path(result["folder"])
    assert folder.parent == Path("results")
    assert folder.name.startswith("mine-")
    assert result["about"]["experiment"]["seed"] == 5
    assert result["about"]["experiment"]["repetitions"] == 1
    assert read_results(folder).shape == (1, 1, 1, 2, 2)
    assert result["summary"][0]["revenue_standard_error"] is None  # one repetition has none
    (((results,), page, figures),) = undrawn
    assert results.methods == ("opt-offline",)
    assert (page, figures) == (folder / "report.html", folder / "figures")
    for repetitions, more, drawn in ((1, ["--json"], 1), (2, ["--json"], 2), (2, [], 3)):
        page.touch()  # only new results are drawn unless the report is asked for
        again = ("simulate", "mine.toml", "--repetitions", repetitions, "--seed", 5, "--jobs", 1)
        assert call(*again, *more).exit_code == 0
        assert len(undrawn) == drawn


def test_tables_alone_write_no_page(small, undrawn):
    result = call("results", small, "--tables", "made")
    assert (result.stdout, undrawn) == (f"Tables: {Path('made').resolve()}\n", [])
    assert [path.name for path in Path().iterdir()] == ["made"]
    assert len(list(Path("made").glob("*.csv"))) > 1
    call("results", small, "--figures", "drawn")
    ((_, page, figures),) = undrawn
    assert (page, figures) == (None, Path("drawn"))


def test_report_of_two_runs_with_figures(small, tmp_path, undrawn):
    write_results(read_results(small), tmp_path / "again.parquet")
    result = call("results", small, "again.parquet", "--out", "both.html", "--figures", "drawn")
    assert result.exit_code == 0, result.exception
    assert str(tmp_path / "both.html") in result.stdout
    assert str(tmp_path / "drawn") in result.stdout
    (((first, second), page, figures),) = undrawn
    assert first.columns.keys() == second.columns.keys()
    assert all((first.columns[key] == second.columns[key]).all() for key in first.columns)
    assert (page, figures) == (Path("both.html"), Path("drawn"))


def test_report_of_an_incomplete_run(small, tmp_path):
    (tmp_path / "half" / "parts").mkdir(parents=True)
    (tmp_path / "half" / "settings.json").write_bytes((small / "settings.json").read_bytes())
    refused_with("half", "results", "half")
    refused_with("nowhere", "results", "nowhere")
    assert not (tmp_path / "report.html").exists()


# Errors


@pytest.mark.parametrize(
    ("named", "arguments"),
    [
        ("'germany'.* german", "germany"),
        ("method", "german --methods ,"),
        (r"\['plain'\]", "german --methods plain,plain"),
        ("Z9.* A1", "german --switch Z9"),
        ("Z9.* A1", "german --as-released --without Z9"),
        ("repetitions.* 0", "german --repetitions 0"),
        ("jobs.* 0", "german --methods plain --jobs 0"),
        ("german", "german --data-set fico"),
        ("'adult-ca-2018'.* 'adult-ca-2019'", "adult-race --data-set adult-ca-2018"),
        ("'sex'.* 'race'", "adult-race --data-set german"),
        ("acs_ca_2018_adults_40pct.parquet", "adult-race --data-set acs-ca-2018-sample"),
        ("data .*'nowhere'", "adult-race --data nowhere"),
        ("'plian'.* plain", "german --methods plian --repetitions 1 --jobs 1"),
    ],
)
def test_invalid_reproduce_arguments_are_refused(named, arguments):
    refused_with(named, "reproduce", *arguments.split())


@pytest.mark.parametrize(
    ("named", "text"),
    [
        ("TOML", "[world"),
        ("world", 'methods = ["plain"]'),
        (r"mine.toml.* \[world\].* 'n_bach'", WORLD + "n_bach = 3"),
        ("past.* 'luck'", WORLD + 'past = [{rule = "luck"}]'),
        ("column 'sum'", WORLD.replace("lender", "loans.csv") + "columns = {CSV}"),
        ("outcome.* group", WORLD.replace("lender", "loans.csv")),
    ],
)
def test_invalid_world_is_refused(named, text, tmp_path):
    write_loans(tmp_path / "loans.csv")
    own = '{outcome = "paid", good = "yes", group = "town", features = ["sum"]}'
    (tmp_path / "mine.toml").write_text(text.replace("{CSV}", own))
    refused_with(named, "simulate", "mine.toml", "--jobs", "1")


def test_missing_world_file():
    refused_with("no.toml", "simulate", "no.toml")
    for command in ("reproduce", "compare", "simulate"):
        refused_with(re.escape(SHORT_WORLD), command, "taiwan")


def test_the_short_world_of_messages_is_one(tmp_path):
    path = tmp_path / "taiwan.toml"
    path.write_text("\n".join(SHORT_WORLD.removeprefix("the lines ").split(" and ")))
    assert read_world_file(path).world.data in CATALOGUE


def test_folder_of_another_run_is_refused(small, tmp_path):
    (tmp_path / "mine.toml").write_text(WORLD)
    before = (small / "results.parquet").read_bytes()
    refused_with(str(small), "simulate", "mine.toml", "--out", small, "--jobs", 1)
    assert (small / "results.parquet").read_bytes() == before


def test_failed_download_has_its_own_exit_code(monkeypatch):
    with socket.socket() as taken:  # bound and not listening: connections are refused
        taken.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setattr(acs, "URL", closed)
        monkeypatch.setattr(fico, "URL", closed)
        for command in (
            ("reproduce", "adult-race"),
            ("reproduce", "adult-gender", "--data-set", "acs:RI:2021"),
        ):
            refused_with(f"{closed}.*FAIRCHANCE_DATA", *command, code=3)


def test_interrupted_run_prints_how_to_resume(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    (tmp_path / "mine.toml").write_text(WORLD)
    monkeypatch.setattr("fairchance_lab.runs.run_experiment", interrupt)
    result = call("simulate", "mine.toml")
    assert result.exit_code == 130
    assert "the same command continues from here" in result.stderr


def test_help_and_errors_import_nothing_slow():
    asked = [[name, word] for name in app.LAB for word in ("--help", "--nope")]
    wrong = {
        "switches": "",
        "reproduce": "Missing argument",
        "simulate": "Missing argument",
        "results": "Missing argument",
        "theory": "Missing option",
        "reproduce germany": "'germany'",
        "reproduce german --switch Z9": "Z9",
        "reproduce german --without A9": "--as-released",
        "reproduce german --repetitions many": "Invalid value for '--repetitions'",
        "compare germany": "'germany'",
        "compare mine.toml --data-set fico": "--data-set",
        "results german -o german.txt": ".html",
    }
    answered = in_a_fresh_interpreter(*asked, *(text.split() for text in wrong))
    for words, (code, there, output) in zip(asked, answered[: len(asked)], strict=True):
        assert (code, there) == (0 if words[1] == "--help" else 2, []), words
        assert "Usage: " in output
    for (words, why), (code, there, output) in zip(
        wrong.items(), answered[len(asked) :], strict=True
    ):
        assert (code, there) == (2 if why else 0, []), words
        assert why in output, words


def test_listed_experiment_names_match_the_experiments():
    assert tuple(EXPERIMENTS) == PAPER_EXPERIMENTS
    for name in PAPER_EXPERIMENTS:
        check_paper_experiment(name)
    with pytest.raises(InputError) as at_once:
        check_paper_experiment("germany")
    with pytest.raises(InputError, match=re.escape(str(at_once.value))):
        paper_experiment("germany")


def test_help_matches_the_experiments():
    output = {name: call(name, "--help").stdout for name in ("reproduce", "compare")}
    assert "german, adult-race or adult-gender." in output["reproduce"]
    assert "german, adult-race, adult-gender, or a TOML file of a world." in output["compare"]
    (often,) = {experiment.repetitions for experiment in EXPERIMENTS.values()}
    assert f"as the experiment says ({often})" in output["reproduce"]


@pytest.mark.parametrize("words", ["--help", "methods", "compare --help"])
def test_letters_outside_the_encoding_are_escaped(monkeypatch, words):
    monkeypatch.setenv("PYTHONIOENCODING", "cp1252")
    ran = process(*words.split())
    assert (ran.returncode, ran.stderr) == (0, "")
    assert r"\u03b1" in ran.stdout  # α


# Theory


def test_theory_prints_what_the_theorems_require():
    setting = Setting(20, delta=0.05, epsilon=0.01)
    words = ("theory", "--cells", 20, "--people", 1000, "--delta", 0.05, "--epsilon", 0.01)
    assert call(*words).stdout.splitlines() == theory_lines(setting, 1000)
    first, *_ = done(*words)["theorems"]
    assert first["people"] == feasibility(setting).people
    refused_with("cells.* 0", "theory", "--cells", 0)
