"""The report of an audit: what the record of a program says, and what it cannot say."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any

from fairchance import plot
from fairchance.audit.evaluate import Evaluation
from fairchance.audit.groups import GroupAudit, GroupFinding
from fairchance.audit.rates import judge, light_of
from fairchance.audit.scores import CHANGED, CalibrationBin, RoundDrift
from fairchance.audit.unknown import UnknownMap
from fairchance.ledger.summary import Details, Summary
from fairchance.ledger.verification.trail import Trail
from fairchance.ledger.verification.walk import Verification
from fairchance.pages.page import (
    Card,
    Code,
    Figure,
    Page,
    PageTable,
    Part,
    Section,
    render,
    unchecked,
)
from fairchance.pages.program import certificate_section, settings_section
from fairchance.words import LIGHTS, amount, counted, date, first_of, people, percent, percents
from fairchance.words.audits import (
    MEASURES,
    assumptions,
    finding,
    group_cells,
    measured_range,
    measured_value,
    remarks,
    rounds_of,
    shown,
    shown_range,
)

__all__ = ["DECIDED", "LIMITS", "Audited", "audit_html", "audit_page", "rounds_used"]
__all__ += ["groups_section", "stated", "verdict"]

Cell = str | tuple[str, str]
DECIDED = "as decided"  # the name of the program's own policy
LIMITS = (
    "Outcomes of rejected applicants are not known. Estimates about them rest on applicants who "
    "were accepted with a known probability below 1; where there are none, the answer is not "
    "identified, with bounds.",
    "Intervals of other policies and of corrected values hold if applicants of all rounds come "
    "from one population. Drift makes them wrong.",
    "A gap between groups that is real is not explained: the record does not say why it exists.",
    "An outcome after a decision by hand says nothing about the program's own decision, and is "
    "left out.",
    "The history before the first round is not part of these estimates.",
)
_KEPT = {"kept": "{} is kept", "broken": "{} is broken", "open": "whether {} is kept is open"}


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
    decisions, trail
        The decisions as ``export`` writes them, and the tests behind certificates.
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
    decisions: Any
    trail: Trail
    purpose: str = ""

    @property
    def decided(self) -> Evaluation:
        """How the program's own decisions did."""
        return self.policies[DECIDED]

    @property
    def checkpoint(self) -> str | None:
        """The end of the chain that this audit read; None if the record does not fit."""
        return str(self.summary.head) if self.verification.ok else None

    @property
    def not_identified(self) -> list[Evaluation]:
        """The policies whose mistakes the record cannot estimate."""
        found = self.policies.values()
        return [one for one in found if one.of("false_discovery_rate").reason == "not_identified"]

    @property
    def best_cut(self) -> Evaluation | None:
        """The cut-off that keeps α, by its whole interval, and earns most by estimate."""
        keeping = [
            one for one in self.cuts.values() if one.identified and one.verdict_code == "kept"
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
        groups_section(audited.groups),
        _policies(audited),
        _unknown(audited),
        _calibration(audited),
        _drift(audited),
        certificate_section(summary),
        _verification(audited),
        settings_section(summary, audited.details),
        _limits(audited),
    ]
    caption = "Mistakes of policies that accept from a recorded score on."
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
        return f"Other policies, corrected values and calibration are about {used}."
    if any(one.of("profit").n_people < one.n_people for one in audited.policies.values()):
        return f"Intervals are about {used}; estimates stop at the first pending outcome."
    return f"This audit is about {used}."


def verdict(audited: Audited) -> str:
    """Return what was found, in a few sentences."""
    fdr, alpha = audited.decided.of("false_discovery_rate"), audited.decided.alpha
    fits, said = audited.verification.ok, "No outcome is known yet."
    if not math.isnan(fdr.value):
        said = f"Of the accepted, {percent(fdr.value)} are bad ({percents((fdr.low, fdr.high))})"
        if alpha is not None:
            kept = _KEPT[audited.decided.verdict_code].format(f"α = {percent(alpha)}")
            said += f", and {kept}"
        said += "."
    parts = [said] if fits else ["The record does not fit, so all that follows may be false.", said]
    if audited.groups.findings:
        parts.append(f"Between groups: {counted(len(_real_gaps(audited.groups)), 'real gap')}.")
    if audited.unknown is not None and audited.unknown.unknown:
        parts.append(f"The record says too little about {_unknown_share(audited.unknown)}.")
    if audited.miscalibrated:
        parts.append(f"Scores are {_off(audited)}.")
    return " ".join([*parts, *["The record is verified."] * fits])


def _unknown_share(found: UnknownMap) -> str:
    n = sum(one.n_people for one in found.unknown)
    return f"{percent(n / found.n_people)} of applicants"


def _off(audited: Audited) -> str:
    """Say in how many ranges scores are too low or too high."""
    low = sum(part.score < part.low for part in audited.miscalibrated)
    high = len(audited.miscalibrated) - low
    sides = [f"too {side} in {n}" for n, side in ((low, "low"), (high, "high")) if n]
    return f"{' and '.join(sides)} of {counted(len(audited.calibration), 'range')}"


