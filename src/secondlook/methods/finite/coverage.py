"""Which cells count as known: the paper's w(x, z) against τ, on cells."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from secondlook.core.coverage import CoverageRule
from secondlook.errors import InputError
from secondlook.methods.finite.counts import Counts

__all__ = ["CellCoverage", "CountedOutcomes", "NormalisedG", "as_cell_coverage"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class CellCoverage(ABC):
    """Base of the rules for cells. w never falls, so that no known cell becomes unknown.

    Parameters
    ----------
    threshold
        τ: cells with w above it are exploited.
    """

    threshold: float = 0.5

    def __post_init__(self) -> None:
        if not (np.isfinite(self.threshold) and self.threshold >= 0):
            raise InputError(f"threshold (τ) must be a number ≥ 0, got {self.threshold}.")

    @abstractmethod
    def gained(self, g: Floats, acceptance: Floats, n_people: int, first_batch: int) -> Floats:
        """Return what a round adds to the sum of each cell.

        ``g`` and ``acceptance`` are those of this round's policy, which decided ``n_people``;
        ``first_batch`` people were decided in the first round.
        """

    def coverage(self, summed: Floats, counts: Counts) -> Floats:  # noqa: ARG002
        """Return w, given f_0's acceptance with what all rounds added, and the head counts."""
        return summed

    def begins(self, past: Floats, outcomes: NDArray[np.int64], given: bool) -> Flags:  # noqa: ARG002
        """Return EXPLOIT_1: where f_0's own coverage is above τ.

        ``past`` is f_0's acceptance, ``given`` whether it was given rather than read off the
        history, ``outcomes`` the observed outcomes of the history.
        """
        return past > self.threshold


class NormalisedG(CellCoverage):
    """w = f_0's acceptance + Σ_i g(x, z; f_i) / Σ_D g(·; f_i): the paper's theory.

    g is scaled in every round to sum to one over all known cells, so that a round adds at least σ
    to each, and with τ < 1 nobody stays in the explore region for more than 1/σ rounds.

    Examples
    --------
    >>> NormalisedG().gained(np.array([1.0, 3.0]), np.ones(2), 100, 100).tolist()
    [0.25, 0.75]
    """

    def gained(self, g: Floats, acceptance: Floats, n_people: int, first_batch: int) -> Floats:  # noqa: ARG002
        """Return g over its sum."""
        return np.asarray(g / g.sum())


class CountedOutcomes(CellCoverage):
    """w = number of observed outcomes of the cell, the history's included.

    Examples
    --------
    >>> counts = Counts(np.array([90, 50]), np.array([8, 0]), np.array([4, 1]))
    >>> rule = CountedOutcomes(threshold=10)
    >>> (rule.coverage(np.zeros(2), counts) > rule.threshold).tolist()
    [True, False]
    """

    def gained(self, g: Floats, acceptance: Floats, n_people: int, first_batch: int) -> Floats:  # noqa: ARG002
        """Return 0: deciding adds nothing, outcomes do."""
        return np.zeros(g.shape)

    def coverage(self, summed: Floats, counts: Counts) -> Floats:  # noqa: ARG002
        """Return the observed outcomes of each cell."""
        return counts.outcomes.astype(np.float64)

    def begins(self, past: Floats, outcomes: NDArray[np.int64], given: bool) -> Flags:
        """Return where enough outcomes were seen, and what a given f_0 accepts."""
        return (outcomes > self.threshold) | (given & (past >= 0.5))


@dataclass(frozen=True)
class _Ruled(CellCoverage):
    """A rule for people, applied to cells: all people of a cell are alike."""

    rule: CoverageRule | None = None

    def gained(self, g: Floats, acceptance: Floats, n_people: int, first_batch: int) -> Floats:
        assert self.rule is not None
        added = acceptance if self.rule.needs == "acceptance" else g
        return np.asarray(self.rule.round_weight(n_people, 1, first_batch) * added)


def as_cell_coverage(rule: CellCoverage | CoverageRule | None) -> CellCoverage:
    """Return a rule for cells; None means ``NormalisedG()``.

    Examples
    --------
    >>> from secondlook.core.coverage import SummedAcceptance
    >>> as_cell_coverage(SummedAcceptance(threshold=2)).threshold
    2
    """
    if rule is None:
        return NormalisedG()
    if isinstance(rule, CellCoverage):
        return rule
    if isinstance(rule, CoverageRule) and rule.needs in ("acceptance", "g"):
        return _Ruled(rule.threshold, rule)
    raise InputError(
        f"coverage must be NormalisedG, CountedOutcomes, SummedAcceptance or SumOfG, so that known "
        f"cells stay known, got {rule!r}."
    )
