"""How a program stands: rounds, outcomes so far and to come, mistakes, groups, what people changed.

``summing_up`` counts all this from a ledger.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaincinv

from secondlook.core.budget import FdrBudget
from secondlook.core.utility import Utility
from secondlook.ledger.chain import Checkpoint

__all__ = [
    "Change",
    "GroupSummary",
    "Outcomes",
    "Promise",
    "RoundSummary",
    "Summary",
    "Waiting",
    "exact_interval",
    "far_fewer",
]

_FEW = 0.1  # of as many as were to be expected: nearly none
_EXPECTED = 5  # people whose absence is no chance any more: it has a probability under 1 %


def exact_interval(bad: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the exact interval of a share (Clopper and Pearson).

    Its ends are the shares at which as many bad, or more, and as few, or fewer, would each be seen
    with a probability of half of what ``confidence`` leaves.

    Examples
    --------
    >>> [round(end, 3) for end in exact_interval(3, 40)]
    [0.016, 0.204]
    """
    tail = (1 - confidence) / 2
    low = betaincinv(bad, n - bad + 1, tail) if bad > 0 else 0.0
    high = betaincinv(bad + 1, n - bad, 1 - tail) if bad < n else 1.0
    return float(low), float(high)


def far_fewer(found: int, n: int, usual: float) -> bool:
    """Return if of n people under a tenth were found of those to be expected at a usual share.

    Only where five or more were to be expected: without these it may be chance.

    Examples
    --------
    >>> far_fewer(4, 100, 0.5), far_fewer(5, 100, 0.5), far_fewer(0, 9, 0.5)
    (True, False, False)
    """
    expected = usual * n
    return expected >= _EXPECTED and found < _FEW * expected


@dataclass(frozen=True)
class Outcomes:
    """What became of some accepted people.

    Examples
    --------
    >>> found = Outcomes(good=35, bad=5, indeterminate=2, pending=8)
    >>> found.accepted, found.fdr, found.range
    (50, 0.125, (0.1, 0.3))
    """

    good: int
    bad: int
    indeterminate: int
    pending: int

    @property
    def accepted(self) -> int:
        """How many people these are."""
        return self.known + self.indeterminate + self.pending

    @property
    def known(self) -> int:
        """How many outcomes there are."""
        return self.good + self.bad

    @property
    def fdr(self) -> float:
        """Share of bad among the outcomes known; NaN if there are none."""
        return self.bad / self.known if self.known else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """Exact 95 % interval of that share, as if outcomes came in no special order.

        Those that come late are not a random part of all: it is about the outcomes known.
        """
        return exact_interval(self.bad, self.known)

    @property
    def range(self) -> tuple[float, float]:
        """Share of bad if everybody without an outcome were good, and if everybody were bad."""
        if not self.accepted:
            return 0.0, 1.0
        return self.bad / self.accepted, (self.accepted - self.good) / self.accepted


@dataclass(frozen=True)
class Waiting:
    """For how many days people have been waiting for an outcome; NaN if nobody is."""

    n: int
    oldest: float
    median: float


