"""``fairchance simulate``: run methods in a simulated world."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairchance.cli.options import Jobs, Json, check_jobs, errors
from fairchance_lab.commands.options import (
    Against,
    Data,
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


def simulate(
    world: Annotated[
        Path, typer.Argument(help="A TOML file of a world (documentation: World files).")
    ],
    repetitions: Repetitions = None,
    methods: Methods = None,
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
    """Run methods in a simulated world that a file describes.

    Example: fairchance simulate examples/worlds/overlooked-group.toml
    """
    with errors(json):
        check_jobs(jobs)
        asked = method_names(methods)
        from fairchance_lab.experiments.world_file import read_world_file  # noqa: PLC0415
        from fairchance_lab.runs import run_and_report, with_methods, with_set  # noqa: PLC0415 - slow

        experiment = with_options(read_world_file(world), repetitions, seed)
        experiment = with_set(experiment, set_, paper_text, vary)
        if asked is not None:
            experiment = with_methods(experiment, asked)
        options = RunOptions(data, jobs, out, fresh)
        check_against(against, experiment.methods)
        run_and_report(experiment, options, against, json=json)
