"""Where the certified method wrote somebody down: a row of an engine, or why there is none.

One number per person: row·n + z for a row of engine z of n, and a code below zero for people who
have no row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.errors import InputError, UnknownIdError
from secondlook.people.batches import Batch
from secondlook.people.ids import IdIndex

__all__ = ["HISTORY", "REJECTED", "check_accepted", "check_new", "rows_by_engine"]

Places = NDArray[np.int64]
REJECTED, HISTORY = -1, -2


def rows_by_engine(place: Places, n_engines: int) -> list[tuple[NDArray[np.bool_], Places]]:
    """Return for each engine who of these people is in its rows, and in which.

    Examples
    --------
    >>> for who, rows in rows_by_engine(np.array([4, 3, REJECTED, 0]), 2):
    ...     print(who.tolist(), rows.tolist())
    [True, False, False, True] [2, 0]
    [False, True, False, False] [1]
    """
    engine = np.where(place >= 0, place % n_engines, -1)
    mine = [engine == z for z in range(n_engines)]
    return [(who, place[who] // n_engines) for who in mine]


def check_new(batch: Batch, index: IdIndex) -> None:
    """Raise if somebody of a batch was decided on before."""
    known = index.known(batch.bits)
    if known.size:
        raise InputError(
            f"{known.size} of {len(batch)} ids were decided on before, first "
            f"{batch.ids[known[0]].item()!r}; deciding again until the coins fall well "
            f"would void the certificate, so use the first decisions, and give somebody "
            f"who applies again a new id."
        )


def check_accepted(names: NDArray[Any], place: Places) -> None:
    """Raise unless everybody of whom an outcome is told was accepted, and by this method."""
    for code, words, why in (
        (IdIndex.UNKNOWN, "were never decided on", ""),
        (REJECTED, "were rejected", " (what a decision by hand brings is no evidence)"),
        (HISTORY, "are the history's, whose outcomes were told with fit", ""),
    ):
        wrong = np.flatnonzero(place == code)
        if wrong.size:
            raise UnknownIdError(
                f"{wrong.size} of {names.size} ids {words}, first "
                f"{names[wrong[0]].item()!r}; nothing was recorded, remove them{why}."
            )
