"""Rows of a table that cannot be used, each with its reason, and the file that they go to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from secondlook.cli.files.csv_files import arrow
from secondlook.cli.files.tables import are_one, check_writable, write_new_table
from secondlook.errors import InputError

if TYPE_CHECKING:
    pass


class Refusal(NamedTuple):
    """A row that cannot be used: its number from 1, its id as far as there is one, and why."""

    row: int
    id: str | None
    reason: str


class Cause(NamedTuple):
    """Why rows are refused, whatever values they have, and how many are."""

    reason: str
    n: int


class _Reason(NamedTuple):
    """A reason in three parts, of which the value in the middle differs from row to row."""

    before: str
    value: str = ""
    after: str = ""

    def __str__(self) -> str:
        return f"{self.before}{self.value}{self.after}"


class Refusals:
    """Rows of a table that cannot be used, with the reasons.

    Parameters
    ----------
    table
        The table as it was read.
    ids
        Everybody's id, None where there is none.
    as_written
        Gives the same rows as they were written, if the table was made from text (``read_sent``).
    text
        Columns that are text whatever they look like.

    Examples
    --------
    >>> import pyarrow as pa
    >>> refused = Refusals(pa.table({"id": ["a", "b"], "age": [31, None]}), ["a", "b"])
    >>> refused.add([1], "age is missing")
    >>> list(refused), refused.usable.tolist()
    ([Refusal(row=2, id='b', reason='age is missing')], [True, False])
    >>> refused.to_table().to_pydict()
    {'id': ['b'], 'age': [None], 'reason': ['age is missing']}
    """

    def __init__(
        self,
        table: Any,
        ids: list[str | None],
        as_written: Callable[[], Any] | None = None,
        text: Iterable[str] = (),
    ) -> None:
        self.table = table
        self._as_written, self._text = as_written, set(text)
        self._ids = ids
        self._reasons: dict[int, list[_Reason]] = {}

    def __len__(self) -> int:
        return len(self._reasons)

    def __iter__(self) -> Iterator[Refusal]:
        for row in sorted(self._reasons):
            yield Refusal(row + 1, self._ids[row], "; ".join(map(str, self._reasons[row])))

    def add(self, rows: Iterable[int], reason: str | Iterable[str]) -> None:
        """Refuse rows, counted from 0, for one reason or each for its own."""
        listed = [int(row) for row in rows]
        reasons = [reason] * len(listed) if isinstance(reason, str) else list(reason)
        for row, why in zip(listed, reasons, strict=True):
            self._reasons.setdefault(row, []).append(_Reason(why))

    def add_each(
        self, rows: Iterable[int], before: str, values: Iterable[str], after: str = ""
    ) -> None:
        """Refuse rows for one cause: a sentence in which each has a value of its own."""
        for row, value in zip(rows, values, strict=True):
            self._reasons.setdefault(int(row), []).append(_Reason(before, value, after))

    def causes(self) -> list[Cause]:
        """Return why rows are refused, the commonest first; of values, the first is named.

        Examples
        --------
        >>> import pyarrow as pa
        >>> refused = Refusals(pa.table({"age": ["9,5", "31", "8,1"]}), ["a", "b", "c"])
        >>> refused.add_each([0, 2], "'age' must be a number, got ", ["'9,5'", "'8,1'"])
        >>> refused.causes()
        [Cause(reason="'age' must be a number, got '9,5' (row 1, and others)", n=2)]
        """
        rows_of: dict[tuple[tuple[str, str], ...], list[int]] = defaultdict(list)
        for row in sorted(self._reasons):
            rows_of[tuple((one.before, one.after) for one in self._reasons[row])].append(row)
        found = [Cause(self._in_words(rows), len(rows)) for rows in rows_of.values()]
        return sorted(found, key=lambda one: -one.n)

    def _in_words(self, rows: list[int]) -> str:
        """Return the reason of rows that have the same but for its values."""
        words = []
        for at, first in enumerate(self._reasons[rows[0]]):
            alike = all(self._reasons[row][at].value == first.value for row in rows)
            more = "" if alike else f" (row {rows[0] + 1}, and others)"
            words.append(f"{first.before}{first.value}{more}{first.after}")
        return "; ".join(words)

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Whether each row is still to be used."""
        found = np.ones(self.table.num_rows, np.bool_)
        found[list(self._reasons)] = False
        return found

    def stop(self, name: str) -> None:
        """Raise an error for the first refused row, if there is one."""
        for one in self:
            raise InputError(
                f"{name}, row {one.row} (id {one.id!r}): {one.reason}; {len(self)} of "
                f"{self.table.num_rows} rows cannot be used, so mend or remove them, or leave out "
                f"--strict to go on without them."
            )

    def to_table(self) -> Any:
        """Return the refused rows as they were written, with a column for the reason.

        It is called like none of theirs: rows that were refused before have one already.
        """
        whole = self.table if self._as_written is None else self._as_written()
        rows = whole.take(arrow().array(sorted(self._reasons), arrow().int64()))
        reasons = arrow().array([one.reason for one in self], arrow().string())
        others = (f"reason_refused_{number}" for number in count(2))
        names = chain(("reason", "reason_refused"), others)
        title = next(one for one in names if one not in rows.column_names)
        return rows.append_column(title, reasons)

    def write(self, path: str, *taken: str) -> str:
        """Write the refused rows to a file and return which; nothing if there are none.

        A file of another run is never written over (``write_new_table``); ``taken`` names files
        that others of this run will be written to.
        """
        if not len(self):
            return path
        numbers = [one for one in self.table.column_names if one not in self._text]
        return write_new_table(self.to_table(), path, numbers=numbers, taken=taken)


