"""The logged policies, and how each of them would have treated any applicant.

Every round leaves a policy behind: its classifier f_i, its thresholds, and its exploration with the
factor it was drawn at. A walk over the rounds gives, for any applicant, the probability π_i that
round i's policy accepts them. From these follow the coverage w(x, z) and the weight of a labelled
row (method, section 4).

A round with a ramp r below 1 did what its policy says for a share r of the applicants, and what the
incumbent decided (d) for the others, so p_i = (1 − r)·d + r·π_i takes the place of π_i. Where d of
an applicant is not known, f_0's probability of acceptance stands for it, since f_0 imitates how the
lender decided before. An applicant who is not barred now is taken as one who never was.

Rounds that share f_i and its thresholds are merged into one policy, so that the log grows with what
was learned and not with the number of rounds. A merged policy never claims more coverage than its
rounds gave (``LoggedPolicy.joined``).
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.core.coverage import CoverageRule
from fairchance.core.sampling import chance
from fairchance.core.saved import saved
from fairchance.core.strategies import Strategy
from fairchance.frames import n_rows, take
from fairchance.people.likelihoods import Likelihood, LinearLikelihood, without_expansion
from fairchance.people.store import ApplicantRows

__all__ = ["LOG_COLUMNS", "LoggedPolicy", "Look", "PolicyLog", "per_person"]

Floats = NDArray[np.floating]
Groups = NDArray[np.intp]
Rows = NDArray[np.intp]

_NOT_WALKED = -1
# Columns of accepted applicants that ``PolicyLog.update`` fills in once an outcome has come:
# ``past`` is f_0's acceptance probability; ``own`` is Σ n_i·π_i over the first ``walked`` policies,
# and ``coverage`` is w after these. A decision fills in ``incumbent``, which is d or −1 if that is
# not known, and ``explored``.
LOG_COLUMNS = {
    "walked": np.int32(_NOT_WALKED),
    "past": 0.0,
    "own": 0.0,
    "coverage": 0.0,
    "incumbent": np.int8(-1),
    "explored": np.bool_(False),
}

_NO_CHANCE = 1e-30
_LIKE = 1.5  # largest ratio of ``others`` of rounds that are merged
# Scores in a block: few enough to stay in the processor's cache, which makes linear models several
# times faster. Other models cost a call each, so they get fewer and larger blocks.
_LINEAR_SCORES, _BLOCK = 2048 * 40, 65536


def per_person(per_group: NDArray[Any], group: Groups) -> Any:
    """Return each applicant's value of their group; a value that all groups share as a scalar."""
    if np.all(per_group == per_group[0]):
        return per_group[0]
    return per_group[group]


