"""Run an experiment and print its results; slow to import, so commands import it late."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import typer
from rich.progress import DownloadColumn

from fairchance.cli.files.csv_files import csv_bytes
from fairchance.cli.files.tables import check_apart
from fairchance.cli.options import names, progress
from fairchance.cli.output import (
    Console,
    counting_bar,
    make_bar,
    print_error,
    print_json,
    print_table,
)
from fairchance.errors import InputError, visible
from fairchance.extras import arrow
from fairchance.simulate.people import Table
from fairchance.simulate.streams import repeated_rows_remarks
from fairchance.words import counted
from fairchance_lab.commands.options import PAPER_LETTERS, RunOptions
from fairchance_lab.experiments import words
from fairchance_lab.experiments.all_tables import (
    against,
    all_tables,
    by_setting,
    claims_examined,
    overview,
    parity_costs,
    setting_of,
)
from fairchance_lab.experiments.methods import REFERENCES, expand_names, left_out
from fairchance_lab.experiments.report_table import ReportTable
from fairchance_lab.experiments.results import Results
from fairchance_lab.experiments.runner import Run, run_experiment
from fairchance_lab.experiments.spec import Experiment, read_options
from fairchance_lab.experiments.verdict import Standing, Verdict, find_verdict
from fairchance_lab.experiments.words import money, rate
from fairchance_lab.experiments.world_spec import load_source
from fairchance_lab.page import section_ids, write_report
from fairchance_lab.paper.released import SWITCHES

_GOAL = ("alpha", "gain", "loss")  # set in [goal], for all methods
_GREEK = str.maketrans({"α": "alpha", "β": "beta", "ε": "epsilon", "λ": "lambda", "τ": "tau"})
_SHOWN = 8  # methods in a terminal
_RUN_FILES = ("lock", "settings.json", "results.parquet", "report.html")  # in the folder of a run


def with_methods(
    experiment: Experiment, wanted: tuple[str, ...], *, quick: bool = False
) -> Experiment:
    """Return an experiment with other methods; print which are left out if all are requested."""
    chosen = replace(experiment, methods=expand_names(wanted, quick=quick))
    if "all" in wanted and left_out():
        print_error(left_out())
    return chosen


def with_set(
    experiment: Experiment, given: list[str] | None, paper_text: bool, vary: list[str] | None = None
) -> Experiment:
    """Return an experiment with the options of ``--set``, ``--paper-text`` and ``--vary``.

    Parameters
    ----------
    experiment
        The experiment; its own options stay unless they are given again.
    given
        Options as name=value: keys of a program's [classifier] table, alpha, gain and loss.
    paper_text
        Whether the paper's own choices come in place of our defaults.
    vary
        An option and its values, as name=a,b,c; empty keeps those of the experiment.
    """
    options = {}
    for text in given or ():
        name, value = _read_assignment("--set", text, "weight_cap=10")
        options[name] = _read_value(value)
    goal = {name: options.pop(name) for name in _GOAL if name in options}
    for name, value in goal.items():
        if not isinstance(value, int | float):
            raise InputError(f"--set {name} must be a number, got {value!r}; change it.")
    options |= {"paper_text": True} if paper_text else {}
    changed = replace(
        experiment,
        goal=replace(experiment.goal, **goal),
        classifier={**experiment.classifier, **read_options(options, "--set", _GOAL)},
    )
    if not vary:
        return changed
    varied: dict[str, tuple[Any, ...]] = {}
    for text in vary:
        name, values = _read_assignment("--vary", text, "weight_cap=1,3,none")
        varied[name] = (*varied.get(name, ()), *map(_read_value, names(values)))
    return replace(changed, vary=varied)


def _read_assignment(option: str, text: str, example: str) -> tuple[str, str]:
    """Return the name and the value in name=value; the name may be a letter of the paper.

    Examples
    --------
    >>> _read_assignment("--set", "τ=0.5", "weight_cap=10")
    ('coverage_threshold', '0.5')
    """
    name, equals, value = (part.strip() for part in text.partition("="))
    if not (name and equals and value):
        raise InputError(f"{option} takes name=value, such as {example}, got {text!r}; change it.")
    name = name.translate(_GREEK)
    return PAPER_LETTERS.get(name, name), value


def _read_value(text: str) -> Any:
    """Return a value of the command line: TOML, or else a word.

    Examples
    --------
    >>> [_read_value(text) for text in ("10", ".5", "true", "none", "sum-of-g")]
    [10, 0.5, True, 'none', 'sum-of-g']
    """
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return float(text) if re.fullmatch(r"\.\d+", text) else text


def run_or_resume(
    experiment: Experiment, options: RunOptions, quiet: bool
) -> tuple[Results, Any, Path]:
    """Run the missing repetitions; return the results, the source of applicants and the folder."""
    folder = _folder(experiment, options)
    for name in _RUN_FILES:
        check_apart("results", folder / name, "the data", [experiment.world.data], "folder")
    with download_bar(quiet) as bar:
        source = load_source(experiment.world, data=options.data, progress=bar)
    with counting_bar("repetitions", quiet) as progress:
        run = Run(folder, options.jobs, progress, options.fresh)
        return run_experiment(experiment, source, run), source, folder


def rows_drawn(experiment: Experiment, source: Any) -> tuple[int, list[str]]:
    """Return how many rows a repetition draws from a data set, and a note if rows repeat."""
    n_drawn = experiment.world.people_drawn(source)
    return n_drawn, repeated_rows_remarks(len(source) if isinstance(source, Table) else 0, n_drawn)


def run_and_report(
    experiment: Experiment, options: RunOptions, method: str | None, *, json: bool
) -> None:
    """Run an experiment, write its report and tables, and print the results.

    Parameters
    ----------
    experiment, options
        What to run, and how.
    method
        A method that the others are tested against, or None.
    json
        Whether JSON is printed instead of text.
    """
    before = _content(_folder(experiment, options) / "results.parquet")
    results, source, folder = run_or_resume(experiment, options, quiet=json)
    page = folder / "report.html"
    # Drawing takes seconds, so a run that is only printed again keeps its report.
    if not json or not page.is_file() or _content(folder / "results.parquet") != before:
        page.unlink(missing_ok=True)
        with progress("writing the report", json):
            write_tables([results], folder / "tables")
            write_report([results], page, folder / "figures")
    n_drawn, again = rows_drawn(experiment, source)
    shown = [overview(results, at) for at in range(len(results.settings))]
    tested = paired_tables(results, method)
    if json:
        print_json(
            {
                "folder": folder,
                "report": page,
                "results": folder / "results.parquet",
                "about": results.about,
                "people_drawn": n_drawn,
                "summary": [row for table in shown for row in table.rows],
                "claims": [row for table in claims_examined(results) for row in table.rows],
                "against": [row for test in tested for row in test.rows],
                "certificates": results.certificates,
                "failures": [asdict(failure) for failure in results.failures],
            }
        )
    else:
        console = Console()
        print_verdict(console, results)
        print_noted_tables(console, [*asked_tables(results), *tested])
        for line in again:
            console.print(line, style="dim")
        console.print(f"Report: {page.resolve()}", soft_wrap=True)
    exit_if_empty(results)


def _content(file: Path) -> bytes:
    return file.read_bytes() if file.is_file() else b""


def exit_if_empty(results: Results) -> None:
    """Exit with 2 if no method has results."""
    tried = [i for i, method in enumerate(results.methods) if method not in REFERENCES]
    if tried and not results.count("n_people")[:, tried].any():
        print_error(
            "no method has any numbers, since each failed in every repetition; correct the errors "
            "and give the same command with --fresh."
        )
        raise typer.Exit(2)


def _folder(experiment: Experiment, options: RunOptions) -> Path:
    return options.out or Path("results") / _slug(experiment)


def _slug(experiment: Experiment) -> str:
    """Return a folder name that differs for experiments that differ in more than repetitions."""
    parts = [experiment.name, *["compared"] * experiment.judged]
    parts += [f"{name} varied" for name in experiment.vary]
    if experiment.switches:
        off = [name for name in SWITCHES if name not in experiment.switches]
        few = len(experiment.switches) <= len(off)
        parts.append("with " + " ".join(experiment.switches) if few else "as released")
        parts += ["without " + " ".join(off)] if off and not few else []
    parts.append(experiment.fingerprint[:6])
    return re.sub(r"[^A-Za-z0-9]+", "-", " ".join(parts)).strip("-").lower()


def asked_tables(results: Results) -> list[ReportTable]:
    """Return tables about what was varied, and about parity if its cells were run."""
    varied = ("revenue", "pooled_fdr") if len(results.settings) > 1 else ()
    return [*(by_setting(results, name) for name in varied), *parity_costs(results, results.main)]


def paired_tables(results: Results, method: str | None) -> list[ReportTable]:
    """Return the table of tests against one method, if that is asked for."""
    return [] if method is None else [against(results, method, results.main)]


def csv_text(table: ReportTable) -> str:
    """Return all keys of the rows as csv; unknown numbers are empty."""
    names = dict.fromkeys(name for row in table.rows for name in row)
    columns = {visible(name): [_in_csv(row.get(name)) for row in table.rows] for name in names}
    return csv_bytes(arrow().table(columns)).decode("utf-8")


def _in_csv(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_tables(results: Sequence[Results], folder: Path) -> list[Path]:
    """Write every table of results as csv, LaTeX and Markdown; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for section, result in section_ids(results).items():
        for table in all_tables(result):
            name = table.name if len(results) == 1 else f"{section}-{table.name}"
            formats = {".csv": csv_text(table), ".tex": table.latex(), ".md": table.markdown()}
            for ending, text in formats.items():
                written.append(folder / f"{name}{ending}")
                written[-1].write_text(text, encoding="utf-8")
    return written


