"""Proving a million decisions against reading their rows and scoring them once."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import secondlook as sl
from secondlook.ledger import Program, SqlLedger, verify

N_ROUNDS, BATCH, N_FEATURES, N_HISTORY = 100, 10_000, 10, 5000
TOLD = 0.2  # share of the accepted whose outcomes come


def live(url: str, n_rounds: int) -> None:
    """Let a program decide and learn for some rounds."""
    rng = np.random.default_rng(0)

    def people(n: int) -> tuple[Any, Any, Any]:
        X = rng.normal(size=(n, N_FEATURES))
        good = rng.random(n) < 1 / (1 + np.exp(-1 - 2 * X[:, 0]))
        return X, good, np.where(rng.random(n) < 0.3, "B", "A")

    X, good, group = people(N_HISTORY)
    clf = sl.PartialFeedbackClassifier(random_state=0)
    known = {"accepted": X[:, 0] > 0, "sensitive_features": group}
    program = Program.create(url, clf, X, good, **known)
    for _ in range(n_rounds):
        X, good, group = people(BATCH)
        batch = program.decide(X, sensitive_features=group)
        told = batch.accepted & (rng.random(BATCH) < TOLD)
        program.observe(batch.ids[told], good[told])


def read_raw(path: str) -> None:
    """Read all rows of people and groups through the driver, a batch at a time."""
    connection = sqlite3.connect(path)
    for table in ("people", "group_values"):
        (last,) = connection.execute(f"SELECT max(person) FROM {table}").fetchone()
        for first in range(0, last + 1, BATCH):
            rows = f"SELECT * FROM {table} WHERE program = 1 AND person >= ? AND person < ?"
            connection.execute(rows, (first, first + BATCH)).fetchall()
    connection.close()


def read_facts(ledger: SqlLedger) -> None:
    """Read all entries with their rows as the ledger gives them."""
    with ledger.reading("main") as reader:
        for entry in reader.entries():
            reader.facts(entry)


def score_all(ledger: SqlLedger) -> float:
    """Return the seconds that f_t's scores and regions take, people and policies being there."""
    program = Program.open(str(ledger.engine.url))
    clf, seconds = program.classifier, 0.0
    rng = np.random.default_rng(0)
    log, rule = clf._log, clf._rule
    for at in range(len(log.policies)):
        X, group = rng.normal(size=(BATCH, N_FEATURES)), np.zeros(BATCH, np.intp)
        before = type(log)(log.likelihoods[0], log.n_history)
        before.likelihoods, before.first_batch = log.likelihoods, log.first_batch
        before.policies = log.policies[:at]
        spent, _ = timed(
            lambda X=X, group=group, before=before, at=at: before.look(
                X, group, rule, score_of=log.policies[at].likelihood
            )
        )
        seconds += spent
    return seconds


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.process_time()
    done = work()
    return time.process_time() - begun, done


def main(n_rounds: int = N_ROUNDS) -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/ledger.db"
        live(url, n_rounds)
        ledger = SqlLedger(url)
        raw, _ = timed(lambda: read_raw(f"{folder}/ledger.db"))
        read, _ = timed(lambda: read_facts(ledger))
        scored = score_all(ledger)
        proved, found = timed(lambda: verify(ledger))
        assert found.ok, found.problem
        opened, _ = timed(lambda: Program.open(url))
        print(
            f"verify {found.n_decisions:,} decisions: {proved:.1f} s, rows read in {read:.1f} s "
            f"and scored in {scored:.1f} s, ratio {proved / (read + scored):.2f} (aim 3); by the "
            f"bare driver they are read in {raw:.1f} s, ratio {proved / (raw + scored):.2f}; open "
            f"for the next round {opened:.2f} s"
        )


if __name__ == "__main__":
    main()
