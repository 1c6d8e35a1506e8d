"""Messages that tell users what to do next: erasures, corrections, stops and checkpoints."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from cli.lender_files import answer, apply, call, done, people, refused, tell
from fairchance.errors import InputError
from fairchance.ledger import Program

DECIDE = ("decide", "applicants.csv", "-o", "decisions.csv", "--batch", "may")
ERASE = ("erase", "--early", "--reason", "asked for it", "--yes")


@pytest.fixture(scope="module")
def once(made, tmp_path_factory):
    """Return a folder with a program that has decided."""
    folder = tmp_path_factory.mktemp("once")
    shutil.copytree(made, folder, dirs_exist_ok=True)
    url = f"sqlite:///{folder}/lender.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("FAIRCHANCE_LEDGER", url)
        apply(60)
        done(*DECIDE)
    return folder


@pytest.fixture
def lender(once, tmp_path, monkeypatch):
    shutil.copytree(once, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAIRCHANCE_LEDGER", f"sqlite:///{tmp_path}/lender.db")
    table = answer()
    accepted, rejected = (
        table["id"][table["decision"] == value].tolist() for value in ("accept", "reject")
    )
    return Program.open(f"sqlite:///{tmp_path}/lender.db"), accepted, rejected


def start_cards():
    """Start another program with the same history."""
    done("init", "--config", "program.toml", "history.csv", "--program", "cards")


def test_erase_names_other_programs_with_the_same_ids(lender):
    _, yes, _ = lender
    assert done(*ERASE, "--id", yes[0])["other_programs"] == {}
    start_cards()
    assert "'cards', 'main'" in refused(*ERASE, "--id", yes[1])
    main = (*ERASE, "--program", "main")
    result = done(*main, "--id", "a00001", "--id", "a00002", "--id", yes[1])
    assert (result["erased"], result["other_programs"]) == (3, {"cards": 2})
    output = call(*main, "--id", "a00003").stdout
    assert output == (
        "1 person erased; the decisions stay.\n"
        "1 other program has the same ids: 'cards' (1); erase them there too (--program).\n"
    )
    assert "other program" not in call(*ERASE, "--id", "a00003", "--program", "cards").stdout


def test_report_shows_reasons_of_overrides_and_counts_active_ones(lender):
    program, accepted, rejected = lender
    for value in rejected[:2]:
        done("override", "--id", value, "--accept", "--reason", "has a guarantor")
    done("override", "--id", rejected[1], "--undo", "--reason", "the first was <meant>")
    done("hold", "--id", accepted[0], "--reason", "a case")
    summary = program.summary()
    assert call("report", "-o", "page.html").exit_code == 0
    text = Path("page.html").read_text(encoding="utf-8")
    assert text.count("has a guarantor") == 2
    assert "the first was &lt;meant&gt;" in text
    words = re.sub(r"<sup[^>]*>\d+</sup>|<[^>]*>", "", text)  # some are explained in a note
    assert "1 decision is overridden now, 0 people are erased, 1 person is held." in words
    assert done("status")["people"]["overridden"] == 1
    assert (
        summary.rounds[0].n_overridden,
        sum(group.n_overridden for group in summary.groups),
    ) == (1, 1)


def test_checkpoint_of_another_program_or_a_missing_file(lender):
    program, _, _ = lender
    start_cards()
    Path("kept.txt").write_text(str(program.checkpoint()))
    message = refused("verify", "--program", "cards", "--checkpoint", "kept.txt")
    assert "'main'" in message
    assert "'cards'" in message
    assert call("verify", "--program", "main", "--checkpoint", "kept.txt").exit_code == 0
    for name in ("lost.txt", "2031/lost.txt"):
        assert repr(name) in refused("verify", "--checkpoint", name)


def test_batch_with_erased_applicants_explains_what_to_do(lender):
    _, yes, _ = lender
    done(*ERASE, "--id", yes[0], "--id", yes[1])
    message = refused(*DECIDE)
    assert "'may' has 2 " in message


def test_relearning_reports_where_it_stopped(lender):
    program, _, _ = lender
    assert done("verify", "--relearn")["not_learned_from"] is None
    done(*ERASE, "--id", "a00001")
    result = done("verify", "--relearn")
    assert (result["learned_again"], result["not_learned_from"]) == (0, "entry 2 (history '#2')")
    assert "entry 2 (history '#2')" in call("verify", "--relearn").stdout
    assert program.verify().not_learned_from is None


def test_corrections_are_reported(lender):
    _, yes, _ = lender
    tell([(value, "repaid") for value in yes[:5]])
    assert done("observe", "outcomes.csv")["corrected"] == []
    past = people(400)
    known = past[past["income"] >= -0.3].iloc[0]
    other = {"repaid": ("default", "good", "bad"), "default": ("repaid", "bad", "good")}
    word, before, now = other[known["outcome"]]
    tell([(known["id"], word), *((item, "default") for item in yes[:4])])
    output = call("observe", "outcomes.csv").stdout
    assert (
        f"Corrected: {known['id']!r} was {before} and is {now} (history); {yes[0]!r} was good and "
        f"is bad; {yes[1]!r} was good and is bad; and 2 more.\n"
    ) in output
    tell([(known["id"], known["outcome"]), (yes[0], "default")])
    assert done("observe", "outcomes.csv")["corrected"] == [
        {"id": known["id"], "before": now, "now": before, "history": True}
    ]


def test_python_accepts_the_outcome_values_of_the_configuration(lender):
    program, yes, _ = lender
    program.observe(yes[:3], ["repaid", "default", "1"])
    program.observe(yes[3:5], np.array([1, 0]))
    assert program.standing(yes[:5]).states == ["good", "bad", "good", "good", "bad"]
    with pytest.raises(InputError, match=r"outcomes .*'default', '0', 'repaid', '1'.* 'paid'"):
        program.observe(yes[5:7], ["repaid", "paid"])
    with pytest.raises(InputError, match="'fraud'"):
        program.observe(yes[5:6], ["fraud"])
    assert program.standing(yes[5:7]).states == [None, None]


@pytest.mark.parametrize(("shift", "accepted"), [(-1000, 0), (1000, 60)])
def test_a_batch_in_another_unit_is_flagged(lender, shift, accepted):
    new = apply(60, start=3000)
    new["income"] += shift
    new.drop(columns="outcome").to_csv("applicants.csv", index=False)
    done(*DECIDE[:-1], "june", "--unlike-history")
    assert (answer()["decision"] == "accept").sum() == accepted
    (check,) = [one for one in done("status")["checks"] if one["finding"] == "acceptance_changed"]
    assert (check["facts"]["accepted"], check["facts"]["of"]) == (accepted, 60)
