"""Run an experiment and print its results; slow to import, so commands import it late."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from joblib.parallel import BACKENDS
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from secondlook.cli.files.tables import check_apart, ledger_files
from secondlook.cli.options import VERIFICATION_FAILED, RunOptions, progress
from secondlook.cli.output import Console, print_error, print_json, print_table
from secondlook.errors import InputError, to_install
from secondlook.lab.experiments import tables
from secondlook.lab.experiments.findings import (
    assumptions,
    failures,
    findings,
    nothing_found,
    remarks,
    what_was_run,
)
from secondlook.lab.experiments.methods import expand_names, left_out
from secondlook.lab.experiments.published import ALPHA, paper_row, published_table, why_different
from secondlook.lab.experiments.released import SWITCHES
from secondlook.lab.experiments.report import parity_costs, write_report
from secondlook.lab.experiments.results import Results
from secondlook.lab.experiments.runner import Run, run_experiment
from secondlook.lab.experiments.spec import Experiment
from secondlook.lab.experiments.world_spec import load_source, repeated_rows_remarks
from secondlook.lab.simulate.people import Table

if TYPE_CHECKING:
    from secondlook.lab.experiments.results import Results
    from secondlook.lab.experiments.spec import Experiment

_RUN_FILES = ("lock", "settings.json", "results.parquet", "report.html")  # in the folder of a run


def with_methods(
    experiment: Experiment, names: tuple[str, ...], *, quick: bool = False
) -> Experiment:
    """Return an experiment with other methods; print which are left out if all are requested."""
    chosen = replace(experiment, methods=expand_names(names, quick=quick))
    if "all" in names and left_out():
        print_error(left_out())
    return chosen


def run_or_resume(
    experiment: Experiment, options: RunOptions, quiet: bool
) -> tuple[Results, Any, Path]:
    """Run the missing repetitions; return the results, the source of applicants and the folder."""
    folder = _folder(experiment, options)
    for name in _RUN_FILES:
        check_apart("results", folder / name, "the data", [experiment.world.data], "folder")
    with download_bar(quiet) as bar:
        source = load_source(experiment.world, data=options.data, progress=bar)
    with (
        joblib_backend(options.backend, options.jobs, options.scheduler),
        repetition_bar(quiet) as progress,
    ):
        run = Run(folder, options.jobs, options.backend, progress, options.fresh)
        return run_experiment(experiment, source, run), source, folder


def rows_drawn(experiment: Experiment, source: Any) -> tuple[int, list[str]]:
    """Return how many rows a repetition draws from a data set, and a note if rows repeat."""
    n_drawn = experiment.world.people_drawn(source)
    return n_drawn, repeated_rows_remarks(len(source) if isinstance(source, Table) else 0, n_drawn)


def run_and_report(
    experiment: Experiment, options: RunOptions, ledger: str | None, *, json: bool
) -> None:
    """Run an experiment, write its report, and print the results."""
    if ledger is not None:
        for name in _RUN_FILES:
            place = _folder(experiment, options) / name
            check_apart("results", place, "the ledger", ledger_files(ledger), "folder")
        check_recordable_at(experiment, ledger, _folder(experiment, options))
    results, source, folder = run_or_resume(experiment, options, quiet=json)
    page = folder / "report.html"
    with progress("writing the report", json):
        write_report([results], page, folder / "figures")
    n_drawn, again = rows_drawn(experiment, source)
    proof = None if ledger is None else recorded_run(experiment, source, results, ledger, json)
    if json:
        print_json(
            {
                "folder": folder,
                "report": page,
                "results": folder / "results.parquet",
                "about": results.about,
                "people_drawn": n_drawn,
                "summary": summary_rows(results),
                "certificates": results.certificates,
                "failures": [asdict(failure) for failure in results.failures],
            }
            | ({} if proof is None else {"ledger": proof})
        )
    else:
        console = Console()
        print_results(console, results)
        for line in again:
            console.print(line, style="dim", soft_wrap=True)
        console.print(f"Report: {page.resolve()}", soft_wrap=True)
        if proof is not None:
            console.print(verification_message(proof), soft_wrap=True)
    exit_if_empty(results)


def exit_if_empty(results: Results) -> None:
    """Exit with 2 if no method has results."""
    words = nothing_found(results)
    if words:
        print_error(words)
        raise typer.Exit(2)


def _folder(experiment: Experiment, options: RunOptions) -> Path:
    return options.out or Path("results") / _slug(experiment)


def _slug(experiment: Experiment) -> str:
    """Return a folder name that differs for experiments that differ in more than repetitions."""
    words = [experiment.name]
    if experiment.switches:
        off = [name for name in SWITCHES if name not in experiment.switches]
        few = len(experiment.switches) <= len(off)
        words.append("with " + " ".join(experiment.switches) if few else "as released")
        words += ["without " + " ".join(off)] if off and not few else []
    words.append(experiment.fingerprint[:6])
    return re.sub(r"[^A-Za-z0-9]+", "-", " ".join(words)).strip("-").lower()


def joblib_backend(
    backend: str | None, jobs: int, scheduler: str | None
) -> AbstractContextManager[Any]:
    """Return a context in which joblib knows a backend.

    Parameters
    ----------
    backend
        Name of the backend; ``"dask"`` gets a client, ``"ray"`` is registered, others are known.
    jobs
        Dask workers to start here; −1 means one per core.
    scheduler
        Address of a running Dask scheduler instead, such as ``tcp://host:8786``.
    """
    if backend == "dask":
        return _dask(jobs, scheduler)
    if scheduler is not None:
        raise InputError(f"a scheduler goes with the backend dask, got backend {backend!r}.")
    if backend == "ray":
        _register_ray()
    elif backend is not None and backend not in BACKENDS:
        known = ", ".join(sorted({*BACKENDS, "dask", "ray"}))
        raise InputError(f"joblib knows no backend {backend!r}; known are {known}.")
    return nullcontext()


def _register_ray() -> None:
    try:
        from ray.util.joblib import register_ray  # noqa: PLC0415 (not ours to install)
    except ImportError as error:
        raise InputError("the backend ray needs Ray; install it with `pip install ray`.") from error
    register_ray()


def _dask(jobs: int, scheduler: str | None) -> AbstractContextManager[Any]:
    """Return a client of a scheduler that runs already, or of workers started here."""
    try:
        import distributed  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise InputError(
            f"the backend dask needs Dask; {to_install('dask')} installs it."
        ) from error
    client: Callable[..., AbstractContextManager[Any]] = distributed.Client
    if scheduler is None:
        workers = os.cpu_count() or 1 if jobs == -1 else jobs
        return client(n_workers=workers, threads_per_worker=1, dashboard_address=None)
    try:
        return client(scheduler, timeout=10)
    except (OSError, ValueError) as error:
        raise InputError(f"no Dask scheduler answers at {scheduler}: {error}.") from error


def check_recordable_at(experiment: Experiment, url: str, folder: Path) -> None:
    """Raise if the first method cannot be recorded there, before anything runs."""
    from secondlook.lab.experiments.on_ledger import check_recordable  # noqa: PLC0415 - an extra
    from secondlook.ledger.database import connect, read_url  # noqa: PLC0415

    check_recordable(experiment)
    file = Path(read_url(url).database or "").absolute()
    # The run creates its own folder, so a ledger in that folder cannot be opened yet.
    if not file.is_relative_to(folder.absolute()):
        connect(url, make=True).dispose()  # creates nothing yet


def recorded_run(
    experiment: Experiment, source: Any, results: Results, url: str, json: bool
) -> dict[str, Any]:
    """Run the first method of an experiment through a ledger; return its verification."""
    from secondlook.lab.experiments.on_ledger import run_on_ledger  # noqa: PLC0415 - an extra

    with progress("once more, through a ledger", json):
        result = run_on_ledger(experiment, source, results, url)
    if result.problem is not None:
        print_error(result.problem)
        raise typer.Exit(VERIFICATION_FAILED)
    return {
        "url": url,
        "program": experiment.methods[0],
        "entries": result.n_entries,
        "decisions": result.n_decisions,
        "checkpoint": str(result.head),
    }


def verification_message(proof: dict[str, Any]) -> str:
    """Describe the verification of a recorded run.

    Examples
    --------
    >>> proof = {"program": "plain", "entries": 3, "decisions": 50, "checkpoint": "3:ab:plain"}
    >>> verification_message(proof)
    'On the record (plain): 3 entries fit, 50 decisions made again; checkpoint 3:ab:plain'
    """
    return (
        f"On the record ({proof['program']}): {proof['entries']} entries fit, "
        f"{proof['decisions']} decisions made again; checkpoint {proof['checkpoint']}"
    )


# Metric, title, decimals, whether there is room for its standard error.
_COLUMNS = (
    ("revenue", "revenue", 1, True),
    ("late_revenue", "late", 1, True),
    ("pooled_fdr", "FDR", 3, True),
    ("above_alpha", "> α", 2, False),
    ("selection_rate_difference", "ΔSR", 2, False),
    ("true_positive_rate_difference", "ΔTPR", 2, False),
    ("acceptance_rate", "acc", 2, False),
)
# For programs only: there is no room for them in a terminal.
_MORE = ("fdr", "pooled_selection_rate_difference", "pooled_true_positive_rate_difference")
_KEY = (
    "revenue: thousands a round; late: in the last quarter of the rounds; FDR: pooled over rounds; "
    "> α: share of rounds above α; ΔSR, ΔTPR: largest difference of groups' selection and true "
    "positive rates in a round; acc: share of people accepted; ±: standard error over repetitions."
)
_PAPER = (
    " paper: its revenue, on its own data; its FDR is a mean of rounds, which the report sets "
    "beside ours."
)


def summary_rows(results: Results) -> list[dict[str, Any]]:
    """Return a row per α and method: means, standard errors and the paper's numbers."""
    metrics = [*(metric for metric, *_ in _COLUMNS), *_MORE]
    summaries = {metric: tables.summary(results, metric) for metric in metrics}
    if "E2" in results.about["experiment"]["switches"]:
        summaries["revenue_without_sign"] = tables.summary(
            results, "revenue", absolute_revenue=True
        )
    key = results.about["experiment"]["published"]
    rows = []
    for a, alpha in enumerate(results.alphas):
        printed = published_table(key) if key and alpha == ALPHA else {}
        for m, method in enumerate(results.methods):
            row: dict[str, Any] = {"alpha": alpha, "method": method}
            row["label"] = results.about["labels"][method]
            for metric, summary in summaries.items():
                row[metric] = float(summary.estimate.mean[a, m])
                row[f"{metric}_standard_error"] = float(summary.estimate.standard_error[a, m])
            row["published"] = {
                metric: {"mean": number.mean, "bracket": number.bracket}
                for metric, number in printed.get(paper_row(method) or "", {}).items()
            }
            row["why_different"] = (
                why_different(results.about["experiment"], method) if row["published"] else ""
            )
            row["failed_repetitions"] = [
                {
                    "repetition": failure.repetition,
                    "seed": failure.seed,
                    "sentence": failure.sentence,
                }
                for failure in results.failed(method, a)
            ]
            rows.append(row)
    return rows


