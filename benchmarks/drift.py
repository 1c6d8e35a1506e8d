"""The drift monitor: false alarms, delay and savings.

``python -m benchmarks drift`` feeds it streams of outcomes with a known share of bad, then runs the
certified method on a population that turns worse half way, with the monitor and without.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from secondlook import CertifiedClassifier, Revenue
from secondlook.errors import LearningWarning
from secondlook.methods.certified.evidence import DriftMonitor

ALPHA, LIMIT = 0.15, 0.05
STREAMS, RUNS = 400, 12
ROUNDS, PEOPLE = 15, 400


def alarm(shares, rng, accepted=100):
    """Return the round in which the monitor fires on rounds with these shares of bad, or None."""
    monitor = DriftMonitor(ALPHA)
    for t, share in enumerate(shares, 1):
        monitor.add(rng.random(accepted) < share)
        if monitor.log_wealth() >= -np.log(LIMIT / 2):
            return t
    return None


def streams() -> None:
    """Print false alarms and delays on plain streams."""
    rng = np.random.default_rng(5000)
    fired = sum(alarm([ALPHA] * 40, rng) is not None for _ in range(STREAMS))
    print(f"share of bad at α for 40 rounds: {fired} alarms in {STREAMS} streams")
    for before, after in ((0.10, 0.20), (0.10, 0.30)):
        delays = [alarm([before] * 15 + [after] * 40, rng) for _ in range(STREAMS)]
        early = sum(one is not None and one <= 15 for one in delays)
        late = np.array([one - 15 for one in delays if one is not None and one > 15])
        missed = sum(one is None for one in delays)
        print(
            f"from {before:.2f} to {after:.2f} after 15 rounds: fires {np.median(late):.0f} rounds "
            f"later (median; longest {late.max()}), {early} before it, {missed} never"
        )


@dataclass(frozen=True)
class Applicants:
    """x ~ N(0, 1), P(good) = σ(intercept + 2·x)."""

    intercept: float

    def draw(self, n, rng):
        """Return features and outcomes."""
        x = rng.normal(size=n)
        return x[:, None], (rng.random(n) < self.good(x)).astype(int)

    def good(self, x):
        """Return P(good | x)."""
        return 1 / (1 + np.exp(-self.intercept - 2 * x))


def half_way(monitor, seed):
    """Return the share of rounds after the shift that break α with a certificate, and alarms."""
    rng = np.random.default_rng(seed)
    before, after = Applicants(1.5), Applicants(0.5)
    X, good = before.draw(600, rng)
    accepted = rng.random(600) < np.where(good == 1, 0.9, 0.1)
    method = CertifiedClassifier(
        ALPHA,
        utility=Revenue(200, 200),
        horizon=2 * ROUNDS,
        monitor=monitor,
        random_state=seed,
    ).fit(X, good, accepted=accepted)
    grid = np.linspace(-4, 4, 2001)
    mass = np.exp(-(grid**2) / 2)
    broken = 0
    for t in range(2 * ROUNDS):
        now = before if t < ROUNDS else after
        X, good = now.draw(PEOPLE, rng)
        batch = method.decide(X)
        method.observe(batch.ids[batch.accepted], good[batch.accepted])
        p = method.acceptance_probability(grid[:, None]) * mass
        fdr = p @ (1 - now.good(grid)) / p.sum()
        broken += bool(t >= ROUNDS and batch.certified and fdr > ALPHA)
    return broken / ROUNDS


def main() -> None:
    """Print everything."""
    warnings.simplefilter("ignore", LearningWarning)
    streams()
    for monitor in (LIMIT, 0.0):
        shares = [half_way(monitor, 5000 + seed) for seed in range(RUNS)]
        which = "with" if monitor else "without"
        print(
            f"a population that turns worse half way, {which} the monitor: {np.mean(shares):.0%} "
            f"of the {ROUNDS} rounds after it are certified and break α ({RUNS} runs)"
        )


if __name__ == "__main__":
    main()
