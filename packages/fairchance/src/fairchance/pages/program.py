"""The report of a program: sentences, tables and charts from the summary of a ledger."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from shlex import quote
from typing import Any

from fairchance import plot
from fairchance.audit.rates import ENOUGH, Rate, rate_of
from fairchance.errors import writing
from fairchance.ledger.config import Labels
from fairchance.ledger.control import Control
from fairchance.ledger.health import Check, check_health, find_check, worst_light
from fairchance.ledger.outcomes import UnlikeExpected
from fairchance.ledger.records import group_name
from fairchance.ledger.retention import MONTHS, retention_months
from fairchance.ledger.summary import (
    Details,
    Outcomes,
    RecordedChange,
    Rejections,
    RoundSummary,
    Summary,
)
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
    write,
)
from fairchance.people.likeness import Unlike
from fairchance.words import (
    LIGHTS,
    amount,
    counted,
    date,
    date_span,
    days,
    first_of,
    intervals_assume,
    people,
    percent,
    percents,
)
from fairchance.words.batches import unlike_expected_words, unlike_words
from fairchance.words.checks import (
    CAUTION,
    check_text,
    check_words,
    promise_word,
    rate_text,
    to_do,
    verdict,
)
from fairchance.words.money import MONEY_TITLES, money_note, money_rows, money_verdict
from fairchance.words.rounds import (
    ABOUT_CURVE,
    certificates_assume,
    certified_policy,
    note_text,
    open_round_words,
    ramp_words,
    reason,
    restarted,
    sentence,
    status_word,
    surely,
    take_up_rows,
    waiting,
    withdrawn,
)

__all__ = ["certificate_section", "first_screen", "program_page", "program_sections"]
__all__ += ["events_section", "rounds_section", "settings_section", "write_program_report"]

Cell = str | tuple[str, str]
_BECAME = ("Not taken", "Good", "Bad", "Withdrawn", "Pending")
_OPTIONAL = {"Not taken", "Withdrawn", "Barred", "α by score", "Thresholds", "Overridden"}
_OPTIONAL |= {"By hand", "Earned", "Batch"}
_MOST_REASONS = 10
_MOST_EVENTS = 200
_AGES = (30.0, 90.0)  # days
_LAST = 3  # rounds
_LAST_TAKE_UP = 12  # rounds, as status shows
_SECRET = ("random_state",)  # it determines who will be drawn


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
    sections = program_sections(summary, details, checks, late)
    return replace(
        first_screen(summary, checks, late), sections=[one() for one in sections.values()]
    )


def program_sections(
    summary: Summary, details: Details, checks: Sequence[Check], late: float
) -> dict[str, Callable[[], Section]]:
    """Return what makes each section of a report, by its address, in order."""
    sections: dict[str, Callable[[], Section]] = {}
    sections["attention"] = lambda: _attention(checks, summary.promise.shock)
    if summary.rounds:
        sections |= {
            "money": lambda: _money(summary),
            "rounds": lambda: rounds_section(summary),
            "pending": lambda: _pending(summary, late),
            "groups": lambda: _groups(summary, checks),
            "certificate": lambda: certificate_section(summary),
            "exploration": lambda: _exploration(summary, checks),
            "draws": lambda: _draws(summary, checks),
            "data": lambda: _data_checks(summary, details),
        }
    reasons = details.says.get("about", {}).get("reasons", {})
    return sections | {
        "events": lambda: events_section(summary, details),
        "settings": lambda: settings_section(summary, details),
        "reasons": lambda: _reasons(details.rejections, reasons),
        "proof": lambda: _proof(summary),
    }


# The first screen


def first_screen(summary: Summary, checks: Sequence[Check], late: float) -> Page:
    """Return the page of a program without sections."""
    title, light = f"Program {summary.program}", worst_light(checks)
    cards = list(_cards(summary, checks, late)) if summary.rounds else []
    said, figure = f"{verdict(checks)} {to_do(checks)}".strip(), _main_figure(summary)
    return Page("program", title, _about(summary), said, light, cards, figure)


def _about(summary: Summary) -> str:
    when = f"Counted from the ledger on {date(summary.at, time=True)}."
    if summary.open_round is not None:
        when = f"{open_round_words(summary.open_round)} {when}"
    if not summary.rounds:
        return f"A history of {people(summary.n_history)}, and no closed round yet. {when}"
    return (
        f"{people(summary.total('n_people'))} decided on in {counted(len(summary.rounds), 'round')}"
        f", {summary.total('n_accepted'):,} of them accepted. {when}"
    )


def _cards(summary: Summary, checks: Sequence[Check], late: float) -> Iterator[Card]:
    outcomes, accepted = summary.outcomes, summary.total("n_accepted")
    yield _mistakes_card(summary, checks)
    yield _last_card(summary)
    yield _group_card(summary, checks)
    promise = find_check(checks, "certificate")
    assert promise is not None
    judged = promise.light if summary.ladders() else ""
    word = promise_word(promise)
    if promise.finding == "shadow":  # which is neither good nor bad
        word, judged = "–", ""
    yield Card("Certified", word, check_text(promise), judged)
    if summary.promise.utility is None:
        share = percent(accepted / max(1, summary.total("n_people")))
        yield Card("Accepted", share, "of applicants. The program has no utility, so no earnings.")
    else:
        yield _earned_card(summary)
    if summary.money is not None:
        money, currency = summary.money, summary.currency
        value = amount(money.whole.added, currency)
        yield Card("Beyond today's policy", value, money_verdict(money, currency))
    if _has_lender(summary):
        yield _ramp_card(summary.control)
    for check in checks:
        if check.finding == "incumbent_rejected":
            yield Card("Today's process", "above α", check_text(check), check.light)
    pending, n_late = summary.waiting(), summary.waiting(late).n
    text = (
        f"of {accepted:,} accepted have no outcome yet, the oldest for {days(pending.oldest)}. If "
        f"all were bad, mistakes would be {percent(outcomes.range[1])}."
    )
    never = outcomes.withdrawn + summary.overridden.withdrawn
    text = text if pending.n else "No outcome is pending." if never else "All outcomes are known."
    text += f" {counted(never, 'outcome')} will never be known." if never else ""
    light = "amber" if n_late else "" if pending.n or never else "green"
    yield Card("Pending", f"{pending.n:,}", text, light)


def _earned_card(summary: Summary) -> Card:
    """Return what was earned; no loss as a headline while most outcomes are missing."""
    outcomes, by = summary.outcomes, "by today's process, " if summary.in_shadow else ""
    value = _earned(summary, outcomes)
    text = f"{by}from {counted(outcomes.known, 'known outcome')}, compared with rejecting all."
    if outcomes.mistakes().early and summary.worth(outcomes) < 0:
        of = counted(outcomes.taken, "loan")
        text = f"{value} {text} Too few of {of} to go by: bad outcomes come before good ones."
        value = "–"
    last = [f"{_earned(summary, row.outcomes)} in round {row.round}" for row in _last(summary)]
    text += f" So far {', '.join(last)}." if len(last) > 1 else ""
    text += "" if summary.currency else " The program names no currency."
    return Card("Earned", value, text)


def _mistakes_card(summary: Summary, checks: Sequence[Check]) -> Card:
    """Return the mistakes of all rounds; those of the last ones first, if they are above α."""
    whole, last = (find_check(checks, question) for question in ("mistakes", "last rounds"))
    if whole is None:
        rate = summary.outcomes.mistakes()
        return Card("Mistakes", percent(rate.value), rate_text(rate))
    if last is None:
        value = "–" if whole.finding == "mistakes_early" else percent(whole.value)
        return Card("Mistakes", value, check_text(whole), whole.light)
    said = f"{check_text(last)} {check_words(whole).finding}"
    return Card("Mistakes", percent(last.value), said, last.light)


def _last(summary: Summary) -> list[RoundSummary]:
    """Return the last rounds of whose outcomes most are known."""
    known = [row for row in summary.rounds if row.outcomes.known]
    return [row for row in known if not row.outcomes.mistakes().early][-_LAST:]


def _last_card(summary: Summary) -> Card:
    """Return what happened in the last round, and the mistakes of the last ones."""
    last = summary.rounds[-1]
    status = f" ({status_word(last)})" if last.status else ""
    text = f"of {counted(last.n_people, 'applicant')} accepted in round {last.round}{status}, "
    bad = [f"{rate_text(row.outcomes.mistakes())} in round {row.round}" for row in _last(summary)]
    text += f"decided by {date(last.at)}."
    text += f" Known to be bad: {', '.join(bad)}." if bad else ""
    return Card("Last round", percent(last.n_accepted / max(1, last.n_people)), text)


def _has_lender(summary: Summary) -> bool:
    """Return whether the program works beside the lender's own process."""
    return summary.control != Control() or any(
        row.n_incumbent is not None for row in summary.rounds
    )


