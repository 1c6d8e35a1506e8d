"""Rounds side by side, or runs of rounds where there are too many to tell apart on paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from secondlook.ledger.summary import Outcomes, RoundSummary

__all__ = ["Span", "spans"]


@dataclass(frozen=True)
class Span:
    """Rounds that follow each other, taken together."""

    rounds: tuple[RoundSummary, ...]

    @property
    def name(self) -> str:
        """Its number, or the first and the last."""
        first, last = self.rounds[0].round, self.rounds[-1].round
        return f"{first}" if first == last else f"{first}–{last}"

    @property
    def middle(self) -> float:
        """Where it lies among the rounds."""
        return (self.rounds[0].round + self.rounds[-1].round) / 2

    def total(self, name: str) -> int:
        """Return the sum of a head count, such as ``"n_people"``."""
        return sum(getattr(one, name) for one in self.rounds)

    @property
    def outcomes(self) -> Outcomes:
        """What became of those accepted, without the overridden."""
        found = [one.outcomes for one in self.rounds]
        return Outcomes(
            sum(one.good for one in found),
            sum(one.bad for one in found),
            sum(one.indeterminate for one in found),
            sum(one.pending for one in found),
        )

    @property
    def certified(self) -> int:
        """How many of its rounds carry a certificate."""
        return sum(one.certified for one in self.rounds)

    @property
    def alpha_exploit(self) -> float:
        """The last round's."""
        return self.rounds[-1].alpha_exploit

    @property
    def promise(self) -> str:
        """Whether its rounds carry a certificate, in a word or as a count."""
        if len(self.rounds) == 1:
            return "certified" if self.certified else "none"
        return f"{self.certified} of {len(self.rounds)} certified"


def spans(rounds: Sequence[RoundSummary], most: int = 60) -> list[Span]:
    """Return rounds one by one or, if there are more than ``most``, in runs of the same length.

    Examples
    --------
    >>> spans([])
    []
    """
    size = math.ceil(len(rounds) / most) or 1
    return [Span(tuple(rounds[at : at + size])) for at in range(0, len(rounds), size)]
