"""What ``decide`` and ``observe`` say when they are done."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console

from secondlook.cli.files.refusals import Refusals
from secondlook.cli.programs.waiting_words import in_order, waits
from secondlook.core.budget import FdrBudget

if TYPE_CHECKING:  # an extra, and slow to import
    from secondlook.ledger.entering import Entering
    from secondlook.ledger.summary import Summary

__all__ = [
    "alpha_and_delta",
    "commonest",
    "decided_words",
    "how_many",
    "overridden_words",
    "promise",
    "reason_counts",
    "refused_words",
    "say",
    "so_far_words",
    "told_words",
]

_REASONS = 5  # named in the summary; the file has all of them
_NAMED = 3  # in a sentence
# What a round's message says if outcomes did not help.
_DO_NOT_SPEAK = "outcomes so far do not speak for it"


def say(lines: Iterable[str], *, beside_table: bool = False) -> None:
    """Print lines; on standard error if a table goes to standard output."""
    console = Console(stderr=beside_table)
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False, markup=False, emoji=False)


def alpha_and_delta(classifier: Any) -> tuple[float | None, float | None]:
    """Return a classifier's bound on mistakes, and the chance of breaking it if it has one."""
    if hasattr(classifier, "delta"):
        return classifier.alpha, classifier.delta
    budget = getattr(classifier, "budget", None) or FdrBudget()
    return getattr(budget, "alpha", None), None


def promise(
    rounds: Sequence[dict[str, Any]],
    alpha: float | None,
    delta: float | None,
    found: Summary | None = None,
) -> str:
    """Return in words what a round promises, from its record.

    Parameters
    ----------
    rounds
        What the classifier noted, one for each certificate.
    alpha, delta
        What is to be promised.
    found
        How the program stands, which tells what the tests of a pilot wait for.

    Examples
    --------
    >>> pilot = {"status": "pilot", "group": None, "more_outcomes": 120.4, "message": ""}
    >>> promise([pilot], 0.15, 0.1)
    'Pilot: no promise yet; about 121 more outcomes are needed for one.'
    >>> promise([pilot | {"more_outcomes": float("inf")}], 0.15, 0.1)
    'Pilot: no promise yet, and too few outcomes to say how many a promise needs.'
    >>> again = "Testing began again with round 7, and 9 outcomes are in the tests since. No rule …"
    >>> promise([pilot | {"message": again}], 0.15, 0.1)
    'Pilot: no promise until there is new evidence. Testing began again with round 7, and 9 outcomes
    are in the tests since; about 121 more outcomes are needed for a promise.'
    >>> promise([{"status": "certified", "group": "B", "share": 0.4, "message": ""}], 0.15, 0.1)
    'Certified for B: with confidence 90 %, at most 15 % bad under the rule of this round.'
    """
    words = [
        _certificate(one, alpha, delta, found) if "status" in one else _estimate(one, alpha)
        for one in rounds
    ]
    return " ".join(dict.fromkeys(words))


def _certificate(
    one: dict[str, Any], alpha: float | None, delta: float | None, found: Summary | None
) -> str:
    whom = "" if one["group"] is None else f" for {one['group']}"
    if one["status"] == "certified":
        sure = f"with confidence {_percent(1 - (delta or 0))}, at most {_percent(alpha or 0)} bad"
        words = f"Certified{whom}: {sure} under the rule of this round. {one['message']}"
        return words.strip()
    barred = ""
    if one.get("n_unreachable"):
        barred = f" {one['n_unreachable']:,} people cannot be explored for the limits set."
    from secondlook.ledger.entering import BEGAN_AGAIN, entering  # noqa: PLC0415 - an extra

    again = BEGAN_AGAIN.match(one["message"])
    next_in = None if found is None else entering(found, one["group"])
    if again is None:
        words = f"no promise yet{_more_outcomes(one, 'one', ', and too few outcomes', next_in)}"
    else:
        needed = _more_outcomes(one, "a promise", "; that is too few", next_in)
        words = f"no promise until there is new evidence. {again[0]}{needed}"
    return f"Pilot{whom}: {words}.{barred}"


def _more_outcomes(one: dict[str, Any], goal: str, few: str, next_in: Entering | None) -> str:
    """Say how many more outcomes a promise needs, or why nobody can say, as the end of a clause.

    What is known and not in the tests is told with what they wait for.
    """
    more = float(one["more_outcomes"])
    waiting = "" if next_in is None else f"; {waits(next_in)}{in_order(next_in)}"
    known = waiting if next_in is not None and next_in.n_known else ""
    if math.isfinite(more):
        return f"; about {math.ceil(more):,} more outcomes are needed for {goal}{known}"
    if _DO_NOT_SPEAK in one["message"]:
        why = f"; outcomes so far do not speak for {goal}, so nobody can say how many it needs"
        return f"{why}{known}"
    return waiting or f"{few} to say how many a promise needs"


