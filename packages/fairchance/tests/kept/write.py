"""The kept ledger, classifiers and policy of the present version, and how they are made.

Run ``python tests/kept/write.py`` after a change of the tables, of the digests or of the saved-file
format, until 0.1.0 is released. From then on a change keeps these files readable.
"""

from __future__ import annotations

import json
import lzma
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import fairchance as fc
from fairchance.ledger import Program

HERE = Path(__file__).parent
LEDGER, ANSWERS = HERE / "ledger.db.xz", HERE / "answers.json"
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


def write_ledger():
    """Write a ledger with both programs."""
    with TemporaryDirectory() as folder:
        record(f"sqlite:///{folder}/kept.db")
        with closing(sqlite3.connect(f"{folder}/kept.db")) as connection:
            connection.execute("VACUUM INTO ?", (f"{folder}/small.db",))
        LEDGER.write_bytes(lzma.compress(Path(folder, "small.db").read_bytes(), preset=9))


def answered(decided):
    """Return decisions as plain lists."""
    return {
        "ids": decided.ids.tolist(),
        "accepted": decided.accepted.tolist(),
        "propensity": decided.propensity.tolist(),
    }


def write_files():
    """Write a classifier of each kind, a policy, and how they decide on round 3."""
    answers = {}
    for name, classifier in {
        "plain": fc.PartialFeedbackClassifier(strategy=fc.GroupShare(), random_state=3),
        "certified": fc.CertifiedClassifier(horizon=6, random_state=3),
    }.items():
        X, group, outcome = applicants(0)
        classifier.fit(X, outcome, accepted=X[:, 0] > -1, sensitive_features=group)
        X, group, outcome = applicants(1)
        decided = classifier.decide(X, sensitive_features=group)
        classifier.observe(decided.ids[decided.accepted], outcome[decided.accepted])
        fc.save(classifier, HERE / f"{name}.zip")
        X, group, _ = applicants(3)
        if name == "certified":
            policy = classifier.open_round(N_BATCH)
            fc.save(policy, HERE / "policy.zip")
            ids = np.arange(1000, 1000 + N_BATCH)
            answers["policy"] = answered(policy.decide(X, sensitive_features=group, ids=ids))
        again = fc.load(HERE / f"{name}.zip")
        answers[name] = answered(again.decide(X, sensitive_features=group))
    ANSWERS.write_text(json.dumps(answers) + "\n")


if __name__ == "__main__":
    write_ledger()
    write_files()
