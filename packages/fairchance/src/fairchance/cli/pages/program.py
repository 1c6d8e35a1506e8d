"""The report of a program: sentences, tables and charts from the summary of a ledger."""

from __future__ import annotations

import inspect
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass
from itertools import takewhile
from pathlib import Path
from shlex import quote
from typing import Any

from fairchance import plot
from fairchance.cli.messages import CAUTION, restarts
from fairchance.cli.options import writing
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
    write,
)
from fairchance.core.decisions import CertifiedRound
from fairchance.core.metrics import exact_interval
from fairchance.ledger.config import Labels
from fairchance.ledger.health import Check, check_health
from fairchance.ledger.outcomes import UnlikeExpected
from fairchance.ledger.retention import MONTHS, retention_months
from fairchance.ledger.summary import Change, Details, Outcomes, Rejections, RoundSummary, Summary
from fairchance.people.likeness import Unlike
from fairchance.words import (
    LIGHTS,
    amount,
    counted,
    date,
    days,
    first_of,
    people,
    percent,
    percents,
    times,
)
from fairchance.words.batches import unlike_expected_words, unlike_words
from fairchance.words.rounds import needed, note_text, sentence, waiting

__all__ = ["certificate_section", "program_page", "settings_section", "write_program_report"]

Cell = str | tuple[str, str]
_BECAME = ("Good", "Bad", "Never known", "Pending")
_OPTIONAL = ("α exploited", "Thresholds", "Overridden", "By hand", "Earned", "Batch")
_MOST_REASONS = 10
_MOST_NAMED = 2  # things to do, and certificates, in a sentence
_METHODS = {
    "CertifiedClassifier": "certified: rounds carry a promise once outcomes of earlier rounds have "
    "shown that the policy keeps the bound, and are pilots until then",
    "PartialFeedbackClassifier": "Algorithm 1 of the paper: rounds keep an estimate of mistakes "
    "under the bound, and promise nothing",
}
_GROUP_MODES = {
    "aware": "a decision may depend on an applicant's group",
    "blind": "an applicant's group does not change the decision; groups of applicants with known "
    "outcomes may shape what is learned",
    "audit": "groups change no decision; they are only counted",
}
_LEARNERS = {
    "HistGradientBoostingClassifier": "boosted trees",
    "ConstrainedLogistic": "a logistic model",
    "Pipeline": "steps",
}
_CHOICES = {
    "attributes crossed": "each combination of protected attributes is a group",
    "attributes side_by_side": "each protected attribute is looked at separately",
    "certify overall": "one certificate for all applicants",
    "certify per_group": "a certificate for each group",
    "ranks overall": "applicants are ranked among all others",
    "ranks within_group": "applicants are ranked within their own group",
}
# Settings with a row of their own, and the seed, which determines who will be drawn.
_ROWS = [
    *("alpha", "budget", "delta", "group_mode", "learner", "maturity", "patience", "utility"),
    *("missing_values", "pos_label", "random_state"),
]


@unchecked
def write_program_report(summary: Summary, details: Details, path: Path, late: float) -> None:
    """Write the report; the file appears whole or not at all.

    Parameters
    ----------
    summary, details
        The program.
    path
        The file to write.
    late
        Days after which a pending outcome is late.
    """
    when = date(summary.at, time=True)
    made = f"Counted from {counted(summary.head.number, 'entry', 'entries')} on {when}. {CAUTION}"
    text = render(summary.program, [program_page(summary, details, late)], made)
    with writing(path):
        write(text, path)


def program_page(summary: Summary, details: Details, late: float) -> Page:
    """Return what the report shows."""
    checks = check_health(summary, late)
    title, light = f"Program {summary.program}", checks[0].light if checks else "green"
    cards = list(_cards(summary, checks, late)) if summary.rounds else []
    sections = [_attention(checks)]
    if summary.rounds:
        sections += [_rounds(summary), _groups(summary, checks), certificate_section(summary)]
        sections += [_exploration(summary), _data_checks(summary)]
    sections += [_changes(summary, details), settings_section(summary, details)]
    sections += [_reasons(details.rejections), _proof(summary)]
    verdict, figure = _verdict(summary, checks), _trade_off(summary)
    return Page("program", title, _about(summary), verdict, light, cards, figure, sections)


# The first screen


