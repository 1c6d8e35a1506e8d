"""The examples run without changes."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize(
    ("name", "arguments", "last"),
    [
        ("many_classes.py", (), "   24 "),
        ("risk_limits.py", (), "cannot be explored under these limits."),
        pytest.param("late_outcomes.py", ("1",), "", marks=pytest.mark.long),
    ],
)
def test_an_example_runs(name, arguments, last, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 5
    assert last in lines[-1]
