"""Logs of decisions and models to judge, from files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fairchance.audit import DecisionLog
from fairchance.cli.files.csv_files import first_line
from fairchance.cli.files.rows import check_there
from fairchance.cli.files.tables import file_name, read_table
from fairchance.errors import InputError
from fairchance.extras import arrow
from fairchance.methods.storage import load_estimator
from fairchance.people.cells import TRUTH_VALUES, truth_values
from fairchance.people.plain import as_text
from fairchance.words import shortened

__all__ = ["LogColumns", "read_log", "read_model"]

_GROUP = "group."  # how ``fairchance export`` begins the names of group columns
_ROLES = ("accepted", "propensity", "outcome", "round", "score")
_EXPORTED = ("region", "override", "outcome")  # its columns of words that may be empty


@dataclass(frozen=True)
class LogColumns:
    """The columns of a file of decisions by their roles; None if the file has its usual name."""

    accepted: str | None = None
    propensity: str | None = None
    outcome: str | None = None
    round: str | None = None
    score: str | None = None
    groups: Sequence[str] = ()
    features: Sequence[str] = ()

    @staticmethod
    def parse(texts: Iterable[str]) -> LogColumns:
        """Return the columns of texts such as ``accepted=took``.

        Examples
        --------
        >>> LogColumns.parse(["score=s", "group=sex"]).groups
        ('sex',)
        """
        one: dict[str, str] = dict.fromkeys(_ROLES, "")
        several: dict[str, list[str]] = {"group": [], "feature": []}
        for text in texts:
            role, _, name = (part.strip() for part in text.partition("="))
            if not name or role not in {*one, *several}:
                known = ", ".join((*one, *several))
                raise InputError(f"a column is one of {known}, as in score=rating, got {text!r}.")
            if role in several:
                several[role].append(name)
            else:
                one[role] = name
        named = {role: name for role, name in one.items() if name}
        return LogColumns(
            **named, groups=tuple(several["group"]), features=tuple(several["feature"])
        )

    @property
    def named(self) -> bool:
        """Whether any column is named."""
        return any(vars(self).values())


def read_log(path: str, columns: LogColumns, *, pos_label: str | None = None) -> DecisionLog:
    """Read a log from a table in a file; that of ``fairchance export`` needs no column names."""
    source = file_name(path)
    accepted, outcome = columns.accepted or "accepted", columns.outcome or "outcome"
    texts = [*columns.groups, *([] if pos_label is None else [outcome])]
    table = read_table(path, (*texts, *([] if columns.named else _EXPORTED)))
    exported = not columns.named and {*_EXPORTED, "erased"} <= {*table.column_names}
    if exported and pos_label is not None:
        raise InputError(
            f"{source} was written by fairchance export, so its outcomes are good and bad; leave "
            f"out {{option}}.",
            option="pos_label",
        )
    if exported:
        groups = [name for name in table.column_names if name.startswith(_GROUP)]
        return DecisionLog.from_frame(as_text(table, groups, source))
    propensity = columns.propensity or "propensity"
    named = (accepted, propensity, outcome, columns.round, columns.score)
    wanted = (*(name for name in named if name is not None), *columns.groups, *columns.features)
    check_there(table, wanted, source)
    table = _with_truth_values(table, accepted, source)
    return DecisionLog.from_frame(
        table,
        accepted=accepted,
        propensity=propensity,
        outcome=outcome,
        group=list(columns.groups) or None,
        round=columns.round,
        score=columns.score,
        features=list(columns.features) or None,
        pos_label=pos_label,
    )


def _with_truth_values(table: Any, name: str, source: str) -> Any:
    """Return a table with a column of yes and no, or 1 and 0, as truth values."""
    column = as_text(table, [name], source)[name]
    words = truth_values(column)
    strange = np.flatnonzero(~np.isin(words, ("yes", "no")))
    if strange.size:
        row = int(strange[0])
        raise InputError(
            f"the column {name!r} of {source} must hold {TRUTH_VALUES}, got "
            f"{shortened(str(column[row].as_py() or ''))} in row {row}; correct it."
        )
    at = table.column_names.index(name)
    return table.set_column(at, name, arrow().array(words == "yes"))


def read_model(path: Path, trusted: Sequence[str]) -> Any:
    """Read a classifier from a skops file, made of scikit-learn's types and trusted ones only."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"the challenger {str(path)!r} cannot be read ({error.strerror}); check the path."
        ) from error
    try:
        return load_estimator(content, trusted)
    except InputError:
        raise
    except Exception as error:  # zip, json and skops raise all kinds on other or damaged files
        raise InputError(
            f"the challenger {str(path)!r} is no skops file of a classifier, or it is damaged "
            f"({first_line(error)}); write it with skops.io.dump."
        ) from error
