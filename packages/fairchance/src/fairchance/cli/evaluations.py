"""How policies would have done, as ``evaluate`` prints and writes it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from fairchance.audit.evaluate import Evaluation, Measured
from fairchance.cli.output import Console, print_table
from fairchance.extras import arrow
from fairchance.words import counted
from fairchance.words.audits import (
    ESTIMATORS,
    MEASURES,
    assumptions,
    gap,
    measured_value,
    remarks,
    rounds_of,
    shown,
    shown_range,
)

__all__ = ["as_data", "as_table", "estimates_table", "print_evaluations"]

_UNITS = "Profit counts 1 for a good acceptance and −1 for a bad one."


def as_data(one: Evaluation) -> dict[str, Any]:
    """Return an evaluation as plain data for JSON."""
    more = {"identified": one.identified, "verdict": one.verdict_code, "message": one.verdict()}
    return asdict(one) | more


def estimates_table(evaluations: Sequence[Evaluation]) -> Any:
    """Return all estimates as a table: a row per policy, measure, group and estimator."""
    return arrow().concat_tables([as_table(one.columns()) for one in evaluations])


def as_table(columns: Mapping[str, Any]) -> Any:
    """Return columns as a table in which numbers that are not known are missing."""
    pa = arrow()
    return pa.table({name: pa.array(each, from_pandas=True) for name, each in columns.items()})


def print_evaluations(
    console: Console, found: Sequence[Evaluation], currency: str, *, units: bool
) -> None:
    """Print evaluations: verdicts first, then tables and remarks, assumptions last."""
    for one in found:
        _line(console, one.verdict(), "bold")
    for one in found:
        _print_tables(console, one, currency)
    if units:
        _line(console, _UNITS)
    for text in dict.fromkeys(text for one in found for text in assumptions(one)):
        _line(console, text, "dim")


def _print_tables(console: Console, one: Evaluation, currency: str) -> None:
    whole = [row for row in one.measured if not row.group]
    titles = ["", "estimate", "interval at all times"]
    rows = [
        [
            MEASURES[row.measure],
            measured_value(row, currency),
            shown_range(row.measure, row.low, row.high, currency),
        ]
        for row in whole
    ]
    if not one.identified:
        titles.append("if all uncovered are good, bad")
        for line, row in zip(rows, whole, strict=True):
            ends = (row.least, row.most) if row.measure != "profit" else (row.most, row.least)
            line.append(shown_range(row.measure, *ends, currency))
    people, outcomes = counted(one.n_people, "applicant"), counted(one.n_outcomes, "known outcome")
    _line(console, f"{one.policy}, {rounds_of(one)}: {people}, {outcomes}.")
    print_table(console, one.policy, titles, rows)
    _print_estimators(console, whole, currency)
    for attribute in dict.fromkeys(row.attribute for row in one.measured if row.group):
        _print_groups(console, one, attribute, currency)
    for text in remarks(one):
        _line(console, text)


def _line(console: Console, text: str, style: str | None = None) -> None:
    console.print(text, style=style, soft_wrap=True)


def _print_estimators(console: Console, rows: Sequence[Measured], currency: str) -> None:
    """Print the answers of all estimators, if the log identifies them."""
    known = [row for row in rows if len(row.estimates) > 1 and not math.isnan(row.value)]
    if not known:
        return
    titles = [""]
    columns = []
    for row in known:
        pairs = [(one.value, one.standard_error) for one in row.estimates.values()]
        titles.append(MEASURES[row.measure])
        columns.append([" ± ".join(shown(row.measure, x, currency) for x in two) for two in pairs])
    names = [ESTIMATORS[name] for name in known[0].estimates]
    lines = [list(line) for line in zip(names, *columns, strict=True)]
    print_table(console, "Estimators, with standard errors", titles, lines)


def _print_groups(console: Console, one: Evaluation, attribute: str, currency: str) -> None:
    titles = ["group", "applied", "outcomes", "accepted", "bad", "at all times", "profit"]
    rows = []
    of_groups = [row for row in one.measured if row.group and row.attribute == attribute]
    for name in dict.fromkeys(row.group for row in of_groups):
        selected, fdr, profit = (row for row in of_groups if row.group == name)
        rows.append(
            [
                name,
                f"{fdr.n_people:,}",
                f"{fdr.n_outcomes:,}",
                measured_value(selected),
                measured_value(fdr),
                shown_range(fdr.measure, fdr.low, fdr.high),
                measured_value(profit, currency),
            ]
        )
    print_table(console, f"By {attribute}", titles, rows)
    for found in one.gaps:
        if found.attribute == attribute:
            _line(console, gap(found, currency))