def _cards(audited: Audited) -> Iterator[Card]:
    yield _mistakes_card(audited)
    yield _group_card(audited.groups)
    if audited.unknown is not None:
        yield _unknown_card(audited)
    if audited.cuts and audited.decided.alpha is not None:
        yield _cut_card(audited)
    found = audited.verification
    text = (
        f"{counted(found.n_decisions, 'decision')} made again from the record, with the same "
        f"results. It cannot show whether outcomes were reported truly."
    )
    if not found.ok:
        text = str(found.problem)
    yield Card("Record", "fits" if found.ok else "broken", text, "green" if found.ok else "red")


def _mistakes_card(audited: Audited) -> Card:
    decided, outcomes = audited.decided, audited.summary.outcomes
    fdr, alpha = decided.of("false_discovery_rate"), decided.alpha
    text = f"of the accepted are bad: {measured_range(fdr)} at all times."
    if outcomes.pending:
        text += f" {counted(outcomes.pending, 'outcome')} pending."
    if alpha is not None:
        text += f" The bound α is {percent(alpha)}."
        rates = {
            f"{row.attribute} {row.group}": row.rate
            for row in audited.groups.measured
            if row.group and row.measure == "false_discovery_rate" and row.rate is not None
        }
        above = [name for name, rate in rates.items() if judge(rate, alpha) != "kept"]
        if above:
            text += f" Not shown to be kept for {first_of(above)}."
    rate = audited.groups.of("false_discovery_rate").rate
    light = "" if alpha is None or rate is None else light_of(rate, alpha)
    return Card("Mistakes", percent(fdr.value), text, light)


def _real_gaps(audit: GroupAudit) -> list[GroupFinding]:
    return [found for found in audit.findings if found.answer == "real"]


def _group_card(audit: GroupAudit) -> Card:
    found, real = audit.findings, _real_gaps(audit)
    if not found:
        return Card("Groups", "–", "No protected attribute was compared.")
    light = min((one.light for one in found), key=LIGHTS.index)
    if real:
        return Card("Groups", counted(len(real), "real gap"), finding(real[0]), light)
    explained = [finding(one) for one in found if one.answer == "selection"]
    n_open = sum(one.reason == "not_identified" for one in found)
    none = "No identified gap is more than chance and selection explain"
    none += f"; {counted(n_open, 'gap is', 'gaps are')} not identified." if n_open else "."
    text = [*explained, none][0]
    return Card("Groups", "no real gap", text, light)


def _unknown_card(audited: Audited) -> Card:
    found, open_ = audited.unknown, audited.not_identified
    assert found is not None
    text = ""
    if found.unknown:
        text = f"have fewer than {found.needed} known outcomes of people like them. "
    if open_:
        text += f"Not identified: {first_of([one.policy for one in open_])}."
    value = _unknown_share(found) if found.unknown else ""
    if not value and open_:
        value = f"{len(open_)} of {counted(len(audited.policies), 'policy', 'policies')}"
    if not value:
        return Card("Unknown", "none", found.verdict(), "green")
    return Card("Unknown", value, text.strip(), "amber")


def _cut_card(audited: Audited) -> Card:
    currency, own, best = audited.summary.currency, audited.decided.of("profit"), audited.best_cut
    if best is None:
        earned = shown("profit", own.value, currency)
        text = f"No cut-off is shown to keep α. As decided: {earned} per applicant."
        return Card("Best cut-off", "none", text)
    profit = best.of("profit")
    earns, earned = (
        f"{shown('profit', row.value, currency)} ({measured_range(row, currency)})"
        for row in (profit, own)
    )
    text = (
        f"would earn most of the cut-offs that keep α: {earns} per applicant; as decided: {earned}."
    )
    if profit.low <= own.high and own.low <= profit.high:
        text += " The intervals overlap."
    return Card("Best cut-off", best.policy, text)


# Sections


