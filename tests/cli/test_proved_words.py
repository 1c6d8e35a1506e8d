"""What ``secondlook verify`` prints where something does not fit, and where a table is gone."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from cli.hostile_lender import run


@pytest.fixture
def copied(hostile_lender, tmp_path):
    """Return a function that changes a copy of a ledger, and its URL."""
    path = tmp_path / "copy.db"
    kept = sqlite3.connect(hostile_lender[0].removeprefix("sqlite:///"))
    with closing(kept), closing(sqlite3.connect(path)) as copy:
        kept.backup(copy)

    def change(statement):
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(statement)

    return change, f"sqlite:///{path}"


def verified(url, code, *words):
    return run("verify", url, *words, code=code).stdout


def test_only_what_fits_has_a_checkpoint(copied):
    change, url = copied
    assert "Checkpoint: " in verified(url, 0)
    change("UPDATE people SET accepted = 1 - accepted WHERE person = 400")
    said = verified(url, 4)
    assert "Checkpoint:" not in said
    assert "\nUp to there " in said
    assert said.endswith("No checkpoint is given, since not everything fits.\n")
    told = json.loads(verified(url, 4, "--json"))
    assert (told["ok"], told["checkpoint"]) == (False, None)


def test_one_entry_is_not_many(copied):
    change, url = copied
    change("UPDATE entries SET by = 'somebody else' WHERE number = 2")
    assert "\nUp to there 1 entry checked, 0 decisions made again\n" in verified(url, 4)


@pytest.mark.parametrize("table", ["overrides", "outcomes", "entries", "erasures"])
def test_a_table_that_is_gone_is_named(copied, table):
    change, url = copied
    change(f"DROP TABLE {table}")
    said = verified(url, 4)
    assert said.startswith(f"the ledger's table is missing: {table}; nothing else was checked.\n")
    assert "Checkpoint:" not in said
    assert json.loads(verified(url, 4, "--json"))["ok"] is False


def test_what_is_no_ledger_is_not_called_damaged(tmp_path):
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE mine (x)")
    result = run("verify", f"sqlite:///{path}", code=2)
    assert "missing:" not in result.stdout + result.stderr
