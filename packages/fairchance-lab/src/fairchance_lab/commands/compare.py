"""``fairchance compare``: methods on the same applicants, judged on the whole population."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from fairchance.cli.options import Jobs, Json, check_jobs, errors
from fairchance.cli.output import Console, print_json
from fairchance.errors import InputError
from fairchance_lab.commands.options import (
    Against,
    Data,
    DataSet,
    Fresh,
    Out,
    PaperText,
    Repetitions,
    RunOptions,
    Seed,
    Set,
    check_against,
    method_names,
    with_options,
)
from fairchance_lab.experiments import PAPER_EXPERIMENTS, check_paper_experiment

if TYPE_CHECKING:  # slow to import
    from fairchance_lab.experiments.results import Results


def compare(
    name: Annotated[
        str, typer.Argument(help=f"{', '.join(PAPER_EXPERIMENTS)}, or a TOML file of a world.")
    ] = "german",
    repetitions: Repetitions = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="As for simulate; usual is six methods and what full knowledge would earn, and "
            "the default without a file."
        ),
    ] = None,
    data_set: DataSet = None,
    set_: Set = None,
    paper_text: PaperText = False,
    seed: Seed = None,
    data: Data = None,
    jobs: Jobs = -1,
    out: Out = None,
    fresh: Fresh = False,
    against: Against = None,
    json: Json = False,
) -> None:
    """Compare methods: what they earn as a share of the ceiling, and whether they keep α.

    Example: fairchance compare german --repetitions 10
    """
    with errors(json):
        check_jobs(jobs)
        asked = method_names(methods)
        from_file = Path(name).suffix == ".toml"
        if not from_file:
            check_paper_experiment(name)
        elif data_set is not None:
            raise InputError(
                f"--data-set is for the paper's experiments, and {name} names its own data; leave "
                f"it out."
            )
        from fairchance_lab.experiments.comparison import USUAL, comparison  # noqa: PLC0415
        from fairchance_lab.experiments.methods import check_methods  # noqa: PLC0415
        from fairchance_lab.experiments.world_file import read_world_file  # noqa: PLC0415
        from fairchance_lab.paper.experiment import paper_experiment  # noqa: PLC0415
        from fairchance_lab.runs import (  # noqa: PLC0415
            exit_if_empty,
            rows_drawn,
            run_or_resume,
            with_set,
            write_tables,
        )

        if from_file:
            experiment = read_world_file(Path(name))
            wanted = experiment.methods
        else:
            experiment, wanted = paper_experiment(name, data_set), (USUAL,)
        experiment = with_options(comparison(experiment, asked or wanted), repetitions, seed)
        experiment = with_set(experiment, set_, paper_text)
        check_methods(experiment.methods, experiment.variants)
        check_against(against, experiment.methods)
        options = RunOptions(data, jobs, out, fresh)
        results, source, folder = run_or_resume(experiment, options, quiet=json)
        write_tables([results], folder / "tables")
        drawn = rows_drawn(experiment, source)
        print_compared(results, folder, drawn, against, json=json)
        exit_if_empty(results)


def print_compared(
    results: Results,
    folder: Path,
    drawn: tuple[int, list[str]],
    method: str | None,
    *,
    json: bool,
) -> None:
    """Print a comparison as text or JSON.

    Parameters
    ----------
    results, folder
        The results, and where they are.
    drawn
        How many applicants a repetition draws from a data set, and notes if rows repeat.
    method
        A method that the others are tested against, or None.
    json
        Whether JSON is printed instead of text.
    """
    from fairchance_lab.experiments.all_tables import judged  # noqa: PLC0415
    from fairchance_lab.experiments.comparison import find_unjudged  # noqa: PLC0415
    from fairchance_lab.runs import (  # noqa: PLC0415 - slow to import
        paired_tables,
        print_noted_tables,
        print_verdict,
    )

    table, (n_drawn, again) = judged(results, results.main), drawn
    tested = paired_tables(results, method)
    unjudged = [
        f"{name} has no acceptance_probability(X, sensitive_features=…), so what it earns in the "
        f"population is not known (documentation: World files)."
        for name in find_unjudged(results)
    ]
    if json:
        print_json(
            {
                "folder": folder,
                "results": folder / "results.parquet",
                "about": results.about,
                "people_drawn": n_drawn,
                "comparison": table.rows,
                "against": [row for test in tested for row in test.rows],
                "certificates": results.certificates,
                "failures": [asdict(failure) for failure in results.failures],
            }
        )
    else:
        console = Console()
        print_verdict(console, results)
        print_noted_tables(console, tested)
        for sentence in unjudged:
            console.print(f"• {sentence}", style="bold")
        for line in again:
            console.print(line, style="dim")
        console.print(f"Results: {folder.resolve()}", soft_wrap=True)
        page = f"fairchance results {quote(str(folder))} -o {quote(str(folder / 'report.html'))}"
        console.print(f"As a page with figures: {page}", soft_wrap=True)