def _ramp_card(control: Control) -> Card:
    text = sentence(ramp_words(control.in_force))
    if control.paused:
        return Card("Ramp", "paused", text, "amber")
    return Card("Ramp", percent(control.ramp), text)


def _group_card(summary: Summary, checks: Sequence[Check]) -> Card:
    """Return which groups are above α, or how unequally groups are accepted."""
    groups = [group for group in summary.groups if group.group is not None]
    if not groups:
        return Card("Groups", "–", "No protected attribute was counted.")
    compared = [c for c in checks if c.question == "acceptance" and c.group]
    above = [c for c in checks if c.question == "mistakes" and c.group and c.light != "green"]
    above = [c for c in above if c.value > c.bound]
    light = worst_light([*compared, *above])
    known = any(group.outcomes.known for group in groups)
    early = any(c.finding == "mistakes_early" and c.group for c in checks)
    judged = known and not early and summary.promise.alpha is not None
    value = "none above α" if judged else "–"
    if any(c.light == light for c in above):
        value = f"{first_of([c.group for c in above if c.light == light])} above α"
    elif light != "green":
        unequal = any(c.finding == "acceptance_unequal" for c in compared if c.light == light)
        value = "accepted unequally" if unequal else "acceptance differs"
    enough = [g for g in groups if g.outcomes.known >= ENOUGH and not g.mistakes.early]
    bad = _ends("Bad", {g.name: g.mistakes for g in enough})
    accepted = _ends("Accepted", {g.name: g.acceptance for g in groups if g.is_stated})
    return Card("Groups", value, f"{bad} {accepted}".strip(), light)


