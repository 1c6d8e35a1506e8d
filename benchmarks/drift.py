"""The drift monitor: false alarms, delay and savings.

``python -m benchmarks drift`` runs the monitor on streams of outcomes with a known share of bad
outcomes. It then runs the certified method, with and without the monitor, on a population that gets
worse halfway through.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from fairchance import CertifiedClassifier, Revenue
from fairchance.errors import LearningWarning
from fairchance.methods.certified.evidence import DriftMonitor

ALPHA, LIMIT = 0.15, 0.05
STREAMS, RUNS = 400, 12
ROUNDS, PEOPLE = 15, 400


def alarm(shares, rng, accepted=100):
    """Return the round in which the monitor fires, given each round's share of bad, or None."""
    monitor = DriftMonitor(ALPHA)
    for t, share in enumerate(shares, 1):
        monitor.add(rng.random(accepted) < share)
        if monitor.log_wealth() >= -np.log(LIMIT / 2):
            return t
    return None


def streams() -> None:
    """Print false alarms and delays on streams of outcomes."""
    rng = np.random.default_rng(5000)
    n_alarms = sum(alarm([ALPHA] * 40, rng) is not None for _ in range(STREAMS))
    print(f"share of bad outcomes equal to α for 40 rounds: {n_alarms} alarms in {STREAMS} streams")
    for before, after in ((0.10, 0.20), (0.10, 0.30)):
        alarms = [alarm([before] * 15 + [after] * 40, rng) for _ in range(STREAMS)]
        early = sum(fired is not None and fired <= 15 for fired in alarms)
        late = np.array([fired - 15 for fired in alarms if fired is not None and fired > 15])
        missed = sum(fired is None for fired in alarms)
        print(
            f"from {before:.2f} to {after:.2f} after 15 rounds: fires {np.median(late):.0f} rounds "
            f"later (median; longest {late.max()}), {early} before the change, {missed} never"
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
    """Return the share of rounds after the shift that are certified and break α."""
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
    """Print the results on streams, then those of the certified method."""
    warnings.simplefilter("ignore", LearningWarning)
    streams()
    for monitor in (LIMIT, 0.0):
        shares = [half_way(monitor, 5000 + seed) for seed in range(RUNS)]
        which = "with" if monitor else "without"
        print(
            f"a population that gets worse halfway, {which} the monitor: {np.mean(shares):.0%} "
            f"of the {ROUNDS} rounds after the change are certified and break α ({RUNS} runs)"
        )


if __name__ == "__main__":
    main()
