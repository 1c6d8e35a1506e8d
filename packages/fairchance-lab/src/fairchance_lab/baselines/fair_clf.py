"""FAIR-CLF: exploit only, refitted each round on every outcome so far, with group parity.

The paper's exploit-only comparison is a setting of Algorithm 1: all applicants count as known, rows
are not weighted, there is no exploration, and the history counts for ever. Its labelled rows become
its own past acceptances, so its estimate of mistakes is too low by construction; the comparison
shows by how much.
"""

from __future__ import annotations

from typing import Any

from fairchance.core.coverage import SummedAcceptance

__all__ = ["FAIR_CLF", "AllKnown"]

# Keys of a program's [classifier] table, without those of parity. α_exploit is all of α unless it
# follows a schedule, such as Algorithm 1's, for a comparison at equal budgets.
FAIR_CLF: dict[str, Any] = {
    "explore": False,
    "weights": "none",
    "min_outcomes": "none",  # the history is never left out
    "first_round": "learned",
}


class AllKnown(SummedAcceptance):
    """All applicants are in the exploit region, whatever past policies would have decided."""

    def level(self, n_rounds: int) -> float:  # noqa: ARG002
        """Return a level that no sum of probabilities can miss."""
        return -1.0
