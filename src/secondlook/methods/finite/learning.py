"""f_t of a round: learned on η_w, or the past policy's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.core.budget import FdrBudget
from secondlook.core.fairness import RateParity
from secondlook.core.noise import OutcomeNoise
from secondlook.core.utility import Utility
from secondlook.methods.finite.counts import eta
from secondlook.methods.finite.learner import Constraints, ExactFit, Hypothesis, best_classifier
from secondlook.methods.finite.past import call_on_cells
from secondlook.methods.finite.state import CellState

__all__ = ["ENOUGH_TO_TELL", "CellLearning", "following", "note_of_round"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

ENOUGH_TO_TELL = 30  # people of whom nobody is known, before we say that nothing can start


@dataclass(frozen=True)
class CellLearning:
    """What step 1 of Algorithm 1 is asked for; the options of ``FiniteClassifier``."""

    utility: Utility
    budget: FdrBudget
    hypothesis: Hypothesis
    constraints: Constraints
    fairness: RateParity | None
    weights: Any
    gap: float
    cut_score: Callable[..., Any] | None
    group_mode: str
    noise: OutcomeNoise

    def learn(self, round: int, state: CellState, exploit: Flags) -> ExactFit:
        """Return the best classifier on η_w.

        Bounds and utility are those of what is recorded, with its noise; what is said of the
        classifier is corrected for that.
        """
        reads_groups = self.fairness is not None or self.constraints == "per_group"
        by_group = state.by_group if reads_groups else None
        good, bad = eta(state.counts, exploit, self.weights, by_group)
        table, score = state.table, None
        if self.cut_score is not None:
            score = call_on_cells(self.cut_score, table, slice(None), self.group_mode)
        fit = best_classifier(
            good,
            bad,
            table.group if by_group is None else None,
            utility=self.noise.recorded_utility(self.utility),
            max_fdr=self.noise.recorded_fdr(self.budget.max_fdr(round)),
            min_selection_rate=max(0.0, self.budget.min_selection_rate - self.budget.slack),
            constraints=self.constraints,
            hypothesis=self.hypothesis,
            score=score,
            fairness=self.fairness,
            gap=self.gap,
        )
        return replace(fit, fdr=self.noise.true_fdr(fit.fdr)) if fit.accepts.any() else fit


def following(acceptance: Floats) -> ExactFit:
    """Return f_0 as the classifier of a round: accept whom the past would likely accept."""
    return ExactFit(
        accepts=acceptance >= 0.5,
        utility=np.nan,
        gap=np.nan,
        fdr=np.nan,
        selection_rate=np.nan,
        disparity=np.nan,
        feasible=True,
    )


def note_of_round(
    f: ExactFit,
    *,
    max_fdr: float,
    gap: float,
    n_known: int,
    n_exploit: int,
    stuck: bool,
    good: Any,
) -> tuple[str, bool]:
    """Say what went differently from what was asked for, and whether to say it aloud.

    Parameters
    ----------
    f
        f_t.
    max_fdr, gap
        What it was asked to keep.
    n_known, n_exploit
        People of the batch in EXPLOIT_t, and how many of them f_t accepts.
    stuck
        Whether nobody who ever applied was in EXPLOIT_t, or nobody can be any more.
    good
        Label of the good outcome.
    """
    if stuck:
        return (
            "No cell of anybody who applied is known well enough to exploit, so nobody can be "
            "explored either; lower the threshold of the coverage rule, give a past policy, or "
            "fit again where outcomes were forgotten."
        ), True
    if not f.feasible:
        return (
            f"No classifier with an FDR of at most {max_fdr:.3g} meets the other constraints on "
            f"what is known, so nobody is accepted where that is so; lower min_selection_rate or "
            f"allow a larger difference between groups."
        ), True
    if n_exploit == 0 and n_known >= ENOUGH_TO_TELL:
        return (
            f"No cell of these people is worth accepting with an estimated FDR of at most "
            f"{max_fdr:.3g}, so nobody was accepted, and little or nobody explored; check that "
            f"{good!r} is the good outcome (pos_label), raise alpha, or change the utility."
        ), True
    if np.isnan(f.gap):
        return "Follows the past policy.", False
    if f.gap > gap + 1e-9:
        return f"The best classifier is known to a relative gap of {f.gap:.2g} only.", False
    return "", False
