"""The ledger on SQLite and PostgreSQL; ``base`` has its contract."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import chain, takewhile
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.dialects import postgresql

from fairchance.errors import (
    InputError,
    LedgerError,
    LedgerWarning,
    RoundClosedError,
    UnknownIdError,
)
from fairchance.ledger import database, schema
from fairchance.ledger.base import (
    KINDS,
    LONGEST,
    LONGEST_JSON,
    STATES,
    Bools,
    DecisionRows,
    Entry,
    Facts,
    Floats,
    HeadCounts,
    Ints,
    ListedRows,
    OutcomeRows,
    OverrideRows,
    PeopleRows,
    RecordedRows,
    Standing,
    check_name,
    check_text,
    to_json,
)
from fairchance.ledger.chain import (
    NOTHING,
    Checkpoint,
    Columns,
    RowDigests,
    StoredRows,
    content_hash,
    digests_of,
    entry_hash,
    personal_digests,
    salts,
    split_digests,
)
from fairchance.ledger.inserts import RESERVE, SETTINGS, Inserter, insert_rows, number_rows
from fairchance.people.ids import is_text
from fairchance.words import moved

__all__ = ["PART", "LedgerReader", "SqlLedger", "Writer"]

# What reading raises if a database holds values that no ledger writes.
_ILLEGIBLE = (ValueError, LookupError, TypeError, AttributeError, OverflowError)
_ENTRY = tuple(schema.entries.c)[1:]  # all columns but the program
_NONE = -1
LONGEST_PAUSE = timedelta(days=5 * 366)  # between entries; a longer one is taken for a wrong clock
_CLOCKS_DIFFER = timedelta(minutes=5)  # those of several machines that write

PART = 10_000  # applicants of a round that are read at once


class SqlLedger:
    """A store of programs at a URL: ``sqlite:///lender.db`` or ``postgresql://host/database``.

    Parameters
    ----------
    url
        Where the ledger lives.
    make
        Make the SQLite file if it does not exist.
    check
        Check the tables now; False leaves that to the first transaction.

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

    def __init__(self, url: str, *, make: bool = False, check: bool = True) -> None:
        self.clock: Callable[[], datetime] = _now  # the time (in UTC) at which entries are written
        self.engine = database.connect(url, make=make)
        self._inserter = Inserter(self.engine)
        self._is_checked = False
        if make:
            database.make_tables(self.engine)
        elif check:
            with database.translating_errors(self.engine), self.engine.connect() as connection:
                self._check(connection)

    def close(self) -> None:
        """Close open connections; the ledger may still be used, and then opens new ones."""
        self._inserter.close()
        self.engine.dispose()

    def programs(self) -> list[str]:
        """Return the names of all programs, sorted."""
        with database.translating_errors(self.engine), self.engine.connect() as connection:
            self._check(connection)
            return _program_names(connection)

    def named(self, program: str | None) -> str:
        """Return a program's name; None means the only one, and raises if there are others."""
        if program is not None:
            return program
        names = self.programs()
        if len(names) == 1:
            return names[0]
        if not names:
            raise LedgerError("the ledger has no program; start one.")
        raise LedgerError(
            f"the ledger has {len(names)} programs, {', '.join(map(repr, names))}; choose one with "
            f"{{option}}.",
            option="program",
        )

    @contextmanager
    def creating(self, name: str) -> Iterator[Writer]:
        """Write the first entries of a new program; a name in use raises ``InputError``."""
        check_name("a program's name", name)
        with self._transaction() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.text("LOCK TABLE programs IN SHARE ROW EXCLUSIVE MODE"))
            named = sa.select(schema.programs.c.program).where(schema.programs.c.name == name)
            if connection.execute(named).first() is not None:
                raise InputError(f"the ledger has a program {name!r} already; choose another name.")
            new = schema.programs.insert().values(name=name).returning(schema.programs.c.program)
            number = connection.execute(new).scalar_one()
            yield Writer(connection, number, name, self.clock)

    @contextmanager
    def reading(self, program: str) -> Iterator[LedgerReader]:
        """Read one program."""
        with database.translating_errors(self.engine), self.engine.connect() as connection:
            if connection.dialect.name == "postgresql":
                connection.execution_options(
                    isolation_level="REPEATABLE READ", postgresql_readonly=True
                )
            else:
                connection.connection.execute("PRAGMA query_only=ON")
            with connection.begin():
                self._check(connection)
                yield LedgerReader(connection, self._number(connection, program), program)

    @contextmanager
    def writing(self, program: str) -> Iterator[Writer]:
        """Write to one program: all of it or, if the block raises, nothing."""
        with self._transaction() as connection:
            number = self._number(connection, program, lock=True)
            yield Writer(connection, number, program, self.clock)

    def record_in_round(self, program: str, opened: Entry, facts: Facts) -> list[bytes]:
        """Add applicants with their decisions to an open round; return their receipts.

        They are durable then. This waits for no other writer of the program, and appends no entry.

        Parameters
        ----------
        program
            The program's name.
        opened
            The entry that opened the round (``LedgerReader.open_round``).
        facts
            The applicants and the decisions on them.

        Raises
        ------
        RoundClosedError
            If the round is open no more. Nothing was recorded.
        KnownApplicationError
            If one of the applications is recorded already (``LedgerReader.recorded``). Nothing was
            recorded.
        """
        rows = _rows_of_round(opened, facts)
        if not self._is_checked:
            with database.translating_errors(self.engine), self.engine.connect() as connection:
                self._check(connection)
        self._inserter.add(program, opened, rows)
        return split_digests(digests_of(rows).decisions)

    def compact(self, *, lock: bool = True) -> bool:
        """Write the ledger's files anew, so that erased applicants are in none of them.

        Returns whether that was done, by ``VACUUM`` on SQLite and ``VACUUM FULL`` on PostgreSQL.

        Parameters
        ----------
        lock
            Also if others cannot even read meanwhile; if False, such a ledger is left as it is.

        Raises
        ------
        LedgerError
            If something of them may be left.
        """
        if not lock and self.engine.dialect.name == "postgresql":
            return False
        with database.translating_errors(self.engine), self.engine.connect() as connection:
            self._check(connection)
        database.compact(self.engine)
        return True

    def left_in_files(self, *, lock: bool) -> str:
        """Compact the ledger, and return in a sentence if erased applicants may be left in files.

        ``lock`` is that of ``compact``; the sentence is empty if nothing of them is left.
        """
        why = "PostgreSQL keeps them in its files until the ledger is compacted."
        try:
            if self.compact(lock=lock):
                return ""
        except LedgerError as error:
            why = str(error)
        return f"the applicants are erased and that is recorded, but {why}"

    def own_check(self) -> tuple[str | None, str | None]:
        """Return what is wrong with the database itself, in a sentence, and what is not checked.

        Its tables must be those that this version makes, and its own checks of pages and indexes
        must pass; what it cannot check is in words, such as "indexes".
        """
        return database.own_check(self.engine)

    @contextmanager
    def _transaction(self) -> Iterator[sa.Connection]:
        with (
            database.translating_errors(self.engine),
            self.engine.connect().execution_options(writes=True) as connection,
            connection.begin() as transaction,
        ):
            if connection.dialect.name == "postgresql":
                connection.exec_driver_sql(SETTINGS)
            self._check(connection)
            yield connection
            with database.reporting_lost_commits(self.engine):
                transaction.commit()

    def _check(self, connection: sa.Connection) -> None:
        if not self._is_checked:
            database.check_tables(connection)
            self._is_checked = True

    def _number(self, connection: sa.Connection, name: str, *, lock: bool = False) -> int:
        named = sa.select(schema.programs.c.program).where(schema.programs.c.name == name)
        # A weaker lock than for deleting, so that others may add applicants to an open round.
        statement = named.with_for_update(key_share=True) if lock else named
        number = connection.execute(statement).scalar()
        if number is None:
            known = ", ".join(map(repr, _program_names(connection)))
            raise LedgerError(
                f"the ledger has no program {name!r} (it has {known or 'none'}); choose another "
                f"with {{option}}.",
                option="program",
            )
        return int(number)


