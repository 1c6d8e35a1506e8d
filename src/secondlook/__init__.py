"""secondlook: decide batches when only the accepted show their outcome.

Public names are imported when they are first asked for, so that the command line can answer without
scikit-learn, which takes most of the time of an import.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from secondlook.budget import ExploitOnly, FdrBudget, PowerSchedule
    from secondlook.certified import CertifiedClassifier
    from secondlook.classifier import PartialFeedbackClassifier
    from secondlook.clusters import ClusteredDomain
    from secondlook.coverage import CoverageRule, MeanPastScore, SummedAcceptance, SumOfG
    from secondlook.decisions import CertifiedRound, Correction, Decisions, Round
    from secondlook.fairness import SelectionRateParity, TruePositiveRateParity
    from secondlook.finite import CountedOutcomes, FiniteClassifier, NormalisedG
    from secondlook.learners.logistic import ConstrainedLogistic
    from secondlook.learners.per_group import PerGroup
    from secondlook.many_classes import ManyClassClassifier
    from secondlook.noise import OutcomeNoise
    from secondlook.risk import Above, Below, Column, Limited, OneOf
    from secondlook.storage import load, save
    from secondlook.strategies import EqualGroups, GroupShare, ScoreWeighted, Strategy, Uniform
    from secondlook.utility import Accuracy, PositiveRate, Revenue, Utility

__all__ = [
    "Above",
    "Accuracy",
    "Below",
    "CertifiedClassifier",
    "CertifiedRound",
    "ClusteredDomain",
    "Column",
    "ConstrainedLogistic",
    "Correction",
    "CountedOutcomes",
    "CoverageRule",
    "Decisions",
    "EqualGroups",
    "ExploitOnly",
    "FdrBudget",
    "FiniteClassifier",
    "GroupShare",
    "Limited",
    "ManyClassClassifier",
    "MeanPastScore",
    "NormalisedG",
    "OneOf",
    "OutcomeNoise",
    "PartialFeedbackClassifier",
    "PerGroup",
    "PositiveRate",
    "PowerSchedule",
    "Revenue",
    "Round",
    "ScoreWeighted",
    "SelectionRateParity",
    "Strategy",
    "SumOfG",
    "SummedAcceptance",
    "TruePositiveRateParity",
    "Uniform",
    "Utility",
    "load",
    "save",
]

if not TYPE_CHECKING:  # a type checker would take every other name for one of ours
    _HOMES = {
        "budget": ("ExploitOnly", "FdrBudget", "PowerSchedule"),
        "certified": ("CertifiedClassifier",),
        "classifier": ("PartialFeedbackClassifier",),
        "clusters": ("ClusteredDomain",),
        "coverage": ("CoverageRule", "MeanPastScore", "SumOfG", "SummedAcceptance"),
        "decisions": ("CertifiedRound", "Correction", "Decisions", "Round"),
        "fairness": ("SelectionRateParity", "TruePositiveRateParity"),
        "finite": ("CountedOutcomes", "FiniteClassifier", "NormalisedG"),
        "learners.logistic": ("ConstrainedLogistic",),
        "learners.per_group": ("PerGroup",),
        "many_classes": ("ManyClassClassifier",),
        "noise": ("OutcomeNoise",),
        "risk": ("Above", "Below", "Column", "Limited", "OneOf"),
        "storage": ("load", "save"),
        "strategies": ("EqualGroups", "GroupShare", "ScoreWeighted", "Strategy", "Uniform"),
        "utility": ("Accuracy", "PositiveRate", "Revenue", "Utility"),
    }
    _HOME = {name: home for home, names in _HOMES.items() for name in names}

    def __getattr__(name):
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        globals()[name] = found
        return found

    def __dir__():
        return sorted({*globals(), *__all__})
