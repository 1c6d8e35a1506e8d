"""Draws with exact inclusion probabilities.

Two designs. *Fixed size*: exactly k people, person i with probability π_i proportional to a size
g_i, capped at 1 with the excess redistributed, with or without a quota per group. *Coins*: an
independent flip per person. Who is drawn is a function of each person's keyed random bits, never of
the order of rows: sizes are turned into whole numbers before they are summed, so that a sum is the
same in any order, and people are lined up by their bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.core.ordering import order_of
from secondlook.errors import InputError

__all__ = ["Draw", "chance", "coin_flips", "fixed_size_draw"]

Floats = NDArray[np.float64]
Bits = NDArray[np.uint64]

Line = NDArray[np.intp] | None  # None: one line for everybody

_UNIT = float(2**-53)
# Buckets, so that few people are in one that holds a tooth, and bits that tell them apart, at most.
_PER_TOOTH, _BUCKET_BITS = 16, 18
_BLOCK = 65536  # people whose buckets stay in the cache
_TINY = 1e-290  # sizes below it count as one another


def chance(size: Any, left: Any, others: Any) -> Any:
    """Return min(1, left · size / (others + size)), the chance that ``Draw`` speaks of.

    Examples
    --------
    >>> chance(np.array([1.0, 4.0]), left=2.0, others=4.0).tolist()
    [0.4, 1.0]
    """
    share = size + others
    np.divide(size, share, out=share)
    share *= left
    return np.minimum(share, 1, out=share)


@dataclass(frozen=True)
class Draw:
    """Who was drawn and how likely that was.

    Attributes
    ----------
    drawn
        Whether each candidate was drawn.
    probability
        π_i, the probability of the draw, exact up to rounding of floating-point numbers.
    left, others
        Per group, what tells the chance of somebody of size g who was not in this batch:
        ``min(1, left · g / (others + g))``. They take the place of an average person, so ``left``
        is what the draw leaves to those who are not certain, and ``others`` the sum of their sizes
        but for one average person's. In a large batch that is the factor of the draw times g.
    """

    drawn: NDArray[np.bool_]
    probability: Floats
    left: Floats
    others: Floats

    def chance(self, size: Floats, group: NDArray[np.intp]) -> Floats:
        """Return the chance that somebody of some size would have had in this draw."""
        return np.asarray(chance(size, self.left[group], self.others[group]))

    @staticmethod
    def of_nobody(n_allowed: int, n_groups: int) -> Draw:
        """Return a draw without candidates: had there been one, they would have been drawn."""
        left = np.full(n_groups, float(min(n_allowed, 1)))
        return Draw(np.zeros(0, np.bool_), np.zeros(0), left, np.zeros(n_groups))


def fixed_size_draw(
    size: NDArray[np.floating],
    n_draw: int,
    bits: Bits,
    start: np.uint64,
    group: NDArray[np.intp],
    n_groups: int,
    shares: Floats | None = None,
    *,
    n_batch: int | None = None,
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
    n_batch
        Number of people among whom the candidates were; None means that there were no others.

    Examples
    --------
    >>> bits, one = np.array([9, 4, 6], dtype=np.uint64), np.zeros(3, dtype=np.intp)
    >>> draw = fixed_size_draw(np.array([1.0, 1.0, 8.0]), 2, bits, np.uint64(0), one, 1)
    >>> draw.probability.tolist(), draw.drawn.tolist()
    ([0.5, 0.5, 1.0], [True, False, True])
    """
    n = size.shape[0]
    if not 0 <= n_draw <= n:
        raise InputError(f"n_draw must be between 0 and the {n} candidates, got {n_draw}.")
    if n_draw == 0:
        return Draw(np.zeros(n, np.bool_), np.zeros(n), np.zeros(n_groups), np.ones(n_groups))
    if shares is None:
        line = None
        quotas = np.array([float(n_draw)])
    else:
        line = group
        quotas = _quotas(shares, np.bincount(group, minlength=n_groups).astype(float), n_draw)
    lengths = _lengths(size, line, quotas)
    certain = lengths.certain
    if certain is None:
        drawn = _comb(lengths.whole, lengths.total, line, bits, start, quotas)
    else:
        loose = np.flatnonzero(~certain)
        rest = None if line is None else line[loose]
        left: Floats = quotas - _sums(certain.astype(np.float64), line, quotas.size)
        drawn = certain.copy()
        whole = lengths.whole[loose]
        drawn[loose] = _comb(whole, lengths.total, rest, bits[loose], start, left)
    left_over, others = _for_somebody_else(lengths, line, quotas, n_draw / n, n_batch or n)
    probability = lengths.whole  # in its place, since it is not needed any more
    probability *= per_line(lengths.factor, line)
    if certain is not None:
        probability[certain] = 1.0
    return Draw(
        drawn,
        probability,
        np.broadcast_to(left_over, (n_groups,)).copy(),
        np.broadcast_to(others, (n_groups,)).copy(),
    )


