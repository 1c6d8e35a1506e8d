"""Run ``fairchance`` in a shell without importing it for each command.

A server imports it once and forks for each command, which a stand-in of the same name hands over
with its words, folder, environment and open files. So pipes, exit codes and commands at the same
time are those of real processes. ``TODAY`` in the environment is the day that a ledger's clock
shows.
"""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path


@contextmanager
def quick_commands(folder, place):
    """Make a stand-in for ``fairchance`` in a folder while a server answers for it."""
    stand_in = Path(folder) / "fairchance"
    words = f'exec "{sys.executable}" -I -S "{__file__}" call "{place}" "$@"'
    # A service that goes on, with processes of its own, is run as it is.
    real = f'[ "$1" = serve ] && exec "{sys.executable}" -m fairchance "$@"'
    stand_in.write_text(f"#!/bin/sh\n{real}\n{words}\n")
    stand_in.chmod(0o755)
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    settings = os.environ | one_thread | {"PYTHONUTF8": "1", "COLUMNS": "100"}
    # With AVX-512 NumPy rounds otherwise, and now and then that decides on an applicant.
    settings["NPY_DISABLE_CPU_FEATURES"] = "X86_V4 AVX512_ICL AVX512_SPR"
    server = subprocess.Popen([sys.executable, __file__, "serve", str(place)], env=settings)
    try:
        while not Path(place).exists():
            assert server.poll() is None, "the server has ended"
            time.sleep(0.05)
        yield
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()


def call(place, words):
    """Hand a command over; return its exit code."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(place)
        told = {"words": words, "folder": os.getcwd(), "environment": dict(os.environ)}
        socket.send_fds(connection, [b"!"], [0, 1, 2])
        connection.sendall(json.dumps(told).encode() + b"\n")
        return connection.recv(1)[0]


def serve(place):
    """Answer until somebody ends it."""
    import pandas  # noqa: F401, PLC0415
    import pyarrow.parquet  # noqa: F401, PLC0415

    from fairchance.cli.app import app  # noqa: PLC0415

    with suppress(SystemExit), redirect_stdout(io.StringIO()):
        app(["version"])  # imports what only a command imports

    signal.signal(signal.SIGCHLD, _bury)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(f"{place}.new")
        door.listen()
        os.rename(f"{place}.new", place)
        with suppress(KeyboardInterrupt):
            while True:
                connection, _ = door.accept()
                if os.fork() == 0:
                    _answer(connection)
                connection.close()


def _bury(*_):
    """Take note of commands that have ended, so that their time is counted."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _answer(connection):
    code = 70
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _, files, _, _ = socket.recv_fds(connection, 1, 3)
        with connection.makefile("rb") as told:
            asked = json.loads(told.readline())
        for number, file in enumerate(files):
            os.dup2(file, number)
        # The server's streams may have no position, as these files do.
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
        os.chdir(asked["folder"])
        os.environ.clear()
        os.environ.update(asked["environment"])
        code = _run(asked["words"])
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        connection.sendall(bytes([code]))
        os._exit(code)


def _run(words):
    from datetime import UTC, datetime  # noqa: PLC0415

    from fairchance.__main__ import main  # noqa: PLC0415
    from fairchance.ledger import sql  # noqa: PLC0415

    today = os.environ.get("TODAY")
    if today:
        at = datetime.fromisoformat(f"{today}T09:00:00").replace(tzinfo=UTC)
        sql._now = lambda: at
    sys.argv = ["fairchance", *words]
    try:
        main()
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
            return 1
        return end.code or 0
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        sys.exit(call(sys.argv[2], sys.argv[3:]))
