"""What the command line prints: tables and progress for people, JSON for programs."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from secondlook.cli.json_output import as_json
from secondlook.cli.programs.fitted_tables import print_fitted
from secondlook.cli.stacked_tables import print_stacked
from secondlook.core.theory import Setting, convergence, feasibility, improvement, theory_lines
from secondlook.lab.experiments import tables
from secondlook.lab.experiments.cautions import assumptions, failures
from secondlook.lab.experiments.plan import Until
from secondlook.lab.experiments.published import ALPHA, paper_row, published_table, why_different
from secondlook.lab.experiments.results import Results
from secondlook.lab.experiments.words import findings, remarks, what_was_run

__all__ = [
    "Late",
    "download_bar",
    "print_plan",
    "print_results",
    "repetition_bar",
    "summary_rows",
]

# Metric, title, decimals, whether there is room for its standard error.
_COLUMNS = (
    ("revenue", "revenue", 1, True),
    ("late_revenue", "late", 1, True),
    ("pooled_fdr", "FDR", 3, True),
    ("above_alpha", "> α", 2, False),
    ("selection_rate_difference", "ΔSR", 2, False),
    ("true_positive_rate_difference", "ΔTPR", 2, False),
    ("acceptance_rate", "acc", 2, False),
)
# For programs only: there is no room for them in a terminal.
_MORE = ("fdr", "pooled_selection_rate_difference", "pooled_true_positive_rate_difference")
_KEY = (
    "revenue: thousands a round; late: in the last quarter of the rounds; FDR: pooled over rounds; "
    "> α: share of rounds above α; ΔSR, ΔTPR: largest difference of groups' selection and true "
    "positive rates in a round; acc: share of people accepted; ±: standard error over repetitions."
)
_PAPER = (
    " paper: its revenue, on its own data; its FDR is a mean of rounds, which the report sets "
    "beside ours."
)


def summary_rows(results: Results) -> list[dict[str, Any]]:
    """Return one row per α and method: mean and standard error of every metric, and the paper's."""
    metrics = [*(metric for metric, *_ in _COLUMNS), *_MORE]
    found = {metric: tables.summary(results, metric) for metric in metrics}
    if "E2" in results.about["experiment"]["switches"]:
        found["revenue_without_sign"] = tables.summary(results, "revenue", absolute_revenue=True)
    key = results.about["experiment"]["published"]
    rows = []
    for a, alpha in enumerate(results.alphas):
        printed = published_table(key) if key and alpha == ALPHA else {}
        for m, method in enumerate(results.methods):
            row: dict[str, Any] = {"alpha": alpha, "method": method}
            row["label"] = results.about["labels"][method]
            for metric, one in found.items():
                row[metric] = float(one.estimate.mean[a, m])
                row[f"{metric}_standard_error"] = float(one.estimate.standard_error[a, m])
            row["published"] = {
                metric: {"mean": number.mean, "bracket": number.bracket}
                for metric, number in printed.get(paper_row(method) or "", {}).items()
            }
            row["why_different"] = why_different(key, method) if row["published"] else ""
            row["failed_repetitions"] = [
                {"repetition": one.repetition, "seed": one.seed, "sentence": one.sentence}
                for one in results.failed(method, a)
            ]
            rows.append(row)
    return rows


def print_results(console: Console, results: Results) -> None:
    """Print what was run, a table, and what it shows."""
    console.print(what_was_run(results), highlight=False)
    for remark in [*remarks(results), *assumptions(results)]:
        console.print(remark, style="dim", highlight=False)
    rows = summary_rows(results)
    for alpha in results.alphas:
        _print_table(console, results, alpha, [row for row in rows if row["alpha"] == alpha])
    compared = any(row["published"] for row in rows)
    console.print(_KEY + _PAPER * compared, style="dim", highlight=False)
    reasons = dict.fromkeys(row["why_different"] for row in rows if row["why_different"])
    for why in reasons:
        named = dict.fromkeys(row["method"] for row in rows if row["why_different"] == why)
        words = f"Where {' and '.join(named)} and the paper differ: {why}."
        console.print(words, style="dim", highlight=False)
    for failure in failures(results):
        console.print(f"• {failure}", style="bold", highlight=False)
    for finding in findings(results):
        console.print(f"• {finding}", highlight=False)


def _print_table(
    console: Console, results: Results, alpha: float, rows: list[dict[str, Any]]
) -> None:
    """Print a table of one α; in a narrow window, money above and mistakes below."""
    money, mistakes = ["revenue", "late"], [title for _, title, *_ in _COLUMNS[2:]]
    extra = ["|revenue|"] * ("revenue_without_sign" in rows[0])
    extra += ["paper"] * any(row["published"] for row in rows)
    cells = []
    for row in rows:
        failed = len(results.failed(row["method"], results.alphas.index(alpha)))
        note = f" ({failed} of {results.shape[2]} failed)" if failed else ""
        cells.append([row["method"] + note, *_cells(row, extra)])
    titles = ["method", *money, *mistakes, *extra]
    print_stacked(console, f"α = {alpha:g}", titles, cells, [[*money, *extra], mistakes])


