"""Mean log-loss under smooth constraints on decisions, computed in blocks of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, expit

from secondlook.learners.box_qp import Array
from secondlook.learners.sqp import Point

__all__ = ["Bounds", "SmoothProblem"]

Floats = NDArray[Any]

# A block of rows and its scaled copy fit in a core's second-level cache.
BLOCK_BYTES = 640_000
# Beyond this margin, whose exponential float32 still holds, the log-loss is a line.
LARGEST_MARGIN = 80
# Features are put one after the other by so many rows at once, which the cache holds.
TURNED = 2048
# With fewer features than this, passes over rows cost as much as products of matrices.
NARROW = 32


@dataclass(frozen=True)
class Bounds:
    """The constraints ``c(F) ≤ 0`` as functions of the sums ``F`` of :class:`SmoothProblem`.

    The FDR's is ``F_bad / F_all − max_fdr``, or, with a ``usual`` accepted weight in place of
    ``F_all`` in the denominator, ``(F_bad − max_fdr·F_all) / usual``: that allows the same models,
    bends far less, and so needs far fewer steps, but accepting nobody is no violation of it.
    ``levels`` has the number of rates of each protected attribute; only rates of the same attribute
    are compared.
    """

    max_fdr: float | None = None
    min_selection_rate: float | None = None
    difference: float = 0.0
    levels: tuple[int, ...] = ()
    usual: float | None = None

    @property
    def shared(self) -> int:
        """How many sums come before the groups' rates: accepted weight, accepted bad weight."""
        return 2 if self.max_fdr is not None else int(self.min_selection_rate is not None)

    @property
    def size(self) -> int:
        """How many constraints there are."""
        return self._n_given + sum(n * (n - 1) for n in self.levels)

    def values(self, sums: Array) -> Array:
        """FDR, selection rate and every ordered pair of rates to compare, minus their bounds."""
        c = self._linear_slopes @ sums
        c -= self._limits
        if self.is_ratio:
            c[0] /= self._accepted(sums)
        return c

    @cached_property
    def parts(self) -> Array:
        """Independent linear functions of the sums that all constraints are functions of.

        They are fewer than the sums: the rates of an attribute enter by their differences to its
        first. A ratio needs the sums themselves.
        """
        unit = np.eye(self.shared + sum(self.levels))
        return unit if self.is_ratio else np.concatenate(self._linear_parts(unit))

    def slopes(self, sums: Array) -> Array:
        """Differentiate each constraint by each part."""
        if not self.is_ratio:
            return self._mix
        slopes, accepted = self._linear_slopes.copy(), self._accepted(sums)
        slopes[0, :2] = -sums[1] / accepted / accepted, 1 / accepted
        return slopes

    def curvature(self, sums: Array, slopes: Array, multipliers: Array) -> Array | None:
        """Second derivative of ``multipliers · c`` by the sums; only a ratio has one."""
        if not self.is_ratio:
            return None
        second = np.zeros((sums.size, sums.size))
        cross = -multipliers[0] * slopes[0] / self._accepted(sums)
        second[0] += cross
        second[:, 0] += cross
        return second

    def _linear_parts(self, unit: Array) -> list[Array]:
        """Return the parts where no constraint is a ratio, as blocks of rows."""
        rows, first = [unit[:0]], self.shared
        if self.max_fdr is not None:
            rows.append((unit[1:2] - self.max_fdr * unit[:1]) / (self.usual or 1.0))
        if self.min_selection_rate is not None:
            rows.append(-unit[:1])
        for n in self.levels:
            rows.append(unit[first + 1 : first + n] - unit[first : first + 1])
            first += n
        return rows

    @property
    def _mix(self) -> Array:
        """Slopes of the linear functions of :attr:`_linear_slopes` by the linear parts."""
        return _mix(self._n_given, self.levels)

    @cached_property
    def _linear_slopes(self) -> Array:
        """Slopes of the constraints by the sums, that of a ratio before it is divided."""
        unit = np.eye(self.shared + sum(self.levels))
        return np.asarray(self._mix @ np.concatenate(self._linear_parts(unit)))

    @cached_property
    def _limits(self) -> Array:
        """What the linear functions of the sums may not exceed."""
        limits = np.full(self.size, self.difference)
        limits[: self._n_given] = 0.0
        if self.min_selection_rate is not None:
            limits[self._n_given - 1] = -self.min_selection_rate
        return limits

    @property
    def _n_given(self) -> int:
        """How many constraints do not compare rates."""
        return (self.max_fdr is not None) + (self.min_selection_rate is not None)

    @property
    def is_ratio(self) -> bool:
        """Whether there is a bound on the FDR itself."""
        return self.max_fdr is not None and not self.usual

    @staticmethod
    def _accepted(sums: Array) -> float:
        """Return the accepted weight, to divide by."""
        return max(float(sums[0]), 1e-300)


