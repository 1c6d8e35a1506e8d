"""Connections: which databases a ledger can live in, how each is set up, and what errors say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from secondlook.errors import LedgerError
from secondlook.ledger import schema

__all__ = ["connect", "said_plainly", "upgrade"]

_WAIT = 120  # seconds for which a writer waits for another
_MIGRATIONS = Path(__file__).parent / "migrations"
_UPGRADING = 5_030_114  # name of the lock under which PostgreSQL's tables are made


def connect(url: str, *, make: bool = False) -> sa.Engine:
    """Return an engine for ``sqlite:///file`` or ``postgresql://…``.

    No connection outlives a call, so that a process may fork between calls.

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
        return sa.create_engine(place.set(drivername="postgresql+psycopg"), poolclass=NullPool)
    if not place.database or place.database == ":memory:":
        raise LedgerError(
            f"a ledger must outlive the process, got {url!r}; name a file, as in "
            f"sqlite:///lender.db."
        )
    if not make and not Path(place.database).exists():
        raise LedgerError(f"there is no ledger at {place.database}; create a program there first.")
    engine = sa.create_engine(
        place.set(drivername="sqlite"), poolclass=NullPool, connect_args={"timeout": _WAIT}
    )
    sa.event.listen(engine, "connect", _set_up_sqlite)
    sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _set_up_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # we begin transactions ourselves
    for setting in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {setting}")


def _begin_sqlite(connection: sa.Connection) -> None:
    # A reader that became a writer could meet another doing the same, and neither could go on.
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def upgrade(engine: sa.Engine) -> None:
    """Bring the tables to this version, in one transaction.

    Raises
    ------
    LedgerError
        If a newer version made them.
    """
    with said_plainly(engine), engine.connect() as connection:
        found = _revision(connection)
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
        if _revision(connection) != schema.NEWEST:  # nobody was quicker
            config.attributes["connection"] = connection
            command.upgrade(config, schema.NEWEST)


def _revision(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)


@contextmanager
def said_plainly(engine: sa.Engine) -> Iterator[None]:
    """Turn what a driver raises into one sentence; the transaction it ended left no trace."""
    try:
        yield
    except sa.exc.DBAPIError as error:
        raise LedgerError(_sentence(engine, error.orig)) from error
    except _driver_errors(engine) as error:
        raise LedgerError(_sentence(engine, error)) from error


def _driver_errors(engine: sa.Engine) -> type[Exception]:
    dialect: Any = engine.dialect
    found: type[Exception] = dialect.loaded_dbapi.Error
    return found


def _sentence(engine: sa.Engine, error: Any) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return (
        f"the ledger at {_shown(engine)} could not be used ({lines[0]}); nothing of this call was "
        f"recorded, so mend that and call again."
    )


def _shown(engine: sa.Engine) -> str:
    return engine.url.render_as_string(hide_password=True)
