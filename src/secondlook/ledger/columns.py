"""People as a ledger keeps them: bytes and text a row, and back to what a classifier reads.

A ledger knows two kinds of columns. Numbers, whole numbers and truth values are kept as floating
point, one row's side by side as bytes; text and categories are kept as text. What is decided on is
what was kept: batches take this form before the classifier sees them, so that replaying a record
hands it the same.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from secondlook.core.groups import Attributes
from secondlook.errors import InputError, to_install
from secondlook.frames import check_columns, is_frame, is_missing, plain, without_mask
from secondlook.ledger.base import to_json

__all__ = ["Columns", "Kept", "decode_groups", "encode_groups", "encode_known_groups"]


@dataclass(frozen=True)
class Kept:
    """A batch's features: as the classifier reads them, and row by row as they are kept."""

    X: Any
    backend: str
    numbers: list[bytes]
    texts: list[str | None]

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True)
class Columns:
    """Which columns a program's people have.

    Attributes
    ----------
    names
        Names in their order, None for an array without.
    texts
        Those that hold text.
    dtype
        Kind of number.

    Examples
    --------
    >>> columns = Columns.of(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> kept = columns.encode([[5, 6]])
    >>> columns.decode(kept.numbers, kept.texts)
    array([[5., 6.]])
    """

    names: tuple[str, ...] | None
    texts: tuple[str, ...]
    dtype: str

    @staticmethod
    def of(X: Any) -> Columns:
        """Return the columns of a history."""
        frame = _named_frame(X)
        if frame is None:
            dtype = np.asarray(X).dtype if not is_frame(X) else np.dtype(np.float64)
            return Columns(None, (), "<f4" if dtype == np.float32 else "<f8")
        columns = list(frame.iter_columns())
        texts = tuple(one.name for one in columns if not _is_number(one))
        single = all(one.dtype == nw.Float32 for one in columns)
        return Columns(tuple(frame.columns), texts, "<f4" if single else "<f8")

    @staticmethod
    def read(header: dict[str, Any]) -> Columns:
        """Return columns from the header of a program."""
        names = header["names"]
        return Columns(
            None if names is None else tuple(names), tuple(header["texts"]), header["dtype"]
        )

    def encode(self, X: Any) -> Kept:
        """Return people as they are kept; they must have these columns."""
        frame = _named_frame(X)
        if frame is None or self.names is None:
            return self._encode_array(X)
        check_columns(self.names, tuple(frame.columns))
        columns = {one.name: one for one in frame.iter_columns()}
        matrix = np.empty((len(frame), len(self.names) - len(self.texts)), self.dtype)
        for position, name in enumerate(self._numeric()):
            if not _is_number(columns[name]):
                raise InputError(
                    f"the column {name!r} held numbers in the history and does not now; convert it."
                )
            matrix[:, position] = columns[name].cast(nw.Float64).to_numpy()
        words = [_text(columns[name]) for name in self.texts]
        return self._kept(matrix, words, frame.implementation.value)

    def decode(self, numbers: Sequence[bytes], texts: Sequence[str | None]) -> Any:
        """Return what a classifier reads."""
        n_numeric = 0 if self.names is None else len(self._numeric())
        width = n_numeric if self.names is not None else len(numbers[0]) // self._size
        matrix = np.frombuffer(b"".join(numbers), self.dtype).reshape(len(numbers), width)
        rows = [json.loads(one) for one in texts if one is not None] if self.texts else []
        return self._table(matrix, [list(column) for column in zip(*rows, strict=True)])

    @property
    def _size(self) -> int:
        return np.dtype(self.dtype).itemsize

    def _numeric(self) -> list[str]:
        return [name for name in self.names or () if name not in self.texts]

    def _encode_array(self, X: Any) -> Kept:
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
                f"X must be a table of numbers with one row per person, or a frame with the "
                f"history's columns if it had text, got {type(X).__name__} of shape "
                f"{np.shape(X) if array.ndim != 2 else array.shape}; convert it."
            )
        if self.names is not None and array.shape[1] != len(self.names):
            raise InputError(
                f"X must have {len(self.names)} columns, as the history had, got {array.shape[1]}; "
                f"select them."
            )
        return self._kept(array, [], backend)

    def _kept(self, matrix: NDArray[Any], words: list[list[str | None]], backend: str) -> Kept:
        n, width = matrix.shape
        size = width * self._size
        rows = np.ascontiguousarray(matrix)
        numbers = rows.view(f"V{size}").ravel().tolist() if n and size else [b""] * n
        texts: list[str | None] = [None] * n
        if words:
            encode = json.JSONEncoder(separators=(",", ":")).encode
            texts = [encode(row) for row in zip(*words, strict=True)]
        return Kept(self._table(matrix, words), backend, numbers, texts)

    def _table(self, matrix: NDArray[Any], words: list[list[str | None]]) -> Any:
        if self.names is None:
            return matrix
        pa = _arrow()
        numeric = dict(zip(self._numeric(), matrix.T, strict=True))
        text = dict(zip(self.texts, words, strict=True))
        return pa.table(
            {
                name: pa.array(text[name], pa.string())
                if name in text
                else pa.array(np.ascontiguousarray(numeric[name]))
                for name in self.names
            }
        )


