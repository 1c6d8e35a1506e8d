"""Ids as a file or a person spells them, and as the record does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from secondlook.cli.files.refusals import Refusals
from secondlook.errors import InputError

if TYPE_CHECKING:
    from secondlook.ledger.program import Program

__all__ = ["as_recorded", "mistakable_ids"]


def as_recorded(
    program: Program,
    given: Sequence[str | None],
    plain: Sequence[str | None] | None = None,
    *,
    erasing: bool = False,
) -> list[str | None]:
    """Return whom ids name: somebody who is called exactly so, or else without white space around.

    Programs that earlier versions or Python have made may know ``" 1"`` and ``"1"`` as two people.

    Parameters
    ----------
    program
        Whose people they are.
    given, plain
        The ids as they were given, and without white space around if that is at hand.
    erasing
        Whether they are to be erased. Then nobody is taken for somebody else where people have been
        erased before: the one who was called exactly so may be one of these.
    """
    from secondlook.people.ids import is_text  # noqa: PLC0415 - slow to import

    found = [one and one.strip() for one in given] if plain is None else list(plain)
    differs = np.array(given, np.object_) != np.array(found, np.object_)
    rows: list[int] = np.flatnonzero(differs).tolist()
    padded = [(at, name) for at in rows if is_text(name := given[at] or "")]
    if not padded:
        return found
    with program.ledger.reading(program.name) as reader:
        known = reader.standing([name for _, name in padded]).persons >= 0
        literally = erasing and any(True for _ in reader.entries(kind="erasure"))
    for (at, name), there in zip(padded, known.tolist(), strict=True):
        if there or literally:
            found[at] = name
    return found


def mistakable_ids(
    names: list[str], column: str, refusals: Refusals, program: Program | None = None
) -> NDArray[np.bool_]:
    """Refuse rows of new people whose ids could be taken for others; return whose these are.

    Parameters
    ----------
    names, column
        Ids of the rows that can be used so far, and what their column is called.
    refusals
        The rows that are left out, to which these are added.
    program
        Whose people are not new; None if everybody is.
    """
    from secondlook.people.ids import check_spelling, mistakable  # noqa: PLC0415 - slow to import

    found = np.zeros(len(names), np.bool_)
    try:
        check_spelling(np.array(names, np.str_))
    except InputError:
        why = [mistakable(one) for one in names]
        found = np.array([one is not None for one in why], np.bool_)
        if program is not None:
            found &= program.standing(names).persons < 0
        places = np.flatnonzero(found)
        told = [str(why[at]) for at in places]
        end = ", so that one person could have two ids; write it in one way only"
        refusals.add_each(np.flatnonzero(refusals.usable)[places], f"{column!r} has ", told, end)
    return found
