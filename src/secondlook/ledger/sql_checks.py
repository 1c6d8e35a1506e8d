"""Checking the rows of a program against their hashes."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import sqlalchemy as sa

from secondlook.ledger import schema
from secondlook.ledger.base import Entry
from secondlook.ledger.chain import SALT, entry_hash, group_digests, people_digests
from secondlook.ledger.locating import now_called
from secondlook.ledger.sql_locating import TABLES, LocatingReader, first_gap
from secondlook.ledger.sql_reader import ILLEGIBLE, content_digest, header_range

__all__ = ["CheckingReader"]

Digests = tuple[list[bytes], str | None]


class CheckingReader(LocatingReader):
    """A reader that trusts nothing it reads."""

    def check(self, entry: Entry, previous: bytes) -> str | None:
        """Recompute an entry's hashes; return what does not fit."""
        dialect: Any = self._connection.dialect
        driver = dialect.loaded_dbapi
        try:
            return self._check(entry, previous)
        except (sa.exc.DBAPIError, driver.Error) as error:
            if not _is_about_data(error, driver):
                raise
            why: Exception = error
        except ILLEGIBLE as error:
            why = error
        # SQLite stores anything in any column.
        said = f"its rows hold what cannot be there ({str(why).splitlines()[0]})"
        return f"{said}{self._strange(entry)}"

    def _check(self, entry: Entry, previous: bytes) -> str | None:
        if entry.previous != previous:
            return "it does not follow from the entry before"
        words = (entry.kind, entry.key, entry.at, entry.by, entry.header)
        if entry.hash != entry_hash(self._name, entry.number, words, entry.content, entry.previous):
            return "its own line was changed"
        first, end = header_range(entry)
        rows, groups = entry.says["rows"], list[bytes]()
        together = rows["groups"] and rows.get("one_digest", False)
        people, wrong = self._people_digests(first, end, together)
        if wrong is None and rows["groups"] and not together:
            groups, wrong = self._group_digests(first, end)
        payload = None
        if wrong is None:
            payload, wrong = self._payload_digest(entry)
        if wrong is not None:
            return wrong
        if entry.content != content_digest(self._facts(entry), people, groups, payload):
            self._unlike = entry.number
            return f"its rows of {_tables(entry.kind)} were changed"
        return None

    def count(self) -> dict[str, int]:
        """Return how many rows there are."""
        counted = {
            name: sa.select(sa.func.count()).where(table.c.program == self._program)
            for name, table in TABLES.items()
        }
        # An erased state is gone, and its row stays; one without an entry was never there.
        one, numbers = schema.payloads.c, self._select(schema.entries.c.number)
        there = sa.or_(one.content.is_not(None), one.entry.not_in(numbers))
        counted["payloads"] = counted["payloads"].where(there)
        return {
            name: int(self._connection.execute(rows).scalar_one()) for name, rows in counted.items()
        }

    def _people_digests(self, first: int, end: int, with_groups: bool) -> Digests:
        one = self._all_of(schema.people, first, end)
        persons, digests = one["person"], one["digest"]
        columns = [one[name] for name in ("application", "numbers", "texts", "reasons", "salt")]
        if list(persons) != list(range(first, end)):
            n, gap = end - first, first_gap(persons, first, end)
            return [], f"people are missing or too many: {len(persons)} of {n} are there, and {gap}"
        needed, wrong = [0, 1, 4], None
        if with_groups:
            of_groups, wrong = self._groups(first, end)
            columns += [of_groups["value"], of_groups["salt"]]
            needed += [5, 6]
            strange = [one is not None for one in of_groups["digest"]]
            if wrong is None and True in strange:
                row = strange.index(True)
                whose = now_called(first + row, columns[0][row])
                wrong = f"the group value of {whose} was changed"
        if wrong is None:
            kept, wrong = self._kept(persons, columns, needed, columns[0])
        salts = [columns[at] for at in (4, 6) if at < len(columns)]
        at = _first_other_salt(salts) if wrong is None else None
        if wrong is None and at is None:
            again = people_digests(*_rows([persons, *columns], kept))
            at = _first_other(digests, again, kept)
        if at is not None:
            self._unlike_person = persons[at]
            wrong = f"{now_called(persons[at], columns[0][at])} was changed"
        return list(digests), wrong

    def _groups(self, first: int, end: int) -> tuple[dict[str, Sequence[Any]], str | None]:
        one = self._all_of(schema.group_values, first, end)
        n, there = end - first, len(one["person"])
        if list(one["person"]) == list(range(first, end)):
            return one, None
        gap = first_gap(one["person"], first, end)
        return one, f"group values are missing or too many: {there} of {n} are there, and {gap}"

    def _group_digests(self, first: int, end: int) -> Digests:
        """Return the digests of group values, which they had of their own before version 0004."""
        one, wrong = self._groups(first, end)
        persons, digests, columns = one["person"], one["digest"], [one["value"], one["salt"]]
        kept: list[int] = []
        names = self._all_of(schema.people, first, end)["application"]
        if wrong is None:
            kept, wrong = self._kept(persons, columns, [0, 1], names)
        at = _first_other_salt(columns[1:]) if wrong is None else None
        if wrong is None and at is None:
            again = group_digests(*_rows([persons, *columns], kept))
            at = _first_other(digests, again, kept)
        if at is not None:
            wrong = f"the group value of {now_called(persons[at], names[at])} was changed"
        return list(digests), wrong

    def _kept(
        self,
        persons: Sequence[int],
        columns: list[Sequence[Any]],
        needed: list[int],
        names: Sequence[Any],
    ) -> tuple[list[int], str | None]:
        """Return the positions of rows that are whole; all others must have been erased."""
        if not any(None in columns[at] for at in needed):
            return list(range(len(persons))), None
        there = zip(*(columns[at] for at in needed), strict=True)
        kept = [at for at, row in enumerate(there) if None not in row]
        erased = self._erased_between(persons[0], persons[-1] + 1)
        for at in sorted(set(range(len(persons))) - set(kept)):
            if persons[at] not in erased or any(column[at] is not None for column in columns):
                whose = now_called(persons[at], names[at])
                return [], f"{whose} lacks data, and no erasure says so"
        return kept, None

    def _erased_between(self, first: int, end: int) -> set[int]:
        """Return who of people is named by an erasure; rows without such an entry do not count."""
        link, one = schema.entries.c, schema.erasures.c
        told = sa.and_(link.program == one.program, link.number == one.entry)
        rows = self._select(one.person).join(schema.entries, told)
        rows = rows.where(link.kind == "erasure", one.person >= first, one.person < end)
        return set(self._connection.execute(rows).scalars())

    def _payload_digest(self, entry: Entry) -> tuple[bytes | None, str | None]:
        content, digest = self._payload(entry.number)
        if content is None and digest is not None:
            erased_later = any(True for _ in self.entries(entry.number, kind="erasure"))
            if entry.kind != "snapshot" or not erased_later:
                return digest, "its stored state is gone, and no erasure says so"
        elif content is not None and sha256(content).digest() != digest:
            return digest, "its stored state was changed"
        return digest, None


