"""Processes that decide one by one in open rounds, and are killed: nothing is lost or doubled."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from contextlib import suppress
from functools import partial

import numpy as np
import pytest

import fairchance as fc
from crashing import FORK
from fairchance.errors import InputError, KnownApplicationError, LedgerError, RoundClosedError
from fairchance.ledger import inserts
from fairchance.ledger.base import Facts
from fairchance.ledger.program import Program
from fairchance.ledger.sql import SqlLedger
from ledger.batches import make_batch
from ledger.test_contract import check_chain
from ledger_worlds import algorithm_1, certified

# Newer Pythons, and jax where another test has loaded it, warn of forks in a process with threads.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*fork:RuntimeWarning"),
]
_PER_ROUND = 40  # decisions of a process after which it closes the round


def open_round(ledger, last=0):
    """Return the opening of a round after another, which this process opens if no other does."""
    with ledger.reading("p") as reader:
        opened = reader.open_round()
    if opened is not None and opened.says["round"] > last:
        return opened
    with ledger.writing("p") as writer:
        opened = writer.open_round()
        if opened is not None and opened.says["round"] <= last:
            writer.close_round({}, by="t")
            opened = None
        if opened is None:
            newest = next(writer.newest_first("round"), None)
            number = 1 if newest is None else newest.says["round"] + 1
            opened = writer.begin_round(number, {}, Facts(), groups=True, by="t")
    return opened


def decide(ledger, number, opened, hasty=None):
    """Record an applicant; return the opening and the receipt."""
    while True:
        facts = make_batch(number, 1, round=opened.says["round"])
        if hasty is not None:
            hasty(number)
        try:
            return opened, ledger.record_in_round("p", opened, facts)[0]
        except RoundClosedError:
            opened = open_round(ledger)
        except KnownApplicationError:
            with ledger.reading("p") as reader:
                return opened, reader.recorded(facts.people.applications).receipts[0]


def work(url, numbers, answered, prepare=None, hasty=False):
    """Decide applicants one by one, send each receipt, and close a round now and then."""
    if prepare is not None:
        prepare()
    ledger = SqlLedger(url)
    opened = open_round(ledger)
    sent = (lambda number: answered.send((number, b""))) if hasty else None
    for at, number in enumerate(numbers, start=1):
        opened, receipt = decide(ledger, number, opened, sent)
        answered.send((number, receipt))
        if at % _PER_ROUND == 0:
            opened = open_round(ledger, opened.says["round"])
    answered.close()


class Worker:
    """A process with applicants of its own, and what it has answered."""

    def __init__(self, url, first, work=work):
        self.url, self.next, self.receipts, self.work = url, first, {}, work
        self._process = None

    def start(self, n, *args):
        numbers = range(self.next, self.next + n)
        self._answers, sender = FORK.Pipe(duplex=False)
        self._process = FORK.Process(target=self.work, args=(self.url, numbers, sender, *args))
        self._process.start()
        sender.close()

    def wait(self):
        """Wait for an answer."""
        assert self._answers.poll(600)

    def kill(self):
        os.kill(self._process.pid, signal.SIGKILL)
        self.collect()
        assert self._process.exitcode == -signal.SIGKILL

    def collect(self):
        """Read what the process answered until it ended; the next one goes on after that."""
        with suppress(EOFError):
            while True:
                number, receipt = self._answers.recv()
                assert self.receipts.get(number, receipt) in (receipt, b""), "another answer"
                self.receipts[number] = receipt
                self.next = number + 1
        self._process.join()


def begun(url):
    ledger = SqlLedger(url, make=True)
    with ledger.creating("p") as writer:
        writer.append("program", {}, Facts(), by="t")
    return ledger


def check(ledger, workers):
    """Check that exactly what was answered is recorded, once; return the number of rounds.

    One more may be recorded for each process, whose answer did not arrive.
    """
    with ledger.writing("p") as writer:
        if writer.open_round() is not None:
            writer.close_round({}, by="t")
    check_chain(ledger)
    names, n = [], 0
    with ledger.reading("p") as reader:
        for n, entry in enumerate(reader.entries(kind="batch"), start=1):
            assert entry.says["round"] == n
            names += [name for people, _ in reader.parts(entry) for name in people.applications]
        assert len(names) == len({*names})
        answered = {f"a{k}": receipt for one in workers for k, receipt in one.receipts.items()}
        stored = reader.recorded([*answered])
        assert dict(zip(stored.people.applications, stored.receipts, strict=True)) == answered, (
            "an answer is not recorded"
        )
    more = {*names} - {*answered}
    assert more <= {f"a{one.next}" for one in workers}
    return n


def kill_at_random(workers, n_kills, seed, longest, *args):
    """Kill processes at random moments, most of them after an answer, and start them again."""
    rng = np.random.default_rng(seed)
    for one in workers:
        one.start(100_000, *args)
    for turn in range(n_kills):
        one = workers[rng.integers(len(workers))]
        if turn % 3:
            one.wait()
        time.sleep(rng.uniform(0, longest))
        one.kill()
        one.start(100_000, *args)
    time.sleep(longest)
    for one in workers:
        one.kill()


def kill_processes(url, n_kills, seed, n_workers=3):
    ledger, workers = begun(url), [Worker(url, 1_000_000 * at) for at in range(n_workers)]
    kill_at_random(workers, n_kills, seed, 0.2)
    assert sum(len(one.receipts) for one in workers) > n_kills
    return check(ledger, workers)


def test_killed_processes_lose_no_answer(url):
    kill_processes(url, n_kills=15, seed=1)


@pytest.mark.long
def test_processes_killed_hundreds_of_times(url):
    assert kill_processes(url, n_kills=200, seed=2) > 20


def decide_in_program(url, numbers, answered, hasty=False):
    """Decide applicants one by one, in rounds that this program opens and closes when due.

    The last applicant of a process that was killed is sent again, and some outcomes are recorded.
    """
    program, rng = Program.open(url, load=False), np.random.default_rng(numbers.start)
    for number in range(max(numbers.start - 1, numbers.start // 10**6 * 10**6), numbers.stop):
        X = np.random.default_rng(number).normal(size=(1, 2))
        if hasty and number >= numbers.start:
            answered.send((number, b""))
            time.sleep(0.05)
        decided = program.decide(X, ids=[number])
        answered.send((number, decided.receipts[0] + decided.accepted.tobytes()))
        if decided.accepted[0] and rng.random() < 0.2:
            program.observe([number], [int(X[0, 0] > -1)], request=f"outcome of {number}")
    answered.close()


def kill_programs(url, make, n_kills, seed, *hasty):
    """Kill programs in an open round; return them and how many rounds they closed."""
    X = np.random.default_rng(0).normal(size=(400, 2))
    past = {"accepted": X[:, 1] > -1, "about": {"rounds": {"at_most": 25}}}
    program = Program.create(url, make(), X, (X[:, 0] > -1).astype(int), **past)
    program.ledger.close()
    workers = [Worker(url, 10**6 * at, decide_in_program) for at in (1, 2)]
    kill_at_random(workers, n_kills, seed, 0.5, *hasty)
    answered = {str(number): said for one in workers for number, said in one.receipts.items()}
    with program.ledger.reading("main") as reader:
        stored = reader.recorded([*answered])
        said = zip(stored.receipts, stored.decisions.accepted, strict=True)
        recorded = [receipt + accepted.tobytes() for receipt, accepted in said]
        assert dict(zip(stored.people.applications, recorded, strict=True)) == answered, (
            "an answer is not recorded"
        )
        rounds = [entry.says["round"] for entry in reader.entries(kind="round")]
    assert rounds == list(range(1, len(rounds) + 1))
    found = program.verify()
    assert found.problem is None
    assert len(answered) <= found.n_decisions <= len(answered) + len(workers)
    program = Program.open(url)  # and it goes on
    assert program.decide(X[:1], ids=[10**7]).receipts
    assert program.verify(relearn=True).problem is None
    return len(answered), len(rounds)


PROGRAMS = [partial(algorithm_1, exploration="coins", strategy=fc.Uniform()), certified]


@pytest.mark.parametrize("make", PROGRAMS, ids=["plain", "certified"])
def test_killed_programs_lose_and_double_no_answer(url, make):
    assert kill_programs(url, make, n_kills=5, seed=3)[0] > 0


@pytest.mark.long
@pytest.mark.parametrize("make", PROGRAMS, ids=["plain", "certified"])
def test_programs_in_open_rounds_killed_hundreds_of_times(url, make):
    n_answered, n_rounds = kill_programs(url, make, n_kills=200, seed=4)
    assert n_answered > 100
    assert n_rounds > 3


def test_a_program_that_answers_before_it_records_is_detected(tmp_path):
    with pytest.raises(AssertionError, match="not recorded"):
        kill_programs(f"sqlite:///{tmp_path}/x.db", PROGRAMS[0], 3, 5, True)


class Dying:
    """A connection on which the process is killed before one of its calls."""

    __class__ = property(lambda _self: sqlite3.Connection)

    def __init__(self, driver, left):
        self._driver, self._left = driver, left

    def __getattr__(self, name):
        if name in ("execute", "executemany"):
            self._left[0] -= 1
            if self._left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return getattr(self._driver, name)


def dying_at(call):
    """Return what lets a process die before a call of its kept connection to SQLite."""

    def prepare():
        made, left = inserts._FileLine.__init__, [call]

        def init(self, engine):
            made(self, engine)
            self._driver = Dying(self._driver, left)

        inserts._FileLine.__init__ = init

    return prepare


def die_at_each_call(tmp_path, *hasty, n=20):
    url = f"sqlite:///{tmp_path}/x.db"
    ledger, worker = begun(url), Worker(url, 0)
    for call in range(n):
        worker.start(3, dying_at(call), *hasty)
        worker.collect()
    return check(ledger, [worker])


def test_a_process_may_die_before_any_statement(tmp_path):
    assert die_at_each_call(tmp_path) == 1


def test_answering_before_recording_is_detected(tmp_path):
    with pytest.raises(AssertionError, match="not recorded"):
        die_at_each_call(tmp_path, True)


def test_eight_processes_flat_out_lose_and_double_nothing(url):
    ledger = begun(url)
    workers = [Worker(url, 1000 * at) for at in range(8)]
    for one in workers:
        one.start(100)
    for one in workers:
        one.collect()
    assert [len(one.receipts) for one in workers] == [100] * 8
    assert check(ledger, workers) >= 3  # each process went on to a next round twice


def test_two_processes_with_the_same_applicants_answer_alike(url):
    ledger = begun(url)
    workers = [Worker(url, 0), Worker(url, 0)]
    for one in workers:
        one.start(60)
    for one in workers:
        one.collect()
    assert workers[0].receipts == workers[1].receipts
    assert len(workers[0].receipts) == 60
    check(ledger, workers)


def test_a_fork_between_decisions(url):
    """The child must not use the connection of its parent, nor end it."""
    ledger = begun(url)
    opened = open_round(ledger)
    for number in range(0, 20, 2):
        decide(ledger, number, opened)
        child = FORK.Process(target=decide, args=(ledger, number + 1, opened))
        child.start()
        child.join()
        assert child.exitcode == 0
    with ledger.reading("p") as reader:
        assert (reader.standing([f"a{at}" for at in range(20)]).persons >= 0).all()


def test_a_ledger_that_was_replaced_takes_the_decisions(tmp_path):
    """A kept connection would write to the file that is gone."""
    path = tmp_path / "x.db"
    ledger = begun(f"sqlite:///{path}")
    opened = open_round(ledger)
    ledger.compact()
    copy = path.read_bytes()
    decide(ledger, 0, opened)
    for name in ("x.db-wal", "x.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    path.unlink()
    path.write_bytes(copy)
    decide(ledger, 1, opened)
    with SqlLedger(f"sqlite:///{path}").reading("p") as reader:
        assert reader.standing(["a0", "a1"]).persons.tolist() == [-1, 0]
    path.unlink()
    other = begun(f"sqlite:///{path}")
    open_round(other)
    with pytest.raises(RoundClosedError):
        ledger.record_in_round("p", opened, make_batch(2, 1))


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_kept_connection_that_the_server_ended_is_replaced(url):
    ledger = begun(url)
    opened = open_round(ledger)
    decide(ledger, 0, opened)
    with ledger.engine.connect() as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    decide(ledger, 1, opened)
    with ledger.reading("p") as reader:
        assert (reader.standing(["a0", "a1"]).persons >= 0).all()
    ledger.close()


def test_a_program_that_is_not_there(url):
    ledger = begun(url)
    opened = open_round(ledger)
    with pytest.raises(LedgerError, match="no program 'q'"):
        ledger.record_in_round("q", opened, make_batch(0, 1))
    with pytest.raises(InputError, match="applicants with the decisions"):
        ledger.record_in_round("p", opened, Facts())
    decide(ledger, 0, opened)
    ledger.close()
