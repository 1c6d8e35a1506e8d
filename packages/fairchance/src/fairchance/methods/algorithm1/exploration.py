"""Step 3 of Algorithm 1: draw the applicants to explore."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.core.decisions import Note
from fairchance.core.limits import REASONS, Limited
from fairchance.core.sampling import Draw, coin_flips, fixed_size_draw
from fairchance.core.strategies import Strategy, check_sizes
from fairchance.frames import take
from fairchance.methods.algorithm1.policy_log import per_person
from fairchance.people.ids import keyed_bits, round_key
from fairchance.people.intake import Batch

__all__ = ["Candidates", "barred_note", "draw_by_score", "draw_explored", "find_candidates"]

_DRAW, _START = 1, 2  # purposes of a round's randomness
# Least ``others`` of a draw under limits: beside it, the tiny g that the log gives to barred
# applicants has no chance.
_LEAST_OTHERS = 1e-18


@dataclass(frozen=True)
class Candidates:
    """The applicants of an explore region that may be explored.

    Attributes
    ----------
    may
        Which may be, an entry per row of the explore region.
    at_most
        How many of them can be drawn, whichever they are.
    barred
        How many of the region may not be explored, by group.
    why
        The same with the reasons, if any is barred.
    """

    may: NDArray[np.bool_]
    at_most: int
    barred: tuple[int, ...]
    why: Note | None

    def notes(self, n_wanted: int, n_explore: int) -> tuple[Note, ...]:
        """Return how the limits reduced a round in which the budget allowed ``n_wanted``."""
        notes = () if self.why is None else (self.why,)
        if n_explore == n_wanted:
            return notes
        return *notes, Note("exposure", {"n_explored": n_explore, "n_wanted": n_wanted})


def find_candidates(
    batch: Batch,
    explore: NDArray[np.intp],
    score: NDArray[Any],
    strategy: Strategy,
    n_groups: int,
) -> Candidates:
    """Return which rows of the explore region may be explored under a strategy's limits."""
    if not isinstance(strategy, Limited) or explore.size == 0:
        return Candidates(np.ones(explore.size, np.bool_), explore.size, (0,) * n_groups, None)
    features = take(batch.X, explore) if strategy.reads_features else None
    why = strategy.barred(features, score.take(explore))
    may = why == 0
    left = take(features, np.flatnonzero(may)) if strategy.reads_features else None
    at_most = strategy.at_most(left, int(may.sum()))
    group = batch.group if batch.report_group is None else batch.report_group
    barred = np.bincount(group.take(explore[~may]), minlength=n_groups)
    return Candidates(may, at_most, tuple(barred.tolist()), barred_note(strategy, why))


def barred_note(strategy: Limited, why: NDArray[np.int8]) -> Note | None:
    """Return how many candidates cannot be explored and why; None if all can.

    Examples
    --------
    >>> barred_note(Limited(max_risk=0.8), np.array([0, 3, 3]))
    Note(code='barred', facts={'n_barred': 2, 'n_candidates': 3, 'risk': 2, 'max_risk': 0.8})
    """
    n_barred = int(np.count_nonzero(why))
    if n_barred == 0:
        return None
    codes, counts = np.unique(why[why > 0], return_counts=True)
    facts: dict[str, Any] = {"n_barred": n_barred, "n_candidates": why.size}
    for code, n in zip(codes.tolist(), counts.tolist(), strict=True):
        reason = REASONS[code]
        facts[reason] = n
        if reason != "excluded":
            limit = {"amount": "exposure", "risk": "max_risk"}[reason]
            facts[limit] = float(getattr(strategy, limit))
    return Note("barred", facts)


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

    Return the draw, with exact probabilities for the rows of ``explore`` (0 if they may not be
    explored), and the strategy's factor per group. ``n_instead`` is how many would be drawn if
    another applicant took the place of an average one of the batch; the log needs it for other
    applicants.
    """
    keys = seed, round, n_instead
    if not strategy.is_limited:
        return _draw_from(batch, explore, score, n_explore, strategy, n_groups, *keys)
    candidates = find_candidates(batch, explore, score, strategy, n_groups)
    may, n_draw = candidates.may, min(n_explore, candidates.at_most)
    draw, group_factor = _draw_from(batch, explore[may], score, n_draw, strategy, n_groups, *keys)
    drawn, probability = np.zeros(explore.size, np.bool_), np.zeros(explore.size)
    drawn[may], probability[may] = draw.drawn, draw.probability
    others = np.maximum(draw.others, _LEAST_OTHERS)
    return Draw(drawn, probability, draw.left, others), group_factor


def draw_by_score(
    batch: Batch,
    explore: NDArray[np.intp],
    score: NDArray[Any],
    n_groups: int,
    *,
    seed: int,
    round: int,
) -> Draw:
    """Accept each applicant of the explore region with their score as the probability."""
    probability = score.take(explore).astype(np.float64)
    bits = keyed_bits(batch.bits[explore], round_key(seed, round, _DRAW))
    return Draw(coin_flips(probability, bits), probability, np.zeros(n_groups), np.ones(n_groups))


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
    group = batch.group[rows]
    in_explore, in_batch = _count(group, n_groups), _count(batch.group, n_groups)
    group_factor = strategy.group_factor(in_batch, in_explore)
    if rows.size == 0:
        return Draw.of_nobody(n_instead, n_groups), group_factor
    features = take(batch.X, rows) if strategy.reads_features else None
    size = strategy.person_factor(features, score.take(rows), group)
    if np.any(group_factor != 1):
        size = size * per_person(group_factor, group)
    check_sizes(size, strategy)
    bits = keyed_bits(batch.bits[rows], round_key(seed, round, _DRAW))
    start = round_key(seed, round, _START)
    shares = strategy.group_shares(in_explore)
    draw = fixed_size_draw(
        size, n_explore, bits, start, group, n_groups, shares, n_batch=len(batch)
    )
    if 0 <= n_instead < n_explore:
        draw = replace(draw, left=draw.left * (n_instead / n_explore))
    return draw, group_factor


def _count(group: NDArray[np.intp], n_groups: int) -> NDArray[np.float64]:
    """Count applicants by group."""
    return np.bincount(group, minlength=n_groups).astype(float)
