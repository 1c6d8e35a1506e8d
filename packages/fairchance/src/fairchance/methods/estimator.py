"""The base class of all classifiers that decide, and checks of the options that they share.

``group_mode`` limits what groups may change. ``"aware"``: a decision may depend on the applicant's
group. ``"blind"``: it may not; groups of labelled rows change what is learned, through a constraint
in the fit or on a shared threshold. ``"audit"``: no group changes a decision; groups are read,
checked and counted for reports. The intake hands out only the groups that a mode allows
(``Intake.seen_by``); ``check_group_mode`` refuses options that cannot be combined with a mode.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics import accuracy_score
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from fairchance.core.decisions import Correction, Decisions, GroupCount
from fairchance.core.fairness import RateParity
from fairchance.core.strategies import Strategy, as_strategy
from fairchance.errors import InputError
from fairchance.learners.logistic import ConstrainedLogistic
from fairchance.learners.per_group import PerGroup
from fairchance.methods.closing import heads_of
from fairchance.notebook import Records
from fairchance.people.intake import Batch, Intake
from fairchance.people.likeness import Checks, Unlike, check_like
from fairchance.people.store import GrowingArray, PeopleStore

__all__ = [
    "DecidingClassifier",
    "allows_missing",
    "check_expected",
    "check_group_mode",
    "check_learner",
    "check_ramp",
    "check_rounds",
    "check_unchanged",
    "fits_read_groups",
    "prepare_learner",
    "uses_of_groups",
]

_MODES = ("aware", "blind", "audit")
_ATTRIBUTES = ("crossed", "side_by_side")
_BY_GROUP = {
    "thresholds": "per_group",
    "ranks": "within_group",
    "certify": "per_group",
    "group_as_feature": True,
    "hypothesis": "threshold_per_group",
}
_WHY = {
    "blind": "an applicant's group must not change the decision",
    "audit": "no group may change a decision",
}


class DecidingClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base class; a subclass implements ``_start`` and ``predict_proba``."""

    learner: Any
    group_mode: Any = "aware"  # for subclasses that have no such option
    attributes: Any = "crossed"
    checks: Any = None
    classes_: NDArray[Any]
    _intake: Intake
    _people: PeopleStore
    _open_policy: Any = None  # of the round that is open, for subclasses that open rounds
    _corrections: list[Correction]
    _head_counts: GrowingArray

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = self._encodes or allows_missing(self.learner)
        return tags

    @property
    def _encodes(self) -> bool:
        """Whether text, dates and missing values are read."""
        return False

    @property
    def bound_(self) -> float | None:
        """α, the bound on mistakes, known before ``fit``, too; None without a bound."""
        return None

    def _begin(self, *history: Any) -> None:
        """Start on a copy, so that a history with an error leaves the classifier as it was."""
        fresh = copy.copy(self)
        fresh._start(*history)
        self.__dict__.clear()
        self.__dict__.update(fresh.__dict__)

    @property
    def corrections_(self) -> Records[Correction]:
        """Outcomes that were replaced, in the order of the corrections."""
        check_is_fitted(self, "_corrections")
        return Records(self._corrections)

    def read_features(self, record: Callable[[Any], Iterable[tuple[Any, Any, Any]]]) -> None:
        """Read features of accepted applicants from a record, if this was stored without them.

        ``record`` yields features, groups and ids of the accepted applicants of some rounds, 0 for
        the history. It is never stored.
        """

        def read(rounds: Any) -> Iterator[tuple[Any, Any]]:
            reader = self._intake.reader()
            for X, groups, ids in record(rounds):
                batch = reader.read(X, ids=ids, sensitive_features=groups)
                yield batch.bits, batch.X

        self._people.read_features(read)

    def keep_features(self) -> None:
        """Read all features, so that the record is needed no more."""
        for rows in self._people.parts:
            _ = rows.X

    def compare(self, parts: Sequence[Decisions]) -> tuple[Unlike, ...]:
        """Return in what applicants of the open round are unlike the history or the last round.

        ``parts`` are as for ``close_round``, which compares all of them.
        """
        batch = self._intake.join([part.applicants for part in parts])
        return self._intake.compare_batch(batch, self._checks, unlike_history=True).unlike

    def check_like_history(
        self, X: Any, *, ids: Any, sensitive_features: Any = None, incumbent: Any = None
    ) -> None:
        """Raise if a batch is so unlike the history that ``decide`` would refuse it.

        In an open round nothing else compares applicants before they are decided on.

        Parameters
        ----------
        X, ids, sensitive_features, incumbent
            The applicants, as for ``decide``.
        """
        intake = self._intake
        batch = intake.read(X, ids=ids, sensitive_features=sensitive_features, incumbent=incumbent)
        counts = intake.counted(batch).counts
        if counts is not None:
            check_like(intake.likeness.compare(counts, self._checks))

    def _check_not_open(self) -> None:
        if self._open_policy is not None:
            raise InputError(
                f"round {self._open_policy.round} is open; decide by its policy, and close it with "
                f"close_round before the next."
            )

    def _remember_corrections(
        self, round: int, names: NDArray[Any], before: NDArray[Any], after: NDArray[Any]
    ) -> None:
        label = self._intake.label
        changes = zip(names.tolist(), before.tolist(), after.tolist(), strict=True)
        self._corrections += [
            Correction(name, round, label(old), label(new))
            for name, old, new in dict.fromkeys(changes)
        ]

    def _forget_corrections(self, names: NDArray[Any]) -> None:
        """Delete the corrections of applicants who are to be forgotten."""
        gone = set(names.tolist())
        self._corrections = [kept for kept in self._corrections if kept.id not in gone]

    @property
    def group_counts_(self) -> Records[GroupCount]:
        """How many applicants of each group applied, were accepted and explored, in each round.

        By combination of the protected attributes, or by each attribute with
        ``attributes="side_by_side"``. No decision reads these counts.
        """
        check_is_fitted(self, "_head_counts")
        known = self._intake.sensitive
        if known is None:
            return Records()
        counts = self._head_counts.view()
        if self.attributes == "crossed":
            tables = [(", ".join(known.titles), known.labels, np.arange(known.n_groups))]
        else:
            tables = list(zip(known.titles, known.values, known.level_of, strict=True))
        return Records(
            GroupCount(t + 1, title, value, *in_round[:, level_of == z].sum(axis=1).tolist())
            for t, in_round in enumerate(counts)
            for title, values, level_of in tables
            for z, value in enumerate(values.tolist())
        )

    def _start_counts(self) -> None:
        known = self._intake.sensitive
        self._head_counts = GrowingArray(np.empty((0, 3, known.n_groups if known else 1), np.int64))

    def _counted(self, batch: Batch, decided: Decisions) -> Decisions:
        """Count applicants by group, and return the decisions with what is unlike the history."""
        self._count_heads(heads_of(batch, decided))
        return replace(decided, unlike=batch.unlike, applicants=None)

    def _count_heads(self, heads: NDArray[np.int64]) -> None:
        """Add the head counts of a round."""
        before, n_groups = self._head_counts.view(), heads.shape[1]
        if n_groups > before.shape[2]:
            more = np.zeros((*before.shape[:2], n_groups - before.shape[2]), np.int64)
            self._head_counts = GrowingArray(np.concatenate([before, more], axis=2))
        self._head_counts.append(heads[None])

    @property
    def _checks(self) -> Checks:
        """The levels from which on a batch is unlike the history."""
        if self.checks is None or isinstance(self.checks, Checks):
            return self.checks or Checks()
        raise InputError(f"checks must be None or Checks(stop, warn), got {self.checks!r}.")

    def _prepared_learner(self) -> Any:
        """Return a fresh learner whose constraints compare the groups of the history."""
        learner = prepare_learner(self.learner)
        bound = {name: self._bound(value) for name, value in _constraints(learner).items()}
        return learner.set_params(**bound) if bound else learner

    def _bound(self, fairness: RateParity | None) -> RateParity | None:
        """Return a constraint that compares the groups of the history, by attribute if asked."""
        known = self._intake.sensitive
        if fairness is None or known is None or self.attributes == "crossed":
            return fairness
        return fairness.over(known.partitions)

    def _allowed(self, strategy: Strategy) -> Strategy:
        """Return a strategy that sees no more than the group mode allows."""
        return strategy if self.group_mode == "aware" else strategy.without_group()

    def predict(self, X: Any, *, sensitive_features: Any = None) -> NDArray[Any]:
        """Return the likelier outcome under the newest model.

        An outcome is not a decision: ``accepts`` and ``decide`` return decisions.
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


def check_rounds(name: str, value: Any, least: int) -> None:
    """Raise unless a value is None or a number of rounds."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if value is not None and not (whole and value >= least):
        raise InputError(f"{name} counts rounds and must be {least} or more, got {value!r}.")


