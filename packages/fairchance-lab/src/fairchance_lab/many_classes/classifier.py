"""Algorithm 1 with any number of outcome classes and of decisions.

Coverage, budget, draw, policy log and store are those of two classes: they only ask whether a
policy accepts an applicant, that is, whether it will observe the outcome. This module adds the
choice between several decisions, and learns it from outcomes with several classes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from fairchance.core.budget import FdrBudget
from fairchance.core.coverage import CoverageRule
from fairchance.core.decisions import Decisions, Note, Round
from fairchance.core.noise import OutcomeNoise
from fairchance.core.saved import saved
from fairchance.core.strategies import Strategy
from fairchance.core.utility import Accuracy
from fairchance.errors import InputError, LearningWarning
from fairchance.frames import as_array, column
from fairchance.learners.per_group import PerGroup
from fairchance.learners.wrap import reads_raw_columns
from fairchance.methods.algorithm1.classifier import (
    ENOUGH_TO_TELL,
    Closing,
    PartialFeedbackClassifier,
    check_settings,
)
from fairchance.methods.algorithm1.learning import (
    LabelledRows,
    Learned,
    LearningRules,
    capped_share,
    effective_sample_size,
)
from fairchance.methods.algorithm1.policy_log import LOG_COLUMNS
from fairchance.methods.estimator import allows_missing
from fairchance.notebook import Records
from fairchance.people.intake import Batch, History, Intake
from fairchance.words.rounds import NOTES, note_text
from fairchance_lab.many_classes.decision_table import (
    DecisionTable,
    as_names,
    as_tuple,
    check_known,
    named_classes,
    read_table,
)
from fairchance_lab.many_classes.models import NetUtility, fit_class_model
from fairchance_lab.many_classes.operating_point import best_rule

__all__ = [
    "ManyClassClassifier",
    "ManyClassDecisions",
    "ManyClassIntake",
    "ManyClassRound",
]

_MAX_CLASSES = 127  # class codes are stored in a byte

# Options with the same meaning and the same allowed values as for two classes.
_SHARED_OPTIONS = (
    "budget",
    "coverage",
    "strategy",
    "learner",
    "weights",
    "weight_cap",
    "min_outcomes",
    "first_round",
    "maturity",
    "group_as_feature",
    "group_mode",
    "attributes",
)


@dataclass(frozen=True, repr=False, kw_only=True)
class ManyClassDecisions(Decisions):
    """The decisions on a batch; outcomes will be observed of the ``accepted``.

    Attributes
    ----------
    decision
        Name of the decision on each applicant.
    """

    decision: NDArray[Any]

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the decisions as named columns."""
        return {"id": self.ids, "decision": self.decision} | super().columns()


@dataclass(frozen=True, kw_only=True)
class ManyClassRound(Round):
    """The record of a round with counts by class, from the outcomes known by now.

    Attributes
    ----------
    multiplier
        λ, the price of a mistake in the rule of this round.
    decided
        Number of applicants by decision.
    seen
        Number of known outcomes by class.
    error_share
        Share of mistakes among the known outcomes of each observed decision; NaN without outcomes.
    recall
        For each class, the share of known outcomes with a decision that the class is good for; NaN
        without outcomes. It does not cover the rejected.
    """

    multiplier: float
    decided: dict[Any, int]
    seen: dict[Any, int]
    error_share: dict[Any, float]
    recall: dict[Any, float]

    @staticmethod
    def of(
        record: Round,
        multiplier: float,
        decided: tuple[int, ...],
        seen: NDArray[np.intp],
        table: DecisionTable,
    ) -> ManyClassRound:
        """Extend a record by outcomes, given as counts by decision (rows) and class (columns)."""
        right = seen * np.array(table.good)
        per_decision, per_class = seen.sum(axis=1), seen.sum(axis=0)
        with np.errstate(invalid="ignore"):
            errors = 1 - right.sum(axis=1) / per_decision
            recall = right.sum(axis=0) / per_class
        by_decision = zip(table.decisions, errors.tolist(), table.observed, strict=True)
        return ManyClassRound(
            **vars(record),
            multiplier=multiplier,
            decided=dict(zip(table.decisions, decided, strict=True)),
            seen=dict(zip(table.classes, per_class.tolist(), strict=True)),
            error_share={name: share for name, share, observed in by_decision if observed},
            recall=dict(zip(table.classes, recall.tolist(), strict=True)),
        )


