"""Small worlds for tests."""

from __future__ import annotations

from fairchance.lab.simulate.histories import ByPolicy
from fairchance.lab.simulate.populations import Lender
from fairchance.lab.simulate.streams import Drawn
from fairchance.lab.simulate.worlds import World


def lender_world(seed, *, n_history=600, n_batch=300, n_rounds=6, population=None, **options):
    """Return a world of applicants whom the past decided on by their features and group."""
    population = Lender() if population is None else population
    stream = Drawn(population, n_batch, n_rounds, n_history)
    past = ByPolicy(population.probability_accepted_before)
    return World(stream, past, seed=seed, **options)
