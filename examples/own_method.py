"""A method of one's own in the paper's experiment: anything with ``decide`` and ``observe``.

    cd examples
    secondlook reproduce german --repetitions 5 --methods plain,no-exploration,own_method:greedy

The loop hands over features, groups and, later, outcomes of those accepted; nothing else can be
reached. ``Setup`` is what is known at the start: the history, the goal, and a seed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from secondlook import Decisions
from secondlook.lab.experiments.methods import Setup


class Greedy:
    """Accept whoever is worth it on average by a model of all outcomes so far; explore nobody."""

    def __init__(self, setup: Setup) -> None:
        past = setup.past
        self.break_even = setup.goal.loss / (setup.goal.gain + setup.goal.loss)
        self.X, self.y = past.people.X[past.accepted], past.outcomes[past.accepted]
        self.waiting: dict[int, Any] = {}
        self.round = 0

    def decide(self, X: Any, *, sensitive_features: Any = None, ids: Any = None) -> Decisions:  # noqa: ARG002
        """Decide a batch; groups are ignored."""
        score = LogisticRegression().fit(self.X, self.y).predict_proba(X)[:, 1]
        accepted = score >= self.break_even
        first = 1_000_000 * self.round
        names = np.arange(first, first + len(X)) if ids is None else np.asarray(ids)
        self.waiting.update(zip(names[accepted].tolist(), X[accepted], strict=True))
        self.round += 1
        everybody = np.ones(len(X), bool)
        return Decisions(names, accepted, everybody, score, accepted.astype(float), self.round)

    def observe(self, ids: Any, outcomes: Any) -> None:
        """Learn from outcomes of the accepted."""
        rows = [self.waiting.pop(i) for i in ids.tolist()]
        self.X = np.vstack([self.X, *rows])
        self.y = np.append(self.y, outcomes)


def greedy(setup: Setup) -> Greedy:
    """Build the method for one repetition."""
    return Greedy(setup)