@lru_cache(maxsize=64)
def _mix(n_given: int, levels: tuple[int, ...]) -> Array:
    """Return what ``n_given`` parts and differences to first levels contribute to constraints.

    The rows are those parts themselves, then one level minus another for every ordered pair of an
    attribute's levels.
    """
    follows = np.array([i > 0 for n in levels for i in range(n)], np.bool_)
    n_parts = n_given + int(follows.sum())
    own = np.zeros((follows.size, n_parts))  # what each level's rate is, beside its first's
    own[follows, n_given:] = np.eye(n_parts - n_given)
    attribute = np.repeat(np.arange(len(levels)), levels)
    same = attribute[:, None] == attribute
    one, other = np.nonzero(same & ~np.eye(attribute.size, dtype=np.bool_))
    mix = np.concatenate((np.eye(n_given, n_parts), own[one] - own[other]))
    mix.setflags(write=False)
    return mix


@dataclass(frozen=True)
class _Pass:
    """What the Hessian reuses of an evaluation: σ, the sums ``F``, the gradients of their parts."""

    likelihood: Floats
    sums: Array
    gradients: Array


class SmoothProblem:
    """Weighted mean log-loss under the smooth constraints, with exact derivatives.

    With weights summing to one, every constraint is a function of few sums ``F_k = Σ b_ki σ_i``:
    the accepted weight, the accepted bad weight, each group's rate; ``basis`` holds the ``b_k`` as
    rows, and ``parts`` the combinations of them that derivatives are needed of. All is computed in
    blocks of rows, and blocks without weight are skipped. ``l2`` has one entry per variable; one
    more than there are features means a last one, the intercept.
    """

    def __init__(
        self,
        X: Floats,
        good_weight: Floats,
        weight: Floats,
        basis: Floats,
        bounds: Bounds,
        l2: Array,
    ) -> None:
        self.X, self.good_weight, self.weight, self.basis = X, good_weight, weight, basis
        self.bounds, self.l2, self.intercept = bounds, l2, l2.size > X.shape[1]
        self.noise = 10.0 * float(np.finfo(X.dtype).eps)
        self.hessian_cost = X.shape[1] / 30
        rows = min(max(BLOCK_BYTES // (X.itemsize * X.shape[1]), 256), 10_240)
        self.ones = np.ones(min(rows, X.shape[0]), X.dtype)
        cuts = range(0, X.shape[0], rows)
        self.blocks = [slice(i, i + rows) for i in cuts if weight[i : i + rows].any()]
        self.parts = self._parts()

    def evaluate(self, x: Array) -> Point:
        """Objective, constraints and their gradients."""
        d, dtype = self.X.shape[1], self.X.dtype
        coef, shift = x[:d].astype(dtype), dtype.type(x[d] if self.intercept else 0)
        likelihood = np.empty_like(self.weight)  # nothing is read where there is no weight
        gradients = np.zeros((len(self.parts) + 1, x.size))
        sums, loss = np.zeros(len(self.basis)), 0.0
        for block in self.blocks:
            X, w, good = self.X[block], self.weight[block], self.good_weight[block]
            p, parts = likelihood[block], self.parts[:, block]
            margin = X @ coef
            margin += shift
            loss -= float(margin @ good)
            if margin.max() > LARGEST_MARGIN:
                loss += float(np.maximum(margin - LARGEST_MARGIN, 0) @ w)
                np.minimum(margin, LARGEST_MARGIN, out=margin)
            # With odds = exp(margin), σ is odds / (1 + odds) and 1 − σ is 1 / (1 + odds): both are
            # exact however small, and the log-loss is log(1 + odds) − y·margin.
            np.exp(margin, out=p)
            against = p + 1
            loss += float(np.log(against, out=margin) @ w)
            np.divide(1, against, out=against)
            p *= against
            columns = np.empty((len(parts) + 1, p.size), dtype)
            np.multiply(p, w, out=columns[0])
            columns[0] -= good
            against *= p
            np.multiply(parts, against, out=columns[1:])
            sums += self.basis[:, block] @ p
            gradients[:, :d] += columns @ X
            if self.intercept:
                gradients[:, d] += columns @ self.ones[: p.size]  # quicker than a sum
        c, jacobian = self.bounds.values(sums), self.bounds.slopes(sums) @ gradients[1:]
        value = loss + 0.5 * float(self.l2 @ (x * x))
        cache = _Pass(likelihood, sums, gradients[1:])
        return Point(x, value, gradients[0] + self.l2 * x, c, jacobian, cache)

    @np.errstate(over="ignore", invalid="ignore")
    def hessian(self, point: Point, multipliers: Array) -> Array:
        """Second derivative of the objective plus ``multipliers · constraints``.

        It is not finite where so few are accepted that a ratio bends beyond all numbers.
        """
        d, done = self.X.shape[1], point.cache
        slopes = self.bounds.slopes(done.sums)
        tilt = (multipliers @ slopes).astype(self.X.dtype)
        second = np.zeros((point.x.size, point.x.size))
        for block in self.blocks:
            X, p, curve = self.X[block], done.likelihood[block], self.weight[block]
            if tilt.any():
                curve = curve + (1 - 2 * p) * (tilt @ self.parts[:, block])
            curve = curve * (p - p * p)
            second[:d, :d] += _weighted_square(X, curve)
            if self.intercept:
                second[d, :d] += curve @ X
                second[d, d] += curve.sum()
        second[:d, d:] = second[d:, :d].T
        second.flat[:: len(second) + 1] += self.l2
        bend = self.bounds.curvature(done.sums, slopes, multipliers)
        if bend is not None:
            second += done.gradients.T @ bend @ done.gradients
        return second

    def total_violations(self, models: Array) -> Array:
        """Sum of constraint excesses of each of several models, one per row."""
        d, sums = self.X.shape[1], np.zeros((len(self.basis), len(models)))
        for block in self.blocks:
            margin = self.X[block] @ models[:, :d].T
            if self.intercept:
                margin += models[:, d]
            sums += self.basis[:, block] @ expit(margin)
        return np.array([np.maximum(self.bounds.values(column), 0).sum() for column in sums.T])

    def rounded(self) -> SmoothProblem | None:
        """Return the same problem in float32, or None if it is already or its range is too small.

        Passes over rows then take half the time, and come within a step or two of the solution.
        """
        if self.X.dtype == np.float32:
            return None
        try:
            with np.errstate(over="raise", under="ignore"):
                X = self._copy(np.float32)
        except FloatingPointError:
            return None
        good, weight = self.good_weight.astype(np.float32), self.weight.astype(np.float32)
        basis = self.basis.astype(np.float32)
        return SmoothProblem(X, good, weight, basis, self.bounds, self.l2)

    def thinned(self, least_rows: int, most: int, least: int = 2) -> SmoothProblem | None:
        """Return the same problem on every k-th row, or None where that leaves too few.

        ``k`` is the largest whole number up to ``most`` that leaves ``least_rows``; below ``least``
        it is not worth it.
        """
        step = min(int(np.count_nonzero(self.weight)) // least_rows, most)
        if step < least:
            return None
        few = slice(None, None, step)
        weight, basis = self.weight[few], self.basis[:, few]
        good, total = self.good_weight[few], float(weight.sum(dtype=np.float64))
        if not 0 < float(good.sum(dtype=np.float64)) < total:
            return None
        # A group that none of these rows belongs to keeps rates of zero and constrains nothing.
        shares = basis.sum(axis=1, dtype=np.float64)
        shares[shares == 0] = 1.0
        shares[: self.bounds.shared] = total
        scaled = (basis / shares[:, None]).astype(self.X.dtype)
        good, weight = ((a / total).astype(self.X.dtype) for a in (good, weight))
        return SmoothProblem(
            self._copy(self.X.dtype, few), good, weight, scaled, self.bounds, self.l2
        )

    def _copy(self, dtype: Any, rows: slice = slice(None)) -> Floats:
        """Return features of some rows, if they are few one after the other in memory."""
        X = self.X[rows]
        if X.shape[1] >= NARROW:
            return X.astype(dtype, order="C")
        columns = np.empty(X.shape[::-1], dtype)
        for at in range(0, len(X), TURNED):
            columns[:, at : at + TURNED] = X[at : at + TURNED].T
        return columns.T

    def unconstrained(self) -> SmoothProblem:
        """Return the same problem without constraints."""
        none = self.basis[:0]
        return SmoothProblem(self.X, self.good_weight, self.weight, none, Bounds(), self.l2)

    def start(self) -> Array:
        """No coefficients, and the intercept that gives the mean outcome."""
        x, share = np.zeros(self.l2.size), float(self.good_weight.sum(dtype=np.float64))
        if self.intercept:
            x[-1] = np.log(share) - np.log1p(-share)
        return x

    def loss_of_the_mean(self) -> float:
        """Mean log-loss of giving everybody the mean outcome."""
        share = float(self.good_weight.sum(dtype=np.float64))
        return float(entr(share) + entr(1.0 - share))

    def use_ratio(self) -> None:
        """Bound the FDR itself from now on, rather than its easier form."""
        if self.bounds.max_fdr is not None:
            self.bounds = replace(self.bounds, usual=None)
            self.parts = self._parts()

    def _parts(self) -> Floats:
        """Combine the basis into what the constraints are made of."""
        if self.bounds.is_ratio or not len(self.basis):
            return self.basis
        return np.asarray(self.bounds.parts.astype(self.X.dtype) @ self.basis)


def _weighted_square(X: Floats, curve: Floats) -> Floats:
    """``Xᵀ diag(curve) X``: a matrix times its own transpose takes half the work of any other."""
    if X.shape[1] < NARROW:  # not that it matters here
        return np.asarray((X.T * curve) @ X)
    root, negative = np.sqrt(np.abs(curve)), curve < 0
    if not negative.any():
        return _square(X, root)
    up, down = (~negative).nonzero()[0], negative.nonzero()[0]
    return _square(X.take(up, axis=0), root[up]) - _square(X.take(down, axis=0), root[down])


def _square(X: Floats, root: Floats) -> Floats:
    scaled = np.einsum("ij,i->ij", X, root)  # quicker than X * root[:, None]
    return np.asarray(scaled.T @ scaled)