def _ends(what: str, rates: dict[str, Rate]) -> str:
    """Write the highest and the lowest rate of groups."""
    ranked = sorted(rates, key=lambda name: -rates[name].value)
    shown = dict.fromkeys([*ranked[:1], *ranked[-1:]])
    listed = ", ".join(f"{percent(rates[name].value)} of {name}" for name in shown)
    return f"{what}: {listed}." if listed else ""


def _main_figure(summary: Summary) -> Figure | None:
    """Return the money by month or, without a utility, mistakes of each round."""
    money = summary.money
    names = ("program",) if money and money.against == "nothing" else ("added", "low", "high")
    periods = () if money is None else money.periods
    if money is None or not any(abs(getattr(one, at)) > 0 for one in periods for at in names):
        return _trade_off(summary)  # without a difference, as in shadow, nothing is to be seen
    spoken = money_verdict(money, summary.currency)
    caption = f"What the program earned beyond today's policy, by {money.axis}."
    if any(math.isnan(one.added) and not math.isnan(one.low) for one in periods):
        caption += " A bar without a point: not identified, only bounds are known."
    return Figure("money", plot.money(summary), caption, spoken)


def _trade_off(summary: Summary) -> Figure | None:
    if not summary.outcomes.known:
        return None
    earned = _earned(summary, summary.outcomes)
    spoken = f"Over all rounds {percent(summary.outcomes.fdr)} mistakes, {earned} earned."
    caption = "A point is a round: further left is safer, further up earns more."
    return Figure("trade-off", plot.trade_off(summary), caption, spoken)


def _earned(summary: Summary, outcomes: Outcomes) -> str:
    return amount(summary.worth(outcomes), summary.currency) if outcomes.known else "–"


# Sections


def _attention(checks: Sequence[Check], shock: float) -> Section:
    """Return what was found, the worst first, and what is in order."""
    lights, found = Counter(c.light for c in checks), [c for c in checks if c.light != "green"]
    right = Counter(c.question for c in checks if c.light == "green")
    note = (
        "Red: chance cannot explain that the bound is broken. Amber: the estimate is on the wrong "
        "side, or there is another reason to look. All intervals are right at all times, with a "
        "probability of 95 % for each question; the interval of one round stands alone, and that "
        "of the last rounds allows for all rounds with which they could begin. "
        f"{intervals_assume(shock)}"
    )
    brief = f"Nothing: {counted(len(checks), 'check')} in order."
    if found:
        counts = ", ".join(f"{lights[light]} {light}" for light in LIGHTS if lights[light])
        brief = f"{counts}. {check_words(found[0]).finding}"
    sentences = [f"{c.light.capitalize()}: {check_text(c)}" for c in found]
    parts: list[Part] = [sentences, note] if found else [note]
    if right:
        listed = ", ".join(f"{question} {n}" for question, n in right.items())
        n = counted(right.total(), "check")
        parts.append(f"In order: {n} ({listed}). Their numbers are in the tables below.")
    return Section("attention", "What needs attention", brief, parts)


