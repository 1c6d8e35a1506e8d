"""Pictures of results: every method in every picture, the same colour and marker throughout.

Nothing is computed here but places on paper; numbers come from ``tables``. Figures belong to no
window and no global state.
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

from secondlook.errors import InputError
from secondlook.experiments import tables
from secondlook.experiments.results import Results
from secondlook.experiments.tables import Estimate, Values

try:
    from matplotlib import rc_context
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
except ImportError as missing:  # pragma: no cover (an extra)
    raise InputError(
        "pictures need matplotlib; install it with `pip install 'secondlook[report]'`."
    ) from missing

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
    "save",
    "style",
    "to_svg",
    "true_positive_rates",
]

_LOOK: dict[Any, Any] = {
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
    "svg.fonttype": "none",  # text stays text: searchable, and read aloud
}
_FONTS = "'DejaVu Sans', Verdana, Helvetica, Arial, sans-serif"
_WIDTH, _HEIGHT, _FONT = 8.4, 4.3, 8.0
_LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


class Style(NamedTuple):
    """How a method is drawn; line and marker tell methods apart in grey print too."""

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
    "opt-oracle": Style(_GREY, ":", "p"),
    "kilbertus": Style(_GREEN, "--", ">"),
    "yang": Style(_RED, "--", "h"),
    "rateike": Style(_SKY, "--", "d"),
}


def style(results: Results, method: str) -> Style:
    """Return how a method is drawn; a method we do not know gets a style by its place."""
    if method in _STYLES:
        return _STYLES[method]
    place = [name for name in results.methods if name not in _STYLES].index(method)
    colours = (_GREY, _BLUE, _RED, _GREEN, _PURPLE, _ORANGE, _SKY, _BLACK)
    turn = place // len(colours)
    return Style(colours[place % 8], _LINES[(place + turn + 1) % 5], "1234+x|"[place % 7])


def _labels(results: Results, width: int = 100) -> list[str]:
    names = results.about.get("labels", {})
    return [fill(str(names.get(name, name)), width) for name in results.methods]


def _rounds(results: Results) -> NDArray[np.int64]:
    return np.unique(results.columns["round"])


def _axes(height: float, rows: int = 1, columns: int = 1) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(np.ravel(figure.subplots(rows, columns)))


def _lines(
    axes: Axes, results: Results, x: Sequence[float] | NDArray[np.int64], found: Estimate
) -> None:
    """Draw a line with a light 95 % band per method; axes of ``found``: (method, x)."""
    step = max(1, len(x) // 7)
    for i, (method, name) in enumerate(zip(results.methods, _labels(results), strict=True)):
        colour, line, marker = style(results, method)
        axes.plot(
            x,
            found.mean[i],
            color=colour,
            linestyle=line,
            marker=marker,
            markevery=(i * 2 % step, step),
            label=name,
        )
        axes.fill_between(x, found.low[i], found.high[i], color=colour, alpha=0.1, linewidth=0)


def _legend(figure: Figure, axes: Axes) -> None:
    """Put one legend for all panels below them."""
    handles, labels = axes.get_legend_handles_labels()
    columns = 2 if max(map(len, labels)) > 34 else 3
    figure.set_figheight(figure.get_figheight() + 0.17 * -(-len(labels) // columns) + 0.1)
    figure.legend(
        handles, labels, loc="outside lower left", ncols=columns, fontsize=_FONT, borderpad=0
    )


def _name_ends(axes: Axes, results: Results, x: Values, y: Values) -> None:
    """Write each method's name beside the axes, joined to its point, without overlap."""
    names = _labels(results, 27)
    known = [i for i in np.argsort(y) if np.isfinite(y[i])]
    low, high = axes.get_ylim()
    unit = _FONT * 1.25 / 72 / (0.82 * _HEIGHT)  # a line of text, as a share of the axes
    sizes = [unit * (1.25 + names[i].count("\n")) for i in known]
    places = _spread([(y[i] - low) / (high - low) for i in known], sizes)
    for i, place in zip(known, places, strict=True):
        colour, _, marker = style(results, results.methods[i])
        joint = {"arrowstyle": "-", "color": colour, "linewidth": 0.7, "shrinkA": 0, "shrinkB": 0}
        axes.annotate(
            "", (x[i], y[i]), (1.05, place), textcoords="axes fraction", arrowprops=joint
        ).set_clip_on(False)
        outside: dict[str, Any] = {"transform": axes.transAxes, "clip_on": False}
        axes.plot([1.06], [place], color=colour, marker=marker, **outside)
        axes.text(1.08, place, names[i], va="center", fontsize=_FONT, **outside)


def _spread(wanted: Sequence[float], sizes: Sequence[float]) -> list[float]:
    """Return places in order, near those wanted, that leave room for each size.

    Examples
    --------
    >>> [round(place, 2) for place in _spread([0.5, 0.5, 0.9], [0.2, 0.2, 0.2])]
    [0.4, 0.6, 0.9]
    """
    before = np.cumsum(sizes) - sizes  # starts less what comes before must not fall
    starts = isotonic_regression(np.asarray(wanted) - np.asarray(sizes) / 2 - before).x
    starts = np.clip(starts, 0.0, max(0.0, 1.0 - float(np.sum(sizes)))) + before
    return [float(place) for place in starts + np.asarray(sizes) / 2]


