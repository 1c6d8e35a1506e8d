"""The commands of ``secondlook``.

Exit codes: 0 done; 2 something is wrong with what was asked for; 3 data could not be fetched; 4 a
ledger does not fit; 130 interrupted, and a run goes on where it stopped when the same command is
given again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer

from secondlook.cli.compare import compare
from secondlook.cli.experiments import plan, reproduce, simulate
from secondlook.cli.listing import datasets, methods, switches, version
from secondlook.cli.programs.batches import decide, observe
from secondlook.cli.programs.exporting import export
from secondlook.cli.programs.looking import status_of
from secondlook.cli.programs.options import DECIDING, EXPERIMENTS
from secondlook.cli.programs.people import erase, hold, override, release, withdraw
from secondlook.cli.programs.proving import verify
from secondlook.cli.programs.starting import init
from secondlook.cli.reporting import report

__all__ = ["app", "main"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Give people a second look whom a model would have turned away, and measure what it does.",
    epilog="Example: secondlook reproduce german --repetitions 10",
)

# In the order of the help, each with the example that its own help ends with.
_COMMANDS: tuple[tuple[str | None, Callable[..., Any], str], ...] = (
    (DECIDING, init, "init --ledger sqlite:///lender.db --config program.toml past.csv"),
    (
        EXPERIMENTS,
        reproduce,
        "reproduce adult-race --data-set acs-ca-2018-sample --repetitions 5",
    ),
    (EXPERIMENTS, simulate, "simulate examples/worlds/overlooked-group.toml"),
    (EXPERIMENTS, compare, "compare german --repetitions 10 --markdown"),
    (DECIDING, decide, "decide applicants.csv -o decisions.csv --ledger sqlite:///lender.db"),
    (DECIDING, observe, "observe outcomes.csv --ledger sqlite:///lender.db"),
    (DECIDING, verify, "verify sqlite:///lender.db --program main"),
    (DECIDING, status_of, "status --ledger sqlite:///lender.db --late 180"),
    (DECIDING, override, "override --id a17 --accept --reason 'has a guarantor'"),
    (DECIDING, withdraw, "withdraw not-taken-up.csv --ledger sqlite:///lender.db"),
    (DECIDING, hold, "hold disputed.csv --reason 'case 12/31'"),
    (DECIDING, release, "release disputed.csv --reason 'case 12/31 is settled'"),
    (DECIDING, erase, "erase --expired --reason 'retention period is over'"),
    (DECIDING, export, "export --ledger sqlite:///lender.db --out decisions.parquet"),
    (EXPERIMENTS, datasets, "datasets --json"),
    (DECIDING, report, "report --ledger sqlite:///lender.db --out lender.html"),
    (EXPERIMENTS, switches, "switches --json"),
    (
        EXPERIMENTS,
        plan,
        "plan --good 0.7 --auc 0.75 --people 500 --groups A=0.8,B=0.2",
    ),
    (EXPERIMENTS, methods, "methods --json"),
    (None, version, "version"),
)
for _panel, _command, _example in _COMMANDS:
    app.command(
        _example.split()[0], epilog=f"Example: secondlook {_example}", rich_help_panel=_panel
    )(_command)


def main() -> None:
    """Run the command line."""
    app()
