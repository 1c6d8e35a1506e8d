"""Finitely many kinds of people: exact counts, an exact learner, Algorithm 1 to the letter."""

from secondlook.finite.classifier import FiniteClassifier
from secondlook.finite.counts import Counts, eta, sigma
from secondlook.finite.coverage import CellCoverage, CountedOutcomes, NormalisedG
from secondlook.finite.encoding import CellColumn, CellTable
from secondlook.finite.intake import CellIntake
from secondlook.finite.learner import ExactFit, best_classifier
from secondlook.finite.ledger import Ledger, PeopleOfRound
from secondlook.finite.past import CellPast
from secondlook.finite.policies import LastRound
from secondlook.finite.records import CellPolicy, FiniteRound
from secondlook.finite.state import CellState

__all__ = [
    "SAVED_TYPES",
    "CellCoverage",
    "CellPolicy",
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
