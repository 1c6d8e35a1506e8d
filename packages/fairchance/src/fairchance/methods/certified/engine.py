"""The engine of ``CertifiedClassifier``: it freezes rankings, tests ladders and chooses policies.

Rounds enter the tests in their order, each once its outcomes are complete. The engine sees
features, logged probabilities and outcomes of accepted applicants; ids serve only to forget them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairchance.core.decisions import CertifiedRound, CurvePoint, Note
from fairchance.core.limits import Limited
from fairchance.core.saved import saved
from fairchance.core.strategies import Strategy
from fairchance.methods.algorithm1.exploration import barred_note
from fairchance.methods.certified.evidence import RATIO_CAPS, DriftMonitor, Wealth
from fairchance.methods.certified.ladder import (
    BoundTest,
    Floor,
    Ladder,
    LadderRows,
    Positions,
    nearest_certificate,
)
from fairchance.methods.certified.pilot import (
    ENOUGH,
    OUTER,
    Pilot,
    RungEstimates,
)
from fairchance.methods.certified.ranking import Groups, Ranking
from fairchance.methods.certified.rules import Rules
from fairchance.people.ids import keyed_bits, round_key
from fairchance.people.likelihoods import ConstantLikelihood, Likelihood
from fairchance.people.store import NEVER, PENDING, ApplicantRows

__all__ = [
    "ChosenPolicy",
    "Engine",
    "LadderBets",
    "LastBatch",
    "SettledRound",
    "Stage",
    "WaitingRound",
]

Floats = NDArray[np.float64]

_KEPT_ROUNDS = 5  # the last rounds before a drift alarm still count after it
_SOFTEST = 0.05  # edge in small batches, in which six applicants are many
_SAMPLE = 20_000  # applicants of the last batch that choose the bets of the next round
_ENOUGH_TO_BET = 100  # accepted applicants in the tests before estimates choose bets
_WALKS = 0.8  # of a ladder's level for the walk from its start; the other walk gets the rest
_HELD_UP = 5  # rounds in which nothing was tested before that is worth a warning


@saved
@dataclass(frozen=True)
class ChosenPolicy:
    """The policy of a round.

    Attributes
    ----------
    ladder, rung
        The ladder, and which of its policies.
    certified
        Whether it is certified.
    estimated_fdr
        Its estimated FDR.
    pilot_share
        The share of the pilot once this policy is deployed; None if it is not a pilot.
    """

    ladder: Ladder
    rung: int
    certified: bool
    estimated_fdr: float
    pilot_share: float | None = None


@saved
@dataclass(eq=False)
class LadderBets:
    """The bets of one ladder on a round, chosen before it.

    Attributes
    ----------
    ladder, use
        The ladder, and which of its rungs bet, by bound (α first) and cap.
    positions
        Positions of the round's applicants on the ladder; None if they are not known yet.
    """

    ladder: Ladder
    use: NDArray[np.bool_]
    positions: Positions | None


@saved
@dataclass(eq=False)
class WaitingRound:
    """A round that is not in the tests yet, with everything that was fixed before it.

    Attributes
    ----------
    number
        Number of the round.
    X, group, p, accepted
        Its applicants: features, groups, logged probabilities, and which were accepted. Features
        and groups are empty after ``drop_features``.
    ids, rows
        Id of each accepted applicant, and row in the store; empty and −1 for forgotten ones.
    policy
        The policy that decided the round.
    bets
        The bets of each ladder; empty if the ladders were dropped since.
    """

    number: int
    X: Any
    group: Groups
    p: Floats
    accepted: NDArray[np.bool_]
    ids: NDArray[Any]
    rows: NDArray[np.int64]
    policy: ChosenPolicy
    bets: list[LadderBets]

    def locate(self) -> None:
        """Find the positions of the applicants on every ladder that bets."""
        # Models may be slow, so each scores an applicant once, and not before that is needed.
        for bet in self.bets:
            if bet.positions is None and bet.use.any():
                bet.positions = bet.ladder.locate(self.X, self.group)

    def drop_features(self) -> None:
        """Keep only positions on ladders, which are all that tests need of an applicant."""
        self.locate()
        self.X, self.group = self.X[:0].copy(), self.group[:0].copy()


@dataclass(frozen=True, eq=False)
class PreparedRound:
    """A decided round before it is logged, and its applicants for the next choice of bets."""

    waiting: WaitingRound
    batch: LastBatch


@saved
@dataclass(frozen=True, eq=False)
class SettledRound:
    """A round that is in the tests, as far as the weights of estimates need it."""

    number: int
    ladder: Ladder
    rung: int
    n_people: int

    @property
    def share(self) -> float:
        """The share of applicants that the round accepted for sure."""
        return float(self.ladder.grid[self.rung])


@saved
@dataclass(eq=False)
class LastBatch:
    """Applicants of the last round, or some of them, used to choose the bets of the next round.

    Attributes
    ----------
    number
        Number of the round.
    rows
        Which of the round's applicants they are.
    X, group, bits
        Features, groups and bits of ids.
    positions
        Their positions on the ladders of the stage, as far as they are known.
    """

    number: int
    rows: NDArray[np.intp]
    X: Any
    group: Groups
    bits: NDArray[np.uint64]
    positions: list[Positions | None] = field(default_factory=list)

    def __getitem__(self, some: NDArray[np.bool_]) -> LastBatch:
        positions = [None if at is None else at[some] for at in self.positions]
        return LastBatch(
            self.number, self.rows[some], self.X[some], self.group[some], self.bits[some], positions
        )

    def take_positions(self, bets: list[LadderBets]) -> None:
        """Take over what is known of the whole round."""
        located = [bet.positions for bet in bets]
        self.positions = [None if at is None else at[self.rows] for at in located]

    def locate(self, ladders: list[Ladder]) -> list[Positions]:
        """Return the positions on all ladders of the stage."""
        known = [*self.positions, *[None] * (len(ladders) - len(self.positions))]
        found = [
            ladder.locate(self.X, self.group) if at is None else at
            for ladder, at in zip(ladders, known, strict=True)
        ]
        self.positions = [*found]
        return found


@saved
@dataclass(eq=False)
class Stage:
    """The tests since certificates were last dropped: everything that a restart drops.

    Attributes
    ----------
    restarts
        Number of restarts so far.
    began
        First round of the stage.
    reason
        ``"correction"`` or ``"drift"``, which ended the stage before; empty for the first stage.
    ladder_rows
        The ladders, with the positions of our own accepted applicants.
    pilot
        The pilot; None before the first ladder is frozen.
    widest
        The largest share that a policy of the stage accepted for sure.
    monitor
        The drift monitor; None before the first certified round is tested.
    """

    restarts: int = 0
    began: int = 1
    reason: str = ""
    ladder_rows: list[LadderRows] = field(default_factory=list)
    pilot: Pilot | None = None
    widest: float = 0.0
    monitor: DriftMonitor | None = None


@saved
@dataclass(eq=False)
class Engine:
    """Ladders, their tests, and the choice of policies.

    Attributes
    ----------
    rules
        The promise.
    rows
        Our own accepted applicants, with the columns ``p`` (logged probability) and ``p_sum``
        (Σ n_i·p_i over settled rounds i; 0 until the applicant's own round is settled).
    n_groups
        Number of groups.
    stage
        The tests since certificates were last dropped.
    waiting
        Rounds that are not in the tests yet, in their order.
    settled
        Rounds that are in the tests and count in estimates, in their order.
    settled_round
        The last round in the tests; missing outcomes of rounds up to it count as bad.
    settled_after
        The round that was the last one decided when that round entered the tests.
    first_round
        First round that still counts in estimates and rankings; later than 1 after drift.
    n_rounds
        Rounds decided so far.
    largest_batch
        Applicants in the largest batch so far.
    last_batch
        Applicants of the last round; None before the first, or if all were forgotten.
    delta_spent
        Part of δ given to ladders so far.
    """

    rules: Rules
    rows: ApplicantRows
    n_groups: int
    stage: Stage = field(default_factory=Stage)
    waiting: list[WaitingRound] = field(default_factory=list)
    settled: list[SettledRound] = field(default_factory=list)
    settled_round: int = 0
    settled_after: int = 0
    first_round: int = 0
    n_rounds: int = 0
    largest_batch: int = 0
    last_batch: LastBatch | None = None
    delta_spent: float = 0.0

    @property
    def ladders(self) -> list[Ladder]:
        """The ladders of this stage."""
        return [ladder_rows.ladder for ladder_rows in self.stage.ladder_rows]

    @property
    def n_tested(self) -> int:
        """Accepted applicants that the tests rest on: the oldest ladder saw them all."""
        return max((ladder.n_tested for ladder in self.ladders), default=0)

    def known_rows(self) -> NDArray[np.intp]:
        """Return the rows whose outcome is known and counts."""
        recent = self.rows["round"] >= self.first_round
        return np.flatnonzero((self.rows["outcome"] >= 0) & recent)

    @property
    def estimates(self) -> RungEstimates:
        """Estimates from the rounds that are in the tests."""
        rounds = self.rows["round"]
        in_tests = (rounds >= self.first_round) & (rounds <= self.settled_round)
        return RungEstimates(
            self.rows,
            np.flatnonzero(in_tests),
            self.settled_round,
            n_people=sum(settled.n_people for settled in self.settled),
            widest=max((settled.share for settled in self.settled), default=0.0),
            noise=self.rules.noise,
        )

    # Freezing.

    def freeze_if_due(
        self,
        t: int,
        reference: tuple[Any, Groups],
        n_batch: int,
        learn: Callable[[], tuple[Likelihood | None, tuple[Note, ...]]],
    ) -> None:
        """Freeze the rankings that are due before round ``t``.

        ``learn`` returns a model learned from everything known now, and what its fit had to say;
        None if that is not enough, so that the first pilot has to treat all applicants alike.
        """
        self.largest_batch = max(self.largest_batch, n_batch)
        while self._is_due(t):
            likelihood, notes = learn()
            if likelihood is None:
                if self.ladders:
                    return
                likelihood = ConstantLikelihood(0.5)
            self._freeze(t, reference, likelihood, notes)

    def _is_due(self, t: int) -> bool:
        k, freezes = len(self.ladders), self.rules.freezes
        if k >= len(freezes):
            return False
        first, outcomes = freezes[k]
        return t - self.stage.began + 1 >= first and self.known_rows().size >= outcomes

    def _freeze(
        self,
        t: int,
        reference: tuple[Any, Groups],
        likelihood: Likelihood,
        notes: tuple[Note, ...],
    ) -> None:
        # The ladder is tested on round t and later ones only, so its ranking, floor, softness and
        # starts may depend on everything known now.
        rules, stage, k = self.rules, self.stage, len(self.ladders)
        X, group = reference
        score = np.asarray(likelihood.score(X, group), np.float64)
        ranking = Ranking.freeze(
            likelihood, score, group, self.n_groups, within=rules.within, notes=notes
        )
        floor = Floor.freeze(rules.strategy, rules.floor, X, score, group, self.n_groups)
        if stage.pilot is None:
            stage.pilot = Pilot.start(ranking, rules.alpha, self.largest_batch)
            stage.widest = stage.pilot.share
        level = rules.level(k, stage.restarts)
        self.delta_spent += level
        tau = edge_softness(ranking, k, rules, stage.pilot, stage.widest, self.largest_batch)
        ladder = Ladder(
            ranking, tau, floor, level, ((0, 1.0),), t, rules.alpha, rules.noise.most_bad
        )
        n = self._n_settled()
        own = ladder.locate(self.rows.X[:n], self.rows["group"][:n])
        ladder_rows = LadderRows(ladder, own)
        estimates = self.estimates if k else None
        covered = self._covered(ladder_rows) if k else None
        ladder.starts = walk_starts(ladder_rows, stage.pilot, estimates, rules.alpha, covered)
        ladder.others = tuple(
            BoundTest(
                walk_starts(ladder_rows, stage.pilot, estimates, bound, covered),
                Wealth.start(bound, ladder.grid.size, rules.noise.most_bad),
            )
            for bound in rules.other_bounds
        )
        stage.ladder_rows.append(ladder_rows)

    def _covered(self, ladder_rows: LadderRows) -> NDArray[np.bool_]:
        """Return the rungs of a new ladder that would be bet on if the last policy stays."""
        ladder, last = ladder_rows.ladder, self.last_batch
        rounds: list[Any] = [waiting.policy for waiting in self.waiting] or [*self.settled]
        if last is None or not rounds:
            return np.ones(ladder.grid.size, np.bool_)
        deployed = rounds[-1]
        p = deployed.ladder.policy(deployed.ladder.locate(last.X, last.group), deployed.rung)
        at = ladder.locate(last.X, last.group)
        use = ladder.worth_betting(at, p, self.estimates.fdr(ladder_rows))
        return np.asarray(use[0].any(axis=0))

    # Choosing.

    def choose(self) -> ChosenPolicy:
        """Return the policy of the next round: the best certified one, or the pilot."""
        # Estimates may be biased: they choose among certified rungs, which all keep the bound.
        estimates = self.estimates
        best: tuple[float, LadderRows, int] | None = None
        for ladder_rows in self.stage.ladder_rows:
            certified = ladder_rows.ladder.certified()
            if not certified.any():
                continue
            worth = np.where(certified, estimates.worth(ladder_rows, self.rules.utility), -np.inf)
            rung = int(np.argmax(worth))
            if best is None or worth[rung] > best[0]:
                best = float(worth[rung]), ladder_rows, rung
        if best is None:
            return self.choose_pilot()
        _, ladder_rows, rung = best
        return ChosenPolicy(
            ladder_rows.ladder, rung, True, estimates.mistakes(ladder_rows, rung)[0]
        )

    def choose_pilot(self) -> ChosenPolicy:
        """Return the pilot on the newest ladder."""
        ladder_rows, pilot, estimates = self.stage.ladder_rows[-1], self.stage.pilot, self.estimates
        if pilot is None:
            raise AssertionError("a pilot starts when the first ladder is frozen")
        rung, share = pilot.rung(ladder_rows, estimates)
        fdr = estimates.mistakes(ladder_rows, rung)[0]
        return ChosenPolicy(ladder_rows.ladder, rung, False, fdr, share)

    # Logging rounds and forgetting applicants.

    def prepare(
        self,
        t: int,
        policy: ChosenPolicy,
        X: Any,
        group: Groups,
        at: Positions,
        p: Floats,
        accepted: NDArray[np.bool_],
        ids: NDArray[Any],
        bits: NDArray[np.uint64],
    ) -> PreparedRound:
        """Return a decided round for ``log``; nothing is changed, so an error changes nothing.

        ``at`` are the positions of the applicants on the policy's ladder.
        """
        bets = [
            LadderBets(ladder, use, at if ladder is policy.ladder else None)
            for ladder, use in zip(self.ladders, self._choose_bets(policy), strict=True)
        ]
        some = _sample(bits)
        batch = LastBatch(t, some, X[some], group[some], bits[some])
        batch.take_positions(bets)
        waiting = WaitingRound(
            t, X, group, p, accepted, ids[accepted], np.empty(0, np.int64), policy, bets
        )
        return PreparedRound(waiting, batch)

    def log(self, prepared: PreparedRound, rows: NDArray[np.int64]) -> None:
        """Log a round whose accepted applicants are in these rows of the store."""
        waiting, stage = prepared.waiting, self.stage
        waiting.rows = rows
        self.waiting.append(waiting)
        self.n_rounds += 1
        policy = waiting.policy
        if stage.pilot is not None and policy.pilot_share is not None:
            stage.pilot.share = policy.pilot_share
        stage.widest = max(stage.widest, float(policy.ladder.grid[policy.rung]))
        self.last_batch = prepared.batch

    def drop_features(self) -> None:
        """Keep only the positions of applicants in rounds that are not in the tests yet."""
        for waiting in self.waiting:
            waiting.drop_features()

    def forget(self, moved: NDArray[np.int64], bits: NDArray[np.uint64]) -> None:
        """Forget applicants that were deleted from the store.

        Evidence of rounds that are in the tests stays. In other rounds, an accepted applicant who
        is forgotten counts as bad, like one whose outcome is withdrawn.

        ``moved`` is the new row of each old row, −1 for the deleted.
        """
        for ladder_rows in self.stage.ladder_rows:
            ladder_rows.keep(moved[: ladder_rows.at.rank.size] >= 0)
        for waiting in self.waiting:
            here = waiting.rows >= 0
            waiting.rows[here] = moved[waiting.rows[here]]
            waiting.ids[waiting.rows < 0] = waiting.ids.dtype.type()
        if self.last_batch is not None:
            stays = ~np.isin(self.last_batch.bits, bits)
            self.last_batch = self.last_batch[stays] if stays.any() else None

    def _choose_bets(self, policy: ChosenPolicy) -> list[NDArray[np.bool_]]:
        """Return for each ladder the rungs to bet on in the next round, by bound and cap."""
        # The bets of a round must not depend on its own applicants and outcomes, or Z given the
        # past could have a positive mean. So earlier batches and settled rounds choose.
        ladders, last, estimates = self.ladders, self.last_batch, self.estimates
        if last is None:
            return [
                np.full(
                    (len(ladder.tests), len(RATIO_CAPS), ladder.grid.size), ladder is policy.ladder
                )
                for ladder in ladders
            ]
        located = last.locate(ladders)
        p = policy.ladder.policy(located[ladders.index(policy.ladder)], policy.rung)
        known = estimates.settled.size >= _ENOUGH_TO_BET
        unknown = np.array(np.nan)
        return [
            rows.ladder.worth_betting(at, p, estimates.fdr(rows) if known else unknown)
            for rows, at in zip(self.stage.ladder_rows, located, strict=True)
        ]

    # Weights of estimates.

    def _n_settled(self, last_round: int | None = None) -> int:
        """Return the number of rows of rounds in the tests, which are the first of the store."""
        last = self.settled_round if last_round is None else last_round
        return int(np.searchsorted(self.rows["round"], last, side="right"))

    def _settle(self, waiting: WaitingRound) -> None:
        """Let a round count in estimates: its applicants, and its policy in all weights."""
        rows = slice(self._n_settled(), self._n_settled(waiting.number))
        X, group, here = self.rows.X[rows], self.rows["group"][rows], waiting.rows >= 0
        taken = np.flatnonzero(waiting.accepted)[here]
        located = {
            id(bet.ladder): bet.positions[taken]
            for bet in waiting.bets
            if bet.positions is not None
        }
        for ladder in [*self.ladders, *(settled.ladder for settled in self.settled)]:
            if id(ladder) not in located:  # frozen later, dropped by a restart, or without a bet
                located[id(ladder)] = ladder.locate(X, group)
        earlier = self._p_sum(located, group.size)
        settled = SettledRound(
            waiting.number, waiting.policy.ladder, waiting.policy.rung, waiting.p.size
        )
        for ladder_rows in self.stage.ladder_rows:
            ladder_rows.extend(located[id(ladder_rows.ladder)])
        self.settled_round = waiting.number
        self.rows["p_sum"][rows] = earlier
        if waiting.number >= self.first_round:  # else left out after drift
            self.rows["p_sum"][: rows.stop] += self._weighted_policy(settled)
            self.settled.append(settled)

    def _weighted_policy(self, settled: SettledRound) -> Floats:
        """Return the number of applicants times the policy's probability, for settled rows."""
        ladder, n = settled.ladder, self._n_settled()
        at = (
            next(
                (
                    ladder_rows.at
                    for ladder_rows in self.stage.ladder_rows
                    if ladder_rows.ladder is ladder
                ),
                None,  # dropped by a restart
            )
            or ladder.locate(self.rows.X[:n], self.rows["group"][:n])
        )
        return settled.n_people * ladder.policy(at, settled.rung)

    def _p_sum(self, located: dict[int, Positions], n_rows: int) -> Floats:
        """Return Σ over settled rounds of applicants times the probability of acceptance.

        ``located`` has positions of the rows, by the ids of ladders.
        """
        n_people: Counter[tuple[int, int]] = Counter()
        for settled in self.settled:  # many rounds share a policy, which is evaluated once
            n_people[id(settled.ladder), settled.rung] += settled.n_people
        ladders = {id(settled.ladder): settled.ladder for settled in self.settled}
        total = np.zeros(n_rows)
        for (key, rung), n in n_people.items():
            total += n * ladders[key].policy(located[key], rung)
        return total

    def _leave_out_old_rounds(self) -> None:
        """Leave old rounds out of estimates: their applicants, and their policies in the weights.

        An applicant of a kept round would otherwise count too little if the old rounds accepted
        more applicants of that kind.
        """
        self.first_round = max(0, self.n_rounds - _KEPT_ROUNDS + 1)
        self.settled = [kept for kept in self.settled if kept.number >= self.first_round]
        p_sum = np.zeros(self._n_settled())
        for kept in self.settled:
            p_sum += self._weighted_policy(kept)
        self.rows["p_sum"][: p_sum.size] = p_sum

    # Testing.

    def take_in(self, rows: NDArray[np.int64], *, correcting: bool) -> None:
        """Take in new outcomes of rows, or corrected ones, and test what is complete."""
        if correcting and self._tested(self.rows["round"][rows]).any():
            self.restart("correction")
        self.catch_up()

    def _tested(self, rounds: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return which rounds a ladder of this stage was tested on."""
        if not self.ladders:
            return np.zeros(rounds.shape, np.bool_)
        since = min(ladder.frozen for ladder in self.ladders)  # the oldest ladder saw the most
        waiting = np.isin(rounds, [waiting.number for waiting in self.waiting])
        return np.asarray((rounds >= since) & ~waiting)

    def catch_up(self) -> None:
        """Test what is complete, and restart if that speaks against the certificates."""
        self.test_complete_rounds()
        if self._has_drifted():
            self.restart("drift")

    def test_complete_rounds(self) -> None:
        """Test rounds in their order while they are complete."""
        # No round may overtake another. If good outcomes arrive sooner than bad ones, testing
        # complete rounds first would certify policies that break the bound.
        while self.waiting and self._is_complete(self.waiting[0]):
            self._test(self.waiting[0])
            self.waiting.pop(0)  # not before its test, which may fail
            self.settled_after = self.n_rounds

    def _is_complete(self, waiting: WaitingRound) -> bool:
        age = self.n_rounds - waiting.number
        if age < self.rules.maturity:
            return False
        if np.all(self._outcomes(waiting) != PENDING):
            return True
        return self.rules.patience is not None and age >= self.rules.patience

    def awaited(self) -> tuple[int, NDArray[Any]]:
        """Return the oldest round that is not in the tests, and the ids without an outcome in it.

        Round 0 if all rounds are in the tests.
        """
        if not self.waiting:
            return 0, np.empty(0, np.int64)
        oldest = self.waiting[0]
        return oldest.number, oldest.ids[self._outcomes(oldest) == PENDING]

    @property
    def is_held_up(self) -> bool:
        """Whether a few missing outcomes have kept all rounds out of the tests for some time.

        The oldest round has most of its outcomes, and no round has entered the tests while several
        others were decided, although the oldest one is mature.
        """
        number, ids = self.awaited()
        since = max(self.settled_after, number + self.rules.maturity)
        return bool(
            ids.size
            and self.rules.patience is None
            and self.n_rounds >= since + _HELD_UP
            and 2 * ids.size <= self.waiting[0].ids.size
        )

    def _outcomes(self, waiting: WaitingRound) -> NDArray[np.int8]:
        """Return the outcomes of a round's accepted applicants, NEVER for forgotten ones."""
        # Forgotten applicants stay in the round and count as bad. If they were left out, a choice
        # of applicants to forget could make a certificate.
        outcome = np.full(waiting.rows.size, NEVER, np.int8)
        here = waiting.rows >= 0
        outcome[here] = self.rows["outcome"][waiting.rows[here]]
        return outcome

    def _test(self, waiting: WaitingRound) -> None:
        waiting.locate()  # before anything changes, as a custom strategy may fail
        if self.last_batch is not None and self.last_batch.number == waiting.number:
            self.last_batch.take_positions(waiting.bets)
        self._settle(waiting)
        outcome, policy = self._outcomes(waiting), waiting.policy
        if policy.certified and waiting.bets:  # a policy of this stage
            allowed = self.rules.noise.recorded_fdr(self.rules.alpha)
            self.stage.monitor = self.stage.monitor or DriftMonitor(allowed)
            self.stage.monitor.add(outcome != 1)
        bad = np.zeros(waiting.accepted.size)
        bad[waiting.accepted] = self.rules.noise.badness(outcome != 1)
        applicants = waiting.p, waiting.accepted, bad
        for bet in waiting.bets:
            if bet.positions is None:  # no bets
                continue
            deployed = policy.rung if bet.ladder is policy.ladder else None
            bet.ladder.test(bet.positions, *applicants, deployed=deployed, use=bet.use)

    def _has_drifted(self) -> bool:
        """Return whether the outcomes of certified rounds speak against their certificates."""
        monitor, limit = self.stage.monitor, self.rules.monitor_limit(self.stage.restarts)
        return monitor is not None and limit > 0 and monitor.log_wealth() >= -np.log(limit)

    def restart(self, reason: Literal["correction", "drift"]) -> None:
        """Drop all certificates and begin a new stage with the δ that is left.

        After drift, old rounds are left out of everything learned and estimated from now on.
        """
        if reason == "drift":
            self._leave_out_old_rounds()
        self.stage = Stage(self.stage.restarts + 1, self.n_rounds + 1, reason)
        for waiting in self.waiting:  # no bets, as their ladders are gone
            waiting.bets = []
        if self.last_batch is not None:
            self.last_batch.positions = []

    # Reporting.

    def report(
        self,
        t: int,
        policy: ChosenPolicy,
        X: Any,
        score: NDArray[np.floating],
        sure: NDArray[np.bool_],
        accepted: NDArray[np.bool_],
        bets: list[LadderBets],
        *,
        group: Any,
        group_mode: str,
        delta: float,
    ) -> CertifiedRound:
        """Return the record of a round that is about to be logged."""
        ladder, rung = policy.ladder, policy.rung
        certified = ladder.certified()
        coming, coming_rung = self._next_certificate(policy, certified)
        rules, stage, nan = self.rules, self.stage, float("nan")
        number, awaited = self.awaited()
        # Without ids: records are kept after applicants are erased.
        waits = bool(awaited.size) and (self.is_held_up or not self.n_tested)
        barred = _unreachable(ladder.floor.strategy, X, score, ~sure)
        return CertifiedRound(
            round=t,
            group=group,
            status="certified" if policy.certified else "pilot",
            n_people=int(accepted.size),
            n_accepted=int(accepted.sum()),
            ladder=self.ladders.index(ladder),
            share=float(ladder.grid[rung]),
            log_wealth=float(ladder.wealth.best[rung]),
            threshold=ladder.threshold(rung),
            certified_from=float(ladder.grid[certified][0]) if certified.any() else nan,
            certified_to=float(ladder.grid[certified][-1]) if certified.any() else nan,
            next_share=float(coming.grid[coming_rung]),
            next_log_wealth=float(coming.wealth.best[coming_rung]),
            next_threshold=coming.threshold(coming_rung),
            more_outcomes=coming.more_outcomes(coming_rung),
            delta_spent=self.delta_spent,
            n_outcomes=self.known_rows().size,
            estimated_fdr=policy.estimated_fdr,
            alpha=rules.alpha,
            delta=delta,
            notes=ladder.ranking.notes if barred is None else (*ladder.ranking.notes, barred),
            group_mode=group_mode,
            n_unreachable=0 if barred is None else barred.facts["n_barred"],
            n_tested=self.n_tested,
            next_n_tested=coming.n_tested,
            tests_began=stage.began,
            restart_reason=stage.reason,
            awaited_round=number if waits else 0,
            n_awaited=int(awaited.size) if waits else 0,
            curve=self._curve(bets),
        )

    def _curve(self, bets: list[LadderBets]) -> tuple[CurvePoint, ...]:
        """Return what the rule would earn at several bounds; empty while too little is known."""
        estimates, rules = self.estimates, self.rules
        if estimates.settled.size < ENOUGH:
            return ()
        fdr = np.array([estimates.fdr(rows) for rows in self.stage.ladder_rows])
        worth = np.array([estimates.worth(rows, rules.utility) for rows in self.stage.ladder_rows])
        points = []
        for k, bound in enumerate((rules.alpha, *rules.other_bounds)):
            allowed = np.array([bet.ladder.tests[k].certified(bet.ladder.level) for bet in bets])
            certified = bool(allowed.any())
            if not certified:  # rungs that look allowed, and that outcomes say something about
                seen = np.array([(bet.use[0] | bet.use[k]).any(axis=0) for bet in bets])
                allowed = seen & (fdr <= bound)
            if not allowed.any():
                points.append(CurvePoint(bound, 0.0, 0.0, float("nan"), False))
                continue
            best = np.unravel_index(np.argmax(np.where(allowed, worth, -np.inf)), worth.shape)
            share = bets[best[0]].ladder.grid[best[1]]
            points.append(
                CurvePoint(bound, float(share), float(worth[best]), float(fdr[best]), certified)
            )
        return tuple(sorted(points, key=lambda point: point.bound))

    def _next_certificate(
        self, policy: ChosenPolicy, certified: NDArray[np.bool_]
    ) -> tuple[Ladder, int]:
        """Return the ladder and the rung that may be certified next.

        After a certified policy, the next rung of its ladder. After a pilot, the rung of any
        ladder that is nearest to a certificate.
        """
        ladder, start = policy.ladder, policy.ladder.starts[0][0]
        beyond = np.flatnonzero(~certified[start:]) + start
        following = ladder, int(beyond[0]) if beyond.size else policy.rung
        return following if policy.certified else nearest_certificate(self.ladders) or following


def edge_softness(
    ranking: Ranking, number: int, rules: Rules, pilot: Pilot, widest: float, n_batch: int
) -> float:
    """Return τ: a part of the share that the model expects to accept, at least six applicants."""
    if isinstance(ranking.likelihood, ConstantLikelihood):
        # All ranks are 1, so a rung accepts every applicant with exp(−(1 − q)/τ). This τ makes
        # that q for the pilot's own rung.
        return (1 - pilot.share) / -float(np.log(pilot.share))
    if number == 0:
        accept = np.clip(ranking.knee(1.25 * rules.alpha), pilot.share, 4 * pilot.share)
    else:
        accept = np.clip(ranking.knee(rules.alpha), 0.5 * widest, 6 * widest)
    return max(rules.softness(number) * float(accept), min(6 / n_batch, _SOFTEST))


def walk_starts(
    ladder_rows: LadderRows,
    pilot: Pilot,
    estimates: RungEstimates | None,
    bound: float,
    covered: NDArray[np.bool_] | None = None,
) -> tuple[tuple[int, float], ...]:
    """Return the rungs from which walks at a bound start, with the share of the level each gets.

    The first ladder of a stage, for which there are no ``estimates``, starts at the pilot's rung.
    Later ladders start where evidence has grown fastest among the rungs that are ``covered``, but
    not further out than a pilot may go, because the pilot moves to the start of a new ladder.
    """
    ladder = ladder_rows.ladder
    start = ladder.nearest(pilot.share)
    if estimates is not None:
        growth = estimates.growth(ladder_rows, bound)
        if covered is not None and np.any(covered & (growth > 0)):
            # A start that nothing covers would never be tested, nor any rung beyond it.
            growth = np.where(covered, growth, 0.0)
        lowest = ladder.nearest(0.7 * pilot.share * min(1.0, bound / pilot.alpha))
        if np.any(growth[lowest:] > 0):
            start = min(lowest + int(np.argmax(growth[lowest:])), ladder.nearest(OUTER))
        elif covered is not None and np.any(growth > 0):
            start = int(np.argmax(growth))
        else:
            start = ladder.nearest(pilot.share / 2)
    half = ladder.nearest(float(ladder.grid[start]) / 2)
    return ((start, _WALKS), (half, 1 - _WALKS)) if half < start else ((start, 1.0),)


def _sample(bits: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Return a random part of a large batch, the same in any order of rows; else all of it."""
    if bits.size <= _SAMPLE:
        return np.arange(bits.size)
    keyed = keyed_bits(bits, round_key(0, 0))
    return np.flatnonzero(keyed <= np.partition(keyed, _SAMPLE - 1)[_SAMPLE - 1])


def _unreachable(
    strategy: Strategy, X: Any, score: NDArray[np.floating], beyond: NDArray[np.bool_]
) -> Note | None:
    """Return how many of those not accepted for sure are barred by limits, if any is."""
    if not isinstance(strategy, Limited) or not beyond.any():
        return None
    return barred_note(strategy, strategy.barred(X[beyond], score[beyond]))
