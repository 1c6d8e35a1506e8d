"""Rows as layers of Vega-Lite: the pieces that all charts are made of.

Names that users chose are values of rows or titles, never names of fields. Colours are those of
Okabe and Ito; text and axes have none of their own, so that the configuration of a page decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any
from zlib import crc32

import altair as alt
import numpy as np
from scipy.optimize import isotonic_regression

from fairchance.core.decisions import CertifiedRound
from fairchance.errors import InputError
from fairchance.plot.rows import (
    BY_STATUS,
    CERTIFIED,
    COMPLETE,
    INCOMPLETE,
    INCUMBENT,
    MOST,
    PILOT,
    SHADOW,
    WITHDRAWN,
    Row,
    freezes,
    restarts,
    rounded,
    spans,
)
from fairchance.words import percent

__all__ = [
    "BLUE",
    "DASHED",
    "GREEN",
    "GREY",
    "MISTAKES",
    "MOST_GROUPS",
    "NUMBER",
    "ORANGE",
    "PERCENT",
    "PURPLE",
    "RED",
    "STATUS",
    "Chart",
    "alpha_text",
    "axis_ends",
    "bound_line",
    "coloured",
    "data",
    "draw_bars",
    "draw_certificates",
    "draw_curves",
    "draw_dots",
    "draw_lines",
    "draw_points",
    "interval_tips",
    "is_grey",
    "layered",
    "over_rounds",
    "per_applicant",
    "scaled",
    "short_names",
    "stacked",
    "tooltip",
    "used_colours",
]

Chart = Any  # of altair, where layered and stacked charts have different types
BLUE, ORANGE, GREEN, RED, PURPLE = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7"
GREY = "#8c8c8c"
STATUS = {CERTIFIED: GREEN, PILOT: ORANGE, WITHDRAWN: RED, COMPLETE: BLUE, INCOMPLETE: GREY}
STATUS |= {SHADOW: PURPLE, INCUMBENT: BLUE}
PERCENT, NUMBER = ".1%", ",.4~r"
MISTAKES = "Mistakes: bad among the accepted"
MOST_GROUPS = 40
DASHED: Any = {"strokeDash": [5, 3], "strokeWidth": 1.5}
_WIDTH, _HEIGHT = 640, 280
_LINE = 15  # pixels of a line of text
_NAMES = 240  # pixels for names of rows
_MOST_HOVERED = 12  # values in one tooltip
_FROZEN, _AGAIN = "ranking frozen", "tests began again"


def is_grey(colour: str) -> bool:
    """Return whether a colour such as "#8c8c8c" is a shade of grey."""
    return colour[1:3] == colour[3:5] == colour[5:7]


def data(rows: Iterable[Row]) -> Any:
    """Return a chart of rows that says nothing yet about how to draw them."""
    known = ({key: rounded(value) for key, value in row.items()} for row in rows)
    return alt.Chart(alt.InlineData(values=tuple(known)))  # lists would be copied many times


def layered(title: str, *layers: Any, height: float = _HEIGHT) -> Chart:
    """Return layers as one chart with a title."""
    shown = alt.Title(title, anchor="start", fontSize=13, offset=10)
    return alt.layer(*layers, title=shown, width=_WIDTH, height=height)


def stacked(charts: Sequence[Chart], names: Iterable[str] = ()) -> Chart:
    """Return charts below each other, and for pages how much room names on the left need."""
    if len(charts) == 1:
        return charts[0]
    below = alt.vconcat(*charts, spacing=28).resolve_scale(color="independent")
    room = max(90, *(min(_NAMES, 40 + 7 * len(name)) for name in names), 0)
    return below.properties(usermeta={"axis": room})


def axis_ends(values: Iterable[Any], *, zero: bool = False) -> list[float]:
    """Return the ends of an axis that shows all known values, with a little room."""
    known = [v for v in values if rounded(v) is not None] + [0.0] * zero
    low, high = (float(min(known)), float(max(known))) if known else (0.0, 1.0)
    room = 0.07 * (high - low) or 0.05 * abs(high) or 0.05
    return [0.0 if zero and low == 0.0 else low - room, high + room]


def scaled(domain: Sequence[float], form: str, title: str | None = None) -> Row:
    """Return the options of an axis with numbers or percentages."""
    wide = form == PERCENT and domain[1] - domain[0] > 0.06
    axis = alt.Axis(title=title, format=".0%" if wide else form, tickCount=5)
    scale = alt.Scale(domain=rounded(list(domain)), nice=False, zero=False)
    return {"type": "quantitative", "scale": scale, "axis": axis}


def over_rounds(first: float, last: float, **scale: Any) -> Row:
    """Return the options of an axis of rounds."""
    ends = [first, last] if last > first else [first - 1, first + 1]
    axis = alt.Axis(title="round", format="d", tickMinStep=1, grid=False, labelSeparation=8)
    whole = alt.Scale(domain=ends, nice=False, zero=False, **scale)
    return {"type": "quantitative", "scale": whole, "axis": axis}


def coloured(title: str, colours: Mapping[str, str], *, legend: bool = True) -> tuple[Row, Any]:
    """Return colour and opacity by name, and what a click in the legend chooses.

    The legend is below and has as many columns as fit. The choice has a name of its own in each
    chart, so that charts can be stacked.
    """
    wide = 30 + min(300, 7 * max(map(len, colours), default=0))  # pixels of the longest name
    below = alt.Legend(
        title=None,
        orient="bottom",
        columns=alt.ExprRef(f"max(1, floor(width / {wide}))"),
        labelLimit=alt.ExprRef(f"min({wide}, width) - 20"),
        symbolLimit=200,
        symbolOpacity=1,
        rowPadding=1,
    )
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    colour = alt.Color("name", type="nominal", scale=scale, legend=below if legend else None)
    name = f"chosen_{crc32(title.encode()):x}"
    chosen = alt.selection_point(name=name, fields=["name"], bind="legend", toggle="true")
    seen = alt.OpacityValue(0.12, condition={"param": name, "value": 1})
    return {"color": colour, "opacity": seen} if legend else {"color": colour}, chosen


def used_colours(colours: Mapping[str, str], rows: Iterable[Row]) -> dict[str, str]:
    """Return the colours of the names that rows have."""
    names = {row["name"] for row in rows}
    return {name: colour for name, colour in colours.items() if name in names}


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Return names up to a colon where that is enough to tell them apart."""
    first = {name: name.partition(": ")[0] for name in names}
    alike = Counter(first.values())
    return {name: short if alike[short] == 1 else name for name, short in first.items()}


