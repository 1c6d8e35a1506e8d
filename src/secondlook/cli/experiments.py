"""Run methods in worlds: ``secondlook reproduce``, ``simulate`` and ``plan``."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from secondlook.cli.on_record import OnRecord
from secondlook.cli.options import (
    Backend,
    Data,
    DataSet,
    Fresh,
    HowToRun,
    Jobs,
    Json,
    Methods,
    Out,
    Repetitions,
    Scheduler,
    Seed,
    changed,
    check_jobs,
    errors,
    method_names,
    names,
)
from secondlook.errors import InputError
from secondlook.lab.experiments.paper_names import PAPER_EXPERIMENTS, check_experiment
from secondlook.lab.experiments.released.switches import SWITCHES, check_switches

if TYPE_CHECKING:
    from secondlook.lab.simulate.streams import Stream

__all__ = ["plan", "reproduce", "simulate"]

*_FIRST, _LAST = PAPER_EXPERIMENTS


def reproduce(
    name: Annotated[str, typer.Argument(help=f"{', '.join(_FIRST)} or {_LAST}.")],
    repetitions: Repetitions = None,
    methods: Methods = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Train deep methods by their quick schedules.")
    ] = False,
    data_set: DataSet = None,
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
        check_experiment(name)
        check_jobs(jobs)
        asked = None if methods is None else method_names(methods)
        if without and not as_released:
            raise InputError(
                "--without leaves deviations off that --as-released switches on; add it."
            )
        check_switches((*names(switch), *names(without)))
        from secondlook.cli.running import run_and_report, with_methods  # noqa: PLC0415 - slow
        from secondlook.lab.experiments.paper import alpha_sweep, paper_experiment  # noqa: PLC0415

        experiment = paper_experiment(name, data_set)
        if asked is not None:
            experiment = with_methods(experiment, asked, quick=quick)
        if sweep:
            experiment = alpha_sweep(experiment)
        on = set(SWITCHES) if as_released else set()
        if experiment.world.n_parts:
            on.discard("A9")  # nothing is resampled there
        chosen = (on | set(names(switch))) - set(names(without))
        experiment = replace(experiment, switches=check_switches(chosen))
        experiment = changed(experiment, repetitions, seed)
        how = HowToRun(data, jobs, backend, scheduler, out, fresh)
        run_and_report(experiment, how, ledger, json=json)


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
        check_jobs(jobs)
        asked = None if methods is None else method_names(methods)
        from secondlook.cli.running import run_and_report, with_methods  # noqa: PLC0415 - slow
        from secondlook.lab.experiments.world_file import read_world_file  # noqa: PLC0415

        experiment = changed(read_world_file(world), repetitions, seed)
        if asked is not None:
            experiment = with_methods(experiment, asked)
        how = HowToRun(data, jobs, backend, scheduler, out, fresh)
        run_and_report(experiment, how, ledger, json=json)


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
    accepted: Annotated[
        str,
        typer.Option(
            help="With a file: the column that says who was accepted; outcomes of others are not "
            "read. Default: everybody with an outcome was."
        ),
    ] = "",
    good_outcome: Annotated[
        str, typer.Option(help="With a file: which outcome is good; not needed for 1 and 0.")
    ] = "",
    features: Annotated[
        str, typer.Option(help="With a file: columns to decide by; default all with numbers.")
    ] = "",
    delay: Annotated[
        str,
        typer.Option(
            help="Rounds until an outcome comes, least and most: 3-9, or one number; 0 is before "
            "the next round."
        ),
    ] = "0",
    maturity: Annotated[
        int, typer.Option(help="Rounds before a round is tested, as the program will have it.")
    ] = 0,
    patience: Annotated[
        int | None,
        typer.Option(
            help="Rounds after which a missing outcome counts as bad, as the program will have it; "
            "default one more than the longest delay."
        ),
    ] = None,
    cells: Annotated[
        int, typer.Option(help="Kinds of people: also say what the paper's theorems ask for.")
    ] = 0,
    repetitions: Annotated[int, typer.Option(help="Simulated runs.")] = 20,
    jobs: Jobs = -1,
    json: Json = False,
) -> None:
    """Say how long a certificate takes, and what it costs until then."""
    with errors(json):
        if history is not None and not (outcome and group):
            raise InputError("a file needs --outcome and --group: the names of its columns.")
        if history is None and (outcome or group or accepted or good_outcome or features):
            raise InputError(
                "--outcome, --group, --accepted, --good-outcome and --features are about a file; "
                "name it with --history."
            )
        check_jobs(jobs)
        shares = _shares(groups)
        least, most = _delay(delay, rounds)
        if patience is None and most:
            patience = most + 1
        from secondlook.cli.output import Late, print_plan, repetition_bar  # noqa: PLC0415 - slow
        from secondlook.cli.planned_history import read_history  # noqa: PLC0415
        from secondlook.core.theory import Setting  # noqa: PLC0415
        from secondlook.lab.experiments.plan import Plan  # noqa: PLC0415
        from secondlook.lab.experiments.plan import plan as make_plan  # noqa: PLC0415
        from secondlook.lab.experiments.world_spec import drawn_again  # noqa: PLC0415
        from secondlook.lab.simulate.feedback import Between  # noqa: PLC0415
        from secondlook.lab.simulate.populations import Binormal  # noqa: PLC0415
        from secondlook.lab.simulate.streams import Drawn, Resampled  # noqa: PLC0415

        console, about = Console(), None
        if history is not None:
            columns = names(features)
            past = read_history(
                history,
                outcome=outcome,
                group=group,
                good=good_outcome,
                features=columns,
                accepted=accepted,
            )
            stream: Stream = Resampled(past.table, people, rounds)
            n_drawn = people * (rounds + 1)
            about = past.as_dict() | {"people_drawn": n_drawn}
            for line in [] if json else [*past.lines(), *drawn_again(len(past.table), n_drawn)]:
                console.print(line, highlight=False, soft_wrap=True)
        else:
            stream = Drawn(Binormal(good, auc, shares), people, rounds)
        wanted = Plan(
            stream,
            alpha,
            delta,
            gain,
            loss,
            group_as_feature=True,
            repetitions=repetitions,
            delay=Between(least, most),
            maturity=maturity,
            patience=patience,
        )
        theorems = Setting(cells, delta=delta) if cells else None
        with repetition_bar(json) as progress:
            found = make_plan(wanted, jobs=jobs, progress=progress)
        late = Late(least, most, maturity, patience)
        print_plan(console, found, json, theorems, people, about, late)


def _delay(text: str, rounds: int) -> tuple[int, int]:
    """Return the least and the most rounds that an outcome takes.

    Examples
    --------
    >>> _delay("3-9", 40), _delay("2", 40)
    ((3, 9), (2, 2))
    """
    found = re.fullmatch(r"\s*(\d+)\s*(?:[-–]\s*(\d+)\s*)?", text, re.ASCII)
    if found is None:
        raise InputError(
            f"--delay counts rounds and must look like 3-9, or be one number such as 3, got "
            f"{text!r}."
        )
    least, most = int(found[1]), int(found[2] or found[1])
    if most < least:
        raise InputError(
            f"--delay takes the least first, then the most, got {text!r}; write {most}-{least}."
        )
    if least and least >= rounds:
        raise InputError(
            f"an outcome that takes {least} rounds or more comes after the last of {rounds} "
            f"rounds; plan for more with --rounds, or shorten --delay."
        )
    return least, most


def _shares(text: str) -> tuple[tuple[str, float], ...]:
    if not text:
        return (("everybody", 1.0),)
    try:
        pairs = [part.split("=") for part in names(text)]
        return tuple((name.strip(), float(share)) for name, share in pairs)
    except ValueError:
        raise InputError(f"groups must look like A=0.8,B=0.2, got {text!r}.") from None
