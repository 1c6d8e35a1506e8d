"""Decisions with a certificate: the recommended method.

Algorithm 1 keeps an estimate of mistakes below α; this method keeps the mistakes there. With
probability at least 1 − δ over the whole run, every certified round deploys a policy whose false
discovery rate among the applicants is at most α, for any history and any model. Rounds before the
first certificate are pilots without a promise: small at first, wider while outcomes look good, and
narrower when they do not.
"""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from fairchance.core.decisions import CertifiedRound, ClosedRound, Decisions, Note
from fairchance.core.noise import OutcomeNoise
from fairchance.core.saved import saved
from fairchance.core.utility import Utility
from fairchance.core.versions import versions
from fairchance.errors import InputError, LearningWarning, UndecidedError
from fairchance.learners.ensemble import SelectionAwareEnsemble
from fairchance.learners.overlooked import Overlooked
from fairchance.learners.past_selection import PastReading, read_past
from fairchance.learners.wrap import check_keeps_nobody
from fairchance.methods.certified.engine import Engine
from fairchance.methods.certified.ladder import Ladder
from fairchance.methods.certified.policy import CertifiedPolicy, likelihood_of
from fairchance.methods.certified.ranking import PastApplicants, Ranking, learn_ranking
from fairchance.methods.certified.rounds import (
    ChosenPolicy,
    OpenRound,
    PreparedRound,
    Reference,
    SettledRound,
    merged_rounds,
)
from fairchance.methods.certified.rules import (
    FIXED,
    Rules,
    check_certified_settings,
    check_cold_start,
    coin_strategy,
)
from fairchance.methods.closing import (
    RoundCounts,
    RoundParts,
    check_follows,
    further_applications,
    pieces,
)
from fairchance.methods.estimator import (
    DecidingClassifier,
    allows_missing,
    check_expected,
    check_ramp,
    check_unchanged,
    fits_read_groups,
)
from fairchance.notebook import Records
from fairchance.people.columns import as_missing_values
from fairchance.people.ids import id_bits, ramp_key, round_key, seed_of
from fairchance.people.intake import (
    Batch,
    History,
    Intake,
    read_flags,
    read_persons,
    report_unlike,
)
from fairchance.people.likelihoods import ConstantLikelihood, Likelihood
from fairchance.people.likeness import Checks, Unlike
from fairchance.people.reasons import Scored
from fairchance.people.store import NEVER, NOT_TAKEN, ApplicantRows, PeopleStore
from fairchance.words.rounds import held_up, note_text, restart_cost

__all__ = [
    "AwaitedOutcomes",
    "CertifiedClassifier",
    "DeployedRung",
    "RestartedTests",
    "restarts_since",
]

Floats = NDArray[np.float64]
_COIN = 4  # purpose of a round's randomness
_REFERENCE_ROWS = 50_000  # reference applicants for rankings
_ROOM = 1.2  # times as many are kept before the oldest are dropped, as that is a copy of all


@dataclass(frozen=True, eq=False)
class DeployedRung:
    """The policy of the last round, for all applicants or one group.

    Attributes
    ----------
    ladder, rung, scale
        The frozen ranking with its policies, which of them, and the part of its acceptances.
    certified
        Whether it carried a promise.
    record
        The record of the round.
    restarts
        How often certificates have been dropped so far, also after the round.
    stage_began
        The round with which testing last began, 1 if it never began again. Ladders frozen before
        are out of use.
    n_tested
        Accepted applicants that the tests of now rest on.
    """

    ladder: Ladder
    rung: int
    scale: float
    certified: bool
    record: CertifiedRound
    restarts: int
    stage_began: int
    n_tested: int


@dataclass(frozen=True)
class AwaitedOutcomes:
    """Missing outcomes that tests wait for, since rounds enter the tests in their order.

    Attributes
    ----------
    group
        The group whose certificate is tested; None for all applicants.
    round
        The oldest round that is not in the tests.
    ids
        Its accepted applicants without an outcome.
    held_up
        Whether so few have kept all rounds out of the tests for so long that ``decide`` warns.
    """

    group: Any
    round: int
    ids: tuple[Any, ...]
    held_up: bool


@dataclass(frozen=True)
class RestartedTests:
    """A restart of testing, for all applicants or one group.

    Attributes
    ----------
    group
        The group whose certificate it is about; None for all applicants.
    round
        The round with which testing begins again.
    n_outcomes
        Number of outcomes in the evidence that is given up.
    """

    group: Any
    round: int
    n_outcomes: int


def restarts_since(
    before: Sequence[DeployedRung], after: Sequence[DeployedRung]
) -> tuple[RestartedTests, ...]:
    """Return which tests began again between two readings of ``deployed_``."""
    return tuple(
        RestartedTests(now.record.group, now.stage_began, then.n_tested)
        for then, now in zip(before, after, strict=True)
        if now.restarts > then.restarts
    )


