"""Upper bounds for choosing one cut per group: a Lagrangian bound and what survives it.

For any prices μ, ν ≥ 0 no admissible choice is worth more than the sum over groups of the largest
``worth + μ·slack + ν·surplus``. The best prices solve a linear program with three rows, whose
columns are whole choices and are generated as they are needed (Dantzig and Wolfe's way).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from secondlook.learners.curves import Floats, Points

Indices = NDArray[np.intp]

# What a choice that meets everything but does not exist costs in the program; worths are ≤ 1.
_ARTIFICIAL = 1e6
_STEPS = 60
_ROUNDING = 1e-13
# Smaller shares of the mix are rounding.
_SHARE = 1e-9


class Table:
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
    """Three columns of the program: who is in the mix, in what share, at what prices."""

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


def relax(table: Table, enough: float) -> Relaxed:
    """Least Lagrangian bound over the prices; stops early once it is no more than ``enough``."""
    basis = _Basis()
    bound, prices = np.inf, (0.0, 0.0)
    for _ in range(_STEPS):
        price = (-basis.dual[0], -basis.dual[1])
        if min(price) < -_ROUNDING:
            # Giving away what a constraint has to spare is a column too.
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


def survivors(table: Table, relaxed: Relaxed, floor: float) -> list[Indices]:
    """Places in the table of the cuts that may be in a choice worth more than ``floor``."""
    top = relaxed.value[table.best(relaxed.value)]
    kept = np.repeat(top, table.size) - relaxed.value <= relaxed.bound - floor
    places = np.flatnonzero(kept)
    return np.split(places, np.searchsorted(places, table.start[1:]))
