"""Outcomes as a state has them that was stored later: they prove nothing, and may fit a hash."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.ledger.base import Entry, Ints, Reader
from secondlook.ledger.encoding import Shape
from secondlook.ledger.replay import Allowed, State
from secondlook.methods.certified.ranking import PastApplicants
from secondlook.people.ids import id_bits
from secondlook.people.store import HISTORY, NEVER, PENDING, PeopleStore

__all__ = ["KeptOutcomes", "kept_after", "remembered"]

Codes = NDArray[np.int64]
Bits = NDArray[np.uint64]

_NOT_KNOWN = -9  # of whom a classifier says nothing
_WORDS = {1: "good", 0: "bad", NEVER: "indeterminate", PENDING: ""}


@dataclass(frozen=True)
class KeptOutcomes:
    """What a stored state had been told of people.

    Attributes
    ----------
    applied
        The last entry that it knows.
    of
        Gives people's outcomes, by their numbers: a state's word, nothing for somebody whose
        outcome is still to come, None for somebody whom it does not know.
    """

    applied: int
    of: Callable[[Ints], list[str | None]]


def kept_after(reader: Reader, entry: Entry, allowed: Allowed) -> KeptOutcomes | None:
    """Return what the first state stored after an entry knows; None if there is none."""
    settings = next(reader.entries(kind="program"))
    shape = Shape.read(settings.says)
    for later in reader.entries(entry.number, kind="snapshot"):
        facts = reader.facts(later)
        if facts.payload is not None:  # it goes when people are erased
            classifier = State.from_snapshot(later, facts, shape, allowed).classifier
            return KeptOutcomes(later.says["after"], partial(_told, reader, shape, classifier))
    return None


def _told(reader: Reader, shape: Shape, classifier: Any, persons: Ints) -> list[str | None]:
    names = reader.names(persons)
    there = [at for at, name in enumerate(names) if name is not None]
    codes = np.full(len(names), _NOT_KNOWN)
    if there:
        codes[there] = remembered(classifier, shape.ids([names[at] for at in there]))
    return [_WORDS.get(one) for one in codes.tolist()]


def remembered(classifier: Any, ids: NDArray[Any]) -> Codes:
    """Return a classifier's codes of outcomes, a number below all of them where it has none.

    Parameters
    ----------
    classifier
        Of Algorithm 1 or certified; others are not asked, as they count cells or classes.
    ids
        Names of applications.
    """
    bits = id_bits(ids)
    if isinstance(getattr(classifier, "_history", None), PastApplicants):
        return _in_engines(classifier, bits)
    memory = getattr(classifier, "_people", None)
    if isinstance(memory, PeopleStore):
        return _in_folds(memory, bits)
    return np.full(bits.size, _NOT_KNOWN)


def _in_folds(memory: PeopleStore, bits: Bits) -> Codes:
    place, found = memory.find(bits), np.full(bits.size, _NOT_KNOWN)
    for fold, (here, rows) in zip(memory.parts, memory.rows_by_part(place), strict=True):
        found[here] = fold["outcome"][rows]
    return found


def _in_engines(classifier: Any, bits: Bits) -> Codes:
    place, found = classifier._people.find(bits), _in_folds(classifier._people, bits)
    past, known = classifier._history, place == HISTORY
    order = np.argsort(past.bits)
    at = np.searchsorted(past.bits, bits, sorter=order)
    spot = order.take(at, mode="clip")
    known &= past.bits[spot] == bits
    found[known] = past.outcome[spot[known]]
    return found
