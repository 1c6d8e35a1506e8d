"""What the classifiers that decide have in common as scikit-learn estimators."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from secondlook.core.decisions import Correction, Decisions, GroupCount
from secondlook.core.fairness import RateParity
from secondlook.core.strategies import Strategy
from secondlook.methods.algorithm1.past import allows_missing, prepare_learner
from secondlook.methods.group_modes import bound_fairness, bound_learner, deciding_strategy
from secondlook.people.batches import Batch
from secondlook.people.intake import Intake
from secondlook.people.ranges import Range, as_ranges
from secondlook.people.store import GrowingArray

__all__ = ["DecidingClassifier"]


class DecidingClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the classifiers: a subclass has ``_start`` and ``predict_proba``."""

    learner: Any
    group_mode: Any = "aware"  # for subclasses that have no such option
    attributes: Any = "crossed"
    classes_: NDArray[Any]
    _intake: Intake
    _corrections: list[Correction]
    _head_counts: GrowingArray

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = allows_missing(self.learner)
        return tags

    def _begin(self, *history: Any) -> None:
        """Start on a copy: if something is wrong with a history, what was known is not lost."""
        fresh = copy.copy(self)
        fresh._start(*history)
        self.__dict__.clear()
        self.__dict__.update(fresh.__dict__)

    @property
    def corrections_(self) -> tuple[Correction, ...]:
        """Outcomes that were replaced, in the order in which that was told."""
        check_is_fitted(self, "_corrections")
        return tuple(self._corrections)

    @property
    def feature_ranges_(self) -> dict[str | int, Range] | None:
        """Least and largest number of each column of the history, rounded outward.

        By name, or by position where columns have none. Rounded, since the extremes are single
        people's; nothing is decided by them. None for cells, and in files of older versions.

        Examples
        --------
        >>> from secondlook import PartialFeedbackClassifier
        >>> X = np.array([[339.0], [2417.0], [10_636.0]])
        >>> PartialFeedbackClassifier(random_state=0).fit(X, [0, 1, 1]).feature_ranges_
        {0: Range(low=300.0, high=12000.0, n_values=3)}
        """
        check_is_fitted(self, "_intake")
        kept = self._intake.ranges
        return None if kept is None else as_ranges(kept)

    def _remember_corrections(
        self, round: int, names: NDArray[Any], before: NDArray[Any], after: NDArray[Any]
    ) -> None:
        labels = {1: self._intake.good, 0: self._intake.bad}
        told = zip(names.tolist(), before.tolist(), after.tolist(), strict=True)
        self._corrections += [
            Correction(name, round, labels.get(old), labels[new])
            for name, old, new in dict.fromkeys(told)
        ]

    def _forget_corrections(self, names: NDArray[Any]) -> None:
        """Drop what was told of people who are to be forgotten."""
        gone = set(names.tolist())
        self._corrections = [one for one in self._corrections if one.id not in gone]

    @property
    def group_counts_(self) -> tuple[GroupCount, ...]:
        """How many of each group applied, were accepted and explored, round by round.

        By combination of the protected attributes, or by each attribute where these stand side by
        side. Nothing of it is ever read by a decision.
        """
        check_is_fitted(self, "_head_counts")
        known = self._intake.sensitive
        if known is None:
            return ()
        counts = self._head_counts.view()
        if self.attributes == "crossed":
            tables = [(", ".join(known.titles), known.labels, np.arange(known.n_groups))]
        else:
            tables = list(zip(known.titles, known.values, known.level_of, strict=True))
        return tuple(
            GroupCount(t + 1, title, value, *in_round[:, level_of == z].sum(axis=1).tolist())
            for t, in_round in enumerate(counts)
            for title, values, level_of in tables
            for z, value in enumerate(values.tolist())
        )

    def _start_counts(self) -> None:
        known = self._intake.sensitive
        self._head_counts = GrowingArray(np.empty((0, 3, known.n_groups if known else 1), np.int64))

    def _counted(self, batch: Batch, decided: Decisions) -> Decisions:
        """Count heads by group, and return the decisions."""
        group = batch.group if batch.report_group is None else batch.report_group
        n_groups = self._head_counts.view().shape[2]
        if n_groups == 1:
            who = (decided.accepted, decided.explored)
            counts = np.array([[len(batch)], *([np.count_nonzero(one)] for one in who)])
        else:
            rows = (group, group[decided.accepted], group[decided.explored])
            counts = np.array([np.bincount(one, minlength=n_groups) for one in rows])
        self._head_counts.append(counts[None])
        return decided

    def _prepared_learner(self) -> Any:
        """Return a fresh learner whose constraints are over the history's attributes."""
        fresh = prepare_learner(self.learner)
        return bound_learner(fresh, self._intake.sensitive, self.attributes)

    def _bound(self, fairness: RateParity | None) -> RateParity | None:
        """Return a constraint over the history's attributes."""
        return bound_fairness(fairness, self._intake.sensitive, self.attributes)

    def _allowed(self, strategy: Strategy) -> Strategy:
        """Return a strategy that sees what the mode lets it see."""
        return deciding_strategy(strategy, self.group_mode)

    def predict(self, X: Any, *, sensitive_features: Any = None) -> NDArray[Any]:
        """Return the likelier outcome under the newest model.

        An outcome is not a decision: whom to accept is answered by ``accepts`` and ``decide``.
        """
        probability = self.predict_proba(X, sensitive_features=sensitive_features)
        return np.asarray(self.classes_[np.argmax(probability, axis=1)])

    def _per_class(self, good: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the likelihood of each outcome, in the order of ``classes_``."""
        good_last = self.classes_[1] == self._intake.good
        return np.column_stack([1 - good, good] if good_last else [good, 1 - good])

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        accepted: Any = None,
        sensitive_features: Any = None,
    ) -> float:
        """Return the accuracy of ``predict`` among the accepted; ``y`` is read only there."""
        predicted = self.predict(X, sensitive_features=sensitive_features)
        rows = self._intake.read_accepted(accepted, predicted.shape[0])
        weight = None if sample_weight is None else np.asarray(sample_weight)[rows]
        return float(accuracy_score(np.asarray(y)[rows], predicted[rows], sample_weight=weight))
