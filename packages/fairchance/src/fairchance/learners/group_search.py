"""Find the best cuts of several groups, to a proven gap, by branch and bound.

The rates of all groups must lie in some window that begins at ρ, their smallest. A box is a range
of ρ, for each rate that is compared, with the cuts that are still open in each group. A Lagrangian
bound limits the worth of all choices in a box and rules out cuts that cannot be part of a choice
better than the best so far. Boxes with few cuts left are finished by merging the groups one by one;
the others are split, most promising first.

The bound: for any prices μ, ν ≥ 0 no admissible choice is worth more than the sum over groups of
the largest ``worth + μ·slack + ν·surplus``. The best prices solve a linear program with three rows,
whose columns are whole choices and are generated as needed (Dantzig-Wolfe decomposition).

This takes 6 to 70 ms, and a general solver of integer programs (HiGHS) seconds.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairchance.learners.curves import Floats, Points, ThresholdBounds
from fairchance.learners.pair_search import search_pair

__all__ = ["SearchResult", "search_groups"]

Indices = NDArray[np.intp]

# A limit of work rather than of time, so that results do not depend on the machine.
_BOXES = 2000
# Narrower ranges of ρ are not worth splitting: merging checks the rates exactly anyway.
_NARROW = 1e-9
# A range of ρ below this part of the allowed difference hardly loosens the bound any more.
_FINE = 32
# Cost in the linear program of an artificial choice that meets all constraints; worths are ≤ 1.
_ARTIFICIAL = 1e6
# Columns generated at most.
_STEPS = 60
_ROUNDING = 1e-13
# Smaller shares of the mix are rounding.
_SHARE = 1e-9
# Most promising cuts of a group that are tried in polishing.
_ANSWERS = 512


class Effort(NamedTuple):
    """Partial choices kept after each merge, and pairs tried in a merge."""

    states: int
    pairs: int


QUICK = Effort(256, 16_384)
THOROUGH = Effort(8192, 400_000)


class SearchResult(NamedTuple):
    """The cuts found, if any, and the largest worth that any admissible choice can have.

    Without cuts, a ``bound`` of −inf means that no admissible choice exists.
    """

    cuts: tuple[int, ...] | None
    worth: float
    bound: float


@dataclass(frozen=True)
class _Box:
    low: Floats
    high: Floats
    cuts: list[Indices]


def search_groups(
    points: Sequence[Points], bounds: ThresholdBounds, max_gap: float
) -> SearchResult:
    """Return cuts that keep the bounds, worth within ``max_gap`` (relative) of the best.

    Examples
    --------
    >>> cut = np.arange(3) / 6
    >>> curve = Points(worth=cut, slack=0.25 - cut, accepted=cut, rate=3 * cut[:, None])
    >>> bounds = ThresholdBounds(max_fdr=0.0, least=0.0, difference=0.5)
    >>> search_groups([curve] * 3, bounds, 0.0).worth
    0.6666666666666666
    """
    return _Search(points, bounds, max_gap).run()


class _Search:
    def __init__(self, points: Sequence[Points], bounds: ThresholdBounds, max_gap: float) -> None:
        self.points, self.bounds, self.max_gap = points, bounds, max_gap
        # Below any possible worth: a box with a lower bound holds no admissible choice.
        self.worth = sum(float(p.worth.min()) for p in points) - 1.0
        self.cuts: tuple[int, ...] | None = None
        self.n_rates = points[0].rate.shape[1]

    def run(self) -> SearchResult:
        """Split the most promising box until no open box can hold a much better choice."""
        ticket = count()
        everything = [np.arange(p.worth.size) for p in self.points]
        whole = _Box(np.zeros(self.n_rates), np.ones(self.n_rates), everything)
        heap = [(-np.inf, next(ticket), whole)]
        for _ in range(_BOXES):
            if not heap or -heap[0][0] <= self._enough():
                break
            _, _, box = heapq.heappop(heap)
            bound, children = self._explore(box)
            for child in children:
                heapq.heappush(heap, (-bound, next(ticket), child))
        bound = max((-item[0] for item in heap), default=-np.inf)
        if self.cuts is None:
            return SearchResult(None, -np.inf, bound)
        return SearchResult(self.cuts, self.worth, max(bound, self.worth))

    def _enough(self) -> float:
        """Return the bound at which the search may stop."""
        if self.cuts is None:
            return self.worth
        # An infinite gap asks for any admissible choice.
        return np.inf if np.isinf(self.max_gap) else self.worth + self.max_gap * abs(self.worth)

    def _explore(self, box: _Box) -> tuple[float, list[_Box]]:
        """Bound of a box and the boxes that it leaves open."""
        trimmed = self._trim(box)
        if trimmed is None:
            return -np.inf, []
        table = OpenCuts(self.points, trimmed.cuts, self.bounds.least)
        relaxed = relax(table, self.worth)
        wide = bool(self._widths(trimmed).any())
        if self._finish(table, relaxed, QUICK):
            return -np.inf, []
        if not wide and relaxed.bound > self._enough() and self._finish(table, relaxed, THOROUGH):
            return -np.inf, []
        places = survivors(table, relaxed, self.worth)
        trimmed = _Box(trimmed.low, trimmed.high, [table.cuts[p] for p in places])
        if relaxed.bound <= self._enough():
            return relaxed.bound, [trimmed]
        return relaxed.bound, self._split(trimmed, self._chords(table, relaxed))

    def _finish(self, table: OpenCuts, relaxed: Relaxed, effort: Effort) -> bool:
        """Merge the cuts that may beat the incumbent; True if no better choice was left out."""
        if relaxed.bound <= self.worth:
            return True
        places = survivors(table, relaxed, self.worth)
        state, complete = merge(table, relaxed, places, self.worth, self.bounds, effort)
        if state is not None:
            state = polish(table, relaxed, places, state, self.bounds)
            self.worth = float(table.worth[state].sum())
            self.cuts = tuple(table.cuts[state].tolist())
        return complete

    def _trim(self, box: _Box) -> _Box | None:
        """Leave only cuts whose rates fit the ranges of ρ, and only the ρ that fit the cuts."""
        low, high, cuts = box.low.copy(), box.high.copy(), list(box.cuts)
        top = self.bounds.highest(high)
        for g, p in enumerate(self.points):
            rate = p.rate[cuts[g]]
            # A cut without a rate fits any range.
            cuts[g] = cuts[g][~((rate < low) | (rate > top)).any(axis=1)]
        if not all(c.size for c in cuts):
            return None
        for k in range(self.n_rates):
            rates = [p.rate[c, k] for p, c in zip(self.points, cuts, strict=True)]
            rated = [r for r in rates if not np.isnan(r).any()]
            if rated:  # else a choice may have no rate at all and belongs to every box
                smallest = [np.fmin.reduce(r) for r in rates]
                least = self.bounds.lowest(max(r.min() for r in rated))
                low[k] = max(low[k], np.fmin.reduce(smallest), least)
                high[k] = min(high[k], *(r.max() for r in rated))
        return _Box(low, high, cuts) if np.all(low <= high) else None

    def _widths(self, box: _Box) -> Floats:
        """Return the width of each range of ρ, 0 if a narrower one would leave as many cuts."""
        width = box.high - box.low
        for k in np.flatnonzero(width > 0):
            rates = np.concatenate(
                [p.rate[c, k] for p, c in zip(self.points, box.cuts, strict=True)]
            )
            apart = self.bounds.lowest(np.fmax.reduce(rates)) > np.fmin.reduce(rates)
            width[k] *= apart and width[k] > _NARROW
        return width

    def _chords(self, table: OpenCuts, relaxed: Relaxed) -> tuple[Floats, Floats]:
        """Return each group's mean cut in the relaxed mix, and its span as a share of all cuts."""
        if not relaxed.share.size:
            return np.zeros(len(self.points)), np.zeros(len(self.points))
        cuts = table.cuts[relaxed.picks]
        whole = np.array([p.worth.size for p in self.points])
        return relaxed.share @ cuts, np.ptp(cuts, axis=0) / whole

    def _split(self, box: _Box, chords: tuple[Floats, Floats]) -> list[_Box]:
        """Halve the range of ρ while it is coarse, then part the cuts that the relaxation mixes."""
        mean, span = chords
        g = int(np.argmax(span))
        width = self._widths(box)
        if width.any():
            k = int(np.argmax(width))
            window = self.bounds.highest(box.low[k]) - box.low[k]
            if width[k] >= min(float(span[g]), window / _FINE):
                middle = np.where(np.arange(width.size) == k, box.low + width / 2, box.low)
                upper = np.where(np.arange(width.size) == k, middle, box.high)
                return [_Box(box.low, upper, box.cuts), _Box(middle, box.high, box.cuts)]
        at = int(np.searchsorted(box.cuts[g], mean[g], side="right"))
        if not 0 < at < box.cuts[g].size:
            g = int(np.argmax([c.size for c in box.cuts]))
            at = box.cuts[g].size // 2
        halves = box.cuts[g][:at], box.cuts[g][at:]
        return [_Box(box.low, box.high, [*box.cuts[:g], h, *box.cuts[g + 1 :]]) for h in halves]