NOTES.update(
    rule_not_held_out="A fold held a single class: the rule was not held out.",
    rule_accepts_too_few=(
        "No rule with an FDR of at most {max_fdr:.4g} accepts a share of {min_selection_rate:.4g}; "
        "the best accepts {selection_rate:.4g}."
    ),
    no_class_allowed=(
        "No rule keeps the estimated FDR at or below {max_fdr:.3g} with applicants worth "
        "accepting, so none was accepted or explored; check which classes are good, raise alpha, "
        "or change the utility."
    ),
)


@saved
class ManyClassClassifier(PartialFeedbackClassifier):
    """Decide batches with many outcome classes under a bound on mistakes, with exploration.

    Every applicant gets one of several decisions and has one of several classes, which does not
    depend on the decision. The class is observed only after the *observed* decisions; applicants
    with an observed decision are called accepted. In the exploit region each applicant gets the
    decision of greatest expected utility such that at most a share α_exploit of the accepted are
    mistakes. Of the other applicants, as many as the budget allows are drawn and get the best
    observed decision.

    Parameters
    ----------
    utility
        U[decision, class]: a dict of dicts, or a matrix with rows in the order of ``decisions`` and
        columns in the order of ``classes``; for two classes also a ``Utility``. None means 1 for a
        decision that names the class, else 0.
    good
        Classes that are not a mistake for an accepted applicant: a collection of classes, or a dict
        from each observed decision to such a collection. None means that a decision must name the
        class.
    observed
        Decisions after which the outcome is observed; None means all but the first.
    decisions
        Names of the decisions; None means the keys of ``utility``, or else the classes.
    classes
        All possible classes; None means those that ``utility`` names, or else those of the history,
        which must then be 0, 1, ... or −1 and 1.
    budget, coverage, strategy
        As in ``PartialFeedbackClassifier``; strategies and coverage read the score of
        ``DecisionTable.evaluate``, which for two classes is P(good).
    learner
        Any scikit-learn classifier with ``predict_proba``; None means a multinomial logistic model
        of scaled features.
    weights, weight_cap, min_outcomes, first_round, group_as_feature, random_state
        As in ``PartialFeedbackClassifier``.
    maturity, missing
        Number of rounds after which missing outcomes count as the class ``missing``; until then a
        round with missing outcomes is left out of learning. None: outcomes count as soon as they
        arrive, missing outcomes do not count.
    noise
        Probability that each class is recorded as each class, a dict of dicts or a matrix with a
        row for each true class, in the order of ``classes``: bounds, estimated FDR and utility are
        corrected for it. ``predict_proba`` and the counts of ``rounds_`` refer to recorded classes.
        None means that classes are recorded correctly.
    group_mode, attributes
        As in ``PartialFeedbackClassifier``. There are no constraints between groups here, so
        ``"blind"`` and ``"audit"`` decide alike.

    Attributes
    ----------
    classes_ : outcome classes, sorted.
    decisions_ : names of the decisions.
    groups_ : group values.
    rounds_ : the record of each round, a tuple of ``ManyClassRound``.
    policies_ : the logged policies, a tuple of ``LoggedPolicy``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def claims(n):
    ...     X = rng.normal(size=(n, 1))
    ...     kind = np.digitize(X[:, 0] + 0.5 * rng.normal(size=n), [-1, 0])
    ...     return X, np.array(["fraud", "sloppy", "honest"])[kind]
    >>> clf = ManyClassClassifier(
    ...     utility={
    ...         "refuse": {"honest": -5, "sloppy": 0, "fraud": 0},
    ...         "pay": {"honest": 5, "sloppy": -2, "fraud": -20},
    ...         "pay in part": {"honest": 1, "sloppy": 2, "fraud": -8},
    ...     },
    ...     observed=["pay", "pay in part"],
    ...     good={"pay": ["honest"], "pay in part": ["honest", "sloppy"]},
    ...     random_state=0,
    ... )
    >>> X, outcome = claims(1000)
    >>> clf = clf.fit(X, outcome, accepted=X[:, 0] > 0)
    >>> for _ in range(3):
    ...     X, outcome = claims(500)
    ...     batch = clf.decide(X)
    ...     clf = clf.observe(batch.ids[batch.accepted], outcome[batch.accepted])
    >>> sum(clf.rounds_[-1].decided.values()), sorted(clf.rounds_[-1].error_share)
    (500, ['pay', 'pay in part'])
    """

    # Options of the base class that do not exist for many classes.
    missing_values = None
    fairness = None
    thresholds = "shared"
    split = "half"
    constraints = "joint"
    bounds_in = "thresholds"
    exploration = "fixed"

    _columns: ClassVar[dict[str, Any]] = {**LOG_COLUMNS, "decision": np.int16(-1)}

    def __init__(
        self,
        utility: Any = None,
        good: Any = None,
        observed: Any = None,
        budget: FdrBudget | None = None,
        coverage: CoverageRule | None = None,
        strategy: Strategy | Callable[..., ArrayLike] | None = None,
        learner: Any = None,
        *,
        decisions: Any = None,
        classes: Any = None,
        weights: Literal["acceptance", "none"] = "acceptance",
        weight_cap: float | None = 3.0,
        min_outcomes: int | None = 100,
        first_round: Literal["matched", "drawn", "cut", "learned"] = "matched",
        maturity: int | None = None,
        missing: Any = None,
        noise: Any = None,
        group_as_feature: bool = False,
        group_mode: Literal["aware", "blind", "audit"] = "aware",
        attributes: Literal["crossed", "side_by_side"] = "crossed",
        random_state: Any = None,
    ) -> None:
        self.utility = utility
        self.good = good
        self.observed = observed
        self.budget = budget
        self.coverage = coverage
        self.strategy = strategy
        self.learner = learner
        self.decisions = decisions
        self.classes = classes
        self.weights = weights
        self.weight_cap = weight_cap
        self.min_outcomes = min_outcomes
        self.first_round = first_round
        self.maturity = maturity
        self.missing = missing
        self.noise = noise
        self.group_as_feature = group_as_feature
        self.group_mode = group_mode
        self.attributes = attributes
        self.random_state = random_state

    @property
    def pos_label(self) -> Any:
        """The good class, if there are two classes and only it is good for all observed decisions.

        A ledger stores outcomes as good or bad and needs to know which class is good.
        """
        table: DecisionTable | None = getattr(self, "_table", None)
        if table is None or len(table.classes) != 2:
            return None
        good = np.array(table.good)[np.array(table.observed)]
        always_good = good.all(axis=0) & (good.sum(axis=1) == 1).all()
        labels = zip(table.classes, always_good, strict=True)
        return next((label for label, is_good in labels if is_good), None)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        accepted: Any = None,
        not_taken: Any = None,
        decisions: Any = None,
        sensitive_features: Any = None,
        ids: Any = None,
        past_policy: Any = None,
    ) -> ManyClassClassifier:
        """Start from a history of past decisions.

        Parameters
        ----------
        X
            Features of all applicants.
        y
            Outcomes; read only where accepted.
        accepted
            Which outcomes were observed; None means all, or those that ``decisions`` show.
        not_taken
            Which of the accepted did not take what was offered; None means none.
        decisions
            Decision on each applicant, in place of ``accepted``; needs ``observed=``.
        sensitive_features
            Group of each applicant.
        ids
            Names of the applications, integers or strings; None means consecutive integers.
        past_policy
            f_0 if it is known: a function of the features that returns probabilities of acceptance,
            or a fitted classifier of acceptance. None imitates ``accepted``.
        """
        if decisions is not None:
            accepted = self._accepted_by(decisions, accepted)
        self._begin(X, y, accepted, sensitive_features, ids, past_policy, not_taken)
        self._fitted |= {"missing": self.missing}
        return self

    def _accepted_by(self, decisions: Any, accepted: Any) -> NDArray[np.bool_]:
        """Return which outcomes of a history were observed, given the decisions."""
        if accepted is not None or self.observed is None:
            raise InputError("decisions needs observed=, and takes the place of accepted.")
        values = np.atleast_1d(as_array(decisions))
        named = list(self.utility) if isinstance(self.utility, Mapping) else self.classes
        named = named if self.decisions is None else self.decisions
        if named is not None:
            check_known("decisions", as_tuple(np.unique(values)), as_tuple(named), "decisions")
        return np.isin(values, as_names(as_tuple(self.observed)))

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.float64]:
        """Return the newest model's probability of each class, in the order of ``classes_``."""
        check_is_fitted(self)
        features, _ = self._intake.for_scoring(self, X, sensitive_features, needed=False)
        return self._net_utility.model.probabilities(features)

    def best_decision(self, X: Any, *, sensitive_features: Any = None) -> NDArray[Any]:
        """Return the decision of f_t on applicants in or outside the exploit region.

        f_t is that of ``accepts``: of the last ``decide``, or learned from the history. Nothing is
        recorded.
        """
        accepted = self.accepts(X, sensitive_features=sensitive_features)
        features, _ = self._intake.for_scoring(self, X, sensitive_features, needed=False)
        return np.asarray(self.decisions_[self._choose_decisions(features, accepted)])

    @property
    def rounds_(self) -> Records[ManyClassRound]:
        """The record of each round, with the outcomes known by now."""
        check_is_fitted(self, "_rounds")
        table = self._table
        shape = (len(self._rounds), len(table.decisions), len(table.classes))
        seen = np.zeros(shape, np.intp)
        for rows in self._people.parts:
            own = rows.known_outcomes() & (rows["round"] > 0)
            codes = rows["round"][own] - 1, rows["decision"][own], rows["outcome"][own]
            np.add.at(seen, codes, 1)
        return Records(
            ManyClassRound.of(record, *by_class, counts, table)
            for record, by_class, counts in zip(self._rounds, self._by_class, seen, strict=True)
        )

    # Hooks of PartialFeedbackClassifier.

    def _check_options(self) -> None:
        shared = {name: getattr(self, name) for name in _SHARED_OPTIONS}
        check_settings(PartialFeedbackClassifier(**shared))
        if isinstance(self.learner, PerGroup):
            raise InputError("learner must not be PerGroup, which is for two classes.")
        if hasattr(self, "_fitted"):
            self._check_table()
            self._check_missing()

    @property
    def _encodes(self) -> bool:
        return False

    def _new_intake(self) -> ManyClassIntake:
        return ManyClassIntake(
            raw=reads_raw_columns(self.learner),
            allow_missing=allows_missing(self.learner),
            group_as_feature=self.group_as_feature,
            group_mode=self.group_mode,
            named=named_classes(self.classes, self.utility),
        )

    def _start_records(self, history: History) -> None:  # noqa: ARG002
        self._table = self._read_table()
        self._check_missing()
        self.decisions_ = as_names(self._table.decisions)
        self._by_class: list[tuple[float, tuple[int, ...]]] = []

    def _given_to(self, batch: Batch, accepted: NDArray[np.bool_]) -> NDArray[np.intp]:
        return self._choose_decisions(batch.X, accepted)

    def _answer(
        self, batch: Batch, decided: Decisions, given: NDArray[np.intp]
    ) -> ManyClassDecisions:
        place = self._people.find(batch.bits)
        for rows, (here, at) in zip(
            self._people.parts, self._people.rows_by_part(place), strict=True
        ):
            rows["decision"][at] = given[here]
        counts = np.bincount(given, minlength=self.decisions_.size)
        self._by_class.append((self._net_utility.multiplier, tuple(counts.tolist())))
        known = {part.name: getattr(decided, part.name) for part in fields(Decisions)}
        return ManyClassDecisions(**known, decision=self.decisions_[given])

    def _learn(self, t: int, *, everywhere: bool = False) -> Learned | None:
        """Learn class probabilities and then the best rule; None if fewer than two classes known.

        The model is fitted to the first fold, the rule to the second. If a fold holds a single
        class, both use all rows, and a note says so.
        """
        rules = self._rules(t, everywhere=everywhere)
        parts = self._labelled_rows(rules)
        notes: list[Note] = []
        if not all(map(_has_two_classes, parts)):
            parts = [LabelledRows.joined(parts)]
            if not _has_two_classes(parts[0]):
                return None
            notes.append(Note("rule_not_held_out"))
        first, last = parts[0], parts[-1]
        n_classes = len(self._table.classes)
        model = fit_class_model(self.learner, first.X, first.outcome, first.weight, n_classes)
        calibrated = rules.has_enough(last.own_weight)
        weight = last.own_weight if calibrated else last.weight
        uncapped = last.own_uncapped if calibrated else last.uncapped
        rule = best_rule(
            self._table,
            model.probabilities(last.X),
            last.outcome,
            weight,
            max_fdr=rules.max_fdr,
            min_selection_rate=rules.min_selection_rate,
        )
        if not rule.feasible:
            facts = {
                "max_fdr": rules.max_fdr,
                "min_selection_rate": rules.min_selection_rate,
                "selection_rate": float(rule.selection_rate),
            }
            notes.append(Note("rule_accepts_too_few", facts))
        return Learned(
            NetUtility(model, self._table, rule.multiplier),
            np.full(rules.n_groups, rule.threshold),
            calibrated,
            int((weight > 0).sum()),
            effective_sample_size(weight),
            rule.fdr,
            0.0,
            rule.feasible,
            tuple(notes),
            capped_share(weight, uncapped),
        )

    def _labelled_rows(self, rules: LearningRules) -> list[LabelledRows]:
        """Return the labelled rows of each fold, with missing outcomes of mature rounds."""
        parts = []
        for fold in self._people.parts:
            self._log.update(fold, rules.rule, rules.waiting)
            rows = LabelledRows.of(fold, self._log, rules)
            if self.maturity is not None:
                missing = np.int8(self._table.classes.index(self.missing))
                recorded = fold["outcome"]
                rows = replace(rows, outcome=np.where(recorded >= 0, recorded, missing))
            parts.append(rows)
        return parts

    def _rules(self, t: int, *, everywhere: bool = False) -> LearningRules:
        rules = super()._rules(t, everywhere=everywhere)
        # Utility and noise are part of the decision table.
        return replace(rules, utility=Accuracy(), noise=OutcomeNoise())

    def _notes(self, f: Learned, closing: Closing) -> tuple[Note, ...]:
        if closing.n_known < ENOUGH_TO_TELL or not np.isinf(f.thresholds).all():
            return super()._notes(f, closing)
        note = Note("no_class_allowed", {"max_fdr": self._budget.max_fdr(len(self._rounds) + 1)})
        warnings.warn(note_text(note), LearningWarning, stacklevel=3)
        return (note,)

    # Decisions and their table.

    @property
    def _net_utility(self) -> NetUtility:
        """The newest model and rule, even in a round that follows the past in accepting."""
        newest = self._learned.likelihood
        assert isinstance(newest, NetUtility)
        return newest

    def _choose_decisions(self, features: Any, accepted: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Return the code of the decision on each applicant, given who is accepted."""
        newest = self._net_utility
        best = self._table.evaluate(newest.model.probabilities(features), newest.multiplier)
        return np.where(accepted, best.accepting, best.rejecting)

    def _read_table(self) -> DecisionTable:
        """Read the decision table, with its classes in the order of ``classes_``."""
        classes = tuple(self.classes_.tolist())
        named = named_classes(self.classes, self.utility) or classes
        table = read_table(
            self.utility, self.good, self.observed, self.decisions, named, self.noise
        )
        return table.reorder(classes)

    def _check_table(self) -> None:
        if self._read_table() != self._table:
            raise InputError(
                "utility, good, observed, decisions, classes and noise must not change after fit."
            )

    def _check_missing(self) -> None:
        """Raise unless ``missing`` is a class exactly if ``maturity`` is given."""
        allowed = [None] if self.maturity is None else list(self._table.classes)
        if self.missing not in allowed:
            raise InputError(
                f"missing must be one of {allowed} with maturity={self.maturity}, got "
                f"{self.missing!r}."
            )


def _has_two_classes(rows: LabelledRows) -> bool:
    return np.unique(rows.outcome[rows.weight > 0]).size > 1


@saved
class ManyClassIntake(Intake):
    """Reads outcomes as codes into ``classes``, and everything else as for two classes.

    Parameters
    ----------
    named
        All possible classes; None means those of the history.
    options
        As for ``Intake``.
    """

    def __init__(self, *, named: tuple[Any, ...] | None, **options: Any) -> None:
        super().__init__(pos_label=None, **options)
        self.named = named

    def check_good(self) -> None:
        """Raise if the order of classes, which decisions and utilities follow, is a guess."""
        labels = self.classes.tolist()
        if self.named is None and labels not in ([*range(len(labels))], [-1, 1]):
            raise InputError(
                f"name all classes with classes=, the one to be rejected first, got {labels}."
            )

    def label(self, code: int) -> Any:
        """Return the label of a class code; None for an outcome that is not known."""
        return self.classes.tolist()[code] if code >= 0 else None

    def _first_codes(self, values: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.int8]:
        self.classes = labels if self.named is None else np.unique(np.array(self.named))
        if self.classes.size > _MAX_CLASSES:
            raise InputError(
                f"there may be at most {_MAX_CLASSES} classes, got {self.classes.size}; merge some."
            )
        return self._codes(values, "y")

    def read_outcomes(self, outcomes: ArrayLike, n: int) -> NDArray[np.int8]:
        """Turn outcome labels into codes."""
        return self._codes(column(outcomes, n, "outcomes", per="id"), "outcomes")

    def _codes(self, values: NDArray[Any], name: str) -> NDArray[np.int8]:
        codes = np.full(values.shape, -1, np.int8)
        for code, label in enumerate(self.classes):
            codes[values == label] = code
        if np.any(codes < 0):
            unknown = as_tuple(values[codes < 0][:1])[0]
            raise InputError(
                f"{name} must be among the classes {self.classes.tolist()}, got {unknown!r}; name "
                f"classes that the history does not show in classes=."
            )
        return codes
