"""Finish a box of open cuts: merge its groups one by one, and polish what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from secondlook.learners.curves import Bounds, Floats, Points
from secondlook.learners.pair_search import search_pair
from secondlook.learners.relaxation import Relaxed, Table

Indices = NDArray[np.intp]


class Effort(NamedTuple):
    """Partial choices kept after each merge, and pairs looked at in one merge."""

    states: int
    pairs: int


QUICK = Effort(256, 16_384)
THOROUGH = Effort(8192, 400_000)
# Most promising cuts of a group that are tried in polishing.
_ANSWERS = 512


class _State(NamedTuple):
    """Partial choices: Lagrangian value, slack, surplus, range of rates, places in the table."""

    value: Floats
    slack: Floats
    surplus: Floats
    low: Floats
    high: Floats
    places: Indices

    def take(self, rows: Indices) -> _State:
        """Only these choices."""
        value, slack, surplus, low, high = (column[rows] for column in self[:5])
        return _State(value, slack, surplus, low, high, self.places[rows])


def merge(
    table: Table,
    relaxed: Relaxed,
    open_places: Sequence[Indices],
    floor: float,
    difference: float,
    effort: Effort,
) -> tuple[Indices | None, bool]:
    """Best admissible choice worth more than ``floor`` among the open cuts, and whether it is sure.

    It is sure if nothing had to be left out to keep within the effort. A partial choice goes on
    only if the rest, at its best, can lift its value above the floor and close its shortfalls.
    """
    rest = _best_rest(table, relaxed, open_places)
    one, nan = np.zeros(1), np.full(1, np.nan)
    state = _State(one, one, one, nan, nan, np.empty((1, 0), dtype=np.intp))
    complete = True
    for g, places in enumerate(open_places):
        limit = max(effort.pairs // state.value.size, 1)
        chosen = places
        if places.size > limit:
            chosen, complete = _largest(relaxed.value[places], limit, places), False
        state = _grow(table, relaxed, state, chosen, (floor, difference, rest[g + 1]))
        if state.value.size == 0:
            return None, complete
        if state.value.size > effort.states:
            rows = np.arange(state.value.size)
            state, complete = state.take(_largest(state.value, effort.states, rows)), False
    worth = table.worth[state.places].sum(axis=1)
    best = int(np.argmax(worth))
    return (state.places[best] if worth[best] > floor else None), complete


def _best_rest(table: Table, relaxed: Relaxed, open_places: Sequence[Indices]) -> Floats:
    """Most value, slack and surplus that the groups from each one on can bring, then zeros."""
    columns = (relaxed.value, table.slack, table.surplus)
    top = [[c[p].max(initial=-np.inf) for c in columns] for p in open_places]
    return np.vstack([np.cumsum(np.array(top)[::-1], axis=0)[::-1], np.zeros(3)])


def _largest(value: Floats, size: int, items: Indices) -> Indices:
    """Pick the items with the largest values, in their own order."""
    return items[np.sort(np.argpartition(-value, size - 1)[:size])]


def _grow(
    table: Table,
    relaxed: Relaxed,
    state: _State,
    places: Indices,
    limits: tuple[float, float, Floats],
) -> _State:
    """Every partial choice with every open cut of the next group, if it can still win."""
    floor, difference, (value_rest, slack_rest, surplus_rest) = limits
    value = state.value[:, None] + relaxed.value[places]
    rows, columns = np.nonzero(value + value_rest > floor)
    added = places[columns]
    slack = state.slack[rows] + table.slack[added]
    surplus = state.surplus[rows] + table.surplus[added]
    low = np.fmin(state.low[rows], table.rate[added])
    high = np.fmax(state.high[rows], table.rate[added])
    # Written as a negation: groups without a rate leave NaN, which restricts nothing.
    kept = (slack + slack_rest >= 0) & (surplus + surplus_rest >= 0) & ~(high - low > difference)
    at = np.flatnonzero(kept)
    rows, added = rows[at], added[at]
    grown = np.concatenate((state.places[rows], added[:, None]), axis=1)
    return _State(value[rows, columns[at]], slack[at], surplus[at], low[at], high[at], grown)


def polish(
    table: Table,
    relaxed: Relaxed,
    open_places: Sequence[Indices],
    picks: Indices,
    difference: float,
) -> Indices:
    """Let each pair of groups answer the others' cuts as well as it can, once around.

    Meant for boxes in which any two open cuts have rates close enough; elsewhere an answer that
    breaks the fairness bound is not taken.
    """
    answers = [
        _largest(relaxed.value[p], _ANSWERS, p) if p.size > _ANSWERS else p for p in open_places
    ]
    for g, h in combinations(range(picks.size), 2):
        others = np.delete(picks, [g, h])
        pair = [_answers(table, answers[g]), _answers(table, answers[h])]
        pair[0] = pair[0]._replace(slack=pair[0].slack + table.slack[others].sum())
        needed = Bounds(0.0, -float(table.surplus[others].sum()), np.inf)
        found = search_pair(pair[0], pair[1], needed)
        if found is None:
            continue
        answer = picks.copy()
        answer[[g, h]] = answers[g][found[0]], answers[h][found[1]]
        rates = table.rate[answer]
        close = not np.fmax.reduce(rates) - np.fmin.reduce(rates) > difference
        if close and table.worth[answer].sum() > table.worth[picks].sum():
            picks = answer
    return picks


def _answers(table: Table, places: Indices) -> Points:
    """Open cuts of one group, without rates."""
    nowhere = np.full(places.size, np.nan)
    return Points(table.worth[places], table.slack[places], table.surplus[places], nowhere)
