"""Every command of docs/production.md runs, in its order, and prints what the guide shows."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from quick_commands import quick_commands
from secondlook.ledger import sql

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs" / "production.md"
LENDER = ROOT / "examples" / "lender"
PLACE = "postgresql://localhost/lender"
_PIECE = re.compile(r"<!-- (?P<day>\d{4}-\d\d-\d\d) -->|```(?P<kind>\w+)\n(?P<text>.*?)```", re.S)


def pieces(text):
    """Yield the guide's blocks in order: kind, day, text."""
    day = None
    for found in _PIECE.finditer(text):
        if found["day"]:
            day = found["day"]
        else:
            yield found["kind"], day, found["text"]


def commands(block):
    """Return the commands of a console block, each with what it prints."""
    found = []
    for line in block.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append([line[2:], ""])
        elif line.startswith("> ") and not found[-1][1]:
            found[-1][0] += line[2:]
        else:
            found[-1][1] += line
    return found


class Shell:
    """Run commands one after the other, as somebody at a terminal does."""

    def __init__(self, folder, path):
        self.folder, self.kept, self.code = folder, folder.parent / "kept.sh", 0
        self.kept.write_text(f'export PATH="{path}:$PATH" COLUMNS=100 USER=risk LOGNAME=risk\n')

    def run(self, command, day):
        """Run a command; return what it prints, on both streams."""
        words = f". {self.kept}; export TODAY={day}; (exit {self.code})\n{command}"
        words += f'\ncode=$?; export -p > "{self.kept}"; exit $code'
        done = subprocess.run(
            ["bash", "-c", words],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.code = done.returncode
        return done.stdout


def same(shown, printed):
    """Say whether something was printed as shown, with ``...`` for whatever differs each time."""
    tidy = [re.sub(r"[ \t]+$", "", one, flags=re.M) for one in (shown, printed)]
    return doctest.OutputChecker().check_output(*tidy, doctest.ELLIPSIS)


def read(text, shell, swaps):
    """Run a guide's commands; return the first that prints something else, or None."""
    names = {}
    for kind, day, block in pieces(text):
        for old, new in swaps.items():
            block = block.replace(old, new)
        if kind == "console":
            for command, shown in commands(block):
                asks = command.strip() == "echo $?"
                if shell.code and not asks:
                    return f"the command before {command!r} failed with {shell.code}"
                printed = shell.run(command, day)
                for old, new in swaps.items():
                    printed = printed.replace(new, old)
                    shown = shown.replace(new, old)
                if not same(shown, printed):
                    return f"{command}shown:\n{shown}\nprinted:\n{printed}"
        elif kind == "python":
            problem = _python(block, names)
            if problem:
                return problem
    return None
