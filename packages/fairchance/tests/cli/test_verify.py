"""``fairchance verify``: damaged ledgers, missing tables and files of checkpoints."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from cli.hostile_lender import run
from cli.lender_files import PROGRAM, call, done, people, refused
from golden import transcript


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


def test_only_an_intact_ledger_has_a_checkpoint(copied, golden):
    change, url = copied
    shown = verified(url, 0)
    change("UPDATE people SET accepted = 1 - accepted WHERE person = 400")
    damaged = transcript(f"verify {url}", "verify sqlite:///no.db", f"verify {url} --checkpoint 7")
    golden("verify", f"{shown}{damaged}")
    result = json.loads(verified(url, 4, "--json"))
    assert (result["ok"], result["checkpoint"]) == (False, None)


@pytest.mark.parametrize("table", ["overrides", "outcomes", "entries", "erasures"])
def test_missing_table_is_named(copied, table):
    change, url = copied
    change(f"DROP TABLE {table}")
    result = json.loads(verified(url, 4, "--json"))
    assert (result["ok"], result["checkpoint"]) == (False, None)
    assert repr(table) in result["message"]


def test_other_database_is_not_called_damaged(tmp_path):
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE mine (x)")
    result = run("verify", f"sqlite:///{path}", code=2)
    assert "missing:" not in result.stdout + result.stderr


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("end", ["\r\n"])
def test_checkpoint_file_in_any_encoding(lender, encoding, end):
    mark = "\ufeff" if encoding in ("utf-16-le", "utf-16-be") else ""
    text = call("export", "--checkpoint").stdout.strip()
    Path("kept.txt").write_bytes(f"{mark}{text}{end}".encode(encoding))
    result = done("verify", "--checkpoint", "kept.txt")
    assert (result["ok"], result["checkpoint"]) == (True, text)
    number, _, rest = text.partition(":")
    other = f"{number}:{'0' * 64}:{rest.partition(':')[2]}"
    Path("kept.txt").write_bytes(f"{mark}{other}{end}".encode(encoding))
    assert call("verify", "--checkpoint", "kept.txt").exit_code == 4


@pytest.mark.parametrize("content", [b"\xff\xfe4", b"\xc3\x28", b""])
def test_file_without_a_checkpoint(lender, content):
    Path("kept.txt").write_bytes(content)
    assert "checkpoint" in refused("verify", "--checkpoint", "kept.txt")


def test_invalid_time_is_refused_before_a_program_starts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people(60).to_csv("history.csv", index=False)
    Path("program.toml").write_text(f"{PROGRAM}[retention]\nmonths = 120000\n")
    words = ("init", "--config", "program.toml", "history.csv", "--ledger", "sqlite:///new.db")
    assert "[retention] months" in refused(*words)
    assert not Path("new.db").exists()


def test_configuration_with_a_byte_order_mark(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people(60).to_csv("history.csv", index=False)
    Path("program.toml").write_text(PROGRAM, encoding="utf-8-sig")
    words = ("init", "--config", "program.toml", "history.csv", "--ledger", "sqlite:///new.db")
    assert done(*words)["people"] == 60
