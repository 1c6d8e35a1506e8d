"""Local solutions of the smooth problem, and a search among several where one may not do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtrs

from secondlook.learners.box_qp import Array
from secondlook.learners.smooth_problem import SmoothProblem
from secondlook.learners.sqp import Solution, minimise

__all__ = ["FitStatus", "solve"]

# A start on every k-th row pays once those are many, and many times the coefficients.
LEAST_ROWS, ROWS_PER_COEFFICIENT, MOST_THINNING, LEAST_THINNING = 5000, 100, 10, 4
# How exactly to solve for a start; one in float32 pays from so many numbers.
THINNED_TOL, ROUNDED_TOL, ROUNDED_FROM = 1e-3, 1e-5, 100_000
# Where second derivatives cost more than an evaluation, the first steps are taken on so few rows
# that only a benign problem may go on from there: one whose Lagrangian curves up everywhere by at
# least this part of the metric.
FEWEST_PER_COEFFICIENT, ROUGH_TOL, BENIGN = 20, 0.3, 0.15
# A model may be far from the best if its loss is this many times that of giving everybody the mean
# outcome.
UNLIKELY = 2.0
# The search for other starts: on so many rows, runs of so many steps, the best of which go on.
SEARCH_ROWS, SEARCH_STEPS, SEARCH_TOL, KEPT = 2000, 30, 1e-4, 2
# They go on if their loss is lower by this share.
WORTHWHILE = 1e-4
# Its random starts: drawn, started from, how often, and the range of their lengths.
DRAWN, PROMISING, BATCHES, SHORTEST, LONGEST = 300, 6, 4, 1.0, 30.0


@dataclass(frozen=True)
class FitStatus:
    """How a solver ended.

    Parameters
    ----------
    converged
        Whether the stopping rule was met: of the constrained problem, or of least violation.
    feasible
        Whether no constraint is exceeded by more than the tolerance.
    violation
        Largest amount by which a constraint is exceeded, 0 if none is.
    n_iter
        Steps tried on all rows.
    message
        One sentence for people.
    """

    converged: bool
    feasible: bool
    violation: float
    n_iter: int
    message: str


def solve(
    problem: SmoothProblem, start: Array | None, tol: float, max_iter: int
) -> tuple[Array, FitStatus]:
    """Solve locally, and where there are signs that this may not do, from other starts too.

    The FDR is first bounded in its easier form, which bends less; the ratio decides in the end.
    The signs are: a run that ended badly, a very unlikely model, and curvature of the Lagrangian
    that is negative in some direction. In the ordinary case there is none of them, and nothing
    else is done.
    """
    constrained = problem.bounds.size > 0
    solution = _descend(problem, start, tol, -(-max_iter // 2) if constrained else max_iter)
    n_iter = solution.n_iter
    problem.use_ratio()
    if constrained and n_iter < max_iter and _doubtful(problem, solution, tol):
        ends = [solution]
        usable = not solution.trouble and _excess(problem, solution) <= tol
        for x in _search(problem, solution.point.x if usable else None):
            if n_iter < max_iter:
                ends.append(minimise(problem, x, tol=tol, max_iter=max_iter - n_iter))
                n_iter += ends[-1].n_iter
        solution = min(ends, key=lambda s: _rank(problem, s, tol))
    return solution.point.x, _status(solution.trouble, _excess(problem, solution), tol, n_iter)


class _Easier(NamedTuple):
    """A problem with nearly the same solution, how exactly to solve it, and when to believe it."""

    problem: SmoothProblem
    tol: float
    least_curvature: float = -np.inf

    def may_start(self, end: Solution) -> bool:
        """Whether a solution of the harder problem may begin where this one ended."""
        return (
            not end.trouble
            and bool(np.isfinite(end.hessian).all())
            and end.point.worst <= max(self.tol, THINNED_TOL)
            and (
                self.least_curvature < 0 or _convex(end.hessian - self.least_curvature * end.metric)
            )
        )


def _descend(problem: SmoothProblem, start: Array | None, tol: float, max_iter: int) -> Solution:
    """Solve from a start if given, else from the solution of an easier problem.

    Easier is the same problem in float32, and for that the one on fewer rows.
    """
    like, used = None, 0
    easier = _easier(problem) if start is None else None
    if easier is not None:
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is not believed
            rough = _descend(easier.problem, None, max(tol, easier.tol), max_iter)
        # Steps in float32 on all rows count, those on fewer rows do not.
        used = rough.n_iter if len(easier.problem.X) == len(problem.X) else 0
        if easier.may_start(rough):
            start, like = rough.ahead, rough
    first = problem.start() if start is None else start
    end = minimise(problem, first, like, tol=tol, max_iter=max(max_iter - used, 1))
    return replace(end, n_iter=min(end.n_iter + used, max_iter))


def _doubtful(problem: SmoothProblem, solution: Solution, tol: float) -> bool:
    """Whether there is a sign that another start may end better."""
    return (
        bool(solution.trouble)
        or _excess(problem, solution) > tol
        or solution.point.value > UNLIKELY * problem.loss_of_the_mean()
        or not _convex(solution.hessian)
    )


def _easier(problem: SmoothProblem) -> _Easier | None:
    """Return a problem with nearly the same solution that takes less time, if there is one."""
    rounded = problem.rounded() if problem.X.size >= ROUNDED_FROM else None
    if rounded is not None:
        return _Easier(rounded, ROUNDED_TOL)
    size = problem.l2.size
    least = max(LEAST_ROWS, ROWS_PER_COEFFICIENT * size)
    thinned = problem.thinned(least, MOST_THINNING, LEAST_THINNING)
    if thinned is not None:
        return _Easier(thinned, THINNED_TOL)
    if problem.hessian_cost < 1:
        return None
    few = problem.thinned(FEWEST_PER_COEFFICIENT * size, MOST_THINNING, LEAST_THINNING)
    return None if few is None else _Easier(few, ROUGH_TOL, BENIGN)


def _convex(hessian: Array) -> bool:
    """Whether no direction curves down, but for rounding."""
    matrix = hessian.copy()
    matrix.flat[:: len(matrix) + 1] *= 1 + 1e-6
    return bool(dpotrf(matrix, lower=1)[1] == 0)


def _search(problem: SmoothProblem, known: Array | None) -> list[Array]:
    """Solve roughly from many starts on few rows, and return the best ends.

    The starts are the mean outcome, the unconstrained fit and twice that, and random models; as
    long as no end is feasible there are more of the latter. A known solution is a start too, and
    what it leads to on the same rows is what others have to beat.
    """
    least = max(SEARCH_ROWS, ROWS_PER_COEFFICIENT * problem.l2.size)
    few = problem.thinned(least, most=problem.weight.size) or problem
    free = few.unconstrained()
    fit = minimise(free, free.start(), tol=1e-3, max_iter=20)
    starts = [few.start(), fit.point.x, 2 * fit.point.x]
    if known is not None:
        starts.insert(0, known)
    ends: list[Solution] = []
    # The same rows give the same model, so the draws are always the same too.
    rng = np.random.default_rng(0)
    for _ in range(BATCHES):
        starts += _promising(few, fit, rng)
        ends += [minimise(few, x, tol=SEARCH_TOL, max_iter=SEARCH_STEPS) for x in starts]
        if min(_excess(few, end) for end in ends) <= SEARCH_TOL:
            break
        starts = []
    ranks = [_rank(few, end, SEARCH_TOL) for end in ends]
    order = sorted(range(len(ends)), key=ranks.__getitem__)[:KEPT]
    if known is not None:
        violation, loss = ranks[0]
        order = [i for i in order if ranks[i] < (violation, (1 - WORTHWHILE) * loss)]
    return [ends[i].point.x for i in order]


def _promising(problem: SmoothProblem, fit: Solution, rng: np.random.Generator) -> list[Array]:
    """Of many random models those that violate least, which takes one pass over the rows.

    A model is a multiple of the unconstrained fit plus a deviation of random direction, evenly
    spread in the metric of its Hessian (so that the units of features do not matter) and of random
    length: long ones decide sharply, which is where tight bounds can be met.
    """
    matrix = fit.hessian.copy()
    matrix.flat[:: len(matrix) + 1] *= 1 + 1e-6
    root, _ = dpotrf(matrix, lower=1)
    direction = rng.normal(size=(fit.point.x.size, DRAWN))
    direction /= np.linalg.norm(direction, axis=0)
    lengths = np.exp(rng.uniform(np.log(SHORTEST), np.log(LONGEST), size=DRAWN))
    deviation, _ = dtrtrs(root, direction * lengths, lower=1, trans=1)
    models = deviation.T + rng.uniform(0, 3, size=(DRAWN, 1)) * fit.point.x
    violation = problem.total_violations(models)
    return list(models[np.argsort(violation)[:PROMISING]])


def _excess(problem: SmoothProblem, solution: Solution) -> float:
    """Largest excess over a bound, with the FDR's as a ratio."""
    return float(problem.bounds.values(solution.point.cache.sums).max(initial=0.0))


def _rank(problem: SmoothProblem, solution: Solution, tol: float) -> tuple[float, float]:
    """Order solutions: by total violation (none if all are within tolerance), then by loss."""
    c = problem.bounds.values(solution.point.cache.sums)
    total = float(np.maximum(c, 0.0).sum()) if c.max(initial=0.0) > tol else 0.0
    return total, solution.point.value


def _status(trouble: str, violation: float, tol: float, n_iter: int) -> FitStatus:
    """Put how the solver ended into a sentence."""
    feasible = violation <= tol
    message = f"Stopped because {trouble}" if trouble else "Converged"
    message += "." if feasible else f", with a constraint exceeded by {violation:.2g}."
    return FitStatus(not trouble, feasible, violation, n_iter, message)
