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

All this holds for every cap W, every λ and every choice of rounds to bet on, as long as they are
fixed before the round. So the mean wealth of gamblers who differ in W and λ is a supermartingale
from 1 as well, and the best of them need not be known. A small W bets boldly where the deployed
policy covers π well; a large W leaves less uncovered where it does not, as when an older ladder is
deployed and the wide rungs of a newer one are tested.

**Take-up.** T is 1 if an applicant takes the loan, else 0, and mistakes count among loans taken:
FDR(π) = E[π·T·1{bad}] / E[π·T]. Then Z = A·w·T·(α − 1{bad}) − rem·(1 − α). Given x, T and the
outcome only the coin is random, and E[Z] = w·p·T·(α − 1{bad}) − rem·(1 − α) ≤ π·T·(α − 1{bad}),
because T·(α − 1{bad}) ≥ −(1 − α). So all of the above holds, and T may depend on the outcome.

**Persons.** Applications of one person depend on each other, persons do not. So the rows of a
person in a round are one bet on ΣZ, with λ divided by M, the most applications of a person that
count. M is fixed: dividing by the actual number would count persons instead of applications, which
is wrong if that number says something about the outcome.

**Shocks.** If all applicants of a round share a shock S of the bad share, mean zero, sub-Gaussian
with scale σ and independent over rounds, E[Π(1 + λZ) | S] ≤ exp(−λ·S·m) with m ≥ n·E[π]. So the
factor of a round is divided by exp(½·(λ·m·σ)²), and the promise is about FDR averaged over shocks.

**The lender's own decision** d may be part of x. What is done is a coin with probability
p = (1 − r)·d + r·π(x, d), r being the ramp; p is the logged probability, and nothing else changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtr

from fairchance.core.saved import saved
from fairchance.errors import InputError
from fairchance.people.store import NOT_TAKEN, PENDING

__all__ = [
    "BETS",
    "MIRROR_CAP",
    "RATIO_CAPS",
    "WINDOWS",
    "Dependence",
    "DriftMonitor",
    "MirrorTest",
    "Outlook",
    "StratumCounts",
    "Wealth",
    "by_person",
    "compare_with_earlier",
    "ladder_grid",
    "log_growth",
    "soft_edge",
    "uncovered",
    "values",
    "weights",
]

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

# Each bet is the best one if the true FDR is below α by this share of α.
BETS = (0.05, 0.13, 0.30, 0.68)
RATIO_CAPS = (4.0, 8.0)  # W, smallest first; each bet is made with each of them
# W of ``MirrorTest``, which loses no more than α per unit of weight.
MIRROR_CAP = RATIO_CAPS[-1]
_SMALL_BETS = (1 / 4, 1 / 16)  # of each bet, for gamblers who allow for shocks
_LARGEST_LOSS = 0.95  # of the wealth, from one applicant
_FACTORS = 16  # applicants whose factors are multiplied before a logarithm, far from any underflow


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


def uncovered(pi: Floats, p: Floats, cap: float) -> Floats:
    """Return rem: the part of each π that the logged probabilities leave uncovered."""
    return np.asarray(np.maximum(pi - cap * p[:, None], 0.0))


def weights(pi: Floats, p: Floats, accepted: NDArray[np.bool_], cap: float) -> Floats:
    """Return A·w of each applicant (axis 0) for each policy (axis 1)."""
    rows = np.flatnonzero(accepted)
    wrong = rows[~((p[rows] > 0) & (p[rows] <= 1))]
    if wrong.size:
        raise InputError(
            f"accepted applicants need a logged probability in (0, 1], got {p[wrong[0]]} in row "
            f"{wrong[0]}; without it they are no evidence, so find the probability with which "
            f"their policy accepted them."
        )
    weight = np.zeros_like(pi)
    weight[rows] = np.minimum(pi[rows] / p[rows, None], cap)
    return weight


