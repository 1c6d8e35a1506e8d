"""How long applicants are kept: retention periods and holds.

The period is counted in calendar months from the entry that recorded the decision, or the history.
A hold, for example during a court case, keeps applicants beyond it; it is an entry of its own, and
so is its end.
"""

from __future__ import annotations

import calendar
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.errors import InputError
from fairchance.ledger.base import Ints, check_text
from fairchance.ledger.sql import LedgerReader, SqlLedger

__all__ = ["MONTHS", "MOST_MONTHS", "Deadlines", "also_in", "check_reason"]
__all__ += ["expired", "held", "in_utc", "months_later", "retention_months"]

MONTHS = 25  # the retention period of a program that sets none
MOST_MONTHS = 1200  # a hundred years

_Times = NDArray[np.datetime64]


def also_in(ledger: SqlLedger, program: str, names: Sequence[str]) -> dict[str, int]:
    """Return how many of the ids each other program of the ledger has, if it has any.

    Parameters
    ----------
    ledger, program
        The ledger, and the program to leave out.
    names
        Ids as the ledger stores them.
    """
    counts: dict[str, int] = {}
    for other in ledger.programs():
        if other != program and names:
            with ledger.reading(other) as reader:
                n = int((reader.standing(list(names)).persons >= 0).sum())
            counts |= {other: n} if n else {}
    return counts


def retention_months(about: dict[str, Any]) -> int:
    """Return for how many months a program keeps applicants.

    Examples
    --------
    >>> retention_months({}), retention_months({"retention_months": 36})
    (25, 36)
    """
    months = about.get("retention_months", MONTHS)
    is_whole = isinstance(months, int) and not isinstance(months, bool)
    if not is_whole or not 0 <= months <= MOST_MONTHS:
        raise InputError(
            f"retention_months must be a whole number of months from 0 to {MOST_MONTHS}, got "
            f"{months!r}; change it."
        )
    return int(months)


def months_later(at: datetime, months: int) -> datetime:
    """Return the same time on the same day some months later, or on that month's last day.

    Examples
    --------
    >>> str(months_later(datetime(2031, 1, 31), 25))
    '2033-02-28 00:00:00'
    """
    year, month = divmod(at.year * 12 + at.month - 1 + months, 12)
    last = calendar.monthrange(year, month + 1)[1]
    return at.replace(year=year, month=month + 1, day=min(at.day, last))


@dataclass(frozen=True)
class Deadlines:
    """Until when applicants are kept, in runs of applicants who were recorded together.

    Attributes
    ----------
    first, end, n
        Number of each run's first applicant, the number after its last, and how many there are.
    until
        When their retention period ends, in UTC.
    """

    first: Ints
    end: Ints
    n: Ints
    until: _Times

    @staticmethod
    def of(reader: LedgerReader, months: int) -> Deadlines:
        """Return the deadlines of all applicants of a program."""
        kinds = ("history", "batch", "import")
        entries = [entry for kind in kinds for entry in reader.entries(kind=kind)]
        rows = [entry.says["rows"] for entry in entries]
        until = [months_later(entry.when, months) for entry in entries]
        first, end, n = (
            np.array([run[name] for run in rows], np.int64) for name in ("first", "end", "n")
        )
        return Deadlines(first, end, n, np.array([in_utc(at) for at in until], "datetime64[us]"))

    def of_people(self, persons: Ints) -> _Times:
        """Return until when each applicant is kept."""
        order = np.argsort(self.first, kind="stable")
        run = np.searchsorted(self.first[order], persons, side="right") - 1
        return np.asarray(self.until[order[run]])

    def over(self, reader: LedgerReader, now: datetime) -> Ints:
        """Return the numbers of applicants whose period is over, erased or not."""
        people = [np.empty(0, np.int64)]
        for run in np.flatnonzero(self.until <= np.datetime64(in_utc(now))):
            rows = range(self.first[run], self.end[run])
            people.append(np.array(rows) if len(rows) == self.n[run] else reader.persons(rows))
        return np.concatenate(people)


def held(reader: LedgerReader) -> Ints:
    """Return the numbers of the applicants under hold."""
    persons: set[int] = set()
    for entry in reader.entries(kind="hold"):
        change = persons.update if entry.says["held"] else persons.difference_update
        change(entry.says["persons"])
    return np.array(sorted(persons), np.int64)


def expired(reader: LedgerReader, deadlines: Deadlines, now: datetime) -> list[str]:
    """Return the applications whose period is over, without those held or erased."""
    persons = np.setdiff1d(deadlines.over(reader, now), held(reader))
    erased = [reader.facts(entry).erased for entry in reader.entries(kind="erasure")]
    for gone in erased:
        if gone is not None:
            persons = np.setdiff1d(persons, gone)
    return [name for name in reader.names(persons) if name is not None]


def check_reason(what: str, reason: str) -> None:
    """Raise unless there is a reason for something that needs one."""
    if not isinstance(reason, str) or not reason.strip():
        raise InputError(f"{what} needs a reason as text, got {reason!r}; give one.")
    check_text(f"the reason for {what}", [reason])


def in_utc(at: datetime) -> datetime:
    """Return a time without its zone, as numpy has none."""
    return at.astimezone(UTC).replace(tzinfo=None)
