"""What a classifier of Algorithm 1 is told of people later on, beside their outcomes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from secondlook.learners.wrap import check_keeps_nobody
from secondlook.methods.algorithm1.answers import Answers
from secondlook.people.ids import id_bits

__all__ = ["Afterwards"]


class Afterwards(Answers):
    """The part of the classifier that changes what is remembered, and decides nothing."""

    maturity: int | None
    _news: bool

    def correct(self, ids: Any, outcomes: Any) -> Self:
        """Replace recorded outcomes that turned out to be wrong; the next round learns from them.

        Decisions already made stay as they are.

        Parameters
        ----------
        ids
            Names of applications whose outcomes are recorded.
        outcomes
            What their outcomes really are.
        """
        self._check_fitted()
        names = self._intake.read_ids(ids)
        if names.size:
            outcome = self._intake.read_outcomes(outcomes, names.shape[0])
            changes = self._people.observe(names, id_bits(names), outcome, correcting=True)
            self._news |= len(changes) > 0
            t = len(self._rounds)
            self._remember_corrections(t, names[changes.at], changes.before, changes.after)
        return self

    def withdraw(self, ids: Any) -> Self:
        """Take note of accepted people whose outcome will never be known.

        A loan that was not taken up, or a decision that somebody overrode by hand. Nothing is
        learned from them from now on, even if an outcome is recorded; should one come after all,
        tell it with ``correct``.

        Parameters
        ----------
        ids
            Names of accepted applications.
        """
        self._check_fitted()
        names = self._intake.read_ids(ids)
        changes = self._people.withdraw(names, id_bits(names))
        if (
            changes.before >= 0
        ).any() or self.maturity is not None:  # the missing count as bad in time
            self._news = True
        return self

    def forget(self, ids: Any) -> Self:
        """Forget people for good: their features, groups, outcomes and names.

        Nothing is learned from them from the next round on. Decisions, counts and the policies of
        rounds so far stay as they are, and so does what a learner keeps of people it was fitted to:
        coefficients, but also categories of an encoder.

        Parameters
        ----------
        ids
            Names of applications, accepted or rejected, the history's too.
        """
        self._check_fitted()
        check_keeps_nobody(self.learner)
        check_keeps_nobody(self._past.given, "past policy")
        names = self._intake.read_ids(ids)
        if names.size:
            self._follow(self._people.forget(names, id_bits(names)))
            self._forget_corrections(names)
            self._news = True
        return self

    def _follow(self, moved: list[NDArray[np.int64]]) -> None:
        """Follow the memory, whose people have moved to other positions in their folds."""

    def _check_fitted(self) -> None:
        """Raise unless there is a history; scikit-learn's own check takes a tenth of a round."""
        if not hasattr(self, "_fitted"):
            check_is_fitted(self)
