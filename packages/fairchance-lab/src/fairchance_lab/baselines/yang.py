"""Yang, Liu and Naghizadeh 2022: explore within bounds, on a score that stays as it is."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaincinv, btdtria, polygamma, psi

from fairchance.errors import InputError
from fairchance.people.intake import Batch, History
from fairchance_lab.baselines.base import CODE, Baseline, Decided, Floats, Labelled, Sources
from fairchance_lab.baselines.greedy import check_share
from fairchance_lab.baselines.logistic import fit_logistics, linear_scores

__all__ = [
    "CUTS",
    "BoundedExploration",
    "Rates",
    "ScoreDensity",
    "best_cuts",
    "lower_bound",
    "rates_of",
    "upper_bound",
    "weighted_quantile",
]


CUTS = np.round(np.arange(1.005, 0.0, -0.005), 3)  # strictest first: no score reaches it


@dataclass(frozen=True)
class Rates:
    """Rates at every cut, a row a group.

    Attributes
    ----------
    good, bad
        Share of the good, and of the bad, at the cut or above.
    base
        Share of good in each group.
    """

    good: Floats
    bad: Floats
    base: Floats


def rates_of(
    score: Floats, outcome: NDArray[np.int8], group: NDArray[np.intp], n_groups: int
) -> Rates:
    """Return the rates of labelled rows; a group without good or bad rows gets the overall rates.

    Parameters
    ----------
    score, outcome, group
        People whose outcomes are known, some of them good and some bad.
    n_groups
        Number of groups.

    Examples
    --------
    >>> outcome, group = np.array([1, 1, 0]), np.zeros(3, int)
    >>> rates = rates_of(np.array([0.9, 0.6, 0.7]), outcome, group, 1)
    >>> at = int(np.flatnonzero(CUTS == 0.65)[0])
    >>> float(rates.good[0, at]), float(rates.bad[0, at])
    (0.5, 1.0)
    """
    curves = np.array(
        [
            [_reached(score, (outcome == y) & (group == z), outcome == y) for y in (1, 0)]
            for z in range(n_groups)
        ]
    )
    seen = np.bincount(group, minlength=n_groups)
    good = np.bincount(group, outcome, n_groups)
    base = np.where(seen > 0, good / np.maximum(seen, 1), outcome.mean())
    return Rates(curves[:, 0], curves[:, 1], base)


def best_cuts(rates: Rates, share: Floats, gain: float, loss: float) -> Floats:
    """Return each group's cut: the best of those with equal opportunity.

    Maximises ``Σ_z share_z·(base_z·good_z·gain − (1−base_z)·bad_z·loss)``, where each group has its
    strictest cut at which the rate of the good reaches one common level. Of equally good ones the
    strictest are taken.

    Examples
    --------
    >>> score = np.array([0.9, 0.6, 0.4, 0.8, 0.3, 0.2])
    >>> outcome, group = np.array([1, 1, 0, 1, 1, 0]), np.array([0, 0, 0, 1, 1, 1])
    >>> rates = rates_of(score, outcome, group, 2)
    >>> best_cuts(rates, np.array([0.5, 0.5]), 1.0, 1.0).tolist()
    [0.6, 0.3]
    """
    base = rates.base[:, None]
    worth = share[:, None] * (base * rates.good * gain - (1 - base) * rates.bad * loss)
    levels = np.unique(rates.good)
    # Rates rise from cut to cut, so the strictest cut that reaches a level is found by bisection.
    at = np.array([np.searchsorted(one, levels - 1e-12) for one in rates.good])
    at = np.minimum(at, CUTS.size - 1)
    total = np.take_along_axis(worth, at, axis=1).sum(axis=0)
    return np.asarray(CUTS[at[:, total.argmax()]])


def _reached(score: Floats, group: NDArray[np.bool_], all_rows: NDArray[np.bool_]) -> Floats:
    chosen = np.sort(score[group if group.any() else all_rows])
    return 1 - np.searchsorted(chosen, CUTS - 1e-12) / max(1, chosen.size)


_EDGE = 1e-6  # scores are kept so far from 0 and 1
_SHAPES = (1e-2, 1e3)
_STEPS = 100


@dataclass(frozen=True)
class ScoreDensity:
    """A Beta(a, b) density of scores of which one quantile is watched.

    Attributes
    ----------
    a, b
        Its shape; a is learned, b stays.
    level
        τ: the watched quantile ω is the score below which a share τ lies.

    Examples
    --------
    >>> density = ScoreDensity(2.0, 2.0, level=0.5)
    >>> round(float(density.reference), 6), round(float(density.cdf(0.25)), 6)
    (0.5, 0.15625)
    """

    a: float
    b: float
    level: float

    @staticmethod
    def fit(scores: Floats, level: float) -> ScoreDensity:
        """Return the density of largest likelihood, by Newton's method."""
        if scores.size < 2 or np.ptp(scores) == 0:
            raise InputError(
                f"the history needs more accepted people of each outcome, got {scores.size}."
            )
        s = np.clip(scores, _EDGE, 1 - _EDGE)
        target = np.array([np.log(s).mean(), np.log1p(-s).mean()])
        shape = _by_moments(s)
        for _ in range(_STEPS):
            gradient = target - psi(shape) + psi(shape.sum())
            curve = np.diag(polygamma(1, shape)) - polygamma(1, shape.sum())
            step = np.linalg.solve(curve, gradient)
            shape = np.clip(shape + step, shape / 4, shape * 4)  # shapes stay positive
            if np.abs(step).max() < 1e-10 * shape.max():
                break
        a, b = np.clip(shape, *_SHAPES)
        return ScoreDensity(float(a), float(b), level)

    @property
    def reference(self) -> float:
        """ω: the score below which a share τ lies."""
        return float(self.quantile(self.level))

    def cdf(self, score: ArrayLike) -> Floats:
        """Return the share below a score."""
        return np.asarray(betainc(self.a, self.b, np.clip(score, 0, 1)))

    def quantile(self, share: ArrayLike) -> Floats:
        """Return the score below which a share lies; shares beyond [0, 1] are the ends."""
        return np.asarray(betaincinv(self.a, self.b, np.clip(share, 0, 1)))

    def with_reference(self, score: float) -> ScoreDensity:
        """Return the density with the same b whose watched quantile is this score."""
        a = btdtria(self.level, self.b, np.clip(score, _EDGE, 1 - _EDGE))
        return replace(self, a=float(np.clip(a, *_SHAPES)))

    def mended(self, scores: Floats, weight: Floats, above: float) -> ScoreDensity:
        """Return what scores from ``above`` on say of the watched quantile.

        Within what is left of the density there, ω is the quantile 1 − (1−τ)/(1−F(above)). Where it
        is not within, these scores say nothing of it, and the density stays.
        """
        seen = scores >= above
        left = 1 - float(self.cdf(above))
        inside = 1 - (1 - self.level) / left if left > 0 else 0.0
        if not seen.any() or not 0 < inside < 1:
            return self
        return self.with_reference(weighted_quantile(scores[seen], weight[seen], inside))


