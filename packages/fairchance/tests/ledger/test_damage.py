"""Damaged and foreign databases: ``verify`` finds what the hashes of rows do not show."""

from __future__ import annotations

import io
import sqlite3
import zipfile
from contextlib import closing

import numpy as np
import psycopg
import pytest
from typer.testing import CliRunner

from fairchance.cli.app import app
from fairchance.core.sizes import MOST_UNPACKED
from fairchance.errors import InputError, LedgerError
from fairchance.ledger import Program, SqlLedger, verify
from fairchance.ledger.base import LONGEST_JSON, Facts
from fairchance.ledger.summary import summarise
from ledger_worlds import algorithm_1, started

ENDLESS = "CREATE VIEW {} AS WITH RECURSIVE x AS (SELECT 1 AS n UNION ALL SELECT n FROM x) "
ENDLESS += "SELECT n AS program, n AS entry, n AS person, n AS accepted, '' AS reason FROM x"


def make(url):
    """Return a program after two rounds, with some of the outcomes, and a batch to come."""
    ids = [f"past-{number:03d}" for number in range(600)]
    program, _, batches = started(url, algorithm_1(), n_batch=40, n_rounds=3, ids=ids)
    for number, one in enumerate(batches[:2]):
        ids = np.array([f"round{number}-{at:02d}" for at in range(40)], object)
        decided = program.decide(one.people.X, sensitive_features=one.people.group, ids=ids)
        known = decided.accepted & (np.arange(40) % 3 > 0)
        program.observe(ids[known], one.outcome[known])
    return program, batches[2]


@pytest.fixture(scope="module")
def closed(tmp_path_factory):
    """Return the bytes of a ledger that no process has open, and a batch to come."""
    path = tmp_path_factory.mktemp("whole") / "ledger.db"
    program, batch = make(f"sqlite:///{path}")
    program.ledger.compact()
    return path.read_bytes(), batch


@pytest.fixture
def ledger(closed, tmp_path):
    path = tmp_path / "ledger.db"
    path.write_bytes(closed[0])
    return path


def change(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema=ON")
        for statement in statements:
            connection.execute(statement)


def answers(path, batch):
    """Return what commands answer that look applicants up, decide and record."""
    program = Program.open(f"sqlite:///{path}")
    with program.ledger.reading("main") as reader:
        names = np.array(reader.names(np.arange(reader.people_end())), object)
    found = program.standing(names)
    pending = found.accepted & np.array([state is None for state in found.states])
    program.observe(names[pending], np.ones(int(pending.sum()), int))
    ids = [f"new-{at:02d}" for at in range(40)]
    people = batch.people
    decided = program.decide(people.X, sensitive_features=people.group, ids=ids)
    program.override(ids[:1], not decided.accepted[0], "by hand")
    counts = summarise(program.ledger)
    return (
        names.tolist(),
        found.persons.tolist(),
        found.states,
        decided.accepted.tolist(),
        [(one.round, one.n_people, one.n_explored, one.outcomes) for one in counts.rounds],
    )


def flip(content, bit):
    damaged = bytearray(content)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def check_flips(closed, path, bits):
    """Flip bits one at a time; return how many were found, and check that others change nothing."""
    content, batch = closed
    path.write_bytes(content)
    expected, n_found = answers(path, batch), 0
    for bit in bits:
        for file in path.parent.glob("ledger.db*"):
            file.unlink()
        path.write_bytes(flip(content, int(bit)))
        try:
            found = verify(f"sqlite:///{path}").problem
        except InputError as error:
            found = str(error)
        n_found += found is not None
        if found is None:
            assert answers(path, batch) == expected, bit
    return n_found


def test_a_table_whose_name_is_no_text_is_an_error_of_the_ledger(ledger):
    change(ledger, "UPDATE sqlite_master SET name = x'ff' WHERE name = 'entries'")
    with pytest.raises(LedgerError):
        SqlLedger(f"sqlite:///{ledger}").reading("main").__enter__()
    assert CliRunner().invoke(app, ["status", f"sqlite:///{ledger}"]).exit_code == 2


def test_flips_in_the_names_of_an_index_are_found(closed, tmp_path):
    content = closed[0]
    places = []
    for name in (b"past-311", b"round0-07", b"round1-33"):
        at = content.find(name)
        while at >= 0:
            places.append(8 * (at + 4))
            at = content.find(name, at + 1)
    assert len(places) >= 6  # each in the table and in the index
    assert check_flips(closed, tmp_path / "ledger.db", places) == len(places)


def test_no_random_flip_goes_unnoticed_and_changes_an_answer(closed, tmp_path):
    bits = np.random.default_rng(1).integers(len(closed[0]) * 8, size=10)
    writable = 8 * 18  # the format for writing: with a 3 there, SQLite only reads
    n = check_flips(closed, tmp_path / "ledger.db", [writable, *bits])
    assert n > 5


@pytest.mark.long
def test_no_flip_goes_unnoticed_and_changes_an_answer(closed, tmp_path):
    rng = np.random.default_rng(2)
    header = 8 * np.arange(100) + rng.integers(8, size=100)  # a bit of each byte
    bits = [*header, *rng.integers(len(closed[0]) * 8, size=300)]
    assert check_flips(closed, tmp_path / "ledger.db", bits) > 150


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        (["CREATE TRIGGER t AFTER INSERT ON outcomes BEGIN DELETE FROM erasures; END"], "trigger"),
        (["CREATE VIEW v AS SELECT * FROM people"], "the view 'v'"),
        (["CREATE TABLE notes (words TEXT)"], "the table 'notes'"),
        (["CREATE INDEX more ON people (round)"], "the index 'more'"),
        (["DROP INDEX outcomes_by_person"], "the index 'outcomes_by_person'"),
        (["DROP TABLE erasures"], "the table 'erasures'"),
        (["DROP TABLE overrides", ENDLESS.format("overrides")], "the view 'overrides'"),
        (["DROP TABLE alembic_version", ENDLESS.format("alembic_version")], "'alembic_version'"),
        (
            ["UPDATE sqlite_master SET sql = replace(sql, 'score DOUBLE', 'score TEXT')"],
            "the table 'people'",
        ),
    ],
)
def test_another_schema_is_found_before_anything_is_read(ledger, statements, words):
    change(ledger, *statements)
    url = f"sqlite:///{ledger}"
    with pytest.raises(LedgerError, match=words) as refused:
        SqlLedger(url)
    found = verify(url)
    assert (found.n_entries, found.problem) == (0, str(refused.value))
    for command in (["status"], ["report"], ["export"], ["verify"]):
        code = CliRunner().invoke(app, [*command, "--ledger", url]).exit_code
        assert code == (4 if command == ["verify"] else 2)


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("CREATE INDEX more ON people (round)", "remove index"),
        ("DROP INDEX outcomes_by_person", "add index"),
        ("ALTER TABLE people ALTER score TYPE numeric", "modify type"),
        ("ALTER TABLE people ADD extra integer", "remove column"),
        ("CREATE RULE r AS ON DELETE TO erasures DO INSTEAD NOTHING", "erasures has the rule r"),
        ("CREATE POLICY p ON people USING (round > 1)", "people has the policy p"),
        (
            "CREATE TRIGGER t BEFORE UPDATE ON people "
            "EXECUTE FUNCTION suppress_redundant_updates_trigger()",
            "people has the trigger t",
        ),
    ],
)
def test_another_schema_on_a_server_is_found(url, statement, words):
    ledger = SqlLedger(url, make=True)
    with ledger.creating("main") as writer:
        writer.append("program", {}, Facts(), by="t")
    assert ledger.own_check()[0] is None
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)
    assert words in ledger.own_check()[0]


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_server_checks_its_indexes_where_it_can(url):
    program, _ = make(url)
    assert "amcheck" in verify(url).not_checked
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE overrides")
        connection.execute(ENDLESS.format("overrides"))
    for read in (SqlLedger, lambda url: Program.open(url, load=False).about):
        with pytest.raises(LedgerError, match="'overrides'"):
            read(url)
    assert not verify(url).ok
    assert program.ledger.own_check()[0] is not None


