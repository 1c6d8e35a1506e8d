"""A world: a stream of people, their hidden outcomes, and the decisions of the past."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from secondlook.errors import InputError
from secondlook.lab.simulate.feedback import Feedback, SealedOutcomes
from secondlook.lab.simulate.histories import HistoryRule, PastCutoff, split_rule
from secondlook.lab.simulate.people import Applicants, Floats, People
from secondlook.lab.simulate.streams import Scaling, Standardisation, Stream

__all__ = ["Past", "World", "WorldBatch"]


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
        scale: Standardisation | None = None
        if self._scaling == "stream":
            scale = self._standardisation(
                np.concatenate([a.people.X for a in self.stream.applicants(self._generator(0))])
            )
        for applicants in self.stream.applicants(self._generator(0)):
            people = applicants.people
            if self._scaling != "none":
                scale = scale or self._standardisation(people.X)
                people = scale.apply(people)
            # Methods share these arrays, so none may change them.
            for array in (people.X, people.group, applicants.outcome):
                array.setflags(write=False)
            yield replace(applicants, people=people)

    def _standardisation(self, X: Floats) -> Standardisation:
        return Standardisation.fit(X, self.stream.features, self.stream.unscaled)

    def _generator(self, purpose: int) -> np.random.Generator:
        return np.random.default_rng(self._seeds[purpose])
