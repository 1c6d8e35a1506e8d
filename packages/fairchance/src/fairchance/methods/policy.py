"""What decides within a round: a value that answers alike on any machine, in any piece and order.

``open_round`` of a classifier returns one, ``decide`` answers by it, and ``close_round`` takes the
answers back. It is frozen and small, and holds no applicant. Coins are keyed by the id, so the same
applicant gets the same answer wherever it is asked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.core.decisions import Decisions
from fairchance.errors import InputError
from fairchance.people.ids import keyed_bits
from fairchance.people.intake import Batch, Reader
from fairchance.people.reasons import Scored

__all__ = ["Policy", "check_follows", "check_part", "coin_bits", "first_applications"]

Bits = NDArray[np.uint64]


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
    reader
        How applicants are read.
    round_key, ramp_key
        Keys of the coins.
    """

    round: int
    ramp: float
    status: str
    certified: bool
    needs_incumbent: bool
    versions: dict[str, str]
    expires: str | None
    reader: Reader
    round_key: np.uint64
    ramp_key: np.uint64

    @abstractmethod
    def stated(self) -> tuple[dict[str, Any], ...]:
        """Return what the records of its round repeat, by name, a dictionary for each record."""

    draws_together = False  # whether an answer depends on all applicants of the batch

    def without_draw(self) -> Policy:
        """Return a policy that explores nobody, if its draw depends on the whole batch."""
        return self

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
        self.check_incumbent(incumbent)
        return self.reader.read(
            X,
            ids=ids,
            sensitive_features=sensitive_features,
            incumbent=incumbent,
            barred=barred,
            persons=persons,
            key=self.ramp_key,
        )

    @abstractmethod
    def decide_batch(self, batch: Batch) -> Decisions:
        """Decide on applicants that were read, also after the policy has expired."""

    @abstractmethod
    def scored_by(self, X: Any, *, sensitive_features: Any = None) -> Scored:
        """Return applicants as the policy reads them, with the model."""

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
        if self.expires is not None and datetime.now(UTC) >= _time(self.expires):
            raise InputError(
                f"the policy of round {self.round} expired at {self.expires}; get that of the "
                f"round that is open now."
            )
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

    def check_incumbent(self, incumbent: Any) -> None:
        """Raise unless the lender's own decisions are given if and only if they are needed."""
        if self.needs_incumbent == (incumbent is not None):
            return
        what = "with" if self.needs_incumbent else "without"
        do = "pass incumbent=" if self.needs_incumbent else "leave incumbent out"
        raise InputError(
            f"round {self.round} was opened {what} decisions of the lender's own; {do}, or open "
            f"the next round the other way."
        )


def coin_bits(batch: Batch, round_key: np.uint64, ramp_key: np.uint64) -> tuple[Bits, Bits]:
    """Return the random bits of the coins and of the ramp's coins.

    They are keyed by the person if it is known, so that applications of a person in a round share
    one draw, and otherwise by the id. A person's coin of the ramp is another one in each round: if
    it were the same, applicants who return would make each round repeat the luck of the one before,
    and evidence would count it again.
    """
    who = batch.bits if batch.persons is None else batch.persons
    coins = keyed_bits(who, round_key)
    return coins, keyed_bits(np.where(who == batch.bits, who, coins), ramp_key)


def first_applications(persons: Bits, most: int) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return numbers of persons, and which applications come after the first ``most`` of a person.

    Examples
    --------
    >>> number, further = first_applications(np.array([9, 4, 9, 9], np.uint64), most=2)
    >>> number.tolist(), further.tolist()
    ([1, 0, 1, 1], [False, False, False, True])
    """
    number = np.unique(persons, return_inverse=True)[1]
    order = np.argsort(number, kind="stable")
    further = np.empty(number.size, np.bool_)
    turn = np.arange(number.size) - np.searchsorted(number[order], number[order])
    further[order] = turn >= most
    return number, further


def check_part(part: Any, round: int) -> None:
    """Raise unless something is a part of a round's decisions, with its applicants."""
    batch = part.applicants if isinstance(part, Decisions) else None
    if not isinstance(batch, Batch):
        raise InputError(
            f"a round is closed with what decide of its policy returned, got {part!r}; pass "
            f"decisions with their applicants."
        )
    if part.round != round:
        raise InputError(
            f"round {round} is open, got decisions of round {part.round}; leave them out."
        )
    if not np.array_equal(part.ids, batch.ids):
        raise InputError("the ids of decisions are not those of their applicants; decide again.")


def check_follows(again: Decisions, parts: Sequence[Decisions], order: NDArray[np.intp]) -> None:
    """Raise unless decisions follow from the policy, which decided ``again`` in this order."""
    # Scores of features in single precision depend on the piece in their last bits.
    double = again.score.dtype == np.float64
    near, score = (1e-12, 1e-9) if double else (1e-5, 1e-5)
    for name, close in (("accepted", 0.0), ("propensity", near), ("score", score)):
        given = np.concatenate([getattr(part, name) for part in parts])[order]
        values = getattr(again, name)
        same = given == values if close == 0 else np.isclose(given, values, close, close)
        if not same.all():
            wrong = np.flatnonzero(~same)
            first = wrong[0]
            raise InputError(
                f"{wrong.size} of {same.size} decisions do not follow from the policy of round "
                f"{again.round}, first that on {again.ids[first].item()!r}: {name} is "
                f"{given[first]} and should be {values[first]}; decide again."
            )


def _time(text: str) -> datetime:
    """Return a time; one without a zone is UTC."""
    when = datetime.fromisoformat(text)
    return when if when.tzinfo else when.replace(tzinfo=UTC)
