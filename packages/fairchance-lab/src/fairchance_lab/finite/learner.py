"""Step 1 of Algorithm 1 on cells: the best classifier of a hypothesis class, exactly.

Maximise ``Util(f, γ)`` over a distribution on cells and outcomes, subject to
``P(Y = 0 | f = 1) ≤ max_fdr``, ``P(f = 1) ≥ min_selection_rate`` and, if asked, a bound on the
disparity of group rates; the first two over all applicants or within each group. Constraints are
met to 1e-12. Of classifiers with equal utility the one that accepts fewer is returned.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from itertools import count, permutations
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairchance.core.fairness import RateParity
from fairchance.core.metrics import ConfusionRate
from fairchance.core.utility import Utility
from fairchance.errors import InputError
from fairchance.learners.curves import ThresholdBounds
from fairchance.learners.thresholds import group_thresholds
from fairchance_lab.finite.zero_one import ZeroOneSolution, maximise

__all__ = ["CONSTRAINTS", "HYPOTHESES", "CutCurve", "ExactFit", "best_classifier"]

Floats = NDArray[np.float64]
Hypothesis = Literal["cells", "threshold", "threshold_per_group"]
Constraints = Literal["joint", "per_group"]

HYPOTHESES = ("cells", "threshold", "threshold_per_group")
CONSTRAINTS = ("joint", "per_group")
_TOLERANCE = 1e-12
_ROUNDING = 1e-15
_BOXES = 300  # ranges of rates searched at most


@dataclass(frozen=True)
class ExactFit:
    """A classifier of cells, with its results on the distribution it was learned on.

    Attributes
    ----------
    accepts
        f of each cell; never True for a cell without mass.
    utility
        ``Util(f, γ)`` per unit of mass, rejected applicants included.
    gap
        Proven relative gap: no classifier of the class that meets the constraints gains more, by
        more than this share, over the utility of rejecting all.
    fdr
        Share of bad among the accepted; 0 if none is accepted.
    selection_rate
        Share of the accepted.
    disparity
        Largest minus smallest of the fairness constraint's rates, as a share of the largest if it
        bounds a ratio; 0 without a constraint.
    feasible
        Whether the constraints can be met. If not, no cell is accepted, or with constraints per
        group, no cell of the groups in which they cannot be met.
    """

    accepts: NDArray[np.bool_]
    utility: float
    gap: float
    fdr: float
    selection_rate: float
    disparity: float
    feasible: bool


def best_classifier(
    good: ArrayLike,
    bad: ArrayLike,
    group: ArrayLike | None = None,
    *,
    utility: Utility,
    max_fdr: float,
    min_selection_rate: float = 0.0,
    constraints: Constraints = "joint",
    hypothesis: Hypothesis = "cells",
    score: ArrayLike | None = None,
    fairness: RateParity | None = None,
    gap: float = 1e-4,
) -> ExactFit:
    """Return the best classifier of cells.

    Parameters
    ----------
    good, bad
        Mass of the good and bad applicants of each cell, on any scale: η_w, or μ if it is known. If
        cells hold applicants of several groups, a column per group: f then treats the groups of a
        cell alike, and groups enter the constraints only.
    group
        Group of each cell; None means a single group, or the columns of ``good`` and ``bad``.
    utility, max_fdr, min_selection_rate, fairness
        The objective and the constraints.
    constraints
        ``"joint"``: over all cells; ``"per_group"``: within every group that has mass.
    hypothesis
        ``"cells"``: every function of the cells; ``"threshold"``: a cut on the score;
        ``"threshold_per_group"``: a cut per group.
    score
        Score for cuts; None means the cell's share of good.
    gap
        Relative gap to which the 0/1 program is solved. Cuts are exact, except for a cut per group
        with more than two groups.

    Examples
    --------
    >>> from fairchance.core.utility import Revenue
    >>> mass, bad = np.array([0.25, 0.20, 0.40]), np.array([0.10, 0.20, 0.18])
    >>> fit = best_classifier(
    ...     mass * (1 - bad), mass * bad, ["A", "A", "B"], utility=Revenue(1, 1), max_fdr=0.15
    ... )
    >>> fit.accepts.tolist(), round(fit.fdr, 4)
    ([True, False, True], 0.1492)

    Two groups in each of two cells; f must treat the groups of a cell alike.

    >>> from fairchance.core.fairness import SelectionRateParity
    >>> good, bad = np.array([[0.3, 0.1], [0.1, 0.3]]), np.array([[0.0, 0.0], [0.1, 0.1]])
    >>> for fairness in (None, SelectionRateParity(0.1)):
    ...     demand = {"utility": Revenue(1, 3), "max_fdr": 0.2, "fairness": fairness}
    ...     print(best_classifier(good, bad, min_selection_rate=0.3, **demand).accepts.tolist())
    [True, False]
    [True, True]
    """
    cells = _CellMasses.of(good, bad, group, score)
    problem = _CellProblem.of(
        cells, utility, max_fdr, min_selection_rate, constraints, hypothesis, fairness
    )
    if not 0 <= gap < 1:
        raise InputError(f"gap is a share and must be in [0, 1), got {gap}.")
    parts = [cells.with_mass]
    separate = cells.good_of is None and hypothesis != "threshold"
    if constraints == "per_group" and fairness is None and separate:
        parts = cells.with_mass_by_group or parts  # groups are independent of each other
    accepts, feasible, gained, bound = np.zeros(cells.mass.size, np.bool_), True, 0.0, 0.0
    for part in parts:
        solution = _solve(problem, part, gap)
        accepts[part] = solution.accepts
        feasible &= solution.feasible
        gained, bound = gained + solution.value, bound + solution.bound
    return problem.report(ZeroOneSolution(accepts, gained, bound, feasible))


@dataclass(frozen=True)
class _CellMasses:
    """Masses as shares of the total; with groups as codes, or masses by group."""

    good: Floats
    bad: Floats
    group: NDArray[np.intp]
    score: Floats
    good_of: Floats | None
    bad_of: Floats | None

    @staticmethod
    def of(good: Any, bad: Any, group: Any, score: Any) -> _CellMasses:
        both = [np.asarray(mass, dtype=np.float64) for mass in (good, bad)]
        shared = both[0].ndim == 2 and group is None
        n = both[0].shape[0] if shared else both[0].size
        groups = np.zeros(n, np.intp) if group is None else np.asarray(group)
        shape = both[0].shape if shared else (n,)
        if both[0].shape != shape or both[1].shape != shape or groups.shape != (n,):
            raise InputError(
                f"good, bad and group must have one entry per cell, got shapes {both[0].shape}, "
                f"{both[1].shape} and {groups.shape}."
            )
        if not all(np.all((mass >= 0) & np.isfinite(mass)) for mass in both):
            raise InputError("good and bad are masses and must be finite and at least 0.")
        codes = np.unique(groups, return_inverse=True)[1].reshape(n)
        total = float(both[0].sum() + both[1].sum()) or 1.0
        parts = both[0] / total, both[1] / total
        shares = (parts[0].sum(axis=1), parts[1].sum(axis=1)) if shared else parts
        mass = shares[0] + shares[1]
        if score is None:
            scores = np.divide(shares[0], mass, out=np.zeros(n), where=mass > 0)
        else:
            scores = np.asarray(score, dtype=np.float64)
        if scores.shape != (n,) or not np.isfinite(scores[mass > 0]).all():
            raise InputError("score must be one finite number per cell.")
        good_of, bad_of = parts if shared else (None, None)
        return _CellMasses(shares[0], shares[1], codes, scores, good_of, bad_of)

    def by_group(self, part: NDArray[np.intp]) -> list[tuple[Floats, Floats]]:
        """Return the good and bad mass of some cells for each group that has mass."""
        if self.good_of is None or self.bad_of is None:
            good, bad, group = self.good[part], self.bad[part], self.group[part]
            return [(good * (group == z), bad * (group == z)) for z in np.unique(group)]
        both = zip(self.good_of[part].T, self.bad_of[part].T, strict=True)
        return [(good, bad) for good, bad in both if good.any() or bad.any()]

    @property
    def mass(self) -> Floats:
        return self.good + self.bad

    @property
    def with_mass(self) -> NDArray[np.intp]:
        """Cells with mass."""
        return np.flatnonzero(self.mass > 0)

    @property
    def with_mass_by_group(self) -> list[NDArray[np.intp]]:
        """Cells with mass, group by group."""
        known = self.with_mass
        return [known[self.group[known] == z] for z in np.unique(self.group[known])]


@dataclass(frozen=True)
class _CellProblem:
    """The objective and the constraints over cells."""

    cells: _CellMasses
    utility: Utility
    max_fdr: float
    least: float
    constraints: Constraints
    hypothesis: Hypothesis
    fairness: RateParity | None

    @staticmethod
    def of(
        cells: _CellMasses,
        utility: Utility,
        max_fdr: float,
        least: float,
        constraints: Constraints,
        hypothesis: Hypothesis,
        fairness: RateParity | None,
    ) -> _CellProblem:
        for name, value in (("max_fdr", max_fdr), ("min_selection_rate", least)):
            if not 0 <= value <= 1:
                raise InputError(f"{name} is a share and must be in [0, 1], got {value}.")
        if fairness is not None and fairness.attributes:
            raise InputError("fairness over several attributes is not supported on cells.")
        if constraints not in CONSTRAINTS:
            raise InputError(f"constraints must be one of {CONSTRAINTS}, got {constraints!r}.")
        if hypothesis not in HYPOTHESES:
            raise InputError(f"hypothesis must be one of {HYPOTHESES}, got {hypothesis!r}.")
        if cells.good_of is not None and hypothesis == "threshold_per_group":
            raise InputError("hypothesis='threshold_per_group' needs cells of one group each.")
        return _CellProblem(cells, utility, max_fdr, least, constraints, hypothesis, fairness)

    def gain(self, part: NDArray[np.intp]) -> Floats:
        """Return the gain of accepting each cell, in units of the largest gain per applicant."""
        good, bad = self.cells.good[part], self.cells.bad[part]
        unit = self.unit
        gain = self.utility.gain_good / unit * good + self.utility.gain_bad / unit * bad
        # A tiny cost of accepting, so that of equal utilities the one with fewer accepted wins.
        return np.asarray(gain - 1e-12 * (good + bad))

    @property
    def unit(self) -> float:
        return max(abs(self.utility.gain_good), abs(self.utility.gain_bad)) or 1.0

    def rows(self, part: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """Return the constraints as ``rows · f ≤ limits``, the FDR bound first."""
        cells = self.cells
        masses = [(cells.good[part], cells.bad[part])]
        if self.constraints == "per_group":
            masses = cells.by_group(part)
        allowed = self.max_fdr + _TOLERANCE
        rows = [bad - allowed * (good + bad) for good, bad in masses]
        limits = [0.0] * len(masses)
        if self.least > 0:
            for good, bad in masses:
                mass = good + bad
                rows.append(-mass / (float(mass.sum()) or 1.0))
                limits.append(_TOLERANCE - self.least)
        bounds = self.bounds
        for rate in self.compared:
            if not rate.is_of_decided:  # others are not linear in f
                for a, b in permutations(self.quotients(rate, part), 2):
                    rows.append(bounds.ratio * a.part / a.rest - b.part / b.rest)
                    at_start = bounds.ratio * a.start / a.rest - b.start / b.rest
                    limits.append(bounds.difference - at_start)
        return np.array(rows), np.array(limits)

    @property
    def compared(self) -> tuple[ConfusionRate, ...]:
        return () if self.fairness is None else self.fairness.compared

    @property
    def bounds(self) -> ThresholdBounds:
        """Return the bound on rates alone."""
        ratio, difference = (1.0, np.inf) if self.fairness is None else self.fairness.bound
        return ThresholdBounds(0.0, 0.0, difference + _TOLERANCE, ratio)

    def quotients(self, rate: ConfusionRate, part: NDArray[np.intp]) -> list[_Quotient]:
        """Return the rate of each group that may have one."""
        found = [_Quotient.of(rate, *masses) for masses in self.cells.by_group(part)]
        return [one for one in found if one.rest + np.maximum(one.whole, 0).sum() > 0]

    def rates(self, part: NDArray[np.intp], accepts: NDArray[np.bool_]) -> Floats:
        """Return the rates of all groups (rows); a column per rate that is compared."""
        kinds = [
            [mass[chosen].sum() for chosen in (~accepts, accepts) for mass in (bad, good)]
            for good, bad in self.cells.by_group(part)
        ]
        columns = [rate(*np.array(kinds).reshape(-1, 4).T) for rate in self.compared]
        return np.array(columns).reshape(len(columns), len(kinds)).T

    def report(self, solution: ZeroOneSolution) -> ExactFit:
        """Return a classifier of all cells with its results."""
        cells, accepts = self.cells, solution.accepts
        good, bad = float(cells.good @ accepts), float(cells.bad @ accepts)
        g00, g01, g10, g11 = self.utility.gamma
        rejected = g00 * (cells.bad.sum() - bad) + g01 * (cells.good.sum() - good)
        spread = 0.0
        if self.fairness is not None:
            spread = self.fairness.spread(self.rates(np.arange(cells.mass.size), accepts).T)
        return ExactFit(
            accepts=accepts,
            utility=float(rejected + g10 * bad + g11 * good),
            gap=solution.gap,
            fdr=bad / (good + bad) if good + bad > 0 else 0.0,
            selection_rate=good + bad,
            disparity=spread,
            feasible=solution.feasible,
        )


def _solve(problem: _CellProblem, part: NDArray[np.intp], gap: float) -> ZeroOneSolution:
    """Solve for some cells; the solution has an entry for each of them."""
    if part.size == 0:
        return ZeroOneSolution(np.zeros(0, np.bool_), 0.0, 0.0, feasible=problem.least <= 0)
    gain, group = problem.gain(part), problem.cells.group[part]
    if problem.hypothesis == "cells":
        windows = [problem.quotients(r, part) for r in problem.compared if r.is_of_decided]
        if windows:
            return _WindowSearch(problem, part, windows, gap).run()
        return maximise(gain, *problem.rows(part), gap)
    if problem.hypothesis == "threshold" or np.unique(group).size == 1:
        curve = CutCurve.of(problem.cells.score[part], gain, *problem.rows(part))
        rates = [curve.rates(*m, problem.compared) for m in problem.cells.by_group(part)]
        fair = problem.bounds.excess(np.array(rates)) <= 0
        return replace(curve, allowed=curve.allowed & fair).solution()
    return _cut_per_group(problem, part, gap)


class _Quotient(NamedTuple):
    """A group's rate as a function of f: ``(start + part · f) / (rest + whole · f)``."""

    start: float
    part: Floats
    rest: float
    whole: Floats

    @staticmethod
    def of(rate: ConfusionRate, good: Floats, bad: Floats) -> _Quotient:
        terms: list[Any] = []
        for counts in (rate.part, rate.whole):
            rejected, accepted = (bad * counts[i] + good * counts[i + 1] for i in (0, 2))
            terms += [float(rejected.sum()), accepted - rejected]
        return _Quotient(*terms)


