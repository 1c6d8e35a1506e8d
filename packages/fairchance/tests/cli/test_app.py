"""The command line as a whole: help, exit codes, errors and imports."""

from __future__ import annotations

import inspect
import json
import re
import sys
from importlib.metadata import EntryPoint, version
from itertools import chain, pairwise
from typing import get_type_hints
from unittest.mock import Mock

import pytest

from cli.calls import in_a_fresh_interpreter, process
from cli.lender_files import call, done
from fairchance.cli.app import COMMANDS, DECIDING, LAB, OTHERS, _commands, app, main
from fairchance.cli.options import EXIT_CODES, LIGHT_CODES, UNEXPECTED, VERIFICATION_FAILED
from fairchance.errors import InputError, VersionsError

COMMAND_NAMES = sorted(
    command.name or command.callback.__name__ for command in app.registered_commands
)


@pytest.fixture(autouse=True)
def bare_machine(tmp_path, monkeypatch):
    """Use an empty folder and a wide terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")


# Help


@pytest.mark.parametrize("command", COMMAND_NAMES)
def test_help_ends_with_an_example(command):
    result = call(command, "--help")
    assert result.exit_code == 0
    last = [line for line in result.stdout.splitlines() if line.strip()][-1]
    assert last.strip().startswith(f"Example: fairchance {command}")


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("command", COMMAND_NAMES)
def test_help_fills_its_lines(monkeypatch, command, width):
    """A line ends early only if the next word would not have fitted, or if its sentence ends."""
    monkeypatch.setenv("COLUMNS", str(width))
    prose, _, _ = call(command, "--help").stdout.partition("╭")
    _, _, prose = prose.partition("Usage")
    for line, after in pairwise(prose.splitlines()[1:]):
        if line.strip() and after.strip() and not line.rstrip().endswith("."):
            assert len(line.rstrip()) + len(after.split()[0]) + 2 > width, line


@pytest.mark.parametrize("command", COMMAND_NAMES)
def test_help_keeps_words_in_brackets(command):
    function = COMMANDS[command].load()
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
    _, _, example = inspect.getdoc(COMMANDS[command].load()).partition("\n\nExample: ")
    known = re.findall(r"--[a-z-]+", call(command, "--help").stdout)
    assert set(re.findall(r"--[a-z-]+", example)) <= set(known)


def test_main_help_ends_with_an_example():
    result = call("--help")
    assert result.exit_code == 0
    last = [line for line in result.stdout.splitlines() if line.strip()][-1]
    assert last.strip().startswith("Example: fairchance ")
    for command in COMMAND_NAMES:
        assert command in result.stdout


def test_main_help_lists_all_exit_codes():
    said = " ".join(call("--help").stdout.split())
    for code, meaning in EXIT_CODES.items():
        assert f"{code} {meaning}" in said
    assert {VERIFICATION_FAILED, UNEXPECTED, *LIGHT_CODES.values()} <= {*EXIT_CODES}


def test_every_kind_of_error_has_an_exit_code(monkeypatch):
    def kinds(of):
        return [of, *chain.from_iterable(map(kinds, of.__subclasses__()))]

    for kind in kinds(InputError):
        error = kind("1", "2") if kind is VersionsError else kind("no.")
        monkeypatch.setattr("fairchance.simulate.plan.Plan", Mock(side_effect=error))
        expected = {"unavailable": 3, "unverified": 4, "paused": 5}.get(kind.code, 2)
        assert call("plan").exit_code == expected


def test_version():
    assert call("version").stdout.strip() == version("fairchance")
    assert call("--version").stdout.strip() == version("fairchance")
    assert done("version")["version"] == version("fairchance")


def test_unknown_command_is_refused():
    assert call("decid").exit_code == 2
    assert call("plan", "--repetitions", "many").exit_code == 2


@pytest.mark.parametrize("name", LAB)
def test_command_of_the_lab_names_the_package_to_install(monkeypatch, name):
    monkeypatch.delitem(COMMANDS, name, raising=False)
    result = call(name)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "`pip install fairchance-lab`" in result.stderr


# Real processes


def test_exit_codes_and_streams_of_real_processes():
    ran = process("version")
    assert (ran.returncode, ran.stdout.strip()) == (0, version("fairchance"))
    assert ran.stderr == ""
    ran = process("plan", "--delay", "soon", "--json")
    assert ran.returncode == 2
    assert json.loads(ran.stdout)["error"]["option"] == "--delay"
    assert ran.stderr.startswith("fairchance: ")
    assert "Traceback" not in ran.stderr


def test_missing_extra_prints_how_to_install_it():
    code = "import sys; sys.modules['typer'] = None; from fairchance.__main__ import main; main()"
    ran = process(code=code)
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert "the command line needs typer" in ran.stderr
    assert "pip install 'fairchance[production]'" in ran.stderr


def test_help_version_and_unknown_commands_import_nothing_slow():
    commands = (["--help"], [], ["version"], ["decid"], ["--nope"])
    *answered, control = in_a_fresh_interpreter(*commands, ["status", "sqlite:///no.db"])
    assert [(code, there) for code, there, _ in answered] == [
        (code, []) for code in (0, 2, 0, 2, 2)
    ]
    assert "Decide real batches" in answered[0][2]
    assert "Did you mean 'decide'?" in answered[3][2]
    assert control[0] == 2
    assert "sqlalchemy" in control[1]  # a command that needs it, so what looks for it finds it


def test_wrong_options_of_ledger_commands_import_at_most_numpy():
    names = [
        command.name
        for command in COMMANDS.values()
        if command.panel == DECIDING and command.name != "report"
    ]
    assert len(names) >= 11
    answered = in_a_fresh_interpreter(*([name, "--nope"] for name in names))
    for name, (code, there, words) in zip(names, answered, strict=True):
        assert (code, set(there) - {"numpy"}) == (2, set()), name
        assert "No such option" in words


def test_help_and_errors_of_plans_audits_and_reports_import_nothing_slow():
    names = ["report", "evaluate", "audit", "demo", "plan", "version"]
    asked = [[name, word] for name in names for word in ("--help", "--nope")]
    wrong = {
        "plan --groups A,B": "'A,B'",
        "plan --delay soon": "'soon'",
        "plan --history past.csv": "--outcome",
        "report --late soon": "'--late'",
        "report -o lender.txt": ".html",
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


def test_missing_package_stops_only_commands_that_need_it():
    commands = (["--help"], ["decide", "--help"], ["version"])
    before, wanting, after = in_a_fresh_interpreter(*commands, missing=["numpy"])
    assert (before[0], after[0]) == (0, 0)
    assert wanting[0] == 2
    assert wanting[2] == (
        "fairchance: decide needs numpy, which is not installed; "
        "`pip install 'fairchance[production]'` (in a checkout: "
        "`pip install 'packages/fairchance[production]'`) installs it.\n"
    )


@pytest.mark.parametrize(
    ("missing", "extra"), [("altair.vegalite", "production"), ("psycopg", "postgres")]
)
@pytest.mark.parametrize("explained", [False, True])
def test_package_missing_during_a_command_is_reported(monkeypatch, missing, extra, explained):
    """A message of the library names the extra that a function needs; the command's is enough."""

    def run(*_, **__):
        error = ModuleNotFoundError(name=missing)
        if explained:
            raise InputError("charts need altair") from error
        raise error

    monkeypatch.setattr("fairchance.simulate.plan.Plan", run)
    result = call("plan", "--json")
    sentence = (
        f"this command needs {missing.partition('.')[0]}, which is not installed; "
        f"`pip install 'fairchance[{extra}]'` (in a checkout: "
        f"`pip install 'packages/fairchance[{extra}]'`) installs it."
    )
    assert result.exit_code == 2
    assert result.stderr == f"fairchance: {sentence}\n"
    error = {"code": "not_installed", "option": None, "message": sentence}
    assert json.loads(result.stdout) == {"error": error}


