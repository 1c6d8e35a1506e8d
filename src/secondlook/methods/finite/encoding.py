"""From discrete columns to numbered cells: a cell is a distinct row of features in a group.

Numbers are given once and stay: new values and new cells go behind the known ones, sorted among
themselves, so that the order of rows does not matter. Reading a batch changes nothing; it returns
what the table of cells becomes if the batch is recorded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from secondlook.errors import InputError
from secondlook.frames import as_array, check_columns, is_frame, is_missing

__all__ = ["CellColumn", "CellTable", "Placed", "columns_of"]

Codes = NDArray[np.int32]

_DENSE = 2**24  # combinations of values up to which a table of all of them is laid out
_MOST = 2**62  # keys stay below it
_FEW = 8  # distinct words that are compared one by one


class CellTypeError(InputError, TypeError):
    """Values that no cell can be made of, whatever they are."""


def columns_of(
    X: Any, expected: tuple[str, ...] | None
) -> tuple[list[Any], tuple[str, ...] | None, str]:
    """Split a table into columns, with their names and the kind of table.

    Examples
    --------
    >>> columns, names, backend = columns_of([[1, 5], [2, 6]], None)
    >>> [one.tolist() for one in columns], names, backend
    ([[1, 2], [5, 6]], None, 'numpy')
    """
    if is_frame(X):
        frame = nw.from_native(X, eager_only=True)
        names = tuple(map(str, frame.columns))
        check_columns(expected, names)
        return list(frame.iter_columns()), names, frame.implementation.value
    if issparse(X):
        raise CellTypeError("X is sparse, and sparse data are not supported; pass a dense table.")
    table = as_array(X)
    if table.ndim == 1 and table.dtype.kind != "f":
        return [table], None, "numpy"
    if table.ndim != 2:
        raise InputError(
            f"X must be a table with a column a feature, or one column of cell numbers, which are "
            f"whole, got shape {table.shape}. Reshape your data, one column with "
            f"X.reshape(-1, 1) and one person with X.reshape(1, -1)."
        )
    if table.shape[1] == 0:
        raise InputError(
            f"X has 0 feature(s) (shape={table.shape}) while a minimum of 1 is required."
        )
    return [table[:, j] for j in range(table.shape[1])], None, "numpy"


@dataclass(frozen=True)
class CellColumn:
    """The known values of one column; a value's code is its place.

    Parameters
    ----------
    values
        Known values: whole numbers, numbers or words.
    """

    values: NDArray[Any]

    def encode(self, column: Any, name: str) -> tuple[Codes, CellColumn]:
        """Return everybody's code, and the column with the values it has not seen before.

        Examples
        --------
        >>> codes, grown = CellColumn(np.array([7])).encode(np.array([5, 7, 5]), "age")
        >>> codes.tolist(), grown.values.tolist()
        ([1, 0, 1], [7, 5])
        """
        distinct, place = _distinct(column, name)
        grown = self._with(distinct, name)
        order = np.argsort(grown.values)
        spot = order[np.searchsorted(grown.values, distinct, sorter=order)]
        return spot.astype(np.int32).take(place), grown

    def of(self, codes: Codes) -> tuple[CellColumn, Codes]:
        """Return the column with the values that some codes have, and these codes in it.

        Examples
        --------
        >>> column, codes = CellColumn(np.array([7, 5, 6])).of(np.array([2, 0, 2], np.int32))
        >>> column.values.tolist(), codes.tolist()
        ([7, 6], [1, 0, 1])
        """
        used, place = np.unique(codes, return_inverse=True)
        return CellColumn(self.values[used]), place.reshape(codes.shape).astype(np.int32)

    def _with(self, distinct: NDArray[Any], name: str) -> CellColumn:
        if self.values.size == 0:
            return CellColumn(distinct)
        if distinct.size == 0:
            return self
        if (self.values.dtype.kind == "U") != (distinct.dtype.kind == "U"):
            raise InputError(
                f"column {name} holds {_kind(distinct)}, and held {_kind(self.values)} before; "
                f"a cell is known by its values, so convert them."
            )
        new = np.setdiff1d(distinct, self.values)
        return CellColumn(np.concatenate([self.values, new])) if new.size else self


def _kind(values: NDArray[Any]) -> str:
    return "words" if values.dtype.kind == "U" else "numbers"


def _distinct(column: Any, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the distinct values of a column, sorted, and the place of each row among them."""
    if isinstance(column, nw.Series):
        if column.dtype == nw.String or isinstance(column.dtype, nw.Categorical | nw.Enum):
            return _distinct_words(column, name)
        if not (column.dtype.is_numeric() or column.dtype == nw.Boolean):
            raise InputError(
                f"column {name} holds {column.dtype}; a cell is made of numbers, words or truth "
                f"values, so convert it or leave it out."
            )
        _check_no_gaps(int(column.null_count()), name)
        column = column.to_numpy()
    if column.dtype.kind == "O":
        _check_no_gaps(int(is_missing(column).sum()), name)
        column = np.array(column.tolist())
    if column.dtype.kind == "b":
        column = column.view(np.uint8) if column.flags.c_contiguous else column.astype(np.uint8)
    if column.dtype.kind == "U":
        return _by_comparison(column)
    if column.dtype.kind == "c":
        raise CellTypeError(f"Complex data not supported, got them in column {name}; convert it.")
    if column.dtype.kind not in "iuf":
        raise CellTypeError(
            f"column {name} holds values of type {column.dtype}; each argument must be a string or "
            f"a number, or a truth value, so convert it or leave it out."
        )
    return _distinct_numbers(column, name)


