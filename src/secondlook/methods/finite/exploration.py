"""Step 3 of Algorithm 1 on cells: everybody of a cell has the same g."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.core.strategies import Strategy, check_sizes
from secondlook.methods.finite.drawing import CellDraw, choose, plan_draw
from secondlook.methods.finite.encoding import Placed
from secondlook.people.ids import keyed_bits, round_key

__all__ = ["Sizes", "draw_from_cells", "plan_from_cells", "sizes_of_cells"]

Floats = NDArray[np.float64]

_DRAW, _START, _CELLS = 1, 2, 4  # purposes of a round's randomness


@dataclass(frozen=True)
class Sizes:
    """How likely a person of each cell is to be drawn.

    Attributes
    ----------
    within
        The strategy's factors: compares people, with quotas only those of one group.
    shares
        Each group's share of the draw; None without quotas.
    g
        Compares people of all groups, the quotas counted in: proportional to the chance of a person
        in a draw that leaves nobody certain.
    """

    within: Floats
    shares: Floats | None
    g: Floats


def sizes_of_cells(
    strategy: Strategy, placed: Placed, score: Floats, exploit: NDArray[np.bool_]
) -> Sizes:
    """Return g(x, z; f_t) of every known cell, whether or not anybody of it applied."""
    table, group = placed.table, placed.table.group
    n_groups = table.groups.size
    in_batch = _heads(group, placed.heads, n_groups)
    candidates = placed.heads * ~exploit
    in_explore = _heads(group, candidates, n_groups)
    features = table.X if strategy.reads_features else None
    person = np.asarray(strategy.person_factor(features, score.copy(), group), dtype=np.float64)
    within = person * strategy.group_factor(in_batch, in_explore)[group]
    check_sizes(within, strategy)
    shares = strategy.group_shares(in_explore)
    if shares is None:
        return Sizes(within, None, within)
    # A group without candidates stands there with one average person, so that g > 0 in its cells.
    heads = np.maximum(in_explore, 1.0)
    total = _heads(group, candidates * within, n_groups)
    mean = _heads(group, within, n_groups) / np.maximum(_heads(group, None, n_groups), 1)
    total = np.where(in_explore > 0, total, mean)
    quotas = strategy.group_shares(heads)
    assert quotas is not None
    factor = quotas / np.where(total > 0, total, 1.0)
    return Sizes(within, shares, within * factor[group])


def _heads(group: NDArray[np.intp], weight: Any, n_groups: int) -> Floats:
    """Sum something of cells by group."""
    return np.bincount(group, weight, n_groups).astype(np.float64)


def draw_from_cells(
    placed: Placed,
    bits: NDArray[np.uint64],
    exploit: NDArray[np.bool_],
    sizes: Sizes,
    n_explore: int,
    *,
    seed: int,
    round: int,
    n_instead: int,
) -> tuple[NDArray[np.intp], Floats]:
    """Draw from EXPLORE_t with probability proportional to g.

    Parameters
    ----------
    placed, bits
        The batch, and the bits of its ids.
    exploit
        EXPLOIT_t, by cell.
    sizes
        What makes g.
    n_explore
        How many to draw.
    seed, round
        What the randomness is keyed by, together with the ids.
    n_instead
        How many might have been drawn had somebody else been a candidate in the place of an
        average person of the batch.

    Returns
    -------
    rows
        Who was drawn.
    probability
        Chance of somebody of each cell, exact for the cells of candidates.
    """
    table = placed.table
    draw, probability = plan_from_cells(placed, exploit, sizes, n_explore, n_instead)
    if draw is None:
        return np.zeros(0, np.intp), probability
    cells = keyed_bits(np.arange(len(table), dtype=np.uint64), round_key(seed, round, _CELLS))
    counts = draw.counts(placed.heads * ~exploit, cells, round_key(seed, round, _START))
    rows = choose(placed.cell, bits, round_key(seed, round, _DRAW), counts, placed.heads)
    return rows, probability


def plan_from_cells(
    placed: Placed, exploit: NDArray[np.bool_], sizes: Sizes, n_explore: int, n_instead: int
) -> tuple[CellDraw | None, Floats]:
    """Return the plan of a draw, None if nobody is to be drawn, and the chance in each cell.

    Of ``placed`` only people by cell are asked for; the others are as in :func:`draw_from_cells`.
    """
    table, heads = placed.table, placed.heads * ~exploit
    if not heads.any():  # had there been a candidate, they would have been drawn
        return None, np.full(len(table), float(min(n_instead, 1)))
    if n_explore == 0:
        return None, np.zeros(len(table))
    n_batch = int(placed.heads.sum())
    draw = plan_draw(sizes.within, heads, n_explore, table.group, sizes.shares, n_batch)
    probability = draw.probability
    if 0 <= n_instead < n_explore:
        probability = np.where(heads > 0, probability, probability * (n_instead / n_explore))
    return draw, probability