@pytest.mark.parametrize("words", [("show",), ("decide", "a.csv"), ("hold", "--reason", "x")])
def test_a_ledger_in_the_place_of_an_id_or_a_file_says_where_it_belongs(words):
    name, *rest = words
    for url in ("sqlite:///x.db", "postgresql+psycopg://me:secret@host/x"):
        error = done(name, url, *rest, code=2)["error"]
        assert error["option"] == "--ledger"
        assert "FAIRCHANCE_LEDGER" in error["message"]
        assert "secret" not in error["message"]


@pytest.mark.parametrize(
    ("error", "code", "value"),
    [
        (ZeroDivisionError("by\x1b[2J\nzero"), "bug", r"ZeroDivisionError: by\x1b[2J zero)"),
        (RecursionError("deep"), "bug", "RecursionError: deep"),
        (KeyError("x"), "bug", "KeyError: 'x'"),
        (ModuleNotFoundError("No module named 'theirs'", name="theirs"), "bug", "'theirs'"),
        (MemoryError(), "memory", ""),
        (OSError(28, "No space left on device", "x.db"), "system", "device: 'x.db'"),
    ],
)
def test_an_unexpected_error_is_one_sentence_and_exit_code_70(monkeypatch, error, code, value):
    def run(*_, **__):
        raise error

    monkeypatch.setattr("fairchance.simulate.plan.Plan", run)
    result = call("plan")
    assert result.exit_code == 70
    (line,) = result.stderr.splitlines()
    assert value in line
    assert done("plan", code=70)["error"]["code"] == code
    monkeypatch.setenv("FAIRCHANCE_TRACEBACK", "1")
    assert "test_app.py" in call("plan").stderr


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_an_unexpected_error_outside_a_command_is_one_sentence_too(monkeypatch, capsys, options):
    def fails(*_, **__):
        raise ZeroDivisionError("in a command")

    monkeypatch.setattr("fairchance.cli.commands.version.print_lines", fails)
    monkeypatch.setattr("fairchance.cli.commands.version.print_json", fails)
    monkeypatch.setattr(sys, "argv", ["fairchance", "version", *options])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 70
    shown = capsys.readouterr()
    assert "ZeroDivisionError: in a command" in shown.err
    assert len(shown.err.splitlines()) == 1
    assert not options or json.loads(shown.out)["error"]["code"] == "bug"