def _for_somebody_else(
    lengths: _Lengths, line: Line, quotas: Floats, share: float, n_batch: int
) -> tuple[Floats, Floats]:
    """Return ``Draw.left`` and ``Draw.others`` by line.

    ``share`` is that of an average candidate. An average person of the batch makes way, who holds
    one ``n_batch``-th of all sizes.
    """
    everybody = lengths.whole.size
    members = np.array([everybody]) if line is None else np.bincount(line, None, quotas.size)
    certain = np.zeros(quotas.size)
    if lengths.certain is not None:
        certain = _sums(lengths.certain.astype(np.float64), line, quotas.size)
    loose = members - certain
    total = lengths.total / lengths.unit
    others = np.where(loose > 0, total * (1 - 1 / n_batch), 0.0)
    # A line whose people are all certain takes anybody; an empty one gets an average share.
    left = np.where(loose > 0, quotas - certain, np.where(members > 0, quotas > 0, share))
    return left, np.where(left > 0, others, 1.0)


def per_line(values: Floats, line: Line) -> Any:
    """Spread a value per line over people; one line for all is left as it is."""
    return values[0] if line is None else values[line]


def _sums(whole: Floats, line: Line, n_lines: int) -> Floats:
    """Sum whole numbers per line; exact, since the sums stay below 2⁵³."""
    if line is None:
        return np.array([whole.sum()])
    sums: Floats = np.bincount(line, whole, n_lines).astype(np.float64, copy=False)
    return sums


@dataclass(frozen=True)
class _Lengths:
    """Sizes as whole numbers, and how long each is on its line."""

    whole: Floats
    total: Floats  # of the whole numbers, by line
    unit: Floats  # whole numbers per size, by line
    factor: Floats  # length per whole number, by line
    certain: NDArray[np.bool_] | None  # whose length would reach 1; None for nobody


def _lengths(size: NDArray[np.floating], line: Line, quotas: Floats) -> _Lengths:
    """Find per line the factor with Σ min(1, factor · size) = quota, and who is certain (π = 1).

    Everybody whose share of what is left reaches 1 becomes certain, and the rest is shared again;
    few passes are needed, since each lowers what is left. Sizes are made whole relative to the
    largest that is left, so that a giant does not coarsen the others.
    """
    n_lines = quotas.size
    finest = 2.0 ** min(32, 52 - size.shape[0].bit_length())  # sums stay exact below 2⁵³
    certain, loose, left = None, size, quotas.copy()
    while True:
        largest = _largest(loose, line, n_lines)
        unit = finest / np.where(largest > 0, np.maximum(largest, _TINY), 1.0)
        whole = loose * per_line(unit, line)
        np.ceil(whole, out=whole)
        total = _sums(whole, line, n_lines)
        factor = np.divide(left, total, out=np.zeros(n_lines), where=(total > 0) & (left > 0))
        if not np.any(np.ceil(largest * unit) * factor >= 1):  # nobody, if not the largest
            return _Lengths(whole, total, unit, factor, certain)
        new = whole * per_line(factor, line) >= 1
        certain = new if certain is None else certain | new
        loose = np.where(certain, 0.0, size)
        left = quotas - _sums(certain.astype(np.float64), line, n_lines)


