"""Counting a program's people in the database, however many they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import sqlalchemy as sa

from secondlook.ledger import schema
from secondlook.ledger.base import STATES, HeadCounts

__all__ = ["Counting", "sizes"]

_NONE = -1
_PEOPLE, _TOLD, _CHANGED = schema.people.c, schema.outcomes.c, schema.overrides.c

# Sorting by one number is quicker than by three columns.
_CELL = (
    _PEOPLE.round * 4
    + sa.cast(_PEOPLE.accepted, sa.Integer) * 2
    + sa.cast(_PEOPLE.exploit, sa.Integer)
)

# Cell, groups, override, state.
_Key = tuple[int, str | None, int, int]


class Counting:
    """Counts a program's people; group values are read only if they are wanted."""

    def __init__(self, connection: sa.Connection, program: int, groups: bool) -> None:
        self._connection, self._program, self._groups = connection, program, groups

    def head_counts(self) -> HeadCounts:
        """Return how many people there are of each kind.

        Each statement counts from one table. Everybody is taken first for a person without override
        and outcome; what the other tables say then moves people from one kind to another.
        """
        with self._one_pass_each():
            return _columns({key: n for key, n in self._count().items() if n})

    @contextmanager
    def _one_pass_each(self) -> Iterator[None]:
        """Keep PostgreSQL from looking up each person, as it would in a table new to it."""
        if self._connection.dialect.name == "sqlite":
            yield
            return
        self._connection.exec_driver_sql("SET LOCAL enable_nestloop = off")
        yield
        self._connection.exec_driver_sql("SET LOCAL enable_nestloop = on")

    def _count(self) -> Counter[_Key]:
        found: Counter[_Key] = Counter()
        for cell, groups, n in self._counted(schema.people):
            found[cell, groups, _NONE, _NONE] += n
        for sign, rows in ((1, self._outcomes()), (-1, self._replaced())):
            for cell, groups, state, n in rows:
                found[cell, groups, _NONE, STATES.index(state)] += sign * n
                found[cell, groups, _NONE, _NONE] -= sign * n
        for cell, groups, to, state, n in self._overridden():
            place = _NONE if state is None else STATES.index(state)
            found[cell, groups, int(to), place] += n
            found[cell, groups, _NONE, place] -= n
        return found

    def _counted(self, source: sa.FromClause, *more: sa.ColumnElement[Any]) -> Iterator[Any]:
        """Count the rows of a join that has people in it, by kind and what else is asked."""
        values = schema.group_values.c
        value: sa.ColumnElement[Any] = sa.null().label("value")
        if self._groups:
            value = values.value
            source = source.outerjoin(schema.group_values, _same_person(values))
        by = [_CELL.label("cell"), value, *more]
        sorted_by = [sa.literal_column("cell"), *([value] if self._groups else []), *more]
        rows = sa.select(*by, sa.func.count()).select_from(source).group_by(*sorted_by)
        yield from self._connection.execute(rows.where(_PEOPLE.program == self._program))

    def _outcomes(self) -> Iterator[Any]:
        """Count all outcomes, those included that were corrected later."""
        source = schema.outcomes.join(schema.people, _same_person(_TOLD))
        return self._counted(source, _TOLD.state)

    def _replaced(self) -> Iterator[Any]:
        """Count the outcomes that a correction replaced: few, and found from the corrections."""
        link, later = schema.entries.c, schema.outcomes.alias("later")
        before = (
            sa.select(_TOLD.program, _TOLD.entry, _TOLD.person, _TOLD.state)
            .distinct()
            .select_from(schema.entries)
            .join(later, (later.c.program == link.program) & (later.c.entry == link.number))
            .join(
                schema.outcomes,
                (_TOLD.program == later.c.program)
                & (_TOLD.person == later.c.person)
                & (_TOLD.entry < later.c.entry),
            )
            .where(link.program == self._program, link.kind == "correction")
            .subquery()
        )
        source = before.join(schema.people, _same_person(before.c))
        return self._counted(source, before.c.state)

    def _overridden(self) -> Iterator[Any]:
        """Count people with an override by what the newest says, and by their newest outcome."""
        newest = _same_person(_CHANGED) & (_CHANGED.entry == _newest(schema.overrides))
        told = _same_person(_TOLD) & (_TOLD.entry == _newest(schema.outcomes))
        source = schema.overrides.join(schema.people, newest).outerjoin(schema.outcomes, told)
        return self._counted(source, _CHANGED.accepted, _TOLD.state)


def _same_person(one: Any) -> sa.ColumnElement[bool]:
    return sa.and_(one.program == _PEOPLE.program, one.person == _PEOPLE.person)


def _newest(table: sa.Table) -> sa.ScalarSelect[Any]:
    """Return the number of a person's last entry in a table."""
    one = table.alias().c
    return (
        sa.select(sa.func.max(one.entry))
        .where(_same_person(one))
        .correlate(schema.people)
        .scalar_subquery()
    )


def _columns(found: dict[_Key, int]) -> HeadCounts:
    order = sorted(found, key=lambda key: (key[0], key[1] or "", key[1] is None, *key[2:]))
    cell, override, state = (np.array([key[at] for key in order], np.int64) for at in (0, 2, 3))
    return HeadCounts(
        round=cell // 4,
        accepted=(cell & 2).astype(np.bool_),
        exploit=(cell & 1).astype(np.bool_),
        override=override,
        state=state,
        groups=[key[1] for key in order],
        n=np.array([found[key] for key in order], np.int64),
    )


def sizes(connection: sa.Connection, program: int, kind: str) -> dict[int, int]:
    """Return how many rows each entry of a kind has, by its number."""
    table = {"override": schema.overrides, "erasure": schema.erasures}.get(kind, schema.outcomes)
    link, one = schema.entries.c, table.c
    rows = (
        sa.select(link.number, sa.func.count())
        .join(table, (one.program == link.program) & (one.entry == link.number))
        .where(link.program == program, link.kind == kind)
        .group_by(link.number)
        .order_by(link.number)
    )
    return {int(number): int(n) for number, n in connection.execute(rows)}
