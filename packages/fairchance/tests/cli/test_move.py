"""``fairchance move``."""

from __future__ import annotations

from cli.lender_files import call, done
from golden import transcript


def test_what_move_prints(lender, golden, tmp_path):
    here, there = f"sqlite:///{tmp_path}/lender.db", f"sqlite:///{tmp_path}/new.db"
    printed = transcript(
        f"move {here} {there} --by ann",
        f"move {here} {there}",
        f"move {here} sqlite:///{tmp_path}/third.db",
        f"pause --ledger {here}",
        f"pause --ledger {there}",
        f"move {here} {there} --program loans",
    )
    golden("move", printed.replace(str(tmp_path), ""))
    assert done("status", here, "--fail-on", "red", code=6)["light"] == "red"
    assert done("verify", here)["moved"]["by"] == "ann"
    assert call("verify", here).stdout.splitlines()[1].startswith("The program was moved to")
    assert done("verify", there)["moved"] is None
    done("status", there, "--fail-on", "red")
    (moved,) = done("move", there, f"sqlite:///{tmp_path}/more.db")["moved"]
    assert moved == {
        "program": "main",
        "applicants": 400,
        "before": False,
        "checkpoint": moved["checkpoint"],
    }
