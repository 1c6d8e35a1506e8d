"""Rounds of the certified method: their policies, their bets, and what is kept of applicants."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.core.decisions import CertifiedRound, Note
from fairchance.core.saved import saved
from fairchance.methods.certified.evidence import MIRROR_CAP, Dependence
from fairchance.methods.certified.ladder import Ladder, Positions
from fairchance.methods.certified.ranking import Groups
from fairchance.people.ids import keyed_bits, round_key

__all__ = [
    "ChosenPolicy",
    "LadderBets",
    "LastBatch",
    "OpenRound",
    "PreparedRound",
    "Reference",
    "SettledRound",
    "WaitingRound",
    "merged_rounds",
    "sampled",
    "summed",
]

Floats = NDArray[np.float64]

_SAMPLE = 20_000  # applicants of the last batch that choose the bets of the next round
_FEW = 500  # applicants of the last batch, below which those before them choose, too
_GIVEN = ("incumbent", "barred", "persons")  # columns of applicants that a round may lack


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
    scale
        The part of its own acceptances that a pilot makes, below 1 if no policy at α is in sight.
        All that the lender accepts count as the lender's.
    pilot_share
        The share of the pilot once this policy is deployed; None if it is not a pilot.
    ramp
        r: what is done is a coin with probability (1 − r)·d + r·π, where d is the lender's own
        decision.
    notes
        What the choice has to say.
    """

    ladder: Ladder
    rung: int
    certified: bool
    estimated_fdr: float
    pilot_share: float | None = None
    ramp: float = 1.0
    scale: float = 1.0
    notes: tuple[Note, ...] = ()

    @property
    def kind(self) -> str:
        """``"own"``, ``"union"``, or ``"incumbent"`` for the lender's own policy."""
        if not self.ladder.union:
            return "own"
        return "union" if self.rung else "incumbent"

    @property
    def status(self) -> str:
        """``"shadow"``, ``"certified"``, ``"incumbent"`` or ``"pilot"``."""
        if self.ramp == 0:
            return "shadow"
        if self.certified:
            return "certified"
        return "incumbent" if self.kind == "incumbent" else "pilot"

    @property
    def is_looked_at(self) -> bool:
        """Whether the outlook of a ladder takes in its rounds."""
        return not self.certified and self.ramp > 0

    @property
    def uses_incumbent(self) -> bool:
        """Whether what is done depends on the lender's own decision."""
        return self.ladder.union or self.ramp < 1

    def policy(self, at: Positions) -> Floats:
        """Return π of applicants at these positions on the ladder."""
        return self.ladder.policy(at, self.rung, self.scale)

    def probability(self, at: Positions) -> Floats:
        """Return p = (1 − r)·d + r·π for applicants at these positions on the ladder."""
        pi = self.policy(at)
        if self.ramp == 1:
            return pi
        return (1 - self.ramp) * at.accepted_by_lender + self.ramp * pi

    @property
    def sure_share(self) -> float:
        """The best share of applicants that it accepts by their score."""
        return float(self.ladder.grid[self.rung]) if self.scale == 1 else 0.0

    def sure(self, at: Positions) -> NDArray[np.bool_]:
        """Return which applicants it accepts by their score or by the lender's decision."""
        inside = at.rank <= self.sure_share
        if not self.sure_share:
            inside = np.zeros(at.rank.size, np.bool_)  # a rank may be 0
        return np.asarray(inside | at.accepted_by_lender if self.uses_incumbent else inside)

    def ratio_of_incumbent(self) -> float:
        """Return a bound on w + rem of the lender's own policy, for ``MirrorTest``."""
        if self.ladder.union or self.ramp == 0:
            return 1.0  # accepted for sure
        least = 1 - self.ramp
        return 1 / least if least * MIRROR_CAP >= 1 else MIRROR_CAP + 1

    def ratio_bounds(self, ladder: Ladder) -> Floats:
        """Return a bound on w + rem per cap and rung of a ladder, if this policy is deployed."""
        if ladder is self.ladder and self.scale > 0:
            bounds = ladder.ratio_bounds(self.rung, self.ramp * self.scale)
            if self.scale < 1:  # whom limits bar and the lender accepts has p = 1 − r
                bounds = np.maximum(bounds, ladder.ratio_bounds(self.rung, self.ramp))
            return bounds
        contained = self.kind == "union" and ladder.ranking is self.ladder.ranking
        if contained and not ladder.union and ladder.tau <= self.ladder.tau:
            # The union's edge is at least as soft, so that p ≥ r·π for the same rung.
            reach = self.ramp * self.scale
            return ladder.ratio_bounds(self.rung - 1, reach, self.ladder.tau)
        return ladder.ratio_bounds(None, self.ramp)


