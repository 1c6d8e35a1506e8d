"""The columns of a file of decisions, and columns of other files that have the same names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from secondlook.cli.files.csv_files import arrow
from secondlook.errors import InputError

if TYPE_CHECKING:
    from secondlook.core.decisions import Decisions
    from secondlook.ledger.config import Roles
    from secondlook.ledger.program import Program

__all__ = ["ANSWERED", "answer", "check_read_back", "namesakes", "namesakes_words"]

ANSWERED = (
    "id",
    "decision",
    "region",
    "score",
    "threshold",
    "propensity",
    "round",
    "certified",
    "reasons",
)


def answer(decided: Decisions, reasons: list[str | None]) -> Any:
    """Return decisions as they are handed out."""
    pa, n = arrow(), len(decided)
    threshold = np.full(n, np.nan) if decided.threshold is None else decided.threshold
    columns = (
        decided.ids,
        np.where(decided.accepted, "accept", "reject"),
        decided.region,
        decided.score,
        threshold,
        decided.propensity,
        np.full(n, decided.round),
        np.full(n, decided.certified),
    )
    arrays = [pa.array(one, from_pandas=True) for one in columns]
    return pa.table([*arrays, pa.array(reasons, pa.string())], names=list(ANSWERED))


def check_read_back(roles: Roles) -> None:
    """Raise if a file of decisions, sent back, would be read for something else than it is.

    Ids and outcomes are read from any file by the names of their columns; a file of decisions or
    an export has a column of its own under each of its names.
    """
    from secondlook.cli.programs.decision_rows import EXPORTED  # noqa: PLC0415 - needs the ledger

    for role, name in (("id", roles.id), ("outcome", roles.outcome)):
        if name != role and name in {*ANSWERED, *EXPORTED}:
            raise InputError(
                f"[columns] {role} must not be called like another column of the files that decide "
                f"and export write, got {name!r}; rename it in your files and there, for example "
                f"to {role!r}."
            )


def namesakes(program: Program, groups: Iterable[str]) -> list[str]:
    """Return the columns of the decisions that are called like a feature or a group."""
    known = {*(program.shape.columns.names or ()), *groups}
    return [one for one in ANSWERED if one in known]


def namesakes_words(names: list[str]) -> list[str]:
    """Say of columns of the decisions that they are not what they are called like.

    Examples
    --------
    >>> namesakes_words(["region", "score"])
    ["'region' and 'score' in the decisions are not your columns of that name: they say how \
people were decided on."]
    """
    if not names:
        return []
    one = len(names) == 1
    which = " and ".join([", ".join(map(repr, names[:-1])), repr(names[-1])][one:])
    are, your, say = ("is", "column", "it says") if one else ("are", "columns", "they say")
    return [
        f"{which} in the decisions {are} not your {your} of that name: {say} how people were "
        f"decided on."
    ]