def _about(summary: Summary) -> str:
    when = f"Counted from the ledger on {date(summary.at, time=True)}."
    if not summary.rounds:
        return f"A history of {people(summary.n_history)}, and no decisions yet. {when}"
    return (
        f"{people(summary.total('n_people'))} decided on in {counted(len(summary.rounds), 'round')}"
        f", {summary.total('n_accepted'):,} of them accepted. {when}"
    )


def _verdict(summary: Summary, checks: Sequence[Check]) -> str:
    """Return whether the bound is kept, where it is not, what is promised and what to do."""
    of_groups = [c for c in checks if c.question == "mistakes" and c.group]
    above = _groups_above(checks)
    parts = []
    if above:
        sure = "" if any(c.light == "red" for c in above) else ", perhaps by chance"
        named = first_of(
            [f"{c.group}, where {percent(c.value)} of known outcomes are bad" for c in above]
        )
        parts = [f"Mistakes are above the bound for {named}{sure}. All applicants together:"]
    kept = _bound_kept(summary, checks)
    parts.append(kept[0].lower() + kept[1:] if above else kept)
    if of_groups and not above:
        parts.append("No group is above it.")
    parts += [_promised(summary)[1]] if summary.ladders() else []
    found = [check.to_do for check in checks if check.light != "green" and check.to_do]
    to_do = list(dict.fromkeys(found))
    parts += [f"To do: {'; '.join(to_do[:_MOST_NAMED])}."] if to_do else []
    return " ".join(parts)


def _bound_kept(summary: Summary, checks: Sequence[Check]) -> str:
    check = _mistakes_check(checks)
    if not summary.rounds:
        return "No batch has been decided yet, so there is nothing to judge."
    if check is None:
        return "No bound on mistakes is known for this program, so none is compared with it."
    if math.isnan(check.value):
        return "No outcome is known yet, so it is too early to say whether the bound is kept."
    state = "The bound is kept" if check.high <= check.bound else "Mistakes are within the bound"
    if check.value > check.bound:
        state = "Mistakes are above the bound, perhaps by chance"
    if check.low > check.bound:
        state = "The bound is broken"
    known = counted(summary.outcomes.known, "known outcome is", "known outcomes are")
    allowed = f"and at most {percent(check.bound)} may be"
    return f"{state}: {percent(check.value)} of {known} bad, {allowed}."


def _mistakes_check(checks: Sequence[Check]) -> Check | None:
    return next((c for c in checks if c.question == "mistakes" and not c.group), None)


def _groups_above(checks: Sequence[Check]) -> list[Check]:
    of_groups = [c for c in checks if c.question == "mistakes" and c.group]
    return [c for c in of_groups if c.light != "green" and c.value > c.bound]


def _promised(summary: Summary) -> tuple[str, str, str, str]:
    """Return the state of the certificates as a word and a sentence, what is missing, a light."""
    last = {group: records[-1] for group, records in summary.ladders().items()}
    pilots = [group for group, record in last.items() if record.status != "certified"]
    lacking = [last[group] for group in pilots] or [*last.values()]
    missing = " ".join(filter(None, map(_missing, lacking[:_MOST_NAMED])))
    if pilots and len(pilots) < len(last):
        word = f"{len(last) - len(pilots)} of {len(last)} groups"
        return (
            word,
            f"Certified, but not yet for {first_of([str(group) for group in pilots])}.",
            missing,
            "amber",
        )
    n, state = sum(row.certified for row in summary.rounds), summary.rounds[-1].certified
    run = list(takewhile(lambda row: row.certified == state, reversed(summary.rounds)))
    since = f"since round {run[-1].round}"
    if not pilots:
        scope = ""
        if summary.groups:
            scope = ", for all applicants together" if None in last else ", for each group"
        return "yes", f"Certified {since}{scope}.", missing, "green"
    again = f" {since}, after {counted(n, 'certified round')}" if n else " yet"
    return "no longer" if n else "not yet", f"There is no certificate{again}.", missing, "amber"


def _missing(record: CertifiedRound) -> str:
    group = "" if record.group is None else f"for {record.group}, "
    clause = needed(record)
    return sentence(f"{group}{clause}") if clause else ""


