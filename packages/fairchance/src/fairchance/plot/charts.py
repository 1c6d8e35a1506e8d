"""Charts of one run; ``x`` is a fitted classifier, or a ledger's ``Program`` or ``Summary``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import altair as alt

from fairchance.errors import InputError, to_install
from fairchance.plot.marks import (
    BLUE,
    GREEN,
    GREY,
    MOST_GROUPS,
    NUMBER,
    ORANGE,
    PERCENT,
    RED,
    STATUS,
    Chart,
    alpha_text,
    axis_ends,
    bound_line,
    coloured,
    data,
    draw_bars,
    draw_certificates,
    draw_curves,
    draw_dots,
    draw_lines,
    draw_points,
    interval_tips,
    layered,
    over_rounds,
    per_applicant,
    scaled,
    stacked,
    tooltip,
    used_colours,
)
from fairchance.plot.rows import INCOMPLETE, Row, RunRows, rate, read_run, rounded

__all__ = ["certificate", "coverage", "curve", "groups", "money", "outcomes"]
__all__ += ["rounds", "save", "trade_off"]

# What became of accepted applicants: the name and colour of each state.
_STATES = {
    "good": ("good", GREEN),
    "bad": ("bad", RED),
    "not_taken": ("not taken", BLUE),
    "withdrawn": ("withdrawn", ORANGE),
    "pending": ("still to come", GREY),
}


def rounds(x: Any) -> Chart:
    """Draw how many were accepted in each round, and how many of them were bad."""
    run = read_run(x)
    rows = [row | {"sure": row["accepted"] - row["explored"]} for row in run.spans]
    parts = {f"accepted {run.surely}": ("sure", BLUE), "explored": ("explored", ORANGE)}
    accepted = draw_bars("Accepted, share of applicants", rows, parts, "people")
    names = ("name", "round", "rounds", "value", "low", "high", "k", "of")
    known = [{name: row[name] for name in names} for row in rows if row["of"]]
    ends = axis_ends([*(row["high"] for row in known), run.alpha], zero=True)
    up = scaled([0.0, min(1.02, ends[1])], PERCENT)
    title, used = "Mistakes: bad among known outcomes", used_colours(STATUS, known)
    look, chosen = coloured(title, used, legend=len(used) > 1)
    x_axis = alt.X("round", **over_rounds(rows[0]["from"], rows[-1]["to"]))
    base = data(known).encode(x=x_axis, **look)
    points = base.mark_point(filled=True, opacity=1, size=50).add_params(chosen)
    tips = {"rounds": "round", "value": ("mistakes", PERCENT)} | interval_tips(PERCENT)
    tips |= {"k": "bad", "of": "known outcomes"}
    mistakes = layered(
        title,
        base.mark_rule(clip=True, strokeWidth=1.6).encode(y=alt.Y("low", **up), y2="high"),
        points.encode(y=alt.Y("value", **up), tooltip=tooltip(**tips)),
        *bound_line(run.alpha, alpha_text(run.alpha), up, along="y"),
        height=200,
    )
    return stacked([accepted, mistakes])


def outcomes(x: Any) -> Chart:
    """Draw what became of the applicants accepted in each round of a run."""
    spans = read_run(x).spans
    parts = {
        name: (state, colour)
        for state, (name, colour) in _STATES.items()
        if state != "not_taken" or any(span[state] for span in spans)
    }
    return draw_bars("What became of the accepted", spans, parts, "n")


def trade_off(x: Any) -> Chart:
    """Draw what was earned against mistakes, a point for each round."""
    run = read_run(x)
    known, gain = [span for span in run.spans if span["of"]], run.utility
    rows = []
    for span in known:
        earned: float = span["accepted"]
        if gain is not None:
            earned = gain.gain_good * span["good"] + gain.gain_bad * span["bad"]
        name = f"round {span['rounds']}"
        row = {"x": span["value"], "x_low": span["low"], "x_high": span["high"]}
        row |= {"y": earned / span["people"], "tip": f"{name}: {span['of']} outcomes known"}
        row["name"] = INCOMPLETE if span["pending"] else span["name"]
        rows.append(row | {"label": name if span in (known[0], known[-1]) else None})
    y_title, form = (per_applicant(run.currency), NUMBER) if gain else ("Accepted", PERCENT)
    title = "Earned and mistakes, round by round"
    return draw_points(title, rows, used_colours(STATUS, rows), y_title, form, run.alpha)


def money(x: Any) -> Chart:
    """Draw what a ledger's program earned beyond today's policy, and which outcomes are pending.

    The axis has months if rounds have dates, else rounds. Without a policy to compare with, the
    chart shows what the program earned.
    """
    summary = x.summary() if hasattr(x, "ledger") else x
    found = getattr(summary, "money", None)
    if found is None:
        raise InputError("earnings are drawn of a ledger's program with rounds and a utility.")
    whole, names = found.whole, ("period", "n_people", "n_loans", "program", "today")
    compared = rounded(whole.added) is not None or rounded(whole.low) is not None
    title = f"Earned beyond today's policy, by {found.axis}" if compared else "Earned"
    rows = [
        {name: getattr(one, name) for name in names}
        | {"value": one.added if compared else one.program, "low": one.low, "high": one.high}
        for one in found.periods
    ]
    every = alt.Scale(domain=[one.period for one in found.periods], paddingInner=0.15)
    across: Row = {"type": "ordinal", "scale": every}
    across["axis"] = alt.Axis(title=found.axis, labelAngle=0, labelOverlap=True)
    x_axis = alt.X("period", **across)
    ends = axis_ends([row[end] for row in rows for end in ("value", "low", "high")], zero=True)
    up = scaled(ends, NUMBER, summary.currency or None)
    tips = {"period": found.axis, "value": ("difference" if compared else "earned", NUMBER)}
    tips |= interval_tips(NUMBER) | {"program": ("program", NUMBER)}
    tips |= {"today": ("today's policy", NUMBER), "n_loans": "loans"}
    base = data(rows).encode(x=x_axis)
    earned = layered(
        title,
        base.mark_rule(color=BLUE, strokeWidth=1.6).encode(y=alt.Y("low", **up), y2="high"),
        base.mark_point(filled=True, opacity=1, size=50, color=BLUE).encode(
            y=alt.Y("value", **up), tooltip=tooltip(**tips)
        ),
        *bound_line(0.0, "", up, along="y"),
        height=200,
    )
    kinds = {"known": GREEN, "still to come": GREY}
    bars = [
        {"period": one.period, "name": name, "n": n}
        for one in found.periods
        for name, n in zip(kinds, (one.n_known, one.n_pending), strict=True)
    ]
    look, chosen = coloured("Outcomes of loans", kinds)
    waiting = data(bars).mark_bar().add_params(chosen).encode(
        x=x_axis,
        y=alt.Y("n", type="quantitative", axis=alt.Axis(title=None, tickCount=5)),
        tooltip=tooltip(period=found.axis, name=" ", n=("outcomes", NUMBER)),
        **look,
    )  # fmt: skip
    return stacked([earned, layered("Outcomes of loans", waiting, height=120)])


def coverage(x: Any) -> Chart:
    """Draw the share of applicants who are known well enough, and the share explored.

    With certificates, the first is the largest certified share.
    """
    run = read_run(x)
    known = [row["covered"] for row in run.spans]
    explored = [row["explored"] / row["people"] if row["people"] else None for row in run.spans]
    at = [row["round"] for row in run.spans]
    shares = {"certified" if run.records else "well known": known, "explored": explored}
    rows = [{"name": n, "x": at, "value": y, "low": y, "high": y} for n, y in shares.items()]
    colours = dict(zip(shares, (BLUE, ORANGE), strict=True))
    return draw_lines("Shares of the applicants", rows, colours, PERCENT, legend=False)


def groups(x: Any) -> Chart:
    """Draw who was accepted and the mistakes in each group, with intervals at all times."""
    run, charts = read_run(x), []
    for attribute in dict.fromkeys(row["attribute"] for row in run.groups):
        mine = [row for row in run.groups if row["attribute"] == attribute][:MOST_GROUPS]
        accepted, bad = [], []
        for row in mine:
            gone, taken, became = (0, 0), (0, 0), row.get("unplaced")
            if became is not None:
                taken = became.n_accepted, became.n_people - became.n_accepted
                gone = became.outcomes.bad, became.outcomes.good
            accepted.append(rate(row["accepted"], row["people"], row["error"], taken))
            bad.append(rate(row["bad"], row["good"] + row["bad"], row["error"], gone))
        for name, rates, colour, alpha in (
            ("Accepted", accepted, BLUE, None),
            ("Mistakes", bad, RED, run.alpha),
        ):
            pairs = zip(mine, rates, strict=True)
            rows = [{"row": row["group"], "name": name} | known for row, known in pairs]
            if any(row["of"] for row in rows):
                title = f"{name}, by {attribute}"
                charts.append(draw_dots(title, rows, {name: colour}, PERCENT, alpha))
    if not charts:
        raise InputError("no groups were counted; pass sensitive_features to fit and decide.")
    return stacked(charts, [row["group"] for row in run.groups])


def certificate(x: Any) -> Chart:
    """Draw how far certificates reach in each round, and the evidence for the next one."""
    return draw_certificates(_certified(x).records)


def curve(x: Any) -> Chart:
    """Draw what the certified rule of the last round would earn at other bounds than α."""
    run = _certified(x)
    return draw_curves(run.records, run.alpha, run.currency)


def _certified(x: Any) -> RunRows:
    run = read_run(x)
    if not run.records:
        raise InputError("this method gives no certificates; use CertifiedClassifier.")
    return run


def save(chart: Chart, path: str | Path) -> list[Path]:
    """Write a chart as ``.svg`` or ``.png``; as both, for papers, if the path ends in neither."""
    path = Path(path)
    try:
        import vl_convert  # noqa: PLC0415 (an extra)
    except ImportError as missing:  # pragma: no cover
        raise InputError(
            f"figures need vl-convert; {to_install('report')} installs it."
        ) from missing
    spec, version = chart.to_dict(), ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    look = {"background": "white", "view": {"stroke": None}, "axis": {"gridColor": "#e4e4e4"}}
    options: Any = {"vl_version": version, "config": look}
    endings = (".svg", ".png")
    files = [path] if path.suffix in endings else [path.with_name(path.name + e) for e in endings]
    for file in files:
        if file.suffix == ".png":
            file.write_bytes(vl_convert.vegalite_to_png(spec, scale=2, **options))
        else:
            text = _renumbered(vl_convert.vegalite_to_svg(spec, **options))
            file.write_text(text, encoding="utf-8")
    return files


def _renumbered(svg: str) -> str:
    """Return an SVG whose clip paths count from 0; vega numbers them on from chart to chart."""
    found: dict[str, str] = {}
    return re.sub(
        r'(id="|#)(clip\d+)',
        lambda match: match[1] + found.setdefault(match[2], f"clip{len(found)}"),
        svg,
    )