def encode_groups(sensitive_features: Any, n: int) -> tuple[tuple[str, ...] | None, list[str]]:
    """Return the names of the protected attributes, and everybody's values as JSON."""
    attributes, codes = Attributes.of(sensitive_features, n)
    texts = _group_texts(attributes)
    return attributes.names, [texts[code] for code in codes.tolist()]


def encode_known_groups(known: Attributes, sensitive_features: Any, n: int) -> list[str]:
    """Return values that must be known as JSON, in the very form in which they became known."""
    texts = _group_texts(known)
    return [texts[code] for code in known.read(sensitive_features, n).tolist()]


def _group_texts(attributes: Attributes) -> list[str]:
    """Return the values of each group as JSON."""
    columns = [
        values[level] for values, level in zip(attributes.values, attributes.level_of, strict=True)
    ]
    listed = [[plain(one) for one in c] for c in columns]
    strange = [one for c in listed for one in c if not isinstance(one, str | int | float)]
    if strange:
        raise InputError(
            f"sensitive_features must hold text or numbers, got {strange[0]!r}; convert them."
        )
    _check_whole("sensitive_features", [one for c in listed for one in c if isinstance(one, str)])
    return [to_json(row) for row in zip(*listed, strict=True)]


def decode_groups(names: tuple[str, ...] | None, values: Sequence[str]) -> Any:
    """Return group values as a classifier reads them."""
    code_of = {text: code for code, text in enumerate(dict.fromkeys(values))}
    codes = np.fromiter((code_of[text] for text in values), np.intp, len(values))
    columns = [list(column) for column in zip(*map(json.loads, code_of), strict=True)]
    if names is not None:
        parts = [np.array(column, dtype=object)[codes] for column in columns]
        return _arrow().table(dict(zip(names, parts, strict=True)))
    if len(columns) == 1:
        return np.array(columns[0])[codes]
    return np.array(columns, dtype=object).T[codes]


def _named_frame(X: Any) -> Any:
    if not is_frame(X):
        return None
    frame = nw.from_native(X, eager_only=True)
    return frame if all(isinstance(name, str) for name in frame.columns) else None


def _is_number(column: Any) -> bool:
    return bool(column.dtype.is_numeric() or column.dtype == nw.Boolean)


def _text(column: Any) -> list[str | None]:
    if column.dtype not in (nw.String, nw.Categorical, nw.Enum, nw.Object):
        raise InputError(
            f"the column {column.name!r} holds {column.dtype}, and a ledger keeps numbers and "
            f"text; convert it to one of these."
        )
    values = column.to_list()
    others = [one for one in values if not isinstance(one, str)]
    missing = is_missing(np.array(others, np.object_))
    if not missing.all():
        strange = others[int(np.argmin(missing))]
        raise InputError(
            f"the column {column.name!r} holds text and {strange!r}; a ledger keeps numbers or "
            f"text in a column, so convert it to one of these."
        )
    found = [one if isinstance(one, str) else None for one in values]
    _check_whole(f"the column {column.name!r}", [one for one in found if one is not None])
    return found


def _check_whole(what: str, texts: Sequence[str]) -> None:
    try:
        "".join(texts).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{what} must not hold half a surrogate pair, which no database keeps, got "
            f"{error.object[error.start]!r}; remove it."
        ) from error


def _arrow() -> Any:
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise InputError(
            f"a ledger whose people have named columns needs pyarrow; {to_install('ledger')} "
            f"installs it."
        ) from error
    return pa
