"""A program whose disk fails, or loses its power, continues to the same end."""

from __future__ import annotations

import errno

import pytest

from crashing import interrupted, run
from faulty_disk import NAME, READ, SYNC, WRITE, Plan, compiler, fail, failing_processes

_CALLS = {READ: 150, WRITE: 70, SYNC: 8, NAME: 20, WRITE | SYNC | NAME: 90}  # for two batches
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
        pytest.skip("NO FAULT WAS INJECTED below SQLite: that needs a C compiler (cc or gcc)")
    return failing_processes(tmp_path_factory.mktemp("library"))


def under_faults(folder, processes, n_faults, seed, choose):
    """Interrupt a program by faults that ``choose`` draws; return the errors it had."""
    url = f"sqlite:///{folder}/ledger.db"

    def interrupt(some, rng, turn):
        chosen = choose(rng, turn)
        after = int(rng.integers(_CALLS[chosen["kinds"]]))
        plan = Plan(str(folder), int(rng.integers(2**32)), after=after, **chosen)
        life = run(url, some, fail, (plan,), context=processes)
        life.n_faults = min(life.n_faults, 1)
        return life

    return interrupted(url, n_faults, n_faults, seed, interrupt)


def power_cut(rng, turn):
    """Cut the power before or in a call, or at the end."""
    kinds = [WRITE | SYNC | NAME, SYNC, NAME][turn % 3]
    return {"kinds": kinds, "held": rng.random() < 0.5, "cut_at_end": True}


def error(rng, turn):
    """Let one or more calls fail, and cut the power at the end in half of the cases."""
    kinds, number = _ERRORS[turn % len(_ERRORS)]
    n = int(rng.choice([1, 4, 40]))
    held, cut = (rng.random(2) < 0.5).tolist()
    return {"kinds": kinds, "error": number, "n": n, "held": held, "cut_at_end": cut}


def test_power_cuts_lose_no_answer(tmp_path, processes):
    under_faults(tmp_path, processes, 6, 1, power_cut)


def test_a_disk_that_fails_is_reported_and_loses_no_answer(tmp_path, processes):
    assert under_faults(tmp_path, processes, 5, 1, error)


def test_a_log_that_is_not_synchronised_is_detected(tmp_path, processes):
    def weaker(rng, turn):
        return power_cut(rng, turn) | {"held": True, "synchronous": "NORMAL"}

    with pytest.raises(AssertionError, match="an answered call is not recorded"):
        under_faults(tmp_path, processes, 30, 1, weaker)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("choose", [power_cut, error])
def test_hundreds_of_faults_below_sqlite(tmp_path, processes, choose, seed):
    under_faults(tmp_path, processes, 30, seed, choose)
