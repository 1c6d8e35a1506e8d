"""One HTML file of a program or of runs: ``secondlook report``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from secondlook.cli.files.places import check_apart, ledger_files
from secondlook.cli.json_output import as_json
from secondlook.cli.options import Json, errors, status, writing
from secondlook.cli.programs.looking import (
    Groups,
    Late,
    ReportedLedger,
    report_program,
    reported_ledger,
)
from secondlook.cli.programs.options import ProgramName, Trusted
from secondlook.errors import InputError

__all__ = ["report"]

_PAGES = (".html", ".htm")


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
        _check_page(out)
        url = reported_ledger(ledger, results, figures)
        kept = ledger_files(url or os.environ.get("SECONDLOOK_LEDGER"))
        check_apart("the report", out, "the ledger", kept)
        check_apart("the report", out, "the results", results or ())
        if not results:
            report_program(url, program, out, late, groups, trusted, json)
            return
        from secondlook.lab.experiments.results import read_results  # noqa: PLC0415 - slow to import

        found = [read_results(path) for path in results]
        with writing(out):  # before anything is drawn
            out.parent.mkdir(parents=True, exist_ok=True)
        if figures is not None:
            with writing(figures):
                figures.mkdir(parents=True, exist_ok=True)
        from secondlook.lab.experiments.report import write_report  # noqa: PLC0415 - slower

        with status("writing the report", json), writing(out):
            written = write_report(found, out, figures)
        if json:
            as_json({"written": written})
        else:
            Console().print(f"Report: {out.resolve()}", soft_wrap=True, highlight=False)
            if figures is not None:
                Console().print(f"Figures: {figures.resolve()}", soft_wrap=True, highlight=False)


def _check_page(out: Path) -> None:
    """Raise unless a page may be written there by its name, so that it replaces nothing else."""
    if out.is_dir():
        raise InputError(f"--out must name a file, such as {out / 'report.html'}, got a folder.")
    if out.suffix.lower() not in _PAGES:
        raise InputError(
            f"--out must name a file that ends in {' or '.join(_PAGES)}, got {str(out)!r}; name "
            f"such a file."
        )
