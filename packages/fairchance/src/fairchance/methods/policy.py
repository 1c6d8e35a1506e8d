"""What decides within a round: a value that answers alike on any machine, in any piece and order.

``open_round`` of a classifier returns one, ``decide`` answers by it, and ``close_round`` takes the
answers back. It is frozen and small, and holds no applicant. Coins are keyed by the id, so the same
applicant gets the same answer wherever it is asked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from fairchance.core.decisions import Decisions
from fairchance.people.intake import Batch

__all__ = ["Policy"]


class Policy(ABC):
    """The policy of one round.

    Attributes
    ----------
    round
        Number of the round.
    ramp
        r, the share of applicants on whom it decides; the lender does on the others.
    status, certified
        As in ``Decisions``.
    needs_incumbent
        Whether the lender's own decision on an applicant has to be given.
    versions
        Versions of the packages that its answers may depend on, by name.
    expires
        UTC time (ISO 8601) from which on it refuses to decide; None if it does not expire.
    """

    round: int
    ramp: float
    status: str
    certified: bool
    needs_incumbent: bool
    versions: dict[str, str]
    expires: str | None

    @abstractmethod
    def read(
        self,
        X: Any,
        *,
        ids: Any,
        sensitive_features: Any = None,
        incumbent: Any = None,
        barred: Any = None,
        persons: Any = None,
    ) -> Batch:
        """Read applicants as ``decide`` does, and refuse what it refuses, row by row."""

    @abstractmethod
    def decide_batch(self, batch: Batch) -> Decisions:
        """Decide on applicants that were read."""

    def decide(
        self,
        X: Any,
        *,
        ids: Any,
        sensitive_features: Any = None,
        incumbent: Any = None,
        barred: Any = None,
        persons: Any = None,
    ) -> Decisions:
        """Decide on applicants; nothing is remembered.

        Parameters
        ----------
        X, sensitive_features, incumbent, barred, persons
            The applicants, as for the classifier's ``decide``.
        ids
            Ids of the applications. The same id gets the same draw, whenever it is asked.
        """
        return self.decide_batch(
            self.read(
                X,
                ids=ids,
                sensitive_features=sensitive_features,
                incumbent=incumbent,
                barred=barred,
                persons=persons,
            )
        )
