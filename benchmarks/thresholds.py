"""CPU time of the exact operating points, as ratios to one argsort of the same scores.

Run as ``python benchmarks/thresholds.py [rows]``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

from secondlook.core.fairness import RateParity, SelectionRateParity, TruePositiveRateParity
from secondlook.core.utility import Revenue
from secondlook.learners.thresholds import OperatingPoint, group_thresholds, shared_threshold

REPEATS = 3


def population(n: int, n_groups: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Calibrated scores whose level differs between groups of unequal size."""
    group = rng.choice(n_groups, n, p=np.arange(1, n_groups + 1) / (n_groups * (n_groups + 1) / 2))
    logit = rng.normal(1.0 + 0.8 * np.cos(group), 1.5)
    score = 1 / (1 + np.exp(-logit))
    outcome = (rng.random(n) < score).astype(np.int8)
    return score, outcome, rng.uniform(0.5, 2.0, n), group


def cpu(work: Callable[[], object]) -> tuple[float, object]:
    """Least CPU time of a few runs, and the last result."""
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        result = work()
        times.append(time.process_time() - start)
    return min(times), result


def report(
    name: str,
    solve: Callable[..., OperatingPoint],
    rows: tuple[np.ndarray, ...],
    max_fdr: float = 0.08,
    **more: object,
) -> None:
    sort, _ = cpu(lambda: np.argsort(rows[0]))
    n_groups = int(rows[3].max()) + 1
    spent, point = cpu(
        lambda: solve(*rows, n_groups, utility=Revenue(200, 500), max_fdr=max_fdr, **more)
    )
    print(
        f"{name:<44}{spent / sort:8.1f} ×{spent * 1e3:9.1f} ms   gap {point.gap:.1e}   "
        f"fdr {point.fdr:.4f}   disparity {point.disparity:.4f}   feasible {point.feasible}"
    )


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 240_000
    rng = np.random.default_rng(np.random.SeedSequence(240))
    constraints: list[RateParity] = [SelectionRateParity(0.05), TruePositiveRateParity(0.05)]
    rows = population(n, 2, rng)
    report("shared", shared_threshold, rows)
    report("shared, selection-rate parity", shared_threshold, rows, fairness=constraints[0])
    report("2 groups", group_thresholds, rows)
    report(
        "2 groups, selection rate 0.6 out of reach", group_thresholds, rows, min_selection_rate=0.6
    )
    for fairness in constraints:
        report(f"2 groups, {type(fairness).__name__}", group_thresholds, rows, fairness=fairness)
    for n_groups in (3, 5, 8):
        rows = population(n, n_groups, rng)
        report(f"{n_groups} groups", group_thresholds, rows)
        for fairness in constraints:
            name = f"{n_groups} groups, {type(fairness).__name__}"
            report(name, group_thresholds, rows, fairness=fairness)


if __name__ == "__main__":
    main()
