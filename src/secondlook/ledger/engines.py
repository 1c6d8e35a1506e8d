"""Connections: which databases a ledger can live in, how each is set up, and what errors say."""

from __future__ import annotations

import os
import socket
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
from secondlook.ledger.sqlite_files import may_hold, open_by_rights
from secondlook.ledger.urls import read_url, shown_url

__all__ = ["NO_LEDGER", "connect", "place_of", "said_plainly", "scrub", "told_if_unsure"]

_WAIT = 120  # seconds for which a writer waits for another
_ROOM = 2**20  # bytes that wait for a server
_PATIENCE = 2000  # milliseconds for which emptying the log waits for readers
NO_LEDGER = (
    "there is no ledger at {}; start a program there first, with secondlook init or Program.create."
)
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
    place = read_url(url)
    if place.drivername == "postgresql":
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
    engine = sa.create_engine(place, poolclass=NullPool, connect_args={"timeout": _WAIT})
    open_by_rights(engine)
    return engine


def _check_file(path: Path, *, make: bool) -> None:
    """Raise unless a ledger can live in a file, or does; nothing else that is there is changed."""
    try:
        is_folder, is_there = path.is_dir(), path.exists()
    except OSError as error:
        raise LedgerError(
            f"the ledger at {path} cannot be reached ({error.strerror}); ask for the right to read "
            f"it and its folder."
        ) from error
    if is_folder:
        raise LedgerError(
            f"a ledger is a file, and {path} is a folder; name a file in it, as in "
            f"sqlite:///{path.name}/lender.db."
        )
    if not make and not (is_there and may_hold(path, {*schema.metadata.tables}, _WAIT)):
        raise LedgerError(NO_LEDGER.format(path))


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
            emptied = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        trouble = "somebody is reading it" if emptied[0] else ""
    except (sa.exc.DBAPIError, _driver_errors(engine)) as error:
        trouble = _reason(error)
    if trouble:
        warnings.warn(
            f"the people named are erased and that is recorded, but the log beside the ledger at "
            f"{place_of(engine)} could not be emptied ({trouble}) and may hold them until the "
            f"ledger is next used without this trouble; mend that and run secondlook verify.",
            LedgerWarning,
            stacklevel=2,
        )


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
            f"the ledger at {place_of(engine)} was lost while it recorded ({_reason(error)}), and "
            f"it is not known whether this call is recorded; look at the newest entries, or send "
            f"it again under the same batch name."
        ) from error


def _driver_errors(engine: sa.Engine) -> type[Exception]:
    dialect: Any = engine.dialect
    found: type[Exception] = dialect.loaded_dbapi.Error
    return found


def _sentence(engine: sa.Engine, error: Any) -> str:
    return (
        f"the ledger at {place_of(engine)} could not be used ({_reason(error)}); nothing of this "
        f"call was recorded, so mend that and call again."
    )


def _reason(error: Any) -> str:
    lines = str(getattr(error, "orig", error)).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def place_of(engine: sa.Engine) -> str:
    """Return where a ledger lives, as messages show it."""
    return shown_url(engine.url)
