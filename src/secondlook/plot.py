"""Charts of classifiers, programs and results in Vega-Lite; reports and notebooks share them.

``x`` is a fitted classifier, a ledger's ``Program`` or ``Summary``, or ``Results``. It is first
turned into plain rows, and charts know rows only. Names that users chose are values of rows or
titles, never names of fields. Colours are those of Okabe and Ito; text and axes have none of
their own, so that the configuration of a page decides.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

from secondlook.core.metrics import exact_interval
from secondlook.core.utility import Accuracy, Utility
from secondlook.errors import InputError, to_install
from secondlook.lab.experiments import tables
from secondlook.lab.experiments.certificates import certified_methods, freezes, records_of, restarts
from secondlook.lab.experiments.results import Results
from secondlook.lab.experiments.tables import Estimate
from secondlook.people.store import NEVER, PENDING

try:
    import altair as alt
except ImportError as missing:  # pragma: no cover (an extra)
    raise InputError(f"charts need altair; {to_install('report')} installs it.") from missing

__all__ = ["by_setting", "certificate", "compare", "coverage", "curve", "figures", "groups"]
__all__ += ["metric", "outcomes", "rounds", "save", "spans", "trade_off"]

Chart = Any  # of altair, where types of layered and stacked charts differ
Row = dict[str, Any]
_BLUE, _ORANGE, _GREEN, _RED, _PURPLE = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7"
_GREY = "#8c8c8c"
_COLOURS = (_GREEN, _BLUE, _RED, _PURPLE)
_WIDTH, _HEIGHT = 640, 280
_LINE = 15  # pixels of a line of text
_MOST = 60  # rounds shown one by one; more are shown in spans
_HOVERED = 12  # values in one tooltip
_MOST_GROUPS = 40
_MOST_RECORDS = 120  # of a certificate
_DASHED: Any = {"strokeDash": [5, 3], "strokeWidth": 1.5}
_ROOM = "clamp(0.3 * width, 84, 180)"  # beside the lines, for their names
_PERCENT, _NUMBER = ".1%", ",.4~r"
_CERTIFIED, _PILOT, _INCOMPLETE = "certified", "no promise yet", "outcomes still to come"
_FROZEN, _AGAIN = "ranking frozen", "tests began again"
_NAMES = 150  # pixels for names of rows
_STATUS = {_CERTIFIED: _GREEN, _PILOT: _ORANGE}
_STATES = {"good": _GREEN, "bad": _RED, "never known": _ORANGE, "still to come": _GREY}
_TITLES = {
    "revenue": "Earned in each round, thousands",
    "cumulative_revenue": "Earned so far, thousands",
    "fdr": "Mistakes: bad among the accepted",
    "above_alpha": "Share of rounds above α",
    "acceptance_rate": "Accepted, share of applicants",
    "exploit_share": "Known well enough, share of applicants",
    "explored_share": "Explored, share of applicants",
    "explored_fdr": "Bad among the explored",
    "true_positive_rate": "Good applicants accepted",
    "selection_rate": "Accepted",
    "true_positive_rate_difference": "Largest gap: good applicants accepted",
    "selection_rate_difference": "Largest gap: accepted",
}
_REFERENCES = ("ceiling", "opt-offline", "best-linear", "logistic-all-labels")
_AMOUNTS = ("revenue", "cumulative_revenue", "weighted", "effective")


# What a classifier, a program and results have in common ---------------------------------------


@dataclass(frozen=True)
class _Run:
    """One run: a row of counts per round and per group, and the records of certificates.

    Rounds have the counts ``people``, ``accepted``, ``explored``, ``good``, ``bad``, ``never``
    and ``pending``, the share ``known`` of applicants who are known well enough, and whether they
    are ``certified``.
    """

    rounds: list[Row]
    groups: list[Row]
    records: dict[Any, list[Row]]
    alpha: float | None
    utility: Utility | None


def _run(x: Any) -> _Run:
    if hasattr(x, "ledger") and hasattr(x, "summary"):
        x = x.summary()
    run = _of_summary(x) if hasattr(x, "promise") else _of_classifier(x)
    if not run.rounds:
        raise InputError("there are no rounds to draw yet; decide a batch first.")
    return run


def _of_classifier(clf: Any) -> _Run:
    if not hasattr(clf, "rounds_") or not hasattr(clf, "_people") or hasattr(clf, "decisions"):
        raise InputError(
            f"a chart needs a classifier with two outcomes, a program, its summary or results, got "
            f"{type(clf).__name__}."
        )
    by_round: dict[int, list[Row]] = {}
    for record in clf.rounds_:
        by_round.setdefault(record.round, []).append(vars(record))
    parts = [(rows["round"], rows["outcome"], rows["group"]) for rows in clf._people.parts]
    number, outcome, group = (np.concatenate(column) for column in zip(*parts, strict=True))
    heads = clf._head_counts.view().sum(axis=2).tolist()
    rounds = []
    for (t, records), (people, accepted, explored) in zip(by_round.items(), heads, strict=True):
        here = outcome[number == t]
        states = {"good": 1, "bad": 0, "never": NEVER, "pending": PENDING}
        row = {name: int((here == code).sum()) for name, code in states.items()}
        certified = all(record.get("status") == _CERTIFIED for record in records)
        row |= {"round": t, "people": people, "accepted": accepted, "explored": explored}
        rounds.append(row | {"known": _known(records), "certified": certified})
    counts: dict[tuple[str, str], Row] = {}
    for count in clf.group_counts_:
        key = count.attribute, str(count.group)
        row = counts.setdefault(key, {"people": 0, "accepted": 0, "good": 0, "bad": 0})
        row["people"] += count.n_people
        row["accepted"] += count.n_accepted
    known = clf._intake.sensitive
    if known is not None and clf.group_mode != "audit":  # there, outcomes are kept without groups
        each = [(", ".join(known.titles), known.labels, np.arange(known.n_groups))]
        if clf.attributes == "side_by_side":
            each = list(zip(known.titles, known.values, known.level_of, strict=True))
        for attribute, values, level_of in each:
            for level, value in enumerate(values.tolist()):
                mine = outcome[(number > 0) & (level_of[group] == level)]
                counts[attribute, str(value)] |= {
                    "good": int((mine == 1).sum()),
                    "bad": int((mine == 0).sum()),
                }
    named = [{"attribute": a, "group": g} | row for (a, g), row in counts.items()]
    budget = getattr(clf, "budget", None)
    alpha = clf.alpha if hasattr(clf, "alpha") else getattr(budget, "alpha", None)
    return _Run(rounds, named, _by_group(by_round.values()), alpha, clf.utility or Accuracy())


def _of_summary(summary: Any) -> _Run:
    rounds = [
        {
            "round": row.round,
            "people": row.n_people,
            "accepted": row.n_accepted,
            "explored": row.n_explored,
            "good": row.outcomes.good,
            "bad": row.outcomes.bad,
            "never": row.outcomes.indeterminate,
            "pending": row.outcomes.pending,
            "known": _known(row.records),
            "certified": row.certified,
        }
        for row in summary.rounds
    ]
    groups = [
        {
            "attribute": group.attribute,
            "group": "(erased)" if group.group is None else group.group,
            "people": group.n_people,
            "accepted": group.n_accepted,
            "good": group.outcomes.good,
            "bad": group.outcomes.bad,
        }
        for group in summary.groups
    ]
    records = _by_group(row.records for row in summary.rounds)
    return _Run(rounds, groups, records, summary.promise.alpha, summary.promise.utility)


def _known(records: Iterable[Mapping[str, Any]]) -> float | None:
    """Return the share of applicants in the exploit region, or the largest certified share."""
    people = known = 0.0
    for record in records:
        certified = record["n_people"] * (_number(record.get("certified_to")) or 0.0)
        people += record["n_people"]
        known += record.get("n_exploit_region", certified)
    return known / people if people else None


def _by_group(rounds: Iterable[Iterable[Mapping[str, Any]]]) -> dict[Any, list[Row]]:
    """Return the records of certificates by the name of their group, None for all applicants."""
    found: dict[Any, list[Row]] = {}
    for records in rounds:
        for record in records:
            if "log_wealth" in record:
                group = record["group"]
                several = isinstance(group, list | tuple)
                name = ", ".join(map(str, group)) if several else group
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


def _in_spans(rounds: Sequence[Row]) -> list[Row]:
    """Return rows of counts summed over spans, with shares, intervals and positions."""
    rows = []
    for span in spans(len(rounds)):
        part = rounds[span]
        names = ("people", "accepted", "explored", "good", "bad", "never", "pending")
        row: Row = {name: sum(one[name] for one in part) for name in names}
        first, last, known = part[0]["round"], part[-1]["round"], row["good"] + row["bad"]
        row |= {"rounds": f"{first}" if first == last else f"{first} to {last}", "known": known}
        row |= {"n": len(part), "round": (first + last) / 2, "from": first - 0.42}
        row |= {"to": last + 0.42, "covered": part[-1]["known"]}
        row["status"] = _CERTIFIED if all(one["certified"] for one in part) else _PILOT
        row["fdr"] = row["bad"] / known if known else None
        row["low"], row["high"] = exact_interval(row["bad"], known) if known else (None, None)
        rows.append(row)
    return rows


def _number(value: Any) -> Any:
    """Return a number with five significant digits, None if unknown; other values as they are."""
    if isinstance(value, list):
        return [_number(one) for one in value]
    if isinstance(value, float):
        return float(f"{value:.5g}") if math.isfinite(value) else None
    return value


def _data(rows: Iterable[Mapping[str, Any]]) -> alt.InlineData:
    return alt.InlineData(values=[{key: _number(value) for key, value in r.items()} for r in rows])


# What results are about ------------------------------------------------------------------------


def _labels(results: Results) -> list[str]:
    """Return the names of methods for readers, each different."""
    names = results.about.get("labels", {})
    labels = [str(names.get(name, name)) for name in results.methods]
    return labels if len(set(labels)) == len(labels) else list(results.methods)


def _reference(results: Results) -> str | None:
    """Return the method that stands for what could be earned at most."""
    return next((name for name in _REFERENCES if name in results.methods), None)


def _earned(results: Results) -> tuple[Estimate, str, str]:
    """Return what methods earned, a title for it, and its format.

    As a share of the ceiling if policies were judged on the whole population, else in thousands.
    """
    at = results.main
    if results.judged and "ceiling" in results.methods:
        from secondlook.lab.experiments.comparison import ceiling_shares  # noqa: PLC0415 - slow

        shares = ceiling_shares(results, at)
        return tables.over_repetitions(shares, axis=1), "Earned, share of the ceiling", _PERCENT
    revenue = tables.per_repetition(results, "revenue")[at]
    return tables.over_repetitions(revenue, axis=1), "Earned per round, thousands", _NUMBER


def _colours(results: Results, highlight: Sequence[str] | None) -> dict[str, str]:
    """Return the colour of each method by its label: at most four have one, others are grey.

    Without ``highlight`` these are the method with a certificate, the one that earned most, the
    one that does not explore, and the reference.
    """
    if highlight is None:
        reference = _reference(results)
        earned = tables.summary(results, "revenue").estimate.mean[results.main]
        order = np.argsort(-np.nan_to_num(earned, nan=-np.inf), kind="stable")
        best = [results.methods[i] for i in order if results.methods[i] not in _REFERENCES]
        greedy = ("no-exploration", "greedy", "frozen")
        wanted = [
            [name for name in ("certified", *certified_methods(results)) if name in best],
            best,
            [name for start in greedy for name in results.methods if name.startswith(start)],
            [] if reference is None else [reference],
        ]
        found: list[str] = []
        for names in wanted:
            found += [name for name in names if name not in found][:1]
        highlight = found
    unknown = sorted({*highlight} - {*results.methods})
    if unknown:
        raise InputError(
            f"highlight names methods of the results, {', '.join(results.methods)}, got "
            f"{', '.join(unknown)}."
        )
    label = dict(zip(results.methods, _labels(results), strict=True))
    chosen = {label[name]: c for name, c in zip(highlight, _COLOURS, strict=False)}
    return chosen | {name: _GREY for name in label.values() if name not in chosen}


# Charts of rows --------------------------------------------------------------------------------


def _layer(title: str, *layers: Any, height: float = _HEIGHT) -> Chart:
    shown = alt.Title(title, anchor="start", fontSize=13, offset=10)
    return alt.layer(*layers, title=shown, width=_WIDTH, height=height)


def _stacked(*charts: Chart, axis: int = 90) -> Chart:
    """Return one chart, or charts below each other; ``axis`` is their room on the left."""
    if len(charts) == 1:
        return charts[0]
    below = alt.vconcat(*charts, spacing=28).resolve_scale(color="independent")
    for param in below.params:  # altair gives both selections of ``_lines`` both of its layers
        param.views = param.views[-1:] if param.name.startswith("here") else param.views[:1]
    return below.properties(usermeta={"axis": axis})


def _domain(values: Iterable[Any], *, zero: bool = False) -> list[float]:
    """Return the ends of an axis that shows all known values, with a little room."""
    known = [v for v in values if v is not None and math.isfinite(v)] + [0.0] * zero
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    room = 0.07 * (high - low) or 0.05 * abs(high) or 0.05
    return [0.0 if zero and low == 0.0 else low - room, high + room]


def _scaled(domain: Sequence[float], title: str, form: str) -> dict[str, Any]:
    """Return the options of an axis with numbers or percentages."""
    if form == _PERCENT and domain[1] - domain[0] > 0.06:
        form = ".0%"
    axis = alt.Axis(title=title or None, format=form, tickCount=5)
    scale = alt.Scale(domain=[_number(float(end)) for end in domain], nice=False, zero=False)
    return {"type": "quantitative", "scale": scale, "axis": axis}


def _over_rounds(first: float, last: float, **scale: Any) -> dict[str, Any]:
    """Return the options of an axis of rounds."""
    axis = alt.Axis(title="round", format="d", tickMinStep=1, grid=False)
    ends = [first, last] if last > first else [first - 1, first + 1]
    whole = alt.Scale(domain=ends, nice=False, zero=False, **scale)
    return {"type": "quantitative", "scale": whole, "axis": axis}


def _colour(colours: Mapping[str, str], *, legend: bool = True) -> alt.Color:
    """Return the colour by name, with a legend below that has as many columns as fit."""
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    narrow = f"width < 420 && {len(colours)} > 16"
    shown = alt.Legend(
        title=None,
        orient="bottom",
        columns=alt.ExprRef(f"{narrow} ? 2 : max(1, floor(width / 200))"),
        labelLimit=alt.ExprRef(f"{narrow} ? 110 : 170"),
        symbolLimit=200,
        symbolOpacity=1,
        rowPadding=1,
    )
    return alt.Color("name", type="nominal", scale=scale, legend=shown if legend else None)


def _tip(field: str, title: str, form: str | None = None) -> alt.Tooltip:
    if form is None:
        return alt.Tooltip(field, type="nominal", title=title)
    return alt.Tooltip(field, type="quantitative", title=title, format=form)


def _chosen(title: str) -> Any:
    """Return what was clicked in a legend; stacked charts need selections with different names."""
    name = f"chosen_{zlib.crc32(title.encode()):x}"
    return alt.selection_point(name=name, fields=["name"], bind="legend", toggle="true")


def _seen(chosen: Any) -> Any:
    return alt.when(chosen).then(alt.value(1)).otherwise(alt.value(0.12))


def _alpha_text(alpha: float) -> str:
    return f"α = {100 * alpha:.4g} %"


def _spread(wanted: Sequence[float], size: float) -> list[float]:
    """Return places between 0 and ``size`` near the wanted ones, a line of text apart.

    Examples
    --------
    >>> _spread([50, 52, 10], 100)
    [43.5, 58.5, 10.0]
    """
    order = np.argsort(wanted, kind="stable")
    before = _LINE * np.arange(len(order))
    free = isotonic_regression(np.asarray(wanted, float)[order] - before).x
    places = np.clip(free, 0.0, max(0.0, size - _LINE * (len(order) - 1))) + before
    return [float(place) for place in places[np.argsort(order, kind="stable")]]


def _with_room(rows: Sequence[Row], domain: Sequence[float], up: float = 0) -> list[Row]:
    """Return rows with a height ``at`` for their label, near ``y`` and clear of other labels.

    ``up`` is how far above ``y`` labels should be, in pixels.
    """
    if not rows:
        return []
    low, high = domain
    places = _spread([_HEIGHT * (high - row["y"]) / (high - low) - up for row in rows], _HEIGHT)
    heights = [high - place * (high - low) / _HEIGHT for place in places]
    return [row | {"at": at} for row, at in zip(rows, heights, strict=True)]


def _lines(
    title: str,
    rows: Sequence[Row],
    colours: Mapping[str, str],
    form: str,
    *,
    bound: Sequence[float] = (),
    x_title: str = "round",
    zero: bool = False,
) -> Chart:
    """Draw a line for each row; coloured lines are named at their ends, others are grey.

    Parameters
    ----------
    title, x_title
        Titles of the chart and of its x axis.
    rows
        ``name``, and the lists ``x``, ``y``, ``low`` and ``high``.
    colours
        The colour of each name.
    form
        Format of y.
    bound
        α at each x, if it matters.
    zero
        Whether y starts at 0.
    """
    rows = [row | {"named": colours[row["name"]] != _GREY} for row in rows]
    rows.sort(key=lambda row: bool(row["named"]))  # grey lines below
    at, room = rows[0]["x"], alt.ExprRef(f"width - {_ROOM}")
    if isinstance(at[0], str):
        scale, axis = alt.Scale(range=[0, room]), alt.Axis(title=x_title, labelAngle=0)
        x = alt.X("x", type="ordinal", sort=None, scale=scale, axis=axis)
    else:
        x = alt.X("x", **_over_rounds(at[0], at[-1], range=[0, room]))
    domain = _domain([*(v for row in rows for v in row["y"]), *bound], zero=zero)
    options = _scaled(domain, "", form)
    chosen, colour = _chosen(title), _colour(colours, legend=len(rows) > 1)
    base = alt.Chart(_data(rows)).transform_flatten(["x", "y", "low", "high"])
    layers: list[Any] = [
        base.transform_filter({"param": chosen.name, "empty": False})
        .mark_area(opacity=0.2, clip=True)
        .encode(x=x, y=alt.Y("low", **options), y2="high:Q", color=colour),
        base.mark_line(clip=True, point=len(at) == 1)
        .encode(
            x=x,
            y=alt.Y("y", **options),
            color=colour,
            opacity=_seen(chosen),
            strokeOpacity=alt.when(chosen, empty=False)
            .then(alt.value(1))
            .when("datum.named")
            .then(alt.value(1))
            .otherwise(alt.value(0.45)),
            strokeWidth=alt.when("datum.named").then(alt.value(2.5)).otherwise(alt.value(1.2)),
        )
        .add_params(chosen),
    ]
    shown = [row for row in rows if len(rows) <= _HOVERED or row["named"]][::-1]
    values = [
        {"x": place} | {f"y{i}": row["y"][t] for i, row in enumerate(shown)}
        for t, place in enumerate(at)
    ]
    name = chosen.name.replace("chosen", "here")
    here = alt.selection_point(name=name, on="pointerover", clear="pointerout", fields=["x"])
    layers.append(
        alt.Chart(_data(values))
        .mark_rule(strokeWidth=alt.ExprRef(f"max(3, width / {len(at) + 1})"))
        .encode(
            x=x,
            opacity=alt.when(here, empty=False).then(alt.value(0.15)).otherwise(alt.value(0)),
            tooltip=[
                _tip("x", x_title),
                *(_tip(f"y{i}", row["name"], form) for i, row in enumerate(shown)),
            ],
        )
        .add_params(here)
    )
    ends = [
        {"name": row["name"], "text": row["name"], "x": at[-1], "y": known[-1]}
        for row in rows
        if row["named"] and (known := [v for v in row["y"] if v is not None and math.isfinite(v)])
    ]
    if bound:
        level = len({*bound}) == 1  # one line, so that its dashes can be seen
        every = [0, len(at) - 1] if level else range(len(at))
        steps = ((at[a], bound[a], at[b], bound[b]) for a, b in itertools.pairwise(every))
        line = alt.Chart(_data([{"x": a, "y": b, "x2": c, "y2": d} for a, b, c, d in steps]))
        layers.append(
            line.mark_rule(**_DASHED).encode(x=x, y=alt.Y("y", **options), x2="x2", y2="y2")
        )
        ends.append({"name": "", "text": _alpha_text(bound[-1]), "x": at[-1], "y": bound[-1]})
    labels = alt.Chart(_data(_with_room(ends, domain))).encode(x=x, y=alt.Y("at", **options))
    limit = alt.ExprRef(f"{_ROOM} - 16")
    layers += [
        labels.transform_filter("datum.name != ''")
        .mark_point(filled=True, opacity=1, size=45, xOffset=8)
        .encode(color=colour),
        labels.mark_text(align="left", dx=14, limit=limit).encode(text="text:N"),
    ]
    return _layer(title, *layers)


def _points(
    title: str,
    rows: Sequence[Row],
    colours: Mapping[str, str],
    y_title: str,
    form: str,
    alpha: float | None,
    *,
    joined: bool = False,
) -> Chart:
    """Draw a point for each row: mistakes, and what was earned.

    Parameters
    ----------
    title, y_title
        Titles of the chart and of its y axis.
    rows
        ``name``, ``tip``, ``x``, ``y`` and ``x_low``, ``x_high``, ``y_low``, ``y_high``; those with
        a ``label`` show it, with their intervals.
    colours
        The colour of each name.
    form
        Format of y.
    alpha
        The bound on mistakes.
    joined
        Whether points are joined in their order.
    """
    known = [row for row in rows if _number(row["x"]) is not None and _number(row["y"]) is not None]
    xs = _domain([*(row["x"] for row in known), alpha])
    xs, ys = [max(0.0, xs[0]), xs[1]], _domain(row["y"] for row in known)
    x_title = "Mistakes: bad among the accepted"
    across, up = _scaled(xs, x_title, _PERCENT), _scaled(ys, y_title, form)
    x, y = alt.X("x", **across), alt.Y("y", **up)
    chosen, layers = _chosen(title), list[Any]()
    colour = _colour(colours, legend=len(colours) > 1)
    if alpha is not None:
        text = f"{_alpha_text(alpha)} allowed"
        bound = alt.Chart(_data([{"x": alpha, "x2": xs[1], "text": text}])).encode(x=x)
        layers += [
            bound.mark_rect(color=_RED, opacity=0.07).encode(x2="x2"),
            bound.mark_rule(**_DASHED),
            bound.mark_text(dy=-7).encode(y=alt.value(0), text="text:N"),
        ]
    base = alt.Chart(_data(known))
    if joined:
        line = base.mark_line(color=_GREY, strokeWidth=1, opacity=0.5)
        layers.append(line.encode(x=x, y=y, order="at:Q"))
    else:
        wanted: Any = {"or": ["isValid(datum.label)", {"param": chosen.name, "empty": False}]}
        ranges = base.transform_filter(wanted).mark_rule(clip=True, strokeWidth=1)
        ranges = ranges.encode(color=colour, opacity=_seen(chosen))
        layers += [
            ranges.encode(x=alt.X("x_low", **across), x2="x_high", y=y),
            ranges.encode(x=x, y=alt.Y("y_low", **up), y2="y_high"),
        ]
    layers.append(
        base.mark_point(filled=True, size=80)
        .encode(
            x=x,
            y=y,
            color=colour,
            opacity=_seen(chosen),
            tooltip=[
                _tip("tip", " "),
                _tip("x", "mistakes", _PERCENT),
                _tip("x_low", "95 % from", _PERCENT),
                _tip("x_high", "to", _PERCENT),
                _tip("y", y_title, form),
            ],
        )
        .add_params(chosen)
    )
    ends = []
    for row in known:
        if row.get("label"):
            right = row["x"] < xs[0] + 0.55 * (xs[1] - xs[0])
            x2 = row["x"] + (0.03 if right else -0.03) * (xs[1] - xs[0])
            ends.append(row | {"x2": x2, "right": right})
    for right in (True, False):
        side = [row for row in _with_room(ends, ys, up=12) if row["right"] == right]
        if side:
            labels = alt.Chart(_data(side)).encode(y=alt.Y("at", **up))
            layers += [
                labels.mark_rule().encode(
                    x=x, x2="x2", y=y, y2="at", color=colour, opacity=_seen(chosen)
                ),
                labels.mark_text(
                    align="left" if right else "right",
                    dx=3 if right else -3,
                    limit=alt.ExprRef("0.42 * width"),
                ).encode(x=alt.X("x2", **across), text="label:N", opacity=_seen(chosen)),
            ]
    return _layer(title, *layers, height=_HEIGHT)


def _dots(
    title: str,
    rows: Sequence[Row],
    colours: Mapping[str, str],
    form: str,
    alpha: float | None = None,
) -> Chart:
    """Draw a point with its interval for each row.

    Parameters
    ----------
    title
        Title.
    rows
        ``row`` (its name on the left), ``name`` (its colour), ``value``, ``low``, ``high`` and
        ``tip``.
    colours
        The colour of each name.
    form
        Format of the values.
    alpha
        A bound on the values.
    """
    ends = [row[name] for row in rows for name in ("value", "low", "high")]
    domain = _domain([*ends, alpha], zero=form == _PERCENT)
    if form == _PERCENT and all(v is None or not v > 1 for v in (row["value"] for row in rows)):
        domain = [max(0.0, domain[0]), min(domain[1], 1.02)]
    options = _scaled(domain, "", form)
    names = list(dict.fromkeys(row["row"] for row in rows))
    colour = _colour(colours, legend=len({row["name"] for row in rows}) not in (1, len(names)))
    axis = alt.Axis(title=None, labelLimit=_NAMES - 20, grid=False, domain=False, ticks=False)
    y = alt.Y("row", type="nominal", sort=names, axis=axis)
    offset = [name for name in colours if any(row["name"] == name for row in rows)]
    chosen = _chosen(title)
    each = alt.Chart(_data(rows)).encode(y=y, color=colour, opacity=_seen(chosen))
    if len(offset) < len(rows) and len(offset) > 1:
        each = each.encode(yOffset=alt.YOffset("name", type="nominal", sort=offset))
    tooltip = [_tip("row", " "), _tip("name", "  "), _tip("value", "value", form)]
    tooltip += [_tip("low", "95 % from", form), _tip("high", "to", form), _tip("tip", "   ")]
    layers: list[Any] = [
        each.mark_rule(strokeWidth=1.6, clip=True)
        .encode(x=alt.X("low", **options), x2="high")
        .add_params(chosen),
        each.mark_point(filled=True, size=55).encode(x=alt.X("value", **options), tooltip=tooltip),
    ]
    if alpha is not None:
        bound = alt.Chart(_data([{"x": alpha, "text": _alpha_text(alpha)}]))
        place = bound.encode(x=alt.X("x", **options))
        layers += [
            place.mark_rule(**_DASHED),
            place.mark_text(align="left", dx=4, dy=-7).encode(y=alt.value(0), text="text:N"),
        ]
    return _layer(title, *layers, height=max(46, 18 * len(names), 11 * len(rows)))


def _bars(
    title: str, rows: Sequence[Row], colours: Mapping[str, str], parts: Mapping[str, str], of: str
) -> Chart:
    """Draw stacked bars over rounds.

    Parameters
    ----------
    title
        Title.
    rows
        Rows of spans.
    colours
        The colour of each name.
    parts
        The count of each name.
    of
        The count that they are shares of; empty to draw counts.
    """
    bars, top = [], 0.0
    for row in rows:
        below = 0.0
        for name, count in parts.items():
            value = row[count] / (row[of] or 1) if of else row[count] / row["n"]
            bar = {"name": name, "y": below, "y2": below + value, "value": value}
            bars.append(bar | {key: row[key] for key in ("from", "to", "rounds")})
            below += value
        top = max(top, below)
    form = _PERCENT if of else _NUMBER
    x = alt.X("from", **_over_rounds(rows[0]["from"] - 0.1, rows[-1]["to"] + 0.1))
    y = alt.Y("y", **_scaled([0.0, 1.05 * top or 1.0], "", form))
    tooltip = [_tip("rounds", "round"), _tip("name", " "), _tip("value", "of each round", form)]
    chosen = _chosen(title)
    chart = alt.Chart(_data(bars)).mark_bar().add_params(chosen)
    chart = chart.encode(x=x, x2="to", y=y, y2="y2", color=_colour(colours), tooltip=tooltip)
    return _layer(title, chart.encode(opacity=_seen(chosen)), height=200)


# The charts ------------------------------------------------------------------------------------


def trade_off(x: Any, *, highlight: Sequence[str] | None = None) -> Chart:
    """Draw what was earned against mistakes: a point for each method, or for each round of a run.

    Parameters
    ----------
    x
        A classifier, program, summary or results.
    highlight
        For results, the methods to colour and name, at most four; None chooses them.
    """
    if isinstance(x, Results):
        return _trade_off_of_methods(x, highlight)
    run = _run(x)
    spans = _in_spans(run.rounds)
    utility = run.utility
    rows = []
    for t, span in enumerate(spans):
        earned = (
            None
            if utility is None
            else (utility.gain_good * span["good"] + utility.gain_bad * span["bad"])
        )
        y = span["accepted"] if earned is None else earned
        name = span["status"] if span["pending"] == 0 else _INCOMPLETE
        label = f"round {span['rounds']}" if t in (0, len(spans) - 1) else None
        known = {"x": span["fdr"], "x_low": span["low"], "x_high": span["high"]}
        place = {"y": y / span["people"] if span["people"] else None, "at": t}
        about = {"tip": f"round {span['rounds']}, {span['known']} outcomes known", "label": label}
        rows.append({"name": name} | known | place | about)
    colours = {**_STATUS, _INCOMPLETE: _GREY}
    shown = {row["name"] for row in rows if row["x"] is not None}
    used = {name: colour for name, colour in colours.items() if name in shown}
    y_title = "Earned per applicant" if utility is not None else "Accepted, share of applicants"
    form = _NUMBER if utility is not None else _PERCENT
    title = "Earned and mistakes, round by round"
    return _points(title, rows, used, y_title, form, run.alpha, joined=True)


def _trade_off_of_methods(results: Results, highlight: Sequence[str] | None) -> Chart:
    earned, title, form = _earned(results)
    fdr = tables.summary(results, "pooled_fdr").estimate[results.main]
    colours, labels = _colours(results, highlight), _labels(results)
    tried = [i for i, name in enumerate(results.methods) if name not in _REFERENCES]
    means = np.nan_to_num(earned.mean, nan=np.inf)
    least = labels[min(tried, key=lambda i: means[i])] if tried else None
    rows = []
    for i, name in enumerate(labels):
        known = colours[name] != _GREY or name == least
        rows.append(
            {
                "name": name,
                "tip": name,
                "label": name if known else None,
                "x": float(fdr.mean[i]),
                "y": float(earned.mean[i]),
                "x_low": float(fdr.low[i]),
                "x_high": float(fdr.high[i]),
                "y_low": float(earned.low[i]),
                "y_high": float(earned.high[i]),
            }
        )
    rows.sort(key=lambda row: colours[str(row["name"])] != _GREY)
    alpha = results.alphas[results.main]
    return _points("Earned against mistakes", rows, colours, title, form, alpha)


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
    values = tables.per_round(results, name)[results.main]
    title = _TITLES.get(name, name.replace("_", " ").capitalize())
    if values.ndim == 4:
        group = tables.focus(results) if group is None else group
        if group not in results.groups:
            raise InputError(f"group must be one of {', '.join(results.groups)}, got {group!r}.")
        values, title = values[..., results.groups.index(group)], f"{title}: {group}"
    rounds, parts = np.unique(results.columns["round"]), spans(values.shape[2])
    shown = np.stack([tables.mean_known(values[:, :, part], axis=2) for part in parts], axis=2)
    at = [int(rounds[part].mean()) for part in parts]
    rows = _estimated(results, tables.over_repetitions(shown, axis=1), at)
    bound = [results.alphas[results.main]] * len(at) if name == "fdr" else []
    form = _NUMBER if name in _AMOUNTS else _PERCENT
    return _lines(title, rows, _colours(results, highlight), form, bound=bound)


def _estimated(results: Results, estimate: Estimate, at: Sequence[Any]) -> list[Row]:
    """Return rows for lines; axes of the estimate: (method, x)."""
    return [
        {"name": name, "x": list(at)}
        | {"y": estimate.mean[i].tolist()}
        | {"low": estimate.low[i].tolist(), "high": estimate.high[i].tolist()}
        for i, name in enumerate(_labels(results))
    ]


def by_setting(results: Results, *, highlight: Sequence[str] | None = None) -> Chart:
    """Draw what was earned and the mistakes for each value of what was varied.

    Parameters
    ----------
    results
        Results with several settings.
    highlight
        The methods to colour and name, at most four; None chooses them.
    """
    if len(results.settings) < 2:
        raise InputError("nothing was varied in these results, so there is nothing to draw.")
    at = [label.partition(" = ")[2] or label for label in results.settings]
    once = [results.methods.index(name) for name in results.about["once"]]
    charts = []
    for name, title, form in (
        ("revenue", "Earned per round, thousands", _NUMBER),
        ("pooled_fdr", "Mistakes: bad among the accepted", _PERCENT),
    ):
        values = tables.per_repetition(results, name)
        values[:, once] = values[results.main, once]  # they ran at one setting, and are level
        rows = _estimated(results, tables.over_repetitions(values.swapaxes(0, 1), axis=2), at)
        bound = list(results.alphas) if name == "pooled_fdr" else []
        colours, x_title = _colours(results, highlight), str(results.varied)
        charts.append(_lines(title, rows, colours, form, bound=bound, x_title=x_title))
    return _stacked(*charts)


def compare(results: Results, *, highlight: Sequence[str] | None = None) -> Chart:
    """Draw what each method earned and its mistakes, with 95 % intervals, the best first.

    Parameters
    ----------
    results
        Results.
    highlight
        The methods to colour, at most four; None chooses them.
    """
    earned, title, form = _earned(results)
    fdr = tables.summary(results, "pooled_fdr").estimate[results.main]
    labels, colours = _labels(results), _colours(results, highlight)
    order = np.argsort(-np.nan_to_num(earned.mean, nan=-np.inf), kind="stable").tolist()

    def rows(estimate: Estimate) -> list[Row]:
        return [
            {"row": labels[i], "name": labels[i], "tip": ""}
            | {"value": float(estimate.mean[i])}
            | {"low": float(estimate.low[i]), "high": float(estimate.high[i])}
            for i in order
        ]

    alpha = results.alphas[results.main]
    mistakes = "Mistakes: bad among the accepted"
    return _stacked(
        _dots(title, rows(earned), colours, form),
        _dots(mistakes, rows(fdr), colours, _PERCENT, alpha),
        axis=_NAMES,
    )


def rounds(x: Any) -> Chart:
    """Draw how many were accepted in each round, and how many of them were bad.

    Parameters
    ----------
    x
        A classifier, program, summary or results.
    """
    if isinstance(x, Results):
        return _stacked(metric(x, "revenue"), metric(x, "fdr"))
    run = _run(x)
    rows = _in_spans(run.rounds)
    for row in rows:
        row["sure"] = row["accepted"] - row["explored"]
    parts = {"accepted for sure": "sure", "explored": "explored"}
    colours = dict(zip(parts, (_BLUE, _ORANGE), strict=True))
    accepted = _bars("Accepted, share of applicants", rows, colours, parts, "people")
    return _stacked(accepted, _mistakes(rows, run.alpha))


def _mistakes(rows: Sequence[Row], alpha: float | None) -> Chart:
    known = [row | {"name": row["status"]} for row in rows if row["known"]]
    options = _scaled(_domain([*(row["fdr"] for row in known), alpha], zero=True), "", _PERCENT)
    x = alt.X("round", **_over_rounds(rows[0]["from"] - 0.1, rows[-1]["to"] + 0.1))
    names = ("name", "round", "rounds", "fdr", "low", "high", "bad", "known")
    base = alt.Chart(_data({name: row[name] for name in names} for row in known))
    title = "Mistakes: bad among known outcomes"
    chosen = _chosen(title)
    base = base.encode(x=x, color=_colour(_STATUS), opacity=_seen(chosen))
    tooltip = [_tip("rounds", "round"), _tip("name", " "), _tip("fdr", "mistakes", _PERCENT)]
    tooltip += [_tip("low", "95 % from", _PERCENT), _tip("high", "to", _PERCENT)]
    tooltip += [_tip("bad", "bad"), _tip("known", "of known outcomes")]
    layers: list[Any] = [
        base.mark_rule(clip=True).encode(y=alt.Y("low", **options), y2="high").add_params(chosen),
        base.mark_point(filled=True, size=50).encode(y=alt.Y("fdr", **options), tooltip=tooltip),
    ]
    if alpha is not None:
        bound = alt.Chart(_data([{"y": alpha, "text": _alpha_text(alpha)}]))
        bound = bound.encode(y=alt.Y("y", **options))
        layers += [
            bound.mark_rule(**_DASHED),
            bound.mark_text(align="left", dx=3, dy=-7).encode(x=alt.value(0), text="text:N"),
        ]
    return _layer(title, *layers, height=200)


def outcomes(x: Any) -> Chart:
    """Draw what became of the applicants accepted in each round.

    Parameters
    ----------
    x
        A classifier, program or summary.
    """
    parts = dict(zip(_STATES, ("good", "bad", "never", "pending"), strict=True))
    return _bars("What became of the accepted", _in_spans(_run(x).rounds), _STATES, parts, "")


def coverage(x: Any, *, highlight: Sequence[str] | None = None) -> Chart:
    """Draw the share of applicants who are known well enough, and the share explored.

    With certificates, the first is the largest certified share.

    Parameters
    ----------
    x
        A classifier, program, summary or results.
    highlight
        For results, the methods to colour and name, at most four; None chooses them.
    """
    if isinstance(x, Results):
        names = ("exploit_share", "explored_share")
        return _stacked(*(metric(x, name, highlight=highlight) for name in names))
    run = _run(x)
    rows = _in_spans(run.rounds)
    names = ("certified" if run.records else "known well enough", "explored")
    shares = (
        [row["covered"] for row in rows],
        [row["explored"] / row["people"] if row["people"] else None for row in rows],
    )
    at = [row["round"] for row in rows]
    lines = [
        {"name": name, "x": at, "y": share, "low": share, "high": share}
        for name, share in zip(names, shares, strict=True)
    ]
    colours = dict(zip(names, (_BLUE, _ORANGE), strict=True))
    return _lines("Shares of the applicants", lines, colours, _PERCENT, zero=True)


def groups(x: Any, *, highlight: Sequence[str] | None = None) -> Chart:
    """Draw who was accepted and the mistakes in each group, with 95 % intervals.

    Results know all outcomes, so they also show the share of the good who were accepted.

    Parameters
    ----------
    x
        A classifier, program, summary or results.
    highlight
        For results, the methods to show, at most four; None chooses them.
    """
    if isinstance(x, Results):
        return _groups_of_methods(x, highlight)
    run = _run(x)
    if not run.groups:
        raise InputError("no groups were counted; pass sensitive_features to fit and decide.")
    charts = []
    for attribute in dict.fromkeys(row["attribute"] for row in run.groups):
        mine = [row for row in run.groups if row["attribute"] == attribute][:_MOST_GROUPS]
        accepted = [_share(row, "accepted", row["accepted"], row["people"]) for row in mine]
        known = [_share(row, "bad", row["bad"], row["good"] + row["bad"]) for row in mine]
        colours = {"accepted": _BLUE, "bad": _RED}
        charts.append(_dots(f"Accepted, by {attribute}", accepted, colours, _PERCENT))
        if any(row["value"] is not None for row in known):
            title = f"Mistakes, by {attribute}"
            charts.append(_dots(title, known, colours, _PERCENT, run.alpha))
    return _stacked(*charts, axis=_NAMES)


def _share(group: Row, name: str, k: int, n: int) -> Row:
    low, high = exact_interval(k, n) if n else (None, None)
    row = {"row": group["group"], "name": name, "tip": f"{k} of {n}"}
    return row | {"value": k / n if n else None, "low": low, "high": high}


def _groups_of_methods(results: Results, highlight: Sequence[str] | None) -> Chart:
    labels = _labels(results)
    colours = {name: c for name, c in _colours(results, highlight).items() if c != _GREY}
    charts = []
    for name, title in (
        ("selection_rate", "Accepted"),
        ("false_discovery_rate", "Mistakes: bad among the accepted"),
        ("true_positive_rate", "Good applicants accepted"),
    ):
        estimate = tables.summary(results, f"pooled_{name}").estimate[results.main]
        rows = [
            {"row": group, "name": method, "tip": ""}
            | {"value": float(estimate.mean[i, g])}
            | {"low": float(estimate.low[i, g]), "high": float(estimate.high[i, g])}
            for g, group in enumerate(results.groups[:_MOST_GROUPS])
            for i, method in enumerate(labels)
            if method in colours
        ]
        alpha = results.alphas[results.main] if name == "false_discovery_rate" else None
        charts.append(_dots(title, rows, colours, _PERCENT, alpha))
    return _stacked(*charts, axis=_NAMES)


def _records(x: Any, method: str | None) -> tuple[dict[Any, list[Row]], float | None]:
    """Return the records of certificates by group, and α."""
    if isinstance(x, Results):
        known = [name for name in certified_methods(x) if records_of(x, name, x.main)]
        name = method if method is not None else next(iter(known), None)
        if name not in known:
            listed = ", ".join(known) or "none"
            raise InputError(
                f"method must have certificates in the results ({listed}), got {name!r}."
            )
        return records_of(x, name, x.main), x.alphas[x.main]
    run = _run(x)
    if not run.records:
        raise InputError("this method gives no certificates; use CertifiedClassifier.")
    return run.records, run.alpha


def certificate(x: Any, *, method: str | None = None) -> Chart:
    """Draw how far certificates reach in each round, and the evidence for the next one.

    Parameters
    ----------
    x
        A certified classifier, a program or summary of one, or results with such a method, whose
        first repetition is drawn.
    method
        For results, the method; None means the first with certificates.
    """
    charts = []
    for group, records in _records(x, method)[0].items():
        of = "" if group is None else f", {group}"
        charts += [_ladder(records, of), _evidence(records, of)]
    return _stacked(*charts)


def _ladder(records: Sequence[Row], of: str) -> Chart:
    frozen, again = (set(when(list(records))) for when in (freezes, restarts))
    parts = [records[span] for span in spans(len(records), _MOST_RECORDS)]
    rows = [
        {
            "round": part[-1]["round"],
            "from": part[0]["round"] - 0.5,
            "to": part[-1]["round"] + 0.5,
            "low": part[-1]["certified_from"],
            "high": part[-1]["certified_to"],
            "share": part[-1]["share"],
            "name": _CERTIFIED if part[-1]["status"] == _CERTIFIED else _PILOT,
        }
        for part in parts
    ]
    marks = [
        {"at": t - 0.5, "name": name}
        for name, found in ((_FROZEN, frozen), (_AGAIN, again))
        for t in sorted(found)
    ]
    colours = {**_STATUS, _FROZEN: _BLUE, _AGAIN: _RED}
    used = {row["name"] for row in (*rows, *marks)}
    colour = _colour({name: c for name, c in colours.items() if name in used})
    shares = [row[name] for row in rows for name in ("share", "high")]
    options = _scaled(_domain(map(_number, shares), zero=True), "", _PERCENT)
    axis = _over_rounds(rows[0]["from"], rows[-1]["to"])
    title = f"Share accepted for sure{of}"
    chosen, base = _chosen(title), alt.Chart(_data(rows))
    tooltip = [_tip("round", "round"), _tip("name", " "), _tip("share", "deployed", _PERCENT)]
    tooltip += [_tip("low", "certified from", _PERCENT), _tip("high", "to", _PERCENT)]
    layers = [
        base.transform_filter("isValid(datum.high)")
        .mark_bar(color=_GREEN, opacity=0.25)
        .encode(x=alt.X("from", **axis), x2="to", y=alt.Y("low", **options), y2="high"),
        alt.Chart(_data(marks))
        .mark_rule(strokeDash=[2, 3], strokeWidth=1.5)
        .encode(x=alt.X("at", **axis), color=colour, opacity=_seen(chosen))
        .add_params(chosen),
        base.mark_line(color=_GREY, strokeWidth=1).encode(
            x=alt.X("round", **axis), y=alt.Y("share", **options)
        ),
        base.mark_point(filled=True, size=45).encode(
            x=alt.X("round", **axis),
            y=alt.Y("share", **options),
            color=colour,
            opacity=_seen(chosen),
            tooltip=tooltip,
        ),
    ]
    return _layer(title, *layers, height=220)


def _evidence(records: Sequence[Row], of: str) -> Chart:
    rows = []
    for span in spans(len(records), _MOST_RECORDS):
        record = records[span][-1]
        wealth, needed = (_number(record[f"next_{name}"]) for name in ("log_wealth", "threshold"))
        share = None if wealth is None or not needed else max(0.0, wealth / needed)
        rows.append({"round": record["round"], "share": share, "has": wealth, "needs": needed})
    shares = [row["share"] for row in rows]
    options = _scaled(_domain([*shares, 1.0], zero=True), "", _PERCENT)
    axis = _over_rounds(rows[0]["round"] - 0.5, rows[-1]["round"] + 0.5)
    base = alt.Chart(_data(rows)).encode(x=alt.X("round", **axis), y=alt.Y("share", **options))
    tooltip = [_tip("round", "round"), _tip("share", "of what is needed", _PERCENT)]
    tooltip += [_tip("has", "evidence", ".3~f"), _tip("needs", "needed", ".3~f")]
    needed = alt.Chart(_data([{"y": 1.0, "text": "enough"}])).encode(y=alt.Y("y", **options))
    return _layer(
        f"Evidence for the next certificate{of}",
        base.mark_line(color=_BLUE, strokeWidth=2),
        base.mark_point(color=_BLUE, filled=True, size=30, opacity=1).encode(tooltip=tooltip),
        needed.mark_rule(**_DASHED),
        needed.mark_text(align="left", dx=3, dy=7).encode(x=alt.value(0), text="text:N"),
        height=160,
    )


def curve(x: Any, *, method: str | None = None) -> Chart:
    """Draw what the certified rule of the last round would earn at other bounds than α.

    Parameters
    ----------
    x
        A certified classifier, a program or summary of one, or results with such a method.
    method
        For results, the method; None means the first with certificates.
    """
    found, alpha = _records(x, method)
    colours = {"certified": _GREEN, "only estimated": _ORANGE}
    charts = []
    for group, records in found.items():
        points = [
            point if isinstance(point, dict) else vars(point) for point in records[-1]["curve"]
        ]
        if not points:
            continue
        rows = [p | {"name": list(colours)[not p["certified"]]} for p in points]
        bounds = [row["bound"] for row in rows]
        across = _scaled(_domain([*bounds, alpha]), "bound on mistakes", _PERCENT)
        up = _scaled(_domain((row["earned"] for row in rows), zero=True), "", _NUMBER)
        base = alt.Chart(_data(rows)).encode(x=alt.X("bound", **across), y=alt.Y("earned", **up))
        tooltip = [_tip("name", " "), _tip("bound", "bound", _PERCENT)]
        tooltip += [_tip("earned", "earned per applicant", _NUMBER)]
        tooltip += [_tip("share", "accepted for sure", _PERCENT)]
        tooltip += [_tip("estimated_fdr", "estimated mistakes", _PERCENT)]
        title = "Earned per applicant at other bounds" + ("" if group is None else f", {group}")
        chosen = _chosen(title)
        layers: list[Any] = [
            base.mark_line(color=_GREY, strokeWidth=1.5),
            base.mark_point(filled=True, size=70)
            .encode(color=_colour(colours), opacity=_seen(chosen), tooltip=tooltip)
            .add_params(chosen),
        ]
        if alpha is not None:
            line = alt.Chart(_data([{"x": alpha, "text": _alpha_text(alpha)}]))
            line = line.encode(x=alt.X("x", **across))
            layers += [
                line.mark_rule(**_DASHED),
                line.mark_text(align="left", dx=4, baseline="top").encode(
                    y=alt.value(3), text="text:N"
                ),
            ]
        charts.append(_layer(title, *layers, height=220))
    if not charts:
        raise InputError("too few outcomes are known for a curve; observe more of them.")
    return _stacked(*charts)


def figures(results: Results) -> dict[str, Chart]:
    """Return every chart that results allow, by name, in reading order."""
    drawn: dict[str, Chart] = {"trade-off": trade_off(results), "compare": compare(results)}
    for name in ("revenue", "cumulative_revenue", "fdr", "exploit_share", "explored_share"):
        drawn[name.replace("_", "-")] = metric(results, name)
    if len(results.groups) > 1:
        drawn["groups"] = groups(results)
    for method in certified_methods(results):
        if records_of(results, method, results.main):
            drawn[f"certificate-{method}"] = certificate(results, method=method)
    if len(results.settings) > 1:
        drawn["settings"] = by_setting(results)
    return drawn


def save(chart: Any, stem: Path) -> list[Path]:
    """Write a chart as SVG and PNG for papers; ``stem`` is the path without suffix."""
    try:
        import vl_convert  # noqa: PLC0415 (an extra)
    except ImportError as missing:  # pragma: no cover
        raise InputError(
            f"files of charts need vl-convert; {to_install('report')} installs it."
        ) from missing
    spec = chart.to_dict()
    spec["config"] = {
        "background": "white",
        "view": {"stroke": None},
        "axis": {"gridColor": "#e4e4e4"},
    }
    vector, image = (stem.with_name(f"{stem.name}.{ending}") for ending in ("svg", "png"))
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    vector.write_text(vl_convert.vegalite_to_svg(spec, vl_version=version), encoding="utf-8")
    image.write_bytes(vl_convert.vegalite_to_png(spec, vl_version=version, scale=2))
    return [vector, image]
