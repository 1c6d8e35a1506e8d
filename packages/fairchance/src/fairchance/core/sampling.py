"""Draws with exact inclusion probabilities.

There are two designs. *Fixed size*: exactly k candidates, candidate i with probability π_i
proportional to a size g_i, capped at 1 with the excess redistributed, with or without a quota per
group. *Coins*: an independent flip per candidate. The draw is a function of the candidates' keyed
random bits, never of the order of rows: sizes are turned into whole numbers before they are summed,
so that a sum is the same in any order, and candidates are lined up by their bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.errors import InputError

__all__ = ["Draw", "chance", "coin_factors", "coin_flips", "fixed_size_draw"]
__all__ += ["ramped", "ramped_coins"]

Floats = NDArray[np.float64]
Bits = NDArray[np.uint64]

Line = NDArray[np.intp] | None  # the line of each candidate; None: one line for all

_UNIT = float(2**-53)
_TINY = 1e-290  # smaller sizes count as equal


def chance(size: Any, left: Any, others: Any) -> Any:
    """Return min(1, left · size / (others + size)), the chance that a ``Draw`` defines.

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
    """The candidates drawn, and the probability of each.

    Attributes
    ----------
    drawn
        Whether each candidate was drawn.
    probability
        π_i, the probability of the draw, exact up to rounding of floating-point numbers.
    left, others
        Per group, numbers that give the chance of an applicant of size g who was not in this
        batch: ``min(1, left · g / (others + g))``. Such an applicant takes the place of an average
        one, so ``left`` is the part of the draw that is not certain, and ``others`` the sum of the
        sizes it is drawn from, less an average one. In a large batch that chance is the factor of
        the draw times g.
    """

    drawn: NDArray[np.bool_]
    probability: Floats
    left: Floats
    others: Floats

    def chance(self, size: Floats, group: NDArray[np.intp]) -> Floats:
        """Return the chance that applicants of some size would have had in this draw."""
        return np.asarray(chance(size, self.left[group], self.others[group]))

    @staticmethod
    def of_nobody(n_allowed: int, n_groups: int) -> Draw:
        """Return a draw without candidates, in which a single one would have been drawn."""
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
    """Draw ``n_draw`` candidates with probabilities proportional to size.

    Candidates are lined up (group by group if there are quotas, then by their random bits), each
    with a length π_i. A comb with teeth one apart and a random start is laid over the line, and a
    candidate who holds a tooth is drawn. So exactly ``n_draw`` are drawn, each with probability
    π_i, and a group's count is its quota rounded up or down, with the quota as its expectation.

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
        Share of the draw that each group gets; None draws by size alone. If a group is too small
        for its share, the rest goes to the others in proportion to their shares.
    n_batch
        Number of applicants in the batch, candidates or not; None means candidates only.

    Examples
    --------
    >>> bits, group = np.array([9, 4, 6], dtype=np.uint64), np.zeros(3, dtype=np.intp)
    >>> draw = fixed_size_draw(np.array([1.0, 1.0, 8.0]), 2, bits, np.uint64(0), group, 1)
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
    left_over, others = _for_another(lengths, line, quotas, n_draw / n, n_batch or n)
    probability = lengths.whole  # in its place, since it is not needed any more
    probability *= _per_line(lengths.factor, line)
    if certain is not None:
        probability[certain] = 1.0
    return Draw(
        drawn,
        probability,
        np.broadcast_to(left_over, (n_groups,)).copy(),
        np.broadcast_to(others, (n_groups,)).copy(),
    )


def _for_another(
    lengths: _Lengths, line: Line, quotas: Floats, share: float, n_batch: int
) -> tuple[Floats, Floats]:
    """Return ``Draw.left`` and ``Draw.others`` by line.

    ``share`` is that of an average candidate. Another applicant replaces an average one of the
    batch, who holds one ``n_batch``-th of all sizes.
    """
    n = lengths.whole.size
    members = np.array([n]) if line is None else np.bincount(line, None, quotas.size)
    certain = np.zeros(quotas.size)
    if lengths.certain is not None:
        certain = _sums(lengths.certain.astype(np.float64), line, quotas.size)
    loose = members - certain
    total = lengths.total / lengths.unit
    others = np.where(loose > 0, total * (1 - 1 / n_batch), 0.0)
    # If all candidates of a line are certain, so is another; an empty line gets an average share.
    left = np.where(loose > 0, quotas - certain, np.where(members > 0, quotas > 0, share))
    return left, np.where(left > 0, others, 1.0)


def _per_line(values: Floats, line: Line) -> Any:
    """Return each candidate's value of their line; a single value if there is one line."""
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
    certain: NDArray[np.bool_] | None  # lengths that would reach 1; None if there are none


