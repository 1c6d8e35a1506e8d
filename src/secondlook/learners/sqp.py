"""Sequential quadratic programming for smooth problems with many rows and few constraints.

Solves ``min f(x)  subject to  c(x) ≤ 0`` where derivatives up to the second are exact and cost a
pass over data, so that what counts is the number of evaluations, not the algebra in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv, dpotrf, dpotrs

__all__ = ["Point", "Problem", "Solution", "box_qp", "minimise"]

Array = NDArray[np.float64]

# Price of a unit of violation. It starts low, because a high price makes the merit function steep
# and the steps short, and stops here, so that an infeasible problem ends rather than overflows.
FIRST_PRICE, LAST_PRICE = 1.0, 1e4
# Steps damped by more than this no longer change anything.
MOST_DAMPING = 1e8


@dataclass(frozen=True)
class Point:
    """Value and first derivatives at ``x``; ``cache`` is the problem's own, for its Hessian."""

    x: Array
    value: float
    gradient: Array
    constraints: Array
    jacobian: Array
    cache: Any

    @property
    def violations(self) -> Array:
        """By how much each constraint is exceeded."""
        return np.maximum(self.constraints, 0.0)

    def merit(self, price: float) -> float:
        """Exact penalty function ``f + price · Σ max(0, c)``."""
        return self.value + price * float(self.violations.sum())


class Problem(Protocol):
    """What the solver asks of a problem; ``noise`` is the relative error of its values."""

    noise: float

    def evaluate(self, x: Array) -> Point:
        """Value, constraints and their first derivatives."""
        ...

    def hessian(self, point: Point, multipliers: Array) -> Array:
        """Second derivative of ``f + multipliers · c``."""
        ...


@dataclass(frozen=True)
class Solution:
    """Where the solver ended and how.

    Parameters
    ----------
    point
        The solution, or the visited point of least total violation.
    multipliers
        The price of each constraint there.
    metric
        What steps were damped with; a start for a similar problem.
    n_iter
        Steps tried.
    trouble
        Why the stopping rule was not met, empty if it was.
    """

    point: Point
    multipliers: Array
    metric: Array
    n_iter: int
    trouble: str


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
    size = np.sqrt(matrix.diagonal())
    scale = 1.0 / np.where(size > 0, size, np.inf)
    m = matrix * scale * scale[:, None]
    # The ridge makes dependent constraints (a−b and b−a, say) share their multiplier.
    m.flat[:: linear.size + 1] += 1e-12
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


class _Model:
    """Factorised positive definite second-order model, reusable while it predicts well."""

    def __init__(self, hessian: Array, bend: Array, jacobian: Array) -> None:
        self.bend, self.matrix = bend, hessian + (jacobian.T * bend) @ jacobian
        self.factor, failed = dpotrf(self.matrix, lower=1)
        self.definite = failed == 0

    def step(
        self, point: Point, offset: Array, price: float, guess: NDArray[np.bool_]
    ) -> tuple[Array, Array]:
        """Minimise the model under linearised constraints ``offset + J p`` at a price; and λ."""
        jacobian = point.jacobian
        gradient = point.gradient + (self.bend * offset) @ jacobian
        both, _ = dpotrs(self.factor, np.column_stack((gradient, jacobian.T)), lower=1)
        free, across = -both[:, 0], both[:, 1:]
        ahead, step, multipliers = offset + jacobian @ free, free, np.zeros_like(offset)
        # Of very many pairs of groups few matter: the others join once a step violates them.
        matter, missed = guess, ahead > 0
        while missed.any():
            matter = matter | missed
            inner = jacobian[matter] @ across[:, matter]
            multipliers[matter] = box_qp(inner, ahead[matter], price, guess[matter])
            step = free - across @ multipliers
            missed = (offset + jacobian @ step > 1e-14) & ~matter
        return step, multipliers


@dataclass(frozen=True)
class _Step:
    """A proposed step, its squared length in the model's metric and the merit's slope along it."""

    move: Array
    square: float
    slope: float


