"""Whom refused people are compared with: one applicant who stands for those accepted before."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from secondlook.errors import InputError
from secondlook.frames import is_frame, take

__all__ = ["Reference"]

_CLOSE = 1e-5  # other machines round otherwise


@dataclass(frozen=True)
class Reference:
    """The applicant whom refused people are compared with.

    Attributes
    ----------
    names
        Names of the columns; ``x0``, ``x1``, … for an array.
    values
        Means of numbers, most frequent texts; NaN or None where all were missing.
    protected
        Names of columns that are no reasons.
    most_frequent
        Whether numbers are the most frequent ones, and not means.

    Examples
    --------
    >>> X = np.array([[1.0, 5.0], [3.0, 7.0], [9.0, 9.0]])
    >>> Reference.of(X, np.array([True, True, False])).values
    (2.0, 6.0)
    """

    names: tuple[str, ...]
    values: tuple[float | str | None, ...]
    protected: tuple[str, ...] = ()
    most_frequent: bool = False

    @staticmethod
    def of(
        X: Any,
        accepted: NDArray[np.bool_],
        protected: Iterable[Any] = (),
        *,
        most_frequent: bool = False,
    ) -> Reference:
        """Return the reference of a history: of everybody, where nobody was accepted.

        Parameters
        ----------
        X
            Features of everybody, an array or a frame.
        accepted
            Who was accepted.
        protected
            Names of the protected attributes, where they have names.
        most_frequent
            Take the most frequent of numbers too, where a mean would be nobody's.
        """
        rows = np.flatnonzero(accepted) if accepted.any() else np.arange(accepted.size)
        people, typical = take(X, rows), _most_frequent if most_frequent else _mean
        if is_frame(people):
            columns = list(nw.from_native(people, eager_only=True).iter_columns())
            names = [str(one.name) for one in columns]
            values = [_typical(one, typical) for one in columns]
        else:
            names = [f"x{position}" for position in range(people.shape[1])]
            values = [typical(people[:, position]) for position in range(people.shape[1])]
        if len(names) > np.iinfo(np.int16).max:
            raise InputError(
                f"reasons can be told for at most {np.iinfo(np.int16).max} columns, got "
                f"{len(names)}; leave out what decides nothing."
            )
        found = tuple(name for name in names if name in set(protected))
        return Reference(tuple(names), tuple(values), found, most_frequent)

    def of_same_kind(self, X: Any, accepted: NDArray[np.bool_]) -> Reference:
        """Return the reference of a history, made as this one was."""
        return Reference.of(X, accepted, self.protected, most_frequent=self.most_frequent)

    @staticmethod
    def read(header: dict[str, Any] | None) -> Reference | None:
        """Return a reference from what ``as_dict`` gave, after JSON; None if there was none."""
        if header is None:
            return None
        values = [
            one if one is None or text else float(one)  # JSON has no NaN, so that is text
            for one, text in zip(header["values"], header["texts"], strict=True)
        ]
        return Reference(
            tuple(header["names"]),
            tuple(values),
            tuple(header["protected"]),
            header.get("most_frequent", False),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "names": list(self.names),
            "values": list(self.values),
            "texts": [one is None or isinstance(one, str) for one in self.values],
            "protected": list(self.protected),
            "most_frequent": self.most_frequent,
        }

    def is_like(self, other: Reference) -> bool:
        """Say whether two references are the same, up to what machines round otherwise."""
        kind, others = ((r.names, r.protected, r.most_frequent) for r in (self, other))
        if kind != others:
            return False
        return all(
            bool(np.isclose(one, two, _CLOSE, _CLOSE, equal_nan=True))
            if isinstance(one, float) and isinstance(two, float)
            else one == two
            for one, two in zip(self.values, other.values, strict=True)
        )

    @property
    def allowed(self) -> NDArray[np.intp]:
        """Positions of the columns that may be reasons."""
        return np.array([at for at, one in enumerate(self.names) if one not in self.protected], int)


def _typical(column: Any, number: Callable[[NDArray[Any]], float]) -> float | str | None:
    if column.dtype.is_numeric() or column.dtype == nw.Boolean:
        return number(column.cast(nw.Float64).to_numpy())
    texts = [one for one in column.to_list() if one is not None and one == one]
    values, counts = np.unique(np.array(texts, np.str_), return_counts=True)
    return str(values[np.argmax(counts)]) if values.size else None


def _mean(values: NDArray[Any]) -> float:
    there = values[~np.isnan(values)]
    return float(there.mean(dtype=np.float64)) if there.size else float("nan")


def _most_frequent(values: NDArray[Any]) -> float:
    there, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    return float(there[np.argmax(counts)]) if there.size else float("nan")
