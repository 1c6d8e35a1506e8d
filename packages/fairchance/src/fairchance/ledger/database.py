"""Open a ledger's database: read its URL, connect, make the tables, and word its errors.

A ledger lives in a SQLite file or on a PostgreSQL server. No connection stays open when a process
forks: those of ``inserts`` are closed before, and others at the end of each call.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from reprlib import repr as shortened
from threading import Lock
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from fairchance.errors import InputError, LedgerError
from fairchance.ledger import schema

__all__ = [
    "BEFORE_WRITING",
    "WAIT",
    "check_tables",
    "compact",
    "connect",
    "make_tables",
    "own_check",
    "read_url",
    "reporting_lost_commits",
    "shown_url",
    "translating_errors",
]

WAIT = 120  # seconds for which a writer waits for another

# A connection may go silent, as when a server is replaced: it is given up within the seconds that a
# request over HTTP may take. Parameters of the URL go first.
_PATIENCE = {
    "connect_timeout": 10,  # seconds
    "keepalives_idle": 10,  # seconds of silence, after which the system asks whether it lives
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,  # milliseconds for which nothing that was sent is received
}
_ALIASES = {"postgres": "postgresql"}  # what some servers call it, and what SQLAlchemy does
_HIDDEN = "***"
_SECRETS = ("password", "sslpassword")  # parameters of a URL that hold a password
_USER_PASSWORD = re.compile(r"((?:^|(?<!/)//)[^:/]*:)(?!//).*@", re.DOTALL)
_PARAMETER = re.compile(rf"((?:{'|'.join(_SECRETS)})\s*=\s*)('[^']*'|[^&]*)", re.IGNORECASE)

# Another person may have made the file.
_GUARDS = (
    "trusted_schema=OFF",  # no function with side effects runs because the schema names it
    "cell_size_check=ON",  # a page is checked when it is read
    "mmap_size=0",  # an error of the disk is an error, not a crash
)
# sqlite3 names the table in its message, and cannot decode the name.
_DAMAGED_NAME = "malformed database schema"
_SQLITE_SETTINGS = (
    *_GUARDS,
    "synchronous=FULL",
    "foreign_keys=ON",
    "secure_delete=ON",  # erased data must not stay in free pages
    "cache_size=-65536",  # room for a large batch, so that each page is written once
    "wal_autocheckpoint=4000",  # pages, about 16 MB
    "schema_version",  # reads the file, so that it fails here if it cannot be read
)
# What a connection does before it writes. If the disk failed in an earlier commit, the log may hold
# rows that are not on the disk. A checkpoint puts them there, or raises, before a call answers from
# them or adds to the log behind them.
BEFORE_WRITING = ("journal_mode=WAL", "wal_checkpoint(PASSIVE)")
_LONGEST = 2**29  # bytes of one stored value, such as a state or the digests of a batch
_LOGS = ("-wal", "-journal")  # what SQLite appends to the name of its log files
_NO_RIGHTS = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
_LOG_PATIENCE = 2000  # milliseconds for which emptying the log waits for readers
_MANY, _SOME = 1_000_000, 1000  # rows per program, and per program and entry, for the planner
_MIGRATIONS = Path(__file__).parent / "migrations"
_NO_CHECK = ("42501", "42883")  # PostgreSQL: no right to run a function, and no such function
_VERSIONS = sa.Table(  # as alembic makes it
    "alembic_version",
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
_making = Lock()  # closing a file ends the locks of all threads on it
_UPGRADE_LOCK = 5_030_114  # PostgreSQL's advisory lock under which tables are made

_NO_LEDGER = "there is no ledger at {}; start a program there first."


def read_url(url: str) -> sa.URL:
    """Return the parsed URL of a ledger."""
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):  # a port that is not a number
        parsed = None
    if parsed is not None:
        backend = parsed.get_backend_name()
        parsed = parsed.set(drivername=_ALIASES.get(backend, backend))
    if parsed is None or parsed.drivername not in ("sqlite", "postgresql"):
        raise LedgerError(
            f"a ledger is at sqlite:///file or postgresql://host/database, got {shown_url(url)!r}.",
            option="ledger",
        )
    return parsed


def shown_url(url: Any) -> str:
    """Return a URL for a message, with its passwords hidden, even if it is malformed.

    Examples
    --------
    >>> shown_url("mysql://ann:secret@host/db?sslpassword=other")
    'mysql://ann:***@host/db?sslpassword=***'
    """
    text = url.render_as_string(hide_password=True) if isinstance(url, sa.URL) else str(url)
    return _PARAMETER.sub(rf"\1{_HIDDEN}", _USER_PASSWORD.sub(rf"\1{_HIDDEN}@", text))


def connect(url: str, *, make: bool = False) -> sa.Engine:
    """Return an engine for ``sqlite:///file`` or ``postgresql://…``."""
    parsed = read_url(url)
    if parsed.drivername == "postgresql":
        patience = {name: _PATIENCE[name] for name in _PATIENCE.keys() - parsed.query.keys()}
        return sa.create_engine(
            parsed.set(drivername="postgresql+psycopg"),
            poolclass=NullPool,
            connect_args={"client_encoding": "utf8", **patience},
        )
    if not parsed.database or parsed.database == ":memory:":
        raise LedgerError(
            f"a ledger must outlive the process, got {url!r}; name a file.", option="ledger"
        )
    path = Path(parsed.database).absolute()
    _check_file(path, make=make)
    options = {"timeout": WAIT, "check_same_thread": False}
    engine = sa.create_engine(parsed, poolclass=NullPool, connect_args=options)
    if make:  # not before the first connection: input that is refused leaves no file
        sa.event.listen(engine, "do_connect", lambda *_: _make_private(path))
    sa.event.listen(engine, "do_connect", _connect_to_file)
    sa.event.listen(engine, "begin", _begin)
    return engine


