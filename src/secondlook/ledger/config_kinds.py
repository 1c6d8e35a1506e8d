"""What a value in a configuration may be."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from secondlook.errors import InputError

__all__ = [
    "FLAG",
    "LABELS",
    "NUMBER",
    "TEXT",
    "TEXTS",
    "WHOLE",
    "Choice",
    "Kind",
    "OneOfKinds",
    "Rows",
    "Table",
]


@dataclass(frozen=True)
class Kind:
    """A kind of value, in words for messages and as a test.

    Examples
    --------
    >>> WHOLE.read("[retention] months", 25)
    25
    """

    words: str
    fits: Callable[[Any], bool]

    def read(self, name: str, value: Any) -> Any:
        """Return a value, or raise if it is of another kind."""
        if not self.fits(value):
            raise InputError(f"{name} must be {self.words}, got {value!r}; change it.")
        return value


@dataclass(frozen=True)
class Choice:
    """One of some words; hyphens and underscores are the same."""

    allowed: tuple[str, ...]

    @property
    def words(self) -> str:
        """What is allowed."""
        return f"one of {', '.join(map(repr, self.allowed))}"

    def fits(self, value: Any) -> bool:
        """Say whether it is one of them."""
        return isinstance(value, str) and value.replace("_", "-") in self.allowed

    def read(self, name: str, value: Any) -> str:
        """Return the word with hyphens."""
        if not self.fits(value):
            near = difflib.get_close_matches(str(value), self.allowed, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "choose one."
            raise InputError(f"{name} must be {self.words}, got {value!r}; {hint}")
        return str(value).replace("_", "-")


@dataclass(frozen=True)
class Table:
    """A table with keys of their own, all of them needed or not."""

    keys: dict[str, Any]
    needed: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """What is allowed."""
        return f"a table such as {{ {', '.join(f'{key} = …' for key in self.keys)} }}"

    def fits(self, value: Any) -> bool:
        """Say whether it is a table, whatever it holds."""
        return isinstance(value, dict)

    def read(self, name: str, value: Any) -> dict[str, Any]:
        """Return the table with every value read."""
        if not self.fits(value) or any(key not in self.keys for key in value):
            raise InputError(f"{name} must be {self.words}, got {value!r}; change it.")
        for key in self.needed:
            if key not in value:
                raise InputError(f"{name} needs the key {key}, got {value!r}; add it.")
        return {key: self.keys[key].read(f"{name}.{key}", one) for key, one in value.items()}


@dataclass(frozen=True)
class Rows:
    """A list of tables."""

    each: Table

    @property
    def words(self) -> str:
        """What is allowed."""
        return f"a list, each {self.each.words}"

    def fits(self, value: Any) -> bool:
        """Say whether it is a list of tables."""
        return isinstance(value, list) and all(map(self.each.fits, value))

    def read(self, name: str, value: Any) -> list[dict[str, Any]]:
        """Return every table of it, read."""
        if not self.fits(value):
            raise InputError(f"{name} must be {self.words}, got {value!r}; change it.")
        return [self.each.read(name, one) for one in value]


@dataclass(frozen=True)
class OneOfKinds:
    """A value of one of several kinds; the first that it fits reads it."""

    kinds: tuple[Any, ...]

    @property
    def words(self) -> str:
        """What is allowed."""
        return ", or ".join(one.words for one in self.kinds)

    def fits(self, value: Any) -> bool:
        """Say whether it fits any of them."""
        return any(one.fits(value) for one in self.kinds)

    def read(self, name: str, value: Any) -> Any:
        """Return it as the first of the kinds does."""
        for one in self.kinds:
            if one.fits(value):
                return one.read(name, value)
        raise InputError(f"{name} must be {self.words}, got {value!r}; change it.")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return _is_whole(value) or (isinstance(value, float) and math.isfinite(value))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_label(value: Any) -> bool:
    return _is_text(value) or _is_number(value) or isinstance(value, bool)


def _is_labels(value: Any) -> bool:
    return _is_label(value) or (isinstance(value, list) and all(map(_is_label, value)))


TEXT = Kind("a word or more in quotes", _is_text)
TEXTS = Kind(
    'a list of names, such as ["income", "age"]',
    lambda value: isinstance(value, list) and all(map(_is_text, value)),
)
LABELS = Kind('a label, or a list such as ["repaid", "closed"]', _is_labels)
NUMBER = Kind("a number", _is_number)
WHOLE = Kind("a whole number", _is_whole)
FLAG = Kind("true or false", lambda value: isinstance(value, bool))
