"""Decisions with a certificate: the method we recommend.

Algorithm 1 keeps an estimate of mistakes under α; this keeps the mistakes there. With probability
at least 1 − δ over the whole run, every round marked certified deploys a policy whose false
discovery rate in the population that applies is at most α, whatever the history was like and
however good the model. Rounds before the first certificate are pilots, without a promise: small at
first, wider while outcomes look good, braked where they do not.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from secondlook.core.decisions import CertifiedRound, Decisions
from secondlook.core.noise import OutcomeNoise
from secondlook.core.sampling import coin_flips
from secondlook.core.utility import Utility
from secondlook.errors import InputError, LearningWarning
from secondlook.learners.wrap import check_keeps_nobody
from secondlook.methods.certified.answers import CertifiedAnswers
from secondlook.methods.certified.engine import Choice, Engine
from secondlook.methods.certified.learned_rankings import learn_ranking, missing_words
from secondlook.methods.certified.own_rows import OwnRows
from secondlook.methods.certified.past_people import PastPeople
from secondlook.methods.certified.places import (
    HISTORY,
    REJECTED,
    check_accepted,
    check_new,
    rows_by_engine,
)
from secondlook.methods.certified.promises import FIXED, coin_strategy, promised_rules
from secondlook.methods.certified.records import (
    begun_again,
    certified_record,
    given_up_words,
    n_tested,
)
from secondlook.methods.certified.settings import check_certified_settings, check_cold_start
from secondlook.methods.deployed import DeployedRung
from secondlook.methods.estimator import allows_missing, check_unchanged
from secondlook.people.ids import IdIndex, id_bits, keyed_bits, round_key
from secondlook.people.intake import Batch, Intake
from secondlook.people.likelihoods import ConstantLikelihood, Likelihood
from secondlook.people.store import NEVER, check_known

__all__ = ["CertifiedClassifier"]

Floats = NDArray[np.float64]
_COIN = 4  # purpose of a round's randomness
_REFERENCE_ROWS = 50_000  # people kept to rank others among


class CertifiedClassifier(CertifiedAnswers):
    """Decide batches so that certified rounds keep the bound on mistakes, with confidence 1 − δ.

    One caller at a time: rounds follow one another, so calls from several threads need a lock.

    Parameters
    ----------
    alpha
        α, the bound on the false discovery rate, in (0, 1).
    delta
        δ: the probability that any certified round of the run breaks the bound is at most this.
    utility
        What decisions are worth; it chooses among certified policies. None means ``Accuracy()``.
    learner
        Any scikit-learn classifier with ``predict_proba``, which ranks people; None means a
        logistic model that also learns how the past selected people.
    horizon
        Rounds expected; None means not known. A wrong horizon costs power, never the promise.
    ranks
        ``"overall"``: people are ranked among everybody, whatever their group; ``"within_group"``:
        among their own group, so that all groups are accepted at about the same rate.
    certify
        ``"overall"``: one certificate for everybody; ``"per_group"``: each group has its own
        ladders, its own certificate and its part of δ, and a round is certified when all are.
    floor
        Chance of everybody to be accepted whatever their rank, on average, in [0, 0.1].
    strategy
        How that chance is spread over people: any of Algorithm 1's strategies, or a function of
        (X, score, group). It is frozen with each ladder. None means everybody alike. Limits
        (``risk.Limited``, but no exposure) hold for the soft edge too, with or without a floor.
    maturity
        Rounds that must have passed before a round enters the tests, complete or not. A correction
        of an outcome that was tested costs all certificates; one that comes earlier costs nothing.
    patience
        Rounds after which outcomes that have not come count as bad in the tests; None means that
        tests wait for them.
    noise
        How often outcomes are recorded wrongly: tests and estimates are corrected for it. None
        means never.
    monitor
        δ of the drift monitor: without drift the probability that it ever drops the certificates.
        0 means none.
    group_as_feature
        Append the group to the features.
    group_mode
        What groups may change. ``"aware"``: everything; ``"blind"``: the group of the person
        decided on changes nothing, those of labelled people only the ranking, through a constraint
        in the learner; ``"audit"``: no group changes any decision, groups are read, checked and
        counted.
    attributes
        Several columns of ``sensitive_features``. ``"crossed"``: each combination is a group;
        ``"side_by_side"``: the learner's constraint and counts go by each attribute, and all else
        that depends on groups by combination.
    pos_label
        Label of the good outcome; None means the larger of the two.
    random_state
        Seed of the coins.

    Attributes
    ----------
    classes_ : outcome labels.
    groups_ : group values.
    rounds_ : what happened in each round, a tuple of ``CertifiedRound``.
    deployed_ : what decided the last round, a tuple of ``DeployedRung``.

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

    # What to do about columns that are not numbers.
    _encode: ClassVar[str] = (
        "this classifier takes numbers only, whatever its learner, so encode them before, or use "
        "PartialFeedbackClassifier with a learner that is a Pipeline with an encoder as its first "
        "step"
    )

    def __init__(
        self,
        alpha: float = 0.15,
        delta: float = 0.1,
        utility: Utility | None = None,
        learner: Any = None,
        *,
        horizon: int | None = None,
        ranks: Literal["overall", "within_group"] = "overall",
        certify: Literal["overall", "per_group"] = "overall",
        floor: float = 0.0,
        strategy: Any = None,
        maturity: int = 0,
        patience: int | None = None,
        noise: OutcomeNoise | None = None,
        monitor: float = 0.05,
        group_as_feature: bool = False,
        group_mode: Literal["aware", "blind", "audit"] = "aware",
        attributes: Literal["crossed", "side_by_side"] = "crossed",
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.delta = delta
        self.utility = utility
        self.learner = learner
        self.horizon = horizon
        self.ranks = ranks
        self.certify = certify
        self.floor = floor
        self.strategy = strategy
        self.maturity = maturity
        self.patience = patience
        self.noise = noise
        self.monitor = monitor
        self.group_as_feature = group_as_feature
        self.group_mode = group_mode
        self.attributes = attributes
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
    ) -> CertifiedClassifier:
        """Start from a history of past decisions; it ranks people and certifies nothing.

        Parameters
        ----------
        X
            Features of everybody who applied.
        y
            Outcomes; read only where accepted. May be None if nobody was: then outcomes are 0 and
            1, and the first pilot accepts at random until enough of them are known.
        accepted
            Who was accepted; None means everybody.
        sensitive_features
            Group of each person; several columns are several protected attributes.
        ids
            Names of the applications, integers or strings; None means consecutive integers.
        """
        self._begin(X, y, accepted, sensitive_features, ids)
        return self

    def _start(self, X: Any, y: Any, accepted: Any, sensitive_features: Any, ids: Any) -> None:
        check_certified_settings(self)
        self._intake = Intake(
            raw=False,
            allow_missing=allows_missing(self.learner),
            group_as_feature=self.group_as_feature,
            pos_label=self.pos_label,
            needs_outcomes=False,
            group_mode=self.group_mode,
        )
        history = self._intake.read_history(self, X, y, accepted, sensitive_features, ids)
        self.classes_, self.groups_ = self._intake.classes, self._intake.groups
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._history = PastPeople.of(history.for_fit())
        self._learner = None if self.learner is None else self._prepared_learner()
        self._fitted = {name: getattr(self, name) for name in FIXED}
        self._start_counts()
        if not history.accepted.any():
            check_cold_start(self.strategy)
        missing = missing_words(history, self.learner)
        if missing:
            warnings.warn(missing, LearningWarning, stacklevel=3)
        self._index = IdIndex()
        place = np.where(history.accepted, HISTORY, REJECTED)
        self._index.add(history.bits, place.astype(np.int64))
        self._intake.passed(history)
        n_engines = self._intake.n_groups if self.certify == "per_group" else 1
        self._engines = [self._engine(n_engines) for _ in range(n_engines)]
        self._choices: list[Choice] = []
        self._reference = (history.X[:_REFERENCE_ROWS], history.group[:_REFERENCE_ROWS])
        self._reference_bits = history.bits[:_REFERENCE_ROWS]
        self._rounds: list[CertifiedRound] = []
        self._corrections = []
        self._likelihoods = [
            self._rank_people(z) or ConstantLikelihood(0.5) for z in range(n_engines)
        ]

    def _engine(self, n_engines: int) -> Engine:
        strategy = self._allowed(coin_strategy(self.strategy).for_columns(self._intake.names))
        rules = promised_rules(self, n_engines, strategy)
        return Engine(rules, OwnRows(self._history.X.shape[1]), self._intake.n_groups)

    def decide(self, X: Any, *, sensitive_features: Any = None, ids: Any = None) -> Decisions:
        """Decide a batch by independent coins, with probabilities that are logged.

        Parameters
        ----------
        X
            Features of the people who apply.
        sensitive_features
            Their groups; needed if ``fit`` got groups.
        ids
            Names of the applications, never used before; None means the next integers.
        """
        check_is_fitted(self)
        check_unchanged(self, self._fitted)
        batch = self._intake.read_batch(self, X, sensitive_features, ids)
        self._check_new(batch)
        t = len(self._rounds) // len(self._engines) + 1
        choices = []
        p, sure = np.empty(len(batch)), np.empty(len(batch), np.bool_)
        score, threshold = np.empty(len(batch)), np.empty(len(batch))
        for z in range(len(self._engines)):
            rows = self._rows_of(batch.group, z)
            choice = self._policy_of_round(t, z, rows.size)
            choices.append(choice)
            ladder = choice.ladder
            standing = ladder.standing(batch.X[rows], batch.group[rows])
            p[rows] = ladder.policy(standing, choice.rung)
            sure[rows] = standing.rank <= ladder.grid[choice.rung]
            score[rows] = ladder.ranking.score(batch.X[rows], batch.group[rows])
            threshold[rows] = ladder.ranking.cut(ladder.grid[choice.rung], batch.group[rows])
        bits = keyed_bits(batch.bits, round_key(self._seed, t, _COIN))
        accepted = coin_flips(p, bits)
        certified = all(choice.certified for choice in choices)
        self._record(batch, t, choices, p, accepted)
        self._choices = choices
        decided = batch.ids, accepted, sure, score, p, t, batch.backend, certified
        mode = self.group_mode
        return self._counted(batch, Decisions(*decided, group_mode=mode, threshold=threshold))

    def _policy_of_round(self, t: int, z: int, n_people: int) -> Choice:
        """Freeze what is due, and choose what one of the engines deploys."""
        engine, rank_people = self._engines[z], partial(self._rank_people, z)
        engine.freeze_if_due(t, self._reference_of(z), max(1, n_people), rank_people)
        return engine.choose()

    def _record(
        self, batch: Batch, t: int, choices: list[Choice], p: Floats, accepted: NDArray[np.bool_]
    ) -> None:
        place, n = np.full(len(batch), REJECTED, dtype=np.int64), len(self._engines)
        ready = []  # a strategy or a model may fail: all are asked before anything is written down
        for z, (engine, choice) in enumerate(zip(self._engines, choices, strict=True)):
            rows = self._rows_of(batch.group, z)
            X, group, taken = batch.X[rows], batch.group[rows], accepted[rows]
            name, mode = self._group_name(z), self.group_mode
            record = certified_record(t, engine, choice, X, group, taken, name, group_mode=mode)
            group = batch.for_fit().group[rows]
            entry = engine.entry(t, choice, X, group, p[rows], taken, batch.bits[rows])
            ready.append((engine, rows[taken], record, entry))
        for z, (engine, rows, record, entry) in enumerate(ready):
            self._rounds.append(record)
            place[rows] = engine.log(entry) * n + z
        self._index.add(batch.bits, place)
        self._intake.passed(batch)
        self._remember(batch)
        for engine in self._engines:
            engine.catch_up()  # patience may have run out

    def observe(self, ids: Any, outcomes: Any) -> CertifiedClassifier:
        """Take in outcomes of accepted people, in any order, in parts, many rounds late.

        Rounds enter the tests in their own order, each once all its outcomes are in.

        Parameters
        ----------
        ids
            Names of the applications.
        outcomes
            Their outcomes, in the labels of the history.
        """
        return self._take_in(ids, outcomes, correcting=False)

    def correct(self, ids: Any, outcomes: Any) -> CertifiedClassifier:
        """Replace recorded outcomes that turned out to be wrong.

        If one of them was used in a test, all certificates that may rest on it are dropped and
        testing begins again with the part of δ kept for that; a ``LearningWarning`` says so, in a
        pilot too.

        Parameters
        ----------
        ids
            Names of applications whose outcomes are recorded.
        outcomes
            What their outcomes really are.
        """
        return self._take_in(ids, outcomes, correcting=True)

    def withdraw(self, ids: Any) -> CertifiedClassifier:
        """Take note of accepted people whose outcome will never be known.

        A loan that was not taken up, or a decision that somebody overrode by hand. Leaving them out
        of a test would void it, so there they count as bad; nothing is learned from them.

        Parameters
        ----------
        ids
            Names of accepted applications without an outcome.
        """
        check_is_fitted(self)
        names = self._intake.read_ids(ids)
        return self._write(names, np.full(names.size, NEVER, np.int8), correcting=False)

    def forget(self, ids: Any) -> CertifiedClassifier:
        """Forget people for good: their features, groups, outcomes and names.

        Nothing is learned from them from now on, and nobody is ranked among them by ladders still
        to be frozen. Decisions, frozen ladders with their evidence, and counts stay. In rounds that
        are not in the tests yet, forgotten people who were accepted count as bad, whatever became
        of them: otherwise whom one forgets could make a certificate.

        Parameters
        ----------
        ids
            Names of applications, accepted or rejected, the history's too.
        """
        check_is_fitted(self)
        check_keeps_nobody(self.learner)
        names = self._intake.read_ids(ids)
        bits = id_bits(names)
        place = self._index.find(bits)
        check_known(names, place)
        stays = ~np.isin(self._reference_bits, bits)
        if not stays.any():
            raise InputError(
                f"forgetting {names.size} ids would leave nobody to rank others among; nobody was "
                f"forgotten, decide another batch first."
            )
        parts = zip(self._engines, rows_by_engine(place, len(self._engines)), strict=True)
        moved = [engine.forget(rows, bits) for engine, (_, rows) in parts]
        self._index.remove(bits, moved)
        self._history.forget(bits)
        X, group = self._reference
        self._reference = X[stays], group[stays]
        self._reference_bits = self._reference_bits[stays]
        self._forget_corrections(names)
        for engine in self._engines:
            engine.catch_up()  # nothing is waited for from them
        return self

    @property
    def deployed_(self) -> tuple[DeployedRung, ...]:
        """What decided the last round, one for each certificate; empty before any round."""
        check_is_fitted(self, "_rounds")
        if not self._choices:
            return ()
        parts = zip(self._choices, self._rounds[-len(self._engines) :], self._engines, strict=True)
        return tuple(
            DeployedRung(
                choice.ladder,
                choice.rung,
                choice.certified,
                record,
                engine.restarts,
                engine.stage_began,
                n_tested(engine),
            )
            for choice, record, engine in parts
        )

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
        place = self._index.find(id_bits(names))
        check_accepted(names, place)
        n = len(self._engines)
        parts = [*zip(self._engines, rows_by_engine(place, n), strict=True)]
        for engine, (mine, rows) in parts:
            engine.check_outcomes(names[mine], rows, outcome[mine], correcting=correcting)
        standing = self.deployed_ if correcting else ()
        before = np.empty(outcome.size, np.int8)
        for engine, (mine, rows) in parts:
            before[mine] = engine.rows["outcome"][rows]
            engine.take_in(rows, outcome[mine], correcting=correcting)
        if correcting:
            t, changed = len(self._rounds) // n, np.flatnonzero(before != outcome)
            self._remember_corrections(t, names[changed], before[changed], outcome[changed])
            lost = begun_again(standing, self.deployed_)
            if lost:
                warnings.warn(given_up_words(lost), LearningWarning, stacklevel=4)
        return self

    def _rank_people(self, z: int) -> Likelihood | None:
        """Learn who looks best to one of the engines; None if not both outcomes are known."""
        past = self._history if len(self._engines) == 1 else self._history.of_group(z)
        rows, n_groups = self._engines[z].rows, self._intake.n_groups
        likelihood = learn_ranking(past, rows, self._learner, n_groups)
        if self._rounds and likelihood is not None:
            self._likelihoods[z] = likelihood
        return likelihood

    def _reference_of(self, z: int) -> tuple[Any, NDArray[np.intp]]:
        X, group = self._reference
        rows = self._rows_of(group, z)
        return (X[rows], group[rows]) if rows.size else (X, group)

    def _remember(self, batch: Batch) -> None:
        """Keep people to rank others among, the newest of them if there are too many."""
        X, group = self._reference
        together = np.vstack([X, batch.X]), np.concatenate([group, batch.group])
        self._reference = together[0][-_REFERENCE_ROWS:], together[1][-_REFERENCE_ROWS:]
        bits = np.concatenate([self._reference_bits, batch.bits])
        self._reference_bits = bits[-_REFERENCE_ROWS:]

    def _group_name(self, z: int) -> Any:
        """Return the group that an engine is for; None for everybody."""
        if self.groups_ is None or len(self._engines) == 1:
            return None
        return self.groups_[z : z + 1].tolist()[0]

    def _check_new(self, batch: Batch) -> None:
        check_new(batch, self._index)
