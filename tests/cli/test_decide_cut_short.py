"""`secondlook decide` that ends between the record and its file: it answers the same again."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal

import pytest

from cli.lender_files import (
    answer,
    apply,
    call,
    done,
    entries,
    refused,
    start,
)
from secondlook.errors import LedgerError
from secondlook.ledger import Program, verify

FORK = multiprocessing.get_context("fork")


def test_a_disk_that_is_full_after_the_decisions_are_recorded(lender, tmp_path, monkeypatch):
    apply()

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", full)
        sentence = refused("decide", "applicants.csv", "-o", "decisions.csv", "--batch", "may")
    assert "recorded as batch 'may' and only their file is missing" in sentence
    assert "No space left on device" in sentence
    assert "the same command, with another -o if necessary, writes them from the record" in sentence
    assert not (tmp_path / "decisions.csv").exists()
    (entry,) = entries(lender, "batch")
    told = done("decide", "applicants.csv", "-o", "decisions.csv", "--batch", "may")
    assert told["recorded_before"]["at"] == entry.at
    assert len(answer()) == 100


def test_a_ledger_that_is_lost_after_the_decisions_are_recorded(lender, tmp_path, monkeypatch):
    apply()
    words = ["decide", "applicants.csv", "-o", "decisions.csv", "--batch", "may"]

    def lost(*_, **__):
        raise LedgerError("the ledger could not be used (gone); nothing was recorded, call again.")

    with monkeypatch.context() as patch:
        patch.setattr("secondlook.cli.commands.decide._decision_table", lost)
        sentence = refused(*words)
    assert "as batch 'may' and only their file is missing (the ledger could not be used" in sentence
    assert "nothing was recorded" not in sentence
    assert len(entries(lender, "batch")) == 1
    assert not (tmp_path / "decisions.csv").exists()
    with monkeypatch.context() as patch:
        patch.setattr("secondlook.ledger.program.summary_of", lost)
        sentence = refused(*words)
    assert "everything is recorded and only this summary is missing (the ledger could" in sentence
    assert len(answer()) == 100
    assert done(*words)["recorded_before"] is not None


def decide_and_die(moment, *words):
    """Run the command in a process that is killed at a call of a function of ``os``."""

    def die(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    def run():
        setattr(os, moment, die)
        call("decide", *words)

    child = FORK.Process(target=run)
    child.start()
    child.join()
    return child.exitcode


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*fork:RuntimeWarning")
def test_killed_between_the_record_and_the_file_it_answers_the_same(url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    start(url, tmp_path)
    new = apply()
    words = ["applicants.csv", "-o", "decisions.csv", "--ledger", url]
    assert decide_and_die("replace", *words) == -signal.SIGKILL
    assert not (tmp_path / "decisions.csv").exists()
    program = Program.open(url)
    (entry,) = entries(program, "batch")
    with program.ledger.reading("main") as reader:
        recorded = reader.facts(entry).decisions
    head = program.checkpoint()
    told = done("decide", *words)
    assert told["recorded_before"] == {"at": entry.at, "by": entry.by}
    assert program.checkpoint() == head
    got = answer()
    assert got["id"].tolist() == new["id"].tolist()
    assert (got["decision"] == "accept").tolist() == recorded.accepted.tolist()
    assert got["propensity"].tolist() == recorded.propensity.tolist()
    assert verify(program.ledger).ok
