"""``secondlook observe`` records all that is new in a file, or nothing of it."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from cli.lender_files import CERTIFIED, answer, apply, done, entries, refused, start, tell
from secondlook.ledger import Program, verify


def fail_on(program, kind):
    """Let the database refuse entries of a kind, as a full disk would."""
    with program.ledger.engine.connect() as connection:
        connection.execute(
            sa.text(
                f"CREATE TRIGGER full BEFORE INSERT ON entries WHEN NEW.kind = '{kind}' "
                f"BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
            )
        )
        connection.commit()


def mend(program):
    with program.ledger.engine.connect() as connection:
        connection.execute(sa.text("DROP TRIGGER full"))
        connection.commit()


@pytest.mark.parametrize("config", ["plain", "certified"])
def test_a_file_of_which_a_part_cannot_be_recorded_is_not_recorded(
    lender, config, tmp_path, monkeypatch
):
    program = lender
    if config == "certified":
        (tmp_path / "other").mkdir()
        url = f"sqlite:///{tmp_path}/other/lender.db"
        monkeypatch.setenv("SECONDLOOK_LEDGER", url)
        start(url, tmp_path / "other", CERTIFIED)
        program = Program.open(url)
    apply()
    done("decide", "applicants.csv", "-o", "decisions.csv")
    yes = answer().query("decision == 'accept'")["id"].tolist()
    tell([(yes[0], "repaid")])
    done("observe", "outcomes.csv")
    # New outcomes, a correction and a withdrawal, of which the correction does not get through.
    rows = [(yes[0], "default"), (yes[1], "repaid"), (yes[2], "default"), (yes[3], "fraud")]
    tell(rows)
    head = program.checkpoint()
    fail_on(program, "correction")
    words = refused("observe", "outcomes.csv", code=2)
    assert "database or disk is full" in words
    assert words.endswith("nothing of this call was recorded, so fix that and call again.")
    assert program.checkpoint() == head
    assert program.standing(yes[:4]).states == ["good", None, None, None]

    mend(program)
    told = done("observe", "outcomes.csv")
    assert told["recorded"] == {"good": 1, "bad": 1, "indeterminate": 1}
    assert told["corrections"] == 1
    assert program.standing(yes[:4]).states == ["bad", "good", "bad", "indeterminate"]
    kinds = [one.says["rows"]["n"] for one in entries(program, "outcomes")]
    assert (len(kinds), len(entries(program, "correction"))) == (3, 1)
    assert verify(program.ledger, relearn=True).ok
    assert done("observe", "outcomes.csv")["known_already"] == 4
    assert Program.open(str(program.ledger.engine.url)).checkpoint() == program.checkpoint()
