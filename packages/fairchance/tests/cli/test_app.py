"""The command line as a whole: help, exit codes, errors and imports."""

from __future__ import annotations

import inspect
import json
import os
import re
import socket
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import get_type_hints

import pytest
from typer.testing import CliRunner

from experiments.test_runner import SMALL
from experiments.test_world_file import write_loans
from fairchance.cli.app import COMMANDS, DECIDING, app, main
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
from sentences import one_sentence

COMMAND_NAMES = sorted(
    command.name or command.callback.__name__ for command in app.registered_commands
)
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


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def print_json(*arguments, code=0):
    """Run a command with --json and return the parsed output."""
    result = call(*arguments, "--json")
    assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
    return json.loads(result.stdout)


def refused(words, *arguments, code=2):
    """Check that a command is refused with a single sentence, also in JSON."""
    result = call(*arguments)
    assert result.exit_code == code, (result.stderr, result.exception)
    assert result.stdout == ""
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("fairchance: ")]
    assert result.stderr.rstrip().endswith(line)
    sentence = one_sentence(line.removeprefix("fairchance: "))
    assert re.search(words, sentence), sentence
    assert print_json(*arguments, code=code) == {"error": sentence, "code": code}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Return the folder of a small complete run."""
    folder = tmp_path_factory.mktemp("small")
    run_experiment(replace(SMALL, vary={}, repetitions=2), Lender(), Run(folder, 1))
    return folder


# Help


def test_expected_commands_exist():
    assert {"reproduce", "simulate", "datasets", "report", "switches", "version"} <= set(
        COMMAND_NAMES
    )


@pytest.mark.parametrize("command", COMMAND_NAMES)
def test_help_ends_with_an_example(command):
    result = call(command, "--help")
    assert result.exit_code == 0
    last = [line for line in result.stdout.splitlines() if line.strip()][-1]
    assert last.strip().startswith(f"Example: fairchance {command}")


@pytest.mark.parametrize("command", COMMAND_NAMES)
def test_help_keeps_words_in_brackets(command):
    (listed,) = [entry for entry in COMMANDS if entry.name == command]
    function = listed.load()
    given = [
        p.__metadata__[0].help
        for p in get_type_hints(function, include_extras=True).values()
        if hasattr(p, "__metadata__")
    ]
    shown = call(command, "--help").stdout
    for word in re.findall(r"\[[^]]+\]", " ".join([inspect.getdoc(function), *given])):
        assert word in shown


@pytest.mark.parametrize("command", COMMAND_NAMES)
def test_example_uses_options_of_its_command(command):
    (listed,) = [entry for entry in COMMANDS if entry.name == command]
    _, _, example = inspect.getdoc(listed.load()).partition("\n\nExample: ")
    known = re.findall(r"--[a-z-]+", call(command, "--help").stdout)
    assert set(re.findall(r"--[a-z-]+", example)) <= set(known)


def test_main_help_ends_with_an_example():
    result = call("--help")
    assert result.exit_code == 0
    last = [line for line in result.stdout.splitlines() if line.strip()][-1]
    assert last.strip().startswith("Example: fairchance ")
    for command in COMMAND_NAMES:
        assert command in result.stdout


# Lists


def test_version():
    assert call("version").stdout.strip() == version("fairchance")
    assert call("--version").stdout.strip() == version("fairchance")
    assert print_json("version") == {"version": version("fairchance")}


def test_switches_are_listed():
    assert set(print_json("switches")) == set(DEVIATIONS)
    words = call("switches").stdout
    assert all(name in words for name in SWITCHES)
    assert count_deviations() in " ".join(words.split())


def test_methods_are_listed():
    names = print_json("methods")
    assert {"plain", "fair-clf", "opt-offline"} <= set(names)
    assert all(name in call("methods").stdout for name in names)
    values = print_json("methods", "kilbertus-icml")
    assert values["cost"] == {"value": 0.6, "source": "the paper implemented here"}
    words = call("methods", "kilbertus-icml").stdout
    assert all(name in words for name in values)
    refused = call("methods", "plain")
    assert refused.exit_code == 2
    assert "'plain'" in refused.stderr


def test_data_sets_are_listed_with_their_location(monkeypatch):
    rows = {row["name"]: row for row in print_json("datasets")}
    assert set(rows) == {*CATALOGUE, "lender"}
    assert rows["german"]["state"] == "bundled"
    assert rows["adult-ca-2019"]["state"] == "download"
    assert rows["acs-ca-2018-sample"]["state"] == "absent"
    assert rows["adult-ca-2019"]["groups"] == ["race", "gender"]
    assert (rows["compas"]["gain"], rows["compas"]["alpha"]) == (1, 0.3)
    assert all(row["utility"] for row in rows.values())
    monkeypatch.setenv("COLUMNS", "80")
    words = call("datasets").stdout
    for row in rows.values():  # never cut short
        assert row["name"] in words
        assert row["where"] in words
    assert "acs:CA:2018" in words
    refused("data must name an existing folder", "datasets", "--data", "nowhere")


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

    written = print_json("report", "german", "--out", "again.html")
    assert "again.html" in str(written)
    assert (tmp_path / "again.html").read_text() == page

    monkeypatch.setattr("fairchance_lab.runs.write_report", None)  # results are only printed again
    actual = print_json(*command)
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
    for place in ("cli.runs", "cli.pages.experiment"):
        name = f"fairchance.{place}.write_report"
        monkeypatch.setattr(name, lambda *given: calls.append(given))
    return calls


def test_simulate_runs_a_file(tmp_path, undrawn):
    (tmp_path / "mine.toml").write_text(WORLD)
    result = print_json("simulate", "mine.toml", "--repetitions", 1, "--seed", 5, "--jobs", 1)
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
    for repetitions, more, drawn in ((1, ["--csv"], 1), (2, ["--csv"], 2), (2, [], 3)):
        page.touch()  # only new results are drawn unless the report is asked for
        again = ("simulate", "mine.toml", "--repetitions", repetitions, "--seed", 5, "--jobs", 1)
        assert call(*again, *more).exit_code == 0
        assert len(undrawn) == drawn


def test_tables_alone_write_no_page(small, undrawn):
    result = call("report", small, "--tables", "made")
    assert (result.stdout, undrawn) == (f"Tables: {Path('made').resolve()}\n", [])
    assert [path.name for path in Path().iterdir()] == ["made"]
    assert len(list(Path("made").glob("*.csv"))) > 1
    call("report", small, "--figures", "drawn")
    ((_, page, figures),) = undrawn
    assert (page, figures) == (None, Path("drawn"))


def test_report_of_two_runs_with_figures(small, tmp_path, undrawn):
    write_results(read_results(small), tmp_path / "again.parquet")
    result = call("report", small, "again.parquet", "--out", "both.html", "--figures", "drawn")
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
    refused("the run in that folder is not complete: start it again", "report", "half")
    refused("no results at nowhere; name a file or folder", "report", "nowhere")
    assert not (tmp_path / "report.html").exists()


# Errors


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("no experiment 'germany'; known are german", "germany"),
        ("at least one method", "german --methods ,"),
        (r"got \['plain'\]", "german --methods plain,plain"),
        ("no switch Z9; known are A1", "german --switch Z9"),
        ("no switch Z9; known are A1", "german --as-released --without Z9"),
        ("repetitions must be 1 or more, got 0", "german --repetitions 0"),
        ("jobs must be 1 or more, or -1", "german --methods plain --jobs 0"),
        ("leave the data out", "german --data-set fico"),
        ("did you mean 'adult-ca-2019'", "adult-race --data-set adult-ca-2018"),
        ("must be one of 'sex', got 'race'", "adult-race --data-set german"),
        ("acs_ca_2018_adults_40pct.parquet", "adult-race --data-set acs-ca-2018-sample"),
        ("data must name an existing folder", "adult-race --data nowhere"),
        ("no method 'plian'; known are plain", "german --methods plian --repetitions 1 --jobs 1"),
        ("joblib knows no backend 'lokki'", "german --methods plain --backend lokki"),
        ("goes with the backend dask", "german --methods plain --scheduler tcp://localhost:1"),
    ],
)
def test_invalid_reproduce_arguments_are_refused(words, arguments):
    refused(words, "reproduce", *arguments.split())


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("cannot be read as TOML", "[world"),
        ("world is missing", 'methods = ["plain"]'),
        (r"in mine.toml: \[world\] has no field 'n_bach'", WORLD + "n_bach = 3"),
        ("a past rule must be one of", WORLD + 'past = [{rule = "luck"}]'),
        ("has no column 'sum'", WORLD.replace("lender", "loans.csv") + "columns = {CSV}"),
        ("name its outcome and group columns", WORLD.replace("lender", "loans.csv")),
    ],
)
def test_invalid_world_is_refused(words, text, tmp_path):
    write_loans(tmp_path / "loans.csv")
    own = '{outcome = "paid", good = "yes", group = "town", features = ["sum"]}'
    (tmp_path / "mine.toml").write_text(text.replace("{CSV}", own))
    refused(words, "simulate", "mine.toml", "--jobs", "1")


def test_missing_world_file():
    refused("there is no file no.toml; name a TOML file", "simulate", "no.toml")
    for command in ("reproduce", "compare", "simulate"):
        refused(re.escape(SHORT_WORLD), command, "taiwan")


def test_the_short_world_of_messages_is_one(tmp_path):
    path = tmp_path / "taiwan.toml"
    path.write_text("\n".join(SHORT_WORLD.removeprefix("the lines ").split(" and ")))
    assert read_world_file(path).world.data in CATALOGUE


def test_folder_of_another_run_is_refused(small, tmp_path):
    (tmp_path / "mine.toml").write_text(WORLD)
    before = (small / "results.parquet").read_bytes()
    refused("holds results of another run", "simulate", "mine.toml", "--out", small, "--jobs", 1)
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
            refused(f"cannot reach {closed}.*FAIRCHANCE_DATA", *command, code=3)


def test_interrupted_run_prints_how_to_resume(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    (tmp_path / "mine.toml").write_text(WORLD)
    monkeypatch.setattr("fairchance_lab.runs.run_experiment", interrupt)
    result = call("simulate", "mine.toml")
    assert result.exit_code == 130
    assert "the same command continues from here" in result.stderr


def test_unknown_command_is_refused():
    assert call("reproduse").exit_code == 2
    assert call("reproduce", "german", "--repetitions", "many").exit_code == 2


# Real processes


def process(*arguments, code=None):
    command = [sys.executable, "-m", "fairchance"] if code is None else [sys.executable, "-c", code]
    return subprocess.run(
        [*command, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )


def test_exit_codes_and_streams_of_real_processes():
    ran = process("version")
    assert (ran.returncode, ran.stdout.strip()) == (0, version("fairchance"))
    assert ran.stderr == ""
    ran = process("reproduce", "germany", "--json")
    assert ran.returncode == 2
    assert json.loads(ran.stdout)["code"] == 2
    assert ran.stderr.startswith("fairchance: there is no experiment 'germany'")
    assert "Traceback" not in ran.stderr


def test_missing_extra_prints_how_to_install_it():
    code = "import sys; sys.modules['typer'] = None; from fairchance.__main__ import main; main()"
    ran = process(code=code)
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert "the command line needs typer" in ran.stderr
    assert "pip install 'fairchance[experiments]'" in ran.stderr


SLOW = {"numpy", "scipy", "sklearn", "pandas", "pyarrow", "altair", "sqlalchemy", "joblib"}

# Runs commands in a single process; after each, prints its exit code and the slow packages that
# are imported by then.
FRESH = """
import contextlib, io, json, sys

