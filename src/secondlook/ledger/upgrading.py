"""Tables brought to the version that this package knows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

from secondlook.errors import LedgerError
from secondlook.ledger import schema
from secondlook.ledger.engines import NO_LEDGER, place_of, said_plainly
from secondlook.ledger.sqlite_files import is_about_rights

__all__ = ["upgrade"]

_MANY, _SOME = 1_000_000, 1000  # rows that share a program, and a program and an entry
_MIGRATIONS = Path(__file__).parent / "migrations"
_WITHOUT_REASONS = "0001"  # the version before these columns came
_UPGRADING = 5_030_114  # name of the lock under which PostgreSQL's tables are made


def upgrade(engine: sa.Engine, *, make: bool = True) -> None:
    """Bring the tables to this version, in one transaction.

    Raises
    ------
    LedgerError
        If a newer version made them, or they are not those of the version that they name, or they
        are of an older one and cannot be written, or there are none and ``make`` is False.
    """
    if engine.dialect.name == "sqlite":
        _check_folder(Path(str(engine.url.database)).absolute().parent)
    with said_plainly(engine), engine.connect() as connection:
        found = _revision(connection)
        if found is None and not make and not _our_tables(connection):
            raise LedgerError(NO_LEDGER.format(place_of(engine)))
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
            f"the ledger at {place_of(engine)} has tables of version {found}, made by a newer "
            f"secondlook, and this one knows {schema.NEWEST}; upgrade secondlook."
        )
    with (
        said_plainly(engine),
        _told_if_only_read(engine, found),
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


def _check_folder(path: Path) -> None:
    if not path.is_dir():
        raise LedgerError(f"there is no folder {path} for a ledger; make it first.")


@contextmanager
def _told_if_only_read(engine: sa.Engine, found: str | None) -> Iterator[None]:
    """Say that tables must be upgraded to be read, and cannot be where they are."""
    try:
        yield
    except sa.exc.DBAPIError as error:
        if found is None or not is_about_rights(error.orig):
            raise
        raise LedgerError(
            f"the ledger at {place_of(engine)} has tables of version {found}, which must be "
            f"upgraded to {schema.NEWEST} before they are read, and cannot be written there "
            f"({error.orig}); copy it into a folder of your own and open the copy."
        ) from error


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
            f"the tables of the ledger at {place_of(connection.engine)} do not fit their version, "
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
