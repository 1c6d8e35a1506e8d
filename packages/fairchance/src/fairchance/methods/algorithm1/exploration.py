"""Step 3 of Algorithm 1: draw the applicants to explore.

A draw of fixed size needs the whole batch. Coins do not: an applicant is explored with probability
min(1, c_z · g(x, z)), and c is chosen before the round so that applicants like those of the last
rounds would give the number that the budget allows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.core.decisions import Note
from fairchance.core.limits import REASONS, Limited
from fairchance.core.sampling import Draw, chance, coin_factors, coin_flips, fixed_size_draw
from fairchance.core.saved import saved
from fairchance.core.strategies import Strategy, check_sizes
from fairchance.frames import concat, take
from fairchance.methods.algorithm1.policy_log import LoggedPolicy, per_person
from fairchance.people.ids import keyed_bits, round_key
from fairchance.people.intake import Batch
from fairchance.people.store import ApplicantRows

__all__ = ["DRAW", "RECENT", "Candidates", "RecentApplicants", "barred_note", "chosen"]
__all__ += [
    "coin_chances",
    "count_reasons",
    "draw_by_coins",
    "draw_by_score",
    "draw_explored",
    "draw_fixed",
    "find_candidates",
]
__all__ += ["fixed_draw_keys", "together"]

RECENT = 1000  # applicants by whom the coins of a round are chosen
DRAW, _START = 1, 2  # purposes of a round's randomness
# ``others`` of a round that explores by coins: beside it every g is small, so that the chance
# left · g / (others + g) is c · g with c = left / others, to the last bit.
_COINS = 2.0**60
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
        How many of the region limits bar, by reason (``count_reasons``).
    """

    may: NDArray[np.bool_]
    at_most: int
    barred: NDArray[np.int64]
    why: NDArray[np.int64]


@saved
class RecentApplicants:
    """Some applicants of the last rounds, accepted or not; at first of the history."""

    def __init__(self) -> None:
        columns = {"round": 0, "group": np.intp(0), "bits": np.uint64(0), "barred": np.bool_(False)}
        self._rows = ApplicantRows(columns)

    def add(self, batch: Batch) -> None:
        """Keep applicants of a batch, as ``chosen`` returns them, and drop the oldest."""
        columns = {name: getattr(batch, name) for name in ("group", "bits", "barred")}
        self._rows.append(len(batch), batch.X, columns)
        surplus = max(0, len(self._rows) - RECENT)
        if surplus:
            self._rows.remove(np.arange(surplus))

    def forget(self, bits: NDArray[np.uint64]) -> None:
        """Delete applicants."""
        self._rows.remove(np.flatnonzero(np.isin(self._rows["bits"], bits)))

    def batch(self) -> Batch:
        """Return the applicants, named by the bits of their ids."""
        rows = self._rows
        bits, group, barred = (rows[name] for name in ("bits", "group", "barred"))
        return Batch(rows.X, group, bits, bits, "numpy", barred=barred)


def chosen(batch: Batch, key: np.uint64) -> Batch:
    """Return applicants of a batch by the bits of their ids, a random choice if it is large."""
    order = np.argsort(batch.bits, kind="stable")  # the order of rows must not matter
    if order.size > RECENT:
        keyed = keyed_bits(batch.bits[order], key)
        order = order[np.sort(np.argsort(keyed, kind="stable")[:RECENT])]
    return batch[order]


def together(one: Batch, two: Batch) -> Batch:
    """Return the applicants of two batches, named by the bits of their ids."""
    barred = None
    if one.barred is not None or two.barred is not None:
        barred = np.concatenate(
            [np.zeros(len(x), np.bool_) if x.barred is None else x.barred for x in (one, two)]
        )
    bits, group = np.append(one.bits, two.bits), np.append(one.group, two.group)
    return Batch(concat([one.X, two.X]), group, bits, bits, "numpy", barred=barred)


def find_candidates(
    batch: Batch,
    explore: NDArray[np.intp],
    score: NDArray[Any],
    strategy: Strategy,
    n_groups: int,
) -> Candidates:
    """Return which rows of the explore region may be explored under a strategy's limits."""
    if not isinstance(strategy, Limited) or explore.size == 0:
        nobody = np.zeros(n_groups, np.int64)
        may = np.ones(explore.size, np.bool_)
        return Candidates(may, explore.size, nobody, count_reasons(~may))
    features = take(batch.X, explore) if strategy.reads_features else None
    why = strategy.barred(features, score.take(explore))
    may = why == 0
    left = take(features, np.flatnonzero(may)) if strategy.reads_features else None
    at_most = strategy.at_most(left, int(may.sum()))
    group = batch.group if batch.report_group is None else batch.report_group
    barred = np.bincount(group.take(explore[~may]), minlength=n_groups)
    return Candidates(may, at_most, barred, count_reasons(why))


def count_reasons(why: NDArray[Any]) -> NDArray[np.int64]:
    """Return how many candidates limits bar from exploration, by reason; the first may be."""
    return np.bincount(why, minlength=max(REASONS) + 1)