def _cards(summary: Summary, checks: Sequence[Check], late: float) -> Iterator[Card]:
    outcomes, accepted = summary.outcomes, summary.total("n_accepted")
    yield _mistakes_card(outcomes, _mistakes_check(checks))
    yield _group_card(summary, checks)
    if summary.ladders():
        word, sentence, missing, light = _promised(summary)
        yield Card("Certified", word, f"{sentence} {missing}".strip(), light)
    else:
        text = "This method keeps an estimate of mistakes under α and gives no certificate."
        yield Card("Certified", "no promise", text)
    if summary.promise.utility is None:
        rate = percent(accepted / max(1, summary.total("n_people")))
        yield Card("Accepted", rate, "of applicants. The program has no utility, so no earnings.")
    else:
        known = f"from {counted(outcomes.known, 'known outcome')}, compared with rejecting all."
        text = known if outcomes.known else "No outcome is known yet."
        yield Card("Earned", _earned(summary, outcomes), text)
    waiting, n_late = summary.waiting(), summary.waiting(late).n
    text = (
        f"of {accepted:,} accepted have no outcome yet, the oldest for {days(waiting.oldest)}; "
        f"{f'{n_late:,}' if n_late else 'none'} for {late:g} days or longer. If all were bad, "
        f"mistakes would be {percent(outcomes.range[1])}."
    )
    text = text if waiting.n else "All outcomes are known."
    light = "amber" if n_late else "" if waiting.n else "green"
    yield Card("Pending", f"{waiting.n:,}", text, light)


def _mistakes_card(outcomes: Outcomes, check: Check | None) -> Card:
    if not outcomes.known:
        return Card("Mistakes", "–", "No outcome is known yet.", "" if check is None else "amber")
    bad = f"{outcomes.bad:,} of {counted(outcomes.known, 'known outcome')} bad"
    if check is None:
        text = f"{bad} (95 % interval {percents(outcomes.interval)})."
        return Card("Mistakes", percent(outcomes.fdr), text)
    side = "above" if check.value > check.bound else "within"
    text = (
        f"{side} the bound α of {percent(check.bound)}: {bad}. Interval "
        f"{percents((check.low, check.high))}, with 95 % confidence at all times."
    )
    return Card("Mistakes", percent(check.value), text, check.light)


def _group_card(summary: Summary, checks: Sequence[Check]) -> Card:
    """Return which groups are above α, or how unequally groups are accepted."""
    if not summary.groups:
        return Card("Groups", "–", "No protected attribute was counted.")
    compared, above = [c for c in checks if c.question == "acceptance"], _groups_above(checks)
    light = min((c.light for c in (*compared, *above)), key=LIGHTS.index, default="green")
    known = [g for g in summary.groups if g.group is not None]
    names = [f"{g.attribute} {g.group}" for g in known]
    bad = {name: g.outcomes.fdr for name, g in zip(names, known, strict=True) if g.outcomes.known}
    rates = {name: g.n_accepted / g.n_people for name, g in zip(names, known, strict=True)}
    value = "none above α" if bad else "–"
    if above:
        value = f"{first_of([c.group for c in above])} above α"
    elif light != "green":
        value = "accepted unequally"
    return Card("Groups", value, f"{_ends('Bad', bad)} {_ends('Accepted', rates)}".strip(), light)


def _ends(what: str, rates: dict[str, float]) -> str:
    """Write the highest and the lowest rate of groups."""
    ranked = sorted(rates, key=lambda name: -rates[name])
    shown = dict.fromkeys([*ranked[:1], *ranked[-1:]])
    listed = ", ".join(f"{percent(rates[name])} of {name}" for name in shown)
    return f"{what}: {listed}." if listed else ""


def _trade_off(summary: Summary) -> Figure | None:
    if not summary.outcomes.known:
        return None
    earned = _earned(summary, summary.outcomes)
    spoken = f"Over all rounds {percent(summary.outcomes.fdr)} mistakes, {earned} earned."
    caption = (
        "A point is a round, or several if there are many: further left is safer, further up "
        "earns more. Points right of α made more mistakes than allowed."
    )
    return Figure("trade-off", plot.trade_off(summary), caption, spoken)


def _earned(summary: Summary, outcomes: Outcomes) -> str:
    return amount(summary.worth(outcomes), summary.currency) if outcomes.known else "–"


# Sections


