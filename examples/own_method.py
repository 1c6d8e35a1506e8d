"""Run your own method in the paper's experiment: any object with ``decide`` and ``observe``.

    cd examples
    fairchance reproduce german --repetitions 5 --methods plain,no-exploration,own_method:greedy

The method gets the features and groups of applicants and, later, the outcomes of accepted
applicants. It has no access to anything else. ``Setup`` holds what is known at the start: the
history, the goal and a seed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from fairchance import Decisions
from fairchance_lab.experiments.methods import Setup


class Greedy:
    """Accept applicants with a positive expected utility under a model of all outcomes so far."""

    def __init__(self, setup: Setup) -> None:
        past = setup.past
        self.break_even = setup.goal.loss / (setup.goal.gain + setup.goal.loss)
        self.X, self.y = past.people.X[past.accepted], past.outcomes[past.accepted]
        self.waiting: dict[int, Any] = {}
        self.round = 0

    def decide(self, X: Any, *, sensitive_features: Any = None, ids: Any = None) -> Decisions:  # noqa: ARG002
        """Decide a batch without exploration; groups are ignored."""
        score = LogisticRegression().fit(self.X, self.y).predict_proba(X)[:, 1]
        accepted = score >= self.break_even
        first = 1_000_000 * self.round
        names = np.arange(first, first + len(X)) if ids is None else np.asarray(ids)
        self.waiting.update(zip(names[accepted].tolist(), X[accepted], strict=True))
        self.round += 1
        exploit = np.ones(len(X), bool)
        return Decisions(names, accepted, exploit, score, accepted.astype(float), self.round)

    def observe(self, ids: Any, outcomes: Any) -> None:
        """Add the outcomes of accepted applicants to the training data."""
        rows = [self.waiting.pop(i) for i in ids.tolist()]
        self.X = np.vstack([self.X, *rows])
        self.y = np.append(self.y, outcomes)


def greedy(setup: Setup) -> Greedy:
    """Build the method for a repetition of the experiment."""
    return Greedy(setup)
