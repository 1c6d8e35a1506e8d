"""Reasons of rejections: the columns that lowered a rejected applicant's score the most.

A rejected applicant is compared with one **reference applicant**: the mean of the accepted
applicants of the history, also of dates, and in columns of text their most frequent value (in all
columns, if a classifier works on cells). The reference is made once, from the history, and kept
with the program. So all applicants are compared with the same reference, whatever round and policy
decided, and the comparison is with an accepted applicant, which is what a rejected one asks about.
It does not depend on groups.

A column's **contribution** is what it changes in the log-odds of the score: those of the applicant,
minus those of the same applicant with the reference's value in that column alone. Under a linear
model that is coefficient · (value − reference's value), summed over the numbers that a column of
text becomes; then the contributions and the log-odds of the reference sum to the applicant's
log-odds. Under any other model each column is tried on its own, and the sum may differ by the
effect of columns on each other.

Reasons are the columns with negative contributions of at least 0.005, at most four, the most
negative first; a smaller one explains nothing. They explain the score: an applicant who was not
drawn has the same reasons as one who could not be.
Protected attributes are never reasons, even if the model reads them: neither the columns that
``group_as_feature`` appends nor a column with the name of a protected attribute. A column that an
applicant left empty is called missing, because there is no value to compare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from struct import Struct
from typing import Any, Protocol

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairchance.errors import InputError
from fairchance.frames import as_array, is_frame, is_missing, n_rows, take
from fairchance.people.columns import SEVERAL, Expansion, days, without_words
from fairchance.people.likelihoods import (
    ConstantLikelihood,
    ExpandedLikelihood,
    GroupedLikelihood,
    Likelihood,
    LinearLikelihood,
    MeanLikelihood,
    without_expansion,
)

__all__ = [
    "ITEM",
    "MOST",
    "NO_SINGLE_FEATURE",
    "Explained",
    "ReferenceApplicant",
    "Scored",
    "as_codes",
    "contributions",
    "decode",
    "encode",
    "first_misfit",
    "in_words",
    "letters",
    "reasons_for",
]

ITEM = np.dtype([("column", "<u2"), ("contribution", "<f4")])  # a reason, as ``encode`` writes it
_ITEM = Struct("<Hf")  # the same, for one applicant
MOST = 4  # reasons per applicant
NO_SINGLE_FEATURE = "no single feature; too little is known about applicants like this one"

Floats = NDArray[np.float64]
_EMPTY = 1 << 15  # added to the position of a column that an applicant left empty
_NOTHING = 0.005  # of log-odds: less is 0.00 in a file, which is no reason to name
# Of the strongest contribution: a letter gives principal reasons, as lenders must, and a small one
# beside a large one would mislead an applicant about what to change.
_PRINCIPAL = 0.1
_CLOSE = 1e-5  # machines round differently, and a solver may stop a little earlier or later
_CLIP = 1e-15
_BLOCK = 65536  # rows whose codes are expanded at once
_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True)
class ReferenceApplicant:
    """The applicant that rejected applicants are compared with.

    Attributes
    ----------
    names
        Names of the columns; ``x0``, ``x1``, … for an array.
    values
        Means of numbers, of dates in days since 1970, most frequent texts if at least five
        applicants have them (on cells, in any case); NaN or None if all were missing.
    protected
        Names of columns that are never reasons.
    most_frequent
        Whether numbers are the most frequent ones instead of means.
    missing_values
        Texts and numbers that mean that a value is missing.

    Examples
    --------
    >>> X = np.array([[1.0, 5.0], [3.0, 7.0], [9.0, 9.0]])
    >>> ReferenceApplicant.of(X, np.array([True, True, False])).values
    (2.0, 6.0)
    """

    names: tuple[str, ...]
    values: tuple[float | str | None, ...]
    protected: tuple[str, ...] = ()
    most_frequent: bool = False
    missing_values: tuple[str | float, ...] = ()

    @staticmethod
    def of(
        X: Any,
        accepted: NDArray[np.bool_],
        protected: Iterable[Any] = (),
        *,
        most_frequent: bool = False,
        missing_values: tuple[str | float, ...] = (),
    ) -> ReferenceApplicant:
        """Return the reference of a history: of all applicants, if none was accepted."""
        rows = np.flatnonzero(accepted) if accepted.any() else np.arange(accepted.size)
        some = without_words(take(X, rows), missing_values)
        typical = _most_frequent if most_frequent else _mean
        if is_frame(some):
            columns = list(nw.from_native(some, eager_only=True).iter_columns())
            names = [str(column.name) for column in columns]
            least = 1 if most_frequent else SEVERAL  # a text of few may be somebody's name
            values = [_typical(column, typical, least) for column in columns]
        else:
            names = [f"x{position}" for position in range(some.shape[1])]
            values = [typical(some[:, position]) for position in range(some.shape[1])]
        if len(names) > np.iinfo(np.int16).max:
            raise InputError(
                f"reasons need at most {np.iinfo(np.int16).max} columns, got {len(names)}; leave "
                f"out columns that decide nothing."
            )
        listed = tuple(name for name in names if name in set(protected))
        return ReferenceApplicant(
            tuple(names), tuple(values), listed, most_frequent, missing_values
        )

    def of_same_kind(self, X: Any, accepted: NDArray[np.bool_]) -> ReferenceApplicant:
        """Return the reference of a history, made in the same way as this one."""
        return ReferenceApplicant.of(
            X,
            accepted,
            self.protected,
            most_frequent=self.most_frequent,
            missing_values=self.missing_values,
        )

    @staticmethod
    def read(header: dict[str, Any] | None) -> ReferenceApplicant | None:
        """Return a reference from the data of ``as_dict``, after JSON; None if there is none."""
        if header is None:
            return None
        values = [
            value if value is None or text else float(value)  # JSON has no NaN: it is a text there
            for value, text in zip(header["values"], header["texts"], strict=True)
        ]
        return ReferenceApplicant(
            tuple(header["names"]),
            tuple(values),
            tuple(header["protected"]),
            header["most_frequent"],
            tuple(header["missing_values"]),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the reference as plain data."""
        return {
            "names": list(self.names),
            "values": list(self.values),
            "texts": [value is None or isinstance(value, str) for value in self.values],
            "protected": list(self.protected),
            "most_frequent": self.most_frequent,
            "missing_values": list(self.missing_values),
        }

    def is_like(self, other: ReferenceApplicant) -> bool:
        """Return whether two references are the same, up to rounding."""
        first, second = (replace(one, values=()) for one in (self, other))
        if first != second:
            return False
        return all(
            bool(np.isclose(a, b, _CLOSE, _CLOSE, equal_nan=True))
            if isinstance(a, float) and isinstance(b, float)
            else a == b
            for a, b in zip(self.values, other.values, strict=True)
        )

    @property
    def allowed(self) -> NDArray[np.intp]:
        """Positions of the columns that may be reasons."""
        allowed = [at for at, name in enumerate(self.names) if name not in self.protected]
        return np.array(allowed, dtype=np.intp)


