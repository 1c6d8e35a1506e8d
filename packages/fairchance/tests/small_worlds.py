"""Small worlds for tests."""

from __future__ import annotations

import numpy as np

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


def past_of(rng, share, n=900):
    """Return a history in which the past accepted a share, by a noisy rule of the features."""
    X = rng.normal(size=(n, 3))
    y = (X[:, 0] + rng.normal(size=n) > -0.5).astype(int)
    wish = X[:, 0] + X[:, 1] + rng.logistic(size=n)
    return X, y, wish > np.quantile(wish, 1 - share)
