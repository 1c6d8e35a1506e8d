"""Where tables may be read from and written to, by the names of files, and where nothing may be."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from secondlook.errors import InputError, LedgerError

__all__ = ["are_one", "check_apart", "check_output", "check_writable", "ledger_files", "suffix_of"]

_SUFFIXES = (".csv", ".parquet")
_BESIDE = ("-wal", "-shm", "-journal")  # behind a ledger's name: files of SQLite's


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


def are_one(one: str | Path, other: str | Path) -> bool:
    """Say whether two names lead to one file, by links or in another spelling too.

    Examples
    --------
    >>> are_one("2031/../lender.db", "lender.db"), are_one("lender.db", "other.db")
    (True, False)
    """
    try:
        return os.path.samefile(one, other)
    except OSError:  # one of them is not there
        return os.path.realpath(one) == os.path.realpath(other)


def ledger_files(url: str | None) -> list[Path]:
    """Return the files that a ledger on SQLite has or may get; none for any other.

    A place where no ledger can live has none: whoever opens it says so.

    Examples
    --------
    >>> [one.name for one in ledger_files("sqlite:///lender.db")]
    ['lender.db', 'lender.db-wal', 'lender.db-shm', 'lender.db-journal']
    """
    if not url:
        return []
    from secondlook.ledger.urls import read_url  # noqa: PLC0415 - an extra, and slow to import

    try:
        place = read_url(url)
    except LedgerError:
        return []
    if place.drivername != "sqlite" or not place.database:
        return []
    real = Path(os.path.realpath(place.database))  # beside which SQLite puts the others
    return [real, *(real.with_name(f"{real.name}{one}") for one in _BESIDE)]


def check_apart(
    what: str, path: str | Path, other: str, taken: Iterable[str | Path], then: str = "file"
) -> None:
    """Raise if writing to a path would replace one of some files.

    Parameters
    ----------
    what, path
        What is to be written, in words, and where.
    other, taken
        What these files are, in words, and where; ``-`` is none.
    then
        What to choose another of.
    """
    for one in taken:
        if "-" not in (str(path), str(one)) and are_one(path, one):
            raise InputError(
                f"{what} would take the place of {other} in {str(path)!r}; choose another {then}."
            )
