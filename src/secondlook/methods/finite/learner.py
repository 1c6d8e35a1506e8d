"""Step 1 of Algorithm 1 on cells: the best classifier of a class, exactly.

Maximise ``Util(f, γ)`` over a distribution on cells and outcomes, subject to
``P(Y = 0 | f = 1) ≤ max_fdr``, ``P(f = 1) ≥ min_selection_rate`` and, if asked, a bound on the
disparity of group rates; the first two over everybody or within each group. Constraints may be
missed by 1e-12. Among equal utilities fewer people are accepted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secondlook.core.fairness import RateParity, disparity
from secondlook.core.utility import Utility
from secondlook.errors import InputError
from secondlook.learners.thresholds import group_thresholds
from secondlook.methods.finite.cuts import best_cut, line_of, similar_cuts
from secondlook.methods.finite.zero_one import Solution, maximise

__all__ = ["CONSTRAINTS", "HYPOTHESES", "ExactFit", "best_classifier"]

Floats = NDArray[np.float64]
Hypothesis = Literal["cells", "threshold", "threshold_per_group"]
Constraints = Literal["joint", "per_group"]

HYPOTHESES = ("cells", "threshold", "threshold_per_group")
CONSTRAINTS = ("joint", "per_group")
_TOLERANCE = 1e-12


@dataclass(frozen=True)
class ExactFit:
    """A classifier of cells and what it does on the distribution it was learned on.

    Attributes
    ----------
    accepts
        f of each cell; never True for a cell without mass.
    utility
        ``Util(f, γ)`` per unit of mass, rejected people included.
    gap
        Proven: no classifier of the class that meets the constraints has a utility, over that of
        accepting nobody, that is larger by more than this share.
    fdr
        Share of bad among the accepted; 0 when nobody is accepted.
    selection_rate
        Share of accepted people.
    disparity
        Largest minus smallest of the fairness constraint's rates; 0 without a constraint.
    feasible
        Whether the constraints can be met; if not, nobody is accepted (with constraints per group,
        nobody of the groups for which they cannot).
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
        Mass of each cell's good and bad people, on any scale: η_w, or μ itself if it is known. With
        a column a group where people of several groups are in a cell: f then treats them alike, and
        the groups enter the constraints only.
    group
        Group of each cell; None means one group, or that the columns tell.
    utility, max_fdr, min_selection_rate, fairness
        What is maximised, and under which constraints.
    constraints
        ``"joint"``: on everybody together; ``"per_group"``: within every group that has mass.
    hypothesis
        ``"cells"``: every function of the cells; ``"threshold"``: one cut on the score;
        ``"threshold_per_group"``: a cut per group.
    score
        What cuts are made on; None means the cell's share of good people.
    gap
        Relative gap to which the program over all functions is solved; cuts are exact, except for a
        cut per group under joint constraints with more than two groups.

    Examples
    --------
    >>> from secondlook.core.utility import Revenue
    >>> mass, bad = np.array([0.25, 0.20, 0.40]), np.array([0.10, 0.20, 0.18])
    >>> fit = best_classifier(
    ...     mass * (1 - bad), mass * bad, ["A", "A", "B"], utility=Revenue(1, 1), max_fdr=0.15
    ... )
    >>> fit.accepts.tolist(), round(fit.fdr, 4)
    ([True, False, True], 0.1492)

    Two groups in each of two cells; f may not tell them apart, and must accept both alike.

    >>> from secondlook.core.fairness import SelectionRateParity
    >>> good, bad = np.array([[0.3, 0.1], [0.1, 0.3]]), np.array([[0.0, 0.0], [0.1, 0.1]])
    >>> for fairness in (None, SelectionRateParity(0.1)):
    ...     demand = {"utility": Revenue(1, 3), "max_fdr": 0.2, "fairness": fairness}
    ...     print(best_classifier(good, bad, min_selection_rate=0.3, **demand).accepts.tolist())
    [True, False]
    [True, True]
    """
    cells = _Cells.of(good, bad, group, score)
    task = _Task.of(cells, utility, max_fdr, min_selection_rate, constraints, hypothesis, fairness)
    if not 0 <= gap < 1:
        raise InputError(f"gap is a share and must be in [0, 1), got {gap}.")
    parts = [cells.everybody]
    separate = cells.good_of is None and hypothesis != "threshold"
    if constraints == "per_group" and fairness is None and separate:
        parts = cells.members or parts  # nothing ties the groups together
    accepts, feasible, gained, bound = np.zeros(cells.mass.size, np.bool_), True, 0.0, 0.0
    for mine in parts:
        one = _solve(task, mine, gap)
        accepts[mine] = one.accepts
        feasible &= one.feasible
        gained, bound = gained + one.value, bound + one.bound
    return task.report(Solution(accepts, gained, bound, feasible))


@dataclass(frozen=True)
class _Cells:
    """Masses as shares of all; ``group`` as codes, or ``good_of`` and ``bad_of`` by group."""

    good: Floats
    bad: Floats
    group: NDArray[np.intp]
    score: Floats
    good_of: Floats | None
    bad_of: Floats | None

    @staticmethod
    def of(good: Any, bad: Any, group: Any, score: Any) -> _Cells:
        both = [np.asarray(one, dtype=np.float64) for one in (good, bad)]
        shared = both[0].ndim == 2 and group is None
        n = both[0].shape[0] if shared else both[0].size
        groups = np.zeros(n, np.intp) if group is None else np.asarray(group)
        shape = both[0].shape if shared else (n,)
        if both[0].shape != shape or both[1].shape != shape or groups.shape != (n,):
            raise InputError(
                f"good, bad and group must have one entry per cell, or good and bad a column a "
                f"group and no group beside, got {both[0].shape}, {both[1].shape} and "
                f"{groups.shape}."
            )
        if not all(np.all((one >= 0) & np.isfinite(one)) for one in both):
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
        return _Cells(shares[0], shares[1], codes, scores, good_of, bad_of)

    def by_group(self, mine: NDArray[np.intp]) -> list[tuple[Floats, Floats]]:
        """Return the good and bad mass of some cells, group by group, of groups that have any."""
        if self.good_of is None or self.bad_of is None:
            good, bad, group = self.good[mine], self.bad[mine], self.group[mine]
            return [(good * (group == z), bad * (group == z)) for z in np.unique(group)]
        both = zip(self.good_of[mine].T, self.bad_of[mine].T, strict=True)
        return [(good, bad) for good, bad in both if good.any() or bad.any()]

    @property
    def mass(self) -> Floats:
        return self.good + self.bad

    @property
    def everybody(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.mass > 0)

    @property
    def members(self) -> list[NDArray[np.intp]]:
        """Cells with mass, group by group."""
        known = self.everybody
        return [known[self.group[known] == z] for z in np.unique(self.group[known])]


@dataclass(frozen=True)
class _Task:
    """What is asked for, over which cells."""

    cells: _Cells
    utility: Utility
    max_fdr: float
    least: float
    constraints: Constraints
    hypothesis: Hypothesis
    fairness: RateParity | None

    @staticmethod
    def of(
        cells: _Cells,
        utility: Utility,
        max_fdr: float,
        least: float,
        constraints: Constraints,
        hypothesis: Hypothesis,
        fairness: RateParity | None,
    ) -> _Task:
        for name, value in (("max_fdr", max_fdr), ("min_selection_rate", least)):
            if not 0 <= value <= 1:
                raise InputError(f"{name} is a share and must be in [0, 1], got {value}.")
        if fairness is not None and fairness.attributes:
            raise InputError(
                "fairness over several attributes is not known to the learner of cells; make each "
                "combination of them a group, and leave attributes out."
            )
        if constraints not in CONSTRAINTS:
            raise InputError(f"constraints must be one of {CONSTRAINTS}, got {constraints!r}.")
        if hypothesis not in HYPOTHESES:
            raise InputError(f"hypothesis must be one of {HYPOTHESES}, got {hypothesis!r}.")
        if cells.good_of is not None and hypothesis == "threshold_per_group":
            raise InputError(
                "hypothesis='threshold_per_group' needs cells of one group each, got masses with a "
                "column a group; use 'cells' or 'threshold', or make a cell of each group."
            )
        return _Task(cells, utility, max_fdr, least, constraints, hypothesis, fairness)

    def gain(self, mine: NDArray[np.intp]) -> Floats:
        """Return what accepting each cell gains, in units of one person's largest gain.

        Accepting costs a trifle, so that of equal utilities the one with fewer accepted wins.
        """
        good, bad = self.cells.good[mine], self.cells.bad[mine]
        unit = self.unit
        trifle = 1e-12 * (good + bad)
        worth = self.utility.gain_good / unit * good + self.utility.gain_bad / unit * bad
        return np.asarray(worth - trifle)

    @property
    def unit(self) -> float:
        return max(abs(self.utility.gain_good), abs(self.utility.gain_bad)) or 1.0

    def rows(self, mine: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """Return the constraints as ``rows · f ≤ limits``, that on the FDR first."""
        cells = self.cells
        parts = [(cells.good[mine], cells.bad[mine])]
        if self.constraints == "per_group":
            parts = cells.by_group(mine)
        allowed = self.max_fdr + _TOLERANCE
        rows = [bad - allowed * (good + bad) for good, bad in parts]
        limits = [0.0] * len(parts)
        if self.least > 0:
            for good, bad in parts:
                mass = good + bad
                rows.append(-mass / (float(mass.sum()) or 1.0))
                limits.append(_TOLERANCE - self.least)
        if self.fairness is not None:
            rates = self._rate_rows(mine)
            for i, one in enumerate(rates):
                for other in rates[:i]:
                    rows += [one - other, other - one]
                    limits += [self.fairness.difference + _TOLERANCE] * 2
        return np.array(rows), np.array(limits)

    def _rate_rows(self, mine: NDArray[np.intp]) -> list[Floats]:
        """Return, for each group that has anybody who counts, the row whose product is its rate."""
        counted = [self.counted(good, bad) for good, bad in self.cells.by_group(mine)]
        return [one / one.sum() for one in counted if one.sum() > 0]

    def counted(self, good: Floats, bad: Floats) -> Floats:
        """Return the mass whose decisions enter the fairness constraint's rate."""
        assert self.fairness is not None
        bad_counts, good_counts = self.fairness.counts(np.array([0, 1], dtype=np.int8))
        return np.asarray(good * good_counts + bad * bad_counts)

    def report(self, solution: Solution) -> ExactFit:
        """Say what a classifier of all cells does."""
        cells, accepts = self.cells, solution.accepts
        good, bad = float(cells.good @ accepts), float(cells.bad @ accepts)
        g00, g01, g10, g11 = self.utility.gamma
        left = g00 * (cells.bad.sum() - bad) + g01 * (cells.good.sum() - good)
        spread = 0.0
        if self.fairness is not None:
            rates = self._rate_rows(np.arange(cells.mass.size))
            spread = disparity(np.array([rate @ accepts for rate in rates]))
        return ExactFit(
            accepts=accepts,
            utility=float(left + g10 * bad + g11 * good),
            gap=solution.gap,
            fdr=bad / (good + bad) if good + bad > 0 else 0.0,
            selection_rate=good + bad,
            disparity=spread,
            feasible=solution.feasible,
        )


