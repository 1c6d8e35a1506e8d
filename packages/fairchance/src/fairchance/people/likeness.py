"""Whether a batch is like the history and the last rounds, column by column.

Three shares of each column are compared: applicants without a value; applicants with a strange one,
which is a number outside the history's range, or a text that fewer than five applicants of the
history had; and whether all applicants have one and the same value. Of groups that may not decide,
new ones are counted: those that no other applicant of the history had. A difference counts if it
has a **size**, the difference of the two shares, and is more than **chance**: if all applicants
came from one population, the probability of any finding in a batch would be at most
``FALSE_ALARMS``. Tests are exact (Fisher's for two shares, and the order of past and new numbers
for ranges) and corrected for their number. A finding beyond the level ``stop`` of ``Checks`` stops
the batch; one beyond ``warn`` is reported. What is more than in the last rounds only is reported,
too, and a batch that is like a round which was decided in spite of a stop is not stopped again.

Only counts and bounds are kept. The extremes of the history belong to single applicants, who may
have to be forgotten, so a bound is the next round number outward, in steps of a tenth to a quarter
of the extreme or of the range's width, whichever is less. An extreme that is such a number itself
is a bound only if several applicants had it, like the 0 and 1 of a flag. Dates move on, so their
range is wider by half its width on both sides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom

from fairchance.core.saved import saved
from fairchance.errors import InputError
from fairchance.people.columns import SEVERAL, TableColumn, TableColumns

__all__ = ["FALSE_ALARMS", "Checks", "Likeness", "Unlike", "chance_beyond", "chance_of_more"]
__all__ += ["check_like", "rounded_outward"]

Floats = NDArray[np.floating]
Ints = NDArray[np.int64]
Codes = NDArray[np.intp]

FALSE_ALARMS = 1e-4  # probability of any finding in a batch that is like the history
_TESTS = 6  # per column: more missing and more strange values, each twice; fewer missing; one value
_LEAST = 3  # applicants by which a batch must differ: one or two odd ones are usual
_ROUNDS = 12  # that are remembered
_MANY = 0.05  # the largest share of a value if a column has so many that one for all is a mistake
_PART = 10.0  # a step is at least the size over this
_CLOSE = 1e-9  # 0.7 is a multiple of 0.1, whatever division gives
_SMALLEST = 1e-300  # step; smaller numbers count as 0
_HINTS = {
    "missing": "is the column filled in?",
    "fewer missing": "is it a default?",
    "unseen": "is it another coding?",
    "group": "is it another coding?",
    "outside": "is it another unit or decimal mark?",
    "constant": "is it a default?",
}


@saved
@dataclass(frozen=True)
class Checks:
    """From which difference on a batch, or a file of outcomes, is reported or refused.

    A level is a difference of two shares, such as the share of applicants without a value in a
    batch and in the history; 1 turns a level off.

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
                    f"{name} of checks must be a difference of shares, above 0 and at most 1, "
                    f"which turns it off, got {value!r}; change it."
                )
        if self.warn > self.stop:
            raise InputError(
                f"warn of checks must not be above stop, got {self.warn} and {self.stop}; change "
                f"one of them."
            )


