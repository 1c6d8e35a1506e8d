"""Refused rows: the files they are written to, and files with too many of them."""

from __future__ import annotations

import csv
import os
import threading
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from cli.lender_files import (
    PROGRAM,
    apply,
    call,
    causes,
    done,
    entries,
    people,
    refused,
    start,
)
from fairchance.cli.files.refusals import Refusals
from fairchance.cli.files.tables import read_sent, read_table, write_new_table
from fairchance.errors import InputError

# Each of these texts is read as a value that would be written differently.
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
    result = Refusals(sent.table, sent.table["id"].to_pylist(), sent.as_written, ("id",))
    result.add(rows, "pending")
    return result


def test_refused_rows_are_written_unchanged():
    assert refusals([0, 1, 2]).write("in.refused.csv") == "in.refused.csv"
    with open("in.refused.csv", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == [*WRITTEN[0], "reason_code", "reason"]
    expected = [[*row, "pending"] for row in WRITTEN[1:]]
    expected[1][0] = "'-8"  # an id is text, so a spreadsheet is kept from reading it as a number
    expected[2][-2] = "'=2+3"
    assert [row[:-1] for row in rows] == expected


def test_refused_rows_can_be_sent_again_unchanged():
    refusals([0, 1, 2]).write("in.refused.csv")
    first, again = (read_table(name, text=("id",)) for name in ("in.csv", "in.refused.csv"))
    assert again.drop_columns(["reason_code", "reason"]).to_pydict() == first.to_pydict()


def test_file_of_another_run_is_kept():
    assert refusals([0]).write("in.refused.csv") == "in.refused.csv"
    kept = Path("in.refused.csv").read_bytes()
    assert refusals([0]).write("in.refused.csv") == "in.refused.csv"  # the same once more
    assert refusals([1]).write("in.refused.csv") == "in.2.refused.csv"
    assert refusals([2]).write("in.refused.csv", "in.3.refused.csv") == "in.4.refused.csv"
    assert refusals([0, 1]).write("no.csv") == "no.csv"
    assert refusals([0, 2]).write("no.csv") == "no.2.csv"
    assert refusals([]).write("none.csv") == "none.csv"
    assert Path("in.refused.csv").read_bytes() == kept
    names = {value.name for value in Path().iterdir()} - {"in.csv"}
    assert names == {
        *("in.refused.csv", "in.2.refused.csv", "in.4.refused.csv", "no.csv", "no.2.csv")
    }


def test_only_the_owner_can_read_refused_rows(monkeypatch):
    modes, replace = [], os.replace

    def watched(source, place):
        modes.extend(Path(file).stat().st_mode & 0o777 for file in (source, place))
        replace(source, place)

    monkeypatch.setattr("fairchance.cli.files.tables.os.replace", watched)
    path = refusals([0]).write("in.refused.csv")
    assert [*modes, Path(path).stat().st_mode & 0o777] == [0o600] * 3


def test_concurrent_runs_get_separate_files():
    tables, result = [pa.table({"x": [at]}) for at in range(8)], {}

    def write(at):
        result[at] = write_new_table(tables[at], "no.csv")

    threads = [threading.Thread(target=write, args=(at,)) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(result.values())) == 8
    assert {at: read_table(path)["x"].to_pylist() for at, path in result.items()} == {
        at: [at] for at in range(8)
    }


def test_failed_write_leaves_nothing(monkeypatch, folder):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fairchance.cli.files.tables.os.replace", fail)
    with pytest.raises(InputError, match="No space left on device"):
        refusals([0]).write("in.refused.csv")
    assert [value.name for value in folder.iterdir()] == ["in.csv"]


def test_refused_rows_of_the_next_month_have_their_own_file(folder, monkeypatch):
    monkeypatch.setenv("FAIRCHANCE_LEDGER", f"sqlite:///{folder}/lender.db")
    start(f"sqlite:///{folder}/lender.db", folder, n=200)
    for month, name in enumerate(("applicants.refused.csv", "applicants.2.refused.csv"), 1):
        new = people(30, 1000 * month).drop(columns="outcome").astype({"debt": object})
        new.loc[4, "debt"] = f"{month}.000,00"
        new.to_csv("applicants.csv", index=False)
        output = call("decide", "applicants.csv", "-o", "decisions.csv").stdout
        assert f" {name}:" in output
        assert done("decide", "applicants.csv", "-o", "decisions.csv")["refused"]["file"] == name
        (row,) = pd.read_csv(name, dtype=str).to_dict("records")
        assert (row["id"], row["debt"]) == (f"a{1000 * month + 4:05d}", f"{month}.000,00")
        assert row["income"] == str(new.loc[4, "income"])


DECIDE = ("decide", "applicants.csv", "-o", "decisions.csv", "--batch", "may")


def with_commas(n, of=40):
    """Write applicants, the first of them with a decimal comma in the income."""
    new = apply(of).drop(columns="outcome").astype({"income": str})
    new.loc[: n - 1, "income"] = [f"{at},5" for at in range(n)]
    new.to_csv("applicants.csv", index=False)
    return new


def test_mostly_refused_file_is_not_decided_and_its_name_stays_free(lender):
    with_commas(30)
    head = lender.checkpoint()
    message = refused(*DECIDE)
    for words in ("30 of 40", "--most-refused", "0.5", "'income'", "'0,5'", "(30 rows)"):
        assert words in message
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
        assert f"{n} of 40" in refused(*words)
    assert len(entries(lender, "batch")) == goes_on


@pytest.mark.parametrize("most", ["1.5", "-0.1", "nan"])
def test_the_limit_must_be_a_share(lender, most):
    apply(4)
    words = refused(*DECIDE, "--most-refused", most)
    assert "--most-refused" in words
    assert most in words


def test_applicants_decided_before_do_not_count_as_refused(lender):
    """A corrected file is sent under another name, with all its applicants."""
    with_commas(5)
    assert done(*DECIDE)["people"] == 35
    apply(40)
    assert done(*DECIDE[:-1], "mended")["people"] == 5
    new = pd.concat([people(40, 1000), people(4, 2000)]).drop(columns="outcome")
    new = new.astype({"income": str})
    new.iloc[-3:, 1] = "lots"
    new.to_csv("applicants.csv", index=False)
    message = refused(*DECIDE[:-1], "june")
    assert message.startswith("3 of 4 ")
    assert "'lots' (3 rows)" in message
    assert "40 rows" not in message


def test_a_history_that_is_sent_as_a_batch_is_not_decided(lender):
    """Rows that init refused are unknown, and would be decided if known ones did not count."""
    head = lender.checkpoint()
    pd.concat([people(40), people(15, 5000)]).to_csv("history.csv", index=False)
    message = refused("decide", "history.csv", "-o", "decisions.csv")
    assert message.startswith("40 of 55 ")
    assert "in the history" in message
    assert lender.checkpoint() == head


def test_recorded_batch_is_answered_at_any_share(lender):
    with_commas(30)
    first = done(*DECIDE, "--most-refused", 1)
    again = done(*DECIDE)
    assert again["recorded_before"] is not None
    assert (again["people"], again["refused"]["rows"]) == (first["people"], 30) == (10, 30)


def test_reasons_are_grouped_by_cause(lender):
    new = with_commas(3)
    new.loc[5:6, "income"] = ["lots", "more"]
    new.loc[7, "sex"] = "x"
    new.loc[8, ["sex", "income"]] = ["y", "1,5"]
    new.to_csv("applicants.csv", index=False)
    result = done(*DECIDE)["refused"]
    assert causes(result) == {
        "formatted": 3,
        "not_a_number": 2,
        "unknown_group": 1,
        "unknown_group, formatted": 1,
    }
    first, *_, last = result["causes"]
    assert first["mistakes"] == [
        {"code": "formatted", "column": "income", "value": "0,5", "others": True}
    ]
    assert [one["value"] for one in last["mistakes"]] == ["y", "1,5"]


def test_file_without_usable_rows_gives_the_most_common_reasons(lender):
    new = with_commas(4, of=5)
    new.loc[4, "sex"] = None
    new.to_csv("applicants.csv", index=False)
    message = refused(*DECIDE)
    assert "(4 rows)" in message
    assert "applicants.refused.csv" in message
    head, first, second = call(*DECIDE).stdout.splitlines()
    assert head == "5 rows refused, with the reasons in applicants.refused.csv:"
    assert first.startswith("  4 × 'income' ")
    assert second.startswith("  1 × 'sex' ")


def test_ids_that_were_decided_before_are_named_apart_from_other_reasons(lender):
    apply(20)
    done(*DECIDE)
    new = pd.concat([people(20, 1000), people(1, 2000), people(1, 2000)]).drop(columns="outcome")
    new.to_csv("applicants.csv", index=False)
    message = refused(*DECIDE[:-1], "june")
    assert message.startswith("none of the 22 rows")
    assert "apart from ids that were decided on before, most often because 'id' is in" in message


def test_used_batch_name_writes_no_refused_file(lender):
    apply(20, start=3000)
    done(*DECIDE)
    with_commas(3)
    assert "'may'" in refused(*DECIDE)
    assert not Path("applicants.refused.csv").exists()
    assert done(*DECIDE[:-1], "june")["refused"]["file"] == "applicants.refused.csv"
    assert Path("applicants.refused.csv").exists()


def test_mostly_refused_history_starts_no_program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path}/lender.db"
    Path("program.toml").write_text(PROGRAM.replace("[columns]", '[columns]\nmissing = "refuse"'))
    past = people(200)
    past.loc[:101, "debt"] = None
    past.to_csv("history.csv", index=False)
    words = ("init", "--ledger", url, "--config", "program.toml", "history.csv")
    message = refused(*words)
    assert "\n  102 × 'debt' " in call(*words).stdout
    assert message.startswith("102 of 200 ")
    assert "'debt'" in message
    assert not Path("lender.db").exists()
    Path("program.toml").write_text(PROGRAM)
    assert done(*words)["refused"] == 0


def test_history_with_refused_rows_gives_the_reasons(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("program.toml").write_text(PROGRAM)
    past = people(200).astype({"income": str})
    past.loc[:1, "outcome"] = ["perhaps", "maybe"]
    past.loc[4, "sex"] = None
    past.to_csv("history.csv", index=False)
    url = f"sqlite:///{tmp_path}/lender.db"
    output = call("init", "--ledger", url, "--config", "program.toml", "history.csv").stdout
    lines = [line.split() for line in output.splitlines()]
    for word in ("'perhaps'", "'maybe'"):
        assert any(line[:2] == ["1", "×"] and word in line for line in lines)
    assert any(line[:3] == ["1", "×", "'sex'"] for line in lines)
