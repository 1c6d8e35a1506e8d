"""Income in the American Community Survey: the paper's larger data set, and stand-ins for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from secondlook.errors import InputError
from secondlook.lab.datasets.checks import listed
from secondlook.lab.datasets.download import Progress
from secondlook.lab.datasets.folders import Folder
from secondlook.lab.datasets.income import COLUMNS, check_group, income_table
from secondlook.lab.datasets.pums import PersonFile, read_persons
from secondlook.lab.datasets.reading import as_floats, read_columns, read_names
from secondlook.lab.simulate.people import Floats, Table

__all__ = ["load_acs_income", "load_prepared", "person_files"]


def load_acs_income(
    states: str | Sequence[str],
    year: int,
    *,
    group: str = "race",
    horizon: str = "1-Year",
    everyone: bool = False,
    adults_only: bool = False,
    data: Folder = None,
    download: bool = True,
    progress: Progress | None = None,
) -> Table:
    """Load persons of one or more states as the Census Bureau published them.

    The paper's data are ``load_acs_income("CA", 2019)``. A file is looked for as
    ``<year>/<horizon>/csv_p<state>.zip`` (or ``psam_p<code>.csv``) in ``data``, in SECONDLOOK_DATA
    and in the cache, then downloaded into the cache.

    Parameters
    ----------
    states
        Two letters, such as ``"CA"``, or a list of them.
    year
        Year of the release.
    group
        ``"race"`` (White, Black) or ``"gender"`` (male, female).
    horizon
        ``"1-Year"`` or ``"5-Year"``.
    everyone
        For gender, keep people of every race, as the paper's released code does; its text keeps
        White and Black people.
    adults_only
        Apply the filter of ACSIncome, which the paper does not.
    data
        A folder to look into first.
    download
        Whether a file that is nowhere is fetched.
    progress
        Called with bytes done and bytes in all of each file.
    """
    files = person_files(states, year, horizon)
    check_group(group, everyone)
    paths = [file.get(data, download, progress) for file in files]
    wanted = [column for column in COLUMNS if column != "label"]
    parts = [read_persons(file, path, wanted) for file, path in zip(files, paths, strict=True)]
    names = [file.state for file in files]
    return income_table(
        _joined(parts),
        name=f"acs:{'+'.join(names)}:{year}" + f":{horizon}" * (horizon != "1-Year"),
        persons=f"American Community Survey {year} {horizon} public use microdata, US Census Bureau"
        f", public domain: persons of {', '.join(names)}",
        group=group,
        everyone=everyone,
        adults_only=adults_only,
    )


def load_prepared(
    path: str | Path,
    *,
    name: str | None = None,
    persons: str | None = None,
    group: str = "race",
    everyone: bool = False,
    adults_only: bool = False,
) -> Table:
    """Load persons that somebody put into one file, with ``PINCP`` or ``label`` for the outcome.

    Parameters
    ----------
    path
        A parquet or csv file with the survey's column names.
    name
        Name of the table; the file's without it.
    persons
        Who they are and where they come from; without it ``source`` names the file only.
    group, everyone, adults_only
        As in `load_acs_income`.
    """
    path = Path(path)
    check_group(group, everyone)
    there = set(read_names(path))
    wanted = [column for column in COLUMNS if column in there]
    table = read_columns(path, wanted)
    return income_table(
        {column: as_floats(table[column]) for column in wanted},
        name=name or path.stem,
        persons=persons or f"Persons of the American Community Survey in the file {path.name}",
        group=group,
        everyone=everyone,
        adults_only=adults_only,
    )


def person_files(
    states: str | Sequence[str], year: int, horizon: str = "1-Year"
) -> list[PersonFile]:
    """Return the files that hold the persons of some states.

    Examples
    --------
    >>> [file.names[0] for file in person_files(["PA", "in"], 2024)]
    ['2024/1-Year/csv_ppa.zip', '2024/1-Year/csv_pin.zip']
    """
    letters = [one.upper() for one in ([states] if isinstance(states, str) else states)]
    if not letters or len(set(letters)) < len(letters):
        raise InputError(
            f"states must name at least one state, each once, got {listed(letters) or 'none'}."
        )
    return [PersonFile(one, year, horizon) for one in letters]


def _joined(parts: list[dict[str, Floats]]) -> dict[str, Floats]:
    """Put the rows of several files below each other, with the columns that all of them have."""
    columns = [one for one in parts[0] if all(one in part for part in parts)]
    return {one: np.concatenate([part[one] for part in parts]) for one in columns}