@saved
@dataclass(eq=False)
class LadderBets:
    """The bets of one ladder on a round, chosen before it.

    Attributes
    ----------
    ladder, use
        The ladder, and which of its rungs bet, by bound (α first) and cap.
    positions
        Positions of the applicants that the round keeps; None before it is closed, or if there are
        no bets.
    others, outlook
        What the other applicants add to the evidence and to the outlook, ``growth_of_rejected`` and
        ``outlook_of_rejected`` of the ladder.
    """

    ladder: Ladder
    use: NDArray[np.bool_]
    positions: Positions | None = None
    others: Floats | None = None
    outlook: tuple[Floats, Floats] | None = None

    def join(self, other: LadderBets) -> LadderBets:
        """Return the bets on these applicants and on others of the round."""
        if self.positions is None or other.positions is None:
            return self
        assert self.others is not None
        assert other.others is not None
        outlook = None
        if self.outlook is not None and other.outlook is not None:
            outlook = self.outlook[0] + other.outlook[0], self.outlook[1] + other.outlook[1]
        positions, others = self.positions.join(other.positions), self.others + other.others
        return replace(self, positions=positions, others=others, outlook=outlook)


@saved
@dataclass(eq=False)
class WaitingRound:
    """A round that is not in the tests yet, with everything that was fixed before it.

    A rejected applicant adds to each rung what no outcome changes, so these are kept as sums. The
    applicants that are kept one by one are the accepted, and the rejected applications of persons
    who have an accepted one.

    Attributes
    ----------
    number, n_people
        Number of the round, and of its applicants.
    policy
        The policy that decided the round.
    bets
        The bets of each ladder; empty if the ladders were dropped since.
    mirror
        What applicants who are not kept add to the test of the lender's own policy; None if the
        lender does not decide, or if the round is no evidence.
    p, accepted
        Of those that are kept, logged probabilities and which were accepted.
    ids, rows
        Id of each accepted applicant, and row in the store; empty and −1 for forgotten ones.
    incumbent, barred
        Of those that are kept, the lender's own decisions, and whom no policy accepts: applicants
        whom the lender bars, and further applications of a person; None if there are none.
    persons
        Numbers of their persons; None if each application is another person's.
    is_begun
        Whether its test has begun; it is found here later only if that was interrupted.
    """

    number: int
    n_people: int
    policy: ChosenPolicy
    bets: list[LadderBets]
    mirror: Floats | None
    p: Floats
    accepted: NDArray[np.bool_]
    ids: NDArray[Any]
    rows: NDArray[np.int64]
    incumbent: NDArray[np.bool_] | None = None
    barred: NDArray[np.bool_] | None = None
    persons: NDArray[Any] | None = None
    is_begun: bool = False

    def join(self, other: WaitingRound) -> WaitingRound:
        """Return the round with these applicants and others, who have no rows in the store yet."""

        def joined(name: str) -> Any:
            one, two = getattr(self, name), getattr(other, name)
            if one is None and two is None:
                return None
            one = np.zeros(self.p.size, np.bool_) if one is None else one  # nobody was barred
            two = np.zeros(other.p.size, np.bool_) if two is None else two
            return np.append(one, two)

        return replace(
            self,
            n_people=self.n_people + other.n_people,
            bets=[one.join(two) for one, two in zip(self.bets, other.bets, strict=True)],
            mirror=None
            if self.mirror is None or other.mirror is None
            else self.mirror + other.mirror,
            p=joined("p"),
            accepted=joined("accepted"),
            ids=joined("ids"),
            **{name: joined(name) for name in _GIVEN},
        )

    def in_order(self, bits: NDArray[np.uint64]) -> WaitingRound:
        """Return the round with its applicants in the order of the bits of their ids."""
        order = np.argsort(bits, kind="stable")
        given = {name: getattr(self, name) for name in ("p", "accepted", *_GIVEN)}
        return replace(
            self,
            bets=[
                bet if bet.positions is None else replace(bet, positions=bet.positions[order])
                for bet in self.bets
            ],
            ids=self.ids[np.argsort(bits[self.accepted], kind="stable")],
            **{name: values[order] for name, values in given.items() if values is not None},
        )