class LedgerReader:
    """A consistent view of one program, on an open connection."""

    def __init__(self, connection: sa.Connection, program: int, name: str) -> None:
        self._connection, self._program, self._name = connection, program, name
        self._newest_rows: tuple[int, StoredRows] | None = None

    def head(self) -> Checkpoint:
        """Return the end of the chain."""
        link = schema.entries.c
        newest = self._select(link.number, link.hash).order_by(link.number.desc()).limit(1)
        row = self._connection.execute(newest).first()
        return Checkpoint(self._name, *(row or (0, NOTHING)))

    def last_entry(self) -> Entry | None:
        """Return the last entry; None before the first."""
        newest = self._select(*_ENTRY).order_by(schema.entries.c.number.desc()).limit(1)
        row = self._connection.execute(newest).first()
        return None if row is None else Entry(*row)

    def rows_of(self, table: sa.Table, size: int) -> Iterator[Columns]:
        """Yield all rows of a table as they are stored, so many at a time."""
        columns = tuple(table.c)[1:]  # all but the program
        rows = self._select(*columns).order_by(*columns[:2])
        found = self._connection.execute(rows, execution_options={"yield_per": size})
        for part in found.partitions():
            values = zip(*part, strict=True)
            yield {column.name: one for column, one in zip(columns, values, strict=True)}

    def entry(self, kind: str, key: str) -> Entry | None:
        """Return the entry of a kind and key, if there is one."""
        if not is_text(key):
            return None
        link = schema.entries.c
        same = self._select(*_ENTRY).where(link.kind == kind, link.key == key)
        row = self._connection.execute(same).first()
        return None if row is None else Entry(*row)

    def entries(self, after: int = 0, *, kind: str | None = None) -> Iterator[Entry]:
        """Yield entries after a number, in order, all or those of a kind."""
        link = schema.entries.c
        later = self._select(*_ENTRY).where(link.number > after).order_by(link.number)
        if kind is not None:
            later = later.where(link.kind == kind)
        for row in self._connection.execute(later).fetchall():
            yield Entry(*row)

    def believed(self, now: datetime) -> datetime:
        """Return a time if the record makes it plausible, else the last plausible one before.

        Entries that a wrong clock dated far ahead do not count, so the mistake does not confirm
        itself.
        """
        link = schema.entries.c
        times = self._select(link.number, link.at).order_by(link.number)
        with self._legible("the times of entries"):
            last, *later = [datetime.fromisoformat(at) for _, at in self._connection.execute(times)]
            for at in later:
                last = at if last < at <= last + LONGEST_PAUSE else last
        return now if now <= last + LONGEST_PAUSE else last

    def newest_first(self, kind: str) -> Iterator[Entry]:
        """Yield entries of a kind from the last to the first, reading one at a time."""
        link, before = schema.entries.c, None
        while True:
            newest = self._select(*_ENTRY).where(link.kind == kind)
            if before is not None:
                newest = newest.where(link.number < before)
            row = self._connection.execute(newest.order_by(link.number.desc()).limit(1)).first()
            if row is None:
                return
            entry = Entry(*row)
            before = entry.number
            yield entry

    def open_round(self) -> Entry | None:
        """Return the entry that opened the round that is open; None if none is."""
        link, rounds = schema.entries.c, schema.rounds.c
        newest = (
            sa.select(*_ENTRY, rounds.closed)
            .join_from(
                schema.rounds,
                schema.entries,
                (link.program == rounds.program) & (link.number == rounds.opened),
            )
            .where(rounds.program == self._program, link.kind == "round")
            .order_by(rounds.round.desc())
            .limit(1)
        )
        row = self._connection.execute(newest).first()
        return None if row is None or row.closed is not None else Entry(*row[:-1])

    def recorded(self, applications: Sequence[str]) -> RecordedRows:
        """Return what is recorded of applications, without those that are not known."""
        names = [name for name in applications if is_text(name)]
        return self._recorded(_is_one_of(self._connection, schema.people.c.application, names))

    def recorded_person(self, person: int, *, groups: bool = True) -> RecordedRows:
        """Return what is recorded of the applicant of a number, also if erased."""
        return self._recorded(schema.people.c.person == person, groups=groups)

    def _recorded(self, where: sa.ColumnElement[bool], *, groups: bool = True) -> RecordedRows:
        with self._legible("the recorded applications"):
            people = self._columns(schema.people, where)
            persons = people["person"] if groups else []
            has_value = _is_one_of(self._connection, schema.group_values.c.person, persons)
            values = self._columns(schema.group_values, has_value) if persons else {"person": ()}
            return RecordedRows(
                _people(people, values if values["person"] else None),
                _decisions(people),
                np.array(people["round"], np.int64),
                split_digests(digests_of(_only_people(people, values)).decisions),
            )

    def person_of(self, application: str) -> int | None:
        """Return the number of an application; None if it is not known."""
        if not is_text(application):
            return None
        people = schema.people.c
        named = self._select(people.person).where(people.application == application)
        person: int | None = self._first(named)
        return person

    def erasure_of(self, person: int) -> Entry | None:
        """Return the entry that erased an applicant; None if none did."""
        erased = schema.erasures.c
        number = self._first(self._select(erased.entry).where(erased.person == person))
        return None if number is None else self.numbered(number)

    def parts(
        self, entry: Entry, size: int | None = None, *, newest: int | None = None
    ) -> Iterator[tuple[PeopleRows, DecisionRows]]:
        """Yield the applicants of an entry in parts, in the order of their numbers.

        Of the entry that opened a round these are the applicants until now, if it is still open, or
        about so many of the ``newest``. A writer calls ``hold_round`` first, so that none is
        missed.
        """
        with self._legible(f"the applicants of entry {entry.number}"):
            stored = self.stored_parts(entry, size)
            if entry.kind == "round" and entry == self.open_round():
                first = 0 if newest is None else self.people_end() - newest
                stored = self.stored_people(max(first, entry.people_range.start), size=size)
            for rows in stored:
                if rows.people["person"]:
                    groups = rows.group_values if entry.says["rows"]["groups"] else None
                    yield _people(rows.people, groups), _decisions(rows.people)

    def accepted(self, entry: Entry) -> Iterator[PeopleRows]:
        """Yield the accepted applicants of an entry who are not erased, in parts."""
        columns, last = schema.people.c, entry.people_range.start - 1
        is_read = columns.accepted & columns.application.is_not(None)
        is_read &= columns.person < entry.people_range.stop
        with self._legible(f"the accepted applicants of entry {entry.number}"):
            while True:
                people, values = (
                    self._columns(schema.people, is_read & (columns.person > last), PART),
                    None,
                )
                if people["person"]:
                    if entry.says["rows"]["groups"]:
                        of_them = _is_one_of(
                            self._connection, schema.group_values.c.person, people["person"]
                        )
                        values = self._columns(schema.group_values, of_them)
                    yield _people(people, values)
                if len(people["person"]) < PART:
                    return
                last = people["person"][-1]

    def stored_parts(self, entry: Entry, size: int | None = None) -> Iterator[StoredRows]:
        """Yield the rows of an entry as they are stored, even if they are damaged, in parts.

        The first part has all rows that are no applicants.
        """
        people = entry.people_range
        if len(people) <= (size or PART):
            yield self.stored(entry)
            return
        with self._any_text():
            yield self._read_rows(people[:0], entry.number)
        yield from self.stored_people(people.start, people.stop, size)

    def stored_people(
        self,
        first: int,
        end: int | None = None,
        size: int | None = None,
        *,
        groups: bool = True,
    ) -> Iterator[StoredRows]:
        """Yield applicants from a number on, or to before another, as they are stored, in parts."""
        tables, last = (schema.people, schema.group_values), None
        size = size or PART
        while True:
            after = [
                table.c.person >= first if last is None else table.c.person > last
                for table in tables
            ]
            if end is not None:
                after = [
                    one & (table.c.person < end) for one, table in zip(after, tables, strict=True)
                ]
            with self._any_text():
                rows = self._columns(schema.people, after[0], size)
                is_last = len(rows["person"]) < size
                last = None if is_last else rows["person"][-1]
                some = after[1] if is_last else after[1] & (schema.group_values.c.person <= last)
                values: Columns = dict.fromkeys(("person", "value", "salt"), ())
                if groups:
                    values = self._columns(schema.group_values, some)
            if rows["person"] or values["person"]:
                yield _only_people(rows, values)
            if is_last:
                return

    def kept_states(self) -> set[int]:
        """Return the states whose content is kept: the last two, and one to learn again from.

        Learning again begins with the history; after an erasure with the first state that lacks
        the erased applicants, and after a change of the packages' versions with the first state
        since. States before the last erasure have no content.
        """
        erasure = next(self.newest_first("erasure"), None)
        states = [*self.entries(0 if erasure is None else erasure.number, kind="snapshot")]
        if not states:
            return set()
        made_by = [entry.says.get("versions") for entry in reversed(states)]
        n_since = sum(1 for _ in takewhile(lambda one: one == made_by[0], made_by))
        first = states[-n_since:][:1] if erasure or n_since < len(states) else []
        return {entry.number for entry in (*states[-2:], *first)}

    def people_end(self) -> int:
        """Return the number after that of the last applicant, of an open round too."""
        last = self._select(schema.people.c.person).order_by(schema.people.c.person.desc())
        person = self._connection.execute(last.limit(1)).scalar()
        return 0 if person is None else int(person) + 1

    def facts(self, entry: Entry, *, people: bool = True) -> Facts:
        """Return the rows of an entry, without its applicants if ``people`` is False."""
        with self._legible(f"entry {entry.number}"):
            rows, says = self._rows(entry, people=people), entry.says["rows"]
            outcomes, overrides = rows.outcomes, rows.overrides
            _check_states(outcomes["state"])
            has_people = people and says["n"]
            return Facts(
                _people(rows.people, rows.group_values if says["groups"] else None)
                if has_people
                else None,
                _decisions(rows.people) if has_people else None,
                OutcomeRows(np.array(outcomes["person"], np.int64), outcomes["state"])
                if outcomes["person"]
                else None,
                OverrideRows(
                    np.array(overrides["person"], np.int64),
                    _flags(overrides["accepted"]),
                    overrides["reason"],
                )
                if overrides["person"]
                else None,
                np.array(rows.erasures["person"], np.int64) if rows.erasures["person"] else None,
                self.stored_payload(entry)[0],
            )

    def stored(self, entry: Entry) -> StoredRows:
        """Return the rows of an entry as they are stored, even if they are damaged."""
        with self._any_text():
            return self._rows(entry)

    @contextmanager
    def _any_text(self) -> Iterator[None]:
        """Read text that SQLite holds, also if its bytes are no text."""
        driver: Any = self._connection.connection.driver_connection
        if self._connection.dialect.name == "sqlite":
            driver.text_factory = _any_text
        try:
            yield
        finally:
            if self._connection.dialect.name == "sqlite":
                driver.text_factory = str

    def stored_digests(self, entry: Entry) -> RowDigests:
        """Return the stored digests of an entry's rows."""
        columns = tuple(schema.row_digests.c)[2:]
        stored = self._select(*columns).where(schema.row_digests.c.entry == entry.number)
        row = self._connection.execute(stored).first()
        return RowDigests() if row is None else RowDigests(*row)

    def stored_digest(self, entry: Entry, person: int) -> bytes | None:
        """Return the stored digest of an applicant of an entry, without reading the others."""
        places, people, stored = entry.says["rows"], schema.people.c, schema.row_digests.c
        place = person - places["first"]
        if places["n"] < len(entry.people_range):  # some numbers are missing
            before = self._select(people.person).where(
                people.person >= places["first"], people.person < person
            )
            counted = sa.select(sa.func.count()).select_from(before.subquery())
            place = self._connection.execute(counted).scalar_one()
        size = len(NOTHING)
        one = sa.func.substr(stored.decisions, size * place + 1, size)
        digest: bytes | None = self._connection.execute(
            sa.select(one).where(stored.program == self._program, stored.entry == entry.number)
        ).scalar()
        return digest

    def stored_payload(self, entry: Entry) -> tuple[bytes | None, bytes | None]:
        """Return the payload of an entry and its stored digest, None for each that is missing."""
        columns = schema.payloads.c
        stored = self._select(columns.content, columns.digest)
        row = self._connection.execute(stored.where(columns.entry == entry.number)).first()
        return (None, None) if row is None else (row.content, row.digest)

    def payload(self, number: int) -> bytes | None:
        """Return the payload of an entry by its number; None if it has none."""
        columns = schema.payloads.c
        stored = self._select(columns.content).where(columns.entry == number)
        content: bytes | None = self._connection.execute(stored).scalar()
        return content

    def several(self, entry: Entry) -> tuple[NDArray[np.uint64] | None, bool]:
        """Return the persons with several applications in a round, and whether all are known.

        None if no person is known. Of the entry that opened a round these are those until now.
        """
        columns, numbers = schema.people.c, entry.people_range
        inside = columns.person >= numbers.start
        if entry.kind != "round":
            inside &= columns.person < numbers.stop
        counted = sa.select(sa.func.count(), sa.func.count(columns.person_key)).where(
            columns.program == self._program, inside
        )
        n, n_known = self._connection.execute(counted).one()
        if not n_known:
            return None, not n
        often = (
            self._select(columns.person_key)
            .where(inside, columns.person_key.is_not(None))
            .group_by(columns.person_key)
            .having(sa.func.count() > 1)
        )
        keys = np.array(self._fetch(often)[0], np.int64).view(np.uint64)
        return np.sort(keys), n_known == n

    def n_since(self, person: int) -> int:
        """Return how many applicants have this number or a larger one."""
        rows = self._select(schema.people.c.person).where(schema.people.c.person >= person)
        counted = sa.select(sa.func.count()).select_from(rows.subquery())
        return int(self._connection.execute(counted).scalar_one())

    def persons(self, rows: range) -> Ints:
        """Return the numbers of applicants in a range."""
        person = schema.people.c.person
        inside = self._select(person).where(person >= rows.start, person < rows.stop)
        return np.array(self._fetch(inside.order_by(person))[0], np.int64)

    def erased_between(self, first: int, end: int) -> set[int]:
        """Return the applicants from a number to before another who are in an erasure entry."""
        link, erased = schema.entries.c, schema.erasures.c
        same = sa.and_(link.program == erased.program, link.number == erased.entry)
        rows = self._select(erased.person).join(schema.entries, same)
        rows = rows.where(link.kind == "erasure", erased.person >= first, erased.person < end)
        return set(self._connection.execute(rows).scalars())

    def uncovered(self) -> str | None:
        """Describe a stored row that belongs to no entry; None if there is none."""
        _, _, end = self._end()
        link, people, opened = schema.entries.c, schema.people.c, self.open_round()
        number = self._first(self._select(link.number).where(link.number < 1))
        if number is not None:
            return f"entry {number!r} in table entries comes before the first"
        in_round = self._select(people.person).where(people.person >= end)
        for table in (schema.people, schema.group_values):
            outside = sa.or_(table.c.person < 0, table.c.person >= end)
            if opened is not None:  # an entry will cover them when it is closed
                of_round = in_round.where(people.round == opened.says["round"])
                outside &= table.c.person.not_in(of_round)
            person = self._first(self._select(table.c.person).where(outside))
            if person is not None:
                return f"person {person!r} in table {table.name} belongs to no entry"
        numbers = self._select(link.number)
        for table in (
            schema.outcomes,
            schema.overrides,
            schema.erasures,
            schema.payloads,
            schema.row_digests,
        ):
            number = self._first(self._select(table.c.entry).where(table.c.entry.not_in(numbers)))
            if number is not None:
                return f"a row of table {table.name} is of entry {number!r}, which does not exist"
        return self._other_round() or self._empty_program()

    def _empty_program(self) -> str | None:
        """Describe a program without entries, which no call leaves."""
        named, known = schema.programs.c, sa.select(schema.entries.c.program)
        name = self._first(sa.select(named.name).where(named.program.not_in(known)))
        return None if name is None else f"program {name!r} in table programs has no entries"

    def _other_round(self) -> str | None:
        """Describe a row of rounds that differs from the entries; not in ``reserved`` if open."""
        rounds = schema.rounds.c
        closed = {entry.says.get("opened"): entry.number for entry in self.entries(kind="batch")}
        made = {
            entry.says["round"]: (entry.number, end, None if end is None else first)
            for entry in self.entries(kind="round")
            for end, first in [(closed.get(entry.number), entry.people_range.start)]
        }
        rows = self._connection.execute(
            self._select(rounds.round, rounds.opened, rounds.closed, rounds.reserved)
        )
        stored = {row[0]: (row[1], row[2], None if row[2] is None else row[3]) for row in rows}
        other = [one for one in stored | made if stored.get(one) != made.get(one)]
        return f"round {other[0]!r} in table rounds differs from its entries" if other else None

    def standing(self, applications: Sequence[str]) -> Standing:
        """Return the status of applications, in their order."""
        names = [name if is_text(name) else None for name in applications]
        columns = schema.people.c
        rows = self._select(columns.application, columns.person, *_decided())
        with self._legible("the status of applications"):
            known, persons, *decided = self._where_in(rows, columns.application, names)
            row_of = {name: row for row, name in enumerate(known)}
            places = np.array([row_of.get(name, -1) for name in names], np.int64)
            return self._standing(_taken_numbers(persons, places), places, *decided)

    def names(self, persons: Ints) -> list[str | None]:
        """Return the applications of applicants, None for the erased."""
        with self._legible("the names of applicants"):
            places, names = self._newest(persons, schema.people.c.application)
            _check_type("an application", str, names)
            return _taken(names, places)

    def overridden_by(self, persons: Ints) -> Ints:
        """Return the entry of each applicant's newest override, −1 if there is none."""
        with self._legible("the overrides"):
            places, entries = self._newest(persons, schema.overrides.c.entry)
            return _taken_numbers(entries, places)

    def head_counts(self, *, groups: bool = True) -> HeadCounts:
        """Count applicants by round, decision, override, outcome and, if wanted, groups."""
        with self._legible("the head counts"):
            counts = _HeadCounter(self._connection, self._program, groups).count()
            _check_lists("a group value", set(counts.groups))
        return counts

    def awaited(self, entry: Entry, *, groups: bool = False) -> list[tuple[str, str]]:
        """Return the applications of a batch that were accepted and have no outcome, in order.

        Without overridden and erased applicants; with their group values as JSON if wanted, else
        with empty text.
        """
        people, rows = schema.people.c, entry.people_range
        value: sa.ColumnElement[Any] = schema.group_values.c.value if groups else sa.literal("")
        source: sa.FromClause = schema.people
        for table in (schema.group_values,) * groups + (schema.outcomes, schema.overrides):
            source = source.outerjoin(table, _same_person(table.c))
        awaited = (
            self._select(people.application, value)
            .select_from(source)
            .where(people.person >= rows.start, people.person < rows.stop)
            .where(people.accepted, people.application.is_not(None))
            .where(schema.outcomes.c.entry.is_(None), schema.overrides.c.entry.is_(None))
            .order_by(people.person)
        )
        with self._legible("the applicants without an outcome"):
            names, values = self._fetch(awaited)
            _check_type("an application", str, names)
            if groups:
                _check_lists("a group value", set(values))
            return list(zip(names, values, strict=True))

    def losses(self) -> list[tuple[int, int, int]]:
        """Count accepted applicants who did not take a loan, were withdrawn or rejected by hand.

        By entry, in the order in which that was first recorded: the round, how many of them were
        explored, and how many others.
        """
        people, outcomes, overrides = (
            table.c for table in (schema.people, schema.outcomes, schema.overrides)
        )
        state = outcomes.state.in_(("not_taken", "withdrawn"))
        refused = self._select(overrides.person, overrides.entry).where(~overrides.accepted)
        without_loan = self._select(outcomes.person, outcomes.entry).where(state)
        lost = without_loan.union_all(refused).subquery()
        entry = sa.func.min(lost.c.entry).label("entry")
        first = sa.select(lost.c.person, entry).group_by(lost.c.person).subquery()
        by_score = sa.func.sum(sa.cast(people.exploit, sa.Integer))
        rows = (
            self._select(people.round, sa.func.count() - by_score, by_score)
            .join(first, people.person == first.c.person)
            .where(people.accepted, people.round > 0)
            .group_by(first.c.entry, people.round)
            .order_by(first.c.entry, people.round)
        )
        with self._legible("the losses"):
            found = self._connection.execute(rows)
            return [(int(round), int(n), int(others)) for round, n, others in found]

    def sizes(self, kind: str) -> dict[int, int]:
        """Return the number of applicants of entries with outcomes, overrides or erasures."""
        tables = {"override": schema.overrides, "erasure": schema.erasures}
        table, link = tables.get(kind, schema.outcomes), schema.entries.c
        rows = (
            self._select(link.number, sa.func.count())
            .join(table, (table.c.program == link.program) & (table.c.entry == link.number))
            .where(link.kind == kind)
            .group_by(link.number)
            .order_by(link.number)
        )
        return {int(number): int(n) for number, n in self._connection.execute(rows)}

    def outcomes_of(self, person: int) -> list[tuple[int, str]]:
        """Return the outcomes of an applicant, each with its entry, the oldest first."""
        table = schema.outcomes.c
        rows = self._select(table.entry, table.state).where(table.person == person)
        with self._legible(f"the outcomes of applicant {person}"):
            found = [tuple(row) for row in self._connection.execute(rows.order_by(table.entry))]
            _check_states(state for _, state in found)
        return found

    def overrides_of(self, person: int) -> list[tuple[int, bool, str]]:
        """Return the overrides of an applicant, each with its entry, the oldest first."""
        table = schema.overrides.c
        rows = self._select(table.entry, table.accepted, table.reason)
        rows = rows.where(table.person == person).order_by(table.entry)
        return [tuple(row) for row in self._connection.execute(rows)]

    def newest_people(
        self, least: int, before: int | None, most: int
    ) -> tuple[RecordedRows, Standing]:
        """Return the applicants of the largest numbers, and their status, without the erased.

        Only numbers from ``least`` on count and, unless it is None, those less than ``before``.
        """
        table = schema.people.c
        rows = self._select(table.person).where(table.person >= least)
        rows = rows.where(table.application.is_not(None))
        if before is not None:
            rows = rows.where(table.person < before)
        with self._legible("the newest applicants"):
            persons = self._fetch(rows.order_by(table.person.desc()).limit(most))[0]
            names = [str(name) for name in self.names(np.sort(np.array(persons, np.int64)))]
            return self.recorded(names), self.standing(names)

    def draws(self) -> tuple[int, int, float]:
        """Count the applicants of all rounds, those accepted, and how many were to be expected."""
        table = schema.people.c
        accepted = sa.func.sum(sa.cast(table.accepted, sa.Integer))
        columns = sa.func.count(), accepted, sa.func.sum(table.propensity)
        counted = sa.select(*columns).where(table.program == self._program, table.round > 0)
        n, taken, expected = self._connection.execute(counted).one()
        return int(n), int(taken or 0), float(expected or 0.0)

    def numbered(self, number: int) -> Entry:
        """Return the entry of a number."""
        link = schema.entries.c
        row = self._connection.execute(self._select(*_ENTRY).where(link.number == number)).first()
        if row is None:
            raise LedgerError(f"program {self._name!r} has no entry {number}; verify the ledger.")
        return Entry(*row)

    def access_keys(self) -> list[tuple[Any, ...]]:
        """Return the keys of the program, revoked ones too: the columns of their table."""
        columns = schema.access_keys.c
        rows = self._select(*tuple(columns)[1:]).order_by(columns.made, columns.key)
        return [tuple(row) for row in self._connection.execute(rows)]

    def listed(self, first: int, end: int, *, groups: bool = False) -> ListedRows:
        """Return the applicants of one entry from a number to before another."""

        def newest(*columns: Any) -> list[Any]:
            table = columns[0].table.c
            rows = self._select(table.person, *columns).order_by(table.person, table.entry)
            rows = rows.where(table.person >= first, table.person < end)
            newest_of = {row[0]: tuple(row[1:]) for row in self._connection.execute(rows)}
            return [newest_of.get(person) for person in people["person"]]

        with self._legible(f"the rows of applicants {first} to {end - 1}"):
            people = self._people_columns(schema.people, first, end)
            values = self._people_columns(schema.group_values, first, end) if groups else None
            outcomes = newest(schema.outcomes.c.state, schema.outcomes.c.entry)
            _check_states(outcome[0] for outcome in outcomes if outcome)
            return ListedRows(
                _people(people, values),
                _decisions(people),
                newest(*(schema.overrides.c[name] for name in ("accepted", "reason", "entry"))),
                outcomes,
            )

    def _select(self, *columns: Any) -> sa.Select[Any]:
        return sa.select(*columns).where(columns[0].table.c.program == self._program)

    def _first(self, statement: sa.Select[Any]) -> Any:
        return self._connection.execute(statement.limit(1)).scalar()

    def _end(self) -> tuple[int, bytes, int]:
        """Return the last entry's number and hash, and the number of the next applicant."""
        last = self.last_entry()
        return (0, NOTHING, 0) if last is None else (last.number, last.hash, last.people_range.stop)

    @contextmanager
    def _legible(self, what: str) -> Iterator[None]:
        """Report rows that cannot be read as ``LedgerError``."""
        try:
            yield
        except LedgerError:
            raise
        except _ILLEGIBLE as error:
            raise LedgerError(
                f"{what} of program {self._name!r} cannot be read ({error}); verify the ledger."
            ) from error

    def _rows(self, entry: Entry, *, people: bool = True) -> StoredRows:
        """Return the rows of an entry; the newest are kept, to be checked and then used."""
        if self._newest_rows is not None and self._newest_rows[0] == entry.number:
            return self._newest_rows[1]
        if not people:
            return self._read_rows(entry.people_range[:0], entry.number)
        rows = self._read_rows(entry.people_range, entry.number)
        self._newest_rows = entry.number, rows
        return rows

    def _read_rows(self, people: range, number: int) -> StoredRows:
        return StoredRows(
            self._people_columns(schema.people, people.start, people.stop),
            self._people_columns(schema.group_values, people.start, people.stop),
            self._entry_columns(schema.outcomes, number),
            self._entry_columns(schema.overrides, number),
            self._entry_columns(schema.erasures, number),
        )

    def _people_columns(self, table: sa.Table, first: int, end: int) -> dict[str, Sequence[Any]]:
        person = table.c.person
        return (
            self._columns(table, sa.and_(person >= first, person < end))
            if end > first
            else (dict.fromkeys([column.name for column in table.c], ()))
        )

    def _entry_columns(self, table: sa.Table, number: int) -> dict[str, Sequence[Any]]:
        return self._columns(table, table.c.entry == number)

    def _columns(
        self, table: sa.Table, where: Any, most: int | None = None
    ) -> dict[str, Sequence[Any]]:
        columns = tuple(table.c)[1:]  # all but the program
        rows = self._select(*columns).where(where).order_by(table.c.person).limit(most)
        names = [column.name for column in columns]
        return dict(zip(names, self._fetch(rows), strict=True))

    def _fetch(self, statement: sa.Select[Any]) -> list[Sequence[Any]]:
        """Return the columns of a result as the driver gives them.

        SQLAlchemy would make an object of each row and convert each value.
        """
        result = self._connection.execute(statement)
        cursor: Any = result.cursor
        n_columns = len(statement.selected_columns)
        flat = list(chain.from_iterable(cursor.fetchall()))
        result.close()
        return [flat[at::n_columns] for at in range(n_columns)]

    def _where_in(
        self, statement: sa.Select[Any], column: sa.Column[Any], values: Sequence[Any]
    ) -> list[Sequence[Any]]:
        """Return the columns of rows in which a column has one of the values."""
        return self._fetch(statement.where(_is_one_of(self._connection, column, values)))

    def _standing_of(self, persons: Ints) -> Standing:
        """Return the status of applicants by number."""
        with self._legible("the status of applicants"):
            return self._standing(persons, *self._newest(persons, *_decided()))

    def _standing(
        self,
        persons: Ints,
        places: Ints,
        rounds: Sequence[Any],
        accepted: Sequence[Any],
        exploit: Sequence[Any],
        score: Sequence[Any],
    ) -> Standing:
        """Return the status of applicants, given decisions and each applicant's place in them."""
        overridden, to = self._newest(persons, schema.overrides.c.accepted)
        observed, states = self._newest(persons, schema.outcomes.c.state)
        _check_states(states)
        return Standing(
            persons,
            _taken_numbers(rounds, places),
            np.where(overridden < 0, _taken_flags(accepted, places), _taken_flags(to, overridden)),
            overridden >= 0,
            _taken(states, observed),
            _taken_flags(exploit, places),
            _none_as_nan(_taken(score, places)),
        )

    def _newest(self, persons: Ints, *columns: sa.Column[Any]) -> tuple[Any, ...]:
        """Return columns of the rows of applicants, and the place of each one's newest row."""
        table = columns[0].table.c
        rows = self._select(table.person, *columns)
        if "entry" in table:
            rows = rows.order_by(table.entry)
        wanted = persons[persons >= 0].tolist()
        numbers, *values = self._where_in(rows, table.person, wanted)
        return _last_places(persons, np.array(numbers, np.int64)), *values


