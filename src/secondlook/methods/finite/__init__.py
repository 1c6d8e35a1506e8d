"""Finitely many kinds of people: exact counts, an exact learner, Algorithm 1 to the letter."""

from secondlook.methods.finite.classifier import FiniteClassifier
from secondlook.methods.finite.clusters import ClusteredDomain
from secondlook.methods.finite.counts import Counts, eta, sigma
from secondlook.methods.finite.coverage import CellCoverage, CountedOutcomes, NormalisedG
from secondlook.methods.finite.encoding import CellColumn, CellTable
from secondlook.methods.finite.intake import CellIntake
from secondlook.methods.finite.learner import ExactFit, best_classifier
from secondlook.methods.finite.ledger import Ledger, PeopleOfRound
from secondlook.methods.finite.past import CellPast
from secondlook.methods.finite.policies import LastRound
from secondlook.methods.finite.records import CellPolicy, FiniteRound
from secondlook.methods.finite.state import CellState

__all__ = [
    "SAVED_TYPES",
    "CellCoverage",
    "CellPolicy",
    "ClusteredDomain",
    "CountedOutcomes",
    "Counts",
    "ExactFit",
    "FiniteClassifier",
    "FiniteRound",
    "NormalisedG",
    "best_classifier",
    "eta",
    "sigma",
]

# What a saved file may name.
SAVED_TYPES: tuple[type, ...] = (
    FiniteClassifier,
    CellIntake,
    CellTable,
    CellColumn,
    Counts,
    CellState,
    CellPast,
    Ledger,
    PeopleOfRound,
    CellPolicy,
    LastRound,
    FiniteRound,
    NormalisedG,
    CountedOutcomes,
)
