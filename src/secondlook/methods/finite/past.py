"""f_0 on cells: given as a function or an array, or read off the history."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.errors import InputError
from secondlook.methods.finite.encoding import CellTable
from secondlook.methods.finite.intake import CellHistory

__all__ = ["CellPast", "call_on_cells", "check_reads_no_group", "read_past"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CellPast:
    """The past policy.

    Attributes
    ----------
    function
        A function of (X, group) that returns probabilities of acceptance; None if f_0 is known for
        the cells of the history or the domain only.
    acceptance
        Its probability of acceptance in the cells that were known at first.
    decides
        Whether there is a rule to follow; without one, round 1 is learned.
    given
        Whether it was given, rather than read off the history.
    group_mode
        Unless it is ``"aware"``, the function is one of X alone.
    """

    function: Callable[..., Any] | None
    acceptance: Floats
    decides: bool
    given: bool
    group_mode: str = "aware"

    def of_new(self, table: CellTable, n_known: int) -> Floats:
        """Return its probability of acceptance in the cells behind the known ones."""
        n_new = len(table) - n_known
        if self.function is None or n_new == 0:
            return np.zeros(n_new)
        return _call(self.function, table, slice(n_known, None), self.group_mode)

    def of(self, cells: NDArray[np.bool_]) -> CellPast:
        """Return the past policy where some cells only are known, of those at first and since."""
        return replace(self, acceptance=self.acceptance[cells[: self.acceptance.size]])


def read_past(given: Any, history: CellHistory, n_domain: int, group_mode: str) -> CellPast:
    """Return f_0 by what is given; None means the share accepted of each cell of the history."""
    table = history.placed.table
    if given is None:
        if len(history) == 0:
            raise InputError("without a history, past_policy must be given: nobody was accepted.")
        taken = np.bincount(history.placed.cell[history.accepted], minlength=len(table))
        heads = history.placed.heads
        share = np.divide(taken, heads, out=np.zeros(len(table)), where=heads > 0)
        return CellPast(None, share, decides=not history.accepted.all(), given=False)
    if callable(given):
        check_reads_no_group("past_policy", given, group_mode)
        acceptance = _call(given, table, slice(None), group_mode)
        return CellPast(given, acceptance, decides=True, given=True, group_mode=group_mode)
    values = np.asarray(given, dtype=np.float64)
    if n_domain == 0 or values.shape != (n_domain,):
        raise InputError(
            f"past_policy must be a function of (X, group), or an array with one probability per "
            f"cell of the domain, {n_domain} in all, got shape {values.shape}."
        )
    _check(values)
    return CellPast(None, np.pad(values, (0, len(table) - n_domain)), decides=True, given=True)


def check_reads_no_group(name: str, function: Callable[..., Any], group_mode: str) -> None:
    """Raise if a function of cells asks for their groups where these may not decide."""
    if group_mode == "aware":
        return
    try:
        inspect.signature(function).bind(None)
    except ValueError:  # written in another language, and says nothing of its arguments
        return
    except TypeError:
        raise InputError(
            f"{name} must be a function of X alone with group_mode={group_mode!r}, where the group "
            f"of a person may not decide, got {function!r}; leave the group out, or use "
            f"group_mode='aware'."
        ) from None


def call_on_cells(
    function: Callable[..., Any], table: CellTable, cells: slice, group_mode: str
) -> Floats:
    """Return a function of (X, group) of cells, or of X alone where groups may not decide."""
    if group_mode != "aware":
        return np.asarray(function(table.X[cells]), dtype=np.float64)
    return np.asarray(function(table.X[cells], table.groups[table.group[cells]]), dtype=np.float64)


def _call(function: Callable[..., Any], table: CellTable, cells: slice, group_mode: str) -> Floats:
    values = call_on_cells(function, table, cells, group_mode)
    n_cells = len(table.codes[cells])
    if values.shape != (n_cells,):
        raise InputError(
            f"past_policy must return one probability per cell, {n_cells} in all, "
            f"got shape {values.shape}."
        )
    _check(values)
    return values


def _check(values: Floats) -> None:
    if not np.all((values >= 0) & (values <= 1)):
        raise InputError(
            "past_policy holds probabilities of acceptance, which must be in [0, 1] in every cell."
        )
