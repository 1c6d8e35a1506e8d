"""How the past decided: rules that select the people of S_0 whose outcomes are known.

A rule gives each person a probability of having been accepted. Rules combine:
``SelectedOnOutcome() & GroupExcluding("B")`` accepts the people that both rules accept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fairchance.errors import InputError
from fairchance.simulate.people import Applicants, Floats, People

__all__ = [
    "AllAccepted",
    "AtRandom",
    "ByPolicy",
    "Composition",
    "GroupExcluding",
    "HistoryRule",
    "PastCutoff",
    "SelectedOnOutcome",
    "split_rule",
]


_ROUNDING = 1e-9  # standardised features at the cut-off may differ in their last bits


class HistoryRule:
    """Base of all rules: everyone was accepted."""

    def probability(self, applicants: Applicants, features: tuple[str, ...]) -> Floats:  # noqa: ARG002
        """Return each person's probability of having been accepted."""
        return np.ones(len(applicants))

    def __and__(self, other: HistoryRule) -> HistoryRule:
        return Both(self, other)


@dataclass(frozen=True)
class Both(HistoryRule):
    """Accepts the people that two independent rules both accept; written ``a & b``."""

    first: HistoryRule
    second: HistoryRule

    def probability(self, applicants: Applicants, features: tuple[str, ...]) -> Floats:
        """Return the product of both."""
        first = self.first.probability(applicants, features)
        return first * self.second.probability(applicants, features)


def split_rule(rule: HistoryRule) -> list[HistoryRule]:
    """Return the single rules of a combination."""
    if isinstance(rule, Both):
        return [*split_rule(rule.first), *split_rule(rule.second)]
    return [rule]


@dataclass(frozen=True)
class SelectedOnOutcome(HistoryRule):
    """A share of the good and a share of the bad were accepted (the paper's experiments).

    Such a past knew the outcome, so its accepted people look better than people like them are.
    """

    good: float = 0.9
    bad: float = 0.1

    def __post_init__(self) -> None:
        _check_shares(good=self.good, bad=self.bad)

    def probability(self, applicants: Applicants, features: tuple[str, ...]) -> Floats:  # noqa: ARG002
        """Return ``good`` for the good and ``bad`` for the bad."""
        return np.where(applicants.outcome == 1, self.good, self.bad)


@dataclass(frozen=True)
class Composition(HistoryRule):
    """A given share of the accepted is good: the other reading of the paper's "90 % and 10 %".

    Parameters
    ----------
    good
        Expected share of the good among the accepted.
    size
        Share of S_0 that was accepted; less if there are too few good or too few bad for it.
    """

    good: float = 0.9
    size: float = 0.5

    def __post_init__(self) -> None:
        _check_shares(good=self.good, size=self.size)

    def probability(self, applicants: Applicants, features: tuple[str, ...]) -> Floats:  # noqa: ARG002
        """Return one probability for the good and one for the bad."""
        base = float(np.mean(applicants.outcome))
        have, want = np.array([base, 1 - base]), np.array([self.good, 1 - self.good])
        size = min(self.size, *(have[want > 0] / want[want > 0]))
        good, bad = np.divide(size * want, have, out=np.zeros(2), where=have > 0)
        return np.asarray(np.where(applicants.outcome == 1, good, bad))


@dataclass(frozen=True)
class PastCutoff(HistoryRule):
    """The past looked at one feature and rejected everyone below a cut-off.

    Parameters
    ----------
    feature
        Name of the feature.
    share
        Share of S_0 on the accepted side of the cut-off.
    side
        ``"above"``: the past accepted those at or above the cut-off; ``"below"``: at or below it.
    """

    feature: str
    share: float = 0.5
    side: Literal["above", "below"] = "above"

    def __post_init__(self) -> None:
        _check_shares(share=self.share)
        if self.side not in ("above", "below"):
            raise InputError(f"side must be 'above' or 'below', got {self.side!r}.")

    def is_excluded(self, value: Floats, reference: Floats) -> NDArray[np.bool_]:
        """Return which values are on the rejected side of the cut-off in a reference (S_0)."""
        sign = 1.0 if self.side == "above" else -1.0
        cutoff = np.quantile(sign * reference, 1 - self.share)
        return np.asarray(sign * value < cutoff - _ROUNDING * max(1.0, abs(float(cutoff))))

    def probability(self, applicants: Applicants, features: tuple[str, ...]) -> Floats:
        """Return 1 on the accepted side of the cut-off, 0 on the other."""
        if self.feature not in features:
            raise InputError(
                f"the past cut off at feature {self.feature!r}, which is not among the features "
                f"{', '.join(features)}."
            )
        value = applicants.people.X[:, features.index(self.feature)]
        return np.where(self.is_excluded(value, value), 0.0, 1.0)


@dataclass(frozen=True)
class GroupExcluding(HistoryRule):
    """The past accepted few people of one group, or none.

    Parameters
    ----------
    group
        The group.
    rate
        Probability of acceptance in the group.
    others
        Probability of acceptance in all other groups.
    """

    group: str
    rate: float = 0.01
    others: float = 1.0

    def __post_init__(self) -> None:
        _check_shares(rate=self.rate, others=self.others)

    def probability(self, applicants: Applicants, features: tuple[str, ...]) -> Floats:  # noqa: ARG002
        """Return ``rate`` in the group, ``others`` elsewhere."""
        in_group = applicants.people.group == self.group
        if not in_group.any():
            known = ", ".join(np.unique(applicants.people.group).tolist())
            raise InputError(f"the past excluded group {self.group!r}, but S_0 holds only {known}.")
        return np.where(in_group, self.rate, self.others)


@dataclass(frozen=True)
class AtRandom(HistoryRule):
    """Each person was accepted with the same probability."""

    rate: float = 0.5

    def __post_init__(self) -> None:
        _check_shares(rate=self.rate)

    def probability(self, applicants: Applicants, features: tuple[str, ...]) -> Floats:  # noqa: ARG002
        """Return ``rate`` for each person."""
        return np.full(len(applicants), self.rate)


@dataclass(frozen=True)
class AllAccepted(HistoryRule):
    """Everyone was accepted, so all outcomes of S_0 are known."""


@dataclass(frozen=True)
class ByPolicy(HistoryRule):
    """The past followed a given policy: a function of people that returns probabilities."""

    policy: Callable[[People], Floats]

    def probability(self, applicants: Applicants, features: tuple[str, ...]) -> Floats:  # noqa: ARG002
        """Return the policy's probabilities."""
        return np.asarray(self.policy(applicants.people), dtype=np.float64)


def _check_shares(**shares: float) -> None:
    for name, value in shares.items():
        if not 0 <= value <= 1:
            raise InputError(f"{name} is a share and must be in [0, 1], got {value}.")
