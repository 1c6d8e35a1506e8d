"""People whom we accepted with logged probabilities: what rankings and choices rest on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.people.store import PENDING, GrowingArray, without

__all__ = ["OwnRows"]

Floats = NDArray[np.float64]


class OwnRows:
    """Accepted people, one entry each: features, group, round, outcome, p, Σ n_i·p_i so far."""

    def __init__(self, n_features: int) -> None:
        self._X = GrowingArray(np.empty((0, n_features)))
        self._columns = {
            "group": GrowingArray(np.empty(0, np.intp)),
            "round": GrowingArray(np.empty(0, np.intp)),
            "outcome": GrowingArray(np.empty(0, np.int8)),
            "p": GrowingArray(np.empty(0)),
            "p_sum": GrowingArray(np.empty(0)),
        }
        self.first_round = 0  # rows of earlier rounds are forgotten
        self.settled_round = 0  # rounds up to it are in the tests, the missing counted as bad

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def X(self) -> Any:  # noqa: N802
        """Features."""
        return self._X.view()

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._columns[name].view()

    def append(
        self, X: Any, group: NDArray[np.intp], round: int, p: Floats, p_sum: Floats
    ) -> NDArray[np.int64]:
        """Write people down, with all outcomes still to come, and return their places."""
        first, n = len(self), X.shape[0]
        self._X.append(X)
        for name, values in (
            ("group", group),
            ("round", np.full(n, round)),
            ("outcome", np.full(n, PENDING, np.int8)),
            ("p", p),
            ("p_sum", p_sum),
        ):
            self._columns[name].append(np.asarray(values))
        return np.arange(first, first + n)

    def remove(self, places: NDArray[Any]) -> NDArray[np.int64]:
        """Take people out for good, and return everybody's new place, −1 for those."""
        stays, moved = without(places, len(self))
        self._X = GrowingArray(self.X[stays])
        for name in self._columns:
            self._columns[name] = GrowingArray(self[name][stays])
        return moved

    def known(self) -> NDArray[np.intp]:
        """Return the places of those whose outcome has come."""
        return np.flatnonzero((self["outcome"] >= 0) & (self["round"] >= self.first_round))

    def settled(self) -> NDArray[np.intp]:
        """Return the places of people of rounds that are in the tests, whatever has come."""
        rounds = self["round"]
        return np.flatnonzero((rounds >= self.first_round) & (rounds <= self.settled_round))