def _check_file(path: Path, *, make: bool) -> None:
    """Raise unless the file is a ledger or may become one, without changing it."""
    try:
        is_place, exists = path.parent.is_dir() and not path.is_dir(), path.exists()
    except OSError as error:
        raise LedgerError(
            f"the ledger at {path} cannot be reached ({error.strerror}); ask for the right to."
        ) from error
    if not is_place:
        raise LedgerError(f"a ledger is a file in a folder that exists, got {path}.")
    if not make and not (exists and _may_be_ledger(path)):
        raise LedgerError(_NO_LEDGER.format(path))


def _make_private(path: Path) -> None:
    """Make a file that only its owner can read, if there is none; SQLite's logs get its mode."""
    with _making, suppress(OSError):  # it exists, or SQLite will say why it cannot be made
        os.close(os.open(path.resolve(), os.O_CREAT | os.O_EXCL, 0o600))


def _may_be_ledger(path: Path) -> bool:
    """Return whether a file has a table of a ledger; True for a file that cannot be read.

    Unreadable files are reported by the call that opens them. The settings of a ledger are not
    applied here, since they would change a file of another kind.
    """
    try:
        with closing(_open(path, timeout=WAIT) if _writable(path) else _open_to_read(path)) as file:
            names = file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            return not {name for (name,) in names}.isdisjoint(schema.metadata.tables)
    except (sqlite3.Error, UnicodeDecodeError):
        return True


def _connect_to_file(_dialect: Any, _record: Any, args: list[Any], options: dict[str, Any]) -> Any:
    path = Path(args[0])
    if _writable(path):
        try:
            return _open(path, *_SQLITE_SETTINGS, **options)
        except sqlite3.OperationalError as error:
            if not _lacks_rights(error):
                raise
    return _open_to_read(path, **options)


def _begin(connection: sa.Connection) -> None:
    if not connection.get_execution_options().get("writes", False):
        connection.exec_driver_sql("BEGIN")
        return
    for setting in BEFORE_WRITING:
        connection.exec_driver_sql(f"PRAGMA {setting}").close()
    # A reader that became a writer could meet another doing the same, and neither could go on.
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _writable(path: Path) -> bool:
    # Only SQLite may open the file: its locks end when this process closes the file once.
    effective = os.access in os.supports_effective_ids
    return os.access(path, os.W_OK, effective_ids=effective) or not path.exists()


