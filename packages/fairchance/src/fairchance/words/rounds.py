"""What rounds and certificates are in words: the only place that writes these sentences.

A clause begins with a small letter and has no full stop, so that pages and commands can join it to
others; ``sentence`` makes a sentence of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fairchance.words import counted, first_of, independence, percent

if TYPE_CHECKING:
    from fairchance.core.decisions import CertifiedRound, Note, Round
    from fairchance.ledger.summary import NextTested, OpenRoundSummary, RoundSummary, Summary
    from fairchance.methods.certified.classifier import AwaitedOutcomes, RestartedTests

__all__ = ["ABOUT_CURVE", "DO_NOT_WAIT", "IN_OPEN_ROUND", "NOTES", "RECALL", "open_round_words"]
__all__ += ["about_certificate", "about_round", "after_close_words", "assumed", "began_again"]
__all__ += [
    "certificates_assume",
    "certified_policy",
    "held_up",
    "needed",
    "note_text",
    "note_words",
    "promised",
]
__all__ += ["ramp_words", "reason", "restart_cost", "restarted", "sentence", "status_word"]
__all__ += ["span", "surely", "take_up_rows", "waiting", "withdrawn"]

# Why testing began again: as records say, and the kind of the entry after which it did.
_CONTRADICTED = "outcomes that contradicted the certificates"
_REASONS = {
    "correction": "a correction",
    "drift": _CONTRADICTED,
    "outcomes": _CONTRADICTED,
    "override": "an override",
    "erasure": "an erasure",
}
RECALL = (
    "recall policy files from the machines that hold them, which hear of no pause; with [rounds] "
    "every, policies expire"
)
DO_NOT_WAIT = (
    "observe these outcomes, or withdraw the applicants, who then count as bad; a program that "
    "starts with a patience does not wait"
)


ABOUT_CURVE = (
    "An estimate is the policy that looks best at its bound; a certified one is proved to keep it, "
    "and may accept fewer until there is more evidence. Compare rows of one kind."
)
IN_OPEN_ROUND = "The round is open: what it promises or estimates is on record when it is closed."

# What a certificate of a policy that uses the lender's own decisions assumes in addition.
_BESIDE = (
    "; for a policy that accepts all whom today's process accepts, also that this process is a "
    "rule about one applicant that does not change, that its decision is known before the "
    "program's answer, that the ramp is fixed before applicants and outcomes of a round are looked "
    "at, and that a loan is recorded as not taken before it can go bad"
)

# What rounds without a certificate are.
_UNCERTIFIED = {"shadow": "shadow mode", "incumbent": "today's policy decides"}


def ramp_words(ramp: float) -> str:
    """Return a clause on who decides at a ramp.

    Examples
    --------
    >>> ramp_words(0.05)
    "the program decides on 5 % of applicants, and the lender's own decisions stand for the others"
    """
    if ramp in (0, 1):
        return f"the {'program' if ramp else 'lender'} decides on all applicants"
    return (
        f"the program decides on {percent(ramp)} of applicants, and the lender's own decisions "
        f"stand for the others"
    )


def open_round_words(found: OpenRoundSummary) -> str:
    """Say that a round is open, since when and until when, and what was decided in it.

    Examples
    --------
    >>> from fairchance.ledger.summary import OpenRoundSummary
    >>> at = "2031-03-01T09:00:00+00:00"
    >>> open_round_words(OpenRoundSummary(3, 17, at, None, 1.0, "pilot", False, 120, 40, 5))
    'Round 3 is open since 2031-03-01 09:00 UTC: 40 of 120 applicants accepted so far, counted \
nowhere else.'
    """
    until = "" if found.expires is None else f", until {_minute(found.expires)} at the latest"
    return (
        f"Round {found.round} is open since {_minute(found.at)}{until}: {found.n_accepted:,} of "
        f"{counted(found.n_people, 'applicant')} accepted so far, counted nowhere else."
    )


def _minute(at: str) -> str:
    return f"{at[:16].replace('T', ' ')} UTC"


def reason(why: str) -> str:
    """Return why testing began again, or why certificates were dropped.

    Examples
    --------
    >>> reason("drift") == reason("outcomes"), reason("erasure")
    (True, 'an erasure')
    """
    return _REASONS.get(why, why)


def sentence(clause: str) -> str:
    """Return a clause as a sentence.

    Examples
    --------
    >>> sentence("no outcome has been tested yet")
    'No outcome has been tested yet.'
    """
    return f"{clause[:1].upper()}{clause[1:]}." if clause else ""


def after_close_words(rounds: Sequence[int], n: int, explored: int, *, sure: bool) -> str:
    """Say that policies decided after their rounds, as a sentence.

    Examples
    --------
    >>> after_close_words([3], 133, 2, sure=True)
    '133 decisions (2 explored) were made by the policy of round 3 after the round had been closed.'
    """
    were = "was" if n == 1 else "were"
    made = f"{were} made" if sure else "may have been made"
    return (
        f"{counted(n, 'decision')} ({explored:,} explored) {made} by the policy of "
        f"{first_of([f'round {one}' for one in rounds])} after the round had been closed."
    )


# Notes of a round


def note_text(note: Note) -> str:
    """Return what a note of a round says.

    Examples
    --------
    >>> from fairchance.core.decisions import Note
    >>> note_text(Note("barred", {"n_barred": 2, "n_candidates": 3, "risk": 2, "max_risk": 0.8}))
    '2 of 3 candidates cannot be explored (risk above 0.8: 2).'
    """
    return note_words(note.code, note.facts)


def note_words(code: str, facts: Mapping[str, Any]) -> str:
    """Return what a note of a code and with such facts says."""
    text = NOTES.get(code)
    if text is None:  # of another version, or of a package that is not loaded
        return f"{code}: {', '.join(f'{k} = {v}' for k, v in facts.items())}."
    return text(facts) if callable(text) else text.format(**facts)


def _barred(facts: Mapping[str, Any]) -> str:
    why = {
        "excluded": "excluded",
        "amount": f"amount above {facts.get('exposure')}",
        "risk": f"risk above {facts.get('max_risk')}",
    }
    reasons = ", ".join(f"{why[name]}: {facts[name]}" for name in why if facts.get(name))
    return (
        f"{facts['n_barred']} of {facts['n_candidates']} candidates cannot be explored ({reasons})."
    )


def _none_in_sight(facts: Mapping[str, Any]) -> str:
    confidence = percent(facts["confidence"])
    why = "neither the model nor the outcomes so far see one, which is no proof"
    if facts["proved"]:
        reach = f"{percent(facts['from'])} to {percent(facts['to'])}"
        why = f"with confidence {confidence}, no policy that accepts the best {reach} keeps it"
    ends = f"{percent(facts['low'])} to {percent(facts['high'])} (each with {confidence})"
    if facts["high"] == 1:
        ends = f"at least {percent(facts['low'])} (with {confidence})"
    ends = "not known yet" if (facts["low"], facts["high"]) == (0, 1) else ends
    return (
        f"No policy that keeps α = {percent(facts['alpha'])} is in sight: {why}; the smallest α "
        f"that looks possible is {ends}. Exploration is kept within exploration_price, until a new "
        f"ranking or other outcomes give hope."
    )


def _missed(facts: Mapping[str, Any]) -> str:
    missed, whose = [], " of a group" if facts["per_group"] else ""
    if "selection_rate" in facts:
        rate, least = facts["selection_rate"], facts["min_selection_rate"]
        missed.append(f"the selection rate{whose} is {rate:.4g}, below {least:.4g}")
    if "disparity" in facts:
        spread, allowed = facts["disparity"], facts["max_disparity"]
        missed.append(f"the disparity is {spread:.4g}, above {allowed:.4g}")
    return (
        f"No thresholds with an FDR of at most {facts['max_fdr']:.4g} meet the other constraints; "
        f"at best {' and '.join(missed)}."
    )


def _past_read(facts: Mapping[str, Any]) -> str:
    """Say how the history was selected, why that is believed, and what follows for the ranking."""
    z = facts["z"]
    if facts.get("beside"):
        return (
            "Beside the lender's own process, the ranking also learns from the applicants that the "
            "history rejected."
        )
    if facts["selected_on"] == "features":
        return (
            f"The history reads as selected on features, which explain it better than the outcome "
            f"does (z = {z:.1f}), so the ranking leaves its rejected applicants out."
        )
    if facts["selected_on"] == "outcome":
        return (
            f"The history reads as selected on the outcome, which explains it better than features "
            f"do (z = {-z:.1f}), so the ranking corrects for that."
        )
    why = "is too small to tell" if z is None else f"does not tell (z = {z:.1f})"
    return (
        f"The history {why} whether it was selected on features or on the outcome, so our own "
        f"outcomes decide whether the ranking learns from its rejected applicants."
    )


def _overlooked(facts: Mapping[str, Any]) -> str:
    value = facts["value"]
    said = "missing" if value is None else value if isinstance(value, str) else f"{value:.15g}"
    n = facts["n_accepted"] + facts["n_rejected"]
    what = (
        "the value is not read until our own outcomes speak against it"
        if facts["unread"]
        else "our own outcomes speak against the value, so it is read"
    )
    return (
        f"The past accepted {facts['n_accepted']:,} of {n:,} applicants with {facts['column']} "
        f"{said}, which says nothing about them: those that it rejected teach nothing, and {what}."
    )


# What each code of a note says: a text with the facts, or a function of them. Other packages add
# the notes of their own methods.
NOTES: dict[str, str | Callable[[Mapping[str, Any]], str]] = {
    "fit": "{says}",  # the warning of a learner, which may be anybody's
    "not_held_out": "One fold held one outcome only: thresholds were not held out.",
    "constraints_missed": _missed,
    "none_known": (
        "None of the {n_people} applicants so far is known well enough to be accepted by score "
        "(largest coverage {largest:.3g}, threshold {threshold:g}), so none can be explored "
        "either; lower the threshold of the coverage rule."
    ),
    "none_worth_accepting": (
        "No threshold with an estimated FDR of at most {max_fdr:.3g} accepts applicants worth "
        "accepting, so none was accepted or explored; check that {good!r} is the good outcome "
        "(pos_label), raise alpha, or change the utility."
    ),
    "barred": _barred,
    "exposure": "The exposure limit allowed {n_explored} of {n_wanted} explorations.",
    "incumbent_rejected": lambda facts: (
        f"The outcomes reject that the lender's own process keeps α = {percent(facts['alpha'])}"
        + (f"; about {percent(fdr)} bad." if (fdr := facts.get("estimated_fdr")) else ".")
    ),
    "incumbent_stays": lambda facts: (
        f"Today's policy stays, since it is estimated to earn more: {_per_applicant(facts)}."
    ),
    "handover_waits": lambda facts: (
        f"A certified policy is estimated to earn more than today's and waits for the hand-over: "
        f"{_per_applicant(facts)}."
    ),
    "past_read": _past_read,
    "overlooked": _overlooked,
    "none_in_sight": _none_in_sight,
    "rests_on_history": (
        "The certificate rests on the history too: it assumes that the history holds every "
        "applicant of its time, and that they come from the same population."
    ),
    "population_changed": lambda facts: (
        f"Certified under the assumption of one population, which the outcomes of "
        f"{span(facts['first'], facts['last'])} speak against: more are bad than before among "
        f"applicants of the same rank (p = {facts['p']:.2g} at one look)."
    ),
    "lapses": (
        "Evidence starts again every {validity:g} rounds: this certificate lapses after round "
        "{last:g}, and its confidence is that of all certificates that began with it."
    ),
    "patience_short": (
        "Outcomes took up to {delay:g} rounds so far, and patience is {patience:g}: later ones "
        "count as bad."
    ),
}


def span(first: int, last: int) -> str:
    """Name rounds from one to another.

    Examples
    --------
    >>> span(12, 14), span(3, 3)
    ('rounds 12 to 14', 'round 3')
    """
    return f"round {last}" if first == last else f"rounds {first} to {last}"


def _per_applicant(facts: Mapping[str, Any]) -> str:
    """Compare what today's policy and the best certified one are estimated to earn."""
    return f"{facts['earned']:.4g} per applicant against {facts['best']:.4g} of the best certified"


