"""Person files of the American Community Survey as the Census Bureau publishes them."""

from __future__ import annotations

import csv
import io
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from secondlook.errors import InputError
from secondlook.lab.datasets.checks import check_choice
from secondlook.lab.datasets.download import Progress, fetch
from secondlook.lab.datasets.folders import DATA_VARIABLE, Folder, cache_folder, find
from secondlook.lab.datasets.reading import pyarrow, read_numbers
from secondlook.lab.simulate.people import Floats

__all__ = ["FIPS", "HORIZONS", "PersonFile", "read_persons"]

URL = "https://www2.census.gov/programs-surveys/acs/data/pums"
HORIZONS = ("1-Year", "5-Year")

# States by their two letters, with the Bureau's codes.
_STATES = (
    "AL01 AK02 AZ04 AR05 CA06 CO08 CT09 DE10 DC11 FL12 GA13 HI15 ID16 IL17 IN18 IA19 KS20 KY21 "
    "LA22 ME23 MD24 MA25 MI26 MN27 MS28 MO29 MT30 NE31 NV32 NH33 NJ34 NM35 NY36 NC37 ND38 OH39 "
    "OK40 OR41 PA42 RI44 SC45 SD46 TN47 TX48 UT49 VT50 VA51 WA53 WV54 WI55 WY56 PR72"
)
FIPS = {word[:2]: word[2:] for word in _STATES.split()}


@dataclass(frozen=True)
class PersonFile:
    """One state's persons in one year's release.

    Examples
    --------
    >>> one = PersonFile("CA", 2019)
    >>> one.url
    'https://www2.census.gov/programs-surveys/acs/data/pums/2019/1-Year/csv_pca.zip'
    >>> one.names[0]
    '2019/1-Year/csv_pca.zip'
    """

    state: str
    year: int
    horizon: str = "1-Year"

    def __post_init__(self) -> None:
        if self.state not in FIPS:
            raise InputError(
                f"state must be the two letters of a state, DC or PR, such as 'CA', "
                f"got {self.state!r}."
            )
        if not isinstance(self.year, int) or not 2005 <= self.year <= 2100:
            raise InputError(f"year must be a whole number from 2005 on, got {self.year!r}.")
        check_choice("horizon", self.horizon, HORIZONS)

    @property
    def url(self) -> str:
        """Where the Bureau has it."""
        return f"{URL}/{self.names[0]}"

    @property
    def names(self) -> tuple[str, ...]:
        """Where it may lie in a folder: zip, csv by code, csv as before 2017.

        The names say nothing about the year, so the folders above must.
        """
        place, state = f"{self.year}/{self.horizon}", self.state.lower()
        old = f"ss{self.year % 100:02d}p{state}.csv"
        return tuple(
            f"{place}/{name}"
            for name in (f"csv_p{state}.zip", f"psam_p{FIPS[self.state]}.csv", old)
        )

    def find(self, data: Folder = None) -> Path | None:
        """Return where it lies on this machine; None if nowhere."""
        return find(data, self.names)

    def get(self, data: Folder, download: bool, progress: Progress | None) -> Path:
        """Return where it lies, after fetching it into the cache if need be."""
        by_hand = (
            f"fetch it by hand and put it as {self.names[0]} into a folder named by data= or "
            f"{DATA_VARIABLE}"
        )
        if (path := self.find(data)) is not None:
            return path
        if not download:
            raise InputError(f"{self.url} is not on this machine; {by_hand}.")
        if self.year == 2020 and self.horizon == "1-Year":
            by_hand = f"the Bureau published no standard 1-Year file for 2020; {by_hand}"
        target = cache_folder() / self.names[0]
        return fetch(self.url, target, problem=_zip_problem, by_hand=by_hand, progress=progress)

    def check_is(self, row: dict[str, str], path: Path) -> None:
        """Refuse a file whose first row says that it is of another year or state."""
        # Since 2017 (and in all 5-Year files) a SERIALNO of 13 characters begins with the year.
        stamp = re.fullmatch(r"(20\d\d)(\d{9}|[A-Z]{2}\d{7})", row.get("SERIALNO", ""))
        oldest = self.year - (4 if self.horizon == "5-Year" else 0)
        if stamp and not oldest <= int(stamp[1]) <= self.year:
            raise InputError(
                f"{path} must hold persons of {self.year} ({self.horizon}), got {stamp[1]}; "
                f"put it into the folder of its own year."
            )
        code = row.get("ST") or row.get("STATE")
        if code is not None and code.zfill(2) != FIPS[self.state]:
            raise InputError(
                f"{path} must hold persons of {self.state} (code {FIPS[self.state]}), got code "
                f"{code}; give it its own state's name."
            )


def read_persons(file: PersonFile, path: Path, columns: Iterable[str]) -> dict[str, Floats]:
    """Return those of the columns that a zip or csv file has, NaN where missing."""
    unusable = (OSError, EOFError, UnicodeError, zipfile.BadZipFile, zlib.error, csv.Error)
    try:
        with _opened(path) as stream:
            text = csv.reader(io.TextIOWrapper(stream, encoding="utf-8-sig"))
            header, first = next(text, []), next(text, [])
        file.check_is(dict(zip(header, first, strict=False)), path)
        with _opened(path) as stream:
            return read_numbers(stream, [one for one in columns if one in header])
    except (*unusable, pyarrow().ArrowException) as error:
        why = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise InputError(
            f"{path} cannot be read as a person file ({why}); delete it and fetch {file.url} again."
        ) from error


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    if path.suffix != ".zip":
        with path.open("rb") as stream:
            yield stream
        return
    with zipfile.ZipFile(path) as archive, archive.open(_member(archive)) as stream:
        yield stream


def _member(archive: zipfile.ZipFile) -> str:
    tables = [name for name in archive.namelist() if name.lower().endswith(".csv")]
    if len(tables) != 1:
        raise zipfile.BadZipFile(f"it must hold one csv file, got {len(tables)}")
    return tables[0]


def _zip_problem(path: Path) -> str | None:
    try:
        with zipfile.ZipFile(path) as archive:
            _member(archive)
            broken = archive.testzip()
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        return f"is not a usable zip file ({error})"
    return f"is a damaged zip file ({broken})" if broken else None