def _typical(
    column: Any, number: Callable[[NDArray[Any]], float], least: int
) -> float | str | None:
    """Return the typical number of a column, or its most frequent text if enough have it."""
    if column.dtype.is_numeric() or column.dtype == nw.Boolean:
        return number(column.cast(nw.Float64).to_numpy())
    if column.dtype.is_temporal():
        return number(days(column.to_numpy()))
    texts = [text for text in column.to_list() if text is not None and text == text]
    values, counts = np.unique(np.array(texts, np.str_), return_counts=True)
    return str(values[np.argmax(counts)]) if values.size and counts.max() >= least else None


def _mean(values: NDArray[Any]) -> float:
    present = values[~np.isnan(values)]
    return float(present.mean(dtype=np.float64)) if present.size else float("nan")


def _most_frequent(values: NDArray[Any]) -> float:
    numbers, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    return float(numbers[np.argmax(counts)]) if numbers.size else float("nan")


@dataclass(frozen=True)
class Scored:
    """Applicants as a round's policy reads them.

    Attributes
    ----------
    likelihood
        Gives their scores.
    X, group
        Features, the caller's columns first, and groups, as the likelihood takes them.
    places
        If X is a matrix of codes that the likelihood reads, the position in the caller's table of
        each of its first columns; None otherwise.
    """

    likelihood: Likelihood
    X: Any
    group: NDArray[np.intp]
    places: tuple[int, ...] | None = None

    def __getitem__(self, rows: NDArray[np.intp]) -> Scored:
        """Return some of the applicants."""
        return replace(self, X=take(self.X, rows), group=self.group[rows])

    def log_odds(self) -> Floats:
        """Return the log-odds of the scores."""
        p = np.asarray(self.likelihood.score(self.X, self.group), np.float64)
        p = np.clip(p, _CLIP, 1 - _CLIP)
        return np.asarray(np.log(p) - np.log1p(-p))


