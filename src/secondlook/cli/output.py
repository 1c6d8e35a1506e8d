"""What commands print for programs."""

from __future__ import annotations

import errno
import io
import json
import math
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from secondlook.errors import InputError

if TYPE_CHECKING:
    from secondlook.ledger.summary import Outcomes


def as_json(value: Any) -> None:
    """Print a value as JSON; what is not known is null.

    Examples
    --------
    >>> as_json({"fdr": float("nan"), "out": Path("decisions.csv")})
    {
     "fdr": null,
     "out": "decisions.csv"
    }
    """
    # Where letters may be missing, all are escaped as JSON does it.
    takes_all = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")
    print(json.dumps(_as_plain_json(value), ensure_ascii=not takes_all, indent=1))


def _as_plain_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _as_plain_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_as_plain_json(one) for one in value]
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


_CANNOT = 2  # the exit code if what is said has no place to go
_NO_PLACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


class _Closed(io.TextIOBase):
    """What stands for standard output if it is closed, since ``print`` then says nothing."""

    encoding = "utf-8"
    errors = "backslashreplace"

    def writable(self) -> bool:
        return True

    def write(self, _: str) -> NoReturn:
        raise OSError(errno.EBADF, "standard output is closed")


@contextmanager
def standard_streams() -> Iterator[None]:
    r"""Print letters that an encoding lacks as escapes, and say in a sentence if nothing can be.

    An encoding such as cp1252 has no α, and gets ``\u03b1``.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with suppress(OSError):  # another file was put in its place, which has no position
                stream.reconfigure(errors="backslashreplace")
    code: object = 0
    is_closed = sys.stdout is None
    if is_closed:
        sys.stdout = _Closed()
    try:
        try:
            yield
        except SystemExit as end:  # as commands end
            code = end.code
            raise
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.filename is not None or error.errno not in (errno.EPIPE, *_NO_PLACE):
            raise
        drop_output()
        if error.errno == errno.EPIPE:  # whoever read has seen enough
            raise SystemExit(code or 1) from error
        failed = f"writing failed ({error.strerror}), most likely to standard output"
        if is_closed:
            failed = "standard output is closed, so nothing can be printed"
        with suppress(OSError):  # errors may have no place either
            print(
                f"secondlook: {failed}; send it elsewhere and give the command again.",
                file=sys.stderr,
            )
        raise SystemExit(code or _CANNOT) from error
    finally:
        if is_closed:
            sys.stdout = None


def drop_output() -> None:
    """Let go what standard output could not write, or Python tries once more when it ends."""
    with suppress(OSError, AttributeError):  # it is no file, or closed
        place, nowhere = sys.stdout.fileno(), os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, place)
        os.close(nowhere)


def read_input() -> bytes:
    """Return all of standard input, or say why there is none."""
    if sys.stdin is None:
        raise InputError(
            "standard input is closed, so there is no csv to read; send a file to it, or name one."
        )
    try:
        return sys.stdin.buffer.read()
    except OSError as error:
        raise InputError(
            f"standard input cannot be read ({error.strerror or error}); send a file to it, or "
            f"name one."
        ) from error


def binary_output() -> BinaryIO:
    """Return standard output for bytes, after what was printed, or say that it is closed."""
    if sys.stdout is None or isinstance(sys.stdout, _Closed):
        raise InputError("standard output is closed, so nothing can go there; name a file.")
    sys.stdout.flush()
    return sys.stdout.buffer


def say(lines: Iterable[str], *, beside_table: bool = False) -> None:
    """Print lines; on standard error if a table goes to standard output."""
    console = Console(stderr=beside_table)
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False, markup=False, emoji=False)


def share(value: float) -> str:
    """Write a share with three decimals.

    Examples
    --------
    >>> share(0.15), share(math.nan)
    ('0.150', '–')
    """
    return "–" if math.isnan(value) else f"{value:.3f}"


def interval(outcomes: Outcomes) -> str:
    """Write the exact 95 % interval of a share of bad.

    Examples
    --------
    >>> from secondlook.ledger.summary import Outcomes
    >>> interval(Outcomes(37, 3, 0, 0))
    '0.016–0.204'
    """
    if not outcomes.known:
        return "–"
    low, high = outcomes.interval
    return f"{share(low)}–{share(high)}"


def people(n: int) -> str:
    """Write a number of people.

    Examples
    --------
    >>> people(1), people(1200)
    ('1 person', '1,200 people')
    """
    return "1 person" if n == 1 else f"{n:,} people"


def days(value: float) -> str:
    """Write an age in days.

    Examples
    --------
    >>> days(0.4), days(1.2), days(181.9), days(math.nan)
    ('0 days', '1 day', '181 days', '–')
    """
    if math.isnan(value):
        return "–"
    whole = math.floor(value)
    return "1 day" if whole == 1 else f"{whole:,} days"


def amount(value: float) -> str:
    """Write a sum.

    Examples
    --------
    >>> amount(-1234.5), amount(0.25), amount(math.nan)
    ('−1,234.5', '0.25', '–')
    """
    if math.isnan(value):
        return "–"
    return f"{round(value, 2):,.10g}".replace("-", "−")


def times(n: int) -> str:
    """Write how often something happened.

    Examples
    --------
    >>> times(1), times(3)
    ('once', '3 times')
    """
    return "once" if n == 1 else f"{n:,} times"


_ANY = 100_000  # columns: wider than any table


def print_fitted(
    console: Console,
    title: str,
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    spare: Sequence[str] = (),
) -> None:
    """Print a table, and which columns were left out for want of room.

    Parameters
    ----------
    console
        Where to.
    title, titles, rows
        What it is called, and what it holds. The first column has names, the others numbers.
    spare
        Columns to leave out if they have no room, the first of them first. If that does not
        suffice, lines are longer than the window.

    Examples
    --------
    >>> from io import StringIO
    >>> console = Console(file=StringIO(), width=26)
    >>> rows = [["a long name", "1,000", "12"]]
    >>> print_fitted(console, "Rounds", ("batch", "people", "days"), rows, ["days"])
    >>> print(console.file.getvalue().strip())
    Rounds
    <BLANKLINE>
     batch        people
     ───────────────────
     a long name   1,000
    <BLANKLINE>
    Not shown in 26 columns: days (--json has all).
    """
    room, shown, dropped = console.width, list(titles), []
    table = _fitted_table(title, titles, rows, shown)
    for one in spare:
        if _fitted_width(console, table) <= room:
            break
        shown.remove(one)
        dropped.append(one)
        table = _fitted_table(title, titles, rows, shown)
    needed = _fitted_width(console, table)
    if needed > room:
        console = Console(
            file=console.file, width=needed, no_color=console.no_color, highlight=False
        )
    console.print(table)
    if dropped:
        words = f"Not shown in {room} columns: {', '.join(dropped)} (--json has all)."
        console.print(words, style="dim", highlight=False, soft_wrap=True)


def _fitted_table(
    title: str, titles: Sequence[str], rows: Sequence[Sequence[str]], shown: Sequence[str]
) -> Table:
    table = Table(title=escape(title), box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    at = [place for place, one in enumerate(titles) if one in shown]
    for place in at:
        table.add_column(titles[place], justify="right" if place else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(escape(row[place]) for place in at))
    return table


def _fitted_width(console: Console, table: Table) -> int:
    return console.measure(table, options=console.options.update(width=_ANY)).maximum


def print_stacked(
    console: Console,
    title: str,
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    parts: Sequence[Sequence[str]],
    spare: Sequence[str] = (),
) -> None:
    """Print one table if it has room, else one for each part of its columns, with all names.

    Parameters
    ----------
    console
        Where to.
    title, titles, rows
        What it is called, and what it holds. The first column has names, the others numbers.
    parts
        The other columns, split into those that belong together.
    spare
        Columns to leave out if their part has no room, the first of them first.

    Examples
    --------
    >>> from io import StringIO
    >>> console = Console(file=StringIO(), width=24)
    >>> heads, rows = ("method", "early", "late", "TPR"), [["plain", ".25", ".90", ".40"]]
    >>> print_stacked(console, "α = 0.15", heads, rows, [["early", "late"], ["TPR"]])
    >>> for line in console.file.getvalue().splitlines():
    ...     if line.strip():
    ...         print(line.strip())
    α = 0.15
    method  early  late
    ───────────────────
    plain     .25   .90
    method  TPR
    ───────────
    plain   .40
    """
    if _stacked_width(titles, rows) <= console.width:
        print_fitted(console, title, titles, rows)
        return
    for number, part in enumerate(parts):
        at = [0, *(place for place, one in enumerate(titles) if place and one in part)]
        shown = [titles[place] for place in at]
        cells = [[row[place] for place in at] for row in rows]
        named = title if number == 0 else ""
        print_fitted(console, named, shown, cells, [one for one in spare if one in part])


def _stacked_width(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Return how wide a table is whose columns have two spaces between, and one at each end."""
    columns = zip(titles, *rows, strict=True)
    return sum(max(map(cell_len, column)) + 2 for column in columns)
