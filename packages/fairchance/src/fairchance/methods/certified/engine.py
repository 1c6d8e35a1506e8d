"""The engine of ``CertifiedClassifier``: it freezes rankings, tests ladders and chooses policies.

Rounds enter the tests in their order, each once its outcomes are complete. The engine sees
features, logged probabilities and outcomes of accepted applicants; ids serve only to forget them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairchance.core.decisions import CertifiedRound, CurvePoint, Decisions, Note
from fairchance.core.limits import Limited
from fairchance.core.saved import saved
from fairchance.core.strategies import Strategy
from fairchance.methods.algorithm1.exploration import barred_note, count_reasons
from fairchance.methods.certified.evidence import (
    RATIO_CAPS,
    WINDOWS,
    Dependence,
    DriftMonitor,
    MirrorTest,
    compare_with_earlier,
    uncovered,
)
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
    BesidePilot,
    Pilot,
    RungEstimates,
    Sample,
    allowed_bad,
    expected_bad,
    found_bad,
    least_expected,
    looks_hopeless,
    outlook_of,
    rounded_down,
)
from fairchance.methods.certified.ranking import Groups, PastApplicants, Ranking
from fairchance.methods.certified.rounds import (
    ChosenPolicy,
    LadderBets,
    LastBatch,
    OpenRound,
    PreparedRound,
    Reference,
    SettledRound,
    WaitingRound,
    merged_rounds,
    sampled,
    summed,
)
from fairchance.methods.certified.rules import Rules
from fairchance.methods.certified.stage import Change, Generation, Stage
from fairchance.methods.certified.starts import (
    SOFTEST,
    edge_softness,
    largest_mass,
    two_walks,
    walk_starts,
)
from fairchance.people.likelihoods import ConstantLikelihood, Likelihood
from fairchance.people.store import NEVER, NOT_TAKEN, PENDING, ApplicantRows

__all__ = ["Engine"]

Floats = NDArray[np.float64]

_KEPT_ROUNDS = 5  # the last rounds before a drift alarm still count after it
_ENOUGH_TO_BET = 100  # accepted applicants in the tests before estimates choose bets
_FEW_PENDING = 0.05  # of a round's accepted: a ranking may learn from it without them
_NEW_OUTCOMES = 50  # since the last freeze, before the next
_MORE_OUTCOMES = 1.5  # times those that the stage had at the last freeze, before the next
_HARDLY_ANY = 0.02  # of applicants: a lender who accepts fewer has no business to keep
_PRICE_OF_LEARNING = 0.03  # of what the lender's policy earns
_ABOUT_THE_SAME = 0.01  # of a policy's worth
_PROMISING = 0.9  # of α: the largest estimated FDR to bet on in the history
_CAREFUL = 0.05  # p-value of a change, at one look, from which on safer policies are chosen
_CALM = 0.5  # the same, above which such a suspicion ends: one good round is not enough
_SUSPECT = 0.01  # the same, from which on certificates mention it
_HELD_UP = 5  # rounds in which nothing was tested before that is worth a warning


@saved
@dataclass(eq=False)
class Engine:
    """Ladders, their tests, and the choice of policies.

    Attributes
    ----------
    rules
        The promise.
    rows
        Our own accepted applicants, with the columns ``p`` (logged probability), ``incumbent`` (the
        lender's own decision) and ``bits`` (of ids).
    n_groups
        Number of groups.
    sample
        Those of them that estimates rest on: a part of the rows of settled rounds.
    tally
        For each round, from 0 on, how many were accepted, are pending, and have a known outcome.
    stage
        The tests since certificates were last dropped.
    generation
        The certificates that are tested for now; with ``validity``, older ones lapse.
    waiting
        Rounds that are not in the tests yet, in their order.
    settled
        Rounds that are in the tests and count in estimates, in their order; older ones with the
        same policy are one entry.
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
        Part of δ given to ladders so far, in this generation.
    handed_over
        Whether policies that do not follow the lender's own may be deployed beside it.
    delay
        The largest number of rounds after which an outcome has arrived.
    past_worth
        What the past earned per applicant, if the history is evidence; else NaN.
    opened
        The round that is open; None if none is.
    """

    rules: Rules
    rows: ApplicantRows
    n_groups: int
    sample: Sample = field(default_factory=Sample)
    tally: NDArray[np.int64] = field(default_factory=lambda: np.zeros((1, 3), np.int64))
    stage: Stage = field(default_factory=Stage)
    generation: Generation = field(default_factory=Generation)
    waiting: list[WaitingRound] = field(default_factory=list)
    settled: list[SettledRound] = field(default_factory=list)
    settled_round: int = 0
    settled_after: int = 0
    first_round: int = 0
    n_rounds: int = 0
    largest_batch: int = 0
    last_batch: LastBatch | None = None
    delta_spent: float = 0.0
    handed_over: bool = True
    delay: int = 0
    past_worth: float = float("nan")
    opened: OpenRound | None = None
    _estimates: RungEstimates | None = None  # until something that they rest on changes

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_estimates"}

    @property
    def ladders(self) -> list[Ladder]:
        """The ladders of this stage."""
        return [ladder_rows.ladder for ladder_rows in self.stage.ladder_rows]

    @property
    def n_tested(self) -> int:
        """Accepted applicants that the tests rest on."""
        return self.stage.n_tested

    @property
    def n_known(self) -> int:
        """Number of outcomes that are known and count."""
        return int(self.tally[self.first_round :, 2].sum())

    def _learnable_rounds(self) -> NDArray[np.bool_]:
        """Return for each round, from 0 on, whether rankings may learn from it.

        Those are rounds that are complete, or old enough to be in the tests. If bad outcomes arrive
        sooner than good ones, a ranking that learned from all known ones would learn that the
        newest applicants are bad.
        """
        accepted, pending, _ = self.tally.T
        complete = pending <= _FEW_PENDING * accepted
        if self.rules.maturity:
            complete[: max(0, self.n_rounds - self.rules.maturity + 1)] = True
        complete[: self.first_round] = False
        return np.asarray(complete)

    @property
    def n_learnable(self) -> int:
        """Number of outcomes that a ranking may learn from."""
        return int(self.tally[self._learnable_rounds(), 2].sum())

    def learnable_rows(self) -> NDArray[np.intp]:
        """Return the rows that a ranking may learn from."""
        learnable = self._learnable_rounds()[self.rows["round"]]
        return np.flatnonzero((self.rows["outcome"] >= 0) & learnable)

    def _count(self, first: int, last: int) -> None:
        """Count the outcomes of some rounds again, after rows or outcomes have changed."""
        rounds = self.rows["round"]
        rows = slice(np.searchsorted(rounds, first), np.searchsorted(rounds, last, side="right"))
        number, outcome = rounds[rows] - first, self.rows["outcome"][rows]
        for kind, some in enumerate((slice(None), outcome == PENDING, outcome >= 0)):
            counts = np.bincount(number[some], minlength=last - first + 1)
            self.tally[first : last + 1, kind] = counts
        self._estimates = None

    @property
    def estimates(self) -> RungEstimates:
        """Estimates from the rounds that are in the tests."""
        if self._estimates is None:
            self._estimates = self._estimate()
        return self._estimates

    def _estimate(self) -> RungEstimates:
        sample, policies = self.sample, [settled.policy for settled in self.settled]
        columns = {name: self.rows[name][sample.row] for name in ("round", "outcome", "p")}
        # p_sum is 0 if a person's first application was accepted only.
        counts = (sample.p_sum > 0) & (columns["outcome"] != NOT_TAKEN)
        n = self._n_settled() - int(np.searchsorted(self.rows["round"], self.first_round))
        return RungEstimates(
            {**columns, "p_sum": sample.p_sum},
            np.flatnonzero(counts),
            self.settled_round,
            n_people=sum(settled.n_people for settled in self.settled),
            widest=max((settled.share for settled in self.settled), default=0.0),
            noise=self.rules.noise,
            explored=max((p.pilot_share or 0.0 for p in policies if p.ladder.union), default=0.0),
            each=n / max(1, sample.row.size),
        )

    # Freezing.

    def freeze_if_due(
        self,
        t: int,
        reference: Reference,
        n_batch: int,
        learn: Callable[[], tuple[Likelihood | None, tuple[Note, ...]]],
        held_out: Callable[[], tuple[Floats, NDArray[np.int8]]],
    ) -> None:
        """Freeze the rankings that are due before round ``t``.

        ``learn`` returns a model learned from everything known now, and what its fit had to say;
        None if that is not enough, so that the first pilot has to treat all applicants alike.
        ``held_out`` returns ranks of applicants that the past accepted, by models that have not
        seen them, and their outcomes.
        """
        self.largest_batch = max(self.largest_batch, n_batch)
        if self.rules.validity is not None and t >= self.generation.began + self.rules.validity:
            self._begin_generation(t)
        if self._is_due(t):
            likelihood, notes = learn()
            if likelihood is None:
                if self.ladders:
                    return
                likelihood = ConstantLikelihood(0.5)
            first = not self.stage.freezes and reference.incumbent is not None
            known = held_out() if first else None
            self._freeze(t, reference, likelihood, notes, known)

    def _begin_generation(self, t: int) -> None:
        """Let the certificates of the generation before this one lapse, and start evidence anew."""
        # Rounds before ``t`` chose nothing here: the calendar did. So each generation is a run of
        # tests by itself, with its own δ.
        stage, before = self.stage, self.generation.began
        kept = [rows for rows in stage.ladder_rows if rows.ladder.frozen >= before]
        stage.lapsed += len(stage.ladder_rows) - len(kept)
        stage.ladder_rows = kept
        stage.n_tested = max((rows.ladder.n_tested for rows in kept), default=0)
        for waiting in self.waiting:
            waiting.bets = [bet for bet in waiting.bets if bet.ladder.frozen >= before]
        if self.last_batch is not None:
            self.last_batch.positions = []
        self.generation = Generation(t, stage.restarts, len(stage.freezes))
        self.delta_spent = 0.0

    def _is_due(self, t: int) -> bool:
        done, freezes = self.stage.freezes[self.generation.freezes :], self.rules.freezes
        k = len(done)
        if k >= len(freezes):
            return False
        first, outcomes = freezes[k]
        known = self.n_learnable
        began = max(self.stage.began, self.generation.began)
        if t - began + 1 < first or known < outcomes:
            return False
        if not done:
            return True
        # If a year's outcomes arrive together, several freezes are due, and would learn the same.
        last, known_then = done[-1]
        apart = t - last >= (first - freezes[k - 1][0]) / 2
        before = done[0][1]
        more = known - before >= _MORE_OUTCOMES * (known_then - before)
        return apart and more and known >= known_then + _NEW_OUTCOMES

    def _freeze(
        self,
        t: int,
        reference: Reference,
        likelihood: Likelihood,
        notes: tuple[Note, ...],
        known: tuple[Floats, NDArray[np.int8]] | None = None,
    ) -> None:
        # The ladder is tested on round t and later ones only, so its ranking, floor, softness and
        # starts may depend on everything known now.
        rules, stage, number = self.rules, self.stage, len(self.stage.freezes)
        k = number - self.generation.freezes
        X, group = reference.X, reference.group
        score = np.asarray(likelihood.score(X, group), np.float64)
        ranking = Ranking.freeze(
            likelihood, score, group, self.n_groups, within=rules.within, notes=notes
        )
        floor = Floor.freeze(rules.strategy, rules.floor, X, score, group, self.n_groups)
        if stage.pilot is None:
            stage.pilot = Pilot.start(ranking, rules.alpha, self.largest_batch)
            stage.widest = stage.pilot.share
        if self.last_batch is None and reference.incumbent is not None:
            self.last_batch = reference.as_batch()
        beside = reference.incumbent is not None
        if k == 0:
            stage.with_lender = beside
        # Later generations begin with a ranking that is as good as any, as beside the lender.
        early = stage.with_lender or self.generation.freezes > 0
        level = rules.level(k, stage.restarts - self.generation.restarts, beside=early)
        level /= 2 if beside else 1

        pilot = stage.pilot

        def ladder_of(softness: float, union: bool) -> Ladder:
            return Ladder(
                ranking,
                edge_softness(
                    ranking, number, rules, pilot, stage.widest, self.largest_batch, softness
                ),
                floor,
                level,
                ((0, 1.0),),
                t,
                rules.alpha,
                rules.noise.most_bad,
                union,
                shock=rules.shock,
            )

        usual = rules.softness(number)
        kinds = [ladder_of(usual, False)]
        if beside:
            # The union explores, so the edge of the other kind may be as hard as it ever gets.
            kinds = [ladder_of(rules.hardest, False), ladder_of(usual, True)]
        if rules.shock:
            at = kinds[0].place(score, X, group).beside(reference.incumbent, None)
            for ladder in kinds:
                ladder.mass = largest_mass(ladder.policies(at))
        growth = None
        if known is not None:
            growth = self._expected_growth(kinds[0], kinds[1], reference, *known)
        kinds[0].outlook = outlook_of(kinds[0], self.largest_batch, rules.noise)
        for ladder in kinds:
            self._begin_tests(ladder, growth)
        stage.freezes.append((t, self.n_learnable))

    def _expected_growth(
        self,
        own: Ladder,
        union: Ladder,
        reference: Reference,
        known_rank: Floats,
        outcome: NDArray[np.int8],
    ) -> Floats | None:
        """Return how fast evidence for each own rung should grow beside the lender's first rounds.

        None if the history has too few outcomes.
        """
        at = own.locate(reference.X, reference.group).beside(reference.incumbent, None)
        bad, stage = expected_bad(at.rank, known_rank, outcome), self.stage
        stage.beside = BesidePilot.start(union, at, bad, self.rules.utility)
        if bad is None:
            return None
        reach = union.policies(at[~at.accepted_by_lender]).sum(axis=0) / at.rank.size
        p = union.policy(at, stage.beside.nearest(reach))
        pi = own.policies(at)
        mass = pi.sum(axis=0)
        missing = uncovered(pi, p, RATIO_CAPS[0]).sum(axis=0)
        gap = self.rules.alpha - (bad @ pi + missing) / mass
        return np.asarray(mass * np.maximum(gap, 0.0) ** 2)

    def _begin_tests(self, ladder: Ladder, growth: Floats | None) -> None:
        """Add a ladder, choose where its walks start, and start its evidence.

        ``growth`` is how fast evidence is expected to grow, if it is known before any round.
        """
        rules, stage = self.rules, self.stage
        ladder_rows = LadderRows(ladder, self._own_positions(ladder))
        estimates = self.estimates if stage.freezes else None
        covered = self._covered(ladder_rows) if stage.freezes else None

        def starts(bound: float) -> tuple[tuple[int, float], ...]:
            if ladder.union:
                return ((0, 1.0),)  # the lender's own policy comes first
            if growth is not None and growth.any():
                return two_walks(ladder, int(np.argmax(growth)))
            if stage.pilot is None:
                raise AssertionError("a pilot starts when the first ladder is frozen")
            return walk_starts(ladder_rows, stage.pilot, estimates, bound, covered)

        ladder.starts = starts(rules.alpha)
        ladder.others = tuple(
            BoundTest(starts(bound), ladder.start_wealth(bound)) for bound in rules.other_bounds
        )
        self.delta_spent += ladder.level
        stage.ladder_rows.append(ladder_rows)

    def _own_positions(self, ladder: Ladder) -> Positions:
        """Return the positions of our own accepted applicants in the sample."""
        for known in self.stage.ladder_rows:  # both kinds of ladder share a ranking
            if known.ladder.ranking is ladder.ranking:
                return known.at
        return self._located(ladder, self.sample.row)

    def _located(self, ladder: Ladder, rows: NDArray[np.integer]) -> Positions:
        """Return the positions of some rows of the store on a ladder."""
        at = ladder.locate(self.rows.features(rows), self.rows["group"][rows])
        return at.beside(self.rows["incumbent"][rows], None)

    def add_history(
        self,
        train: PastApplicants,
        test: PastApplicants,
        likelihood: Likelihood,
        known: tuple[Floats, NDArray[np.int8]],
        *,
        beside: bool,
    ) -> None:
        """Add ladders that one half of the history has trained, and test them on the other half.

        The history is a round with p = d, the past decision: a rejected applicant is uncovered and
        counts as bad, so nothing is assumed about how the past selected. The model has learned
        who is accepted and good.

        Parameters
        ----------
        train, test
            The halves.
        likelihood
            The model, which has seen the first half only.
        known
            Ranks of its applicants by models that have not seen them, and whether they were
            accepted and good.
        beside
            Whether the lender decides on the rounds too, by the process of the history.
        """
        rules = self.rules
        X, group = train.everyone
        score = np.asarray(likelihood.score(X, group), np.float64)
        ranking = Ranking.freeze(likelihood, score, group, self.n_groups, within=rules.within)
        floor = Floor.freeze(rules.strategy, rules.floor, X, score, group, self.n_groups)
        # Nothing here may depend on the other half, so neither may the softness.
        share = max(ranking.knee(1.25 * rules.alpha), SOFTEST)
        tau = max(rules.hardest * share, min(6 / self.largest_batch, SOFTEST))
        level = rules.history_level / (1 + beside)
        accepted = np.arange(group.size) < len(train.X)
        bad = expected_bad(ranking.rank(score, group), *known)
        if bad is None:
            return
        for union in (False, True)[: 1 + beside]:
            ladder = Ladder(
                ranking,
                tau,
                floor,
                level,
                ((0, 1.0),),
                1,
                rules.alpha,
                rules.noise.most_bad,
                union,
                from_history=True,
                shock=rules.shock,
            )
            at = ladder.place(score, X, group).beside(accepted, None)
            pi = ladder.policies(at)
            mass, ladder.mass = pi.sum(axis=0), largest_mass(pi)
            # A rejected applicant counts as bad, as in the test.
            risk = np.where(accepted, np.mean(train.outcome != 1), 1.0) if union else bad
            fdr = np.divide(risk @ pi, mass, out=np.ones(mass.size), where=mass > 0)
            growth = mass * np.maximum(rules.alpha - fdr, 0.0) ** 2
            if growth.any():
                self._begin_tests(ladder, growth)
                self._test_history(ladder, test, fdr)

    def _test_history(self, ladder: Ladder, test: PastApplicants, fdr: Floats) -> None:
        """Test a ladder on past applicants; ``fdr`` of the other half chooses the bets."""
        X, group = test.everyone
        accepted = np.arange(group.size) < len(test.X)
        at = ladder.locate(X, group).beside(accepted, None)
        bad = np.zeros(group.size)
        bad[accepted] = self.rules.noise.badness(test.outcome != 1)
        bounds = np.array([one.wealth.alpha for one in ladder.tests])[:, None, None]
        bounds_on_ratio = ladder.ratio_bounds(None, ramp=0.0)
        use = np.broadcast_to(fdr <= _PROMISING * bounds, (len(bounds), *bounds_on_ratio.shape))
        ladder.test(
            at,
            accepted.astype(np.float64),
            accepted,
            bad,
            ratio_bounds=bounds_on_ratio,
            use=use,
            dependence=test.dependence(),
        )
        self.stage.n_tested = max(self.stage.n_tested, ladder.n_tested)
        loss, gain = self.rules.utility.gain_bad, self.rules.utility.gain_good
        earned = np.where(test.outcome == 1, gain, loss)
        self.past_worth = float(earned.sum() / group.size)
        worth = earned @ ladder.policies(at[accepted])
        self.stage.ladder_rows[-1].expected = np.asarray(worth / group.size)

    def _covered(self, ladder_rows: LadderRows) -> NDArray[np.bool_]:
        """Return the rungs of a new ladder that would be bet on if the last policy stays."""
        ladder, last = ladder_rows.ladder, self.last_batch
        rounds: list[Any] = [*self.waiting] or [*self.settled]
        if last is None or not rounds:
            return np.ones(ladder.grid.size, np.bool_)
        deployed = rounds[-1].policy
        ladders = [deployed.ladder, ladder]
        before, at = (
            one.locate(last.X, last.group).beside(last.incumbent, None) for one in ladders
        )
        use = ladder.worth_betting(
            at, deployed.probability(before), self.estimates.fdr(ladder_rows)
        )
        return np.asarray(use[0].any(axis=0))

    def _lapse(self, ladder: Ladder, validity: int) -> dict[str, int]:
        """Return how long certificates are valid, and the last round of those of a ladder."""
        began = self.generation.began
        began -= 0 if ladder.frozen >= began else validity
        return {"validity": validity, "last": began + 2 * validity - 1}

    # Choosing.

    def choose(self, *, beside: bool = False, ramp: float = 1.0) -> ChosenPolicy:
        """Return the policy of the next round: the best certified one, or the pilot.

        Beside the lender's own policy, the pilot stays while it looks as if it earned more than
        the best certified policy, unless the tests say that the lender's policy breaks α.

        Parameters
        ----------
        beside
            Whether the lender decides on the applicants too.
        ramp
            r.
        """
        # Estimates may be biased: they choose among certified rungs, which all keep the bound.
        best = self._best_certified(beside=beside)
        if not beside:
            return self.choose_pilot() if best is None else best[1]
        worth, stay = self._choose_beside()
        rejected, notes = self.incumbent_rejected, []
        if rejected:
            facts = {"alpha": self.rules.alpha, "estimated_fdr": self._incumbent_fdr()}
            notes.append(Note("incumbent_rejected", facts))
        if best is not None and best[1].kind == "own" and not self.handed_over:
            if rejected or best[0] > worth > -np.inf:
                notes.append(Note("handover_waits", {"earned": worth, "best": best[0]}))
            best = self._best_certified(beside=True, own=False)
        takes_over = rejected and self.handed_over
        if takes_over:  # certificates that contain the lender's policy were granted before
            best = self._best_certified(beside=False)
        if best is not None and best[1].kind == "incumbent" and stay.kind == "union":
            # Without exploration no other policy would ever be tested.
            worth += _PRICE_OF_LEARNING * abs(best[0])
        policy = stay
        if best is not None and (takes_over or best[0] >= worth):
            policy = best[1]
        elif best is not None:
            notes.append(Note("incumbent_stays", {"earned": worth, "best": best[0]}))
        # A mixture of two policies that keep α keeps it.
        of_lender = self.incumbent_certified and not rejected
        certified = policy.certified and (ramp == 1 or of_lender)
        said = (*policy.notes, *notes)
        return replace(policy, certified=certified, ramp=ramp, notes=said)

    def _best_certified(
        self, *, beside: bool, own: bool = True
    ) -> tuple[float, ChosenPolicy] | None:
        """Return the certified policy that looks as if it earned most, with its worth."""
        best: tuple[float, LadderRows, int] | None = None
        allowed = [
            rows for rows in self.stage.ladder_rows if (beside if rows.ladder.union else own)
        ]
        for ladder_rows, certified in zip(allowed, self._careful(allowed), strict=True):
            if not certified.any():
                continue
            worth = np.where(certified, self._worth(ladder_rows), -np.inf)
            rung = int(np.argmax(worth))
            if best is None or worth[rung] > best[0]:
                if beside:  # the widest of those that earn about the same, because it explores
                    near = worth >= worth[rung] - _ABOUT_THE_SAME * abs(worth[rung])
                    rung = int(np.flatnonzero(near)[-1])
                best = float(worth[rung]), ladder_rows, rung
        if best is None:
            return None
        worth_of_best, ladder_rows, rung = best
        fdr = self.estimates.mistakes(ladder_rows, rung)[0]
        return worth_of_best, ChosenPolicy(ladder_rows.ladder, rung, True, fdr)

    def _careful(self, ladders: list[LadderRows]) -> list[NDArray[np.bool_]]:
        """Return the certified rungs of each ladder; only safe ones if a change is suspected.

        Those are the rungs whose estimated FDR is at most α even if bad outcomes stay as frequent
        as in the last rounds, or the one with the smallest if there are none.
        """
        certified, change = [rows.ladder.certified() for rows in ladders], self.stage.change
        if change is None or not any(some.any() for some in certified):
            return certified
        fdr = [np.nan_to_num(change.times * self.estimates.fdr(rows), nan=1.0) for rows in ladders]
        least = min(
            each[some].min(initial=np.inf) for each, some in zip(fdr, certified, strict=True)
        )
        most = max(self.rules.alpha, least)
        return [some & (each <= most) for each, some in zip(fdr, certified, strict=True)]

    def _worth(self, ladder_rows: LadderRows) -> Floats:
        """Return the estimated utility per applicant of every rung."""
        if ladder_rows.expected is not None and self.estimates.settled.size < ENOUGH:
            return ladder_rows.expected
        return self.estimates.worth(ladder_rows, self.rules.utility)

    @property
    def incumbent_certified(self) -> bool:
        """Whether the lender's own policy is certified."""
        return any(ladder.union and ladder.certified()[0] for ladder in self.ladders)

    @property
    def incumbent_rejected(self) -> bool:
        """Whether outcomes show, with confidence 1 − δ, that the lender's policy breaks α."""
        mirror = self.stage.mirror
        return mirror is not None and bool(mirror.best.min() >= -np.log(self.rules.delta))

    @property
    def _frozen_rows(self) -> list[LadderRows]:
        """The ladders of the stage without those that a half of the history trained."""
        return [rows for rows in self.stage.ladder_rows if not rows.ladder.from_history]

    def _incumbent_fdr(self) -> float | None:
        """Return the estimated FDR of the lender's own policy; None if there is no estimate."""
        unions = [rows for rows in self._frozen_rows if rows.ladder.union]
        fdr = self.estimates.mistakes(unions[-1], 0)[0] if unions else float("nan")
        return None if np.isnan(fdr) else fdr

    def choose_pilot(self, *, beside: bool = False) -> ChosenPolicy:
        """Return the pilot on the newest ladder that does not use the lender's decisions."""
        ladder_rows = [rows for rows in self._frozen_rows if not rows.ladder.union][-1]
        pilot, estimates = self.stage.pilot, self.estimates
        if pilot is None:
            raise AssertionError("a pilot starts when the first ladder is frozen")
        rung, share = pilot.rung(ladder_rows, estimates)
        ladder, scale, notes = ladder_rows.ladder, 1.0, self._none_in_sight()
        if notes and ladder.outlook is not None and not beside:
            rung = int(ladder.outlook.rungs[0])
            scale = self._affordable(ladder_rows, rung)
        fdr = estimates.mistakes(ladder_rows, rung)[0]
        return ChosenPolicy(ladder, rung, False, fdr, share, scale=scale, notes=notes)

    def _none_in_sight(self) -> tuple[Note, ...]:
        """Say that no policy at α is in sight on the newest ranking; nothing if one may be."""
        ladder_rows = [rows for rows in self._frozen_rows if not rows.ladder.union][-1]
        ladder, delta = ladder_rows.ladder, self.rules.delta
        if ladder.outlook is None:
            return ()
        if ladder.frozen == self.stage.freezes[0][0] and least_expected(ladder) <= ladder.alpha:
            # Not the book has no policy, but a ranking that the history misled. Outcomes correct
            # the next one, which should not have to wait for them.
            return ()
        proved = ladder.outlook.none_keeps(delta)
        if not (proved or looks_hopeless(ladder_rows, self.estimates)):
            return ()
        low, high = ladder.outlook.interval(delta)
        first, *_ = shares = ladder.grid[ladder.outlook.rungs]
        last = shares[ladder.outlook.broken(delta) - 1] if proved else first
        facts = {"alpha": self.rules.alpha, "confidence": 1 - delta, "proved": proved}
        facts |= {"low": low, "high": high, "from": float(first), "to": float(last)}
        return (Note("none_in_sight", facts),)

    def _affordable(self, ladder_rows: LadderRows, rung: int) -> float:
        """Return the part of a rung's acceptances that exploration may cost in a round."""
        ladder, n = ladder_rows.ladder, self.largest_batch
        q, tau = float(ladder.grid[rung]), ladder.tau
        n_accepted = n * (q + tau * (1 - np.exp(-(1 - q) / tau)))  # ranks are uniform
        risk = np.nanmax([found_bad(ladder_rows, self.estimates)[0], self.rules.alpha])
        most = allowed_bad(self.rules.exploration_price, n, self.rules.utility)
        return rounded_down(min(1.0, most / (n_accepted * risk)))

    def _choose_beside(self) -> tuple[float, ChosenPolicy]:
        """Return the pilot beside the lender's own policy, and what it seems to earn."""
        stage, estimates, last = self.stage, self.estimates, self.last_batch
        unions = [rows for rows in self._frozen_rows if rows.ladder.union]
        if not unions or last is None:  # the lender began to decide after the last freeze
            return -np.inf, self.choose_pilot(beside=True)
        ladder_rows = unions[-1]
        at = last.locate(self.ladders, [ladder_rows.ladder])[ladder_rows.ladder]
        rejected = ~at.accepted_by_lender
        if rejected.mean() > 1 - _HARDLY_ANY:
            return -np.inf, self.choose_pilot(beside=True)
        if stage.beside is None:
            stage.beside = BesidePilot.start(ladder_rows.ladder, at, None, self.rules.utility)
        reach = ladder_rows.ladder.policies(at[rejected]).sum(axis=0) / rejected.size
        utility, alpha = self.rules.utility, self.rules.alpha
        rung, share = stage.beside.rung(ladder_rows, reach, estimates, utility, alpha)
        scale, notes, n = 1.0, self._none_in_sight(), self.largest_batch
        if notes and rung:
            most = allowed_bad(self.rules.exploration_price, n, utility)
            rung, scale = stage.beside.at_most(most, rung, reach, n, alpha)
        fdr = estimates.mistakes(ladder_rows, rung)[0]
        policy = ChosenPolicy(ladder_rows.ladder, rung, False, fdr, share, scale=scale, notes=notes)
        if estimates.settled.size < ENOUGH and not np.isnan(self.past_worth):
            return self.past_worth, policy
        return float(self._worth(ladder_rows)[rung]), policy

    # Opening and closing rounds, and forgetting applicants.

    def open(
        self,
        t: int,
        policy: ChosenPolicy,
        *,
        beside: bool,
        group: Any,
        group_mode: str,
        delta: float,
    ) -> OpenRound:
        """Return round ``t`` with its bets, for ``opened``; nothing is changed."""
        uses = self._choose_bets(policy, beside=beside)
        bets = [LadderBets(ladder, use) for ladder, use in zip(self.ladders, uses, strict=True)]
        record = self._record(t, policy, bets, group=group, group_mode=group_mode, delta=delta)
        return OpenRound(policy, bets, record)

    def prepare(
        self,
        opened: OpenRound,
        X: Any,
        group: Groups,
        at: Positions,
        decided: Decisions,
        bits: NDArray[np.uint64],
        barred: NDArray[np.bool_] | None = None,
        persons: NDArray[np.uint64] | None = None,
    ) -> PreparedRound:
        """Return some applicants of a decided round for ``settle``, and change nothing.

        ``at`` are their positions on the policy's ladder, with the lender's own decisions.
        Applications of a person must be together.
        """
        policy, accepted, incumbent = opened.policy, decided.accepted, at.incumbent
        # Models may be slow, so each scores an applicant once.
        located = {id(policy.ladder.ranking): at}
        for bet in opened.bets:
            if bet.use.any() and id(bet.ladder.ranking) not in located:
                found = bet.ladder.locate(X, group).beside(incumbent, barred)
                located[id(bet.ladder.ranking)] = found
        batch = None
        if bits.size:
            some = sampled(bits)
            by_lender = None if incumbent is None else incumbent[some]
            batch = LastBatch(X[some], group[some], bits[some], by_lender)
            known = [located.get(id(bet.ladder.ranking)) for bet in opened.bets]
            batch.positions = [None if all_of is None else all_of[some] for all_of in known]
        # Z of a person is a sum, which one logarithm is taken of.
        kept = accepted if persons is None else np.isin(persons, persons[accepted])
        record = replace(
            opened.record,
            n_people=bits.size,
            n_accepted=int(accepted.sum()),
            n_incumbent=None if decided.incumbent is None else int(decided.incumbent.sum()),
            n_barred=0 if decided.barred is None else int(decided.barred.sum()),
        )
        return PreparedRound(
            self._waiting(opened, located, decided, kept, barred, persons),
            record,
            bits[kept],
            batch,
            int(np.sum(decided.propensity == 1)),
            0 if incumbent is None else int(incumbent.sum()),
            _unreachable(policy.ladder.floor.strategy, X, decided.score, ~decided.exploit),
        )

    def _waiting(
        self,
        opened: OpenRound,
        located: dict[int, Positions],
        decided: Decisions,
        kept: NDArray[np.bool_],
        barred: NDArray[np.bool_] | None,
        persons: NDArray[np.uint64] | None,
    ) -> WaitingRound:
        """Return a round with sums over those of some applicants who are not ``kept``.

        ``located`` has the positions of all of them, by the ids of rankings.
        """
        policy, p, accepted = opened.policy, decided.propensity, decided.accepted
        depend = Dependence(persons, self.rules.per_person, self.rules.shock)[~kept]
        bets = [
            summed(bet, policy, located[id(bet.ladder.ranking)], p, kept, depend)
            if id(bet.ladder.ranking) in located
            else bet
            for bet in opened.bets
        ]
        incumbent = located[id(policy.ladder.ranking)].incumbent
        mirror = None
        if incumbent is not None:
            pi, rest = incumbent[~kept].astype(np.float64), (p[~kept], accepted[~kept])
            mirror = self._mirror_growth(policy, pi, *rest, depend, np.zeros(1))
        return WaitingRound(
            decided.round,
            p.size,
            policy,
            bets,
            mirror,
            p[kept],
            accepted[kept],
            decided.ids[accepted],
            np.empty(0, np.int64),
            None if incumbent is None else incumbent[kept],
            None if barred is None else barred[kept],
            None if persons is None else persons[kept],
        )

    def _mirror_growth(
        self,
        policy: ChosenPolicy,
        pi: Floats,
        p: Floats,
        accepted: NDArray[np.bool_],
        dependence: Dependence,
        mass: Floats,
    ) -> Floats:
        """Return what applicants who are not kept add to the test of the lender's own policy."""
        return MirrorTest(self.rules.noise.recorded_fdr(self.rules.alpha)).growth(
            pi,
            p,
            accepted,
            accepted,
            ratio_bound=policy.ratio_of_incumbent(),
            dependence=dependence,
            mass=mass,
        )

    def settle(self, prepared: PreparedRound) -> PreparedRound:
        """Return a decided round with all of its applicants, for ``log``; nothing is changed.

        A round may share a shock, whose allowance depends on how many applicants it has.
        """
        waiting, n = prepared.waiting.in_order(prepared.bits), prepared.record.n_people
        policy, nobody = waiting.policy, np.zeros(0, np.bool_)
        depend = Dependence(
            None if waiting.persons is None else waiting.persons[:0],
            self.rules.per_person,
            self.rules.shock,
        )
        bets = []
        for bet in waiting.bets:
            if bet.positions is not None:
                allowed = summed(
                    bet, policy, bet.positions[:0], np.zeros(0), nobody, depend, n_people=n
                )
                bets.append(bet.join(allowed))
            else:
                bets.append(bet)
        mirror, persons = waiting.mirror, waiting.persons
        if mirror is not None:
            share = prepared.n_by_lender / max(1, n)
            mass = n * share + 4 * np.sqrt(n * share * (1 - share))
            none = np.zeros(0)
            mirror = mirror + self._mirror_growth(
                policy, none, none, nobody, depend, np.array([mass])
            )
        if persons is not None:
            persons = np.unique(persons, return_inverse=True)[1]
        note = None
        if prepared.why is not None:
            note = barred_note(policy.ladder.floor.strategy, prepared.why)
        record = replace(
            prepared.record,
            n_unreachable=0 if note is None else note.facts["n_barred"],
            notes=(*prepared.record.notes, *filter(None, [note])),
        )
        waiting = replace(waiting, bets=bets, mirror=mirror, persons=persons)
        return replace(prepared, waiting=waiting, record=record)

    def log(self, prepared: PreparedRound, rows: NDArray[np.int64]) -> None:
        """Log a round whose accepted applicants are in these rows of the store."""
        waiting, stage = prepared.waiting, self.stage
        waiting.rows, self.opened = rows, None
        self.waiting.append(waiting)
        self.n_rounds += 1
        self.tally = np.vstack([self.tally, [[0, 0, 0]]])
        self._count(self.n_rounds, self.n_rounds)
        self.largest_batch = max(self.largest_batch, waiting.n_people)
        policy = waiting.policy
        pilot = stage.beside if policy.ladder.union else stage.pilot
        if pilot is not None and policy.pilot_share is not None:
            pilot.share = policy.pilot_share
        sure = float(policy.ladder.grid[policy.rung])
        if policy.ladder.union and waiting.n_people:
            sure = prepared.n_certain / waiting.n_people
        stage.widest = max(stage.widest, sure)
        if prepared.batch is not None:
            self.last_batch = prepared.batch.filled(self.last_batch)

    def forget(self, moved: NDArray[np.int64], bits: NDArray[np.uint64]) -> None:
        """Forget applicants that were deleted from the store.

        Evidence of rounds that are in the tests stays. In other rounds, an accepted applicant who
        is forgotten counts as bad, like one whose outcome is withdrawn.

        ``moved`` is the new row of each old row, −1 for the deleted.
        """
        self._keep(moved[self.sample.row] >= 0)
        self.sample.row = moved[self.sample.row]
        for one in self.stage.ladder_rows:
            one.counts.forget(moved)
        self._count(0, self.n_rounds)
        for waiting in self.waiting:
            here = waiting.rows >= 0
            waiting.rows[here] = moved[waiting.rows[here]]
            waiting.ids[waiting.rows < 0] = waiting.ids.dtype.type()
        if self.last_batch is not None:
            stays = ~np.isin(self.last_batch.bits, bits)
            self.last_batch = self.last_batch[stays] if stays.any() else None

    def _choose_bets(self, policy: ChosenPolicy, *, beside: bool) -> list[NDArray[np.bool_]]:
        """Return for each ladder the rungs to bet on in the next round, by bound and cap.

        Rungs that use the lender's decisions are bet on only ``beside`` the lender.
        """
        # The bets of a round must not depend on its own applicants and outcomes, or Z given the
        # past could have a positive mean. So earlier batches and settled rounds choose.
        ladders, last, estimates = self.ladders, self.last_batch, self.estimates
        uses = [
            np.zeros((len(ladder.tests), len(RATIO_CAPS), ladder.grid.size), np.bool_)
            for ladder in ladders
        ]
        if last is None:
            uses[ladders.index(policy.ladder)][:] = True
            return uses
        betting = self._betting(policy.ladder, beside=beside)
        located = last.locate(ladders, betting)
        p = policy.probability(located[policy.ladder])
        known = estimates.settled.size >= _ENOUGH_TO_BET
        for i, rows in enumerate(self.stage.ladder_rows):
            if rows.ladder in located:
                fdr = estimates.fdr(rows) if known else np.array(np.nan)
                uses[i] = rows.ladder.worth_betting(located[rows.ladder], p, fdr)
        return uses

    def _betting(self, deployed: Ladder, *, beside: bool) -> list[Ladder]:
        """Return the ladders that bet on the next round.

        Rungs that use the lender's decisions bet only ``beside`` the lender. Each ladder with a bet
        scores all applicants of a round. So without the lender a ladder that is not deployed rests,
        unless a rung within its reach looks as if it kept α and earned about as much as the best
        certified policy.
        """
        stage, estimates, alpha = self.stage, self.estimates, self.rules.alpha
        if beside or estimates.settled.size < _ENOUGH_TO_BET:
            return [ladder for ladder in self.ladders if beside or not ladder.union]
        own = [rows for rows in stage.ladder_rows if not rows.ladder.union]
        worth = {rows.ladder: estimates.worth(rows, self.rules.utility) for rows in own}
        best = max(one[ladder.certified()].max(initial=-np.inf) for ladder, one in worth.items())
        if best == -np.inf:
            return [*worth]
        enough = best - _ABOUT_THE_SAME * abs(best)
        return [
            rows.ladder
            for rows in own
            if rows.ladder is deployed
            or np.any(
                rows.ladder.tests[0].within_reach(rows.ladder.level)
                & (estimates.fdr(rows) <= alpha)
                & (worth[rows.ladder] >= enough)
            )
        ]

    # Weights of estimates.

    def _n_settled(self, last_round: int | None = None) -> int:
        """Return the number of rows of rounds in the tests, which are the first of the store."""
        last = self.settled_round if last_round is None else last_round
        return int(np.searchsorted(self.rows["round"], last, side="right"))

    def _settle(self, waiting: WaitingRound) -> None:
        """Let a round count in estimates: its applicants, and its policy in all weights."""
        first, end = self._n_settled(), self._n_settled(waiting.number)
        rows, here, stage = np.arange(first, end), waiting.rows >= 0, self.stage
        taken = np.flatnonzero(waiting.accepted)[here]
        # Further applications of a person have no position in tests, but are outcomes like others.
        further = waiting.barred is not None and waiting.barred[taken].any()
        located = {
            id(bet.ladder): self._located(bet.ladder, rows) if further else bet.positions[taken]
            for bet in waiting.bets
            if bet.positions is not None
        }
        for oldest in self.ladders[:1]:  # which all rounds are compared by
            if id(oldest) not in located:
                located[id(oldest)] = self._located(oldest, rows)
        bits = self.rows["bits"][first:end]
        chosen = self.sample.chosen(bits)
        in_sample = {number: at[chosen] for number, at in located.items()}
        for ladder in self.ladders:
            if id(ladder) not in located:  # frozen later, or without a bet
                in_sample[id(ladder)] = self._located(ladder, first + chosen)
        p_sum = self._p_sum(in_sample, first + chosen)  # a strategy may fail, so changes come after
        for one in stage.ladder_rows:
            if waiting.number >= one.ladder.frozen and id(one.ladder) in located:
                strata = one.strata(located[id(one.ladder)])
                one.counts.add(waiting.number, rows, strata, self.rows["outcome"][first:end])
        self.settled_round, self._estimates = waiting.number, None
        if waiting.number < self.first_round:  # left out after drift
            return
        for one in stage.ladder_rows:
            one.extend(in_sample[id(one.ladder)])
        self.sample.append(first + chosen, bits[chosen], p_sum)
        settled = SettledRound(waiting.number, waiting.policy, waiting.n_people)
        self.sample.p_sum += self._weighted_policy(settled)
        self.settled = merged_rounds([*self.settled, settled], self.n_rounds - _KEPT_ROUNDS)
        stays = self.sample.too_many()
        if stays is not None:
            self._keep(stays)

    def _keep(self, stays: NDArray[np.bool_]) -> None:
        """Delete all others from the sample."""
        self.sample.keep(stays)
        for ladder_rows in self.stage.ladder_rows:
            ladder_rows.keep(stays)
        self._estimates = None

    def _weighted_policy(self, settled: SettledRound) -> Floats:
        """Return the number of applicants times the policy's probability, for the sample."""
        at = self._own_positions(settled.policy.ladder)
        return settled.n_people * settled.policy.probability(at)

    def _p_sum(self, located: dict[int, Positions], rows: NDArray[np.intp]) -> Floats:
        """Return Σ over settled rounds of applicants times the probability of acceptance of rows.

        ``located`` has their positions, by the ids of ladders; others are added.
        """
        total = np.zeros(rows.size)
        for settled in merged_rounds(self.settled):  # a policy is evaluated once
            ladder = settled.policy.ladder
            if id(ladder) not in located:  # dropped by a restart
                located[id(ladder)] = self._located(ladder, rows)
            total += settled.n_people * settled.policy.probability(located[id(ladder)])
        return total

    def _leave_out_old_rounds(self) -> None:
        """Leave old rounds out of estimates: their applicants, and their policies in the weights.

        An applicant of a kept round would otherwise count too little if the old rounds accepted
        more applicants of that kind.
        """
        self.first_round = max(0, self.n_rounds - _KEPT_ROUNDS + 1)
        self.settled = [kept for kept in self.settled if kept.number >= self.first_round]
        first, end = np.searchsorted(self.rows["round"], self.first_round), self._n_settled()
        rows, self.sample, self._estimates = np.arange(first, end), Sample(), None
        p_sum = np.zeros(rows.size)
        for kept in self.settled:
            at = self._located(kept.policy.ladder, rows)
            p_sum += kept.n_people * kept.policy.probability(at)
        self.sample.append(rows, self.rows["bits"][rows], p_sum)

    # Testing.

    def take_in(self, rows: NDArray[np.int64], *, correcting: bool) -> None:
        """Take in new outcomes of rows, or corrected ones, and test what is complete."""
        rounds = self.rows["round"][rows]
        if rows.size:
            self._count(int(rounds.min()), int(rounds.max()))
        late = rows[rounds <= self.settled_round]
        for one in self.stage.ladder_rows if late.size else ():
            one.counts.take_in(self.rows["round"][late], late, self.rows["outcome"][late])
        if correcting and self._tested(self.rows["round"][rows]).any():
            self.restart("correction")
        if not correcting:
            arrived = self.rows["round"][rows[self.rows["outcome"][rows] >= 0]]
            self.delay = max(self.delay, self.n_rounds - int(arrived.min(initial=self.n_rounds)))
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
            waiting = self.waiting[0]
            if waiting.is_begun:  # some ladders have this round, and must not get it twice
                self.restart("correction")
            else:
                waiting.is_begun = True
                self._test(waiting)
            self.waiting.pop(0)
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
        self._settle(waiting)
        outcome, policy, stage = self._outcomes(waiting), waiting.policy, self.stage
        took, accepted = outcome != NOT_TAKEN, waiting.accepted
        allowed = self.rules.noise.recorded_fdr(self.rules.alpha)
        depend = Dependence(waiting.persons, self.rules.per_person, self.rules.shock)
        if policy.certified and waiting.bets:  # a policy of this stage
            stage.monitor = stage.monitor or DriftMonitor(allowed)
            counts = took if waiting.barred is None else took & ~waiting.barred[accepted]
            stage.monitor.add(outcome[counts] != 1, depend[np.flatnonzero(accepted)[counts]])
            self._compare_rounds(waiting, allowed)
        counted, bad = accepted.copy(), np.zeros(accepted.size)
        counted[accepted] = took
        alone = replace(depend, shock=0.0)  # the allowance is in what the others add
        by_lender, is_new = waiting.incumbent, waiting.number >= stage.began
        if by_lender is not None and waiting.mirror is not None and is_new:
            stage.mirror = stage.mirror or MirrorTest(allowed)
            bad[accepted] = outcome == 0  # what is not known counts as good here
            stage.mirror.add(
                by_lender.astype(np.float64),
                waiting.p,
                counted,
                bad,
                ratio_bound=policy.ratio_of_incumbent(),
                dependence=alone,
                others=waiting.mirror,
            )
        bad[accepted] = self.rules.noise.badness(outcome != 1)
        known = np.full(accepted.size, NEVER, np.int8)
        known[accepted] = outcome
        if any(bet.use[0].any() for bet in waiting.bets):
            stage.n_tested += int(counted.sum())
        for bet in waiting.bets:
            if bet.positions is None:  # no bets
                continue
            if policy.is_looked_at:
                bet.ladder.look(
                    bet.positions,
                    waiting.p,
                    counted,
                    known,
                    ratio_bounds=policy.ratio_bounds(bet.ladder),
                    dependence=depend,
                    others=bet.outlook,
                )
            bet.ladder.test(
                bet.positions,
                waiting.p,
                counted,
                bad,
                ratio_bounds=policy.ratio_bounds(bet.ladder),
                use=bet.use,
                dependence=depend,
                others=bet.others,
            )

    def _compare_rounds(self, waiting: WaitingRound, allowed: float) -> None:
        """Compare the last rounds up to one that was certified with those before.

        Rankings learn from outcomes, so only rounds since a ladder was frozen are compared.
        """
        rules, stage, together = self.rules, self.stage, False
        if waiting.persons is not None:  # outcomes that depend on each other cannot be exchanged
            persons = waiting.persons[waiting.accepted]
            together = np.unique(persons).size < persons.size
        if rules.monitor == 0 or rules.shock or together:
            return
        stage.looks += 1
        # The oldest ladder has seen most rounds; without it a ranking frozen after a change would
        # find nothing to compare with.
        ladders = [
            rows
            for i, rows in enumerate(stage.ladder_rows)
            if i == 0 or rows.ladder is waiting.policy.ladder
        ]
        limit, n = rules.change_limit(stage.restarts, stage.looks), len(ladders) * len(WINDOWS)
        matters = _CAREFUL if stage.change is None else _CALM
        found = [
            replace(change, p=min(1.0, n * change.p), alarm=change.alarm and n * change.p <= limit)
            for rows in ladders
            for change in self._changes(rows, waiting, allowed, max(limit, matters) / n)
        ]
        change = min(found, key=lambda change: (not change.alarm, change.p), default=None)
        stage.change = change if change is not None and change.p <= matters else None

    def _changes(
        self, ladder_rows: LadderRows, waiting: WaitingRound, allowed: float, matters: float
    ) -> Iterator[Change]:
        """Yield comparisons by the ranks of a ladder; an alarm is possible if too many are bad.

        A p-value that is larger than ``matters`` may be given as 1.
        """
        for window in WINDOWS:
            n, n_bad, drawn, drawn_bad = ladder_rows.counts.compared(waiting.number, window)
            if 0 < drawn.sum() < n.sum():
                share, usual = float(drawn_bad.sum() / drawn.sum()), waiting.policy.estimated_fdr
                p = compare_with_earlier(n, n_bad, drawn, drawn_bad, matters)
                times = share / usual if usual > 0 else 1.0
                # A careful policy has fewer bad outcomes, which is no reason to forget the change.
                too_many = share > allowed or self.stage.change is not None
                yield Change(waiting.number - window + 1, waiting.number, p, times, alarm=too_many)

    def _has_drifted(self) -> bool:
        """Return whether the outcomes of certified rounds speak against their certificates."""
        stage, limit = self.stage, self.rules.monitor_limit(self.stage.restarts)
        if stage.monitor is None or limit == 0:
            return False
        changed = stage.change is not None and stage.change.alarm
        return changed or stage.monitor.log_wealth() >= -np.log(limit)

    def void(self, t: int) -> None:
        """Begin all tests again if a round is evidence in them, or will be.

        Leaving the round alone out would let outcomes choose which rounds count.
        """
        waiting = [one for one in self.waiting if one.number == t]
        counts = any(one.bets or one.mirror is not None for one in waiting)
        if counts or self._tested(np.array([t])).any():
            self.restart("correction")

    def restart(self, reason: Literal["correction", "drift"]) -> None:
        """Drop all certificates and begin a new stage with the δ that is left.

        After drift, old rounds are left out of everything learned and estimated from now on.
        """
        is_open = self.opened is not None
        self.stage = Stage(self.stage.restarts + 1, self.n_rounds + 1 + is_open, reason)
        if reason == "drift":
            self._leave_out_old_rounds()
        self.generation = replace(self.generation, freezes=0)
        for waiting in self.waiting:  # no bets, as their ladders are gone
            waiting.bets, waiting.mirror = [], None
        if self.opened is not None:
            self.opened.bets = []
        if self.last_batch is not None:
            self.last_batch.positions = []

    # Reporting.

    def _record(
        self,
        t: int,
        policy: ChosenPolicy,
        bets: list[LadderBets],
        *,
        group: Any,
        group_mode: str,
        delta: float,
    ) -> CertifiedRound:
        """Return the record of a round that is about to be opened, without its applicants."""
        ladder, rung = policy.ladder, policy.rung
        certified = ladder.certified()
        coming, coming_rung = self._next_certificate(policy, certified)
        rules, stage, nan = self.rules, self.stage, float("nan")
        number, awaited = self.awaited()
        # Without ids: records are kept after applicants are erased.
        waits = bool(awaited.size) and (self.is_held_up or not self.n_tested)
        notes = [*ladder.ranking.notes, *policy.notes]
        if policy.certified and ladder.from_history:
            notes.append(Note("rests_on_history", {"n_outcomes": ladder.n_tested}))
        if rules.patience is not None and rules.patience <= self.delay:
            facts = {"patience": rules.patience, "delay": self.delay}
            notes.append(Note("patience_short", facts))
        if policy.certified and rules.validity is not None:
            notes.append(Note("lapses", self._lapse(ladder, rules.validity)))
        change = stage.change
        if policy.certified and change is not None and change.p <= _SUSPECT:
            facts = {name: getattr(change, name) for name in ("first", "last", "p", "times")}
            notes.append(Note("population_changed", facts))
        return CertifiedRound(
            round=t,
            group=group,
            status=policy.status,
            n_people=0,
            n_accepted=0,
            ladder=self.stage.lapsed + self.ladders.index(ladder),
            share=policy.sure_share,
            log_wealth=float(ladder.wealth.best[rung]),
            threshold=ladder.threshold(rung),
            certified_from=float(ladder.grid[certified][0]) if certified.any() else nan,
            certified_to=float(ladder.grid[certified][-1]) if certified.any() else nan,
            next_share=float(coming.grid[coming_rung]),
            next_log_wealth=float(coming.wealth.best[coming_rung]),
            next_threshold=coming.threshold(coming_rung),
            more_outcomes=coming.more_outcomes(coming_rung),
            delta_spent=self.delta_spent,
            n_outcomes=self.n_known,
            estimated_fdr=policy.estimated_fdr,
            alpha=rules.alpha,
            delta=delta,
            notes=tuple(notes),
            group_mode=group_mode,
            n_tested=self.n_tested,
            next_n_tested=coming.n_tested,
            tests_began=stage.began,
            restart_reason=stage.reason,
            awaited_round=number if waits else 0,
            n_awaited=int(awaited.size) if waits else 0,
            curve=self._curve(bets),
            kind=policy.kind,
            ramp=policy.ramp,
            shock=rules.shock,
        )

    def _curve(self, bets: list[LadderBets]) -> tuple[CurvePoint, ...]:
        """Return what the rule would earn at several bounds; empty while too little is known."""
        estimates, rules = self.estimates, self.rules
        if estimates.settled.size < ENOUGH:
            return ()
        fdr = np.concatenate([estimates.fdr(rows) for rows in self.stage.ladder_rows])
        worth = np.concatenate(
            [estimates.worth(rows, rules.utility) for rows in self.stage.ladder_rows]
        )
        shares = np.concatenate([bet.ladder.grid for bet in bets])
        # A rung that only a few explored applicants speak for can seem to earn more than anybody.
        enough = np.concatenate([estimates.speak_for(rows) for rows in self.stage.ladder_rows])
        enough = enough >= ENOUGH
        points, nan = [], float("nan")
        for k, bound in enumerate((rules.alpha, *rules.other_bounds)):
            allowed = np.concatenate(
                [bet.ladder.tests[k].certified(bet.ladder.level) for bet in bets]
            )
            certified = bool(allowed.any())
            if not certified:  # rungs that look allowed, and that outcomes say something about
                seen = np.concatenate([(bet.use[0] | bet.use[k]).any(axis=0) for bet in bets])
                allowed = seen & (fdr <= bound)
            if not (allowed & enough).any():
                share, earned = (shares[allowed].max(), nan) if certified else (0.0, 0.0)
                points.append(CurvePoint(bound, float(share), earned, nan, certified))
                continue
            allowed &= enough
            best = int(np.argmax(np.where(allowed, worth, -np.inf)))
            points.append(
                CurvePoint(
                    bound, float(shares[best]), float(worth[best]), float(fdr[best]), certified
                )
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


def _unreachable(
    strategy: Strategy, X: Any, score: NDArray[np.floating], beyond: NDArray[np.bool_]
) -> NDArray[np.int64] | None:
    """Return how many of those not accepted for sure limits bar, by reason; None without limits."""
    if not isinstance(strategy, Limited) or not beyond.any():
        return None
    return count_reasons(strategy.barred(X[beyond], score[beyond]))