def print_results(console: Console, results: Results) -> None:
    """Print the settings, a table for each α, and the findings."""
    console.print(what_was_run(results))
    for remark in [*remarks(results), *assumptions(results)]:
        console.print(remark, style="dim")
    rows = summary_rows(results)
    for alpha in results.alphas:
        _print_table(console, results, alpha, [row for row in rows if row["alpha"] == alpha])
    for table in parity_costs(results, tables.main_alpha(results)):
        lines = [[words, *(cell.text for cell in cells)] for words, cells in table.rows]
        print_table(console, table.title, ["", *table.titles], lines)
        console.print(table.note, style="dim")
    compared = any(row["published"] for row in rows)
    console.print(_KEY + _PAPER * compared, style="dim")
    reasons = dict.fromkeys(row["why_different"] for row in rows if row["why_different"])
    for why in reasons:
        named = dict.fromkeys(row["method"] for row in rows if row["why_different"] == why)
        words = f"Where {' and '.join(named)} and the paper differ: {why}."
        console.print(words, style="dim")
    for failure in failures(results):
        console.print(f"• {failure}", style="bold")
    for finding in findings(results):
        console.print(f"• {finding}")


def _print_table(
    console: Console, results: Results, alpha: float, rows: list[dict[str, Any]]
) -> None:
    """Print the table of one α."""
    extra = ["|revenue|"] * ("revenue_without_sign" in rows[0])
    extra += ["paper"] * any(row["published"] for row in rows)
    cells = []
    for row in rows:
        failed = len(results.failed(row["method"], results.alphas.index(alpha)))
        note = f" ({failed} of {results.shape[2]} failed)" if failed else ""
        cells.append([row["method"] + note, *_cells(row, extra)])
    titles = ["method", *(title for _, title, *_ in _COLUMNS), *extra]
    print_table(console, f"α = {alpha:g}", titles, cells)


