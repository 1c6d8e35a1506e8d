"""Run an experiment and say what came of it; slow to import, so commands do it late."""

from __future__ import annotations

import re
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from secondlook.cli.backends import prepared
from secondlook.cli.files.places import check_apart, ledger_files
from secondlook.cli.json_output import as_json
from secondlook.cli.on_record import check_on_record, in_one_line, proved
from secondlook.cli.options import HowToRun, status
from secondlook.cli.output import download_bar, print_results, repetition_bar, summary_rows
from secondlook.lab.experiments.baseline_methods import left_out
from secondlook.lab.experiments.cautions import nothing_found
from secondlook.lab.experiments.methods import expanded
from secondlook.lab.experiments.released.switches import SWITCHES
from secondlook.lab.experiments.report import write_report
from secondlook.lab.experiments.results import Results
from secondlook.lab.experiments.runner import Run, run_experiment
from secondlook.lab.experiments.sources import load_source
from secondlook.lab.experiments.spec import Experiment
from secondlook.lab.experiments.world_spec import drawn_again
from secondlook.lab.simulate.people import Table

__all__ = ["exit_if_nothing", "met_again", "ran", "run_and_report", "with_methods"]

_WRITTEN = ("lock", "settings.json", "results.parquet", "report.html")  # in the folder of a run


def with_methods(
    experiment: Experiment, names: tuple[str, ...], *, quick: bool = False
) -> Experiment:
    """Return an experiment with other methods; say which are left out if all are asked for."""
    chosen = replace(experiment, methods=expanded(names, quick=quick))
    if "all" in names and left_out():
        print(f"secondlook: {left_out()}", file=sys.stderr)
    return chosen


def ran(experiment: Experiment, how: HowToRun, quiet: bool) -> tuple[Results, Any, Path]:
    """Run what has not run yet; return the results, whom it was about, and the folder."""
    folder = _folder(experiment, how)
    for name in _WRITTEN:
        check_apart("results", folder / name, "the data", [experiment.world.data], "folder")
    with download_bar(quiet) as bar:
        source = load_source(experiment.world, data=how.data, progress=bar)
    with prepared(how.backend, how.jobs, how.scheduler), repetition_bar(quiet) as progress:
        run = Run(folder, how.jobs, how.backend, progress, how.fresh)
        return run_experiment(experiment, source, run), source, folder


def met_again(experiment: Experiment, source: Any) -> tuple[int, list[str]]:
    """Return how many people a repetition draws from a data set, and say so if rows come again."""
    n_drawn = experiment.world.people_drawn(source)
    return n_drawn, drawn_again(len(source) if isinstance(source, Table) else 0, n_drawn)


def run_and_report(
    experiment: Experiment, how: HowToRun, ledger: str | None, *, json: bool
) -> None:
    """Run an experiment, write its report, and print what there is to say."""
    if ledger is not None:
        for name in _WRITTEN:
            place = _folder(experiment, how) / name
            check_apart("results", place, "the ledger", ledger_files(ledger), "folder")
        check_on_record(experiment, ledger)
    results, source, folder = ran(experiment, how, quiet=json)
    page = folder / "report.html"
    with status("writing the report", json):
        write_report([results], page, folder / "figures")
    n_drawn, again = met_again(experiment, source)
    proof = None if ledger is None else proved(experiment, source, results, ledger, json)
    if json:
        as_json(
            {
                "folder": folder,
                "report": page,
                "results": folder / "results.parquet",
                "about": results.about,
                "people_drawn": n_drawn,
                "summary": summary_rows(results),
                "certificates": results.certificates,
                "failures": [asdict(one) for one in results.failures],
            }
            | ({} if proof is None else {"ledger": proof})
        )
    else:
        console = Console()
        print_results(console, results)
        for line in again:
            console.print(line, style="dim", soft_wrap=True, highlight=False)
        console.print(f"Report: {page.resolve()}", soft_wrap=True, highlight=False)
        if proof is not None:
            console.print(in_one_line(proof), soft_wrap=True, highlight=False)
    exit_if_nothing(results)


def exit_if_nothing(results: Results) -> None:
    """End with an exit code and a sentence if no method has any numbers, once all is printed."""
    words = nothing_found(results)
    if words:
        print(f"secondlook: {words}", file=sys.stderr)
        raise typer.Exit(2)


def _folder(experiment: Experiment, how: HowToRun) -> Path:
    return how.out or Path("results") / _slug(experiment)


def _slug(experiment: Experiment) -> str:
    """Return a folder name that tells experiments apart which differ in more than repetitions."""
    words = [experiment.name]
    if experiment.switches:
        off = [name for name in SWITCHES if name not in experiment.switches]
        few = len(experiment.switches) <= len(off)
        words.append("with " + " ".join(experiment.switches) if few else "as released")
        words += ["without " + " ".join(off)] if off and not few else []
    words.append(experiment.fingerprint[:6])
    return re.sub(r"[^A-Za-z0-9]+", "-", " ".join(words)).strip("-").lower()
