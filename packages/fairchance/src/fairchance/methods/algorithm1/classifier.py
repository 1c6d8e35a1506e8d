"""Algorithm 1 of "Fair Classification with Partial Feedback" as a scikit-learn estimator.

Read ``decide`` and ``observe`` beside the paper's box; everything they call can be replaced
(``docs/architecture.md``).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from fairchance.core.budget import FdrBudget
from fairchance.core.coverage import CoverageRule, SummedAcceptance
from fairchance.core.decisions import ClosedRound, Decisions, Note, Round
from fairchance.core.fairness import RateParity
from fairchance.core.noise import OutcomeNoise
from fairchance.core.sampling import Draw
from fairchance.core.saved import saved
from fairchance.core.strategies import Strategy, as_strategy
from fairchance.core.utility import Utility
from fairchance.core.versions import versions
from fairchance.errors import InputError, LearningWarning, UndecidedError
from fairchance.frames import concat, plain, subset, take
from fairchance.learners.overlooked import Overlooked
from fairchance.learners.wrap import check_keeps_nobody, reads_raw_columns
from fairchance.methods.algorithm1.exploration import (
    DRAW,
    RECENT,
    RecentApplicants,
    barred_note,
    chosen,
    coin_chances,
    draw_explored,
    fixed_draw_keys,
    together,
)
from fairchance.methods.algorithm1.learning import Learned, LearningRules, learn
from fairchance.methods.algorithm1.past import past_policy as read_past_policy
from fairchance.methods.algorithm1.policy import Algorithm1Policy, Regions
from fairchance.methods.algorithm1.policy_log import (
    LOG_COLUMNS,
    LoggedPolicy,
    PolicyLog,
    per_person,
)
from fairchance.methods.closing import RoundCounts, RoundParts, check_follows, pieces
from fairchance.methods.estimator import (
    DecidingClassifier,
    allows_missing,
    check_expected,
    check_group_mode,
    check_learner,
    check_ramp,
    check_rounds,
    check_unchanged,
)
from fairchance.notebook import Records
from fairchance.people.columns import as_missing_values
from fairchance.people.ids import id_bits, keyed_bits, ramp_key, round_key, seed_of
from fairchance.people.intake import Batch, History, Intake, read_flags
from fairchance.people.likeness import Checks, Unlike
from fairchance.people.reasons import Scored
from fairchance.people.store import NEVER, NOT_TAKEN, PeopleStore
from fairchance.words.rounds import note_text

__all__ = ["ENOUGH_TO_TELL", "Closing", "Deployed", "PartialFeedbackClassifier", "check_settings"]

# Applicants in a region before a note says that nothing can start there, or take-up is estimated.
ENOUGH_TO_TELL = 30
# The share by which outcomes must have grown to be learned from, after the first rounds.
GROWTH = 0.1

_FOLD, _SAMPLE = 3, 6  # purposes of the randomness that assigns folds and keeps applicants
_SECOND = np.uint64(1 << 63)  # keyed bits from here on are in the second fold

_CHOICES: dict[str, tuple[str, ...]] = {
    "thresholds": ("shared", "per_group"),
    "constraints": ("joint", "per_group"),
    "split": ("half", "cross"),
    "weights": ("acceptance", "none"),
    "bounds_in": ("thresholds", "fit", "both"),
    "first_round": ("matched", "drawn", "cut", "learned"),
    "exploration": ("fixed", "coins"),
}
_KINDS: dict[str, type] = {
    "utility": Utility,
    "budget": FdrBudget,
    "coverage": CoverageRule,
    "fairness": RateParity,
    "noise": OutcomeNoise,
}
# Options that cannot change between rounds, because records depend on them.
_FIXED = (
    "coverage",
    "learner",
    "group_as_feature",
    "group_mode",
    "attributes",
    "missing_values",
    "pos_label",
    "random_state",
    "exploration",
)


def check_settings(classifier: Any) -> None:
    """Raise unless all options of a classifier of Algorithm 1 are allowed."""
    for name, allowed in _CHOICES.items():
        value = getattr(classifier, name)
        if value not in allowed:
            raise InputError(f"{name} must be one of {allowed}, got {value!r}.")
    for name, kind in _KINDS.items():
        value = getattr(classifier, name)
        if value is not None and not isinstance(value, kind):
            raise InputError(f"{name} must be a {kind.__name__} or None, got {value!r}.")
    if classifier.weight_cap is not None and not classifier.weight_cap >= 1:
        raise InputError(f"weight_cap must be 1 or more, or None, got {classifier.weight_cap}.")
    if classifier.min_outcomes is not None and not classifier.min_outcomes >= 1:
        raise InputError(f"min_outcomes must be 1 or more, or None, got {classifier.min_outcomes}.")
    check_rounds("maturity", classifier.maturity, least=0)
    as_strategy(classifier.strategy)
    check_learner(classifier.learner)
    if classifier.first_round == "drawn" and as_strategy(classifier.strategy).is_limited:
        raise InputError(
            f"first_round='drawn' accepts any applicant by chance, and limits bar some of them, "
            f"got {classifier.strategy!r}; pass first_round='matched', or no limits."
        )
    exposure = getattr(as_strategy(classifier.strategy), "exposure", None)
    if classifier.exploration == "coins" and exposure is not None:
        raise InputError(
            f"coins cannot keep the sum of a round's amounts within exposure={exposure}; pass "
            f"exploration='fixed', or no exposure."
        )
    check_group_mode(classifier)


@dataclass(frozen=True, eq=False)
class Deployed:
    """The policy of the last round of Algorithm 1, for a record of it.

    Attributes
    ----------
    f
        f_t, its likelihood and thresholds.
    policy
        The policy as it is logged.
    n_final
        How many logged policies no later round can extend.
    """

    f: Learned
    policy: LoggedPolicy
    n_final: int


@saved
class PartialFeedbackClassifier(DecidingClassifier):
    """Decide batches under partial feedback with a bound on mistakes and fair exploration.

    One caller at a time: rounds follow one another, so calls from several threads need a lock.

    Mistakes are counted among loans taken: an applicant who is accepted and does not take the loan
    (``not_taken``) is no mistake and teaches nothing about outcomes. The exploration budget is in
    loans taken, too, by the take-up of exploited and of explored applicants in rounds without
    pending outcomes; until enough of them are known, all are expected to take the loan.

    Parameters
    ----------
    utility
        What decisions are worth; None means ``Accuracy()``.
    budget
        α and how it is shared between exploiting and exploring; None means ``FdrBudget()``.
    coverage
        Who counts as known; None means ``SummedAcceptance()``.
    strategy
        Who is explored: a ``Strategy``, or a function of (X, score, group); None means
        ``ScoreWeighted()``. ``Limited`` adds limits on risk, people and money.
    learner
        Likelihood model: any scikit-learn classifier with ``predict_proba``; None means
        ``ConstrainedLogistic()``. It gets numbers: categories as columns of 0 and 1, dates as days,
        missing numbers as they are if it accepts them, else as medians with a column that marks
        them. A ``Pipeline`` gets the table as it is.
    fairness
        Group constraint on the thresholds. For thresholds that are blind to the group, put it into
        the fit instead: ``learner=ConstrainedLogistic(fairness=…)``.
    thresholds
        ``"shared"``: one for all groups; ``"per_group"``: one for each group.
    constraints
        ``"joint"``: the bounds on FDR and selection rate (α_exploit + ε and λ − ε) hold over all
        applicants of the exploit region; ``"per_group"``: within each group, which the paper's
        improvement of every group needs (Theorem 2). How many are explored is counted over all
        groups either way.
    split
        ``"half"``: the likelihood learns from one half of the labelled rows, the thresholds from
        the other; ``"cross"``: both learn from all, each half scored by the model of the other.
        Halves go by id and persist over rounds.
    weights
        ``"acceptance"``: labelled rows count one over the mean probability with which the logged
        policies accept such an applicant (the paper's η_w); ``"none"``: all count the same.
    weight_cap
        Largest such weight; None means no cap. A larger cap corrects more and is noisier: a few
        heavy rows that turn out bad can make every threshold but the strictest look infeasible.
    min_outcomes
        Effective number of held-out outcomes of our own decisions from which on the thresholds are
        chosen on these alone. With fewer, the history is used too, and the round is flagged as not
        calibrated. None: the history is always used.
    first_round
        Round 1 decides as f_0 does (Algorithm 1), whose score is a probability of acceptance.
        ``"matched"``: f_0 accepts from the score on that accepts as many of the history as the past
        did (½ if the history has no rejections). ``"drawn"``: every applicant is accepted with
        f_0's probability; not with limits. ``"cut"``: f_0 accepts from ½ on, where its score
        exceeds τ. ``"learned"``: by what the history teaches. If the history has no rejections and
        no past policy is given, there is no f_0, and round 1 is learned.
    exploration
        ``"fixed"``: exactly as many as the budget allows are drawn from a whole batch. ``"coins"``:
        each applicant is explored independently, with a probability that is fixed before the round,
        so that a round may be decided in pieces (``open_round``); what coins miss or exceed is
        carried to the next round, so that over a run as many are explored.
    maturity
        Rounds after which missing outcomes count as bad; until then a round with missing outcomes
        is left out of learning. None: outcomes count as soon as they arrive and missing ones never
        do, which is right only if bad outcomes arrive neither earlier nor later than good ones.
        0: missing outcomes count as bad at once.
    noise
        How often outcomes are recorded wrongly: estimated FDR and utility are corrected for it.
        None means never.
    group_as_feature
        Append the group to the features.
    group_mode
        What groups may change. ``"aware"``: everything; ``"blind"``: an applicant's own group
        changes nothing, groups of labelled rows change only what is learned, through ``fairness``
        and ``constraints`` on a shared threshold or ``fairness`` in the learner; ``"audit"``: no
        group changes any decision, groups are read, checked and counted.
    attributes
        Several columns of ``sensitive_features``. ``"crossed"``: each combination is a group;
        ``"side_by_side"``: fairness constraints and counts go by each attribute, and all else that
        depends on groups by combination.
    missing_values
        Texts and numbers that mean that a feature is missing, such as ``"?"`` or ``[-1, "NA"]``,
        besides NaN and None.
    checks
        From which difference to the history on a batch is refused or reported; None means
        ``Checks()``.
    bounds_in
        Where the bounds on FDR and selection rate hold. ``"thresholds"``: for the decisions on
        held-out rows. ``"fit"``: for the likelihoods, in expectation and over all groups together;
        thresholds then maximise utility alone, as in the paper. ``"both"``. A bound in the fit
        needs ``ConstrainedLogistic``.
    pos_label
        Label of the good outcome; None if outcomes are 0 and 1, False and True, or −1 and 1.
    random_state
        Seed of the draws.

    Attributes
    ----------
    classes_ : outcome labels.
    groups_ : group values, in the order of ``Round.thresholds``.
    bound_ : α, the bound on mistakes; known before ``fit``, too.
    rounds_ : a ``Round`` for each round.
    policies_ : the logged policies, a tuple of ``LoggedPolicy``.
    deployed_ : the policy of the last round, a ``Deployed``.

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
    _every_round: ClassVar[int] = 50  # rounds in which all news is learned; the paper has 39
    _open_policy: Algorithm1Policy | None = None
    _used: Algorithm1Policy | None = None  # the policy of the last round
    _recent: RecentApplicants | None = None
    _void: tuple[int, ...] = ()  # rounds that nothing is learned from

    @property
    def _encodes(self) -> bool:
        return not reads_raw_columns(self.learner)

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
        constraints: Literal["joint", "per_group"] = "joint",
        split: Literal["half", "cross"] = "half",
        weights: Literal["acceptance", "none"] = "acceptance",
        weight_cap: float | None = 3.0,
        min_outcomes: int | None = 100,
        first_round: Literal["matched", "drawn", "cut", "learned"] = "matched",
        exploration: Literal["fixed", "coins"] = "fixed",
        maturity: int | None = None,
        noise: OutcomeNoise | None = None,
        group_as_feature: bool = False,
        group_mode: Literal["aware", "blind", "audit"] = "aware",
        attributes: Literal["crossed", "side_by_side"] = "crossed",
        missing_values: Any = None,
        checks: Checks | None = None,
        bounds_in: Literal["thresholds", "fit", "both"] = "thresholds",
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
        self.constraints = constraints
        self.split = split
        self.weights = weights
        self.weight_cap = weight_cap
        self.min_outcomes = min_outcomes
        self.first_round = first_round
        self.exploration = exploration
        self.maturity = maturity
        self.noise = noise
        self.group_as_feature = group_as_feature
        self.group_mode = group_mode
        self.attributes = attributes
        self.missing_values = missing_values
        self.checks = checks
        self.bounds_in = bounds_in
        self.pos_label = pos_label
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        accepted: Any = None,
        not_taken: Any = None,
        sensitive_features: Any = None,
        ids: Any = None,
        past_policy: Any = None,
    ) -> PartialFeedbackClassifier:
        """Start from a history of past decisions.

        Parameters
        ----------
        X
            Features of all past applicants: an array of numbers, or a dataframe with numbers, text,
            categories, truth values and dates. Values may be missing.
        y
            Outcomes; read only where accepted and taken.
        accepted
            Which applicants were accepted; None means all of them.
        not_taken
            Which of the accepted did not take the loan; None means none.
        sensitive_features
            Group of each applicant; several columns are several protected attributes.
        ids
            Ids of the applications, integers or strings; None means consecutive integers.
        past_policy
            f_0 if it is known: a function of the features that returns probabilities of acceptance,
            or a fitted classifier of acceptance. None fits the learner to imitate ``accepted``.
        """
        self._begin(X, y, accepted, sensitive_features, ids, past_policy, not_taken)
        return self

    def _start(
        self,
        X: Any,
        y: Any,
        accepted: Any,
        sensitive_features: Any,
        ids: Any,
        past_policy: Any,
        not_taken: Any = None,
    ) -> None:
        self._check_options()
        self._intake = self._new_intake()
        history = self._intake.read_history(
            self, X, y, accepted, sensitive_features, ids, not_taken
        )
        self._learners = [self._prepared_learner() for _ in range(2)]
        about_groups = self.fairness is not None or self.constraints == "per_group"
        if about_groups and self._intake.groups is None:
            raise InputError(
                "fairness and constraints='per_group' are about groups; pass sensitive_features to "
                "fit."
            )
        self.classes_ = self._intake.classes
        self.groups_ = self._intake.groups
        as_strategy(self.strategy).for_columns(self._intake.known_columns)  # or raises
        self._seed = seed_of(self.random_state)
        if past_policy is not None:
            self._intake.check_numbers("past_policy")
        self._overlooked = Overlooked.of(
            subset(history.X, history.accepted),
            subset(history.X, ~history.accepted),
            self._intake.name_value,
            self._intake.categorical,
        )
        self._past = read_past_policy(
            past_policy,
            self.learner,
            history,
            self.n_features_in_,
            self._intake.expansion,
            self._overlooked,
        )
        self._log = PolicyLog(self._past.likelihood, len(history))
        self._people = PeopleStore(2, self._columns)
        self._people.record(
            history.bits,
            history.accepted,
            0,
            X=history.X,
            group=history.for_fit().group,
            part=self._fold_of(history.bits),
            outcome=history.outcome,
        )
        self._start_counts()
        self._start_records(history)
        self._intake.passed(history)
        self._rounds: list[Round] = []
        self._open_policy = self._used = None
        self._void = ()
        self._recent = None
        if self._flips_coins:
            self._recent = RecentApplicants()
            self._recent.add(chosen(history, round_key(self._seed, 0, _SAMPLE)))
        self._corrections = []
        self._carried = 0.0
        learned = self._learn(1) or self._learn(1, everywhere=True)
        assert learned is not None  # the intake saw both outcomes
        self._learned: Learned = replace(learned, take_up=self._take_up(1))
        self._deployed = self._learned
        self._note_learned(self._rules(1))
        self._fitted = {name: getattr(self, name) for name in _FIXED}

    def decide(
        self,
        X: Any,
        *,
        sensitive_features: Any = None,
        ids: Any = None,
        incumbent: Any = None,
        barred: Any = None,
        ramp: float = 1.0,
        unlike_history: bool = False,
    ) -> Decisions:
        """Decide a batch: steps 1 to 3 of Algorithm 1.

        With the decisions d of the lender's own process and a ramp r, applicants are accepted with
        probability p = (1 − r)·d + r·π, where π is the probability under Algorithm 1.

        Parameters
        ----------
        X
            Features of the applicants, one or a million.
        sensitive_features
            Their groups; needed if ``fit`` got groups.
        ids
            Ids of the applications, never used before; None means the next integers.
        incumbent
            d, which applicants the lender's own process accepts; None if there is none.
        barred
            Which applicants must not be accepted, by a rule that was known before; None means none.
        ramp
            r, the share of applicants for whom Algorithm 1 decides; for the others d does. 0 is
            shadow mode: d decides on all, and what would have been done only shows in the score and
            the threshold. The applicants of a small ramp are among those of a larger one.
        unlike_history
            Decide although columns differ much from the history; see ``Checks``.
        """
        self._check_fitted()
        self._check_options()
        check_unchanged(self, self._fitted)
        self._check_not_open()
        batch = self._intake.read_batch(
            self,
            X,
            ids=ids,
            sensitive_features=sensitive_features,
            checks=self._checks,
            unlike_history=unlike_history,
            incumbent=incumbent,
            barred=barred,
        )
        ramp = check_ramp(ramp, batch.incumbent)
        if ids is not None:  # the next integers are new
            self._people.check_new(batch.ids, batch.bits)
        policy = self._policy_of_round(len(batch), batch.incumbent is not None, ramp)
        closing = Closing(RoundCounts(batch.sensitive))
        decided = self._add_piece(closing, policy, batch)
        given = self._given_to(batch, decided.accepted)
        self._close(closing, policy, batch.unlike)
        answer = self._answer(batch, decided, given)
        return replace(answer, unlike=batch.unlike, applicants=None)

    def open_round(
        self, expected: int | None = None, *, incumbent: bool = False, ramp: float = 1.0
    ) -> Algorithm1Policy:
        """Choose the policy of the next round; nobody is decided on yet.

        It needs ``exploration="coins"``. Outcomes may come while the round is open; the round after
        it learns from them.

        Parameters
        ----------
        expected
            About how many applicants will come. None means as many as in the last round, and
            before the first round as many as in the history, at most 1,000.
        incumbent
            Whether the lender's own decisions will be given.
        ramp
            As for ``decide``.

        Returns
        -------
        Algorithm1Policy
            What decides on the applicants, anywhere and in any pieces, until ``close_round``.
        """
        self._check_fitted()
        self._check_options()
        check_unchanged(self, self._fitted)
        self._check_not_open()
        self._intake.check_good()
        if not self._flips_coins:
            raise InputError(
                "exploration='fixed' draws from a whole batch, so a round cannot be decided in "
                "pieces; pass exploration='coins', or use decide."
            )
        if expected is None:
            last = self._rounds[-1].n_people if self._rounds else self._log.n_history
            expected = last if self._rounds else min(last, RECENT)
        check_expected(expected)
        ramp = check_ramp(ramp, incumbent or None)
        self._open_policy = self._apart(self._policy_of_round(expected, incumbent, ramp))
        return self._open_policy

    def _apart(self, policy: Algorithm1Policy) -> Algorithm1Policy:
        """Return a policy with a log of its own, which later rounds do not change."""
        log = policy.log.for_round(self._rule)
        position = log.add_likelihood(policy.f.likelihood)
        return replace(policy, log=log, logged=replace(policy.logged, likelihood=position))

    @property
    def policy_(self) -> Algorithm1Policy:
        """The policy that decided the last round."""
        self._check_decided()
        assert self._used is not None
        return self._used

    def close_round(self, parts: Iterable[Decisions]) -> ClosedRound:
        """Take in the decisions of the open round and end it.

        Every applicant who was decided on has to be there, the rejected too. Columns that are
        unlike the history are reported in ``unlike`` of the answer; nothing is refused for them,
        since the decisions were made.

        Parameters
        ----------
        parts
            What ``decide`` of the policy returned, in any order. They are gone over once, and only
            accepted applicants are kept, so a generator of parts needs little memory. If persons
            are known, it has to be a list.

        Returns
        -------
        ClosedRound
            The round in numbers.

        Raises
        ------
        InputError
            If no round is open, if a decision does not follow from the policy, or if an id occurs
            twice or was decided on before. Nothing is changed then.
        """
        self._check_fitted()
        policy = self._open_policy
        if policy is None:
            raise InputError("no round is open; open one with open_round.")
        closing, decided = Closing(RoundCounts(self._intake.sensitive)), None
        for some in pieces(RoundParts.of(parts), policy.round):
            given = [part.applicants for part in some]
            batch = self._intake.join(given, closing.tally.sensitive)
            closing.tally.check_new(batch)
            self._people.check_new(batch.ids, batch.bits)
            decided = self._add_piece(closing, policy, self._intake.counted(batch))
            order = np.argsort(np.concatenate([each.bits for each in given]), kind="stable")
            check_follows(decided, some, order)
        if decided is None:  # nobody applied
            decided = self._add_piece(closing, policy, self._nobody(policy))
        tally, unlike = closing.tally, tuple[Unlike, ...]()
        if tally.counts is not None:
            unlike = self._intake.likeness.compare(tally.counts, self._checks)
        self._close(closing, policy, unlike)
        return tally.closed(decided, unlike)

    @property
    def open_policy_(self) -> Algorithm1Policy | None:
        """The policy of the round that is open; None if none is."""
        check_is_fitted(self, "_rounds")
        return self._open_policy

    def void_round(self, t: int) -> Self:
        """Learn nothing from a round from now on, because an applicant is missing in it.

        Its decisions stay as they are, and outcomes of its applicants are recorded as before.

        Parameters
        ----------
        t
            Number of a round that was closed.
        """
        self._check_fitted()
        if not 1 <= t <= len(self._rounds):
            raise InputError(f"round {t!r} is not a closed round; there are {len(self._rounds)}.")
        self._void = tuple(sorted({*self._void, int(t)}))
        self._revise(True)
        return self

    def _policy_of_round(self, expected: int, beside: bool, ramp: float) -> Algorithm1Policy:
        """Learn f_t (round 1: f_0), and return the policy of the next round."""
        t, n_groups = len(self._rounds) + 1, self._intake.n_groups
        f = self._classifier_of_round(t)
        unit, nothing = np.ones(n_groups), np.zeros(n_groups)
        logged = LoggedPolicy(
            self._log.add_likelihood(f.likelihood),
            f.thresholds,
            self._strategy,
            unit,
            nothing,
            unit,
            n_people=0,
            follows=f.follows,
            ramp=ramp,
        )
        policy = Algorithm1Policy(
            t,
            ramp,
            beside,
            f,
            self._log,
            self._rule,
            logged,
            self._intake.reader(),
            round_key(self._seed, t, DRAW),
            ramp_key(self._seed),
            versions(),
        )
        if self._flips_coins and f.follows != "drawn":
            policy = replace(policy, logged=replace(logged, **self._coins(policy, expected)))
        return policy

    def _coins(self, policy: Algorithm1Policy, expected: int) -> dict[str, Any]:
        """Return the coins that would spend the budget on recent applicants."""
        assert self._recent is not None
        recent = self._recent.batch()
        regions, share = policy.regions(recent), max(expected, 1) / max(len(recent), 1)
        n_exploit = regions.n_exploited * policy.f.take_up * share
        allowed = self._budget.explore_share(policy.round) * n_exploit
        # A round makes up for at most its own budget: more applicants than expected flip the coins.
        allowed += min(max(self._carried, -allowed), allowed)
        return coin_chances(
            recent,
            regions.explore,
            regions.candidates.may,
            regions.score,
            allowed / share,
            self._strategy,
            self._intake.n_groups,
        )

    @property
    def _flips_coins(self) -> bool:
        return bool(self.exploration == "coins")

    def _nobody(self, policy: Algorithm1Policy) -> Batch:
        """Return the batch of a round without applicants."""
        assert self._recent is not None
        return replace(
            self._recent.batch()[np.empty(0, np.intp)],
            ids=np.empty(0, np.int64 if self._intake.id_kind == "i" else np.str_),
            sensitive=self._intake.sensitive,
            incumbent=np.empty(0, np.bool_) if policy.needs_incumbent else None,
            **self._intake.seen_by(np.empty(0, np.intp)),
        )

    def _add_piece(self, closing: Closing, policy: Algorithm1Policy, batch: Batch) -> Decisions:
        """Decide some applicants of a round by its policy, and record nothing.

        A draw of fixed size needs all of them.
        """
        f, t = policy.f, policy.round
        # Steps 1 and 2. Split the batch into EXPLOIT_t and EXPLORE_t, and accept by f_t.
        regions = policy.regions(batch)
        closing.add_regions(regions)

        # Step 3. Explore as many as the budget allows, with probability proportional to g.
        if self._flips_coins or f.follows == "drawn":
            draw = policy.draw(batch, regions)
        else:
            n_exploit = regions.n_exploited * f.take_up
            n_explore, _ = self._budget.allot(
                t, n_exploit, self._carried, regions.candidates.at_most
            )
            draw, group_factor = self._explore(
                t, batch, regions.explore, regions.score, n_exploit, n_explore
            )
            closing.logged = replace(
                policy.logged, group_factor=group_factor, left=draw.left, others=draw.others
            )
        closing.n_drawn += int(np.count_nonzero(draw.drawn))
        if self._none_known(closing, f) and len(batch):
            w = self._log.coverage(batch.X, batch.group, self._rule, batch.incumbent)
            closing.largest = max(closing.largest, float(w.max()))
        decided = policy.answer(batch, regions, draw)
        closing.add(batch, decided, self._fold_of(batch.bits))
        if self._recent is not None:
            closing.keep_recent(batch, round_key(self._seed, t, _SAMPLE))
        return decided

    def _close(
        self, closing: Closing, policy: Algorithm1Policy, unlike: tuple[Unlike, ...]
    ) -> None:
        """Record a round of which all applicants were added."""
        f, t, tally = policy.f, policy.round, closing.tally
        logged = closing.logged or policy.logged
        n_exploit, n_candidates = closing.n_exploited * f.take_up, closing.n_candidates
        n_wanted, _ = self._budget.allot(t, n_exploit, self._carried, n_candidates)
        n_explore, carried = self._budget.allot(t, n_exploit, self._carried, closing.at_most)
        used = policy
        if self._open_policy is None:
            _, start = fixed_draw_keys(self._seed, t)
            fixed = None if self._flips_coins else (n_explore, start)
            used = self._apart(replace(policy, fixed=fixed))
        if self._flips_coins and f.follows != "drawn":
            carried = self._budget.settle(
                t, n_exploit, self._carried, n_candidates, closing.n_drawn
            )
            n_wanted = n_explore  # limits only bar; no number is cut
        notes = self._notes(f, closing)
        why = barred_note(logged.strategy, closing.why)
        notes += () if why is None else (why,)
        if n_explore != n_wanted:
            facts = {"n_explored": n_explore, "n_wanted": n_wanted}
            notes += (Note("exposure", facts),)
        record = Round(
            round=t,
            n_people=tally.n_people,
            n_exploit_region=closing.n_exploit_region,
            n_exploited=tally.n_accepted - tally.n_explored,
            n_explored=tally.n_explored,
            alpha_exploit=self._budget.alpha_exploit(t),
            carried=carried,
            thresholds=tuple(f.thresholds.tolist()),
            calibrated=f.calibrated,
            n_outcomes=f.n_outcomes,
            effective_sample_size=f.effective_sample_size,
            estimated_fdr=f.estimated_fdr,
            disparity=f.disparity,
            feasible=f.feasible,
            notes=notes,
            n_unreachable=int(closing.barred.sum()),
            unreachable=tuple(closing.barred.tolist()),
            group_mode=self.group_mode,
            capped_share=f.capped_share,
            uncapped_fdr=f.uncapped_fdr,
            follows=f.follows,
            ramp=policy.ramp,
            n_incumbent=closing.n_incumbent,
            n_barred=closing.n_barred,
            coins=self._flips_coins or f.follows == "drawn",
        )
        position = self._log.add_likelihood(f.likelihood)
        logged = replace(logged, likelihood=position, n_people=tally.n_people)
        self._used = used
        self._record_round(closing, f, logged, record, unlike)

    def observe(self, ids: Any, outcomes: Any) -> PartialFeedbackClassifier:
        """Record outcomes of accepted applicants: step 4 of Algorithm 1.

        In any order, in parts, many rounds late; the same outcome may come again. Step 5, the
        update of coverage, needs no call, since coverage is a function of the logged policies.

        Parameters
        ----------
        ids
            Ids of the applications.
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

    def correct(self, ids: Any, outcomes: Any) -> Self:
        """Replace recorded outcomes that turned out to be wrong; the next round learns from them.

        Decisions already made stay as they are.

        Parameters
        ----------
        ids
            Ids of applications whose outcomes are recorded.
        outcomes
            The right outcomes.
        """
        self._check_fitted()
        names = self._intake.read_ids(ids)
        if names.size:
            outcome = self._intake.read_outcomes(outcomes, names.shape[0])
            changes = self._people.observe(names, id_bits(names), outcome, correcting=True)
            self._revise(len(changes) > 0)
            t = len(self._rounds)
            self._remember_corrections(t, names[changes.at], changes.before, changes.after)
        return self

    def withdraw(self, ids: Any) -> Self:
        """Record that the outcomes of accepted applicants will never be known.

        Use it for a decision that was overridden by hand, and ``not_taken`` for a loan that was not
        taken. Nothing is learned from these applicants from now on, even if an outcome is recorded.
        If an outcome arrives after all, record it with ``correct``.

        Parameters
        ----------
        ids
            Ids of accepted applications.
        """
        self._check_fitted()
        names = self._intake.read_ids(ids)
        changes = self._people.withdraw(names, id_bits(names))
        # With a maturity, pending outcomes come to count as bad, so withdrawing one is news too.
        self._news |= self.maturity is not None
        self._revise(bool((changes.before >= 0).any()))
        return self

    def not_taken(self, ids: Any) -> Self:
        """Record that accepted applicants did not take the loan; again is harmless.

        An applicant with an outcome, or withdrawn, is refused. If the loan was taken after all,
        record its outcome with ``correct``.

        Parameters
        ----------
        ids
            Ids of accepted applications.
        """
        self._check_fitted()
        names = self._intake.read_ids(ids)
        self._news |= len(self._people.not_taken(names, id_bits(names))) > 0
        return self

    def forget(self, ids: Any) -> Self:
        """Forget applicants for good: their features, groups, outcomes and ids.

        Nothing is learned from them from the next round on. Decisions, counts and the policies of
        rounds so far stay as they are, and so does what a learner keeps of the rows it was fitted
        to: coefficients, but also categories of an encoder.

        Parameters
        ----------
        ids
            Ids of applications, accepted or rejected, those of the history too.
        """
        self._check_fitted()
        check_keeps_nobody(self.learner)
        check_keeps_nobody(self._past.given, "past policy")
        names = self._intake.read_ids(ids)
        if names.size:
            self._people.forget(names, id_bits(names))
            if self._recent is not None:
                self._recent.forget(id_bits(names))
            self._forget_corrections(names)
            self._revise(True)
        return self

    # Questions that change nothing.

    def accepts(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.bool_]:
        """Return which applicants f_t accepts at its operating point, whether known or not.

        f_t is the classifier of the last ``decide`` (f_0 in a round that follows the past), or the
        one learned from the history after ``fit``. Nothing is recorded.
        """
        check_is_fitted(self)
        self._intake.check_good()
        score, group = self._score(X, sensitive_features, self._deployed)
        return np.asarray(score >= per_person(self._deployed.thresholds, group))

    def acceptance_probability(
        self, X: Any, *, sensitive_features: Any = None, incumbent: Any = None
    ) -> NDArray[np.float64]:
        """Return the probability with which the last round accepts applicants, ramp included.

        π is 0 or 1 in the exploit region of that round, the probability of being drawn elsewhere,
        for applicants who were not in its batch and are not barred. ``incumbent`` is needed if the
        ramp of any round was below 1.
        """
        check_is_fitted(self)
        self._check_decided()
        features, group = self._intake.for_scoring(self, X, sensitive_features, needed=True)
        if incumbent is not None:
            incumbent = read_flags(incumbent, group.size, "incumbent")
        elif self._log.uses_incumbent:
            raise InputError(
                "acceptance depends on the incumbent's decisions, since a round had a ramp below "
                "1; pass incumbent=."
            )
        return self._log.last_acceptance(features, group, self._rule, incumbent)

    def mean_acceptance(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.float64]:
        """Return each applicant's mean probability of acceptance over the policies of all rounds.

        Σ_t (n_t / N)·p_t, so rounds count by their numbers of applicants. p_t is that of
        ``acceptance_probability`` after round t, with f_0's probability of acceptance as d.
        """
        check_is_fitted(self)
        self._check_decided()
        features, group = self._intake.for_scoring(self, X, sensitive_features, needed=True)
        past = self._log.past_acceptance(features, group)
        own, _ = self._log.walk(features, group, self._rule, past)
        return np.minimum(own / max(1, self._log.n_people), 1.0)

    def never_explored(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.bool_]:
        """Return which applicants the limits of the strategy currently bar from exploration.

        An exclusion rule or an exposure limit bars an applicant for good; a limit on risk may let
        them in once f_t has learned more. f_t is that of ``accepts``. An applicant who is known
        needs no exploration, whether barred or not.
        """
        check_is_fitted(self)
        features, group = self._read_for(self._deployed, X, sensitive_features)
        score = np.asarray(self._deployed.likelihood.score(features, group))
        why = self._strategy.barred(features, score)
        return np.zeros(group.size, np.bool_) if why is None else np.asarray(why != 0)

    def scored_by(self, X: Any, *, sensitive_features: Any = None) -> Scored:
        """Return applicants as f_t reads them, with its likelihood; f_t is that of ``accepts``."""
        check_is_fitted(self)
        features, group = self._read_for(self._deployed, X, sensitive_features)
        return Scored(self._deployed.likelihood, features, group, self._intake.places)

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.float64]:
        """Return f_t's likelihood of each outcome, in the order of ``classes_``."""
        check_is_fitted(self)
        score, _ = self._score(X, sensitive_features, self._learned)
        return self._per_class(score)

    def coverage_of(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.float64]:
        """Return the coverage w of applicants as the next round will see it."""
        check_is_fitted(self)
        features, group = self._intake.for_scoring(self, X, sensitive_features, needed=True)
        w = self._log.coverage(features, group, self._rule)
        return w / self._rule.count(len(self._rounds))

    def fold_of(self, ids: Any) -> NDArray[np.intp]:
        """Return the fold of applications: with ``split="half"``, 0 learns f_t, 1 its thresholds.

        Parameters
        ----------
        ids
            Ids of applications, decided on or not.
        """
        self._check_fitted()
        return self._fold_of(id_bits(self._intake.read_ids(ids)))

    @property
    def rounds_(self) -> Records[Round]:
        """The record of each round."""
        check_is_fitted(self, "_rounds")
        return Records(self._rounds)

    @property
    def policies_(self) -> tuple[LoggedPolicy, ...]:
        """The logged policies; rounds that acted alike may share one."""
        check_is_fitted(self, "_log")
        return tuple(self._log.policies)

    @property
    def n_outcomes_(self) -> int:
        """Number of outcomes known, those of the history included."""
        check_is_fitted(self, "_people")
        return self._people.n_outcomes

    @property
    def deployed_(self) -> Deployed | None:
        """The policy of the last round; None before any round."""
        check_is_fitted(self, "_rounds")
        if not self._rounds:
            return None
        assert self._log.last is not None
        return Deployed(self._deployed, self._log.last, self._log.n_final)

    # Hooks for classifiers of other kinds of outcomes.

    def _check_options(self) -> None:
        check_settings(self)

    def _new_intake(self) -> Intake:
        return Intake(
            raw=reads_raw_columns(self.learner),
            allow_missing=allows_missing(self.learner),
            group_as_feature=self.group_as_feature,
            pos_label=self.pos_label,
            group_mode=self.group_mode,
            encodes=self._encodes,
            missing_values=as_missing_values(self.missing_values),
            named_values=as_strategy(self.strategy).named_values,
        )

    def _start_records(self, history: History) -> None:
        """Begin additional records; nothing has been learned yet."""

    def _given_to(self, batch: Batch, accepted: NDArray[np.bool_]) -> Any:  # noqa: ARG002
        """Return additional decisions; nothing has been recorded yet."""
        return None

    def _answer(self, batch: Batch, decided: Decisions, given: Any) -> Decisions:  # noqa: ARG002
        """Return the decisions of a round that has been recorded."""
        return decided

    # Parts of the steps.

    def _check_decided(self) -> None:
        if not self._rounds:
            raise UndecidedError("no round has been decided yet, so no policy is deployed; decide.")

    def _check_fitted(self) -> None:
        """Raise unless there is a history; scikit-learn's own check takes a tenth of a round."""
        if not hasattr(self, "_fitted"):
            check_is_fitted(self)

    def _classifier_of_round(self, t: int) -> Learned:
        if t == 1 and self._past.decides and self.first_round != "learned":
            past, n_groups = self._past, self._intake.n_groups
            f_0 = Learned.following(past.likelihood, n_groups, self.first_round, past.cut)
            return replace(f_0, take_up=self._take_up(t), notes=self._overlooked.notes())
        rules = self._rules(t)
        if self._is_due(t, rules):
            learned = self._learn(t) or self._learned
            self._learned = replace(learned, take_up=self._take_up(t))
            self._note_learned(rules)
        return self._learned

    def _revise(self, changed: bool) -> None:
        """Remember whether an outcome that f_t may rest on was changed or removed."""
        self._news |= changed
        self._revised |= changed

    def _note_learned(self, rules: LearningRules) -> None:
        self._news = self._revised = False
        self._learned_by, self._n_learned = rules, self._n_settled(rules)

    def _is_due(self, t: int, rules: LearningRules) -> bool:
        """Return whether f_t has to be learned; the last one serves again if not.

        After many rounds, a round adds little to all outcomes. Then f_t is learned when they have
        grown by a tenth, at once if an outcome was revised, and when an option changed.
        """
        if t <= self._every_round:
            return self._news or rules != self._learned_by
        if self._revised or replace(rules, waiting=None) != replace(self._learned_by, waiting=None):
            return True
        return self._n_settled(rules) >= self._n_learned * (1 + GROWTH)

    def _n_settled(self, rules: LearningRules) -> int:
        """Return how many rows learning uses, for f_t or for take-up."""
        settled = (
            rows.counted(rules.waiting) | (rows["outcome"] == NOT_TAKEN)
            for rows in self._people.parts
        )
        return sum(int(np.count_nonzero(rows)) for rows in settled)

    def _learn(self, t: int, *, everywhere: bool = False) -> Learned | None:
        rules = self._rules(t, everywhere=everywhere)
        return learn(self._learners, self._people.parts, self._log, rules)

    def _take_up(self, t: int) -> float:
        """Return the take-up of exploited applicants divided by that of explored ones.

        Rounds with pending outcomes are left out: what is not taken is known before outcomes are.
        """
        waiting = self._people.waiting(t, t if self.maturity is None else self.maturity) or ()
        left_out = (*waiting, *self._void)
        n, taken = np.zeros(2), np.zeros(2)  # exploited, explored
        for rows in self._people.parts:
            settled = (rows["outcome"] != NEVER) & ~np.isin(rows["round"], left_out)
            region, took = rows["explored"][settled], rows["outcome"][settled] != NOT_TAKEN
            n += np.bincount(region, minlength=2)
            taken += np.bincount(region, took, minlength=2)
        shares = np.where(n < ENOUGH_TO_TELL, 1.0, (taken + 1) / (n + 1))
        return float(shares[0] / shares[1])

    def _rules(self, t: int, *, everywhere: bool = False) -> LearningRules:
        return LearningRules.of(
            self,
            max_fdr=self._budget.max_fdr(t),
            min_selection_rate=max(0.0, self._budget.min_selection_rate - self._budget.slack),
            rule=self._rule,
            fairness=self._bound(self.fairness),
            n_groups=self._intake.n_groups,
            expansion=self._intake.expansion,
            waiting=self._people.waiting(t, self.maturity),
            everywhere=everywhere,
            overlooked=self._overlooked,
            void=self._void,
        )

    def _explore(
        self,
        t: int,
        batch: Batch,
        explore: NDArray[np.intp],
        score: NDArray[Any],
        n_exploit: float,
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
            # Another applicant would have taken the place of an average one, exploited or not.
            n_instead=self._budget.allowed(t, n_exploit * (1 - 1 / len(batch)), self._carried),
        )

    def _none_known(self, closing: Closing, f: Learned) -> bool:
        """Return whether nobody was in an exploit region so far, which may be worth a note."""
        if f.follows == "drawn" or closing.n_known:
            return False
        return not any(record.n_exploit_region for record in self._rounds)

    def _notes(self, f: Learned, closing: Closing) -> tuple[Note, ...]:
        """Return what the round's record must mention; warn if the run cannot go on like this."""
        n_people, n_known = closing.tally.n_people, closing.n_known
        so_far, notes = self._log.n_people + n_people, f.notes
        if f.follows == "drawn":
            return notes
        if self._none_known(closing, f) and so_far >= ENOUGH_TO_TELL and n_people:
            largest = closing.largest / self._rule.count(len(self._rounds))
            facts = {"n_people": so_far, "largest": largest, "threshold": self._rule.threshold}
            notes = (Note("none_known", facts),)
        elif n_known >= ENOUGH_TO_TELL and np.isinf(f.thresholds).all():
            max_fdr = self._budget.max_fdr(len(self._rounds) + 1)
            facts = {"max_fdr": max_fdr, "good": plain(self._intake.good)}
            notes = (Note("none_worth_accepting", facts),)
        if notes and (notes != f.notes or not f.feasible):
            text = " ".join(map(note_text, notes))
            warnings.warn(text, LearningWarning, stacklevel=4)
        return notes

    def _fold_of(self, bits: NDArray[np.uint64]) -> NDArray[np.intp]:
        """Return the fold of ids, a function of them and of the seed only."""
        keyed = keyed_bits(bits, round_key(self._seed, 0, _FOLD))
        return (keyed >= _SECOND).astype(np.intp)

    def _record_round(
        self,
        closing: Closing,
        f: Learned,
        policy: LoggedPolicy,
        record: Round,
        unlike: tuple[Unlike, ...],
    ) -> None:
        """Record the round; until here only f_t was learned, and no record has changed."""
        tally = closing.tally
        self._open_policy = None
        self._deployed = f
        if self._recent is not None:
            assert closing.recent is not None
            self._recent.add(closing.recent)
        accepted = closing.accepted()
        bits, X, group, part = (accepted.pop(name) for name in ("bits", "X", "group", "part"))
        everyone = np.ones(bits.size, np.bool_)
        columns = {"X": X, "group": group, "part": part, "columns": accepted}
        self._people.record(bits, everyone, record.round, **columns)
        rejected = np.concatenate(tally.rejected)
        self._people.record(rejected, np.zeros(rejected.size, np.bool_), record.round)
        self._log.append(policy, merge=self._rule.needs == "acceptance")
        self._intake.remember(tally.sensitive, tally.largest_id, tally.counts, unlike)
        self._count_heads(tally.heads)
        self._rounds.append(record)
        self._carried = record.carried

    def _score(self, X: Any, sensitive_features: Any, f: Learned) -> tuple[Any, NDArray[np.intp]]:
        needed = bool(np.any(f.thresholds != f.thresholds[0])) or f.likelihood.reads_group
        features, group = self._intake.for_scoring(self, X, sensitive_features, needed)
        return np.asarray(f.likelihood.score(features, group), dtype=np.float64), group

    def _read_for(
        self, f: Learned, X: Any, sensitive_features: Any
    ) -> tuple[Any, NDArray[np.intp]]:
        """Return features and groups as a likelihood reads them."""
        needed = f.likelihood.reads_group
        features, group = self._intake.for_scoring(self, X, sensitive_features, needed)
        return features, group

    @property
    def bound_(self) -> float:
        """α of the budget, known before ``fit``, too."""
        return self._budget.alpha

    @property
    def _budget(self) -> FdrBudget:
        return FdrBudget() if self.budget is None else self.budget

    @property
    def _rule(self) -> CoverageRule:
        return SummedAcceptance() if self.coverage is None else self.coverage

    @property
    def _strategy(self) -> Strategy:
        return self._allowed(as_strategy(self.strategy).for_columns(self._intake.known_columns))


