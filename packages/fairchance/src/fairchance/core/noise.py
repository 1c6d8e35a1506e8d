"""Outcomes that are recorded wrongly at known rates.

With P(recorded good | bad) = e₁ and P(recorded bad | good) = e₀, a true share f of bad outcomes is
recorded as f·(1 − e₁) + (1 − f)·e₀. So a bound on f is a bound on the recorded share, and all that
is linear in outcomes can be estimated without bias from recorded ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairchance.core.saved import saved
from fairchance.core.utility import Utility
from fairchance.errors import InputError

__all__ = ["OutcomeNoise"]


@saved
@dataclass(frozen=True)
class OutcomeNoise:
    """How often outcomes are recorded wrongly, with the same rates for all applicants.

    Parameters
    ----------
    bad_as_good, good_as_bad
        P(recorded good | bad) and P(recorded bad | good); together below one.

    Examples
    --------
    >>> noise = OutcomeNoise(bad_as_good=0.05, good_as_bad=0.05)
    >>> round(noise.recorded_fdr(0.15), 4), round(noise.true_fdr(0.185), 4)
    (0.185, 0.15)
    """

    bad_as_good: float = 0.0
    good_as_bad: float = 0.0

    def __post_init__(self) -> None:
        rates = (self.bad_as_good, self.good_as_bad)
        if not (min(rates) >= 0 and sum(rates) < 1):
            raise InputError(
                f"bad_as_good and good_as_bad are rates of wrong outcomes and must be at least 0 "
                f"and together below 1, got {rates[0]} and {rates[1]}."
            )

    @property
    def kept(self) -> float:
        """1 − e₀ − e₁, the part of a difference between shares that recorded outcomes keep."""
        return 1 - self.bad_as_good - self.good_as_bad

    def recorded_fdr(self, fdr: float) -> float:
        """Return the recorded share of bad for a true share ``fdr``."""
        return fdr * self.kept + self.good_as_bad

    def true_fdr(self, recorded: float) -> float:
        """Return the true share of bad for a recorded one, in [0, 1]."""
        return float(self.true_shares(np.float64(recorded)))

    def true_shares(self, recorded: ArrayLike) -> NDArray[np.float64]:
        """Return ``true_fdr`` of several recorded shares."""
        true = (np.asarray(recorded) - self.good_as_bad) / self.kept
        return np.asarray(np.clip(true, 0.0, 1.0))

    def recorded_utility(self, utility: Utility) -> Utility:
        """Return a utility with the same expectation over recorded outcomes as over true ones."""
        bad0, good0, bad1, good1 = utility.gamma
        return Utility(*self._unbiased(bad0, good0), *self._unbiased(bad1, good1))

    def _unbiased(self, bad: float, good: float) -> tuple[float, float]:
        """Return the values of a recorded bad and a recorded good outcome."""
        return (
            ((1 - self.good_as_bad) * bad - self.bad_as_good * good) / self.kept,
            ((1 - self.bad_as_good) * good - self.good_as_bad * bad) / self.kept,
        )

    def badness(self, recorded_bad: ArrayLike) -> NDArray[np.float64]:
        """Return a number per outcome with mean 1 for bad and 0 for good ones."""
        when_bad, when_good = self._unbiased(1.0, 0.0)
        return np.where(np.asarray(recorded_bad, np.bool_), when_bad, when_good)

    @property
    def most_bad(self) -> float:
        """The largest ``badness``."""
        return self._unbiased(1.0, 0.0)[0]
