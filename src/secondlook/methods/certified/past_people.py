"""The history as a ranking learns from it: whom the past accepted, and whom it rejected."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from secondlook.learners.selection import SelectedPast, fit_selected_past
from secondlook.people.intake import History
from secondlook.people.likelihoods import LinearLikelihood

__all__ = ["PastPeople"]

Floats = NDArray[np.float64]


class PastPeople:
    """The history as a ranking learns from it."""

    def __init__(
        self,
        X: Floats,
        outcome: NDArray[np.int8],
        group: NDArray[np.intp],
        rejected: Floats,
        rejected_group: NDArray[np.intp],
        mean: Floats,
        deviation: Floats,
        bits: NDArray[np.uint64],
        rejected_bits: NDArray[np.uint64],
    ) -> None:
        self.X, self.outcome, self.group = X, outcome, group
        self._bits, self._rejected_bits = bits, rejected_bits
        self._rejected, self._rejected_group = rejected, rejected_group
        self._mean, self._deviation = mean, deviation
        self._last: SelectedPast | None = None

    @staticmethod
    def of(history: History) -> PastPeople:
        """Return the history, with what standardises its features."""
        taken = history.accepted
        X = np.asarray(history.X, dtype=np.float64)
        deviation = np.nan_to_num(X.std(axis=0))
        deviation[deviation == 0] = 1.0
        return PastPeople(
            X[taken],
            history.outcome,
            history.group[taken],
            X[~taken],
            history.group[~taken],
            X.mean(axis=0),
            deviation,
            history.bits[taken],
            history.bits[~taken],
        )

    def of_group(self, z: int) -> PastPeople:
        """Return the people of one group, or everybody where it has none to learn from."""
        mine, others = self.group == z, self._rejected_group == z
        if np.unique(self.outcome[mine]).size < 2:
            return self
        return PastPeople(
            self.X[mine],
            self.outcome[mine],
            self.group[mine],
            self._rejected[others],
            self._rejected_group[others],
            self._mean,
            self._deviation,
            self._bits[mine],
            self._rejected_bits[others],
        )

    def forget(self, bits: NDArray[np.uint64]) -> None:
        """Take people out for good; what standardises features stays as it is."""
        stays = ~np.isin(self._bits, bits)
        self.X, self.outcome, self.group = self.X[stays], self.outcome[stays], self.group[stays]
        self._bits = self._bits[stays]
        stays = ~np.isin(self._rejected_bits, bits)
        self._rejected, self._rejected_group = self._rejected[stays], self._rejected_group[stays]
        self._rejected_bits = self._rejected_bits[stays]

    def rank(self, own_X: Floats, own_outcome: NDArray[np.int8]) -> LinearLikelihood:
        """Fit the logistic model that knows of the past's selection."""
        # Whom a past that accepted nobody turned away tells nothing about how it chose.
        rejected = self._rejected if self.outcome.size else self._rejected[:0]
        scaled = [(X - self._mean) / self._deviation for X in (self.X, rejected, own_X)]
        fit = fit_selected_past(
            scaled[0], self.outcome, scaled[1], scaled[2], own_outcome, start=self._last
        )
        self._last = fit
        coef = fit.coef / self._deviation
        return LinearLikelihood(coef, fit.intercept - float(coef @ self._mean))
