"""Programs move to another ledger whole or not at all, and live in one place."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from crashing import FORK
from fairchance.errors import InputError, LedgerError, UnavailableError
from fairchance.ledger import Program, SqlLedger, schema, verify
from fairchance.ledger import move as moving
from fairchance.ledger.alerts import Receiver, notify
from fairchance.ledger.base import Facts
from fairchance.ledger.health import check_health
from fairchance.ledger.move import move
from fairchance.ledger.sql import Writer
from kept.write import applicants, record
from ledger_worlds import same

NAMES = ["certified", "plain"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a file with two programs that have one of everything, and a round that was open."""
    path = tmp_path_factory.mktemp("move") / "ledger.db"
    record(f"sqlite:///{path}")
    program = Program.open(f"sqlite:///{path}", "certified")
    program.open_round()
    X, group, _ = applicants(4)
    for rows in np.array_split(np.arange(len(X)), 4):
        program.decide(X[rows], ids=rows + 10**6, sensitive_features=group[rows])
    program.close_round()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


@pytest.fixture
def source(made, tmp_path):
    """Return the URL of a copy."""
    return f"sqlite:///{shutil.copy(made, tmp_path / 'source.db')}"


def rows(url, program):
    """Return all that a ledger holds of a program, by table."""
    with SqlLedger(url).reading(program) as reader:
        return {
            table.name: [
                row
                for part in reader.rows_of(table, 50)
                for row in zip(*part.values(), strict=True)
            ]
            for table in schema.metadata.sorted_tables[1:]
        }


def last_entry(url, program="certified"):
    with SqlLedger(url).reading(program) as reader:
        return reader.last_entry()


def kinds(url, program):
    with SqlLedger(url).reading(program) as reader:
        return [entry.kind for entry in reader.entries()]


def test_programs_move_to_the_other_database_and_back_with_their_proof(
    source, new_database, tmp_path, monkeypatch
):
    monkeypatch.setattr(moving, "_PART", 7)
    twin = f"sqlite:///{shutil.copy(tmp_path / 'source.db', tmp_path / 'twin.db')}"
    there, back = new_database(), f"sqlite:///{tmp_path}/back.db"
    before = {name: rows(source, name) for name in NAMES}
    checkpoints = {name: str(Program.open(source, name).checkpoint()) for name in NAMES}
    found = [*move(source, there, by="ann"), *move(there, back, by="ann")]
    assert [one.program for one in found] == 2 * NAMES
    for n_moves, url in enumerate((source, there, back)):
        for name in NAMES:
            now, was = rows(url, name), before[name]
            assert now["entries"][: len(was["entries"])] == was["entries"]
            assert {**now, "entries": 0} == {**was, "entries": 0}
            moves = ["move"] * min(2 * n_moves + 1, 4)
            assert kinds(url, name)[len(was["entries"]) :] == moves
            proof = verify(url, name, checkpoint=checkpoints[name], relearn=True)
            assert proof.problem is None
            assert proof.n_decisions >= 30
    for name in NAMES:
        X, group, _ = applicants(3)
        ids = np.arange(len(X)) + 10**7
        answers = [
            Program.open(url, name).decide(X, ids=ids, sensitive_features=group)
            for url in (twin, back)
        ]
        assert same(*answers)
        assert verify(back, name).problem is None
        for url in (source, there):
            with pytest.raises(LedgerError, match=r"was moved to .* by 'ann'"):
                Program.open(url, name).decide(X, ids=ids, sensitive_features=group)


def test_the_original_answers_and_refuses_to_be_written(source, tmp_path):
    opened = Program.open(source, "certified")
    list(move(source, f"sqlite:///{tmp_path}/x.db", "certified"))
    n = len(kinds(source, "certified"))
    with SqlLedger(source).reading("certified") as reader:
        key = next(entry.key for entry in reader.entries(kind="batch"))
    X, group, _ = applicants(1)
    ids = np.array([5])
    for program in (opened, Program.open(source, "certified")):
        recorded = program.decide(X, sensitive_features=group, batch=key)
        assert recorded.round == 1
        for call in (
            lambda p: p.decide(X, sensitive_features=group),
            lambda p: p.open_round(),
            lambda p: p.hold(ids, "why"),
            lambda p: p.erase(ids, "why", early=True),
            lambda p: p.snapshot(),
        ):
            with pytest.raises(LedgerError, match=r"was moved to sqlite:///.*x\.db"):
                call(program)
    assert len(kinds(source, "certified")) == n
    found, summary = verify(source, "certified"), opened.summary()
    assert (found.problem, found.moved) == (None, last_entry(source))
    first = check_health(summary)[0]
    assert (first.question, first.finding, first.light) == ("record", "moved", "red")
    assert first.facts["to"] == found.moved.moved_to == summary.moved.says["to"]
    with pytest.raises(UnavailableError, match="was moved to"):  # before the receiver is told
        notify(opened.ledger, summary, Receiver("http://127.0.0.1:9", b"s" * 24))
    there = Program.open(f"sqlite:///{tmp_path}/x.db")
    assert verify(there.ledger).moved is there.summary().moved is None
    Program.open(source, "plain").snapshot()  # it was not moved