@saved
@dataclass(frozen=True)
class LoggedPolicy:
    """The policy of one round, as a function that can be evaluated for any applicant.

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
        Per group, ``Draw.left`` and ``Draw.others`` of the round, which turn g into a probability
        of being explored; ``left`` is 0 if the round could not explore.
    n_people, n_rounds
        How many applicants and rounds were decided by it.
    most
        Per group, the largest probability of being explored; below 1 only if rounds were merged.
    follows
        How it follows f_0. ``"matched"``: f_0's thresholds accept applicants who are not known,
        too; ``"drawn"``: f_0's score is the probability of every applicant.
    ramp
        The share of applicants for whom it decided; for the others the incumbent did.
    """

    likelihood: int
    thresholds: NDArray[np.float64]
    strategy: Strategy
    group_factor: NDArray[np.float64]
    left: NDArray[np.float64]
    others: NDArray[np.float64]
    n_people: int
    n_rounds: int = 1
    follows: str = ""
    ramp: float = 1.0
    most: NDArray[np.float64] = field(default_factory=lambda: np.ones(1))

    def __post_init__(self) -> None:
        object.__setattr__(self, "most", np.broadcast_to(self.most, self.left.shape))
        for array in (self.thresholds, self.group_factor, self.left, self.others, self.most):
            array.setflags(write=False)  # the log never changes

    @property
    def adds_coverage(self) -> bool:
        """Whether a sum of π_i grows by it for any applicant who is not known."""
        return bool(self.left.any()) or self.follows in ("matched", "drawn") or self.ramp < 1

    def acts_like(self, other: LoggedPolicy) -> bool:
        """Return whether both exploit alike and explore by the same g in draws of like size."""
        return (
            self.likelihood == other.likelihood
            and self.follows == other.follows == ""
            and self.ramp == other.ramp
            and np.array_equal(self.thresholds, other.thresholds)
            and (self.strategy is other.strategy or self.strategy == other.strategy)
            and self._draws_like(other)
        )

    def _draws_like(self, other: LoggedPolicy) -> bool:
        """Return whether ``joined`` loses little: nothing with equal ``others``, as with coins."""
        first, second = self.others / self.group_factor, other.others / other.group_factor
        both = (self.left > 0) & (other.left > 0)
        least, most = np.minimum(first, second), np.maximum(first, second)
        return bool(np.all(~both | (most <= _LIKE * least)))

    def joined(self, other: LoggedPolicy) -> LoggedPolicy:
        """Return one policy for the rounds of two that act alike.

        A policy explores with probability h_i(g) = min(most_i, left_i·g / (others_i + g)), and the
        merged h is at most the mean of both over applicants, for every g: 1 / (others + g) is
        convex in ``others``, so their mean, weighted by ``left``, gives a lower bound (Jensen).
        Both h_i rise beyond the g at which the first of them reaches its limit, so the merged h
        has its value there as its limit.
        """
        n = np.array([self.n_people, other.n_people], np.float64)
        share = n / n.sum() if n.any() else np.full(2, 0.5)
        # g of the other policy is counted in units of this one's factor.
        scale = self.group_factor / other.group_factor
        others = np.array([self.others, other.others * scale])
        most = np.array([self.most, other.most])
        left = np.array([self.left, other.left])
        left = np.where(others > 0, left, np.minimum(left, most))  # then h is constant
        mean = share @ left
        middle = np.where(mean > 0, share @ (left * others), 1.0) / np.where(mean > 0, mean, 1.0)
        reaches = left > most
        at = np.where(reaches, most * others / np.where(reaches, left - most, 1.0), np.inf)
        return replace(
            self,
            left=mean,
            others=middle,
            most=np.minimum(mean / (1 + middle / at.min(axis=0)), 1.0),
            n_people=self.n_people + other.n_people,
            n_rounds=self.n_rounds + other.n_rounds,
        )


@dataclass(frozen=True)
class Look:
    """Scores and regions of a batch.

    Attributes
    ----------
    score
        Score under the requested likelihood, in the precision of the features.
    known
        Whether coverage exceeds τ: the applicant is in the exploit region.
    """

    score: Floats
    known: NDArray[np.bool_]


