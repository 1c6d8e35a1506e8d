"""Why an outcome, override, hold or erasure is refused for some applicants.

``Program`` raises for the first objection; the command line refuses those rows of a file and goes
on with the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from fairchance.errors import InputError, OtherContentError, UnknownIdError
from fairchance.ledger.base import Bools, Entry, Ints, Standing
from fairchance.ledger.outcomes import TakeUpWindow
from fairchance.ledger.retention import Deadlines, held, in_utc
from fairchance.ledger.sql import LedgerReader
from fairchance.words.applicants import objection_advice, objection_words

__all__ = ["Objection", "Request", "check_objections", "overrides_in_force"]
__all__ += ["to_erasure", "to_hold", "to_not_taken", "to_outcome", "to_override", "to_release"]
__all__ += ["to_undo"]


class Objection(NamedTuple):
    """Something wrong with some of the applicants.

    Attributes
    ----------
    applies
        Whether it applies to each applicant.
    code
        What is wrong; ``words/applicants.py`` has the sentences.
    option
        The option that lets them pass; empty if there is none.
    until
        The day until which they are kept, for ``"retained"``.
    """

    applies: Bools
    code: str
    option: str = ""
    until: str = ""


def check_objections(
    names: Sequence[str],
    objections: Iterable[Objection],
    undone: str,
    error: type[InputError] = InputError,
) -> None:
    """Raise for the first objection that applies to an applicant.

    The most important objection comes first; ``undone`` says what was not done, and ``error`` is
    raised if the applicant is known.
    """
    for objection in objections:
        rows = np.flatnonzero(objection.applies)
        if rows.size:
            raise (UnknownIdError if objection.code == "unknown" else error)(
                f"{rows.size} of {len(names)} ids "
                f"{objection_words(objection.code, objection.until)}, first "
                f"{names[rows[0]]!r}; {undone}, {objection_advice(objection.code)}.",
                option=objection.option,
            )


@dataclass(frozen=True)
class Request:
    """A call that is recorded under a name, which makes it harmless to repeat it.

    Nothing is kept for the comparison but what the entry has anyway, so that a guess about erased
    applicants cannot be confirmed. They count as sent if the same is asked for as many unknown ids.

    Attributes
    ----------
    name, entry
        The name, and the first entry with it.
    done
        What was recorded for each applicant, by number: the outcome, or decision and reason.
    """

    name: str
    entry: Entry
    done: dict[int, Any]

    @staticmethod
    def recorded(reader: LedgerReader, kind: str, name: str | None) -> Request | None:
        """Return the request of a name, if there is one; a correction counts as outcomes."""
        kinds = ("outcomes", "correction") if kind == "outcomes" else (kind,)
        found = [reader.entry(each, name) for each in kinds] if name is not None else []
        entries = [entry for entry in found if entry is not None]
        if name is None or not entries:
            return None
        done: dict[int, Any] = {}
        for entry in entries:
            done |= _done_by(reader, entry)
        return Request(name, entries[0], done)

    def covers(self, reader: LedgerReader, standing: Standing, asked: Sequence[Any]) -> Bools:
        """Return which applicants the request covers, or have or had the outcome asked for.

        Raise if the request did something else, or lacks an applicant who is not erased.
        """
        # An id that was erased may have been used again since.
        before = standing.persons < self.entry.people_range.start
        before |= np.isin(standing.persons, [*self.done])  # also of the round that was open then
        persons = np.where(before, standing.persons, -1).tolist()
        sent = [*zip(persons, asked, standing.states, strict=True)]
        gone = sorted({*self.done} - {*persons})
        unknown = Counter(new for person, new, _ in sent if person < 0)
        is_same = all(self.done.get(person, new) == new for person, new, _ in sent)
        is_same &= Counter(self.done[person] for person in gone) <= unknown
        if not is_same or {*reader.names(np.array(gone, np.int64))} - {None}:
            raise self.other_content()
        return np.array(
            [
                person in self.done
                or new == state
                or new == self._state_before(reader, person)
                or (person < 0 and bool(gone))
                for person, new, state in sent
            ],
            np.bool_,
        )

    def _state_before(self, reader: LedgerReader, person: int) -> str | None:
        """Return the outcome of an applicant when the request came; it may be corrected since."""
        before = [one for entry, one in reader.outcomes_of(person) if entry < self.entry.number]
        return before[-1] if before else None

    def other_content(self) -> InputError:
        """Return the error for a call with the name and other content."""
        return OtherContentError(
            f"a request was recorded under the name {self.name!r} with other content (entry "
            f"{self.entry.number}, {self.entry.kind}); nothing was changed, send the recorded "
            f"request or take another name."
        )


def _done_by(reader: LedgerReader, entry: Entry) -> dict[int, Any]:
    says, facts = entry.says, reader.facts(entry)
    if entry.kind == "hold":
        return dict.fromkeys(says["persons"], (says["held"], says["reason"]))
    if facts.overrides is not None:
        rows, undo = facts.overrides, says.get("undo", False)
        what = [None] * len(rows.reasons) if undo else rows.accepted.tolist()
        return dict(zip(rows.persons.tolist(), zip(what, rows.reasons, strict=True), strict=True))
    if facts.erased is not None:
        return dict.fromkeys(facts.erased.tolist(), says["reason"])
    if facts.outcomes is not None:
        return dict(zip(facts.outcomes.persons.tolist(), facts.outcomes.states, strict=True))
    return {}


def to_outcome(standing: Standing) -> list[Objection]:
    """Return why applicants can have no outcome."""
    return [
        _unknown(standing.persons),
        Objection(~standing.accepted, "not_accepted"),
    ]


def to_not_taken(
    reader: LedgerReader, standing: Standing, window: TakeUpWindow, now: datetime
) -> list[Objection]:
    """Return why it cannot be recorded that accepted applicants did not take the loan.

    It replaces no outcome, and comes within the window; otherwise bad outcomes could be dropped.
    """
    other = np.array([state not in (None, "not_taken") for state in standing.states], np.bool_)
    new = np.array([state is None for state in standing.states], np.bool_)
    late = window.over([*reader.entries(kind="batch")], reader.open_round(), standing.persons, now)
    return [Objection(other, "taken"), Objection(new & late, "take_up_over")]


def to_override(reader: LedgerReader, standing: Standing, accepted: bool) -> list[Objection]:
    """Return why decisions cannot be overridden."""
    return [
        *_not_decided_here(standing),
        Objection(overrides_in_force(reader, standing), "overridden", option="undo"),
        _has_outcome(standing),
        Objection(standing.accepted == accepted, "accepted" if accepted else "rejected"),
    ]


def to_undo(reader: LedgerReader, standing: Standing) -> list[Objection]:
    """Return why overrides cannot be undone."""
    return [
        *_not_decided_here(standing),
        Objection(~overrides_in_force(reader, standing), "not_overridden"),
        _has_outcome(standing),
    ]


def to_hold(persons: Ints) -> list[Objection]:
    """Return why applicants cannot be put under hold."""
    return [_unknown(persons)]


def to_release(reader: LedgerReader, persons: Ints) -> list[Objection]:
    """Return why applicants cannot be released from a hold."""
    free = ~np.isin(persons, held(reader))
    return [_unknown(persons), Objection(free, "not_held")]


def to_erasure(
    reader: LedgerReader, persons: Ints, *, months: int, now: datetime, early: bool
) -> list[Objection]:
    """Return why applicants cannot be erased now; ``months`` is the program's retention period."""
    until = Deadlines.of(reader, months).of_people(persons)
    soon = (persons >= 0) & (until > np.datetime64(in_utc(now)))
    last = np.datetime_as_string(until[soon].max(), "D") if soon.any() else ""
    return [
        _unknown(persons),
        Objection(np.isin(persons, held(reader)), "held"),
        Objection(soon & (not early), "retained", option="early", until=last),
    ]


def overrides_in_force(reader: LedgerReader, standing: Standing) -> Bools:
    """Return whether each applicant has an override that was not undone."""
    if not standing.overridden.any():
        return standing.overridden
    last = reader.overridden_by(standing.persons)
    entries = reader.entries(int(last[last >= 0].min()) - 1, kind="override")
    undone = [entry.number for entry in entries if entry.says.get("undo", False)]
    return (last >= 0) & ~np.isin(last, undone)


def _unknown(persons: Ints) -> Objection:
    return Objection(persons < 0, "unknown")


def _not_decided_here(standing: Standing) -> list[Objection]:
    return [
        _unknown(standing.persons),
        Objection(standing.round == 0, "in_history"),
    ]


def _has_outcome(standing: Standing) -> Objection:
    known = np.array([state is not None for state in standing.states], np.bool_)
    return Objection(known, "has_outcome")
