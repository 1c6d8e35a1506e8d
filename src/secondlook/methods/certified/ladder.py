"""A ladder: policies of growing reach on one frozen ranking, each tested by evidence.

Rung j accepts the best share q_j for sure and has a soft edge below; a floor may give everybody a
chance on top. Rungs are certified outwards
from a start: a rung counts only if all between it and the start do. So the first rung that breaks
the bound stops the walk, and only one test in a walk can go wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from secondlook.methods.certified.evidence import RATIO_CAP, Wealth, ladder_grid, soft_edge, values
from secondlook.methods.certified.floors import Floor
from secondlook.methods.certified.ranking import Groups, Ranking

__all__ = ["Ladder", "Reach", "Seen", "Standing", "nearest_certificate"]

Floats = NDArray[np.float64]
_LARGEST_UNCOVERED = 0.02  # of a policy's mass: beyond, betting on it only loses


@dataclass(frozen=True)
class Seen:
    """A round as a test sees it: everybody's logged probability, and how bad the accepted were."""

    X: Any
    group: Groups
    p: Floats
    accepted: NDArray[np.bool_]
    bad: Floats
    at: Standing | None = None  # where people stand, if they themselves are not kept


@dataclass(frozen=True)
class Standing:
    """Where people stand on a ladder, which is all that its policies know of them.

    Attributes
    ----------
    rank
        Share of reference people who look at least as good.
    chance
        The floor's chance of somebody whom the soft edge does not accept.
    barred
        Who may not be explored, and so is accepted for sure or not at all; None for nobody.
    """

    rank: Floats
    chance: Floats
    barred: NDArray[np.bool_] | None = None

    def __getitem__(self, rows: Any) -> Standing:
        barred = None if self.barred is None else self.barred[rows]
        return Standing(self.rank[rows], self.chance[rows], barred)

    def join(self, other: Standing) -> Standing:
        """Return these people and those."""
        barred = self.barred
        if other.barred is not None:
            before = np.zeros(self.rank.size, np.bool_) if barred is None else barred
            barred = np.append(before, other.barred)
        return Standing(
            np.append(self.rank, other.rank), np.append(self.chance, other.chance), barred
        )


@dataclass(eq=False)
class Ladder:
    """One frozen ranking with its policies, their wealth, and what is certified.

    Attributes
    ----------
    ranking
        Who looks best.
    tau
        Softness of the edge.
    floor
        A chance for everybody, whatever their rank.
    level
        Part of δ spent on this ladder.
    starts
        Rungs to start from, with the share of the level that each walk gets.
    frozen
        Round before which it was frozen: it is tested on that round and later ones.
    alpha
        α.
    most_bad
        Largest number that a person may count as bad; 1 unless outcomes are noisy.
    """

    ranking: Ranking
    tau: float
    floor: Floor
    level: float
    starts: tuple[tuple[int, float], ...]
    frozen: int
    alpha: float
    most_bad: float = 1.0
    grid: Floats = field(default_factory=ladder_grid)
    wealth: Wealth = field(init=False)
    n_used: int = 0

    def __post_init__(self) -> None:
        self.wealth = Wealth.start(self.alpha, self.grid.size, self.most_bad)

    def untested(self) -> Ladder:
        """Return it as it was frozen, before any evidence: all that its policies depend on."""
        return Ladder(
            self.ranking,
            self.tau,
            self.floor,
            self.level,
            self.starts,
            self.frozen,
            self.alpha,
            self.most_bad,
            self.grid,
        )

    def standing(self, X: Any, group: Groups) -> Standing:
        """Return where people stand."""
        score = self.ranking.score(X, group)
        return Standing(
            self.ranking.rank(score, group),
            self.floor.chance(X, score, group),
            self.floor.barred(X, score),
        )

    def policies(self, at: Standing, rungs: Any = slice(None)) -> Floats:
        """Return the probabilities of acceptance under some rungs, shape (people, rungs)."""
        q = np.atleast_1d(self.grid[rungs])
        soft = soft_edge(at.rank[:, None], q, self.tau)
        if at.barred is not None:
            soft[at.barred[:, None] & (at.rank[:, None] > q)] = 0.0
        return np.asarray(soft + at.chance[:, None] * (1 - soft)) if self._floored else soft

    @property
    def _floored(self) -> bool:
        return bool(self.floor.scale.any())

    def policy(self, at: Standing, rung: int) -> Floats:
        """Return the probability of acceptance of each person under one rung."""
        return np.asarray(self.policies(at, rung)[:, 0])

    def ratio_bounds(self, deployed: int | None) -> Floats:
        """Return a bound on w + rem per rung, if a rung of this ladder is deployed or none is.

        Where somebody barred has π = 1 and p = 0 there is no ratio, and rem = 1 is in the bound.
        """
        if deployed is None:
            return np.full(self.grid.size, RATIO_CAP + 1)
        steps = np.maximum(0.0, self.grid - self.grid[deployed]) / self.tau
        ratio = np.exp(np.minimum(steps, 50.0))
        return np.where(ratio <= RATIO_CAP, ratio, RATIO_CAP + 1)

    def worth_betting(self, at: Standing, p: Floats) -> NDArray[np.bool_]:
        """Say, from people of earlier rounds, which rungs a policy to be deployed covers enough."""
        pi = self.policies(at)
        uncovered = np.maximum(pi - RATIO_CAP * p[:, None], 0.0).sum(axis=0)
        return np.asarray(uncovered <= _LARGEST_UNCOVERED * pi.sum(axis=0))

    def test(self, seen: Seen, deployed: int | None, use: NDArray[np.bool_]) -> None:
        """Take in a round; ``deployed`` is its rung if it was one of this ladder's."""
        if not use.any():
            return
        at = self.standing(seen.X, seen.group) if seen.at is None else seen.at
        pi = self.policies(at)
        z = values(pi, seen.p, seen.accepted, seen.bad, self.alpha)
        self.wealth.add(z, self.ratio_bounds(deployed), use)
        self.n_used += int(seen.accepted.sum())

    def nearest(self, q: float) -> int:
        """Return the rung nearest to a share."""
        return int(np.argmin(np.abs(self.grid - q)))

    def more_outcomes(self, rung: int) -> float:
        """Return about how many more outcomes a rung needs if they are like those so far.

        Each gambler's log-wealth is taken to go on growing as it did per outcome. NaN where none
        has gained anything, so that nobody can say.
        """
        log, needed = self.wealth.log[:, rung], self.threshold(rung)
        if self.wealth.best[rung] >= needed:
            return 0.0
        if log.max() <= 0 or not np.isfinite(needed):
            return float("nan")
        bets = np.log(log.size)
        alone = (needed + bets) / log.max()  # times the outcomes so far, if one gambler wins it all
        times = brentq(
            lambda times: np.logaddexp.reduce(times * log) - bets - needed, 1.0, 1.001 * alone
        )
        return float(self.n_used * (times - 1))

    def certified(self) -> NDArray[np.bool_]:
        """Say which rungs are certified; what once was stays so."""
        found = np.zeros(self.grid.size, dtype=np.bool_)
        for start, share in self.starts:
            reached = self.wealth.best[start:] >= -np.log(self.level * share)
            found[start:] |= np.logical_and.accumulate(reached)
        return found

    def threshold(self, rung: int) -> float:
        """Return the log-wealth that a rung needs in the walk that reaches it with most level."""
        shares = [share for start, share in self.starts if start <= rung]
        return float(-np.log(self.level * max(shares))) if shares else float("inf")