def _estimate(one: dict[str, Any], alpha: float | None) -> str:
    bound = "" if alpha is None else f" of {_percent(alpha)}"
    estimated = float(one["estimated_fdr"])
    if not math.isfinite(estimated):
        held = f"No certificate, and no estimate yet to compare with the bound{bound}."
    else:
        rests = "" if one["calibrated"] else ", and it rests on the history"
        held = (
            f"No certificate: about {_percent(estimated)} bad are expected among the accepted, "
            f"against a bound{bound}; an estimate from {one['n_outcomes']:,} outcomes{rests}."
        )
    return f"{held} {one['note']}".strip()


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def reason_counts(refusals: Refusals, path: str) -> dict[str, Any]:
    """Return how many rows were refused, for what cause, and where they are."""
    return {
        "rows": len(refusals),
        "file": path if len(refusals) else None,
        "reasons": {one.reason: one.n for one in refusals.causes()},
    }


def commonest(refusals: Refusals, most: int = _NAMED, *, apart: str | None = None) -> str:
    """Return the commonest reasons of refused rows, as part of a sentence.

    ``apart`` is how reasons begin that are left out.

    Examples
    --------
    >>> import pyarrow as pa
    >>> refused = Refusals(pa.table({"age": [None, 31, None]}), ["a", "b", "c"])
    >>> refused.add([0, 2], "'age' is missing")
    >>> commonest(refused)
    "most often because 'age' is missing (2 rows)"
    """
    causes = refusals.causes()
    found = [one for one in causes if apart is None or not one.reason.startswith(apart)][:most]
    return "most often because " + ", then ".join(f"{why} ({_rows(n)})" for why, n in found)


def refused_words(refused: dict[str, Any]) -> list[str]:
    """Return what was refused in words, the most frequent reasons first."""
    if not refused["rows"]:
        return []
    reasons = list(refused["reasons"].items())
    place = "standard output" if refused["file"] == "-" else refused["file"]
    lines = [f"{_rows(refused['rows'])} refused, with the reasons in {place}:"]
    lines += [f"  {n:,} × {reason}" for reason, n in reasons[:_REASONS]]
    rest = sum(n for _, n in reasons[_REASONS:])
    return [*lines, f"  {rest:,} for other reasons"] if rest else lines


def decided_words(told: dict[str, Any]) -> list[str]:
    """Return a batch's decisions in words."""
    lines = [
        f"Round {told['round']}: {told['accepted']:,} of {told['people']:,} people accepted, "
        f"{told['exploited']:,} in the exploit region and {told['explored']:,} explored."
    ]
    before = told["recorded_before"]
    if before is not None:
        when = before["at"][:19].replace("T", " ")
        lines.insert(
            0,
            f"Recorded before as batch {told['batch']} (by {before['by']} at {when} UTC), answered "
            f"from the record.",
        )
    else:
        lines.append(f"Recorded as batch {told['batch']}.")
    lines.append(told["promise"])
    if told["out"] != "-":
        lines.append(f"Decisions: {told['out']}")
    return lines


def overridden_words(since: dict[str, int]) -> list[str]:
    """Say of a batch that is answered from the record whom people decided on otherwise since.

    Examples
    --------
    >>> print(*overridden_words({"accepted": 0, "rejected": 1}))
    1 of these decisions was overridden by hand since (0 accepted, 1 rejected), and the answer has
    it as it was recorded; secondlook export has what holds now.
    """
    n = sum(since.values())
    if not n:
        return []
    were, them = ("was", "it as it was") if n == 1 else ("were", "them as they were")
    return [
        f"{n:,} of these decisions {were} overridden by hand since ({since['accepted']:,} accepted,"
        f" {since['rejected']:,} rejected), and the answer has {them} recorded; secondlook export "
        f"has what holds now."
    ]


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
    low, high = map(_percent, so_far["interval"])
    bound = "" if so_far["alpha"] is None else f", against a bound of {_percent(so_far['alpha'])}"
    return (
        f"So far {so_far['bad']:,} of {so_far['known']:,} known outcomes are bad: "
        f"{_percent(so_far['bad'] / so_far['known'])} (95 % interval {low} to {high}){bound}; "
        f"{waiting}."
    )