# Rounds of Algorithm 1


def about_round(record: Round, alpha: float | None = None) -> Iterator[str]:
    """Yield what a round of Algorithm 1 estimates, and what its record mentions."""
    bound = "" if alpha is None else f" of {percent(alpha)}"
    yield from _control(record)
    if record.follows:
        yield "The round follows the past policy."
    if math.isnan(record.estimated_fdr):
        yield f"No certificate, and no estimate yet to compare with the bound{bound}."
    else:
        rests = "" if record.calibrated else "; it rests on the history, so do not trust it"
        yield (
            f"No certificate: about {percent(record.estimated_fdr)} bad are expected among the "
            f"accepted, against a bound{bound}, by {counted(record.n_outcomes, 'outcome')}{rests}."
        )
    yield from map(note_text, record.notes)


def _control(record: Round | CertifiedRound) -> Iterator[str]:
    """Yield how far the lender decided, and how many must not be accepted."""
    if record.ramp < 1:
        yield sentence(ramp_words(record.ramp))
    if record.n_barred:
        yield f"{counted(record.n_barred, 'applicant was', 'applicants were')} barred."


# Certificates


def needed(
    more: float, *, tested: bool = True, certified: bool = False, decided: int | None = None
) -> str:
    """Return a clause on what the next certificate needs; empty if that does not matter.

    Parameters
    ----------
    more
        How many more outcomes; NaN or infinite if that is unknown, 0 if another policy than that of
        the round is certified.
    tested
        Whether any outcome has been tested.
    certified
        Whether there is a certificate, so that the next one is for more applicants.
    decided
        The round with whose decision this was counted, if outcomes have arrived since.

    Examples
    --------
    >>> needed(3119.04), needed(math.nan, tested=False)
    ('at the pace so far, roughly 3,100 more outcomes are needed', 'no outcome has been tested yet')
    >>> needed(120.4, decided=7)
    'when round 7 was decided, at the pace until then, roughly 120 more outcomes were needed'
    >>> needed(math.nan), needed(math.nan, certified=True)
    ('the outcomes so far do not support a certificate', '')
    >>> needed(0.0)
    'a policy is certified, but it was not chosen'
    """
    if certified and not math.isfinite(more):
        return ""
    now = decided is None
    if more == 0 and not certified:
        clause = f"a policy {'is' if now else 'was'} certified, but it was not chosen"
    elif math.isfinite(more):
        n = counted(int(float(f"{max(1, math.ceil(more)):.2g}")), "more outcome")
        to_be = ("is" if n.startswith("1 ") else "are") if now else "were"
        clause = f"at the pace {'so far' if now else 'until then'}, roughly {n} {to_be} needed"
    elif tested:
        clause = f"the outcomes {'so far do' if now else 'did'} not support a certificate"
    else:
        clause = f"no outcome {'has' if now else 'had'} been tested yet"
    clause = f"to accept more applicants, {clause}" if certified else clause
    return clause if now else f"when round {decided} was decided, {clause}"


