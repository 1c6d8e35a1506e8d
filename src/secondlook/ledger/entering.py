"""Which round of a certified program enters the tests next, and what it waits for.

Rounds enter in their order, each once so many others have been decided after it (maturity) and all
its outcomes are in, or so many that what is missing counts as bad (patience).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from secondlook.ledger.summary import RoundSummary, Summary

__all__ = ["BEGAN_AGAIN", "Entering", "entering"]

# How the message of a record begins if its tests are new: the round that they began with.
BEGAN_AGAIN = re.compile(r"Testing began again with round (\d+)[^.]*")


@dataclass(frozen=True)
class Entering:
    """The first round of those that count which is not in the tests.

    Attributes
    ----------
    round
        Its number.
    awaited, awaited_before
        Outcomes that it waits for: its own, and those of rounds before it, which enter first.
    matures
        It cannot enter before the round of this number is decided; 0 if it could now.
    at_latest
        It enters when this round is decided, whatever has come by then; None if never so.
    n_known
        Outcomes that are known, of it and later rounds, and in no test yet.
    """

    round: int
    awaited: int
    awaited_before: int
    matures: int
    at_latest: int | None
    n_known: int


def entering(found: Summary, group: Any = None) -> Entering | None:
    """Return which round enters the tests next; None if all are in them, or nobody can say.

    Nobody can from a correction until the next round, whose record tells if testing began again.

    Parameters
    ----------
    found
        How a certified program stands.
    group
        A group that has a certificate of its own, as its record names it; None for everybody.
    """
    maturity, patience = found.promise.maturity, found.promise.patience
    if found.promise.delta is None or maturity is None or not found.rounds:
        return None
    name = None if group is None else _named(group)
    if name is not None and not any(one.awaited_by_group for one in found.rounds):
        return None  # groups were not counted
    if _may_begin_again(found, group):
        return None
    n, since = len(found.rounds), _began(found.rounds[-1], group)
    waiting = [
        one
        for one in found.rounds
        if n - one.round < maturity
        or (_awaited(one, name) and (patience is None or n - one.round < patience))
    ]
    # Nothing enters before a round that waits.
    first = max(since, waiting[0].round) if waiting else n + 1
    if first > n:
        return None
    mine = found.rounds[first - 1]
    matures = first + maturity
    return Entering(
        first,
        _awaited(mine, name),
        sum(_awaited(one, name) for one in waiting if one.round < first),
        matures if matures > n else 0,
        None if patience is None else first + max(maturity, patience),
        sum(one.outcomes.known for one in found.rounds[first - 1 :]) if name is None else 0,
    )


def _awaited(one: RoundSummary, group: str | None) -> int:
    return one.awaited if group is None else one.awaited_by_group.get(group, 0)


def _named(group: Any) -> str:
    return ", ".join(map(str, group)) if isinstance(group, list | tuple) else str(group)


def _may_begin_again(found: Summary, group: Any) -> bool:
    """Say whether something was recorded since the last round after which its tests may not go on.

    Whether what was corrected had been tested is not on record.
    """
    since = [one for one in found.changes if one.entry > found.rounds[-1].entry]
    return any(
        one.kind == "correction"
        or (one.says.get("what") == "dropped" and one.says.get("group") == group)
        for one in since
    )


def _began(last: RoundSummary, group: Any) -> int:
    """Return the first round that counts in the tests of now, by what the last one noted."""
    said = [one["message"] for one in last.records if one.get("group") == group]
    began = [BEGAN_AGAIN.match(one) for one in said]
    return max((int(one[1]) for one in began if one), default=1)
