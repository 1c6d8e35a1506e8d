"""Rounds that stay open for a time: when they are due, and deciding in one of them.

Within a round the policy is a value. So a process decides with the policy alone, without the
classifier and without the program's lock: many processes decide at once, and each decision is
durable before it is answered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from fairchance.core.decisions import Decisions
from fairchance.errors import InputError, KnownApplicationError
from fairchance.frames import take
from fairchance.ledger.answers import Sent, answer, facts_of, new_ids
from fairchance.ledger.base import Entry, PeopleRows, RecordedRows
from fairchance.ledger.encoding import EncodedFeatures, Shape, encode_read_groups
from fairchance.ledger.policies import read_policy
from fairchance.ledger.replay import Allowed
from fairchance.ledger.retention import months_later
from fairchance.ledger.sql import Reader, SqlLedger
from fairchance.methods.policy import Policy
from fairchance.people.intake import Batch
from fairchance.people.reasons import reasons_for

__all__ = ["Desk", "RoundRules"]

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


class Desk:
    """Decides on applicants in the open round of a program, with nothing but its policy.

    Attributes
    ----------
    opened
        The entry that opened the round.
    policy
        The policy of the round.
    """

    def __init__(
        self, reader: Reader, settings: Entry, opened: Entry, allowed: Allowed, program: str
    ) -> None:
        self.opened, self._program = opened, program
        self.policy: Policy = read_policy(reader, opened, allowed)
        self._shape = Shape.read(settings.says)
        self._rules = RoundRules.of(settings.says["about"])
        self._n_own = 0  # decisions of this process since it last looked
        self._look_at = 0
        self.look(reader)

    def look(self, reader: Reader) -> None:
        """See how many applicants the round has."""
        self.is_full = False
        if self._rules is not None and self._rules.at_most is not None:
            left = self._rules.at_most - reader.n_since(self.opened.people_range.start)
            self.is_full = left <= 0
            self._n_own, self._look_at = 0, max(1, left // _PIECES)

    @property
    def has_to_look(self) -> bool:
        """Whether the round may be full by now."""
        rules = self._rules
        return rules is not None and rules.at_most is not None and self._n_own >= self._look_at

    def is_due(self, now: datetime) -> bool:
        """Return whether the round has to be closed."""
        expires = self.opened.says["expires"]
        return self.is_full or (expires is not None and now >= datetime.fromisoformat(expires))

    def decide(
        self,
        ledger: SqlLedger,
        X: Any,
        *,
        ids: Any,
        sensitive_features: Any = None,
        incumbent: Any = None,
        barred: Any = None,
        persons: Any = None,
    ) -> Decisions:
        """Decide on applicants, and return the decisions once they are durable.

        The same application gets the recorded answer; with another content it is refused.
        ``RoundClosedError`` if the round is open no more.
        """
        encoded = self._shape.columns.encode(X)
        batch = self.policy.read(
            encoded.X,
            ids=new_ids(ids, len(encoded)),
            sensitive_features=sensitive_features,
            incumbent=incumbent,
            barred=barred,
            persons=persons,
        )
        sent = Sent(encoded, encode_read_groups(batch), sensitive_features, batch.ids)
        # A round may have calls with and without them, and its rows have the same columns.
        none_barred = np.zeros(len(batch), np.bool_)
        batch = replace(batch, barred=none_barred if batch.barred is None else batch.barred)
        decided = replace(self._record(ledger, sent, batch), backend=encoded.backend)
        self._n_own += len(decided)
        return decided

    def _record(self, ledger: SqlLedger, sent: Sent, batch: Batch) -> Decisions:
        decided = self.policy.decide_batch(batch)
        reasons = reasons_for(
            self.policy,
            sent.encoded.X,
            decided.accepted,
            self._shape.reference,
            sensitive_features=sent.sensitive_features,
        )
        facts = facts_of(sent, decided, reasons)
        try:
            receipts = ledger.record_in_round(self._program, self.opened, facts)
        except KnownApplicationError:
            return self._repeat(ledger, sent, batch)
        return replace(
            decided,
            reasons=self._shape.reasons(reasons),
            receipts=tuple(receipts),
            applicants=None,
        )

    def _repeat(self, ledger: SqlLedger, sent: Sent, batch: Batch) -> Decisions:
        """Answer from the record; applicants who are not on it are decided on first."""
        names = list(map(str, batch.ids.tolist()))
        with ledger.reading(self._program) as reader:
            recorded = reader.recorded(names)
            says = self._header(reader, recorded)
        row_of = {name: row for row, name in enumerate(recorded.people.applications)}
        known = np.array([name in row_of for name in names])
        self._check_same(recorded.people, recorded, row_of, sent, batch, np.flatnonzero(known))
        new = np.flatnonzero(~known)
        if new.size:
            if says["round"] != self.policy.round:
                first = names[int(np.argmax(known))]
                raise InputError(
                    f"{int(known.sum())} of {known.size} applications were decided on in round "
                    f"{says['round']}, first {first!r}; send them apart from new ones."
                )
            self._record(ledger, _rows_of(sent, new), batch[new])
            return self._repeat(ledger, sent, batch)
        rows = [row_of[name] for name in names]
        return replace(
            answer(says, self._shape, recorded.people, recorded.decisions, rows),
            receipts=tuple(recorded.receipts[row] for row in rows),
        )

    def _header(self, reader: Reader, recorded: RecordedRows) -> Mapping[str, Any]:
        """Return what the entry of the recorded applications' round says."""
        rounds = {*recorded.rounds.tolist()}
        if rounds == {self.policy.round}:
            return self.opened.says
        if len(rounds) == 1 and 0 not in rounds:
            person = recorded.people.persons[0]  # type: ignore[index]
            for kind in ("batch", "import"):
                for entry in reader.newest_first(kind):
                    if person in entry.people_range:
                        return entry.says
        raise InputError(
            f"an application is in the ledger already, first "
            f"{recorded.people.applications[0]!r}, and others in other rounds; an applicant who "
            f"applies again needs a new id."
        )

    def _check_same(
        self,
        people: PeopleRows,
        recorded: RecordedRows,
        row_of: Mapping[str | None, int],
        sent: Sent,
        batch: Batch,
        at: Any,
    ) -> None:
        """Raise if an application is recorded with another content."""
        decisions = recorded.decisions

        def stored(row: int) -> tuple[Any, ...]:
            return (
                people.numbers[row],
                people.texts[row],
                None if people.groups is None else people.groups[row],
                None if people.person_keys is None else people.person_keys[row],
                None if decisions.incumbent is None else bool(decisions.incumbent[row]),
                False if decisions.barred is None else bool(decisions.barred[row]),
            )

        keys = None if batch.persons is None else batch.persons.view(np.int64).tolist()
        for place in at.tolist():
            name = str(batch.ids[place])
            given = (
                sent.encoded.numbers[place],
                sent.encoded.texts[place],
                None if sent.groups is None else sent.groups[place],
                None if keys is None else keys[place],
                None if batch.incumbent is None else bool(batch.incumbent[place]),
                False if batch.barred is None else bool(batch.barred[place]),
            )
            if stored(row_of[name]) != given:
                raise InputError(
                    f"the application {name!r} is recorded with another content; send it as "
                    f"recorded, or under a new id."
                )


def _rows_of(sent: Sent, rows: Any) -> Sent:
    """Return some of the applications that were sent."""

    def some(values: Sequence[Any] | None) -> Any:
        return None if values is None else [values[row] for row in rows.tolist()]

    encoded, groups = sent.encoded, sent.sensitive_features
    return Sent(
        EncodedFeatures(
            take(encoded.X, rows), encoded.backend, some(encoded.numbers), some(encoded.texts)
        ),
        some(sent.groups),
        None if groups is None else take(groups, rows),
        sent.ids[rows],
    )
