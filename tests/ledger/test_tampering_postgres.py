"""Whatever is changed in a ledger on PostgreSQL is found and named, as on SQLite."""

from __future__ import annotations

from contextlib import closing
from dataclasses import fields

import numpy as np
import psycopg
import pytest
import sqlalchemy as sa

from ledger_worlds import algorithm_1, started
from secondlook.errors import LedgerError
from secondlook.ledger import SqlLedger, schema, verify
from secondlook.ledger.base import DecisionRows, Facts

COLUMNS = [(table, column) for table in schema.metadata.sorted_tables for column in table.c]
DECIDED = {one.name for one in fields(DecisionRows)}
PERSON = 620  # of the first batch, behind a history of 600


def place(server, name):
    return server.get_uri().replace("/postgres?", f"/{name}?")


@pytest.fixture(scope="module")
def whole(postgres):
    """Return a database in which everything has happened, and numbers of entries in it."""
    name = "whole"
    with closing(psycopg.connect(postgres.get_uri(), autocommit=True)) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    program, _, (one, two, *_) = started(place(postgres, name), algorithm_1(), n_batch=60)
    decided = program.decide(one.people.X, sensitive_features=one.people.group, batch="b1")
    yes, good = decided.ids[decided.accepted], one.outcome[decided.accepted]
    program.observe(yes[2:], good[2:])
    program.observe(yes[2:3], 1 - good[2:3])
    program.override(yes[:1], False, "fraud was found")
    program.snapshot()
    program.decide(two.people.X, sensitive_features=two.people.group, batch="b2")
    with program.ledger.writing("main") as writer:
        last = writer.n_people() - 1
        writer.append("erasure", {"why": "asked"}, Facts(erased=np.array([last])), by="t")
        numbers = {"batch": writer.entry("batch", "b1").number}
        numbers["told"] = next(writer.entries(kind="outcomes")).number
    program.ledger.close()
    return name, numbers


@pytest.fixture
def tampered(postgres, whole):
    """Return a function that runs SQL on a copy of the ledger and verifies it."""
    name, numbers = whole
    copy = f"copy_of_{name}"
    with closing(psycopg.connect(postgres.get_uri(), autocommit=True)) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {copy} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {copy} TEMPLATE {name}")

    def run(statement=None):
        if statement is not None:
            with psycopg.connect(place(postgres, copy)) as connection:
                # Whoever owns the database can pass by its keys.
                connection.execute("SET session_replication_role = replica")
                assert connection.execute(statement.format(**numbers)).rowcount > 0
        return verify(SqlLedger(place(postgres, copy)))

    return run


def changed(column):
    """Return SQL for another value of a column."""
    match column.type:
        case sa.LargeBinary():
            return f"substr(coalesce({column.name}, ''), 2) || '\\x00'::bytea"
        case sa.Text():
            return f"""coalesce("{column.name}", '') || ' '"""
        case sa.Boolean():
            return f"NOT {column.name}"
        case sa.Double():
            return f"{column.name} + 1e-12"
        case _:
            return f"{column.name} + 100000"


def rows_of(table, batch):
    """Return SQL for the rows to change, and the entry that covers them."""
    if table.name in ("people", "group_values"):
        return f"person = {PERSON}", batch
    if table.name == "entries":
        return "number = 3", 3
    if table.name == "payloads":
        return "entry = 1", 1
    first = f"SELECT min(entry) FROM {table.name} WHERE entry > 2"
    return f"entry = ({first}) AND person = (SELECT min(person) FROM {table.name} " + (
        f"WHERE entry = ({first}))"
    ), None


def test_the_copy_of_an_honest_ledger_verifies(tampered):
    found = tampered()
    assert found.problem is None
    assert found.n_decisions + found.n_not_repeated == 120