class OpenCuts:
    """The cuts still open in each group, one after another in flat arrays."""

    def __init__(self, points: Sequence[Points], cuts: Sequence[Indices], least: float) -> None:
        parts = [p.take(c) for p, c in zip(points, cuts, strict=True)]
        self.cuts = np.concatenate(cuts)
        self.worth = np.concatenate([p.worth for p in parts])
        self.slack = np.concatenate([p.slack for p in parts])
        # The least selection rate is shared out, so that surpluses add up to N − least.
        self.surplus = np.concatenate([p.accepted for p in parts]) - least / len(parts)
        self.rate = np.concatenate([p.rate for p in parts])
        self.size = np.array([c.size for c in cuts])
        self.start = np.cumsum(self.size) - self.size

    def value(self, price: tuple[float, float]) -> Floats:
        """``worth + μ·slack + ν·surplus`` of every open cut."""
        out: Floats = self.worth + price[0] * self.slack
        if price[1]:
            out += price[1] * self.surplus
        return out

    def best(self, value: Floats) -> Indices:
        """Place of each group's largest value."""
        pairs = zip(self.start.tolist(), self.size.tolist(), strict=True)
        return np.array([s + int(np.argmax(value[s : s + n])) for s, n in pairs])

    def column(self, picks: Indices) -> tuple[float, Floats]:
        """Worth of a choice, and its column (slack, surplus, 1) in the program."""
        slack, surplus = self.slack[picks].sum(), self.surplus[picks].sum()
        return float(self.worth[picks].sum()), np.array([slack, surplus, 1.0])


