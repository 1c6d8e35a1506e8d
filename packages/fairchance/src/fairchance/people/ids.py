"""Ids of applications: their 64 bits, keyed randomness, and an index of the known ones.

Randomness of decisions is keyed: an applicant's number in a round is a function of (seed, round,
id) only, so that the order of rows does not matter and a draw can be repeated from a record. An id
becomes 64 bits (integers as they are, text through md5), and splitmix64's finaliser mixes the bits
with the key of the round. That is a bijection, so two integer ids never collide. The key is a
one-way function of the seed (HMAC-SHA256), so whoever knows one key learns no other one.
"""

from __future__ import annotations

import hmac
import secrets
import unicodedata
from collections.abc import Sequence
from hashlib import md5
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from fairchance.core.saved import saved
from fairchance.errors import InputError

__all__ = [
    "IdIndex",
    "as_ids",
    "check_spelling",
    "given_twice",
    "id_bits",
    "increasing",
    "is_text",
    "keyed_bits",
    "mistakable",
    "ramp_bits",
    "ramp_key",
    "round_key",
    "seed_of",
    "unique_bits",
]

Bits = NDArray[np.uint64]
Numbers = NDArray[np.int64]

_ODD, _MIX_1, _MIX_2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_RAMP = 5  # purpose of the ramp's randomness, which is the same in all rounds
_INVISIBLE = {"Cc", "Cf"}  # Unicode's categories of control and format characters


