"""What ``decide`` and ``observe`` say when they are done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from secondlook.cli.output import days, people, share, times
from secondlook.core.budget import FdrBudget
from secondlook.errors import InputError

if TYPE_CHECKING:
    from secondlook.ledger.summary import NextTested, Summary


def alpha_and_delta(classifier: Any) -> tuple[float | None, float | None]:
    """Return a classifier's bound on mistakes, and the chance of breaking it if it has one."""
    if hasattr(classifier, "delta"):
        return classifier.alpha, classifier.delta
    budget = getattr(classifier, "budget", None) or FdrBudget()
    return getattr(budget, "alpha", None), None


def percent(share: float) -> str:
    """Write a share as a percentage."""
    return f"{100 * share:.3g} %"


def so_far_words(so_far: dict[str, Any]) -> str:
    """Return in words how many mistakes are known of.

    Examples
    --------
    >>> told = {"alpha": None, "bad": 3, "known": 40, "pending": 9, "interval": (0.016, 0.204)}
    >>> so_far_words(told)
    'So far 3 of 40 known outcomes are bad: 7.5 % (95 % interval 1.6 % to 20.4 %); 9 are pending.'
    >>> apart = {"accepted": 2, "known": 1}
    >>> so_far_words({"known": 0, "pending": 4, "by_override": apart})
    'So far no outcome is known; 4 are pending. Not counted: 2 accepted with an override (1 known).'
    """
    return _without_overrides(so_far) + _overridden(so_far)


def _overridden(so_far: dict[str, Any]) -> str:
    """Say who is left out of the figures, if anybody is."""
    found = so_far.get("by_override", {"accepted": 0})
    if not found["accepted"]:
        return ""
    n, known = found["accepted"], found["known"]
    return f" Not counted: {n:,} accepted with an override ({known:,} known)."


def _without_overrides(so_far: dict[str, Any]) -> str:
    waiting = f"{so_far['pending']:,} {'is' if so_far['pending'] == 1 else 'are'} pending"
    if not so_far["known"]:
        return f"So far no outcome is known; {waiting}."
    low, high = map(percent, so_far["interval"])
    bound = "" if so_far["alpha"] is None else f", against a bound of {percent(so_far['alpha'])}"
    return (
        f"So far {so_far['bad']:,} of {so_far['known']:,} known outcomes are bad: "
        f"{percent(so_far['bad'] / so_far['known'])} (95 % interval {low} to {high}){bound}; "
        f"{waiting}."
    )


NO_SUMMARY = "everything is recorded and only this summary is missing"
SHOW_AGAIN = "the same command again shows it"


@contextmanager
def on_record(missing: str, then: str) -> Iterator[None]:
    """Say of what goes wrong from here on that nothing is lost."""
    try:
        yield
    except (InputError, OSError) as error:
        raise InputError(f"{missing} ({str(error).partition(';')[0]}); {then}.") from error


def so_far(found: Summary) -> dict[str, Any]:
    """Return how many mistakes are known of among the accepted of all rounds, but for overrides."""
    told = found.outcomes
    return {
        "alpha": found.promise.alpha,
        "bad": told.bad,
        "known": told.known,
        "pending": told.pending,
        "fdr": told.fdr,
        "interval": told.interval,
        "by_override": {"accepted": found.overridden.accepted, "known": found.overridden.known},
    }


TO_DO = (
    "Go on deciding, and observe outcomes as they come; whoever's never will can be withdrawn, and "
    "counts as bad. α and δ stay as they are: others need a program of their own (secondlook init)."
)
# What rounds say at their end: to whoever has no ledger, and on older ones. TO_DO stands for it.
_ADVICE = (
    "You can go on, or start anew with a larger alpha or delta.",
    "You can go on, accept nobody, raise alpha or raise delta.",
)


def waits(found: NextTested) -> str:
    """Return what the round waits for that enters the tests next, and when it does.

    Examples
    --------
    >>> from secondlook.ledger.summary import NextTested
    >>> waits(NextTested(1, 39, 0, matures=0, at_latest=13, n_known=317))
    'round 1 waits for 39 outcomes and enters the tests after round 13 at the latest'
    >>> waits(NextTested(1, 1, 0, matures=3, at_latest=None, n_known=0))
    'round 1 waits for 1 outcome and enters the tests once it is in, after round 3'
    >>> waits(NextTested(12, 133, 568, matures=0, at_latest=None, n_known=0))
    'round 12 waits for 133 outcomes, and 568 of rounds before it, and enters the tests once they
    are in'
    >>> waits(NextTested(4, 0, 0, matures=6, at_latest=16, n_known=94))
    'round 4 enters the tests after round 6'
    """
    n, before = found.awaited, found.awaited_before
    if not n and not before:
        return f"round {found.round} enters the tests after round {found.matures}"
    if not n:
        what = f"{outcomes_count(before)} of rounds before it"
    else:
        what = outcomes_count(n) + (f", and {before:,} of rounds before it," if before else "")
    if found.at_latest is not None:
        when = f"after round {found.at_latest} at the latest"
    else:
        when = "once it is in" if n + before == 1 else "once they are in"
        when += f", after round {found.matures}" if found.matures else ""
    return f"round {found.round} waits for {what} and enters the tests {when}"