class Writer(LedgerReader):
    """One program inside a transaction that excludes other writers."""

    def __init__(
        self, connection: sa.Connection, program: int, name: str, clock: Callable[[], datetime]
    ) -> None:
        super().__init__(connection, program, name)
        self._clock = clock
        self._last: Entry | None = None

    def last_entry(self) -> Entry | None:
        """Return the last entry, which nobody else can append meanwhile."""
        self._last = self._last or super().last_entry()
        return self._last

    def check_is_here(self) -> None:
        """Raise if the program was moved to another ledger."""
        last = self.last_entry()
        if last is not None and last.moved_to is not None:
            gone = moved(last.moved_to, last.at, last.by)
            raise LedgerError(f"program {self._name!r} {gone}")

    def add_rows(self, table: sa.Table, columns: Columns) -> None:
        """Add rows of another ledger's table as they are."""
        self._insert(table, columns)
        self._last = None

    def begin_round(
        self,
        round: int,
        header: dict[str, Any],
        facts: Facts,
        *,
        groups: bool,
        by: str,
        key: str | None = None,
    ) -> Entry:
        """Append the entry that opens a round, to which ``record_in_round`` adds applicants.

        Parameters
        ----------
        round
            Its number, which the header has too.
        header, facts
            What the entry says; it has no applicants.
        groups
            Whether the applicants will have group values.
        by, key
            As for ``append``.

        Raises
        ------
        InputError
            If a round is open.
        """
        opened = self.open_round()
        if opened is not None:
            raise InputError(f"round {opened.says['round']} is open; close it first.")
        if facts.people is not None:
            raise InputError("a round is opened without applicants; add them afterwards.")
        places = _Places(self._next_person(), 0, self._next_person(), groups)
        entry = self._append("round", header | {"round": round}, facts, by, key, places)
        row = {"round": round, "opened": entry.number, "reserved": places.first}
        self._connection.execute(schema.rounds.insert().values(program=self._program, **row))
        return entry

    def hold_round(self) -> Entry:
        """Return the entry that opened the open round, to which nobody can add applicants now.

        That lasts until the end of ``writing``; it raises ``LedgerError`` if no round is open.
        """
        opened = self.open_round()
        if opened is None:
            raise LedgerError(f"no round of program {self._name!r} is open; open one first.")
        if self._connection.dialect.name == "postgresql":
            lock = sa.func.pg_advisory_xact_lock(self._program, opened.says["round"])
            self._connection.execute(sa.select(lock))
        return opened

    def close_round(self, header: dict[str, Any], *, by: str, key: str | None = None) -> Entry:
        """Append the entry of kind ``batch`` that covers all applicants of the open round."""
        opened = self.hold_round()
        n, end, digests = 0, opened.people_range.start, []
        for rows in self.stored_people(opened.people_range.start):
            persons = rows.people["person"]
            n, end = n + len(persons), persons[-1] + 1
            digests.append(digests_of(rows).decisions or b"")
        places = _Places(opened.people_range.start, n, end, opened.says["rows"]["groups"])
        header = header | {"round": opened.says["round"], "opened": opened.number}
        made = RowDigests(b"".join(digests) or None)
        entry = self._append("batch", header, Facts(), by, key, places, made)
        rounds = schema.rounds.c
        closed = sa.update(schema.rounds).where(
            rounds.program == self._program, rounds.opened == opened.number
        )
        known = {"closed": entry.number, "reserved": places.first}  # as it was opened
        self._connection.execute(closed.values(known))
        return entry

    def record_in_round(self, opened: Entry, facts: Facts) -> list[bytes]:
        """Add applicants to the open round together with entries; return their receipts."""
        if opened != self.open_round():
            raise RoundClosedError(f"round {opened.says['round']} is closed; use another one.")
        rows = _rows_of_round(opened, facts)
        first = opened.people_range.start
        if self._connection.dialect.name == "sqlite":
            first = max(first, self.people_end())
        else:
            first = self._reserve(opened, len(rows.people["person"]))
        number_rows(rows, first)
        self._insert_people(rows)
        return split_digests(digests_of(rows).decisions)

    def _reserve(self, opened: Entry, n: int) -> int:
        """Return the first of n numbers of applicants, taken without making others wait."""
        with self._connection.engine.connect() as connection, connection.begin():
            values = (n, self._program, opened.number)
            return int(connection.exec_driver_sql(RESERVE, values).scalar_one()) - n

    def add_access_key(self, key: str, role: str, name: str, secret: bytes) -> None:
        """Add a key, of which only the hash of its secret is kept."""
        row = {"key": key, "role": role, "name": name, "secret": secret}
        made = self._clock().isoformat(timespec="seconds")
        new = schema.access_keys.insert().values(program=self._program, made=made, **row)
        self._connection.execute(new)

    def revoke_access_key(self, key: str) -> bool:
        """Revoke a key; return whether there was one that was not revoked."""
        columns = schema.access_keys.c
        same = (columns.program == self._program) & (columns.key == key)
        now = self._clock().isoformat(timespec="seconds")
        revoked = sa.update(schema.access_keys).where(same, columns.revoked.is_(None))
        return bool(self._connection.execute(revoked.values(revoked=now)).rowcount)

    def append(
        self, kind: str, header: dict[str, Any], facts: Facts, *, by: str, key: str | None = None
    ) -> Entry:
        """Append an entry with its rows; ``key`` None takes the entry's number.

        Raises
        ------
        InputError
            If the key or an application exists already, or if an outcome is for an applicant who
            is not accepted, or who has one already (or none yet, for a correction).
        """
        first, n = self._next_person(), 0 if facts.people is None else len(facts.people)
        if n and self.open_round() is not None:
            raise InputError("a round is open, and only it adds applicants; close it first.")
        has_groups = facts.people is not None and facts.people.groups is not None
        return self._append(kind, header, facts, by, key, _Places(first, n, first + n, has_groups))

    def _next_person(self) -> int:
        return self._end()[2]

    def _append(
        self,
        kind: str,
        header: dict[str, Any],
        facts: Facts,
        by: str,
        key: str | None,
        places: _Places,
        covered: RowDigests | None = None,
    ) -> Entry:
        """Append an entry; ``covered`` are digests of rows that are stored already."""
        self._newest_rows = None
        last, previous, _ = self._end()
        number = last + 1
        if kind != "move":
            self.check_is_here()
        self._check_entry(kind, key, by, facts)
        key = f"#{number}" if key is None else key
        if facts.outcomes is not None and kind != "history":
            self._check_outcomes(kind, facts.outcomes)
        rows = _rows_to_store(places.first, _in_order(facts))
        self._insert_people(rows)
        digests = digests_of(rows) if covered is None else covered
        payload = None if facts.payload is None else sha256(facts.payload).digest()
        content = content_hash(digests, payload)
        at = self._clock().isoformat(timespec="microseconds")
        self._check_clock(at)
        line = (kind, key, at, by, to_json(header | {"rows": vars(places)}))
        if len(line[-1]) > LONGEST_JSON:
            raise InputError(
                f"an entry's header has at most {LONGEST_JSON:,} characters, got "
                f"{len(line[-1]):,}; name fewer applicants at once."
            )
        own_hash = entry_hash(self._name, number, line, content, previous)
        entry = Entry(number, *line, content, previous, own_hash)
        self._connection.execute(
            schema.entries.insert().values(program=self._program, **vars(entry))
        )
        for table, columns in (
            (schema.outcomes, rows.outcomes),
            (schema.overrides, rows.overrides),
            (schema.erasures, rows.erasures),
        ):
            self._insert(table, {"entry": [number] * len(columns["person"]), **columns})
        own = {"program": self._program, "entry": number}
        if digests != RowDigests():
            self._connection.execute(schema.row_digests.insert().values(own | vars(digests)))
        if payload is not None:
            new = {"content": facts.payload, "digest": payload}
            self._connection.execute(schema.payloads.insert().values(own | new))
        if facts.erased is not None:
            self._erase(facts.erased)
        if kind == "snapshot":
            self._drop_states(self.kept_states())
        self._last = entry
        return entry

    def _check_clock(self, at: str) -> None:
        """Warn, inside the transaction, if the clock contradicts the last entry."""
        last = self.last_entry()
        if last is None:
            return
        before = last.at
        with self._legible("the times of entries"):
            pause = datetime.fromisoformat(at) - datetime.fromisoformat(before)
        if not -_CLOCKS_DIFFER <= pause <= LONGEST_PAUSE:
            warnings.warn(
                f"the clock says {at[:16]} and the last entry {before[:16]} (UTC), one is wrong; "
                f"set the clock. No retention period ends by such a time.",
                LedgerWarning,
                stacklevel=4,
            )

    def _check_entry(self, kind: str, key: str | None, by: str, facts: Facts) -> None:
        if (facts.people is None) != (facts.decisions is None):
            raise InputError("applicants are recorded with the decisions on them; give both.")
        _check_lengths(facts)
        for rows in (facts.people, facts.erased):
            if rows is not None and not len(rows):
                raise InputError("an entry with applicants needs at least one, got none.")
        if kind not in KINDS:
            raise InputError(f"an entry is one of {', '.join(KINDS)}, got {kind!r}.")
        check_name("the name of the author", by, longest=None)
        if key is None:
            return
        check_name("a key", key)
        if self.entry(kind, key) is not None:
            raise InputError(
                f"the program {self._name!r} has a {kind} {key!r} already; choose another key."
            )

    def _check_outcomes(self, kind: str, outcomes: OutcomeRows) -> None:
        """Refuse outcomes of rejected applicants, and a second outcome that is no correction."""
        _check_once(outcomes.persons)
        unknown = sorted(set(outcomes.states) - set(STATES))
        if unknown:
            raise InputError(f"an outcome is {' or '.join(STATES)}, got {unknown[0]!r}.")
        standing = self._standing_of(outcomes.persons)
        wrong = np.flatnonzero(~standing.accepted)
        if wrong.size:
            raise UnknownIdError(
                f"{wrong.size} of {standing.persons.size} applicants are not accepted, first "
                f"number {standing.persons[wrong[0]]}; remove them."
            )
        observed = np.array([state is not None for state in standing.states], np.bool_)
        wrong = np.flatnonzero(~observed if kind == "correction" else observed)
        if wrong.size:
            has = "no outcome to correct" if kind == "correction" else "an outcome already"
            raise InputError(f"applicant number {standing.persons[wrong[0]]} has {has}.")

    def _insert_people(self, rows: StoredRows) -> None:
        driver: Any = self._connection.dialect
        names = rows.people["application"]
        try:
            # PostgreSQL ends a transaction with its first error, so names are looked up outside.
            is_sqlite = self._connection.dialect.name == "sqlite"
            with nullcontext() if is_sqlite else self._connection.begin_nested():
                self._insert(schema.people, rows.people)
                self._insert(schema.group_values, rows.group_values)
        except driver.loaded_dbapi.IntegrityError as error:
            name = _first_duplicate(names)
            where = "twice in this batch"
            if name is None:
                name, where = (
                    self._first_known(names, rows.people["person"]),
                    "in the ledger already",
                )
            who = "an applicant of this batch" if name is None else f"the application {name!r}"
            raise InputError(
                f"{who} is {where}; an applicant who applies again needs a new id."
            ) from error

    def _first_known(self, names: Sequence[str], persons: Sequence[int]) -> str | None:
        """Return the first of the names of new applicants that a recorded one has."""
        columns = schema.people.c
        ours = columns.person.between(persons[0], persons[-1])  # SQLite may have inserted some
        before = self._select(columns.application).where(~ours)
        known = {*self._where_in(before, columns.application, names)[0]}
        return next((name for name in names if name in known), None)

    def _insert(self, table: sa.Table, columns: Mapping[str, Sequence[Any]]) -> None:
        """Insert rows in bulk, past SQLAlchemy."""
        insert_rows(self._connection.connection.driver_connection, table, self._program, columns)

    def _erase(self, persons: Ints) -> None:
        for table in (schema.people, schema.group_values):
            change = sa.update(table).where(
                table.c.program == self._program,
                _is_one_of(self._connection, table.c.person, persons.tolist()),
            )
            self._connection.execute(change.values(dict.fromkeys(schema.PERSONAL[table])))
        self._drop_states(set())

    def _drop_states(self, kept: set[int]) -> None:
        """Delete the content of all states but some."""
        link, columns = schema.entries.c, schema.payloads.c
        states = self._select(link.number).where(link.kind == "snapshot", link.number.not_in(kept))
        there = sa.update(schema.payloads).where(
            columns.program == self._program,
            columns.entry.in_(states),
            columns.content.is_not(None),
        )
        self._connection.execute(there.values(content=None))


