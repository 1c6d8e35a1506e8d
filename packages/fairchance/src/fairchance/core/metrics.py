"""Rates of decisions once outcomes are known, by group, and how far they are apart.

A log under partial feedback shows the outcomes of the accepted only. From it the selection rate and
the false discovery rate follow at once. The true and the false positive rate and the false omission
rate also need the outcomes of the rejected: here they are NaN unless all are known, and the
learners estimate them from the accepted with the weights η_w.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from fairchance.core.groups import crossed_and_each
from fairchance.errors import InputError
from fairchance.frames import as_array, column

__all__ = [
    "FALSE_DISCOVERY_RATE",
    "FALSE_OMISSION_RATE",
    "FALSE_POSITIVE_RATE",
    "RATES",
    "SELECTION_RATE",
    "TRUE_POSITIVE_RATE",
    "ConfusionRate",
    "Disparity",
    "GroupMetrics",
    "by_group",
    "difference",
    "disparities",
    "exact_interval",
    "false_discovery_rate",
    "false_omission_rate",
    "false_positive_rate",
    "ratio",
    "selection_rate",
    "true_positive_rate",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ConfusionRate:
    """Share of some of the four kinds of decisions: rejected or accepted, bad or good.

    Parameters
    ----------
    name
        The rate's name, as that of an attribute.
    part, whole
        Whether the rejected bad, the rejected good, the accepted bad and the accepted good count,
        1 or 0 each, as numerator and as denominator; this is the order of γ.

    Examples
    --------
    >>> float(FALSE_DISCOVERY_RATE(5, 2, 1, 3))  # 1 bad among 4 accepted
    0.25
    """

    name: str
    part: tuple[int, int, int, int]
    whole: tuple[int, int, int, int]

    def __call__(
        self,
        rejected_bad: ArrayLike,
        rejected_good: ArrayLike,
        accepted_bad: ArrayLike,
        accepted_good: ArrayLike,
    ) -> Floats:
        """Return the rate from the number or weight of each kind; NaN if the whole is 0."""
        kinds = rejected_bad, rejected_good, accepted_bad, accepted_good
        part, whole = (
            np.asarray(
                sum(np.asarray(kind, np.float64) for kind in itertools.compress(kinds, used))
            )
            for used in (self.part, self.whole)
        )
        out = np.full(whole.shape, np.nan)
        return np.asarray(np.divide(part, whole, out=out, where=whole > 0))

    @property
    def is_of_decided(self) -> bool:
        """Whether decisions change the whole, so that the rate is not linear in them."""
        return self.whole[:2] != self.whole[2:]


SELECTION_RATE = ConfusionRate("selection_rate", (0, 0, 1, 1), (1, 1, 1, 1))
TRUE_POSITIVE_RATE = ConfusionRate("true_positive_rate", (0, 0, 0, 1), (0, 1, 0, 1))
FALSE_POSITIVE_RATE = ConfusionRate("false_positive_rate", (0, 0, 1, 0), (1, 0, 1, 0))
FALSE_DISCOVERY_RATE = ConfusionRate("false_discovery_rate", (0, 0, 1, 0), (0, 0, 1, 1))
FALSE_OMISSION_RATE = ConfusionRate("false_omission_rate", (0, 1, 0, 0), (1, 1, 0, 0))
RATES = (
    SELECTION_RATE,
    TRUE_POSITIVE_RATE,
    FALSE_POSITIVE_RATE,
    FALSE_DISCOVERY_RATE,
    FALSE_OMISSION_RATE,
)


def exact_interval(bad: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the exact confidence interval of a share (Clopper and Pearson).

    At its lower end ``bad`` or more, and at its upper end ``bad`` or fewer of ``n`` have the
    probability (1 − ``confidence``) / 2.

    Examples
    --------
    >>> [round(end, 3) for end in exact_interval(3, 40)]
    [0.016, 0.204]
    """
    tail = (1 - confidence) / 2
    low = betaincinv(bad, n - bad + 1, tail) if bad > 0 else 0.0
    high = betaincinv(bad + 1, n - bad, 1 - tail) if bad < n else 1.0
    return float(low), float(high)


def selection_rate(accepted: ArrayLike) -> float:
    """Return the share of accepted applicants; NaN without applicants."""
    chosen = np.asarray(accepted, dtype=float)
    return float(chosen.mean()) if chosen.size else float("nan")


