"""A file of applicants as a batch: what a program can decide on, and under which name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from secondlook.cli.files.csv_files import arrow
from secondlook.cli.files.refusals import Refusals
from secondlook.cli.files.rows import group_levels, people, split_rows, text_columns
from secondlook.cli.files.tables import read_sent
from secondlook.cli.programs.spelling import as_recorded, mistakable_ids
from secondlook.errors import InputError

if TYPE_CHECKING:
    from secondlook.core.groups import Attributes
    from secondlook.ledger.base import Entry, Reader, Standing
    from secondlook.ledger.config import Labels, Roles
    from secondlook.ledger.program import Program
    from secondlook.ledger.replay import Shape

__all__ = ["BEFORE", "Applicants", "read_applicants", "roles_and_labels"]

BEFORE = "the id was decided on before "  # nothing else is wrong with such a row

_WHOLE = re.compile(r"0|-?[1-9][0-9]*")  # spelled as a whole number is written back
_LEAST, _MOST = -(2**63), 2**63 - 1  # that an id can be


@dataclass(frozen=True)
class Applicants:
    """A batch as a program takes it.

    Attributes
    ----------
    X, groups, ids
        Features, group values and names of the applications, in the order of the record if the
        batch is recorded.
    places
        Where among these the usable rows of the file are, in the file's order.
    name
        What the batch is called in the record.
    recorded
        Its entry, if it was recorded before.
    refusals
        The rows of the file that are left out.
    n_before
        How many of these are of people who were decided on before, and in nothing else wrong.
    """

    X: Any
    groups: Any
    ids: NDArray[Any]
    places: NDArray[np.int64]
    name: str
    recorded: Entry | None
    refusals: Refusals
    n_before: int


def roles_and_labels(program: Program) -> tuple[Roles, Labels]:
    """Return a program's columns and outcomes; the usual names for one that was made in Python."""
    from secondlook.ledger.config import Labels, Roles  # noqa: PLC0415 - an extra

    about, shape = program.about, program.shape
    groups = (shape.group_names or ("group",)) if shape.has_groups else ()
    roles = Roles.read(about) or Roles("id", "outcome", None, groups, shape.columns.names or ())
    good, bad = Labels.canonical(shape.good), Labels.canonical(shape.bad)
    return roles, Labels.read(about) or Labels((good,), (bad,))


def read_applicants(program: Program, path: str, batch: str | None, source: str) -> Applicants:
    """Read a file of applicants.

    Somebody who was decided on before is left out, unless it was in this very batch: so a file
    that is sent again gives the same batch as the first time, whatever the order of its rows.
    Whoever is not known is left out too if others in the file are of a batch that has erased
    people: it may be one of these, who would be decided on twice.

    Parameters
    ----------
    program
        Who will decide.
    path
        The file, as for ``read_table``.
    batch
        A name for the batch; None takes one at random, or that of the batch which people are of.
    source
        What messages call the file.
    """
    shape, classifier = program.shape, program.classifier
    roles, _ = roles_and_labels(program)
    if batch is not None and not batch.strip():
        raise InputError(
            "a batch's name must have letters, got an empty one; give a name or leave out --batch."
        )
    if shape.columns.names is None:
        raise InputError(
            f"the history of program {program.name!r} had no names for its columns, so those of a "
            f"file cannot be told apart; decide from Python, or start a program from a table."
        )
    if roles.id in {*shape.columns.names, *roles.groups}:
        raise InputError(
            f"the program {program.name!r} knows people by a column {roles.id!r}, which in a file "
            f"is the name of the application; decide from Python, or start a program in which it "
            f"is called otherwise."
        )
    from sklearn.utils import get_tags  # noqa: PLC0415 - slow to import

    from secondlook.ledger.telling import known_groups  # noqa: PLC0415 - an extra

    known = known_groups(classifier)
    file = read_sent(path, text=text_columns(roles, shape.columns))
    table, refusals = split_rows(
        file.table,
        roles,
        shape.columns,
        groups=known,
        missing=program.about.get("missing", get_tags(classifier).input_tags.allow_nan),
        source=source,
        as_written=file.as_written,
        names_of=lambda given, plain: as_recorded(program, given, plain),
    )
    if shape.id_kind == "i":
        table = _with_whole_ids(table, roles.id, refusals)
    odd = mistakable_ids(table[roles.id].to_pylist(), roles.id, refusals, program)
    table = table.filter(arrow().array(~odd))
    with program.ledger.reading(program.name) as reader:
        standing = reader.standing(table[roles.id].to_pylist())
        named = None if batch is None else reader.entry("batch", batch)
        unsure, reason = _maybe_erased(reader, standing.persons, named)
        known_rows = standing.persons[~unsure]
        recorded = named if batch is not None else _batch_of(reader, known_rows)
    name = batch or (token_hex(6) if recorded is None else recorded.key)
    before, words = _decided_elsewhere(standing, recorded)
    rows, unsure = np.flatnonzero(refusals.usable), unsure & ~before
    refusals.add(rows[unsure], reason)
    refusals.add_each(
        rows[before],
        BEFORE,
        words,
        "; somebody who applies again needs a new one",
    )
    left_out = unsure | before
    table = table.filter(arrow().array(~left_out))
    places = _places(standing.persons[~left_out], recorded)
    sent = table.take(np.argsort(places))
    n_before = int(before.sum())
    X, groups, ids = _as_sent(sent, roles, shape, known)
    return Applicants(X, groups, ids, places, name, recorded, refusals, n_before)


