"""Connections: which databases a ledger can live in, how each is set up, and what errors say."""

from __future__ import annotations

import os
import socket
import sqlite3
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from reprlib import repr as shown
from typing import Any
from weakref import WeakKeyDictionary, finalize

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from secondlook.errors import InputError, LedgerError, LedgerWarning
from secondlook.ledger import schema

__all__ = ["connect", "said_plainly", "scrub", "told_if_unsure", "upgrade"]

_KEEPS_WHOLE = ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON")
# Room for a large batch, so that its pages are written once; about 16 MB of journal at most, as
# pages that many batches change are then copied into the file less often.
_KEEPS_QUICK = ("cache_size=-65536", "wal_autocheckpoint=4000")
_KEEPS_NOTHING_ERASED = ("secure_delete=ON",)  # from the first page on, since pages are split
_WAIT = 120  # seconds for which a writer waits for another
_ROOM = 2**20  # bytes that wait for a server
_PATIENCE = 2000  # milliseconds for which emptying the log waits for readers
_MANY, _SOME = 1_000_000, 1000  # rows that share a program, and a program and an entry
_NO_LEDGER = (
    "there is no ledger at {}; start a program there first, with secondlook init or Program.create."
)
_MIGRATIONS = Path(__file__).parent / "migrations"
_WITHOUT_REASONS = "0001"  # the version before these columns came
_UPGRADING = 5_030_114  # name of the lock under which PostgreSQL's tables are made
_kept: WeakKeyDictionary[sa.Engine, list[Any]] = WeakKeyDictionary()  # connections to PostgreSQL


def connect(url: str, *, make: bool = False) -> sa.Engine:
    """Return an engine for ``sqlite:///file`` or ``postgresql://…``.

    A process may fork between calls: SQLite's connections do not outlive a call, and the one that
    is kept to PostgreSQL stays with the process that made it.

    Raises
    ------
    LedgerError
        If the database cannot be reached, or is not there and ``make`` is False.
    """
    try:
        place = sa.make_url(url)
    except sa.exc.ArgumentError:
        place = None
    backend = "" if place is None else place.get_backend_name()
    if place is None or backend not in ("sqlite", "postgresql"):
        raise LedgerError(
            f"a ledger lives at sqlite:///file or postgresql://host/database, got {url!r}; "
            f"pass one of these."
        )
    if backend == "postgresql":
        server = sa.create_engine(
            place.set(drivername="postgresql+psycopg"),
            pool_size=1,
            max_overflow=-1,
            pool_pre_ping=True,
            connect_args={"client_encoding": "utf8"},  # in which rows are copied
        )
        _keep_connections(server)
        return server
    if not place.database or place.database == ":memory:":
        raise LedgerError(
            f"a ledger must outlive the process, got {url!r}; name a file, as in "
            f"sqlite:///lender.db."
        )
    _check_file(Path(place.database).absolute(), make=make)
    engine = sa.create_engine(
        place.set(drivername="sqlite"), poolclass=NullPool, connect_args={"timeout": _WAIT}
    )
    sa.event.listen(engine, "connect", _set_up_sqlite)
    sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _check_file(path: Path, *, make: bool) -> None:
    """Raise unless a ledger can live in a file, or does; nothing else that is there is changed."""
    if path.is_dir():
        raise LedgerError(
            f"a ledger is a file, and {path} is a folder; name a file in it, as in "
            f"sqlite:///{path.name}/lender.db."
        )
    if not make and not (path.exists() and _may_be_ledger(path)):
        raise LedgerError(_NO_LEDGER.format(path))


def _check_folder(path: Path) -> None:
    if not path.is_dir():
        raise LedgerError(f"there is no folder {path} for a ledger; make it first.")


def _may_be_ledger(path: Path) -> bool:
    """Say whether a database has our tables, without setting anything up in it.

    Of what cannot be read whoever uses it will say what is wrong.
    """
    try:
        with closing(sqlite3.connect(path, timeout=_WAIT)) as connection:
            names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            return not {*schema.metadata.tables}.isdisjoint(one for (one,) in names)
    except sqlite3.Error:
        return True