def groups_section(found: GroupAudit) -> Section:
    """Return what is true of groups: as recorded, corrected, and without assumptions."""
    if not found.findings:
        return Section("groups", "Groups")
    note = (
        "Corrected: weighted by the probability of acceptance, with an interval that is right at "
        "all times for all groups together. Without assumptions: outcomes that are not known are "
        "all good, or all bad."
    )
    caption = "Groups as recorded, corrected for selection, and without assumptions."
    parts: list[Part] = [[finding(one) for one in found.findings]]
    parts.append(Figure("figure-groups", plot.group_audit(found), caption))
    titles = ["Group", "Corrected", "As recorded", "Without assumptions", "Applied", "Outcomes"]
    for attribute, measure in dict.fromkeys((r.attribute, r.measure) for r in found.measured):
        if not attribute:
            continue
        rows: list[list[Cell]] = []
        for row in found.measured:
            if row.measure == measure and row.attribute in ("", attribute):
                recorded, corrected, interval, bounds = group_cells(row)
                numbers = f"{row.n_people:,}", f"{row.n_outcomes:,}"
                rows.append([row.group or "all", (corrected, interval), recorded, bounds, *numbers])
        title = f"{MEASURES[measure].capitalize()}, by {attribute}"
        parts.append(PageTable(title, note, titles, rows))
        note = ""
    return Section("groups", "Groups", _group_card(found).text, parts)


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
        "Intervals hold at all times for all policies together. Outcomes: known ones of applicants "
        "that the policy may accept. Worth: as many of equal weight would say as much."
    )
    table = PageTable("Policies", note, titles, rows)
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
            "Rounds": (f"{one.rounds:,}", f"at most {amount(one.cost_per_round, currency)} each")
            if one.unknown
            else "–",
        }
        for one in found.slices
    ]
    note = (
        f"A slice is unknown with under {found.needed} known outcomes. Chance: the mean "
        f"probability of acceptance. Cost and rounds: the expected loss on bad applicants until "
        f"enough outcomes are known, if a tenth of the slice is accepted in each round."
    )
    table = PageTable("Slices", note, [*rows[0]], [[*row.values()] for row in rows])
    parts: list[Part] = [table]
    if audited.not_identified:
        names = ", ".join(one.policy for one in audited.not_identified)
        parts.append(
            f"Not identified, as they would accept applicants who had hardly any chance: {names}."
        )
    return Section("unknown", "Unknown applicants", found.verdict(), parts)


def _calibration(audited: Audited) -> Section:
    if not audited.calibration:
        return Section("calibration", "Calibration")
    rows: list[list[Cell]] = [
        [
            f"{part.least:.3g} to {part.most:.3g}",
            percent(part.score),
            (_good(part), shown_range("", part.low, part.high)),
            percent(part.recorded),
            f"{part.n_people:,}",
            f"{part.n_outcomes:,}",
        ]
        for part in audited.calibration
    ]
    titles = ["Scores", "Mean score", "Good, corrected", "Good as recorded", "Applied", "Outcomes"]
    note = "Corrected: the share of good among all applicants with such scores."
    caption = "A point on the dashed line: as many are good as the score says."
    drawn = plot.calibration(audited.calibration)
    n_open = sum(math.isnan(part.good) for part in audited.calibration)
    n = counted(len(audited.calibration) - n_open, "range")
    brief = f"Mean scores are within the interval of the share of good in {n}"
    if audited.miscalibrated:
        brief = f"Mean scores are {_off(audited)}, by the interval of the share of good"
    brief += f"; {counted(n_open, 'range is', 'ranges are')} not identified." if n_open else "."
    table = PageTable("Ranges of scores", note, titles, rows)
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
            (percent(row.bad), shown_range("", row.bad_low, row.bad_high)),
            percent(row.accepted),
            percent(row.score),
            "–" if math.isnan(row.stability) else (f"{row.stability:.3f}", f"since {row.since}"),
            f"{row.n_people:,}",
            f"{row.n_outcomes:,}",
        ]
        for row in audited.drift
    ]
    titles = ["Round", "Mistakes", "Accepted", "Mean score", "Stability", "Applied", "Outcomes"]
    note = (
        "Stability: the population stability index of scores against the first round with the same "
        "ranking; below 0.1 is usually called stable, above 0.25 changed."
    )
    compared = [row for row in audited.drift if not math.isnan(row.stability)]
    brief = "No two rounds have the same ranking, so their scores cannot be compared."
    if compared:
        worst = max(compared, key=lambda row: row.stability)
        brief = (
            f"The largest stability index of scores is {worst.stability:.2f}, in round "
            f"{worst.round}; above {CHANGED} they have changed."
        )
    drawn = plot.drift(audited.drift, alpha=audited.decided.alpha)
    parts: list[Part] = [
        Figure("figure-drift", drawn, "Mistakes, acceptances and scores by round.")
    ]
    return Section("drift", "Drift", brief, [*parts, PageTable("Rounds", note, titles, rows)])


def _verification(audited: Audited) -> Section:
    said, command = "", f"fairchance verify --program {quote(audited.summary.program)}"
    if audited.checkpoint is not None:
        said = "The checkpoint of this audit is in checkpoint.txt. "
        command += f" --checkpoint {quote(audited.checkpoint)}"
    parts: list[Part] = [
        list(audited.verified),
        f"{said}This command checks all of it again:",
        Code(command),
    ]
    return Section("verification", "Proof", audited.verified[0], parts)


def _limits(audited: Audited) -> Section:
    parts: list[Part] = [
        "What the record cannot say:",
        list(LIMITS),
        "What must hold for intervals:",
        stated(audited),
    ]
    brief = "What the record cannot say, and what must hold for intervals."
    return Section("limits", "Limits", brief, parts)


def stated(audited: Audited) -> list[str]:
    """Return what must hold for intervals, each sentence once."""
    of_policies = [text for one in audited.policies.values() for text in assumptions(one)]
    return list(dict.fromkeys([*of_policies, *assumptions(audited.groups)]))
