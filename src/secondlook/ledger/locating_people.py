"""Whose data were changed: each person has a hash, so that each can be judged alone.

That holds where the hashes themselves are those their entry was made with. Otherwise one guess is
tried: that the data are, and the hashes of all whom they do not fit were changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from secondlook.ledger.chain import SALT, people_digests
from secondlook.ledger.locating import now_called, others_too, shown, who

__all__ = ["HashedPeople", "changed_people"]

_NAME, _NUMBERS, _SALT, _GROUP, _GROUP_SALT = 1, 2, 5, 6, 7  # places of columns
_NEEDED = (_NAME, _NUMBERS, _SALT, _GROUP, _GROUP_SALT)  # of everybody who was not erased


@dataclass(frozen=True)
class HashedPeople:
    """The people of an entry as they are found.

    Attributes
    ----------
    first
        Number of the first.
    columns
        What is hashed of them, as ``people_digests`` takes it.
    digests
        Their hashes.
    fit
        Says if other hashes in their place are those the entry was made with.
    """

    first: int
    columns: Sequence[Sequence[Any]]
    digests: Sequence[bytes]
    fit: Callable[[Sequence[bytes]], bool]

    def unlike(self) -> dict[int, bytes]:
        """Return the hashes that people have by their data, where these are not their own."""
        there = [at for at, row in enumerate(zip(*self.columns, strict=True)) if _is_whole(row)]
        made = people_digests(*([column[at] for at in there] for column in self.columns))
        salts = [self.columns[at] for at in (_SALT, _GROUP_SALT) if at < len(self.columns)]
        return {
            at: one
            for at, one in zip(there, made, strict=True)
            if one != self.digests[at] or any(len(salt[at]) != SALT for salt in salts)
        }

    def group_before(self, at: int) -> str | None:
        """Return the group value that somebody had, if it is one of the entry's others."""
        if len(self.columns) <= _GROUP:
            return None
        own: list[Any] = [[column[at]] for column in self.columns]
        for value in sorted({*self.columns[_GROUP]} - {None, *own[_GROUP]}):
            own[_GROUP] = [value]
            if people_digests(*own) == [self.digests[at]]:
                return str(value)
        return None


def changed_people(people: HashedPeople) -> str | None:
    """Say whose data or hash were changed; None if that is not known."""
    made = people.unlike()
    if not made:
        return None
    at, *beside = sorted(made)
    person, name = people.first + at, people.columns[_NAME][at]
    others = [people.first + one for one in beside]
    if not people.fit(people.digests):
        if not people.fit([made.get(at, one) for at, one in enumerate(people.digests)]):
            return None
        also = others_too(others, "hash was", "hashes were")
        return f"the hash of {who(person, name)} was changed{also}"
    also, was = others_too(others, "person was", "people were"), people.group_before(at)
    if was is None:
        return f"{now_called(person, name)} was changed{also}"
    now = shown(people.columns[_GROUP][at])
    return f"the group value of {who(person, name)} was {shown(was)} and is {now}{also}"


def _is_whole(row: Sequence[Any]) -> bool:
    return all(row[at] is not None for at in _NEEDED if at < len(row))
