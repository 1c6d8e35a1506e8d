"""secondlook: decide batches when only the accepted show their outcome."""

from secondlook.budget import ExploitOnly, FdrBudget, PowerSchedule
from secondlook.certified import CertifiedClassifier
from secondlook.classifier import PartialFeedbackClassifier
from secondlook.coverage import MeanPastScore, SummedAcceptance, SumOfG
from secondlook.decisions import Decisions, Round
from secondlook.fairness import SelectionRateParity, TruePositiveRateParity
from secondlook.learners.logistic import ConstrainedLogistic
from secondlook.learners.per_group import PerGroup
from secondlook.storage import load, save
from secondlook.strategies import EqualGroups, GroupShare, ScoreWeighted, Strategy, Uniform
from secondlook.utility import Accuracy, PositiveRate, Revenue, Utility

__all__ = [
    "Accuracy",
    "CertifiedClassifier",
    "ConstrainedLogistic",
    "Decisions",
    "EqualGroups",
    "ExploitOnly",
    "FdrBudget",
    "GroupShare",
    "MeanPastScore",
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