@saved
class CertifiedClassifier(DecidingClassifier):
    """Decide batches so that certified rounds keep the bound on mistakes, with confidence 1 − δ.

    Rounds follow one another, so calls from several threads need a lock.

    Parameters
    ----------
    alpha
        α, the bound on the false discovery rate, in (0, 1).
    delta
        δ: the probability that any certified round of the run breaks the bound is at most this.
    utility
        Value of decisions; it chooses among certified policies. None means ``Accuracy()``.
    learner
        Any scikit-learn classifier with ``predict_proba``, which ranks applicants. It gets a table
        of numbers without names, in which text is coded, so a ``Pipeline`` can scale columns, but
        not select them by name. If its ``fit`` takes ``rejected`` it gets the features of the
        history's rejected applicants, and if it takes ``from_history``, which rows are of the
        history. None means
        ``SelectionAwareEnsemble``: a scorecard and boosted trees that also learn how the past
        selected applicants.
    past_selection
        What the past selected applicants on, for the default learner. ``"features"``: on what ``X``
        holds, as a score or a rule does. ``"outcome"``: on knowledge of outcomes beyond ``X``.
        ``"unknown"``: our own outcomes decide between the two. ``"automatic"``: the history is
        asked which of the two explains it better; ``past_reading_`` is its answer.
    horizon
        Expected number of rounds; None means unknown. A wrong horizon costs power, never the
        promise.
    ranks
        ``"overall"``: applicants are ranked among all others. ``"within_group"``: they are ranked
        within their own group, so that all groups are accepted at about the same rate.
    certify
        ``"overall"``: one certificate for all applicants. ``"per_group"``: each group has its own
        ladders, its own certificate and its part of δ, and a round is certified if all groups are.
    floor
        Mean chance of acceptance for every applicant, whatever the rank, in [0, 0.1]; with a ramp r
        it is r times this. Barred applicants have none. The default gives one applicant in 2,000 a
        chance who would have none otherwise, and costs one or two hundredths of the ceiling.
    handover
        ``"automatic"``: beside the lender's own decisions (``incumbent``), a certified policy that
        does not follow them takes over once it seems to earn more, or once outcomes show that the
        lender's policy breaks α. ``"by hand"``: not before ``hand_over`` is called.
    evidence
        ``"rounds"``: certificates rest on our own rounds only. ``"history"``: the history is
        tested too, on one more ladder. This assumes that it holds every applicant of its time,
        accepted or rejected, and that they come from the same population as those of the rounds.
    per_person
        M: the most applications of one person in a round that count as evidence, if the persons are
        known. A history that is evidence must have no more of one person.
    shock
        σ of a shock that the share of bad outcomes of all applicants of a round may have in common,
        such as .02 for two points; certificates allow for it. 0 means none.
    exploration_price
        What the bad applicants that a pilot accepts may cost in a round, in the utility's money,
        once no policy that keeps α is in sight: neither the model nor outcomes see one, or outcomes
        prove that the ranking has none. Such a pilot accepts a random part of the applicants that
        the smallest policy would accept; 0 leaves only the floor, until a new ranking gives hope.
        Beside the lender's own policy it is the price of the applicants that are explored. A lower
        price buys fewer outcomes, and so later rankings. None means one bad applicant in 200.
    strategy
        How that chance is spread over applicants: any strategy of Algorithm 1, or a function of
        (X, score, group). It is frozen with each ladder. None means the same chance for all. Limits
        (``Limited``, but no exposure) hold for the soft edge too, with or without a floor.
    maturity
        Rounds that must have passed before a round enters the tests, complete or not. Correcting an
        outcome that was tested costs all certificates; correcting it before costs nothing.
    patience
        Rounds after which missing outcomes count as bad in the tests. None means that tests wait
        for them: then one outcome that never arrives blocks all certificates, until the applicant
        is withdrawn. If that seems to happen, ``decide`` warns with a ``LearningWarning``.
    noise
        How often outcomes are recorded wrongly; tests and estimates are corrected for it. None
        means never.
    monitor
        δ of the drift monitor: the probability that it ever drops certificates without drift. 0
        means no monitor.
    validity
        V: evidence starts again every V rounds, and certificates lapse 2·V rounds after their
        evidence began. The promise is then about each such generation of certificates: with
        probability at least 1 − δ, none of it breaks the bound. None means that certificates do
        not lapse.
    group_as_feature
        Append the group to the features.
    group_mode
        What groups may change. ``"aware"``: everything. ``"blind"``: the group of an applicant does
        not change the decision on that applicant; groups of labelled applicants change only the
        ranking, through a constraint in the learner. ``"audit"``: no group changes any decision;
        groups are read, checked and counted.
    attributes
        How to treat several columns of ``sensitive_features``. ``"crossed"``: each combination is a
        group. ``"side_by_side"``: the learner's constraint and the counts use each attribute
        separately, and everything else that depends on groups uses combinations.
    missing_values
        Texts and numbers that mean that a feature is missing, such as ``"?"`` or ``[-1, "NA"]``,
        besides NaN and None.
    checks
        From which difference to the history on a batch is refused or reported; None means
        ``Checks()``.
    pos_label
        Label of the good outcome; None if outcomes are 0 and 1, False and True, or −1 and 1.
    random_state
        Seed of the coins.

    Attributes
    ----------
    classes_ : outcome labels.
    groups_ : group values.
    bound_ : α, the bound on mistakes; known before ``fit``, too.
    past_reading_ : how the history says it was selected, a ``PastReading``; None if not asked.
    rounds_ : the records of all rounds, a tuple of ``CertifiedRound``.
    deployed_ : the policies of the last round, a tuple of ``DeployedRung``.
    awaited_ : the outcomes that tests wait for, a tuple of ``AwaitedOutcomes``.
    open_policy_ : the policy of the round that is open, a ``CertifiedPolicy``; None if none is.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def people(n):
    ...     X = rng.normal(size=(n, 2))
    ...     return X, (rng.random(n) < 1 / (1 + np.exp(-2 - 3 * X[:, 0]))).astype(int)
    >>> X, good = people(1000)
    >>> clf = CertifiedClassifier(horizon=20, random_state=0)
    >>> clf = clf.fit(X, good, accepted=X[:, 0] > 0)
    >>> for _ in range(20):
    ...     X, good = people(1000)
    ...     batch = clf.decide(X)
    ...     clf = clf.observe(batch.ids[batch.accepted], good[batch.accepted])
    >>> clf.rounds_[0].status, clf.rounds_[-1].status, batch.certified
    ('pilot', 'certified', True)
    """

    @property
    def _encodes(self) -> bool:
        return True

    def __init__(
        self,
        alpha: float = 0.15,
        delta: float = 0.1,
        utility: Utility | None = None,
        learner: Any = None,
        *,
        past_selection: Literal["automatic", "features", "outcome", "unknown"] = "automatic",
        horizon: int | None = None,
        ranks: Literal["overall", "within_group"] = "overall",
        certify: Literal["overall", "per_group"] = "overall",
        floor: float = 0.0005,
        handover: Literal["automatic", "by hand"] = "automatic",
        evidence: Literal["rounds", "history"] = "rounds",
        per_person: int = 5,
        shock: float = 0.0,
        exploration_price: float | None = None,
        strategy: Any = None,
        maturity: int = 0,
        patience: int | None = None,
        noise: OutcomeNoise | None = None,
        monitor: float = 0.05,
        validity: int | None = None,
        group_as_feature: bool = False,
        group_mode: Literal["aware", "blind", "audit"] = "aware",
        attributes: Literal["crossed", "side_by_side"] = "crossed",
        missing_values: Any = None,
        checks: Checks | None = None,
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.delta = delta
        self.utility = utility
        self.learner = learner
        self.past_selection = past_selection
        self.horizon = horizon
        self.ranks = ranks
        self.certify = certify
        self.floor = floor
        self.handover = handover
        self.evidence = evidence
        self.per_person = per_person
        self.shock = shock
        self.exploration_price = exploration_price
        self.strategy = strategy
        self.maturity = maturity
        self.patience = patience
        self.noise = noise
        self.monitor = monitor
        self.validity = validity
        self.group_as_feature = group_as_feature
        self.group_mode = group_mode
        self.attributes = attributes
        self.missing_values = missing_values
        self.checks = checks
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
        persons: Any = None,
    ) -> CertifiedClassifier:
        """Start from a history of past decisions, which orders applicants.

        Parameters
        ----------
        X
            Features of all past applicants: an array of numbers, or a dataframe with numbers, text,
            categories, truth values and dates. Values may be missing.
        y
            Outcomes; read for accepted applicants only. May be None if none was accepted: then
            outcomes are 0 and 1, and the first pilot accepts at random until enough of them are
            known.
        accepted
            Which past applicants were accepted; None means all.
        not_taken
            Which accepted ones did not take the loan; their outcomes are not read. None means that
            all took it.
        sensitive_features
            Group of each applicant; several columns are several protected attributes.
        ids
            Ids of the applications, integers or strings; None means consecutive integers.
        persons
            Who applied, one value per application, as for ``decide``. None means that all
            applicants are different persons.
        """
        self._begin(X, y, accepted, not_taken, sensitive_features, ids, persons)
        return self

    def _start(
        self,
        X: Any,
        y: Any,
        accepted: Any,
        not_taken: Any,
        sensitive_features: Any,
        ids: Any,
        persons: Any,
    ) -> None:
        check_certified_settings(self)
        self._intake = Intake(
            raw=False,
            allow_missing=allows_missing(self.learner),
            group_as_feature=self.group_as_feature,
            pos_label=self.pos_label,
            needs_outcomes=False,
            group_mode=self.group_mode,
            encodes=self._encodes,
            missing_values=as_missing_values(self.missing_values),
            named_values=coin_strategy(self.strategy).named_values,
        )
        history = self._intake.read_history(
            self, X, y, accepted, sensitive_features, ids, not_taken=not_taken
        )
        self.classes_, self.groups_ = self._intake.classes, self._intake.groups
        self._seed = seed_of(self.random_state)
        self._history = self._past_applicants(history, persons)
        self.past_reading_ = self._read_past()
        self._learner = (
            self._default_learner() if self.learner is None else self._prepared_learner()
        )
        self._fitted = {name: getattr(self, name) for name in FIXED}
        self._start_counts()
        n_engines = self._intake.n_groups if self.certify == "per_group" else 1
        if self.evidence == "history" and history.accepted.all():
            raise InputError(
                "evidence='history' needs every applicant of its time, the rejected too, and this "
                "history has no rejected ones; say in accepted= who was accepted, add the "
                "rejected, or use evidence='rounds'."
            )
        columns = {"p": 0.0, "incumbent": False, "bits": np.uint64(0)}
        self._people = PeopleStore(n_engines, columns)
        self._people.record_history(history.bits, history.accepted)
        # An empty batch gives the store an empty table of features with the right columns.
        no_bits, none_accepted = np.empty(0, np.uint64), np.empty(0, np.bool_)
        self._people.record(no_bits, none_accepted, 0, X=self._history.X[:0])
        self._intake.passed(history)
        self._engines = [self._engine(n_engines, z) for z in range(n_engines)]
        self._choices: list[ChosenPolicy] = []
        # The policies of all rounds, by engine; n_people counts those of all groups.
        self._policies: list[list[SettledRound]] = [[] for _ in range(n_engines)]
        self._open_policy: CertifiedPolicy | None = None
        self._recent = ApplicantRows(
            {"round": 0, "group": np.intp(0), "bits": np.uint64(0), "incumbent": False}
        )
        some = slice(_REFERENCE_ROWS)
        self._remember(
            Reference(
                history.X[some], history.group[some], history.bits[some], history.accepted[some]
            )
        )
        self._rounds: list[CertifiedRound] = []
        self._corrections = []
        self._models = [self._learn(z) for z in range(n_engines)]
        if any(likelihood is None for likelihood, _ in self._models):
            check_cold_start(self.strategy)
        missing = _missing_message(history, self.learner)
        if missing:
            warnings.warn(missing, LearningWarning, stacklevel=3)

    def _past_applicants(self, history: History, persons: Any) -> PastApplicants:
        """Return the history as rankings learn from it, with the persons if they are known."""
        if persons is None:
            return PastApplicants(history.for_fit())
        names = read_persons(persons, len(history))
        most = int(np.unique(names, return_counts=True)[1].max())
        # Leaving out the others would count persons instead of applications.
        if self.evidence == "history" and most > self.per_person:
            raise InputError(
                f"a person has {most} applications in the history, and evidence='history' allows "
                f"for per_person={self.per_person}; set it to a number that nobody exceeds, or use "
                f"evidence='rounds'."
            )
        return PastApplicants(history.for_fit(), id_bits(names), self.per_person)

    def _read_past(self) -> PastReading | None:
        """Ask the history how it was selected, if the ranking depends on that and nobody says."""
        past = self._history
        asks = self.learner is None and self.past_selection == "automatic"
        if not asks or not len(past.rejected_X):
            return None
        # A past that overlooked a value has not selected the others by it.
        overlooked = Overlooked.of(past.X, past.rejected_X, None, self._intake.categorical)
        rejected = past.rejected_X[~overlooked.among(past.rejected_X)]
        return read_past(past.X, past.outcome, rejected, self._intake.categorical)

    def _default_learner(self) -> SelectionAwareEnsemble:
        said = "unknown" if self.past_selection == "automatic" else self.past_selection
        reading = self.past_reading_ or PastReading(said)
        return SelectionAwareEnsemble(
            self._intake.categorical, reading.selected_on, reading.leaning
        )

    def _engine(self, n_engines: int, z: int) -> Engine:
        strategy = self._allowed(
            coin_strategy(self.strategy).for_columns(self._intake.known_columns)
        )
        rules = Rules.of(self, n_engines, strategy)
        engine = Engine(rules, self._people.parts[z], self._intake.n_groups)
        engine.handed_over = self.handover == "automatic"
        return engine

    def decide(
        self,
        X: Any,
        *,
        sensitive_features: Any = None,
        ids: Any = None,
        incumbent: Any = None,
        barred: Any = None,
        persons: Any = None,
        ramp: float = 1.0,
        unlike_history: bool = False,
    ) -> Decisions:
        """Decide a batch by independent coins, with probabilities that are logged.

        With r = ``ramp``, the lender's own decision d and the policy π of the round, an applicant
        is accepted with probability (1 − r)·d + r·π.

        Parameters
        ----------
        X
            Features of the applicants.
        sensitive_features
            Their groups; needed if ``fit`` got groups.
        ids
            Ids of the applications, never used before; None means the next integers.
        incumbent
            d, 0 or 1: how the lender's own process decides on each applicant; None if there is
            none. It has to be known before our answer, and must not depend on it.
        barred
            Applicants who must be refused, by a rule that is known before; None means none.
        persons
            Who applied, one value per application: applications of a person in a batch depend on
            each other. None means that all applicants are different persons.
        ramp
            0: the lender's decision is carried out and ours is only recorded (shadow mode). 1: ours
            is carried out. Between: ours for this share of applicants.
        unlike_history
            Decide although columns differ much from the history; see ``Checks``.
        """
        check_is_fitted(self)
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
            persons=persons,
            key=ramp_key(self._seed),
        )
        ramp = check_ramp(ramp, batch.incumbent)
        self._check_new(batch)
        policy, opened = self._opening(len(batch), batch.incumbent is not None, ramp)
        decided = policy.decide_batch(batch)
        batch = self._compare_certain(batch, policy, decided, unlike_history=unlike_history)
        whole = replace(decided, applicants=batch)[np.argsort(batch.bits, kind="stable")]
        closing = _Closing(RoundCounts(batch.sensitive))
        for (piece,) in pieces(RoundParts.of([whole]), policy.round):
            self._add_piece(closing, opened, piece.applicants, piece)
        closing.tally.counts = batch.counts
        self._close(closing, opened, batch.unlike, knows_persons=persons is not None)
        return replace(decided, unlike=batch.unlike, applicants=None)

    def open_round(
        self, expected: int | None = None, *, incumbent: bool = False, ramp: float = 1.0
    ) -> CertifiedPolicy:
        """Choose the policy of the next round and fix its bets; nobody is decided on yet.

        Outcomes of earlier rounds may come while the round is open; they change the rounds after
        it.

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
        CertifiedPolicy
            What decides on the applicants, anywhere and in any pieces, until ``close_round``.
        """
        check_is_fitted(self)
        check_unchanged(self, self._fitted)
        self._check_not_open()
        self._intake.check_good()
        if expected is None:
            n = len(self._engines)
            last = sum(record.n_people for record in self._rounds[-n:])
            expected = last if self._rounds else min(1000, self._reference.bits.size)
        check_expected(expected)
        ramp = check_ramp(ramp, incumbent or None)
        policy, opened = self._opening(expected, incumbent, ramp)
        self._open_policy = policy
        for engine, one in zip(self._engines, opened, strict=True):
            engine.opened = one
        return policy

    def close_round(self, parts: Iterable[Decisions]) -> ClosedRound:
        """Take in the decisions of the open round and end it.

        Every applicant who was decided on has to be there, the rejected too: a choice of applicants
        to leave out could make a certificate. Columns that are unlike the history are reported in
        ``unlike`` of the answer; nothing is refused for them, since the decisions were made.

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
        check_is_fitted(self)
        policy = self._open_policy
        if policy is None:
            raise InputError("no round is open; open one with open_round.")
        given, closing = RoundParts.of(parts), _Closing(RoundCounts(self._intake.sensitive))
        opened = [engine.opened for engine in self._engines if engine.opened is not None]
        n_certain, expected = 0, 0.0
        for some in pieces(given, policy.round):
            batch, decided = self._decided_again(policy, some, closing.tally)
            certain = _count_certain(batch, policy, decided)
            n_certain, expected = n_certain + certain[0], expected + certain[1]
            self._add_piece(closing, opened, self._intake.counted(batch), decided)
        if not closing.prepared:  # nobody applied
            batch = self._nobody(policy)
            decided = policy.decide_batch(batch)
            self._add_piece(closing, opened, batch, decided)
        tally, unlike = closing.tally, tuple[Unlike, ...]()
        if tally.counts is not None:
            unlike = self._intake.likeness.compare(tally.counts, self._checks)
            tally.counts, more = self._intake.compare_certain(
                tally.counts, tally.n_people, n_certain, expected, self._checks
            )
            unlike += more
        knows = given.knows_persons or not tally.n_people
        self._close(closing, opened, unlike, knows_persons=knows)
        return tally.closed(decided, unlike)

    @property
    def policy_(self) -> CertifiedPolicy:
        """The policy that decided the last round."""
        self._check_decided()
        record = self._rounds[-1]
        beside = record.n_incumbent is not None
        return self._policy(record.round, self._choices, beside, self._choices[0].ramp)

    @property
    def open_policy_(self) -> CertifiedPolicy | None:
        """The policy of the round that is open; None if none is."""
        check_is_fitted(self, "_rounds")
        return self._open_policy

    def void_round(self, t: int) -> CertifiedClassifier:
        """Begin testing again, because an applicant is missing in a round.

        Its decisions stand. If it is evidence, or will be, all certificates are dropped and testing
        begins again, as after ``correct``: if only the round were left out, outcomes could choose
        which rounds count. Once for a round is enough.

        Parameters
        ----------
        t
            Number of a round that was closed.
        """
        check_is_fitted(self)
        if not 1 <= t <= self._n_rounds:
            raise InputError(f"round {t!r} is not a closed round; there are {self._n_rounds}.")
        before = self.deployed_
        for engine in self._engines:
            engine.void(t)
        self._warn_of_restarts(before)
        return self

    @property
    def _n_rounds(self) -> int:
        """Number of rounds that were closed."""
        return len(self._rounds) // len(self._engines)

    def _opening(
        self, expected: int, beside: bool, ramp: float
    ) -> tuple[CertifiedPolicy, list[OpenRound]]:
        """Freeze what is due, and return the policy of the next round with its bets."""
        self._warn_if_held_up()  # first, as warnings may be errors
        t, opened = self._n_rounds + 1, []
        for z, engine in enumerate(self._engines):
            share = self._rows_of(self._reference.group, z).size / self._reference.group.size
            n = max(1, round(share * expected))
            choice = self._policy_of_round(t, z, n, beside, ramp)
            opened.append(
                engine.open(
                    t,
                    choice,
                    beside=beside,
                    group=self._group_name(z),
                    group_mode=self.group_mode,
                    delta=self.delta,
                )
            )
        return self._policy(t, [one.policy for one in opened], beside, ramp), opened

    def _policy(
        self, t: int, choices: list[ChosenPolicy], beside: bool, ramp: float
    ) -> CertifiedPolicy:
        """Return the choices of a round as a value without evidence."""
        bare = (
            replace(choice, ladder=choice.ladder.untested(), notes=(), ramp=ramp)
            for choice in choices
        )
        return CertifiedPolicy(
            t,
            ramp,
            beside,
            tuple(bare),
            self._intake.reader(),
            round_key(self._seed, t, _COIN),
            ramp_key(self._seed),
            versions(),
        )

    def _decided_again(
        self, policy: CertifiedPolicy, parts: Sequence[Decisions], tally: RoundCounts
    ) -> tuple[Batch, Decisions]:
        """Return the applicants of some parts and the decisions on them, by the bits of ids."""
        batch = self._intake.join([part.applicants for part in parts], tally.sensitive)
        tally.check_new(batch)
        self._check_new(batch)
        again = policy.decide_batch(batch)
        order = np.argsort(np.concatenate([part.applicants.bits for part in parts]), kind="stable")
        check_follows(again, parts, order)
        return batch, again

    def _nobody(self, policy: CertifiedPolicy) -> Batch:
        """Return the batch of a round without applicants."""
        ids = np.empty(0, np.int64 if self._intake.id_kind == "i" else np.str_)
        return Batch(
            self._reference.X[:0],
            ids=ids,
            bits=np.empty(0, np.uint64),
            backend="numpy",
            sensitive=self._intake.sensitive,
            incumbent=np.empty(0, np.bool_) if policy.needs_incumbent else None,
            **self._intake.seen_by(np.empty(0, np.intp)),
        )

    def _compare_certain(
        self, batch: Batch, policy: CertifiedPolicy, decided: Decisions, *, unlike_history: bool
    ) -> Batch:
        """Compare how many applicants are accepted by score with how many were expected."""
        if batch.counts is None:
            return batch
        counts, unlike = self._intake.compare_certain(
            batch.counts, len(batch), *_count_certain(batch, policy, decided), self._checks
        )
        report_unlike(unlike, unlike_history)
        return replace(batch, counts=counts, unlike=(*batch.unlike, *unlike))

    def _check_new(self, batch: Batch) -> None:
        # Deciding again until the coins fall well would void the certificate.
        self._people.check_new(batch.ids, batch.bits)

    def _policy_of_round(
        self, t: int, z: int, n_people: int, beside: bool, ramp: float
    ) -> ChosenPolicy:
        """Freeze the rankings that are due, and return the policy of one of the engines."""
        engine, learn = self._engines[z], partial(self._newest_model, z, beside)
        past, reference = self._past_of(z), self._reference_of(z, beside)
        held_out = partial(self._held_out, past, reference.X, reference.group, beside)
        engine.freeze_if_due(t, reference, max(1, n_people), learn, held_out)
        if t == 1 and self._may_test_history(z, past):
            train, test = past.fold(0), past.fold(1)
            target = train.as_accepted_and_good()
            model, _ = self._fitted_to(target)
            if model is not None:
                known = self._held_out(target, target.X, target.group)
                engine.add_history(train, test, model, known, beside=beside)
        return engine.choose(beside=beside, ramp=ramp)

    def _may_test_history(self, z: int, past: PastApplicants) -> bool:
        """Return whether the past of an engine may be evidence, and is not yet."""
        if self.evidence != "history" or not past.is_complete:
            return False
        # A group with too few outcomes learns from all groups, which say nothing of its FDR.
        of_others = len(self._engines) > 1 and past is self._history
        known = any(ladder.from_history for ladder in self._engines[z].ladders)
        return not (of_others or known)  # known if the first round failed after it was tested

    def _add_piece(
        self, closing: _Closing, opened: list[OpenRound], batch: Batch, decided: Decisions
    ) -> None:
        """Take some applicants of a round into what is recorded when it closes.

        They are in the order of their bits. A strategy or a model may fail, so nothing is recorded.
        """
        further = None
        if batch.persons is not None:
            further = further_applications(batch.persons, self.per_person)
        barred, by_lender = batch.barred, batch.incumbent
        if further is not None:  # on no ladder do further applications of a person count
            barred = further if barred is None else barred | further
            by_lender = None if by_lender is None else by_lender & ~further
        part = np.zeros(len(batch), np.intp)
        prepared = []
        for z, (engine, one) in enumerate(zip(self._engines, opened, strict=True)):
            rows = self._rows_of(batch.group, z)
            X, group, some = batch.X[rows], batch.group[rows], decided[rows]
            barred_here = None if barred is None else barred[rows]
            at = one.policy.ladder.place(np.asarray(some.score, np.float64), X, group)
            ready = engine.prepare(
                one,
                X,
                group,
                at.beside(None if by_lender is None else by_lender[rows], barred_here),
                some,
                batch.bits[rows],
                barred_here,
                None if batch.persons is None else batch.persons[rows],
            )
            part[rows] = z
            prepared.append(ready)
        accepted, none = decided.accepted, np.zeros(len(batch), np.bool_)
        columns = {
            "part": part,
            "group": batch.for_fit().group,
            "p": decided.propensity,
            "incumbent": none if batch.incumbent is None else batch.incumbent,
            "bits": batch.bits,
        }
        own = {name: values[accepted] for name, values in columns.items()}
        closing.add(prepared, own | {"X": batch.X[accepted]})
        new = Reference(batch.X, batch.group, batch.bits, batch.incumbent)
        closing.newest = new.newest(closing.newest, _REFERENCE_ROWS)
        closing.tally.add(batch, decided)

    def _close(
        self,
        closing: _Closing,
        opened: list[OpenRound],
        unlike: tuple[Unlike, ...],
        *,
        knows_persons: bool,
    ) -> None:
        """Record a round whose applicants were taken in."""
        tally, t = closing.tally, opened[0].record.round
        prepared = []
        for engine, one in zip(self._engines, closing.prepared, strict=True):
            ready = engine.settle(one)
            record = replace(ready.record, persons=knows_persons and self._knew_persons)
            prepared.append(replace(ready, record=record))
        rows, rejected = closing.accepted(), np.concatenate(tally.rejected)
        bits, X, part, group = (rows.pop(name) for name in ("bits", "X", "part", "group"))
        place = self._people.record(
            bits,
            np.ones(bits.size, np.bool_),
            t,
            X=X,
            group=group,
            part=part,
            columns=rows | {"bits": bits},
            sort=False,
        )
        self._people.record(rejected, np.zeros(rejected.size, np.bool_), t)
        self._open_policy = None
        self._rounds += [ready.record for ready in prepared]
        self._choices = [one.policy for one in opened]
        for z, choice in enumerate(self._choices):
            played = SettledRound(t, choice, tally.n_people)
            self._policies[z] = merged_rounds([*self._policies[z], played])
        rows_by_engine = self._people.rows_by_part(place)
        for engine, ready, (_, rows_of) in zip(
            self._engines, prepared, rows_by_engine, strict=True
        ):
            engine.log(ready, rows_of)
        self._intake.remember(tally.sensitive, tally.largest_id, tally.counts, unlike)
        self._count_heads(tally.heads)
        assert closing.newest is not None
        self._remember(closing.newest)
        for engine in self._engines:
            engine.catch_up()  # the patience of an older round may have ended

    @property
    def _knew_persons(self) -> bool:
        """Whether everything that may be evidence so far came with its persons."""
        if self._rounds:
            return self._rounds[-1].persons
        return self.evidence == "rounds" or self._history.per_person is not None

    def observe(self, ids: Any, outcomes: Any) -> CertifiedClassifier:
        """Take in outcomes of accepted applicants, in any order, in parts, many rounds late.

        Rounds enter the tests in their own order, each once all its outcomes are known.

        Parameters
        ----------
        ids
            Ids of the applications.
        outcomes
            Their outcomes, in the labels of the history.
        """
        return self._take_in(ids, outcomes, correcting=False)

    def correct(self, ids: Any, outcomes: Any) -> CertifiedClassifier:
        """Replace recorded outcomes that turned out to be wrong.

        If one of them was used in a test, all certificates that may rest on it are dropped and
        testing begins again with the part of δ reserved for that. A ``LearningWarning`` reports
        this, also during a pilot.

        Parameters
        ----------
        ids
            Ids of applications whose outcomes are recorded.
        outcomes
            Their true outcomes.
        """
        return self._take_in(ids, outcomes, correcting=True)

    def withdraw(self, ids: Any) -> CertifiedClassifier:
        """Record that the outcomes of accepted applicants will never be known.

        An example is a decision that was overridden by hand. Leaving these applicants out of a
        test would void it, so they count as bad there; nothing is learned from them.

        Parameters
        ----------
        ids
            Ids of accepted applications without an outcome.
        """
        check_is_fitted(self)
        names = self._intake.read_ids(ids)
        return self._write(names, np.full(names.size, NEVER, np.int8), correcting=False)

    def not_taken(self, ids: Any) -> CertifiedClassifier:
        """Record that accepted applicants did not take the loan, so that no money was paid out.

        Mistakes are counted among loans taken. A loan must be called "not taken" before it can go
        bad: an applicant with an outcome is refused.

        Parameters
        ----------
        ids
            Ids of accepted applications without an outcome.
        """
        check_is_fitted(self)
        names = self._intake.read_ids(ids)
        return self._write(names, np.full(names.size, NOT_TAKEN, np.int8), correcting=False)

    def hand_over(self) -> CertifiedClassifier:
        """Let certified policies take over that do not follow the lender's own decisions."""
        check_is_fitted(self)
        for engine in self._engines:
            engine.handed_over = True
        return self

    def forget(self, ids: Any) -> CertifiedClassifier:
        """Forget applicants for good: their features, groups, outcomes and ids.

        Nothing is learned from them from now on, and ladders frozen later rank no applicant among
        them. Decisions, frozen ladders with their evidence, and counts stay. In rounds that are not
        in the tests yet, forgotten applicants who were accepted count as bad, whatever their
        outcome was: otherwise a choice of applicants to forget could make a certificate.

        Parameters
        ----------
        ids
            Ids of applications, accepted or rejected, including those of the history.
        """
        check_is_fitted(self)
        check_keeps_nobody(self.learner)
        names = self._intake.read_ids(ids)
        bits = id_bits(names)
        self._people.check_known(names, bits)
        reference = self._reference
        stays = ~np.isin(reference.bits, bits)  # checked before anything is deleted
        if not stays.any():
            raise InputError(
                f"forgetting {names.size} ids would leave no applicants to rank others among; "
                f"nothing was forgotten, decide another batch first."
            )
        for engine, moved in zip(self._engines, self._people.forget(names, bits), strict=True):
            engine.forget(moved, bits)
        self._history.forget(bits)
        self._recent.remove(np.flatnonzero(np.isin(self._recent["bits"], bits)))
        self._forget_corrections(names)
        if not self._rounds:
            self._models = [self._learn(z) for z in range(len(self._engines))]
        for engine in self._engines:
            engine.catch_up()  # tests no longer wait for the forgotten
        return self

    def accepts(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.bool_]:
        """Return which applicants the policy of the last round accepts for sure.

        Before the first round it accepts none.
        """
        check_is_fitted(self)
        features, group = self._intake.for_scoring(self, X, sensitive_features, needed=True)
        sure = np.zeros(len(group), np.bool_)
        for z, choice in enumerate(self._choices):
            rows = self._rows_of(group, z)
            at = choice.ladder.locate(features[rows], group[rows])
            sure[rows] = choice.sure(at)
        return sure

    def acceptance_probability(
        self, X: Any, *, sensitive_features: Any = None, incumbent: Any = None
    ) -> Floats:
        """Return the probability with which the policy of the last round accepts each applicant.

        Parameters
        ----------
        X, sensitive_features
            The applicants.
        incumbent
            The lender's own decisions, needed if the policy depends on them.
        """
        check_is_fitted(self)
        self._check_decided()
        features, group = self._intake.for_scoring(self, X, sensitive_features, needed=True)
        given = None if incumbent is None else read_flags(incumbent, len(group), "incumbent")
        if given is None and any(choice.uses_incumbent for choice in self._choices):
            raise InputError(
                "the policy of the last round depends on the lender's own decisions; pass "
                "incumbent=."
            )
        p = np.empty(len(group))
        for z, choice in enumerate(self._choices):
            rows = self._rows_of(group, z)
            at = choice.ladder.locate(features[rows], group[rows])
            p[rows] = choice.probability(at.beside(None if given is None else given[rows], None))
        return p

    def mean_acceptance(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """Return each applicant's mean probability of acceptance over the policies of all rounds.

        Σ_t (n_t / N)·π_t, so rounds count by their numbers of applicants; rounds before drift and
        corrections count too. The lender's own decisions are left out: an applicant that the lender
        accepts may have a larger probability.
        """
        check_is_fitted(self)
        self._check_decided()
        features, group = self._intake.for_scoring(self, X, sensitive_features, needed=True)
        total = np.zeros(len(group))
        for z in range(len(self._engines)):
            rows = self._rows_of(group, z)
            counts: defaultdict[Ladder, Counter[tuple[int, float]]] = defaultdict(Counter)
            for played in self._policies[z]:
                policy = played.policy
                counts[policy.ladder][policy.rung, policy.scale] += played.n_people
            for ladder, n_by_rung in counts.items():  # a model may be slow, so it scores once
                at = ladder.locate(features[rows], group[rows])
                for (rung, scale), n in n_by_rung.items():
                    total[rows] += n * ladder.policy(at, rung, scale)
        n_people = sum(played.n_people for played in self._policies[0])
        return np.minimum(total / max(1, n_people), 1.0)

    def never_explored(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.bool_]:
        """Return which applicants the limits of the strategy bar from exploration at present.

        They are accepted for sure or not at all. A rule bars an applicant for good; an applicant
        who looks too risky to the present model may not look so to a later one.
        """
        check_is_fitted(self)
        features, group = self._intake.for_scoring(self, X, sensitive_features, needed=True)
        barred = np.zeros(len(group), np.bool_)
        for z, engine in enumerate(self._engines):
            rows = self._rows_of(group, z)
            ranking = self._choices[z].ladder.ranking if self._choices else None
            model = self._likelihood(z) if ranking is None else ranking
            if rows.size:
                why = engine.rules.strategy.barred(
                    features[rows], np.asarray(model.score(features[rows], group[rows]))
                )
                barred[rows] = False if why is None else why != 0
        return barred

    def scored_by(self, X: Any, *, sensitive_features: Any = None) -> Scored:
        """Return applicants as the policy of the last round reads them, with the model."""
        check_is_fitted(self)
        self._check_decided()
        model = likelihood_of(tuple(self._choices))
        X, group = self._intake.for_scoring(self, X, sensitive_features, model.reads_group)
        return Scored(model, X, group, self._intake.places)

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """Return the newest model's likelihood of each outcome, in the order of ``classes_``."""
        check_is_fitted(self)
        several = len(self._engines) > 1
        needed = self.group_as_feature or several or self._likelihood(0).reads_group
        features, group = self._intake.for_scoring(self, X, sensitive_features, needed=needed)
        score = np.empty(len(group))
        for z in range(len(self._engines)):
            rows = self._rows_of(group, z)
            if rows.size:
                score[rows] = self._likelihood(z).score(features[rows], group[rows])
        return self._per_class(score)

    @property
    def bound_(self) -> float:
        """α, the bound on mistakes, known before ``fit``, too."""
        return self.alpha

    @property
    def rounds_(self) -> Records[CertifiedRound]:
        """The records of all rounds; with a certificate per group, one per round and group."""
        check_is_fitted(self, "_rounds")
        return Records(self._rounds)

    @property
    def deployed_(self) -> tuple[DeployedRung, ...]:
        """The policies of the last round, one per certificate; empty before the first round."""
        check_is_fitted(self, "_rounds")
        if not self._choices:
            return ()
        parts = zip(self._choices, self._rounds[-len(self._engines) :], self._engines, strict=True)
        return tuple(
            DeployedRung(
                choice.ladder,
                choice.rung,
                choice.scale,
                choice.certified,
                record,
                engine.stage.restarts,
                engine.stage.began,
                engine.n_tested,
            )
            for choice, record, engine in parts
        )

    @property
    def awaited_(self) -> tuple[AwaitedOutcomes, ...]:
        """The missing outcomes that tests wait for, at most one entry per certificate."""
        check_is_fitted(self, "_rounds")
        awaited = ((z, engine, *engine.awaited()) for z, engine in enumerate(self._engines))
        return tuple(
            AwaitedOutcomes(self._group_name(z), number, tuple(ids.tolist()), engine.is_held_up)
            for z, engine, number, ids in awaited
            if ids.size
        )

    def _warn_if_held_up(self) -> None:
        """Warn if tests have waited long for a few outcomes, which may never arrive."""
        waits = [awaited for awaited in self.awaited_ if awaited.held_up]
        if waits:
            warnings.warn(held_up(waits), LearningWarning, stacklevel=4)

    def _check_decided(self) -> None:
        if not self._choices:
            raise UndecidedError("no round has been decided yet, so no policy is deployed; decide.")

    def _take_in(self, ids: Any, outcomes: Any, *, correcting: bool) -> CertifiedClassifier:
        check_is_fitted(self)
        names = self._intake.read_ids(ids)
        if names.size == 0:
            return self
        outcome = self._intake.read_outcomes(outcomes, names.shape[0])
        return self._write(names, outcome, correcting=correcting)

    def _write(
        self, names: NDArray[Any], outcome: NDArray[np.int8], *, correcting: bool
    ) -> CertifiedClassifier:
        before = self.deployed_
        changes = self._people.observe(names, id_bits(names), outcome, correcting=correcting)
        rows_by_engine = self._people.rows_by_part(changes.place)
        for engine, (_, rows) in zip(self._engines, rows_by_engine, strict=True):
            engine.take_in(rows, correcting=correcting)
        if correcting:
            rows = names[changes.at]
            self._remember_corrections(self._n_rounds, rows, changes.before, changes.after)
            self._warn_of_restarts(before)
        return self

    def _warn_of_restarts(self, before: tuple[DeployedRung, ...]) -> None:
        """Warn if tests began again since ``deployed_`` was read."""
        restarts = restarts_since(before, self.deployed_)
        if restarts:
            warnings.warn(restart_cost(restarts), LearningWarning, stacklevel=5)

    def _likelihood(self, z: int) -> Likelihood:
        """Return the newest model of one of the engines."""
        known = self._history.outcome
        return self._models[z][0] or ConstantLikelihood((known.sum() + 1) / (known.size + 2))

    def _newest_model(self, z: int, beside: bool) -> tuple[Likelihood | None, tuple[Note, ...]]:
        """Return a model learned from everything known now, and what its fit warned of."""
        if self._rounds or beside:
            learned = self._learn(z, beside)
            if learned[0] is not None:
                self._models[z] = learned
            return learned
        return self._models[z]  # nothing is known that ``fit`` did not know

    def _held_out(
        self, past: PastApplicants, X: Floats, group: NDArray[np.intp], beside: bool = False
    ) -> tuple[Floats, NDArray[np.int8]]:
        """Return the ranks of past applicants by models that have not seen them, and outcomes.

        They are ranked among the applicants ``X`` with the groups ``group``.
        """
        ranks, outcomes = [np.empty(0)], [np.empty(0, np.int8)]
        for fold in (0, 1):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LearningWarning)
                model, _ = self._fitted_to(past.fold(1 - fold, split=1), beside=beside)
            if model is None:
                continue
            part, score = past.fold(fold, split=1), np.asarray(model.score(X, group), np.float64)
            ranking = Ranking.freeze(model, score, group, self._intake.n_groups, within=False)
            ranks.append(ranking.rank(ranking.score(part.X, part.group), part.group))
            outcomes.append(part.outcome)
        return np.concatenate(ranks), np.concatenate(outcomes)

    def _past_of(self, z: int) -> PastApplicants:
        return self._history if len(self._engines) == 1 else self._history.of_group(z)

    def _learn(self, z: int, beside: bool = False) -> tuple[Likelihood | None, tuple[Note, ...]]:
        """Learn the ranking of one of the engines; None unless both outcomes are known."""
        rows, known = self._engines[z].rows, self._engines[z].learnable_rows()
        if fits_read_groups(self):
            known = known[rows["group"][known] >= 0]
        own = rows.features(known), rows["outcome"][known], rows["group"][known]
        learned = self._fitted_to(self._past_of(z), own, beside=beside)
        said = [note_text(note) for note in learned[1] if note.code == "fit"]
        if said:
            warnings.warn(" ".join(said), LearningWarning, stacklevel=7)
        if self.past_reading_ is not None:
            note = self.past_reading_.note(beside=beside)
            learned = learned[0], (*learned[1], note)
        return learned

    def _fitted_to(
        self,
        past: PastApplicants,
        known: tuple[Floats, Any, Any] | None = None,
        *,
        beside: bool = False,
    ) -> tuple[Likelihood | None, tuple[Note, ...]]:
        """Return a model of the past and of our own ``known`` applicants, if any.

        ``beside`` the lender's own process, a model whose reading of the past is not stated
        imitates it: without its rejected applicants, those whom the lender rejects would look as
        good as the others, and exploring them would cost too much or too little.
        """
        X, outcome, group = known or (past.X[:0], past.outcome[:0], past.group[:0])
        return learn_ranking(
            past,
            X,
            outcome,
            group,
            learner=self._learner,
            n_groups=self._intake.n_groups,
            expansion=self._intake.expansion,
            name_value=self._intake.name_value,
            categorical=self._intake.categorical,
            imitates=beside and self.past_selection == "automatic",
        )

    def _rows_of(self, group: NDArray[np.intp], z: int) -> NDArray[np.intp]:
        """Return the rows of the applicants that belong to an engine."""
        return np.arange(group.size) if len(self._engines) == 1 else np.flatnonzero(group == z)

    @property
    def _reference(self) -> Reference:
        """The newest applicants, among whom new rankings rank others."""
        rows, newest = self._recent, slice(-_REFERENCE_ROWS, None)
        columns = (rows[name][newest] for name in ("group", "bits", "incumbent"))
        return Reference(rows.X[newest], *columns)

    def _reference_of(self, z: int, beside: bool) -> Reference:
        part = self._reference
        if len(self._engines) > 1:
            rows = self._rows_of(part.group, z)
            part = part[rows] if rows.size else part
        return part if beside else replace(part, incumbent=None)

    def _remember(self, new: Reference) -> None:
        """Add applicants to the reference of later rankings; drop the oldest."""
        rows = self._recent
        columns = {name: getattr(new, name) for name in ("group", "bits", "incumbent")}
        rows.append(len(new.X), new.X, columns)
        if len(rows) > _ROOM * _REFERENCE_ROWS:
            rows.remove(np.arange(len(rows) - _REFERENCE_ROWS))

    def _group_name(self, z: int) -> Any:
        """Return the group that an engine is for; None for all applicants."""
        if self.groups_ is None or len(self._engines) == 1:
            return None
        return self.groups_[z : z + 1].tolist()[0]


