"""Pictures of more methods than one panel can hold: a panel a family, the range of all in grey."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from numpy.typing import NDArray

from secondlook.lab.experiments import tables
from secondlook.lab.experiments.drawing import (
    FONT,
    HEIGHT,
    LOOK,
    at_alpha,
    draw_dots,
    draw_lines,
    labels,
    name_points,
    name_rows,
    new_axes,
    round_numbers,
    style,
)
from secondlook.lab.experiments.families import families
from secondlook.lab.experiments.results import Results
from secondlook.lab.experiments.tables import Estimate, Values

__all__ = ["MANY", "draw_all"]

MANY = 14  # methods in one panel at most
_GREY = "#ececec"
_COLUMNS = 3  # groups side by side at most

Panels = Sequence[tuple[str, Estimate]]


def draw_all(results: Results) -> dict[str, Figure]:
    """Return every figure that the results allow, by name, in the order to look at them."""
    with rc_context(LOOK):
        drawn = {
            "revenue": _over_rounds(results, ("revenue", "Revenue per round, thousands")),
            "cumulative-revenue": _over_rounds(
                results, ("cumulative_revenue", "Revenue so far, thousands")
            ),
            "fdr": _fdr(results),
            "rounds-above": _dots(results, ("above_alpha", "Share of rounds with FDR above α")),
            "true-positive-rates": _true_positive_rates(results),
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
            "frontier": _frontier(results),
            "exploration": _over_rounds(
                results,
                ("explored_share", "Explored, share of all people"),
                ("explored_fdr", "Share of bad among the explored"),
            ),
            "exploit-region": _over_rounds(
                results, ("exploit_share", "Share of people in the exploit region")
            ),
        }
        if len(results.alphas) > 1:
            drawn["alpha-sweep"] = _sweep(results)
        return drawn


def _over_rounds(results: Results, *metrics: tuple[str, str]) -> Figure:
    panels = [
        (title, at_alpha(tables.series(results, metric), results, None))
        for metric, title in metrics
    ]
    return _by_family(results, panels, round_numbers(results), "round")


def _fdr(results: Results) -> Figure:
    bound = results.alphas[tables.main_alpha(results)]
    figure = _over_rounds(results, ("fdr", f"FDR per round (black line: α = {bound:g})"))
    for axes in figure.axes:
        axes.axhline(bound, color="black", linewidth=1)
    return figure


def _true_positive_rates(results: Results) -> Figure:
    found = at_alpha(tables.series(results, "true_positive_rate"), results, None)
    groups = results.groups if len(results.groups) <= _COLUMNS else (tables.focus(results),)
    panels = [
        (f"TPR of group {group}", found[:, :, results.groups.index(group)]) for group in groups
    ]
    return _by_family(results, panels, round_numbers(results), "round")


def _sweep(results: Results) -> Figure:
    order = np.argsort(results.alphas)
    panels = []
    for metric, title in (("revenue", "Revenue, thousands"), ("pooled_fdr", "FDR, pooled")):
        one = tables.summary(results, metric).estimate
        parts = (one.mean, one.standard_error, one.half_width)
        panels.append((title, Estimate(*(part[order].T for part in parts))))
    return _by_family(results, panels, np.asarray(results.alphas)[order], "α")


def _by_family(
    results: Results, panels: Panels, x: NDArray[np.int64] | NDArray[np.float64], xlabel: str
) -> Figure:
    """Draw a row a family and a column a metric; axes of an estimate: (method, x)."""
    rows = families(results.methods)
    columns = len(panels)
    figure, axes = new_axes(0.7 + 1.75 * len(rows), len(rows), columns, sharex=True, sharey="col")
    for row, (family, members) in enumerate(rows.items()):
        here = axes[row * columns : (row + 1) * columns]
        for panel, (_, found) in zip(here, panels, strict=True):
            low, high = _range(found.mean)
            panel.fill_between(x, low, high, color=_GREY, linewidth=0)
            draw_lines(panel, results, x.tolist(), found, members)
            # Few repetitions make bands that would leave no room for the lines.
            panel.set_ylim(*_limits(low, high))
        here[0].set_title(family, fontsize=FONT + 1)
        here[-1].legend(loc="upper left", bbox_to_anchor=(1.01, 1.05), fontsize=FONT - 1)
    for panel, (title, _) in zip(axes[:columns], panels, strict=True):
        panel.set_title(title if panel is not axes[0] else f"{title}\n{panel.get_title('left')}")
    for panel in axes[-columns:]:
        panel.set_xlabel(xlabel)
    return figure


def _range(means: Values) -> tuple[Values, Values]:
    """Return the least and the largest of what is known at each place; axes (method, x)."""
    known = np.isfinite(means)
    low = np.where(known, means, np.inf).min(axis=0)
    high = np.where(known, means, -np.inf).max(axis=0)
    unknown = ~known.any(axis=0)
    return np.where(unknown, np.nan, low), np.where(unknown, np.nan, high)


def _limits(low: Values, high: Values) -> tuple[float, float]:
    """Return where an axis begins and ends that shows all of a range."""
    known = np.isfinite(low) & np.isfinite(high)
    if not known.any():
        return 0.0, 1.0
    begin, end = float(low[known].min()), float(high[known].max())
    room = 0.08 * (end - begin) or 0.05
    return begin - room, end + room


def _dots(results: Results, *metrics: tuple[str, str]) -> Figure:
    """Draw a point with its interval per method, a column a metric."""
    figure, axes = new_axes(1.0 + 0.24 * len(results.methods), 1, len(metrics))
    for panel, (metric, title) in zip(axes, metrics, strict=True):
        found = at_alpha(tables.summary(results, metric).estimate, results, None)
        draw_dots(panel, results, found)
        name_rows(panel, results, 60)
        panel.set(title=title)
        error = np.nan_to_num(found.standard_error)
        panel.set_xlim(*_limits(np.minimum(found.mean - error, 0.0), found.mean + error))
    for panel in axes[1:]:
        panel.set_yticklabels([])
    return figure


def _frontier(results: Results) -> Figure:
    """Draw late revenue against the late TPR of the group it is about, numbered, with a key."""
    group = tables.focus(results)
    x = at_alpha(tables.summary(results, "late_revenue").estimate, results, None)
    y = at_alpha(tables.summary(results, "late_true_positive_rate").estimate, results, None)
    y = y[:, results.groups.index(group)]
    names = labels(results)
    figure, (axes,) = new_axes(HEIGHT + 0.5 + 0.15 * -(-len(names) // 2))
    for i, method in enumerate(results.methods):
        colour, _, marker = style(results, method)
        axes.errorbar(
            x.mean[i],
            y.mean[i],
            xerr=np.nan_to_num(x.standard_error[i]),
            yerr=np.nan_to_num(y.standard_error[i]),
            color=colour,
            marker=marker,
            markersize=6,
            linewidth=0.8,
            label=f"{i + 1}  {names[i]}",
        )
    n = tables.late_rounds(results)
    axes.set(
        title=f"The last {n} rounds: what it earns, and whom it reaches (± standard error)",
        xlabel="revenue per round, thousands",
        ylabel=f"TPR of group {group}",
    )
    axes.margins(0.08, 0.2)  # room for numbers
    handles = axes.get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower left", ncols=2, fontsize=FONT - 1, borderpad=0)
    figure.draw_without_rendering()  # only then is it known where points lie
    name_points(axes, results, x.mean, y.mean, [str(i + 1) for i in range(len(names))])
    return figure
