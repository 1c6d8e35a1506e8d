"""What the options of ``CertifiedClassifier`` may be."""

from __future__ import annotations

from typing import Any

import numpy as np

from secondlook.core.limits import Limited
from secondlook.core.noise import OutcomeNoise
from secondlook.core.strategies import as_strategy
from secondlook.core.utility import Utility
from secondlook.errors import InputError
from secondlook.methods.estimator import check_group_mode, check_rounds

__all__ = ["check_certified_settings", "check_cold_start"]


def check_certified_settings(classifier: Any) -> None:
    """Raise unless every option is one that is allowed."""
    _check_numbers(classifier)
    for name, allowed in (
        ("ranks", ("overall", "within_group")),
        ("certify", ("overall", "per_group")),
    ):
        if getattr(classifier, name) not in allowed:
            raise InputError(f"{name} must be one of {allowed}, got {getattr(classifier, name)!r}.")
    for name, kind, article in (("utility", Utility, "a"), ("noise", OutcomeNoise, "an")):
        value = getattr(classifier, name)
        if value is not None and not isinstance(value, kind):
            raise InputError(f"{name} must be {article} {kind.__name__} or None, got {value!r}.")
    check_group_mode(classifier)
    _check_floor(classifier)


def _check_numbers(classifier: Any) -> None:
    for name in ("alpha", "delta"):
        value = getattr(classifier, name)
        if not (isinstance(value, int | float | np.number) and 0 < value < 1):
            raise InputError(f"{name} must be a number in (0, 1), got {value!r}.")
    for name, largest in (("floor", 0.1), ("monitor", 0.5)):
        value = getattr(classifier, name)
        if not (isinstance(value, int | float | np.number) and 0 <= value <= largest):
            raise InputError(f"{name} must be a number in [0, {largest}], got {value!r}.")
    for name in ("horizon", "patience"):
        check_rounds(name, getattr(classifier, name), least=1)
    if classifier.maturity is None:
        raise InputError("maturity counts rounds and must be 0 or more, got None.")
    check_rounds("maturity", classifier.maturity, least=0)


def _check_floor(classifier: Any) -> None:
    if classifier.certify == "per_group" and as_strategy(classifier.strategy).reads_group:
        raise InputError(
            f"certify='per_group' spreads the floor within each group, where a strategy between "
            f"groups changes nothing, got {classifier.strategy!r}; use Uniform() or "
            f"ScoreWeighted()."
        )


def check_cold_start(strategy: Any) -> None:
    """Raise if limits leave out everybody while all look alike."""
    limited = as_strategy(strategy)
    if isinstance(limited, Limited) and limited.max_risk is not None and limited.max_risk < 0.5:
        raise InputError(
            f"with no outcome in the history everybody's risk counts as 0.5, so that max_risk="
            f"{limited.max_risk} would leave out everybody for ever; take 0.5 or more to begin "
            f"with, or give a history with outcomes."
        )
