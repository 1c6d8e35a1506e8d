"""Telling where in a database something does not fit; nothing here runs while everything does."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import sqlalchemy as sa

from secondlook.ledger import schema
from secondlook.ledger.base import STATES, Entry, Ints, OutcomeRows
from secondlook.ledger.bulk import where_in
from secondlook.ledger.chain import joined
from secondlook.ledger.kept_outcomes import KeptOutcomes
from secondlook.ledger.locating import (
    Change,
    DecidedAgain,
    Rows,
    changed_decisions,
    first_otherwise,
    now_called,
    shown,
    who,
)
from secondlook.ledger.locating_people import HashedPeople, changed_people
from secondlook.ledger.locating_told import Guesses, changed_told
from secondlook.ledger.sql_reader import SqlReader, content_parts, header_range

__all__ = ["TABLES", "LocatingReader", "first_gap"]

_Found = TypeVar("_Found")

_MANY = 1_000_000  # people of whom outcomes may be missing

# Names of ``count``.
TABLES = {
    "entries": schema.entries,
    "people": schema.people,
    "groups": schema.group_values,
    "outcomes": schema.outcomes,
    "overrides": schema.overrides,
    "erasures": schema.erasures,
    "payloads": schema.payloads,
}


class LocatingReader(SqlReader):
    """A reader that can tell where rows were changed.

    Whatever fails while it looks, on rows of which something is known to be wrong, means that it
    has no more to tell.
    """

    _unlike: int | None = None  # the entry whose rows are whole, and not those it was made of
    _unlike_person: int | None = None  # whose hash is not that of their data

    def where(
        self,
        entry: Entry,
        again: Callable[[], DecidedAgain | None],
        kept: Callable[[], KeptOutcomes | None],
    ) -> str | None:
        """Say what ``check`` said of an entry, with the place; None if no more is known."""
        if self._unlike_person is not None:
            return _if_possible(lambda: self._where_in_people(entry))
        if self._unlike != entry.number:
            return None
        return _if_possible(lambda: self._where_in_rows(entry, _if_possible(again), kept))

    def _where_in_rows(
        self,
        entry: Entry,
        again: DecidedAgain | None,
        kept: Callable[[], KeptOutcomes | None],
    ) -> str | None:
        rows = self._rows(entry)
        change = changed_decisions(rows, again)
        if change is None:
            guesses = Guesses(
                lambda most: self._without_outcome(entry, most),
                lambda: _if_possible(lambda: self._impossible_people(entry)) or {},
                lambda told: _if_possible(lambda: self._as_kept(entry, told, kept())) or [],
            )
            change = changed_told(rows, guesses)
        if change is not None:
            return change.words(self._who(change.person))  # all else fits the hash, names too
        change = next(self._impossible(entry), None) or first_otherwise(rows, again)
        if change is None:
            return None
        is_proved = change.person < rows.first  # by an entry before
        called = who if is_proved else now_called
        return change.words(called(change.person, self._application(change.person)))

    def _where_in_people(self, entry: Entry) -> str | None:
        """Say whose data or hashes are not those that an entry was made with."""
        first, end = header_range(entry)
        if self._unlike_person not in range(first, end):
            return None
        one, rows, says = self._all_of(schema.people, first, end), self._rows(entry), entry.says
        names = ("person", "application", "numbers", "texts", "reasons", "salt")
        columns = [one[name] for name in names]
        if says["rows"]["groups"] and says["rows"].get("one_digest", False):
            second = self._all_of(schema.group_values, first, end)
            columns += [second["value"], second["salt"]]
        _, *parts = rows.parts(rows.facts)

        def fit(digests: Sequence[bytes]) -> bool:
            return joined([joined(digests), *parts]) == entry.content

        return changed_people(HashedPeople(first, columns, one["digest"], fit))

    def uncovered(self, name: str, n_people: int) -> str | None:
        """Say which row of what ``count`` counts belongs to no entry; None if that is not known."""
        return _if_possible(lambda: self._uncovered(name, n_people))

    def _uncovered(self, name: str, n_people: int) -> str | None:
        one = TABLES[name].c
        if name == "entries":
            before = self._select(one.number).where(one.number < 1).order_by(one.number)
            number = self._connection.execute(before.limit(1)).scalar()
            return None if number is None else f"entry {shown(number)} comes before the first"
        if name in ("people", "groups"):
            beyond = sa.or_(one.person < 0, one.person >= n_people)
            found = self._select(one.person).where(beyond).order_by(one.person).limit(1)
            person = self._connection.execute(found).scalar()
            if person is None:
                return None
            return f"no entry covers {now_called(person, self._application(person)).rstrip(',')}"
        numbers = self._select(schema.entries.c.number).where(schema.entries.c.number > 0)
        found = self._select(one.entry).where(one.entry.not_in(numbers)).order_by(one.entry)
        number = self._connection.execute(found.limit(1)).scalar()
        return None if number is None else f"one names entry {shown(number)}, which is not there"

    def _strange(self, entry: Entry) -> str:
        """Say which value of an entry's rows cannot be there, after a colon; empty if unknown."""
        found = _if_possible(lambda: next(self._strange_values(entry), None))
        return "" if found is None else f": {found}"

    def _strange_values(self, entry: Entry) -> Iterator[str]:
        first, end = header_range(entry)
        for table in (schema.people, schema.group_values) if end > first else ():
            columns = tuple(table.c)[1:]
            person = self._first_unreadable(columns, first, end)
            if person is not None:
                unread = (
                    one for one in columns if not self._can_be_read([one], person, person + 1)
                )
                what = next((one.name for one in unread), "row")
                yield f"{what} of person {person} in {table.name} is no text"
            one = self._all_of(table, first, end)
            for column in columns:
                for at, value in _that_cannot_be(column, one[column.name]):
                    whose = now_called(one["person"][at], self._application(one["person"][at]))
                    yield f"{column.name} of {whose} is {shown(value)}"
        for table in (schema.outcomes, schema.overrides):
            columns = tuple(table.c)[2:]
            persons, *others = self._of_entry(entry.number, *columns)
            for column, values in zip(columns[1:], others, strict=True):
                for at, value in _that_cannot_be(column, values):
                    yield f"{column.name} of {self._who(persons[at])} is {shown(value)}"

    def _first_unreadable(self, columns: Sequence[Any], first: int, end: int) -> int | None:
        """Return whose row the driver cannot decode, which SQLite lets anybody store."""
        if self._can_be_read(columns, first, end):
            return None
        while end - first > 1:
            middle = (first + end) // 2
            if self._can_be_read(columns, first, middle):
                first = middle
            else:
                end = middle
        return first

    def _can_be_read(self, columns: Sequence[Any], first: int, end: int) -> bool:
        return _if_possible(lambda: self._range(first, end, *columns)) is not None

    def _rows(self, entry: Entry) -> Rows:
        says, (first, end) = entry.says, header_range(entry)
        facts, apart = self._facts(entry), not says["rows"].get("one_digest", False)
        people: dict[str, Sequence[Any]] = {"digest": [], "round": []}
        groups: dict[str, Sequence[Any]] = {"digest": []}
        if end > first:
            people = self._all_of(schema.people, first, end)
            if says["rows"]["groups"] and apart:
                groups = self._all_of(schema.group_values, first, end)
        own, second = (
            [b"".join(one["digest"])] if one["digest"] else [] for one in (people, groups)
        )
        payload = self._payload(entry.number)[1]
        return Rows(
            facts,
            people["round"],
            0 if entry.kind == "history" else says.get("round"),
            first,
            entry.content,
            lambda facts: content_parts(facts, own, second, payload),
        )

    def _application(self, person: Any) -> Any:
        one = schema.people.c
        return self._connection.execute(
            self._select(one.application).where(one.person == person)
        ).scalar()

    def _who(self, person: int) -> str:
        return who(person, self._application(person))

    def _without_outcome(self, entry: Entry, most: int) -> Sequence[int]:
        """Return people of whom an entry might have told an outcome that is not there."""
        one, told, number = schema.people.c, schema.outcomes.c, entry.number
        known = self._select(told.person)
        if entry.kind == "correction":
            known = known.where(told.entry < number).distinct()
            here = self._select(told.person).where(told.entry == number)
            found = known.where(told.person.not_in(here))
        elif entry.kind in ("history", "outcomes"):
            by_hand = schema.overrides.c
            also = self._select(by_hand.person).where(by_hand.accepted, by_hand.entry < number)
            found = self._select(one.person).where(
                one.person < header_range(entry)[1],
                sa.or_(one.accepted, one.person.in_(also)),
                one.person.not_in(known.where(told.entry <= number)),
            )
        else:
            return []
        return self._connection.execute(found.limit(most)).scalars().all()

    def _as_kept(
        self, entry: Entry, told: OutcomeRows, kept: KeptOutcomes | None
    ) -> list[OutcomeRows]:
        """Return outcomes as a later state has them, without and with those that are not there."""
        if kept is None or kept.applied < entry.number:
            return []
        later, by_hand = schema.outcomes.c, schema.overrides.c
        since = self._select(later.person).where(
            later.entry > entry.number, later.entry <= kept.applied
        )
        apart = self._select(by_hand.person).where(by_hand.entry <= kept.applied)
        unlike = {  # what the state has of them, another entry may have told
            person for one in (since, apart) for person in self._connection.execute(one).scalars()
        }
        states = zip(told.persons.tolist(), told.states, kept.of(told.persons), strict=True)
        found = {
            person: now if was is None or person in unlike else was for person, now, was in states
        }
        without = {person: state for person, state in found.items() if state}
        if entry.kind == "correction":
            return [_outcome_rows(without)]
        lost = np.array([*{*self._without_outcome(entry, _MANY)} - unlike], np.int64)
        gone = {
            person: was for person, was in zip(lost.tolist(), kept.of(lost), strict=True) if was
        }
        return [_outcome_rows(without), _outcome_rows(without | gone)]

    def _impossible_people(self, entry: Entry) -> dict[str, set[int]]:
        """Return of whom an entry tells something that cannot be told, by table."""
        found: dict[str, set[int]] = {}
        for one in self._impossible(entry):
            found.setdefault(f"{one.what}s", set()).add(one.person)
        return found

    def _impossible(self, entry: Entry) -> Iterator[Change]:
        """Yield what an entry tells of people of whom it cannot be told.

        Whom a history accepted, it tells itself: that may be what was changed.
        """
        facts, (first, end) = self._facts(entry), header_range(entry)
        told, changed, erased = facts.outcomes, facts.overrides, facts.erased
        for table, what, persons in (
            ("outcomes", "outcome", None if told is None else told.persons),
            ("overrides", "override", None if changed is None else changed.persons),
            ("erasures", "erasure", erased),
        ):
            for person in [] if persons is None else persons[(persons < 0) | (persons >= end)]:
                yield Change(table, what, int(person), "cannot be, since nobody has that number")
        if told is not None:
            for person in self._not_accepted(entry, told.persons):
                how = "cannot be, since the person does not stand accepted"
                table = "outcomes" if person < first else "decisions or outcomes"
                yield Change(table, "outcome", person, how)
        if erased is not None:
            named = self._select(schema.people.c.person, schema.people.c.application)
            found = where_in(self._connection, named, schema.people.c.person, erased.tolist())
            for person, name in zip(*found, strict=True):
                if name is not None:
                    how = "cannot be, since the person's name is there"
                    yield Change("erasures", "erasure", person, how)

    def _not_accepted(self, entry: Entry, persons: Ints) -> Iterator[int]:
        """Yield who had been accepted neither by the program nor by hand when an entry was made."""
        one, by_hand = schema.people.c, schema.overrides.c
        decided = self._select(one.person, one.accepted)
        stands = dict(
            zip(*where_in(self._connection, decided, one.person, persons.tolist()), strict=True)
        )
        later = self._select(by_hand.person, by_hand.accepted).where(by_hand.entry < entry.number)
        later = later.order_by(by_hand.entry)
        found = where_in(self._connection, later, by_hand.person, persons.tolist())
        stands |= dict(zip(*found, strict=True))
        yield from (person for person, accepted in sorted(stands.items()) if not accepted)


