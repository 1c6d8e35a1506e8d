"""The ``fairchance`` command: finds the module of a command and runs it.

Its help lists all exit codes (``EXIT_CODES`` in ``options``). After an interruption the same
command continues a run where it stopped.

``fairchance --help`` must answer at once, so no command's module is imported for it: the line shown
for a command is the first line of its docstring, read from the source file. A command's own help
ends with the example that its docstring ends with. Other packages add commands by entry points of
the group ``fairchance.commands``, each a function; fairchance-lab does.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.markup import escape
from typer.core import TyperGroup
from typer.main import get_command

from fairchance.cli.options import EXIT_CODES, errors, not_installed_message
from fairchance.cli.output import print_error, standard_streams
from fairchance.errors import InputError, to_install_lab

__all__ = ["COMMANDS", "LAB", "app", "main"]

DECIDING = "Decide real batches, on the record"
AUDIT = "Audit what is on record"
PLANNING = "Before you start"
EXPERIMENTS = "Experiments (fairchance-lab)"
OTHERS = "Commands of other packages"
_GROUP = "fairchance.commands"  # of entry points, each a function
LAB = (
    "reproduce",
    "simulate",
    "compare",
    "results",
    "datasets",
    "methods",
    "switches",
    "theory",
)


class Command(NamedTuple):
    """A command: its name, the module and the function that run it, and its panel in the help."""

    name: str
    module: str
    function: str
    panel: str | None

    def load(self) -> Callable[..., Any]:
        """Import the command's module and return its function."""
        function: Callable[..., Any] = getattr(import_module(self.module), self.function)
        return function

    def summary(self) -> str:
        """Return the first line of the function's docstring, read from the source file.

        It is empty if there is none: the help of all commands must not fail with one of them.
        """
        try:
            found = find_spec(self.module)
        except ModuleNotFoundError:
            found = None
        if found is None or found.origin is None:
            return ""
        for node in ast.parse(Path(found.origin).read_bytes()).body:
            if isinstance(node, ast.FunctionDef) and node.name == self.function:
                return (ast.get_docstring(node) or "").partition("\n")[0]
        return ""


# In the order of the help.
_OWN = (
    ("init", "init", DECIDING),
    ("decide", "decide", DECIDING),
    ("observe", "observe", DECIDING),
    ("round", "rounds", DECIDING),
    ("import", "imports", DECIDING),
    ("status", "status", DECIDING),
    ("show", "show", DECIDING),
    ("report", "report", DECIDING),
    ("verify", "verify", DECIDING),
    ("export", "export", DECIDING),
    ("move", "move", DECIDING),
    ("serve", "serve", DECIDING),
    ("keys", "keys", DECIDING),
    ("ramp", "control", DECIDING),
    ("pause", "control", DECIDING),
    ("resume", "control", DECIDING),
    ("handover", "control", DECIDING),
    ("override", "people", DECIDING),
    ("withdraw", "people", DECIDING),
    ("hold", "people", DECIDING),
    ("release", "people", DECIDING),
    ("erase", "people", DECIDING),
    ("evaluate", "evaluate", AUDIT),
    ("audit", "audit", AUDIT),
    ("demo", "demo", PLANNING),
    ("plan", "plan", PLANNING),
    ("version", "version", None),
)


def _function(name: str) -> str:
    """Return the name of a command's function, which cannot be a word of the language."""
    return f"{name}_" if iskeyword(name) else name


def _commands() -> dict[str, Command]:
    """Return our own commands, then those of other packages, which cannot replace ours."""
    known = {
        name: Command(name, f"fairchance.cli.commands.{module}", _function(name), panel)
        for name, module, panel in _OWN
    }
    for found in entry_points(group=_GROUP):
        panel = EXPERIMENTS if found.module.startswith("fairchance_lab.") else OTHERS
        known.setdefault(found.name, Command(found.name, found.module, found.attr, panel))
    return known


COMMANDS = _commands()


class _LazyGroup(TyperGroup):
    """A group of commands that imports the module of the command it is about to run."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in LAB and cmd_name not in COMMANDS:
            print_error(
                f"{cmd_name} is a command of fairchance-lab, which is not installed or of another "
                f"version; {to_install_lab()} installs it."
            )
            raise typer.Exit(2)
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, placeholder, rest = super().resolve_command(ctx, args)
        if name is None:
            return name, placeholder, rest
        command = _loaded(COMMANDS[name])
        _check_place(name, command, rest)
        return name, command, rest


def _check_place(name: str, command: Any, words: list[str]) -> None:
    """Raise if the ledger comes first, where the command has ids or files."""
    needs = any(one.name == "ledger" and one.required for one in command.params)
    if needs and words and re.match(r"(sqlite|postgresql)(\+\w+)?:", words[0]):
        with errors("--json" in words):  # the URL may have a password, so it is not shown
            raise InputError(
                f"{name} takes the ledger from {{option}} or from FAIRCHANCE_LEDGER, and got a URL "
                f"as its first argument; put {{option}} before it.",
                option="ledger",
            )


def _loaded(command: Command) -> Any:
    """Return a command that can run, with its own help."""
    try:
        function = command.load()
    except ModuleNotFoundError as error:
        print_error(not_installed_message(command.name, error))
        raise typer.Exit(2) from error
    text, _, example = escape(inspect.getdoc(function) or "").partition("\n\nExample: ")
    text = re.sub(r"(?<!\n)\n(?!\n)", " ", text)  # rich would keep the lines of the source
    single = typer.Typer(add_completion=False)
    single.command(command.name, help=text, epilog=f"Example: {example}")(function)
    made: Any = get_command(single)
    for parameter in made.params:
        parameter.help = escape(parameter.help or "")  # rich takes [word] for a style
    return made


app = typer.Typer(
    cls=_LazyGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Give every applicant a fair and known chance, and prove it.",
    epilog="Exit codes: "
    + "; ".join(f"{code} {meaning}" for code, meaning in EXIT_CODES.items())
    + ".\n\nExample: fairchance init --example -o program.toml",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        COMMANDS["version"].load()()
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Accept the options that come before a command."""


def _placeholder() -> None:
    """Take the place of a command in the main help, so that its module is not imported."""


for _command in COMMANDS.values():
    app.command(
        _command.name,
        help=_command.summary(),
        rich_help_panel=_command.panel,
    )(_placeholder)


def main() -> None:
    """Run the command line."""
    with errors("--json" in sys.argv), standard_streams():
        app()
