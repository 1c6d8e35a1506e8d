"""The best rule under the FDR bound: a price of mistakes and a threshold on net worth.

With known class probabilities the problem is: give each person a decision so that expected worth is
greatest while, among the accepted, mistakes are at most a share α. Its Lagrangian falls apart into
people: everybody gets the decision with the largest ``u_d − λ·(b_d − α)`` if it accepts, ``u_d`` if
not. So the optimum ranks people by ``max_d (u_d − λ·b_d) − max_r u_r`` and accepts from −λ·α on.

Here λ is searched and, for each, the threshold is the best of all cuts on held-out outcomes, which
also holds the bound where probabilities are not quite right. For two classes and two decisions the
ranking is that of P(good) whatever λ, and the threshold that of ``shared_threshold``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from secondlook.learners.curves import TOLERANCE, Curve, distinct_ends, exact_weights, running
from secondlook.methods.many_classes.decision_table import SCORE_DIGITS, DecisionTable

__all__ = ["ClassRule", "best_rule", "dual_multipliers"]

Floats = NDArray[np.float64]

# Prices of a mistake that are tried, in units of the largest difference of worth.
_PRICES = 2.0 ** np.arange(-6, 7)
_BISECTIONS = 50


@dataclass(frozen=True)
class ClassRule:
    """A rule and what it does on the rows it was chosen on.

    Attributes
    ----------
    multiplier
        λ, the price of a mistake that the ranking and the choice of a decision reckon with.
    threshold
        Score from which people are accepted; +inf accepts nobody.
    utility
        Mean worth, rejected people included.
    fdr
        Weighted share of mistakes among the accepted; 0 when nobody is accepted.
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

    If the least selection rate cannot be met, the FDR bound is kept, then the shortfall is made
    least, then utility greatest. Among equals the smallest λ wins, then the fewest accepted.

    Parameters
    ----------
    table
        What decisions are worth.
    p
        Probabilities of the recorded classes of the held-out rows.
    outcome, weight
        Code of each row's recorded class, and its weight; rows of weight 0 do not matter.
    max_fdr, min_selection_rate
        The constraints.

    Examples
    --------
    >>> from secondlook.methods.many_classes.decision_table import read_table
    >>> table = read_table([[0, 0], [-500, 200]], None, None, None, ("bad", "good"))
    >>> good = np.array([0.9, 0.8, 0.6, 0.4])
    >>> rows = np.column_stack([1 - good, good]), np.array([1, 1, 0, 1]), np.ones(4)
    >>> rule = best_rule(table, *rows, max_fdr=0.1)
    >>> round(rule.threshold, 3), round(rule.utility, 6)
    (0.7, 100.0)
    """
    used = np.flatnonzero(weight)
    rows = _Rows(table, p[used], outcome[used], exact_weights(weight[used]))
    tried = np.concatenate(
        [[0.0], _PRICES * table.unit, dual_multipliers(table, rows.p, rows.weight, max_fdr)]
    )
    best: _Cut | None = None
    for multiplier in np.unique(tried).tolist():
        cut = rows.best_cut(multiplier, max_fdr + TOLERANCE, min_selection_rate - TOLERANCE)
        if best is None or cut.is_better_than(best):
            best = cut
    assert best is not None
    return ClassRule(
        best.multiplier,
        best.threshold,
        best.worth * table.unit + rows.rejecting_all(),
        float(np.clip(best.mistakes / best.accepted, 0.0, 1.0)) if best.accepted else 0.0,
        best.accepted,
        best.shortfall <= 0,
    )


@dataclass(frozen=True)
class _Cut:
    """The best cut of one ranking; amounts are shares of all weight, worth is in units."""

    multiplier: float
    threshold: float
    worth: float
    mistakes: float
    accepted: float
    shortfall: float

    def is_better_than(self, other: _Cut) -> bool:
        missing, others = max(self.shortfall, 0.0), max(other.shortfall, 0.0)
        if abs(missing - others) > TOLERANCE:
            return missing < others
        return self.worth > other.worth + 1e-10


@dataclass(frozen=True)
class _Rows:
    """Held-out rows with positive weights."""

    table: DecisionTable
    p: Floats
    outcome: NDArray[np.integer]
    weight: Floats

    @property
    def total(self) -> float:
        return float(self.weight.sum()) or 1.0

    def rejecting_all(self) -> float:
        """Return the mean worth if everybody gets the best decision that rejects them."""
        rejected = self.table.look(self.p, 0.0).rejecting
        worth = self.table.recorded_worth[rejected, self.outcome]
        return float(self.weight @ worth) / self.total

    def best_cut(self, multiplier: float, max_fdr: float, least: float) -> _Cut:
        looked = self.table.look(self.p, multiplier)
        worth = self.table.recorded_worth / self.table.unit
        gain = worth[looked.accepting, self.outcome] - worth[looked.rejecting, self.outcome]
        order, ends = distinct_ends(looked.score)
        accepted = running(self.weight, order, ends) / self.total
        mistake = self.table.recorded_bad[looked.accepting, self.outcome]
        mistakes = running(self.weight * mistake, order, ends) / self.total
        # Accepting costs a trifle above the rounding of these sums: of equals the fewest accepted.
        trifle = 1e-12 + 4 * self.weight.size * float(np.finfo(np.float64).eps)
        value = running(self.weight * (gain - trifle), order, ends) / self.total
        shortfall = np.where(mistakes <= max_fdr * accepted, least - accepted, np.inf)
        lowest = max(float(shortfall.min()), 0.0)  # accepting nobody keeps the FDR bound
        at = int(np.argmax(np.where(shortfall <= lowest, value, -np.inf)))
        return _Cut(
            multiplier,
            _threshold(looked.score[order][ends], at),
            float(value[at] + trifle * accepted[at]),
            float(mistakes[at]),
            float(accepted[at]),
            float(shortfall[at]),
        )


def _threshold(scores: Floats, cut: int) -> float:
    """Return the threshold of a cut of distinct scores, highest first."""
    empty = np.empty(0)
    threshold = Curve(scores, empty, empty, empty).threshold(cut)
    if cut == scores.size > 0:
        # The same person may be rounded down in another block, and nobody is below.
        threshold -= 2 * 10.0**-SCORE_DIGITS
    return threshold


def dual_multipliers(
    table: DecisionTable, p: Floats, weight: Floats, max_fdr: float
) -> tuple[float, float]:
    """Return the λ at which expected mistakes pass the bound, from just below and just above.

    At most as many mistakes as the bound allows are expected above it, more below; both are 0 if
    the bound does not bind.
    """
    seen = np.array(table.observed)
    worth = p @ table.recorded_worth.T
    excess = (p @ table.recorded_bad.T)[:, seen] - max_fdr
    rejected = worth[:, ~seen].max(axis=1)

    def too_many(multiplier: float) -> bool:
        value = worth[:, seen] - multiplier * excess
        at = value.argmax(axis=1)[:, None]
        accepted = np.take_along_axis(value, at, axis=1)[:, 0] > rejected
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
