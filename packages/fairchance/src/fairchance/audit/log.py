"""Decisions with the probability of each acceptance, as data for every question of an audit."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairchance.audit.models import MOST_CATEGORIES, estimate_propensity, few_categories
from fairchance.core.groups import of_each_attribute
from fairchance.errors import InputError
from fairchance.frames import as_array, column, is_frame, is_missing, n_rows, plain, take
from fairchance.people.columns import TableColumns
from fairchance.people.intake import good_outcome

__all__ = ["DecisionLog", "GroupColumn"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Rows = NDArray[np.intp]

_FEATURE, _GROUP = "feature.", "group."  # how ``fairchance export`` begins the names of columns
_EXPORTED = {"erased", "drawn", "accepted", "propensity", "score", "override", "outcome", "round"}
_USUAL: dict[Any, set[Any]] = {"good": {"bad", "good"}, 1: {0, 1}}  # outcomes, by the good one
_RANGES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9)  # of probabilities that are compared
_SIGMAS, _ENOUGH = 6.0, 10.0  # how far acceptances may be off, given so much variance
_ROUNDING = 1e-9
_LARGEST_SHOCK = 0.2
_WITHDRAWN, _NOT_TAKEN = "withdrawn", "not_taken"  # outcomes of ledgers beside good and bad


@dataclass(frozen=True, eq=False)
class GroupColumn:
    """One protected attribute.

    Attributes
    ----------
    attribute
        Its name.
    names
        Its values, as text.
    codes
        The position of each applicant's value in ``names``; −1 if it is erased.
    """

    attribute: str
    names: tuple[str, ...]
    codes: Rows


class DecisionLog:
    """Decisions of one or several rounds, with the probability of each acceptance.

    A row is one application. Its probability is the one with which the policy of its round
    accepted it, whatever the draw then said; outcomes are those of accepted applicants. Nothing can
    be said without these probabilities, so a log that cannot be right is refused: an applicant
    accepted with probability 0 or rejected with probability 1, a probability that is missing or
    outside [0, 1], the outcome of a rejected applicant.

    If an incumbent decided on some applicants, with the ramp r and its decision d, the probability
    is p = (1 − r)·d + r·π, and nothing else about it is needed.

    ``Program.decision_log()`` makes a log from a ledger, ``DecisionLog.from_frame`` from any table,
    and ``fairchance.simulate.run.decision_log`` from a simulation.

    Parameters
    ----------
    accepted
        Which applicants were accepted.
    propensity
        The probability with which each one was accepted; None estimates it from features and
        groups.
    outcome
        The outcome of each accepted applicant; missing (NaN, None or empty text) for rejected ones
        and while it is pending. Outcomes are 0 and 1, False and True, ``"bad"`` and ``"good"``, or
        any two values of which ``pos_label`` is the good one. ``"withdrawn"`` and ``"not_taken"``
        are read as the columns of these names.
    X
        Features, an array or a frame; policies read them.
    sensitive_features
        Groups: one column or several.
    round
        The round of each decision; None means that all were made in one. Rounds are numbered
        from 1; round 0 is a history, with estimated probabilities.
    score
        The score recorded with each decision.
    ranking
        A number for the ranking that made the scores of each round; None means that one ranking
        made all of them. Only scores of one ranking can be compared over rounds.
    drawn
        Who was a candidate of a draw of fixed size, in which acceptances depend on each other;
        None means that every acceptance is an independent coin.
    mixture
        Each applicant's mean probability of acceptance over the policies of all rounds, weighted by
        their numbers of applicants; ``unknown`` uses it. It needs stored policies.
    withdrawn
        Accepted applicants with an outcome that will never be known.
    not_taken
        Accepted applicants who did not take the loan. Mistakes are counted among loans taken.
    incumbent
        The lender's own decision on each applicant, made before ours: 0 or 1, or missing in rounds
        without one.
    exploit
        Who was accepted for sure by the policy of the round; None means: with probability 1.
    overridden
        Those of them whom a person rejected: nothing became of the program's decision.
    erased
        Applicants with erased features and groups.
    features
        The columns of ``X`` that models may use; None means all. Rules may use any.
    estimated
        Whether the probabilities were estimated and not logged: then something that the log does
        not show may have decided, and no interval of this package is valid at all times.
    pos_label
        The good outcome.
    shock
        σ of a shock of the bad share that all applicants of a round may have in common; intervals
        allow for it.

    Attributes
    ----------
    groups
        A ``GroupColumn`` for each protected attribute.
    backend
        The kind of frame that answers come in.

    Examples
    --------
    >>> log = DecisionLog([True, True, False], [1.0, 0.25, 0.25], [1, 0, np.nan])
    >>> log
    DecisionLog(3 applicants in 1 round, 2 accepted, 2 outcomes)
    >>> DecisionLog([True], [0.0], [1])
    Traceback (most recent call last):
    ...
    fairchance.errors.InputError: row 0 was accepted with probability 0.0; find the one with which \