def promised(record: CertifiedRound) -> str:
    """Return a clause on what a round promises."""
    of = "" if record.group is None else f" for {record.group}"
    if record.status != "certified":
        return f"{_UNCERTIFIED.get(record.status, record.status)}{of}: no promise"
    confidence = percent(1 - record.delta)
    return f"certified{of}: with confidence {confidence}, at most {percent(record.alpha)} bad"


def certified_policy(kind: str, share: float) -> str:
    """Return whom a certified policy accepts, by ``CertifiedRound.kind`` and its share.

    Examples
    --------
    >>> certified_policy("own", 0.117), certified_policy("incumbent", 0.0)
    ('the best 11.7 %', "all whom today's process accepts")
    >>> certified_policy("union", 0.117)
    "all whom today's process accepts and the best 11.7 % besides"
    """
    theirs, ours = "all whom today's process accepts", f"the best {percent(share)}"
    if kind == "union":
        return f"{theirs} and {ours} besides"
    return theirs if kind == "incumbent" else ours


def assumed(
    maturity: int | None = None,
    shock: float = 0.0,
    *,
    persons: bool = False,
    beside: bool = False,
) -> str:
    """Return a clause on what a certificate assumes.

    Parameters
    ----------
    maturity
        Rounds until outcomes count as final; None if that is not known here.
    shock, persons
        As for ``independence``.
    beside
        Whether a certified policy accepts all whom today's process accepts.

    Examples
    --------
    >>> print(assumed(2))
    certificates assume that applicants are of one population, that they are independent of each
    other, without a shock that a round's applicants share (shock = 0), that acceptance is
    a coin with the logged probability and does not change outcomes, and that outcomes are final
    when their round is tested, here 2 rounds later at the earliest (maturity)
    """
    final = ""
    if maturity is not None:
        when = f"{counted(maturity, 'round')} later at the earliest" if maturity else "at once"
        final = f", here {when} (maturity)"
    return (
        f"certificates assume that applicants are of one population, that "
        f"{independence(shock, persons=persons)}, that acceptance is a coin with the logged "
        f"probability and does not change outcomes, and that outcomes are final when their round "
        f"is tested{final}{_BESIDE * beside}"
    )


