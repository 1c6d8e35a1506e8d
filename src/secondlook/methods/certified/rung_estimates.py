"""What a rung would do, estimated from our own outcomes: it chooses policies, it proves nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from secondlook.core.noise import OutcomeNoise
from secondlook.core.utility import Utility
from secondlook.methods.certified.evidence import RATIO_CAP
from secondlook.methods.certified.ladder import Reach
from secondlook.methods.certified.own_rows import OwnRows

__all__ = ["RungEstimates"]

Floats = NDArray[np.float64]
_GROWTH_ROUNDS = 12  # rounds on whose evidence a start is chosen


@dataclass(frozen=True)
class RungEstimates:
    """Weighted estimates over accepted people of rounds that are in the tests.

    Whoever's outcome has not come by then counts as bad, as in the tests. A person counts one over
    the mean probability with which rounds so far, by their sizes, accepted such people.

    Attributes
    ----------
    rows
        Our own accepted people.
    n_people
        People decided on so far.
    noise
        How often outcomes are recorded wrongly.
    widest
        The largest share that a round in the tests accepted for sure.
    """

    rows: OwnRows
    n_people: int
    noise: OutcomeNoise
    widest: float

    def _weights(self, rows: NDArray[np.intp]) -> Floats:
        return np.asarray(self.n_people / self.rows["p_sum"][rows])

    def worth(self, reach: Reach, utility: Utility) -> Floats:
        """Return the estimated utility of every rung of a ladder, up to a factor."""
        rows = self.rows.settled()
        outcome = (self.rows["outcome"][rows] == 1).astype(np.float64)
        utility = self.noise.recorded_utility(utility)
        gain = utility.expected(1.0, outcome) - utility.expected(0.0, outcome)
        return reach.sums(gain * self._weights(rows), rows)

    def mistakes(self, reach: Reach, rung: int, since: int = 0) -> tuple[float, float]:
        """Return the estimated FDR of a rung, and its standard error."""
        rows = self.rows.settled()
        rows = rows[self.rows["round"][rows] >= since]
        if rows.size == 0:
            return float("nan"), float("inf")
        pi = reach.ladder.policy(reach.at[rows], rung) * self._weights(rows)
        bad = self.rows["outcome"][rows] != 1
        total = pi.sum()
        if total <= 0:
            return float("nan"), float("inf")
        share = float(pi @ bad / total)
        error = float(np.sqrt((pi**2) @ (bad - share) ** 2) / total)
        return self.noise.true_fdr(share), error / self.noise.kept

    def growth(self, reach: Reach) -> Floats:
        """Return (ΣZ)²/ΣZ² of every rung on our last rounds, where ΣZ is positive."""
        ladder, known = reach.ladder, self.rows.settled()
        recent = known[self.rows["round"][known] > self.rows.settled_round - _GROWTH_ROUNDS]
        if recent.size == 0:
            return np.zeros(ladder.grid.size)
        ratio = np.minimum(
            ladder.policies(reach.at[recent]) / self.rows["p"][recent, None], RATIO_CAP
        )
        bad = self.noise.badness(self.rows["outcome"][recent] != 1)
        z = ratio * (ladder.alpha - bad[:, None])
        total, squares = z.sum(axis=0), (z**2).sum(axis=0)
        return np.where(total > 0, total**2 / np.maximum(squares, 1e-12), 0.0)
