"""Closing a round piece by piece, so that no step holds all of its applicants.

An applicant of a closed round leaves counts and sums of evidence behind, and a row if accepted. So
decisions are taken in by pieces of a fixed size, however they were cut before. Sums depend in their
last bits on the order of the applicants, and not on the parts in which they come.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.core.decisions import Chances, ClosedRound, Decisions
from fairchance.core.groups import Attributes
from fairchance.errors import InputError
from fairchance.people.ids import IdIndex, given_twice
from fairchance.people.intake import Batch
from fairchance.people.likeness import Unlike

__all__ = [
    "PIECE",
    "RoundCounts",
    "RoundParts",
    "check_follows",
    "check_part",
    "further_applications",
]
__all__ += ["heads_of", "pieces"]

PIECE = 50_000  # applicants of a round that are in memory at a time when it is closed

Bits = NDArray[np.uint64]


@dataclass(frozen=True)
class RoundParts:
    """The decisions of a round, part by part.

    Attributes
    ----------
    parts
        What ``decide`` of the policy returned; it is gone over once.
    several
        The persons with several applications in the round, as in ``Batch.persons``, in rising
        order; None if no applicant's person is known.
    knows_persons
        Whether each applicant's person is known.
    """

    parts: Iterable[Decisions]
    several: Bits | None = None
    knows_persons: bool = False

    @staticmethod
    def of(parts: Iterable[Decisions] | RoundParts) -> RoundParts:
        """Return parts with the persons that are among them."""
        if isinstance(parts, RoundParts):
            return parts
        if isinstance(parts, Iterator):
            return RoundParts(parts)
        listed = list(parts)
        given = [getattr(part, "applicants", None) for part in listed]
        known = [one.persons for one in given if one is not None and one.persons is not None]
        several = _repeated(np.concatenate(known)) if known else None
        return RoundParts(listed, several, len(known) == len(listed))


def pieces(given: RoundParts, round: int) -> Iterator[list[Decisions]]:
    """Yield the parts of a round cut anew, so that each list has ``PIECE`` applicants in all.

    The last one may have fewer. Applications of a person count together: those of persons with
    several come at the end, with no person in two lists. If some persons are known, each of the
    other applicants gets one of their own.
    """
    parts = _checked(given, round)
    first, n = list[Decisions](), 0
    for part in parts:
        first += [part] if len(part) else []
        n += len(part)
        if n > PIECE:
            yield from _cut(chain(first, parts), given.several)
            return
    if first:
        yield first


def _checked(given: RoundParts, round: int) -> Iterator[Decisions]:
    """Yield parts of a round, all with persons or all without."""
    for part in given.parts:
        check_part(part, round)
        if given.several is None and part.applicants.persons is not None:
            raise InputError(
                "applications of a person count together, so a round whose persons are known needs "
                "all parts at once; pass a list of them."
            )
        yield part if given.several is None else _with_persons(part)


def _cut(parts: Iterable[Decisions], several: Bits | None) -> Iterator[list[Decisions]]:
    waiting, aside, n = list[Decisions](), list[Decisions](), 0
    for whole in parts:
        part = whole
        if several is not None and several.size:
            mine = np.isin(part.applicants.persons, several)
            if mine.any():
                aside.append(part[np.flatnonzero(mine)])
                part = part[np.flatnonzero(~mine)]
        first = 0
        while n + len(part) - first > PIECE:
            end = first + PIECE - n
            yield [*waiting, part[np.arange(first, end)]]
            waiting, n, first = [], 0, end
        if len(part) > first:
            waiting.append(part[np.arange(first, len(part))] if first else part)
            n += len(part) - first
    if waiting:
        yield waiting
    yield from _by_person(aside)


def _by_person(parts: Sequence[Decisions]) -> Iterator[list[Decisions]]:
    """Yield lists of about ``PIECE`` applicants, with no person in two of them."""
    if not parts:
        return
    persons, sizes = np.unique(
        np.concatenate([part.applicants.persons for part in parts]), return_counts=True
    )
    number = (np.cumsum(sizes) - 1) // PIECE
    for one in np.unique(number).tolist():
        here = persons[number == one]
        rows = [np.flatnonzero(np.isin(part.applicants.persons, here)) for part in parts]
        yield [part[some] for part, some in zip(parts, rows, strict=True) if some.size]


def _with_persons(part: Decisions) -> Decisions:
    """Return decisions on applicants with persons; without, each applicant is another person."""
    batch = part.applicants
    if batch.persons is not None:
        return part
    return replace(part, applicants=replace(batch, persons=batch.bits))


def _repeated(persons: Bits) -> Bits:
    values, times = np.unique(persons, return_counts=True)
    return np.asarray(values[times > 1])


def heads_of(batch: Batch, decided: Decisions) -> NDArray[np.int64]:
    """Return how many applicants of each group applied, were accepted, and were explored."""
    group, n_groups = batch.reported, 1 if batch.sensitive is None else batch.sensitive.n_groups
    parts = (group, group[decided.accepted], group[decided.explored])
    return np.array([np.bincount(part, minlength=n_groups) for part in parts])


@dataclass(eq=False)
class RoundCounts:
    """What is counted of the applicants of a round, and the ids of the rejected.

    Attributes
    ----------
    sensitive
        The groups that are known by now.
    n_people, n_accepted, n_explored
        How many applicants there are.
    heads
        The same by group, a row each.
    counts
        What the applicants are like (``Likeness.count``); None if that is not compared.
    chances
        Their chances.
    largest_id
        The largest id, if ids are numbers; None if there is none.
    rejected
        Bits of the ids of rejected applicants, piece by piece.
    """

    sensitive: Attributes | None
    n_people: int = 0
    n_accepted: int = 0
    n_explored: int = 0
    heads: NDArray[np.int64] = field(default_factory=lambda: np.zeros((3, 1), np.int64))
    counts: NDArray[np.int64] | None = None
    chances: Chances = field(default_factory=Chances)
    largest_id: int | None = None
    rejected: list[Bits] = field(default_factory=list)
    _index: IdIndex = field(default_factory=IdIndex)

    def check_new(self, batch: Batch) -> None:
        """Raise if an applicant is in another piece too."""
        known = self._index.known(batch.bits)
        if known.size:
            raise given_twice(batch.ids[known[0]].item())
        self._index.add(batch.bits, np.zeros(len(batch), np.int64))

    def add(self, batch: Batch, decided: Decisions) -> None:
        """Count a piece."""
        self.sensitive = batch.sensitive
        self.n_people += len(batch)
        self.n_accepted += int(np.count_nonzero(decided.accepted))
        self.n_explored += int(np.count_nonzero(decided.explored))
        heads = heads_of(batch, decided)
        more = heads.shape[1] - self.heads.shape[1]
        self.heads = np.pad(self.heads, ((0, 0), (0, more))) + heads
        if batch.counts is not None:
            self.counts = batch.counts if self.counts is None else self.counts + batch.counts
        self.chances += Chances.of(decided.propensity, decided.exploit)
        if batch.ids.dtype.kind == "i" and len(batch):
            largest = int(batch.ids.max())
            self.largest_id = largest if self.largest_id is None else max(self.largest_id, largest)
        self.rejected.append(batch.bits[~decided.accepted])

    def closed(self, last: Decisions, unlike: tuple[Unlike, ...]) -> ClosedRound:
        """Return the round, given the decisions on one of its pieces."""
        return ClosedRound(
            last.round,
            self.n_people,
            self.n_accepted,
            self.n_explored,
            self.chances,
            last.certified,
            last.group_mode,
            unlike,
            last.ramp,
            last.status,
        )


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


def further_applications(persons: Bits, most: int) -> NDArray[np.bool_]:
    """Return which applications come after the first ``most`` of a person.

    Examples
    --------
    >>> further_applications(np.array([9, 4, 9, 9], np.uint64), most=2).tolist()
    [False, False, False, True]
    """
    order = np.argsort(persons, kind="stable")
    further = np.empty(persons.size, np.bool_)
    turn = np.arange(persons.size) - np.searchsorted(persons[order], persons[order])
    further[order] = turn >= most
    return further
