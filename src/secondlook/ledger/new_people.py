"""People on their way into a ledger: checked, salted and hashed part by part, as they are sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from secondlook.ledger import schema
from secondlook.ledger.base import DecisionRows, PeopleRows
from secondlook.ledger.chain import NOTHING, SALT, people_digests, salts
from secondlook.ledger.texts import LONGEST, check_text

__all__ = ["NewPeople"]


class NewPeople:
    """The rows of people who were decided on, with room for salts and hashes to be filled in.

    Parameters
    ----------
    program, first
        Number of the program, and of the first of the people.
    people, decided
        Who they are, and the decisions on them.

    Attributes
    ----------
    tables
        Where rows go, and their columns.
    """

    def __init__(self, program: int, first: int, people: PeopleRows, decided: DecisionRows) -> None:
        n = len(people)
        nothing = [None] * n
        self._people, self._persons = people, range(first, first + n)
        self._has_texts = people.texts.count(None) < n
        self._reasons = nothing if people.reasons is None else people.reasons
        self._salt, self._digest = _room(n, SALT), _room(n, len(NOTHING))
        own = {"program": program, "person": self._persons}
        rows = {
            "application": people.applications,
            "numbers": people.numbers,
            "texts": people.texts,
            "salt": self._salt,
            "digest": self._digest,
            "round": decided.round,
            "accepted": decided.accepted,
            "exploit": decided.exploit,
            "score": decided.score,
            "propensity": decided.propensity,
            "threshold": nothing if decided.threshold is None else decided.threshold,
            "fold": nothing if decided.fold is None else decided.fold,
            "reasons": self._reasons,
        }
        self.tables: list[tuple[sa.Table, Mapping[str, Any]]] = [(schema.people, own | rows)]
        if people.groups is not None:
            self._group_salt = _room(n, SALT)
            values = {"value": people.groups, "salt": self._group_salt}
            self.tables.append((schema.group_values, own | values))

    def prepare(self, rows: slice) -> None:
        """Check some of the people, and fill in their salts and hashes."""
        people, n = self._people, rows.stop - rows.start
        names, texts = people.applications[rows], people.texts[rows]
        check_text("an application", names, LONGEST)
        if self._has_texts:
            check_text("what is kept of a person", [one for one in texts if one is not None])
        salt = salts(n)
        known: list[Any] = [names, people.numbers[rows], texts, self._reasons[rows], salt]
        self._salt[rows] = _side_by_side(salt)
        if people.groups is not None:
            groups, salt = people.groups[rows], salts(n)
            check_text("a group value", [*set(groups)])
            self._group_salt[rows] = _side_by_side(salt)
            known += [groups, salt]
        self._digest[rows] = _side_by_side(people_digests(self._persons[rows], *known))

    @property
    def digests(self) -> bytes:
        """The hashes of everybody, once all are prepared."""
        return self._digest.tobytes()


def _room(n: int, width: int) -> NDArray[np.void]:
    return np.empty(n, f"V{width}")


def _side_by_side(values: Sequence[bytes]) -> NDArray[np.void]:
    return np.frombuffer(b"".join(values), f"V{len(values[0])}")
