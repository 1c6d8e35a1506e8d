"""f_0 on cells: given as a function or an array, or read off the history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.errors import InputError
from secondlook.finite.encoding import CellTable
from secondlook.finite.intake import CellHistory

__all__ = ["CellPast", "read_past"]

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
    """

    function: Callable[..., Any] | None
    acceptance: Floats
    decides: bool
    given: bool

    def of_new(self, table: CellTable, n_known: int) -> Floats:
        """Return its probability of acceptance in the cells behind the known ones."""
        n_new = len(table) - n_known
        if self.function is None or n_new == 0:
            return np.zeros(n_new)
        return _call(self.function, table, slice(n_known, None))


def read_past(given: Any, history: CellHistory, n_domain: int) -> CellPast:
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
        return CellPast(given, _call(given, table, slice(None)), decides=True, given=True)
    values = np.asarray(given, dtype=np.float64)
    if n_domain == 0 or values.shape != (n_domain,):
        raise InputError(
            f"past_policy must be a function of (X, group), or an array with one probability per "
            f"cell of the domain, {n_domain} in all, got shape {values.shape}."
        )
    _check(values)
    return CellPast(None, np.pad(values, (0, len(table) - n_domain)), decides=True, given=True)


def _call(function: Callable[..., Any], table: CellTable, cells: slice) -> Floats:
    group = table.groups[table.group[cells]]
    values = np.asarray(function(table.X[cells], group), dtype=np.float64)
    if values.shape != group.shape:
        raise InputError(
            f"past_policy must return one probability per cell, {group.size} in all, "
            f"got shape {values.shape}."
        )
    _check(values)
    return values


def _check(values: Floats) -> None:
    if not np.all((values >= 0) & (values <= 1)):
        raise InputError(
            "past_policy holds probabilities of acceptance, which must be in [0, 1] in every cell."
        )