@pytest.mark.parametrize("command", COMMANDS.values(), ids=lambda value: value.name)
def test_help_is_the_docstring_with_its_example(command):
    text, _, example = inspect.getdoc(command.load()).partition("\n\nExample: ")
    assert text.partition("\n")[0] == command.summary()
    assert example.startswith(f"fairchance {command.name}")


def test_commands_of_other_packages_join_and_cannot_break_or_replace_ours(monkeypatch, tmp_path):
    file = tmp_path / "other_commands.py"
    file.write_text('def run(): pass\n\n\ndef other():\n    """Not of run."""\n')
    monkeypatch.syspath_prepend(tmp_path)
    found = [
        EntryPoint(name, place, "fairchance.commands")
        for name, place in (
            ("two-words", "other_commands:run"),
            ("half-removed", "no_such_package.commands:run"),
            ("nothing", "other_commands:nothing"),
            ("decide", "other_commands:run"),
        )
    ]
    monkeypatch.setattr("fairchance.cli.app.entry_points", lambda group: found)
    made = _commands()
    assert [made[one.name].summary() for one in found[:3]] == ["", "", ""]
    assert (made["two-words"].panel, made["two-words"].load()()) == (OTHERS, None)
    assert made["decide"].load().__module__ == "fairchance.cli.commands.decide"
