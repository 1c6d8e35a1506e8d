"""Whether a batch is like the history and the last round, column by column.

Two shares of each column are compared: applicants without a value, and applicants with a strange
one, which is a number outside the history's range, or a text that fewer than five applicants of
the history had. Of groups that may not decide, new ones are counted. A share that is larger than in
the history by more than ``stop`` of ``Checks`` stops the batch, unless the last round was like it;
one that is larger by more than ``warn`` than in the history or the last round is reported. Shares
of fewer than ``ENOUGH`` applicants are not compared, and a difference must be larger than noise.

Only counts and bounds are kept. Counts add up: those of calls with few applicants are compared
together. The extremes of the history belong to single applicants, who may have to be forgotten, so
bounds are rounded outward. Dates move on, so their range is wider by half its width on both sides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.core.saved import saved
from fairchance.errors import InputError
from fairchance.people.columns import TableColumn, TableColumns
from fairchance.words.batches import unlike_words

__all__ = ["ENOUGH", "Checks", "Likeness", "Unlike", "check_like", "excess", "outward"]

Floats = NDArray[np.floating]
Ints = NDArray[np.int64]
Codes = NDArray[np.intp]

ENOUGH = 20  # people from which on a share is compared
_NOISE = 4.0  # standard errors that a difference must exceed
_ODD = 2  # applicants by which every batch may differ
_TINY = 1e-300  # numbers this small have no decimal step


@saved
@dataclass(frozen=True)
class Checks:
    """Thresholds for warning about a batch or an outcome file, and for refusing it.

    A threshold is a difference of two shares, such as the share of applicants without a value in a
    batch and in the history; 1 turns it off.

    Attributes
    ----------
    stop
        Beyond this, nothing is decided or recorded.
    warn
        Beyond this, the difference is recorded and reported.

    Examples
    --------
    >>> Checks(stop=0.5), Checks(stop=1, warn=1)
    (Checks(stop=0.5, warn=0.05), Checks(stop=1, warn=1))
    """

    stop: float = 0.3
    warn: float = 0.05

    def __post_init__(self) -> None:
        for name, value in (("stop", self.stop), ("warn", self.warn)):
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
                raise InputError(
                    f"{name} of checks must be above 0 and at most 1 (off), got {value!r}.",
                    option="checks",
                )
        if self.warn > self.stop:
            raise InputError(
                f"warn of checks must not be above stop, got {self.warn} and {self.stop}.",
                option="checks",
            )


@dataclass(frozen=True)
class Unlike:
    """A column in which a batch is unlike the history or the last round.

    Attributes
    ----------
    column
        Its name or position.
    code
        ``"missing"``; ``"unseen"``, a text that fewer than five applicants of the history had;
        ``"group"``, one that the history lacks; ``"outside"`` the range of the history.
    n, of
        How many applicants this is true of, and of how many; all but ``"missing"`` count only
        applicants with a value.
    usual
        The share before.
    since
        What the batch is compared with, ``"history"`` or ``"last round"``.
    stops
        Whether the difference is beyond the threshold ``stop``.
    low, high
        The range, for ``"outside"``.
    moves
        True for ``"outside"`` if the last round was outside too, as in a column of dates.
    """

    column: str | int
    code: str
    n: int
    of: int
    usual: float
    since: str
    stops: bool
    low: Any = None
    high: Any = None
    moves: bool | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data, without the fields that do not apply."""
        return {name: value for name, value in vars(self).items() if value is not None}


def check_like(unlike: tuple[Unlike, ...]) -> None:
    """Raise if a finding stops a batch; the message has all that do."""
    stops = [unlike_words(one) for one in unlike if one.stops]
    if stops:
        raise InputError(
            f"the batch is unlike the history: {' '.join(stops)} Nothing was recorded: correct the "
            f"batch, or decide it anyway with {{option}}.",
            option="unlike_history",
        )


