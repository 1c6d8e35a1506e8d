"""The paper's printed tables, to set ours beside."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import NamedTuple

from secondlook.errors import InputError

__all__ = ["ALPHA", "METRICS", "Printed", "paper_data", "published_table"]

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


class Printed(NamedTuple):
    """A number as printed: a mean, and in brackets a standard deviation over rounds and runs."""

    mean: float
    bracket: float


def published_table(key: str) -> dict[str, Mapping[str, Printed]]:
    """Return a table of the paper: by our name of the method, then by metric.

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
