"""People whom a classifier refuses, some with text and gaps."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fairchance.people.reasons import ReferenceApplicant
from small_worlds import lender_world


def log_odds(p):
    return np.log(p) - np.log1p(-p)


def lived(classifier, n_rounds=3, **world):
    """Return a classifier that has decided, its last batch, the decisions, and the reference."""
    one = lender_world(1, n_rounds=n_rounds, **world)
    past = one.history()
    classifier.fit(
        past.people.X,
        past.outcomes,
        accepted=past.accepted,
        sensitive_features=past.people.group,
    )
    for batch in one.batches():
        people = batch.applicants.people
        decided = classifier.decide(people.X, sensitive_features=people.group)
        yes = decided.accepted
        last = people.X, people.group, decided
        if batch is not None and decided.round < n_rounds:
            classifier.observe(decided.ids[yes], batch.applicants.outcome[yes])
    return classifier, *last, ReferenceApplicant.of(past.people.X, past.accepted)


def mixed_people(rng, n):
    """Return a frame with text and missing values, and groups, whose outcomes depend on both."""
    trade = rng.choice(["smith", "baker", None], n, p=[0.3, 0.5, 0.2])
    age = np.where(rng.random(n) < 0.1, np.nan, rng.integers(20, 70, n).astype(float))
    debt = rng.normal(size=n)
    frame = pd.DataFrame({"trade": trade, "age": age, "debt": debt})
    z = np.where(trade == "baker", 1.5, -0.5) - debt
    return frame, (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
