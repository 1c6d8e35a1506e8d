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

from secondlook.core.coverage import CoverageRule
from secondlook.frames import n_rows
from secondlook.methods.algorithm1.block_scores import BlockScores, Scorer
from secondlook.methods.algorithm1.past_rounds import LoggedPolicy, PastRounds
from secondlook.people.likelihoods import Likelihood
from secondlook.people.store import ApplicantRows

__all__ = ["LOG_COLUMNS", "LoggedPolicy", "Look", "PolicyLog", "per_person"]

Floats = NDArray[np.floating]
Groups = NDArray[np.intp]

_NOT_WALKED = -1
# Columns of accepted applicants that ``PolicyLog.update`` fills in once an outcome has come:
# ``past`` is f_0's acceptance probability; ``own`` is Σ n_i·π_i over the first ``walked`` policies,
# and ``coverage`` is w after these.
LOG_COLUMNS = {"walked": np.int32(_NOT_WALKED), "past": 0.0, "own": 0.0, "coverage": 0.0}

# So many likelihoods take as much room as telling who is known for sure.
_AT_FIRST, _BY_MEAN = 5, 10


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
            self._look_by_mean(X, group, scorer, rounds, score_of, look)
        else:
            self._look_by_rounds(X, group, scorer, rounds, score_of, look)
        return look

    def _look_by_mean(
        self, X: Any, group: Groups, scorer: Scorer, rounds: PastRounds, score_of: int, look: Look
    ) -> None:
        """Fill in a look where w is the mean of past scores."""
        # f_0 counts once, as a round does.
        weights = np.zeros(len(self.likelihoods))
        weights[0] = 1.0
        np.add.at(weights, rounds.likelihoods, rounds.weights)
        bar = scorer.bar(weights, float(rounds.levels[-1]))
        doubtful = [np.empty(0, np.intp)]
        for rows, scores in scorer.blocks(X, group, n_asked=_BY_MEAN):
            look.score[rows] = scores.score(score_of)
            look.known[rows], unsure = scores.exceeds_for_sure(bar)
            doubtful.append(unsure + rows.start)
        for rows, scores in scorer.blocks(X, group, np.concatenate(doubtful)):
            look.known[rows] = scores.exceeds(bar)

    def _look_by_rounds(
        self, X: Any, group: Groups, scorer: Scorer, rounds: PastRounds, score_of: int, look: Look
    ) -> None:
        """Fill in a look where w is a sum over rounds, from f_0's acceptance on."""
        start, telling = np.empty_like(look.score), rounds.most_telling()
        doubtful = [np.empty(0, np.intp)]
        for rows, scores in scorer.blocks(X, group, n_asked=_AT_FIRST):
            start[rows], look.score[rows] = scores.columns(np.array([0, score_of])).T
            look.known[rows], unsure = rounds.known_for_sure(scores, start[rows], telling)
            doubtful.append(unsure + rows.start)
        for rows, scores in scorer.blocks(X, group, np.concatenate(doubtful)):
            look.known[rows] = rounds.known(scores, start[rows])

    def coverage(self, X: Any, group: Groups, rule: CoverageRule) -> NDArray[np.float64]:
        """Return the accumulated w of people of whom nothing is known yet."""
        everybody = np.arange(n_rows(X))
        coverage = np.empty(everybody.size)
        self.start(X, group, everybody, np.empty(everybody.size), coverage)
        return self.catch_up(X, group, rule, begin=0, coverage=coverage, rows=everybody)[1]

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
        coverage: NDArray[np.float64],
        rows: NDArray[np.intp],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what the rounds from ``begin`` on add to Σ n_i·π_i of some rows, and w after them.

        Nothing is written down here: a user's function is asked, and may fail.
        """
        added, w = np.zeros(rows.size), coverage.take(rows)
        if begin >= len(self.policies):
            return added, w
        scorer = self._scorer_of(X)
        rounds = self._rounds_of(rule, scorer.dtype).since(begin)
        known, n_asked = rounds.known_at_start(w), len(rounds.policies)
        hurdles = scorer.hurdles(rounds.likelihoods, rounds.cuts)
        for at, scores in _in_turn(np.flatnonzero(known), scorer, X, group, rows, n_asked):
            added[at], more = rounds.accumulate_known(scores.reached(hurdles))
            w[at] += more
        for at, scores in _in_turn(np.flatnonzero(~known), scorer, X, group, rows, n_asked):
            added[at], w[at] = rounds.accumulate(scores, w[at])
        return added, w

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
            self.start(rows.X, group, new, rows["past"], coverage)
            walked[new] = 0
        self.seal()
        for begin in np.flatnonzero(np.bincount(walked[counted])):
            at = np.flatnonzero(counted & (walked == begin))
            added, w = self.catch_up(
                rows.X, group, rule, begin=int(begin), coverage=coverage, rows=at
            )
            # The sums and the number of policies in them change together, or not at all.
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

    def _scorer_of(self, X: Any) -> Scorer:
        """Return the likelihoods made ready for features of this kind."""
        # Likelihoods are only ever added.
        key = (X.dtype if isinstance(X, np.ndarray) else None, len(self.likelihoods))
        if getattr(self, "_scorer", (None,))[0] != key:
            self._scorer = key, Scorer(self.likelihoods, X)
        return self._scorer[1]

    def _rounds_of(self, rule: CoverageRule, dtype: Any) -> PastRounds:
        """Return all rounds made ready for scores of this precision."""
        # Policies are only ever added, but the last may be replaced by one for more people.
        last = self.policies[-1].n_people if self.policies else 0
        key = (rule, dtype, len(self.policies), last)
        if getattr(self, "_rounds", (None,))[0] != key:
            self._rounds = key, PastRounds.of(self.policies, self.first_batch, rule, dtype)
        return self._rounds[1]


def _in_turn(
    places: NDArray[np.intp],
    scorer: Scorer,
    X: Any,
    group: Groups,
    rows: NDArray[np.intp],
    n_asked: int,
) -> Iterator[tuple[NDArray[np.intp], BlockScores]]:
    """Yield the rows at some places of a list in blocks, with their places and scores."""
    done = 0
    for _, scores in scorer.blocks(X, group, rows.take(places), n_asked=n_asked):
        yield places[done : done + scores.group.size], scores
        done += scores.group.size


def _same_exploitation(last: LoggedPolicy, new: LoggedPolicy) -> bool:
    return (
        last.likelihood == new.likelihood
        and not last.left.any()
        and not new.left.any()
        and np.array_equal(last.thresholds, new.thresholds)
        and np.array_equal(last.group_factor, new.group_factor)
    )
