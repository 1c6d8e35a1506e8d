"""Standard input and output as they may be: without some letters, full, or closed."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, NoReturn

from secondlook.errors import InputError

__all__ = ["binary_output", "drop_output", "on_any_streams", "read_input"]

_CANNOT = 2  # the exit code if what is said has no place to go
_NO_PLACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


class _Closed(io.TextIOBase):
    """What stands for standard output if it is closed, since ``print`` then says nothing."""

    encoding = "utf-8"
    errors = "backslashreplace"

    def writable(self) -> bool:
        return True

    def write(self, _: str) -> NoReturn:
        raise OSError(errno.EBADF, "standard output is closed")


@contextmanager
def on_any_streams() -> Iterator[None]:
    r"""Print letters that an encoding lacks as escapes, and say in a sentence if nothing can be.

    An encoding such as cp1252 has no α, and gets ``\u03b1``.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with suppress(OSError):  # another file was put in its place, which has no position
                stream.reconfigure(errors="backslashreplace")
    code: object = 0
    is_closed = sys.stdout is None
    if is_closed:
        sys.stdout = _Closed()
    try:
        try:
            yield
        except SystemExit as end:  # as commands end
            code = end.code
            raise
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.filename is not None or error.errno not in (errno.EPIPE, *_NO_PLACE):
            raise
        drop_output()
        if error.errno == errno.EPIPE:  # whoever read has seen enough
            raise SystemExit(code or 1) from error
        failed = f"writing failed ({error.strerror}), most likely to standard output"
        if is_closed:
            failed = "standard output is closed, so nothing can be printed"
        with suppress(OSError):  # errors may have no place either
            print(
                f"secondlook: {failed}; send it elsewhere and give the command again.",
                file=sys.stderr,
            )
        raise SystemExit(code or _CANNOT) from error
    finally:
        if is_closed:
            sys.stdout = None


def drop_output() -> None:
    """Let go what standard output could not write, or Python tries once more when it ends."""
    with suppress(OSError, AttributeError):  # it is no file, or closed
        place, nowhere = sys.stdout.fileno(), os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, place)
        os.close(nowhere)


def read_input() -> bytes:
    """Return all of standard input, or say why there is none."""
    if sys.stdin is None:
        raise InputError(
            "standard input is closed, so there is no csv to read; send a file to it, or name one."
        )
    try:
        return sys.stdin.buffer.read()
    except OSError as error:
        raise InputError(
            f"standard input cannot be read ({error.strerror or error}); send a file to it, or "
            f"name one."
        ) from error


def binary_output() -> BinaryIO:
    """Return standard output for bytes, after what was printed, or say that it is closed."""
    if sys.stdout is None or isinstance(sys.stdout, _Closed):
        raise InputError("standard output is closed, so nothing can go there; name a file.")
    sys.stdout.flush()
    return sys.stdout.buffer
