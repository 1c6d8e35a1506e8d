"""Step 3 of Algorithm 1: draw whom to explore."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.core.limits import Limited
from secondlook.core.sampling import Draw, fixed_size_draw
from secondlook.core.strategies import Strategy, check_sizes
from secondlook.frames import take
from secondlook.methods.algorithm1.policy_log import per_person
from secondlook.people.batches import one_group
from secondlook.people.ids import keyed_bits, round_key
from secondlook.people.intake import Batch

__all__ = ["Candidates", "barred_words", "draw_explored", "find_candidates"]

_DRAW, _START = 1, 2  # purposes of a round's randomness
_BESIDE_NOBODY = 1e-18  # size of nobody, beside which the log's g of somebody barred is nothing


@dataclass(frozen=True)
class Candidates:
    """Who of an explore region may be explored, and how many of them at most.

    Attributes
    ----------
    may
        Who may be, an entry per row of the explore region.
    at_most
        How many of them, whoever is drawn.
    barred
        How many of the region may not be, by group.
    words
        The same in a sentence; empty if all may.
    """

    may: NDArray[np.bool_]
    at_most: int
    barred: tuple[int, ...]
    words: str

    def note(self, n_wanted: int, n_explore: int) -> str:
        """Say what the limits did to a round whose budget wanted more than they let be explored."""
        if n_explore == n_wanted:
            return self.words
        money = (
            f"The exposure limit let {n_explore} people be explored of {n_wanted} in the budget."
        )
        return f"{self.words} {money}".strip()


def find_candidates(
    batch: Batch,
    explore: NDArray[np.intp],
    score: NDArray[Any],
    strategy: Strategy,
    n_groups: int,
) -> Candidates:
    """Return who of the explore region may be explored under a strategy's limits."""
    if not isinstance(strategy, Limited) or explore.size == 0:
        return Candidates(np.ones(explore.size, np.bool_), explore.size, (0,) * n_groups, "")
    features = take(batch.X, explore) if strategy.reads_features else None
    why = strategy.barred(features, score.take(explore))
    may = why == 0
    left = take(features, np.flatnonzero(may)) if strategy.reads_features else None
    at_most = strategy.at_most(left, int(may.sum()))
    group = batch.group if batch.report_group is None else batch.report_group
    barred = np.bincount(group.take(explore[~may]), minlength=n_groups)
    return Candidates(may, at_most, tuple(barred.tolist()), barred_words(strategy, why))


def barred_words(strategy: Limited, why: NDArray[np.int8]) -> str:
    """Say how many candidates cannot be explored, why, and of whom nothing is promised.

    Examples
    --------
    >>> barred_words(Limited(max_risk=0.8), np.array([0, 3, 3]))
    '2 of 3 candidates cannot be explored (risk above 0.8: 2): that everybody is explored is
    promised of the others only.'
    """
    counts = np.bincount(why, minlength=1)
    n_barred = why.size - int(counts[0])
    if n_barred == 0:
        return ""
    reasons = (f"{strategy.reasons[one]}: {counts[one]}" for one in np.unique(why[why > 0]))
    parts, n = ", ".join(reasons), why.size
    if n_barred == n:
        return (
            f"None of {n} candidates can be explored ({parts}): that everybody is explored is "
            f"promised of nobody."
        )
    return (
        f"{n_barred} of {n} candidates cannot be explored ({parts}): that everybody is explored "
        f"is promised of the others only."
    )


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
    """Draw from EXPLORE_t with probability proportional to g(x, z; f_t), within the limits.

    Parameters
    ----------
    batch
        The whole batch.
    explore
        Rows of its explore region.
    score
        f_t's score of everybody in the batch.
    n_explore
        How many to draw, if the strategy's limits allow as many.
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
        Who was drawn, with exact probabilities, one entry per row of ``explore``; 0 for those
        who may not be explored.
    group_factor
        The strategy's factor per group in this round.
    """
    keys = seed, round, n_instead
    if not strategy.is_limited:
        return _draw_from(batch, explore, score, n_explore, strategy, n_groups, *keys)
    found = find_candidates(batch, explore, score, strategy, n_groups)
    left, n_left = explore[found.may], min(n_explore, found.at_most)
    draw, group_factor = _draw_from(batch, left, score, n_left, strategy, n_groups, *keys)
    drawn, probability = np.zeros(explore.size, np.bool_), np.zeros(explore.size)
    drawn[found.may], probability[found.may] = draw.drawn, draw.probability
    others = np.maximum(draw.others, _BESIDE_NOBODY)
    return Draw(drawn, probability, draw.left, others), group_factor


def _draw_from(
    batch: Batch,
    rows: NDArray[np.intp],
    score: NDArray[Any],
    n_explore: int,
    strategy: Strategy,
    n_groups: int,
    seed: int,
    round: int,
    n_instead: int,
) -> tuple[Draw, NDArray[np.float64]]:
    group = _groups_of(batch, rows, n_groups)
    in_explore, in_batch = _heads(group, n_groups), _heads(batch.group, n_groups)
    group_factor = strategy.group_factor(in_batch, in_explore)
    if rows.size == 0:
        return Draw.of_nobody(n_instead, n_groups), group_factor
    features = take(batch.X, rows) if strategy.reads_features else None
    size = strategy.person_factor(features, score.take(rows), group)
    if np.any(group_factor != 1):
        size = size * per_person(group_factor, group)
    check_sizes(size, strategy)
    bits = keyed_bits(batch.bits, round_key(seed, round, _DRAW), rows)
    start = round_key(seed, round, _START)
    shares = strategy.group_shares(in_explore)
    draw = fixed_size_draw(
        size, n_explore, bits, start, group, n_groups, shares, n_batch=len(batch)
    )
    if 0 <= n_instead < n_explore:
        draw = replace(draw, left=draw.left * (n_instead / n_explore))
    return draw, group_factor


def _groups_of(batch: Batch, rows: NDArray[np.intp], n_groups: int) -> NDArray[np.intp]:
    """Return the groups of some rows."""
    return batch.group.take(rows) if n_groups > 1 else one_group(rows.size)


def _heads(group: NDArray[np.intp], n_groups: int) -> NDArray[np.float64]:
    """Count people by group."""
    if n_groups == 1:
        return np.array([float(group.size)])
    return np.bincount(group, minlength=n_groups).astype(float)
