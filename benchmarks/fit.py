"""CPU time of the constrained fit against scikit-learn's unconstrained one, in one run.

Run with ``python benchmarks/fit.py``; ``--repeat`` sets how often both are alternated.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from statistics import median

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from secondlook.fairness import SelectionRateParity
from secondlook.learners.logistic import ConstrainedLogistic

ROWS, FEATURES = (10_000, 50_000, 240_000), (10, 100)
TARGETS = {10: {n: 1.0 for n in ROWS}, 100: {10_000: 3.5, 50_000: 1.5, 240_000: 1.5}}
MAX_FDR, DIFFERENCE = 0.15, 0.05

Data = tuple[NDArray[np.float64], NDArray[np.int8], NDArray[np.int8]]


def census_like(n_rows: int, n_features: int, rng: np.random.Generator) -> Data:
    """Standardised mix of skewed, ordinal and indicator columns; groups differ in features.

    The second group is a third of the people, has lower values of the columns that matter and a
    lower share of good outcomes, as incomes in census extracts do.
    """
    group = (rng.random(n_rows) < 0.35).astype(np.int8)
    common = rng.normal(size=n_rows) - 0.5 * group
    X = rng.normal(size=(n_rows, n_features)) + 0.5 * common[:, None] * (rng.random(n_features) < 0.3)
    third = n_features // 3
    X[:, :third] = X[:, :third] > rng.normal(size=third)
    X[:, third : 2 * third] = np.exp(0.5 * X[:, third : 2 * third])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    coef = rng.normal(size=n_features) * (1.5 / np.sqrt(n_features))
    margin = X @ coef + 0.7 * common - 0.4
    good = (rng.random(n_rows) < 1 / (1 + np.exp(-margin))).astype(np.int8)
    return np.ascontiguousarray(X), good, group


def cpu_time(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def measure(data: Data, repeat: int) -> dict[str, float]:
    """Medians over alternations, so that a busy machine slows all of them alike."""
    X, y, group = data
    X32 = X.astype(np.float32)
    constrained = ConstrainedLogistic(max_fdr=MAX_FDR, fairness=SelectionRateParity(DIFFERENCE))
    reference = LogisticRegression()
    work: dict[str, Callable[[], object]] = {
        "reference": lambda: reference.fit(X, y),
        "constrained": lambda: constrained.fit(X, y, sensitive_features=group),
        "float32": lambda: constrained.fit(X32, y, sensitive_features=group),
        "unconstrained": lambda: ConstrainedLogistic().fit(X, y),
    }
    times: dict[str, list[float]] = {name: [] for name in work}
    result = {"violation": 0.0}
    for _ in range(repeat):
        for name, run in work.items():
            times[name].append(cpu_time(run))
            if name in ("constrained", "float32"):
                result["violation"] = max(result["violation"], violation(constrained, data))
    result["seconds"] = median(times["reference"])
    for name in ("constrained", "float32", "unconstrained"):
        result[name] = median(times[name]) / result["seconds"]
    return result


def violation(model: ConstrainedLogistic, data: Data) -> float:
    """Largest excess over a bound, recomputed in float64 from the fitted model."""
    X, y, group = data
    p = model.predict_proba(X)[:, 1]
    fdr = p[y == 0].sum() / p.sum()
    gap = abs(p[group == 0].mean() - p[group == 1].mean())
    return float(max(fdr - MAX_FDR, gap - DIFFERENCE, 0.0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    repeat = parser.parse_args().repeat
    warnings.simplefilter("ignore")
    print("ratios of CPU time to scikit-learn's unconstrained LogisticRegression (float64, lbfgs)")
    print("  rows features  ref [s]  constrained  float32  unconstrained  target  violation")
    with threadpool_limits(1):
        for n_features in FEATURES:
            for n_rows in ROWS:
                data = census_like(n_rows, n_features, np.random.default_rng(0))
                r = measure(data, repeat)
                print(
                    f"{n_rows:6d} {n_features:8d} {r['seconds']:8.4f} {r['constrained']:12.2f} "
                    f"{r['float32']:8.2f} {r['unconstrained']:14.2f} "
                    f"{TARGETS[n_features][n_rows]:7.1f} {r['violation']:10.1e}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
