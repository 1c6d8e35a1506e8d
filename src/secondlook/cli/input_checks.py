"""Checks of a file against the program: ids, column names, ranges of numbers and text values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from secondlook.cli.files.csv_files import arrow
from secondlook.cli.files.refusals import Refusals
from secondlook.errors import InputError
from secondlook.words import people, shortened

if TYPE_CHECKING:
    from secondlook.ledger.base import Reader
    from secondlook.ledger.config import Roles
    from secondlook.people.intake import Range

__all__ = [
    "DECISION_COLUMNS",
    "as_recorded",
    "check_column_names",
    "check_like_history",
    "columns_out_of_range",
    "namesakes",
    "namesakes_message",
    "out_of_range",
    "out_of_range_message",
    "recorded_exceptions",
    "recorded_exceptions_message",
    "refuse_ambiguous_ids",
    "unseen_values",
    "unseen_values_message",
]


# Ids


def as_recorded(
    reader: Reader,
    given: Sequence[str | None],
    plain: Sequence[str | None] | None = None,
    *,
    erasing: bool = False,
) -> list[str | None]:
    """Return the ids that are meant: as given if the record has them so, else without white space.

    A program made from Python may hold ``" 1"`` and ``"1"`` as two applicants.

    Parameters
    ----------
    reader
        The program's record.
    given, plain
        The ids as given, and without white space around if that is at hand.
    erasing
        Whether the applicants are to be erased. If others were erased before, only exact ids are
        taken then: the applicant with the exact id may be one of the erased.
    """
    from secondlook.people.ids import is_text  # noqa: PLC0415 - slow to import

    meant = [name and name.strip() for name in given] if plain is None else list(plain)
    differs = np.array(given, np.object_) != np.array(meant, np.object_)
    rows: list[int] = np.flatnonzero(differs).tolist()
    padded = [(at, name) for at in rows if is_text(name := given[at] or "")]
    if not padded:
        return meant
    known = reader.standing([name for _, name in padded]).persons >= 0
    exact = erasing and any(True for _ in reader.entries(kind="erasure"))
    for (at, name), is_known in zip(padded, known.tolist(), strict=True):
        if is_known or exact:
            meant[at] = name
    return meant


def refuse_ambiguous_ids(
    names: list[str], column: str, refusals: Refusals, reader: Reader | None = None
) -> NDArray[np.bool_]:
    """Refuse rows of new applicants with ids that look like other ids; return which.

    Parameters
    ----------
    names, column
        Ids of the rows that are usable so far, and the name of their column.
    refusals
        The refused rows, to which these are added.
    reader
        The ledger: its applicants are not new; None if all are new.
    """
    from secondlook.people.ids import check_spelling, mistakable  # noqa: PLC0415 - slow to import

    ambiguous = np.zeros(len(names), np.bool_)
    try:
        check_spelling(np.array(names, np.str_))
    except InputError:
        reasons = [mistakable(name) for name in names]
        ambiguous = np.array([reason is not None for reason in reasons], np.bool_)
        if reader is not None:
            ambiguous &= reader.standing(names).persons < 0
        places = np.flatnonzero(ambiguous)
        refusals.add_each(
            np.flatnonzero(refusals.usable)[places],
            f"{column!r} has ",
            [str(reasons[at]) for at in places],
            ", so that one applicant could have two ids; write it in one way only",
        )
    return ambiguous


# Column names

DECISION_COLUMNS = (
    "id",
    "decision",
    "region",
    "score",
    "threshold",
    "propensity",
    "round",
    "certified",
    "reasons",
)


def check_column_names(roles: Roles) -> None:
    """Raise if the id or outcome column has the name of another column of decide and export.

    A file of decisions may be sent back with outcomes, and is read by these names.
    """
    from secondlook.cli.files.export_tables import EXPORTED  # noqa: PLC0415 - needs the ledger

    for role, name in (("id", roles.id), ("outcome", roles.outcome)):
        if name != role and name in {*DECISION_COLUMNS, *EXPORTED}:
            raise InputError(
                f"[columns] {role} must not be the name of another column of the files that decide "
                f"and export write, got {name!r}; rename it in your files and there, for example "
                f"to {role!r}."
            )


def namesakes(features: Iterable[str], groups: Iterable[str]) -> list[str]:
    """Return the columns of decisions that have the name of a feature or a group."""
    known = {*features, *groups}
    return [name for name in DECISION_COLUMNS if name in known]


def namesakes_message(names: list[str]) -> list[str]:
    """Say that columns of the decisions are not the input's columns of the same name.

    Examples
    --------
    >>> namesakes_message(["region", "score"])
    ["In the decisions, 'region', 'score' describe the decision; they are not your columns of that
    name."]
    """
    if not names:
        return []
    listed = ", ".join(map(repr, names))
    if len(names) == 1:
        return [
            f"In the decisions, {listed} describes the decision; it is not your column of that "
            f"name."
        ]
    return [
        f"In the decisions, {listed} describe the decision; they are not your columns of that name."
    ]


# Numbers outside the range of the history

_TOO_MANY = 0.5  # share of the applicants with a value: the batch is not decided
_FALSE_STOPS = 1e-4  # probability to stop a batch that is like the history, over all columns
# Columns are mentioned from this share, this number and this multiple of the expected number.
_SHARE, _LEAST, _TIMES = 0.05, 5, 10


def columns_out_of_range(
    ranges: Mapping[str | int, Range] | None, X: Any
) -> list[dict[str, Any]] | None:
    """Return the columns in which more applicants than by chance are outside the history's range.

    Such a column may have another unit or decimal mark.

    Parameters
    ----------
    ranges
        ``feature_ranges_`` of a classifier; None if they are unknown.
    X
        Features of the batch, an Arrow table.

    Returns
    -------
    list or None
        For each such column, the most applicants first: ``column``, ``low`` and ``high`` of the
        history, how many ``people`` are outside, ``of`` how many with a value, and whether that is
        ``too_many`` to decide the batch. None if ranges are unknown.
    """
    if ranges is None:
        return None
    from secondlook.people.intake import chance_beyond, n_beyond  # noqa: PLC0415 - slow to import

    rows = []
    for key, known in ranges.items():
        name = key if isinstance(key, str) else X.column_names[key]
        values = np.asarray(X[name].cast("float64").to_numpy(), np.float64)
        n, of = n_beyond(values, known)
        stops = n > _TOO_MANY * of and (
            chance_beyond(known.n_values, of, n) < _FALSE_STOPS / len(ranges)
        )
        expected = 2 / (known.n_values + 1) * of
        if stops or (n >= _LEAST and n > max(_SHARE * of, _TIMES * expected)):
            row = {"column": name, "low": known.low, "high": known.high}
            rows.append(row | {"people": n, "of": of, "too_many": stops})
    return sorted(rows, key=lambda row: -row["people"])


def check_like_history(rows: list[dict[str, Any]] | None, source: str) -> None:
    """Raise if most applicants of a batch are outside the history's range in a column."""
    wrong = [row for row in rows or () if row["too_many"]]
    if not wrong:
        return
    first, others = wrong[0], ", ".join(repr(row["column"]) for row in wrong[1:])
    raise InputError(
        f"the column {first['column']!r} of {source} is unlike the history: "
        f"{first['people']:,} of {people(first['of'])} are outside {_range(first)}"
        f"{f' (also: {others})' if others else ''}, perhaps because of another unit or decimal "
        f"mark; nothing was decided or recorded, so correct the file, or pass --unlike-history to "
        f"decide anyway."
    )


def out_of_range_message(rows: list[dict[str, Any]] | None) -> list[str]:
    """Return ``columns_out_of_range`` as lines.

    Examples
    --------
    >>> row = {"column": "income", "low": 300.0, "high": 12000.0, "people": 9, "of": 80}
    >>> out_of_range_message([row])
    ["Unlike the history: 9 of 80 people outside 300 to 12000 in 'income'; is it another unit or
    decimal mark?"]
    """
    return [
        f"Unlike the history: {out_of_range(row)}; is it another unit or decimal mark?"
        for row in rows or ()
    ]


def recorded_exceptions(rows: list[dict[str, Any]] | None) -> dict[str, Any]:
    """Return the data recorded with a batch that is decided although it is unlike the history.

    Examples
    --------
    >>> row = {"column": "income", "low": 300.0, "high": 12000.0, "people": 60, "of": 60}
    >>> recorded_exceptions([row | {"too_many": True}]) == {"unlike_history": [row]}
    True
    >>> recorded_exceptions([row | {"too_many": False}])
    {}
    """
    kept = [
        {key: value for key, value in row.items() if key != "too_many"}
        for row in rows or ()
        if row["too_many"]
    ]
    return {"unlike_history": kept} if kept else {}


def recorded_exceptions_message(rows: list[dict[str, Any]], *, certified: bool) -> list[str]:
    """Return the recorded exceptions of a batch as a line.

    Examples
    --------
    >>> row = {"column": "income", "low": 300.0, "high": 12000.0, "people": 60, "of": 60}
    >>> recorded_exceptions_message([row], certified=True)
    ["Decided anyway (--unlike-history), which is recorded: 60 of 60 people outside 300 to 12000 in
    'income'. The certificate holds for applicants like those tested so far, and these may differ."]
    """
    if not rows:
        return []
    listed = ", ".join(out_of_range(row) for row in rows)
    message = f"Decided anyway (--unlike-history), which is recorded: {listed}."
    if certified:
        message += (
            " The certificate holds for applicants like those tested so far, and these may differ."
        )
    return [message]


def out_of_range(row: dict[str, Any]) -> str:
    """Return a row of ``columns_out_of_range`` in words."""
    return f"{row['people']:,} of {people(row['of'])} outside {_range(row)} in {row['column']!r}"


def _range(row: dict[str, Any]) -> str:
    return f"{row['low']:.10g} to {row['high']:.10g}"


# Text values that the program does not know

_SHOWN_VALUES = 3  # of a column; JSON has all


def unseen_values(classifier: Any, X: Any) -> list[dict[str, Any]] | None:
    """Return values of text columns that no applicant of the history had.

    A classifier keeps the values that several applicants of the history had, so columns with other
    values too are left out here. None if the classifier's learner reads text itself.

    Parameters
    ----------
    classifier
        The classifier that decided.
    X
        Features of the batch.

    Returns
    -------
    list or None
        For each column and value, the most frequent first: ``column``, ``value`` and ``people``.
    """
    columns = getattr(getattr(classifier, "_intake", None), "columns", None)
    if columns is None:
        return None
    rows = [
        {"column": column.name, "value": row["values"], "people": row["counts"]}
        for column in columns.columns
        if column.kind == "category" and not column.others
        for row in arrow("compute").value_counts(X[column.name]).to_pylist()
        if row["values"] is not None and row["values"] not in column.categories
    ]
    return sorted(rows, key=lambda row: -row["people"])


def unseen_values_message(rows: list[dict[str, Any]] | None) -> list[str]:
    """Return ``unseen_values`` as lines, one for each column.

    Examples
    --------
    >>> unseen_values_message([{"column": "region", "value": "moon", "people": 2}])
    ["Never seen in 'region': 'moon' (2 people); the score treats all new values alike."]
    """
    lines = []
    for name in dict.fromkeys(row["column"] for row in rows or ()):
        column = [row for row in rows or () if row["column"] == name]
        shown = ", ".join(
            f"{shortened(row['value'])} ({people(row['people'])})" for row in column[:_SHOWN_VALUES]
        )
        rest = column[_SHOWN_VALUES:]
        if rest:
            n = sum(row["people"] for row in rest)
            shown += f" and {len(rest):,} more ({people(n)})"
        lines.append(f"Never seen in {name!r}: {shown}; the score treats all new values alike.")
    return lines