def weighted_quantile(scores: Floats, weight: Floats, share: float) -> float:
    """Return the smallest score below or at which at least a share of the weight lies.

    Examples
    --------
    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0]), 0.5)
    2.0
    """
    order = np.argsort(scores, kind="stable")
    reached = np.cumsum(weight[order])
    place = np.searchsorted(reached, share * reached[-1] * (1 - 1e-12))
    return float(scores[order[min(int(place), scores.size - 1)]])


def _by_moments(s: Floats) -> Floats:
    mean, variance = s.mean(), s.var()
    return np.asarray(np.array([mean, 1 - mean]) * max(mean * (1 - mean) / variance - 1, 0.1))


_ENOUGH = 30  # scores to fit a density to; a group with fewer uses those of all groups


def lower_bound(bad: ScoreDensity, cut: float) -> float:
    """Return the score down to which people below the cut are explored.

    F⁰(LB) = 2τ₀ − F⁰(θ): as much of the bad's density lies between LB and their watched quantile as
    between that and the cut. Never above the cut.

    Examples
    --------
    >>> round(lower_bound(ScoreDensity(1.0, 1.0, level=0.6), cut=0.9), 6)
    0.3
    """
    return min(cut, float(bad.quantile(2 * bad.level - bad.cdf(cut))))


