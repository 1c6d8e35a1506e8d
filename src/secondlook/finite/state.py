"""What is known by cell."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from secondlook.finite.counts import Counts
from secondlook.finite.coverage import CellCoverage
from secondlook.finite.encoding import CellTable, Placed
from secondlook.finite.past import CellPast

__all__ = ["CellState"]


@dataclass(frozen=True)
class CellState:
    """Everything that rounds build on; arrays have an entry per cell.

    Attributes
    ----------
    table
        The known cells.
    counts
        Head counts.
    summed
        f_0's acceptance, and what every round added to coverage.
    known
        EXPLOIT of the last round; at first, where f_0 covers.
    """

    table: CellTable
    counts: Counts
    summed: NDArray[np.float64]
    known: NDArray[np.bool_]

    @staticmethod
    def begin(table: CellTable, counts: Counts, past: CellPast, rule: CellCoverage) -> CellState:
        """Return what a history leaves."""
        known = rule.begins(past.acceptance, counts.outcomes, past.given)
        return CellState(table, counts, past.acceptance, known)

    def with_batch(self, placed: Placed, past: CellPast, rule: CellCoverage) -> CellState:
        """Add a batch's people; its new cells are known only if f_0 covers them."""
        new = past.of_new(placed.table, len(self.table))
        known = rule.begins(new, np.zeros(new.size, np.int64), past.given)
        return CellState(
            placed.table,
            self.counts.with_applicants(placed.heads),
            np.concatenate([self.summed, new]),
            np.concatenate([self.known, known]),
        )

    def with_outcomes(self, good: NDArray[np.int64], bad: NDArray[np.int64]) -> CellState:
        """Add outcomes by cell."""
        return replace(self, counts=self.counts.with_outcomes(good, bad))

    def after_round(self, gained: NDArray[np.float64], exploit: NDArray[np.bool_]) -> CellState:
        """Add what a round gained in coverage."""
        return replace(self, summed=self.summed + gained, known=exploit)

    def coverage(self, rule: CellCoverage) -> NDArray[np.float64]:
        """Return w."""
        return rule.coverage(self.summed, self.counts)

    def exploit(self, rule: CellCoverage, min_outcomes: int) -> NDArray[np.bool_]:
        """Return EXPLOIT_t: what was in it before, and what is covered and observed by now."""
        covered = self.coverage(rule) > rule.threshold
        return self.known | (covered & (self.counts.outcomes >= min_outcomes))
