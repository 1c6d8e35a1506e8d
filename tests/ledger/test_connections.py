"""Connections to a server that is not there, goes, or is shared with a child, and one too many."""

from __future__ import annotations

import gc
import os

import psycopg
import pytest

from ledger_worlds import algorithm_1, same, started
from secondlook.errors import LedgerError
from secondlook.ledger import Program, verify
from secondlook.ledger.copying import BinaryRows

# Newer Pythons, and jax where another test has loaded it, warn of forks beside threads.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*fork:RuntimeWarning"),
]


def test_a_server_that_is_not_there():
    with pytest.raises(LedgerError, match=r"postgresql.*nobody:\*\*\*@.* could not be used \("):
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
    with pytest.raises(LedgerError) as told:
        Program.open(url)
    shown = str(told.value)
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
    blocks = BinaryRows.blocks
    sent = []

    def cut(self, parts):
        for block in blocks(self, parts):
            yield block
            sent.append(len(block))
            if len(sent) == 3:  # the beginning, and two blocks of rows
                with psycopg.connect(url, autocommit=True) as other:
                    found = other.execute(
                        "SELECT pid, query FROM pg_stat_activity WHERE state = 'active' "
                        "AND datname = current_database() AND pid != pg_backend_pid()"
                    ).fetchall()
                    ((pid, query),) = found
                    assert query.startswith("COPY people")
                    other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])

    group = one.people.group
    with monkeypatch.context() as patch:
        patch.setattr("secondlook.ledger.bulk._SENT", 50)
        patch.setattr(BinaryRows, "blocks", cut)
        with pytest.raises(LedgerError, match="could not be used"):
            program.decide(one.people.X, sensitive_features=group, batch="b")
    assert len(sent) >= 3
    assert program.checkpoint() == before
    assert same(
        program.decide(one.people.X, sensitive_features=group, batch="b"),
        twin.decide(one.people.X, sensitive_features=group),
    )
    assert verify(program.ledger).ok


def session_of(program):
    with program.ledger.engine.connect() as connection:
        return connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_fork_leaves_the_kept_connection_to_its_parent(url):
    program, twin, (one, two, *_) = started(url, algorithm_1())
    kept = session_of(program)
    child = os.fork()
    if child == 0:
        own = 1
        try:
            program.decide(one.people.X, sensitive_features=one.people.group, batch="of the child")
            own = int(session_of(program) == kept)
            program.ledger.close()
        finally:
            os._exit(own)
    assert os.waitpid(child, 0)[1] == 0
    assert session_of(program) == kept
    for batch, people in (("of the child", one.people), ("of the parent", two.people)):
        assert same(
            program.decide(people.X, sensitive_features=people.group, batch=batch),
            twin.decide(people.X, sensitive_features=people.group),
        )
    assert verify(program.ledger).ok


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_kept_connection_that_the_server_ended_is_made_anew(url):
    program, twin, (one, *_) = started(url, algorithm_1())
    ended = session_of(program)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(%s, 5000)", [ended])
    assert same(
        program.decide(one.people.X, sensitive_features=one.people.group),
        twin.decide(one.people.X, sensitive_features=one.people.group),
    )
    assert session_of(program) != ended


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_ledger_that_nobody_needs_keeps_no_connection(url):
    program, *_ = started(url, algorithm_1())
    other = Program.open(url)
    sessions = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"

    def listed():
        with psycopg.connect(url) as connection:
            connection.execute("SELECT pg_sleep(0.1)")
            found = {pid for (pid,) in connection.execute(sessions)}
            return found - {connection.info.backend_pid}

    kept = session_of(other)
    assert kept in listed()
    del other
    gc.collect()
    assert kept not in listed()
    kept = session_of(program)
    program.ledger.close()
    assert kept not in listed()


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_an_answer_that_was_lost_on_its_way_is_not_called_nothing(url, monkeypatch):
    program, twin, (one, *_) = started(url, algorithm_1())
    dialect = program.ledger.engine.dialect
    commit = dialect.do_commit

    def committed_and_lost(connection):
        commit(connection)
        raise psycopg.OperationalError("the connection was lost")

    group = one.people.group
    with monkeypatch.context() as patch:
        patch.setattr(dialect, "do_commit", committed_and_lost)
        with pytest.raises(LedgerError, match=r"not known whether .* again under the same batch n"):
            program.decide(one.people.X, sensitive_features=group, batch="b")
    assert same(
        program.decide(one.people.X, sensitive_features=group, batch="b"),
        twin.decide(one.people.X, sensitive_features=group),
    )
    assert verify(program.ledger).n_decisions == len(group)
