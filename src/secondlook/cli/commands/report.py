"""``secondlook report``: one HTML file of a program or of experiments."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from secondlook.cli.files.tables import check_apart, ledger_files
from secondlook.cli.options import (
    Groups,
    Json,
    Late,
    ProgramName,
    Trusted,
    errors,
    progress,
    writing,
)
from secondlook.cli.output import print_json, print_lines
from secondlook.errors import InputError

_PAGES = (".html", ".htm")


def report(
    results: Annotated[
        list[Path] | None,
        typer.Argument(help="Result files, or folders of runs; default: a program on a ledger."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file to write.")] = Path(
        "report.html"
    ),
    figures: Annotated[
        Path | None, typer.Option(help="For runs: folder for the figures as SVG and PNG.")
    ] = None,
    ledger: ReportedLedger = None,
    program: ProgramName = "main",
    late: Late = 180.0,
    groups: Groups = True,
    trusted: Trusted = None,
    json: Json = False,
) -> None:
    """Write an HTML report of a program on a ledger, or of the results of runs.

    Example: secondlook report --ledger sqlite:///lender.db --out lender.html
    """
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

        runs = [read_results(path) for path in results]
        with writing(out):  # before anything is drawn
            out.parent.mkdir(parents=True, exist_ok=True)
        if figures is not None:
            with writing(figures):
                figures.mkdir(parents=True, exist_ok=True)
        from secondlook.lab.experiments.report import write_report  # noqa: PLC0415 - slower

        with progress("writing the report", json), writing(out):
            written = write_report(runs, out, figures)
        if json:
            print_json({"written": written})
        else:
            print_lines([f"Report: {out.resolve()}"])
            if figures is not None:
                print_lines([f"Figures: {figures.resolve()}"])


def _check_page(out: Path) -> None:
    """Raise unless the file is named like a page, so that no other file is replaced."""
    if out.is_dir():
        raise InputError(f"--out must name a file, such as {out / 'report.html'}, got a folder.")
    if out.suffix.lower() not in _PAGES:
        raise InputError(
            f"--out must name a file that ends in {' or '.join(_PAGES)}, got {str(out)!r}; name "
            f"such a file."
        )


ReportedLedger = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="URL",
        help="The ledger to show; default SECONDLOOK_LEDGER, if no results are named.",
    ),
]


def reported_ledger(
    ledger: str | None, results: Sequence[Path] | None, figures: Path | None
) -> str:
    """Return the URL of the ledger to report on; empty for results."""
    if results:
        if ledger is not None:
            raise InputError(
                f"a report shows results or a ledger, got {str(results[0])!r} and --ledger; "
                f"leave out one."
            )
        return ""
    url = ledger or os.environ.get("SECONDLOOK_LEDGER", "")
    if not url:
        raise InputError(
            "there is nothing to report on: name the results of runs, or a ledger by --ledger or "
            "SECONDLOOK_LEDGER."
        )
    if figures is not None:
        raise InputError("--figures is for results of runs; leave it out for a ledger.")
    return url


def report_program(
    ledger: str,
    program: str,
    out: Path,
    late: float,
    groups: bool,
    trusted: list[str] | None,
    json: bool,
) -> None:
    """Write the report of a program, and print its path."""
    from secondlook.cli.pages.report import write_program_report  # noqa: PLC0415
    from secondlook.ledger import SqlLedger  # noqa: PLC0415 - an extra
    from secondlook.ledger.summary import read_details, summarise  # noqa: PLC0415

    with progress("writing the report", json):
        kept = SqlLedger(ledger)
        summary = summarise(kept, program, groups=groups, trusted=trusted or ())
        write_program_report(summary, read_details(kept, summary), out, late)
    if json:
        print_json({"written": [out], "checkpoint": str(summary.head)})
    else:
        print_lines([f"Report: {out.resolve()}"])
