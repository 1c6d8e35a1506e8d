"""Yang, Liu and Naghizadeh 2022: explore within bounds, on a score that stays as it is."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from secondlook.errors import InputError
from secondlook.lab.baselines.base import Baseline, Floats, Verdict
from secondlook.lab.baselines.greedy import check_share
from secondlook.lab.baselines.ledger import Labelled
from secondlook.lab.baselines.logistic_newton import fit_logistics, linear_scores
from secondlook.lab.baselines.score_cuts import MATCHES, best_cuts, rates_of
from secondlook.lab.baselines.score_densities import ScoreDensity
from secondlook.people.batches import Batch, History

__all__ = ["BoundedExploration", "lower_bound", "upper_bound"]

_ENOUGH = 30  # scores to fit a density to; a group with fewer borrows everybody's


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


class BoundedExploration(Baseline):
    """Accept from a cut on; below it, down to a bound, accept with a probability that falls.

    A logistic score is learned from the history and never again. Each group has a cut, chosen on
    all outcomes so far, and a lower bound that follows from the density of the bad's scores. The
    densities are Beta; their first parameter is learned from what exploring shows, their second is
    fitted to the history and stays. The probability of exploring is 1 at first and falls by 0.1
    with each tenth of the rounds. The propensity is 1 from the cut on, that probability between the
    bound and the cut, 0 below. Any number of groups.

    The original keeps each person at the cut or above with the probability of exploring, so that
    those kept are an even sample of everybody above the bound; here they count with that
    probability as their weight. Bounds move between rounds, so a density is mended from scores
    above the highest bound of the rounds it waited.

    Parameters
    ----------
    gain, loss
        What a good and a bad person accepted are worth and cost.
    horizon
        Rounds to come, over which exploring fades out.
    match
        What cuts must have in common: ``"equal_opportunity"``, ``"equal_acceptance"``,
        ``"shared"`` or ``"per_group"`` (nothing).
    bad_level, good_level
        τ₀ and τ₁, the watched quantiles of the bad's and the good's densities.
    min_outcomes
        Weight of new outcomes from which on a density is mended.
    l2
        Strength of the penalty on the score's coefficients, at least 0.
    group_as_feature
        Append the group to the features.
    pos_label
        Label of the good outcome; None means the larger one.
    random_state
        Seed of the coins.

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

    reads_group: ClassVar[bool] = True
    assumption: ClassVar[str] = (
        "Scores of the good and of the bad follow Beta distributions whose second parameter the "
        "history shows rightly."
    )
    settings: ClassVar[dict[str, dict[str, Any]]] = {
        "published": {"gain": 0.5, "loss": 0.5},
        "aligned": {"gain": 200.0, "loss": 500.0},
    }

    def __init__(
        self,
        gain: float = 0.5,
        loss: float = 0.5,
        *,
        horizon: int = 39,
        match: Literal[
            "equal_opportunity", "equal_acceptance", "shared", "per_group"
        ] = "equal_opportunity",
        bad_level: float = 0.6,
        good_level: float = 0.5,
        min_outcomes: float = 30.0,
        l2: float = 1.0,
        group_as_feature: bool = False,
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.gain = gain
        self.loss = loss
        self.horizon = horizon
        self.match = match
        self.bad_level = bad_level
        self.good_level = good_level
        self.min_outcomes = min_outcomes
        self.l2 = l2
        self.group_as_feature = group_as_feature
        self.pos_label = pos_label
        self.random_state = random_state

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
        self._mended = np.zeros((self._n_groups, 2), np.intp)  # the last round that each has read
        self._arrived = np.bincount(history.group, minlength=self._n_groups)
        self._lows: list[Floats] = []  # lower bounds of each round
        self._set_bounds(score, rows)

    def _learn(self) -> None:
        rows = self._labelled()
        score = linear_scores(rows.X, self._theta)
        for z in range(self._n_groups):
            for y in (0, 1):
                self._mend(score, rows, y, z)
        self._set_bounds(score, rows)

    def _first_density(self, score: Floats, rows: Labelled, y: int, z: int) -> ScoreDensity:
        mine = (rows.outcome == y) & (rows.group == z)
        chosen = mine if mine.sum() >= _ENOUGH else rows.outcome == y
        return ScoreDensity.fit(score[chosen], self.good_level if y else self.bad_level)

    def _mend(self, score: Floats, rows: Labelled, y: int, z: int) -> None:
        """Learn a density again if enough outcomes have come since it last was."""
        new = (rows.outcome == y) & (rows.group == z) & (rows.round > self._mended[z, y])
        rounds = rows.round[new]
        weight = np.where(rows.propensity[new] == 1, self._exploring(rounds), 1.0)
        if weight.sum() < self.min_outcomes:
            return
        above = float(np.array(self._lows)[rounds - 1, z].max())
        self._densities[z][y] = self._densities[z][y].mended(score[new], weight, above)
        self._mended[z, y] = rounds.max()

    def _set_bounds(self, score: Floats, rows: Labelled) -> None:
        rates = rates_of(score, rows.outcome, rows.group, self._n_groups)
        share = self._arrived / self._arrived.sum()
        self._cut = best_cuts(rates, share, self.gain, self.loss, self.match)
        bad, good = zip(*self._densities, strict=True)
        self._low = np.array([lower_bound(*one) for one in zip(bad, self._cut, strict=True)])
        self._upper = np.array([upper_bound(*one) for one in zip(good, self._low, strict=True)])

    def _decide(self, batch: Batch) -> Verdict:
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
        if self.match not in MATCHES:
            raise InputError(f"match must be one of {', '.join(MATCHES)}, got {self.match!r}.")
        if not self.horizon >= 1:
            raise InputError(f"horizon must be at least one round, got {self.horizon!r}.")
        if not self.l2 >= 0:
            raise InputError(f"l2 must be at least 0, got {self.l2!r}.")
