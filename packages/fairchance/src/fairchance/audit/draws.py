"""Whether something happened as often as its chances say, at whatever moment one looks.

Let X_i be 1 with probability p_i given all that came before, and else 0. For any λ ≥ 0

    exp(λ Σ(X_i − p_i) − (e^λ − 1 − λ) Σ p_i(1 − p_i))

is a supermartingale that starts at 1 (Freedman 1975), and so is its mean over several λ, and over
X_i and 1 − X_i. By Ville's inequality it ever reaches 1/error with a probability of at most
``error``. It needs three sums only, which a round can keep.

**Draws.** X_i says whether an applicant was accepted, and p_i is the recorded chance.

**Losses.** Accepted applicants of a round may be lost: not taken, withdrawn, or rejected by hand.
If that has nothing to do with exploration, each applicant of the round who is not lost yet is the
next one with equal chances. So X_i says whether the one lost next was explored, and p_i is the
share of the explored among those not lost yet. Of k that are lost together, a number like that of
k draws without replacement were explored, and the draws with replacement that are counted here
vary more (Hoeffding 1963). This holds whatever the delays and the number of rounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

__all__ = ["Tally", "explored_among_lost"]

_SHIFTS = np.geomspace(0.002, 3.0, 32)  # λ, small ones for many draws
_VARIATION = np.expm1(_SHIFTS) - _SHIFTS


@dataclass(frozen=True)
class Tally:
    """How often something happened, and how often its chances let expect.

    Attributes
    ----------
    count, expected, variance
        ΣX_i, Σp_i and Σp_i(1 − p_i).
    """

    count: int = 0
    expected: float = 0.0
    variance: float = 0.0

    def __add__(self, other: Tally) -> Tally:
        """Return both together."""
        return Tally(
            self.count + other.count,
            self.expected + other.expected,
            self.variance + other.variance,
        )

    def p(self, *, only_more: bool = False) -> float:
        """Return a p-value that is right at all times: it is ever ≤ error with a chance ≤ error.

        ``only_more`` if happening too seldom says nothing.

        Examples
        --------
        >>> fair, drawn_until_accepted = Tally(118, 110.0, 90.0), Tally(190, 110.0, 90.0)
        >>> fair.p(), drawn_until_accepted.p() < 1e-6
        (1.0, True)
        """
        more = self.count - self.expected
        sides = (more,) if only_more else (more, -more)
        bets = [_SHIFTS * side - _VARIATION * self.variance for side in sides]
        wealth = np.logaddexp.reduce(np.concatenate(bets)) - math.log(len(bets) * _SHIFTS.size)
        return min(1.0, math.exp(-wealth)) if wealth < 700 else 0.0


def explored_among_lost(
    losses: Iterable[tuple[int, int, int]], accepted: Mapping[int, tuple[int, int]]
) -> Tally:
    """Return how many of the lost were explored, and how many chance lets expect.

    Parameters
    ----------
    losses
        For each moment at which applicants were lost, in order: their round, and how many of them
        were explored, and others.
    accepted
        By round, how many of the accepted were explored, and others.

    Examples
    --------
    >>> explored_among_lost([(1, 1, 0), (1, 0, 2)], {1: (10, 30)})  # doctest: +ELLIPSIS
    Tally(count=1, expected=0.7115..., variance=0.5425...)
    """
    left = {round: list(counts) for round, counts in accepted.items()}
    count, expected, variance = 0, 0.0, 0.0
    for round, explored, others in losses:
        now = left[round]
        n, p = explored + others, now[0] / sum(now)
        count, expected, variance = count + explored, expected + n * p, variance + n * p * (1 - p)
        now[0] -= explored
        now[1] -= others
    return Tally(count, expected, variance)
