"""Rows on their way into a database, past SQLAlchemy: in bulk, and one by one into an open round.

A process that decides one application after another keeps a connection open for them, since opening
one takes longer than a durable insert. It is closed before the process forks: neither SQLite nor
PostgreSQL bears a connection in two processes.
"""

from __future__ import annotations

import os
import random
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Condition
from typing import Any
from weakref import WeakSet

import sqlalchemy as sa

from fairchance.errors import KnownApplicationError, LedgerError, RoundClosedError
from fairchance.ledger import database, schema
from fairchance.ledger.base import Entry
from fairchance.ledger.chain import Columns, StoredRows

__all__ = ["BLOCK", "RESERVE", "SETTINGS", "Inserter", "insert_rows", "number_rows"]

BLOCK = 64  # numbers of applicants that a process takes at once on PostgreSQL
_FEW = 100  # rows that are sent to PostgreSQL one by one
_PAUSE = 0.0003  # seconds between two attempts to write to SQLite
_LONGER = 0.01  # seconds, while somebody writes more than an application

# SQLite waits as long for other writers, by the timeout of its connections. A server may be set up
# not to wait for its disk (synchronous_commit = off), and would lose answers if it is killed.
SETTINGS = f"""
    SELECT set_config('lock_timeout', '{database.WAIT * 1000}ms', true),
        set_config('synchronous_commit',
            coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), true)
"""
# A row that is on the disk is written after its number was taken, so this need not wait for the
# disk.
RESERVE = """
    WITH setting AS (SELECT set_config('synchronous_commit', 'off', true))
    UPDATE rounds SET reserved = reserved + %s FROM setting
    WHERE program = %s AND opened = %s AND closed IS NULL RETURNING reserved
"""
_SHARED_LOCK = "SELECT pg_advisory_xact_lock_shared(%s, %s)"
_PROGRAM = "SELECT program FROM programs WHERE name = {}"
_OPEN = """
    SELECT 1 FROM rounds JOIN entries ON entries.program = rounds.program AND number = opened
    WHERE rounds.program = {} AND rounds.round = {} AND closed IS NULL AND hash = {}
"""

# The types of columns for PostgreSQL's binary COPY.
_COPY_TYPES = {
    sa.BigInteger: "int8",
    sa.Integer: "int4",
    sa.Text: "text",
    sa.LargeBinary: "bytea",
    sa.Boolean: "bool",
    sa.Double: "float8",
}


def insert_rows(driver: Any, table: sa.Table, program: int, columns: Columns) -> None:
    """Insert rows in bulk."""
    n = len(next(iter(columns.values())))
    if not n:
        return
    columns = {"program": [program] * n, **columns}
    rows = zip(*columns.values(), strict=True)
    names = tuple(columns)
    if isinstance(driver, sqlite3.Connection):
        driver.executemany(_insert(table.name, names, "?"), rows)
        return
    into = f"{table.name} ({', '.join(names)})"
    with driver.cursor() as cursor, cursor.copy(f"COPY {into} FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types([_COPY_TYPES[type(table.c[name].type)] for name in names])
        for row in rows:
            copy.write_row(row)


@cache
def _insert(table: str, names: tuple[str, ...], mark: str) -> str:
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join([mark] * len(names))})"


@cache
def _insert_if_open(table: sa.Table, names: tuple[str, ...]) -> str:
    """Return PostgreSQL's statement that inserts a row if a round is open."""
    columns = ("program", *names)
    values = [f"%s::{_COPY_TYPES[type(table.c[name].type)]}" for name in columns]
    return (
        f"INSERT INTO {table.name} ({', '.join(columns)}) SELECT {', '.join(values)} "
        f"WHERE EXISTS ({_OPEN.format(*['%s'] * 3)})"
    )


def number_rows(rows: StoredRows, first: int) -> None:
    """Give applicants the numbers from one on."""
    persons = range(first, first + len(rows.people["person"]))
    for table in (rows.people, rows.group_values):
        if table["person"]:
            table["person"][:] = persons  # type: ignore[index]


