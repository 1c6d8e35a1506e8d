"""Evidence that a policy keeps its bound, from outcomes of applicants that other policies accepted.

A policy π accepts an applicant with probability π(x). Its false discovery rate is
E[π(x)·1{bad}] / E[π(x)]. Applicants were accepted with logged probabilities p(x) by the policy that
was deployed; A is 1 for an accepted applicant, else 0. Each applicant gives (``values``)

    w = min(π/p, W),  rem = π − w·p,  Z = A·w·(α − 1{bad}) − rem·(1 − α),

whose mean given x is π·(α − f) − rem·(1 − f) ≤ π·(α − f), f = P(bad | x): where the logged policy
accepted hardly anyone, the uncovered mass counts as bad. If FDR(π) ≥ α then E[Z] ≤ 0, so a gambler
who bets a share λ of their wealth on Z, applicant by applicant, cannot expect to gain: the wealth
Π(1 + λZ) is a non-negative supermartingale, and by Ville's inequality it ever reaches 1/δ with
probability at most δ. A ladder uses its own part of δ (``rules``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.core.saved import saved
from secondlook.errors import InputError

__all__ = ["BETS", "RATIO_CAP", "DriftMonitor", "Wealth", "ladder_grid", "soft_edge", "values"]

Floats = NDArray[np.float64]

# Each bet is the best one if the true FDR is below α by this share of α.
BETS = (0.05, 0.13, 0.30, 0.68)
RATIO_CAP = 4.0  # W
_LARGEST_LOSS = 0.95  # of the wealth, from one applicant


def ladder_grid(first: float = 0.01, last: float = 0.98) -> Floats:
    """Return the rungs: the shares of applicants that the policies accept for sure.

    Examples
    --------
    >>> grid = ladder_grid()
    >>> len(grid), round(float(grid[0]), 3), bool(np.diff(grid).max() <= 0.0201)
    (80, 0.01, True)
    """
    rungs = [first]
    while (following := rungs[-1] + min(0.08 * rungs[-1], 0.02)) < last:
        rungs.append(following)
    return np.array([*rungs, last])


def soft_edge(rank: Floats, q: Floats | float, tau: float) -> Floats:
    """Return π = exp(−max(0, rank − q)/τ): the best share q for sure, below it a tail.

    The tail is the exploration: every applicant has a chance, which falls with the distance from
    the edge.

    Examples
    --------
    >>> soft_edge(np.array([0.1, 0.3]), 0.2, tau=0.1).round(3).tolist()
    [1.0, 0.368]
    """
    return np.asarray(np.exp(np.minimum(0.0, (np.asarray(q) - rank) / tau)))


def values(
    pi: Floats, p: Floats, accepted: NDArray[np.bool_], bad: NDArray[Any], alpha: float
) -> Floats:
    """Return Z of each applicant (axis 0) for each policy (axis 1).

    Parameters
    ----------
    pi
        Probabilities of acceptance under each policy, shape (applicants, policies).
    p
        Logged probability with which each applicant was accepted.
    accepted
        Which applicants were accepted.
    bad
        Which outcomes are bad. If outcomes are noisy, numbers whose mean given the applicant is at
        least P(bad). Read for accepted applicants only.
    alpha
        α.
    """
    uncovered = np.maximum(pi - RATIO_CAP * p[:, None], 0.0)
    z = -(1 - alpha) * uncovered
    rows = np.flatnonzero(accepted)
    wrong = rows[~((p[rows] > 0) & (p[rows] <= 1))]
    if wrong.size:
        raise InputError(
            f"accepted applicants need a logged probability in (0, 1], got {p[wrong[0]]} in row "
            f"{wrong[0]}; without it they are no evidence, so find the probability with which "
            f"their policy accepted them."
        )
    ratio = np.minimum(pi[rows] / p[rows, None], RATIO_CAP)
    z[rows] += ratio * (alpha - bad[rows, None])
    return z


@saved
@dataclass
class Wealth:
    """Wealth of several gamblers against each of several policies.

    Attributes
    ----------
    alpha
        α.
    log
        Log wealth, shape (bets, policies); every gambler starts with wealth 1.
    best
        Largest log of the gamblers' mean wealth so far, per policy.
    most_bad
        Largest number that an applicant may count as bad; 1 unless outcomes are noisy.
    """

    alpha: float
    log: Floats
    best: Floats
    most_bad: float = 1.0

    @staticmethod
    def start(alpha: float, n_policies: int, most_bad: float = 1.0) -> Wealth:
        """Return the wealth before the first applicant."""
        return Wealth(alpha, np.zeros((len(BETS), n_policies)), np.zeros(n_policies), most_bad)

    def shares(self, ratio_bound: Floats) -> Floats:
        """Return the share of wealth that each gambler bets, shape (bets, policies).

        ``ratio_bound`` bounds w + rem per policy. So Z ≥ −(most_bad − α)·bound, and no applicant
        can ruin a gambler.
        """
        worst = self.most_bad - self.alpha
        return np.minimum(np.array(BETS)[:, None] / worst, _LARGEST_LOSS / (worst * ratio_bound))

    def add(self, z: Floats, ratio_bound: Floats, use: NDArray[np.bool_]) -> None:
        """Bet on one round, on the policies that were chosen before it."""
        policies = np.flatnonzero(use)
        rows = np.flatnonzero(z[:, policies].any(axis=1))  # Z = 0 leaves all wealth as it is
        if not (policies.size and rows.size):
            return
        chosen = z[np.ix_(rows, policies)]
        share = self.shares(ratio_bound)[:, policies]
        for i in range(len(BETS)):
            self.log[i, policies] += np.log1p(share[i] * chosen).sum(axis=0)
        self.best = np.maximum(self.best, self.mixed())

    def mixed(self) -> Floats:
        """Return the log of the gamblers' mean wealth, per policy."""
        return np.asarray(np.logaddexp.reduce(self.log, axis=0) - np.log(len(BETS)))