class Explained(Protocol):
    """A classifier that exposes its scores."""

    def scored_by(self, X: Any, *, sensitive_features: Any = None) -> Scored:
        """Return applicants as the policy of the last round reads them."""


def contributions(
    classifier: Explained,
    X: Any,
    reference: ReferenceApplicant,
    *,
    sensitive_features: Any = None,
    scored: Scored | None = None,
    typical: Floats | None = None,
) -> Floats:
    """Return what each column changes in each applicant's log-odds; 0 for protected columns.

    ``scored`` are the applicants as the classifier reads them, and ``typical`` is the reference
    (``as_codes``), if they are known already.

    Examples
    --------
    >>> class Weighing:
    ...     def scored_by(self, X, *, sensitive_features=None):
    ...         model = LinearLikelihood(np.array([2.0, -1.0]), intercept=0.5)
    ...         return Scored(model, X, np.zeros(len(X), np.intp))
    >>> reference = ReferenceApplicant(("income", "debt"), (3.0, 1.0))
    >>> contributions(Weighing(), np.array([[1.0, 4.0]]), reference)
    array([[-4., -3.]])
    """
    if scored is None:
        scored = classifier.scored_by(X, sensitive_features=sensitive_features)
    likelihood, expansion = _of_numbers(scored.likelihood)
    slopes = _slopes(likelihood, scored.X.shape[1])
    if not isinstance(scored.X, np.ndarray) or (slopes is None and scored.places is None):
        return _tried(classifier, X, reference, sensitive_features, scored)
    places = np.arange(len(reference.names))
    if scored.places is None:
        typical = np.array(reference.values, object).astype(np.float64)
    else:
        places = np.array(scored.places, np.intp)
        if typical is None:
            typical = as_codes(classifier, X, reference, sensitive_features=sensitive_features)
        typical = typical[: places.size]
    if slopes is None:
        changes = _tried_codes(scored, typical)
    else:
        changes = _linear_changes(scored, typical, slopes, expansion)
    found = np.zeros((n_rows(X), len(reference.names)))
    may = np.isin(places, reference.allowed)
    found[:, places[may]] = changes[:, may]
    return found


def as_codes(
    classifier: Explained, X: Any, reference: ReferenceApplicant, *, sensitive_features: Any = None
) -> Floats:
    """Return the reference as a classifier reads it; X are applicants whose table it is put in."""
    row, group = _taken(X, sensitive_features, np.zeros(1, np.intp))
    codes = classifier.scored_by(_like(row, reference), sensitive_features=group).X[0]
    return np.asarray(codes, np.float64)


def _linear_changes(
    scored: Scored, typical: Floats, slopes: Floats, expansion: Expansion | None
) -> Floats:
    """Return the contribution of each column of the features under a linear model."""
    width = typical.size
    changes = np.empty((len(scored.X), width))
    owners = np.arange(width) if expansion is None else expansion.owners
    first = np.searchsorted(owners, np.arange(width))

    def numbers(codes: NDArray[Any]) -> NDArray[Any]:
        return codes if expansion is None else expansion.numbers(codes[:, :width])

    for at in range(0, len(scored.X), _BLOCK):
        rows = slice(at, at + _BLOCK)
        slope = slopes[0] if len(slopes) == 1 else slopes[scored.group[rows]]
        moved: Floats = np.subtract(
            numbers(scored.X[rows])[:, : owners.size], numbers(typical[None]), dtype=np.float64
        )
        moved *= slope[..., : owners.size]
        changes[rows] = moved if owners.size == width else np.add.reduceat(moved, first, axis=1)
    return changes


