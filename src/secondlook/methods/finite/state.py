"""What is known by cell."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.methods.finite.counts import Counts
from secondlook.methods.finite.coverage import CellCoverage
from secondlook.methods.finite.encoding import CellTable, Placed
from secondlook.methods.finite.past import CellPast

__all__ = ["CellState"]

Heads = NDArray[np.int64]


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
    n_named
        The first cells that were named beforehand, whether or not anybody of them ever applies.
    by_group
        Good and bad outcomes with a column a group, where cells have no group and a fit may see
        them; else None.
    """

    table: CellTable
    counts: Counts
    summed: NDArray[np.float64]
    known: NDArray[np.bool_]
    n_named: int = 0
    by_group: tuple[Heads, Heads] | None = None

    @staticmethod
    def begin(
        table: CellTable,
        heads: Heads,
        outcomes: tuple[Heads, Heads],
        past: CellPast,
        rule: CellCoverage,
        *,
        n_named: int,
        by_group: bool,
    ) -> CellState:
        """Return what a history leaves; ``outcomes`` are by cell and, if so, by group."""
        good, bad = (one.reshape(len(table), -1) for one in outcomes)
        counts = Counts(heads, good.sum(axis=1), bad.sum(axis=1))
        known = rule.begins(past.acceptance, counts.outcomes, past.given)
        of_groups = (good, bad) if by_group else None
        return CellState(table, counts, past.acceptance, known, n_named, of_groups)

    def with_batch(self, placed: Placed, past: CellPast, rule: CellCoverage) -> CellState:
        """Add a batch's people; its new cells are known only if f_0 covers them."""
        new = past.of_new(placed.table, len(self.table))
        known = rule.begins(new, np.zeros(new.size, np.int64), past.given)
        by_group = self.by_group
        if by_group is not None:
            more = ((0, new.size), (0, 0))
            by_group = np.pad(by_group[0], more), np.pad(by_group[1], more)
        return replace(
            self,
            table=placed.table,
            counts=self.counts.with_applicants(placed.heads),
            summed=np.concatenate([self.summed, new]),
            known=np.concatenate([self.known, known]),
            by_group=by_group,
        )

    def with_outcomes(self, good: Heads, bad: Heads) -> CellState:
        """Add outcomes by cell, or by cell and group where there are such."""
        (good, bad), by_group = self._summed(good, bad)
        return replace(self, counts=self.counts.with_outcomes(good, bad), by_group=by_group)

    def _summed(self, good: Heads, bad: Heads) -> tuple[tuple[Heads, Heads], Any]:
        """Return changes of outcomes by cell, and the outcomes by group after them."""
        if self.by_group is None:
            return (good, bad), None
        n_cells = len(self.counts.good)
        both = [one.reshape(n_cells, -1) for one in (good, bad)]
        after = tuple(was + one for was, one in zip(self.by_group, both, strict=True))
        return (both[0].sum(axis=1), both[1].sum(axis=1)), after

    def without(
        self, applicants: Heads, good: Heads, bad: Heads, min_outcomes: int
    ) -> tuple[CellState, NDArray[np.bool_]]:
        """Take people away, and return the state and which cells stay.

        A cell that nobody is left in goes, unless it was named beforehand. One that loses outcomes
        and has fewer than it needs is to be explored again.
        """
        (good, bad), by_group = self._summed(good, bad)
        counts = self.counts.without(applicants, good, bad)
        short = (good + bad < 0) & (counts.outcomes < min_outcomes)
        stays = (counts.applicants > 0) | (applicants == 0)
        stays[: self.n_named] = True
        state = CellState(
            self.table.of(stays),
            counts.of(stays),
            self.summed[stays],
            (self.known & ~short)[stays],
            self.n_named,
            None if by_group is None else tuple(one[stays] for one in by_group),
        )
        return state, stays

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
