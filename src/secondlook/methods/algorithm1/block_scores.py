"""Scores of people, block by block, under many likelihoods at once.

Blocks stay in the cache; linear likelihoods share one matrix product and one tanh.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.frames import n_rows, take
from secondlook.methods.algorithm1.hurdles import Hurdles, LogOddsHurdles
from secondlook.people.likelihoods import Likelihood, LinearLikelihood

__all__ = ["Bar", "BlockScores", "Scorer"]

Floats = NDArray[np.floating]
Groups = NDArray[np.intp]

# Rows in a block: few enough that one block's scores under some 40 policies stay in the cache, and
# so many more where fewer policies are asked for.
_LINEAR_BLOCK, _POLICIES, _LARGEST_BLOCK = 2048, 40, 16384
# Estimators that are not linear cost a call each; fewer and larger blocks suit them.
_BLOCK = 65536


class Scorer:
    """Likelihoods made ready to score people of one kind of features, block by block.

    Parameters
    ----------
    likelihoods
        Of which there may be more later; those are not scored.
    X
        Any features of the kind.
    """

    def __init__(self, likelihoods: list[Likelihood], X: Any) -> None:
        self._likelihoods = likelihoods
        self._stack = Stack.of(likelihoods, X)
        # Scores have the precision of the features under linear models, else double.
        self.dtype: Any = np.dtype(np.float64) if self._stack is None else X.dtype

    def bar(self, weights: NDArray[np.float64], level: float) -> Bar:
        """Make a level ready that weighted sums of scores will be compared with."""
        return Bar.of(weights, level, self._stack)

    def hurdles(self, likelihoods: NDArray[np.intp], cuts: Floats) -> Hurdles:
        """Make the scores ready from which some likelihoods accept, in a table (group, round)."""
        stack = self._stack
        if stack is None:
            return Hurdles(likelihoods, cuts)
        linear = stack.half_coef[:, likelihoods], stack.half_intercept[likelihoods]
        return Hurdles(likelihoods, cuts, LogOddsHurdles.of(*linear, cuts))

    def blocks(
        self,
        X: Any,
        group: Groups,
        rows: NDArray[np.intp] | None = None,
        *,
        n_asked: int = _POLICIES,
    ) -> Iterator[tuple[Any, BlockScores]]:
        """Yield rows in blocks with their scores, which are computed when asked for.

        ``n_asked`` is about how many likelihoods will be asked for.
        """
        stack = self._stack
        larger = min(max(_LINEAR_BLOCK * _POLICIES // n_asked, _LINEAR_BLOCK), _LARGEST_BLOCK)
        step = _BLOCK if stack is None else larger
        first, end, chosen = 0, n_rows(X), rows
        if rows is not None:
            first, end = 0, rows.size
            if end and rows[-1] - rows[0] == end - 1 and np.all(rows[1:] > rows[:-1]):
                # Rows one after the other need no copy.
                first, end, chosen = int(rows[0]), int(rows[-1]) + 1, None
        for at in range(first, end, step):
            block: Any = slice(at, min(at + step, end))
            block = block if chosen is None else chosen[block]
            if stack is not None:
                yield block, LinearScores(take(X, block), group[block], stack)
            else:
                yield block, BlockScores(take(X, block), group[block], self._likelihoods)


@dataclass(frozen=True)
class Bar:
    """A level that a weighted sum of scores may exceed, with a weight ≥ 0 for each likelihood.

    Linear likelihoods that differ little are answered for by their mean. With half log-odds ``h_k``
    of mean ``h``, their sum ``Σ w_k σ_k`` is ``½ Σ w·(1 + tanh h)`` up to ``q/(3√3)`` where
    ``q = Σ w_k (h_k − h)²``: terms of first order cancel, and the second derivative of tanh is at
    most ``4/(3√3)``. So with ``cut = level/(½ Σ w) − 1`` the sum is above the level where tanh h is
    above the cut by more than ``error = q/(3√3·½ Σ w)``, and below it where it is as far below.

    The error is a quadratic form of the features. Quickly told, it is at most
    ``Σ_j bound_j·x_j² + least_error``: a product of two of them is no more than half the sum of
    their squares, in units in which the likelihoods differ by as much in the one as in the other.
    ``spread`` maps features to numbers whose squares sum to it, with ``spread_intercept`` added to
    the first.
    """

    weights: NDArray[np.float64]
    level: float
    cut: float = np.nan
    mean: Floats | None = None
    intercept: float = np.nan
    bound: Floats | None = None
    least_error: float = np.nan
    spread: Floats | None = None
    spread_intercept: float = np.nan

    @staticmethod
    def of(weights: NDArray[np.float64], level: float, stack: Stack | None) -> Bar:
        """Return the bar for likelihoods in a stack, or for others."""
        if stack is None:
            return Bar(weights, level)
        half = np.vstack((stack.half_intercept, stack.half_coef)).astype(np.float64)
        mean, most = half @ (weights / weights.sum()), weights.sum() / 2
        dtype = stack.half_coef.dtype
        with np.errstate(invalid="ignore"):  # with an infinite intercept nothing is sure
            apart = (half - mean[:, None]) * np.sqrt(weights / (np.sqrt(27) * most))
            form = apart @ apart.T
            unit = np.sqrt(np.maximum(np.diag(form), np.finfo(np.float64).tiny))
            bound = unit * (np.abs(form) @ (1 / unit))
            # A triangle has one entry in its first column, which is that of the intercepts.
            spread: Any = np.linalg.qr(apart.T, mode="r")
        return Bar(
            weights,
            level,
            cut=level / most - 1,
            mean=mean[1:].astype(dtype),
            intercept=float(mean[0]),
            bound=bound[1:].astype(dtype),
            least_error=float(bound[0]),
            spread=spread[:, 1:].astype(dtype),
            spread_intercept=float(spread[0, 0]),
        )


class BlockScores:
    """Scores of one block of people under any likelihoods, computed when asked for."""

    def __init__(self, X: Any, group: Groups, likelihoods: list[Likelihood]) -> None:
        self.X, self.group = X, group
        self._likelihoods = likelihoods
        self._known: dict[int, Floats] = {}

    def score(self, position: int) -> Floats:
        """Return the block's scores under one likelihood."""
        if position not in self._known:
            self._known[position] = self._likelihoods[position].score(self.X, self.group)
        return self._known[position]

    def part(self, rows: NDArray[np.intp]) -> BlockScores:
        """Return the scores of some rows."""
        part = BlockScores(take(self.X, rows), self.group[rows], self._likelihoods)
        part._known = {position: score[rows] for position, score in self._known.items()}
        return part

    def table(self, positions: NDArray[np.intp]) -> Floats:
        """Return the scores under several likelihoods, a column each."""
        return np.stack([self.score(int(position)) for position in positions], axis=1)

    def columns(self, positions: NDArray[np.intp]) -> Floats:
        """Return the same table column by column, which is faster to work on if it has few."""
        return np.asfortranarray(self.table(positions))

    def reached(self, hurdles: Hurdles) -> NDArray[np.bool_]:
        """Say who reaches which of the hurdles, with a row a hurdle."""
        return hurdles.reached_by(self.table(hurdles.likelihoods), self.group)

    def exceeds(self, bar: Bar) -> NDArray[np.bool_]:
        """Say whose weighted sum of scores exceeds a level."""
        total = np.zeros(n_rows(self.X))
        for position in np.flatnonzero(bar.weights):
            total += bar.weights[position] * self.score(int(position))
        return total > bar.level

    def exceeds_for_sure(self, bar: Bar) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
        """Say whose sum exceeds a level, and for which rows only ``exceeds`` can tell."""
        return self.exceeds(bar), np.empty(0, np.intp)


