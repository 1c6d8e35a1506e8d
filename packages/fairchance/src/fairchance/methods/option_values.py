"""The types of values that options take, with their names in error messages.

Each type has ``description``, ``fits(value)``, and ``read(name, value)``, which returns the value
or raises ``InputError`` with the name of the key.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fairchance.errors import InputError

__all__ = ["FLAG", "NUMBER", "TEXT", "WHOLE"]
__all__ += ["AnyOf", "ChoiceValue", "PlainValue", "TableList", "TableValue"]


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
            raise _wrong_value(name, self.description, value)
        return value


@dataclass(frozen=True)
class ChoiceValue:
    """One of several words; hyphens and underscores are the same."""

    allowed: tuple[str, ...]

    @property
    def description(self) -> str:
        """The allowed words."""
        return f"one of {', '.join(map(repr, self.allowed))}"

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


@dataclass(frozen=True)
class TableValue:
    """A table with its own keys, some of them required."""

    keys: dict[str, Any]
    required: tuple[str, ...] = ()

    @property
    def description(self) -> str:
        """An example of the table."""
        return f"a table such as {{ {', '.join(f'{key} = …' for key in self.keys)} }}"

    def fits(self, value: Any) -> bool:
        """Return whether the value is a table, whatever its keys."""
        return isinstance(value, dict)

    def read(self, name: str, value: Any) -> dict[str, Any]:
        """Return the table with every value read."""
        if not self.fits(value) or any(key not in self.keys for key in value):
            raise _wrong_value(name, self.description, value)
        for key in self.required:
            if key not in value:
                raise InputError(f"{name} needs the key {key}, got {value!r}; add it.")
        return {key: self.keys[key].read(f"{name}.{key}", item) for key, item in value.items()}


@dataclass(frozen=True)
class TableList:
    """A list of tables."""

    each: TableValue

    @property
    def description(self) -> str:
        """An example of its tables."""
        return f"a list, each {self.each.description}"

    def fits(self, value: Any) -> bool:
        """Return whether the value is a list of tables."""
        return isinstance(value, list) and all(map(self.each.fits, value))

    def read(self, name: str, value: Any) -> list[dict[str, Any]]:
        """Return the tables, read."""
        if not self.fits(value):
            raise _wrong_value(name, self.description, value)
        return [self.each.read(name, table) for table in value]


@dataclass(frozen=True)
class AnyOf:
    """A value of one of several types; the first type that it fits reads it."""

    types: tuple[Any, ...]

    @property
    def description(self) -> str:
        """All types."""
        return ", or ".join(each.description for each in self.types)

    def fits(self, value: Any) -> bool:
        """Return whether the value fits one of the types."""
        return any(each.fits(value) for each in self.types)

    def read(self, name: str, value: Any) -> Any:
        """Return the value as the first type that it fits reads it."""
        for each in self.types:
            if each.fits(value):
                return each.read(name, value)
        raise _wrong_value(name, self.description, value)


def _wrong_value(name: str, description: str, value: Any) -> InputError:
    return InputError(f"{name} must be {description}, got {value!r}; change it.")


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
