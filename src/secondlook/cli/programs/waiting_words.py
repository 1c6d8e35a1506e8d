"""What the tests of a certificate wait for, in words, and what somebody can do meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # an extra, and slow to import
    from secondlook.ledger.entering import Entering

__all__ = ["TO_DO", "in_order", "waits", "without_advice"]

TO_DO = (
    "Go on deciding, and observe outcomes as they come; whoever's never will can be withdrawn, and "
    "counts as bad. α and δ stay as they are: others need a program of their own (secondlook init)."
)
# What rounds say at their end: to whoever has no ledger, and on older ones. TO_DO stands for it.
_ADVICE = (
    "You can go on, or start anew with a larger alpha or delta.",
    "You can go on, accept nobody, raise alpha or raise delta.",
)


def waits(found: Entering) -> str:
    """Return what the round waits for that enters the tests next, and when it does.

    Examples
    --------
    >>> from secondlook.ledger.entering import Entering
    >>> waits(Entering(1, 39, 0, matures=0, at_latest=13, n_known=317))
    'round 1 waits for 39 outcomes and enters the tests after round 13 at the latest'
    >>> waits(Entering(1, 1, 0, matures=3, at_latest=None, n_known=0))
    'round 1 waits for 1 outcome and enters the tests once it is in, after round 3'
    >>> waits(Entering(12, 133, 568, matures=0, at_latest=None, n_known=0))
    'round 12 waits for 133 outcomes, and 568 of rounds before it, and enters the tests once they
    are in'
    >>> waits(Entering(4, 0, 0, matures=6, at_latest=16, n_known=94))
    'round 4 enters the tests after round 6'
    """
    n, before = found.awaited, found.awaited_before
    if not n and not before:
        return f"round {found.round} enters the tests after round {found.matures}"
    if not n:
        what = f"{_outcomes(before)} of rounds before it"
    else:
        what = _outcomes(n) + (f", and {before:,} of rounds before it," if before else "")
    if found.at_latest is not None:
        when = f"after round {found.at_latest} at the latest"
    else:
        when = "once it is in" if n + before == 1 else "once they are in"
        when += f", after round {found.matures}" if found.matures else ""
    return f"round {found.round} waits for {what} and enters the tests {when}"


def in_order(found: Entering) -> str:
    """Return what is known and in no test, as a clause; nothing if nothing is.

    Examples
    --------
    >>> from secondlook.ledger.entering import Entering
    >>> in_order(Entering(1, 39, 0, matures=0, at_latest=13, n_known=317))
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


def _outcomes(n: int) -> str:
    return "1 outcome" if n == 1 else f"{n:,} outcomes"