@pytest.mark.parametrize(("table", "column"), COLUMNS, ids=str)
def test_a_changed_value_is_found_and_located(tampered, whole, table, column):
    if table.name == "programs":
        # No entry can say it: the program goes by another name, or has lost what it owns.
        if column.name == "name":
            with pytest.raises(LedgerError, match="no program called 'main'"):
                tampered("UPDATE programs SET name = name || ' '")
        else:
            found = tampered("UPDATE programs SET program = program + 100000")
            assert found.problem == "the program has no entries."
        return
    where, entry = rows_of(table, whole[1]["batch"])
    new = changed(column)
    found = tampered(f'UPDATE {table.name} SET "{column.name}" = {new} WHERE {where}')
    assert found.problem is not None
    if entry is not None:
        assert found.problem.startswith(f"entry {entry} ")
    else:
        assert found.problem.startswith("entry ")
    if table.name in ("people", "group_values") and column.name not in ("program", "person"):
        assert located(table, column) in found.problem


def located(table, column):
    """Return what is said of another value of a person, whose application is called so too."""
    name = f"application '{PERSON}' (person {PERSON})"
    if column.name in DECIDED:
        what = "region" if column.name == "exploit" else column.name
        return f"rows of decisions were changed: the {what} of {name} was "
    if column.name == "application":
        return f"person {PERSON}, now called '{PERSON} ', was changed"
    if table.name == "people" and column.name == "digest":
        return f"the hash of {name} was changed"
    if table.name == "group_values" and column.name == "value":
        return f"the group value of {name} was "
    return f"person {PERSON}, now called '{PERSON}', was changed"


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (f"DELETE FROM people WHERE person = {PERSON}", "people are missing or too many: 59 of 60"),
        (f"DELETE FROM group_values WHERE person = {PERSON}", "missing or too many: 59 of 60"),
        ("DELETE FROM outcomes WHERE entry = {told}", "rows of outcomes were changed"),
        ("DELETE FROM overrides", "rows of overrides were changed"),
        ("DELETE FROM erasures", "lacks data, and no erasure says so"),
        ("DELETE FROM payloads WHERE entry = 1", "rows of payloads were changed"),
        ("DELETE FROM entries WHERE number = 5", "entry 5 is missing: 6 comes next"),
        (
            f"UPDATE people SET application = NULL, numbers = NULL, salt = NULL "
            f"WHERE person = {PERSON}",
            f"person {PERSON} lacks data, and no erasure says so",
        ),
        (
            f"INSERT INTO people SELECT program, 90000, 'x', numbers, texts, salt, digest, round, "
            f"accepted, exploit, score, propensity, threshold, fold, reasons FROM people "
            f"WHERE person = {PERSON}",
            "there are 721 rows of people, and the entries cover 720",
        ),
        (
            f"INSERT INTO overrides SELECT program, 999, {PERSON}, true, 'forged' FROM programs",
            "there are 2 rows of overrides, and the entries cover 1",
        ),
        (
            f"INSERT INTO outcomes SELECT program, 999, {PERSON}, 'good' FROM programs",
            "rows of outcomes, and the entries cover",
        ),
        (
            f"INSERT INTO erasures SELECT program, 999, {PERSON} FROM programs",
            "there are 2 rows of erasures, and the entries cover 1",
        ),
        (
            "INSERT INTO payloads SELECT program, 999, content, digest FROM payloads LIMIT 1",
            "rows of payloads, and the entries cover",
        ),
        (
            "INSERT INTO payloads SELECT program, 999, NULL, digest FROM payloads LIMIT 1",
            "rows of payloads, and the entries cover",
        ),
    ],
)
def test_what_is_missing_or_too_much_is_found(tampered, statement, words):
    found = tampered(statement)
    assert found.problem is not None
    assert words in found.problem


@pytest.mark.parametrize("column", ["score", "propensity", "threshold"])
def test_nan_in_the_place_of_nothing_is_found(tampered, column):
    changed = f"UPDATE people SET {column} = 'NaN' WHERE person = 0 AND {column} IS NULL"
    assert "hold what cannot be there (a number is NaN)" in tampered(changed).problem


def test_who_may_not_read_is_told_so_and_not_of_tampering(postgres, whole):
    name, _ = whole
    with closing(psycopg.connect(place(postgres, name), autocommit=True)) as connection:
        connection.execute("CREATE ROLE reader LOGIN")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
        connection.execute("REVOKE SELECT ON group_values FROM reader")
    url = place(postgres, name).replace("//postgres:@", "//reader@")
    ledger = SqlLedger(url)
    with pytest.raises(LedgerError, match=r"could not be used \(permission denied for table gr"):
        verify(ledger)
    ledger.close()