@dataclass(frozen=True)
class Stack:
    """Linear likelihoods side by side: halved coefficients, so that a sigmoid is one tanh."""

    half_coef: Floats  # (feature, likelihood)
    half_intercept: Floats

    @staticmethod
    def of(likelihoods: list[Likelihood], X: Any) -> Stack | None:
        """Return them in the precision of the features, or None if one is not linear."""
        linear = [one for one in likelihoods if isinstance(one, LinearLikelihood)]
        if len(linear) < len(likelihoods):
            return None
        coef = np.array([one.coef for one in linear]).T * 0.5
        intercept = np.array([one.intercept for one in linear]) * 0.5
        return Stack(coef.astype(X.dtype, order="C"), intercept.astype(X.dtype))


class LinearScores(BlockScores):
    """Scores of one block under linear likelihoods: one matrix product and one tanh for many.

    σ(z) = ½ + ½·tanh(z/2), whose vectorised form is several times faster than exp and a division.
    """

    def __init__(self, X: Any, group: Groups, stack: Stack) -> None:
        self.X, self.group, self._stack = X, group, stack

    def score(self, position: int) -> Floats:
        return self.table(position)

    def part(self, rows: NDArray[np.intp]) -> LinearScores:
        return LinearScores(take(self.X, rows), self.group[rows], self._stack)

    def table(self, positions: Any) -> Floats:
        return self._sigmoid(self.X @ self._stack.half_coef[:, positions], positions)

    def columns(self, positions: NDArray[np.intp]) -> Floats:
        half = np.asfortranarray(self.X @ self._stack.half_coef[:, positions])
        return self._sigmoid(half, positions)

    def _sigmoid(self, half: Floats, positions: Any) -> Floats:
        """Turn halves of log-odds that lack their intercepts into scores, in place."""
        half += self._stack.half_intercept[positions]
        np.tanh(half, out=half)
        half *= 0.5
        half += 0.5
        return np.asarray(half)

    def reached(self, hurdles: Hurdles) -> NDArray[np.bool_]:
        assert hurdles.log_odds is not None
        reached, unsure = hurdles.log_odds.reached(self.X, self.group)
        if unsure.size:
            part = self.part(unsure)
            score = part.table(hurdles.likelihoods)
            reached[:, unsure] = hurdles.reached_by(score, part.group)
        return reached

    def exceeds(self, bar: Bar) -> NDArray[np.bool_]:
        exceeds, unsure = self._exceeds_by_mean(bar, self._error(bar))
        if unsure.size:
            used = np.flatnonzero(bar.weights)
            weights = bar.weights[used].astype(self.X.dtype)
            exceeds[unsure] = self.part(unsure).table(used) @ weights > bar.level
        return exceeds

    def exceeds_for_sure(self, bar: Bar) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
        with np.errstate(over="ignore", invalid="ignore"):
            error = np.square(self.X) @ bar.bound
            error += bar.least_error
        return self._exceeds_by_mean(bar, error)

    def _error(self, bar: Bar) -> Floats:
        """Return how far the mean may be off."""
        assert bar.spread is not None
        with np.errstate(over="ignore", invalid="ignore"):
            spread = bar.spread @ self.X.T
            spread[0] += bar.spread_intercept
            np.square(spread, out=spread)
            return np.asarray(spread.sum(axis=0))

    def _exceeds_by_mean(
        self, bar: Bar, error: Floats
    ) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
        """Say whose sum exceeds a level by the mean, and for whom its error is too large."""
        error += float(np.finfo(error.dtype).eps) ** 0.5  # what rounding may do
        with np.errstate(over="ignore", invalid="ignore"):
            above = self.X @ bar.mean
        above += bar.intercept
        np.tanh(above, out=above)
        above -= bar.cut
        exceeds = np.asarray(above > 0)
        return exceeds, np.flatnonzero(~(np.abs(above, out=above) > error))