class _WindowSearch:
    """The best function of cells if rates are compared whose whole depends on f.

    The rates of all groups must lie in a window that begins at ρ, their smallest, and for a given ρ
    that is linear in f. Ranges of ρ give bounds; the most promising range is split at a ρ that
    rules out its best f, and the best f for that ρ is a candidate.
    """

    def __init__(
        self,
        problem: _CellProblem,
        part: NDArray[np.intp],
        windows: list[list[_Quotient]],
        gap: float,
    ) -> None:
        self.problem, self.part, self.windows, self.gap = problem, part, windows, gap
        self.gain, self.rows, self.bounds = problem.gain(part), problem.rows(part), problem.bounds
        none = np.zeros(part.size, np.bool_)
        self.best = ZeroOneSolution(none, -np.inf, -np.inf, feasible=False)

    def run(self) -> ZeroOneSolution:
        """Return the best f found, with the bound of all ranges that were left."""
        n, ticket, proven = len(self.windows), count(), -np.inf
        heap = [(-np.inf, next(ticket), np.zeros(n), np.ones(n))]
        for _ in range(_BOXES):
            if not heap or -heap[0][0] <= self.best.value + self.gap * abs(self.best.value):
                break
            _, _, low, high = heapq.heappop(heap)
            found = self._best_within(low, high)
            if not found.feasible or found.bound <= self.best.value:
                continue
            if self._is_fair(found):
                proven = max(proven, found.bound)
                continue
            middle, k = self._split(found, low, high)
            self._is_fair(self._best_within(middle, middle))
            below, above = high.copy(), low.copy()
            below[k] = above[k] = middle[k]
            heapq.heappush(heap, (-found.bound, next(ticket), low, below))
            heapq.heappush(heap, (-found.bound, next(ticket), above, high))
        if not self.best.feasible:
            return replace(self.best, value=0.0, bound=0.0)
        return replace(self.best, bound=max(proven, self.best.value, *(-item[0] for item in heap)))

    def _best_within(self, low: Floats, high: Floats) -> ZeroOneSolution:
        """Return the best f whose rates begin in these ranges, or a bit above them."""
        rows, limits = [self.rows[0]], [self.rows[1]]
        for groups, least, most in zip(self.windows, low, self.bounds.highest(high), strict=True):
            for one in groups:
                rows += [least * one.whole - one.part, one.part - most * one.whole]
                ends = one.start - least * one.rest, most * one.rest - one.start
                limits.append(np.array(ends) + _ROUNDING)
        return maximise(self.gain, np.vstack(rows), np.concatenate(limits), self.gap)

    def _is_fair(self, found: ZeroOneSolution) -> bool:
        """Whether f keeps the bound on all rates; if so, it may be the best."""
        rates = self.problem.rates(self.part, found.accepts)
        if not found.feasible or self.bounds.excess(rates) > 0:
            return False
        self.best = max(self.best, found, key=lambda one: one.value)
        return True

    def _split(self, found: ZeroOneSolution, low: Floats, high: Floats) -> tuple[Floats, int]:
        """Return ρ of which neither side admits f, and the rate at which it is furthest off."""
        decided = [rate.is_of_decided for rate in self.problem.compared]
        rates = self.problem.rates(self.part, found.accepts)[:, decided]
        first, last = np.fmin.reduce(rates), self.bounds.lowest(np.fmax.reduce(rates))
        middle = np.where(np.isnan(first), low, np.clip((first + last) / 2, low, high))
        return middle, int(np.argmax(np.nan_to_num(last - first, nan=-np.inf)))


