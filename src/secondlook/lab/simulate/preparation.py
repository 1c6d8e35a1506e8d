"""Features as a method gets them: standardised, by what was known when the stream began."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from secondlook.lab.simulate.people import Floats, People

__all__ = ["Scaling", "Standardisation"]

Scaling = Literal["history", "stream", "none"]


@dataclass(frozen=True)
class Standardisation:
    """Subtract a mean and divide by a deviation, column by column."""

    mean: Floats
    deviation: Floats

    @staticmethod
    def of(X: Floats, features: tuple[str, ...], unscaled: tuple[str, ...]) -> Standardisation:
        """Learn from rows; columns named in ``unscaled``, and constant ones, keep their deviation.

        Examples
        --------
        >>> X = np.array([[1.0, 5.0], [3.0, 7.0]])
        >>> scale = Standardisation.of(X, ("a", "b"), unscaled=("b",))
        >>> scale.apply(People(X, np.array(["A", "A"]))).X.tolist()
        [[-1.0, 5.0], [1.0, 7.0]]
        """
        keep = np.isin(features, unscaled)
        deviation = X.std(axis=0)
        deviation[keep | (deviation == 0)] = 1.0
        return Standardisation(np.where(keep, 0.0, X.mean(axis=0)), deviation)

    def apply(self, people: People) -> People:
        """Return the people with standardised features."""
        return People((people.X - self.mean) / self.deviation, people.group)