def _is_about_data(error: Any, driver: Any) -> bool:
    """Return if a database complains of what it holds, and not that it cannot be read."""
    reason = getattr(error, "orig", error)
    return isinstance(reason, driver.DataError) or "decode" in str(reason)


def _first_other_salt(salts: Sequence[Sequence[bytes | None]]) -> int | None:
    """Return who has a salt of another length, with which other data could have the same digest."""
    wrong = (
        at for salt in salts for at, one in enumerate(salt) if one is not None and len(one) != SALT
    )
    return next(wrong, None)


def _rows(columns: list[Sequence[Any]], kept: list[int]) -> list[Sequence[Any]]:
    if len(kept) == len(columns[0]):
        return columns
    return [[column[at] for at in kept] for column in columns]


def _first_other(stored: Sequence[bytes], again: Sequence[bytes], kept: list[int]) -> int | None:
    pairs = zip(kept, again, strict=True)
    return next((at for at, one in pairs if stored[at] != one), None)


def _tables(kind: str) -> str:
    return {
        "history": "decisions or outcomes",
        "batch": "decisions",
        "override": "overrides",
        "erasure": "erasures",
        "correction": "outcomes",
        "program": "payloads",
        "policy": "payloads",
        "snapshot": "payloads",
    }.get(kind, kind)
