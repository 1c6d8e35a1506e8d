"""A program to which all that a file tells is told at once; slow to import."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.certified_records import BegunAgain, begun_again
from secondlook.ledger import Program
from secondlook.ledger.telling import as_deployed

__all__ = ["TellingProgram"]


class TellingProgram(Program):
    """A program that records outcomes, corrections and withdrawals together, or nothing."""

    def tell(
        self, parts: Iterable[tuple[NDArray[Any], NDArray[np.str_]]]
    ) -> list[tuple[BegunAgain, ...]]:
        """Record parts of what is told, one after the other and all in one transaction.

        Parameters
        ----------
        parts
            Names of applications as the ledger keeps them, and what became of each.

        Returns
        -------
        list of tuple of BegunAgain
            Where each part made testing begin again.
        """
        found = []
        with self.ledger.writing(self.name) as writer:
            state = self._current(writer)  # and none in memory until all is durable
            for names, states in parts:
                before = as_deployed(state.classifier)
                self._record_outcomes(writer, state, names.tolist(), states.tolist())
                found.append(begun_again(before, as_deployed(state.classifier)))
        self._state = state
        return found