@dataclass(frozen=True)
class Unlike:
    """What differs in a column of a batch.

    Attributes
    ----------
    column
        Its name or position.
    what
        ``"missing"``; ``"unseen"``, a text that fewer than five applicants of the history had;
        ``"group"``, one that the history lacks; ``"outside"`` the range of the history;
        ``"constant"``, one value for all.
    n, of
        How many applicants this is true of, and of how many; all but ``"missing"`` count only
        applicants with a value.
    share
        The same share before; for ``"constant"``, that of the most frequent value.
    since
        What the batch is compared with, ``"history"`` or ``"last rounds"``.
    stops
        Whether it is beyond the level ``stop``.
    low, high
        The range, for ``"outside"``.

    Examples
    --------
    >>> print(Unlike("age", "missing", 700, 700, 0.04, "history", True))
    700 of 700 applicants have no value in 'age' (4 % in the history); is the column filled in?
    """

    column: str | int
    what: str
    n: int
    of: int
    share: float
    since: str
    stops: bool
    low: Any = None
    high: Any = None

    def __str__(self) -> str:
        """Return the difference in words."""
        name = repr(self.column) if isinstance(self.column, str) else f"column {self.column}"
        before = f"{100 * self.share:.3g} % in the {self.since}"
        if self.what == "constant":
            return (
                f"all {self.n:,} applicants have the same value in {name} (the most frequent had "
                f"{before}); {_HINTS[self.what]}"
            )
        words = {
            "missing": f"have no value in {name}",
            "unseen": f"have a text in {name} that is new or rare",
            "group": f"have a group in {name} that is new",
            "outside": f"are outside {_shown(self.low)} to {_shown(self.high)} in {name}",
        }[self.what]
        fewer = self.what == "missing" and self.n < self.share * self.of
        hint = _HINTS["fewer missing" if fewer else self.what]
        return f"{self.n:,} of {self.of:,} applicants {words} ({before}); {hint}"

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data, without the fields that do not apply."""
        return {name: value for name, value in vars(self).items() if value is not None}


def _shown(bound: Any) -> str:
    return f"{bound:.10g}" if isinstance(bound, float) else str(bound)


def check_like(unlike: tuple[Unlike, ...]) -> None:
    """Raise if a finding stops a batch; the message has all of them."""
    stops = [str(one) for one in unlike if one.stops]
    if stops:
        raise InputError(
            f"the batch is unlike the history: {' Also, '.join(stops)} Nothing was decided or "
            f"recorded: correct the batch, or decide it anyway with --unlike-history "
            f"(unlike_history=True)."
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
    n, missing
        Number of applicants, and of those without a value.
    strange
        How many would have a text that fewer than five others had, or a group of their own.
    most
        How many had the most frequent value.
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
    most: int
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
    def what(self) -> str:
        """How a strange value is called."""
        return {"category": "unseen", "group": "group"}.get(self.kind, "outside")

    @staticmethod
    def of(column: TableColumn, name: str | int, at: int, codes: Floats) -> KnownColumn | None:
        """Return what is kept of a column, given its codes; None if all are missing."""
        present = codes[~np.isnan(codes)].astype(np.float64)
        if not present.size:
            return None
        values, counts = np.unique(present, return_counts=True)
        strange, most = 0, int(counts.max())
        if column.kind == "category":
            # Texts that no others had, seen from each applicant: those of five applicants, too.
            low, high = 0.0, len(column.categories) - 1.0
            strange = int(counts[(values > high) | (counts == SEVERAL)].sum())
            most = int(counts[values <= high].max(initial=0))
        else:
            few = bool(counts[0] < SEVERAL), bool(counts[-1] < SEVERAL)
            low, high = rounded_outward(float(values[0]), float(values[-1]), few)
            if column.kind == "date":
                low, high = low - (high - low) / 2, high + (high - low) / 2
        missing = codes.size - present.size
        counted = (codes.size, missing, strange, most)
        return KnownColumn(name, column.kind, at, *counted, low, high, column.origin)

    @staticmethod
    def of_group(name: str, at: int, level: Codes) -> KnownColumn:
        """Return what is kept of an attribute, given each applicant's level."""
        counts = np.bincount(level)
        alone = int(np.count_nonzero(counts == 1))
        return KnownColumn(
            name, "group", at, level.size, 0, alone, int(counts.max()), 0.0, counts.size - 1.0
        )

    def count(self, codes: Floats, least: float, most: float) -> tuple[int, int, int, int]:
        """Return a row of ``Likeness.recent`` for the codes of a batch.

        ``least`` and ``most`` are the extremes of the codes, NaN if some are missing.
        """
        n = missing = codes.size
        if np.isnan(least):
            codes = codes[~np.isnan(codes)]
            if not codes.size:
                return n, missing, 0, 0
            least, most = codes.min(), codes.max()
        strange, missing = 0, n - codes.size
        if least < self.low or most > self.high:
            strange = int(np.count_nonzero((codes < self.low) | (codes > self.high)))
        # Codes beyond the categories are of different texts, and days are often the same.
        is_one = least == most and self.kind != "date"
        is_one &= self.kind != "category" or least <= self.high
        return n, missing, strange, codes.size if is_one else 0


