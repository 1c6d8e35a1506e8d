"""Sequential quadratic programming for smooth problems with many rows and few constraints.

Solves ``min f(x)  subject to  c(x) ≤ 0`` where derivatives up to the second are exact and cost a
pass over data, so that what counts is the number of evaluations, not the algebra in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from secondlook.learners.box_qp import Array, PricedStep
from secondlook.learners.quadratic_model import QuadraticModel

__all__ = ["Point", "Problem", "Solution", "minimise"]

# Price of a unit of violation. It starts low, because a high price makes the merit function steep
# and the steps short, and stops here, so that an infeasible problem ends rather than overflows.
FIRST_PRICE, LAST_PRICE = 1.0, 1e4
# Steps damped by more than this no longer change anything.
MOST_DAMPING = 1e8
# Old second derivatives are given up where a step is not this much shorter than the last.
SLOWEST = 0.4
# Steps shorter than this (in the Hessian's metric) are taken near a solution.
CLOSE = 0.2


@dataclass(frozen=True)
class Point:
    """Value and first derivatives at ``x``; ``cache`` is the problem's own, for its Hessian."""

    x: Array
    value: float
    gradient: Array
    constraints: Array
    jacobian: Array
    cache: Any

    @cached_property
    def violations(self) -> Array:
        """By how much each constraint is exceeded."""
        return np.maximum(self.constraints, 0.0)

    @cached_property
    def violation(self) -> float:
        """Sum of what the constraints are exceeded by."""
        return float(self.violations.sum())

    @cached_property
    def worst(self) -> float:
        """Largest amount by which a constraint is exceeded, 0 if none is."""
        return float(self.violations.max(initial=0.0))

    def merit(self, price: float) -> float:
        """Exact penalty function ``f + price · Σ max(0, c)``."""
        return self.value + price * self.violation