from fairchance.__main__ import main

slow, missing, commands = json.loads(sys.argv[1])
sys.modules |= dict.fromkeys(missing)
answers = []
for words in commands:
    sys.argv = ["fairchance", *words]
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        try:
            main()
        except SystemExit as end:
            code = end.code
    there = [name for name in slow if sys.modules.get(name)]
    answers.append((code, there, output.getvalue()))
print(json.dumps(answers))
"""


def in_a_fresh_interpreter(*commands, missing=()):
    """Return each command's exit code, the slow packages imported so far, and its output."""
    request = json.dumps([sorted(SLOW), missing, commands])
    done = subprocess.run(
        [sys.executable, "-c", FRESH, request], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_help_version_and_unknown_commands_import_nothing_slow():
    commands = (["--help"], [], ["version"], ["decid"], ["--nope"], ["switches"])
    *answered, control = in_a_fresh_interpreter(*commands, ["datasets"])
    assert [(code, there) for code, there, _ in answered] == [
        (code, []) for code in (0, 2, 0, 2, 2, 0)
    ]
    assert "Decide real batches" in answered[0][2]
    assert "Did you mean 'decide'?" in answered[3][2]
    assert control[0] == 0
    assert "numpy" in control[1]  # a command that needs it, so what looks for it finds it


def test_wrong_options_of_ledger_commands_import_at_most_numpy():
    names = [
        command.name
        for command in COMMANDS
        if command.panel == DECIDING and command.name != "report"
    ]
    assert len(names) >= 11
    answered = in_a_fresh_interpreter(*([name, "--nope"] for name in names))
    for name, (code, there, words) in zip(names, answered, strict=True):
        assert (code, set(there) - {"numpy"}) == (2, set()), name
        assert "No such option" in words


def test_help_and_errors_of_experiments_and_reports_import_nothing_slow():
    names = [
        command.name
        for command in COMMANDS
        if command.panel != DECIDING or command.name == "report"
    ]
    assert {"reproduce", "simulate", "plan", "compare", "report"} <= set(names)
    asked = [[name, word] for name in names for word in ("--help", "--nope")]
    wrong = {
        "reproduce": "Missing argument",
        "simulate": "Missing argument",
        "reproduce germany": "there is no experiment 'germany'",
        "reproduce german --switch Z9": "there is no switch Z9",
        "reproduce german --without A9": "that --as-released switches on",
        "reproduce german --repetitions many": "Invalid value for '--repetitions'",
        "compare germany": "there is no experiment 'germany'",
        "compare mine.toml --data-set fico": "names its own data",
        "plan --groups A,B": "groups must look like A=0.8,B=0.2, got 'A,B'",
        "plan --delay soon": "--delay counts rounds and must look like 3-9",
        "plan --history past.csv": "a file needs --outcome and --group",
        "report --late soon": "Invalid value for '--late'",
        "report a.parquet --ledger sqlite:///b.db": "shows results or a ledger",
    }
    answered = in_a_fresh_interpreter(*asked, *(text.split() for text in wrong))
    for words, (code, there, output) in zip(asked, answered[: len(asked)], strict=True):
        assert (code, there) == (0 if words[1] == "--help" else 2, []), words
        assert "Usage: " in output
    for (words, why), (code, there, output) in zip(
        wrong.items(), answered[len(asked) :], strict=True
    ):
        assert (code, there) == (2, []), words
        assert why in output, words


def test_listed_experiment_names_match_the_experiments():
    assert tuple(EXPERIMENTS) == PAPER_EXPERIMENTS
    for name in PAPER_EXPERIMENTS:
        check_paper_experiment(name)
    with pytest.raises(InputError) as at_once:
        check_paper_experiment("germany")
    with pytest.raises(InputError, match=re.escape(str(at_once.value))):
        paper_experiment("germany")


def test_help_matches_the_experiments(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")
    result = {name: CliRunner().invoke(app, [name, "--help"]) for name in ("reproduce", "compare")}
    output = {name: value.stdout for name, value in result.items()}
    assert "german, adult-race or adult-gender." in output["reproduce"]
    assert "german, adult-race, adult-gender, or a TOML file of a world." in output["compare"]
    (often,) = {experiment.repetitions for experiment in EXPERIMENTS.values()}
    assert f"as the experiment says ({often})" in output["reproduce"]


def test_missing_package_stops_only_commands_that_need_it():
    commands = (["--help"], ["decide", "--help"], ["version"])
    before, wanting, after = in_a_fresh_interpreter(*commands, missing=["numpy"])
    assert (before[0], after[0]) == (0, 0)
    assert wanting[0] == 2
    assert wanting[2] == (
        "fairchance: decide needs numpy, which is not installed; "
        "`pip install 'fairchance[experiments]'` (in a checkout: "
        "`pip install '.[experiments]'`) installs it.\n"
    )


@pytest.mark.parametrize(
    ("missing", "extra"), [("altair.vegalite", "experiments"), ("psycopg", "postgres")]
)
def test_package_missing_during_a_command_is_reported(monkeypatch, missing, extra):
    def run(*_, **__):
        raise ModuleNotFoundError(name=missing)

    monkeypatch.setattr("fairchance_lab.runs.run_and_report", run)
    result = CliRunner().invoke(app, ["reproduce", "german", "--json"])
    sentence = (
        f"this command needs {missing.partition('.')[0]}, which is not installed; "
        f"`pip install 'fairchance[{extra}]'` (in a checkout: `pip install '.[{extra}]'`) "
        f"installs it."
    )
    assert result.exit_code == 2
    assert result.stderr == f"fairchance: {sentence}\n"
    assert json.loads(result.stdout) == {"error": sentence, "code": 2}


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ZeroDivisionError("by\x1b[2J\nzero"), r"bug .*ZeroDivisionError: by\\x1b\[2J zero\)"),
        (RecursionError("deep"), "bug .*RecursionError: deep"),
        (KeyError("x"), "bug .*KeyError: 'x'"),
        (ModuleNotFoundError("No module named 'theirs'", name="theirs"), "bug .*'theirs'"),
        (MemoryError(), "fewer rows"),
        (OSError(28, "No space left on device", "x.db"), "No space left on device: 'x.db'"),
    ],
)
def test_an_unexpected_error_is_one_sentence_and_exit_code_70(monkeypatch, error, words):
    def run(*_, **__):
        raise error

    monkeypatch.setattr("fairchance_lab.runs.run_and_report", run)
    result = call("reproduce", "german")
    assert result.exit_code == 70
    (line,) = result.stderr.splitlines()
    assert re.search(words, line)
    assert "nothing half-done is recorded" in line
    answer = print_json("reproduce", "german", code=70)
    assert answer["code"] == 70
    monkeypatch.setenv("FAIRCHANCE_TRACEBACK", "1")
    assert "test_app.py" in call("reproduce", "german").stderr


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_an_unexpected_error_outside_a_command_is_one_sentence_too(monkeypatch, capsys, options):
    def fails(*_, **__):
        raise ZeroDivisionError("in a list")

    monkeypatch.setattr("fairchance.cli.commands.listing._table", fails)
    monkeypatch.setattr("fairchance.cli.commands.listing.print_json", fails)
    monkeypatch.setattr(sys, "argv", ["fairchance", "methods", *options])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 70
    shown = capsys.readouterr()
    assert "ZeroDivisionError: in a list" in shown.err
    assert len(shown.err.splitlines()) == 1
    assert not options or json.loads(shown.out)["code"] == 70


@pytest.mark.parametrize("command", COMMANDS, ids=lambda value: value.name)
def test_help_is_the_docstring_with_its_example(command):
    text, _, example = inspect.getdoc(command.load()).partition("\n\nExample: ")
    assert text.partition("\n")[0] == command.summary()
    assert example.startswith(f"fairchance {command.name}")
