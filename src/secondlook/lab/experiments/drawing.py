"""How results are drawn: one look, one style per method, names where they do not overlap.

Figures belong to no window and no global state.
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
from secondlook.lab.experiments.families import families
from secondlook.lab.experiments.results import Results
from secondlook.lab.experiments.tables import Estimate, Values

try:
    from matplotlib import rc_context
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
except ImportError as missing:  # pragma: no cover (an extra)
    raise InputError(
        f"pictures need matplotlib; {to_install('experiments')} installs it."
    ) from missing

__all__ = [
    "FONT",
    "HEIGHT",
    "LOOK",
    "Style",
    "at_alpha",
    "draw_dots",
    "draw_lines",
    "join_splits",
    "labels",
    "legend_below",
    "name_ends",
    "name_points",
    "name_rows",
    "new_axes",
    "one_panel",
    "round_numbers",
    "save",
    "spread",
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
    "svg.fonttype": "none",  # text stays text: searchable, and read aloud
}
_FONTS = "'DejaVu Sans', Verdana, Helvetica, Arial, sans-serif"
WIDTH, HEIGHT, FONT = 8.4, 4.3, 8.0
_LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


_SETTINGS = {"published": "--", "aligned": "-", "icml": ":"}


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
    "opt-hindsight": Style(_BLACK, "-.", "H"),
    "certified": Style(_BLACK, "-", "8"),
    "certified-within-group": Style(_GREY, "-", "8"),
    "plain-unweighted": Style(_BLUE, "--", "o"),
    "plug-in": Style(_RED, ":", "s"),
    "frozen-past": Style(_GREY, "-.", "X"),
}


def style(results: Results, method: str) -> Style:
    """Return how a method is drawn; a method we do not know gets a style by its place."""
    if method in _STYLES:
        return _STYLES[method]
    base, _, setting = method.rpartition("-")
    if setting in _SETTINGS:
        return _in_setting(results, base, setting)
    strange = [n for n in results.methods if n not in _STYLES and _setting(n) not in _SETTINGS]
    place = strange.index(method)
    colours = (_GREY, _BLUE, _RED, _GREEN, _PURPLE, _ORANGE, _SKY, _BLACK)
    turn = place // len(colours)
    return Style(colours[place % 8], _LINES[(place + turn + 1) % 5], "1234+x|"[place % 7])


def _setting(method: str) -> str:
    return method.rpartition("-")[2]


def _in_setting(results: Results, base: str, setting: str) -> Style:
    """Return a style whose colour tells the method among its family, its line the setting."""
    places = families(results.methods)
    members = next(
        one for one in places.values() if results.methods.index(f"{base}-{setting}") in one
    )
    bases = [results.methods[i].rpartition("-")[0] for i in members]
    place = list(dict.fromkeys(bases)).index(base)
    colours = (_BLUE, _RED, _GREEN, _ORANGE, _PURPLE, _SKY, _BLACK, _GREY)
    return Style(colours[place % 8], _SETTINGS[setting], "os^Dv<>P"[place % 8])


def labels(results: Results, width: int = 100) -> list[str]:
    """Return the methods' names for people, folded to a width."""
    names = results.about.get("labels", {})
    return [fill(str(names.get(name, name)), width) for name in results.methods]


def round_numbers(results: Results) -> NDArray[np.int64]:
    """Return 1, 2, …, one number a round."""
    return np.unique(results.columns["round"])


