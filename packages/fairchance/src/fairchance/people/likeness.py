"""Whether a batch is like the history and the last round, column by column.

Four questions are asked of each column, and each is a share of applicants. How many have no value;
how many have a strange one, which is a number outside the history's range, or a text that fewer
than five applicants of the history had; how many are above each decile of the history, or have each
of its frequent texts; and how many are high or low both here and in the column that goes with it
most closely, where the difference is one of correlations. The last finds a column that was sorted
alone, whose own values are as before, but only if another column goes with it. Of groups that may
not decide, new ones are counted. Of the lender's own decisions only the last question is asked:
shares and rules of acceptance change, but not so that applicants whom the history rejected are
accepted, as if the two were exchanged.

A share that differs from the history by more than ``stop`` of ``Checks`` stops the batch, unless
the last round was like it; one that differs by more than ``warn`` from the history or the last
round is reported. The last two questions have honest reasons for large differences: a history of
the best half of the applicants differs from all by at most a half, and by up to 0.4 in the data
sets that we tried. So deciles and texts stop a batch beyond half as much again, which is 0.45, and
are reported beyond three times as much, which is 0.15. Correlations stop it beyond ``stop`` and
noise together. Shares of fewer than ``ENOUGH`` applicants are not compared, and a difference must
be larger than noise. A number far outside the range stops a batch by itself, and so do many more
certain acceptances than the ranking of a certified policy expects: several columns may be wrong,
none of them by much.

Only counts and bounds are kept. Counts add up: those of calls with few applicants are compared
together, up to ``ENOUGH`` to see soon what is wrong with all, and up to ``MANY`` to see what is
wrong with some. Extremes and deciles of the history belong to single applicants, who may have to be
forgotten, so bounds are rounded. Dates move on, so their range is wider by half its width on both
sides, and their deciles are not compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
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
Rows = tuple[Sequence[int], Sequence[int], Sequence[int]]  # of a batch, the history, the last round

ENOUGH = 20  # people from which on a share is compared
MANY = 200  # people from which on a difference of 30 % is above noise in every share
_NOISE = 4.0  # standard errors that a difference must exceed
_ODD = 2  # applicants by which every batch may differ
_TINY = 1e-300  # numbers this small have no decimal step
_HONEST = 1.5  # times stop, for differences that selection can explain
_DRIFT = 3  # times warn, since populations move somewhat all the time
_FAR = 1e6  # times the largest number of the history: no applicant has this
_FREQUENT = 0.05  # share of a text that is compared
_TOGETHER = 0.3  # correlation of columns that go together
_BALANCED = 0.1  # share on the smaller side of two, from which on correlations are compared
_N, _MISSING, _STRANGE, _FAR_OFF, _MARKED = range(5)  # columns of counts; the last is of pairs
_PARTS = 1_000_000  # an expected number of applicants is kept in millionths
_WIDTH = _MARKED + 20 + 1  # at most 20 texts are frequent


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
        ``"group"``, one that the history lacks; ``"outside"`` the range of the history; ``"far"``
        outside it; ``"above"`` or ``"below"`` a number; ``"is"`` or ``"is not"`` a text;
        ``"together"``, high or low both here and in another column; ``"decided"``, accepted by the
        lender and high in another column, or neither; ``"certain"``, accepted for sure by the
        score.
    n, of
        How many applicants this is true of, and of how many; all but ``"missing"``, ``"far"``,
        ``"together"`` and ``"decided"`` count only applicants with a value.
    usual
        The share before.
    since
        What the batch is compared with, ``"history"`` or ``"last round"``.
    stops
        Whether the difference is beyond the threshold ``stop``.
    low, high
        The range, for ``"outside"`` and ``"far"``; one of them for ``"above"`` and ``"below"``.
    other
        The text, or the other column.
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
    other: str | int | None = None
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
        As in ``TableColumn``, or the kind ``"group"`` or ``"decision"``.
    at
        Its place in the matrix of features, or among the attributes that form groups.
    low, high
        Numbers, days or codes outside are strange.
    origin
        The day that days are counted from, for dates.
    marks
        Numbers near the deciles, or the codes of frequent texts.
    texts
        These texts.
    side
        The mark that divides the history most evenly; None if none does.
    partner
        The column that goes with it most closely; None if none does.
    counts
        Of the history, as ``count`` of ``Likeness`` returns them.
    """

    name: str | int
    kind: str
    at: int
    low: float
    high: float
    origin: float = 0.0
    marks: tuple[float, ...] = ()
    texts: tuple[str, ...] = ()
    side: int | None = None
    partner: int | None = None
    counts: tuple[int, ...] = ()

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
        present = np.sort(codes[~np.isnan(codes)].astype(np.float64))
        if not present.size:
            return None
        texts: tuple[str, ...] = ()
        marks: tuple[float, ...] = ()
        if column.kind == "category":
            low, high = 0.0, len(column.categories) - 1.0
            often = np.bincount(present.astype(np.intp), minlength=len(column.categories))
            often = np.flatnonzero(often[: len(column.categories)] >= _FREQUENT * present.size)
            marks = tuple(often.astype(np.float64).tolist())
            texts = tuple(column.categories[code] for code in often)
        else:
            low, high = outward(float(present[0]), float(present[-1]))
            if column.kind == "date":
                low, high = low - (high - low) / 2, high + (high - low) / 2
            else:
                marks = _round_deciles(present)
        known = KnownColumn(name, column.kind, at, low, high, column.origin, marks, texts)
        return known.with_side(codes)

    @staticmethod
    def of_decisions(accepted: NDArray[np.bool_]) -> KnownColumn:
        """Return what is kept of the lender's decisions on the history."""
        known = KnownColumn("incumbent", "decision", 0, 0.0, 1.0, marks=(0.5,))
        return known.with_side(accepted.astype(np.float64))

    def with_side(self, codes: Floats) -> KnownColumn:
        """Return the column with its counts and the mark that divides its codes most evenly."""
        counts, _ = self.count(codes)
        shares = np.array(counts[_MARKED : _MARKED + len(self.marks)]) / codes.size
        side = None
        if shares.size and np.abs(shares - 0.5).min() <= 0.5 - _BALANCED:
            side = int(np.argmin(np.abs(shares - 0.5)))
        return replace(self, side=side, counts=tuple(counts))

    @staticmethod
    def of_group(name: str, at: int, level: Codes) -> KnownColumn:
        """Return what is kept of an attribute, given each applicant's level."""
        members = np.bincount(level)
        known = KnownColumn(name, "group", at, 0.0, members.size - 1.0)
        counts, _ = known.count(level)
        counts[_STRANGE] = int(np.count_nonzero(members == 1))
        return replace(known, counts=tuple(counts))

    def count(self, codes: Floats | Codes) -> tuple[list[int], NDArray[np.bool_] | None]:
        """Return the counts of a batch, all but that of pairs, and who is on the marked side.

        A comparison with NaN is false.
        """
        row = [0] * _WIDTH
        row[_N], row[_MISSING] = codes.size, int(np.count_nonzero(np.isnan(codes)))
        row[_STRANGE] = int(
            np.count_nonzero(codes < self.low) + np.count_nonzero(codes > self.high)
        )
        if row[_STRANGE] and self.code == "outside":
            far = _FAR * max(abs(self.low), abs(self.high), 1.0)
            row[_FAR_OFF] = int(np.count_nonzero(np.abs(codes) > far))
        marks = np.array(self.marks)[:, None]
        marked = codes == marks if self.kind == "category" else codes > marks
        for place, rows in enumerate(marked, _MARKED):
            row[place] = int(np.count_nonzero(rows))  # much faster than a sum along an axis
        return row, None if self.side is None else marked[self.side]


