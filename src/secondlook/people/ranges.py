"""What numbers a history had in each column, rounded outward, and how many of a batch are beyond.

The extremes of a history are single people's values, who may have to be forgotten. So none is kept:
a bound is the next round number outward, in steps of a tenth to a quarter of the extreme or of the
range's width, whichever is less. An extreme that is such a number itself is a bound only if several
people had it, like the 0 and 1 of a flag.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from secondlook.frames import numeric_columns

__all__ = ["Range", "as_ranges", "chance_beyond", "n_beyond", "ranges_of", "rounded_outward"]

_SEVERAL = 5  # people who have an extreme: then it tells of none of them
_PART = 10.0  # steps are at least the size over this
_CLOSE = 1e-9  # 0.7 is a multiple of 0.1, whatever division says
_SMALLEST = 1e-300  # step; what is smaller is 0 here


class Range(NamedTuple):
    """What numbers a column of the history had.

    Attributes
    ----------
    low, high
        Bounds of all values, rounded outward.
    n_values
        How many people had a value.
    """

    low: float
    high: float
    n_values: int


def ranges_of(X: Any, names: tuple[str, ...] | None) -> dict[str | int, tuple[float, float, int]]:
    """Return the rounded range of each column of numbers, as plain data.

    Parameters
    ----------
    X
        Features of the history, an array or a frame.
    names
        Names of the columns; None means that they go by position.

    Examples
    --------
    >>> X = np.array([[339.0, 1.0], [10_636.0, 7.0], [np.nan, 1.0]])
    >>> ranges_of(X, ("income", "children"))
    {'income': (300.0, 12000.0, 2), 'children': (0.9, 8.0, 3)}
    >>> ranges_of(X.repeat(5, axis=0), ("income", "children"))
    {'income': (300.0, 12000.0, 10), 'children': (1.0, 7.0, 15)}
    """
    found: dict[str | int, tuple[float, float, int]] = {}
    for position, column in _columns(X):
        values = column[np.isfinite(column)]
        if values.size:
            least, largest = float(values.min()), float(values.max())
            few = tuple(int((values == one).sum()) < _SEVERAL for one in (least, largest))
            bounds = rounded_outward(least, largest, few=(few[0], few[1]))
            found[position if names is None else names[position]] = (*bounds, int(values.size))
    return found


def rounded_outward(
    least: float, largest: float, few: tuple[bool, bool] = (False, False)
) -> tuple[float, float]:
    """Return round numbers that enclose two extremes.

    Where ``few`` people had an extreme, the bound is not the extreme itself.

    Examples
    --------
    >>> rounded_outward(1953.0, 2004.0)
    (1950.0, 2010.0)
    >>> rounded_outward(-0.27, 0.3)
    (-0.3, 0.3)
    """
    width = largest - least
    low = -_up(-least, width, beyond=few[0])
    return low + 0.0, _up(largest, width, beyond=few[1])  # never -0.0


def n_beyond(values: NDArray[Any], known: Range) -> tuple[int, int]:
    """Return how many values are beyond a range, and how many there are; missing ones are none."""
    there = values[~np.isnan(values)]
    return int(np.count_nonzero((there < known.low) | (there > known.high))), int(there.size)


def chance_beyond(n_past: int, n_new: int, least: int) -> float:
    """Return the chance that so many new people are beyond the extremes of past ones.

    All are exchangeable and no two values alike; then all orders of old and new are as likely, and
    in (b + 1) · C(n_new − b + n_past − 2, n_past − 2) of C(n_new + n_past, n_past) exactly b of
    the new are beyond. With ties, or bounds rounded outward, the chance is less.

    Parameters
    ----------
    n_past, n_new
        How many people the history and the batch have.
    least
        How many are beyond, at least.

    Examples
    --------
    >>> round(chance_beyond(399, 1, 1), 12)  # 2 / (n_past + 1)
    0.005
    """
    if n_past < 2 or least <= 0:
        return 1.0
    inside = n_new - np.arange(n_new, dtype=np.float64)
    fewer = np.cumprod(np.r_[1.0, inside / (inside + n_past - 2)])  # of b, against none beyond
    everybody = n_new + n_past
    none_beyond = n_past * (n_past - 1) / (everybody * (everybody - 1))
    ways = np.arange(1, n_new + 2) * fewer * none_beyond
    return float(min(1.0, ways[least:].sum()))


def as_ranges(kept: Mapping[str | int, tuple[float, float, int]]) -> dict[str | int, Range]:
    """Return ranges from what ``ranges_of`` gave."""
    return {name: Range(*one) for name, one in kept.items()}


def _columns(X: Any) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Yield the columns of numbers with their positions."""
    if isinstance(X, np.ndarray):
        yield from ((at, X[:, at].astype(np.float64, copy=False)) for at in range(X.shape[1]))
        return
    numbers = set(numeric_columns(X))
    for position, one in enumerate(nw.from_native(X, eager_only=True).iter_columns()):
        if str(one.name) in numbers:
            values = one.cast(nw.Float64).to_numpy()
            yield position, np.asarray(values, dtype=np.float64)


def _up(value: float, width: float, *, beyond: bool) -> float:
    """Return the first multiple of a round step that is at or above a value, or above it."""
    if value == 0 and not beyond:
        return value
    size = min(abs(value) or width, width or abs(value))
    if size == 0:
        return value
    part = max(size / _PART, _SMALLEST)
    power = math.floor(math.log10(part))
    steps = (float(f"{digit}e{power}") for digit in (1, 2, 5))
    step = next((one for one in steps if one >= part), float(f"1e{power + 1}"))
    found = round(math.ceil(value / step - _CLOSE) * step, max(0, -power))
    below = found <= value if beyond else found < value
    return round(found + step, max(0, -power)) if below else found
