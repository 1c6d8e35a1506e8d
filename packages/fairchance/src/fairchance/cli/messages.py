"""Sentences about a program that several commands and the report print.

The mistakes known so far, and when tests began again; ``ledger.health`` has what needs attention.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fairchance.errors import InputError, LedgerError
from fairchance.words import percent
from fairchance.words.rounds import REASONS

if TYPE_CHECKING:  # an extra, and slow to import
    from fairchance.ledger.objections import Request
    from fairchance.ledger.summary import Summary

__all__ = [
    "CAUTION",
    "mistakes_so_far",
    "mistakes_so_far_message",
    "recorded_already",
    "repeated",
    "repeated_message",
    "restarts",
]

CAUTION = (
    "Late outcomes are not a random part of all outcomes, so an interval describes only the "
    "outcomes known so far."
)


@contextmanager
def recorded_already(missing: str, advice: str) -> Iterator[None]:
    """Explain in any error raised here that the record is complete and only output is missing."""
    try:
        yield
    except (InputError, OSError) as error:
        # A ledger that failed says that nothing was recorded, which is true of its own call only.
        why = "the ledger failed" if isinstance(error, LedgerError) else str(error).rstrip(".")
        raise InputError(f"{missing} ({why}); {advice}.") from error


def repeated(request: Request) -> dict[str, Any]:
    """Return where and when the request that a command repeats was recorded, and its author."""
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


def restarts(summary: Summary, group: Any = None) -> list[tuple[int, str]]:
    """Return the rounds with which testing began again, each with the reason in words.

    Parameters
    ----------
    summary
        The program.
    group
        A group that has a certificate of its own; None for all certificates.
    """
    began = {
        record.tests_began: REASONS.get(record.restart_reason, record.restart_reason)
        for row in summary.rounds
        for record in row.certificates
        if record.tests_began > 1 and group in (None, record.group)
    }
    return sorted(began.items())
