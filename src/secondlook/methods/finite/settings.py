"""What the options of ``FiniteClassifier`` may be."""

from __future__ import annotations

from typing import Any

from secondlook.core.budget import FdrBudget
from secondlook.core.fairness import RateParity
from secondlook.core.noise import OutcomeNoise
from secondlook.core.strategies import as_strategy
from secondlook.core.utility import Utility
from secondlook.errors import InputError
from secondlook.methods.estimator import check_group_mode, check_rounds
from secondlook.methods.finite.coverage import as_cell_coverage
from secondlook.methods.finite.learner import CONSTRAINTS, HYPOTHESES
from secondlook.methods.finite.past import check_reads_no_group

__all__ = ["FIXED", "check_settings"]

_CHOICES = {
    "hypothesis": HYPOTHESES,
    "constraints": CONSTRAINTS,
    "weights": ("applicants", "none"),
    "first_round": ("past", "learned"),
}
_KINDS: dict[str, type] = {
    "utility": Utility,
    "budget": FdrBudget,
    "fairness": RateParity,
    "noise": OutcomeNoise,
}

FIXED = ("coverage", "group_mode", "pos_label", "random_state")  # what is known rests on these


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
    if not 0 <= classifier.gap < 1:
        raise InputError(f"gap is a share and must be in [0, 1), got {classifier.gap}.")
    if not classifier.min_outcomes >= 0:
        raise InputError(f"min_outcomes must be 0 or more, got {classifier.min_outcomes}.")
    if classifier.cut_score is not None and not callable(classifier.cut_score):
        raise InputError(
            f"cut_score must be a function of (X, group) or None, got {classifier.cut_score!r}."
        )
    check_rounds("maturity", classifier.maturity, least=0)
    as_cell_coverage(classifier.coverage)
    _check_group_mode(classifier)
    if as_strategy(classifier.strategy).is_limited:
        raise InputError(
            f"limits on exploration are not kept on cells, got {classifier.strategy!r}; use "
            f"PartialFeedbackClassifier, or a strategy without limits."
        )


def _check_group_mode(classifier: Any) -> None:
    check_group_mode(classifier)
    mode = classifier.group_mode
    if classifier.cut_score is not None:
        check_reads_no_group("cut_score", classifier.cut_score, mode)
    if mode != "aware" and classifier.hypothesis == "threshold_per_group":
        raise InputError(
            f"group_mode={mode!r} cannot be combined with hypothesis='threshold_per_group', which "
            f"decides by the group; use 'cells' or 'threshold', or group_mode='aware'."
        )
    if mode == "audit" and classifier.constraints == "per_group":
        raise InputError(
            "group_mode='audit' cannot be combined with constraints='per_group', since no group "
            "may change a decision; use 'joint', or group_mode='blind'."
        )
