"""``fairchance results``: one HTML file of experiments, their figures and their tables."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from fairchance.cli.files.tables import check_apart, check_page, ledger_files
from fairchance.cli.options import Json, errors, progress
from fairchance.cli.output import print_json, print_lines
from fairchance.errors import writing


def results(
    places: Annotated[
        list[Path], typer.Argument(metavar="FOLDER", help="Folders or result files of runs.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="The HTML file to write; default report.html, or none with --figures or --tables.",
        ),
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Folder for the figures as SVG and PNG.")
    ] = None,
    tables: Annotated[
        Path | None, typer.Option(help="Folder for the tables as csv, LaTeX and Markdown.")
    ] = None,
    json: Json = False,
) -> None:
    """Write an HTML report of the results of runs, their figures or their tables.

    Example: fairchance results german -o german.html
    """
    with errors(json):
        page = out or Path("report.html")
        check_page(page)
        check_apart("the report", page, "the results", places)
        kept = ledger_files(os.environ.get("FAIRCHANCE_LEDGER"))
        check_apart("the report", page, "the ledger", kept)
        from fairchance_lab.experiments.results import read_results  # noqa: PLC0415 - slow

        runs = [read_results(place) for place in places]
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
