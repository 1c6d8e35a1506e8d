"""Base class of the baselines: reading applicants, keyed coins, and a store of applicants.

A baseline says how it starts from a history (``_start``), what it learns when outcomes have come
(``_learn``) and with which probability its policy accepts an applicant (``_probabilities``). The
base class does everything else. A baseline learns from ``self._labelled()``, which has no rejected
applicants.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from fairchance.core.decisions import Decisions
from fairchance.core.sampling import coin_flips
from fairchance.errors import InputError
from fairchance.people.ids import id_bits, keyed_bits, round_key, seed_of
from fairchance.people.intake import Batch, History, Intake
from fairchance.people.store import PeopleStore

__all__ = [
    "CODE",
    "ICML",
    "OURS",
    "PAPER",
    "RELEASED",
    "Baseline",
    "Decided",
    "Floats",
    "Labelled",
    "Sources",
    "Unlabelled",
    "beyond_group",
]

Floats = NDArray[np.float64]

# Where the value of a parameter comes from.
PAPER, CODE = "its authors' paper", "its authors' code"
ICML = "the paper implemented here"
RELEASED = f"released code of {ICML}"
OURS = "ours"
Sources = dict[str, dict[str, tuple[str, ...]]]

_COIN = 5  # purpose of a round's randomness


@dataclass(frozen=True)
class Labelled:
    """Accepted applicants with known outcomes, ordered by round and then by id.

    Attributes
    ----------
    X, group
        Features, and codes of groups.
    outcome
        1 good, 0 bad.
    propensity
        The probability with which each was accepted; NaN if it is not known, as for the
        history.
    round
        The round of the decision, 0 for the history.
    """

    X: Floats
    group: NDArray[np.intp]
    outcome: NDArray[np.int8]
    propensity: Floats
    round: NDArray[np.int32]

    def __len__(self) -> int:
        return int(self.outcome.size)

    def own(self) -> Labelled:
        """Return those of our own rounds, without the history."""
        return self.of(self.round > 0)

    def of(self, rows: NDArray[Any]) -> Labelled:
        """Return some of the rows."""
        columns = (self.X, self.group, self.outcome, self.propensity, self.round)
        return Labelled(*(column[rows] for column in columns))


@dataclass(frozen=True)
class Unlabelled:
    """Features and groups of applicants without outcomes."""

    X: Floats
    group: NDArray[np.intp]
    round: NDArray[np.int32]

    def __len__(self) -> int:
        return int(self.group.size)


def beyond_group(X: Floats, group: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Return which features say more than the group does: those that vary within a group.

    Examples
    --------
    >>> X = np.array([[0.0, 3.0], [0.0, 4.0], [1.0, 3.0]])
    >>> beyond_group(X, np.array([0, 0, 1])).tolist()
    [False, True]
    """
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    most, least = (f.reduceat(X[order], starts, axis=0) for f in (np.maximum, np.minimum))
    return np.asarray((most > least).any(axis=0))


@dataclass(frozen=True)
class Decided:
    """Decisions of a baseline on a batch, in the order of its rows.

    Attributes
    ----------
    accepted
        Which applicants are accepted.
    propensity
        The exact probability of acceptance, or NaN if it is not known.
    score
        The score that applicants are ranked by.
    columns
        Values of the further columns that the method keeps (``Baseline._extra_columns``).
    """

    accepted: NDArray[np.bool_]
    propensity: Floats
    score: Floats
    columns: dict[str, NDArray[Any]] = field(default_factory=dict)


