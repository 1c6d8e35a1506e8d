"""The logged policies, and what they would have done with anybody.

Every round leaves behind a policy: its classifier f_i, its thresholds and its exploration with the
scale it was drawn at. Walking the rounds in order gives, for any person, the probability π_i with
which each round's policy would have accepted them, and from these the coverage w(x, z) and the
weight of a labelled row (method, section 4).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.coverage import CoverageRule
from secondlook.frames import n_rows, take
from secondlook.likelihoods import Likelihood, LinearLikelihood
from secondlook.strategies import Strategy

__all__ = ["LoggedPolicy", "PolicyLog", "Walk", "per_person"]

Floats = NDArray[np.floating]
Groups = NDArray[np.intp]

# Rows in a block: small enough that one block's scores under some 40 policies stay in the cache.
_LINEAR_BLOCK = 2048
# Estimators that are not linear cost a call each; fewer and larger blocks suit them.
_BLOCK = 65536


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
    scale
        Per group, the factor from g to inclusion probability; 0 where nobody was explored.
    n_people, n_rounds
        How many people and rounds it stands for.
    """

    likelihood: int
    thresholds: NDArray[np.float64]
    strategy: Strategy
    group_factor: NDArray[np.float64]
    scale: NDArray[np.float64]
    n_people: int
    n_rounds: int = 1

    def accepts(self, score: Floats, group: Groups) -> NDArray[np.bool_]:
        """Return f_i's decision, as taken in the exploit region."""
        return np.asarray(score >= per_person(self.thresholds, group))

    def g(self, X: Any, score: Floats, group: Groups) -> Floats:
        """Return the exploration weight g(x, z; f_i)."""
        factor = per_person(self.group_factor, group)
        return np.asarray(self.strategy.person_factor(X, score, group) * factor)

    def acceptance(
        self, X: Any, score: Floats, group: Groups, known: NDArray[np.bool_]
    ) -> Floats | NDArray[np.bool_]:
        """Return π_i: f_i's 0 or 1 where known, min(1, scale · g) elsewhere."""
        accepted = self.accepts(score, group)
        if not self.scale.any():
            return accepted & known
        pi = self.strategy.person_factor(X, score, group)
        pi = pi * per_person((self.scale * self.group_factor).astype(score.dtype), group)
        np.minimum(pi, 1, out=pi)
        np.copyto(pi, accepted, where=known)
        return np.asarray(pi)


def per_person(per_group: NDArray[Any], group: Groups) -> Any:
    """Spread a value per group over people; one value for all is left as it is."""
    if np.all(per_group == per_group[0]):
        return per_group[0]
    return per_group[group]