def true_positive_rate(accepted: ArrayLike, outcomes: ArrayLike) -> float:
    """Return the share of accepted among the good; NaN without good ones.

    Examples
    --------
    >>> true_positive_rate([True, False, True], [1, 1, 0])
    0.5
    """
    return selection_rate(np.asarray(accepted)[np.asarray(outcomes) == 1])


def false_positive_rate(accepted: ArrayLike, outcomes: ArrayLike) -> float:
    """Return the share of accepted among the bad; NaN without bad ones."""
    return selection_rate(np.asarray(accepted)[np.asarray(outcomes) == 0])


def false_discovery_rate(accepted: ArrayLike, outcomes: ArrayLike) -> float:
    """Return the share of bad among the accepted; NaN if none is accepted.

    Examples
    --------
    >>> false_discovery_rate([True, True, False], [1, 0, 0])
    0.5
    """
    return 1 - selection_rate(np.asarray(outcomes)[np.asarray(accepted, dtype=bool)])


def false_omission_rate(accepted: ArrayLike, outcomes: ArrayLike) -> float:
    """Return the share of good among the rejected; NaN if none is rejected."""
    return selection_rate(np.asarray(outcomes)[~np.asarray(accepted, dtype=bool)])


def difference(rates: ArrayLike) -> Floats:
    """Return the largest minus the smallest rate along the last axis, as fairlearn does.

    Rates that are NaN are left out; with fewer than two others the result is NaN.

    Examples
    --------
    >>> float(difference([0.5, 0.8, np.nan])), float(ratio([0.5, 0.8, np.nan]))
    (0.30000000000000004, 0.625)
    """
    smallest, largest = _ends(rates)
    return largest - smallest


def ratio(rates: ArrayLike) -> Floats:
    """Return the smallest over the largest rate along the last axis, as fairlearn does.

    Rates that are NaN are left out; with fewer than two others, or if all are 0, the result is NaN.
    """
    smallest, largest = _ends(rates)
    out = np.full(largest.shape, np.nan)
    return np.asarray(np.divide(smallest, largest, out=out, where=largest > 0))


def _ends(rates: ArrayLike) -> tuple[Floats, Floats]:
    """Return the smallest and the largest known rate along the last axis; NaN if not comparable."""
    rates = np.asarray(rates, dtype=np.float64)
    alone = (~np.isnan(rates)).sum(axis=-1) < 2
    low, high = (end.reduce(rates, axis=-1, initial=np.nan) for end in (np.fmin, np.fmax))
    return np.where(alone, np.nan, low), np.where(alone, np.nan, high)


@dataclass(frozen=True)
class GroupMetrics:
    """Counts and rates of one group.

    Attributes
    ----------
    attribute
        Name of the protected attribute; names of all for a combination.
    group
        A value of the attribute, or a combination of values.
    n_people, n_accepted
        Number of applicants, and of accepted ones.
    selection_rate
        Share of accepted applicants.
    true_positive_rate, false_positive_rate
        Share of accepted among the good, and among the bad; NaN without such applicants, or if an
        outcome is not known.
    false_discovery_rate
        Share of bad among the accepted with a known outcome; NaN if there are none.
    false_omission_rate
        Share of good among the rejected; NaN if there are none, or if the outcome of one is not
        known.
    """

    attribute: str
    group: Any
    n_people: int
    n_accepted: int
    selection_rate: float
    true_positive_rate: float
    false_positive_rate: float
    false_discovery_rate: float
    false_omission_rate: float