@saved
@dataclass(frozen=True)
class KnownColumn:
    """What is kept of a column of the history to compare batches with.

    Attributes
    ----------
    name, kind
        As in ``TableColumn``, or the kind ``"group"``.
    at
        Its place in the matrix of features, or among the attributes that form groups.
    n, missing, strange
        Number of applicants, of those without a value, and of those with a text that fewer than
        five had, or with a group of their own.
    low, high
        Numbers, days or codes outside are strange.
    origin
        The day that days are counted from, for dates.
    """

    name: str | int
    kind: str
    at: int
    n: int
    missing: int
    strange: int
    low: float
    high: float
    origin: float = 0.0

    @property
    def bounds(self) -> tuple[Any, Any]:
        """The range in the words of the column."""
        if self.kind != "date":
            return self.low, self.high
        days = np.array([self.low, self.high]) + self.origin
        low, high = days.astype("M8[D]").astype(str).tolist()
        return low, high

    @property
    def code(self) -> str:
        """How a strange value is called."""
        return {"category": "unseen", "group": "group"}.get(self.kind, "outside")

    @staticmethod
    def of(column: TableColumn, name: str | int, at: int, codes: Floats) -> KnownColumn | None:
        """Return what is kept of a column, given its codes; None if all are missing."""
        present = codes[~np.isnan(codes)].astype(np.float64)
        if not present.size:
            return None
        strange = 0
        if column.kind == "category":
            low, high = 0.0, len(column.categories) - 1.0
            strange = int(np.count_nonzero(present > high))
        else:
            low, high = outward(float(present.min()), float(present.max()))
            if column.kind == "date":
                low, high = low - (high - low) / 2, high + (high - low) / 2
        missing = codes.size - present.size
        return KnownColumn(
            name, column.kind, at, codes.size, missing, strange, low, high, column.origin
        )

    @staticmethod
    def of_group(name: str, at: int, level: Codes) -> KnownColumn:
        """Return what is kept of an attribute, given each applicant's level."""
        counts = np.bincount(level)
        alone = int(np.count_nonzero(counts == 1))
        return KnownColumn(name, "group", at, level.size, 0, alone, 0.0, counts.size - 1.0)

    def count(self, codes: Floats) -> tuple[int, int, int]:
        """Return how many applicants of a batch there are, without a value, and with a strange one.

        A comparison with NaN is false.
        """
        strange = np.count_nonzero(codes < self.low) + np.count_nonzero(codes > self.high)
        return codes.size, int(np.count_nonzero(np.isnan(codes))), int(strange)


