"""The best cuts on a score of cells: everybody from some score on is accepted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from secondlook.methods.finite.zero_one import Solution

__all__ = ["Line", "best_cut", "line_of", "similar_cuts"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Line:
    """All cuts of some cells, from nobody to everybody.

    Attributes
    ----------
    cut_of
        For each cell the number of the first cut that accepts it, from 1; cut 0 accepts nobody.
    gain
        Gain of each cut.
    allowed
        Whether each cut meets the constraints.
    """

    cut_of: NDArray[np.intp]
    gain: Floats
    allowed: NDArray[np.bool_]

    def along(self, weight: Floats) -> Floats:
        """Return the weight that each cut accepts."""
        return np.cumsum(np.bincount(self.cut_of, weight, self.gain.size))

    def solution(self) -> Solution:
        """Return the best cut that is allowed."""
        if not self.allowed.any():
            return Solution(np.zeros(self.cut_of.size, np.bool_), 0.0, 0.0, feasible=False)
        cut = int(np.argmax(np.where(self.allowed, self.gain, -np.inf)))
        value = float(self.gain[cut])
        return Solution(self.cut_of <= cut, value, value, feasible=True)


def line_of(score: Floats, gain: Floats, rows: Floats, limits: Floats) -> Line:
    """Return the cuts on a score; cells of the same score cannot be told apart."""
    distinct, place = np.unique(score, return_inverse=True)
    cut_of = distinct.size - place.reshape(score.shape)
    line = Line(cut_of, np.zeros(distinct.size + 1), np.zeros(distinct.size + 1, np.bool_))
    loads = np.array([line.along(row) for row in rows])
    return Line(cut_of, line.along(gain), np.all(loads <= limits[:, None], axis=0))


def best_cut(score: Floats, gain: Floats, rows: Floats, limits: Floats) -> Solution:
    """Return the best cut on a score with ``rows · f ≤ limits``, by one sort and running sums.

    Examples
    --------
    >>> score, gain = np.array([0.2, 0.9, 0.6]), np.array([1.0, 2.0, -1.0])
    >>> best_cut(score, gain, np.ones((1, 3)), np.array([3.0])).accepts.tolist()
    [False, True, False]
    """
    return line_of(score, gain, rows, limits).solution()


def similar_cuts(lines: list[Line], rates: list[Floats], difference: float) -> list[int] | None:
    """Choose a cut from every line such that their rates differ by at most ``difference``.

    Some cut has the lowest rate. Given that one, the others choose freely between it and it plus
    the difference, so all lowest rates are tried, and each line's best in that window is looked up.

    Parameters
    ----------
    lines
        A line a group.
    rates
        The rate of each cut of each line, from 0 upwards.
    difference
        The largest difference of rates.

    Returns
    -------
    cuts
        The cuts of greatest total gain; None if there are none.

    Examples
    --------
    >>> line = Line(np.array([1, 2]), np.array([0.0, 1.0, 3.0]), np.ones(3, np.bool_))
    >>> similar_cuts([line, line], [np.array([0, 0.5, 1]), np.array([0, 0.2, 0.4])], 0.1)
    [1, 2]
    """
    lowest = np.unique(np.concatenate(rates))
    total, chosen = np.zeros(lowest.size), []
    for line, rate in zip(lines, rates, strict=True):
        first = np.searchsorted(rate, lowest, side="left")
        last = np.searchsorted(rate, lowest + difference, side="right") - 1
        gain = np.where(line.allowed, line.gain, -np.inf)
        best = _best_between(gain, first, last)
        total += np.where(best >= 0, gain[best], -np.inf)
        chosen.append(best)
    at = int(np.argmax(total))
    return None if total[at] == -np.inf else [int(best[at]) for best in chosen]


def _best_between(
    values: Floats, first: NDArray[np.intp], last: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Return where the largest value of each range is; −1 for an empty range.

    ``tables[k][i]`` is where the largest of the 2ᵏ values from i on is; a range is covered by two.
    """
    tables = [np.arange(values.size)]
    while 2 ** len(tables) <= values.size:
        half, width = tables[-1], 2 ** (len(tables) - 1)
        left, right = half[: half.size - width], half[width:]
        tables.append(np.where(values[left] >= values[right], left, right))
    best = np.full(first.shape, -1, dtype=np.intp)
    length = last - first + 1
    for k, table in enumerate(tables):
        mine = (length >= 2**k) & (length < 2 ** (k + 1))
        left, right = table[first[mine]], table[last[mine] - 2**k + 1]
        best[mine] = np.where(values[left] >= values[right], left, right)
    return best
