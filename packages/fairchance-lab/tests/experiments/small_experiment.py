"""A small experiment."""

from __future__ import annotations

from fairchance_lab.experiments.spec import Experiment
from fairchance_lab.experiments.world_spec import WorldSpec

SPEC = WorldSpec("lender", n_batch=80, n_rounds=3, past=({"rule": "policy"},))
SMALL = Experiment(
    "small", SPEC, ("plain", "opt-offline"), vary={"alpha": (0.15, 0.25)}, repetitions=4
)
