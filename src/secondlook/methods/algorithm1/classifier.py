"""Algorithm 1 of "Fair Classification with Partial Feedback" as a scikit-learn estimator.

Read ``decide`` and ``observe`` beside the paper's box; everything they call is a part that can be
replaced (``docs/architecture.md``).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from secondlook.core.budget import FdrBudget
from secondlook.core.coverage import CoverageRule
from secondlook.core.decisions import Decisions, Round
from secondlook.core.fairness import RateParity
from secondlook.core.noise import OutcomeNoise
from secondlook.core.sampling import Draw
from secondlook.core.strategies import Strategy, as_strategy
from secondlook.core.utility import Utility
from secondlook.errors import InputError, LearningWarning
from secondlook.learners.wrap import reads_raw_columns
from secondlook.methods.algorithm1.afterwards import Afterwards
from secondlook.methods.algorithm1.exploration import draw_explored, find_candidates
from secondlook.methods.algorithm1.learning import Learned, LearningRules, learn
from secondlook.methods.algorithm1.learning_settings import learning_rules
from secondlook.methods.algorithm1.past import allows_missing
from secondlook.methods.algorithm1.past import past_policy as read_past_policy
from secondlook.methods.algorithm1.policy_log import (
    LOG_COLUMNS,
    LoggedPolicy,
    PolicyLog,
    per_person,
)
from secondlook.methods.algorithm1.round_records import (
    ENOUGH_TO_TELL,
    nobody_accepted_words,
    nobody_known_words,
    round_record,
)
from secondlook.methods.algorithm1.settings import FIXED, check_settings, check_unchanged
from secondlook.methods.deployed import Deployed
from secondlook.people.batches import History
from secondlook.people.ids import id_bits, keyed_bits, round_key, seed_of
from secondlook.people.intake import Batch, Intake
from secondlook.people.store import PeopleStore

__all__ = ["ENOUGH_TO_TELL", "PartialFeedbackClassifier"]

_FOLD = 3  # purpose of the randomness that assigns folds
_SECOND = np.uint64(1 << 63)  # keyed bits from here on are in the second fold


class PartialFeedbackClassifier(Afterwards):
    """Decide batches under partial feedback with a bound on mistakes and fair exploration.

    One caller at a time: rounds follow one another, so calls from several threads need a lock.

    Parameters
    ----------
    utility
        What decisions are worth; None means ``Accuracy()``.
    budget
        α and how it is shared between exploiting and exploring; None means ``FdrBudget()``.
    coverage
        Who counts as known; None means ``SummedAcceptance()``.
    strategy
        Whom to explore: a ``Strategy``, or a function of (X, score, group); None means
        ``ScoreWeighted()``. ``risk.Limited`` puts limits on risk, people and money around one.
    learner
        Likelihood model: any scikit-learn classifier with ``predict_proba``, a ``Pipeline`` if raw
        columns are to be read; None means ``ConstrainedLogistic()``.
    fairness
        Group constraint on the thresholds. For thresholds that are blind to the group, put it into
        the fit instead: ``learner=ConstrainedLogistic(fairness=…)``.
    thresholds
        ``"shared"``: one for everybody; ``"per_group"``: one for each group.
    split
        ``"half"``: the likelihood learns from one half of the labelled people, the thresholds from
        the other; ``"cross"``: both learn from all, each half scored by the model of the other.
        Halves go by id and persist over rounds.
    weights
        ``"acceptance"``: labelled rows count one over the mean probability with which the logged
        policies accept such a person (the paper's η_w); ``"none"``: all count the same.
    weight_cap
        Largest such weight. A larger cap corrects more and is noisier: a few heavy rows that turn
        out bad can make every threshold but the strictest look infeasible.
    min_outcomes
        Effective number of held-out outcomes of our own decisions from which on the thresholds rest
        on these alone; before that they rest on the history too, and the round is flagged as not
        calibrated.
    first_round
        ``"past"``: round 1 decides as f_0 does (Algorithm 1); ``"learned"``: by what the history
        teaches. With nobody rejected in the history and no past policy given, there is no f_0 to
        follow, and round 1 is learned.
    maturity
        Rounds after which outcomes that have not come count as bad; until then a round of which
        some are still to come is left out of learning. None: outcomes count as soon as they come,
        the others not at all, which is right only if bad outcomes come neither earlier nor later
        than good ones. 0: whoever is not known to be good counts as bad at once.
    noise
        How often outcomes are recorded wrongly: estimated FDR and utility are corrected for it.
        None means never.
    group_as_feature
        Append the group to the features.
    group_mode
        What groups may change. ``"aware"``: everything; ``"blind"``: the group of the person
        decided on changes nothing, those of labelled people only what is learned, through
        ``fairness`` on a shared threshold or in the learner; ``"audit"``: no group changes any
        decision, groups are read, checked and counted.
    attributes
        Several columns of ``sensitive_features``. ``"crossed"``: each combination is a group;
        ``"side_by_side"``: fairness constraints and counts go by each attribute, and all else that
        depends on groups by combination.
    constrain_fit
        Also hold the FDR and selection-rate constraints, in expectation, while fitting the
        likelihood, as the paper does; needs ``ConstrainedLogistic``.
    pos_label
        Label of the good outcome; None means the larger of the two, which is the later in the
        alphabet for words: name it then.
    random_state
        Seed of the draws.

    Attributes
    ----------
    classes_ : outcome labels.
    groups_ : group values, in the order of ``Round.thresholds``.
    rounds_ : what happened in each round, a tuple of ``Round``.
    policies_ : the logged policies, a tuple of ``LoggedPolicy``.
    deployed_ : what decided the last round, a ``Deployed``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> good = rng.random(2000) < 1 / (1 + np.exp(-2 - 3 * X[:, 0]))
    >>> history, batch = slice(0, 1000), slice(1000, 2000)
    >>> clf = PartialFeedbackClassifier(random_state=0)
    >>> clf = clf.fit(X[history], good[history], accepted=X[history, 0] > 0)
    >>> decided = clf.decide(X[batch])
    >>> clf = clf.observe(decided.ids[decided.accepted], good[batch][decided.accepted])
    >>> int(decided.explored.sum()), float(decided.propensity[decided.explored].max()) < 1
    (42, True)
    """

    _columns: ClassVar[dict[str, Any]] = LOG_COLUMNS  # extra columns of the store

    def __init__(
        self,
        utility: Utility | None = None,
        budget: FdrBudget | None = None,
        coverage: CoverageRule | None = None,
        strategy: Strategy | Callable[..., ArrayLike] | None = None,
        learner: Any = None,
        *,
        fairness: RateParity | None = None,
        thresholds: Literal["shared", "per_group"] = "shared",
        split: Literal["half", "cross"] = "half",
        weights: Literal["acceptance", "none"] = "acceptance",
        weight_cap: float = 3.0,
        min_outcomes: int = 100,
        first_round: Literal["past", "learned"] = "past",
        maturity: int | None = None,
        noise: OutcomeNoise | None = None,
        group_as_feature: bool = False,
        group_mode: Literal["aware", "blind", "audit"] = "aware",
        attributes: Literal["crossed", "side_by_side"] = "crossed",
        constrain_fit: bool = False,
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.utility = utility
        self.budget = budget
        self.coverage = coverage
        self.strategy = strategy
        self.learner = learner
        self.fairness = fairness
        self.thresholds = thresholds
        self.split = split
        self.weights = weights
        self.weight_cap = weight_cap
        self.min_outcomes = min_outcomes
        self.first_round = first_round
        self.maturity = maturity
        self.noise = noise
        self.group_as_feature = group_as_feature
        self.group_mode = group_mode
        self.attributes = attributes
        self.constrain_fit = constrain_fit
        self.pos_label = pos_label
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        accepted: Any = None,
        sensitive_features: Any = None,
        ids: Any = None,
        past_policy: Any = None,
    ) -> PartialFeedbackClassifier:
        """Start from a history of past decisions.

        Parameters
        ----------
        X
            Features of everybody who applied.
        y
            Outcomes; read only where accepted.
        accepted
            Who was accepted; None means everybody.
        sensitive_features
            Group of each person; several columns are several protected attributes.
        ids
            Names of the applications, integers or strings; None means consecutive integers.
        past_policy
            f_0 if it is known: a function of the features that returns probabilities of acceptance,
            or a fitted classifier of acceptance. None fits the learner to imitate ``accepted``.
        """
        self._begin(X, y, accepted, sensitive_features, ids, past_policy)
        return self

    def _start(
        self, X: Any, y: Any, accepted: Any, sensitive_features: Any, ids: Any, past_policy: Any
    ) -> None:
        """Forget everything and start from a history."""
        self._check_options()
        self._intake = self._new_intake()
        history = self._intake.read_history(self, X, y, accepted, sensitive_features, ids)
        self._learners = [self._prepared_learner() for _ in range(2)]
        if self.fairness is not None and self._intake.groups is None:
            raise InputError(
                "fairness is a constraint between groups; pass sensitive_features to fit."
            )
        self.classes_ = self._intake.classes
        self.groups_ = self._intake.groups
        as_strategy(self.strategy).for_columns(self._intake.names)  # they must be there
        self._seed = seed_of(self.random_state)
        self._past = read_past_policy(past_policy, self.learner, history, self.n_features_in_)
        self._log = PolicyLog(self._past.likelihood, len(history))
        self._people = PeopleStore(2, self._columns)
        self._record_people(history, history.accepted, 0, history.outcome)
        self._start_counts()
        self._start_records(history)
        self._intake.passed(history)
        self._rounds: list[Round] = []
        self._corrections = []
        self._carried = 0.0
        learned = self._learn(1) or self._learn(1, everywhere=True)
        assert learned is not None  # the intake saw both outcomes
        self._learned: Learned = learned
        self._deployed = learned
        self._news, self._learned_by = False, self._rules(1)
        self._fitted = {name: getattr(self, name) for name in FIXED}

    def decide(self, X: Any, *, sensitive_features: Any = None, ids: Any = None) -> Decisions:
        """Decide a batch: steps 1 to 3 of Algorithm 1.

        Parameters
        ----------
        X
            Features of the people who apply, one or a million.
        sensitive_features
            Their groups; needed if ``fit`` got groups.
        ids
            Names of the applications, never used before; None means the next integers.
        """
        self._check_fitted()
        self._check_options()
        check_unchanged(self, self._fitted)
        batch = self._intake.read_batch(self, X, sensitive_features, ids)
        if ids is not None:  # the next integers are new
            self._people.check_new(batch.ids, batch.bits)
        t = len(self._rounds) + 1

        # Step 1. Learn f_t (round 1: f_0) and split the batch into EXPLOIT_t and EXPLORE_t.
        f = self._classifier_of_round(t)
        position = self._log.add_likelihood(f.likelihood)
        look = self._log.look(batch.X, batch.group, self._rule, score_of=position)
        exploit, explore = look.known, np.flatnonzero(~look.known)

        # Step 2. Exploit: accept whom f_t accepts.
        threshold = per_person(f.thresholds.astype(look.score.dtype), batch.group)
        accepted = exploit & (look.score >= threshold)
        n_exploit = int(np.count_nonzero(accepted))

        # Step 3. Explore as many as the budget allows, with probability proportional to g.
        found = find_candidates(batch, explore, look.score, self._strategy, self._intake.n_groups)
        n_may = int(np.count_nonzero(found.may))
        n_wanted, _ = self._budget.allot(t, n_exploit, self._carried, n_may)
        n_explore, carried = self._budget.allot(t, n_exploit, self._carried, found.at_most)
        draw, group_factor = self._explore(t, batch, explore, look.score, n_exploit, n_explore)
        propensity = accepted.astype(np.float64)
        accepted[explore.take(np.flatnonzero(draw.drawn))] = True
        propensity[explore] = draw.probability

        note = f"{self._note(f, batch, exploit)} {found.note(n_wanted, n_explore)}".strip()
        policy = LoggedPolicy(
            position, f.thresholds, self._strategy, group_factor, draw.left, draw.others, len(batch)
        )
        record = round_record(
            t,
            f,
            exploit,
            n_exploit,
            draw,
            found.barred,
            alpha_exploit=self._budget.alpha_exploit(t),
            carried=carried,
            note=note,
            group_mode=self.group_mode,
        )
        given = self._given_to(batch, accepted)
        self._record_round(batch, accepted, f, policy, record)
        decided = self._answer(batch, accepted, exploit, look.score, propensity, t, given)
        threshold = np.broadcast_to(threshold, len(batch))
        return self._counted(batch, replace(decided, threshold=threshold))

    def observe(self, ids: Any, outcomes: Any) -> PartialFeedbackClassifier:
        """Take in outcomes of accepted people: step 4 of Algorithm 1.

        In any order, in parts, many rounds late; the same outcome may come again. Step 5, the
        update of coverage, happens by itself, since coverage is a function of the logged policies.

        Parameters
        ----------
        ids
            Names of the applications.
        outcomes
            Their outcomes, in the labels of the history.
        """
        self._check_fitted()
        names = self._intake.read_ids(ids)
        if names.size:
            outcome = self._intake.read_outcomes(outcomes, names.shape[0])
            changes = self._people.observe(names, id_bits(names), outcome)
            self._news |= len(changes) > 0
        return self

    def fold_of(self, ids: Any) -> NDArray[np.intp]:
        """Return the fold of applications: with ``split="half"``, 0 learns f_t, 1 its thresholds.

        Parameters
        ----------
        ids
            Names of applications, of people decided on or not.
        """
        self._check_fitted()
        return self._fold_of(id_bits(self._intake.read_ids(ids)))

    @property
    def deployed_(self) -> Deployed | None:
        """What decided the last round, for a record of it; None before any round."""
        check_is_fitted(self, "_rounds")
        if not self._rounds:
            return None
        f, log = self._deployed, self._log
        follows_past = f.likelihood is self._past.likelihood
        return Deployed(f, follows_past, log.policies[-1], log._n_final)

    # What a classifier of another kind of outcome does differently.

    def _check_options(self) -> None:
        check_settings(self)

    def _new_intake(self) -> Intake:
        return Intake(
            raw=reads_raw_columns(self.learner),
            allow_missing=allows_missing(self.learner),
            group_as_feature=self.group_as_feature,
            pos_label=self.pos_label,
            group_mode=self.group_mode,
        )

    def _start_records(self, history: History) -> None:
        """Begin records of one's own; nothing has been learned yet."""

    def _given_to(self, batch: Batch, accepted: NDArray[np.bool_]) -> Any:  # noqa: ARG002
        """Return what else is decided about people; nothing is written down yet."""
        return None

    def _answer(
        self,
        batch: Batch,
        accepted: NDArray[np.bool_],
        exploit: NDArray[np.bool_],
        score: NDArray[Any],
        propensity: NDArray[np.float64],
        t: int,
        given: Any,  # noqa: ARG002
    ) -> Decisions:
        """Return the decisions of a round that is written down."""
        decided = batch.ids, accepted, exploit, score, propensity, t, batch.backend
        return Decisions(*decided, group_mode=self.group_mode)

    # The steps.

    def _explore(
        self,
        t: int,
        batch: Batch,
        explore: NDArray[np.intp],
        score: NDArray[Any],
        n_exploit: int,
        n_explore: int,
    ) -> tuple[Draw, NDArray[np.float64]]:
        return draw_explored(
            batch,
            explore,
            score,
            n_explore,
            self._strategy,
            self._intake.n_groups,
            seed=self._seed,
            round=t,
            # Somebody else would have taken the place of an average person, exploited or not.
            n_instead=self._budget.allowed(t, n_exploit * (1 - 1 / len(batch)), self._carried),
        )

    def _classifier_of_round(self, t: int) -> Learned:
        if t == 1 and self._past.decides and self.first_round == "past":
            return Learned.following(self._past.likelihood, self._intake.n_groups)
        rules = self._rules(t)
        if self._news or rules != self._learned_by:
            self._learned = self._learn(t) or self._learned
            self._news, self._learned_by = False, rules
        return self._learned

    def _learn(self, t: int, *, everywhere: bool = False) -> Learned | None:
        rules = self._rules(t, everywhere=everywhere)
        return learn(self._learners, self._people.parts, self._log, rules)

    def _rules(self, t: int, *, everywhere: bool = False) -> LearningRules:
        fairness, n_groups = self._bound(self.fairness), self._intake.n_groups
        waiting = self._people.waiting(t, self.maturity)
        rules = learning_rules(self, t, self._budget, self._rule, fairness, n_groups, waiting)
        return replace(rules, everywhere=everywhere)

    def _fold_of(self, bits: NDArray[np.uint64]) -> NDArray[np.intp]:
        """Return the fold of ids, a function of them and of the seed only."""
        keyed = keyed_bits(bits, round_key(self._seed, 0, _FOLD))
        return (keyed >= _SECOND).astype(np.intp)

    def _record_people(
        self,
        batch: Batch,
        accepted: NDArray[np.bool_],
        round: int,
        outcome: NDArray[np.int8] | None = None,
    ) -> None:
        self._people.record(
            batch.bits,
            accepted,
            round,
            X=batch.X,
            group=batch.for_fit().group,
            part=self._fold_of(batch.bits),
            outcome=outcome,
        )

    def _record_round(
        self,
        batch: Batch,
        accepted: NDArray[np.bool_],
        f: Learned,
        policy: LoggedPolicy,
        record: Round,
    ) -> None:
        """Write the round down; until here only f_t was learned, and no record has changed."""
        self._deployed = f
        self._record_people(batch, accepted, record.round)
        self._log.append(policy, merge=self._rule.needs == "acceptance")
        self._intake.passed(batch)
        self._rounds.append(record)
        self._carried = record.carried

    def _note(self, f: Learned, batch: Batch, exploit: NDArray[np.bool_]) -> str:
        """Say what went differently from what was asked for; aloud if the run cannot go on so."""
        so_far, n_known = self._log.n_people + len(batch), np.count_nonzero(exploit)
        nobody_known = not (n_known or any(one.n_exploit_region for one in self._rounds))
        note = f.note
        if nobody_known and so_far >= ENOUGH_TO_TELL:
            w = self._log.coverage(batch.X, batch.group, self._rule)
            largest = float(w.max()) / self._rule.count(len(self._rounds))
            note = nobody_known_words(so_far, largest, self._rule)
        elif n_known >= ENOUGH_TO_TELL and np.isinf(f.thresholds).all():
            max_fdr = self._budget.max_fdr(len(self._rounds) + 1)
            note = nobody_accepted_words(max_fdr, self._intake.good)
        if note and (note != f.note or not f.feasible):
            warnings.warn(note, LearningWarning, stacklevel=3)
        return note
