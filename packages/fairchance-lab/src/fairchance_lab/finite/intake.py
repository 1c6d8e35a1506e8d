"""The input of the finite classifier: applicants become cells, and f_0 a probability per cell."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.core.groups import Attributes
from fairchance.core.saved import saved
from fairchance.errors import InputError
from fairchance.frames import is_frame
from fairchance.methods.algorithm1.past import matched_cut
from fairchance.people.ids import as_ids, id_bits
from fairchance.people.intake import Batch, History, Intake, one_group
from fairchance.people.likeness import Checks
from fairchance_lab.finite.cells import (
    CellPast,
    CellTable,
    PlacedApplicants,
    columns_of,
    past_probabilities,
)

__all__ = ["CellBatch", "CellHistory", "CellIntake", "check_reads_no_group", "read_past"]


@dataclass(frozen=True)
class CellBatch(Batch):
    """Applicants to decide on; their feature X is the number of their cell."""

    placed: PlacedApplicants


@dataclass(frozen=True)
class CellHistory(History):
    """Applicants decided on in the past; their feature X is the number of their cell."""

    placed: PlacedApplicants


@saved
class CellIntake(Intake):
    """Reads a domain, a history and batches, and places applicants in cells.

    Parameters
    ----------
    pos_label
        Label of the good outcome; None if outcomes are 0 and 1, False and True, or −1 and 1.
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

    def read_domain(self, domain: Any, grouped: bool) -> CellTable | None:
        """Read the cells known beforehand, in the order given; ``grouped`` if applicants are."""
        if domain is None:
            return None
        if not (isinstance(domain, tuple | list) and len(domain) == 2):
            raise InputError("domain must be a pair: features of the cells, and groups or None.")
        aware = self.group_mode == "aware"
        if (not aware and domain[1] is not None) or (aware and grouped and domain[1] is None):
            wanted = "groups, as sensitive_features has them" if aware else "no groups"
            raise InputError(f"domain must have {wanted}, with group_mode={self.group_mode!r}.")
        columns, names, _ = columns_of(domain[0], None)
        group = self._learn_groups(domain[1], len(columns[0]))
        placed = self._new_table(columns, names).place(columns, group)
        if np.any(placed.heads > 1):
            raise InputError("domain must contain each cell once; leave out the repetitions.")
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
            return self._empty_history(table)
        columns, names, backend = columns_of(X, self.names)
        n = len(columns[0])
        if table is None or self.group_mode != "aware":
            group = self._learn_groups(sensitive_features, n)
        else:
            _, group = self.read_groups(sensitive_features, n)
        if table is None:
            table = self._new_table(columns, names)
        placed = self._place(table, columns, group)
        taken = self.read_accepted(accepted, n)
        outcome = self._first_outcomes(y, taken, n)
        if accepted is not None:
            self.check_good()
        given = as_ids(np.arange(n) if ids is None else ids, n)
        self.id_kind = given.dtype.kind
        history = CellHistory(
            placed.cell,
            ids=given,
            bits=self._bits(given),
            backend=backend,
            accepted=taken,
            outcome=outcome,
            placed=placed,
            sensitive=self.sensitive,
            **self.seen_by(group),
        )
        self.passed(history)
        self.learn_likeness(_table(X, columns), group)
        return history

    def place_batch(
        self,
        table: CellTable,
        X: Any,
        sensitive_features: Any,
        ids: Any,
        checks: Checks,
        unlike_history: bool,
    ) -> CellBatch:
        """Read a batch that must be like the history; it may be empty."""
        self.check_good()
        columns, _, backend = columns_of(X, self.names)
        n = len(columns[0])
        known, group = self.read_groups(sensitive_features, n)
        placed = self._place(table, columns, group)
        given: NDArray[Any]
        if ids is None:
            given = self._next_ids(n)
            bits = id_bits(given)
        else:
            given = as_ids(ids, n)
            given = (self._own_kind(given) if n else given).copy()  # callers may change theirs
            bits = self._bits(given)
        return CellBatch(
            placed.cell,
            ids=given,
            bits=bits,
            backend=backend,
            placed=placed,
            sensitive=known,
            **self.seen_by(group),
            **self.compare(_table(X, columns), known, group, checks, unlike_history=unlike_history),
        )

    def place_applicants(
        self, table: CellTable, X: Any, sensitive_features: Any
    ) -> PlacedApplicants:
        """Place applicants who are not decided on; groups are needed only if cells have them."""
        columns, _, _ = columns_of(X, self.names)
        n = len(columns[0])
        if sensitive_features is None and self.group_mode != "aware":
            return self._place(table, columns, one_group(n))
        return self._place(table, columns, self.read_groups(sensitive_features, n)[1])

    def _place(
        self, table: CellTable, columns: list[Any], group: NDArray[np.intp]
    ) -> PlacedApplicants:
        """Place applicants in cells by what decisions may see of their groups."""
        return table.place(columns, self.seen_by(group)["group"])

    def _learn_groups(self, sensitive_features: Any, n: int) -> NDArray[np.intp]:
        """Remember the groups of a domain or a history, and return the code of each row."""
        if sensitive_features is None:
            return one_group(n)
        self.sensitive, codes = Attributes.of(sensitive_features, n)
        self.groups = self.sensitive.labels
        return codes

    def _new_table(self, columns: list[Any], names: tuple[str, ...] | None) -> CellTable:
        self.names = names
        groups = self.groups if self.group_mode == "aware" else None
        return CellTable.empty(
            names or tuple(str(j) for j in range(len(columns))),
            np.zeros(1, np.int8) if groups is None else groups,
        )

    def _empty_history(self, table: CellTable | None) -> CellHistory:
        if table is None:
            raise InputError("without a history, domain and past_policy must be given.")
        self.classes = np.array([0, 1])
        cell, group = np.zeros(0, np.int32), one_group(0)
        return CellHistory(
            cell,
            group,
            np.zeros(0, np.int64),
            np.zeros(0, np.uint64),
            "numpy",
            np.zeros(0, np.bool_),
            np.zeros(0, np.int8),
            PlacedApplicants(cell, np.zeros(len(table), np.int64), table),
        )


