"""Where files of data lie on this machine: a folder given, SECONDLOOK_DATA, or the cache."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from secondlook.errors import InputError

__all__ = ["CACHE_VARIABLE", "DATA_VARIABLE", "Folder", "cache_folder", "find", "folders"]

Folder: TypeAlias = str | os.PathLike[str] | None

DATA_VARIABLE = "SECONDLOOK_DATA"
CACHE_VARIABLE = "SECONDLOOK_CACHE"


def cache_folder() -> Path:
    """Return where downloads are kept: SECONDLOOK_CACHE, or secondlook in the user's cache."""
    if own := os.environ.get(CACHE_VARIABLE):
        return Path(own).expanduser().absolute()
    users = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG specification asks to ignore relative paths.
    return (users if users.is_absolute() else Path.home() / ".cache") / "secondlook"


def folders(data: Folder) -> list[Path]:
    """Return the folders that are searched, in order; the cache, which is last, may not exist.

    Parameters
    ----------
    data
        A folder given by the caller, searched first.
    """
    given = {"data": data, DATA_VARIABLE: os.environ.get(DATA_VARIABLE) or None}
    found = []
    for option, value in given.items():
        if value is None:
            continue
        folder = Path(value).expanduser()
        if not folder.is_dir():
            raise InputError(
                f"{option} must name a folder that exists, got {os.fspath(value)!r}; "
                f"make it or leave {option} out."
            )
        found.append(folder)
    return [*found, cache_folder()]


def find(data: Folder, names: Sequence[str]) -> Path | None:
    """Return the first file of one of these names, folder by folder; None if there is none.

    Parameters
    ----------
    data
        A folder given by the caller, searched first.
    names
        Paths relative to a folder, the preferred one first.
    """
    candidates = (folder / name for folder in folders(data) for name in names)
    return next((path for path in candidates if path.is_file()), None)
