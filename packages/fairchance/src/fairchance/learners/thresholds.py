"""Choose the thresholds of greatest utility under every constraint, exactly.

Step 1 of Algorithm 1 in practice: given a calibrated likelihood, maximise
``Util(f, γ) = Σ γ_ij · P(f = i, Y = j)`` over thresholds on it, subject to
``P(Y = 0 | f = 1) ≤ max_fdr``, ``P(f = 1) ≥ min_selection_rate`` and, if asked, a bound on the
disparity of group rates, all over weighted held-out rows. The first two hold over all rows, or
within every group that has rows.

Constraints may be missed by 1e-12. Among equal utilities fewer people are accepted; utilities
count as equal if they differ by less than about ``(1e-12 + 4·n·eps)`` of the largest gain that one
person can bring.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairchance.core.decisions import Note
from fairchance.core.fairness import RateParity
from fairchance.core.utility import Utility
from fairchance.errors import InputError
from fairchance.learners.curves import (
    TOLERANCE,
    Curve,
    Floats,
    Points,
    ScoredRows,
    ThresholdBounds,
    absent_points,
    distinct_ends,
    make_points,
    rates_along,
    running,
)
from fairchance.learners.group_search import SearchResult, search_groups
from fairchance.learners.pair_search import search_pair

__all__ = ["OperatingPoint", "group_thresholds", "shared_threshold"]

# The least violation is found to this precision when no thresholds meet all constraints; with more
# than two groups every further digit would cost another search of many boxes.
_VIOLATION, _VIOLATION_MANY = 1e-10, 1e-6
# Enough to start that search from.
_ROUGH_GAP = 1e-2
_PAIR = 2
_CONSTRAINTS = ("joint", "per_group")


@dataclass(frozen=True)
class OperatingPoint:
    """Thresholds and their results on the rows they were chosen on.

    Parameters
    ----------
    thresholds
        One per group; accept if the score is at least the threshold, +inf rejects all.
    utility
        ``Util(f, γ)``, the mean worth per unit weight, rejected people included.
    fdr
        Weighted share of bad people among the accepted; 0 if none is accepted.
    selection_rate
        Weighted share of accepted people.
    disparity
        Largest minus smallest of the fairness constraint's rates, as a share of the largest if it
        bounds a ratio; of the attribute and rate where that is largest. 0 without a constraint.
    feasible
        Whether all constraints hold.
    gap
        Proven bound on ``(best − found) / max(|found|, 1e-12)``, where found and best are mean
        utilities minus that of rejecting all, in units of the larger of |γ11 − γ01| and
        |γ10 − γ00|; best is over all thresholds with the same least violation. 0 when exact, inf
        when the limit of work was reached before anything was proven.
    missed
        None if feasible; otherwise the constraints missed, with their values.
    """

    thresholds: Floats
    utility: float
    fdr: float
    selection_rate: float
    disparity: float
    feasible: bool
    gap: float
    missed: Note | None


def shared_threshold(
    score: ArrayLike,
    outcome: ArrayLike,
    weight: ArrayLike,
    group: ArrayLike,
    n_groups: int,
    *,
    utility: Utility,
    max_fdr: float,
    min_selection_rate: float = 0.0,
    fairness: RateParity | None = None,
    constraints: Literal["joint", "per_group"] = "joint",
) -> OperatingPoint:
    """Return the best threshold shared by all groups, by one sort and running sums.

    If no threshold meets every constraint, the FDR bound is kept, then the larger of the
    selection rate's shortfall and the disparity's excess is made least, then utility greatest.

    Parameters
    ----------
    score, outcome, weight, group
        Of the held-out rows: any finite score, 1 for good and 0 for bad, a weight ≥ 0, and a group
        code in 0 … ``n_groups`` − 1. Rows of weight 0 do not matter.
    n_groups
        Number of groups; some may have no rows.
    utility
        What is maximised.
    max_fdr, min_selection_rate, fairness
        The constraints, see the module.
    constraints
        ``"joint"``: the first two hold over all rows; ``"per_group"``: within every group.

    Examples
    --------
    >>> from fairchance.core.utility import Revenue
    >>> rows = [0.9, 0.8, 0.6, 0.4], [1, 1, 0, 1], [1, 1, 1, 1], [0, 1, 0, 1]
    >>> point = shared_threshold(*rows, 2, utility=Revenue(200, 500), max_fdr=0.1)
    >>> point.thresholds.round(3).tolist(), point.utility
    ([0.7, 0.7], 100.0)
    """
    rows = ScoredRows.of(score, outcome, weight, group, n_groups)
    task = _Task(utility, max_fdr, min_selection_rate, fairness, rows, constraints)
    order, ends = distinct_ends(rows.score)
    curve = Curve(
        rows.score[order][ends],
        running(rows.good, order, ends),
        running(rows.bad, order, ends),
        np.empty((ends.size + 1, 0)),
    )
    rates = [] if fairness is None else _shared_rates(rows, order, ends, n_groups, fairness)
    parts = [curve]
    if constraints == "per_group":
        own = [rows.group == g for g in np.unique(rows.group)]
        parts = [
            replace(
                curve,
                good=running(rows.good * mine, order, ends),
                bad=running(rows.bad * mine, order, ends),
            )
            for mine in own
        ]
    cut, feasible = _best_cut(task, curve, parts, rates)
    spread = max((task.spread(levels[:, cut]) for levels in rates), default=0.0)
    threshold = np.full(n_groups, curve.threshold(cut))
    return task.point(threshold, parts, [cut] * len(parts), spread, feasible, 0.0)


def group_thresholds(
    score: ArrayLike,
    outcome: ArrayLike,
    weight: ArrayLike,
    group: ArrayLike,
    n_groups: int,
    *,
    utility: Utility,
    max_fdr: float,
    min_selection_rate: float = 0.0,
    fairness: RateParity | None = None,
    constraints: Literal["joint", "per_group"] = "joint",
    max_gap: float = 1e-3,
) -> OperatingPoint:
    """Return the best threshold of each group: exact for two groups, within a gap for more.

    If no thresholds meet every constraint, the FDR bound is kept, then the larger of the
    selection rate's shortfall and the disparity's excess is made least (to 1e-10, with more than
    two groups to 1e-6), then utility greatest. A group without rows of positive weight gets +inf.
    With constraints per group and no fairness constraint, each group is a problem of its own.

    With more than two groups the search may stop at the relative gap ``max_gap``; the gap reported
    is the one proven, which is larger only if a limit of work was reached first. See
    :func:`shared_threshold` for the other parameters.

    Examples
    --------
    >>> from fairchance.core.utility import Revenue
    >>> rows = [0.9, 0.8, 0.6, 0.4], [1, 1, 0, 1], [1, 1, 1, 1], [0, 1, 0, 1]
    >>> point = group_thresholds(*rows, 2, utility=Revenue(200, 500), max_fdr=0.1)
    >>> point.thresholds.round(3).tolist(), point.utility
    ([0.75, 0.4], 150.0)
    """
    _check_share("max_gap", max_gap)
    if fairness is not None and fairness.attributes:
        raise InputError(
            "a constraint over attributes needs a shared threshold, got one per group; use "
            "shared_threshold, or a constraint without attributes."
        )
    rows = ScoredRows.of(score, outcome, weight, group, n_groups)
    task = _Task(utility, max_fdr, min_selection_rate, fairness, rows, constraints)
    compared = () if fairness is None else fairness.compared
    curves = [rows.curve(g, compared) for g in range(n_groups)]
    present = [g for g in range(n_groups) if curves[g].score.size]
    cuts = [0] * n_groups
    apart = constraints == "per_group" and fairness is None
    feasible, worth, bound = True, 0.0, 0.0
    for part in [[g] for g in present] if apart else [present]:
        result, met = task.search([curves[g] for g in part], max_gap)
        for g, cut in zip(part, result.cuts or (), strict=True):
            cuts[g] = cut
        feasible, worth, bound = feasible and met, worth + result.worth, bound + result.bound
    return task.point(
        np.array([c.threshold(cut) for c, cut in zip(curves, cuts, strict=True)]),
        curves,
        cuts,
        task.spread(np.array([c.rate[cut] for c, cut in zip(curves, cuts, strict=True)])),
        feasible,
        _relative(worth, bound),
    )


def _relative(worth: float, bound: float) -> float:
    """Proven gap of a search; see :class:`OperatingPoint`."""
    over = bound - worth
    # Bounds are rounded up, so a tiny remainder is no gap.
    return 0.0 if over <= TOLERANCE else over / max(abs(worth), TOLERANCE)


def _check_share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise InputError(f"{name} must be in [0, 1], got {value}.")


class _Task:
    """What is asked for: utility and constraints, over rows of a known total."""

    def __init__(
        self,
        utility: Utility,
        max_fdr: float,
        least: float,
        fairness: RateParity | None,
        rows: ScoredRows,
        constraints: str,
    ) -> None:
        if constraints not in _CONSTRAINTS:
            raise InputError(f"constraints must be one of {_CONSTRAINTS}, got {constraints!r}.")
        _check_share("max_fdr", max_fdr)
        _check_share("min_selection_rate", least)
        self.utility, self.max_fdr, self.least = utility, max_fdr, least
        self.fairness = fairness
        self.all_good, self.all_bad = float(rows.good.sum()), float(rows.bad.sum())
        self.total = self.all_good + self.all_bad
        ratio, difference = (1.0, np.inf) if fairness is None else fairness.bound
        self.bounds = ThresholdBounds(
            max_fdr + TOLERANCE,
            least - TOLERANCE,
            difference + TOLERANCE,
            ratio,
            constraints == "per_group",
        )
        # Accepting costs a trifle, so that of equal utilities the one with fewer accepted wins;
        # the trifle has to be above the rounding of sums over this many rows.
        trifle = 1e-12 + 4 * rows.score.size * float(np.finfo(np.float64).eps)
        unit = max(abs(utility.gain_good), abs(utility.gain_bad)) or 1.0
        self.gains = (utility.gain_good / unit - trifle, utility.gain_bad / unit - trifle)

    def points(self, curve: Curve, gains: tuple[float, float]) -> Points:
        """Turn a curve into points, in shares of the total weight."""
        total = self.total or 1.0
        return make_points(
            curve.good / total, curve.bad / total, curve.rate, gains, self.bounds.max_fdr
        )

    def spread(self, rates: Floats) -> float:
        """Return the disparity of the rates (columns) of groups (rows)."""
        return 0.0 if self.fairness is None else self.fairness.spread(rates.T)

    def search(self, curves: list[Curve], max_gap: float) -> tuple[SearchResult, bool]:
        """Best cuts, and whether they meet every constraint."""
        points = [self.points(c, self.gains) for c in curves]
        result, violation = _solve(points, self.bounds, max_gap), 0.0
        if result.cuts is None:
            heads = [self.points(c, (1.0, 1.0)) for c in curves]
            violation, cuts, proven = _least_violation(heads, self.bounds, result.bound == -np.inf)
            if violation > 0:
                result = _solve(points, self.bounds.relaxed(violation + TOLERANCE), max_gap)
                result = result if proven else result._replace(bound=np.inf)
            if result.cuts is None:  # the limit of work was reached, yet these are known to do
                worth = sum(float(p.worth[c]) for p, c in zip(points, cuts, strict=True))
                result = result._replace(cuts=cuts, worth=worth)
        return result, violation <= 0

    def point(
        self,
        thresholds: Floats,
        curves: list[Curve],
        cuts: list[int],
        spread: float,
        feasible: bool,
        gap: float,
    ) -> OperatingPoint:
        """Report utility, rates and violations of a cut of each curve; they share out the rows."""
        taken = [(c.good[cut], c.bad[cut]) for c, cut in zip(curves, cuts, strict=True)]
        good, bad = (float(sum(column)) for column in zip(*taken, strict=True))
        accepted, total = good + bad, self.total or 1.0
        g00, g01, g10, g11 = self.utility.gamma
        rejected = g00 * (self.all_bad - bad) + g01 * (self.all_good - good)
        rate = accepted / total
        return OperatingPoint(
            thresholds=thresholds,
            utility=float(rejected + g10 * bad + g11 * good) / total,
            fdr=bad / accepted if accepted else 0.0,
            selection_rate=rate,
            disparity=spread,
            feasible=feasible,
            gap=gap,
            missed=None if feasible else self._missed(self._bounded(curves, cuts, rate), spread),
        )

    def _bounded(self, curves: list[Curve], cuts: list[int], rate: float) -> float:
        """Return the selection rate that the constraint is about: that of all, or the lowest."""
        if not self.bounds.per_group:
            return rate
        return min(
            float((c.good[cut] + c.bad[cut]) / (c.good[-1] + c.bad[-1]))
            for c, cut in zip(curves, cuts, strict=True)
            if c.score.size
        )

    def _missed(self, rate: float, spread: float) -> Note:
        facts = {"max_fdr": float(self.max_fdr), "per_group": self.bounds.per_group}
        if rate < self.bounds.least:
            facts |= {"selection_rate": float(rate), "min_selection_rate": float(self.least)}
        allowed = np.inf if self.fairness is None else self.fairness.largest_disparity
        if spread > allowed + TOLERANCE:
            facts |= {"disparity": float(spread), "max_disparity": float(allowed)}
        return Note("constraints_missed", facts)


def _shared_rates(
    rows: ScoredRows,
    order: NDArray[np.intp],
    ends: NDArray[np.intp],
    n_groups: int,
    fairness: RateParity,
) -> list[Floats]:
    """Rates along the shared cuts: per attribute, with axes (level, cut, rate)."""
    out = []
    for level_of in fairness.levels(n_groups):
        levels = []
        for z in range(int(level_of.max()) + 1):
            mine = level_of[rows.group] == z
            good, bad = (running(w * mine, order, ends) for w in (rows.good, rows.bad))
            levels.append(rates_along(good, bad, fairness.compared))
        out.append(np.array(levels))
    return out


def _best_cut(
    task: _Task, curve: Curve, parts: list[Curve], rates: list[Floats]
) -> tuple[int, bool]:
    """Best cut of one curve, and whether it meets every constraint in each part of the rows."""
    points = task.points(curve, task.gains)
    violation = np.full(points.worth.shape, -np.inf)
    for part in parts:
        own = task.points(part, task.gains)
        share_of = own.accepted / (own.accepted[-1] or 1.0)
        violation = np.maximum(violation, task.bounds.least - share_of)
        violation[own.slack < 0] = np.inf
    for levels in rates:
        violation = np.maximum(violation, task.bounds.excess(levels))
    # Cut 0 accepts no row and keeps the FDR bound, so a cut is always left.
    least = float(violation.min())
    allowed = violation <= (0.0 if least <= 0 else least + _VIOLATION)
    return int(np.argmax(np.where(allowed, points.worth, -np.inf))), least <= 0


def _solve(points: list[Points], bounds: ThresholdBounds, max_gap: float) -> SearchResult:
    """Best cuts of any number of groups."""
    if bounds.per_group:
        return _solve_within(points, bounds, max_gap)
    if len(points) > _PAIR:
        return search_groups(points, bounds, max_gap)
    absent = absent_points(points[0].rate.shape[1] if points else 0)
    first, second = [*points, absent, absent][:_PAIR]
    cuts = search_pair(first, second, bounds)
    if cuts is None:
        return SearchResult(None, -np.inf, -np.inf)
    worth = float(first.worth[cuts[0]] + second.worth[cuts[1]])
    return SearchResult(cuts[: len(points)], worth, worth)


def _solve_within(points: list[Points], bounds: ThresholdBounds, max_gap: float) -> SearchResult:
    """Best cuts among those that keep each group's own bounds, which imply the joint ones."""
    allowed = [
        np.flatnonzero((p.slack >= 0) & (p.accepted >= bounds.least * p.accepted[-1]))
        for p in points
    ]
    if not all(cuts.size for cuts in allowed):
        return SearchResult(None, -np.inf, -np.inf)
    kept = [p.take(cuts) for p, cuts in zip(points, allowed, strict=True)]
    result = _solve(kept, replace(bounds, least=0.0, per_group=False), max_gap)
    if result.cuts is None:
        return result
    chosen = zip(allowed, result.cuts, strict=True)
    return result._replace(cuts=tuple(int(cuts[at]) for cuts, at in chosen))


