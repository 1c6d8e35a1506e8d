r"""A table as plain data: rows of numbers, and columns that say how readers see them.

A row maps keys to numbers and text. What belongs to the number under ``revenue`` has keys that
begin alike: ``revenue_standard_error``, ``revenue_sd`` (over rounds and repetitions),
``revenue_low`` and ``revenue_high`` (an interval), ``revenue_runs`` and ``revenue_of_runs`` (in how
many of the runs). Columns choose what is shown in a terminal, on a page, in Markdown and in LaTeX;
csv and JSON hold all keys of the rows at full precision.

Examples
--------
>>> rows = [{"method": "50% & more", "revenue": -6.44, "revenue_standard_error": 0.41}]
>>> columns = [Column("method", "method"), Column("revenue", "revenue", "{:.1f}".format)]
>>> table = ReportTable("all", "All methods", "α = 0.15", "A note.", columns, rows)
>>> print("\n".join(table.markdown().splitlines()[2:5]))
| method | revenue |
|---|---|
| 50% & more | −6.4 ± 0.4 |
>>> print(table.latex().splitlines()[-4])
50\% \& more & $-$6.4 $\pm$ 0.4 \\
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from fairchance.errors import visible

__all__ = ["Column", "ReportTable", "Row", "p_value", "proportion", "thousands"]

Row = Mapping[str, Any]
Form = Callable[[float], str]
_GREEK = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi - pi rho"
_MATHS = {chr(ord("α") + i): f"\\{name}" for i, name in enumerate(_GREEK.split()) if name != "-"}
_MATHS |= {"σ": "\\sigma", "τ": "\\tau", "φ": "\\varphi", "Δ": "\\Delta", "×": "\\times"}
_MATHS |= {"±": "\\pm", "−": "-", "≤": "\\le", "≥": "\\ge", "<": "<", ">": ">", "·": "\\cdot"}
_LATEX = {character: f"${text}$" for character, text in _MATHS.items()}
_LATEX |= {character: f"\\{character}" for character in "{}$&#%_"}
_LATEX |= {"\\": "\\textbackslash{}", "^": "\\textasciicircum{}", "~": "\\textasciitilde{}"}
_LATEX |= {"|": "\\textbar{}", "–": "--", "…": "\\dots{}", "“": "``", "”": "''", "\u00a0": "~"}
# At the start of a row, LaTeX would take [ and * for options of the end of the row before it.
_LATEX |= {character: f"{{{character}}}" for character in "[]*"}


@dataclass(frozen=True)
class Column:
    """A column that readers see.

    Attributes
    ----------
    key
        Key in the rows.
    title
        Its title.
    form
        Writes its numbers, or how those of each ``metric`` of the rows are written; None for text.
    error, sd
        Whether the standard error and the standard deviation are shown, if there are any.
    """

    key: str
    title: str
    form: Form | Mapping[str, Form] | None = None
    error: bool = True
    sd: bool = False

    def shown(self, row: Row) -> tuple[str, str]:
        """Return a row's value for readers, and small print such as its standard deviation."""
        value: Any = row.get(self.key)
        if self.form is None:
            return str(value or ""), ""
        if not _known(value):
            return "–", ""
        names = ("standard_error", "low", "high", "sd", "of_runs")
        parts: list[Any] = [row.get(f"{self.key}_{name}") for name in names]
        error, low, high, sd, of_runs = parts
        write = self.form if callable(self.form) else self.form[row["metric"]]
        text = write(value)
        if self.error and _known(error):
            text += f" ± {write(error)}"
        if _known(low):
            text += f" ({write(low)} to {write(high)})"
        if of_runs is not None:
            text += f" ({row[f'{self.key}_runs']}/{of_runs})"
        small = f"sd {write(sd)}" if self.sd and _known(sd) else ""
        return text.replace("-", "−"), small