@saved
class Likeness:
    """What a history and the last rounds were like, to compare batches with.

    Attributes
    ----------
    columns
        A ``KnownColumn`` for each column that decides, and for each attribute that may not.
    recent
        Counts of the last rounds, a row for each column: applicants, those without a value, with a
        strange value, and with one and the same value.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> history, batch = rng.normal(50, 9, (2, 500, 1))
    >>> likeness = Likeness.of(TableColumns.of(history), history)
    >>> likeness.compare(likeness.count(batch), Checks())
    ()
    >>> print(*likeness.compare(likeness.count(100 * batch), Checks()))
    500 of 500 applicants are outside 14 to 80 in column 0 (0 % in the history); is it another unit
    or decimal mark?
    """

    def __init__(self, columns: tuple[KnownColumn, ...]) -> None:
        self.columns = columns
        self.recent: list[Ints] = []

    @staticmethod
    def of(table: TableColumns, codes: Floats, names: tuple[str, ...] | None = None) -> Likeness:
        """Return what a history is like.

        Parameters
        ----------
        table, codes
            Its columns, and its features as codes of those that are kept.
        names
            Names of the columns; None means those of the table.
        """
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

        Parameters
        ----------
        titles, levels
            Names of the attributes, and the level of each applicant, a row for each attribute.
        """
        known = (KnownColumn.of_group(titles[at], at, level) for at, level in enumerate(levels))
        return Likeness((*self.columns, *known))

    def count(self, codes: Floats, levels: Codes | None = None) -> Ints:
        """Return the counts of a batch with groups at some levels, a row for each column."""
        with np.errstate(invalid="ignore"):
            least, most = codes.min(axis=0), codes.max(axis=0)
        rows = []
        for column in self.columns:
            at = column.at
            if column.kind != "group":
                rows.append(column.count(codes[:, at], least[at], most[at]))
            elif levels is not None:
                new = int(np.count_nonzero(levels[at] > column.high))
                rows.append((levels[at].size, 0, new, 0))
        return np.array(rows, np.int64).reshape(-1, 4)

    def remember(self, counts: Ints) -> None:
        """Add the counts of a round."""
        self.recent = [*self.recent, counts][-_ROUNDS:]

    def compare(self, counts: Ints, checks: Checks) -> tuple[Unlike, ...]:
        """Return what is unlike in a batch, given its counts; what stops it comes first."""
        found = [
            one
            for at, column in enumerate(self.columns)
            for one in self._findings(
                column, counts[at].tolist(), [past[at].tolist() for past in self.recent], checks
            )
        ]
        return tuple(sorted(found, key=lambda one: (not one.stops, -one.n / one.of)))

    def _findings(
        self, column: KnownColumn, now: list[int], recent: list[list[int]], checks: Checks
    ) -> Iterator[Unlike]:
        history = [column.n, column.missing, column.strange, column.most]
        summed = np.sum(recent, axis=0).tolist() if recent else [0] * 4
        for at, what in enumerate(("missing", column.what, "constant"), start=1):
            n, of = now[at], _of(now, at)
            bounds = column.bounds if what == "outside" else (None, None)
            size = self._size(column, at, now, history, checks)
            if size:
                stops = size > checks.stop and not self._decided_before(
                    column, at, now, recent, checks
                )
                share = history[at] / _of(history, at)
                yield Unlike(column.name, what, n, of, share, "history", stops, *bounds)
            elif what != "constant" and self._size(column, at, now, summed, checks, last=True):
                share = summed[at] / _of(summed, at)
                yield Unlike(column.name, what, n, of, share, "last rounds", False, *bounds)

    def _decided_before(
        self,
        column: KnownColumn,
        at: int,
        now: list[int],
        recent: list[list[int]],
        checks: Checks,
    ) -> bool:
        """Return whether a batch is like a round that was decided although it was so unlike."""
        history = [column.n, column.missing, column.strange, column.most]
        return any(
            self._size(column, at, past, history, checks) > checks.stop
            and _difference(at, now, past) <= checks.warn
            for past in recent
        )

    def _size(
        self,
        column: KnownColumn,
        at: int,
        now: list[int],
        past: list[int],
        checks: Checks,
        *,
        last: bool = False,
    ) -> float:
        """Return by how much a share differs from the past; 0 if it is little, or chance."""
        (n, of), (n_past, of_past) = (now[at], _of(now, at)), (past[at], _of(past, at))
        if not of or not of_past or (at == _SAME and not n):
            return 0.0
        size = _difference(at, now, past)
        if not size > checks.warn or size * of < _LEAST:
            return 0.0
        if last and n / of < n_past / of_past:  # good again after rounds that were not
            return 0.0
        if at == _SAME:  # which value it is does not matter, so the first applicant's is free
            chance = chance_of_more(n - 1, of - 1, n_past, of_past)
            if n_past > _MANY * of_past:  # a column with few values: perhaps a part of applicants
                size = min(size, checks.stop)
        elif at == _STRANGE and column.what == "outside" and not last:
            chance = chance_beyond(of_past, of, n)
        elif n / of < n_past / of_past:  # fewer are missing, which may be an improvement
            chance = chance_of_more(of - n, of, of_past - n_past, of_past)
            size = min(size, checks.stop)
        else:
            # Applicants with rare texts come in clumps of up to five.
            clump = SEVERAL if at == _STRANGE and n_past and not last else 1
            chance = chance_of_more(n, of, math.ceil(n_past / clump), of_past // clump)
        return size if chance < FALSE_ALARMS / (_TESTS * len(self.columns)) else 0.0


_MISSING, _STRANGE, _SAME = 1, 2, 3  # places among the counts


def _of(counts: list[int], at: int) -> int:
    """Return of how many a count is: of all applicants, or of those with a value."""
    return counts[0] if at == _MISSING else counts[0] - counts[_MISSING]


def _difference(at: int, now: list[int], past: list[int]) -> float:
    """Return by how much a share is larger; for missing values, also by how much it is smaller."""
    before = past[at] / _of(past, at) if _of(past, at) else 0.0
    more = (now[at] / _of(now, at) if _of(now, at) else 0.0) - before
    return abs(more) if at == _MISSING else more


def chance_of_more(n: int, of: int, n_past: int, of_past: int) -> float:
    """Return the chance of so many or more, if all come from one population (Fisher's test).

    Examples
    --------
    >>> round(chance_of_more(3, 3, 1, 7), 12)  # 4 of 10, and 3 of them among the last 3: 4 / 120
    0.033333333333
    """
    return float(hypergeom.sf(n - 1, of + of_past, n + n_past, of))


def chance_beyond(n_past: int, n_new: int, least: int) -> float:
    """Return the chance that at least ``least`` new values are beyond the extremes of past ones.

    If all are exchangeable and no two are equal, all orders of old and new are equally likely, and
    in (b + 1) · C(n_new − b + n_past − 2, n_past − 2) of C(n_new + n_past, n_past) exactly b of
    the new are beyond. With ties, or bounds rounded outward, the chance is smaller.

    Parameters
    ----------
    n_past, n_new
        Number of values in the history and in the batch.
    least
        Least number of values beyond.

    Examples
    --------
    >>> round(chance_beyond(399, 1, 1), 12)  # 2 / (n_past + 1)
    0.005
    """
    if n_past < 2 or least <= 0:
        return 1.0
    inside = n_new - np.arange(n_new, dtype=np.float64)
    fewer = np.cumprod(np.r_[1.0, inside / (inside + n_past - 2)])  # b beyond, against none
    n = n_new + n_past
    none_beyond = n_past * (n_past - 1) / (n * (n - 1))
    ways = np.arange(1, n_new + 2) * fewer * none_beyond
    return float(min(1.0, ways[least:].sum()))


def rounded_outward(
    least: float, largest: float, few: tuple[bool, bool] = (False, False)
) -> tuple[float, float]:
    """Return round numbers that enclose two extremes.

    If few applicants had an extreme, the bound is not the extreme itself.

    Examples
    --------
    >>> rounded_outward(1953.0, 2004.0)
    (1950.0, 2010.0)
    >>> rounded_outward(-0.27, 0.3)
    (-0.3, 0.3)
    """
    width = largest - least
    low = -_up(-least, width, beyond=few[0])
    return low + 0.0, _up(largest, width, beyond=few[1])  # never -0.0


def _up(value: float, width: float, *, beyond: bool) -> float:
    """Return the first multiple of a round step that is at or above a value, or above it."""
    if value == 0 and not beyond:
        return value
    size = min(abs(value) or width, width or abs(value))
    if size == 0:
        return value
    part = max(size / _PART, _SMALLEST)
    power = math.floor(math.log10(part))
    steps = (float(f"{digit}e{power}") for digit in (1, 2, 5))
    step = next((size for size in steps if size >= part), float(f"1e{power + 1}"))
    bound = round(math.ceil(value / step - _CLOSE) * step, max(0, -power))
    below = bound <= value if beyond else bound < value
    return round(bound + step, max(0, -power)) if below else bound
