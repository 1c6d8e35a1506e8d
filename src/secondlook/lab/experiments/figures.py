"""Pictures of results: every method in every picture, the same colour and marker throughout.

Nothing is computed here but places on paper; numbers come from ``tables``.
"""

from __future__ import annotations

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from secondlook.errors import InputError
from secondlook.lab.experiments import many_methods, tables
from secondlook.lab.experiments.drawing import (
    HEIGHT,
    LOOK,
    at_alpha,
    draw_dots,
    draw_lines,
    join_splits,
    legend_below,
    name_points,
    name_rows,
    new_axes,
    one_panel,
    round_numbers,
    style,
)
from secondlook.lab.experiments.many_methods import MANY
from secondlook.lab.experiments.results import Results
from secondlook.lab.experiments.tables import Estimate

__all__ = [
    "alpha_sweep",
    "cumulative_revenue",
    "differences",
    "draw_all",
    "exploit_region",
    "exploration",
    "fdr",
    "frontier",
    "revenue",
    "true_positive_rates",
]


@rc_context(LOOK)
def revenue(results: Results, alpha: int | None = None) -> Figure:
    """Draw revenue per round; ``alpha`` is the place of the α to draw, None its main one."""
    title = "Revenue per round, thousands (mean and 95 % band)"
    return one_panel(results, "revenue", title, alpha)


@rc_context(LOOK)
def cumulative_revenue(results: Results, alpha: int | None = None) -> Figure:
    """Draw revenue summed over the rounds so far."""
    title = "Revenue so far, thousands (mean and 95 % band)"
    return one_panel(results, "cumulative_revenue", title, alpha)


@rc_context(LOOK)
def exploit_region(results: Results, alpha: int | None = None) -> Figure:
    """Draw the share of people of whom enough is known."""
    title = "Share of people in the exploit region (mean and 95 % band)"
    return one_panel(results, "exploit_share", title, alpha)


@rc_context(LOOK)
def fdr(results: Results, alpha: int | None = None) -> Figure:
    """Draw the FDR of each round against α, and how many rounds were above it."""
    n = len(results.methods)
    figure, (left, right) = new_axes(max(3.4, 1.2 + 0.3 * n), 1, 2)
    draw_lines(
        left,
        results,
        round_numbers(results),
        at_alpha(tables.series(results, "fdr"), results, alpha),
    )
    bound = results.alphas[tables.main_alpha(results) if alpha is None else alpha]
    left.axhline(bound, color="black", linewidth=1)
    left.set(title=f"FDR per round (black line: α = {bound:g})", xlabel="round")
    left.set_ylim(bottom=0)
    share = tables.summary(results, "above_alpha").estimate
    draw_dots(right, results, at_alpha(share, results, alpha))
    name_rows(right, results)
    right.set(title="Share of rounds with FDR above α", xlim=(-0.02, 1.02))
    return figure