# Cell, groups, override, state.
_Key = tuple[int, str | None, int, int]


class _HeadCounter:
    """Counts a program's applicants in the database.

    Each statement counts from one table. Every applicant is first counted without override and
    outcome; the other tables then move applicants from one kind to another.
    """

    def __init__(self, connection: sa.Connection, program: int, groups: bool) -> None:
        self._connection, self._program, self._groups = connection, program, groups

    def count(self) -> HeadCounts:
        """Return how many applicants there are of each kind."""
        if self._connection.dialect.name == "postgresql":
            # For a table that it has not analysed yet it would look up each applicant in turn.
            self._connection.exec_driver_sql("SET LOCAL enable_nestloop = off")
        counts = self._count()
        if self._connection.dialect.name == "postgresql":
            self._connection.exec_driver_sql("SET LOCAL enable_nestloop = on")
        return _head_counts({key: n for key, n in counts.items() if n})

    def _count(self) -> Counter[_Key]:
        counts: Counter[_Key] = Counter()
        for cell, groups, n in self._counted(schema.people):
            counts[cell, groups, _NONE, _NONE] += n
        for sign, rows in ((1, self._outcomes()), (-1, self._replaced())):
            for cell, groups, state, n in rows:
                counts[cell, groups, _NONE, STATES.index(state)] += sign * n
                counts[cell, groups, _NONE, _NONE] -= sign * n
        for cell, groups, to, state, n in self._overridden():
            place = _NONE if state is None else STATES.index(state)
            counts[cell, groups, int(to), place] += n
            counts[cell, groups, _NONE, place] -= n
        return counts

    def _counted(self, source: sa.FromClause, *more: sa.ColumnElement[Any]) -> Iterator[Any]:
        """Count the rows of a join with the table of applicants, by kind and further columns."""
        people, values = schema.people.c, schema.group_values.c
        value: sa.ColumnElement[Any] = sa.null().label("value")
        if self._groups:
            value = values.value
            source = source.outerjoin(schema.group_values, _same_person(values))
        # Sorting by one number is quicker than by three columns.
        accepted, exploit = (sa.cast(one, sa.Integer) for one in (people.accepted, people.exploit))
        cell = (people.round * 4 + accepted * 2 + exploit).label("cell")
        sorted_by = [sa.literal_column("cell"), *([value] if self._groups else []), *more]
        rows = sa.select(cell, value, *more, sa.func.count()).select_from(source)
        rows = rows.where(people.program == self._program).group_by(*sorted_by)
        yield from self._connection.execute(rows)

    def _outcomes(self) -> Iterator[Any]:
        """Count all outcomes, including those that were corrected later."""
        source = schema.outcomes.join(schema.people, _same_person(schema.outcomes.c))
        return self._counted(source, schema.outcomes.c.state)

    def _replaced(self) -> Iterator[Any]:
        """Count the outcomes that a correction replaced."""
        link, earlier = schema.entries.c, schema.outcomes.c
        later = schema.outcomes.alias("later")
        before = (
            sa.select(earlier.program, earlier.entry, earlier.person, earlier.state)
            .distinct()
            .select_from(schema.entries)
            .join(later, (later.c.program == link.program) & (later.c.entry == link.number))
            .join(
                schema.outcomes,
                (earlier.program == later.c.program)
                & (earlier.person == later.c.person)
                & (earlier.entry < later.c.entry),
            )
            .where(link.program == self._program, link.kind == "correction")
            .subquery()
        )
        source = before.join(schema.people, _same_person(before.c))
        return self._counted(source, before.c.state)

    def _overridden(self) -> Iterator[Any]:
        """Count overridden applicants by their newest override and their newest outcome."""
        overrides, outcomes = schema.overrides.c, schema.outcomes.c
        newest = _same_person(overrides) & (overrides.entry == _newest_entry(schema.overrides))
        observed = _same_person(outcomes) & (outcomes.entry == _newest_entry(schema.outcomes))
        source = schema.overrides.join(schema.people, newest).outerjoin(schema.outcomes, observed)
        return self._counted(source, overrides.accepted, outcomes.state)


