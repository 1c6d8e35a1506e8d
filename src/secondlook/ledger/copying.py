"""Rows as PostgreSQL's binary COPY reads them, put together column by column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from struct import pack
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

__all__ = ["BinaryRows", "width_of"]

_BEGIN, _END = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"
_NULL = pack(">i", -1)
_LOOKED_AT = 100  # rows from which the others are guessed
_KINDS = {sa.Integer: ">i4", sa.BigInteger: ">i8", sa.Boolean: "?", sa.Double: ">f8"}


class BinaryRows:
    """A table's new rows: values of one width side by side in an array, then all others.

    Parameters
    ----------
    table
        Where the rows go.
    columns
        By name: a whole number for all rows, a range, an array, or a sequence of text, bytes or
        None.

    Attributes
    ----------
    names
        The columns in the order in which each row has them.
    """

    def __init__(self, table: sa.Table, columns: Mapping[str, Any]) -> None:
        fixed: dict[str, tuple[str, Any]] = {}
        listed: dict[str, Sequence[Any]] = {}
        for name, given in columns.items():
            kind = _KINDS.get(type(table.c[name].type))
            values: Any = given
            if isinstance(given, range):
                values = np.arange(given.start, given.stop, given.step)
            if kind is None and not isinstance(values, np.ndarray):
                listed[name] = values
            elif kind is None:
                fixed[name] = f"V{values.dtype.itemsize}", values
            elif isinstance(values, np.ndarray) and _has_nan(values):
                listed[name] = [None if one != one else pack(">d", one) for one in values.tolist()]
            else:
                fixed[name] = kind, values
        # First what is likely to have one width: bytes, then text, then what has gaps.
        order = sorted(listed, key=lambda name: _expected(listed[name][:_LOOKED_AT]))
        self.names = [*fixed, *order]
        self._fixed, self._listed = list(fixed.values()), [listed[name] for name in order]
        self._room: NDArray[Any] = np.empty(0, _layout(()))

    def blocks(self, parts: Iterable[slice]) -> Iterator[bytes]:
        """Yield parts of the rows, and what a COPY begins and ends with."""
        yield _BEGIN
        for rows in parts:
            yield self._block(rows)
        yield _END

    def _block(self, rows: slice) -> bytes:
        n = rows.stop - rows.start
        fixed = [(k, v[rows] if isinstance(v, np.ndarray) else v) for k, v in self._fixed]
        loose = [column[rows] for column in self._listed]
        while loose and (joined := _of_one_width(loose[0])) is not None:
            fixed.append((joined.dtype.str[1:], joined))
            del loose[0]
        head = self._head(n, tuple(kind for kind, _ in fixed))
        for at, (_, values) in enumerate(fixed):
            head[f"value{at}"] = values
        if not loose:
            return head.tobytes()
        pieces: list[Iterable[bytes]] = [head.view(f"V{head.itemsize}").tolist()]
        for column in map(_encoded, loose):
            if None in column:
                pieces.append([_NULL if one is None else _length(len(one)) + one for one in column])
            else:
                pieces += [map(_length, map(len, column)), column]
        return b"".join(chain.from_iterable(zip(*pieces, strict=True)))

    def _head(self, n: int, kinds: tuple[str, ...]) -> NDArray[Any]:
        """Return room for the beginnings of n rows, the same as for the part before if it fits."""
        layout = _layout(kinds)
        if self._room.shape != (n,) or self._room.dtype != layout:
            room: Any = np.empty(n, layout)
            room["n"] = len(self.names)
            for at, kind in enumerate(kinds):
                room[f"width{at}"] = np.dtype(kind).itemsize
            self._room = room
        return self._room


@cache
def _layout(kinds: tuple[str, ...]) -> np.dtype[Any]:
    """Return a row's beginning: how many values, then the width and the value of each."""
    pairs = [[(f"width{at}", ">i4"), (f"value{at}", kind)] for at, kind in enumerate(kinds)]
    return np.dtype([("n", ">i2"), *chain.from_iterable(pairs)])


def width_of(column: Any) -> int | None:
    """Return how many bytes each value has, if all are bytes and have the same number of them."""
    if isinstance(column, np.ndarray):
        return column.dtype.itemsize if column.dtype.kind == "V" else None
    if not isinstance(column, list) or type(column[0]) is not bytes or None in column:
        return None
    widths = set(map(len, column))
    return widths.pop() or None if len(widths) == 1 else None


def _expected(first: Sequence[Any]) -> tuple[bool, bool]:
    return None in first, type(first[0]) is not bytes


def _of_one_width(column: Any) -> NDArray[np.void] | None:
    """Return a column side by side if it is bytes or text of one width, without gaps; else None."""
    if {*map(type, column)} == {str}:
        width, joined = len(column[0]), "".join(column).encode()
        # A letter of several bytes makes it longer.
        is_even = width and {*map(len, column)} == {width} and len(joined) == width * len(column)
        return np.frombuffer(joined, f"V{width}") if is_even else None
    found = width_of(column)
    return None if found is None else np.frombuffer(b"".join(column), f"V{found}")


@cache
def _length(n: int) -> bytes:
    return pack(">i", n)


def _encoded(values: Any) -> Any:
    """Return text as bytes, and what is no text as it is."""
    kinds = set(map(type, values))
    if kinds == {str}:
        return list(map(str.encode, values))
    if str in kinds:
        return [one.encode() if isinstance(one, str) else one for one in values]
    return values


def _has_nan(values: NDArray[Any]) -> bool:
    return values.dtype.kind == "f" and bool(np.isnan(values).any())
