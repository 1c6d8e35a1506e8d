"""Sentences about batches and outcomes that are unlike earlier ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairchance.words import percent

if TYPE_CHECKING:
    from fairchance.ledger.outcomes import UnlikeExpected
    from fairchance.people.likeness import Unlike

__all__ = ["unlike_expected_words", "unlike_words"]


def unlike_words(one: Unlike) -> str:
    """Say in what a column of a batch differs.

    Examples
    --------
    >>> from fairchance.people.likeness import Unlike
    >>> print(unlike_words(Unlike("age", "missing", 700, 700, 0.04, "history", True)))
    700 of 700 applicants have no value in 'age' (4 % in the history); is the column filled in?
    """
    name, other = _column(one.column), _column(one.other)
    changed = "is it another unit or coding, or are two columns exchanged?"
    what, hint = {
        "missing": (f"have no value in {name}", "is the column filled in?"),
        "unseen": (
            f"have a text in {name} that is new or rare",
            "is it another coding, or a date that was read as text?",
        ),
        "group": (f"have a group in {name} that is new", "is it another coding?"),
        "outside": (
            f"are outside {_bound(one.low)} to {_bound(one.high)} in {name}",
            "is it another unit or decimal mark, or does it move with time?",
        ),
        "far": (
            f"are far outside {_bound(one.low)} to {_bound(one.high)} in {name}",
            "is it a mistake, or a code for missing values?",
        ),
        "above": (f"are above {_bound(one.low)} in {name}", changed),
        "below": (f"are below {_bound(one.high)} in {name}", changed),
        "is": (f"have {one.other!r} in {name}", changed),
        "is not": (f"do not have {one.other!r} in {name}", changed),
        "certain": (
            "are accepted for sure by their score",
            "is a column in another unit, or in the place of another?",
        ),
        "decided": (
            f"are accepted by the lender and high in {other}, or neither",
            "are accepted and rejected exchanged in the lender's decisions?",
        ),
        "together": (
            f"are high or low in both {name} and {other}",
            "was one of the columns sorted or shifted by itself?",
        ),
    }[one.code]
    if one.moves:
        hint = (
            "as in the last round: if it moves with time, it is no feature, so name it as applied "
            "or in ignore of [columns] in a new program."
        )
    return (
        f"{one.n:,} of {one.of:,} applicants {what} ({percent(one.usual)} in the {one.since}); "
        f"{hint}"
    )


def unlike_expected_words(one: UnlikeExpected) -> str:
    """Say in what outcomes differ from what was expected.

    Examples
    --------
    >>> from fairchance.ledger.outcomes import UnlikeExpected
    >>> print(unlike_expected_words(UnlikeExpected(155, 178, 0.15, True)))
    155 of 178 outcomes are bad, and at most about 15 % were expected; are good and bad exchanged,
    or have only early bad outcomes arrived?
    >>> print(unlike_expected_words(UnlikeExpected(155, 178, 0.13, True, corrected=178)))
    178 of 178 outcomes contradict the record; are good and bad exchanged, here or in the record?
    >>> print(unlike_expected_words(UnlikeExpected(0, 90, 0.02, True, withdrawn=90)))
    90 of 90 applicants that these rounds accepted are withdrawn (2 % in other rounds); is it the
    right column of outcomes, and are its words those of the configuration?
    """
    lost = one.withdrawn or one.not_taken
    if lost:
        return (
            f"{lost:,} of {one.of:,} applicants that these rounds accepted "
            f"{'are withdrawn' if one.withdrawn else 'did not take the loan'} "
            f"({percent(one.expected)} in other rounds); is it the right column of outcomes, and "
            f"are its words those of the configuration?"
        )
    if one.corrected:
        return (
            f"{one.corrected:,} of {one.of:,} outcomes contradict the record; are good and bad "
            f"exchanged, here or in the record?"
        )
    why = "did something change"
    if one.stops or one.bad == one.of:
        why = "are good and bad exchanged, or have only early bad outcomes arrived"
    return (
        f"{one.bad:,} of {one.of:,} outcomes are bad, and at most about "
        f"{percent(one.expected)} were expected; {why}?"
    )


def _column(name: str | int | None) -> str:
    return f"column {name}" if isinstance(name, int) else repr(name)


def _bound(value: Any) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)
