"""fairchance: decide batches when only the accepted show their outcome.

Public names are imported on first use: ``fairchance --help`` need not wait for scikit-learn.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

_NAMES_OF_MODULE = {
    "core.budget": ("ExploitOnly", "FdrBudget", "PowerSchedule"),
    "core.coverage": ("CoverageRule", "MeanPastScore", "SumOfG", "SummedAcceptance"),
    "core.decisions": ("CertifiedRound", "Correction", "CurvePoint", "Decisions", "Round"),
    "core.fairness": (
        "EqualizedOdds",
        "FalseDiscoveryRateParity",
        "FalseOmissionRateParity",
        "FalsePositiveRateParity",
        "SelectionRateParity",
        "TruePositiveRateParity",
    ),
    "core.limits": ("Above", "Below", "Column", "Limited", "OneOf"),
    "core.noise": ("OutcomeNoise",),
    "core.strategies": ("EqualGroups", "GroupShare", "ScoreWeighted", "Strategy", "Uniform"),
    "core.utility": ("Accuracy", "PositiveRate", "Revenue", "Utility"),
    "learners.logistic": ("ConstrainedLogistic",),
    "learners.per_group": ("PerGroup",),
    "methods.algorithm1.classifier": ("PartialFeedbackClassifier",),
    "methods.certified.classifier": ("CertifiedClassifier",),
    "methods.policy": ("Policy",),
    "methods.storage": ("load", "save"),
    "people.likeness": ("Checks",),
}
_PACKAGES = ("audit", "plot")  # not in __all__, since plot needs an extra
_MODULE_OF_NAME = {name: module for module, names in _NAMES_OF_MODULE.items() for name in names}

__version__ = "0.1.0rc1"
__all__ = sorted(_MODULE_OF_NAME)  # noqa: PLE0605

if TYPE_CHECKING:  # the same names for type checkers and editors; a test compares the two
    from fairchance import audit, plot
    from fairchance.core.budget import ExploitOnly, FdrBudget, PowerSchedule
    from fairchance.core.coverage import CoverageRule, MeanPastScore, SummedAcceptance, SumOfG
    from fairchance.core.decisions import CertifiedRound, Correction, CurvePoint, Decisions, Round
    from fairchance.core.fairness import (
        EqualizedOdds,
        FalseDiscoveryRateParity,
        FalseOmissionRateParity,
        FalsePositiveRateParity,
        SelectionRateParity,
        TruePositiveRateParity,
    )
    from fairchance.core.limits import Above, Below, Column, Limited, OneOf
    from fairchance.core.noise import OutcomeNoise
    from fairchance.core.strategies import EqualGroups, GroupShare, ScoreWeighted, Strategy, Uniform
    from fairchance.core.utility import Accuracy, PositiveRate, Revenue, Utility
    from fairchance.learners.logistic import ConstrainedLogistic
    from fairchance.learners.per_group import PerGroup
    from fairchance.methods.algorithm1.classifier import PartialFeedbackClassifier
    from fairchance.methods.certified.classifier import CertifiedClassifier
    from fairchance.methods.policy import Policy
    from fairchance.methods.storage import load, save
    from fairchance.people.likeness import Checks
else:

    def __getattr__(name):
        if name in _PACKAGES:
            return import_module(f"{__name__}.{name}")
        if name not in _MODULE_OF_NAME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_MODULE_OF_NAME[name]}"), name)
        globals()[name] = value
        return value

    def __dir__():
        dunder = (name for name in globals() if name.startswith("__"))
        # help() looks at all names, and plot says what to install if its extra is missing.
        missing = {"plot"} if find_spec("altair") is None else set()
        return sorted({*__all__, *_PACKAGES, *dunder} - missing)
