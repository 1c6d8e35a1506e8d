"""How long people's data are kept: whose time is over, who is held, and who may be erased.

Time is counted in calendar months from the entry that recorded the decision, for people of the
history from the entry that recorded the history. A hold, as in a dispute before a court, keeps
people beyond their time; it is an entry of its own, and so is its end.
"""

from __future__ import annotations

import calendar
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import MAXYEAR, UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.errors import InputError, UnknownIdError
from secondlook.ledger.base import Entry, Facts, Ints, Ledger, Reader, Writer
from secondlook.ledger.texts import check_text

__all__ = [
    "MONTHS",
    "MOST_MONTHS",
    "REMOVE",
    "UNKNOWN",
    "Deadlines",
    "Wrong",
    "also_in",
    "check",
    "check_forgets",
    "check_months",
    "check_reason",
    "expired",
    "held",
    "months_later",
    "not_erasable",
    "not_held",
    "record_erasure",
    "record_hold",
    "retention_months",
]

MONTHS = 25  # for which data are kept if a program says nothing else
MOST_MONTHS = 1200  # a hundred years
REMOVE = "remove them"
UNKNOWN = "are not known, since they were never decided on or are erased already"

_Times = NDArray[np.datetime64]
Wrong = tuple[NDArray[np.bool_], str, str]


def also_in(ledger: Ledger, program: str, names: Sequence[str]) -> dict[str, int]:
    """Return how many of some ids each other program of a ledger holds, if any.

    Parameters
    ----------
    ledger, program
        Where to look, and which program is not another.
    names
        Ids as the ledger keeps them.
    """
    found: dict[str, int] = {}
    for other in ledger.programs():
        if other != program and names:
            with ledger.reading(other) as reader:
                n = int((reader.standing(list(names)).persons >= 0).sum())
            found |= {other: n} if n else {}
    return found


def retention_months(about: dict[str, Any]) -> int:
    """Return for how many months a program keeps people's data.

    Examples
    --------
    >>> retention_months({}), retention_months({"retention_months": 36})
    (25, 36)
    """
    months = about.get("retention_months", MONTHS)
    if isinstance(months, bool) or not isinstance(months, int) or months < 0:
        raise _no_months(months)
    return months


def check_months(about: dict[str, Any] | None) -> None:
    """Raise unless a new program would keep people's data for a time that can be told."""
    months = retention_months(about or {})
    if months > MOST_MONTHS:
        raise _no_months(months)


def _no_months(got: Any) -> InputError:
    return InputError(
        f"retention_months must be a whole number of months from 0 to {MOST_MONTHS}, got {got!r}; "
        f"create the program with such a number."
    )


def months_later(at: datetime, months: int) -> datetime:
    """Return the same time of the same day some months later, or of that month's last day.

    Programs of earlier versions may keep data beyond the last year that there is a date for.

    Examples
    --------
    >>> str(months_later(datetime(2031, 1, 31), 25))
    '2033-02-28 00:00:00'
    """
    year, month = divmod(at.year * 12 + at.month - 1 + months, 12)
    year = min(year, MAXYEAR)
    last = calendar.monthrange(year, month + 1)[1]
    return at.replace(year=year, month=month + 1, day=min(at.day, last))


@dataclass(frozen=True)
class Deadlines:
    """Until when people's data are kept, in runs of people who were recorded together.

    Attributes
    ----------
    first, end
        Number of each run's first person, and of the one behind its last.
    until
        When their time is over, in UTC.
    """

    first: Ints
    end: Ints
    until: _Times

    @staticmethod
    def of(reader: Reader, months: int) -> Deadlines:
        """Return the deadlines of everybody in a program."""
        entries = [one for kind in ("history", "batch") for one in reader.entries(kind=kind)]
        rows = [entry.says["rows"] for entry in entries]
        first = np.array([one["first"] for one in rows], np.int64)
        until = [months_later(one.when, months) for one in entries]
        return Deadlines(
            first,
            first + np.array([one["n"] for one in rows], np.int64),
            np.array([_in_utc(one) for one in until], "datetime64[us]"),
        )

    def of_people(self, persons: Ints) -> _Times:
        """Return until when each of some people is kept."""
        order = np.argsort(self.first, kind="stable")
        run = np.searchsorted(self.first[order], persons, side="right") - 1
        return np.asarray(self.until[order[run]])

    def over(self, now: datetime) -> Ints:
        """Return the numbers of everybody whose time is over, erased or not."""
        runs = np.flatnonzero(self.until <= np.datetime64(_in_utc(now)))
        people = [np.arange(self.first[one], self.end[one]) for one in runs]
        return np.concatenate([np.empty(0, np.int64), *people])


