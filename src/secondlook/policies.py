"""The logged policies, and what they would have done with anybody.

Every round leaves behind a policy: its classifier f_i, its thresholds and its exploration with the
scale it was drawn at. Walking the rounds in order gives, for any person, the probability π_i with
which each round's policy would have accepted them, and from these the coverage w(x, z) and the
weight of a labelled row (method, section 4).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.block_scores import BlockScores, Scorer
from secondlook.coverage import CoverageRule
from secondlook.frames import n_rows
from secondlook.likelihoods import Likelihood
from secondlook.sampling import chance
from secondlook.strategies import Strategy

__all__ = ["LoggedPolicy", "Look", "PolicyLog", "per_person"]

Floats = NDArray[np.floating]
Groups = NDArray[np.intp]
_Some = NDArray[np.intp] | slice  # rounds


_NO_CHANCE = 1e-30
_FOR_A_BAR = 10  # likelihoods take as much room as telling who exceeds a bar


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


def per_person(per_group: NDArray[Any], group: Groups) -> Any:
    """Spread a value per group over people; one value for all is left as it is."""
    if np.all(per_group == per_group[0]):
        return per_group[0]
    return per_group[group]


@dataclass(frozen=True)
class Look:
    """What one look at a batch tells about each person.

    Attributes
    ----------
    score
        Score under the likelihood asked for, in the precision of the features.
    known
        Whether coverage exceeds τ: the person is in the exploit region.
    """

    score: Floats
    known: NDArray[np.bool_]


class PolicyLog:
    """f_0 and the policies of all rounds so far.

    What is logged is in ``__dict__``. The slots hold what is made of it when people are scored, for
    the next time; they are no part of what is saved.

    Parameters
    ----------
    past
        f_0 as a likelihood: its score is the probability that the past accepted a person.
    n_history
        Number of people in the history.
    """

    __slots__ = ("__dict__", "_rounds", "_scorer")

    def __init__(self, past: Likelihood, n_history: int) -> None:
        self.n_history = n_history
        self.likelihoods: list[Likelihood] = [past]
        self.policies: list[LoggedPolicy] = []
        self.first_batch = 0
        self._n_final = 0

    @property
    def n_rounds(self) -> int:
        """Number of rounds logged."""
        return sum(policy.n_rounds for policy in self.policies)

    @property
    def n_people(self) -> int:
        """Number of people decided on in the rounds logged."""
        return sum(policy.n_people for policy in self.policies)

    def add_likelihood(self, likelihood: Likelihood) -> int:
        """Return the position of a likelihood, adding it if it is new."""
        for position, known in enumerate(self.likelihoods):
            if known is likelihood:
                return position
        self.likelihoods.append(likelihood)
        return len(self.likelihoods) - 1

    def append(self, policy: LoggedPolicy, *, merge: bool = True) -> None:
        """Log a round's policy.

        A round that explored nobody under an unchanged f_t extends the policy before it if that one
        explored nobody either: the two act alike on everybody. So a stream of single applications
        does not make a policy each. That is exact where coverage is a sum of π_i, for then it does
        not change in between for anybody who is not known; other rules pass ``merge=False``.
        """
        if not self.policies:
            self.first_batch = policy.n_people
        if not (merge and self._extends(policy)):
            self.policies.append(policy)
            return
        last = self.policies[-1]
        self.policies[-1] = replace(
            last,
            n_people=last.n_people + policy.n_people,
            n_rounds=last.n_rounds + policy.n_rounds,
        )

    def seal(self) -> None:
        """Make the policies logged so far final: somebody's sums hold them as they are now."""
        self._n_final = len(self.policies)

    def _extends(self, policy: LoggedPolicy) -> bool:
        """Say whether a policy acts on everybody as the last one does, which is not final yet."""
        open_ended = len(self.policies) > self._n_final
        return open_ended and _same_exploitation(self.policies[-1], policy)

    def look(self, X: Any, group: Groups, rule: CoverageRule, *, score_of: int) -> Look:
        """Score people under one likelihood and tell who is known, computing no more than that."""
        scorer = self._scorer_of(X)
        rounds = self._rounds_of(rule, scorer.dtype)
        look = Look(np.empty(n_rows(X), scorer.dtype), np.empty(n_rows(X), np.bool_))
        if rule.needs == "score":
            # f_0 counts once, as a round does.
            weights = np.zeros(len(self.likelihoods))
            weights[0] = 1.0
            np.add.at(weights, rounds.likelihoods, rounds.weights)
            bar = scorer.bar(weights, float(rounds.levels[-1]))
            for rows, scores in scorer.blocks(X, group, n_asked=_FOR_A_BAR):
                look.score[rows], look.known[rows] = scores.score(score_of), scores.exceeds(bar)
            return look
        for rows, scores in scorer.blocks(X, group):
            past, look.score[rows] = scores.table(np.array([0, score_of])).T
            look.known[rows] = rounds.known(scores, past)
        return look

    def coverage(self, X: Any, group: Groups, rule: CoverageRule) -> NDArray[np.float64]:
        """Return the accumulated w of people of whom nothing is known yet."""
        everybody = np.arange(n_rows(X))
        own, coverage = np.zeros(everybody.size), np.empty(everybody.size)
        self.start(X, group, everybody, np.empty(everybody.size), coverage)
        self.catch_up(X, group, rule, begin=0, own=own, coverage=coverage, rows=everybody)
        return coverage

    def start(
        self,
        X: Any,
        group: Groups,
        rows: NDArray[np.intp],
        past: NDArray[np.float64],
        coverage: NDArray[np.float64],
    ) -> None:
        """Fill in f_0's acceptance, which is also w before the first round, of some rows."""
        for block, scores in self._scorer_of(X).blocks(X, group, rows, n_asked=1):
            past[block] = scores.score(0)
            coverage[block] = past[block]

    def catch_up(
        self,
        X: Any,
        group: Groups,
        rule: CoverageRule,
        *,
        begin: int,
        own: NDArray[np.float64],
        coverage: NDArray[np.float64],
        rows: NDArray[np.intp],
    ) -> None:
        """Add the rounds from ``begin`` on to Σ n_i·π_i and w of some rows, in place."""
        if begin >= len(self.policies):
            return
        scorer = self._scorer_of(X)
        rounds = self._rounds_of(rule, scorer.dtype).since(begin)
        for block, scores in scorer.blocks(X, group, rows, n_asked=len(rounds.policies)):
            added, coverage[block] = rounds.accumulate(scores, coverage[block])
            own[block] += added

    def _scorer_of(self, X: Any) -> Scorer:
        """Return the likelihoods made ready for features of this kind."""
        # Likelihoods are only ever added.
        key = (X.dtype if isinstance(X, np.ndarray) else None, len(self.likelihoods))
        if getattr(self, "_scorer", (None,))[0] != key:
            self._scorer = key, Scorer(self.likelihoods, X)
        return self._scorer[1]

    def _rounds_of(self, rule: CoverageRule, dtype: Any) -> _Rounds:
        """Return all rounds made ready for scores of this precision."""
        # Policies are only ever added, but the last may be replaced by one for more people.
        last = self.policies[-1].n_people if self.policies else 0
        key = (rule, dtype, len(self.policies), last)
        if getattr(self, "_rounds", (None,))[0] != key:
            self._rounds = key, _Rounds.of(self, rule, dtype)
        return self._rounds[1]