@saved
class Likeness:
    """What a history and the last round were like, to compare batches with.

    Attributes
    ----------
    columns
        A ``KnownColumn`` for each column that decides, and for each attribute that may not.
    last
        Counts of the last round, a row for each column: applicants, those without a value, and
        those with a strange value. None before it.
    waiting
        Counts of later applicants who were too few to compare.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> history, batch = rng.normal(50, 9, (2, 500, 1))
    >>> likeness = Likeness.of(TableColumns.of(history), history)
    >>> likeness.compare(likeness.count(batch), Checks())
    ()
    >>> (one,) = likeness.compare(likeness.count(100 * batch), Checks())
    >>> one.code, one.n, one.of, one.low, one.high, one.stops
    ('outside', 500, 500, 10.0, 80.0, True)
    """

    def __init__(self, columns: tuple[KnownColumn, ...]) -> None:
        self.columns = columns
        self.last: Ints | None = None
        self.waiting: Ints | None = None

    @staticmethod
    def of(table: TableColumns, codes: Floats, names: tuple[str, ...] | None = None) -> Likeness:
        """Return what a history is like."""
        known = (
            KnownColumn.of(
                table.columns[at],
                table.columns[at].name if names is None else names[at],
                position,
                codes[:, position],
            )
            for position, at in enumerate(table.kept)
        )
        return Likeness(tuple(column for column in known if column is not None))

    def with_groups(self, titles: tuple[str, ...], levels: Codes) -> Likeness:
        """Return what a history with groups is like.

        ``levels`` has a row for each attribute.
        """
        known = (KnownColumn.of_group(titles[at], at, level) for at, level in enumerate(levels))
        return Likeness((*self.columns, *known))

    def count(self, codes: Floats, levels: Codes | None = None) -> Ints:
        """Return the counts of a batch with groups at some levels, a row for each column."""
        rows = []
        for column in self.columns:
            if column.kind != "group":
                rows.append(column.count(codes[:, column.at]))
            elif levels is not None:
                rows.append(column.count(levels[column.at]))
        return np.array(rows, np.int64).reshape(-1, 3)

    def remember(self, counts: Ints) -> None:
        """Add the counts of decided applicants; enough of them are the last round."""
        counts = self._with_waiting(counts)
        if counts[:, 0].max(initial=0) < ENOUGH:
            self.waiting = counts
        else:
            self.last, self.waiting = counts, None

    def compare(self, counts: Ints, checks: Checks) -> tuple[Unlike, ...]:
        """Return what is unlike in a batch, given its counts; what stops it comes first."""
        found = [
            one
            for at, row in enumerate(self._with_waiting(counts).tolist())
            for one in self._findings(at, row, checks)
        ]
        return tuple(sorted(found, key=lambda one: (not one.stops, -one.n / one.of)))

    def _with_waiting(self, counts: Ints) -> Ints:
        return counts if self.waiting is None else counts + self.waiting

    def _findings(self, at: int, row: list[int], checks: Checks) -> Iterator[Unlike]:
        column = self.columns[at]
        now, history = _counted(row), _counted([column.n, column.missing, column.strange])
        last = _counted([0, 0, 0] if self.last is None else self.last[at].tolist())
        for place, code in enumerate(("missing", column.code)):
            (n, of), past, before = now[place], history[place], last[place]
            bounds = column.bounds if code == "outside" else (None, None)
            if of < ENOUGH or past[1] < ENOUGH:
                continue
            usual = past[0] / past[1]
            recent = before[0] / before[1] if before[1] >= ENOUGH else None
            size = excess(n, of, usual, past[1])
            if size > checks.warn:
                again = recent is not None and n / of <= recent + checks.warn
                stops = size > checks.stop and not again
                one = Unlike(column.name, code, n, of, usual, "history", stops, *bounds)
                outside = code == "outside" and recent is not None
                if outside and excess(*before, usual, past[1]) > checks.warn:
                    one = replace(one, moves=True)
                yield one
            elif recent is not None and excess(n, of, recent, before[1]) > checks.warn:
                yield Unlike(column.name, code, n, of, recent, "last round", False, *bounds)


def _counted(row: list[int]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return how many have no value, and a strange one, each with of how many."""
    n, missing, strange = row
    return (missing, n), (strange, n - missing)


def excess(n: int, of: int, usual: float, known: float = math.inf) -> float:
    """Return by how much a share is above the usual one; 0 if it is not, or if that is noise.

    ``usual`` is the usual share, seen in ``known`` people.

    Examples
    --------
    >>> excess(45, 60, 0.25), excess(30, 60, 0.25)
    (0.5, 0.0)
    """
    weight = of / (of + known)
    share = weight * n / of + (1 - weight) * usual
    noise = _NOISE * math.sqrt(share * (1 - share) * (1 / of + 1 / known)) + _ODD / of
    return n / of - usual if n / of - usual > noise else 0.0


def outward(least: float, largest: float) -> tuple[float, float]:
    """Return round numbers that enclose two extremes.

    Examples
    --------
    >>> outward(1953.0, 2004.0), outward(339.0, 10_636.0), outward(0.0, 1.0)
    ((1950.0, 2005.0), (300.0, 15000.0), (0.0, 1.0))
    """
    width = largest - least
    return -_up(-least, width) + 0.0, _up(largest, width)  # never -0.0


def _up(value: float, width: float) -> float:
    """Return the first multiple at or above a value of half a power of ten."""
    size = min(abs(value), width) or abs(value)
    if size < _TINY:
        return value
    step = 10.0 ** math.floor(math.log10(size)) / 2
    return max(value, math.ceil(value / step) * step)
