"""What spoke against whom: the columns that lowered a refused person's score the most.

A refused person is compared with one **reference applicant**: the mean of the people whom the
history accepted, in columns of text their most frequent value (in all columns, where a classifier
knows finitely many kinds of people). It is made once, from the history,
and kept with the program. So everybody is compared with the same applicant, whatever round and
policy decided, and the comparison is with somebody who was accepted, which is what a refused person
asks about. It knows nothing of groups.

A column's **contribution** is what it changes in the log-odds of the score: those of the person,
minus those of the same person with the reference's value in that column alone. Under a linear model
that is coefficient · (value − reference's value); then contributions, and the log-odds of the
reference, sum to the person's log-odds. Under any other model each column is tried on its own, and
the sum may differ by what columns do together.

Reasons are the columns with negative contributions, at most four, the most negative first. They are
about the score: a person who was not drawn has the same reasons as one who could not be. Protected
attributes are no reasons, even where the model reads them: what ``group_as_feature`` appends is
never compared, nor is a column that bears the name of a protected attribute. A column that a person
left empty is called missing: what counted is that, or the value that a learner puts there, and no
value of theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from secondlook.errors import InputError
from secondlook.frames import as_array, is_frame, is_missing, n_rows, take
from secondlook.people.likelihoods import (
    ConstantLikelihood,
    GroupedLikelihood,
    Likelihood,
    LinearLikelihood,
    MeanLikelihood,
)
from secondlook.people.reference import Reference

__all__ = [
    "ITEM",
    "MOST",
    "NO_SINGLE_FEATURE",
    "Explained",
    "Reference",
    "Scored",
    "contributions",
    "decode",
    "encode",
    "first_misfit",
    "in_words",
    "reasons_for",
]

ITEM = np.dtype([("column", "<u2"), ("contribution", "<f4")])  # a reason, as ``encode`` writes it
MOST = 4  # reasons a person; more say less
NO_SINGLE_FEATURE = "no single feature; too little is known about applicants like this one"

Floats = NDArray[np.float64]
_EMPTY = 1 << 15  # added to the position of a column that a person left empty
_NOTHING = 1e-6  # of log-odds: less is rounding
_CLOSE = 1e-5  # other machines round otherwise, and a solver stops a little elsewhere
_CLIP = 1e-15


@dataclass(frozen=True)
class Scored:
    """People as a round's policy reads them.

    Attributes
    ----------
    likelihood
        What scores them.
    X, group
        Features, the caller's columns first, and groups, as the likelihood takes them.
    """

    likelihood: Likelihood
    X: Any
    group: NDArray[np.intp]

    def log_odds(self) -> Floats:
        """Return the log-odds of everybody's score."""
        p = np.asarray(self.likelihood.score(self.X, self.group), np.float64)
        p = np.clip(p, _CLIP, 1 - _CLIP)
        return np.asarray(np.log(p) - np.log1p(-p))


class Explained(Protocol):
    """A classifier that says what it scores people by."""

    def scored_by(self, X: Any, *, sensitive_features: Any = None) -> Scored:
        """Return people as the policy of the last round reads them."""


def contributions(
    classifier: Explained, X: Any, reference: Reference, *, sensitive_features: Any = None
) -> Floats:
    """Return what each column changes in each person's log-odds; 0 for the protected.

    Parameters
    ----------
    classifier
        Whose last round decided.
    X
        People, in the caller's columns.
    reference
        The applicant whom they are compared with.
    sensitive_features
        Their groups, if the classifier reads groups.

    Examples
    --------
    >>> class Weighing:
    ...     def scored_by(self, X, *, sensitive_features=None):
    ...         model = LinearLikelihood(np.array([2.0, -1.0]), intercept=0.5)
    ...         return Scored(model, X, np.zeros(len(X), np.intp))
    >>> reference = Reference(("income", "debt"), (3.0, 1.0))
    >>> contributions(Weighing(), np.array([[1.0, 4.0]]), reference)
    array([[-4., -3.]])
    """
    scored = classifier.scored_by(X, sensitive_features=sensitive_features)
    linear = _Linear.of(scored, reference)
    if linear is not None:
        return linear.contributions(slice(0, len(scored.X)))
    return _tried(classifier, X, reference, sensitive_features, scored)


