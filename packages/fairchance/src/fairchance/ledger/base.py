"""The contract of a ledger in prose, and the values that go in and out.

``sql`` keeps the contract on SQLite and PostgreSQL; ``tests/ledger/test_contract.py`` tests it.

**Facts.** A program is a chain of entries, numbered from 1. An entry records one event, or a batch
of the same: the program's settings, the history, a policy, the opening of a round, a batch with its
decisions, decisions that were imported late, a certificate, outcomes, corrections, overrides,
holds, erasures, a change of the ramp, an alert that was sent, a move to another ledger, or a state
to continue from. Its rows are the applicants, their group values (apart), the decisions and so on.
An entry never changes; a mistake is corrected by appending another.

**Durability.** If ``writing`` ends without an exception, everything appended in it survives the end
of the process and of the machine. Otherwise nothing of it is recorded.

**Order.** Entries have consecutive numbers in the order in which they became durable. Applicants
have numbers too, from 0, in the order of their batches and of the rows in a batch. Numbers may be
missing among the applicants of an open round.

**Rounds.** A round may be opened before anybody is decided on (``Writer.begin_round``, an entry of
kind ``round``). While it is open, any number of processes add applicants with their decisions at
once (``SqlLedger.record_in_round``); each is durable when that returns, appends no entry, and waits
for no writer of the program. Closing the round (``Writer.close_round``) appends the entry of kind
``batch`` that covers all of them. At most one round of a program is open, and no other entry adds
applicants meanwhile. An applicant's digest is the receipt of a decision.

**Idempotency.** A program has at most one entry of a kind and a key. Appending another raises, so a
caller who is not sure calls ``entry`` first, inside the same ``writing``.

**Concurrency.** At most one caller appends to a program at a time; others wait in ``writing``, and
then see everything written before. Readers never wait, and see whole entries only.

**Outcomes** can be recorded for applicants whom the decision, or its newest override, accepts. A
recorded outcome can be replaced by a correction only. An accepted applicant without an outcome is
pending. An applicant who did not take the loan has the outcome ``not_taken``, which replaces none
and is recorded within a time that is fixed when the program is made (``outcomes.TakeUpWindow``).

**Control.** What is done is the lender's own decision with probability 1 − r, and the program's
with probability r, the ramp. Entries of kind ``control`` change the ramp, pause the program
(r = 0), resume it, and hand over to it; a batch records the ramp that it was decided with.

**Moves.** After an entry of kind ``move`` that says where the program went, nothing is appended.
Its copy there goes on with an entry that says where it came from (``move``).

**States** are stored to continue from, and each knows all applicants by their ids. Features of the
accepted are read from their rows when they are needed (``LedgerReader.accepted``). Appending a
state deletes the content of those that are not needed any more (``LedgerReader.kept_states``);
their digests remain.

**Erasure** is the only other operation that deletes: names, features, group values, reasons and
pseudonyms of the given applicants, with the salts of their digests, and the content of every state
stored before, since states hold applicants too. Decisions, outcomes and digests remain, and an
entry records who was erased and why. The chain is still complete, and the names may be used again.
A hold lists applicants by number in its header, as does its end; ``retention`` decides who may be
erased when.

**Proof.** Every row has a digest (``chain``), and an entry's hash covers the digests of its rows.
``stored`` and ``stored_digests`` return both as they are kept, even if damaged, and ``uncovered``
names a row that belongs to no entry; ``verification`` compares them.

**Errors.** ``LedgerError`` if the database fails, has another version, or lacks the program;
``InputError`` if an argument does not fit. After either, nothing was recorded.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from reprlib import repr as shown
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.errors import InputError, LedgerError
from fairchance.people.ids import is_text

__all__ = ["KINDS", "LONGEST", "STATES", "DecisionRows", "Entry", "Facts", "HeadCounts"]
__all__ += ["ListedRows", "OutcomeRows", "OverrideRows", "PeopleRows", "RecordedRows", "Standing"]
__all__ += ["check_about", "check_name", "check_program_name", "check_text", "to_json"]

KINDS = (
    "program",
    "history",
    "policy",
    "round",
    "batch",
    "import",
    "outcomes",
    "correction",
    "override",
    "hold",
    "erasure",
    "snapshot",
    "certificate",
    "control",
    "alert",
    "move",
)
STATES = ("good", "bad", "withdrawn", "not_taken")
LONGEST_JSON = 2**24  # characters of a header, or of the texts or groups of one applicant
LONGEST = 500  # characters of what is looked up; an index of PostgreSQL takes 2,700 bytes

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Entry:
    """One link of a program's chain.

    Attributes
    ----------
    number
        Its place in the chain, from 1.
    kind, key
        One of ``KINDS``, and the caller's name for it; no two of a kind share a key.
    at, by
        The time (UTC, ISO 8601) and the author.
    header
        Facts about the entry as a whole, as JSON.
    content, previous, hash
        The hash of its rows, the hash of the entry before, and the hash of all of this.
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

    @cached_property
    def says(self) -> dict[str, Any]:
        """The header; ``LedgerError`` if it cannot be read, or lacks a key that is looked up."""
        if len(self.header) > LONGEST_JSON:
            raise _illegible(self.number, f"its header has more than {LONGEST_JSON:,} characters")
        try:
            values = json.loads(self.header, object_hook=lambda part: _Header(part, self.number))
        except (ValueError, TypeError, RecursionError) as error:
            raise _illegible(self.number, str(error)) from error
        if not isinstance(values, _Header):
            raise _illegible(self.number, "its header is no JSON object")
        return values

    @property
    def people_range(self) -> range:
        """Where the numbers of the applicants are that this entry adds; some may be missing."""
        rows = self.says["rows"]
        return range(rows["first"], rows["end"])

    @property
    def moved_to(self) -> str | None:
        """The ledger to which the program was moved with this entry; None if it was not."""
        return self.says.get("to") if self.kind == "move" else None

    @property
    def when(self) -> datetime:
        """The time of the entry; ``LedgerError`` if it cannot be read."""
        try:
            return datetime.fromisoformat(self.at)
        except (ValueError, TypeError) as error:
            raise _illegible(self.number, str(error)) from error


