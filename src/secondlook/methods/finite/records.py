"""What was decided in a round, by cell and in numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["CellPolicy", "FiniteRound"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CellPolicy:
    """The policy of one round; arrays have an entry for each cell that was known then.

    Attributes
    ----------
    exploit
        Whether the cell was in EXPLOIT_t.
    accepts
        f_t on EXPLOIT_t; False elsewhere.
    score
        Share of good among the cell's outcomes before the round, or f_0's probability of acceptance
        in a round that follows the past.
    g
        The size of one person of the cell in the draw, relative to others.
    acceptance
        Probability with which somebody of the cell was accepted; if nobody of it applied, that of
        somebody in the place of an average person.
    """

    exploit: NDArray[np.bool_]
    accepts: NDArray[np.bool_]
    score: Floats
    g: Floats
    acceptance: Floats

    def of(self, cells: NDArray[np.bool_]) -> CellPolicy:
        """Return the policy on some of the cells, of those known then and since."""
        mine = cells[: self.exploit.size]
        return CellPolicy(
            self.exploit[mine],
            self.accepts[mine],
            self.score[mine],
            self.g[mine],
            self.acceptance[mine],
        )


@dataclass(frozen=True)
class FiniteRound:
    """What happened in one round.

    Attributes
    ----------
    round
        Number of the round, from 1.
    n_people, n_exploit_region
        Size of the batch and of its exploit region.
    n_cells, n_exploit_cells
        Known cells, and how many of them are in EXPLOIT_t.
    n_exploited, n_explored
        How many were accepted in the exploit region, and how many were explored.
    alpha_exploit
        The share of mistakes allowed to the exploited.
    carried
        Exploration budget carried to the next round, in people.
    n_outcomes
        Observed outcomes that f_t rests on.
    estimated_utility, estimated_fdr, selection_rate, disparity
        Of f_t on η_w; NaN when the past policy decides.
    gap
        Proven relative gap to the best f_t; NaN when the past policy decides.
    feasible
        Whether the constraints could be met on η_w.
    note
        What went differently from what was asked for, in one sentence; empty if nothing.
    group_mode
        What groups could change in it: ``"aware"``, ``"blind"`` or ``"audit"``.
    """

    round: int
    n_people: int
    n_exploit_region: int
    n_cells: int
    n_exploit_cells: int
    n_exploited: int
    n_explored: int
    alpha_exploit: float
    carried: float
    n_outcomes: int
    estimated_utility: float
    estimated_fdr: float
    selection_rate: float
    disparity: float
    gap: float
    feasible: bool
    note: str
    group_mode: str = field(default="aware", kw_only=True)
