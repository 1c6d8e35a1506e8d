"""Everybody's share in the rate of each group, which a fairness constraint compares."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secondlook.errors import InputError
from secondlook.fairness import RateParity
from secondlook.learners.smooth_problem import Floats

__all__ = ["group_shares"]


def group_shares(
    fairness: RateParity,
    sensitive_features: ArrayLike | None,
    weight: Floats,
    good: NDArray[np.bool_],
) -> Floats:
    """One row per group with counted weight: ``w_i m_i 1{z_i = z} / Σ w m 1{z}``.

    Parameters
    ----------
    fairness
        Says who counts.
    sensitive_features
        Group of each row, of any type that can be sorted.
    weight
        Weight of each row.
    good
        Who had the good outcome.

    Examples
    --------
    >>> from secondlook.fairness import SelectionRateParity
    >>> good = np.array([True, False, True])
    >>> group_shares(SelectionRateParity(), ["a", "b", "a"], np.ones(3), good).tolist()
    [[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]]
    """
    group = _one_per_row(sensitive_features, len(weight))
    counted = weight * fairness.counts(good.astype(np.int8))
    rows = [counted * (group == name) for name in _names(group)]
    totals = [row.sum(dtype=np.float64) for row in rows]
    shares = [row / total for row, total in zip(rows, totals, strict=True) if total > 0]
    return np.array(shares, dtype=weight.dtype).reshape(-1, len(weight))


def _one_per_row(sensitive_features: ArrayLike | None, n_rows: int) -> NDArray[np.generic]:
    """Return the groups as an array with one entry per row."""
    if sensitive_features is None:
        raise InputError(
            "fairness bounds a difference between groups and needs the group of every row, "
            "got sensitive_features=None; pass sensitive_features to fit or set fairness=None."
        )
    group = np.asarray(sensitive_features)
    if group.shape != (n_rows,):
        raise InputError(
            f"sensitive_features must be one-dimensional with one group per row, of shape "
            f"({n_rows},), got {group.shape}; pass one value for each row of X."
        )
    return group


def _names(group: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return each group once, in order."""
    try:
        return np.unique(group)
    except TypeError:
        raise InputError(
            "sensitive_features must hold values that can be sorted, got mixed types; "
            "turn them all into text or numbers."
        ) from None
