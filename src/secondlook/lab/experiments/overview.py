"""All methods in one table, and our rows beside the paper's."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np

from secondlook.lab.experiments import tables, words
from secondlook.lab.experiments.cautions import failed_in
from secondlook.lab.experiments.page_parts import cell, heads, table
from secondlook.lab.experiments.published import (
    ALPHA,
    METRICS,
    Printed,
    paper_row,
    published_table,
    why_different,
)
from secondlook.lab.experiments.results import Results
from secondlook.lab.experiments.words import label, rate, thousands

__all__ = ["OVERVIEW", "TITLES", "beside_paper", "estimate_cell", "overview", "write"]

TITLES = {
    "revenue": "Revenue",
    "late_revenue": "Late revenue",
    "fdr": "FDR",
    "pooled_fdr": "FDR, pooled",
    "above_alpha": "Rounds above α",
    "acceptance_rate": "Accepted, of all people",
    "nobody_accepted": "Rounds with no one accepted",
    "selection_rate_difference": "Selection-rate difference",
    "pooled_selection_rate_difference": "Pooled",
    "true_positive_rate_difference": "TPR difference",
    "pooled_true_positive_rate_difference": "Pooled",
    "explored_share": "Explored, of all people",
    "pooled_explored_fdr": "Bad among the explored",
    "exploit_share": "In the exploit region",
    "certified": "Certified rounds",
}
# What the table of all methods shows.
OVERVIEW = (
    "revenue",
    "fdr",
    "pooled_fdr",
    "above_alpha",
    "acceptance_rate",
    "selection_rate_difference",
    "pooled_selection_rate_difference",
    "true_positive_rate_difference",
    "pooled_true_positive_rate_difference",
)
_HEADS = (
    "Revenue",
    "FDR, per round",
    "Pooled over rounds",
    "Rounds above α",
    "Accepted",
    "Selection-rate difference, per round",
    "Pooled over rounds",
    "TPR difference, per round",
    "Pooled over rounds",
)


def write(metric: str) -> words.Format:
    """Return how numbers of a metric are written."""
    return thousands if metric.endswith("revenue") else rate


def estimate_cell(found: tables.MetricSummary, metric: str, at: int, i: int) -> str:
    """Return a cell with a mean, its standard error and, below, the spread over rounds."""
    form, one = write(metric), found.estimate[at, i]
    spread = found.pooled_sd[at, i]
    counted = metric in ("above_alpha", "nobody_accepted")  # a yes or no has no spread of its own
    more = f"sd {form(spread)}" if np.isfinite(spread) and not counted else ""
    if not np.isfinite(one.standard_error):
        return cell(form(one.mean), more)
    return cell(f"{form(one.mean)} ± {form(one.standard_error)}", more)


def overview(results: Results, at: int) -> str:
    """Return one table of all methods, with the paper's rows and why they differ from ours."""
    found = {metric: tables.summary(results, metric).estimate for metric in OVERVIEW}
    key = results.about["experiment"]["published"]
    printed = published_table(key) if key and results.alphas[at] == ALPHA else {}
    rows = []
    for i, method in enumerate(results.methods):
        cells = ""
        for metric in OVERVIEW:
            one, form = found[metric][at, i], write(metric)
            known = np.isfinite(one.standard_error)
            error = f"± {form(one.standard_error)}" if known else ""
            cells += cell(form(one.mean), error)
        row = paper_row(method)
        if printed:
            cells += _in_print(printed[row]) if row in printed else cell("–")
            cells += f'<td class="words">{escape(why_different(key, method))}</td>'
        failed = failed_in(results, method, at)
        rows.append((label(results, method) + (f": {failed}" if failed else ""), cells))
    titles = [*_HEADS, *(["Paper: revenue", "Why they differ"] if printed else [])]
    note = (
        "Mean and standard error over repetitions. Revenue in thousands per round, with its sign. "
        "Per round: the mean of the rounds' values; pooled: of counts summed over all rounds."
    )
    below = (
        " In the paper's column, below its revenue: FDR, selection-rate and TPR difference, each a "
        "mean of rounds, so compare them with ours per round."
    )
    title = f"All methods, α = {results.alphas[at]:g}"
    return table(title, note + below * bool(printed), heads(titles), rows)


def _in_print(row: Mapping[str, Printed]) -> str:
    rest = ", ".join(f"{row[metric].mean:.2f}" for metric in METRICS[1:])
    return cell(thousands(row["revenue"].mean), rest)


def beside_paper(results: Results, at: int) -> str:
    """Return our table and the paper's side by side, with rows of both."""
    printed = published_table(results.about["experiment"]["published"])
    unsigned = "E2" in results.about["experiment"]["switches"]
    found = {m: tables.summary(results, m, absolute_revenue=unsigned) for m in METRICS}
    beside = {method: paper_row(method) for method in results.methods}
    rows = []
    for method in [*results.methods, *(name for name in printed if name not in beside.values())]:
        ran = method in results.methods
        i = results.methods.index(method) if ran else 0
        row = beside.get(method, method)
        cells = ""
        for metric in METRICS:
            cells += estimate_cell(found[metric], metric, at, i) if ran else cell("–")
            cells += _printed(metric, printed[row][metric]) if row in printed else cell("–")
        rows.append((label(results, method) if ran else f"{method} (not run)", cells))
    titles = [TITLES[metric] for metric in METRICS]
    if unsigned:
        titles[0] = "Revenue without its sign"
    groups = "".join(f'<th scope="colgroup" colspan="2">{escape(title)}</th>' for title in titles)
    head = (
        f'<tr><th scope="col" rowspan="2">CORNER</th>{groups}</tr><tr>'
        + '<th scope="col">ours</th><th scope="col">paper</th>' * len(METRICS)
        + "</tr>"
    )
    note = (
        "Ours: mean ± standard error over repetitions, below it the sd over rounds and "
        "repetitions. The paper's bracket, which its caption calls a standard error, is a standard "
        "deviation over rounds and repetitions: compare it with our sd. FDR and differences are "
        "means of rounds on both sides."
    )
    return table(f"Beside the paper, α = {ALPHA}", note, head, rows)


def _printed(metric: str, number: Printed) -> str:
    decimals = 1 if metric == "revenue" else 2  # as printed
    mean, bracket = (f"{part:.{decimals}f}".replace("-", "−") for part in number)
    return cell(mean, f"({bracket})")