def _lengths(size: NDArray[np.floating], line: Line, quotas: Floats) -> _Lengths:
    """Find per line the factor with Σ min(1, factor · size) = quota, and the certain (π = 1).

    Candidates whose share of the quota reaches 1 become certain, and the rest of the quota is
    shared again among the others, in a few passes. Sizes are made whole relative to the largest
    uncertain one, so that a giant does not coarsen the others.
    """
    n_lines = quotas.size
    finest = 2.0 ** min(32, 52 - size.shape[0].bit_length())  # sums stay exact below 2⁵³
    certain, loose, left = None, size, quotas.copy()
    while True:
        largest = _largest(loose, line, n_lines)
        unit = finest / np.where(largest > 0, np.maximum(largest, _TINY), 1.0)
        whole = loose * _per_line(unit, line)
        np.ceil(whole, out=whole)
        total = _sums(whole, line, n_lines)
        factor = np.divide(left, total, out=np.zeros(n_lines), where=(total > 0) & (left > 0))
        if not np.any(np.ceil(largest * unit) * factor >= 1):  # then no other is either
            return _Lengths(whole, total, unit, factor, certain)
        new = whole * _per_line(factor, line) >= 1
        certain = new if certain is None else certain | new
        loose = np.where(certain, 0.0, size)
        left = quotas - _sums(certain.astype(np.float64), line, n_lines)


def _largest(size: NDArray[np.floating], line: Line, n_lines: int) -> Floats:
    """Return the largest size of each line, 0 for an empty one."""
    if line is None:
        return np.array([size.max()], np.float64)
    largest = np.zeros(n_lines)
    np.maximum.at(largest, line, size)
    return largest


def _quotas(shares: Floats, members: Floats, n_draw: float) -> Floats:
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
    """Lay candidates end to end, each line as long as its quota; return which hold a tooth.

    Candidates lie in the order of their bits. ``total`` is the sum of whole sizes by line.
    """
    drawn = np.zeros(whole.shape, dtype=np.bool_)
    if whole.size == 0:
        return drawn
    ends = np.cumsum(quotas)
    ends[-1] = np.rint(ends[-1])  # the quotas of all lines sum to a whole number
    # So many bits that the last end minus the offset is exact: never a tooth too many.
    offset_bits = 52 - int(ends[-1]).bit_length()
    offset = float(start >> np.uint64(64 - offset_bits)) * 2.0**-offset_bits
    order, at = np.argsort(bits, kind="stable"), np.zeros(whole.size, np.intp)
    if line is not None:
        order = order[np.argsort(line[order], kind="stable")]
        at = line[order]
    sizes = whole[order]
    before_line = np.append(0.0, np.cumsum(total)[:-1])
    upper = np.cumsum(sizes) - before_line[at]  # whole sizes up to here in the line, exact
    first = np.append(0.0, ends[:-1])[at]
    width, all_sizes = ends[at] - first, np.where(total > 0, total, 1.0)[at]

    def teeth_before(held: Floats) -> Floats:
        """Count the teeth below points of the lines, given the whole sizes before each."""
        return np.asarray(np.floor(first + width * (held / all_sizes) - offset))

    drawn[order] = teeth_before(upper) > teeth_before(upper - sizes)
    return drawn


