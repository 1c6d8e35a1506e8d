"""What a command imports before it has anything to do: no more than it takes to answer."""

import inspect
import json
import subprocess
import sys

import pytest

from secondlook.cli.app import _COMMANDS

SLOW = {"numpy", "scipy", "sklearn", "pandas", "pyarrow", "matplotlib", "sqlalchemy", "joblib"}

# Runs commands one after the other in one process; after each, says its exit code and what of the
# slow packages is there by then.
FRESH = """
import contextlib, io, json, sys

from secondlook.entry import main

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
    names = [one.name for one in _COMMANDS if one.place.startswith("programs.")]
    assert len(names) >= 11
    answered = in_a_fresh_interpreter(*([name, "--nope"] for name in names))
    for name, (code, there, words) in zip(names, answered, strict=True):
        assert (code, set(there) - {"numpy"}) == (2, set()), name
        assert "No such option" in words


def test_a_command_that_needs_what_is_not_installed_says_so_and_others_go_on():
    commands = (["--help"], ["decide", "--help"], ["version"])
    before, wanting, after = in_a_fresh_interpreter(*commands, missing=["numpy"])
    assert (before[0], after[0]) == (0, 0)
    assert wanting[0] == 2
    assert wanting[2] == (
        "secondlook: decide needs numpy, which is not installed; "
        "`pip install 'secondlook[experiments]'` installs it.\n"
    )


@pytest.mark.parametrize("command", _COMMANDS, ids=lambda one: one.name)
def test_the_line_of_a_command_is_what_it_says_of_itself(command):
    assert inspect.getdoc(command.function()).partition("\n\n")[0] == command.line