@saved
@dataclass
class Window:
    """Counts of the last applicants, compared together until there are ``size`` of them.

    Attributes
    ----------
    size
        Number of applicants that are a round.
    last
        Counts of the last round, a row for each column. None before it.
    waiting
        Counts of later applicants.
    """

    size: int
    last: Ints | None = None
    waiting: Ints | None = None

    def with_waiting(self, counts: Ints) -> Ints:
        """Return counts together with those of the applicants before."""
        return counts if self.waiting is None else counts + self.waiting

    def remember(self, counts: Ints, confirmed: bool) -> None:
        """Add the counts of decided applicants.

        Those that were confirmed although they are unlike the history are a round by themselves.
        """
        enough = counts[:, _N].max(initial=0) >= ENOUGH
        counts = counts if confirmed and enough else self.with_waiting(counts)
        if confirmed or counts[:, _N].max(initial=0) >= self.size:
            self.last, self.waiting = counts, None
        else:
            self.waiting = counts


@saved
class Likeness:
    """What a history and the last round were like, to compare batches with.

    Attributes
    ----------
    columns
        A ``KnownColumn`` for each column that decides, and for each attribute that may not.
    history
        Their counts.
    windows
        Counts of the last applicants, of few and of many.

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
    >>> (one,) = likeness.compare(likeness.count(batch + 10), Checks())
    >>> one.code, one.n, one.of, one.low, one.usual, one.stops
    ('above', 405, 500, 52.0, 0.398, False)
    """

    def __init__(self, columns: tuple[KnownColumn, ...]) -> None:
        self.columns = columns
        self.history = _rows([column.counts for column in columns])
        self.windows = Window(ENOUGH), Window(MANY)

    @staticmethod
    def of(
        table: TableColumns,
        codes: Floats,
        names: tuple[str, ...] | None = None,
        accepted: NDArray[np.bool_] | None = None,
    ) -> Likeness:
        """Return what a history is like, with the lender's decisions if they are known."""
        found = (
            KnownColumn.of(
                table.columns[at],
                table.columns[at].name if names is None else names[at],
                position,
                codes[:, position],
            )
            for position, at in enumerate(table.kept)
        )
        known = [column for column in found if column is not None]
        sides = [column.count(codes[:, column.at])[1] for column in known]
        if accepted is not None:
            known.append(KnownColumn.of_decisions(accepted))
            sides.append(accepted if known[-1].side is not None else None)
        none = np.zeros(codes.shape[0], np.bool_)
        high = np.array([none if side is None else side for side in sides], np.float32)
        with np.errstate(invalid="ignore", divide="ignore"):  # one-sided columns
            together = np.abs(np.corrcoef(high)) if len(known) > 1 else np.zeros((1, 1))
        together = np.nan_to_num(together)
        np.fill_diagonal(together, 0)
        if accepted is not None:
            together[:, -1] = 0  # no partner of columns, since a batch may come without decisions
        for at, row in enumerate(together[: len(known)]):
            least = _TOGETHER / 2 if known[at].kind == "decision" else _TOGETHER
            if row.max() > least + _NOISE / math.sqrt(codes.shape[0]):
                partner = int(row.argmax())
                pairs = int(np.count_nonzero((high[at] > 0) & (high[partner] > 0)))
                counts = (*known[at].counts[:-1], pairs)
                known[at] = replace(known[at], partner=partner, counts=counts)
        return Likeness(tuple(known))

    def with_groups(self, titles: tuple[str, ...], levels: Codes) -> Likeness:
        """Return what a history with groups is like.

        ``levels`` has a row for each attribute.
        """
        known = (KnownColumn.of_group(titles[at], at, level) for at, level in enumerate(levels))
        return Likeness((*self.columns, *known))

    def count(
        self,
        codes: Floats,
        levels: Codes | None = None,
        incumbent: NDArray[np.bool_] | None = None,
    ) -> Ints:
        """Return the counts of a batch with groups at some levels, a row for each column.

        They are the numbers of applicants, of those without a value, with a strange value and with
        one far off, of those at each mark, and of those who are high here and in the partner. The
        last row is for certain acceptances.
        """
        rows: list[list[int]] = []
        high: list[Any] = []
        decided = np.empty((1, 0)) if incumbent is None else incumbent[None].astype(np.float64)
        for column in self.columns:
            own = {"group": levels, "decision": decided}.get(column.kind, codes.T)
            if own is not None:
                row, side = column.count(np.ascontiguousarray(own[column.at]))
                rows.append(row)
                high.append(side)
        for column, row, side in zip(self.columns, rows, high, strict=False):
            if column.partner is not None and row[_N]:
                row[-1] = int(np.count_nonzero(side & high[column.partner]))
        return _rows([*rows, [0] * _WIDTH])

    def remember(self, counts: Ints, *, confirmed: bool = False) -> None:
        """Add the counts of decided applicants; ``confirmed`` if their batch would have stopped."""
        for window in self.windows:
            window.remember(counts, confirmed)

    def compare(self, counts: Ints, checks: Checks) -> tuple[Unlike, ...]:
        """Return what is unlike in a batch, given its counts; what stops it comes first."""
        found: dict[Any, Unlike] = {}
        for window in self.windows:
            now = window.with_waiting(counts)
            for one in self._findings(now, window.last, checks):
                before = found.setdefault((one.column, one.code, one.other), one)
                if one.stops and not before.stops:
                    found[one.column, one.code, one.other] = one
        return tuple(sorted(found.values(), key=lambda one: (not one.stops, -one.n / one.of)))

    def count_certain(self, counts: Ints, n: int, certain: int, expected: float) -> Ints:
        """Return counts with those of applicants whom the score accepts for sure."""
        counts = counts.copy()
        counts[-1, [_N, _MARKED, _MARKED + 1]] = n, certain, round(_PARTS * expected)
        return counts

    def compare_certain(self, counts: Ints, checks: Checks) -> tuple[Unlike, ...]:
        """Return a finding if the score accepts far more for sure than it was to accept.

        A score may accept somewhat more for other reasons, such as a fit to its own reference, so
        nothing below ``stop`` is reported. Fewer are no danger.
        """
        for window in self.windows:
            now, last = window.with_waiting(counts)[-1], np.zeros(_WIDTH, np.int64)
            last = last if window.last is None else window.last[-1]
            (n, of), before = now[[_MARKED, _N]].tolist(), Share(*last[[_MARKED, _N]].tolist())
            usual = float(now[_MARKED + 1]) / _PARTS / max(1, of)
            if of >= ENOUGH and excess(n, of, usual) > checks.stop:
                again = before.of >= ENOUGH and excess(n, of, before.part, before.of) <= checks.warn
                return (Unlike("score", "certain", n, of, usual, "history", not again),)
        return ()

    def _findings(self, now: Ints, last: Ints | None, checks: Checks) -> Iterator[Unlike]:
        if now[:, _N].max(initial=0) < ENOUGH and not now[:, _FAR_OFF].any():
            return
        now, history = now[:-1], self.history[: len(now) - 1]
        differs = _differs(now, history, checks)
        if last is None:
            last = np.zeros_like(now)
        else:
            differs |= _differs(now, last[:-1], checks)
        for at, column in enumerate(self.columns[: len(now)]):
            if differs[at] and column.kind != "decision":
                rows = now[at].tolist(), history[at].tolist(), last[at].tolist()
                yield from _far_off(column, rows, checks)
                yield from _strange(column, rows, checks)
            if column.partner is not None:
                other = self.columns[column.partner]
                if other.partner != at or at < column.partner:  # each pair once
                    pairs = [
                        _Pair.of(column, other, one[at], one[column.partner])
                        for one in (now, history, last)
                    ]
                    yield from _apart(column, other, pairs, checks)


