"""Income in the American Community Survey: the paper's larger data set, and replacements for it.

Features are the survey's codes used as numbers, 0 if missing, as the paper prepares them. The
outcome is an income above 50,000 dollars.
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from fairchance.errors import InputError
from fairchance.extras import arrow
from fairchance.simulate.people import Floats, Table
from fairchance.words import listed
from fairchance_lab.datasets.download import (
    DATA_VARIABLE,
    Folder,
    Progress,
    cache_folder,
    fetch,
    find,
)
from fairchance_lab.datasets.reading import (
    as_floats,
    check_choice,
    read_columns,
    read_names,
    read_numbers,
)

__all__ = ["FEATURES", "GROUPS", "PersonFile", "load_acs_income", "load_prepared", "person_files"]

URL = "https://www2.census.gov/programs-surveys/acs/data/pums"

FEATURES = ("AGEP", "COW", "SCHL", "MAR", "OCCP", "POBP", "WKHP", "RAC1P", "SEX")
GROUPS = ("race", "gender")

_COLUMNS = (*FEATURES, "PINCP", "label")
_INCOME_LIMIT = 50_000.0
_PROTECTED = {"race": "RAC1P", "gender": "SEX"}
_GROUP_NAMES = {"race": ("White", "Black"), "gender": ("male", "female")}

# States by their two letters, with the Census Bureau's codes.
_STATES = (
    "AL01 AK02 AZ04 AR05 CA06 CO08 CT09 DE10 DC11 FL12 GA13 HI15 ID16 IL17 IN18 IA19 KS20 KY21 "
    "LA22 ME23 MD24 MA25 MI26 MN27 MS28 MO29 MT30 NE31 NV32 NH33 NJ34 NM35 NY36 NC37 ND38 OH39 "
    "OK40 OR41 PA42 RI44 SC45 SD46 TN47 TX48 UT49 VT50 VA51 WA53 WV54 WI55 WY56 PR72"
)
_STATE_CODES = {word[:2]: word[2:] for word in _STATES.split()}


def load_acs_income(
    states: str | Sequence[str],
    year: int,
    *,
    group: str = "race",
    data: Folder = None,
    download: bool = True,
    progress: Progress | None = None,
) -> Table:
    """Load persons of one or more states as the Census Bureau published them.

    The paper's data are ``load_acs_income("CA", 2019)``. The loader searches
    ``<year>/1-Year/csv_p<state>.zip`` (or ``psam_p<code>.csv``) in ``data``, in FAIRCHANCE_DATA
    and in the cache. A file that is in none of them is downloaded into the cache.

    Parameters
    ----------
    states
        Two letters, such as ``"CA"``, or a list of them.
    year
        Year of the release.
    group
        ``"race"`` (White, Black) or ``"gender"`` (male, female).
    data
        A folder to search first.
    download
        Whether missing files are downloaded.
    progress
        Called with bytes done and bytes in total of each file.
    """
    files = person_files(states, year)
    check_choice("group", group, GROUPS)
    paths = [file.get(data, download, progress) for file in files]
    wanted = [column for column in _COLUMNS if column != "label"]
    parts = [_read_persons(file, path, wanted) for file, path in zip(files, paths, strict=True)]
    names = [file.state for file in files]
    return _income_table(
        _concatenate(parts),
        name=f"acs:{'+'.join(names)}:{year}",
        persons=f"American Community Survey {year} 1-Year public use microdata, US Census Bureau"
        f", public domain: persons of {', '.join(names)}",
        group=group,
    )


def load_prepared(
    path: str | Path,
    *,
    name: str | None = None,
    persons: str | None = None,
    group: str = "race",
) -> Table:
    """Load persons from one prepared file, with ``PINCP`` or ``label`` for the outcome.

    Parameters
    ----------
    path
        A parquet or csv file with the survey's column names.
    name
        Name of the table; by default the file's.
    persons
        Description of the persons and their source; by default the file's name.
    group
        As in `load_acs_income`.
    """
    path = Path(path)
    check_choice("group", group, GROUPS)
    present = set(read_names(path))
    wanted = [column for column in _COLUMNS if column in present]
    table = read_columns(path, wanted)
    return _income_table(
        {column: as_floats(table[column]) for column in wanted},
        name=name or path.stem,
        persons=persons or f"Persons of the American Community Survey in the file {path.name}",
        group=group,
    )


def person_files(states: str | Sequence[str], year: int) -> list[PersonFile]:
    """Return the files that hold the persons of some states.

    Examples
    --------
    >>> [file.names[0] for file in person_files(["PA", "in"], 2024)]
    ['2024/1-Year/csv_ppa.zip', '2024/1-Year/csv_pin.zip']
    """
    letters = [state.upper() for state in ([states] if isinstance(states, str) else states)]
    if not letters or len(set(letters)) < len(letters):
        raise InputError(
            f"states must name at least one state, each once, got {listed(letters) or 'none'}."
        )
    return [PersonFile(state, year) for state in letters]


@dataclass(frozen=True)
class PersonFile:
    """The persons of one state in the release of one year.

    Examples
    --------
    >>> california = PersonFile("CA", 2019)
    >>> california.url
    'https://www2.census.gov/programs-surveys/acs/data/pums/2019/1-Year/csv_pca.zip'
    >>> california.names[0]
    '2019/1-Year/csv_pca.zip'
    """

    state: str
    year: int

    def __post_init__(self) -> None:
        if self.state not in _STATE_CODES:
            raise InputError(f"state must be two letters, such as 'CA', got {self.state!r}.")
        if not isinstance(self.year, int) or not 2005 <= self.year <= 2100:
            raise InputError(f"year must be a whole number from 2005 on, got {self.year!r}.")

    @property
    def url(self) -> str:
        """Address at the Census Bureau."""
        return f"{URL}/{self.names[0]}"

    @property
    def names(self) -> tuple[str, ...]:
        """Possible paths in a folder: zip, csv by code, csv as before 2017.

        File names do not contain the year, so the folders above them must.
        """
        folder, state = f"{self.year}/1-Year", self.state.lower()
        before_2017 = f"ss{self.year % 100:02d}p{state}.csv"
        return tuple(
            f"{folder}/{name}"
            for name in (f"csv_p{state}.zip", f"psam_p{_STATE_CODES[self.state]}.csv", before_2017)
        )

    def find(self, data: Folder = None) -> Path | None:
        """Return the file's path on this machine, or None."""
        return find(data, self.names)

    def get(self, data: Folder, download: bool, progress: Progress | None) -> Path:
        """Return the file's path, after downloading it if necessary."""
        by_hand = (
            f"download it by hand and put it as {self.names[0]} into a folder named by data= or "
            f"{DATA_VARIABLE}"
        )
        if (path := self.find(data)) is not None:
            return path
        if not download:
            raise InputError(f"{self.url} is not on this machine; {by_hand}.")
        target = cache_folder() / self.names[0]
        return fetch(
            self.url, target, find_problem=_zip_problem, by_hand=by_hand, progress=progress
        )

    def check_row(self, row: dict[str, str], path: Path) -> None:
        """Raise if a file's first row is of another year or state."""
        # Since 2017 a SERIALNO of 13 characters begins with the year.
        stamp = re.fullmatch(r"(20\d\d)(\d{9}|[A-Z]{2}\d{7})", row.get("SERIALNO", ""))
        year = int(stamp[1]) if stamp else self.year
        code = (row.get("ST") or row.get("STATE") or _STATE_CODES[self.state]).zfill(2)
        if year != self.year or code != _STATE_CODES[self.state]:
            raise InputError(
                f"{path} must hold persons of {self.state} (code {_STATE_CODES[self.state]}) in "
                f"{self.year}, got code {code} in {year}; move it."
            )


