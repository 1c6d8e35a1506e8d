"""What the options of ``CertifiedClassifier`` may be."""

from __future__ import annotations

from typing import Any

import numpy as np

from secondlook.errors import InputError
from secondlook.group_modes import check_group_mode
from secondlook.noise import OutcomeNoise
from secondlook.settings import check_rounds
from secondlook.utility import Utility

__all__ = ["check_certified_settings"]


def check_certified_settings(classifier: Any) -> None:
    """Raise unless every option is one that is allowed."""
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
    check_rounds("maturity", classifier.maturity, least=0)
    if classifier.noise is not None and not isinstance(classifier.noise, OutcomeNoise):
        raise InputError(f"noise must be an OutcomeNoise or None, got {classifier.noise!r}.")
    for name, allowed in (
        ("ranks", ("overall", "within_group")),
        ("certify", ("overall", "per_group")),
    ):
        if getattr(classifier, name) not in allowed:
            raise InputError(f"{name} must be one of {allowed}, got {getattr(classifier, name)!r}.")
    if classifier.utility is not None and not isinstance(classifier.utility, Utility):
        raise InputError(f"utility must be a Utility or None, got {classifier.utility!r}.")
    check_group_mode(classifier)
