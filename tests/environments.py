"""New virtual environments, in which what was built is installed and tried."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def open_folder(prefix):
    """Make a temporary folder that other users may enter, and remove it at the end.

    As root, a PostgreSQL server runs as another user, who has to reach its programs in an
    environment. pytest's own temporary folder is closed whenever another pytest starts.
    """
    with tempfile.TemporaryDirectory(prefix=prefix) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def run(*words, cwd=None):
    """Run a command in an environment without our variables; return what it did."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "FAIRCHANCE"))}
    return subprocess.run(
        list(map(str, words)), cwd=cwd, env=clean, capture_output=True, text=True, check=False
    )


def done(*words, cwd=None):
    """Run a command that has to succeed, and return what it prints."""
    ran = run(*words, cwd=cwd)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


class Environment:
    """A new virtual environment."""

    def __init__(self, folder, *wanted, python=sys.executable):
        done(python, "-m", "venv", folder)
        self.bin = folder / "bin"
        if wanted:
            self.install(*wanted)

    def install(self, *wanted):
        done(self.bin / "python", "-m", "pip", "install", "--quiet", *wanted)

    def python(self, code):
        return run(self.bin / "python", "-I", "-c", code)

    def fairchance(self, *words, cwd=None):
        return run(self.bin / "fairchance", *words, cwd=cwd)
