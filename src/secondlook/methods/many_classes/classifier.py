"""Algorithm 1 for any number of outcome classes, of which some decisions show the outcome.

Coverage, budget, draw, log and memory are those of two classes: what they need to know of a policy
is whom it accepts, that is, whose outcome it will see. New is which decision somebody gets.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from secondlook.core.budget import FdrBudget
from secondlook.core.coverage import CoverageRule
from secondlook.core.decisions import Correction
from secondlook.core.noise import OutcomeNoise
from secondlook.core.strategies import Strategy
from secondlook.core.utility import Accuracy
from secondlook.errors import InputError, LearningWarning
from secondlook.learners.wrap import reads_raw_columns
from secondlook.methods.algorithm1.classifier import ENOUGH_TO_TELL, PartialFeedbackClassifier
from secondlook.methods.algorithm1.learning import Learned, LearningRules
from secondlook.methods.algorithm1.past import allows_missing
from secondlook.methods.many_classes.class_models import NetWorth
from secondlook.methods.many_classes.decision_table import (
    DecisionTable,
    as_names,
    named_classes,
    read_table,
)
from secondlook.methods.many_classes.intake import ManyClassIntake
from secondlook.methods.many_classes.learning import learn_classes
from secondlook.methods.many_classes.records import (
    GivenDecisions,
    ManyClassDecisions,
    ManyClassRound,
)
from secondlook.methods.many_classes.settings import accepted_by, check_missing, check_options
from secondlook.people.batches import Batch, History

__all__ = ["ManyClassClassifier"]


class ManyClassClassifier(PartialFeedbackClassifier):
    """Decide batches with many outcome classes under a bound on mistakes, with exploration.

    Everybody gets one of several decisions, and has one of several classes, which does not depend
    on the decision. It is seen only after the *observed* decisions; whoever gets one of these is
    accepted. People who are known get the decision of greatest expected utility such that at most
    a share α_exploit of the accepted is a mistake; of the others as many as the budget allows are
    drawn and get the best observed decision.

    Parameters
    ----------
    utility
        U[decision, class]: a dict of dicts, or a matrix with rows in the order of ``decisions`` and
        columns in that of ``classes``; for two classes also a ``Utility``. None means 1 for a
        decision that names the class, else 0.
    good
        Which classes are no mistake for an accepted person: a collection of classes, or a dict from
        each observed decision to such a collection. None means that a decision must name the class.
    observed
        Decisions after which the outcome is seen; None means all but the first.
    decisions
        Names of the decisions; None means the keys of ``utility``, or else the classes.
    classes
        All classes there can be; None means those that ``utility`` names, or else those that the
        history shows, in sorted order.
    budget, coverage, strategy
        As in ``PartialFeedbackClassifier``; strategies and coverage read the score of
        ``DecisionTable.look``, which for two classes is P(good).
    learner
        Any scikit-learn classifier with ``predict_proba``; None means a multinomial logistic model
        of scaled features.
    weights, weight_cap, min_outcomes, first_round, group_as_feature, random_state
        As in ``PartialFeedbackClassifier``.
    maturity, missing
        Rounds after which outcomes that have not come count as the class ``missing``; until then a
        round of which some are still to come is left out of learning. None: outcomes count as soon
        as they come, the others not at all.
    noise
        How likely each class is recorded as each class, a dict of dicts or a matrix with a row for
        each true class, in the order of ``classes``: bounds, estimated FDR and utility are
        corrected for it. ``predict_proba``, and the counts of ``rounds_``, are of what is recorded.
        None means that classes are recorded as they are.
    group_mode, attributes
        As in ``PartialFeedbackClassifier``. There are no constraints between groups here, so that
        ``"blind"`` and ``"audit"`` decide alike.

    Attributes
    ----------
    classes_ : outcome classes, sorted.
    decisions_ : names of the decisions.
    groups_ : group values.
    rounds_ : what happened in each round, a tuple of ``ManyClassRound``.
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

    # Options of two classes that there are none of here.
    fairness = None
    thresholds = "shared"
    split = "half"
    constrain_fit = False

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
        weight_cap: float = 3.0,
        min_outcomes: int = 100,
        first_round: Literal["past", "learned"] = "past",
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
        """The good class if there are two of which one is good for whoever is accepted, else None.

        A ledger keeps outcomes as good and bad.
        """
        table: DecisionTable | None = getattr(self, "_table", None)
        if table is None or len(table.classes) != 2:
            return None
        fine = np.array(table.good)[np.array(table.observed)]
        is_it = fine.all(axis=0) & (fine.sum(axis=1) == 1).all()
        return next((one for one, yes in zip(table.classes, is_it, strict=True) if yes), None)

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
        decisions: Any = None,
        sensitive_features: Any = None,
        ids: Any = None,
        past_policy: Any = None,
    ) -> ManyClassClassifier:
        """Start from a history of past decisions.

        Parameters
        ----------
        X
            Features of everybody who applied.
        y
            Outcomes; read only where accepted.
        accepted
            Whose outcome was seen; None means everybody's, unless ``decisions`` tells.
        decisions
            Which decision each person got, in place of ``accepted``; needs ``observed=``.
        sensitive_features
            Group of each person.
        ids
            Names of the applications, integers or strings; None means consecutive integers.
        past_policy
            f_0 if it is known: a function of the features that returns probabilities of acceptance,
            or a fitted classifier of acceptance. None imitates ``accepted``.
        """
        if decisions is not None:
            accepted = accepted_by(self, decisions, accepted)
        self._begin(X, y, accepted, sensitive_features, ids, past_policy)
        self._fitted |= {"missing": self.missing}
        return self

    def _check_options(self) -> None:
        check_options(self)
        if hasattr(self, "_fitted"):
            self._check_table()
            check_missing(self, self._table)

    def _new_intake(self) -> ManyClassIntake:
        return ManyClassIntake(
            raw=reads_raw_columns(self.learner),
            allow_missing=allows_missing(self.learner),
            group_as_feature=self.group_as_feature,
            group_mode=self.group_mode,
            named=named_classes(self.classes, self.utility),
        )

    def _start_records(self, history: History) -> None:
        self._table = self._read_table()
        check_missing(self, self._table)
        self.decisions_ = as_names(self._table.decisions)
        self._given = GivenDecisions()
        self._given.record(self._people, history, history.accepted, None)
        self._by_class: list[tuple[float, tuple[int, ...]]] = []

    def _follow(self, moved: list[NDArray[np.int64]]) -> None:
        self._given.follow(moved)

    def _given_to(self, batch: Batch, accepted: NDArray[np.bool_]) -> NDArray[np.intp]:
        return self._decisions_of(batch.X, accepted)

    def _answer(
        self,
        batch: Batch,
        accepted: NDArray[np.bool_],
        exploit: NDArray[np.bool_],
        score: NDArray[Any],
        propensity: NDArray[np.float64],
        t: int,
        given: NDArray[np.intp],
    ) -> ManyClassDecisions:
        self._given.record(self._people, batch, accepted, given)
        counts = np.bincount(given, minlength=self.decisions_.size)
        self._by_class.append((self._net_worth.multiplier, tuple(counts.tolist())))
        return ManyClassDecisions(
            batch.ids,
            accepted,
            exploit,
            score,
            propensity,
            t,
            batch.backend,
            group_mode=self.group_mode,
            decision=self.decisions_[given],
        )

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.float64]:
        """Return the newest model's probability of each class, in the order of ``classes_``."""
        check_is_fitted(self)
        features, _ = self._intake.for_scoring(self, X, sensitive_features, needed=False)
        return self._net_worth.model.probabilities(features)

    def best_decision(self, X: Any, *, sensitive_features: Any = None) -> NDArray[Any]:
        """Return the decision that f_t gives people, whether known or not; nothing is recorded.

        f_t is that of ``accepts``: of the last ``decide``, or what the history taught.
        """
        accepted = self.accepts(X, sensitive_features=sensitive_features)
        features, _ = self._intake.for_scoring(self, X, sensitive_features, needed=False)
        return np.asarray(self.decisions_[self._decisions_of(features, accepted)])

    @property
    def rounds_(self) -> tuple[ManyClassRound, ...]:
        """What happened in each round, with the outcomes that are known by now."""
        check_is_fitted(self, "_rounds")
        table = self._table
        shape = (len(self._rounds), len(table.decisions), len(table.classes))
        seen = self._given.outcomes(self._people, shape)
        return tuple(
            ManyClassRound.of(record, *by_class, counts, table)
            for record, by_class, counts in zip(self._rounds, self._by_class, seen, strict=True)
        )

    @property
    def _net_worth(self) -> NetWorth:
        """The newest model and rule; round 1 may follow the past instead in whom it accepts."""
        newest = self._learned.likelihood
        assert isinstance(newest, NetWorth)
        return newest

    def _decisions_of(self, features: Any, accepted: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Return the code of each person's decision, given whether it is to accept them."""
        newest = self._net_worth
        looked = self._table.look(newest.model.probabilities(features), newest.multiplier)
        return np.where(accepted, looked.accepting, looked.rejecting)

    def _remember_corrections(
        self, round: int, names: NDArray[Any], before: NDArray[Any], after: NDArray[Any]
    ) -> None:
        label = dict(enumerate(self.classes_.tolist())).get
        told = zip(names.tolist(), before.tolist(), after.tolist(), strict=True)
        self._corrections += [
            Correction(name, round, label(old), label(new))
            for name, old, new in dict.fromkeys(told)
        ]

    def _learn(self, t: int, *, everywhere: bool = False) -> Learned | None:
        rules = self._rules(t, everywhere=everywhere)
        missing = None if self.maturity is None else self._table.classes.index(self.missing)
        folds = self._people.parts
        return learn_classes(self.learner, folds, self._log, rules, self._table, missing)

    def _rules(self, t: int, *, everywhere: bool = False) -> LearningRules:
        # Worth and noise are in the table.
        rules = super()._rules(t, everywhere=everywhere)
        return replace(rules, utility=Accuracy(), noise=OutcomeNoise())

    def _note(self, f: Learned, batch: Batch, exploit: NDArray[np.bool_]) -> str:
        nobody = self._note_of_nobody(f, exploit, len(self._rounds) + 1)
        return nobody or super()._note(f, batch, exploit)

    def _note_of_nobody(self, f: Learned, exploit: NDArray[np.bool_], t: int) -> str:
        if exploit.sum() < ENOUGH_TO_TELL or not np.isinf(f.thresholds).all():
            return ""
        note = (
            f"No rule keeps the estimated FDR at or below {self._budget.max_fdr(t):.3g} with "
            f"anybody worth accepting, so nobody was accepted or explored; check which classes are "
            f"good, raise alpha, or change the utility."
        )
        warnings.warn(note, LearningWarning, stacklevel=3)
        return note

    def _read_table(self) -> DecisionTable:
        """Read what decisions are worth; a matrix may have its columns in the order of classes."""
        classes = tuple(self.classes_.tolist())
        named = named_classes(self.classes, self.utility) or classes
        worth = self.utility, self.good, self.observed, self.decisions
        table = read_table(*worth, named, self.noise)
        return table.in_order(classes)

    def _check_table(self) -> None:
        if self._read_table() != self._table:
            raise InputError(
                "utility, good, observed, decisions, classes and noise must stay what they were "
                "when the history was fitted, since what has been decided rests on them; set them "
                "back or fit again."
            )