def _attention(checks: Sequence[Check]) -> Section:
    """Return what was found, the worst first, and what is in order."""
    lights, found = Counter(c.light for c in checks), [c for c in checks if c.light != "green"]
    rows = [(c.question, c.finding) for c in checks if c.light == "green"]
    note = (
        "Red: the whole interval is on the wrong side of the bound. Amber: the estimate is, or "
        "there is another reason to look. These intervals are right at all times together with a "
        "probability of 95 %, so they are wider than those of a single look in tables."
    )
    in_order = Table("In order", "", ["Question", "Answer"], rows, prose=[1])
    sentences = [f"{c.light.capitalize()}: {c.finding} {c.meaning}".strip() for c in found]
    brief = f"Nothing: {counted(len(checks), 'check')} in order."
    if found:
        counts = ", ".join(f"{lights[light]} {light}" for light in LIGHTS if lights[light])
        brief = f"{counts}. {found[0].finding}"
    parts: list[Part] = [sentences, note] if found else [note]
    parts += [in_order] if rows else []
    return Section("attention", "What needs attention", brief, parts)


def _rate(k: int, n: int) -> Cell:
    """Return a rate with its exact interval."""
    return (percent(k / n), percents(exact_interval(k, n))) if n else ("–", "none known")


def _became(outcomes: Outcomes) -> list[str]:
    counts = (outcomes.good, outcomes.bad, outcomes.indeterminate, outcomes.pending)
    return [f"{n:,}" for n in counts]


def _rounds(summary: Summary) -> Section:
    runs = [summary.rounds[span] for span in plot.spans(len(summary.rounds))]
    columns = _round_columns(summary, runs)
    notes = {
        "Thresholds": "Thresholds: the scores from which applicants are accepted for sure.",
        "By hand": "By hand: rejected by the program and accepted by a person; in no rate.",
    }
    note = [notes[title] for title in notes if title in columns]
    note += ["Several rounds are shown together."] if len(runs) < len(summary.rounds) else []
    rows = list(zip(*columns.values(), strict=True))
    last = summary.rounds[-1]
    brief = (
        f"{len(summary.rounds):,}, the last on {date(last.at)}: {last.n_accepted:,} of "
        f"{counted(last.n_people, 'applicant')} accepted."
    )
    parts: list[Part] = [
        Figure("figure-rounds", plot.rounds(summary), "Who was accepted, and how many were bad."),
        Table("Rounds", " ".join(note), list(columns), rows),
        Figure("figure-outcomes", plot.outcomes(summary), "What became of accepted applicants."),
        _outcome_table(summary),
    ]
    return Section("rounds", "Rounds", brief, parts)


def _round_columns(
    summary: Summary, runs: Sequence[Sequence[RoundSummary]]
) -> dict[str, Sequence[Cell]]:
    """Return the columns that say something by title, with a cell for each run of rounds."""
    last = [run[-1] for run in runs]
    outcomes = [Outcomes.sum(row.outcomes for row in run) for run in runs]

    def totals(name: str) -> list[str]:
        return [f"{sum(getattr(row, name) for row in run):,}" for run in runs]

    columns: dict[str, Sequence[Cell]] = {
        "Round": [_span(run) for run in runs],
        "Applied": totals("n_people"),
        "Accepted": totals("n_accepted"),
        "Mistakes": [_rate(counts.bad, counts.known) for counts in outcomes],
        "Certified": [_certified(run) for run in runs],
        "Earned": [_earned(summary, counts) for counts in outcomes],
        "Decided": [date(row.at) for row in last],
        "Explored": totals("n_explored"),
        "α exploited": [percent(row.alpha_exploit) for row in last],
        "Thresholds": [", ".join(map(percent, row.thresholds)) or "–" for row in last],
        **dict(zip(_BECAME, zip(*map(_became, outcomes), strict=True), strict=True)),
        "Overridden": totals("n_set_apart"),
        "By hand": totals("n_by_hand"),
        "Batch": [run[0].batch if len(run) == 1 else "–" for run in runs],
    }
    return {t: c for t, c in columns.items() if t not in _OPTIONAL or set(c) - {"–", "0"}}


def _span(run: Sequence[RoundSummary]) -> str:
    first, last = run[0].round, run[-1].round
    return f"{first}" if first == last else f"{first}–{last}"


def _certified(run: Sequence[RoundSummary]) -> str:
    n = sum(row.certified for row in run)
    return f"{n} of {len(run)}" if len(run) > 1 else "yes" if n else "no"


