"""``fairchance report``: one HTML file of a program."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from fairchance.cli.files.tables import check_apart, check_page, ledger_files
from fairchance.cli.options import (
    Groups,
    Json,
    Late,
    MaybeLedgerUrl,
    ProgramName,
    ReadUrl,
    Trusted,
    errors,
    ledger_url,
    open_program,
    progress,
)
from fairchance.cli.output import print_json, print_lines


def report(
    url: ReadUrl = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file to write.")] = Path(
        "report.html"
    ),
    ledger: MaybeLedgerUrl = None,
    program: ProgramName = None,
    late: Late = 180.0,
    groups: Groups = True,
    trusted: Trusted = None,
    json: Json = False,
) -> None:
    """Write an HTML report of a program on a ledger.

    Example: fairchance report sqlite:///lender.db --out lender.html
    """
    with errors(json):
        check_page(out)
        kept = ledger_files(os.environ.get("FAIRCHANCE_LEDGER"))
        check_apart("the report", out, "the ledger", kept)
        place = ledger_url(url, ledger)
        check_apart("the report", out, "the ledger", ledger_files(place))
        opened = open_program(place, program, None, trusted)
        from fairchance.ledger.summary import read_details  # noqa: PLC0415 - an extra
        from fairchance.pages.program import write_program_report  # noqa: PLC0415

        with progress("writing the report", json):
            summary = opened.summary(groups=groups)
            write_program_report(summary, read_details(opened.ledger, summary), out, late)
        if json:
            print_json({"written": [out], "checkpoint": str(summary.head)})
        else:
            print_lines([f"Report: {out.resolve()}"])
