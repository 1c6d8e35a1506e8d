"""What decisions turned out to be worth, once the truth is known."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["false_discovery_rate", "group_rates", "selection_rate", "true_positive_rate"]


def false_discovery_rate(accepted: ArrayLike, outcomes: ArrayLike) -> float:
    """Return the share of bad among the accepted; NaN with nobody accepted.

    Examples
    --------
    >>> false_discovery_rate([True, True, False], [1, 0, 0])
    0.5
    """
    chosen = np.asarray(outcomes, dtype=float)[np.asarray(accepted, dtype=bool)]
    return float(1 - chosen.mean()) if chosen.size else float("nan")


def selection_rate(accepted: ArrayLike) -> float:
    """Return the share of accepted people; NaN for nobody."""
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
    accepted: ArrayLike, group: ArrayLike, outcomes: ArrayLike | None = None
) -> dict[object, float]:
    """Return each group's selection rate or, given outcomes, its true positive rate.

    Examples
    --------
    >>> group_rates([True, False, True], ["a", "a", "b"])
    {'a': 0.5, 'b': 1.0}
    """
    chosen, names = np.asarray(accepted), np.asarray(group)
    good: NDArray[np.bool_] = (
        np.ones(names.shape, bool) if outcomes is None else np.asarray(outcomes) == 1
    )
    return {z: selection_rate(chosen[good & (names == z)]) for z in np.unique(names).tolist()}
