"""The best pair of cuts of two groups, exactly, without looking at every pair.

For a cut of the first group, the admissible cuts of the second group lie in a window, if both its
rates and its selection grow along its cuts. Within the window their FDR slack must make up for
the slack that the first group lacks. A merge-sort tree gives the worthiest of them, level by level
for all cuts of the first group at once: O(n log² n). A Lagrangian bound drops hopeless cuts first.

A rate that does not grow along the cuts, such as the FDR, has its window among the cuts in order of
that rate. All windows then bound what a pair with a cut of the first group can be worth; the most
promising cuts are compared with every cut of the second group until no bound is better.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairchance.learners.curves import Floats, Points, ThresholdBounds

Indices = NDArray[np.intp]

# Pairs of at most this many cuts per group make the incumbent that pruning starts from.
_COARSE = 1024
# Bounds and values are sums of a few numbers of size 1 at most; their rounding is below this.
_ROUNDING = 1e-14


def search_pair(first: Points, second: Points, bounds: ThresholdBounds) -> tuple[int, int] | None:
    """Cuts of greatest total worth that keep the bounds, or None if no pair does.

    Examples
    --------
    >>> cut = np.arange(3) / 4
    >>> curve = Points(worth=cut, slack=0.25 - cut, accepted=cut, rate=2 * cut[:, None])
    >>> search_pair(curve, curve, ThresholdBounds(max_fdr=0.0, least=0.0, difference=0.5))
    (1, 1)
    """
    low, high = _windows(first, second, bounds)
    rows, columns = _promising(first, second, (low, high), bounds)
    low = np.searchsorted(columns, low[rows])
    high = np.searchsorted(columns, high[rows])
    tried, kept = first.take(rows), second.take(columns)
    best = best_in_windows(kept.worth, kept.slack, (low, high), -tried.slack)
    for a, b in zip(tried.rate.T, kept.rate.T, strict=True):
        if not (_grows(b) or np.isnan(a).all() or np.isnan(b).all()):
            best = np.minimum(best, _best_of_similar(tried, kept, a, b, bounds))
    total = tried.worth + best
    found, worth = None, -np.inf
    for i in np.argsort(-total, kind="stable"):
        if total[i] <= worth:
            break
        window = slice(int(low[i]), int(high[i]))
        rate, others = tried.rate[i], kept.rate[window]
        apart = (others < bounds.lowest(rate)) | (others > bounds.highest(rate))
        allowed = (kept.slack[window] >= -tried.slack[i]) & ~apart.any(axis=1)
        j = int(np.argmax(np.where(allowed, kept.worth[window], -np.inf))) if allowed.any() else -1
        if j >= 0 and tried.worth[i] + kept.worth[window][j] > worth:
            worth = tried.worth[i] + kept.worth[window][j]
            found = int(rows[i]), int(columns[window.start + j])
    return found


def _grows(rate: Floats) -> bool:
    """Whether a rate grows along the cuts; False if a cut has none."""
    return bool(np.all(rate[1:] >= rate[:-1]) and not np.isnan(rate[0]))


def _windows(first: Points, second: Points, bounds: ThresholdBounds) -> tuple[Indices, Indices]:
    """For each cut of the first group the cuts [low, high) that constraints which grow admit."""
    low = np.searchsorted(second.accepted, bounds.least - first.accepted)
    high = np.full(low.shape, second.accepted.size, dtype=np.intp)
    for a, b in zip(first.rate.T, second.rate.T, strict=True):
        if _grows(b) and not np.isnan(a).any():
            low = np.maximum(low, np.searchsorted(b, bounds.lowest(a)))
            high = np.minimum(high, np.searchsorted(b, bounds.highest(a), side="right"))
    return low, np.maximum(low, high)


def _best_of_similar(
    first: Points, second: Points, a: Floats, b: Floats, bounds: ThresholdBounds
) -> Floats:
    """For each cut of the first group the most worth of the second under one rate and the slack.

    The rate is ``a`` along the first group's cuts and ``b`` along the second's.
    """
    order = np.argsort(b, kind="stable")
    n = int(np.count_nonzero(~np.isnan(b)))  # cuts without a rate come last and go with any cut
    known = b[order[:n]]
    free = np.isnan(a)
    low = np.where(free, 0, np.searchsorted(known, bounds.lowest(a)))
    high = np.where(free, n, np.searchsorted(known, bounds.highest(a), side="right"))
    tail = np.full(a.shape, n), np.full(a.shape, b.size)
    worth, slack = second.worth[order], second.slack[order]
    windows = (low, np.maximum(low, high)), tail
    return np.maximum(*(best_in_windows(worth, slack, w, -first.slack) for w in windows))


def _promising(
    first: Points, second: Points, window: tuple[Indices, Indices], bounds: ThresholdBounds
) -> tuple[Indices, Indices]:
    """Cuts of either group that can be in a pair at least as good as a coarse search's best.

    For any μ ≥ 0 an admissible pair is worth at most the sum of both ``worth + μ·slack``.
    """
    everything = np.arange(first.worth.size), np.arange(second.worth.size)
    if max(first.worth.size, second.worth.size) <= _COARSE:
        return everything
    coarse = _thinned(first), _thinned(second)
    pair = search_pair(*coarse, bounds)
    if pair is None:
        return everything
    floor = coarse[0].worth[pair[0]] + coarse[1].worth[pair[1]] - _ROUNDING
    price = _multiplier(*coarse, bounds)
    a, b = first.worth + price * first.slack, second.worth + price * second.slack
    floor -= price * _ROUNDING
    rows = np.flatnonzero(a + range_max(b, *window) >= floor)
    columns = np.flatnonzero(b >= floor - a[rows].max(initial=-np.inf))
    return rows, columns


def _thinned(points: Points) -> Points:
    """About :data:`_COARSE` evenly spread cuts, with both ends."""
    size = points.worth.size
    return points.take(np.unique(np.linspace(0, size - 1, _COARSE).astype(np.intp)))


def _multiplier(first: Points, second: Points, bounds: ThresholdBounds) -> float:
    """Price of FDR slack that nearly minimises the Lagrangian bound, by bisection on its angle."""
    low, high = _windows(first, second, bounds)
    cheap, dear = 0.0, 1.0
    for _ in range(24):
        weight = (cheap + dear) / 2
        a = (1 - weight) * first.worth + weight * first.slack
        b = (1 - weight) * second.worth + weight * second.slack
        i = int(np.argmax(a + range_max(b, low, high)))
        j = int(low[i]) + int(np.argmax(b[low[i] : high[i]]))
        if first.slack[i] + second.slack[j] >= 0:
            dear = weight
        else:
            cheap = weight
    return dear / max(1 - dear, 1e-6)


def range_max(values: Floats, low: Indices, high: Indices) -> Floats:
    """Largest of ``values[low:high]`` for each window, −inf for an empty one.

    Examples
    --------
    >>> range_max(np.array([3.0, 1.0, 2.0]), np.array([0, 1, 2]), np.array([3, 3, 2])).tolist()
    [3.0, 2.0, -inf]
    """
    out = np.full(low.shape, -np.inf)
    length = high - low
    level = np.frexp(length)[1] - 1
    table = values.copy()
    for k in range(int(level.max(initial=-1)) + 1):
        at = np.flatnonzero((level == k) & (length > 0))
        out[at] = np.maximum(table[low[at]], table[high[at] - (1 << k)])
        # After this, table[i] is the largest of the 2^(k+1) values that begin at i.
        table[: -(1 << k)] = np.maximum(table[: -(1 << k)], table[1 << k :])
    return out


def best_in_windows(
    worth: Floats, slack: Floats, window: tuple[Indices, Indices], need: Floats
) -> Floats:
    """Largest worth among ``[low, high)`` with ``slack ≥ need``, per window; −inf if there is none.

    Each window is a union of at most two aligned blocks per power of two. A block keeps its slacks
    sorted with the running maximum of worth from the largest slack down, so one binary search per
    block answers.
    """
    size = 1 << max(worth.size - 1, 0).bit_length()
    padding = np.full(size - worth.size, -np.inf)
    worth, slack = np.concatenate((worth, padding)), np.concatenate((slack, padding))
    order = np.argsort(slack, kind="stable")
    place = np.searchsorted(slack[order], need)
    rank = np.empty(size, dtype=np.int64)
    rank[order] = np.arange(size)
    best = np.full(need.shape, -np.inf)
    for level, asked, block in _blocks(*window, size - padding.size, size):
        keys, running = _level(worth, rank, order, level)
        at = np.searchsorted(keys, block * size + place[asked])
        inside = at < (block + 1) << level
        # A window may have two blocks of one level, so its index may come twice.
        np.maximum.at(best, asked[inside], running[at[inside]])
    return best


def _blocks(
    low: Indices, high: Indices, count: int, size: int
) -> list[tuple[int, Indices, Indices]]:
    """Aligned blocks that make up the windows: (level, which windows, which block of the level)."""
    # A window that reaches the end may as well take the padding, in fewer and larger blocks.
    low, high = low.copy(), np.where(high == count, size, high)
    asked = np.flatnonzero(low < high)
    low, high = low[asked], high[asked]
    out: list[tuple[int, Indices, Indices]] = []
    level = 0
    while asked.size:
        left, right = (low & 1) == 1, (high & 1) == 1
        block = np.concatenate((low[left], high[right] - 1))
        if block.size:
            out.append((level, np.concatenate((asked[left], asked[right])), block))
        low, high, level = (low + 1) >> 1, high >> 1, level + 1
        going = low < high
        asked, low, high = asked[going], low[going], high[going]
    return out


def _level(
    worth: Floats, rank: NDArray[np.int64], order: Indices, level: int
) -> tuple[NDArray[np.int64], Floats]:
    """Sorted (block, slack rank) keys of one level, and the best worth from each place upwards."""
    block = order >> level
    # Sixteen-bit keys get numpy's radix sort.
    narrow = block.astype(np.uint16) if rank.size >> level <= 1 << 16 else block
    inner = order[np.argsort(narrow, kind="stable")]
    keys = (inner >> level) * rank.size + rank[inner]
    rows = worth[inner].reshape(-1, 1 << level)[:, ::-1]
    return keys, np.maximum.accumulate(rows, axis=1)[:, ::-1].ravel()
