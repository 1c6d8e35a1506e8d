"""The bound on mistakes, and how many applicants may be explored within it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from fairchance.core.saved import saved
from fairchance.errors import InputError

__all__ = ["ExploitOnly", "ExploitSchedule", "FdrBudget", "PowerSchedule"]

# A budget of 2.9999999999999996 applicants is three: sums of decimal fractions miss whole numbers
# by rounding alone.
_ROUNDING = 1e-9


class ExploitSchedule(Protocol):
    """α_exploit as a function of the round, before it is capped."""

    def at(self, round: int, alpha: float) -> float:
        """Return α_exploit of a round (1, 2, …) for the overall bound α."""


@saved
@dataclass(frozen=True)
class PowerSchedule:
    """α_exploit = start · round^power.

    It counts rounds, so it suits batches; for a stream of single applications take a constant.

    Parameters
    ----------
    start
        Value in round 1; None means α/2. The paper's experiments use 0.075 with α = 0.15.
    power
        Growth over rounds; the paper uses 0.2.

    Examples
    --------
    >>> PowerSchedule().at(round=1, alpha=0.15)
    0.075
    """

    start: float | None = None
    power: float = 0.2

    def at(self, round: int, alpha: float) -> float:
        """Return α_exploit of a round."""
        start = alpha / 2 if self.start is None else self.start
        return float(start * round**self.power)


@saved
@dataclass(frozen=True)
class FdrBudget:
    """The bound on mistakes and how it is shared between exploiting and exploring.

    With ``P(Y=0 | f=1) ≤ α_exploit + ε`` among the exploited and every explored applicant counted
    as bad, the whole batch stays at or below α when (Algorithm 1, step 3)
    ``n_explore ≤ (α − α_exploit − ε) · n_exploit / (1 − α)``.

    Parameters
    ----------
    alpha
        α, the bound on the false discovery rate, in (0, 1).
    exploit
        α_exploit: a constant in (0, α), or a schedule. A schedule is capped at α − slack − reserve,
        so that exploration never ends while there are candidates; a constant of α or more is an
        error.
    min_selection_rate
        λ, the least share of the exploit region to accept, in [0, 1).
    slack
        ε, the slack of both constraints.
    reserve
        The part of α that a schedule always leaves to exploration.

    Examples
    --------
    >>> budget = FdrBudget(alpha=0.15)
    >>> [round(budget.alpha_exploit(t), 4) for t in (1, 10, 40)]
    [0.075, 0.1189, 0.139]
    >>> budget.allot(round=1, n_exploit=100, carried=0.0, n_candidates=500)
    (8, 0.7058823529411757)
    """

    alpha: float = 0.15
    exploit: float | ExploitSchedule = field(default_factory=PowerSchedule)
    min_selection_rate: float = 0.0
    slack: float = 0.001
    reserve: float = 0.01

    def __post_init__(self) -> None:
        if not (isinstance(self.alpha, int | float | np.number) and 0 < self.alpha < 1):
            raise InputError(f"alpha must be in (0, 1), such as 0.15 for 15 %, got {self.alpha!r}.")
        if not 0 <= self.min_selection_rate < 1:
            raise InputError(
                f"min_selection_rate must be in [0, 1), got {self.min_selection_rate}."
            )
        if not (self.slack >= 0 and self.reserve >= 0):
            raise InputError(
                f"slack and reserve must not be negative, got {self.slack} and {self.reserve}."
            )
        if isinstance(self.exploit, int | float | np.number):
            self._check_constant(self.exploit)
        elif not callable(getattr(self.exploit, "at", None)):
            raise InputError(
                f"exploit must be a number or an object with a method at(round, alpha), "
                f"got {self.exploit!r}."
            )
        elif self.cap <= 0:
            raise InputError(
                f"slack + reserve must be below alpha = {self.alpha}, got "
                f"{self.slack} + {self.reserve}."
            )

    def _check_constant(self, exploit: float | np.number[Any]) -> None:
        if not 0 < exploit < self.alpha:
            raise InputError(
                f"exploit (α_exploit) must be in (0, alpha) = (0, {self.alpha}), "
                f"got {exploit}; lower it, or give a schedule, which is capped for you."
            )

    @property
    def cap(self) -> float:
        """The largest α_exploit a schedule may reach, α − slack − reserve."""
        return self.alpha - self.slack - self.reserve

    def alpha_exploit(self, round: int) -> float:
        """Return α_exploit in a round (1, 2, …)."""
        if isinstance(self.exploit, int | float | np.number):
            return float(self.exploit)
        asked = self.exploit.at(round, self.alpha)
        if not (math.isfinite(asked) and asked > 0):
            raise InputError(
                f"a schedule must return a positive number, got {asked} for round {round}."
            )
        return min(asked, self.cap)

    def max_fdr(self, round: int) -> float:
        """Return the FDR that f_t may have: α_exploit + ε, and never above α."""
        return min(self.alpha_exploit(round) + self.slack, self.alpha)

    def explore_share(self, round: int) -> float:
        """Return how many may be explored per exploited applicant, (α − α_exploit − ε)/(1 − α)."""
        return max(0.0, (self.alpha - self.alpha_exploit(round) - self.slack) / (1 - self.alpha))

    def allot(
        self, round: int, n_exploit: float, carried: float, n_candidates: int
    ) -> tuple[int, float]:
        """Return how many to explore now, and what is carried to the next round.

        The fraction lost by rounding down is carried over, and so is at most one whole applicant if
        a round has too few candidates. That lets a stream of single applications explore, while no
        round explores more than one applicant above its own budget. Over a run the explored never
        exceed the sum of the rounds' budgets.
        """
        n_explore = min(self.allowed(round, n_exploit, carried), n_candidates)
        left = self.explore_share(round) * n_exploit + carried - n_explore
        return n_explore, min(max(left, 0.0), 1.0)

    def settle(
        self, round: int, n_exploit: float, carried: float, n_candidates: int, n_explored: int
    ) -> float:
        """Return what is carried to the next round if coins chose ``n_explored``; may be negative.

        What they missed or exceeded is carried in full, so that over a run as many are explored as
        by ``allot``. What no candidates were there for is lost but for one applicant, as there.

        Examples
        --------
        >>> budget = FdrBudget(alpha=0.15, exploit=0.064)  # 10 explored per 100 exploited
        >>> [round(budget.settle(1, 100, 0.0, 500, n), 6) for n in (8, 10, 13)]
        [2.0, 0.0, -3.0]
        >>> round(budget.settle(1, 100, 0.0, n_candidates=4, n_explored=3), 6)
        2.0
        """
        allowed = self.explore_share(round) * n_exploit + carried
        wanted = min(max(allowed, 0.0), float(n_candidates))
        return min(allowed - wanted, 1.0) + wanted - n_explored

    def allowed(self, round: int, n_exploit: float, carried: float) -> int:
        """Return how many may be explored, whether or not there are as many candidates."""
        return math.floor(self.explore_share(round) * n_exploit + carried + _ROUNDING)


@saved
@dataclass(frozen=True)
class ExploitOnly(FdrBudget):
    """No exploration: α_exploit as given, up to α itself.

    Applicants who are not known stay unknown, so this is for comparison, and for rounds in which
    exploring is out of the question.

    Examples
    --------
    >>> ExploitOnly(alpha=0.15, exploit=0.15).allot(1, n_exploit=100, carried=0.0, n_candidates=50)
    (0, 0.0)
    """

    def _check_constant(self, exploit: float | np.number[Any]) -> None:
        if not 0 < exploit <= self.alpha:
            raise InputError(
                f"exploit (α_exploit) must be in (0, alpha] = (0, {self.alpha}], got {exploit}."
            )

    def explore_share(self, round: int) -> float:  # noqa: ARG002
        """Return 0, however many are exploited."""
        return 0.0
