"""The types that a saved file may contain.

A type joins with ``@saved``, so that ``methods/storage.py`` need not know it. Loading a file makes
no other types, except those that the caller allows.
"""

from __future__ import annotations

from typing import TypeVar

__all__ = ["SAVED", "saved"]

SAVED: dict[str, type] = {}

T = TypeVar("T", bound=type)


def saved(cls: T) -> T:
    """Allow a class in saved files, under its name."""
    known = SAVED.setdefault(cls.__name__, cls)
    if known.__module__ != cls.__module__:
        raise TypeError(f"{known.__module__} saves a class {cls.__name__} already; rename one.")
    return cls