def _read_persons(file: PersonFile, path: Path, columns: Iterable[str]) -> dict[str, Floats]:
    """Read those of the columns that a zip or csv file has; missing values are NaN."""
    unusable = (OSError, EOFError, UnicodeError, zipfile.BadZipFile, zlib.error, csv.Error)
    try:
        with _open_csv(path) as stream:
            text = csv.reader(io.TextIOWrapper(stream, encoding="utf-8-sig"))
            header, first = next(text, []), next(text, [])
        file.check_row(dict(zip(header, first, strict=False)), path)
        with _open_csv(path) as stream:
            return read_numbers(stream, [column for column in columns if column in header])
    except (*unusable, arrow().ArrowException) as error:
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise InputError(
            f"{path} cannot be read as a person file ({reason}); delete it and download {file.url} "
            f"again."
        ) from error


@contextmanager
def _open_csv(path: Path) -> Iterator[IO[bytes]]:
    if path.suffix != ".zip":
        with path.open("rb") as stream:
            yield stream
        return
    with zipfile.ZipFile(path) as archive, archive.open(_csv_member(archive)) as stream:
        yield stream


def _csv_member(archive: zipfile.ZipFile) -> str:
    names = [name for name in archive.namelist() if name.lower().endswith(".csv")]
    if len(names) != 1:
        raise zipfile.BadZipFile(f"it must hold one csv file, got {len(names)}")
    return names[0]


