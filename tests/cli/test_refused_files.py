"""Rows that are handed back: as they were written, and never over those of another run."""

from __future__ import annotations

import csv
import threading
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from cli.lender_files import call, done, people, start
from secondlook.cli.files.refusals import Refusals
from secondlook.cli.files.tables import read_sent, read_table, write_new_table
from secondlook.errors import InputError

# Each of these is read as another value than the text it is written as.
WRITTEN = [
    ["id", "amount", "rate", "since", "flag", "gap", "owes", "note"],
    ["007", "1.50", "0x1", "2031-01-05", "TRUE", "NA", "-3.0", " padded "],
    ["-8", "1e3", "5 %", "2031-01-05", "false", "", "+4", "it's; a, list"],
    ["009", "12", "7", "2031-02-01", "true", "4", "-5", "=2+3"],
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusals(rows):
    with open("in.csv", "w", newline="") as file:
        csv.writer(file).writerows(WRITTEN)
    sent = read_sent("in.csv", text=("id",))
    found = Refusals(sent.table, sent.table["id"].to_pylist(), sent.as_written, ("id",))
    found.add(rows, "why")
    return found


def test_refused_rows_are_as_they_were_written():
    assert refusals([0, 1, 2]).write("in.refused.csv") == "in.refused.csv"
    with open("in.refused.csv", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == [*WRITTEN[0], "reason"]
    expected = [[*row, "why"] for row in WRITTEN[1:]]
    expected[1][0] = "'-8"  # an id is text, so a spreadsheet is kept from reading it as a number
    expected[2][-2] = "'=2+3"
    assert rows == expected


def test_refused_rows_can_be_sent_again_as_they_are():
    refusals([0, 1, 2]).write("in.refused.csv")
    first, again = (read_table(name, text=("id",)) for name in ("in.csv", "in.refused.csv"))
    assert again.drop_columns(["reason"]).to_pydict() == first.to_pydict()


def test_a_file_of_another_run_stays():
    assert refusals([0]).write("in.refused.csv") == "in.refused.csv"
    kept = Path("in.refused.csv").read_bytes()
    assert refusals([0]).write("in.refused.csv") == "in.refused.csv"  # the same once more
    assert refusals([1]).write("in.refused.csv") == "in.2.refused.csv"
    assert refusals([2]).write("in.refused.csv", "in.3.refused.csv") == "in.4.refused.csv"
    assert refusals([0, 1]).write("no.csv") == "no.csv"
    assert refusals([0, 2]).write("no.csv") == "no.2.csv"
    assert refusals([]).write("none.csv") == "none.csv"
    assert Path("in.refused.csv").read_bytes() == kept
    names = {one.name for one in Path().iterdir()} - {"in.csv"}
    assert names == {
        *("in.refused.csv", "in.2.refused.csv", "in.4.refused.csv", "no.csv", "no.2.csv")
    }


def test_runs_at_the_same_time_get_files_of_their_own():
    tables, found = [pa.table({"x": [at]}) for at in range(8)], {}

    def write(at):
        found[at] = write_new_table(tables[at], "no.csv")

    threads = [threading.Thread(target=write, args=(at,)) for at in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(set(found.values())) == 8
    assert {at: read_table(path)["x"].to_pylist() for at, path in found.items()} == {
        at: [at] for at in range(8)
    }


def test_a_file_that_cannot_be_written_leaves_nothing(monkeypatch, folder):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("secondlook.cli.files.tables.os.replace", fail)
    with pytest.raises(InputError, match="No space left on device"):
        refusals([0]).write("in.refused.csv")
    assert [one.name for one in folder.iterdir()] == ["in.csv"]


def test_the_next_month_s_refused_rows_have_a_file_of_their_own(folder, monkeypatch):
    monkeypatch.setenv("SECONDLOOK_LEDGER", f"sqlite:///{folder}/lender.db")
    start(f"sqlite:///{folder}/lender.db", folder, n=200)
    for month, name in enumerate(("applicants.refused.csv", "applicants.2.refused.csv"), 1):
        new = people(30, 1000 * month).drop(columns="outcome").astype({"debt": object})
        new.loc[4, "debt"] = f"{month}.000,00"
        new.to_csv("applicants.csv", index=False)
        said = call("decide", "applicants.csv", "-o", "decisions.csv").stdout
        assert f"1 row refused, with the reasons in {name}:" in said
        assert done("decide", "applicants.csv", "-o", "decisions.csv")["refused"]["file"] == name
        (row,) = pd.read_csv(name, dtype=str).to_dict("records")
        assert (row["id"], row["debt"]) == (f"a{1000 * month + 4:05d}", f"{month}.000,00")
        assert row["income"] == str(new.loc[4, "income"])
