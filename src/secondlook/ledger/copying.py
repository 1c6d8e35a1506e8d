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
_KINDS = {sa.Integer: ">i4", sa.BigInteger: ">i8", sa.Boolean: "?", sa.Double: ">f8"}


class BinaryRows:
    """A table's new rows: values of one width side by side in an array, then all others.

    Parameters
    ----------
    table
        Where the rows go.
    columns
        By name: a whole number for all rows, a range, an array, or a list of text, bytes or None.

    Attributes
    ----------
    names
        The columns in the order in which each row has them.
    """

    def __init__(self, table: sa.Table, columns: Mapping[str, Any]) -> None:
        fixed: dict[str, tuple[str, Any]] = {}
        loose: dict[str, Sequence[Any]] = {}
        for name, given in columns.items():
            kind = _KINDS.get(type(table.c[name].type))
            values: Any = np.array(given) if isinstance(given, range) else given
            if kind is None:
                width = width_of(values)
                if width is None:
                    loose[name] = values
                elif isinstance(values, np.ndarray):
                    fixed[name] = f"V{width}", values
                else:
                    fixed[name] = f"V{width}", np.frombuffer(b"".join(values), f"V{width}")
            elif isinstance(values, np.ndarray) and _has_nan(values):
                loose[name] = [None if one != one else pack(">d", one) for one in values.tolist()]
            else:
                fixed[name] = kind, values
        self.names = [*fixed, *loose]
        self._fixed, self._loose = list(fixed.values()), list(loose.values())

    def blocks(self, parts: Iterable[slice]) -> Iterator[bytes]:
        """Yield parts of the rows, and what a COPY begins and ends with."""
        yield _BEGIN
        for rows in parts:
            yield self._block(rows)
        yield _END

    def _block(self, rows: slice) -> bytes:
        layout = [("n", ">i2")]
        for at, (kind, _) in enumerate(self._fixed):
            layout += [(f"width{at}", ">i4"), (f"value{at}", kind)]
        head = np.empty(rows.stop - rows.start, layout)
        head["n"] = len(self.names)
        for at, (kind, values) in enumerate(self._fixed):
            head[f"width{at}"] = np.dtype(kind).itemsize
            head[f"value{at}"] = values[rows] if isinstance(values, np.ndarray) else values
        if not self._loose:
            return head.tobytes()
        pieces: list[Iterable[bytes]] = [head.view(f"V{head.itemsize}").tolist()]
        for column in self._loose:
            values = _encoded(column[rows])
            if None in values:
                pieces.append([_NULL if one is None else _length(len(one)) + one for one in values])
            else:
                pieces += [map(_length, map(len, values)), values]
        return b"".join(chain.from_iterable(zip(*pieces, strict=True)))


def width_of(column: Any) -> int | None:
    """Return how many bytes each value has, if all are bytes and have the same number of them."""
    if isinstance(column, np.ndarray):
        return column.dtype.itemsize if column.dtype.kind == "V" else None
    if isinstance(column, range) or type(column[0]) is not bytes or None in column:
        return None
    widths = set(map(len, column))
    return widths.pop() or None if len(widths) == 1 else None


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
