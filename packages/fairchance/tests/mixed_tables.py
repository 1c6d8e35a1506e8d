"""Made tables with every kind of column, and outcomes that depend on all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

KINDS = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}


def applicants(
    rng: np.random.Generator, n: int, kind: str = "pandas"
) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return a table, outcomes, and the log-odds of a good one.

    Columns: job (text, "?" if unknown, a few rare ones), age (numbers with gaps), owner (truth
    values), since (dates), income (whole numbers), name (different for all).
    """
    job = rng.choice(["clerk", "nurse", "pilot", "?", "diver"], n, p=[0.4, 0.3, 0.197, 0.1, 0.003])
    age = rng.integers(18, 80, n).astype(float)
    age[rng.random(n) < 0.1] = np.nan
    owner = rng.random(n) < 0.5
    since = np.datetime64("2020-01-01") + rng.integers(0, 400, n)
    income = rng.integers(10, 60, n)
    z = 1.5 * (job == "nurse") - (job == "clerk") + np.nan_to_num((age - 45) / 20, nan=-1.0)
    z = z + owner + (since - np.datetime64("2020-07-01")).astype(float) / 200 + (income - 30) / 20
    good = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    frame = pd.DataFrame(
        {
            "job": job,
            "age": age,
            "owner": owner,
            "since": since.astype("M8[ms]"),
            "income": income,
            "name": [f"applicant {number}" for number in rng.integers(0, 2**62, n)],
        }
    )
    return KINDS[kind](frame), good, z
