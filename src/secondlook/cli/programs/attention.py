"""What needs somebody's attention in a program, most urgent first; and numbers in words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from secondlook.cli.programs.waiting_words import TO_DO, in_order, waits, without_advice

if TYPE_CHECKING:  # an extra, and slow to import
    from secondlook.ledger.summary import Outcomes, Summary

__all__ = [
    "CAUTION",
    "amount",
    "attention",
    "began_again",
    "days",
    "interval",
    "people",
    "share",
    "times",
]

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
        from secondlook.cli.programs.beyond import unlike  # noqa: PLC0415 - slow to import

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
    from secondlook.ledger.entering import entering  # noqa: PLC0415 - an extra

    for one in found.rounds[-1].records:
        next_in = entering(found, one.get("group")) if one.get("status") == "pilot" else None
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


def share(value: float) -> str:
    """Write a share with three decimals.

    Examples
    --------
    >>> share(0.15), share(math.nan)
    ('0.150', '–')
    """
    return "–" if math.isnan(value) else f"{value:.3f}"


def interval(outcomes: Outcomes) -> str:
    """Write the exact 95 % interval of a share of bad.

    Examples
    --------
    >>> from secondlook.ledger.summary import Outcomes
    >>> interval(Outcomes(37, 3, 0, 0))
    '0.016–0.204'
    """
    if not outcomes.known:
        return "–"
    low, high = outcomes.interval
    return f"{share(low)}–{share(high)}"


def people(n: int) -> str:
    """Write a number of people.

    Examples
    --------
    >>> people(1), people(1200)
    ('1 person', '1,200 people')
    """
    return "1 person" if n == 1 else f"{n:,} people"


def days(value: float) -> str:
    """Write an age in days.

    Examples
    --------
    >>> days(0.4), days(1.2), days(181.9), days(math.nan)
    ('0 days', '1 day', '181 days', '–')
    """
    if math.isnan(value):
        return "–"
    whole = math.floor(value)
    return "1 day" if whole == 1 else f"{whole:,} days"


def amount(value: float) -> str:
    """Write a sum.

    Examples
    --------
    >>> amount(-1234.5), amount(0.25), amount(math.nan)
    ('−1,234.5', '0.25', '–')
    """
    if math.isnan(value):
        return "–"
    return f"{round(value, 2):,.10g}".replace("-", "−")


def times(n: int) -> str:
    """Write how often something happened.

    Examples
    --------
    >>> times(1), times(3)
    ('once', '3 times')
    """
    return "once" if n == 1 else f"{n:,} times"
