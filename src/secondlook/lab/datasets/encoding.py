"""Features as numbers: numbers stay, words become columns of 0 and 1 if that is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from secondlook.errors import InputError
from secondlook.lab.datasets.checks import listed
from secondlook.lab.datasets.reading import as_floats, pyarrow
from secondlook.lab.simulate.people import Floats

__all__ = ["Encoder", "check_finite"]

_MOST_WORDS = 200


@dataclass(frozen=True)
class Encoder:
    """Turns columns of pyarrow into a matrix.

    Parameters
    ----------
    one_hot
        Whether a column of words becomes a feature for each word; it is refused otherwise.
    missing
        Number to put where a number is missing; None refuses missing values.
    """

    one_hot: bool = False
    missing: float | None = None

    def encode(self, columns: Mapping[str, Any]) -> tuple[Floats, dict[str, list[str]]]:
        """Return the matrix, and for each column the names of the features made of it."""
        if self.missing is not None and not np.isfinite(self.missing):
            raise InputError(f"missing must be a finite number, got {self.missing!r}.")
        words = [name for name, column in columns.items() if self._is_words(name, column)]
        if words and not self.one_hot:
            raise InputError(
                f"the features {listed(words)} hold words, and features must be numbers; leave "
                f"them out of features= or encode them with categorical='one-hot'."
            )
        if self.missing is None:
            _refuse_missing(columns)
        values = {
            name: _vocabulary(name, column) if name in words else None
            for name, column in columns.items()
        }
        made = {
            name: [name] if one is None else [f"{name}={word}" for word in one]
            for name, one in values.items()
        }
        return self._matrix(columns, values, sum(map(len, made.values()))), made

    def _matrix(
        self, columns: Mapping[str, Any], values: Mapping[str, list[str] | None], width: int
    ) -> Floats:
        compute = pyarrow("compute")
        X = np.zeros((len(next(iter(columns.values()))), width))
        place = 0
        for name, column in columns.items():
            words = values[name]
            if words is None:
                X[:, place] = self._numbers(name, column)
                place += 1
                continue
            code = compute.index_in(_text(column), value_set=pyarrow().array(words, "string"))
            known = np.flatnonzero(~compute.is_null(code).to_numpy())
            X[known, place + code.drop_null().to_numpy()] = 1.0
            place += len(words)
        return X

    def _numbers(self, name: str, column: Any) -> Floats:
        numbers = as_floats(column)
        if self.missing is not None:
            numbers = np.where(np.isnan(numbers), self.missing, numbers)
        check_finite(name, numbers, "features=")
        return numbers

    def _is_words(self, name: str, column: Any) -> bool:
        """Tell words from numbers, and refuse what is neither."""
        types, kind = pyarrow().types, column.type
        kind = kind.value_type if types.is_dictionary(kind) else kind
        if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
            return True
        numbers = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
        if types.is_null(kind) or any(is_kind(kind) for is_kind in numbers):
            return False
        raise InputError(
            f"the feature {name!r} holds {kind}, and features must be numbers; turn it into "
            f"numbers or leave it out of features=."
        )


def check_finite(name: str, numbers: Floats, option: str) -> None:
    """Refuse a feature with infinite numbers; ``option`` is where features are named.

    Examples
    --------
    >>> check_finite("debt", np.array([1.0, np.inf, -np.inf]), "--features")
    Traceback (most recent call last):
        ...
    secondlook.errors.InputError: the feature 'debt' must be finite, got infinity in 2 rows; replace
    it by a number, or leave it out of --features.
    """
    infinite = int(np.isinf(numbers).sum())
    if infinite:
        raise InputError(
            f"the feature {name!r} must be finite, got infinity in {infinite:,} rows; replace it "
            f"by a number, or leave it out of {option}."
        )


def _refuse_missing(columns: Mapping[str, Any]) -> None:
    compute = pyarrow("compute")
    counts = {
        name: int(compute.sum(compute.is_null(column, nan_is_null=True)).as_py())
        for name, column in columns.items()
    }
    lacking = [f"{name!r} ({count:,} rows)" for name, count in counts.items() if count]
    if lacking:
        raise InputError(
            f"values are missing in the features {', '.join(lacking)}, and each must be there; "
            f"fill them in, or name the number that stands for them, such as missing=0.0."
        )


def _vocabulary(name: str, column: Any) -> list[str]:
    words = sorted(_text(column).unique().drop_null().to_pylist())
    if len(words) > _MOST_WORDS:
        raise InputError(
            f"the feature {name!r} has {len(words):,} words, and at most {_MOST_WORDS} can become "
            f"features; leave it out of features= or join words."
        )
    return words


def _text(column: Any) -> Any:
    return column.cast(pyarrow().string())
