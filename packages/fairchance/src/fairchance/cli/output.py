"""Printing: lines, tables and numbers for readers, JSON for programs, and the standard streams.

All that commands print goes through ``Console``, ``print_error`` or ``print_json``, which escape
characters that a terminal would obey.
"""

from __future__ import annotations

import io
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO

import rich.console
from rich.box import SIMPLE_HEAD
from rich.console import JustifyMethod
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from fairchance.errors import InputError, visible
from fairchance.words import plain_data

if TYPE_CHECKING:  # an extra, and slow to import
    from rich.progress import Progress, ProgressColumn

__all__ = [
    "Console",
    "binary_output",
    "counting_bar",
    "drop_output",
    "is_interactive",
    "make_bar",
    "print_error",
    "print_json",
    "print_lines",
    "print_table",
    "read_input",
    "standard_streams",
]


_FIRST_LINE, _NEXT_LINE = 2.0, 10.0  # seconds between lines of progress
_ENDLESS = 100_000  # columns, more than any line has


class Console(rich.console.Console):
    """A console that prints text as it is, with escapes for what a terminal would obey.

    A file or a pipe has no width, so lines are as long as they need to be, unless ``COLUMNS`` says
    otherwise.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)
        if not (self.is_terminal or "width" in options or os.environ.get("COLUMNS")):
            self.width = _ENDLESS

    def render_str(self, text: str, **options: Any) -> Text:
        """Return the text to print; rich calls this for each string, also in tables."""
        return super().render_str(visible(text), **options)


def print_error(message: str) -> None:
    """Print a message on standard error."""
    print(f"fairchance: {visible(message)}", file=sys.stderr)


def print_lines(lines: Iterable[str], *, to_stderr: bool = False, style: str | None = None) -> None:
    """Print lines as they are; to standard error if a table goes to standard output."""
    console = Console(stderr=to_stderr)
    for line in lines:
        console.print(line, style=style, soft_wrap=True)


def print_table(
    console: Console, title: str, titles: Sequence[str], rows: Iterable[Sequence[str]]
) -> None:
    r"""Print a table with names in the first column and numbers in the others.

    If the window is too narrow, titles and cells are broken between words, and names stay whole. If
    that is not enough, each row becomes lines of titles and cells: a number is never broken.

    Examples
    --------
    >>> console = Console(file=io.StringIO(), width=40)
    >>> print_table(console, "Rounds", ("batch", "people"), [["2031-01", "1,000"]])
    >>> for line in console.file.getvalue().split("\n"):
    ...     if line.strip():
    ...         print(line.strip())
    Rounds
    batch    people
    ───────────────
    2031-01   1,000
    """
    lines = [list(map(console.render_str, line)) for line in (titles, *rows)]
    widths, gap = _widths(console, lines), 1
    if not widths:
        widths, gap = _widths(console, lines, gap=0), 0
    if not widths:
        console.print(title, soft_wrap=True)
        for name, *cells in lines[1:]:
            console.print(name, soft_wrap=True)
            for head, cell in zip(lines[0][1:], cells, strict=True):
                console.print(f"  {head}: {cell}", soft_wrap=True)
        return
    table = Table(title=title, box=SIMPLE_HEAD, padding=(0, gap, 0, 0), pad_edge=False)
    for at, name in enumerate(lines[0]):
        justify: JustifyMethod = "right" if at else "left"
        table.add_column(name, justify=justify, no_wrap=at == 0, width=widths[at])
    for line in lines[1:]:
        table.add_row(*line)
    console.print(table)


def _widths(console: Console, lines: Sequence[Sequence[Text]], gap: int = 1) -> list[int]:
    """Return widths of columns with names and words whole; empty if the window is too narrow."""
    sizes = [
        [Measurement.get(console, console.options, text) for text in column]
        for column in zip(*lines, strict=True)
    ]
    least = [max(size.minimum for size in column) for column in sizes]
    widths = [max(size.maximum for size in column) for column in sizes]
    least[0] = widths[0]
    room = console.width - 2 - (len(widths) - 1) * (1 + gap)  # edges, and spaces between columns
    if sum(least) > room:
        return []
    while sum(widths) > room:
        wide = [at for at in range(len(widths)) if widths[at] > least[at]]
        widths[max(wide, key=widths.__getitem__)] -= 1
    return widths


def print_json(value: Any) -> None:
    """Print a value as JSON; numbers that are not finite become null.

    Examples
    --------
    >>> from pathlib import Path
    >>> print_json({"fdr": float("nan"), "out": Path("decisions.csv")})
    {
     "fdr": null,
     "out": "decisions.csv"
    }
    """
    # An encoding such as cp1252 lacks letters, so everything is escaped there.
    is_unicode = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")
    text = json.dumps(plain_data(value), ensure_ascii=not is_unicode, indent=1)
    lines = text.split("\n")
    for at, line in enumerate(lines):
        if not line.isprintable():  # json escapes fewer characters than ``visible``
            lines[at] = "".join(c if visible(c) == c else json.dumps(c)[1:-1] for c in line)
    print("\n".join(lines))


# Progress


@contextmanager
def counting_bar(what: str, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Show how many of something are done, on standard error; as lines if it is no terminal."""
    if quiet:
        yield None
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        due = time.monotonic() + _FIRST_LINE

        def line(done: int, total: int) -> None:
            nonlocal due
            if time.monotonic() >= due:
                console.print(f"{what}: {done:,} of {total:,}")
                due = time.monotonic() + _NEXT_LINE

        yield line
        return
    from rich.progress import MofNCompleteColumn  # noqa: PLC0415 - slow to import

    with make_bar(MofNCompleteColumn()) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def make_bar(amount: ProgressColumn) -> Progress:
    """Return a progress bar for standard error that shows an amount and the time left."""
    from rich import progress  # noqa: PLC0415 - slow to import

    return progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        amount,
        progress.TaskProgressColumn(),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
        console=Console(stderr=True),
    )


# Standard streams


@contextmanager
def standard_streams() -> Iterator[None]:
    r"""Print letters that an encoding lacks as escapes, and end quietly if the reader is gone.

    An encoding such as cp1252 has no α, and prints ``\u03b1``. Python's own warnings are printed
    like our messages.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                yield
        finally:
            if sys.stdout is not None:  # it is None if the shell closed it
                sys.stdout.flush()
    except BrokenPipeError as error:
        drop_output()
        raise SystemExit(1) from error


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print_error(" ".join(str(message).split()))


def drop_output() -> None:
    """Discard what standard output could not write; Python would try again when it ends."""
    with suppress(OSError, AttributeError):  # it is no file, or closed
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def is_interactive() -> bool:
    """Return whether a person can be asked."""
    return sys.stdin is not None and sys.stdin.isatty()


def read_input() -> bytes:
    """Return all of standard input."""
    if sys.stdin is None:
        raise InputError("standard input is closed; send a file to it, or name one.")
    return sys.stdin.buffer.read()


def binary_output() -> BinaryIO:
    """Return standard output for bytes, after everything printed so far."""
    if sys.stdout is None:
        raise InputError("standard output is closed; name a file.")
    sys.stdout.flush()
    return sys.stdout.buffer
