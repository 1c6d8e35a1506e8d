"""Compute rates, revenue and differences from head counts, with standard errors and noise floors.

Every number is computed in the same way: counts of a round → a metric per round → one value per
repetition → mean over repetitions with its standard error. Only repetitions are independent, so
every interval is over them. A rate of no one is NaN and left out of means (``nobody_accepted``
counts such rounds).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from fairchance.core import metrics
from fairchance.core.fairness import EqualizedOdds
from fairchance.core.metrics import RATES, difference, ratio
from fairchance.errors import InputError
from fairchance_lab.experiments.results import COUNTS, Results

__all__ = [
    "METRICS",
    "TOO_FEW",
    "Estimate",
    "MetricSummary",
    "late_rounds",
    "least_served",
    "noise_floor",
    "over_repetitions",
    "paired",
    "per_repetition",
    "per_round",
    "ratio_of_means",
    "series",
    "share",
    "summary",
]

Values = NDArray[np.float64]
Rate = Literal["selection_rate", "true_positive_rate"]
TOO_FEW = 5  # repetitions; fewer say nothing about a difference
_CONFIDENCE = 0.95
_REPETITION, _ROUND = 2, 3  # axes


@dataclass(frozen=True)
class Estimate:
    """A mean over repetitions with its uncertainty.

    Attributes
    ----------
    mean
        Mean over repetitions.
    standard_error
        Standard deviation over repetitions / √repetitions; NaN with fewer than two.
    half_width
        Half of the 95 % interval by Student's t.
    repetitions
        Number of repetitions with a known value.
    """

    mean: Values
    standard_error: Values
    half_width: Values
    repetitions: NDArray[np.int64]

    @property
    def low(self) -> Values:
        """Lower end of the 95 % interval."""
        return self.mean - self.half_width

    @property
    def high(self) -> Values:
        """Upper end of the 95 % interval."""
        return self.mean + self.half_width

    def __getitem__(self, index: int | tuple[int | slice, ...]) -> Estimate:
        return Estimate(*(np.asarray(part[index]) for part in vars(self).values()))

    def side(self, bound: float = 0.0) -> str:
        """Return where the interval of a single mean is.

        ``"above"``, ``"below"`` or ``"around"`` the bound; ``"few"`` with too few repetitions to
        tell, ``"unknown"`` without an interval.
        """
        if not np.isfinite(self.half_width):
            return "unknown"
        if self.repetitions < TOO_FEW:
            return "few"
        return "above" if self.low > bound else "below" if self.high < bound else "around"


@dataclass(frozen=True)
class MetricSummary:
    """A metric of all methods, axes (setting, method).

    Attributes
    ----------
    estimate
        Mean over repetitions of each repetition's value.
    pooled_sd
        Standard deviation over all rounds of all repetitions, as the paper prints it in brackets;
        NaN for metrics without a value per round.
    """

    estimate: Estimate
    pooled_sd: Values


@dataclass(frozen=True)
class _HeadCounts:
    """Counts with axes (…, round, group), gain, loss and bounds."""

    counts: dict[str, Values]
    gain: float
    loss: float
    alpha: Values

    def __getitem__(self, name: str) -> Values:
        return self.counts[name]

    def total(self, name: str) -> Values:
        return np.asarray(self.counts[name].sum(axis=-1))

    def rate(self, rate: metrics.ConfusionRate) -> Values:
        """Return a rate by group."""
        good, bad = self["accepted_good"], self["accepted"] - self["accepted_good"]
        all_bad = self["people"] - self["good"]
        return rate(all_bad - bad, self["good"] - good, bad, good)

    def pooled(self, first: int = 0) -> _HeadCounts:
        """Return all rounds as one round, without the first few if asked."""
        summed = {
            k: v[:, :, :, first:].sum(axis=_ROUND, keepdims=True) for k, v in self.counts.items()
        }
        return _HeadCounts(summed, self.gain, self.loss, self.alpha)


def share(part: ArrayLike, whole: ArrayLike) -> Values:
    """Return part / whole, NaN where the whole is 0."""
    part, whole = np.asarray(part, float), np.asarray(whole, float)
    unknown = np.full(np.broadcast_shapes(part.shape, whole.shape), np.nan)
    return np.asarray(np.divide(part, whole, out=unknown, where=whole != 0))


def _where_people(heads: _HeadCounts, values: ArrayLike) -> Values:
    return np.where(heads.total("people") > 0, values, np.nan)


def _revenue(heads: _HeadCounts) -> Values:
    good = heads.total("accepted_good")
    bad = heads.total("accepted") - good
    return _where_people(heads, (heads.gain * good - heads.loss * bad) / 1000)


def _fdr(heads: _HeadCounts) -> Values:
    accepted = heads.total("accepted")
    return share(accepted - heads.total("accepted_good"), accepted)


def _exploited_good(heads: _HeadCounts) -> Values:
    return heads.total("accepted_good") - heads.total("explored_good")


def _above_alpha(heads: _HeadCounts) -> Values:
    # A round in which no one is accepted accepts no bad applicant, so it is not above.
    return _where_people(heads, np.nan_to_num(_fdr(heads), nan=-1.0) > heads.alpha)


def _apart(
    measure: Callable[[Values], Values], rate: metrics.ConfusionRate, heads: _HeadCounts
) -> Values:
    return measure(heads.rate(rate))


_ODDS = EqualizedOdds.compared
METRICS: dict[str, Callable[[_HeadCounts], Values]] = {
    "revenue": _revenue,
    "cumulative_revenue": lambda h: np.cumsum(_revenue(h), axis=_ROUND),
    "fdr": _fdr,
    "above_alpha": _above_alpha,
    "nobody_accepted": lambda h: _where_people(h, h.total("accepted") == 0),
    "acceptance_rate": lambda h: share(h.total("accepted"), h.total("people")),
    "explored_share": lambda h: share(h.total("explored"), h.total("people")),
    "explored_fdr": lambda h: share(
        h.total("explored") - h.total("explored_good"), h.total("explored")
    ),
    "exploited_fdr": lambda h: share(
        h.total("accepted") - h.total("explored") - _exploited_good(h),
        h.total("accepted") - h.total("explored"),
    ),
    "exploit_share": lambda h: share(h.total("exploit_region"), h.total("people")),
    "certified": lambda h: share(h.total("certified"), h.total("people")),
    "capped_share": lambda h: share(h.total("capped"), h.total("weighted")),
    "weighted": lambda h: np.where(h.total("weighted") > 0, h.total("weighted"), np.nan),
    "effective": lambda h: np.where(h.total("weighted") > 0, h.total("effective"), np.nan),
    "equalized_odds_difference": lambda h: np.maximum(*(_apart(difference, r, h) for r in _ODDS)),
    "equalized_odds_ratio": lambda h: np.minimum(*(_apart(ratio, r, h) for r in _ODDS)),
}
for _rate in RATES:
    METRICS |= {
        _rate.name: partial(_HeadCounts.rate, rate=_rate),
        f"{_rate.name}_difference": partial(_apart, difference, _rate),
        f"{_rate.name}_ratio": partial(_apart, ratio, _rate),
    }
_OF_DECISIONS = (
    *("explored_share", "explored_fdr", "exploited_fdr", "exploit_share"),
    *("capped_share", "weighted", "effective"),
)
_NEXT = {
    "people": "n_next",
    "good": "n_next_good",
    "accepted": "n_next_accepted",
    "accepted_good": "n_next_accepted_good",
}
_NOW = {name.removeprefix("n_"): name for name in COUNTS if name not in _NEXT.values()}


def _heads(results: Results, next_batch: bool) -> _HeadCounts:
    names = _NEXT if next_batch else _NOW
    goal = results.about["experiment"]["goal"]
    return _HeadCounts(
        {short: results.count(name).astype(float) for short, name in names.items()},
        float(goal["gain"]),
        float(goal["loss"]),
        np.asarray(results.alphas, float)[:, None, None, None],
    )


def per_round(
    results: Results, metric: str, *, next_batch: bool = False, absolute_revenue: bool = False
) -> Values:
    """Return a metric of every round, axes (setting, method, repetition, round).

    Rates (``selection_rate``, ``true_positive_rate``, …) have a last axis for groups. Revenue is in
    thousands: (gain · good accepted − loss · bad accepted) / 1000.

    Parameters
    ----------
    results
        Results.
    metric
        A name in ``METRICS``; with the prefix ``pooled_``, the metric of counts summed over all
        rounds, and with ``pooled_later_``, over all but the first.
    next_batch
        Use f_t's decisions on the next batch instead of the decisions on the batch.
    absolute_revenue
        Take the absolute value of each round's revenue, as the released code does (E2).
    """
    name = metric.removeprefix("pooled_")
    later = name.startswith("later_") and name != metric
    name = name.removeprefix("later_") if later else name
    if name not in METRICS:
        raise InputError(f"a metric must be one of {', '.join(METRICS)}, got {metric!r}.")
    if next_batch and name in _OF_DECISIONS:
        raise InputError(f"the next batch has no exploration and thus no {name}.")
    heads = _heads(results, next_batch)
    values = METRICS[name](heads.pooled(first=int(later)) if name != metric else heads)
    return np.abs(values) if absolute_revenue and metric == "revenue" else values


def late_rounds(results: Results) -> int:
    """Return the number of rounds in the last quarter, rounded up."""
    return ceil(results.shape[_ROUND] / 4)


def per_repetition(
    results: Results, metric: str, *, next_batch: bool = False, absolute_revenue: bool = False
) -> Values:
    """Return one value per repetition, axes (setting, method, repetition), rates also by group.

    A metric is averaged over rounds; the prefix ``late_`` means over the last quarter of rounds,
    the prefix ``pooled_`` the metric of counts summed over rounds.
    """
    late = metric.startswith("late_")
    if metric.startswith("late_pooled_"):
        raise InputError(f"{metric} is not available; use either pooled_ or late_.")
    values = per_round(
        results,
        metric.removeprefix("late_"),
        next_batch=next_batch,
        absolute_revenue=absolute_revenue,
    )
    if late:
        values = values[:, :, :, -late_rounds(results) :]
    return mean_known(values, axis=_ROUND)


def mean_known(values: Values, axis: int | tuple[int, ...]) -> Values:
    """Return the mean of the finite values, NaN without any."""
    known = np.isfinite(values)
    return share(np.where(known, values, 0).sum(axis), known.sum(axis))


def over_repetitions(values: Values, axis: int = _REPETITION) -> Estimate:
    """Return the mean along an axis with its standard error and 95 % interval.

    Examples
    --------
    >>> estimate = over_repetitions(np.array([1.0, 2.0, 3.0, np.nan]), axis=0)
    >>> float(estimate.mean), round(float(estimate.standard_error), 3)
    (2.0, 0.577)
    """
    values = np.asarray(values, float)
    n = np.isfinite(values).sum(axis)
    mean = mean_known(values, axis)
    squares = np.where(np.isfinite(values), values - np.expand_dims(mean, axis), 0) ** 2
    error = np.sqrt(share(squares.sum(axis), np.maximum(n - 1, 0) * n))
    t = stats.t.ppf((1 + _CONFIDENCE) / 2, np.maximum(n - 1, 1))
    return Estimate(mean, error, error * t, n)


def ratio_of_means(part: Values, whole: Values) -> Estimate:
    """Return mean(part) / mean(whole) over repetitions, with the error of a ratio estimate.

    Repetitions in which one of them is unknown are left out; NaN if the whole is not positive.
    """
    known = np.isfinite(part) & np.isfinite(whole)
    part, whole = part[known], whole[known]
    mean = float(mean_known(whole, axis=0))
    mean = mean if mean > 0 else float("nan")
    ratio = float(mean_known(part, axis=0)) / mean
    return over_repetitions(ratio + (part - ratio * whole) / mean, axis=0)


def series(results: Results, metric: str, *, next_batch: bool = False) -> Estimate:
    """Return a metric over the rounds, axes (setting, method, round), rates also by group."""
    return over_repetitions(per_round(results, metric, next_batch=next_batch))


def summary(
    results: Results, metric: str, *, next_batch: bool = False, absolute_revenue: bool = False
) -> MetricSummary:
    """Return a metric of all methods: mean, standard error, and standard deviation over rounds.

    Parameters
    ----------
    results
        Results.
    metric, next_batch, absolute_revenue
        As ``per_repetition`` takes them.
    """
    options = {"next_batch": next_batch, "absolute_revenue": absolute_revenue}
    estimate = over_repetitions(per_repetition(results, metric, **options))
    if metric.startswith("pooled_"):
        return MetricSummary(estimate, np.full(estimate.mean.shape, np.nan))
    values = per_round(results, metric.removeprefix("late_"), **options)
    if metric.startswith("late_"):
        values = values[:, :, :, -late_rounds(results) :]
    axes = (_REPETITION, _ROUND)
    centre = np.expand_dims(mean_known(values, axes), axes)
    return MetricSummary(estimate, np.sqrt(mean_known((values - centre) ** 2, axes)))


def paired(results: Results, metric: str, first: str, second: str) -> Estimate:
    """Return first − second, compared within each repetition, by setting.

    Both methods see the same people in a repetition, so their difference varies less than either.
    """
    values = per_repetition(results, metric)
    a, b = (results.methods.index(name) for name in (first, second))
    return over_repetitions(values[:, a] - values[:, b], axis=1)


def focus(results: Results) -> str:
    """Return the group that the experiment is about, or the least served group."""
    named = results.about["experiment"].get("focus")
    return str(named) if named in results.groups else least_served(results)


def least_served(results: Results) -> str:
    """Return the group with the lowest true positive rate over all methods and rounds."""
    accepted, good = (
        results.count(name).sum(axis=(0, 1, 2, 3)) for name in ("n_accepted_good", "n_good")
    )
    return results.groups[int(np.argmin(np.nan_to_num(share(accepted, good), nan=np.inf)))]


def noise_floor(results: Results, rate: Rate, *, draws: int = 4000) -> Values:
    """Return the mean difference of rates that chance alone causes if groups have equal rates.

    With p the share over all groups, group g's rate has variance p (1 − p) / n_g. For two groups
    the mean absolute difference is √(2/π) · √(p (1 − p) (1/n_a + 1/n_b)); for more, the mean of
    largest − smallest of normal numbers is simulated with a fixed seed.

    Parameters
    ----------
    results
        Results.
    rate
        ``"selection_rate"`` (n: all people) or ``"true_positive_rate"`` (n: good people).
    draws
        Number of draws for three groups or more.

    Returns
    -------
    Values
        Axes (alpha, method, repetition, round).
    """
    heads = _heads(results, next_batch=False)
    selection = rate == "selection_rate"
    n = heads["people" if selection else "good"]
    p = share(heads.total("accepted" if selection else "accepted_good"), n.sum(-1))
    sizes, which = np.unique(n.reshape(-1, n.shape[-1]), axis=0, return_inverse=True)
    factor = _noise_gap(sizes, draws)[which.reshape(n.shape[:-1])]
    return np.asarray(np.sqrt(p * (1 - p)) * factor)


def _noise_gap(sizes: Values, draws: int) -> Values:
    """Return the mean of largest − smallest of normals with variances 1 / size, by row."""
    deviations = np.sqrt(share(1.0, sizes))
    if sizes.shape[1] == 2:
        return np.asarray(np.sqrt(2 / np.pi) * np.sqrt((deviations**2).sum(-1)))
    normals = np.random.default_rng(0).standard_normal((draws, sizes.shape[1]))
    return np.array([_mean_range(normals, row) for row in deviations])


def _mean_range(normals: Values, deviations: Values) -> float:
    known = np.isfinite(deviations)
    if known.sum() < 2:
        return float("nan")
    drawn = normals[:, known] * deviations[known]
    return float((drawn.max(axis=1) - drawn.min(axis=1)).mean())
