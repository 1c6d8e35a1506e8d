"""A population of four cells whose truth is known in closed form, and logs of decisions on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairchance import Utility
from fairchance.audit import DecisionLog
from fairchance.core.sampling import fixed_size_draw
from methods.certified.known_truth import too_many

MASS = np.array([0.4, 0.25, 0.2, 0.15])
BAD = np.array([0.05, 0.15, 0.6, 0.9])  # P(bad) of each cell
SELECTIVE = np.array([0.95, 0.6, 0.12, 0.1])  # those who are bad are hardly ever accepted
POLICY = np.array([1.0, 1.0, 0.8, 0.5])
GROUP = np.array(["A", "B", "A", "B"])
TAKES = (0.6, 0.4)  # P(takes the loan if accepted) of good and of bad applicants
UTILITY = Utility(accept_good=1.0, accept_bad=-2.0)
FALSE_ALARM = 1e-4  # of each test on many runs


@dataclass(frozen=True)
class Logged:
    """A log, and what only a test knows.

    Attributes
    ----------
    cell, bad, takes
        Of each applicant.
    propensities, scores
        By round and cell.
    """

    log: DecisionLog
    cell: np.ndarray
    bad: np.ndarray
    takes: np.ndarray
    propensities: np.ndarray
    scores: np.ndarray


def selective(_round, _n_bad, _n_accepted):
    """Return the same probabilities in every round."""
    return SELECTIVE


def adaptive(_round, n_bad, n_accepted):
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


def together(p, cell, rng):
    """Accept all applicants of a cell or none: the strongest dependence that there is."""
    return rng.random(4)[cell] < p, p, np.ones(p.size, np.bool_)


def play(rng, sizes, logging=selective, design=coins, score=None, *, groups=False, takes=(1, 1)):
    """Return a log of rounds of some sizes.

    ``logging`` and ``score`` return probabilities of acceptance and scores by cell, given the
    round and how many of each cell were bad, and accepted, before it.
    """
    n_bad, n_accepted = np.zeros(4), np.zeros(4)
    made, propensities, scores = [], [], []
    for t, n in enumerate(sizes, 1):
        propensities.append(logging(t, n_bad, n_accepted))
        scores.append(np.zeros(4) if score is None else score(t, n_bad, n_accepted))
        cell = rng.choice(4, size=n, p=MASS)
        accepted, p, candidates = design(propensities[-1][cell], cell, rng)
        bad = rng.random(n) < BAD[cell]
        n_bad += np.bincount(cell[accepted & bad], minlength=4)
        n_accepted += np.bincount(cell[accepted], minlength=4)
        made.append((np.full(n, t), cell, bad, accepted, p, candidates, scores[-1][cell]))
    times, cell, bad, accepted, p, candidates, recorded = map(
        np.concatenate, zip(*made, strict=True)
    )
    will = rng.random(bad.size) < np.where(bad, takes[1], takes[0])
    log = DecisionLog(
        accepted,
        p,
        np.where(accepted & will, 1.0 - bad, np.nan),
        not_taken=accepted & ~will,
        round=times,
        drawn=candidates,
        score=None if score is None else recorded,
        sensitive_features=GROUP[cell] if groups else None,
    )
    return Logged(log, cell, bad, will, np.array(propensities), np.array(scores))


def truth(pi=POLICY, group=None, sizes=(1,), utility=UTILITY, takes=(1, 1)):
    """Return each measure of a policy, given by cell or by round and cell.

    Rounds count by their sizes, as applicants of all rounds do.
    """
    mass = MASS if group is None else MASS * (group == GROUP) / MASS[group == GROUP].sum()
    pi = np.asarray(sizes) @ np.atleast_2d(pi) / sum(sizes)
    good, bad = ((mass * pi) @ each for each in (takes[0] * (1 - BAD), takes[1] * BAD))
    return {
        "selection_rate": mass @ pi,
        "false_discovery_rate": bad / (good + bad),
        "profit": utility.gain_good * good + utility.gain_bad * bad,
    }


def rngs(seed, runs):
    """Return a generator for each of many runs."""
    return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(runs)]


def too_rarely(misses, runs, error=0.05):
    """Return whether an interval that missed so often cannot be one of 95 %."""
    return bool(too_many(misses, runs, error, false_alarm=FALSE_ALARM))