@dataclass(eq=False)
class _Closing:
    """A round whose applicants are taken in piece by piece.

    Attributes
    ----------
    tally
        What is counted of them.
    prepared
        What each engine will log; empty before the first piece.
    newest
        Applicants for the reference of later rankings, those with the largest bits.
    """

    tally: RoundCounts
    prepared: list[PreparedRound] = field(default_factory=list)
    newest: Reference | None = None
    _accepted: list[dict[str, NDArray[Any]]] = field(default_factory=list)

    def add(self, prepared: list[PreparedRound], accepted: dict[str, NDArray[Any]]) -> None:
        """Add what engines log of some applicants, and columns of the accepted among them."""
        if self.prepared:
            pairs = zip(self.prepared, prepared, strict=True)
            prepared = [before.join(more) for before, more in pairs]
        self.prepared = prepared
        self._accepted.append(accepted)

    def accepted(self) -> dict[str, NDArray[Any]]:
        """Return columns of all accepted applicants, in the order of the bits of their ids."""
        columns = {
            name: np.concatenate([some[name] for some in self._accepted])
            for name in self._accepted[0]
        }
        order = np.argsort(columns["bits"], kind="stable")
        return {name: values[order] for name, values in columns.items()}


def _count_certain(batch: Batch, policy: CertifiedPolicy, decided: Decisions) -> tuple[int, float]:
    """Return how many applicants are accepted by score, and how many were expected."""
    certain, expected = 0, 0.0
    for z, choice in enumerate(policy.choices):
        rows = policy.rows_of(batch.group, z)
        ladder, score = choice.ladder, np.asarray(decided.score[rows], np.float64)
        share = float(ladder.grid[choice.rung])
        # Of the reference, this share or less has such a rank.
        certain += int(np.count_nonzero(ladder.ranking.rank(score, batch.group[rows]) <= share))
        expected += share * rows.size
    return certain, expected


def _missing_message(history: History, learner: Any) -> str:
    """Return what a history cannot teach, and what is done instead; empty if nothing is missing."""
    if not history.accepted.any():
        return (
            "No applicant of the history was accepted, so no outcome is known; the pilot accepts "
            "at random until enough outcomes are known."
        )
    only = np.unique(history.outcome)
    if only.size == 1:
        kind = "good" if only[0] else "bad"
        known = f"All accepted applicants of the history are {kind}"
        if learner is None and only[0] == 1 and not history.accepted.all():
            return f"{known}; the first ranking compares them with the rejected."
        return (
            f"{known}, so no ranking can be learned from them; the pilot accepts at random "
            f"until outcomes of both kinds are known."
        )
    if learner is None and history.accepted.all():
        return (
            "No applicant of the history was rejected, so how the past selected applicants cannot "
            "be learned; the ranking assumes no selection."
        )
    return ""
