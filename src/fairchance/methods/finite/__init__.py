"""Algorithm 1 on a finite domain: exact counts, an exact learner, the paper's box to the letter."""

from fairchance.methods.finite.cells import (
    CellCounts,
    eta,
    sigma,
)
from fairchance.methods.finite.classifier import (
    CellPolicy,
    FiniteClassifier,
    FiniteRound,
)
from fairchance.methods.finite.clusters import ClusteredDomain
from fairchance.methods.finite.coverage import CellCoverage, CountedOutcomes, NormalisedG
from fairchance.methods.finite.learner import ExactFit, best_classifier

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
