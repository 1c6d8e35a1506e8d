"""``secondlook compare``: methods side by side on the same people, judged on all there are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from secondlook.cli.options import (
    Backend,
    Data,
    DataSet,
    Fresh,
    HowToRun,
    Jobs,
    Json,
    Out,
    Repetitions,
    Scheduler,
    Seed,
    changed,
    check_jobs,
    errors,
    method_names,
)
from secondlook.errors import InputError
from secondlook.lab.experiments.paper_names import PAPER_EXPERIMENTS, check_experiment

__all__ = ["compare"]


def compare(
    name: Annotated[
        str, typer.Argument(help=f"{', '.join(PAPER_EXPERIMENTS)}, or a TOML file of a world.")
    ] = "german",
    repetitions: Repetitions = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Names with commas between (see: secondlook methods), module:function for your "
            "own, usual for seven that are well compared; default what the file says, or usual."
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
    """Compare methods: what they earn of what can be earned, and whether they keep α."""
    with errors(json):
        check_jobs(jobs)
        asked = None if methods is None else method_names(methods)
        from_file = Path(name).suffix == ".toml"
        if not from_file:
            check_experiment(name)
        elif data_set is not None:
            raise InputError(
                f"--data-set is for the paper's experiments, and {name} names its own data; leave "
                f"it out."
            )
        from secondlook.cli.compared_words import print_compared  # noqa: PLC0415 - slow to import
        from secondlook.cli.running import exit_if_nothing, met_again, ran  # noqa: PLC0415
        from secondlook.lab.experiments.comparison import USUAL, comparison  # noqa: PLC0415
        from secondlook.lab.experiments.methods import check_methods  # noqa: PLC0415
        from secondlook.lab.experiments.paper import paper_experiment  # noqa: PLC0415
        from secondlook.lab.experiments.world_file import read_world_file  # noqa: PLC0415

        if from_file:
            experiment = read_world_file(Path(name))
            wanted = experiment.methods
        else:
            experiment, wanted = paper_experiment(name, data_set), (USUAL,)
        experiment = changed(comparison(experiment, asked or wanted), repetitions, seed)
        check_methods(experiment.methods)
        how = HowToRun(data, jobs, backend, scheduler, out, fresh)
        results, source, folder = ran(experiment, how, quiet=json)
        drawn = met_again(experiment, source)
        print_compared(results, folder, drawn, json=json, as_markdown=markdown)
        exit_if_nothing(results)
