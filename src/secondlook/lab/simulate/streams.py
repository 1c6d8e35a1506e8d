"""Where the people of a world come from, round by round: S_0 first, then one batch a round."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from secondlook.errors import InputError
from secondlook.lab.simulate.people import Applicants, Floats, Table
from secondlook.lab.simulate.populations import Drifting, Population, draw_applicants

__all__ = ["Drawn", "Parts", "Resampled", "Stream", "TableDrift"]


class Stream(Protocol):
    """S_0 and the batches that follow."""

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""

    @property
    def unscaled(self) -> tuple[str, ...]:
        """Features that preparation leaves as they are."""

    @property
    def groups(self) -> tuple[str, ...]:
        """All groups that may come, in order."""

    @property
    def n_rounds(self) -> int:
        """Number of batches after S_0."""

    def applicants(self, rng: np.random.Generator) -> Iterator[Applicants]:
        """Yield S_0, then the batches."""


@dataclass(frozen=True)
class Drawn:
    """Fresh people from a population with known truth, which may drift.

    Parameters
    ----------
    population
        Where they come from.
    n_batch
        People in a round.
    n_rounds
        Rounds after S_0.
    n_history
        People in S_0; None means as many as in a round.
    """

    population: Population
    n_batch: int
    n_rounds: int
    n_history: int | None = None

    def __post_init__(self) -> None:
        _check_counts(n_batch=self.n_batch, n_rounds=self.n_rounds)
        if self.n_history is not None:
            _check_counts(n_history=self.n_history)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.population.features

    @property
    def unscaled(self) -> tuple[str, ...]:
        """Populations come standardised: no feature is scaled again."""
        return self.features

    @property
    def groups(self) -> tuple[str, ...]:
        """All groups of the population."""
        return self.population.groups

    def applicants(self, rng: np.random.Generator) -> Iterator[Applicants]:
        """Yield S_0, then the batches."""
        yield draw_applicants(self._population(0), self.n_history or self.n_batch, rng)
        for t in range(1, self.n_rounds + 1):
            yield draw_applicants(self._population(t), self.n_batch, rng)

    def _population(self, round: int) -> Population:
        if isinstance(self.population, Drifting):
            return self.population.at(round)
        return self.population


@dataclass(frozen=True)
class TableDrift:
    """How draws from a data set change over the rounds.

    Parameters
    ----------
    feature
        Name of the feature whose distribution drifts.
    tilt
        Log-weight per round and standard deviation of that feature with which people are drawn.
    spoil
        Probability per round with which a good outcome turns bad: P(y | x) itself drifts.
    """

    feature: str
    tilt: float = 0.0
    spoil: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.spoil <= 1:
            raise InputError(f"spoil is a probability and must be in [0, 1], got {self.spoil}.")


@dataclass(frozen=True)
class _FromTable:
    """What streams of a data set have in common."""

    table: Table

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.table.features

    @property
    def unscaled(self) -> tuple[str, ...]:
        """Features that preparation leaves as they are."""
        return self.table.unscaled

    @property
    def groups(self) -> tuple[str, ...]:
        """All groups of the data set."""
        return tuple(np.unique(self.table.group).tolist())


@dataclass(frozen=True)
class Resampled(_FromTable):
    """People drawn with replacement from a data set (the paper's German credit).

    Somebody may come again in a later round, as another application.

    Parameters
    ----------
    table
        The data set.
    n_batch
        People in a round, and in S_0.
    n_rounds
        Rounds after S_0.
    drift
        How the draw changes over the rounds; None means not at all.
    """

    n_batch: int
    n_rounds: int
    drift: TableDrift | None = None

    def __post_init__(self) -> None:
        _check_counts(n_batch=self.n_batch, n_rounds=self.n_rounds)
        if self.drift is not None and self.drift.feature not in self.table.features:
            raise InputError(
                f"feature {self.drift.feature!r} is to drift, but the data set has only "
                f"{', '.join(self.table.features)}."
            )

    def applicants(self, rng: np.random.Generator) -> Iterator[Applicants]:
        """Yield S_0, then the batches."""
        for t in range(self.n_rounds + 1):
            rows = rng.choice(len(self.table), size=self.n_batch, p=self._weights(t))
            drawn = self.table.take(rows)
            if self.drift is not None and self.drift.spoil:
                chance = 1 - (1 - self.drift.spoil) ** t
                kept = rng.random(self.n_batch) >= chance
                drawn = Applicants(drawn.people, drawn.outcome * kept, drawn.probability_good)
            yield drawn

    def _weights(self, round: int) -> Floats | None:
        if self.drift is None or self.drift.tilt == 0:
            return None
        value = self.table.X[:, self.features.index(self.drift.feature)]
        spread = float(value.std()) or 1.0
        weight = np.exp(self.drift.tilt * round * (value - value.mean()) / spread)
        return np.asarray(weight / weight.sum())


@dataclass(frozen=True)
class Parts(_FromTable):
    """A data set shuffled and cut into equal parts: one is S_0, each other one a round.

    Parameters
    ----------
    table
        The data set.
    n_parts
        Number of parts; the paper has 40.
    """

    n_parts: int = 40

    def __post_init__(self) -> None:
        _check_counts(n_parts=self.n_parts)
        if not 2 <= self.n_parts <= len(self.table):
            raise InputError(
                f"n_parts must be between 2 and the {len(self.table)} rows, got {self.n_parts}."
            )

    @property
    def n_rounds(self) -> int:
        """One round for every part but the first."""
        return self.n_parts - 1

    def applicants(self, rng: np.random.Generator) -> Iterator[Applicants]:
        """Yield S_0, then the batches."""
        for rows in np.array_split(rng.permutation(len(self.table)), self.n_parts):
            yield self.table.take(rows)


def _check_counts(**counts: int) -> None:
    for name, value in counts.items():
        if not (isinstance(value, int | np.integer) and value >= 1):
            raise InputError(f"{name} must be a whole number of at least 1, got {value!r}.")
