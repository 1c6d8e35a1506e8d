"""Many rows at once: executemany on SQLite, binary COPY on PostgreSQL, lookups in parts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.dialects import postgresql

__all__ = ["columns_of", "insert_rows", "nan_as_none", "none_as_nan", "none_as_other", "where_in"]

_POSTGRES = {
    sa.Integer: "int4",
    sa.BigInteger: "int8",
    sa.Text: "text",
    sa.LargeBinary: "bytea",
    sa.Boolean: "bool",
    sa.Double: "float8",
}


def insert_rows(
    connection: sa.Connection, table: sa.Table, names: Sequence[str], rows: Iterable[Sequence[Any]]
) -> None:
    """Insert rows whose values stand in the order of ``names``."""
    listed = ", ".join(names)
    driver: Any = connection.connection.driver_connection
    if connection.dialect.name == "sqlite":
        marks = ", ".join("?" * len(names))
        driver.executemany(f"INSERT INTO {table.name} ({listed}) VALUES ({marks})", rows)
        return
    into = f"COPY {table.name} ({listed}) FROM STDIN (FORMAT BINARY)"
    with driver.cursor() as cursor, cursor.copy(into) as copy:
        copy.set_types([_POSTGRES[type(table.c[name].type)] for name in names])
        for row in rows:
            copy.write_row(row)


def columns_of(
    connection: sa.Connection, statement: sa.Select[Any], n_columns: int
) -> list[Sequence[Any]]:
    """Return the columns of a result, each as one sequence."""
    rows = connection.execute(statement).fetchall()
    return list(zip(*rows, strict=True)) if rows else [()] * n_columns


def where_in(
    connection: sa.Connection,
    statement: sa.Select[Any],
    column: sa.ColumnElement[Any],
    values: Sequence[Any],
) -> Sequence[Any]:
    """Return the rows of a statement whose column has one of the values, however many there are."""
    if connection.dialect.name == "sqlite":
        one = sa.func.json_each(json.dumps(values)).table_valued("value").c.value
        return connection.execute(statement.where(column.in_(sa.select(one)))).fetchall()
    listed = sa.literal(list(values), postgresql.ARRAY(column.type))
    return connection.execute(statement.where(column == sa.any_(listed))).fetchall()


def nan_as_none(values: NDArray[np.float64]) -> list[float | None]:
    """Return numbers as a database keeps them: SQLite has no NaN."""
    listed: list[float | None] = values.tolist()
    if np.isnan(values).any():
        listed = [None if one != one else one for one in listed]
    return listed


def none_as_nan(values: Sequence[float | None]) -> NDArray[np.float64]:
    """Return what ``nan_as_none`` was given."""
    return np.array(values, dtype=np.float64)


def none_as_other(values: Sequence[int | None]) -> NDArray[np.int64]:
    """Return whole numbers, with −1 where there is none."""
    return np.array([-1 if one is None else one for one in values], np.int64)
