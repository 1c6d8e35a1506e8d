"""The ledger on SQLite and PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import numpy as np
import sqlalchemy as sa

from secondlook.errors import InputError, LedgerError, UnknownIdError
from secondlook.ledger import engines, schema, upgrading
from secondlook.ledger.base import (
    KINDS,
    STATES,
    Entry,
    Facts,
    Ints,
    Ledger,
    OutcomeRows,
    OverrideRows,
    Reader,
    Writer,
    to_json,
)
from secondlook.ledger.bulk import insert_columns, is_one_of, where_in
from secondlook.ledger.chain import NOTHING, entry_hash
from secondlook.ledger.new_people import NewPeople
from secondlook.ledger.sql_checks import CheckingReader
from secondlook.ledger.sql_reader import content_digest
from secondlook.ledger.texts import check_name, check_text

__all__ = ["SqlLedger"]


class SqlLedger(Ledger):
    """A ledger at a URL: ``sqlite:///lender.db`` or ``postgresql://host/database``.

    Parameters
    ----------
    url
        Where the ledger lives.
    make
        Make the SQLite file if it is not there.
    clock
        What tells the time (in UTC) at which entries are written.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = SqlLedger(f"sqlite:///{folder.name}/lender.db", make=True)
    >>> with ledger.creating("loans") as writer:
    ...     entry = writer.append("program", {"alpha": 0.15}, Facts(), by="doctest")
    >>> ledger.programs(), entry.number, entry.says["alpha"]
    (['loans'], 1, 0.15)
    >>> folder.cleanup()
    """

    def __init__(
        self, url: str, *, make: bool = False, clock: Callable[[], datetime] | None = None
    ) -> None:
        self.clock = _now if clock is None else clock
        self.engine = engines.connect(url, make=make)
        upgrading.upgrade(self.engine, make=make)

    def close(self) -> None:
        """Close what is kept open; the ledger may still be used, and then opens it again."""
        self.engine.dispose()

    def programs(self) -> list[str]:
        """Return the names of all programs."""
        with engines.said_plainly(self.engine), self.engine.connect() as connection:
            return _names(connection)

    @contextmanager
    def creating(self, name: str) -> Iterator[Writer]:
        """Write the first entries of a new program."""
        check_name("a program's name", name)
        with self._transaction() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.text("LOCK TABLE programs IN SHARE ROW EXCLUSIVE MODE"))
            named = sa.select(schema.programs.c.program).where(schema.programs.c.name == name)
            if connection.execute(named).first() is not None:
                raise InputError(
                    f"there is a program called {name!r} in this ledger already; open it, or take "
                    f"another name."
                )
            new = schema.programs.insert().values(name=name).returning(schema.programs.c.program)
            number = connection.execute(new).scalar_one()
            yield SqlWriter(connection, number, name, self.clock)

    @contextmanager
    def reading(self, program: str) -> Iterator[Reader]:
        """Read one program."""
        with engines.said_plainly(self.engine), self.engine.connect() as connection:
            if connection.dialect.name == "postgresql":
                connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield CheckingReader(connection, self._find(connection, program), program)

    @contextmanager
    def writing(self, program: str) -> Iterator[Writer]:
        """Write to one program."""
        with self._transaction() as connection:
            number = self._find(connection, program, lock=True)
            writer = SqlWriter(connection, number, program, self.clock)
            yield writer
        if writer.erased:
            engines.scrub(self.engine)

    @contextmanager
    def _transaction(self) -> Iterator[sa.Connection]:
        with (
            engines.said_plainly(self.engine),
            self.engine.connect().execution_options(writes=True) as connection,
            connection.begin() as transaction,
        ):
            yield connection
            with engines.told_if_unsure(self.engine):
                transaction.commit()

    def _find(self, connection: sa.Connection, name: str, *, lock: bool = False) -> int:
        named = sa.select(schema.programs.c.program).where(schema.programs.c.name == name)
        found = connection.execute(named.with_for_update() if lock else named).scalar()
        if found is None:
            known = ", ".join(map(repr, _names(connection)))
            raise LedgerError(
                f"there is no program called {name!r} in this ledger, which has {known or 'none'}; "
                f"{'name one of these or ' if known else ''}create it."
            )
        return int(found)


class SqlWriter(CheckingReader, Writer):
    """One program inside a transaction that nobody else can be in."""

    def __init__(
        self, connection: sa.Connection, program: int, name: str, clock: Callable[[], datetime]
    ) -> None:
        super().__init__(connection, program, name)
        self._clock = clock
        self._after: tuple[int, bytes, int] | None = None  # the last entry, once one was written
        self.erased = False

    def append(
        self, kind: str, header: dict[str, Any], facts: Facts, *, by: str, key: str | None = None
    ) -> Entry:
        self._forget()
        last, previous, first = self._after or self._end()
        number = last + 1
        self._check_new(kind, key, by, facts)
        key = f"#{number}" if key is None else key
        self._check_told(kind, facts)
        rows = {
            "first": first,
            "n": 0 if facts.people is None else len(facts.people),
            "groups": facts.people is not None and facts.people.groups is not None,
            "one_digest": True,  # over a person and their group values
        }
        facts = _in_order(facts)
        payload = None if facts.payload is None else sha256(facts.payload).digest()
        content = self._insert_people(first, facts, payload)
        at = self._clock().isoformat(timespec="microseconds")
        words = (kind, key, at, by, to_json(header | {"rows": rows}))
        own_hash = entry_hash(self._name, number, words, content, previous)
        entry = Entry(number, *words, content, previous, own_hash)
        self._connection.execute(
            schema.entries.insert().values(program=self._program, **vars(entry))
        )
        self._insert_told(number, facts)
        if facts.erased is not None:
            self._erase(number, facts.erased)
        if facts.payload is not None:
            kept = {"entry": number, "content": [facts.payload], "digest": [payload]}
            self._insert(schema.payloads, kept)
        self._after = number, own_hash, first + rows["n"]
        return entry

    def _check_new(self, kind: str, key: str | None, by: str, facts: Facts) -> None:
        if (facts.people is None) != (facts.decisions is None):
            raise InputError("people are recorded with the decisions on them; give both.")
        _check_lengths(facts)
        for rows in (facts.people, facts.erased):
            if rows is not None and not len(rows):
                raise InputError("an entry about people names at least one, got none; give some.")
        if kind not in KINDS:
            raise InputError(f"an entry is one of {', '.join(KINDS)}, got {kind!r}.")
        check_name("the name of who writes", by, longest=None)
        if key is None:
            return  # the number is new, and the table keeps two entries from one key
        check_name("a key", key)
        if self.entry(kind, key) is not None:
            raise InputError(
                f"the program {self._name!r} has an entry of kind {kind!r} with the key {key!r} "
                f"already, and entries never change; take another key."
            )

    def _check_told(self, kind: str, facts: Facts) -> None:
        """Refuse outcomes that cannot be."""
        if facts.outcomes is None or kind == "history":
            return
        _check_once(facts.outcomes.persons)
        strange = sorted(set(facts.outcomes.states) - set(STATES))
        if strange:
            raise InputError(f"an outcome is {' or '.join(STATES)}, got {strange[0]!r}.")
        standing = self._standing_of(facts.outcomes.persons)
        wrong = np.flatnonzero(~standing.accepted)
        if wrong.size:
            raise UnknownIdError(
                f"{wrong.size} of {standing.persons.size} people do not stand accepted, first "
                f"number {standing.persons[wrong[0]]}, and outcomes are known for accepted people "
                f"only; nothing was recorded, remove them."
            )
        told = np.array([state is not None for state in standing.states], np.bool_)
        wrong = np.flatnonzero(~told if kind == "correction" else told)
        if wrong.size:
            has, do = (
                ("no outcome yet", "tell it first")
                if kind == "correction"
                else ("an outcome already", "tell a correction")
            )
            raise InputError(
                f"person {standing.persons[wrong[0]]} has {has}; nothing was recorded, {do}."
            )

    def _insert(self, table: sa.Table, columns: Mapping[str, Any]) -> None:
        insert_columns(self._connection, (table, {"program": self._program, **columns}))

    def _insert_people(self, first: int, facts: Facts, payload: bytes | None) -> bytes:
        """Insert whoever was decided on; return the hash of all rows of the entry."""
        people, decided = facts.people, facts.decisions
        if people is None or decided is None:
            return content_digest(facts, [], [], payload)
        new, content = NewPeople(self._program, first, people, decided), NOTHING

        def prepare(rows: slice) -> None:
            nonlocal content
            new.prepare(rows)
            if rows.stop == len(people):  # and the database still works on those before
                content = content_digest(facts, [new.digests], [], payload)

        driver: Any = self._connection.dialect
        try:
            insert_columns(self._connection, *new.tables, prepare=prepare)
        except driver.loaded_dbapi.IntegrityError as error:
            name, where = _first_twice(people.applications), "twice in this batch"
            if name is None:
                name = self._first_known(people.applications, first, error)
                where = "in the ledger already"
            who = "somebody of this batch" if name is None else f"the application {name!r}"
            raise InputError(
                f"{who} is {where}; nothing was recorded, give somebody who applies again a new "
                f"id, or verify the ledger if nobody does."
            ) from error
        return content

    def _first_known(self, names: Sequence[str | None], first: int, error: Any) -> str | None:
        """Return the first of the names that somebody else has, after a database refused them."""
        if self._connection.dialect.name == "postgresql":  # which ended the transaction with it
            told = re.search(r"=\((.*), \d+\)", error.diag.message_detail or "", re.DOTALL)
            return None if told is None else told[1]
        one = schema.people.c
        before = self._select(one.application).where(one.person < first)
        [found] = where_in(self._connection, before, one.application, list(names))
        known = {*found}
        return next((name for name in names if name in known), None)

    def _insert_told(self, number: int, facts: Facts) -> None:
        told, changed = facts.outcomes, facts.overrides
        if told is not None:
            rows = {"entry": number, "person": told.persons, "state": told.states}
            self._insert(schema.outcomes, rows)
        self._lookup.forget()
        if changed is not None:
            check_text("a reason", changed.reasons)
            self._insert(
                schema.overrides,
                {
                    "entry": number,
                    "person": changed.persons,
                    "accepted": changed.accepted,
                    "reason": changed.reasons,
                },
            )

    def _erase(self, number: int, persons: Ints) -> None:
        self.erased = True
        self._insert(schema.erasures, {"entry": number, "person": persons})
        erasing = (
            (schema.people, ("application", "numbers", "texts", "salt", "reasons")),
            (schema.group_values, ("value", "salt")),
        )
        for table, columns in erasing:
            change = sa.update(table).where(
                table.c.program == self._program,
                is_one_of(self._connection, table.c.person, persons.tolist()),
            )
            self._connection.execute(change.values(dict.fromkeys(columns)))
        states = sa.select(schema.entries.c.number).where(
            schema.entries.c.program == self._program, schema.entries.c.kind == "snapshot"
        )
        self._connection.execute(
            sa.update(schema.payloads)
            .where(schema.payloads.c.program == self._program, schema.payloads.c.entry.in_(states))
            .values(content=None)
        )


def _names(connection: sa.Connection) -> list[str]:
    """Return the names of all programs; SQLite may hold anything there."""
    return sorted(connection.execute(sa.select(schema.programs.c.name)).scalars(), key=str)


def _in_order(facts: Facts) -> Facts:
    """Return the rows in the order in which they will be read."""
    told, changed, erased = facts.outcomes, facts.overrides, facts.erased
    if told is not None:
        order = np.argsort(told.persons)
        told = OutcomeRows(told.persons[order], [told.states[at] for at in order])
    if changed is not None:
        _check_once(changed.persons)
        order = np.argsort(changed.persons)
        reasons = [changed.reasons[at] for at in order]
        changed = OverrideRows(changed.persons[order], changed.accepted[order], reasons)
    if erased is not None:
        _check_once(erased)
        erased = np.sort(erased)
    return Facts(facts.people, facts.decisions, told, changed, erased, facts.payload)


def _check_lengths(facts: Facts) -> None:
    """Raise unless all columns of a kind of rows have one length."""
    for rows in ([facts.people, facts.decisions], [facts.outcomes], [facts.overrides]):
        columns = {name: one for kind in rows if kind for name, one in vars(kind).items()}
        lengths = {name: len(one) for name, one in columns.items() if hasattr(one, "__len__")}
        if len({*lengths.values()}) > 1:
            told = ", ".join(f"{name} {n}" for name, n in lengths.items())
            raise InputError(
                f"columns of one kind of rows must have one length, got {told}; nothing was "
                f"recorded, give one value a row."
            )


def _check_once(persons: Ints) -> None:
    in_order = np.sort(persons)
    if np.any(in_order[1:] == in_order[:-1]):
        raise InputError("a person is named twice in one entry; name everybody once.")


def _first_twice(names: Sequence[str | None]) -> str | None:
    seen: set[str | None] = set()
    return next((one for one in names if one in seen or seen.add(one)), None)  # type: ignore[func-returns-value]


def _now() -> datetime:
    return datetime.now(UTC)
