"""Algorithm 1 with any number of outcome classes and of decisions."""

from fairchance_lab.many_classes.classifier import (
    ManyClassClassifier,
    ManyClassDecisions,
    ManyClassRound,
)

__all__ = ["ManyClassClassifier", "ManyClassDecisions", "ManyClassRound"]
