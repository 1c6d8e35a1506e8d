"""Step 3 of Algorithm 1: draw whom to explore."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.frames import take
from secondlook.ids import keyed_bits, round_key
from secondlook.intake import Batch
from secondlook.policies import per_person
from secondlook.sampling import Draw, fixed_size_draw
from secondlook.strategies import Strategy, check_sizes

__all__ = ["draw_explored"]

_DRAW, _START = 1, 2  # purposes of a round's randomness


def draw_explored(
    batch: Batch,
    explore: NDArray[np.intp],
    score: NDArray[Any],
    n_explore: int,
    strategy: Strategy,
    n_groups: int,
    *,
    seed: int,
    round: int,
    n_instead: int,
) -> tuple[Draw, NDArray[np.float64]]:
    """Draw from EXPLORE_t with probability proportional to g(x, z; f_t).

    Parameters
    ----------
    batch
        The whole batch.
    explore
        Rows of its explore region.
    score
        f_t's score of everybody in the batch.
    n_explore
        How many to draw.
    strategy
        What makes g.
    n_groups
        How many groups there are.
    seed, round
        What the randomness is keyed by, together with the ids.
    n_instead
        How many might have been drawn had somebody else been a candidate in the place of an
        average person of the batch; for the chance that the log gives to others.

    Returns
    -------
    draw
        Who was drawn, with exact probabilities, one entry per row of ``explore``.
    group_factor
        The strategy's factor per group in this round.
    """
    group = batch.group.take(explore)
    in_explore = np.bincount(group, minlength=n_groups).astype(float)
    in_batch = np.bincount(batch.group, minlength=n_groups).astype(float)
    group_factor = strategy.group_factor(in_batch, in_explore)
    if explore.size == 0:
        return Draw.of_nobody(n_instead, n_groups), group_factor
    features = take(batch.X, explore) if strategy.reads_features else None
    size = strategy.person_factor(features, score.take(explore), group)
    size = size * per_person(group_factor, group)
    check_sizes(size, strategy)
    bits = keyed_bits(batch.bits.take(explore), round_key(seed, round, _DRAW))
    start = round_key(seed, round, _START)
    shares = strategy.group_shares(in_explore)
    draw = fixed_size_draw(
        size, n_explore, bits, start, group, n_groups, shares, n_batch=len(batch)
    )
    if 0 <= n_instead < n_explore:
        draw = replace(draw, left=draw.left * (n_instead / n_explore))
    return draw, group_factor
