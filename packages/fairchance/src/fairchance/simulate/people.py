"""People as methods see them, and applicants with the outcomes that only a world knows."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["Applicants", "People", "Table", "WholePopulation"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class People:
    """Features, groups and, if they are on record, today's decisions; methods may see these."""

    X: Floats
    group: NDArray[np.str_]
    today: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return int(self.X.shape[0])


@dataclass(frozen=True)
class Applicants:
    """People with their outcomes; methods never get this object.

    Attributes
    ----------
    people
        Features and groups.
    outcome
        1 good, 0 bad.
    probability_good
        True P(good | x, z), or NaN if only the outcome is known.
    """

    people: People
    outcome: NDArray[np.int8]
    probability_good: Floats

    def __len__(self) -> int:
        return len(self.people)


@dataclass(frozen=True)
class WholePopulation:
    """All people that a world draws from, which only judges and references know.

    Attributes
    ----------
    people
        Features and groups.
    mass
        Share of the population that each person represents.
    good
        P(good), or the outcome if only the outcome is known.
    """

    people: People
    mass: Floats
    good: Floats


@dataclass(frozen=True)
class Table:
    """A data set: people whose outcomes are all known.

    Attributes
    ----------
    name
        Short name, such as ``"german"``.
    source
        One sentence on the rows and their origin, which reports repeat.
    features
        Names of the columns of ``X``.
    X
        Features as numbers, not scaled.
    group
        Group of each person, as text.
    outcome
        1 good, 0 bad.
    unscaled
        Features that are not standardised.
    group_feature
        The feature that holds the group, if any; otherwise methods append the group themselves.
    """

    name: str
    source: str
    features: tuple[str, ...]
    X: Floats
    group: NDArray[np.str_]
    outcome: NDArray[np.int8]
    unscaled: tuple[str, ...] = ()
    group_feature: str | None = None

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @cached_property
    def fingerprint(self) -> str:
        """A hash of names and values: the same if and only if the data are the same."""
        digest = hashlib.sha256(repr((self.features, self.unscaled)).encode())
        digest.update(np.ascontiguousarray(self.X, dtype="<f8").tobytes())
        digest.update("\0".join(self.group.tolist()).encode())
        digest.update(self.outcome.astype(np.int8).tobytes())
        return digest.hexdigest()

    def take(self, rows: NDArray[np.intp]) -> Applicants:
        """Return some rows with outcomes; their true probabilities are unknown."""
        return Applicants(
            People(self.X[rows], self.group[rows]), self.outcome[rows], np.full(rows.size, np.nan)
        )