def _outcome_table(summary: Summary) -> Table:
    rows = [
        (
            name,
            f"{outcomes.accepted:,}",
            *_became(outcomes),
            _rate(outcomes.bad, outcomes.known),
            *(map(percent, outcomes.range) if outcomes.accepted else "––"),
            _earned(summary, outcomes),
        )
        for name, outcomes in (
            ("All but overridden", summary.outcomes),
            ("Exploited", summary.exploited),
            ("Explored", summary.explored),
            ("Overridden, now accepted", summary.overridden),
        )
    ]
    titles = ["Applicants", "Accepted", *_BECAME, "Mistakes", "If the rest is good", "If bad"]
    return Table("Outcomes so far", CAUTION, [*titles, "Earned"], rows)


def _groups(summary: Summary, checks: Sequence[Check]) -> Section:
    if not summary.groups:
        return Section("groups", "Groups")
    card = _group_card(summary, checks)
    caption = "Acceptance and mistakes by group, with 95 % intervals."
    parts: list[Part] = [Figure("figure-groups", plot.groups(summary), caption)]
    titles = ["Group", "Applied", "Accepted", "Rate", "Of the highest", "Mistakes", "Explored"]
    titles += [*_BECAME, "Overridden", "By hand"]
    note = (
        "Over all rounds. Of the highest: the rate as a share of the highest rate. Rates differ "
        "for many reasons, and by chance in small groups."
    )
    for attribute in dict.fromkeys(group.attribute for group in summary.groups):
        groups = [group for group in summary.groups if group.attribute == attribute]
        named = [group for group in groups if group.group is not None]
        highest = max((group.n_accepted / group.n_people for group in named), default=0.0)
        rows: list[list[Cell]] = [
            [
                "(erased)" if group.group is None else group.group,
                f"{group.n_people:,}",
                f"{group.n_accepted:,}",
                _rate(group.n_accepted, group.n_people),
                percent(group.n_accepted / group.n_people / highest)
                if group.group is not None and highest
                else "–",
                _rate(group.outcomes.bad, group.outcomes.known),
                f"{group.n_explored:,}",
                *_became(group.outcomes),
                f"{group.n_set_apart:,}",
                f"{group.n_by_hand:,}",
            ]
            for group in groups
        ]
        parts.append(Table(f"Groups by {attribute}", note, titles, rows))
    return Section("groups", "Groups", f"{card.value} {card.text}".removeprefix("– "), parts)


def certificate_section(summary: Summary) -> Section:
    """Return the history of the certificates; empty for a program that tests for none."""
    ladders = summary.ladders()
    if not ladders:
        return Section("certificate", "Certificate")
    sentences = [text for group in ladders for text in _certificate_sentences(summary, group)]
    caption = "How far certificates reach, and the evidence for the next one."
    parts: list[Part] = [*sentences, Figure("ladder", plot.certificate(summary), caption)]
    rows = [
        (f"{c.says['round']}", _event(c), _group_name(c.says.get("group")), date(c.at))
        for c in summary.changes
        if c.kind == "certificate"
    ]
    if rows:
        note = (
            "A certificate is about a policy: the best share of a frozen order of applicants, with "
            "a soft edge. It is given once the evidence for the policy reaches what is needed."
        )
        titles = ["Round", "What happened", "Group", "When"]
        parts.append(Table("Certificates", note, titles, rows, prose=[1]))
    curve = [
        (
            f"{'' if group is None else f'{group}: '}{percent(point.bound)}",
            percent(point.share),
            amount(point.earned, summary.currency),
            percent(point.estimated_fdr),
            "yes" if point.certified else "no",
        )
        for group, records in ladders.items()
        for point in records[-1].curve
    ]
    if curve:
        note = (
            "What the best allowed policy would earn per applicant at each bound, estimated from "
            "tested outcomes. It accepts a best share for sure and some applicants below it by "
            "chance, who count in earnings and mistakes. Certified: its mistakes are at most this "
            "bound with confidence 1 − δ, each bound by itself. Decisions follow α only."
        )
        titles = ["Bound", "For sure", "Earned per applicant", "Estimated mistakes", "Certified"]
        drawn = Figure("curve", plot.curve(summary), "What other bounds than α would earn.")
        parts += [drawn, Table("Earned at other bounds", note, titles, curve)]
    return Section("certificate", "Certificate", " ".join(_promised(summary)[1:3]), parts)


