"""Algorithm 1 on a finite domain: exact counts, an exact learner, the paper's box to the letter."""

from secondlook.methods.finite.cells import (
    CellColumn,
    CellCounts,
    CellPast,
    CellState,
    CellTable,
    eta,
    sigma,
)
from secondlook.methods.finite.classifier import (
    CellPolicy,
    FiniteClassifier,
    FiniteRound,
    LastRound,
)
from secondlook.methods.finite.clusters import ClusteredDomain
from secondlook.methods.finite.coverage import CellCoverage, CountedOutcomes, NormalisedG
from secondlook.methods.finite.intake import CellIntake
from secondlook.methods.finite.learner import ExactFit, best_classifier

__all__ = [
    "SAVED_TYPES",
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

# Types of this package that a saved file may contain.
SAVED_TYPES: tuple[type, ...] = (
    FiniteClassifier,
    CellIntake,
    CellTable,
    CellColumn,
    CellState,
    CellPast,
    CellPolicy,
    LastRound,
    FiniteRound,
    NormalisedG,
    CountedOutcomes,
)
