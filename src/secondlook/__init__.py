"""secondlook: decide batches when only the accepted show their outcome."""

from secondlook.budget import ExploitOnly, FdrBudget, PowerSchedule
from secondlook.certified import CertifiedClassifier
from secondlook.classifier import PartialFeedbackClassifier
from secondlook.clusters import ClusteredDomain
from secondlook.coverage import MeanPastScore, SummedAcceptance, SumOfG
from secondlook.decisions import CertifiedRound, Correction, Decisions, Round
from secondlook.fairness import SelectionRateParity, TruePositiveRateParity
from secondlook.learners.logistic import ConstrainedLogistic
from secondlook.learners.per_group import PerGroup
from secondlook.noise import OutcomeNoise
from secondlook.storage import load, save
from secondlook.strategies import EqualGroups, GroupShare, ScoreWeighted, Strategy, Uniform
from secondlook.utility import Accuracy, PositiveRate, Revenue, Utility

__all__ = [
    "Accuracy",
    "CertifiedClassifier",
    "CertifiedRound",
    "ClusteredDomain",
    "ConstrainedLogistic",
    "Correction",
    "Decisions",
    "EqualGroups",
    "ExploitOnly",
    "FdrBudget",
    "GroupShare",
    "MeanPastScore",
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
