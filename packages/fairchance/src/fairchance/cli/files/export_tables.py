"""Decisions and outcomes on a ledger as tables, in parts that fit into memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from fairchance.errors import LedgerError
from fairchance.ledger.base import STATES, Entry, ListedRows
from fairchance.ledger.decision_log import flips_coins
from fairchance.ledger.encoding import Shape
from fairchance.ledger.sql import LedgerReader
from fairchance.people.reasons import decode, in_words, letters

_ROWS = 20_000  # people read at a time
_DECISION_KINDS = {
    "id": pa.string(),
    "erased": pa.bool_(),
    "round": pa.int64(),
    "batch": pa.string(),
    "at": pa.string(),
    "region": pa.string(),
    "accepted": pa.bool_(),
    "score": pa.float64(),
    "threshold": pa.float64(),
    "propensity": pa.float64(),
    "drawn": pa.bool_(),
    "policy": pa.int64(),
    "mode": pa.string(),
    "certified": pa.bool_(),
    "incumbent": pa.bool_(),
    "barred": pa.bool_(),
    "ramp": pa.float64(),
    "reasons": pa.string(),
    "override": pa.string(),
    "override_reason": pa.string(),
    "override_by": pa.string(),
    "override_at": pa.string(),
    "outcome": pa.string(),
    "outcome_at": pa.string(),
}
EXPORTED = tuple(_DECISION_KINDS)


def decision_tables(
    reader: LedgerReader, *, features: bool = False, groups: bool = False
) -> Iterator[pa.Table]:
    """Yield tables of decisions with the same columns, in the order of rounds.

    The first table has no rows.

    Parameters
    ----------
    reader
        The program.
    features, groups
        Whether to add features and group values. The names of these columns begin with
        ``feature.`` and ``group.``, so that they differ from all others.
    """
    settings = next(reader.entries(kind="program"))
    shape = Shape.read(settings.says)
    view = _View(
        shape,
        settings.says["classifier"],
        _feature_names(reader, shape) if features else None,
        _group_names(reader, shape) if groups and shape.has_groups else None,
        {
            entry.number: entry.at
            for kind in _OUTCOME_ENTRIES
            for entry in reader.entries(kind=kind)
        },
        {entry.number: entry.at for entry in reader.entries(kind="round")},
        {entry.number: entry for entry in reader.entries(kind="override")},
        settings.says.get("about", {}).get("reasons", {}),
    )
    yield view.empty()
    for entry in reader.entries():
        if entry.kind not in ("batch", "import"):  # of decisions that came after their round
            continue
        rows = entry.says["rows"]
        first, end = rows["first"], rows["end"]
        for start in range(first, end, _ROWS):
            some = min(start + _ROWS, end)
            with_groups = view.groups is not None and rows["groups"]
            part = reader.listed(start, some, groups=with_groups)
            yield view.table(entry, part)


_OUTCOME_ENTRIES = ("outcomes", "correction")


@dataclass(frozen=True)
class _View:
    """The program, and the columns to show."""

    shape: Shape
    classifier: str
    features: list[str] | None
    groups: list[str] | None
    observed_at: dict[int, str]
    opened_at: dict[int, str]
    overrides: dict[int, Entry]
    sentences: dict[str, dict[str, str]]

    @property
    def schema(self) -> pa.Schema:
        text, number, day = pa.string(), pa.float64(), pa.timestamp("ms")
        columns = self.shape.columns
        kinds = _DECISION_KINDS | {"id": pa.int64() if self.shape.id_kind == "i" else text}
        kinds |= {"letter": text} if self.sentences else {}
        for name in self.features or ():
            kinds[f"feature.{name}"] = (
                text if name in columns.texts else day if name in columns.dates else number
            )
        kinds |= {f"group.{name}": text for name in self.groups or ()}
        return pa.schema(list(kinds.items()))

    def empty(self) -> pa.Table:
        """Return the columns, without rows."""
        return self.schema.empty_table()

    def table(self, entry: Entry, part: ListedRows) -> pa.Table:
        """Return some of a batch's decisions."""
        n, says = len(part.people), entry.says
        gone = [name is None for name in part.people.applications]
        decided, reasons = part.decisions, self._reasons(part)
        columns: list[Any] = [
            ids_of(part.people.applications, self.shape),
            gone,
            [decided.round] * n,
            [entry.key] * n,
            [self.opened_at.get(says.get("opened", 0), entry.at)] * n,
            np.where(decided.exploit, "exploit", "explore"),
            decided.accepted,
            *(
                _known(values, n)
                for values in (decided.score, decided.threshold, decided.propensity)
            ),
            ~decided.exploit & (not flips_coins(self.classifier, entry)),
            [says.get("opened", entry.number if "policy" in says else None)] * n,
            [says["group_mode"]] * n,
            [bool(says["certified"])] * n,
            *(pa.nulls(n) if one is None else one for one in (decided.incumbent, decided.barred)),
            [says["ramp"]] * n,
            [None if one is None else in_words(one) for one in reasons],
            *zip(*map(self._override, part.overrides), strict=True),
            [outcome and outcome[0] for outcome in part.outcomes],
            [outcome and self.observed_at.get(outcome[1]) for outcome in part.outcomes],
            *self._letters(entry, part, reasons),
            *self._features(part),
            *self._groups(part),
        ]
        return pa.table(
            [
                pa.array(column, field.type) if not isinstance(column, pa.ChunkedArray) else column
                for column, field in zip(columns, self.schema, strict=True)
            ],
            schema=self.schema,
        )

    def _override(self, newest: tuple[bool, str, int] | None) -> tuple[str | None, ...]:
        """Return the newest override, its reason, its author and its time."""
        if newest is None:
            return (None,) * 4
        accepted, reason, number = newest
        entry = self.overrides.get(number)
        if entry is None:
            raise LedgerError(
                f"an override is of entry {number}, which is none; verify the ledger."
            )
        decision = "accepted" if accepted else "rejected"
        return "taken back" if entry.says.get("undo") else decision, reason, entry.by, entry.at

    def _reasons(self, part: ListedRows) -> list[list[tuple[str, float]] | None]:
        given, reference = part.people.reasons, self.shape.reference
        if given is None or reference is None:
            return [None] * len(part.people)
        return [None if one is None else decode(one, reference.names) for one in given]

    def _letters(self, entry: Entry, part: ListedRows, reasons: Any) -> list[list[str | None]]:
        if not self.sentences:
            return []
        decided = part.decisions
        given = {"incumbent": decided.incumbent, "barred": decided.barred}
        return [letters(reasons, self.sentences, ramp=entry.says["ramp"], **given)]

    def _features(self, part: ListedRows) -> list[Any]:
        if self.features is None:
            return []
        there = [at for at, numbers in enumerate(part.people.numbers) if numbers is not None]
        if not there:
            return [pa.nulls(len(part.people)) for _ in self.features]
        decoded = self.shape.columns.decode(
            [part.people.numbers[at] or b"" for at in there],
            [part.people.texts[at] for at in there],
        )
        if not isinstance(decoded, pa.Table):
            decoded = pa.table(dict(zip(self.features, np.asarray(decoded).T, strict=True)))
        place = np.full(len(part.people), -1)
        place[there] = np.arange(len(there))
        rows = decoded.take(_where(place, place >= 0))
        kinds = [field.type for field in self.schema if field.name.startswith("feature.")]
        return [column.cast(kind) for column, kind in zip(rows.columns, kinds, strict=True)]

    def _groups(self, part: ListedRows) -> list[list[str | None]]:
        values = part.people.groups
        if self.groups is None:
            return []
        width, values = len(self.groups), values or [None] * len(part.people)
        of_text = {text: json.loads(text) for text in set(values) if text is not None}
        return [
            [None if text is None else str(of_text[text][at]) for text in values]
            for at in range(width)
        ]


