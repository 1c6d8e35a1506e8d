"""What a finite classifier is told between rounds: outcomes, and whom to forget."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from secondlook.methods.finite.answers import CellAnswers
from secondlook.methods.finite.past import CellPast

__all__ = ["ToldCells"]


class ToldCells(CellAnswers):
    """Base of ``FiniteClassifier``: what it learns of people it has decided on."""

    min_outcomes: int
    _past: CellPast
    _last: Any  # what the last round went by; none once people are forgotten

    def observe(self, ids: Any, outcomes: Any) -> Self:
        """Take in outcomes of accepted people: step 4 of Algorithm 1.

        In any order, in parts, many rounds late; the same outcome may come again.

        Parameters
        ----------
        ids
            Names of the applications.
        outcomes
            Their outcomes, in the labels of the history.
        """
        return self._take_in(ids, outcomes, correcting=False)

    def correct(self, ids: Any, outcomes: Any) -> Self:
        """Replace recorded outcomes that turned out to be wrong.

        Parameters
        ----------
        ids
            Names of applications whose outcomes are recorded.
        outcomes
            What their outcomes really are.
        """
        return self._take_in(ids, outcomes, correcting=True)

    def _take_in(self, ids: Any, outcomes: Any, *, correcting: bool) -> Self:
        names = self._read_names(ids)
        if names.size == 0:
            return self
        outcome = self._intake.read_outcomes(outcomes, names.shape[0])
        n_cells = len(self._state.table)
        before = self._ledger.recorded(names) if correcting else outcome
        good, bad = self._ledger.observe(names, outcome, n_cells, correcting=correcting)
        changed = np.flatnonzero(before != outcome)
        t = len(self._rounds)
        self._remember_corrections(t, names[changed], before[changed], outcome[changed])
        self._state = self._state.with_outcomes(good, bad)
        return self

    def withdraw(self, ids: Any) -> Self:
        """Take note of accepted people whose outcome will never be known.

        Nothing is learned from them from now on, even if an outcome is recorded; should one come
        after all, tell it with ``correct``.

        Parameters
        ----------
        ids
            Names of accepted applications.
        """
        names = self._read_names(ids)
        if names.size:
            lost = self._ledger.withdraw(names, len(self._state.table))
            self._state = self._state.with_outcomes(*lost)
        return self

    def forget(self, ids: Any) -> Self:
        """Forget people for good: their names, cells, groups and outcomes.

        Head counts and outcomes by cell are from now on those of everybody else, and the next
        round learns from these. A cell that nobody else is in goes, with the feature values that no
        other cell has, unless it is of the ``domain``; one that is left with fewer than
        ``min_outcomes`` outcomes is explored again. Decisions, the numbers of ``rounds_`` and
        ``group_counts_``, coverage, and what past rounds did in the cells that stay remain as they
        are.

        Parameters
        ----------
        ids
            Names of applications, accepted or rejected, the history's too.
        """
        names = self._read_names(ids)
        if names.size == 0:
            return self
        lost = self._ledger.forget(names, len(self._state.table))
        # Before the first round f_0 decides where it is known, outcomes or not.
        needed = self.min_outcomes if self._rounds else 0
        self._state, stays = self._state.without(*lost, min_outcomes=needed)
        if not stays.all():
            self._ledger.renumber(np.where(stays, np.cumsum(stays) - 1, -1))
            self._policies = [one.of(stays) for one in self._policies]
            self._past = self._past.of(stays)
        self._forget_corrections(names)
        self._last = None
        return self

    def _read_names(self, ids: Any) -> NDArray[Any]:
        check_is_fitted(self, "_fitted")
        return self._intake.read_ids(ids)
