"""The features of applicants, with the kinds of columns that the history had.

There are two kinds of columns. Numbers, whole numbers, truth values and dates become floating
point numbers, those of one row side by side as bytes; text and categories become a JSON list of
texts. A date is the number of days since 1970-01-01, and a time is a part of a day. Batches are
encoded before the classifier sees them, so a replay hands it exactly the same values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairchance.core.saved import saved
from fairchance.errors import InputError
from fairchance.extras import arrow
from fairchance.frames import floats, is_frame, is_missing, with_columns, without_mask

__all__ = ["EncodedFeatures", "FeatureColumns", "check_surrogates"]

_DAY = 86_400_000  # milliseconds


@dataclass(frozen=True)
class EncodedFeatures:
    """The features of a batch: as the classifier reads them, and row by row as they are stored."""

    X: Any
    backend: str
    numbers: list[bytes]
    texts: list[str | None]

    def __len__(self) -> int:
        return len(self.numbers)


@saved
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
        if isinstance(X, EncodedFeatures):
            return X
        X = with_columns(X, self.names)
        frame = _named_frame(X)
        if frame is None or self.names is None:
            return self._encode_array(X)
        columns = {column.name: column for column in frame.iter_columns()}
        matrix = np.empty((len(frame), len(self.names) - len(self.texts)), self.dtype)
        for position, name in enumerate(self.numeric):
            is_kind, kind = (_is_date, "dates") if name in self.dates else (_is_number, "numbers")
            if not is_kind(columns[name]):
                raise InputError(
                    f"the column {name!r} held {kind} in the history and does not now; convert it."
                )
            matrix[:, position] = _numbers(columns[name])
        words = [_text(columns[name]) for name in self.texts]
        return self.encoded(matrix, words, frame.implementation.value)

    def table(self, columns: Mapping[str, Any]) -> Any:
        """Return applicants as ``encode`` hands them to a classifier, without storing them.

        Numbers are arrays, and text and dates Arrow columns of plain types.
        """
        pa = arrow()
        made = {}
        for name in self.names or ():
            column = columns[name]
            if name in self.dates:
                series = nw.from_native(column, series_only=True)
                made[name] = pa.array(self._values(name, _numbers(series).astype(self.dtype)))
            elif name in self.texts:
                made[name] = column
            else:
                made[name] = pa.array(column.astype(self.dtype))
        return pa.table(made)

    def decode(self, numbers: Sequence[bytes], texts: Sequence[str | None]) -> Any:
        """Return the features as a classifier reads them."""
        n_numeric = 0 if self.names is None else len(self.numeric)
        width = n_numeric if self.names is not None else len(numbers[0]) // self._size
        matrix = np.frombuffer(b"".join(numbers), self.dtype).reshape(len(numbers), width)
        rows = [json.loads(text) for text in texts if text is not None] if self.texts else []
        return self._table(matrix, [list(column) for column in zip(*rows, strict=True)])

    @property
    def _size(self) -> int:
        return np.dtype(self.dtype).itemsize

    @property
    def numeric(self) -> list[str]:
        """The columns of numbers and dates."""
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
        return self.encoded(array, [], backend)

    def encoded(
        self, matrix: NDArray[Any], words: list[list[str | None]], backend: str
    ) -> EncodedFeatures:
        """Encode applicants by their numbers, in which dates are days, and columns of texts."""
        matrix = np.where(np.isnan(matrix), matrix.dtype.type(np.nan), matrix)  # of one kind of NaN
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
        numeric = dict(zip(self.numeric, matrix.T, strict=True))
        text = dict(zip(self.texts, words, strict=True))
        return pa.table(
            {
                name: pa.array(text[name], pa.string())
                if name in text
                else pa.array(self._values(name, numeric[name]))
                for name in self.names
            }
        )


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
        return floats(column.dt.timestamp("ms")) / _DAY  # libraries divide in other ways
    return floats(column)


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
    check_surrogates(f"the column {column.name!r}", [text for text in texts if text is not None])
    return texts


def check_surrogates(what: str, texts: Sequence[str]) -> None:
    """Raise unless texts are whole characters, which can be written as utf-8."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{what} must not hold half a surrogate pair, got {error.object[error.start]!r}; "
            f"remove it."
        ) from error