def held(reader: Reader) -> Ints:
    """Return the numbers of the people under hold."""
    found: set[int] = set()
    for entry in reader.entries(kind="hold"):
        change = found.update if entry.says["held"] else found.difference_update
        change(entry.says["persons"])
    return np.array(sorted(found), np.int64)


def expired(reader: Reader, deadlines: Deadlines, now: datetime) -> list[str]:
    """Return the applications whose time is over, without those held or erased."""
    persons = np.setdiff1d(deadlines.over(now), held(reader))
    erased = [reader.facts(entry).erased for entry in reader.entries(kind="erasure")]
    gone = [one for one in erased if one is not None]
    if gone:
        persons = np.setdiff1d(persons, np.concatenate(gone))
    return [name for name in reader.names(persons) if name is not None]


def check_reason(what: str, reason: str) -> None:
    """Raise unless something that needs a reason has one."""
    if not isinstance(reason, str) or not reason.strip():
        raise InputError(f"{what} needs a reason in words, got none; say why.")
    check_text(f"the reason for {what}", [reason])


def check_forgets(classifier: Any) -> None:
    """Raise unless a classifier can go on without people who are erased."""
    if not hasattr(classifier, "forget"):
        raise InputError(
            f"a {type(classifier).__name__} cannot forget people, so that its program could not go "
            f"on without them; nobody was erased, use PartialFeedbackClassifier or "
            f"CertifiedClassifier."
        )


def not_erasable(
    reader: Reader, persons: Ints, *, months: int, now: datetime, early: bool
) -> list[Wrong]:
    """Return who cannot be erased now, why, in words that follow on "ids that", and what to do."""
    until = Deadlines.of(reader, months).of_people(persons)
    soon = (persons >= 0) & (until > np.datetime64(_in_utc(now)))
    last = np.datetime_as_string(until[soon].max(), "D") if soon.any() else ""
    return [
        _not_known(persons),
        (
            np.isin(persons, held(reader)),
            "are under hold",
            f"release them first, or {REMOVE}",
        ),
        (
            soon & (not early),
            f"are kept for {months} months (until {last} at the latest)",
            f"erase them early (--early, early=True) and say why in the reason, or {REMOVE}",
        ),
    ]


def not_held(reader: Reader, persons: Ints, *, is_held: bool) -> list[Wrong]:
    """Return who cannot be held, or released, in the form of ``not_erasable``."""
    free = ~np.isin(persons, held(reader))
    wrong = [_not_known(persons)]
    return wrong if is_held else [*wrong, (free, "are not under hold", REMOVE)]


def check(names: Sequence[str], wrongs: Sequence[Wrong], done: str) -> None:
    """Raise for the first thing that is wrong with somebody; ``done`` says what was not done."""
    for wrong, why, do in wrongs:
        rows = np.flatnonzero(wrong)
        if rows.size:
            error = UnknownIdError if why == UNKNOWN else InputError
            raise error(
                f"{rows.size} of {len(names)} ids {why}, first {names[rows[0]]!r}; {done}, {do}."
            )


def record_hold(
    writer: Writer, names: Sequence[str], *, is_held: bool, reason: str, by: str
) -> None:
    """Append that people are held, or are no longer."""
    persons = writer.standing(names).persons
    done = "held" if is_held else "released"
    check(names, not_held(writer, persons, is_held=is_held), f"nobody was {done}")
    header = {"held": is_held, "reason": reason, "persons": np.sort(persons).tolist()}
    writer.append("hold", header, Facts(), by=by)


def record_erasure(
    writer: Writer,
    names: Sequence[str],
    reason: str,
    *,
    months: int,
    now: datetime,
    early: bool,
    by: str,
) -> Entry:
    """Append that people are erased, which erases them; return the entry."""
    persons = writer.standing(names).persons
    wrongs = not_erasable(writer, persons, months=months, now=now, early=early)
    check(names, wrongs, "nobody was erased")
    until = Deadlines.of(writer, months).of_people(persons)
    header = {
        "reason": reason,
        "retention_months": months,
        "n_early": int((until > np.datetime64(_in_utc(now))).sum()),
    }
    return writer.append("erasure", header, Facts(erased=persons), by=by)


def _not_known(persons: Ints) -> Wrong:
    return persons < 0, UNKNOWN, REMOVE


def _in_utc(at: datetime) -> datetime:
    """Return a time without its zone, as numpy has none."""
    return at.astimezone(UTC).replace(tzinfo=None)
