"""The fit as a problem for a solver: mean log-loss under constraints on expected decisions.

Values and derivatives are exact and are added up over blocks of rows that fit in the processor's
cache, so that no temporary array is as long as the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from secondlook.core.fairness import RateParity
from secondlook.errors import InputError

__all__ = ["FitBounds", "Point", "SmoothProblem", "checked_codes", "group_codes", "group_shares"]

Floats = NDArray[Any]
Array = NDArray[np.float64]
Codes = NDArray[np.intp]

# A block of rows and its scaled copy fit in a core's second-level cache.
BLOCK_BYTES = 640_000


@dataclass(frozen=True)
class FitBounds:
    """The constraints ``c(F) ≤ 0`` as functions of the sums ``F`` of :class:`SmoothProblem`.

    The first two sums are the accepted weight and the accepted bad weight; then come the rates of
    groups. ``levels`` has the number of rates of each protected attribute, and only rates of the
    same attribute are compared.
    """

    max_fdr: float | None = None
    min_selection_rate: float | None = None
    difference: float = 0.0
    levels: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Number of constraints."""
        return int(self.kinds.size)

    @cached_property
    def kinds(self) -> Codes:
        """The bound that each constraint belongs to: 0 FDR, 1 selection rate, 2 fairness."""
        given = [self.max_fdr is not None, self.min_selection_rate is not None]
        return np.repeat([0, 1, 2], [*given, len(self._pairs)])

    def values(self, sums: Array) -> Array:
        """FDR, selection rate and every ordered pair of rates to compare, minus their bounds."""
        first, second = self._pairs.T
        rates = sums[first] - sums[second] - self.difference
        given = []
        if self.max_fdr is not None:
            given.append(sums[1] / _accepted(sums) - self.max_fdr)
        if self.min_selection_rate is not None:
            given.append(self.min_selection_rate - sums[0])
        return np.concatenate((given, rates))

    def slopes(self, sums: Array) -> Array:
        """Differentiate each constraint by each sum."""
        slopes = np.zeros((self.size, sums.size))
        if self.max_fdr is not None:
            accepted = _accepted(sums)
            slopes[0, :2] = -sums[1] / accepted / accepted, 1 / accepted
        if self.min_selection_rate is not None:
            slopes[self.kinds == 1, 0] = -1.0
        rows = np.flatnonzero(self.kinds == 2)
        first, second = self._pairs.T
        slopes[rows, first] = 1.0
        slopes[rows, second] = -1.0
        return slopes

    @cached_property
    def _pairs(self) -> Codes:
        """Positions of the two rates that each fairness constraint compares."""
        pairs: list[tuple[int, ...]] = []
        start = 2
        for n in self.levels:
            pairs += permutations(range(start, start + n), 2)
            start += n
        return np.array(pairs, np.intp).reshape(-1, 2)


def _accepted(sums: Array) -> float:
    """Return the accepted weight, to divide by."""
    return max(float(sums[0]), 1e-300)


@dataclass(frozen=True)
class Point:
    """Objective, constraints and their first derivatives at ``x``."""

    x: Array
    value: float
    gradient: Array
    constraints: Array
    jacobian: Array

    @property
    def worst(self) -> float:
        """Largest amount by which a constraint is exceeded, 0 if none is."""
        return float(self.constraints.max(initial=0.0))

    @property
    def violation(self) -> float:
        """Sum of the amounts by which constraints are exceeded."""
        return float(np.maximum(self.constraints, 0.0).sum())