def tooltip(**fields: Any) -> list[alt.Tooltip]:
    """Return a tooltip with the title of each field, and the format of those that are numbers."""
    return [
        alt.Tooltip(name, type="nominal", title=title)
        if isinstance(title, str)
        else alt.Tooltip(name, type="quantitative", title=title[0], format=title[1])
        for name, title in fields.items()
    ]


def interval_tips(form: str) -> Row:
    """Return what a tooltip says about the ends of an interval."""
    return {"low": ("interval from", form), "high": ("to", form)}


def per_applicant(currency: str) -> str:
    """Return the title of what was earned."""
    return f"Earned per applicant{f' ({currency})' if currency else ''}"


def alpha_text(alpha: float | None) -> str:
    """Return the name of a line at α."""
    return "" if alpha is None else f"α = {percent(alpha)}"


def bound_line(at: float | None, text: str, options: Row, *, along: str = "x") -> list[Any]:
    """Return a dashed line at a bound with its name, in the page's own colours."""
    if at is None:
        return []
    base, (low, high) = data([{"at": at, "text": text}]), options["scale"].domain
    if along == "y":
        base = base.encode(y=alt.Y("at", **options))
        name = base.mark_text(align="left", dx=3, dy=-7, x=0).encode(text="text:N")
    else:
        place = (at - low) / (high - low)
        side = "left" if place < 0.2 else "right" if place > 0.8 else "center"
        base = base.encode(x=alt.X("at", **options))
        name = base.mark_text(align=side, dy=-7, y=0).encode(text="text:N")
    return [base.mark_rule(**DASHED), name]


