"""Run methods in worlds: ``secondlook reproduce``, ``simulate`` and ``plan``."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from secondlook.cli.backends import prepared
from secondlook.cli.json_output import as_json
from secondlook.cli.on_record import OnRecord, check_on_record, in_one_line, proved
from secondlook.cli.options import (
    Backend,
    Data,
    Fresh,
    Jobs,
    Json,
    Methods,
    Out,
    Repetitions,
    Scheduler,
    Seed,
    changed,
    errors,
    exit_if_nothing,
    names,
    slug,
    status,
)
from secondlook.cli.output import (
    download_bar,
    print_plan,
    print_results,
    repetition_bar,
    summary_rows,
)
from secondlook.datasets import read_table
from secondlook.errors import InputError
from secondlook.experiments.baseline_methods import left_out
from secondlook.experiments.methods import expanded
from secondlook.experiments.paper import alpha_sweep, paper_experiment
from secondlook.experiments.plan import Plan
from secondlook.experiments.plan import plan as make_plan
from secondlook.experiments.released.switches import SWITCHES, check_switches
from secondlook.experiments.report import write_report
from secondlook.experiments.runner import Run, run_experiment
from secondlook.experiments.sources import load_source
from secondlook.experiments.spec import Experiment
from secondlook.experiments.world_file import read_world_file
from secondlook.simulate.populations import Binormal
from secondlook.simulate.streams import Drawn, Resampled, Stream
from secondlook.theory import Setting

__all__ = ["plan", "reproduce", "simulate"]


def reproduce(
    name: Annotated[str, typer.Argument(help="german, adult-race or adult-gender.")],
    repetitions: Repetitions = None,
    methods: Methods = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Train deep methods by their quick schedules.")
    ] = False,
    data_set: Annotated[
        str | None, typer.Option(help="Another ACS data set for the adult experiments.")
    ] = None,
    sweep: Annotated[
        bool, typer.Option("--alpha-sweep", help="At α = 0.05, 0.10, …, 0.30.")
    ] = False,
    as_released: Annotated[
        bool, typer.Option("--as-released", help="Switch on all deviations of the released code.")
    ] = False,
    switch: Annotated[
        str, typer.Option(help="Deviations to switch on, such as C1,C2 (see: secondlook switches).")
    ] = "",
    without: Annotated[
        str, typer.Option(help="With --as-released: deviations to leave off, such as A9.")
    ] = "",
    seed: Seed = None,
    data: Data = None,
    jobs: Jobs = -1,
    backend: Backend = None,
    scheduler: Scheduler = None,
    out: Out = None,
    fresh: Fresh = False,
    ledger: OnRecord = None,
    json: Json = False,
) -> None:
    """Run one of the paper's experiments: table, figures, report."""
    with errors(json):
        experiment = paper_experiment(name, data_set)
        if methods is not None:
            chosen_methods = expanded(names(methods), quick=quick)
            experiment = replace(experiment, methods=chosen_methods)
            if "all" in names(methods) and left_out():
                print(f"secondlook: {left_out()}", file=sys.stderr)
        if sweep:
            experiment = alpha_sweep(experiment)
        if without and not as_released:
            raise InputError(
                "--without leaves deviations off that --as-released switches on; add it."
            )
        on = set(SWITCHES) if as_released else set()
        if experiment.world.n_parts:
            on.discard("A9")  # nothing is resampled there
        chosen = (on | set(names(switch))) - set(check_switches(names(without)))
        experiment = replace(experiment, switches=check_switches(chosen))
        experiment = changed(experiment, repetitions, seed)
        run = Run(out or Path("results") / slug(experiment), jobs, backend, fresh=fresh)
        _run(experiment, run, data, scheduler, ledger, json)


def simulate(
    world: Annotated[Path, typer.Argument(help="A TOML file of a world (docs/worlds.md).")],
    repetitions: Repetitions = None,
    methods: Methods = None,
    seed: Seed = None,
    data: Data = None,
    jobs: Jobs = -1,
    backend: Backend = None,
    scheduler: Scheduler = None,
    out: Out = None,
    fresh: Fresh = False,
    ledger: OnRecord = None,
    json: Json = False,
) -> None:
    """Run methods in a world of your own, described in a file."""
    with errors(json):
        experiment = changed(read_world_file(world), repetitions, seed)
        if methods is not None:
            experiment = replace(experiment, methods=expanded(names(methods)))
        run = Run(out or Path("results") / slug(experiment), jobs, backend, fresh=fresh)
        _run(experiment, run, data, scheduler, ledger, json)


