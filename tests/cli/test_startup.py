"""What a command imports before it has anything to do: no more than it takes to answer."""

import inspect
import json
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from secondlook.cli.app import COMMANDS, DECIDING, app
from secondlook.errors import InputError
from secondlook.lab.experiments import PAPER_EXPERIMENTS, check_paper_experiment
from secondlook.lab.experiments.paper import ALPHAS, EXPERIMENTS, paper_experiment

SLOW = {"numpy", "scipy", "sklearn", "pandas", "pyarrow", "matplotlib", "sqlalchemy", "joblib"}

# Runs commands one after the other in one process; after each, says its exit code and what of the
# slow packages is there by then.
FRESH = """
import contextlib, io, json, sys

from secondlook.__main__ import main

slow, missing, commands = json.loads(sys.argv[1])
sys.modules |= dict.fromkeys(missing)
found = []
for words in commands:
    sys.argv = ["secondlook", *words]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            main()
        except SystemExit as end:
            code = end.code
    there = [name for name in slow if sys.modules.get(name)]
    found.append((code, there, said.getvalue()))
print(json.dumps(found))
"""


def in_a_fresh_interpreter(*commands, missing=()):
    """Return each command's exit code, the slow packages there by then, and what it said."""
    told = json.dumps([sorted(SLOW), missing, commands])
    done = subprocess.run(
        [sys.executable, "-c", FRESH, told], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_help_version_and_what_is_no_command_import_nothing_slow():
    commands = (["--help"], [], ["version"], ["decid"], ["--nope"], ["switches"])
    *answered, control = in_a_fresh_interpreter(*commands, ["datasets"])
    assert [(code, there) for code, there, _ in answered] == [
        (code, []) for code in (0, 2, 0, 2, 2, 0)
    ]
    assert "Decide real batches" in answered[0][2]
    assert "Did you mean 'decide'?" in answered[3][2]
    assert control[0] == 0
    assert "numpy" in control[1]  # a command that needs it, so what looks for it finds it


def test_wrong_options_of_commands_on_a_ledger_import_numpy_at_most():
    names = [one.name for one in COMMANDS if one.panel == DECIDING and one.name != "report"]
    assert len(names) >= 11
    answered = in_a_fresh_interpreter(*([name, "--nope"] for name in names))
    for name, (code, there, words) in zip(names, answered, strict=True):
        assert (code, set(there) - {"numpy"}) == (2, set()), name
        assert "No such option" in words


def test_help_and_wrong_arguments_of_experiments_and_reports_import_nothing_slow():
    names = [one.name for one in COMMANDS if one.panel != DECIDING or one.name == "report"]
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
    for words, (code, there, said) in zip(asked, answered[: len(asked)], strict=True):
        assert (code, there) == (0 if words[1] == "--help" else 2, []), words
        assert "Usage: " in said
    for (words, why), (code, there, said) in zip(
        wrong.items(), answered[len(asked) :], strict=True
    ):
        assert (code, there) == (2, []), words
        assert why in said, words


def test_the_names_known_at_once_are_those_of_the_experiments():
    assert tuple(EXPERIMENTS) == PAPER_EXPERIMENTS
    for name in PAPER_EXPERIMENTS:
        check_paper_experiment(name)
    with pytest.raises(InputError) as at_once:
        check_paper_experiment("germany")
    with pytest.raises(InputError, match=re.escape(str(at_once.value))):
        paper_experiment("germany")


def test_help_says_what_the_experiments_say(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")
    told = {name: CliRunner().invoke(app, [name, "--help"]) for name in ("reproduce", "compare")}
    said = {name: one.stdout for name, one in told.items()}
    assert "german, adult-race or adult-gender." in said["reproduce"]
    assert "german, adult-race, adult-gender, or a TOML file of a world." in said["compare"]
    first, second, *_, last = ALPHAS
    assert f"At α = {first:.2f}, {second:.2f}, …, {last:.2f}." in said["reproduce"]
    (often,) = {one.repetitions for one in EXPERIMENTS.values()}
    assert f"as the experiment says ({often})" in said["reproduce"]


def test_a_command_that_needs_what_is_not_installed_says_so_and_others_go_on():
    commands = (["--help"], ["decide", "--help"], ["version"])
    before, wanting, after = in_a_fresh_interpreter(*commands, missing=["numpy"])
    assert (before[0], after[0]) == (0, 0)
    assert wanting[0] == 2
    assert wanting[2] == (
        "secondlook: decide needs numpy, which is not installed; "
        "`pip install 'secondlook[experiments]'` (in a checkout: "
        "`pip install '.[experiments]'`) installs it.\n"
    )


@pytest.mark.parametrize(
    ("missing", "extra"), [("matplotlib.figure", "experiments"), ("psycopg", "postgres")]
)
def test_what_is_missing_once_a_command_is_under_way_is_said_too(monkeypatch, missing, extra):
    def run(*_, **__):
        raise ModuleNotFoundError(name=missing)

    monkeypatch.setattr("secondlook.cli.runs.run_and_report", run)
    found = CliRunner().invoke(app, ["reproduce", "german", "--json"])
    sentence = (
        f"this command needs {missing.partition('.')[0]}, which is not installed; "
        f"`pip install 'secondlook[{extra}]'` (in a checkout: `pip install '.[{extra}]'`) "
        f"installs it."
    )
    assert found.exit_code == 2
    assert found.stderr == f"secondlook: {sentence}\n"
    assert json.loads(found.stdout) == {"error": sentence, "code": 2}


def test_a_module_of_somebody_elses_that_is_missing_is_not_explained_away(monkeypatch):
    def run(*_, **__):
        raise ModuleNotFoundError("No module named 'theirs'", name="theirs")

    monkeypatch.setattr("secondlook.cli.runs.run_and_report", run)
    found = CliRunner().invoke(app, ["reproduce", "german"])
    assert isinstance(found.exception, ModuleNotFoundError)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one.name)
def test_the_help_of_a_command_is_its_docstring_and_ends_with_its_example(command):
    text, _, example = inspect.getdoc(command.load()).partition("\n\nExample: ")
    assert text.partition("\n")[0] == command.summary()
    assert example.startswith(f"secondlook {command.name}")
