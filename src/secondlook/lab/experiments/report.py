"""Write one HTML file about results: sentences, tables and figures, with nothing to load or run.

This module gathers the content as plain data; ``report.html.jinja`` lays it out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from secondlook.errors import InputError, to_install, visible
from secondlook.lab.experiments import figures, findings, tables
from secondlook.lab.experiments.certificates import certified_methods
from secondlook.lab.experiments.comparison import CEILING, CEILING_MEANS, compared
from secondlook.lab.experiments.findings import label, rate, thousands
from secondlook.lab.experiments.methods import PARITY_CELLS, cell_of_fair_clf
from secondlook.lab.experiments.published import (
    ALPHA,
    METRICS,
    Printed,
    paper_row,
    published_table,
    why_different,
)
from secondlook.lab.experiments.results import Results

try:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup
except ImportError as missing:  # pragma: no cover (an extra)
    raise InputError(f"reports need jinja2; {to_install('experiments')} installs it.") from missing

__all__ = [
    "OVERVIEW",
    "Cell",
    "ReportTable",
    "compare_with_paper",
    "overview",
    "parity_costs",
    "write_report",
]

_TERMS = {
    "Mean ± standard error": "The mean over repetitions of each repetition's mean over its rounds. "
    "The standard error is over repetitions; 95 % intervals are Student's t.",
    "sd": "Standard deviation over all rounds of all repetitions together. It contains the "
    "learning curve and the noise of single rounds, and does not shrink with more repetitions.",
    "Revenue": "Thousands per round: gain × good accepted − loss × bad accepted. Late: the last "
    "quarter of rounds.",
    "FDR": "Share of bad among the accepted; rounds with no one accepted are left out of its mean. "
    "Pooled: of counts summed over all rounds.",
    "Selection rate, TPR": "Share accepted of a group's people, and of its good people. A "
    "difference is the largest rate of a group minus the smallest.",
    "Noise floor": "The mean difference per round that chance alone would cause if all groups had "
    "the same true rate.",
}
_CAPTIONS = {
    "revenue": ("Revenue per round", "revenue"),
    "cumulative-revenue": ("Revenue so far", "revenue"),
    "fdr": ("FDR per round against α, and the share of rounds above it", "above_alpha"),
    "rounds-above": ("Share of rounds whose FDR is above α, with 95 % intervals", "above_alpha"),
    "true-positive-rates": ("Accepted among the good people of each group", "revenue"),
    "differences": (
        "Differences between groups per round (left) and pooled over rounds (right); if hollow "
        "points are at the floor and full points well below, the mean of rounds is mostly chance",
        "pooled_true_positive_rate_difference",
    ),
    "differences-pooled": (
        "Differences between groups of counts pooled over rounds, with 95 % intervals",
        "pooled_true_positive_rate_difference",
    ),
    "frontier": (
        "Late revenue of methods, and their true positive rate in the least served group; up and "
        "to the right is better",
        "late_revenue",
    ),
    "exploration": ("Share of people explored, and share of bad among them", "explored_share"),
    "exploit-region": ("Share of people known well enough not to explore", "exploit_share"),
    "alpha-sweep": ("Results for each bound α", "pooled_fdr"),
}
_CERTIFICATE_CAPTION = (
    "The first repetition of “{}”: shares that the ladder in use has a certificate for, the share "
    "deployed in each round, and what the next step needs"
)
_TITLES = {
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
# Columns of the table of all methods.
OVERVIEW = {
    "revenue": "Revenue",
    "fdr": "FDR, per round",
    "pooled_fdr": "Pooled over rounds",
    "above_alpha": "Rounds above α",
    "acceptance_rate": "Accepted",
    "selection_rate_difference": "Selection-rate difference, per round",
    "pooled_selection_rate_difference": "Pooled over rounds",
    "true_positive_rate_difference": "TPR difference, per round",
    "pooled_true_positive_rate_difference": "Pooled over rounds",
}
_SPREAD = "Mean ± standard error over repetitions; below it the sd over rounds and repetitions."


class Cell(NamedTuple):
    """A cell of a table: its text, and small print below."""

    text: str
    more: str = ""
    prose: bool = False


_UNKNOWN = Cell("–")


@dataclass(frozen=True)
class ReportTable:
    """A table with one row per method; subtitles repeat below every title."""

    title: str
    note: str
    titles: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Cell]]]
    subtitles: Sequence[str] = ()


def write_report(
    results: Sequence[Results], path: Path, figures_dir: Path | None = None
) -> list[Path]:
    """Write one self-contained HTML file, with a section for each of the results.

    Parameters
    ----------
    results
        Results, in the order of sections.
    path
        The file to write.
    figures_dir
        Folder for figures as separate SVG and PNG files; None means no such files.

    Returns
    -------
    list of Path
        The files written, the report first.
    """
    if not results:
        raise InputError("a report needs the results of at least one experiment, got none.")
    written, sections = [path], []
    for name, result in _section_ids(results).items():
        drawn = figures.draw_all(result) | figures.draw_certificates(result)
        svgs = {key: figures.to_svg(figure, f"{name}-{key}") for key, figure in drawn.items()}
        sections.append(_section(name, result, svgs))
        if figures_dir is not None:
            figures_dir.mkdir(parents=True, exist_ok=True)
            for key, figure in drawn.items():
                written += figures.save(figure, figures_dir / f"{name}-{key}", svgs[key])
    versions = sorted({str(result.about.get("version", "?")) for result in results})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_render(sections, ", ".join(versions)), encoding="utf-8")
    return written


def _render(sections: Sequence[dict[str, Any]], versions: str) -> str:
    package = "secondlook.lab.experiments"
    environment = Environment(
        loader=PackageLoader(package, ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    css = resources.files(package).joinpath("report.css").read_text(encoding="utf-8")
    template = environment.get_template("report.html.jinja")
    page = template.render(sections=sections, terms=_TERMS, versions=versions, css=Markup(css))
    return "\n".join(map(visible, page.lstrip().split("\n")))


def _section_ids(results: Sequence[Results]) -> dict[str, Results]:
    """Give each of the results an id of its own."""
    sections: dict[str, Results] = {}
    for i, result in enumerate(results):
        name = str(result.about["experiment"]["name"])
        plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "results"
        sections[plain if plain not in sections else f"{plain}-{i + 1}"] = result
    return sections


def _section(name: str, results: Results, svgs: Mapping[str, str]) -> dict[str, Any]:
    experiment = results.about["experiment"]
    return {
        "id": name,
        "name": str(experiment["name"]),
        "what_was_run": findings.what_was_run(results),
        "remarks": findings.remarks(results),
        "failures": findings.failures(results),
        "assumptions": findings.assumptions(results),
        "findings": findings.findings(results),
        "tables": _tables(results),
        "certificates": _certificates(name, results, svgs),
        "figures": [_figure(name, results, key, svgs[key]) for key in svgs if key in _CAPTIONS],
        "data": results.about["data"],
        "seed": experiment["seed"],
    }


def _certificates(name: str, results: Results, svgs: Mapping[str, str]) -> list[dict[str, Any]]:
    parts = []
    for method in certified_methods(results):
        sentences, key = findings.certificate_findings(results, method), f"certificate-{method}"
        caption = _CERTIFICATE_CAPTION.format(label(results, method))
        figure = None
        if key in svgs:
            figure = _inline(f"{name}-{key}", svgs[key], f"{caption}. {sentences[0]}", caption)
        parts.append({"label": label(results, method), "findings": sentences, "figure": figure})
    return parts


def _figure(name: str, results: Results, key: str, svg: str) -> dict[str, Any]:
    caption, metric = _CAPTIONS[key]
    means = tables.summary(results, metric).estimate.mean[tables.main_alpha(results)]
    values = "; ".join(
        f"{label(results, method)} {_format(metric)(mean)}"
        for method, mean in zip(results.methods, means, strict=True)
    )
    spoken = f"{caption}. {_TITLES[metric]}, mean: {values}."
    return _inline(f"{name}-{key}", svg, spoken, caption)


def _inline(name: str, svg: str, spoken: str, caption: str) -> dict[str, Any]:
    """Return an SVG figure for the page, with ids of its own and a text for screen readers."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{name}--', svg)
    svg = re.sub(r'(href="|url\()#', rf"\g<1>#{name}--", svg)
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{escape(spoken)}"', 1)
    return {"id": name, "svg": Markup(svg), "caption": caption}


