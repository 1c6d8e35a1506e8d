"""``secondlook compare``: methods side by side on the same people, judged on all there are."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from secondlook.cli.backends import prepared
from secondlook.cli.json_output import as_json
from secondlook.cli.options import (
    Backend,
    Data,
    Fresh,
    Jobs,
    Json,
    Out,
    Repetitions,
    Scheduler,
    Seed,
    changed,
    errors,
    exit_if_nothing,
    names,
    slug,
)
from secondlook.cli.output import download_bar, repetition_bar
from secondlook.cli.programs.fitted_tables import print_fitted
from secondlook.errors import InputError
from secondlook.experiments.cautions import failures
from secondlook.experiments.comparison import (
    USUAL,
    Breaks,
    Compared,
    Earned,
    compared,
    comparison,
    unjudged,
)
from secondlook.experiments.methods import check_methods
from secondlook.experiments.paper import EXPERIMENTS, paper_experiment
from secondlook.experiments.results import Results
from secondlook.experiments.runner import Run, run_experiment
from secondlook.experiments.sources import load_source
from secondlook.experiments.spec import Experiment
from secondlook.experiments.tables import main_alpha
from secondlook.experiments.words import what_was_run
from secondlook.experiments.world_file import read_world_file

__all__ = ["compare", "markdown"]

_KEY = (
    "early, middle, late, whole: expected revenue of the policies in use as a share of the offline "
    "optimum's (opt-hindsight), in the first 5 rounds, in between, in the last quarter, in all. "
    "> α: share of rounds whose policy has an FDR above α, and in how many of the runs with such "
    "rounds that happens; cert: rounds with a certificate; pilot: rounds without, which are all "
    "rounds of a method that gives none. TPR: chance of a group's good people to be accepted, "
    "late. All this is judged on the whole population. explored: share of the accepted."
)


def compare(
    name: Annotated[
        str, typer.Argument(help="german, adult-race, adult-gender, or a TOML file of a world.")
    ] = "german",
    repetitions: Repetitions = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Names with commas between (see: secondlook methods), module:function for your "
            "own, usual for seven that are well compared; default what the file says, or usual."
        ),
    ] = None,
    data_set: Annotated[
        str | None, typer.Option(help="Another ACS data set for the adult experiments.")
    ] = None,
    markdown_wanted: Annotated[
        bool, typer.Option("--markdown", help="Print a Markdown table.")
    ] = False,
    seed: Seed = None,
    data: Data = None,
    jobs: Jobs = -1,
    backend: Backend = None,
    scheduler: Scheduler = None,
    out: Out = None,
    fresh: Fresh = False,
    json: Json = False,
) -> None:
    """Compare methods: what they earn of what can be earned, and whether they keep α."""
    with errors(json):
        experiment, wanted = _experiment(name, data_set)
        wanted = wanted if methods is None else names(methods)
        experiment = changed(comparison(experiment, wanted), repetitions, seed)
        check_methods(experiment.methods)
        folder = out or Path("results") / slug(experiment)
        quiet = json or markdown_wanted
        with download_bar(quiet) as bar:
            source = load_source(experiment.world, data=data, progress=bar)
        with prepared(backend, jobs, scheduler), repetition_bar(json) as progress:
            run = Run(folder, jobs, backend, progress, fresh)
            results = run_experiment(experiment, source, run)
        _print(results, folder, json=json, as_markdown=markdown_wanted)
        exit_if_nothing(results)


def _experiment(name: str, data_set: str | None) -> tuple[Experiment, tuple[str, ...]]:
    """Return what to run, and which methods are compared there unless others are asked for."""
    if name in EXPERIMENTS or Path(name).suffix != ".toml":
        return paper_experiment(name, data_set), (USUAL,)
    if data_set is not None:
        raise InputError(
            f"--data-set is for the paper's experiments, and {name} names its own data; leave it "
            f"out."
        )
    experiment = read_world_file(Path(name))
    return experiment, experiment.methods


def _print(results: Results, folder: Path, *, json: bool, as_markdown: bool) -> None:
    found = compared(results)
    if json:
        as_json(
            {
                "folder": folder,
                "results": folder / "results.parquet",
                "about": results.about,
                "comparison": [asdict(one) for one in found],
                "certificates": results.certificates,
                "failures": [asdict(one) for one in results.failures],
            }
        )
    elif as_markdown:
        print(markdown(found))
        for sentence in _notes(results):
            print(f"\n{sentence}")
    else:
        console = Console()
        console.print(what_was_run(results), highlight=False)
        title = f"α = {results.alphas[main_alpha(results)]:g}"
        heads = _heads(found)
        rates = [head for head in heads if head.startswith("TPR ")]
        rows = [[one.method, *_cells(one, with_errors=False)] for one in found]
        print_fitted(console, title, heads, rows, ["explored", "middle", *rates[::-1], "early"])
        console.print(_KEY, style="dim", highlight=False)
        for sentence in _notes(results):
            console.print(f"• {sentence}", style="bold", highlight=False)
        console.print(f"Results: {folder.resolve()}", soft_wrap=True, highlight=False)


def _notes(results: Results) -> list[str]:
    """Return what to know of single methods: which failed, and which cannot be judged."""
    return failures(results) + [
        f"{method} has no acceptance_probability(X, sensitive_features=…), so what it earns in the "
        f"population and how often it breaks α are not known; give it one (docs/worlds.md)."
        for method in unjudged(results)
    ]


def markdown(found: list[Compared]) -> str:
    """Return the comparison as a Markdown table.

    Examples
    --------
    >>> never, always = Breaks(0, 0, 0, 0), Breaks(40, 10, 2, 1)
    >>> earned = {"early": Earned(0.5, 0.01), "late": Earned(0.8, float("nan"))}
    >>> one = Compared("plain", "Algorithm 1", earned, never, always, {"A": 0.4}, 0.1)
    >>> print(markdown([one]))
    | method | early | late | cert > α | pilot > α | TPR A | explored |
    |---|---|---|---|---|---|---|
    | plain | .50 ± .01 | .80 | – | .25 (1/2) | .40 | .10 |
    """
    heads = _heads(found)
    rows = [[one.method, *_cells(one, with_errors=True)] for one in found]
    lines = [heads, ["---"] * len(heads), *rows]
    text = ["| " + " | ".join(line) + " |" for line in lines]
    text[1] = text[1].replace(" ", "")
    return "\n".join(text)


def _heads(found: list[Compared]) -> list[str]:
    groups = [f"TPR {group}" for group in found[0].true_positive_rates]
    return ["method", *found[0].earned, "cert > α", "pilot > α", *groups, "explored"]


def _cells(one: Compared, *, with_errors: bool) -> list[str]:
    return [
        *(_earned(part, with_errors) for part in one.earned.values()),
        _breaks(one.certified),
        _breaks(one.uncertified),
        *(_two(rate) for rate in one.true_positive_rates.values()),
        _two(one.explored),
    ]


def _earned(one: Earned, with_error: bool) -> str:
    error = f" ± {_two(one.standard_error)}"
    return _two(one.share) + error * (with_error and math.isfinite(one.standard_error))


def _breaks(one: Breaks) -> str:
    if not one.rounds:
        return "–"
    return f"{_two(one.share_of_rounds)} ({one.broken_runs}/{one.runs})"


def _two(value: Any) -> str:
    """Write a share with two decimals and no leading zero."""
    if not math.isfinite(value):
        return "–"
    text = f"{abs(value):.2f}"
    text = text.removeprefix("0")
    return f"−{text}" if value < 0 and text != ".00" else text