def check_share(most: float) -> None:
    """Raise unless the share of rows that may be refused is one."""
    if not 0 <= most <= 1:
        raise InputError(
            f"--most-refused is a share of the rows, from 0 to 1, got {most:g}; 0.5 is half of "
            f"them, and 1 lets everything through."
        )


def too_many(refusals: Refusals, most: float, source: str, *, apart: int = 0) -> str | None:
    """Say how many rows are refused if more than a share of them is; None if not.

    Parameters
    ----------
    refusals
        The rows that are left out.
    most
        The largest share that may be.
    source
        What messages call the file.
    apart
        How many of them do not count, for nothing is wrong with them.
    """
    n, of = len(refusals) - apart, refusals.table.num_rows - apart
    if n <= most * of:
        return None
    return (
        f"{n:,} of {of:,} rows of {source} are refused, and --most-refused allows a share of "
        f"{most:g}"
    )


def refused_path(given: str | None, source: str, taken_by: str | None = None) -> str:
    """Return where refused rows go: the file given, or one named after the input.

    Parameters
    ----------
    given
        What was asked for.
    source
        The input.
    taken_by
        The option that writes to standard output already, if there is one.

    Examples
    --------
    >>> refused_path(None, "2031/applicants.csv"), refused_path("no.csv", "-")
    ('applicants.refused.csv', 'no.csv')
    """
    if given is None:
        return f"{'input' if source == '-' else Path(source).stem}.refused.csv"
    if given == "-" and taken_by is not None:
        raise InputError(
            f"{taken_by} and --refused - both write to standard output; name a file with --refused."
        )
    if "-" not in (given, source) and are_one(given, source):
        raise InputError(
            f"refused rows would take the place of the input {source!r}; choose another."
        )
    check_writable(given)
    return given


_REASONS = 5  # named in the summary; the file has all of them
_NAMED = 3  # in a sentence


def reason_counts(refusals: Refusals, path: str) -> dict[str, Any]:
    """Return how many rows were refused, for what cause, and where they are."""
    return {
        "rows": len(refusals),
        "file": path if len(refusals) else None,
        "reasons": {one.reason: one.n for one in refusals.causes()},
    }


def commonest(refusals: Refusals, most: int = _NAMED, *, apart: str | None = None) -> str:
    """Return the commonest reasons of refused rows, as part of a sentence.

    ``apart`` is how reasons begin that are left out.

    Examples
    --------
    >>> import pyarrow as pa
    >>> refused = Refusals(pa.table({"age": [None, 31, None]}), ["a", "b", "c"])
    >>> refused.add([0, 2], "'age' is missing")
    >>> commonest(refused)
    "most often because 'age' is missing (2 rows)"
    """
    causes = refusals.causes()
    found = [one for one in causes if apart is None or not one.reason.startswith(apart)][:most]
    return "most often because " + ", then ".join(f"{why} ({_rows(n)})" for why, n in found)


def refused_words(refused: dict[str, Any]) -> list[str]:
    """Return what was refused in words, the most frequent reasons first."""
    if not refused["rows"]:
        return []
    reasons = list(refused["reasons"].items())
    place = "standard output" if refused["file"] == "-" else refused["file"]
    lines = [f"{_rows(refused['rows'])} refused, with the reasons in {place}:"]
    lines += [f"  {n:,} × {reason}" for reason, n in reasons[:_REASONS]]
    rest = sum(n for _, n in reasons[_REASONS:])
    return [*lines, f"  {rest:,} for other reasons"] if rest else lines


def _rows(n: int) -> str:
    return f"{n:,} row" if n == 1 else f"{n:,} rows"