def _tables(results: Results) -> list[ReportTable]:
    at = tables.main_alpha(results)
    alpha = f"α = {results.alphas[at]:g}"
    made: list[ReportTable | None] = [overview(results, at)]
    if results.about["experiment"]["published"] is not None and results.alphas[at] == ALPHA:
        made.append(compare_with_paper(results, at))
    first = ["revenue", "late_revenue", "fdr", "pooled_fdr", "above_alpha", "nobody_accepted"]
    if results.count("n_certified").any():
        first.append("certified")
    made.append(_metrics(results, at, f"Revenue and mistakes, {alpha}", _SPREAD, first))
    made.append(_group_differences(results, at, f"Differences between groups, {alpha}"))
    made.append(_paired(results, at, f"Revenue against the best variant, {alpha}"))
    made += parity_costs(results, at)
    exploration = ("explored_share", "pooled_explored_fdr", "exploit_share")
    made.append(_metrics(results, at, f"Exploration, {alpha}", _SPREAD, exploration))
    if results.count("n_next").any():
        title = f"f_t on the next batch, {alpha}"
        note = f"Decisions of f_t alone on the next batch. {_SPREAD}"
        metrics = (*METRICS[:2], "pooled_fdr", "above_alpha", *METRICS[2:])
        made.append(_metrics(results, at, title, note, metrics, next_batch=True))
    if results.judged and CEILING in results.methods:
        made.append(_judged(results, at, f"Judged on the whole population, {alpha}"))
    if len(results.alphas) > 1:
        made += [_sweep(results, "revenue"), _sweep(results, "pooled_fdr")]
    return [table for table in made if table is not None]


