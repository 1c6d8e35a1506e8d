"""Decisions that people replace by hand: overrides, and overrides that are taken back.

An override is an entry of its own, and so is its end, which repeats what the program had decided.
Nothing that was recorded changes: whoever was once overridden stays out of what is learned, and a
certificate goes on counting somebody as bad who was accepted and turned away for a time. Otherwise
one could look how things go and take back what does not suit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.errors import InputError
from secondlook.ledger.base import Facts, OverrideRows, Reader, Standing
from secondlook.ledger.certificates import record_certificates
from secondlook.ledger.part import PartOfProgram
from secondlook.ledger.retention import REMOVE, UNKNOWN, Wrong, check, check_reason
from secondlook.ledger.telling import read_ids

__all__ = ["Overriding", "in_force", "not_overridable", "not_overridden"]


class Overriding(PartOfProgram):
    """The part of a program in which people decide otherwise than it did."""

    def override(self, ids: Any, accepted: Any, reason: str) -> None:
        """Record that somebody decided otherwise than the program did.

        Outcomes follow the override. Nothing is learned from overridden people, and a certificate
        counts whoever was accepted and then turned away as bad.

        Parameters
        ----------
        ids
            Names of applications that have no outcome yet.
        accepted
            What was decided for all of them, True or False.
        reason
            Why, in words.
        """
        check_reason("an override", reason)
        if not isinstance(accepted, bool | np.bool_):
            raise InputError(
                f"accepted must be True or False, for all ids alike, got {accepted!r}; give one of "
                f"these, and call twice for two kinds of people."
            )
        self._replace(ids, bool(accepted), reason)

    def undo_override(self, ids: Any, reason: str) -> None:
        """Record that overrides no longer hold: people stand again as the program decided.

        Outcomes follow that. The override stays on the record beside its end, and what it did to
        learning and certificates stays done.

        Parameters
        ----------
        ids
            Names of applications that are overridden and have no outcome yet.
        reason
            Why, in words.
        """
        check_reason("the end of an override", reason)
        self._replace(ids, None, reason)

    def _replace(self, ids: Any, accepted: bool | None, reason: str) -> None:
        """Append an override; None takes back the one that is there."""
        with self.ledger.writing(self.name) as writer:
            state = self._current(writer)
            names = list(dict.fromkeys(read_ids(ids, state.shape)))
            standing = writer.standing(names)
            if accepted is None:
                check(names, not_overridden(writer, standing), "nothing was taken back")
                header, to = {"undo": True}, ~standing.accepted
            else:
                wrongs = not_overridable(writer, standing, accepted)
                check(names, wrongs, "nothing was recorded")
                header, to = {}, np.full(len(names), accepted)
            if names:
                rows = OverrideRows(standing.persons, to, [reason] * len(names))
                entry = writer.append("override", header, Facts(overrides=rows), by=self.by)
                # Whom the end of an override turns away was never accepted by the classifier.
                ids = state.shape.ids(names)[np.argsort(standing.persons)]
                turned_away = ids if accepted is False else ids[:0]
                state.learn(entry, turned_away, ["indeterminate"] * turned_away.size)
                record_certificates(writer, state.classifier, self.by, why="override")
        self._state = state


def in_force(reader: Reader, standing: Standing) -> NDArray[np.bool_]:
    """Say for whom an override holds that was not taken back."""
    if not standing.overridden.any():
        return standing.overridden
    last = reader.overridden_by(standing.persons)
    entries = reader.entries(int(last[last >= 0].min()) - 1, kind="override")
    ends = [one.number for one in entries if one.says.get("undo", False)]
    return (last >= 0) & ~np.isin(last, ends)


def not_overridable(reader: Reader, standing: Standing, accepted: bool) -> list[Wrong]:
    """Return whose decision cannot be replaced, why, and what to do; "ids that" goes before."""
    words = "accepted" if accepted else "rejected"
    by_hand = in_force(reader, standing)
    return [
        *_not_ours(standing),
        (by_hand, "were overridden before", f"take that back first (--undo), or {REMOVE}"),
        _told(standing),
        (standing.accepted == accepted, f"are {words} as it is", REMOVE),
    ]


def not_overridden(reader: Reader, standing: Standing) -> list[Wrong]:
    """Return whose override cannot be taken back, in the form of ``not_overridable``."""
    by_hand = in_force(reader, standing)
    return [
        *_not_ours(standing),
        (~by_hand, "stand as the program decided", REMOVE),
        _told(standing),
    ]


def _not_ours(standing: Standing) -> list[Wrong]:
    return [
        (standing.persons < 0, UNKNOWN, REMOVE),
        (standing.round == 0, "are the history's", REMOVE),
    ]


def _told(standing: Standing) -> Wrong:
    told = np.array([one is not None for one in standing.states], np.bool_)
    return told, "have an outcome already", REMOVE
