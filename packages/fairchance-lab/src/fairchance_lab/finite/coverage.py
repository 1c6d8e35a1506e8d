"""Which cells count as known: the paper's w(x, z) against τ."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairchance.core.coverage import CoverageRule
from fairchance.core.saved import saved
from fairchance.errors import InputError

__all__ = ["CellCoverage", "CountedOutcomes", "NormalisedG", "as_cell_coverage"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Heads = NDArray[np.int64]


@dataclass(frozen=True)
class CellCoverage(ABC):
    """Base of the coverage rules for cells. w never falls, so a known cell stays known.

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

        Parameters
        ----------
        g, acceptance
            g and acceptance probability of each cell under the policy of the round.
        n_people, first_batch
            Size of the batch of the round, and of the first round.
        """

    def coverage(self, summed: Floats, outcomes: Heads) -> Floats:  # noqa: ARG002
        """Return w.

        Parameters
        ----------
        summed
            f_0's acceptance plus what all rounds added, by cell.
        outcomes
            Observed outcomes by cell.
        """
        return summed

    def initial(self, past: Floats, outcomes: Heads, given: bool) -> Flags:  # noqa: ARG002
        """Return EXPLOIT_1, the cells in which f_0's own coverage is above τ.

        Parameters
        ----------
        past
            f_0's acceptance by cell.
        outcomes
            Observed outcomes of the history by cell.
        given
            Whether f_0 was given, rather than estimated from the history.
        """
        return past > self.threshold


@saved
class NormalisedG(CellCoverage):
    """w = f_0's acceptance + Σ_i g(x, z; f_i) / Σ_D g(·; f_i): the paper's theory.

    In every round g is scaled to sum to 1 over all known cells, so a round adds at least σ to each,
    and with τ < 1 no cell stays in the explore region for more than 1/σ rounds.

    Examples
    --------
    >>> NormalisedG().gained(np.array([1.0, 3.0]), np.ones(2), 100, 100).tolist()
    [0.25, 0.75]
    """

    def gained(self, g: Floats, acceptance: Floats, n_people: int, first_batch: int) -> Floats:  # noqa: ARG002
        """Return g over its sum."""
        return np.asarray(g / g.sum())


@saved
class CountedOutcomes(CellCoverage):
    """w = number of observed outcomes of the cell, those of the history included.

    Examples
    --------
    >>> rule = CountedOutcomes(threshold=10)
    >>> (rule.coverage(np.zeros(2), np.array([12, 1])) > rule.threshold).tolist()
    [True, False]
    """

    def gained(self, g: Floats, acceptance: Floats, n_people: int, first_batch: int) -> Floats:  # noqa: ARG002
        """Return 0: only outcomes add to coverage."""
        return np.zeros(g.shape)

    def coverage(self, summed: Floats, outcomes: Heads) -> Floats:  # noqa: ARG002
        """Return the observed outcomes of each cell."""
        return outcomes.astype(np.float64)

    def initial(self, past: Floats, outcomes: Heads, given: bool) -> Flags:
        """Return the cells with enough outcomes, and those that a given f_0 accepts."""
        return (outcomes > self.threshold) | (given & (past >= 0.5))


@dataclass(frozen=True)
class _PointwiseCoverage(CellCoverage):
    """A coverage rule for applicants, applied to cells: applicants of a cell are alike."""

    rule: CoverageRule | None = None

    def gained(self, g: Floats, acceptance: Floats, n_people: int, first_batch: int) -> Floats:
        assert self.rule is not None
        added = acceptance if self.rule.needs == "acceptance" else g
        return np.asarray(self.rule.round_weight(n_people, 1, first_batch) * added)


def as_cell_coverage(rule: CellCoverage | CoverageRule | None) -> CellCoverage:
    """Return a rule for cells; None means ``NormalisedG()``.

    Examples
    --------
    >>> from fairchance.core.coverage import SummedAcceptance
    >>> as_cell_coverage(SummedAcceptance(threshold=2)).threshold
    2
    """
    if rule is None:
        return NormalisedG()
    if isinstance(rule, CellCoverage):
        return rule
    if isinstance(rule, CoverageRule) and rule.needs in ("acceptance", "g"):
        return _PointwiseCoverage(rule.threshold, rule)
    raise InputError(
        f"coverage must be NormalisedG, CountedOutcomes, SummedAcceptance or SumOfG, because known "
        f"cells must stay known, got {rule!r}."
    )
