"""Shared pieces: a small world, and classifiers that have decided a few rounds."""

from __future__ import annotations

import numpy as np
import pytest

from secondlook import FdrBudget, GroupShare, PartialFeedbackClassifier, Revenue
from secondlook.simulate.populations import Lender
from secondlook.simulate.run import World


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def make_classifier():
    """Return a function that fits a classifier to a world's history."""

    def make(seed=0, n_history=600, **options):
        world = World(Lender(), seed)
        people, accepted, outcomes = world.history(n_history)
        options = {"utility": Revenue(gain=200, loss=300), "strategy": GroupShare()} | options
        options.setdefault("budget", FdrBudget(alpha=0.15))
        classifier = PartialFeedbackClassifier(random_state=seed, **options)
        classifier.fit(people.X, outcomes, accepted=accepted, sensitive_features=people.group)
        return classifier, world

    return make
