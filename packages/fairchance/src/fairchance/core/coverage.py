"""Coverage, which decides who counts as known: the paper's w(x, z) against τ.

A rule accumulates w over the logged rounds. Applicants with w above the threshold are in the
exploit region, the others in the explore region. Each rule defines what one round adds and what it
needs for that, so that the walk over past rounds (``policy_log.py``) computes no more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from fairchance.core.saved import saved
from fairchance.errors import InputError

__all__ = ["CoverageRule", "MeanPastScore", "SumOfG", "SummedAcceptance"]

_NEEDS = ("acceptance", "score", "g")
_LEAST_BATCH = 100  # least reference size, unless the user sets one


@dataclass(frozen=True)
class CoverageRule(ABC):
    """Base of all rules.

    Parameters
    ----------
    threshold
        τ: applicants with w above it are exploited.

    Examples
    --------
    >>> class EveryRound(CoverageRule):  # each round has weight 1, however small it is
    ...     needs = "acceptance"
    ...     def round_weight(self, n_people, n_rounds, first_batch):
    ...         return float(n_rounds)
    >>> EveryRound(threshold=0.9).round_weight(n_people=3, n_rounds=1, first_batch=500)
    1.0
    """

    threshold: float = 0.5
    needs: ClassVar[Literal["acceptance", "score", "g"]]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        needs = getattr(cls, "needs", None)
        is_whole = not getattr(cls.round_weight, "__isabstractmethod__", False)
        if is_whole and needs not in _NEEDS:
            raise InputError(
                f"a coverage rule must define needs = {', '.join(map(repr, _NEEDS[:-1]))} or "
                f"{_NEEDS[-1]!r} in its class, and {cls.__name__} has "
                f"{'none' if needs is None else repr(needs)}; add that line."
            )

    def __post_init__(self) -> None:
        if not (np.isfinite(self.threshold) and self.threshold >= 0):
            raise InputError(f"threshold (τ) must be a number ≥ 0, got {self.threshold}.")

    @abstractmethod
    def round_weight(self, n_people: int, n_rounds: int, first_batch: int) -> float:
        """Return the factor of a logged policy's value in w.

        The policy decided ``n_people`` in ``n_rounds`` rounds; the first round had ``first_batch``.
        f_0's acceptance of the history counts once under every rule.
        """

    def count(self, n_rounds: int) -> float:  # noqa: ARG002
        """Return what the accumulated sum is divided by after so many rounds to give w."""
        return 1.0

    def level(self, n_rounds: int) -> float:
        """Return the value that the accumulated sum must exceed: τ on the scale of the sum."""
        return self.threshold * self.count(n_rounds)


@saved
@dataclass(frozen=True)
class SummedAcceptance(CoverageRule):
    """w = Σ_i (n_i / n_ref) · π_i(x, z): expected number of similar applicants observed.

    π_i is the probability that round i's logged policy accepts this applicant (f_0's for the
    history, which counts once). Monotone: no applicant leaves the exploit region. Rounds count by
    their size relative to ``reference_size``, so that many tiny rounds do not count as many.

    Parameters
    ----------
    threshold
        τ.
    reference_size
        n_ref, the size of a full round; None means the size of the first batch, and at least 100,
        so that a stream of single applications does not count each as a round.

    Examples
    --------
    >>> rule = SummedAcceptance(threshold=0.5, reference_size=200)
    >>> rule.round_weight(n_people=100, n_rounds=1, first_batch=50)
    0.5
    """

    reference_size: int | None = None
    needs: ClassVar[Literal["acceptance", "score", "g"]] = "acceptance"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reference_size is not None and self.reference_size < 1:
            raise InputError(f"reference_size must be 1 or more, got {self.reference_size}.")

    def round_weight(self, n_people: int, n_rounds: int, first_batch: int) -> float:  # noqa: ARG002
        """Return n_i / n_ref."""
        return n_people / (self.reference_size or max(first_batch, _LEAST_BATCH))


@saved
@dataclass(frozen=True)
class MeanPastScore(CoverageRule):
    """w = mean likelihood of the past classifiers, f_0 included (the paper's experiments).

    Not monotone: applicants can leave the exploit region again.

    Examples
    --------
    >>> MeanPastScore(threshold=0.5).level(n_rounds=3)  # of four scores, f_0's included
    2.0
    """

    needs: ClassVar[Literal["acceptance", "score", "g"]] = "score"

    def round_weight(self, n_people: int, n_rounds: int, first_batch: int) -> float:  # noqa: ARG002
        """Return the number of rounds: each counts once."""
        return float(n_rounds)

    def count(self, n_rounds: int) -> float:
        """Return the number of classifiers summed, f_0 and one a round."""
        return 1.0 + n_rounds


@saved
@dataclass(frozen=True)
class SumOfG(CoverageRule):
    """w = f_0's acceptance + Σ_i g(x, z; f_i): the sum of exploration weights (the paper's theory).

    Monotone since g > 0. The scale of g matters here: with ``Uniform`` all applicants are known
    after one round unless the threshold is raised.

    Examples
    --------
    >>> SumOfG(threshold=2.0).level(n_rounds=3)
    2.0
    """

    needs: ClassVar[Literal["acceptance", "score", "g"]] = "g"

    def round_weight(self, n_people: int, n_rounds: int, first_batch: int) -> float:  # noqa: ARG002
        """Return the number of rounds: each counts once."""
        return float(n_rounds)
