"""Digests of rows, and the hashes that tie the entries of a program together.

Every row of an entry has a digest. A decision's digest covers the decision and the applicant's
*personal digest*, which is the hash of name, features, reasons, pseudonym and group value with two
random salts. An erasure deletes these and their salts and keeps the personal digest: the decision
can still be proved, and the erased data cannot be guessed from the digest. The second salt is kept
with the group value, so that a reader of the applicants alone cannot guess groups either.

An entry's content hash covers the digests of its rows in order, and its own hash covers its line,
its content and the entry before.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from fairchance.errors import InputError

__all__ = ["NOTHING", "SALT", "Checkpoint", "Columns", "RowDigests", "StoredRows", "content_hash"]
__all__ += ["digests_of", "entry_hash", "personal_digests", "salts", "split_digests"]

NOTHING = bytes(32)  # in the place of the hash before the first entry
SALT = 16  # bytes

Columns = Mapping[str, Sequence[Any]]  # rows of a table, by name of the column


@dataclass(frozen=True)
class Checkpoint:
    """The end of a program's chain at some moment: kept elsewhere, and compared later.

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
        """Read the text of a checkpoint."""
        number, _, rest = text.strip().partition(":")
        digest, _, program = rest.partition(":")
        try:
            checkpoint = Checkpoint(program, int(number), bytes.fromhex(digest))
        except ValueError:
            checkpoint = Checkpoint("", 0, b"")
        if len(checkpoint.hash) != len(NOTHING) or not program or checkpoint.number < 1:
            raise InputError(
                f"a checkpoint looks like number:hash:program, got {text!r}; pass one as it was "
                f"exported."
            )
        return checkpoint


@dataclass(frozen=True)
class RowDigests:
    """The digests of an entry's rows, side by side; None for a table without rows."""

    decisions: bytes | None = None
    outcomes: bytes | None = None
    overrides: bytes | None = None
    erasures: bytes | None = None


@dataclass(frozen=True)
class StoredRows:
    """The rows of an entry as a database keeps them, ordered by applicant."""

    people: Columns
    group_values: Columns
    outcomes: Columns
    overrides: Columns
    erasures: Columns


def salts(n: int) -> list[bytes]:
    """Return n random salts."""
    random = os.urandom(SALT * n)
    return [random[at : at + SALT] for at in range(0, len(random), SALT)]


def digests_of(rows: StoredRows) -> RowDigests:
    """Return the digests of an entry's rows."""
    people = rows.people
    decided = ["person", "personal", "round", "accepted", "exploit"]
    decided += ["score", "propensity", "threshold", "incumbent", "barred"]
    return RowDigests(
        _joined("decision", [people[name] for name in decided]),
        _joined("outcome", [rows.outcomes[name] for name in ("person", "state")]),
        _joined("override", [rows.overrides[name] for name in ("person", "accepted", "reason")]),
        _joined("erasure", [rows.erasures["person"]]),
    )


def split_digests(joined: bytes | None) -> list[bytes]:
    """Return digests that are stored side by side."""
    size = len(NOTHING)
    return [joined[at : at + size] for at in range(0, len(joined or b""), size)] if joined else []


def personal_digests(people: Columns, group_values: Columns) -> list[bytes]:
    """Return the personal digests of applicants, all with a group value or all without."""
    names = ("salt", "application", "numbers", "texts", "reasons", "person_key")
    n = len(people["salt"])
    groups = [group_values[name] or [None] * n for name in ("salt", "value")]
    return _digests("personal", [*(people[name] for name in names), *groups])


def content_hash(digests: RowDigests, payload: bytes | None) -> bytes:
    """Return the hash of all rows of an entry, given the digest of its payload."""
    hashed = sha256()
    parts = (digests.decisions, digests.outcomes, digests.overrides, digests.erasures, payload)
    for part in parts:
        if isinstance(part, bytes):  # as ``_field``, without a copy of many digests
            hashed.update(b"b%d:" % len(part))
            hashed.update(part)
        else:
            hashed.update(_field(part))
    return hashed.digest()


def entry_hash(program: str, number: int, line: Sequence[Any], content: Any, before: Any) -> bytes:
    """Return the hash of an entry: its line, its content and the entry before."""
    fields = ("fairchance 1", program, number, *line, content, before)
    return sha256(b"".join(map(_field, fields))).digest()


def _joined(kind: str, columns: list[Sequence[Any]]) -> bytes | None:
    return b"".join(_digests(kind, columns)) or None


def _digests(kind: str, columns: list[Sequence[Any]]) -> list[bytes]:
    encoded = map(_encode_column, columns)
    start = _field(kind)
    return [sha256(start + b"".join(row)).digest() for row in zip(*encoded, strict=True)]


def _encode_column(column: Sequence[Any]) -> Sequence[bytes]:
    """Return the encoded values of a column; a column of one type takes half the time."""
    types = {*map(type, column)}
    if types == {float}:
        packed = struct.pack(f"<{len(column)}d", *column)
        return [b"f" + packed[at : at + 8] for at in range(0, len(packed), 8)]
    if types == {bytes}:
        start = {size: b"b%d:" % size for size in {*map(len, column)}}
        return [start[len(value)] + value for value in column]
    if len(types) == 1 and len(values := {*column}) < len(column) / 2:
        # In columns of several types, 1, 1.0 and True would be taken for the same value.
        encoded = {value: _field(value) for value in values}
        return [encoded[value] for value in column]
    return [_ENCODE[type(value)](value) for value in column]


def _field(value: Any) -> bytes:
    encoded: bytes = _ENCODE[type(value)](value)
    return encoded


def _encode_text(value: str) -> bytes:
    # SQLite may hold bytes that are no text; they are read as surrogates, which no writer can send.
    text = value.encode("utf-8", "surrogateescape")
    return b"s%d:%b" % (len(text), text)


# A letter for the type, then the length or a fixed size: no two rows have the same encoding,
# however their values are cut. SQLite stores a value of any type in any column, and returns truth
# values as 0 and 1.
_ENCODE: dict[type, Any] = {
    type(None): lambda _value: b"n",
    bytes: lambda value: b"b%d:%b" % (len(value), value),
    str: _encode_text,
    bool: lambda value: b"i%d:" % value,
    int: lambda value: b"i%d:" % value,
    float: lambda value: b"f" + struct.pack("<d", value),
}
