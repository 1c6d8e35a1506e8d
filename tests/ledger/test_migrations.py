"""Tables are made by the migration, and tables of other versions are refused."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy.pool import NullPool

from secondlook.errors import LedgerError
from secondlook.ledger import schema
from secondlook.ledger.program import Program
from secondlook.ledger.sql import SqlLedger
from secondlook.ledger.verification.walk import verify
from secondlook.testing.ledger import make_batch


def test_the_migration_makes_the_tables_of_the_schema(url):
    ledger = SqlLedger(url, make=True)
    with ledger.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, schema.metadata) == []
        assert context.get_current_revision() == schema.NEWEST
    assert SqlLedger(url).programs() == []


def run(ledger, statement):
    with ledger.engine.connect().execution_options(writes=True) as connection, connection.begin():
        connection.execute(sa.text(statement))


def test_a_ledger_of_another_version_is_refused(url):
    ledger = SqlLedger(url, make=True)
    run(ledger, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(LedgerError, match=rf"version 9999, .* knows {schema.NEWEST};"):
        SqlLedger(url)
    run(ledger, f"UPDATE alembic_version SET version_num = '{schema.NEWEST}'")
    assert SqlLedger(url).programs() == []


@pytest.mark.parametrize("statement", ["DELETE FROM alembic_version", "DROP TABLE alembic_version"])
def test_tables_without_a_version_are_left_alone(url, statement):
    run(SqlLedger(url, make=True), statement)
    with pytest.raises(LedgerError, match=r"no version in the table alembic_version"):
        SqlLedger(url)


def test_two_settings_that_keep_sqlite_whole(tmp_path):
    ledger = SqlLedger(f"sqlite:///{tmp_path}/x.db", make=True)
    with ledger.engine.connect() as connection:
        for name, value in (("journal_mode", "wal"), ("synchronous", 2), ("foreign_keys", 1)):
            assert connection.exec_driver_sql(f"PRAGMA {name}").scalar() == value


def test_a_full_disk_is_one_sentence_and_nothing_is_lost(tmp_path):
    url = f"sqlite:///{tmp_path}/x.db"
    X = np.random.default_rng(5).normal(size=(3000, 2))
    import secondlook as sl  # noqa: PLC0415

    program = Program.create(
        url, sl.PartialFeedbackClassifier(random_state=0), X[:100], X[:100, 0] > 0
    )
    before = program.checkpoint()

    def limit(connection, _record):
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 3}")

    sa.event.listen(program.ledger.engine, "connect", limit)
    with pytest.raises(LedgerError, match=r"could not be used \(database or disk is full\)"):
        program.decide(X[100:], batch="b")
    sa.event.remove(program.ledger.engine, "connect", limit)
    assert program.checkpoint() == before
    assert program.decide(X[100:], batch="b").round == 1
    assert verify(program.ledger).ok


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_ids_compare_byte_by_byte(url):
    """The order of a locale would find an id under another one that it calls equal."""
    ledger = SqlLedger(url, make=True)
    names = ["b", "B", "a b", "ab", "\u00e9", "e\u0301", "Z", "-1", "1"]
    batch = make_batch(0, n=len(names))
    with ledger.creating("main") as writer:
        people = replace(batch.people, applications=names)
        writer.append("batch", {}, replace(batch, people=people), by="t")
    with ledger.reading("main") as reader:
        assert reader.standing(names[::-1]).persons.tolist() == list(range(len(names)))[::-1]
    application = schema.people.c.application
    with ledger.engine.connect() as connection:
        ordered = sa.select(application).order_by(application)
        assert connection.execute(ordered).scalars().all() == sorted(names)


def test_a_database_of_others_is_left_alone_unless_a_ledger_is_to_be_made_there(url):
    def tables():
        with engine.connect() as connection:
            return sa.inspect(connection).get_table_names()

    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE notes (words TEXT)"))
    with pytest.raises(LedgerError, match=r"there is no ledger at .*; start a program there first"):
        Program.open(url)
    assert tables() == ["notes"]
    assert SqlLedger(url, make=True).programs() == []
    assert SqlLedger(url).programs() == []
    assert {"notes", "entries"} <= {*tables()}


def test_a_file_that_is_no_ledger_stays_as_it_is(tmp_path):
    with closing(sqlite3.connect(tmp_path / "notes.db")) as db:
        db.execute("CREATE TABLE notes (words TEXT)")
    (tmp_path / "empty.db").touch()
    for path in (tmp_path / "notes.db", tmp_path / "empty.db"):
        before = path.read_bytes()
        with pytest.raises(LedgerError, match=f"there is no ledger at {path}; start a program"):
            SqlLedger(f"sqlite:///{path}")
        assert path.read_bytes() == before  # WAL would show in its first bytes


def test_places_where_no_ledger_can_be(tmp_path):
    for make in (True, False):
        with pytest.raises(
            LedgerError, match=f"a ledger is a file, and {tmp_path} is a folder; na"
        ):
            SqlLedger(f"sqlite:///{tmp_path}", make=make)
    with pytest.raises(LedgerError, match=f"there is no folder {tmp_path}/no for a ledger; make"):
        SqlLedger(f"sqlite:///{tmp_path}/no/ledger.db", make=True)