def check_expected(value: Any) -> None:
    """Raise unless a value is a number of applicants to come."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not (whole and value >= 0):
        raise InputError(f"expected counts applicants and must be 0 or more, got {value!r}.")


def check_ramp(ramp: Any, incumbent: Any) -> float:
    """Return a ramp r in [0, 1]; raise if it is less than 1 and ``incumbent`` is None."""
    number = isinstance(ramp, int | float | np.number) and not isinstance(ramp, bool)
    if not (number and 0 <= ramp <= 1):
        raise InputError(f"ramp must be a number in [0, 1], such as 0.05 for 5 %, got {ramp!r}.")
    if ramp < 1 and incumbent is None:
        raise InputError(
            f"ramp={ramp} leaves some decisions to the incumbent; pass incumbent=, or ramp=1."
        )
    return float(ramp)


def check_unchanged(classifier: Any, fitted: dict[str, Any]) -> None:
    """Raise if an option differs from the value that it had in ``fit``."""
    for name, before in fitted.items():
        now = getattr(classifier, name)
        if now is not before and now != before:
            raise InputError(
                f"{name} was {before!r} when the history was fitted and is {now!r} now; what has "
                f"been learned depends on it, so set it back or fit again."
            )


def check_group_mode(classifier: Any) -> None:
    """Raise unless a classifier's options can be combined with its group mode and attributes."""
    for name, allowed in (("group_mode", _MODES), ("attributes", _ATTRIBUTES)):
        if getattr(classifier, name) not in allowed:
            raise InputError(f"{name} must be one of {allowed}, got {getattr(classifier, name)!r}.")
    fairness = getattr(classifier, "fairness", None)
    per_group = getattr(classifier, "thresholds", "shared") == "per_group"
    if classifier.attributes == "side_by_side" and per_group and fairness is not None:
        raise InputError(
            "attributes='side_by_side' with a fairness constraint needs thresholds='shared', got "
            "'per_group'; share them, or compare combinations with attributes='crossed'."
        )
    if classifier.group_mode != "aware":
        for what, instead in uses_of_groups(classifier).items():
            _refuse(classifier, what, instead)
    if classifier.group_mode == "audit":
        if fairness is not None:
            _refuse(classifier, "fairness", "set it to None, or use 'blind'")
        if getattr(classifier, "constraints", None) == "per_group":
            _refuse(classifier, "constraints='per_group'", "use 'joint' or 'blind'")
        if _constraints(classifier.learner):
            _refuse(classifier, "a fairness constraint in the learner", "drop it, or use 'blind'")