def _one_panel(results: Results, metric: str, title: str, alpha: int | None) -> Figure:
    figure, (axes,) = _axes(_HEIGHT)
    rounds = _rounds(results)
    found = _at(tables.series(results, metric), results, alpha)
    _lines(axes, results, rounds, found)
    axes.set(title=title, xlabel="round")
    last = np.array([_last(row) for row in found.mean])
    _name_ends(axes, results, np.full(last.shape, float(rounds[-1])), last)
    return figure


def _last(row: Values) -> float:
    known = row[np.isfinite(row)]
    return float(known[-1]) if known.size else float("nan")


def _at(found: Estimate, results: Results, alpha: int | None) -> Estimate:
    return found[tables.main_alpha(results) if alpha is None else alpha]


def _dots(axes: Axes, results: Results, found: Estimate, *, filled: bool = True) -> None:
    """Draw a point with its 95 % interval per method, from top to bottom."""
    for i, method in enumerate(results.methods):
        colour, _, marker = style(results, method)
        axes.errorbar(
            found.mean[i],
            -i,
            xerr=found.half_width[i] if np.isfinite(found.half_width[i]) else 0.0,
            color=colour,
            marker=marker,
            markerfacecolor=colour if filled else "white",
            markersize=6,
            linewidth=1.2,
            capsize=2,
        )


def _name_rows(axes: Axes, results: Results) -> None:
    n = len(results.methods)
    axes.set_yticks(-np.arange(n), _labels(results, 27), fontsize=_FONT)
    axes.set_ylim(-n + 0.4, 0.6)
    axes.grid(visible=False, axis="y")


@rc_context(_LOOK)
def revenue(results: Results, alpha: int | None = None) -> Figure:
    """Draw revenue per round; ``alpha`` is the place of the α to draw, None its main one."""
    title = "Revenue per round, thousands (mean and 95 % band)"
    return _one_panel(results, "revenue", title, alpha)


@rc_context(_LOOK)
def cumulative_revenue(results: Results, alpha: int | None = None) -> Figure:
    """Draw revenue summed over the rounds so far."""
    title = "Revenue so far, thousands (mean and 95 % band)"
    return _one_panel(results, "cumulative_revenue", title, alpha)


@rc_context(_LOOK)
def exploit_region(results: Results, alpha: int | None = None) -> Figure:
    """Draw the share of people of whom enough is known."""
    title = "Share of people in the exploit region (mean and 95 % band)"
    return _one_panel(results, "exploit_share", title, alpha)


@rc_context(_LOOK)
def fdr(results: Results, alpha: int | None = None) -> Figure:
    """Draw the FDR of each round against α, and how many rounds were above it."""
    n = len(results.methods)
    figure, (left, right) = _axes(max(3.4, 1.2 + 0.3 * n), 1, 2)
    _lines(left, results, _rounds(results), _at(tables.series(results, "fdr"), results, alpha))
    bound = results.alphas[tables.main_alpha(results) if alpha is None else alpha]
    left.axhline(bound, color="black", linewidth=1)
    left.set(title=f"FDR per round (black line: α = {bound:g})", xlabel="round")
    left.set_ylim(bottom=0)
    share = tables.summary(results, "above_alpha").estimate
    _dots(right, results, _at(share, results, alpha))
    _name_rows(right, results)
    right.set(title="Share of rounds with FDR above α", xlim=(-0.02, 1.02))
    return figure


