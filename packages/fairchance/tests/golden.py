"""Texts that a test keeps in a file: compared with what is printed now, and rewritten on demand.

``...`` in a kept text is whatever differs each time. ``pytest --update-golden`` rewrites the texts,
and keeps each ``...`` that still matches.
"""

from __future__ import annotations

import doctest
import math
import re
import shlex
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from versions import RANKED, SCIKIT_LEARN_1_9


def same(shown, printed):
    """Say whether something was printed as shown, with ``...`` for whatever differs each time."""
    return doctest.OutputChecker().check_output(tidy(shown), tidy(printed), doctest.ELLIPSIS)


def tidy(text):
    """Return a text without spaces at the ends of lines."""
    return re.sub(r"[ \t]+$", "", text, flags=re.M)


def updated(shown, printed):
    """Return what was printed, with the ``...`` of what is shown wherever they still match."""
    if same(shown, printed):
        return shown
    old, new = shown.splitlines(), tidy(printed).splitlines()

    # The best alignment of the lines from i and j on: its worth, and the lines to show. A line that
    # is shown is kept, replaced or dropped; a line "..." stands for any number of printed lines.
    @cache
    def align(i, j):
        if i == len(old):
            return 0, new[j:]
        ways = [align(i + 1, j)]
        if old[i].strip() == "...":
            for end in range(j, len(new) + 1):
                worth, rest = align(i + 1, end)
                ways.append((worth + 1 + (end - j) / 10, [old[i], *rest]))
        elif j < len(new):
            kept = _matches(old[i], new[j])
            worth, rest = align(i + 1, j + 1)
            line = old[i] if kept else _words_kept(old[i], new[j])
            ways.append((worth + (4 if kept else 1), [line, *rest]))
            worth, rest = align(i, j + 1)
            ways.append((worth, [new[j], *rest]))
        return max(ways, key=lambda way: way[0])

    text = "\n".join(align(0, 0)[1]) + "\n" if new else ""
    return text if same(text, printed) else tidy(printed)


def _matches(shown, printed):
    parts = [re.escape(part) for part in shown.rstrip().split("...")]
    return re.fullmatch(".*".join(parts), printed) is not None


def _words_kept(shown, printed):
    """Return a new line with the words of the old one that have ``...`` and still match."""
    for word in shown.split():
        if "..." in word.strip("."):
            found = next((new for new in printed.split() if _matches(word, new)), None)
            printed = printed.replace(found, word, 1) if found else printed
    return printed


def transcript(*commands, width=100):
    """Run commands of ``fairchance``; return them with all they print, as at a terminal."""
    from fairchance.cli import output  # noqa: PLC0415 - slow
    from fairchance.cli.app import app  # noqa: PLC0415 - slow

    text = ""
    for command in commands:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(output, "_FIRST_LINE", math.inf)  # progress depends on the machine
            done = CliRunner().invoke(app, shlex.split(command), env={"COLUMNS": str(width)})
        text += f"$ fairchance {command}\n{done.output}"
        text += f"exit code {done.exit_code}\n" if done.exit_code else ""
    return text


@pytest.fixture
def golden(request):
    """Return a function that compares a text with ``golden/NAME.txt`` beside the test.

    A text with results of the default ranking is ``ranked``; older trees rank otherwise.
    """

    def compare(name, printed, *, ranked=False):
        if ranked and not SCIKIT_LEARN_1_9:
            pytest.skip(RANKED)
        file = Path(request.path).parent / "golden" / f"{name}.txt"
        compare_with(file, printed, update=request.config.getoption("update_golden"))

    return compare


def compare_with(file, printed, *, update):
    """Compare what was printed with a file, or write it to the file."""
    shown = file.read_text(encoding="utf-8") if file.exists() else ""
    if update:
        file.parent.mkdir(exist_ok=True)
        file.write_text(updated(shown, printed), encoding="utf-8")
    elif not same(shown, printed):
        words = f"{file}: if this is right, run the test again with --update-golden"
        pytest.fail(f"{words}\nshown:\n{shown}\nprinted:\n{printed}", pytrace=False)
