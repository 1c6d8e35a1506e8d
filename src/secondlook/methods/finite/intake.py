"""The edge of the finite classifier: people become cells, names are checked, outcomes read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from secondlook.core.groups import Attributes
from secondlook.errors import InputError
from secondlook.frames import as_array, is_frame
from secondlook.methods.finite.encoding import CellTable, Placed, columns_of
from secondlook.people.ids import as_ids, id_bits
from secondlook.people.intake import Intake

__all__ = ["CellBatch", "CellHistory", "CellIntake"]


@dataclass(frozen=True)
class CellBatch:
    """People to decide on, by cell.

    ``group`` is everybody's group where cells have none, for reports and fits that may see it.
    """

    placed: Placed
    ids: NDArray[Any]
    bits: NDArray[np.uint64]
    backend: str
    group: NDArray[np.intp] | None

    def __len__(self) -> int:
        return int(self.placed.cell.size)

    def heads_by_group(
        self,
        accepts: NDArray[np.bool_],
        accepted: NDArray[np.bool_],
        drawn: NDArray[np.intp],
        k: int,
    ) -> NDArray[np.int64]:
        """Count who applied, was accepted and was drawn, a row each and a column for each group.

        ``accepts`` is by cell, ``accepted`` by person, ``drawn`` are rows; there are ``k`` groups.
        """
        if self.group is not None:
            rows = (self.group, self.group[accepted], self.group[drawn])
            return np.array([np.bincount(one, minlength=k) for one in rows])
        of_cell, heads = self.placed.table.group, self.placed.heads
        people = np.bincount(of_cell, heads, k)
        sure = np.bincount(of_cell, heads * accepts, k)
        explored = np.bincount(of_cell[self.placed.cell[drawn]], minlength=k)
        return np.array([people, sure + explored, explored]).astype(np.int64)


@dataclass(frozen=True)
class CellHistory(CellBatch):
    """People decided on in the past; ``outcome`` has one entry per accepted person."""

    accepted: NDArray[np.bool_]
    outcome: NDArray[np.int8]


class CellIntake(Intake):
    """What the history looked like, and readers for everything that must look the same.

    Parameters
    ----------
    pos_label
        Label of the good outcome; None means the larger of the two.
    group_mode
        ``"aware"``: a cell is a row of features in a group; otherwise a row of features.
    """

    def __init__(self, pos_label: Any, group_mode: str) -> None:
        super().__init__(
            raw=True,
            allow_missing=False,
            group_as_feature=False,
            pos_label=pos_label,
            group_mode=group_mode,
        )
        self.has_groups = False

    @property
    def n_fit_groups(self) -> int:
        """Groups that a fit tells apart within a cell."""
        return self.n_groups if self.group_mode == "blind" else 1

    def read_domain(self, domain: Any, grouped: bool) -> CellTable | None:
        """Read the cells that are known beforehand, and number them as they stand there."""
        if domain is None:
            return None
        if not (isinstance(domain, tuple | list) and len(domain) == 2):
            raise InputError(
                "domain must be a pair: the features of the cells, and their groups (None if there "
                "are none)."
            )
        if self.group_mode != "aware" and domain[1] is not None:
            raise InputError(
                f"cells have no groups with group_mode={self.group_mode!r}, so domain must be a "
                f"pair of features and None, got groups; leave them out, each row once."
            )
        self.has_groups = domain[1] is not None
        if grouped and not self.has_groups and self.group_mode == "aware":
            raise InputError(
                "sensitive_features was given, but the cells of the domain have no groups; give "
                "both or neither."
            )
        columns, names, _ = columns_of(domain[0], None)
        placed = self._new_table(columns, names).place([*columns, self._groups(domain[1], columns)])
        if np.any(placed.heads > 1):
            raise InputError(
                "a cell is a combination of features and group and may stand in the domain once "
                "only; leave out the repetitions."
            )
        return replace(placed.table, codes=placed.table.codes[placed.cell])

    def place_history(
        self,
        table: CellTable | None,
        X: Any,
        y: Any,
        accepted: Any,
        sensitive_features: Any,
        ids: Any,
    ) -> CellHistory:
        """Read the history and remember its columns, groups, outcome labels and kind of ids."""
        if X is None:
            return self._no_history(table)
        columns, names, backend = columns_of(X, self.names)
        if table is None or self.group_mode != "aware":
            self.has_groups = sensitive_features is not None
        if table is None:
            table = self._new_table(columns, names)
        n, group = len(columns[0]), None
        if self.group_mode == "aware":
            placed = self._place(table, columns, sensitive_features, grow=len(table) == 0)
            self._remember_groups(placed.table, sensitive_features)
        else:
            group = self._first_groups(sensitive_features, n) if self.has_groups else None
            placed = table.place([*columns, np.zeros(n, np.int8)])
        taken = self.read_accepted(accepted, n)
        outcome = self._first_outcomes(y, taken, n)
        given = as_ids(np.arange(n) if ids is None else as_array(ids), n)
        self.id_kind = given.dtype.kind
        bits = self._bits(given)
        self.has_seen(given)
        return CellHistory(placed, given, bits, backend, group, taken, outcome)

    def _remember_groups(self, table: CellTable, sensitive_features: Any) -> None:
        """Take note of the groups that cells have, for whoever counts by group."""
        if self.has_groups:
            levels = np.arange(table.groups.size)[None]
            self.groups = table.groups
            self.sensitive = Attributes(_name(sensitive_features), (table.groups,), levels)

    def place_batch(self, table: CellTable, X: Any, sensitive_features: Any, ids: Any) -> CellBatch:
        """Read a batch that must look like the history."""
        columns, _, backend = columns_of(X, self.names)
        placed, group = self._place_people(table, columns, sensitive_features)
        n = len(columns[0])
        if ids is None:
            if self.id_kind != "i":
                raise InputError("ids must be given, since those of the history were strings.")
            following = np.arange(self.next_id, self.next_id + n)
            return CellBatch(placed, following, id_bits(following), backend, group)
        given = as_ids(as_array(ids), n)
        given = (self._own_kind(given) if n else given).copy()  # callers may change theirs
        return CellBatch(placed, given, self._bits(given), backend, group)

    def place_people(self, table: CellTable, X: Any, sensitive_features: Any) -> Placed:
        """Find the cells of people who are asked about; groups only where cells have them."""
        columns, _, _ = columns_of(X, self.names)
        if sensitive_features is None and self.group_mode != "aware":
            return table.place([*columns, np.zeros(len(columns[0]), np.int8)])
        return self._place_people(table, columns, sensitive_features)[0]

    def _place_people(
        self, table: CellTable, columns: list[Any], sensitive_features: Any
    ) -> tuple[Placed, NDArray[np.intp] | None]:
        """Return the cells of people and, where these have no groups, everybody's group."""
        if self.group_mode == "aware":
            return self._place(table, columns, sensitive_features, grow=False), None
        n = len(columns[0])
        group = self.read_groups(sensitive_features, n)
        placed = table.place([*columns, np.zeros(n, np.int8)])
        return placed, group if self.has_groups else None

    def has_seen(self, ids: NDArray[Any]) -> None:
        """Take note of ids that were recorded: default ids go on after the largest."""
        if ids.dtype.kind == "i" and ids.size:
            self.next_id = max(self.next_id, int(ids.max()) + 1)

    def _no_history(self, table: CellTable | None) -> CellHistory:
        if table is None:
            raise InputError("without a history, domain and past_policy must be given.")
        self.classes = np.array([0, 1])
        self._remember_groups(table, None)
        placed = Placed(np.zeros(0, np.int32), np.zeros(len(table), np.int64), table)
        nobody = np.zeros(0, np.bool_)
        ids, bits = np.zeros(0, np.int64), np.zeros(0, np.uint64)
        return CellHistory(placed, ids, bits, "numpy", None, nobody, np.zeros(0, np.int8))

    def _new_table(self, columns: list[Any], names: tuple[str, ...] | None) -> CellTable:
        self.names = names
        words = names or tuple(str(j) for j in range(len(columns)))
        return CellTable.empty((*(repr(word) for word in words), "sensitive_features"))

    def _groups(self, values: Any, columns: list[Any]) -> Any:
        """Return the column of groups; all the same if there are none."""
        n = len(columns[0])
        if not self.has_groups:
            if values is not None:
                raise InputError(
                    "sensitive_features was not given to fit, so no group is known; "
                    "give it to fit too, or leave it out."
                )
            return np.zeros(n, np.int8)
        if values is None:
            raise InputError(
                "sensitive_features is missing: fit got groups, so pass one of them for each row."
            )
        series = columns_of(values, None)[0] if is_frame(values) else [_column(values)]
        if len(series) != 1 or len(series[0]) != n:
            raise InputError(
                f"sensitive_features must be one column with one value per row of X, {n} in all, "
                f"got {len(series)} columns of {len(series[0])} values."
            )
        return series[0]

    def _place(
        self, table: CellTable, columns: list[Any], sensitive_features: Any, *, grow: bool
    ) -> Placed:
        placed = table.place([*columns, self._groups(sensitive_features, columns)])
        known = table.groups.size
        if not grow and placed.table.groups.size > known:
            strange = placed.table.groups[known].item()
            allowed = ", ".join(map(repr, table.groups.tolist()))
            raise InputError(
                f"sensitive_features holds the group {strange!r}, which the history does not have; "
                f"known are {allowed}; map it to one of these, or fit again with a history that "
                f"has it."
            )
        return placed


def _column(values: Any) -> Any:
    """Return a column of any kind as it is, without turning a series of words into objects."""
    if isinstance(values, np.ndarray) and values.ndim == 2 and values.shape[1] == 1:
        return values[:, 0]
    native = nw.from_native(values, series_only=True, pass_through=True)
    return native if isinstance(native, nw.Series) else np.asarray(values)


def _name(values: Any) -> tuple[str] | None:
    """Return the name of a column of groups, if it has one."""
    native = nw.from_native(values, allow_series=True, pass_through=True)
    if isinstance(native, nw.DataFrame):
        return (str(native.columns[0]),)
    named = isinstance(native, nw.Series) and native.name
    return (str(native.name),) if named else None
