"""A world: a stream of people, their hidden outcomes, and the decisions of the past."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fairchance.errors import InputError
from fairchance.simulate.feedback import Feedback, SealedOutcomes
from fairchance.simulate.histories import HistoryRule, PastCutoff, split_rule
from fairchance.simulate.people import Applicants, Floats, People, Table, WholePopulation
from fairchance.simulate.populations import FiniteDomain, Population
from fairchance.simulate.streams import Scaling, Standardisation, Stream

__all__ = ["Past", "World", "WorldBatch", "whole_population"]

_DRAWN = 50_000  # people of an infinite population
_SEED = 20_240  # of that draw


@dataclass(frozen=True)
class Past:
    """What is known about S_0: all features, past decisions, outcomes of the accepted.

    Attributes
    ----------
    people
        All past applicants.
    accepted
        Whether the past accepted each of them.
    outcomes
        1 good, 0 bad, NaN for rejected applicants.
    """

    people: People
    accepted: NDArray[np.bool_]
    outcomes: Floats


@dataclass(frozen=True)
class WorldBatch:
    """The applicants of a round and their outcomes, which only the world knows."""

    applicants: Applicants
    sealed: SealedOutcomes


class World:
    """A stream of people, the past's decisions on S_0, and how outcomes come back.

    Methods get people, never the world, so the outcomes of rejected people stay hidden. Stream,
    past and feedback have random generators of their own, which derive from the seed: methods
    cannot change what happens, and a world can be run any number of times.

    Parameters
    ----------
    stream
        S_0 and the batches.
    past
        Rule by which the past decided on S_0.
    feedback
        How outcomes come back; None means all, immediately and correct.
    scaling
        ``"history"``: features are standardised by S_0, as a real program could; ``"stream"``: by
        all rounds together, future included, as the paper did; ``"none"``: not standardised.
    seed
        Seed of everything random in the world.
    """

    def __init__(
        self,
        stream: Stream,
        past: HistoryRule,
        *,
        feedback: Feedback | None = None,
        scaling: Scaling = "history",
        seed: int,
    ) -> None:
        if scaling not in ("history", "stream", "none"):
            raise InputError(f"scaling must be 'history', 'stream' or 'none', got {scaling!r}.")
        self.stream = stream
        self._past = past
        self._feedback = Feedback() if feedback is None else feedback
        self._scaling = scaling
        self._seeds = np.random.SeedSequence(seed).spawn(3)

    @property
    def n_rounds(self) -> int:
        """Number of batches after S_0."""
        return self.stream.n_rounds

    def history(self) -> Past:
        """Return what is known about S_0."""
        first = self.full_history()
        raw = next(self.stream.applicants(self._generator(0)))
        chance = self._past.probability(raw, self.stream.features)
        accepted = self._generator(1).random(len(raw)) < chance
        outcomes = np.where(accepted, first.outcome, np.nan)
        for array in (accepted, outcomes):
            array.setflags(write=False)
        return Past(first.people, accepted, outcomes)

    def full_history(self) -> Applicants:
        """Return S_0 with all outcomes, for offline references only."""
        return next(self._prepared())

    def population(self) -> WholePopulation:
        """Return all people that the world draws from, with the features that methods get."""
        self.check_has_population()
        whole = whole_population(self.stream.source)
        people = whole.people if self.scale is None else self.scale.apply(whole.people)
        for array in (people.X, people.group):
            array.setflags(write=False)
        return replace(whole, people=people)

    def check_has_population(self) -> None:
        """Raise if the world drifts."""
        if self.stream.drifts:
            raise InputError(
                "a world that drifts has no single population, so its policies cannot be judged "
                "and no reference knows everybody; leave drift out, or set judged to false."
            )

    @cached_property
    def scale(self) -> Standardisation | None:
        """How features are standardised; None if they are not."""
        if self._scaling == "none":
            return None
        everyone = self.stream.applicants(self._generator(0))
        rows = [next(everyone).people.X]
        if self._scaling == "stream":
            rows += [applicants.people.X for applicants in everyone]
        return Standardisation.fit(np.concatenate(rows), self.stream.features, self.stream.unscaled)

    def past_cutoff(self) -> PastCutoff:
        """Return the past's cut-off rule; raise if it has none."""
        for rule in split_rule(self._past):
            if isinstance(rule, PastCutoff):
                return rule
        raise InputError("the past of this world has no cut-off rule; count segments by group.")

    def batches(self) -> Iterator[WorldBatch]:
        """Yield the batches with their sealed outcomes."""
        rng = self._generator(2)
        for number, applicants in enumerate(self._prepared()):
            if number > 0:
                yield WorldBatch(applicants, self._feedback.seal(applicants, rng))

    def _prepared(self) -> Iterator[Applicants]:
        """Yield S_0 and the batches with standardised, read-only features."""
        for applicants in self.stream.applicants(self._generator(0)):
            people = applicants.people
            if self.scale is not None:
                people = self.scale.apply(people)
            # Methods share these arrays, so none may change them.
            for array in (people.X, people.group, applicants.outcome):
                array.setflags(write=False)
            yield replace(applicants, people=people)

    def _generator(self, purpose: int) -> np.random.Generator:
        return np.random.default_rng(self._seeds[purpose])


def whole_population(source: Table | Population) -> WholePopulation:
    """Return the people of a data set or population, not standardised.

    These are all people of a data set with their outcomes; the cells of a finite domain; of any
    other population a large draw, the same in every repetition, with the true P(good).

    Examples
    --------
    >>> domain = FiniteDomain([[0.0], [1.0]], ["a", "b"], mass=[3, 1], good=[0.5, 0.9])
    >>> whole = whole_population(domain)
    >>> whole.mass.tolist(), whole.good.tolist()
    ([0.75, 0.25], [0.5, 0.9])
    """
    if isinstance(source, FiniteDomain):
        return WholePopulation(
            People(source.X.copy(), source.group.copy()), source.mass, source.good
        )
    if isinstance(source, Table):
        people, good = People(source.X.copy(), source.group.copy()), source.outcome.astype(float)
    else:
        people = source.draw(_DRAWN, np.random.default_rng(_SEED))
        good = source.probability_good(people)
    return WholePopulation(people, np.full(len(people), 1 / len(people)), good)
