"""A population of four cells whose truth is known in closed form, and logs of decisions on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from methods.certified.known_truth import too_many
from secondlook import Utility
from secondlook.audit import DecisionLog
from secondlook.core.sampling import fixed_size_draw

MASS = np.array([0.4, 0.25, 0.2, 0.15])
BAD = np.array([0.05, 0.15, 0.5, 0.8])  # P(bad) of each cell
SELECTIVE = np.array([0.95, 0.7, 0.2, 0.1])  # those who are bad are hardly ever accepted
POLICY = np.array([1.0, 0.9, 0.6, 0.3])
GROUP = np.array(["A", "B", "A", "B"])
UTILITY = Utility(accept_good=1.0, accept_bad=-2.0)
FALSE_ALARM = 1e-4  # of each test on many runs


@dataclass(frozen=True)
class Logged:
    """A log, what policy each round followed, and what only the test knows."""

    log: DecisionLog
    cell: np.ndarray
    bad: np.ndarray
    propensities: np.ndarray  # by round and cell

    def look(self, last: int) -> Logged:
        """Return what was known after a round."""
        rows = np.flatnonzero(self.log.round <= last)
        return Logged(self.log.select(rows), self.cell[rows], self.bad[rows], self.propensities)


def selective(_seen, _accepted):
    """Return the same probabilities in every round."""
    return SELECTIVE


def adaptive(n_bad, n_accepted):
    """Return probabilities that fall as soon as a cell seems to be bad."""
    return np.where((n_bad + 0.2) / (n_accepted + 1) > 0.3, 0.1, 0.85)


def coins(p, _cell, rng):
    """Accept applicants independently."""
    return rng.random(p.size) < p, p, np.zeros(p.size, np.bool_)


def drawn(p, cell, rng):
    """Accept cells 0 and 1 for sure or not at all, and draw a fixed number of the others."""
    accepted, p = (p > 0.5) & (cell < 2), ((p > 0.5) & (cell < 2)).astype(float)
    rows = np.flatnonzero(cell >= 2)
    if rows.size:
        bits = rng.integers(2**64, size=rows.size + 1, dtype=np.uint64)
        size, group = np.where(cell[rows] == 2, 2.0, 1.0), np.zeros(rows.size, np.intp)
        draw = fixed_size_draw(size, int(rows.size * 0.4), bits[1:], bits[0], group, 1)
        accepted[rows], p[rows] = draw.drawn, draw.probability
    return accepted, p, cell >= 2


def together(p, _cell, rng):
    """Accept all applicants of a cell or none: the strongest dependence that there is."""
    return rng.random(4)[_cell] < p, p, np.ones(p.size, np.bool_)


def play(rng, sizes, logging=selective, design=coins, **columns):
    """Return a log of rounds of some sizes, in each of which ``logging`` gives probabilities.

    ``columns`` are functions of the round and the cells that make columns of the log.
    """
    n_bad, n_accepted = np.zeros(4), np.zeros(4)
    made, propensities = [], []
    for t, n in enumerate(sizes, 1):
        cell = rng.choice(4, size=n, p=MASS)
        by_cell = logging(n_bad, n_accepted)
        accepted, p, candidates = design(by_cell[cell], cell, rng)
        bad = rng.random(n) < BAD[cell]
        n_bad += np.bincount(cell[accepted & bad], minlength=4)
        n_accepted += np.bincount(cell[accepted], minlength=4)
        extra = {name: make(t, cell) for name, make in columns.items()}
        made.append((np.full(n, t), cell, bad, accepted, p, candidates, extra))
        propensities.append(by_cell)
    times, cell, bad, accepted, p, candidates = (
        np.concatenate([part[at] for part in made]) for at in range(6)
    )
    extra = {name: np.concatenate([part[6][name] for part in made]) for name in columns}
    log = DecisionLog(
        accepted, p, np.where(accepted, 1.0 - bad, np.nan), round=times, drawn=candidates, **extra
    )
    return Logged(log, cell, bad, np.array(propensities))


def truth(pi=POLICY, cells=(0, 1, 2, 3)):
    """Return each measure of a policy, over all cells or some."""
    at = list(cells)
    mass, bad, pi = MASS[at] / MASS[at].sum(), BAD[at], np.asarray(pi, float)[at]
    worth = UTILITY.gain_good * (1 - bad) + UTILITY.gain_bad * bad
    return {
        "selection_rate": mass @ pi,
        "false_discovery_rate": mass @ (pi * bad) / (mass @ pi),
        "profit": mass @ (pi * worth),
    }


def rngs(seed, runs):
    """Return a generator for each of many runs."""
    return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(runs)]


def covers_too_rarely(misses, runs, error=0.05):
    """Return whether the exact binomial test rejects that a run misses with probability 5 %."""
    return bool(too_many(misses, runs, error, false_alarm=FALSE_ALARM))