def in_order(found: NextTested) -> str:
    """Return what is known and in no test, as a clause; nothing if nothing is.

    Examples
    --------
    >>> from secondlook.ledger.summary import NextTested
    >>> in_order(NextTested(1, 39, 0, matures=0, at_latest=13, n_known=317))
    '; rounds enter in their order, so 317 known outcomes are in no test yet'
    """
    n = found.n_known
    if not n:
        return ""
    known = "1 known outcome is" if n == 1 else f"{n:,} known outcomes are"
    return f"; rounds enter in their order, so {known} in no test yet"


def without_advice(message: str) -> str:
    """Return what a round said of itself, without what is to be done then.

    Examples
    --------
    >>> without_advice(f"Nothing is shown. {_ADVICE[0]} 3 people cannot be explored.")
    'Nothing is shown. 3 people cannot be explored.'
    """
    for advice in _ADVICE:
        message = message.replace(advice, "")
    return " ".join(message.split())


def outcomes_count(n: int) -> str:
    """Write a number of outcomes."""
    return "1 outcome" if n == 1 else f"{n:,} outcomes"


CAUTION = (
    "Outcomes that come late are not a random part of all, so an interval is about the outcomes "
    "known so far."
)
_COUNTED = ("n_accepted", "n_people")


def attention(found: Summary, late: float) -> list[str]:
    """Return what somebody should look at, one sentence each, the most urgent first.

    Parameters
    ----------
    found
        How a program stands.
    late
        Days after which an outcome that is still to come is late.
    """
    return [
        *_mistakes(found),
        *_unselective(found),
        *_unexplored(found),
        *_dropped(found),
        *_unlike_history(found),
        *_late(found, late),
        *_unpromised(found),
        *_expired(found),
    ]


def _mistakes(found: Summary) -> Iterator[str]:
    alpha, outcomes = found.promise.alpha, found.outcomes
    if alpha is None or not outcomes.fdr > alpha:
        return
    sure = outcomes.interval[0] > alpha
    weight = (
        "all of the interval is above, so this is no chance of the draw"
        if sure
        else "the interval reaches below it"
    )
    yield (
        f"More mistakes than the bound: {outcomes.bad:,} bad of {outcomes.known:,} outcomes known "
        f"are {share(outcomes.fdr)}, and α is {alpha:g}; {weight}."
    )


def _unselective(found: Summary) -> Iterator[str]:
    """Say so if nobody or everybody was accepted so far, or nearly so in the last round only.

    ``far_fewer`` says what nearly is: by the accepted, or by the rejected.
    """
    if not found.rounds:
        return
    from secondlook.ledger.summary import far_fewer  # noqa: PLC0415 - an extra

    *before, last = found.rounds
    accepted, people = (sum(getattr(one, key) for one in before) for key in _COUNTED)
    n = people + last.n_people
    if not last.n_accepted and not accepted:
        yield f"Nobody was accepted of {n:,} people so far, so no outcome will be known."
    elif found.accepts_everybody:
        usual = found.history.accepted / found.n_history
        yield (
            f"Everybody was accepted of {n:,} people so far, and of the history {share(usual)}: "
            f"look at columns whose unit or meaning changed, unless so many are good."
        )
    elif people:
        usual, taken = accepted / people, last.n_accepted
        if far_fewer(taken, last.n_people, usual) or far_fewer(
            last.n_people - taken, last.n_people, 1 - usual
        ):
            yield (
                f"The last round accepted {taken:,} of {last.n_people:,} people, and those "
                f"before {share(usual)} of theirs: look at its file first, at columns whose unit "
                f"or meaning changed, before anybody is told."
            )


def _unexplored(found: Summary) -> Iterator[str]:
    """Say so if the last round explored nobody though its budget had room for somebody."""
    if not found.rounds:
        return
    last = found.rounds[-1]
    known = sum(last.noted("n_exploit_region") or [last.n_people])
    if not last.n_explored and last.budget >= 1 and last.n_people > known:
        said = " ".join(text for text in last.noted("note") if text)
        yield (
            f"The last round explored nobody, though its budget allowed {last.budget:,.0f} of "
            f"{last.n_people - known:,} people of whom too little is known. {said}"
        ).strip()


