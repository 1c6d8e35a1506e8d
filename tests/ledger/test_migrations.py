"""Tables are made by migrations, old ledgers are brought up, newer ones are refused."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy.pool import NullPool

from secondlook.errors import LedgerError
from secondlook.ledger import engines, schema
from secondlook.ledger.chain import group_digests, people_digests
from secondlook.ledger.program import Program
from secondlook.ledger.sql import SqlLedger
from secondlook.ledger.verifying import verify

FIRST = Path(__file__).parent / "first.db"


def test_migrations_make_the_tables_of_the_schema(url):
    ledger = SqlLedger(url, make=True)

    def is_compared(one, name, kind, *_):
        """Return if a part of the schema is for this database."""
        names = list(getattr(one, "columns", {}).keys()) if kind == "unique_constraint" else []
        if url.startswith("sqlite"):
            pages = name in ("people_by_person", "group_values_by_person")
            return not pages and names != ["application", "program"]
        keyed = kind == "foreign_key_constraint" and {"person", "entry"} & {*one.column_keys}
        return names != ["program", "application"] and (not keyed or one.parent.name == "payloads")

    opts = {"compare_type": True, "include_object": is_compared}
    with ledger.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts=opts)
        assert compare_metadata(context, schema.metadata) == []
        assert context.get_current_revision() == schema.NEWEST
        looked_up = [
            one["referred_table"]
            for table in ("outcomes", "overrides", "erasures")
            for one in sa.inspect(connection).get_foreign_keys(table)
        ]
    each = ["entries"] * 3 + ["people"] * 3 if url.startswith("sqlite") else []
    assert sorted(looked_up) == each
    assert SqlLedger(url).programs() == []


def test_a_ledger_of_a_newer_version_is_refused(url):
    ledger = SqlLedger(url, make=True)
    with ledger.engine.connect().execution_options(writes=True) as connection, connection.begin():
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(LedgerError, match=r"version 9999, made by a newer secondlook, .* 0005;"):
        SqlLedger(url)


@pytest.mark.parametrize(
    ("statement", "version"),
    [
        ("UPDATE alembic_version SET version_num = '0001'", "0001"),
        ("DELETE FROM alembic_version", "none"),
        ("DROP TABLE alembic_version", "none"),
    ],
)
def test_tables_that_are_not_of_their_version_are_left_alone(url, statement, version):
    ledger = SqlLedger(url, make=True)

    def tell(words):
        with ledger.engine.connect().execution_options(writes=True) as one, one.begin():
            one.execute(sa.text(words))

    tell(statement)
    with pytest.raises(LedgerError, match=rf"do not fit their version, .* as {version}, .*; rest"):
        SqlLedger(url)
    if version != "none":
        tell(f"UPDATE alembic_version SET version_num = '{schema.NEWEST}'")
        assert SqlLedger(url).programs() == []


def test_two_settings_that_keep_sqlite_whole(tmp_path):
    ledger = SqlLedger(f"sqlite:///{tmp_path}/x.db", make=True)
    with ledger.engine.connect() as connection:
        for name, value in (("journal_mode", "wal"), ("synchronous", 2), ("foreign_keys", 1)):
            assert connection.exec_driver_sql(f"PRAGMA {name}").scalar() == value


def test_a_full_disk_is_one_sentence_and_nothing_is_lost(tmp_path):
    url = f"sqlite:///{tmp_path}/x.db"
    X = np.random.default_rng(5).normal(size=(3000, 2))
    import secondlook as sl  # noqa: PLC0415

    program = Program.create(
        url, sl.PartialFeedbackClassifier(random_state=0), X[:100], X[:100, 0] > 0
    )
    before = program.checkpoint()

    def limit(connection, _record):
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 3}")

    sa.event.listen(program.ledger.engine, "connect", limit)
    with pytest.raises(LedgerError, match=r"could not be used \(database or disk is full\)"):
        program.decide(X[100:], batch="b")
    sa.event.remove(program.ledger.engine, "connect", limit)
    assert program.checkpoint() == before
    assert program.decide(X[100:], batch="b").round == 1
    assert verify(program.ledger).ok


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_ids_of_before_are_found_after_they_compare_byte_by_byte(url):
    engine = engines.connect(url)
    config = Config()
    config.set_main_option("script_location", str(Path(schema.__file__).parent / "migrations"))
    names = ["b", "B", "a b", "ab", "\u00e9", "e\u0301", "Z", "-1", "1"]
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0002")
        connection.execute(sa.text("INSERT INTO programs VALUES (1, 'main')"))
        for person, name in enumerate(names):
            new = schema.people.insert().values(
                program=1,
                person=person,
                application=name,
                digest=bytes(32),
                round=0,
                accepted=True,
                exploit=True,
            )
            connection.execute(new)
    ledger = SqlLedger(url)
    with ledger.reading("main") as reader:
        assert reader.standing(names[::-1]).persons.tolist() == list(range(len(names)))[::-1]
    one = schema.people.c.application
    with ledger.engine.connect() as connection:
        assert connection.execute(sa.select(one).order_by(one)).scalars().all() == sorted(names)


def test_people_hash_as_in_the_first_version():
    """Ledgers rest on it: the bytes that are hashed may never change."""
    people = [
        (0, "a", b"12", None, None),
        (7, "\u00e9\u00e9", b"", '["x"]', None),
        (10**9, "", b"1234", "", b"why"),
        (3, "b", b"9", None, b""),
    ]
    salt = [bytes([at]) * 16 for at in range(len(people))]
    told = [
        salt[0] + b"0:1:-1:" + b"a" + b"12",
        salt[1] + b"7:2:5:" + '\u00e9\u00e9["x"]'.encode(),
        salt[2] + b"1000000000:0:0:" + b"1234" + b":4:why",
        salt[3] + b"3:1:-1:" + b"b9" + b":1:",
    ]
    persons, names, numbers, texts, reasons = map(list, zip(*people, strict=True))
    found = people_digests(persons, names, numbers, texts, reasons, salt)
    assert found == [sha256(one).digest() for one in told]
    for at in range(len(people)):
        row = [column[at : at + 1] for column in (persons, names, numbers, texts, reasons, salt)]
        assert people_digests(*row) == found[at : at + 1]
    values = ['["A"]', '["\u00e9"]', '["A"]', ""]
    other = [bytes([100 + at]) * 16 for at in range(len(people))]
    with_groups = [
        own[:16] + b"%d|" % len(v) + v.encode() + second + own[16:]
        for own, v, second in zip(told, values, other, strict=True)
    ]
    assert people_digests(persons, names, numbers, texts, reasons, salt, values, other) == [
        sha256(one).digest() for one in with_groups
    ]
    told = [
        own + b"%d:" % who + v.encode() for own, who, v in zip(salt, persons, values, strict=True)
    ]
    assert group_digests(persons, values, salt) == [sha256(one).digest() for one in told]


@pytest.mark.parametrize(
    ("at", "strange"), [(1, b"ab"), (1, 5), (1, 2.5), (2, "12"), (3, b"[]"), (3, 7), (5, "s" * 16)]
)
def test_what_is_of_another_kind_never_hashes(at, strange):
    row = [0, "ab", b"12", "[]", None, bytes(16)]
    assert len(people_digests(*[[one] for one in row])) == 1
    row[at] = strange
    with pytest.raises(TypeError):
        people_digests(*[[one] for one in row])


def test_a_database_of_others_is_left_alone_unless_a_ledger_is_to_be_made_there(url):
    def tables():
        with engine.connect() as connection:
            return sa.inspect(connection).get_table_names()

    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE notes (words TEXT)"))
    with pytest.raises(LedgerError, match=r"there is no ledger at .*; start a program there first"):
        Program.open(url)
    assert tables() == ["notes"]
    assert SqlLedger(url, make=True).programs() == []
    assert SqlLedger(url).programs() == []
    assert {"notes", "entries"} <= {*tables()}


def test_a_file_that_is_no_ledger_stays_as_it_is(tmp_path):
    with closing(sqlite3.connect(tmp_path / "notes.db")) as db:
        db.execute("CREATE TABLE notes (words TEXT)")
    (tmp_path / "empty.db").touch()
    for path in (tmp_path / "notes.db", tmp_path / "empty.db"):
        before = path.read_bytes()
        with pytest.raises(LedgerError, match=f"there is no ledger at {path}; start a program"):
            SqlLedger(f"sqlite:///{path}")
        assert path.read_bytes() == before  # WAL would show in its first bytes


def test_places_where_no_ledger_can_be(tmp_path):
    for make in (True, False):
        with pytest.raises(
            LedgerError, match=f"a ledger is a file, and {tmp_path} is a folder; na"
        ):
            SqlLedger(f"sqlite:///{tmp_path}", make=make)
    with pytest.raises(LedgerError, match=f"there is no folder {tmp_path}/no for a ledger; make"):
        SqlLedger(f"sqlite:///{tmp_path}/no/ledger.db", make=True)