def _table(
    title: str, note: str, titles: Iterable[str], rows: Iterable[Sequence[Cell]]
) -> PageTable:
    """Return a table without the optional columns that say nothing, so that it fits a screen."""
    columns = dict(zip(titles, zip(*rows, strict=True), strict=True))
    shown = {t: c for t, c in columns.items() if t not in _OPTIONAL or set(c) - {"–", "0"}}
    return PageTable(title, note, list(shown), list(zip(*shown.values(), strict=True)))


def _cell(rate: Rate) -> Cell:
    """Return a rate with its interval in small print."""
    return (percent(rate.value), percents((rate.low, rate.high))) if rate.n else "–"


def _became(outcomes: Outcomes) -> list[str]:
    counts = (outcomes.not_taken, outcomes.good, outcomes.bad, outcomes.withdrawn, outcomes.pending)
    return [f"{n:,}" for n in counts]


def _money(summary: Summary) -> Section:
    """Return what was earned against today's policy, by month."""
    money = summary.money
    if money is None:
        return Section("money", "Money against today's policy")
    titles = [money.axis.capitalize(), *(title.capitalize() for title in MONEY_TITLES)]
    rows = money_rows(money, summary.currency)
    parts: list[Part] = [PageTable(f"Earned, by {money.axis}", money_note(money), titles, rows)]
    trade_off = _trade_off(summary)
    parts += [] if trade_off is None else [trade_off]
    said = money_verdict(money, summary.currency)
    return Section("money", "Money against today's policy", said, parts)


def rounds_section(summary: Summary, *, brief_only: bool = False) -> Section:
    """Return all rounds and what became of the accepted; or only who was accepted, and mistakes."""
    runs = [summary.rounds[span] for span in plot.spans(len(summary.rounds))]
    columns = _round_columns(summary, runs)
    last = summary.rounds[-1]
    brief = (
        f"{len(summary.rounds):,}, the last of {date_span(last.began, last.at)}: "
        f"{last.n_accepted:,} of {counted(last.n_people, 'applicant')} accepted."
    )
    parts: list[Part] = [
        Figure("figure-rounds", plot.rounds(summary), "Who was accepted, and how many were bad.")
    ]
    if brief_only:
        return Section("rounds", "Rounds", brief, parts)
    parts += [
        _table("Rounds", "", columns, zip(*columns.values(), strict=True)),
        Figure("figure-outcomes", plot.outcomes(summary), "What became of accepted applicants."),
        _outcome_table(summary),
    ]
    return Section("rounds", "Rounds", brief, parts)


def _round_columns(
    summary: Summary, runs: Sequence[Sequence[RoundSummary]]
) -> dict[str, Sequence[Cell]]:
    """Return columns by title, with a cell for each run of rounds."""
    last = [run[-1] for run in runs]
    outcomes = [Outcomes.sum(row.outcomes for row in run) for run in runs]

    def totals(name: str) -> list[str]:
        return [f"{sum(getattr(row, name) for row in run):,}" for run in runs]

    return {
        "Round": [_span(run) for run in runs],
        "Applied": totals("n_people"),
        "Accepted": totals("n_accepted"),
        "Mistakes": [_cell(counts.mistakes()) for counts in outcomes],
        "Status": [_status(run) for run in runs],
        "Earned": [_earned(summary, counts) for counts in outcomes],
        "Decided": [date_span(run[0].began, run[-1].at) for run in runs],
        "Explored": totals("n_explored"),
        "Barred": totals("n_barred"),
        "α by score": [percent(row.alpha_exploit) for row in last],
        "Thresholds": [", ".join(map(percent, row.thresholds)) or "–" for row in last],
        **dict(zip(_BECAME, zip(*map(_became, outcomes), strict=True), strict=True)),
        "Overridden": totals("n_set_apart"),
        "By hand": totals("n_by_hand"),
        "Batch": [run[0].batch if len(run) == 1 else "–" for run in runs],
    }


