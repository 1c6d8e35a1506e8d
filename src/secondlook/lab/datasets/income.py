"""From persons of the American Community Survey to a table, as the paper prepares it.

Features are codes used as numbers, missing ones 0; the outcome is an income above 50,000 dollars.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from secondlook.errors import InputError
from secondlook.lab.datasets.checks import check_choice, listed
from secondlook.lab.simulate.people import Floats, Table

__all__ = ["COLUMNS", "FEATURES", "GROUPS", "check_group", "income_table"]

FEATURES = ("AGEP", "COW", "SCHL", "MAR", "OCCP", "POBP", "WKHP", "RAC1P", "SEX")
COLUMNS = (*FEATURES, "PINCP", "PWGTP", "label")
GROUPS = ("race", "gender")

_LIMIT = 50_000.0
_PROTECTED = {"race": "RAC1P", "gender": "SEX"}
_WORDS = {"race": ("White", "Black"), "gender": ("male", "female")}

# The filter of ACSIncome (Ding et al., 2021): adults who work and earn.
_ADULTS = {
    "AGEP > 16": lambda one: one["AGEP"] > 16,
    "PINCP > 100": lambda one: one["PINCP"] > 100,
    "WKHP > 0": lambda one: one["WKHP"] > 0,
    "PWGTP >= 1": lambda one: one["PWGTP"] >= 1,
}


def check_group(group: str, everyone: bool) -> None:
    """Refuse a group that is not known, and everyone where two races are compared."""
    check_choice("group", group, GROUPS)
    if everyone and group == "race":
        raise InputError(
            "everyone=True keeps people of every race and needs group='gender', got group='race'; "
            "race compares White and Black people only."
        )


def income_table(
    columns: Mapping[str, Floats],
    *,
    name: str,
    persons: str,
    group: str,
    everyone: bool = False,
    adults_only: bool = False,
) -> Table:
    """Make a table of persons.

    Parameters
    ----------
    columns
        Columns of the survey, NaN where missing. Features that are not among them are left out,
        and ``source`` says so; ``label`` stands for the outcome where there is no PINCP.
    name
        Name of the table.
    persons
        Who they are and where they come from; the beginning of ``source``.
    group
        ``"race"`` (White, Black) or ``"gender"`` (male, female).
    everyone
        Keep people of every race; only for gender. The paper's text restricts both comparisons to
        White and Black people, its released code restricts race only.
    adults_only
        Keep AGEP > 16, PINCP > 100, WKHP > 0 and PWGTP >= 1, as far as the columns are there.

    Examples
    --------
    >>> columns = {"AGEP": [40, 50, 8], "RAC1P": [1, 2, 6], "SEX": [2, 1, 1]}
    >>> columns |= {"PINCP": [60_000, float("nan"), float("nan")]}
    >>> columns = {key: np.array(value, dtype=float) for key, value in columns.items()}
    >>> table = income_table(columns, name="three", persons="Three persons", group="race")
    >>> table.group.tolist(), table.outcome.tolist(), table.features
    (['White', 'Black'], [1, 0], ('AGEP', 'RAC1P', 'SEX'))
    """
    check_group(group, everyone)
    _check_columns(columns, name)
    keep = np.ones(columns["SEX"].size, dtype=bool) if everyone else columns["RAC1P"] <= 2
    rules = [rule for rule in _ADULTS if rule.split()[0] in columns] if adults_only else []
    for rule in rules:
        keep &= _ADULTS[rule](columns)
    if not keep.any():
        raise InputError(f"no rows of {name} are left; keep more of them or check the file.")
    features = tuple(feature for feature in FEATURES if feature in columns)
    X = np.empty((int(keep.sum()), len(features)))
    for place, feature in enumerate(features):
        X[:, place] = np.nan_to_num(columns[feature][keep])
    first = columns[_PROTECTED[group]][keep] == 1
    return Table(
        name=name,
        source=_sentence(persons, features, rules, everyone=everyone, income="PINCP" in columns),
        features=features,
        X=X,
        group=np.where(first, *_WORDS[group]),
        outcome=_outcome(columns)[keep],
        unscaled=(_PROTECTED[group],),
        group_feature=_PROTECTED[group],
    )


def _check_columns(columns: Mapping[str, Floats], name: str) -> None:
    needed = [one for one in ("RAC1P", "SEX") if one not in columns]
    needed += [] if "PINCP" in columns or "label" in columns else ["PINCP or label"]
    if needed:
        raise InputError(
            f"{name} needs the columns {listed(needed)}, got {listed(columns)}; "
            f"give a person file of the American Community Survey."
        )
    for column, most in {"RAC1P": 9, "SEX": 2}.items():
        wrong = int(np.sum(~((columns[column] >= 1) & (columns[column] <= most))))
        if wrong:
            raise InputError(
                f"{column} of {name} must be between 1 and {most} in every row, got something else "
                f"in {wrong:,} rows; give a person file of the American Community Survey."
            )


def _outcome(columns: Mapping[str, Floats]) -> NDArray[np.int8]:
    # NaN > x is false: a missing income counts as not above.
    above = columns["PINCP"] > _LIMIT if "PINCP" in columns else columns["label"] == 1
    return above.astype(np.int8)


def _sentence(
    persons: str, features: tuple[str, ...], rules: list[str], *, everyone: bool, income: bool
) -> str:
    """Say which rows these are, and what was done with them."""
    parts = [persons, "people of every race" if everyone else "White and Black people (RAC1P 1, 2)"]
    parts += [f"only {' and '.join(rules)}"] if rules else []
    parts += ["good is an income above 50,000 dollars" + ", missing not above" * income]
    absent = [feature for feature in FEATURES if feature not in features]
    parts += [f"without {', '.join(absent)}, absent from the file"] if absent else []
    return "; ".join([*parts, "missing features are 0"]) + "."
