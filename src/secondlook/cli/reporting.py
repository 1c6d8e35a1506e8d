"""One HTML file of a program or of runs: ``secondlook report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from secondlook.cli.json_output import as_json
from secondlook.cli.options import Json, errors, status
from secondlook.cli.programs.looking import (
    Groups,
    Late,
    ReportedLedger,
    report_program,
    reported_ledger,
)
from secondlook.cli.programs.options import ProgramName, Trusted
from secondlook.errors import InputError
from secondlook.experiments.report import write_report
from secondlook.experiments.results import read_results

__all__ = ["report"]


def report(
    results: Annotated[
        list[Path] | None,
        typer.Argument(help="Result files, or folders of runs; without them, a ledger is shown."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file to write.")] = Path(
        "report.html"
    ),
    figures: Annotated[
        Path | None, typer.Option(help="Of runs: folder for the figures as SVG and PNG too.")
    ] = None,
    ledger: ReportedLedger = None,
    program: ProgramName = "main",
    late: Late = 180.0,
    groups: Groups = True,
    trusted: Trusted = None,
    json: Json = False,
) -> None:
    """Write one HTML file that shows a program on a ledger, or the results of runs."""
    with errors(json):
        if out.is_dir():
            raise InputError(
                f"--out must name a file, such as {out / 'report.html'}, got a folder."
            )
        url = reported_ledger(ledger, results, figures)
        if not results:
            report_program(url, program, out, late, groups, trusted, json)
            return
        with status("writing the report", json):
            written = write_report([read_results(path) for path in results], out, figures)
        if json:
            as_json({"written": written})
        else:
            Console().print(f"Report: {out.resolve()}", soft_wrap=True, highlight=False)
            if figures is not None:
                Console().print(f"Figures: {figures.resolve()}", soft_wrap=True, highlight=False)