def _tried_codes(scored: Scored, typical: Floats) -> Floats:
    """Return contributions by trying the reference's code in each column of the features."""
    n, width = len(scored.X), typical.size
    changes = np.zeros((n, width))
    as_is = scored.log_odds()
    own = scored.X[:, :width]
    differs = (own != typical) & ~(np.isnan(own) & np.isnan(typical))
    each = max(1, _BLOCK // max(1, n))  # columns at a time: one score of many rows is quicker
    for first in range(0, width, each):
        rows, columns = np.nonzero(differs[:, first : first + each])
        columns += first
        if rows.size:
            other = scored.X[rows]
            other[np.arange(rows.size), columns] = typical[columns]
            there = Scored(scored.likelihood, other, scored.group[rows]).log_odds()
            changes[rows, columns] = as_is[rows] - there
    return changes


def _tried(
    classifier: Explained,
    X: Any,
    reference: ReferenceApplicant,
    sensitive_features: Any,
    scored: Scored,
) -> Floats:
    """Return contributions by trying the reference's value in each column of the table."""
    changes = np.zeros((n_rows(X), len(reference.names)))
    as_is = scored.log_odds()
    for at in reference.allowed.tolist():
        replaced = _replaced(X, {at: reference.values[at]})
        other = classifier.scored_by(replaced, sensitive_features=sensitive_features)
        changes[:, at] = as_is - other.log_odds()
    return changes


def _like(X: Any, reference: ReferenceApplicant) -> Any:
    """Return a table whose applicants have the reference's values."""
    return _replaced(X, dict(enumerate(reference.values)))


def _of_numbers(likelihood: Likelihood) -> tuple[Likelihood, Expansion | None]:
    """Return a likelihood of numbers, and the expansion of codes to these."""
    match likelihood:
        case ExpandedLikelihood():
            return likelihood.likelihood, likelihood.expansion
        case GroupedLikelihood():
            parts, expansion = without_expansion(likelihood.of_group)
            return GroupedLikelihood(tuple(parts)), expansion
        case MeanLikelihood():
            parts, expansion = without_expansion(likelihood.parts)
            return MeanLikelihood(tuple(parts)), expansion
        case _:
            return likelihood, None


def _slopes(likelihood: Likelihood, n_features: int) -> Floats | None:
    """Return the coefficients of a linear likelihood, one row or a row per group; else None."""
    match likelihood:
        case LinearLikelihood():
            return likelihood.coef[None].copy()
        case ConstantLikelihood():
            return np.zeros((1, n_features))
        case GroupedLikelihood():
            parts = [_slopes(part, n_features) for part in likelihood.of_group]
            rows = [p[min(z, len(p) - 1)] for z, p in enumerate(parts) if p is not None]
            return np.stack(rows) if len(rows) == len(parts) else None
        case MeanLikelihood():
            parts = [_slopes(part, n_features) for part in likelihood.parts]
            linear = [part for part in parts if part is not None]
            if len(linear) < len(parts):
                return None
            return np.asarray(np.mean(np.broadcast_arrays(*linear), axis=0))
        case _:
            return None


def _replaced(X: Any, values: Mapping[int, float | str | None]) -> Any:
    """Return applicants with one value in each of some columns, named by position."""
    if not is_frame(X):
        other = np.array(X)
        for position, value in values.items():
            other[:, position] = value
        return other
    frame = nw.from_native(X, eager_only=True)
    kinds = list(frame.schema.items())
    named = [(*kinds[position], value) for position, value in values.items()]
    return nw.to_native(
        frame.with_columns(*(_literal(value, kind).alias(name) for name, kind, value in named))
    )


def _literal(value: float | str | None, kind: Any) -> Any:
    """Return a value as the literal of a column."""
    if isinstance(value, float) and kind.is_temporal():
        return _moment(value, kind)
    if isinstance(value, float) and not kind.is_float():
        kind = nw.Float64()
    return nw.lit(value, dtype=kind)


def _moment(days: float, kind: Any) -> Any:
    """Return days as the literal of a date, a time or a duration; None for NaN."""
    if np.isnan(days):
        return nw.lit(None, dtype=kind)
    length = timedelta(days=days)
    return nw.lit(length if kind == nw.Duration else _EPOCH + length)


def reasons_for(
    classifier: Any,
    X: Any,
    accepted: NDArray[np.bool_],
    reference: ReferenceApplicant | None,
    *,
    sensitive_features: Any = None,
    scored: Scored | None = None,
    typical: Floats | None = None,
) -> list[bytes | None] | None:
    """Return the reasons of all applicants that the last round rejected, as a ledger keeps them.

    Accepted applicants get None, and all do if there is no reference or the classifier does not
    expose its scores. ``scored`` and ``typical`` are as for ``contributions``.
    """
    if reference is None or not hasattr(classifier, "scored_by"):
        return None
    X = without_words(X, reference.missing_values)
    rejected = np.flatnonzero(~accepted)
    reasons = np.full(accepted.size, None, object)
    if rejected.size:
        some, groups = _taken(X, sensitive_features, rejected)
        changes = contributions(
            classifier,
            some,
            reference,
            sensitive_features=groups,
            scored=None if scored is None else scored[rejected],
            typical=typical,
        )
        reasons[rejected] = encode(changes, _empty(some))
    listed: list[bytes | None] = reasons.tolist()
    return listed


def _taken(X: Any, sensitive_features: Any, rows: NDArray[np.intp]) -> tuple[Any, Any]:
    """Return some applicants, and their groups if there are any."""
    groups = sensitive_features
    if groups is not None:
        groups = take(groups if is_frame(groups) else as_array(groups), rows)
    return take(X, rows), groups


def _empty(X: Any) -> NDArray[np.bool_]:
    """Return which values are missing."""
    if is_frame(X):
        columns = nw.from_native(X, eager_only=True).iter_columns()
        return np.column_stack([is_missing(column.to_numpy()) for column in columns])
    values = as_array(X)
    if values.dtype.kind != "O":
        return is_missing(values)
    return np.column_stack([is_missing(column) for column in values.T])


def encode(contributions: Floats, empty: NDArray[np.bool_] | None = None) -> NDArray[np.object_]:
    """Return the most negative contributions of each applicant as bytes.

    Each is the column's position (15 bits, and a bit for a column that the applicant left empty)
    and the contribution (32 bits), little endian. Negligible ones are left out.

    Examples
    --------
    >>> names = ("age", "income", "debt")
    >>> decode(encode(np.array([[0.5, -2.0, -3.0]]))[0], names)
    [('debt', -3.0), ('income', -2.0)]
    >>> decode(encode(np.array([[0.5, -2.0, -3.0]]), np.array([[False, True, False]]))[0], names)
    [('debt', -3.0), ('missing income', -2.0)]
    """
    n, width = contributions.shape
    items = np.zeros((n, min(MOST, width)), ITEM)
    # A stable sort, so that equals come in the order of their columns.
    columns = np.argsort(contributions, axis=1, kind="stable")[:, :MOST]
    values = np.take_along_axis(contributions, columns, axis=1)
    items["column"] = columns
    if empty is not None:
        items["column"] |= np.take_along_axis(empty, columns, axis=1) * np.uint16(_EMPTY)
    items["contribution"] = np.maximum(values, np.finfo(np.float32).min)
    count = (values < -_NOTHING).sum(axis=1)
    encoded = np.full(n, b"", object)
    for length in range(1, items.shape[1] + 1):
        rows = np.flatnonzero(count == length)
        joined = np.ascontiguousarray(items[rows, :length]).view(f"V{length * ITEM.itemsize}")
        encoded[rows] = joined.ravel().astype(object)
    return encoded


def decode(reasons: bytes, names: Sequence[str]) -> list[tuple[str, float]]:
    """Return reasons as columns with their contributions, the most negative first."""
    is_whole = len(reasons) % ITEM.itemsize == 0
    items = [*_ITEM.iter_unpack(reasons)] if is_whole else []
    if not is_whole or any(column % _EMPTY >= len(names) for column, _ in items):
        raise InputError(
            f"{len(reasons)} bytes are not reasons about {len(names)} columns; verify the ledger "
            f"that they come from."
        )
    return [
        (f"missing {names[column % _EMPTY]}" if column >= _EMPTY else names[column], value)
        for column, value in items
    ]


def _items(reasons: bytes) -> NDArray[Any] | None:
    return None if len(reasons) % ITEM.itemsize else np.frombuffer(reasons, ITEM)


def in_words(reasons: Sequence[tuple[str, float]]) -> str:
    """Return reasons as text.

    Examples
    --------
    >>> in_words([("duration", -1.2), ("savings", -0.849)])
    'duration (-1.20), savings (-0.85)'
    >>> in_words([])
    'no single feature; too little is known about applicants like this one'
    """
    if not reasons:
        return NO_SINGLE_FEATURE
    return ", ".join(f"{name} ({value:.2f})" for name, value in reasons)


def letters(
    reasons: Iterable[Sequence[tuple[str, float]] | None],
    sentences: Mapping[str, Mapping[str, str]],
    *,
    incumbent: NDArray[np.bool_] | None = None,
    barred: NDArray[np.bool_] | None = None,
    ramp: float = 1.0,
) -> list[str | None]:
    """Return the principal reasons of each applicant in the lender's words, each with its code.

    Those are the ones with at least a tenth of the strongest contribution. A column without a
    sentence is named. There is no letter without any sentence, for barred
    applicants, nor for those whom the lender's own process may have rejected (ramp r < 1 and
    d = 0): the score does not say why.

    Examples
    --------
    >>> sentences = {"debt": {"code": "R2", "text": "Your debts are high."}}
    >>> letters([[("debt", -1.2), ("missing income", -0.8)], None], sentences)
    ['R2: Your debts are high. missing income lowered the score.', None]
    >>> letters([[("debt", -1.2), ("age", -0.1)]], sentences)
    ['R2: Your debts are high.']
    >>> letters([[("debt", -1.2)]], sentences, incumbent=np.array([False]), ramp=0.05)
    [None]
    """
    listed = list(reasons)
    ours = np.full(len(listed), bool(sentences))
    if ramp < 1 and incumbent is not None:
        ours &= incumbent
    if barred is not None:
        ours &= ~barred
    said = {name: f"{one['code']}: {one['text']}" for name, one in sentences.items()}

    def sentence(name: str) -> str:
        return said.get(name, f"{name} lowered the score.")

    def principal(each: Sequence[tuple[str, float]]) -> Iterator[str]:
        least = _PRINCIPAL * min((value for _, value in each), default=0.0)
        return (sentence(name) for name, value in each if value <= least)

    return [
        " ".join(principal(each)) or NO_SINGLE_FEATURE if each is not None and is_ours else None
        for each, is_ours in zip(listed, ours.tolist(), strict=True)
    ]


def first_misfit(
    classifier: Any,
    X: Any,
    accepted: NDArray[np.bool_],
    reference: ReferenceApplicant,
    recorded: Sequence[bytes | None],
    *,
    sensitive_features: Any = None,
) -> int | None:
    """Return the first row whose recorded reasons are not those of the last round, or None.

    Contributions may differ by rounding, and columns whose contributions differ only by that may
    swap places.
    """
    X = without_words(X, reference.missing_values)
    given = np.array([reasons is not None for reasons in recorded], np.bool_)
    if np.any(given == accepted):
        return int(np.flatnonzero(given == accepted)[0])
    rows = np.flatnonzero(~accepted)
    if not rows.size:
        return None
    some, groups = _taken(X, sensitive_features, rows)
    expected = contributions(classifier, some, reference, sensitive_features=groups)
    reasons, empty = np.array(recorded, object)[rows], _empty(some)
    for at in np.flatnonzero(reasons != encode(expected, empty)).tolist():
        if not _fits(reasons[at], expected[at], empty[at]):
            return int(rows[at])
    return None


def _fits(reasons: bytes, expected: Floats, empty: NDArray[np.bool_]) -> bool:
    """Return whether reasons are the most negative of the expected contributions."""
    items = _items(reasons)
    if items is None or items.size > MOST:
        return False
    columns, values = items["column"].astype(np.intp), items["contribution"].astype(np.float64)
    marked, columns = columns >= _EMPTY, columns % _EMPTY
    if np.unique(columns).size < columns.size or np.any(columns >= expected.size):
        return False
    if not np.array_equal(marked, empty[columns]):
        return False
    listed, near = expected[columns], _CLOSE * (1 + np.abs(expected))
    others = np.ones(expected.size, np.bool_)
    others[columns] = False
    # All contributions that matter are listed if there is room, and no smaller one in their place.
    last = listed.max() if items.size == MOST else -_NOTHING
    return bool(
        np.all(values < 0)
        and np.all(np.abs(values - listed) <= near[columns])
        and np.all(np.diff(values) >= -near[columns][1:])
        and np.all(expected[others] >= last - near[others])
    )