def _same_person(columns: Any) -> sa.ColumnElement[bool]:
    people = schema.people.c
    return sa.and_(columns.program == people.program, columns.person == people.person)


def _newest_entry(table: sa.Table) -> sa.ScalarSelect[Any]:
    """Return the number of an applicant's last entry in a table."""
    columns = table.alias().c
    newest = sa.select(sa.func.max(columns.entry)).where(_same_person(columns))
    return newest.correlate(schema.people).scalar_subquery()


def _head_counts(counts: dict[_Key, int]) -> HeadCounts:
    order = sorted(counts, key=lambda key: (key[0], key[1] or "", key[1] is None, *key[2:]))
    cell, override, state = (np.array([key[at] for key in order], np.int64) for at in (0, 2, 3))
    return HeadCounts(
        round=cell // 4,
        accepted=(cell & 2).astype(np.bool_),
        exploit=(cell & 1).astype(np.bool_),
        override=override,
        state=state,
        groups=[key[1] for key in order],
        n=np.array([counts[key] for key in order], np.int64),
    )


@dataclass(frozen=True)
class _Places:
    """Where the applicants of an entry are: ``n`` numbers from ``first`` to before ``end``."""

    first: int
    n: int
    end: int
    groups: bool


def _rows_of_round(opened: Entry, facts: Facts) -> StoredRows:
    """Return the rows of applicants to be added to a round; they have no numbers yet."""
    people, decided = facts.people, facts.decisions
    if people is None or decided is None or not len(people):
        raise InputError("a round takes applicants with the decisions on them; give both.")
    others = (facts.outcomes, facts.overrides, facts.erased, facts.payload)
    if any(part is not None for part in others):
        raise InputError("a round takes only applicants and decisions; append an entry.")
    _check_lengths(facts)
    round, has_groups = opened.says["round"], opened.says["rows"]["groups"]
    if decided.round != round or (people.groups is not None) != has_groups:
        raise InputError(
            f"round {round} takes its own decisions {'with' if has_groups else 'without'} groups, "
            f"got round {decided.round}."
        )
    return _rows_to_store(0, facts)


