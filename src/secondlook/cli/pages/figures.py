"""Figures of a program; hatches and markers keep them readable in black and white."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from textwrap import fill, shorten
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from secondlook.core.metrics import exact_interval
from secondlook.lab.experiments.figures import FONT, LOOK, ladder, legend_below, new_axes, to_svg
from secondlook.ledger.summary import GroupSummary, Span, Summary, spans

_BLUE, _ORANGE, _GREEN, _RED, _GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#b9b9b9"
_STATES = (
    ("good", _GREEN, ""),
    ("bad", _RED, "///"),
    ("indeterminate", _ORANGE, "..."),
    ("pending", _GREY, ""),
)


def draw_all(summary: Summary) -> dict[str, Figure]:
    """Return the figures of a program by name, in the order of the page."""
    if not summary.rounds:
        return {}
    runs = spans(summary.rounds)
    drawn = {"fdr": _fdr(summary, runs), "decisions": _decisions(runs), "outcomes": _outcomes(runs)}
    if summary.promise.utility is not None:
        drawn["worth"] = _worth(summary, runs)
    by_attribute: dict[str, list[GroupSummary]] = {}
    for group in summary.groups:
        by_attribute.setdefault(group.attribute, []).append(group)
    for at, (attribute, groups) in enumerate(by_attribute.items()):
        drawn[f"groups-{at}"] = _groups(summary, attribute, groups)
    records = summary.ladders()
    if records:
        drawn["certificate"] = ladder(
            {None if group is None else _plain(str(group)): r for group, r in records.items()}
        )
    return drawn


def quiet_svg(figure: Figure, name: str) -> str:
    """Return a figure as SVG, without warnings about characters that the font lacks."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        return to_svg(figure, name)


@rc_context(LOOK)
def _fdr(summary: Summary, runs: Sequence[Span]) -> Figure:
    figure, (axes,) = new_axes(3.6)
    for certified, face, words in (
        (True, _BLUE, "certified, with exact 95 % interval"),
        (False, "white", "no certificate, with exact 95 % interval"),
    ):
        shown = [span for span in runs if bool(span.certified) == certified and span.outcomes.known]
        if shown:
            _errorbars(axes, [span.middle for span in shown], shown, face, words)
    first, last = runs[0].rounds[0].round, runs[-1].rounds[-1].round
    if summary.promise.alpha is not None:
        axes.axhline(summary.promise.alpha, color="black", linewidth=1, label="α")
    exploit = np.array([span.alpha_exploit for span in runs])
    if np.isfinite(exploit).any():
        x = [span.middle for span in runs]
        axes.plot(x, exploit, color=_GREY, linestyle="--", label="α allowed to the exploited")
    axes.set(title="FDR of the outcomes known", xlabel="round", xlim=(first - 0.7, last + 0.7))
    axes.set_ylim(0, 1.02 if not summary.outcomes.known else None)
    _whole_numbers(axes)
    if axes.get_legend_handles_labels()[0]:
        legend_below(figure, axes)
    return figure


def _errorbars(axes: Axes, x: Any, shown: Sequence[Span], face: str, words: str) -> None:
    values = np.array([span.outcomes.fdr for span in shown])
    ends = np.array([span.outcomes.interval for span in shown])
    axes.errorbar(
        x,
        values,
        yerr=[values - ends[:, 0], ends[:, 1] - values],
        color=_BLUE,
        fmt="o",
        markerfacecolor=face,
        linewidth=1.1,
        capsize=2,
        label=words,
    )


@rc_context(LOOK)
def _decisions(runs: Sequence[Span]) -> Figure:
    figure, (left, right) = new_axes(3.0, 1, 2)
    x = [span.middle for span in runs]
    people = np.array([span.total("n_people") for span in runs], float)
    for axes, name, title, colour, marker in (
        (left, "n_accepted", "Accepted, share of those who applied", _BLUE, "o"),
        (right, "n_explored", "Explored, share of those who applied", _RED, "s"),
    ):
        counts = np.array([span.total(name) for span in runs])
        axes.plot(x, counts / people, color=colour, marker=marker)
        axes.set(title=title, xlabel="round")
        axes.set_ylim(bottom=0)
        _whole_numbers(axes)
    return figure


@rc_context(LOOK)
def _outcomes(runs: Sequence[Span]) -> Figure:
    figure, (axes,) = new_axes(3.2)
    x, width = [span.middle for span in runs], 0.8 * len(runs[0].rounds)
    below = np.zeros(len(runs))
    words = {"indeterminate": "never to be known", "pending": "still to come"}
    for state, colour, hatch in _STATES:
        counts = np.array([getattr(span.outcomes, state) for span in runs])
        axes.bar(
            x,
            counts,
            width,
            below,
            color=colour,
            hatch=hatch,
            edgecolor="white",
            linewidth=0.4,
            label=words.get(state, state),
        )
        below += counts
    axes.set(title="What became of the accepted", xlabel="round")
    axes.grid(visible=False, axis="x")
    _whole_numbers(axes)
    legend_below(figure, axes)
    return figure


@rc_context(LOOK)
def _worth(summary: Summary, runs: Sequence[Span]) -> Figure:
    figure, (axes,) = new_axes(3.0)
    total = np.cumsum([summary.worth(span.outcomes) for span in runs])
    axes.plot([span.middle for span in runs], total, color=_BLUE, marker="o")
    axes.axhline(0, color="black", linewidth=1)
    axes.set(title="Worth so far of accepting, outcomes known", xlabel="round of the decision")
    _whole_numbers(axes)
    return figure


@rc_context(LOOK)
def _groups(summary: Summary, attribute: str, groups: Sequence[GroupSummary]) -> Figure:
    groups = groups[:40]
    figure, (left, right) = new_axes(1.0 + 0.36 * max(3, len(groups)), 1, 2)
    for at, group in enumerate(groups):
        _dot(left, -at, group.n_accepted, group.n_people, _BLUE, "o")
        if group.outcomes.known:
            _dot(right, -at, group.outcomes.bad, group.outcomes.known, _RED, "s")
    names = ["(erased)" if group.group is None else _plain(group.group) for group in groups]
    left.set_yticks(-np.arange(len(groups)), [fill(name, 27) for name in names], fontsize=FONT)
    right.set_yticks(-np.arange(len(groups)), [""] * len(groups))
    for axes in (left, right):
        axes.set_ylim(-len(groups) + 0.4, 0.6)
        axes.grid(visible=False, axis="y")
        axes.set_xlim(-0.02, 1.02)
    if summary.promise.alpha is not None:
        right.axvline(summary.promise.alpha, color="black", linewidth=1)
    left.set(title=f"Accepted, by {_plain(attribute)}")
    right.set(title="FDR of the outcomes known (black: α)")
    return figure


def _dot(axes: Axes, y: float, k: int, n: int, colour: str, marker: str) -> None:
    low, high = exact_interval(k, n)
    axes.errorbar(
        k / n,
        y,
        xerr=[[k / n - low], [high - k / n]],
        color=colour,
        marker=marker,
        markersize=6,
        linewidth=1.2,
        capsize=2,
    )


def _whole_numbers(axes: Axes) -> None:
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _plain(text: str) -> str:
    """Return text in one short line, with dollar signs escaped so that it is no formula."""
    return shorten(text, 60, placeholder=" …").replace("$", r"\$")
