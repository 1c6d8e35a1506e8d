"""Reasons of refusals, read back from the record."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from secondlook.errors import InputError, UnknownIdError
from secondlook.ledger.base import Ints, Reader
from secondlook.ledger.replay import Shape
from secondlook.people.reasons import decode

__all__ = ["recorded_reasons"]


def recorded_reasons(
    reader: Reader, shape: Shape, names: Sequence[str]
) -> list[list[tuple[str, float]]]:
    """Return the reasons of people whom a program refused, in the order asked for."""
    standing = reader.standing(names)
    unknown = np.flatnonzero(standing.persons < 0)
    if unknown.size:
        raise UnknownIdError(
            f"{unknown.size} of {len(names)} ids were never decided on, or have been erased, first "
            f"{names[unknown[0]]!r}, so nothing is known of them; remove them."
        )
    found = _stored(reader, standing.persons)
    without = [at for at, one in enumerate(found) if one is None]
    if without:
        raise InputError(
            f"{len(without)} of {len(names)} ids have no reasons on record, first "
            f"{names[without[0]]!r}, since they are kept for whom the program itself refused and "
            f"for nobody else; remove them."
        )
    columns = () if shape.reference is None else shape.reference.names
    return [decode(one, columns) for one in found if one is not None]


def _stored(reader: Reader, persons: Ints) -> list[bytes | None]:
    found: list[bytes | None] = [None] * persons.size
    for entry in reader.entries(kind="batch"):
        rows = entry.says["rows"]
        mine = np.flatnonzero((persons >= rows["first"]) & (persons < rows["first"] + rows["n"]))
        people = reader.facts(entry).people if mine.size else None
        if people is not None and people.reasons is not None:
            for at, person in zip(mine.tolist(), persons[mine].tolist(), strict=True):
                found[at] = people.reasons[person - rows["first"]]
    return found
