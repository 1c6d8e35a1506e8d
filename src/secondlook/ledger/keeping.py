"""Whom a program keeps: holds, and erasures after which it goes on."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from secondlook.ledger.base import Facts, Writer
from secondlook.ledger.certificates import record_certificates
from secondlook.ledger.part import PartOfProgram
from secondlook.ledger.replay import Shape, State
from secondlook.ledger.retention import (
    Deadlines,
    check_forgets,
    check_reason,
    expired,
    record_erasure,
    record_hold,
    retention_months,
)
from secondlook.ledger.telling import read_ids
from secondlook.methods.storage import dumps

__all__ = ["Keeping", "store_state"]


def store_state(writer: Writer, state: State, by: str) -> None:
    """Append a state from which to go on."""
    facts = Facts(payload=dumps(state.classifier))
    state.reach(writer.append("snapshot", {"after": state.applied}, facts, by=by))


class Keeping(PartOfProgram):
    """The part of a program that holds and erases people."""

    def hold(self, ids: Any, reason: str) -> None:
        """Record that people must not be erased, whatever their age, until they are released.

        Parameters
        ----------
        ids
            Names of applications.
        reason
            Why, in words.
        """
        self._hold(ids, reason, is_held=True)

    def release(self, ids: Any, reason: str) -> None:
        """Record that people are no longer held; every hold on them ends.

        Parameters
        ----------
        ids
            Names of applications that are held.
        reason
            Why, in words.
        """
        self._hold(ids, reason, is_held=False)

    def _hold(self, ids: Any, reason: str, *, is_held: bool) -> None:
        check_reason("a hold" if is_held else "a release", reason)
        with self.ledger.writing(self.name) as writer:
            shape = Shape.read(self._settings(writer).says)
            names = list(dict.fromkeys(read_ids(ids, shape)))
            if names:
                record_hold(writer, names, is_held=is_held, reason=reason, by=self.by)

    def expired(self) -> NDArray[Any]:
        """Return the ids whose retention period is over, without those held or erased."""
        with self.ledger.reading(self.name) as reader:
            says = self._settings(reader).says
            deadlines = Deadlines.of(reader, retention_months(says.get("about", {})))
            names = expired(reader, deadlines, self.ledger.clock())
        return Shape.read(says).ids(names)

    def erase(self, ids: Any, reason: str, *, early: bool = False) -> int:
        """Erase people for good; decisions on them stay, and the program goes on without them.

        Their names, features, group values and reasons leave the ledger with the salts of their
        hashes, and every stored state; the classifier forgets them, and a new state is stored, all
        at once. The chain holds as before, and tells who was erased, when, by whom and why.

        Parameters
        ----------
        ids
            Names of applications, the history's too.
        reason
            Why, in words; it stays, so name nobody in it.
        early
            Erase people before their retention period is over, as when somebody asks for it.

        Returns
        -------
        int
            How many were erased.

        Raises
        ------
        InputError
            If somebody is not known, is held, or must be kept longer; then nobody is erased.

        Warns
        -----
        LedgerWarning
            If people are erased and a trace of them is left beside the ledger for a time; they
            are erased where warnings are errors too.
        """
        check_reason("an erasure", reason)
        with self.ledger.writing(self.name) as writer:
            state = self._current(writer)
            names = list(dict.fromkeys(read_ids(ids, state.shape)))
            if names:
                self._erase(writer, state, names, reason, early)
        self._state = state
        return len(names)

    def _erase(
        self, writer: Writer, state: State, names: list[str], reason: str, early: bool
    ) -> None:
        months = retention_months(self._settings(writer).says.get("about", {}))
        check_forgets(state.classifier)
        now = self.ledger.clock()
        entry = record_erasure(
            writer, names, reason, months=months, now=now, early=early, by=self.by
        )
        state.reach(entry)
        state.classifier.forget(state.shape.ids(names))
        record_certificates(writer, state.classifier, self.by, why="erasure")
        store_state(writer, state, self.by)
