"""Many rows at once: they come back as they were, and are made while those before are stored."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sqlalchemy as sa

from secondlook.ledger import schema
from secondlook.ledger.bulk import insert_columns
from secondlook.ledger.sql import SqlLedger
from secondlook.ledger.sqlite_rows import LongStatements, made_ahead


@pytest.mark.parametrize("n", [1, 59, 60, 61, 1000, 1001, 2500])
def test_rows_come_back_as_they_were_whatever_their_kinds_and_number(url, n, monkeypatch):
    monkeypatch.setattr("secondlook.ledger.sqlite_rows._FEW", 1000)
    rng = np.random.default_rng(n)
    ledger, table = SqlLedger(url, make=True), schema.people
    some = rng.random(n) < 0.3

    def sparse(values):
        return [None if gone else one for gone, one in zip(some, values, strict=True)]

    columns = {
        "person": range(7, 7 + n),
        "application": sparse([f"\u00e9{at}" * (at % 3 + 1) for at in range(n)]),
        "numbers": [rng.bytes(at % 4) for at in range(n)],
        "texts": [None] * n,
        "salt": [rng.bytes(16) for _ in range(n)],
        "digest": np.frombuffer(rng.bytes(32 * n), "V32"),
        "accepted": rng.random(n) < 0.5,
        "exploit": ~some,
        "score": np.where(some, np.nan, rng.normal(size=n) * 10.0 ** rng.integers(-300, 300, n)),
        "propensity": np.where(np.arange(n) % 2, np.inf, -0.0),
        "threshold": np.full(n, np.nan),
        "fold": rng.integers(-3, 3, n),
        "reasons": sparse([rng.bytes(5) for _ in range(n)]),
    }
    with ledger._transaction() as connection:
        insert_columns(connection, (table, {"program": 3, "round": 2**31 - 1, **columns}))
        insert_columns(
            connection, (schema.erasures, {"program": 3, "entry": 1, "person": range(0)})
        )
    with ledger.engine.connect() as connection:
        rows = connection.execute(sa.select(table).order_by(table.c.person)).mappings().all()
    assert len(rows) == n
    for name, told in columns.items():
        found = [row[name] for row in rows]
        if isinstance(told, np.ndarray) and told.dtype.kind == "V":
            assert b"".join(found) == told.tobytes()
        elif isinstance(told, np.ndarray):
            assert np.array_equal(np.array(found, told.dtype), told, equal_nan=told.dtype == float)
            assert (None in found) == bool(told.dtype == float and np.isnan(told).any())
        else:
            assert found == list(told)
    assert {(row["program"], row["round"]) for row in rows} == {(3, 2**31 - 1)}


def test_group_values_come_back_as_they_were(url, monkeypatch):
    monkeypatch.setattr("secondlook.ledger.sqlite_rows._NUMBERED", 7)
    strange = [
        "",
        "'",
        '"',
        "\\",
        "\n\x01\x1f",
        "\U0001f600",
        "e\u0301",
        "[1]",
        "null",
        "1e3",
        "x" * 5000,
    ]
    values = strange * 2
    table, n = schema.group_values, len(values)
    salt, digest = ([bytes([at]) * width for at in range(n)] for width in (16, 32))
    ledger = SqlLedger(url, make=True)
    rows = {"program": 1, "person": range(50, 50 + n), "value": values, "salt": salt}
    with ledger._transaction() as connection:
        insert_columns(connection, (table, rows | {"digest": digest}))
    with ledger.engine.connect() as connection:
        found = connection.execute(sa.select(table).order_by(table.c.person)).all()
    assert found == list(zip([1] * n, range(50, 50 + n), values, salt, digest, strict=True))


@pytest.mark.parametrize("most_bound", [999, 32766])
def test_a_statement_binds_no_more_than_a_database_allows(most_bound):
    n = 16_000
    columns = {
        "program": 1,
        "person": range(n),
        "application": [str(at) for at in range(n)],
        "salt": [bytes(16)] * n,
        "score": np.zeros(n),
        "accepted": np.zeros(n, bool),
    }
    rows = LongStatements(schema.people, columns, most_bound)
    [(statement, bound)] = rows.of([slice(0, rows.size)])
    assert len(bound) == 1 + 4 * rows.size <= most_bound
    assert statement.count("(1, ") == rows.size
    assert rows.size == {999: 249, 32766: 400}[most_bound]


def test_the_next_is_made_while_the_one_before_is_used():
    begun = threading.Event()

    def making():
        yield threading.current_thread()
        begun.set()
        yield threading.current_thread()

    coming = made_ahead(making())
    first = next(coming)
    assert first is not threading.current_thread()
    assert begun.wait(60)  # though nobody has asked for the second
    assert list(coming) == [first]
    assert not first.is_alive()


@pytest.mark.parametrize("after", [0, 1, 2])
def test_without_a_thread_all_is_made_in_this_one(monkeypatch, after):
    submit, left = ThreadPoolExecutor.submit, [after]

    def refuse(self, *args):
        left[0] -= 1
        if left[0] < 0:
            raise RuntimeError("cannot schedule new futures after interpreter shutdown")
        return submit(self, *args)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", refuse)
    assert list(made_ahead(iter([1, None, 2, 0]))) == [1, None, 2, 0]


def test_a_program_decides_when_python_is_about_to_end(tmp_path):
    script = f"""
import atexit
import numpy as np
from secondlook import PartialFeedbackClassifier
from secondlook.ledger import Program
from secondlook.ledger import sqlite_rows
sqlite_rows._FEW = 100
X = np.random.default_rng(0).normal(size=(1000, 2))
clf = PartialFeedbackClassifier(random_state=0)
program = Program.create("sqlite:///{tmp_path}/ledger.db", clf, X[:400], X[:400, 0] > 0)
atexit.register(lambda: print(len(program.decide(X[400:]).ids)))
"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.stdout == "600\n", done.stderr


def test_what_goes_wrong_in_the_making_is_raised_and_the_thread_ends():
    def making():
        yield 1
        raise ValueError("no more")

    coming = made_ahead(making())
    assert next(coming) == 1
    with pytest.raises(ValueError, match="no more"):
        next(coming)
    before = threading.active_count()
    left = made_ahead(iter([1, 2, 3]))
    next(left)
    assert threading.active_count() == before + 1
    left.close()
    assert threading.active_count() == before


def test_rows_that_fail_to_be_prepared_leave_nothing_behind(url, monkeypatch):
    for name, few in (
        ("bulk._FIRST", 5),
        ("bulk._SENT", 10),
        ("sqlite_rows._FEW", 50),
        ("sqlite_rows._FEWEST", 10),
    ):
        monkeypatch.setattr(f"secondlook.ledger.{name}", few)
    ledger, n, before = SqlLedger(url, make=True), 100, threading.active_count()
    columns = {
        "program": 1,
        "person": range(n),
        "digest": np.zeros(n, "V32"),
        "round": 1,
        "accepted": np.ones(n, bool),
        "exploit": np.ones(n, bool),
    }

    prepared = []

    def prepare(rows):
        if rows.stop > 50:
            raise ValueError("half is enough")
        prepared.append(rows.stop)

    with pytest.raises(ValueError, match="half"), ledger._transaction() as connection:
        insert_columns(connection, (schema.people, columns), prepare=prepare)
    assert len(prepared) > 3  # parts had been sent
    assert threading.active_count() == before
    with ledger.engine.connect() as connection:
        count = sa.select(sa.func.count()).select_from(schema.people)
        assert connection.execute(count).scalar() == 0