def certificates_assume(summary: Summary) -> str:
    """Return the sentence on what the certificates of a program assume."""
    promise, ladders = summary.promise, summary.ladders().values()
    persons = all(records[-1].persons for records in ladders)
    beside = any(_is_beside(record) for records in ladders for record in records)
    return sentence(assumed(promise.maturity, promise.shock, persons=persons, beside=beside))


def _is_beside(record: CertifiedRound) -> bool:
    return record.status == "certified" and record.kind != "own"


def status_word(row: RoundSummary) -> str:
    """Return the status of a round, in a word, and its ramp if the lender decided in part."""
    words = ["withdrawn" if row.withdrawn else row.status]
    words += [f"ramp {percent(row.ramp)}"] if 0 < row.ramp < 1 else []
    return ", ".join(filter(None, words)) or "–"


def surely(records: Iterable[Round | CertifiedRound]) -> str:
    """Return how applicants outside the explore region were accepted, by the records of rounds.

    A program beside the lender's own process may accept whom that accepts, also at a ramp of 1.
    """
    how = {getattr(one, "kind", "own") if one.ramp == 1 else one.ramp for one in records}
    if how == {0.0}:
        return "by the lender"
    return "by score" if how <= {"own"} else "by score or lender"


def take_up_rows(summary: Summary, most: int) -> list[list[str]]:
    """Return how many accepted applicants took the loan: all, of each region, round and group.

    Of rounds only the last ones, at most so many. Nothing if nobody is known not to have taken it.
    """
    if not summary.outcomes.not_taken:
        return []
    counted_by = [("all", summary.outcomes), (surely(summary.records), summary.exploited)]
    counted_by += [("explored", summary.explored)]
    counted_by += [(f"round {row.round}", row.outcomes) for row in summary.rounds[-most:]]
    counted_by += [(one.name, one.outcomes) for one in summary.groups if one.group is not None]
    return [
        [name, f"{one.accepted:,}", f"{one.taken:,}", f"{one.not_taken:,}", percent(share)]
        for name, one in counted_by
        for share in [one.taken / one.accepted if one.accepted else math.nan]
    ]


