"""Compare the rows of an entry with their digests, and name the rows that were changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import chain, zip_longest
from reprlib import Repr
from typing import Any

import numpy as np

from fairchance.ledger import schema
from fairchance.ledger.base import Entry
from fairchance.ledger.chain import (
    RowDigests,
    StoredRows,
    content_hash,
    digests_of,
    entry_hash,
    personal_digests,
    split_digests,
)
from fairchance.ledger.sql import LedgerReader
from fairchance.words import first_of

__all__ = ["entry_problem", "round_problem"]

_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 100


def entry_problem(reader: LedgerReader, entry: Entry, previous: bytes) -> str | None:
    """Return what in an entry or its rows was changed; None if everything matches its hashes.

    Parameters
    ----------
    reader
        Reads the program of the entry.
    entry
        The entry to check.
    previous
        The hash of the entry before, which was checked already.
    """
    if entry.previous != previous:
        return "it follows another entry"
    line = (entry.kind, entry.key, entry.at, entry.by, entry.header)
    program = reader.head().program
    if entry.hash != entry_hash(program, entry.number, line, entry.content, entry.previous):
        return "its row of entries was changed"
    digests, (payload, payload_digest) = reader.stored_digests(entry), reader.stored_payload(entry)
    people = _People(reader, entry.says["rows"], digests.decisions)
    parts = reader.stored_parts(entry)
    rows = next(parts)
    for part in chain([rows], parts):
        people.check(part)
    made = replace(digests_of(rows), decisions=people.digests)
    return (
        people.missing()
        or _digest_problem(entry, digests, made, payload, payload_digest)
        or _payload_problem(reader, entry, payload, payload_digest)
        or people.problem()
        or next(_other_problems(reader, rows, digests, made), None)
    )


def fits_receipt(
    reader: LedgerReader,
    entry: Entry | None,
    person: int,
    receipt: bytes,
    *,
    groups: bool | None,
) -> bool | None:
    """Return whether the row of an applicant has the digest that its entry covers.

    This reads one row and one digest; whether the digests are those of the entry, ``verify`` says.

    Parameters
    ----------
    reader
        Reads the program.
    entry
        The entry that covers the applicant; None while the round is open.
    person, receipt
        The applicant, and the digest that the row would have now.
    groups
        Whether the program has group values; None if it has and they may not be read.

    Returns
    -------
    bool or None
        None if nothing differs, but not everything could be compared.
    """
    stored = None if entry is None else reader.stored_digest(entry, person)
    if entry is not None and stored != receipt:
        return False
    if groups is None:
        return None
    people = _People(reader, {"first": person, "n": 1, "end": person + 1, "groups": groups}, None)
    people.check(next(reader.stored_people(person, person + 1, groups=groups)))
    if people.missing() or people.problem():
        return False
    return None if entry is None else True


def round_problem(reader: LedgerReader) -> str | None:
    """Return what in the rows of the open round cannot be right; None if there is none.

    They have their personal digests, and no entry covers them before the round is closed.
    """
    opened = reader.open_round()
    if opened is None:
        return None
    people = _People(reader, opened.says["rows"] | {"n": None}, None)
    for part in reader.stored_people(opened.people_range.start):
        people.check(part)
    return people.missing() or people.problem()


def _digest_problem(
    entry: Entry, digests: RowDigests, made: RowDigests, payload: Any, payload_digest: Any
) -> str | None:
    """Return which stored digest was changed; the others then tell nothing about the rows."""
    if _is_content(entry, digests, payload_digest):
        return None
    if _is_content(entry, made, payload_digest):
        return "its row of row_digests was changed"
    if isinstance(payload, bytes) and _is_content(entry, digests, sha256(payload).digest()):
        return "its digest in payloads was changed"
    tables = _changed_tables(digests, made, payload_digest)
    return f"rows and digests were changed together in {tables}"


def _is_content(entry: Entry, digests: RowDigests, payload: Any) -> bool:
    try:
        return entry.content == content_hash(digests, payload)
    except KeyError:  # a type that no ledger writes
        return False


def _changed_tables(stored: RowDigests, made: RowDigests, payload: Any) -> str:
    """Return the tables in which rows and their digests may have been changed together."""
    names = {"decisions": "people", "outcomes": "outcomes", "overrides": "overrides"}
    names |= {"erasures": "erasures"}
    tables = [
        table
        for name, table in names.items()
        if getattr(stored, name) is not None or getattr(made, name) is not None
    ]
    tables += ["row_digests"] if tables else []
    return " or ".join(tables + (["payloads"] if payload is not None or not tables else []))


def _payload_problem(
    reader: LedgerReader, entry: Entry, payload: bytes | None, digest: bytes | None
) -> str | None:
    if payload is None and digest is not None:
        if entry.kind != "snapshot" or entry.number in reader.kept_states():
            return "its payload is missing in payloads"
    elif payload is not None and (
        not isinstance(payload, bytes) or sha256(payload).digest() != digest
    ):
        return "its content in payloads was changed"
    return None


def _other_problems(
    reader: LedgerReader, rows: StoredRows, digests: RowDigests, made: RowDigests
) -> Iterator[str]:
    """Yield which outcome, override or erasure was changed, added or removed."""
    for table in ("outcomes", "overrides", "erasures"):
        before, after = split_digests(getattr(digests, table)), split_digests(getattr(made, table))
        if before == after:
            continue
        persons = getattr(rows, table)["person"]
        known = {*before}
        new = [person for person, digest in zip(persons, after, strict=True) if digest not in known]
        if not new:
            yield f"{table} has {len(after)} rows instead of {len(before)}"
            continue
        person, *others = new
        how = "added" if len(after) > len(before) else "changed"
        name = reader.names(np.array([person]))[0] if isinstance(person, int) else None
        yield f"{_called(person, name)} was {how} in {table}{_more(others)}"


def _other_rows(stored: bytes | None, made: bytes | None) -> list[int]:
    pairs = zip_longest(split_digests(stored), split_digests(made))
    return [row for row, (before, after) in enumerate(pairs) if before != after]


def _more(persons: Iterable[int]) -> str:
    """Return the end of a sentence that names further rows.

    Examples
    --------
    >>> _more([7, 9])
    ', also of: 7 and 9'
    """
    numbers = [*map(str, persons)]
    return f", also of: {first_of(numbers)}" if numbers else ""


def _called(person: Any, application: Any) -> str:
    """Return what messages call an applicant whose name matches its digest, or was erased."""
    number = f"person {_SHORT.repr(person)}"
    return number if application is None else f"application {_SHORT.repr(application)} ({number})"


class _People:
    """Checks applicants and the decisions on them, part by part.

    Parameters
    ----------
    reader
        Reads the program.
    places
        Where the applicants are: ``first``, ``n`` (None if any number is right), ``end``,
        ``groups``.
    stored
        The stored digests of the decisions; None if there are none yet.
    """

    def __init__(self, reader: LedgerReader, places: dict[str, Any], stored: Any) -> None:
        self._reader, self._places, self._stored = reader, places, stored
        self._is_dense = places["n"] == places["end"] - places["first"]
        self._n, self._made = 0, bytearray()
        self._missing: str | None = None
        self._stray: str | None = None
        self._other: list[Any] = []  # persons whose decisions have another digest
        self._changed: list[Any] = []  # persons whose data have another personal digest
        self._first_other = ""

    @property
    def digests(self) -> bytes | None:
        """The digests of the decisions as they are now."""
        if self._made == self._stored:  # of a large round they are large
            return bytes(self._stored)
        return bytes(self._made) or None

    def check(self, rows: StoredRows) -> None:
        """Check the next part."""
        persons = rows.people["person"]
        wanted = list(persons)
        if self._is_dense:
            start = self._places["first"] + self._n
            wanted = list(range(start, min(start + len(persons), self._places["end"])))
        self._missing = (
            self._missing
            or _other_persons("people", persons, wanted)
            or _other_persons(
                "group_values",
                rows.group_values["person"],
                wanted if self._places["groups"] else [],
            )
        )
        if self._missing is None and persons:
            self._check_people(rows)
        self._n += len(persons)

    def _check_people(self, rows: StoredRows) -> None:
        people, groups = rows.people, rows.group_values
        persons = people["person"]
        erased = self._reader.erased_between(persons[0], persons[-1] + 1)
        personal = personal_digests(people, groups)
        private = [people[name] for name in schema.PERSONAL[schema.people]]
        private += [groups[name] for name in ("value", "salt") if groups["person"]]
        for row, values in enumerate(zip(*private, strict=True)):
            person = persons[row]
            if person in erased:
                if any(value is not None for value in values):
                    self._stray = self._stray or (
                        f"person {person} was erased and is in people or group_values"
                    )
            elif None in (people["salt"][row], people["application"][row]):
                self._stray = self._stray or f"person {person} has no data in people and no erasure"
            elif personal[row] != people["personal"][row]:
                self._changed.append(person)
        made = digests_of(rows).decisions or b""
        if isinstance(self._stored, bytes):
            stored = self._stored[len(self._made) :][: len(made)]
            self._compare(rows, stored, made, personal)
        self._made += made

    def _compare(self, rows: StoredRows, stored: bytes, made: bytes, personal: list[bytes]) -> None:
        """Compare the stored digests of decisions with those of the rows."""
        other = _other_rows(stored, made)
        if other and not self._other:
            # The digest of a decision covers the personal digest: try the one of the stored data.
            with_own = digests_of(replace(rows, people={**rows.people, "personal": personal}))
            is_digest = other[0] not in _other_rows(stored, with_own.decisions)
            what = "the personal digest of" if is_digest else "the decision on"
            person, name = (rows.people[column][other[0]] for column in ("person", "application"))
            self._first_other = f"{what} {_called(person, name)} in people was changed"
        self._other += [rows.people["person"][row] for row in other]

    def missing(self) -> str | None:
        """Return which applicant of all parts is missing, or has no group value."""
        n = self._places["n"]
        if self._missing is not None or n is None or self._n == n:
            return self._missing
        if self._is_dense:
            return f"person {self._places['first'] + self._n} is missing in people"
        return f"it has {self._n} rows of people instead of {n}"

    def problem(self) -> str | None:
        """Return whose personal data or decision were changed."""
        if self._stray is not None:
            return self._stray
        if self._other:
            return f"{self._first_other}{_more(self._other[1:])}"
        if self._changed:
            person, *others = self._changed
            tables = "people or group_values" if self._places["groups"] else "people"
            return f"data of person {person} in {tables} were changed{_more(others)}"
        return None


def _other_persons(table: str, persons: Sequence[Any], wanted: Sequence[Any]) -> str | None:
    """Return which person is missing in a table, or was added to it."""
    if list(persons) == list(wanted):
        return None
    missing, extra = sorted({*wanted} - {*persons}), {*persons} - {*wanted}
    if missing:
        return f"person {missing[0]} is missing in {table}"
    return f"person {min(extra, key=str)!r} was added to {table}"
