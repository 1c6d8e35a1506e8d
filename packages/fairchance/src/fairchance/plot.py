"""Charts of classifiers, programs and results in Vega-Lite; reports and notebooks share them.

``x`` is a fitted classifier, a ledger's ``Program`` or ``Summary``, or ``Results``. It is first
turned into plain rows, and what draws knows rows only. Names that users chose are values of rows
or titles, never names of fields. Colours are those of Okabe and Ito; text and axes have none of
their own, so that the configuration of a page decides.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from scipy.optimize import isotonic_regression

from fairchance.core.metrics import exact_interval
from fairchance.core.utility import Accuracy, Utility
from fairchance.errors import InputError, to_install
from fairchance.people.store import NEVER, PENDING
from fairchance.words import percent
from fairchance_lab.experiments import tables
from fairchance_lab.experiments.certificates import certified_methods, freezes, records_of, restarts
from fairchance_lab.experiments.results import Results
from fairchance_lab.experiments.tables import Estimate, mean_known, over_repetitions

try:
    import altair as alt
except ImportError as missing:  # pragma: no cover (an extra)
    raise InputError(f"charts need altair; {to_install('report')} installs it.") from missing

__all__ = ["by_setting", "calibration", "certificate", "compare", "coverage", "curve", "cut_offs"]
__all__ += ["drift", "group_audit", "groups", "metric", "outcomes", "rounds", "save"]
__all__ += ["spans", "trade_off"]

Chart = Any  # of altair, where layered and stacked charts have different types
Row = dict[str, Any]
_BLUE, _ORANGE, _GREEN, _RED, _PURPLE = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7"
_GREY = "#8c8c8c"
_COLOURS = (_GREEN, _BLUE, _RED, _PURPLE)
_WIDTH, _HEIGHT = 640, 280
_LINE = 15  # pixels of a line of text
_NAMES = 240  # pixels for names of rows
_MOST = 60  # rounds shown one by one; more are shown in spans
_MOST_HOVERED = 12  # values in one tooltip
_MOST_GROUPS = 40
_MOST_LABELS = 8  # points with a name each; of more, only the coloured ones and the worst have one
_DASHED: Any = {"strokeDash": [5, 3], "strokeWidth": 1.5}
_PERCENT, _NUMBER = ".1%", ",.4~r"
_CERTIFIED, _PILOT, _INCOMPLETE = "certified", "no promise yet", "outcomes still to come"
_FROZEN, _AGAIN, _ROUND = "ranking frozen", "tests began again", "all outcomes known"
_STATUS = {_CERTIFIED: _GREEN, _PILOT: _ORANGE, _ROUND: _BLUE, _INCOMPLETE: _GREY}
_STATES = {"good": _GREEN, "bad": _RED, "never known": _ORANGE, "still to come": _GREY}
_MISTAKES = "Mistakes: bad among the accepted"
_TITLES = {
    "revenue": "Earned in each round",
    "cumulative_revenue": "Earned so far",
    "fdr": _MISTAKES,
    "acceptance_rate": "Accepted, share of applicants",
    "exploit_share": "Known well enough, share of applicants",
    "explored_share": "Explored, share of applicants",
    "selection_rate": "Accepted",
    "false_discovery_rate": _MISTAKES,
    "true_positive_rate": "Good applicants accepted",
}
_GROUP_TITLES = {
    "selection_rate": "Accepted",
    "false_discovery_rate": "Bad among the accepted",
    "bad_rate": "Bad among all applicants",
    "true_positive_rate": "Good applicants accepted",
    "calibration": "Mean score minus good (points)",  # a difference of shares
}
_IDENTIFIED, _NOT_IDENTIFIED = "estimate, interval at all times", "not identified: bounds"
_UNKNOWN = "!isValid(datum.value)"
_RECORDED, _CORRECTED, _ASSUMED = "as recorded", "corrected", "without assumptions"
_FEW = 100  # known outcomes below which the interval of a cut-off does not set the axis
_CHANGED = 0.25  # a stability index from which on a population is called changed
_THOUSAND = 1000  # metrics of revenue are in thousands, charts in whole amounts
_AMOUNTS = ("revenue", "cumulative_revenue", "weighted", "effective")


# Classifiers, programs and results as rows -----------------------------------------------------


@dataclass(frozen=True)
class _Run:
    """One run: counts of each round and group, and the records of certificates by group."""

    rounds: list[Row]
    groups: list[Row]
    records: dict[Any, list[Row]]
    alpha: float | None
    utility: Utility | None

    @property
    def spans(self) -> list[Row]:
        """Counts summed over spans of rounds, with mistakes, status and places on the axis."""
        rows = []
        for span in spans(len(self.rounds)):
            part = self.rounds[span]
            first, last = part[0]["round"], part[-1]["round"]
            names = ("people", "accepted", "explored", "good", "bad", "never", "pending")
            row = {name: sum(one[name] for one in part) for name in names}
            row |= _rate(row["bad"], row["good"] + row["bad"]) | {"n": len(part)}
            row |= {"round": (first + last) / 2, "from": first - 0.42, "to": last + 0.42}
            row["rounds"] = f"{first}" if first == last else f"{first} to {last}"
            promised = all(one["certified"] for one in part)
            row["name"] = (_CERTIFIED if promised else _PILOT) if self.records else _ROUND
            rows.append(row | {"covered": part[-1]["covered"]})
        return rows


def _run(x: Any) -> _Run:
    if hasattr(x, "ledger") and hasattr(x, "summary"):
        x = x.summary()
    run = _of_summary(x) if hasattr(x, "promise") else _of_classifier(x)
    if not run.rounds:
        raise InputError("there are no rounds to draw yet; decide a batch first.")
    return run


def _of_classifier(clf: Any) -> _Run:
    if not hasattr(clf, "_head_counts") or hasattr(clf, "decisions"):
        raise InputError(
            f"a chart needs results, a program, its summary or a fitted classifier with two "
            f"outcomes, got {type(clf).__name__}."
        )
    parts = [(rows["round"], rows["outcome"], rows["group"]) for rows in clf._people.parts]
    number, outcome, group = (np.concatenate(column) for column in zip(*parts, strict=True))

    def counted(here: Any) -> Row:
        codes = {"good": 1, "bad": 0, "never": NEVER, "pending": PENDING}
        return {name: int((outcome[here] == code).sum()) for name, code in codes.items()}

    records: dict[int, list[Row]] = {}
    for record in clf.rounds_:
        records.setdefault(record.round, []).append(vars(record))
    heads = clf._head_counts.view()
    rounds = [
        {"round": t, "people": n, "accepted": accepted, "explored": explored}
        | counted(number == t)
        | _promised(records[t])
        for t, (n, accepted, explored) in enumerate(heads.sum(axis=2).tolist(), start=1)
    ]
    groups, known = [], clf._intake.sensitive
    if known is not None:
        each = [(", ".join(known.titles), known.labels, np.arange(known.n_groups))]
        if clf.attributes == "side_by_side":
            each = list(zip(known.titles, known.values, known.level_of, strict=True))
        told = clf.group_mode != "audit"  # there, outcomes are kept without groups
        for attribute, values, level_of in each:
            for level, value in enumerate(values.tolist()):
                n, accepted, _ = heads[:, :, level_of == level].sum(axis=(0, 2)).tolist()
                row = {"attribute": attribute, "group": str(value), "people": n}
                mine = counted((number > 0) & (level_of[group] == level) & told)
                groups.append(row | {"accepted": accepted} | mine)
    by_group = _by_group(records.values())
    return _Run(rounds, groups, by_group, clf.bound_, clf.utility or Accuracy())


def _of_summary(summary: Any) -> _Run:
    def counted(one: Any) -> Row:
        seen, row = one.outcomes, {"people": one.n_people, "accepted": one.n_accepted}
        row |= {"good": seen.good, "bad": seen.bad, "never": seen.indeterminate}
        return row | {"explored": one.n_explored, "pending": seen.pending}

    rounds = [
        counted(one) | {"round": one.round} | _promised(one.records) for one in summary.rounds
    ]
    groups = [
        counted(one)
        | {"attribute": one.attribute, "group": "(erased)" if one.group is None else one.group}
        for one in summary.groups
    ]
    by_group = _by_group(one.records for one in summary.rounds)
    return _Run(rounds, groups, by_group, summary.promise.alpha, summary.promise.utility)


def _promised(records: Sequence[Mapping[str, Any]]) -> Row:
    """Return whether a round is certified, and the share that is known well enough.

    That is the share in the exploit region or, with certificates, the largest certified share.
    """
    certified = all(record.get("status") == _CERTIFIED for record in records)
    n = sum(record["n_people"] for record in records)
    known = sum(
        record.get("n_exploit_region", n_of * (_number(record.get("certified_to")) or 0.0))
        for record in records
        for n_of in [record["n_people"]]
    )
    return {"certified": certified, "covered": known / n if n else None}


def _by_group(rounds: Iterable[Iterable[Mapping[str, Any]]]) -> dict[Any, list[Row]]:
    """Return the records of certificates by the name of their group, None for all applicants."""
    found: dict[Any, list[Row]] = {}
    for record in (record for records in rounds for record in records):
        if "log_wealth" in record:
            group = record["group"]
            name = ", ".join(map(str, group)) if isinstance(group, list | tuple) else group
            found.setdefault(None if name is None else str(name), []).append(dict(record))
    return found


def spans(n: int, most: int = _MOST) -> list[slice]:
    """Return a slice for each of n rounds or, if there are more than ``most``, equal spans.

    Examples
    --------
    >>> len(spans(60)), len(spans(500)), spans(500)[0]
    (60, 56, slice(0, 9, None))
    """
    size = math.ceil(n / most) or 1
    return [slice(at, min(at + size, n)) for at in range(0, n, size)]


def _rate(k: int, n: int) -> Row:
    low, high = exact_interval(k, n) if n else (None, None)
    return {"value": k / n if n else None, "low": low, "high": high, "k": k, "of": n}


def _estimated(estimate: Estimate, unit: float = 1) -> Row:
    parts = {"value": estimate.mean, "low": estimate.low, "high": estimate.high}
    return {name: (unit * np.asarray(part)).tolist() for name, part in parts.items()}


def _unit(metric: str) -> int:
    return _THOUSAND if metric.endswith("revenue") else 1


def _labels(results: Results) -> dict[str, str]:
    """Return the name of each method for readers; all differ."""
    names = results.about.get("labels", {})
    labels = {name: str(names.get(name, name)) for name in results.methods}
    return labels if len({*labels.values()}) == len(labels) else {n: n for n in labels}


def _short(names: Iterable[str]) -> dict[str, str]:
    """Return names up to a colon where that is enough to tell them apart."""
    first = {name: name.partition(": ")[0] for name in names}
    alike = Counter(first.values())
    return {name: short if alike[short] == 1 else name for name, short in first.items()}


def _verdict(results: Results) -> Any:
    from fairchance_lab.experiments.verdict import find_verdict  # noqa: PLC0415 - needs the ledger

    return find_verdict(results)


def _colours(results: Results, highlight: Sequence[str] | None) -> dict[str, str]:
    """Return the colour of each method by its label: at most four have one, others are grey.

    Without ``highlight`` these are the best method with certificates, the best, the best that does
    not explore, and the yardstick; if some of them are the same or missing, the worst and those
    that earned most, too.
    """
    labels = _labels(results)
    if highlight is None:
        found = _verdict(results)
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
    return chosen | {label: _GREY for label in labels.values() if label not in chosen}


# Rows as layers --------------------------------------------------------------------------------


def _number(value: Any) -> Any:
    """Return a number with five significant digits, None if unknown; other values as they are."""
    if isinstance(value, list):
        return [_number(one) for one in value]
    if isinstance(value, float):
        return float(f"{value:.5g}") if math.isfinite(value) else None
    return value


def _data(rows: Iterable[Mapping[str, Any]]) -> Any:
    rounded = ({key: _number(value) for key, value in row.items()} for row in rows)
    return alt.Chart(alt.InlineData(values=tuple(rounded)))  # lists would be copied many times


def _layer(title: str, *layers: Any, height: float = _HEIGHT) -> Chart:
    shown = alt.Title(title, anchor="start", fontSize=13, offset=10)
    return alt.layer(*layers, title=shown, width=_WIDTH, height=height)


def _stacked(charts: Sequence[Chart], names: Iterable[str] = ()) -> Chart:
    """Return charts below each other, and for pages how much room names on the left need."""
    if len(charts) == 1:
        return charts[0]
    below = alt.vconcat(*charts, spacing=28).resolve_scale(color="independent")
    room = max(90, *(min(_NAMES, 40 + 7 * len(name)) for name in names), 0)
    return below.properties(usermeta={"axis": room})


def _domain(values: Iterable[Any], *, zero: bool = False) -> list[float]:
    """Return the ends of an axis that shows all known values, with a little room."""
    known = [v for v in values if _number(v) is not None] + [0.0] * zero
    low, high = (float(min(known)), float(max(known))) if known else (0.0, 1.0)
    room = 0.07 * (high - low) or 0.05 * abs(high) or 0.05
    return [0.0 if zero and low == 0.0 else low - room, high + room]


def _scaled(domain: Sequence[float], form: str, title: str | None = None) -> Row:
    """Return the options of an axis with numbers or percentages."""
    wide = form == _PERCENT and domain[1] - domain[0] > 0.06
    axis = alt.Axis(title=title, format=".0%" if wide else form, tickCount=5)
    scale = alt.Scale(domain=_number(list(domain)), nice=False, zero=False)
    return {"type": "quantitative", "scale": scale, "axis": axis}


def _over_rounds(first: float, last: float, **scale: Any) -> Row:
    """Return the options of an axis of rounds."""
    ends = [first, last] if last > first else [first - 1, first + 1]
    axis = alt.Axis(title="round", format="d", tickMinStep=1, grid=False, labelSeparation=8)
    whole = alt.Scale(domain=ends, nice=False, zero=False, **scale)
    return {"type": "quantitative", "scale": whole, "axis": axis}


def _named(title: str, colours: Mapping[str, str], *, legend: bool = True) -> tuple[Row, Any]:
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


def _tips(**fields: Any) -> list[alt.Tooltip]:
    """Return a tooltip with the title of each field, and the format of those that are numbers."""
    return [
        alt.Tooltip(name, type="nominal", title=title)
        if isinstance(title, str)
        else alt.Tooltip(name, type="quantitative", title=title[0], format=title[1])
        for name, title in fields.items()
    ]


def _ends(form: str) -> Row:
    return {"low": ("95 % from", form), "high": ("to", form)}


def _alpha(alpha: float | None) -> str:
    return "" if alpha is None else f"α = {percent(alpha)}"


def _bound(at: float | None, text: str, options: Row, *, along: str = "x") -> list[Any]:
    """Return a dashed line at a bound with its name, in the page's own colours."""
    if at is None:
        return []
    base, (low, high) = _data([{"at": at, "text": text}]), options["scale"].domain
    if along == "y":
        base = base.encode(y=alt.Y("at", **options))
        name = base.mark_text(align="left", dx=3, dy=-7, x=0).encode(text="text:N")
    else:
        place = (at - low) / (high - low)
        side = "left" if place < 0.2 else "right" if place > 0.8 else "center"
        base = base.encode(x=alt.X("at", **options))
        name = base.mark_text(align=side, dy=-7, y=0).encode(text="text:N")
    return [base.mark_rule(**_DASHED), name]


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