@dataclass(eq=False, repr=False)
class Baseline(BaseEstimator, ABC):  # type: ignore[misc]
    """Base of the methods to compare with.

    A subclass has ``_start``, ``_learn`` and ``_probabilities``. Its fields are its parameters: a
    dataclass has the ``__init__`` that scikit-learn wants. ``settings`` names the ways in which a
    method with a cost or a threshold is run: as published, and aligned with the break-even point.

    Parameters
    ----------
    group_as_feature
        Append the group to the features.
    pos_label
        Label of the good outcome; None if outcomes are 0 and 1, False and True, or −1 and 1.
    random_state
        Seed.

    Attributes
    ----------
    propensity_known
        Whether ``Decisions.propensity`` is exact; where not, it is NaN for those it is not known
        for.
    reads_group
        Whether decisions look at the group, so that it must be given.
    assumption
        What must hold for the method to be right, in one sentence; empty if nothing beyond what
        every method here needs.
    settings
        Parameters by the name of the setting.
    sources
        For a setting, the parameters that have their value from each source; all others are ours.
        Aligned settings have the sources of the published one, apart from the cost.
    """

    propensity_known: ClassVar[bool] = True
    reads_group: ClassVar[bool] = False
    assumption: ClassVar[str] = ""
    settings: ClassVar[dict[str, dict[str, Any]]] = {}
    # Further columns of the store, with their defaults; ``_decide`` gives their values.
    _extra_columns: ClassVar[dict[str, Any]] = {}
    sources: ClassVar[Sources] = {}
    _encode: ClassVar[str] = "this method takes numbers only, so encode them before"

    _: KW_ONLY
    group_as_feature: bool = False
    pos_label: Any = None
    random_state: Any = None

    @classmethod
    def setting(cls, name: str, **options: Any) -> Self:
        """Return the method with the parameters of a named setting and further options."""
        if name not in cls.settings:
            raise InputError(
                f"{cls.__name__} has the settings {', '.join(cls.settings) or 'none'}, "
                f"got {name!r}; name one of them."
            )
        return cls(**cls.settings[name] | options)

    @classmethod
    def source_of(cls, setting: str | None, parameter: str) -> str:
        """Return where a parameter of a setting has its value from.

        Examples
        --------
        >>> from fairchance_lab.baselines.yang import BoundedExploration
        >>> BoundedExploration.source_of("aligned", "min_outcomes")
        "its authors' code"
        """
        listed = cls.sources.get(setting or "", cls.sources.get("published", {}))
        return next((source for source, names in listed.items() if parameter in names), OURS)

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        accepted: Any = None,
        sensitive_features: Any = None,
        ids: Any = None,
    ) -> Self:
        """Start from a history.

        Parameters
        ----------
        X
            Features of all past applicants.
        y
            Outcomes, read only for accepted applicants.
        accepted
            Which applicants were accepted; None means all.
        sensitive_features
            Groups.
        ids
            Names of the applications.
        """
        fresh = copy.copy(self)  # if something is wrong with a history, what was known is kept
        fresh._begin(X, y, accepted, sensitive_features, ids)
        self.__dict__.clear()
        self.__dict__.update(fresh.__dict__)
        return self

    def _begin(self, X: Any, y: Any, accepted: Any, sensitive_features: Any, ids: Any) -> None:
        self._intake = Intake(
            raw=False,
            allow_missing=False,
            group_as_feature=self.group_as_feature,
            pos_label=self.pos_label,
        )
        history = self._intake.read_history(self, X, y, accepted, sensitive_features, ids)
        self.classes_ = self._intake.classes
        self.groups_ = self._intake.groups
        self._seed = seed_of(self.random_state)
        self._round = 0
        self._news = False
        self._store = PeopleStore(
            columns={"propensity": np.nan, **self._extra_columns}, keep_rejected=True
        )
        self._record(history, history.accepted, {}, history.outcome)
        self._intake.passed(history)
        self._start(history)

    def decide(self, X: Any, *, sensitive_features: Any = None, ids: Any = None) -> Decisions:
        """Decide a batch, after learning from outcomes that have come since the last one."""
        check_is_fitted(self, "_store")
        batch = self._intake.read_batch(self, X, ids=ids, sensitive_features=sensitive_features)
        self._store.check_new(batch.ids, batch.bits)
        if self._news:
            self._learn()
            self._news = False
        self._round += 1
        try:
            verdict = self._decide(batch)
        except BaseException:
            self._round -= 1
            raise
        p = verdict.propensity
        self._record(batch, verdict.accepted, {"propensity": p, **verdict.columns})
        self._intake.passed(batch)
        return Decisions(
            batch.ids,
            verdict.accepted,
            (p == 0) | (p == 1),
            verdict.score,
            p,
            self._round,
            batch.backend,
        )

    def observe(self, ids: Any, outcomes: Any) -> Self:
        """Record outcomes of accepted applicants, in any order and in parts, any time later."""
        return self._take_in(ids, outcomes, correcting=False)

    def correct(self, ids: Any, outcomes: Any) -> Self:
        """Replace recorded outcomes that turned out to be wrong."""
        return self._take_in(ids, outcomes, correcting=True)

    def acceptance_probability(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """Return the probability that the policy of the last round accepts each applicant."""
        check_is_fitted(self, "_store")
        self._intake.check_good()
        return self._probabilities(self._people(X, sensitive_features))

    def accepts(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.bool_]:
        """Return which applicants the last policy accepts with probability 1/2 or more."""
        p = self.acceptance_probability(X, sensitive_features=sensitive_features)
        return np.asarray(p >= 0.5)

    @property
    def n_outcomes_(self) -> int:
        """Number of outcomes known, those of the history included."""
        check_is_fitted(self, "_store")
        return len(self._labelled())

    # Each method implements these.

    @abstractmethod
    def _start(self, history: History) -> None:
        """Check the parameters and learn from the history."""

    @abstractmethod
    def _learn(self) -> None:
        """Learn again: outcomes have come since the last round."""

    @abstractmethod
    def _probabilities(self, people: Batch) -> Floats:
        """Return the probability with which the policy in use accepts each, and change nothing."""

    def _scores(self, people: Batch) -> Floats:
        """Return what people are compared by; their probability of acceptance unless overridden."""
        return self._probabilities(people)

    def _decide(self, batch: Batch) -> Decided:
        """Decide by one coin per applicant; methods with dependent decisions override this."""
        p = self._probabilities(batch)
        return Decided(coin_flips(p, self._bits(batch)), p, self._scores(batch))

    # Methods use these.

    def _bits(self, batch: Batch, purpose: int = _COIN) -> NDArray[np.uint64]:
        """Return each person's random bits of this round, a function of seed, round and id."""
        return keyed_bits(batch.bits, round_key(self._seed, self._round, purpose))

    def _rng(self, purpose: int = 0) -> np.random.Generator:
        """Return the generator of this round's fits, the same for the same seed and round."""
        return np.random.default_rng([self._seed, self._round, purpose])

    def _labelled(self) -> Labelled:
        """Return the accepted applicants with known outcomes, including the history."""
        rows = self._store.parts[0]
        known = rows.known_outcomes()
        columns = (rows[name][known] for name in ("group", "outcome", "propensity", "round"))
        return Labelled(rows.X[known], *columns)

    def _rejected(self) -> Unlabelled:
        """Return the rejected applicants, including the history."""
        rows = self._store.rejected
        if rows is None:
            raise AssertionError("baselines keep rejected applicants")
        return Unlabelled(rows.X, rows["group"], rows["round"])

    def _all_applicants(self) -> Unlabelled:
        """Return all applicants decided on so far, without outcomes."""
        accepted, rejected = self._store.parts[0], self._rejected()
        return Unlabelled(
            np.concatenate([accepted.X, rejected.X]),
            np.concatenate([accepted["group"], rejected.group]),
            np.concatenate([accepted["round"], rejected.round]),
        )

    @property
    def _n_groups(self) -> int:
        return self._intake.n_groups

    def _record(
        self,
        batch: Batch,
        accepted: NDArray[np.bool_],
        columns: dict[str, NDArray[Any]],
        outcome: NDArray[np.int8] | None = None,
    ) -> None:
        self._store.record(
            batch.bits,
            accepted,
            self._round,
            X=np.asarray(batch.X, dtype=np.float64),
            group=batch.group,
            outcome=outcome,
            columns=columns,
        )

    def _people(self, X: Any, sensitive_features: Any) -> Batch:
        features, group = self._intake.for_scoring(self, X, sensitive_features, self.reads_group)
        n = group.size
        return Batch(features, group, np.arange(n), np.arange(n, dtype=np.uint64), "numpy")

    def _take_in(self, ids: Any, outcomes: Any, *, correcting: bool) -> Self:
        check_is_fitted(self, "_store")
        names = self._intake.read_ids(ids)
        if names.size:
            outcome = self._intake.read_outcomes(outcomes, names.shape[0])
            if len(self._store.observe(names, id_bits(names), outcome, correcting=correcting)):
                self._news = True
        return self