def _only_people(people: Columns, group_values: Columns) -> StoredRows:
    nothing = dict.fromkeys(("person", "state", "accepted", "reason"), ())
    return StoredRows(people, group_values, nothing, nothing, nothing)


def _rows_to_store(first: int, facts: Facts) -> StoredRows:
    """Return the rows of an entry as a database keeps them, with new salts."""
    outcomes, overrides, erased = facts.outcomes, facts.overrides, facts.erased
    if overrides is not None:
        check_text("a reason", overrides.reasons)
    people, group_values = _people_to_store(first, facts)
    return StoredRows(
        people,
        group_values,
        {
            "person": [] if outcomes is None else outcomes.persons.tolist(),
            "state": [] if outcomes is None else outcomes.states,
        },
        {
            "person": [] if overrides is None else overrides.persons.tolist(),
            "accepted": [] if overrides is None else overrides.accepted.tolist(),
            "reason": [] if overrides is None else overrides.reasons,
        },
        {"person": [] if erased is None else erased.tolist()},
    )


def _people_to_store(first: int, facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    people, decided = facts.people, facts.decisions
    if people is None or decided is None:
        return (
            dict.fromkeys([column.name for column in tuple(schema.people.c)[1:]], ()),
            dict.fromkeys([column.name for column in tuple(schema.group_values.c)[1:]], ()),
        )
    n = len(people)
    nothing = [None] * n
    check_text("an application", people.applications, LONGEST)
    check_text("a feature", [text for text in people.texts if text is not None], LONGEST_JSON)
    persons = list(range(first, first + n))
    own: dict[str, Any] = {
        "person": persons,
        "application": people.applications,
        "numbers": people.numbers,
        "texts": people.texts,
        "reasons": nothing if people.reasons is None else people.reasons,
        "person_key": nothing if people.person_keys is None else list(people.person_keys),
        "salt": salts(n),
    }
    groups: dict[str, Any] = {"person": [], "value": [], "salt": []}
    if people.groups is not None:
        check_text("a group value", [*set(people.groups)])
        groups = {"person": [*persons], "value": people.groups, "salt": salts(n)}
    decision = {
        "personal": personal_digests(own, groups),
        "round": [int(decided.round)] * n,
        "accepted": decided.accepted.tolist(),
        "exploit": decided.exploit.tolist(),
        "score": _nan_as_none(decided.score),
        "propensity": _nan_as_none(decided.propensity),
        "threshold": nothing if decided.threshold is None else _nan_as_none(decided.threshold),
        "incumbent": nothing if decided.incumbent is None else decided.incumbent.tolist(),
        "barred": nothing if decided.barred is None else decided.barred.tolist(),
    }
    return own | decision, groups


def _people(people: Mapping[str, Sequence[Any]], groups: Mapping[str, Any] | None) -> PeopleRows:
    _check_type("an application", str, people["application"])
    _check_type("an applicant's numbers", bytes, people["numbers"])
    if len({len(numbers) for numbers in people["numbers"] if numbers is not None}) > 1:
        raise ValueError("applicants have different numbers of features")
    _check_lists("an applicant's texts", people["texts"])
    if groups is not None:
        _check_lists("a group value", set(groups["value"]))
    _check_type("a person's key", int, people["person_key"])
    has_keys = any(key is not None for key in people["person_key"])
    has_reasons = any(reasons is not None for reasons in people["reasons"])
    return PeopleRows(
        people["application"],
        people["numbers"],
        people["texts"],
        None if groups is None else groups["value"],
        people["reasons"] if has_reasons else None,
        people["person_key"] if has_keys else None,
        np.array(people["person"], np.int64),
    )


def _decisions(people: Mapping[str, Sequence[Any]]) -> DecisionRows:
    rounds = set(people["round"])
    threshold = _none_as_nan(people["threshold"])
    return DecisionRows(
        rounds.pop() if len(rounds) == 1 else -1,  # damaged rows: ``verify`` names them
        _flags(people["accepted"]),
        _flags(people["exploit"]),
        _none_as_nan(people["score"]),
        _none_as_nan(people["propensity"]),
        None if np.isnan(threshold).all() else threshold,
        _flags_or_none(people["incumbent"], mixed=len(rounds) > 1),
        _flags_or_none(people["barred"], mixed=len(rounds) > 1),
    )


def _is_one_of(
    connection: sa.Connection, column: sa.Column[Any], values: Sequence[Any]
) -> sa.ColumnElement[bool]:
    """Return the condition that a column has one of the values, however many there are."""
    if connection.dialect.name == "sqlite":
        listed: Any = sa.literal(json.dumps(values), sa.Text)
        return column.in_(sa.select(sa.func.json_each(listed).table_valued("value").c.value))
    kind = sa.Text() if isinstance(column.type, sa.Text) else sa.BigInteger()
    return column == sa.any_(sa.literal(list(values), postgresql.ARRAY(kind)))


def _any_text(raw: bytes) -> str:
    """Return text that SQLite holds, also if its bytes are no text."""
    return raw.decode("utf-8", "surrogateescape")


def _decided() -> tuple[sa.Column[Any], ...]:
    """Return the columns of a decision that a ``Standing`` has."""
    people = schema.people.c
    return people.round, people.accepted, people.exploit, people.score


def _last_places(wanted: Ints, among: Ints) -> Ints:
    """Return where each number comes last among others, −1 if it does not.

    Examples
    --------
    >>> _last_places(np.array([7, 5, 6]), np.array([5, 7, 9, 5])).tolist()
    [1, 3, -1]
    """
    if not among.size:
        return np.full(wanted.shape, -1, np.int64)
    order = np.argsort(among, kind="stable")
    places = order[np.searchsorted(among, wanted, side="right", sorter=order) - 1]
    return np.where(among[places] == wanted, places, -1)


def _taken_numbers(values: Sequence[Any], places: Ints) -> Ints:
    return np.append(np.array(values, np.int64), -1)[places]


def _taken_flags(values: Sequence[Any], places: Ints) -> Any:
    return np.append(_flags(values), False)[places]


def _taken(values: Sequence[Any], places: Ints) -> list[Any]:
    padded = [*values, None]
    return [padded[place] for place in places.tolist()]


def _nan_as_none(values: Floats) -> list[float | None]:
    """Return numbers for the database: SQLite has neither NaN nor −0."""
    plain = (values.astype(np.float64) + 0.0).tolist()
    return [None if value != value else value for value in plain]


def _none_as_nan(values: Sequence[float | None]) -> Floats:
    """Return numbers, with NaN for None; a NaN in the database raises ValueError."""
    numbers = np.array(values, dtype=np.float64)
    if np.isnan(numbers).sum() > values.count(None):
        raise ValueError("a number is NaN")
    return numbers


def _flags(values: Sequence[Any]) -> Bools:
    """Return truth values, which SQLite keeps as 0 and 1; other values raise ValueError."""
    strange = set(values) - {0, 1}
    if strange:
        raise ValueError(f"a truth value is 0 or 1, got {max(strange, key=str)!r}")
    flags: NDArray[np.bool_] = np.array(values, np.bool_)
    return flags


def _flags_or_none(values: Sequence[Any], *, mixed: bool) -> Any:
    """Return truth values; None if there are none, and ``mixed`` with None for those not given."""
    if set(values) == {None}:
        return None
    if not mixed or None not in values:
        return _flags(values)
    flags = np.full(len(values), None, np.object_)
    given = [at for at, value in enumerate(values) if value is not None]
    flags[given] = _flags([values[at] for at in given])
    return flags


def _check_type(what: str, kind: type, values: Iterable[Any]) -> None:
    strange = set(map(type, values)) - {kind, type(None)}
    if strange:
        raise TypeError(f"{what} is of type {strange.pop().__name__}")


def _check_states(states: Iterable[Any]) -> None:
    strange = set(states) - {*STATES}
    if strange:
        raise ValueError(f"an outcome is {strange.pop()!r}")


def _check_lists(what: str, texts: Iterable[Any]) -> None:
    """Raise unless every text is a JSON list, all of one length."""
    present = [text for text in texts if text is not None]
    _check_type(what, str, present)
    if max(map(len, present), default=0) > LONGEST_JSON:
        raise ValueError(f"{what} has more than {LONGEST_JSON:,} characters")
    try:
        lists = json.loads(f"[{','.join(present)}]")
        fit = len(lists) == len(present) and {type(value) for value in lists} <= {list}
    except ValueError:
        fit = False
    if not fit or len({len(values) for values in lists}) > 1:
        raise ValueError(f"{what} is no JSON list of as many values as others have")


def _check_lengths(facts: Facts) -> None:
    """Raise unless all columns of a kind of rows have one length."""
    for rows in ([facts.people, facts.decisions], [facts.outcomes], [facts.overrides]):
        columns = {name: values for kind in rows if kind for name, values in vars(kind).items()}
        lengths = {
            name: len(values) for name, values in columns.items() if hasattr(values, "__len__")
        }
        if len({*lengths.values()}) > 1:
            listed = ", ".join(f"{name} {n}" for name, n in lengths.items())
            raise InputError(f"columns must have one length, got {listed}; give one value per row.")


def _check_once(persons: Ints) -> None:
    if np.unique(persons).size < persons.size:
        raise InputError("an applicant is named twice in one entry; name each one once.")


def _in_order(facts: Facts) -> Facts:
    """Return the rows in the order in which they will be read: by applicant."""
    outcomes, overrides, erased = facts.outcomes, facts.overrides, facts.erased
    if outcomes is not None:
        order = np.argsort(outcomes.persons)
        states = [outcomes.states[at] for at in order]
        outcomes = OutcomeRows(outcomes.persons[order], states)
    if overrides is not None:
        _check_once(overrides.persons)
        order = np.argsort(overrides.persons)
        reasons = [overrides.reasons[at] for at in order]
        overrides = OverrideRows(overrides.persons[order], overrides.accepted[order], reasons)
    if erased is not None:
        _check_once(erased)
        erased = np.sort(erased)
    return replace(facts, outcomes=outcomes, overrides=overrides, erased=erased)


def _first_duplicate(names: Sequence[str]) -> str | None:
    return next((name for name, n in Counter(names).items() if n > 1), None)


def _program_names(connection: sa.Connection) -> list[str]:
    # SQLite may hold values that are not text.
    return sorted(connection.execute(sa.select(schema.programs.c.name)).scalars(), key=str)


def _now() -> datetime:
    return datetime.now(UTC)
