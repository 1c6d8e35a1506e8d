"""Print how histories say they were selected, and how often a reading is wrong.

``FAIRCHANCE_DATA=… python -m benchmarks past [--data …] [--seeds …]`` reads histories of four data
sets, cut on features, selected by a human who sees features and has noise, or selected on the
outcome; then made ones, whose truth is not additive, or for which both readings come close. Wrong
is the reading "features" of selection on the outcome, and "outcome" of selection on features.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from benchmarks.certified import DATA, everybody, select
from fairchance.learners.past_selection import PastReading, read_past

Floats = NDArray[np.float64]
SEED = 52_000  # not used during development
SIZES = (1_000, 5_000)
KINDS = ("score 30 %", "score 60 %", "column 30 %", "human", "outcome")
TRUTHS: dict[str, Callable[[Floats], Floats]] = {
    "additive": lambda X: X[:, 0] + X[:, 1],
    "xor": lambda X: 3 * np.sign(X[:, 0] * X[:, 1]),
    "product": lambda X: 2 * X[:, 0] * X[:, 1],
    "near perfect": lambda X: 20 * X[:, 0],
}
MADE = (
    ("xor", "outcome"),
    ("product", "outcome"),
    ("near perfect", "outcome"),
    ("near perfect", "cut"),  # both readings almost coincide
    ("product", "cut"),
    ("additive", "human"),
    ("xor", "human"),
    ("additive", "both"),  # neither reading is true
)


def of_data(name: str, kind: str, n: int, seed: int) -> PastReading:
    """Return how a history of a data set is read."""
    people, rng = everybody(name), np.random.default_rng(seed)
    rows = rng.permutation(len(people))[:n]
    accepted, good = select(name, people, rows, kind, rng), people.good[rows]
    frame = people.X.iloc[rows]
    text = [not pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes]
    for column in frame.columns[text]:
        frame = frame.assign(**{column: pd.factorize(frame[column])[0]})
    X, categorical = frame.to_numpy(np.float64), tuple(np.flatnonzero(text).tolist())
    return read_past(X[accepted], good[accepted], X[~accepted], categorical)


def of_made(truth: str, kind: str, n: int, seed: int) -> PastReading:
    """Return how a made history is read."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    score, opinion = TRUTHS[truth](X), X[:, 0] + X[:, 1] + rng.normal(size=n)
    good = (rng.random(n) < expit(score)).astype(np.int8)
    by_outcome = rng.random(n) < np.where(good == 1, 0.9, 0.1)
    accepted = {
        "outcome": by_outcome,
        "cut": score > np.quantile(score, 0.4),
        "human": opinion > np.median(opinion),
        "both": by_outcome & (opinion > np.quantile(opinion, 0.25)),
    }[kind]
    return read_past(X[accepted], good[accepted], X[~accepted])


def wrong(kind: str) -> str:
    """Return the reading that would be wrong of a history; empty if neither is true."""
    return {"outcome": "features", "both": ""}.get(kind, "outcome")


def print_readings(
    whose: str, kind: str, n: int, read: Callable[[int], PastReading], seeds: range
) -> int:
    """Print the readings of histories of a kind, and return how many are wrong."""
    start = time.process_time()
    readings = [read(seed) for seed in seeds]
    seconds = (time.process_time() - start) / len(readings)
    known = [one for one in readings if one.z is not None]
    gain, z = np.array([(one.gain, one.z) for one in known]).reshape(-1, 2).T
    spread = (
        f"{gain.min():6.3f} to {gain.max():6.3f} {z.min():7.1f} to {z.max():5.1f}" if known else ""
    )
    counts = Counter(one.selected_on for one in readings)
    read_as = ", ".join(f"{word} {count}" for word, count in counts.most_common())
    print(f"{whose:13s} {kind:12s} {n:6,} {spread:36s} {seconds:5.1f} s  {read_as}", flush=True)
    return counts[wrong(kind)]


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks past", description=__doc__)
    parser.add_argument("--data", nargs="*", choices=DATA, default=list(DATA))
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--first-seed", type=int, default=SEED)
    options = parser.parse_args(arguments)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    print("history       selected on       n   gain of features              z       CPU  read as")
    rows = [(name, kind, of_data) for name in options.data for kind in KINDS]
    rows += [(truth, kind, of_made) for truth, kind in MADE]
    n_wrong = sum(
        print_readings(whose, kind, n, partial(read, whose, kind, n), seeds)
        for whose, kind, read in rows
        for n in SIZES
    )
    print(f"confidently wrong: {n_wrong} of {len(rows) * len(SIZES) * len(seeds)}")


if __name__ == "__main__":
    main()
