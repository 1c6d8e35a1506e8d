"""Figures of results: every method in every figure, with the same colour and marker throughout.

Figures compute nothing but positions; numbers come from ``tables``. With more methods than one
panel can show, each family of methods gets a panel. Figures use no global state.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from secondlook.errors import InputError, to_install
from secondlook.lab.experiments import tables
from secondlook.lab.experiments.certificates import (
    Record,
    certified_methods,
    freezes,
    records_of,
    restarts,
)
from secondlook.lab.experiments.results import Results
from secondlook.lab.experiments.tables import Estimate, Values

try:
    from matplotlib import rc_context
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
except ImportError as missing:  # pragma: no cover (an extra)
    raise InputError(
        f"figures need matplotlib; {to_install('experiments')} installs it."
    ) from missing

__all__ = [
    "FONT",
    "LOOK",
    "MANY",
    "Style",
    "draw_all",
    "draw_certificates",
    "families",
    "ladder",
    "legend_below",
    "new_axes",
    "save",
    "style",
    "to_svg",
]

LOOK: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.5,
    "legend.frameon": False,
    "legend.handlelength": 3.6,
    "svg.fonttype": "none",  # text stays text, for search and screen readers
}
_FONTS = "'DejaVu Sans', Verdana, Helvetica, Arial, sans-serif"
WIDTH, HEIGHT, FONT = 8.4, 4.3, 8.0
_LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))

_SETTINGS = {"published": "--", "aligned": "-", "icml": ":"}
MANY = 14  # methods in one panel at most
_BACKGROUND = "#ececec"
_MOST_GROUPS = 3  # side by side
_MOST_LINES = 8  # that can be told apart in one panel

# Titles of families with the prefixes of their methods; the first match counts.
_FAMILIES = {
    "Certificates": ("certified", "plug-in"),
    "FAIR-CLF and references": ("fair-clf", "opt-", "logistic-", "best-linear", "ceiling"),
    "Frozen and greedy": ("frozen-", "greedy-", "epsilon-"),
    "Greedy with randomness": ("random-", "thompson-"),
    "Imputed outcomes": ("label-", "extrapolation-", "fuzzy-"),
    "Kilbertus 2020": ("kilbertus",),
    "Yang 2022, Bechavod 2019": ("yang", "bechavod"),
    "Wei 2021": ("wei-",),
    "PLOT and FairAll": ("plot", "fairall", "rateike"),
    "Algorithm 1": ("plain", "exploit-", "explore-", "both-", "no-exploration", "alpha-"),
}
_OTHERS = "Others"

_CERTIFIED, _PILOT, _FREEZE, _RESTART = "#009E73", "#6b6b6b", "#0072B2", "#D55E00"


def draw_all(results: Results) -> dict[str, Figure]:
    """Return every figure that the results allow, by name, in reading order."""
    with rc_context(LOOK):
        drawn = _draw_by_family(results) if len(results.methods) > MANY else _draw_few(results)
        if len(results.settings) > 1:
            drawn["settings"] = _by_setting(results)
        return drawn


def _draw_few(results: Results) -> dict[str, Figure]:
    return {
        "revenue": revenue(results),
        "cumulative-revenue": _one_panel(
            results, "cumulative_revenue", "Revenue so far, thousands (mean and 95 % band)"
        ),
        "fdr": fdr(results),
        "true-positive-rates": true_positive_rates(results),
        "differences": _differences(results),
        "frontier": frontier(results, tables.focus(results)),
        "exploration": exploration(results),
        "exploit-region": exploit_region(results),
    }


def _draw_by_family(results: Results) -> dict[str, Figure]:
    """Draw results of more methods than one panel can show."""
    return {
        "revenue": _over_rounds(results, ("revenue", "Revenue per round, thousands")),
        "cumulative-revenue": _over_rounds(
            results, ("cumulative_revenue", "Revenue so far, thousands")
        ),
        "fdr": _fdr_by_family(results),
        "rounds-above": _dots(results, ("above_alpha", "Share of rounds with FDR above α")),
        "true-positive-rates": _true_positive_rates_by_family(results),
        "differences": _over_rounds(
            results,
            ("selection_rate_difference", "Selection-rate difference per round"),
            ("true_positive_rate_difference", "TPR difference per round"),
        ),
        "differences-pooled": _dots(
            results,
            ("pooled_selection_rate_difference", "Selection-rate difference, pooled"),
            ("pooled_true_positive_rate_difference", "TPR difference, pooled"),
        ),
        "frontier": frontier(results, tables.focus(results)),
        "exploration": _over_rounds(
            results,
            ("explored_share", "Explored, share of all people"),
            ("explored_fdr", "Share of bad among the explored"),
        ),
        "exploit-region": _over_rounds(
            results, ("exploit_share", "Share of people in the exploit region")
        ),
    }


def draw_certificates(results: Results) -> dict[str, Figure]:
    """Return a figure of the first repetition for every certified method, by name."""
    records = {name: records_of(results, name, results.main) for name in certified_methods(results)}
    return {f"certificate-{name}": ladder(rounds) for name, rounds in records.items() if rounds}


@rc_context(LOOK)
def revenue(results: Results) -> Figure:
    """Draw revenue per round."""
    title = "Revenue per round, thousands (mean and 95 % band)"
    return _one_panel(results, "revenue", title)


@rc_context(LOOK)
def exploit_region(results: Results) -> Figure:
    """Draw the share of people in the exploit region."""
    title = "Share of people in the exploit region (mean and 95 % band)"
    return _one_panel(results, "exploit_share", title)


@rc_context(LOOK)
def fdr(results: Results) -> Figure:
    """Draw the FDR of each round against α, and the share of rounds above it."""
    n = len(results.methods)
    figure, (left, right) = new_axes(max(3.4, 1.2 + 0.3 * n), 1, 2)
    _draw_lines(left, results, _round_numbers(results), _series(results, "fdr"))
    bound = results.alphas[results.main]
    left.axhline(bound, color="black", linewidth=1)
    left.set(title=f"FDR per round (black line: α = {bound:g})", xlabel="round")
    left.set_ylim(bottom=0)
    _draw_dots(right, results, _estimate(results, "above_alpha"))
    _label_rows(right, results)
    right.set(title="Share of rounds with FDR above α", xlim=(-0.02, 1.02))
    return figure


@rc_context(LOOK)
def true_positive_rates(results: Results) -> Figure:
    """Draw the accepted share of each group's good people."""
    n = len(results.groups)
    columns = min(n, 2 if n < 5 else 3)
    rows = -(-n // columns)
    figure, panels = new_axes(0.6 + 2.7 * rows, rows, columns)
    rates = _series(results, "true_positive_rate")
    for i, (axes, group) in enumerate(zip(panels, results.groups, strict=False)):
        _draw_lines(axes, results, _round_numbers(results), rates[:, :, i])
        axes.set(title=f"Group {group}", xlabel="round", ylabel="TPR" if not i % columns else "")
    top = max(axes.get_ylim()[1] for axes in panels[:n])
    for axes in panels[:n]:
        axes.set_ylim(0, top)
    for axes in panels[n:]:
        axes.set_axis_off()
    legend_below(figure, panels[0])
    return figure


def _differences(results: Results) -> Figure:
    """Draw differences between groups, per round and pooled, with their noise floor."""
    n = len(results.methods)
    figure, panels = new_axes(2 * max(2.6, 0.9 + 0.27 * n), 2, 2)
    at, rounds = results.main, _round_numbers(results)
    names: tuple[tuple[tables.Rate, str], ...] = (
        ("selection_rate", "Selection-rate difference"),
        ("true_positive_rate", "TPR difference"),
    )
    for (left, right), (rate, title) in zip((panels[:2], panels[2:]), names, strict=True):
        floor = tables.mean_known(tables.noise_floor(results, rate)[at], axis=1)
        _draw_lines(left, results, rounds, _series(results, f"{rate}_difference"))
        left.fill_between(rounds, floor.min(0), floor.max(0), color="#999999", alpha=0.5)
        left.set(title=f"{title}, per round (grey: noise floor)", xlabel="round")
        left.set_ylim(bottom=0)
        for metric in (f"{rate}_difference", f"pooled_{rate}_difference"):
            filled = metric.startswith("pooled")
            _draw_dots(right, results, _estimate(results, metric), filled=filled)
        right.plot(floor.mean(1), -np.arange(n), "|", color="#555555", markersize=11, mew=1.8)
        right.set(title="hollow: mean of rounds, full: pooled, |: floor")
        right.set_xlim(left=0)
        _label_rows(right, results)
    return figure


@rc_context(LOOK)
def exploration(results: Results) -> Figure:
    """Draw the share of explored people, and the share of bad people among them."""
    figure, (left, right) = new_axes(3.2, 1, 2)
    rounds = _round_numbers(results)
    shares = _series(results, "explored_share")
    _draw_lines(left, results, rounds, shares)
    left.set(title="Explored, share of all people", xlabel="round")
    left.set_ylim(bottom=0)
    _draw_lines(right, results, rounds, _series(results, "explored_fdr"))
    right.set(title="Share of bad among the explored", xlabel="round", ylim=(-0.02, 1.02))
    if not np.nansum(shares.mean):
        right.text(0.5, 0.5, "no one was explored", ha="center", transform=right.transAxes)
    legend_below(figure, left)
    return figure


def _by_setting(results: Results) -> Figure:
    """Draw revenue, FDR and differences for each setting; a method that ran once is level."""
    x = np.arange(len(results.settings))
    once = [results.methods.index(name) for name in results.about["once"]]
    metrics = {
        "revenue": "Revenue per round, thousands",
        "pooled_fdr": "FDR, pooled over rounds (black line: α)",
        "pooled_selection_rate_difference": "Selection-rate difference, pooled",
        "pooled_true_positive_rate_difference": "TPR difference, pooled",
    }
    panels = []
    for metric, title in metrics.items():
        estimate = tables.summary(results, metric).estimate
        for part in vars(estimate).values():
            part[:, once] = part[results.main, once]
        panels.append((title, Estimate(*(part.T for part in vars(estimate).values()))))
    xlabel = str(results.varied)
    if len(results.methods) > MANY:
        figure = _by_family(results, panels[:2], x, xlabel)
    else:
        figure, all_axes = new_axes(5.6, 2, 2)
        for axes, (title, estimate) in zip(all_axes, panels, strict=True):
            _draw_lines(axes, results, x.tolist(), estimate)
            axes.set(title=title, xlabel=xlabel)
        all_axes[1].plot(x, results.alphas, color="black", linewidth=1)
        for axes in all_axes[2:]:
            axes.set_ylim(bottom=0)
        legend_below(figure, all_axes[0])
    for axes in figure.axes:
        axes.set_xticks(x, [label.partition(" = ")[2] for label in results.settings])
    return figure


@rc_context(LOOK)
def frontier(results: Results, group: str) -> Figure:
    """Draw late revenue against the late TPR of a group, each method a point with standard errors.

    Many methods are numbered, and named in a legend.
    """
    if group not in results.groups:
        raise InputError(f"group must be one of {', '.join(results.groups)}, got {group!r}.")
    x = _estimate(results, "late_revenue")
    y = _estimate(results, "late_true_positive_rate")[:, results.groups.index(group)]
    names = labels(results)
    many = len(names) > MANY
    figure, (axes,) = new_axes(HEIGHT + (0.5 + 0.15 * -(-len(names) // 2) if many else 0.0))
    for i, method in enumerate(results.methods):
        colour, _, marker = style(results, method)
        axes.errorbar(
            x.mean[i],
            y.mean[i],
            xerr=np.nan_to_num(x.standard_error[i]),
            yerr=np.nan_to_num(y.standard_error[i]),
            color=colour,
            marker=marker,
            markersize=6 if many else 8,
            linewidth=1,
            capsize=2,
            label=f"{i + 1}  {names[i]}",
        )
    n = tables.late_rounds(results)
    axes.set(
        title=f"Revenue and true positive rate in the last {n} rounds (± standard error)",
        xlabel="revenue per round, thousands",
        ylabel=f"TPR of group {group}",
    )
    if many:
        axes.margins(0.08, 0.2)  # room for numbers
        handles = axes.get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower left", ncols=2, fontsize=FONT - 1, borderpad=0)
    else:
        _join_splits(axes, results, x.mean, y.mean)
    figure.draw_without_rendering()  # only then are positions of points known
    numbers = [str(i + 1) for i in range(len(names))]
    _label_points(axes, results, x.mean, y.mean, numbers if many else None)
    return figure


def _over_rounds(results: Results, *metrics: tuple[str, str]) -> Figure:
    panels = [(title, _series(results, metric)) for metric, title in metrics]
    return _by_family(results, panels, _round_numbers(results), "round")


def _fdr_by_family(results: Results) -> Figure:
    bound = results.alphas[results.main]
    figure = _over_rounds(results, ("fdr", f"FDR per round (black line: α = {bound:g})"))
    for axes in figure.axes:
        axes.axhline(bound, color="black", linewidth=1)
    return figure


def _true_positive_rates_by_family(results: Results) -> Figure:
    rates = _series(results, "true_positive_rate")
    groups = results.groups if len(results.groups) <= _MOST_GROUPS else (tables.focus(results),)
    panels = [
        (f"TPR of group {group}", rates[:, :, results.groups.index(group)]) for group in groups
    ]
    return _by_family(results, panels, _round_numbers(results), "round")


def _by_family(
    results: Results,
    panels: Sequence[tuple[str, Estimate]],
    x: NDArray[np.int64] | NDArray[np.float64],
    xlabel: str,
) -> Figure:
    """Draw a row per family and a column per metric; axes of an estimate: (method, x)."""
    rows = families(results.methods)
    columns = len(panels)
    figure, axes = new_axes(0.7 + 1.75 * len(rows), len(rows), columns, sharex=True, sharey="col")
    for row, (family, members) in enumerate(rows.items()):
        in_row = axes[row * columns : (row + 1) * columns]
        for panel, (_, estimate) in zip(in_row, panels, strict=True):
            low, high = _range(estimate.mean)
            panel.fill_between(x, low, high, color=_BACKGROUND, linewidth=0)
            _draw_lines(panel, results, x.tolist(), estimate, members)
            # Few repetitions make wide bands that would leave no room for the lines.
            panel.set_ylim(*_limits(low, high))
        in_row[0].set_title(family, fontsize=FONT + 1)
        in_row[-1].legend(loc="upper left", bbox_to_anchor=(1.01, 1.05), fontsize=FONT - 1)
    for panel, (title, _) in zip(axes[:columns], panels, strict=True):
        panel.set_title(title if panel is not axes[0] else f"{title}\n{panel.get_title('left')}")
    for panel in axes[-columns:]:
        panel.set_xlabel(xlabel)
    return figure


def _range(means: Values) -> tuple[Values, Values]:
    """Return the smallest and the largest known value at each x; axes of means: (method, x)."""
    known = np.isfinite(means)
    low = np.where(known, means, np.inf).min(axis=0)
    high = np.where(known, means, -np.inf).max(axis=0)
    unknown = ~known.any(axis=0)
    return np.where(unknown, np.nan, low), np.where(unknown, np.nan, high)


def _limits(low: Values, high: Values) -> tuple[float, float]:
    """Return the limits of an axis that shows a whole range."""
    known = np.isfinite(low) & np.isfinite(high)
    if not known.any():
        return 0.0, 1.0
    begin, end = float(low[known].min()), float(high[known].max())
    room = 0.08 * (end - begin) or 0.05
    return begin - room, end + room


def _dots(results: Results, *metrics: tuple[str, str]) -> Figure:
    """Draw a point with its interval per method, a column per metric."""
    figure, axes = new_axes(1.0 + 0.24 * len(results.methods), 1, len(metrics))
    for panel, (metric, title) in zip(axes, metrics, strict=True):
        estimate = _estimate(results, metric)
        _draw_dots(panel, results, estimate)
        _label_rows(panel, results, 60)
        panel.set(title=title)
        error = np.nan_to_num(estimate.standard_error)
        panel.set_xlim(*_limits(np.minimum(estimate.mean - error, 0.0), estimate.mean + error))
    for panel in axes[1:]:
        panel.set_yticklabels([])
    return figure


@rc_context(LOOK)
def ladder(records: dict[Any, list[Record]]) -> Figure:
    """Draw the certificates of one run, a row for each group with its own certificate.

    Parameters
    ----------
    records
        By group, ``CertifiedRound`` records in the order of rounds; the key None means all groups.
    """
    figure, panels = new_axes(0.6 + 2.9 * len(records), len(records), 2, width_ratios=(2.1, 1))
    for i, (group, rounds) in enumerate(records.items()):
        of_group = "" if group is None else f" of group {group}"
        _draw_reach(panels[2 * i], rounds)
        panels[2 * i].set(title=f"Share of applicants{of_group} accepted for sure", xlabel="round")
        _draw_wealth(panels[2 * i + 1], rounds)
        panels[2 * i + 1].set(title="Evidence for the next certificate", xlabel="round")
    legend_below(figure, panels[0], panels[1])
    return figure


def _draw_reach(axes: Axes, records: list[Record]) -> None:
    t, share = _column(records, "round"), _column(records, "share")
    low, high = (_column(records, f"certified_{end}") for end in ("from", "to"))
    certified = np.array([record["status"] == "certified" for record in records])
    axes.fill_between(
        t, low, high, step="mid", color=_CERTIFIED, alpha=0.25, linewidth=0, label="certified"
    )
    for kind, colour, line, face, label in (
        (certified, _CERTIFIED, "-", _CERTIFIED, "deployed with a certificate"),
        (~certified, _PILOT, ":", "white", "deployed as a pilot, no promise"),
    ):
        drawn = np.where(kind, share, np.nan)
        axes.plot(
            t, drawn, color=colour, linestyle=line, marker="o", markerfacecolor=face, label=label
        )
    for rounds, colour, line, label in (
        (freezes(records), _FREEZE, ":", "a ranking was frozen"),
        (restarts(records), _RESTART, "--", "certificates dropped, tests started again"),
    ):
        for i, at in enumerate(rounds):
            axes.axvline(
                at - 0.5,
                color=colour,
                linestyle=line,
                linewidth=1.1,
                label=label if i == 0 else None,
            )
    axes.set_xlim(t[0] - 1, t[-1] + 1)
    axes.set_ylim(bottom=0)


def _draw_wealth(axes: Axes, records: list[Record]) -> None:
    t = _column(records, "round")
    wealth, needed = (_column(records, f"next_{name}") for name in ("log_wealth", "threshold"))
    axes.plot(t, wealth, color="black", label="log wealth")
    axes.plot(t, needed, color=_RESTART, linestyle="-.", label="wealth needed")
    axes.set_xlim(t[0] - 1, t[-1] + 1)


def _column(records: list[Record], name: str) -> Values:
    return np.array([np.nan if r[name] is None else r[name] for r in records], float)


def labels(results: Results, width: int = 100) -> list[str]:
    """Return the methods' names for readers, folded to a width."""
    names = results.about.get("labels", {})
    return [fill(str(names.get(name, name)), width) for name in results.methods]


def _round_numbers(results: Results) -> NDArray[np.int64]:
    """Return the numbers of the rounds."""
    return np.unique(results.columns["round"])


def new_axes(
    height: float, rows: int = 1, columns: int = 1, **options: Any
) -> tuple[Figure, list[Axes]]:
    """Return a figure and its panels, row by row; ``options`` go to ``Figure.subplots``."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(np.ravel(figure.subplots(rows, columns, **options)))


def _draw_lines(
    axes: Axes,
    results: Results,
    x: Sequence[float] | NDArray[np.int64],
    estimate: Estimate,
    only: Sequence[int] | None = None,
) -> None:
    """Draw a line with a 95 % band per method; axes of the estimate: (method, x).

    ``only`` holds the indices of the methods to draw; None means all.
    """
    step = max(1, len(x) // 7)
    names = labels(results)
    for i in range(len(names)) if only is None else only:
        colour, line, marker = style(results, results.methods[i])
        axes.plot(
            x,
            estimate.mean[i],
            color=colour,
            linestyle=line,
            marker=marker,
            markevery=(i * 2 % step, step),
            label=names[i],
        )
        axes.fill_between(
            x, estimate.low[i], estimate.high[i], color=colour, alpha=0.1, linewidth=0
        )


def legend_below(figure: Figure, *panels: Axes) -> None:
    """Put one legend for all panels below the figure."""
    legends = [axes.get_legend_handles_labels() for axes in panels]
    handles = [handle for legend in legends for handle in legend[0]]
    labels = [label for legend in legends for label in legend[1]]
    columns = 2 if max(map(len, labels)) > 34 else 3
    figure.set_figheight(figure.get_figheight() + 0.17 * -(-len(labels) // columns) + 0.1)
    figure.legend(
        handles, labels, loc="outside lower left", ncols=columns, fontsize=FONT, borderpad=0
    )


def _label_ends(axes: Axes, results: Results, x: Values, y: Values) -> None:
    """Write each method's name beside the axes, connected to its point, without overlap."""
    names = labels(results, 27)
    known = [i for i in np.argsort(y) if np.isfinite(y[i])]
    low, high = axes.get_ylim()
    unit = FONT * 1.25 / 72 / (0.82 * HEIGHT)  # a line of text, as a share of the axes
    sizes = [unit * (1.25 + names[i].count("\n")) for i in known]
    positions = spread([(y[i] - low) / (high - low) for i in known], sizes)
    for i, position in zip(known, positions, strict=True):
        colour, _, marker = style(results, results.methods[i])
        line = {"arrowstyle": "-", "color": colour, "linewidth": 0.7, "shrinkA": 0, "shrinkB": 0}
        axes.annotate(
            "", (x[i], y[i]), (1.05, position), textcoords="axes fraction", arrowprops=line
        ).set_clip_on(False)
        outside: dict[str, Any] = {"transform": axes.transAxes, "clip_on": False}
        axes.plot([1.06], [position], color=colour, marker=marker, **outside)
        axes.text(1.08, position, names[i], va="center", fontsize=FONT, **outside)


def spread(wanted: Sequence[float], sizes: Sequence[float]) -> list[float]:
    """Return positions in order, near the wanted ones, that leave room for each size.

    Examples
    --------
    >>> [round(position, 2) for position in spread([0.5, 0.5, 0.9], [0.2, 0.2, 0.2])]
    [0.4, 0.6, 0.9]
    """
    before = np.cumsum(sizes) - sizes  # starts minus these must not fall
    starts = isotonic_regression(np.asarray(wanted) - np.asarray(sizes) / 2 - before).x
    starts = np.clip(starts, 0.0, max(0.0, 1.0 - float(np.sum(sizes)))) + before
    return [float(position) for position in starts + np.asarray(sizes) / 2]


def _one_panel(results: Results, metric: str, title: str) -> Figure:
    """Draw a metric over the rounds, a line per method with its name at the end."""
    figure, (axes,) = new_axes(HEIGHT)
    rounds = _round_numbers(results)
    estimate = _series(results, metric)
    _draw_lines(axes, results, rounds, estimate)
    axes.set(title=title, xlabel="round")
    last = np.array([_last_known(row) for row in estimate.mean])
    _label_ends(axes, results, np.full(last.shape, float(rounds[-1])), last)
    return figure


def _last_known(row: Values) -> float:
    known = row[np.isfinite(row)]
    return float(known[-1]) if known.size else float("nan")


def _series(results: Results, metric: str) -> Estimate:
    """Return a metric over the rounds at the main setting."""
    return tables.series(results, metric)[results.main]


def _estimate(results: Results, metric: str) -> Estimate:
    """Return a metric of all methods at the main setting."""
    return tables.summary(results, metric).estimate[results.main]


def _draw_dots(axes: Axes, results: Results, estimate: Estimate, *, filled: bool = True) -> None:
    """Draw a point with its 95 % interval per method, from top to bottom."""
    for i, method in enumerate(results.methods):
        colour, _, marker = style(results, method)
        axes.errorbar(
            estimate.mean[i],
            -i,
            xerr=np.nan_to_num(estimate.half_width[i]),
            color=colour,
            marker=marker,
            markerfacecolor=colour if filled else "white",
            markersize=6,
            linewidth=1.2,
            capsize=2,
        )


def _label_rows(axes: Axes, results: Results, width: int = 27) -> None:
    """Write the methods' names on the left side, folded to a width."""
    n = len(results.methods)
    axes.set_yticks(-np.arange(n), labels(results, width), fontsize=FONT)
    axes.set_ylim(-n + 0.4, 0.6)
    axes.grid(visible=False, axis="y")


def _label_points(
    axes: Axes, results: Results, x: Values, y: Values, names: Sequence[str] | None = None
) -> None:
    """Write names beside points, each at the first position without another name.

    ``names`` None means the methods' own names.
    """
    taken: list[tuple[float, float, float]] = []
    height = 10.0
    for i in np.flatnonzero(np.isfinite(x) & np.isfinite(y)):
        # A method with a constant α_exploit is labelled with that number.
        text = results.methods[i].rpartition("@")[2] if names is None else names[int(i)]
        right, up = axes.transData.transform((x[i], y[i])) * 72 / axes.figure.dpi
        width = 5.0 * len(text)
        for dy in (7, -13, 19, -25, 31, -37, 43):
            clear = all(
                abs(up + dy - other) > height or right + 7 > end or right + 7 + width < begin
                for begin, end, other in taken
            )
            if clear:
                break
        taken.append((right + 7, right + 7 + width, up + dy))
        axes.annotate(text, (x[i], y[i]), (7, dy), textcoords="offset points", fontsize=8)


def _join_splits(axes: Axes, results: Results, x: Values, y: Values) -> None:
    """Connect the points of a variant that differ only in a constant α_exploit."""
    splits: dict[str, list[int]] = {}
    for i, method in enumerate(results.methods):
        if "@" in method:
            splits.setdefault(method.partition("@")[0], []).append(i)
    for variant, members in splits.items():
        label = f"{variant} with constant α_exploit"
        axes.plot(x[members], y[members], color="0.6", linewidth=1, zorder=0, label=label)
    if splits:
        axes.legend(loc="upper left", frameon=False)


class Style(NamedTuple):
    """How a method is drawn; line and marker distinguish methods in grey print, too."""

    colour: str
    line: str | tuple[int, tuple[int, ...]]
    marker: str


_BLACK, _ORANGE, _SKY, _GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
_BLUE, _RED, _PURPLE, _GREY = "#0072B2", "#D55E00", "#CC79A7", "#6b6b6b"
_STYLES = {
    "plain": Style(_BLUE, "-", "o"),
    "exploit-fair": Style(_SKY, "-", "s"),
    "explore-fair": Style(_GREEN, "-", "^"),
    "both-fair": Style(_RED, "-", "D"),
    "no-exploration": Style(_PURPLE, "--", "v"),
    "alpha-at-once": Style(_PURPLE, _LINES[4], "P"),
    "fair-clf": Style(_ORANGE, "-.", "X"),
    "fair-clf-schedule": Style(_ORANGE, "--", "<"),
    "opt-offline": Style(_BLACK, ":", "*"),
    "logistic-all-labels": Style(_GREY, ":", "p"),
    "best-linear": Style(_GREY, "--", "h"),
    "ceiling": Style(_BLACK, "-.", "H"),
    "certified": Style(_BLACK, "-", "8"),
    "certified-within-group": Style(_GREY, "-", "8"),
    "plain-searched": Style(_BLUE, ":", "o"),
    "plain-unweighted": Style(_BLUE, "--", "o"),
    "plug-in": Style(_RED, ":", "s"),
    "frozen-past": Style(_GREY, "-.", "X"),
}


def style(results: Results, method: str) -> Style:
    """Return the style of a method; unknown methods get a style by their position."""
    if method in _STYLES:
        return _STYLES[method]
    base, _, setting = method.rpartition("-")
    if setting in _SETTINGS:
        return _in_setting(results, base, setting)
    unknown = [
        name
        for name in results.methods
        if name not in _STYLES and name.rpartition("-")[2] not in _SETTINGS
    ]
    place = unknown.index(method)
    colours = (_GREY, _BLUE, _RED, _GREEN, _PURPLE, _ORANGE, _SKY, _BLACK)
    turn = place // len(colours)
    return Style(colours[place % 8], _LINES[(place + turn + 1) % 5], "1234+x|"[place % 7])


def _in_setting(results: Results, base: str, setting: str) -> Style:
    """Return a style with a colour for the method within its family, and a line for the setting."""
    index = results.methods.index(f"{base}-{setting}")
    members = next(f for f in families(results.methods).values() if index in f)
    bases = [results.methods[i].rpartition("-")[0] for i in members]
    place = list(dict.fromkeys(bases)).index(base)
    colours = (_BLUE, _RED, _GREEN, _ORANGE, _PURPLE, _SKY, _BLACK, _GREY)
    return Style(colours[place % 8], _SETTINGS[setting], "os^Dv<>P"[place % 8])


def families(methods: Sequence[str]) -> dict[str, list[int]]:
    """Return indices of methods by family, in the order of the methods.

    A large family is split.

    Examples
    --------
    >>> families(["plain", "module:function", "explore-fair@0.1"])
    {'Algorithm 1': [0, 2], 'Others': [1]}
    """
    members: dict[str, list[int]] = {}
    for i, name in enumerate(methods):
        titles = (title for title, starts in _FAMILIES.items() if name.startswith(starts))
        members.setdefault(next(titles, _OTHERS), []).append(i)
    return {
        f"{title} ({k // _MOST_LINES + 1})" if len(indices) > _MOST_LINES else title: indices[
            k : k + _MOST_LINES
        ]
        for title, indices in members.items()
        for k in range(0, len(indices), _MOST_LINES)
    }


def to_svg(figure: Figure, name: str) -> str:
    """Return a figure as SVG; equal figures and names give equal text."""
    text = io.StringIO()
    with rc_context(LOOK | {"svg.hashsalt": name}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue().replace("'DejaVu Sans'", _FONTS)


def save(figure: Figure, stem: Path, svg: str | None = None) -> list[Path]:
    """Write a figure as SVG and PNG; ``stem`` is the path without suffix."""
    vector, image = (stem.with_name(f"{stem.name}.{ending}") for ending in ("svg", "png"))
    vector.write_text(svg or to_svg(figure, stem.name), encoding="utf-8")
    with rc_context(LOOK):
        figure.savefig(image, dpi=160, metadata={"Software": None})
    return [vector, image]
