"""The best 0/1 function of cells under a few linear constraints, with a proven gap.

Maximise ``gain · f`` subject to ``rows · f ≤ limits`` over f in {0, 1}ⁿ. For any prices y ≥ 0 of
the constraints, ``y · limits + Σ max(gain − y · rows, 0)`` is an upper bound, and a cell decided
against the sign of its reduced gain ``gain − y · rows`` costs at least its size. With the prices of
the linear relaxation, the bound is nearly met, and all but a few cells are decided by sign: the few
with the smallest reduced gains are enumerated. If that does not close the gap, HiGHS searches the
cells whose reduced gain is within the gap, with all others fixed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

__all__ = ["ZeroOneSolution", "maximise"]

Floats = NDArray[np.float64]
Choice = NDArray[np.bool_]

_CORE = 10  # cells enumerated first
_WHOLE = 16  # largest number of free cells to enumerate completely
_EDGE = 6  # times as many cells are first searched by HiGHS, with all others decided by sign
_ROUNDING = 1e-12  # relative to the largest gain: smaller differences are rounding
_ROW_UNIT, _GAIN_UNIT = 1e4, 1e6  # scale up: the tolerances of HiGHS are absolute (1e-6)
_NODES = 100_000
_TRIES = 6
_INFEASIBLE = 2  # status of linprog and milp


@dataclass(frozen=True)
class ZeroOneSolution:
    """The best f found, with a bound on all others.

    Attributes
    ----------
    accepts
        The best f found; all False if no f meets the constraints.
    value
        Its gain.
    bound
        No f that meets the constraints gains more.
    feasible
        Whether some f meets the constraints.
    """

    accepts: Choice
    value: float
    bound: float
    feasible: bool

    @property
    def gap(self) -> float:
        """(bound − value) / |value|; 0 if they are equal."""
        over = self.bound - self.value
        return over / abs(self.value) if over > 0 and self.value else (np.inf if over > 0 else 0.0)


@dataclass(frozen=True)
class _ZeroOneProgram:
    gain: Floats
    rows: Floats
    limits: Floats

    @property
    def rounding(self) -> float:
        return _ROUNDING * float(np.abs(self.gain).max())

    def bound(self, prices: Floats) -> float:
        return float(prices @ self.limits + np.maximum(self.reduced(prices), 0).sum())

    def reduced(self, prices: Floats) -> Floats:
        return self.gain - prices @ self.rows

    def meets(self, accepts: Choice) -> bool:
        return bool(np.all(self.rows @ accepts <= self.limits))


def maximise(
    gain: Floats,
    rows: Floats,
    limits: Floats,
    gap: float = 1e-4,
    *,
    core: int = _CORE,
    whole: int = _WHOLE,
) -> ZeroOneSolution:
    """Return the best f, to a relative gap.

    Parameters
    ----------
    gain
        Gain of accepting each cell.
    rows, limits
        The constraints, ``rows · f ≤ limits``; the one most likely to bind comes first.
    gap
        Stop as soon as ``(bound − value) / |value|`` is proven to be at most this.
    core, whole
        Number of cells enumerated at first, and at most; HiGHS searches larger sets.

    Examples
    --------
    >>> solution = maximise(np.array([3.0, 4.0, 2.0]), np.array([[2.0, 3.0, 1.0]]), np.array([3.0]))
    >>> solution.accepts.tolist(), solution.value
    ([True, False, True], 5.0)
    """
    program = _ZeroOneProgram(gain, rows, limits)
    if gain.size == 0:
        feasible = bool(np.all(limits >= 0))
        return ZeroOneSolution(np.zeros(0, np.bool_), 0.0, 0.0, feasible)
    best, bound = None, np.inf
    for pricing in (_price_of_first, _prices)[: limits.size]:
        prices = pricing(program)
        if prices is None:
            return _infeasible(gain.size)
        reduced, reach = program.reduced(prices), program.bound(prices)
        bound = min(bound, reach)
        near = np.argsort(np.abs(reduced), kind="stable")[:core]
        best = _better(program, best, _enumerate(program, reduced > 0, near))
        if best is not None and _close(program, best, bound, gap):
            return _solution(program, best, bound)
    return _finish(program, reduced, reach, best, bound, gap, whole)


def _finish(
    program: _ZeroOneProgram,
    reduced: Floats,
    reach: float,
    best: Choice | None,
    bound: float,
    gap: float,
    whole: int,
) -> ZeroOneSolution:
    """Search the cells that can still matter: those whose reduced gain is within the gap."""
    edge = np.argsort(np.abs(reduced), kind="stable")[: _EDGE * whole]
    if edge.size < reduced.size:
        best = _better(program, best, _integer_program(program, reduced > 0, edge, gap / 2)[0])
        if best is not None and _close(program, best, bound, gap):
            return _solution(program, best, bound)
    value = -np.inf if best is None else float(program.gain @ best)
    free = np.flatnonzero(np.abs(reduced) <= reach - value + program.rounding)
    if free.size <= whole:
        best = _better(program, best, _enumerate(program, reduced > 0, free))
        if best is None:
            return _infeasible(program.gain.size)
        return _solution(program, best, float(program.gain @ best))
    candidate, proven = _integer_program(program, reduced > 0, free, gap)
    best = _better(program, best, candidate)
    if best is None:
        return _infeasible(program.gain.size)
    return _solution(program, best, min(bound, max(proven, value)))


def _infeasible(n_cells: int) -> ZeroOneSolution:
    return ZeroOneSolution(np.zeros(n_cells, np.bool_), 0.0, 0.0, feasible=False)


def _solution(program: _ZeroOneProgram, best: Choice, bound: float) -> ZeroOneSolution:
    value = float(program.gain @ best)
    if bound - value <= program.rounding:
        bound = value
    return ZeroOneSolution(best, value, bound, feasible=True)


def _close(program: _ZeroOneProgram, best: Choice, bound: float, gap: float) -> bool:
    value = float(program.gain @ best)
    return bound - value <= gap * abs(value) + program.rounding


def _better(program: _ZeroOneProgram, best: Choice | None, other: Choice | None) -> Choice | None:
    if best is None or other is None:
        return other if best is None else best
    return other if program.gain @ other > program.gain @ best else best


def _price_of_first(program: _ZeroOneProgram) -> Floats | None:
    """Price the first constraint as if it were alone: a fractional knapsack, solved by sorting.

    As its price rises from 0, cells that use its capacity leave and cells that add to it enter,
    each at the price ``gain / use``; the result is the first price at which the limit is kept.
    """
    gain, use = program.gain, program.rows[0]
    prices = np.zeros(program.limits.size)
    used = use[gain > 0].sum()
    if used <= program.limits[0]:
        return prices
    rounding = _ROUNDING * float(np.abs(use).sum())
    if np.minimum(use, 0).sum() > program.limits[0] + rounding:
        return None
    moves = np.flatnonzero(((gain > 0) & (use > 0)) | ((gain <= 0) & (use < 0)))
    price = gain[moves] / use[moves]
    order = np.argsort(price)
    kept = used - np.cumsum(np.abs(use[moves[order]])) <= program.limits[0] + rounding
    prices[0] = max(float(price[order[np.argmax(kept)]]), 0.0)
    return prices


def _prices(program: _ZeroOneProgram) -> Floats | None:
    """Price all constraints by the linear relaxation; None if it is infeasible."""
    rows, limits = _scaled(program.rows, program.limits)
    unit = np.abs(program.gain).max() or 1.0
    result = linprog(-program.gain / unit, rows, limits, bounds=(0, 1), method="highs")
    if result.status == _INFEASIBLE:
        return None
    if result.status != 0:  # without prices the bound is that without constraints
        return np.zeros(limits.size)
    return np.asarray(np.maximum(-result.ineqlin.marginals, 0) * unit * _row_units(program.rows))


def _row_units(rows: Floats) -> Floats:
    """Return the factors that scale the largest entry of each row to 1."""
    largest = np.abs(rows).max(axis=1)
    return 1.0 / np.where(largest > 0, largest, 1.0)


def _scaled(rows: Floats, limits: Floats) -> tuple[Floats, Floats]:
    units = _row_units(rows)
    return rows * units[:, None], limits * units


@lru_cache(maxsize=32)
def _subsets(n: int) -> Floats:
    """Return all subsets of n cells, a row per subset."""
    return ((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(np.float64)


def _enumerate(program: _ZeroOneProgram, start: Choice, cells: NDArray[np.intp]) -> Choice | None:
    """Return the best f that differs from ``start`` only in some cells; None if none is allowed."""
    base = start.copy()
    base[cells] = False
    subsets = _subsets(cells.size)
    load = program.rows @ base + subsets @ program.rows[:, cells].T
    allowed = np.all(load <= program.limits, axis=1)
    value = np.where(allowed, subsets @ program.gain[cells], -np.inf)
    # The caller sums in another order, which rounds differently: check by its own sum.
    for candidate in np.argsort(-value, kind="stable")[:_TRIES]:
        if value[candidate] == -np.inf:
            return None
        accepts = base.copy()
        accepts[cells] = subsets[candidate] > 0
        if program.meets(accepts):
            return accepts
    return None


def _integer_program(
    program: _ZeroOneProgram, start: Choice, free: NDArray[np.intp], gap: float
) -> tuple[Choice | None, float]:
    """Decide the free cells by HiGHS; return the best f found and a proven upper bound."""
    base = start.copy()
    base[free] = False
    rows = program.rows[:, free]
    units = _ROW_UNIT * _row_units(rows)
    room = program.limits - program.rows @ base
    unit = _GAIN_UNIT / (np.abs(program.gain[free]).max() or 1.0)
    # The last variable is fixed at 1 and holds the gain of the fixed cells, so that the relative
    # gap refers to all cells.
    gains = -np.append(program.gain[free], program.gain @ base) * unit
    matrix = np.hstack([rows * units[:, None], np.zeros((rows.shape[0], 1))])
    lowest = np.append(np.zeros(free.size), 1.0)
    proven, spare = np.inf, np.zeros(room.size)
    for _ in range(_TRIES):
        result = milp(
            gains,
            integrality=np.ones(gains.size),
            bounds=Bounds(lowest, 1.0),
            constraints=LinearConstraint(matrix, -np.inf, (room - spare) * units),
            options={"mip_rel_gap": gap, "node_limit": _NODES},
        )
        if proven == np.inf and result.mip_dual_bound is not None:
            proven = -float(result.mip_dual_bound) / unit
        if result.x is None:
            return None, (-np.inf if result.status == _INFEASIBLE and not spare.any() else proven)
        accepts = base.copy()
        accepts[free] = result.x[:-1] > 0.5
        over = program.rows @ accepts - program.limits
        if np.all(over <= 0):
            return accepts, proven
        spare += np.maximum(2 * over, 0)  # allowed by the tolerance of HiGHS, not by ours
    return None, proven
