"""Batches as a ledger stores them."""

from __future__ import annotations

import numpy as np

from fairchance.ledger.base import DecisionRows, Facts, PeopleRows


def make_batch(first, n=4, round=1, seed=0):
    """Return a batch of n applicants with groups; those with an even number are accepted."""
    rng = np.random.default_rng([seed, first])
    numbers = [row.tobytes() for row in rng.normal(size=(n, 3))]
    people = PeopleRows(
        [f"a{first + at}" for at in range(n)],
        numbers,
        [f'["x{at}"]' if at % 2 else None for at in range(n)],
        ['["A"]' if at % 3 else '["B"]' for at in range(n)],
    )
    accepted = (first + np.arange(n)) % 2 == 0
    score = rng.random(n)
    decided = DecisionRows(round, accepted, rng.random(n) < 0.5, score, score / 2)
    return Facts(people=people, decisions=decided)