def _cells(row: dict[str, Any], extra: list[str]) -> list[str]:
    cells = []
    for metric, _, decimals, with_error in _COLUMNS:
        error = f"±{row[f'{metric}_standard_error']:.{decimals}f}" if with_error else ""
        cells.append(f"{row[metric]:.{decimals}f}{error}")
    if "|revenue|" in extra:
        cells.append(f"{row['revenue_without_sign']:.1f}")
    if "paper" in extra:
        paper = row["published"]
        cells.append(f"{paper['revenue']['mean']:.1f}" if paper else "–")
    return [cell.replace("nan", "–") for cell in cells]


@contextmanager
def repetition_bar(quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Show how many repetitions are done, on standard error."""
    if quiet:
        yield None
        return
    with _progress(MofNCompleteColumn()) as bar:
        task = bar.add_task("repetitions", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def download_bar(quiet: bool) -> Iterator[Callable[[int, int | None], None] | None]:
    """Show how much has been downloaded, on standard error, if anything is."""
    if quiet:
        yield None
        return
    with _progress(DownloadColumn()) as bar:
        tasks: list[Any] = []

        def show(done: int, total: int | None) -> None:
            if not tasks:
                tasks.append(bar.add_task("downloading", total=total))
            bar.update(tasks[0], completed=done, total=total)

        yield show


def _progress(amount: Any) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        amount,
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
