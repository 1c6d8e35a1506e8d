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

from fairchance.core.fairness import RateParity
from fairchance.errors import InputError

__all__ = [
    "FitBounds",
    "Point",
    "SmoothProblem",
    "SmoothRates",
    "checked_codes",
    "group_codes",
    "smooth_rates",
]

Floats = NDArray[Any]
Array = NDArray[np.float64]
Codes = NDArray[np.intp]

# A block of rows and its scaled copy fit in a core's second-level cache.
BLOCK_BYTES = 640_000
# Weights to divide by are at least this, and what remains of a weight of 1 at least that.
_LEAST, _LEAST_REST = 1e-300, 1e-9


@dataclass(frozen=True)
class SmoothRates:
    """Rates of groups as quotients of sums: ``(start + F) / (rest + F')``.

    Parameters
    ----------
    start, rest
        The part and the whole of each rate if no one is accepted.
    part, whole
        Position among the sums of what accepting adds to the part, and to the whole; −1 if it adds
        nothing to the whole.
    levels
        Number of rates in each set that is compared: for each protected attribute and each rate of
        the constraint, the levels of the attribute.
    """

    start: Array
    rest: Array
    part: Codes
    whole: Codes
    levels: tuple[int, ...]

    def values(self, sums: Array) -> Array:
        """Return the rates."""
        return np.asarray((self.start + sums[self.part]) / self._whole(sums))

    def slopes(self, sums: Array) -> Array:
        """Differentiate each rate by each sum."""
        slopes, at = np.zeros((self.part.size, sums.size)), np.arange(self.part.size)
        slopes[at, self.part] = 1 / self._whole(sums)
        varies = np.flatnonzero(self.whole >= 0)
        slopes[varies, self.whole[varies]] -= (self.values(sums) / self._whole(sums))[varies]
        return slopes

    def _whole(self, sums: Array) -> Array:
        added = np.where(self.whole >= 0, sums[self.whole], 0.0)
        # What remains of a rest has lost its digits if nearly all of it is taken away.
        least = np.where(self.rest > 0, _LEAST_REST, _LEAST)
        return np.asarray(np.maximum(self.rest + added, least))


_NO_RATES = SmoothRates(np.zeros(0), np.zeros(0), np.zeros(0, np.intp), np.zeros(0, np.intp), ())


@dataclass(frozen=True)
class FitBounds:
    """The constraints ``c(F) ≤ 0`` as functions of the sums ``F`` of :class:`SmoothProblem`.

    The first two sums are the accepted weight and the accepted bad weight. Every two rates ``a``
    and ``b`` that are compared must keep ``ratio · a − b ≤ difference``.
    """

    max_fdr: float | None = None
    min_selection_rate: float | None = None
    ratio: float = 1.0
    difference: float = 0.0
    rates: SmoothRates = _NO_RATES

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
        rates = self.rates.values(sums)
        given = []
        if self.max_fdr is not None:
            given.append(sums[1] / _accepted(sums) - self.max_fdr)
        if self.min_selection_rate is not None:
            given.append(self.min_selection_rate - sums[0])
        return np.concatenate((given, self.ratio * rates[first] - rates[second] - self.difference))

    def slopes(self, sums: Array) -> Array:
        """Differentiate each constraint by each sum."""
        slopes = np.zeros((self.size, sums.size))
        if self.max_fdr is not None:
            accepted = _accepted(sums)
            slopes[0, :2] = -sums[1] / accepted / accepted, 1 / accepted
        if self.min_selection_rate is not None:
            slopes[self.kinds == 1, 0] = -1.0
        first, second = self._pairs.T
        rates = self.rates.slopes(sums)
        slopes[self.kinds == 2] = self.ratio * rates[first] - rates[second]
        return slopes

    @cached_property
    def _pairs(self) -> Codes:
        """Positions of the two rates that each fairness constraint compares."""
        pairs: list[tuple[int, ...]] = []
        start = 0
        for n in self.rates.levels:
            pairs += permutations(range(start, start + n), 2)
            start += n
        return np.array(pairs, np.intp).reshape(-1, 2)


def _accepted(sums: Array) -> float:
    """Return the accepted weight, to divide by."""
    return max(float(sums[0]), _LEAST)


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


def smooth_rates(
    fairness: RateParity,
    group: Codes,
    n_groups: int,
    weight: Array,
    good: NDArray[np.bool_],
    first: int,
) -> tuple[list[Array], SmoothRates]:
    """Return the rows of ``basis`` that rates of groups need, and the rates as functions of them.

    A rate belongs to a level of an attribute, or to a group if the constraint has no attributes.
    Levels whose rate has no weight whatever is decided are left out.

    ``first`` is the number of rows of ``basis`` before these.

    Examples
    --------
    >>> from fairchance.core.fairness import SelectionRateParity
    >>> good = np.array([True, False, True])
    >>> zeros = np.array([0, 1, 0])
    >>> rows, rates = smooth_rates(SelectionRateParity(), zeros, 2, np.ones(3), good, 0)
    >>> [row.tolist() for row in rows], rates.levels
    ([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]], (2,))
    """
    rows: list[Array] = []
    start, rest, part, whole, levels = [], [], [], [], []
    for level_of in fairness.levels(n_groups):
        level = level_of[group]
        for rate in fairness.compared:
            # Of each row, whether it counts if it is rejected, and if it is accepted.
            parts, wholes = (
                (np.where(good, k[1], k[0]), np.where(good, k[3], k[2]))
                for k in (rate.part, rate.whole)
            )
            n = 0
            for z in range(int(level_of.max()) + 1):
                mine = weight * (level == z)
                total = float(mine @ np.maximum(*wholes))
                if total <= 0:
                    continue
                mine, n = mine / total, n + 1
                start.append(mine @ parts[0])
                rest.append(mine @ wholes[0])
                part.append(first + len(rows))
                rows.append(mine * (parts[1] - parts[0]))
                whole.append(first + len(rows) if rate.is_of_decided else -1)
                if rate.is_of_decided:
                    rows.append(mine * (wholes[1] - wholes[0]))
            levels.append(n)
    return rows, SmoothRates(
        np.array(start),
        np.array(rest),
        np.array(part, np.intp),
        np.array(whole, np.intp),
        tuple(levels),
    )


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
