"""Files of any size: decided piece by piece in one round, and never in memory as a whole."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from cli.lender_files import CERTIFIED, call, causes, done, entries, people, refused, start
from fairchance.cli import in_pieces as command
from fairchance.cli.files import export_tables
from fairchance.ledger import Program, decision_log, sql, summary, verify
from fairchance.methods import closing
from fairchance.people.intake import Intake

N, PIECE, HISTORY = 230, 40, 400
DECIDE = ("decide", "people/*.parquet", "-o", "decisions/")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lender")
    start(f"sqlite:///{folder}/lender.db", folder, CERTIFIED, HISTORY)
    write(people(N, 1000), folder)
    return folder


@pytest.fixture
def lender_in(made, tmp_path, monkeypatch):
    """Return a function that copies a program with three files of applicants to a new folder."""

    def copy(name):
        folder = tmp_path / name
        folder.mkdir()
        for file in made.glob("lender.db*"):
            shutil.copy(file, folder)
        shutil.copytree(made / "people", folder / "people")
        monkeypatch.chdir(folder)
        monkeypatch.setenv("FAIRCHANCE_LEDGER", f"sqlite:///{folder}/lender.db")
        return Program.open(f"sqlite:///{folder}/lender.db")

    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(command, "PIECE", PIECE)
    monkeypatch.setattr("fairchance.cli.files.pieces.PIECE", PIECE)
    return copy


@pytest.fixture
def lender(lender_in):
    return lender_in("one")


def write(applicants, folder, n_files=3):
    (folder / "people").mkdir(exist_ok=True)
    for at, rows in enumerate(np.array_split(np.arange(len(applicants)), n_files)):
        part = applicants.iloc[rows].drop(columns="outcome", errors="ignore")
        part.to_parquet(folder / f"people/{at}.parquet", index=False)
    return applicants


def read(folder="decisions"):
    return {file.name: file.read_bytes() for file in sorted(Path(folder).iterdir())}


def tell(applicants, ids, name="outcomes.csv"):
    applicants[applicants["id"].isin(ids)][["id", "outcome"]].to_csv(name, index=False)
    return done("observe", name)


def in_rounds(rows, *_):
    """Return how many rows are features of applicants who came after the history."""
    return sum(person >= HISTORY for person in rows["person"]) if "numbers" in rows else 0


def small_parts(monkeypatch):
    """Let every step use small parts; return the largest number of applicants that one held."""
    sizes = []

    def noted(owner, name, size_of):
        original = getattr(owner, name)

        def method(self, *args, **kwargs):
            answer = original(self, *args, **kwargs)
            sizes.append(size_of(answer, *args))
            return answer

        monkeypatch.setattr(owner, name, method)

    monkeypatch.setattr(sql, "PART", PIECE)
    monkeypatch.setattr(closing, "PIECE", PIECE)
    monkeypatch.setattr(summary, "_PART", PIECE)
    monkeypatch.setattr(export_tables, "_ROWS", PIECE)
    monkeypatch.setattr(decision_log, "_ROWS", PIECE)
    noted(sql.LedgerReader, "_columns", in_rounds)
    noted(Intake, "join", lambda batch, *_: len(batch))
    return sizes


def test_files_are_decided_in_one_round(lender, monkeypatch):
    applicants, sizes = people(N, 1000), small_parts(monkeypatch)
    result = done(*DECIDE)
    assert (result["people"], result["files"], result["rounds"]) == (N, 3, [1])
    (opened,) = entries(lender, "round")
    assert opened.says["expected"] == N
    policy = Program.open(os.environ["FAIRCHANCE_LEDGER"]).policy()
    whole = policy.decide(
        applicants[["income", "debt"]], ids=applicants["id"], sensitive_features=applicants["sex"]
    )
    table = pd.concat(map(pd.read_parquet, sorted(Path("decisions").glob("*"))))
    assert table["id"].tolist() == applicants["id"].tolist()
    assert (table["decision"] == "accept").tolist() == whole.accepted.tolist()
    np.testing.assert_allclose(table["propensity"], whole.propensity, 1e-12)
    assert result["accepted"] == whole.accepted.sum()
    assert result["explored"] == whole.explored.sum()
    assert not result["closed"]

    # Nothing after it holds all applicants at once.
    assert done("round", "close")["open"] is None
    told = tell(applicants, table["id"][table["decision"] == "accept"])
    assert sum(told["recorded"].values()) == result["accepted"]
    for words in (("status",), ("report", "--out", "r.html"), ("export", "-o", "all.parquet")):
        assert call(*words).exit_code == 0
    assert done("verify")["decisions"] == N
    assert verify(lender.ledger, relearn=True).ok
    assert pd.read_parquet("all.parquet")["id"].tolist() == applicants["id"].tolist()
    assert 20 < max(sizes) <= PIECE


def test_the_same_command_again_changes_nothing(lender):
    first = done(*DECIDE, "--close")
    assert first["closed"]
    before, n = read(), lender.checkpoint().number
    again = done(*DECIDE, "--close")
    assert (again["there_before"], again["accepted"]) == (3, first["accepted"])
    assert (read(), lender.checkpoint().number) == (before, n)
    shutil.rmtree("decisions")  # its round is closed, so these are applicants of an earlier round
    assert "decided on in round 1" in call(*DECIDE).stderr
    assert lender.checkpoint().number == n
    assert verify(lender.ledger).ok


def test_an_interrupted_command_continues(lender_in, monkeypatch):
    lender_in("whole")
    done(*DECIDE)
    expected = read()
    program, calls, original = lender_in("interrupted"), [], Program.decide_in_round

    def interrupted(self, *args, **kwargs):
        calls.append(len(kwargs["ids"]))
        if len(calls) in (1, 3, 5):
            raise KeyboardInterrupt
        return original(self, *args, **kwargs)

    monkeypatch.setattr(Program, "decide_in_round", interrupted)
    assert [call(*DECIDE).exit_code for _ in range(4)] == [130, 130, 130, 0]
    assert read() == expected  # and no other file is left
    assert program.summary().open_round.n_people == N
    assert len(entries(program, "round")) == 1


@pytest.mark.parametrize("last", [2, 3])
def test_a_round_that_ends_inside_a_file_loses_no_row(lender, monkeypatch, last):
    """Another process closes it, and then the command is interrupted and given again."""
    calls, original = [], Program.decide_in_round

    def closed(self, *args, **kwargs):
        calls.append(1)
        if len(calls) == last:
            done("round", "close")
        if len(calls) == 5:
            raise KeyboardInterrupt
        return original(self, *args, **kwargs)

    monkeypatch.setattr(Program, "decide_in_round", closed)
    assert call(*DECIDE).exit_code == 130
    done("round", "close")
    result = done(*DECIDE)
    assert (result["people"], result["refused"]["rows"]) == (N, 0)
    table = pd.concat(map(pd.read_parquet, sorted(Path("decisions").glob("*"))))
    assert table["id"].tolist() == people(N, 1000)["id"].tolist()
    recorded = lender.standing(table["id"])
    assert recorded.round.tolist() == table["round"].tolist()
    assert recorded.accepted.tolist() == (table["decision"] == "accept").tolist()
    assert len(entries(lender, "round")) == 3
    assert not list(Path("decisions").glob(".*"))
    assert verify(lender.ledger).ok


KILLED = """
import os, signal, sys
from fairchance.__main__ import main
from fairchance.cli import in_pieces
from fairchance.ledger.sql import SqlLedger