def _keep_connections(server: sa.Engine) -> None:
    """Set up connections to PostgreSQL, and close them when nobody needs the engine any more."""
    opened: list[Any] = []

    def set_up(connection: Any, _record: Any) -> None:
        opened[:] = [one for one in opened if not one.closed] + [connection]
        connection.execute(f"SET lock_timeout = '{int(_WAIT * 1000)}ms'")  # as SQLite's
        connection.commit()
        _give_room(connection)

    sa.event.listen(server, "connect", set_up)
    _kept[server] = opened
    finalize(server, _close, opened)


def _give_room(connection: Any) -> None:
    """Let rows queue before a server on this machine: by default there is room for a few."""
    if os.name != "posix":
        return
    with (
        suppress(OSError),  # it is slower without
        socket.socket(fileno=os.dup(connection.fileno())) as end,
    ):
        if end.family == socket.AF_UNIX:  # others grow as they need
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _ROOM)


def _close(connections: list[Any]) -> None:
    for one in connections:
        one.close()


def _leave_to_parent() -> None:
    """Drop the connections that a fork has copied, without a word to the server."""
    for server, opened in list(_kept.items()):
        server.dispose(close=False)
        opened.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def _set_up_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # we begin transactions ourselves
    for setting in (*_KEEPS_WHOLE, *_KEEPS_QUICK, *_KEEPS_NOTHING_ERASED):
        connection.execute(f"PRAGMA {setting}")


def _begin_sqlite(connection: sa.Connection) -> None:
    # A reader that became a writer could meet another doing the same, and neither could go on.
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def scrub(engine: sa.Engine) -> None:
    """Empty SQLite's log, which may still hold pages as they were before an erasure.

    While somebody reads that cannot be done; then whoever is the last to close the file does it.
    PostgreSQL drops what was erased when it is vacuumed. The erasure is durable by now, so what
    goes wrong here is told by a warning.
    """
    if engine.dialect.name != "sqlite":
        return
    try:
        with closing(engine.raw_connection()) as connection:
            connection.execute(f"PRAGMA busy_timeout={_PATIENCE}")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except (sa.exc.DBAPIError, _driver_errors(engine)) as error:
        warnings.warn(
            f"the people named are erased and that is recorded, but the log beside the ledger at "
            f"{_shown(engine)} could not be emptied ({_reason(error)}) and may hold them until the "
            f"ledger is next used without this trouble; mend that and run secondlook verify.",
            LedgerWarning,
            stacklevel=2,
        )


def upgrade(engine: sa.Engine, *, make: bool = True) -> None:
    """Bring the tables to this version, in one transaction.

    Raises
    ------
    LedgerError
        If a newer version made them, or they are not those of the version that they name, or there
        are none and ``make`` is False.
    """
    if engine.dialect.name == "sqlite":
        _check_folder(Path(str(engine.url.database)).absolute().parent)
    with said_plainly(engine), engine.connect() as connection:
        found = _revision(connection)
        if found is None and not make and not _our_tables(connection):
            raise LedgerError(_NO_LEDGER.format(_shown(engine)))
    if found == schema.NEWEST:
        return
    from alembic import command  # noqa: PLC0415 - takes longer than opening a ledger
    from alembic.config import Config  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    known = {one.revision for one in ScriptDirectory.from_config(config).walk_revisions()}
    if found is not None and found not in known:
        raise LedgerError(
            f"the ledger at {_shown(engine)} has tables of version {found}, made by a newer "
            f"secondlook, and this one knows {schema.NEWEST}; upgrade secondlook."
        )
    with (
        said_plainly(engine),
        engine.connect().execution_options(writes=True) as connection,
        connection.begin(),
    ):
        if engine.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_UPGRADING)))
        found = _revision(connection)
        if found != schema.NEWEST:  # nobody was quicker
            _check_upgradable(connection, found)
            config.attributes["connection"] = connection
            command.upgrade(config, schema.NEWEST)
            if engine.dialect.name == "sqlite":
                _expect_many_rows(connection)