_DRIFT_BETS = (0.1, 0.3, 0.8, 2.0)


@saved
class DriftMonitor:
    """Evidence that the FDR of the deployed policies rose above α at some time.

    While FDR ≤ α, a gambler who bets on bad outcomes cannot expect to gain. Drift may begin at any
    time, so one gambler starts in every round, with a share 1/(s(s+1)) of the capital. The sum is
    still a supermartingale from 1, so it reaches 1/δ without drift with probability at most δ.

    Parameters
    ----------
    alpha
        α.

    Examples
    --------
    >>> monitor = DriftMonitor(0.15)
    >>> for _ in range(3):
    ...     monitor.add(np.array([True] * 30 + [False] * 70))
    >>> bool(monitor.log_wealth() > np.log(20))
    True
    """

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha
        self._log = np.empty((len(_DRIFT_BETS), 0))

    def add(self, bad: NDArray[np.bool_]) -> None:
        """Take in which accepted applicants of a round were bad."""
        begun = np.zeros((len(_DRIFT_BETS), 1))  # the gamblers who start in this round
        self._log = np.hstack([self._log, begun])
        bets = np.minimum(_DRIFT_BETS, _LARGEST_LOSS / self.alpha)
        n_bad = int(bad.sum())
        gain = n_bad * np.log1p(bets * (1 - self.alpha))
        loss = (bad.size - n_bad) * np.log1p(-bets * self.alpha)
        self._log += (gain + loss)[:, None]

    def log_wealth(self) -> float:
        """Return the log of the gamblers' total wealth, including those who have not started."""
        n = self._log.shape[1]
        if n == 0:
            return 0.0
        starts = np.arange(1, n + 1)
        capital = -np.log(starts * (starts + 1)) - np.log(len(_DRIFT_BETS))
        waiting = -np.log(n + 1)
        return float(np.logaddexp(np.logaddexp.reduce((self._log + capital).ravel()), waiting))