def _rows(counts: Sequence[Sequence[int]]) -> Ints:
    return np.array(counts, np.int64).reshape(-1, _WIDTH)


def _differs(now: Ints, before: Ints, checks: Checks) -> NDArray[np.bool_]:
    """Return in which columns ``excess`` finds a share that is larger than before."""

    def shares(counts: Ints) -> tuple[Floats, Floats]:
        of = np.maximum(counts[:, [_N]] - np.c_[np.zeros(len(counts)), counts[:, [_MISSING]]], 1)
        present, marked = of[:, 1:], counts[:, _MARKED:-1]
        n = np.c_[counts[:, [_MISSING, _STRANGE]], marked, present - marked]
        return n, np.c_[of, np.repeat(present, 2 * marked.shape[1], axis=1)]

    (n, of), (n_before, of_before) = shares(now), shares(before)
    share = (n + n_before) / (of + of_before)
    noise = _NOISE * np.sqrt(share * (1 - share) * (1 / of + 1 / of_before)) + _ODD / of
    larger = n / of - n_before / of_before > np.maximum(checks.warn, noise)
    return np.asarray(larger.any(axis=1) & (now[:, _N] >= ENOUGH) | (now[:, _FAR_OFF] > 0))


def _far_off(column: KnownColumn, rows: Rows, checks: Checks) -> Iterator[Unlike]:
    now, _, last = rows
    if now[_FAR_OFF] and checks.warn < 1:
        stops = checks.stop < 1 and not last[_FAR_OFF]
        n, of = now[_FAR_OFF], now[_N]
        yield Unlike(column.name, "far", n, of, 0.0, "history", stops, *column.bounds)