def barred_note(strategy: Any, counts: NDArray[np.int64]) -> Note | None:
    """Return how many candidates cannot be explored and why; None if all can.

    Examples
    --------
    >>> barred_note(Limited(max_risk=0.8), count_reasons(np.array([0, 3, 3])))
    Note(code='barred', facts={'n_barred': 2, 'n_candidates': 3, 'risk': 2, 'max_risk': 0.8})
    """
    n_barred = int(counts[1:].sum())
    if n_barred == 0:
        return None
    facts: dict[str, Any] = {"n_barred": n_barred, "n_candidates": int(counts.sum())}
    for code, n in enumerate(counts.tolist()):
        if not code or not n:
            continue
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
    keys = fixed_draw_keys(seed, round)
    return draw_fixed(batch, explore, score, n_explore, strategy, n_groups, keys, n_instead)


def fixed_draw_keys(seed: int, round: int) -> tuple[np.uint64, np.uint64]:
    """Return the keys of a draw of fixed size: of the applicants, and of where it starts."""
    return round_key(seed, round, DRAW), round_key(seed, round, _START)


def draw_fixed(
    batch: Batch,
    explore: NDArray[np.intp],
    score: NDArray[Any],
    n_explore: int,
    strategy: Strategy,
    n_groups: int,
    keys: tuple[np.uint64, np.uint64],
    n_instead: int,
) -> tuple[Draw, NDArray[np.float64]]:
    """Draw as ``draw_explored`` does, by the keys of the draw."""
    if not strategy.is_limited:
        return _draw_from(batch, explore, score, n_explore, strategy, n_groups, keys, n_instead)
    candidates = find_candidates(batch, explore, score, strategy, n_groups)
    may, n_draw = candidates.may, min(n_explore, candidates.at_most)
    draw, group_factor = _draw_from(
        batch, explore[may], score, n_draw, strategy, n_groups, keys, n_instead
    )
    drawn, probability = np.zeros(explore.size, np.bool_), np.zeros(explore.size)
    drawn[may], probability[may] = draw.drawn, draw.probability
    others = np.maximum(draw.others, _LEAST_OTHERS)
    return Draw(drawn, probability, draw.left, others), group_factor


def draw_by_score(
    explore: NDArray[np.intp], score: NDArray[Any], n_groups: int, bits: NDArray[np.uint64]
) -> Draw:
    """Accept each applicant of the explore region with their score as the probability."""
    probability = score.take(explore).astype(np.float64)
    flips = coin_flips(probability, bits[explore])
    return Draw(flips, probability, np.zeros(n_groups), np.ones(n_groups))


def coin_chances(
    batch: Batch,
    explore: NDArray[np.intp],
    may: NDArray[np.bool_],
    score: NDArray[Any],
    n_draw: float,
    strategy: Strategy,
    n_groups: int,
) -> dict[str, Any]:
    """Return fields of a logged policy whose coins draw so many of these applicants on average.

    If there is no candidate among them, one is assumed, with the mean g of all of them.
    """
    rows = explore[may]
    in_explore, in_batch = (_count(batch.group[some], n_groups) for some in (rows, slice(None)))
    factor = strategy.group_factor(in_batch, in_explore)
    every = rows if rows.size else np.arange(len(batch))
    size = _sizes(batch, every, score, strategy, factor).astype(np.float64)
    if rows.size == 0:
        size = size[size > 0].mean(keepdims=True) if (size > 0).any() else np.ones(1)
        c = coin_factors(size, n_draw, np.zeros(1, np.intp), 1).repeat(n_groups)
    else:
        check_sizes(size, strategy)
        shares = strategy.group_shares(in_explore)
        c = coin_factors(size, n_draw, batch.group[rows], n_groups, shares)
    return {"group_factor": factor, "left": c * _COINS, "others": np.full(n_groups, _COINS)}


def draw_by_coins(
    batch: Batch,
    explore: NDArray[np.intp],
    may: NDArray[np.bool_],
    score: NDArray[Any],
    logged: LoggedPolicy,
    bits: NDArray[np.uint64],
) -> Draw:
    """Explore each applicant who may be with the probability that a logged policy defines."""
    rows, group = explore[may], batch.group[explore[may]]
    size = _sizes(batch, rows, score, logged.strategy, logged.group_factor).astype(np.float64)
    check_sizes(size, logged.strategy)
    probability = np.zeros(explore.size)
    probability[may] = chance(size, logged.left[group], logged.others[group])
    flips = coin_flips(probability, bits[explore])
    return Draw(flips, probability, logged.left, logged.others)


def _sizes(
    batch: Batch,
    rows: NDArray[np.intp],
    score: NDArray[Any],
    strategy: Strategy,
    group_factor: NDArray[np.float64],
) -> NDArray[Any]:
    """Return g of some applicants."""
    features, group = take(batch.X, rows) if strategy.reads_features else None, batch.group[rows]
    size = strategy.person_factor(features, score.take(rows), group)
    return size * per_person(group_factor, group) if np.any(group_factor != 1) else size


def _draw_from(
    batch: Batch,
    rows: NDArray[np.intp],
    score: NDArray[Any],
    n_explore: int,
    strategy: Strategy,
    n_groups: int,
    keys: tuple[np.uint64, np.uint64],
    n_instead: int,
) -> tuple[Draw, NDArray[np.float64]]:
    group = batch.group[rows]
    in_explore, in_batch = _count(group, n_groups), _count(batch.group, n_groups)
    group_factor = strategy.group_factor(in_batch, in_explore)
    if rows.size == 0:
        return Draw.of_nobody(n_instead, n_groups), group_factor
    size = _sizes(batch, rows, score, strategy, group_factor)
    check_sizes(size, strategy)
    key, start = keys
    bits = keyed_bits(batch.bits[rows], key)
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
