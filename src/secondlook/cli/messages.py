"""Sentences about a program that several commands and the report print.

What needs attention, what the tests of a certificate wait for, and the mistakes known so far.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from secondlook.core.budget import FdrBudget
from secondlook.errors import InputError
from secondlook.words import counted, days, people, percent, share, times

if TYPE_CHECKING:  # an extra, and slow to import
    from secondlook.ledger.objections import Request
    from secondlook.ledger.summary import NextTested, Summary

__all__ = [
    "CAUTION",
    "PILOT_ADVICE",
    "alpha_and_delta",
    "attention",
    "known_outcomes_message",
    "mistakes_so_far",
    "mistakes_so_far_message",
    "recorded_already",
    "repeated",
    "repeated_message",
    "restarts",
    "waiting_message",
]

CAUTION = (
    "Late outcomes are not a random part of all outcomes, so an interval describes only the "
    "outcomes known so far."
)
PILOT_ADVICE = (
    "Go on deciding and observe outcomes as they arrive. If an outcome will never be known, "
    "withdraw the applicant, which counts as bad. α and δ are fixed: other values need a new "
    "program (secondlook init)."
)


def alpha_and_delta(classifier: Any) -> tuple[float | None, float | None]:
    """Return a classifier's bound α on mistakes, and δ if it gives certificates."""
    if hasattr(classifier, "delta"):
        return classifier.alpha, classifier.delta
    budget = getattr(classifier, "budget", None) or FdrBudget()
    return getattr(budget, "alpha", None), None


@contextmanager
def recorded_already(missing: str, advice: str) -> Iterator[None]:
    """Explain in any error raised here that the record is complete and only output is missing."""
    try:
        yield
    except (InputError, OSError) as error:
        raise InputError(f"{missing} ({str(error).partition(';')[0]}); {advice}.") from error


def repeated(request: Request) -> dict[str, Any]:
    """Return where and when the request that a command repeats was recorded, and by whom."""
    entry = request.entry
    return {"request": request.name, "entry": entry.number, "at": entry.at, "by": entry.by}


def repeated_message(request: dict[str, Any]) -> str:
    """Return ``repeated`` as a sentence.

    Examples
    --------
    >>> at = "2031-03-20T09:00:00+00:00"
    >>> repeated_message({"request": "r7", "entry": 17, "at": at, "by": "credit desk"})
    "Nothing changed: request 'r7' was recorded on 2031-03-20 by 'credit desk' (entry 17)."
    """
    return (
        f"Nothing changed: request {request['request']!r} was recorded on {request['at'][:10]} by "
        f"{request['by']!r} (entry {request['entry']})."
    )


# Mistakes so far


def mistakes_so_far(summary: Summary) -> dict[str, Any]:
    """Return the known mistakes among accepted applicants of all rounds, without overrides."""
    outcomes, overridden = summary.outcomes, summary.overridden
    return {
        "alpha": summary.promise.alpha,
        "bad": outcomes.bad,
        "known": outcomes.known,
        "pending": outcomes.pending,
        "fdr": outcomes.fdr,
        "interval": outcomes.interval,
        "by_override": {"accepted": overridden.accepted, "known": overridden.known},
    }


def mistakes_so_far_message(so_far: dict[str, Any]) -> str:
    """Return ``mistakes_so_far`` as a sentence.

    Examples
    --------
    >>> so_far = {"alpha": None, "bad": 3, "known": 40, "pending": 9, "interval": (0.016, 0.204)}
    >>> so_far["by_override"] = {"accepted": 0, "known": 0}
    >>> mistakes_so_far_message(so_far)
    'So far 3 of 40 known outcomes are bad: 7.5 % (95 % interval 1.6 % to 20.4 %); 9 are pending.'
    >>> so_far |= {"known": 0, "by_override": {"accepted": 2, "known": 1}}
    >>> mistakes_so_far_message(so_far)
    'So far no outcome is known; 9 are pending. Not counted: 2 accepted with an override (1 known).'
    """
    pending = f"{so_far['pending']:,} {'is' if so_far['pending'] == 1 else 'are'} pending"
    if so_far["known"]:
        low, high = map(percent, so_far["interval"])
        alpha = so_far["alpha"]
        bound = "" if alpha is None else f", against a bound of {percent(alpha)}"
        message = (
            f"So far {so_far['bad']:,} of {so_far['known']:,} known outcomes are bad: "
            f"{percent(so_far['bad'] / so_far['known'])} (95 % interval {low} to {high}){bound}; "
            f"{pending}."
        )
    else:
        message = f"So far no outcome is known; {pending}."
    overridden = so_far["by_override"]
    if overridden["accepted"]:
        message += (
            f" Not counted: {overridden['accepted']:,} accepted with an override "
            f"({overridden['known']:,} known)."
        )
    return message


