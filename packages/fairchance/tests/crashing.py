"""Programs that are interrupted, and what must be true afterwards.

Not part of a test module, since the processes of `ledger/test_disk_faults.py` import it by name.
"""

from __future__ import annotations

import copy
import multiprocessing
import signal
import threading
import time
import warnings
from dataclasses import dataclass, field

import numpy as np

from fairchance.errors import LedgerError, LedgerWarning
from fairchance.ledger.chain import Checkpoint
from fairchance.ledger.program import Program
from fairchance.ledger.sql import SqlLedger
from fairchance.ledger.verification.walk import verify
from ledger_worlds import algorithm_1, started

FORK = multiprocessing.get_context("fork")
N_BATCH = 40
ERASES, ERASED = 2, np.array([5, 6])  # after the batch of this number: applicants of the history
_PATIENCE = 500  # calls that may fail in a row


def decide_and_observe(url, batches, answered, *, hasty=False):
    """Decide and observe all batches, sending each answer; call again what the ledger fails."""
    program = insist(lambda: Program.open(url), answered.send)
    for t, one in batches:
        X, group = one.people.X, one.people.group
        if hasty:  # what must never be done: to answer before the decisions are recorded
            with SqlLedger(url).reading("main") as reader:
                known = reader.entry("batch", f"b{t}") is not None
            if not known:
                decided = copy.deepcopy(program.classifier).decide(X, sensitive_features=group)
                answered.send((t, decided.accepted.tobytes()))

        def decide(X=X, group=group, t=t):
            return program.decide(X, sensitive_features=group, batch=f"b{t}")

        decided = insist(decide, answered.send, program)
        answered.send((t, decided.accepted.tobytes()))
        for call in changes(program, decided, one, t):
            insist(call, answered.send, program)
    answered.send(insist(program.checkpoint, answered.send))


def changes(program, decided, one, t):
    """Return calls that change the record after a batch; each may come again, under its name."""
    yes = np.flatnonzero(decided.accepted)
    first, others = decided.ids[yes[:1]], yes[1:]
    observed = decided.ids[others], one.outcome[others]
    calls = [
        lambda: program.observe(*observed, request=f"observed {t}"),
        lambda: program.hold(first, "a case", request=f"held {t}"),
        lambda: program.override(first, False, "forged", request=f"overridden {t}"),
    ]
    return [*calls, lambda: erase(program)] if t == ERASES else calls


def erase(program):
    with warnings.catch_warnings():  # if only the files could not be written anew
        warnings.simplefilter("ignore", LedgerWarning)
        program.erase(ERASED, "asked", early=True, request="erased")


def changed(twin, decided, one, t):
    """Do to a classifier what ``changes`` do to a program."""
    yes = np.flatnonzero(decided.accepted)
    twin.observe(decided.ids[yes[1:]], one.outcome[yes[1:]])
    twin.withdraw(decided.ids[yes[:1]])
    if t == ERASES:
        twin.forget(ERASED)


def make_and_erase(url, past, answered):
    """Start a program from a history and erase its first two applicants, or go on with that."""
    people, ids = past.people, [f"applicant {n}." for n in range(len(past.accepted))]
    history = {"accepted": past.accepted, "sensitive_features": people.group, "ids": ids}
    try:
        program = Program.open(url)
    except LedgerError:
        program = Program.create(url, algorithm_1(), people.X, past.outcomes, **history)
    answered.send(program.checkpoint())
    if (program.standing(ids[:2]).persons >= 0).any():
        program.erase(ids[:2], "they asked for it", early=True)
        answered.send((0, b""))
    answered.send(program.checkpoint())


def insist(call, send, program=None):
    """Call until the ledger does not fail, and look whether a failed call recorded something."""
    before = None
    if program is not None:
        before = insist(program.checkpoint, send)
        send(before)
    for _ in range(_PATIENCE):
        try:
            return call()
        except LedgerError as error:
            problem = str(error)
        send(problem)
        time.sleep(0.02)  # for a server that comes back
        if program is not None:
            after = insist(program.checkpoint, send)
            assert after.number >= before.number, "an answered call is not recorded"
            if "nothing of this call was recorded" in problem:
                assert after == before, f"a failed call is recorded: {problem}"
            before = after
    raise AssertionError(f"the ledger still fails after {_PATIENCE} calls")


