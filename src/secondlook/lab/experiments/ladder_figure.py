"""A picture of one run's certificates: how far they reach, what is deployed, what comes next."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from secondlook.lab.experiments.certificates import Record, freezes, restarts
from secondlook.lab.experiments.drawing import LOOK, legend_below, new_axes
from secondlook.lab.experiments.tables import Values

__all__ = ["ladder"]

_CERTIFIED, _PILOT, _FREEZE, _RESTART = "#009E73", "#6b6b6b", "#0072B2", "#D55E00"


@rc_context(LOOK)
def ladder(records: dict[Any, list[Record]]) -> Figure:
    """Draw the rounds of one run, a row for each group that has certificates of its own.

    Parameters
    ----------
    records
        By group, ``CertifiedRound`` records in the order of rounds; the key None means everybody.
    """
    figure, panels = new_axes(0.6 + 2.9 * len(records), len(records), 2, width_ratios=(2.1, 1))
    for i, (group, rounds) in enumerate(records.items()):
        of_whom = "" if group is None else f" of group {group}"
        _draw_reach(panels[2 * i], rounds)
        panels[2 * i].set(title=f"Share of applicants{of_whom} accepted for sure", xlabel="round")
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
    for kind, colour, line, face, words in (
        (certified, _CERTIFIED, "-", _CERTIFIED, "deployed with a certificate"),
        (~certified, _PILOT, ":", "white", "deployed as a pilot, no promise"),
    ):
        drawn = np.where(kind, share, np.nan)
        axes.plot(
            t, drawn, color=colour, linestyle=line, marker="o", markerfacecolor=face, label=words
        )
    for rounds, colour, line, words in (
        (freezes(records), _FREEZE, ":", "a ranking was frozen"),
        (restarts(records), _RESTART, "--", "certificates dropped, testing began again"),
    ):
        for i, at in enumerate(rounds):
            axes.axvline(
                at - 0.5,
                color=colour,
                linestyle=line,
                linewidth=1.1,
                label=words if i == 0 else None,
            )
    axes.set_xlim(t[0] - 1, t[-1] + 1)
    axes.set_ylim(bottom=0)


def _draw_wealth(axes: Axes, records: list[Record]) -> None:
    t = _column(records, "round")
    wealth, needed = (_column(records, f"next_{name}") for name in ("log_wealth", "threshold"))
    axes.plot(t, wealth, color="black", label="log wealth of bets on it")
    axes.plot(t, needed, color=_RESTART, linestyle="-.", label="what it must reach")
    axes.set_xlim(t[0] - 1, t[-1] + 1)


def _column(records: list[Record], name: str) -> Values:
    return np.array([np.nan if one[name] is None else one[name] for one in records], float)
