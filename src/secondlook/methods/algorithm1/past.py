"""f_0, the policy of the past: given by the user, or imitated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from secondlook.core.saved import saved
from secondlook.errors import InputError
from secondlook.learners.logistic import ConstrainedLogistic
from secondlook.learners.per_group import PerGroup
from secondlook.learners.wrap import fit_likelihood
from secondlook.methods.estimator import allows_missing, prepare_learner
from secondlook.people.columns import Expansion
from secondlook.people.intake import History
from secondlook.people.likelihoods import (
    ConstantLikelihood,
    Likelihood,
    LinearLikelihood,
    PolicyFunction,
    expanded,
)

__all__ = ["PastPolicy", "past_policy"]


@saved
@dataclass(frozen=True)
class PastPolicy:
    """f_0 as a likelihood of acceptance, and whether round 1 can follow it."""

    likelihood: Likelihood
    decides: bool

    @property
    def given(self) -> Any:
        """The policy as the user gave it; None if the past was imitated."""
        return self.likelihood.policy if isinstance(self.likelihood, PolicyFunction) else None


def past_policy(
    given: Any,
    learner: Any,
    history: History,
    n_features: int,
    expansion: Expansion | None = None,
) -> PastPolicy:
    """Return f_0: the policy given, or a model fitted to imitate it.

    A history without rejections says nothing about the past policy, so round 1 cannot follow it.
    """
    if given is not None:
        if not callable(given) and not hasattr(given, "predict_proba"):
            raise InputError(
                f"past_policy must be a function of X that returns probabilities of acceptance, or "
                f"a fitted classifier with predict_proba, got {given!r}."
            )
        return PastPolicy(PolicyFunction(given, n_features), decides=True)
    if history.accepted.all():
        return PastPolicy(_accept_all(history.X, learner, expansion), decides=False)
    imitator = _unconstrained(prepare_learner(learner))
    n = len(history)
    group = np.zeros(n, dtype=np.intp)
    target = history.accepted.astype(np.int8)
    likelihood, _ = fit_likelihood(
        imitator, history.X, target, np.ones(n), group, 1, expansion=expansion
    )
    return PastPolicy(likelihood, decides=True)


def _accept_all(X: Any, learner: Any, expansion: Expansion | None) -> Likelihood:
    """Return a score of 1, as a linear model if possible, since the log is faster with those."""
    if isinstance(X, np.ndarray) and not allows_missing(learner):
        numbers = X[:1] if expansion is None else expansion.numbers(X[:1])
        return expanded(LinearLikelihood(np.zeros(numbers.shape[1]), np.inf), expansion)
    return ConstantLikelihood(1.0)


def _unconstrained(learner: Any) -> Any:
    """Return a learner without the constraints that are meant for f_t, not for the past."""
    if isinstance(learner, PerGroup):
        return _unconstrained(prepare_learner(learner.learner))
    last = learner.steps[-1][1] if isinstance(learner, Pipeline) else learner
    if isinstance(last, ConstrainedLogistic):
        last.set_params(fairness=None, max_fdr=None, min_selection_rate=None)
    return learner
