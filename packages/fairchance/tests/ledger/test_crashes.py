"""A program that is killed, or whose server is, continues to the same end; writers take turns."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from functools import partial

import numpy as np
import psutil
import psycopg
import pytest
import sqlalchemy as sa

from crashing import FORK, decide_and_observe, interrupted, run
from fairchance.errors import UnknownIdError
from fairchance.ledger.program import Program
from fairchance.ledger.sql import SqlLedger
from fairchance.ledger.verification.walk import verify
from ledger_worlds import algorithm_1, started

# Newer Pythons, and jax where another test has loaded it, warn of forks in a process with threads,
# which those of pytest-xdist have. The children use none of these.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*fork:RuntimeWarning"),
]
_OPENING, _PER_BATCH = 40, 70  # about as many statements are sent
_TRIES = 20  # of a control that is only caught if it loses a race


def at_statements(gaps, act, events=("before_cursor_execute", "commit")):
    """Act with the connection before some statements and commits, after gaps that are drawn."""
    left = [gaps()]

    def countdown(connection, *_):
        left[0] -= 1
        if left[0] == 0:
            left[0] = gaps()
            act(connection)

    for event in events:
        sa.event.listen(sa.Engine, event, countdown)


def die_at(statement):
    at_statements(lambda: statement, lambda _: os.kill(os.getpid(), signal.SIGKILL))
    return int


def kill_programs(url, n_kills, n_rounds, seed):
    def interrupt(some, rng, turn):
        if turn % 2:
            return run(
                url, some, die_at, (int(rng.integers(1, _OPENING + _PER_BATCH * len(some))),)
            )
        begun = time.perf_counter()
        life = run(url, some, after=opening[0] * rng.uniform(0.5, 2) if turn else None)
        opening.append(time.perf_counter() - begun)
        return life

    opening = []
    interrupted(url, n_kills, n_rounds, seed, interrupt)


def test_a_killed_program_continues_to_the_same_end(url):
    kill_programs(url, n_kills=8, n_rounds=6, seed=1)


@pytest.mark.long
def test_a_program_killed_hundreds_of_times(url):
    kill_programs(url, n_kills=500, n_rounds=100, seed=2)


def test_answering_before_recording_is_detected(tmp_path):
    url, hastily = f"sqlite:///{tmp_path}/x.db", partial(decide_and_observe, hasty=True)

    def interrupt(some, _rng, turn):  # more than four statements lie between answer and record
        return run(url, some, die_at, (_OPENING + 4 * turn,), work=hastily)

    with pytest.raises(AssertionError, match="an answered call is not recorded"):
        interrupted(url, n_faults=100, n_rounds=1, seed=1, interrupt=interrupt)


def kill_server(seed, hasty=False):
    """Now and then kill the server's process of this connection, or all of them.

    They are killed before a statement or commit, or some moments later, when a commit may be done.
    """
    rng, n_kills = np.random.default_rng(seed), [0]

    def kill(connection):
        backend = connection.connection.driver_connection.info.backend_pid
        whole = rng.random() < 0.1
        how = rng.choice([signal.SIGKILL, signal.SIGQUIT if whole else signal.SIGTERM])
        if rng.random() < 0.5:
            strike(backend, how, whole)
        else:
            threading.Timer(rng.uniform(0, 0.003), strike, (backend, how, whole)).start()

    def strike(backend, how, whole):
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(backend)
            if whole:
                process = process.parent()
            if process.name() == "postgres":  # not what adopted an orphan
                process.send_signal(how)
                n_kills[0] += 1

    def commit_hastily(connection):  # what must never be done
        connection.exec_driver_sql("SET LOCAL synchronous_commit = off")

    if hasty:
        sa.event.listen(sa.Engine, "commit", commit_hastily)
    at_statements(lambda: int(rng.integers(1, 4 * _PER_BATCH)), kill)
    at_statements(lambda: int(rng.integers(1, 6)), kill, ("commit",))
    return lambda: n_kills[0]


def revive(server):
    """Start a server again if it was killed."""
    for _ in range(1000):  # minutes, for a busy machine
        try:
            server.ensure_postgres_running()
            return psycopg.connect(server.get_uri()).close()
        except (AssertionError, subprocess.SubprocessError, psycopg.OperationalError):
            time.sleep(0.1)  # its processes are not yet gone, or it recovers
    raise AssertionError("the server does not start")


def kill_servers(url, server, n_kills, n_rounds, seed, *, hasty=False):
    with psycopg.connect(url, autocommit=True) as connection:  # which a program must not follow
        connection.execute(f"ALTER DATABASE {connection.info.dbname} SET synchronous_commit = off")

    def interrupt(some, _rng, turn):
        args = ([seed, turn], hasty)
        life = run(url, some, kill_server, args, on_error=lambda: revive(server))
        revive(server)
        return life

    return interrupted(url, n_kills, n_rounds, seed, interrupt)


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_program_whose_server_is_killed_continues_to_the_same_end(url, postgres):
    assert kill_servers(url, postgres, n_kills=6, n_rounds=6, seed=1)


def test_commits_that_do_not_wait_for_the_disk_are_detected(new_database, postgres):
    """A kill must come before the server writes the commit, so that one try may detect nothing."""
    lost = "an answered call is not recorded|ids are unknown"  # of a batch that was decided

    def until_detected():
        for seed in range(1, _TRIES + 1):
            kill_servers(new_database(), postgres, n_kills=20, n_rounds=20, seed=seed, hasty=True)

    with pytest.raises((AssertionError, UnknownIdError), match=lost):
        until_detected()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_program_whose_server_is_killed_hundreds_of_times(url, postgres, seed):
    kill_servers(url, postgres, n_kills=30, n_rounds=30, seed=seed)


def decide_mine(url, number, batches):
    program = Program.open(url)
    for turn, people in enumerate(batches):
        ids = 1_000_000 * (number + 1) + 1_000 * turn + np.arange(len(people.group))
        program.decide(people.X, sensitive_features=people.group, ids=ids, batch=f"{number}/{turn}")


def together(url, n_processes, each):
    _, _, batches = started(url, algorithm_1(), n_batch=20, n_rounds=n_processes * each)
    parts = [
        [one.people for one in batches[number * each : (number + 1) * each]]
        for number in range(n_processes)
    ]
    children = [
        FORK.Process(target=decide_mine, args=(url, number, part))
        for number, part in enumerate(parts)
    ]
    for one in children:
        one.start()
    for one in children:
        one.join()
    assert [one.exitcode for one in children] == [0] * n_processes
    with SqlLedger(url).reading("main") as reader:
        entries = list(reader.entries(kind="batch"))
        assert [one.says["round"] for one in entries] == list(range(1, n_processes * each + 1))
        keys = {one.key for one in entries}
    assert keys == {f"{number}/{turn}" for number in range(n_processes) for turn in range(each)}
    found = verify(SqlLedger(url))
    assert found.ok, found.problem
    assert found.n_decisions == 20 * n_processes * each


def test_processes_that_decide_at_once_take_turns(url):
    together(url, n_processes=4, each=3)


@pytest.mark.long
def test_many_processes_that_decide_at_once_take_turns(url):
    together(url, n_processes=8, each=25)
