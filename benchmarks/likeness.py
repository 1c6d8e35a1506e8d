"""Batches against the history: false stops, false warnings, and files with mistakes.

``FAIRCHANCE_DATA=… python -m benchmarks likeness`` splits the four data sets 200 times at random
into a history and two later rounds, and compares the rounds with the history: at once, and by calls
with a single applicant. Histories are of all applicants, or only of the half with the best scores.
Then one mistake at a time is made in every column of a batch. The lender's decisions are those of a
score cut, with or without an error of its own; later rounds may accept another share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.certified import DATA, everybody
from fairchance.people.columns import TableColumns
from fairchance.people.likeness import Checks, Likeness

N_HISTORY, SPLITS = 2000, 200


def scores(name: str) -> np.ndarray:
    """Return a score of all applicants that is learned from all of them."""
    people = everybody(name)
    X = pd.get_dummies(people.X, dtype=float)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    return model.fit(X, people.good).predict_proba(X)[:, 1]


def compared(history: pd.DataFrame, rounds: list[pd.DataFrame], rows: int | None) -> Iterator[list]:
    """Yield the findings of each round that is decided by calls with so many rows."""
    columns = TableColumns.of(history)
    likeness = Likeness.of(columns, columns.codes(history))
    for batch in rounds:
        codes, found = columns.codes(batch), []
        for start in range(0, len(codes), rows or len(codes)):
            counts = likeness.count(codes[start : start + (rows or len(codes))])
            unlike = likeness.compare(counts, Checks())
            found += unlike
            likeness.remember(counts, confirmed=any(one.stops for one in unlike))
        yield found


def false_findings(name: str, score: np.ndarray | None) -> None:
    """Print how many honest rounds are stopped or warned about."""
    X, past = everybody(name).X, "all" if score is None else "best half"
    for size, rows in ((200, None), (600, None), (200, 1)):
        stopped, warned, codes = 0, 0, Counter()
        for seed in range(SPLITS):
            order = np.random.default_rng([11, seed]).permutation(len(X))
            history, rest = order[:N_HISTORY], order[2 * N_HISTORY :]
            if score is not None:
                first = order[: 2 * N_HISTORY]
                history = first[np.argsort(-score[first])[:N_HISTORY]]
            rounds = [X.iloc[rest[t * size : (t + 1) * size]] for t in range(2)]
            for found in compared(X.iloc[history], rounds, rows):
                stopped += any(one.stops for one in found)
                warned += bool(found) and not any(one.stops for one in found)
                codes.update({(one.code, one.stops) for one in found})
        how = f"{size} at once" if rows is None else f"{size} one by one"
        print(
            f"{name:12s} history {past:9s} {how:14s} stopped {stopped}, warned {warned} "
            f"of {2 * SPLITS} {dict(codes)}",
            flush=True,
        )


MISTAKES = {
    "doubled": lambda x, other: (2 * x, other),
    "tenth": lambda x, other: (x / 10, other),
    "exchanged": lambda x, other: (other, x),
    "sorted": lambda x, other: (np.sort(x), other),
    "as truth": lambda x, other: ((x > 0).astype(float), other),
}


def mistakes(name: str, size: int) -> None:
    """Print in which columns mistakes are stopped."""
    X = everybody(name).X
    order = np.random.default_rng(12).permutation(len(X))
    history = X.iloc[order[:N_HISTORY]]
    batch = X.iloc[order[N_HISTORY:][:size]]
    numbers = [column for column in X if X[column].dtype.kind in "fi"]
    for what, change in MISTAKES.items():
        result = {}
        for at, one in enumerate(numbers):
            other = numbers[(at + 1) % len(numbers)]
            values = change(batch[one].to_numpy(), batch[other].to_numpy())
            wrong = batch.assign(**dict(zip((one, other), values, strict=True)))
            (found,) = compared(history, [wrong], None)
            stops = any(unlike.stops for unlike in found)
            result[one] = "stop" if stops else "warn" if found else "-"
        text = ", ".join(f"{column} {said}" for column, said in result.items())
        print(f"{name:12s} {size} {what:10s} {Counter(result.values())}: {text}", flush=True)


def decided(name: str, score: np.ndarray, size: int) -> None:
    """Print how often the lender's decisions stop a round, honest and exchanged."""
    X = everybody(name).X
    for past, now, error in ((s, t, e) for s in (0.3, 0.7) for t in (0.2, s, 0.8) for e in (0, 1)):
        stops = np.zeros(2, int)
        for seed in range(SPLITS):
            rng = np.random.default_rng([13, seed])
            order = rng.permutation(len(X))
            parts = order[:N_HISTORY], order[N_HISTORY:][:size]
            noisy = score + error * score.std() * rng.normal(size=len(X))
            own, theirs = (
                noisy[rows] >= np.quantile(noisy[rows], 1 - share)
                for rows, share in zip(parts, (past, now), strict=True)
            )
            history, batch = (X.iloc[rows] for rows in parts)
            columns = TableColumns.of(history)
            likeness = Likeness.of(columns, columns.codes(history), None, own)
            for at, decisions in enumerate((theirs, ~theirs)):
                counts = likeness.count(columns.codes(batch), None, decisions)
                found = likeness.compare(counts, Checks())
                stops[at] += any(one.code == "decided" for one in found)
        print(
            f"{name:12s} {size} accepted {past} then {now}, error {error}: stopped {stops[0]}, "
            f"exchanged {stops[1]} of {SPLITS}",
            flush=True,
        )


def main() -> None:
    """Print all tables."""
    for name in DATA:
        for size in (200, 600):
            decided(name, scores(name), size)
        mistakes(name, 600)
        false_findings(name, None)
        false_findings(name, scores(name))


if __name__ == "__main__":
    main()
