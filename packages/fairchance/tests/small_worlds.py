"""Small worlds for tests."""

from __future__ import annotations

from fairchance.simulate.histories import ByPolicy
from fairchance.simulate.populations import Lender
from fairchance.simulate.streams import Drawn
from fairchance.simulate.worlds import World


def lender_world(seed, *, n_history=600, n_batch=300, n_rounds=6, population=None, **options):
    """Return a world of applicants whom the past decided on by their features and group."""
    population = Lender() if population is None else population
    stream = Drawn(population, n_batch, n_rounds, n_history)
    past = ByPolicy(population.probability_accepted_before)
    return World(stream, past, seed=seed, **options)
