"""TransUnion TransRisk scores: who has which score, and how many of them pay, by race."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from secondlook.errors import InputError
from secondlook.lab.datasets.checks import listed
from secondlook.lab.datasets.download import Progress, fetch
from secondlook.lab.datasets.folders import DATA_VARIABLE, Folder, cache_folder, folders
from secondlook.lab.simulate.finite import FiniteDomain
from secondlook.lab.simulate.people import Floats

__all__ = ["FILES", "find_fico", "load_fico"]

URL = (
    "https://raw.githubusercontent.com/fairmlbook/fairmlbook.github.io/master/code/creditscore/data"
)
FOLDER = "fico"
TOTALS = "totals.csv"
CDF = "transrisk_cdf_by_race_ssa.csv"
PERFORMANCE = "transrisk_performance_by_race_ssa.csv"
FILES = (TOTALS, CDF, PERFORMANCE)

_GROUPS = {
    "Non- Hispanic white": "white",
    "Black": "black",
    "Hispanic": "hispanic",
    "Asian": "asian",
}


def load_fico(
    data: Folder = None, download: bool = True, *, progress: Progress | None = None
) -> FiniteDomain:
    """Load the credit scores of the Federal Reserve's report of 2007 as a population.

    A cell is a score (0 to 100) and a group; its mass is the group's total times what the group's
    cumulative distribution gains at that score, its P(good) is 1 − per cent bad / 100.

    Parameters
    ----------
    data
        A folder that holds ``fico/*.csv``; without it SECONDLOOK_DATA and the cache are searched.
    download
        Whether files that are nowhere are fetched into the cache.
    progress
        Called with bytes done and bytes in all of each file.
    """
    folder = find_fico(data)
    if folder is None:
        folder = cache_folder() / FOLDER
        by_hand = (
            f"put {', '.join(FILES)} by hand into the folder {FOLDER!r} of a folder named by data= "
            f"or {DATA_VARIABLE}"
        )
        if not download:
            raise InputError(f"the credit score tables of {URL} are not here; {by_hand}.")
        for name in FILES:
            fetch(
                f"{URL}/{name}", folder / name, problem=_problem, by_hand=by_hand, progress=progress
            )
    return _domain(folder)


def find_fico(data: Folder = None) -> Path | None:
    """Return the first folder that holds all three files; None if there is none."""
    candidates = (folder / FOLDER for folder in folders(data))
    return next((one for one in candidates if all((one / f).is_file() for f in FILES)), None)


def _domain(folder: Path) -> FiniteDomain:
    _, totals = _columns(folder / TOTALS)
    scores, cumulative = _columns(folder / CDF)
    same, bad = _columns(folder / PERFORMANCE)
    fits = (
        totals.shape[0] == 1
        and np.array_equal(scores, same)
        and np.all(np.diff(scores) > 0)
        and np.all(cumulative[-1] > 0)
        and np.all(bad <= 100)
    )
    if not fits:
        raise InputError(
            f"the tables in {folder} do not fit together: {TOTALS} has one row, {CDF} and "
            f"{PERFORMANCE} have the same rising scores and per cent; fetch them from {URL} again."
        )
    return FiniteDomain(
        X=np.tile(scores, len(_GROUPS))[:, None],
        group=np.repeat(list(_GROUPS.values()), scores.size),
        mass=(totals * _gains(cumulative)).T.ravel(),
        good=1 - bad.T.ravel() / 100,
        features=("score",),
    )


def _gains(cumulative: Floats) -> Floats:
    """Return the share of each row, by column, of a distribution given rounded and cumulative.

    Rounding may make it fall by a little, or end beside 100: a fall gains nothing, nor does the
    way back up, and shares are of where it ends.

    Examples
    --------
    >>> _gains(np.array([[10.0], [40.0], [39.9], [80.0]])).ravel().tolist()
    [0.125, 0.375, 0.0, 0.5]
    """
    rising = np.maximum.accumulate(cumulative, axis=0)
    gains: Floats = np.diff(rising, axis=0, prepend=0.0) / rising[-1]
    return gains


def _columns(path: Path) -> tuple[Floats, Floats]:
    """Return the first column (NaN where it holds words) and those of the groups."""
    if (wrong := _problem(path)) is not None:
        raise InputError(f"{path} {wrong}; fetch it from {URL} again.")
    return _parse(path)


def _problem(path: Path) -> str | None:
    try:
        values = _parse(path)[1]
    except (OSError, ValueError, IndexError, csv.Error):
        values = np.empty((0, 0))
    if values.size and np.all((values >= 0) & (values < np.inf)):
        return None
    return f"is not a table of numbers with the columns {listed(_GROUPS)}"


def _parse(path: Path) -> tuple[Floats, Floats]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        header, *rows = [row for row in csv.reader(file) if row]
    places = [header.index(name) for name in _GROUPS]
    values = np.array([[float(row[place]) for place in places] for row in rows])
    return np.array([_number(row[0]) for row in rows]), values


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return float("nan")