def coin_factors(
    size: NDArray[np.floating],
    n_draw: float,
    group: NDArray[np.intp],
    n_groups: int,
    shares: Floats | None = None,
) -> Floats:
    """Return c per group with which coins of min(1, c · size) draw ``n_draw`` in expectation.

    Groups share the draw as in ``fixed_size_draw``; a group without candidates gets the factor of
    all. ``n_draw`` need not be a whole number.

    Examples
    --------
    >>> size, group = np.array([1.0, 1.0, 8.0]), np.array([0, 0, 1])
    >>> coin_factors(size, 1.5, group, 2).tolist()
    [0.25, 0.25]
    >>> coin_factors(size, 1.0, group, 2, np.array([0.5, 0.5])).tolist()
    [0.25, 0.0625]
    """
    n = size.shape[0]
    if n == 0 or n_draw <= 0:
        return np.zeros(n_groups)
    all_as_one = _factors(size, None, np.array([min(float(n_draw), n)]))
    if shares is None:
        return np.full(n_groups, all_as_one[0])
    members = np.bincount(group, minlength=n_groups).astype(float)
    factors = _factors(size, group, _quotas(shares, members, min(float(n_draw), n)))
    return np.where(members > 0, factors, all_as_one)


def _factors(size: NDArray[np.floating], line: Line, quotas: Floats) -> Floats:
    """Return c per line with Σ min(1, c · size) = quota."""
    lengths = _lengths(size, line, quotas)
    factor = lengths.factor * lengths.unit
    certain = (lengths.total == 0) & (quotas > 0)  # all are: from the smallest size on
    return np.where(certain, _largest(1 / size, line, quotas.size), factor)


def coin_flips(probability: Floats, bits: Bits) -> NDArray[np.bool_]:
    """Accept each applicant independently with their own probability.

    Examples
    --------
    >>> coin_flips(np.array([0.0, 1.0]), np.array([0, 2**64 - 1], dtype=np.uint64)).tolist()
    [False, True]
    """
    if not np.all((probability >= 0) & (probability <= 1)):
        raise InputError("probabilities must be in [0, 1], got one outside or NaN; clip them.")
    return (bits >> np.uint64(11)) * _UNIT < probability


def ramped(
    answer: NDArray[np.bool_],
    pi: Floats,
    incumbent: NDArray[np.bool_] | None,
    ramp: float,
    bits_of_ramp: Bits,
) -> tuple[NDArray[np.bool_], Floats]:
    """Follow a policy's answer for a share r of the applicants, and the incumbent's for the others.

    Return who is accepted, and p = (1 − r)·d + r·π, where π is the probability of the policy's
    answer. The incumbent's decisions d may be None if r = 1. The coins of the ramp depend on the
    ids alone (``ids.ramp_bits``), so a larger ramp follows the policy for more applicants and for
    none fewer.

    Examples
    --------
    >>> bits = np.array([2**62, 2**63], np.uint64)  # coins of ¼ and ½
    >>> accepted, p = ramped(np.ones(2, bool), np.ones(2), np.zeros(2, bool), 0.3, bits)
    >>> accepted.tolist(), p.tolist()
    ([True, False], [0.3, 0.3])
    """
    if incumbent is None or ramp == 1:
        return answer, pi
    follows = coin_flips(np.full(pi.shape, ramp), bits_of_ramp)
    return np.where(follows, answer, incumbent), (1 - ramp) * incumbent + ramp * pi


def ramped_coins(
    pi: Floats,
    incumbent: NDArray[np.bool_] | None,
    ramp: float,
    bits_of_round: Bits,
    bits_of_ramp: Bits,
) -> tuple[NDArray[np.bool_], Floats]:
    """Flip a coin with probability π for each applicant, and follow it as ``ramped`` does.

    Examples
    --------
    >>> d, bits = np.array([True, False]), np.array([2**63, 2**63], np.uint64)
    >>> accepted, p = ramped_coins(np.array([0.2, 0.8]), d, 0.0, bits, bits)
    >>> accepted.tolist(), p.tolist()  # in shadow
    ([True, False], [1.0, 0.0])
    """
    return ramped(coin_flips(pi, bits_of_round), pi, incumbent, ramp, bits_of_ramp)