in_pieces.PIECE = {piece}
calls, original = [], SqlLedger.record_in_round

def record(self, *args):
    receipts = original(self, *args)
    calls.append(1)
    if len(calls) == {last}:
        os.kill(os.getpid(), signal.SIGKILL)
    return receipts

SqlLedger.record_in_round = record
sys.argv = ["fairchance", *{words}]
main()
"""


@pytest.mark.parametrize("last", [1, 3])
def test_a_killed_command_continues(lender_in, last):
    """It dies after rows are durable, and before they are in a file."""
    lender_in("whole")
    done(*DECIDE)
    expected = read()
    program = lender_in("killed")
    code = KILLED.format(piece=PIECE, last=last, words=DECIDE)
    died = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert died.returncode == -signal.SIGKILL
    assert program.summary().open_round.n_people >= PIECE * last - PIECE // 2
    assert {name: file for name, file in read().items() if not name.startswith(".")} != expected
    assert done(*DECIDE)["people"] == N
    assert {name: file for name, file in read().items() if not name.startswith(".")} == expected
    assert verify(program.ledger).ok


def test_outcomes_and_erasures_come_while_a_round_is_open(lender):
    applicants = people(N, 1000)
    files = sorted(map(str, Path("people").iterdir()))
    done("decide", files[0], "-o", "decisions/")
    first = pd.read_parquet("decisions/0.parquet")
    tell(applicants, first["id"][first["decision"] == "accept"])
    done("decide", *files, "-o", "decisions/")
    gone = first["id"][first["decision"] == "reject"].iloc[0]
    done("erase", "--id", gone, "--early", "--reason", "asked for it", "--yes")  # closes the round
    (batch,) = entries(lender, "batch")
    assert batch.says["rows"]["n"] == N
    table = pd.concat(map(pd.read_parquet, sorted(Path("decisions").glob("*"))))
    tell(applicants, table["id"][table["decision"] == "accept"])
    assert lender.classifier.awaited_ == ()
    assert verify(lender.ledger).ok


@pytest.mark.parametrize("at", [0, 5])
def test_decisions_on_erased_applicants_stay_in_their_files(lender, at):
    done(*DECIDE, "--close")
    gone = pd.read_parquet("decisions/0.parquet")["id"].iloc[at]
    done("erase", "--id", gone, "--early", "--reason", "asked for it", "--yes")
    people(60, 9000).drop(columns="outcome").to_parquet("people/3.parquet", index=False)
    result = done(*DECIDE)
    assert (result["people"], result["there_before"]) == (N + 60, 3)


def test_refused_rows_are_beside_the_decisions(lender):
    applicants = people(60, 5000)
    applicants.loc[[3, 50], "sex"] = None
    applicants.loc[7, "id"] = applicants.loc[9, "id"]
    applicants.loc[59, "id"] = applicants.loc[0, "id"]  # another piece, with other values
    shutil.rmtree("people")
    write(applicants, Path(), 1)
    result = done(*DECIDE)
    expected = {"no_group": 2, "twice": 2, "other_content": 1}
    assert causes(result["refused"]) == expected
    table = pd.read_csv("decisions/0.refused.csv")
    assert table["id"].tolist() == applicants["id"].iloc[[3, 7, 9, 50, 59]].tolist()
    assert result["people"] == 55
    assert "row 4 " in refused(*DECIDE[:3], "strict/", "--strict")
    applicants["sex"] = applicants["sex"].where(applicants.index < 40)
    shutil.rmtree("people")
    write(applicants.assign(id=applicants["id"] + "b").drop(index=[7, 59]), Path(), 1)
    result = call("decide", "people", "-o", "more/")
    assert result.exit_code == 2
    assert "from row 41 on" in result.stderr
    assert len(pd.read_csv("more/0.refused.csv")) == 20


def test_a_piece_that_is_unlike_the_history_stops_the_command(lender):
    applicants = people(N, 1000)
    applicants.loc[applicants.index[100:150], "income"] = 1e9
    write(applicants, Path())
    message = refused(*DECIDE)
    assert "rows 1 and on of 1.parquet" in message
    assert "--unlike-history" in message
    assert lender.summary().open_round.n_people == 77
    assert done(*DECIDE, "--unlike-history")["people"] == N


def test_files_of_several_kinds_and_names(lender):
    applicants = people(90, 7000).drop(columns="outcome")
    applicants.iloc[:50].to_csv("people/a.csv", index=False)
    applicants.iloc[50:].to_parquet("people/b.parquet", index=False)
    result = done("decide", "people/a.csv", "people/b.parquet", "-o", "some/")
    assert result["people"] == 90
    assert sorted(os.listdir("some")) == ["a.parquet", "b.parquet"]
    assert pq.read_schema("some/a.parquet").names == pq.read_schema("some/b.parquet").names
    assert done("decide", "people", "-o", "decisions/")["files"] == 5


def test_what_cannot_be_decided_in_pieces(lender):
    for words, message in (
        (("people/*.parquet", "-o", "decisions.csv"), "into a folder"),
        (("people", "-o", "decisions.csv"), "into a folder"),
        (("people/0.parquet", "people/1.parquet", "-o", "d.csv"), "into a folder"),
        (("nothing/*.parquet", "-o", "decisions/"), "names no file"),
        (("people", "-o", "people/"), "would replace the input"),
        (("people", "-o", "decisions/", "--batch", "may"), "--batch"),
        (("people", "-o", "decisions/", "--refused", "no.csv"), "--refused"),
        (("people/0.parquet", "-o", "decisions.csv", "--close"), "--close"),
    ):
        assert message in refused("decide", *words)
    shutil.copytree("people", "more")
    assert "two of the files" in refused("decide", "people", "more", "-o", "decisions/")
    assert entries(lender, "round") == []
    done(*DECIDE)
    write(people(N, 9000), Path())
    assert "another file" in refused(*DECIDE)


def test_an_older_copy_of_the_ledger_is_noticed(lender):
    shutil.copy("lender.db", "older.db")
    done(*DECIDE)
    shutil.copy("older.db", "lender.db")
    for rest in Path().glob("lender.db-*"):
        rest.unlink()
    assert "older copy" in refused(*DECIDE)


def test_a_draw_of_fixed_size_needs_the_whole_batch(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAIRCHANCE_LEDGER", f"sqlite:///{tmp_path}/lender.db")
    start(f"sqlite:///{tmp_path}/lender.db", tmp_path)
    write(people(60, 1000), tmp_path)
    assert "whole batches" in refused(*DECIDE)


def test_rounds_by_number_end_as_configured(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAIRCHANCE_LEDGER", f"sqlite:///{tmp_path}/lender.db")
    monkeypatch.setattr(command, "PIECE", PIECE)
    start(f"sqlite:///{tmp_path}/lender.db", tmp_path, CERTIFIED + "[rounds]\nat_most = 100\n")
    write(people(N, 1000), tmp_path)
    result = done(*DECIDE)
    assert result["people"] == N
    assert len(result["rounds"]) > 1
    assert verify(Program.open(f"sqlite:///{tmp_path}/lender.db").ledger).ok


def test_what_the_command_prints(lender, golden):
    lines = []
    for words in (DECIDE, (*DECIDE, "--close")):
        result = call(*words)
        lines += [f"$ fairchance {' '.join(words)}", *result.stdout.splitlines()]
    golden("pieces", "\n".join(lines) + "\n", ranked=True)