def _lacks_rights(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _NO_RIGHTS  # higher bits: details


def _open_to_read(path: Path, **options: Any) -> sqlite3.Connection:
    """Open a file that this process may not write."""
    real = path.resolve()
    logs = [real.with_name(f"{real.name}{suffix}") for suffix in _LOGS]
    place = f"{path.absolute().as_uri()}?mode=ro"
    if any(log.exists() for log in logs):
        try:
            return _open(place, *_GUARDS, "schema_version", uri=True, **options)
        except sqlite3.OperationalError as error:
            if not _lacks_rights(error):
                raise
            for log in logs:
                if log.exists() and log.stat().st_size:
                    raise LedgerError(
                        f"the ledger at {path} cannot be read without {log.name} beside it "
                        f"({error}); copy both into a folder of your own."
                    ) from error
    # Without a log everything is in the file. Unless immutable, SQLite would need to make a
    # log, which it cannot do here, or which would then stop the owner.
    return _open(f"{place}&immutable=1", *_GUARDS, uri=True, **options)


def _open(place: Any, *settings: str, **options: Any) -> sqlite3.Connection:
    connection: sqlite3.Connection = sqlite3.connect(place, **options)
    try:
        connection.isolation_level = None  # SQLAlchemy begins transactions
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
        for setting in settings:
            connection.execute(f"PRAGMA {setting}")
    except BaseException:
        connection.close()
        raise
    return connection


class _OtherTablesError(LedgerError):
    """The tables are not those that their version makes."""


def check_tables(connection: sa.Connection) -> None:
    """Raise unless the tables are those that this version makes.

    No row is read before that is known: a view or a trigger in the place of a table could answer
    anything, or without end.
    """
    place, there, ours = shown_url(connection.engine.url), _objects(connection), _our_objects()
    if connection.dialect.name == "postgresql":
        ours = {table: "r" for table in ours if table[0] == "table"}
    if there.keys().isdisjoint(ours):
        raise LedgerError(_NO_LEDGER.format(place))
    versions = ("table", _VERSIONS.name)
    if there.get(versions) == ours[versions]:
        version = connection.execute(sa.select(_VERSIONS.c.version_num)).scalar()
        if version != schema.NEWEST:
            raise LedgerError(
                f"the ledger at {place} has tables of version {shortened(version)} and not "
                f"{schema.NEWEST!r}; open it with the fairchance that made it."
            )
    if there != ours:
        other = [one for one in there | ours if there.get(one) != ours.get(one)]
        kind, name = min(other, key=lambda one: (one in ours, one[0] != "table", one))
        how = "is missing" if (kind, name) not in there else "is not ours"
        raise _OtherTablesError(
            f"the {kind} {shortened(name)} of the ledger at {place} {how}; restore a backup."
        )


def _objects(connection: sa.Connection) -> dict[tuple[str, str], str]:
    """Return what the database consists of, by kind and name.

    SQLite's file must hold nothing else than a ledger; it keeps the statement that made each part.
    Of PostgreSQL only our tables are looked at: their kind, which is ``r`` for a table.
    """
    if connection.dialect.name == "sqlite":
        rows = connection.exec_driver_sql("SELECT type, name, sql FROM sqlite_master").fetchall()
        own = ("sqlite_stat1", "sqlite_stat4")  # for the planner; an index without SQL is a key
        return {
            (str(kind), str(name)): _without_spaces(str(statement))
            for kind, name, statement in rows
            if not (kind == "table" and name in own) and not (kind == "index" and not statement)
        }
    kinds = sa.text(
        "SELECT name, relkind::text FROM unnest(CAST(:names AS text[])) AS name "
        "JOIN pg_class ON pg_class.oid = to_regclass(name)"
    )
    found = connection.execute(kinds, {"names": [*schema.metadata.tables, _VERSIONS.name]})
    return {("table", name): kind for name, kind in found}


@cache
def _our_objects() -> dict[tuple[str, str], str]:
    """Return the statements that make the parts of a ledger on SQLite, by kind and name.

    The migration must make tables by statements that differ in white space and quotes at most.
    """
    made: dict[tuple[str, str], str] = {}
    dialect = sa.create_mock_engine("sqlite://", lambda *_: None).dialect
    for table in (*schema.metadata.sorted_tables, _VERSIONS):
        made["table", table.name] = str(sa.schema.CreateTable(table).compile(dialect=dialect))
        for index in table.indexes:
            made["index", str(index.name)] = str(
                sa.schema.CreateIndex(index).compile(dialect=dialect)
            )
    return {name: _without_spaces(statement) for name, statement in made.items()}


def _without_spaces(statement: str) -> str:
    return "".join(statement.replace('"', "").split())


def make_tables(engine: sa.Engine) -> None:
    """Make the tables if there are none, in one transaction."""
    with translating_errors(engine), engine.connect() as connection:
        if _has_tables(connection):
            check_tables(connection)
            return
    from alembic import command  # noqa: PLC0415 - takes longer than opening a ledger
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    with (
        translating_errors(engine),
        engine.connect().execution_options(writes=True) as connection,
        connection.begin(),
    ):
        if engine.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_UPGRADE_LOCK)))
        if not _has_tables(connection):  # no other process was quicker
            config.attributes["connection"] = connection
            command.upgrade(config, schema.NEWEST)
            if engine.dialect.name == "sqlite":
                _expect_many_rows(connection)
        check_tables(connection)


