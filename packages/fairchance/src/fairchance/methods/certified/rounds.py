"""Rounds of the certified method: their policies, their bets, and what is kept of applicants."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
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
    persons: NDArray[np.intp] | None = None


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
    """A decided round before it is logged.

    Attributes
    ----------
    waiting, record
        The round and its record.
    batch
        Its applicants, for the next choice of bets; None if there are none.
    n_certain
        How many of them were accepted with probability 1.
    """

    waiting: WaitingRound
    record: CertifiedRound
    batch: LastBatch | None
    n_certain: int


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

    def __getitem__(self, some: NDArray[np.bool_]) -> LastBatch:
        return LastBatch(
            self.X[some],
            self.group[some],
            self.bits[some],
            None if self.incumbent is None else self.incumbent[some],
            [None if at is None else at[some] for at in self.positions],
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
) -> LadderBets:
    """Return bets with the positions of those that are kept, and what the others add.

    ``at`` and ``p`` are of all applicants of the round, ``dependence`` of the others.
    """
    bounds, rest, outlook = policy.ratio_bounds(bet.ladder), (at[~kept], p[~kept], p.size), None
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
