"""Bounds on a rate or a mean of a policy that hold at all times at once.

Let θ be what is asked for: the θ at which the mean of Z(θ) = θ·U − V is 0, where U ≥ 0 and V are
computed from one decision. For the false discovery rate of a policy π, with the notation of
``methods.certified.evidence`` and T for an applicant who takes the loan if accepted,

    w = min(π/p, W),  rem = π − w·p,  U = A·w·T + rem,  V = A·w·T·1{bad} + rem,

which counts what the log does not cover as taken and bad. Given all but the coin, E[Z(b)] =
(π − rem)·T·(b − 1{bad}) − rem·(1 − b) ≤ π·T·(b − 1{bad}), as T·(b − 1{bad}) ≥ −(1 − b). Suppose
the true rate E[πT·1{bad}]/E[πT] is b or larger. Then E[Z(b)] ≤ 0, so a gambler who bets a share λ
of their wealth on every Z(b) cannot expect to gain, and by Ville's inequality their wealth
Π(1 + λZ(b)) ever reaches 1/error with probability at most ``error``. A bet is a fixed part of the
largest one that cannot ruin the gambler, so gain and loss grow with b, and if b is refuted every
larger value is: the upper bound is the smallest b that is refuted. The lower bound is the mirror
image, with good and bad exchanged, so that what is not covered counts as good. This is the
certificate's test, inverted: the certificate asks about one b, the bound α.

**Which bets.** The best λ and the best W depend on what is not known, so the capital is divided
among gamblers with different ones; their mean wealth is a supermartingale as well.

**Policies that change.** A rule on a recorded score is another policy in every round in which the
model is another. Its θ is the mean over the decisions, weighted by U. Since 1 + x ≤ exp(x),

    Π(1 + λZ_i(b)) / exp(λ·Σ E[Z_i(b) | past])

is a supermartingale whatever E[Z_i] is, and the divisor is at most 1 as long as the θ so far is at
least b. As θ moves, b is no longer a single one: the error is divided among ``_GRID`` values of b,
present wealth counts in place of the largest so far, and the bound is a value of that grid.

**Draws of fixed size.** In these, acceptances depend on each other, and a bet on one applicant
after the other would not be fair. Two kinds of gamblers share the capital then. One bets once per
round, on the round's mean of Z. The other bets person by person and counts every candidate of a
draw as not covered (w = 0), which leaves decisions that involved no draw. Both are fair because
each applicant is accepted with probability p given the batch, and decisions without a draw are
independent given it. (Which kinds there are should be known before the first round, and is decided
by whether the log has a draw; a log with late first draws has changed its bets once.)

If the policy changes as well, θ counts rounds by their size, and so must the bets: the first kind
bets on ΣZ/N, where N is the size of the first round times 2^k. A gambler with too small an N would
have stopped in the first round with more than N applicants, so the k that fits the largest round
is used, with the 2^−(k+1) of the capital that belongs to it.

**Erased applicants.** What the policy does with them, or their group, is not known any more, and
who is erased may depend on the outcome. So each Z(b) is replaced by a number that is never larger,
whatever the probability m ≤ π with which the applicant belongs to the accepted: U = V = A·w·1{bad}
+ rem. For m = π, Z = −(1 − b)·(A·w·1{bad} + rem) + b·A·w·1{good} is not smaller, and for m < π it
is nearer to 0 or positive. Such an applicant counts only against a bound, and never for it.

**Shocks.** If all applicants of a round share a shock S of the bad share, mean zero, sub-Gaussian
with scale σ and independent over rounds, no mean of Z(b) moves by more than |S| per applicant, so
that E[Π(1 + λZ) | S] ≤ exp(λ·n·c·S) with |c| ≤ 1 in a round with n of them. The factor of a round
is divided by exp(½·(λ·n·σ)²), and θ is the mean over shocks. The bets are the same for all b then:
gain grows with b, and the divisor does not.

**Outcomes that are not known** count as the worst case. A pending loan may still not be taken, and
that is no worse: T = 0 gives 0, which is between what good and bad ones give.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fairchance.core.utility import Utility

__all__ = ["CAPS", "Bets", "Covered", "cover", "fdr_bounds", "mean_bounds", "profit_bounds"]
__all__ += ["difference_bounds", "round_starts", "upper_bound"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Rows = NDArray[np.intp]

CAPS = (1.0, 4.0, 16.0)  # W
_SHARES: Floats = 0.95 * 0.5 ** np.arange(10.0)  # of what a gambler can lose at most with one bet
_GRID = 256  # values of b among which the error is divided if a policy changes
_FINE = 4096  # the same for the difference of two policies, which is small in its range
_STEPS = 2**18  # of the range; a bound is an end of one of them
_LAST = 2.0**-20
_FEW = 0.5  # distinct values, as a share of rows, from which on counting them saves time
_NUMBERS = 100_000  # that are computed at once, and fit into a fast cache
_FACTORS = 16  # that are multiplied before a logarithm, far from any overflow


@dataclass(frozen=True, eq=False)
class Covered:
    """The part of a policy that the log covers, with one W.

    Attributes
    ----------
    weight
        A·w·T of each applicant.
    rem
        What is not covered.
    cap
        W; no A·w + rem is larger than W + 1.
    per_round
        Whether to bet once per round.
    """

    weight: Floats
    rem: Floats
    cap: float
    per_round: bool = False


def cover(pi: Floats, p: Floats, accepted: Bools, drawn: Bools) -> list[Covered]:
    """Return what a log covers of a policy, for each kind of gambler.

    ``drawn`` are the candidates of a draw of fixed size; ``accepted`` are A·T, loans taken.

    Examples
    --------
    >>> covered = cover(np.array([1.0]), np.array([0.1]), np.array([True]), np.array([False]))
    >>> [(float(part.weight[0]), round(float(part.rem[0]), 3)) for part in covered]
    [(1.0, 0.9), (4.0, 0.6), (10.0, 0.0)]
    """
    covered = []
    for cap in CAPS:
        w = np.minimum(pi, cap * p)
        rem = pi - w
        weight = np.zeros_like(pi)
        np.divide(w, p, out=weight, where=accepted)
        if not drawn.any():
            covered.append(Covered(weight, rem, cap))
            continue
        covered.append(Covered(weight, rem, cap, per_round=True))
        covered.append(Covered(np.where(drawn, 0.0, weight), np.where(drawn, pi, rem), cap))
    return covered


@dataclass(frozen=True, eq=False)
class Bets:
    """Everything that one kind of gambler bets on: U and V, round by round.

    Attributes
    ----------
    u, v
        The values.
    count
        How often each pair of values occurs; None if once.
    starts
        The position of each round's first pair, and the end.
    worst
        Two numbers a and c: V − b·U is at most a − c·b, whatever the applicant. V·c ≤ U·a.
    capital
        What the gamblers of this kind may still use of their capital.
    spread
        σ times the number of applicants, for each round.
    """

    u: Floats
    v: Floats
    count: Floats | None
    starts: Rows
    worst: tuple[float, float]
    capital: float = 1.0
    spread: Floats | float = 0.0

    @staticmethod
    def of(
        u: Floats,
        v: Floats,
        rounds: Rows,
        worst: tuple[float, float],
        *,
        per_round: bool = False,
        changes: bool = False,
        shock: float = 0.0,
    ) -> Bets:
        """Collect the bets on applicants, in the order of their rounds.

        ``rounds`` has the position of each round's first applicant, and the end; no round is empty.
        With ``per_round``, bet once per round, on the means of U and V, or on their sums over N;
        ``changes`` is whether the policy changed between rounds, and ``shock`` is σ.
        """
        spread = shock * np.diff(rounds)
        if per_round:
            sizes, capital = np.diff(rounds).astype(np.float64), 1.0
            if changes:
                k = math.ceil(math.log2(sizes.max() / sizes[0]))
                sizes, capital = np.full_like(sizes, sizes[0] * 2.0**k), 0.5 ** (k + 1)
            means = [np.add.reduceat(x, rounds[:-1]) / sizes for x in (u, v)]
            ends = np.arange(rounds.size)
            return Bets(means[0], means[1], None, ends, worst, capital, spread / sizes)
        matters = (u != 0) | (v != 0)
        if not matters.all():
            rounds = np.append(0, np.cumsum(matters))[rounds]
            u, v = u[matters], v[matters]
        pairs, counts, starts = [], [], [0]
        for begin, end in itertools.pairwise(rounds):
            found, n = np.unique(u[begin:end] + 1j * v[begin:end], return_counts=True)
            pairs.append(found)
            counts.append(n)
            starts.append(starts[-1] + found.size)
        if starts[-1] > _FEW * u.size:
            return Bets(u, v, None, rounds, worst, spread=spread)
        pair = np.concatenate(pairs) if pairs else np.empty(0, complex)
        count = np.concatenate(counts).astype(np.float64) if counts else np.empty(0)
        values, ends = (pair.real.copy(), pair.imag.copy()), np.array(starts)
        return Bets(*values, count, ends, worst, spread=spread)

    @cached_property
    def _blocks(self) -> tuple[Rows, Rows, Rows]:
        """Rounds with pairs; starts of blocks that a logarithm is taken of; their first blocks."""
        full = np.flatnonzero(np.diff(self.starts))
        ends = self.starts[full + 1]
        step = _FACTORS if self.count is None else 1
        blocks = [np.arange(a, b, step) for a, b in zip(self.starts[full], ends, strict=True)]
        first = np.cumsum([0, *map(len, blocks)])[:-1]
        return full, np.concatenate(blocks) if blocks else full, first

    def growth(self, b: float) -> Floats:
        """Return the log growth of each gambler in each round, shape (gamblers, rounds)."""
        z = b * self.u - self.v
        most, slope = self.worst
        grown = np.zeros((_SHARES.size, self.starts.size - 1))
        full, blocks, first = self._blocks
        if not full.size:
            return grown
        # An allowance for shocks grows with the bet, so the bet must not grow with b.
        bets = (_SHARES / (most if np.any(self.spread) else most - slope * b))[:, None]
        at_once = max(1, _NUMBERS // z.size)
        for some in range(0, bets.size, at_once):
            factors = bets[some : some + at_once] * z
            factors += 1.0
            if self.count is None:  # logarithms take ten times as long as products
                logs = np.log(np.multiply.reduceat(factors, blocks, axis=1))
            else:
                logs = np.log(factors) * self.count
            grown[some : some + at_once, full] = np.add.reduceat(logs, first, axis=1)
        return np.asarray(grown - 0.5 * (bets * self.spread) ** 2)


def upper_bound(
    bets: Sequence[Bets],
    error: float,
    *,
    changes: bool = False,
    grid: int = _GRID,
) -> float:
    """Return an upper bound of θ in [0, 1], ever wrong with probability at most ``error``.

    ``changes`` is whether the policy may change; then the bound is one of ``grid`` values.

    Examples
    --------
    >>> bad = np.repeat([1.0, 0.0], [40, 360])  # 10 % of 400
    >>> bets = Bets.of(np.ones(400), bad, np.array([0, 400]), worst=(1.0, 1.0))
    >>> round(upper_bound([bets], 0.025), 3)
    0.16
    """
    needed = math.log((grid if changes else 1) / error)
    last = grid - 1 if changes else _STEPS

    def refuted(k: int) -> bool:
        b = min(k / last, 1 - _LAST)  # at the end of the range a bet has no limit
        return _log_wealth(bets, b, largest=not changes) >= needed

    above, below = last, 0
    if not bets or not refuted(above):
        return 1.0
    while above - below > 1:
        middle = (above + below) // 2
        if refuted(middle):
            above = middle
        else:
            below = middle
    return above / last


def _log_wealth(bets: Iterable[Bets], b: float, *, largest: bool) -> float:
    """Return the log of the gamblers' mean wealth: the largest after any round, or the last."""
    kinds = [math.log(part.capital) + np.cumsum(part.growth(b), axis=1) for part in bets]
    log = np.concatenate(kinds)
    mean = np.logaddexp.reduce(log, axis=0) - math.log(log.shape[0])
    return float(mean.max(initial=0.0) if largest else (mean[-1] if mean.size else 0.0))


