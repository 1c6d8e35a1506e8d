"""Read people from a file of your own: csv or parquet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.errors import InputError
from fairchance.extras import arrow
from fairchance.simulate.people import Floats, Table
from fairchance.words import listed
from fairchance_lab.datasets.reading import as_floats, read_columns, read_names

__all__ = ["read_table"]

_MOST_VALUES = 200  # of a text column, each of which becomes a feature


def read_table(
    path: str | Path,
    *,
    outcome: str,
    group: str,
    features: Sequence[str] | None = None,
    good: object = None,
    name: str | None = None,
    missing: float | None = None,
) -> Table:
    r"""Read people from a file.

    A text column becomes a 0/1 feature for each of its values.

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
    missing
        Number that replaces missing numbers; by default missing values are refused. A missing text
        value is 0 in all its features. Outcome and group are never replaced.

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
    present = read_names(path)
    chosen = _choose_features(features, present, outcome, group)
    absent = [column for column in (outcome, group, *chosen) if column not in present]
    if absent:
        raise InputError(
            f"{path.name} has no column {listed(absent)}; its columns are {listed(present)}."
        )
    rows = read_columns(path, list(dict.fromkeys([outcome, group, *chosen])))
    if rows.num_rows == 0:
        raise InputError(f"{path.name} has column names but no rows.")
    is_good, good_value = _outcome(rows[outcome], outcome, good)
    parts = [_encoded(feature, rows[feature], missing) for feature in chosen]
    return Table(
        name=name or path.name.split(".")[0],
        source=f"{rows.num_rows:,} rows of the file {path.name}; good is {outcome} = {good_value}, "
        f"groups are the values of {group}.",
        features=tuple(made for names, _ in parts for made in names),
        X=np.hstack([values for _, values in parts]),
        group=_group(rows[group], group),
        outcome=is_good,
        group_feature=group if group in chosen else None,
    )


def _choose_features(
    features: Sequence[str] | None, present: list[str], outcome: str, group: str
) -> list[str]:
    if features is None:
        features = [name for name in present if name not in (outcome, group)]
    if isinstance(features, str) or not features or len(set(features)) < len(features):
        raise InputError(f"features must be a list of different columns, got {features!r}.")
    if outcome == group or outcome in features:
        raise InputError(f"the outcome {outcome!r} cannot be the group or a feature.")
    return list(features)


def _outcome(column: Any, name: str, good: object) -> tuple[NDArray[np.int8], str]:
    """Return 1 for good outcomes, and the good value as text."""
    codes, values = _encode_values(column, name, "outcome")
    # Values given on a command line are text, also if the column holds numbers.
    wanted = 1 if good is None and set(values) == {0, 1} else good
    match = [
        wanted is not None and (value == wanted or str(value) == str(wanted)) for value in values
    ]
    if len(values) != 2 or not any(match):
        shown = listed(values[:5]) + ", …" * (len(values) > 5)
        raise InputError(
            f"the outcome {name!r} must have two values, and good= must name the good one, got the "
            f"values {shown} and good={good!r}."
        )
    position = match.index(True)
    return (codes == position).astype(np.int8), str(values[position])


def _group(column: Any, name: str) -> NDArray[np.str_]:
    codes, values = _encode_values(column, name, "group")
    names = np.array([str(value) for value in values], dtype=np.str_)
    if not all(group.strip() for group in names):
        raise InputError(f"the group {name!r} must not be empty; fill it in or leave rows out.")
    return names[codes]


def _encode_values(column: Any, name: str, role: str) -> tuple[NDArray[np.intp], list[Any]]:
    """Return the code of each row's value, and the values; raise if a value is missing."""
    lacking = _n_missing(column)
    if lacking:
        raise InputError(f"the {role} {name!r} is missing in {lacking:,} rows; fill it in.")
    coded = column.combine_chunks()
    if not arrow().types.is_dictionary(coded.type):
        coded = coded.dictionary_encode()
    used, codes = np.unique(coded.indices.to_numpy(), return_inverse=True)
    return codes, [coded.dictionary[int(i)].as_py() for i in used]


def _encoded(name: str, column: Any, missing: float | None) -> tuple[list[str], Floats]:
    """Return the names and the values of the features that a column becomes."""
    lacking = _n_missing(column)
    if lacking and missing is None:
        raise InputError(
            f"the feature {name!r} is missing in {lacking:,} rows; fill it in, or give a number "
            f"that replaces missing values, such as missing = 0.0."
        )
    if _is_text(name, column):
        texts = column.cast(arrow().string())
        values = sorted(texts.unique().drop_null().to_pylist())
        if len(values) > _MOST_VALUES:
            raise InputError(
                f"the feature {name!r} has {len(values):,} different values, and at most "
                f"{_MOST_VALUES} can become features; leave it out or merge values."
            )
        given = np.array(texts.to_pylist(), dtype=object)
        found = (given[:, None] == np.array(values, dtype=object)).astype(np.float64)
        return [f"{name}={value}" for value in values], found
    numbers = as_floats(column)
    numbers = np.where(np.isnan(numbers), np.nan if missing is None else missing, numbers)
    if not np.isfinite(numbers).all():
        raise InputError(f"the feature {name!r} must be finite; replace infinite values.")
    return [name], numbers[:, None]


def _n_missing(column: Any) -> int:
    compute = arrow("compute")
    return int(compute.sum(compute.is_null(column, nan_is_null=True)).as_py())


def _is_text(name: str, column: Any) -> bool:
    """Tell text from numbers; raise for any other type."""
    types, kind = arrow().types, column.type
    kind = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return True
    numbers = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    if types.is_null(kind) or any(is_kind(kind) for is_kind in numbers):
        return False
    raise InputError(f"the feature {name!r} holds {kind}, and features must be numbers or text.")