class Relaxed(NamedTuple):
    """An upper bound, the value of every open cut at its prices, and the mix that attains it.

    The mix is a few choices (rows of ``picks``, places in the table) with shares that sum to 1;
    it is empty if no mix meets the constraints.
    """

    bound: float
    value: Floats
    share: Floats
    picks: Indices


class _Basis:
    """Three columns of the linear program: the choices in the mix, their shares and prices."""

    def __init__(self) -> None:
        self.matrix = np.array([[1.0, -1.0, 0.0], [1.0, 0.0, -1.0], [1.0, 0.0, 0.0]])
        self.cost = np.array([-_ARTIFICIAL, 0.0, 0.0])
        self.picks: list[Indices | None] = [None, None, None]
        self._refresh()

    def _refresh(self) -> bool:
        try:
            inverse = np.linalg.inv(self.matrix)
        except np.linalg.LinAlgError:
            return False
        self.inverse = inverse
        self.share = inverse[:, 2]
        self.dual = self.cost @ inverse
        return True

    def enter(self, cost: float, column: Floats, picks: Indices | None) -> bool:
        """Bring a column in by the ratio test; False when that leads nowhere."""
        direction = self.inverse @ column
        rising = direction > _ROUNDING
        if not rising.any():
            return False
        ratio = np.full(3, np.inf)
        np.divide(self.share, direction, out=ratio, where=rising)
        out = int(np.argmin(ratio))
        self.matrix[:, out], self.cost[out], self.picks[out] = column, cost, picks
        return self._refresh()

    def mix(self) -> tuple[Floats, Indices]:
        """Shares and choices in the mix; nothing while the artificial choice is needed."""
        real = [k for k, p in enumerate(self.picks) if p is not None and self.share[k] > _SHARE]
        total = float(self.share[real].sum())
        if total < 1 - _SHARE:
            return np.zeros(0), np.zeros((0, 0), dtype=np.intp)
        return self.share[real] / total, np.array([self.picks[k] for k in real])


def relax(table: OpenCuts, enough: float) -> Relaxed:
    """Least Lagrangian bound over the prices; stops early once it is no more than ``enough``."""
    basis = _Basis()
    bound, prices = np.inf, (0.0, 0.0)
    for _ in range(_STEPS):
        price = (-basis.dual[0], -basis.dual[1])
        if min(price) < -_ROUNDING:
            # The slack of a constraint is a column too.
            row = int(np.argmin(price))
            if not basis.enter(0.0, -np.eye(3)[row], None):
                break
            continue
        price = (max(price[0], 0.0), max(price[1], 0.0))
        value = table.value(price)
        picks = table.best(value)
        total = float(value[picks].sum())
        if total < bound:
            bound, prices = total, price
        if bound <= enough or total <= basis.dual[2] + _ROUNDING:
            break
        if not basis.enter(*table.column(picks), picks):
            break
    # Rounding of the sums grows with the prices; a bound must not be too low.
    bound += 1e-15 * (1 + sum(prices)) * table.size.size
    return Relaxed(bound, table.value(prices), *basis.mix())


