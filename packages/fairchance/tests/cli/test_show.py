"""``fairchance show``: one applicant's file."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from cli.lender_files import PROGRAM, apply, call, done, refused, start
from golden import transcript

REASONS = """
[reasons]
income = { code = "R1", text = "Your income is low for this loan." }
debt = { code = "R2", text = "Your debts are high." }
[retention]
months = 25
"""


@pytest.fixture
def decided(tmp_path, monkeypatch):
    """Return the first accepted and the first two rejected ids of a batch of a new program."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAIRCHANCE_LEDGER", f"sqlite:///{tmp_path}/lender.db")
    start(f"sqlite:///{tmp_path}/lender.db", tmp_path, PROGRAM + REASONS)
    frame = apply()
    frame = frame.set_index("id")
    done("decide", "applicants.csv", "-o", "decisions.csv", "--batch", "b1", "--by", "job")
    files = {name: done("show", name) for name in frame.index[:40]}
    yes = next(name for name, one in files.items() if one["decision"]["decision"] == "accept")
    no = [name for name, one in files.items() if one["decision"]["decision"] == "reject"]
    return yes, no[0], no[1]


def test_a_file_has_all_that_is_on_record(decided):
    _, no, _ = decided
    file = done("show", no)
    assert (file["id"], file["program"], file["erased"]) == (no, "main", None)
    assert set(file["features"]) == {"income", "debt"}
    assert set(file["groups"]) == {"sex"}
    assert done("show", no, "--no-groups")["groups"] is None
    assert {why["code"] for why in file["decision"]["reasons"]} <= {"R1", "R2"}
    assert len(file["decision"]["reasons"]) > 0
    assert file["accepted"] is False
    assert done("show", "--number", file["person"]) == file
    done("override", "--id", no, "--accept", "--reason", "a guarantor", "--by", "desk")
    done("hold", "--id", no, "--reason", "case 7", "--by", "legal")
    now = done("show", no)
    assert now["accepted"] is True
    assert [(one["accepted"], one["reason"], one["by"]) for one in now["overrides"]] == [
        (True, "a guarantor", "desk")
    ]
    assert [(one["held"], one["reason"]) for one in now["holds"]] == [(True, "case 7")]
    assert now["proof"] == file["proof"]
    assert now["decision"] == file["decision"]


def test_of_an_erased_applicant_the_decision_and_its_proof_are_left(decided):
    _, no, _ = decided
    file = done("show", no)
    done("erase", "--id", no, "--early", "--reason", "asked", "--yes", "--by", "records")
    assert "is unknown or erased" in refused("show", no)
    left = done("show", "--number", file["person"])
    for name in ("id", "features", "groups"):
        assert left[name] is None
    assert (left["erased"]["reason"], left["erased"]["by"]) == ("asked", "records")
    gone = {"id", "reasons", "letter"}
    assert {k: v for k, v in left["decision"].items() if k not in gone} == {
        k: v for k, v in file["decision"].items() if k not in gone
    }
    assert {left["decision"][name] for name in gone} == {None}
    assert left["proof"] == file["proof"]
    assert no not in call("show", "--number", file["person"]).stdout


def test_a_row_that_was_changed_does_not_fit_its_receipt(decided, tmp_path):
    _, no, other = decided
    assert done("show", no)["proof"]["fits"] is True
    with closing(sqlite3.connect(tmp_path / "lender.db")) as connection, connection:
        connection.execute(f"UPDATE people SET accepted = 1 WHERE application = '{no}'")
    file = done("show", no, code=4)
    assert (file["decision"]["decision"], file["proof"]["fits"]) == ("accept", False)
    result = call("show", no)
    assert result.exit_code == 4
    assert result.stdout.splitlines()[1].startswith("Warning: ")
    assert done("show", other)["proof"]["fits"] is True


def test_an_applicant_of_the_history_has_a_file(decided):
    file = done("show", "a00001")
    assert file["decision"]["round"] == 0
    assert file["decision"]["decision"] in ("accept", "reject")
    done("erase", "--id", "a00001", "--early", "--reason", "asked", "--yes")
    assert done("show", "--number", file["person"])["decision"] == file["decision"] | {"id": None}


def test_what_show_prints(decided, golden):
    yes, no, other = decided
    number = done("show", other)["person"]
    printed = transcript(
        f"show {no}",
        f"override --id {no} --accept --reason 'a guarantor' --by desk",
        f"hold --id {no} --reason 'case 7' --by legal",
        f"show {no}",
        f"withdraw --id {yes} --by desk",
        f"show {yes} --no-groups",
        "show a00000",
        f"erase --id {other} --early --reason asked --yes --by records",
        f"show --number {number}",
        f"show {other}",
        "show --number 9999",
        "show",
    )
    golden("show", printed)
