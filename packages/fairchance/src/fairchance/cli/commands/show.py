"""``fairchance show``: one applicant's file."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from fairchance.cli.input_checks import as_recorded
from fairchance.cli.options import (
    VERIFICATION_FAILED,
    Json,
    LedgerUrl,
    ProgramName,
    errors,
    open_program,
)
from fairchance.cli.output import print_json, print_lines
from fairchance.errors import InputError

__all__ = ["show"]


def show(
    ledger: LedgerUrl,
    application: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="The id of the application.")
    ] = None,
    number: Annotated[
        int | None,
        typer.Option(
            "--number",
            metavar="N",
            help="The number of the applicant instead, by which one who was erased is found.",
        ),
    ] = None,
    program: ProgramName = None,
    groups: Annotated[
        bool, typer.Option("--groups/--no-groups", help="Print groups, if you may read them.")
    ] = True,
    json: Json = False,
) -> None:
    """Print all that is on record about one applicant: inputs, decision, reasons, changes, proof.

    The record of the applicant is compared with its receipt; exit code 4 if it does not fit.
    Of an erased applicant the decision, the changes and the proof are left. The file holds personal
    data: keep what you print as long as the ledger keeps the applicant, and no longer.

    Example: fairchance show 2031-01-0007 --ledger sqlite:///lender.db
    """
    with errors(json):
        if (application is None) == (number is None):
            given = "neither" if application is None else "both"
            raise InputError(
                f"name the applicant by an id or by {{option}}, got {given}.", option="number"
            )
        from fairchance.ledger.applicant import applicant_file  # noqa: PLC0415 - an extra

        opened = open_program(ledger, program, None, None)
        with opened.reading() as view:
            meant = None if application is None else as_recorded(view.reader, [application])[0]
            file = applicant_file(view, meant, person=number, groups=groups)
            head, name = view.reader.head(), opened.name
        from fairchance.words.applicants import file_facts, file_title  # noqa: PLC0415 - needs numpy

        facts = [*file_facts(file), ("Checkpoint", str(head))]
        if json:
            print_json({"program": name, "checkpoint": str(head), **asdict(file)})
        else:
            print_lines([file_title(file, name), *(f"{what}: {said}" for what, said in facts)])
        if file.proof["fits"] is False:
            raise typer.Exit(VERIFICATION_FAILED)
