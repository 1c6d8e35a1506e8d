"""What to deploy while nothing is certified: small at first, braked, and without a promise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from secondlook.methods.certified.ladder import Ladder, Reach
from secondlook.methods.certified.ranking import Ranking
from secondlook.methods.certified.rung_estimates import RungEstimates

__all__ = ["OUTER", "Pilot", "pilot_words"]

OUTER = 0.7  # share of applicants beyond which no pilot accepts for sure
_SHARE = (0.02, 0.10)  # of applicants whom a pilot accepts for sure, least and most at the start
_PEOPLE = (60, 150)  # the same in people a batch, where that is less
_STEP = 1.5
_SAFE = 0.7  # standard errors below α before a pilot moves outwards
_BRAKE = 0.9  # of α: what a pilot's estimated FDR may be
_ENOUGH = 30  # outcomes before a pilot's estimate means anything
_TRUST = 100  # outcomes since a freeze at which they count as much as all before


@dataclass
class Pilot:
    """How far a pilot reaches, and when it moves.

    Attributes
    ----------
    alpha
        α.
    share
        The best share of applicants that a pilot accepts for sure.
    """

    alpha: float
    share: float

    @staticmethod
    def start(ranking: Ranking, alpha: float, n_batch: int) -> Pilot:
        """Return the first pilot: as far as the model itself dares, within bounds."""
        low, high = max(_SHARE[0], _PEOPLE[0] / n_batch), min(_SHARE[1], _PEOPLE[1] / n_batch)
        share = float(np.clip(ranking.knee(1.5 * alpha), low, max(low, high)))
        return Pilot(alpha, min(share, _SHARE[1]))

    def rung(self, reach: Reach, estimates: RungEstimates) -> tuple[int, float]:
        """Return the rung to try, and the share that the pilot reaches if it is tried.

        Outwards if it looks safe and outcomes of where it stands are in, inwards if it does not
        look safe. Nothing changes yet.
        """
        ladder, reached = reach.ladder, self.share
        enough = estimates.rows.settled().size >= _ENOUGH
        if enough and ladder.nearest(reached) <= ladder.nearest(estimates.widest):
            share, error = self._mistakes(reach, ladder.nearest(reached), estimates)
            if share + _SAFE * error <= self.alpha and share <= _BRAKE * self.alpha:
                reached = min(OUTER, _STEP * reached)
        rung = max(ladder.starts[0][0], ladder.nearest(reached))
        while (
            enough and rung > 0 and self._mistakes(reach, rung, estimates)[0] > _BRAKE * self.alpha
        ):
            rung -= 1
        return rung, min(reached, float(ladder.grid[rung])) if enough else reached

    @staticmethod
    def _mistakes(reach: Reach, rung: int, estimates: RungEstimates) -> tuple[float, float]:
        """Return the estimated FDR; outcomes since the freeze count the more, the more they are."""
        share, error = estimates.mistakes(reach, rung)
        since = reach.ladder.frozen
        rows = estimates.rows
        new = int(np.sum(rows["round"][rows.settled()] >= since))
        if new < _ENOUGH:
            return share, error
        fresh, _ = estimates.mistakes(reach, rung, since)
        weight = new / (new + _TRUST)
        return weight * fresh + (1 - weight) * share, error


def pilot_words(deployed: float, nearest: Ladder, start: int, alpha: float, delta: float) -> str:
    """Say what is in use, that nothing is promised, and how far a certificate is.

    Parameters
    ----------
    deployed
        The best share that is accepted for sure.
    nearest, start
        The ladder that is nearest to a certificate, deployed or not, and the rung it comes with.
    alpha, delta
        What was to be promised.
    """
    more, evidence = nearest.more_outcomes(start), nearest.wealth.best[start]
    needed = f"about {np.ceil(more):,.0f} more outcomes are needed if they are like those so far"
    if not np.isfinite(more):
        why = (
            "outcomes so far do not speak for it"
            if nearest.n_used
            else "no outcome is in its tests yet"
        )
        needed = f"{why}, so nobody can say how many more are needed"
    return (
        f"No acceptance rule has been shown to keep bad acceptances at or below {alpha:g} with "
        f"confidence {1 - delta:g}. The rule in use is a pilot: it takes the best "
        f"{deployed:.1%} and a soft edge, and carries no promise. Nearest to a certificate is the "
        f"best {nearest.grid[start]:.1%}: the evidence that it keeps the bound, the log wealth of "
        f"somebody who bets on that, stands at {evidence:.2f} and must reach "
        f"{nearest.threshold(start):.2f}; {needed}."
    )
