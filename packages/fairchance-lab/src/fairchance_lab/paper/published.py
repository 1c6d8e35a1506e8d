"""The paper's printed tables, for comparison."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any, NamedTuple

from fairchance.errors import InputError
from fairchance_lab.paper.released import DEVIATIONS, applicable_switches
from fairchance_lab.paper.text import with_paper_text

__all__ = [
    "ALPHA",
    "METRICS",
    "PAPER_REPETITIONS",
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
# What makes a row differ most, as names of deviations of the released code.
_VARIANT = ("A1", "C1", "B7", "B9")
_DIFFERENCES = {
    "plain": _VARIANT,
    "exploit-fair": _VARIANT,
    "explore-fair": _VARIANT,
    "both-fair": _VARIANT,
    "opt-offline": ("D1", "D2", "D5"),
    "fair-clf": ("A1", "B9", "B6"),
    "kilbertus": ("K3", "K6"),
    "yang": ("D11",),
    "rateike": ("D11",),
}
_SETTINGS = {
    "published": "cost as in its own paper",
    "aligned": "cost at the break-even point",
    "icml": "values of the paper and its released code",
}
PAPER_REPETITIONS = 50


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


def why_different(experiment: Mapping[str, Any], method: str) -> str:
    """Return why our row differs from the printed one; empty without a printed row.

    The reasons are the deviations of the released code that do not hold in this run. Switches that
    are on are named, and are no reasons; nor is what an option of the run may have changed.

    Parameters
    ----------
    experiment
        The experiment as plain data.
    method
        Name of the method.

    Examples
    --------
    >>> experiment = {"published": "german_gender", "world": {}, "classifier": {}}
    >>> experiment["switches"] = ["A1", "C1"]
    >>> why_different(experiment, "plain")
    'ours: rows weighted, cuts chosen by revenue, and 13 smaller differences; as released: A1, C1'
    >>> why_different(experiment, "fair-clf")
    'ours: cuts chosen by revenue, parity in both directions; as released: A1'
    >>> experiment["switches"] = ["A1", "C1", "B7", "B9"]
    >>> why_different(experiment, "plain").partition(";")[0]
    'unexplained: 26 findings about the released code are not modelled, and 13 switches are off'
    """
    row = paper_row(method)
    if row is None:
        return ""
    variant = _DIFFERENCES[row] is _VARIANT
    known = applicable_switches(experiment["world"], algorithm=variant)
    on = [name for name in experiment["switches"] if name in known]
    options = with_paper_text(experiment["classifier"])
    hidden = {*on, *(name for name in known if DEVIATIONS[name].option in options)}
    ours = [DEVIATIONS[name].ours for name in _DIFFERENCES[row] if name not in hidden]
    n_off = len(set(known) - {*hidden, *_DIFFERENCES[row]}) if variant else 0
    reasons = [_SETTINGS.get(method.rpartition("-")[2], "")] if method != row else []
    if ours:
        smaller = f", and {n_off} smaller differences" if n_off else ""
        reasons.append(f"ours: {', '.join(ours)}{smaller}")
    else:
        n = sum(found.modelled == "no" for found in DEVIATIONS.values())
        off = f", and {n_off} switches are off" if n_off else ""
        reasons.append(f"unexplained: {n} findings about the released code are not modelled{off}")
    if options and variant:
        reasons.append("set: " + ", ".join(f"{key} = {value}" for key, value in options.items()))
    if on:
        reasons.append(f"as released: {', '.join(on)}")
    if row == "rateike" and experiment["published"].startswith("adult"):
        reasons.append(DEVIATIONS["D10"].released)
    return "; ".join(reason for reason in reasons if reason)
