"""Read a table of people from the user's own csv or parquet file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.errors import InputError
from fairchance.extras import arrow
from fairchance.simulate.people import Floats, Table
from fairchance.words import listed
from fairchance_lab.datasets.reading import (
    as_floats,
    check_choice,
    read_columns,
    read_names,
)

__all__ = ["check_finite", "read_table"]

_MOST_VALUES = 200  # of a text column that becomes one-hot features


def read_table(
    path: str | os.PathLike[str],
    *,
    outcome: str,
    group: str,
    features: Sequence[str] | None = None,
    good: object = None,
    name: str | None = None,
    unscaled: Sequence[str] = (),
    categorical: str | None = None,
    missing: float | None = None,
) -> Table:
    r"""Read people from a file.

    Parameters
    ----------
    path
        A file that ends in .csv, .csv.gz or .parquet.
    outcome
        Column with exactly two values.
    group
        Column of groups; its values become text.
    features
        Columns to use as features; by default all but outcome and group.
    good
        The good value of the outcome; optional if the values are 0 and 1.
    name
        Name of the table; by default the file's.
    unscaled
        Features that are not standardised.
    categorical
        ``"one-hot"`` turns a text column into one 0/1 feature for each value; ``"codes"`` numbers
        its values from 0 in alphabetical order, in one feature that is not standardised; by
        default text columns are refused.
    missing
        Number that replaces missing features; by default missing values are refused. A missing
        text value is 0 in all its one-hot features. Outcome and group are never replaced.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "loans.csv")
    ...     _ = path.write_text("income,town,paid\n20,X,no\n40,Y,yes\n30,X,yes\n")
    ...     table = read_table(path, outcome="paid", good="yes", group="town")
    >>> table.features, table.X.ravel().tolist(), table.outcome.tolist()
    (('income',), [20.0, 40.0, 30.0], [0, 1, 1])
    """
    path = Path(path)
    check_choice("categorical", categorical, (None, "one-hot", "codes"))
    present = read_names(path)
    features = _choose_features(features, present, outcome, group)
    _check_present(path, present, [outcome, group, *features])
    rows = read_columns(path, list(dict.fromkeys([outcome, group, *features])))
    if rows.num_rows == 0:
        raise InputError(f"{path.name} has column names but no rows; give a file with rows.")
    is_good, good_value = _outcome(rows[outcome], outcome, good)
    encoder = _Encoder(categorical, missing)
    X, columns = encoder.encode({feature: rows[feature] for feature in features})
    coded = [f for f in features if categorical == "codes" and _is_text(f, rows[f])]
    return Table(
        name=name or path.name.split(".")[0],
        source=f"{rows.num_rows:,} rows of the file {path.name}; good is {outcome} = {good_value}, "
        f"groups are the values of {group}.",
        features=tuple(column for made in columns.values() for column in made),
        X=X,
        group=_group(rows[group], group),
        outcome=is_good,
        unscaled=tuple(dict.fromkeys([*coded, *_unscaled(unscaled, columns)])),
        group_feature=group if group in features else None,
    )


def _choose_features(
    features: Sequence[str] | None, present: list[str], outcome: str, group: str
) -> list[str]:
    if features is None:
        features = [name for name in present if name not in (outcome, group)]
    if isinstance(features, str) or len(features) == 0:
        raise InputError(
            f"features must be a list of at least one column, got {features!r}; "
            f"columns are {listed(present)}."
        )
    if outcome == group or outcome in features:
        raise InputError(
            f"the outcome {outcome!r} cannot be the group or a feature; name other columns."
        )
    if len(set(features)) < len(features):
        raise InputError(f"features must name each column once, got {listed(features)}.")
    return list(features)


def _check_present(path: Path, present: list[str], wanted: list[str]) -> None:
    absent = [name for name in dict.fromkeys(wanted) if name not in present]
    if absent:
        raise InputError(
            f"{path.name} has no column {listed(absent)}; its columns are {listed(present)}."
        )


def _outcome(column: Any, name: str, good: object) -> tuple[NDArray[np.int8], str]:
    """Return 1 for good outcomes, and the good value as text."""
    codes, values = _encode_values(column, name, "outcome")
    if len(values) != 2:
        shown = listed(values[:5]) + ", …" * (len(values) > 5)
        raise InputError(
            f"the outcome {name!r} must have exactly two values, got {len(values)}: {shown}; "
            f"keep the rows of two values or merge values."
        )
    if good is None and set(values) != {0, 1}:
        raise InputError(
            f"the outcome {name!r} has the values {listed(values)}; name the good one with good=."
        )
    # Values given on a command line are text, also if the column holds numbers.
    wanted = 1 if good is None else good
    match = [value == wanted or str(value) == str(wanted) for value in values]
    if not any(match):
        raise InputError(
            f"good must be one of the values {listed(values)} of the outcome {name!r}, "
            f"got {good!r}."
        )
    position = match.index(True)
    return (codes == position).astype(np.int8), str(values[position])


def _group(column: Any, name: str) -> NDArray[np.str_]:
    codes, values = _encode_values(column, name, "group")
    names = np.array([str(value) for value in values], dtype=np.str_)
    empty_codes = [i for i, group in enumerate(names) if not group.strip()]
    if empty_codes:
        empty = int(np.isin(codes, empty_codes).sum())
        raise InputError(
            f"the group {name!r} must not be empty, got {empty:,} rows with an empty group; "
            f"fill them in or leave the rows out."
        )
    return names[codes]


def _encode_values(column: Any, name: str, role: str) -> tuple[NDArray[np.intp], list[Any]]:
    """Return the code of each row's value, and the values; raise if a value is missing."""
    compute = arrow("compute")
    lacking = int(compute.sum(compute.is_null(column, nan_is_null=True)).as_py())
    if lacking:
        raise InputError(
            f"the {role} {name!r} must not be missing, got {lacking:,} rows without it; "
            f"fill them in or leave the rows out."
        )
    coded = column.combine_chunks()
    if not arrow().types.is_dictionary(coded.type):
        coded = coded.dictionary_encode()
    used, codes = np.unique(coded.indices.to_numpy(), return_inverse=True)
    return codes, [coded.dictionary[int(i)].as_py() for i in used]


