"""A column that is made in parts, as they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, overload

__all__ = ["InParts"]

_PART = 1000  # rows that are made at once: less takes more calls than work

T = TypeVar("T")


class InParts(Sequence[T]):
    """Values that are made when somebody asks for them, and kept.

    Whoever writes them down part by part has the first ones on their way before the last are made.

    Parameters
    ----------
    n
        How many values there are.
    make
        Returns those of some rows; each row is asked for once.

    Examples
    --------
    >>> names = InParts(10_000, lambda rows: [f"a{at}" for at in range(rows.start, rows.stop)])
    >>> names[2:4], names.n_made, names[-1], names.n_made
    (['a2', 'a3'], 1000, 'a9999', 10000)
    """

    def __init__(self, n: int, make: Callable[[slice], Sequence[T]]) -> None:
        self._n, self._make = n, make
        self._made: list[T] = []

    @property
    def n_made(self) -> int:
        """How many of the values have been made."""
        return len(self._made)

    def __len__(self) -> int:
        return self._n

    def __iter__(self) -> Iterator[T]:
        return iter(self._up_to(self._n))

    @overload
    def __getitem__(self, at: int) -> T: ...

    @overload
    def __getitem__(self, at: slice) -> list[T]: ...

    def __getitem__(self, at: int | slice) -> T | list[T]:
        """Return one value, or a list of some."""
        if isinstance(at, slice):
            rows = range(self._n)[at]
            if rows.step == 1:
                return self._up_to(rows.stop)[rows.start : rows.stop]
            return self._up_to(self._n)[at]
        if not -self._n <= at < self._n:
            raise IndexError(f"there are {self._n} values, got {at}")
        return self._up_to(at % self._n + 1)[at % self._n]

    def _up_to(self, stop: int) -> list[T]:
        while self.n_made < stop:
            rows = slice(self.n_made, min(self.n_made + _PART, self._n))
            self._made += self._make(rows)
        return self._made