def round_starts(rounds: Rows) -> Rows:
    """Return the position of the first applicant of each round, and the end; they are in order."""
    return np.append(np.flatnonzero(np.diff(rounds, prepend=rounds[0] - 1)), rounds.size)


def fdr_bounds(
    covered: Sequence[Covered],
    worst: Floats,
    best: Floats,
    rounds: Rows,
    error: float,
    changes: bool,
    unsure: Bools | None = None,
    shock: float = 0.0,
) -> tuple[float, float]:
    """Return bounds of the false discovery rate; ``worst`` and ``best`` say who counts as bad.

    ``unsure`` are erased applicants, who may or may not be among the accepted.
    """

    def bound(counts: Floats) -> float:
        bets = [
            Bets.of(
                _only_against(part.weight * counts, part.weight, unsure) + part.rem,
                part.weight * counts + part.rem,
                rounds,
                (part.cap + 1, part.cap + 1),
                per_round=part.per_round,
                changes=changes,
                shock=shock,
            )
            for part in covered
        ]
        return upper_bound(bets, error / 2, changes=changes)

    return 1.0 - bound(1.0 - best), bound(worst)


def _only_against(v: Floats, u: Floats, unsure: Bools | None) -> Floats:
    """Return U, which is V for applicants who may not count at all."""
    return u if unsure is None else np.where(unsure, v, u)


