"""Arrow columns as plain types, and as text.

This module imports nothing slow, since commands need it before they know whether they will run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from fairchance.errors import InputError
from fairchance.extras import arrow

__all__ = ["NUMBER", "as_text", "is_whole", "plain_types"]

NUMBER = r"^\s*[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|(?i:inf|infinity))\s*$"

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")


def is_whole(text: str) -> bool:
    """Return whether a text is a whole number of 64 bits, in the one way that it is written back.

    Examples
    --------
    >>> [is_whole(text) for text in ("7", "-7", "007", "1_000", "9" * 19)]
    [True, True, False, False, False]
    """
    return _WHOLE.fullmatch(text) is not None and -(2**63) <= int(text) < 2**63


def plain_types(table: Any) -> Any:
    """Return a table with categories as text, decimals as floats and days in milliseconds as times.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"job": pa.array(["clerk"]).dictionary_encode()})
    >>> plain_types(table).schema.field("job").type
    DataType(string)
    """
    pa = arrow()
    for at, sent in enumerate(table.columns):
        column = sent
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if pa.types.is_decimal(kind):
            column = column.cast(kind).cast(pa.string())  # a number would be off by one step
            kind = pa.float64()
        elif pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            kind = pa.string()
        elif pa.types.is_date64(kind):
            kind = pa.timestamp("ms")
        if kind != column.type:
            table = table.set_column(at, table.column_names[at], column.cast(kind))
    return table


def as_text(table: Any, names: Iterable[str], source: str) -> Any:
    """Return a table with some columns of text, whole numbers or truth values as text.

    Examples
    --------
    >>> import pyarrow as pa
    >>> as_text(pa.table({"id": [7.0, None]}), ["id"], "people.parquet")["id"].to_pylist()
    ['7', None]
    """
    pa, compute = arrow(), arrow("compute")
    for name in names:
        column = table[name]
        kind = column.type
        if pa.types.is_string(kind):
            continue
        if pa.types.is_floating(kind):  # pandas turns whole numbers with gaps into floats
            column = compute.if_else(compute.is_nan(column), pa.scalar(None, kind), column)
            exact = compute.less(compute.abs(column), 2.0**53)
            whole = compute.and_(exact, compute.equal(compute.floor(column), column))
            fits = compute.all(whole, min_count=0).as_py()
            column = column.cast(pa.int64()) if fits else column
            kind = column.type
        if not (pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind)):
            raise InputError(
                f"the column {name!r} of {source} must hold text or whole numbers, got {kind}; "
                f"convert it."
            )
        table = table.set_column(table.column_names.index(name), name, column.cast(pa.string()))
    return table
