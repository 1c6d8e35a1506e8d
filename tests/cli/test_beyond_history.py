"""Numbers beyond those of the history: most of a batch stop it, some are told of, few are usual."""

from __future__ import annotations

import json
import sqlite3

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from cli.lender_files import PROGRAM, call, done, entries, refused
from secondlook.cli.input_checks import columns_out_of_range
from secondlook.ledger import Program
from secondlook.ledger.verification.walk import verify
from secondlook.people.intake import Range, as_ranges, n_beyond, ranges_of


def people(n, start=0):
    """Return applicants with incomes of 339 to 10,636 and their outcomes."""
    rng = np.random.default_rng([7, start])
    income = np.round(np.clip(np.exp(rng.normal(7.8, 0.5, n)), 339, 10_636))
    good = rng.random(n) < 1 / (1 + np.exp(2 - income / 1000))
    return pd.DataFrame(
        {
            "id": [f"a{start + at:05d}" for at in range(n)],
            "income": income,
            "age": rng.integers(18, 70, n),
            "sex": rng.choice(["f", "m"], n),
            "region": rng.choice(["north", "south"], n),
            "outcome": np.where(good, "repaid", "default"),
        }
    )


def began(folder, monkeypatch, n=300):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SECONDLOOK_LEDGER", url := f"sqlite:///{folder}/lender.db")
    past = people(n)
    past.loc[[0, 1], "income"] = [339, 10_636]
    past.loc[past["income"] < 1200, "outcome"] = ""
    past.to_csv("history.csv", index=False)
    (folder / "program.toml").write_text(PROGRAM)
    done("init", "--config", "program.toml", "history.csv")
    return url


@pytest.fixture
def lender(tmp_path, monkeypatch):
    return Program.open(began(tmp_path, monkeypatch))


def send(n=60, start=1000, **changed):
    """Write a file of applicants, some of whose columns are made anew from what they were."""
    new = people(n, start).drop(columns="outcome")
    for name, change in changed.items():
        new[name] = change(new[name])
    new.to_csv("applicants.csv", index=False)
    return new


def in_cents(income):
    return 100 * income


def with_points(income):
    """Return what a German thousands point becomes where points are decimal: 1.201 for 1201."""
    return income.where(income < 1000, income / 1000)


def test_a_usual_batch_says_nothing(lender):
    send()
    said = call("decide", "applicants.csv", "-o", "decisions.csv")
    assert said.exit_code == 0
    assert "history" not in said.stdout
    send(start=2000)
    assert done("decide", "applicants.csv", "-o", "decisions.csv")["beyond_history"] == []


def test_cents_stop_a_batch_until_one_insists(lender, tmp_path):
    send(income=in_cents)
    assert refused("decide", "applicants.csv", "-o", "decisions.csv") == (
        "the column 'income' of applicants.csv is unlike the history: 60 of 60 people are outside "
        "300 to 12000, perhaps because of another unit or decimal mark; nothing was decided or "
        "recorded, so correct the file, or pass --unlike-history to decide anyway."
    )
    assert entries(lender, "batch") == []
    assert not (tmp_path / "decisions.csv").exists()
    words = ("decide", "applicants.csv", "-o", "decisions.csv", "--batch", "may")
    line = "Unlike the history: 60 of 60 people outside 300 to 12000 in 'income'; is it"
    assert line in call(*words, "--unlike-history").stdout
    assert len(entries(lender, "batch")) == 1
    again = done(*words)  # from the record, which needs no leave
    assert again["recorded_before"] is not None
    row = {"column": "income", "low": 300.0, "high": 12_000.0, "people": 60, "of": 60}
    assert again["beyond_history"] == [row | {"too_many": True}]


def test_that_somebody_insisted_is_on_the_record(lender):
    words = ("decide", "applicants.csv", "-o", "decisions.csv", "--batch")
    send()
    assert done(*words, "april", "--unlike-history")["unlike_history"] == []  # nothing was unlike
    assert "about" not in entries(lender, "batch")[0].says
    send(start=2000, income=in_cents, age=lambda age: 12 * age.where(age < 25, age + 60))
    said = call(*words, "may", "--unlike-history", "--by", "credit desk").stdout
    assert "Decided anyway (--unlike-history)" in said
    assert "60 of 60 people outside 300 to 12000 in 'income'" in said
    income = {"column": "income", "low": 300.0, "high": 12_000.0, "people": 60, "of": 60}
    _, entry = entries(lender, "batch")
    kept = entry.says["about"]["unlike_history"]
    assert (entry.by, kept[0], [one["column"] for one in kept]) == (
        "credit desk",
        income,
        ["income", "age"],
    )
    assert done(*words, "may")["unlike_history"] == kept  # from the record, whoever asks
    assert "Decided anyway (--unlike-history)" in call(*words, "may").stdout

    send(start=3000)
    assert done(*words, "june")["unlike_history"] == []
    told = done("status")
    assert [one["about"] for one in told["rounds"]] == [{}, {"unlike_history": kept}, {}]
    (line,) = [one for one in told["attention"] if "unlike" in one]
    assert line.startswith(
        f"1 batch was decided with --unlike-history although numbers were unlike the history, "
        f"last 'may' (round 2, entry {entry.number}): 60 of 60 people outside 300 to 12000 in "
        f"'income', "
    )
    lines = call("export", "--entries").stdout.splitlines()
    headers = [json.loads(one)["header"] for one in lines]
    assert [one["about"] for one in headers if "round" in one and "about" in one] == [
        {"unlike_history": kept}
    ]
    assert verify(lender.ledger, relearn=True).ok