def _with_room(
    rows: Sequence[Row], domain: Sequence[float], height: float, above: float = 0
) -> list[Row]:
    """Return rows with a height ``at`` for their label, near ``y`` and clear of other labels.

    ``above`` is how far above ``y`` labels should be, in pixels.
    """
    low, high = domain
    places = _spread([height * (high - row["y"]) / (high - low) - above for row in rows], height)
    up = [high - place * (high - low) / height for place in places]
    return [row | {"at": at} for row, at in zip(rows, up, strict=True)]


def _spread(wanted: Sequence[float], size: float) -> list[float]:
    """Return places between 0 and ``size`` near the wanted ones, a line of text apart.

    Examples
    --------
    >>> _spread([50, 52, 10], 100)
    [43.5, 58.5, 10.0]
    """
    if not wanted:
        return []
    order = np.argsort(wanted, kind="stable")
    before = _LINE * np.arange(len(order))
    free = isotonic_regression(np.asarray(wanted, float)[order] - before).x
    places = np.clip(free, 0.0, max(0.0, size - _LINE * (len(order) - 1))) + before
    return [float(place) for place in places[np.argsort(order, kind="stable")]]


def draw_lines(
    title: str,
    rows: Iterable[Row],
    colours: Mapping[str, str],
    form: str,
    *,
    bound: tuple[str, Sequence[float]] | None = None,
    x_title: str = "round",
    legend: bool = True,
    height: float = _HEIGHT,
) -> Chart:
    """Draw a line for each row; coloured lines are named at their ends, others are grey.

    Rows have a ``name`` and the lists ``x``, ``value``, ``low`` and ``high``; ``bound`` is a name
    and its value at each x. A click in the legend isolates a line and shows its interval.
    """
    rows = [row | {"named": not is_grey(colours[row["name"]])} for row in rows]
    rows.sort(key=lambda row: bool(row["named"]))  # grey lines below
    short, at = short_names(colours), rows[0]["x"]
    longest = max((len(short[row["name"]]) for row in rows if row["named"]), default=0)
    room = f"clamp(0.3 * width, 84, {min(230, 24 + 6.5 * longest)})"  # pixels for names of lines
    ends_at = alt.ExprRef(f"width - {room}")
    options: Row = {"type": "ordinal", "sort": None, "scale": alt.Scale(range=[0, ends_at])}
    options["axis"] = alt.Axis(title=x_title, labelAngle=0)
    if not isinstance(at[0], str):
        options = over_rounds(at[0], at[-1], range=[0, ends_at])
    limits = bound[1] if bound else []
    domain = axis_ends([*(v for r in rows for v in r["value"]), *limits], zero=not legend)
    x, up = alt.X("x", **options), scaled(domain, form)
    look, chosen = coloured(title, colours, legend=legend)
    picked: Any = {"param": chosen.name, "empty": False}
    named: Any = {"test": "datum.named"}
    strong = [c | {"value": 1} for c in (named, *[picked] * legend)]
    base = data(rows).transform_flatten(["x", "value", "low", "high"]).encode(x=x, **look)
    line = base.mark_line(clip=True, point=len(at) == 1).encode(
        y=alt.Y("value", **up),
        strokeWidth=alt.StrokeWidthValue(1.2, condition=named | {"value": 2.5}),
        strokeOpacity=alt.StrokeOpacityValue(0.45, condition=strong),
    )
    shown = [row for row in rows if len(rows) <= _MOST_HOVERED or row["named"]][::-1]
    values = [
        {"x": place} | {f"y{i}": row["value"][t] for i, row in enumerate(shown)}
        for t, place in enumerate(at)
    ]
    tips = {f"y{i}": (row["name"], form) for i, row in enumerate(shown)}
    wide = alt.ExprRef(f"(width - {room}) / {max(1, len(at) - 1)}")  # no gap between rounds
    hover = data(values).mark_rule(opacity=0, strokeWidth=wide)
    layers = [line, hover.encode(x=x, tooltip=tooltip(x=x_title, **tips))]
    if legend:
        band = base.transform_filter(picked).mark_area(opacity=0.2, clip=True)
        layers[0] = line.add_params(chosen)
        layers.insert(0, band.encode(y=alt.Y("low", **up), y2="high:Q"))
    ends = [
        {"name": row["name"], "text": short[row["name"]], "x": at[-1], "y": known[-1]}
        for row in rows
        if row["named"] and (known := [v for v in row["value"] if rounded(v) is not None])
    ]
    if bound:
        # One line if it is level, so that its dashes can be seen.
        every = range(len(at)) if len({*limits}) > 1 else [0, len(at) - 1]
        steps = [
            {"x": at[a], "y": limits[a], "x2": at[b], "y2": limits[b]} for a, b in pairwise(every)
        ]
        level = data(steps).mark_rule(**DASHED)
        layers.append(level.encode(x=x, x2="x2", y=alt.Y("y", **up), y2="y2"))
        ends.append({"text": bound[0], "x": at[-1], "y": limits[-1]})
    labels = data(_with_room(ends, domain, height)).encode(x=x, y=alt.Y("at", **up))
    dots = labels.transform_filter("isValid(datum.name)").mark_point(
        filled=True, size=45, xOffset=8
    )
    text = labels.mark_text(align="left", dx=14, limit=alt.ExprRef(f"{room} - 16"))
    layers += [dots.encode(**look), text.encode(text="text:N")]
    return layered(title, *layers, height=height)


