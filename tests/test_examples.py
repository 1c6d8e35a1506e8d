"""The examples run without changes."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fairchance.cli.app import app
from fairchance_lab.experiments.results import read_results
from fairchance_lab.experiments.verdict import find_verdict
from fairchance_lab.experiments.words import takeaway

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


@pytest.mark.long
def test_a_certificate_pays_if_the_past_overlooked_a_group(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "examples").symlink_to(EXAMPLES)
    words = ["simulate", "examples/worlds/demo.toml", "--out", "demo"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert len(lines) <= 25
    assert all(len(line) <= 100 for line in lines if str(tmp_path) not in line)
    assert (tmp_path / "demo" / "report.html").is_file()
    verdict = find_verdict(read_results(tmp_path / "demo"))
    assert takeaway(verdict) in " ".join(" ".join(lines).split())
    assert verdict.best.method == "certified"
    assert verdict.best.light == "green"
    assert verdict.best.certificate.never_share == 0
    assert verdict.gain.low > 0
