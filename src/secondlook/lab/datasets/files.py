"""Any csv or parquet file of the user's own, with its columns named."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.errors import InputError
from secondlook.lab.datasets.checks import check_choice, listed
from secondlook.lab.datasets.encoding import Encoder
from secondlook.lab.datasets.reading import pyarrow, read_columns, read_names
from secondlook.lab.simulate.people import Table

__all__ = ["read_table"]


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
        Column whose values are the groups; they become words.
    features
        Columns to use as features; without it all but outcome and group.
    good
        Which value of the outcome is good; may be left out where the values are 0 and 1.
    name
        Name of the table; without it the file's.
    unscaled
        Features to leave as they are when the others are standardised.
    categorical
        ``"one-hot"`` makes a column of words a feature of 0 and 1 for each word; without it such a
        column is refused.
    missing
        Number to put where a feature is missing; without it missing values are refused. A missing
        word is none of the words. Outcome and group must always be there.

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
    check_choice("categorical", categorical, (None, "one-hot"))
    there = read_names(path)
    features = _chosen(features, there, outcome, group)
    _check_there(path, there, [outcome, group, *features])
    rows = read_columns(path, list(dict.fromkeys([outcome, group, *features])))
    if rows.num_rows == 0:
        raise InputError(f"{path.name} has column names but no rows; give a file with people.")
    is_good, word = _outcome(rows[outcome], outcome, good)
    encoder = Encoder(one_hot=categorical == "one-hot", missing=missing)
    X, columns = encoder.encode({feature: rows[feature] for feature in features})
    return Table(
        name=name or path.name.split(".")[0],
        source=f"{rows.num_rows:,} rows of the file {path.name}; good is {outcome} = {word}, "
        f"groups are the values of {group}.",
        features=tuple(column for made in columns.values() for column in made),
        X=X,
        group=_group(rows[group], group),
        outcome=is_good,
        unscaled=_unscaled(unscaled, columns),
        group_feature=group if group in features else None,
    )


def _chosen(
    features: Sequence[str] | None, there: list[str], outcome: str, group: str
) -> list[str]:
    if features is None:
        features = [one for one in there if one not in (outcome, group)]
    if isinstance(features, str) or len(features) == 0:
        raise InputError(
            f"features must be a list of at least one column, got {features!r}; "
            f"columns are {listed(there)}."
        )
    if outcome == group or outcome in features:
        raise InputError(
            f"the outcome {outcome!r} is what is decided about and can be neither group nor "
            f"feature; name other columns."
        )
    if len(set(features)) < len(features):
        raise InputError(f"features must name each column once, got {listed(features)}.")
    return list(features)


def _check_there(path: Path, there: list[str], wanted: list[str]) -> None:
    absent = [one for one in dict.fromkeys(wanted) if one not in there]
    if absent:
        raise InputError(
            f"{path.name} has no column {listed(absent)}; its columns are {listed(there)}."
        )


def _outcome(column: Any, name: str, good: object) -> tuple[NDArray[np.int8], str]:
    """Return 1 for good, and the word of the good value."""
    codes, values = _coded(column, name, "outcome")
    if len(values) != 2:
        shown = listed(values[:5]) + ", …" * (len(values) > 5)
        raise InputError(
            f"the outcome {name!r} must have exactly two values, got {len(values)}: {shown}; "
            f"keep the rows of two values or join some."
        )
    if good is None and set(values) != {0, 1}:
        raise InputError(
            f"the outcome {name!r} has the values {listed(values)}, of which none is plainly the "
            f"good one; name it with good=."
        )
    # Words given on a command line stand for numbers too.
    wanted = 1 if good is None else good
    match = [value == wanted or str(value) == str(wanted) for value in values]
    if not any(match):
        raise InputError(
            f"good must be one of the values {listed(values)} of the outcome {name!r}, "
            f"got {good!r}."
        )
    place = match.index(True)
    return (codes == place).astype(np.int8), str(values[place])


def _group(column: Any, name: str) -> NDArray[np.str_]:
    codes, values = _coded(column, name, "group")
    words = np.array([str(value) for value in values], dtype=np.str_)
    if any(not word.strip() for word in words):
        empty = int(np.isin(codes, [i for i, word in enumerate(words) if not word.strip()]).sum())
        raise InputError(
            f"the group {name!r} must be a word in every row, got an empty one in {empty:,} rows; "
            f"fill them in or leave the rows out."
        )
    return words[codes]


def _coded(column: Any, name: str, role: str) -> tuple[NDArray[np.intp], list[Any]]:
    """Return the number of each row's value, and the values; refuse missing ones."""
    compute = pyarrow("compute")
    lacking = int(compute.sum(compute.is_null(column, nan_is_null=True)).as_py())
    if lacking:
        raise InputError(
            f"the {role} {name!r} must be there in every row, got {lacking:,} rows without it; "
            f"fill them in or leave the rows out."
        )
    coded = column.combine_chunks()
    if not pyarrow().types.is_dictionary(coded.type):
        coded = coded.dictionary_encode()
    used, codes = np.unique(coded.indices.to_numpy(), return_inverse=True)
    return codes, [coded.dictionary[int(i)].as_py() for i in used]


def _unscaled(names: Sequence[str], columns: dict[str, list[str]]) -> tuple[str, ...]:
    """Return the features meant; the name of a column of words stands for all made of it."""
    each = {one: [one] for made in columns.values() for one in made} | columns
    unknown = [one for one in names if one not in each]
    if isinstance(names, str) or unknown:
        raise InputError(
            f"unscaled must be a list of features, which are {listed(columns)}, got {names!r}."
        )
    return tuple(made for one in names for made in each[one])