def _expect_many_rows(connection: sa.Connection) -> None:
    """Tell SQLite that tables are long and all rows may be of one program.

    It plans by statistics, and without any it takes a program's rows to be few, and looks through
    all of them for each person asked for.
    """
    connection.exec_driver_sql("PRAGMA analysis_limit=100")
    connection.exec_driver_sql("ANALYZE")
    connection.exec_driver_sql("DELETE FROM sqlite_stat1")
    for table in schema.metadata.sorted_tables:
        for index in connection.exec_driver_sql(f"PRAGMA index_list({table.name})").fetchall():
            columns = connection.exec_driver_sql(f"PRAGMA index_info({index.name})").fetchall()
            counts = [_MANY, *[_MANY, *[_SOME] * len(columns)][: len(columns) - 1], 1]
            name = table.name if index.origin == "pk" else index.name
            connection.exec_driver_sql(
                "INSERT INTO sqlite_stat1 VALUES (?, ?, ?)",
                (table.name, name, " ".join(map(str, counts))),
            )


def _check_upgradable(connection: sa.Connection, found: str | None) -> None:
    """Raise if the tables have already what migrations from a version on would make."""
    inspector = sa.inspect(connection)
    there = _our_tables(connection)
    fit = not there if found is None else len(there) == len(schema.metadata.tables)
    if fit and found == _WITHOUT_REASONS:
        fit = "reasons" not in {one["name"] for one in inspector.get_columns("people")}
    if not fit:
        raise LedgerError(
            f"the tables of the ledger at {_shown(connection.engine)} do not fit their version, "
            f"which the table alembic_version gives as {found or 'none'}, and were left as they "
            f"are; restore that table, or the ledger from a backup."
        )


def _our_tables(connection: sa.Connection) -> set[str]:
    return {*sa.inspect(connection).get_table_names()} & {*schema.metadata.tables}


def _revision(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)


@contextmanager
def said_plainly(engine: sa.Engine) -> Iterator[None]:
    """Turn what a driver raises into one sentence; the transaction it ended left no trace.

    Text that no database can keep ends it as well, wherever it came from.
    """
    try:
        yield
    except sa.exc.DBAPIError as error:
        raise LedgerError(_sentence(engine, error.orig)) from error
    except sa.exc.PendingRollbackError as error:
        raise LedgerError(_sentence(engine, "the connection was lost")) from error
    except _driver_errors(engine) as error:
        raise LedgerError(_sentence(engine, error)) from error
    except UnicodeEncodeError as error:
        raise InputError(
            f"text must not have half a surrogate pair, got {shown(error.object)}; nothing of this "
            f"call was recorded, change it."
        ) from error


@contextmanager
def told_if_unsure(engine: sa.Engine) -> Iterator[None]:
    """Say that nobody knows whether a server recorded what it was committing when it was lost."""
    try:
        yield
    except (sa.exc.DBAPIError, _driver_errors(engine)) as error:
        if engine.dialect.name == "sqlite":
            raise
        raise LedgerError(
            f"the ledger at {_shown(engine)} was lost while it recorded ({_reason(error)}), and it "
            f"is not known whether this call is recorded; look at the newest entries, or send it "
            f"again under the same batch name."
        ) from error


def _driver_errors(engine: sa.Engine) -> type[Exception]:
    dialect: Any = engine.dialect
    found: type[Exception] = dialect.loaded_dbapi.Error
    return found


def _sentence(engine: sa.Engine, error: Any) -> str:
    return (
        f"the ledger at {_shown(engine)} could not be used ({_reason(error)}); nothing of this "
        f"call was recorded, so mend that and call again."
    )


def _reason(error: Any) -> str:
    lines = str(getattr(error, "orig", error)).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _shown(engine: sa.Engine) -> str:
    return engine.url.render_as_string(hide_password=True)