def ids_of(applications: Sequence[str | None], shape: Shape) -> Any:
    """Return ids in the program's type, None for erased applicants."""
    if shape.id_kind != "i":
        return applications
    return [None if name is None else int(name) for name in applications]


def _known(values: Any, n: int) -> Any:
    """Return numbers with null instead of NaN."""
    return pa.nulls(n) if values is None else _where(values, ~np.isnan(values))


def _where(values: Any, known: Any) -> pa.Array:
    return pa.array(values, mask=~known)


def _feature_names(reader: LedgerReader, shape: Shape) -> list[str]:
    """Return the names of the features; the columns of an array are called x0, x1 and so on."""
    columns = shape.columns
    if columns.names is not None:
        return list(columns.names)
    end = reader.people_end()
    for start in range(0, end, _ROWS):
        numbers = reader.listed(start, min(start + _ROWS, end)).people.numbers
        for row in numbers:
            if row is not None:
                width = len(row) // np.dtype(columns.dtype).itemsize
                return [f"x{at}" for at in range(width)]
    return []  # all applicants are erased


def _group_names(reader: LedgerReader, shape: Shape) -> list[str]:
    if shape.group_names is not None:
        return list(shape.group_names)
    end = reader.people_end()
    for start in range(0, end, _ROWS):
        for text in reader.listed(start, min(start + _ROWS, end), groups=True).people.groups or ():
            if text is not None:
                width = len(json.loads(text))
                return ["group"] if width == 1 else [f"group {at + 1}" for at in range(width)]
    return ["group"]


_OUTCOME_KINDS = {
    "id": pa.string(),
    "erased": pa.bool_(),
    "outcome": pa.string(),
    "before": pa.string(),
    "at": pa.string(),
    "by": pa.string(),
    "entry": pa.int64(),
}


def outcome_tables(reader: LedgerReader) -> Iterator[pa.Table]:
    """Yield tables of outcomes in the order in which they were recorded, without the history.

    A correction has the outcome that it replaced in ``before``, which is empty otherwise. The first
    table has the columns and no rows.
    """
    shape = Shape.read(next(reader.entries(kind="program")).says)
    kinds = _OUTCOME_KINDS | {"id": pa.int64() if shape.id_kind == "i" else pa.string()}
    schema = pa.schema(list(kinds.items()))
    yield schema.empty_table()
    names, current = np.array([*STATES, None], object), np.empty(0, np.int8)
    for entry in reader.entries():
        recorded = entry.kind in ("history", *_OUTCOME_ENTRIES)
        outcomes = reader.facts(entry).outcomes if recorded else None
        if outcomes is None:
            continue
        persons, n = outcomes.persons, len(outcomes.persons)
        if persons.max(initial=-1) >= current.size:
            more = int(persons.max()) + 1 - current.size
            current = np.pad(current, (0, max(more, current.size)), constant_values=len(STATES))
        before = names[current[persons]].tolist()
        current[persons] = [STATES.index(state) for state in outcomes.states]
        if entry.kind == "history":
            continue
        applications = reader.names(persons)
        columns = [
            ids_of(applications, shape),
            [name is None for name in applications],
            list(outcomes.states),
            before,
            [entry.at] * n,
            [entry.by] * n,
            [entry.number] * n,
        ]
        yield pa.table(columns, schema=schema)