def _certificate_sentences(summary: Summary, group: Any) -> Iterator[str]:
    name, records = "" if group is None else f" for group {group}", summary.ladders()[group]
    certified = [record.round for record in records if record.status == "certified"]
    first = f"first in round {certified[0]}" if certified else "so there is no promise yet"
    begun = restarts(summary, records[0].group)
    when = " and ".join(f"with round {number} after {reason}" for number, reason in begun)
    again = f"; testing began again {times(len(begun))}, {when}" if begun else ""
    rounds = counted(len(records), "round is", "rounds are")
    yield f"{len(certified)} of {rounds} certified{name}, {first}{again}."
    next_in = summary.next_tested(records[0].group)
    if next_in is not None:
        yield sentence(waiting(next_in))
    yield from map(note_text, records[-1].notes)


def _event(change: Change) -> str:
    says = change.says
    if says["what"] == "dropped":
        were = counted(len(says.get("certificates", ())), "certificate was", "certificates were")
        why = {"correction": "a correction", "outcomes": "outcomes that contradicted it"}
        return f"{were} dropped after {why.get(says['why']) or 'an ' + says['why']}"
    evidence = f"evidence {says['log_wealth']:.2f}, needed {says['threshold']:.2f}"
    bound = f"α = {percent(says['alpha'])} and δ = {percent(says['delta'])}"
    return f"The best {percent(says['share'])} are certified at {bound}: {evidence}"


def _group_name(group: Any) -> str:
    several = isinstance(group, list)
    return "all" if group is None else ", ".join(map(str, group if several else [group]))


def _exploration(summary: Summary) -> Section:
    budget, least = summary.budget, summary.rounds[-1].least_chance
    at_most = "" if math.isnan(budget) else f" (the budget allows {budget:,.0f})"
    n, accepted = summary.total("n_explored"), summary.total("n_accepted")
    brief = f"{n:,} of {accepted:,} accepted applicants were explored{at_most}."
    sentences = [brief]
    for name, outcomes in (("explored", summary.explored), ("exploited", summary.exploited)):
        if outcomes.known:
            bad = f"{percent(outcomes.fdr)} are bad (95 % interval {percents(outcomes.interval)})"
            known = counted(outcomes.known, "known outcome")
            sentences.append(f"Of {known} of {name} applicants {bad}.")
    if not math.isnan(least):
        text = (
            f"In the last round applicants who could be explored had chances from {percent(least)}"
        )
        sentences.append(f"{text} on.")
    caption = "How many applicants are known well enough, and how many were explored."
    drawn = Figure("figure-coverage", plot.coverage(summary), caption)
    return Section("exploration", "Exploration", brief, [sentences, drawn])


def _data_checks(summary: Summary) -> Section:
    rows = [
        (
            f"Round {row.round}",
            row.batch,
            unlike_words(Unlike(**one)) + (" Decided anyway." if one["stops"] else ""),
        )
        for row in summary.rounds
        for one in row.unlike
    ]
    batches, files = len({row[0] for row in rows}), len(summary.unlike_outcomes)
    rows += [
        (f"Entry {number}", "outcomes", unlike_expected_words(UnlikeExpected(**one)))
        for number, one in summary.unlike_outcomes.items()
    ]
    if not rows:
        text = "No batch is unlike earlier applicants, and no outcomes are unlike expected."
        return Section("data", "Data checks", text, [text])
    brief = (
        f"{counted(batches, 'batch is', 'batches are')} unlike earlier applicants, and "
        f"{counted(files, 'file of outcomes is', 'files of outcomes are')} unlike expected."
    )
    note = "Promises and estimates are about applicants like those before."
    table = Table("Differences", note, ["Where", "Batch", "Difference"], rows, prose=[2])
    return Section("data", "Data checks", brief, [table])


