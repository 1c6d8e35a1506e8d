"""Processes whose disk fails as planned; `faulty_disk.c` is preloaded into them."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from multiprocessing import forkserver
from pathlib import Path
from unittest import mock

import crashing  # noqa: F401 - imported once, in the process from which others are forked
from fairchance.ledger import database

SOURCE = Path(__file__).with_suffix(".c")
READ, WRITE, SYNC, NAME = 1, 2, 4, 8  # kinds of calls; NAME: open, unlink, truncate


def compiler():
    """Return the C compiler, or None if there is none or libraries cannot be preloaded."""
    return (shutil.which("cc") or shutil.which("gcc")) if sys.platform == "linux" else None


def failing_processes(folder):
    """Return a context of multiprocessing in which the library is loaded."""
    library = folder / "faulty_disk.so"
    command = [compiler(), "-O1", "-Wall", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"]
    subprocess.run(command, check=True)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["faulty_disk"])
    places = os.pathsep.join([str(SOURCE.parent), *sys.path])
    own = {"LD_PRELOAD": str(library), "PYTHONPATH": places}
    with mock.patch.dict(os.environ, own):
        forkserver.ensure_running()
    return context


@dataclass(frozen=True)
class Plan:
    """Fail ``n`` calls of some kinds after so many others; without an error, cut the power then.

    ``held``: a second connection to the ledger stays open, so that SQLite keeps its log.
    ``cut_at_end``: cut the power when everything is answered.
    """

    folder: str
    seed: int
    kinds: int
    after: int
    n: int = 1
    error: int = 0
    held: bool = False
    cut_at_end: bool = False
    synchronous: str = "FULL"


def fail(plan):
    """Carry out a plan in this process; return a function that counts what happened."""
    library = ctypes.CDLL(None)
    library.faults_watch(plan.folder.encode(), ctypes.c_uint64(plan.seed))
    settings = " ".join(database._SQLITE_SETTINGS)
    weaker = settings.replace("synchronous=FULL", f"synchronous={plan.synchronous}")
    database._SQLITE_SETTINGS = tuple(weaker.split())
    held = None
    if plan.held:
        held = sqlite3.connect(f"{plan.folder}/ledger.db")
        held.execute("SELECT count(*) FROM programs").fetchall()
    after, n = ctypes.c_long(plan.after), ctypes.c_long(plan.n)
    library.faults_plan(plan.kinds, after, n, plan.error)

    def count(_held=held):
        if plan.cut_at_end:
            library.faults_cut()
        return ctypes.c_long.in_dll(library, "faults_injected").value

    return count