@dataclass(frozen=True)
class Walk:
    """What a walk over the logged policies found for each person.

    Attributes
    ----------
    past
        f_0's acceptance probability.
    own
        Σ n_i · π_i over our own rounds; None if the coverage rule did not need it.
    coverage
        Accumulated w.
    score
        Score under the likelihood asked for.
    """

    past: NDArray[np.float64]
    own: NDArray[np.float64] | None
    coverage: NDArray[np.float64]
    score: NDArray[np.float64]

    def sums_of(
        self, rows: NDArray[np.intp], log: PolicyLog, policy: LoggedPolicy, rule: CoverageRule
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
        """Return (own, coverage, policies walked) of some people, to be written down with them.

        A policy that this round extends is not final yet: then the walk starts over later.
        """
        if self.own is None or (log.extends(policy)):
            return np.zeros(rows.size), self.past[rows] * log.history_weight(rule), 0
        return self.own[rows], self.coverage[rows], len(log.policies)


class PolicyLog:
    """f_0 and the policies of all rounds so far.

    Parameters
    ----------
    past
        f_0 as a likelihood: its score is the probability that the past accepted a person.
    n_history
        Number of people in the history.
    """

    def __init__(self, past: Likelihood, n_history: int) -> None:
        self.n_history = n_history
        self.likelihoods: list[Likelihood] = [past]
        self.policies: list[LoggedPolicy] = []
        self._stack: _Stack | None = None

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

    def append(self, policy: LoggedPolicy) -> None:
        """Log a round's policy.

        A round that explored nobody under an unchanged f_t extends the policy before it if that one
        explored nobody either: the two act alike on everybody. So a stream of single applications
        does not make a policy each.
        """
        if not self.extends(policy):
            self.policies.append(policy)
            return
        last = self.policies[-1]
        self.policies[-1] = replace(
            last,
            n_people=last.n_people + policy.n_people,
            n_rounds=last.n_rounds + policy.n_rounds,
        )

    def extends(self, policy: LoggedPolicy) -> bool:
        """Say whether a policy acts on everybody as the last one does."""
        return bool(self.policies) and _same_exploitation(self.policies[-1], policy)

    def walk(
        self,
        X: Any,
        group: Groups,
        rule: CoverageRule,
        *,
        score_of: int = 0,
    ) -> Walk:
        """Walk all rounds in order for people of whom nothing is known yet.

        ``score_of`` is the position of the likelihood whose scores are wanted. Σ n_i·π_i is
        computed only where the rule needs the π_i anyway; otherwise that waits for an outcome.
        """
        acceptance = rule.needs == "acceptance"
        n = n_rows(X)
        walk = Walk(np.empty(n), np.empty(n) if acceptance else None, np.empty(n), np.empty(n))
        for rows, scores in self._blocks(X, group, first=0):
            past = scores.score(0)
            walk.past[rows], walk.score[rows] = past, scores.score(score_of)
            own, coverage = self._walk_block(
                scores, rule, 0, past * self.history_weight(rule), acceptance
            )
            walk.coverage[rows] = coverage
            if walk.own is not None and own is not None:
                walk.own[rows] = own
        return walk

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
        """Add the rounds from ``begin`` on to the sums of some rows, in place."""
        if begin >= len(self.policies):
            return
        first = self.policies[begin].likelihood
        for block, scores in self._blocks(X, group, first, rows):
            added, coverage[block] = self._walk_block(scores, rule, begin, coverage[block], True)
            own[block] += added

    def history_weight(self, rule: CoverageRule) -> float:
        """Return what f_0's acceptance counts in w."""
        return rule.round_weight(self.n_history, 1, self.n_history)

    def _walk_block(
        self, scores: _BlockScores, rule: CoverageRule, begin: int, coverage: Floats, full: bool
    ) -> tuple[Any, Floats]:
        """Accumulate Σ n_i π_i and w over the policies from ``begin`` on, for one block."""
        if not full and rule.needs == "score":
            return None, scores.weighted_sum(self._score_weights(rule), coverage)
        rounds = sum(policy.n_rounds for policy in self.policies[:begin])
        own = np.zeros_like(coverage)
        for policy in self.policies[begin:]:
            score = scores.score(policy.likelihood)
            known = coverage > rule.level(rounds)
            pi = policy.acceptance(scores.X, score, scores.group, known)
            own += policy.n_people * pi
            weight = rule.round_weight(policy.n_people, policy.n_rounds, self.n_history)
            if rule.needs == "acceptance":
                coverage = coverage + weight * pi
            elif rule.needs == "score":
                coverage = coverage + weight * score
            else:
                coverage = coverage + weight * policy.g(scores.X, score, scores.group)
            rounds += policy.n_rounds
        return own, coverage

    def _score_weights(self, rule: CoverageRule) -> NDArray[np.float64]:
        """Weight of each likelihood in a coverage that is a sum of scores, f_0 apart."""
        weights = np.zeros(len(self.likelihoods))
        for policy in self.policies:
            weights[policy.likelihood] += rule.round_weight(
                policy.n_people, policy.n_rounds, self.n_history
            )
        return weights

    def _blocks(
        self, X: Any, group: Groups, first: int, rows: NDArray[np.intp] | None = None
    ) -> Iterator[tuple[Any, _BlockScores]]:
        """Yield rows in blocks with their scores under the likelihoods from ``first`` on."""
        if self._stack is None or self._stack.size != len(self.likelihoods):
            self._stack = _Stack.of(self.likelihoods)
        stack = self._stack.cast(X) if self._stack is not None else None
        step = _BLOCK if stack is None else _LINEAR_BLOCK
        for at in range(0, n_rows(X) if rows is None else rows.size, step):
            block: Any = slice(at, at + step)
            block = block if rows is None else rows[block]
            if stack is not None:
                yield block, _StackedScores(X[block], group[block], stack, first)
            else:
                yield block, _BlockScores(take(X, block), group[block], self.likelihoods)


def _same_exploitation(last: LoggedPolicy, new: LoggedPolicy) -> bool:
    return (
        last.likelihood == new.likelihood
        and not last.scale.any()
        and not new.scale.any()
        and np.array_equal(last.thresholds, new.thresholds)
        and np.array_equal(last.group_factor, new.group_factor)
    )


class _BlockScores:
    """Scores of one block of people under any likelihoods, computed when asked for."""

    def __init__(self, X: Any, group: Groups, likelihoods: list[Likelihood]) -> None:
        self.X, self.group = X, group
        self._likelihoods = likelihoods
        self._last: tuple[int, Floats] | None = None

    def score(self, position: int) -> Floats:
        """Return the block's scores under one likelihood."""
        if self._last is None or self._last[0] != position:
            self._last = position, self._likelihoods[position].score(self.X, self.group)
        return self._last[1]

    def weighted_sum(self, weights: NDArray[np.float64], start: Floats) -> Floats:
        """Return start + Σ_l weight_l · score_l."""
        for position in np.flatnonzero(weights):
            start = start + weights[position] * self.score(int(position))
        return start


@dataclass(frozen=True)
class _Stack:
    """Linear likelihoods side by side: halved coefficients, so that a sigmoid is one tanh."""

    half_coef: Floats
    half_intercept: Floats

    @property
    def size(self) -> int:
        return int(self.half_intercept.shape[0])

    @staticmethod
    def of(likelihoods: list[Likelihood]) -> _Stack | None:
        linear = [one for one in likelihoods if isinstance(one, LinearLikelihood)]
        if len(linear) < len(likelihoods):
            return None
        coef = np.array([one.coef for one in linear]) * 0.5
        return _Stack(coef, np.array([one.intercept for one in linear]) * 0.5)

    def cast(self, X: Any) -> _Stack:
        return _Stack(
            self.half_coef.astype(X.dtype, copy=False),
            self.half_intercept.astype(X.dtype, copy=False),
        )


class _StackedScores(_BlockScores):
    """Scores of one block under linear likelihoods: one matrix product and one tanh for all.

    σ(z) = ½ + ½·tanh(z/2), whose vectorised form is several times faster than exp and a division.
    """

    def __init__(self, X: Any, group: Groups, stack: _Stack, first: int) -> None:
        self.X, self.group, self._first = X, group, first
        half = stack.half_coef[first:] @ X.T
        half += stack.half_intercept[first:, None]
        self._tanh = np.tanh(half, out=half)

    def score(self, position: int) -> Floats:
        score = self._tanh[position - self._first] * 0.5
        score += 0.5
        return np.asarray(score)

    def weighted_sum(self, weights: NDArray[np.float64], start: Floats) -> Floats:
        half = (weights[self._first :] * 0.5).astype(self._tanh.dtype)
        total = half @ self._tanh
        total += start
        total += half.sum()
        return np.asarray(total)
