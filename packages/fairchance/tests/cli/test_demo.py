"""``fairchance demo``: a program on a new ledger, and folders that are not the demo's."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from cli.lender_files import call, done, refused
from fairchance.cli import live
from fairchance.cli.commands import demo
from fairchance.ledger import SqlLedger, summarise, verify
from fairchance.words import amount
from fairchance.words.rounds import certificates_assume


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def short(monkeypatch):
    """Make the demo short; no certificate is reached then."""
    monkeypatch.setattr(demo, "_MONTHS", 2)
    monkeypatch.setattr(demo, "_APPLICANTS", 60)


def test_the_demo_prints_what_is_on_record(golden):
    result = call("demo")
    assert result.exit_code == 0, result.stderr
    assert len(result.stdout.splitlines()) <= 25
    summary = summarise(SqlLedger("sqlite:///demo/ledger.db"))
    earned = 200 * summary.outcomes.good - 500 * summary.outcomes.bad
    assert amount(earned) in result.stdout
    assert certificates_assume(summary) in result.stdout
    assert verify(SqlLedger("sqlite:///demo/ledger.db")).ok
    assert Path("demo/program.html").read_text().startswith("<!DOCTYPE html>")
    golden("demo", f"$ fairchance demo\n{result.stdout}", ranked=True)


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
    call("export", "--ledger", result["ledger"], "-o", "all.csv")
    letters = pd.read_csv("all.csv")["letter"].dropna()
    assert letters.str.startswith("R").any()
    again = call("demo", "-o", "a b")  # its own folder, made anew
    assert again.exit_code == 0
    assert "verify 'sqlite:///a b/ledger.db'" in again.stdout


def test_other_folders_are_refused(short):
    Path("mine").mkdir()
    Path("mine/ledger.db").write_text("a ledger")
    assert "'ledger.db'" in refused("demo", "-o", "mine")
    assert Path("mine/ledger.db").read_text() == "a ledger"
    assert "'mine/ledger.db'" in refused("demo", "-o", "mine/ledger.db")
    assert call("demo", "-o", "new").exit_code == 0
    Path("new/notes.txt").write_text("mine")
    assert "'notes.txt'" in refused("demo", "-o", "new")
    assert "mine/ledger.db/x" in refused("demo", "-o", "mine/ledger.db/x")


def test_the_live_demo_records_what_it_says(monkeypatch):
    monkeypatch.setattr(live, "MONTHS", 2)
    monkeypatch.setattr(live, "_N", 50)
    monkeypatch.setattr(live, "_HISTORY", 400)
    result = done("demo", "--live")
    assert [month["status"] for month in result["months"]] == ["shadow", "shadow"]
    assert result["address"].startswith("http://127.0.0.1:")
    ledger = SqlLedger("sqlite:///demo/ledger.db")
    summary = summarise(ledger)
    assert [row.status for row in summary.rounds] == ["shadow"]
    assert summary.open_round.n_people == 100 - summary.total("n_people")
    assert verify(ledger).ok
    with ledger.reading("live") as reader:
        assert len(reader.access_keys()) == 4