its policy accepted it.
    """

    def __init__(
        self,
        accepted: Any,
        propensity: Any,
        outcome: Any,
        *,
        X: Any = None,
        sensitive_features: Any = None,
        round: Any = None,
        score: Any = None,
        ranking: Any = None,
        drawn: Any = None,
        mixture: Any = None,
        withdrawn: Any = None,
        not_taken: Any = None,
        incumbent: Any = None,
        exploit: Any = None,
        overridden: Any = None,
        erased: Any = None,
        features: Iterable[str | int] | None = None,
        estimated: bool = False,
        pos_label: Any = None,
        shock: float = 0.0,
    ) -> None:
        values = as_array(accepted if propensity is None else propensity)
        n = values.shape[0] if values.ndim else 0
        if not n:
            raise InputError("the log has no decisions; pass at least one.")
        self.accepted: Bools = _truths(accepted, n, "accepted")
        self.erased = _truths(erased, n, "erased")
        if not 0 <= shock <= _LARGEST_SHOCK:
            raise InputError(f"shock must be from 0 to {_LARGEST_SHOCK}, got {shock!r}.")
        self.shock = float(shock)
        self.X = X
        if X is not None and n_rows(X) != n:
            raise InputError(f"X must have {n} rows, one per decision, got {n_rows(X)}.")
        self.features = None if features is None else tuple(features)
        self.sensitive_features = sensitive_features
        self.groups = _group_columns(sensitive_features, ~self.erased)
        self.estimated = bool(estimated) or propensity is None
        if propensity is None:
            propensity = self._estimated_propensity()
        self.propensity = _numbers(propensity, n, "propensity")
        rounded = np.clip(self.propensity, 0.0, 1.0)
        if np.abs(rounded - self.propensity).max() < _ROUNDING:
            self.propensity = rounded
        self._check_propensity()
        self.outcome, gone, left = _outcomes(outcome, n, pos_label)
        self.overridden = _truths(overridden, n, "overridden")
        self.withdrawn: Bools = gone | _truths(withdrawn, n, "withdrawn") | self.overridden
        self.not_taken: Bools = left | _truths(not_taken, n, "not_taken")
        self._check_outcomes()
        self.incumbent = None if incumbent is None else _incumbent(incumbent, n)
        self.exploit = _truths(self.propensity == 1 if exploit is None else exploit, n, "exploit")
        self.round: Rows = np.ones(n, np.intp)
        if round is not None:
            self.round = _rounds(round, n, first=0 if self.estimated else 1)
        self.score = None if score is None else _numbers(score, n, "score", missing=True)
        self.ranking = None if ranking is None else _numbers(ranking, n, "ranking").astype(np.intp)
        self.drawn = _truths(drawn, n, "drawn")
        if not self.estimated:
            self._check_fit()
        self.mixture = None if mixture is None else self._mixture(mixture)
        self.backend = (
            nw.from_native(X, eager_only=True).implementation.value if is_frame(X) else ("numpy")
        )

    @staticmethod
    def from_frame(
        frame: Any,
        *,
        accepted: str = "accepted",
        propensity: str | None = "propensity",
        outcome: str = "outcome",
        group: str | Sequence[str] | None = None,
        round: str | None = None,
        score: str | None = None,
        drawn: str | None = None,
        mixture: str | None = None,
        incumbent: str | None = None,
        features: Sequence[str] | None = None,
        estimated: bool = False,
        pos_label: Any = None,
        shock: float = 0.0,
    ) -> DecisionLog:
        """Read a log from the named columns of any frame.

        A table that ``fairchance export --features --groups`` wrote is read without any name.

        Parameters
        ----------
        frame
            A row for each decision.
        accepted, propensity, outcome, group, round, score, drawn, mixture, incumbent
            Names of columns. A table without probabilities has ``propensity`` None: then they are
            estimated from the columns in ``features`` and ``group``.
        features
            Columns that models may use. All further columns are kept for rules, but models use
            none of them unless they are named: a column such as the date of an outcome would tell
            what was not known at the decision.
        estimated, pos_label, shock
            As for ``DecisionLog``.
        """
        if not is_frame(frame):
            raise InputError(f"a log needs a frame with named columns, got {type(frame).__name__}.")
        table = nw.from_native(frame, eager_only=True)
        one = {"accepted": accepted, "propensity": propensity, "outcome": outcome}
        columns = {"round": round, "score": score, "drawn": drawn, "mixture": mixture}
        columns["incumbent"] = incumbent
        others = (group, features, pos_label, *columns.values())
        named = estimated or any(name != key for key, name in one.items())
        if {*table.columns} >= _EXPORTED and not named and others == (None,) * len(others):
            return _of_export(table, shock)
        groups = [group] if isinstance(group, str) else list(group or ())
        one |= columns
        names = [name for name in one.values() if name is not None]
        for name in (*names, *groups, *(features or ())):
            if name not in table.columns:
                listed = ", ".join(map(repr, table.columns))
                raise InputError(f"the log has no column {name!r}; it has {listed}: name these.")
        rest = [name for name in table.columns if name not in {*names, *groups}]
        return DecisionLog(
            X=nw.to_native(table.select(rest)) if rest else None,
            sensitive_features=nw.to_native(table.select(groups)) if groups else None,
            features=features or (),
            estimated=estimated,
            pos_label=pos_label,
            shock=shock,
            **{key: None if name is None else table[name] for key, name in one.items()},
        )

    def __len__(self) -> int:
        return int(self.accepted.size)

    def __repr__(self) -> str:
        n_rounds = np.unique(self.round).size
        return (
            f"DecisionLog({len(self):,} applicants in {n_rounds:,} round{'s' * (n_rounds != 1)}, "
            f"{int(self.accepted.sum()):,} accepted, {int(self.known.sum()):,} outcomes)"
        )

    @property
    def known(self) -> Bools:
        """Which applicants have a known outcome."""
        return ~np.isnan(self.outcome)

    @property
    def pending(self) -> Bools:
        """Which accepted applicants have an outcome still to come."""
        return np.asarray(self.taken & ~self.known & ~self.withdrawn)

    @property
    def taken(self) -> Bools:
        """T of accepted applicants: who took the loan, as far as is known; the others are 0."""
        return np.asarray(self.accepted & ~self.not_taken)

    @property
    def last_complete_round(self) -> int:
        """The last round before the first one with pending outcomes."""
        waiting = self.round[self.pending]
        return int(waiting.min() - 1 if waiting.size else self.round.max())

    @cached_property
    def table(self) -> tuple[TableColumns, Floats]:
        """How the columns that models use become numbers, and these numbers."""
        X = self.X
        if X is not None and self.features is not None:
            X = nw.to_native(nw.from_native(X, eager_only=True).select(list(self.features)))
        if X is None or n_columns(X) == 0:
            raise InputError(
                "the log has no features that a model may use; pass X, or name feature columns."
            )
        columns = TableColumns.of(np.asarray(X, np.float64) if isinstance(X, np.ndarray) else X)
        return columns, np.asarray(columns.codes(X), np.float64)

    @property
    def has_features(self) -> bool:
        """Whether models have columns to use."""
        return self.X is not None and (self.features is None or len(self.features) > 0)

    def select(self, rows: Any) -> DecisionLog:
        """Return the log of some decisions: a truth value for each, or positions."""
        rows = as_array(rows)
        at: Rows = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows.astype(np.intp)
        if not at.size:
            raise InputError("no decision of the log is left; select at least one.")
        some = object.__new__(DecisionLog)
        for name, value in vars(self).items():
            per_row = isinstance(value, np.ndarray) and name not in ("X", "sensitive_features")
            setattr(some, name, value[at] if per_row else value)
        vars(some).pop("table", None)
        some.X = None if self.X is None else take(self.X, at)
        if self.sensitive_features is not None:
            some.sensitive_features = _rows_of(self.sensitive_features, at)
        some.groups = tuple(GroupColumn(g.attribute, g.names, g.codes[at]) for g in self.groups)
        return some

    def _estimated_propensity(self) -> Floats:
        if not self.has_features:
            raise InputError(
                "probabilities of acceptance can be estimated from features only; pass propensity, "
                "or name the feature columns that decisions depended on."
            )
        columns, codes = self.table
        categories = few_categories(columns, codes)
        # The past may have looked at groups, whether models of ours may or not.
        for group in self.groups:
            if len(group.names) < MOST_CATEGORIES:
                categories.append(codes.shape[1])
            codes = np.column_stack([codes, np.where(group.codes < 0, np.nan, group.codes)])
        return estimate_propensity(codes, categories, self.accepted)

    def without_groups(self) -> DecisionLog:
        """Return the log without groups, so that no question is asked about them."""
        some = copy.copy(self)
        some.sensitive_features, some.groups = None, ()
        return some

    def _check_propensity(self) -> None:
        p = self.propensity
        for wrong, what in (
            (
                (p < 0) | (p > 1),
                "has the probability {}; divide percentages by 100",
            ),
            (
                self.accepted & (p == 0),
                "was accepted with probability {}; find the one with which its policy accepted it",
            ),
            (
                ~self.accepted & (p == 1),
                "was rejected although its probability of acceptance is {}; find the probability "
                "of acceptance, not that of the decision",
            ),
        ):
            if wrong.any():
                row = int(np.argmax(wrong))
                raise InputError(f"row {row} {what.format(p[row])}.")

    def _check_fit(self) -> None:
        """Raise if coins contradict the probabilities, as those of the decision taken would."""
        p, a = self.propensity[~self.drawn], self.accepted[~self.drawn]
        part = np.searchsorted(_RANGES, p, side="right")
        for here in (np.ones_like(a), *(part == k for k in range(len(_RANGES) + 1))):
            expected, spread = p[here].sum(), float(np.sqrt((p * (1 - p))[here].sum()))
            if spread**2 >= _ENOUGH and abs(a[here].sum() - expected) > _SIGMAS * spread:
                raise InputError(
                    f"the probabilities contradict the decisions: {a[here].sum():,} of "
                    f"{here.sum():,} applicants with probabilities from {p[here].min():.3g} to "
                    f"{p[here].max():.3g} were accepted, and {expected:,.0f} are expected; pass "
                    f"probabilities of acceptance, not of the decision taken."
                )

    def _check_outcomes(self) -> None:
        for wrong, what in (
            (
                self.known & ~self.accepted,
                "was rejected and has an outcome; leave it empty",
            ),
            (
                (self.withdrawn | self.not_taken) & ~self.accepted,
                "was rejected and is marked as withdrawn or not taken; mark accepted ones only",
            ),
            (
                self.known.astype(np.intp) + self.withdrawn + self.not_taken > 1,
                "has two of an outcome, the mark withdrawn and the mark not taken; leave one",
            ),
        ):
            if wrong.any():
                raise InputError(f"row {int(np.argmax(wrong))} {what}.")

    def _mixture(self, mixture: Any) -> Floats:
        mean = _numbers(mixture, len(self), "mixture")
        wrong = ~((mean >= 0) & (mean <= 1)) | (self.accepted & (mean == 0))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(
                f"row {row} has the mean probability {mean[row]}; it must be from 0 to 1, and "
                f"above 0 for an accepted applicant."
            )
        return mean


def _of_export(table: Any, shock: float) -> DecisionLog:
    """Return the log in a table that ``fairchance export`` wrote."""
    names = [name for name in table.columns if name.startswith(_FEATURE)]
    groups = [name for name in table.columns if name.startswith(_GROUP)]
    features = table.select(names).rename({name: name[len(_FEATURE) :] for name in names})
    sensitive = table.select(groups).rename({name: name[len(_GROUP) :] for name in groups})
    accepted = as_array(table["accepted"]).astype(np.bool_)
    ids = []  # empty if they were left out, or are erased
    if "id" in table.columns:
        ids = [name for name in table["id"].to_list() if name is not None]
    if len({*ids}) < len(ids):
        twice = next(name for name, n in Counter(ids).items() if n > 1)
        raise InputError(
            f"the application {twice!r} is in the table more than once; leave each row once."
        )
    # Where a person overruled the program, the outcome does not belong to the program's decision.
    overruled = np.array(
        [str(value) == "rejected" for value in table["override"].to_list()], np.bool_
    )
    outcome = as_array(table["outcome"]).astype(np.object_)
    outcome[~accepted | overruled] = None
    return DecisionLog(
        accepted,
        table["propensity"],
        outcome,
        X=nw.to_native(features) if names else None,
        sensitive_features=nw.to_native(sensitive) if groups else None,
        round=table["round"],
        score=table["score"],
        ranking=table["round"],  # the table does not say which rounds have the same one
        drawn=table["drawn"],
        incumbent=table["incumbent"] if "incumbent" in table.columns else None,
        exploit=as_array(table["region"]) == "exploit" if "region" in table.columns else None,
        overridden=accepted & overruled,
        erased=table["erased"],
        shock=shock,
    )


def n_columns(X: Any) -> int:
    """Return the number of columns of an array or frame."""
    return int(X.shape[1]) if len(X.shape) > 1 else 1


def _truths(values: Any, n: int, name: str) -> Bools:
    """Return a column of truth values, which may be written as 0 and 1; None means False."""
    if values is None:
        return np.zeros(n, np.bool_)
    array = column(values, n, name, per="decision")
    if array.dtype == np.object_:
        missing = is_missing(array)
        if missing.any():
            raise InputError(
                f"{name} is missing in row {int(np.argmax(missing))}; every decision needs it."
            )
        array = np.array([plain(value) for value in array.tolist()])
    if array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
        strange = next(v for v in array.tolist() if v not in (0, 1))
        raise InputError(f"{name} must hold True or False (or 1 or 0), got {strange!r}.")
    return array.astype(np.bool_)


def _numbers(values: Any, n: int, name: str, *, missing: bool = False) -> Floats:
    array = column(values, n, name, per="decision")
    try:
        numbers = np.array(array, np.float64)
    except (TypeError, ValueError):
        strange = next(value for value in array.tolist() if not isinstance(value, int | float))
        raise InputError(f"{name} must hold numbers, got {strange!r}.") from None
    empty = np.isnan(numbers)
    if empty.any() and not missing:
        raise InputError(
            f"{name} is missing (NaN) in row {int(np.argmax(empty))}; every decision needs it."
        )
    return numbers


def _incumbent(values: Any, n: int) -> Floats | None:
    """Return 1, 0, or NaN where there is no decision; None if there is none at all."""
    own = _numbers(values, n, "incumbent", missing=True)
    wrong = ~np.isin(own, (0, 1)) & ~np.isnan(own)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(f"incumbent must hold 0 and 1, got {own[row]} in row {row}.")
    return None if np.isnan(own).all() else own


def _rounds(values: Any, n: int, first: int) -> Rows:
    numbers = _numbers(values, n, "round")
    whole = numbers.astype(np.intp)
    if not np.array_equal(whole, numbers):
        raise InputError(f"round must hold whole numbers, got {numbers[whole != numbers][0]}.")
    if whole.min() < first:  # a challenger's trained_through = 0 says that it has seen no round
        raise InputError(f"rounds are numbered from {first}, got {whole.min()}; number them anew.")
    return whole


def _outcomes(values: Any, n: int, pos_label: Any) -> tuple[Floats, Bools, Bools]:
    """Return 1 for good, 0 for bad, NaN for others, who is withdrawn and who took no loan."""
    array = column(values, n, "outcome", per="decision")
    outcome, (gone, left) = np.full(n, np.nan), np.zeros((2, n), np.bool_)
    if array.dtype.kind in "fiub":
        known = ~np.isnan(array.astype(np.float64))
    else:
        array = array.astype(np.object_)
        array[is_missing(array)] = ""  # pandas.NA cannot be compared
        gone, left = (np.asarray(array == state) for state in (_WITHDRAWN, _NOT_TAKEN))
        known = (array != "") & ~gone & ~left
    labels = sorted({plain(value) for value in array[known].tolist()}, key=str)
    named = pos_label is not None
    if pos_label is None and 0 < len(labels) <= 2:
        usual = [good for good, both in _USUAL.items() if set(labels) <= both]
        pos_label = usual[0] if usual else good_outcome(labels, None)
    listed = ", ".join(map(repr, labels))
    if 0 < len(labels) <= 2 and pos_label not in labels and (named or len(labels) == 2):
        raise InputError(
            f"no outcome is {pos_label!r}, the good one; they are {listed}: name one of these with "
            f"{{option}}.",
            option="pos_label",
        )
    if len(labels) > 2:
        raise InputError(
            f"outcomes must have two values, good and bad, got {listed}; merge them, and leave the "
            f"outcome empty while it is pending."
        )
    outcome[known] = array[known] == pos_label
    return outcome, gone, left


def _group_columns(sensitive_features: Any, known: Bools) -> tuple[GroupColumn, ...]:
    """Return the attributes; erased applicants have code −1."""
    if sensitive_features is None or not known.any():
        return ()
    some = sensitive_features
    if not known.all():
        some = _rows_of(sensitive_features, np.flatnonzero(known))
    columns = []
    for attribute, names, codes in of_each_attribute(some, int(known.sum())):
        placed = np.full(known.size, -1, np.intp)
        placed[known] = codes
        columns.append(GroupColumn(str(attribute), tuple(map(str, names.tolist())), placed))
    return tuple(columns)


def _rows_of(values: Any, rows: Rows) -> Any:
    """Return some rows of a frame, series, array or list."""
    native = nw.from_native(values, allow_series=True, eager_only=True, pass_through=True)
    framed = isinstance(native, nw.DataFrame | nw.Series)
    return nw.to_native(native[rows]) if framed else as_array(values)[rows]
