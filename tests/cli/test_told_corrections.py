"""Corrections from the command line: what they cost a pilot, and the history's rows among them."""

from __future__ import annotations

import re
import shutil

import pytest

from cli.lender_files import CERTIFIED, answer, apply, call, done, entries, people, start, tell
from secondlook.ledger import Program, verify

OTHER = {"repaid": "default", "default": "repaid"}


@pytest.fixture(scope="module")
def two_rounds(tmp_path_factory):
    """Return a folder with a certified program after two rounds, and the outcomes they had."""
    folder, known = tmp_path_factory.mktemp("pilot"), {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("SECONDLOOK_LEDGER", f"sqlite:///{folder}/pilot.db")
        start(f"sqlite:///{folder}/pilot.db", folder, CERTIFIED, n=200)
        for first in (1000, 2000):
            outcome = apply(200, first).set_index("id")["outcome"]
            done("decide", "applicants.csv", "-o", "decisions.csv")
            yes = answer()["id"][answer()["decision"] == "accept"]
            tell(list(outcome[yes].items()))
            told = done("observe", "outcomes.csv")
            assert (told["certificates_dropped"], told["testing_began_again"]) == (0, [])
            known |= outcome[yes].to_dict()
    return folder, known


@pytest.fixture
def pilot(two_rounds, tmp_path, monkeypatch):
    """Return a program of our own like that, and whom it accepted with their outcomes."""
    folder, known = two_rounds
    for file in folder.glob("pilot.db*"):
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("SECONDLOOK_LEDGER", f"sqlite:///{tmp_path}/pilot.db")
    return Program.open(f"sqlite:///{tmp_path}/pilot.db"), known


def wrong(known, n):
    return [(name, OTHER[outcome]) for name, outcome in list(known.items())[:n]]


def test_observe_tells_what_a_correction_costs(pilot):
    program, known = pilot
    tell(wrong(known, 1))
    said = call("observe", "outcomes.csv").stdout
    assert "Testing begins again with round 3: corrected outcomes had been tested" in said
    assert f"the evidence of {len(known)} outcomes is dropped" in said
    assert "certified" not in said  # nothing was
    tell(wrong(known, 3))
    assert done("observe", "outcomes.csv")["testing_began_again"] == []
    assert verify(program.ledger, relearn=True).ok


def test_decide_says_that_testing_began_again_when_and_why(pilot):
    _, known = pilot
    tell(wrong(known, 1))
    done("observe", "outcomes.csv")
    outcome = apply(200, 3000).set_index("id")["outcome"]
    words = ("decide", "applicants.csv", "-o", "decisions.csv")
    said = "Pilot: no promise yet; testing began again with round 3, and "
    none = "0 outcomes were tested since; round 3 waits for "
    assert said + none in call(*words).stdout
    assert said + none in call(*words).stdout  # from the record
    yes = answer()["id"][answer()["decision"] == "accept"]
    tell([(name, "repaid" if at else outcome[name]) for at, name in enumerate(yes)])
    done("observe", "outcomes.csv")
    apply(200, 4000)
    found = done(*words)["promise"]
    some = rf"{len(yes)} outcomes were tested since; about [\d,]+ more outcomes are needed"
    assert re.fullmatch(f"{re.escape(said)}{some} for one[.]", found), found


def test_new_outcomes_in_the_same_file_count_among_what_is_given_up(pilot):
    program, known = pilot
    outcome = apply(200, 3000).set_index("id")["outcome"]
    done("decide", "applicants.csv", "-o", "decisions.csv")
    yes = answer()["id"][answer()["decision"] == "accept"]
    tell([*outcome[yes].items(), *wrong(known, 2)])
    told = done("observe", "outcomes.csv")
    assert sum(told["recorded"].values()) == len(yes)
    n = len(known) + len(yes)
    again = {"group": None, "round": 4, "n_outcomes": n, "after": "correction"}
    assert told["testing_began_again"] == [again]
    kinds = [one.kind for one in entries(program, None) if one.kind in ("outcomes", "correction")]
    assert kinds == ["outcomes"] * 3 + ["correction"]


def test_status_and_report_say_that_testing_began_again(pilot):
    _, known = pilot
    tell(wrong(known, 5))
    done("observe", "outcomes.csv")
    said = call("status").stdout
    assert "• Since that round 5 outcomes were corrected: if it had been tested" in said
    assert "no round certified; 0 overridden; 5 outcomes corrected; 0 people held" in said

    apply(200, 3000)
    done("decide", "applicants.csv", "-o", "decisions.csv")
    said = call("status").stdout
    assert "Since that round" not in said
    assert "Testing began again with round 3 after a tested outcome was corrected" in said
    again = "testing began again once, last with round 3 after a correction; 0 overridden;"
    assert f"no round certified; {again}" in said
    done("report", "--out", "report.html")
    with open("report.html", encoding="utf-8") as page:
        words = page.read()
    assert (
        "2 rankings were frozen, certificates were dropped 0 times, and testing began again once, "
        "with round 3 after a correction."
    ) in words


def test_a_row_of_the_history_holds_up_no_other(pilot):
    program, _ = pilot
    past = people(200)
    past = past[past["income"] >= -0.3].iloc[:3]
    outcome = apply(100, 3000).set_index("id")["outcome"]
    done("decide", "applicants.csv", "-o", "decisions.csv")
    name = answer()["id"][answer()["decision"] == "accept"].iloc[0]
    (same, first), (other, second), (gone, _) = past[["id", "outcome"]].to_numpy().tolist()
    tell([(other, OTHER[second]), (gone, "fraud"), (same, first), (name, outcome[name])])
    told = done("observe", "outcomes.csv")
    assert sum(told["recorded"].values()) == 1
    assert (told["known_already"], told["corrections"], told["refused"]["rows"]) == (1, 0, 2)
    words = "the applicant is part of the history, whose outcomes are final in a certified program"
    assert told["refused"]["reasons"] == {words: 2}
    got = answer(told["refused"]["file"])
    assert got["id"].tolist() == [other, gone]
    state = "good" if outcome[name] == "repaid" else "bad"
    assert program.standing([name]).states == [state]
