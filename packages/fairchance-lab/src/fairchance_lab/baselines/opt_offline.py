"""Fixed rules, and the paper's: OPT-OFFLINE, which knows all outcomes of S_0."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairchance.core.decisions import Decisions
from fairchance.core.utility import Utility
from fairchance.learners.logistic import ConstrainedLogistic
from fairchance.learners.thresholds import shared_threshold

__all__ = ["FixedRule", "OptOffline"]

Floats = NDArray[np.float64]


class FixedRule:
    """Accepts applicants whose score is at least a threshold, and learns nothing more."""

    _threshold: float
    _decided: int = 0
    _round: int = 0

    def _score(self, X: Floats, group: Any) -> Floats:
        """Return the likelihood of a good outcome."""
        raise NotImplementedError

    def decide(self, X: Floats, *, sensitive_features: Any = None, ids: Any = None) -> Decisions:
        """Decide a batch."""
        score, n = self._score(X, sensitive_features), len(X)
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

    def accepts(self, X: Floats, *, sensitive_features: Any = None) -> NDArray[np.bool_]:
        """Return which applicants the fixed rule accepts."""
        return np.asarray(self._score(X, sensitive_features) >= self._threshold)

    def acceptance_probability(self, X: Floats, *, sensitive_features: Any = None) -> Floats:
        """Return 1 for applicants that the fixed rule accepts, 0 for others."""
        return self.accepts(X, sensitive_features=sensitive_features).astype(np.float64)


class OptOffline(FixedRule):
    """Trained once on i.i.d. people with all outcomes known, then fixed.

    Half of the rows fit a logistic model, the other half choose the threshold with the largest
    utility, by default among those whose FDR there is at most α.

    Parameters
    ----------
    utility
        What decisions are worth.
    alpha
        α.
    bounds_in
        Where the bound on FDR holds: at the threshold, in the fit (in expectation), or in both. In
        the fit alone, as in the paper, the threshold maximises utility and nothing else.
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
        bounds_in: Literal["thresholds", "fit", "both"] = "thresholds",
        groups: tuple[str, ...] = (),
        random_state: int = 0,
    ) -> None:
        self.utility = utility
        self.alpha = alpha
        self.groups = groups
        self.bounds_in = bounds_in
        self.random_state = random_state

    def fit(self, X: Floats, y: ArrayLike, *, sensitive_features: Any = None) -> OptOffline:
        """Learn from people with known outcomes."""
        X = self._features(X, sensitive_features)
        outcome = np.asarray(y).astype(np.int8)
        order = np.random.default_rng(self.random_state).permutation(len(X))
        fit_on, set_on = np.array_split(order, 2)
        bound = None if self.bounds_in == "thresholds" else self.alpha
        self._model = ConstrainedLogistic(max_fdr=bound).fit(X[fit_on], outcome[fit_on])
        point = shared_threshold(
            self._model.predict_proba(X[set_on])[:, 1],
            outcome[set_on],
            np.ones(set_on.size),
            np.zeros(set_on.size, np.intp),
            1,
            utility=self.utility,
            max_fdr=1.0 if self.bounds_in == "fit" else self.alpha,
        )
        self._threshold = float(point.thresholds[0])
        return self

    def _score(self, X: Floats, group: Any) -> Floats:
        return np.asarray(self._model.predict_proba(self._features(X, group))[:, 1])

    def _features(self, X: Floats, group: Any) -> Floats:
        """Append the group, one column per group but the first, if groups were named."""
        if len(self.groups) < 2:
            return X
        return np.hstack([X, np.asarray(group)[:, None] == np.array(self.groups[1:])])