def test_reading_writes_nothing(ledger, monkeypatch):
    change(ledger, "PRAGMA journal_mode=DELETE")  # a ledger that a program opens is in another mode
    before, url = ledger.read_bytes(), f"sqlite:///{ledger}"
    monkeypatch.chdir(ledger.parent)
    for command in (["verify"], ["status"], ["export"], ["report", "-o", "r.html"]):
        assert CliRunner().invoke(app, [*command, "--ledger", url]).exit_code == 0
        assert ledger.read_bytes() == before
        assert [*ledger.parent.glob("ledger.db?*")] == []
    with SqlLedger(url).reading("main") as reader, pytest.raises(sqlite3.Error, match="readonly"):
        reader._connection.connection.execute("DELETE FROM outcomes")
    with SqlLedger(url).engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA trusted_schema").scalar() == 0


def test_a_header_has_a_largest_size(ledger):
    url = f"sqlite:///{ledger}"
    program = Program.open(url)
    with (
        pytest.raises(InputError, match=r"16,777,216 .* 16,777,2"),
        program.ledger.writing("main") as writer,
    ):
        writer.append("hold", {"note": "x" * LONGEST_JSON}, Facts(), by="t")
    long = f"""UPDATE entries SET header = '[' || printf('%0{LONGEST_JSON}d', 0) || ']'"""
    change(ledger, f"{long} WHERE number = 1")
    with pytest.raises(LedgerError, match="16,777,216"):
        Program.open(url)
    with pytest.raises(LedgerError, match="16,777,216"):
        summarise(SqlLedger(url))
    assert not verify(url).ok


def test_a_state_does_not_unpack_to_gigabytes(ledger):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("manifest.json", bytes(MOST_UNPACKED + 1))
    with closing(sqlite3.connect(ledger, isolation_level=None)) as connection:
        connection.execute("UPDATE payloads SET content = ?", (buffer.getvalue(),))
    with pytest.raises(InputError, match="268,4"):
        Program.open(f"sqlite:///{ledger}")
    assert "payload" in verify(f"sqlite:///{ledger}").problem