class Problem(Protocol):
    """What the solver asks of a problem.

    ``noise`` is the relative error of its values, ``hessian_cost`` the time of a Hessian in
    evaluations.
    """

    noise: float
    hessian_cost: float

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
    ahead
        Where the next step would have led: closer still, but nothing is known there.
    multipliers
        The price of each constraint there.
    metric
        What steps were damped with.
    hessian
        The last second derivatives computed, at the solution or shortly before it.
    n_iter
        Steps tried.
    trouble
        Why the stopping rule was not met, empty if it was.
    """

    point: Point
    ahead: Array
    multipliers: Array
    metric: Array
    hessian: Array
    n_iter: int
    trouble: str


@dataclass(frozen=True)
class _Step:
    """A proposed step, its squared length in the model's metric and the merit's slope along it."""

    move: Array
    square: float
    slope: float


class _Solver:
    """State of one run of :func:`minimise`."""

    def __init__(self, problem: Problem, start: Array, like: Solution | None, tol: float) -> None:
        self.problem, self.tol, self.price, self.damping = problem, tol, FIRST_PRICE, 0.0
        self.point = self.closest = problem.evaluate(start)
        self.ahead = start
        self.length, self.n_iter, self.fresh = np.inf, 0, like is None
        if like is None:
            self.multipliers = np.zeros_like(self.point.constraints)
            self.hessian = self.metric = problem.hessian(self.point, self.multipliers)
        else:
            self.multipliers, self.hessian, self.metric = (
                like.multipliers,
                like.hessian,
                like.metric,
            )
            # A price below a multiplier would only be raised again.
            while self.price < min(like.multipliers.max(initial=0.0), LAST_PRICE):
                self.price *= 3.0
        size = self.metric.diagonal()
        self.size = np.where(size > 0, size, 1.0)

    def refresh(self) -> None:
        """Recompute the second derivatives where we are."""
        self.hessian, self.fresh = self.problem.hessian(self.point, self.multipliers), True
        self.build()

    def learn(self, before: Point) -> None:
        """Correct the old second derivatives by the change of the first along the step (BFGS).

        Nocedal and Wright, 2006, section 6.1, for the Lagrangian at the latest multipliers. Left
        out where curvature along the step is not clearly positive.
        """
        step = self.point.x - before.x
        change = self.point.gradient - before.gradient
        if self.multipliers.size:
            change += self.multipliers @ (self.point.jacobian - before.jacobian)
        expected = self.hessian @ step
        found, foretold = float(change @ step), float(expected @ step)
        if foretold > 0 and found > 0.1 * foretold:
            self.hessian = (
                self.hessian
                + np.outer(change, change / found)
                - np.outer(expected, expected / foretold)
            )
        self.build()

    def build(self) -> None:
        """Make the model positive definite.

        Curvature across the active constraints leaves the step along them exact; reflection changes
        it in the directions that curve down, and damping in all.
        """
        jacobian = self.point.jacobian
        while self.damping < MOST_DAMPING:
            # Collinear features without a penalty leave directions that change nothing; the
            # diagonal keeps steps along them at zero and is too small to shorten any other.
            diagonal = max(1e-11, self.problem.noise) + 1e-3 * self.damping
            matrix = (
                self.hessian + self.damping * self.metric if self.damping else self.hessian.copy()
            )
            matrix.flat[:: len(matrix) + 1] += diagonal * self.size
            self.model = QuadraticModel(matrix)
            if self.model.definite:
                return
            length = (jacobian**2 / self.size).sum(axis=1)
            active = (self.multipliers > 0) & (self.multipliers < self.price)
            self.model = self.model.bent(
                np.where(active, 10.0 / length.clip(1e-300), 0.0), jacobian
            )
            if not self.model.definite:
                ridge = np.diag(1e-6 * self.size)
                self.model = self.model.reflected(self.metric + ridge)
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
        if not guess.size:
            move = self.model.free_step(point.gradient)
            slope = float(point.gradient @ move)
            self.ahead = point.x + move
            return _Step(move, -slope, slope)
        now, program = point.violation, self._program(point, point.constraints)
        while True:
            move, multipliers = program.solve(self.price, guess)
            then = float(np.maximum(point.constraints + point.jacobian @ move, 0.0).sum())
            if then <= 0.1 * now + 1e-3 * self.tol or self.price >= LAST_PRICE:
                break
            self.price *= 3.0
        self.multipliers, self.ahead = multipliers, point.x + move
        slope = float(point.gradient @ move) + self.price * (then - now)
        return _Step(move, float(move @ self.model.matrix @ move), slope)

    def _program(self, point: Point, offset: Array) -> PricedStep:
        return self.model.program(point.gradient, point.jacobian, offset)

    def done(self, step: _Step) -> bool:
        """Whether the step is negligible and nothing (that can be repaired) is violated."""
        if self.point.worst <= self.tol:
            # Steps that no longer shrink and promise less than rounding errors are the end too.
            stalled = np.sqrt(step.square) > 0.5 * self.length
            limit = max(self.tol**2, self.problem.noise) if stalled else self.tol**2
            return step.square <= limit
        left = self.price * self.point.violation
        return self.price >= LAST_PRICE and step.square <= self.tol * left

    def slow(self, step: _Step) -> bool:
        """Whether new second derivatives would cost less than the steps they save.

        With the old ones steps shrink at a constant rate; with new ones about two more are needed.
        """
        length = np.sqrt(step.square)
        if length >= SLOWEST * self.length:
            return True
        if not np.isfinite(self.length):
            return False
        still = np.log(self.tol / length) / np.log(length / self.length)
        return bool(still > 2.0 + self.problem.hessian_cost)

    def advance(self, step: _Step) -> bool:
        """Take a step that improves the merit function, damping it until it does; or False."""
        while True:
            base = self.point.merit(self.price)
            target = base + 1e-4 * step.slope + self.problem.noise * (abs(base) + self.price)
            trial = self.problem.evaluate(self.point.x + step.move)
            if trial.merit(self.price) > target:
                if self._contracts(step, trial):
                    self._accept(trial, 0.5, 1.0)
                    return True
                if trial.value <= target:
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
        self.point, self.fresh = trial, False
        if trial.violation < self.closest.violation:
            self.closest = trial
        if gained > 0.75 * promised:
            self.damping = self.damping / 5 if self.damping > 0.02 else 0.0
        elif gained < 0.25 * promised:
            self.damping = max(2 * self.damping, 0.02)

    def _contracts(self, step: _Step, trial: Point) -> bool:
        """Whether the next step would be much shorter, by the same model.

        Close to a solution a perfect step can raise the merit function, because the constraints
        bend (Nocedal and Wright, 2006, section 15.5); that it shrinks the next step shows that it
        was a good one, and costs no evaluation.
        """
        if self.damping or step.square > CLOSE**2 or not np.isfinite(trial.value):
            return False
        program = self._program(trial, trial.constraints)
        ahead, _ = program.solve(self.price, self.multipliers > 0)
        return float(ahead @ self.model.matrix @ ahead) <= 0.25 * step.square

    def _bent(self, move: Array, trial: Point) -> Point:
        """Second-order correction: the same step, bent along the constraints' curvature."""
        offset = trial.constraints - self.point.jacobian @ move
        bent, _ = self._program(self.point, offset).solve(self.price, self.multipliers > 0)
        return self.problem.evaluate(self.point.x + bent)

    def run(self, max_iter: int) -> str:
        """Step until done, and say why that was not reached (nothing if it was)."""
        self.build()
        if self.damping and not self.fresh:
            # The lent Hessian does not fit here.
            self.damping = 0.0
            self.refresh()
        for self.n_iter in range(1, max_iter + 1):
            step = self.propose()
            done = self.done(step)
            if not done and not self.fresh and self.slow(step):
                self.refresh()
                step = self.propose()
                done = self.done(step)
            if done and self.damping:
                # A damped step is short even far from the end.
                self.damping = 0.0
                self.build()
                step = self.propose()
                done = self.done(step)
            if done:
                return ""
            before, self.length = self.point, np.sqrt(step.square)
            if not self.advance(step):
                return "no step improved the fit further"
            if self.length > CLOSE and self.problem.hessian_cost < 1:
                # After a long step the old ones will not do, and to find that out costs more.
                self.refresh()
            else:
                self.learn(before)
        return "the steps allowed by max_iter were not enough"