def overview(results: Results, at: int) -> ReportTable:
    """Return the table of all methods, with the paper's rows and why they differ from ours."""
    estimates = {metric: tables.summary(results, metric).estimate for metric in OVERVIEW}
    key = results.about["experiment"]["published"]
    printed = published_table(key) if key and results.alphas[at] == ALPHA else {}
    rows = []
    for i, method in enumerate(results.methods):
        cells = []
        for metric in OVERVIEW:
            estimate, form = estimates[metric][at, i], _format(metric)
            known = np.isfinite(estimate.standard_error)
            cells.append(
                Cell(form(estimate.mean), f"± {form(estimate.standard_error)}" if known else "")
            )
        if printed:
            paper = printed.get(paper_row(method) or "")
            cells.append(_UNKNOWN if paper is None else _paper(paper))
            cells.append(Cell(why_different(results.about["experiment"], method), prose=True))
        failed = findings.failed_in(results, method, at)
        rows.append((label(results, method) + (f": {failed}" if failed else ""), cells))
    note = (
        "Mean and standard error over repetitions. Revenue in thousands per round, with its sign. "
        "Per round: the mean of the rounds' values; pooled: of counts summed over all rounds."
    )
    titles = list(OVERVIEW.values())
    if printed:
        note += (
            " In the paper's column, below its revenue: FDR, selection-rate and TPR difference, "
            "each a mean of rounds, so compare them with ours per round."
        )
        titles += ["Paper: revenue", "Why they differ"]
    return ReportTable(f"All methods, α = {results.alphas[at]:g}", note, titles, rows)


def _paper(row: Mapping[str, Printed]) -> Cell:
    rest = ", ".join(f"{row[metric].mean:.2f}" for metric in METRICS[1:])
    return Cell(thousands(row["revenue"].mean), rest)