def as_ids(ids: ArrayLike, n: int) -> NDArray[np.generic]:
    """Check that there is one id per row, and return integers or strings."""
    if isinstance(ids, np.ma.MaskedArray) and np.ma.is_masked(ids):
        raise InputError(
            f"{int(np.ma.getmaskarray(ids).sum())} of {np.size(ids)} ids are masked; give these an "
            f"id, or leave them out."
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
        raise InputError(f"ids must be integers or strings, got {wrong[0]!r}; convert them.")
    if array.size == 0 or not all(isinstance(name, int) for name in names):
        # In the list that was passed in: numpy drops NUL at the end of a text.
        _check_text(ids if isinstance(ids, list | tuple) else array.tolist())
        return array.astype(np.str_)
    if int(array.max()) >= 2**63 or int(array.min()) < -(2**63):
        raise InputError(
            f"ids must be below 2**63, got {array.max()}; pass larger numbers as strings."
        )
    return array.astype(np.int64, copy=False)


def _check_text(names: Sequence[Any]) -> None:
    """Raise unless numpy and databases can store each name as text."""
    if not is_text("".join(map(str, names))):
        wrong = next(name for name in map(str, names) if not is_text(name))
        raise InputError(
            f"ids must be text without NUL and half surrogate pairs, got {wrong!r}; change it."
        )


def is_text(text: str) -> bool:
    """Return whether numpy and all databases can store a text: no NUL, no half characters.

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


def mistakable(name: str) -> bool:
    """Return whether an id could be taken for another that looks the same.

    So it is with white space at an end, an invisible character, or a form other than Unicode's NFC.

    Examples
    --------
    >>> mistakable("Zoë"), mistakable(" Zoë"), mistakable("")
    (False, True, True)
    >>> mistakable(unicodedata.normalize("NFD", "Zoë")), mistakable("Zo" + chr(0x200B) + "ë")
    (True, True)
    """
    if name.isascii() and name.isprintable() and name == name.strip():  # quick, for most ids
        return not name
    return (
        name != name.strip()
        or not unicodedata.is_normalized("NFC", name)
        or any(unicodedata.category(character) in _INVISIBLE for character in name)
    )


def check_spelling(ids: NDArray[np.generic]) -> None:
    """Raise if a new id could be taken for another: two spellings would get two draws."""
    if ids.dtype.kind == "i":
        return
    names = ids.tolist()
    together = "".join(names)
    if together.isascii() and together.isprintable() and " " not in together and all(names):
        return
    for name in names:
        if mistakable(name):
            raise InputError(
                f"an id must be in Unicode's NFC, without white space at its ends or invisible "
                f"characters, got {name!a}; change it."
            )


def id_bits(ids: NDArray[np.generic]) -> Bits:
    """Return the 64 bits of each id: an integer itself, the first eight bytes of a text's md5.

    Examples
    --------
    >>> id_bits(np.array([7, 8])).tolist()
    [7, 8]
    >>> [hex(bits) for bits in id_bits(np.array(["a"])).tolist()]
    ['0xa8b6f1c0b975c10c']
    """
    if ids.dtype.kind == "i":
        return ids.astype(np.int64, copy=False).view(np.uint64)
    digests = (md5(name.encode(), usedforsecurity=False).digest()[:8] for name in ids.tolist())
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def increasing(bits: Bits) -> bool:
    """Return whether each number is larger than the one before."""
    return bool(np.all(bits[1:] > bits[:-1]))


def unique_bits(ids: NDArray[np.generic]) -> Bits:
    """Return the bits of ids; raise if an id occurs twice."""
    bits = id_bits(ids)
    if not increasing(bits):
        in_order = np.sort(bits)
        twice = in_order[1:][in_order[1:] == in_order[:-1]]
        if twice.size:
            raise given_twice(ids[np.flatnonzero(bits == twice[0])[0]].item())
    return bits


def given_twice(name: Any) -> InputError:
    """Return the error for an id that occurs twice."""
    return InputError(
        f"ids must be unique, got {name!r} more than once; a person who applies again needs a new "
        f"id."
    )


def seed_of(random_state: Any) -> int:
    """Return the seed of the keyed randomness; 128 random bits unless a whole number is given."""
    if random_state is None:
        return secrets.randbits(128)
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int.from_bytes(check_random_state(random_state).bytes(16), "little")


def round_key(seed: int, round: int, purpose: int = 0) -> np.uint64:
    """Return the key of a round; ``purpose`` separates the uses of its randomness."""
    use = f"fairchance {purpose} {round}".encode()
    digest = hmac.digest(str(seed).encode(), use, "sha256")
    return np.uint64(int.from_bytes(digest[:8], "little"))


def keyed_bits(bits: Bits, key: np.uint64 | Bits) -> Bits:
    """Return each applicant's random 64 bits under a key: a bijection of the id's own bits.

    Several keys broadcast against the bits.
    """
    mixed = (bits ^ key) * np.uint64(_ODD)
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(_MIX_1)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(_MIX_2)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def ramp_key(seed: int) -> np.uint64:
    """Return the key of the ramp, which is the same in all rounds."""
    return round_key(seed, 0, _RAMP)


def ramp_bits(bits: Bits, seed: int) -> Bits:
    """Return the random bits of the ramp's coins: keyed by the id alone, not by the round.

    So the applicants of a ramp of 5 % are among those of a ramp of 20 %.
    """
    return keyed_bits(bits, ramp_key(seed))


@saved
class IdIndex:
    """All ids seen so far with a number attached to each.

    The ids are kept in sorted runs that are merged as they grow: adding a batch costs a sort and a
    logarithmic number of merges, and rarely copies all that is known.

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
        """Return the number attached to each id, UNKNOWN for unknown ids."""
        numbers = np.full(bits.shape, self.UNKNOWN, dtype=np.int64)
        if bits.size == 0:
            return numbers
        low, high = bits.min(), bits.max()
        for keys, values in self._runs:
            if keys[0] > high or keys[-1] < low:
                continue
            spot = np.minimum(np.searchsorted(keys, bits), keys.size - 1)
            hit = keys[spot] == bits
            numbers[hit] = values[spot[hit]]
        return numbers

    def known(self, bits: Bits) -> NDArray[np.intp]:
        """Return the positions of known ids."""
        return np.flatnonzero(self.find(bits) != self.UNKNOWN)

    def add(self, bits: Bits, values: Numbers) -> None:
        """Add ids that are distinct and not known yet."""
        if bits.size == 0:
            return
        if not increasing(bits):
            order = np.argsort(bits, kind="stable")
            bits, values = bits[order], values[order]
        # No two runs are within a factor of two in size: so there are few runs, and a small one is
        # never copied for the sake of a large one.
        while near := [
            run for run in self._runs if run[0].size <= 2 * bits.size <= 4 * run[0].size
        ]:
            keys, numbers = near[0]
            self._runs = [run for run in self._runs if run[0] is not keys]
            bits, values = np.concatenate([keys, bits]), np.concatenate([numbers, values])
            order = np.argsort(bits, kind="stable")  # a merge, as numpy finds the sorted runs
            bits, values = bits[order], values[order]
        self._runs.append((bits, values))

    def remove(self, bits: Bits, moved: Sequence[NDArray[np.int64]]) -> None:
        """Remove ids without a trace, and renumber the others.

        ``moved`` is, for each part, the new row of each old row. A number from 0 on is ``row ·
        parts + part``; numbers below 0 stay.

        Examples
        --------
        >>> index = IdIndex()
        >>> index.add(np.array([5, 3, 4], dtype=np.uint64), np.array([0, 1, -1]))
        >>> index.remove(np.array([5], dtype=np.uint64), [np.array([-1, 0])])
        >>> index.find(np.array([3, 4, 5], dtype=np.uint64)).tolist()
        [0, -1, -9]
        """
        runs, n = [], len(moved)
        for keys, values in self._runs:
            kept = ~np.isin(keys, bits)
            numbers = values[kept]
            for part, new in enumerate(moved):
                here = (values[kept] >= 0) & (values[kept] % n == part)
                numbers[here] = new[numbers[here] // n] * n + part
            if kept.any():
                runs.append((keys[kept], numbers))
        self._runs = runs
