"""Tiny quadratic programs over a box: the duals of those with few constraints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

__all__ = ["PricedStep", "box_qp"]

Array = NDArray[np.float64]

RIDGE = 1e-12  # relative


def box_qp(
    matrix: Array, linear: Array, upper: float, guess: NDArray[np.bool_] | None = None
) -> Array:
    """Minimise ``½ λᵀMλ − qᵀλ`` over ``0 ≤ λ ≤ upper`` by a primal active-set method.

    M is positive semi-definite and tiny: this is the dual of a quadratic program with few
    constraints (Nocedal and Wright, *Numerical Optimization*, 2006, sections 16.5 and 18.5).
    ``guess`` names the λ that are likely to be positive.

    Examples
    --------
    >>> box_qp(np.diag([1.0, 2.0]), np.array([3.0, -1.0]), upper=10.0).round(6).tolist()
    [3.0, 0.0]
    """
    if linear.size == 1 and matrix[0, 0] > 0:
        return np.asarray(np.minimum(np.maximum(linear / matrix[0], 0.0), upper))
    # The usual case, many times in a fit: no bound is met.
    inside = _all_free(matrix, linear, upper)
    if inside is not None:
        return inside
    size = np.sqrt(matrix.diagonal())
    scale = 1.0 / np.where(size > 0, size, np.inf)
    m = matrix * scale * scale[:, None]
    # The ridge makes dependent constraints (a−b and b−a, say) share their multiplier.
    m.flat[:: linear.size + 1] += RIDGE
    q, top = linear * scale, upper * size
    tiny = 1e-13 * (1.0 + float(np.abs(q).max(initial=0.0)))
    solution, free = np.zeros_like(q), np.zeros(q.shape, dtype=np.bool_)
    if guess is not None and guess.any():
        free |= guess
        _descend(m, q, top, solution, free)
    for _ in range(20 + 10 * q.size):
        slope = q - m @ solution
        pull = np.where(solution >= top, -slope, slope)
        pull[free | (top == 0)] = -1.0
        worst = int(pull.argmax())
        if pull[worst] <= tiny:
            break
        free[worst] = True
        _descend(m, q, top, solution, free)
    return np.asarray(solution * scale)


def _all_free(matrix: Array, linear: Array, upper: float) -> Array | None:
    """Return the minimum of all λ if it is within the bounds."""
    m = matrix.copy()
    m.flat[:: linear.size + 1] *= 1 + RIDGE
    _, solution, failed = dposv(m, linear)
    if failed or not 0 <= solution.min() <= solution.max() <= upper:
        return None
    return np.asarray(solution)


def _descend(m: Array, q: Array, top: Array, solution: Array, free: NDArray[np.bool_]) -> None:
    """Minimise over the free coordinates, fixing in place those that meet a bound on the way."""
    while free.any():
        at = free.nonzero()[0]
        rows = m[at]
        inner = rows[:, at]
        rest = q[at] - rows @ np.where(free, 0.0, solution)
        _, goal, failed = dposv(inner, rest)
        if failed:
            goal = np.linalg.lstsq(inner, rest, rcond=None)[0]
        here, most = solution[at], top[at]
        if np.all((goal >= 0) & (goal <= most)):
            solution[at] = goal
            return
        move = goal - here
        room = np.where(move > 0, most - here, -here)
        share = np.divide(room, move, out=np.full(move.shape, np.inf), where=move != 0)
        first = int(share.argmin())
        solution[at] += max(share[first], 0.0) * move
        solution[at[first]] = most[first] if move[first] > 0 else 0.0
        free[at[first]] = False


@dataclass(frozen=True)
class PricedStep:
    """A quadratic program of few constraints ``offset + J p ≤ 0``, whose violation has a price.

    What is here does not depend on the price: the step ``free`` that heeds no constraint, and by
    how much a unit of each multiplier moves it (``across``, a column each).
    """

    jacobian: Array
    offset: Array
    free: Array
    across: Array

    def solve(self, price: float, guess: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Return the step at a price, and the multipliers λ."""
        multipliers = np.zeros(self.offset.size)
        ahead = self.offset + self.jacobian @ self.free
        missed = ahead > 0
        if not missed.any():
            return self.free, multipliers
        # Of very many pairs of groups few matter: the others join once a step violates them.
        matter = guess | missed
        while True:
            rows = matter.nonzero()[0]
            across = self.across[:, rows]
            found = box_qp(self.jacobian[rows] @ across, ahead[rows], price, guess[rows])
            step = self.free - across @ found
            missed = self.offset + self.jacobian @ step > 1e-14
            missed[rows] = False
            if not missed.any():
                multipliers[rows] = found
                return step, multipliers
            matter |= missed