def told_words(told: dict[str, Any]) -> list[str]:
    """Return in words what was new in a file of outcomes."""
    new = told["recorded"]
    parts = [f"{_outcomes(new['good'] + new['bad'])} recorded"]
    if new["good"] + new["bad"]:
        parts[0] += f" ({new['good']:,} good, {new['bad']:,} bad)"
    for n, words in (
        (new["indeterminate"], "withdrawn"),
        (told["corrections"], "corrected"),
        (told["known_already"], "known already"),
    ):
        if n:
            parts.append(f"{n:,} {words}")
    lines = [", ".join(parts) + ".", *_empty_words(told["empty"])]
    if told["corrections"]:
        lines.append(_corrected_words(told["corrected"]))
        lines.append(
            "Corrections are kept beside what was told before, with who told them and when; "
            "decisions already made stay as they are."
        )
    lines += _began_again_words(told["testing_began_again"], told["certificates_dropped"])
    if told["ignored_columns"]:
        lines.append(f"Not read: the columns {', '.join(map(repr, told['ignored_columns']))}.")
    return lines


def _began_again_words(found: Sequence[dict[str, Any]], n_dropped: int) -> list[str]:
    """Return what outcomes cost a certificate or a pilot, if testing began again.

    Examples
    --------
    >>> one = {"group": None, "round": 7, "n_outcomes": 526, "after": "correction"}
    >>> print(*_began_again_words([one], 0))
    Testing begins again with round 7: it rested on outcomes that were corrected, so the evidence of
    526 outcomes is given up, and only rounds from then on count.
    """
    lines = []
    corrected = any(one["after"] == "correction" for one in found)
    if n_dropped and corrected:
        lines.append(
            "What had been certified rested on outcomes that were corrected, and holds no longer: "
            "rounds are pilots until there is new evidence."
        )
    elif n_dropped:
        lines.append(
            "Outcomes of certified rounds speak against what had been certified, and it holds no "
            "longer: rounds are pilots until there is new evidence."
        )
    for one in found:
        whom = "" if one["group"] is None else f" for {one['group']}"
        n = f"{one['n_outcomes']:,} outcome{'' if one['n_outcomes'] == 1 else 's'}"
        why = f"the evidence of {n} is given up"
        if one["after"] == "correction":
            why = f"it rested on outcomes that were corrected, so {why}"
        lines.append(
            f"Testing begins again{whom} with round {one['round']}: {why}, and only rounds from "
            f"then on count."
        )
    return lines


def _corrected_words(found: Sequence[dict[str, Any]]) -> str:
    """Return whose outcome was corrected, the first few by name.

    Examples
    --------
    >>> one = {"id": "a1", "before": "good", "now": "bad", "history": True}
    >>> _corrected_words([one])
    "Corrected: 'a1' was good and is bad (history)."
    """
    shown = [
        f"{one['id']!r} was {one['before']} and is {one['now']}"
        + (" (history)" if one["history"] else "")
        for one in found[:_NAMED]
    ]
    more = len(found) - len(shown)
    past = sum(one["history"] for one in found[_NAMED:])
    rest = f"; and {more:,} more" if more else ""
    return f"Corrected: {'; '.join(shown)}{rest}{f', {past:,} of the history' if past else ''}."


def _empty_words(empty: dict[str, int]) -> list[str]:
    """Return what an empty outcome means for whom, if there are any.

    Examples
    --------
    >>> _empty_words({"not_yet_known": 3, "known_already": 1, "not_accepted": 0})
    ['Empty for 4 people, and nothing was recorded for them: 3 not yet known, 1 known and left so.']
    """
    n = sum(empty.values())
    if not n:
        return []
    words = {
        "not_yet_known": "not yet known",
        "known_already": "known and left so",
        "not_accepted": "not accepted",
    }
    whom = how_many(n)
    parts = ", ".join(f"{empty[key]:,} {text}" for key, text in words.items() if empty[key])
    return [f"Empty for {whom}, and nothing was recorded for them: {parts}."]


def _outcomes(n: int) -> str:
    return f"{n:,} outcome" if n == 1 else f"{n:,} outcomes"


def _rows(n: int) -> str:
    return f"{n:,} row" if n == 1 else f"{n:,} rows"


def how_many(n: int) -> str:
    """Write a number of people.

    Examples
    --------
    >>> how_many(1), how_many(1200)
    ('1 person', '1,200 people')
    """
    return "1 person" if n == 1 else f"{n:,} people"