@saved
@dataclass(eq=False)
class OpenRound:
    """A round that applicants are decided in, with everything that was fixed before it.

    Attributes
    ----------
    policy
        The policy that decides.
    bets
        The bets of each ladder, without positions; empty if the ladders were dropped since.
    record
        The record of the round, without what is known of its applicants at the end.
    """

    policy: ChosenPolicy
    bets: list[LadderBets]
    record: CertifiedRound


@dataclass(frozen=True, eq=False)
class PreparedRound:
    """Some applicants of a decided round, or all of them, before it is logged.

    Attributes
    ----------
    waiting, record
        The round and its record, as if these were all of its applicants.
    bits
        Bits of the ids of those that ``waiting`` keeps one by one.
    batch
        Applicants for the next choice of bets; None if there are none.
    n_certain, n_by_lender
        How many were accepted with probability 1, and by the lender.
    why
        Of those not accepted for sure, how many limits bar from exploration, by reason: the first
        number is that of the others. None without limits.
    """

    waiting: WaitingRound
    record: CertifiedRound
    bits: NDArray[np.uint64]
    batch: LastBatch | None
    n_certain: int
    n_by_lender: int
    why: NDArray[np.int64] | None

    def join(self, other: PreparedRound) -> PreparedRound:
        """Return these applicants together with others of the round."""
        one, two = self.record, other.record
        return PreparedRound(
            self.waiting.join(other.waiting),
            replace(
                one,
                n_people=one.n_people + two.n_people,
                n_accepted=one.n_accepted + two.n_accepted,
                n_incumbent=_sum(one.n_incumbent, two.n_incumbent),
                n_barred=one.n_barred + two.n_barred,
            ),
            np.append(self.bits, other.bits),
            self.batch if other.batch is None else other.batch.join(self.batch),
            self.n_certain + other.n_certain,
            self.n_by_lender + other.n_by_lender,
            _sum(self.why, other.why),
        )


def _sum(one: Any, two: Any) -> Any:
    """Return the sum of what is there."""
    return two if one is None else one if two is None else one + two


@saved
@dataclass(frozen=True, eq=False)
class SettledRound:
    """A round that is in the tests, as far as the weights of estimates need it."""

    number: int
    policy: ChosenPolicy
    n_people: int

    @property
    def share(self) -> float:
        """The share of applicants that the round accepted for sure by their scores."""
        return float(self.policy.ladder.grid[self.policy.rung])


@saved
@dataclass(eq=False)
class LastBatch:
    """Applicants of the last round, or some of them, used to choose the bets of the next round.

    Attributes
    ----------
    X, group, bits, incumbent
        Features, groups, bits of ids, and the lender's own decisions, None if there are none.
    positions
        Their positions on the ladders of the stage, as far as they are known.
    """

    X: Any
    group: Groups
    bits: NDArray[np.uint64]
    incumbent: NDArray[np.bool_] | None
    positions: list[Positions | None] = field(default_factory=list)

    def __getitem__(self, some: NDArray[Any] | slice) -> LastBatch:
        return LastBatch(
            self.X[some],
            self.group[some],
            self.bits[some],
            None if self.incumbent is None else self.incumbent[some],
            [None if at is None else at[some] for at in self.positions],
        )

    def join(self, other: LastBatch | None) -> LastBatch:
        """Return a sample of these applicants and others of their round."""
        if other is None:
            return self
        together = self._with(other)
        some = sampled(together.bits)
        return together[some[np.argsort(together.bits[some], kind="stable")]]

    def filled(self, before: LastBatch | None) -> LastBatch:
        """Return these applicants and, if they are few, the newest of those before them.

        A round of a few applicants, perhaps all of them accepted by the lender, says little about
        the next one.
        """
        lacking = _FEW - self.bits.size
        if before is None or lacking <= 0 or (self.incumbent is None) != (before.incumbent is None):
            return self
        return before[-lacking:]._with(self)

    def _with(self, other: LastBatch) -> LastBatch:
        """Return these applicants, then others; positions are known if they are of both."""
        positions = [
            None if one is None or two is None else one.join(two)
            for one, two in zip_longest(self.positions, other.positions)
        ]
        return LastBatch(
            np.concatenate([self.X, other.X]),
            np.append(self.group, other.group),
            np.append(self.bits, other.bits),
            None
            if self.incumbent is None or other.incumbent is None
            else np.append(self.incumbent, other.incumbent),
            positions,
        )

    def locate(self, ladders: list[Ladder], some: list[Ladder]) -> dict[Ladder, Positions]:
        """Return the positions on some of the ladders of the stage."""
        known = [*self.positions, *[None] * (len(ladders) - len(self.positions))]
        by_ranking = {
            id(ladder.ranking): at for ladder, at in zip(ladders, known, strict=True) if at
        }
        for ladder in some:
            if id(ladder.ranking) not in by_ranking:
                at = ladder.locate(self.X, self.group).beside(self.incumbent, None)
                by_ranking[id(ladder.ranking)] = at
        self.positions = [by_ranking.get(id(ladder.ranking)) for ladder in ladders]
        return {ladder: by_ranking[id(ladder.ranking)] for ladder in some}