def _cut_per_group(problem: _CellProblem, part: NDArray[np.intp], gap: float) -> ZeroOneSolution:
    """Return a cut per group; each cell is a good and a bad row."""
    cells, n = problem.cells, part.size
    codes = np.unique(cells.group[part], return_inverse=True)[1].reshape(n)
    point = group_thresholds(
        np.tile(cells.score[part], 2),
        np.repeat([1, 0], n),
        np.concatenate([cells.good[part], cells.bad[part]]),
        np.tile(codes, 2),
        int(codes.max()) + 1,
        utility=problem.utility,
        max_fdr=problem.max_fdr,
        min_selection_rate=problem.least,
        fairness=problem.fairness,
        constraints=problem.constraints,
        max_gap=gap,
    )
    if not point.feasible:
        return ZeroOneSolution(np.zeros(n, np.bool_), 0.0, 0.0, feasible=False)
    accepts = cells.score[part] >= point.thresholds[codes]
    value = float(problem.gain(part) @ accepts)
    return ZeroOneSolution(accepts, value, value + point.gap * abs(value), feasible=True)


@dataclass(frozen=True)
class CutCurve:
    """All cuts on a score of some cells, from rejecting all to accepting all.

    Attributes
    ----------
    cut_of
        For each cell the number of the first cut that accepts it, from 1; cut 0 rejects all.
    gain
        Gain of each cut.
    allowed
        Whether each cut meets the constraints.
    """

    cut_of: NDArray[np.intp]
    gain: Floats
    allowed: NDArray[np.bool_]

    @staticmethod
    def of(score: Floats, gain: Floats, rows: Floats, limits: Floats) -> CutCurve:
        """Return the cuts under ``rows · f ≤ limits``; cells of equal score share a cut."""
        distinct, position = np.unique(score, return_inverse=True)
        cut_of = distinct.size - position.reshape(score.shape)
        n_cuts = distinct.size + 1
        curve = CutCurve(cut_of, np.zeros(n_cuts), np.zeros(n_cuts, np.bool_))
        loads = np.array([curve.accepted(row) for row in rows])
        allowed = np.all(loads <= limits[:, None], axis=0)
        return CutCurve(cut_of, curve.accepted(gain), allowed)

    def accepted(self, weight: Floats) -> Floats:
        """Return the weight that each cut accepts."""
        return np.cumsum(np.bincount(self.cut_of, weight, self.gain.size))

    def rates(self, good: Floats, bad: Floats, compared: tuple[ConfusionRate, ...]) -> Floats:
        """Return the rates of some cells (columns) at each cut."""
        kinds = [self.rejected(bad), self.rejected(good), self.accepted(bad), self.accepted(good)]
        return np.array([rate(*kinds) for rate in compared]).reshape(-1, self.gain.size).T

    def rejected(self, weight: Floats) -> Floats:
        """Return the weight that each cut rejects, without rounding where that is none."""
        late = np.bincount(self.cut_of, weight, self.gain.size)[::-1]
        return np.append(np.cumsum(late)[::-1][1:], 0.0)

    def solution(self) -> ZeroOneSolution:
        """Return the best allowed cut."""
        if not self.allowed.any():
            return ZeroOneSolution(np.zeros(self.cut_of.size, np.bool_), 0.0, 0.0, feasible=False)
        cut = int(np.argmax(np.where(self.allowed, self.gain, -np.inf)))
        value = float(self.gain[cut])
        return ZeroOneSolution(self.cut_of <= cut, value, value, feasible=True)
