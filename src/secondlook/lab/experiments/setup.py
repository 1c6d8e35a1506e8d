"""What a method may know when it is built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from secondlook.lab.experiments.spec import Goal
from secondlook.lab.simulate.worlds import Past

__all__ = ["Setup"]


@dataclass(frozen=True)
class Setup:
    """What a method may know when it is built: the history, the goal, and a seed.

    Attributes
    ----------
    past
        What is known of S_0, everybody who applied before round 1, a row or value each:
        ``past.people.X`` (features), ``past.people.group`` (names of groups), ``past.accepted``
        (whom the past accepted) and ``past.outcomes`` (1 good, 0 bad, NaN for the rejected).
    goal
        What is wanted: ``goal.alpha`` (the bound on mistakes), ``goal.gain`` and ``goal.loss``
        (what a good and a bad accepted person bring and cost), and the settings of Algorithm 1.
    group_as_feature
        Whether the group is not among the features and is to be appended to them.
    seed
        Seed of the method's own randomness.
    n_rounds
        Rounds to come, where a method wants to plan.
    past_policy
        f_0 where it is given, as ``PartialFeedbackClassifier.fit`` takes it; None means that
        methods imitate the past themselves.

    Examples
    --------
    >>> import numpy as np
    >>> from secondlook import CertifiedClassifier
    >>> from secondlook.lab.simulate.people import People
    >>> def mine(setup):
    ...     past = setup.past
    ...     return CertifiedClassifier(setup.goal.alpha, random_state=setup.seed).fit(
    ...         past.people.X,
    ...         past.outcomes,
    ...         accepted=past.accepted,
    ...         sensitive_features=past.people.group,
    ...     )
    >>> X, accepted = np.arange(40.0).reshape(-1, 1), np.arange(40) % 2 == 0
    >>> people = People(X, np.where(X[:, 0] < 20, "A", "B"))
    >>> outcomes = np.where(accepted, np.arange(40) % 4 == 0, np.nan)
    >>> method = mine(Setup(Past(people, accepted, outcomes), Goal(), False, seed=0))
    >>> method.decide(X[:5], sensitive_features=people.group[:5]).accepted.shape
    (5,)
    """

    past: Past
    goal: Goal
    group_as_feature: bool
    seed: int
    n_rounds: int | None = None
    past_policy: Any = None