# Tests of a certificate


def waiting_message(next_in: NextTested) -> str:
    """Say what the next round to enter the tests waits for, and when it enters.

    Examples
    --------
    >>> from secondlook.ledger.summary import NextTested
    >>> waiting_message(NextTested(1, 39, 0, matures=0, at_latest=13, n_known=317))
    'round 1 waits for 39 outcomes and enters the tests after round 13 at the latest'
    >>> waiting_message(NextTested(1, 1, 0, matures=3, at_latest=None, n_known=0))
    'round 1 waits for 1 outcome and enters the tests once it is known, after round 3'
    >>> waiting_message(NextTested(12, 133, 568, matures=0, at_latest=None, n_known=0))
    'round 12 waits for 133 outcomes and for 568 outcomes of earlier rounds and enters the tests
    once they are known'
    >>> waiting_message(NextTested(4, 0, 0, matures=6, at_latest=16, n_known=94))
    'round 4 enters the tests after round 6'
    """
    own, earlier = next_in.awaited, next_in.awaited_before
    if not own and not earlier:
        return f"round {next_in.round} enters the tests after round {next_in.matures}"
    awaited = [counted(own, "outcome")] if own else []
    awaited += [f"{counted(earlier, 'outcome')} of earlier rounds"] if earlier else []
    if next_in.at_latest is not None:
        when = f"after round {next_in.at_latest} at the latest"
    else:
        when = "once it is known" if own + earlier == 1 else "once they are known"
        when += f", after round {next_in.matures}" if next_in.matures else ""
    waits = " and for ".join(awaited)
    return f"round {next_in.round} waits for {waits} and enters the tests {when}"


def known_outcomes_message(next_in: NextTested) -> str:
    """Say how many known outcomes are in no test yet, as a clause; empty if there are none.

    Examples
    --------
    >>> from secondlook.ledger.summary import NextTested
    >>> known_outcomes_message(NextTested(1, 39, 0, matures=0, at_latest=13, n_known=317))
    '; rounds enter in order, so 317 known outcomes are in no test yet'
    """
    if not next_in.n_known:
        return ""
    are = "is" if next_in.n_known == 1 else "are"
    known = counted(next_in.n_known, "known outcome")
    return f"; rounds enter in order, so {known} {are} in no test yet"


def restarts(summary: Summary, group: Any = None) -> list[tuple[int, str]]:
    """Return the rounds with which testing began again, each with the reason in words.

    Parameters
    ----------
    summary
        The program.
    group
        A group that has a certificate of its own; None for all certificates.
    """
    reasons = {"correction": "a correction", "drift": "outcomes that contradicted it"}
    began = {
        record["tests_began"]: reasons.get(record["restart_reason"], record["restart_reason"])
        for row in summary.rounds
        for record in row.records
        if record.get("tests_began", 1) > 1 and group in (None, record["group"])
    }
    return sorted(began.items())


# Attention


def attention(summary: Summary, late: float) -> list[str]:
    """Return what needs attention, one sentence each, the most urgent first.

    Parameters
    ----------
    summary
        The program.
    late
        Days after which a pending outcome is late.
    """
    return [
        *_mistakes(summary),
        *_unselective(summary),
        *_unexplored(summary),
        *_dropped(summary),
        *_unlike_history(summary),
        *_late(summary, late),
        *_unpromised(summary),
        *_expired(summary),
    ]


def _mistakes(summary: Summary) -> Iterator[str]:
    alpha, outcomes = summary.promise.alpha, summary.outcomes
    if alpha is None or not outcomes.fdr > alpha:
        return
    is_sure = outcomes.interval[0] > alpha
    weight = (
        "the whole interval is above α, so chance does not explain it"
        if is_sure
        else "the interval reaches below α"
    )
    yield (
        f"More mistakes than the bound: {outcomes.bad:,} of {outcomes.known:,} known outcomes are "
        f"bad, which is {share(outcomes.fdr)}, and α is {alpha:g}; {weight}."
    )


def _unselective(summary: Summary) -> Iterator[str]:
    """Warn if no applicant or every applicant was accepted, or if the last round changed much."""
    if not summary.rounds:
        return
    from secondlook.ledger.summary import far_fewer  # noqa: PLC0415 - an extra

    *earlier, last = summary.rounds
    accepted = sum(row.n_accepted for row in earlier)
    applied = sum(row.n_people for row in earlier)
    n = applied + last.n_people
    if not last.n_accepted and not accepted:
        yield f"None of {n:,} applicants was accepted so far, so no outcome will be known."
    elif summary.accepts_everybody:
        usual = summary.history.accepted / summary.n_history
        yield (
            f"All {n:,} applicants were accepted so far, and in the history {share(usual)}: look "
            f"for columns with a changed unit or meaning, unless that many are good."
        )
    elif applied:
        usual, taken = accepted / applied, last.n_accepted
        if far_fewer(taken, last.n_people, usual) or far_fewer(
            last.n_people - taken, last.n_people, 1 - usual
        ):
            yield (
                f"The last round accepted {taken:,} of {last.n_people:,} applicants, and earlier "
                f"rounds {share(usual)}: before the decisions are sent out, look in its file for "
                f"columns with a changed unit or meaning."
            )


