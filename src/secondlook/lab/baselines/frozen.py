"""The past, frozen: decide as it did and learn nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from secondlook.lab.baselines.base import Baseline, Floats
from secondlook.methods.algorithm1.past import past_policy
from secondlook.people.batches import Batch, History

__all__ = ["FrozenPast"]


class FrozenPast(Baseline):
    """Accept whom f_0 accepts more likely than not, for ever.

    f_0 is given, or a logistic model with an intercept of who was accepted in the history. Outcomes
    change nothing. With nobody rejected in the history there is no rule to imitate, and everybody
    is accepted.

    Parameters
    ----------
    past_policy
        f_0: a function of X that returns probabilities of acceptance, or a fitted classifier; None
        means to imitate the history.
    group_as_feature
        Append the group to the features.
    pos_label
        Label of the good outcome; None means the larger one.
    random_state
        Not used: nothing here is random.

    Examples
    --------
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> outcome = np.tile([0, 1], 20)
    >>> method = FrozenPast().fit(X, outcome, accepted=X[:, 0] > 0)
    >>> method.decide(np.array([[-0.5], [0.5]])).accepted.tolist()
    [False, True]
    """

    def __init__(
        self,
        past_policy: Any = None,
        *,
        group_as_feature: bool = False,
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.past_policy = past_policy
        self.group_as_feature = group_as_feature
        self.pos_label = pos_label
        self.random_state = random_state

    def _start(self, history: History) -> None:
        past = past_policy(self.past_policy, None, history, self.n_features_in_)
        self._past = past.likelihood

    def _learn(self) -> None:
        """Stay as it is."""

    def _scores(self, people: Batch) -> Floats:
        score = self._past.score(people.X, np.zeros(len(people), np.intp))
        return np.asarray(score, dtype=np.float64)

    def _probabilities(self, people: Batch) -> Floats:
        return (self._scores(people) >= 0.5).astype(np.float64)
