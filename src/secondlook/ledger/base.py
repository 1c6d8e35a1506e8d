"""What a ledger promises, in prose and as classes; ``secondlook.testing`` has it as tests.

**Facts.** A program is one chain of entries, numbered from 1. An entry tells one thing that
happened, or a batch of the same: the program's settings, the history, a policy, a batch with its
decisions, outcomes, corrections, overrides, holds, erasures, a state from which to go on. Its rows
are the people as they applied, their group values (apart), the decisions and so on. An entry never
changes; whoever was wrong appends another.

**Durability.** When ``writing`` has ended without an exception, everything appended in it survives
the end of the process and of the machine. When it has not, nothing of it is there.

**Order.** Entries have consecutive numbers in the order in which they became durable. People have
consecutive numbers too, from 0, in the order of their batches and of the rows within these.

**Idempotency.** A program has at most one entry of a kind and a key. Appending another raises, so
a caller who is not sure looks with ``entry`` first, inside the same ``writing``.

**Concurrency.** At most one caller writes to a program at a time; others wait in ``writing``, and
see all that was written before. Readers never wait, and see whole entries only.

**Outcomes** can be written for people who stand accepted, and for nobody else: by the decision, or
by the newest override of it. An outcome that is there can be replaced by a correction only. An
accepted person without an outcome is pending.

**Erasure** is the one thing that takes away: names, features, group values and reasons of the
people named, with the salts of their hashes, and every state stored before, since states hold
people too. Decisions, outcomes and hashes stay, and an entry says who was erased and why. The chain
holds as before, and the names may be used again. A hold names people by number in its header, as
does its end; who may be erased when is decided in ``retention``, and not by the ledger.

**Errors.** ``LedgerError`` if the database fails, is newer than this version, or lacks the program;
``InputError`` if something handed in does not fit. After either, nothing was recorded.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.errors import LedgerError
from secondlook.ledger.chain import Checkpoint

__all__ = ["KINDS", "STATES", "DecisionRows", "Entry", "Facts", "HeadCounts", "Ledger"]
__all__ += ["ListedRows", "OutcomeRows", "OverrideRows", "PeopleRows", "Reader", "Standing"]
__all__ += ["Writer", "to_json"]

KINDS = (
    "program",
    "history",
    "policy",
    "batch",
    "outcomes",
    "correction",
    "override",
    "hold",
    "erasure",
    "snapshot",
    "certificate",
)
STATES = ("good", "bad", "indeterminate")

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Entry:
    """One link of a program's chain.

    Attributes
    ----------
    number
        Its place, from 1.
    kind, key
        One of ``KINDS``, and what the caller calls it; no two of a kind share a key.
    at, by
        When it was written (UTC, ISO 8601) and who wrote it.
    header
        What it says as a whole, as JSON.
    content, previous, hash
        Hash of its rows, hash of the entry before, and hash of all of this.
    """

    number: int
    kind: str
    key: str
    at: str
    by: str
    header: str
    content: bytes
    previous: bytes
    hash: bytes

    @property
    def says(self) -> dict[str, Any]:
        """The header; ``LedgerError`` if it cannot be read, or lacks what is looked up in it."""
        try:
            found = json.loads(self.header, object_hook=lambda one: _Said(one, self.number))
        except (ValueError, TypeError, RecursionError) as error:
            raise _illegible(self.number, str(error)) from error
        if not isinstance(found, _Said):
            raise _illegible(self.number, "its header is no JSON object")
        return found

    @property
    def when(self) -> datetime:
        """When it was written; ``LedgerError`` if that cannot be read."""
        try:
            return datetime.fromisoformat(self.at)
        except (ValueError, TypeError) as error:
            raise _illegible(self.number, str(error)) from error


class _Said(dict[str, Any]):
    """What a header says; a name that it lacks tells of a damaged ledger, not of our mistake."""

    def __init__(self, found: Any, entry: int = 0) -> None:  # dataclasses copy it by one argument
        super().__init__(found)
        self._entry = entry

    def __missing__(self, name: str) -> Any:
        raise _illegible(self._entry, f"its header lacks {name!r}")


def _illegible(entry: int, why: str) -> LedgerError:
    return LedgerError(f"entry {entry} cannot be read ({why}); verify the ledger.")


@dataclass(frozen=True)
class PeopleRows:
    """People as they applied, column by column; None in the place of what was erased.

    ``groups`` is None for people without groups, otherwise one JSON text each. ``reasons`` is None
    where none were given, otherwise what spoke against each refused person
    (``secondlook.people.reasons``), and None for the others.
    """

    applications: Sequence[str | None]
    numbers: Sequence[bytes | None]
    texts: Sequence[str | None]
    groups: Sequence[str | None] | None = None
    reasons: Sequence[bytes | None] | None = None

    def __len__(self) -> int:
        return len(self.applications)


@dataclass(frozen=True)
class DecisionRows:
    """Decisions on the people of an entry; NaN where there was no score, probability or threshold.

    ``threshold`` is the score from which each person was accepted for sure, ``fold`` the part of
    the data that the person falls into if accepted; None where a classifier has no such thing.
    """

    round: int
    accepted: Bools
    exploit: Bools
    score: Floats
    propensity: Floats
    threshold: Floats | None = None
    fold: Ints | None = None


@dataclass(frozen=True)
class OutcomeRows:
    """States (``STATES``) by number of the person."""

    persons: Ints
    states: Sequence[str]


@dataclass(frozen=True)
class OverrideRows:
    """Decisions that somebody replaced, with the reason for each."""

    persons: Ints
    accepted: Bools
    reasons: Sequence[str]


@dataclass(frozen=True)
class Facts:
    """The rows of an entry; None where it has none of a kind. People come with decisions."""

    people: PeopleRows | None = None
    decisions: DecisionRows | None = None
    outcomes: OutcomeRows | None = None
    overrides: OverrideRows | None = None
    erased: Ints | None = None
    payload: bytes | None = None


@dataclass(frozen=True)
class Standing:
    """How things stand for some applications, in the order asked for.

    Attributes
    ----------
    persons
        Their numbers, −1 for applications that are not known.
    round
        The round that decided, 0 for the history.
    accepted
        Whether they stand accepted, overrides counted.
    overridden
        Whether an override says so.
    states
        Newest outcome, None while pending.
    """

    persons: Ints
    round: Ints
    accepted: Bools
    overridden: Bools
    states: list[str | None]


@dataclass(frozen=True)
class HeadCounts:
    """How many people there are of each kind, a row per kind, column by column.

    Attributes
    ----------
    round
        The round that decided, 0 for the history.
    accepted, exploit
        What was decided, and whether in the exploit region.
    override
        What the newest override says: 1 accepted, 0 rejected, −1 if there is none.
    state
        Place of the newest outcome in ``STATES``, −1 if there is none.
    groups
        Group values as JSON; None for people without, and for the erased.
    n
        How many.
    """

    round: Ints
    accepted: Bools
    exploit: Bools
    override: Ints
    state: Ints
    groups: Sequence[str | None]
    n: Ints


@dataclass(frozen=True)
class ListedRows:
    """People of one entry that follow each other, with all that is known of them by now.

    ``overrides`` and ``outcomes`` have None for people without, otherwise the newest: what was
    decided and why, and the state, each with the number of the entry that told it.
    """

    people: PeopleRows
    decisions: DecisionRows
    overrides: Sequence[tuple[bool, str, int] | None]
    outcomes: Sequence[tuple[str, int] | None]


class Reader(ABC):
    """A consistent view of one program."""

    @abstractmethod
    def head(self) -> Checkpoint:
        """Return where the chain stands."""

    @abstractmethod
    def entry(self, kind: str, key: str) -> Entry | None:
        """Return the entry of a kind and key, if there is one."""

    @abstractmethod
    def entries(self, after: int = 0, *, kind: str | None = None) -> Iterator[Entry]:
        """Yield entries behind a number, in order, all or those of a kind."""

    @abstractmethod
    def newest_first(self, kind: str) -> Iterator[Entry]:
        """Yield entries of a kind from the last to the first, each read when it is asked for."""

    @abstractmethod
    def n_people(self) -> int:
        """Return how many people the program knows, the history's included."""

    @abstractmethod
    def facts(self, entry: Entry) -> Facts:
        """Return the rows of an entry."""

    @abstractmethod
    def standing(self, applications: Sequence[str]) -> Standing:
        """Return how things stand for applications, in their order."""

    @abstractmethod
    def names(self, persons: Ints) -> list[str | None]:
        """Return the applications of people, None for the erased."""

    @abstractmethod
    def overridden_by(self, persons: Ints) -> Ints:
        """Return which entry is the newest override of each person, −1 where there is none."""

    @abstractmethod
    def check(self, entry: Entry, previous: bytes) -> str | None:
        """Recompute an entry's hashes from its rows; return what does not fit, or None."""

    @abstractmethod
    def count(self) -> dict[str, int]:
        """Return how many rows there are by what they hold, whether an entry covers them or not.

        That is ``entries``, ``people``, ``groups``, ``outcomes``, ``overrides``, ``erasures``, and
        ``payloads`` that are not erased, or belong to no entry.
        """

    @abstractmethod
    def head_counts(self, *, groups: bool = True) -> HeadCounts:
        """Count everybody by round, decision, override, outcome and, if wanted, groups."""

    @abstractmethod
    def sizes(self, kind: str) -> dict[int, int]:
        """Return how many people each correction, override or erasure is about, by number."""

    @abstractmethod
    def listed(self, first: int, end: int, *, groups: bool = False) -> ListedRows:
        """Return the people from a number to before another, who must be of one entry."""


