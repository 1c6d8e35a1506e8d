"""Write one HTML file about results: sentences, tables and figures, with nothing to load or run.

This module gathers the content as plain data; ``report.html.jinja`` lays it out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from secondlook.errors import InputError, to_install, visible
from secondlook.lab.experiments import figures, findings, tables
from secondlook.lab.experiments.all_tables import TITLES, all_tables, form_of
from secondlook.lab.experiments.certificates import certified_methods
from secondlook.lab.experiments.findings import label
from secondlook.lab.experiments.results import Results

try:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup
except ImportError as missing:  # pragma: no cover (an extra)
    raise InputError(f"reports need jinja2; {to_install('experiments')} installs it.") from missing

__all__ = ["section_ids", "write_report"]

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
    "settings": ("Results for each value of what was varied", "pooled_fdr"),
}
_CERTIFICATE_CAPTION = (
    "The first repetition of “{}”: shares that the ladder in use has a certificate for, the share "
    "deployed in each round, and what the next step needs"
)


def write_report(
    results: Sequence[Results], path: Path | None, figures_dir: Path | None = None
) -> list[Path]:
    """Write one self-contained HTML file, with a section for each of the results.

    Parameters
    ----------
    results
        Results, in the order of sections.
    path
        The file to write; None means that only figures are written.
    figures_dir
        Folder for figures as separate SVG and PNG files; None means no such files.

    Returns
    -------
    list of Path
        The files written, the report first.
    """
    if not results:
        raise InputError("a report needs the results of at least one experiment, got none.")
    written, sections = [] if path is None else [path], []
    for name, result in section_ids(results).items():
        drawn = figures.draw_all(result) | figures.draw_certificates(result)
        svgs = {key: figures.to_svg(figure, f"{name}-{key}") for key, figure in drawn.items()}
        if path is not None:
            sections.append(_section(name, result, svgs))
        if figures_dir is not None:
            figures_dir.mkdir(parents=True, exist_ok=True)
            for key, figure in drawn.items():
                written += figures.save(figure, figures_dir / f"{name}-{key}", svgs[key])
    if path is not None:
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


def section_ids(results: Sequence[Results]) -> dict[str, Results]:
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
        "tables": all_tables(results),
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
    means = tables.summary(results, metric).estimate.mean[results.main]
    values = "; ".join(
        f"{label(results, method)} {form_of(metric)(mean)}"
        for method, mean in zip(results.methods, means, strict=True)
    )
    if key != "settings" and len(results.settings) > 1:
        caption += f" ({results.settings[results.main]})"
    spoken = f"{caption}. {TITLES[metric]}, mean: {values}."
    return _inline(f"{name}-{key}", svg, spoken, caption)


def _inline(name: str, svg: str, spoken: str, caption: str) -> dict[str, Any]:
    """Return an SVG figure for the page, with ids of its own and a text for screen readers."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{name}--', svg)
    svg = re.sub(r'(href="|url\()#', rf"\g<1>#{name}--", svg)
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{escape(spoken)}"', 1)
    return {"id": name, "svg": Markup(svg), "caption": caption}
