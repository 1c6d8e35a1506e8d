"""Where tables may be read from and written to, by the names of files."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from secondlook.errors import InputError

__all__ = ["check_output", "check_writable", "suffix_of"]

_SUFFIXES = (".csv", ".parquet")


def suffix_of(path: str, then: str = "convert it to one of these") -> str:
    """Return what a table's file ends in; raise, with what to do then, if that is no table.

    Examples
    --------
    >>> suffix_of("2031/Applicants.CSV")
    '.csv'
    """
    found = Path(path).suffix.lower()
    if found not in _SUFFIXES:
        raise InputError(
            f"a table is a file that ends in {' or '.join(_SUFFIXES)}, or - for csv on standard "
            f"input and output, got {path!r}; {then}."
        )
    return found


def check_output(path: str) -> None:
    """Raise unless a table could be written there by its name: to a file, in a folder there is."""
    if path == "-":
        return
    suffix_of(path, "name such a file")
    place = Path(path)
    if place.is_dir():
        raise InputError(f"{path!r} is a folder, and a table is written to a file; name one in it.")
    if not place.absolute().parent.is_dir():
        raise InputError(
            f"a table is written to a file in a folder that exists, got {path!r}; make the folder "
            f"or choose another."
        )


def check_writable(path: str) -> None:
    """Do as ``check_output`` and try it, before doing what cannot be undone; nothing is left.

    Tables appear beside their place first, so that is what is tried: a file that is there already
    stays as it is.
    """
    check_output(path)
    if path == "-":
        return
    place = Path(path).absolute()
    try:
        handle, made = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
        os.close(handle)
        Path(made).unlink()
    except OSError as error:
        raise InputError(
            f"{path!r} cannot be written ({error.strerror}); choose another place."
        ) from error
