"""Applicants as a ledger stores them, and back as a classifier reads them.

There are two kinds of columns. Numbers, whole numbers, truth values and dates become floating
point numbers, those of one row side by side as bytes; text and categories become a JSON list of
texts. A date is the number of days since 1970-01-01, and a time is a part of a day. Batches are
encoded before the classifier sees them, so a replay hands it exactly the same values.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, overload

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairchance.core.groups import Attributes
from fairchance.errors import InputError, LedgerError
from fairchance.extras import arrow
from fairchance.frames import as_array, is_frame, is_missing, plain, with_columns, without_mask
from fairchance.ledger.base import PeopleRows, to_json
from fairchance.people.ids import as_ids
from fairchance.people.reasons import Reference, decode

__all__ = ["EncodedFeatures", "FeatureColumns", "RecordedReasons", "Shape"]
__all__ += ["encode_batch_groups", "encode_groups", "encode_read_groups", "known_groups"]

_DAY = 86_400_000  # milliseconds
_ID_KINDS = {"i": "integers", "U": "strings"}


@dataclass(frozen=True)
class EncodedFeatures:
    """The features of a batch: as the classifier reads them, and row by row as they are stored."""

    X: Any
    backend: str
    numbers: list[bytes]
    texts: list[str | None]

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True)
class FeatureColumns:
    """The columns of a program's applicants.

    ``names`` is None for an array; ``dtype`` is the type of the numbers.

    Examples
    --------
    >>> columns = FeatureColumns.of(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> encoded = columns.encode([[5, 6]])
    >>> columns.decode(encoded.numbers, encoded.texts)
    array([[5., 6.]])
    """

    names: tuple[str, ...] | None
    texts: tuple[str, ...]
    dtype: str
    dates: tuple[str, ...] = ()

    @staticmethod
    def of(X: Any) -> FeatureColumns:
        """Return the columns of a history."""
        frame = _named_frame(X)
        if frame is None:
            dtype = np.asarray(X).dtype if not is_frame(X) else np.dtype(np.float64)
            return FeatureColumns(None, (), "<f4" if dtype == np.float32 else "<f8")
        columns = list(frame.iter_columns())
        dates = tuple(column.name for column in columns if _is_date(column))
        texts = tuple(
            column.name for column in columns if not _is_number(column) and column.name not in dates
        )
        single = all(column.dtype == nw.Float32 for column in columns)
        return FeatureColumns(tuple(frame.columns), texts, "<f4" if single else "<f8", dates)

    @staticmethod
    def read(header: dict[str, Any]) -> FeatureColumns:
        """Return the columns that the header of a program names."""
        names = header["names"]
        return FeatureColumns(
            None if names is None else tuple(names),
            tuple(header["texts"]),
            header["dtype"],
            tuple(header["dates"]),
        )

    def encode(self, X: Any) -> EncodedFeatures:
        """Encode applicants, who must have these columns; others are ignored."""
        X = with_columns(X, self.names)
        frame = _named_frame(X)
        if frame is None or self.names is None:
            return self._encode_array(X)
        columns = {column.name: column for column in frame.iter_columns()}
        matrix = np.empty((len(frame), len(self.names) - len(self.texts)), self.dtype)
        for position, name in enumerate(self._numeric()):
            is_kind, kind = (_is_date, "dates") if name in self.dates else (_is_number, "numbers")
            if not is_kind(columns[name]):
                raise InputError(
                    f"the column {name!r} held {kind} in the history and does not now; convert it."
                )
            matrix[:, position] = _numbers(columns[name])
        words = [_text(columns[name]) for name in self.texts]
        return self._encoded(matrix, words, frame.implementation.value)

    def decode(self, numbers: Sequence[bytes], texts: Sequence[str | None]) -> Any:
        """Return the features as a classifier reads them."""
        n_numeric = 0 if self.names is None else len(self._numeric())
        width = n_numeric if self.names is not None else len(numbers[0]) // self._size
        matrix = np.frombuffer(b"".join(numbers), self.dtype).reshape(len(numbers), width)
        rows = [json.loads(text) for text in texts if text is not None] if self.texts else []
        return self._table(matrix, [list(column) for column in zip(*rows, strict=True)])

    @property
    def _size(self) -> int:
        return np.dtype(self.dtype).itemsize

    def _numeric(self) -> list[str]:
        return [name for name in self.names or () if name not in self.texts]

    def _encode_array(self, X: Any) -> EncodedFeatures:
        backend = "numpy"
        if is_frame(X):
            native = nw.from_native(X, eager_only=True)
            X, backend = native.to_numpy(), native.implementation.value
        try:
            array = np.ascontiguousarray(without_mask(X), self.dtype)
        except (TypeError, ValueError):
            array = np.empty(0)
        if array.ndim != 2 or self.texts:
            raise InputError(
                f"X must be a table of numbers, or a frame like the history, got "
                f"{type(X).__name__} of shape {np.shape(X)}; convert it."
            )
        if self.names is not None and array.shape[1] != len(self.names):
            raise InputError(
                f"X must have {len(self.names)} columns, as the history had, got {array.shape[1]}; "
                f"select them."
            )
        return self._encoded(array, [], backend)

    def _encoded(
        self, matrix: NDArray[Any], words: list[list[str | None]], backend: str
    ) -> EncodedFeatures:
        n, width = matrix.shape
        size = width * self._size
        rows = np.ascontiguousarray(matrix)
        numbers = rows.view(f"V{size}").ravel().tolist() if n and size else [b""] * n
        texts: list[str | None] = [None] * n
        if words:
            encode = json.JSONEncoder(separators=(",", ":")).encode
            texts = [encode(row) for row in zip(*words, strict=True)]
        return EncodedFeatures(self._table(matrix, words), backend, numbers, texts)

    def _values(self, name: str, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return a column of numbers, as times if they are days."""
        if name not in self.dates:
            return np.ascontiguousarray(numbers)
        known = ~np.isnan(numbers)
        times = np.full(numbers.size, "NaT", "M8[ms]")
        times[known] = np.round(numbers[known] * _DAY).astype("M8[ms]")
        return times

    def _table(self, matrix: NDArray[Any], words: list[list[str | None]]) -> Any:
        if self.names is None:
            return matrix
        pa = arrow()
        numeric = dict(zip(self._numeric(), matrix.T, strict=True))
        text = dict(zip(self.texts, words, strict=True))
        return pa.table(
            {
                name: pa.array(text[name], pa.string())
                if name in text
                else pa.array(self._values(name, numeric[name]))
                for name in self.names
            }
        )


@dataclass(frozen=True)
class Shape:
    """The columns, groups, ids and outcome labels of a program.

    Attributes
    ----------
    columns
        The columns of its features.
    group_names
        Names of the protected attributes; None if they have none.
    has_groups
        Whether applicants have groups.
    id_kind
        ``"i"`` if ids are integers, ``"U"`` if they are text.
    good, bad
        The labels of outcomes in the history.
    reference
        The applicant with whom rejected applicants are compared.
    """

    columns: FeatureColumns
    group_names: tuple[str, ...] | None
    has_groups: bool
    id_kind: str
    good: Any
    bad: Any
    reference: Reference | None = None

    @staticmethod
    def read(header: dict[str, Any]) -> Shape:
        """Return the shape that the header of a program's first entry describes."""
        names = header["group_names"]
        return Shape(
            FeatureColumns.read(header["columns"]),
            None if names is None else tuple(names),
            header["has_groups"],
            header["id_kind"],
            header["good"],
            header["bad"],
            Reference.read(header.get("reference")),
        )

    def people(self, rows: PeopleRows) -> tuple[Any, Any, NDArray[Any]]:
        """Return features, group values and ids."""
        X = self.features(rows.numbers, rows.texts)
        with _legible():
            return X, self.groups(rows.groups), self.ids(rows.applications)

    def features(self, numbers: Sequence[bytes | None], texts: Sequence[str | None]) -> Any:
        """Return features as the classifier reads them."""
        with _legible():
            return self.columns.decode([row or b"" for row in numbers], texts)

    def groups(self, values: Sequence[str | None] | None) -> Any:
        """Return group values as the classifier reads them, None for erased ones."""
        if values is None or not any(values):
            return None
        return _decode_groups(self.group_names, values)

    def ids(self, applications: Iterable[str | None]) -> NDArray[Any]:
        """Return ids of the program's kind from the names that the ledger stores."""
        kind = np.int64 if self.id_kind == "i" else np.str_
        return np.array([str(name) for name in applications], kind)

    def labels(self, states: Iterable[str]) -> NDArray[Any]:
        """Return outcomes in the labels of the history."""
        return np.array([self.good if state == "good" else self.bad for state in states])

    def reasons(self, encoded: Sequence[bytes | None] | None) -> RecordedReasons | None:
        """Return reasons that name the program's columns, from the bytes that a ledger stores."""
        if encoded is None:
            return None
        return RecordedReasons(encoded, () if self.reference is None else self.reference.names)

    def read_ids(self, ids: Any) -> list[str]:
        """Return ids as the names that the ledger stores; they must be of the program's kind."""
        values = np.atleast_1d(as_array(ids))
        checked = as_ids(values, values.shape[0])
        if checked.size and checked.dtype.kind != self.id_kind:
            raise InputError(
                f"ids must be {_ID_KINDS[self.id_kind]}, as in the history, got "
                f"{_ID_KINDS[checked.dtype.kind]}; convert them."
            )
        return list(map(str, checked.tolist()))

    def read_names(self, ids: Any) -> list[str]:
        """Return ids as stored names; text is accepted whatever kind the program's ids have."""
        values = np.atleast_1d(as_array(ids))
        if values.ndim == 1 and values.dtype.kind in "OU":
            names: list[Any] = values.tolist()
            if set(map(type, names)) <= {str}:
                return names
        return self.read_ids(values)


class RecordedReasons(Sequence[list[tuple[str, float]] | None]):
    """The reasons of a batch, decoded only when they are read; None for accepted applicants.

    Examples
    --------
    >>> from fairchance.people.reasons import encode
    >>> reasons = RecordedReasons([None, *encode(np.array([[-1.0, 0.5]]))], ("income", "debt"))
    >>> list(reasons)
    [None, [('income', -1.0)]]
    """

    def __init__(self, encoded: Sequence[bytes | None], names: Sequence[str]) -> None:
        self.encoded, self._names = encoded, names

    def __len__(self) -> int:
        return len(self.encoded)

    @overload
    def __getitem__(self, at: int) -> list[tuple[str, float]] | None: ...

    @overload
    def __getitem__(self, at: slice) -> RecordedReasons: ...

    def __getitem__(self, at: int | slice) -> list[tuple[str, float]] | RecordedReasons | None:
        """Return the reasons of one applicant, or of a slice."""
        if isinstance(at, slice):
            return RecordedReasons(self.encoded[at], self._names)
        reasons = self.encoded[at]
        return None if reasons is None else decode(reasons, self._names)


def encode_groups(
    sensitive_features: Any, n: int, *, not_stated: bool = False
) -> tuple[tuple[str, ...] | None, list[str]]:
    """Return the names of the protected attributes, and each applicant's values as JSON.

    With ``not_stated``, applicants without a group form one of their own.
    """
    attributes, codes = Attributes.of(sensitive_features, n, not_stated=not_stated)
    texts = _group_texts(attributes)
    return attributes.names, [texts[code] for code in codes.tolist()]


def known_groups(classifier: Any) -> Attributes | None:
    """Return the groups of a program's history, if it had any."""
    known: Attributes | None = getattr(getattr(classifier, "_intake", None), "sensitive", None)
    return known


def encode_batch_groups(classifier: Any, sensitive_features: Any, n: int) -> list[str] | None:
    """Return the group values of a batch as JSON, spelled as in the history if it had groups."""
    if sensitive_features is None:
        return None
    known = known_groups(classifier)
    if known is None:
        return encode_groups(sensitive_features, n)[1]
    known, codes = classifier._intake.read_groups(sensitive_features, n)
    texts = _group_texts(known)
    return [texts[code] for code in codes.tolist()]


def encode_read_groups(batch: Any) -> list[str] | None:
    """Return the group values of applicants that were read, spelled as in the history, as JSON."""
    if batch.sensitive is None:
        return None
    texts = _group_texts(batch.sensitive)
    return [texts[code] for code in batch.reported.tolist()]


def _group_texts(attributes: Attributes) -> list[str]:
    """Return the values of each group as JSON."""
    columns = [
        values[level] for values, level in zip(attributes.values, attributes.level_of, strict=True)
    ]
    rows = [[plain(value) for value in row] for row in zip(*columns, strict=True)]
    values = [value for row in rows for value in row]
    strange = [value for value in values if not isinstance(value, str | int | float)]
    if strange:
        raise InputError(
            f"sensitive_features must hold text or numbers, got {strange[0]!r}; convert them."
        )
    _check_surrogates("sensitive_features", [value for value in values if isinstance(value, str)])
    return [to_json(row) for row in rows]


def _decode_groups(names: tuple[str, ...] | None, values: Sequence[str | None]) -> Any:
    """Return group values as a classifier reads them; erased ones are None."""
    code_of = {text: code for code, text in enumerate(dict.fromkeys(values))}
    codes = np.fromiter((code_of[text] for text in values), np.intp, len(values))
    rows = [None if text is None else json.loads(text) for text in code_of]
    nothing = [None] * max(len(row or ()) for row in rows)
    columns = [list(column) for column in zip(*(row or nothing for row in rows), strict=True)]
    if names is not None:
        parts = [np.array(column, dtype=object)[codes] for column in columns]
        return arrow().table(dict(zip(names, parts, strict=True)))
    if len(columns) == 1:
        return np.array(columns[0])[codes]
    return np.array(columns, dtype=object).T[codes]


@contextmanager
def _legible() -> Iterator[None]:
    """Report applicants that cannot be read as ``LedgerError``."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise LedgerError(
            f"applicants of the ledger cannot be read ({str(error).splitlines()[0]}); verify it."
        ) from error


def _named_frame(X: Any) -> Any:
    if not is_frame(X):
        return None
    frame = nw.from_native(X, eager_only=True)
    return frame if all(isinstance(name, str) for name in frame.columns) else None


def _is_number(column: Any) -> bool:
    return bool(column.dtype.is_numeric() or column.dtype == nw.Boolean)


def _is_date(column: Any) -> bool:
    return column.dtype in (nw.Date, nw.Datetime)


def _numbers(column: Any) -> NDArray[np.float64]:
    """Return a column of numbers, truth values or dates as numbers, NaN if missing."""
    if _is_date(column):
        column = column.dt.timestamp("ms").cast(nw.Float64) / _DAY
    values: NDArray[np.float64] = column.cast(nw.Float64).to_numpy()
    return values


def _text(column: Any) -> list[str | None]:
    if column.dtype not in (nw.String, nw.Categorical, nw.Enum, nw.Object):
        raise InputError(
            f"a column must hold numbers, text or dates, got {column.dtype} in {column.name!r}; "
            f"convert it."
        )
    values = column.to_list()
    others = [value for value in values if not isinstance(value, str)]
    missing = is_missing(np.array(others, np.object_))
    if not missing.all():
        strange = others[int(np.argmin(missing))]
        raise InputError(
            f"a column must hold numbers or text, got both in {column.name!r} ({strange!r}); "
            f"convert it."
        )
    texts = [value if isinstance(value, str) else None for value in values]
    _check_surrogates(f"the column {column.name!r}", [text for text in texts if text is not None])
    return texts


def _check_surrogates(what: str, texts: Sequence[str]) -> None:
    try:
        "".join(texts).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{what} must not hold half a surrogate pair, got {error.object[error.start]!r}; "
            f"remove it."
        ) from error
