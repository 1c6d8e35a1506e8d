"""The rounds of a batch as the records they were, read from its entry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

from fairchance.core.decisions import CertifiedRound, CurvePoint, Note, Round
from fairchance.errors import LedgerError
from fairchance.ledger.base import Entry

__all__ = ["AnyRound", "group_name", "read_rounds"]

AnyRound = Round | CertifiedRound

T = TypeVar("T")


def read_rounds(entry: Entry) -> tuple[AnyRound, ...]:
    """Return the records of a batch's round, one for each certificate.

    What a subclass of ``Round`` adds is left out. ``LedgerError`` if a record lacks a value or has
    one of another type.
    """
    try:
        return tuple(map(_round, entry.says["rounds"]))
    except LedgerError:  # a value is missing
        raise
    except (TypeError, ValueError, AttributeError) as error:
        raise LedgerError(
            f"entry {entry.number} has the record of a round that cannot be read ({error}); verify "
            f"the ledger."
        ) from error


def group_name(group: Any) -> str:
    """Return a group's value, or its values, as text."""
    return ", ".join(map(str, group)) if isinstance(group, list | tuple) else str(group)


def _round(data: dict[str, Any]) -> AnyRound:
    return _made(CertifiedRound, data) if "log_wealth" in data else _made(Round, data)


def _made(kind: Callable[..., T], data: dict[str, Any]) -> T:
    """Return a record of a kind; each value is read by the type that its field has."""
    return kind(**{one.name: _READ[one.type](data[one.name]) for one in fields(kind)})  # type: ignore[arg-type]


def _whole(value: Any) -> int:
    if isinstance(value, int):
        return value
    raise TypeError(f"a whole number is {value!r}")


def _number(value: Any) -> float:
    if isinstance(value, int | float) or value in ("nan", "inf", "-inf"):  # JSON lacks these
        return float(value)
    raise TypeError(f"a number is {value!r}")


def _truth(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise TypeError(f"a truth value is {value!r}")


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise TypeError(f"a text is {value!r}")


def _same(value: Any) -> Any:
    return value


def _each(read: Callable[[Any], T]) -> Callable[[Any], tuple[T, ...]]:
    return lambda values: tuple(map(read, values))


# By the annotations of fields.
_READ: dict[Any, Callable[[Any], Any]] = {
    "int": _whole,
    "int | None": lambda value: None if value is None else _whole(value),
    "float": _number,
    "bool": _truth,
    "str": _text,
    "Any": _same,
    "Mapping[str, Any]": dict,
    "tuple[int, ...]": _each(_whole),
    "tuple[float, ...]": _each(_number),
    "tuple[Note, ...]": _each(lambda data: _made(Note, data)),
    "tuple[CurvePoint, ...]": _each(lambda data: _made(CurvePoint, data)),
}
