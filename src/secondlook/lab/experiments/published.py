"""The paper's printed tables, for comparison."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import NamedTuple

from secondlook.errors import InputError

__all__ = [
    "ALPHA",
    "METRICS",
    "Printed",
    "paper_data",
    "paper_row",
    "published_table",
    "why_different",
]

ALPHA = 0.15  # of all tables
METRICS = ("revenue", "fdr", "selection_rate_difference", "true_positive_rate_difference")
_NAMES = {
    "algorithm1_plain": "plain",
    "algorithm1_exploit_fair": "exploit-fair",
    "algorithm1_explore_fair": "explore-fair",
    "algorithm1_both_fair": "both-fair",
    "opt_offline": "opt-offline",
    "fair_clf": "fair-clf",
    "kilbertus": "kilbertus",
    "yang": "yang",
    "rateike": "rateike",
}
_DATA = {"german": "german", "adult": "adult-ca-2019"}
_PREFIXES = {"kilbertus-": "kilbertus", "yang-": "yang", "fairall-": "rateike"}
_OURS = (
    "ours: outcomes of the rejected hidden, variants apart, rows weighted, thresholds by revenue"
)
_WHY = {
    "plain": _OURS,
    "exploit-fair": _OURS,
    "explore-fair": _OURS,
    "both-fair": _OURS,
    "opt-offline": "ours: S_0 only, no parity, threshold by revenue; theirs: fitted to the rounds",
    "fair-clf": "ours: rejected unlabelled, threshold by revenue, parity both ways",
    "kilbertus": "theirs adds one number to all weights of f_0 and decides without randomness",
    "yang": "their port is not released; the row accepts nearly everyone or nearly no one",
    "rateike": "their port is not released",
}
_WHY_SETTING = {
    "published": "cost as in its own paper",
    "aligned": "cost at the break-even point",
    "icml": "values stated in the paper, randomised decisions",
}
_IMPOSSIBLE = "; printed revenue and FDR contradict each other"


class Printed(NamedTuple):
    """A number as printed: a mean, and in brackets a standard deviation over rounds and runs."""

    mean: float
    bracket: float


def published_table(key: str) -> dict[str, Mapping[str, Printed]]:
    """Return a table of the paper by our method name, then by metric.

    Revenue is in thousands per round.

    Examples
    --------
    >>> published_table("german_gender")["both-fair"]["revenue"]
    Printed(mean=8.8, bracket=4.1)
    """
    text = resources.files(__package__).joinpath("published.json").read_text(encoding="utf-8")
    tables = json.loads(text)["tables"]
    if key not in tables:
        raise InputError(f"the paper has the tables {', '.join(tables)}, got {key!r}.")
    return {
        _NAMES[method]: {metric: Printed(*row[metric]) for metric in METRICS}
        for method, row in tables[key].items()
    }


def paper_data(key: str) -> str:
    """Return the name of the data set that a table of the paper was made from.

    Examples
    --------
    >>> paper_data("adult_race")
    'adult-ca-2019'
    """
    return _DATA[key.split("_", maxsplit=1)[0]]


def paper_row(method: str) -> str | None:
    """Return the row of the paper's tables that corresponds to a method, or None.

    Examples
    --------
    >>> paper_row("kilbertus-semi-aligned"), paper_row("plain"), paper_row("greedy-aligned")
    ('kilbertus', 'plain', None)
    """
    if method in _NAMES.values():
        return method
    return next((row for start, row in _PREFIXES.items() if method.startswith(start)), None)


def why_different(key: str, method: str) -> str:
    """Return why our row of a table differs from the printed one; empty without a printed row.

    Examples
    --------
    >>> why_different("adult_race", "fairall-aligned").split("; ")[-1]
    'printed revenue and FDR contradict each other'
    """
    row = paper_row(method)
    if row is None:
        return ""
    reasons = [_WHY[row]]
    if method != row:
        reasons.insert(0, _WHY_SETTING.get(method.rpartition("-")[2], ""))
    impossible = row == "rateike" and key.startswith("adult")
    return "; ".join(reason for reason in reasons if reason) + _IMPOSSIBLE * impossible
