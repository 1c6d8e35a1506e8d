"""Where a new ladder begins: how soft its edge is, and from which rungs certificates proceed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairchance.methods.certified.ladder import Ladder, LadderRows
from fairchance.methods.certified.pilot import OUTER, Pilot, RungEstimates
from fairchance.methods.certified.ranking import Ranking
from fairchance.methods.certified.rules import Rules
from fairchance.people.likelihoods import ConstantLikelihood

__all__ = ["SOFTEST", "edge_softness", "largest_mass", "two_walks", "walk_starts"]

Floats = NDArray[np.float64]

SOFTEST = 0.05  # edge in small batches, in which six applicants are many
_WALKS = 0.8  # of a ladder's level for the walk from its start; the other walk gets the rest


def edge_softness(
    ranking: Ranking,
    number: int,
    rules: Rules,
    pilot: Pilot,
    widest: float,
    n_batch: int,
    softness: float,
) -> float:
    """Return τ: a part of the share that the model expects to accept, at least six applicants."""
    if isinstance(ranking.likelihood, ConstantLikelihood):
        # All ranks are 1, so a rung accepts every applicant with exp(−(1 − q)/τ). This τ makes
        # that q for the pilot's own rung.
        return (1 - pilot.share) / -float(np.log(pilot.share))
    if number == 0:
        accept = np.clip(ranking.knee(1.25 * rules.alpha), pilot.share, 4 * pilot.share)
    else:
        accept = np.clip(ranking.knee(rules.alpha), 0.5 * widest, 6 * widest)
    return max(softness * float(accept), min(6 / n_batch, SOFTEST))


def walk_starts(
    ladder_rows: LadderRows,
    pilot: Pilot,
    estimates: RungEstimates | None,
    bound: float,
    covered: NDArray[np.bool_] | None = None,
) -> tuple[tuple[int, float], ...]:
    """Return the rungs from which walks at a bound start, with the share of the level each gets.

    The first ladder of a stage, for which there are no ``estimates``, starts at the pilot's rung.
    Later ladders start where evidence has grown fastest among the rungs that are ``covered``, but
    not further out than a pilot may go, because the pilot moves to the start of a new ladder.
    """
    ladder = ladder_rows.ladder
    start = ladder.nearest(pilot.share)
    if estimates is not None:
        growth = estimates.growth(ladder_rows, bound)
        if covered is not None and np.any(covered & (growth > 0)):
            # A start that nothing covers would never be tested, nor any rung beyond it.
            growth = np.where(covered, growth, 0.0)
        lowest = ladder.nearest(0.7 * pilot.share * min(1.0, bound / pilot.alpha))
        if np.any(growth[lowest:] > 0):
            start = min(lowest + int(np.argmax(growth[lowest:])), ladder.nearest(OUTER))
        elif covered is not None and np.any(growth > 0):
            start = int(np.argmax(growth))
        else:
            start = ladder.nearest(pilot.share / 2)
    return two_walks(ladder, start)


def two_walks(ladder: Ladder, start: int) -> tuple[tuple[int, float], ...]:
    """Return walks from a rung and from half its share, with the share of the level each gets."""
    half = ladder.nearest(float(ladder.grid[start]) / 2)
    return ((start, _WALKS), (half, 1 - _WALKS)) if half < start else ((start, 1.0),)


def largest_mass(pi: Floats) -> Floats:
    """Return a share of applicants that a policy accepts at most, by reference applicants."""
    # Four standard errors: one rung in 30,000 would accept more.
    error = pi.std(axis=0) / np.sqrt(len(pi))
    return np.asarray(np.minimum(1.0, pi.mean(axis=0) + 4 * error))
