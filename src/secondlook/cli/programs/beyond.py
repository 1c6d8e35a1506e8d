"""Columns of numbers in which a batch is not like the history: another unit or decimal mark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from secondlook.cli.programs.batch_words import how_many
from secondlook.errors import InputError
from secondlook.people.ranges import Range, chance_beyond, n_beyond

__all__ = [
    "beyond_history",
    "beyond_words",
    "check_like_history",
    "insisted_on",
    "insisted_words",
    "unlike",
]

_MANY = 0.5  # of the people with a value: a batch is stopped
_FALSE_STOPS = 1e-4  # of batches that are like the history, over all columns
_SOME, _FEWEST, _TIMES = 0.05, 5, 10  # told of: a share, people, and times what chance would make


def beyond_history(ranges: Mapping[str | int, Range] | None, X: Any) -> list[dict[str, Any]] | None:
    """Return the columns in which people are beyond the history's range, and more than by chance.

    Parameters
    ----------
    ranges
        ``feature_ranges_`` of a classifier; None if it does not know them.
    X
        Features of the batch, an Arrow table.

    Returns
    -------
    list or None
        For each such column, the most people first: ``column``, ``low`` and ``high`` of the
        history, how many ``people`` are beyond, ``of`` how many who have a value, and whether that
        is ``too_many`` to decide on the batch unasked. None if ranges are not known.
    """
    if ranges is None:
        return None
    found = []
    for key, known in ranges.items():
        name = key if isinstance(key, str) else X.column_names[key]
        values = np.asarray(X[name].cast("float64").to_numpy(), np.float64)
        people, of = n_beyond(values, known)
        stops = people > _MANY * of and _is_no_chance(known.n_values, of, people, len(ranges))
        expected = 2 / (known.n_values + 1) * of
        if stops or (people >= _FEWEST and people > max(_SOME * of, _TIMES * expected)):
            row = {"column": name, "low": known.low, "high": known.high}
            found.append(row | {"people": people, "of": of, "too_many": stops})
    return sorted(found, key=lambda row: -row["people"])


def check_like_history(found: list[dict[str, Any]] | None, source: str) -> None:
    """Raise if most people of a batch are beyond the history's range in a column."""
    wrong = [row for row in found or () if row["too_many"]]
    if not wrong:
        return
    first, others = wrong[0], ", ".join(repr(row["column"]) for row in wrong[1:])
    raise InputError(
        f"the column {first['column']!r} of {source} is not like the history: numbers there lay "
        f"within {_within(first)}, and {first['people']:,} of {how_many(first['of'])} are beyond"
        f"{f' (others like it: {others})' if others else ''}, which may be another unit or decimal "
        f"mark; nothing was decided or recorded, mend the file, or pass --unlike-history to decide "
        f"all the same."
    )


def beyond_words(found: list[dict[str, Any]] | None) -> list[str]:
    """Return what is not like the history in words, a line per column.

    Examples
    --------
    >>> row = {"column": "income", "low": 300.0, "high": 12000.0, "people": 9, "of": 80}
    >>> beyond_words([row])
    ["Beyond the history in 'income': 9 of 80 people are not within 300 to 12000; is it another unit
    or decimal mark?"]
    """
    return [
        f"Beyond the history in {row['column']!r}: {row['people']:,} of {how_many(row['of'])} are "
        f"not within {_within(row)}; is it another unit or decimal mark?"
        for row in found or ()
    ]


def insisted_on(found: list[dict[str, Any]] | None) -> dict[str, Any]:
    """Return what is kept with a batch that is decided although it is not like the history.

    Examples
    --------
    >>> row = {"column": "income", "low": 300.0, "high": 12000.0, "people": 60, "of": 60}
    >>> insisted_on([row | {"too_many": True}]) == {"unlike_history": [row]}
    True
    >>> insisted_on([row | {"too_many": False}])
    {}
    """
    rows = [
        {key: value for key, value in row.items() if key != "too_many"}
        for row in found or ()
        if row["too_many"]
    ]
    return {"unlike_history": rows} if rows else {}


def insisted_words(rows: list[dict[str, Any]], *, certified: bool) -> list[str]:
    """Return in words what a record keeps of a batch that is not like the history.

    Examples
    --------
    >>> row = {"column": "income", "low": 300.0, "high": 12000.0, "people": 60, "of": 60}
    >>> insisted_words([row], certified=True)
    ["Decided all the same (--unlike-history), which is on the record: 60 of 60 people not within
    300 to 12000 in 'income'. What is certified holds for people like those tested so far, which
    these may not be."]
    """
    if not rows:
        return []
    which = ", ".join(unlike(row) for row in rows)
    words = f"Decided all the same (--unlike-history), which is on the record: {which}."
    if certified:
        words += (
            " What is certified holds for people like those tested so far, which these may not be."
        )
    return [words]


def unlike(row: dict[str, Any]) -> str:
    """Return in words how a column is not like the history."""
    return (
        f"{row['people']:,} of {how_many(row['of'])} not within {_within(row)} in {row['column']!r}"
    )


def _is_no_chance(n_past: int, n_new: int, people: int, n_columns: int) -> bool:
    """Say whether so many would be beyond in almost no batch that is like the history."""
    return chance_beyond(n_past, n_new, people) < _FALSE_STOPS / n_columns


def _within(row: dict[str, Any]) -> str:
    return f"{row['low']:.10g} to {row['high']:.10g}"
