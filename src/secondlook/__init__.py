"""secondlook: decide batches when only the accepted show their outcome."""

from secondlook.budget import ExploitOnly, FdrBudget, PowerSchedule
from secondlook.certified import CertifiedClassifier
from secondlook.classifier import PartialFeedbackClassifier
from secondlook.clusters import ClusteredDomain
from secondlook.coverage import MeanPastScore, SummedAcceptance, SumOfG
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