def draw_points(
    title: str,
    rows: Iterable[Row],
    colours: Mapping[str, str],
    y_title: str,
    form: str,
    alpha: float | None,
) -> Chart:
    """Draw a point for each row: mistakes, and what was earned.

    Rows have ``name``, ``tip``, ``x``, ``y`` and the ends of their intervals, ``x_low`` and so on.
    Those with a ``label`` show it, with their intervals if they have any.
    """
    rows = list(rows)
    shown = {axis: [row[axis] for row in rows] for axis in "xy"}
    for row in rows:
        if row.get("label") and "y_low" in row:
            for axis, values in shown.items():
                values += [row[f"{axis}_low"], row[f"{axis}_high"]]
    low, high = axis_ends([*shown["x"], alpha])
    xs, ys = [max(0.0, low), high], axis_ends(shown["y"])
    across, up = scaled(xs, PERCENT, MISTAKES), scaled(ys, form, y_title)
    x, y = alt.X("x", **across), alt.Y("y", **up)
    look, chosen = coloured(title, colours, legend=len(colours) > 1)
    base = data(rows).encode(x=x, y=y, **look)
    either: Any = {"or": ["isValid(datum.label)", {"param": chosen.name, "empty": False}]}
    ranges = base.transform_filter(either).mark_rule(clip=True, strokeWidth=1.6)
    tips = {"x_low": ("interval from", PERCENT), "x_high": ("to", PERCENT), "y": (y_title, form)}
    points = base.mark_point(filled=True, opacity=1, size=80).add_params(chosen)
    layers = [
        *bound_line(alpha, f"{alpha_text(alpha)} allowed", across),
        points.encode(tooltip=tooltip(tip=" ", x=("mistakes", PERCENT), **tips)),
    ]
    if alpha is not None:
        beyond = data([{"x": alpha, "x2": high}]).mark_rect(color=RED, opacity=0.07)
        layers.insert(0, beyond.encode(x=x, x2="x2"))
    if rows and "y_low" in rows[0]:
        layers.insert(-1, ranges.encode(x=alt.X("x_low", **across), x2="x_high"))
        layers.insert(-1, ranges.encode(y=alt.Y("y_low", **up), y2="y_high"))
    for row in _with_room([r for r in rows if r.get("label")], ys, _HEIGHT, above=12):
        # The name is on the side with more room, at the end of a short line.
        right = row["x"] < xs[0] + 0.55 * (xs[1] - xs[0])
        row["end"] = row["x"] + (0.03 if right else -0.03) * (xs[1] - xs[0])
        side = {"align": "left", "dx": 3} if right else {"align": "right", "dx": -3}
        label, limit = data([row]), alt.ExprRef("0.42 * width")
        name = label.mark_text(limit=limit, **side).encode(text="label:N")
        layers += [
            label.mark_rule().encode(x=x, x2="end", y=y, y2="at", **look),
            name.encode(x=alt.X("end", **across), y=alt.Y("at", **up)),
        ]
    return layered(title, *layers)


