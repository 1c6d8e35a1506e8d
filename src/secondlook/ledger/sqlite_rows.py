"""Rows as SQLite takes them quickly: many in a statement, made while those before are stored."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from secondlook.ledger.copying import width_of

__all__ = ["LongStatements", "made_ahead"]

# Rows in one statement: to begin one takes as long as to store a row, but to compile one, as each
# call must, takes longer than to store its rows once.
_FEWEST, _MOST, _STATEMENTS = 60, 500, 40
_FEW = 8000  # for which a thread takes as long as it saves
_PREPARED = 1000  # rows at once, without a thread
_NUMBERED = 10_000  # where the statement does not grow with its rows
_END: Any = object()

T = TypeVar("T")


def made_ahead(made: Iterator[T]) -> Generator[T, None, None]:
    """Yield what an iterator makes, each in another thread while the one before is used.

    SQLite stores rows without holding Python up, so that the next ones can be hashed meanwhile.
    Where no thread can be had, as when Python is about to end, each is made when it is asked for.

    Examples
    --------
    >>> list(made_ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    with ThreadPoolExecutor(1) as worker:
        coming = _submitted(worker, made)
        try:
            while coming is not None:
                one = coming.result()
                if one is _END:
                    return
                coming = _submitted(worker, made)
                yield one
        finally:
            del coming  # which may hold an error, and that this frame
        yield from made


def _submitted(worker: ThreadPoolExecutor, made: Iterator[T]) -> Future[T] | None:
    try:
        return worker.submit(next, made, _END)
    except RuntimeError:
        return None


class LongStatements:
    """A table's new rows as statements of many rows, each with the values that it binds.

    Python's driver looks for an adapter for each value that is not int, float, str or bytearray.
    So bytes of one width are bound once a statement, side by side, and cut up by the database;
    other bytes are bound as bytearrays, and 0 in the place of None. Numbered texts need no other
    values: the database counts them, and takes them apart.

    Parameters
    ----------
    table
        Where the rows go.
    columns
        By name: a whole number for all rows, a range, an array, or a sequence of text, bytes or
        None.
    most_bound
        How many values a statement may bind; older builds of SQLite allow 999.

    Attributes
    ----------
    are_many
        Whether it pays to make them in a thread of their own.
    size, part
        How many rows a statement has, at most, and how many are best prepared at once.

    Examples
    --------
    >>> columns = {"program": 1, "person": range(7, 9), "score": np.array([0.5, 0.25])}
    >>> from secondlook.ledger import schema
    >>> [made] = LongStatements(schema.people, columns, 999).of([slice(0, 2)])
    >>> made  # doctest: +NORMALIZE_WHITESPACE
    ('INSERT INTO people (program, person, score) VALUES (1, ?, ?), (1, ?, ?)',
     [7, 0.5, 8, 0.25])
    """

    def __init__(self, table: sa.Table, columns: Mapping[str, Any], most_bound: int) -> None:
        same = {name: str(one) for name, one in columns.items() if isinstance(one, int)}
        varied = {name: one for name, one in columns.items() if name not in same}
        widths = {name: width for name, one in varied.items() if (width := width_of(one))}
        values = {name: one for name, one in varied.items() if name not in widths}
        self._same, self._widths = tuple(same.values()), tuple(widths.values())
        self._blocks, self._values = [varied[name] for name in widths], list(values.values())
        self._marks = tuple("nullif(?, 0)" if _has_gaps(one) else "?" for one in self._values)
        kinds = [table.c[name].type for name in values]
        self._is_numbered = _are_numbered_texts(self._values, kinds)
        n = next(len(one) for one in varied.values())
        wanted = min(max(_FEWEST, n // _STATEMENTS), _MOST)
        allowed = (most_bound - len(widths)) // max(1, len(values))
        self.size = _NUMBERED if self._is_numbered else max(1, min(wanted, allowed))
        self.are_many = n > _FEW
        self.part = self.size * (1 if self.are_many else max(1, _PREPARED // self.size))
        self._into = f"INSERT INTO {table.name} ({', '.join([*same, *widths, *values])})"

    def of(self, parts: Iterable[slice]) -> Iterator[tuple[str, list[Any]]]:
        """Yield the statements of each part of the rows, and what they bind."""
        for rows in parts:
            blocks = [_side_by_side(one[rows]) for one in self._blocks]
            if self._is_numbered:
                numbers, texts = (one[rows] for one in self._values)
                bound = [*blocks, numbers[0], json.dumps(texts, ensure_ascii=False)]
                yield self._into + _counting(self._same, self._widths), bound
            else:
                yield from self._cut(rows.stop - rows.start, blocks, self._row_by_row(rows))

    def _row_by_row(self, rows: slice) -> list[Any]:
        width = len(self._values)
        found: list[Any] = [None] * (width * (rows.stop - rows.start))
        for at, column in enumerate(self._values):
            found[at::width] = _bindable(column[rows])
        return found

    def _cut(self, n: int, blocks: list[bytes], values: list[Any]) -> Iterator[tuple[str, Any]]:
        """Yield statements of n rows, whose bytes and other values are given side by side."""
        width = len(self._values)
        for at in range(0, n, self.size):
            end = min(at + self.size, n)
            bound: list[Any] = [
                one[at * each : end * each] for one, each in zip(blocks, self._widths, strict=True)
            ]
            statement = _inserting(self._into, end - at, self._same, self._widths, self._marks)
            yield statement, bound + values[at * width : end * width]


@lru_cache(8)
def _counting(same: tuple[str, ...], widths: tuple[int, ...]) -> str:
    """Return the rows of numbered texts: bytes, first number and texts are bound in this order."""
    cut = [f"substr(?{at}, key * {one} + 1, {one})" for at, one in enumerate(widths, 1)]
    row = ", ".join([*same, *cut, f"?{len(cut) + 1} + key", "value"])
    return f" SELECT {row} FROM json_each(?{len(cut) + 2})"


@lru_cache(8)
def _inserting(
    into: str, n: int, same: tuple[str, ...], widths: tuple[int, ...], marks: tuple[str, ...]
) -> str:
    """Return the statement that inserts n rows; places of bytes come first, ?1, ?2 and so on."""
    own = ", ".join([*same, "{}", *marks] if widths else [*same, *marks])
    rows = []
    for row in range(n):
        cut = [f"substr(?{at}, {row * one + 1}, {one})" for at, one in enumerate(widths, 1)]
        rows.append(f"({own.format(', '.join(cut))})")
    return f"{into} VALUES {', '.join(rows)}"


def _are_numbered_texts(values: Sequence[Any], kinds: Sequence[Any]) -> bool:
    return len(values) == 2 and isinstance(values[0], range) and isinstance(kinds[1], sa.Text)


def _has_gaps(column: Any) -> bool:
    """Say whether some values may be missing; a column that is still being made may lack any."""
    if isinstance(column, np.ndarray | range):
        return False
    return not isinstance(column, list) or None in column


def _side_by_side(column: Any) -> bytes:
    return column.tobytes() if isinstance(column, np.ndarray) else b"".join(column)


def _bindable(column: Any) -> Sequence[Any]:
    """Return values that need no adapter."""
    if isinstance(column, range):
        return column
    if isinstance(column, np.ndarray):
        is_float = column.dtype.kind == "f"
        return _nan_as_none(column) if is_float else column.astype(np.int64).tolist()
    listed = [0 if one is None else one for one in column] if None in column else column
    if bytes in map(type, column):
        listed = [bytearray(one) if one.__class__ is bytes else one for one in listed]
    return listed


def _nan_as_none(values: NDArray[np.float64]) -> list[float | None]:
    """Return numbers as a database keeps them: SQLite has no NaN."""
    listed: list[float | None] = values.tolist()
    if np.isnan(values).any():
        listed = [None if one != one else one for one in listed]
    return listed
