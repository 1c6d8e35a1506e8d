"""Simulate the lender's other systems for docs/production.md: applications and outcomes of loans.

``python lender.py history`` writes history.csv, ``python lender.py applicants 2031-01`` writes the
applications of a month, and ``python lender.py outcomes 2031-01`` writes the outcomes of the
applicants accepted in decisions-2031-01.csv. An outcome does not depend on when it is requested.
"""

from __future__ import annotations

import csv
import sys
import zlib
from pathlib import Path

import numpy as np

COLUMNS = ("id", "income", "debt", "employed", "area", "sex")
APPLICANTS = 600  # a month


def people(month: str, n: int) -> tuple[list[list[str]], np.ndarray]:
    """Return the applications of a month, and whether each would repay."""
    rng = np.random.default_rng(zlib.crc32(month.encode()))
    sex = np.where(rng.random(n) < 0.4, "f", "m")
    income = np.round(np.exp(rng.normal(7.8, 0.35, n) - 0.15 * (sex == "f")), 0)
    debt = np.round(rng.gamma(2.0, 2.5, n), 1)
    employed = np.minimum(rng.poisson(6, n), 30)
    area = rng.choice(["north", "south", "west"], n)
    logit = 2.2 + 3.0 * (np.log(income) - 7.8) - 0.35 * (debt - 5) + 0.12 * (employed - 6)
    repays = rng.random(n) < 1 / (1 + np.exp(-logit))
    ids = [f"{month}-{at:04d}" for at in range(1, n + 1)]
    columns = (ids, income.astype(int), debt, employed, area, sex)
    return [[str(value) for value in row] for row in zip(*columns, strict=True)], repays


def write_history() -> None:
    """Write 3,000 past applications, accepted if the income was above 2,200."""
    rows, repays = people("2030", 3000)
    income = np.array([float(row[1]) for row in rows])
    accepted = income > 2200
    outcome = np.where(accepted, np.where(repays, "repaid", "default"), "")
    lines = [
        [*row, "yes" if was_accepted else "no", known]
        for row, was_accepted, known in zip(rows, accepted, outcome, strict=True)
    ]
    write("history.csv", (*COLUMNS, "accepted", "outcome"), lines)


def write_applicants(month: str) -> None:
    """Write the applications of a month."""
    write(f"{month}.csv", COLUMNS, people(month, APPLICANTS)[0])


def write_outcomes(month: str) -> None:
    """Write the outcomes of the applicants accepted in a month."""
    rows, repays = people(month, APPLICANTS)
    outcomes = {
        row[0]: "repaid" if repaid else "default" for row, repaid in zip(rows, repays, strict=True)
    }
    with Path(f"decisions-{month}.csv").open(encoding="utf-8", newline="") as file:
        accepted = [row["id"] for row in csv.DictReader(file) if row["decision"] == "accept"]
    write(f"outcomes-{month}.csv", ("id", "outcome"), [[name, outcomes[name]] for name in accepted])


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