def _dropped(found: Summary) -> Iterator[str]:
    dropped = [one for one in found.changes if one.says.get("what") == "dropped"]
    if dropped:
        last = dropped[-1]
        after = "a correction" if last.says["why"] == "correction" else str(last.says["why"])
        yield (
            f"Certificates were dropped {times(len(dropped))}, last after round "
            f"{last.says['round']} by {after} (entry {last.entry}), and testing began again."
        )


def _unlike_history(found: Summary) -> Iterator[str]:
    """Say which batches somebody decided although their numbers were not like the history's."""
    rounds = [one for one in found.rounds if one.about.get("unlike_history")]
    if rounds:
        from secondlook.cli.input_checks import unlike  # noqa: PLC0415 - slow to import

        last = rounds[-1]
        which = ", ".join(unlike(row) for row in last.about["unlike_history"])
        many = "1 batch was" if len(rounds) == 1 else f"{len(rounds):,} batches were"
        yield (
            f"{many} decided by --unlike-history although numbers were not like the history's, "
            f"last {last.batch!r} (round {last.round}, entry {last.entry}): {which}."
        )


def _late(found: Summary, late: float) -> Iterator[str]:
    waiting = found.waiting(late)
    if waiting.n:
        who = "1 accepted person waits" if waiting.n == 1 else f"{waiting.n:,} accepted people wait"
        yield (
            f"{who} for an outcome since {late:g} days or longer, the oldest since "
            f"{days(waiting.oldest)}: observe what is known, and withdraw whose outcome will "
            f"never be."
        )


def _unpromised(found: Summary) -> Iterator[str]:
    if not found.rounds:
        yield "No batch has been decided yet."
        return
    last, n = found.rounds[-1], len(found.rounds)
    pilots = sum("pilot" in one.noted("status") for one in found.rounds)
    past = sum(False in one.noted("calibrated") for one in found.rounds)
    if "pilot" in last.noted("status"):
        said = without_advice(next((text for text in last.noted("message") if text), ""))
        were = f"The last round was a pilot and carries no promise ({pilots} of {n} were)."
        yield " ".join(one for one in (were, *_waiting(found), said, TO_DO) if one)
        yield from _corrected_since(found)
    if False in last.noted("calibrated"):
        yield (
            f"The last round rests on the history and not on outcomes of our own decisions "
            f"({past} of {n} do), so its estimates are not to be trusted."
        )
    if found.promise.problem:
        yield f"α and what decisions are worth are not shown: {found.promise.problem}"


def _waiting(found: Summary) -> Iterator[str]:
    """Say what the tests of each certificate that is missing wait for."""
    for one in found.rounds[-1].records:
        next_in = found.next_tested(one.get("group")) if one.get("status") == "pilot" else None
        if next_in is not None:
            whom = "By now" if one.get("group") is None else f"For {one['group']}, by now"
            yield f"{whom} {waits(next_in)}{in_order(next_in)}."


def _corrected_since(found: Summary) -> Iterator[str]:
    """Say of a pilot's evidence that outcomes were corrected after it was told."""
    last = found.rounds[-1]
    n = sum(one.n for one in found.changes if one.kind == "correction" and one.entry > last.entry)
    if n and last.noted("log_wealth"):
        were = "1 outcome was" if n == 1 else f"{n:,} outcomes were"
        yield (
            f"Since that round {were} corrected: if it had been tested on them, testing begins "
            f"again with the next one, and no evidence of before counts."
        )


def began_again(found: Summary, group: Any = None) -> list[tuple[int, str]]:
    """Return with which rounds testing began again, and after what, for everybody or a group.

    Parameters
    ----------
    found
        How a program stands.
    group
        A group that has a certificate of its own; None for everybody or any.
    """
    records: dict[str, list[dict[str, Any]]] = {}
    for one in found.rounds:
        for record in one.records:
            if "log_wealth" in record and group in (None, record["group"]):
                records.setdefault(str(record["group"]), []).append(record)
    if not records:
        return []
    from secondlook.lab.experiments.certificates import restarts  # noqa: PLC0415 - slow to import

    numbers = sorted({t for rounds in records.values() for t in restarts(rounds)})
    return [(t, _after_what(found, t)) for t in numbers]


def _after_what(found: Summary, round: int) -> str:
    """Return what made testing begin again with a round: evidence goes with a certificate, or not.

    Without a certificate nothing but a correction can end it.
    """
    entry = {one.round: one.entry for one in found.rounds}
    between = [one for one in found.changes if entry.get(round - 1, 0) < one.entry < entry[round]]
    why = {one.says["why"] for one in between if one.says.get("what") == "dropped"}
    return "a correction" if why <= {"correction"} else "outcomes that spoke against it"


def _expired(found: Summary) -> Iterator[str]:
    if found.n_expired:
        yield (
            f"The time for which data are kept is over for "
            f"{people(found.n_expired)}: erase them, or hold those who must stay."
        )