def withdrawn(rounds: Sequence[int]) -> str:
    """Return a clause on rounds whose certificates are withdrawn.

    Examples
    --------
    >>> print(withdrawn([6, 7, 8]))
    certificate withdrawn: rounds 6 to 8 were certified on outcomes that were corrected later, so
    nothing is promised
    """
    which = f"rounds {', '.join(map(str, rounds))} were"
    if len(rounds) == 1:
        which = f"round {rounds[0]} was"
    elif rounds[-1] - rounds[0] == len(rounds) - 1:
        which = f"{span(rounds[0], rounds[-1])} were"
    return (
        f"certificate withdrawn: {which} certified on outcomes that were corrected later, so "
        f"nothing is promised"
    )


def restarted(record: CertifiedRound) -> str:
    """Return a clause on when and why testing began again; empty if it never did."""
    began = began_again(record.tests_began, record.restart_reason)
    tested = counted(record.n_tested, "outcome was", "outcomes were")
    return f"{began}; {tested} tested since" if began else ""


def began_again(number: int, why: str) -> str:
    """Return a clause on the round with which testing began again; empty if it is the first."""
    return "" if number == 1 else f"testing began again with round {number} after {reason(why)}"


def about_certificate(record: CertifiedRound) -> Iterator[str]:
    """Yield what a round of the certified method promises, lacks and mentions."""
    if record.status == "certified":
        yield sentence(f"{promised(record)} under the rule of this round")
        beside = _is_beside(record)
        if beside:
            yield sentence(f"the rule accepts {certified_policy(record.kind, record.share)}")
        yield sentence(assumed(shock=record.shock, persons=record.persons, beside=beside))
    else:
        lacks = needed(record.more_outcomes, tested=record.next_n_tested > 0)
        clauses = [promised(record), restarted(record), lacks]
        yield sentence("; ".join(filter(None, clauses)))
    yield from _control(record)
    yield from map(note_text, record.notes)