class _Header(dict[str, Any]):
    """A part of a header; a missing key means a damaged ledger, so it raises ``LedgerError``."""

    def __init__(self, values: Any, entry: int = 0) -> None:  # dataclasses copy with one argument
        super().__init__(values)
        self._entry = entry

    def __missing__(self, name: str) -> Any:
        raise _illegible(self._entry, f"its header lacks {name!r}")


def _illegible(entry: int, why: str) -> LedgerError:
    return LedgerError(f"entry {entry} cannot be read ({why}); verify the ledger.")


@dataclass(frozen=True)
class PeopleRows:
    """Applicants, column by column, with None for erased values.

    ``groups`` is None for a program without groups, otherwise a JSON text per applicant.
    ``reasons`` is None if none were recorded, otherwise the reasons of each rejected applicant
    (``fairchance.people.reasons``) and None for the others. ``person_keys`` are pseudonyms of the
    persons who apply, 64 bits each as signed numbers; None if persons were not given. ``persons``
    are the numbers of applicants that were read.
    """

    applications: Sequence[str | None]
    numbers: Sequence[bytes | None]
    texts: Sequence[str | None]
    groups: Sequence[str | None] | None = None
    reasons: Sequence[bytes | None] | None = None
    person_keys: Sequence[int | None] | None = None
    persons: Ints | None = None

    def __len__(self) -> int:
        return len(self.applications)


@dataclass(frozen=True)
class DecisionRows:
    """Decisions on the applicants of an entry, with NaN for a missing score or probability.

    ``threshold`` is the score from which an applicant was accepted with certainty, None if the
    classifier has none. ``incumbent`` is the lender's own decision, and ``barred`` who may not be
    accepted; None if they were not given, also for single rows if several rounds are read at once.
    """

    round: int
    accepted: Bools
    exploit: Bools
    score: Floats
    propensity: Floats
    threshold: Floats | None = None
    incumbent: Bools | None = None
    barred: Bools | None = None


@dataclass(frozen=True)
class OutcomeRows:
    """Outcomes (``STATES``) by number of the applicant."""

    persons: Ints
    states: Sequence[str]


@dataclass(frozen=True)
class OverrideRows:
    """Decisions that were replaced by hand, with a reason for each."""

    persons: Ints
    accepted: Bools
    reasons: Sequence[str]


@dataclass(frozen=True)
class Facts:
    """The rows of an entry; None for a table without rows. Applicants come with decisions."""

    people: PeopleRows | None = None
    decisions: DecisionRows | None = None
    outcomes: OutcomeRows | None = None
    overrides: OverrideRows | None = None
    erased: Ints | None = None
    payload: bytes | None = None


