"""How large a file may be, and what it unpacks to; ``docs/guarantees.md`` lists the limits."""

from __future__ import annotations

import io
import tomllib
import zipfile
from pathlib import Path
from typing import Any

from fairchance.errors import InputError

__all__ = ["MOST_COLUMNS", "MOST_CONFIG", "MOST_CSV", "MOST_HEADER", "MOST_NESTED"]
__all__ += ["MOST_RATIO", "MOST_UNPACKED", "check_unpacked", "read_toml", "unzipped", "zipped"]

MOST_UNPACKED = 2**28  # bytes that any file may unpack to
MOST_RATIO = 100  # a larger file may unpack to this many times its size
MOST_CSV = 2**31 - 2  # bytes of a csv file, which pyarrow reads at once
MOST_HEADER = 2**20  # bytes of its line of column names
MOST_COLUMNS = 1_000  # of a table; the time of a constrained fit grows with their cube
MOST_CONFIG = 2**20  # bytes of a configuration
MOST_NESTED = 20  # levels of its tables and lists


def check_unpacked(n: int, packed: int, name: str) -> None:
    """Raise if a file of ``packed`` bytes unpacks to ``n`` bytes and that is too many."""
    most = max(MOST_UNPACKED, MOST_RATIO * packed)
    if n > most:
        raise InputError(
            f"{name} has {packed:,} bytes and unpacks to {n:,} or more, and the most is {most:,}; "
            f"split it if it is yours, and do not open it otherwise."
        )


def unzipped(content: bytes, name: str) -> dict[str, bytes]:
    """Return the files of a zip archive; raise if it unpacks to too much.

    No file is unpacked beyond the size that the archive states, and the sum of these is checked.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = archive.infolist()
        check_unpacked(sum(part.file_size for part in parts), len(content), name)
        files = {}
        for part in parts:
            # Python bounds what it unpacks in one step for these two only.
            if part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise InputError(
                    f"{name} is compressed in a way that is not read; write it with deflate."
                )
            with archive.open(part) as file:
                files[part.filename] = file.read(part.file_size)
    return files


def zipped(files: dict[str, bytes]) -> bytes:
    """Return a zip archive of some files, without compression."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises
    ------
    OSError
        If there is no such file.
    ValueError
        If it is not TOML, too long, or nested too deeply.
    """
    with path.open("rb") as file:
        content = file.read(MOST_CONFIG + 1)
    if len(content) > MOST_CONFIG:
        raise ValueError(f"it has more than {MOST_CONFIG:,} bytes")
    try:
        read = tomllib.loads(content.decode("utf-8-sig"))
    except RecursionError:
        raise ValueError(f"it has more than {MOST_NESTED} values inside each other") from None
    level: list[Any] = [read]
    for _ in range(MOST_NESTED):
        inside = (part.values() if isinstance(part, dict) else part for part in level)
        level = [each for part in inside for each in part if isinstance(each, dict | list)]
    if level:
        raise ValueError(f"it has more than {MOST_NESTED} values inside each other")
    return read
