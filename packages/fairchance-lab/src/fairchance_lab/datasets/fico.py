"""TransUnion TransRisk scores: the distribution of scores and the share of good payers, by race."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from fairchance.errors import InputError
from fairchance.simulate.people import Floats
from fairchance.simulate.populations import FiniteDomain
from fairchance.words import listed
from fairchance_lab.datasets.download import (
    DATA_VARIABLE,
    Folder,
    Progress,
    cache_folder,
    fetch,
    search_folders,
)

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

    A cell is a score (0 to 100) and a group; its mass is the group's total times the rise of
    the group's cumulative distribution at that score, its P(good) is 1 − per cent bad / 100.

    Parameters
    ----------
    data
        A folder that holds ``fico/*.csv``, searched before FAIRCHANCE_DATA and the cache.
    download
        Whether missing files are downloaded into the cache.
    progress
        Called with bytes done and bytes in total of each file.
    """
    folder = find_fico(data)
    if folder is None:
        folder = cache_folder() / FOLDER
        by_hand = (
            f"put {', '.join(FILES)} by hand into the folder {FOLDER!r} of a folder named by data= "
            f"or {DATA_VARIABLE}"
        )
        if not download:
            raise InputError(
                f"the credit score tables of {URL} are not on this machine; {by_hand}."
            )
        for name in FILES:
            fetch(
                f"{URL}/{name}",
                folder / name,
                find_problem=_find_problem,
                by_hand=by_hand,
                progress=progress,
            )
    return _population(folder)


def find_fico(data: Folder = None) -> Path | None:
    """Return the first folder that holds all three files, or None."""
    candidates = (folder / FOLDER for folder in search_folders(data))
    return next((c for c in candidates if all((c / name).is_file() for name in FILES)), None)


def _population(folder: Path) -> FiniteDomain:
    _, totals = _read_columns(folder / TOTALS)
    scores, cumulative = _read_columns(folder / CDF)
    same_scores, bad = _read_columns(folder / PERFORMANCE)
    consistent = (
        totals.shape[0] == 1
        and np.array_equal(scores, same_scores)
        and np.all(np.diff(scores) > 0)
        and np.all(cumulative[-1] > 0)
        and np.all(bad <= 100)
    )
    if not consistent:
        raise InputError(
            f"the tables in {folder} do not fit together: {TOTALS} must have one row, {CDF} and "
            f"{PERFORMANCE} must have the same rising scores and percentages; download them from "
            f"{URL} again."
        )
    return FiniteDomain(
        X=np.tile(scores, len(_GROUPS))[:, None],
        group=np.repeat(list(_GROUPS.values()), scores.size),
        mass=(totals * _shares(cumulative)).T.ravel(),
        good=1 - bad.T.ravel() / 100,
        features=("score",),
    )


def _shares(cumulative: Floats) -> Floats:
    """Return the share of each row, by column, of a rounded cumulative distribution.

    Rounding may make the distribution fall a little or end near 100. A fall, and the rise back
    to the level before it, add nothing; shares are relative to the last value.

    Examples
    --------
    >>> _shares(np.array([[10.0], [40.0], [39.9], [80.0]])).ravel().tolist()
    [0.125, 0.375, 0.0, 0.5]
    """
    rising = np.maximum.accumulate(cumulative, axis=0)
    shares: Floats = np.diff(rising, axis=0, prepend=0.0) / rising[-1]
    return shares


def _read_columns(path: Path) -> tuple[Floats, Floats]:
    """Return the first column (NaN for text) and the columns of the groups."""
    if (problem := _find_problem(path)) is not None:
        raise InputError(f"{path} {problem}; download it from {URL} again.")
    return _parse(path)


def _find_problem(path: Path) -> str | None:
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
    positions = [header.index(name) for name in _GROUPS]
    values = np.array([[float(row[i]) for i in positions] for row in rows])
    return np.array([_number(row[0]) for row in rows]), values


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