def _unscaled(names: Sequence[str], columns: dict[str, list[str]]) -> tuple[str, ...]:
    """Return the unscaled features; a text column stands for all features made from it."""
    known = {feature: [feature] for made in columns.values() for feature in made} | columns
    unknown = [name for name in names if name not in known]
    if isinstance(names, str) or unknown:
        raise InputError(
            f"unscaled must be a list of features, out of {listed(columns)}, got {names!r}."
        )
    return tuple(feature for name in names for feature in known[name])


@dataclass(frozen=True)
class _Encoder:
    """Turns pyarrow columns into a matrix of numbers.

    Parameters
    ----------
    categorical
        What becomes of a text column, as in `read_table`.
    missing
        Number that replaces missing numbers and codes; None refuses missing values.
    """

    categorical: str | None = None
    missing: float | None = None

    def encode(self, columns: Mapping[str, Any]) -> tuple[Floats, dict[str, list[str]]]:
        """Return the matrix, and for each column the names of its features."""
        if self.missing is not None and not np.isfinite(self.missing):
            raise InputError(f"missing must be a finite number, got {self.missing!r}.")
        texts = [name for name, column in columns.items() if _is_text(name, column)]
        if texts and self.categorical is None:
            raise InputError(
                f"features must be numbers, and {listed(texts)} hold text; leave them out of "
                f"features= or encode them with categorical='one-hot' or 'codes'."
            )
        if self.missing is None:
            _refuse_missing(columns)
        one_hot = self.categorical == "one-hot"
        values = {
            name: _distinct_values(name, column, _MOST_VALUES if one_hot else None)
            for name, column in columns.items()
            if name in texts
        }
        features = {
            name: [f"{name}={value}" for value in values[name]]
            if name in values and one_hot
            else [name]
            for name in columns
        }
        return self._matrix(columns, values, sum(map(len, features.values()))), features

    def _matrix(
        self, columns: Mapping[str, Any], values: Mapping[str, list[str]], width: int
    ) -> Floats:
        compute = arrow("compute")
        X = np.zeros((len(next(iter(columns.values()))), width))
        first = 0
        for name, column in columns.items():
            known = arrow().array(values.get(name, []), "string")
            numbers = compute.index_in(_as_text(column), known) if name in values else column
            if name not in values or self.categorical == "codes":
                X[:, first] = self._numbers(name, numbers)
                first += 1
                continue
            rows = np.flatnonzero(~compute.is_null(numbers).to_numpy())
            X[rows, first + numbers.drop_null().to_numpy()] = 1.0
            first += len(known)
        return X

    def _numbers(self, name: str, column: Any) -> Floats:
        numbers = as_floats(column)
        if self.missing is not None:
            numbers = np.where(np.isnan(numbers), self.missing, numbers)
        check_finite(name, numbers, "features=")
        return numbers


def _is_text(name: str, column: Any) -> bool:
    """Tell text from numbers; raise for any other type."""
    types, kind = arrow().types, column.type
    kind = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return True
    numbers = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    if types.is_null(kind) or any(is_kind(kind) for is_kind in numbers):
        return False
    raise InputError(
        f"the feature {name!r} holds {kind}, and features must be numbers; convert it to "
        f"numbers or leave it out of features=."
    )


def check_finite(name: str, numbers: Floats, option: str) -> None:
    """Raise if a feature has infinite values; ``option`` is the option that names features.

    Examples
    --------
    >>> check_finite("debt", np.array([1.0, np.inf, -np.inf]), "--features")
    Traceback (most recent call last):
        ...
    fairchance.errors.InputError: the feature 'debt' must be finite, got infinity in 2 rows; replace
    infinite values, or leave the feature out of --features.
    """
    infinite = int(np.isinf(numbers).sum())
    if infinite:
        raise InputError(
            f"the feature {name!r} must be finite, got infinity in {infinite:,} rows; replace "
            f"infinite values, or leave the feature out of {option}."
        )


def _refuse_missing(columns: Mapping[str, Any]) -> None:
    compute = arrow("compute")
    counts = {
        name: int(compute.sum(compute.is_null(column, nan_is_null=True)).as_py())
        for name, column in columns.items()
    }
    lacking = [f"{name!r} ({count:,} rows)" for name, count in counts.items() if count]
    if lacking:
        raise InputError(
            f"values are missing in the features {', '.join(lacking)}; fill them in, or give a "
            f"number that replaces them, such as missing=0.0."
        )


def _distinct_values(name: str, column: Any, most: int | None) -> list[str]:
    values = sorted(_as_text(column).unique().drop_null().to_pylist())
    if most is not None and len(values) > most:
        raise InputError(
            f"the feature {name!r} has {len(values):,} different values, and at most {most} can "
            f"become features; leave it out of features=, merge values, or use "
            f"categorical='codes'."
        )
    return values


def _as_text(column: Any) -> Any:
    return column.cast(arrow().string())