@dataclass(eq=False)
class Closing:
    """A round whose applicants are added piece by piece.

    Attributes
    ----------
    tally
        What is counted whatever the method.
    n_exploited, n_candidates, at_most, n_drawn
        How many are accepted in the exploit region, may be explored, can be drawn, and were drawn.
    n_known, n_exploit_region
        How many are in the exploit region, without and with those whom the lender accepts there.
    barred, why
        How many may not be explored, by group and by reason.
    n_incumbent, n_barred
        As in ``Round``.
    largest
        The largest coverage, while nobody is known.
    logged
        The policy as it is logged after a draw of fixed size; None before it, and for coins.
    recent
        Applicants by whom the coins of later rounds are chosen; None without coins.
    """

    tally: RoundCounts
    n_exploited: int = 0
    n_candidates: int = 0
    at_most: int = 0
    n_drawn: int = 0
    n_known: int = 0
    n_exploit_region: int = 0
    barred: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))
    why: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))
    n_incumbent: int | None = None
    n_barred: int = 0
    largest: float = 0.0
    logged: LoggedPolicy | None = None
    recent: Batch | None = None
    _accepted: list[dict[str, Any]] = field(default_factory=list)

    def add_regions(self, regions: Regions) -> None:
        """Count the regions of some applicants."""
        candidates = regions.candidates
        self.n_exploited += regions.n_exploited
        self.n_candidates += regions.n_candidates
        self.at_most += candidates.at_most
        self.n_known += int(np.count_nonzero(regions.exploit))
        self.barred = _added(self.barred, candidates.barred)
        self.why = _added(self.why, candidates.why)

    def add(self, batch: Batch, decided: Decisions, fold: NDArray[np.intp]) -> None:
        """Add decisions on some applicants, in the order of the bits of their ids."""
        self.n_exploit_region += int(np.count_nonzero(decided.exploit))
        if batch.incumbent is not None:
            self.n_incumbent = (self.n_incumbent or 0) + int(batch.incumbent.sum())
        self.n_barred += 0 if batch.barred is None else int(batch.barred.sum())
        columns = {
            "bits": batch.bits,
            "group": batch.for_fit().group,
            "part": fold,
            "explored": decided.explored,
        }
        columns |= {} if batch.incumbent is None else {"incumbent": batch.incumbent}
        own = {name: values[decided.accepted] for name, values in columns.items()}
        X = take(batch.X, np.flatnonzero(decided.accepted))
        self._accepted.append(own | {"X": X})
        self.tally.add(batch, decided)

    def keep_recent(self, batch: Batch, key: np.uint64) -> None:
        """Choose applicants for the coins of later rounds."""
        self.recent = chosen(batch if self.recent is None else together(self.recent, batch), key)

    def accepted(self) -> dict[str, Any]:
        """Return features and columns of all accepted applicants."""
        first, *_ = self._accepted
        return {name: concat([some[name] for some in self._accepted]) for name in first}


def _added(one: NDArray[np.int64], two: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a sum of counts of which one list may be longer."""
    size = max(one.size, two.size)
    return np.pad(one, (0, size - one.size)) + np.pad(two, (0, size - two.size))
