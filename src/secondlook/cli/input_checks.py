"""Checks of a file against the program: ids, column names, ranges of numbers and text values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from secondlook.cli.files.csv_files import arrow
from secondlook.cli.files.refusals import Refusals
from secondlook.cli.files.rows import shortened
from secondlook.cli.output import people
from secondlook.errors import InputError

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


# Text values that the policy does not know

_SHOWN_VALUES = 3  # of a column; JSON has all
_TREATMENTS = {
    "ignore": "the score ignores them (handle_unknown='ignore')",
    "infrequent_if_exist": "the score treats them as rare values "
    "(handle_unknown='infrequent_if_exist')",
    "use_encoded_value": "the score treats them all as one other value "
    "(handle_unknown='use_encoded_value')",
}


def unseen_values(
    classifier: Any, texts: Sequence[str], X: Any, groups: Any, round_: int
) -> list[dict[str, Any]] | None:
    """Return values of text columns that the policy of the last round does not know.

    A policy knows the categories of the encoders in its learner. None if they are unknown: the
    round is not the last one, or the learner reads text in another way.

    Parameters
    ----------
    classifier
        The classifier that decided.
    texts
        The features that hold text.
    X, groups
        Features and group values of the batch.
    round_
        The round that decided it.

    Returns
    -------
    list or None
        For each column and value, the most frequent first: ``column``, ``value``, ``people``, and
        ``treated``, the encoder's rule for unknown values.
    """
    if not texts:
        return []
    rounds = getattr(classifier, "rounds_", ())
    if not rounds or rounds[-1].round != round_ or not hasattr(classifier, "scored_by"):
        return None
    first_groups = None if groups is None else groups[:1]
    likelihood = classifier.scored_by(X.slice(0, 1), sensitive_features=first_groups).likelihood
    known = _known_values(likelihood, list(X.column_names))
    if not set(texts) <= set(known):
        return None
    rows: list[dict[str, Any]] = []
    for name in texts:
        values, treated = known[name]
        rows += [
            {"column": name, "value": row["values"], "people": row["counts"], "treated": treated}
            for row in arrow("compute").value_counts(X[name]).to_pylist()
            if row["values"] is not None and row["values"] not in values
        ]
    return sorted(rows, key=lambda row: -row["people"])


def unseen_values_message(rows: list[dict[str, Any]] | None) -> list[str]:
    """Return ``unseen_values`` as lines, one for each column.

    Examples
    --------
    >>> row = {"column": "region", "value": "moon", "people": 2, "treated": "ignore"}
    >>> unseen_values_message([row])
    ["Never seen in 'region': 'moon' (2 people); the score ignores them (handle_unknown='ignore')."]
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
        treatment = _TREATMENTS.get(
            column[0]["treated"] or "", "the learner decides how to read them"
        )
        lines.append(f"Never seen in {name!r}: {shown}; {treatment}.")
    return lines


def _known_values(likelihood: Any, names: list[str]) -> dict[str, tuple[set[Any], str | None]]:
    """Return by column the values that a likelihood's encoders know, and their rule for others."""
    known: dict[str, tuple[set[Any], str | None]] = {}
    for estimator in _estimators(likelihood):
        for encoder, columns in _encoders(estimator, names):
            if len(columns) != len(encoder.categories_):
                continue  # it reads other columns
            for name, values in zip(columns, encoder.categories_, strict=True):
                before, _ = known.get(name, (set(), None))
                treated = getattr(encoder, "handle_unknown", None)
                known[name] = before | set(np.asarray(values).tolist()), treated
    return known


def _estimators(likelihood: Any) -> Iterator[Any]:
    """Yield the estimators inside a likelihood."""
    for parts in ("of_group", "parts"):
        for part in getattr(likelihood, parts, ()):
            yield from _estimators(part)
    for name in ("estimator", "policy"):
        if hasattr(likelihood, name):
            yield getattr(likelihood, name)


def _encoders(estimator: Any, names: list[str]) -> Iterator[tuple[Any, list[str]]]:
    """Yield fitted encoders with categories, each with the columns that it reads.

    A pipeline is followed up to the step after which columns are no longer those of the table.
    """
    if hasattr(estimator, "categories_"):
        yield estimator, names
    elif hasattr(estimator, "transformers_"):
        for _, part, columns in estimator.transformers_:
            if not isinstance(part, str):
                yield from _encoders(part, _column_names(columns, names))
    elif hasattr(estimator, "steps"):
        for _, step in estimator.steps:
            if getattr(step, "n_features_in_", len(names)) != len(names):
                return
            yield from _encoders(step, names)
            if hasattr(step, "categories_") or hasattr(step, "transformers_"):
                return


def _column_names(columns: Any, names: list[str]) -> list[str]:
    """Return names for any way in which a column transformer may select columns."""
    if isinstance(columns, slice):
        if isinstance(columns.stop, str):  # includes both ends
            return names[names.index(columns.start) : names.index(columns.stop) + 1]
        return names[columns]
    listed = np.atleast_1d(np.asarray(columns))
    if listed.dtype == np.bool_:
        listed = np.flatnonzero(listed)
    return [column if isinstance(column, str) else names[int(column)] for column in listed.tolist()]
