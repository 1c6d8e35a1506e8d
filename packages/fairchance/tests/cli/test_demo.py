"""``fairchance demo``: a program on a new ledger, and folders that are not the demo's."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.lender_files import call, done, refused
from fairchance.cli.commands import demo
from fairchance.ledger import SqlLedger, summarise, verify
from fairchance.words import amount


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def short(monkeypatch):
    """Make the demo short; no certificate is reached then."""
    monkeypatch.setattr(demo, "_MONTHS", 2)
    monkeypatch.setattr(demo, "_APPLICANTS", 60)


def test_the_demo_prints_what_is_on_record():
    result = call("demo")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert len(lines) <= 25
    summary = summarise(SqlLedger("sqlite:///demo/ledger.db"))
    certified = [row.certified for row in summary.rounds]
    since = len(certified) - certified[::-1].index(False) + 1
    assert lines[0].startswith(f"Certified since month {since}: at most 15 %")
    earned = 200 * summary.outcomes.good - 500 * summary.outcomes.bad
    text = " ".join(result.stdout.split())
    assert f"Earned {amount(earned)} in {len(certified)} months;" in text
    assert "Group B: the past accepted 0 of " in text
    assert verify(SqlLedger("sqlite:///demo/ledger.db")).ok
    assert Path("demo/program.html").read_text().startswith("<!DOCTYPE html>")
    assert "Nothing needs attention" in call("status", "sqlite:///demo/ledger.db").stdout


def test_json_has_the_counts_of_each_group(short):
    result = done("demo", "-o", "a b")
    summary = summarise(SqlLedger(result["ledger"]))
    assert result["certified_since"] is None
    assert result["earned"] == 200 * summary.outcomes.good - 500 * summary.outcomes.bad
    for group in summary.groups:
        months = result["months"]
        assert sum(month["applied"][group.group] for month in months) == group.n_people
        assert sum(month["accepted"][group.group] for month in months) == group.n_accepted
        assert sum(month["bad"][group.group] for month in months) == group.outcomes.bad
    assert Path(result["report"]).is_file()
    assert "Not certified yet" in call("demo", "-o", "a b").stdout  # its own folder, made anew


def test_other_folders_are_refused(short):
    Path("mine").mkdir()
    Path("mine/ledger.db").write_text("a ledger")
    assert "got 'mine' with 'ledger.db'" in refused("demo", "-o", "mine")
    assert Path("mine/ledger.db").read_text() == "a ledger"
    assert "got the file 'mine/ledger.db'" in refused("demo", "-o", "mine/ledger.db")
    assert call("demo", "-o", "new").exit_code == 0
    Path("new/notes.txt").write_text("mine")
    assert "with 'notes.txt'" in refused("demo", "-o", "new")
    assert "cannot be written" in refused("demo", "-o", "mine/ledger.db/x")
