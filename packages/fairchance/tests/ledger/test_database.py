"""Connections, tables and versions of a ledger's database, and places without one."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np
import psycopg
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy.pool import NullPool

from fairchance.errors import LedgerError
from fairchance.ledger import Program, schema, verify
from fairchance.ledger.base import Facts
from fairchance.ledger.database import connect
from fairchance.ledger.sql import SqlLedger
from ledger.batches import make_batch
from ledger_worlds import algorithm_1, same, started


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
    with pytest.raises(LedgerError, match=rf"'9999' .* '{schema.NEWEST}'"):
        SqlLedger(url)
    run(ledger, f"UPDATE alembic_version SET version_num = '{schema.NEWEST}'")
    assert SqlLedger(url).programs() == []


@pytest.mark.parametrize("statement", ["DELETE FROM alembic_version", "DROP TABLE alembic_version"])
def test_tables_without_a_version_are_left_alone(url, statement):
    run(SqlLedger(url, make=True), statement)
    for make in (False, True):
        with pytest.raises(LedgerError, match=r"version None|'alembic_version'"):
            SqlLedger(url, make=make)


def test_a_server_that_goes_silent_is_given_up_unless_the_url_says_otherwise(new_database):
    url = new_database()
    given = f"{url}{'&' if '?' in url else '?'}keepalives_idle=77&connect_timeout=5"
    found = []
    for place in (url, given):
        with closing(connect(place).raw_connection()) as connection:
            found.append(connection.driver_connection.info.get_parameters())
    ours, changed = found
    # All within the 30 seconds that a request over HTTP may take.
    assert int(ours["connect_timeout"]) <= 30
    lives = [int(ours[f"keepalives_{name}"]) for name in ("idle", "interval", "count")]
    assert lives[0] + lives[1] * lives[2] <= 30
    assert int(ours["tcp_user_timeout"]) <= 30_000
    assert (changed["keepalives_idle"], changed["connect_timeout"]) == ("77", "5")
    assert changed["tcp_user_timeout"] == ours["tcp_user_timeout"]


def test_sqlite_is_set_up_for_durability(tmp_path):
    ledger = SqlLedger(f"sqlite:///{tmp_path}/x.db", make=True)
    with ledger.engine.connect() as connection:
        for name, value in (("journal_mode", "wal"), ("synchronous", 2), ("foreign_keys", 1)):
            assert connection.exec_driver_sql(f"PRAGMA {name}").scalar() == value


@pytest.mark.skipif(os.name == "nt", reason="Windows has no file modes")
def test_only_the_owner_can_read_a_new_file(tmp_path):
    """From its first moment, and its logs too; a file that exists keeps its mode."""
    (tmp_path / "elsewhere.db").symlink_to(tmp_path / "new.db")
    (tmp_path / "given.db").touch(0o640)
    before = os.umask(0)
    try:
        for name, mode in (("elsewhere.db", 0o600), ("given.db", 0o640)):
            engine = connect(f"sqlite:///{tmp_path}/{name}", make=True)
            real = (tmp_path / name).resolve()
            assert real.exists() == (name == "given.db")
            engine.connect().close()  # nothing is in it yet
            assert real.stat().st_mode & 0o777 == mode
            ledger = SqlLedger(f"sqlite:///{tmp_path}/{name}", make=True)
            with ledger.creating("main") as writer:
                writer.append("program", {}, Facts(), by="t")
                files = [*tmp_path.glob(f"{real.name}*")]
                assert len(files) == 3, "the database, its log, and the log's index"
                assert {file.stat().st_mode & 0o777 for file in files} == {mode}
    finally:
        os.umask(before)


def test_a_full_disk_is_reported_and_nothing_is_lost(tmp_path):
    url = f"sqlite:///{tmp_path}/x.db"
    X = np.random.default_rng(5).normal(size=(3000, 2))
    import fairchance as fc  # noqa: PLC0415

    program = Program.create(
        url, fc.PartialFeedbackClassifier(random_state=0), X[:100], X[:100, 0] > 0
    )
    before = program.checkpoint()

    def limit(connection, _record):
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 3}")

    sa.event.listen(program.ledger.engine, "connect", limit)
    with pytest.raises(LedgerError, match=r"\(database or disk is full\)"):
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


def test_a_database_without_a_ledger_is_changed_only_to_make_one(url):
    def tables():
        with engine.connect() as connection:
            return sa.inspect(connection).get_table_names()

    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE notes (words TEXT)"))
    with pytest.raises(LedgerError):
        Program.open(url)
    assert tables() == ["notes"]
    if url.startswith("sqlite"):  # a file holds one ledger and nothing else
        with pytest.raises(LedgerError, match="'notes'"):
            SqlLedger(url, make=True)
        assert tables() == ["notes"]
        return
    assert SqlLedger(url, make=True).programs() == []
    assert SqlLedger(url).programs() == []
    assert {"notes", "entries"} <= {*tables()}


def test_a_file_of_another_kind_is_not_changed(tmp_path):
    with closing(sqlite3.connect(tmp_path / "notes.db")) as db:
        db.execute("CREATE TABLE notes (words TEXT)")
    (tmp_path / "empty.db").touch()
    for path in (tmp_path / "notes.db", tmp_path / "empty.db"):
        before = path.read_bytes()
        with pytest.raises(LedgerError, match=str(path)):
            SqlLedger(f"sqlite:///{path}")
        assert path.read_bytes() == before  # WAL would show in its first bytes


def test_a_ledger_needs_a_file_in_an_existing_folder(tmp_path):
    for make in (True, False):
        with pytest.raises(LedgerError, match=str(tmp_path)):
            SqlLedger(f"sqlite:///{tmp_path}", make=make)
    with pytest.raises(LedgerError, match=f"{tmp_path}/no"):
        SqlLedger(f"sqlite:///{tmp_path}/no/ledger.db", make=True)


def test_a_server_that_does_not_answer():
    with pytest.raises(LedgerError, match=r"postgresql.*nobody:\*\*\*@"):
        Program.open("postgresql://nobody:secret@127.0.0.1:1/nothing")


@pytest.mark.parametrize(
    "url",
    [
        "mysql://ann:secret@host/db",
        "postgresql://ann:secret@host:port/db",
        "postgresql://ann:sec:ret@host:1/db?sslpassword=secret",
        "postgresql://127.0.0.1:1/db?user=ann&password=secret",
        "postgres://ann:secret@127.0.0.1:1/db",
        "postgresql+asyncpg://ann:secret@127.0.0.1:1/db",
        "ann:secret@host",
        "postgresql://ann@corp:secret@host:port/db",
        "postgresql//ann:secret@host/db",
        "password = 'secret' host=h",
    ],
)
def test_no_message_shows_a_password(url):
    with pytest.raises(LedgerError) as raised:
        Program.open(url)
    shown = str(raised.value)
    assert "secret" not in shown
    assert "sec:ret" not in shown
    assert len(shown.splitlines()) == 1


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_server_may_be_called_postgres(url):
    started(url, algorithm_1())
    assert Program.open(url.replace("postgresql://", "postgres://")).checkpoint().number > 0


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_connection_lost_in_the_middle_of_a_copy(url, monkeypatch):
    program, twin, (one, *_) = started(url, algorithm_1())
    before = program.checkpoint()
    write_row, n_written = psycopg.Copy.write_row, []

    def cut(self, row):
        write_row(self, row)
        n_written.append(1)
        if len(n_written) == 50:
            with psycopg.connect(url, autocommit=True) as other:
                ((pid, query),) = other.execute(
                    "SELECT pid, query FROM pg_stat_activity WHERE state = 'active' "
                    "AND datname = current_database() AND pid != pg_backend_pid()"
                ).fetchall()
                assert query.startswith("COPY people")
                other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])

    group = one.people.group
    with monkeypatch.context() as patch:
        patch.setattr(psycopg.Copy, "write_row", cut)
        with pytest.raises(LedgerError, match="could not be used"):
            program.decide(one.people.X, sensitive_features=group, batch="b")
    assert len(n_written) >= 50
    assert program.checkpoint() == before
    assert same(
        program.decide(one.people.X, sensitive_features=group, batch="b"),
        twin.decide(one.people.X, sensitive_features=group),
    )
    assert verify(program.ledger).ok


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_no_connection_stays_open_between_calls(url):
    """So a process may fork at any time, and a server may restart."""
    program, *_ = started(url, algorithm_1())
    program.summary()
    others = (
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    with psycopg.connect(url, autocommit=True) as connection:
        for _ in range(600):  # the server may need a while to end a session that was closed
            (n,) = connection.execute(others).fetchone()
            if not n:
                break
            connection.execute("SELECT pg_sleep(0.1)")
        assert n == 0


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_commit_whose_answer_was_lost_is_reported_as_unknown(url, monkeypatch):
    program, twin, (one, *_) = started(url, algorithm_1())
    dialect = program.ledger.engine.dialect
    commit = dialect.do_commit

    def committed_and_lost(connection):
        commit(connection)
        raise psycopg.OperationalError("the connection was lost")

    group = one.people.group
    with monkeypatch.context() as patch:
        patch.setattr(dialect, "do_commit", committed_and_lost)
        with pytest.raises(LedgerError, match=r"the connection was lost"):
            program.decide(one.people.X, sensitive_features=group, batch="b")
    assert same(
        program.decide(one.people.X, sensitive_features=group, batch="b"),
        twin.decide(one.people.X, sensitive_features=group),
    )
    assert verify(program.ledger).n_decisions == len(group)
