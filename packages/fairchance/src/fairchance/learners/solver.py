"""Solve a fit with scipy's SLSQP, from several starts and with excesses over bounds if needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize

from fairchance.core.saved import saved
from fairchance.learners.problem import Array, Point, SmoothProblem

__all__ = ["FitStatus", "solve"]

# Starting points: so many Newton steps away from the model that gives all rows the mean outcome.
# Longer steps decide more sharply, which can meet tight bounds.
START_LENGTHS = (1.0, 2.0, 8.0, 0.0)
# Cost of exceeding a bound by one, in units of the mean log-loss, once all starts have failed.
PRICE = 10.0
# Keeps the scaling of variables defined if features are collinear and not penalised.
RIDGE = 1e-8
# Variables from which a fit without bounds uses L-BFGS: SLSQP's step takes time with their cube.
WIDE = 200
# SLSQP's status if it ran out of iterations, and how to call that.
ITERATION_LIMIT, TOO_FEW = 9, "the iterations allowed by max_iter were not enough"


@saved
@dataclass(frozen=True)
class FitStatus:
    """How a solver ended.

    Parameters
    ----------
    converged
        Whether the solver met its stopping rule.
    feasible
        Whether no constraint is exceeded by more than the tolerance.
    violation
        Largest amount by which a constraint is exceeded, 0 if none is.
    n_iter
        Iterations over all starts.
    message
        The same in a sentence.
    """

    converged: bool
    feasible: bool
    violation: float
    n_iter: int
    message: str


@dataclass(frozen=True)
class _Run:
    """Where a run of a solver ended, and why it did not converge (empty if it did)."""

    point: Point
    n_iter: int
    trouble: str


def solve(
    problem: SmoothProblem, start: Array | None, tol: float, max_iter: int
) -> tuple[Array, FitStatus]:
    """Return a solution and how it was reached.

    SLSQP runs from ``start``, or from a Newton step away from the model that gives all rows the
    mean outcome. Other starts are tried only if that run fails. If none of them leads to a model
    that meets the constraints, each bound may be exceeded at a price (elastic mode): the answer
    then minimises the mean log-loss plus ``PRICE`` times the excess over each bound, so it remains
    a model of the outcomes.
    """
    scaled = _ScaledProblem(problem, problem.mean_model() if start is None else start)
    runs: list[_Run] = []
    for x in _starts(scaled, start):
        runs.append(scaled.run(x, tol, max_iter))
        if not runs[-1].trouble and runs[-1].point.worst <= tol:
            break
        if not problem.bounds.size:
            break  # a convex problem has one solution
    else:
        scaled.make_elastic()
        # Prices make the objective larger, and so its rounding errors.
        runs.append(scaled.run(problem.mean_model(), 10 * tol, max_iter))
    # A run that stopped early may still have ended at a model that meets the constraints.
    usable = [run for run in runs if run.point.worst <= tol] or runs[-1:]
    best = min(usable, key=lambda run: (bool(run.trouble), run.point.value))
    return best.point.x, _status(best, sum(run.n_iter for run in runs), tol)


def _starts(scaled: _ScaledProblem, given: Array | None) -> Iterator[Array]:
    """Yield four starting points, the given one first if there is one."""
    if given is not None:
        yield given
    mean, step = scaled.problem.mean_model(), scaled.newton_step()
    for length in START_LENGTHS[: None if given is None else -1]:
        yield mean + length * step


class _ScaledProblem:
    """The problem as SLSQP sees it: variables ``(z, s)``, a scaled model and excesses over bounds.

    The model is ``x = Uz`` with ``(UUᵀ)⁻¹`` the second derivative of the loss at the mean outcome.
    So features of any units and correlations become variables of the same scale, which SLSQP's
    first steps take for granted. There is one ``s`` for each bound in elastic mode, where bounds
    may be exceeded at a price, and otherwise none.
    """

    def __init__(self, problem: SmoothProblem, at: Array) -> None:
        self.problem = problem
        hessian = problem.loss_hessian(at)
        self.n = len(hessian)
        diagonal = hessian.diagonal()
        scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        correlation = hessian / scale / scale[:, None]
        correlation.flat[:: self.n + 1] += RIDGE
        self.root = cholesky(correlation) * scale
        self.unscale = solve_triangular(self.root, np.eye(self.n))
        self.share = np.zeros((problem.bounds.size, 0))
        self._last: tuple[Array, Point] | None = None

    def make_elastic(self) -> None:
        """Let every bound be exceeded, each by an amount of its own."""
        kinds = self.problem.bounds.kinds
        self.share = (kinds[:, None] == np.unique(kinds)).astype(np.float64)

    def newton_step(self) -> Array:
        """Return the step from the mean outcome to the minimum of the loss's quadratic model."""
        slope = self.problem.evaluate(self.problem.mean_model()).gradient
        return np.asarray(-self.unscale @ (slope @ self.unscale))

    def run(self, x: Array, tol: float, max_iter: int) -> _Run:
        """Run SLSQP from a model."""
        z = self.root @ x
        excess = self.share * self.point(z).constraints[:, None]
        slack = excess.max(axis=0, initial=0.0)
        start = np.append(z, slack)
        constraints = {"type": "ineq", "fun": self.slack, "jac": self.slack_jacobian}
        if self.n >= WIDE and not self.problem.bounds.size:
            options = {"maxiter": max_iter, "ftol": 0.1 * tol**2, "gtol": tol**2}
            wide = minimize(self.value, z, jac=self.gradient, method="L-BFGS-B", options=options)
            trouble = "" if wide.success else TOO_FEW
            return _Run(self.point(wide.x), int(wide.nit), trouble)
        result = minimize(
            self.value,
            start,
            jac=self.gradient,
            method="SLSQP",
            bounds=[(None, None)] * self.n + [(0.0, None)] * slack.size if slack.size else None,
            constraints=constraints if self.problem.bounds.size else (),
            # A loss within tol² of its minimum needs last steps that gain clearly less than that.
            options={"maxiter": max_iter, "ftol": 0.1 * tol**2},
        )
        trouble = "" if result.success else f"SLSQP reported {result.message!r}"
        if result.status == ITERATION_LIMIT:
            trouble = TOO_FEW
        return _Run(self.point(result.x), int(result.nit), trouble)

    def point(self, v: Array) -> Point:
        """Evaluate the model of some variables, once for all that SLSQP asks about it."""
        z = v[: self.n]
        if self._last is None or not np.array_equal(z, self._last[0]):
            self._last = z.copy(), self.problem.evaluate(self.unscale @ z)
        return self._last[1]

    def value(self, v: Array) -> float:
        return self.point(v).value + PRICE * float(v[self.n :].sum())

    def gradient(self, v: Array) -> Array:
        own = self.point(v).gradient @ self.unscale
        return np.append(own, np.full(v.size - self.n, PRICE))

    def slack(self, v: Array) -> Array:
        """Return how far the constraints are from their bounds; it must be at least 0."""
        return np.asarray(self.share @ v[self.n :] - self.point(v).constraints)

    def slack_jacobian(self, v: Array) -> Array:
        own = self.point(v).jacobian @ self.unscale
        return np.hstack((-own, self.share))


def _status(run: _Run, n_iter: int, tol: float) -> FitStatus:
    """Describe how the solver ended."""
    violation = run.point.worst
    feasible = violation <= tol
    message = f"Stopped because {run.trouble}" if run.trouble else "Converged"
    message += "." if feasible else f", with a constraint exceeded by {violation:.2g}."
    return FitStatus(not run.trouble, feasible, violation, n_iter, message)