def _with_whole_ids(table: Any, column: str, refusals: Refusals) -> Any:
    """Return the rows whose ids are whole numbers that a program can keep; refuse the others."""
    listed, rows = table[column].to_pylist(), np.flatnonzero(refusals.usable)
    whole = np.array([_WHOLE.fullmatch(one) is not None for one in listed], np.bool_)
    fits = np.array(
        [there and _LEAST <= int(one) <= _MOST for there, one in zip(whole, listed, strict=True)],
        np.bool_,
    )
    refusals.add(rows[~whole], f"{column!r} must be a whole number, as in the history")
    reason = f"{column!r} must be a whole number from {_LEAST} to {_MOST}, as in the history"
    refusals.add(rows[whole & ~fits], reason)
    return table.filter(arrow().array(fits))


def _as_sent(
    table: Any, roles: Roles, shape: Shape, known: Attributes | None
) -> tuple[Any, Any, NDArray[Any]]:
    """Return features, group values and ids, of the kinds that the history had."""
    X, groups, names = people(table, roles, shape.columns)
    if groups is not None and known is not None:
        columns = [
            values[group_levels(groups[name], values)]
            for name, values in zip(roles.groups, known.values, strict=True)
        ]
        groups = arrow().table(dict(zip(roles.groups, columns, strict=True)))
        if shape.group_names is None:
            groups = columns[0]
    return X, groups, shape.ids(names.tolist())


def _maybe_erased(
    reader: Reader, persons: NDArray[np.int64], named: Entry | None
) -> tuple[NDArray[np.bool_], str]:
    """Say who is not known and may be an erased person of a batch that others are of, and why.

    The history counts as a batch here. The batch that was named is left to the program, which
    compares what was sent with it.
    """
    nobody = np.zeros(persons.size, np.bool_)
    unknown, known = persons < 0, np.sort(persons[persons >= 0])
    if not unknown.any() or not known.size:
        return nobody, ""
    found = [reader.facts(entry).erased for entry in reader.entries(kind="erasure")]
    gone = np.sort(np.concatenate([one for one in found if one is not None] or [known[:0]]))
    batches = (entry for kind in ("history", "batch") for entry in reader.entries(kind=kind))
    for entry in batches if gone.size else ():
        rows = entry.says["rows"]
        ends = rows["first"], rows["first"] + rows["n"]
        here, lost = (np.diff(np.searchsorted(one, ends)).item() for one in (known, gone))
        if here and lost and (named is None or named.number != entry.number):
            what = "the history" if entry.kind == "history" else f"batch {entry.key!r}"
            return unknown, (
                f"{what} has erased people, and this may be one of them; send new applicants in a "
                f"file of their own"
            )
    return nobody, ""


def _batch_of(reader: Reader, persons: NDArray[np.int64]) -> Entry | None:
    """Return the newest batch that people are of, if all are known and all of that batch are there.

    No name made from the content would do as well: it would outlive the people when they are
    erased, and whoever guesses their data could tell that they were right.
    """
    if not persons.size or persons.min() < 0:
        return None
    for entry in reader.newest_first("batch"):
        rows = entry.says["rows"]
        if rows["first"] <= persons.max():
            return entry if int((persons >= rows["first"]).sum()) == rows["n"] else None
    return None


def _decided_elsewhere(
    standing: Standing, recorded: Entry | None
) -> tuple[NDArray[np.bool_], list[str]]:
    """Say who was decided on before, and not in this batch, and when in words."""
    known = standing.persons >= 0
    if recorded is not None:
        rows = recorded.says["rows"]
        end = rows["first"] + rows["n"]
        known &= (standing.persons < rows["first"]) | (standing.persons >= end)
    return known, [
        f"(round {t})" if t else "(in the history)" for t in standing.round[known].tolist()
    ]


def _places(persons: NDArray[np.int64], recorded: Entry | None) -> NDArray[np.int64]:
    """Return where in a recorded batch people are; as they come if they are not all of it."""
    if recorded is not None:
        rows = recorded.says["rows"]
        places: NDArray[np.int64] = persons - rows["first"]
        if np.array_equal(np.sort(places), np.arange(rows["n"])):
            return places
    return np.arange(persons.size)
