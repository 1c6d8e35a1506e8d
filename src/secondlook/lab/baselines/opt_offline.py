"""OPT-OFFLINE: what a classifier with full knowledge would earn; a reference, not a method.

Three readings: trained on S_0 with all its outcomes (the paper's text); each round by a model of
all other rounds; one model of all rounds, judged on the people it was fitted to, which is the
ceiling of linear rules for that very stream. None is available in practice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secondlook.core.decisions import Decisions
from secondlook.core.utility import Utility
from secondlook.errors import InputError
from secondlook.learners.logistic import ConstrainedLogistic
from secondlook.learners.thresholds import shared_threshold
from secondlook.people.likelihoods import LinearLikelihood

__all__ = ["OfflineOptimum", "OracleOptimum"]

Floats = NDArray[np.float64]


def _linear(model: ConstrainedLogistic) -> LinearLikelihood:
    return LinearLikelihood(model.coef_[0].copy(), float(model.intercept_[0]))


def _score(model: LinearLikelihood, X: Floats) -> Floats:
    return np.asarray(model.score(X, np.zeros(len(X), np.intp)), dtype=np.float64)


def _best_cut(score: Floats, y: NDArray[np.int8], utility: Utility, alpha: float) -> float:
    """Return the threshold of largest utility among those with FDR ≤ α on these rows."""
    n = score.size
    point = shared_threshold(
        score,
        y,
        np.ones(n),
        np.zeros(n, np.intp),
        1,
        utility=utility,
        max_fdr=alpha,
        min_selection_rate=0.0,
        fairness=None,
    )
    return float(point.thresholds[0])


class _Fixed:
    """Something that accepts from a threshold on, and learns nothing more."""

    groups: tuple[str, ...]
    _threshold: float
    _decided: int = 0
    _round: int = 0

    def _features(self, X: Floats, group: Any) -> Floats:
        """Append the group, one column per group but the first, if groups were named."""
        if len(self.groups) < 2:
            return X
        return np.hstack([X, np.asarray(group)[:, None] == np.array(self.groups[1:])])

    def _decisions(self, score: Floats, ids: Any) -> Decisions:
        n = score.size
        names = np.arange(self._decided, self._decided + n) if ids is None else np.asarray(ids)
        accepted = score >= self._threshold
        self._decided, self._round = self._decided + n, self._round + 1
        return Decisions(
            names, accepted, np.ones(n, bool), score, accepted.astype(np.float64), self._round
        )

    def observe(self, ids: Any, outcomes: Any) -> None:
        """Ignore outcomes: everything was known from the start."""

    def correct(self, ids: Any, outcomes: Any) -> None:
        """Ignore corrections too."""


class OfflineOptimum(_Fixed):
    """Trained once on i.i.d. people with all outcomes known, then fixed.

    Half of the rows fit a logistic model, the other half choose the threshold with the largest
    utility among those whose FDR there is at most α.

    Parameters
    ----------
    utility
        What decisions are worth.
    alpha
        α.
    constrain_fit
        Also hold the FDR, in expectation, in the fit, as the paper does.
    groups
        All groups, if the group is to be appended to the features.
    random_state
        Seed of the halves.
    """

    def __init__(
        self,
        utility: Utility,
        alpha: float = 0.15,
        *,
        constrain_fit: bool = False,
        groups: tuple[str, ...] = (),
        random_state: int = 0,
    ) -> None:
        self.utility = utility
        self.alpha = alpha
        self.groups = groups
        self.constrain_fit = constrain_fit
        self.random_state = random_state

    def fit(self, X: Floats, y: ArrayLike, *, sensitive_features: Any = None) -> OfflineOptimum:
        """Learn from people with known outcomes."""
        X = self._features(X, sensitive_features)
        outcome = np.asarray(y).astype(np.int8)
        order = np.random.default_rng(self.random_state).permutation(len(X))
        fit_on, set_on = np.array_split(order, 2)
        bound = self.alpha if self.constrain_fit else None
        model = ConstrainedLogistic(max_fdr=bound).fit(X[fit_on], outcome[fit_on])
        self._model = _linear(model)
        self._threshold = _best_cut(
            _score(self._model, X[set_on]), outcome[set_on], self.utility, self.alpha
        )
        return self

    def decide(self, X: Floats, *, sensitive_features: Any = None, ids: Any = None) -> Decisions:
        """Decide a batch."""
        return self._decisions(_score(self._model, self._features(X, sensitive_features)), ids)

    def accepts(self, X: Floats, *, sensitive_features: Any = None) -> NDArray[np.bool_]:
        """Return which applicants the fixed rule accepts."""
        score = _score(self._model, self._features(X, sensitive_features))
        return np.asarray(score >= self._threshold)

    def acceptance_probability(self, X: Floats, *, sensitive_features: Any = None) -> Floats:
        """Return 1 for applicants that the fixed rule accepts, 0 for others."""
        return self.accepts(X, sensitive_features=sensitive_features).astype(np.float64)


class OracleOptimum(_Fixed):
    """Knows all outcomes of the stream; one threshold for all of it, chosen with hindsight.

    Parameters
    ----------
    utility
        What decisions are worth.
    alpha
        α.
    cross_fit
        Whether each batch is scored by a model of all others, or by one model of all.
    groups
        All groups, if the group is to be appended to the features.
    """

    def __init__(
        self,
        utility: Utility,
        alpha: float = 0.15,
        *,
        cross_fit: bool = True,
        groups: tuple[str, ...] = (),
    ) -> None:
        self.utility = utility
        self.alpha = alpha
        self.groups = groups
        self.cross_fit = cross_fit

    def fit(
        self,
        batches: Sequence[tuple[Floats, NDArray[np.int8]]],
        *,
        sensitive_features: Sequence[Any] | None = None,
    ) -> OracleOptimum:
        """Learn from the batches of the whole stream, in their order."""
        if self.cross_fit and len(batches) < 2:
            raise InputError(f"cross-fitting needs at least 2 batches, got {len(batches)}.")
        groups = [None] * len(batches) if sensitive_features is None else sensitive_features
        X = np.concatenate(
            [self._features(X, z) for (X, _), z in zip(batches, groups, strict=True)]
        )
        y = np.concatenate([outcome for _, outcome in batches]).astype(np.int8)
        ends = np.cumsum([len(people) for people, _ in batches])
        self._batches = [people for people, _ in batches]
        model = ConstrainedLogistic(warm_start=True)  # one batch more or less changes little
        self._scores: list[Floats] = []
        self._models: list[LinearLikelihood] = []
        for begin, end in zip(np.append(0, ends[:-1]), ends, strict=True):
            if self.cross_fit or begin == 0:
                weight = np.ones(y.size)
                weight[begin:end] = 0.0 if self.cross_fit else 1.0
                model.fit(X, y, sample_weight=weight)
            self._models.append(_linear(model))
            self._scores.append(_score(self._models[-1], X[begin:end]))
        self._threshold = _best_cut(np.concatenate(self._scores), y, self.utility, self.alpha)
        return self

    def decide(self, X: Floats, *, sensitive_features: Any = None, ids: Any = None) -> Decisions:  # noqa: ARG002
        """Decide the next batch of the stream it was fitted to."""
        if self._round >= len(self._scores) or not np.array_equal(self._batches[self._round], X):
            raise InputError(
                f"this reference knows the {len(self._scores)} batches of its stream in their "
                f"order, and batch {self._round + 1} is not the next of them; fit it to this one."
            )
        return self._decisions(self._scores[self._round], ids)

    def acceptance_probability(self, X: Floats, *, sensitive_features: Any = None) -> Floats:
        """Return 1 for applicants that the rule of the last round accepts, 0 for others."""
        if self._round == 0:
            raise InputError("no round has been decided yet, so no rule is in use; decide one.")
        score = _score(self._models[self._round - 1], self._features(X, sensitive_features))
        return (score >= self._threshold).astype(np.float64)
