"""Rows of a table that cannot be used, each with its reason, and the file that they go to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairchance.cli.files.tables import check_writable, is_same_file, write_new_table
from fairchance.errors import InputError
from fairchance.extras import arrow
from fairchance.words import counted

__all__ = [
    "DECIDED",
    "INVALID",
    "IN_HISTORY",
    "Cause",
    "Refusal",
    "Refusals",
    "check_share",
    "commonest",
    "refused_counts",
    "refused_message",
    "refused_path",
    "too_many_message",
]

# Kinds of refusals: the row has a mistake, or the applicant was decided on before.
INVALID, DECIDED, IN_HISTORY = "invalid", "decided", "in history"

_SHOWN_CAUSES = 5  # in a summary; the file has all
_NAMED_CAUSES = 3  # in a sentence


class Refusal(NamedTuple):
    """A refused row: its number from 1, its id if it has one, and the reason."""

    row: int
    id: str | None
    reason: str


class Cause(NamedTuple):
    """A reason without the values of single rows, the number of rows, and the kind of refusal."""

    reason: str
    n: int
    kind: str


class _Reason(NamedTuple):
    """A reason in three parts; the value in the middle differs from row to row."""

    before: str
    value: str = ""
    after: str = ""
    kind: str = INVALID

    def __str__(self) -> str:
        return f"{self.before}{self.value}{self.after}"


class Refusals:
    """Rows of a table that cannot be used, with the reasons.

    Parameters
    ----------
    table
        The table as it was read.
    ids
        The id of each row, None if it has none.
    as_written
        Returns the same rows as they were written, if the table was parsed from text.
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

    def add(self, rows: Iterable[int], reason: str) -> None:
        """Refuse rows, counted from 0, for the same reason."""
        for row in rows:
            self._reasons.setdefault(int(row), []).append(_Reason(reason))

    def add_each(
        self,
        rows: Iterable[int],
        before: str,
        values: Iterable[str],
        after: str = "",
        kind: str = INVALID,
    ) -> None:
        """Refuse rows for the same cause: a sentence with a value for each row in the middle."""
        for row, value in zip(rows, values, strict=True):
            self._reasons.setdefault(int(row), []).append(_Reason(before, value, after, kind))

    def causes(self) -> list[Cause]:
        """Return the reasons with the number of rows, the commonest first.

        If the values of rows differ, the first one is shown.

        Examples
        --------
        >>> import pyarrow as pa
        >>> refused = Refusals(pa.table({"age": ["9,5", "31", "8,1"]}), ["a", "b", "c"])
        >>> refused.add_each([0, 2], "'age' must be a number, got ", ["'9,5'", "'8,1'"])
        >>> refused.causes()[0].reason
        "'age' must be a number, got '9,5' (row 1, and others)"
        """
        rows_of: dict[tuple[tuple[str, str, str], ...], list[int]] = defaultdict(list)
        for row in sorted(self._reasons):
            key = tuple((part.before, part.after, part.kind) for part in self._reasons[row])
            rows_of[key].append(row)
        causes = [
            # A row that has a mistake too is not refused only because it was decided before.
            Cause(self._common_reason(rows), len(rows), key[0][2] if len(key) == 1 else INVALID)
            for key, rows in rows_of.items()
        ]
        return sorted(causes, key=lambda cause: -cause.n)

    def _common_reason(self, rows: list[int]) -> str:
        """Return the reason without its values, to count rows with the same reason."""
        parts = []
        for at, first in enumerate(self._reasons[rows[0]]):
            same = all(self._reasons[row][at].value == first.value for row in rows)
            others = "" if same else f" (row {rows[0] + 1}, and others)"
            parts.append(f"{first.before}{first.value}{others}{first.after}")
        return "; ".join(parts)

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Whether each row can be used."""
        usable = np.ones(self.table.num_rows, np.bool_)
        usable[list(self._reasons)] = False
        return usable

    def stop(self, source: str) -> None:
        """Raise an error for the first refused row, if there is one."""
        for refusal in self:
            raise InputError(
                f"{source}, row {refusal.row} (id {refusal.id!r}): {refusal.reason}; {len(self)} "
                f"of {self.table.num_rows} rows cannot be used, so correct or remove them, or "
                f"leave out --strict to go on without them."
            )

    def to_table(self) -> Any:
        """Return the refused rows as they were written, with a column for the reason.

        The column has a name of its own: rows that were refused before have a reason already.
        """
        whole = self.table if self._as_written is None else self._as_written()
        rows = whole.take(arrow().array(sorted(self._reasons), arrow().int64()))
        reasons = arrow().array([refusal.reason for refusal in self], arrow().string())
        others = (f"reason_refused_{number}" for number in count(2))
        titles = chain(("reason", "reason_refused"), others)
        title = next(title for title in titles if title not in rows.column_names)
        return rows.append_column(title, reasons)

    def write(self, path: str, *taken: str) -> str:
        """Write the refused rows, if there are any, and return the path of the file.

        An existing file is never replaced (``write_new_table``); ``taken`` names files that this
        command will write to.
        """
        if not len(self):
            return path
        numbers = [name for name in self.table.column_names if name not in self._text]
        return write_new_table(self.to_table(), path, numbers=numbers, taken=taken)


def check_share(most: float) -> None:
    """Raise unless ``--most-refused`` is a share."""
    if not 0 <= most <= 1:
        raise InputError(
            f"--most-refused must be a share of the rows from 0 to 1, got {most:g}; 0.5 is half of "
            f"them, and 1 allows any share."
        )


def too_many_message(
    refusals: Refusals, most: float, source: str, *, decided: int = 0
) -> str | None:
    """Say how many rows are refused if it is more than a share of them; None otherwise.

    ``decided`` rows of applicants who were decided on before do not count.
    """
    n, of = len(refusals) - decided, refusals.table.num_rows - decided
    if n <= most * of:
        return None
    return (
        f"{n:,} of {of:,} rows of {source} are refused, and --most-refused allows a share of "
        f"{most:g}"
    )


def refused_counts(refusals: Refusals, path: str | None) -> dict[str, Any]:
    """Return how many rows are refused, why, and where they are written, as plain data."""
    return {
        "rows": len(refusals),
        "file": path if len(refusals) else None,
        "reasons": {cause.reason: cause.n for cause in refusals.causes()},
    }


def commonest(refusals: Refusals, most: int = _NAMED_CAUSES, *, kind: str | None = None) -> str:
    """Return the commonest reasons as part of a sentence; only those of a kind if it is given.

    Examples
    --------
    >>> import pyarrow as pa
    >>> refused = Refusals(pa.table({"age": [None, 31, None]}), ["a", "b", "c"])
    >>> refused.add([0, 2], "'age' is missing")
    >>> commonest(refused)
    "most often because 'age' is missing (2 rows)"
    """
    causes = [cause for cause in refusals.causes() if kind in (None, cause.kind)][:most]
    reasons = (f"{cause.reason} ({counted(cause.n, 'row')})" for cause in causes)
    return "most often because " + ", then ".join(reasons)


def refused_message(refused: dict[str, Any]) -> list[str]:
    """Return ``refused_counts`` as lines, the commonest reasons first."""
    if not refused["rows"]:
        return []
    reasons = list(refused["reasons"].items())
    place = "standard output" if refused["file"] == "-" else refused["file"]
    where = "" if place is None else f", with the reasons in {place}"
    lines = [f"{counted(refused['rows'], 'row')} refused{where}:"]
    lines += [f"  {n:,} × {reason}" for reason, n in reasons[:_SHOWN_CAUSES]]
    rest = sum(n for _, n in reasons[_SHOWN_CAUSES:])
    return [*lines, f"  {rest:,} for other reasons"] if rest else lines


def refused_path(given: str | None, source: str, taken_by: str | None = None) -> str:
    """Return where refused rows go: the given file, or a file named after the input.

    Parameters
    ----------
    given
        The option ``--refused``.
    source
        The input.
    taken_by
        Another option that writes to standard output, if there is one.

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
    if "-" not in (given, source) and is_same_file(given, source):
        raise InputError(f"refused rows would replace the input {source!r}; choose another file.")
    check_writable(given)
    return given
