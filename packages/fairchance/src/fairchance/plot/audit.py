"""Charts of what ``fairchance.audit`` finds in a log of decisions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from fairchance.audit.scores import CHANGED
from fairchance.errors import InputError
from fairchance.plot.marks import (
    BLUE,
    DASHED,
    GREY,
    MISTAKES,
    MOST_GROUPS,
    NUMBER,
    ORANGE,
    PERCENT,
    PURPLE,
    RED,
    Chart,
    alpha_text,
    axis_ends,
    bound_line,
    coloured,
    data,
    draw_dots,
    draw_lines,
    layered,
    scaled,
    stacked,
    tooltip,
    used_colours,
)
from fairchance.plot.rows import Row, rounded
from fairchance.words.audits import MEASURES

__all__ = ["calibration", "cut_offs", "drift", "group_audit"]

_IDENTIFIED, _NOT_IDENTIFIED = "estimate, interval at all times", "not identified: bounds"
_UNKNOWN = "!isValid(datum.value)"
_RECORDED, _CORRECTED, _ASSUMED = "as recorded", "corrected", "without assumptions"
_FEW = 100  # known outcomes below which the interval of a cut-off does not set the axis


def cut_offs(
    evaluations: Mapping[float, Any],
    *,
    measures: Sequence[str] = ("false_discovery_rate", "selection_rate", "profit"),
    currency: str = "",
) -> Chart:
    """Draw mistakes, acceptances and profit of policies that accept from a score on.

    Parameters
    ----------
    evaluations
        What ``audit.evaluate`` says about each policy, by its cut-off.
    measures
        What to draw.
    currency
        Of the profit.
    """
    titles = {
        "false_discovery_rate": (MISTAKES, PERCENT),
        "selection_rate": ("Accepted, share of applicants", PERCENT),
        "profit": (f"Profit per applicant{f' ({currency})' if currency else ''}", NUMBER),
    }
    charts, colours = [], {_IDENTIFIED: BLUE, _NOT_IDENTIFIED: ORANGE}
    across = scaled(axis_ends(evaluations), ".2~f", "accept from this score on")
    for measure in measures:
        (title, form), rows = titles[measure], []
        for cut, one in evaluations.items():
            row = one.of(measure)
            known = rounded(row.value) is not None
            ends = (row.low, row.high) if known else row.possible
            name = _IDENTIFIED if known else _NOT_IDENTIFIED
            place = {"name": name, "x": cut, "n": row.n_outcomes, "value": row.value}
            rows.append(place | _span(*ends))
        alpha = next(iter(evaluations.values())).alpha if measure.startswith("false") else None
        # An interval of few outcomes can be so wide that it would leave no room for the others.
        shown = [row["value"] for row in rows]
        many = [row for row in rows if row["n"] >= _FEW] or rows
        shown += [row[name] for row in many for name in ("low", "high")]
        up = scaled(axis_ends([*shown, alpha], zero=form == PERCENT), form)
        used = used_colours(colours, rows)
        look, chosen = coloured(title, used, legend=len(used) > 1)
        base = data(rows).encode(x=alt.X("x", **across), **look)
        known = base.transform_filter("isValid(datum.value)")
        tips = tooltip(
            x=("from score", ".2~f"),
            name=" ",
            value=("estimate", form),
            **_at_all_times(form),
            n="known outcomes",
        )
        span = base.mark_rule(clip=True).encode(
            y=alt.Y("low", **up),
            y2="high",
            strokeWidth=alt.StrokeWidthValue(2, condition={"test": _UNKNOWN, "value": 9}),
            tooltip=tips,
        )
        points = known.mark_point(filled=True, opacity=1, size=60).add_params(chosen)
        charts.append(
            layered(
                title,
                span,
                known.mark_line(strokeWidth=1.2).encode(y=alt.Y("value", **up)),
                points.encode(y=alt.Y("value", **up), tooltip=tips),
                *bound_line(alpha, alpha_text(alpha), up, along="y"),
                height=200,
            )
        )
    return stacked(charts)


def calibration(bins: Sequence[Any]) -> Chart:
    """Draw the share of good outcomes against the recorded score.

    Parameters
    ----------
    bins
        What ``audit.calibration`` returns.
    """
    colours = {_CORRECTED: BLUE, _RECORDED: GREY}
    title = "Good outcomes against the recorded score"
    rows = []
    for part in bins:
        place = {"x": part.score, "n": part.n_outcomes, "of": part.n_people}
        rows.append(place | {"name": _RECORDED, "value": part.recorded} | _span(None, None))
        rows.append(place | {"name": _CORRECTED, "value": part.good} | _span(part.low, part.high))
    across = scaled(axis_ends(row["x"] for row in rows), ".2~f", "mean recorded score")
    ends = [row[name] for row in rows for name in ("value", "low", "high", "x")]
    up = scaled(axis_ends(ends), PERCENT)
    look, chosen = coloured(title, colours)
    base = data(rows).encode(x=alt.X("x", **across), **look)
    tips = {"name": " ", "x": ("mean score", ".3~f"), "value": ("good", PERCENT)}
    tips |= _at_all_times(PERCENT) | {"n": "known outcomes", "of": "applicants"}
    points = base.mark_point(filled=True, opacity=1, size=60).add_params(chosen)
    low, high = across["scale"].domain
    line = data([{"x": low, "y": low, "x2": high, "y2": high}])
    return layered(
        title,
        line.mark_rule(clip=True, **DASHED).encode(
            x=alt.X("x", **across), x2="x2", y=alt.Y("y", **up), y2="y2"
        ),
        base.mark_rule(clip=True, strokeWidth=1.6).encode(y=alt.Y("low", **up), y2="high"),
        points.encode(y=alt.Y("value", **up), tooltip=tooltip(**tips)),
    )


def drift(rows: Sequence[Any], *, alpha: float | None = None) -> Chart:
    """Draw scores, acceptances, mistakes and the stability of scores over the rounds.

    Parameters
    ----------
    rows
        What ``audit.drift`` returns.
    alpha
        The bound on mistakes.
    """
    at = [row.round for row in rows]

    def line(name: str, key: str, low: str = "", high: str = "") -> Row:
        ends = {"value": key, "low": low or key, "high": high or key}
        return {"name": name, "x": at} | {
            end: [getattr(row, field) for row in rows] for end, field in ends.items()
        }

    both = [line("mean score", "score"), line("accepted", "accepted")]
    bad = line("bad", "bad", "bad_low", "bad_high")
    limit = None if alpha is None else (alpha_text(alpha), [alpha] * len(at))
    charts = [
        draw_lines(
            "Scores and acceptances of applicants",
            both,
            {"mean score": BLUE, "accepted": ORANGE},
            PERCENT,
            legend=False,
            height=200,
        ),
        draw_lines(
            MISTAKES,
            [bad],
            {bad["name"]: RED},
            PERCENT,
            bound=limit,
            legend=False,
            height=200,
        ),
    ]
    if any(not math.isnan(row.stability) for row in rows):
        charts.append(
            draw_lines(
                "Population stability index of scores",
                [line("index", "stability")],
                {"index": PURPLE},
                NUMBER,
                bound=("changed", [CHANGED] * len(at)),
                legend=False,
                height=170,
            )
        )
    return stacked(charts)


def group_audit(audit: Any) -> Chart:
    """Draw the measures of groups three ways: as recorded, corrected, and without assumptions.

    Parameters
    ----------
    audit
        What ``audit.groups`` returns.
    """
    colours = {_RECORDED: GREY, _CORRECTED: BLUE, _ASSUMED: ORANGE}
    charts, of_groups = [], [row for row in audit.measured if row.group]
    pairs = dict.fromkeys((row.attribute, row.measure) for row in of_groups)
    for attribute, measure in pairs:
        mine = [r for r in of_groups if (r.attribute, r.measure) == (attribute, measure)]
        unit, form = (100, NUMBER) if measure == "calibration" else (1, PERCENT)
        rows = []
        for row in mine[:MOST_GROUPS]:
            named, ends = {"row": row.group}, _span(unit * row.low, unit * row.high)
            rows += [
                named | {"name": _RECORDED, "value": unit * row.recorded} | _span(None, None),
                named | {"name": _CORRECTED, "value": unit * row.corrected} | ends,
            ]
            if row.least < row.most:
                bounds = _span(unit * row.least, unit * row.most)
                rows.append(named | {"name": _ASSUMED, "value": None} | bounds)
        rows = [row for row in rows if any(rounded(row[n]) is not None for n in ("value", "low"))]
        if rows:
            points = " (points)" if measure == "calibration" else ""  # a difference of shares
            title = f"{MEASURES[measure].capitalize()}, by {attribute}{points}"
            charts.append(draw_dots(title, rows, used_colours(colours, rows), form))
    if not charts:
        raise InputError("the log has no groups that could be compared; name their columns.")
    return stacked(charts, [row.group for row in of_groups])


def _span(low: float | None, high: float | None) -> Row:
    return {"low": low, "high": high}


def _at_all_times(form: str) -> Row:
    return {"low": ("from", form), "high": ("to", form)}
