"""A ladder: policies of growing reach on one frozen ranking, each tested by evidence.

Rung j accepts the best share q_j of applicants for sure and has a soft edge below it; a floor may
give every applicant a chance on top. Rungs are certified outwards from a start: a rung counts only
if all rungs between it and the start do. So the first rung that breaks the bound stops the walk,
and only one test in a walk can go wrong.

If the lender has a process of its own, whose decision on an applicant is d, there are two kinds of
ladder on a ranking. ``own`` rungs do not use d. ``union`` rungs accept with max(d, own_j): all
applicants that the lender accepts, and our best besides. Before them comes π = d, the lender's own
policy, without edge or floor.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from fairchance.core.saved import saved
from fairchance.core.strategies import Strategy, Uniform, check_sizes
from fairchance.errors import InputError
from fairchance.frames import take
from fairchance.methods.certified.evidence import (
    MIRROR_CAP,
    RATIO_CAPS,
    Dependence,
    Outlook,
    StratumCounts,
    Wealth,
    by_person,
    ladder_grid,
    log_growth,
    soft_edge,
    uncovered,
    weights,
)
from fairchance.methods.certified.ranking import Groups, Ranking

__all__ = ["BoundTest", "Floor", "Ladder", "LadderRows", "Positions", "nearest_certificate"]

Floats = NDArray[np.float64]
_LARGEST_UNCOVERED = 0.02  # of a policy's mass; more of it is bet on only if outcomes look good
_PROMISING = 0.9  # of α: the largest estimated FDR plus uncovered share to bet on
_CHUNK = 2048  # applicants whose table of policies is in memory at a time


@saved
@dataclass(frozen=True)
class Floor:
    """min(1, scale_z · g(x, z)): the chance of an applicant that the soft edge does not accept.

    A test is about a fixed policy, so the floor is frozen with its ladder: shares of groups and the
    scale of g come from the reference applicants of that moment, never from the batch being
    decided.

    Attributes
    ----------
    strategy
        g, as in Algorithm 1.
    scale
        Factor of g, per group; all zero for no floor. Limits of the strategy hold without a floor
        too: the soft edge accepts no barred applicant.

    Examples
    --------
    >>> from fairchance.core.strategies import EqualGroups
    >>> group = np.array([0, 0, 0, 1])
    >>> floor = Floor.freeze(EqualGroups(), 0.01, None, np.full(4, 0.5), group, 2)
    >>> floor.chance(None, np.array([0.5, 0.5]), np.array([0, 1])).round(4).tolist()
    [0.0067, 0.02]
    """

    strategy: Strategy
    scale: Floats

    @staticmethod
    def freeze(
        strategy: Strategy, share: float, X: Any, score: Floats, group: Groups, n_groups: int
    ) -> Floor:
        """Return the floor whose mean chance over reference applicants is ``share``.

        The mean is over the applicants who may be explored; if the strategy has group quotas, each
        group gets its part of the share.
        """
        if share == 0 or group.size == 0:
            # Without a floor only the limits of the strategy matter.
            return Floor(strategy if strategy.is_limited else Uniform(), np.full(n_groups, share))
        in_all = np.bincount(group, minlength=n_groups).astype(np.float64)
        why = strategy.barred(X, score)
        if why is not None:
            may = np.flatnonzero(why == 0)
            if may.size == 0:
                return Floor(strategy, np.zeros(n_groups))
            X = take(X, may) if strategy.reads_features else None
            score, group = score[may], group[may]
        counts = np.bincount(group, minlength=n_groups).astype(np.float64)
        per_group = strategy.group_factor(in_all, counts)
        g = np.asarray(strategy.person_factor(X, score, group), np.float64)
        check_sizes(g, strategy)
        _check_same_alone(strategy, g, X, score, group)
        g = g * per_group[group]
        scale = np.full(n_groups, share * group.size / g.sum())
        quota = strategy.group_shares(counts)
        if quota is not None:
            total = np.bincount(group, g, n_groups)
            here = total > 0
            scale[here] = share * group.size * quota[here] / total[here]
        return Floor(strategy, scale * per_group)

    def chance(self, X: Any, score: Floats, group: Groups) -> Floats:
        """Return the chance of each applicant."""
        if not self.scale.any() or group.size == 0:
            return np.zeros(group.size)
        g = np.asarray(self.strategy.person_factor(X, score, group), np.float64)
        barred = self.barred(X, score)
        check_sizes(g if barred is None else g[~barred], self.strategy)
        return np.minimum(1.0, self.scale[group] * g)

    def barred(self, X: Any, score: Floats) -> NDArray[np.bool_] | None:
        """Return which applicants the limits of the strategy bar; None if it has no limits."""
        if not self.strategy.is_limited:
            return None
        why = self.strategy.barred(X, score) if score.size else None
        return np.zeros(score.size, np.bool_) if why is None else np.asarray(why != 0)


def _check_same_alone(strategy: Strategy, g: Floats, X: Any, score: Floats, group: Groups) -> None:
    """Raise if g depends on the other applicants: a rung would be no fixed policy."""
    half = np.arange(0, group.size, 2)
    part = take(X, half) if strategy.reads_features else None
    again = np.asarray(strategy.person_factor(part, score[half], group[half]), np.float64)
    if not np.allclose(again, g[half], rtol=1e-6, atol=0.0):
        raise InputError(
            f"a certificate needs a strategy whose g of an applicant does not depend on the other "
            f"applicants, got {strategy!r}; compare applicants with fixed numbers, not with each "
            f"other."
        )


@saved
@dataclass(frozen=True)
class Positions:
    """The positions of applicants on a ladder, which are all that its policies use.

    Attributes
    ----------
    rank
        Share of reference applicants who look at least as good.
    chance
        The floor's chance of an applicant that the soft edge does not accept.
    barred
        Which applicants may not be explored, so that they are accepted for sure or not at all; None
        if the strategy has no limits.
    incumbent
        d, the lender's own decision; None if the lender has no process.
    """

    rank: Floats
    chance: Floats
    barred: NDArray[np.bool_] | None = None
    incumbent: NDArray[np.bool_] | None = None

    def __getitem__(self, rows: Any) -> Positions:
        barred = None if self.barred is None else self.barred[rows]
        incumbent = None if self.incumbent is None else self.incumbent[rows]
        return Positions(self.rank[rows], self.chance[rows], barred, incumbent)

    def join(self, other: Positions) -> Positions:
        """Return the positions of these applicants and of others."""

        def joined(first: Any, second: Any) -> Any:
            if first is None and second is None:
                return None
            parts = ((first, self.rank.size), (second, other.rank.size))
            return np.concatenate([np.zeros(n, np.bool_) if a is None else a for a, n in parts])

        return Positions(
            np.append(self.rank, other.rank),
            np.append(self.chance, other.chance),
            joined(self.barred, other.barred),
            joined(self.incumbent, other.incumbent),
        )

    def beside(self, incumbent: Any, barred: Any) -> Positions:
        """Return the same positions next to the lender's decisions.

        Applicants whom the lender bars come after all others, so that no rung accepts them.
        """
        rank, chance = self.rank, self.chance
        if barred is not None:
            rank, chance = np.where(barred, np.inf, rank), np.where(barred, 0.0, chance)
        return Positions(rank, chance, self.barred, incumbent)

    @property
    def accepted_by_lender(self) -> NDArray[np.bool_]:
        """Which applicants the lender accepts; none without a process."""
        none = np.zeros(self.rank.size, np.bool_)
        return none if self.incumbent is None else self.incumbent


@saved
@dataclass(eq=False)
class BoundTest:
    """The test of one bound on all rungs of a ladder.

    Attributes
    ----------
    starts
        Rungs from which walks start, with the share of the ladder's level that each walk gets.
    wealth
        The evidence for each rung.
    """

    starts: tuple[tuple[int, float], ...]
    wealth: Wealth

    def certified(self, level: float) -> NDArray[np.bool_]:
        """Return which rungs are certified; a certified rung stays certified."""
        # ``best`` is the largest wealth over time: Ville's inequality is about exactly that.
        certified = np.zeros(self.wealth.best.size, dtype=np.bool_)
        for start, share in self.starts:
            reached = self.wealth.best[start:] >= -np.log(level * share)
            certified[start:] |= np.logical_and.accumulate(reached)
        return certified

    def within_reach(self, level: float) -> NDArray[np.bool_]:
        """Return the rungs that are not certified and that a walk may still reach.

        A rung that has lost as much as it needs to gain ends a walk.
        """
        reach, mixed = np.zeros(self.wealth.best.size, np.bool_), self.wealth.mixed()
        for start, share in self.starts:
            needed = -np.log(level * share)
            lost = (self.wealth.best[start:] < needed) & (mixed[start:] <= -needed)
            reach[start:] |= np.logical_and.accumulate(~lost)
        return reach & ~self.certified(level)

    def undecided(self, level: float) -> NDArray[np.bool_]:
        """Return the rungs on which more evidence can change what is certified."""
        first = min(start for start, _ in self.starts)
        least = min(share for _, share in self.starts)
        undecided = self.wealth.best < -np.log(level * least)
        undecided[:first] = False
        return np.asarray(undecided)


@saved
@dataclass(eq=False)
class Ladder:
    """One frozen ranking with its policies, their wealth and their certificates.

    Attributes
    ----------
    ranking
        The frozen ranking.
    tau
        Softness of the edge.
    floor
        A chance for every applicant, whatever the rank.
    level
        Part of δ spent on this ladder.
    starts
        Rungs from which walks start, with the share of the level that each walk gets.
    frozen
        Round before which it was frozen: it is tested on that round and later ones.
    alpha
        α.
    most_bad
        Largest number that an applicant may count as bad; 1 unless outcomes are noisy.
    grid
        q of each rung: the share of applicants that it accepts for sure.
    wealth
        The evidence for each rung.
    n_tested
        Accepted applicants in its tests.
    others
        Tests of bounds other than α, on the same rounds. Each spends the level of this ladder by
        itself: what it certifies has the same confidence, alone. No decision depends on them.
    union
        Whether rungs also accept all applicants that the lender accepts; the first rung is then
        the lender's own policy, with q = 0.
    from_history
        Whether it was tested on the history first.
    shock
        σ of shocks that all applicants of a round share.
    mass
        A bound on the share of applicants that each rung accepts, for shocks; by default 1.
    outlook
        Evidence that its rungs break α; None for ladders that no pilot uses.
    """

    ranking: Ranking
    tau: float
    floor: Floor
    level: float
    starts: tuple[tuple[int, float], ...]
    frozen: int
    alpha: float
    most_bad: float = 1.0
    union: bool = False
    from_history: bool = False
    shock: float = 0.0
    grid: Floats = field(init=False)
    wealth: Wealth = field(init=False)
    mass: Floats | float = 1.0
    n_tested: int = 0
    others: tuple[BoundTest, ...] = ()
    outlook: Outlook | None = None

    def __post_init__(self) -> None:
        grid = ladder_grid()
        self.grid = np.append(0.0, grid) if self.union else grid
        self.wealth = self.start_wealth(self.alpha)

    def start_wealth(self, bound: float) -> Wealth:
        """Return the wealth before the first round of the test of a bound."""
        small = self.shock > 0
        return Wealth.start(bound, self.grid.size, self.most_bad, small_bets=small)

    def untested(self) -> Ladder:
        """Return a copy without evidence: everything that its policies depend on."""
        return Ladder(
            self.ranking,
            self.tau,
            self.floor,
            self.level,
            self.starts,
            self.frozen,
            self.alpha,
            self.most_bad,
            self.union,
            self.from_history,
            self.shock,
        )

    @property
    def tests(self) -> tuple[BoundTest, ...]:
        """The tests of all bounds, that of α first."""
        return (BoundTest(self.starts, self.wealth), *self.others)

    def locate(self, X: Any, group: Groups) -> Positions:
        """Return the positions of applicants on this ladder."""
        return self.place(self.ranking.score(X, group), X, group)

    def place(self, score: Floats, X: Any, group: Groups) -> Positions:
        """Return the positions of applicants whose scores by the ranking are known."""
        return Positions(
            self.ranking.rank(score, group),
            self.floor.chance(X, score, group),
            self.floor.barred(X, score),
        )

    def policies(self, at: Positions, rungs: Any = slice(None)) -> Floats:
        """Return the probabilities of acceptance under some rungs, shape (applicants, rungs)."""
        q = np.atleast_1d(self.grid[rungs])
        pi = soft_edge(at.rank[:, None], q, self.tau)
        if at.barred is not None:
            pi[at.barred[:, None] & (at.rank[:, None] > q)] = 0.0
        if self.floor.scale.any():
            pi += at.chance[:, None] * (1 - pi)
        if self.union:
            pi[:, q == 0] = 0.0  # the lender's own policy has neither edge nor floor
            pi[at.accepted_by_lender] = 1.0
        return pi

    def policy(self, at: Positions, rung: int, scale: float = 1.0) -> Floats:
        """Return the probability of acceptance of each applicant under one rung.

        With a ``scale`` below 1, that part of it, but no less than the floor.
        """
        pi = np.asarray(self.policies(at, rung)[:, 0])
        if scale == 1:
            return pi
        pi *= scale
        if self.floor.scale.any() and not (self.union and rung == 0):
            np.maximum(pi, at.chance, out=pi)
        if self.union:
            pi[at.accepted_by_lender] = 1.0
        return pi

    def ratio_bounds(
        self, deployed: int | None, ramp: float = 1.0, tau: float | None = None
    ) -> Floats:
        """Return a bound on w + rem per cap and rung.

        ``deployed`` is a rung of this ladder that the deployed policy contains, so that p ≥ r·π for
        it; None if there is none. ``tau`` is the softness of the deployed policy, at least that of
        this ladder. Whom limits of the strategy bar may have π = 1 and p = 0. Then there is no
        ratio, and the bound covers rem = 1. If the lender accepts them, p = 1 − r under a ramp.
        """
        caps = np.array(RATIO_CAPS)[:, None]
        if ramp == 0:  # p = d: an applicant is covered with p = 1, or uncovered
            return np.ones((caps.size, self.grid.size))
        if deployed is None:
            return np.tile(caps + 1, self.grid.size)
        steps = np.maximum(0.0, self.grid - self.grid[deployed]) / (tau or self.tau)
        ratio = np.exp(np.minimum(steps, 50.0)) / ramp
        if ramp < 1 and self.floor.strategy.is_limited:
            ratio = np.maximum(ratio, 1 / (1 - ramp))
        if self.union:
            ratio[0] = 1.0  # each union rung accepts for sure whom the lender accepts
            if deployed == 0:
                ratio[1:] = np.inf  # the lender's policy has no edge
        return np.where(ratio <= caps, ratio, caps + 1)

    def worth_betting(self, at: Positions, p: Floats, fdr: Floats) -> NDArray[np.bool_]:
        """Return which rungs to bet on, shape (bounds, caps, rungs), α first.

        A rung is bet on if the policy to be deployed covers it, or if its estimated FDR leaves room
        for all that is uncovered. Without the second rule a better, later ladder would never be
        tested, because the deployed one covers it too little. Everything here is known before the
        round, so wealth stays a supermartingale, whatever is chosen and however wrong the
        estimates are.

        Applicants are of earlier rounds, and ``p`` is their probability of acceptance under the
        policy to be deployed.
        """
        pi = self.policies(at)
        mass = pi.sum(axis=0)
        missing = np.array([uncovered(pi, p, cap).sum(axis=0) for cap in RATIO_CAPS])
        covered = missing <= _LARGEST_UNCOVERED * mass
        bounds = np.array([test.wealth.alpha for test in self.tests])[:, None, None]
        use = np.asarray(covered | (missing <= (_PROMISING * bounds - fdr) * mass))
        for k, test in enumerate(self.others, 1):  # time is saved where nothing is reported
            use[k] &= test.undecided(self.level)
        return use

    def test(
        self,
        at: Positions,
        p: Floats,
        accepted: NDArray[np.bool_],
        bad: Floats,
        *,
        ratio_bounds: Floats,
        use: NDArray[np.bool_],
        dependence: Dependence | None = None,
        others: Floats | None = None,
    ) -> None:
        """Test the rungs on a round.

        ``accepted`` are the applicants who were accepted and took the loan: Z of an applicant who
        did not take it is −rem·(1 − α). ``ratio_bounds`` bound w + rem per cap and rung. ``use``
        are the rungs to bet on, chosen before the round: for all bounds and caps, or for each.
        ``dependence`` says which rows belong to one person; None if all are independent.
        ``others`` is ``growth_of_rejected`` of the other applicants of the round, if there are any.
        """
        if not use.any():
            return
        if others is None:
            others = self._allowance(p.size, ratio_bounds, use, dependence)
        growth = others + self.growth(at, p, accepted, bad, ratio_bounds, use, dependence)
        for test, gained in zip(self.tests, growth, strict=True):
            test.wealth.add(gained)
        if np.broadcast_to(use, (len(self.tests), *ratio_bounds.shape))[0].any():
            self.n_tested += int(accepted.sum())

    def growth_of_rejected(
        self,
        at: Positions,
        p: Floats,
        n_people: int,
        *,
        ratio_bounds: Floats,
        use: NDArray[np.bool_],
        dependence: Dependence | None = None,
    ) -> Floats:
        """Return what rejected applicants add to log wealth, by bound, cap, bet and rung.

        It is Σ log(1 − λ·rem·(1 − α)), which no outcome changes, less what a round of ``n_people``
        pays for the shocks that it may share.
        """
        nobody = np.zeros(p.size, np.bool_)
        growth = self.growth(at, p, nobody, np.zeros(p.size), ratio_bounds, use, dependence)
        return growth + self._allowance(n_people, ratio_bounds, use, dependence)

    def bets(
        self, ratio_bounds: Floats, use: NDArray[np.bool_], dependence: Dependence | None
    ) -> Floats:
        """Return the share λ of wealth that each gambler bets, by bound, cap, bet and rung."""
        shares = np.array([test.wealth.shares(ratio_bounds) for test in self.tests])
        shares *= np.broadcast_to(use, (len(shares), *ratio_bounds.shape))[:, :, None]
        if dependence is not None and dependence.persons is not None:
            shares /= dependence.per_person
        return shares

    def _allowance(
        self,
        n_people: int,
        ratio_bounds: Floats,
        use: NDArray[np.bool_],
        dependence: Dependence | None,
    ) -> Floats:
        """Return what a round of so many applicants costs because they may share a shock."""
        bets = self.bets(ratio_bounds, use, dependence)
        return np.asarray(-0.5 * (bets * (n_people * self.mass) * self.shock) ** 2)

    def growth(
        self,
        at: Positions,
        p: Floats,
        accepted: NDArray[np.bool_],
        bad: Floats,
        ratio_bounds: Floats,
        use: NDArray[np.bool_],
        dependence: Dependence | None,
    ) -> Floats:
        """Return Σ log(1 + λZ) over applicants, by bound, cap, bet and rung."""
        tests, persons = self.tests, None if dependence is None else dependence.persons
        use = np.broadcast_to(use, (len(tests), *ratio_bounds.shape))
        shares = self.bets(ratio_bounds, use, dependence)
        growth, rungs = np.zeros_like(shares), np.flatnonzero(use.any(axis=(0, 1)))
        if rungs.size == 0:
            return growth
        # Rejected applicants enter too: their uncovered mass counts as bad. It grows with the rung
        # and falls with the cap, so most of them are found to have none by a look at one policy.
        widest = self.policy(at, int(rungs[-1]))
        rows = np.flatnonzero(accepted | (widest > RATIO_CAPS[0] * p))
        for part in _chunks(rows, persons):
            of = None if persons is None else persons[part]
            pi = self.policies(at[part], rungs)
            for i, cap in enumerate(RATIO_CAPS):
                # Z = α·(A·w + rem) − (A·w·bad + rem), as in ``values``: linear in α.
                slope, rem = weights(pi, p[part], accepted[part], cap), uncovered(pi, p[part], cap)
                constant = slope * bad[part, None] + rem
                slope += rem
                for k, test in enumerate(tests):
                    bets = np.flatnonzero(use[k, i, rungs])
                    z = test.wealth.alpha * slope[:, bets] - constant[:, bets]
                    z = by_person(z, of)
                    growth[k, i][:, rungs[bets]] += log_growth(z, shares[k, i][:, rungs[bets]])
        return growth

    def look(
        self,
        at: Positions,
        p: Floats,
        accepted: NDArray[np.bool_],
        outcome: NDArray[np.int8],
        *,
        ratio_bounds: Floats,
        dependence: Dependence,
        others: tuple[Floats, Floats] | None = None,
    ) -> None:
        """Take a round into the outlook, if the ladder has one.

        ``accepted`` also took the loan, and ``outcome`` has one entry per applicant. A rung has a
        bet if the deployed policy certainly covers it, which is known before the round. ``others``
        is ``outlook_of_rejected`` of the other applicants of the round, if there are any.
        """
        bounds = self._outlook_bounds(ratio_bounds)
        if self.outlook is None or bounds is None:
            return
        self.outlook.add(
            self._outlook_policies(at, bounds),
            p,
            accepted,
            outcome == 0,
            outcome == 1,
            ratio_bound=bounds,
            dependence=dependence if others is None else replace(dependence, shock=0.0),
            mass=self._outlook_mass(p.size),
            others=others,
        )

    def outlook_of_rejected(
        self,
        at: Positions,
        p: Floats,
        n_people: int,
        *,
        ratio_bounds: Floats,
        dependence: Dependence,
    ) -> tuple[Floats, Floats] | None:
        """Return what rejected applicants of a round of ``n_people`` add to an outlook, if any."""
        bounds = self._outlook_bounds(ratio_bounds)
        if self.outlook is None or bounds is None:
            return None
        nobody = np.zeros(p.size, np.bool_)
        return self.outlook.growth(
            self._outlook_policies(at, bounds),
            p,
            nobody,
            nobody,
            nobody,
            ratio_bound=bounds,
            dependence=dependence,
            mass=self._outlook_mass(n_people),
        )

    def _outlook_bounds(self, ratio_bounds: Floats) -> Floats | None:
        """Return bounds on w + rem of the outlook's rungs; infinite without a bet, None if all."""
        if self.outlook is None:
            return None
        bounds = ratio_bounds[RATIO_CAPS.index(MIRROR_CAP), self.outlook.rungs]
        bounds = np.where(bounds <= MIRROR_CAP, bounds, np.inf)
        return bounds if np.isfinite(bounds).any() else None

    def _outlook_mass(self, n_people: int) -> Floats:
        """Return a bound on the number of applicants that each of the outlook's rungs accepts."""
        rungs = np.empty(0, np.intp) if self.outlook is None else self.outlook.rungs
        return np.asarray(n_people * np.broadcast_to(self.mass, self.grid.shape)[rungs])

    def _outlook_policies(self, at: Positions, bounds: Floats) -> Floats:
        """Return π of the outlook's rungs, 0 for those without a bet."""
        pi, covered = np.zeros((at.rank.size, bounds.size)), np.flatnonzero(np.isfinite(bounds))
        if self.outlook is not None:
            pi[:, covered] = self.policies(at, self.outlook.rungs[covered])
        return pi

    def nearest(self, q: float) -> int:
        """Return the rung nearest to a share."""
        return int(np.argmin(np.abs(self.grid - q)))

    def more_outcomes(self, rung: int) -> float:
        """Return about how many more outcomes a rung needs if they are like those so far.

        Each gambler's log wealth is assumed to keep growing at its rate per outcome. NaN if no
        gambler has gained, so that the number is unknown.
        """
        log, needed = self.wealth.log[..., rung].ravel(), self.threshold(rung)
        if self.wealth.best[rung] >= needed:
            return 0.0
        if log.max() <= 0 or not np.isfinite(needed):
            return float("nan")
        bets = np.log(log.size)
        alone = (needed + bets) / log.max()  # multiple of the outcomes so far, by the best gambler
        times = brentq(
            lambda times: np.logaddexp.reduce(times * log) - bets - needed, 1.0, 1.001 * alone
        )
        return float(self.n_tested * (times - 1))

    def certified(self) -> NDArray[np.bool_]:
        """Return which rungs are certified; a certified rung stays certified."""
        return self.tests[0].certified(self.level)

    def threshold(self, rung: int) -> float:
        """Return the log wealth that a rung needs in the walk that reaches it with most level."""
        shares = [share for start, share in self.starts if start <= rung]
        return float(-np.log(self.level * max(shares))) if shares else float("inf")