class Inserter:
    """Adds applicants with their decisions to open rounds of a ledger."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._kind = _FileLine if engine.dialect.name == "sqlite" else _ServerLine
        self._idle: list[_Line] = []
        self._n_busy, self._changed = 0, Condition()
        _inserters.add(self)

    def add(self, program: str, opened: Entry, rows: StoredRows) -> None:
        """Give applicants numbers and add them to the round, durably, or raise."""
        with database.translating_errors(self._engine):
            found = self._add(program, opened, rows)
        if found == "closed":
            raise RoundClosedError(
                f"round {opened.says['round']} of program {program!r} is closed; decide in the "
                f"next one."
            )
        if found == "known":
            names = rows.people["application"]
            who = f"the application {names[0]!r}" if len(names) == 1 else "one of the applications"
            raise KnownApplicationError(
                f"{who} is in the ledger already; an applicant who applies again needs a new id."
            )

    def _add(self, program: str, opened: Entry, rows: StoredRows) -> str:
        line: _Line | None = None
        try:
            with self._line() as line:
                return line.add(program, opened, rows)
        except Exception:
            if line is None or line.is_new or not line.is_lost:
                raise
        # The server ended a connection that was kept here. If it recorded the rows before, they are
        # known now.
        self.close()
        with self._line() as line:
            return line.add(program, opened, rows)

    def close(self) -> None:
        """Close connections that nobody uses."""
        with self._changed:
            self._close()

    def _close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def _line(self) -> Iterator[_Line]:
        with self._changed:
            self._n_busy += 1
            line = self._idle.pop() if self._idle else None
        try:
            if line is not None and not line.is_usable():
                line.close()
                line = None
            line = line or self._kind(self._engine)
            try:
                yield line
            except BaseException:
                line.close()
                raise
            line.is_new = False
            with self._changed:
                self._idle.append(line)
        finally:
            with self._changed:
                self._n_busy -= 1
                self._changed.notify_all()

    def pause(self) -> None:
        """Close all connections, and let no other thread open one until ``resume``."""
        self._changed.acquire()
        while self._n_busy:
            self._changed.wait()
        self._close()

    def resume(self) -> None:
        """Go on after ``pause``."""
        self._changed.release()


_inserters: WeakSet[Inserter] = WeakSet()
_paused: list[Inserter] = []


def _before_fork() -> None:
    for inserter in list(_inserters):
        inserter.pause()
        _paused.append(inserter)


def _after_fork() -> None:
    while _paused:
        _paused.pop().resume()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )


class _Line(ABC):
    """A connection that one thread uses at a time."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._proxy = engine.raw_connection()
        self._driver: Any = self._proxy.driver_connection
        self._numbers: dict[str, int] = {}  # of programs
        self.is_new, self.is_lost = True, False

    def close(self) -> None:
        """Close the connection."""
        self._proxy.close()

    def _number(self, program: str, mark: str) -> int:
        if program not in self._numbers:
            row = self._driver.execute(_PROGRAM.format(mark), (program,)).fetchone()
            self._driver.rollback()
            if row is None:
                raise LedgerError(f"the ledger has no program {program!r}.")
            self._numbers[program] = row[0]
        return self._numbers[program]

    @abstractmethod
    def is_usable(self) -> bool:
        """Return whether the connection still leads to the ledger."""

    @abstractmethod
    def add(self, program: str, opened: Entry, rows: StoredRows) -> str:
        """Add rows to an open round; return "closed" or "known" if nothing was added."""


class _FileLine(_Line):
    """A connection to SQLite."""

    _NEXT = "SELECT coalesce(max(person), -1) + 1 FROM people WHERE program = ?"

    def __init__(self, engine: sa.Engine) -> None:
        self._path = Path(str(engine.url.database)).absolute()
        self._file = self._identity()
        super().__init__(engine)
        for setting in database.BEFORE_WRITING:
            self._driver.execute(f"PRAGMA {setting}").close()
        self._driver.execute("PRAGMA busy_timeout=0").close()

    def _identity(self) -> tuple[int, int] | None:
        try:
            status = os.stat(self._path)
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def is_usable(self) -> bool:
        """Return whether the file is still the one that was opened; it may have been replaced."""
        return self._identity() == self._file

    def add(self, program: str, opened: Entry, rows: StoredRows) -> str:
        """Add rows, in a transaction that excludes all other writers."""
        number, execute = self._number(program, "?"), self._driver.execute
        self._begin()
        try:
            this = (number, opened.says["round"], opened.hash)
            if execute(_OPEN.format(*"???"), this).fetchone() is None:
                execute("ROLLBACK")
                return "closed"
            number_rows(rows, execute(self._NEXT, (number,)).fetchone()[0])
            insert_rows(self._driver, schema.people, number, rows.people)
            insert_rows(self._driver, schema.group_values, number, rows.group_values)
        except sqlite3.IntegrityError as error:
            execute("ROLLBACK")
            if error.sqlite_errorcode != sqlite3.SQLITE_CONSTRAINT_UNIQUE:
                raise
            return "known"
        with database.reporting_lost_commits(self._engine):
            execute("COMMIT")
        return ""

    def _begin(self) -> None:
        """Wait until nobody else writes; SQLite itself would sleep for up to .1 s at a time."""
        begun = time.monotonic()
        while True:
            try:
                self._driver.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                waited = time.monotonic() - begun
                is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not is_busy or waited > database.WAIT:
                    raise
            time.sleep(random.uniform(0.5, 1.5) * (_PAUSE if waited < _LONGER else _LONGER / 5))


