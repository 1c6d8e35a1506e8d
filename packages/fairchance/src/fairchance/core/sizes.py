"""How large a file may be, and what it unpacks to; ``docs/guarantees.md`` lists the limits."""

from __future__ import annotations

import io
import re
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

_DEEP = f"it has more than {MOST_NESTED} values inside each other"
# Strings and comments of TOML. What is not closed ends with the file or the line, so that a single
# pass suffices for any text.
_NO_KEYS = re.compile(
    r"""
    "{3}(?:[^\\]|\\.?)*?(?:"{3,5}|\Z) | '{3}.*?(?:'{3,5}|\Z)  # up to two quotes before the end
    | "(?:[^"\\\n]|\\.?)*"? | '[^'\n]*'? | \#[^\n]*
    """,
    re.DOTALL | re.VERBOSE,
)


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

    Raise ``ValueError`` if it is not TOML, too long, nested too deeply, or has a number beyond 64
    bits.
    """
    with path.open("rb") as file:
        content = file.read(MOST_CONFIG + 1)
    if len(content) > MOST_CONFIG:
        raise ValueError(f"it has more than {MOST_CONFIG:,} bytes")
    text = content.decode("utf-8-sig")
    # For a key a.b.c the parser stores a, a.b and a.b.c: memory grows with the square of its parts.
    parts = re.split(r"[][{}=,\n]", _NO_KEYS.sub("", text))
    if any(part.count(".") > MOST_NESTED for part in parts):
        raise ValueError(_DEEP)
    try:
        read = tomllib.loads(text)
    except RecursionError:
        raise ValueError(_DEEP) from None
    level: list[Any] = [read]
    for _ in range(MOST_NESTED):
        inside = [
            each for part in level for each in (part.values() if isinstance(part, dict) else part)
        ]
        if any(isinstance(each, int) and not -(2**63) <= each < 2**63 for each in inside):
            raise ValueError(
                "it has a whole number of more than 64 bits"
            )  # Python may not print it
        level = [each for each in inside if isinstance(each, dict | list)]
    if level:
        raise ValueError(_DEEP)
    return read