def mean_bounds(
    least: Floats,
    most: Floats,
    rounds: Rows,
    error: float,
    changes: bool,
    unsure: Bools | None = None,
) -> tuple[float, float]:
    """Return bounds of the mean of values from 0 to 1, of which the least and most are known."""

    def bound(v: Floats) -> float:
        bets = Bets.of(_only_against(v, np.ones_like(v), unsure), v, rounds, (1.0, 1.0))
        return upper_bound([bets], error / 2, changes=changes)

    return 1.0 - bound(1.0 - least), bound(most)


def profit_bounds(
    covered: Sequence[Covered],
    worst: Floats,
    best: Floats,
    rounds: Rows,
    error: float,
    changes: bool,
    utility: Utility,
    unsure: Bools | None = None,
    shock: float = 0.0,
) -> tuple[float, float]:
    """Return bounds of what accepting earns over rejecting, per applicant."""
    good, bad = utility.gain_good, utility.gain_bad
    if good == bad == 0:
        return 0.0, 0.0

    def bound(good: float, bad: float, counts: Floats) -> float:
        """Return an upper bound if the good and the bad earn these, and ``counts`` are bad."""
        least, most = min(0.0, good, bad), max(0.0, good, bad)
        span = most - least
        bets = []
        for part in covered:
            # What is not covered earns the most that it can, as do erased applicants.
            each = good + (bad - good) * counts
            if unsure is not None:
                each = np.where(unsure, np.maximum(0.0, each), each)
            earned = part.weight * each + part.rem * most
            v = (earned - least) / span
            largest = ((part.cap + 1) * most - least) / span
            bets.append(
                Bets.of(
                    _only_against(np.minimum(1.0, v), np.ones_like(v), unsure),
                    v,
                    rounds,
                    (largest, 1.0),
                    per_round=part.per_round,
                    changes=changes,
                    shock=shock,
                )
            )
        return least + span * upper_bound(bets, error / 2, changes=changes)

    favourable, unfavourable = (best, worst) if good >= bad else (worst, best)
    return -bound(-good, -bad, unfavourable), bound(good, bad, favourable)