def test_a_second_move_finds_the_first_and_a_third_place_is_refused(source, tmp_path):
    target, third = f"sqlite:///{tmp_path}/x.db", f"sqlite:///{tmp_path}/third.db"
    (first,) = move(source, target, "plain")
    (again,) = move(source, target, "plain")
    assert (first.before, again.before) == (False, True)
    assert (first.head, first.n_people) == (again.head, again.n_people)
    with pytest.raises(LedgerError, match="was moved to"):
        list(move(source, third, "plain"))
    assert SqlLedger(third).programs() == []
    Program.open(target, "plain").snapshot()
    assert next(move(source, target, "plain")).before  # a longer chain is still its copy


def test_what_cannot_be_moved_stays_as_it_is(source, tmp_path):
    target = f"sqlite:///{tmp_path}/x.db"
    with pytest.raises(InputError, match="has a program 'certified' already"):
        list(move(source, source))
    program = Program.open(source, "certified")
    program.open_round()
    with pytest.raises(LedgerError, match="round 4 of program 'certified' is open"):
        list(move(source, target))
    program.close_round()
    assert not (tmp_path / "x.db").exists()
    other = SqlLedger(target, make=True)
    with other.creating("plain") as writer:
        writer.append("program", {}, Facts(), by="t")
    with pytest.raises(InputError, match="has a program 'plain' already"):
        list(move(source, target, "plain"))
    assert "move" not in kinds(source, "plain")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE people SET accepted = 1 - accepted WHERE person = 125",
        "UPDATE group_values SET salt = zeroblob(16) WHERE person = 3",
        "UPDATE payloads SET content = x'00' WHERE entry = 1",
        "DELETE FROM outcomes WHERE person = (SELECT max(person) FROM outcomes WHERE program = 2)",
        "UPDATE entries SET at = '2020-01-01T00:00:00+00:00' WHERE number = 4",
        "UPDATE rounds SET closed = opened",
    ],
)
def test_a_record_that_was_changed_is_not_moved(source, tmp_path, change):
    with closing(sqlite3.connect(tmp_path / "source.db")) as connection, connection:
        connection.execute("PRAGMA foreign_keys=OFF")
        assert connection.execute(change).rowcount
    target = f"sqlite:///{tmp_path}/x.db"
    with pytest.raises(LedgerError, match="'certified' was not moved"):
        list(move(source, target))
    assert "move" not in kinds(source, "certified")
    assert SqlLedger(target).programs() == []


def _die(after, function):
    """Return a function that ends the process after so many calls."""
    calls = iter(range(after))

    def dying(*given, **options):
        if next(calls, None) is None:
            os._exit(9)
        return function(*given, **options)

    return dying


def _move_and_die(source, target, where, after):
    owner, name = {
        "rows": (Writer, "add_rows"),
        "entries": (Writer, "append"),
        "checks": (moving, "_check_copy"),
    }[where]
    setattr(owner, name, _die(after, getattr(owner, name)))
    list(move(source, target, "plain"))


# Before and in the middle of copying, before the check, before the original is closed, and after
# that before the copy appears.
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize(
    ("where", "after"),
    [("rows", 0), ("rows", 20), ("rows", 38), ("checks", 0), ("entries", 0), ("entries", 1)],
)
def test_an_interrupted_move_leaves_one_program_and_can_be_repeated(source, url, where, after):
    child = FORK.Process(target=_move_and_die, args=(source, url, where, after))
    child.start()
    child.join()
    assert child.exitcode == 9
    assert "plain" not in SqlLedger(url, make=True).programs()
    is_closed = "move" in kinds(source, "plain")
    assert is_closed == ((where, after) == ("entries", 1))
    if not is_closed:
        Program.open(source, "plain").snapshot()
    (found,) = move(source, url, "plain")
    assert not found.before
    assert kinds(url, "plain")[-2:] == ["move", "move"]
    assert kinds(source, "plain").count("move") == 1
    assert verify(url, "plain", relearn=True).problem is None
    Program.open(url, "plain").snapshot()
