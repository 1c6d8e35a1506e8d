"""Which rows of a table a program can use, and the reasons for refusing the others."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairchance.cli.files.refusals import Refusals
from fairchance.errors import InputError
from fairchance.extras import arrow
from fairchance.people.cells import (
    FORMATTED,
    as_dates,
    as_numbers,
    group_levels,
    recoded,
    rows_where,
    stated,
    trimmed,
    without_missing,
)
from fairchance.people.plain import as_text

if TYPE_CHECKING:
    from fairchance.core.groups import Attributes
    from fairchance.ledger.config import Labels, Roles
    from fairchance.ledger.program import Program, ProgramView
    from fairchance.people.features import FeatureColumns

__all__ = [
    "check_there",
    "features_groups_ids",
    "outcome_states",
    "persons_of",
    "refuse_unknown_labels",
    "refuse_without_person",
    "roles_and_labels",
    "split_rows",
    "text_columns",
]

_LONGEST_ID = 200
_LONGEST_TEXT = 1000


def text_columns(roles: Roles, columns: FeatureColumns | None = None) -> tuple[str, ...]:
    """Return the columns that ``read_table`` must read as text."""
    texts = () if columns is None else columns.texts
    named = (roles.id, roles.outcome, roles.accepted, *roles.groups, *roles.by_lender.values())
    named += (roles.persons, *texts)
    return tuple(dict.fromkeys(name for name in named if name is not None))


def roles_and_labels(program: Program | ProgramView) -> tuple[Roles, Labels]:
    """Return a program's columns and outcome labels; the usual names if it was made in Python."""
    from fairchance.ledger.config import Labels, Roles  # noqa: PLC0415 - an extra

    about, shape = program.about, program.shape
    groups = (shape.group_names or ("group",)) if shape.has_groups else ()
    roles = Roles.read(about) or Roles("id", "outcome", None, groups, shape.columns.names or ())
    good, bad = Labels.canonical(shape.good), Labels.canonical(shape.bad)
    return roles, Labels.read(about) or Labels((good,), (bad,))


def check_there(table: Any, names: Iterable[str], source: str) -> None:
    """Raise unless a table has these columns."""
    there = set(table.column_names)
    for name in names:
        if name not in there:
            alike = {column.strip().lower(): column for column in table.column_names}
            near = difflib.get_close_matches(name.strip().lower(), alike, n=1)
            hint = f" (did you mean {alike[near[0]]!r}?)" if near else ""
            raise InputError(
                f"{source} has no column {name!r}{hint}; it has "
                f"{', '.join(map(repr, table.column_names))}, so rename one or correct the name."
            )


