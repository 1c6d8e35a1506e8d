"""Tables that keep names whole: in a narrow window, columns that matter less are left out."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

__all__ = ["print_fitted"]

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
    table = _table(title, titles, rows, shown)
    for one in spare:
        if _width(console, table) <= room:
            break
        shown.remove(one)
        dropped.append(one)
        table = _table(title, titles, rows, shown)
    needed = _width(console, table)
    if needed > room:
        console = Console(
            file=console.file, width=needed, no_color=console.no_color, highlight=False
        )
    console.print(table)
    if dropped:
        words = f"Not shown in {room} columns: {', '.join(dropped)} (--json has all)."
        console.print(words, style="dim", highlight=False, soft_wrap=True)


def _table(
    title: str, titles: Sequence[str], rows: Sequence[Sequence[str]], shown: Sequence[str]
) -> Table:
    table = Table(title=escape(title), box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    at = [place for place, one in enumerate(titles) if one in shown]
    for place in at:
        table.add_column(titles[place], justify="right" if place else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(escape(row[place]) for place in at))
    return table


def _width(console: Console, table: Table) -> int:
    return console.measure(table, options=console.options.update(width=_ANY)).maximum
