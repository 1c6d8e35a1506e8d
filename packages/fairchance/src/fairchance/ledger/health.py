"""The health of a program: questions about its record, each answered with a light and a sentence.

Rates and their intervals are those of ``audit.rates``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fairchance.audit.rates import anytime_interval
from fairchance.core.decisions import CertifiedRound, Round
from fairchance.ledger.outcomes import UnlikeExpected
from fairchance.ledger.records import AnyRound
from fairchance.ledger.summary import (
    GroupSummary,
    Outcomes,
    Summary,
    far_fewer,
)
from fairchance.people.likeness import Unlike
from fairchance.words import LIGHTS, counted, days, people, percent, share, times
from fairchance.words.batches import unlike_expected_words, unlike_words
from fairchance.words.rounds import needed, note_text, restarted, sentence, waiting

__all__ = ["PILOT_ADVICE", "TINY", "Check", "check_health"]
__all__ += ["verdict"]

PILOT_ADVICE = (
    "Go on deciding and observe outcomes as they arrive. If an outcome will never be known, "
    "withdraw the applicant, which counts as bad. α and δ are fixed: other values need a new "
    "program (fairchance init)."
)

_ERROR = 0.05  # of all intervals of a program, at all times together
_FOUR_FIFTHS = 0.8
_ENOUGH = 20  # applicants or outcomes before an estimate alone makes a light amber
_MOST = 0.5  # of the explored
_LEAST_SHARE = 0.02  # of all applicants, for a group that others are compared with
_MISSING = 0.1  # late outcomes among the accepted of a group: more may hide mistakes
_RECENT = 3  # rounds
_HARDLY = 0.05  # of a batch with such a chance as the next line says
_TO_EXPLORE = "find out why some applicants are hardly explored"
TINY = 1e-4  # a chance that hardly any batch turns into an acceptance


@dataclass(frozen=True)
class Check:
    """One question about a program.

    Attributes
    ----------
    question, group
        What is asked, and of which group; an empty group means all applicants.
    light
        ``"red"`` if the whole interval is on the wrong side of the bound, ``"amber"`` if the
        estimate is or if a user should look for another reason, and ``"green"`` otherwise.
    value, low, high, bound
        The estimate, its interval at all times, and the bound; NaN if there is none.
    finding, meaning
        What was found, and what it means and what to do, as sentences.
    to_do
        What to do unless the light is green, as a short imperative phrase; the report lists the
        phrases of the worst checks. May be empty.
    """

    question: str
    group: str
    light: str
    finding: str
    meaning: str = ""
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    bound: float = math.nan
    to_do: str = ""

    def __str__(self) -> str:
        """Return the light and both sentences."""
        return f"{self.light.upper()}: {self.finding} {self.meaning}".strip()


def verdict(checks: Sequence[Check]) -> str:
    """Return the worst check and the number of each light, as a line.

    Examples
    --------
    >>> verdict([Check("mistakes", "", "green", "All applicants: 5 % are bad.")])
    'GREEN: Nothing needs attention (1 check).'
    """
    worst = min(checks, key=lambda check: LIGHTS.index(check.light), default=None)
    if worst is None or worst.light == "green":
        return f"GREEN: Nothing needs attention ({counted(len(checks), 'check')})."
    lights = Counter(check.light for check in checks)
    counts = ", ".join(f"{lights[light]:,} {light}" for light in LIGHTS)
    return f"{worst.light.upper()}: {worst.finding} ({counts})"


def check_health(summary: Summary, late: float = 180.0) -> list[Check]:
    """Return the answers to all questions about a program, the worst first.

    Parameters
    ----------
    summary
        The program.
    late
        Days after which a pending outcome is late.
    """
    named = [group for group in summary.groups if group.group is not None]
    rates = _Rates(_ERROR / (3 + 3 * len(named)))
    checks = [
        *_mistakes(summary, named, rates),
        *_compared(named, rates),
        *_unselective(summary),
        *_unexplored(summary),
        *_chances(summary),
        *_weights(summary),
        *_past_policy(summary),
        *_dropped(summary),
        *_held_up(summary),
        *_unlike(summary),
        *_late(summary, named, late),
        *_unpromised(summary),
        *_expired(summary),
    ]
    return sorted(checks, key=lambda check: LIGHTS.index(check.light))


@dataclass(frozen=True)
class _Rate:
    """A rate with its interval."""

    n: int
    value: float
    low: float
    high: float

    @property
    def interval(self) -> str:
        return f"{percent(self.low)} to {percent(self.high)}"


@dataclass(frozen=True)
class _Rates:
    """Makes rates; each interval is ever wrong with probability ``error``."""

    error: float

    def of(self, count: int, n: int) -> _Rate:
        if not n:
            return _Rate(0, math.nan, 0.0, 1.0)
        return _Rate(n, count / n, *anytime_interval(count, n, self.error))


def _name(group: GroupSummary) -> str:
    return f"{group.attribute} {group.group}"


# Mistakes


def _mistakes(summary: Summary, groups: Sequence[GroupSummary], rates: _Rates) -> Iterator[Check]:
    """Compare the share of bad outcomes with α: of all, of certified rounds, of each group."""
    alpha = summary.promise.alpha
    if alpha is None or not summary.rounds:
        return
    certified = Outcomes.sum(row.outcomes for row in summary.rounds if row.certified)
    yield _bad(rates, alpha, "mistakes", "", "All applicants", summary.outcomes)
    if certified.known:
        yield _bad(rates, alpha, "mistakes of certified rounds", "", "Certified rounds", certified)
    for group in groups:
        if group.n_accepted:
            yield _bad(rates, alpha, "mistakes", _name(group), _name(group), group.outcomes)
    if summary.explored.known:
        yield _explored(summary.explored, rates)


def _explored(outcomes: Outcomes, rates: _Rates) -> Check:
    """Say how many explored applicants are bad; the budget allows for it, so α is no bound."""
    rate = rates.of(outcomes.bad, outcomes.known)
    finding = (
        f"Explored applicants: {percent(rate.value)} of "
        f"{counted(rate.n, 'known outcome is', 'known outcomes are')} bad (interval "
        f"{rate.interval}); α is about all accepted applicants together."
    )
    light, meaning = "green", ""
    if rate.value > _MOST and rate.n >= _ENOUGH:
        light = "amber"
        meaning = (
            "Most explored applicants turn out bad. If that costs too much, a new program can "
            "explore by score (strategy = 'score-weighted') or limit the risk ([limits])."
        )
    values = (rate.value, rate.low, rate.high, _MOST)
    question, to_do = "mistakes of the explored", "watch the next outcomes"
    return Check(question, "", light, finding, meaning, *values, to_do)


def _bad(
    rates: _Rates, alpha: float, question: str, group: str, subject: str, outcomes: Outcomes
) -> Check:
    """Compare the share of bad among known outcomes with α."""
    rate = rates.of(outcomes.bad, outcomes.known)
    values = (rate.value, rate.low, rate.high, alpha)
    if not outcomes.known:
        light = "amber" if not group or outcomes.accepted >= _ENOUGH else "green"
        none, to_do = f"{subject}: no outcome is known yet.", "observe outcomes as they arrive"
        meaning = "Observe outcomes as they arrive."
        return Check(question, group, light, none, meaning, *values, to_do)
    above = rate.value > alpha
    known = counted(rate.n, "known outcome is", "known outcomes are")
    finding = (
        f"{subject}: {percent(rate.value)} of {known} bad, {'above' if above else 'within'} "
        f"α = {percent(alpha)} (interval {rate.interval})."
    )
    if rate.low > alpha:
        meaning = "Chance does not explain it. "
        if group:
            meaning += (
                "α bounds all applicants together. A certified program whose groups may decide "
                "(group_mode = 'aware', certify = 'per_group') bounds each group."
            )
            to_do = "find out why mistakes are more frequent in this group"
        else:
            meaning += "Find out what changed before you decide the next batch."
            to_do = "find out what changed before the next batch is decided"
        return Check(question, group, "red", finding, meaning, *values, to_do)
    if above and rate.n >= _ENOUGH:
        meaning = "The interval reaches below α, so it may be chance: watch the next outcomes."
        to_do = "watch the next outcomes"
        return Check(question, group, "amber", finding, meaning, *values, to_do)
    return Check(question, group, "green", finding, "", *values)


# Groups


def _compared(groups: Sequence[GroupSummary], rates: _Rates) -> Iterator[Check]:
    """Compare acceptance and exploration of each group with the group that has the highest rate."""
    for attribute in dict.fromkeys(group.attribute for group in groups):
        members = [group for group in groups if group.attribute == attribute]
        accepted = [rates.of(group.n_accepted, group.n_people) for group in members]
        for check in _ratios(members, accepted, "acceptance", "accepted"):
            meaning = to_do = ""
            if check.light == "red":
                meaning = (
                    "The whole interval is below four fifths, a common sign of disparate impact: "
                    "find out which columns cause it, and whether that is justified."
                )
                to_do = "find out why groups are accepted so differently, and if that is justified"
            elif check.light == "amber":
                meaning = "That is below four fifths, but the interval is not: watch it."
                to_do = "watch how often each group is accepted"
            yield replace(check, meaning=meaning, to_do=to_do)
        explored = [rates.of(group.n_explored, group.n_explorable) for group in members]
        for check in _ratios(members, explored, "exploration", "explored"):
            light = "amber" if check.light == "red" else "green"
            meaning = "Less is learned about this group; GroupShare gives each group its share."
            meaning = meaning if light == "amber" else ""
            yield replace(check, light=light, meaning=meaning, to_do=_TO_EXPLORE)


def _ratios(
    groups: Sequence[GroupSummary], rates: Sequence[_Rate], question: str, done: str
) -> Iterator[Check]:
    """Compare rates with the highest; its interval is for the largest of all true rates."""
    enough = max(_ENOUGH, _LEAST_SHARE * sum(rate.n for rate in rates))
    large = [at for at, rate in enumerate(rates) if rate.n >= enough]
    top = max(large, key=lambda at: rates[at].value, default=None)
    if top is None or not rates[top].value:
        return
    most_low, most_high = max(rates[at].low for at in large), max(rates[at].high for at in large)
    for at, (group, rate) in enumerate(zip(groups, rates, strict=True)):
        if at == top or not rate.n:
            continue
        ratio = rate.value / rates[top].value
        low = rate.low / most_high
        high = rate.high / most_low if most_low else math.inf
        light = "green"
        if high < _FOUR_FIFTHS:
            light = "red"
        elif ratio < _FOUR_FIFTHS and rate.n >= _ENOUGH:
            light = "amber"
        finding = (
            f"{_name(group)}: {done} at {ratio:.2f} of the rate of {_name(groups[top])} "
            f"({percent(rate.value)} against {percent(rates[top].value)}; interval of the ratio "
            f"{low:.2f} to {high:.2f})."
        )
        values = (ratio, low, high, _FOUR_FIFTHS)
        yield Check(question, _name(group), light, finding, "", *values)


# Selection and exploration


def _unselective(summary: Summary) -> Iterator[Check]:
    """Warn if no applicant or every applicant was accepted, or if the last round changed much."""
    if not summary.rounds:
        return
    *earlier, last = summary.rounds
    accepted = sum(row.n_accepted for row in earlier)
    applied = sum(row.n_people for row in earlier)
    n = applied + last.n_people
    finding = meaning = ""
    if not last.n_accepted and not accepted:
        finding = f"None of {counted(n, 'applicant')} was accepted so far."
        meaning = "No outcome will be known, so nothing can be learned."
    elif summary.accepts_everybody:
        usual = summary.history.accepted / summary.n_history
        finding = f"All {n:,} applicants were accepted so far, and in the history {share(usual)}."
        meaning = "Look for columns with a changed unit or meaning, unless that many are good."
    elif applied:
        usual, taken = accepted / applied, last.n_accepted
        if far_fewer(taken, last.n_people, usual) or far_fewer(
            last.n_people - taken, last.n_people, 1 - usual
        ):
            finding = (
                f"The last round accepted {taken:,} of {counted(last.n_people, 'applicant')}, and "
                f"earlier rounds {share(usual)}."
            )
            meaning = (
                "Before the decisions are sent out, look in its file for columns with a changed "
                "unit or meaning."
            )
    if finding:
        to_do = "look for columns with a changed unit or meaning"
        yield Check("selection", "", "amber", finding, meaning, to_do=to_do)


def _unexplored(summary: Summary) -> Iterator[Check]:
    """Warn if rounds explored none of those they did not accept, or left their budget unused."""
    if not summary.rounds:
        return
    could = [
        row.n_people
        - (sum(r.n_exploit_region for r in row.records if isinstance(r, Round)) or row.n_exploited)
        for row in summary.rounds
    ]
    none = [not row.n_explored and row.n_accepted < row.n_people for row in summary.rounds]
    streak = next((k for k, missed in enumerate(reversed(none)) if not missed), len(none))
    last = summary.rounds[-1]
    unused = streak > 0 and last.budget >= 1 and could[-1] > 0
    if streak < _RECENT and not unused:
        return
    room = ""
    if unused:
        room = f", although its budget allowed {last.budget:,.0f} of {could[-1]:,}"
    finding = f"The last round explored no applicant{room}."
    if streak > 1:
        finding = (
            f"No applicant was explored in the last {streak} rounds ({sum(none)} of {len(none)} "
            f"rounds){room.replace('its', 'the last')}."
        )
    notes = " ".join(note_text(note) for one in last.records for note in one.notes)
    if not could[-1]:
        notes = (
            "All of the last round are in the exploit region: the program counts applicants like "
            f"them as known, and those it rejects there have no chance. {notes}"
        )
    meaning = f"The program learns nothing about the applicants it rejects. {notes}".strip()
    yield Check("exploration", "", "amber", finding, meaning, to_do=_TO_EXPLORE)


def _chances(summary: Summary) -> Iterator[Check]:
    """Say how small the chances outside the exploit region were in the last round."""
    last = summary.rounds[-1] if summary.rounds else None
    if last is None or math.isnan(last.least_chance):
        return
    least = f"{percent(last.least_chance)}"
    values = (last.least_chance, math.nan, math.nan, TINY)
    finding = (
        f"In the last round every applicant who could be explored had a chance of at least {least}."
    )
    meaning = ""
    if last.n_hardly:
        finding = (
            f"{last.n_hardly:,} of {counted(last.n_people, 'applicant')} of the last round had a "
            f"chance below {percent(TINY)}, the least {least}."
        )
        meaning = (
            "Hardly any of them will ever be accepted, so nothing is learned about applicants like "
            "them; in a new program, a floor or strategy = 'uniform' raises the chance."
        )
    light = "amber" if last.n_hardly > _HARDLY * last.n_people else "green"
    to_do = "consider a program with a floor, in which every applicant has a chance"
    yield Check("chance", "", light, finding, meaning, *values, to_do)


def _weights(summary: Summary) -> Iterator[Check]:
    """Say what the weights of the outcomes behind the last thresholds were, and what the cap did.

    Only Algorithm 1 weights outcomes.
    """
    records = summary.rounds[-1].records if summary.rounds else ()
    for record in records:
        if not isinstance(record, Round) or not (record.capped_share and record.n_outcomes):
            continue
        finding = (
            f"The thresholds of the last round rest on {counted(record.n_outcomes, 'outcome')}, "
            f"worth {record.effective_sample_size:,.0f} of equal weight; the cap lowered the "
            f"weight of {percent(record.capped_share)} of them. Estimated FDR "
            f"{percent(record.estimated_fdr)}, and {percent(record.uncapped_fdr)} without the cap."
        )
        yield Check("weights", "", "green", finding, value=record.capped_share)


def _past_policy(summary: Summary) -> Iterator[Check]:
    """Say whether f_0 kept α: by the history, and by the round that followed f_0.

    Algorithm 1 assumes that it did. A history can be selected by its outcomes, so round 1 is the
    honest estimate once its outcomes are known.
    """
    alpha, past = summary.promise.alpha, summary.history
    if alpha is None or summary.promise.budget is None or not past.known:
        return
    low, high = past.interval
    finding = (
        f"The past accepted {percent(past.accepted / summary.n_history)} of the history, and "
        f"{percent(past.fdr)} of {counted(past.known, 'known outcome is', 'known outcomes are')} "
        f"bad (exact interval {percent(low)} to {percent(high)}; α = {percent(alpha)})."
    )
    values, light, meaning = (past.fdr, low, high, alpha), "green", ""
    first = summary.rounds[0] if summary.rounds else None
    if (
        first is not None
        and any(isinstance(one, Round) and one.follows for one in first.records)
        and first.outcomes.known
    ):
        own = first.outcomes
        low, high = own.interval
        values = (own.fdr, low, high, alpha)
        finding += (
            f" Round 1, which followed the past policy, accepted "
            f"{percent(first.n_accepted / first.n_people)}, and {percent(own.fdr)} of "
            f"{counted(own.known, 'known outcome is', 'known outcomes are')} bad (exact interval "
            f"{percent(low)} to {percent(high)})."
        )
        meaning = (
            "Outcomes of round 1 are the better estimate, since a history may be selected by its "
            "outcomes."
        )
    if values[1] > alpha:
        light = "amber"
        meaning = f"{meaning} The past policy did not keep α, which the theory assumes.".strip()
    to_do = "do not rely on the history"
    yield Check("past policy", "", light, finding, meaning, *values, to_do)


# The certificate


def _dropped(summary: Summary) -> Iterator[Check]:
    """Warn that certificates were dropped and no round was certified since."""
    dropped = [change for change in summary.changes if change.says.get("what") == "dropped"]
    certified = max((row.entry for row in summary.rounds if row.certified), default=0)
    if not dropped or dropped[-1].entry < certified:
        return
    last = dropped[-1]
    reason = "a correction" if last.says["why"] == "correction" else str(last.says["why"])
    yield Check(
        "certificate",
        "",
        "amber",
        f"Certificates were dropped {times(len(dropped))}, last after round {last.says['round']} "
        f"by {reason} (entry {last.entry}), and testing began again.",
        "Rounds are pilots until there is new evidence.",
        to_do="go on deciding and observing until there is new evidence",
    )


def _unpromised(summary: Summary) -> Iterator[Check]:
    """Warn that the last round promises nothing, or that settings could not be read."""
    if summary.promise.problem:
        yield Check(
            "record",
            "",
            "amber",
            "The stored settings could not be read, so nothing is compared with α.",
            f"{summary.promise.problem[:1].upper()}{summary.promise.problem[1:]}",
            to_do="name the classes of its classifier with --trusted",
        )
    to_do = "go on deciding, and observe outcomes"
    if not summary.rounds:
        yield Check("promise", "", "amber", "No batch has been decided yet.", to_do=to_do)
        return
    last, n = summary.rounds[-1], len(summary.rounds)
    pilots = sum(any(map(_is_pilot, row.certificates)) for row in summary.rounds)
    uncalibrated = sum(any(map(_is_uncalibrated, row.records)) for row in summary.rounds)
    pilot = next(filter(_is_pilot, last.certificates), None)
    if pilot is not None:
        waits = [text for held_up, text in _waiting(summary) if not held_up]
        clauses = (restarted(pilot), needed(pilot))
        parts = (*waits, *map(sentence, clauses), *_observed_since(summary), PILOT_ADVICE)
        first = f"The last round was a pilot and carries no promise ({pilots} of {n} were)."
        meaning = " ".join(part for part in parts if part)
        yield Check("promise", "", "amber", first, meaning, to_do=to_do)
    if any(map(_is_uncalibrated, last.records)):
        yield Check(
            "promise",
            "",
            "amber",
            f"The last round rests on the history and not on outcomes of the program's own "
            f"decisions ({uncalibrated} of {n} do).",
            "Do not trust its estimates until outcomes are observed.",
            to_do=to_do,
        )


def _is_pilot(record: CertifiedRound) -> bool:
    return record.status == "pilot"


def _is_uncalibrated(record: AnyRound) -> bool:
    return isinstance(record, Round) and not record.calibrated


def _waiting(summary: Summary) -> Iterator[tuple[bool, str]]:
    """Say what the tests of each certificate wait for, and whether that holds up others."""
    for record in summary.rounds[-1].certificates if summary.rounds else ():
        next_in = summary.next_tested(record.group)
        if next_in is None:
            continue
        # The engine's own answer: a summary does not know when the last round entered the tests.
        missed = {"group": record.group, "round": next_in.oldest}
        held_up = missed in summary.rounds[-1].held_up
        if held_up or _is_pilot(record):
            start = "" if record.group is None else f"for {record.group}, "
            yield held_up, sentence(f"{start}{waiting(next_in)}")


def _held_up(summary: Summary) -> Iterator[Check]:
    """Warn that missing outcomes of an old round keep later rounds out of the tests."""
    for held_up, finding in _waiting(summary):
        if held_up:
            yield Check(
                "tests",
                "",
                "amber",
                finding,
                "Observe them, or withdraw the applicants, who then count as bad; a program that "
                "starts with a patience does not wait.",
                to_do="observe the outcomes that hold up the tests",
            )


def _observed_since(summary: Summary) -> Iterator[str]:
    """Say that outcomes were observed or corrected after a pilot stated its evidence."""
    last = summary.rounds[-1]
    known = sum(record.n_outcomes for record in last.records)
    if summary.outcomes.known > known and last.certificates:
        yield (
            f"These figures are from when round {last.round} was decided; the next batch counts "
            f"the outcomes observed since."
        )
    n = sum(
        change.n
        for change in summary.changes
        if change.kind == "correction" and change.entry > last.entry
    )
    if n and last.certificates:
        were = counted(n, "outcome was", "outcomes were")
        yield (
            f"Since that round {were} corrected: if it had been tested, testing begins again with "
            f"the next round, and earlier evidence does not count."
        )


# Batches, outcomes and data


def _unlike(summary: Summary) -> Iterator[Check]:
    """Repeat what was recorded about recent batches and outcomes that are unlike earlier ones."""
    to_do = "compare the files with their source"
    for row in summary.rounds[-_RECENT:]:
        if row.unlike:
            anyway = ", decided anyway" if any(one["stops"] for one in row.unlike) else ""
            columns = " ".join(unlike_words(Unlike(**one)) for one in row.unlike[:_RECENT])
            more = len(row.unlike) - _RECENT
            yield Check(
                "likeness",
                "",
                "amber",
                f"Batch {row.batch!r} (round {row.round}, entry {row.entry}{anyway}): {columns}"
                + (f" And {counted(more, 'more column')}." if more > 0 else ""),
                "Promises and estimates are about applicants like those before.",
                to_do=to_do,
            )
    for number, unlike in summary.unlike_outcomes.items():
        yield Check(
            "likeness",
            "",
            "amber",
            f"Outcomes of entry {number}: {unlike_expected_words(UnlikeExpected(**unlike))}",
            "Compare the file with its source.",
            to_do=to_do,
        )


def _late(summary: Summary, groups: Sequence[GroupSummary], late: float) -> Iterator[Check]:
    """Count outcomes that are late: of all applicants, and of groups that miss many."""
    waiting, to_do = summary.waiting(late), "observe the outcomes that are late"
    if waiting.n:
        have = counted(waiting.n, "accepted applicant has", "accepted applicants have")
        yield Check(
            "pending",
            "",
            "amber",
            f"{have} waited for an outcome for {late:g} days or longer, the oldest for "
            f"{days(waiting.oldest)}.",
            "Observe the outcomes that are known, and withdraw applicants whose outcome will never "
            "be known.",
            waiting.n / max(1, summary.outcomes.accepted + summary.overridden.accepted),
            bound=0.0,
            to_do=to_do,
        )
    old = [row.round for row in summary.rounds if row.age >= late]
    for group in groups:
        n = sum(group.pending.get(number, 0) for number in old)
        accepted = group.outcomes.accepted
        if not accepted:
            continue
        missing = n > _MISSING * accepted
        yield Check(
            "pending",
            _name(group),
            "amber" if missing else "green",
            f"{_name(group)}: {n:,} of {counted(accepted, 'accepted applicant')} without an "
            f"outcome for {late:g} days or longer.",
            "So many may hide mistakes in this group." if missing else "",
            n / accepted,
            bound=_MISSING,
            to_do=to_do,
        )


def _expired(summary: Summary) -> Iterator[Check]:
    if summary.n_expired:
        yield Check(
            "retention",
            "",
            "amber",
            f"The retention period is over for {people(summary.n_expired)}.",
            "Erase them, or hold those who must stay.",
            to_do="erase or hold applicants whose retention period is over",
        )