class Writer(Reader):
    """A view that can be appended to, while nobody else can."""

    @abstractmethod
    def append(
        self, kind: str, header: dict[str, Any], facts: Facts, *, by: str, key: str | None = None
    ) -> Entry:
        """Append an entry with its rows; ``key`` None takes the entry's number.

        Raises
        ------
        InputError
            If the key is taken, an application is known already, or an outcome is for somebody
            who does not stand accepted, or who has one (none, for a correction).
        """


class Ledger(ABC):
    """A store of programs; ``clock`` tells the time (in UTC) at which entries are written."""

    clock: Callable[[], datetime]

    @abstractmethod
    def programs(self) -> list[str]:
        """Return the names of all programs, sorted."""

    @abstractmethod
    def creating(self, name: str) -> AbstractContextManager[Writer]:
        """Write the first entries of a new program; a name that is taken raises InputError."""

    @abstractmethod
    def reading(self, program: str) -> AbstractContextManager[Reader]:
        """Read one program."""

    @abstractmethod
    def writing(self, program: str) -> AbstractContextManager[Writer]:
        """Write to one program: all of it or, if the block raises, nothing."""


def to_json(value: Any) -> str:
    """Return JSON with sorted keys; floats that JSON lacks become text.

    Examples
    --------
    >>> to_json({"b": float("nan"), "a": np.int64(1)})
    '{"a":1,"b":"nan"}'
    """
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def _plain(value: Any) -> Any:
    match value:
        case np.generic():
            return _plain(value.item())
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            return {str(name): _plain(one) for name, one in value.items()}
        case list() | tuple():
            return [_plain(one) for one in value]
        case _:
            return value