def _tried(
    classifier: Explained, X: Any, reference: Reference, sensitive_features: Any, scored: Scored
) -> Floats:
    """Return contributions by trying the reference's value in each column."""
    found = np.zeros((n_rows(X), len(reference.names)))
    as_is = scored.log_odds()
    for at in reference.allowed.tolist():
        other = _replaced(X, at, reference.values[at])
        there = classifier.scored_by(other, sensitive_features=sensitive_features)
        found[:, at] = as_is - there.log_odds()
    return found


@dataclass(frozen=True)
class _Linear:
    """People under a linear model, and the reference's values; slopes are 0 for the protected."""

    X: NDArray[Any]
    group: NDArray[np.intp]
    slopes: Floats
    values: Floats

    @staticmethod
    def of(scored: Scored, reference: Reference) -> _Linear | None:
        slopes = _slopes(scored.likelihood, scored.X.shape[1])
        if slopes is None or not isinstance(scored.X, np.ndarray):
            return None
        slopes = slopes[:, : len(reference.names)]
        forbidden = np.ones(slopes.shape[1], np.bool_)
        forbidden[reference.allowed] = False
        slopes[:, forbidden] = 0.0
        values = np.array(reference.values, np.float64)
        return _Linear(scored.X[:, : values.size], scored.group, slopes, values)

    def contributions(self, rows: slice) -> Floats:
        found: Floats = np.subtract(self.X[rows], self.values, dtype=np.float64)
        found *= self.slopes[0] if len(self.slopes) == 1 else self.slopes[self.group[rows]]
        return found


def _slopes(likelihood: Likelihood, n_features: int) -> Floats | None:
    """Return the coefficients of a linear likelihood, a row a group or one for all; else None."""
    match likelihood:
        case LinearLikelihood():
            return likelihood.coef[None].copy()
        case ConstantLikelihood():
            return np.zeros((1, n_features))
        case GroupedLikelihood():
            parts = [_slopes(one, n_features) for one in likelihood.of_group]
            rows = [p[min(z, len(p) - 1)] for z, p in enumerate(parts) if p is not None]
            return np.stack(rows) if len(rows) == len(parts) else None
        case MeanLikelihood():
            parts = [_slopes(one, n_features) for one in likelihood.parts]
            linear = [part for part in parts if part is not None]
            if len(linear) < len(parts):
                return None
            return np.asarray(np.mean(np.broadcast_arrays(*linear), axis=0))
        case _:
            return None


def _replaced(X: Any, position: int, value: float | str | None) -> Any:
    """Return people with one value in a column."""
    if not is_frame(X):
        other = np.array(X)
        other[:, position] = value
        return other
    frame = nw.from_native(X, eager_only=True)
    name = frame.columns[position]
    kind: Any = frame.schema[name]
    if isinstance(value, float) and not kind.is_float():
        kind = nw.Float64()
    return nw.to_native(frame.with_columns(nw.lit(value, dtype=kind).alias(name)))


def reasons_for(
    classifier: Any,
    X: Any,
    accepted: NDArray[np.bool_],
    reference: Reference | None,
    *,
    sensitive_features: Any = None,
) -> Sequence[bytes | None] | None:
    """Return the reasons of everybody whom the last round refused, as a ledger keeps them.

    Parameters
    ----------
    classifier, X, reference, sensitive_features
        As for ``contributions``; X and groups of everybody in the batch.
    accepted
        Who was accepted, and so has None in the place of reasons.

    Returns
    -------
    sequence or None
        None if there is no reference, or the classifier cannot say what it scores people by.
    """
    if reference is None or not hasattr(classifier, "scored_by"):
        return None
    refused = np.flatnonzero(~accepted)
    if not refused.size:
        return [None] * accepted.size
    mine, groups = _taken(X, sensitive_features, refused)
    scored = classifier.scored_by(mine, sensitive_features=groups)
    linear = _Linear.of(scored, reference)
    if linear is not None:
        contributions, empty = linear.contributions(slice(0, refused.size)), None
    else:
        contributions = _tried(classifier, mine, reference, groups, scored)
        empty = _empty(mine)
    reasons = np.full(accepted.size, None, object)
    reasons[refused] = encode(contributions, empty)
    listed: list[bytes | None] = reasons.tolist()
    return listed