def waiting(next_in: NextTested) -> str:
    """Return a clause on what the next round to enter the tests waits for.

    Examples
    --------
    >>> from fairchance.ledger.summary import NextTested
    >>> waiting(NextTested(1, 39, 0, matures=0, at_latest=13, n_known=317))
    'round 1 waits for 39 outcomes and enters the tests after round 13 at the latest, with 317 known
    outcomes behind it'
    >>> waiting(NextTested(1, 1, 0, matures=3, at_latest=None, n_known=0))
    'round 1 waits for 1 outcome and enters the tests once all are known, after round 3'
    >>> waiting(NextTested(4, 0, 0, matures=6, at_latest=16, n_known=0))
    'round 4 enters the tests after round 6'
    >>> waiting(NextTested(3, 2, 3, 0, None, 0, oldest=1, ids=("a17", "a18", "a19")))
    "round 1 waits for the outcomes of 'a17' and 'a18' and 1 more and enters the tests once all are
    known"
    """
    own, earlier, number = next_in.awaited, next_in.awaited_before, next_in.round
    behind = ""
    if next_in.n_known:
        behind = f", with {counted(next_in.n_known, 'known outcome')} behind it"
    if not own and not earlier:
        return f"round {number} enters the tests after round {next_in.matures}{behind}"
    awaited = [counted(own, "outcome")] if own else []
    awaited += [f"{counted(earlier, 'outcome')} of earlier rounds"] if earlier else []
    if next_in.all_named:
        number, awaited = next_in.oldest, [_outcomes_of(next_in.ids)]
    if next_in.at_latest is not None:
        when = f"after round {next_in.at_latest} at the latest"
    else:
        when = "once all are known"
        when += f", after round {next_in.matures}" if next_in.matures else ""
    waits = " and for ".join(awaited)
    return f"round {number} waits for {waits} and enters the tests {when}{behind}"


def held_up(awaited: Sequence[AwaitedOutcomes]) -> str:
    """Return what keeps rounds out of the tests, and what to do."""
    waits = (f"round {one.round} waits for {_outcomes_of(one.ids)}" for one in awaited)
    return (
        f"No round has entered the tests of a certificate for some time: "
        f"{' and '.join(dict.fromkeys(waits))}, and rounds enter in order. {sentence(DO_NOT_WAIT)}"
    )


def restart_cost(restarts: Sequence[RestartedTests], why: str = "correction") -> str:
    """Return what a correction of a tested outcome cost, or another reason to test again.

    Examples
    --------
    >>> from fairchance.methods.certified.classifier import RestartedTests
    >>> print(restart_cost([RestartedTests("A", 7, 526)]))
    Testing begins again with round 7 after a correction: the evidence of 526 outcomes (group A) and
    the certificates on it are dropped, and rounds are pilots until there is new evidence. With a
    larger maturity, rounds are tested later, and corrections before that cost nothing.
    """
    counts = " and of ".join(
        counted(lost.n_outcomes, "outcome")
        + ("" if lost.group is None else f" (group {lost.group})")
        for lost in restarts
    )
    cost = (
        f"Testing begins again with round {restarts[0].round} after {reason(why)}: the evidence of "
        f"{counts} and the certificates on it are dropped, and rounds are pilots until there is "
        f"new evidence."
    )
    if why != "correction":
        return cost
    later = "rounds are tested later, and corrections before that cost nothing"
    return f"{cost} With a larger maturity, {later}."


def _outcomes_of(ids: Sequence[Any]) -> str:
    return f"the {'outcome' if len(ids) == 1 else 'outcomes'} of {first_of(list(map(repr, ids)))}"
