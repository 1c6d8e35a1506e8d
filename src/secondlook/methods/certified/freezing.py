"""How a ladder is made once its ranking is frozen: how soft its edge is, where its walks start."""

from __future__ import annotations

import numpy as np

from secondlook.methods.certified.ladder import Reach
from secondlook.methods.certified.pilot import OUTER, Pilot
from secondlook.methods.certified.ranking import Ranking
from secondlook.methods.certified.rules import Rules
from secondlook.methods.certified.rung_estimates import RungEstimates
from secondlook.people.likelihoods import ConstantLikelihood

__all__ = ["edge_softness", "walk_starts"]

_SOFTEST = 0.05  # edge in small batches, in which six people are many
_WALKS = 0.8  # of a ladder's level for the walk from its start, the rest from half of it


def edge_softness(
    ranking: Ranking, number: int, rules: Rules, pilot: Pilot, widest: float, n_batch: int
) -> float:
    """Return τ: a part of what the model thinks it can accept, and some people at least.

    Parameters
    ----------
    ranking
        Who looks best.
    number
        Number of the ladder in its stage, from 0.
    rules
        What is promised.
    pilot
        The pilot as it stands.
    widest
        The largest share that a policy of this stage accepted for sure.
    n_batch
        People in the largest batch so far.
    """
    if isinstance(ranking.likelihood, ConstantLikelihood):
        # All ranks are 1, so that a rung accepts everybody with exp(−(1 − q)/τ), the pilot's own
        # with q.
        return (1 - pilot.share) / -float(np.log(pilot.share))
    if number == 0:
        accept = np.clip(ranking.knee(1.25 * rules.alpha), pilot.share, 4 * pilot.share)
    else:
        accept = np.clip(ranking.knee(rules.alpha), 0.5 * widest, 6 * widest)
    return max(rules.softness(number) * float(accept), min(6 / n_batch, _SOFTEST))


def walk_starts(
    reach: Reach, pilot: Pilot, estimates: RungEstimates | None
) -> tuple[tuple[int, float], ...]:
    """Return the rungs at which walks start, with the share of the ladder's level each gets.

    The first ladder of a stage, for which there are no ``estimates``, starts where the pilot
    stands; later ones where evidence has grown fastest, but not further out than a pilot may go,
    as the pilot goes where a ladder starts.
    """
    ladder = reach.ladder
    start = ladder.nearest(pilot.share)
    if estimates is not None:
        growth = estimates.growth(reach)
        lowest = ladder.nearest(0.7 * pilot.share)
        furthest = ladder.nearest(OUTER)
        if np.any(growth[lowest:] > 0):
            start = min(lowest + int(np.argmax(growth[lowest:])), furthest)
        else:
            start = ladder.nearest(pilot.share / 2)
    half = ladder.nearest(float(ladder.grid[start]) / 2)
    return ((start, _WALKS), (half, 1 - _WALKS)) if half < start else ((start, 1.0),)