def test_a_record_of_it_cannot_be_taken_out(lender, tmp_path):
    send(income=in_cents)
    done("decide", "applicants.csv", "-o", "decisions.csv", "--unlike-history")
    with sqlite3.connect(tmp_path / "lender.db") as db:
        at, header = db.execute(
            "SELECT number, header FROM entries WHERE kind = 'batch'"
        ).fetchone()
        says = json.loads(header)
        assert says.pop("about")
        db.execute("UPDATE entries SET header = ? WHERE number = ?", (json.dumps(says), at))
    assert f"entry {at} (batch" in verify(lender.ledger).problem


def test_thousands_points_that_are_read_as_decimals_stop_a_batch(lender):
    sent = send(income=with_points)["income"]
    n = int((sent < 300).sum())
    assert 30 < n < 60
    found = refused("decide", "applicants.csv", "-o", "decisions.csv")
    assert f"{n} of 60 people are outside 300 to 12000" in found
    assert entries(lender, "batch") == []


def test_two_wrong_columns_are_both_named_and_an_error_is_json_too(lender):
    send(income=in_cents, age=lambda age: 12 * age.where(age < 25, age + 60))
    found = done("decide", "applicants.csv", "-o", "decisions.csv", code=2)
    assert "(also: 'age')" in str(found)


def test_some_people_beyond_are_told_of_and_decided(lender):
    send(income=lambda income: income.where(income.index >= 9, 100 * income))
    words = ("decide", "applicants.csv", "-o", "decisions.csv", "--batch", "may")
    told = done(*words)
    row = {"column": "income", "low": 300.0, "high": 12_000.0, "people": 9, "of": 60}
    assert told["beyond_history"] == [row | {"too_many": False}]
    assert "Unlike the history: 9 of 60 people" in call(*words).stdout


@pytest.mark.parametrize("n_past", [4, 10, 30, 100, 1000])
def test_batches_like_their_history_are_hardly_ever_told_of_and_never_stopped(n_past):
    rng = np.random.default_rng([n_past, 3])
    told = stopped = halves = 0
    for n_new in np.repeat([1, 2, 3, 8, 40, 400], 100).tolist():
        values = np.exp(rng.normal(size=(n_past + n_new, 3)))
        names = ("a", "b", "c")
        ranges = as_ranges(ranges_of(values[:n_past], names))
        new = pa.table(dict(zip(names, values[n_past:].T.copy(), strict=True)))
        found = columns_out_of_range(ranges, new)
        told += bool(found)
        stopped += any(row["too_many"] for row in found)
        of = ((values[n_past:, at], ranges[name]) for at, name in enumerate(names))
        halves += any(2 * n_beyond(*one)[0] > n_new for one in of)
    if n_past <= 100:
        assert halves > 5  # whom a rule that knows of no chance would have stopped
    assert stopped == 0  # one in 10,000 at most, so 6 % of the tests with exact bounds, and less
    assert told <= 5


@pytest.mark.parametrize(
    ("n_past", "n_new", "is_stopped"),
    [(2, 400, False), (12, 3, False), (12, 20, True), (400, 1, False), (400, 3, True)],
)
def test_how_much_a_history_can_tell_depends_on_its_size(n_past, n_new, is_stopped):
    """All new people are beyond; with few on either side, that may be chance."""
    new = pa.table({"income": pa.array([5e5] * n_new)})
    found = columns_out_of_range({"income": Range(300.0, 12_000.0, n_past)}, new)
    assert any(row["too_many"] for row in found) == is_stopped


def test_missing_numbers_count_neither_way():
    new = pa.table({"age": pa.array([900.0] * 6 + [30.0] * 5 + [None] * 100)})
    (row,) = columns_out_of_range({"age": Range(18.0, 70.0, 500)}, new)
    assert (row["people"], row["of"], row["too_many"]) == (6, 11, True)
    empty = pa.table({"age": pa.array([None, None], pa.float64())})
    assert columns_out_of_range({"age": Range(18.0, 70.0, 500)}, empty) == []


def test_columns_of_a_history_without_names_go_by_position():
    new = pa.table({"x": [1, 2], "flag": [True, False]})
    assert columns_out_of_range({0: Range(0.0, 2.0, 90), 1: Range(0.0, 1.0, 90)}, new) == []
    (row,) = columns_out_of_range({1: Range(5.0, 6.0, 900)}, new)
    assert row["column"] == "flag"
