"""Options that every command on a ledger takes."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = [
    "DECIDING",
    "EXPERIMENTS",
    "By",
    "LedgerUrl",
    "MaybeLedgerUrl",
    "MostRefused",
    "ProgramName",
    "Refused",
    "Strict",
    "Trusted",
    "UnlikeHistory",
]

# The two halves of ``secondlook --help``.
DECIDING = "Decide real batches, on the record"
EXPERIMENTS = "Experiments"

_LEDGER = typer.Option(
    "--ledger",
    envvar="SECONDLOOK_LEDGER",
    metavar="URL",
    help="Where the record lives: sqlite:///lender.db or postgresql://host/database.",
)
LedgerUrl = Annotated[str, _LEDGER]
MaybeLedgerUrl = Annotated[str | None, _LEDGER]
ProgramName = Annotated[
    str, typer.Option("--program", metavar="NAME", help="Which of the ledger's programs.")
]
By = Annotated[
    str | None,
    typer.Option("--by", metavar="NAME", help="Who writes; default your login name."),
]
Refused = Annotated[
    str | None,
    typer.Option(
        "--refused",
        metavar="FILE",
        help="Where refused rows go, with the reason; default <input>.refused.csv in the current "
        "folder, and never over another file.",
    ),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Stop at the first row that is refused; record nothing.")
]
MostRefused = Annotated[
    float,
    typer.Option(
        "--most-refused",
        metavar="SHARE",
        help="Record nothing if more than this share of the rows is refused; 1: whatever it is.",
    ),
]
Trusted = Annotated[
    list[str] | None,
    typer.Option(
        "--trusted",
        metavar="TYPE",
        help="A type that stored models may contain; may be given several times.",
    ),
]
UnlikeHistory = Annotated[
    bool,
    typer.Option(
        "--unlike-history",
        help="Decide even if most people are beyond the numbers that the history had.",
    ),
]
