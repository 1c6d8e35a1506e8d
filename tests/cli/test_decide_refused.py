"""`secondlook decide` with what cannot be used, which is said before anything is decided."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from cli.lender_files import (
    answer,
    apply,
    call,
    done,
    people,
    refused,
)


def spoiled():
    """Write a file in which seven rows cannot be used; return the others."""
    new = people(60, 1000).drop(columns="outcome").astype({"income": object})
    new.loc[3, "income"] = "1.234,50"
    new.loc[4, "income"] = ""
    new.loc[5, "sex"] = "x"
    new.loc[6, "id"] = ""
    new.loc[[7, 8], "id"] = "twice"
    new.loc[9, "id"] = "a00000"  # of the history
    new.to_csv("applicants.csv", index=False)
    return new.drop(index=range(3, 10))


def test_rows_that_cannot_be_used_are_refused_and_the_rest_goes_on(lender, tmp_path):
    usable = spoiled()
    (tmp_path / "out").mkdir()
    told = done("decide", "applicants.csv", "-o", "out/decisions.csv")
    assert answer("out/decisions.csv")["id"].tolist() == usable["id"].tolist()
    assert told["people"] == len(usable)
    assert told["refused"]["rows"] == 7
    assert told["refused"]["file"] == "out/applicants.refused.csv"
    assert sum(told["refused"]["reasons"].values()) == 7
    no = pd.read_csv("out/applicants.refused.csv", dtype=str, keep_default_na=False)
    assert no["income"][0] == "1.234,50"
    for reason, words in zip(
        no["reason"],
        [
            "'income' must be a number, got '1.234,50', so write it without separators",
            "'income' is missing",
            "the group 'x' was not in the history, which has",
            "'id' is empty",
            "'id' is in the file 2 times",
            "'id' is in the file 2 times",
            "the id was decided on before (in the history); a new application needs a new",
        ],
        strict=True,
    ):
        assert words in reason
    kept, head = (tmp_path / "out/decisions.csv").read_bytes(), lender.checkpoint()
    again = done("decide", "applicants.csv", "-o", "out/decisions.csv")
    assert again["recorded_before"] is not None
    assert again["refused"] == told["refused"]
    assert (tmp_path / "out/decisions.csv").read_bytes() == kept
    assert lender.checkpoint() == head
    said = call("decide", "applicants.csv", "-o", "out/decisions.csv", "--refused", "no.csv").stdout
    assert (
        "7 rows refused, with the reasons in no.csv:\n  2 × 'id' is in the file 2 times\n" in said
    )
    assert said.count(" × ") == 5
    assert said.endswith("  1 for other reasons\n")


def test_who_was_decided_on_in_another_batch_is_refused(lender):
    apply(50)
    done("decide", "applicants.csv", "-o", "first.csv")
    apply(80)  # the same 50 and 30 more, who would be drawn anew
    told = done("decide", "applicants.csv", "-o", "second.csv")
    assert (told["people"], told["refused"]["rows"], told["round"]) == (30, 50, 2)
    ((reason, n),) = told["refused"]["reasons"].items()
    assert (reason[:43], n) == ("the id was decided on before (round 1); a n", 50)
    assert done("decide", "applicants.csv", "-o", "third.csv")["recorded_before"] is not None
    assert Path("second.csv").read_bytes() == Path("third.csv").read_bytes()


def test_strict_stops_before_anything_is_decided(lender, tmp_path):
    spoiled()
    head = lender.checkpoint()
    sentence = refused("decide", "applicants.csv", "-o", "decisions.csv", "--strict")
    assert "applicants.csv, row 4 (id 'a01003'): 'income' must be a number" in sentence
    assert "7 of 60 rows cannot be used" in sentence
    assert lender.checkpoint() == head
    assert not list(tmp_path.glob("*decisions*"))
    assert not list(tmp_path.glob("*refused*"))


def test_a_file_without_a_row_to_use(lender, tmp_path):
    people(400).to_csv("applicants.csv", index=False)
    head = lender.checkpoint()
    sentence = refused("decide", "applicants.csv", "-o", "decisions.csv")
    assert "none of the 400 rows of applicants.csv can be used" in sentence
    assert "secondlook export" not in sentence  # which has nobody of the history
    assert len(pd.read_csv("applicants.refused.csv")) == 400
    assert lender.checkpoint() == head
    assert not (tmp_path / "decisions.csv").exists()


def test_a_batch_that_is_sent_again_under_another_name(lender):
    apply(30)
    done("decide", "applicants.csv", "-o", "decisions.csv", "--batch", "may")
    first, head = Path("decisions.csv").read_bytes(), lender.checkpoint()
    sentence = refused("decide", "applicants.csv", "-o", "decisions.csv", "--batch", "june")
    assert sentence.endswith(
        "refused.csv has them with the reasons, secondlook export has the decisions, and a whole "
        "batch that is sent without --batch is answered from the record."
    )
    Path("decisions.csv").unlink()
    done("decide", "applicants.csv", "-o", "decisions.csv")  # as it says
    assert (Path("decisions.csv").read_bytes(), lender.checkpoint()) == (first, head)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["-o", "nowhere/decisions.csv"],
            "in a folder that does not exist",
        ),
        (["-o", "."], "a table is a file that ends in .csv or .parquet"),
        (["-o", "decisions.xlsx"], "ends in .csv or .parquet, or - for csv"),
        (["-o", f"{'x' * 250}.csv"], "x.csv' cannot be written (File name too long)"),
        (["-o", "d.csv", "--refused", f"{'x' * 250}.csv"], "cannot be written (File name too lo"),
        (["-o", "./applicants.csv"], "the decisions would replace the input"),
        (["-o", "d.csv", "--refused", "d.csv"], "refused rows would replace the decisio"),
        (["-o", "d.csv", "--refused", "applicants.csv"], "would replace the input"),
        (["-o", "d.csv", "--refused", "x/y.csv"], "in a folder that does not exist"),
        (["-o", "d.csv", "--batch", " "], "--batch takes a name"),
        (["-o", "-", "--json"], "--json and -o - both write to standard output"),
        (["-o", "d.csv", "--program", "loans"], "no program called 'loans'"),
        (["-o", "d.csv", "--ledger", "sqlite:///no.db"], "there is no ledger at"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_decided(lender, tmp_path, options, words):
    apply()
    head, files = lender.checkpoint(), sorted(tmp_path.iterdir())
    text = (tmp_path / "applicants.csv").read_text()
    assert words in refused("decide", "applicants.csv", *options)
    assert lender.checkpoint() == head
    assert sorted(tmp_path.iterdir()) == files
    assert (tmp_path / "applicants.csv").read_text() == text


@pytest.mark.parametrize("column", ["id", "income", "sex"])
def test_a_column_that_is_missing(lender, column):
    apply()
    people(20, 1000).drop(columns=column).to_csv("applicants.csv", index=False)
    head = lender.checkpoint()
    sentence = refused("decide", "applicants.csv", "-o", "decisions.csv")
    assert f"applicants.csv has no column {column!r}" in sentence
    assert lender.checkpoint() == head
