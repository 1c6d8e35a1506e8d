"""What evaluations, audits of groups and maps of the unknown say, in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from fairchance.words import amount, counted, date, intervals_assume, percent, percents

if TYPE_CHECKING:
    from fairchance.audit.evaluate import Evaluation, Gap, Measured
    from fairchance.audit.groups import GroupAudit, GroupFinding, GroupMeasure
    from fairchance.audit.unknown import Condition, UnknownMap

__all__ = ["ESTIMATORS", "MEASURES", "VERDICTS", "assumptions", "condition", "evaluation_verdict"]
__all__ += ["evaluation_view", "finding", "gap", "group_cells", "groups_verdict", "groups_view"]
__all__ += ["measured_range", "measured_value", "remarks", "rounds_of", "shown", "shown_range"]
__all__ += ["unknown_verdict", "unknown_view"]

# What ``notebook.View`` has: a sentence, notes, and the titles and rows of a table.
_Parts = tuple[str, Iterable[str], Sequence[str], Iterable[Sequence[Any]]]

MEASURES = {
    "selection_rate": "accepted",
    "false_discovery_rate": "bad among the accepted",
    "profit": "profit per applicant",
    "bad_rate": "bad among all applicants",
    "true_positive_rate": "accepted among the good",
    "calibration": "mean score minus share of good",
}
ESTIMATORS = {
    "ips": "inverse propensity",
    "self_normalised": "self-normalised",
    "doubly_robust": "doubly robust",
}
VERDICTS = {
    "kept": "It keeps α = {}.",
    "broken": "It breaks α = {}.",
    "open": "Whether it keeps α = {} is open.",
    "unknown": "",
}
_REASONS = {
    "": "not identified",
    "no_complete_round": "no round has all of its outcomes",
    "accepts_none": "it accepts none",
    "not_identified": "not identified",
    "too_few_people": "too few applicants",
    "too_few_outcomes": "too few outcomes",
    "contradiction": "no value fits all rounds",
}
_ASSUMPTIONS = {
    "estimated": "The probabilities of this log are estimated, so there are no intervals: whatever "
    "else decided would make them wrong.",
    "one_population": "Intervals of one measure are right together, at all times, with a "
    "probability of {}, if applicants of all rounds come from one population, acceptances followed "
    "the logged probabilities, neither outcomes nor who takes a loan depend on the draw, and the "
    "policy was fixed before the rounds used.",
    "independent": "{1}",
    "policy_changes": "The policy may differ between rounds; its rates are means over all rounds.",
    "draws": "Some acceptances were draws of fixed size, which depend on each other; they are "
    "evidence by round, not by applicant, so intervals are wider.",
    "pending_worst": "Pending outcomes count as the worst case for each bound, and not in "
    "estimates.",
    "erased_worst": "Erased applicants may be of any group, and a rule on features may accept them "
    "or not; they count as the worst case for each bound, and not in estimates.",
    "pending_cut": "Estimates are about rounds before the first one with pending outcomes.",
    "any_estimate": "An interval is for the true value, whichever estimate is read.",
    "these_applicants": "Values without assumptions are about these applicants, and not about "
    "later ones.",
    "as_decided": "Rates of the decisions themselves are about known outcomes of all rounds, as in "
    "other reports of the program.",
    "group_populations": "Intervals of one measure are right for all groups together, at all "
    "times, with a probability of {}; those of corrected values if applicants of a group come from "
    "one population in all rounds, acceptances followed the logged probabilities, and neither "
    "outcomes nor who takes a loan depend on the draw.",
    "mean_score": "The interval of calibration takes the mean score of these applicants as it is.",
}
_FEW = 100  # equally weighted outcomes, below which an estimate is rough
_HEAVY = 20.0  # a weight with which one outcome counts for so many


# Values


def shown(measure: str, value: float, currency: str = "") -> str:
    """Write a value of a measure.

    Examples
    --------
    >>> shown("bad_rate", 0.125), shown("calibration", -0.0123), shown("profit", 20.5, "€")
    ('12.5 %', '−1.23 points', '€20.5')
    """
    if measure == "profit":
        return amount(value, currency)
    return _points(value) if measure == "calibration" else percent(value)


def _points(difference: float) -> str:
    """Write a difference of shares."""
    return "–" if math.isnan(difference) else f"{_hundredfold(difference)} points"


def _hundredfold(value: float) -> str:
    return f"{100 * value:.3g}".replace("-", "−")


def shown_range(measure: str, low: float, high: float, currency: str = "") -> str:
    """Write a range of a measure; a dash if there is none.

    Examples
    --------
    >>> shown_range("bad_rate", 0.1, 0.2), shown_range("calibration", -0.01, 0.02)
    ('10 % to 20 %', '−1 to 2 points')
    """
    if math.isnan(low) or math.isnan(high):
        return "–"
    least = _hundredfold(low) if measure == "calibration" else shown(measure, low, currency)
    return f"{least} to {shown(measure, high, currency)}"


def _interval(low: float, high: float) -> str:
    return "" if math.isnan(low) else f" ({percents((low, high))})"


def assumptions(found: Evaluation | GroupAudit) -> list[str]:
    """Say what must hold for intervals."""
    values = percent(found.confidence), intervals_assume(found.shock)
    return [_ASSUMPTIONS[code].format(*values) for code in found.assumptions]


# Evaluations of policies


def measured_value(row: Measured, currency: str = "") -> str:
    """Write an estimate, or in a few words why there is none."""
    if math.isnan(row.value):
        return _REASONS[row.reason]
    return shown(row.measure, row.value, currency)


def measured_range(row: Measured, currency: str = "") -> str:
    """Write the interval of a measure, or what is possible if the log does not identify it."""
    ends = row.possible if math.isnan(row.value) else (row.low, row.high)
    return "no interval" if math.isnan(ends[0]) else shown_range(row.measure, *ends, currency)


def rounds_of(one: Evaluation) -> str:
    """Write the rounds that an evaluation uses."""
    if one.last_round > one.first_round:
        return f"rounds {one.first_round} to {one.last_round}"
    return f"round {one.first_round}"


def evaluation_verdict(one: Evaluation) -> str:
    """Say what a log says about a policy."""
    accepted, fdr = one.of("selection_rate"), one.of("false_discovery_rate")
    if accepted.value == 0:
        return f"{one.policy}: it accepts none of {counted(one.n_people, 'applicant')}."
    said = f"{one.policy}: it would accept {percent(accepted.value)} of applicants"
    if math.isnan(accepted.value):
        said = one.policy
    if not math.isnan(fdr.value):
        those = "the loans taken" if one.diagnostics.not_taken else "them"
        said += f", and {percent(fdr.value)} of {those} would be bad{_interval(fdr.low, fdr.high)}."
    else:
        low, high = fdr.possible
        why = _REASONS[fdr.reason].capitalize()
        if not one.identified:
            share = percent(one.diagnostics.hardly_covered)
            why = f"Not identified: the log hardly covers {share} of these"
        between = f", so between {percent(low)} and {percent(high)} would be bad"
        said += f". {why}{'' if math.isnan(low) else between}."
    parts = [said]
    if fdr.reason == "contradiction":
        parts.append(
            "No interval: no value fits all rounds, so applicants or the policy must have changed."
        )
    if never := one.diagnostics.withdrawn:
        parts.append(f"{counted(never, 'outcome')} will never be known; estimates count them bad.")
    if one.alpha is not None:
        parts.append(VERDICTS[one.verdict_code].format(percent(one.alpha)))
    return " ".join(filter(None, parts))


def evaluation_view(one: Evaluation) -> _Parts:
    """Return what a notebook shows of an evaluation."""
    titles = ["", "estimate", "interval at all times", "if uncovered are best, worst"]
    rows = [
        [
            MEASURES[row.measure] + (f", {row.group}" if row.group else ""),
            measured_value(row),
            shown_range(row.measure, row.low, row.high),
            shown_range(row.measure, row.least, row.most),
        ]
        for row in one.measured
    ]
    return evaluation_verdict(one), assumptions(one), titles, rows


def gap(found: Gap, currency: str = "") -> str:
    """Say how far groups are apart."""
    # A difference of shares is in points, as one of calibrations is.
    unit = "profit" if found.measure == "profit" else "calibration"
    text = f"largest difference {shown(unit, found.difference, currency)}"
    if not math.isnan(found.difference_low):
        ends = shown_range(unit, found.difference_low, found.difference_high, currency)
        text += f" ({ends})"
    if not math.isnan(found.ratio):
        text += f", smallest ratio {found.ratio:.2f}"
        if not math.isnan(found.ratio_low):
            text += f" ({found.ratio_low:.2f} to {found.ratio_high:.2f})"
    return f"Between groups by {found.attribute}, {MEASURES[found.measure]}: {text}."


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
    if seen.left_out:
        erased = counted(seen.left_out, "applicant has", "applicants have")
        yield f"{erased} erased features: the worst case for each bound, and not in estimates."
    if one.sensitivity is not None and one.alpha is not None:
        hidden = one.sensitivity
        does = "keeps" if hidden.keeps else "breaks"
        strong = "no hidden selection with odds off by a factor of up to 1,000 could overturn that"
        if math.isfinite(hidden.gamma):
            strong = (
                f"hidden selection that changes the odds of acceptance by a factor of "
                f"Γ = {hidden.gamma:.2f} could overturn that"
            )
        ranges = ", ".join(
            f"{percents(ends)} with Γ = {gamma:g}" for gamma, ends in hidden.ranges.items()
        )
        yield (
            f"{one.policy} {does} α = {percent(one.alpha)}; {strong}. Possible shares of bad: "
            f"{ranges}."
        )


# Groups


def finding(found: GroupFinding) -> str:
    """Say whether a gap between groups is real or selection."""
    gap_now, recorded = _points(found.corrected.difference), _points(found.recorded)
    if found.higher is not None and found.lower is not None:
        higher, lower = (
            f"{shown_range(row.measure, row.low, row.high)} for {row.group}"
            for row in (found.higher, found.lower)
        )
        said = f"the gap is real, if the assumptions hold: {higher}, but {lower}"
    elif found.reason == "not_identified":
        said = "open, as the log does not identify it for two groups"
    elif found.reason == "no_interval":
        said = f"open: a gap of {gap_now} without intervals"
    elif found.reason == "shrinks":
        said = (
            f"corrected for selection, the recorded gap of {recorded} shrinks to {gap_now}, and "
            f"the intervals overlap, so selection explains at least part of it"
        )
    else:
        same = math.isnan(found.recorded) or found.recorded == found.corrected.difference
        beside = "" if same else f" ({recorded} as recorded)"
        said = f"open: a gap of {gap_now}{beside}, and the intervals overlap"
    return f"{found.attribute}, {MEASURES[found.measure]}: {said}."


def groups_verdict(audit: GroupAudit) -> str:
    """Say what a log says about bad outcomes, of all applicants and between groups."""
    row = audit.of("bad_rate")
    recorded = f"Of the accepted, {percent(row.recorded)} are bad"
    if math.isnan(row.recorded):
        recorded = "No round has all of its outcomes"
    corrected = f"an estimated {percent(row.corrected)}{_interval(row.low, row.high)}"
    if math.isnan(row.corrected):
        corrected = f"it is not identified: between {percent(row.least)} and {percent(row.most)}"
    sentences = [finding(each) for each in audit.findings if each.measure == "bad_rate"]
    return " ".join([f"{recorded}; among all applicants {corrected}.", *sentences])


def groups_view(audit: GroupAudit) -> _Parts:
    """Return what a notebook shows of groups."""
    titles = ["", "recorded", "corrected", "interval at all times", "without assumptions"]
    rows = [
        [MEASURES[row.measure] + (f", {row.group}" if row.group else ""), *group_cells(row)]
        for row in audit.measured
    ]
    notes = [finding(each) for each in audit.findings if each.measure != "bad_rate"]
    return groups_verdict(audit), [*notes, *assumptions(audit)], titles, rows


def group_cells(row: GroupMeasure) -> list[str]:
    """Write a measure as recorded, corrected or why it is not, its interval, and its bounds."""
    corrected = shown(row.measure, row.corrected)
    if math.isnan(row.corrected):
        corrected = _REASONS[row.reason]
    ranges = [
        shown_range(row.measure, *ends) for ends in ((row.low, row.high), (row.least, row.most))
    ]
    return [shown(row.measure, row.recorded), corrected, *ranges]


# Unknown applicants


def condition(asked: Condition) -> str:
    """Say what a slice asks of one column."""
    missing = " or missing" if asked.missing else ""
    if asked.kind == "category":
        said = asked.is_
        if said is None:
            said = ", ".join(f"not {value}" for value in asked.is_not)
    elif asked.low == math.inf:
        said, missing = "missing", ""
    elif asked.low == -math.inf and asked.high == math.inf:
        said, missing = "not missing", ""
    elif asked.kind == "flag":
        said = "no" if asked.low == -math.inf else "yes"
    else:
        low, high = (_number(end, asked.kind) for end in (asked.low, asked.high))
        before, from_ = "below", f"{low} or more"
        if asked.kind == "date":
            before, from_ = "before", f"from {low}"
        said = f"{before} {high}"
        if asked.low > -math.inf:
            said = from_ if asked.high == math.inf else f"from {low} to {said}"
    return f"{asked.column} {said}{missing}"


def _number(value: float, kind: str) -> str:
    """Write a number, or a day since 1970."""
    if kind == "date" and math.isfinite(value):
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=value)
        return date(at, time=value % 1 != 0)
    return f"{value:,.15g}".replace("-", "−")


def unknown_verdict(found: UnknownMap) -> str:
    """Say which applicants the record says nothing about."""
    return " ".join(_unknown(found))


def _unknown(found: UnknownMap) -> Iterator[str]:
    missing = found.unknown
    if not missing:
        yield f"Every slice of the applicants has {found.needed} known outcomes or more."
    else:
        n = sum(each.n_people for each in missing)
        little = max(each.n_outcomes for each in missing)
        nothing = f"too little, under {found.needed} outcomes," if little else "nothing"
        more = f", and {counted(len(missing) - 1, 'smaller slice')}" * (len(missing) > 1)
        yield (
            f"The record says {nothing} about {n:,} of {found.n_people:,} applicants "
            f"({percent(n / found.n_people)}): {missing[0]}{more}."
        )
        if found.of_groups:
            shares = [f"{percent(value)} of {name}" for name, value in found.of_groups.items()]
            yield f"They make up {', '.join(shares)}."
        outcomes = sum(each.still_needed for each in missing)
        cost = sum(each.cost_at_most for each in missing)
        in_a_round = sum(each.cost_per_round for each in missing)
        yield (
            f"Having {found.needed} outcomes of each slice takes {outcomes:,} more, which cost at "
            f"most {amount(cost)}, and at most {amount(in_a_round)} in a round."
            if outcomes
            else "Their pending outcomes are enough to learn about them."
        )
    hidden = sum(each.n_without_chance for each in found.slices if not each.unknown)
    if hidden:
        yield f"In known slices, {counted(hidden, 'applicant')} had no chance of acceptance."


def unknown_view(found: UnknownMap) -> _Parts:
    """Return what a notebook shows of unknown applicants."""
    titles = ["slice", "", "applicants", "chance", "accepted", "outcomes", "needed", "at most"]
    rows = [
        [
            str(each),
            "unknown" if each.unknown else "known",
            f"{each.n_people:,} ({percent(each.share)})",
            f"{percent(each.chance)}, at most {percent(each.largest_chance)}",
            f"{each.n_accepted:,}",
            f"{each.n_outcomes:,}",
            f"{each.still_needed:,}",
            amount(each.cost_at_most),
        ]
        for each in found.slices
    ]
    erased = f"{counted(found.n_erased, 'applicant')} without features are left out."
    return unknown_verdict(found), [erased] * (found.n_erased > 0), titles, rows