def _changes(summary: Summary, details: Details) -> Section:
    by_people = [change for change in summary.changes if change.kind != "certificate"]
    changes = sorted([*by_people, *details.withdrawals], key=lambda change: change.entry)
    if not changes:
        brief = "Nothing was corrected, withdrawn, overridden, held or erased."
        return Section("changes", "Changes by people", brief, [brief])
    brief = (
        f"{counted(summary.total('n_overridden'), 'decision is', 'decisions are')} overridden now, "
        f"{counted(summary.n_erased, 'person is', 'people are')} erased, "
        f"{counted(summary.n_held, 'person is', 'people are')} held."
    )
    rows = [
        (f"{c.entry}", c.kind, f"{c.n:,}" if c.n else "–", date(c.at, time=True), c.by, _content(c))
        for c in changes
    ]
    note = (
        "Entries by which people changed outcomes, decisions or stored data. Of applicants with "
        f"an override, undone or not, {summary.overridden.accepted:,} are accepted now."
    )
    titles = ["Entry", "What", "People", "When", "By", "Content"]
    table = Table("Changes", note, titles, rows, prose=[5])
    return Section("changes", "Changes by people", brief, [table])


def _content(change: Change) -> str:
    """Return the content of an entry, the reason first."""
    says = change.says
    parts = [str(says["reason"])] if "reason" in says else []
    if says.get("n_early", 0):
        months = says.get("retention_months", MONTHS)
        parts.append(f"{says['n_early']:,} before {months} months were over")
    parts += [f"decision now: {says['stands']}"] if "stands" in says else []
    return "; ".join(parts) or "– (no reason was given)"


def _reasons(rejections: Rejections) -> Section:
    if not rejections.n:
        return Section("reasons", "Reasons of rejections")
    shown = rejections.reasons[:_MOST_REASONS]
    rows = [(r.name, f"{r.n:,}", percent(r.n / rejections.n), f"{r.n_first:,}") for r in shown]
    hidden = len(rejections.reasons) - len(rows)
    note = (
        f"For {people(rejections.n)} rejected by the program and not erased: columns that lowered "
        f"the score, at most four for each; {rejections.n_without:,} have none."
        + (f" Columns not shown: {hidden:,}." if hidden else "")
    )
    table = Table("Columns", note, ["Column", "People", "Share", "As the first reason"], rows)
    brief = f"Most often {shown[0].name}." if shown else "No column is a reason."
    return Section("reasons", "Reasons of rejections", brief, [table])


def _proof(summary: Summary) -> Section:
    program, checkpoint = quote(summary.program), quote(str(summary.head))
    parts: list[Part] = [
        "Each entry of the ledger contains the hash of the entry before. The checkpoint names the "
        "last one; keep it elsewhere.",
        Code(str(summary.head)),
        "This command recomputes all hashes, and finds any change since the checkpoint was kept:",
        Code(f"fairchance verify --program {program} --checkpoint {checkpoint}"),
    ]
    entries = counted(summary.head.number, "entry", "entries")
    return Section("proof", "Proof", f"{entries}, not verified by this page.", parts)


# Settings in words


def settings_section(summary: Summary, details: Details) -> Section:
    """Return the settings of a program, in words."""
    rows = [(name, " ".join(text.split())) for name, text in _setting_rows(summary, details)]
    table = Table("Settings", "They never change.", ["Setting", "Value"], rows, prose=[1])
    alpha, delta = summary.promise.alpha, summary.promise.delta
    bound = "No bound" if alpha is None else f"At most {percent(alpha)} mistakes"
    sure = "" if delta is None else f", with {percent(1 - delta)} confidence once certified"
    return Section("settings", "Settings", f"{bound}{sure}.", [table])