class _Solver:
    """State of one run of :func:`minimise`."""

    def __init__(
        self, problem: Problem, start: Array, multipliers: Array, metric: Array | None, tol: float
    ) -> None:
        self.problem, self.tol, self.price, self.damping = problem, tol, FIRST_PRICE, 0.0
        self.point = self.closest = problem.evaluate(start)
        self.multipliers, self.length, self.fresh = multipliers, np.inf, True
        self.hessian = problem.hessian(self.point, multipliers)
        self.metric, self.n_iter = self.hessian if metric is None else metric, 0
        size = self.metric.diagonal()
        self.size = np.where(size > 0, size, 1.0)

    def refresh(self) -> None:
        """Recompute the second derivatives where we are."""
        self.hessian, self.fresh = self.problem.hessian(self.point, self.multipliers), True
        self.build()

    def build(self) -> None:
        """Make the model positive definite.

        Curvature across the active constraints leaves the step along them exact; damping does not,
        and comes second.
        """
        jacobian = self.point.jacobian
        none = np.zeros_like(self.multipliers)
        while self.damping < MOST_DAMPING:
            # Collinear features without a penalty leave directions that change nothing; the
            # diagonal keeps steps along them at zero and is too small to shorten any other.
            diagonal = max(1e-11, self.problem.noise) + 1e-3 * self.damping
            matrix = self.hessian + self.damping * self.metric
            matrix.flat[:: len(matrix) + 1] += diagonal * self.size
            self.model = _Model(matrix, none, jacobian)
            if self.model.definite:
                return
            length = (jacobian**2 / self.size).sum(axis=1)
            active = (self.multipliers > 0) & (self.multipliers < self.price)
            bend = np.where(active, 10.0 / length.clip(1e-300), 0.0)
            self.model = _Model(matrix, bend, jacobian)
            if self.model.definite:
                return
            self.damp()
        raise FloatingPointError("the second derivatives are not finite")

    def damp(self) -> None:
        """Trust the model less."""
        self.damping = max(4.0 * self.damping, 0.1)

    def propose(self) -> _Step:
        """Step under the linearised constraints.

        The price rises until the step removes nine tenths of the linearised violation, or to its
        end where that cannot be done.
        """
        point, guess = self.point, self.multipliers > 0
        now = float(point.violations.sum())
        while True:
            move, multipliers = self.model.step(point, point.constraints, self.price, guess)
            then = float(np.maximum(point.constraints + point.jacobian @ move, 0.0).sum())
            if then <= 0.1 * now + 1e-3 * self.tol or self.price >= LAST_PRICE:
                break
            self.price *= 10.0
        self.multipliers = multipliers
        slope = float(point.gradient @ move) + self.price * (then - now)
        return _Step(move, float(move @ self.model.matrix @ move), slope)

    def done(self, step: _Step) -> bool:
        """Whether the step is negligible and nothing (that can be repaired) is violated."""
        if float(self.point.violations.max(initial=0.0)) <= self.tol:
            # Steps that no longer shrink and promise less than rounding errors are the end too.
            stalled = np.sqrt(step.square) > 0.5 * self.length
            limit = max(self.tol**2, self.problem.noise) if stalled else self.tol**2
            return step.square <= limit
        left = self.price * float(self.point.violations.sum())
        return self.price >= LAST_PRICE and step.square <= self.tol * left

    def advance(self, step: _Step) -> bool:
        """Take a step that improves the merit function, damping it until it does; or False."""
        while True:
            base = self.point.merit(self.price)
            target = base + 1e-4 * step.slope + self.problem.noise * (abs(base) + self.price)
            trial = self.problem.evaluate(self.point.x + step.move)
            if trial.merit(self.price) > target >= trial.value:
                trial = self._bent(step.move, trial)
            if trial.merit(self.price) <= target:
                self._accept(trial, base - trial.merit(self.price), -step.slope - step.square / 2)
                return True
            self.damp()
            if self.damping >= MOST_DAMPING:
                return False
            self.build()
            step = self.propose()

    def _accept(self, trial: Point, gained: float, promised: float) -> None:
        """Move, and trust the model more or less by how well it foretold the gain."""
        self.point = trial
        if trial.violations.sum() < self.closest.violations.sum():
            self.closest = trial
        if gained > 0.75 * promised:
            self.damping = self.damping / 5 if self.damping > 0.02 else 0.0
        elif gained < 0.25 * promised:
            self.damping = max(2 * self.damping, 0.02)

    def _bent(self, move: Array, trial: Point) -> Point:
        """Second-order correction: the same step, bent along the constraints' curvature."""
        offset = trial.constraints - self.point.jacobian @ move
        bent, _ = self.model.step(self.point, offset, self.price, self.multipliers > 0)
        return self.problem.evaluate(self.point.x + bent)

    def run(self, max_iter: int) -> str:
        """Step until done, and say why that was not reached (nothing if it was)."""
        self.build()
        for self.n_iter in range(1, max_iter + 1):
            step = self.propose()
            if not self.done(step) and not self.fresh and np.sqrt(step.square) > 0.05 * self.length:
                self.refresh()
                step = self.propose()
            if self.done(step) and self.damping:
                # A damped step is short even far from the end.
                self.damping = 0.0
                self.build()
                step = self.propose()
            if self.done(step):
                return ""
            self.length, self.fresh = np.sqrt(step.square), False
            if not self.advance(step):
                return "no step improved the fit further"
        return "the steps allowed by max_iter were not enough"


def minimise(
    problem: Problem,
    start: Array,
    multipliers: Array,
    metric: Array | None = None,
    *,
    tol: float = 1e-6,
    max_iter: int = 100,
) -> Solution:
    """Minimise a problem under its constraints by sequential quadratic programming.

    Each step minimises the exact second-order model of the Lagrangian under the linearised
    constraints, whose violation has a price (the Sℓ1QP method, Nocedal and Wright, 2006, section
    18.5). The merit function ``f + price · Σ max(0, c)`` must fall; a step that does not make it
    fall is corrected for the constraints' curvature or taken again with damping, i.e. with a
    multiple of ``metric`` (the Hessian at the start if None, so give it with ``multipliers`` that
    are not zero) added to the Hessian. The same makes an indefinite Hessian definite. A Hessian is
    reused while steps shrink twentyfold. The end is reached when the step's length in the Hessian's
    metric and every violation are at most ``tol``.

    Where linearised violations cannot be removed the price rises to its end, 10⁴ per unit, and the
    visited point of least total violation is returned.
    """
    solver = _Solver(problem, start, multipliers, metric, tol)
    try:
        trouble = solver.run(max_iter)
    except FloatingPointError as error:
        trouble = str(error)
    point = solver.point
    if float(point.violations.max(initial=0.0)) > tol:
        point = solver.closest
    return Solution(point, solver.multipliers, solver.metric, solver.n_iter, trouble)