def _expect_many_rows(connection: sa.Connection) -> None:
    """Give SQLite's planner statistics of long tables.

    Without them it assumes that a program has few rows, and reads all of them for each applicant
    that is looked up.
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


def _has_tables(connection: sa.Connection) -> bool:
    return not _objects(connection).keys().isdisjoint(_our_objects())


def own_check(engine: sa.Engine) -> tuple[str | None, str | None]:
    """Return what the database's own checks find wrong, and what they could not check, in words.

    A ledger can fit its hashes, and yet commands may not find an applicant through a damaged index.
    """
    try:
        with engine.connect() as connection:
            check_tables(connection)
            if connection.dialect.name == "sqlite":
                return _check_pages(connection), None
            other = _other_definition(connection)
            return (other, None) if other else _check_indexes(connection)
    except _OtherTablesError as error:
        return str(error), None
    except LedgerError:  # no ledger, or another version's
        return None, None
    except (sa.exc.DBAPIError, _driver_error(engine)) as error:
        return f"the database cannot be read ({_reason(error)}).", None
    except UnicodeDecodeError:
        return f"the database cannot be read ({_DAMAGED_NAME}).", None


def _check_pages(connection: sa.Connection) -> str | None:
    """Return what SQLite finds wrong with the pages and indexes of a file."""
    found = str(connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar())
    if found != "ok":
        return f"the file is damaged ({found.splitlines()[-1]})."
    stray = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchone()
    if stray is not None:
        return f"table {stray[0]} refers to a missing row of {stray[2]}."
    path = Path(str(connection.engine.url.database))
    if _writable(path):
        # The file itself may say that it must not be written. A lock is asked for, nothing written.
        with closing(_open(path, timeout=0)) as file:
            try:
                file.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode == sqlite3.SQLITE_READONLY:
                    return "its first page forbids to write."
    return None


def _other_definition(connection: sa.Connection) -> str | None:
    """Return what on PostgreSQL differs from the tables, indexes and keys that we make."""
    from alembic.autogenerate import compare_metadata  # noqa: PLC0415 - slow
    from alembic.migration import MigrationContext  # noqa: PLC0415

    def is_ours(part: Any, name: str | None, kind: str, _reflected: bool, _ours: Any) -> bool:
        return (name if kind == "table" else part.table.name) in schema.metadata.tables

    options = {"compare_type": True, "include_object": is_ours}
    context = MigrationContext.configure(connection, opts=options)
    for change in compare_metadata(context, schema.metadata):
        action, *parts = change[0] if isinstance(change, list) else change
        named = [str(getattr(part, "name", part)) for part in parts if part is not None]
        return f"its tables need {action.replace('_', ' ')} ({', '.join(named)})."
    more = sa.text(
        "SELECT 'trigger', tgname, tgrelid::regclass::text FROM pg_trigger "
        "WHERE NOT tgisinternal AND tgrelid = ANY(CAST(:names AS regclass[])) UNION ALL "
        "SELECT 'rule', rulename, ev_class::regclass::text FROM pg_rewrite "
        "WHERE ev_class = ANY(CAST(:names AS regclass[])) UNION ALL "
        "SELECT 'policy', polname, polrelid::regclass::text FROM pg_policy "
        "WHERE polrelid = ANY(CAST(:names AS regclass[]))"
    )
    extra = connection.execute(more, {"names": [*schema.metadata.tables]}).first()
    return None if extra is None else f"the table {extra[2]} has the {extra[0]} {extra[1]}."


def _check_indexes(connection: sa.Connection) -> tuple[str | None, str | None]:
    """Return what PostgreSQL finds wrong with tables and indexes, and why it was not asked."""
    where = "SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'amcheck'"
    place = connection.execute(sa.text(where)).scalar()
    if place is None:
        return None, "indexes (no extension amcheck)"
    names = {"names": [*schema.metadata.tables]}
    indexes = sa.text(
        f"SELECT {place}.bt_index_check(indexrelid, true) FROM pg_index "
        "WHERE indrelid = ANY(CAST(:names AS regclass[]))"
    )
    tables = sa.text(
        f"SELECT name, msg FROM unnest(CAST(:names AS text[])) AS name, "
        f"{place}.verify_heapam(CAST(name AS regclass)) LIMIT 1"
    )
    try:
        connection.execute(indexes, names)
        found = connection.execute(tables, names).first()
    except sa.exc.DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) in _NO_CHECK:
            return None, f"indexes ({_reason(error)})"
        return f"an index is damaged ({_reason(error)}).", None
    return (None if found is None else f"table {found[0]} is damaged ({found[1]})."), None


def compact(engine: sa.Engine) -> None:
    """Write the database's files anew, without what erased rows left in them.

    SQLite's ``VACUUM`` copies what is there into a temporary file without a name (in
    ``SQLITE_TMPDIR`` or the system's temporary folder) and back, and its log is emptied.
    PostgreSQL's ``VACUUM FULL`` replaces the files of the tables and their indexes; what it
    remembers of frequent values (``pg_statistic``) is made and written anew too.
    """
    try:
        with closing(engine.raw_connection()) as connection:
            driver: Any = connection.driver_connection
            is_sqlite = engine.dialect.name == "sqlite"
            reason = _vacuum_file(driver) if is_sqlite else _vacuum_tables(driver)
    except (sa.exc.DBAPIError, _driver_error(engine)) as error:
        reason = _reason(error)
    if reason:
        raise LedgerError(
            f"files of the ledger at {shown_url(engine.url)} may still hold erased data "
            f"({reason}); fix that, then compact it again."
        )


def _vacuum_file(connection: sqlite3.Connection) -> str:
    """Vacuum a SQLite file; return what prevented that, if anything did."""
    connection.execute("VACUUM")
    connection.execute(f"PRAGMA busy_timeout={_LOG_PATIENCE}")
    is_busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    return "another process is reading it" if is_busy else ""


def _vacuum_tables(connection: Any) -> str:
    """Vacuum the tables of PostgreSQL; return what prevented that, if anything did."""
    reasons = []

    def note(notice: Any) -> None:
        kept = re.match(r"\d+", notice.message_detail or "")
        if notice.severity_nonlocalized == "WARNING":  # no right to vacuum a table is no error
            reasons.append(notice.message_primary)
        elif kept and int(kept[0]):
            reasons.append("another session may still read them")

    connection.rollback()
    connection.autocommit = True
    connection.add_notice_handler(note)
    connection.execute(f"SET lock_timeout = '{int(WAIT * 1000)}ms'")
    tables = ", ".join(table.name for table in schema.PERSONAL)
    connection.execute(f"VACUUM (FULL, ANALYZE, VERBOSE) {tables}")
    connection.execute("VACUUM (FULL, VERBOSE) pg_statistic")
    return "; ".join(dict.fromkeys(reasons))


@contextmanager
def translating_errors(engine: sa.Engine) -> Iterator[None]:
    """Raise a driver's errors as ``LedgerError``; the transaction they ended left no trace."""
    try:
        yield
    except sa.exc.DBAPIError as error:
        raise LedgerError(_failure_message(engine, error.orig)) from error
    except sa.exc.PendingRollbackError as error:
        raise LedgerError(_failure_message(engine, "the connection was lost")) from error
    except _driver_error(engine) as error:
        raise LedgerError(_failure_message(engine, error)) from error
    except UnicodeDecodeError as error:
        raise LedgerError(_failure_message(engine, _DAMAGED_NAME)) from error
    except UnicodeEncodeError as error:
        raise InputError(
            f"text must not have half a surrogate pair, got {shortened(error.object)}; change it."
        ) from error