@dataclass(frozen=True)
class _Rounds:
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
    def of(log: PolicyLog, rule: CoverageRule, dtype: Any) -> _Rounds:
        policies = log.policies.copy()
        rounds = accumulate((p.n_rounds for p in policies), initial=0)
        weights = [rule.round_weight(p.n_people, p.n_rounds, log.first_batch) for p in policies]
        names = ("thresholds", "left", "others", "group_factor")
        rows = [np.empty(0)] + [getattr(p, name) for name in names for p in policies]
        n_groups = policies[0].left.size if policies else 1
        tables = np.concatenate(rows).astype(dtype).reshape(4, len(policies), n_groups)
        apart = (tables != tables[:, :, :1]).any(axis=(1, 2))
        cuts, left, others, factors = (
            table.T.copy() if told else table.T[:1].copy()
            for table, told in zip(tables, apart, strict=True)
        )
        return _Rounds(
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

    def since(self, begin: int) -> _Rounds:
        """Return the rounds from one on."""
        lists = ("policies", "likelihoods", "people", "weights", "levels")
        tables = ("cuts", "left", "others", "group_factors")
        parts = {name: getattr(self, name)[begin:] for name in lists}
        return replace(self, **parts, **{name: getattr(self, name)[:, begin:] for name in tables})

    def known(self, scores: BlockScores, start: Floats) -> NDArray[np.bool_]:
        """Say who is known after these rounds, in a block that comes in with w = ``start``."""
        if not self.policies:
            return np.asarray(start > self.levels[-1])
        if self.needs == "g":
            return np.asarray(self.accumulate(scores, start)[1] > self.levels[-1])
        # A sum of π_i only grows: whoever is known at the start stays known, and for the others
        # exploration alone tells whether they have become known.
        known = np.asarray(start > self.levels[-1])
        rows = np.flatnonzero(~known)
        if rows.size:
            known[rows] = self._explore_only(scores.part(rows), start[rows]) > self.levels[-1]
        return known

    def _explore_only(self, scores: BlockScores, start: Floats) -> Floats:
        """Return w after these rounds if nobody became known on the way."""
        drawn = np.flatnonzero(self.left.any(axis=0))
        if drawn.size == 0:
            return start
        g = self._g(drawn, scores, scores.table(self.likelihoods[drawn]))
        return start + self._explored(drawn, g, scores.group) @ self.weights[drawn]

    def accumulate(self, scores: BlockScores, start: Floats) -> tuple[Any, Any]:
        """Return Σ n_i·π_i and w after these rounds, for a block that comes in with ``start``.

        What a round adds to w for somebody not known yet does not depend on the rounds before, so a
        running sum over all rounds tells who was known when.
        """
        every = slice(None)
        score = scores.table(self.likelihoods)
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
        accepted = score >= _per_person_table(self.cuts, scores.group)
        pi = np.where(known, accepted, explored)
        w = start + pi @ self.weights if acceptance else reached[:, -1]
        return pi @ self.people, w

    def _explored(self, rounds: _Some, g: Floats, group: Groups) -> Floats:
        """Return the chance of being drawn in the explore region."""
        left, others = self.left[:, rounds], self.others[:, rounds]
        return np.asarray(
            chance(g, _per_person_table(left, group), _per_person_table(others, group))
        )

    def _g(self, rounds: _Some, scores: BlockScores, score: Floats) -> Floats:
        """Return g(x, z; f_i) in some rounds."""
        factors = self._person_factors(rounds, scores, score)
        if np.all(self.group_factors == 1):
            return factors
        return np.asarray(factors * _per_person_table(self.group_factors[:, rounds], scores.group))

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


def _per_person_table(per_group: Floats, group: Groups) -> Floats:
    """Spread a table (group, round) over people; one row for all is left as it is."""
    return per_group if per_group.shape[0] == 1 else per_group[group]


def _same_exploitation(last: LoggedPolicy, new: LoggedPolicy) -> bool:
    return (
        last.likelihood == new.likelihood
        and not last.left.any()
        and not new.left.any()
        and np.array_equal(last.thresholds, new.thresholds)
        and np.array_equal(last.group_factor, new.group_factor)
    )