@saved
@dataclass(frozen=True, eq=False)
class Reference:
    """Applicants among whom a new ranking ranks others.

    Attributes
    ----------
    X, group, bits
        Features, groups and bits of ids.
    incumbent
        The lender's own decisions; None if the lender does not decide on the coming round.
    """

    X: Any
    group: Groups
    bits: NDArray[np.uint64]
    incumbent: NDArray[np.bool_] | None = None

    def __getitem__(self, rows: Any) -> Reference:
        incumbent = None if self.incumbent is None else self.incumbent[rows]
        return Reference(self.X[rows], self.group[rows], self.bits[rows], incumbent)

    def newest(self, before: Reference | None, most: int) -> Reference:
        """Return those with the largest bits of these applicants and others, in their order."""
        if before is None:
            return self[-most:]
        bits = np.append(before.bits, self.bits)
        incumbent = None
        if before.incumbent is not None and self.incumbent is not None:
            incumbent = np.append(before.incumbent, self.incumbent)
        together = Reference(
            np.concatenate([before.X, self.X]), np.append(before.group, self.group), bits, incumbent
        )
        return together[np.argsort(bits, kind="stable")[-most:]]

    def as_batch(self) -> LastBatch:
        """Return a sample as the batch before the first round."""
        some = sampled(self.bits)
        decided = None if self.incumbent is None else self.incumbent[some]
        return LastBatch(self.X[some], self.group[some], self.bits[some], decided)


def summed(
    bet: LadderBets,
    policy: ChosenPolicy,
    at: Positions,
    p: Floats,
    kept: NDArray[np.bool_],
    dependence: Dependence,
    n_people: int = 0,
) -> LadderBets:
    """Return bets with the positions of those that are kept, and what the others add.

    ``at`` and ``p`` are of some applicants of the round, ``dependence`` of the others among them.
    With ``n_people`` it is a round of so many, with the allowance for a shock that they may share.
    """
    bounds, rest, outlook = policy.ratio_bounds(bet.ladder), (at[~kept], p[~kept], n_people), None
    others = bet.ladder.growth_of_rejected(
        *rest, ratio_bounds=bounds, use=bet.use, dependence=dependence
    )
    if policy.is_looked_at:
        outlook = bet.ladder.outlook_of_rejected(*rest, ratio_bounds=bounds, dependence=dependence)
    return replace(bet, positions=at[kept], others=others, outlook=outlook)


def merged_rounds(settled: list[SettledRound], last: int | None = None) -> list[SettledRound]:
    """Return rounds with those up to ``last`` that have the same policy as one, else all such."""
    merged: dict[tuple[Any, ...], SettledRound] = {}
    for one in settled:
        policy = one.policy
        key: tuple[Any, ...] = (id(policy.ladder), policy.rung, policy.ramp, policy.scale)
        if last is not None and one.number > last:
            key = (one.number,)
        if key in merged:
            before = merged[key]
            explored = max((before.policy, policy), key=lambda each: each.pilot_share or 0.0)
            merged[key] = SettledRound(one.number, explored, before.n_people + one.n_people)
        else:
            merged[key] = one
    return list(merged.values())


def sampled(bits: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Return a random part of a large batch, the same in any order of rows; else all of it."""
    if bits.size <= _SAMPLE:
        return np.arange(bits.size)
    keyed = keyed_bits(bits, round_key(0, 0))
    return np.flatnonzero(keyed <= np.partition(keyed, _SAMPLE - 1)[_SAMPLE - 1])
