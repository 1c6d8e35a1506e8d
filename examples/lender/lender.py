"""Simulate the lender's other systems for docs/production.md: applications and outcomes of loans.

``python lender.py history`` writes history.csv, ``python lender.py applicants 2031-01`` writes the
applications of a month with today's decisions, and ``python lender.py outcomes 2031-04`` writes
what became known in a month about the applicants accepted in earlier decisions-*.csv: who took no
loan (after a month), defaults (after one to three months) and repaid loans (after three).
"""

from __future__ import annotations

import csv
import sys
import zlib
from pathlib import Path

import numpy as np

COLUMNS = ("id", "income", "debt", "employed", "area", "sex")
APPLICANTS = 500  # a month
TERM = 3  # months


def people(month: str, n: int) -> tuple[list[list[str]], np.ndarray, np.ndarray]:
    """Return applications, the outcome of each if accepted, and after how many months."""
    rng = np.random.default_rng(zlib.crc32(month.encode()))
    sex = np.where(rng.random(n) < 0.4, "f", "m")
    income = np.round(np.exp(rng.normal(7.8, 0.35, n) - 0.15 * (sex == "f")), 0)
    debt = np.round(rng.gamma(2.0, 2.5, n), 1)
    employed = np.minimum(rng.poisson(6, n), 30)
    area = rng.choice(["north", "south", "west"], n)
    logit = 2.2 + 3.0 * (np.log(income) - 7.8) - 0.35 * (debt - 5) + 0.12 * (employed - 6)
    repays = rng.random(n) < 1 / (1 + np.exp(-logit))
    takes = rng.random(n) < np.where(repays, 0.85, 0.9)
    outcome = np.where(takes, np.where(repays, "repaid", "default"), "not taken")
    after = np.where(takes, np.where(repays, TERM, rng.integers(1, TERM + 1, n)), 1)
    ids = [f"{month}-{at:04d}" for at in range(1, n + 1)]
    columns = (ids, income.astype(int), debt, employed, area, sex)
    return [[str(one) for one in row] for row in zip(*columns, strict=True)], outcome, after


def today(rows: list[list[str]]) -> list[str]:
    """Return today's decisions: an income above 2,200 is accepted."""
    return ["yes" if float(row[1]) > 2200 else "no" for row in rows]


def write_history() -> None:
    """Write 4,000 past applications."""
    rows, outcome, _ = people("2030", 4000)
    known = zip(rows, today(rows), outcome, strict=True)
    lines = [[*row, said, found if said == "yes" else ""] for row, said, found in known]
    write("history.csv", (*COLUMNS, "accepted", "outcome"), lines)


def write_applicants(month: str) -> None:
    """Write the applications of a month."""
    rows, _, _ = people(month, APPLICANTS)
    lines = [[*row, said] for row, said in zip(rows, today(rows), strict=True)]
    write(f"{month}.csv", (*COLUMNS, "today"), lines)


def write_outcomes(month: str) -> None:
    """Write what became known in a month."""
    year, number = map(int, month.split("-"))
    lines = []
    for age in range(TERM, 0, -1):
        earlier = divmod(12 * year + number - 1 - age, 12)
        name = f"{earlier[0]}-{earlier[1] + 1:02d}"
        decided = Path(f"decisions-{name}.csv")
        if not decided.exists():
            continue
        rows, outcome, after = people(name, APPLICANTS)
        found = {
            row[0]: word
            for row, word, months in zip(rows, outcome, after, strict=True)
            if months == age
        }
        with decided.open(encoding="utf-8", newline="") as file:
            accepted = [row["id"] for row in csv.DictReader(file) if row["decision"] == "accept"]
        lines += [[one, found[one]] for one in accepted if one in found]
    write(f"outcomes-{month}.csv", ("id", "outcome"), lines)


def write(path: str, names: tuple[str, ...], rows: list[list[str]]) -> None:
    """Write a csv file and print its name and length."""
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)
    print(f"{path}: {len(rows)} rows")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["history"]:
            write_history()
        case ["applicants", *months]:
            for month in months:
                write_applicants(month)
        case ["outcomes", *months]:
            for month in months:
                write_outcomes(month)
        case _:
            sys.exit(__doc__)
