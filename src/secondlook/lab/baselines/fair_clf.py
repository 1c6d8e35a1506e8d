"""FAIR-CLF: exploit only, refitted each round on every outcome so far, with group parity."""

from __future__ import annotations

from typing import Any, Literal

from secondlook.core.budget import ExploitOnly, ExploitSchedule
from secondlook.core.coverage import SummedAcceptance
from secondlook.core.fairness import SelectionRateParity
from secondlook.core.utility import Utility
from secondlook.learners.logistic import ConstrainedLogistic
from secondlook.methods.algorithm1.classifier import PartialFeedbackClassifier

__all__ = ["AllKnown", "Parity", "fair_clf"]

Parity = Literal["none", "cut", "fit"]
_NEVER = 10**9  # outcomes of our own from which on the history would be left out


class AllKnown(SummedAcceptance):
    """All applicants are in the exploit region, whatever past policies would have decided."""

    def level(self, n_rounds: int) -> float:  # noqa: ARG002
        """Return a level that no sum of probabilities can miss."""
        return -1.0


def fair_clf(
    utility: Utility,
    alpha: float = 0.15,
    *,
    difference: float = 0.05,
    parity: Parity = "cut",
    thresholds: Literal["shared", "per_group"] = "per_group",
    schedule: ExploitSchedule | None = None,
    constrain_fit: bool = False,
    group_as_feature: bool = False,
    random_state: Any = None,
) -> PartialFeedbackClassifier:
    """Return the paper's exploit-only comparison as a setting of the same classifier.

    All applicants count as known, rows are not weighted, there is no exploration, and the history
    counts for ever. Its labelled rows become its own past acceptances, so its estimate of mistakes
    is too low by construction; the comparison shows by how much.

    Parameters
    ----------
    utility
        What decisions are worth.
    alpha
        α, the bound on the FDR of the labelled rows, constant unless a schedule is given.
    difference
        Largest selection-rate difference between groups, on the labelled rows.
    parity
        Where that is required: at the cut, in the fit (in expectation), or nowhere.
    thresholds
        One cut for all groups, or one for each.
    schedule
        α_exploit over the rounds, such as Algorithm 1's, for a comparison at equal budgets.
    constrain_fit
        Also hold the FDR, in expectation, in the fit, as the paper does.
    group_as_feature
        Append the group to the features.
    random_state
        Seed of the halves.
    """
    similar = SelectionRateParity(difference)
    return PartialFeedbackClassifier(
        utility=utility,
        budget=ExploitOnly(alpha, alpha if schedule is None else schedule),
        coverage=AllKnown(),
        learner=ConstrainedLogistic(fairness=similar if parity == "fit" else None),
        fairness=similar if parity == "cut" else None,
        thresholds=thresholds,
        weights="none",
        min_outcomes=_NEVER,
        first_round="learned",
        group_as_feature=group_as_feature,
        constrain_fit=constrain_fit,
        random_state=random_state,
    )
