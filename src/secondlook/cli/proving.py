"""Prove a ledger from the command line: ``secondlook verify``."""

from __future__ import annotations

from typing import Annotated

import typer

from secondlook.cli.options import Json, errors, status
from secondlook.cli.output import as_json

__all__ = ["verify"]

_DOES_NOT_FIT = 4


def verify(
    ledger: Annotated[
        str, typer.Argument(help="Where it lives: sqlite:///lender.db or postgresql://…")
    ],
    program: Annotated[str, typer.Option(help="Which of its programs.")] = "main",
    checkpoint: Annotated[
        str | None, typer.Option(help="A checkpoint that was printed earlier, to compare with.")
    ] = None,
    trusted: Annotated[
        list[str] | None,
        typer.Option(help="A type that stored models may contain; may be given several times."),
    ] = None,
    json: Json = False,
) -> None:
    """Check a ledger's chain and make every decision again; exit code 4 if something differs.

    Prints a checkpoint: keep it elsewhere, and hand it in next time.
    """
    with errors(json):
        from secondlook.ledger import Checkpoint, SqlLedger  # noqa: PLC0415 - an extra
        from secondlook.ledger import verify as prove  # noqa: PLC0415

        kept = None if checkpoint is None else Checkpoint.read(checkpoint)
        with status("making every decision again", json):
            found = prove(SqlLedger(ledger), program, checkpoint=kept, trusted=trusted or ())
    if json:
        as_json(
            {
                "ok": found.ok,
                "problem": found.problem,
                "checkpoint": str(found.head),
                "entries": found.n_entries,
                "decisions": found.n_decisions,
                "not_repeated": found.n_not_repeated,
            }
        )
    else:
        print(found.problem or "Everything fits.")
        erased = f", {found.n_not_repeated} not, for erased people" if found.n_not_repeated else ""
        again = f"{found.n_decisions} decisions made again{erased}"
        print(f"{found.n_entries} entries checked, {again}")
        print(f"Checkpoint: {found.head}")
    if not found.ok:
        raise typer.Exit(_DOES_NOT_FIT)