def minimise(
    problem: Problem,
    start: Array,
    like: Solution | None = None,
    *,
    tol: float = 1e-6,
    max_iter: int = 100,
) -> Solution:
    """Minimise a problem under its constraints by sequential quadratic programming.

    Each step minimises the exact second-order model of the Lagrangian under the linearised
    constraints, whose violation has a price (the Sℓ1QP method, Nocedal and Wright, 2006, section
    18.5). The merit function ``f + price · Σ max(0, c)`` must fall; a step that does not make it
    fall is corrected for the constraints' curvature or taken again with damping, i.e. with a
    multiple of a metric (the Hessian at the start) added to the Hessian. An indefinite Hessian is
    made definite by curvature across the active constraints or by reflection. A Hessian is reused
    while that is expected to save time. The end is reached when the step's length in the Hessian's
    metric and every violation are at most ``tol``.

    ``like``, the solution of a similar problem such as the same on fewer rows, lends its
    multipliers, metric and Hessian to the first step; give it with a ``start`` close to it.

    Where linearised violations cannot be removed the price rises to its end, 10⁴ per unit, and the
    visited point of least total violation is returned.
    """
    solver = _Solver(problem, start, like, tol)
    try:
        trouble = solver.run(max_iter)
    except FloatingPointError as error:
        trouble = str(error)
    point = solver.point
    if point.worst > tol:
        point = solver.closest
    return Solution(
        point,
        solver.ahead,
        solver.multipliers,
        solver.metric,
        solver.hessian,
        solver.n_iter,
        trouble,
    )
