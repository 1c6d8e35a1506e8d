"""What the checks of a program's health are in words: the only place that writes these sentences.

A check has a code for what was found. A code that is not in ``WORDS`` gets a plain sentence with
its numbers, so that a new check is shown everywhere before anybody has written words for it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fairchance.words import (
    LIGHTS,
    counted,
    days,
    first_of,
    intervals_assume,
    moved,
    people,
    percent,
    percents,
    times,
)
from fairchance.words.batches import unlike_expected_words, unlike_words
from fairchance.words.rounds import (
    DO_NOT_WAIT,
    RECALL,
    after_close_words,
    began_again,
    needed,
    note_text,
    note_words,
    ramp_words,
    reason,
    sentence,
    span,
    waiting,
    withdrawn,
)

if TYPE_CHECKING:
    from fairchance.audit.rates import Rate
    from fairchance.ledger.health import Check
    from fairchance.ledger.summary import NextTested

__all__ = ["CAUTION", "WORDS", "CheckWords", "check_text", "check_words", "mistakes_so_far"]
__all__ += ["promise_word", "rate_text", "to_do", "verdict"]

CAUTION = (
    "Late outcomes are not a random part of all outcomes, so an interval describes only the "
    "outcomes known so far."
)
_TO_DO_OF_NOTES = {
    "handover_waits": "hand over to the certified policy (fairchance handover)",
    "patience_short": "start a program with a longer patience",
    "none_in_sight": "stop, find features that tell good from bad, or start a program with a "
    "larger α",
    "population_changed": "find out what changed; if outcomes stay as bad, certificates are "
    "dropped",
}
_SHOWN = 3  # columns of a batch in a sentence


class CheckWords(NamedTuple):
    """What was found, what it means, and what to do as a short imperative phrase."""

    finding: str
    meaning: str = ""
    to_do: str = ""


def check_words(check: Check) -> CheckWords:
    """Return the words of a check.

    Examples
    --------
    >>> from fairchance.ledger.health import Check
    >>> check_words(Check("stability", "scores_moved", "red", value=0.3, bound=0.1)).finding
    'stability: scores moved (0.3; bound 0.1).'
    """
    words = WORDS.get(check.finding)
    if words is not None:
        return words(check)
    numbers = "" if math.isnan(check.value) else f"{check.value:.3g}"
    numbers += "" if math.isnan(check.low) else f", interval {check.low:.3g} to {check.high:.3g}"
    numbers += "" if math.isnan(check.bound) else f"; bound {check.bound:.3g}"
    facts = ", ".join(f"{name} {value}" for name, value in check.facts.items())
    more = "; ".join(filter(None, (numbers, facts)))
    about = ", ".join(filter(None, (check.question, check.group)))
    found = check.finding.replace("_", " ")
    return CheckWords(f"{about}: {found}{f' ({more})' if more else ''}.")


def check_text(check: Check) -> str:
    """Return what was found and what it means, as sentences."""
    words = check_words(check)
    return f"{words.finding} {words.meaning}".strip()


def to_do(checks: Sequence[Check], most: int = 2) -> str:
    """Return what to do about the worst checks, as a sentence; empty if there is nothing to do."""
    found = [check_words(check).to_do for check in checks if check.light != "green"]
    phrases = [*dict.fromkeys(filter(None, found))][:most]
    return f"To do: {'; '.join(phrases)}." if phrases else ""


def verdict(checks: Sequence[Check]) -> str:
    """Return the worst check, a pause, what the last round promises, and how many of each light.

    Examples
    --------
    >>> from fairchance.ledger.health import Check
    >>> verdict([Check("certificate", "certified", "green", facts={"round": 7, "since": 4})])
    'GREEN: Nothing needs attention. Round 7 is certified, as all since round 4. (1 check)'
    """
    worst = min(checks, key=lambda check: LIGHTS.index(check.light), default=None)
    found = "Nothing needs attention."
    if worst is not None and worst.light != "green":
        found = check_words(worst).finding
    light = "green" if worst is None else worst.light
    also = [c for c in checks if c.finding == "paused" or c.question == "certificate"]
    said = [found, *(check_words(c).finding for c in also if light == "green" or c is not worst)]
    lights = Counter(check.light for check in checks)
    counts = ", ".join(f"{lights[name]:,} {name}" for name in LIGHTS)
    counts = counted(len(checks), "check") if light == "green" else counts
    return f"{light.upper()}: {' '.join(said)} ({counts})"


def rate_text(rate: Rate) -> str:
    """Write a rate with its interval.

    Examples
    --------
    >>> from fairchance.audit.rates import rate_of
    >>> rate_text(rate_of(60, 400)), rate_text(rate_of(0, 0))
    ('15 % (9.81 % to 21.4 %)', '–')
    """
    return f"{percent(rate.value)} ({percents((rate.low, rate.high))})" if rate.n else "–"


def mistakes_so_far(so_far: Mapping[str, Any]) -> str:
    """Return ``Summary.so_far`` as a sentence.

    Examples
    --------
    >>> so_far = {"alpha": None, "bad": 3, "known": 40, "pending": 9, "fdr": 0.075}
    >>> so_far |= {"withdrawn": 0, "not_taken": 0, "interval": (0.0074, 0.27), "shock": 0.0}
    >>> so_far |= {"early": False, "shadow": False}
    >>> so_far |= {"by_override": {"accepted": 0, "known": 0}}
    >>> print(mistakes_so_far(so_far))
    So far 3 of 40 known outcomes are bad: 7.5 % (0.74 % to 27 %); 9 are pending. Intervals assume
    of applicants that they are independent of each other, without a shock that a round's applicants
    share (shock = 0); those of recorded shares are about the rounds as they were, with their
    shocks.
    >>> so_far |= {"known": 0, "withdrawn": 2, "by_override": {"accepted": 2, "known": 1}}
    >>> mistakes_so_far(so_far)
    'So far no outcome is known; 9 are pending and 2 withdrawn. Not counted: 2 accepted
    with an override (1 known).'
    """
    message = "So far no outcome is known"
    if so_far["known"]:
        alpha = so_far["alpha"]
        message = (
            f"So far {so_far['bad']:,} of {so_far['known']:,} known outcomes are bad: "
            f"{percent(so_far['fdr'])} ({percents(so_far['interval'])})"
        )
        against = "too few to compare with" if so_far["early"] else "against"
        message += "" if alpha is None else f", {against} a bound of {percent(alpha)}"
    message += f"; {counted(so_far['pending'], 'is', 'are')} pending"
    message += f" and {so_far['withdrawn']:,} withdrawn" * (so_far["withdrawn"] > 0)
    message += f"; {so_far['not_taken']:,} not taken" * (so_far["not_taken"] > 0)
    message = f"{message}."
    message += " Today's process decided on all of them." if so_far["shadow"] else ""
    message += f" {intervals_assume(so_far['shock'])}" if so_far["known"] else ""
    by_hand = so_far["by_override"]
    if by_hand["accepted"]:
        message += (
            f" Not counted: {by_hand['accepted']:,} accepted with an override "
            f"({by_hand['known']:,} known)."
        )
    return message


# Mistakes


def _mistakes(check: Check) -> CheckWords:
    """Return how many known outcomes are bad, compared with α."""
    subject, known = _subject(check), check.facts["known"]
    if not known:
        observe = "observe outcomes as they arrive"
        return CheckWords(f"{subject}: no outcome is known yet.", sentence(observe), observe)
    if check.finding == "mistakes_early":
        is_known = counted(known + check.facts["missing"], "outcome is", "outcomes are")
        return CheckWords(
            f"{subject}: {known:,} of {is_known} known, too few to compare with "
            f"α = {percent(check.bound)}.",
            f"{counted(check.facts['bad'], 'is', 'are')} bad, and bad ones come before good ones.",
        )
    above = check.value > check.bound
    finding = (
        f"{subject}: {percent(check.value)} of "
        f"{counted(known, 'known outcome is', 'known outcomes are')} bad, "
        f"{'above' if above else 'within'} α = {percent(check.bound)} "
        f"({percents((check.low, check.high))})."
    )
    return CheckWords(finding, *_meaning_of_mistakes(check))


def _subject(check: Check) -> str:
    """Return whose mistakes were counted, and in how many rounds the lender decided on all."""
    subject = check.group or "All applicants"
    subject = "Certified rounds" if check.question == "certified rounds" else subject
    if check.question == "last rounds":
        subject = span(check.facts["first"], check.facts["last"]).capitalize()
    rounds, shadow = check.facts["rounds"], check.facts["shadow"]
    if not shadow:
        return subject
    of = "" if shadow == rounds else f" in {shadow:,} of {counted(rounds, 'round')}"
    return f"{subject} (decided by today's process{of})"


def _meaning_of_mistakes(check: Check) -> tuple[str, str]:
    watch = "watch the next outcomes"
    if check.finding == "mistakes_broken":
        return _broken(check)
    if check.finding == "mistakes_contested":
        return f"Chance does not explain it, but {_missing(check)} could change it.", watch
    if check.finding == "mistakes_above":
        return "It may be chance: watch the next outcomes.", watch
    if check.finding == "mistakes_open" and check.high <= check.bound:
        return f"It is open, as {_missing(check)} could change it.", ""
    return ("The bound is kept." if check.finding == "mistakes_kept" else ""), ""


def _broken(check: Check) -> tuple[str, str]:
    if check.facts["shadow"] == check.facts["rounds"]:
        return (
            "Today's process breaks the bound, and chance does not explain it; the program has "
            "decided on nobody.",
            "find out why mistakes are so frequent in the lender's own process",
        )
    if check.group:
        return (
            "The bound is broken in this group, and chance does not explain it; α bounds all "
            "applicants together, and each group only with certify = 'per-group', which needs "
            "another group_mode than 'blind'.",
            "find out why mistakes are more frequent in this group",
        )
    return (
        "The bound is broken, and chance does not explain it.",
        "find out what changed before the next batch is decided",
    )


def _missing(check: Check) -> str:
    return counted(
        check.facts["missing"],
        "outcome that is pending or will never be known",
        "outcomes that are pending or will never be known",
    )


# Acceptance and exploration


def _ratio(check: Check, done: str) -> str:
    rate, other = percent(check.facts["rate"]), percent(check.facts["reference_rate"])
    return (
        f"{check.group}: {done} at {check.value:.2f} of the rate of {check.facts['reference']} "
        f"({rate} against {other}; interval of the ratio {check.low:.2f} to {check.high:.2f})."
    )


def _acceptance(check: Check) -> CheckWords:
    finding = _ratio(check, "accepted")
    if check.light == "red":
        return CheckWords(
            finding,
            "The whole interval is below four fifths, a common sign of disparate impact.",
            "find out why groups are accepted so differently, and if that is justified",
        )
    if check.light == "amber":
        chance = "" if check.finding == "acceptance_unequal" else ", and it may be chance"
        meaning = f"That is below four fifths, but the interval is not{chance}: watch it."
        return CheckWords(finding, meaning, "watch how often each group is accepted")
    return CheckWords(finding)


def _explored_group(check: Check) -> CheckWords:
    finding = _ratio(check, "explored")
    if check.light == "green":
        return CheckWords(finding)
    meaning = "Less is learned about this group; GroupShare gives each group its share."
    return CheckWords(finding, meaning, "find out why a group is hardly explored")


def _selection(check: Check) -> CheckWords:
    facts, usual = check.facts, percent(check.facts["usual"])
    look = "look for columns with a changed unit or meaning"
    if check.finding == "accepted_none":
        none = f"None of {counted(facts['applied'], 'applicant')} was accepted so far."
        return CheckWords(none, "No outcome will be known, so nothing can be learned.", look)
    if check.finding == "accepted_all":
        finding = f"All {facts['applied']:,} applicants were accepted so far, and in the history "
        return CheckWords(f"{finding}{usual}.", sentence(look), look)
    finding = (
        f"The last round accepted {facts['accepted']:,} of {counted(facts['of'], 'applicant')}, "
        f"and earlier rounds {usual}."
    )
    return CheckWords(finding, f"Before the decisions are sent out, {look}.", look)


def _explored(check: Check) -> CheckWords:
    facts = check.facts
    finding = f"{people(facts['explored'])} explored so far"
    if facts["known"]:
        finding += (
            f", and {percent(check.value)} of "
            f"{counted(facts['known'], 'known outcome is', 'known outcomes are')} bad "
            f"({percents((check.low, check.high))}); α is about all accepted applicants together"
        )
    if check.light == "green":
        return CheckWords(f"{finding}.")
    meaning = (
        "Most explored applicants turn out bad. If that costs too much, a new program can "
        "explore by score (strategy = 'score-weighted') or limit the risk ([limits])."
    )
    return CheckWords(f"{finding}.", meaning, "watch the next outcomes")


def _explored_none(check: Check) -> CheckWords:
    facts = check.facts
    rounds = "round" if facts["rounds"] == 1 else f"{facts['rounds']} rounds"
    finding = f"No applicant was explored in the last {rounds}"
    if facts["budget"] >= 1 and facts["explorable"]:
        finding += (
            f", although the budget allowed {facts['budget']:,.0f} of {facts['explorable']:,}"
        )
    meaning = "The program learns nothing about the applicants it rejects."
    if not facts["explorable"]:
        meaning += " It counts all applicants of the last round as known."
    meaning = " ".join([meaning, *map(note_text, facts["notes"])])
    return CheckWords(f"{finding}.", meaning, "find out why nobody is explored")


def _hardly_explored(check: Check) -> CheckWords:
    facts = check.facts
    return CheckWords(
        f"{facts['n']:,} of {counted(facts['of'], 'applicant')} of the last round had a chance "
        f"below {percent(facts['chance'])}, the least {percent(facts['least'])}.",
        "Nothing is learned about applicants like them; in a new program, a floor or strategy = "
        "'uniform' raises the chance.",
        "consider a program with a floor, in which every applicant has a chance",
    )


def _draws(check: Check) -> CheckWords:
    facts = check.facts
    finding = (
        f"{counted(facts['accepted'], 'applicant was', 'applicants were')} accepted, and their "
        f"recorded chances let expect {facts['expected']:,.0f}."
    )
    if check.light == "green":
        return CheckWords(finding, "Chance explains the difference.")
    return CheckWords(
        finding,
        "Chance does not explain it: somebody may send applications again under new ids until they "
        "are accepted, or leave out those that are not.",
        "find out who chooses ids, and whether every application is sent once",
    )


def _take_up(check: Check) -> CheckWords:
    facts = check.facts
    finding = (
        f"{facts['explored_lost']:,} of {facts['explored']:,} explored applicants got no loan, "
        f"against {facts['others_lost']:,} of {facts['others']:,} others who were accepted"
    )
    if math.isfinite(check.value):
        finding += f" ({check.value:.2g} times as often within rounds)"
    if check.light == "green":
        return CheckWords(f"{finding}.")
    by_hand = facts["by_hand"]
    meaning = "Chance does not explain it; they did not take it, were withdrawn or rejected by hand"
    meaning += f" ({by_hand:,})." if by_hand else "."
    if check.light == "red":
        meaning += " If somebody drops them, certificates are false."
    return CheckWords(
        f"{finding}.",
        meaning,
        "find out whether explored applicants get the same offer as others",
    )


# The certificate


def promise_word(check: Check) -> str:
    """Return what the last round promises, in a word or two."""
    groups, pilots = check.facts.get("groups", ()), check.facts.get("pilots", ())
    if check.finding in ("uncertified", "uncalibrated"):
        return "no promise"
    if check.finding in ("shadow", "incumbent"):
        return check.finding
    if not pilots:
        return "no longer" if check.finding == "dropped" else "yes"
    if len(pilots) < len(groups):
        return f"{len(groups) - len(pilots)} of {len(groups)} groups"
    return "no longer" if check.facts["n_certified"] else "not yet"


def _certified(check: Check) -> CheckWords:
    facts = check.facts
    since = "" if facts["since"] == facts["round"] else f", as all since round {facts['since']}"
    finding = f"Round {facts['round']} is certified{since}."
    return CheckWords(finding, _needs(facts, certified=True))


def _needs(facts: Mapping[str, Any], *, certified: bool = False) -> str:
    """Return what the next certificates need; only if it can be counted, once one is certified."""
    sentences = []
    decided = facts["round"] if facts.get("outcomes_since") else None
    for need in facts.get("needs", ()):
        more, tested = need["more_outcomes"], need["n_tested"] > 0
        clause = needed(more, tested=tested, certified=certified, decided=decided)
        if not certified and "dropped" not in facts:  # which says it
            began = began_again(need["tests_began"], need["restart_reason"])
            clause = "; ".join(filter(None, (began, clause)))
        whom = "" if need["group"] is None else f"{need['group']}: "
        if clause:
            sentences.append(f"{whom}{clause}." if whom else sentence(clause))
    return " ".join(sentences[:2])


def _pilot(check: Check) -> CheckWords:
    facts = check.facts
    finding = f"Round {facts['round']} was a pilot and carries no promise."
    if check.finding == "in_part":
        whom = first_of([str(group) for group in facts["pilots"]])
        finding = f"Round {facts['round']} is certified, but not for {whom}."
    if check.finding == "dropped":
        last = facts["dropped"]
        finding = (
            f"Certificates were dropped {times(last['times'])}, last after round {last['round']} "
            f"by {reason(last['why'])} (entry {last['entry']}), and testing began again."
        )
        if last["withdrawn"]:
            finding += f" {sentence(withdrawn(last['withdrawn']))}"
    waits = [_waits(next_in) for next_in in facts["waits"][:2]]
    if facts["n_corrected_since"]:
        n = counted(facts["n_corrected_since"], "outcome was", "outcomes were")
        waits = [f"{n} corrected since; if one was tested, testing begins again."]
    go_on = "go on deciding, and observe outcomes as they arrive"
    meaning = " ".join(filter(None, (_needs(facts), *waits, sentence(go_on))))
    return CheckWords(finding, meaning, go_on)


def _by_lender(check: Check) -> CheckWords:
    facts = check.facts
    who = "in shadow mode" if check.finding == "shadow" else "by today's policy"
    finding = f"Round {facts['round']} was decided {who} and carries no promise."
    return CheckWords(finding, " ".join(filter(None, (_needs(facts), sentence(_ramp(facts))))))


def _rounds_vary(check: Check) -> CheckWords:
    finding = (
        f"Over {check.facts['rounds']:,} rounds with unchanged policies, the share of bad varies"
    )
    if check.light == "green":
        explained = f"shock = {check.bound:g}" if check.bound else "independent applicants"
        return CheckWords(f"{finding} no more than {explained} would explain.")
    points, ends = f"{100 * check.value:.2g}", f"{100 * check.low:.2g} to {100 * check.high:.2g}"
    covers = f"shock = {check.value:.2g}"
    return CheckWords(
        f"{finding} by about {points} points ({ends}) beyond chance, which shock = {check.bound:g} "
        f"does not explain.",
        f"If a round's applicants share a shock, or the population drifts, certificates and "
        f"intervals promise too much; {covers} would cover what was seen.",
        f"find out what changed between rounds; if it may return, start a program with {covers}",
    )


def _ramp(facts: Mapping[str, Any]) -> str:
    return ramp_words(facts["ramp"]) if facts["ramp"] < 1 else ""


def _process(check: Check) -> CheckWords:
    said = note_words(check.finding, check.facts)
    whom = f"{check.group}: " if check.group else ""
    return CheckWords(f"{whom}{said}", "", _TO_DO_OF_NOTES[check.finding])


def _incumbent_rejected(check: Check) -> CheckWords:
    """Say that the lender's own process breaks α, and how far it decides now."""
    facts, to_do = check.facts, "find out why the lender's own process fails"
    meaning = sentence(ramp_words(facts["ramp"]))
    if facts["paused"]:
        meaning, to_do = "It decides on all while the program is paused.", f"resume, and {to_do}"
    elif facts["ramp"] < 1:
        to_do = f"rely less on it (fairchance ramp), and {to_do}"
    elif facts["kind"] != "own":
        meaning = "The policy in force accepts all whom it accepts."
    else:
        meaning = "It decides on nobody now, and on all while the program is paused."
        to_do = f"do not go back to it, and {to_do}"
    whom = f"{check.group}: " if check.group else ""
    return CheckWords(f"{whom}{note_words(check.finding, facts)}", meaning, to_do)


