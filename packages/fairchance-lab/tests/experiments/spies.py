"""Methods that record what they were given."""

from __future__ import annotations

import numpy as np

from fairchance.core.decisions import Decisions
from fairchance.simulate.people import Table
from fairchance_lab.experiments.world_spec import WorldSpec

N = 200
SPEC = WorldSpec("numbered", n_batch=80, n_rounds=4, past=({"rule": "random", "rate": 0.5},))


def numbered_people():
    """Return people whose first feature is their number."""
    rng = np.random.default_rng(9)
    X = np.column_stack([np.arange(N), rng.normal(size=N), rng.normal(size=N)])
    group = rng.choice(["old", "mid", "new"], N, p=[0.5, 0.3, 0.2])
    outcome = (rng.random(N) < 0.6).astype(np.int8)
    unscaled = ("number", "income")
    return Table("numbered", "A test.", ("number", "income", "debt"), X, group, outcome, unscaled)


class Spy:
    """Decides by the number of a person, and keeps its inputs."""

    def __init__(self, setup):
        self.setup, self.batches, self.decided, self.observed = setup, [], [], {}

    def decide(self, X, *, sensitive_features=None, ids=None):
        number, t = X[:, 0].astype(int), len(self.batches) + 1
        self.batches.append((number, X, sensitive_features))
        exploit = number % 3 != 0
        accepted = (number * 7 + t) % 5 < 2
        names = np.arange(number.size) + 1000 * t
        ones = np.ones(number.size)
        self.decided.append(Decisions(names, accepted, exploit, ones, ones, t))
        return self.decided[-1]

    def observe(self, ids, outcomes):
        self.observed |= dict(zip(ids.tolist(), outcomes.tolist(), strict=True))
