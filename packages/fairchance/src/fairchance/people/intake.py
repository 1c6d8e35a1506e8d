"""Reading of what callers pass in: checked once, and turned into batches and histories."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite, check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import validate_data

from fairchance.core.groups import Attributes
from fairchance.core.limits import ColumnNames
from fairchance.core.saved import saved
from fairchance.core.strategies import Columns
from fairchance.errors import InputError, LearningWarning
from fairchance.frames import (
    CONVERT,
    ENCODE,
    UNNAMED,
    Features,
    as_array,
    column,
    concat,
    is_missing,
    n_rows,
    names_and_backend,
    numeric_columns,
    plain,
    read_features,
    take,
    two_kinds,
    with_columns,
)
from fairchance.people.columns import Expansion, TableColumns
from fairchance.people.ids import as_ids, id_bits, keyed_bits, unique_bits
from fairchance.people.likeness import Checks, Likeness, Unlike, check_like
from fairchance.people.store import NOT_TAKEN
from fairchance.words.batches import unlike_words
from fairchance.words.columns import left_out_words

__all__ = ["Batch", "History", "Intake", "Reader", "good_outcome", "one_group", "read_flags"]
__all__ += ["read_persons", "report_unlike"]

# Arrays of a batch with an entry per applicant.
_PER_APPLICANT = (
    "group",
    "ids",
    "bits",
    "fit_group",
    "report_group",
    "incumbent",
    "barred",
    "persons",
)
_PAIRS = ((0, 1), (-1, 1))  # labels whose meaning is obvious; False and True are the first


@dataclass(frozen=True)
class Batch:
    """Applicants to decide on.

    Decisions may see ``group``, a fit to outcomes ``fit_group``, and reports ``report_group``; None
    for the last two means the same as ``group``. ``sensitive`` are the groups that are known once
    this batch is; ``counts`` and ``unlike`` compare the batch with the history. ``incumbent`` is d,
    the decisions of the lender's own process, ``barred`` who must not be accepted, and ``persons``
    64 bits for each applicant's person; None if they were not given.
    """

    X: Any
    group: NDArray[np.intp]
    ids: NDArray[np.generic]
    bits: NDArray[np.uint64]
    backend: str
    fit_group: NDArray[np.intp] | None = field(default=None, kw_only=True)
    report_group: NDArray[np.intp] | None = field(default=None, kw_only=True)
    sensitive: Attributes | None = field(default=None, kw_only=True)
    counts: NDArray[np.int64] | None = field(default=None, kw_only=True)
    unlike: tuple[Unlike, ...] = field(default=(), kw_only=True)
    incumbent: NDArray[np.bool_] | None = field(default=None, kw_only=True)
    barred: NDArray[np.bool_] | None = field(default=None, kw_only=True)
    persons: NDArray[np.uint64] | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        return int(self.group.shape[0])

    def __getitem__(self, rows: NDArray[np.intp]) -> Self:
        given = {name: getattr(self, name) for name in _PER_APPLICANT}
        some: dict[str, Any] = {
            name: values[rows] for name, values in given.items() if values is not None
        }
        return replace(self, X=take(self.X, rows), **some)

    @property
    def reported(self) -> NDArray[np.intp]:
        """The groups that reports may see."""
        return self.group if self.report_group is None else self.report_group

    def for_fit(self) -> Self:
        """Return the same applicants with the groups that a fit may see."""
        return self if self.fit_group is None else replace(self, group=self.fit_group)


@dataclass(frozen=True)
class History(Batch):
    """Applicants decided on in the past.

    ``outcome`` has one entry per accepted applicant, NOT_TAKEN for one without a loan.
    """

    accepted: NDArray[np.bool_]
    outcome: NDArray[np.int8]


def one_group(n: int) -> NDArray[np.intp]:
    """Return n times group 0, as an array that takes no memory."""
    return np.broadcast_to(np.intp(0), (n,))


def read_flags(values: Any, n: int, name: str) -> NDArray[np.bool_]:
    """Read a column of truth values, or of numbers 0 and 1; nothing may be missing.

    Examples
    --------
    >>> read_flags([1, 0.0, True], 3, "barred").tolist()
    [True, False, True]
    """
    array = column(values, n, name)
    if array.dtype.kind == "b":
        return array.copy()
    strange = is_missing(array)
    present = array[~strange]
    strange[~strange] = ~np.asarray((present == 0) | (present == 1), np.bool_)
    if strange.any():
        wrong = array[np.argmax(strange)]
        raise InputError(
            f"{name} must be True or False (1 or 0) for each row, got {plain(wrong)!r} in row "
            f"{np.argmax(strange)}; correct it."
        )
    return array.astype(np.bool_)


def read_persons(values: Any, n: int) -> NDArray[np.str_]:
    """Read who applied, one value per application, as text; nothing may be missing.

    Examples
    --------
    >>> read_persons([17, 18, 17], 3).tolist()
    ['17', '18', '17']
    """
    names = column(values, n, "persons")
    missing = int(is_missing(names).sum())
    if missing:
        raise InputError(
            f"{missing} of {n} applicants have no value in persons; give each of them one of their "
            f"own."
        )
    return names.astype(np.str_)


def _numbers(X: Any, estimator: Any, least: int) -> NDArray[Any]:
    """Return an array of at least so many rows as floats."""
    try:
        array: NDArray[Any] = check_array(
            X,
            dtype=[np.float64, np.float32],
            order="C",
            ensure_all_finite=False,
            ensure_min_samples=least,
            estimator=estimator,
        )
    except ValueError:
        objects = X if isinstance(X, np.ndarray) and X.dtype.kind == "O" else np.empty(0)
        for at, values in enumerate(objects.T if objects.ndim == 2 else ()):
            both = two_kinds(values.tolist())
            if both:
                raise InputError(f"the column {at} of X holds {both}; {CONVERT}.") from None
        raise
    return array


def _kind_of_table(values: Any, features: Features) -> tuple[str, tuple[str, ...]]:
    """Return the kind of a raw table, and its columns of numbers if it is a frame."""
    return features.backend, () if isinstance(values, np.ndarray) else numeric_columns(values)


def good_outcome(labels: list[Any], pos_label: Any) -> Any:
    """Return the label of the good outcome; raise if it is not obvious and has no name.

    Examples
    --------
    >>> good_outcome([False, True], None), good_outcome(["paid", "unpaid"], "paid")
    (True, 'paid')
    """
    if pos_label is None and tuple(labels) not in _PAIRS:
        raise InputError(
            f"which outcome is good, {' or '.join(map(repr, labels))}? Name it with {{option}}.",
            option="pos_label",
        )
    return labels[-1] if pos_label is None else pos_label


def _joined(parts: Sequence[Batch], name: str, order: NDArray[np.intp]) -> NDArray[Any] | None:
    """Return a column of several batches in an order; None if no batch has it.

    In a batch without it, no applicant is accepted by the incumbent or barred, and each is another
    person.
    """
    given = [getattr(part, name) for part in parts]
    if all(one is None for one in given):
        return None
    instead = [part.bits if name == "persons" else np.zeros(len(part), np.bool_) for part in parts]
    columns = [other if one is None else one for one, other in zip(given, instead, strict=True)]
    return np.asarray(np.concatenate(columns)[order])


def _beside(parts: list[list[NDArray[Any]]]) -> NDArray[Any]:
    """Return the values of protected attributes in several batches as one table."""
    columns = [np.concatenate(values) for values in zip(*parts, strict=True)]
    return columns[0] if len(columns) == 1 else np.array(columns, dtype=object).T


def report_unlike(unlike: tuple[Unlike, ...], unlike_history: bool) -> None:
    """Raise if a finding stops a batch, and warn of the others; neither if it is confirmed."""
    if not unlike_history:
        check_like(unlike)
        for one in unlike:
            message = f"Unlike the {one.since}: {unlike_words(one)}"
            warnings.warn(message, LearningWarning, stacklevel=5)


@saved
@dataclass(eq=False)
class Reader:
    """How applicants are read, without anything about applicants: columns, groups, kind of ids.

    Attributes
    ----------
    raw
        Keep dataframes as they are, since the learner reads raw columns.
    allow_missing
        Whether the learner accepts missing features.
    group_as_feature
        Append the group to the features.
    group_mode
        ``"aware"``: decisions see groups; ``"blind"``: fits do; ``"audit"``: only reports do.
    encodes, missing_values
        Read text, dates and missing values too, as codes (``columns.py``), and what means that a
        value is missing. Otherwise features are numbers, missing ones if the learner accepts them.
    columns
        How columns become codes; None without ``encodes``.
    n_features, names, dtype, table
        Number of columns, their names if they have any, type of numbers, and of raw tables the kind
        and the columns of numbers, all as in the history.
    sensitive, groups
        The protected attributes, and the groups of the history; None if there are none.
    id_kind
        ``"i"`` for integers, ``"U"`` for text.
    """

    raw: bool
    allow_missing: bool
    group_as_feature: bool
    group_mode: str = "aware"
    encodes: bool = False
    missing_values: tuple[Any, ...] = ()
    columns: TableColumns | None = None
    n_features: int = 0
    names: tuple[str, ...] | None = None
    dtype: str = "<f8"
    table: tuple[str, tuple[str, ...]] = ("numpy", ())
    sensitive: Attributes | None = None
    groups: NDArray[Any] | None = None
    id_kind: str = "i"

    def read(
        self,
        X: Any,
        *,
        ids: Any,
        sensitive_features: Any = None,
        incumbent: Any = None,
        barred: Any = None,
        persons: Any = None,
        key: np.uint64 | None = None,
        estimator: Any = None,
    ) -> Batch:
        """Read applicants that must have the history's columns, and at least one of them.

        ``key`` hides who the ``persons`` are. ``estimator`` is the classifier that reads, which
        lets scikit-learn compare columns by its own rules.
        """
        features, backend = self.read_people(estimator, X)
        n = n_rows(features)
        decided = None if incumbent is None else read_flags(incumbent, n, "incumbent")
        excluded = None if barred is None else read_flags(barred, n, "barred")
        known, group = self.read_groups(sensitive_features, n)
        names = self._own_kind(self._next_ids(n) if ids is None else as_ids(ids, n))
        names = names.copy() if self.id_kind == "i" else names  # text was copied already
        bits = self._bits(names)
        # Decisions and the index share the ids, so callers must not change them.
        names.setflags(write=False)
        if decided is not None and excluded is not None and (decided & excluded).any():
            both = names[decided & excluded]
            raise InputError(
                f"{both.size} of {n} applicants are barred and accepted by the incumbent, first "
                f"{both[0].item()!r}; correct one of the two."
            )
        who = None
        if persons is not None and key is not None:
            who = keyed_bits(id_bits(read_persons(persons, n)), key)
        return Batch(
            self._with_group(features, group),
            ids=names,
            bits=bits,
            backend=backend,
            sensitive=known,
            incumbent=decided,
            barred=excluded,
            persons=who,
            **self.seen_by(group),
        )

    def _next_ids(self, n: int) -> NDArray[np.int64]:
        raise InputError(f"ids must be given for each of the {n} applicants, got None; pass them.")

    def read_people(self, estimator: Any, X: Any) -> tuple[Any, str]:
        """Read features that must have the history's columns, and at least one row."""
        features, backend = self._features(estimator, X)
        if n_rows(features) == 0:
            raise InputError("the batch is empty; pass at least one application.")
        return features, backend

    def for_scoring(self, estimator: Any, X: Any, sensitive_features: Any, needed: bool) -> Any:
        """Read features, and groups if a classifier needs them, for ``predict``."""
        features, _ = self._features(estimator, X, own_message=estimator is None)
        n = n_rows(features)
        needed = (needed or self.group_as_feature) and self.group_mode == "aware"
        if sensitive_features is None and not needed:
            return features, one_group(n)
        _, group = self.read_groups(sensitive_features, n)
        return self._with_group(features, group), self.seen_by(group)["group"]

    @property
    def n_groups(self) -> int:
        """Number of groups that decisions or fits may see; one when there are none to see."""
        if self.groups is None or self.group_mode == "audit":
            return 1
        return int(self.groups.size)

    @property
    def places(self) -> tuple[int, ...] | None:
        """Positions in the table of the features that are codes; None if features are not."""
        return None if self.columns is None else self.columns.kept

    def seen_by(self, codes: NDArray[np.intp]) -> dict[str, Any]:
        """Return groups as decisions, fits and reports may see them, by the fields of a batch.

        A part of the library that may not see groups sees all applicants in the first one. A group
        that the history lacks is −1 for fits: those that compare groups leave such rows out.
        """
        if self.group_mode == "aware":
            return {"group": codes}
        hidden = fit = one_group(codes.size)
        if self.group_mode == "blind":
            fit = np.where(codes < self.n_groups, codes, -1)
        return {"group": hidden, "fit_group": fit, "report_group": codes}

    def read_groups(
        self, sensitive_features: Any, n: int
    ) -> tuple[Attributes | None, NDArray[np.intp]]:
        """Turn group values into codes; return them with the groups that are known then.

        A group that is not known yet is refused if decisions see groups.
        """
        if self.sensitive is None:
            if sensitive_features is not None:
                raise InputError(
                    "sensitive_features was not given to fit; give it to fit too, or leave it out."
                )
            return None, one_group(n)
        if sensitive_features is None:
            raise InputError(
                f"sensitive_features is missing: fit got the groups {self.sensitive.listed()}; "
                f"pass one of them for each row."
            )
        return self.sensitive.read(sensitive_features, n, extend=self.group_mode != "aware")

    def _features(self, estimator: Any, X: Any, *, own_message: bool = True) -> tuple[Any, str]:
        """Read features by the names and in the order of the history; ignore other columns.

        For ``predict``, scikit-learn demands its own message instead.
        """
        if self._needs_no_conversion(X):
            self._check_finite(X, None)
            return X, "numpy"
        names, backend = names_and_backend(X)
        if own_message or backend in UNNAMED:
            X, names = with_columns(X, self.names), names and self.names
        features, array = self._table_of(estimator, X, names, backend, least=0)
        self._check_columns(estimator, X, array, features.backend)
        if self.columns is not None:
            array = self.columns.codes(array)
        if self.raw:
            self._check_same_table(array, features)
        if not isinstance(array, np.ndarray):
            return array, features.backend
        self._check_finite(array, features.names)
        return array.astype(self.dtype, copy=False), features.backend

    def _table_of(
        self, estimator: Any, X: Any, names: tuple[str, ...] | None, backend: str, least: int
    ) -> tuple[Features, Any]:
        """Return a table as it was given, and its values: a frame, or floats of so many rows."""
        framed = backend != "numpy"
        if self.encodes and framed:
            return Features(X, names, backend), X
        encode = getattr(estimator, "_encode", ENCODE)
        features = read_features(X, raw=self.raw, encode=encode)
        kept = self.raw and framed
        return features, features.X if kept else _numbers(features.X, estimator, least)

    def _check_columns(self, estimator: Any, X: Any, array: Any, backend: str) -> None:
        """Raise unless there are as many columns as in the history, and of the same names."""
        if estimator is None:
            if array.shape[1] != self.n_features:
                raise InputError(
                    f"X must have {self.n_features} columns, as in the history, got "
                    f"{array.shape[1]}; select them."
                )
        elif backend not in UNNAMED:  # scikit-learn cannot read every kind of frame
            validate_data(estimator, X, reset=False, skip_check_array=True)

    def _needs_no_conversion(self, X: Any) -> bool:
        """Return whether X is an array in which only the values are left to check."""
        return (
            type(X) is np.ndarray
            and not self.raw
            and self.names is None
            and (self.columns is None or self.columns.are_numbers)
            and not self.missing_values
            and X.dtype.str == self.dtype
            and X.ndim == 2
            and X.shape[0] > 0
            and X.shape[1] == self.n_features
            and X.flags.c_contiguous
        )

    def _check_same_table(self, values: Any, features: Features) -> None:
        """Keep raw columns of one kind: rows of all rounds are joined for the learner."""
        now = _kind_of_table(values, features)
        if now != self.table:
            raise InputError(
                f"X must be {self.table[0]} with numbers in {list(self.table[1])}, as in fit, got "
                f"{now[0]} with numbers in {list(now[1])}; convert it."
            )

    def _check_finite(self, array: NDArray[Any], names: tuple[str, ...] | None) -> None:
        with np.errstate(invalid="ignore", over="ignore"):
            values = array.ravel()
            if np.isfinite(values @ values):  # one quick pass, no mask, in the usual case
                return
        missing_allowed = self.allow_missing or self.encodes
        wrong = np.isinf(array) if missing_allowed else ~np.isfinite(array)
        if not wrong.any():
            return
        row, position = np.argwhere(wrong)[0]
        if self.columns is not None:
            position = self.columns.kept[position]
        where = repr(names[position]) if names is not None else str(position)
        what = "inf" if missing_allowed else "NaN or inf"
        raise InputError(
            f"X contains {what} in {int(wrong.any(axis=1).sum())} of {array.shape[0]} rows, "
            f"first in row {row}, column {where}; impute or leave out these rows."
        )

    def _with_group(self, X: Any, group: NDArray[np.intp]) -> Any:
        """Append the group to the features, one column per group but the first."""
        if not self.group_as_feature or self.n_groups == 1:
            return X
        if not isinstance(X, np.ndarray):
            raise InputError(
                "group_as_feature=True needs an array; keep the group in the frame instead."
            )
        return np.hstack([X, (group[:, None] == np.arange(1, self.n_groups)).astype(X.dtype)])

    _bits = staticmethod(unique_bits)

    def _own_kind(self, names: NDArray[Any]) -> NDArray[Any]:
        if names.dtype.kind != self.id_kind:
            kinds = {"i": "integers", "U": "strings"}
            raise InputError(
                f"ids must be {kinds[self.id_kind]}, as in the history, "
                f"got {kinds[names.dtype.kind]}; convert them."
            )
        return names


