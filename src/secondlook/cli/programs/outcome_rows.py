"""Outcomes as tables, as they were told: what stood there before, who told it and when."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from secondlook.cli.programs.decision_rows import ids_of
from secondlook.ledger.base import STATES, Reader
from secondlook.ledger.replay import Shape

__all__ = ["outcome_tables"]

_KINDS = {
    "id": pa.string(),
    "erased": pa.bool_(),
    "outcome": pa.string(),
    "before": pa.string(),
    "at": pa.string(),
    "by": pa.string(),
    "entry": pa.int64(),
}
_TELLING = ("history", "outcomes", "correction")


def outcome_tables(reader: Reader) -> Iterator[pa.Table]:
    """Yield tables of outcomes in the order in which they were told, but for the history's own.

    A correction has the outcome that it replaced in ``before``, which is empty otherwise. The first
    table has the columns and no rows.
    """
    shape = Shape.read(next(reader.entries(kind="program")).says)
    kinds = _KINDS | {"id": pa.int64() if shape.id_kind == "i" else pa.string()}
    schema = pa.schema(list(kinds.items()))
    yield schema.empty_table()
    names, stands = np.array([*STATES, None], object), np.empty(0, np.int8)
    for entry in reader.entries():
        told = reader.facts(entry).outcomes if entry.kind in _TELLING else None
        if told is None:
            continue
        persons, n = told.persons, len(told.persons)
        if persons.max(initial=-1) >= stands.size:
            more = int(persons.max()) + 1 - stands.size
            stands = np.pad(stands, (0, max(more, stands.size)), constant_values=len(STATES))
        before = names[stands[persons]].tolist()
        stands[persons] = [STATES.index(one) for one in told.states]
        if entry.kind == "history":
            continue
        applications = reader.names(persons)
        columns = [
            ids_of(applications, shape),
            [one is None for one in applications],
            list(told.states),
            before,
            [entry.at] * n,
            [entry.by] * n,
            [entry.number] * n,
        ]
        yield pa.table(columns, schema=schema)
