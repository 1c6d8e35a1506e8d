"""Worlds and methods for tests of the released code's deviations."""

from __future__ import annotations

from fairchance.simulate.populations import Lender
from fairchance.simulate.run import run
from fairchance_lab.experiments.methods import Setup
from fairchance_lab.experiments.spec import Goal
from fairchance_lab.experiments.world_spec import WorldSpec
from fairchance_lab.paper.released.classifier import build_released

GERMAN = WorldSpec("german", "sex", n_batch=200, n_rounds=4)


LENDER = WorldSpec("lender", n_batch=300, n_rounds=4, n_history=400, past=({"rule": "policy"},))


def on(*names):
    return frozenset(names)


def lender_setup(seed=0, spec=LENDER, options=None, **goal):
    world = spec.build(Lender(), seed)
    return world, Setup(world.history(), Goal(**goal), True, 5, options=options or {})


def driven(method, world):
    """Return a method's decisions in a world, round by round, with the groups."""
    return [(result.decided, result.applicants.people.group) for result in run(method, world)]


def released(name, *switches, seed=0, spec=LENDER, **goal):
    """Run a released variant in the lender's world; return it with its decisions."""
    world, setup = lender_setup(seed, spec, **goal)
    method = build_released(name, setup, on(*switches), {})
    return method, driven(method, world)