def _setting_rows(summary: Summary, details: Details) -> Iterator[tuple[str, str]]:
    says, about, promise = details.says, summary.about, summary.promise
    version = says.get("fairchance", "of an unknown version")
    yield "Started", f"{date(details.at, time=True)} by {details.by}, with fairchance {version}"
    yield "Method", _METHODS.get(summary.classifier, summary.classifier)
    if promise.problem:
        yield "Settings of the method", f"– ({promise.problem})"
    own = "a logistic model" if promise.delta is None else "a scorecard mixed with boosted trees"
    if "learner" in promise.settings:
        learner = promise.settings["learner"]
        yield "Learner", own if learner is None else _described(learner)
    yield "History", people(summary.n_history)
    yield "Features", _features(says)
    names = ", ".join(map(str, says.get("group_names") or ["one without a name"]))
    groups = f"{names}; {_GROUP_MODES[says['group_mode']]}"
    yield "Protected attributes", groups if says.get("has_groups") else "– (the program knows none)"
    labels = about.get("outcomes") or {state: [says[state]] for state in ("good", "bad")}
    for state in ("good", "bad"):
        yield f"A {state} outcome", ", ".join(map(Labels.canonical, labels[state]))
    never = ", ".join(labels.get("indeterminate", ()))
    yield "Never to be known", never or "– (no label; applicants are withdrawn individually)"
    if promise.alpha is not None:
        yield "Bound α", f"at most {percent(promise.alpha)} of accepted applicants may be bad"
    if promise.delta is not None:
        yield "Error probability δ", f"{percent(promise.delta)}, for all certified rounds together"
    if promise.maturity is not None:
        rounds = counted(promise.maturity, "later round is", "later rounds are")
        when = f"once {rounds} decided" if promise.maturity else "at once"
        yield "Maturity", f"outcomes count {when}"
    if "patience" in promise.settings:
        late = f"after {promise.patience} rounds a missing outcome counts as bad in the tests"
        yield "Patience", "the tests wait for every outcome" if promise.patience is None else late
    yield "Utility", _utility(summary)
    yield "Missing values", _missing_values(about)
    yield "Personal data", f"kept for {retention_months(about)} months, or longer under a hold"
    for key, value in promise.settings.items():
        if key not in _ROWS and value is not None:
            yield key.replace("_", " ").capitalize(), _in_words(key, value)


def _features(says: dict[str, Any]) -> str:
    columns = says.get("columns") or {}
    kinds = {name: kind for kind in ("text", "date") for name in columns.get(f"{kind}s", ())}
    if columns.get("names") is None:
        return f"{len((says.get('reference') or {}).get('names', ()))} columns without names"
    return ", ".join(f"{n} ({kinds[n]})" if n in kinds else str(n) for n in columns["names"])


def _utility(summary: Summary) -> str:
    utility = summary.promise.utility
    if utility is None:
        return "– (the method's own, without sums of money)"
    good, bad = (
        f"{'earns' if gain >= 0 else 'loses'} {amount(abs(gain), summary.currency)}"
        for gain in (utility.gain_good, utility.gain_bad)
    )
    return f"accepting a good applicant {good}, a bad one {bad}, compared with rejecting"


def _missing_values(about: dict[str, Any]) -> str:
    if about.get("missing") is None:
        return "handled by the learner"
    columns, words = ", ".join(about["missing"]), ", ".join(about.get("missing_values", ()))
    may = f"allowed in {columns}" if columns else "rows with missing features are refused"
    return f"{may}; {words} means missing" if words else may


def _in_words(key: str, value: Any) -> str:
    """Return what a setting means.

    Examples
    --------
    >>> _in_words("ranks", "within_group"), _in_words("horizon", 24)
    ('applicants are ranked within their own group', 'about 24 rounds are expected')
    """
    if f"{key} {value}" in _CHOICES:
        return _CHOICES[f"{key} {value}"]
    if key == "horizon":
        return f"about {counted(value, 'round is', 'rounds are')} expected"
    if key in ("floor", "monitor") and not value:
        return "none"
    if key == "floor":
        return f"every applicant has a chance, of {percent(value)} on average"
    if key == "monitor":
        chance = percent(value)
        return f"certificates are dropped if mistakes drift; a false alarm has {chance} probability"
    return _described(value)


def _described(value: Any) -> str:
    """Return a setting in words: an object by its name, and by what differs from its defaults.

    Examples
    --------
    >>> from fairchance import ScoreWeighted
    >>> _described(ScoreWeighted(beta=0.1)), _described("per_group"), _described(False)
    ('score weighted (beta 0.1)', 'per group', 'no')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float | str):
        return value.replace("_", " ") if isinstance(value, str) else f"{value:g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(_described, value))
    kind = type(value)
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.__name__).lower()
    words = _LEARNERS.get(kind.__name__, name)
    more = [f"scikit-learn {kind.__name__}"] if kind.__module__.startswith("sklearn") else []
    if hasattr(value, "steps"):
        return f"{words} ({', then '.join(_described(step) for _, step in value.steps)})"
    if is_dataclass(value) or hasattr(value, "get_params"):
        defaults = inspect.signature(kind).parameters
        for name, default in defaults.items():
            part = getattr(value, name, None)
            if part is not None and repr(part) != repr(default.default):
                more.append(f"{name.replace('_', ' ')} {_described(part)}")
    return words + (f" ({', '.join(more)})" if more else "")
