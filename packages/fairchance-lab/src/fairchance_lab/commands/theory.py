"""``fairchance theory``: how many applicants the paper's theorems require."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from fairchance.cli.options import Json, errors
from fairchance.cli.output import print_json, print_lines
from fairchance_lab.paper.theory import (
    Setting,
    convergence,
    feasibility,
    improvement,
    theory_lines,
)


def theory(
    cells: Annotated[int, typer.Option(help="Kinds of applicants by features and group.")],
    people: Annotated[int, typer.Option(help="Applicants per round.", min=1)] = 500,
    delta: Annotated[float, typer.Option(help="Probability that the promise fails.")] = 0.1,
    tau: Annotated[float, typer.Option(help="Coverage above which a cell is known.")] = 0.5,
    epsilon: Annotated[float, typer.Option(help="Slack; at most a third of λ counts.")] = 0.05,
    alpha_explore: Annotated[float, typer.Option(help="Part of α left to exploration.")] = 0.05,
    min_selection_rate: Annotated[
        float, typer.Option(help="λ, the least share of applicants that is accepted.")
    ] = 0.2,
    json: Json = False,
) -> None:
    """Print how many applicants and rounds the paper's theorems require.

    Example: fairchance theory --cells 20 --people 1000
    """
    with errors(json):
        setting = Setting(
            cells,
            tau=tau,
            epsilon=epsilon,
            alpha_explore=alpha_explore,
            min_selection_rate=min_selection_rate,
            delta=delta,
        )
        if json:
            bounds = feasibility(setting), improvement(setting), convergence(setting)
            print_json({"theorems": [asdict(bound) for bound in bounds]})
        else:
            print_lines(theory_lines(setting, people))