def compare_with_paper(results: Results, at: int) -> ReportTable:
    """Return our numbers next to the paper's, with the rows of both."""
    printed = published_table(results.about["experiment"]["published"])
    unsigned = "E2" in results.about["experiment"]["switches"]
    ours = {m: tables.summary(results, m, absolute_revenue=unsigned) for m in METRICS}
    paper_rows = {method: paper_row(method) for method in results.methods}
    only_paper = [name for name in printed if name not in paper_rows.values()]
    rows = []
    for i, method in enumerate([*results.methods, *only_paper]):
        ran = i < len(results.methods)
        paper = printed.get(paper_rows.get(method, method) or "")
        cells = []
        for metric in METRICS:
            cells.append(_estimate_cell(ours[metric], metric, at, i) if ran else _UNKNOWN)
            cells.append(_UNKNOWN if paper is None else _printed(metric, paper[metric]))
        rows.append((label(results, method) if ran else f"{method} (not run)", cells))
    titles = [_TITLES[metric] for metric in METRICS]
    if unsigned:
        titles[0] = "Revenue without its sign"
    note = (
        "Ours: mean ± standard error over repetitions, below it the sd over rounds and "
        "repetitions. The paper's bracket, which its caption calls a standard error, is a standard "
        "deviation over rounds and repetitions: compare it with our sd. FDR and differences are "
        "means of rounds on both sides."
    )
    return ReportTable(f"Beside the paper, α = {ALPHA}", note, titles, rows, ("ours", "paper"))


def _printed(metric: str, number: Printed) -> Cell:
    decimals = 1 if metric == "revenue" else 2  # as printed
    mean, bracket = (f"{part:.{decimals}f}".replace("-", "−") for part in number)
    return Cell(mean, f"({bracket})")


def _metrics(
    results: Results, at: int, title: str, note: str, metrics: Sequence[str], **options: bool
) -> ReportTable:
    summaries = {metric: tables.summary(results, metric, **options) for metric in metrics}
    rows = [
        (
            label(results, method),
            [_estimate_cell(summaries[metric], metric, at, i) for metric in metrics],
        )
        for i, method in enumerate(results.methods)
    ]
    return ReportTable(title, note, [_TITLES[metric] for metric in metrics], rows)


def _group_differences(results: Results, at: int, title: str) -> ReportTable:
    """Return differences per round and pooled, each rate with its noise floor."""
    rates: tuple[tables.Rate, ...] = ("selection_rate", "true_positive_rate")
    titles: list[str] = []
    rows: list[tuple[str, list[Cell]]] = [(label(results, m), []) for m in results.methods]
    for name in rates:
        titles += [_TITLES[f"{name}_difference"], "Noise floor", "Pooled over rounds"]
        single = tables.summary(results, f"{name}_difference")
        pooled = tables.summary(results, f"pooled_{name}_difference")
        floors = tables.mean_known(tables.noise_floor(results, name)[at], axis=(1, 2))
        for i, (_, cells) in enumerate(rows):
            cells.append(_estimate_cell(single, "rate", at, i))
            cells.append(Cell(rate(floors[i])))
            cells.append(_estimate_cell(pooled, "rate", at, i))
    note = (
        "Mean over rounds of the absolute difference, the part that chance alone would cause, and "
        "the difference of counts pooled over rounds."
    )
    return ReportTable(title, note, titles, rows)


def _judged(results: Results, at: int, title: str) -> ReportTable:
    """Return revenue and broken bounds of all policies in the population."""
    methods = compared(results, at)
    rows = []
    for method in methods:
        cells = [Cell(rate(earned.share)) for earned in method.earned.values()]
        for breaks in (method.certified, method.uncertified):
            runs = f"in {breaks.broken_runs} of {breaks.runs} runs" if breaks.runs else ""
            cells.append(Cell(rate(breaks.share_of_rounds), runs))
        cells += [Cell(rate(value)) for value in method.true_positive_rates.values()]
        rows.append((method.label, cells))
    titles = [
        *(f"{period.capitalize()} rounds" for period in methods[0].earned),
        "Certified rounds above α",
        "Other rounds above α",
        *(f"Late TPR, {group}" for group in methods[0].true_positive_rates),
    ]
    note = (
        f"The policy of every round over the whole population: its expected revenue as a share of "
        f"the ceiling's (early: the first 5 rounds; late: the last quarter), how often its FDR is "
        f"above α, and the probability that each group's good people are accepted. "
        f"{CEILING_MEANS}"
    )
    return ReportTable(title, note, titles, rows)


