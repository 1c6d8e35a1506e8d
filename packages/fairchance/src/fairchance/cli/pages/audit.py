"""The report of an audit: what the record of a program says, and what it cannot say."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote

from fairchance import plot
from fairchance.audit.evaluate import SMALL, Evaluation, shown, shown_range
from fairchance.audit.groups import GroupAudit, GroupFinding, GroupMeasure
from fairchance.audit.scores import CalibrationBin, RoundDrift
from fairchance.audit.unknown import UnknownMap
from fairchance.cli.evaluations import measured_range, measured_value, remarks, rounds_of
from fairchance.cli.pages.page import (
    Card,
    Code,
    Figure,
    Page,
    Part,
    Section,
    Table,
    render,
    unchecked,
)
from fairchance.cli.pages.program import certificate_section, settings_section
from fairchance.ledger.summary import Details, Summary
from fairchance.ledger.verification.walk import Verification
from fairchance.words import LIGHTS, amount, counted, date, first_of, people, percent, percents

__all__ = ["DECIDED", "GROUP_MEASURES", "LIMITS", "Audited", "audit_html", "audit_page"]
__all__ += ["group_texts", "rounds_used", "verdict"]

Cell = str | tuple[str, str]
DECIDED = "as decided"  # the name of the program's own policy
GROUP_MEASURES = {
    "selection_rate": "Accepted",
    "false_discovery_rate": "Bad among the accepted",
    "bad_rate": "Bad among all applicants",
    "true_positive_rate": "Accepted among the good",
    "calibration": "Mean score minus share of good",
}
LIMITS = (
    "Outcomes of rejected applicants are not known. Estimates about them rest on applicants who "
    "were accepted with a known probability below 1.",
    "Where no similar applicant was ever accepted, nothing can be estimated: the answer is not "
    "identified, with bounds.",
    "Intervals hold if applicants of all rounds come from one population. Drift makes them wrong.",
    "Estimates are about the outcome as it is recorded, not about what else happened to people.",
    "A gap between groups that is real is not explained: the record does not say why it exists.",
    "An outcome after a decision by hand says nothing about the program's own decision, and is "
    "left out.",
    "The history before the first round is not part of these estimates.",
)


@dataclass(frozen=True)
class Audited:
    """Everything that a validation pack shows.

    Attributes
    ----------
    summary, details
        The program.
    verification, verified
        The result of verify, and the same in words.
    policies
        How the decisions and other policies did, by name; ``DECIDED`` comes first.
    cuts
        Those of them that accept from a recorded score on, by this score.
    groups, unknown, calibration, drift
        The other questions; None or empty if the log does not allow them.
    purpose
        What the program is for, in the user's words.
    """

    summary: Summary
    details: Details
    verification: Verification
    verified: Sequence[str]
    policies: Mapping[str, Evaluation]
    cuts: Mapping[float, Evaluation]
    groups: GroupAudit
    unknown: UnknownMap | None
    calibration: Sequence[CalibrationBin]
    drift: Sequence[RoundDrift]
    purpose: str = ""

    @property
    def decided(self) -> Evaluation:
        """How the program's own decisions did."""
        return self.policies[DECIDED]

    @property
    def real_gaps(self) -> list[GroupFinding]:
        """The gaps between groups that are more than chance and selection."""
        return [finding for finding in self.groups.findings if finding.answer == "real"]

    @property
    def best_cut(self) -> Evaluation | None:
        """The cut-off that keeps α, by its whole interval, and earns most by estimate."""
        alpha = self.decided.alpha
        keeping = [
            one
            for one in self.cuts.values()
            if one.identified
            and alpha is not None
            and one.of("false_discovery_rate").high <= alpha
            and one.of("selection_rate").value > 0
        ]
        return max(keeping, key=lambda one: one.of("profit").value, default=None)

    @property
    def miscalibrated(self) -> list[CalibrationBin]:
        """The ranges of scores with a mean outside the interval of the share of good."""
        return [part for part in self.calibration if not part.low <= part.score <= part.high]