def _span(run: Sequence[RoundSummary]) -> str:
    first, last = run[0].round, run[-1].round
    return f"{first}" if first == last else f"{first}–{last}"


def _status(run: Sequence[RoundSummary]) -> str:
    words = Counter(map(status_word, run))
    return ", ".join(word if len(run) == 1 else f"{n} {word}" for word, n in words.items())


def _outcome_table(summary: Summary) -> PageTable:
    rows = [
        (
            name,
            f"{outcomes.accepted:,}",
            *_became(outcomes),
            _cell(outcomes.mistakes()),
            *(map(percent, outcomes.range) if outcomes.accepted else "––"),
            _earned(summary, outcomes),
        )
        for name, outcomes in (
            ("All", summary.outcomes),
            (f"Accepted {surely(summary.records)}", summary.exploited),
            ("Explored", summary.explored),
            ("By hand", summary.overridden),
        )
    ]
    titles = ["Applicants", "Accepted", *_BECAME, "Mistakes", "If the rest is good", "If bad"]
    return _table("Outcomes so far", CAUTION, [*titles, "Earned"], rows)


def _pending(summary: Summary, late: float) -> Section:
    """Return how long accepted applicants have no outcome, by age."""
    total = summary.waiting()
    if not total.n:
        return Section("pending", "Outcomes still to come")
    edges = [0.0, *(edge for edge in _AGES if edge < late), late]
    n = [summary.waiting(edge).n for edge in edges]
    names = [f"{low:g} to {high:g} days" for low, high in pairwise(edges)]
    counts = [*(more - less for more, less in pairwise(n)), n[-1]]
    rows = [
        (name, f"{count:,}", percent(count / total.n))
        for name, count in zip([*names, f"{late:g} days or longer"], counts, strict=True)
    ]
    note = "By the age of the round. Those of the last line are late."
    brief = f"{total.n:,}, of them {n[-1]:,} late; the oldest waits for {days(total.oldest)}."
    table = PageTable("By age", note, ["Waiting for", "Accepted", "Share"], rows)
    return Section("pending", "Outcomes still to come", brief, [table])


def _groups(summary: Summary, checks: Sequence[Check]) -> Section:
    if not summary.groups:
        return Section("groups", "Groups")
    card = _group_card(summary, checks)
    parts: list[Part] = []
    if any(group.group is not None for group in summary.groups):
        caption = "Acceptance and mistakes by group."
        parts.append(Figure("figure-groups", plot.groups(summary), caption))
    titles = ["Group", "Applied", "Accepted", "Rate", "Of the highest", "Mistakes", "Explored"]
    titles += [*_BECAME, "Overridden", "By hand"]
    note = "Of the highest: the rate as a share of the highest rate."
    ratios = {c.group: percent(c.value) for c in checks if c.question == "acceptance"}
    for attribute in dict.fromkeys(group.attribute for group in summary.groups):
        rows: list[list[Cell]] = [
            [
                "(erased)" if group.group is None else group.group,
                f"{group.n_people:,}",
                f"{group.n_accepted:,}",
                "–" if group.group is None else _cell(group.acceptance),
                "–" if group.group is None else ratios.get(group.name, "–"),
                "–" if group.group is None else _cell(group.mistakes),
                f"{group.n_explored:,}",
                *_became(group.outcomes),
                f"{group.n_set_apart:,}",
                f"{group.n_by_hand:,}",
            ]
            for group in summary.groups
            if group.attribute == attribute
        ]
        parts.append(_table(f"By {attribute}", note, titles, rows))
    said = "" if card.value == "–" else f"{sentence(card.value)} "
    return Section("groups", "Groups", f"{said}{card.text}", parts)


