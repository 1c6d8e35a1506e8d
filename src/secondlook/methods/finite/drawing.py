"""A draw of fixed size from cells, with exact inclusion probabilities.

First every cell gets a number of people: cells are laid end to end, each as long as the number
expected of it, and a comb with teeth one apart and a random start counts its teeth in each. Then
those of a cell are chosen whose keyed bits are smallest. So exactly ``n_draw`` people are drawn,
each with the probability of their cell, a cell's number is its expectation rounded up or down, and
nothing depends on the order of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.core.sampling import chance
from secondlook.errors import InputError
from secondlook.people.ids import keyed_bits

__all__ = ["CellDraw", "choose", "fill", "plan_draw"]

Floats = NDArray[np.float64]
Heads = NDArray[np.int64]
Bits = NDArray[np.uint64]

_BLOCK = 2**16  # people at a time: their bits stay in the cache
_LAST = np.uint64(2**64 - 1)


def fill(weight: Floats, room: Floats, total: float) -> Floats:
    """Share a total in proportion to weights, nobody getting more than there is room for.

    What somebody has no room for goes to the others, at last to those without weight.

    Examples
    --------
    >>> fill(np.array([6.0, 1.0, 1.0]), np.array([2.0, 5.0, 5.0]), 5.0).tolist()
    [2.0, 1.5, 1.5]
    """
    shared = np.zeros(weight.shape)
    full = room <= 0
    loose = weight
    while not full.all():
        loose = np.where(full, 0.0, loose)
        if loose.sum() <= 0:
            loose = np.where(full, 0.0, room)
        left = total - float(shared[full].sum())
        shared = np.where(full, shared, max(left, 0.0) * (loose / loose.sum()))
        over = ~full & (shared >= room)
        if not over.any():
            break
        shared[over] = room[over]
        full |= over
    return shared


@dataclass(frozen=True)
class CellDraw:
    """How a draw from cells will go, but for its randomness.

    Attributes
    ----------
    expected
        How many are expected of each cell.
    probability
        Of somebody of each cell; where there is no candidate, the chance that somebody would have
        in the place of an average person of the batch.
    line
        The line in which each cell lies: its group if there are quotas.
    """

    expected: Floats
    probability: Floats
    line: NDArray[np.intp]

    def counts(self, heads: Heads, bits: Bits, start: np.uint64) -> Heads:
        """Return how many are drawn of each cell.

        Parameters
        ----------
        heads
            Candidates of each cell.
        bits
            Random bits of the cells, which line them up.
        start
            Random bits for the start of the comb.
        """
        certain = self.expected >= heads
        counts = np.where(certain, heads, 0)
        n_left = np.rint(self.expected.sum()) - counts.sum()
        order = np.lexsort((bits, self.line))
        order = order[~certain[order]]
        if n_left <= 0 or order.size == 0:
            return counts
        ends = np.cumsum(self.expected[order])
        # The sum is whole but for rounding: what rounding left over is spread as it arose.
        ends *= n_left / ends[-1]
        ends[-1] = n_left
        offset = float(start >> np.uint64(32)) * 2.0**-32
        counts[order] = np.diff(np.floor(ends - offset), prepend=np.floor(-offset))
        return np.minimum(counts, heads)


def plan_draw(
    size: Floats,
    heads: Heads,
    n_draw: int,
    group: NDArray[np.intp],
    shares: Floats | None,
    n_batch: int,
) -> CellDraw:
    """Plan a draw of ``n_draw`` people with probabilities proportional to size, capped at 1.

    Parameters
    ----------
    size
        g > 0 of one person of each cell.
    heads
        Candidates of each cell.
    n_draw
        How many to draw, at most the number of candidates.
    group, shares
        Group of each cell, and the share of the draw that each group gets; None for no quotas. What
        a group is too small to take goes to the others.
    n_batch
        Number of people among whom the candidates were.

    Examples
    --------
    >>> one = np.zeros(3, np.intp)
    >>> draw = plan_draw(np.array([1.0, 1.0, 8.0]), np.array([6, 2, 1]), 3, one, None, 9)
    >>> draw.expected.tolist(), draw.probability.tolist()
    ([1.5, 0.5, 1.0], [0.25, 0.25, 1.0])
    """
    n = int(heads.sum())
    if not 0 <= n_draw <= n:
        raise InputError(f"n_draw must be between 0 and the {n} candidates, got {n_draw}.")
    line = np.zeros(size.shape, np.intp) if shares is None else group
    n_lines = 1 if shares is None else shares.size
    members = np.bincount(line, heads, n_lines).astype(np.float64)
    quotas = np.array([float(n_draw)]) if shares is None else fill(shares, members, n_draw)
    expected = np.zeros(size.shape)
    left, others = np.zeros(n_lines), np.ones(n_lines)
    for z in range(n_lines):
        mine = line == z
        room = heads[mine].astype(np.float64)
        expected[mine] = fill(size[mine] * room, room, float(quotas[z]))
        loose = room > expected[mine]
        left[z], others[z] = _for_somebody_else(
            quotas[z] - room[~loose].sum(),
            float((size[mine] * room)[loose].sum()) * (1 - 1 / n_batch),
            members=room.sum(),
            loose=bool(loose.any()),
            quota=float(quotas[z]),
            share=n_draw / max(n, 1),
        )
    probability = chance(size, left[line], others[line])
    held = heads > 0
    probability[held] = expected[held] / heads[held]
    return CellDraw(expected, probability, line)


def _for_somebody_else(
    left: float, others: float, *, members: float, loose: bool, quota: float, share: float
) -> tuple[float, float]:
    """Return what tells the chance of somebody of size g: min(1, left · g / (others + g)).

    A line whose people are all certain takes anybody; an empty one gives an average share.
    """
    if not loose:
        left, others = (float(quota > 0) if members else share), 0.0
    return (left, others) if left > 0 else (0.0, 1.0)


def choose(
    cell: NDArray[np.int32], bits: Bits, key: np.uint64, counts: Heads, heads: Heads
) -> NDArray[np.intp]:
    """Return the rows of those whose keyed bits are the smallest of their cell, so many as asked.

    Only people whose bits are below what suffices in nearly every case are put in order; a cell
    that turns out to hold too few of these is looked at again as a whole.

    Parameters
    ----------
    cell
        Everybody's cell.
    bits
        Bits of everybody's id.
    key
        Key of the randomness.
    counts
        How many to choose of each cell, at most its people.
    heads
        How many people each cell has.

    Examples
    --------
    >>> cell, bits = np.array([0, 1, 0], np.int32), np.arange(3, dtype=np.uint64)
    >>> choose(cell, bits, np.uint64(5), np.array([1, 1]), np.array([2, 1])).tolist()
    [0, 1]
    """
    wanted = counts + 6 * np.sqrt(counts) + 10
    share = np.where(counts > 0, wanted / np.maximum(heads, 1), 0.0)
    below = np.full(share.shape, _LAST)
    below[share < 1] = (share[share < 1] * 2.0**64).astype(np.uint64)
    rows, own = _near(cell, bits, key, below)
    short = (np.bincount(cell[rows], minlength=counts.size) < counts) & (counts > 0)
    if short.any():
        rest = ~short[cell[rows]]
        more, own_more = _near(cell, bits, key, np.where(short, _LAST, np.uint64(0)))
        rows, own = np.concatenate([rows[rest], more]), np.concatenate([own[rest], own_more])
    order = np.lexsort((own, cell[rows]))
    rows = rows[order]
    begins = np.searchsorted(cell[rows], cell[rows])
    return np.sort(rows[np.arange(rows.size) - begins < counts[cell[rows]]])


def _near(
    cell: NDArray[np.int32], bits: Bits, key: np.uint64, below: Bits
) -> tuple[NDArray[np.intp], Bits]:
    """Return the rows of people whose keyed bits are below those of their cell, with these bits."""
    rows: list[Any] = [np.empty(0, np.intp)]
    found: list[Any] = [np.empty(0, np.uint64)]
    for start in range(0, cell.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        own = keyed_bits(bits[part], key)
        near = np.flatnonzero(own < below.take(cell[part]))
        rows.append(near + start)
        found.append(own[near])
    return np.concatenate(rows), np.concatenate(found)