@dataclass(frozen=True)
class Standing:
    """The present status of some applications, in the given order.

    Attributes
    ----------
    persons
        Numbers of the applicants, −1 for unknown applications.
    round
        The round that decided, 0 for the history.
    accepted
        Whether each one is accepted, by the decision or its newest override.
    overridden
        Whether the decision was overridden.
    states
        The newest outcome, None while pending.
    exploit, score
        Of the program's decision: whether it was in the exploit region, and the score.
    """

    persons: Ints
    round: Ints
    accepted: Bools
    overridden: Bools
    states: list[str | None]
    exploit: Bools
    score: Floats


@dataclass(frozen=True)
class RecordedRows:
    """Applicants that are known by their applications, in the order of their numbers.

    Attributes
    ----------
    people, decisions
        As they are recorded; ``decisions.round`` is −1 if there are several.
    rounds
        The round of each decision, 0 for the history.
    receipts
        The digest of each row.
    """

    people: PeopleRows
    decisions: DecisionRows
    rounds: Ints
    receipts: list[bytes]


@dataclass(frozen=True)
class HeadCounts:
    """The number of applicants of each kind, a row per kind, column by column.

    Attributes
    ----------
    round
        The round that decided, 0 for the history.
    accepted, exploit
        The decision, and whether it was in the exploit region.
    override
        The newest override: 1 accepted, 0 rejected, −1 if there is none.
    state
        The place of the newest outcome in ``STATES``, −1 if there is none.
    groups
        Group values as JSON; None for erased applicants, and without groups.
    n
        The number of applicants.
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
    """Applicants of one entry, and all that is known of them by now.

    ``overrides`` has the newest decision by hand, its reason and its entry, ``outcomes`` the newest
    state and its entry; None for applicants without.
    """

    people: PeopleRows
    decisions: DecisionRows
    overrides: Sequence[tuple[bool, str, int] | None]
    outcomes: Sequence[tuple[str, int] | None]


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
            return {str(name): _plain(part) for name, part in value.items()}
        case list() | tuple():
            return [_plain(part) for part in value]
        case _:
            return value


def check_text(what: str, values: Sequence[str | None], longest: int | None = None) -> None:
    """Raise unless each value is text that every database keeps unchanged, and not too long.

    Examples
    --------
    >>> check_text("a key", ["2025-01", "2025-02"], longest=7)
    """
    if None in values or not is_text("".join(values)):  # type: ignore[arg-type]
        strange = next(value for value in values if value is None or not is_text(value))
        raise InputError(
            f"{what} must be text without NUL or half a surrogate pair, got {shown(strange)}."
        )
    if longest is not None and max(map(len, values), default=0) > longest:  # type: ignore[arg-type]
        longer = next(value for value in values if len(value or "") > longest) or ""
        raise InputError(
            f"{what} may have {longest} characters, got {len(longer):,} in {shown(longer)}; "
            f"shorten it."
        )


def check_name(what: str, name: str, longest: int | None = LONGEST) -> None:
    """Raise unless a name passes ``check_text`` and is not empty.

    Examples
    --------
    >>> check_name("a key", "")
    Traceback (most recent call last):
    fairchance.errors.InputError: a key must not be empty; give one.
    """
    check_text(what, [name], longest)
    if not name:
        raise InputError(f"{what} must not be empty; give one.")


def check_program_name(name: str) -> None:
    """Raise unless a new program may have this name; checkpoints lose white space around it.

    Examples
    --------
    >>> check_program_name("lender")
    """
    what = "a program's name"
    check_name(what, name)
    if name != name.strip():
        raise InputError(
            f"{what} must not begin or end with white space, got {shown(name)}; remove it."
        )


def check_about(about: Any) -> None:
    """Raise unless ``about`` can be kept with an entry: None, or a dictionary that JSON can hold.

    Examples
    --------
    >>> check_about({"reviewed": True, "tickets": [12, 17]})
    """
    try:
        fits = about is None or (isinstance(about, dict) and bool(to_json(about)))
    except (TypeError, ValueError, RecursionError):
        fits = False
    if not fits:
        raise InputError(
            f"about must be a dictionary that JSON can hold, got {shown(about)}; convert it."
        )
    check_text("text in about", [*_texts_in(about)])


def _texts_in(value: Any) -> Iterator[str]:
    """Yield every text of a JSON value, keys included."""
    match value:
        case str():
            yield value
        case dict():
            for name, part in value.items():
                yield str(name)
                yield from _texts_in(part)
        case list() | tuple():
            for part in value:
                yield from _texts_in(part)
