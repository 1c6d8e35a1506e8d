"""Shared pieces: a small world, and classifiers that have decided a few rounds."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import settings

from secondlook import FdrBudget, GroupShare, PartialFeedbackClassifier, Revenue
from small_worlds import lender_world

# The same examples on every machine; HYPOTHESIS_PROFILE=default looks for new ones.
settings.register_profile("same", derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def make_classifier():
    """Return a function that fits a classifier to a world's history."""

    def make(seed=0, n_batch=300, n_rounds=6, **options):
        world = lender_world(seed, n_batch=n_batch, n_rounds=n_rounds)
        past = world.history()
        options = {"utility": Revenue(gain=200, loss=300), "strategy": GroupShare()} | options
        options.setdefault("budget", FdrBudget(alpha=0.15))
        classifier = PartialFeedbackClassifier(random_state=seed, **options)
        classifier.fit(
            past.people.X,
            past.outcomes,
            accepted=past.accepted,
            sensitive_features=past.people.group,
        )
        return classifier, world

    return make
