"""One HTML file that shows results: sentences, tables, figures; nothing to load or to run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np

from secondlook.errors import InputError
from secondlook.lab.experiments import (
    cautions,
    certificate_section,
    drawing,
    figures,
    tables,
    words,
)
from secondlook.lab.experiments.certificates import certified_methods
from secondlook.lab.experiments.comparison import OPTIMUM, compared
from secondlook.lab.experiments.overview import TITLES, beside_paper, estimate_cell, overview, write
from secondlook.lab.experiments.page_parts import cell, figure, heads, sentence_list, table
from secondlook.lab.experiments.published import ALPHA, METRICS
from secondlook.lab.experiments.results import Results
from secondlook.lab.experiments.words import label, rate, thousands

__all__ = ["write_report"]

_TERMS = {
    "Mean ± standard error": "The mean over repetitions of each repetition's mean over its rounds. "
    "The standard error is over repetitions; 95 % intervals are Student's t.",
    "sd": "Standard deviation over all rounds of all repetitions together. It holds the learning "
    "curve and the noise of single rounds, and does not shrink with more repetitions.",
    "Revenue": "Thousands per round: gain × good accepted − loss × bad accepted. Late: the last "
    "quarter of rounds.",
    "FDR": "Share of bad among the accepted; rounds with nobody accepted are left out of its mean. "
    "Pooled: of counts summed over all rounds.",
    "Selection rate, TPR": "Share accepted of a group's people, and of its good people. A "
    "difference is the largest group's minus the smallest.",
    "Noise floor": "What the mean difference per round would be if all groups had the same true "
    "rate: single rounds differ by chance.",
}
_CAPTIONS = {
    "revenue": ("Revenue per round", "revenue"),
    "cumulative-revenue": ("Revenue so far", "revenue"),
    "fdr": ("FDR per round against α, and the share of rounds above it", "above_alpha"),
    "rounds-above": ("Share of rounds whose FDR is above α, with 95 % intervals", "above_alpha"),
    "true-positive-rates": ("Accepted among the good people of each group", "revenue"),
    "differences": (
        "Differences between groups per round (left) and pooled over rounds (right); where hollow "
        "points are at the floor and full ones well below, the mean of rounds shows mostly chance",
        "pooled_true_positive_rate_difference",
    ),
    "differences-pooled": (
        "Differences between groups of counts pooled over rounds, with 95 % intervals",
        "pooled_true_positive_rate_difference",
    ),
    "frontier": (
        "What methods earn late, and how many good people of the group served least they reach; "
        "up and to the right is better",
        "late_revenue",
    ),
    "exploration": ("How many are explored, and how many of those are bad", "explored_share"),
    "exploit-region": ("How many people are known well enough not to explore", "exploit_share"),
    "alpha-sweep": ("What each bound α gives", "pooled_fdr"),
}


class _Section(NamedTuple):
    id: str
    results: Results

    @property
    def name(self) -> str:
        return str(self.results.about["experiment"]["name"])


def write_report(
    results: Sequence[Results], path: Path, figures_dir: Path | None = None
) -> list[Path]:
    """Write one self-contained HTML file, a section for each of the results.

    Parameters
    ----------
    results
        Results, in the order to show them.
    path
        The file to write.
    figures_dir
        Folder for the figures as SVG and PNG files too; None means no such files.

    Returns
    -------
    list of Path
        The files written, the report first.
    """
    if not results:
        raise InputError("a report needs at least one experiment's results, got none.")
    sections = _sections(results)
    written, parts = [path], []
    for section in sections:
        drawn = figures.draw_all(section.results) | certificate_section.draw_all(section.results)
        svgs = {key: drawing.to_svg(one, f"{section.id}-{key}") for key, one in drawn.items()}
        parts.append(_section(section, svgs))
        if figures_dir is not None:
            figures_dir.mkdir(parents=True, exist_ok=True)
            for key, one in drawn.items():
                written += drawing.save(one, figures_dir / f"{section.id}-{key}", svgs[key])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_page(sections, parts), encoding="utf-8")
    return written


def _sections(results: Sequence[Results]) -> list[_Section]:
    """Name sections so that no two have the same id."""
    found: list[_Section] = []
    for i, one in enumerate(results):
        name = str(one.about["experiment"]["name"])
        plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "results"
        taken = {section.id for section in found}
        found.append(_Section(plain if plain not in taken else f"{plain}-{i + 1}", one))
    return found


def _page(sections: Sequence[_Section], parts: Sequence[str]) -> str:
    css = resources.files(__package__).joinpath("report.css").read_text(encoding="utf-8")
    terms = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in _TERMS.items())
    versions = ", ".join(sorted({str(s.results.about.get("version", "?")) for s in sections}))
    links = "".join(_links(section) for section in sections)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>secondlook: results</title>\n<style>\n{css}</style>\n</head>\n<body>\n"
        "<header><h1>What the experiments show</h1>"
        f"<p>Made by secondlook {escape(versions)} from recorded head counts. Sentences, tables "
        "and figures are all drawn from the same counts.</p></header>\n"
        f'<nav aria-label="Contents"><ul>{links}<li><a href="#terms">Terms</a></li></ul></nav>\n'
        f"<main>\n{''.join(parts)}"
        f'<section id="terms"><h2>Terms</h2><dl class="terms">{terms}</dl></section>\n'
        "</main>\n</body>\n</html>\n"
    )


def _links(section: _Section) -> str:
    parts = ["Tables", "Certificate", "Figures"]
    if not certified_methods(section.results):
        parts.remove("Certificate")
    inside = "".join(f'<li><a href="#{section.id}-{p.lower()}">{p}</a></li>' for p in parts)
    return f'<li><a href="#{section.id}">{escape(section.name)}</a><ul>{inside}</ul></li>'


def _section(section: _Section, svgs: dict[str, str]) -> str:
    results, name = section.results, section.id
    about = results.about
    data = about["data"]
    shown = "".join(_figure(section, key, svgs[key]) for key in svgs if key in _CAPTIONS)
    return (
        f'<section class="results" id="{name}"><h2>{escape(section.name)}</h2>\n'
        f"<p>{escape(words.what_was_run(results))}</p>\n"
        f"{sentence_list('remarks', words.remarks(results))}"
        f"{_cautions(results)}"
        f"<h3>What it shows</h3>\n{sentence_list('findings', words.findings(results))}"
        f'<h3 id="{name}-tables">Tables</h3>\n{"".join(_tables(results))}'
        f"{certificate_section.html(results, name, svgs)}"
        f'<h3 id="{name}-figures">Figures</h3>\n{shown}'
        f'<p class="remarks">Data “{escape(str(data["name"]))}”, {data["rows"]:,} rows, '
        f"fingerprint {escape(str(data['fingerprint']))}; seed {about['experiment']['seed']}.</p>"
        "</section>\n"
    )


def _cautions(results: Results) -> str:
    """Return which methods failed, and what some of them assume, where there is any such."""
    failed, assumed = cautions.failures(results), cautions.assumptions(results)
    parts = [("Methods that failed", "failures", failed), ("Assumptions", "remarks", assumed)]
    return "".join(
        f"<h3>{title}</h3>\n{sentence_list(kind, sentences)}"
        for title, kind, sentences in parts
        if sentences
    )


def _figure(section: _Section, key: str, svg: str) -> str:
    results = section.results
    caption, metric = _CAPTIONS[key]
    means = tables.summary(results, metric).estimate.mean[tables.main_alpha(results)]
    values = "; ".join(
        f"{label(results, method)} {write(metric)(mean)}"
        for method, mean in zip(results.methods, means, strict=True)
    )
    spoken = f"{caption}. {TITLES[metric]}, mean: {values}."
    return figure(f"{section.id}-{key}", svg, spoken, caption)


def _tables(results: Results) -> list[str]:
    at = tables.main_alpha(results)
    alpha = f"α = {results.alphas[at]:g}"
    made = [overview(results, at)]
    if results.about["experiment"]["published"] is not None and results.alphas[at] == ALPHA:
        made.append(beside_paper(results, at))
    spread = "Mean ± standard error over repetitions; below it the sd over rounds and repetitions."
    first = ["revenue", "late_revenue", "fdr", "pooled_fdr", "above_alpha", "nobody_accepted"]
    if results.count("n_certified").any():
        first.append("certified")
    made.append(_metrics(results, at, f"Revenue and mistakes, {alpha}", spread, first))
    made.append(_groups(results, at, f"Differences between groups, {alpha}"))
    made.append(_paired(results, at, f"Revenue against the best variant, {alpha}"))
    third = ("explored_share", "pooled_explored_fdr", "exploit_share")
    made.append(_metrics(results, at, f"Exploration, {alpha}", spread, third))
    if results.count("n_next").any():
        judged = f"f_t on the next batch, {alpha}"
        note = f"What f_t alone would have decided on the batch after. {spread}"
        metrics = (*METRICS[:2], "pooled_fdr", "above_alpha", *METRICS[2:])
        made.append(_metrics(results, at, judged, note, metrics, next_batch=True))
    if results.judged and OPTIMUM in results.methods:
        made.append(_judged(results, at, f"Judged on the whole population, {alpha}"))
    if len(results.alphas) > 1:
        made += [_sweep(results, "revenue"), _sweep(results, "pooled_fdr")]
    return [one for one in made if one]


def _metrics(
    results: Results, at: int, title: str, note: str, metrics: Sequence[str], **options: bool
) -> str:
    found = {metric: tables.summary(results, metric, **options) for metric in metrics}
    rows = []
    for i, method in enumerate(results.methods):
        cells = [estimate_cell(found[metric], metric, at, i) for metric in metrics]
        rows.append((label(results, method), "".join(cells)))
    return table(title, note, heads([TITLES[metric] for metric in metrics]), rows)


def _groups(results: Results, at: int, title: str) -> str:
    """Return differences per round and pooled, each rate with its noise floor."""
    rates: tuple[tables.Rate, ...] = ("selection_rate", "true_positive_rate")
    found, floors, titles = {}, {}, []
    for one in rates:
        for metric in (f"{one}_difference", f"pooled_{one}_difference"):
            found[metric] = tables.summary(results, metric)
        floors[one] = tables.noise_floor(results, one)[at]
        titles += [TITLES[f"{one}_difference"], "Noise floor", "Pooled over rounds"]
    rows = []
    for i, method in enumerate(results.methods):
        cells = ""
        for one in rates:
            known = floors[one][i][np.isfinite(floors[one][i])]
            cells += estimate_cell(found[f"{one}_difference"], "rate", at, i)
            cells += cell(rate(known.mean()) if known.size else "–")
            cells += estimate_cell(found[f"pooled_{one}_difference"], "rate", at, i)
        rows.append((label(results, method), cells))
    note = (
        "Mean over rounds of the absolute difference, what chance alone would make of it, and the "
        "difference of counts pooled over rounds."
    )
    return table(title, note, heads(titles), rows)


def _judged(results: Results, at: int, title: str) -> str:
    """Return what the policies of all rounds earn and break in the population."""
    found = compared(results, at)
    rows = []
    for one in found:
        cells = "".join(cell(rate(part.share)) for part in one.earned.values())
        for breaks in (one.certified, one.uncertified):
            runs = f"in {breaks.broken_runs} of {breaks.runs} runs" if breaks.runs else ""
            cells += cell(rate(breaks.share_of_rounds), runs)
        cells += "".join(cell(rate(value)) for value in one.true_positive_rates.values())
        rows.append((one.label, cells))
    titles = [
        *(f"{period.capitalize()} rounds" for period in found[0].earned),
        "Certified rounds above α",
        "Other rounds above α",
        *(f"Late TPR, {group}" for group in found[0].true_positive_rates),
    ]
    note = (
        f"The policy of every round over everybody who could have come: its expected revenue as a "
        f"share of that of “{label(results, OPTIMUM)}” (early: the first 5 rounds; late: the last "
        f"quarter), how often its FDR is above α, and the chance of each group's good people."
    )
    return table(title, note, heads(titles), rows)


def _paired(results: Results, at: int, title: str) -> str:
    best = words.best_variant(results, at)
    others = [name for name in results.methods if name != best]
    if best is None or not others:
        return ""
    rows = []
    for method in others:
        cells = ""
        for metric in ("revenue", "late_revenue"):
            one = tables.paired(results, metric, best, method)[at]
            low, high = thousands(one.low), thousands(one.high)
            verdict = "–" if low == "–" else "no" if one.low <= 0 <= one.high else "yes"
            cells += cell(thousands(one.mean)) + cell(f"{low} to {high}") + cell(verdict)
        rows.append((label(results, method), cells))
    note = (
        f"“{label(results, best)}” minus each other method within the same repetitions; measurable "
        f"means that the 95 % interval leaves 0 out."
    )
    titles = ["Difference", "95 % interval", "Measurable"]
    return table(title, note, heads([*titles, *(f"Late: {t.lower()}" for t in titles)]), rows)


def _sweep(results: Results, metric: str) -> str:
    found = tables.summary(results, metric)
    order = np.argsort(results.alphas)
    rows = [
        (label(results, method), "".join(estimate_cell(found, metric, a, i) for a in order))
        for i, method in enumerate(results.methods)
    ]
    bounds = heads([f"α = {results.alphas[a]:g}" for a in order])
    return table(
        f"{TITLES[metric]} for each α", "Mean ± standard error; below it sd.", bounds, rows
    )
