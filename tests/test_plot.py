"""Charts: specifications are valid, and their data equal counts made another way."""

from __future__ import annotations

import numpy as np
import pytest

import secondlook as sl
from lab.experiments.test_tables import make_results

METHODS = ("plain", "no-exploration", "certified", "fair-clf", "own:first", "ceiling")


@pytest.fixture(scope="module")
def results():
    return make_results(np.random.default_rng(0), METHODS, size=(4, 9), n=200)


def rows_of(chart, *names):
    """Return the rows of a chart's data that have all these fields."""
    tables = chart.to_dict()["datasets"].values()
    return [row for table in tables for row in table if set(names) <= set(row)]


def fdr_of(results, method, **where):
    """Return the share of bad among the accepted, counted row by row."""
    columns = results.columns
    here = columns["method"] == method
    for name, value in where.items():
        here = here & (columns[name] == value)
    accepted, good = (columns[f"n_accepted{end}"][here].sum() for end in ("", "_good"))
    return (accepted - good) / accepted if accepted else np.nan


def test_lines_are_means_over_repetitions(results):
    rows = {row["name"]: row for row in rows_of(sl.plot.metric(results, "fdr"), "low")}
    assert set(rows) == {name.capitalize() for name in METHODS}
    for method in METHODS:
        for t in range(1, 10):
            each = [fdr_of(results, method, round=t, repetition=r) for r in range(4)]
            known = [value for value in each if np.isfinite(value)]
            assert rows[method.capitalize()]["value"][t - 1] == pytest.approx(
                np.mean(known), rel=1e-4
            )
