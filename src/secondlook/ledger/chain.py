"""Hashes that tie the entries of a program together.

What belongs to one person is hashed with a random salt of its own. When the person's data are
erased the salt goes with them: the hash stays, the chain over it still closes, and nobody can try
out what it was made of. Group values add a second salt to that hash, which is kept with them, so
that whoever may read the people only cannot try out the groups either. Everything else is hashed as
it is stored.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.errors import InputError

__all__ = ["NOTHING", "SALT", "Checkpoint", "digest_of_rows", "entry_hash", "group_digests"]
__all__ += ["joined", "packed", "people_digests", "salts"]

NOTHING = bytes(32)  # before the first entry, and in the place of a part that an entry lacks
SALT = 16  # bytes


@dataclass(frozen=True)
class Checkpoint:
    """Where a program's chain stood: to be kept elsewhere and compared later.

    Examples
    --------
    >>> kept = str(Checkpoint("lender", 3, bytes(32)))
    >>> Checkpoint.read(kept).number
    3
    """

    program: str
    number: int
    hash: bytes

    def __str__(self) -> str:
        return f"{self.number}:{self.hash.hex()}:{self.program}"

    @staticmethod
    def read(text: str) -> Checkpoint:
        """Read what ``str`` of a checkpoint gave."""
        number, _, rest = text.strip().partition(":")
        digest, _, program = rest.partition(":")
        try:
            found = Checkpoint(program, int(number), bytes.fromhex(digest))
        except ValueError:
            found = Checkpoint("", 0, b"")
        if len(found.hash) != len(NOTHING) or not program or found.number < 1:
            raise InputError(
                f"a checkpoint is a number, a hash of 64 hexadecimal digits and the program's "
                f"name with colons between them, and numbers begin at 1, got {text!r}; pass one as "
                f"it was exported."
            )
        return found


def salts(n: int) -> list[bytes]:
    """Return fresh salts for n rows."""
    made: list[bytes] = np.frombuffer(os.urandom(SALT * n), f"V{SALT}").tolist()
    return made


def people_digests(
    persons: Iterable[int],
    applications: Sequence[str],
    numbers: Sequence[bytes],
    texts: Sequence[str | None],
    reasons: Sequence[bytes | None],
    salt: Sequence[bytes],
    groups: Sequence[str] | None = None,
    group_salt: Sequence[bytes] = (),
) -> list[bytes]:
    """Return one salted hash per person, over everything that was known of them.

    A database may hold anything: what is not of the kind that was written raises TypeError or
    AttributeError.
    """
    n = len(applications)
    "".join(chain(applications, filter(None, texts)))  # or a format would make text of anything
    if texts.count(None) == n:
        named = zip(persons, applications, strict=True)
        who = [f"{person}:{len(name)}:-1:{name}".encode() for person, name in named]
    else:
        widths = [-1 if one is None else len(one) for one in texts]
        told = zip(persons, applications, widths, texts, strict=True)
        who = [f"{a}:{len(b)}:{width}:{b}{text or ''}".encode() for a, b, width, text in told]
    parts: list[Iterable[bytes]] = [salt, who, numbers]
    if groups is not None:
        words = {one: b"%d|%b" % (len(one), one.encode()) for one in set(groups)}
        parts[1:1] = [map(words.__getitem__, groups), group_salt]
    if reasons.count(None) < n:
        before = {width: b":%d:" % width for width in set(map(len, numbers))}
        behind = zip(numbers, reasons, strict=True)
        parts.append([b"" if why is None else before[len(own)] + why for own, why in behind])
    return [sha256(one).digest() for one in map(b"".join, zip(*parts, strict=True))]


def group_digests(
    persons: Iterable[int], values: Sequence[str], salt: Sequence[bytes]
) -> list[bytes]:
    """Return one salted hash per group value, as ledgers before version 0004 kept them."""
    encoded = {one: one.encode() for one in set(values)}
    rows = zip(salt, persons, map(encoded.__getitem__, values), strict=True)
    return [sha256(b"%b%d:%b" % row).digest() for row in rows]


def joined(digests: Sequence[bytes]) -> bytes:
    """Return the hash of many hashes in their order."""
    return sha256(b"".join(digests)).digest()


def packed(*columns: NDArray[Any]) -> bytes:
    """Return the hash of columns of numbers, each with its length."""
    whole = sha256()
    for one in columns:
        values = np.ascontiguousarray(one, "<f8" if one.dtype.kind == "f" else "<i8")
        whole.update(b"%d:" % values.size)
        whole.update(values.data)
    return whole.digest()


def digest_of_rows(rows: Iterable[Sequence[str | int]]) -> bytes:
    """Return the hash of rows of text and whole numbers."""
    return sha256(repr([tuple(one) for one in rows]).encode()).digest()


def entry_hash(program: str, number: int, words: Sequence[str], *digests: bytes) -> bytes:
    """Return the hash of an entry over its words, its content and the entry before."""
    whole = sha256(b"secondlook 1:%d:" % number)
    for one in (program, *words):
        text = one.encode()
        whole.update(b"%d:" % len(text) + text)
    for digest in digests:
        whole.update(digest)
    return whole.digest()
