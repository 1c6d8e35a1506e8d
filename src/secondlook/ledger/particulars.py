"""What a report tells beyond counts: how a program decides, why it refused people, withdrawals.

People and outcomes are read in parts for this, so nothing but a report asks for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from secondlook.ledger.base import Entry, Ledger, Reader
from secondlook.ledger.summary import Change, Summary
from secondlook.people.reasons import ITEM, decode

__all__ = ["Particulars", "Reason", "Refusals", "count_reasons", "particulars"]

_PART = 20_000  # people read at a time


@dataclass(frozen=True)
class Reason:
    """A column that spoke against people: of how many, and of how many more than any other."""

    name: str
    n: int
    n_first: int


@dataclass(frozen=True)
class Refusals:
    """Why people were refused: how many have reasons on record, or no column to name, by column.

    The most frequent comes first. People who were erased have no reasons any more.
    """

    n: int = 0
    n_without: int = 0
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True)
class Particulars:
    """What a report tells beyond counts.

    Attributes
    ----------
    says, at, by
        What the first entry says of the program, when and by whom it was started.
    refusals
        Why people were refused.
    withdrawals
        Who told that outcomes will never be known, and of how many people.
    """

    says: dict[str, Any]
    at: str
    by: str
    refusals: Refusals
    withdrawals: tuple[Change, ...]


def particulars(ledger: Ledger, found: Summary) -> Particulars:
    """Return what a report tells of a program beyond its summary, as it stood then."""
    with ledger.reading(found.program) as reader:
        first = next(reader.entries(kind="program"))
        names = (first.says.get("reference") or {}).get("names", ())
        batches = _until(reader, "batch", found.head.number)
        return Particulars(
            first.says,
            first.at,
            first.by,
            count_reasons(_reasons(reader, batches), names),
            tuple(_withdrawals(reader, found)),
        )


def _until(reader: Reader, kind: str, number: int) -> Iterator[Entry]:
    return (one for one in reader.entries(kind=kind) if one.number <= number)


def _reasons(reader: Reader, batches: Iterable[Entry]) -> Iterator[list[bytes]]:
    """Yield the reasons of everybody who has some, or none to name, in parts."""
    for entry in batches:
        rows = entry.says["rows"]
        end = rows["first"] + rows["n"]
        for first in range(rows["first"], end, _PART):
            people = reader.listed(first, min(end, first + _PART)).people
            yield [one for one in people.reasons or () if one is not None]


def count_reasons(parts: Iterable[list[bytes]], names: list[str]) -> Refusals:
    """Count reasons, as a ledger keeps them, by column.

    Examples
    --------
    >>> from secondlook.people.reasons import encode
    >>> kept = encode(np.array([[0.5, -2.0, -3.0], [0.1, -1.0, 0.0], [0.0, 0.0, 0.0]]))
    >>> count_reasons([kept.tolist()], ["age", "income", "debt"])
    Refusals(n=3, n_without=1, reasons=(Reason(name='income', n=2, n_first=1),
    Reason(name='debt', n=1, n_first=1)))
    """
    n = n_without = 0
    counts = np.zeros((2, 1 << 16), np.int64)
    for part in parts:
        length = np.fromiter(map(len, part), np.int64, len(part))
        for odd in np.flatnonzero(length % ITEM.itemsize)[:1]:
            decode(part[odd], names)  # says what is wrong
        length //= ITEM.itemsize
        columns = np.frombuffer(b"".join(part), ITEM)["column"]
        firsts = columns[(np.cumsum(length) - length)[length > 0]]
        n, n_without = n + len(part), n_without + int((length == 0).sum())
        for at, some in enumerate((columns, firsts)):
            counts[at] += np.bincount(some, minlength=counts.shape[1])
    found = []
    for code in np.flatnonzero(counts[0]).tolist():
        ((name, _),) = decode(code.to_bytes(2, "little") + bytes(4), names)
        found.append(Reason(name, *counts[:, code].tolist()))
    found.sort(key=lambda one: (-one.n, -one.n_first, one.name))
    return Refusals(n, n_without, tuple(found))


def _withdrawals(reader: Reader, found: Summary) -> Iterator[Change]:
    """Yield the entries that tell of outcomes which will never be known."""
    if not found.outcomes.indeterminate + found.overridden.indeterminate:
        return
    for entry in _until(reader, "outcomes", found.head.number):
        told = reader.facts(entry).outcomes
        n = 0 if told is None else list(told.states).count("indeterminate")
        if n:
            yield Change("withdrawal", entry.number, entry.at, entry.by, n, {})
