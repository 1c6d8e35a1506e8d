"""Charts of results: methods compared, over the rounds, in groups and at several settings.

``fairchance.plot`` has the charts of a single run, and what draws them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fairchance.core.decisions import CertifiedRound
from fairchance.errors import InputError
from fairchance.plot.marks import (
    BLUE,
    GREEN,
    MISTAKES,
    MOST_GROUPS,
    NUMBER,
    PERCENT,
    PURPLE,
    RED,
    Chart,
    alpha_text,
    draw_certificates,
    draw_curves,
    draw_dots,
    draw_lines,
    draw_points,
    is_grey,
    short_names,
    stacked,
)
from fairchance.plot.rows import Row, spans
from fairchance_lab.experiments import tables
from fairchance_lab.experiments.certificates import certified_methods, records_of
from fairchance_lab.experiments.results import Results
from fairchance_lab.experiments.spec import written
from fairchance_lab.experiments.tables import Estimate, mean_known, over_repetitions
from fairchance_lab.experiments.verdict import Verdict, find_verdict

__all__ = ["by_setting", "certificate", "compare", "coverage", "curve", "groups", "metric"]
__all__ += ["rounds", "trade_off"]

_COLOURS = (GREEN, BLUE, RED, PURPLE)
_SHADES = (90, 190)  # of grey, as dark and as light as pages of both colours allow
_MOST_LABELS = 8  # points with a name each; of more, only the coloured ones and the worst have one
_TITLES = {
    "revenue": "Earned in each round",
    "cumulative_revenue": "Earned so far",
    "fdr": MISTAKES,
    "acceptance_rate": "Accepted, share of applicants",
    "exploit_share": "Known well enough, share of applicants",
    "explored_share": "Explored, share of applicants",
    "selection_rate": "Accepted",
    "false_discovery_rate": MISTAKES,
    "true_positive_rate": "Good applicants accepted",
}
_THOUSAND = 1000  # metrics of revenue are in thousands, charts in whole amounts
_AMOUNTS = ("revenue", "cumulative_revenue", "weighted", "effective")


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


def compare(results: Results, *, highlight: Sequence[str] | None = None) -> Chart:
    """Draw what each method earned and its mistakes, with 95 % intervals, the best first."""
    found, colours = find_verdict(results), _colours(results, highlight)
    rows, title, form = _standings(found, _labels(results))
    earned, mistakes = (
        [
            {"row": row["name"], "name": row["name"], "value": row[key]}
            | {end: row[f"{key}_{end}"] for end in ("low", "high")}
            for row in rows
        ]
        for key in ("y", "x")
    )
    below = draw_dots(MISTAKES, mistakes, colours, PERCENT, found.alpha)
    return stacked([draw_dots(title, earned, colours, form), below], colours)


def trade_off(results: Results, *, highlight: Sequence[str] | None = None) -> Chart:
    """Draw what was earned against mistakes in the last quarter of the rounds.

    ``highlight`` names the methods to colour, at most four; None chooses them.
    """
    found, colours = find_verdict(results), _colours(results, highlight)
    rows, title, form = _standings(found, _labels(results))
    worst, short = found.worst and found.worst.method, short_names(colours)
    for row in rows:
        shown = not is_grey(colours[row["name"]]) or row["method"] == worst
        shown = shown or len(rows) <= _MOST_LABELS
        row["label"] = short[row["name"]] if shown else None
    rows.sort(key=lambda row: not is_grey(colours[row["name"]]))  # grey points below
    return draw_points("Earned against mistakes", rows, colours, title, form, found.alpha)


def metric(
    results: Results,
    name: str,
    *,
    group: str | None = None,
    highlight: Sequence[str] | None = None,
) -> Chart:
    """Draw a metric over the rounds, a line for each method.

    Parameters
    ----------
    results
        Results.
    name
        A name in ``tables.METRICS``, such as ``"revenue"`` or ``"fdr"``.
    group
        For rates of groups, the group; None means the one that the experiment is about.
    highlight
        The methods to colour and name, at most four; None chooses them.
    """
    values = tables.per_round(results, name)[results.main] * _unit(name)
    title = _TITLES.get(name, name.replace("_", " ").capitalize())
    if values.ndim == 4:
        group = tables.focus(results) if group is None else group
        if group not in results.groups:
            raise InputError(f"group must be one of {', '.join(results.groups)}, got {group!r}.")
        values, title = values[..., results.groups.index(group)], f"{title}: {group}"
    number, parts = np.unique(results.columns["round"]), spans(values.shape[2])
    shown = np.stack([mean_known(values[:, :, part], axis=2) for part in parts], axis=2)
    at, alpha = [int(number[part].mean()) for part in parts], results.alphas[results.main]
    bound = (alpha_text(alpha), [alpha] * len(at)) if name == "fdr" else None
    return draw_lines(
        title,
        _by_method(results, over_repetitions(shown, axis=1), at),
        _colours(results, highlight),
        NUMBER if name in _AMOUNTS else PERCENT,
        bound=bound,
    )


def rounds(results: Results) -> Chart:
    """Draw what methods earned in each round, and their mistakes."""
    return stacked([metric(results, name) for name in ("revenue", "fdr")])


def coverage(results: Results, *, highlight: Sequence[str] | None = None) -> Chart:
    """Draw the share of applicants who are known well enough, and the share explored."""
    names = ("exploit_share", "explored_share")
    return stacked([metric(results, name, highlight=highlight) for name in names])


def groups(results: Results, *, highlight: Sequence[str] | None = None) -> Chart:
    """Draw for each group who was accepted, mistakes, and the good who were accepted.

    Only the highlighted methods are shown, with 95 % intervals.
    """
    charts = []
    colours = {name: c for name, c in _colours(results, highlight).items() if not is_grey(c)}
    for name in ("selection_rate", "false_discovery_rate", "true_positive_rate"):
        estimate = tables.summary(results, f"pooled_{name}").estimate[results.main]
        rows = [
            {"row": group, "name": label} | _estimated(estimate[i, g])
            for g, group in enumerate(results.groups[:MOST_GROUPS])
            for i, label in enumerate(_labels(results).values())
            if label in colours
        ]
        alpha = results.alphas[results.main] if name == "false_discovery_rate" else None
        charts.append(draw_dots(_TITLES[name], rows, colours, PERCENT, alpha))
    return stacked(charts, results.groups)


def by_setting(results: Results, *, highlight: Sequence[str] | None = None) -> Chart:
    """Draw what was earned and the mistakes for each value of what was varied."""
    if len(results.settings) == 1:
        raise InputError("nothing was varied in these results, so there is nothing to draw.")
    at = [written(value) for value in results.values]
    once = [results.methods.index(name) for name in results.about["once"]]
    colours, charts = _colours(results, highlight), []
    for name, title, form, bound in (
        ("revenue", "Earned per round", NUMBER, None),
        ("pooled_fdr", MISTAKES, PERCENT, ("α", results.alphas)),
    ):
        values = tables.per_repetition(results, name) * _unit(name)
        values[:, once] = values[results.main, once]  # they ran at one setting, so they are level
        rows = _by_method(results, over_repetitions(values.swapaxes(0, 1), axis=2), at)
        x_title = str(results.varied)
        charts.append(draw_lines(title, rows, colours, form, bound=bound, x_title=x_title))
    return stacked(charts)


def certificate(results: Results, *, method: str | None = None) -> Chart:
    """Draw how far certificates reach in each round, and the evidence for the next one.

    It is the first repetition of ``method``; None means the first method with certificates.
    """
    return draw_certificates(_records(results, method))


def curve(results: Results, *, method: str | None = None) -> Chart:
    """Draw what the certified rule of the last round would earn at other bounds than α.

    It is the first repetition of ``method``; None means the first method with certificates.
    """
    return draw_curves(_records(results, method), results.alphas[results.main])


def _records(results: Results, method: str | None) -> dict[Any, list[CertifiedRound]]:
    """Return the records of certificates in the first repetition, by group."""
    known = [name for name in certified_methods(results) if records_of(results, name, results.main)]
    name = next(iter(known), None) if method is None else method
    if name not in known:
        listed = ", ".join(known) or "none"
        raise InputError(f"method must have certificates in the results ({listed}), got {name!r}.")
    return records_of(results, name, results.main)


def _colours(results: Results, highlight: Sequence[str] | None) -> dict[str, str]:
    """Return the colour of each method by its label: at most four have one, others a shade of grey.

    Without ``highlight`` these are the best method with certificates, the best, the best that does
    not explore, and the yardstick; if some of them are the same or missing, the worst and those
    that earned most, too.
    """
    labels = _labels(results)
    if highlight is None:
        found = find_verdict(results)
        wanted = [found.certified, found.best, found.idle, found.yardstick]
        wanted += [found.worst, *found.standings]
        highlight = list(dict.fromkeys(one.method for one in wanted if one is not None))[:4]
    unknown = [name for name in highlight if name not in labels]
    if unknown or len(highlight) > len(_COLOURS):
        raise InputError(
            f"highlight must name at most {len(_COLOURS)} of the methods {', '.join(labels)}, got "
            f"{', '.join(highlight)}."
        )
    chosen = {labels[name]: c for name, c in zip(highlight, _COLOURS, strict=False)}
    others = [label for label in labels.values() if label not in chosen]
    shades = np.linspace(*_SHADES, len(others)).round().astype(int).tolist()
    return chosen | {n: f"#{3 * f'{shade:02x}'}" for n, shade in zip(others, shades, strict=True)}


def _labels(results: Results) -> dict[str, str]:
    """Return the name of each method for readers; all differ."""
    names = results.about.get("labels", {})
    labels = {name: str(names.get(name, name)) for name in results.methods}
    return labels if len({*labels.values()}) == len(labels) else {n: n for n in labels}


def _standings(verdict: Verdict, labels: Mapping[str, str]) -> tuple[list[Row], str, str]:
    """Return a row for each method with mistakes and what it earned, with its title and format."""
    yardstick, best = verdict.yardstick, verdict.best
    beaten = best is not None and best.share.mean > 1  # then it is no yardstick
    title, form, share = "Earned per round", NUMBER, False
    if yardstick is not None and math.isfinite(yardstick.share.mean) and not beaten:
        of = "the ceiling" if yardstick.method == "ceiling" else f"“{yardstick.label}”"
        title, form, share = f"Earned, share of {of}", PERCENT, True
    rows = []
    for one in verdict.standings:
        x = _estimated(one.mistakes)
        y = _estimated(one.share) if share else _estimated(one.earned, _THOUSAND)
        row = {"method": one.method, "name": labels[one.method], "tip": labels[one.method]}
        row |= {"x": x["value"], "x_low": x["low"], "x_high": x["high"]}
        rows.append(row | {"y": y["value"], "y_low": y["low"], "y_high": y["high"]})
    return rows, title, form


def _by_method(results: Results, estimate: Estimate, at: list[Any]) -> list[Row]:
    """Return a row for each line; axes of the estimate: (method, x)."""
    return [
        {"name": label, "x": at} | _estimated(estimate[i])
        for i, label in enumerate(_labels(results).values())
    ]


def _estimated(estimate: Estimate, unit: float = 1) -> Row:
    parts = {"value": estimate.mean, "low": estimate.low, "high": estimate.high}
    return {name: (unit * np.asarray(part)).tolist() for name, part in parts.items()}


def _unit(metric: str) -> int:
    return _THOUSAND if metric.endswith("revenue") else 1
