"""Algorithm 1 with any number of outcome classes and of decisions."""

from secondlook.methods.many_classes.classifier import (
    ManyClassClassifier,
    ManyClassDecisions,
    ManyClassIntake,
    ManyClassRound,
)
from secondlook.methods.many_classes.decision_table import DecisionTable
from secondlook.methods.many_classes.models import EstimatorModel, NetUtility, SoftmaxModel

__all__ = ["SAVED_TYPES", "ManyClassClassifier", "ManyClassDecisions", "ManyClassRound"]

# Types of this package that a saved file may contain.
SAVED_TYPES: tuple[type, ...] = (
    ManyClassClassifier,
    ManyClassIntake,
    DecisionTable,
    NetUtility,
    SoftmaxModel,
    EstimatorModel,
)