def survivors(table: OpenCuts, relaxed: Relaxed, floor: float) -> list[Indices]:
    """Places in the table of the cuts that may be in a choice worth more than ``floor``."""
    top = relaxed.value[table.best(relaxed.value)]
    kept = np.repeat(top, table.size) - relaxed.value <= relaxed.bound - floor
    places = np.flatnonzero(kept)
    return np.split(places, np.searchsorted(places, table.start[1:]))


class _State(NamedTuple):
    """Partial choices: Lagrangian value, slack, surplus, ranges of rates, places in the table."""

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
    table: OpenCuts,
    relaxed: Relaxed,
    open_places: Sequence[Indices],
    floor: float,
    bounds: ThresholdBounds,
    effort: Effort,
) -> tuple[Indices | None, bool]:
    """Best admissible choice worth more than ``floor`` among the open cuts, and whether it is sure.

    It is sure if nothing had to be left out to keep within the effort. A partial choice goes on
    only if the rest, at its best, can lift its value above the floor and close its shortfalls.
    """
    rest = _best_rest(table, relaxed, open_places)
    zero, nan = np.zeros(1), np.full((1, table.rate.shape[1]), np.nan)
    state = _State(zero, zero, zero, nan, nan, np.empty((1, 0), dtype=np.intp))
    complete = True
    for g, places in enumerate(open_places):
        limit = max(effort.pairs // state.value.size, 1)
        chosen = places
        if places.size > limit:
            chosen, complete = _largest(relaxed.value[places], limit, places), False
        state = _grow(table, relaxed, state, chosen, (floor, bounds, rest[g + 1]))
        if state.value.size == 0:
            return None, complete
        if state.value.size > effort.states:
            rows = np.arange(state.value.size)
            state, complete = state.take(_largest(state.value, effort.states, rows)), False
    worth = table.worth[state.places].sum(axis=1)
    best = int(np.argmax(worth))
    return (state.places[best] if worth[best] > floor else None), complete


def _best_rest(table: OpenCuts, relaxed: Relaxed, open_places: Sequence[Indices]) -> Floats:
    """Most value, slack and surplus that the groups from each one on can bring, then zeros."""
    columns = (relaxed.value, table.slack, table.surplus)
    top = [[c[p].max(initial=-np.inf) for c in columns] for p in open_places]
    return np.vstack([np.cumsum(np.array(top)[::-1], axis=0)[::-1], np.zeros(3)])


def _largest(value: Floats, size: int, items: Indices) -> Indices:
    """Pick the items with the largest values, in their own order."""
    return items[np.sort(np.argpartition(-value, size - 1)[:size])]


def _grow(
    table: OpenCuts,
    relaxed: Relaxed,
    state: _State,
    places: Indices,
    limits: tuple[float, ThresholdBounds, Floats],
) -> _State:
    """Every partial choice with every open cut of the next group, if it can still win."""
    floor, bounds, (value_rest, slack_rest, surplus_rest) = limits
    value = state.value[:, None] + relaxed.value[places]
    rows, columns = np.nonzero(value + value_rest > floor)
    added = places[columns]
    slack = state.slack[rows] + table.slack[added]
    surplus = state.surplus[rows] + table.surplus[added]
    low = np.fmin(state.low[rows], table.rate[added])
    high = np.fmax(state.high[rows], table.rate[added])
    # Cuts without a rate leave NaN, which restricts nothing.
    apart = (bounds.lowest(high) > low).any(axis=1)
    kept = (slack + slack_rest >= 0) & (surplus + surplus_rest >= 0) & ~apart
    at = np.flatnonzero(kept)
    rows, added = rows[at], added[at]
    grown = np.concatenate((state.places[rows], added[:, None]), axis=1)
    return _State(value[rows, columns[at]], slack[at], surplus[at], low[at], high[at], grown)


def polish(
    table: OpenCuts,
    relaxed: Relaxed,
    open_places: Sequence[Indices],
    picks: Indices,
    bounds: ThresholdBounds,
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
        needed = ThresholdBounds(0.0, -float(table.surplus[others].sum()), np.inf)
        best = search_pair(pair[0], pair[1], needed)
        if best is None:
            continue
        answer = picks.copy()
        answer[[g, h]] = answers[g][best[0]], answers[h][best[1]]
        close = bounds.excess(table.rate[answer]) <= 0
        if close and table.worth[answer].sum() > table.worth[picks].sum():
            picks = answer
    return picks


def _answers(table: OpenCuts, places: Indices) -> Points:
    """Open cuts of one group, without rates."""
    nowhere = np.empty((places.size, 0))
    return Points(table.worth[places], table.slack[places], table.surplus[places], nowhere)
