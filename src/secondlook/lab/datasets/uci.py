"""Adult income and Taiwan's credit cards, two tables of the UCI repository, from parquet files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from secondlook.lab.datasets.files import read_table
from secondlook.lab.datasets.reading import check_choice, read_names
from secondlook.lab.simulate.people import Table

__all__ = ["ADULT_SOURCE", "TAIWAN_SOURCE", "load_adult", "load_taiwan"]

ADULT_SOURCE = (
    "Adult, Barry Becker and Ronny Kohavi, UCI Machine Learning Repository, doi 10.24432/C5XW20, "
    "CC BY 4.0"
)
TAIWAN_SOURCE = (
    "Default of Credit Card Clients, I-Cheng Yeh, UCI Machine Learning Repository, "
    "doi 10.24432/C55S3H, CC BY 4.0"
)
_TAIWAN_OUTCOME = "default-payment-next-month"


def load_adult(path: str | Path, group: str = "sex") -> Table:
    """Load persons of the 1994 census; good is an income above 50,000 dollars.

    Text columns become codes in alphabetical order; '?' is a value like any other.

    Parameters
    ----------
    path
        A parquet file with the names and text values of UCI's columns, and the income in
        ``Probability``.
    group
        Only ``"sex"``, with the groups ``"Female"`` and ``"Male"``.
    """
    check_choice("group", group, ("sex",))
    path = Path(path)
    table = read_table(
        path,
        outcome="Probability",
        good=">50K",
        group="sex",
        features=[name for name in read_names(path) if name != "Probability"],
        name="adult",
        categorical="codes",
    )
    return replace(
        table,
        source=f"{ADULT_SOURCE}: {len(table):,} persons of the training part; good is an income "
        f"above 50,000 dollars; text columns are codes, '?' included.",
    )


def load_taiwan(path: str | Path, group: str = "sex") -> Table:
    """Load clients of a bank in Taiwan, 2005; bad is a default in the next month.

    Parameters
    ----------
    path
        A parquet file with UCI's columns, education and marriage as 0/1 columns.
    group
        Only ``"sex"``, with the groups ``"female"`` and ``"male"``.
    """
    check_choice("group", group, ("sex",))
    path = Path(path)
    table = read_table(
        path,
        outcome=_TAIWAN_OUTCOME,
        good=0,
        group="SEX",
        features=[name for name in read_names(path) if name not in ("ID", _TAIWAN_OUTCOME)],
        name="taiwan",
        unscaled=("SEX",),
    )
    # UCI codes men as 1 and women as 2; prepared files have 0 and 1.
    sex = table.X[:, table.features.index("SEX")]
    return replace(
        table,
        source=f"{TAIWAN_SOURCE}: {len(table):,} clients; bad is a default in the next month; "
        f"education and marriage are 0/1 columns.",
        group=np.where(sex == sex.max(), "female", "male"),
    )