def _outcome_rows(states: dict[int, str]) -> OutcomeRows:
    persons = np.array(sorted(states), np.int64)
    return OutcomeRows(persons, [states[one] for one in persons.tolist()])


def first_gap(persons: Sequence[Any], first: int, end: int) -> str:
    """Say who of people that should follow each other is missing, or there more than once.

    Examples
    --------
    >>> first_gap([7, 9], 7, 10)
    'person 8 is missing'
    >>> first_gap([7, 8, 8, 9], 7, 10)
    'person 8 is there 2 times'
    """
    found = Counter(persons)
    person = next((one for one in range(first, end) if found[one] != 1), None)
    if person is None:
        return f"person {shown(max(found, key=lambda one: not isinstance(one, int)))} is too"
    n = found[person]
    return f"person {person} is missing" if n == 0 else f"person {person} is there {n} times"


def _that_cannot_be(column: Any, values: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """Yield values that a column cannot have; SQLite stores anything in any column."""
    kinds: dict[type, tuple[type, ...]] = {
        sa.Text: (str,),
        sa.LargeBinary: (bytes,),
        sa.Boolean: (bool, int),
        sa.Double: (float, int),
        sa.Integer: (int,),
    }
    kind = next(one for of, one in kinds.items() if isinstance(column.type, of))
    among: tuple[Any, ...] | None = (0, 1) if isinstance(column.type, sa.Boolean) else None
    if column is schema.outcomes.c.state:
        among = STATES
    for at, one in enumerate(values):
        if one is None and column.nullable:
            continue
        is_nan = isinstance(one, float) and math.isnan(one)
        if not isinstance(one, kind) or is_nan or (among is not None and one not in among):
            yield at, one


def _if_possible(look: Callable[[], _Found | None]) -> _Found | None:
    try:
        return look()
    except Exception:  # what was found before stands without it
        return None
