"""How large a file may be, and what it unpacks to; ``docs/guarantees.md`` lists the limits."""

from __future__ import annotations

import io
import zipfile

from secondlook.errors import InputError

__all__ = ["MOST_RATIO", "MOST_UNPACKED", "check_unpacked", "unzipped"]

MOST_UNPACKED = 2**28  # bytes that any file may unpack to
MOST_RATIO = 100  # a larger file may unpack to this many times its size


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
