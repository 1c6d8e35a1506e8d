"""What a fitted certified classifier says of people without deciding about them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from secondlook.core.decisions import CertifiedRound
from secondlook.errors import InputError
from secondlook.methods.certified.engine import Choice, Engine
from secondlook.methods.estimator import DecidingClassifier
from secondlook.people.likelihoods import GroupedLikelihood, Likelihood
from secondlook.people.reasons import Scored

__all__ = ["CertifiedAnswers"]

Floats = NDArray[np.float64]


class CertifiedAnswers(DecidingClassifier):
    """The part of the classifier that reads and changes nothing."""

    group_as_feature: bool
    _choices: list[Choice]
    _engines: list[Engine]
    _likelihoods: list[Likelihood]
    _rounds: list[CertifiedRound]

    def accepts(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.bool_]:
        """Return whom the policy of the last round accepts for sure; before any, nobody."""
        check_is_fitted(self)
        features, group = self._intake.for_scoring(self, X, sensitive_features, needed=True)
        sure = np.zeros(len(group), np.bool_)
        for z, choice in enumerate(self._choices):
            rows = self._rows_of(group, z)
            standing = choice.ladder.standing(features[rows], group[rows])
            sure[rows] = standing.rank <= choice.ladder.grid[choice.rung]
        return sure

    def acceptance_probability(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """Return the probability with which the policy of the last round accepts anybody."""
        check_is_fitted(self)
        if not self._choices:
            raise InputError("no round has been decided yet, so no policy is deployed; decide one.")
        features, group = self._intake.for_scoring(self, X, sensitive_features, needed=True)
        p = np.empty(len(group))
        for z, choice in enumerate(self._choices):
            rows = self._rows_of(group, z)
            standing = choice.ladder.standing(features[rows], group[rows])
            p[rows] = choice.ladder.policy(standing, choice.rung)
        return p

    def never_explored(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.bool_]:
        """Return who cannot be explored, as things stand, for the limits of the strategy.

        They are accepted for sure or not at all. Whoever a rule excludes is so for good; whoever
        looks too risky to the model of the last round may not be to a later one.
        """
        check_is_fitted(self)
        features, group = self._intake.for_scoring(self, X, sensitive_features, needed=True)
        barred = np.zeros(len(group), np.bool_)
        for z, engine in enumerate(self._engines):
            rows = self._rows_of(group, z)
            ranking = self._choices[z].ladder.ranking if self._choices else None
            model = self._likelihoods[z] if ranking is None else ranking
            if rows.size:
                why = engine.rules.strategy.barred(
                    features[rows], np.asarray(model.score(features[rows], group[rows]))
                )
                barred[rows] = False if why is None else why != 0
        return barred

    def scored_by(self, X: Any, *, sensitive_features: Any = None) -> Scored:
        """Return people as the policy of the last round reads them, with what ranks them."""
        check_is_fitted(self)
        if not self._choices:
            raise InputError("no round has been decided yet, so no policy is deployed; decide one.")
        parts = tuple(choice.ladder.ranking.likelihood for choice in self._choices)
        likelihood = parts[0] if len(parts) == 1 else GroupedLikelihood(parts)
        features, group = self._intake.for_scoring(
            self, X, sensitive_features, likelihood.reads_group
        )
        return Scored(likelihood, features, group)

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """Return the newest model's likelihood of each outcome, in the order of ``classes_``."""
        check_is_fitted(self)
        several = len(self._engines) > 1
        needed = self.group_as_feature or several or self._likelihoods[0].reads_group
        features, group = self._intake.for_scoring(self, X, sensitive_features, needed=needed)
        score = np.empty(len(group))
        for z, likelihood in enumerate(self._likelihoods):
            rows = self._rows_of(group, z)
            if rows.size:
                score[rows] = likelihood.score(features[rows], group[rows])
        return self._per_class(score)

    @property
    def rounds_(self) -> tuple[CertifiedRound, ...]:
        """What happened in each round; one entry per group where each has its certificate."""
        check_is_fitted(self, "_rounds")
        return tuple(self._rounds)

    def _rows_of(self, group: NDArray[np.intp], z: int) -> NDArray[np.intp]:
        return np.arange(group.size) if len(self._engines) == 1 else np.flatnonzero(group == z)
