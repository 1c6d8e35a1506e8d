"""The health of a program: questions about its record, each answered with a light and numbers.

A check is data; ``words.checks`` makes its sentences. Rates, their intervals and what they mean are
those of ``audit.rates``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from fairchance.audit.dispersion import LEVEL, dispersion
from fairchance.audit.draws import Tally
from fairchance.audit.rates import (
    ENOUGH,
    ERROR,
    FOUR_FIFTHS,
    Rate,
    compare_rates,
    judge,
    last_above,
    light_of,
)
from fairchance.core.decisions import TINY, CertifiedRound, Round
from fairchance.ledger.outcomes import UnlikeExpected
from fairchance.ledger.records import group_name
from fairchance.ledger.summary import (
    GroupSummary,
    NextTested,
    Outcomes,
    RoundSummary,
    Summary,
    far_fewer,
)
from fairchance.notebook import VIEWS, View
from fairchance.people.likeness import Unlike
from fairchance.words import LIGHTS, intervals_assume, percent
from fairchance.words.checks import check_text, rate_text, verdict
from fairchance.words.money import added_text, money_verdict
from fairchance.words.rounds import certificates_assume

__all__ = ["QUESTIONS", "Check", "check_health", "find_check", "worst_light"]

_MOST = 0.5  # of the explored
_MISSING = 0.1  # late outcomes among the accepted of a group: more may hide mistakes
_RECENT = 3  # rounds
# Explored applicants are not like others, so some difference in take-up is honest.
_OFTEN, _FAR_TOO_OFTEN = 1 / FOUR_FIFTHS, 2.0
_SOME_IDENTICAL = 0.01  # of applicants: fewer hardly move a test, and chance makes some
_GROUPS = 8  # in a notebook
_HARDLY = 0.05  # of a batch with a chance below ``TINY``
# Notes of a round that a user should know of.
_LIGHTS_OF_NOTES = {
    "incumbent_rejected": "red",
    "handover_waits": "amber",
    "patience_short": "amber",
    "none_in_sight": "amber",
    "population_changed": "amber",
}


@dataclass(frozen=True)
class Check:
    """One question about a program, and its answer.

    Attributes
    ----------
    question
        What is asked: ``"mistakes"``, ``"last rounds"`` and ``"certified rounds"`` (their
        mistakes), ``"acceptance"``, ``"exploration"``, ``"draws"``, ``"take-up"``,
        ``"certificate"``, ``"independence"`` (over rounds), ``"process"`` (the lender's own),
        ``"imports"`` (from policy files), ``"data"``, ``"pending"`` or ``"record"``.
    finding
        The answer, as a code.
    light
        ``"red"`` if chance cannot explain that a bound is broken, or if the program was moved to
        another ledger, ``"amber"`` if the estimate is on the wrong side or if a user should look
        for another reason, and ``"green"`` otherwise.
    group
        Of which group; empty for all applicants.
    value, low, high, bound
        The estimate, its interval at all times, and the bound; NaN if there is none.
    facts
        What else was found, by name.
    """

    question: str
    finding: str
    light: str
    group: str = ""
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    bound: float = math.nan
    facts: Mapping[str, Any] = field(default_factory=dict)


def check_health(summary: Summary, late: float = 180.0) -> list[Check]:
    """Return the answers to all questions about a program, the worst first.

    Parameters
    ----------
    summary
        The program.
    late
        Days after which a pending outcome is late.
    """
    checks = [check for ask in QUESTIONS for check in ask(summary)]
    checks += _pending(summary, late)
    return sorted(checks, key=lambda check: LIGHTS.index(check.light))


def worst_light(checks: Sequence[Check]) -> str:
    """Return the light of the worst check; green if there is none."""
    return min((check.light for check in checks), key=LIGHTS.index, default="green")


def find_check(checks: Sequence[Check], question: str, group: str = "") -> Check | None:
    """Return the first answer to a question, of all applicants or of a group."""
    return next((c for c in checks if (c.question, c.group) == (question, group)), None)


def _named(summary: Summary) -> list[GroupSummary]:
    return [group for group in summary.groups if group.group is not None]


def _moved(summary: Summary) -> Iterator[Check]:
    """Say that the program lives elsewhere, so that no answer is about now."""
    left = summary.moved
    if left is not None:
        facts = {"to": left.says["to"], "at": left.at, "by": left.by}
        yield Check("record", "moved", "red", facts=facts)


# Mistakes


def _mistakes(summary: Summary) -> Iterator[Check]:
    """Compare the share of bad outcomes with α: of all, of the last rounds, and of each group."""
    alpha = summary.promise.alpha
    if alpha is None or not summary.rounds:
        return
    whole = _bad("mistakes", "", summary.outcomes.mistakes(), alpha, summary.rounds)
    yield whole
    if whole.light != "red":
        yield from _last_rounds(summary.rounds, alpha)
    for group in _named(summary):
        if group.n_accepted:
            yield _bad("mistakes", group.name, group.mistakes, alpha, summary.rounds)


def _last_rounds(rounds: Sequence[RoundSummary], alpha: float) -> Iterator[Check]:
    """Name the last rounds if they are above α, which all rounds together may hide."""
    seen = [row.outcomes for row in rounds]
    found = last_above([(one.bad, one.known, one.taken - one.known) for one in seen], alpha)
    if found is not None and len(found[0]) < len(rounds):
        stretch, rate = found
        check = _bad("last rounds", "", rate, alpha, [rounds[at] for at in stretch])
        if check.light == "green":  # few outcomes, of which hardly one is good
            check = replace(check, finding="mistakes_above", light="amber")
        facts = {"first": rounds[stretch[0]].round, "last": rounds[stretch[-1]].round}
        yield replace(check, facts={**check.facts, **facts})


def _bad(
    question: str, group: str, rate: Rate, alpha: float, rounds: Sequence[RoundSummary]
) -> Check:
    """Compare the share of bad among known outcomes of some rounds with α."""
    judged, light = judge(rate, alpha), light_of(rate, alpha)
    finding = f"mistakes_{judged}"
    if judged == "open" and light == "amber":
        finding = "mistakes_contested" if rate.low > alpha else "mistakes_above"
    elif judged == "open" and rate.early and rate.value > alpha:
        finding = "mistakes_early"
    facts = {"bad": rate.count, "known": rate.n, "missing": rate.missing}
    facts |= {"rounds": len(rounds), "shadow": sum(not row.ramp for row in rounds)}
    return Check(question, finding, light, group, rate.value, rate.low, rate.high, alpha, facts)


# Acceptance


def _acceptance(summary: Summary) -> Iterator[Check]:
    """Compare groups with the group that is accepted most often, and rounds with earlier ones."""
    yield from _compared(summary, "acceptance", lambda group: group.acceptance)
    if not summary.rounds:
        return
    *earlier, last = summary.rounds
    accepted = sum(row.n_accepted for row in earlier)
    applied = sum(row.n_people for row in earlier)
    n, finding, usual = applied + last.n_people, "", math.nan
    if not last.n_accepted and not accepted:
        finding = "accepted_none"
    elif summary.accepts_everybody:
        finding, usual = "accepted_all", summary.history.accepted / summary.n_history
    elif applied:
        usual, taken = accepted / applied, last.n_accepted
        if far_fewer(taken, last.n_people, usual) or far_fewer(
            last.n_people - taken, last.n_people, 1 - usual
        ):
            finding = "acceptance_changed"
    if finding:
        facts = {"accepted": last.n_accepted, "of": last.n_people, "applied": n, "usual": usual}
        yield Check("acceptance", finding, "amber", facts=facts)


def _compared(
    summary: Summary, question: str, rate: Callable[[GroupSummary], Rate]
) -> Iterator[Check]:
    """Compare a rate of each group with the highest of its attribute.

    Applicants who stated no group are no group to compare with. Only if the interval of their ratio
    excludes equality, groups are called unequal.
    """
    groups = [group for group in _named(summary) if group.is_stated]
    for attribute in dict.fromkeys(group.attribute for group in groups):
        members = [group for group in groups if group.attribute == attribute]
        rates = [rate(group) for group in members]
        for found in compare_rates(rates):
            yield Check(
                question,
                f"{question}_{'unequal' if found.unequal else 'open'}",
                found.light,
                members[found.at].name,
                found.ratio,
                found.low,
                found.high,
                FOUR_FIFTHS,
                {
                    "rate": rates[found.at].value,
                    "reference": members[found.reference].name,
                    "reference_rate": rates[found.reference].value,
                },
            )


# Exploration


def _exploration(summary: Summary) -> Iterator[Check]:
    """Say whether the program learns about those whom it would reject, and at what cost."""
    if not summary.rounds:
        return
    last, found = summary.rounds[-1], [*_unexplored(summary)]
    rate = summary.explored.mistakes()
    explored = (rate.value, rate.low, rate.high, _MOST)
    facts = {"explored": summary.total("n_explored"), "least": last.least_chance}
    facts |= {"bad": rate.count, "known": rate.n}
    if rate.n >= ENOUGH and rate.value > _MOST:
        found.append(Check("exploration", "explored_bad", "amber", "", *explored, facts))
    if last.n_hardly > _HARDLY * last.n_people:
        of = {"n": last.n_hardly, "of": last.n_people, "chance": TINY, "least": last.least_chance}
        share = last.n_hardly / last.n_people
        found.append(
            Check("exploration", "hardly_explored", "amber", value=share, bound=_HARDLY, facts=of)
        )
    yield from found or [Check("exploration", "explored", "green", "", *explored, facts)]
    for check in _compared(summary, "exploration", lambda group: group.exploration):
        # A group that is explored less is not treated worse; less is learned about it.
        yield replace(check, light="amber" if check.light == "red" else "green")


def _unexplored(summary: Summary) -> Iterator[Check]:
    """Warn if rounds explored none of those they did not accept, or left their budget unused."""
    none = [
        row.ramp > 0 and not row.n_explored and row.n_accepted < row.n_people
        for row in summary.rounds
    ]
    streak = next((k for k, missed in enumerate(reversed(none)) if not missed), len(none))
    last = summary.rounds[-1]
    known = [one.n_exploit_region for one in last.records if isinstance(one, Round)]
    explorable = last.n_people - sum(known or [last.n_exploited])
    unused = streak > 0 and last.budget >= 1 and explorable > 0
    if streak >= _RECENT or unused:
        notes = [note for one in last.records for note in one.notes]
        facts = {"rounds": streak, "budget": last.budget, "explorable": explorable, "notes": notes}
        yield Check("exploration", "explored_none", "amber", facts=facts)


def _draws(summary: Summary) -> Iterator[Check]:
    """Compare how many were accepted with their chances, which callers must not choose from."""
    tallies = [Tally(row.n_accepted, row.expected, row.variance) for row in summary.rounds]
    found = sum(tallies, Tally())
    if found.variance > 0:
        p = found.p()
        finding, light = ("draws_off", "red") if p <= ERROR / 2 else ("draws_fair", "green")
        ratio, facts = found.count / found.expected, {"p": p, "expected": found.expected}
        facts |= {"accepted": found.count}
        yield Check("draws", finding, light, value=ratio, bound=1.0, facts=facts)


def _take_up(summary: Summary) -> Iterator[Check]:
    """Ask whether explored applicants are lost more often than others of their rounds."""
    n_explored, n_others = summary.total("n_explored"), summary.total("n_exploited")
    lost = [row.without_loan for row in summary.rounds]
    explored, others = (sum(one) for one in zip(*lost, strict=True)) if lost else (0, 0)
    if not (summary.lost.variance and explored + others):
        return
    p, ratio = summary.lost.p(only_more=True), _lost_as_often(summary, lost)
    finding, light = "take_up_alike", "green"
    if p <= ERROR / 2 and ratio > _OFTEN:
        finding, light = "explored_lost", "red" if ratio > _FAR_TOO_OFTEN else "amber"
    facts = {"p": p, "explored": n_explored, "others": n_others}
    facts |= {"explored_lost": explored, "others_lost": others}
    facts |= {"by_hand": n_explored - sum(row.explored.accepted for row in summary.rounds)}
    yield Check("take-up", finding, light, value=ratio, bound=_OFTEN, facts=facts)


def _lost_as_often(summary: Summary, lost: Sequence[tuple[int, int]]) -> float:
    """Return how many times as often the explored are lost, within rounds (Mantel and Haenszel)."""
    sizes = [(row.n_explored, row.n_exploited, row.n_accepted) for row in summary.rounds]
    both = [(*one, *n) for one, n in zip(lost, sizes, strict=True) if n[2]]
    more = math.fsum(explored * others / n for explored, _, _, others, n in both)
    than = math.fsum(lost * explored / n for _, lost, explored, _, n in both)
    return more / than if than else math.inf


# The certificate


def _certificate(summary: Summary) -> Iterator[Check]:
    """Say what the last round promises, and compare mistakes of certified rounds with α."""
    if not summary.rounds:
        yield Check("certificate", "undecided", "amber")
        return
    last, records = summary.rounds[-1], summary.ladders()
    run = [*takewhile(lambda row: row.certified == last.certified, reversed(summary.rounds))]
    n = sum(row.stands for row in summary.rounds)
    facts: dict[str, Any] = {"round": last.round, "since": run[-1].round, "n_certified": n}
    facts |= {"ramp": last.ramp}
    if not records:
        own = all(one.calibrated for one in last.records if isinstance(one, Round))
        finding, light = ("uncertified", "green") if own else ("uncalibrated", "amber")
        if last.status == "shadow":
            finding, light = "shadow", "green"
        yield Check("certificate", finding, light, facts=facts)
        return
    pilots = [group for group, rows in records.items() if rows[-1].status != "certified"]
    by_lender = last.status in ("shadow", "incumbent")
    facts |= {"groups": [*records], "pilots": pilots}
    facts |= {"needs": [_needs(group, records[group][-1]) for group in pilots or records]}
    facts |= {"outcomes_since": summary.outcomes_since}
    facts |= {"waits": [] if not pilots else [one for one, held in _waiting(summary) if not held]}
    since = [
        one.n for one in summary.changes if one.entry > last.entry and one.kind == "correction"
    ]
    facts |= {"n_corrected_since": sum(since)}
    finding = "certified" if not pilots else "pilot" if len(pilots) == len(records) else "in_part"
    finding = last.status if by_lender else finding
    dropped = _dropped(summary)
    if dropped:
        finding, facts = "dropped", facts | {"dropped": dropped}
        # What the last round needed was about the evidence that is gone.
        facts |= {"needs": []} if dropped["entry"] > last.entry else {}
    light = "amber" if (pilots and not by_lender) or dropped else "green"
    yield Check("certificate", finding, light, facts=facts)
    standing = [row for row in summary.rounds if row.stands]
    certified = Outcomes.sum(row.outcomes for row in standing)
    if certified.known and summary.promise.alpha is not None:
        alpha, rate = summary.promise.alpha, certified.mistakes()
        yield _bad("certified rounds", "", rate, alpha, standing)


def _needs(group: str | None, record: CertifiedRound) -> dict[str, Any]:
    """Return how much evidence the next certificate lacks."""
    return {
        "group": group,
        "more_outcomes": record.more_outcomes,
        "n_tested": record.next_n_tested,
        "tests_began": record.tests_began,
        "restart_reason": record.restart_reason,
    }


def _dropped(summary: Summary) -> dict[str, Any]:
    """Return how often certificates were dropped, and the last time; empty if one is new since."""
    dropped = [change for change in summary.changes if change.says.get("what") == "dropped"]
    certified = max((row.opened for row in summary.rounds if row.certified), default=0)
    if not dropped or dropped[-1].entry < certified:
        return {}
    last = dropped[-1]
    why, number = last.says["why"], last.says["round"]
    withdrawn = [row.round for row in summary.rounds if row.withdrawn]
    facts = {"times": len(dropped), "why": why, "round": number, "entry": last.entry}
    return facts | {"withdrawn": withdrawn}


def _waiting(summary: Summary) -> Iterator[tuple[NextTested, bool]]:
    """Yield what the tests of each certificate wait for, and whether that holds up others."""
    for record in summary.rounds[-1].certificates if summary.rounds else ():
        next_in = summary.next_tested(record.group)
        if next_in is not None:
            # The engine's own answer: a summary does not know when rounds entered the tests.
            missed = (str(record.group), next_in.oldest)
            held = [(str(_group(one["group"])), one["round"]) for one in summary.rounds[-1].held_up]
            yield next_in, missed in held


def _group(value: Any) -> Any:
    """Return a group as its record has it; JSON has lists for tuples."""
    return tuple(value) if isinstance(value, list) else value


def _independence(summary: Summary) -> Iterator[Check]:
    """Ask whether the share of bad varies over rounds of a policy more than the stated σ explains.

    Rounds with pending outcomes are left out: bad outcomes may be known later than good ones. If
    the last round suspects a change of the population, that is the answer.
    """
    changed = [check for check in _notes(summary) if check.question == "independence"]
    if changed:
        yield from changed
        return
    rows = [row for row in summary.rounds if row.certificates and not row.outcomes.pending]
    bad, known = ([getattr(row.outcomes, name) for row in rows] for name in ("bad", "known"))
    shock = summary.promise.shock
    found = dispersion(bad, known, [_policy(row) for row in rows], shock) if rows else None
    if found is not None:
        finding, light = ("rounds_alike", "green") if found.p >= LEVEL else ("rounds_vary", "amber")
        facts = {"rounds": found.n_rounds, "policies": found.n_policies, "p": found.p}
        sigma = found.shock, found.low, found.high
        yield Check("independence", finding, light, "", *sigma, shock, facts)


def _policy(row: RoundSummary) -> str:
    """Return what tells the policy of a round from others; a record names its ladder and rung."""
    return str(
        [
            (one.group, one.ramp, one.kind, one.tests_began, one.ladder, one.share)
            if one.ramp and one.kind != "incumbent"
            else one.group
            for one in row.certificates
        ]
    )


def _notes(summary: Summary) -> Iterator[Check]:
    """Yield what the last round notes about its population or the lender's own process."""
    for record in summary.rounds[-1].certificates if summary.rounds else ():
        for note in record.notes:
            if note.code in _LIGHTS_OF_NOTES:
                group = "" if record.group is None else group_name(record.group)
                question = "independence" if note.code == "population_changed" else "process"
                light, facts = _LIGHTS_OF_NOTES[note.code], dict(note.facts)
                if note.code == "incumbent_rejected":
                    now = summary.control
                    facts |= {"ramp": now.in_force, "paused": now.paused, "kind": record.kind}
                    follows = now.in_force < 1 or record.kind != "own"
                    light = "red" if follows else "amber"  # a bound that nobody relies on
                yield Check(question, note.code, light, group, facts=facts)


# The lender's own process


def _process(summary: Summary) -> Iterator[Check]:
    """Repeat what the last round says about today's policy, and warn of a pause."""
    yield from (check for check in _notes(summary) if check.question == "process")
    if summary.control.paused:
        yield Check("process", "paused", "amber")


def _imports(summary: Summary) -> Iterator[Check]:
    """Report decisions that a policy made after its round, since the last rounds."""
    since = summary.rounds[-_RECENT:][0].entry if summary.rounds else 0
    late = [
        one.says | {"n": one.n}
        for one in summary.changes
        if one.kind == "import" and one.entry > since and one.says["after_close"] is not False
    ]
    if late:
        facts = {name: sum(one[name] for one in late) for name in ("n", "explored")}
        rounds = sorted({one["round"] for one in late})
        sure = all(one["after_close"] for one in late)
        facts = {**facts, "rounds": rounds, "sure": sure}
        yield Check("imports", "made_after_close", "amber", facts=facts)


# Outcomes and data


def _data(summary: Summary) -> Iterator[Check]:
    """Report applicants and outcomes that are unlike earlier ones, also in an open round."""
    for row in summary.rounds[-_RECENT:]:
        if row.unlike:
            found = [Unlike(**one) for one in row.unlike]
            facts = {"batch": row.batch, "round": row.round, "entry": row.entry, "unlike": found}
            yield Check("data", "unlike_batch", "amber", facts=facts)
    opened = summary.open_round
    if opened is not None and opened.unlike:
        found = [Unlike(**one) for one in opened.unlike]
        facts = {"batch": None, "round": opened.round, "entry": opened.entry, "unlike": found}
        yield Check("data", "unlike_batch", "amber", facts=facts)
    for number, unlike in summary.unlike_outcomes.items():
        facts = {"entry": number, "unlike": UnlikeExpected(**unlike)}
        yield Check("data", "unlike_outcomes", "amber", facts=facts)
    n = sum(row.n_identical for row in summary.rounds)
    of = sum(row.n_people for row in summary.rounds)
    if n > _SOME_IDENTICAL * of:
        yield Check("data", "identical_rows", "amber", facts={"n": n, "of": of})


def _pending(summary: Summary, late: float) -> Iterator[Check]:
    """Count outcomes that are late, of all and of groups, and name those that hold up tests."""
    waiting = summary.waiting(late)
    if waiting.n:
        share = waiting.n / max(1, summary.outcomes.accepted + summary.overridden.accepted)
        facts = {"n": waiting.n, "days": late, "oldest": waiting.oldest}
        yield Check("pending", "late", "amber", value=share, bound=0.0, facts=facts)
    old = [row.round for row in summary.rounds if row.age >= late]
    for group in _named(summary):
        n, of = sum(group.pending.get(number, 0) for number in old), group.outcomes.accepted
        if n:
            light = "amber" if n > _MISSING * of else "green"
            facts = {"n": n, "of": of, "days": late}
            yield Check(
                "pending", "late", light, group.name, value=n / of, bound=_MISSING, facts=facts
            )
    for next_in, held_up in _waiting(summary):
        if held_up:
            yield Check("pending", "held_up", "amber", facts={"waits": next_in})


def _record(summary: Summary) -> Iterator[Check]:
    """Warn that settings could not be read, or that retention periods are over."""
    if summary.promise.problem:
        facts: dict[str, Any] = {"message": summary.promise.problem}
        yield Check("record", "unreadable", "amber", facts=facts)
    if summary.n_expired:
        yield Check("record", "expired", "amber", facts={"n": summary.n_expired})


# A new question is a function here; without words of its own in ``words.checks``, its answers are
# shown with a plain sentence.
QUESTIONS: tuple[Callable[[Summary], Iterable[Check]], ...] = (
    _moved,
    _mistakes,
    _acceptance,
    _exploration,
    _draws,
    _take_up,
    _certificate,
    _independence,
    _process,
    _imports,
    _data,
    _record,
)


def _view(summary: Summary) -> View:
    """Return what a notebook shows of a program."""
    alpha, outcomes = summary.promise.alpha, summary.outcomes
    promise = "" if alpha is None else f"; at most {percent(alpha)} mistakes are allowed"
    rows = [
        ("applicants decided", f"{summary.total('n_people'):,}"),
        ("accepted", f"{summary.total('n_accepted'):,}"),
        ("of them explored", f"{summary.total('n_explored'):,}"),
        ("rounds", f"{len(summary.rounds):,}"),
        ("certified rounds", f"{sum(row.certified for row in summary.rounds):,}"),
        ("outcomes known", f"{outcomes.known:,}"),
        ("outcomes pending", f"{outcomes.pending:,}"),
        *([("not taken", f"{outcomes.not_taken:,}")] if outcomes.not_taken else []),
        ("mistakes", rate_text(outcomes.mistakes())),
    ]
    notes = [intervals_assume(summary.promise.shock)] if outcomes.known else []
    if summary.ladders():
        notes.append(certificates_assume(summary))
    if summary.money is not None:
        added = added_text(summary.money.whole, summary.currency)
        rows.append(("earned beyond today's policy", added))
        notes.append(money_verdict(summary.money, summary.currency))
    for group in _named(summary)[:_GROUPS]:
        rows.append((f"mistakes, {group.name}", rate_text(group.mistakes)))
        rows.append((f"accepted, {group.name}", rate_text(group.acceptance)))
    lead = f"Program {summary.program} ({summary.classifier}){promise}"
    checks = check_health(summary)
    others = [check_text(check) for check in checks[1:] if check.light != "green"]
    return View(lead, [verdict(checks), *others, *reversed(notes)], ("", "so far"), rows)


VIEWS["Summary"] = _view
