"""Draws with exact inclusion probabilities.

Two designs. *Fixed size*: exactly k people, person i with probability π_i proportional to a size
g_i, capped at 1 with the excess redistributed, with or without a quota per group. *Coins*: an
independent flip per person. Who is drawn is a function of each person's keyed random bits, never of
the order of rows: sizes are turned into whole numbers before they are summed, so that a sum is the
same in any order, and people are lined up by their bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from secondlook.errors import InputError

__all__ = ["Draw", "coin_flips", "fixed_size_draw"]

Floats = NDArray[np.float64]
Bits = NDArray[np.uint64]

# Sizes are whole numbers up to this, so that a billion of them can be summed in 62 bits.
_LARGEST = float(2**32)
_UNIT = float(2**-53)


@dataclass(frozen=True)
class Draw:
    """Who was drawn and how likely that was.

    Attributes
    ----------
    drawn
        Whether each candidate was drawn.
    probability
        π_i, the probability of the draw, exact up to rounding of floating-point numbers.
    scale
        Per group, the factor with ``π_i = min(1, scale[group_i] · size_i)``: it tells what somebody
        outside this batch would have had.
    """

    drawn: NDArray[np.bool_]
    probability: Floats
    scale: Floats


def fixed_size_draw(
    size: Floats,
    n_draw: int,
    bits: Bits,
    start: np.uint64,
    group: NDArray[np.intp],
    n_groups: int,
    shares: Floats | None = None,
) -> Draw:
    """Draw ``n_draw`` people with probabilities proportional to size.

    People are lined up (group by group if there are quotas, then by their random bits), each
    holding a length π_i; a comb with teeth one apart and a random start draws whoever holds a
    tooth. So exactly ``n_draw`` are drawn, each with probability π_i, and a group's count is its
    quota rounded up or down, with the quota as its expectation.

    Parameters
    ----------
    size
        g_i > 0 of each candidate.
    n_draw
        How many to draw, at most the number of candidates.
    bits
        Each candidate's random bits.
    start
        Random bits for the start of the comb.
    group
        Each candidate's group, 0 … n_groups − 1.
    n_groups
        How many groups there are.
    shares
        Share of the draw that each group gets; None leaves groups to their sizes. What a group is
        too small to take goes to the others in proportion to their shares.

    Examples
    --------
    >>> bits, one = np.array([9, 4, 6], dtype=np.uint64), np.zeros(3, dtype=np.intp)
    >>> draw = fixed_size_draw(np.array([1.0, 1.0, 8.0]), 2, bits, np.uint64(0), one, 1)
    >>> draw.probability.tolist(), draw.drawn.tolist()
    ([0.5, 0.5, 1.0], [False, True, True])
    """
    n = size.shape[0]
    if not 0 <= n_draw <= n:
        raise InputError(f"n_draw must be between 0 and the {n} candidates, got {n_draw}.")
    if n_draw == 0:
        return Draw(np.zeros(n, np.bool_), np.zeros(n), np.zeros(n_groups))
    unit = _LARGEST / float(size.max())
    whole = np.ceil(size * unit).astype(np.int64)
    if shares is None:
        line = np.zeros(n, dtype=np.intp)
        quotas = np.array([float(n_draw)])
    else:
        line = group
        quotas = _quotas(shares, np.bincount(group, minlength=n_groups).astype(float), n_draw)
    factor, certain, total = _capped(whole, line, quotas)
    probability = np.where(certain, 1.0, factor[line] * whole)
    loose = np.flatnonzero(~certain)
    drawn = certain.copy()
    left: Floats = quotas - np.bincount(line[certain], minlength=quotas.size)
    drawn[loose] = _comb(whole[loose], line[loose], bits[loose], start, left, total)
    scale = np.broadcast_to(factor * unit, (n_groups,)).copy()
    return Draw(drawn, probability, scale)


def _capped(
    whole: NDArray[np.int64], line: NDArray[np.intp], quotas: Floats
) -> tuple[Floats, NDArray[np.bool_], NDArray[np.int64]]:
    """Find per line the factor with Σ min(1, factor · size) = quota, and who is certain (π = 1).

    Everybody whose share of what is left reaches 1 becomes certain, and the rest is shared again;
    few passes are needed, since each lowers what is left. Also returns each line's remaining size.
    """
    certain = np.zeros(whole.shape, dtype=np.bool_)
    total = _sums(whole, line, quotas.size)
    left = quotas.copy()
    while True:
        factor = np.divide(left, total, out=np.zeros_like(left), where=(total > 0) & (left > 0))
        new = ~certain & (factor[line] * whole >= 1)
        if not new.any():
            break
        certain |= new
        total = total - _sums(whole[new], line[new], quotas.size)
        left = left - np.bincount(line[new], minlength=quotas.size)
    # Where a whole line is certain, so is anybody like them: sizes are 1 or more.
    return np.where((total == 0) & (quotas > 0), 1.0, factor), certain, total


def _sums(whole: NDArray[np.int64], line: NDArray[np.intp], n_lines: int) -> NDArray[np.int64]:
    """Sum whole numbers per line, exactly."""
    if n_lines == 1:
        return np.array([whole.sum()], dtype=np.int64)
    return np.array([whole[line == z].sum() for z in range(n_lines)], dtype=np.int64)


def _quotas(shares: Floats, members: Floats, n_draw: int) -> Floats:
    """Split a draw over groups by shares, none above its members; the sum is ``n_draw``."""
    quotas = np.zeros_like(members)
    full = members == 0
    while not full.all():
        open_shares = np.where(full, 0.0, shares)
        if open_shares.sum() <= 0:  # only groups without a share have room: by their members
            open_shares = np.where(full, 0.0, members)
        left = n_draw - float(quotas[full].sum())
        quotas = np.where(full, quotas, left * open_shares / open_shares.sum())
        over = ~full & (quotas >= members)
        if not over.any():
            break
        quotas[over] = members[over]
        full |= over
    return quotas


def _comb(
    whole: NDArray[np.int64],
    line: NDArray[np.intp],
    bits: Bits,
    start: np.uint64,
    quotas: Floats,
    total: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Lay people end to end, each line as long as its quota, and see who holds a tooth."""
    drawn = np.zeros(whole.shape, dtype=np.bool_)
    if whole.size == 0:
        return drawn
    order = np.argsort(bits) if quotas.size == 1 else np.lexsort((bits, line))
    first = np.concatenate([[0], np.cumsum(quotas)])
    first[-1] = np.rint(first[-1])  # the quotas of all lines make a whole number of people
    ordered, at = np.cumsum(whole[order]), line[order]
    before = np.concatenate([[0], np.cumsum(total)])
    # The end of each person's length is a function of whole numbers only, and never decreases.
    ends = first[at] + (first[at + 1] - first[at]) * ((ordered - before[at]) / total[at])
    offset = float(start >> np.uint64(11)) * _UNIT
    teeth = np.floor(ends - offset)
    drawn[order] = np.diff(teeth, prepend=np.floor(-offset)) > 0
    return drawn


def coin_flips(probability: Floats, bits: Bits) -> NDArray[np.bool_]:
    """Accept each person independently with their own probability.

    Examples
    --------
    >>> coin_flips(np.array([0.0, 1.0]), np.array([0, 2**64 - 1], dtype=np.uint64)).tolist()
    [False, True]
    """
    if not np.all((probability >= 0) & (probability <= 1)):
        raise InputError("probabilities must be in [0, 1], got one outside or NaN; clip them.")
    return (bits >> np.uint64(11)) * _UNIT < probability