def _chunks(rows: NDArray[np.intp], persons: NDArray[np.intp] | None) -> Iterator[NDArray[np.intp]]:
    """Yield rows in pieces, of which none ends inside a person."""
    ends = np.minimum(np.arange(_CHUNK, rows.size + _CHUNK, _CHUNK), rows.size)
    if persons is not None and rows.size:
        rows = rows[np.argsort(persons[rows], kind="stable")]
        ordered = persons[rows]
        ends = np.unique(np.searchsorted(ordered, ordered[ends - 1], side="right"))
    yield from np.split(rows, ends[:-1])


def nearest_certificate(ladders: Iterable[Ladder]) -> tuple[Ladder, int] | None:
    """Return the ladder and the start rung that need the fewest outcomes for a certificate.

    The first certificate of a ladder is always that of a start. None if the number of outcomes is
    unknown for all of them.
    """
    starts = [(ladder, start) for ladder in ladders for start, _ in ladder.starts]
    missing = [ladder.more_outcomes(start) for ladder, start in starts]
    known = [i for i, more in enumerate(missing) if np.isfinite(more)]
    return starts[min(known, key=missing.__getitem__)] if known else None


@saved
class LadderRows:
    """The positions on a ladder of our own accepted applicants that are in the sample.

    It sums worth times π over applicants for all rungs at once, without a table of applicants by
    rungs. π depends on the rank only: 1 up to q_j, then exponential. So each applicant is assigned
    once to a cell between rungs, and one pass over the cells gives the sums of all rungs.
    """

    def __init__(self, ladder: Ladder, at: Positions) -> None:
        self.ladder = ladder
        self.at = Positions(np.empty(0), np.empty(0))
        self.expected: Floats | None = None  # worth of each rung by the history
        self.counts = StratumCounts(ladder.grid.size + 3)  # of rounds since the freeze
        self._cells = np.empty(0, np.intp)
        self._tails = np.empty(0)
        self.extend(at)

    @property
    def _own_grid(self) -> Floats:
        return self.ladder.grid[1:] if self.ladder.union else self.ladder.grid

    def extend(self, at: Positions) -> None:
        """Append applicants."""
        grid, tau, rank = self._own_grid, self.ladder.tau, at.rank
        cell = np.searchsorted(grid, rank)
        before = grid[np.maximum(cell - 1, 0)]
        tails = np.exp(np.minimum(0.0, (before - rank) / tau))
        if at.barred is not None:
            tails[at.barred] = 0.0
        self.at = self.at.join(at)
        self._cells = np.append(self._cells, cell)
        self._tails = np.append(self._tails, tails)

    def keep(self, stays: NDArray[np.bool_]) -> None:
        """Delete all other applicants."""
        self.at = self.at[stays]
        self._cells, self._tails = self._cells[stays], self._tails[stays]

    def strata(self, at: Positions) -> NDArray[np.intp]:
        """Return strata of applicants of about the same rank, on whom the lender decided alike."""
        cell = np.searchsorted(self._own_grid, at.rank)
        return np.asarray(cell // 2 * 2 + at.accepted_by_lender)

    def sums(self, worth: Floats, rows: Any = slice(None)) -> Floats:
        """Return Σ worth·π for every rung, over some of the applicants."""
        if not self.ladder.union:
            return self._own_sums(self.ladder.grid, worth, rows)
        by_lender = self.at.accepted_by_lender[rows]
        own = self._own_sums(self.ladder.grid[1:], np.where(by_lender, 0.0, worth), rows)
        return np.asarray(np.append(0.0, own) + worth[by_lender].sum())

    def _own_sums(self, grid: Floats, worth: Floats, rows: Any) -> Floats:
        chance, cells = self.at.chance[rows], self._cells[rows]
        by_floor = float(worth @ chance)
        worth = worth * (1 - chance)
        inside = np.bincount(cells, worth, grid.size + 1)
        beyond = np.bincount(cells, worth * self._tails[rows], grid.size + 1)
        # The tail beyond rung j is that of the next cell, plus the tail of rung j + 1, which decays
        # by the distance between the two rungs.
        decay = np.exp(-np.diff(grid) / self.ladder.tau)
        tail = np.zeros(grid.size)
        tail[-1] = beyond[-1]
        for j in range(grid.size - 2, -1, -1):
            tail[j] = beyond[j + 1] + decay[j] * tail[j + 1]
        return np.asarray(by_floor + np.cumsum(inside)[:-1] + tail)