@unchecked
def audit_html(audited: Audited) -> str:
    """Return the report as one HTML file."""
    summary = audited.summary
    entries = counted(summary.head.number, "entry", "entries")
    made = f"Counted from {entries} on {date(summary.at, time=True)}."
    return render(f"Audit of {summary.program}", [audit_page(audited)], made)


def audit_page(audited: Audited) -> Page:
    """Return what the report shows."""
    summary, decided = audited.summary, audited.decided
    cards = list(_cards(audited))
    light = min((card.light for card in cards if card.light), key=LIGHTS.index, default="green")
    about = (
        f"{people(summary.total('n_people'))} decided on in {counted(len(summary.rounds), 'round')}"
        f". {rounds_used(audited)} Read from the ledger on {date(summary.at, time=True)}."
    )
    sections = [
        _groups(audited),
        _policies(audited),
        _unknown(audited),
        _calibration(audited),
        _drift(audited),
        certificate_section(summary),
        _verification(audited),
        settings_section(summary, audited.details),
        _limits(audited),
    ]
    caption = (
        "Mistakes that policies would make which accept from a recorded score on, with intervals "
        "that hold at all times. Where fewer than 100 outcomes are known, a bar may leave the "
        "chart."
    )
    if not all(one.identified for one in audited.cuts.values()):
        caption += " Thick bars: not identified, only bounds are known."
    figure = None
    if audited.cuts:
        drawn = plot.cut_offs(audited.cuts, measures=["false_discovery_rate"])
        figure = Figure("figure-mistakes", drawn, caption, decided.verdict())
    title = f"Audit of program {summary.program}"
    return Page("audit", title, about, verdict(audited), light, cards, figure, sections)


# The first screen


def rounds_used(audited: Audited) -> str:
    """Say which rounds each question is about."""
    decided = audited.decided
    used = f"{rounds_of(decided)}, with {counted(decided.n_outcomes, 'known outcome')}"
    if decided.last_round < audited.summary.rounds[-1].round:
        return (
            f"Policies, groups and calibration are about {used}; unknown applicants and drift are "
            f"about all rounds."
        )
    if decided.of("profit").n_people < decided.n_people:
        return (
            f"Intervals are about {used}; estimates and calibration are about rounds before the "
            f"first one with pending outcomes."
        )
    return f"This audit is about {used}."


def verdict(audited: Audited) -> str:
    """Return what was found, in a few sentences."""
    fdr, alpha = audited.decided.of("false_discovery_rate"), audited.decided.alpha
    parts = []
    if math.isnan(fdr.value):
        ends = "" if math.isnan(fdr.low) else f" ({percents((fdr.low, fdr.high))})"
        why = fdr.note or "Not identified."
        parts.append(f"The share of bad among the accepted has no estimate{ends}. {why}")
    else:
        interval = "" if math.isnan(fdr.low) else f" ({percents((fdr.low, fdr.high))})"
        kept = ""
        if alpha is not None and not math.isnan(fdr.low):
            kept = f", and whether α = {percent(alpha)} is kept is open"
            if fdr.high <= alpha:
                kept = f", and α = {percent(alpha)} is kept"
            if fdr.low > alpha:
                kept = f", and α = {percent(alpha)} is broken"
        parts.append(f"Of the accepted, {percent(fdr.value)} are bad{interval}{kept}.")
    if never := audited.decided.diagnostics.never_known:
        parts.append(
            f"{never:,} of the accepted will never have an outcome (withdrawn, or rejected by "
            f"hand); estimates count them as bad."
        )
    real, n_open = len(audited.real_gaps), sum(f.answer == "open" for f in audited.groups.findings)
    if real:
        more = f", and {n_open} {'are' if n_open > 1 else 'is'} open" if n_open else ""
        parts.append(
            f"{counted(real, 'gap')} between groups {'are' if real > 1 else 'is'} real{more}."
        )
    elif audited.groups.findings:
        parts.append("No gap between groups is shown to be real.")
    if audited.unknown is not None and audited.unknown.unknown:
        missing = sum(one.n_people for one in audited.unknown.unknown) / audited.unknown.n_people
        parts.append(f"The record says too little about {percent(missing)} of applicants.")
    if audited.miscalibrated:
        parts.append(f"Scores are {_off(audited)}.")
    fits = "The record is verified." if audited.verification.ok else "The record does not fit."
    return " ".join([*parts, fits])


