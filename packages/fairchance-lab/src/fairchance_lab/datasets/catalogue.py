"""Data sets by name: descriptions, sources, and whether they are on this machine."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Literal, Protocol

from fairchance.errors import InputError
from fairchance.simulate.people import Table
from fairchance.simulate.populations import FiniteDomain
from fairchance_lab.datasets.acs import (
    GROUPS,
    PersonFile,
    load_acs_income,
    load_prepared,
    person_files,
)
from fairchance_lab.datasets.download import DATA_VARIABLE, Folder, Progress, find
from fairchance_lab.datasets.fico import URL as FICO_URL
from fairchance_lab.datasets.fico import find_fico, load_fico
from fairchance_lab.datasets.german import load_german
from fairchance_lab.datasets.openml import PUBLIC, PublicTable
from fairchance_lab.datasets.reading import check_choice

__all__ = ["CATALOGUE", "Availability", "CatalogueEntry", "find_entry", "load"]


@dataclass(frozen=True)
class Availability:
    """Whether a data set is on this machine.

    Attributes
    ----------
    state
        ``"bundled"`` with the package, ``"found"`` on this machine, ``"download"`` if it can be
        downloaded, or ``"absent"`` if it must be put there by hand.
    where
        Path, address, or instructions.
    """

    state: Literal["bundled", "found", "download", "absent"]
    where: str

    def __str__(self) -> str:
        texts = {"found": "found at", "download": "would be downloaded from", "absent": "not here:"}
        return f"{texts.get(self.state, self.state)} {self.where}".strip()


class _Loader(Protocol):
    """Loads a data set, grouped in one of the possible ways."""

    def __call__(
        self, group: str, data: Folder, /, *, download: bool, progress: Progress | None
    ) -> Table | FiniteDomain:
        """Return a table or a population."""


@dataclass(frozen=True)
class CatalogueEntry:
    """A data set before it is loaded.

    Attributes
    ----------
    name, description, source, licence
        Text for readers.
    groups
        Ways to group people, the default first.
    loader
        Loads the data set for a group and a folder.
    look
        Returns the availability, given a folder.
    kind
        ``"table"`` of people, or ``"population"`` to draw people from.
    gain, loss, alpha, utility
        Goal of experiments that state none, and the reason for it.
    """

    name: str
    description: str
    source: str
    licence: str
    groups: tuple[str, ...]
    loader: _Loader
    look: Callable[[Folder], Availability]
    kind: Literal["table", "population"] = "table"
    gain: float = 200.0
    loss: float = 500.0
    alpha: float = 0.15
    utility: str = "the paper's"

    def available(self, data: Folder = None) -> Availability:
        """Return whether the data are bundled, found or to be downloaded; downloads nothing."""
        return self.look(data)

    def load(
        self,
        group: str | None = None,
        data: Folder = None,
        *,
        download: bool = True,
        progress: Progress | None = None,
    ) -> Table | FiniteDomain:
        """Load the data, with the options of `load`."""
        group = self.groups[0] if group is None else group
        check_choice(f"group of {self.name}", group, self.groups)
        return self.loader(group, data, download=download, progress=progress)


def load(
    name: str,
    *,
    group: str | None = None,
    data: Folder = None,
    download: bool = True,
    progress: Progress | None = None,
) -> Table | FiniteDomain:
    """Load a data set by name.

    Parameters
    ----------
    name
        A name of the catalogue, or ``"acs:<states>:<year>"`` such as ``"acs:PA+MA+IN:2024"``.
    group
        How to group people; by default the first way of the data set.
    data
        A folder to search before FAIRCHANCE_DATA and the cache.
    download
        Whether missing files are downloaded.
    progress
        Called with bytes done and bytes in total of each download.

    Examples
    --------
    >>> len(load("german"))
    1000
    """
    return find_entry(name).load(group, data, download=download, progress=progress)


def find_entry(name: str) -> CatalogueEntry:
    """Return the catalogue entry of a data set.

    Examples
    --------
    >>> find_entry("acs:CA:2018").groups
    ('race', 'gender')
    """
    if name in CATALOGUE:
        return CATALOGUE[name]
    if parts := re.fullmatch(r"acs:([A-Za-z]{2}(?:\+[A-Za-z]{2})*):(\d{4})", name):
        return _survey_entry(parts[1].split("+"), int(parts[2]))
    near = difflib.get_close_matches(name, CATALOGUE, n=1, cutoff=0.4)
    raise InputError(
        f"there is no data set {name!r}"
        + (f" (did you mean {near[0]!r}?)" if near else "")
        + f"; known are {', '.join(CATALOGUE)}, and acs:<states>:<year> such as acs:CA:2018."
    )


def _survey_entry(
    states: list[str], year: int, *, name: str = "", description: str = ""
) -> CatalogueEntry:
    """Return the entry of any states and year of the American Community Survey."""
    files = person_files(states, year)
    names = ", ".join(file.state for file in files)
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

    return CatalogueEntry(
        name=name,
        description=description or f"Income above 50,000 dollars, all persons of {names} in {year}",
        source=f"American Community Survey {year} 1-Year, US Census Bureau",
        licence="public domain",
        groups=GROUPS,
        loader=loader,
        look=partial(_find_survey, files),
    )


def _find_survey(files: list[PersonFile], data: Folder) -> Availability:
    paths = {file: file.find(data) for file in files}
    missing = [file.url for file, path in paths.items() if path is None]
    if missing:
        return Availability("download", ", ".join(missing))
    return Availability("found", ", ".join(str(path) for path in paths.values()))


def _prepared_entry(name: str, file: str, description: str, persons: str) -> CatalogueEntry:
    """Return the entry of a file that was prepared from the survey, and cannot be downloaded."""

    def look(data: Folder) -> Availability:
        path = find(data, [file])
        if path is None:
            return Availability("absent", f"put {file} into a folder named by {DATA_VARIABLE}")
        return Availability("found", str(path))

    def loader(group: str, data: Folder, **_: object) -> Table:
        path = find(data, [file])
        if path is None:
            raise InputError(
                f"{name} needs the file {file}, which cannot be downloaded (fairchance datasets "
                f"says what is in it); put it into a folder named by data= or {DATA_VARIABLE}, or "
                f"take another data set, such as acs:CA:2018."
            )
        return load_prepared(path, name=name, persons=persons, group=group)

    return CatalogueEntry(name, description, persons, "public domain", GROUPS, loader, look)


def _public_entry(table: PublicTable) -> CatalogueEntry:
    """Return the entry of a table that OpenML has."""

    def look(data: Folder) -> Availability:
        path = find(data, table.files)
        if path is None:
            return Availability("download", f"OpenML data set {table.openml}, by scikit-learn")
        return Availability("found", str(path))

    return CatalogueEntry(
        table.name,
        table.description,
        table.source,
        table.licence,
        tuple(table.groups),
        table.load,
        look,
        gain=table.gain,
        loss=table.loss,
        alpha=table.alpha,
        utility=table.utility,
    )


def _load_german(group: str, _data: Folder, **_: object) -> Table:
    return load_german(group)


def _load_fico(
    _group: str, data: Folder, *, download: bool, progress: Progress | None
) -> FiniteDomain:
    return load_fico(data, download, progress=progress)


def _find_fico(data: Folder) -> Availability:
    folder = find_fico(data)
    return (
        Availability("download", FICO_URL) if folder is None else Availability("found", str(folder))
    )


_ENTRIES = (
    CatalogueEntry(
        name="german",
        description="Good and bad credits of 1,000 people in Germany, 1973 to 1975",
        source="Statlog (German Credit Data), Hans Hofmann, UCI Machine Learning Repository, "
        "doi 10.24432/C5NC77",
        licence="CC BY 4.0",
        groups=("sex",),
        loader=_load_german,
        look=lambda _: Availability("bundled", ""),
    ),
    _survey_entry(
        ["CA"],
        2019,
        name="adult-ca-2019",
        description="Income above 50,000 dollars, California in 2019: the paper's data",
    ),
    _prepared_entry(
        "acs-ca-2018-sample",
        "acs_ca_2018_adults_40pct.parquet",
        "Income above 50,000 dollars, 40 % of California's working adults in 2018: a stand-in",
        "American Community Survey 2018 1-Year public use microdata, US Census Bureau, public "
        "domain: California, adults by the filter of ACSIncome, a random 40 % of them (a stand-in, "
        "not the paper's California 2019)",
    ),
    _prepared_entry(
        "acs-pa-ma-in-2024",
        "acs_pa_ma_in_2024_persons.parquet",
        "Income above 50,000 dollars, Pennsylvania, Massachusetts and Indiana in 2024: a stand-in",
        "American Community Survey 2024 public use microdata, US Census Bureau, public domain: "
        "all persons of Pennsylvania, Massachusetts and Indiana (a stand-in, not the paper's "
        "California 2019)",
    ),
    *map(_public_entry, PUBLIC),
    CatalogueEntry(
        name="fico",
        description="Credit scores and the share of good payers at each, by race, United States "
        "2003",
        source="TransUnion TransRisk scores in the Federal Reserve's report to Congress on credit "
        "scoring, 2007, as tables of fairmlbook.org",
        licence="published by the Federal Reserve Board; tables downloaded, not bundled",
        groups=("race",),
        loader=_load_fico,
        look=_find_fico,
        kind="population",
    ),
)

CATALOGUE: Mapping[str, CatalogueEntry] = MappingProxyType({e.name: e for e in _ENTRIES})