def _strange(column: KnownColumn, rows: Rows, checks: Checks) -> Iterator[Unlike]:
    """Yield what is missing, strange, or more frequent than it was."""
    missing = [Share(row[_MISSING], row[_N]) for row in rows]
    yield from _unlike_share(column, "missing", missing, checks, checks.stop)
    strange = [Share(row[_STRANGE], row[_N] - row[_MISSING]) for row in rows]
    bounds = dict(zip(("low", "high"), column.bounds, strict=True))
    facts = bounds if column.code == "outside" else {}
    found = [*_unlike_share(column, column.code, strange, checks, checks.stop, **facts)]
    yield from found
    stops = any(one.stops for one in found)
    for one in _shifted(column, rows, checks):
        if not found or (one.stops and not stops):  # otherwise they are one mistake
            yield one
            return


def _shifted(column: KnownColumn, rows: Rows, checks: Checks) -> Iterator[Unlike]:
    """Yield where a column differs most from the history."""
    shares = [
        [Share(count, row[_N] - row[_MISSING]) for count in row[_MARKED:][: len(column.marks)]]
        for row in rows
    ]
    sizes = [now.part - past.part for now, past in zip(*shares[:2], strict=True)]
    if not sizes:
        return
    place = int(np.argmax(np.abs(sizes)))
    more, facts = sizes[place] > 0, dict[str, Any]()
    code = "above" if more else "below"
    facts["low" if more else "high"] = column.marks[place]
    if column.kind == "category":
        code, facts = "is" if more else "is not", {"other": column.texts[place]}
    marked = [one[place] if more else one[place].others for one in shares]
    for one in _unlike_share(column, code, marked, checks, checks.stop * _HONEST, **facts):
        large = one.stops or abs(sizes[place]) > _DRIFT * checks.warn
        if large and one.since == "history":  # to be like it again is no mistake
            yield one