def _off(audited: Audited) -> str:
    """Say in how many ranges scores are too low or too high."""
    low = sum(part.score < part.low for part in audited.miscalibrated)
    high = len(audited.miscalibrated) - low
    sides = [f"too {side} in {n}" for n, side in ((low, "low"), (high, "high")) if n]
    return f"{' and '.join(sides)} of {counted(len(audited.calibration), 'range')}"


def _cards(audited: Audited) -> Iterator[Card]:
    decided, currency = audited.decided, audited.summary.currency
    fdr, alpha = decided.of("false_discovery_rate"), decided.alpha
    light = ""
    if alpha is not None and not math.isnan(fdr.low):
        light = "green" if fdr.high <= alpha else "red" if fdr.low > alpha else "amber"
    bound = "" if alpha is None else f" The bound α is {percent(alpha)}."
    text = f"of the accepted are bad: {measured_range(fdr)} at all times.{bound}"
    if alpha is not None and (above := _groups_not_shown(audited.groups, alpha)) is not None:
        text += f" Not shown to be kept for {above}." if above else " It is kept in every group."
    yield Card("Mistakes", percent(fdr.value), text, light)
    yield _group_card(audited)
    if audited.unknown is not None:
        yield _unknown_card(audited.unknown)
    best = audited.best_cut
    if audited.cuts and alpha is not None:
        own = decided.of("profit")
        if best is None:
            earned = shown("profit", own.value, currency)
            text = f"No cut-off is shown to keep α. As decided: {earned} per applicant."
            yield Card("Best cut-off", "none", text)
        else:
            profit = best.of("profit")
            earns, earned = (
                f"{shown('profit', row.value, currency)} ({measured_range(row, currency)})"
                for row in (profit, own)
            )
            text = (
                f"would earn most of the cut-offs that are shown to keep α: {earns} per applicant; "
                f"as decided: {earned}."
            )
            if profit.low <= own.high and own.low <= profit.high:
                text += " The intervals overlap, so neither is shown to earn more."
            yield Card("Best cut-off", best.policy, text)
    found = audited.verification
    text = (
        f"{counted(found.n_decisions, 'decision')} made again from the record, with the same "
        f"results. Whether outcomes were reported truly, a record cannot show."
    )
    if not found.ok:
        text = str(found.problem)
    yield Card("Record", "fits" if found.ok else "broken", text, "green" if found.ok else "red")


def _groups_not_shown(groups: GroupAudit, alpha: float) -> str | None:
    """Return for which groups α is not shown to be kept; None if there is no group."""
    rows = [r for r in groups.measured if r.group and r.measure == "false_discovery_rate"]
    names = [f"{row.attribute} {row.group}" for row in rows if not row.high <= alpha]
    return first_of(names) if rows else None


def _group_card(audited: Audited) -> Card:
    findings = audited.groups.findings
    if not findings:
        return Card("Groups", "–", "No protected attribute was compared.")
    real = audited.real_gaps
    if real:
        return Card("Groups", counted(len(real), "real gap"), real[0].sentence, "amber")
    explained = [one for one in findings if one.answer == "selection"]
    text = "No gap is more than chance and selection explain."
    if explained:
        text = explained[0].sentence
    return Card("Groups", "no real gap", text, "green")


def _unknown_card(found: UnknownMap) -> Card:
    if not found.unknown:
        text = f"Every slice of applicants has {found.needed} known outcomes or more."
        return Card("Unknown", "none", text, "green")
    n = sum(one.n_people for one in found.unknown)
    text = (
        f"of applicants: fewer than {found.needed} outcomes of people like them are known. About "
        f"others the record can say something."
    )
    return Card("Unknown", percent(n / found.n_people), text, "amber")


# Sections


