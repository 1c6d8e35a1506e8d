"""The policies of past rounds as arrays: what each would have done with a block of people."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.core.coverage import CoverageRule
from secondlook.core.sampling import chance
from secondlook.core.strategies import Strategy
from secondlook.methods.algorithm1.block_scores import BlockScores
from secondlook.methods.algorithm1.hurdles import per_person_table

__all__ = ["LoggedPolicy", "PastRounds"]

Floats = NDArray[np.floating]
Groups = NDArray[np.intp]
_Some = NDArray[np.intp] | slice  # rounds

_NO_CHANCE = 1e-30
_MOST_TELLING = 2  # rounds that are asked before all others who is known
_SIZES = 10.0 ** np.arange(-3, 1)  # of g, by which they are chosen
# How far beyond the level their sum must be. A product of few columns need not have the last bits
# of one of many, and single precision leaves a score near 0 few: g may be off by percents there.
_FOR_SURE = 1.25


@dataclass(frozen=True)
class LoggedPolicy:
    """What one round did, as a function that can be evaluated for anybody.

    Attributes
    ----------
    likelihood
        Position of f_i in the log.
    thresholds
        Per group, the score from which f_i accepts in the exploit region.
    strategy
        Exploration strategy of the round.
    group_factor
        The strategy's factor per group, frozen when the round was drawn.
    left, others
        Per group, ``Draw.left`` and ``Draw.others`` of the round: what chance g gives somebody in
        the explore region; ``left`` is 0 where nobody could be explored.
    n_people, n_rounds
        How many people and rounds it stands for.
    """

    likelihood: int
    thresholds: NDArray[np.float64]
    strategy: Strategy
    group_factor: NDArray[np.float64]
    left: NDArray[np.float64]
    others: NDArray[np.float64]
    n_people: int
    n_rounds: int = 1

    def __post_init__(self) -> None:
        for array in (self.thresholds, self.group_factor, self.left, self.others):
            array.setflags(write=False)  # what was logged stays as it was


@dataclass(frozen=True)
class PastRounds:
    """The policies from one round on as arrays with an entry a round, ready for any block.

    Tables made of them have a row a person and a column a round.
    """

    policies: list[LoggedPolicy]
    needs: str
    likelihoods: NDArray[np.intp]
    people: Floats
    weights: Floats  # in w
    levels: Floats  # that w must exceed before each round, and after the last
    # Tables (group, round) have one row for all groups if no round tells them apart.
    cuts: Floats
    left: Floats
    others: Floats
    group_factors: Floats
    strategy: Strategy | None  # of all rounds, if they share one that does not read the features

    @staticmethod
    def of(
        logged: list[LoggedPolicy], first_batch: int, rule: CoverageRule, dtype: Any
    ) -> PastRounds:
        """Return all rounds logged so far, of which the first had so many people."""
        policies = logged.copy()
        rounds = accumulate((p.n_rounds for p in policies), initial=0)
        weights = [rule.round_weight(p.n_people, p.n_rounds, first_batch) for p in policies]
        names = ("thresholds", "left", "others", "group_factor")
        rows = [np.empty(0)] + [getattr(p, name) for name in names for p in policies]
        n_groups = policies[0].left.size if policies else 1
        tables = np.concatenate(rows).astype(dtype).reshape(4, len(policies), n_groups)
        apart = (tables != tables[:, :, :1]).any(axis=(1, 2))
        cuts, left, others, factors = (
            table.T.copy() if told else table.T[:1].copy()
            for table, told in zip(tables, apart, strict=True)
        )
        return PastRounds(
            policies,
            rule.needs,
            likelihoods=np.array([p.likelihood for p in policies], dtype=np.intp),
            people=np.array([p.n_people for p in policies], dtype),
            weights=np.array(weights, dtype),
            levels=np.array([rule.level(count) for count in rounds], dtype),
            cuts=cuts,
            left=left,
            others=others,
            group_factors=factors,
            strategy=_shared_strategy(policies),
        )

    def since(self, begin: int) -> PastRounds:
        """Return the rounds from one on."""
        lists = ("policies", "likelihoods", "people", "weights", "levels")
        tables = ("cuts", "left", "others", "group_factors")
        parts = {name: getattr(self, name)[begin:] for name in lists}
        return replace(self, **parts, **{name: getattr(self, name)[:, begin:] for name in tables})

    def most_telling(self) -> NDArray[np.intp]:
        """Return a few rounds that make many people known by themselves, where there are such.

        Those in which people of some sizes g had the largest chances: late rounds, when few were
        left to explore.
        """
        if self.strategy is None or self.needs != "acceptance":
            return np.empty(0, np.intp)
        chances = [chance(g, self.left, self.others).mean(axis=0) for g in _SIZES]
        gain = self.weights * np.mean(chances, axis=0)
        best = np.argsort(-gain, kind="stable")[:_MOST_TELLING]
        few = 2 * best.size <= len(self.policies)
        return best if few and gain[best].sum() > _FOR_SURE * self.levels[-1] else best[:0]

    def known_for_sure(
        self, scores: BlockScores, start: Floats, telling: NDArray[np.intp]
    ) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
        """Say who is known whatever the other rounds did, and for which rows ``known`` must tell.

        A sum of π_i only grows: whoever is known at the start, or after some of the rounds, is
        known after all of them.
        """
        known = np.asarray(start > self.levels[-1])
        if not self.policies:
            return known, np.empty(0, np.intp)
        if self.needs == "g":
            return known, np.arange(known.size)
        unsure = np.flatnonzero(~known)
        if telling.size and unsure.size:
            part = scores.part(unsure)
            score = part.columns(self.likelihoods[telling])
            w = self._explore_only(telling, part, score, start[unsure])
            known[unsure] = w > _FOR_SURE * self.levels[-1]
            unsure = unsure[~known[unsure]]
        return known, unsure

    def known(self, scores: BlockScores, start: Floats) -> NDArray[np.bool_]:
        """Say who is known after these rounds, of people who come in with w = ``start``.

        Where w is a sum of π_i, of people who are not known at the start: for them exploration
        alone tells whether they have become known.
        """
        if self.needs == "g":
            return np.asarray(self.accumulate(scores, start)[1] > self.levels[-1])
        drawn = np.flatnonzero(self.left.any(axis=0))
        if drawn.size == 0:
            return np.zeros(start.shape, np.bool_)
        score = scores.table(self.likelihoods[drawn])
        return np.asarray(self._explore_only(drawn, scores, score, start) > self.levels[-1])

    def _explore_only(
        self, rounds: NDArray[np.intp], scores: BlockScores, score: Floats, start: Floats
    ) -> Floats:
        """Return w after some rounds if nobody became known on the way."""
        g = self._g(rounds, scores, score)
        return start + self._explored(rounds, g, scores.group) @ self.weights[rounds]

    def known_at_start(self, start: Floats) -> NDArray[np.bool_]:
        """Say who comes in known and stays so: where w is a sum of π_i, it only grows."""
        if self.needs != "acceptance":
            return np.zeros(start.shape, np.bool_)
        return np.asarray(start.astype(self.levels.dtype, copy=False) > self.levels[:-1].max())

    def accumulate_known(self, reached: NDArray[np.bool_]) -> Any:
        """Return Σ n_i·π_i and what the rounds add to w, of people who are never explored.

        ``reached`` says, with a row a round, whom f_i accepts.
        """
        return (self._people_and_weights @ reached.astype(self._people_and_weights.dtype)).astype(
            np.float64, copy=False
        )

    @cached_property
    def _people_and_weights(self) -> Floats:
        """Both in double precision, or in single where every sum of them is exact in that too."""
        both = np.stack((self.people, self.weights)).astype(np.float64)
        exact = np.all(both == np.rint(both)) and both.sum(axis=1).max() < 2**24
        return both.astype(np.float32) if exact else both

    def accumulate(self, scores: BlockScores, start: Floats) -> tuple[Any, Any]:
        """Return Σ n_i·π_i and w after these rounds, for a block that comes in with ``start``.

        What a round adds to w for somebody not known yet does not depend on the rounds before, so a
        running sum over all rounds tells who was known when.
        """
        score = scores.table(self.likelihoods)
        accepted = score >= per_person_table(self.cuts, scores.group)
        pi, w = self._walk(scores, score, accepted, start)
        return pi @ self.people, start + pi @ self.weights if w is None else w

    def _walk(
        self, scores: BlockScores, score: Floats, accepted: NDArray[np.bool_], start: Floats
    ) -> tuple[Any, Any]:
        """Return each π_i, and w after these rounds unless that is a sum of π_i."""
        every = slice(None)
        g = self._g(every, scores, score)
        explored = self._explored(every, g, scores.group)
        acceptance = self.needs == "acceptance"
        known = np.empty(score.shape, np.bool_)
        known[:, 0] = start > self.levels[0]
        if len(self.policies) > 1 or not acceptance:
            adding = explored if acceptance else score if self.needs == "score" else g
            reached = adding * self.weights
            reached[:, 0] += start
            np.cumsum(reached, axis=1, out=reached)
            np.greater(reached[:, :-1], self.levels[1:-1], out=known[:, 1:])
        return np.where(known, accepted, explored), None if acceptance else reached[:, -1]

    def _explored(self, rounds: _Some, g: Floats, group: Groups) -> Floats:
        """Return the chance of being drawn in the explore region."""
        left, others = self.left[:, rounds], self.others[:, rounds]
        return np.asarray(chance(g, per_person_table(left, group), per_person_table(others, group)))

    def _g(self, rounds: _Some, scores: BlockScores, score: Floats) -> Floats:
        """Return g(x, z; f_i) in some rounds."""
        factors = self._person_factors(rounds, scores, score)
        if np.all(self.group_factors == 1):
            return factors
        return np.asarray(factors * per_person_table(self.group_factors[:, rounds], scores.group))

    def _person_factors(self, rounds: _Some, scores: BlockScores, score: Floats) -> Floats:
        """Return the person's factor of g in some rounds; one call if all share a strategy.

        A user's function is promised to be positive on the candidates of its round only; whoever it
        gives nothing, or nonsense, had no chance of being drawn (a tiny one keeps ratios defined).
        Whom a limit bars had none at all.
        """
        if self.strategy is not None:
            return np.asarray(self.strategy.person_factor(None, score, scores.group[:, None]))
        strategies = [self.policies[i].strategy for i in np.arange(len(self.policies))[rounds]]
        raw = np.stack(
            [
                strategy.person_factor(scores.X, score[:, at], scores.group)
                for at, strategy in enumerate(strategies)
            ],
            axis=1,
        )
        barred = (raw == 0) & [strategy.is_limited for strategy in strategies]
        return np.where(barred, 0.0, np.fmax(raw, _NO_CHANCE)).astype(score.dtype)


def _shared_strategy(policies: list[LoggedPolicy]) -> Strategy | None:
    """Return the strategy of all policies, if they share one that does not read the features."""
    if not policies or policies[0].strategy.reads_features:
        return None
    first = policies[0].strategy
    shared = all(one.strategy is first or one.strategy == first for one in policies)
    return first if shared else None