def _taken(X: Any, sensitive_features: Any, rows: NDArray[np.intp]) -> tuple[Any, Any]:
    """Return some of the people, and their groups if there are any."""
    groups = sensitive_features
    if groups is not None:
        groups = take(groups if is_frame(groups) else as_array(groups), rows)
    return take(X, rows), groups


def _empty(X: Any) -> NDArray[np.bool_]:
    """Say which values are missing, a row a person."""
    if is_frame(X):
        columns = nw.from_native(X, eager_only=True).iter_columns()
        return np.column_stack([is_missing(one.to_numpy()) for one in columns])
    values = as_array(X)
    if values.dtype.kind != "O":
        return is_missing(values)
    return np.column_stack([is_missing(one) for one in values.T])


def encode(contributions: Floats, empty: NDArray[np.bool_] | None = None) -> NDArray[np.object_]:
    """Return the most negative contributions of each person as bytes.

    One after the other, the column's position (15 bits, and one that says whether the person left
    it empty) and the contribution (32 bits), little endian; nothing where no contribution is
    negative.

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
    found = np.full(n, b"", object)
    for length in range(1, items.shape[1] + 1):
        rows = np.flatnonzero(count == length)
        joined = np.ascontiguousarray(items[rows, :length]).view(f"V{length * ITEM.itemsize}")
        found[rows] = joined.ravel().astype(object)
    return found


def decode(reasons: bytes, names: Sequence[str]) -> list[tuple[str, float]]:
    """Return reasons as columns with their contributions, the most negative first."""
    items = _items(reasons)
    if items is None or (items["column"] % _EMPTY >= len(names)).any():
        raise InputError(
            f"{len(reasons)} bytes are no reasons about {len(names)} columns; verify the ledger "
            f"that they come from."
        )
    return [
        (f"missing {names[column % _EMPTY]}" if column >= _EMPTY else names[column], value)
        for column, value in items.tolist()
    ]


def _items(reasons: bytes) -> NDArray[Any] | None:
    return None if len(reasons) % ITEM.itemsize else np.frombuffer(reasons, ITEM)


def in_words(reasons: Sequence[tuple[str, float]]) -> str:
    """Return reasons in words.

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


def first_misfit(
    classifier: Any,
    X: Any,
    accepted: NDArray[np.bool_],
    reference: Reference,
    recorded: Sequence[bytes | None],
    *,
    sensitive_features: Any = None,
) -> int | None:
    """Return the first row whose recorded reasons are not those of the last round, or None.

    Contributions may differ in what machines round otherwise, and columns whose contributions are
    the same but for that may stand in each other's place.
    """
    given = np.array([one is not None for one in recorded], np.bool_)
    if np.any(given == accepted):
        return int(np.flatnonzero(given == accepted)[0])
    rows = np.flatnonzero(~accepted)
    if not rows.size:
        return None
    mine, groups = _taken(X, sensitive_features, rows)
    expected = contributions(classifier, mine, reference, sensitive_features=groups)
    told, empty = np.array(recorded, object)[rows], _empty(mine)
    for at in np.flatnonzero(told != encode(expected, empty)).tolist():
        if not _fits(told[at], expected[at], empty[at]):
            return int(rows[at])
    return None


def _fits(reasons: bytes, expected: Floats, empty: NDArray[np.bool_]) -> bool:
    """Say whether these are the most negative of the contributions expected.

    Earlier versions did not say what was left empty.
    """
    items = _items(reasons)
    if items is None or items.size > MOST:
        return False
    columns, told = items["column"].astype(np.intp), items["contribution"].astype(np.float64)
    marked, columns = columns >= _EMPTY, columns % _EMPTY
    if np.unique(columns).size < columns.size or np.any(columns >= expected.size):
        return False
    if marked.any() and not np.array_equal(marked, empty[columns]):
        return False
    listed, near = expected[columns], _CLOSE * (1 + np.abs(expected))
    others = np.ones(expected.size, np.bool_)
    others[columns] = False
    # Whoever has room left names every negative one, and nobody names a lesser one instead.
    last = listed.max() if items.size == MOST else -_NOTHING
    return bool(
        np.all(told < 0)
        and np.all(np.abs(told - listed) <= near[columns])
        and np.all(np.diff(told) >= -near[columns][1:])
        and np.all(expected[others] >= last - near[others])
    )