def uses_of_groups(classifier: Any) -> dict[str, str]:
    """Return which options let an applicant's group decide, each with what to do instead.

    Examples
    --------
    >>> from fairchance import PartialFeedbackClassifier, Uniform
    >>> uses_of_groups(PartialFeedbackClassifier(strategy=Uniform(), thresholds="per_group"))
    {"thresholds='per_group'": 'leave that out'}
    """
    uses = {
        f"{name}={value!r}": "leave that out"
        for name, value in _BY_GROUP.items()
        if getattr(classifier, name, None) == value
    }
    if _fits_by_group(classifier.learner):
        uses["a learner with a model per group"] = "use one model for all groups"
    strategy = as_strategy(classifier.strategy)
    if strategy.reads_group:
        what = f"the strategy {strategy!r}, which depends on the group"
        uses[what] = "explore with Uniform() or ScoreWeighted()"
    return uses


def _refuse(classifier: Any, what: str, instead: str) -> None:
    mode = classifier.group_mode
    raise InputError(
        f"group_mode={mode!r} cannot be combined with {what}, since {_WHY[mode]}; {instead}, or "
        f"use group_mode='aware'."
    )


def fits_read_groups(classifier: Any) -> bool:
    """Return whether a classifier's fits compare the groups of applicants with outcomes."""
    learner = classifier.learner
    last = learner.steps[-1][1] if isinstance(learner, Pipeline) else learner
    takes_groups = not (last is None or isinstance(last, ConstrainedLogistic)) and (
        has_fit_parameter(last, "sensitive_features")
    )
    return (
        takes_groups
        or bool(_constraints(learner))
        or getattr(classifier, "fairness", None) is not None
        or getattr(classifier, "constraints", None) == "per_group"
    )


def _fits_by_group(learner: Any) -> bool:
    last = learner.steps[-1][1] if isinstance(learner, Pipeline) else learner
    return isinstance(last, PerGroup)


def _constraints(learner: Any) -> dict[str, RateParity]:
    """Return the fairness constraints among the parameters of a learner and of its parts."""
    if not hasattr(learner, "get_params"):
        return {}
    parameters = learner.get_params(deep=True).items()
    return {name: value for name, value in parameters if isinstance(value, RateParity)}


def check_learner(learner: Any) -> None:
    """Raise unless a learner is None or can be fitted and gives probabilities."""
    if learner is None or (hasattr(learner, "fit") and hasattr(learner, "predict_proba")):
        return
    raise InputError(
        f"learner must be a scikit-learn classifier with predict_proba, got {learner!r}."
    )


def prepare_learner(learner: Any) -> Any:
    """Return a clone that starts each fit from its last solution, if the learner can."""
    check_learner(learner)
    if learner is None:
        return ConstrainedLogistic(warm_start=True)
    fresh = clone(learner)
    if isinstance(fresh, ConstrainedLogistic):
        fresh.set_params(warm_start=True)
    return fresh


def allows_missing(learner: Any) -> bool:
    """Return whether a learner's first step accepts missing features."""
    if isinstance(learner, PerGroup):
        return allows_missing(learner.learner)
    first = learner.steps[0][1] if isinstance(learner, Pipeline) else learner
    return first is not None and bool(get_tags(first).input_tags.allow_nan)
