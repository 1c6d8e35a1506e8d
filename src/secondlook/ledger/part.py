"""What the parts of a program share: where it is recorded, who writes, and its state."""

from __future__ import annotations

from abc import ABC, abstractmethod

from secondlook.ledger.base import Entry, Ledger, Reader
from secondlook.ledger.replay import Allowed, State

__all__ = ["PartOfProgram"]


class PartOfProgram(ABC):
    """A group of a program's methods; ``Program`` has them all, and says how state is found."""

    ledger: Ledger
    name: str
    by: str
    _allowed: Allowed
    _state: State | None

    @abstractmethod
    def _current(self, reader: Reader) -> State:
        """Return the state after the last entry, and keep none: what follows may fail."""

    @abstractmethod
    def _settings(self, reader: Reader) -> Entry:
        """Return the program's first entry."""
