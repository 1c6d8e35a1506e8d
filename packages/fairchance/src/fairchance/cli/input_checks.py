"""Checks of a file against the program: ids, column names and text values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairchance.cli.files.refusals import Refusals
from fairchance.errors import InputError
from fairchance.extras import arrow
from fairchance.words import people, shortened

if TYPE_CHECKING:
    from fairchance.ledger.config import Roles
    from fairchance.ledger.sql import LedgerReader

__all__ = [
    "DECISION_COLUMNS",
    "as_recorded",
    "check_column_names",
    "namesakes",
    "namesakes_message",
    "new_groups",
    "new_groups_message",
    "refuse_ambiguous_ids",
    "unseen_values",
    "unseen_values_message",
]


# Ids


def as_recorded(
    reader: LedgerReader,
    given: Sequence[str | None],
    plain: Sequence[str | None] | None = None,
    *,
    erasing: bool = False,
) -> list[str | None]:
    """Return the ids that are meant: as given if the record has them so, else without white space.

    A program made from Python may hold ``" 1"`` and ``"1"`` as two applicants.

    If applicants are to be erased and others were erased before, only exact ids are taken: the
    applicant with the exact id may be one of the erased.
    """
    from fairchance.people.ids import is_text  # noqa: PLC0415 - slow to import

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
    names: list[str], column: str, refusals: Refusals, reader: LedgerReader | None = None
) -> NDArray[np.bool_]:
    """Refuse rows of new applicants with ids that look like other ids; return which.

    Applicants of the ledger are not new; without a reader, all are.
    """
    from fairchance.people.ids import check_spelling, mistakable  # noqa: PLC0415 - slow to import

    ambiguous = np.zeros(len(names), np.bool_)
    try:
        check_spelling(np.array(names, np.str_))
    except InputError:
        ambiguous = np.array([*map(mistakable, names)], np.bool_)
        if reader is not None:
            ambiguous &= reader.standing(names).persons < 0
        places = np.flatnonzero(ambiguous)
        rows = np.flatnonzero(refusals.usable)[places]
        refusals.add(rows, "ambiguous_id", column, [names[at] for at in places])
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
)  # and "letter" with [reasons], "incumbent" and "barred", if they were given


def check_column_names(roles: Roles) -> None:
    """Raise if the id or outcome column has the name of another column of decide and export.

    A file of decisions may be sent back with outcomes, and is read by these names.
    """
    from fairchance.cli.files.export_tables import EXPORTED  # noqa: PLC0415 - needs the ledger

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


# Text values and groups that the program does not know

_SHOWN_VALUES = 3  # of a column; JSON has all


def unseen_values(reading: Any, X: Any) -> list[dict[str, Any]] | None:
    """Return values of text columns that no applicant of the history had.

    A classifier keeps the values that several applicants of the history had, so columns with other
    values too are left out here. None if the classifier's learner reads text itself. ``reading`` is
    how it reads applicants.

    Each is a ``column``, a ``value`` and the number of ``people``, the most frequent first.
    """
    columns = getattr(reading, "columns", None)
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
    return _listed("Never seen in", rows or [], "the score treats all new values alike")


def new_groups(classifier: Any, groups: Any) -> list[dict[str, Any]]:
    """Return values of groups that no applicant of the history had, as ``unseen_values`` does."""
    if groups is None:
        return []
    intake = classifier._intake
    known, group = intake.read_groups(groups, len(groups))
    rows = [
        {"column": column.name, "value": known.values[column.at].tolist()[level], "people": count}
        for column in intake.likeness.columns
        if column.kind == "group"
        for level, count in enumerate(np.bincount(known.level_of[column.at, group]).tolist())
        if level > column.high and count
    ]
    return sorted(rows, key=lambda row: -row["people"])


def new_groups_message(rows: list[dict[str, Any]]) -> list[str]:
    """Return ``new_groups`` as lines, one for each column.

    Examples
    --------
    >>> new_groups_message([{"column": "sex", "value": "divers", "people": 10}])
    ["New groups in 'sex': 'divers' (10 people); they are counted, and do not decide."]
    """
    return _listed("New groups in", rows, "they are counted, and do not decide")


def _listed(start: str, rows: list[dict[str, Any]], end: str) -> list[str]:
    lines = []
    for name in dict.fromkeys(row["column"] for row in rows):
        column = [row for row in rows if row["column"] == name]
        shown = ", ".join(
            f"{shortened(str(row['value']))} ({people(row['people'])})"
            for row in column[:_SHOWN_VALUES]
        )
        rest = column[_SHOWN_VALUES:]
        if rest:
            n = sum(row["people"] for row in rest)
            shown += f" and {len(rest):,} more ({people(n)})"
        lines.append(f"{start} {name!r}: {shown}; {end}.")
    return lines
