"""The commands of ``secondlook``.

Exit codes: 0 done; 2 something is wrong with what was asked for; 3 data could not be fetched; 4 a
ledger does not fit; 130 interrupted, and a run goes on where it stopped when the same command is
given again.

A command's module is imported when that command is asked for. The help of the whole needs no more
than the lines below, which tests compare with what the commands say of themselves.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_command

from secondlook.cli.programs.options import DECIDING, EXPERIMENTS
from secondlook.cli.standard_streams import on_any_streams

__all__ = ["app", "main"]


class _Command(NamedTuple):
    """Where a command is, and what the help says of it."""

    panel: str | None
    place: str
    line: str
    example: str

    @property
    def name(self) -> str:
        return self.example.split()[0]

    def function(self) -> Callable[..., Any]:
        """Import the command."""
        module, _, name = self.place.partition(":")
        found: Callable[..., Any] = getattr(import_module(f"secondlook.cli.{module}"), name)
        return found

    def stand_in(self) -> Callable[[], None]:
        """Return what stands for the command in the help of the whole."""

        def command() -> None: ...

        command.__doc__ = self.line
        return command

    def added(self, to: typer.Typer, function: Callable[..., Any]) -> typer.Typer:
        example = f"Example: secondlook {self.example}"
        to.command(self.name, epilog=example, rich_help_panel=self.panel)(function)
        return to


# In the order of the help: where a command is, its line there, and the example its own help ends
# with.
_COMMANDS = (
    _Command(
        DECIDING,
        "programs.starting:init",
        "Start a program: a classifier, its configuration and the history, on the record.",
        "init --ledger sqlite:///lender.db --config program.toml past.csv",
    ),
    _Command(
        EXPERIMENTS,
        "experiments:reproduce",
        "Run one of the paper's experiments: table, figures, report.",
        "reproduce adult-race --data-set acs-ca-2018-sample --repetitions 5",
    ),
    _Command(
        EXPERIMENTS,
        "experiments:simulate",
        "Run methods in a world of your own, described in a file.",
        "simulate examples/worlds/overlooked-group.toml",
    ),
    _Command(
        EXPERIMENTS,
        "compare:compare",
        "Compare methods: what they earn of what can be earned, and whether they keep α.",
        "compare german --repetitions 10 --markdown",
    ),
    _Command(
        DECIDING,
        "programs.batches:decide",
        "Decide on everybody in a file, record that, and write the decisions.",
        "decide applicants.csv -o decisions.csv --ledger sqlite:///lender.db",
    ),
    _Command(
        DECIDING,
        "programs.batches:observe",
        "Record outcomes of accepted people: any time later, in any order and in parts.",
        "observe outcomes.csv --ledger sqlite:///lender.db",
    ),
    _Command(
        DECIDING,
        "programs.proving:verify",
        "Check a ledger's chain and make every decision again; exit code 4 if something differs.",
        "verify sqlite:///lender.db --program main",
    ),
    _Command(
        DECIDING,
        "programs.looking:status_of",
        "Say how a program stands: what needs attention, rounds, outcomes, mistakes, groups.",
        "status --ledger sqlite:///lender.db --late 180",
    ),
    _Command(
        DECIDING,
        "programs.people:override",
        "Record that somebody decided otherwise than the program did, or that this is taken back.",
        "override --id a17 --accept --reason 'has a guarantor'",
    ),
    _Command(
        DECIDING,
        "programs.people:withdraw",
        "Record of accepted people that their outcome will never be known.",
        "withdraw not-taken-up.csv --ledger sqlite:///lender.db",
    ),
    _Command(
        DECIDING,
        "programs.people:hold",
        "Keep people from being erased, whatever their age, until they are released.",
        "hold disputed.csv --reason 'case 12/31'",
    ),
    _Command(
        DECIDING,
        "programs.people:release",
        "End every hold on people.",
        "release disputed.csv --reason 'case 12/31 is settled'",
    ),
    _Command(
        DECIDING,
        "programs.people:erase",
        "Erase people for good; decisions on them stay, and the program goes on without them.",
        "erase --expired --reason 'retention period is over'",
    ),
    _Command(
        DECIDING,
        "programs.exporting:export",
        "Write decisions with what became of them; or outcomes as told, the chain, the checkpoint.",
        "export --ledger sqlite:///lender.db --out decisions.parquet",
    ),
    _Command(
        EXPERIMENTS,
        "listing:datasets",
        "List data sets and populations, and whether they are here.",
        "datasets --json",
    ),
    _Command(
        DECIDING,
        "reporting:report",
        "Write one HTML file that shows a program on a ledger, or the results of runs.",
        "report --ledger sqlite:///lender.db --out lender.html",
    ),
    _Command(
        EXPERIMENTS,
        "listing:switches",
        "List the deviations of the paper's released code that can be switched on.",
        "switches --json",
    ),
    _Command(
        EXPERIMENTS,
        "experiments:plan",
        "Say how long a certificate takes, and what it costs until then.",
        "plan --good 0.7 --auc 0.75 --people 500 --groups A=0.8,B=0.2",
    ),
    _Command(
        EXPERIMENTS,
        "listing:methods",
        "List the methods that can be named.",
        "methods --json",
    ),
    _Command(
        None,
        "listing:version",
        "Print the version.",
        "version",
    ),
)
_BY_NAME = {one.name: one for one in _COMMANDS}


class _LoadedWhenAsked(TyperGroup):
    """The commands; one that is about to run takes the place of its stand-in."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, found, rest = super().resolve_command(ctx, args)
        return name, found if name is None else _loaded(_BY_NAME[name]), rest


def _loaded(command: _Command) -> Any:
    try:
        function = command.function()
    except ModuleNotFoundError as error:
        from secondlook.cli.options import not_installed  # noqa: PLC0415 - not for the help

        print(f"secondlook: {not_installed(command.name, error)}", file=sys.stderr)
        raise typer.Exit(2) from error
    return get_command(command.added(typer.Typer(add_completion=False), function))


app = typer.Typer(
    cls=_LoadedWhenAsked,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Give people a second look whom a model would have turned away, and measure what it does.",
    epilog="Example: secondlook reproduce german --repetitions 10",
)


def _print_version(asked: bool) -> None:
    if asked:
        _BY_NAME["version"].function()()
        raise typer.Exit


_VERSION = typer.Option(
    "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
)


@app.callback()
def _options(version: Annotated[bool, _VERSION] = False) -> None:
    """Take what stands before a command; whatever does something has done it by then."""


for _one in _COMMANDS:
    _one.added(app, _one.stand_in())


def main() -> None:
    """Run the command line."""
    with on_any_streams():
        app()