def print_noted_tables(console: Console, tables: Sequence[ReportTable]) -> None:
    """Print tables in a terminal; a note on several tables is printed once, below the last."""
    for at, table in enumerate(tables):
        titles = [column.title for column in table.columns]
        print_table(console, f"{table.title}. {table.setting}", titles, table.texts())
        notes = {part for other in tables[at + 1 :] for part in _notes(other)}
        for note in _notes(table):
            if note not in notes:
                console.print(note, style="dim")


def _notes(table: ReportTable) -> list[str]:
    return [*filter(None, (table.note, table.unit)), *table.remarks]


def print_verdict(console: Console, results: Results) -> None:
    """Print the verdict, the methods that earned most, and failures."""
    verdict = find_verdict(results)
    if verdict.standings:
        console.print(words.takeaway(verdict), style="bold")
        more = (words.in_groups, words.certificate, words.exploration, words.loser, words.precision)
        said = [words.beyond(results, verdict), *(write(verdict) for write in more)]
        for sentence in filter(None, said):
            console.print(sentence)
        _print_standings(console, results, verdict)
    for failure in words.failures(results):
        console.print(f"• {failure}", style="bold")


def _print_standings(console: Console, results: Results, verdict: Verdict) -> None:
    """Print a line for each of the methods that earned most, the named ones among them."""
    named = (verdict.best, verdict.worst, verdict.yardstick)
    rest = [one for one in verdict.standings if one not in named]
    shown = [*filter(None, named), *rest[: _SHOWN - sum(one is not None for one in named)]]
    rows = [_standing_cells(one, verdict) for one in verdict.standings if one in shown]
    where, late = setting_of(results, results.main), counted(verdict.late_rounds, "round")
    title = f"Earned in the last {late}. {where}"
    of = f"of {verdict.yardstick.method}" if verdict.yardstick else "share"
    print_table(console, title, ("method", "earned a round", of, "mistakes", "kept α"), rows)
    left = len(verdict.standings) - len(shown)
    if left:
        console.print(f"{counted(left, 'other method')}: see the report.", style="dim")


def _standing_cells(one: Standing, verdict: Verdict) -> list[str]:
    name = one.label + " (best)" * (one is verdict.best) + " (worst)" * (one is verdict.worst)
    kept = {"green": "yes", "amber": "unclear", "red": "no"}[one.light]
    if kept == "yes" and one.certificate is not None and one.certificate.never_share < 1:
        kept = "certified"
    return [name, money(one.earned.mean), rate(one.share.mean), rate(one.mistakes.mean), kept]


@contextmanager
def download_bar(quiet: bool) -> Iterator[Callable[[int, int | None], None] | None]:
    """Show how much has been downloaded, on standard error, if anything is."""
    if quiet:
        yield None
        return
    with make_bar(DownloadColumn()) as bar:
        tasks: list[Any] = []

        def show(done: int, total: int | None) -> None:
            if not tasks:
                tasks.append(bar.add_task("downloading", total=total))
            bar.update(tasks[0], completed=done, total=total)

        yield show