def _zip_problem(path: Path) -> str | None:
    try:
        with zipfile.ZipFile(path) as archive:
            _csv_member(archive)
            broken = archive.testzip()
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        return f"is not a usable zip file ({error})"
    return f"is a damaged zip file ({broken})" if broken else None


def _concatenate(parts: list[dict[str, Floats]]) -> dict[str, Floats]:
    """Join the rows of several files, with the columns that all of them have."""
    columns = [column for column in parts[0] if all(column in part for part in parts)]
    return {column: np.concatenate([part[column] for part in parts]) for column in columns}


def _income_table(
    columns: Mapping[str, Floats],
    *,
    name: str,
    persons: str,
    group: str,
) -> Table:
    """Return the table of persons with these survey columns, in which NaN is a missing value.

    Absent features are left out and named in ``source``; ``label`` replaces an absent PINCP.

    Examples
    --------
    >>> columns = {"AGEP": [40, 50, 8], "RAC1P": [1, 2, 6], "SEX": [2, 1, 1]}
    >>> columns |= {"PINCP": [60_000, float("nan"), float("nan")]}
    >>> columns = {key: np.array(value, dtype=float) for key, value in columns.items()}
    >>> table = _income_table(columns, name="three", persons="Three persons", group="race")
    >>> table.group.tolist(), table.outcome.tolist(), table.features
    (['White', 'Black'], [1, 0], ('AGEP', 'RAC1P', 'SEX'))
    """
    _check_columns(columns, name)
    keep = columns["RAC1P"] <= 2
    if not keep.any():
        raise InputError(f"{name} has no rows of White or Black people; check the file.")
    features = tuple(feature for feature in FEATURES if feature in columns)
    X = np.empty((int(keep.sum()), len(features)))
    for i, feature in enumerate(features):
        X[:, i] = np.nan_to_num(columns[feature][keep])
    first = columns[_PROTECTED[group]][keep] == 1
    return Table(
        name=name,
        source=_describe(persons, features, income="PINCP" in columns),
        features=features,
        X=X,
        group=np.where(first, *_GROUP_NAMES[group]),
        outcome=_outcome(columns)[keep],
        unscaled=(_PROTECTED[group],),
        group_feature=_PROTECTED[group],
    )


def _check_columns(columns: Mapping[str, Floats], name: str) -> None:
    needed = [column for column in ("RAC1P", "SEX") if column not in columns]
    needed += [] if "PINCP" in columns or "label" in columns else ["PINCP or label"]
    if needed:
        raise InputError(f"{name} needs the columns {listed(needed)}, got {listed(columns)}.")
    for column, most in {"RAC1P": 9, "SEX": 2}.items():
        if not ((columns[column] >= 1) & (columns[column] <= most)).all():
            raise InputError(f"{column} of {name} must be between 1 and {most} in every row.")


def _outcome(columns: Mapping[str, Floats]) -> NDArray[np.int8]:
    # NaN > x is false: a missing income counts as not above.
    above = columns["PINCP"] > _INCOME_LIMIT if "PINCP" in columns else columns["label"] == 1
    return above.astype(np.int8)


def _describe(persons: str, features: tuple[str, ...], *, income: bool) -> str:
    """Return a sentence on the rows of a table and how they were prepared."""
    parts = [persons, "White and Black people (RAC1P 1, 2)"]
    parts += ["good is an income above 50,000 dollars" + ", missing not above" * income]
    absent = [feature for feature in FEATURES if feature not in features]
    parts += [f"without {', '.join(absent)}, absent from the file"] if absent else []
    return "; ".join([*parts, "missing features are 0"]) + "."