@saved
class Intake(Reader):
    """Readers for all input, which check that batches look like the history.

    Parameters
    ----------
    raw
        Keep dataframes as they are, since the learner reads raw columns.
    allow_missing
        Whether the learner accepts missing features.
    group_as_feature
        Append the group to the features.
    pos_label
        Label of the good outcome; None if outcomes are 0 and 1, False and True, or −1 and 1.
    needs_outcomes
        Whether the history must have accepted applicants.
    group_mode
        ``"aware"``: decisions see groups; ``"blind"``: fits do; ``"audit"``: only reports do.
    encodes
        Read text, dates and missing values too, as codes (``columns.py``); otherwise features are
        numbers, missing ones if the learner accepts them.
    missing_values, named_values
        With ``encodes``: what means that a value is missing, and columns with values that need a
        code of their own.

    Attributes
    ----------
    columns : how columns become codes; None without ``encodes``.
    expansion : how codes become numbers for the learner; None if they are such numbers.
    """

    def __init__(
        self,
        *,
        raw: bool,
        allow_missing: bool,
        group_as_feature: bool,
        pos_label: Any,
        needs_outcomes: bool = True,
        group_mode: str = "aware",
        encodes: bool = False,
        missing_values: tuple[Any, ...] = (),
        named_values: tuple[tuple[str | int, Any], ...] = (),
    ) -> None:
        super().__init__(
            raw,
            allow_missing,
            group_as_feature,
            group_mode,
            encodes=encodes and not raw,
            missing_values=missing_values,
        )
        self.pos_label = pos_label
        self.needs_outcomes = needs_outcomes
        self.named_values = named_values
        self.expansion: Expansion | None = None
        self.classes: NDArray[Any] = np.empty(0)
        self.next_id = 0
        self.likeness = Likeness(())  # no decision depends on it
        self._compared: TableColumns | None = None  # its columns of features

    def reader(self) -> Reader:
        """Return how applicants are read, without labels and anything about the history."""
        return Reader(**{name: getattr(self, name) for name in Reader.__dataclass_fields__})

    def read_history(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        accepted: Any,
        sensitive_features: Any,
        ids: Any,
        not_taken: Any = None,
    ) -> History:
        """Read the history and remember its columns, groups, outcome labels and kind of ids."""
        features, backend = self._first_features(estimator, X)
        n = n_rows(features)
        chosen = self.read_accepted(accepted, n)
        outcome_of = self._history_outcomes(y, chosen, not_taken, n)
        if accepted is not None:
            self.check_good()
        group = self._first_groups(sensitive_features, n)
        self.learn_likeness(features, group, None if accepted is None else chosen)
        names = as_ids(np.arange(n) if ids is None else ids, n)
        self.id_kind = names.dtype.kind
        bits = self._bits(names)
        features = self._with_group(features, group)
        # By id: what is fitted to the history must not depend on the order of its rows.
        order = np.argsort(bits, kind="stable")
        return History(
            take(features, order),
            ids=names[order],
            bits=bits[order],
            backend=backend,
            accepted=chosen[order],
            outcome=outcome_of[order][chosen[order]],
            sensitive=self.sensitive,
            **self.seen_by(group[order]),
        )

    def read_batch(
        self,
        estimator: Any,
        X: Any,
        *,
        checks: Checks | None = None,
        unlike_history: bool = False,
        **given: Any,
    ) -> Batch:
        """Read a batch as ``read`` does, which must be like the history if ``checks`` are given."""
        self.check_good()
        batch = self.read(X, estimator=estimator, **given)
        if checks is None:
            return batch
        return self.compare_batch(batch, checks, unlike_history=unlike_history)

    def _next_ids(self, n: int) -> NDArray[np.int64]:
        """Return the integers after the largest id so far."""
        if self.id_kind != "i":
            raise InputError("ids must be given, since those of the history were strings.")
        if self.next_id + n > 2**63:
            raise InputError(
                f"the {n} integers after {self.next_id - 1} are not all below 2**63; pass ids."
            )
        return np.arange(self.next_id, self.next_id + n, dtype=np.int64)

    @property
    def categorical(self) -> tuple[int, ...]:
        """Positions of the features that are codes of categories."""
        return () if self.columns is None else self.columns.categorical

    def name_value(self, column: int, value: float) -> tuple[str, str | float | None]:
        """Return the name of a feature, and a value of it in the table; None if it is missing."""
        if self.columns is not None and column < len(self.columns.kept):
            return self.columns.name_value(column, value)
        said = None if np.isnan(value) else float(value)
        known = self.names or ()
        return known[column] if column < len(known) else f"x{column}", said

    def check_numbers(self, what: str) -> None:
        """Raise unless features are numbers, or a table that is kept as it is."""
        if self.columns is not None and not self.columns.are_numbers:
            raise InputError(
                f"{what} reads the features, which are codes in a table with dates, text or "
                f"columns left out; pass numbers, or a learner that is a Pipeline."
            )

    @property
    def known_columns(self) -> Columns:
        """The columns as limits and strategies find them."""
        return ColumnNames(self.names) if self.columns is None else self.columns

    def read_outcomes(self, outcomes: ArrayLike, n: int) -> NDArray[np.int8]:
        """Turn outcome labels into 1 (good) and 0 (bad)."""
        values = column(outcomes, n, "outcomes", per="id")
        good, bad = values == self.good, values == self.bad
        if not np.all(good | bad):
            strange = values[np.flatnonzero(~(good | bad))[0]]
            raise InputError(
                f"outcomes must be {self.bad!r} or {self.good!r}, as in the history, got "
                f"{plain(strange)!r}; map it, or leave it out."
            )
        return np.asarray(good, dtype=np.int8)

    def label(self, code: int) -> Any:
        """Return the label of an outcome code; None for an outcome that is not known."""
        return {1: self.good, 0: self.bad}.get(code)

    def check_good(self) -> None:
        """Raise if the good outcome must be named before decisions are read or made."""
        good_outcome(self.classes.tolist(), self.pos_label)

    @property
    def good(self) -> Any:
        """Label of the good outcome; for models that do not decide, any of the two will do."""
        return plain(self.classes[-1]) if self.pos_label is None else self.pos_label

    @property
    def bad(self) -> Any:
        """Label of the bad outcome."""
        return plain(self.classes[0] if self.classes[0] != self.good else self.classes[1])

    def _first_features(self, estimator: Any, X: Any) -> tuple[Any, str]:
        """Read the features of the history, and remember its columns."""
        names, backend = names_and_backend(X)
        features, array = self._table_of(estimator, X, names, backend, least=1)
        self.names = features.names
        if features.backend not in UNNAMED:
            validate_data(estimator, X, reset=True, skip_check_array=True)
        else:  # scikit-learn cannot read every kind of frame
            estimator.n_features_in_ = array.shape[1]
            estimator.feature_names_in_ = np.array(features.names, dtype=object)
        self.n_features = estimator.n_features_in_
        if self.encodes:
            array = self._learn_columns(array)
        if self.raw:
            self.table = _kind_of_table(array, features)
        if not isinstance(array, np.ndarray):
            return array, features.backend
        self._check_finite(array, features.names)
        self.dtype = array.dtype.str
        return array, features.backend

    def _learn_columns(self, X: Any) -> NDArray[Any]:
        """Return the table of the history as codes, after learning its columns."""
        if not n_rows(X):
            raise InputError("X has no rows (0 samples); pass a history of past applicants.")
        self.columns = TableColumns.of(X, self.missing_values, self.named_values)
        self.expansion = self.columns.expansion(allow_missing=self.allow_missing)
        for one in self.columns.columns:
            if one.why:
                why = left_out_words(one.why)
                message = f"The column {one.name!r} is left out, since it {why}."
                warnings.warn(message, LearningWarning, stacklevel=7)
            written = one.written_numbers
            if written:
                message = (
                    f"The column {one.name!r} holds text such as {written[0]!r}, whose values have "
                    f"no order; make numbers of it, if it means numbers."
                )
                warnings.warn(message, LearningWarning, stacklevel=7)
        return self.columns.codes(X)

    def learn_likeness(
        self, X: Any, group: NDArray[np.intp], accepted: NDArray[np.bool_] | None = None
    ) -> None:
        """Remember what features, groups and decisions of the history are like.

        Features that cannot be compared are left out, and so are groups that may decide: new ones
        are refused.
        """
        self.likeness, self._compared = Likeness(()), self.columns
        if self.columns is None and X is not None:
            # A learner that reads raw columns may take what we cannot read.
            with contextlib.suppress(InputError):
                self._compared = TableColumns.of(X, self.missing_values)
        if self._compared is not None:
            codes = self._comparable(X)
            self.likeness = Likeness.of(self._compared, codes, self.names, accepted)
        if self.sensitive is not None and self.group_mode != "aware":
            levels = self.sensitive.level_of[:, group]
            self.likeness = self.likeness.with_groups(self.sensitive.titles, levels)

    def _comparable(self, X: Any) -> NDArray[Any]:
        if self._compared is None:
            return np.empty((1, 0))
        return np.asarray(X) if self.columns is not None else self._compared.codes(X)

    def compare(
        self,
        X: Any,
        known: Attributes | None,
        group: NDArray[np.intp],
        checks: Checks,
        incumbent: NDArray[np.bool_] | None = None,
        *,
        unlike_history: bool,
    ) -> dict[str, Any]:
        """Compare a batch with the history; return counts and findings as fields of a ``Batch``.

        Features are None if they cannot be compared. ``unlike_history`` neither raises nor warns.
        """
        if not group.size or (X is None and self._compared is not None):
            return {}
        levels = None if known is None else known.level_of[:, group]
        counts = self.likeness.count(self._comparable(X), levels, incumbent)
        unlike = self.likeness.compare(counts, checks)
        report_unlike(unlike, unlike_history)
        return {"counts": counts, "unlike": unlike}

    def compare_batch(self, batch: Batch, checks: Checks, *, unlike_history: bool) -> Batch:
        """Compare applicants that were read with the history; add counts and findings."""
        X, group = self._own_features(batch), batch.reported
        found = self.compare(
            X, batch.sensitive, group, checks, batch.incumbent, unlike_history=unlike_history
        )
        return replace(batch, **found)

    def counted(self, batch: Batch) -> Batch:
        """Count what some applicants are like, to compare them together with others."""
        if not len(batch):
            return batch
        levels = None if batch.sensitive is None else batch.sensitive.level_of[:, batch.reported]
        codes = self._comparable(self._own_features(batch))
        return replace(batch, counts=self.likeness.count(codes, levels, batch.incumbent))

    def _own_features(self, batch: Batch) -> Any:
        """Return the features without the columns of groups."""
        if self.group_as_feature and self.n_groups > 1:
            return batch.X[:, : 1 - self.n_groups]
        return batch.X

    def join(self, parts: Sequence[Batch], known: Attributes | None = None) -> Batch:
        """Return the applicants of several batches by the bits of their ids; none may be in two.

        ``known`` are the groups that are known by now; None means those of the last batch.
        """
        ids = np.concatenate([part.ids for part in parts])
        bits = self._bits(ids)
        order = np.argsort(bits, kind="stable")
        known, group = known or self.sensitive, np.concatenate([part.reported for part in parts])
        if known is not None and any(part.sensitive is not known for part in parts):
            # Each part numbers groups that the history lacks by itself.
            given = [part.sensitive.values_of(part.reported) for part in parts if part.sensitive]
            known, group = known.read(_beside(given), ids.size, extend=self.group_mode != "aware")
        return Batch(
            take(concat([part.X for part in parts]), order),
            ids=ids[order],
            bits=bits[order],
            backend=parts[0].backend,
            sensitive=known,
            incumbent=_joined(parts, "incumbent", order),
            barred=_joined(parts, "barred", order),
            persons=_joined(parts, "persons", order),
            **self.seen_by(group[order]),
        )

    def compare_certain(
        self,
        counts: NDArray[np.int64],
        n: int,
        certain: int,
        expected: float,
        checks: Checks,
    ) -> tuple[NDArray[np.int64], tuple[Unlike, ...]]:
        """Compare how many of ``n`` the score accepts for sure with how many were expected.

        Return the counts of the applicants with these, and a finding if there is one.
        """
        counts = self.likeness.count_certain(counts, n, certain, expected)
        return counts, self.likeness.compare_certain(counts, checks)

    def read_accepted(self, accepted: Any, n: int) -> NDArray[np.bool_]:
        """Read which applicants were accepted; None means all."""
        if accepted is None:
            return np.ones(n, dtype=np.bool_)
        taken = read_flags(accepted, n, "accepted")
        if self.needs_outcomes and not taken.any():
            raise InputError(
                f"none of the {n} applicants of the history was accepted; pass a history with "
                f"accepted applicants of both outcomes."
            )
        return taken

    def _history_outcomes(
        self, y: Any, accepted: NDArray[np.bool_], not_taken: Any, n: int
    ) -> NDArray[np.int8]:
        """Read an outcome per row; ``y`` and ``not_taken`` are read only where they apply."""
        outcome, labelled = np.full(n, NOT_TAKEN, np.int8), accepted.copy()
        if not_taken is not None:
            values = column(not_taken, n, "not_taken")[accepted]
            labelled[accepted] = ~read_flags(values, values.size, "not_taken")
            if self.needs_outcomes and not labelled.any():
                raise InputError(
                    f"none of the {values.size} accepted applicants of the history took the loan; "
                    f"pass a history with outcomes."
                )
        outcome[labelled] = self._first_outcomes(y, labelled, n)
        return outcome

    def _first_outcomes(self, y: Any, taken: NDArray[np.bool_], n: int) -> NDArray[np.int8]:
        """Read the outcomes of accepted applicants, and no other outcome."""
        if not taken.any():
            return self._no_outcomes()
        if y is None:
            raise ValueError("fit requires y to be passed, but the target y is None.")
        target = as_array(y)
        if target.ndim == 2:
            target = column_or_1d(target, warn=True)
        values = column(target, n, "y")[taken]
        missing = is_missing(values)
        if missing.any():
            rejected = "say in accepted= who was accepted, " if taken.all() else ""
            raise InputError(
                f"y has no outcome (NaN or None) for {int(missing.sum())} accepted applicants; "
                f"{rejected}name those who did not take the loan in not_taken=, and leave out "
                f"everybody, rejected or not, who applied so late that outcomes are still unknown."
            )
        if values.dtype.kind == "O":
            values = np.array(values.tolist())  # rejected rows may have held any type
        if values.dtype.kind == "f":
            assert_all_finite(values, input_name="y")
        check_classification_targets(values)
        labels = np.unique(values)
        if labels.size == 1:
            labels = self._both_labels(plain(labels[0]))
        return self._first_codes(values, labels)

    def _both_labels(self, known: Any) -> NDArray[Any]:
        """Return both labels, if the history has only one of them and the other is obvious."""
        pair = next((pair for pair in _PAIRS if known in pair), None)
        if self.needs_outcomes or pair is None:
            instead = "add applicants with another"
            if not self.needs_outcomes:
                instead += ", or code outcomes as 0 and 1"
            raise InputError(
                f"the accepted applicants of the history have only one class of outcome, "
                f"{known!r}; {instead}."
            )
        return np.array(pair, dtype=type(known))

    def _first_codes(self, values: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.int8]:
        """Remember the labels of the history's outcomes, and return the code of each outcome."""
        self.classes = labels
        if labels.size > 2:
            raise InputError(  # the first words are scikit-learn's
                "Only binary classification is supported. The type of the target is "
                f"{type_of_target(values)}: {labels.tolist()[:10]}; call each outcome good or bad."
            )
        if self.pos_label is not None and self.pos_label not in labels.tolist():
            raise InputError(
                f"pos_label must be one of the outcomes {labels.tolist()}, got {self.pos_label!r}."
            )
        return np.asarray(values == self.good, dtype=np.int8)

    def _no_outcomes(self) -> NDArray[np.int8]:
        """Set labels if no outcome is known yet."""
        self.classes = np.array([0, 1])
        if self.pos_label is not None and self.pos_label not in (0, 1):
            raise InputError(
                f"pos_label must be 0 or 1 if the history has no accepted applicants, got "
                f"{self.pos_label!r}; map outcomes to these."
            )
        return np.empty(0, np.int8)

    def _first_groups(self, sensitive_features: Any, n: int) -> NDArray[np.intp]:
        self.groups = self.sensitive = None
        if sensitive_features is None:
            return one_group(n)
        aware = self.group_mode == "aware"
        self.sensitive, codes = Attributes.of(sensitive_features, n, not_stated=not aware)
        named = sorted({*(self.sensitive.names or ())} & {*(self.names or ())})
        if named and not aware:
            raise InputError(
                f"{', '.join(map(repr, named))} is a feature and a group, so decisions would "
                f"depend on it with group_mode={self.group_mode!r}; leave it out of X."
            )
        self.groups = self.sensitive.labels
        members = np.bincount(codes)
        if np.any(members == 1):
            lone = plain(self.groups[np.flatnonzero(members == 1)[0]])
            raise InputError(
                f"the group {lone!r} has one member in the history; merge it with another."
            )
        return codes

    def read_ids(self, ids: Any) -> NDArray[Any]:
        """Read ids of known or unknown applications, which may occur several times."""
        values = np.atleast_1d(as_array(ids))
        if values.size == 0:
            return np.empty(0, np.int64)
        return self._own_kind(as_ids(values, values.shape[0]))

    def passed(self, batch: Batch) -> None:
        """Note that a batch is recorded: its groups, largest id, and that it is a last round."""
        largest = int(batch.ids.max()) if self.id_kind == "i" and len(batch) else None
        self.remember(batch.sensitive, largest, batch.counts, batch.unlike)

    def remember(
        self,
        sensitive: Attributes | None,
        largest: int | None,
        counts: NDArray[np.int64] | None,
        unlike: tuple[Unlike, ...],
    ) -> None:
        """Note what is known after a round: its groups, its largest id, and what it was like."""
        self.sensitive = sensitive
        if largest is not None:
            self.next_id = max(self.next_id, largest + 1)
        if counts is not None:
            self.likeness.remember(counts, confirmed=any(one.stops for one in unlike))
