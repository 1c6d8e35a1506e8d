"""Sentences about what cannot be done to applicants on record."""

from __future__ import annotations

__all__ = ["objection_advice", "objection_words"]

_OBJECTIONS = {
    "unknown": "are unknown or erased",
    "not_accepted": "are not accepted",
    "in_history": "belong to the history",
    "overridden": "were overridden before",
    "not_overridden": "are not overridden",
    "has_outcome": "have an outcome already",
    "taken": "have an outcome, so the loan was taken",
    "take_up_over": "were decided on too long ago to count as not having taken the loan",
    "final_outcome": "have an outcome that is final",
    "accepted": "are already accepted",
    "rejected": "are already rejected",
    "held": "are under hold",
    "not_held": "are not under hold",
    "retained": "must be kept until {until} at the latest",
}
_ADVICE = {
    "overridden": "undo that override first ({option}), or remove them",
    "take_up_over": "withdraw them, and they count as bad, or remove them",
    "held": "release them first, or remove them",
    "retained": "erase them early ({option}) and say why in the reason, or remove them",
}


def objection_words(code: str, until: str = "") -> str:
    """Say why something cannot be done, after the word "ids".

    Examples
    --------
    >>> objection_words("held"), objection_words("retained", "2033-02-15")
    ('are under hold', 'must be kept until 2033-02-15 at the latest')
    """
    return _OBJECTIONS[code].format(until=until)


def objection_advice(code: str) -> str:
    """Say what to do about an objection; ``{option}`` stands for its option.

    Examples
    --------
    >>> objection_advice("unknown"), objection_advice("held")
    ('remove them', 'release them first, or remove them')
    """
    return _ADVICE.get(code, "remove them")