def _unlike_share(
    column: KnownColumn,
    code: str,
    shares: list[Share],
    checks: Checks,
    stop: float,
    **facts: Any,
) -> Iterator[Unlike]:
    """Yield a share of a batch that is above that of the history, or of the last round."""
    now, past, last = shares
    if now.of < ENOUGH or past.of < ENOUGH:
        return
    recent = last.of >= ENOUGH
    size = excess(now.n, now.of, past.part, past.of)
    since_last = excess(now.n, now.of, last.part, last.of) if recent else math.inf
    if size > checks.warn:
        stops = size > stop and since_last > checks.warn
        if (
            code == "outside"
            and recent
            and excess(last.n, last.of, past.part, past.of) > checks.warn
        ):
            facts["moves"] = True
        yield Unlike(column.name, code, now.n, now.of, past.part, "history", stops, **facts)
    elif recent and since_last > checks.warn:
        yield Unlike(column.name, code, now.n, now.of, last.part, "last round", False, **facts)


def _apart(
    column: KnownColumn, other: KnownColumn, pairs: list[_Pair], checks: Checks
) -> Iterator[Unlike]:
    """Yield a pair of columns that go together less than in the history."""
    now, past, last = pairs
    size = now.loss(past)
    if math.isinf(size):  # too few in the history to say how they go together
        return
    if column.kind == "decision":
        if checks.stop < 1 and size > max(checks.stop, _HONEST * abs(past.correlation)):
            facts = now.alike, now.n, past.alike / past.n, "history", now.loss(last) > checks.warn
            yield Unlike(column.name, "decided", *facts, other=other.name)
    elif size > checks.warn:
        stops = size - now.noise(past) > checks.stop and now.loss(last) > checks.warn
        name, usual = column.name, past.alike / past.n
        yield Unlike(name, "together", now.alike, now.n, usual, "history", stops, other=other.name)


