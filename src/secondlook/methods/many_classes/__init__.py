"""Algorithm 1 with any number of outcome classes and of decisions."""

from secondlook.methods.many_classes.class_models import EstimatorModel, NetWorth, SoftmaxModel
from secondlook.methods.many_classes.classifier import ManyClassClassifier
from secondlook.methods.many_classes.decision_table import DecisionTable
from secondlook.methods.many_classes.intake import ManyClassIntake
from secondlook.methods.many_classes.records import (
    GivenDecisions,
    ManyClassDecisions,
    ManyClassRound,
)

__all__ = ["SAVED_TYPES", "ManyClassClassifier", "ManyClassDecisions", "ManyClassRound"]

# What a saved file may name beside the types of two classes.
SAVED_TYPES: tuple[type, ...] = (
    ManyClassClassifier,
    ManyClassIntake,
    GivenDecisions,
    DecisionTable,
    NetWorth,
    SoftmaxModel,
    EstimatorModel,
)
