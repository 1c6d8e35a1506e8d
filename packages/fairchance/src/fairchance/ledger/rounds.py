"""Rounds that stay open for a time: when they are due, and deciding in one of them.

Within a round the policy is a value. So a process decides with the policy alone, without the
classifier and without the program's lock: many processes decide at once, and each decision is
durable before it is answered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.core.decisions import Decisions
from fairchance.errors import InputError, KnownApplicationError, OtherContentError
from fairchance.ledger.answers import Sent, answer, facts_of, new_ids
from fairchance.ledger.base import Entry, Facts, RecordedRows
from fairchance.ledger.encoding import Shape, encode_read_groups
from fairchance.ledger.policies import read_policy
from fairchance.ledger.replay import Allowed
from fairchance.ledger.retention import months_later
from fairchance.ledger.sql import LedgerReader, SqlLedger
from fairchance.methods.policy import Policy
from fairchance.people.intake import Batch, read_flags
from fairchance.people.reasons import as_codes, reasons_for

__all__ = ["Desk", "RoundRules", "made_after_close", "made_at"]

# Files may hold numbers in single precision, and other machines sum in another order.
_CLOSE = 1e-5
_PIECES = 8  # so many processes may decide before one of them looks whether the round is full


@dataclass(frozen=True)
class RoundRules:
    """When a program's rounds are due: after a time, or once they have so many applicants.

    Examples
    --------
    >>> RoundRules.read({"every": "1 week", "at_most": 5000})
    RoundRules(every='1 week', at_most=5000)
    """

    every: str | None = None
    at_most: int | None = None

    @staticmethod
    def read(table: Mapping[str, Any]) -> RoundRules:
        """Read the table [rounds] of a configuration, or the same data in ``about``."""
        rules = RoundRules(table.get("every"), table.get("at_most"))
        strange = {*table} - {"every", "at_most"}
        if strange or (rules.every is None and rules.at_most is None):
            raise InputError(f"rounds must have every, at_most or both, got {dict(table)!r}.")
        every = rules.every
        if every is not None and (not isinstance(every, str) or _EVERY.fullmatch(every) is None):
            raise InputError(
                f"rounds: every must be such as '1 month', '2 weeks' or '1 day', got {every!r}."
            )
        n = rules.at_most
        if n is not None and (isinstance(n, bool) or not isinstance(n, int) or n < 1):
            raise InputError(f"rounds: at_most must be a number of applicants, got {n!r}.")
        return rules

    @staticmethod
    def of(about: Mapping[str, Any]) -> RoundRules | None:
        """Return the rules of a program; None if each batch is a round."""
        return RoundRules.read(about["rounds"]) if "rounds" in about else None

    def due(self, opened: datetime) -> datetime | None:
        """Return when a round ends that is opened now; None if no time is set."""
        found = None if self.every is None else _EVERY.fullmatch(self.every)
        if found is None:
            return None
        n = int(found[1])
        if found[2] == "month":
            return months_later(opened, n)
        return opened + n * timedelta(days=7 if found[2] == "week" else 1)


_EVERY = re.compile(r"([1-9]\d{0,2}) (day|week|month)s?")


def made_at(at: str) -> datetime:
    """Return when decisions were made elsewhere, as a caller says; of a day its beginning."""
    try:
        when = datetime.fromisoformat(at)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{{option}} must be a day or a time, such as 2031-03-20 or 2031-03-20T16:30, got "
            f"{at!r}; nothing was recorded.",
            option="at",
        ) from error
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def made_after(at: str, closed: datetime) -> bool | None:
    """Return whether decisions were made after their round was closed.

    None if ``at`` is the day on which it was closed: then either is possible.

    Examples
    --------
    >>> closed = datetime(2031, 3, 20, 9, tzinfo=UTC)
    >>> [made_after(at, closed) for at in ("2031-03-20T09:30", "2031-03-20", "2031-03-19")]
    [True, None, False]
    """
    begin = made_at(at)
    if begin > closed:
        return True
    is_day = len(at) <= len("2031-03-20")  # with a time, no form of ISO 8601 is as short
    return None if is_day and begin + timedelta(days=1) > closed else False


def made_after_close(reader: LedgerReader, round: int, at: str) -> bool | None:
    """Return ``made_after`` for the closing of a round; False while it is open."""
    for entry in reader.newest_first("batch"):
        if entry.says["round"] <= round:
            return entry.says["round"] == round and made_after(at, entry.when)
    return False


class Desk:
    """Decides on applicants in a round of a program, with nothing but its policy.

    Attributes
    ----------
    opened
        The entry that opened the round, or its batch if that was decided at once.
    policy
        The policy of the round.
    """

    def __init__(
        self, reader: LedgerReader, settings: Entry, opened: Entry, allowed: Allowed
    ) -> None:
        self.opened = opened
        self.policy: Policy = read_policy(reader, opened, allowed)
        self._shape = Shape.read(settings.says)
        rules = RoundRules.of(settings.says.get("about", {}))
        self._at_most = None if rules is None else rules.at_most
        self._typical: NDArray[np.float64] | None = None  # the reference as the policy reads it
        self._n_own, self._look_at, self._is_full = 0, 0, False
        if self._at_most is not None:
            left = self._at_most - reader.n_since(opened.people_range.start)
            self._is_full, self._look_at = left <= 0, max(1, left // _PIECES)

    @property
    def has_to_look(self) -> bool:
        """Whether this process has decided so often that the round may be full by now."""
        return self._at_most is not None and self._n_own >= self._look_at

    def is_due(self, now: datetime) -> bool:
        """Return whether the round has to be closed."""
        expires = self.opened.says["expires"]
        return self._is_full or (expires is not None and now >= datetime.fromisoformat(expires))

    def decide(self, ledger: SqlLedger, program: str, X: Any, **given: Any) -> Decisions:
        """Decide on applicants, and return the decisions once they are durable.

        The same application gets the recorded answer; with another content it is refused.
        ``RoundClosedError`` if the round is open no more.
        """
        sent, batch = self.read(X, **given)
        self._n_own += len(batch)
        decided, facts = self._facts(sent, batch)
        receipts: list[bytes] | None = None
        while receipts is None:
            try:
                receipts = ledger.record_in_round(program, self.opened, facts)
            except KnownApplicationError:
                with ledger.reading(program) as reader:
                    new = self.unrecorded(reader, sent, batch)
                    if not new.size:
                        return replace(self.answer(reader, batch), backend=batch.backend)
                _, facts = self._facts(sent[new], batch[new])
        if len(receipts) < len(batch):
            with ledger.reading(program) as reader:
                return replace(self.answer(reader, batch), backend=batch.backend)
        assert facts.people is not None
        reasons = self._shape.reasons(facts.people.reasons)
        return replace(decided, reasons=reasons, receipts=tuple(receipts), applicants=None)

    def read(
        self,
        X: Any,
        *,
        ids: Any,
        sensitive_features: Any = None,
        incumbent: Any = None,
        barred: Any = None,
        persons: Any = None,
    ) -> tuple[Sent, Batch]:
        """Read applicants as the policy does."""
        encoded = self._shape.columns.encode(X)
        batch = self.policy.read(
            encoded.X,
            ids=new_ids(ids, len(encoded)),
            sensitive_features=sensitive_features,
            incumbent=incumbent,
            barred=barred,
            persons=persons,
        )
        # A round may have calls with and without them, and its rows have the same columns.
        none_barred = np.zeros(len(batch), np.bool_)
        batch = replace(
            batch,
            barred=none_barred if batch.barred is None else batch.barred,
            backend=encoded.backend,
        )
        return Sent(encoded, encode_read_groups(batch), sensitive_features, batch.ids), batch

    def _facts(self, sent: Sent, batch: Batch) -> tuple[Decisions, Facts]:
        decided = self.policy.decide_batch(batch)
        reasons = reasons_for(
            self.policy,
            sent.encoded.X,
            decided.accepted,
            self._shape.reference,
            sensitive_features=sent.sensitive_features,
            **self._read_already(sent, batch),
        )
        return decided, facts_of(sent, decided, reasons, batch.persons)

    def _read_already(self, sent: Sent, batch: Batch) -> dict[str, Any]:
        """Return what reasons need not read again, if the policy reads codes."""
        reference = self._shape.reference
        if reference is None or self.policy.reader.places is None:
            return {}
        if self._typical is None:
            given = {"sensitive_features": sent.sensitive_features}
            self._typical = as_codes(self.policy, sent.encoded.X, reference, **given)
        return {"scored": self.policy.scored(batch), "typical": self._typical}

    def decided_elsewhere(
        self, sent: Sent, batch: Batch, accepted: Any, rows: NDArray[np.intp]
    ) -> Facts:
        """Return decisions that were made by the policy elsewhere, of some applicants.

        Raises if one of them, or of the others, does not follow from the policy.
        """
        made = read_flags(accepted, len(batch), "accepted")
        does = self.does_instead(batch, made)
        wrong = np.flatnonzero(does != "")
        if wrong.size:
            raise InputError(
                f"{wrong.size} of {made.size} decisions do not follow from the policy of round "
                f"{self.policy.round}, which {does[wrong[0]]} {batch.ids[wrong[0]].item()!r} "
                f"first; nothing was recorded, remove them."
            )
        return self._facts(sent[rows], batch[rows])[1] if rows.size else Facts()

    def does_instead(
        self, batch: Batch, accepted: NDArray[np.bool_], **numbers: NDArray[np.float64]
    ) -> NDArray[np.str_]:
        """Return what the policy does where decisions differ from it; empty where they do not.

        ``numbers`` are their ``score`` and ``propensity``, if they are given.
        """
        decided = self.policy.decide_batch(batch)
        does = np.where(decided.accepted, "accepts", "rejects").astype(np.object_)
        does[decided.accepted == accepted] = ""
        for name, given in numbers.items():
            close = np.isclose(given, getattr(decided, name), _CLOSE, _CLOSE)
            does[~close & (does == "")] = f"has another {name}"
        return does.astype(np.str_)

    def unrecorded(self, reader: LedgerReader, sent: Sent, batch: Batch) -> NDArray[np.intp]:
        """Return which applications are not on record; the others must be of this content."""
        new, other, recorded = self.compared(reader, sent, batch)
        if other.any():
            raise OtherContentError(
                f"the application {str(batch.ids[np.argmax(other)])!r} is recorded with another "
                f"content; send it as recorded, or under a new id."
            )
        rounds = {*recorded.rounds.tolist()}
        own = rounds == {self.policy.round}
        if rounds and (len(rounds) > 1 or 0 in rounds or (new.any() and not own)):
            raise InputError(
                f"{len(recorded.people)} of {len(batch)} applications are in the ledger already, "
                f"first {recorded.people.applications[0]!r} in round {min(rounds)}; send them "
                f"apart from others, and an applicant who applies again under a new id."
            )
        return np.flatnonzero(new)

    def compared(
        self, reader: LedgerReader, sent: Sent, batch: Batch
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_], RecordedRows]:
        """Return which applications are not on record, which with other content, and the record."""
        recorded = reader.recorded(list(map(str, batch.ids.tolist())))
        stored = dict(zip(recorded.people.applications, _contents(recorded), strict=True))
        new, other = np.zeros((2, len(batch)), np.bool_)
        for row, (name, content) in enumerate(_sent_contents(sent, batch)):
            new[row] = name not in stored
            other[row] = not new[row] and stored[name] != content
        return new, other, recorded

    def answer(self, reader: LedgerReader, batch: Batch) -> Decisions:
        """Return the recorded decisions on applicants, who are all of one round."""
        names = list(map(str, batch.ids.tolist()))
        recorded = reader.recorded(names)
        row_of = {name: row for row, name in enumerate(recorded.people.applications)}
        rows = [row_of[name] for name in names]
        answered = answer(
            self._says_of(reader, recorded),
            self._shape,
            recorded.people,
            recorded.decisions,
            rows,
        )
        return replace(answered, receipts=tuple(recorded.receipts[row] for row in rows))

    def _says_of(self, reader: LedgerReader, recorded: RecordedRows) -> Mapping[str, Any]:
        """Return the header of the entry that says how recorded applications were decided on."""
        assert recorded.people.persons is not None
        person = int(recorded.people.persons[0])
        for kind in ("batch", "import"):
            for entry in reader.newest_first(kind):
                if person in entry.people_range:
                    return entry.says
        return self.opened.says


def _contents(recorded: RecordedRows) -> Iterator[tuple[Any, ...]]:
    """Yield what each recorded application says."""
    people, decisions, none = recorded.people, recorded.decisions, [None] * len(recorded.people)
    barred = none if decisions.barred is None else decisions.barred.tolist()
    yield from zip(
        people.numbers,
        people.texts,
        people.groups or none,
        people.person_keys or none,
        none if decisions.incumbent is None else decisions.incumbent.tolist(),
        [bool(one) for one in barred],
        strict=True,
    )


def _sent_contents(sent: Sent, batch: Batch) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield the name of each application that was sent, and what it says."""
    none = [None] * len(batch)
    columns = (
        sent.encoded.numbers,
        sent.encoded.texts,
        sent.groups or none,
        none if batch.persons is None else batch.persons.view(np.int64).tolist(),
        none if batch.incumbent is None else batch.incumbent.tolist(),
        none if batch.barred is None else batch.barred.tolist(),
    )
    yield from zip(map(str, batch.ids.tolist()), zip(*columns, strict=True), strict=True)
