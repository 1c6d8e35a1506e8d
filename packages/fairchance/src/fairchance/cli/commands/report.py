"""``fairchance report``: one HTML file of a program or of experiments."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from fairchance.cli.files.tables import check_apart, ledger_files
from fairchance.cli.options import (
    Groups,
    Json,
    Late,
    MaybeLedgerUrl,
    ProgramName,
    Trusted,
    errors,
    ledger_url,
    progress,
    writing,
)
from fairchance.cli.output import print_json, print_lines
from fairchance.errors import InputError

_PAGES = (".html", ".htm")


def report(
    places: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[URL|RESULTS...]",
            help="A ledger, instead of --ledger; or result files and folders of runs.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="The HTML file to write; default report.html, or none with --figures or --tables.",
        ),
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="For runs: folder for the figures as SVG and PNG.")
    ] = None,
    tables: Annotated[
        Path | None, typer.Option(help="For runs: folder for the tables as csv and LaTeX.")
    ] = None,
    ledger: MaybeLedgerUrl = None,
    program: ProgramName = None,
    late: Late = 180.0,
    groups: Groups = True,
    trusted: Trusted = None,
    json: Json = False,
) -> None:
    """Write an HTML report of a program on a ledger, or of the results of runs.

    Example: fairchance report sqlite:///lender.db --out lender.html
    """
    with errors(json):
        page = out or Path("report.html")
        _check_page(page)
        results = [Path(place) for place in places or () if "://" not in place]
        urls = [place for place in places or () if "://" in place]
        if results and (ledger is not None or urls):
            raise InputError(
                f"a report shows results or a ledger, got {str(results[0])!r} and a ledger; leave "
                f"out one."
            )
        if len(urls) > 1:
            raise InputError(f"a report shows one ledger, got {len(urls)}; leave out the others.")
        check_apart("the report", page, "the results", results)
        kept = ledger_files(os.environ.get("FAIRCHANCE_LEDGER"))
        check_apart("the report", page, "the ledger", kept)
        if not results:
            if figures is not None or tables is not None:
                raise InputError(
                    "--figures and --tables are for results of runs; leave them out for a ledger."
                )
            url = ledger_url(urls[0] if urls else None, ledger)
            check_apart("the report", page, "the ledger", ledger_files(url))
            report_program(url, program, page, late, groups, trusted, json)
            return
        from fairchance_lab.experiments.results import read_results  # noqa: PLC0415 - slow to import

        runs = [read_results(path) for path in results]
        shown = page if out or not (figures or tables) else None
        asked = {"Report": shown, "Figures": figures, "Tables": tables}
        made = {name: place for name, place in asked.items() if place is not None}
        for name, place in made.items():  # before anything is drawn
            with writing(place):
                (place.parent if name == "Report" else place).mkdir(parents=True, exist_ok=True)
        from fairchance_lab.page import write_report  # noqa: PLC0415
        from fairchance_lab.runs import write_tables  # noqa: PLC0415 - slower

        with progress("writing the report", json), writing(" or ".join(map(str, made.values()))):
            written = write_report(runs, shown, figures) if shown or figures else []
            if tables is not None:
                written += write_tables(runs, tables)
        if json:
            print_json({"written": written})
        else:
            print_lines(f"{name}: {place.resolve()}" for name, place in made.items())


def _check_page(out: Path) -> None:
    """Raise unless the file is named like a page, so that no other file is replaced."""
    if out.is_dir():
        raise InputError(f"--out must name a file, such as {out / 'report.html'}, got a folder.")
    if out.suffix.lower() not in _PAGES:
        raise InputError(
            f"--out must name a file that ends in {' or '.join(_PAGES)}, got {str(out)!r}; name "
            f"such a file."
        )


def report_program(
    ledger: str,
    program: str | None,
    out: Path,
    late: float,
    groups: bool,
    trusted: list[str] | None,
    json: bool,
) -> None:
    """Write the report of a program, and print its path."""
    from fairchance.cli.pages.program import write_program_report  # noqa: PLC0415
    from fairchance.ledger import SqlLedger  # noqa: PLC0415 - an extra
    from fairchance.ledger.summary import read_details, summarise  # noqa: PLC0415

    with progress("writing the report", json):
        kept = SqlLedger(ledger)
        summary = summarise(kept, program, groups=groups, trusted=trusted or ())
        write_program_report(summary, read_details(kept, summary), out, late)
    if json:
        print_json({"written": [out], "checkpoint": str(summary.head)})
    else:
        print_lines([f"Report: {out.resolve()}"])
