"""Find data files on this machine, and download missing ones into the cache with pooch."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from fairchance.errors import InputError, UnavailableError, to_install_lab

__all__ = [
    "CACHE_VARIABLE",
    "DATA_VARIABLE",
    "Folder",
    "Progress",
    "cache_folder",
    "fetch",
    "find",
    "reason_of",
    "search_folders",
]

Folder: TypeAlias = str | os.PathLike[str] | None

Progress: TypeAlias = Callable[[int, int | None], None]
"""Called with the bytes received and the total, which is None if the server does not send it."""

DATA_VARIABLE = "FAIRCHANCE_DATA"
CACHE_VARIABLE = "FAIRCHANCE_CACHE"

_CHUNK = 1 << 18
_TIMEOUT = 60.0  # seconds without a single byte


def cache_folder() -> Path:
    """Return the folder of downloads: FAIRCHANCE_CACHE, or fairchance in the user's cache."""
    if folder := os.environ.get(CACHE_VARIABLE):
        return Path(folder).expanduser().absolute()
    return Path(_import_pooch().os_cache("fairchance"))


def search_folders(data: Folder) -> list[Path]:
    """Return the folders to search, in order: ``data``, FAIRCHANCE_DATA, the cache."""
    given = {"data": data, DATA_VARIABLE: os.environ.get(DATA_VARIABLE) or None}
    folders = []
    for option, value in given.items():
        if value is None:
            continue
        folder = Path(value).expanduser()
        if not folder.is_dir():
            raise InputError(
                f"{option} must name an existing folder, got {os.fspath(value)!r}; "
                f"create it or leave {option} out."
            )
        folders.append(folder)
    return [*folders, cache_folder()]


def find(data: Folder, names: Sequence[str]) -> Path | None:
    """Return the first existing file; names are relative paths, the preferred one first."""
    candidates = (folder / name for folder in search_folders(data) for name in names)
    return next((path for path in candidates if path.is_file()), None)


def fetch(
    url: str,
    target: Path,
    *,
    find_problem: Callable[[Path], str | None],
    by_hand: str,
    progress: Progress | None = None,
) -> Path:
    """Download a file, check its content, and only then give it its name.

    Parameters
    ----------
    url
        Address of the file.
    target
        Path of the file; missing folders are created.
    find_problem
        Returns what is wrong with a downloaded file, such as ``"is not a zip file"``, or None.
    by_hand
        What a user without a network can do, as the end of a sentence.
    progress
        Called after each part of the download.
    """
    pooch = _import_pooch()
    pooch.get_logger().setLevel("WARNING")
    requests = importlib.import_module("requests")
    download = pooch.HTTPDownloader(
        progressbar=_ProgressBar(progress) if progress else False,
        chunk_size=_CHUNK,
        timeout=_TIMEOUT,
    )

    # The publishers list no checksums, so the content is checked in pooch's temporary file: a
    # damaged download never gets the name under which later runs look for it.
    def download_and_check(address: str, file: str, caller: Any) -> None:
        download(address, file, caller)
        if (problem := find_problem(Path(file))) is not None:
            raise UnavailableError(f"the file at {address} {problem}; try again, or {by_hand}.")

    try:
        pooch.retrieve(url, None, target.name, target.parent, downloader=download_and_check)
    except requests.HTTPError as error:
        status = error.response.status_code
        raise UnavailableError(f"the server answered {status} for {url}; {by_hand}.") from error
    except (requests.ConnectionError, requests.Timeout) as error:
        raise UnavailableError(f"cannot reach {url} ({reason_of(error)}); {by_hand}.") from error
    except requests.RequestException as error:
        raise UnavailableError(
            f"the download of {url} broke off ({reason_of(error)}); try again, or {by_hand}."
        ) from error
    except OSError as error:
        raise InputError(
            f"cannot write {target} ({reason_of(error)}); set {CACHE_VARIABLE} to a writable "
            f"folder, or {by_hand}."
        ) from error
    return target


@dataclass
class _ProgressBar:
    """Passes pooch's progress on to a function."""

    report: Progress
    total: int = 0
    _done: int = 0

    def update(self, n_bytes: int) -> None:
        # pooch counts whole chunks, so its sum may pass the total.
        self._done += n_bytes
        self.report(min(self._done, self.total or self._done), self.total or None)

    def reset(self) -> None:
        self._done = 0

    def close(self) -> None:
        pass


def _import_pooch() -> Any:
    try:
        return importlib.import_module("pooch")
    except ImportError as error:
        raise InputError(
            f"data sets that are not bundled need pooch, which is not installed; "
            f"{to_install_lab()} installs it."
        ) from error


def reason_of(error: BaseException) -> str:
    """Return the operating system's message if there is one below the error, else its own."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return str(error) or type(error).__name__
