"""Tables are made by migrations, old ledgers are brought up, newer ones are refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from secondlook.errors import LedgerError
from secondlook.ledger import schema
from secondlook.ledger.program import Program
from secondlook.ledger.sql import SqlLedger
from secondlook.ledger.verifying import verify

FIRST = Path(__file__).parent / "first.db"


def test_migrations_make_the_tables_of_the_schema(url):
    ledger = SqlLedger(url, make=True)
    with ledger.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, schema.metadata) == []
        assert context.get_current_revision() == schema.NEWEST
    assert SqlLedger(url).programs() == []


def test_a_ledger_of_a_newer_version_is_refused(url):
    ledger = SqlLedger(url, make=True)
    with ledger.engine.connect().execution_options(writes=True) as connection, connection.begin():
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(LedgerError, match=r"version 9999, made by a newer secondlook, .* 0002;"):
        SqlLedger(url)


def test_a_ledger_of_the_first_version_goes_on(tmp_path):
    path = tmp_path / "first.db"
    shutil.copy(FIRST, path)
    url = f"sqlite:///{path}"
    found = verify(SqlLedger(url))
    assert found.problem is None
    assert found.n_decisions == 80
    program = Program.open(url)
    X = np.random.default_rng(5).normal(size=(20, 2))
    assert len(program.decide(X, sensitive_features=["A", "B"] * 10, batch="new")) == 20
    assert verify(program.ledger).n_decisions == 100


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