def _waits(next_in: NextTested) -> str:
    whom = "" if next_in.group is None else f"for {next_in.group}, "
    return sentence(f"{whom}{waiting(next_in)}")


def _uncalibrated(check: Check) -> CheckWords:
    return CheckWords(
        f"Round {check.facts['round']} rests on the history and not on outcomes of the program's "
        f"own decisions.",
        "Do not trust its estimates until outcomes are observed.",
        "go on deciding, and observe outcomes as they arrive",
    )


def _made_after_close(check: Check) -> CheckWords:
    return CheckWords(after_close_words(**check.facts), sentence(RECALL), "recall policy files")


# Data, outcomes and the record


def _unlike_batch(check: Check) -> CheckWords:
    facts = check.facts
    anyway = ", decided anyway" if any(one.stops for one in facts["unlike"]) else ""
    what = f"Batch {facts['batch']!r} (round {facts['round']}, entry {facts['entry']}{anyway})"
    if facts["batch"] is None:
        what = f"The newest applicants of round {facts['round']}, which is open"
    columns = " ".join(map(unlike_words, facts["unlike"][:_SHOWN]))
    more = len(facts["unlike"]) - _SHOWN
    return CheckWords(
        f"{what}: {columns}" + (f" And {counted(more, 'more column')}." if more > 0 else ""),
        "Promises and estimates are about applicants like those before.",
        "compare the files with their source",
    )


