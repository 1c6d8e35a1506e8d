"""The types of values that options take, with their names in error messages.

Each type has ``fits(value)``, and ``read(name, value)``, which returns the value or raises
``InputError`` with the name of the key.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairchance.errors import InputError

__all__ = ["FLAG", "NUMBER", "TEXT", "WHOLE"]
__all__ += ["ChoiceValue", "PlainValue", "is_table"]


@dataclass(frozen=True)
class PlainValue:
    """A value that passes a test.

    Examples
    --------
    >>> WHOLE.read("[classifier] maturity", 2)
    2
    """

    description: str
    fits: Callable[[Any], bool]

    def read(self, name: str, value: Any) -> Any:
        """Return the value if it fits."""
        if not self.fits(value):
            raise InputError(f"{name} must be {self.description}, got {value!r}; change it.")
        return value


@dataclass(frozen=True)
class ChoiceValue:
    """One of several words; hyphens and underscores are the same."""

    allowed: tuple[str, ...]

    @property
    def description(self) -> str:
        """The allowed words."""
        return " or ".join(map(repr, self.allowed))

    def fits(self, value: Any) -> bool:
        """Return whether the value is an allowed word."""
        return isinstance(value, str) and value.replace("_", "-") in self.allowed

    def read(self, name: str, value: Any) -> str:
        """Return the word with hyphens."""
        if not self.fits(value):
            near = difflib.get_close_matches(str(value), self.allowed, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "choose one."
            raise InputError(f"{name} must be {self.description}, got {value!r}; {hint}")
        return str(value).replace("_", "-")


def is_table(value: Any, keys: Mapping[str, PlainValue], required: Sequence[str] = ()) -> bool:
    """Return whether a value is a table with some keys, the required ones among them.

    Examples
    --------
    >>> is_table({"bad_as_good": 0.1}, {"bad_as_good": NUMBER, "good_as_bad": NUMBER})
    True
    """
    return (
        isinstance(value, dict)
        and all(key in keys and keys[key].fits(item) for key, item in value.items())
        and all(key in value for key in required)
    )


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return _is_whole(value) or (isinstance(value, float) and math.isfinite(value))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


TEXT = PlainValue("text in quotes", _is_text)
NUMBER = PlainValue("a number", _is_number)
WHOLE = PlainValue("a whole number", _is_whole)
FLAG = PlainValue("true or false", lambda value: isinstance(value, bool))