def values(
    pi: Floats, p: Floats, accepted: NDArray[np.bool_], bad: NDArray[Any], alpha: float, cap: float
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
        least P(bad). Those of rejected applicants change nothing.
    alpha
        α.
    cap
        W.
    """
    weight = weights(pi, p, accepted, cap)
    return weight * (alpha - bad[:, None]) - (1 - alpha) * uncovered(pi, p, cap)


@saved
@dataclass
class Wealth:
    """Wealth of several gamblers against each of several policies.

    Attributes
    ----------
    alpha
        α.
    bets
        The bets of the gamblers.
    log
        Log wealth, shape (caps, bets, policies); every gambler starts with wealth 1.
    best
        Largest log of the gamblers' mean wealth so far, per policy.
    most_bad
        Largest number that an applicant may count as bad; 1 unless outcomes are noisy.
    """

    alpha: float
    bets: tuple[float, ...]
    log: Floats
    best: Floats
    most_bad: float = 1.0

    @staticmethod
    def start(
        alpha: float, n_policies: int, most_bad: float = 1.0, *, small_bets: bool = False
    ) -> Wealth:
        """Return the wealth before the first applicant, perhaps with gamblers who bet less too."""
        smaller = _SMALL_BETS if small_bets else ()
        bets = BETS + tuple(bet * part for part in smaller for bet in BETS)
        log = np.zeros((len(RATIO_CAPS), len(bets), n_policies))
        return Wealth(alpha, bets, log, np.zeros(n_policies), most_bad)

    def shares(self, ratio_bound: Floats) -> Floats:
        """Return the share of wealth that each gambler bets, shape (caps, bets, policies).

        ``ratio_bound`` bounds w + rem per cap and policy. So Z ≥ −(most_bad − α)·bound, and no
        applicant can ruin a gambler.
        """
        worst = self.most_bad - self.alpha
        largest = _LARGEST_LOSS / (worst * ratio_bound)
        return np.minimum(np.array(self.bets)[:, None] / worst, largest[:, None])

    def add(self, growth: Floats) -> None:
        """Add the growth of every gambler's log wealth in one round."""
        self.log = self.log + growth
        self.best = np.maximum(self.best, self.mixed())

    def mixed(self) -> Floats:
        """Return the log of the gamblers' mean wealth, per policy."""
        gamblers = self.log.reshape(-1, self.log.shape[-1])
        return np.asarray(np.logaddexp.reduce(gamblers, axis=0) - np.log(len(gamblers)))


def by_person(z: Floats, persons: NDArray[np.intp] | None) -> Floats:
    """Return Z summed over the rows of each person, which follow each other.

    Without persons each row is by itself.

    Examples
    --------
    >>> by_person(np.array([[1.0], [2.0], [4.0]]), np.array([7, 7, 9])).ravel().tolist()
    [3.0, 4.0]
    """
    if persons is None or persons.size == 0:
        return z
    first = np.append(True, np.diff(persons) != 0)
    return np.asarray(np.add.reduceat(z, np.flatnonzero(first), axis=0))


def log_growth(z: Floats, shares: Floats) -> Floats:
    """Return Σ log(1 + λZ) over applicants, for each bet and policy of the ``shares`` λ."""
    growth = np.zeros_like(shares)
    if z.shape[0] == 0:
        return growth
    starts = np.arange(0, z.shape[0], _FACTORS)
    for i, share in enumerate(shares):
        if i and np.array_equal(share, shares[i - 1]):  # both at the largest loss
            growth[i] = growth[i - 1]
            continue
        factors = share * z
        factors += 1.0
        # Logarithms take ten times as long as products, so each is taken of a product.
        growth[i] = np.log(np.multiply.reduceat(factors, starts, axis=0)).sum(axis=0)
    return growth


@dataclass(frozen=True, eq=False)
class Dependence:
    """How the applicants of a round depend on each other.

    Attributes
    ----------
    persons
        What tells each applicant's person from others; None if every application is another
        person's.
    per_person
        M.
    shock
        σ.
    """

    persons: NDArray[Any] | None = None
    per_person: int = 1
    shock: float = 0.0

    def __getitem__(self, rows: Any) -> Dependence:
        return self if self.persons is None else replace(self, persons=self.persons[rows])

    def growth(self, z: Floats, bets: Floats, mass: Floats | float) -> Floats:
        """Return the growth of log wealth in a round, for each bet (axis 0) and policy (axis 1).

        ``mass`` is the number of applicants that each policy is expected to accept.
        """
        if self.persons is not None:
            order = np.argsort(self.persons, kind="stable")
            z, bets = by_person(z[order], self.persons[order]), bets / self.per_person
        return np.asarray(log_growth(z, bets) - 0.5 * (bets * mass * self.shock) ** 2)


_DRIFT_BETS = (0.1, 0.3, 0.8, 2.0)
_STEPS, _LARGEST_BOUND = 3, 4  # an outlook's bounds: steps up to α, and the largest over α


@saved
class MirrorTest:
    """Evidence that fixed policies π break a bound, with the bets of ``Wealth`` turned round.

    Z' = A·w·T·(1{bad} − α) − rem·α has E[Z'] ≤ E[π·T·(1{bad} − α)] ≤ 0 if FDR(π) ≤ α, because
    T·(1{bad} − α) ≥ −α. So wealth reaches 1/δ with probability at most δ then. Outcomes that are
    not known have to count as good.

    **All of several policies.** "None of these policies keeps α" is wrong only if one of them does,
    and then the wealth of that one would have to reach 1/δ, too. So every wealth is compared with
    1/δ: δ is not divided among policies. In an order that is fixed, this holds for all beginnings
    of the order at once, because each wrong one contains the first policy that keeps α.

    **Several bounds.** A lower bound on the smallest FDR climbs from bound to bound and stops at
    the first that some policy has not been shown to break. It is wrong only if it passes the first
    bound that a policy keeps, which is one test.

    **Some policy.** With good and bad exchanged and 1 − α for α, the wealth speaks for FDR(π) < α.
    If no policy keeps α, the mean wealth of all is a supermartingale from 1: when it reaches 1/δ,
    some policy keeps α, with confidence 1 − δ. So this end is simultaneous over policies.

    Parameters
    ----------
    bounds
        α, or several bounds in their order.
    n_policies
        How many policies.

    Attributes
    ----------
    best
        Largest log of the gamblers' mean wealth so far, by bound and policy.
    best_of_mean
        The same for the mean over all policies, by bound.

    Examples
    --------
    >>> mirror, everyone = MirrorTest(0.15), np.ones(100)
    >>> for _ in range(3):
    ...     mirror.add(everyone, everyone, everyone > 0, np.arange(100) < 30, ratio_bound=1.0)
    >>> bool(mirror.best.min() > np.log(20))
    True
    """

    def __init__(self, bounds: Floats | float, n_policies: int = 1) -> None:
        self.bounds = np.atleast_1d(np.asarray(bounds, np.float64))
        self._log = np.zeros((self.bounds.size, len(_DRIFT_BETS), n_policies))
        self.best = np.zeros((self.bounds.size, n_policies))
        self.best_of_mean = np.zeros(self.bounds.size)

    def add(
        self,
        pi: Floats,
        p: Floats,
        accepted: NDArray[np.bool_],
        bad: NDArray[Any],
        *,
        ratio_bound: Floats | float,
        dependence: Dependence | None = None,
        mass: Floats | None = None,
        others: Floats | float = 0.0,
    ) -> None:
        """Take in a round.

        Parameters
        ----------
        pi
            Probabilities of acceptance under the policies, shape (applicants, policies).
        p, accepted, bad
            As for ``values``; ``accepted`` also took the loan.
        ratio_bound
            Bounds w + rem, per policy or for all; infinite for a policy without a bet, which is
            chosen before the round.
        dependence
            How applicants depend on each other; None if they do not.
        mass
            A bound on the number of applicants that each policy is expected to accept; None means
            the number in this round and four standard errors.
        others
            The ``growth`` of other applicants of the round.
        """
        growth = self.growth(
            pi, p, accepted, bad, ratio_bound=ratio_bound, dependence=dependence, mass=mass
        )
        self.gain(growth + others)

    @staticmethod
    def mass(pi: Floats) -> Floats:
        """Return the number of applicants that each policy accepts, and four standard errors."""
        policies = pi if pi.ndim == 2 else pi[:, None]
        spread = policies.std(axis=0) if len(pi) else np.zeros(policies.shape[1])
        return np.asarray(policies.sum(axis=0) + 4 * spread * np.sqrt(len(pi)))

    def gain(self, growth: Floats) -> None:
        """Add the growth of every gambler's log wealth in one round."""
        self._log = self._log + growth
        n_bets, n_policies = self._log.shape[1:]
        mixed = np.logaddexp.reduce(self._log, axis=1) - np.log(n_bets)
        mean = np.logaddexp.reduce(mixed, axis=1) - np.log(n_policies)
        self.best = np.maximum(self.best, mixed)
        self.best_of_mean = np.maximum(self.best_of_mean, mean)

    def growth(
        self,
        pi: Floats,
        p: Floats,
        accepted: NDArray[np.bool_],
        bad: NDArray[Any],
        *,
        ratio_bound: Floats | float,
        dependence: Dependence | None = None,
        mass: Floats | None = None,
    ) -> Floats:
        """Return what applicants add to log wealth, by bound, bet and policy, as in ``add``."""
        policies, depend = pi if pi.ndim == 2 else pi[:, None], dependence or Dependence()
        if mass is None:
            mass = self.mass(policies)
        weight = weights(policies, p, accepted, MIRROR_CAP)
        rem = uncovered(policies, p, MIRROR_CAP)
        rows = np.flatnonzero(weight.any(axis=1) | rem.any(axis=1))
        weight, rem, depend = weight[rows], rem[rows], depend[rows]
        growth = np.empty_like(self._log)
        for i, bound in enumerate(self.bounds):
            z = weight * (bad[rows, None] - bound) - bound * rem
            largest = _LARGEST_LOSS / (bound * np.atleast_1d(ratio_bound))
            bets = np.minimum.outer(_DRIFT_BETS, largest)
            bets = np.broadcast_to(bets, self._log.shape[1:])
            growth[i] = depend.growth(z, bets, mass)
        return growth


@saved
class Outlook:
    """What outcomes say about the smallest FDR that the rungs of one ladder offer.

    It asks about rungs from the least share q_min on, which has to be large enough for outcomes to
    say something. Everything is fixed before the first round.

    Parameters
    ----------
    rungs
        The rungs from q_min on, narrowest first.
    n_near
        How many of them, the first ones, the smallest FDR is sought among.
    alpha
        α; bounds are multiples of α/3.
    recorded
        Returns the share of bad that is recorded if the true share is a bound.

    Examples
    --------
    >>> outlook, everyone = Outlook(np.arange(1), 1, 0.15), np.ones((100, 1))
    >>> for _ in range(4):
    ...     bad = np.arange(100) < 30
    ...     outlook.add(everyone, everyone[:, 0], bad | True, bad, ~bad, ratio_bound=np.ones(1))
    >>> [round(end, 2) for end in outlook.interval(0.1)], outlook.broken(0.1)
    ([0.2, 0.4], 1)
    """

    def __init__(
        self,
        rungs: NDArray[np.intp],
        n_near: int,
        alpha: float,
        recorded: Callable[[float], float] = float,
    ) -> None:
        self.rungs, self.n_near = rungs, n_near
        steps = alpha / _STEPS * np.arange(1, _LARGEST_BOUND * _STEPS + 1)
        self.bounds = steps[steps < 1]
        as_recorded = np.array([recorded(float(bound)) for bound in self.bounds])
        self._above = MirrorTest(as_recorded, rungs.size)
        self._below = MirrorTest(1 - as_recorded, n_near)

    def add(
        self,
        pi: Floats,
        p: Floats,
        accepted: NDArray[np.bool_],
        bad: NDArray[np.bool_],
        good: NDArray[np.bool_],
        *,
        ratio_bound: Floats,
        dependence: Dependence | None = None,
        mass: Floats | None = None,
        others: tuple[Floats, Floats] | None = None,
    ) -> None:
        """Take in a round, with ``pi`` of the rungs; unknown outcomes are neither good nor bad.

        ``others`` is the ``growth`` of other applicants of the round.
        """
        growth = self.growth(
            pi, p, accepted, bad, good, ratio_bound=ratio_bound, dependence=dependence, mass=mass
        )
        more = (0.0, 0.0) if others is None else others
        self._above.gain(growth[0] + more[0])
        self._below.gain(growth[1] + more[1])

    def growth(
        self,
        pi: Floats,
        p: Floats,
        accepted: NDArray[np.bool_],
        bad: NDArray[np.bool_],
        good: NDArray[np.bool_],
        *,
        ratio_bound: Floats,
        dependence: Dependence | None = None,
        mass: Floats | None = None,
    ) -> tuple[Floats, Floats]:
        """Return what applicants add to the log wealth of both ends, as in ``add``."""
        near = slice(self.n_near)
        above = self._above.growth(
            pi, p, accepted, bad, ratio_bound=ratio_bound, dependence=dependence, mass=mass
        )
        below = self._below.growth(
            pi[:, near],
            p,
            accepted,
            good,
            ratio_bound=ratio_bound[near],
            dependence=dependence,
            mass=None if mass is None else mass[near],
        )
        return above, below

    def broken(self, delta: float) -> int:
        """Return how many rungs, from q_min on, break α with confidence 1 − δ, all together."""
        reached = self._above.best[_STEPS - 1] >= -np.log(delta)
        return int(np.logical_and.accumulate(reached).sum())

    def none_keeps(self, delta: float) -> bool:
        """Return whether all near rungs break α with confidence 1 − δ."""
        return self.broken(delta) >= self.n_near

    def interval(self, delta: float) -> tuple[float, float]:
        """Return bounds on the smallest FDR among the near rungs, each with confidence 1 − δ."""
        needed = -np.log(delta)
        all_break = np.all(self._above.best[:, : self.n_near] >= needed, axis=1)
        n_below = int(np.logical_and.accumulate(all_break).sum())
        some_keeps = self._below.best_of_mean[::-1] >= needed
        n_above = int(np.logical_and.accumulate(some_keeps).sum())
        low = float(self.bounds[n_below - 1]) if n_below else 0.0
        return low, float(self.bounds[-n_above]) if n_above else 1.0


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

    def add(self, bad: NDArray[np.bool_], dependence: Dependence | None = None) -> None:
        """Take in which accepted applicants of a round were bad."""
        begun = np.zeros((len(_DRIFT_BETS), 1))  # the gamblers who start in this round
        self._log = np.hstack([self._log, begun])
        bets = np.minimum(_DRIFT_BETS, _LARGEST_LOSS / self.alpha)[:, None]
        z = bad[:, None].astype(np.float64) - self.alpha
        self._log += (dependence or Dependence()).growth(z, bets, bad.size)

    def log_wealth(self) -> float:
        """Return the log of the gamblers' total wealth, including those who have not started."""
        n = self._log.shape[1]
        if n == 0:
            return 0.0
        starts = np.arange(1, n + 1)
        capital = -np.log(starts * (starts + 1)) - np.log(len(_DRIFT_BETS))
        waiting = -np.log(n + 1)
        return float(np.logaddexp(np.logaddexp.reduce((self._log + capital).ravel()), waiting))


WINDOWS = (1, 2, 3, 4, 6, 8)  # last rounds that are compared with the rounds before them
_BERRY_ESSEEN = 0.56  # the constant for sums of different variables (Shevtsova 2010)
_BAD, _GOOD, _NOT_KNOWN = range(3)


@saved
class StratumCounts:
    """Outcomes by stratum: of each of the last rounds, and of all rounds before them together.

    Forgotten applicants stay in the counts, as they stay in other evidence.

    Parameters
    ----------
    n_strata
        Number of strata.
    """

    def __init__(self, n_strata: int) -> None:
        self._earlier = np.zeros((3, n_strata), np.int64)
        self._recent: dict[int, Counts] = {}
        self._row = np.empty(0, np.int64)  # of applicants whose outcome may still arrive
        self._stratum = np.empty(0, np.intp)

    def add(
        self,
        round: int,
        row: NDArray[np.int64],
        stratum: NDArray[np.intp],
        outcome: NDArray[np.int8],
    ) -> None:
        """Add the applicants of a new round, who are in these rows of the store."""
        for old in [number for number in self._recent if number <= round - max(WINDOWS)]:
            self._earlier += self._recent.pop(old)
        table = self._recent[round] = np.zeros_like(self._earlier)
        took = outcome != NOT_TAKEN
        np.add.at(table, (_kind(outcome[took]), stratum[took]), 1)
        pending = outcome == PENDING
        self._row = np.append(self._row, row[pending])
        self._stratum = np.append(self._stratum, stratum[pending])

    def take_in(
        self, round: NDArray[np.int32], row: NDArray[np.int64], outcome: NDArray[np.int8]
    ) -> None:
        """Take in outcomes that have arrived in rounds that are counted."""
        counted = np.isin(row, self._row)
        round, row, outcome = round[counted], row[counted], outcome[counted]
        at = np.searchsorted(self._row, row)
        for number in np.unique(round).tolist():
            table, here = self._recent.get(number, self._earlier), round == number
            took = here & (outcome != NOT_TAKEN)
            np.subtract.at(table[_NOT_KNOWN], self._stratum[at[here]], 1)
            np.add.at(table, (_kind(outcome[took]), self._stratum[at[took]]), 1)
        self._row, self._stratum = np.delete(self._row, at), np.delete(self._stratum, at)

    def forget(self, moved: NDArray[np.int64]) -> None:
        """Follow rows of the store to their new places, −1 for the deleted."""
        row = moved[self._row]
        self._row, self._stratum = row[row >= 0], self._stratum[row >= 0]

    def compared(self, last: int, window: int) -> tuple[Counts, Counts, Counts, Counts]:
        """Return the outcomes and bad ones of each stratum, and those of the last rounds of them.

        What is not known counts as good now and as bad before: good outcomes may come later.
        """
        drawn, before = np.zeros_like(self._earlier), self._earlier.copy()
        for number, table in self._recent.items():
            (drawn if last - number < window else before)[:] += table
        drawn_bad, n_drawn = drawn[_BAD], drawn.sum(axis=0)
        n_bad = drawn_bad + before[_BAD] + before[_NOT_KNOWN]
        return n_drawn + before.sum(axis=0), n_bad, n_drawn, drawn_bad


def _kind(outcome: Any) -> Any:
    return np.where(outcome == 0, _BAD, np.where(outcome == 1, _GOOD, _NOT_KNOWN))


def _log_choose(n: Any, k: Any) -> Any:
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def compare_with_earlier(
    n: Counts, n_bad: Counts, drawn: Counts, drawn_bad: Counts, matters: float = 1.0
) -> float:
    """Return how likely at least so many bad recent outcomes are without a change.

    Without a change the outcomes of a stratum may be exchanged for each other. So the number of bad
    ones among its recent applicants is hypergeometric, whatever their probability is, and the
    total over strata is a sum of independent ones, whose distribution is their convolution.

    Parameters
    ----------
    n, n_bad
        Outcomes and bad ones of each stratum.
    drawn, drawn_bad
        The recent ones among them.
    matters
        The largest p-value that matters: 1 is returned if p is certainly larger. A hypergeometric
        number has the distribution of a sum of independent coins, so Berry and Esseen's bound says
        how far p is at most from a normal one.

    Examples
    --------
    >>> n, n_bad, drawn, drawn_bad = np.array([[20, 20], [1, 6], [5, 5], [1, 4]])
    >>> round(compare_with_earlier(n, n_bad, drawn, drawn_bad), 4)
    0.0038
    """
    here = (drawn > 0) & (drawn < n)
    n, n_bad, drawn, drawn_bad = n[here], n_bad[here], drawn[here], drawn_bad[here]
    part = n_bad / n
    variance = float((drawn * part * (1 - part) * (n - drawn) / np.maximum(n - 1, 1)).sum())
    if variance > 0:
        sd = np.sqrt(variance)
        normal = ndtr(-(drawn_bad.sum() - (drawn * part).sum() - 1) / sd)
        if normal - _BERRY_ESSEEN / sd > matters:
            return 1.0
    chance, least = np.ones(1), 0
    for total, of, k in zip(n, n_bad, drawn, strict=True):
        mean = k * of / total
        # Farther out lies less than a double can tell from nothing.
        reach = 12 * np.sqrt(mean) + 50
        low = max(0, k + of - total, int(mean - reach))
        counts = np.arange(low, min(k, of, int(mean + reach)) + 1)
        ways = _log_choose(of, counts) + _log_choose(total - of, k - counts)
        chance = np.convolve(chance, np.exp(ways - _log_choose(total, k)))
        least += low
    return float(min(1.0, chance[max(0, drawn_bad.sum() - least) :].sum()))