class _ServerLine(_Line):
    """A connection to PostgreSQL, with the numbers of applicants that this process has taken."""

    def __init__(self, engine: sa.Engine) -> None:
        super().__init__(engine)
        from psycopg import IsolationLevel  # noqa: PLC0415 - an extra

        self._driver.rollback()
        # With an older view a round may look open that was closed while this waited.
        self._driver.isolation_level = IsolationLevel.READ_COMMITTED
        self._block: tuple[bytes, int, int] = b"", 0, 0  # of an opening; the next number, the end

    def is_usable(self) -> bool:
        """Return whether the server has not ended the connection, as far as is known here."""
        return not (self._driver.closed or self._driver.broken)

    def add(self, program: str, opened: Entry, rows: StoredRows) -> str:
        """Add rows, in a transaction that excludes only the closing of the round."""
        import psycopg  # noqa: PLC0415 - an extra

        driver, number = self._driver, self._number(program, "%s")
        n, this = len(rows.people["person"]), (number, opened.says["round"], opened.hash)
        try:
            first = self._reserve(number, opened, n)
            if first is None:
                return "closed"
            number_rows(rows, first)
            is_open = self._send(this, rows) if n <= _FEW else self._copy(this, rows)
        except psycopg.errors.UniqueViolation as error:
            driver.rollback()
            if error.diag.constraint_name == "people_pkey":
                raise
            return "known"
        except psycopg.Error:
            self.is_lost = driver.closed
            if not self.is_lost:
                driver.rollback()
                raise
            with database.reporting_lost_commits(self._engine):
                raise
        return "" if is_open else "closed"

    def _send(self, this: tuple[int, int, bytes], rows: StoredRows) -> bool:
        """Insert rows if the round is open, in one message; return whether it is."""
        driver = self._driver
        with driver.pipeline():
            driver.execute(SETTINGS)
            driver.execute(_SHARED_LOCK, this[:2])
            for table, columns in (
                (schema.people, rows.people),
                (schema.group_values, rows.group_values),
            ):
                insert = _insert_if_open(table, tuple(columns))
                for row in zip(*columns.values(), strict=True):
                    made = driver.execute(insert, (this[0], *row, *this))
            driver.commit()
        return bool(made.rowcount)

    def _copy(self, this: tuple[int, int, bytes], rows: StoredRows) -> bool:
        """Insert many rows if the round is open; return whether it is."""
        driver = self._driver
        driver.execute(SETTINGS)
        driver.execute(_SHARED_LOCK, this[:2])
        is_open = driver.execute(_OPEN.format(*["%s"] * 3), this).fetchone() is not None
        if is_open:
            insert_rows(driver, schema.people, this[0], rows.people)
            insert_rows(driver, schema.group_values, this[0], rows.group_values)
        driver.commit()
        return is_open

    def _reserve(self, number: int, opened: Entry, n: int) -> int | None:
        """Return the first of n numbers that no other applicant gets; None if the round is over."""
        opening, start, end = self._block
        if opening != opened.hash or end - start < n:
            size = max(n, BLOCK)
            with self._driver.transaction():
                row = self._driver.execute(RESERVE, (size, number, opened.number)).fetchone()
            if row is None:
                return None
            start, end = row[0] - size, row[0]
        self._block = opened.hash, start + n, end
        return start