def _least_violation(
    points: list[Points], bounds: ThresholdBounds, proven: bool
) -> tuple[float, tuple[int, ...], bool]:
    """Least violation under the FDR bound, by bisection, cuts that attain it, and whether proven.

    A point's worth is the share it accepts. ``proven`` says whether it is proven that no cuts meet
    the bounds as they are; if some do after all, the violation found is 0 or less.
    """
    free = np.isinf(bounds.difference)
    widest = replace(bounds, least=0.0)
    most = _solve(points, widest, 0.0 if free else _ROUGH_GAP)
    cuts = most.cuts or (0,) * len(points)
    impossible, possible = 0.0, _violation(points, cuts, bounds)
    if free and most.bound <= most.worth:
        # Without a fairness constraint nothing but accepting the most people can help.
        return possible, cuts, True
    precision = _VIOLATION if len(points) <= _PAIR else _VIOLATION_MANY
    while possible - impossible > precision:
        violation = (impossible + possible) / 2
        result = _solve(points, bounds.relaxed(violation), np.inf)
        if result.cuts is None:
            # If no cuts meet looser bounds, none meet tighter ones.
            impossible, proven = violation, result.bound == -np.inf
        else:
            cuts = result.cuts
            possible = min(violation, _violation(points, cuts, bounds))
    return possible, cuts, proven


def _violation(points: list[Points], cuts: tuple[int, ...], bounds: ThresholdBounds) -> float:
    pairs = list(zip(points, cuts, strict=True))
    if bounds.per_group:
        accepted = min(float(p.accepted[c] / p.accepted[-1]) for p, c in pairs)
    else:
        accepted = sum(float(p.accepted[c]) for p, c in pairs)
    rates = np.array([p.rate[c] for p, c in pairs])
    return max(bounds.least - accepted, float(bounds.excess(rates)))
