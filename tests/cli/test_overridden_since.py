"""A batch that is sent again after people decided otherwise: the file stays, and a line says so."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from cli.lender_files import answer, apply, call, done

SAYS = "by hand since"


@pytest.fixture
def decided(lender):
    apply()
    told = done("decide", "applicants.csv", "-o", "decisions.csv")
    assert told["overridden_since"] == {"accepted": 0, "rejected": 0}
    got = answer().set_index("id")["decision"]
    return lender, got[got == "accept"].index.tolist(), got[got == "reject"].index.tolist()


def again():
    """Return what the same command says in JSON, after checking that the file is the same."""
    before = Path("decisions.csv").read_bytes()
    told = done("decide", "applicants.csv", "-o", "decisions.csv")
    assert Path("decisions.csv").read_bytes() == before
    return told["overridden_since"]


def test_overrides_since_are_told_and_the_file_stays(decided):
    program, yes, no = decided
    assert again() == {"accepted": 0, "rejected": 0}
    assert SAYS not in call("decide", "applicants.csv", "-o", "decisions.csv").stdout
    program.override(yes[:2], False, "has left the country")
    program.override(no[:1], True, "has a guarantor")
    assert again() == {"accepted": 1, "rejected": 2}
    said = call("decide", "applicants.csv", "-o", "decisions.csv").stdout
    assert ("Overridden since: 3 of these decisions (1 accepted, 2 rejected).") in said
    done("export", "-o", "now.csv")
    now = pd.read_csv("now.csv", dtype=str).set_index("id")["override"]
    assert now[yes[:2]].tolist() == ["rejected", "rejected"]
    assert now[no[:1]].tolist() == ["accepted"]


def test_what_was_taken_back_is_not_counted(decided):
    program, yes, _ = decided
    program.override(yes[:2], False, "has left the country")
    program.undo_override(yes[:1], "came back")
    assert again() == {"accepted": 0, "rejected": 1}
    said = call("decide", "applicants.csv", "-o", "decisions.csv").stdout
    assert "Overridden since: 1 of these decisions" in said


def test_only_people_of_the_batch_count(decided):
    program, yes, _ = decided
    program.override(yes[:2], False, "has left the country")
    apply(30, 5000, "others.csv")
    assert done("decide", "others.csv", "-o", "o.csv")["overridden_since"]["rejected"] == 0
    assert done("decide", "others.csv", "-o", "o.csv")["overridden_since"]["rejected"] == 0
