"""Tables with many columns: side by side where there is room, one below the other where not."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console

from secondlook.cli.programs.fitted_tables import print_fitted

__all__ = ["print_stacked"]


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
    if _width(titles, rows) <= console.width:
        print_fitted(console, title, titles, rows)
        return
    for number, part in enumerate(parts):
        at = [0, *(place for place, one in enumerate(titles) if place and one in part)]
        shown = [titles[place] for place in at]
        cells = [[row[place] for place in at] for row in rows]
        named = title if number == 0 else ""
        print_fitted(console, named, shown, cells, [one for one in spare if one in part])


def _width(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Return how wide a table is whose columns have two spaces between, and one at each end."""
    columns = zip(titles, *rows, strict=True)
    return sum(max(map(cell_len, column)) + 2 for column in columns)
