"""Names of applications: hashing, keyed randomness, and which ones are known already.

Randomness of decisions is keyed: a person's number in a round is a function of (seed, round, id)
and of nothing else, so that the order of rows does not matter and a draw can be repeated from a
record. An id becomes 64 bits (integers as they are, anything else through md5 of its text), and the
bits are mixed with splitmix64's finaliser, a bijection: two integer ids never collide.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from secondlook.core.ordering import order_of
from secondlook.errors import InputError
from secondlook.people.digests import md5_bits

__all__ = [
    "IdIndex",
    "as_ids",
    "check_spelling",
    "id_bits",
    "increasing",
    "is_text",
    "keyed_bits",
    "mistakable",
    "round_key",
    "seed_of",
    "unique_bits",
]

Bits = NDArray[np.uint64]
Numbers = NDArray[np.int32] | NDArray[np.int64]

# Constants as arrays: numpy would look up the type of a number in every call.
_ODD, _MIX_1, _MIX_2, _30, _27, _31 = (
    np.array(number, np.uint64)
    for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 30, 27, 31)
)

_BLOCK = 16384  # numbers that stay in the cache while they are mixed
_FIRST_SURROGATE = 0xD800
_UNSEEN = {"Cc", "Cf"}  # Unicode's categories of characters that control or format others


def _mix(bits: Bits, spare: Bits) -> None:
    """Scramble 64-bit numbers in place (splitmix64's finaliser)."""
    np.right_shift(bits, _30, out=spare)
    bits ^= spare
    bits *= _MIX_1
    np.right_shift(bits, _27, out=spare)
    bits ^= spare
    bits *= _MIX_2
    np.right_shift(bits, _31, out=spare)
    bits ^= spare


def _mix_one(bits: int) -> int:
    """Do the same to one number, for which arrays would take many times as long."""
    bits = (bits ^ bits >> 30) * int(_MIX_1) % 2**64
    bits = (bits ^ bits >> 27) * int(_MIX_2) % 2**64
    return bits ^ bits >> 31


def as_ids(ids: ArrayLike, n: int) -> NDArray[np.generic]:
    """Check that there is one id a row, and return integers or strings."""
    if isinstance(ids, np.ma.MaskedArray) and np.ma.is_masked(ids):
        raise InputError(
            f"ids must name everybody, and {int(np.ma.getmaskarray(ids).sum())} of "
            f"{np.size(ids)} are masked; give these an id, or leave them out."
        )
    array = np.asarray(ids)
    if array.ndim != 1 or array.shape[0] != n:
        raise InputError(
            f"ids must hold one id per row, {n} in all, got shape {array.shape}; "
            f"pass a one-dimensional array."
        )
    names = array.tolist() if array.dtype.kind == "O" else array[:1].tolist()
    wrong = [name for name in names if isinstance(name, bool) or not isinstance(name, int | str)]
    if wrong:
        raise InputError(
            f"ids must be integers or strings, got {wrong[0]!r}; convert them first, because a "
            f"rounded or missing id names somebody else."
        )
    if array.size == 0 or not all(isinstance(name, int) for name in names):
        if not (array.dtype.kind == "U" and array is ids and _all_text(array)):
            _check_text(ids if isinstance(ids, list | tuple) else array.tolist())
        return array.astype(np.str_)
    if int(array.max()) >= 2**63 or int(array.min()) < -(2**63):
        raise InputError(
            f"ids must be below 2**63, got {array.max()}; pass larger numbers as strings."
        )
    return array.astype(np.int64, copy=False)


def _check_text(names: Sequence[Any]) -> None:
    """Raise unless each name is a text, whatever kind of thing it is."""
    if not is_text("".join(map(str, names))):
        wrong = next(one for one in names if not is_text(str(one)))
        raise InputError(
            f"ids must be text without the character NUL and without half a surrogate pair, "
            f"got {str(wrong)!r}; change it."
        )


def _all_text(names: NDArray[np.str_]) -> bool:
    """Say quickly whether ``is_text`` of all names: True is certain."""
    width = names.dtype.itemsize // 4
    for at in range(0, names.size if width else 0, _BLOCK):
        some = np.ascontiguousarray(names[at : at + _BLOCK])
        codes = some.view(np.uint32).reshape(some.size, width)
        goes_on_behind_nul = (codes[:, :-1] == 0) & (codes[:, 1:] != 0)
        if codes.max() >= _FIRST_SURROGATE or goes_on_behind_nul.any():
            return False
    return True


def is_text(text: str) -> bool:
    """Say whether numpy and every database keep a text: without NUL and half characters.

    Examples
    --------
    >>> is_text("Zoë"), is_text("a" + chr(0)), is_text(chr(0xD800))
    (True, False, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return False
    return "\0" not in text


def mistakable(name: str) -> str | None:
    """Say in what a name could be taken for another that looks the same; None if in nothing.

    Examples
    --------
    >>> mistakable("Zoë"), mistakable(" Zoë"), mistakable("")
    (None, 'white space at an end', 'no character')
    >>> mistakable(unicodedata.normalize("NFD", "Zoë"))
    "another form of its characters than Unicode's NFC"
    >>> mistakable("Zo" + chr(0x200B) + "ë")
    'the character U+200B, which nobody sees'
    """
    if not name:
        return "no character"
    unseen = next((one for one in name if unicodedata.category(one) in _UNSEEN), None)
    if unseen is not None:
        return f"the character U+{ord(unseen):04X}, which nobody sees"
    if name != name.strip():
        return "white space at an end"
    if not unicodedata.is_normalized("NFC", name):
        return "another form of its characters than Unicode's NFC"
    return None


def check_spelling(ids: NDArray[np.generic]) -> None:
    """Raise if a name could be taken for another: two spellings of one would be two draws.

    Parameters
    ----------
    ids
        As ``as_ids`` returns them, of people who are new.
    """
    if ids.dtype.kind == "i":
        return
    names: list[str] = ids.tolist()
    if all(names) and list(map(str.strip, names)) == names and _all_plain(names):
        return
    wrong = next(((one, why) for one in names if (why := mistakable(one)) is not None), None)
    if wrong is not None:
        raise InputError(
            f"an id must be spelled in one way only, and {wrong[0]!a} has {wrong[1]}, so that "
            f"one person could have two ids and two draws; change it."
        )


def _all_plain(names: list[str]) -> bool:
    """Say whether all names are in NFC and show every character that they have."""
    characters = "".join(names)
    if characters.isascii():
        return characters.isprintable()
    return _UNSEEN.isdisjoint(map(unicodedata.category, set(characters))) and (
        unicodedata.is_normalized("NFC", "\n".join(names))  # which goes together with nothing
    )


def id_bits(ids: NDArray[np.generic]) -> Bits:
    """Return the 64 bits that stand for each id.

    Examples
    --------
    >>> id_bits(np.array([7, 8])).tolist()
    [7, 8]
    """
    if ids.dtype.kind == "i":
        return ids.astype(np.int64, copy=False).view(np.uint64)
    return md5_bits(ids.astype(np.str_, copy=False))


def increasing(bits: Bits) -> bool:
    """Say whether each number is larger than the one before."""
    return bool(np.all(bits[1:] > bits[:-1]))


def unique_bits(ids: NDArray[np.generic]) -> Bits:
    """Return the bits of ids, none of which may be there twice."""
    bits = id_bits(ids)
    if not increasing(bits):
        in_order = np.sort(bits)
        twice = in_order[1:][in_order[1:] == in_order[:-1]]
        if twice.size:
            name = ids[np.flatnonzero(bits == twice[0])[0]].item()
            raise InputError(
                f"ids must be unique, got {name!r} more than once; a person who applies again "
                f"needs a new id."
            )
    return bits


def seed_of(random_state: Any) -> int:
    """Return the seed of the keyed randomness."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def round_key(seed: int, round: int, purpose: int = 0) -> np.uint64:
    """Return the key of a round; ``purpose`` tells apart the uses of one round's randomness."""
    key = seed % 2**64
    for part in (round, purpose):
        key = (_mix_one(key) + (part + 1) * int(_ODD)) % 2**64
    return np.uint64(_mix_one(key))


def keyed_bits(bits: Bits, key: np.uint64, rows: NDArray[np.intp] | None = None) -> Bits:
    """Return each person's random 64 bits under a key: a bijection of the id's own bits.

    Of everybody, or of some rows. Several keys broadcast against the bits.
    """
    if np.ndim(key) > 0:
        several = (bits ^ key) * _ODD
        _mix(several, np.empty_like(several))
        return several
    n = bits.size if rows is None else rows.size
    keyed, spare = np.empty(n, np.uint64), np.empty(min(n, _BLOCK), np.uint64)
    same = np.asarray(key)
    for at in range(0, n, _BLOCK):
        block = own = keyed[at : at + _BLOCK]
        if rows is None:
            own = bits[at : at + _BLOCK]
        else:  # all of them exist, so nothing is clipped, and in that mode nothing is copied twice
            bits.take(rows[at : at + _BLOCK], out=block, mode="clip")
        np.bitwise_xor(own, same, out=block)
        block *= _ODD
        _mix(block, spare[: block.size])
    return keyed


class IdIndex:
    """Every id seen so far with one number attached, in sorted runs that are merged as they grow.

    Adding a batch costs a sort, unless it is in order, and a logarithmic number of merges; it
    never copies everything that is known.

    Examples
    --------
    >>> index = IdIndex()
    >>> index.add(np.array([5, 3], dtype=np.uint64), np.array([50, 30]))
    >>> index.find(np.array([3, 4], dtype=np.uint64)).tolist()
    [30, -9]
    """

    UNKNOWN = -9

    def __init__(self) -> None:
        self._runs: list[tuple[Bits, Numbers]] = []

    def __len__(self) -> int:
        return sum(keys.size for keys, _ in self._runs)

    def find(self, bits: Bits) -> NDArray[np.int64]:
        """Return the number attached to each id, UNKNOWN where there is none."""
        found = np.full(bits.shape, self.UNKNOWN, dtype=np.int64)
        if bits.size == 0:
            return found
        low, high = bits.min(), bits.max()
        for keys, values in self._runs:
            if keys[0] > high or keys[-1] < low:
                continue
            spot = _spots(keys, bits)
            hit = keys.take(spot) == bits
            if hit.all():
                return values.take(spot).astype(np.int64, copy=False)
            found[hit] = values[spot[hit]]
        return found

    def known(self, bits: Bits) -> NDArray[np.intp]:
        """Return which of these ids are known."""
        if not self.overlaps(bits):
            return np.empty(0, np.intp)
        return np.flatnonzero(self.find(bits) != self.UNKNOWN)

    def overlaps(self, bits: Bits) -> bool:
        """Say quickly whether any of these ids could be known: False is certain."""
        if bits.size == 0:
            return False
        low, high = bits.min(), bits.max()
        return any(keys[0] <= high and keys[-1] >= low for keys, _ in self._runs)

    def add(self, bits: Bits, values: Numbers, *, in_order: bool = False) -> None:
        """Add ids that are distinct and not known yet, and maybe known to increase."""
        if bits.size == 0:
            return
        if not in_order and not increasing(bits):
            order = order_of(bits)
            bits, values = bits.take(order), values.take(order)
        # No two runs are within a factor of two in size: so there are few, and a small one is
        # never copied for the sake of a large one.
        while near := [
            run for run in self._runs if run[0].size <= 2 * bits.size <= 4 * run[0].size
        ]:
            keys, numbers = near[0]
            self._runs = [run for run in self._runs if run[0] is not keys]
            joined, values = np.concatenate([keys, bits]), np.concatenate([numbers, values])
            if keys[-1] > bits[0]:
                order = np.argsort(joined, kind="stable")  # two sorted runs: a merge
                joined, values = joined[order], values[order]
            bits = joined
        self._runs.append((bits, values))

    def remove(self, bits: Bits, moved: Sequence[NDArray[np.int64]]) -> None:
        """Take ids out, so that nothing tells that they were known, and renumber the others.

        Parameters
        ----------
        bits
            The ids.
        moved
            Numbers from 0 on are places, in turn, in as many parts as there are arrays here: the
            number of a place is ``place · parts + part``. Each array has the new place of each old.

        Examples
        --------
        >>> index = IdIndex()
        >>> index.add(np.array([5, 3, 4], dtype=np.uint64), np.array([0, 1, -1]))
        >>> index.remove(np.array([5], dtype=np.uint64), [np.array([-1, 0])])
        >>> index.find(np.array([3, 4, 5], dtype=np.uint64)).tolist()
        [0, -1, -9]
        """
        runs = [(*run, ~np.isin(run[0], bits)) for run in self._runs]
        self._runs = [
            (keys[kept], _renumbered(values[kept], moved))
            for keys, values, kept in runs
            if kept.any()
        ]


def _spots(keys: Bits, bits: Bits) -> NDArray[np.intp]:
    """Return where each number is among sorted ones, if it is there at all."""
    last = keys.size - 1
    if int(keys[-1]) - int(keys[0]) == last:  # one after the other: no search
        return np.asarray(np.minimum(bits - keys[0], np.uint64(last)).view(np.intp))
    return np.asarray(np.minimum(np.searchsorted(keys, bits), last))


def _renumbered(numbers: Numbers, moved: Sequence[NDArray[np.int64]]) -> Numbers:
    new, n = numbers.copy(), len(moved)
    for part, places in enumerate(moved):
        mine = (numbers >= 0) & (numbers % n == part)
        new[mine] = places[numbers[mine] // n] * n + part
    return new
