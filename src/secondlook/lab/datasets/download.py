"""Fetch a file into the cache: whole and checked, or not at all."""

from __future__ import annotations

import http.client
import os
import secrets
import urllib.error
import urllib.request
from collections.abc import Callable, Generator
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeAlias

from secondlook.errors import InputError, UnavailableError
from secondlook.lab.datasets.folders import CACHE_VARIABLE

__all__ = ["Progress", "fetch"]

Progress: TypeAlias = Callable[[int, int | None], None]
"""Called with the bytes that came and the bytes to come in all, None if the server does not say."""

_CHUNK = 1 << 18
_TIMEOUT = 60.0  # seconds without a single byte


def fetch(
    url: str,
    target: Path,
    *,
    problem: Callable[[Path], str | None],
    by_hand: str,
    progress: Progress | None = None,
) -> Path:
    """Download into a file beside the target, check it, then rename it.

    Nothing is ever seen under the target's name that is not whole: what is cut off, or fails the
    check, is deleted.

    Parameters
    ----------
    url
        What to fetch.
    target
        Where to put it; its folder is made.
    problem
        Says what is wrong with a file, as the end of "what was sent …"; None if nothing is.
    by_hand
        What to do without a network, as the end of a sentence.
    progress
        Called after each part with bytes done and bytes in all.
    """
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with part.open("xb") as file, closing(_chunks(url, by_hand, progress)) as chunks:
            file.writelines(chunks)
        if (wrong := problem(part)) is not None:
            raise UnavailableError(f"what {url} sent {wrong}; try again, or {by_hand}.")
        os.replace(part, target)
    except OSError as error:
        raise InputError(
            f"cannot write {target} ({_reason(error)}); name a folder that can be written to in "
            f"{CACHE_VARIABLE}, or {by_hand}."
        ) from error
    finally:
        # Also after Ctrl-C: half a file helps nobody.
        with suppress(OSError):
            part.unlink()
    return target


def _chunks(url: str, by_hand: str, progress: Progress | None) -> Generator[bytes, None, None]:
    """Yield the body in parts; what goes wrong on the way becomes one sentence."""
    request = urllib.request.Request(url, headers={"User-Agent": "secondlook"})
    try:
        response = urllib.request.urlopen(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        raise UnavailableError(f"the server answered {error.code} for {url}; {by_hand}.") from error
    except (OSError, http.client.HTTPException) as error:
        raise UnavailableError(f"cannot reach {url} ({_reason(error)}); {by_hand}.") from error
    with response:
        length = response.headers.get("Content-Length")
        total = int(length) if length is not None else None
        done = 0
        while chunk := _read(response, url, by_hand):
            done += len(chunk)
            yield chunk
            if progress is not None:
                progress(done, total)
    if total is not None and done != total:
        raise UnavailableError(
            f"the download of {url} broke off after {done:,} of {total:,} bytes; "
            f"try again, or {by_hand}."
        )


def _read(response: http.client.HTTPResponse, url: str, by_hand: str) -> bytes:
    try:
        return response.read(_CHUNK)
    except (OSError, http.client.HTTPException) as error:
        raise UnavailableError(
            f"the download of {url} broke off ({_reason(error)}); try again, or {by_hand}."
        ) from error


def _reason(error: BaseException) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    return str(cause) or type(cause).__name__