def _table(X: Any, columns: list[Any]) -> Any:
    """Return a table whose columns can be compared: a frame, or numbers; None if it is neither."""
    if is_frame(X):
        return X
    numbers = all(column.dtype.kind in "biuf" for column in columns)
    return np.column_stack(columns).astype(np.float64) if numbers else None


def read_past(
    given: Any, history: CellHistory, n_domain: int, group_mode: str
) -> tuple[CellPast, NDArray[np.float64]]:
    """Return f_0 and its acceptance by cell; without one, the share accepted in the history."""
    table, heads = history.placed.table, history.placed.heads
    accepted = np.bincount(history.placed.cell[history.accepted], minlength=len(table))
    if given is None:
        if len(history) == 0:
            raise InputError("without a history, past_policy must be given.")
        share = np.divide(accepted, heads, out=np.zeros(len(table)), where=heads > 0)
        cut = matched_cut(share, accepted, heads)
        return CellPast(None, decides=not history.accepted.all(), given=False, cut=cut), share
    if callable(given):
        check_reads_no_group("past_policy", given, group_mode)
        acceptance = past_probabilities(given, table, slice(None), group_mode)
        cut = matched_cut(acceptance, accepted, heads)
        past = CellPast(given, decides=True, given=True, group_mode=group_mode, cut=cut)
        return past, acceptance
    values = np.asarray(given, dtype=np.float64)
    if n_domain == 0 or values.shape != (n_domain,):
        raise InputError(
            f"past_policy must be a function, or one probability for each of the {n_domain} cells "
            f"of the domain, got shape {values.shape}."
        )
    if not np.all((values >= 0) & (values <= 1)):
        raise InputError("past_policy must hold probabilities of acceptance in [0, 1].")
    acceptance = np.pad(values, (0, len(table) - n_domain))
    cut = matched_cut(acceptance, accepted, heads)
    return CellPast(None, decides=True, given=True, cut=cut), acceptance


def check_reads_no_group(name: str, function: Callable[..., Any], group_mode: str) -> None:
    """Raise if a function of cells takes their groups although groups may not decide."""
    if group_mode == "aware":
        return
    try:
        inspect.signature(function).bind(None)
    except ValueError:  # a builtin without a signature
        return
    except TypeError:
        raise InputError(
            f"{name} must be a function of X alone with group_mode={group_mode!r}, got "
            f"{function!r}."
        ) from None
