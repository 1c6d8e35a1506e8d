"""Populations of finitely many kinds of people, for which all quantities are exact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairchance.core.utility import Utility
from fairchance.errors import InputError
from fairchance.simulate.people import Floats, People
from fairchance.simulate.populations import Optimum, best_ranking

__all__ = ["FiniteDomain"]


@dataclass(frozen=True)
class FiniteDomain:
    """Cells (x, z), each with its share of the population and its P(good).

    Parameters
    ----------
    X
        Features, a row a cell.
    group
        Group of each cell.
    mass
        Share of the population in each cell; scaled to sum to one.
    good
        P(good) of each cell.
    features
        Names of the features; empty means x0, x1, …

    Examples
    --------
    >>> domain = FiniteDomain([[0.0], [1.0]], ["a", "b"], mass=[3, 1], good=[0.5, 0.9])
    >>> domain.mass.tolist(), round(domain.base_rate, 3)
    ([0.75, 0.25], 0.6)
    """

    X: Floats
    group: NDArray[np.str_]
    mass: Floats
    good: Floats
    features: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        X = np.atleast_2d(np.asarray(self.X, dtype=np.float64))
        group = np.asarray(self.group, dtype=np.str_)
        mass, good = (np.asarray(a, dtype=np.float64) for a in (self.mass, self.good))
        if not (mass.shape == good.shape == group.shape == X.shape[:1]):
            raise InputError(
                f"every cell needs features, a group, a mass and a probability: got {X.shape[0]} "
                f"rows of X, {group.size} groups, {mass.size} masses, {good.size} probabilities."
            )
        if not (np.all(mass >= 0) and 0 < mass.sum() < np.inf):
            raise InputError("mass must be at least 0 in every cell, and above 0 in some.")
        if not np.all((good >= 0) & (good <= 1)):
            raise InputError("good holds probabilities and must be in [0, 1] in every cell.")
        names = self.features or tuple(f"x{i}" for i in range(X.shape[1]))
        values = {"X": X, "group": group, "mass": mass / mass.sum(), "good": good}
        for name, value in (values | {"features": names}).items():
            object.__setattr__(self, name, value)
        if np.unique(self._codes(X, group), axis=0).shape[0] < X.shape[0]:
            raise InputError(
                "cells must differ in features or group; add up the masses of equal cells."
            )

    @property
    def groups(self) -> tuple[str, ...]:
        """All groups, in order."""
        return tuple(np.unique(self.group).tolist())

    @property
    def base_rate(self) -> float:
        """P(good) over the whole population."""
        return float(self.mass @ self.good)

    def draw(self, n: int, rng: np.random.Generator) -> People:
        """Draw people."""
        cell = rng.choice(self.mass.size, size=n, p=self.mass)
        return People(self.X[cell], self.group[cell])

    def probability_good(self, people: People) -> Floats:
        """Return P(good) of each person's cell."""
        return self.good[self.cell_of(people)]

    def cell_of(self, people: People) -> NDArray[np.intp]:
        """Return the number of each person's cell."""
        n_cells = self.mass.size
        both = np.vstack([self._codes(self.X, self.group), self._codes(people.X, people.group)])
        _, first, kind = np.unique(both, axis=0, return_index=True, return_inverse=True)
        cell = first[kind.ravel()[n_cells:]]
        if np.any(cell >= n_cells):
            unknown = int(np.flatnonzero(cell >= n_cells)[0])
            raise InputError(
                f"no cell holds the person with features {people.X[unknown].tolist()} in group "
                f"{people.group[unknown].item()!r}; draw people from this domain."
            )
        return cell

    def optimum(self, utility: Utility, alpha: float) -> Optimum:
        """Return the best threshold on P(good) with FDR ≤ α, exactly."""
        return best_ranking(self.good, self.mass, utility, alpha)

    def _codes(self, X: Floats, group: NDArray[np.str_]) -> Floats:
        names = np.unique(self.group)
        code = np.searchsorted(names, group).clip(max=names.size - 1)
        return np.column_stack([X, np.where(names[code] == group, code, -1)])
