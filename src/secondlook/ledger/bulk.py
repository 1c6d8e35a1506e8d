"""Many rows at once: long statements on SQLite, binary COPY on PostgreSQL; lookups of many."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from itertools import chain, zip_longest
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.dialects import postgresql

from secondlook.ledger.copying import BinaryRows
from secondlook.ledger.sqlite_rows import LongStatements, made_ahead

__all__ = ["as_flags", "columns_of", "insert_columns", "is_one_of"]
__all__ += ["none_as_nan", "none_as_other", "where_in"]

_FIRST, _SENT = 125, 500  # on PostgreSQL, at first and at most: the server works meanwhile
_FEW = 20  # values for which PostgreSQL looks through an index of pages one by one


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
        a sequence of text, bytes or None, which is asked for part by part. NaN is kept as NULL:
        SQLite has no NaN.
    prepare
        Called with rows of the first table before they are sent, to fill arrays in; the database
        works meanwhile on those before.
    """
    given = [one for one in map(_Given, *zip(*tables, strict=True)) if one.n]
    driver: Any = connection.connection.driver_connection
    if connection.dialect.name == "sqlite":
        _execute(driver, given, prepare)
    else:
        _copy(driver, given, prepare)


class _Given:
    """Rows for a table, without columns in which there is nothing."""

    def __init__(self, table: sa.Table, columns: Mapping[str, Any]) -> None:
        n = next(len(one) for one in columns.values() if not isinstance(one, int))
        self.table = table
        self.columns = {name: one for name, one in columns.items() if n and not _is_empty(one)}
        self.n = n if self.columns else 0


def _execute(driver: Any, given: list[_Given], prepare: Callable[[slice], None] | None) -> None:
    """Insert rows into SQLite; while it stores some, the next ones are made."""
    most_bound = driver.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)
    made = [LongStatements(one.table, one.columns, most_bound) for one in given]
    statements = chain.from_iterable(
        rows.of(slices(one.n, rows.part, prepare if one is given[0] else None))
        for one, rows in zip(given, made, strict=True)
    )
    are_many = any(rows.are_many for rows in made)
    with closing(made_ahead(statements)) if are_many else nullcontext(statements) as coming:
        for statement, bound in coming:
            driver.execute(statement, bound)


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


def _is_empty(column: Any) -> bool:
    if isinstance(column, np.ndarray):
        return column.dtype.kind == "f" and bool(np.isnan(column).all())
    return isinstance(column, list) and column.count(None) == len(column)


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


def none_as_nan(values: Sequence[float | None]) -> NDArray[np.float64]:
    """Return numbers, with NaN where there is none; a NaN in the database raises ValueError."""
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
