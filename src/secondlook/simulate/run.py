"""The loop: a world hands out batches and reveals outcomes of the accepted only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from secondlook.decisions import Decisions
from secondlook.simulate.populations import People, Population

__all__ = ["Method", "Result", "World", "run"]

Floats = NDArray[np.float64]


class Method(Protocol):
    """Anything that decides batches and observes outcomes."""

    def decide(self, X: Any, *, sensitive_features: Any = None, ids: Any = None) -> Decisions:
        """Decide a batch."""

    def observe(self, ids: Any, outcomes: Any) -> Any:
        """Take in outcomes of accepted people."""


class World:
    """A population with its hidden outcomes.

    A method is handed people, never the world: the outcome of somebody rejected stays in here.

    Parameters
    ----------
    population
        Where people come from.
    seed
        Seed of everything random in the world; what a method does cannot change it.
    """

    def __init__(self, population: Population, seed: int) -> None:
        self.population = population
        self._rng = np.random.default_rng(seed)

    def history(self, n: int) -> tuple[People, NDArray[np.bool_], Floats]:
        """Return people of the past, who was accepted, and outcomes (NaN for the rejected)."""
        people = self.population.draw(n, self._rng)
        accepted = self._rng.random(n) < self.population.probability_accepted_before(people)
        outcomes = self._outcomes(people)
        return people, accepted, np.where(accepted, outcomes, np.nan)

    def batches(self, n_rounds: int, n_batch: int) -> Iterator[tuple[People, _Hidden]]:
        """Yield batches with their sealed outcomes."""
        for _ in range(n_rounds):
            people = self.population.draw(n_batch, self._rng)
            yield people, _Hidden(self._outcomes(people), self.population.probability_good(people))

    def _outcomes(self, people: People) -> NDArray[np.int8]:
        good = self._rng.random(len(people)) < self.population.probability_good(people)
        return good.astype(np.int8)


@dataclass(frozen=True)
class _Hidden:
    outcomes: NDArray[np.int8]
    probability_good: Floats

    def revealed(self, decided: Decisions) -> NDArray[np.int8]:
        """Return the outcomes of the accepted, in the order of the batch."""
        return self.outcomes[decided.accepted]


@dataclass(frozen=True)
class Result:
    """One round as only the world can tell it."""

    people: People
    decided: Decisions
    outcomes: NDArray[np.int8]
    probability_good: Floats


def run(
    method: Method,
    world: World,
    *,
    n_rounds: int,
    n_batch: int,
    progress: Callable[[int], None] | None = None,
) -> Iterator[Result]:
    """Drive a method through a world, round by round; outcomes arrive after each round."""
    for number, (people, hidden) in enumerate(world.batches(n_rounds, n_batch), start=1):
        decided = method.decide(people.X, sensitive_features=people.group)
        method.observe(decided.ids[decided.accepted], hidden.revealed(decided))
        if progress is not None:
            progress(number)
        yield Result(people, decided, hidden.outcomes, hidden.probability_good)
