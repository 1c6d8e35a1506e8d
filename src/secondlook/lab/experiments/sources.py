"""The data set or population that a world names."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from secondlook.errors import InputError
from secondlook.lab.datasets import CATALOGUE, load, read_table
from secondlook.lab.experiments.world_spec import WorldSpec
from secondlook.lab.simulate.people import Table
from secondlook.lab.simulate.populations import Lender, Population

__all__ = ["POPULATIONS", "load_source"]

POPULATIONS: dict[str, Callable[..., Population]] = {"lender": Lender}


def load_source(
    spec: WorldSpec,
    *,
    data: Path | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> Table | Population:
    """Return the people of a world.

    Parameters
    ----------
    spec
        The world.
    data
        A folder to look for data files in, before SECONDLOOK_DATA and the cache.
    progress
        Called with bytes done and in all while something is downloaded.
    """
    if spec.data in POPULATIONS:
        try:
            return POPULATIONS[spec.data](**spec.population)
        except TypeError as error:
            raise InputError(f"the population {spec.data} got a wrong option: {error}.") from error
    if spec.population:
        raise InputError(
            f"population options are for {', '.join(POPULATIONS)}, and data is {spec.data!r}; "
            f"leave them out."
        )
    near = difflib.get_close_matches(spec.data, POPULATIONS, n=1)
    if near and spec.data not in CATALOGUE and not spec.columns:
        raise InputError(f"there are no data {spec.data!r}; did you mean {near[0]}?")
    if spec.columns:
        columns: dict[str, Any] = dict(spec.columns)
        return read_table(Path(spec.data), **_checked(columns))
    if Path(spec.data).suffix in (".csv", ".parquet"):
        raise InputError(
            f"{spec.data} is a file of your own: say in columns which one is the outcome and which "
            f'the group, such as columns = {{outcome = "repaid", group = "sex"}}.'
        )
    return load(spec.data, group=spec.group or None, data=data, progress=progress)


def _checked(columns: dict[str, Any]) -> dict[str, Any]:
    known = ("outcome", "group", "features", "good", "unscaled", "categorical", "missing", "name")
    for name in ("outcome", "group"):
        if name not in columns:
            raise InputError(f"columns lacks {name}: name the column of the file that holds it.")
    for name in columns:
        if name not in known:
            raise InputError(f"columns has no field {name!r}; known are {', '.join(known)}.")
    return columns
