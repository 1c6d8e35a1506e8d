"""What a program earned against today's policy, in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fairchance.words import amount, counted

if TYPE_CHECKING:
    from fairchance.ledger.money import Earned, Money

__all__ = ["MONEY_TITLES", "added_text", "money_note", "money_rows", "money_verdict"]

MONEY_TITLES = ("loans", "program", "today's policy", "difference", "interval", "pending")
_UNKNOWN = {
    "no_complete_round": "no round has all of its outcomes yet",
    "not_identified": "the program hardly ever accepts some applicants whom today's policy accepts",
    "no_rejections": (
        "the lender's own decisions are not on record (incumbent), and the history has no rejected "
        "applicants"
    ),
    "open_history": (
        "the lender's own decisions are not on record (incumbent), and outcomes of the history are "
        "pending"
    ),
}
_PAST = (
    "The lender's own decisions are not on record (incumbent). Instead, today's policy is taken to "
    "earn per applicant what the history earned; that is a figure of the past and of other "
    "applicants, and has no interval."
)
_BESIDE = (
    "Rounds count once all outcomes before and in them are known; withdrawn outcomes count as bad. "
    "The intervals hold at all times, with a probability of 95 % each."
)


def money_verdict(money: Money, currency: str = "") -> str:
    """Return what the program earned beyond today's policy, in a sentence.

    Examples
    --------
    >>> from fairchance.ledger.money import Earned, Money
    >>> earned = Earned("", 900, 412, 390, 61, 5200.0, 4000.0, 1200.0, -300.0, 2500.0)
    >>> print(money_verdict(Money("incumbent", "month", earned, ()), "€"))
    The program earned €1,200 more than today's policy would have (−€300 to €2,500), on 412 loans;
    61 outcomes are pending.
    """
    whole = money.whole
    pending = counted(whole.n_pending, "outcome is", "outcomes are") + " pending."
    if math.isnan(whole.added):
        known = "" if math.isnan(whole.low) else f", but it is within {_interval(whole, currency)}"
        return (
            f"What the program earned beyond today's policy is not known{known}: "
            f"{_UNKNOWN[money.reason]}; {pending}"
        )
    if money.reason == "shadow":
        return f"Today's policy decided on all, so nothing was earned beyond it; {pending}"
    more = "less" if whole.added < 0 else "more"
    interval = "" if math.isnan(whole.low) else f" ({_interval(whole, currency)})"
    than = "today's policy would have" if money.against == "incumbent" else "at the past's rate"
    return (
        f"The program earned {amount(abs(whole.added), currency)} {more} than {than}"
        f"{interval}, on {counted(whole.n_loans, 'loan')}; {pending}"
    )


def added_text(earned: Earned, currency: str = "") -> str:
    """Return the difference with its interval, for a cell."""
    interval = "" if math.isnan(earned.low) else f" ({_interval(earned, currency)})"
    return amount(earned.added, currency) + interval


def money_note(money: Money) -> str:
    """Return what the comparison rests on."""
    return _BESIDE if money.against == "incumbent" else _PAST if money.against == "history" else ""


def money_rows(money: Money, currency: str = "") -> list[list[str]]:
    """Return the cells of each period, and of all of them: the period, then ``MONEY_TITLES``."""
    return [
        [
            earned.period or "all",
            f"{earned.n_loans:,}",
            amount(earned.program, currency),
            amount(earned.today, currency),
            amount(earned.added, currency),
            "–" if math.isnan(earned.low) else _interval(earned, currency),
            f"{earned.n_pending:,}",
        ]
        for earned in (*money.periods, money.whole)
    ]


def _interval(earned: Earned, currency: str) -> str:
    return f"{amount(earned.low, currency)} to {amount(earned.high, currency)}"
