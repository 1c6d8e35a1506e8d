"""Compare the rows of an entry with their digests, and name the rows that were changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import sha256
from itertools import zip_longest
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
from fairchance.ledger.sql import Reader
from fairchance.words import first_of

__all__ = ["entry_problem"]

_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 100


def entry_problem(reader: Reader, entry: Entry, previous: bytes) -> str | None:
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
    rows = reader.stored(entry)
    problem = _missing_people(entry, rows)
    if problem is not None:
        return problem
    digests, (payload, payload_digest) = reader.stored_digests(entry), reader.stored_payload(entry)
    made = digests_of(rows)
    return (
        _digest_problem(entry, digests, made, payload, payload_digest)
        or _payload_problem(reader, entry, payload, payload_digest)
        or _people_problem(reader, rows, digests, made)
        or next(_other_problems(reader, rows, digests, made), None)
    )


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


def _missing_people(entry: Entry, rows: StoredRows) -> str | None:
    """Return which applicant of an entry is missing, or has no group value."""
    expected, n = list(entry.people_range), entry.says["rows"]["n"]
    if len(expected) != n:  # numbers are missing since the round was open
        expected = list(rows.people["person"])
        if len(expected) != n:
            return f"it has {len(expected)} rows of people instead of {n}"
    has_groups = entry.says["rows"]["groups"]
    for table, persons, wanted in (
        ("people", rows.people["person"], expected),
        ("group_values", rows.group_values["person"], expected if has_groups else []),
    ):
        if list(persons) != wanted:
            missing, extra = sorted({*wanted} - {*persons}), {*persons} - {*wanted}
            if missing:
                return f"person {missing[0]} is missing in {table}"
            return f"person {min(extra, key=str)!r} was added to {table}"
    return None


def _payload_problem(
    reader: Reader, entry: Entry, payload: bytes | None, digest: bytes | None
) -> str | None:
    if payload is None and digest is not None:
        if entry.kind != "snapshot" or entry.number in reader.kept_states():
            return "its payload is missing in payloads"
    elif payload is not None and (
        not isinstance(payload, bytes) or sha256(payload).digest() != digest
    ):
        return "its content in payloads was changed"
    return None


def _people_problem(
    reader: Reader, rows: StoredRows, digests: RowDigests, made: RowDigests
) -> str | None:
    """Return whose personal data or decision were changed."""
    people, groups = rows.people, rows.group_values
    persons = people["person"]
    if not persons:
        return None
    erased = reader.erased_between(persons[0], persons[-1] + 1)
    personal = personal_digests(people, groups)
    private = [people[name] for name in schema.PERSONAL[schema.people]]
    private += [groups[name] for name in ("value", "salt") if groups["person"]]
    changed = []
    for row, values in enumerate(zip(*private, strict=True)):
        person = persons[row]
        if person in erased:
            if any(value is not None for value in values):
                return f"person {person} was erased and is in people or group_values"
        elif None in (people["salt"][row], people["application"][row]):
            return f"person {person} has no data in people and no erasure"
        elif personal[row] != people["personal"][row]:
            changed.append(row)
    other = _other_rows(digests.decisions, made.decisions)
    if other:
        row, *others = other
        # The digest of a decision covers the personal digest, so try the one of the stored data.
        with_own = digests_of(replace(rows, people={**people, "personal": personal}))
        is_digest = row not in _other_rows(digests.decisions, with_own.decisions)
        what = "the personal digest of" if is_digest else "the decision on"
        who = _called(persons[row], people["application"][row])
        return f"{what} {who} in people was changed{_more(persons[at] for at in others)}"
    if changed:
        row, *others = changed
        tables = "people or group_values" if groups["person"] else "people"
        more = _more(persons[at] for at in others)
        return f"data of person {persons[row]} in {tables} were changed{more}"
    return None


def _other_problems(
    reader: Reader, rows: StoredRows, digests: RowDigests, made: RowDigests
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
