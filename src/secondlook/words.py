"""Numbers, ages and values as words, for every message to a reader."""

from __future__ import annotations

import math

__all__ = ["amount", "counted", "days", "people", "percent", "share", "shortened", "times"]

_SHOWN = 40  # characters of a value in a message


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
    >>> percent(0.15), percent(math.nan)
    ('15 %', '–')
    """
    return "–" if math.isnan(value) else f"{100 * value:.3g} %"


def amount(value: float) -> str:
    """Write a sum of money or other worth.

    Examples
    --------
    >>> amount(-1234.5), amount(0.25), amount(math.nan)
    ('−1,234.5', '0.25', '–')
    """
    return "–" if math.isnan(value) else f"{round(value, 2):,.10g}".replace("-", "−")


def days(value: float) -> str:
    """Write an age in whole days.

    Examples
    --------
    >>> days(0.4), days(1.2), days(181.9), days(math.nan)
    ('0 days', '1 day', '181 days', '–')
    """
    return "–" if math.isnan(value) else counted(math.floor(value), "day")


def shortened(value: str) -> str:
    """Return a value in quotes, shortened if it is long."""
    return repr(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…")
