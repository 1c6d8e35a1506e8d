"""People with something of others in its place: to leave out the erased, and to try out groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.ledger.base import PeopleRows

__all__ = ["GroupValues", "with_stand_ins"]


class GroupValues:
    """The group values of a program's people, in the order in which they came."""

    def __init__(self) -> None:
        self._known: dict[str, None] = {}

    def add(self, people: PeopleRows | None) -> None:
        """Take in those of an entry's people, but for the erased."""
        if people is not None and people.groups is not None:
            new = {*people.groups} - {None} - self._known.keys()
            self._known |= dict.fromkeys(sorted(map(str, new)))

    def exchanged(self, people: PeopleRows) -> Iterator[PeopleRows]:
        """Yield people with the next one's group, and with the group that follows their own.

        The second changes everybody's, also where all have the same.
        """
        if people.groups is None:
            return
        yield replace(people, groups=[*people.groups[1:], people.groups[0]])
        known = [*self._known]
        following = dict(zip(known, [*known[1:], *known[:1]], strict=True))
        if len(known) > 1:
            yield replace(people, groups=[following[str(one)] for one in people.groups])


def with_stand_ins(people: PeopleRows, gone: NDArray[np.bool_]) -> PeopleRows:
    """Return people with others in the place of the erased, so that all rows stay where they are.

    The others' features and groups are those of somebody who is there, their names new.
    """
    someone = int(np.flatnonzero(~gone)[0])
    names = {one for one in people.applications if one is not None}
    numeric = all(one.lstrip("-").isdigit() for one in names)
    free = (str(at) if numeric else f"erased {at}" for at in range(2 * len(people) + 1))
    new = (one for one in free if one not in names)

    def filled(column: Any) -> list[Any]:
        return [column[someone] if lost else one for one, lost in zip(column, gone, strict=True)]

    return PeopleRows(
        [next(new) if one is None else one for one in people.applications],
        filled(people.numbers),
        filled(people.texts),
        None if people.groups is None else filled(people.groups),
        people.reasons,
    )