def draw_dots(
    title: str,
    rows: Sequence[Row],
    colours: Mapping[str, str],
    form: str,
    alpha: float | None = None,
) -> Chart:
    """Draw a point with its interval for each row, beside its name ``row``; ``name`` colours it."""
    known = [row["value"] for row in rows if rounded(row["value"]) is not None] or [0.0]
    ends = [v for row in rows for v in (row["low"], row["high"]) if rounded(v) is not None]
    low, high = axis_ends([*known, *ends, alpha], zero=form == PERCENT)
    if form == PERCENT and max(known) <= 1:
        high = min(1.02, high)
        if min(known) >= 0:
            low = -0.02 * high  # a dot at 0 must not cover the name of its row
    options = scaled([low, high], form)
    names, kinds = (list(dict.fromkeys(row[key] for row in rows)) for key in ("row", "name"))
    apart = len(names) < len(rows)  # several rows with one name
    limit = alt.ExprRef(f"min({_NAMES - 20}, 0.7 * width)")  # less on a small screen
    axis = alt.Axis(title=None, labelLimit=limit, grid=False, domain=False, ticks=False)
    look, chosen = coloured(title, colours, legend=apart)
    placed = [row | {"place": kinds.index(row["name"])} for row in rows]
    # Vega sorts names by an expression, which fails if one of them is "constructor" or the like;
    # so names have an explicit order, and places are numbers.
    scale = alt.Scale(domain=names)
    each = data(placed).encode(y=alt.Y("row", type="nominal", scale=scale, axis=axis), **look)
    if apart:
        each = each.encode(yOffset=alt.YOffset("place", type="ordinal", sort="ascending"))
    dots = each.mark_point(filled=True, opacity=1, size=55)
    dots = dots.add_params(chosen) if apart else dots
    tips = {"row": " ", "name": "  ", "value": ("value", form)} | interval_tips(form)
    tips |= {"k": "count", "of": "of"} if "k" in rows[0] else {}
    return layered(
        title,
        each.mark_rule(strokeWidth=1.6, clip=True).encode(x=alt.X("low", **options), x2="high"),
        dots.encode(x=alt.X("value", **options), tooltip=tooltip(**tips)),
        *bound_line(alpha, alpha_text(alpha), options),
        height=max(46, 18 * len(names), 11 * len(rows)),
    )


def draw_bars(
    title: str, rows: Sequence[Row], parts: Mapping[str, tuple[str, str]], of: str
) -> Chart:
    """Draw stacked bars over rounds: for each name a count and its colour, as shares of a count.

    With ``of`` the number of rounds, they are means of a round.
    """
    bars = []
    for row in rows:
        below = 0.0
        for name, (count, _) in parts.items():
            value = row[count] / (row[of] or 1)
            place = {key: row[key] for key in ("from", "to", "rounds")}
            bars.append(place | {"name": name, "y": below, "y2": below + value, "value": value})
            below += value
    form = NUMBER if of == "n" else PERCENT
    top = max(bar["y2"] for bar in bars) or 1.0
    look, chosen = coloured(title, {name: colour for name, (_, colour) in parts.items()})
    bar = data(bars).mark_bar().add_params(chosen).encode(
        x=alt.X("from", **over_rounds(rows[0]["from"], rows[-1]["to"])),
        x2="to",
        y=alt.Y("y", **scaled([0.0, 1.05 * top], form)),
        y2="y2",
        tooltip=tooltip(rounds="round", name=" ", value=("in a round", form)),
        **look,
    )  # fmt: skip
    return layered(title, bar, height=200)


def draw_certificates(records_by_group: Mapping[Any, Sequence[CertifiedRound]]) -> Chart:
    """Draw how far certificates reach in each round, and the evidence for the next one."""
    charts = []
    for group, records in records_by_group.items():
        of = "" if group is None else f", {group}"
        last = [records[span][-1] for span in spans(len(records), 2 * MOST)]
        at = [record.round for record in last]
        needed = [(rounded(r.next_log_wealth), rounded(r.next_threshold)) for r in last]
        share = [None if None in both else max(0.0, both[0] / both[1]) for both in needed]
        evidence = {"name": "so far", "x": at, "value": share, "low": share, "high": share}
        title = f"Evidence for the next certificate{of}"
        enough, blue = ("enough", [1.0] * len(at)), {"so far": BLUE}
        charts += [
            _ladder(f"Best share accepted by score{of}", records, last),
            draw_lines(title, [evidence], blue, PERCENT, bound=enough, legend=False, height=170),
        ]
    return stacked(charts)


