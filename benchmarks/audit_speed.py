"""How long an evaluation takes: ``python -m benchmarks audit_speed``.

One million logged decisions in 40 rounds, with ten features and two groups. Probabilities are soft,
as the certified method logs them, so that hardly two applicants have the same; or hard, 1 above a
cut and 0.1 below it. Each log is evaluated in a process of its own, whose peak memory is printed.
"""

from __future__ import annotations

import multiprocessing
import resource
import time

import numpy as np
from scipy.special import expit
from scipy.stats import rankdata

from fairchance.audit import DecisionLog, evaluate
from fairchance.methods.certified.evidence import soft_edge

N, ROUNDS, SEED = 1_000_000, 40, 52_000


def log_of(kind: str) -> DecisionLog:
    """Return a log with soft or hard probabilities."""
    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(N, 10))
    good = expit(1 + X[:, 0] + 0.5 * X[:, 1])
    score = np.clip(good + 0.1 * rng.normal(size=N), 0, 1)
    rank = 1 - rankdata(score) / N
    p = soft_edge(rank, 0.4, 0.1) if kind == "soft" else np.where(rank < 0.5, 1.0, 0.1)
    accepted = rng.random(N) < p
    return DecisionLog(
        accepted,
        p,
        np.where(accepted, rng.random(N) < good, np.nan),
        X=X,
        sensitive_features=np.where(rng.random(N) < 0.3, "B", "A"),
        round=np.repeat(np.arange(1, ROUNDS + 1), N // ROUNDS),
        score=score,
    )


def measure(kind: str, policy: str) -> None:
    """Print CPU seconds and peak memory of one evaluation."""
    log = log_of(kind)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    start = time.process_time()
    result = evaluate(log, policy, alpha=0.15)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{kind} probabilities, {policy}: {seconds:.1f} CPU seconds, {peak:.2f} GiB at the peak "
        f"({before:.2f} GiB with the log alone)\n  {result.verdict()}",
        flush=True,
    )


def main() -> None:
    """Measure each kind of log in a process of its own."""
    for kind in ("soft", "hard"):
        for policy in ("score >= 0.7", "x0 >= 0"):  # it changes between rounds, or it does not
            process = multiprocessing.get_context("spawn").Process(
                target=measure, args=(kind, policy)
            )
            process.start()
            process.join()


if __name__ == "__main__":
    main()