def certificate_section(summary: Summary) -> Section:
    """Return the history of the certificates; empty for a program that tests for none."""
    ladders = summary.ladders()
    if not ladders:
        return Section("certificate", "Certificate")
    sentences = [text for group in ladders for text in _certificate_sentences(summary, group)]
    caption = (
        "Above, the best share of applicants that the policy of each round accepts by score "
        "(points), and what is certified (green bars). Below, the evidence for the next "
        "certificate: once it is enough, the one after needs evidence of its own."
    )
    sentences.append(certificates_assume(summary))
    parts: list[Part] = [*sentences, Figure("ladder", plot.certificate(summary), caption)]
    rows = [
        (f"{c.says['round']}", _event(c, summary), _group_name(c.says.get("group")), date(c.at))
        for c in summary.changes
        if c.kind == "certificate"
    ]
    if rows:
        titles = ["Round", "What happened", "Group", "When"]
        parts.append(PageTable("Certificates", "", titles, rows, prose=[1]))
    curve = [
        (
            f"{'' if group is None else f'{group}: '}{percent(point.bound)}",
            "certified" if point.certified else "estimate",
            percent(point.share),
            amount(point.earned, summary.currency),
            percent(point.estimated_fdr),
        )
        for group, records in ladders.items()
        for point in records[-1].curve
    ]
    if curve:
        note = (
            "What the best allowed policy would earn per applicant at each bound, estimated from "
            f"tested outcomes. {ABOUT_CURVE} Each bound is certified by itself. Decisions follow α "
            "only."
        )
        titles = ["Bound", "Policy", "By score", "Earned per applicant", "Estimated mistakes"]
        drawn = Figure("curve", plot.curve(summary), "What other bounds than α would earn.")
        parts += [drawn, PageTable("Earned at other bounds", note, titles, curve)]
    promise = find_check(check_health(summary), "certificate")
    brief = "" if promise is None else check_words(promise).finding
    return Section("certificate", "Certificate", brief, parts)


def _certificate_sentences(summary: Summary, group: str | None) -> Iterator[str]:
    """Yield how many rounds are certified, when tests began again, and what they wait for."""
    records = summary.ladders()[group]
    name, last = "" if group is None else f" for group {group}", records[-1]
    gone = [row.round for row in summary.rounds if group in row.withdrawn]
    certified = [
        record.round
        for record in records
        if record.status == "certified" and record.round not in gone
    ]
    first = f", first round {certified[0]}" if certified else ""
    rounds = counted(len(records), "round is", "rounds are")
    yield f"{len(certified)} of {rounds} certified{name}{first}."
    if gone:
        yield sentence(withdrawn(gone))
    next_in = summary.next_tested(last.group)
    clauses = (restarted(last), "" if next_in is None else waiting(next_in))
    yield from (sentence(clause) for clause in clauses if clause)
    yield from map(note_text, last.notes)


def _event(change: RecordedChange, summary: Summary) -> str:
    says = change.says
    if says["what"] == "dropped":
        were = counted(len(says.get("certificates", ())), "certificate was", "certificates were")
        return f"{were} dropped after {reason(says['why'])}"
    evidence = f"evidence {says['log_wealth']:.2f}, needed {says['threshold']:.2f}"
    bound = f"α = {percent(says['alpha'])} and δ = {percent(says['delta'])}"
    group = None if says["group"] is None else group_name(says["group"])
    records = summary.ladders().get(group, ())
    kinds = (record.kind for record in records if record.round == says["round"])
    accepted = certified_policy(next(kinds, "own"), says["share"])
    return f"{accepted[:1].upper()}{accepted[1:]} are certified at {bound}: {evidence}"


def _group_name(group: Any) -> str:
    several = isinstance(group, list)
    return "all" if group is None else ", ".join(map(str, group if several else [group]))


def _exploration(summary: Summary, checks: Sequence[Check]) -> Section:
    mine = [c for c in checks if c.question == "exploration"]
    found = [check_text(c) for c in mine if c.light != "green" or not c.group]
    caption = "How many applicants are known well enough, and how many were explored."
    drawn = Figure("figure-coverage", plot.coverage(summary), caption)
    return Section("exploration", "Exploration", found[0], [found, drawn])


def _draws(summary: Summary, checks: Sequence[Check]) -> Section:
    """Return whether draws and take-up are as they should be, by round."""
    found = [check_text(c) for c in checks if c.question in ("draws", "take-up")]
    parts: list[Part] = [found, _draws_table(summary)] if found else []
    take_up = take_up_rows(summary, most=_LAST_TAKE_UP)
    if take_up:
        titles = ["Applicants", "Accepted", "Taken", "Not taken", "Take-up"]
        note = "Pending counts as taken. Of rounds, the last ones."
        parts.append(PageTable("Take-up so far", note, titles, take_up))
        _, accepted, _, not_taken, _ = take_up[0]
        found = found or [f"{not_taken} of {accepted} accepted applicants did not take the loan."]
    return Section("draws", "Draws and take-up", found[0] if found else "", parts)