@saved
class PolicyLog:
    """f_0 and the policies of all rounds so far.

    Parameters
    ----------
    past
        f_0 as a likelihood: its score is the probability that the past accepted an applicant.
    n_history
        Number of applicants in the history.

    Attributes
    ----------
    n_final : policies that later rounds cannot extend, as they are part of stored sums.
    last : the policy of the last round by itself, if there was a round.
    """

    def __init__(self, past: Likelihood, n_history: int) -> None:
        self.n_history = n_history
        self.likelihoods: list[Likelihood] = [past]
        self.policies: list[LoggedPolicy] = []
        self.first_batch = 0
        self.n_final = 0
        self.last: LoggedPolicy | None = None
        self._before_last: list[LoggedPolicy] = []

    @property
    def n_rounds(self) -> int:
        """Number of rounds logged."""
        return sum(policy.n_rounds for policy in self.policies)

    @property
    def n_people(self) -> int:
        """Number of applicants in the rounds logged."""
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

        It extends a policy that acts alike, unless that is final. Coverage must be a sum of π_i;
        other rules pass ``merge=False``.
        """
        if not self.policies:
            self.first_batch = policy.n_people
        self.last, self._before_last = policy, self.policies
        alike = (
            at
            for at in range(self.n_final, len(self.policies) if merge else 0)
            if self.policies[at].acts_like(policy)
        )
        at = next(alike, None)
        if at is None:
            self.policies = [*self.policies, policy]
        else:
            merged = self.policies[at].joined(policy)
            self.policies = [*self.policies[:at], merged, *self.policies[at + 1 :]]

    def for_round(self, rule: CoverageRule) -> PolicyLog:
        """Return what the coverage of applicants needs; no later round changes it."""
        kept = [one for one in self.policies if rule.needs != "acceptance" or one.adds_coverage]
        log = PolicyLog(self.likelihoods[0], self.n_history)
        log.first_batch = self.first_batch
        log.policies = [
            replace(one, likelihood=log.add_likelihood(self.likelihoods[one.likelihood]))
            for one in kept
        ]
        return log

    # Applicants to decide on.

    def look(
        self,
        X: Any,
        group: Groups,
        rule: CoverageRule,
        *,
        score_of: int,
        incumbent: NDArray[Any] | None = None,
    ) -> Look:
        """Score applicants under one likelihood and find the known ones."""
        rounds = self._rounds(rule, X)
        look = Look(np.empty(n_rows(X), rounds.dtype), np.empty(n_rows(X), np.bool_))
        if rule.needs == "score":
            positions, weights = rounds.score_weights(len(self.likelihoods))
        else:
            used = [one.adds_coverage for one in self.policies]
            which = np.flatnonzero(np.array(used, np.bool_) | (rule.needs != "acceptance"))
            positions = rounds.likelihoods[which]
        first, scorer = self._scorer(np.array([0, score_of]), X), self._scorer(positions, X)
        for rows in _blocks(n_rows(X), scorer):
            block, z = take(X, rows), group[rows]
            start, look.score[rows] = first.table(block, z).T
            d = start if incumbent is None else incumbent[rows]
            if rule.needs == "score":
                w: Any = scorer.table(block, z) @ weights
                if rounds.is_ramped:
                    w += d * ((1 - rounds.ramps) @ rounds.weights)
            elif which.size == 0:
                w = start
            elif rule.needs == "g":
                _, w = rounds.walk(block, z, scorer.table(block, z), start, d)
            else:
                # Applicants known at the start stay known, and need no more scores.
                w, rest = start, np.flatnonzero(~(start > rounds.levels[-1]))
                if rest.size:
                    some, z, d = take(block, rest), z[rest], d[rest]
                    w[rest] += rounds.unknown(some, z, scorer.table(some, z), which, d)
            look.known[rows] = w > rounds.levels[-1]
        return look

    @property
    def uses_incumbent(self) -> bool:
        """Whether what was done in any round depends on the incumbent's decisions."""
        return any(policy.ramp < 1 for policy in self.policies)

    def coverage(
        self, X: Any, group: Groups, rule: CoverageRule, incumbent: NDArray[Any] | None = None
    ) -> NDArray[np.float64]:
        """Return the accumulated w of applicants."""
        past = self.past_acceptance(X, group)
        return self.walk(X, group, rule, past, incumbent=incumbent)[1]

    def last_acceptance(
        self, X: Any, group: Groups, rule: CoverageRule, incumbent: NDArray[Any] | None = None
    ) -> NDArray[np.float64]:
        """Return the probability that the policy of the last round accepts each applicant."""
        assert self.last is not None
        log, n = copy(self), len(self._before_last)
        log.policies = [*self._before_last, replace(self.last, n_people=1)]
        past = self.past_acceptance(X, group)
        _, w = log.walk(X, group, rule, past, end=n, incumbent=incumbent)
        return log.walk(X, group, rule, w, begin=n, incumbent=incumbent)[0]

    def past_acceptance(
        self, X: Any, group: Groups, rows: Rows | None = None
    ) -> NDArray[np.float64]:
        """Return f_0's acceptance probability of some rows, which is also w before round 1."""
        rows = np.arange(n_rows(X)) if rows is None else rows
        past, scorer = np.empty(rows.size), self._scorer(np.zeros(1, np.intp), X)
        for at in _blocks(rows.size, scorer):
            some = rows[at]
            past[at] = scorer.table(take(X, some), group[some])[:, 0]
        return past

    def walk(
        self,
        X: Any,
        group: Groups,
        rule: CoverageRule,
        start: NDArray[np.float64],
        rows: Rows | None = None,
        *,
        begin: int = 0,
        end: int | None = None,
        incumbent: NDArray[Any] | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Walk over logged policies with some rows, whose w before them is ``start``.

        Return Σ n_i·π_i over these policies, and w after them. ``start`` and ``incumbent`` (d) have
        an entry for each of these rows.
        """
        rows = np.arange(n_rows(X)) if rows is None else rows
        own, w = np.zeros(rows.size), start.copy()
        rounds = self._rounds(rule, X, begin, end)
        if not rounds.policies:
            return own, w
        if incumbent is None:
            incumbent = self.past_acceptance(X, group, rows) if rounds.is_ramped else start
        scorer = self._scorer(rounds.likelihoods, X)
        for at in _blocks(rows.size, scorer):
            some = rows[at]
            block, z = take(X, some), group[some]
            own[at], w[at] = rounds.walk(block, z, scorer.table(block, z), w[at], incumbent[at])
        return own, w

    # Labelled rows.

    def update(
        self, rows: ApplicantRows, rule: CoverageRule, waiting: tuple[int, ...] | None = None
    ) -> None:
        """Bring the sums of all rows that count up to the newest policy.

        A row that was up to date a round ago needs that round's policy only.
        """
        walked, counted = rows["walked"], rows.counted(waiting)
        own, coverage, group = rows["own"], rows["coverage"], rows["group"]
        new = np.flatnonzero(counted & (walked == _NOT_WALKED))
        if new.size:
            rows["past"][new] = coverage[new] = self.past_acceptance(rows.X, group, new)
            walked[new] = 0
        incumbent = np.where(rows["incumbent"] < 0, rows["past"], rows["incumbent"])
        self.n_final = len(self.policies)
        for begin in np.flatnonzero(np.bincount(walked[counted])):
            at = np.flatnonzero(counted & (walked == begin))
            d = incumbent[at]
            added, w = self.walk(
                rows.X, group, rule, coverage[at], at, begin=int(begin), incumbent=d
            )
            # The sums and the number of policies in them change together, or not at all: a user's
            # function may fail in the walk.
            own[at] += added
            coverage[at], walked[at] = w, len(self.policies)

    def known(self, rows: ApplicantRows, rule: CoverageRule) -> NDArray[np.bool_]:
        """Return which rows are in EXPLOIT_t, by their sums as of the last ``update``."""
        return np.asarray(rows["coverage"] > rule.level(self.n_rounds))

    def mean_acceptance(self, rows: ApplicantRows, *, own_rounds_only: bool) -> NDArray[np.float64]:
        """Return Σ_i (n_i / N)·π_i, each row's mean acceptance probability under the policies.

        The history counts as round 0 unless only our own rounds count.
        """
        if own_rounds_only:
            return np.asarray(rows["own"] / self.n_people)
        total = rows["own"] + self.n_history * rows["past"]
        return np.asarray(total / (self.n_people + self.n_history))

    def _dtype(self, X: Any) -> np.dtype[Any]:
        """Return the precision of scores: that of the features under linear models, else double."""
        inner, _ = without_expansion(self.likelihoods)
        linear = all(isinstance(likelihood, LinearLikelihood) for likelihood in inner)
        return X.dtype if linear else np.dtype(np.float64)

    def _scorer(self, positions: NDArray[np.intp], X: Any) -> _Scorer:
        return _Scorer([self.likelihoods[at] for at in positions], self._dtype(X))

    def _rounds(
        self, rule: CoverageRule, X: Any, begin: int = 0, end: int | None = None
    ) -> _Rounds:
        end = len(self.policies) if end is None else end
        before = sum(policy.n_rounds for policy in self.policies[:begin])
        policies = self.policies[begin:end]
        return _Rounds.of(policies, before, self.first_batch, rule, self._dtype(X))


class _Scorer:
    """Scores of blocks of applicants under several likelihoods, a column each."""

    def __init__(self, likelihoods: list[Likelihood], dtype: np.dtype[Any]) -> None:
        self._dtype = dtype
        self._likelihoods, self._expansion = without_expansion(likelihoods)
        linear = [model for model in self._likelihoods if isinstance(model, LinearLikelihood)]
        self.is_linear = len(linear) == len(likelihoods) > 0
        if self.is_linear:
            # Halved, so that a sigmoid is one tanh: σ(z) = ½ + ½·tanh(z/2), which is several times
            # faster than exp and a division.
            coef = np.array([model.coef for model in linear]).T * 0.5
            self._half_coef = coef.astype(dtype, order="C")
            self._half_intercept = np.array([model.intercept * 0.5 for model in linear], dtype)

    @property
    def n_columns(self) -> int:
        """Number of likelihoods."""
        return len(self._likelihoods)

    def table(self, X: Any, group: Groups) -> Floats:
        """Return the scores, with a row per applicant and a column per likelihood."""
        if self._expansion is not None:
            X = self._expansion.numbers(X)
        if self.is_linear:
            half = X @ self._half_coef
            half += self._half_intercept
            np.tanh(half, out=half)
            half *= 0.5
            half += 0.5
            return np.asarray(half)
        distinct = {id(model): model for model in self._likelihoods}
        scores = {key: model.score(X, group) for key, model in distinct.items()}
        columns = [scores[id(model)] for model in self._likelihoods]
        return np.stack(columns, axis=1).astype(self._dtype, copy=False)


def _blocks(n: int, scorer: _Scorer) -> Iterator[slice]:
    """Yield slices of n rows, of a size that suits a scorer."""
    step = max(1024, _LINEAR_SCORES // scorer.n_columns) if scorer.is_linear else _BLOCK
    for at in range(0, n, step):
        yield slice(at, min(at + step, n))


@dataclass(frozen=True)
class _Rounds:
    """Some logged policies as arrays with an entry per policy.

    Tables (group, policy) have one row for all groups if no policy distinguishes groups.
    """

    policies: list[LoggedPolicy]
    needs: str
    dtype: np.dtype[Any]
    likelihoods: NDArray[np.intp]
    people: Floats
    weights: Floats  # in w
    levels: Floats  # that w must exceed before each policy, and after the last
    thresholds: Floats
    left: Floats
    others: Floats
    most: Floats
    group_factors: Floats
    n_rounds: Floats
    matched: NDArray[np.bool_]  # f_0 also accepts applicants who are not known
    drawn: NDArray[np.bool_]  # f_0's score is the probability
    ramps: Floats
    strategy: Strategy | None  # of all policies, if they share one that does not read features

    @property
    def is_ramped(self) -> bool:
        """Whether the incumbent decided on a part of any batch."""
        return bool((self.ramps < 1).any())

    @staticmethod
    def of(
        policies: list[LoggedPolicy],
        n_before: int,
        first_batch: int,
        rule: CoverageRule,
        dtype: np.dtype[Any],
    ) -> _Rounds:
        """Return policies that follow ``n_before`` rounds; the first round had ``first_batch``."""
        counts = accumulate((policy.n_rounds for policy in policies), initial=n_before)
        weights = [rule.round_weight(p.n_people, p.n_rounds, first_batch) for p in policies]
        tables = {}
        for name in ("thresholds", "left", "others", "most", "group_factor"):
            rows = [getattr(policy, name) for policy in policies]
            table = np.array(rows, dtype).T if rows else np.empty((1, 0), dtype)
            tables[name] = table if (table != table[:1]).any() else table[:1]
        return _Rounds(
            policies,
            rule.needs,
            dtype,
            likelihoods=np.array([policy.likelihood for policy in policies], dtype=np.intp),
            people=np.array([policy.n_people for policy in policies], dtype),
            weights=np.array(weights, dtype),
            levels=np.array([rule.level(count) for count in counts], dtype),
            thresholds=tables["thresholds"],
            left=tables["left"],
            others=tables["others"],
            most=tables["most"],
            group_factors=tables["group_factor"],
            n_rounds=np.array([policy.n_rounds for policy in policies], dtype),
            matched=np.array([policy.follows == "matched" for policy in policies], np.bool_),
            drawn=np.array([policy.follows == "drawn" for policy in policies], np.bool_),
            ramps=np.array([policy.ramp for policy in policies], dtype),
            strategy=_shared_strategy(policies),
        )

    def score_weights(self, n_likelihoods: int) -> tuple[NDArray[np.intp], Floats]:
        """Return the likelihoods that a mean of past scores uses, and how often each counts."""
        weights = np.zeros(n_likelihoods, self.dtype)
        weights[0] = 1.0  # f_0 counts once, as a round does
        np.add.at(weights, self.likelihoods, self.ramps * self.weights)
        used = np.flatnonzero(weights)
        return used, weights[used]

    def walk(
        self, X: Any, group: Groups, score: Floats, start: NDArray[Any], incumbent: NDArray[Any]
    ) -> tuple[Floats, Floats]:
        """Return Σ n_i·p_i and w after these policies; ``score`` has a column per policy.

        What a policy adds to the w of an applicant who is not known does not depend on the policies
        before it, so a running sum over all of them shows when the applicant became known.
        """
        accepted = score >= _per_person_table(self.thresholds, group)
        which = np.arange(len(self.policies))
        g = self._g(X, group, score, which)
        unknown = self._acceptance_of_unknown(g, group, score, which)
        adding = {"acceptance": unknown, "score": score, "g": g}[self.needs]
        adding = self._ramped(adding, incumbent, which) * self.weights
        adding[:, 0] += start
        np.cumsum(adding, axis=1, out=adding)
        known = np.empty(score.shape, np.bool_)
        known[:, 0] = start > self.levels[0]
        np.greater(adding[:, :-1], self.levels[1:-1], out=known[:, 1:])
        pi = np.where(known & ~self.drawn, accepted, unknown)
        for i in np.flatnonzero(self.n_rounds > 1).tolist():
            before = start if i == 0 else adding[:, i - 1]
            some = ~known[:, i] & (adding[:, i] > self.levels[i])
            if some.any():
                ends = before[some], adding[some, i]
                pi[some, i] = self._in_between(i, *ends, unknown[some, i], accepted[some, i])
        p = self._ramped(pi, incumbent, which)
        w = start + p @ self.weights if self.needs == "acceptance" else adding[:, -1]
        return p @ self.people, w

    def _in_between(
        self,
        i: int,
        before: Floats,
        after: Floats,
        unknown: Floats,
        accepted: NDArray[np.bool_],
    ) -> Floats:
        """Return the mean π of merged rounds in which applicants become known.

        Each of the rounds adds the same to w, so these are rounds unknown, and then known.
        """
        n = self.n_rounds[i]
        step = (after - before) / n
        still = np.minimum((np.floor((self.levels[i] - before) / step) + 1) / n, 1)
        return np.asarray(still * unknown + (1 - still) * accepted)

    def unknown(
        self,
        X: Any,
        group: Groups,
        score: Floats,
        which: NDArray[np.intp],
        incumbent: NDArray[Any],
    ) -> NDArray[Any]:
        """Return what some policies add to a w of p_i if the applicants never become known."""
        g = self._g(X, group, score, which)
        pi = self._acceptance_of_unknown(g, group, score, which)
        return np.asarray(self._ramped(pi, incumbent, which) @ self.weights[which])

    def _ramped(
        self, values: Floats, incumbent: NDArray[Any], which: NDArray[np.intp]
    ) -> NDArray[Any]:
        """Return (1 − r)·d + r·values under some policies; the values themselves without a ramp."""
        if not self.is_ramped:
            return values
        ramps = self.ramps[which]
        return np.asarray(values * ramps + incumbent.astype(self.dtype)[:, None] * (1 - ramps))

    def _acceptance_of_unknown(
        self, g: Floats, group: Groups, score: Floats, which: NDArray[np.intp]
    ) -> Floats:
        """Return π_i of applicants who are not known: explored, or accepted by f_0."""
        left, others = self.left[:, which], self.others[:, which]
        explored = np.asarray(
            chance(g, _per_person_table(left, group), _per_person_table(others, group))
        )
        if (self.most < 1).any():
            np.minimum(explored, _per_person_table(self.most[:, which], group), out=explored)
        matched, drawn = self.matched[which], self.drawn[which]
        if matched.any():
            accepted = score >= _per_person_table(self.thresholds[:, which], group)
            np.copyto(explored, 1, where=accepted & matched)
        if drawn.any():
            np.copyto(explored, score, where=drawn)
        return explored

    def _g(self, X: Any, group: Groups, score: Floats, which: NDArray[np.intp]) -> Floats:
        """Return g(x, z; f_i) under some policies."""
        factors = self._person_factors(X, group, score, which)
        if np.all(self.group_factors == 1):
            return factors
        return np.asarray(factors * _per_person_table(self.group_factors[:, which], group))

    def _person_factors(
        self, X: Any, group: Groups, score: Floats, which: NDArray[np.intp]
    ) -> Floats:
        """Return the person's factor of g under some policies; one call if all share a strategy.

        A user's function is promised to be positive on the candidates of its own round only, so
        other applicants may get 0 or NaN: they had no chance, and a tiny one keeps ratios defined.
        Applicants barred by a limit had none at all.
        """
        if self.strategy is not None:
            return np.asarray(self.strategy.person_factor(None, score, group[:, None]))
        strategies = [self.policies[i].strategy for i in which]
        columns = [
            strategy.person_factor(X, score[:, at], group) for at, strategy in enumerate(strategies)
        ]
        raw = np.stack(columns, axis=1)
        barred = (raw == 0) & [strategy.is_limited for strategy in strategies]
        return np.where(barred, 0.0, np.fmax(raw, _NO_CHANCE)).astype(score.dtype)


def _per_person_table(per_group: Floats, group: Groups) -> Floats:
    """Return each applicant's row of a table (group, policy); a single row is left as it is."""
    return per_group if per_group.shape[0] == 1 else per_group[group]


def _shared_strategy(policies: list[LoggedPolicy]) -> Strategy | None:
    """Return the strategy of all policies, if they share one that does not read features."""
    if not policies or policies[0].strategy.reads_features:
        return None
    first = policies[0].strategy
    shared = all(policy.strategy is first or policy.strategy == first for policy in policies)
    return first if shared else None