def _identical_rows(check: Check) -> CheckWords:
    n, of = check.facts["n"], check.facts["of"]
    return CheckWords(
        f"{n:,} of {of:,} applicants have the same features as another in their batch.",
        "If they are the same persons, certificates are false: they assume independent applicants.",
        "name the column that says who applied (persons in [columns], persons= in Python)",
    )


def _unlike_outcomes(check: Check) -> CheckWords:
    facts, compare = check.facts, "compare the files with their source"
    found = f"Outcomes of entry {facts['entry']}: {unlike_expected_words(facts['unlike'])}"
    return CheckWords(found, sentence(compare), compare)


def _late(check: Check) -> CheckWords:
    facts, to_do = check.facts, "observe the outcomes that are late"
    if check.group:
        meaning = "So many may hide mistakes in this group." if check.light == "amber" else ""
        of = counted(facts["of"], "accepted applicant")
        long = f"without an outcome for {facts['days']:g} days or longer"
        return CheckWords(f"{check.group}: {facts['n']:,} of {of} {long}.", meaning, to_do)
    have = counted(facts["n"], "accepted applicant has", "accepted applicants have")
    return CheckWords(
        f"{have} waited for an outcome for {facts['days']:g} days or longer, the oldest for "
        f"{days(facts['oldest'])}.",
        "Observe the outcomes that are known, and withdraw applicants whose outcome will never be "
        "known.",
        to_do,
    )


