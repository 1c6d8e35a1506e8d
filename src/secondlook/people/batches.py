"""People as the edge hands them in: a batch to decide on, or a history of past decisions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from secondlook.people.ids import increasing

__all__ = ["Batch", "History", "one_group", "seen_by"]


@dataclass(frozen=True)
class Batch:
    """People to decide on.

    ``group`` is what decisions may see, ``fit_group`` what a fit to their outcomes may see and
    ``report_group`` what is counted; None for the last two means the same as ``group``.
    """

    X: Any
    group: NDArray[np.intp]
    ids: NDArray[np.generic]
    bits: NDArray[np.uint64]
    backend: str
    fit_group: NDArray[np.intp] | None = field(default=None, kw_only=True)
    report_group: NDArray[np.intp] | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        return int(self.group.shape[0])

    @cached_property
    def in_order(self) -> bool:
        """Whether people come in the order of their ids."""
        return increasing(self.bits)

    @property
    def tells_groups(self) -> bool:
        """Whether ``group`` may hold more than one group."""
        return self.group.strides != (0,)

    def for_fit(self) -> Self:
        """Return the same people with the groups that a fit may see."""
        return self if self.fit_group is None else replace(self, group=self.fit_group)


@dataclass(frozen=True)
class History(Batch):
    """People decided on in the past; ``outcome`` has one entry per accepted person."""

    accepted: NDArray[np.bool_]
    outcome: NDArray[np.int8]


def one_group(n: int) -> NDArray[np.intp]:
    """Return n people's groups where there is one: an array that takes no memory."""
    return np.broadcast_to(np.intp(0), (n,))


def seen_by(codes: NDArray[np.intp], group_mode: str) -> dict[str, NDArray[np.intp]]:
    """Return people's groups as decisions, fits and reports see them, by the names of a batch.

    Whoever may not see a group sees everybody in the first one.

    Examples
    --------
    >>> {name: group.tolist() for name, group in seen_by(np.array([0, 1]), "blind").items()}
    {'group': [0, 0], 'fit_group': [0, 1], 'report_group': [0, 1]}
    """
    if group_mode == "aware":
        return {"group": codes}
    nothing = one_group(codes.size)
    fit = codes if group_mode == "blind" else nothing
    return {"group": nothing, "fit_group": fit, "report_group": codes}
