"""Pilots, the policies of rounds without a certificate: small at first, braked, no promise.

Pilots, and the choice among certified rungs, rest on estimates from our own outcomes
(``RungEstimates``). Estimates choose policies; they prove nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

from fairchance.core.noise import OutcomeNoise
from fairchance.core.saved import saved
from fairchance.core.utility import Utility
from fairchance.methods.certified.evidence import RATIO_CAPS, Outlook
from fairchance.methods.certified.ladder import Ladder, LadderRows, Positions
from fairchance.methods.certified.ranking import Ranking
from fairchance.people.ids import keyed_bits, round_key
from fairchance.people.likelihoods import ConstantLikelihood

__all__ = ["ENOUGH", "OUTER", "BesidePilot", "Pilot", "RungEstimates", "Sample", "expected_bad"]
__all__ += [
    "allowed_bad",
    "found_bad",
    "least_expected",
    "looks_hopeless",
    "outlook_of",
    "rounded_down",
]

Floats = NDArray[np.float64]

OUTER = 0.7  # the largest share of applicants that a pilot accepts for sure
_SHARE = (0.02, 0.10)  # least and largest share that the first pilot accepts for sure
_PEOPLE = (60, 150)  # the same in applicants per batch, if that is less
_STEP = 1.5
_INWARDS = 0.5  # of its share: what is left at least if a pilot moves inwards, estimates are noisy
_SAFE = 0.7  # standard errors below α before a pilot moves outwards
_BRAKE = 0.9  # of α: the largest estimated FDR of a pilot
ENOUGH = 30  # outcomes before a pilot's estimate means anything
_TRUST = 100  # outcomes since a freeze at which they count as much as all before, or the model
_CHUNK = 10_000  # applicants whose table of policies is in memory at a time
_EXPLORED = 0.02  # of the share that the lender accepts: what a pilot explores in the dark
_MOST_EXPLORED = 0.3  # of the share that the lender accepts, before outcomes are known
_MOST_OF_REJECTED = 0.15  # of the share that the lender rejects, before outcomes are known
_RISK_IN_THE_DARK = 0.5  # of explored applicants, if the history says nothing
_PRIOR_OUTCOMES = 20  # explored outcomes that count as much as what was expected of them
_TWICE = 2.0  # the share of a pilot: if every rung explores more, none does
_UNLIKE_ACCEPTED = 1.1  # badness of the rejected, times that of accepted ones at the same rank
_FIRST_COST = 0.04  # of what the lender's policy earns: the most that exploration may seem to cost
_COST = 0.02  # the same once outcomes are known
_LEAST = 0.02  # q_min: the least share of applicants that a policy worth having accepts for sure
_LEAST_PEOPLE = 12  # the same in applicants per batch, if that is more
_NEAR = 2.0  # ratio of chances up to which rungs beyond q_min are near to it
_PRICE = 1 / 200  # bad applicants per applicant that exploration may cost, if no price is given
_GROWTH_ROUNDS = 12  # rounds whose evidence chooses the start of a walk
SAMPLED = 10_000  # applicants that estimates rest on, so that a round costs the same at any time
_ROOM = 1.25  # times as many may be in the sample before it is thinned
_SAMPLING = 6  # purpose of the sample's randomness
_LARGEST_KEY = np.uint64(2**64 - 1)


@saved
class Sample:
    """A random part of our accepted applicants of rounds in the tests, in the order of the store.

    It is all of them while they are few. Keyed bits of ids choose, so that the order of rows does
    not matter.

    Attributes
    ----------
    row
        The row of each in the store.
    p_sum
        Σ n_i·p_i over the rounds i in the tests.
    """

    def __init__(self) -> None:
        self.row = np.empty(0, np.int64)
        self.p_sum = np.empty(0)
        self._key = np.empty(0, np.uint64)
        self._largest = _LARGEST_KEY

    def chosen(self, bits: NDArray[np.uint64]) -> NDArray[np.intp]:
        """Return which of some new applicants belong to the sample."""
        return np.flatnonzero(keyed_bits(bits, round_key(0, 0, _SAMPLING)) <= self._largest)

    def append(self, row: NDArray[np.int64], bits: NDArray[np.uint64], p_sum: Floats) -> None:
        """Append applicants that were chosen."""
        self.row, self.p_sum = np.append(self.row, row), np.append(self.p_sum, p_sum)
        self._key = np.append(self._key, keyed_bits(bits, round_key(0, 0, _SAMPLING)))

    def too_many(self) -> NDArray[np.bool_] | None:
        """Return which applicants stay if the sample has to be thinned, else None."""
        if self.row.size <= _ROOM * SAMPLED:
            return None
        self._largest = np.partition(self._key, SAMPLED - 1)[SAMPLED - 1]
        return np.asarray(self._key <= self._largest)

    def keep(self, stays: NDArray[np.bool_]) -> None:
        """Delete all other applicants."""
        self.row, self.p_sum, self._key = self.row[stays], self.p_sum[stays], self._key[stays]


@dataclass(frozen=True)
class RungEstimates:
    """Weighted estimates over our accepted applicants of rounds that are in the tests.

    As in the tests, an outcome that has not arrived by then counts as bad. An applicant has the
    weight one over the mean probability with which the rounds so far, by their sizes, accepted such
    applicants.

    Attributes
    ----------
    rows
        Columns of a sample of our own accepted applicants: ``round``, ``outcome``, ``p`` and
        ``p_sum``, which is Σ n_i·p_i over the rounds i in the tests.
    settled
        Positions of those who took the loan.
    last_round
        The last round in the tests.
    n_people
        Applicants of the rounds that ``p_sum`` counts.
    widest
        The largest share that one of these rounds accepted for sure.
    noise
        How often outcomes are recorded wrongly.
    explored
        The largest share of a settled pilot beside the lender's policy.
    each
        How many applicants each one of the sample stands for.
    """

    rows: Mapping[str, NDArray[Any]]
    settled: NDArray[np.intp]
    last_round: int
    n_people: int
    widest: float
    noise: OutcomeNoise
    explored: float = 0.0
    each: float = 1.0
    _totals: dict[LadderRows, tuple[Floats, Floats]] = field(default_factory=dict, repr=False)

    def weights(self, rows: NDArray[np.intp]) -> Floats:
        """Return one over the mean probability of acceptance, for all that a row stands for."""
        return np.asarray(self.n_people * self.each / self.rows["p_sum"][rows])

    def totals(self, ladder_rows: LadderRows) -> tuple[Floats, Floats]:
        """Return how many applicants every rung would have accepted, and how many bad ones."""
        if ladder_rows not in self._totals:  # asked for some twenty times a round
            weights, bad = self.weights(self.settled), self.rows["outcome"][self.settled] != 1
            accepted = ladder_rows.sums(weights, self.settled)
            self._totals[ladder_rows] = accepted, ladder_rows.sums(weights * bad, self.settled)
        return self._totals[ladder_rows]

    def fdr(self, ladder_rows: LadderRows) -> Floats:
        """Return the estimated FDR of every rung of a ladder; NaN if no outcome is known."""
        accepted, bad = self.totals(ladder_rows)
        share = np.divide(bad, accepted, out=np.full(bad.size, np.nan), where=accepted > 0)
        return self.noise.true_shares(share)

    def worth(self, ladder_rows: LadderRows, utility: Utility) -> Floats:
        """Return the estimated utility per applicant of every rung, less that of accepting none."""
        accepted, bad = self.totals(ladder_rows)
        utility = self.noise.recorded_utility(utility)
        loss, gain = utility.gain_bad, utility.gain_good
        return np.asarray((loss * bad + gain * (accepted - bad)) / max(1, self.n_people))

    def speak_for(self, ladder_rows: LadderRows) -> Floats:
        """Return at least how many equal weights would say as much of every rung: (Σw)²/Σw²."""
        squares = ladder_rows.sums(self.weights(self.settled) ** 2, self.settled)
        return np.asarray(self.totals(ladder_rows)[0] ** 2 / np.maximum(squares, 1e-12))

    def mistakes(
        self, ladder_rows: LadderRows, rung: int, since: int = 0, *, beyond: bool = False
    ) -> tuple[float, float]:
        """Return the estimated FDR of a rung and its standard error, from rounds since one.

        ``beyond`` leaves out applicants that the lender accepts.
        """
        rows = self.settled[self.rows["round"][self.settled] >= since]
        if beyond:
            rows = rows[~ladder_rows.at.accepted_by_lender[rows]]
        if rows.size == 0:
            return float("nan"), float("inf")
        pi = ladder_rows.ladder.policy(ladder_rows.at[rows], rung) * self.weights(rows)
        bad = self.rows["outcome"][rows] != 1
        total = pi.sum()
        if total <= 0:
            return float("nan"), float("inf")
        share = float(pi @ bad / total)
        error = float(np.sqrt((pi**2) @ (bad - share) ** 2) / total)
        return self.noise.true_fdr(share), error / self.noise.kept

    def growth(self, ladder_rows: LadderRows, alpha: float) -> Floats:
        """Return (ΣZ)²/ΣZ² of every rung at a bound on our last rounds, 0 unless ΣZ > 0."""
        ladder = ladder_rows.ladder
        newer = self.rows["round"][self.settled] > self.last_round - _GROWTH_ROUNDS
        recent = self.settled[newer]
        total, squares = np.zeros(ladder.grid.size), np.zeros(ladder.grid.size)
        for first in range(0, recent.size, _CHUNK):
            rows = recent[first : first + _CHUNK]
            pi, p = ladder.policies(ladder_rows.at[rows]), self.rows["p"][rows, None]
            bad = self.noise.badness(self.rows["outcome"][rows] != 1)
            z = np.minimum(pi / p, RATIO_CAPS[0]) * (alpha - bad[:, None])
            total += z.sum(axis=0)
            squares += (z**2).sum(axis=0)
        return np.where(total > 0, total**2 / np.maximum(squares, 1e-12), 0.0)


@saved
@dataclass
class Pilot:
    """The reach of a pilot, and when it moves.

    Attributes
    ----------
    alpha
        α.
    share
        The best share of applicants that a pilot accepts for sure.
    """

    alpha: float
    share: float

    @staticmethod
    def start(ranking: Ranking, alpha: float, n_batch: int) -> Pilot:
        """Return the first pilot: the share that the model itself allows, within bounds."""
        low, high = max(_SHARE[0], _PEOPLE[0] / n_batch), min(_SHARE[1], _PEOPLE[1] / n_batch)
        share = float(np.clip(ranking.knee(1.5 * alpha), low, max(low, high)))
        return Pilot(alpha, min(share, _SHARE[1]))

    def rung(self, ladder_rows: LadderRows, estimates: RungEstimates) -> tuple[int, float]:
        """Return the rung to try, and the share that the pilot has if it is tried.

        If outcomes of its present rung are known, the pilot moves outwards to the widest rung that
        looks safe and that outcomes tell about, and inwards if its rung does not look safe. Nothing
        is changed yet.
        """
        ladder, share = ladder_rows.ladder, self.share
        enough = estimates.settled.size >= ENOUGH
        here = ladder.nearest(share)
        if enough and here <= ladder.nearest(estimates.widest):
            for rung in range(ladder.nearest(self._reach(ladder)), here, -1):
                mistakes, error = self._mistakes(ladder_rows, rung, estimates)
                if mistakes + _SAFE * error <= self.alpha and mistakes <= _BRAKE * self.alpha:
                    share = float(ladder.grid[rung])
                    break
        # At least the start of the ladder, so that its test gets evidence.
        rung = max(ladder.starts[0][0], ladder.nearest(share))
        innermost = ladder.nearest(_INWARDS * share) if share > ladder.grid[0] else 0
        while (
            enough
            and rung > innermost
            and self._mistakes(ladder_rows, rung, estimates)[0] > _BRAKE * self.alpha
        ):
            rung -= 1
        return rung, min(share, float(ladder.grid[rung])) if enough else share

    def _reach(self, ladder: Ladder) -> float:
        """Return the widest share that outcomes tell about: their weights are at most W there."""
        edge = ladder.tau * float(np.log(RATIO_CAPS[0]))
        return min(OUTER, max(_STEP * self.share, self.share + edge))

    @staticmethod
    def _mistakes(
        ladder_rows: LadderRows, rung: int, estimates: RungEstimates
    ) -> tuple[float, float]:
        """Return the estimated FDR; outcomes since the freeze gain weight as they become more."""
        share, error = estimates.mistakes(ladder_rows, rung)
        since = ladder_rows.ladder.frozen
        new = int(np.sum(estimates.rows["round"][estimates.settled] >= since))
        if new < ENOUGH:
            return share, error
        fresh, _ = estimates.mistakes(ladder_rows, rung, since)
        weight = new / (new + _TRUST)
        return weight * fresh + (1 - weight) * share, error


@saved
@dataclass
class BesidePilot:
    """How far a pilot beside the lender's own policy explores applicants whom the lender rejects.

    The pilot accepts everyone whom the lender accepts, so it costs what exploration costs and not
    the business.

    Attributes
    ----------
    share
        The expected share of all applicants that it explores.
    risk
        The share of bad ones that was expected among them before outcomes were known.
    accepted
        The share that the lender accepts.
    """

    share: float
    risk: float
    accepted: float

    @staticmethod
    def start(ladder: Ladder, at: Positions, bad: Floats | None, utility: Utility) -> BesidePilot:
        """Return the first pilot, which explores as far as that is expected to be cheap.

        Parameters
        ----------
        ladder, at
            A union ladder, and the positions of reference applicants on it.
        bad
            The expected badness of each of them (``expected_bad``); None if nothing is known.
        utility
            What decisions are worth.
        """
        lender = at.accepted_by_lender
        accepted = float(lender.mean())
        if bad is None:
            return BesidePilot(_EXPLORED * accepted, _RISK_IN_THE_DARK, accepted)
        loss, gain = utility.gain_bad, utility.gain_good
        pi = ladder.policies(at[~lender])
        reach = pi.sum(axis=0) / lender.size
        risk = np.minimum(_UNLIKE_ACCEPTED * bad[~lender], 1.0)
        earned = (loss * risk + gain * (1 - risk)) @ pi / lender.size
        today = float(np.sum(loss * bad[lender] + gain * (1 - bad[lender]))) / lender.size
        most = min(_MOST_EXPLORED * accepted, _MOST_OF_REJECTED * (1 - accepted))
        cheap = np.flatnonzero((earned >= -_FIRST_COST * abs(today)) & (reach <= most))
        rung = max(1, int(cheap[-1]))
        total = pi[:, rung].sum()
        expected = float(risk @ pi[:, rung] / total) if total > 0 else _RISK_IN_THE_DARK
        return BesidePilot(float(reach[cheap[-1]]), expected, accepted)

    def at_most(
        self, n_bad: float, rung: int, reach: Floats, n_batch: int, alpha: float
    ) -> tuple[int, float]:
        """Return the rung, and the part of its exploration, that cost at most so many bad a round.

        A narrower rung comes first; if the narrowest costs too much, it explores in part. More than
        α of the explored are bad, since no policy keeps it.
        """
        cost = n_batch * max(self.risk, alpha) * reach
        rung = min(rung, max(1, int(np.searchsorted(cost, n_bad, side="right")) - 1))
        scale = rounded_down(n_bad / cost[rung]) if cost[rung] > n_bad else 1.0
        return (rung, scale) if scale > 0 else (0, 1.0)

    def nearest(self, reach: Floats) -> int:
        """Return the widest rung that explores about the share at most; 0 if all explore more."""
        if reach[1] > _TWICE * max(self.share, _EXPLORED * self.accepted):
            return 0
        return max(1, int(np.searchsorted(reach, self.share, side="right")) - 1)

    def rung(
        self,
        ladder_rows: LadderRows,
        reach: Floats,
        estimates: RungEstimates,
        utility: Utility,
        alpha: float,
    ) -> tuple[int, float]:
        """Return the rung of a union ladder to try, and the share that the pilot has then.

        ``reach`` is the share of applicants that each rung explores. Once outcomes are known, the
        pilot moves outwards step by step, each after the outcomes of the last one, as long as
        exploring looks profitable or cheap.
        """
        if estimates.settled.size < ENOUGH:
            return self.nearest(reach), self.share
        rung = max(1, self.nearest(reach))
        worth, total = (
            estimates.worth(ladder_rows, utility),
            estimates.mistakes(ladder_rows, rung)[0],
        )
        explored, _ = estimates.mistakes(ladder_rows, rung, beyond=True)
        n = int(np.sum(~ladder_rows.at.accepted_by_lender[estimates.settled]))
        known = n / (n + _PRIOR_OUTCOMES) if np.isfinite(explored) else 0.0
        risk = known * explored + (1 - known) * self.risk if known else self.risk
        value = utility.gain_bad * risk + utility.gain_good * (1 - risk)
        most = min(self.accepted, (1 - self.accepted) / 2)
        if value < 0:
            most = min(most, _COST * abs(float(worth[0])) / -value)
        elif total > alpha:
            most = min(most, self.share)
        share = self.share if self.share > estimates.explored else _STEP * self.share
        moved = replace(self, share=min(share, most))
        return moved.nearest(reach), moved.share


def expected_bad(rank: Floats, known_rank: Floats, outcome: NDArray[np.int8]) -> Floats | None:
    """Return P(bad) at each rank, from others whose outcome is known; None if they are too few.

    It rises with the rank, and is the same for all ranks beyond the last known one.
    """
    if outcome.size < ENOUGH:
        return None
    order = np.argsort(known_rank, kind="stable")
    bad = isotonic_regression((outcome[order] != 1).astype(np.float64))
    return np.asarray(np.interp(rank, known_rank[order], bad), np.float64)


def outlook_of(ladder: Ladder, n_batch: int, noise: OutcomeNoise) -> Outlook | None:
    """Return the test that no rung of a new ladder of at least q_min keeps α.

    None for a ladder that treats all applicants alike: it is not meant to have a policy, but to
    find outcomes for the first ranking.
    """
    if isinstance(ladder.ranking.likelihood, ConstantLikelihood):
        return None
    least = min(_SHARE[1], max(_LEAST, _LEAST_PEOPLE / n_batch))
    rungs = np.arange(ladder.nearest(least), ladder.nearest(OUTER) + 1)
    # A pilot on the first rung covers the near ones, even if few of its applicants are accepted.
    last = ladder.grid[rungs[0]] + ladder.tau * np.log(_NEAR)
    n_near = max(1, int(np.sum(ladder.grid[rungs] <= last)))
    return Outlook(rungs, n_near, ladder.alpha, noise.recorded_fdr)


def looks_hopeless(ladder_rows: LadderRows, estimates: RungEstimates) -> bool:
    """Return whether the model and outcomes together see no rung of at least q_min that keeps α.

    The model expects least of the first such rung, and counts as much as some outcomes since the
    freeze. While there are none, both have to see none.
    """
    ladder = ladder_rows.ladder
    if ladder.outlook is None or estimates.settled.size < ENOUGH:
        return False
    expected = least_expected(ladder)
    found, new = found_bad(ladder_rows, estimates)
    if not new:
        return min(expected, found) > ladder.alpha
    return (_TRUST * expected + new * found) / (_TRUST + new) > ladder.alpha


def least_expected(ladder: Ladder) -> float:
    """Return the share of bad that the model expects in the rung of q_min, the best of them."""
    share = 0.0 if ladder.outlook is None else float(ladder.grid[ladder.outlook.rungs[0]])
    return float(ladder.ranking.mean_bad[max(1, round(100 * share)) - 1])


def found_bad(ladder_rows: LadderRows, estimates: RungEstimates) -> tuple[float, int]:
    """Return the share of bad that outcomes see in the rung of q_min, and how many are new.

    Those since the freeze are weighted. If there are none, earlier ones count as they are: the
    ranking has learned them, so an estimate of its rungs from them would look too good.
    """
    ladder, rows = ladder_rows.ladder, estimates.settled
    new = int(np.sum(estimates.rows["round"][rows] >= ladder.frozen))
    if new and ladder.outlook is not None:
        rung = int(ladder.outlook.rungs[0])
        return estimates.mistakes(ladder_rows, rung, ladder.frozen)[0], new
    recorded = float(np.mean(estimates.rows["outcome"][rows] != 1)) if rows.size else float("nan")
    return estimates.noise.true_fdr(recorded), 0


def rounded_down(scale: float) -> float:
    """Return a scale in thousandths, so that rounds at about the same price share a policy."""
    return float(np.floor(1000 * scale) / 1000)


def allowed_bad(price: float | None, n_batch: int, utility: Utility) -> float:
    """Return how many bad applicants a round's exploration may cost; infinite if they are free."""
    if price is None:
        return _PRICE * n_batch
    return price / -utility.gain_bad if utility.gain_bad < 0 else float("inf")
