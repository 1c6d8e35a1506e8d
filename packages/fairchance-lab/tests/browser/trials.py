"""Results to show on pages, with plain or with hostile names."""

from __future__ import annotations

import numpy as np

from browser.worlds import plain
from fairchance.simulate.populations import Lender
from fairchance_lab.experiments.results import Failure, Results
from fairchance_lab.experiments.runner import Run, run_experiment
from fairchance_lab.experiments.spec import Experiment
from fairchance_lab.experiments.world_spec import WorldSpec

METHODS = ("plain", "mine", "certified-per-group", "no-exploration", "opt-offline", "ceiling")


def results(spell=plain, n_variants=0):
    """Return the results of a small experiment, with users' names spelled in a way."""
    world = WorldSpec("lender", n_batch=200, n_rounds=5, past=({"rule": "policy"},))
    variants = {f"cap {k}": {"method": "plain", "weight_cap": k} for k in range(1, n_variants + 1)}
    experiment = Experiment(
        "trial",
        world,
        (*METHODS, *variants),
        variants={"mine": {"method": "explore-fair", "weight_cap": 7}} | variants,
        vary={"alpha": (0.1, 0.15)},
        repetitions=2,
    )
    made = run_experiment(experiment, Lender(), Run(jobs=1))
    names = {name: spell(name) for name in ("trial", "mine", "A", "B", "lender")}
    names |= {made.about["data"][key]: spell(key) for key in ("source", "fingerprint")}
    failure = Failure(made.settings[0], names["mine"], 0, 1, spell("It failed."))

    def renamed(value):
        if isinstance(value, dict):
            return {renamed(key): renamed(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(map(renamed, value))
        return names.get(value, value) if isinstance(value, str) else value

    columns = {
        name: np.array(renamed(list(column)), column.dtype) for name, column in made.columns.items()
    }
    return Results(columns, renamed(made.about), renamed(made.certificates), (failure,))
