"""Compare a round of ten million applicants in ten thousand cells with a group-by of their columns.

A round learns f_t to a relative gap of 1e-4, decides, and observes the outcomes of all accepted
applicants. The reference is polars' group-by of the same raw columns. Both take turns in the same
process. Wall time and CPU time are compared; polars may use every core, the round uses only one.
"""

from __future__ import annotations

import copy
import resource
import time
from collections.abc import Callable

import numpy as np
import polars as pl

from fairchance import FdrBudget, Revenue
from fairchance_lab.finite import CountedOutcomes, FiniteClassifier

N, REPEATS, TARGET = 10_000_000, 3, 10
SIZES = {"income": 50, "job": 20, "region": 5}  # times two groups: ten thousand cells


def people(n: int, rng: np.random.Generator) -> tuple[pl.DataFrame, np.ndarray]:
    """Draw applicants with discrete features and a group, and outcomes that depend on features."""
    columns = {name: rng.integers(size, size=n) for name, size in SIZES.items()}
    group = rng.integers(2, size=n)
    chance = 0.5 + 0.49 * columns["income"] / 50 - 0.01 * columns["job"] * (columns["region"] == 2)
    good = (rng.random(n) < chance).astype(np.int8)
    return pl.DataFrame(columns | {"group": np.array(["a", "b"])[group]}), good


def after_first_round(rng: np.random.Generator) -> FiniteClassifier:
    """Return a classifier that will learn f_t in its next round."""
    frame, good = people(N // 5, rng)
    classifier = FiniteClassifier(
        Revenue(gain=200, loss=500),
        FdrBudget(alpha=0.15),
        coverage=CountedOutcomes(threshold=20),
        random_state=0,
    )
    accepted = frame["income"].to_numpy() >= 30
    classifier.fit(frame.drop("group"), good, accepted=accepted, sensitive_features=frame["group"])
    frame, good = people(N // 5, rng)
    decided = classifier.decide(frame.drop("group"), sensitive_features=frame["group"])
    return classifier.observe(decided.ids[decided.accepted], good[decided.accepted])


def timed(task: Callable[[], object]) -> tuple[float, float]:
    """Return wall time and CPU time in seconds."""
    clock, cpu = time.perf_counter(), time.process_time()
    task()
    return time.perf_counter() - clock, time.process_time() - cpu


def main() -> None:
    """Print the ratio of times, the parts of a round and the memory."""
    rng = np.random.default_rng(0)
    classifier = after_first_round(rng)
    frame, good = people(N, rng)
    columns, group = frame.drop("group"), frame["group"]
    parts: dict[str, list[float]] = {}

    def play_round() -> None:
        copied = copy.deepcopy(classifier)
        start = time.perf_counter()
        decided = copied.decide(columns, sensitive_features=group)
        middle = time.perf_counter()
        copied.observe(decided.ids[decided.accepted], good[decided.accepted])
        parts.setdefault("decide", []).append(middle - start)
        parts.setdefault("observe", []).append(time.perf_counter() - middle)
        parts["record"] = [copied.rounds_[-1].n_cells, copied.rounds_[-1].gap]
        parts["people"] = [copied.rounds_[-1].n_exploited, copied.rounds_[-1].n_explored]

    times: dict[str, list[tuple[float, float]]] = {"group-by": [], "round": []}
    for _ in range(REPEATS):
        times["group-by"].append(timed(lambda: frame.group_by(frame.columns).len()))
        times["round"].append(timed(play_round))
    clock, cpu = (
        {name: float(np.median([pair[kind] for pair in pairs])) for name, pairs in times.items()}
        for kind in (0, 1)
    )
    n_cells, gap = parts["record"]
    exploited, explored = parts["people"]
    print(
        f"{N} applicants in {n_cells} cells: {exploited} exploited, {explored} explored, f_t to a "
        f"proven gap of {gap:.1g}"
    )
    print(
        f"a round: {clock['round'] / clock['group-by']:.2f} x a polars group-by in wall time "
        f"({clock['group-by']:.2f} s, {pl.thread_pool_size()} threads), "
        f"{cpu['round'] / cpu['group-by']:.2f} x in CPU time; target {TARGET}"
    )
    print(
        f"  decide {np.median(parts['decide']):.2f} s, observe {np.median(parts['observe']):.2f} s"
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"  peak memory of the process, including applicants and outcomes: {peak:.1f} GB")


if __name__ == "__main__":
    main()
