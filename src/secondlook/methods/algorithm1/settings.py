"""What the options of ``PartialFeedbackClassifier`` may be."""

from __future__ import annotations

from typing import Any

import numpy as np

from secondlook.core.budget import FdrBudget
from secondlook.core.coverage import CoverageRule
from secondlook.core.fairness import RateParity
from secondlook.core.noise import OutcomeNoise
from secondlook.core.strategies import as_strategy
from secondlook.core.utility import Utility
from secondlook.errors import InputError
from secondlook.methods.algorithm1.past import check_learner
from secondlook.methods.group_modes import check_group_mode

__all__ = ["FIXED", "check_rounds", "check_settings", "check_unchanged"]

_CHOICES: dict[str, tuple[str, ...]] = {
    "thresholds": ("shared", "per_group"),
    "split": ("half", "cross"),
    "weights": ("acceptance", "none"),
    "first_round": ("past", "learned"),
}
_KINDS: dict[str, type] = {
    "utility": Utility,
    "budget": FdrBudget,
    "coverage": CoverageRule,
    "fairness": RateParity,
    "noise": OutcomeNoise,
}


# What rests on these cannot be changed between rounds; the others may be.
FIXED = (
    "coverage",
    "learner",
    "group_as_feature",
    "group_mode",
    "attributes",
    "pos_label",
    "random_state",
)


def check_unchanged(classifier: Any, fitted: dict[str, Any]) -> None:
    """Raise if an option that a fitted classifier rests on is no longer what it was."""
    for name, was in fitted.items():
        now = getattr(classifier, name)
        if now is not was and now != was:
            raise InputError(
                f"{name} was {was!r} when the history was fitted and is {now!r} now; what "
                f"has been learned rests on it, so set it back or fit again."
            )


def check_rounds(name: str, value: Any, least: int) -> None:
    """Raise unless a number of rounds is one, or None."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if value is not None and not (whole and value >= least):
        raise InputError(f"{name} counts rounds and must be {least} or more, got {value!r}.")


def check_settings(classifier: Any) -> None:
    """Raise unless every option is one that is allowed."""
    for name, allowed in _CHOICES.items():
        value = getattr(classifier, name)
        if value not in allowed:
            raise InputError(f"{name} must be one of {allowed}, got {value!r}.")
    for name, kind in _KINDS.items():
        value = getattr(classifier, name)
        if value is not None and not isinstance(value, kind):
            raise InputError(f"{name} must be a {kind.__name__} or None, got {value!r}.")
    for name in ("weight_cap", "min_outcomes"):
        value = getattr(classifier, name)
        if not value >= 1:
            raise InputError(f"{name} must be 1 or more, got {value}.")
    check_rounds("maturity", classifier.maturity, least=0)
    as_strategy(classifier.strategy)
    check_learner(classifier.learner)
    check_group_mode(classifier)