def _groups(audited: Audited) -> Section:
    found = audited.groups
    if not found.findings:
        return Section("groups", "Groups")
    note = (
        "As recorded: among the accepted, as the usual report has it. Corrected: weighted by the "
        "probability of acceptance, with an interval that is right at all times for all groups "
        "together. Without assumptions: outcomes that are not known are all good, or all bad."
    )
    caption = "Groups as recorded, corrected for selection, and without assumptions."
    parts: list[Part] = [[one.sentence for one in found.findings]]
    parts.append(Figure("figure-groups", plot.group_audit(found), caption))
    titles = ["Group", "Corrected", "As recorded", "Without assumptions", "Applied", "Outcomes"]
    for attribute, measure in dict.fromkeys((r.attribute, r.measure) for r in found.measured):
        if not attribute:
            continue
        rows: list[list[Cell]] = []
        for row in found.measured:
            if row.measure == measure and row.attribute in ("", attribute):
                recorded, corrected, interval, bounds = group_texts(row)
                numbers = f"{row.n_people:,}", f"{row.n_outcomes:,}"
                rows.append([row.group or "all", (corrected, interval), recorded, bounds, *numbers])
        parts.append(Table(f"{GROUP_MEASURES[measure]}, by {attribute}", note, titles, rows))
        note = ""
    return Section("groups", "Groups", _group_card(audited).text, parts)


def group_texts(row: GroupMeasure) -> list[str]:
    """Write a measure as recorded, corrected, its interval and its bounds, in few words."""
    recorded, corrected, interval, bounds = row.texts()
    return [recorded, corrected.partition(":")[0].lower(), interval, bounds]


def _plain_range(low: float, high: float) -> str:
    return shown_range("", low, high)


def _policies(audited: Audited) -> Section:
    currency = audited.summary.currency
    rows: list[list[Cell]] = []
    for one in audited.policies.values():
        cells: list[Cell] = [one.policy]
        for measure in ("selection_rate", "false_discovery_rate", "profit"):
            row = one.of(measure)
            cells.append((measured_value(row, currency), measured_range(row, currency)))
        outcomes = one.of("false_discovery_rate").n_outcomes
        worth = one.diagnostics.effective_sample_size
        rows.append([*cells, f"{outcomes:,}", f"{worth:,.0f}"])
    titles = ["Policy", "Accepted", "Mistakes", "Profit per applicant", "Outcomes", "Worth"]
    note = (
        "Estimates are self-normalised; the tables of the pack have the other estimators. Small "
        "print: intervals of one measure hold at all times for all policies together, or bounds "
        "where a policy is not identified. Outcomes: known ones of applicants that the policy may "
        "accept. Worth: as many of equal weight would say as much."
    )
    table = Table("Policies", note, titles, rows)
    parts: list[Part] = []
    if audited.cuts:
        caption = "Mistakes, acceptances and profit if applicants are accepted from a score on."
        drawn = plot.cut_offs(audited.cuts, currency=currency)
        parts.append(Figure("figure-cut-offs", drawn, caption))
    asked = [
        one.verdict()
        for name, one in audited.policies.items()
        if name != DECIDED and one not in audited.cuts.values()
    ]
    parts += [asked] if asked else []
    parts += [table, *remarks(audited.decided)]
    best = audited.best_cut
    brief = "No cut-off of the recorded score is shown to keep α."
    if best is not None:
        brief = best.verdict()
    return Section("policies", "Other policies", brief, parts)


def _unknown(audited: Audited) -> Section:
    found, currency = audited.unknown, audited.summary.currency
    if found is None:
        return Section("unknown", "Unknown applicants")
    rows: list[dict[str, Cell]] = [
        {
            "Slice": str(one),
            "Record": "unknown" if one.unknown else "known",
            "Outcomes": f"{one.n_outcomes:,}",
            "Applied": (f"{one.n_people:,}", percent(one.share)),
            "Accepted": f"{one.n_accepted:,}",
            "Chance": (percent(one.chance), f"up to {percent(one.largest_chance)}"),
            "Needed": f"{one.still_needed:,}" if one.unknown else "–",
            "Cost": (
                amount(one.cost_expected, currency),
                f"at most {amount(one.cost_at_most, currency)}",
            )
            if one.unknown
            else "–",
            "Rounds": f"{one.rounds:,}" if one.unknown else "–",
        }
        for one in found.slices
    ]
    note = (
        f"Every applicant of all rounds is in one slice. A slice is unknown with under "
        f"{found.needed} known outcomes. Chance: the mean probability of acceptance. Cost: the "
        f"expected loss on bad applicants until enough outcomes are known; with under {SMALL} of "
        f"them, a model of all known outcomes says how many are bad. Rounds: until then, if a "
        f"tenth of the slice were accepted."
    )
    table = Table("Slices", note, [*rows[0]], [[*row.values()] for row in rows])
    return Section("unknown", "Unknown applicants", found.verdict(), [table])


