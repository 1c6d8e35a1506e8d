"""How f_t is learned in a round, by the options of a classifier."""

from __future__ import annotations

from typing import Any

from secondlook.core.budget import FdrBudget
from secondlook.core.coverage import CoverageRule
from secondlook.core.fairness import RateParity
from secondlook.core.noise import OutcomeNoise
from secondlook.core.utility import Accuracy
from secondlook.methods.algorithm1.learning import LearningRules

__all__ = ["learning_rules"]


def learning_rules(
    classifier: Any,
    t: int,
    budget: FdrBudget,
    rule: CoverageRule,
    fairness: RateParity | None,
    n_groups: int,
    waiting: tuple[int, ...] | None,
) -> LearningRules:
    """Return the rules of a round.

    Parameters
    ----------
    classifier
        Whose options these are.
    t
        Number of the round.
    budget, rule
        Its budget and its coverage rule, usual ones where none is given.
    fairness
        Its constraint over the attributes of the history.
    n_groups
        How many groups there are.
    waiting
        Rounds that are not mature yet; None if outcomes count as they come.
    """
    return LearningRules(
        utility=Accuracy() if classifier.utility is None else classifier.utility,
        rule=rule,
        fairness=fairness,
        thresholds=classifier.thresholds,
        split=classifier.split,
        weights=classifier.weights,
        weight_cap=classifier.weight_cap,
        min_outcomes=classifier.min_outcomes,
        constrain_fit=classifier.constrain_fit,
        n_groups=n_groups,
        max_fdr=budget.max_fdr(t),
        min_selection_rate=max(0.0, budget.min_selection_rate - budget.slack),
        noise=OutcomeNoise() if classifier.noise is None else classifier.noise,
        waiting=waiting,
    )
