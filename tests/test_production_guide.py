"""Every command of docs/production.md runs, in its order, and prints what the guide shows."""

from __future__ import annotations

import re

import pytest

from fairchance.cli.app import AUDIT, DECIDING, app
from guides import LENDER, PLACE, ROOT, check_page, pieces, read

# Groups run first, and this is the longest test: at the end one worker would wait for the other.
pytestmark = pytest.mark.xdist_group("guide")
GUIDE = ROOT / "docs" / "production.md"
OPERATE = ROOT / "docs" / "operate.md"


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_the_guide_comes_out_as_it_is_written(shell, url, request):
    analyst = url.replace("//postgres:@", "//analyst@")
    assert analyst != url
    swaps = {PLACE: url, PLACE.replace("//", "//analyst@"): analyst}
    check_page(GUIDE, shell, swaps, request)


@pytest.mark.parametrize(
    ("block", "words", "right"),
    [
        ("console\n$ echo 1\n2\n", "printed:\n1", "console\n$ echo 1\n1\n"),
        ("console\n$ echo 1\n", "printed:\n1", "console\n$ echo 1\n1\n"),
        ("console\n$ true\nsomething\n", "shown:\nsomething", "console\n$ true\n"),
        ("console\n$ false\n$ echo on\non\n", "failed with 1", None),
        ("console\n$ fairchance status\n...\n$ echo $?\n0\n", "printed:\n2", None),
        ("python\n>>> 1 + 1\n3\n\n", "Got:\n    2", "python\n>>> 1 + 1\n2\n\n"),
        ("python\nnothing that runs\n", "ran nothing", None),
    ],
)
def test_a_guide_that_is_wrong_is_found_and_mended(shell, block, words, right):
    text = f"<!-- 2031-01-01 -->\n```{block}```\n"
    problems, now = read(text, shell, {})
    assert words in problems[0]
    if right is not None:
        assert now == f"<!-- 2031-01-01 -->\n```{right}```\n"


def test_a_guide_that_is_right_passes(shell):
    text = """<!-- 2031-01-01 -->
```console
$ export WORD=kept
$ echo $WORD | sed 's/$/ 4:abc:main/'
kept 4:...:main
$ (exit 3)
$ echo $?
3
```
"""
    assert read(text, shell, {}) == ([], text)


def test_the_guide_shows_the_configuration_that_is_used():
    blocks = [text for kind, _, text in pieces(GUIDE.read_text(encoding="utf-8")) if kind == "toml"]
    assert blocks == [(LENDER / "program.toml").read_text(encoding="utf-8")]


def test_every_block_of_the_guide_is_run_and_every_command_is_in_one():
    text = GUIDE.read_text(encoding="utf-8")
    found = list(pieces(text))
    assert len(found) == text.count("```") / 2
    assert {kind for kind, _, _ in found} == {"console", "python", "toml"}
    found += pieces(OPERATE.read_text(encoding="utf-8"))
    said = "".join(block for kind, _, block in found if kind == "console")
    on_record = {
        one.name or one.callback.__name__
        for one in app.registered_commands
        if one.rich_help_panel in (AUDIT, DECIDING)
    }
    assert len(on_record) >= 14
    assert on_record <= set(re.findall(r"fairchance (\w+)", said))
