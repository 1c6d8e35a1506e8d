"""Tables in and out: numpy, pandas, polars and pyarrow through narwhals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairchance.errors import InputError

__all__ = [
    "ENCODE",
    "UNNAMED",
    "Features",
    "as_array",
    "column",
    "concat",
    "floats",
    "is_frame",
    "is_missing",
    "n_rows",
    "names_and_backend",
    "numeric_columns",
    "plain",
    "read_features",
    "subset",
    "take",
    "to_frame",
    "two_kinds",
    "with_columns",
    "without_mask",
]

ENCODE = "encode them, or give a learner that is a Pipeline with an encoder as its first step"
CONVERT = "make all of its values numbers, or all text in a dataframe, or leave it out"
UNNAMED = ("polars", "pyarrow")  # whose names scikit-learn does not read; polars 2 before its 1.9


@dataclass(frozen=True)
class Features:
    """Features as the library uses them.

    Attributes
    ----------
    X
        A numeric array, or the caller's frame if a learner reads raw columns.
    names
        Column names, None for an array or a frame without names.
    backend
        Name of the caller's kind of frame, ``"numpy"`` for arrays.
    """

    X: Any
    names: tuple[str, ...] | None
    backend: str


def is_frame(X: Any) -> bool:
    """Return whether X is an eager dataframe of a kind that narwhals knows."""
    if isinstance(X, np.ndarray):
        return False
    try:
        native = nw.from_native(X, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError:
        raise InputError("X has two columns of the same name; rename one.") from None
    return isinstance(native, nw.DataFrame)


def names_and_backend(X: Any) -> tuple[tuple[str, ...] | None, str]:
    """Return the column names of a table, None if it has none, and the name of its kind."""
    if not is_frame(X):
        return None, "numpy"
    frame = nw.from_native(X, eager_only=True)
    names = tuple(frame.columns)
    known = names if all(isinstance(name, str) for name in names) else None
    return known, frame.implementation.value


def read_features(X: Any, *, raw: bool, encode: str = ENCODE) -> Features:
    """Turn any table into features.

    ``raw`` keeps a dataframe as it is; ``encode`` ends the message about columns that are not
    numbers.
    """
    known, backend = names_and_backend(X)
    if backend == "numpy":
        return Features(without_mask(X), None, "numpy")
    frame = nw.from_native(X, eager_only=True)
    if raw:
        # scikit-learn selects columns of pandas and polars frames only.
        native = frame.to_pandas() if backend == "pyarrow" else X
        return Features(native, known, backend)
    columns = list(frame.iter_columns())
    text = [str(series.name) for series in columns if not _numeric(series.dtype)]
    for series in columns:
        both = two_kinds(series.to_list()) if series.dtype == nw.Object else ""
        if both:
            raise InputError(f"the column {series.name!r} holds {both}; {CONVERT}.")
    if text:
        raise InputError(
            f"X has columns that are not numbers: {', '.join(map(repr, text))}; {encode}."
        )
    dtype = np.float32 if all(series.dtype == nw.Float32 for series in columns) else np.float64
    array = np.empty((len(frame), len(columns)), dtype=dtype)
    for position, series in enumerate(columns):
        numbers = series.cast(nw.Float64) if series.dtype == nw.Boolean else series
        array[:, position] = numbers.to_numpy()
    return Features(array, known, backend)


def _numeric(dtype: Any) -> bool:
    return bool(dtype.is_numeric() or dtype == nw.Boolean)


def two_kinds(values: Iterable[Any]) -> str:
    """Return what a column of numbers and text holds, as part of a sentence; else nothing.

    Examples
    --------
    >>> two_kinds([None, 1, 2.5, "n/a"]), two_kinds(["a", "1"])
    ("numbers, such as 1, and text, such as 'n/a'", '')
    """
    present = [plain(value) for value in values if value is not None]
    text = next((value for value in present if isinstance(value, str)), None)
    number = next((value for value in present if isinstance(value, int | float)), None)
    if text is None or number is None:
        return ""
    return f"numbers, such as {number!r}, and text, such as {text!r}"


def numeric_columns(frame: Any) -> tuple[str, ...]:
    """Return the names of the columns that hold numbers; none for an array."""
    if frame is None:
        return ()
    columns = nw.from_native(frame, eager_only=True).iter_columns()
    return tuple(str(series.name) for series in columns if _numeric(series.dtype))


def is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which values are missing: NaN, None, or a frame's own mark."""
    if values.dtype.kind != "O":
        return np.asarray(values != values)  # NaN is the value that differs from itself
    return np.array([value is None or str(value) in ("nan", "NaT", "<NA>") for value in values])


