"""A program that is killed at any moment continues to the same end; writers take turns."""

from __future__ import annotations

import copy
import multiprocessing
import os
import signal
import threading
import time
from itertools import count

import numpy as np
import pytest
import sqlalchemy as sa

from ledger_worlds import algorithm_1, started
from secondlook.ledger.program import Program
from secondlook.ledger.sql import SqlLedger
from secondlook.ledger.verification.walk import verify

# Newer Pythons, and jax where another test has loaded it, warn of forks in a process with threads,
# which those of pytest-xdist have. The children use none of these.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*fork:RuntimeWarning"),
]
_OPENING, _PER_BATCH = 40, 25  # about as many statements are sent
FORK = multiprocessing.get_context("fork")


def live(url, batches, answered, *, die_at=None, hasty=False):
    """Decide and observe everything, sending each answer; die at a statement if asked to."""
    if die_at is not None:
        left = [die_at]

        def countdown(*_):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        sa.event.listen(sa.Engine, "before_cursor_execute", countdown)
        sa.event.listen(sa.Engine, "commit", countdown)
    program = Program.open(url, snapshot_every=4)
    for t, one in enumerate(batches):
        if hasty:  # what must never be done: to answer before the decisions are recorded
            with SqlLedger(url).reading("main") as reader:
                known = reader.entry("batch", f"b{t}") is not None
            if not known:
                twin = copy.deepcopy(program.classifier)
                decided = twin.decide(one.people.X, sensitive_features=one.people.group)
                answered.send((t, decided.accepted.tobytes()))
        decided = program.decide(one.people.X, sensitive_features=one.people.group, batch=f"b{t}")
        answered.send((t, decided.accepted.tobytes()))
        yes = decided.accepted
        program.observe(decided.ids[yes], one.outcome[yes])
    answered.send(None)


def run_and_kill(url, batches, *, die_at=None, after=None, hasty=False):
    """Run in a child process until it is killed; return its answers, and whether it finished."""
    ours, theirs = FORK.Pipe(duplex=False)
    child = FORK.Process(
        target=live, args=(url, batches, theirs), kwargs={"die_at": die_at, "hasty": hasty}
    )
    child.start()
    theirs.close()
    if after is not None:
        clock = threading.Timer(after, child.kill)
        clock.start()
    answered, ended = {}, False
    try:
        while (told := ours.recv()) is not None:
            answered[told[0]] = told[1]
        ended = True
    except EOFError:
        pass
    child.join()
    if after is not None:
        clock.cancel()
    return answered, ended


def crash(url, n_kills, n_rounds, seed, *, hasty=False):
    rng = np.random.default_rng(seed)
    _, twin, batches = started(url, algorithm_1(), n_batch=40, n_rounds=n_rounds)
    expected = []
    for one in batches:
        decided = twin.decide(one.people.X, sensitive_features=one.people.group)
        yes = decided.accepted
        twin.observe(decided.ids[yes], one.outcome[yes])
        expected.append(yes.tobytes())
    killed = 0
    begun = time.perf_counter()
    run_and_kill(url, batches[:1])
    opening = time.perf_counter() - begun
    for turn in count():
        if killed == n_kills:
            break
        some = batches[: 1 + killed * len(batches) // n_kills]
        if hasty:  # more than four statements lie between the answer and the record
            some, how = batches[:3], {"die_at": _OPENING + 4 * turn}
        elif turn % 2:
            how = {"die_at": int(rng.integers(1, _OPENING + _PER_BATCH * len(some)))}
        else:
            how = {"after": opening * rng.uniform(0.5, 2)}
        answered, ended = run_and_kill(url, some, hasty=hasty, **how)
        killed += not ended
        assert all(expected[t] == accepted for t, accepted in answered.items())
        found = verify(SqlLedger(url)) if turn == n_kills // 2 else None
        assert found is None or found.ok, found.problem
        with SqlLedger(url).reading("main") as reader:
            rounds = [entry.says["round"] for entry in reader.entries(kind="batch")]
        assert rounds == list(range(1, len(rounds) + 1))
        assert len(rounds) >= len(answered), "an answered batch is not recorded"
    answered, ended = run_and_kill(url, batches)
    assert ended
    assert [answered[t] for t in range(len(batches))] == expected
    found = verify(SqlLedger(url))
    assert found.ok, found.problem
    assert found.n_decisions == 40 * len(batches)
    assert repr(Program.open(url).classifier.rounds_) == repr(twin.rounds_)


def test_a_killed_program_continues_to_the_same_end(url):
    crash(url, n_kills=20, n_rounds=6, seed=1)


def test_answering_before_recording_is_detected(tmp_path):
    with pytest.raises(AssertionError, match="an answered batch is not recorded"):
        crash(f"sqlite:///{tmp_path}/x.db", n_kills=100, n_rounds=3, seed=1, hasty=True)


@pytest.mark.long
def test_a_program_killed_hundreds_of_times(url):
    crash(url, n_kills=500, n_rounds=12, seed=2)


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
    together(url, n_processes=4, each=5)


@pytest.mark.long
def test_many_processes_that_decide_at_once_take_turns(url):
    together(url, n_processes=8, each=25)
