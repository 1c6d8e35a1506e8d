"""Tables in narrow windows: names stay whole, and what has no room is named."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.cells import cell_len
from rich.console import Console

from secondlook.cli.output import print_fitted

TITLES = ("round", "applied", "accepted", "pending", "FDR", "95 %")
SPARE = ("pending", "95 %")
NUMBERS = ["1,200,000", "301,000", "12,000", "0.051", "0.012–0.220"]


def printed(name, width, spare=SPARE):
    console = Console(file=StringIO(), width=width)
    print_fitted(console, "Rounds", TITLES, [[name, *NUMBERS], ["2 b", *NUMBERS]], spare)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("length", "dropped"),
    [(10, ()), (28, ()), (29, SPARE[:1]), (37, SPARE[:1]), (38, SPARE), (50, SPARE), (120, SPARE)],
)
def test_names_stay_whole_and_what_has_no_room_is_named(length, dropped):
    name = ("1 the northern branches " * 9)[:length].rstrip().ljust(length, "x")
    said = printed(name, 80)
    assert f" {name} " in said
    lines = [line.rstrip() for line in said.splitlines()]
    for title, number in zip(TITLES[1:], NUMBERS, strict=True):
        there = any(number in line for line in lines)
        assert there == (title not in dropped), title
    words = f"Not shown in 80 columns: {', '.join(dropped)} (--json has all)."
    assert (words in lines) == bool(dropped)
    if length < 120:
        assert max(map(cell_len, lines)) <= 80


def test_as_much_is_shown_as_there_is_room_for():
    whole = printed("1 a", 200)
    needed = max(cell_len(line) for line in whole.splitlines())
    assert "Not shown" not in printed("1 a", needed)
    assert "Not shown in" in printed("1 a", needed - 1)


def test_names_are_no_markup():
    assert " [b]bold[/b] " in printed("[b]bold[/b]", 80)
