"""How much the program decides: the ramp, pauses and the hand-over, as entries of the chain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairchance.ledger.base import Entry
from fairchance.methods.estimator import check_ramp

__all__ = ["Control", "read_ramp"]

_GIVEN = np.empty(0, np.bool_)  # whether the lender's decisions are given, a batch shows


def read_ramp(ramp: Any) -> float:
    """Return the ramp as a number; raise unless it is one from 0 to 1."""
    return check_ramp(ramp, _GIVEN)


@dataclass(frozen=True)
class Control:
    """The ramp in force, and whether the program is paused: then the ramp of its batches is 0.

    Examples
    --------
    >>> Control(0.05, paused=True).in_force
    0.0
    """

    ramp: float = 1.0
    paused: bool = False

    @property
    def in_force(self) -> float:
        """The ramp with which a batch is decided."""
        return 0.0 if self.paused else self.ramp

    @staticmethod
    def of(about: Mapping[str, Any], entries: Iterable[Entry]) -> Control:
        """Return the state after entries of kind ``control``; ``about`` has the first ramp."""
        control = Control(read_ramp(about.get("ramp", 1.0)))
        for entry in entries:
            control = control.after(entry)
        return control

    def after(self, entry: Entry) -> Control:
        """Return the state after an entry."""
        what = entry.says["what"] if entry.kind == "control" else ""
        if what == "ramp":
            return replace(self, ramp=float(entry.says["ramp"]))
        return replace(self, paused=what == "pause") if what in ("pause", "resume") else self