def plan(
    alpha: Annotated[float, typer.Option(help="Bound on the share of bad.")] = 0.15,
    delta: Annotated[float, typer.Option(help="Probability of breaking it.")] = 0.1,
    good: Annotated[float, typer.Option(help="Share of good applicants.")] = 0.7,
    auc: Annotated[float, typer.Option(help="How well a score tells good from bad.")] = 0.75,
    people: Annotated[int, typer.Option(help="Applicants a round.")] = 500,
    rounds: Annotated[int, typer.Option(help="Rounds to plan for.")] = 40,
    groups: Annotated[str, typer.Option(help="Groups with their shares: A=0.8,B=0.2.")] = "",
    gain: Annotated[float, typer.Option(help="What a good accepted person brings.")] = 200.0,
    loss: Annotated[float, typer.Option(help="What a bad one costs.")] = 500.0,
    history: Annotated[
        Path | None, typer.Option(help="Simulate from your csv or parquet instead of rates.")
    ] = None,
    outcome: Annotated[str, typer.Option(help="With a file: its outcome column.")] = "",
    group: Annotated[str, typer.Option(help="With a file: its group column.")] = "",
    cells: Annotated[
        int, typer.Option(help="Kinds of people: also say what the paper's theorems ask for.")
    ] = 0,
    repetitions: Annotated[int, typer.Option(help="Simulated runs.")] = 20,
    jobs: Jobs = -1,
    json: Json = False,
) -> None:
    """Say how long a certificate takes, and what it costs until then."""
    with errors(json):
        if history is not None:
            if not outcome or not group:
                raise InputError("a file needs --outcome and --group: the names of its columns.")
            table = read_table(history, outcome=outcome, group=group)
            stream: Stream = Resampled(table, people, rounds)
        else:
            stream = Drawn(Binormal(good, auc, _shares(groups)), people, rounds)
        wanted = Plan(
            stream, alpha, delta, gain, loss, group_as_feature=True, repetitions=repetitions
        )
        theorems = Setting(cells, delta=delta) if cells else None
        with repetition_bar(json) as progress:
            found = make_plan(wanted, jobs=jobs, progress=progress)
        print_plan(Console(), found, json, theorems, people)


def _run(
    experiment: Experiment,
    run: Run,
    data: Path | None,
    scheduler: str | None,
    ledger: str | None,
    json: bool,
) -> None:
    if ledger is not None:
        check_on_record(experiment)
    with download_bar(json) as bar:
        source = load_source(experiment.world, data=data, progress=bar)
    with prepared(run.backend, run.jobs, scheduler), repetition_bar(json) as progress:
        results = run_experiment(experiment, source, replace(run, progress=progress))
    folder = Path() if run.folder is None else run.folder
    page = folder / "report.html"
    with status("writing the report", json):
        write_report([results], page, folder / "figures")
    proof = None if ledger is None else proved(experiment, source, results, ledger, json)
    if json:
        as_json(
            {
                "folder": folder,
                "report": page,
                "results": folder / "results.parquet",
                "about": results.about,
                "summary": summary_rows(results),
                "certificates": results.certificates,
                "failures": [asdict(one) for one in results.failures],
            }
            | ({} if proof is None else {"ledger": proof})
        )
        exit_if_nothing(results)
        return
    console = Console()
    print_results(console, results)
    console.print(f"Report: {page.resolve()}", soft_wrap=True, highlight=False)
    if proof is not None:
        console.print(in_one_line(proof), soft_wrap=True, highlight=False)
    exit_if_nothing(results)


def _shares(text: str) -> tuple[tuple[str, float], ...]:
    if not text:
        return (("everybody", 1.0),)
    try:
        pairs = [part.split("=") for part in names(text)]
        return tuple((name.strip(), float(share)) for name, share in pairs)
    except ValueError:
        raise InputError(f"groups must look like A=0.8,B=0.2, got {text!r}.") from None