def _paired(results: Results, at: int, title: str) -> ReportTable | None:
    best = findings.best_variant(results, at)
    others = [name for name in results.methods if name != best]
    if best is None or not others:
        return None
    rows = []
    for method in others:
        cells = []
        for metric in ("revenue", "late_revenue"):
            difference = tables.paired(results, metric, best, method)[at]
            low, high = thousands(difference.low), thousands(difference.high)
            includes_zero = difference.low <= 0 <= difference.high
            measurable = "–" if low == "–" else "no" if includes_zero else "yes"
            cells += [Cell(thousands(difference.mean)), Cell(f"{low} to {high}"), Cell(measurable)]
        rows.append((label(results, method), cells))
    note = (
        f"“{label(results, best)}” minus each other method within the same repetitions; measurable "
        f"means that the 95 % interval does not contain 0."
    )
    titles = ["Difference", "95 % interval", "Measurable"]
    return ReportTable(title, note, [*titles, *(f"Late: {t.lower()}" for t in titles)], rows)


_CUTS = {"shared": "one cut", "per_group": "cut per group"}
_PLACES = {"cut": "at the cut", "fit": "in the fit"}
_WITHOUT_PARITY = {cell.cuts: name for name, cell in PARITY_CELLS.items() if cell.parity == "none"}
_PARITY_TITLES = ["Revenue", "95 % interval", "FDR", "95 % interval", "ΔSR", "95 % interval"]
_PARITY_NOTE = (
    "With parity minus without, at the same number of cuts and within the same repetitions; last "
    "row: what a cut for each group changes by itself. FDR and ΔSR (difference of selection rates) "
    "are pooled over rounds."
)


def parity_costs(results: Results, at: int) -> list[ReportTable]:
    """Return what parity costs at equal flexibility, if methods that show it were run.

    Parity at the cut is usually offered along with a cut for each group, which earns by itself. So
    parity is compared with no parity at the same number of cuts, and the cuts for themselves.
    """
    pairs = {
        f"{_CUTS[cell.cuts]}: parity {_PLACES[cell.parity]}": (name, _WITHOUT_PARITY[cell.cuts])
        for name, cell in PARITY_CELLS.items()
        if cell.parity != "none"
    }
    pairs["no parity: cut per group"] = _WITHOUT_PARITY["per_group"], _WITHOUT_PARITY["shared"]
    made = []
    for family, named in (("Algorithm 1", str), ("FAIR-CLF", cell_of_fair_clf)):
        rows = [
            (words, _difference_cells(results, at, named(first), named(second)))
            for words, (first, second) in pairs.items()
            if {named(first), named(second)} <= set(results.methods)
        ]
        if rows:
            title = f"What parity costs: {family}, α = {results.alphas[at]:g}"
            made.append(ReportTable(title, _PARITY_NOTE, _PARITY_TITLES, rows))
    return made


def _difference_cells(results: Results, at: int, first: str, second: str) -> list[Cell]:
    cells = []
    for metric in ("revenue", "pooled_fdr", "pooled_selection_rate_difference"):
        difference, form = tables.paired(results, metric, first, second)[at], _format(metric)
        cells += [
            Cell(form(difference.mean)),
            Cell(f"{form(difference.low)} to {form(difference.high)}"),
        ]
    return cells


def _sweep(results: Results, metric: str) -> ReportTable:
    summary = tables.summary(results, metric)
    order = np.argsort(results.alphas)
    rows = [
        (label(results, method), [_estimate_cell(summary, metric, int(a), i) for a in order])
        for i, method in enumerate(results.methods)
    ]
    titles = [f"α = {results.alphas[a]:g}" for a in order]
    note = "Mean ± standard error; below it sd."
    return ReportTable(f"{_TITLES[metric]} for each α", note, titles, rows)


def _estimate_cell(summary: tables.MetricSummary, metric: str, at: int, i: int) -> Cell:
    """Return a mean with its standard error and, below, the spread over rounds."""
    form, estimate = _format(metric), summary.estimate[at, i]
    spread = summary.pooled_sd[at, i]
    counted = metric in ("above_alpha", "nobody_accepted")  # a yes or no has no spread of its own
    more = f"sd {form(spread)}" if np.isfinite(spread) and not counted else ""
    if not np.isfinite(estimate.standard_error):
        return Cell(form(estimate.mean), more)
    return Cell(f"{form(estimate.mean)} ± {form(estimate.standard_error)}", more)


def _format(metric: str) -> Callable[[Any], str]:
    return thousands if metric.endswith("revenue") else rate
