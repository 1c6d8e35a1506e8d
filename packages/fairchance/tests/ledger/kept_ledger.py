"""The kept ledger ``kept.db.xz`` of the present version, and how it is made.

Run ``python tests/ledger/kept_ledger.py`` after a change of the tables, of the digests or of the
saved-file format, until 0.1.0 is released. From then on a change keeps this ledger readable.
"""

from __future__ import annotations

import lzma
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import fairchance as fc
from fairchance.ledger import Program

KEPT = Path(__file__).with_name("kept.db.xz")
N_PAST, N_BATCH = 120, 30


def applicants(round):
    """Return the features, groups and outcomes of a round; 0 is the history."""
    rng = np.random.default_rng([7, round])
    X = rng.normal(size=(N_BATCH if round else N_PAST, 2)).round(2)
    group = np.where(X[:, 1] > 0, "A", "B")
    return X, group, X[:, 0] + rng.normal(size=len(X)) > -0.5


def record(url):
    """Record two programs, each with one of everything."""
    classifiers = {
        "plain": fc.PartialFeedbackClassifier(strategy=fc.GroupShare(), random_state=3),
        "certified": fc.CertifiedClassifier(horizon=6, random_state=3),
    }
    for name, classifier in classifiers.items():
        X, group, outcome = applicants(0)
        past = {"accepted": X[:, 0] > -1, "sensitive_features": group}
        program = Program.create(url, classifier, X, outcome, name=name, **past)
        for round in (1, 2):
            X, group, outcome = applicants(round)
            decided = program.decide(X, sensitive_features=group)
            ids, known = decided.ids[decided.accepted], outcome[decided.accepted]
            program.override(ids[:1], False, "fraud was found")
            program.observe(ids[1:-2], known[1:-2])
            program.observe(ids[1:2], ~known[1:2])
            program.withdraw(ids[-2:-1])
        program.hold(ids[1:2], "a court asked")
        program.erase(ids[2:3], "asked", early=True)
        program.snapshot()


def main():
    """Write the kept ledger anew."""
    with TemporaryDirectory() as folder:
        record(f"sqlite:///{folder}/kept.db")
        with closing(sqlite3.connect(f"{folder}/kept.db")) as connection:
            connection.execute("VACUUM INTO ?", (f"{folder}/small.db",))
        KEPT.write_bytes(lzma.compress(Path(folder, "small.db").read_bytes(), preset=9))


if __name__ == "__main__":
    main()