def upper_bound(good: ScoreDensity, lower: float) -> float:
    """Return the score at which the good's density is as far from its watched quantile as at LB.

    F¹(UB) = 2τ₁ − F¹(LB). It changes no decision.

    Examples
    --------
    >>> round(upper_bound(ScoreDensity(1.0, 1.0, level=0.5), lower=0.3), 6)
    0.7
    """
    return float(good.quantile(2 * good.level - good.cdf(lower)))


@dataclass(eq=False, repr=False)
class BoundedExploration(Baseline):
    """Accept from a cut on; below it, down to a bound, accept with a probability that falls.

    A logistic score is learned from the history and never again. Each group has a cut, chosen on
    all outcomes so far, and a lower bound that follows from the density of the bad's scores. The
    densities are Beta; their first parameter is learned from what exploring shows, their second is
    fitted to the history and stays. The probability of exploring is 1 at first and falls by 0.1
    with each tenth of the rounds. The propensity is 1 from the cut on, that probability between the
    bound and the cut, 0 below. Any number of groups.

    The original keeps each person at the cut or above with the probability of exploring, so that
    those kept are an even sample of all applicants above the bound; here they count with that
    probability as their weight. Bounds move between rounds, so a density is mended from scores
    above the highest bound of the rounds it waited. All densities are mended together, once the
    outcome and group with the fewest new outcomes has enough of them.

    Parameters
    ----------
    gain, loss
        What a good and a bad person accepted are worth and cost.
    horizon
        Rounds to come, over which exploring fades out.
    bad_level, good_level
        τ₀ and τ₁, the watched quantiles of the bad's and the good's densities.
    min_outcomes
        Weight of new outcomes that must be exceeded for each outcome in each group before densities
        are mended: 150 in the authors' code for Adult (6,000 for the census of a whole country).
    l2
        Strength of the penalty on the score's coefficients, at least 0.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2))
    >>> repaid = (rng.random(600) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    >>> method = BoundedExploration.setting("aligned", horizon=4, random_state=0)
    >>> method = method.fit(X, repaid, accepted=X[:, 0] > -0.5)
    >>> for _ in range(3):
    ...     X = rng.normal(size=(600, 2))
    ...     batch = method.decide(X)
    ...     repaid = (rng.random(600) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    ...     method = method.observe(batch.ids[batch.accepted], repaid[batch.accepted])
    >>> np.unique(batch.propensity).tolist()
    [0.0, 0.5, 1.0]
    """

    gain: float = 0.5
    loss: float = 0.5
    _: KW_ONLY
    horizon: int = 39
    bad_level: float = 0.6
    good_level: float = 0.5
    min_outcomes: float = 150.0
    l2: float = 1.0

    reads_group: ClassVar[bool] = True
    assumption: ClassVar[str] = (
        "Scores of the good and of the bad follow Beta distributions whose second parameter the "
        "history shows rightly."
    )
    settings: ClassVar[dict[str, dict[str, Any]]] = {
        "published": {"gain": 0.5, "loss": 0.5},
        "aligned": {"gain": 200.0, "loss": 500.0},
    }
    sources: ClassVar[Sources] = {
        "published": {CODE: ("gain", "loss", "bad_level", "good_level", "min_outcomes")}
    }

    @property
    def bounds_(self) -> Floats:
        """Lower bound, cut and upper bound, a row a group."""
        return np.column_stack([self._low, self._cut, self._upper])

    @property
    def densities_(self) -> tuple[tuple[ScoreDensity, ...], ...]:
        """Of each group the density of the bad's scores and of the good's."""
        return tuple(tuple(pair) for pair in self._densities)

    def _start(self, history: History) -> None:
        self._check_parameters()
        rows = self._labelled()
        self._theta = fit_logistics(rows.X, rows.outcome, l2=self.l2)
        score = linear_scores(rows.X, self._theta)
        self._densities = [
            [self._first_density(score, rows, y, z) for y in (0, 1)] for z in range(self._n_groups)
        ]
        self._mended = 0  # the last round that densities have read
        self._arrived = np.bincount(history.group, minlength=self._n_groups)
        self._lows: list[Floats] = []  # lower bounds of each round
        self._set_bounds(score, rows)

    def _learn(self) -> None:
        rows = self._labelled()
        score = linear_scores(rows.X, self._theta)
        self._mend(score[rows.round > self._mended], rows.of(rows.round > self._mended))
        self._set_bounds(score, rows)

    def _first_density(self, score: Floats, rows: Labelled, y: int, z: int) -> ScoreDensity:
        mine = (rows.outcome == y) & (rows.group == z)
        chosen = mine if mine.sum() >= _ENOUGH else rows.outcome == y
        return ScoreDensity.fit(score[chosen], self.good_level if y else self.bad_level)

    def _mend(self, score: Floats, new: Labelled) -> None:
        """Learn the densities again if enough outcomes have come since they last were."""
        weight = np.where(new.propensity == 1, self._exploring(new.round), 1.0)
        cell = 2 * new.group + new.outcome
        if np.bincount(cell, weight, 2 * self._n_groups).min() <= self.min_outcomes:
            return
        for z, pair in enumerate(self._densities):
            for y, density in enumerate(pair):
                mine = cell == 2 * z + y
                above = float(np.array(self._lows)[new.round[mine] - 1, z].max())
                pair[y] = density.mended(score[mine], weight[mine], above)
        self._mended = int(new.round.max())

    def _set_bounds(self, score: Floats, rows: Labelled) -> None:
        rates = rates_of(score, rows.outcome, rows.group, self._n_groups)
        share = self._arrived / self._arrived.sum()
        self._cut = best_cuts(rates, share, self.gain, self.loss)
        bad, good = zip(*self._densities, strict=True)
        self._low = np.array([lower_bound(*one) for one in zip(bad, self._cut, strict=True)])
        self._upper = np.array([upper_bound(*one) for one in zip(good, self._low, strict=True)])

    def _decide(self, batch: Batch) -> Decided:
        self._lows = [*self._lows[: self._round - 1], self._low]
        self._arrived = self._arrived + np.bincount(batch.group, minlength=self._n_groups)
        return super()._decide(batch)

    def _probabilities(self, people: Batch) -> Floats:
        score = self._scores(people)
        explored = np.where(score >= self._low[people.group], self._exploring(self._round), 0.0)
        return np.where(score >= self._cut[people.group], 1.0, explored)

    def _scores(self, people: Batch) -> Floats:
        return linear_scores(people.X, self._theta)

    def _exploring(self, round: NDArray[np.int32] | int) -> Floats:
        """Return the probability of exploring in a round: 1, 0.9, … with each tenth gone by."""
        tenths = 10 * np.maximum(np.asarray(round) - 1, 0) // self.horizon
        return np.asarray(np.maximum(0, 10 - tenths) / 10)

    def _check_parameters(self) -> None:
        for name in ("gain", "loss", "min_outcomes"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be above 0, got {getattr(self, name)!r}.")
        for name in ("bad_level", "good_level"):
            check_share(name, getattr(self, name))
        if not self.horizon >= 1:
            raise InputError(f"horizon must be at least one round, got {self.horizon!r}.")
        if not self.l2 >= 0:
            raise InputError(f"l2 must be at least 0, got {self.l2!r}.")