def _held_up(check: Check) -> CheckWords:
    return CheckWords(
        _waits(check.facts["waits"]),
        sentence(DO_NOT_WAIT),
        "observe the outcomes that hold up the tests",
    )


def _unreadable(check: Check) -> CheckWords:
    return CheckWords(
        "The stored settings could not be read, so nothing is compared with α.",
        sentence(check.facts["message"].rstrip(".")),
        "say which classes its classifier may be made of (trusted)",
    )


def _expired(check: Check) -> CheckWords:
    return CheckWords(
        f"The retention period is over for {people(check.facts['n'])}.",
        "Erase them, or hold those who must stay.",
        "erase or hold applicants whose retention period is over",
    )


WORDS: dict[str, Callable[[Check], CheckWords]] = {
    "moved": lambda check: CheckWords(
        f"The program {moved(**check.facts)}", "", "use the ledger to which the program was moved"
    ),
    "mistakes_unknown": _mistakes,
    "mistakes_broken": _mistakes,
    "mistakes_contested": _mistakes,
    "mistakes_above": _mistakes,
    "mistakes_early": _mistakes,
    "mistakes_open": _mistakes,
    "mistakes_kept": _mistakes,
    "acceptance_unequal": _acceptance,
    "acceptance_open": _acceptance,
    "exploration_unequal": _explored_group,
    "exploration_open": _explored_group,
    "accepted_none": _selection,
    "accepted_all": _selection,
    "acceptance_changed": _selection,
    "explored": _explored,
    "explored_bad": _explored,
    "explored_none": _explored_none,
    "hardly_explored": _hardly_explored,
    "draws_fair": _draws,
    "draws_off": _draws,
    "take_up_alike": _take_up,
    "explored_lost": _take_up,
    "undecided": lambda _: CheckWords("No batch has been decided yet.", "", "decide a batch"),
    "uncertified": lambda _: CheckWords("This method gives no certificate."),
    "uncalibrated": _uncalibrated,
    "certified": _certified,
    "shadow": _by_lender,
    "incumbent": _by_lender,
    "incumbent_rejected": _incumbent_rejected,
    "none_in_sight": _process,
    "handover_waits": _process,
    "patience_short": _process,
    "population_changed": _process,
    "paused": lambda _: CheckWords(
        "The program is paused, and the lender's own decisions stand.",
        "",
        "resume the program once the reason is gone",
    ),
    "made_after_close": _made_after_close,
    "rounds_alike": _rounds_vary,
    "rounds_vary": _rounds_vary,
    "in_part": _pilot,
    "pilot": _pilot,
    "dropped": _pilot,
    "unlike_batch": _unlike_batch,
    "unlike_outcomes": _unlike_outcomes,
    "identical_rows": _identical_rows,
    "late": _late,
    "held_up": _held_up,
    "unreadable": _unreadable,
    "expired": _expired,
}