def _cells(row: dict[str, Any], extra: list[str]) -> list[str]:
    cells = []
    for metric, _, decimals, with_error in _COLUMNS:
        error = f"±{row[f'{metric}_standard_error']:.{decimals}f}" if with_error else ""
        cells.append(f"{row[metric]:.{decimals}f}{error}")
    if "|revenue|" in extra:
        cells.append(f"{row['revenue_without_sign']:.1f}")
    if "paper" in extra:
        paper = row["published"]
        cells.append(f"{paper['revenue']['mean']:.1f}" if paper else "–")
    return [cell.replace("nan", "–") for cell in cells]


@dataclass(frozen=True)
class Late:
    """How many rounds outcomes take in a plan, and how the planned program waits for them."""

    least: int = 0
    most: int = 0
    maturity: int = 0
    patience: int | None = None

    def lines(self) -> list[str]:
        """Say how late outcomes come, and what that does to them.

        Examples
        --------
        >>> print(*Late(3, 9, patience=10).lines())
        Outcomes come 3 to 9 rounds after the decision, all of them and right (maturity 0, \
patience 10).
        """
        if not self.most:
            return [
                "As if every outcome were known before the next round; --delay says how late they "
                "come."
            ]
        after = f"{self.least} to {self.most}" if self.least < self.most else f"{self.most}"
        waits = "none" if self.patience is None else self.patience
        said = [
            f"Outcomes come {after} round{'s' * (self.most > 1)} after the decision, all of them "
            f"and right (maturity {self.maturity}, patience {waits})."
        ]
        if self.patience is not None and self.patience <= self.most:
            said.append(
                f"With patience {self.patience}, outcomes that take {self.patience} rounds or "
                f"more count as bad: a patience above {self.most} waits for all."
            )
        return said

    def as_dict(self) -> dict[str, Any]:
        """Return the same as plain data."""
        told = asdict(self)
        return {"delay": {name: told.pop(name) for name in ("least", "most")}, **told}


def print_plan(
    console: Console,
    found: list[Until],
    json_wanted: bool,
    theorems: Setting | None = None,
    batch: int = 0,
    history: dict[str, Any] | None = None,
    late: Late | None = None,
) -> None:
    """Print what it takes until a certificate, and what the theorems ask for if that is wanted."""
    late = Late() if late is None else late
    if json_wanted:
        plan: dict[str, Any] = {"certificate": [asdict(one) for one in found], **late.as_dict()}
        if theorems is not None:
            bounds = feasibility(theorems), improvement(theorems), convergence(theorems)
            plan["theorems"] = [asdict(bound) for bound in bounds]
        if history is not None:
            plan["history"] = history
        as_json(plan)
        return
    rows = []
    for one in found:
        figures = (one.rounds, one.accepted, one.explored, one.lost_on_bad)
        cells = [
            f"{median:,.0f} ({low:,.0f}–{high:,.0f})" if math.isfinite(median) else "–"
            for low, median, high in figures
        ]
        rows.append([one.whom, f"{one.share_certified:.0%}", *cells])
    title = "Until the first certificate, median (5 % to 95 %)"
    titles = ("for", "reached", "rounds", "accepted", "explored", "lost on bad")
    print_fitted(console, title, titles, rows, ("explored",))
    console.print(
        "reached: share of simulated runs of the certified method that did; the rest is of these. "
        "What is accepted and lost before the certificate is the pilot's, and carries no promise.",
        style="dim",
    )
    for line in late.lines():
        console.print(line, highlight=False)
    for line in [] if theorems is None else theory_lines(theorems, batch):
        console.print(line, highlight=False)


@contextmanager
def repetition_bar(quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Show how many repetitions are done, on standard error."""
    if quiet:
        yield None
        return
    with _progress(MofNCompleteColumn()) as bar:
        task = bar.add_task("repetitions", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def download_bar(quiet: bool) -> Iterator[Callable[[int, int | None], None] | None]:
    """Show how much has been downloaded, on standard error, once anything is."""
    if quiet:
        yield None
        return
    with _progress(DownloadColumn()) as bar:
        tasks: list[Any] = []

        def show(done: int, total: int | None) -> None:
            if not tasks:
                tasks.append(bar.add_task("downloading", total=total))
            bar.update(tasks[0], completed=done, total=total)

        yield show


def _progress(amount: Any) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        amount,
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr),
    )
