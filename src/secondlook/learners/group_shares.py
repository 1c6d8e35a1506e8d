"""Everybody's share in the rate of each group, which a fairness constraint compares."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secondlook.core.fairness import RateParity
from secondlook.errors import InputError
from secondlook.learners.smooth_problem import Floats

__all__ = ["checked_codes", "group_codes", "group_shares"]

Codes = NDArray[np.intp]


def group_codes(sensitive_features: ArrayLike | None, n_rows: int) -> tuple[Codes, int]:
    """Return the group of each row as a whole number, and how many groups there are.

    Examples
    --------
    >>> codes, n_groups = group_codes(["b", "a", "b"], 3)
    >>> codes.tolist(), n_groups
    ([1, 0, 1], 2)
    """
    group = _one_per_row(sensitive_features, n_rows)
    if group.dtype.kind in "iu" and 0 <= group.min() <= group.max() < n_rows:
        # Whole numbers that can be counted need no sorting.
        there = np.bincount(group) > 0
        if there.all():
            return group.astype(np.intp), int(there.size)
        return (np.cumsum(there) - 1)[group], int(there.sum())
    try:
        names, codes = np.unique(group, return_inverse=True)
    except TypeError:
        raise InputError(
            "sensitive_features must hold values that can be sorted, got mixed types; "
            "turn them all into text or numbers."
        ) from None
    return codes, int(names.size)


def checked_codes(
    sensitive_features: ArrayLike | None, n_rows: int, n_groups: int
) -> tuple[Codes, int]:
    """Return groups that are codes already, since a constraint over attributes tells their levels.

    Examples
    --------
    >>> checked_codes([2, 0], 2, 3)
    (array([2, 0]), 3)
    """
    group = _one_per_row(sensitive_features, n_rows)
    whole = np.issubdtype(group.dtype, np.integer)
    if not whole or (group.size and not 0 <= group.min() <= group.max() < n_groups):
        raise InputError(
            f"with a constraint over attributes, sensitive_features must be codes of the "
            f"{n_groups} groups whose levels it gives, whole numbers from 0 to {n_groups - 1}, got "
            f"others; give codes, or a constraint without attributes."
        )
    return group.astype(np.intp), n_groups


def group_shares(
    fairness: RateParity, group: Codes, n_groups: int, weight: Floats, good: NDArray[np.bool_]
) -> tuple[list[Floats], tuple[int, ...]]:
    """One row per level with counted weight, ``w_i m_i 1{z_i = z} / Σ w m 1{z}``, and their number.

    The levels are those of each attribute in turn, with as many numbers as there are attributes;
    without attributes they are the groups.

    Parameters
    ----------
    fairness
        Says who counts.
    group
        Group of each row, 0 … ``n_groups`` − 1.
    n_groups
        How many groups there may be.
    weight
        Weight of each row.
    good
        Who had the good outcome.

    Examples
    --------
    >>> from secondlook.core.fairness import SelectionRateParity
    >>> good = np.array([True, False, True])
    >>> rows, n = group_shares(SelectionRateParity(), np.array([0, 1, 0]), 2, np.ones(3), good)
    >>> [row.tolist() for row in rows], n
    ([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]], (2,))
    """
    counted = weight * fairness.counts(good.astype(np.int8))
    shares: list[Floats] = []
    sizes = []
    for level_of in fairness.levels(n_groups):
        level = level_of[group]
        totals = np.bincount(level, counted)
        there = np.flatnonzero(totals > 0)
        each = counted / np.where(totals > 0, totals, 1.0).astype(weight.dtype)[level]
        shares += [each * (level == z) for z in there]
        sizes.append(there.size)
    return shares, tuple(sizes)


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
