"""What a program earned, and what the lender's own decisions would have earned, by month.

Rounds count once all their outcomes are known, in their order. ``audit.added_profit`` estimates the
difference; an outcome that will never be known counts as bad there, and so it does here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from fairchance.audit.evaluate import added_profit
from fairchance.core.utility import Utility
from fairchance.ledger.base import Entry
from fairchance.ledger.decision_log import decision_log_of
from fairchance.ledger.sql import LedgerReader

if TYPE_CHECKING:
    from fairchance.audit.log import DecisionLog
    from fairchance.ledger.summary import Outcomes, RoundSummary

__all__ = ["Earned", "Money", "money_of", "periods_of"]

Against = Literal["incumbent", "history", "nothing"]
Axis = Literal["month", "round"]
_MONTH = re.compile(r"\d{4}-(0[1-9]|1[0-2])(?!\d)")


@dataclass(frozen=True)
class Earned:
    """What was earned in some rounds.

    Attributes
    ----------
    period
        The month or the number of the round; empty for all rounds.
    n_people, n_loans
        Applicants and loans of the rounds that count.
    n_known, n_pending
        Known and pending outcomes, also of rounds that do not count yet.
    program, today
        What the program earned, and what today's policy would have; NaN if unknown.
    added, low, high
        The difference and its interval, which is right at all times; NaN if unknown. In shadow
        mode the difference is 0 for certain and has no interval, so that of several rounds is of
        the others. If no round counts yet, the interval is of all rounds, whatever pending
        outcomes become.
    """

    period: str
    n_people: int
    n_loans: int
    n_known: int
    n_pending: int
    program: float
    today: float = math.nan
    added: float = math.nan
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True)
class Money:
    """What a program earned against today's policy.

    Attributes
    ----------
    against
        ``"incumbent"``, the decisions of the lender's own process; ``"history"``, what the history
        earned per applicant, if there are none; or ``"nothing"``.
    axis
        Whether periods are ``"month"`` or ``"round"``.
    whole, periods
        All rounds, and each period.
    reason
        Why there is no difference: ``"shadow"`` (today's policy decided on all), which makes it 0;
        ``"no_complete_round"``, ``"not_identified"`` (the program hardly ever accepts some whom
        today's policy accepts), ``"no_rejections"`` or ``"open_history"`` (of the history), with
        which it is unknown; empty otherwise.
    """

    against: Against
    axis: Axis
    whole: Earned
    periods: tuple[Earned, ...]
    reason: str = ""


def periods_of(rounds: Sequence[RoundSummary]) -> tuple[Axis, list[str]]:
    """Return the month of each round, or its number if all would be of one month.

    Months are those of the names of batches if all have one, else of the times when rounds
    were opened.
    """
    named = [_MONTH.match(row.batch) for row in rounds]
    months = [name[0] for name in named if name is not None]
    if len(months) < len(rounds):
        months = [row.began[:7] for row in rounds]
        if len({*months}) < 2:
            return "round", [f"{row.round}" for row in rounds]
    return "month", months


def money_of(
    reader: LedgerReader,
    settings: Entry,
    rounds: Sequence[RoundSummary],
    utility: Utility | None,
    n_history: int,
    history: Outcomes,
) -> Money | None:
    """Return what a program earned; None without applicants, or without a utility."""
    rounds = [row for row in rounds if row.n_people]  # a round may be closed before anybody applies
    if utility is None or not rounds:
        return None
    axis, names = periods_of(rounds)
    periods = {row.round: name for row, name in zip(rounds, names, strict=True)}
    log = None
    if any(row.n_incumbent is not None for row in rounds):
        log = decision_log_of(reader, settings, groups=False, features=False)
        rounds = [row for row in rounds if row.n_incumbent is not None]
    last = next((row.round for row in rounds if row.outcomes.pending), math.inf)
    rate, reason = _past_rate(utility, n_history, history)

    def earned(period: str, inside: Sequence[RoundSummary]) -> tuple[Earned, str]:
        known, pending = (
            sum(getattr(row.outcomes, name) for row in inside) for name in ("known", "pending")
        )
        inside = [row for row in inside if row.round < last]
        people = sum(row.n_people for row in inside)
        good, loans = sum(row.outcomes.good for row in inside), sum(map(_loans, inside))
        program = utility.gain_good * good + utility.gain_bad * (loans - good)
        numbers = (period, people, loans, known, pending, program)
        if not inside:
            return Earned(*numbers[:5], math.nan), "no_complete_round"
        if log is None:
            return Earned(*numbers, rate * people, program - rate * people), reason
        return _beside(log, inside, utility, Earned(*numbers))

    whole, why = earned("", rounds)
    moved = _moved(rounds)
    if log is not None and not moved:
        whole, why = replace(whole, added=0.0), "shadow"
    elif log is not None and rounds[0].round == last and whole.n_known:
        some = log.select(np.isin(log.round, moved))
        if some.known.any():
            found, n = added_profit(some, utility=utility, pending="worst"), len(some)
            whole = replace(whole, low=n * found.low, high=n * found.high)
    names = list(dict.fromkeys(periods[row.round] for row in rounds))
    against: Against = "incumbent" if log is not None else "nothing" if reason else "history"
    parts = [
        earned(name, [row for row in rounds if periods[row.round] == name])[0] for name in names
    ]
    return Money(against, axis, whole, tuple(parts), why)


def _moved(rounds: Sequence[RoundSummary]) -> list[int]:
    """Return the rounds in which the program decided on somebody, which are not in shadow."""
    return [row.round for row in rounds if row.ramp]


def _loans(row: RoundSummary) -> int:
    """Return the loans of a round; one that a person refused counts as one, as in an audit."""
    return row.outcomes.taken + row.n_set_apart


def _past_rate(utility: Utility, n: int, history: Outcomes) -> tuple[float, str]:
    """Return what the history earned per applicant; NaN and the reason if that is unknown."""
    if history.accepted == n:
        return math.nan, "no_rejections"
    if history.pending:
        return math.nan, "open_history"
    lost = history.bad + history.withdrawn
    return (utility.gain_good * history.good + utility.gain_bad * lost) / n, ""


def _beside(
    log: DecisionLog, rounds: Sequence[RoundSummary], utility: Utility, sums: Earned
) -> tuple[Earned, str]:
    """Return sums with the difference from the lender's own decisions in the same rounds."""
    moved = _moved(rounds)
    if not moved:
        return replace(sums, today=sums.program, added=0.0), ""
    some = log.select(np.isin(log.round, moved))
    if not some.known.any():
        return sums, "no_complete_round"
    found, n = added_profit(some, utility=utility), len(some)
    added = n * found.value
    sums = replace(sums, today=sums.program - added, added=added)
    return replace(sums, low=n * found.low, high=n * found.high), found.reason
