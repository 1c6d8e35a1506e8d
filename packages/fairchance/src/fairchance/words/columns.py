"""Sentences about the columns of a table."""

from __future__ import annotations

__all__ = ["left_out_words"]

_LEFT_OUT = {
    "empty": "is empty in every row",
    "identifier": "looks like an identifier or free text",
    "unreadable": "holds no numbers, dates or text",
    "protected": "looks like a protected attribute",
    "applied": "looks like the time of the application",
}


def left_out_words(code: str) -> str:
    """Say why a column is left out, after its name.

    Examples
    --------
    >>> left_out_words("empty")
    'is empty in every row'
    """
    return _LEFT_OUT[code]
