"""Numbers, money, dates and values as words, for every message to a reader."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

__all__ = ["LIGHTS", "amount", "counted", "date", "date_span", "days", "first_of"]
__all__ += ["independence", "intervals_assume", "listed", "people", "percent", "percents"]
__all__ += ["plain_data", "share", "shortened", "times"]

LIGHTS = ("red", "amber", "green")  # how a check came out, the worst first
_NAMED = 2  # names in a sentence
_SHOWN = 40  # characters of a value in a message
_TINY = 1e-5  # shares below it are written as such
_LARGE = 9.99  # shares from it on have more than three digits
# Not strftime, which follows the locale.
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def counted(n: int, singular: str, plural: str | None = None) -> str:
    """Write a number of things.

    Examples
    --------
    >>> counted(1, "outcome"), counted(1200, "entry", "entries")
    ('1 outcome', '1,200 entries')
    """
    return f"1 {singular}" if n == 1 else f"{n:,} {plural or f'{singular}s'}"


def people(n: int) -> str:
    """Write a number of people.

    Examples
    --------
    >>> people(1), people(1200)
    ('1 person', '1,200 people')
    """
    return counted(n, "person", "people")


def first_of(names: Sequence[str]) -> str:
    """Write the first two of some names, and how many more there are.

    Examples
    --------
    >>> first_of(["a", "b"]), first_of(["a", "b", "c"])
    ('a and b', 'a and b and 1 more')
    """
    more = len(names) - _NAMED
    return " and ".join([*names[:_NAMED], *([f"{more} more"] if more > 0 else [])])


def listed(names: Iterable[object]) -> str:
    """Write names in quotes, separated by commas.

    Examples
    --------
    >>> listed(["a", "b"])
    "'a', 'b'"
    """
    return ", ".join(repr(name) for name in names)


def times(n: int) -> str:
    """Write how often something happened.

    Examples
    --------
    >>> times(1), times(3)
    ('once', '3 times')
    """
    return "once" if n == 1 else f"{n:,} times"


def share(value: float) -> str:
    """Write a share with three decimals.

    Examples
    --------
    >>> share(0.15), share(math.nan)
    ('0.150', '–')
    """
    return "–" if math.isnan(value) else f"{value:.3f}"


def percent(value: float) -> str:
    """Write a share as a percentage.

    Examples
    --------
    >>> percent(0.15), percent(0.14249), percent(1e-13), percent(math.nan), percent(-12.345)
    ('15 %', '14.2 %', 'under 0.001 %', '–', '−1,234 %')
    """
    if math.isnan(value):
        return "–"
    if 0 < value < _TINY:
        return "under 0.001 %"
    digits = f"{100 * value:.3g}" if abs(value) < _LARGE else f"{100 * value:,.0f}"
    return f"{digits} %".replace("-", "−")


def percents(interval: tuple[float, float]) -> str:
    """Write an interval of a share.

    Examples
    --------
    >>> percents((0.016, 0.2039))
    '1.6 % to 20.4 %'
    """
    return " to ".join(map(percent, interval))


def amount(value: float, currency: str = "") -> str:
    """Write a sum of money or other worth; cents only if it is small.

    Examples
    --------
    >>> amount(-1234567.8), amount(0.25), amount(math.nan)
    ('−1,234,568', '0.25', '–')
    >>> amount(-1234.5, "EUR"), amount(200, "€")
    ('EUR −1,234', '€200')
    """
    if math.isnan(value):
        return "–"
    digits = f"{round(value, 0 if abs(value) >= 1000 else 2):,.15g}".replace("-", "−")
    if currency[-1:].isalpha():
        return f"{currency} {digits}"
    return f"−{currency}{digits[1:]}" if digits.startswith("−") else f"{currency}{digits}"


def date(at: str | datetime, *, time: bool = False) -> str:
    """Write a day in UTC, with the time if it matters.

    Examples
    --------
    >>> date("2026-11-16T19:20:31+00:00"), date("2026-11-16T19:20:31+01:00", time=True)
    ('16 November 2026', '16 November 2026, 18:20 UTC')
    """
    when = datetime.fromisoformat(at) if isinstance(at, str) else at
    when = when.astimezone(UTC)
    day = f"{when.day} {_MONTHS[when.month - 1]} {when.year}"
    return f"{day}, {when:%H:%M} UTC" if time else day


def date_span(first: str, last: str) -> str:
    """Write the days from one to another, in UTC.

    Examples
    --------
    >>> date_span("2031-05-10T09:00:00+00:00", "2031-06-10T09:00:00+00:00")
    '10 May to 10 June 2031'
    """
    begin, end = date(first), date(last)
    if begin == end:
        return end
    return f"{begin.removesuffix(end[-5:])} to {end}"


def moved(to: str, at: str, by: str) -> str:
    """Say that a program was moved to another ledger, without its subject.

    Examples
    --------
    >>> moved("postgresql://host/lender", "2031-02-15T09:00:00+00:00", "ann")
    "was moved to postgresql://host/lender on 2031-02-15 by 'ann', and nothing is recorded here any
    more; use that ledger."
    """
    return (
        f"was moved to {to} on {at[:10]} by {by!r}, and nothing is recorded here any more; use "
        f"that ledger."
    )


def days(value: float) -> str:
    """Write an age in whole days.

    Examples
    --------
    >>> days(0.4), days(1.2), days(181.9), days(math.nan)
    ('0 days', '1 day', '181 days', '–')
    """
    return "–" if math.isnan(value) else counted(math.floor(value), "day")


def independence(shock: float, *, persons: bool = False) -> str:
    """Return a clause on the independence that certificates and intervals assume.

    Parameters
    ----------
    shock
        σ.
    persons
        Whether applications of a person in a round may depend on each other.

    Examples
    --------
    >>> print(independence(0.02))
    they are independent of each other but for a shock that a round's applicants share, by which
    the share of bad moves by about 2 points (shock = 0.02)
    """
    who = "persons, not the applications of one in a round, are" if persons else "they are"
    if shock:
        return (
            f"{who} independent of each other but for a shock that a round's applicants share, "
            f"by which the share of bad moves by about {100 * shock:.3g} "
            f"point{'s' * (100 * shock != 1)} (shock = {shock:g})"
        )
    return (
        f"{who} independent of each other, without a shock that a round's applicants share "
        f"(shock = 0)"
    )


def intervals_assume(shock: float) -> str:
    """Return the sentence on applicants that belongs to every interval at all times."""
    return (
        f"Intervals assume of applicants that {independence(shock)}; those of recorded shares are "
        f"about the rounds as they were, with their shocks."
    )


def shortened(value: str) -> str:
    """Return a value in quotes, shortened if it is long."""
    return repr(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…")


def plain_data(value: Any) -> Any:
    """Return a value with texts for paths and keys, and None for numbers that are not finite."""
    if isinstance(value, dict):
        return {str(key): plain_data(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain_data(part) for part in value]
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