@contextmanager
def reporting_lost_commits(engine: sa.Engine) -> Iterator[None]:
    """Raise an error of its own if a commit may be recorded or not.

    That is so if a server is lost, or if a disk fails: SQLite has written to its log then, and the
    next process that opens the file may find everything there.
    """
    try:
        yield
    except (sa.exc.DBAPIError, _driver_error(engine)) as error:
        code = getattr(getattr(error, "orig", error), "sqlite_errorcode", None)
        if code is not None and code & 0xFF != sqlite3.SQLITE_IOERR:  # such as a full disk
            raise
        raise LedgerError(
            f"the ledger at {shown_url(engine.url)} failed during a commit ({_reason(error)}), so "
            f"this call may be recorded or not; send it again under the same name."
        ) from error


def _driver_error(engine: sa.Engine) -> type[Exception]:
    dialect: Any = engine.dialect
    error_type: type[Exception] = dialect.loaded_dbapi.Error
    return error_type


def _failure_message(engine: sa.Engine, error: Any) -> str:
    return (
        f"the ledger at {shown_url(engine.url)} could not be used ({_reason(error)}), and nothing "
        f"was recorded; fix that and call again."
    )


def _reason(error: Any) -> str:
    lines = str(getattr(error, "orig", error)).strip().splitlines()
    return lines[0] if lines else type(error).__name__