def nearest_certificate(ladders: Iterable[Ladder]) -> tuple[Ladder, int] | None:
    """Return the ladder, and which of its starts, that needs the fewest outcomes to be certified.

    A first certificate is always one of a start. None where nobody can say of any of them.
    """
    starts = [(ladder, start) for ladder in ladders for start, _ in ladder.starts]
    missing = [ladder.more_outcomes(start) for ladder, start in starts]
    known = [i for i, more in enumerate(missing) if np.isfinite(more)]
    return starts[min(known, key=missing.__getitem__)] if known else None


class Reach:
    """Sums over people of some worth times π of every rung, without a table of people by rungs.

    π depends on the rank only: 1 up to q_j, then exponential. So people are counted into the cells
    between rungs once, and sums for all rungs follow from one pass over the cells.
    """

    def __init__(self, ladder: Ladder, at: Standing) -> None:
        self.ladder = ladder
        self.at = Standing(np.empty(0), np.empty(0))
        self._cells = np.empty(0, np.intp)
        self._tails = np.empty(0)
        self.extend(at)

    def extend(self, at: Standing) -> None:
        """Take in more people."""
        grid, tau, rank = self.ladder.grid, self.ladder.tau, at.rank
        cell = np.searchsorted(grid, rank)
        before = grid[np.maximum(cell - 1, 0)]
        tails = np.exp(np.minimum(0.0, (before - rank) / tau))
        if at.barred is not None:
            tails[at.barred] = 0.0
        self.at = self.at.join(at)
        self._cells = np.append(self._cells, cell)
        self._tails = np.append(self._tails, tails)

    def keep(self, stays: NDArray[np.bool_]) -> None:
        """Take everybody else out."""
        self.at = self.at[stays]
        self._cells, self._tails = self._cells[stays], self._tails[stays]

    def sums(self, worth: Floats, rows: Any = slice(None)) -> Floats:
        """Return Σ worth·π for every rung, over some of the people."""
        grid, chance = self.ladder.grid, self.at.chance[rows]
        cells, anyway = self._cells[rows], float(worth @ chance)
        worth = worth * (1 - chance)
        inside = np.bincount(cells, worth, grid.size + 1)
        beyond = np.bincount(cells, worth * self._tails[rows], grid.size + 1)
        decay = np.exp(-np.diff(grid) / self.ladder.tau)
        tail = np.zeros(grid.size)
        tail[-1] = beyond[-1]
        for j in range(grid.size - 2, -1, -1):
            tail[j] = beyond[j + 1] + decay[j] * tail[j + 1]
        return np.asarray(anyway + np.cumsum(inside)[:-1] + tail)