def _unexplored(summary: Summary) -> Iterator[str]:
    """Warn if the last round explored no applicant although its budget allowed some."""
    if not summary.rounds:
        return
    last = summary.rounds[-1]
    known = sum(last.noted("n_exploit_region") or [last.n_people])
    if not last.n_explored and last.budget >= 1 and last.n_people > known:
        notes = " ".join(note for note in last.noted("note") if note)
        yield (
            f"The last round explored no applicant, although its budget allowed "
            f"{last.budget:,.0f} of {last.n_people - known:,} in the explore region. {notes}"
        ).strip()


def _dropped(summary: Summary) -> Iterator[str]:
    dropped = [change for change in summary.changes if change.says.get("what") == "dropped"]
    if dropped:
        last = dropped[-1]
        reason = "a correction" if last.says["why"] == "correction" else str(last.says["why"])
        yield (
            f"Certificates were dropped {times(len(dropped))}, last after round "
            f"{last.says['round']} by {reason} (entry {last.entry}), and testing began again."
        )


def _unlike_history(summary: Summary) -> Iterator[str]:
    """Name batches that were decided although they are very unlike the history."""
    rounds = [row for row in summary.rounds if any(one["stops"] for one in row.unlike)]
    if rounds:
        from secondlook.people.likeness import Unlike  # noqa: PLC0415 - slow to import

        last = rounds[-1]
        columns = " ".join(str(Unlike(**one)) for one in last.unlike if one["stops"])
        batches = counted(len(rounds), "batch was", "batches were")
        yield (
            f"{batches} decided with --unlike-history although columns were unlike the history, "
            f"last {last.batch!r} (round {last.round}, entry {last.entry}): {columns}"
        )


def _late(summary: Summary, late: float) -> Iterator[str]:
    waiting = summary.waiting(late)
    if waiting.n:
        have = counted(waiting.n, "accepted applicant has", "accepted applicants have")
        yield (
            f"{have} waited for an outcome for {late:g} days or longer, the oldest for "
            f"{days(waiting.oldest)}: observe the outcomes that are known, and withdraw applicants "
            f"whose outcome will never be known."
        )


def _unpromised(summary: Summary) -> Iterator[str]:
    if not summary.rounds:
        yield "No batch has been decided yet."
        return
    last, n = summary.rounds[-1], len(summary.rounds)
    pilots = sum("pilot" in row.noted("status") for row in summary.rounds)
    uncalibrated = sum(False in row.noted("calibrated") for row in summary.rounds)
    if "pilot" in last.noted("status"):
        message = next((text for text in last.noted("message") if text), "")
        first = f"The last round was a pilot and carries no promise ({pilots} of {n} were)."
        parts = (first, *_waiting(summary), message, PILOT_ADVICE)
        yield " ".join(part for part in parts if part)
        yield from _corrected_since(summary)
    if False in last.noted("calibrated"):
        yield (
            f"The last round rests on the history and not on outcomes of the program's own "
            f"decisions ({uncalibrated} of {n} do), so do not trust its estimates."
        )
    if summary.promise.problem:
        yield f"α and the worth of decisions are not shown: {summary.promise.problem}"


def _waiting(summary: Summary) -> Iterator[str]:
    """Say what the tests of each missing certificate wait for."""
    for record in summary.rounds[-1].records:
        next_in = summary.next_tested(record.get("group"))
        if record.get("status") == "pilot" and next_in is not None:
            start = "Now" if record.get("group") is None else f"For {record['group']}, now"
            yield f"{start} {waiting_message(next_in)}{known_outcomes_message(next_in)}."


def _corrected_since(summary: Summary) -> Iterator[str]:
    """Warn that outcomes were corrected after a pilot stated its evidence."""
    last = summary.rounds[-1]
    n = sum(
        change.n
        for change in summary.changes
        if change.kind == "correction" and change.entry > last.entry
    )
    if n and last.noted("log_wealth"):
        were = counted(n, "outcome was", "outcomes were")
        yield (
            f"Since that round {were} corrected: if it had been tested, testing begins again with "
            f"the next round, and earlier evidence does not count."
        )


def _expired(summary: Summary) -> Iterator[str]:
    if summary.n_expired:
        yield (
            f"The retention period is over for {people(summary.n_expired)}: erase them, or hold "
            f"those who must stay."
        )