def split_rows(
    table: Any,
    roles: Roles,
    columns: FeatureColumns,
    *,
    groups: Attributes | None = None,
    missing: Collection[str] = (),
    missing_values: Collection[str] = (),
    missing_code: str = "missing",
    not_stated: bool = False,
    source: str = "the table",
    as_written: Callable[[], Any] | None = None,
    names_of: Callable[[Any, Any], Iterable[str | None]] | None = None,
) -> tuple[Any, Refusals]:
    """Return the usable rows, with features as numbers, dates or text, and the refused ones.

    A row is refused for an id that is empty, too long or in the table twice (then all rows with
    it), for a group that is empty or not in the history, and for a feature that is missing,
    infinite, too long, or not of its kind. All reasons of a row are listed.

    Parameters
    ----------
    table
        A table that was read with the text columns of ``text_columns``.
    roles
        The roles of columns.
    columns
        The features and what they hold: the program's, or those of ``find_columns``.
    groups
        The groups of the history; None to allow any.
    missing
        Features that may be missing.
    missing_values
        Values that mean that a feature is missing.
    missing_code
        The code of refusals for other features that are missing.
    not_stated
        Whether applicants without a group form one of their own instead of being refused.
    source
        Name of the table in messages.
    as_written
        Returns the rows as they were written (``read_sent``).
    names_of
        Returns the ids that are meant, given the column as it is and without white space around;
        None means the latter.
    """
    names = columns.names or ()
    texts_of, dates_of, missing = set(columns.texts), set(columns.dates), set(missing)
    check_there(table, (roles.id, *roles.groups, *names), source)
    place_of = {name: at for at, name in enumerate(table.column_names)}
    texts = [name for name in text_columns(roles, columns) if name in place_of]
    table = as_text(table, texts, source)
    ready = trimmed(table, roles.id)
    if names_of is not None and not ready[roles.id].equals(table[roles.id]):
        meant = names_of(table[roles.id].to_pylist(), ready[roles.id].to_pylist())
        column = arrow().array(meant, arrow().string())
        ready = ready.set_column(ready.column_names.index(roles.id), roles.id, column)
    refused = Refusals(table, ready[roles.id].to_pylist(), as_written, texts)
    _check_ids(ready[roles.id], roles.id, refused)
    _check_groups(table, roles.groups, groups, refused, may_be_empty=not_stated)
    made = ready.columns
    for name in roles.groups if not_stated else ():
        made[place_of[name]] = stated(table[name])
    for name in names:
        words = () if name in roles.groups else missing_values
        column, strange = without_missing(table[name], words), np.empty(0, np.int64)
        if name in texts_of:
            _check_length(column, name, _LONGEST_TEXT, refused)
        elif name in dates_of:
            column, strange = _dates(column, name, refused)
        else:
            column, strange = _numbers(column, name, refused)
        if name not in missing:
            empty = np.setdiff1d(rows_where(column.is_null(nan_is_null=True)), strange)
            refused.add(empty, missing_code, name)
        made[place_of[name]] = column
    ready = arrow().Table.from_arrays(made, ready.column_names)
    return ready.filter(arrow().array(refused.usable)), refused


def features_groups_ids(
    table: Any, roles: Roles, columns: FeatureColumns
) -> tuple[Any, Any, NDArray[np.str_]]:
    """Return features, group values (None without groups) and ids."""
    sensitive = table.select(list(roles.groups)) if roles.groups else None
    ids = np.array(table[roles.id].to_pylist(), np.str_)
    return table.select(list(columns.names or ())), sensitive, ids


def persons_of(table: Any, roles: Roles) -> dict[str, NDArray[np.str_]]:
    """Return who applied, as an option of ``fit`` and ``decide``; empty if the program has none."""
    if roles.persons is None:
        return {}
    return {"persons": np.array([str(name).strip() for name in table[roles.persons].to_pylist()])}


def refuse_without_person(
    table: Any, roles: Roles, refusals: Refusals, rows: NDArray[np.intp]
) -> None:
    """Refuse applications that do not say who applied; ``rows`` are those of the table."""
    if roles.persons is not None:
        names = table[roles.persons].to_pylist()
        empty = np.array([name is None or not str(name).strip() for name in names], np.bool_)
        refusals.add(rows[empty], "no_person", roles.persons)


def outcome_states(column: Any, labels: Labels) -> NDArray[np.str_]:
    """Return each outcome as a state: "" if it is empty, "?" if it is no known label.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from fairchance.ledger.config import Labels
    >>> column = pa.chunked_array([["1.0", "default", None, "paid"]])
    >>> outcome_states(column, Labels(good=("1",), bad=("default",))).tolist()
    ['good', 'bad', '', '?']
    """
    known = labels.state_of()
    return recoded(column, lambda value: known.get(labels.meant(value) or "", "?"))


def refuse_unknown_labels(
    column: Any, states: NDArray[np.str_], labels: Labels, refusals: Refusals
) -> None:
    """Refuse rows whose outcome is no known label, and name the label that it resembles."""
    rows = np.flatnonzero(states == "?")
    words = np.array(column.take(arrow().array(rows)).to_pylist(), np.object_)
    alike = {label.lower(): label for label in labels.state_of()}
    for word in dict.fromkeys(words.tolist()):
        near = difflib.get_close_matches(word.strip().lower(), alike, n=1)
        hint = f" (did you mean {alike[near[0]]!r}?)" if near else ""
        allowed = f"{labels.listed()}{hint}"
        refusals.add(rows[words == word], "not_a_label", values=repeat(word), allowed=allowed)


