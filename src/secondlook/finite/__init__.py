"""Finitely many kinds of people: exact counts, an exact learner, Algorithm 1 to the letter."""

from secondlook.finite.classifier import FiniteClassifier
from secondlook.finite.counts import Counts, eta, sigma
from secondlook.finite.coverage import CellCoverage, CountedOutcomes, NormalisedG
from secondlook.finite.learner import ExactFit, best_classifier
from secondlook.finite.records import CellPolicy, FiniteRound

__all__ = [
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
