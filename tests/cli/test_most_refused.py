"""Files of which most rows are refused: nothing is recorded, and the causes are told."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from cli.lender_files import PROGRAM, apply, call, done, entries, people, refused

DECIDE = ("decide", "applicants.csv", "-o", "decisions.csv", "--batch", "may")


def with_commas(n, of=40):
    """Write applicants of whom the first have an income with a decimal comma."""
    new = apply(of).drop(columns="outcome").astype({"income": str})
    new.loc[: n - 1, "income"] = [f"{at},5" for at in range(n)]
    new.to_csv("applicants.csv", index=False)
    return new


def test_a_file_that_is_mostly_refused_is_no_round_and_its_name_stays_free(lender):
    with_commas(30)
    head = lender.checkpoint()
    assert refused(*DECIDE) == (
        "30 of 40 rows of applicants.csv are refused, and --most-refused allows a share of 0.5, "
        "most often because 'income' must be a number, got '0,5' (row 1, and others), so write it "
        "without separators or units (30 rows); nothing was decided or recorded, correct the "
        "file and send it again, applicants.refused.csv has the rows with the reasons."
    )
    assert lender.checkpoint() == head
    assert not Path("decisions.csv").exists()
    assert len(pd.read_csv("applicants.refused.csv")) == 30
    apply(40)
    assert done(*DECIDE)["people"] == 40


@pytest.mark.parametrize(
    ("n", "most", "goes_on"),
    [(20, None, True), (21, None, False), (39, 1, True), (1, 0, False), (10, 0.25, True)],
)
def test_the_limit_is_a_share_of_the_rows(lender, n, most, goes_on):
    with_commas(n)
    words = DECIDE if most is None else (*DECIDE, "--most-refused", most)
    if goes_on:
        assert done(*words)["people"] == 40 - n
    else:
        assert f"{n} of 40 rows of applicants.csv are refused" in refused(*words)
    assert len(entries(lender, "batch")) == goes_on


@pytest.mark.parametrize("most", ["1.5", "-0.1", "nan"])
def test_the_limit_must_be_a_share(lender, most):
    apply(4)
    words = refused(*DECIDE, "--most-refused", most)
    assert words.startswith(f"--most-refused must be a share of the rows from 0 to 1, got {most};")


def test_people_who_were_decided_on_before_do_not_count(lender):
    """A mended file goes under another name, with everybody who was in it."""
    with_commas(5)
    assert done(*DECIDE)["people"] == 35
    apply(40)
    assert done(*DECIDE[:-1], "mended")["people"] == 5
    new = pd.concat([people(40, 1000), people(4, 2000)]).drop(columns="outcome")
    new = new.astype({"income": str})
    new.iloc[-3:, 1] = "lots"
    new.to_csv("applicants.csv", index=False)
    said = refused(*DECIDE[:-1], "june")
    assert said.startswith(
        "3 of 4 rows of applicants.csv are refused, and --most-refused allows a share of 0.5, most "
        "often because 'income' must be a number, got 'lots' (3 rows); nothing was decided"
    )


def test_what_is_recorded_is_answered_whatever_the_share(lender):
    with_commas(30)
    first = done(*DECIDE, "--most-refused", 1)
    again = done(*DECIDE)
    assert again["recorded_before"] is not None
    assert (again["people"], again["refused"]["rows"]) == (first["people"], 30) == (10, 30)


def test_reasons_are_told_by_their_cause(lender):
    new = with_commas(3)
    new.loc[5:6, "income"] = ["lots", "more"]
    new.loc[7, "sex"] = "x"
    new.loc[8, ["sex", "income"]] = ["y", "1,5"]
    new.to_csv("applicants.csv", index=False)
    found = done(*DECIDE)["refused"]["reasons"]
    number, group = "'income' must be a number, got ", " was not in the history, which has 'f', 'm'"
    hint = ", so write it without separators or units"
    do = "; map it to one of these, or start a program with a history that has it"
    assert found == {
        f"{number}'0,5' (row 1, and others){hint}": 3,
        f"{number}'lots' (row 6, and others)": 2,
        f"the group 'x'{group}{do}": 1,
        f"the group 'y'{group}{do}; {number}'1,5'{hint}": 1,
    }


def test_a_file_without_a_usable_row_gives_the_commonest_reasons(lender):
    new = with_commas(4, of=5)
    new.loc[4, "sex"] = None
    new.to_csv("applicants.csv", index=False)
    assert refused(*DECIDE) == (
        "none of the 5 rows of applicants.csv can be used, most often because 'income' must be a "
        "number, got '0,5' (row 1, and others), so write it without separators or units (4 rows), "
        "then 'sex' is empty, and every applicant needs a group (1 row), so nothing was decided; "
        "applicants.refused.csv has them with the reasons."
    )


def test_a_name_that_is_taken_leaves_no_refused_file(lender):
    apply(20, start=3000)
    done(*DECIDE)
    with_commas(3)
    assert "recorded under the name 'may' with other content" in refused(*DECIDE)
    assert not Path("applicants.refused.csv").exists()
    assert done(*DECIDE[:-1], "june")["refused"]["file"] == "applicants.refused.csv"
    assert Path("applicants.refused.csv").exists()


def test_a_history_that_is_mostly_refused_starts_no_program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path}/lender.db"
    Path("program.toml").write_text(PROGRAM)
    past = people(200)
    past.loc[:101, "debt"] = None
    past.to_csv("history.csv", index=False)
    words = ("init", "--ledger", url, "--config", "program.toml", "history.csv")
    assert refused(*words) == (
        "102 of 200 rows of history.csv are refused, and --most-refused allows a share of 0.5, "
        "most often because 'debt' is missing, which only a program with missing = 'impute' or "
        "learner = 'gradient-boosting' takes (102 rows); no program was started, correct the "
        "history or the configuration, history.refused.csv has the rows with the reasons."
    )
    assert not Path("lender.db").exists()
    Path("program.toml").write_text(PROGRAM.replace("seed = 3", 'seed = 3\nmissing = "impute"'))
    assert done(*words)["refused"] == 0


def test_a_history_with_refused_rows_tells_the_reasons(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("program.toml").write_text(PROGRAM)
    past = people(200).astype({"income": str})
    past.loc[:1, "outcome"] = ["perhaps", "maybe"]
    past.loc[4, "sex"] = None
    past.to_csv("history.csv", index=False)
    url = f"sqlite:///{tmp_path}/lender.db"
    said = call("init", "--ledger", url, "--config", "program.toml", "history.csv").stdout
    assert "3 rows refused, with the reasons in history.refused.csv:\n" in said
    assert (
        "  2 × the outcome 'perhaps' (row 1, and others) is none of the labels in [outcomes]"
        in said
    )
    assert "  1 × 'sex' is empty, and every applicant needs a group\n" in said
