"""Data by name: what there is, where it comes from, and whether it is here."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from secondlook.errors import InputError
from secondlook.lab.datasets.acs import load_acs_income, load_prepared, person_files
from secondlook.lab.datasets.download import Progress
from secondlook.lab.datasets.entries import Availability, Entry
from secondlook.lab.datasets.fico import URL as FICO_URL
from secondlook.lab.datasets.fico import find_fico, load_fico
from secondlook.lab.datasets.folders import DATA_VARIABLE, Folder, find
from secondlook.lab.datasets.german import load_german
from secondlook.lab.datasets.income import GROUPS
from secondlook.lab.datasets.pums import PersonFile
from secondlook.lab.simulate.finite import FiniteDomain
from secondlook.lab.simulate.people import Table

__all__ = ["CATALOGUE", "entry", "load"]


def load(
    name: str,
    *,
    group: str | None = None,
    data: Folder = None,
    download: bool = True,
    progress: Progress | None = None,
) -> Table | FiniteDomain:
    """Load data by name.

    Parameters
    ----------
    name
        A name of the catalogue, or ``"acs:<states>:<year>"`` such as ``"acs:PA+MA+IN:2024"``.
    group
        How to group people; without it the usual way.
    data
        A folder to look into before SECONDLOOK_DATA and the cache.
    download
        Whether what is nowhere is fetched.
    progress
        Called with bytes done and bytes in all of each file fetched.

    Examples
    --------
    >>> len(load("german"))
    1000
    """
    return entry(name).load(group, data, download=download, progress=progress)


def entry(name: str) -> Entry:
    """Return the entry of a name.

    Examples
    --------
    >>> entry("acs:CA:2018").groups
    ('race', 'gender')
    """
    if name in CATALOGUE:
        return CATALOGUE[name]
    if parts := re.fullmatch(r"acs:([A-Za-z]{2}(?:\+[A-Za-z]{2})*):(\d{4})", name):
        return _survey(parts[1].split("+"), int(parts[2]))
    near = difflib.get_close_matches(name, CATALOGUE, n=1, cutoff=0.4)
    raise InputError(
        f"there are no data of the name {name!r}"
        + (f" (the nearest is {near[0]!r})" if near else "")
        + f"; names are {', '.join(CATALOGUE)}, and acs:<states>:<year> such as acs:CA:2018."
    )


def _survey(states: list[str], year: int, *, name: str = "", description: str = "") -> Entry:
    """Return the entry of any states and year of the American Community Survey."""
    files = person_files(states, year)
    words = ", ".join(file.state for file in files)
    name = name or f"acs:{'+'.join(file.state for file in files)}:{year}"

    def loader(group: str, data: Folder, *, download: bool, progress: Progress | None) -> Table:
        table = load_acs_income(
            [file.state for file in files],
            year,
            group=group,
            data=data,
            download=download,
            progress=progress,
        )
        return replace(table, name=name)

    return Entry(
        name=name,
        description=description or f"Income above 50,000 dollars, all persons of {words} in {year}",
        source=f"American Community Survey {year} 1-Year, US Census Bureau",
        licence="public domain",
        groups=GROUPS,
        loader=loader,
        look=partial(_look_survey, files),
    )


def _look_survey(files: list[PersonFile], data: Folder) -> Availability:
    paths = {file: file.find(data) for file in files}
    missing = [file.url for file, path in paths.items() if path is None]
    if missing:
        return Availability("download", ", ".join(missing))
    return Availability("found", ", ".join(str(path) for path in paths.values()))


def _prepared(name: str, file: str, description: str, persons: str) -> Entry:
    """Return the entry of one file that was made of the survey; it is never downloaded."""

    def look(data: Folder) -> Availability:
        path = find(data, [file])
        if path is None:
            return Availability("absent", f"put {file} into a folder named by {DATA_VARIABLE}")
        return Availability("found", str(path))

    def loader(group: str, data: Folder, **_: object) -> Table:
        path = find(data, [file])
        if path is None:
            raise InputError(
                f"{name} needs the file {file}, which is not on this machine and cannot be "
                f"downloaded; put it into a folder named by data= or {DATA_VARIABLE}."
            )
        return load_prepared(path, name=name, persons=persons, group=group)

    return Entry(name, description, persons, "public domain", GROUPS, loader, look)


def _load_german(group: str, _data: Folder, **_: object) -> Table:
    return load_german(group)


def _load_fico(
    _group: str, data: Folder, *, download: bool, progress: Progress | None
) -> FiniteDomain:
    return load_fico(data, download, progress=progress)


def _look_fico(data: Folder) -> Availability:
    folder = find_fico(data)
    return (
        Availability("download", FICO_URL) if folder is None else Availability("found", str(folder))
    )


_ENTRIES = (
    Entry(
        name="german",
        description="Good and bad credits of 1,000 people in Germany, 1973 to 1975",
        source="Statlog (German Credit Data), Hans Hofmann, UCI Machine Learning Repository, "
        "doi 10.24432/C5NC77",
        licence="CC BY 4.0",
        groups=("sex",),
        loader=_load_german,
        look=lambda _: Availability("bundled", ""),
    ),
    _survey(
        ["CA"],
        2019,
        name="adult-ca-2019",
        description="Income above 50,000 dollars, all persons of California in 2019: what the "
        "paper used",
    ),
    _prepared(
        "acs-ca-2018-sample",
        "acs_ca_2018_adults_40pct.parquet",
        "Income above 50,000 dollars, a random 40 % of California's working adults in 2018: a "
        "stand-in, not the paper's data",
        "American Community Survey 2018 1-Year public use microdata, US Census Bureau, public "
        "domain: California, adults by the filter of ACSIncome, a random 40 % of them (a stand-in, "
        "not the paper's California 2019)",
    ),
    _prepared(
        "acs-pa-ma-in-2024",
        "acs_pa_ma_in_2024_persons.parquet",
        "Income above 50,000 dollars, all persons of Pennsylvania, Massachusetts and Indiana in "
        "2024: a stand-in, not the paper's data",
        "American Community Survey 2024 public use microdata, US Census Bureau, public domain: "
        "all persons of Pennsylvania, Massachusetts and Indiana (a stand-in, not the paper's "
        "California 2019)",
    ),
    Entry(
        name="fico",
        description="Credit scores and how many pay at each, by race, United States 2003",
        source="TransUnion TransRisk scores in the Federal Reserve's report to Congress on credit "
        "scoring, 2007, as tables of fairmlbook.org",
        licence="published by the Federal Reserve Board; tables fetched, not bundled",
        groups=("race",),
        loader=_load_fico,
        look=_look_fico,
        kind="population",
    ),
)

CATALOGUE: Mapping[str, Entry] = MappingProxyType({one.name: one for one in _ENTRIES})
