"""Tables of many columns in narrow windows: names whole, nothing cut, nothing lost."""

from __future__ import annotations

import re
from io import StringIO

import pytest
from rich.console import Console

from lab.experiments.test_tables import make_results
from secondlook.cli.output import print_stacked
from secondlook.cli.runs import print_results
from secondlook.lab.experiments.released import SWITCHES

HEADS = ("method", "revenue", "late", "FDR", "explored")
ROWS = [["a-method-with-a-name", "6.4 ± 0.4", "9.0", "−.169", "–"], ["b", "1", "2", "3", "4"]]
PARTS = [["revenue", "late"], ["FDR", "explored"]]


def printed(width, rows=ROWS, spare=()):
    """Return the lines that are not blank."""
    console = Console(file=StringIO(), width=width)
    print_stacked(console, "α = 0.15", HEADS, rows, PARTS, spare)
    return [line.rstrip() for line in console.file.getvalue().splitlines() if line.strip()]


def cells(lines):
    """Return all cells of all tables, by method and column."""
    found, heads = {}, []
    for line in lines:
        parts = re.split(r" {2,}", line.strip())
        if parts[0] == "method":
            heads = parts
        elif len(parts) == len(heads):
            found |= {(parts[0], head): one for head, one in zip(heads, parts, strict=True)}
    return found


def test_one_table_where_it_just_fits_and_two_where_it_does_not():
    want = {(row[0], head): one for row in ROWS for head, one in zip(HEADS, row, strict=True)}
    (rule,) = [line for line in printed(200) if "──" in line]
    widest = len(rule) + 1  # a space stands at its end
    for width, tables in ((widest, 1), (widest - 1, 2), (40, 2)):
        lines = printed(width)
        assert sum("──" in line for line in lines) == tables
        assert cells(lines) == want
        assert max(map(len, lines)) <= width
        assert sum("α = 0.15" in line for line in lines) == 1


def test_what_can_be_spared_is_left_out_of_its_own_part_only():
    lines = printed(40, spare=["explored"])
    assert {("b", head) for head in HEADS} <= set(cells(lines))  # each part has room
    lines = printed(34, spare=["explored", "late"])
    assert set(cells(lines)) == {
        (row[0], head) for row in ROWS for head in ("method", "revenue", "FDR")
    }
    assert [line for line in lines if line.startswith("Not shown")] == [
        "Not shown in 34 columns: late (--json has all).",
        "Not shown in 34 columns: explored (--json has all).",
    ]


@pytest.mark.parametrize("width", [80, 200])
def test_every_method_of_the_released_code_is_readable(rng, width):
    names = ("plain", "exploit-fair", "fair-clf-schedule", "kilbertus-semi-published", "my:own")
    switches = list(SWITCHES)
    results = make_results(rng, names, size=(3, 6), published="german_gender", switches=switches)
    console = Console(file=StringIO(), width=width)
    print_results(console, results)
    lines = console.file.getvalue().splitlines()
    found = cells(line for line in lines if line.startswith(" "))
    columns = ("revenue", "late", "FDR", "> α", "ΔSR", "ΔTPR", "acc", "|revenue|", "paper")
    for name in names:
        for column in columns:
            assert found[name, column]
        for column in ("revenue", "late", "FDR"):
            assert "±" in found[name, column]
    assert found["plain", "paper"] == "6.4"
    assert found["my:own", "paper"] == "–"
    assert max(map(len, lines)) <= width
    words = " ".join(" ".join(lines).split())
    assert "its FDR is a mean of rounds, which the report sets beside ours" in words
