"""What the options of ``PartialFeedbackClassifier`` may be."""

from __future__ import annotations

from typing import Any

from secondlook.budget import FdrBudget
from secondlook.coverage import CoverageRule
from secondlook.errors import InputError
from secondlook.fairness import RateParity
from secondlook.past import prepare_learner
from secondlook.strategies import as_strategy
from secondlook.utility import Utility

__all__ = ["check_settings"]

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
}


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
    as_strategy(classifier.strategy)
    prepare_learner(classifier.learner)
