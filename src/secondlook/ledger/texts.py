"""Text that a ledger can keep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from reprlib import repr as shown
from typing import Any

from secondlook.errors import InputError
from secondlook.ledger.base import to_json
from secondlook.people.ids import is_text

__all__ = ["LONGEST", "check_about", "check_name", "check_program_name", "check_text"]

LONGEST = 500  # characters of what is looked up; an index of PostgreSQL takes 2,700 bytes


def check_text(what: str, values: Sequence[str | None], longest: int | None = None) -> None:
    """Raise unless each value is a text that every database keeps as it is, and not too long.

    Examples
    --------
    >>> check_text("a key", ["2025-01", "2025-02"], longest=7)
    """
    if None in values or not is_text("".join(values)):  # type: ignore[arg-type]
        strange = next(one for one in values if one is None or not is_text(one))
        raise InputError(
            f"{what} must be text without the character NUL and without half a surrogate pair, "
            f"got {shown(strange)}; change it."
        )
    if longest is not None and max(map(len, values), default=0) > longest:  # type: ignore[arg-type]
        longer = next(one for one in values if len(one or "") > longest) or ""
        raise InputError(
            f"{what} may have {longest} characters, got {len(longer):,} in {shown(longer)}; "
            f"shorten it."
        )


def check_name(what: str, name: str, longest: int | None = LONGEST) -> None:
    """Raise unless a name is such a text, and not empty.

    Examples
    --------
    >>> check_name("a key", "")
    Traceback (most recent call last):
    secondlook.errors.InputError: a key must have at least one character, got ''; give one.
    """
    check_text(what, [name], longest)
    if not name:
        raise InputError(f"{what} must have at least one character, got ''; give one.")


def check_program_name(name: str) -> None:
    """Raise unless a new program may be called so: checkpoints are read without white space around.

    Examples
    --------
    >>> check_program_name("lender")
    """
    what = "a program's name"
    check_name(what, name)
    if name != name.strip():
        raise InputError(
            f"{what} must not begin or end with white space, which is lost where a checkpoint is "
            f"read, got {shown(name)}; take it off."
        )


def check_about(about: Any) -> None:
    """Raise unless something can be kept with an entry: a dictionary that JSON can hold, or None.

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
            f"about must be a dictionary of text, numbers, truth values, lists and dictionaries, "
            f"got {shown(about)}; convert what is in it."
        )
    check_text("what about holds", [*_texts_in(about)])


def _texts_in(value: Any) -> Iterator[str]:
    """Yield every text of what JSON holds, keys too."""
    match value:
        case str():
            yield value
        case dict():
            for name, one in value.items():
                yield str(name)
                yield from _texts_in(one)
        case list() | tuple():
            for one in value:
                yield from _texts_in(one)
