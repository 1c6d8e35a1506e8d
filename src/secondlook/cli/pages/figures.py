"""Pictures of a program: colours, hatches and markers tell things apart in grey print too."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill, shorten
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from secondlook.lab.experiments.figures import FONT, LOOK, ladder, legend_below, new_axes, to_svg
from secondlook.ledger.summary import GroupSummary, Outcomes, RoundSummary, Summary, exact_interval

_BLUE, _ORANGE, _GREEN, _RED, _GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#b9b9b9"
_STATES = (
    ("good", _GREEN, ""),
    ("bad", _RED, "///"),
    ("indeterminate", _ORANGE, "..."),
    ("pending", _GREY, ""),
)


def draw_all(found: Summary) -> dict[str, Figure]:
    """Return every picture that a program allows, by name, in the order to look at them."""
    if not found.rounds:
        return {}
    runs = spans(found.rounds)
    drawn = {"fdr": _fdr(found, runs), "decisions": _decisions(runs), "outcomes": _outcomes(runs)}
    if found.promise.utility is not None:
        drawn["worth"] = _worth(found, runs)
    by_attribute: dict[str, list[GroupSummary]] = {}
    for one in found.groups:
        by_attribute.setdefault(one.attribute, []).append(one)
    for at, (attribute, groups) in enumerate(by_attribute.items()):
        drawn[f"groups-{at}"] = _groups(found, attribute, groups)
    records = ladder_records(found)
    if records:
        drawn["certificate"] = ladder(
            {None if group is None else _plain(str(group)): r for group, r in records.items()}
        )
    return drawn


def ladder_records(found: Summary) -> dict[Any, list[dict[str, Any]]]:
    """Return what a certified program noted, round by round, for each group that has its own."""
    records: dict[Any, list[dict[str, Any]]] = {}
    for one in found.rounds:
        for record in one.records:
            if "log_wealth" in record:
                group = record["group"]  # a list, if there are several attributes
                group = ", ".join(map(str, group)) if isinstance(group, list) else group
                records.setdefault(group, []).append(record)
    return records


def quiet_svg(figure: Figure, name: str) -> str:
    """Return a figure as SVG; a letter that this machine's font lacks is left to the reader's."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        return to_svg(figure, name)


@rc_context(LOOK)
def _fdr(found: Summary, runs: Sequence[Span]) -> Figure:
    figure, (axes,) = new_axes(3.6)
    for certified, face, words in (
        (True, _BLUE, "certified, with exact 95 % interval"),
        (False, "white", "no certificate, with exact 95 % interval"),
    ):
        shown = [one for one in runs if bool(one.certified) == certified and one.outcomes.known]
        if shown:
            _errorbars(axes, [one.middle for one in shown], shown, face, words)
    first, last = runs[0].rounds[0].round, runs[-1].rounds[-1].round
    if found.promise.alpha is not None:
        axes.axhline(found.promise.alpha, color="black", linewidth=1, label="α")
    exploit = np.array([one.alpha_exploit for one in runs])
    if np.isfinite(exploit).any():
        x = [one.middle for one in runs]
        axes.plot(x, exploit, color=_GREY, linestyle="--", label="α allowed to the exploited")
    axes.set(title="FDR of the outcomes known", xlabel="round", xlim=(first - 0.7, last + 0.7))
    axes.set_ylim(0, 1.02 if not found.outcomes.known else None)
    _whole_numbers(axes)
    if axes.get_legend_handles_labels()[0]:
        legend_below(figure, axes)
    return figure


def _errorbars(axes: Axes, x: Any, shown: Sequence[Span], face: str, words: str) -> None:
    values = np.array([one.outcomes.fdr for one in shown])
    ends = np.array([one.outcomes.interval for one in shown])
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
    x = [one.middle for one in runs]
    people = np.array([one.total("n_people") for one in runs], float)
    for axes, name, title, colour, marker in (
        (left, "n_accepted", "Accepted, share of those who applied", _BLUE, "o"),
        (right, "n_explored", "Explored, share of those who applied", _RED, "s"),
    ):
        counts = np.array([one.total(name) for one in runs])
        axes.plot(x, counts / people, color=colour, marker=marker)
        axes.set(title=title, xlabel="round")
        axes.set_ylim(bottom=0)
        _whole_numbers(axes)
    return figure


