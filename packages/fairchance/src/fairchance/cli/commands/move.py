"""``fairchance move``: move programs to another ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairchance.cli.options import By, Json, check_name, errors, progress
from fairchance.cli.output import print_json, print_lines
from fairchance.words import counted

if TYPE_CHECKING:  # an extra, and slow to import
    from fairchance.ledger.move import Moved

__all__ = ["move"]

_LEFT = (
    "The old ledger refuses to record anything from now on. It still holds the data of all "
    "applicants: keep it until the new one is verified, then delete it with its backups."
)


def move(
    source: Annotated[str, typer.Argument(metavar="FROM", help="The ledger with the programs.")],
    target: Annotated[
        str, typer.Argument(metavar="TO", help="The other ledger; a file is made if there is none.")
    ],
    program: Annotated[
        str | None,
        typer.Option("--program", metavar="NAME", help="A program of the ledger; default all."),
    ] = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Move programs to another ledger, such as from SQLite to PostgreSQL, with their proof.

    Every row, salt and hash stays as it is, so verify passes with checkpoints from before. The copy
    is checked against its hashes before it counts; then the old ledger refuses to be written. After
    an interruption, give the same command again.

    Example: fairchance move sqlite:///lender.db postgresql://localhost/lender
    """
    with errors(json):
        check_name("by", by)
        from fairchance.ledger.move import move as moving  # noqa: PLC0415 - an extra

        with progress("moving every row and checking its hash", json):
            found = list(moving(source, target, program, by=by))
    if json:
        print_json({"moved": [_data(one) for one in found]})
        return
    print_lines([line for one in found for line in _words(one)])
    print_lines([_LEFT])


def _data(one: Moved) -> dict[str, Any]:
    return {
        "program": one.program,
        "applicants": one.n_people,
        "before": one.before,
        "checkpoint": str(one.head),
    }


def _words(one: Moved) -> list[str]:
    done = "was moved before" if one.before else "is moved"
    rows = f"{counted(one.head.number, 'entry', 'entries')}, {counted(one.n_people, 'applicant')}"
    return [f"Program {one.program!r} {done}: {rows}.", f"Checkpoint: {one.head}"]