@rc_context(LOOK)
def true_positive_rates(results: Results, alpha: int | None = None) -> Figure:
    """Draw, for each group, the share of its good people that is accepted."""
    n = len(results.groups)
    columns = min(n, 2 if n < 5 else 3)
    rows = -(-n // columns)
    figure, panels = new_axes(0.6 + 2.7 * rows, rows, columns)
    found = at_alpha(tables.series(results, "true_positive_rate"), results, alpha)
    for i, (axes, group) in enumerate(zip(panels, results.groups, strict=False)):
        draw_lines(axes, results, round_numbers(results), found[:, :, i])
        axes.set(title=f"Group {group}", xlabel="round", ylabel="TPR" if not i % columns else "")
    top = max(axes.get_ylim()[1] for axes in panels[:n])
    for axes in panels[:n]:
        axes.set_ylim(0, top)
    for axes in panels[n:]:
        axes.set_axis_off()
    legend_below(figure, panels[0])
    return figure


@rc_context(LOOK)
def differences(results: Results, alpha: int | None = None) -> Figure:
    """Draw differences between groups, per round and pooled, with what chance alone would make."""
    n = len(results.methods)
    figure, panels = new_axes(2 * max(2.6, 0.9 + 0.27 * n), 2, 2)
    at = tables.main_alpha(results) if alpha is None else alpha
    names: tuple[tuple[tables.Rate, str], ...] = (
        ("selection_rate", "Selection-rate difference"),
        ("true_positive_rate", "TPR difference"),
    )
    for (left, right), (rate, title) in zip((panels[:2], panels[2:]), names, strict=True):
        floor = tables.mean_known(tables.noise_floor(results, rate)[at], axis=1)
        rounds = round_numbers(results)
        draw_lines(left, results, rounds, tables.series(results, f"{rate}_difference")[at])
        left.fill_between(rounds, floor.min(0), floor.max(0), color="#999999", alpha=0.5)
        left.set(title=f"{title}, per round (grey: noise floor)", xlabel="round")
        left.set_ylim(bottom=0)
        for metric in (f"{rate}_difference", f"pooled_{rate}_difference"):
            found = tables.summary(results, metric).estimate[at]
            draw_dots(right, results, found, filled=metric.startswith("pooled"))
        right.plot(floor.mean(1), -np.arange(n), "|", color="#555555", markersize=11, mew=1.8)
        right.set(title="hollow: mean of rounds, full: pooled, |: floor")
        right.set_xlim(left=0)
        name_rows(right, results)
    return figure


@rc_context(LOOK)
def exploration(results: Results, alpha: int | None = None) -> Figure:
    """Draw how many people are explored, and the share of bad among them."""
    figure, (left, right) = new_axes(3.2, 1, 2)
    rounds = round_numbers(results)
    shares = at_alpha(tables.series(results, "explored_share"), results, alpha)
    draw_lines(left, results, rounds, shares)
    left.set(title="Explored, share of all people", xlabel="round")
    left.set_ylim(bottom=0)
    draw_lines(
        right, results, rounds, at_alpha(tables.series(results, "explored_fdr"), results, alpha)
    )
    right.set(title="Share of bad among the explored", xlabel="round", ylim=(-0.02, 1.02))
    if not np.nansum(shares.mean):
        right.text(0.5, 0.5, "nobody was explored", ha="center", transform=right.transAxes)
    legend_below(figure, left)
    return figure


@rc_context(LOOK)
def alpha_sweep(results: Results) -> Figure:
    """Draw what each bound α gives: revenue, FDR and differences."""
    figure, panels = new_axes(5.6, 2, 2)
    metrics = (
        ("revenue", "Revenue per round, thousands"),
        ("pooled_fdr", "FDR, pooled over rounds (black line: α)"),
        ("pooled_selection_rate_difference", "Selection-rate difference, pooled"),
        ("pooled_true_positive_rate_difference", "TPR difference, pooled"),
    )
    order = np.argsort(results.alphas)
    alphas = np.asarray(results.alphas)[order]
    for axes, (metric, title) in zip(panels, metrics, strict=True):
        found = tables.summary(results, metric).estimate
        parts = (found.mean, found.standard_error, found.half_width)
        draw_lines(axes, results, alphas.tolist(), Estimate(*(part[order].T for part in parts)))
        axes.set(title=title, xlabel="α")
    panels[1].plot(alphas, alphas, color="black", linewidth=1)
    for axes in panels[2:]:
        axes.set_ylim(bottom=0)
    legend_below(figure, panels[0])
    return figure


@rc_context(LOOK)
def frontier(results: Results, group: str, alpha: int | None = None) -> Figure:
    """Draw late revenue against the late TPR of one group, a point with standard errors each."""
    if group not in results.groups:
        raise InputError(f"the groups are {', '.join(results.groups)}, got {group!r}.")
    figure, (axes,) = new_axes(HEIGHT)
    x = at_alpha(tables.summary(results, "late_revenue").estimate, results, alpha)
    y = at_alpha(tables.summary(results, "late_true_positive_rate").estimate, results, alpha)
    y = y[:, results.groups.index(group)]
    for i, method in enumerate(results.methods):
        colour, _, marker = style(results, method)
        axes.errorbar(
            x.mean[i],
            y.mean[i],
            xerr=np.nan_to_num(x.standard_error[i]),
            yerr=np.nan_to_num(y.standard_error[i]),
            color=colour,
            marker=marker,
            markersize=8,
            linewidth=1,
            capsize=2,
        )
    n = tables.late_rounds(results)
    axes.set(
        title=f"The last {n} rounds: what it earns, and whom it reaches (± standard error)",
        xlabel="revenue per round, thousands",
        ylabel=f"TPR of group {group}",
    )
    join_splits(axes, results, x.mean, y.mean)
    figure.draw_without_rendering()  # only then is it known where points lie
    name_points(axes, results, x.mean, y.mean)
    return figure


def draw_all(results: Results) -> dict[str, Figure]:
    """Return every figure that the results allow, by name, in the order to look at them."""
    if len(results.methods) > MANY:
        return many_methods.draw_all(results)
    drawn = {
        "revenue": revenue(results),
        "cumulative-revenue": cumulative_revenue(results),
        "fdr": fdr(results),
        "true-positive-rates": true_positive_rates(results),
        "differences": differences(results),
        "frontier": frontier(results, tables.focus(results)),
        "exploration": exploration(results),
        "exploit-region": exploit_region(results),
    }
    return drawn | ({"alpha-sweep": alpha_sweep(results)} if len(results.alphas) > 1 else {})
