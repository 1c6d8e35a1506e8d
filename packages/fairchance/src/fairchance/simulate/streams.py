"""Streams of people: S_0 first, then one batch per round; and how features are standardised."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np

from fairchance.errors import InputError
from fairchance.simulate.people import Applicants, Floats, People, Table
from fairchance.simulate.populations import Drifting, Population, draw_applicants

__all__ = [
    "Drawn",
    "Parts",
    "Resampled",
    "Scaling",
    "Standardisation",
    "Stream",
    "TableDrift",
    "repeated_rows_remarks",
]

Scaling = Literal["history", "stream", "none"]

_REPEATED_SHARE = 0.1  # of the rows may be drawn before a remark on repeated rows


class Stream(Protocol):
    """S_0 and the batches that follow."""

    @property
    def source(self) -> Table | Population:
        """Where people come from."""

    @property
    def drifts(self) -> bool:
        """Whether the people of later rounds differ from those of S_0."""

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""

    @property
    def unscaled(self) -> tuple[str, ...]:
        """Features that are not standardised."""

    @property
    def groups(self) -> tuple[str, ...]:
        """All groups that may occur, in order."""

    @property
    def n_rounds(self) -> int:
        """Number of batches after S_0."""

    def applicants(self, rng: np.random.Generator) -> Iterator[Applicants]:
        """Yield S_0, then the batches."""


@dataclass(frozen=True)
class Drawn:
    """New people from a population with known truth, which may drift.

    Parameters
    ----------
    population
        The population.
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
    def source(self) -> Population:
        """The population."""
        return self.population

    @property
    def drifts(self) -> bool:
        """Whether the population drifts."""
        return isinstance(self.population, Drifting)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.population.features

    @property
    def unscaled(self) -> tuple[str, ...]:
        """All features, since populations are standardised already."""
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
        Change of a person's log-weight in the draw, per round and standard deviation of that
        feature.
    spoil
        Probability per round that a good outcome turns bad: P(y | x) itself drifts.
    """

    feature: str
    tilt: float = 0.0
    spoil: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.spoil <= 1:
            raise InputError(f"spoil is a probability and must be in [0, 1], got {self.spoil}.")


@dataclass(frozen=True)
class _FromTable:
    """Common part of the streams of a data set."""

    table: Table

    @property
    def source(self) -> Table:
        """The data set."""
        return self.table

    @property
    def drifts(self) -> bool:
        """Whether the draw changes over the rounds."""
        return False

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.table.features

    @property
    def unscaled(self) -> tuple[str, ...]:
        """Features that are not standardised."""
        return self.table.unscaled

    @property
    def groups(self) -> tuple[str, ...]:
        """All groups of the data set."""
        return tuple(np.unique(self.table.group).tolist())


@dataclass(frozen=True)
class Resampled(_FromTable):
    """People drawn with replacement from a data set (the paper's German credit).

    The same row may come again in a later round, as another application.

    Parameters
    ----------
    table
        The data set.
    n_batch
        People in a round.
    n_rounds
        Rounds after S_0.
    drift
        How the draw changes over the rounds; None means no drift.
    n_history
        People in S_0; None means as many as in a round.
    """

    n_batch: int
    n_rounds: int
    drift: TableDrift | None = None
    n_history: int | None = None

    def __post_init__(self) -> None:
        _check_counts(n_batch=self.n_batch, n_rounds=self.n_rounds)
        if self.n_history is not None:
            _check_counts(n_history=self.n_history)
        if self.drift is not None and self.drift.feature not in self.table.features:
            raise InputError(
                f"the drifting feature must be one of {', '.join(self.table.features)}, "
                f"got {self.drift.feature!r}."
            )

    @property
    def drifts(self) -> bool:
        """Whether the draw changes over the rounds."""
        return self.drift is not None

    def applicants(self, rng: np.random.Generator) -> Iterator[Applicants]:
        """Yield S_0, then the batches."""
        for t in range(self.n_rounds + 1):
            n = self.n_batch if t else self.n_history or self.n_batch
            rows = rng.choice(len(self.table), size=n, p=self._weights(t))
            drawn = self.table.take(rows)
            if self.drift is not None and self.drift.spoil:
                chance = 1 - (1 - self.drift.spoil) ** t
                kept = rng.random(n) >= chance
                drawn = Applicants(drawn.people, drawn.outcome * kept, drawn.probability_good)
            yield drawn

    def _weights(self, round: int) -> Floats | None:
        if self.drift is None or self.drift.tilt == 0:
            return None
        value = self.table.X[:, self.features.index(self.drift.feature)]
        spread = float(value.std()) or 1.0
        weight = np.exp(self.drift.tilt * round * (value - value.mean()) / spread)
        return np.asarray(weight / weight.sum())


def repeated_rows_remarks(n_rows: int, n_drawn: int) -> list[str]:
    """Return a remark on repeated rows, if a repetition draws many people from few rows.

    Examples
    --------
    >>> repeated_rows_remarks(1_000_000, 20_000)
    []
    >>> print(*repeated_rows_remarks(4_000, 10_000))
    A repetition draws 10,000 people with replacement from 4,000 rows, so rows repeat, and a \
learner that memorises rows looks better than it would among new people (documentation: World \
files).
    """
    if n_drawn <= n_rows * _REPEATED_SHARE:
        return []
    return [
        f"A repetition draws {n_drawn:,} people with replacement from {n_rows:,} rows, so rows "
        f"repeat, and a learner that memorises rows looks better than it would among new people "
        f"(documentation: World files)."
    ]


@dataclass(frozen=True)
class Parts(_FromTable):
    """A data set, shuffled and cut into equal parts: the first is S_0, each other part a round.

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


@dataclass(frozen=True)
class Standardisation:
    """Subtracts a mean and divides by a deviation, column by column."""

    mean: Floats
    deviation: Floats

    @staticmethod
    def fit(X: Floats, features: tuple[str, ...], unscaled: tuple[str, ...]) -> Standardisation:
        """Learn from rows; columns in ``unscaled`` stay unchanged, constant ones are only centred.

        Examples
        --------
        >>> X = np.array([[1.0, 5.0], [3.0, 7.0]])
        >>> scale = Standardisation.fit(X, ("a", "b"), unscaled=("b",))
        >>> scale.apply(People(X, np.array(["A", "A"]))).X.tolist()
        [[-1.0, 5.0], [1.0, 7.0]]
        """
        keep = np.isin(features, unscaled)
        deviation = X.std(axis=0)
        deviation[keep | (deviation == 0)] = 1.0
        return Standardisation(np.where(keep, 0.0, X.mean(axis=0)), deviation)

    def apply(self, people: People) -> People:
        """Return the people with standardised features."""
        return replace(people, X=(people.X - self.mean) / self.deviation)

    def undo(self, people: People) -> People:
        """Return standardised people with their features as they were."""
        return replace(people, X=people.X * self.deviation + self.mean)
