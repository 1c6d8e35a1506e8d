"""The log: lines of JSON on standard error, which a thread of their own writes.

Who reads standard error may stand still or be gone, and a disk may be full. Nothing waits for that:
lines that cannot be written are dropped, and the next line that can be written says how many.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import sys
import traceback
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from threading import Condition, Thread
from typing import Any

from fairchance.errors import InputError

__all__ = ["LOGGING", "Lines", "Log", "log", "worded"]

_MOST = 10_000  # lines that wait to be written, about 3 MB


class Log:
    """Lines that wait, and the thread that writes them."""

    def __init__(self, most: int = _MOST) -> None:
        self._most, self._n_dropped = most, 0
        self._lines: deque[str] = deque()
        self._changed = Condition()
        self._thread: Thread | None = None

    def __call__(self, **line: Any) -> None:
        """Let a line be written, with the time."""
        self.write(_with_time(line))

    def write(self, line: str) -> None:
        """Let a line be written, or drop it if too many wait."""
        with self._changed:
            if len(self._lines) >= self._most:
                self._n_dropped += 1
                return
            self._lines.append(line)
            if self._thread is None:
                self._thread = Thread(target=self._run, name="log", daemon=True)
                self._thread.start()
                atexit.register(self.flush)
            self._changed.notify_all()

    def flush(self, seconds: float = 1.0) -> None:
        """Wait until all lines are written, or for a time."""
        with self._changed:
            self._changed.wait_for(lambda: not self._lines, seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._lines)
                line, n_dropped = self._lines[0], self._n_dropped
            said = [_with_time({"dropped": n_dropped})] if n_dropped else []
            try:
                _write("\n".join([*said, line, ""]))
                n_lost = -n_dropped
            except (OSError, ValueError):  # ValueError: standard error is closed
                n_lost = 1
            with self._changed:
                self._n_dropped += n_lost
                self._lines.popleft()
                self._changed.notify_all()


def _with_time(line: dict[str, Any]) -> str:
    return json.dumps({"at": datetime.now(UTC).isoformat(timespec="milliseconds")} | line)


def _write(text: str) -> None:
    """Write a text past Python's buffer, which would keep what a full disk refused."""
    if sys.stderr is None:
        raise OSError
    content = text.encode()
    while content:
        content = content[os.write(sys.stderr.fileno(), content) :]


log = Log()  # of this process, as standard error is


def worded(error: BaseException) -> dict[str, str]:
    """Return what a line says of an error.

    The message of one that is not ours could name an applicant; the line has its place instead.
    """
    if isinstance(error, InputError):
        return {"code": error.code, "detail": str(error)}
    places = traceback.extract_tb(error.__traceback__)[-1:]
    words = [type(error).__name__, *(f"in {one.name}, line {one.lineno}" for one in places)]
    return {"code": "bug", "detail": " ".join(words)}


class Lines(logging.Handler):
    """Turns what the server and other packages log into lines."""

    def emit(self, record: logging.LogRecord) -> None:
        """Let a record be written."""
        with suppress(Exception):  # arguments may not fit a message, which harms nobody else
            error = record.exc_info and record.exc_info[1]
            about = worded(error) if error else {}
            message = record.getMessage().partition("\n")[0]
            log(level=record.levelname, logger=record.name, message=message, **about)


LOGGING = {  # for ``logging.config``
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"lines": {"class": "fairchance.service.log.Lines"}},
    "root": {"handlers": ["lines"], "level": "WARNING"},
}
