"""Looking people up, by name or number, and how things stand for them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import sqlalchemy as sa

from secondlook.ledger import schema
from secondlook.ledger.base import STATES, Ints, Standing
from secondlook.ledger.bulk import as_flags, columns_of, where_in
from secondlook.people.ids import is_text

__all__ = ["Lookup", "check_kind", "check_states"]

_NEAR = 4  # times as many people, among whom to read everybody is quicker than to look some up


class Lookup:
    """People of one program.

    Parameters
    ----------
    connection, program
        Where to look, and for whose people. What a database holds that nobody wrote there raises
        ValueError, TypeError or OverflowError.
    """

    def __init__(self, connection: sa.Connection, program: int) -> None:
        self._connection, self._program = connection, program
        self._last: Standing | None = None

    def forget(self) -> None:
        """Forget how things stood, since something was told."""
        self._last = None

    def by_name(self, applications: Sequence[str]) -> Standing:
        """Return how things stand for applications."""
        names: Sequence[str | None] = applications
        if not is_text("".join(applications)):
            names = [name if is_text(name) else None for name in applications]
        is_sqlite = self._connection.dialect.name == "sqlite"
        rows, found, *decided = (self._joined if is_sqlite else self._matched)(names)
        standing = self._stand(_numbers(found, rows), rows, *decided)
        self._last = Standing(*(one.copy() for one in vars(standing).values()))  # nobody else's
        return standing

    def by_number(self, persons: Ints) -> Standing:
        """Return how things stand for people; those asked for by name just now are remembered."""
        last, one = self._last, schema.people.c
        if last is not None:
            rows = _last_places(persons, last.persons)
            if (rows >= 0).all():
                decided = last.round[rows], last.accepted[rows], last.overridden[rows]
                return Standing(persons, *decided, _taken(last.states, rows))
        return self._stand(persons, *self._newest(persons, one.round, one.accepted))

    def names(self, persons: Ints) -> list[str | None]:
        """Return the applications of people, None for the erased."""
        rows, names = self._newest(persons, schema.people.c.application)
        check_kind("an application", str, names)
        return _taken(names, rows)

    def overridden_by(self, persons: Ints) -> Ints:
        """Return which entry is the newest override of each person, −1 where there is none."""
        rows, entries = self._newest(persons, schema.overrides.c.entry)
        return _numbers(entries, rows)

    def _joined(self, names: Sequence[str | None]) -> tuple[Any, ...]:
        """Return in which row each name is, and columns: number, round, decision.

        An outer join goes from the names to the people, whatever SQLite knows of the tables, and
        takes half as long as to look for people whose name is one of them.
        """
        one = schema.people.c
        listed = sa.literal(json.dumps(names), sa.Text)
        each = sa.func.json_each(listed).table_valued("key", "value")
        same = sa.and_(one.program == self._program, one.application == each.c.value)
        nobody = {one.person: -1, one.round: -1, one.accepted: False}
        columns = [sa.func.coalesce(column, other) for column, other in nobody.items()]
        rows = sa.select(each.c.key, *columns).select_from(each.outerjoin(schema.people, same))
        keys, *found = columns_of(self._connection, rows, 1 + len(columns))
        return np.argsort(np.array(keys, np.int64)), *found

    def _matched(self, names: Sequence[str | None]) -> tuple[Any, ...]:
        """Return the same where an index is searched for many names at once."""
        one = schema.people.c
        rows = self._select(one.application, one.person, one.round, one.accepted)
        known, *found = where_in(self._connection, rows, one.application, names)
        place = dict(zip(known, range(len(known)), strict=True))
        return np.fromiter(map(place.get, names, repeat(-1)), np.int64, len(names)), *found

    def _stand(
        self, persons: Ints, rows: Ints, rounds: Sequence[Any], accepted: Sequence[Any]
    ) -> Standing:
        """Return how things stand, given what was decided, and in which row for each person."""
        by_hand, to = self._newest(persons, schema.overrides.c.accepted)
        told, states = self._newest(persons, schema.outcomes.c.state)
        check_states(states)
        return Standing(
            persons,
            _numbers(rounds, rows),
            np.where(by_hand < 0, _flags(accepted, rows), _flags(to, by_hand)),
            by_hand >= 0,
            _taken(states, told),
        )

    def _select(self, *columns: Any) -> sa.Select[Any]:
        return sa.select(*columns).where(columns[0].table.c.program == self._program)

    def _newest(self, persons: Ints, *columns: sa.Column[Any]) -> tuple[Any, ...]:
        """Return in which row the newest is for each person, −1 if there is none, and columns."""
        table, known = columns[0].table.c, np.sort(persons[persons >= 0])
        rows = self._select(table.person, *columns)
        if "entry" in table:
            rows = rows.order_by(table.entry)
        if known.size and known[-1] - known[0] < _NEAR * known.size:
            rows = rows.where(table.person.between(int(known[0]), int(known[-1])))
            who, *found = columns_of(self._connection, rows, 1 + len(columns))
        else:
            who, *found = where_in(self._connection, rows, table.person, known.tolist())
        return _last_places(persons, np.array(who, np.int64)), *found


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
    rows = order[np.searchsorted(among, wanted, side="right", sorter=order) - 1]
    return np.where(among[rows] == wanted, rows, -1)


def _numbers(values: Sequence[Any], rows: Ints) -> Ints:
    return np.append(np.array(values, np.int64), -1)[rows]


def _flags(values: Sequence[Any], rows: Ints) -> Any:
    return np.append(as_flags(values), False)[rows]


def _taken(values: Sequence[Any], rows: Ints) -> list[Any]:
    if not values:
        return [None] * rows.size
    padded = [*values, None]
    return [padded[row] for row in rows.tolist()]


def check_kind(what: str, kind: type, values: Iterable[Any]) -> None:
    """Raise TypeError if something is neither of a kind nor None."""
    strange = set(map(type, values)) - {kind, type(None)}
    if strange:
        raise TypeError(f"{what} is of type {strange.pop().__name__}")


def check_states(states: Iterable[Any]) -> None:
    """Raise ValueError if an outcome is none."""
    strange = set(states) - {*STATES}
    if strange:
        raise ValueError(f"an outcome is {strange.pop()!r}")