class SmoothProblem:
    """Weighted mean log-loss under the smooth constraints, with exact first derivatives.

    With weights summing to one, every constraint is a function of few sums ``F_k = Σ b_ki σ_i``;
    ``basis`` holds the ``b_k`` as rows. Blocks without weight are skipped. ``l2`` has one entry per
    variable; if there is one more than there are features, the last one is the intercept. Features
    in float32 stay as they are and are widened block by block.
    """

    def __init__(
        self,
        X: Floats,
        good_weight: Array,
        weight: Array,
        basis: Array,
        bounds: FitBounds,
        l2: Array,
    ) -> None:
        self.X, self.good_weight, self.weight, self.basis = X, good_weight, weight, basis
        self.bounds, self.l2, self.intercept = bounds, l2, l2.size > X.shape[1]
        rows = min(max(BLOCK_BYTES // (8 * X.shape[1]), 256), 10_240)
        starts = range(0, X.shape[0], rows)
        self.blocks = [slice(i, i + rows) for i in starts if weight[i : i + rows].any()]

    def evaluate(self, x: Array) -> Point:
        """Return objective and constraints with their gradients."""
        d = self.X.shape[1]
        gradients = np.zeros((len(self.basis) + 1, x.size))
        sums, loss = np.zeros(len(self.basis)), 0.0
        for block in self.blocks:
            X, w, good = self._features(block), self.weight[block], self.good_weight[block]
            basis = self.basis[:, block]
            margin = X @ x[:d]
            if self.intercept:
                margin += x[d]
            # One exponential that cannot overflow serves the loss, σ and σ(1 − σ).
            small = np.exp(-np.abs(margin))
            larger = 1 / (1 + small)
            loss += float((np.maximum(margin, 0) - np.log(larger)) @ w - margin @ good)
            p = np.where(margin > 0, larger, small * larger)
            columns = np.empty((len(basis) + 1, p.size))
            columns[0] = p * w - good
            np.multiply(basis, small * larger * larger, out=columns[1:])
            sums += basis @ p
            gradients[:, :d] += columns @ X
            if self.intercept:
                gradients[:, d] += columns.sum(axis=1)
        value = loss + 0.5 * float(self.l2 @ (x * x))
        jacobian = self.bounds.slopes(sums) @ gradients[1:]
        c = self.bounds.values(sums)
        return Point(x, value, gradients[0] + self.l2 * x, c, jacobian)

    def loss_hessian(self, x: Array) -> Array:
        """Return the second derivative of the objective."""
        d = self.X.shape[1]
        second = np.zeros((x.size, x.size))
        for block in self.blocks:
            X = self._features(block)
            p = expit(X @ x[:d] + (x[d] if self.intercept else 0.0))
            # A matrix times its own transpose takes half the work of a general product.
            root = np.sqrt(self.weight[block] * p * (1 - p))
            scaled = X * root[:, None]
            second[:d, :d] += scaled.T @ scaled
            if self.intercept:
                second[d, :d] += root @ scaled
                second[d, d] += root @ root
        second[:d, d:] = second[d:, :d].T
        second.flat[:: len(second) + 1] += self.l2
        return second

    def mean_model(self) -> Array:
        """Return the model that gives every row the mean outcome, or 0.5 without an intercept."""
        x = np.zeros(self.l2.size)
        if self.intercept:
            share = float(self.good_weight.sum())
            x[-1] = np.log(share) - np.log1p(-share)
        return x

    def _features(self, block: slice) -> Array:
        return self.X[block].astype(np.float64, copy=False)


def group_codes(sensitive_features: ArrayLike | None, n_rows: int) -> tuple[Codes, int]:
    """Return the group of each row as a whole number, and how many groups there are.

    Examples
    --------
    >>> codes, n_groups = group_codes(["b", "a", "b"], 3)
    >>> codes.tolist(), n_groups
    ([1, 0, 1], 2)
    """
    group = _one_per_row(sensitive_features, n_rows)
    try:
        names, codes = np.unique(group, return_inverse=True)
    except TypeError:
        raise InputError(
            "sensitive_features must hold values that can be sorted, got mixed types; "
            "turn them all into text or numbers."
        ) from None
    return codes, int(names.size)


def checked_codes(sensitive_features: ArrayLike | None, n_rows: int, n_groups: int) -> Codes:
    """Return groups that must be codes, since a constraint over attributes names their levels."""
    group = _one_per_row(sensitive_features, n_rows)
    whole = np.issubdtype(group.dtype, np.integer)
    if not whole or (group.size and not 0 <= group.min() <= group.max() < n_groups):
        raise InputError(
            f"with a constraint over attributes, sensitive_features must be codes of the "
            f"{n_groups} groups that it names levels for, from 0 to {n_groups - 1}; "
            f"give codes, or a constraint without attributes."
        )
    return group.astype(np.intp)


def group_shares(
    fairness: RateParity, group: Codes, n_groups: int, weight: Array, good: NDArray[np.bool_]
) -> tuple[list[Array], tuple[int, ...]]:
    """Return each row's share in the rates to compare, and the number of rates per attribute.

    A rate belongs to a level of an attribute, or to a group if the constraint has no attributes;
    its shares are ``w_i m_i 1{z_i = z} / Σ w m 1{z}``. Levels without counted weight are left out.

    Examples
    --------
    >>> from secondlook.core.fairness import SelectionRateParity
    >>> good = np.array([True, False, True])
    >>> rows, n = group_shares(SelectionRateParity(), np.array([0, 1, 0]), 2, np.ones(3), good)
    >>> [row.tolist() for row in rows], n
    ([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]], (2,))
    """
    counted = weight * fairness.counts(good.astype(np.int8))
    shares: list[Array] = []
    sizes = []
    for level_of in fairness.levels(n_groups):
        level = level_of[group]
        totals = np.bincount(level, counted)
        present = np.flatnonzero(totals > 0)
        shares += [counted * (level == z) / totals[z] for z in present]
        sizes.append(present.size)
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
