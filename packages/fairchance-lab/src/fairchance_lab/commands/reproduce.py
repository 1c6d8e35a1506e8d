"""``fairchance reproduce``: run one of the paper's experiments."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from fairchance.cli.options import Jobs, Json, check_jobs, errors, names
from fairchance.errors import InputError
from fairchance_lab.commands.options import (
    Against,
    Data,
    DataSet,
    Fresh,
    Methods,
    Out,
    PaperText,
    Repetitions,
    RunOptions,
    Seed,
    Set,
    Vary,
    check_against,
    method_names,
    with_options,
)
from fairchance_lab.experiments import PAPER_EXPERIMENTS, check_paper_experiment
from fairchance_lab.paper.released import SWITCHES, check_switches

*_FIRST, _LAST = PAPER_EXPERIMENTS


def reproduce(
    name: Annotated[str, typer.Argument(help=f"{', '.join(_FIRST)} or {_LAST}.")],
    repetitions: Repetitions = None,
    methods: Methods = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Train deep methods by their quick schedules.")
    ] = False,
    data_set: DataSet = None,
    as_released: Annotated[
        bool, typer.Option("--as-released", help="Switch on all deviations of the released code.")
    ] = False,
    switch: Annotated[
        str, typer.Option(help="Deviations to switch on, such as C1,C2 (see: fairchance switches).")
    ] = "",
    without: Annotated[
        str, typer.Option(help="With --as-released: deviations to leave off, such as A9.")
    ] = "",
    set_: Set = None,
    paper_text: PaperText = False,
    vary: Vary = None,
    seed: Seed = None,
    data: Data = None,
    jobs: Jobs = -1,
    out: Out = None,
    fresh: Fresh = False,
    against: Against = None,
    json: Json = False,
) -> None:
    """Run one of the paper's experiments: table, figures and report.

    Example: fairchance reproduce adult-race --data-set acs-ca-2018-sample --repetitions 5
    """
    with errors(json):
        check_paper_experiment(name)
        check_jobs(jobs)
        asked = method_names(methods)
        if without and not as_released:
            raise InputError(
                "--without leaves deviations off that --as-released switches on; add it."
            )
        check_switches((*names(switch), *names(without)))
        from fairchance_lab.paper.experiment import paper_experiment  # noqa: PLC0415
        from fairchance_lab.runs import run_and_report, with_methods, with_set  # noqa: PLC0415 - slow

        experiment = paper_experiment(name, data_set)
        if asked is not None:
            experiment = with_methods(experiment, asked, quick=quick)
        on = set(SWITCHES) if as_released else set()
        if experiment.world.n_parts:
            on.discard("A9")  # nothing is resampled there
        chosen = (on | set(names(switch))) - set(names(without))
        experiment = replace(experiment, switches=check_switches(chosen))
        experiment = with_options(experiment, repetitions, seed)
        experiment = with_set(experiment, set_, paper_text, vary)
        options = RunOptions(data, jobs, out, fresh)
        check_against(against, experiment.methods)
        run_and_report(experiment, options, against, json=json)
