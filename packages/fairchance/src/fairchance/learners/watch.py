"""Notice that a model is fitted, or refuse it.

A ledger stores a state whenever a call fitted a model, so that rebuilding a state fits none: other
versions of packages would fit another model.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

__all__ = ["Fits", "note_fit", "watching_fits"]


@dataclass
class Fits:
    """The number of models fitted under watch; ``refuse`` is raised at the first, if given."""

    refuse: Exception | None = None
    n: int = 0


_WATCH: ContextVar[Fits | None] = ContextVar("_WATCH", default=None)


@contextmanager
def watching_fits(refuse: Exception | None = None) -> Iterator[Fits]:
    """Count the models that are fitted inside the block, or raise ``refuse`` at the first.

    Examples
    --------
    >>> with watching_fits() as fits:
    ...     note_fit()
    >>> fits.n
    1
    """
    fits = Fits(refuse)
    token = _WATCH.set(fits)
    try:
        yield fits
    finally:
        _WATCH.reset(token)


def note_fit() -> None:
    """Say that a model is about to be fitted."""
    fits = _WATCH.get()
    if fits is None:
        return
    if fits.refuse is not None:
        raise fits.refuse
    fits.n += 1