def _largest(size: NDArray[np.floating], line: Line, n_lines: int) -> Floats:
    """Return the largest size of each line, 0 for an empty one."""
    if line is None:
        return np.array([size.max()], np.float64)
    members = (size[line == z] for z in range(n_lines))
    return np.array([one.max() if one.size else 0.0 for one in members], np.float64)


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
    whole: Floats, total: Floats, line: Line, bits: Bits, start: np.uint64, quotas: Floats
) -> NDArray[np.bool_]:
    """Lay people end to end, each line as long as its quota, and see who holds a tooth.

    People stand in the order of their bits. Those with the same leading bits make a bucket; only
    buckets that hold a tooth have to be put in order inside. ``total`` is the sum of whole sizes by
    line.
    """
    drawn = np.zeros(whole.shape, dtype=np.bool_)
    if whole.size == 0:
        return drawn
    ends = np.cumsum(quotas)
    ends[-1] = np.rint(ends[-1])  # the quotas of all lines make a whole number of people
    n_teeth = int(ends[-1])
    at_most = min(_BUCKET_BITS, whole.size.bit_length()) - (quotas.size - 1).bit_length()
    width = min((_PER_TOOTH * n_teeth).bit_length(), max(1, at_most))
    held = np.zeros((quotas.size, 1 << width))
    step = max(_BLOCK, 2 * held.size)
    blocks = [slice(at, at + step) for at in range(0, whole.size, step)]
    # So many bits that the last end minus the offset is exact: never a tooth too many.
    offset_bits = 52 - n_teeth.bit_length()
    offset = float(start >> np.uint64(64 - offset_bits)) * 2.0**-offset_bits

    firsts = np.append(0.0, ends[:-1])
    per_whole = np.where(total > 0, total, 1.0)

    def teeth_before(held: Floats, at: Any) -> Floats:
        """Count the teeth below points of some lines: whole sizes before each are ``held``."""
        first = firsts[at]
        return np.asarray(np.floor(first + (ends[at] - first) * (held / per_whole[at]) - offset))

    for some in blocks:  # sums of whole numbers are exact in any order
        bucket = _buckets(bits, line, some, width)
        held += _sums(whole[some], bucket, held.size).reshape(held.shape)
    after: Floats = np.cumsum(held, axis=1)
    lines = np.arange(quotas.size)[:, None]
    counts = teeth_before(after, lines)
    holds = counts > np.hstack([teeth_before(np.zeros(lines.shape), lines), counts[:, :-1]])
    near = np.concatenate(
        [
            np.flatnonzero(holds.ravel().take(_buckets(bits, line, some, width))) + some.start
            for some in blocks
        ]
    )
    near = near[order_of(bits[near])]
    at: Any = 0
    if line is not None:
        near = near[np.argsort(line[near], kind="stable")]
        at = line[near]
    bucket = _buckets(bits, line, near, width)
    cut = np.flatnonzero(np.diff(bucket, prepend=-1))  # where a bucket begins
    running = np.cumsum(whole[near])
    size_of_run = np.diff(np.append(cut, near.size))
    base = np.repeat(running[cut] - whole[near][cut], size_of_run)
    upper = (after - held).ravel()[bucket] + (running - base)
    drawn[near] = teeth_before(upper, at) > teeth_before(upper - whole[near], at)
    return drawn


def _buckets(bits: Bits, line: Line, some: Any, width: int) -> NDArray[np.intp]:
    """Return the bucket of some people: their line, and so many leading bits."""
    bucket: NDArray[np.intp] = (bits[some] >> np.uint64(64 - width)).view(np.intp)
    if line is not None:
        bucket += line[some] << width
    return bucket


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
