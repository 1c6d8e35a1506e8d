"""Programs for the tests of the ledger."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import sqlalchemy as sa

import fairchance as fc
from fairchance.ledger.program import Program
from fairchance.ledger.sql import SqlLedger
from small_worlds import lender_world

KEYS = ("ids", "accepted", "exploit", "score", "propensity", "round", "certified")


def algorithm_1(**options):
    options = {"utility": fc.Revenue(gain=200, loss=300), "strategy": fc.GroupShare()} | options
    return fc.PartialFeedbackClassifier(budget=fc.FdrBudget(alpha=0.15), random_state=3, **options)


def certified(**options):
    return fc.CertifiedClassifier(horizon=6, random_state=3, **options)


def same(one, other):
    return all(np.array_equal(getattr(one, key), getattr(other, key)) for key in KEYS)


@cache
def _tables():
    """Return the file of an empty ledger: migrations take longer than a copy."""
    with TemporaryDirectory() as folder:
        SqlLedger(f"sqlite:///{folder}/x.db", make=True).engine.dispose()
        return Path(folder, "x.db").read_bytes()


def started(url, classifier, n_batch=200, n_rounds=6, seed=0, **options):
    """Return a program, its classifier's twin that keeps no record, and the batches to come."""
    world = lender_world(seed, n_batch=n_batch, n_rounds=n_rounds)
    past = world.history()
    history = {"accepted": past.accepted, "sensitive_features": past.people.group}
    place = sa.make_url(url)
    if place.get_backend_name() == "sqlite" and not Path(place.database).exists():
        Path(place.database).write_bytes(_tables())
    program = Program.create(url, classifier, past.people.X, past.outcomes, **history, **options)
    twin = classifier.fit(past.people.X, past.outcomes, **history)
    return program, twin, [one.applicants for one in world.batches()]
