"""A ledger's file on SQLite: opened to write, or to read where it cannot be written.

SQLite keeps a log beside a file, and cannot even read the file where no log is or may be made. Then
it is read as a file that nobody changes, and afterwards it is looked at whether somebody did. That
leaves out what a log holds, so a log that has something in it must be read as well, or nothing is.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from secondlook.errors import LedgerError

__all__ = ["is_about_rights", "may_hold", "open_by_rights"]

_KEEPS_WHOLE = ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON")
# Room for a large batch, so that its pages are written once; about 16 MB of journal at most, as
# pages that many batches change are then copied into the file less often.
_KEEPS_QUICK = ("cache_size=-65536", "wal_autocheckpoint=4000")
_KEEPS_NOTHING_ERASED = ("secure_delete=ON",)  # from the first page on, since pages are split
_LOGS = ("-wal", "-journal")  # behind a file's name: what SQLite calls its logs
_RIGHTS = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
_AS_FOUND = "as found"  # under which a connection keeps its file, and how that was

Stamps = tuple[tuple[int, ...], ...]


def open_by_rights(engine: sa.Engine) -> None:
    """Let an engine open its file to write, or to read where it cannot be written."""
    sa.event.listen(engine, "do_connect", _connect)
    sa.event.listen(engine, "begin", _begin)
    for end in ("commit", "rollback"):
        sa.event.listen(engine, end, _check_as_found)


def may_hold(path: Path, tables: set[str], wait: float) -> bool:
    """Say whether a database has one of some tables, without setting anything up in it.

    Of what cannot be read whoever uses it will say what is wrong.
    """
    options = {"timeout": wait}
    try:
        found = _opened(path, **options) if _is_writable(path) else _to_read(path, options)[0]
        with closing(found) as connection:
            names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            return not tables.isdisjoint(one for (one,) in names)
    except sqlite3.Error:
        return True


def is_about_rights(error: Any) -> bool:
    """Return if SQLite may not write, or could not open what it needs."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _RIGHTS  # the rest says more of the kind


def _connect(_dialect: Any, record: Any, args: list[Any], options: dict[str, Any]) -> Any:
    path = Path(args[0])
    if _is_writable(path):
        try:
            settings = (*_KEEPS_WHOLE, *_KEEPS_QUICK, *_KEEPS_NOTHING_ERASED)
            return _opened(path, *settings, **options)
        except sqlite3.OperationalError as error:
            if not is_about_rights(error):
                raise
    connection, stamps = _to_read(path, options)
    if stamps is not None:
        record.info[_AS_FOUND] = path, stamps
    return connection


def _begin(connection: sa.Connection) -> None:
    # A reader that became a writer could meet another doing the same, and neither could go on.
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _check_as_found(connection: sa.Connection) -> None:
    """Raise if somebody changed a file that was read as one that nobody changes."""
    path, stamps = connection.info.get(_AS_FOUND, (None, None))
    if path is not None and stamps != _stamps(path):
        raise LedgerError(
            f"the ledger at {path} was written to while it was read, in a place where that cannot "
            f"be kept apart, so what was read may not fit together; call again."
        )


def _is_writable(path: Path) -> bool:
    """Say if a file is there to be written, as far as can be known without opening it.

    Nobody may open it but SQLite, whose locks go when this process closes the file once. And if
    SQLite finds out that it may not write, it has left files of its own beside it.
    """
    effective = os.access in os.supports_effective_ids
    return os.access(path, os.W_OK, effective_ids=effective) or not path.exists()


def _to_read(path: Path, options: dict[str, Any]) -> tuple[sqlite3.Connection, Stamps | None]:
    """Open a file to read; return how it was found too if it is read as if nobody changed it."""
    stamps, place = _stamps(path), f"{path.absolute().as_uri()}?mode=ro"
    if any(stamps[1:]):
        try:
            return _opened(place, "schema_version", uri=True, **options), None
        except sqlite3.OperationalError as error:
            if not is_about_rights(error):
                raise
            _check_no_log(path, error)
    return _opened(f"{place}&immutable=1", _KEEPS_QUICK[0], uri=True, **options), stamps


def _check_no_log(path: Path, error: sqlite3.Error) -> None:
    """Raise if entries may be in a log that SQLite could not read."""
    for one in _LOGS:
        log = _beside(path, one)
        if log.exists() and log.stat().st_size:
            raise LedgerError(
                f"the ledger at {path} cannot be read where it cannot be written, since its newest "
                f"entries may be in {log.name} beside it ({error}); copy both into a folder of "
                f"your own and open the copy, or ask the owner to run secondlook verify there, "
                f"which empties that file."
            ) from error


def _opened(place: Path | str, *settings: str, **options: Any) -> sqlite3.Connection:
    connection: sqlite3.Connection = sqlite3.connect(place, **options)
    try:
        connection.isolation_level = None  # we begin transactions ourselves
        for setting in settings:
            connection.execute(f"PRAGMA {setting}")
    except BaseException:
        connection.close()
        raise
    return connection


def _stamps(path: Path) -> Stamps:
    """Return what changes when somebody writes to a file or its logs; empty where there is none."""
    return tuple(_stamp(_beside(path, one)) for one in ("", *_LOGS))


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _beside(path: Path, ending: str) -> Path:
    """Return a file of SQLite's; it puts them beside what a link leads to."""
    real = path.resolve()
    return real.with_name(f"{real.name}{ending}")
