"""Child processes with fewer rights than the test process."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

from fairchance.errors import LedgerError

NOBODY = 65534


def in_a_child(work):
    """Run a function in a child process; return its result or its LedgerError as text.

    Another exception is returned with its type.
    """
    here, there = os.pipe()
    pid = os.fork()
    if pid == 0:
        output = "nothing was returned"
        try:
            output = str(work())
        except LedgerError as error:
            output = str(error)
        except BaseException as error:
            output = f"{type(error).__name__}: {error}"
        finally:
            with os.fdopen(there, "wb") as file:
                file.write(output.encode())
            os._exit(0)
    os.close(there)
    with os.fdopen(here) as told:
        output = told.read()
    os.waitpid(pid, 0)
    return output


def without_rights(work):
    """Run a function in a child process that is subject to file permissions, also as root."""

    def bound():
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        return work()

    return in_a_child(bound)


@contextmanager
def folder_for_others():
    """Yield a folder that other users can read, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o755)
