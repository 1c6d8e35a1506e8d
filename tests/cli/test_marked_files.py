"""Files with a mark of their encoding in front, as editors and PowerShell write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.lender_files import PROGRAM, call, done, people, refused


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("end", ["\r\n"])
def test_a_checkpoint_in_any_file_that_it_was_redirected_to(lender, encoding, end):
    mark = "\ufeff" if encoding in ("utf-16-le", "utf-16-be") else ""
    text = call("export", "--checkpoint").stdout.strip()
    Path("kept.txt").write_bytes(f"{mark}{text}{end}".encode(encoding))
    told = done("verify", "--checkpoint", "kept.txt")
    assert (told["ok"], told["checkpoint"]) == (True, text)
    number, _, rest = text.partition(":")
    other = f"{number}:{'0' * 64}:{rest.partition(':')[2]}"
    Path("kept.txt").write_bytes(f"{mark}{other}{end}".encode(encoding))
    assert call("verify", "--checkpoint", "kept.txt").exit_code == 4


@pytest.mark.parametrize("content", [b"\xff\xfe4", b"\xc3\x28", b""])
def test_a_file_that_holds_no_checkpoint(lender, content):
    Path("kept.txt").write_bytes(content)
    assert "checkpoint" in refused("verify", "--checkpoint", "kept.txt")


def test_a_time_that_nobody_can_tell_is_refused_before_a_program_starts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people(60).to_csv("history.csv", index=False)
    Path("program.toml").write_text(f"{PROGRAM}[retention]\nmonths = 120000\n")
    words = ("init", "--config", "program.toml", "history.csv", "--ledger", "sqlite:///new.db")
    assert "[retention] months must be from 0 to " in refused(*words)
    assert not Path("new.db").exists()


def test_settings_with_a_mark(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people(60).to_csv("history.csv", index=False)
    Path("program.toml").write_text(PROGRAM, encoding="utf-8-sig")
    words = ("init", "--config", "program.toml", "history.csv", "--ledger", "sqlite:///new.db")
    assert done(*words)["people"] == 60