@rc_context(_LOOK)
def true_positive_rates(results: Results, alpha: int | None = None) -> Figure:
    """Draw, for each group, the share of its good people that is accepted."""
    n = len(results.groups)
    columns = min(n, 2 if n < 5 else 3)
    rows = -(-n // columns)
    figure, panels = _axes(0.6 + 2.7 * rows, rows, columns)
    found = _at(tables.series(results, "true_positive_rate"), results, alpha)
    for i, (axes, group) in enumerate(zip(panels, results.groups, strict=False)):
        _lines(axes, results, _rounds(results), found[:, :, i])
        axes.set(title=f"Group {group}", xlabel="round", ylabel="TPR" if not i % columns else "")
    top = max(axes.get_ylim()[1] for axes in panels[:n])
    for axes in panels[:n]:
        axes.set_ylim(0, top)
    for axes in panels[n:]:
        axes.set_axis_off()
    _legend(figure, panels[0])
    return figure


@rc_context(_LOOK)
def differences(results: Results, alpha: int | None = None) -> Figure:
    """Draw differences between groups, per round and pooled, with what chance alone would make."""
    n = len(results.methods)
    figure, panels = _axes(2 * max(2.6, 0.9 + 0.27 * n), 2, 2)
    at = tables.main_alpha(results) if alpha is None else alpha
    names: tuple[tuple[tables.Rate, str], ...] = (
        ("selection_rate", "Selection-rate difference"),
        ("true_positive_rate", "TPR difference"),
    )
    for (left, right), (rate, title) in zip((panels[:2], panels[2:]), names, strict=True):
        floor = np.nan_to_num(tables.noise_floor(results, rate)[at].mean(axis=1))
        rounds = _rounds(results)
        _lines(left, results, rounds, tables.series(results, f"{rate}_difference")[at])
        left.fill_between(rounds, floor.min(0), floor.max(0), color="#999999", alpha=0.5)
        left.set(title=f"{title}, per round (grey: noise floor)", xlabel="round")
        left.set_ylim(bottom=0)
        for metric in (f"{rate}_difference", f"pooled_{rate}_difference"):
            found = tables.summary(results, metric).estimate[at]
            _dots(right, results, found, filled=metric.startswith("pooled"))
        right.plot(floor.mean(1), -np.arange(n), "|", color="#555555", markersize=11, mew=1.8)
        right.set(title="hollow: mean of rounds, full: pooled, |: floor")
        right.set_xlim(left=0)
        _name_rows(right, results)
    return figure


@rc_context(_LOOK)
def exploration(results: Results, alpha: int | None = None) -> Figure:
    """Draw how many people are explored, and the share of bad among them."""
    figure, (left, right) = _axes(3.2, 1, 2)
    rounds = _rounds(results)
    shares = _at(tables.series(results, "explored_share"), results, alpha)
    _lines(left, results, rounds, shares)
    left.set(title="Explored, share of all people", xlabel="round")
    left.set_ylim(bottom=0)
    _lines(right, results, rounds, _at(tables.series(results, "explored_fdr"), results, alpha))
    right.set(title="Share of bad among the explored", xlabel="round", ylim=(-0.02, 1.02))
    if not np.nansum(shares.mean):
        right.text(0.5, 0.5, "nobody was explored", ha="center", transform=right.transAxes)
    _legend(figure, left)
    return figure


@rc_context(_LOOK)
def alpha_sweep(results: Results) -> Figure:
    """Draw what each bound α gives: revenue, FDR and differences."""
    figure, panels = _axes(5.6, 2, 2)
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
        _lines(axes, results, alphas.tolist(), Estimate(*(part[order].T for part in parts)))
        axes.set(title=title, xlabel="α")
    panels[1].plot(alphas, alphas, color="black", linewidth=1)
    for axes in panels[2:]:
        axes.set_ylim(bottom=0)
    _legend(figure, panels[0])
    return figure


@rc_context(_LOOK)
def frontier(results: Results, group: str, alpha: int | None = None) -> Figure:
    """Draw late revenue against the late TPR of one group, a point with standard errors each."""
    if group not in results.groups:
        raise InputError(f"the groups are {', '.join(results.groups)}, got {group!r}.")
    figure, (axes,) = _axes(_HEIGHT)
    x = _at(tables.summary(results, "late_revenue").estimate, results, alpha)
    y = _at(tables.summary(results, "late_true_positive_rate").estimate, results, alpha)
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
    _join_splits(axes, results, x.mean, y.mean)
    figure.draw_without_rendering()  # only then is it known where points lie
    _name_points(axes, results, x.mean, y.mean)
    return figure


def _name_points(axes: Axes, results: Results, x: Values, y: Values) -> None:
    """Write names beside points, each at the first place that no other name has taken."""
    taken: list[tuple[float, float, float]] = []
    height = 10.0
    for i in np.flatnonzero(np.isfinite(x) & np.isfinite(y)):
        text = results.methods[i].rpartition("@")[2]  # of a constant split, its α_exploit
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
    """Draw a line through the points of a variant that differ in their α_exploit only."""
    splits: dict[str, list[int]] = {}
    for i, method in enumerate(results.methods):
        if "@" in method:
            splits.setdefault(method.partition("@")[0], []).append(i)
    for variant, places in splits.items():
        label = f"{variant} with α_exploit held constant"
        axes.plot(x[places], y[places], color="0.6", linewidth=1, zorder=0, label=label)
    if splits:
        axes.legend(loc="upper left", frameon=False)


def draw_all(results: Results) -> dict[str, Figure]:
    """Return every figure that the results allow, by name, in the order to look at them."""
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


def to_svg(figure: Figure, name: str) -> str:
    """Return a figure as SVG; the same figure and name give the same text."""
    text = io.StringIO()
    with rc_context(_LOOK | {"svg.hashsalt": name}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue().replace("'DejaVu Sans'", _FONTS)


def save(figure: Figure, stem: Path, svg: str | None = None) -> list[Path]:
    """Write a figure as SVG and PNG; ``stem`` is the path without ending, ``svg`` if made."""
    vector, image = (stem.with_name(f"{stem.name}.{ending}") for ending in ("svg", "png"))
    vector.write_text(svg or to_svg(figure, stem.name), encoding="utf-8")
    with rc_context(_LOOK):
        figure.savefig(image, dpi=160, metadata={"Software": None})
    return [vector, image]
