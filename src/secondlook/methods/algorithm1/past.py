"""f_0: how the past decided, given or imitated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from secondlook.errors import InputError
from secondlook.learners.logistic import ConstrainedLogistic
from secondlook.learners.per_group import PerGroup
from secondlook.learners.wrap import fit_likelihood
from secondlook.people.intake import History
from secondlook.people.likelihoods import (
    ConstantLikelihood,
    Likelihood,
    LinearLikelihood,
    PolicyFunction,
)

__all__ = ["PastPolicy", "allows_missing", "check_learner", "past_policy", "prepare_learner"]


@dataclass(frozen=True)
class PastPolicy:
    """f_0 as a likelihood of acceptance, and whether it says anything about whom to accept."""

    likelihood: Likelihood
    decides: bool

    @property
    def given(self) -> Any:
        """The policy as the user gave it; None if the past was imitated."""
        return self.likelihood.policy if isinstance(self.likelihood, PolicyFunction) else None


def check_learner(learner: Any) -> None:
    """Raise unless a learner is None or something that can be fitted and gives probabilities."""
    if learner is None or (hasattr(learner, "fit") and hasattr(learner, "predict_proba")):
        return
    raise InputError(
        f"learner must be a scikit-learn classifier with predict_proba, got {learner!r}."
    )


def prepare_learner(learner: Any) -> Any:
    """Return a fresh learner that starts each fit from its last solution where it can."""
    check_learner(learner)
    if learner is None:
        return ConstrainedLogistic(warm_start=True)
    fresh = clone(learner)
    if isinstance(fresh, ConstrainedLogistic):
        fresh.set_params(warm_start=True)
    return fresh


def allows_missing(learner: Any) -> bool:
    """Say whether a learner's first step takes missing features."""
    if isinstance(learner, PerGroup):
        return allows_missing(learner.learner)
    first = learner.steps[0][1] if isinstance(learner, Pipeline) else learner
    return first is not None and bool(get_tags(first).input_tags.allow_nan)


def past_policy(given: Any, learner: Any, history: History, n_features: int) -> PastPolicy:
    """Return f_0: the policy given, or a model fitted to imitate who was accepted.

    With nobody rejected and no policy given, everybody was accepted and there is no rule to follow.
    """
    if given is not None:
        if not callable(given) and not hasattr(given, "predict_proba"):
            raise InputError(
                f"past_policy must be a function of X that returns probabilities of acceptance, or "
                f"a fitted classifier with predict_proba, got {given!r}."
            )
        return PastPolicy(PolicyFunction(given, n_features), decides=True)
    if history.accepted.all():
        return PastPolicy(_everybody(history.X, allows_missing(learner)), decides=False)
    imitator = _unconstrained(prepare_learner(learner))
    n = len(history)
    group = np.zeros(n, dtype=np.intp)
    target = history.accepted.astype(np.int8)
    likelihood, _ = fit_likelihood(imitator, history.X, target, np.ones(n), group, 1)
    return PastPolicy(likelihood, decides=True)


def _everybody(X: Any, missing: bool) -> Likelihood:
    """Return a score of 1, as a linear model where features allow, for the sake of speed."""
    if isinstance(X, np.ndarray) and not missing:
        return LinearLikelihood(np.zeros(X.shape[1]), np.inf)
    return ConstantLikelihood(1.0)


def _unconstrained(learner: Any) -> Any:
    """Return a learner without the constraints that are meant for f_t, not for the past."""
    if isinstance(learner, PerGroup):
        return _unconstrained(prepare_learner(learner.learner))
    last = learner.steps[-1][1] if isinstance(learner, Pipeline) else learner
    if isinstance(last, ConstrainedLogistic):
        last.set_params(fairness=None, max_fdr=None, min_selection_rate=None)
    return learner
