"""Many rows at once: long statements on SQLite, binary COPY on PostgreSQL; lookups of many."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.dialects import postgresql

from secondlook.ledger.copying import BinaryRows, width_of

__all__ = ["as_flags", "columns_of", "insert_columns", "is_one_of", "nan_as_none"]
__all__ += ["none_as_nan", "none_as_other", "where_in"]

_BLOCK = 10_000  # rows that are put together at a time on SQLite
_FIRST, _SENT = 125, 1000  # on PostgreSQL, at first and at most: the server works meanwhile
_FEW = 20  # values for which PostgreSQL looks through an index of pages one by one
_ROWS, _VARIABLES = 60, 900  # at most, in one statement; older builds of SQLite allow 999


def insert_columns(
    connection: sa.Connection,
    *tables: tuple[sa.Table, Mapping[str, Any]],
    prepare: Callable[[slice], None] | None = None,
) -> None:
    """Insert rows that are given column by column, into one table or several.

    Parameters
    ----------
    connection
        Inside a transaction.
    tables
        Where rows go, and their columns by name: a whole number for all rows, a range, an array, or
        a list of text, bytes or None. NaN is kept as NULL: SQLite has no NaN.
    prepare
        Called with rows of the first table before they are sent, to fill arrays in; a server works
        meanwhile on those before.
    """
    given = [_Given(table, columns) for table, columns in tables]
    driver: Any = connection.connection.driver_connection
    if connection.dialect.name == "sqlite":
        for at, one in enumerate(given):
            for rows in slices(one.n, _BLOCK, None if at else prepare):
                _insert_sqlite(driver, one.table.name, one.columns, rows)
    else:
        _copy(driver, [one for one in given if one.n], prepare)


class _Given:
    """Rows for a table, without columns in which there is nothing."""

    def __init__(self, table: sa.Table, columns: Mapping[str, Any]) -> None:
        n = next(len(one) for one in columns.values() if not isinstance(one, int))
        self.table = table
        self.columns = {name: one for name, one in columns.items() if n and not _is_empty(one)}
        self.n = n if self.columns else 0


def _copy(driver: Any, given: list[_Given], prepare: Callable[[slice], None] | None) -> None:
    """Send rows to PostgreSQL; while it works on the last of a table, the next ones are made."""
    names: list[str] = []
    blocks: Iterable[bytes] = ()
    for one, following in zip_longest(given, given[1:]):
        if one is given[0]:
            binary = BinaryRows(one.table, one.columns)
            names, blocks = binary.names, binary.blocks(slices(one.n, _SENT, prepare, first=_FIRST))
        into = f"COPY {one.table.name} ({', '.join(names)}) FROM STDIN (FORMAT BINARY)"
        with driver.cursor() as cursor, cursor.copy(into) as copy:
            for block in blocks:
                copy.write(block)
            if following is not None:
                binary = BinaryRows(following.table, following.columns)
                names, blocks = binary.names, list(binary.blocks(slices(following.n, _SENT)))


def slices(
    n: int,
    size: int,
    prepare: Callable[[slice], None] | None = None,
    *,
    first: int | None = None,
) -> Iterator[slice]:
    """Yield n rows in parts, each when it has been prepared; from a small one on, each is doubled.

    Examples
    --------
    >>> [rows.stop for rows in slices(10, 4, first=1)]
    [1, 3, 7, 10]
    """
    at, step = 0, size if first is None else first
    while at < n:
        rows = slice(at, min(at + step, n))
        if prepare is not None:
            prepare(rows)
        yield rows
        at, step = rows.stop, min(2 * step, size)


def _insert_sqlite(driver: Any, table: str, columns: Mapping[str, Any], rows: slice) -> None:
    """Insert rows in statements of many, since to begin one takes as long as to store a row.

    Python's driver looks for an adapter for each value that is not int, float, str or bytearray.
    So bytes of one width are bound once a statement, side by side, and cut up by the database;
    other bytes are bound as bytearrays, and 0 in the place of None. Numbered texts need no other
    values, and are one statement.
    """
    same = {name: str(one) for name, one in columns.items() if isinstance(one, int)}
    varied = {name: one[rows] for name, one in columns.items() if name not in same}
    widths = {name: width for name, one in varied.items() if (width := width_of(one))}
    blocks = {name: _side_by_side(varied[name]) for name in widths}
    values = {name: one for name, one in varied.items() if name not in widths}
    names = ", ".join([*same, *widths, *values])
    if _are_numbered_texts(values):
        numbers, texts = values.values()
        parts = enumerate(widths.values(), 1)
        cut = [f"substr(?{at}, key * {one} + 1, {one})" for at, one in parts]
        row = ", ".join([*same.values(), *cut, f"{numbers[0]} + key", "value"])
        listed = json.dumps(texts, ensure_ascii=False)
        into = f"INSERT INTO {table} ({names}) SELECT {row} FROM json_each(?{len(widths) + 1})"
        driver.execute(into, [*blocks.values(), listed])
        return
    ready = [_bindable(one) for one in values.values()]
    marks = [mark for _, mark in ready]
    flat = list(chain.from_iterable(zip(*(bound for bound, _ in ready), strict=True)))
    n = rows.stop - rows.start
    at_once = min(_ROWS, (_VARIABLES - len(widths)) // max(1, len(values)))
    for first, end, size in ((0, n - n % at_once, at_once), (n - n % at_once, n, n % at_once)):
        if first < end:
            places = _places(size, list(same.values()), list(widths.values()), marks)
            driver.executemany(
                f"INSERT INTO {table} ({names}) VALUES {places}",
                (
                    [blocks[name][at * one : (at + size) * one] for name, one in widths.items()]
                    + flat[at * len(values) : (at + size) * len(values)]
                    for at in range(first, end, size)
                ),
            )


def _are_numbered_texts(values: Mapping[str, Any]) -> bool:
    kinds = [type(one) for one in values.values()]
    return kinds == [range, list] and set(map(type, [*values.values()][1])) == {str}


def _places(n: int, same: list[str], widths: list[int], marks: Sequence[str]) -> str:
    """Return the places of n rows: those of blocks come first, ?1, ?2 and so on."""
    rows = []
    for row in range(n):
        cut = [f"substr(?{at}, {row * one + 1}, {one})" for at, one in enumerate(widths, 1)]
        first = 1 + len(widths) + row * len(marks)
        own = [mark.format(at) for at, mark in enumerate(marks, first)]
        rows.append(f"({', '.join([*same, *cut, *own])})")
    return ", ".join(rows)


def _side_by_side(column: Any) -> bytes:
    return column.tobytes() if isinstance(column, np.ndarray) else b"".join(column)


def _is_empty(column: Any) -> bool:
    if isinstance(column, np.ndarray):
        return column.dtype.kind == "f" and bool(np.isnan(column).all())
    return not isinstance(column, int | range) and column.count(None) == len(column)


def _bindable(column: Any) -> tuple[Sequence[Any], str]:
    """Return values that need no adapter, and the mark of their places in a statement."""
    if isinstance(column, range):
        return column, "?{}"
    if isinstance(column, np.ndarray):
        is_float = column.dtype.kind == "f"
        return (nan_as_none(column) if is_float else column.astype(np.int64).tolist()), "?{}"
    sparse = None in column
    listed = [0 if one is None else one for one in column] if sparse else column
    if bytes in map(type, column):
        listed = [bytearray(one) if one.__class__ is bytes else one for one in listed]
    return listed, "nullif(?{}, 0)" if sparse else "?{}"


def columns_of(
    connection: sa.Connection, statement: sa.Select[Any], n_columns: int
) -> list[Sequence[Any]]:
    """Return the columns of a result, each as one sequence of what the driver gives."""
    # As one list, cut up: to zip rows takes an iterator for each.
    flat = list(chain.from_iterable(_fetched(connection, statement)))
    return [flat[at::n_columns] for at in range(n_columns)]


def _fetched(connection: sa.Connection, statement: sa.Select[Any]) -> list[tuple[Any, ...]]:
    """Return rows past SQLAlchemy, which would make an object of each and look at every value."""
    result = connection.execute(statement)
    cursor: Any = result.cursor
    rows: list[tuple[Any, ...]] = cursor.fetchall()
    result.close()
    return rows


def where_in(
    connection: sa.Connection,
    statement: sa.Select[Any],
    column: sa.ColumnElement[Any],
    values: Sequence[Any],
) -> list[Sequence[Any]]:
    """Return the columns of rows in which one has one of the values, however many there are."""
    rows = statement.where(is_one_of(connection, column, values))
    return columns_of(connection, rows, len(statement.selected_columns))


def is_one_of(
    connection: sa.Connection, column: sa.ColumnElement[Any], values: Sequence[Any]
) -> sa.ColumnElement[bool]:
    """Return the condition that a column has one of the values, however many there are."""
    # As one text: a driver looks at each item of an array.
    listed: Any = sa.literal(json.dumps(values), sa.Text)
    if connection.dialect.name == "sqlite":
        return column.in_(sa.select(sa.func.json_each(listed).table_valued("value").c.value))
    each = sa.func.json_array_elements_text(sa.cast(listed, postgresql.JSON))
    one = sa.select(sa.cast(each.table_valued("value").c.value, column.type))
    if len(values) > _FEW and _is_found_by_pages(column):
        # The pages of the whole range are looked through once, and each person there is looked up
        # in a hash table, which "is true" asks for. As an array or a join, the server might look
        # through the pages for each value.
        inside = column.between(min(values), max(values))
        return sa.and_(inside, column.in_(one).is_(sa.true()))
    # An array that is not known beforehand: an index is searched for all of it at once.
    return column == sa.any_(sa.func.array(one.scalar_subquery()))


def _is_found_by_pages(column: sa.ColumnElement[Any]) -> bool:
    indexes = column.table.indexes if isinstance(column, sa.Column) else ()
    used = {one.dialect_options["postgresql"]["using"] for one in indexes if column.name in one.c}
    return used == {"brin"}


def nan_as_none(values: NDArray[np.float64]) -> list[float | None]:
    """Return numbers as a database keeps them: SQLite has no NaN."""
    listed: list[float | None] = values.tolist()
    if np.isnan(values).any():
        listed = [None if one != one else one for one in listed]
    return listed


def none_as_nan(values: Sequence[float | None]) -> NDArray[np.float64]:
    """Return what ``nan_as_none`` was given; a NaN that a database holds raises ValueError."""
    found = np.array(values, dtype=np.float64)
    if np.isnan(found).sum() > values.count(None):
        raise ValueError("a number is NaN")
    return found


def none_as_other(values: Sequence[int | None]) -> NDArray[np.int64]:
    """Return whole numbers, with −1 where there is none; other numbers raise ValueError."""
    strange = {*map(type, values)} - {int, type(None)}
    if strange:
        raise ValueError(f"a whole number is of type {strange.pop().__name__}")
    return np.array([-1 if one is None else one for one in values], np.int64)


def as_flags(values: Sequence[Any]) -> NDArray[np.bool_]:
    """Return truth values, which SQLite keeps as 0 and 1; anything else raises ValueError."""
    if not set(values) <= {0, 1}:
        raise ValueError(f"a truth value is 0 or 1, got {max(set(values) - {0, 1}, key=str)!r}")
    return np.array(values, np.bool_)
