"""The best cuts of several groups, to a proven gap: branch and bound.

All groups' rates must lie in some window [ρ, ρ + difference]. A box is a range of ρ with the cuts
still open in each group; its Lagrangian bound (``relaxation``) says what it can hold at best and
which cuts cannot be part of anything better than the incumbent. Boxes with few cuts left are
finished by merging the groups one by one; the others are split, most promising first.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from secondlook.learners.curves import Bounds, Floats, Points
from secondlook.learners.merging import QUICK, THOROUGH, Effort, merge, polish
from secondlook.learners.relaxation import Relaxed, Table, relax, survivors

Indices = NDArray[np.intp]

# A limit of work rather than of time, so that results do not depend on the machine.
_BOXES = 2000
# Narrower ranges of ρ are not worth splitting: merging checks the rates exactly anyway.
_NARROW = 1e-9
# A range of ρ below this part of the allowed difference hardly loosens the bound any more.
_FINE = 32


class Found(NamedTuple):
    """The cuts found, if any, and the largest worth that any admissible choice can have.

    Without cuts, a ``bound`` of −inf means that no admissible choice exists.
    """

    cuts: tuple[int, ...] | None
    worth: float
    bound: float


@dataclass(frozen=True)
class _Box:
    low: float
    high: float
    cuts: list[Indices]


def search_groups(points: Sequence[Points], bounds: Bounds, max_gap: float) -> Found:
    """Cuts whose worth is within ``max_gap`` (relative) of the best that keep the bounds.

    Examples
    --------
    >>> cut = np.arange(3) / 6
    >>> curve = Points(worth=cut, slack=0.25 - cut, accepted=cut, rate=3 * cut)
    >>> search_groups([curve] * 3, Bounds(max_fdr=0.0, least=0.0, difference=0.5), 0.0).worth
    0.6666666666666666
    """
    return _Search(points, bounds, max_gap).run()


class _Search:
    def __init__(self, points: Sequence[Points], bounds: Bounds, max_gap: float) -> None:
        self.points, self.bounds, self.max_gap = points, bounds, max_gap
        # Below anything there is: a box whose bound is lower holds no admissible choice.
        self.worth = sum(float(p.worth.min()) for p in points) - 1.0
        self.cuts: tuple[int, ...] | None = None
        self.rated = [g for g, p in enumerate(points) if not np.isnan(p.rate[0])]

    def run(self) -> Found:
        """Split the most promising box until what is open cannot be much better."""
        ticket = count()
        everything = [np.arange(p.worth.size) for p in self.points]
        heap = [(-np.inf, next(ticket), _Box(0.0, 1.0, everything))]
        for _ in range(_BOXES):
            if not heap or -heap[0][0] <= self._enough():
                break
            _, _, box = heapq.heappop(heap)
            bound, children = self._explore(box)
            for child in children:
                heapq.heappush(heap, (-bound, next(ticket), child))
        bound = max((-item[0] for item in heap), default=-np.inf)
        if self.cuts is None:
            return Found(None, -np.inf, bound)
        return Found(self.cuts, self.worth, max(bound, self.worth))

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
        table = Table(self.points, trimmed.cuts, self.bounds.least)
        relaxed = relax(table, self.worth)
        wide = self._is_wide(trimmed)
        if wide:
            self._dive(trimmed, table, relaxed)
        if self._finish(table, relaxed, QUICK):
            return -np.inf, []
        if not wide and relaxed.bound > self._enough() and self._finish(table, relaxed, THOROUGH):
            return -np.inf, []
        places = survivors(table, relaxed, self.worth)
        trimmed = _Box(trimmed.low, trimmed.high, [table.cuts[p] for p in places])
        if relaxed.bound <= self._enough():
            return relaxed.bound, [trimmed]
        return relaxed.bound, self._split(trimmed, self._chords(table, relaxed))

    def _finish(self, table: Table, relaxed: Relaxed, effort: Effort) -> bool:
        """Merge what may beat the incumbent; True if nothing better was left out."""
        if relaxed.bound <= self.worth:
            return True
        places = survivors(table, relaxed, self.worth)
        state, complete = merge(table, relaxed, places, self.worth, self.bounds.difference, effort)
        if state is not None:
            state = polish(table, relaxed, places, state, self.bounds.difference)
            self.worth = float(table.worth[state].sum())
            self.cuts = tuple(table.cuts[state].tolist())
        return complete

    def _trim(self, box: _Box) -> _Box | None:
        """Leave only cuts whose rate fits the range of ρ, and only the ρ that fit the cuts."""
        low, high, cuts = box.low, box.high, list(box.cuts)
        if not self.rated:
            return box if all(c.size for c in cuts) else None
        for g in self.rated:
            rate = self.points[g].rate[cuts[g]]
            first = np.searchsorted(rate, low)
            last = np.searchsorted(rate, high + self.bounds.difference, side="right")
            cuts[g] = cuts[g][first:last]
        if not all(c.size for c in cuts):
            return None
        ends = [self.points[g].rate[cuts[g][[0, -1]]] for g in self.rated]
        low = max(low, min(e[0] for e in ends), max(e[0] for e in ends) - self.bounds.difference)
        high = min(high, *(e[1] for e in ends))
        return _Box(float(low), float(high), cuts) if low <= high else None

    def _dive(self, box: _Box, table: Table, relaxed: Relaxed) -> None:
        """Look for a better incumbent at the one ρ that suits the relaxed rates best."""
        rates = np.array([box.low, box.high + self.bounds.difference])
        if relaxed.share.size:
            rates = (relaxed.share @ table.rate[relaxed.picks])[self.rated]
        middle = (rates.min() + rates.max() - self.bounds.difference) / 2
        rho = float(np.clip(middle, box.low, box.high))
        line = self._trim(_Box(rho, rho, box.cuts))
        if line is not None:
            inner = Table(self.points, line.cuts, self.bounds.least)
            self._finish(inner, relax(inner, self.worth), QUICK)

    def _is_wide(self, box: _Box) -> bool:
        """Whether a narrower range of ρ would leave fewer cuts."""
        if not self.rated or box.high - box.low <= _NARROW:
            return False
        ends = np.array([self.points[g].rate[box.cuts[g][[0, -1]]] for g in self.rated])
        return bool(np.ptp(ends) > self.bounds.difference)

    def _chords(self, table: Table, relaxed: Relaxed) -> tuple[Floats, Floats]:
        """Where each group stands in the relaxed mix: mean cut, and span as a share of its cuts."""
        if not relaxed.share.size:
            return np.zeros(len(self.points)), np.zeros(len(self.points))
        cuts = table.cuts[relaxed.picks]
        whole = np.array([p.worth.size for p in self.points])
        return relaxed.share @ cuts, np.ptp(cuts, axis=0) / whole

    def _split(self, box: _Box, chords: tuple[Floats, Floats]) -> list[_Box]:
        """Halve the range of ρ while it is coarse, then part the cuts that the relaxation mixes."""
        mean, span = chords
        g = int(np.argmax(span))
        width = box.high - box.low
        if self._is_wide(box) and width >= min(float(span[g]), self.bounds.difference / _FINE):
            middle = (box.low + box.high) / 2
            return [_Box(box.low, middle, box.cuts), _Box(middle, box.high, box.cuts)]
        at = int(np.searchsorted(box.cuts[g], mean[g], side="right"))
        if not 0 < at < box.cuts[g].size:
            g = int(np.argmax([c.size for c in box.cuts]))
            at = box.cuts[g].size // 2
        halves = box.cuts[g][:at], box.cuts[g][at:]
        return [_Box(box.low, box.high, [*box.cuts[:g], h, *box.cuts[g + 1 :]]) for h in halves]