def _check_no_gaps(missing: int, name: str) -> None:
    if missing:
        raise InputError(
            f"column {name} has no value (NaN or None) in {missing} rows; fill them in, for "
            f"example with a value that means unknown, or leave these rows out."
        )


def _distinct_words(series: Any, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    _check_no_gaps(int(series.null_count()), name)
    words = sorted(map(str, series.unique().to_list()))
    if not words:
        return np.empty(0, np.str_), np.empty(0, np.int32)
    if isinstance(series.dtype, nw.Categorical | nw.Enum):
        series = series.cast(nw.String)
    place = series.replace_strict(words, list(range(len(words))), return_dtype=nw.Int32)
    return np.array(words), place.to_numpy()


def _by_comparison(words: NDArray[np.str_]) -> tuple[NDArray[Any], NDArray[Any]]:
    distinct = np.unique(words)
    if distinct.size > _FEW:
        return distinct, np.searchsorted(distinct, words).astype(np.int32)
    place = np.zeros(words.shape, np.int32)
    for code, word in enumerate(distinct[1:], start=1):
        place[words == word] = code
    return distinct, place


def _distinct_numbers(column: NDArray[Any], name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    if column.size == 0:
        return np.empty(0, np.int64), np.empty(0, np.int32)
    if column.dtype.kind == "f":
        with np.errstate(invalid="ignore", over="ignore"):
            if not np.isfinite(column.sum()):
                _check_no_gaps(int((~np.isfinite(column)).sum()), name)
            whole = column.astype(np.int64)
        if not np.array_equal(whole, column):
            distinct, place = np.unique(column.astype(np.float64), return_inverse=True)
            return distinct, place
        column = whole
    low, high = int(column.min()), int(column.max())
    if high >= 2**63:
        raise InputError(f"column {name} must be below 2**63, got {high}; pass it as words.")
    if column.dtype == np.uint64:
        column = column.astype(np.int64)  # numpy counts in these
    if high - low >= max(2**16, min(4 * column.size, _DENSE)):
        distinct, place = np.unique(column.astype(np.int64), return_inverse=True)
        return distinct, place
    shifted = column.astype(np.int64, copy=False) - low if low else column
    seen = np.flatnonzero(np.bincount(shifted, minlength=high - low + 1))
    rank = np.zeros(high - low + 1, np.int32)
    rank[seen] = np.arange(seen.size)
    return seen + low, rank.take(shifted)


@dataclass(frozen=True)
class Placed:
    """Where the people of a batch belong.

    Attributes
    ----------
    cell
        Number of each person's cell.
    heads
        People of the batch in each cell of ``table``.
    table
        The table with the cells that the batch brings.
    """

    cell: NDArray[np.int32]
    heads: NDArray[np.int64]
    table: CellTable


@dataclass(frozen=True)
class CellTable:
    """All known cells.

    Parameters
    ----------
    columns
        The features, and the group as the last.
    codes
        A row a cell: the code of its value in each column.
    names
        Names of the columns, for what is said to people.

    Examples
    --------
    >>> table = CellTable.empty(("age", "group"))
    >>> placed = table.place([np.array([30, 40, 30]), np.array(["a", "a", "b"])])
    >>> placed.cell.tolist(), placed.heads.tolist(), placed.table.X.tolist()
    ([0, 2, 1], [1, 1, 1], [[30], [30], [40]])
    """

    columns: tuple[CellColumn, ...]
    codes: Codes
    names: tuple[str, ...]

    @staticmethod
    def empty(names: tuple[str, ...]) -> CellTable:
        """Return a table without cells."""
        columns = tuple(CellColumn(np.empty(0)) for _ in names)
        return CellTable(columns, np.empty((0, len(names)), np.int32), names)

    def __len__(self) -> int:
        return int(self.codes.shape[0])

    @property
    def group(self) -> NDArray[np.intp]:
        """Code of each cell's group."""
        return self.codes[:, -1].astype(np.intp)

    @property
    def groups(self) -> NDArray[Any]:
        """All groups, by code."""
        return self.columns[-1].values

    @property
    def X(self) -> NDArray[Any]:  # noqa: N802 - scikit-learn's name for features
        """Features, a row a cell; objects if some are words."""
        parts = [one.values[code] for one, code in self._features()]
        if any(part.dtype.kind == "U" for part in parts):
            parts = [part.astype(object) for part in parts]
        return np.column_stack(parts)

    def of(self, cells: NDArray[np.bool_]) -> CellTable:
        """Return the table of some cells, without feature values that none of them has."""
        if cells.all():
            return self
        codes = self.codes[cells]
        *features, groups = self.columns
        parts = [one.of(code) for one, code in zip(features, codes.T[:-1], strict=True)]
        columns = (*(column for column, _ in parts), groups)
        coded = [*(code for _, code in parts), codes[:, -1]]
        return replace(self, columns=columns, codes=np.column_stack(coded).astype(np.int32))

    def _features(self) -> Any:
        return zip(self.columns[:-1], self.codes.T[:-1], strict=True)

    def place(self, columns: list[Any]) -> Placed:
        """Find everybody's cell; combinations not seen before become new cells."""
        if len(columns) != len(self.columns):
            raise InputError(
                f"X has {len(columns) - 1} features, but FiniteClassifier is expecting "
                f"{len(self.columns) - 1} features as input, the columns of the history; pass them."
            )
        both = zip(self.columns, columns, self.names, strict=True)
        read = [known.encode(column, name) for known, column, name in both]
        grown = replace(self, columns=tuple(column for _, column in read))
        codes = [code for code, _ in read]
        sizes = [max(column.values.size, 1) for column in grown.columns]
        if np.prod(np.array(sizes, dtype=np.float64)) <= _DENSE:
            return grown._place_in_table(codes, sizes)
        return grown._place_by_sorting(codes, sizes)

    def _place_in_table(self, codes: list[Codes], sizes: list[int]) -> Placed:
        """Look combinations up in a table of all that are possible."""
        keys = _mixed(codes, sizes)
        place = np.full(int(np.prod(sizes)), -1, np.int32)
        place[_mixed(list(self.codes.T), sizes)] = np.arange(len(self))
        heads = np.bincount(keys, minlength=place.size)
        new = np.flatnonzero((heads > 0) & (place < 0))
        place[new] = len(self) + np.arange(new.size)
        fresh = np.column_stack(np.unravel_index(new, sizes)).astype(np.int32)
        table = replace(self, codes=np.vstack([self.codes, fresh]))
        in_cell = np.zeros(len(table), np.int64)
        held = np.flatnonzero(heads)
        in_cell[place[held]] = heads[held]
        return Placed(place.take(keys), in_cell, table)

    def _place_by_sorting(self, codes: list[Codes], sizes: list[int]) -> Placed:
        """Look combinations up among those there are, where a table of all would be too large."""
        everybody = [np.concatenate(both) for both in zip(self.codes.T, codes, strict=True)]
        key, size = everybody[0].astype(np.int64), sizes[0]
        for code, n_values in zip(everybody[1:], sizes[1:], strict=True):
            if size * n_values >= _MOST:
                distinct, key = np.unique(key, return_inverse=True)
                size = distinct.size
            key = key * n_values + code
            size *= n_values
        distinct, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        known = first < len(self)
        place = np.empty(distinct.size, np.int32)
        place[known] = first[known]
        place[~known] = len(self) + np.arange((~known).sum())
        fresh = np.column_stack([code[first[~known]] for code in everybody])
        table = replace(self, codes=np.vstack([self.codes, fresh]))
        cell = place[inverse[len(self) :]]
        return Placed(cell, np.bincount(cell, minlength=len(table)), table)


def _mixed(codes: list[Codes], sizes: list[int]) -> NDArray[np.int32]:
    """Return a number for each combination of codes, the last column fastest; below 2²⁴ here."""
    key = codes[0].astype(np.int32)
    for code, size in zip(codes[1:], sizes[1:], strict=True):
        key *= np.int32(size)
        key += code
    return key