def _calibration(audited: Audited) -> Section:
    if not audited.calibration:
        return Section("calibration", "Calibration")
    rows: list[list[Cell]] = [
        [
            f"{part.least:.3g} to {part.most:.3g}",
            percent(part.score),
            (_good(part), _plain_range(part.low, part.high)),
            percent(part.recorded),
            f"{part.n_people:,}",
            f"{part.n_outcomes:,}",
        ]
        for part in audited.calibration
    ]
    titles = ["Scores", "Mean score", "Good, corrected", "Good as recorded", "Applied", "Outcomes"]
    note = (
        "Ranges have equal numbers of applicants. Corrected: the share of good among all "
        "applicants with such scores, weighted by the probability of acceptance."
    )
    caption = "A point on the dashed line: as many are good as the score says."
    drawn = plot.calibration(audited.calibration)
    n = counted(len(audited.calibration), "range")
    brief = f"Mean scores are within the interval of the share of good in all of {n}."
    if audited.miscalibrated:
        brief = f"Mean scores are {_off(audited)}, by the interval of the share of good."
    table = Table("Ranges of scores", note, titles, rows)
    figure = Figure("figure-calibration", drawn, caption)
    return Section("calibration", "Calibration", brief, [figure, table])


def _good(part: CalibrationBin) -> str:
    return "not identified" if math.isnan(part.good) else percent(part.good)


def _drift(audited: Audited) -> Section:
    if not audited.drift:
        return Section("drift", "Drift")
    rows: list[list[Cell]] = [
        [
            f"{row.round}",
            (percent(row.bad), _plain_range(row.bad_low, row.bad_high)),
            percent(row.accepted),
            percent(row.score),
            f"{row.stability:.3f}",
            f"{row.n_people:,}",
            f"{row.n_outcomes:,}",
        ]
        for row in audited.drift
    ]
    titles = ["Round", "Mistakes", "Accepted", "Mean score", "Stability", "Applied", "Outcomes"]
    note = (
        "Stability: the population stability index of scores against the first round; below 0.1 is "
        "usually called stable, above 0.25 changed. A score moves if applicants do, and if the "
        "program learns. Mistakes: among known outcomes of the round, with a 95 % interval for one "
        "look."
    )
    worst = max(audited.drift, key=lambda row: row.stability)
    brief = (
        f"The largest stability index of scores is {worst.stability:.2f}, in round {worst.round}; "
        f"above 0.25 they have changed."
    )
    caption = "By round. A program learns, so its scores may move although applicants do not."
    drawn = plot.drift(audited.drift, alpha=audited.decided.alpha)
    parts: list[Part] = [Figure("figure-drift", drawn, caption)]
    return Section("drift", "Drift", brief, [*parts, Table("Rounds", note, titles, rows)])


def _verification(audited: Audited) -> Section:
    summary = audited.summary
    program, checkpoint = quote(summary.program), quote(str(summary.head))
    parts: list[Part] = [
        list(audited.verified),
        "The checkpoint of this audit is in checkpoint.txt. This command checks all of it again:",
        Code(f"fairchance verify --program {program} --checkpoint {checkpoint}"),
    ]
    return Section("verification", "Proof", audited.verified[0], parts)


def _limits(audited: Audited) -> Section:
    stated = [text for one in audited.policies.values() for text in one.assumptions]
    assumptions = list(dict.fromkeys([*stated, *audited.groups.assumptions]))
    parts: list[Part] = [
        "What the record cannot say:",
        list(LIMITS),
        "What must hold for intervals:",
        assumptions,
    ]
    brief = "What the record cannot say, and what must hold for intervals."
    return Section("limits", "Limits", brief, parts)
