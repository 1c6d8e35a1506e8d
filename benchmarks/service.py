"""Decisions over HTTP beside an empty endpoint that commits one row, on SQLite and PostgreSQL.

Eight clients on the loopback ask in closed loops, one request after the other, each for one
decision; ours and the reference take turns in the same run, with as many workers. Both are FastAPI
behind uvicorn, and both answer after a durable commit.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import secrets
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
from numpy.typing import NDArray

import fairchance as fc
from benchmarks.singles import server
from benchmarks.speed import applicants, print_row
from fairchance.ledger import Program
from fairchance.ledger.keys import add_key

CLIENTS, SECONDS, TURNS = 8, 60.0, 4
COLUMNS = [f"x{at}" for at in range(10)]
URL, TABLE = "FAIRCHANCE_BENCH_URL", "CREATE TABLE plain (name TEXT PRIMARY KEY, body TEXT)"

Floats = NDArray[np.float64]


def reference() -> Any:
    """Return an application with one endpoint, which commits one row."""
    from fastapi import FastAPI  # noqa: PLC0415 - an extra

    app, url, kept = FastAPI(), os.environ[URL], threading.local()

    def connection() -> Any:
        if not hasattr(kept, "connection"):
            kept.connection = _connection(url)
        return kept.connection

    mark = "?" if url.startswith("sqlite") else "%s"

    @app.post("/row")
    def row(body: dict[str, Any]) -> dict[str, Any]:
        content = json.dumps(body)
        name = body["applications"][0]["id"]
        connection().execute(f"INSERT INTO plain VALUES ({mark}, {mark})", (name, content))
        return {"id": name}

    return app


def _connection(url: str) -> Any:
    if url.startswith("sqlite"):
        path = url.removeprefix("sqlite:///")
        made = sqlite3.connect(path, isolation_level=None, timeout=60, check_same_thread=False)
        for setting in ("journal_mode=WAL", "synchronous=FULL"):
            made.execute(f"PRAGMA {setting}").close()
        return made
    import psycopg  # noqa: PLC0415 - an extra

    return psycopg.connect(url, autocommit=True)


def start(url: str) -> str:
    """Make a program whose applications come one at a time; return a key."""
    rng = np.random.default_rng(0)
    X, y = applicants(5000, rng)
    program = Program.create(
        url,
        fc.CertifiedClassifier(horizon=40, random_state=0),
        pd.DataFrame(X, columns=COLUMNS),
        y,
        accepted=X[:, 0] > 0,
        about={"rounds": {"at_most": 100_000_000}},
    )
    program.open_round(expected=100_000)
    with program.ledger.writing("main") as writer:
        return add_key(writer, "decide", "benchmark")


@contextmanager
def running(words: Sequence[str], url: str) -> Iterator[tuple[int, psutil.Process]]:
    """Run a server in processes of its own; yield its port and the first of them."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = os.environ | {URL: url, "OPENBLAS_NUM_THREADS": "1"}
    log = subprocess.DEVNULL
    command = [sys.executable, "-m", *words, "--port", str(port)]
    with subprocess.Popen(command, env=env, stdout=log, stderr=log) as process:
        while True:
            time.sleep(0.1)
            assert process.poll() is None, f"{command} ended"
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                continue
        yield port, psutil.Process(process.pid)
        process.terminate()


def ask(port: int, path: str, key: str, seconds: float) -> tuple[Floats, int]:
    """Return the times of requests of all clients, and the number of errors."""
    X, _ = applicants(1000, np.random.default_rng(1))
    rows = X.round(6).tolist()
    parts: list[list[float]] = [[] for _ in range(CLIENTS)]
    errors = [0] * CLIENTS
    end = time.perf_counter() + seconds

    def loop(at: int) -> None:
        there = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        name, k = secrets.randbits(38) << 24, 0
        while time.perf_counter() < end:
            features = dict(zip(COLUMNS, rows[k % len(rows)], strict=True))
            k += 1
            body = json.dumps({"applications": [{"id": name + k, "features": features}]})
            begun = time.perf_counter()
            there.request("POST", path, body, headers)
            answer = there.getresponse()
            answer.read()
            parts[at].append(time.perf_counter() - begun)
            errors[at] += answer.status != 200
        there.close()

    threads = [threading.Thread(target=loop, args=(at,)) for at in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return np.concatenate(parts), sum(errors)


def cpu_seconds(process: psutil.Process) -> float:
    """Return the CPU time of a process and its children."""
    family = [process, *process.children(recursive=True)]
    return sum(sum(one.cpu_times()[:2]) for one in family)


def measure(what: str, url: str, plain: str, workers: int, seconds: float) -> None:
    """Print the rows of one database and number of workers."""
    key = start(url)
    with closing(_connection(plain)) as connection:
        connection.execute(TABLE)
    ours = ["fairchance", "serve", "--ledger", url, "--workers", str(workers)]
    theirs = ["uvicorn", "benchmarks.service:reference", "--factory", "--no-access-log"]
    theirs += ["--workers", str(workers)]
    times: dict[str, list[Floats]] = {"ours": [], "theirs": []}
    n_errors = 0
    used = {"ours": 0.0, "theirs": 0.0}
    with running(ours, url) as first, running(theirs, plain) as second:
        servers = {"ours": (*first, "/v1/decisions"), "theirs": (*second, "/row")}
        for warm in (True, *[False] * TURNS):
            for name, (port, process, path) in servers.items():
                before = cpu_seconds(process)
                found, wrong = ask(port, path, key, 2.0 if warm else seconds / TURNS)
                n_errors += wrong
                if not warm:
                    times[name].append(found)
                    used[name] += cpu_seconds(process) - before
    mine, other_times = (np.concatenate(times[name]) for name in ("ours", "theirs"))
    print_row(
        f"{what}, {workers} worker(s): decisions a second / rows of an empty endpoint",
        ">= 0.33 x",
        f"{mine.size / other_times.size:.2f} x ({mine.size / seconds:,.0f} and "
        f"{other_times.size / seconds:,.0f} a second, {n_errors} errors)",
    )
    for q in (50, 99):
        a, b = np.percentile(mine, q), np.percentile(other_times, q)
        print_row(f"  p{q}", "<= 3 x", f"{a / b:.2f} x ({1e3 * a:.1f} ms, {1e3 * b:.1f} ms)")
    a, b = used["ours"] / mine.size, used["theirs"] / other_times.size
    print_row("  CPU time of the server", "", f"{a / b:.2f} x ({1e3 * a:.2f} ms, {1e3 * b:.2f} ms)")


def main(arguments: Sequence[str] = ()) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks service", description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each (%(default)s)")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", choices=["SQLite", "PostgreSQL"])
    options = parser.parse_args(arguments)
    for workers in options.workers:
        if options.only != "PostgreSQL":
            with tempfile.TemporaryDirectory(dir=".") as folder:
                place = Path(folder).absolute()
                urls = f"sqlite:///{place}/ledger.db", f"sqlite:///{place}/plain.db"
                measure("SQLite", *urls, workers, options.seconds)
        if options.only != "SQLite":
            with server() as url:
                measure("PostgreSQL", url, url, workers, options.seconds)


if __name__ == "__main__":
    main(sys.argv[1:])
