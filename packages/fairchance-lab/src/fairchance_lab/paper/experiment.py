"""The paper's experiments: three published settings."""

from __future__ import annotations

from dataclasses import replace

from fairchance.errors import InputError
from fairchance_lab.experiments import check_paper_experiment
from fairchance_lab.experiments.methods import ABLATIONS, REFERENCES, VARIANTS
from fairchance_lab.experiments.spec import Experiment, Goal, stated_goal
from fairchance_lab.experiments.world_spec import WorldSpec

__all__ = ["DEFAULT_METHODS", "EXPERIMENTS", "paper_experiment"]

DEFAULT_METHODS = (
    *VARIANTS,
    *ABLATIONS,
    "certified",
    "fair-clf",
    "fair-clf-schedule",
    *REFERENCES,
)

EXPERIMENTS = {
    "german": Experiment(
        "german",
        WorldSpec("german", "sex", n_batch=500, n_rounds=39),
        DEFAULT_METHODS,
        published="german_gender",
    ),
    "adult-race": Experiment(
        "adult-race",
        WorldSpec("adult-ca-2019", "race", n_parts=40),
        DEFAULT_METHODS,
        published="adult_race",
    ),
    "adult-gender": Experiment(
        "adult-gender",
        WorldSpec("adult-ca-2019", "gender", n_parts=40),
        DEFAULT_METHODS,
        published="adult_gender",
    ),
}


def paper_experiment(name: str, data: str | None = None) -> Experiment:
    """Return a published setting, on its own data or on a similar data set."""
    check_paper_experiment(name)
    experiment = EXPERIMENTS[name]
    if data is None or data == experiment.world.data:
        return experiment
    if name == "german":
        raise InputError("the german experiment runs on its bundled data; leave the data out.")
    world, goal = replace(experiment.world, data=data), Goal(**stated_goal(data))
    return replace(experiment, name=f"{name} on {data}", world=world, goal=goal)