def _draws_table(summary: Summary) -> PageTable:
    """Return acceptances against chances, and who got no loan, by round."""
    rows = []
    for run in (summary.rounds[span] for span in plot.spans(len(summary.rounds))):
        lost = [sum(row.without_loan[at] for row in run) for at in (0, 1)]
        accepted = (sum(row.n_accepted for row in run), sum(row.expected for row in run))
        n = [sum(getattr(row, name) for row in run) for name in ("n_explored", "n_exploited")]
        fate = sum(row.outcomes.known for row in run) + sum(lost)  # else nothing is known yet
        shares = [_cell(rate_of(k, of)) if fate else "–" for k, of in zip(lost, n, strict=True)]
        parts = (f"{n[0]:,}", shares[0], f"{n[1]:,}", shares[1])
        rows.append([_span(run), f"{accepted[0]:,}", f"{accepted[1]:,.1f}", *parts])
    titles = ["Round", "Accepted", "By their chances", "Explored", "Explored without a loan"]
    titles += ["Others", "Others without a loan"]
    note = (
        "By their chances: how many acceptances the recorded chances let expect. Without a loan: "
        "not taken, withdrawn or rejected by hand; pending counts as taken."
    )
    return _table("By round", note, titles, rows)


def _data_checks(summary: Summary, details: Details) -> Section:
    rows = [
        (
            f"Round {row.round}",
            row.batch,
            unlike_words(Unlike(**one)) + (" Decided anyway." if one["stops"] else ""),
        )
        for row in summary.rounds
        for one in row.unlike
    ]
    batches = len({row[0] for row in rows})
    changes = sorted(_changes(summary, details), key=lambda change: change.entry)
    outcomes = [(f"Entry {c.entry}", c.kind, said) for c in changes if (said := _unlike(c))]
    files = len(outcomes)
    rows += outcomes
    if not rows:
        text = "No batch is unlike earlier applicants, and no outcomes are unlike expected."
        return Section("data", "Data checks", text, [text])
    brief = (
        f"{counted(batches, 'batch is', 'batches are')} unlike earlier applicants, and "
        f"{counted(files, 'file of outcomes is', 'files of outcomes are')} unlike expected."
    )
    note = "Promises and estimates are about applicants like those before."
    table = PageTable("Differences", note, ["Where", "Batch", "Difference"], rows, prose=[2])
    return Section("data", "Data checks", brief, [table])


def events_section(summary: Summary, details: Details, most: int = _MOST_EVENTS) -> Section:
    """Return what happened, the newest first: rounds, certificates, and changes by people."""
    rows: list[tuple[int, Sequence[str]]] = []
    for row in summary.rounds:
        said = _round_event(row)
        cells = _event_cells("round", row.entry, row.n_people, row.at, row.by, said)
        rows.append((row.entry, cells))
    for c in _changes(summary, details):
        said = _event(c, summary) if c.kind == "certificate" else _content(c)
        rows.append((c.entry, _event_cells(c.kind, c.entry, c.n, c.at, c.by, said)))
    if not rows:
        return Section("events", "Events")
    rows.sort(key=lambda row: row[0], reverse=True)
    shown = [cells for _, cells in rows[:most]]
    now = (
        f"{counted(summary.total('n_overridden'), 'decision is', 'decisions are')} overridden now, "
        f"{counted(summary.n_erased, 'person is', 'people are')} erased, "
        f"{counted(summary.n_held, 'person is', 'people are')} held."
    )
    note = "The newest first."
    if len(rows) > len(shown):
        note += f" Earlier ones are not shown: {len(rows) - len(shown):,}."
    titles = ["Entry", "What", "People", "When", "By", "Content"]
    last = shown[0]
    brief = f"The last on {last[3]}: {last[1] if last[5] == '–' else last[5]}."
    return Section(
        "events", "Events", brief, [now, PageTable("Events", note, titles, shown, prose=[5])]
    )


def _changes(summary: Summary, details: Details) -> Iterator[RecordedChange]:
    yield from (*summary.changes, *details.outcomes)


def _unlike(change: RecordedChange) -> str:
    """Say in what the outcomes of an entry are unlike expected; empty if they are not."""
    found = change.says.get("unlike_expected")
    return "" if found is None else unlike_expected_words(UnlikeExpected(**found))


def _event_cells(what: str, entry: int, n: int, at: str, by: str, said: str) -> list[str]:
    return [f"{entry}", what, f"{n:,}" if n else "–", date(at, time=True), by or "–", said]


