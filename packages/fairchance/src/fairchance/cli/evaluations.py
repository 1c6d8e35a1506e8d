"""How policies would have done, for ``evaluate`` and ``audit``: tables, JSON and sentences."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fairchance.audit.evaluate import Evaluation, Gap, Measured, shown, shown_range
from fairchance.cli.files.tables import write_table, write_whole
from fairchance.cli.options import writing
from fairchance.cli.output import Console, plain_data, print_table
from fairchance.extras import arrow
from fairchance.words import counted, percent, percents

__all__ = ["ESTIMATORS", "MEASURES", "as_data", "as_table", "estimates_table"]
__all__ += [
    "gap_message",
    "measured_range",
    "measured_value",
    "print_evaluations",
    "remarks",
]
__all__ += ["UNITS", "rounds_of", "write_evaluations"]

MEASURES = {
    "selection_rate": "accepted",
    "false_discovery_rate": "bad among the accepted (FDR)",
    "profit": "profit per applicant",
}
ESTIMATORS = {
    "ips": "inverse propensity",
    "self_normalised": "self-normalised",
    "doubly_robust": "doubly robust",
}
UNITS = "Profit counts 1 for a good acceptance and −1 for a bad one; --gain and --loss change this."
_FEW = 100  # equally weighted outcomes, below which an estimate is rough
_HEAVY = 20.0  # a weight with which one outcome counts for so many


# All estimates, for programs


def as_data(one: Evaluation) -> dict[str, Any]:
    """Return an evaluation as plain data for JSON."""
    return asdict(one) | {"verdict": one.verdict(), "identified": one.identified}


def estimates_table(evaluations: Sequence[Evaluation]) -> Any:
    """Return all estimates as a table: a row per policy, measure, group and estimator."""
    return arrow().concat_tables([as_table(one.columns()) for one in evaluations])


def as_table(columns: Mapping[str, Any]) -> Any:
    """Return columns as a table in which numbers that are not known are missing."""
    pa = arrow()
    return pa.table({name: pa.array(each, from_pandas=True) for name, each in columns.items()})


def write_evaluations(evaluations: Sequence[Evaluation], out: str) -> None:
    """Write all estimates to a csv, parquet or JSON file, or as csv to standard output."""
    if Path(out).suffix.lower() != ".json":
        write_table(estimates_table(evaluations), out)
        return
    text = json.dumps(plain_data([as_data(one) for one in evaluations]), indent=1)
    with writing(out):
        write_whole(f"{text}\n".encode(), Path(out))


# For readers


def measured_value(row: Measured, currency: str = "") -> str:
    """Write an estimate, or in a few words why there is none."""
    if math.isnan(row.value):
        return (row.note or "not identified").partition(":")[0].rstrip(".").lower()
    return shown(row.measure, row.value, currency)


def measured_range(row: Measured, currency: str = "") -> str:
    """Write the interval of a measure, or what is possible if the log does not identify it."""
    ends = row.possible if math.isnan(row.value) else (row.low, row.high)
    text = shown_range(row.measure, *ends, currency)
    return "no interval" if text == "–" else text


def print_evaluations(
    console: Console, found: Sequence[Evaluation], currency: str, units: str = ""
) -> None:
    """Print evaluations: verdicts first, then tables, remarks and units, assumptions last."""
    for one in found:
        _line(console, one.verdict(), "bold")
    for one in found:
        _print_tables(console, one, currency)
    if units:
        _line(console, units)
    for text in dict.fromkeys(text for one in found for text in one.assumptions):
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
    _line(console, f"{one.policy}, {_basis(one)}.")
    print_table(console, one.policy, titles, rows)
    _print_estimators(console, whole, currency)
    for attribute in dict.fromkeys(row.attribute for row in one.measured if row.group):
        _print_groups(console, one, attribute, currency)
    for text in remarks(one):
        _line(console, text)


def _basis(one: Evaluation) -> str:
    """Say what an evaluation is based on."""
    outcomes = counted(one.n_outcomes, "known outcome")
    return f"{rounds_of(one)}: {counted(one.n_people, 'applicant')}, {outcomes}"


def rounds_of(one: Evaluation) -> str:
    """Write the rounds that an evaluation uses."""
    if one.last_round > one.first_round:
        return f"rounds {one.first_round} to {one.last_round}"
    return f"round {one.first_round}"


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
    of_groups = [row for row in one.measured if row.group and row.attribute == attribute]
    names = list(dict.fromkeys(row.group for row in of_groups))
    titles = ["group", "applied", "outcomes", "accepted", "FDR", "at all times", "profit"]
    rows = []
    for name in names:
        by_measure = {row.measure: row for row in of_groups if row.group == name}
        selected, fdr, profit = (by_measure[measure] for measure in MEASURES)
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
    print_table(console, f"Groups by {attribute}", titles, rows)
    for gap in one.gaps:
        if gap.attribute == attribute:
            _line(console, gap_message(gap, currency))


def gap_message(gap: Gap, currency: str) -> str:
    """Say how far groups are apart."""
    ends = shown_range(gap.measure, gap.difference_low, gap.difference_high, currency)
    text = f"largest difference {shown(gap.measure, gap.difference, currency)}"
    text += "" if ends == "–" else f" ({ends})"
    # A difference of shares is in points, not in percent of anything.
    text = (
        f"Between groups by {gap.attribute}, {MEASURES[gap.measure]}: {text.replace('%', 'points')}"
    )
    if not math.isnan(gap.ratio):
        text += f", smallest ratio {gap.ratio:.2f}"
        if not math.isnan(gap.ratio_low):
            text += f" ({gap.ratio_low:.2f} to {gap.ratio_high:.2f})"
    return f"{text}."


def remarks(one: Evaluation) -> Iterator[str]:
    """Yield what the reader should know about the log, if it matters."""
    seen = one.diagnostics
    if seen.hardly_covered > 0 and one.identified:
        yield (
            f"The log hardly covers {percent(seen.hardly_covered)} of its acceptances; intervals "
            f"count them as the worst case, and estimates as if they were like the others."
        )
    if 0 < seen.effective_sample_size < _FEW:
        yield (
            f"The weights leave as much information as {seen.effective_sample_size:.0f} outcomes "
            f"of equal weight, so estimates are rough."
        )
    if seen.largest_weight > _HEAVY:
        yield f"One outcome counts for up to {seen.largest_weight:.0f} applicants."
    if seen.never_known:
        yield (
            f"{counted(seen.never_known, 'outcome')} will never be known; they count as bad in "
            f"estimates, and as the worst case for each bound."
        )
    if seen.left_out:
        yield f"{counted(seen.left_out, 'applicant')} left out, since their features were erased."
    if one.sensitivity is not None:
        hidden = one.sensitivity
        strong = "no hidden selection with odds off by a factor of up to 1,000 could overturn that"
        if math.isfinite(hidden.gamma):
            strong = (
                f"hidden selection that changes the odds of acceptance by a factor of "
                f"Γ = {hidden.gamma:.2f} could overturn that"
            )
        ranges = ", ".join(
            f"{percents(ends)} with Γ = {gamma:g}" for gamma, ends in hidden.ranges.items()
        )
        yield f"{hidden.finding}; {strong}. Possible FDR: {ranges}."
