"""Reading one program from a database."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

import numpy as np
import sqlalchemy as sa

from secondlook.errors import LedgerError
from secondlook.ledger import schema
from secondlook.ledger.base import (
    DecisionRows,
    Entry,
    Facts,
    HeadCounts,
    Ints,
    ListedRows,
    OutcomeRows,
    OverrideRows,
    PeopleRows,
    Reader,
    Standing,
)
from secondlook.ledger.bulk import as_flags, columns_of, none_as_nan, none_as_other
from secondlook.ledger.chain import NOTHING, Checkpoint, digest_of_rows, joined, packed
from secondlook.ledger.sql_counting import Counting, sizes
from secondlook.ledger.sql_standing import Lookup, check_kind, check_states
from secondlook.people.ids import is_text

__all__ = ["ILLEGIBLE", "SqlReader", "content_digest", "content_parts", "header_range"]

# What reading raises where a database holds what nobody wrote there.
ILLEGIBLE = (ValueError, LookupError, TypeError, AttributeError, OverflowError)

_LINK = tuple(schema.entries.c)[1:]  # all but the program


def content_digest(
    facts: Facts, people: Sequence[bytes], groups: Sequence[bytes], payload: bytes | None
) -> bytes:
    """Return the hash of an entry's rows, given those of people, groups and payload."""
    return joined(content_parts(facts, people, groups, payload))


def content_parts(
    facts: Facts, people: Sequence[bytes], groups: Sequence[bytes], payload: bytes | None
) -> list[bytes]:
    """Return the hashes that ``content_digest`` joins.

    They are of people, groups, decisions, outcomes, overrides, erasures and payload, and then of
    what came later.
    """
    decided, told, changed = facts.decisions, facts.outcomes, facts.overrides
    parts = [joined(people) if people else NOTHING, joined(groups) if groups else NOTHING]
    parts.append(
        NOTHING
        if decided is None
        else packed(
            np.array([decided.round]),
            decided.accepted,
            decided.exploit,
            decided.score,
            decided.propensity,
        )
    )
    extras = [] if decided is None else [decided.threshold, decided.fold]
    parts.append(digest_of_rows([]) if told is None else _digest_of_outcomes(told))
    rows: list[Any] = []
    if changed is not None:
        taken = changed.accepted.astype(int).tolist()
        rows = [*zip(changed.persons.tolist(), taken, changed.reasons, strict=True)]
    parts.append(digest_of_rows(rows))
    parts.append(NOTHING if facts.erased is None else packed(facts.erased))
    parts.append(payload or NOTHING)
    # Entries of the first version had none of these, and hash as they did.
    parts += [packed(np.array([at]), one) for at, one in enumerate(extras) if one is not None]
    return parts


def _digest_of_outcomes(told: OutcomeRows) -> bytes:
    """Return ``digest_of_rows`` of outcomes; it takes a third of the time, as states are few."""
    quoted = {one: repr(one).replace("%", "%%") for one in set(told.states)}
    form = {one: f"(%d, {word}), " for one, word in quoted.items()}
    rows = "".join(map(form.__getitem__, told.states)) % tuple(told.persons.tolist())
    return sha256(f"[{rows[:-2]}]".encode()).digest()


def header_range(entry: Entry) -> tuple[int, int]:
    """Return the numbers of an entry's first person and of the one behind its last."""
    rows = entry.says["rows"]
    return rows["first"], rows["first"] + rows["n"]


