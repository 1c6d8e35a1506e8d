"""The people we accepted, with the outcomes that have arrived.

Accepted people are written down once, when they are accepted, in an order that depends on their ids
only; an outcome fills in their slot whenever it comes. So the order in which outcomes arrive cannot
matter, nothing is copied from round to round, and there is no slot for anybody who was rejected.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.core.coverage import CoverageRule
from secondlook.frames import concat, n_rows, take

__all__ = ["NEVER", "PENDING", "GrowingArray", "ObservedRows", "without"]

Floats = NDArray[np.float64]

PENDING = -1
NEVER = -2  # code of an outcome that will not come

_NOT_WALKED = -1  # not even f_0 has been asked yet

_COLUMNS: dict[str, type] = {
    "group": np.intp,
    "outcome": np.int8,
    "round": np.int32,
    "walked": np.int32,
    "past": np.float64,
    "own": np.float64,
    "coverage": np.float64,
}


class GrowingArray:
    """An array that is appended to in amortised constant time."""

    def __init__(self, values: NDArray[Any]) -> None:
        self._room = values.copy()
        self._size = values.shape[0]

    def append(self, values: NDArray[Any]) -> None:
        """Write values behind the last."""
        self.grow(values.shape[0])[:] = values

    def grow(self, n: int, *, zeros: bool = False) -> NDArray[Any]:
        """Make room for some more values, and return it to be filled in.

        An array that always grows by zeros need not be: its room takes no memory until it is used.
        """
        first, end = self._size, self._size + n
        if end > self._room.shape[0]:
            size = max(end, 2 * self._room.shape[0])
            shape = (size, *self._room.shape[1:])
            room = (np.zeros if zeros else np.empty)(shape, self._room.dtype)
            room[:first] = self._room[:first]
            self._room = room
        self._size = end
        return self._room[first:end]

    def view(self) -> NDArray[Any]:
        """Return what was written, without a copy."""
        return self._room[: self._size]


def without(positions: NDArray[Any], n: int) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Say who of n stays when some go, and return everybody's new position, −1 for those gone.

    Examples
    --------
    >>> stays, moved = without(np.array([1]), 3)
    >>> stays.tolist(), moved.tolist()
    ([True, False, True], [0, -1, 1])
    """
    stays = np.ones(n, np.bool_)
    stays[positions] = False
    return stays, np.where(stays, np.cumsum(stays) - 1, -1)


class ObservedRows:
    """Accepted people of one fold.

    Columns, one entry a person: ``group``; ``outcome`` (1 good, 0 bad, −1 not known yet, −2 never
    to be known); ``round`` (0 for the history); ``past``, f_0's acceptance probability; ``own``,
    Σ n_i·π_i over the first ``walked`` policies of the log, and ``coverage``, w after these. The
    last four are computed when an outcome has come, by ``catch_up``.
    """

    def __init__(self) -> None:
        self._columns: dict[str, GrowingArray] = {}
        self._array: GrowingArray | None = None
        self._frames: list[Any] = []

    def __len__(self) -> int:
        return 0 if not self._columns else int(self.column("group").shape[0])

    def column(self, name: str) -> NDArray[Any]:
        """Return a column as a view: writing to it changes the record."""
        return self._columns[name].view()

    @property
    def X(self) -> Any:  # noqa: N802
        """Features, as an array view or, for learners that read raw columns, as a frame."""
        if self._array is not None:
            return self._array.view()
        if len(self._frames) > 1:
            self._frames = [concat(self._frames)]
        return self._frames[0]

    def append(
        self,
        X: Any,
        group: NDArray[np.intp] | None,
        outcome: NDArray[np.int8] | int,
        round: int,
        *,
        rows: NDArray[np.intp] | None = None,
    ) -> range:
        """Write people down, who are some rows of X if these are given; return their positions.

        Without groups all are of the first.
        """
        first, n = len(self), n_rows(X) if rows is None else rows.size
        values = {"group": group, "outcome": outcome, "round": round, "walked": _NOT_WALKED}
        for name, dtype in _COLUMNS.items():
            column = self._columns.setdefault(name, GrowingArray(np.empty(0, dtype)))
            room, value = column.grow(n, zeros=True), values.get(name)
            if value is not None:
                room[:] = value
        if not isinstance(X, np.ndarray):
            self._frames.append(X if rows is None else take(X, rows))
            return range(first, first + n)
        if self._array is None:
            self._array = GrowingArray(X[:0])
        if rows is None:
            self._array.append(X)
        else:  # all of them exist, so nothing is clipped, and in that mode nothing is copied twice
            X.take(rows, axis=0, out=self._array.grow(n), mode="clip")
        return range(first, first + n)

    def remove(self, positions: NDArray[Any]) -> NDArray[np.int64]:
        """Take people out for good, and return everybody's new position, −1 for those."""
        stays, moved = without(positions, len(self))
        self.select(np.flatnonzero(stays))
        return moved

    def select(self, positions: NDArray[np.intp]) -> None:
        """Keep the people at some positions, in that order."""
        for name, one in self._columns.items():
            self._columns[name] = GrowingArray(one.view()[positions])
        if self._array is not None:
            self._array = GrowingArray(self._array.view()[positions])
        elif self._frames:
            self._frames = [take(self.X, positions)]

    def known_outcomes(self) -> NDArray[np.bool_]:
        """Say whose outcome has arrived."""
        return np.asarray(self.column("outcome") >= 0)

    def counted(self, waiting: tuple[int, ...] | None) -> NDArray[np.bool_]:
        """Say who counts: the known, or everybody but the people of rounds still waited for.

        Whoever will never have an outcome does not count.
        """
        if waiting is None:
            return self.known_outcomes()
        never = self.column("outcome") == NEVER
        return np.asarray(~np.isin(self.column("round"), waiting) & ~never)

    def catch_up(
        self, log: Any, rule: CoverageRule, waiting: tuple[int, ...] | None = None
    ) -> None:
        """Bring the sums of everybody who counts up to the newest policy.

        Somebody who was up to date a round ago needs that round's policy only.
        """
        walked, known = self.column("walked"), self.counted(waiting)
        own, coverage, group = (self.column(one) for one in ("own", "coverage", "group"))
        new = np.flatnonzero(known & (walked == _NOT_WALKED))
        if new.size:
            log.start(self.X, group, new, self.column("past"), coverage)
            walked[new] = 0
        log.seal()
        for begin in np.flatnonzero(np.bincount(walked[known])):
            rows = np.flatnonzero(known & (walked == begin))
            added, w = log.catch_up(
                self.X, group, rule, begin=int(begin), coverage=coverage, rows=rows
            )
            own[rows] += added  # together with what they stand for, or not at all
            coverage[rows], walked[rows] = w, len(log.policies)

    def known_people(self, log: Any, rule: CoverageRule) -> NDArray[np.bool_]:
        """Say who is in EXPLOIT_t, as far as their sums have been brought up to date."""
        return np.asarray(self.column("coverage") > rule.level(log.n_rounds))

    def acceptance(self, log: Any, *, own_rounds_only: bool) -> Floats:
        """Return the batch-size-weighted mean acceptance probability over the logged policies.

        ``Σ_i (n_i / N)·π_i(x)``, with the history as round 0 unless only our own rounds count.
        """
        if own_rounds_only:
            return np.asarray(self.column("own") / log.n_people)
        total = self.column("own") + log.n_history * self.column("past")
        return np.asarray(total / (log.n_people + log.n_history))
