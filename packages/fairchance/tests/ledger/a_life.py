"""Live some rounds of a program, in a process of any environment.

``python a_life.py URL NAME FIRST LAST`` creates the program if FIRST is 1, decides on the rounds,
records outcomes and verifies everything; it prints what it saw as JSON.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd

import fairchance as fc
from fairchance.core.versions import versions
from fairchance.ledger import Program, verify

N_PAST, N_BATCH = 1_500, 200
CLASSIFIERS = {
    "plain": lambda: fc.PartialFeedbackClassifier(strategy=fc.GroupShare(), random_state=3),
    "certified": lambda: fc.CertifiedClassifier(horizon=12, random_state=3),
}


def applicants(round):
    """Return the features, groups and outcomes of a round; 0 is the history."""
    rng = np.random.default_rng([7, round])
    n = N_BATCH if round else N_PAST
    frame = pd.DataFrame(
        {
            "income": rng.normal(size=n).round(3),
            "debt": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n).round(1)),
            "trade": rng.choice(["baker", "smith", "tailor"], n),
            "region": rng.integers(0, 40, n),
        }
    )
    score = 1 + 1.5 * frame.income + frame.debt.fillna(0) + (frame.trade == "baker")
    group = np.where(frame.region < 15, "A", "B")
    return frame, group, (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)


def live(url, name, rounds):
    """Decide on the rounds and verify; return what a test compares."""
    if rounds[0] == 1:
        frame, group, good = applicants(0)
        past = {"accepted": frame.income > -0.5, "sensitive_features": group}
        program = Program.create(url, CLASSIFIERS[name](), frame, good, name=name, **past)
    else:
        program = Program.open(url, name)
    decided = []
    for round in rounds:
        frame, group, good = applicants(round)
        batch = program.decide(frame, sensitive_features=group)
        program.observe(batch.ids[batch.accepted], good[batch.accepted])
        parts = {part: getattr(batch, part).tolist() for part in ("accepted", "propensity")}
        decided.append({"round": batch.round, **parts})
    proved, learned = verify(url, name), verify(url, name, relearn=True)
    return {
        "versions": versions(),
        "decided": decided,
        "problems": [proved.problem, learned.problem],
        "proved": [proved.n_decisions, proved.n_not_repeated],
        "skipped": {one.versions["scikit-learn"]: one.n_decisions for one in learned.skipped},
    }


if __name__ == "__main__":
    url, name, first, last = sys.argv[1:]
    print(json.dumps(live(url, name, range(int(first), int(last) + 1))))