def _solve(task: _Task, mine: NDArray[np.intp], gap: float) -> Solution:
    """Solve for some cells; the answer has an entry for each of these."""
    if mine.size == 0:
        return Solution(np.zeros(0, np.bool_), 0.0, 0.0, feasible=task.least <= 0)
    gain, group = task.gain(mine), task.cells.group[mine]
    if task.hypothesis == "cells":
        return maximise(gain, *task.rows(mine), gap)
    if task.hypothesis == "threshold" or np.unique(group).size == 1:
        return best_cut(task.cells.score[mine], gain, *task.rows(mine))
    if task.constraints == "per_group":
        return _similar_cuts(task, mine)
    return _cut_per_group(task, mine, gap)


def _similar_cuts(task: _Task, mine: NDArray[np.intp]) -> Solution:
    """One cut per group, with bounds within every group and similar rates between them."""
    assert task.fairness is not None
    cells, within = task.cells, replace(task, fairness=None)
    accepts, lines, rates, members = np.zeros(mine.size, np.bool_), [], [], []
    feasible = True
    for z in np.unique(cells.group[mine]):
        places = np.flatnonzero(cells.group[mine] == z)
        part = mine[places]
        line = line_of(cells.score[part], task.gain(part), *within.rows(part))
        counted = line.along(task.counted(cells.good[part], cells.bad[part]))
        if counted[-1] > 0:
            lines.append(line)
            rates.append(counted / counted[-1])
            members.append(places)
        else:  # nobody of this group counts
            alone = line.solution()
            accepts[places], feasible = alone.accepts, feasible and alone.feasible
    difference = task.fairness.difference + _TOLERANCE
    cuts = similar_cuts(lines, rates, difference) if lines else []
    if cuts is None or not feasible:
        return Solution(np.zeros(mine.size, np.bool_), 0.0, 0.0, feasible=False)
    for line, cut, places in zip(lines, cuts, members, strict=True):
        accepts[places] = line.cut_of <= cut
    value = float(task.gain(mine) @ accepts)
    return Solution(accepts, value, value, feasible=True)


def _cut_per_group(task: _Task, mine: NDArray[np.intp], gap: float) -> Solution:
    """One cut per group under joint constraints: each cell is a good and a bad weighted row."""
    cells, n = task.cells, mine.size
    codes = np.unique(cells.group[mine], return_inverse=True)[1].reshape(n)
    point = group_thresholds(
        np.tile(cells.score[mine], 2),
        np.repeat([1, 0], n),
        np.concatenate([cells.good[mine], cells.bad[mine]]),
        np.tile(codes, 2),
        int(codes.max()) + 1,
        utility=task.utility,
        max_fdr=task.max_fdr,
        min_selection_rate=task.least,
        fairness=task.fairness,
        max_gap=gap,
    )
    if not point.feasible:
        return Solution(np.zeros(n, np.bool_), 0.0, 0.0, feasible=False)
    accepts = cells.score[mine] >= point.thresholds[codes]
    value = float(task.gain(mine) @ accepts)
    return Solution(accepts, value, value + point.gap * abs(value), feasible=True)
