"""The ``fairchance`` command: finds the module of a command and runs it.

Exit codes: 0 done; 2 wrong input; 3 data could not be downloaded; 4 a ledger failed verification;
70 an unexpected error; 130 interrupted (the same command continues a run where it stopped).

``fairchance --help`` must answer at once, so no command's module is imported for it: the line shown
for a command is the first line of its docstring, read from the source file. A command's own help
ends with the example that its docstring ends with.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.markup import escape
from typer.core import TyperGroup
from typer.main import get_command

from fairchance.cli.options import errors, not_installed_message
from fairchance.cli.output import print_error, standard_streams

__all__ = ["COMMANDS", "app", "main"]

DECIDING = "Decide real batches, on the record"
AUDIT = "Audit what is on record"
EXPERIMENTS = "Experiments"


class Command(NamedTuple):
    """A command: its name, its module in ``cli/commands`` and its panel in the help.

    The function that runs it is called like the command.
    """

    name: str
    module: str
    panel: str | None

    def load(self) -> Callable[..., Any]:
        """Import the command's module and return its function."""
        module = import_module(f"fairchance.cli.commands.{self.module}")
        function: Callable[..., Any] = getattr(module, self.name)
        return function

    def summary(self) -> str:
        """Return the first line of the function's docstring, read from the source file."""
        source = (Path(__file__).parent / "commands" / f"{self.module}.py").read_text("utf-8")
        _, _, after = source.partition(f"\ndef {self.name}(")
        return after.split('"""')[1].partition("\n")[0]


# In the order of the help.
COMMANDS = (
    Command("init", "init", DECIDING),
    Command("decide", "decide", DECIDING),
    Command("observe", "observe", DECIDING),
    Command("status", "status", DECIDING),
    Command("report", "report", DECIDING),
    Command("verify", "verify", DECIDING),
    Command("export", "export", DECIDING),
    Command("override", "people", DECIDING),
    Command("withdraw", "people", DECIDING),
    Command("hold", "people", DECIDING),
    Command("release", "people", DECIDING),
    Command("erase", "people", DECIDING),
    Command("evaluate", "evaluate", AUDIT),
    Command("audit", "audit", AUDIT),
    Command("reproduce", "reproduce", EXPERIMENTS),
    Command("simulate", "simulate", EXPERIMENTS),
    Command("compare", "compare", EXPERIMENTS),
    Command("plan", "plan", EXPERIMENTS),
    Command("datasets", "listing", EXPERIMENTS),
    Command("methods", "listing", EXPERIMENTS),
    Command("switches", "listing", EXPERIMENTS),
    Command("version", "listing", None),
)
_BY_NAME = {command.name: command for command in COMMANDS}


class _LazyGroup(TyperGroup):
    """A group of commands that imports the module of the command it is about to run."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, placeholder, rest = super().resolve_command(ctx, args)
        return name, placeholder if name is None else _loaded(_BY_NAME[name]), rest


def _loaded(command: Command) -> Any:
    """Return a command that can run, with its own help."""
    try:
        function = command.load()
    except ModuleNotFoundError as error:
        print_error(not_installed_message(command.name, error))
        raise typer.Exit(2) from error
    text, _, example = escape(inspect.getdoc(function) or "").partition("\n\nExample: ")
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
    epilog="Example: fairchance reproduce german --repetitions 10",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        _BY_NAME["version"].load()()
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


for _command in COMMANDS:
    app.command(
        _command.name,
        help=_command.summary(),
        rich_help_panel=_command.panel,
    )(_placeholder)


def main() -> None:
    """Run the command line."""
    with errors("--json" in sys.argv), standard_streams():
        app()
