"""The best rule under the FDR bound: a price of mistakes and a threshold on net utility.

With known class probabilities the problem is to give each applicant a decision of greatest expected
utility while at most a share α of the accepted are mistakes. Its Lagrangian separates by applicant:
each gets the decision with the largest ``u_d − λ·(b_d − α)`` if it accepts, ``u_d`` if it rejects.
So the optimum ranks applicants by ``max_d (u_d − λ·b_d) − max_r u_r`` and accepts from −λ·α on.

Here λ is searched, and for each λ the threshold is the best of all cuts on held-out outcomes, which
keeps the bound even if the probabilities are slightly wrong. For two classes and two decisions the
ranking is that of P(good) for every λ, and the threshold that of ``shared_threshold``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairchance.learners.curves import TOLERANCE, Curve, distinct_ends, exact_weights, running
from fairchance_lab.many_classes.decision_table import SCORE_DIGITS, DecisionTable

__all__ = ["ClassRule", "best_rule", "dual_multipliers"]

Floats = NDArray[np.float64]

# Prices of a mistake to try, in units of the largest difference of utility.
_PRICES = 2.0 ** np.arange(-6, 7)
_BISECTIONS = 50


@dataclass(frozen=True)
class ClassRule:
    """A rule, with its results on the rows it was chosen on.

    Attributes
    ----------
    multiplier
        λ, the price of a mistake in the ranking and in the choice of a decision.
    threshold
        Score from which applicants are accepted; +inf accepts none.
    utility
        Mean utility, rejected applicants included.
    fdr
        Weighted share of mistakes among the accepted; 0 if none is accepted.
    selection_rate
        Weighted share of the accepted.
    feasible
        Whether the least selection rate is met; the FDR bound always is.
    """

    multiplier: float
    threshold: float
    utility: float
    fdr: float
    selection_rate: float
    feasible: bool


def best_rule(
    table: DecisionTable,
    p: Floats,
    outcome: NDArray[np.integer],
    weight: Floats,
    *,
    max_fdr: float,
    min_selection_rate: float = 0.0,
) -> ClassRule:
    """Return the rule of greatest utility on held-out rows under both constraints.

    If the least selection rate cannot be met, the FDR bound is kept, the shortfall minimised, and
    then utility maximised. Ties go to the smallest λ, then to the fewest accepted.

    Parameters
    ----------
    table
        Utility of the decisions.
    p
        Probabilities of the recorded classes of the held-out rows.
    outcome, weight
        Code of the recorded class and weight of each row; rows of weight 0 are ignored.
    max_fdr, min_selection_rate
        The constraints.

    Examples
    --------
    >>> from fairchance_lab.many_classes.decision_table import read_table
    >>> table = read_table([[0, 0], [-500, 200]], None, None, None, ("bad", "good"))
    >>> good = np.array([0.9, 0.8, 0.6, 0.4])
    >>> rows = np.column_stack([1 - good, good]), np.array([1, 1, 0, 1]), np.ones(4)
    >>> rule = best_rule(table, *rows, max_fdr=0.1)
    >>> round(rule.threshold, 3), round(rule.utility, 6)
    (0.7, 100.0)
    """
    used = np.flatnonzero(weight)
    rows = _HeldOutRows(table, p[used], outcome[used], exact_weights(weight[used]))
    tried = np.concatenate(
        [[0.0], _PRICES * table.unit, dual_multipliers(table, rows.p, rows.weight, max_fdr)]
    )
    best: _RankedCut | None = None
    for multiplier in np.unique(tried).tolist():
        cut = rows.best_cut(multiplier, max_fdr + TOLERANCE, min_selection_rate - TOLERANCE)
        if best is None or cut.is_better_than(best):
            best = cut
    assert best is not None
    return ClassRule(
        best.multiplier,
        best.threshold,
        best.utility * table.unit + rows.utility_of_rejecting(),
        float(np.clip(best.mistakes / best.accepted, 0.0, 1.0)) if best.accepted else 0.0,
        best.accepted,
        best.shortfall <= 0,
    )


@dataclass(frozen=True)
class _RankedCut:
    """The best cut of a ranking; amounts are shares of all weight, utility is in units."""

    multiplier: float
    threshold: float
    utility: float
    mistakes: float
    accepted: float
    shortfall: float

    def is_better_than(self, other: _RankedCut) -> bool:
        missing, others = max(self.shortfall, 0.0), max(other.shortfall, 0.0)
        if abs(missing - others) > TOLERANCE:
            return missing < others
        return self.utility > other.utility + 1e-10


@dataclass(frozen=True)
class _HeldOutRows:
    """Held-out rows with positive weights."""

    table: DecisionTable
    p: Floats
    outcome: NDArray[np.integer]
    weight: Floats

    @property
    def total(self) -> float:
        return float(self.weight.sum()) or 1.0

    def utility_of_rejecting(self) -> float:
        """Return the mean utility if every row gets its best decision that rejects."""
        rejecting = self.table.evaluate(self.p, 0.0).rejecting
        utility = self.table.recorded_utility[rejecting, self.outcome]
        return float(self.weight @ utility) / self.total

    def best_cut(self, multiplier: float, max_fdr: float, least: float) -> _RankedCut:
        best = self.table.evaluate(self.p, multiplier)
        utility = self.table.recorded_utility / self.table.unit
        gain = utility[best.accepting, self.outcome] - utility[best.rejecting, self.outcome]
        order, ends = distinct_ends(best.score)
        accepted = running(self.weight, order, ends) / self.total
        mistake = self.table.recorded_mistakes[best.accepting, self.outcome]
        mistakes = running(self.weight * mistake, order, ends) / self.total
        # Each acceptance costs slightly more than the rounding of these sums, so that of equal
        # cuts the one with the fewest accepted wins.
        cost = 1e-12 + 4 * self.weight.size * float(np.finfo(np.float64).eps)
        value = running(self.weight * (gain - cost), order, ends) / self.total
        shortfall = np.where(mistakes <= max_fdr * accepted, least - accepted, np.inf)
        lowest = max(float(shortfall.min()), 0.0)  # finite: the empty cut keeps the FDR bound
        at = int(np.argmax(np.where(shortfall <= lowest, value, -np.inf)))
        return _RankedCut(
            multiplier,
            _threshold(best.score[order][ends], at),
            float(value[at] + cost * accepted[at]),
            float(mistakes[at]),
            float(accepted[at]),
            float(shortfall[at]),
        )


def _threshold(scores: Floats, cut: int) -> float:
    """Return the threshold of a cut of distinct scores, highest first."""
    empty = np.empty(0)
    threshold = Curve(scores, empty, empty, empty).threshold(cut)
    if cut == scores.size > 0:
        # Scores of another block may be rounded down, and no applicant scores lower.
        threshold -= 2 * 10.0**-SCORE_DIGITS
    return threshold


def dual_multipliers(
    table: DecisionTable, p: Floats, weight: Floats, max_fdr: float
) -> tuple[float, float]:
    """Return the λ at which expected mistakes cross the bound, from just below and just above.

    Both are 0 if the bound does not bind.
    """
    observed = np.array(table.observed)
    utility = p @ table.recorded_utility.T
    excess = (p @ table.recorded_mistakes.T)[:, observed] - max_fdr
    rejecting = utility[:, ~observed].max(axis=1)

    def too_many(multiplier: float) -> bool:
        value = utility[:, observed] - multiplier * excess
        at = value.argmax(axis=1)[:, None]
        accepted = np.take_along_axis(value, at, axis=1)[:, 0] > rejecting
        mistakes = np.take_along_axis(excess, at, axis=1)[:, 0]
        return float(weight @ (accepted * mistakes)) > 0

    below, above = 0.0, table.unit
    if weight.size == 0 or not too_many(0.0):
        return 0.0, 0.0
    for _ in range(_BISECTIONS):
        if not too_many(above):
            break
        below, above = above, 4 * above
    for _ in range(_BISECTIONS):
        middle = (below + above) / 2
        below, above = (middle, above) if too_many(middle) else (below, middle)
    return below, above