@dataclass(frozen=True)
class ReportTable:
    """A table for readers and programs; the first column names the row.

    Attributes
    ----------
    name
        Name of its files, and its label in LaTeX.
    title
        What it shows.
    setting
        Data, α, repetitions: what all its numbers have in common.
    note
        Sentences that explain the columns.
    columns
        Columns that readers see.
    rows
        Numbers and text by key, the same keys in each row.
    remarks
        Sentences on single rows, too long for a caption in LaTeX.
    unit
        A sentence on the unit of its numbers; pages leave it out, since they write whole amounts.
    section
        Where a page shows it: ``"paper"``, ``"varied"`` or ``"tables"``.
    """

    name: str
    title: str
    setting: str
    note: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    remarks: Sequence[str] = ()
    unit: str = ""
    section: str = "tables"

    @property
    def caption(self) -> str:
        """What it shows, of which run, and what its columns are."""
        return " ".join(filter(None, (f"{self.title}. {self.setting}.", self.note, self.unit)))

    def texts(self) -> list[list[str]]:
        """Return the rows as readers see them, each value with its small print."""
        return [[_one_line(*cell) for cell in self.cells(row)] for row in self.rows]

    def cells(self, row: Row, *, labelled: bool = False) -> list[tuple[str, str]]:
        """Return a row's values for readers, each with its small print.

        ``labelled`` puts the method's name for readers first, instead of its name in commands.
        """
        failed = row.get("failed_repetitions", 0)
        note = f" ({failed} of {row['repetitions']} failed)" if failed else ""
        name = self.columns[0].shown(row)[0]
        if labelled:
            name = row.get("label", name)
        return [(name + note, ""), *(column.shown(row) for column in self.columns[1:])]

    def markdown(self) -> str:
        """Return the table in Markdown, with its caption above and remarks below."""
        titles = [column.title for column in self.columns]
        lines = [[_in_markdown(text) for text in line] for line in (titles, *self.texts())]
        head, *body = ["| " + " | ".join(line) + " |" for line in lines]
        rows = [head, "|---" * len(titles) + "|", *body]
        return "\n".join([_in_markdown(self.caption), "", *rows, "", *self.remarks, ""])

    def latex(self) -> str:
        """Return the table in LaTeX, for the package booktabs."""
        titles, *rows = (
            " & ".join(map(_in_latex, line)) + r" \\"
            for line in ([column.title for column in self.columns], *self.texts())
        )
        kinds = "".join("l" if column.form is None else "r" for column in self.columns)
        lines = [
            r"\begin{table}",
            rf"\caption{{{_in_latex(self.caption)}}}",
            rf"\label{{tab:{self.name}}}",
            r"\centering",
            rf"\begin{{tabular}}{{{kinds}}}",
            r"\toprule",
            titles,
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
        return "\n".join(lines)


def _known(value: Any) -> bool:
    return value is not None and math.isfinite(value)


def _one_line(text: str, more: str) -> str:
    return f"{text} ({more})" if more else text


def _in_markdown(text: str) -> str:
    return re.sub(r"([\\`*|\[]|<(?=[A-Za-z/!?]))", r"\\\1", visible(text))


def _in_latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in visible(text))


@cache  # so that two tables write shares by the same function
def proportion(decimals: int) -> Form:
    """Return how shares are written: without a zero before the point.

    Examples
    --------
    >>> proportion(3)(0.1694), proportion(2)(1.0), proportion(2)(-0.001), proportion(1)(-0.25)
    ('.169', '1.00', '.00', '−.2')
    """

    def form(value: float) -> str:
        if not _known(value):
            return "–"
        text = f"{abs(value):.{decimals}f}".removeprefix("0")
        return f"−{text}" if value < 0 and text.strip(".0") else text

    return form


def thousands(value: Any) -> str:
    """Write an amount in thousands, with one decimal.

    Examples
    --------
    >>> thousands(-12.345), thousands(-0.01), thousands(float("nan"))
    ('−12.3', '0.0', '–')
    """
    if not _known(value):
        return "–"
    return f"{'−' if value <= -0.05 else ''}{abs(float(value)):,.1f}"


def p_value(value: float) -> str:
    """Write a p-value.

    Examples
    --------
    >>> p_value(0.0312), p_value(0.0002)
    ('.031', '< .001')
    """
    return "< .001" if value < 0.0005 else proportion(3)(value)
