"""What is asked of options that name one of a few things."""

from __future__ import annotations

from collections.abc import Iterable

from secondlook.errors import InputError

__all__ = ["check_choice", "listed"]


def listed(names: Iterable[object]) -> str:
    """Return names in quotes with commas between.

    Examples
    --------
    >>> listed(["a", "b"])
    "'a', 'b'"
    """
    return ", ".join(repr(name) for name in names)


def check_choice(option: str, value: object, allowed: Iterable[object]) -> None:
    """Refuse a value that is not one of those allowed.

    Examples
    --------
    >>> check_choice("group", "age", ["race", "gender"])
    Traceback (most recent call last):
        ...
    secondlook.errors.InputError: group must be one of 'race', 'gender', got 'age'.
    """
    allowed = list(allowed)
    if value not in allowed:
        raise InputError(f"{option} must be one of {listed(allowed)}, got {value!r}.")
