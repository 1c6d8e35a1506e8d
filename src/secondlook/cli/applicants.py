"""A file of applicants as a batch: what a program can decide on, and under which name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags

from secondlook.cli.csv_files import arrow
from secondlook.cli.rows import people, split_rows, text_columns
from secondlook.cli.tables import Refusals, read_table
from secondlook.errors import InputError

if TYPE_CHECKING:
    from secondlook.attributes import Attributes
    from secondlook.ledger.base import Entry, Reader
    from secondlook.ledger.config import Labels, Roles
    from secondlook.ledger.program import Program
    from secondlook.ledger.replay import Shape

__all__ = ["Applicants", "read_applicants", "roles_and_labels"]

_WHOLE = re.compile(r"0|-?[1-9]\d{0,17}")


@dataclass(frozen=True)
class Applicants:
    """A batch as a program takes it.

    Attributes
    ----------
    X, groups, ids
        Features, group values and names of the applications.
    name
        What the batch is called in the record.
    recorded
        Its entry, if it was recorded before.
    refusals
        The rows of the file that are left out.
    """

    X: Any
    groups: Any
    ids: NDArray[Any]
    name: str
    recorded: Entry | None
    refusals: Refusals


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
    that is sent again gives the same batch as the first time.

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
    known = getattr(getattr(classifier, "_intake", None), "sensitive", None)
    table, refusals = split_rows(
        read_table(path, text=text_columns(roles, shape.columns)),
        roles,
        shape.columns,
        groups=known,
        missing=program.about.get("missing", get_tags(classifier).input_tags.allow_nan),
        source=source,
    )
    if shape.id_kind == "i":
        whole = [_WHOLE.fullmatch(one) is not None for one in table[roles.id].to_pylist()]
        reason = f"{roles.id!r} must be a whole number, as in the history"
        table = _without(table, ~np.array(whole, np.bool_), reason, refusals)
    ids = table[roles.id].to_pylist()
    with program.ledger.reading(program.name) as reader:
        recorded = _batch_of(reader, ids) if batch is None else reader.entry("batch", batch)
    name = batch or (token_hex(6) if recorded is None else recorded.key)
    before, words = _decided_elsewhere(program, ids, recorded)
    table = _without(table, before, words, refusals)
    return Applicants(*_as_sent(table, roles, shape, known), name, recorded, refusals)


def _without(
    table: Any, wrong: NDArray[np.bool_], reason: str | list[str], refusals: Refusals
) -> Any:
    """Return the usable rows without some of them, which are refused."""
    refusals.add(np.flatnonzero(refusals.usable)[wrong], reason)
    return table.filter(arrow().array(~wrong))


def _as_sent(
    table: Any, roles: Roles, shape: Shape, known: Attributes | None
) -> tuple[Any, Any, NDArray[Any]]:
    """Return features, group values and ids, of the kinds that the history had."""
    X, groups, names = people(table, roles, shape.columns)
    if groups is not None and known is not None:
        columns = [
            np.array(groups[name].to_pylist(), np.str_).astype(values.dtype.kind)
            for name, values in zip(roles.groups, known.values, strict=True)
        ]
        groups = arrow().table(dict(zip(roles.groups, columns, strict=True)))
        if shape.group_names is None:
            groups = columns[0]
    return X, groups, shape.ids(names.tolist())


def _batch_of(reader: Reader, ids: list[str]) -> Entry | None:
    """Return the newest batch that ids are of, if all are known and all of that batch are there.

    No name made from the content would do as well: it would outlive the people when they are
    erased, and whoever guesses their data could tell that they were right.
    """
    persons = reader.standing(ids).persons
    if not persons.size or persons.min() < 0:
        return None
    for entry in reader.newest_first("batch"):
        rows = entry.says["rows"]
        if rows["first"] <= persons.max():
            return entry if int((persons >= rows["first"]).sum()) == rows["n"] else None
    return None


def _decided_elsewhere(
    program: Program, ids: list[str], recorded: Entry | None
) -> tuple[NDArray[np.bool_], list[str]]:
    """Say who was decided on before, and not in this batch, with words for each."""
    standing = program.standing(ids)
    known = standing.persons >= 0
    if recorded is not None:
        rows = recorded.says["rows"]
        end = rows["first"] + rows["n"]
        known &= (standing.persons < rows["first"]) | (standing.persons >= end)
    return known, [
        f"the id was decided on before ({f'round {t}' if t else 'in the history'}); somebody who "
        f"applies again needs a new one"
        for t in standing.round[known].tolist()
    ]
