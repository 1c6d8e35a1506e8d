"""Files of applicants that are too large for memory, and the files of decisions on them.

Each file of applicants gets a parquet file of decisions, which appears whole once all of them are
on record. It says of which program and of which applicants it is, so that a command that was
interrupted knows what is done.
"""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

from fairchance.cli.files.tables import READ, is_same_file, parquet_file
from fairchance.errors import InputError, writing
from fairchance.extras import arrow

__all__ = ["PIECE", "DecisionFile", "find_files"]

PIECE = 50_000  # applicants that are in memory at a time

_REFUSED = ".refused.csv"
_ABOUT = b"fairchance"  # in the metadata of a file of decisions


def find_files(named: Sequence[str]) -> list[str]:
    """Return the files that names, patterns and folders mean, in order; raise if there are none.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     for name in ("b.parquet", "a.parquet", "a.refused.csv", "notes.txt"):
    ...         Path(folder, name).touch()
    ...     found = [find_files([one]) for one in (folder, f"{folder}/*.parquet")]
    >>> [[Path(file).name for file in files] for files in found]
    [['a.parquet', 'b.parquet'], ['a.parquet', 'b.parquet']]
    """
    found: list[str] = []
    for name in named:
        place = Path(name)
        if place.is_dir():
            there = sorted(map(str, place.iterdir()))
            files = [one for one in there if one.lower().endswith(READ) and _is_sent(one)]
        elif place.exists() or not glob.has_magic(name):
            files = [name]
        else:
            files = sorted(one for one in glob.glob(name, recursive=True) if _is_sent(one))
        if not files:
            raise InputError(f"{name!r} names no file of applicants; check the path.")
        found += files
    names = [Path(one).stem for one in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(
            f"two of the files are called {twice!r}, and so would their decisions be; decide them "
            f"in two commands, into two folders."
        )
    return found


def _is_sent(path: str) -> bool:
    name = Path(path).name
    return not name.startswith(".") and not name.endswith(_REFUSED) and Path(path).is_file()


class DecisionFile:
    """The file of decisions on the applicants of one file.

    Parameters
    ----------
    source
        The file of applicants.
    folder
        The folder of decisions.
    program
        What tells the program from all others.
    """

    def __init__(self, source: str, folder: str, program: str) -> None:
        self.source = source
        self.path = Path(folder) / f"{Path(source).stem}.parquet"
        self._begun = self.path.with_name(f".{self.path.name}.begun")
        self.refused = Path(folder) / f"{Path(source).stem}{_REFUSED}"
        self._program = program
        if is_same_file(self.path, source):
            raise InputError(
                f"decisions would replace the input {source!r}; choose another folder.",
                option="out",
            )

    def is_there(self) -> bool:
        """Return whether the file is there, of this program and these applicants.

        Raises if it is another one.
        """
        if not self.path.exists():
            return False
        about = (parquet_file(str(self.path)).schema_arrow.metadata or {}).get(_ABOUT)
        if about != self._about():
            raise InputError(
                f"{str(self.path)!r} has decisions on another file, or of another program; choose "
                f"another folder.",
                option="out",
            )
        return True

    def begun(self, round: int) -> int:
        """Return the round in which the file was begun, by this command or an interrupted one.

        It is noted beside the file until the file is there.
        """
        note = f"{self._program} "
        with suppress(OSError, ValueError):
            return int(self._begun.read_text().removeprefix(note))
        with writing(str(self._begun)):
            self._begun.write_text(f"{note}{round}")
        return round

    def write(self, tables: Iterator[Any]) -> bool:
        """Write tables of the same columns; the file appears once all of them are there.

        Without a table there is no file; return whether there is one.
        """
        first = next(tables, None)
        if first is None:
            self._begun.unlink(missing_ok=True)
            return False
        part = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        schema = first.schema.with_metadata({_ABOUT: self._about()})
        try:
            with writing(str(self.path)), arrow("parquet").ParquetWriter(part, schema) as writer:
                for table in chain([first], tables):
                    writer.write_table(table.cast(schema))
            part.replace(self.path)
            self._begun.unlink(missing_ok=True)
        finally:
            with suppress(OSError):
                part.unlink()
        return True

    def columns(self, *names: str) -> Iterator[Any]:
        """Yield columns of the file in pieces."""
        yield from parquet_file(str(self.path)).iter_batches(batch_size=PIECE, columns=names)

    def _about(self) -> bytes:
        """Return what the file says of itself: the program, and a digest of the applicants."""
        with Path(self.source).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return f"{self._program} {digest}".encode()
