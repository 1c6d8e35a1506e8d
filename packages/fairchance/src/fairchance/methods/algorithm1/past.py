"""f_0, the policy of the past: given by the user, or imitated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from fairchance.core.saved import saved
from fairchance.errors import InputError
from fairchance.learners.logistic import ConstrainedLogistic
from fairchance.learners.overlooked import Overlooked
from fairchance.learners.per_group import PerGroup
from fairchance.learners.wrap import fit_likelihood
from fairchance.methods.estimator import allows_missing, prepare_learner
from fairchance.people.columns import Expansion
from fairchance.people.intake import History
from fairchance.people.likelihoods import (
    ConstantLikelihood,
    Likelihood,
    LinearLikelihood,
    PolicyFunction,
    expanded,
)

__all__ = ["PastPolicy", "matched_cut", "past_policy"]

_NOTHING = Overlooked()
_NO_CHANCE = 1e-30  # f_0 accepts no applicant with a smaller probability


@saved
@dataclass(frozen=True)
class PastPolicy:
    """f_0 as a likelihood of acceptance, and whether round 1 can follow it.

    Attributes
    ----------
    likelihood
        f_0's probability of acceptance.
    decides
        Whether round 1 can follow it.
    cut
        Probability from which the share of the history is accepted that the past accepted.
    """

    likelihood: Likelihood
    decides: bool
    cut: float = 0.5

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
    overlooked: Overlooked = _NOTHING,
) -> PastPolicy:
    """Return f_0: the policy given, or a model fitted to imitate it.

    A history without rejections says nothing about the past policy, so round 1 cannot follow it.
    The model treats applicants with a value that the past overlooked like the others.
    """
    if given is not None:
        if not callable(given) and not hasattr(given, "predict_proba"):
            raise InputError(
                f"past_policy must be a function of X that returns probabilities of acceptance, or "
                f"a fitted classifier with predict_proba, got {given!r}."
            )
        return _matched(PolicyFunction(given, n_features), history)
    if history.accepted.all():
        return PastPolicy(_accept_all(history.X, learner, expansion), decides=False)
    imitator = _unconstrained(prepare_learner(learner))
    n = len(history)
    group = np.zeros(n, dtype=np.intp)
    target = history.accepted.astype(np.int8)
    X, weight = history.X, np.ones(n)
    if overlooked.values:
        weight[~history.accepted & overlooked.among(X)] = 0
        X = overlooked.neutral(X)
    likelihood, _ = fit_likelihood(imitator, X, target, weight, group, 1, expansion=expansion)
    return _matched(overlooked.scored_by(likelihood), history)


def _matched(likelihood: Likelihood, history: History) -> PastPolicy:
    score = likelihood.score(history.X, np.zeros(len(history), np.intp))
    return PastPolicy(likelihood, decides=True, cut=matched_cut(score, history.accepted))


def matched_cut(score: NDArray[np.floating], accepted: NDArray[Any], count: Any = None) -> float:
    """Return the cut on f_0's score that accepts as many of the history as the past accepted.

    It lies between two scores. Applicants with one score cannot be told apart, so the number of
    accepted is the nearest possible one, and never zero. A history without rejections does not
    say which share of its applicants the past accepted: then the cut is ½.

    ``score`` and ``accepted`` may be of cells with ``count`` applicants each.

    Examples
    --------
    >>> matched_cut(np.array([0.9, 0.8, 0.7, 0.6]), np.array([True, True, False, False]))
    0.75
    """
    size = np.ones(score.shape[0]) if count is None else np.asarray(count, np.float64)
    wanted = float(accepted.sum())
    if wanted >= size.sum():
        return 0.5
    values, at = np.unique(np.asarray(score, np.float64)[size > 0], return_inverse=True)
    above = np.bincount(at, size[size > 0])[::-1].cumsum()[::-1]  # that score at least each value
    excess = np.abs(above - wanted)
    best = int(np.flatnonzero(excess == excess.min())[-1])  # of two equally near, the stricter
    below = values[best - 1] if best else 0.0
    return max(float(below + values[best]) / 2, _NO_CHANCE)


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