def _round_event(row: RoundSummary) -> str:
    return f"Round {row.round}: {row.n_accepted:,} accepted, {status_word(row)}"


def _content(change: RecordedChange) -> str:
    """Return the content of an entry, the reason first."""
    says = change.says
    parts = [str(says["reason"])] if "reason" in says else []
    if says.get("n_early", 0):
        months = says.get("retention_months", MONTHS)
        parts.append(f"{says['n_early']:,} before {months} months were over")
    parts += [f"decision now: {says['stands']}"] if "stands" in says else []
    parts += [ramp_words(says["ramp"])] if "ramp" in says else []
    parts += [f"made {says['made_at']}, {says['where']}"] if "made_at" in says else []
    parts += [f"{way} {says[way]}" for way in ("to", "from") if way in says]
    parts += filter(None, [_unlike(change)])
    return "; ".join(parts) or "–"


def _reasons(rejections: Rejections, sentences: dict[str, dict[str, str]]) -> Section:
    if not rejections.n:
        return Section("reasons", "Reasons of rejections")
    shown = rejections.reasons[:_MOST_REASONS]
    codes = {name: f" ({one['code']})" for name, one in sentences.items()}
    rows = [
        (
            f"{r.name}{codes.get(r.name, '')}",
            f"{r.n:,}",
            percent(r.n / rejections.n),
            f"{r.n_first:,}",
        )
        for r in shown
    ]
    hidden = len(rejections.reasons) - len(rows)
    note = (
        f"For {people(rejections.n)} rejected by the program and not erased: columns that lowered "
        f"the score, at most four for each; {rejections.n_without:,} have none."
        + (f" Columns not shown: {hidden:,}." if hidden else "")
    )
    table = PageTable("Columns", note, ["Column", "People", "Share", "As the first reason"], rows)
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


# Settings


def settings_section(summary: Summary, details: Details) -> Section:
    """Return the settings of a program, by name."""
    rows = [(name, value) for name, value in _setting_rows(summary, details) if value]
    table = PageTable("Settings", "They never change.", ["Setting", "Value"], rows, prose=[1])
    alpha, delta = summary.promise.alpha, summary.promise.delta
    bound = "No bound" if alpha is None else f"At most {percent(alpha)} mistakes"
    sure = "" if delta is None else f", with {percent(1 - delta)} confidence once certified"
    return Section("settings", "Settings", f"{bound}{sure}.", [table])


def _setting_rows(summary: Summary, details: Details) -> Iterator[tuple[str, str]]:
    says, about = details.says, summary.about
    yield "started", f"{date(details.at, time=True)} by {details.by}"
    yield "version", str(says.get("fairchance", ""))
    yield "method", summary.classifier
    yield "settings", summary.promise.problem
    yield "history", people(summary.n_history)
    yield "features", _features(says)
    names = says.get("group_names") or ["one without a name"]
    yield "protected attributes", ", ".join(map(str, names)) if says.get("has_groups") else "none"
    labels = about.get("outcomes") or {state: [says[state]] for state in ("good", "bad")}
    for state in ("good", "bad"):
        yield f"{state} outcomes", ", ".join(map(Labels.canonical, labels[state]))
    yield "withdrawn outcomes", ", ".join(labels.get("withdrawn", ()))
    yield "loans not taken", ", ".join(labels.get("not_taken", ()))
    yield "recorded as not taken within", about.get("not_taken_within", "")
    yield "first ramp", percent(about["ramp"]) if about.get("ramp", 1) < 1 else ""
    yield "columns that may be empty", ", ".join(about.get("missing") or ())
    yield "values that mean missing", ", ".join(about.get("missing_values") or ())
    yield "currency", summary.currency
    yield "personal data is kept for", f"{retention_months(about)} months"
    for name, value in summary.promise.settings.items():
        if name not in _SECRET and value is not None:
            yield name, " ".join(str(value).split())


def _features(says: dict[str, Any]) -> str:
    columns = says.get("columns") or {}
    kinds = {name: kind for kind in ("text", "date") for name in columns.get(f"{kind}s", ())}
    if columns.get("names") is None:
        return f"{len((says.get('reference') or {}).get('names', ()))} columns without names"
    return ", ".join(f"{n} ({kinds[n]})" if n in kinds else str(n) for n in columns["names"])
