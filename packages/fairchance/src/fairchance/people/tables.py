"""Tables of applicants as other programs hold them: which columns hold what, and how they are read.

The policy of a program reads tables as the command line reads files: ids are text, numbers and
dates may be written as text, and words for groups, decisions and missing values mean the same. Rows
cannot be put aside in the middle of a query, so a table with a row that cannot be used is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairchance.core.saved import saved
from fairchance.errors import InputError
from fairchance.people.cells import (
    as_dates,
    as_numbers,
    decision_words,
    group_values,
    rows_where,
    stated,
    trimmed,
    truth_values,
    without_missing,
)
from fairchance.people.features import FeatureColumns
from fairchance.people.ids import check_spelling
from fairchance.people.intake import Reader
from fairchance.people.plain import as_text, is_whole, plain_types
from fairchance.words import shortened

__all__ = ["InputTable"]

_SOURCE = "the table"


@saved
@dataclass(frozen=True)
class InputTable:
    """Which columns of a table of applicants hold what.

    Features are the columns that the history had, by name. If these had no names, they are all
    other columns, in their order.

    Attributes
    ----------
    id
        The column of ids.
    groups
        The columns of protected attributes, as many as in the history and in their order.
    incumbent, barred, persons
        The columns with the lender's own decisions, with applicants who must not be accepted, and
        that say who applied; None if there are none.
    features
        The features of a program and what they hold; None if the policy is not of a program, and
        columns hold what they held in the history.
    missing
        The features that may be missing; None for all if the learner takes that.
    missing_values
        Values that mean that a feature is missing.
    decisions
        Words for the lender's own decisions, by ``"accepted"`` and ``"rejected"``.
    reference
        The applicant with whom reasons compare (``Reference.as_dict``); None if there is none.
    """

    id: str = "id"
    groups: tuple[str, ...] = ()
    incumbent: str | None = None
    barred: str | None = None
    persons: str | None = None
    features: FeatureColumns | None = None
    missing: tuple[str, ...] | None = None
    missing_values: tuple[str, ...] = ()
    decisions: Mapping[str, Sequence[str]] = field(default_factory=dict)
    reference: Mapping[str, Any] | None = None

    @property
    def by_role(self) -> dict[str, str]:
        """The columns that hold the options of ``decide`` of these names."""
        roles = {"incumbent": self.incumbent, "barred": self.barred, "persons": self.persons}
        return {role: name for role, name in roles.items() if name is not None}

    def read(self, table: Any, reader: Reader) -> dict[str, Any]:
        """Return the applicants of an Arrow table as the arguments of ``decide``.

        Examples
        --------
        >>> import pyarrow as pa
        >>> reader = Reader(raw=False, allow_missing=False, group_as_feature=False)
        >>> table = pa.table({"loan": [7, 8], "income": [1.5, 2], "officer": [True, False]})
        >>> given = InputTable("loan", incumbent="officer").read(table, reader)
        >>> given["ids"].tolist(), given["X"].tolist(), given["incumbent"].tolist()
        ([7, 8], [[1.5], [2.0]], [True, False])
        """
        features = self.features.names if self.features is not None else reader.names
        roles = (self.id, *self.groups, *self.by_role.values())
        self.check_there((*roles, *(features or ())), table.column_names)
        if features is None:
            features = tuple(name for name in table.column_names if name not in roles)
        names = list(dict.fromkeys((*roles, *features)))
        table = plain_types(table.select(names))
        if self.features is not None:
            return self._as_in_files(table, self.features, reader)
        X, kind = table.select(list(features)), cast(Any, reader.table[0])
        if reader.names is None:
            X = np.column_stack([X[name].to_numpy() for name in features])
        elif kind not in ("numpy", "pyarrow"):
            X = nw.from_arrow(X, backend=kind).to_native()
        given = {role: _filled(table, name) for role, name in self.by_role.items()}
        if self.groups:
            given["sensitive_features"] = _beside([_filled(table, name) for name in self.groups])
        return {"X": X, "ids": _filled(table, self.id), **given}

    def check_there(self, names: Sequence[str], there: Sequence[str]) -> None:
        """Raise unless a table has these columns."""
        missing = [name for name in names if name not in there]
        if missing:
            raise InputError(
                f"the table has no column {', '.join(map(repr, missing))}; it has "
                f"{', '.join(map(repr, there))}, so rename one, or say with for_table of the "
                f"policy what it is called."
            )

    def _as_in_files(self, table: Any, columns: FeatureColumns, reader: Reader) -> dict[str, Any]:
        """Return applicants as the command line reads them from a file."""
        named = (self.id, *self.groups, *self.by_role.values(), *columns.texts)
        table = trimmed(as_text(table, dict.fromkeys(named), _SOURCE), self.id)
        ids = _ids(table[self.id], self.id, reader.id_kind)
        given: dict[str, Any] = {}
        for role, name in self.by_role.items():
            if role == "persons":
                who = np.array(trimmed(table, name)[name].fill_null("").to_pylist(), np.str_)
                _refuse(np.flatnonzero(who == ""), name, "who applied", table, ids)
                given[role] = who
                continue
            words = self.decisions if role == "incumbent" else {}
            read = truth_values(table[name], words)
            strange = np.flatnonzero(~np.isin(read, ("yes", "no")))
            _refuse(strange, name, decision_words(words), table, ids)
            given[role] = read == "yes"
        if self.groups:
            given["sensitive_features"] = self._groups(table, reader, ids)
        features = {name: self._feature(table, name, columns, ids) for name in columns.names or ()}
        for column in () if reader.columns is None else reader.columns.columns:
            if column.shortened:
                texts = features[str(column.name)].to_pylist()
                lost = [at for at, text in enumerate(texts) if text in column.shortened]
                holds = "codes with zeros in front, as in the history"
                _refuse(np.array(lost, np.intp), str(column.name), holds, table, ids)
        return {"X": columns.table(features), "ids": ids, **given}

    def _groups(self, table: Any, reader: Reader, ids: NDArray[Any]) -> NDArray[Any]:
        known, columns = reader.sensitive, []
        for at, name in enumerate(self.groups):
            values, column = None if known is None else known.values[at], table[name]
            if reader.group_mode != "aware" and (values is None or values.dtype.kind in "OU"):
                column = stated(column)
            _refuse(rows_where(column.is_null()), name, "a group", table, ids)
            columns.append(
                np.array(column.to_pylist()) if values is None else group_values(column, values)
            )
        return _beside(columns)

    def _feature(self, table: Any, name: str, columns: FeatureColumns, ids: NDArray[Any]) -> Any:
        """Return a column of numbers as an array, and one of text or dates as it is in Arrow."""
        words = () if name in self.groups else self.missing_values
        column, strange = without_missing(table[name], words), np.empty(0, np.int64)
        holds, read = "text", column
        if name in columns.dates:
            holds, (read, strange) = "dates such as 2031-01-31", as_dates(column)
        elif name not in columns.texts:
            holds, (read, strange) = "numbers", as_numbers(column)
        _refuse(strange, name, holds, table, ids)
        if self.missing is not None and name not in self.missing:
            is_number = isinstance(read, np.ndarray)
            empty = np.flatnonzero(np.isnan(read)) if is_number else rows_where(read.is_null())
            _refuse(empty, name, f"{holds}, as in the history", table, ids)
        return read


def _ids(column: Any, name: str, kind: str) -> NDArray[Any]:
    """Return ids as the program has them, text or whole numbers."""
    texts = column.to_pylist()
    empty = sum(not text for text in texts)
    if empty:
        raise InputError(
            f"{empty:,} of {len(texts):,} applicants have no id in the column {name!r}; "
            f"give them one, or leave these rows out."
        )
    ids = np.array(texts, np.str_)
    if kind == "i":
        other = next((text for text in texts if not is_whole(text)), None)
        if other is not None:
            raise InputError(
                f"ids must be whole numbers of 64 bits, as in the history, and the column {name!r} "
                f"has {shortened(other)}; correct it."
            )
        return ids.astype(np.int64)
    check_spelling(ids)
    return ids


def _filled(table: Any, name: str) -> Any:
    """Return a column as an array; raise if something is missing."""
    column = table[name]
    if column.null_count:
        raise InputError(
            f"{column.null_count:,} of {len(column):,} applicants have no value in the "
            f"column {name!r}; fill it in, or leave these rows out."
        )
    return column.to_numpy()


def _refuse(rows: NDArray[np.intp], name: str, holds: str, table: Any, ids: NDArray[Any]) -> None:
    """Raise if there are rows in which a column does not hold what it must."""
    if rows.size:
        value = table[name][int(rows[0])].as_py()
        got = "nothing" if value is None else shortened(str(value))
        raise InputError(
            f"the column {name!r} must hold {holds}, got {got} for the applicant "
            f"{ids[rows[0]].item()!r} ({rows.size:,} of {table.num_rows:,} rows); correct these "
            f"rows, or leave them out."
        )


def _beside(columns: list[Any]) -> NDArray[Any]:
    """Return one column as it is, and several as a table."""
    return columns[0] if len(columns) == 1 else np.array(columns, object).T
