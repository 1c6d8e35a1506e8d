"""``secondlook compare``: methods on the same applicants, judged on the whole population."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from secondlook.cli.options import (
    Backend,
    Data,
    DataSet,
    Fresh,
    Jobs,
    Json,
    Out,
    Repetitions,
    RunOptions,
    Scheduler,
    Seed,
    check_jobs,
    errors,
    method_names,
    with_options,
)
from secondlook.cli.output import Console, print_json, print_lines, print_table
from secondlook.errors import InputError
from secondlook.lab.experiments import PAPER_EXPERIMENTS, check_paper_experiment

if TYPE_CHECKING:  # slow to import
    from secondlook.lab.experiments.comparison import Breaks, Compared, Earned
    from secondlook.lab.experiments.results import Results


def compare(
    name: Annotated[
        str, typer.Argument(help=f"{', '.join(PAPER_EXPERIMENTS)}, or a TOML file of a world.")
    ] = "german",
    repetitions: Repetitions = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Names with commas between (see: secondlook methods), module:function for your "
            "own, usual for six and what full knowledge would earn; default what the file says, "
            "or usual."
        ),
    ] = None,
    data_set: DataSet = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a Markdown table.")] = False,
    seed: Seed = None,
    data: Data = None,
    jobs: Jobs = -1,
    backend: Backend = None,
    scheduler: Scheduler = None,
    out: Out = None,
    fresh: Fresh = False,
    json: Json = False,
) -> None:
    """Compare methods: what they earn as a share of the ceiling, and whether they keep α.

    Example: secondlook compare german --repetitions 10 --markdown
    """
    with errors(json):
        check_jobs(jobs)
        asked = None if methods is None else method_names(methods)
        from_file = Path(name).suffix == ".toml"
        if not from_file:
            check_paper_experiment(name)
        elif data_set is not None:
            raise InputError(
                f"--data-set is for the paper's experiments, and {name} names its own data; leave "
                f"it out."
            )
        from secondlook.cli.runs import exit_if_empty, rows_drawn, run_or_resume  # noqa: PLC0415
        from secondlook.lab.experiments.comparison import USUAL, comparison  # noqa: PLC0415
        from secondlook.lab.experiments.methods import check_methods  # noqa: PLC0415
        from secondlook.lab.experiments.paper import paper_experiment  # noqa: PLC0415
        from secondlook.lab.experiments.world_file import read_world_file  # noqa: PLC0415

        if from_file:
            experiment = read_world_file(Path(name))
            wanted = experiment.methods
        else:
            experiment, wanted = paper_experiment(name, data_set), (USUAL,)
        experiment = with_options(comparison(experiment, asked or wanted), repetitions, seed)
        check_methods(experiment.methods)
        options = RunOptions(data, jobs, backend, scheduler, out, fresh)
        results, source, folder = run_or_resume(experiment, options, quiet=json)
        drawn = rows_drawn(experiment, source)
        print_compared(results, folder, drawn, json=json, as_markdown=markdown)
        exit_if_empty(results)


_KEY = (
    "early, middle, late, whole: expected revenue of the policies in use as a share of the "
    "ceiling's, in the first 5 rounds, in between, in the last quarter, in all. {ceiling} "
    "logistic-all-labels and best-linear have the same labels. "
    "> α: share of rounds with a policy FDR above α, and in how many of the runs with such "
    "rounds that happens; cert: rounds with a certificate; pilot: rounds without, which are all "
    "rounds of a method that gives none. TPR: chance of a group's good people to be accepted, "
    "late. All this is judged on the whole population. explored: share of the accepted; ±: "
    "standard error over repetitions."
)


def print_compared(
    results: Results, folder: Path, drawn: tuple[int, list[str]], *, json: bool, as_markdown: bool
) -> None:
    """Print a comparison as text, as a Markdown table or as JSON.

    Parameters
    ----------
    results, folder
        The results, and where they are.
    drawn
        How many applicants a repetition draws from a data set, and notes if rows repeat.
    json, as_markdown
        The format; a table in the terminal if neither.
    """
    from secondlook.lab.experiments.comparison import (  # noqa: PLC0415 - slow to import
        CEILING_MEANS,
        compared,
    )
    from secondlook.lab.experiments.findings import what_was_run  # noqa: PLC0415
    from secondlook.lab.experiments.tables import main_alpha  # noqa: PLC0415

    rows_compared, (n_drawn, again) = compared(results), drawn
    if json:
        print_json(
            {
                "folder": folder,
                "results": folder / "results.parquet",
                "about": results.about,
                "people_drawn": n_drawn,
                "comparison": [asdict(row) for row in rows_compared],
                "certificates": results.certificates,
                "failures": [asdict(failure) for failure in results.failures],
            }
        )
    elif as_markdown:
        print_lines(markdown(rows_compared).split("\n"))
        for sentence in [f"Shares of the ceiling. {CEILING_MEANS}", *_notes(results), *again]:
            print_lines(["", sentence])
    else:
        console = Console()
        console.print(what_was_run(results))
        title = f"α = {results.alphas[main_alpha(results)]:g}"
        heads = _heads(rows_compared)
        rows = [[row.method, *_cells(row)] for row in rows_compared]
        print_table(console, title, heads, rows)
        console.print(_KEY.format(ceiling=CEILING_MEANS), style="dim")
        for sentence in _notes(results):
            console.print(f"• {sentence}", style="bold")
        for line in again:
            console.print(line, style="dim", soft_wrap=True)
        console.print(f"Results: {folder.resolve()}", soft_wrap=True)
        page = f"secondlook report {quote(str(folder))} -o {quote(str(folder / 'report.html'))}"
        console.print(f"As a page with figures: {page}", soft_wrap=True)


def _notes(results: Results) -> list[str]:
    """Return notes on methods that failed or cannot be judged."""
    from secondlook.lab.experiments.comparison import find_unjudged  # noqa: PLC0415 - slow
    from secondlook.lab.experiments.findings import failures  # noqa: PLC0415

    return failures(results) + [
        f"{method} has no acceptance_probability(X, sensitive_features=…), so what it earns in the "
        f"population and how often it breaks α are not known; give it one (docs/worlds.md)."
        for method in find_unjudged(results)
    ]


def markdown(rows_compared: list[Compared]) -> str:
    """Return the comparison as a Markdown table.

    Examples
    --------
    >>> from secondlook.lab.experiments.comparison import Breaks, Compared, Earned
    >>> never, always = Breaks(0, 0, 0, 0), Breaks(40, 10, 2, 1)
    >>> earned = {"early": Earned(0.5, 0.01), "late": Earned(0.8, float("nan"))}
    >>> plain = Compared("plain", "Algorithm 1", earned, never, always, {"A": 0.4}, 0.1)
    >>> print(markdown([plain]))
    | method | early | late | cert > α | pilot > α | TPR A | explored |
    |---|---|---|---|---|---|---|
    | plain | .50 ± .01 | .80 | – | .25 (1/2) | .40 | .10 |
    """
    heads = _heads(rows_compared)
    rows = [[row.method, *_cells(row)] for row in rows_compared]
    lines = [heads, ["---"] * len(heads), *rows]
    text = ["| " + " | ".join(line) + " |" for line in lines]
    text[1] = text[1].replace(" ", "")
    return "\n".join(text)


def _heads(rows_compared: list[Compared]) -> list[str]:
    groups = [f"TPR {group}" for group in rows_compared[0].true_positive_rates]
    return ["method", *rows_compared[0].earned, "cert > α", "pilot > α", *groups, "explored"]


def _cells(row: Compared) -> list[str]:
    return [
        *(_earned(part) for part in row.earned.values()),
        _breaks(row.certified),
        _breaks(row.uncertified),
        *(_two(rate) for rate in row.true_positive_rates.values()),
        _two(row.explored),
    ]


def _earned(earned: Earned) -> str:
    error = f" ± {_two(earned.standard_error)}"
    return _two(earned.share) + error * math.isfinite(earned.standard_error)


def _breaks(breaks: Breaks) -> str:
    if not breaks.rounds:
        return "–"
    return f"{_two(breaks.share_of_rounds)} ({breaks.broken_runs}/{breaks.runs})"


def _two(value: Any) -> str:
    """Write a share with two decimals and no leading zero."""
    if not math.isfinite(value):
        return "–"
    text = f"{abs(value):.2f}"
    text = text.removeprefix("0")
    return f"−{text}" if value < 0 and text != ".00" else text