@dataclass(frozen=True)
class Share:
    """So many applicants of so many."""

    n: int
    of: int

    @property
    def part(self) -> float:
        """The share."""
        return self.n / self.of if self.of else 0.0

    @property
    def others(self) -> Share:
        """The share of the others."""
        return Share(self.of - self.n, self.of)


@dataclass(frozen=True)
class _Pair:
    """So many applicants, those who are high in one column, in another, and in both."""

    n: int
    one: int
    other: int
    both: int

    @staticmethod
    def of(column: KnownColumn, other: KnownColumn, counts: Ints, theirs: Ints) -> _Pair:
        """Return the pair of two columns, given the counts of both."""
        assert column.side is not None
        assert other.side is not None
        marks = counts[_MARKED + column.side], theirs[_MARKED + other.side]
        n = counts[_N] if counts[_N] == theirs[_N] else 0  # a call came without decisions
        return _Pair(*map(int, (n, *marks, counts[-1])))

    @property
    def alike(self) -> int:
        """Number of applicants who are high in both or in none."""
        return self.n - self.one - self.other + 2 * self.both

    @property
    def spread(self) -> float:
        """The largest covariance that the two shares allow, if they are equal."""
        one, other = Share(self.one, self.n).part, Share(self.other, self.n).part
        return math.sqrt(one * (1 - one) * other * (1 - other))

    @property
    def correlation(self) -> float:
        """Correlation of being high in one and in the other."""
        return (self.both * self.n - self.one * self.other) / self.n**2 / self.spread

    def loss(self, before: _Pair) -> float:
        """Return by how much the correlation is smaller than before; 0 if that is noise.

        It is infinite if there is none before. Correlations of shares near 0 or 1 say little.
        """
        if min(before.n, before.spread * before.n) < ENOUGH:
            return math.inf
        if self.n < ENOUGH or self.spread < _BALANCED * (1 - _BALANCED):
            return 0.0
        sign = math.copysign(1.0, before.correlation)
        size = sign * (before.correlation - self.correlation)
        return size if size > self.noise(before) else 0.0

    def noise(self, before: _Pair) -> float:
        """Return what a difference of correlations must exceed."""
        return _NOISE * math.sqrt(1 / self.n + 1 / before.n) + _ODD / self.n / self.spread


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


def _round_deciles(present: Floats) -> tuple[float, ...]:
    """Return round numbers above the deciles, and one below the first, of sorted numbers.

    A number that many have lies between two of them.

    Examples
    --------
    >>> _round_deciles(np.array([0.0] * 95 + [1.0] * 5))
    (0.5,)
    >>> _round_deciles(np.arange(31) * 7.77)
    (16.0, 23.5, 47.0, 70.0, 93.5, 117.0, 140.0, 163.5, 186.5, 210.0)
    """
    deciles = present[np.arange(1, 10) * (present.size - 1) // 10]
    before = present[max(0, np.searchsorted(present, deciles[0]) - 1)]
    values = np.unique([before, *deciles])
    values = values[values < present[-1]]
    following = present[np.searchsorted(present, values, "right")]
    with np.errstate(over="ignore"):
        coarse = np.diff(deciles, append=present[-1]).mean() / 10
        gaps = np.maximum(following - values, coarse)
    return tuple(
        (math.floor(value / step) + 1) * step
        for value, gap in zip(values.tolist(), gaps.tolist(), strict=True)
        if _TINY < gap < math.inf
        for step in (10.0 ** math.floor(math.log10(gap)) / 2,)
    )
