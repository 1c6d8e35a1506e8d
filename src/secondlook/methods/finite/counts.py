"""Head counts of cells, and what they estimate: the paper's η_w."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secondlook.errors import InputError

__all__ = ["Counts", "eta", "sigma"]

Floats = NDArray[np.float64]
Heads = NDArray[np.int64]


@dataclass(frozen=True)
class Counts:
    """How many applied and how many outcomes were seen, by cell.

    Attributes
    ----------
    applicants
        Everybody who applied, S_0 to S_t.
    good, bad
        Observed outcomes.

    Examples
    --------
    >>> counts = Counts.zeros(2).with_applicants(np.array([30, 10]))
    >>> counts = counts.with_outcomes(np.array([4, 1]), np.array([1, 1]))
    >>> counts.outcomes.tolist(), counts.good_share().tolist()
    ([5, 2], [0.8, 0.5])
    """

    applicants: Heads
    good: Heads
    bad: Heads

    @staticmethod
    def zeros(n_cells: int) -> Counts:
        """Return counts of nobody."""
        return Counts(*(np.zeros(n_cells, np.int64) for _ in range(3)))

    @property
    def outcomes(self) -> Heads:
        """Observed outcomes, good or bad."""
        return self.good + self.bad

    def with_applicants(self, heads: Heads) -> Counts:
        """Add people who applied; cells behind the known ones are new."""
        more = (0, heads.size - self.applicants.size)
        applicants = np.pad(self.applicants, more) + heads
        return Counts(applicants, np.pad(self.good, more), np.pad(self.bad, more))

    def with_outcomes(self, good: Heads, bad: Heads) -> Counts:
        """Add outcomes, or take away those that were wrong."""
        return replace(self, good=self.good + good, bad=self.bad + bad)

    def without(self, applicants: Heads, good: Heads, bad: Heads) -> Counts:
        """Take away people who are forgotten, and their outcomes; numbers are below 0."""
        return replace(self.with_outcomes(good, bad), applicants=self.applicants + applicants)

    def of(self, cells: NDArray[np.bool_]) -> Counts:
        """Return the counts of some cells."""
        return Counts(self.applicants[cells], self.good[cells], self.bad[cells])

    def good_share(self) -> Floats:
        """Return the share of good outcomes of each cell; the pooled share where none was seen."""
        seen = self.outcomes
        share = np.full(seen.size, self.pooled_share)
        np.divide(self.good, seen, out=share, where=seen > 0)
        return share

    @property
    def pooled_share(self) -> float:
        """Share of good among all outcomes; one half before there are any."""
        total = int(self.outcomes.sum())
        return int(self.good.sum()) / total if total else 0.5


def eta(
    counts: Counts,
    exploit: NDArray[np.bool_],
    weights: Literal["applicants", "none"] = "applicants",
    by_group: tuple[Heads, Heads] | None = None,
) -> tuple[Floats, Floats]:
    """Return η_w(x, 1, z) and η_w(x, 0, z) of every cell (the paper's section 3).

    η_w(x, y, z) is proportional to [(x, z) ∈ EXPLOIT_t] · share of the cell among everybody who
    applied · share of the outcome y among the cell's observed outcomes. A cell without outcomes has
    no mass. With ``weights="none"`` the observed outcomes are counted as they are.

    Where cells hold people of several groups, ``by_group`` has the good and the bad outcomes with a
    column a group, and so has the answer: the outcomes of a cell stand for its applicants whatever
    the group.

    Examples
    --------
    >>> counts = Counts(np.array([60, 40]), np.array([9, 1]), np.array([1, 1]))
    >>> [one.round(3).tolist() for one in eta(counts, np.array([True, True]))]
    [[0.54, 0.2], [0.06, 0.2]]
    """
    seen = counts.outcomes
    per_outcome = np.ones(seen.size)
    if weights == "applicants":
        per_outcome = np.divide(counts.applicants, seen, out=np.zeros(seen.size), where=seen > 0)
    per_outcome = np.where(exploit, per_outcome, 0.0)
    total = float((per_outcome * seen).sum()) or 1.0
    if by_group is not None:
        each = (per_outcome / total)[:, None]
        return each * by_group[0], each * by_group[1]
    return per_outcome * counts.good / total, per_outcome * counts.bad / total


def sigma(g: ArrayLike, group: ArrayLike | None = None, of: object = None) -> float:
    """Return σ = min g / Σ g over the domain, or with the least of one group, σ(z).

    Parameters
    ----------
    g
        g of every cell.
    group, of
        Groups of the cells, and the one whose σ(z) is asked for.

    Examples
    --------
    >>> sigma([1, 1, 2]), sigma([1, 1, 2], ["a", "a", "b"], of="b")
    (0.25, 0.5)
    """
    sizes = np.asarray(g, dtype=np.float64)
    if sizes.size == 0 or not (np.all(sizes >= 0) and 0 < sizes.sum() < np.inf):
        raise InputError(
            "g must be a finite number of at least 0 in every cell, and above 0 in some."
        )
    mine = np.ones(sizes.shape, np.bool_) if group is None else np.asarray(group) == of
    if not mine.any():
        raise InputError(f"no cell belongs to the group {of!r}; name one that has cells.")
    return float(sizes[mine].min() / sizes.sum())
