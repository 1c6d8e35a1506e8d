"""Ledgers with one of everything, in copies to be tampered with."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from ledger.lived_programs import erase
from ledger_worlds import started
from secondlook.ledger.program import Program
from secondlook.ledger.sql import SqlLedger
from secondlook.ledger.verifying import verify

N_PAST, N_BATCH = 600, 300
ROW = 123
PERSON = N_PAST + ROW  # of the first batch
WHO = f"application 'A-{ROW}' (person {PERSON})"
OTHER = f"person {PERSON}, now called 'A-{ROW}',"


def a_program(url, classifier):
    """Return a program of two batches, in which outcomes were told, corrected and overridden."""
    past = [f"H-{at}" for at in range(N_PAST)]
    program, _, (one, two, *_) = started(url, classifier, n_batch=N_BATCH, ids=past)
    names = np.array([f"A-{at}" for at in range(N_BATCH)])
    group = one.people.group
    decided = program.decide(one.people.X, sensitive_features=group, ids=names, batch="b1")
    yes, good = decided.ids[decided.accepted], one.outcome[decided.accepted]
    program.observe(yes[5:], good[5:])
    program.observe(yes[5:8], 1 - good[5:8])
    program.override(yes[:3], False, "fraud was found")
    names = np.array([f"B-{at}" for at in range(N_BATCH)])
    program.decide(two.people.X, sensitive_features=two.people.group, ids=names, batch="b2")
    return program


@cache
def kept(make, *, stored=False):
    """Return the file of a program whose classifier a function makes, with a state at its end."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "ledger.db")
        program = a_program(f"sqlite:///{path}", make())
        if stored:
            program.snapshot()
        program.ledger.close()
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return path.read_bytes()


class Copy:
    """A copy of a ledger, to be tampered with."""

    def __init__(self, content, folder):
        self.path = folder / "copy.db"
        self.path.write_bytes(content)
        self.url = f"sqlite:///{self.path}"

    def run(self, statement, *values):
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            found = connection.execute(statement, values)
            return found.fetchall() if found.description else found.rowcount

    def change(self, statement, *values, n=1):
        assert self.run(statement, *values) == n
        return self.problem()

    def problem(self, **options):
        ledger = SqlLedger(self.url)
        found = verify(ledger, **options).problem
        ledger.close()
        return found

    def erase(self, *names):
        program = Program.open(self.url)
        erase(program, names)
        program.ledger.close()

    def entry(self, kind):
        ((number, key),) = self.run(
            "SELECT number, key FROM entries WHERE kind = ? ORDER BY number LIMIT 1", kind
        )
        return number, f"entry {number} ({kind} {key!r}): its rows of"
