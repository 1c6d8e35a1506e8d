"""The certified method: with confidence 1 − δ, certified rounds keep their bound on mistakes.

Read ``evidence.py`` first (what a test is), then ``ladder.py`` (which policies are tested),
``engine.py`` (when they are tested, which one is deployed) and ``classifier.py`` (the estimator).
"""

from secondlook.core.decisions import CertifiedRound
from secondlook.learners.selection import SelectedPast
from secondlook.methods.certified.classifier import CertifiedClassifier
from secondlook.methods.certified.engine import (
    ChosenPolicy,
    Engine,
    LadderBets,
    LastBatch,
    SettledRound,
    Stage,
    WaitingRound,
)
from secondlook.methods.certified.evidence import DriftMonitor, Wealth
from secondlook.methods.certified.ladder import Floor, Ladder, LadderRows, Positions
from secondlook.methods.certified.pilot import Pilot
from secondlook.methods.certified.ranking import PastApplicants, Ranking
from secondlook.methods.certified.rules import Rules

__all__ = ["SAVED_TYPES", "CertifiedClassifier"]

# Types of this package that a saved file may contain.
SAVED_TYPES: tuple[type, ...] = (
    CertifiedClassifier,
    CertifiedRound,
    Engine,
    Rules,
    Stage,
    ChosenPolicy,
    WaitingRound,
    LadderBets,
    SettledRound,
    LastBatch,
    Ladder,
    LadderRows,
    Positions,
    Floor,
    Pilot,
    Ranking,
    Wealth,
    DriftMonitor,
    PastApplicants,
    SelectedPast,
)