class SqlReader(Reader):
    """One program on an open connection."""

    def __init__(self, connection: sa.Connection, program: int, name: str) -> None:
        self._connection, self._program, self._name = connection, program, name
        self._lookup = Lookup(connection, program)
        self._forget()

    def _forget(self) -> None:
        """Forget what was read last; entries are large, and asked for in turn."""
        self._newest: tuple[int, Facts] | None = None
        self._held: dict[str, tuple[tuple[int, int], dict[str, Sequence[Any]]]] = {}

    def _select(self, *columns: Any) -> sa.Select[Any]:
        table = columns[0].table
        return sa.select(*columns).where(table.c.program == self._program)

    def head(self) -> Checkpoint:
        """Return where the chain stands."""
        link = schema.entries.c
        newest = self._select(link.number, link.hash).order_by(link.number.desc()).limit(1)
        found = self._connection.execute(newest).first()
        return Checkpoint(self._name, *(found or (0, NOTHING)))

    def _end(self) -> tuple[int, bytes, int]:
        """Return the last entry's number and hash, and the number of the person to come."""
        newest = self._select(*_LINK).order_by(schema.entries.c.number.desc()).limit(1)
        found = self._connection.execute(newest).first()
        if found is None:
            return 0, NOTHING, 0
        entry = Entry(*found)
        return entry.number, entry.hash, header_range(entry)[1]

    def entry(self, kind: str, key: str) -> Entry | None:
        """Return the entry of a kind and key."""
        if not is_text(key):
            return None
        link = schema.entries.c
        same = self._select(*_LINK).where(link.kind == kind, link.key == key)
        found = self._connection.execute(same).first()
        return None if found is None else Entry(*found)

    def entries(self, after: int = 0, *, kind: str | None = None) -> Iterator[Entry]:
        """Yield entries behind a number."""
        link = schema.entries.c
        later = self._select(*_LINK).where(link.number > after).order_by(link.number)
        if kind is not None:
            later = later.where(link.kind == kind)
        for found in self._connection.execute(later).fetchall():
            yield Entry(*found)

    def newest_first(self, kind: str) -> Iterator[Entry]:
        """Yield entries of a kind from the last to the first."""
        link, before = schema.entries.c, None
        while True:
            newest = self._select(*_LINK).where(link.kind == kind)
            if before is not None:
                newest = newest.where(link.number < before)
            one = newest.order_by(link.number.desc()).limit(1)
            found = self._connection.execute(one).first()
            if found is None:
                return
            entry = Entry(*found)
            before = entry.number
            yield entry

    def n_people(self) -> int:
        """Return how many people there are."""
        last = sa.select(sa.func.max(schema.people.c.person)).where(
            schema.people.c.program == self._program
        )
        found = self._connection.execute(last).scalar()
        return 0 if found is None else int(found) + 1

    def facts(self, entry: Entry) -> Facts:
        """Return the rows of an entry."""
        with self._legible(f"entry {entry.number}"):
            return self._facts(entry)

    @contextmanager
    def _legible(self, what: str) -> Iterator[None]:
        """Say in one sentence that something stored cannot be read."""
        try:
            yield
        except LedgerError:
            raise
        except ILLEGIBLE as error:
            raise LedgerError(
                f"{what} of program {self._name!r} cannot be read ({error}); verify the ledger."
            ) from error

    def _facts(self, entry: Entry) -> Facts:
        if self._newest is None or self._newest[0] != entry.number:
            self._newest = entry.number, self._read_facts(entry)
        return self._newest[1]

    def _read_facts(self, entry: Entry) -> Facts:
        rows, (first, end), number = entry.says["rows"], header_range(entry), entry.number
        told, changed = self._outcomes(number), self._overrides(number)
        erased = self._erased(number)
        return Facts(
            people=self._people(first, end, rows["groups"]) if rows["n"] else None,
            decisions=self._decisions(first, end) if rows["n"] else None,
            outcomes=told if told.states else None,
            overrides=changed if changed.reasons else None,
            erased=erased if erased.size else None,
            payload=self._payload(number)[0],
        )

    def _range(self, first: int, end: int, *columns: Any) -> list[Sequence[Any]]:
        person = columns[0].table.c.person
        rows = self._select(*columns).where(person >= first, person < end).order_by(person)
        return columns_of(self._connection, rows, len(columns))

    def _all_of(self, table: sa.Table, first: int, end: int) -> dict[str, Sequence[Any]]:
        """Return all columns of people who follow each other; checking and using read once."""
        held = self._held.get(table.name)
        if held is None or held[0] != (first, end):
            columns = tuple(table.c)[1:]  # all but the program
            found = zip(columns, self._range(first, end, *columns), strict=True)
            held = (first, end), {column.name: values for column, values in found}
            self._held[table.name] = held
        return held[1]

    def _people(self, first: int, end: int, with_groups: bool) -> PeopleRows:
        one = self._all_of(schema.people, first, end)
        groups = None
        check_kind("an application", str, one["application"])
        check_kind("a person's numbers", bytes, one["numbers"])
        if len({len(own) for own in one["numbers"] if own is not None}) > 1:
            raise ValueError("people have not equally many numbers")
        _check_lists("a person's texts", one["texts"])
        if with_groups:
            groups = self._all_of(schema.group_values, first, end)["value"]
            _check_lists("a group value", set(groups))
        given = any(why is not None for why in one["reasons"])
        return PeopleRows(
            one["application"],
            one["numbers"],
            one["texts"],
            groups,
            one["reasons"] if given else None,
        )

    def _decisions(self, first: int, end: int) -> DecisionRows:
        one = self._all_of(schema.people, first, end)
        found = set(one["round"])
        cut = none_as_nan(one["threshold"])
        return DecisionRows(
            found.pop() if len(found) == 1 else -1,  # no round: somebody changed it
            as_flags(one["accepted"]),
            as_flags(one["exploit"]),
            none_as_nan(one["score"]),
            none_as_nan(one["propensity"]),
            None if np.isnan(cut).all() else cut,
            None if set(one["fold"]) == {None} else none_as_other(one["fold"]),
        )

    def _of_entry(self, number: int, *columns: Any) -> list[Sequence[Any]]:
        table = columns[0].table.c
        rows = self._select(*columns).where(table.entry == number).order_by(table.person)
        return columns_of(self._connection, rows, len(columns))

    def _outcomes(self, number: int) -> OutcomeRows:
        one = schema.outcomes.c
        persons, states = self._of_entry(number, one.person, one.state)
        check_states(states)
        return OutcomeRows(np.array(persons, np.int64), states)

    def _overrides(self, number: int) -> OverrideRows:
        one = schema.overrides.c
        persons, accepted, reasons = self._of_entry(number, one.person, one.accepted, one.reason)
        return OverrideRows(np.array(persons, np.int64), as_flags(accepted), reasons)

    def _erased(self, number: int) -> Ints:
        return np.array(self._of_entry(number, schema.erasures.c.person)[0], np.int64)

    def _payload(self, number: int) -> tuple[bytes | None, bytes | None]:
        one = schema.payloads.c
        stored = self._select(one.content, one.digest).where(one.entry == number)
        found = self._connection.execute(stored).first()
        return (None, None) if found is None else (found.content, found.digest)

    def standing(self, applications: Sequence[str]) -> Standing:
        """Return how things stand for applications."""
        with self._legible("how people stand"):
            return self._lookup.by_name(applications)

    def _standing_of(self, persons: Ints) -> Standing:
        with self._legible("how people stand"):
            return self._lookup.by_number(persons)

    def names(self, persons: Ints) -> list[str | None]:
        """Return the applications of people."""
        with self._legible("who applied"):
            return self._lookup.names(persons)

    def overridden_by(self, persons: Ints) -> Ints:
        """Return which entry is the newest override of each person."""
        with self._legible("who was overridden"):
            return self._lookup.overridden_by(persons)

    def head_counts(self, *, groups: bool = True) -> HeadCounts:
        """Count everybody."""
        with self._legible("the head counts"):
            found = Counting(self._connection, self._program, groups).head_counts()
            _check_lists("a group value", set(found.groups))
        return found

    def sizes(self, kind: str) -> dict[int, int]:
        """Return how many people each entry of a kind is about."""
        return sizes(self._connection, self._program, kind)

    def listed(self, first: int, end: int, *, groups: bool = False) -> ListedRows:
        """Return people who follow each other."""

        def newest(*columns: Any) -> list[Any]:
            table = columns[0].table.c
            rows = self._select(table.person, *columns).order_by(table.person, table.entry)
            rows = rows.where(table.person >= first, table.person < end)
            found = {row[0]: tuple(row[1:]) for row in self._connection.execute(rows)}
            return [found.get(person) for person in range(first, end)]

        with self._legible(f"what is kept of people {first} to {end - 1}"):
            return ListedRows(
                self._people(first, end, groups),
                self._decisions(first, end),
                newest(*(schema.overrides.c[one] for one in ("accepted", "reason", "entry"))),
                newest(schema.outcomes.c.state, schema.outcomes.c.entry),
            )


def _check_lists(what: str, texts: Iterable[Any]) -> None:
    """Raise unless everything that is there is a JSON list, all of one length."""
    found = [one for one in texts if one is not None]
    check_kind(what, str, found)
    try:
        lists = json.loads(f"[{','.join(found)}]")
        fit = len(lists) == len(found) and {type(one) for one in lists} <= {list}
    except ValueError:
        fit = False
    if not fit or len({len(one) for one in lists}) > 1:
        raise ValueError(f"{what} is no JSON list of as many values as others have")