@dataclass(frozen=True)
class RoundSummary:
    """One round.

    Attributes
    ----------
    round, entry, batch, at, age
        Its number, where it is recorded and under what name, when, and how many days ago.
    certified, group_mode
        Whether it carries a certificate, and what groups could change.
    n_people, n_exploited, n_explored
        How many applied, and how many were accepted in each region, by the decision.
    n_overridden
        Decisions that somebody replaced, and that nobody took back.
    outcomes
        Of those accepted, without the overridden.
    overridden
        Of those who stand accepted and have an override, taken back or not.
    budget
        How many could be explored by the rule of Algorithm 1; NaN without such a rule.
    records
        What the classifier noted about it.
    about
        What else was kept with it by whoever decided.
    n_by_hand
        Whom the decision refused, and an override accepted.
    awaited, awaited_by_group
        How many outcomes the tests of a certificate wait for, of everybody and, if groups were
        counted, of each; nothing is waited for of people who were overridden or erased.
    """

    round: int
    entry: int
    batch: str
    at: str
    age: float
    certified: bool
    group_mode: str
    n_people: int
    n_exploited: int
    n_explored: int
    n_overridden: int
    outcomes: Outcomes
    overridden: Outcomes
    budget: float
    records: tuple[dict[str, Any], ...]
    about: dict[str, Any]
    n_by_hand: int
    awaited: int
    awaited_by_group: dict[str, int]

    @property
    def n_accepted(self) -> int:
        """How many were accepted, by the decision."""
        return self.n_exploited + self.n_explored

    @property
    def n_set_apart(self) -> int:
        """Whom the decision accepted and who have an override, taken back or not."""
        return self.n_accepted - self.outcomes.accepted

    def noted(self, name: str) -> list[Any]:
        """Return what the classifier noted under a name, one value a record that has it."""
        return [one[name] for one in self.records if name in one]

    @property
    def alpha_exploit(self) -> float:
        """The share of mistakes allowed to the exploited; NaN where that is not divided."""
        return float((self.noted("alpha_exploit") or [math.nan])[0])

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The scores from which people were accepted, per group; empty if there are none."""
        return tuple(self.noted("thresholds")[0]) if self.noted("thresholds") else ()


@dataclass(frozen=True)
class GroupSummary:
    """One group over all rounds, with the counts of a round's.

    ``group`` is None for people who have been erased.
    """

    attribute: str
    group: str | None
    n_people: int
    n_accepted: int
    n_explored: int
    n_overridden: int
    outcomes: Outcomes
    n_by_hand: int

    @property
    def n_set_apart(self) -> int:
        """Whom the decision accepted and who have an override, taken back or not."""
        return self.n_accepted - self.outcomes.accepted


@dataclass(frozen=True)
class Change:
    """An entry by which people intervened: how many it is about, when, and by whom."""

    kind: str
    entry: int
    at: str
    by: str
    n: int
    says: dict[str, Any]


@dataclass(frozen=True)
class Promise:
    """What the program's settings say; None where it is not said.

    ``problem`` tells why the stored settings could not be read, and is empty otherwise.
    """

    alpha: float | None = None
    delta: float | None = None
    budget: FdrBudget | None = None
    utility: Utility | None = None
    maturity: int | None = None
    patience: int | None = None
    problem: str = ""


@dataclass(frozen=True)
class Summary:
    """How a program stands.

    Attributes
    ----------
    program, classifier, about, at, head
        Its name, its kind of classifier, what was kept with it, when this was counted, and where
        the chain stood.
    promise
        What the settings say.
    n_history, history
        People of the history, and what became of those accepted then.
    rounds, groups, changes
        One by one.
    outcomes, exploited, explored
        Over all rounds, without overridden people: of all accepted, and of each region.
    overridden
        Of those who stand accepted and have an override, taken back or not.
    n_erased, n_held, n_expired
        How many people have been erased, must not be erased, and may be since their time is over.
    """

    program: str
    classifier: str
    about: dict[str, Any]
    at: str
    head: Checkpoint
    promise: Promise
    n_history: int
    history: Outcomes
    rounds: tuple[RoundSummary, ...]
    groups: tuple[GroupSummary, ...]
    changes: tuple[Change, ...]
    outcomes: Outcomes
    exploited: Outcomes
    explored: Outcomes
    overridden: Outcomes
    n_erased: int
    n_held: int
    n_expired: int

    def total(self, name: str) -> int:
        """Return the sum over rounds of one of their head counts, such as ``"n_explored"``."""
        return sum(getattr(one, name) for one in self.rounds)

    @property
    def accepts_everybody(self) -> bool:
        """Whether everybody was accepted so far, though the history lets expect some who are not.

        A history of accepted people alone lets expect none.
        """
        usual = 1 - self.history.accepted / self.n_history if self.n_history else 0.0
        n, accepted = self.total("n_people"), self.total("n_accepted")
        return n == accepted and far_fewer(0, n, usual)

    @property
    def budget(self) -> float:
        """How many could be explored so far; NaN without such a rule."""
        return math.fsum(one.budget for one in self.rounds) if self.rounds else math.nan

    def waiting(self, longer_than: float = 0.0) -> Waiting:
        """Return who has been waiting for an outcome for so many days or longer."""
        waits = [
            (one.age, one.outcomes.pending + one.overridden.pending)
            for one in self.rounds
            if one.age >= longer_than
        ]
        days = np.repeat([age for age, _ in waits], [n for _, n in waits])
        if not days.size:
            return Waiting(0, math.nan, math.nan)
        return Waiting(days.size, float(days.max()), float(np.median(days)))

    def worth(self, outcomes: Outcomes) -> float:
        """Return what accepting people brought so far, by the program's utility.

        Against rejecting them, and of known outcomes only; NaN if there is no utility.
        """
        found = self.promise.utility
        if found is None:
            return math.nan
        return outcomes.good * found.gain_good + outcomes.bad * found.gain_bad
