"""A world: a stream of people, their hidden outcomes, and how the past decided."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from secondlook.errors import InputError
from secondlook.lab.simulate.feedback import Feedback, Sealed
from secondlook.lab.simulate.histories import HistoryRule, PastCutoff, parts_of
from secondlook.lab.simulate.people import Applicants, Floats, People
from secondlook.lab.simulate.preparation import Scaling, Standardisation
from secondlook.lab.simulate.streams import Stream

__all__ = ["Batch", "Past", "World"]


@dataclass(frozen=True)
class Past:
    """What is known of S_0: everybody's features, who was accepted, outcomes of the accepted.

    Attributes
    ----------
    people
        Everybody who applied.
    accepted
        Whom the past accepted.
    outcomes
        1 good, 0 bad, NaN for those who were rejected.
    """

    people: People
    accepted: NDArray[np.bool_]
    outcomes: Floats


@dataclass(frozen=True)
class Batch:
    """One round's people with what only the world knows of them."""

    applicants: Applicants
    sealed: Sealed


class World:
    """A stream of people, how the past decided on the first of them, how outcomes come back.

    A method is handed people, never the world: the outcome of somebody rejected stays in here.
    Everything random comes from the seed, through generators of their own for the stream, the past
    and the feedback; nothing that a method does can change it, and a world can be run through any
    number of times.

    Parameters
    ----------
    stream
        S_0 and the batches.
    past
        How the past decided on S_0.
    feedback
        How outcomes come back; None means at once, all, and right.
    scaling
        ``"history"``: features are standardised by S_0 (nothing of the stream is known before it
        comes); ``"stream"``: by all rounds together, future included, as the paper did; ``"none"``:
        left as they are.
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
        """Return what is known of S_0."""
        first = self.full_history()
        raw = next(self.stream.applicants(self._generator(0)))
        chance = self._past.probability(raw, self.stream.features)
        accepted = self._generator(1).random(len(raw)) < chance
        outcomes = np.where(accepted, first.outcome, np.nan)
        for array in (accepted, outcomes):
            array.setflags(write=False)
        return Past(first.people, accepted, outcomes)

    def full_history(self) -> Applicants:
        """Return S_0 with every outcome: for offline references, never for a method."""
        return next(self._prepared())

    def past_cutoff(self) -> PastCutoff:
        """Return the rule by which the past cut off at a feature, if it did."""
        for rule in parts_of(self._past):
            if isinstance(rule, PastCutoff):
                return rule
        raise InputError("the past of this world did not cut off at a feature; count by group.")

    def batches(self) -> Iterator[Batch]:
        """Yield the batches with their sealed outcomes."""
        rng = self._generator(2)
        for number, applicants in enumerate(self._prepared()):
            if number > 0:
                yield Batch(applicants, self._feedback.seal(applicants, rng))

    def _prepared(self) -> Iterator[Applicants]:
        """Yield S_0 and the batches with features as a method gets them."""
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
            # What one method does to them must not reach another.
            for array in (people.X, people.group, applicants.outcome):
                array.setflags(write=False)
            yield replace(applicants, people=people)

    def _standardisation(self, X: Floats) -> Standardisation:
        return Standardisation.of(X, self.stream.features, self.stream.unscaled)

    def _generator(self, purpose: int) -> np.random.Generator:
        return np.random.default_rng(self._seeds[purpose])
