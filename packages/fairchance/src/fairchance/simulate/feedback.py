"""How outcomes come back: immediately, late or never, wrong, and corrected later."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fairchance.errors import InputError
from fairchance.simulate.people import Applicants

__all__ = [
    "Between",
    "ByOutcome",
    "Delay",
    "Feedback",
    "Fixed",
    "Geometric",
    "Mailbox",
    "SealedOutcomes",
]

Rounds = NDArray[np.int64]
_NEVER = -1


def _check_rounds(name: str, value: object) -> None:
    if not (isinstance(value, int) and value >= 0):
        raise InputError(f"{name} counts rounds and must be 0 or more, got {value!r}.")


class Delay(Protocol):
    """How many rounds pass between a decision and its outcome; any object with this method."""

    def rounds(self, applicants: Applicants, rng: np.random.Generator) -> Rounds:
        """Return whole numbers ≥ 0; 0 means after the round itself, before the next."""


@dataclass(frozen=True)
class Fixed:
    """Every outcome comes after the same number of rounds."""

    after: int = 0

    def __post_init__(self) -> None:
        _check_rounds("after", self.after)

    def rounds(self, applicants: Applicants, rng: np.random.Generator) -> Rounds:  # noqa: ARG002
        """Return the same number for every applicant."""
        return np.full(len(applicants), self.after, dtype=np.int64)


@dataclass(frozen=True)
class Between:
    """Every number of rounds from the least to the most is equally likely.

    With the same generator, larger bounds never make an outcome come earlier.
    """

    least: int = 0
    most: int = 0

    def __post_init__(self) -> None:
        _check_rounds("least", self.least)
        _check_rounds("most", self.most)
        if self.most < self.least:
            raise InputError(
                f"most must be at least as large as least, got {self.most} and {self.least}."
            )

    def rounds(self, applicants: Applicants, rng: np.random.Generator) -> Rounds:
        """Draw independent delays."""
        width = self.most - self.least + 1
        return self.least + np.floor(width * rng.random(len(applicants))).astype(np.int64)


@dataclass(frozen=True)
class Geometric:
    """Each round, an outcome still to come arrives with the same probability.

    Parameters
    ----------
    mean
        Mean number of rounds, at least 0.
    """

    mean: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.mean < np.inf:
            raise InputError(f"mean counts rounds and must be 0 or more, got {self.mean!r}.")

    def rounds(self, applicants: Applicants, rng: np.random.Generator) -> Rounds:
        """Draw independent delays with that mean."""
        return rng.geometric(1 / (1 + self.mean), size=len(applicants)) - 1


@dataclass(frozen=True)
class ByOutcome:
    """Good and bad outcomes have different delays: loans default before they are repaid."""

    good: int = 0
    bad: int = 0

    def __post_init__(self) -> None:
        _check_rounds("good", self.good)
        _check_rounds("bad", self.bad)

    def rounds(self, applicants: Applicants, rng: np.random.Generator) -> Rounds:  # noqa: ARG002
        """Return the delay of each outcome."""
        return np.where(applicants.outcome == 1, self.good, self.bad).astype(np.int64)


@dataclass(frozen=True)
class Feedback:
    """How outcomes come back to the method.

    Parameters
    ----------
    delay
        How many rounds they take.
    missing
        Probability that an outcome never comes.
    wrong
        Probability that the first report is the opposite of the truth.
    corrected_after
        Rounds after which a wrong outcome is corrected, from 1; None means never.
    """

    delay: Delay = field(default_factory=Fixed)
    missing: float = 0.0
    wrong: float = 0.0
    corrected_after: int | None = None

    def __post_init__(self) -> None:
        for name in ("missing", "wrong"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise InputError(f"{name} is a probability and must be in [0, 1], got {value}.")
        after = self.corrected_after
        if after is not None and not (isinstance(after, int) and after >= 1):
            raise InputError(
                f"corrected_after counts rounds and must be a whole number ≥ 1, got {after}."
            )

    def seal(self, applicants: Applicants, rng: np.random.Generator) -> SealedOutcomes:
        """Draw for a whole batch which outcome would come back when, before any decision."""
        n = len(applicants)
        arrives = np.where(rng.random(n) < self.missing, _NEVER, self.delay.rounds(applicants, rng))
        wrong = rng.random(n) < self.wrong
        corrected = np.full(n, _NEVER, dtype=np.int64)
        if self.corrected_after is not None:
            late = wrong & (arrives != _NEVER)
            corrected[late] = arrives[late] + self.corrected_after
        return SealedOutcomes(
            applicants.outcome, (applicants.outcome ^ wrong).astype(np.int8), arrives, corrected
        )


@dataclass(frozen=True)
class SealedOutcomes:
    """A batch's outcomes before they arrive: truth, first report, and when each arrives."""

    truth: NDArray[np.int8]
    reported: NDArray[np.int8]
    arrives: Rounds
    corrected: Rounds

    def select(self, chosen: NDArray[np.bool_]) -> SealedOutcomes:
        """Return the outcomes of the chosen people."""
        return SealedOutcomes(
            self.truth[chosen], self.reported[chosen], self.arrives[chosen], self.corrected[chosen]
        )


@dataclass
class Mailbox:
    """Outcomes of accepted people that have not arrived yet."""

    _letters: list[tuple[int, NDArray[Any], SealedOutcomes]] = field(default_factory=list)

    def post(self, round: int, ids: NDArray[Any], sealed: SealedOutcomes) -> None:
        """Add the outcomes of the people accepted in a round."""
        if ids.size:
            self._letters.append((round, ids, sealed))

    def reports(self, round: int) -> Iterator[tuple[NDArray[Any], NDArray[np.int8]]]:
        """Yield ids and outcomes that arrive after a round."""
        for sent, ids, sealed in self._letters:
            now = sealed.arrives == round - sent
            if now.any():
                yield ids[now], sealed.reported[now]

    def corrections(self, round: int) -> Iterator[tuple[NDArray[Any], NDArray[np.int8]]]:
        """Yield ids and true outcomes that are corrected after a round."""
        for sent, ids, sealed in self._letters:
            now = sealed.corrected == round - sent
            if now.any():
                yield ids[now], sealed.truth[now]
