"""What a method may know when it is built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from secondlook.experiments.spec import Goal
from secondlook.simulate.worlds import Past

__all__ = ["Setup"]


@dataclass(frozen=True)
class Setup:
    """What a method may know when it is built: the history, the goal, and a seed.

    Attributes
    ----------
    past
        What is known of S_0.
    goal
        What is wanted.
    group_as_feature
        Whether the group is not among the features and is to be appended to them.
    seed
        Seed of the method's own randomness.
    n_rounds
        Rounds to come, where a method wants to plan.
    past_policy
        f_0 where it is given, as ``PartialFeedbackClassifier.fit`` takes it; None means that
        methods imitate the past themselves.
    """

    past: Past
    goal: Goal
    group_as_feature: bool
    seed: int
    n_rounds: int | None = None
    past_policy: Any = None