def _lines(
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
    rows = [row | {"named": colours[row["name"]] != _GREY} for row in rows]
    rows.sort(key=lambda row: bool(row["named"]))  # grey lines below
    short, at = _short(colours), rows[0]["x"]
    longest = max((len(short[row["name"]]) for row in rows if row["named"]), default=0)
    room = f"clamp(0.3 * width, 84, {min(230, 24 + 6.5 * longest)})"  # pixels for names of lines
    ends_at = alt.ExprRef(f"width - {room}")
    options: Row = {"type": "ordinal", "sort": None, "scale": alt.Scale(range=[0, ends_at])}
    options["axis"] = alt.Axis(title=x_title, labelAngle=0)
    if not isinstance(at[0], str):
        options = _over_rounds(at[0], at[-1], range=[0, ends_at])
    limits = bound[1] if bound else []
    domain = _domain([*(v for r in rows for v in r["value"]), *limits], zero=not legend)
    x, up = alt.X("x", **options), _scaled(domain, form)
    look, chosen = _named(title, colours, legend=legend)
    picked: Any = {"param": chosen.name, "empty": False}
    named: Any = {"test": "datum.named"}
    strong = [c | {"value": 1} for c in (named, *[picked] * legend)]
    base = _data(rows).transform_flatten(["x", "value", "low", "high"]).encode(x=x, **look)
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
    hover = _data(values).mark_rule(opacity=0, strokeWidth=wide)
    layers = [line, hover.encode(x=x, tooltip=_tips(x=x_title, **tips))]
    if legend:
        band = base.transform_filter(picked).mark_area(opacity=0.2, clip=True)
        layers[0] = line.add_params(chosen)
        layers.insert(0, band.encode(y=alt.Y("low", **up), y2="high:Q"))
    ends = [
        {"name": row["name"], "text": short[row["name"]], "x": at[-1], "y": known[-1]}
        for row in rows
        if row["named"] and (known := [v for v in row["value"] if _number(v) is not None])
    ]
    if bound:
        # One line if it is level, so that its dashes can be seen.
        every = range(len(at)) if len({*limits}) > 1 else [0, len(at) - 1]
        steps = [
            {"x": at[a], "y": limits[a], "x2": at[b], "y2": limits[b]} for a, b in pairwise(every)
        ]
        level = _data(steps).mark_rule(**_DASHED)
        layers.append(level.encode(x=x, x2="x2", y=alt.Y("y", **up), y2="y2"))
        ends.append({"text": bound[0], "x": at[-1], "y": limits[-1]})
    labels = _data(_with_room(ends, domain, height)).encode(x=x, y=alt.Y("at", **up))
    dots = labels.transform_filter("isValid(datum.name)").mark_point(
        filled=True, size=45, xOffset=8
    )
    text = labels.mark_text(align="left", dx=14, limit=alt.ExprRef(f"{room} - 16"))
    layers += [dots.encode(**look), text.encode(text="text:N")]
    return _layer(title, *layers, height=height)


def _points(
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
    low, high = _domain([*(row["x"] for row in rows), alpha])
    xs, ys = [max(0.0, low), high], _domain(row["y"] for row in rows)
    across, up = _scaled(xs, _PERCENT, _MISTAKES), _scaled(ys, form, y_title)
    x, y = alt.X("x", **across), alt.Y("y", **up)
    look, chosen = _named(title, colours, legend=len(colours) > 1)
    base = _data(rows).encode(x=x, y=y, **look)
    either: Any = {"or": ["isValid(datum.label)", {"param": chosen.name, "empty": False}]}
    ranges = base.transform_filter(either).mark_rule(clip=True, strokeOpacity=0.6)
    tips = {"x_low": ("95 % from", _PERCENT), "x_high": ("to", _PERCENT), "y": (y_title, form)}
    points = base.mark_point(filled=True, opacity=1, size=80).add_params(chosen)
    layers = [
        *_bound(alpha, f"{_alpha(alpha)} allowed", across),
        points.encode(tooltip=_tips(tip=" ", x=("mistakes", _PERCENT), **tips)),
    ]
    if alpha is not None:
        beyond = _data([{"x": alpha, "x2": high}]).mark_rect(color=_RED, opacity=0.07)
        layers.insert(0, beyond.encode(x=x, x2="x2"))
    if rows and "y_low" in rows[0]:
        layers.insert(-1, ranges.encode(x=alt.X("x_low", **across), x2="x_high"))
        layers.insert(-1, ranges.encode(y=alt.Y("y_low", **up), y2="y_high"))
    for row in _with_room([r for r in rows if r.get("label")], ys, _HEIGHT, above=12):
        # The name is on the side with more room, at the end of a short line.
        right = row["x"] < xs[0] + 0.55 * (xs[1] - xs[0])
        row["end"] = row["x"] + (0.03 if right else -0.03) * (xs[1] - xs[0])
        side = {"align": "left", "dx": 3} if right else {"align": "right", "dx": -3}
        label, limit = _data([row]), alt.ExprRef("0.42 * width")
        name = label.mark_text(limit=limit, **side).encode(text="label:N")
        layers += [
            label.mark_rule().encode(x=x, x2="end", y=y, y2="at", **look),
            name.encode(x=alt.X("end", **across), y=alt.Y("at", **up)),
        ]
    return _layer(title, *layers)


def _dots(
    title: str,
    rows: Sequence[Row],
    colours: Mapping[str, str],
    form: str,
    alpha: float | None = None,
    *,
    whole: bool = False,
) -> Chart:
    """Draw a point with its interval for each row, beside its name ``row``; ``name`` colours it.

    Intervals of few repetitions can be so wide that they would leave no room for the points; they
    are cut unless they are to be shown ``whole``.
    """
    known = [row["value"] for row in rows if _number(row["value"]) is not None] or [0.0]
    ends = [v for row in rows for v in (row["low"], row["high"]) if _number(v) is not None]
    if not whole:
        most = max(known) - min(known) or abs(max(known)) or 1.0
        ends = [min(max(v, min(known) - most), max(known) + most) for v in ends]
    low, high = _domain([*known, *ends, alpha], zero=form == _PERCENT)
    if form == _PERCENT and max(known) <= 1:
        high = min(1.02, high)
        if min(known) >= 0:
            low = -0.02 * high  # a dot at 0 must not cover the name of its row
    options = _scaled([low, high], form)
    names, kinds = (list(dict.fromkeys(row[key] for row in rows)) for key in ("row", "name"))
    apart = len(names) < len(rows)  # several rows with one name
    limit = alt.ExprRef(f"min({_NAMES - 20}, 0.7 * width)")  # less on a small screen
    axis = alt.Axis(title=None, labelLimit=limit, grid=False, domain=False, ticks=False)
    look, chosen = _named(title, colours, legend=apart)
    placed = [row | {"place": kinds.index(row["name"])} for row in rows]
    # Vega sorts names by an expression, which fails if one of them is "constructor" or the like;
    # so names have an explicit order, and places are numbers.
    scale = alt.Scale(domain=names)
    each = _data(placed).encode(y=alt.Y("row", type="nominal", scale=scale, axis=axis), **look)
    if apart:
        each = each.encode(yOffset=alt.YOffset("place", type="ordinal", sort="ascending"))
    dots = each.mark_point(filled=True, opacity=1, size=55)
    dots = dots.add_params(chosen) if apart else dots
    tips = {"row": " ", "name": "  ", "value": ("value", form)} | _ends(form)
    tips |= {"k": "count", "of": "of"} if "k" in rows[0] else {}
    return _layer(
        title,
        each.mark_rule(strokeWidth=1.6, clip=True).encode(x=alt.X("low", **options), x2="high"),
        dots.encode(x=alt.X("value", **options), tooltip=_tips(**tips)),
        *_bound(alpha, _alpha(alpha), options),
        height=max(46, 18 * len(names), 11 * len(rows)),
    )


def _bars(title: str, rows: Sequence[Row], parts: Mapping[str, tuple[str, str]], of: str) -> Chart:
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
    form = _NUMBER if of == "n" else _PERCENT
    top = max(bar["y2"] for bar in bars) or 1.0
    look, chosen = _named(title, {name: colour for name, (_, colour) in parts.items()})
    bar = _data(bars).mark_bar().add_params(chosen).encode(
        x=alt.X("from", **_over_rounds(rows[0]["from"], rows[-1]["to"])),
        x2="to",
        y=alt.Y("y", **_scaled([0.0, 1.05 * top], form)),
        y2="y2",
        tooltip=_tips(rounds="round", name=" ", value=("in a round", form)),
        **look,
    )  # fmt: skip
    return _layer(title, bar, height=200)


# The charts ------------------------------------------------------------------------------------


def trade_off(x: Any, *, highlight: Sequence[str] | None = None) -> Chart:
    """Draw what was earned against mistakes: a point for each method, or for each round of a run.

    Results show the last quarter of the rounds, as their verdict does; ``highlight`` names the
    methods to colour, at most four, and None chooses them.
    """
    if isinstance(x, Results):
        found, colours = _verdict(x), _colours(x, highlight)
        rows, title, form = _standings(found, _labels(x))
        worst, short = found.worst and found.worst.method, _short(colours)
        for row in rows:
            shown = colours[row["name"]] != _GREY or row["method"] == worst
            shown = shown or len(rows) <= _MOST_LABELS
            row["label"] = short[row["name"]] if shown else None
        rows.sort(key=lambda row: colours[row["name"]] != _GREY)  # grey points below
        return _points("Earned against mistakes", rows, colours, title, form, found.alpha)
    run = _run(x)
    known, gain = [span for span in run.spans if span["of"]], run.utility
    rows = []
    for span in known:
        earned: float = span["accepted"]
        if gain is not None:
            earned = gain.gain_good * span["good"] + gain.gain_bad * span["bad"]
        name = f"round {span['rounds']}"
        row = {"x": span["value"], "x_low": span["low"], "x_high": span["high"]}
        row |= {"y": earned / span["people"], "tip": f"{name}: {span['of']} outcomes known"}
        row["name"] = _INCOMPLETE if span["pending"] else span["name"]
        rows.append(row | {"label": name if span in (known[0], known[-1]) else None})
    y_title, form = ("Earned per applicant", _NUMBER) if gain else ("Accepted", _PERCENT)
    title = "Earned and mistakes, round by round"
    return _points(title, rows, _used(_STATUS, rows), y_title, form, run.alpha)


def _used(colours: Mapping[str, str], rows: Iterable[Row]) -> dict[str, str]:
    """Return the colours of the names that rows have."""
    names = {row["name"] for row in rows}
    return {name: colour for name, colour in colours.items() if name in names}


def _standings(verdict: Any, labels: Mapping[str, str]) -> tuple[list[Row], str, str]:
    """Return a row for each method with mistakes and what it earned, with its title and format."""
    yardstick, best = verdict.yardstick, verdict.best
    share = yardstick is not None and math.isfinite(yardstick.share.mean)
    share = share and not (best is not None and best.share.mean > 1)  # then it is no yardstick
    title, form = "Earned per round", _NUMBER
    if share:
        of = "the ceiling" if yardstick.method == "ceiling" else f"“{yardstick.label}”"
        title, form = f"Earned, share of {of}", _PERCENT
    rows = []
    for one in verdict.standings:
        x = _estimated(one.mistakes)
        y = _estimated(one.share) if share else _estimated(one.earned, _THOUSAND)
        row = {"method": one.method, "name": labels[one.method], "tip": labels[one.method]}
        row |= {"x": x["value"], "x_low": x["low"], "x_high": x["high"]}
        rows.append(row | {"y": y["value"], "y_low": y["low"], "y_high": y["high"]})
    return rows, title, form


def compare(results: Results, *, highlight: Sequence[str] | None = None) -> Chart:
    """Draw what each method earned and its mistakes, with 95 % intervals, the best first."""
    found, colours = _verdict(results), _colours(results, highlight)
    rows, title, form = _standings(found, _labels(results))
    earned, mistakes = (
        [
            {"row": row["name"], "name": row["name"], "value": row[key]}
            | {end: row[f"{key}_{end}"] for end in ("low", "high")}
            for row in rows
        ]
        for key in ("y", "x")
    )
    below = _dots(_MISTAKES, mistakes, colours, _PERCENT, found.alpha)
    return _stacked([_dots(title, earned, colours, form), below], colours)


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
    bound = (_alpha(alpha), [alpha] * len(at)) if name == "fdr" else None
    return _lines(
        title,
        _by_method(results, over_repetitions(shown, axis=1), at),
        _colours(results, highlight),
        _NUMBER if name in _AMOUNTS else _PERCENT,
        bound=bound,
    )


def _by_method(results: Results, estimate: Estimate, at: list[Any]) -> list[Row]:
    """Return a row for each line; axes of the estimate: (method, x)."""
    return [
        {"name": label, "x": at} | _estimated(estimate[i])
        for i, label in enumerate(_labels(results).values())
    ]


def by_setting(results: Results, *, highlight: Sequence[str] | None = None) -> Chart:
    """Draw what was earned and the mistakes for each value of what was varied."""
    if len(results.settings) == 1:
        raise InputError("nothing was varied in these results, so there is nothing to draw.")
    at = [label.partition(" = ")[2] or label for label in results.settings]
    once = [results.methods.index(name) for name in results.about["once"]]
    colours, charts = _colours(results, highlight), []
    for name, title, form, bound in (
        ("revenue", "Earned per round", _NUMBER, None),
        ("pooled_fdr", _MISTAKES, _PERCENT, ("α", results.alphas)),
    ):
        values = tables.per_repetition(results, name) * _unit(name)
        values[:, once] = values[results.main, once]  # they ran at one setting, so they are level
        rows = _by_method(results, over_repetitions(values.swapaxes(0, 1), axis=2), at)
        x_title = str(results.varied)
        charts.append(_lines(title, rows, colours, form, bound=bound, x_title=x_title))
    return _stacked(charts)


def rounds(x: Any) -> Chart:
    """Draw how many were accepted in each round, and how many of them were bad.

    For results: what methods earned in each round, and their mistakes.
    """
    if isinstance(x, Results):
        return _stacked([metric(x, name) for name in ("revenue", "fdr")])
    run = _run(x)
    rows = [row | {"sure": row["accepted"] - row["explored"]} for row in run.spans]
    parts = {"accepted for sure": ("sure", _BLUE), "explored": ("explored", _ORANGE)}
    accepted = _bars("Accepted, share of applicants", rows, parts, "people")
    up = _scaled(_domain([*(row["value"] for row in rows), run.alpha], zero=True), _PERCENT)
    names = ("name", "round", "rounds", "value", "low", "high", "k", "of")
    known = [{name: row[name] for name in names} for row in rows if row["of"]]
    title, used = "Mistakes: bad among known outcomes", _used(_STATUS, known)
    look, chosen = _named(title, used, legend=len(used) > 1)
    x_axis = alt.X("round", **_over_rounds(rows[0]["from"], rows[-1]["to"]))
    base = _data(known).encode(x=x_axis, **look)
    points = base.mark_point(filled=True, opacity=1, size=50).add_params(chosen)
    tips = {"rounds": "round", "value": ("mistakes", _PERCENT)} | _ends(_PERCENT)
    mistakes = _layer(
        title,
        base.mark_rule(clip=True, strokeOpacity=0.6).encode(y=alt.Y("low", **up), y2="high"),
        points.encode(y=alt.Y("value", **up), tooltip=_tips(**tips, k="bad", of="known outcomes")),
        *_bound(run.alpha, _alpha(run.alpha), up, along="y"),
        height=200,
    )
    return _stacked([accepted, mistakes])


def outcomes(x: Any) -> Chart:
    """Draw what became of the applicants accepted in each round of a run."""
    counts = zip(("good", "bad", "never", "pending"), _STATES.items(), strict=True)
    parts = {name: (count, colour) for count, (name, colour) in counts}
    return _bars("What became of the accepted", _run(x).spans, parts, "n")


def coverage(x: Any, *, highlight: Sequence[str] | None = None) -> Chart:
    """Draw the share of applicants who are known well enough, and the share explored.

    With certificates, the first is the largest certified share.
    """
    if isinstance(x, Results):
        names = ("exploit_share", "explored_share")
        return _stacked([metric(x, name, highlight=highlight) for name in names])
    run = _run(x)
    known = [row["covered"] for row in run.spans]
    explored = [row["explored"] / row["people"] if row["people"] else None for row in run.spans]
    at = [row["round"] for row in run.spans]
    shares = {"certified" if run.records else "well known": known, "explored": explored}
    rows = [{"name": n, "x": at, "value": y, "low": y, "high": y} for n, y in shares.items()]
    colours = dict(zip(shares, (_BLUE, _ORANGE), strict=True))
    return _lines("Shares of the applicants", rows, colours, _PERCENT, legend=False)


def groups(x: Any, *, highlight: Sequence[str] | None = None) -> Chart:
    """Draw who was accepted and the mistakes in each group, with 95 % intervals.

    Results know all outcomes, so they also show the share of the good who were accepted; they show
    the highlighted methods only.
    """
    charts = []
    if isinstance(x, Results):
        colours = {name: c for name, c in _colours(x, highlight).items() if c != _GREY}
        for name in ("selection_rate", "false_discovery_rate", "true_positive_rate"):
            estimate = tables.summary(x, f"pooled_{name}").estimate[x.main]
            rows = [
                {"row": group, "name": label} | _estimated(estimate[i, g])
                for g, group in enumerate(x.groups[:_MOST_GROUPS])
                for i, label in enumerate(_labels(x).values())
                if label in colours
            ]
            alpha = x.alphas[x.main] if name == "false_discovery_rate" else None
            charts.append(_dots(_TITLES[name], rows, colours, _PERCENT, alpha))
        return _stacked(charts, x.groups)
    run = _run(x)
    for attribute in dict.fromkeys(row["attribute"] for row in run.groups):
        mine = [row for row in run.groups if row["attribute"] == attribute][:_MOST_GROUPS]
        accepted = [_rate(row["accepted"], row["people"]) for row in mine]
        bad = [_rate(row["bad"], row["good"] + row["bad"]) for row in mine]
        for name, rates, colour, alpha in (
            ("Accepted", accepted, _BLUE, None),
            ("Mistakes", bad, _RED, run.alpha),
        ):
            pairs = zip(mine, rates, strict=True)
            rows = [{"row": row["group"], "name": name} | rate for row, rate in pairs]
            if any(row["of"] for row in rows):
                title = f"{name}, by {attribute}"
                charts.append(_dots(title, rows, {name: colour}, _PERCENT, alpha))
    if not charts:
        raise InputError("no groups were counted; pass sensitive_features to fit and decide.")
    return _stacked(charts, [row["group"] for row in run.groups])


def _records(x: Any, method: str | None) -> tuple[dict[Any, list[Row]], float | None]:
    """Return the records of certificates by group, and α; of the first repetition of results."""
    if not isinstance(x, Results):
        run = _run(x)
        if not run.records:
            raise InputError("this method gives no certificates; use CertifiedClassifier.")
        return run.records, run.alpha
    known = [name for name in certified_methods(x) if records_of(x, name, x.main)]
    name = next(iter(known), None) if method is None else method
    if name not in known:
        listed = ", ".join(known) or "none"
        raise InputError(f"method must have certificates in the results ({listed}), got {name!r}.")
    return records_of(x, name, x.main), x.alphas[x.main]


def certificate(x: Any, *, method: str | None = None) -> Chart:
    """Draw how far certificates reach in each round, and the evidence for the next one.

    For results it is the first repetition of ``method``, None for the first with certificates.
    """
    charts = []
    for group, records in _records(x, method)[0].items():
        of = "" if group is None else f", {group}"
        last = [records[span][-1] for span in spans(len(records), 2 * _MOST)]
        at = [record["round"] for record in last]
        needed = [(_number(r["next_log_wealth"]), _number(r["next_threshold"])) for r in last]
        share = [None if None in both else max(0.0, both[0] / both[1]) for both in needed]
        evidence = {"name": "so far", "x": at, "value": share, "low": share, "high": share}
        title = f"Evidence for the next certificate{of}"
        enough, blue = ("enough", [1.0] * len(at)), {"so far": _BLUE}
        charts += [
            _ladder(f"Share accepted for sure{of}", records, last),
            _lines(title, [evidence], blue, _PERCENT, bound=enough, legend=False, height=170),
        ]
    return _stacked(charts)


def _ladder(title: str, records: list[Row], last: Sequence[Row]) -> Chart:
    rows = [
        {name: record[name] for name in ("round", "share", "certified_from", "certified_to")}
        | {"name": _CERTIFIED if record["status"] == _CERTIFIED else _PILOT}
        | {"from": before["round"] + 0.5, "to": record["round"] + 0.5}
        for before, record in pairwise([{"round": records[0]["round"] - 1}, *last])
    ]
    found = ((_FROZEN, freezes(records)), (_AGAIN, restarts(records)))
    marks = [{"at": t - 0.5, "name": name} for name, when in found for t in when]
    colours = _used(_STATUS | {_FROZEN: _BLUE, _AGAIN: _RED}, (*rows, *marks))
    look, chosen = _named(title, colours)
    ends = _domain((row[key] for row in rows for key in ("share", "certified_to")), zero=True)
    across, up = _over_rounds(rows[0]["from"], rows[-1]["to"]), _scaled(ends, _PERCENT)
    base = _data(rows).encode(x=alt.X("round", **across), y=alt.Y("share", **up))
    reach = base.transform_filter("isValid(datum.certified_to)")
    reach = reach.mark_bar(color=_GREEN, opacity=0.25).encode(x=alt.X("from", **across), x2="to")
    lines = _data(marks).mark_rule(strokeDash=[2, 3], strokeWidth=1.5)
    tips = {"certified_from": ("certified from", _PERCENT), "certified_to": ("to", _PERCENT)}
    tips |= {"share": ("deployed", _PERCENT)}
    points = base.mark_point(filled=True, opacity=1, size=45).add_params(chosen)
    return _layer(
        title,
        reach.encode(y=alt.Y("certified_from", **up), y2="certified_to"),
        lines.encode(x=alt.X("at", **across), tooltip=_tips(name=" "), **look),
        base.mark_line(color=_GREY, strokeWidth=1),
        points.encode(tooltip=_tips(round="round", name=" ", **tips), **look),
        height=220,
    )


def curve(x: Any, *, method: str | None = None) -> Chart:
    """Draw what the certified rule of the last round would earn at other bounds than α."""
    found, alpha = _records(x, method)
    colours = {"certified": _GREEN, "only estimated": _ORANGE}
    charts = []
    for group, records in found.items():
        points = [p if isinstance(p, dict) else vars(p) for p in records[-1].get("curve", ())]
        if not points:
            continue
        rows = [p | {"name": "certified" if p["certified"] else "only estimated"} for p in points]
        bounds = _domain([*(row["bound"] for row in rows), alpha])
        across = _scaled(bounds, _PERCENT, "bound on mistakes")
        up = _scaled(_domain((row["earned"] for row in rows), zero=True), _NUMBER)
        base = _data(rows).encode(x=alt.X("bound", **across), y=alt.Y("earned", **up))
        tips = {"share": ("accepted for sure", _PERCENT), "earned": ("earned", _NUMBER)}
        tips["estimated_fdr"] = ("estimated mistakes", _PERCENT)
        title = "Earned per applicant at other bounds" + ("" if group is None else f", {group}")
        used = _used(colours, rows)
        look, chosen = _named(title, used, legend=len(used) > 1)
        charts.append(
            _layer(
                title if len(used) > 1 else f"{title} ({', '.join(used)})",
                base.mark_line(color=_GREY, strokeWidth=1.5),
                base.mark_point(filled=True, opacity=1, size=70)
                .encode(tooltip=_tips(name=" ", bound=("bound", _PERCENT), **tips), **look)
                .add_params(chosen),
                *_bound(alpha, _alpha(alpha), across),
                height=220,
            )
        )
    if not charts:
        raise InputError("too few outcomes are known for a curve; observe more of them.")
    return _stacked(charts)


# Audits ----------------------------------------------------------------------------------------


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
        "false_discovery_rate": (_MISTAKES, _PERCENT),
        "selection_rate": ("Accepted, share of applicants", _PERCENT),
        "profit": (f"Profit per applicant{f' ({currency})' if currency else ''}", _NUMBER),
    }
    charts, colours = [], {_IDENTIFIED: _BLUE, _NOT_IDENTIFIED: _ORANGE}
    across = _scaled(_domain(evaluations), ".2~f", "accept from this score on")
    for measure in measures:
        (title, form), rows = titles[measure], []
        for cut, one in evaluations.items():
            row = one.of(measure)
            known = _number(row.value) is not None
            ends = (row.low, row.high) if known else row.possible
            name = _IDENTIFIED if known else _NOT_IDENTIFIED
            place = {"name": name, "x": cut, "n": row.n_outcomes, "value": row.value}
            rows.append(place | _span(*ends))
        alpha = next(iter(evaluations.values())).alpha if measure.startswith("false") else None
        # An interval of few outcomes can be so wide that it would leave no room for the others.
        shown = [row["value"] for row in rows]
        many = [row for row in rows if row["n"] >= _FEW] or rows
        shown += [row[name] for row in many for name in ("low", "high")]
        up = _scaled(_domain([*shown, alpha], zero=form == _PERCENT), form)
        used = _used(colours, rows)
        look, chosen = _named(title, used, legend=len(used) > 1)
        base = _data(rows).encode(x=alt.X("x", **across), **look)
        known = base.transform_filter("isValid(datum.value)")
        tips = _tips(
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
            _layer(
                title,
                span,
                known.mark_line(strokeWidth=1.2).encode(y=alt.Y("value", **up)),
                points.encode(y=alt.Y("value", **up), tooltip=tips),
                *_bound(alpha, _alpha(alpha), up, along="y"),
                height=200,
            )
        )
    return _stacked(charts)


def calibration(bins: Sequence[Any]) -> Chart:
    """Draw the share of good outcomes against the recorded score.

    Parameters
    ----------
    bins
        What ``audit.calibration`` returns.
    """
    colours = {_CORRECTED: _BLUE, _RECORDED: _GREY}
    title = "Good outcomes against the recorded score"
    rows = []
    for part in bins:
        place = {"x": part.score, "n": part.n_outcomes, "of": part.n_people}
        rows.append(place | {"name": _RECORDED, "value": part.recorded} | _span(None, None))
        rows.append(place | {"name": _CORRECTED, "value": part.good} | _span(part.low, part.high))
    across = _scaled(_domain(row["x"] for row in rows), ".2~f", "mean recorded score")
    ends = [row[name] for row in rows for name in ("value", "low", "high", "x")]
    up = _scaled(_domain(ends), _PERCENT)
    look, chosen = _named(title, colours)
    base = _data(rows).encode(x=alt.X("x", **across), **look)
    tips = {"name": " ", "x": ("mean score", ".3~f"), "value": ("good", _PERCENT)}
    tips |= _at_all_times(_PERCENT) | {"n": "known outcomes", "of": "applicants"}
    points = base.mark_point(filled=True, opacity=1, size=60).add_params(chosen)
    low, high = across["scale"].domain
    line = _data([{"x": low, "y": low, "x2": high, "y2": high}])
    return _layer(
        title,
        line.mark_rule(clip=True, **_DASHED).encode(
            x=alt.X("x", **across), x2="x2", y=alt.Y("y", **up), y2="y2"
        ),
        base.mark_rule(clip=True, strokeWidth=1.6).encode(y=alt.Y("low", **up), y2="high"),
        points.encode(y=alt.Y("value", **up), tooltip=_tips(**tips)),
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
    limit = None if alpha is None else (_alpha(alpha), [alpha] * len(at))
    shaken = ("changed", [_CHANGED] * len(at))
    return _stacked(
        [
            _lines(
                "Scores and acceptances of applicants",
                both,
                {"mean score": _BLUE, "accepted": _ORANGE},
                _PERCENT,
                legend=False,
                height=200,
            ),
            _lines(
                _MISTAKES,
                [bad],
                {bad["name"]: _RED},
                _PERCENT,
                bound=limit,
                legend=False,
                height=200,
            ),
            _lines(
                "Population stability index of scores",
                [line("index", "stability")],
                {"index": _PURPLE},
                _NUMBER,
                bound=shaken,
                legend=False,
                height=170,
            ),
        ]
    )


def group_audit(audit: Any) -> Chart:
    """Draw the measures of groups three ways: as recorded, corrected, and without assumptions.

    Parameters
    ----------
    audit
        What ``audit.groups`` returns.
    """
    colours = {_RECORDED: _GREY, _CORRECTED: _BLUE, _ASSUMED: _ORANGE}
    charts, of_groups = [], [row for row in audit.measured if row.group]
    pairs = dict.fromkeys((row.attribute, row.measure) for row in of_groups)
    for attribute, measure in pairs:
        mine = [r for r in of_groups if (r.attribute, r.measure) == (attribute, measure)]
        unit, form = (100, _NUMBER) if measure == "calibration" else (1, _PERCENT)
        rows = []
        for row in mine[:_MOST_GROUPS]:
            named, ends = {"row": row.group}, _span(unit * row.low, unit * row.high)
            rows += [
                named | {"name": _RECORDED, "value": unit * row.recorded} | _span(None, None),
                named | {"name": _CORRECTED, "value": unit * row.corrected} | ends,
            ]
            if row.least < row.most:
                bounds = _span(unit * row.least, unit * row.most)
                rows.append(named | {"name": _ASSUMED, "value": None} | bounds)
        rows = [row for row in rows if any(_number(row[n]) is not None for n in ("value", "low"))]
        if rows:
            title = f"{_GROUP_TITLES[measure]}, by {attribute}"
            charts.append(_dots(title, rows, _used(colours, rows), form, whole=True))
    if not charts:
        raise InputError("the log has no groups that could be compared; name their columns.")
    return _stacked(charts, [row.group for row in of_groups])


def _span(low: float | None, high: float | None) -> Row:
    return {"low": low, "high": high}


def _at_all_times(form: str) -> Row:
    return {"low": ("from", form), "high": ("to", form)}


def save(chart: Chart, stem: Path) -> list[Path]:
    """Write a chart as SVG and PNG for papers; ``stem`` is the path without suffix."""
    try:
        import vl_convert  # noqa: PLC0415 (an extra)
    except ImportError as missing:  # pragma: no cover
        raise InputError(
            f"figures need vl-convert; {to_install('report')} installs it."
        ) from missing
    spec, version = chart.to_dict(), ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    look = {"background": "white", "view": {"stroke": None}, "axis": {"gridColor": "#e4e4e4"}}
    options: Any = {"vl_version": version, "config": look}
    vector, image = (stem.with_name(f"{stem.name}.{ending}") for ending in ("svg", "png"))
    found: dict[str, str] = {}  # vega numbers clip paths on from chart to chart
    text = re.sub(
        r'(id="|#)(clip\d+)',
        lambda match: match[1] + found.setdefault(match[2], f"clip{len(found)}"),
        vl_convert.vegalite_to_svg(spec, **options),
    )
    vector.write_text(text, encoding="utf-8")
    image.write_bytes(vl_convert.vegalite_to_png(spec, scale=2, **options))
    return [vector, image]
