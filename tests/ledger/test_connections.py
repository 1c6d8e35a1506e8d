"""Connections to a server that does not answer or stops, and passwords in messages."""

from __future__ import annotations

import psycopg
import pytest

from ledger_worlds import algorithm_1, same, started
from secondlook.errors import LedgerError
from secondlook.ledger import Program, verify


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
    sessions = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
    with psycopg.connect(url) as connection:
        connection.execute("SELECT pg_sleep(0.1)")
        pids = {pid for (pid,) in connection.execute(sessions)}
        assert pids == {connection.info.backend_pid}


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