def _check_ids(column: Any, name: str, refused: Refusals) -> None:
    compute = arrow("compute")
    blank = compute.fill_null(compute.equal(column, ""), True)
    refused.add(rows_where(blank), "no_id", name)
    _check_length(column, name, _LONGEST_ID, refused)
    coded = column.combine_chunks().dictionary_encode()
    codes = compute.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False)
    _, place, times = np.unique(codes, return_inverse=True, return_counts=True)
    twice = np.flatnonzero((times[place] > 1) & (codes >= 0))
    refused.add(twice, "twice", name, map(str, times[place][twice].tolist()))


def _check_groups(
    table: Any,
    names: tuple[str, ...],
    known: Attributes | None,
    refused: Refusals,
    *,
    may_be_empty: bool,
) -> None:
    pa, compute = arrow(), arrow("compute")
    lacking = np.zeros(table.num_rows, np.bool_)
    for name in names:
        empty = compute.is_null(table[name]).to_numpy(zero_copy_only=False)
        if not may_be_empty:
            refused.add(np.flatnonzero(empty), "no_group", name)
        _check_length(table[name], name, _LONGEST_ID, refused)
        lacking |= empty
    if known is None or not names:
        return
    key, groups = np.zeros(table.num_rows, np.int64), np.zeros(known.n_groups, np.int64)
    unknown = lacking
    for name, values, level_of in zip(names, known.values, known.level_of, strict=True):
        place = group_levels(table[name], values)
        unknown, key = unknown | (place < 0), key * values.size + place
        groups = groups * values.size + level_of
    unknown |= ~np.isin(key, groups)
    rows = np.flatnonzero(unknown & ~lacking)
    combinations = zip(
        *(table[name].take(pa.array(rows)).to_pylist() for name in names), strict=True
    )
    refused.add(
        rows,
        "unknown_group",
        values=[", ".join(values) for values in combinations],
        allowed=known.listed(),
    )


def _check_length(column: Any, name: str, most: int, refused: Refusals) -> None:
    compute = arrow("compute")
    n = compute.fill_null(compute.utf8_length(column), 0).to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(n > most)
    refused.add(rows, "too_long", name, [f"{n[row]:,}" for row in rows], allowed=f"{most:,}")
    nul = compute.fill_null(compute.match_substring(column, "\0"), False)
    refused.add(rows_where(nul), "nul", name)


def _numbers(column: Any, name: str, refused: Refusals) -> tuple[Any, NDArray[np.int64]]:
    """Return a column as numbers; refuse and return the rows with anything else."""
    values, strange = as_numbers(column)
    if arrow().types.is_string(column.type):
        words = column.take(arrow().array(strange))
        looks = arrow("compute").match_substring_regex(words, FORMATTED)
        formatted = looks.to_numpy(zero_copy_only=False).astype(np.bool_)
        found = np.array(words.to_pylist(), np.object_)
        refused.add(strange[~formatted], "not_a_number", name, found[~formatted])
        refused.add(strange[formatted], "formatted", name, found[formatted])
    else:
        refused.add(strange, "not_a_number", name, repeat(str(column.type)))
    refused.add(np.flatnonzero(np.isinf(values)), "infinite", name)
    return arrow().array(values), strange


def _dates(column: Any, name: str, refused: Refusals) -> tuple[Any, NDArray[np.int64]]:
    """Return a column as dates; refuse and return the rows with anything else."""
    dates, strange = as_dates(column)
    values = column.take(arrow().array(strange)).to_pylist()
    refused.add(strange, "not_a_date", name, map(str, values))
    return dates, strange