def new_axes(
    height: float, rows: int = 1, columns: int = 1, **options: Any
) -> tuple[Figure, list[Axes]]:
    """Return a figure and its panels, row by row; ``options`` as ``Figure.subplots`` takes them."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(np.ravel(figure.subplots(rows, columns, **options)))


def draw_lines(
    axes: Axes,
    results: Results,
    x: Sequence[float] | NDArray[np.int64],
    found: Estimate,
    only: Sequence[int] | None = None,
) -> None:
    """Draw a line with a light 95 % band per method; axes of ``found``: (method, x).

    ``only`` names the places of the methods to draw; None means all.
    """
    step = max(1, len(x) // 7)
    names = labels(results)
    for i in range(len(names)) if only is None else only:
        colour, line, marker = style(results, results.methods[i])
        axes.plot(
            x,
            found.mean[i],
            color=colour,
            linestyle=line,
            marker=marker,
            markevery=(i * 2 % step, step),
            label=names[i],
        )
        axes.fill_between(x, found.low[i], found.high[i], color=colour, alpha=0.1, linewidth=0)


def legend_below(figure: Figure, *panels: Axes) -> None:
    """Put one legend for all panels below them, with what is named in some of them."""
    found = [axes.get_legend_handles_labels() for axes in panels]
    handles = [handle for pair in found for handle in pair[0]]
    labels = [label for pair in found for label in pair[1]]
    columns = 2 if max(map(len, labels)) > 34 else 3
    figure.set_figheight(figure.get_figheight() + 0.17 * -(-len(labels) // columns) + 0.1)
    figure.legend(
        handles, labels, loc="outside lower left", ncols=columns, fontsize=FONT, borderpad=0
    )


def name_ends(axes: Axes, results: Results, x: Values, y: Values) -> None:
    """Write each method's name beside the axes, joined to its point, without overlap."""
    names = labels(results, 27)
    known = [i for i in np.argsort(y) if np.isfinite(y[i])]
    low, high = axes.get_ylim()
    unit = FONT * 1.25 / 72 / (0.82 * HEIGHT)  # a line of text, as a share of the axes
    sizes = [unit * (1.25 + names[i].count("\n")) for i in known]
    places = spread([(y[i] - low) / (high - low) for i in known], sizes)
    for i, place in zip(known, places, strict=True):
        colour, _, marker = style(results, results.methods[i])
        joint = {"arrowstyle": "-", "color": colour, "linewidth": 0.7, "shrinkA": 0, "shrinkB": 0}
        axes.annotate(
            "", (x[i], y[i]), (1.05, place), textcoords="axes fraction", arrowprops=joint
        ).set_clip_on(False)
        outside: dict[str, Any] = {"transform": axes.transAxes, "clip_on": False}
        axes.plot([1.06], [place], color=colour, marker=marker, **outside)
        axes.text(1.08, place, names[i], va="center", fontsize=FONT, **outside)


def spread(wanted: Sequence[float], sizes: Sequence[float]) -> list[float]:
    """Return places in order, near those wanted, that leave room for each size.

    Examples
    --------
    >>> [round(place, 2) for place in spread([0.5, 0.5, 0.9], [0.2, 0.2, 0.2])]
    [0.4, 0.6, 0.9]
    """
    before = np.cumsum(sizes) - sizes  # starts less what comes before must not fall
    starts = isotonic_regression(np.asarray(wanted) - np.asarray(sizes) / 2 - before).x
    starts = np.clip(starts, 0.0, max(0.0, 1.0 - float(np.sum(sizes)))) + before
    return [float(place) for place in starts + np.asarray(sizes) / 2]


def one_panel(results: Results, metric: str, title: str, alpha: int | None) -> Figure:
    """Draw one metric over the rounds, a line a method with its name at the end."""
    figure, (axes,) = new_axes(HEIGHT)
    rounds = round_numbers(results)
    found = at_alpha(tables.series(results, metric), results, alpha)
    draw_lines(axes, results, rounds, found)
    axes.set(title=title, xlabel="round")
    last = np.array([_last(row) for row in found.mean])
    name_ends(axes, results, np.full(last.shape, float(rounds[-1])), last)
    return figure


def _last(row: Values) -> float:
    known = row[np.isfinite(row)]
    return float(known[-1]) if known.size else float("nan")


def at_alpha(found: Estimate, results: Results, alpha: int | None) -> Estimate:
    """Return the estimates at one α; None means the experiment's own."""
    return found[tables.main_alpha(results) if alpha is None else alpha]


def draw_dots(axes: Axes, results: Results, found: Estimate, *, filled: bool = True) -> None:
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


def name_rows(axes: Axes, results: Results, width: int = 27) -> None:
    """Write the methods' names down the left side, folded to a width."""
    n = len(results.methods)
    axes.set_yticks(-np.arange(n), labels(results, width), fontsize=FONT)
    axes.set_ylim(-n + 0.4, 0.6)
    axes.grid(visible=False, axis="y")


def name_points(
    axes: Axes, results: Results, x: Values, y: Values, names: Sequence[str] | None = None
) -> None:
    """Write names beside points, each at the first place that no other name has taken.

    ``names`` are what to write; None means the methods' own names.
    """
    taken: list[tuple[float, float, float]] = []
    height = 10.0
    for i in np.flatnonzero(np.isfinite(x) & np.isfinite(y)):
        # Of a constant split, its α_exploit.
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


def join_splits(axes: Axes, results: Results, x: Values, y: Values) -> None:
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


def to_svg(figure: Figure, name: str) -> str:
    """Return a figure as SVG; the same figure and name give the same text."""
    text = io.StringIO()
    with rc_context(LOOK | {"svg.hashsalt": name}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue().replace("'DejaVu Sans'", _FONTS)


def save(figure: Figure, stem: Path, svg: str | None = None) -> list[Path]:
    """Write a figure as SVG and PNG; ``stem`` is the path without ending, ``svg`` if made."""
    vector, image = (stem.with_name(f"{stem.name}.{ending}") for ending in ("svg", "png"))
    vector.write_text(svg or to_svg(figure, stem.name), encoding="utf-8")
    with rc_context(LOOK):
        figure.savefig(image, dpi=160, metadata={"Software": None})
    return [vector, image]