@dataclass
class Life:
    """What a process sent: answers, the number of entries then, errors, and how many faults.

    A process that did not finish has been killed, which is one fault.
    """

    answered: dict = field(default_factory=dict)
    n_entries: int = 0
    errors: list = field(default_factory=list)
    n_faults: int = 1
    ended: bool = False


def live(work, url, batches, answered, prepare=None, args=()):
    try:
        n_faults = int if prepare is None else prepare(*args)
        work(url, batches, answered)
        answered.send(n_faults())
    except Exception as error:  # for the parent to raise
        answered.send(error)


def run(url, batches, *args, work=decide_and_observe, context=FORK, after=None, on_error=None):
    """Work in a child process until it ends or is killed.

    ``args`` are a function that plans faults and returns one that counts those that have happened,
    and the arguments of the former.
    """
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=live, args=(work, url, batches, theirs, *args))
    child.start()
    theirs.close()
    clock = threading.Timer(after or 0, child.kill)
    if after is not None:
        clock.start()
    life = Life()
    try:
        while not isinstance(sent := ours.recv(), int):
            if isinstance(sent, Exception):
                raise sent
            if isinstance(sent, str):
                life.errors.append(sent)
                if on_error is not None:
                    on_error()
            elif isinstance(sent, Checkpoint):
                life.n_entries = sent.number
            else:
                life.answered[sent[0]] = sent[1]
        life.n_faults, life.ended = sent, True
    except EOFError:
        child.join()
        assert child.exitcode == -signal.SIGKILL
    finally:
        child.join()
        clock.cancel()
    return life


def recorded(url):
    with SqlLedger(url).reading("main") as reader:
        rounds = [entry.says["round"] for entry in reader.entries(kind="batch")]
        return rounds, reader.head().number


def interrupted(url, n_faults, n_rounds, seed, interrupt):
    """Interrupt a program many times; it must lose no answer and end as if it had never been.

    ``interrupt(some, rng, turn)`` lives through the last recorded batch and a new one, and returns
    the ``Life``. With as many rounds as faults there is mostly a new one.
    """
    rng = np.random.default_rng(seed)
    _, twin, batches = started(url, algorithm_1(), n_batch=N_BATCH, n_rounds=n_rounds)
    expected = []
    for t, one in enumerate(batches):
        decided = twin.decide(one.people.X, sensitive_features=one.people.group)
        changed(twin, decided, one, t)
        expected.append(decided.accepted.tobytes())
    named, rounds = list(enumerate(batches)), []
    n, turn, errors = 0, 0, []
    while n < n_faults:
        first = max(0, len(rounds) - 1)
        life = interrupt(named[first : first + 2], rng, turn)
        errors += life.errors
        assert all(expected[t] == accepted for t, accepted in life.answered.items())
        rounds, n_entries = insist(lambda: recorded(url), errors.append)
        assert rounds == list(range(1, len(rounds) + 1))
        n_answered = max(life.answered, default=-1) + 1
        is_kept = len(rounds) >= n_answered and n_entries >= life.n_entries
        assert is_kept, "an answered call is not recorded"
        if n // 10 < (n + life.n_faults) // 10:
            found = insist(lambda: verify(SqlLedger(url)), errors.append)
            assert found.ok, found.problem
        n, turn = n + life.n_faults, turn + 1
    life = run(url, named)
    assert life.ended
    assert [life.answered[t] for t in range(len(batches))] == expected
    found = verify(SqlLedger(url))
    assert found.ok, found.problem
    assert found.n_decisions == N_BATCH * len(batches)
    with SqlLedger(url).reading("main") as reader:
        for kind in ("outcomes", "hold", "override"):
            assert len([*reader.entries(kind=kind)]) == len(batches)
        assert len([*reader.entries(kind="erasure")]) == (len(batches) > ERASES)
    assert repr(Program.open(url).classifier.rounds_) == repr(twin.rounds_)
    return errors
