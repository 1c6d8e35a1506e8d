"""A program whose disk fails, or loses its power, continues to the same end."""

from __future__ import annotations

import errno

import numpy as np
import pytest

from crashing import interrupted, make_and_erase, recorded, run
from fairchance.ledger.program import Program
from faulty_disk import NAME, READ, SYNC, WRITE, Plan, compiler, fail, failing_processes
from small_worlds import lender_world

# Newer Pythons, and jax where another test has loaded it, warn of forks in a process with threads.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*fork:RuntimeWarning"),
]
_CALLS = {READ: 250, WRITE: 100, SYNC: 14, NAME: 36, WRITE | SYNC | NAME: 150}  # for two batches
_CUT = [WRITE | SYNC | NAME, SYNC, NAME]
_ERRORS = [
    (READ, errno.EIO),
    (WRITE, errno.EIO),
    (WRITE, errno.ENOSPC),
    (SYNC, errno.EIO),
    (NAME, errno.EIO),
]


@pytest.fixture(scope="session")
def processes(tmp_path_factory):
    if compiler() is None:
        pytest.skip(
            "NO FAULT WAS INJECTED below SQLite: that needs Linux and a C compiler (cc or gcc)"
        )
    return failing_processes(tmp_path_factory.mktemp("library"))


def under_faults(folder, processes, n_faults, seed, choose):
    """Interrupt a program by faults that ``choose`` draws; return the errors it had."""
    url = f"sqlite:///{folder}/ledger.db"

    def interrupt(some, rng, turn):
        chosen = choose(rng, turn)
        after = int(rng.integers(_CALLS.get(chosen["kinds"], 1)))
        plan = Plan(str(folder), int(rng.integers(2**32)), after=after, **chosen)
        life = run(url, some, fail, (plan,), context=processes)
        life.n_faults = min(life.n_faults, 1)
        return life

    return interrupted(url, n_faults, n_faults, seed, interrupt)


def power_cut(rng, turn):
    """Cut the power before or in a call, or at the end."""
    return {"kinds": _CUT[turn % 3], "held": rng.random() < 0.5, "cut_at_end": True}


def error(rng, turn):
    """Let one or more calls fail, and cut the power at the end in half of the cases."""
    kinds, number = _ERRORS[turn % len(_ERRORS)]
    n = int(rng.choice([1, 4, 40]))
    held, cut = (rng.random(2) < 0.5).tolist()
    return {"kinds": kinds, "error": number, "n": n, "held": held, "cut_at_end": cut}


def test_power_cuts_lose_no_answer(tmp_path, processes):
    under_faults(tmp_path, processes, 5, 1, power_cut)


def test_a_disk_that_fails_is_reported_and_loses_no_answer(tmp_path, processes):
    assert under_faults(tmp_path, processes, 5, 1, error)


def make_and_erase_under_power_cuts(folder, processes, n_cuts, seed):
    rng, past = np.random.default_rng(seed), lender_world(0, n_batch=40, n_rounds=1).history()
    for turn in range(n_cuts):
        place = folder / str(turn)
        place.mkdir()
        url, kinds = f"sqlite:///{place}/ledger.db", _CUT[turn % 3]
        after, number = rng.integers([4 * _CALLS[kinds], 2**32]).tolist()
        plan = Plan(str(place), number, kinds, after, cut_at_end=True)
        life = run(url, past, fail, (plan,), work=make_and_erase, context=processes)
        assert not life.n_entries or recorded(url)[1] >= life.n_entries
        assert run(url, past, work=make_and_erase).ended
        program = Program.open(url)
        assert program.verify().ok
        if not life.answered:  # it may be erased, but the file not yet written anew
            program.ledger.compact()
        kept = b"".join(one.read_bytes() for one in place.iterdir())
        assert b"applicant 2" in kept
        assert b"applicant 0." not in kept
        assert b"applicant 1." not in kept


def test_power_cuts_while_a_ledger_is_made_and_applicants_are_erased(tmp_path, processes):
    make_and_erase_under_power_cuts(tmp_path, processes, n_cuts=2, seed=1)


def test_a_log_that_is_not_synchronised_is_detected(tmp_path, processes):
    def weaker(_rng, _turn):
        return {"kinds": 0, "held": True, "cut_at_end": True, "synchronous": "NORMAL"}

    with pytest.raises(AssertionError, match="an answered call is not recorded"):
        under_faults(tmp_path, processes, 5, 4, weaker)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("choose", [power_cut, error])
def test_hundreds_of_faults_below_sqlite(tmp_path, processes, choose, seed):
    under_faults(tmp_path, processes, 30, seed, choose)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 5))
def test_many_power_cuts_while_ledgers_are_made(tmp_path, processes, seed):
    make_and_erase_under_power_cuts(tmp_path, processes, n_cuts=30, seed=seed)
