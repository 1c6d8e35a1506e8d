"""Algorithm 1 on a finite domain: exact counts, an exact learner, the paper's box to the letter."""

from fairchance_lab.finite.cells import (
    CellCounts,
    eta,
    sigma,
)
from fairchance_lab.finite.classifier import (
    CellPolicy,
    FiniteClassifier,
    FiniteRound,
)
from fairchance_lab.finite.clusters import ClusteredDomain
from fairchance_lab.finite.coverage import CellCoverage, CountedOutcomes, NormalisedG
from fairchance_lab.finite.learner import ExactFit, best_classifier

__all__ = [
    "CellCounts",
    "CellCoverage",
    "CellPolicy",
    "ClusteredDomain",
    "CountedOutcomes",
    "ExactFit",
    "FiniteClassifier",
    "FiniteRound",
    "NormalisedG",
    "best_classifier",
    "eta",
    "sigma",
]