@rc_context(LOOK)
def _outcomes(runs: Sequence[Span]) -> Figure:
    figure, (axes,) = new_axes(3.2)
    x, width = [one.middle for one in runs], 0.8 * len(runs[0].rounds)
    below = np.zeros(len(runs))
    words = {"indeterminate": "never to be known", "pending": "still to come"}
    for state, colour, hatch in _STATES:
        counts = np.array([getattr(one.outcomes, state) for one in runs])
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
def _worth(found: Summary, runs: Sequence[Span]) -> Figure:
    figure, (axes,) = new_axes(3.0)
    total = np.cumsum([found.worth(one.outcomes) for one in runs])
    axes.plot([one.middle for one in runs], total, color=_BLUE, marker="o")
    axes.axhline(0, color="black", linewidth=1)
    axes.set(title="Worth so far of accepting, outcomes known", xlabel="round of the decision")
    _whole_numbers(axes)
    return figure


@rc_context(LOOK)
def _groups(found: Summary, attribute: str, groups: Sequence[GroupSummary]) -> Figure:
    groups = groups[:40]
    figure, (left, right) = new_axes(1.0 + 0.36 * max(3, len(groups)), 1, 2)
    for at, one in enumerate(groups):
        _dot(left, -at, one.n_accepted, one.n_people, _BLUE, "o")
        if one.outcomes.known:
            _dot(right, -at, one.outcomes.bad, one.outcomes.known, _RED, "s")
    names = ["(erased)" if one.group is None else _plain(one.group) for one in groups]
    left.set_yticks(-np.arange(len(groups)), [fill(name, 27) for name in names], fontsize=FONT)
    right.set_yticks(-np.arange(len(groups)), [""] * len(groups))
    for axes in (left, right):
        axes.set_ylim(-len(groups) + 0.4, 0.6)
        axes.grid(visible=False, axis="y")
        axes.set_xlim(-0.02, 1.02)
    if found.promise.alpha is not None:
        right.axvline(found.promise.alpha, color="black", linewidth=1)
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
    """Return text that is drawn as it is: short, in one line, and no formula."""
    return shorten(text, 60, placeholder=" …").replace("$", r"\$")


@dataclass(frozen=True)
class Span:
    """Rounds that follow each other, taken together."""

    rounds: tuple[RoundSummary, ...]

    @property
    def name(self) -> str:
        """Its number, or the first and the last."""
        first, last = self.rounds[0].round, self.rounds[-1].round
        return f"{first}" if first == last else f"{first}–{last}"

    @property
    def middle(self) -> float:
        """Where it lies among the rounds."""
        return (self.rounds[0].round + self.rounds[-1].round) / 2

    def total(self, name: str) -> int:
        """Return the sum of a head count, such as ``"n_people"``."""
        return sum(getattr(one, name) for one in self.rounds)

    @property
    def outcomes(self) -> Outcomes:
        """What became of those accepted, without the overridden."""
        found = [one.outcomes for one in self.rounds]
        return Outcomes(
            sum(one.good for one in found),
            sum(one.bad for one in found),
            sum(one.indeterminate for one in found),
            sum(one.pending for one in found),
        )

    @property
    def certified(self) -> int:
        """How many of its rounds carry a certificate."""
        return sum(one.certified for one in self.rounds)

    @property
    def alpha_exploit(self) -> float:
        """The last round's."""
        return self.rounds[-1].alpha_exploit

    @property
    def promise(self) -> str:
        """Whether its rounds carry a certificate, in a word or as a count."""
        if len(self.rounds) == 1:
            return "certified" if self.certified else "none"
        return f"{self.certified} of {len(self.rounds)} certified"


def spans(rounds: Sequence[RoundSummary], most: int = 60) -> list[Span]:
    """Return rounds one by one or, if there are more than ``most``, in runs of the same length.

    Examples
    --------
    >>> spans([])
    []
    """
    size = math.ceil(len(rounds) / most) or 1
    return [Span(tuple(rounds[at : at + size])) for at in range(0, len(rounds), size)]