def _ladder(title: str, records: Sequence[CertifiedRound], last: Sequence[CertifiedRound]) -> Chart:
    ends_before = [records[0].round - 1, *(one.round for one in last[:-1])]
    rows = [
        {name: getattr(one, name) for name in ("round", "share", "certified_from", "certified_to")}
        | {"name": BY_STATUS.get(one.status, PILOT)}
        | {"from": before + 0.5, "to": one.round + 0.5}
        for before, one in zip(ends_before, last, strict=True)
    ]
    found = ((_FROZEN, freezes(records)), (_AGAIN, restarts(records)))
    marks = [{"at": t - 0.5, "name": name} for name, when in found for t in when]
    colours = used_colours(STATUS | {_FROZEN: BLUE, _AGAIN: RED}, (*rows, *marks))
    look, chosen = coloured(title, colours)
    ends = axis_ends((row[key] for row in rows for key in ("share", "certified_to")), zero=True)
    across, up = over_rounds(rows[0]["from"], rows[-1]["to"]), scaled(ends, PERCENT)
    base = data(rows).encode(x=alt.X("round", **across), y=alt.Y("share", **up))
    reach = base.transform_filter("isValid(datum.certified_to)")
    reach = reach.mark_bar(color=GREEN, opacity=0.25).encode(x=alt.X("from", **across), x2="to")
    lines = data(marks).mark_rule(strokeDash=[2, 3], strokeWidth=1.5)
    tips = {"certified_from": ("certified from", PERCENT), "certified_to": ("to", PERCENT)}
    tips |= {"share": ("deployed", PERCENT)}
    points = base.mark_point(filled=True, opacity=1, size=45).add_params(chosen)
    return layered(
        title,
        reach.encode(y=alt.Y("certified_from", **up), y2="certified_to"),
        lines.encode(x=alt.X("at", **across), tooltip=tooltip(name=" "), **look),
        base.mark_line(color=GREY, strokeWidth=1),
        points.encode(tooltip=tooltip(round="round", name=" ", **tips), **look),
        height=220,
    )


def draw_curves(
    records_by_group: Mapping[Any, Sequence[CertifiedRound]],
    alpha: float | None,
    currency: str = "",
) -> Chart:
    """Draw what the certified rule of the last round would earn at other bounds than α."""
    colours = {"certified": GREEN, "only estimated": ORANGE}
    charts = []
    for group, records in records_by_group.items():
        points = [point for point in records[-1].curve if not np.isnan(point.earned)]
        if not points:
            continue
        rows = [
            vars(p) | {"name": "certified" if p.certified else "only estimated"} for p in points
        ]
        bounds = axis_ends([*(row["bound"] for row in rows), alpha])
        across = scaled(bounds, PERCENT, "bound on mistakes")
        up = scaled(axis_ends((row["earned"] for row in rows), zero=True), NUMBER)
        base = data(rows).encode(x=alt.X("bound", **across), y=alt.Y("earned", **up))
        tips = {"share": ("accepted by score", PERCENT), "earned": ("earned", NUMBER)}
        tips["estimated_fdr"] = ("estimated mistakes", PERCENT)
        title = f"{per_applicant(currency)} at other bounds"
        title += "" if group is None else f", {group}"
        used = used_colours(colours, rows)
        look, chosen = coloured(title, used, legend=len(used) > 1)
        charts.append(
            layered(
                title if len(used) > 1 else f"{title} ({', '.join(used)})",
                base.mark_line(color=GREY, strokeWidth=1.5),
                base.mark_point(filled=True, opacity=1, size=70)
                .encode(tooltip=tooltip(name=" ", bound=("bound", PERCENT), **tips), **look)
                .add_params(chosen),
                *bound_line(alpha, alpha_text(alpha), across),
                height=220,
            )
        )
    if not charts:
        raise InputError("too few outcomes are known for a curve; observe more of them.")
    return stacked(charts)