def by_group(
    accepted: Any,
    sensitive_features: Any,
    outcomes: Any = None,
    *,
    attributes: Literal["crossed", "side_by_side"] = "crossed",
) -> tuple[GroupMetrics, ...]:
    """Return the rates of every group, from one protected attribute or several.

    Parameters
    ----------
    accepted
        Which applicants were accepted.
    sensitive_features
        One column, or a frame or array with several.
    outcomes
        1 for good, 0 for bad, NaN for not known; None if none is.
    attributes
        ``"crossed"``: a row for each combination that occurs; ``"side_by_side"``: for each value of
        each attribute.

    Examples
    --------
    >>> people = [["f", "old"], ["f", "young"], ["m", "old"], ["m", "old"]]
    >>> rows = by_group([1, 0, 1, 1], people, [1, 1, 0, 1], attributes="side_by_side")
    >>> [(row.group, row.selection_rate, row.true_positive_rate) for row in rows]
    [('f', 0.5, 0.5), ('m', 1.0, 1.0), ('old', 1.0, 1.0), ('young', 0.0, 0.0)]
    """
    if attributes not in ("crossed", "side_by_side"):
        raise InputError(f"attributes must be 'crossed' or 'side_by_side', got {attributes!r}.")
    chosen = as_array(accepted).astype(np.float64)
    n = chosen.shape[0]
    outcome = np.full(n, np.nan) if outcomes is None else _outcomes(outcomes, n)
    crossed, each = crossed_and_each(sensitive_features, n)
    return tuple(
        row
        for title, names, codes in ([crossed] if attributes == "crossed" else each)
        for row in _rows(title, names, codes, chosen, outcome)
    )


def _outcomes(outcomes: Any, n: int) -> NDArray[np.float64]:
    values = column(outcomes, n, "outcomes", per="person").astype(np.float64)
    strange = values[(values != 0) & (values != 1) & ~np.isnan(values)]
    if strange.size:
        raise InputError(
            f"outcomes must be 1 (good), 0 (bad) or NaN (not known), got {strange[0]}; map them."
        )
    return values


def _rows(
    title: str,
    names: NDArray[Any],
    codes: NDArray[np.intp],
    chosen: Floats,
    outcome: Floats,
) -> list[GroupMetrics]:
    def count(rows: NDArray[Any]) -> Floats:
        return np.asarray(np.bincount(codes, rows, names.size), dtype=np.float64)

    kinds = [count(d * (outcome == y)) for d in (1 - chosen, chosen) for y in (0, 1)]
    people, accepted, unknown = count(np.ones(codes.size)), count(chosen), np.isnan(outcome)
    complete, rejected_known = count(unknown) == 0, count((1 - chosen) * unknown) == 0
    rates = [
        accepted / people,
        np.where(complete, TRUE_POSITIVE_RATE(*kinds), np.nan),
        np.where(complete, FALSE_POSITIVE_RATE(*kinds), np.nan),
        FALSE_DISCOVERY_RATE(*kinds),
        np.where(rejected_known, FALSE_OMISSION_RATE(*kinds), np.nan),
    ]
    counts = np.column_stack([people, accepted]).astype(int).tolist()
    return [
        GroupMetrics(title, name, *count, *row)
        for name, count, row in zip(
            names.tolist(), counts, np.column_stack(rates).tolist(), strict=True
        )
    ]


@dataclass(frozen=True)
class Disparity:
    """How far a rate of the groups of one attribute is apart.

    Attributes
    ----------
    attribute
        Name of the protected attribute; names of all for combinations.
    rate
        A rate of :class:`GroupMetrics`, or ``"equalized_odds"``: the worse of the true and the
        false positive rate.
    difference
        Largest minus smallest rate of a group; NaN with fewer than two.
    ratio
        Smallest over largest rate of a group; NaN with fewer than two, or if all are 0.
    """

    attribute: str
    rate: str
    difference: float
    ratio: float


def disparities(groups: Iterable[GroupMetrics]) -> tuple[Disparity, ...]:
    """Return the differences and ratios of all rates between the groups of each attribute.

    Examples
    --------
    >>> rows = by_group([1, 0, 1, 1], ["f", "f", "m", "m"], [1, 0, 1, 0])
    >>> for row in disparities(rows)[:3]:
    ...     print(row.rate, row.difference, row.ratio)
    selection_rate 0.5 0.5
    true_positive_rate 0.0 1.0
    false_positive_rate 1.0 0.0
    """
    rows = tuple(groups)
    return tuple(
        Disparity(attribute, name, float(np.max(difference(rates))), float(np.min(ratio(rates))))
        for attribute in dict.fromkeys(row.attribute for row in rows)
        for name, rates in _compared([row for row in rows if row.attribute == attribute])
    )


def _compared(rows: list[GroupMetrics]) -> list[tuple[str, Floats]]:
    rates = {rate.name: np.array([[getattr(row, rate.name) for row in rows]]) for rate in RATES}
    odds = np.vstack([rates["true_positive_rate"], rates["false_positive_rate"]])
    return [*rates.items(), ("equalized_odds", odds)]