def difference_bounds(
    ours: Sequence[Covered],
    theirs: Sequence[Covered],
    worst: Floats,
    best: Floats,
    rounds: Rows,
    error: float,
    utility: Utility,
    shock: float = 0.0,
) -> tuple[float, float]:
    """Return bounds of what one policy earns over another, per applicant, on the same decisions.

    With values v from ``least`` ≤ 0 to ``most`` ≥ 0, V = A·T·v·(w − w') + rem·most − rem'·least has
    a mean of at least E[(π − π')·T·v]. Where both policies agree it is 0, without any noise. The
    policies may change between rounds.
    """
    gains, changes = (utility.gain_good, utility.gain_bad), rounds.size > 2
    span = max(0.0, *gains) - min(0.0, *gains)
    if not span:
        return 0.0, 0.0

    def bound(good: float, bad: float) -> float:
        least, most = min(0.0, good, bad), max(0.0, good, bad)
        values = [good + (bad - good) * counts for counts in (worst, best)]
        bets = []
        for one, other in zip(ours, theirs, strict=True):
            weight = one.weight - other.weight
            earned = np.maximum(weight * values[0], weight * values[1])
            v = (earned + one.rem * most - other.rem * least + span) / (2 * span)
            largest = one.cap / 2 + 1  # |w − w'| ≤ W, and the rest is at most the span
            how = {"per_round": one.per_round, "changes": changes}
            bets.append(Bets.of(np.ones_like(v), v, rounds, (largest, 1.0), shock=shock, **how))
        return span * (2 * upper_bound(bets, error / 2, changes=changes, grid=_FINE) - 1)

    return -bound(*(-gain for gain in gains)), bound(*gains)
