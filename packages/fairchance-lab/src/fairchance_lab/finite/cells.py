"""Cells, the distinct combinations of features and group, and the counts of each cell.

Cells are numbered once: new values and new cells come after the known ones, sorted among
themselves, so that the order of rows does not matter. Placing a batch does not change the table; it
returns the table that results if the batch is recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from fairchance.core.saved import saved
from fairchance.errors import InputError
from fairchance.frames import as_array, is_frame, is_missing, with_columns
from fairchance_lab.finite.coverage import CellCoverage

__all__ = [
    "CellColumn",
    "CellCounts",
    "CellPast",
    "CellState",
    "CellTable",
    "PlacedApplicants",
    "call_on_cells",
    "columns_of",
    "eta",
    "past_probabilities",
    "sigma",
]

Codes = NDArray[np.int32]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Heads = NDArray[np.int64]

_MAX_KEY = 2**62  # keys of combinations stay below it


class CellTypeError(InputError, TypeError):
    """Values of a type that cells cannot have."""


def columns_of(
    X: Any, expected: tuple[str, ...] | None
) -> tuple[list[Any], tuple[str, ...] | None, str]:
    """Split a table into columns, with their names and the kind of table.

    Examples
    --------
    >>> columns, names, backend = columns_of([[1, 5], [2, 6]], None)
    >>> [column.tolist() for column in columns], names, backend
    ([[1, 2], [5, 6]], None, 'numpy')
    """
    if is_frame(X):
        frame = nw.from_native(with_columns(X, expected), eager_only=True)
        names = tuple(map(str, frame.columns))
        columns = [np.asarray(column.to_numpy()) for column in frame.iter_columns()]
        return columns, names, frame.implementation.value
    if issparse(X):
        raise CellTypeError("X is sparse, and sparse data are not supported; pass a dense table.")
    table = as_array(X)
    if table.ndim == 1 and table.dtype.kind != "f":
        return [table], None, "numpy"
    if table.ndim != 2:
        raise InputError(
            f"X must have a column per feature, or be a column of integer cell numbers, got shape "
            f"{table.shape}. Reshape your data."
        )
    if table.shape[1] == 0:
        raise InputError(
            f"X has 0 feature(s) (shape={table.shape}) while a minimum of 1 is required."
        )
    return [table[:, j] for j in range(table.shape[1])], None, "numpy"


@saved
@dataclass(frozen=True)
class CellColumn:
    """The known values of a column, numbers or strings; the code of a value is its position."""

    values: NDArray[Any]

    def encode(self, column: NDArray[Any], name: str) -> tuple[Codes, CellColumn]:
        """Return the code of each row, and the column extended by its new values.

        Examples
        --------
        >>> codes, extended = CellColumn(np.array([7])).encode(np.array([5, 7, 5]), "age")
        >>> codes.tolist(), extended.values.tolist()
        ([1, 0, 1], [7, 5])
        """
        distinct, position = np.unique(_checked_values(column, name), return_inverse=True)
        extended = self._extend(distinct, name)
        order = np.argsort(extended.values)
        codes = order[np.searchsorted(extended.values, distinct, sorter=order)]
        return codes.astype(np.int32).take(position), extended

    def select(self, codes: Codes) -> tuple[CellColumn, Codes]:
        """Return the column with only the values of some codes, and their new codes.

        Examples
        --------
        >>> column, codes = CellColumn(np.array([7, 5, 6])).select(np.array([2, 0, 2], np.int32))
        >>> column.values.tolist(), codes.tolist()
        ([7, 6], [1, 0, 1])
        """
        used, position = np.unique(codes, return_inverse=True)
        return CellColumn(self.values[used]), position.reshape(codes.shape).astype(np.int32)

    def _extend(self, distinct: NDArray[Any], name: str) -> CellColumn:
        if self.values.size == 0:
            return CellColumn(distinct)
        if distinct.size == 0:
            return self
        kinds = [
            "strings" if values.dtype.kind == "U" else "numbers"
            for values in (distinct, self.values)
        ]
        if kinds[0] != kinds[1]:  # numpy would turn the numbers into strings
            raise InputError(
                f"column {name} holds {kinds[0]}, but held {kinds[1]} before; convert it."
            )
        new = np.setdiff1d(distinct, self.values)
        return CellColumn(np.concatenate([self.values, new])) if new.size else self


def _checked_values(column: NDArray[Any], name: str) -> NDArray[Any]:
    """Return a column of numbers or strings; raise if values are missing or of another type."""
    n_missing = int(is_missing(column).sum())
    if column.dtype.kind == "f":
        n_missing = int((~np.isfinite(column)).sum())
    if n_missing:
        raise InputError(
            f"column {name} has missing or infinite values in {n_missing} rows; fill them in."
        )
    if column.dtype.kind == "O":
        column = np.array(column.tolist())
    if column.dtype.kind == "b":
        return column.astype(np.uint8)
    if column.dtype.kind == "c":
        raise CellTypeError(f"Complex data not supported, got them in column {name}; convert it.")
    if column.dtype.kind not in "iufU" or column.ndim != 1:
        raise CellTypeError(
            f"column {name} holds values of type {column.dtype}; each argument must be a string or "
            f"a number."
        )
    return column


@dataclass(frozen=True)
class PlacedApplicants:
    """The cells of a batch.

    Attributes
    ----------
    cell
        Cell of each applicant.
    heads
        Number of applicants in each cell of ``table``.
    table
        The table of cells, with the new cells of the batch.
    """

    cell: NDArray[np.int32]
    heads: Heads
    table: CellTable


@saved
@dataclass(frozen=True)
class CellTable:
    """All known cells.

    Attributes
    ----------
    columns
        The features.
    codes
        A row per cell: the code of its value in each column, and the code of its group.
    names
        Names of the features, for messages.
    groups
        Labels of the groups; a single one if cells have no groups.

    Examples
    --------
    >>> table = CellTable.empty(("age",), np.array(["a", "b"]))
    >>> placed = table.place([np.array([30, 40, 30])], np.array([0, 0, 1]))
    >>> placed.cell.tolist(), placed.heads.tolist(), placed.table.X.tolist()
    ([0, 2, 1], [1, 1, 1], [[30], [30], [40]])
    """

    columns: tuple[CellColumn, ...]
    codes: Codes
    names: tuple[str, ...]
    groups: NDArray[Any]

    @staticmethod
    def empty(names: tuple[str, ...], groups: NDArray[Any]) -> CellTable:
        """Return a table without cells."""
        columns = tuple(CellColumn(np.empty(0)) for _ in names)
        return CellTable(columns, np.empty((0, len(names) + 1), np.int32), names, groups)

    def __len__(self) -> int:
        return int(self.codes.shape[0])

    @property
    def group(self) -> NDArray[np.intp]:
        """Code of the group of each cell."""
        return self.codes[:, -1].astype(np.intp)

    @property
    def X(self) -> NDArray[Any]:  # noqa: N802 - scikit-learn's name for features
        """Features, a row per cell; objects if some are strings."""
        codes = self.codes.T[:-1]
        parts = [column.values[code] for column, code in zip(self.columns, codes, strict=True)]
        if any(part.dtype.kind == "U" for part in parts):
            parts = [part.astype(object) for part in parts]
        return np.column_stack(parts)

    def select(self, cells: Flags) -> CellTable:
        """Return the table of some cells, without feature values that none of them has."""
        codes = self.codes[cells]
        parts = [
            column.select(code) for column, code in zip(self.columns, codes.T[:-1], strict=True)
        ]
        columns = tuple(column for column, _ in parts)
        selected = np.column_stack([*(code for _, code in parts), codes[:, -1]])
        return replace(self, columns=columns, codes=selected.astype(np.int32))

    def place(self, columns: list[NDArray[Any]], group: NDArray[np.intp]) -> PlacedApplicants:
        """Return the cell of each applicant; unknown combinations become new cells."""
        if len(columns) != len(self.columns):
            raise InputError(
                f"X has {len(columns)} features, but FiniteClassifier is expecting "
                f"{len(self.columns)} features as input."
            )
        encoded = [
            known.encode(column, repr(name))
            for known, column, name in zip(self.columns, columns, self.names, strict=True)
        ]
        sizes = [*(column.values.size for _, column in encoded), self.groups.size]
        batch = np.column_stack([*(codes for codes, _ in encoded), group]).astype(np.int32)
        rows = np.vstack([self.codes, batch])
        key, n_keys = np.zeros(len(rows), np.int64), 1
        for code, size in zip(rows.T, sizes, strict=True):
            if n_keys * max(size, 1) >= _MAX_KEY:
                # Number the combinations so far, so that keys of many columns do not overflow.
                distinct, key = np.unique(key, return_inverse=True)
                n_keys = distinct.size
            key = key * size + code
            n_keys *= max(size, 1)
        distinct, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        known = first < len(self)
        number = np.empty(distinct.size, np.int32)
        number[known] = first[known]
        number[~known] = len(self) + np.arange(np.count_nonzero(~known))
        table = replace(
            self,
            columns=tuple(column for _, column in encoded),
            codes=np.vstack([self.codes, rows[first[~known]]]),
        )
        cell = number[inverse[len(self) :]]
        return PlacedApplicants(cell, np.bincount(cell, minlength=len(table)), table)


@dataclass(frozen=True)
class CellCounts:
    """Number of applicants and of observed outcomes in each cell.

    Attributes
    ----------
    applicants
        All who applied, S_0 to S_t.
    good, bad
        Observed outcomes.
    by_group
        Good and bad outcomes with a column per group, if a fit may see groups but cells do not;
        else None.

    Examples
    --------
    >>> counts = CellCounts(np.array([30, 10]), np.array([4, 1]), np.array([1, 1]))
    >>> counts.outcomes.tolist(), counts.good_share().tolist()
    ([5, 2], [0.8, 0.5])
    """

    applicants: Heads
    good: Heads
    bad: Heads
    by_group: tuple[Heads, Heads] | None = None

    @property
    def outcomes(self) -> Heads:
        """Observed outcomes, good or bad."""
        return self.good + self.bad

    @property
    def pooled_share(self) -> float:
        """Share of good among all outcomes; one half without outcomes."""
        total = int(self.outcomes.sum())
        return int(self.good.sum()) / total if total else 0.5

    def good_share(self) -> Floats:
        """Return the share of good outcomes of each cell; the pooled share without outcomes."""
        observed = self.outcomes
        share = np.full(observed.size, self.pooled_share)
        np.divide(self.good, observed, out=share, where=observed > 0)
        return share


def eta(
    counts: CellCounts,
    exploit: Flags,
    weights: Literal["applicants", "none"] = "applicants",
    *,
    by_group: bool = False,
) -> tuple[Floats, Floats]:
    """Return η_w(x, 1, z) and η_w(x, 0, z) of every cell (the paper's section 3).

    η_w(x, y, z) is proportional to [(x, z) ∈ EXPLOIT_t] · share of the cell among all applicants ·
    share of the outcome y among the observed outcomes of the cell. A cell without outcomes has no
    mass. With ``weights="none"`` each observed outcome counts the same.

    With ``by_group`` the result has a column per group: the outcomes of a cell represent all its
    applicants, of every group.

    Examples
    --------
    >>> counts = CellCounts(np.array([60, 40]), np.array([9, 1]), np.array([1, 1]))
    >>> [mass.round(3).tolist() for mass in eta(counts, np.array([True, True]))]
    [[0.54, 0.2], [0.06, 0.2]]
    """
    observed = counts.outcomes
    per_outcome = np.ones(observed.size)
    if weights == "applicants":
        per_outcome = np.divide(
            counts.applicants, observed, out=np.zeros(observed.size), where=observed > 0
        )
    per_outcome = np.where(exploit, per_outcome, 0.0)
    per_outcome /= float((per_outcome * observed).sum()) or 1.0
    if by_group and counts.by_group is not None:
        good, bad = counts.by_group
        return per_outcome[:, None] * good, per_outcome[:, None] * bad
    return per_outcome * counts.good, per_outcome * counts.bad


def sigma(g: ArrayLike, group: ArrayLike | None = None, of: object = None) -> float:
    """Return σ = min g / Σ g over the domain, or σ(z) with the minimum over one group.

    Parameters
    ----------
    g
        g of every cell.
    group, of
        Groups of the cells, and the group z.

    Examples
    --------
    >>> sigma([1, 1, 2]), sigma([1, 1, 2], ["a", "a", "b"], of="b")
    (0.25, 0.5)
    """
    sizes = np.asarray(g, dtype=np.float64)
    if sizes.size == 0 or not (np.all(sizes >= 0) and 0 < sizes.sum() < np.inf):
        raise InputError("g must be at least 0 in every cell, and above 0 in some.")
    in_group = np.ones(sizes.shape, np.bool_) if group is None else np.asarray(group) == of
    if not in_group.any():
        raise InputError(f"no cell belongs to the group {of!r}; name one that has cells.")
    return float(sizes[in_group].min() / sizes.sum())


@saved
@dataclass(frozen=True)
class CellPast:
    """The past policy f_0.

    Attributes
    ----------
    function
        A function of (X, group) of cells that returns probabilities of acceptance; None if f_0 is
        known only for the cells of the history or of the domain.
    decides
        Whether round 1 can follow it.
    given
        Whether it was given, rather than estimated from the history.
    group_mode
        Unless it is ``"aware"``, the function takes X only.
    cut
        Probability from which the share of the history is accepted that the past accepted.
    """

    function: Callable[..., Any] | None
    decides: bool
    given: bool
    group_mode: str = "aware"
    cut: float = 0.5

    def new_cells(self, table: CellTable, n_known: int) -> Floats:
        """Return the probability of acceptance in the cells after the first ``n_known``."""
        n_new = len(table) - n_known
        if self.function is None or n_new == 0:
            return np.zeros(n_new)
        return past_probabilities(self.function, table, slice(n_known, None), self.group_mode)


def call_on_cells(
    function: Callable[..., Any], table: CellTable, cells: slice, group_mode: str
) -> Floats:
    """Return a function of (X, group) of cells, or of X alone if groups may not decide."""
    if group_mode != "aware":
        return np.asarray(function(table.X[cells]), dtype=np.float64)
    return np.asarray(function(table.X[cells], table.groups[table.group[cells]]), dtype=np.float64)


def past_probabilities(
    function: Callable[..., Any], table: CellTable, cells: slice, group_mode: str
) -> Floats:
    """Return the probabilities of acceptance that a past policy gives to cells, checked."""
    values = call_on_cells(function, table, cells, group_mode)
    n_cells = len(table.codes[cells])
    if values.shape != (n_cells,):
        raise InputError(
            f"past_policy must return one probability per cell, {n_cells} in all, "
            f"got shape {values.shape}."
        )
    if not np.all((values >= 0) & (values <= 1)):
        raise InputError("past_policy must return probabilities of acceptance in [0, 1].")
    return values


@saved
@dataclass(frozen=True)
class CellState:
    """The cells and their coverage; arrays have an entry per cell.

    Attributes
    ----------
    table
        The known cells.
    summed
        f_0's acceptance plus the coverage gained in every round.
    known
        EXPLOIT of the last round; before round 1, the cells that f_0 covers.
    n_domain
        Number of cells of the domain given to ``fit``, which come first and are never dropped.
    """

    table: CellTable
    summed: Floats
    known: Flags
    n_domain: int

    def extend(self, table: CellTable, past: CellPast, rule: CellCoverage) -> CellState:
        """Add the new cells of a table; they are known only if f_0 covers them."""
        new = past.new_cells(table, len(self.table))
        known = rule.initial(new, np.zeros(new.size, np.int64), past.given)
        return replace(
            self,
            table=table,
            summed=np.concatenate([self.summed, new]),
            known=np.concatenate([self.known, known]),
        )

    def select(self, cells: Flags) -> CellState:
        """Return the state of some cells."""
        return replace(
            self,
            table=self.table.select(cells),
            summed=self.summed[cells],
            known=self.known[cells],
        )

    def exploit(self, rule: CellCoverage, outcomes: Heads, min_outcomes: int) -> Flags:
        """Return EXPLOIT_t: the known cells, and those with enough coverage and outcomes."""
        covered = rule.coverage(self.summed, outcomes) > rule.threshold
        return self.known | (covered & (outcomes >= min_outcomes))
