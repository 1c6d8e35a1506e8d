"""Processes of their own, with fewer rights than the one that runs the tests."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

from secondlook.errors import LedgerError

NOBODY = 65534


def in_a_child(work):
    """Run something in a process of its own; return what it returned as text, or a LedgerError's.

    Whatever else it raised comes with its type.
    """
    here, there = os.pipe()
    pid = os.fork()
    if pid == 0:
        said = "nothing was returned"
        try:
            said = str(work())
        except LedgerError as error:
            said = str(error)
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        finally:
            with os.fdopen(there, "wb") as file:
                file.write(said.encode())
            os._exit(0)
    os.close(there)
    with os.fdopen(here) as told:
        said = told.read()
    os.waitpid(pid, 0)
    return said


def without_rights(work):
    """Run something in a process that files' permissions bind: root becomes somebody else."""

    def bound():
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        return work()

    return in_a_child(bound)


@contextmanager
def folder_for_others():
    """Yield a folder that others than its owner can read, as those of pytest are not."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o755)
