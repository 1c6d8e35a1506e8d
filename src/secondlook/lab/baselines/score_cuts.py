"""Per-group cuts of a score on a grid: the best ones, with or without equal rates of groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["CUTS", "MATCHES", "Rates", "best_cuts", "rates_of"]

Floats = NDArray[np.float64]

CUTS = np.round(np.arange(1.005, 0.0, -0.005), 3)  # strictest first: nobody reaches it
MATCHES = ("equal_opportunity", "equal_acceptance", "shared", "per_group")


@dataclass(frozen=True)
class Rates:
    """Rates at every cut, a row a group.

    Attributes
    ----------
    good, bad
        Share of the good, and of the bad, at the cut or above.
    base
        Share of good in each group.
    """

    good: Floats
    bad: Floats
    base: Floats

    @property
    def accepted(self) -> Floats:
        """Share of everybody at the cut or above."""
        return self.base[:, None] * self.good + (1 - self.base[:, None]) * self.bad


def rates_of(
    score: Floats, outcome: NDArray[np.int8], group: NDArray[np.intp], n_groups: int
) -> Rates:
    """Return the rates of labelled people; a group without good, or without bad, gets everybody's.

    Parameters
    ----------
    score, outcome, group
        People whose outcomes are known, some of them good and some bad.
    n_groups
        Number of groups.

    Examples
    --------
    >>> outcome, group = np.array([1, 1, 0]), np.zeros(3, int)
    >>> rates = rates_of(np.array([0.9, 0.6, 0.7]), outcome, group, 1)
    >>> at = int(np.flatnonzero(CUTS == 0.65)[0])
    >>> float(rates.good[0, at]), float(rates.bad[0, at])
    (0.5, 1.0)
    """
    curves = np.array(
        [
            [_reached(score, (outcome == y) & (group == z), outcome == y) for y in (1, 0)]
            for z in range(n_groups)
        ]
    )
    seen = np.bincount(group, minlength=n_groups)
    good = np.bincount(group, outcome, n_groups)
    base = np.where(seen > 0, good / np.maximum(seen, 1), outcome.mean())
    return Rates(curves[:, 0], curves[:, 1], base)


def best_cuts(rates: Rates, share: Floats, gain: float, loss: float, match: str) -> Floats:
    """Return each group's cut: the best of those that match.

    Maximises ``Σ_z share_z·(base_z·good_z·gain − (1−base_z)·bad_z·loss)``. Groups match if each has
    its strictest cut at which a rate reaches one common level (``"equal_opportunity"``: that of the
    good; ``"equal_acceptance"``: that of everybody), if their cut is the same (``"shared"``), or
    always (``"per_group"``). Of equally good ones the strictest are taken.

    Examples
    --------
    >>> score = np.array([0.9, 0.6, 0.4, 0.8, 0.3, 0.2])
    >>> outcome, group = np.array([1, 1, 0, 1, 1, 0]), np.array([0, 0, 0, 1, 1, 1])
    >>> rates = rates_of(score, outcome, group, 2)
    >>> best_cuts(rates, np.array([0.5, 0.5]), 1.0, 1.0, "equal_opportunity").tolist()
    [0.6, 0.3]
    """
    base = rates.base[:, None]
    worth = share[:, None] * (base * rates.good * gain - (1 - base) * rates.bad * loss)
    if match == "per_group":
        return np.asarray(CUTS[worth.argmax(axis=1)])
    if match == "shared":
        return np.full(share.size, CUTS[worth.sum(axis=0).argmax()])
    rate = rates.good if match == "equal_opportunity" else rates.accepted
    levels = np.unique(rate)
    # Rates rise from cut to cut, so the strictest cut that reaches a level is found by bisection.
    at = np.array([np.searchsorted(one, levels - 1e-12) for one in rate])
    at = np.minimum(at, CUTS.size - 1)
    total = np.take_along_axis(worth, at, axis=1).sum(axis=0)
    return np.asarray(CUTS[at[:, total.argmax()]])


def _reached(score: Floats, mine: NDArray[np.bool_], everybody: NDArray[np.bool_]) -> Floats:
    chosen = np.sort(score[mine if mine.any() else everybody])
    return 1 - np.searchsorted(chosen, CUTS - 1e-12) / max(1, chosen.size)