def with_columns(X: Any, names: tuple[str, ...] | None) -> Any:
    """Return a frame's columns of these names in this order; raise if one is missing.

    Without names, X is returned as it is.

    Examples
    --------
    >>> import pandas as pd
    >>> with_columns(pd.DataFrame({"id": [7], "debt": [2], "income": [9]}), ("income", "debt"))
       income  debt
    0       9     2
    """
    got, _ = names_and_backend(X)
    if names is None or got is None or got == names:
        return X
    missing = [name for name in names if name not in got]
    if missing:
        raise InputError(
            f"X is missing the columns {', '.join(map(repr, missing))}; it needs "
            f"{', '.join(map(repr, names))}, as in the history."
        )
    return nw.to_native(nw.from_native(X, eager_only=True).select(names))


def floats(series: Any) -> NDArray[np.float64]:
    """Return a column of numbers or truth values as floating point numbers, NaN if missing.

    Decimals go through text, since Arrow turns 0.35 into the floating point number above it.
    """
    if series.dtype == nw.Decimal:
        series = series.cast(nw.String)
    numbers: NDArray[np.float64] = series.cast(nw.Float64).to_numpy()
    return numbers.astype(np.float64, copy=False)


def n_rows(X: Any) -> int:
    """Return the number of rows of an array or frame."""
    return int(X.shape[0])


def take(X: Any, rows: slice | NDArray[Any]) -> Any:
    """Return some rows of an array or frame, in the same kind."""
    if isinstance(X, np.ndarray):
        return X[rows] if isinstance(rows, slice) else X.take(rows, axis=0)  # twice as fast
    frame = nw.from_native(X, eager_only=True)
    return nw.to_native(frame[rows])


def subset(X: Any, mask: NDArray[np.bool_]) -> Any:
    """Return the rows of a mask, without a copy if that is all of them."""
    return X if mask.all() else take(X, np.flatnonzero(mask))


def concat(parts: list[Any]) -> Any:
    """Join frames or arrays of the same columns, one below the other."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    frames = [nw.from_native(part, eager_only=True) for part in parts]
    if frames[0].implementation.is_polars():
        # Whole numbers in one round and fractions in another become fractions.
        return frames[0].implementation.to_native_namespace().concat(parts, how="vertical_relaxed")
    return nw.to_native(nw.concat(frames, how="vertical"))


def without_mask(values: Any) -> Any:
    """Return a masked array as a plain one with NaN for masked values; others as they are.

    Examples
    --------
    >>> without_mask(np.ma.array([[1, 2]], mask=[[False, True]]))
    array([[ 1., nan]])
    """
    if not isinstance(values, np.ma.MaskedArray):
        return values
    data, mask = np.ma.getdata(values), np.ma.getmaskarray(values)
    if not mask.any():
        return data
    kinds = {"f": data.dtype, "i": np.float64, "u": np.float64, "b": np.float64}
    filled = np.array(data, kinds.get(data.dtype.kind, np.object_))
    filled[mask] = np.nan
    return filled


def plain(value: Any) -> Any:
    """Return a numpy scalar as a Python value."""
    return value.item() if isinstance(value, np.generic) else value


def as_array(values: Any) -> NDArray[Any]:
    """Return an array, list, series or frame as a numpy array, with None for masked values."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        filled = np.array(np.ma.getdata(values), np.object_)
        filled[np.ma.getmaskarray(values)] = None
        return filled
    if isinstance(values, np.ndarray):
        return np.asarray(values)
    native = nw.from_native(values, allow_series=True, eager_only=True, pass_through=True)
    return np.asarray(native.to_numpy() if isinstance(native, nw.Series | nw.DataFrame) else native)


def column(values: Any, n: int, name: str, per: str = "row of X") -> NDArray[Any]:
    """Return a one-dimensional array from an array, list, series or one-column frame."""
    array = as_array(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or array.shape[0] != n:
        raise InputError(
            f"{name} must be one column with one value per {per}, {n} in all, "
            f"got shape {array.shape}."
        )
    return array


def to_frame(columns: dict[str, NDArray[Any]], backend: str) -> Any:
    """Return columns as a frame of the named kind; a structured array for numpy."""
    if backend == "numpy":
        kinds = [(name, values.dtype) for name, values in columns.items()]
        table = np.empty(len(next(iter(columns.values()))), dtype=kinds)
        for name, values in columns.items():
            table[name] = values
        return table
    kind: Any = backend
    return nw.to_native(nw.from_dict(columns, backend=kind))
