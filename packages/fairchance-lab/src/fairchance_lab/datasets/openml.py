"""Adult and Taiwan's credit cards: from a file, or from OpenML.

A file in one of the data folders comes first. Without one, scikit-learn's ``fetch_openml``
downloads the table and keeps it in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairchance.errors import InputError, UnavailableError
from fairchance.extras import arrow
from fairchance.simulate.people import Table
from fairchance.words import listed
from fairchance_lab.datasets.download import DATA_VARIABLE, Folder, cache_folder, find, reason_of
from fairchance_lab.datasets.reading import as_floats, read_columns, read_names

__all__ = ["PUBLIC", "PublicTable", "age_bands"]

Columns: TypeAlias = dict[str, NDArray[Any]]
Groups: TypeAlias = Mapping[str, tuple[str, Callable[[NDArray[Any]], NDArray[np.str_]]]]


def age_bands(age: NDArray[np.float64]) -> NDArray[np.str_]:
    """Return the age bands of the COMPAS score, which both tables use.

    Examples
    --------
    >>> age_bands(np.array([24.0, 25, 45, 46])).tolist()
    ['under 25', '25 to 45', '25 to 45', 'over 45']
    """
    return np.select([age < 25, age <= 45], ["under 25", "25 to 45"], "over 45")


@dataclass(frozen=True)
class PublicTable:
    """A public table of people.

    Attributes
    ----------
    name, description, source, licence
        Text for readers.
    openml
        Number of the data set at OpenML.
    file
        Name of a prepared file, tried before ``<name>.parquet`` and ``<name>.csv``.
    columns
        Features, all of which must be there, with blanks between.
    outcomes
        Possible names of the outcome's column, each with the value that is good.
    good
        What a good outcome is, in words.
    groups
        Ways to group people: the feature that holds the group, and the groups of its values.
    unscaled
        Features that are not standardised; text columns never are.
    renamed
        Other names of columns.
    one_hot
        Columns of codes that become 0/1 columns, with the number of codes from 0.
    gain, loss, alpha, utility
        Default goal of experiments, and the reason for it.
    """

    name: str
    description: str
    source: str
    licence: str
    openml: int
    file: str
    columns: str
    outcomes: tuple[tuple[str, str | float], ...]
    good: str
    groups: Groups
    unscaled: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    one_hot: Mapping[str, int] = field(default_factory=dict)
    gain: float = 200.0
    loss: float = 500.0
    alpha: float = 0.15
    utility: str = ""

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(self.columns.split())

    @property
    def files(self) -> tuple[str, ...]:
        """File names to search for in data folders."""
        return (self.file, f"{self.name}.parquet", f"{self.name}.csv")

    def load(self, group: str, data: Folder, *, download: bool = True, **_: object) -> Table:
        """Load the table from a data folder or from OpenML, grouped by one of ``groups``."""
        path = find(data, self.files)
        if path is None and not download:
            raise InputError(f"{self.name} is not on this machine; {self._by_hand}.")
        where, columns = self._download() if path is None else (path.name, _read(path))
        return self._table(columns, where, group)

    @property
    def _by_hand(self) -> str:
        return f"put {self.files[1]} or .csv into a folder named by data= or {DATA_VARIABLE}"

    def _download(self) -> tuple[str, Columns]:
        from sklearn.datasets import fetch_openml  # noqa: PLC0415 - slow to import

        where = f"OpenML data set {self.openml}"
        try:
            fetched = fetch_openml(
                data_id=self.openml,
                as_frame=False,
                parser="liac-arff",  # the other one needs pandas
                target_column=None,
                data_home=cache_folder(),
            )
        except (OSError, ValueError) as error:
            raise UnavailableError(
                f"{where} ({self.name}) cannot be downloaded ({reason_of(error)}); {self._by_hand}."
            ) from error
        return where, {
            name: _decoded(fetched.data[:, i], fetched.categories.get(name))
            for i, name in enumerate(fetched.feature_names)
        }

    def _table(self, columns: Columns, where: str, group: str) -> Table:
        columns = {self.renamed.get(name, name): column for name, column in columns.items()}
        for name, n_codes in self.one_hot.items():
            if name in columns:
                codes = columns.pop(name)
                columns |= {f"{name}_{k}": (codes == k).astype(float) for k in range(n_codes)}
        outcome = self._outcome(columns, where)
        text = tuple(name for name in self.features if columns[name].dtype.kind == "U")
        group_feature, groups = self.groups[group]
        return Table(
            name=self.name,
            source=f"{self.source}: {outcome.size:,} people, from {where}; good is {self.good}.",
            features=self.features,
            X=np.column_stack([self._numbers(name, columns[name]) for name in self.features]),
            group=groups(columns[group_feature]),
            outcome=outcome,
            unscaled=(*text, *self.unscaled),
            group_feature=group_feature,
        )

    def _outcome(self, columns: Columns, where: str) -> NDArray[np.int8]:
        """Return 1 for good outcomes; raise if columns are absent or the outcome is another."""
        absent = [name for name in self.features if name not in columns]
        present = [(name, good) for name, good in self.outcomes if name in columns]
        if absent or not present:
            absent += [] if present else [self.outcomes[0][0]]
            raise InputError(
                f"{where} has no column {listed(absent)}; its columns are {listed(columns)}."
            )
        name, good = present[0]
        values = np.unique(columns[name]).tolist()
        if len(values) != 2 or good not in values:
            raise InputError(
                f"the outcome {name!r} of {where} must have two values, one of them {good!r}, got "
                f"{listed(values[:5])}."
            )
        return np.asarray(columns[name] == good, dtype=np.int8)

    def _numbers(self, name: str, column: NDArray[Any]) -> NDArray[np.float64]:
        """Return a feature as numbers; the values of a text column are numbered alphabetically."""
        if column.dtype.kind == "U":
            return np.unique(column, return_inverse=True)[1].astype(np.float64)
        missing = np.isnan(column)
        if missing.any():
            raise InputError(
                f"the feature {name!r} of {self.name} is missing in {missing.sum():,} rows."
            )
        return column


def _read(path: Path) -> Columns:
    """Return the columns of a file: numbers, or text with '?' where it is missing."""
    names = read_names(path)
    table = read_columns(path, names)
    columns: Columns = {}
    for name in names:
        column = table[name]
        try:
            columns[name] = as_floats(column)
        except arrow().ArrowInvalid:
            columns[name] = np.array(["?" if v is None else str(v) for v in column.to_pylist()])
    return columns


def _decoded(codes: NDArray[np.float64], categories: list[str] | None) -> NDArray[Any]:
    """Return a column of OpenML: numbers, or the text of nominal values, '?' if missing."""
    if categories is None:
        return codes
    at = np.where(np.isnan(codes), len(categories), codes).astype(np.intp)
    try:
        return np.array([*map(float, categories), np.nan])[at]
    except ValueError:
        return np.array([*categories, "?"])[at]


def _two(low: str, high: str) -> Callable[[NDArray[Any]], NDArray[np.str_]]:
    """Return a function that names the lower and the higher of two codes."""
    return lambda codes: np.where(codes == codes.max(), high, low)


def _race(race: NDArray[np.str_]) -> NDArray[np.str_]:
    return np.where(np.isin(race, ["White", "Black"]), race, "other")


_AGE = ("age", age_bands)
_TAIWAN = (
    "LIMIT_BAL SEX AGE PAY_0 PAY_2 PAY_3 PAY_4 PAY_5 PAY_6 BILL_AMT1 BILL_AMT2 BILL_AMT3 BILL_AMT4 "
    "BILL_AMT5 BILL_AMT6 PAY_AMT1 PAY_AMT2 PAY_AMT3 PAY_AMT4 PAY_AMT5 PAY_AMT6"
)
# OpenML numbers the columns from x1 in UCI's order, in which these two come after SEX.
_ONE_HOT = {"EDUCATION": 7, "MARRIAGE": 4}
_UCI_ORDER = _TAIWAN.replace("SEX", "SEX EDUCATION MARRIAGE").split()

PUBLIC = (
    PublicTable(
        name="adult",
        description="Income above 50,000 dollars, persons of the United States in 1994",
        source="Adult, Barry Becker and Ronny Kohavi, UCI Machine Learning Repository, "
        "doi 10.24432/C5XW20, CC BY 4.0",
        licence="CC BY 4.0",
        openml=1590,
        file="uci_adult.parquet",
        columns="age workclass fnlwgt education education-num marital-status occupation "
        "relationship race sex capital-gain capital-loss hours-per-week native-country",
        outcomes=(("class", ">50K"), ("Probability", ">50K")),
        good="an income above 50,000 dollars; text columns are codes, '?' included",
        groups={"sex": ("sex", np.asarray), "race": ("race", _race), "age": _AGE},
        utility="the paper's for census income",
    ),
    PublicTable(
        name="taiwan",
        description="Defaults of 30,000 credit card clients in Taiwan, 2005",
        source="Default of Credit Card Clients, I-Cheng Yeh, UCI Machine Learning Repository, "
        "doi 10.24432/C55S3H, CC BY 4.0",
        licence="CC BY 4.0",
        openml=42477,
        file="taiwan_credit.parquet",
        columns=" ".join(
            [_TAIWAN, *(f"{name}_{k}" for name, n in _ONE_HOT.items() for k in range(n))]
        ),
        outcomes=(("default-payment-next-month", 0.0), ("y", 0.0)),
        good="no default in the next month; education and marriage are 0/1 columns",
        # UCI codes men as 1 and women as 2; prepared files have 0 and 1.
        groups={"sex": ("SEX", _two("male", "female")), "age": ("AGE", age_bands)},
        unscaled=("SEX",),
        renamed={f"x{i}": name for i, name in enumerate(_UCI_ORDER, start=1)},
        one_hot=_ONE_HOT,
        utility="the source has no costs; the paper's for German credit, the nearest published",
    ),
)
