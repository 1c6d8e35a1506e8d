"""Rates of decisions, once outcomes are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secondlook.core.groups import crossed_and_each
from secondlook.errors import InputError
from secondlook.frames import as_array, column

__all__ = [
    "GroupMetrics",
    "by_group",
    "false_discovery_rate",
    "group_rates",
    "selection_rate",
    "true_positive_rate",
]


def false_discovery_rate(accepted: ArrayLike, outcomes: ArrayLike) -> float:
    """Return the share of bad among the accepted; NaN if none is accepted.

    Examples
    --------
    >>> false_discovery_rate([True, True, False], [1, 0, 0])
    0.5
    """
    chosen = np.asarray(outcomes, dtype=float)[np.asarray(accepted, dtype=bool)]
    return float(1 - chosen.mean()) if chosen.size else float("nan")


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


def group_rates(
    accepted: ArrayLike, group: Any, outcomes: ArrayLike | None = None
) -> dict[object, float]:
    """Return each group's selection rate or, given outcomes, its true positive rate.

    With several columns in ``group``, each combination that occurs is a group.

    Examples
    --------
    >>> group_rates([True, False, True], ["a", "a", "b"])
    {'a': 0.5, 'b': 1.0}
    """
    chosen = np.asarray(accepted)
    (_, names, codes), _ = crossed_and_each(group, chosen.shape[0])
    good: NDArray[np.bool_] = (
        np.ones(codes.shape, bool) if outcomes is None else np.asarray(outcomes) == 1
    )
    return {z: selection_rate(chosen[good & (codes == i)]) for i, z in enumerate(names.tolist())}


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
    true_positive_rate
        Share of accepted among the good; NaN without good ones, or if an outcome is not known.
    false_discovery_rate
        Share of bad among the accepted with a known outcome; NaN if there are none.
    """

    attribute: str
    group: Any
    n_people: int
    n_accepted: int
    selection_rate: float
    true_positive_rate: float
    false_discovery_rate: float


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
    chosen: NDArray[np.float64],
    outcome: NDArray[np.float64],
) -> list[GroupMetrics]:
    known = ~np.isnan(outcome)
    good = outcome == 1

    def count(rows: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(np.bincount(codes, rows, names.size), dtype=np.float64)

    people, accepted = count(np.ones(codes.size)), count(chosen)
    with np.errstate(invalid="ignore"):
        bad = count(chosen * (known & ~good)) / count(chosen * known)
        true_positive = np.where(count(~known) > 0, np.nan, count(chosen * good) / count(good))
        rate = accepted / people
    table = np.column_stack([rate, true_positive, bad]).tolist()
    counts = np.column_stack([people, accepted]).astype(int).tolist()
    return [
        GroupMetrics(title, name, *count, *rates)
        for name, count, rates in zip(names.tolist(), counts, table, strict=True)
    ]
