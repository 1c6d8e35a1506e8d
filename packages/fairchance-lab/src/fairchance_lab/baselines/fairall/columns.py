"""What kinds of numbers the features are, and how an autoencoder reads them.

Columns come out in the order real, count, binary, categorical: real ones standardised by the
history, counts as they are, binary ones as 0 and 1, categorical ones as an indicator per level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairchance.errors import InputError
from fairchance_lab.baselines.base import Floats, beyond_group

__all__ = ["KINDS", "Columns", "Floats", "Layout"]

KINDS = ("real", "count", "binary", "categorical")


@dataclass(frozen=True)
class Layout:
    """How many columns there are of each kind, and how many levels each categorical one has."""

    n_real: int
    n_count: int = 0
    n_binary: int = 0
    levels: tuple[int, ...] = ()

    @property
    def width(self) -> int:
        """Columns that an encoder reads."""
        return self.n_real + self.n_count + self.n_binary + sum(self.levels)

    @property
    def n_parameters(self) -> int:
        """Numbers that a decoder gives for the features: two for a real column."""
        return self.width + self.n_real


@dataclass(frozen=True)
class Columns:
    """The reading of features, agreed on with a history.

    Attributes
    ----------
    real, count, binary, categorical
        Positions of the columns of each kind; those that groups determine are in none.
    centre, scale
        Mean and standard deviation of real columns.
    low, high
        The two values of binary columns.
    levels
        The values of each categorical column.
    """

    real: NDArray[np.intp]
    count: NDArray[np.intp]
    binary: NDArray[np.intp]
    categorical: NDArray[np.intp]
    centre: Floats
    scale: Floats
    low: Floats
    high: Floats
    levels: tuple[Floats, ...]

    @staticmethod
    def of(X: Floats, group: NDArray[np.intp], kinds: Sequence[str] | None = None) -> Columns:
        """Agree on a reading.

        A column that is constant within every group says nothing beyond the group, which the
        autoencoder gets anyway, and is left out. Without ``kinds``, columns of two values are
        binary and all others real.

        Examples
        --------
        >>> X = np.array([[0.5, 1.0, 7.0], [1.5, 2.0, 7.0], [4.0, 2.0, 7.0]])
        >>> columns = Columns.of(X, np.zeros(3, int))
        >>> columns.real.tolist(), columns.binary.tolist(), columns.layout.width
        ([0], [1], 2)
        """
        values = [np.unique(X[:, j]) for j in range(X.shape[1])]
        named = _kinds(values, kinds)
        kept = beyond_group(X, group)
        real, count, binary, categorical = (
            np.flatnonzero(kept & (named == kind)) for kind in KINDS
        )
        if not kept.any():
            raise InputError("no feature differs between people of the same group.")
        _check_counts(X, count)
        return Columns(
            real,
            count,
            binary,
            categorical,
            X[:, real].mean(axis=0),
            X[:, real].std(axis=0),
            np.array([values[j][0] for j in binary]),
            np.array([values[j][-1] for j in binary]),
            tuple(values[j] for j in categorical),
        )

    @property
    def layout(self) -> Layout:
        """How many columns there are of each kind."""
        levels = tuple(one.size for one in self.levels)
        return Layout(self.real.size, self.count.size, self.binary.size, levels)

    def read(self, X: Floats) -> Floats:
        """Return people as the autoencoder reads them.

        A categorical value that the history did not have is no level at all: a row of zeros.
        """
        _check_counts(X, self.count)
        binary = (X[:, self.binary] - self.low) / (self.high - self.low)
        indicators = [
            X[:, j, None] == levels for j, levels in zip(self.categorical, self.levels, strict=True)
        ]
        real = (X[:, self.real] - self.centre) / self.scale
        parts = [real, X[:, self.count], np.clip(binary, 0.0, 1.0), *indicators]
        return np.hstack(parts).astype(np.float64)


def _kinds(values: list[Floats], kinds: Sequence[str] | None) -> NDArray[np.str_]:
    """Return the kind of each column, and check those that were named."""
    if kinds is None:
        return np.array(["binary" if one.size == 2 else "real" for one in values])
    if len(kinds) != len(values):
        raise InputError(
            f"columns must name one kind per feature, {len(values)} in all, got {len(kinds)}."
        )
    for j, (kind, one) in enumerate(zip(kinds, values, strict=True)):
        if kind not in KINDS:
            raise InputError(
                f"a column is {', '.join(KINDS[:-1])} or {KINDS[-1]}, got {kind!r} for column {j}."
            )
        if kind == "binary" and one.size > 2:
            raise InputError(f"column {j} is declared binary and has {one.size} values.")
    return np.array(list(kinds))


def _check_counts(X: Floats, count: NDArray[np.intp]) -> None:
    counted = X[:, count]
    wrong = (counted < 0) | (counted != np.floor(counted))
    if wrong.any():
        row, at = np.argwhere(wrong)[0]
        raise InputError(
            f"counts must be 0, 1, 2 and so on, got {counted[row, at]!s} in row {row}, column "
            f"{count[at]}."
        )
