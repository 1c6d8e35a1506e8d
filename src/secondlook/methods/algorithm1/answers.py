"""What a fitted classifier of Algorithm 1 says of people without deciding about them."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from secondlook.core.budget import FdrBudget
from secondlook.core.coverage import CoverageRule, SummedAcceptance
from secondlook.core.decisions import Round
from secondlook.core.strategies import Strategy, as_strategy
from secondlook.errors import InputError
from secondlook.methods.algorithm1.learning import Learned
from secondlook.methods.algorithm1.policy_log import LoggedPolicy, PolicyLog, per_person
from secondlook.methods.estimator import DecidingClassifier
from secondlook.people.reasons import Scored
from secondlook.people.store import PeopleStore

__all__ = ["Answers"]


class Answers(DecidingClassifier):
    """The part of the classifier that reads and changes nothing."""

    budget: FdrBudget | None
    coverage: CoverageRule | None
    strategy: Any
    _deployed: Learned
    _learned: Learned
    _log: PolicyLog
    _people: PeopleStore
    _rounds: list[Round]

    def accepts(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.bool_]:
        """Return whom f_t accepts at its operating point, whether known or not.

        f_t is the classifier of the last ``decide`` (f_0 in a round that follows the past), or what
        the history taught after ``fit``. Nothing is recorded.
        """
        check_is_fitted(self)
        score, group = self._score(X, sensitive_features, self._deployed)
        return np.asarray(score >= per_person(self._deployed.thresholds, group))

    def acceptance_probability(
        self, X: Any, *, sensitive_features: Any = None
    ) -> NDArray[np.float64]:
        """Return the probability with which the last round's policy accepts anybody.

        0 or 1 in the exploit region of that round, the chance of being drawn elsewhere, for people
        who were not in its batch.
        """
        check_is_fitted(self)
        if not self._rounds:
            raise InputError("no round has been decided yet, so no policy is deployed; decide one.")
        features, group = self._intake.for_scoring(self, X, sensitive_features, needed=True)
        before = copy.copy(self._log)
        before.policies = self._log.policies[:-1]
        coverage = before.coverage(features, group, self._rule)
        everybody, last = np.arange(coverage.size), len(before.policies)
        times, _ = self._log.catch_up(
            features, group, self._rule, begin=last, coverage=coverage, rows=everybody
        )
        return np.asarray(times / self._log.policies[-1].n_people)

    def never_explored(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.bool_]:
        """Return who cannot be explored, as things stand, for the limits of the strategy.

        Whoever a rule excludes or an exposure limit leaves out is so for good; whoever looks too
        risky to f_t may not be once f_t has learned. f_t is that of ``accepts``. Somebody known
        already needs no exploring, whether or not they are among these.
        """
        check_is_fitted(self)
        likelihood = self._deployed.likelihood
        features, group = self._intake.for_scoring(
            self, X, sensitive_features, likelihood.reads_group
        )
        why = self._strategy.barred(features, np.asarray(likelihood.score(features, group)))
        return np.zeros(group.size, np.bool_) if why is None else np.asarray(why != 0)

    def scored_by(self, X: Any, *, sensitive_features: Any = None) -> Scored:
        """Return people as f_t reads them, with its likelihood; f_t is that of ``accepts``."""
        check_is_fitted(self)
        likelihood = self._deployed.likelihood
        features, group = self._intake.for_scoring(
            self, X, sensitive_features, likelihood.reads_group
        )
        return Scored(likelihood, features, group)

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.float64]:
        """Return f_t's likelihood of each outcome, in the order of ``classes_``."""
        check_is_fitted(self)
        score, _ = self._score(X, sensitive_features, self._learned)
        return self._per_class(score)

    def coverage_of(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.float64]:
        """Return the coverage w of people as the next round will see it."""
        check_is_fitted(self)
        features, group = self._intake.for_scoring(self, X, sensitive_features, needed=True)
        w = self._log.coverage(features, group, self._rule)
        return w / self._rule.count(len(self._rounds))

    @property
    def rounds_(self) -> tuple[Round, ...]:
        """What happened in each round."""
        check_is_fitted(self, "_rounds")
        return tuple(self._rounds)

    @property
    def policies_(self) -> tuple[LoggedPolicy, ...]:
        """The logged policies; one may stand for several rounds that acted alike."""
        check_is_fitted(self, "_log")
        return tuple(self._log.policies)

    @property
    def n_outcomes_(self) -> int:
        """Number of outcomes known, those of the history included."""
        check_is_fitted(self, "_people")
        return self._people.n_outcomes

    def _score(self, X: Any, sensitive_features: Any, f: Learned) -> tuple[Any, NDArray[np.intp]]:
        needed = bool(np.any(f.thresholds != f.thresholds[0])) or f.likelihood.reads_group
        features, group = self._intake.for_scoring(self, X, sensitive_features, needed)
        return np.asarray(f.likelihood.score(features, group), dtype=np.float64), group

    @property
    def _budget(self) -> FdrBudget:
        return FdrBudget() if self.budget is None else self.budget

    @property
    def _rule(self) -> CoverageRule:
        return SummedAcceptance() if self.coverage is None else self.coverage

    @property
    def _strategy(self) -> Strategy:
        return self._allowed(as_strategy(self.strategy).for_columns(self._intake.names))
