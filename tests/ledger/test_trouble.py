"""What goes wrong with a ledger is one sentence, nothing is lost, and nothing stored can run."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import psycopg
import pytest
import sqlalchemy as sa

import secondlook as sl
from ledger_worlds import algorithm_1, same, started
from secondlook.errors import InputError, LedgerError
from secondlook.ledger import Program, SqlLedger, schema, verify
from secondlook.ledger.bulk import insert_rows

HOSTILE = [
    "'; DROP TABLE people; --",
    '"; DELETE FROM entries; --',
    "=cmd|' /C calc'!A0",
    "%s %(x)s :x ? {x} \\",
    "ünï\u202ecode \U0001f600",
]


def test_a_file_that_cannot_be_written(tmp_path):
    program, twin, (one, *_) = started(f"sqlite:///{tmp_path}/x.db", algorithm_1())

    def read_only(connection, _record):
        connection.execute("PRAGMA query_only = ON")

    sa.event.listen(program.ledger.engine, "connect", read_only)
    group = one.people.group
    with pytest.raises(
        LedgerError, match=r"x\.db could not be used \(attempt to write a readonly database\); noth"
    ):
        program.decide(one.people.X, sensitive_features=group)
    sa.event.remove(program.ledger.engine, "connect", read_only)
    assert same(
        program.decide(one.people.X, sensitive_features=group),
        twin.decide(one.people.X, sensitive_features=group),
    )


def test_a_server_that_is_not_there():
    with pytest.raises(LedgerError, match=r"postgresql.*nobody:\*\*\*@.* could not be used \("):
        Program.open("postgresql://nobody:secret@127.0.0.1:1/nothing")


def test_a_file_that_is_no_database(tmp_path):
    (tmp_path / "x.db").write_bytes(b"not a database, but long enough to look at" * 100)
    with pytest.raises(LedgerError, match=r"could not be used \(file is not a database\)"):
        Program.open(f"sqlite:///{tmp_path}/x.db")


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_connection_lost_in_the_middle_of_a_copy(url, monkeypatch):
    program, twin, (one, *_) = started(url, algorithm_1())
    before = program.checkpoint()

    def cut(connection, table, names, rows):
        def until_cut():
            for at, row in enumerate(rows):
                if at == 100:
                    pid = connection.connection.driver_connection.info.backend_pid
                    with psycopg.connect(url, autocommit=True) as other:
                        other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
                yield row

        insert_rows(connection, table, names, until_cut())

    group = one.people.group
    with monkeypatch.context() as patch:
        patch.setattr("secondlook.ledger.sql.insert_rows", cut)
        with pytest.raises(LedgerError, match="could not be used"):
            program.decide(one.people.X, sensitive_features=group, batch="b")
    assert program.checkpoint() == before
    assert same(
        program.decide(one.people.X, sensitive_features=group, batch="b"),
        twin.decide(one.people.X, sensitive_features=group),
    )
    assert verify(program.ledger).ok


def test_hostile_words_are_data_everywhere(url):
    rng = np.random.default_rng(0)
    n = 60

    def people(start):
        frame = pd.DataFrame({word: rng.normal(size=n) for word in HOSTILE})
        group = pd.DataFrame({HOSTILE[0]: [HOSTILE[at % 2] for at in range(n)]})
        ids = [f"{HOSTILE[at % 5]}{start + at}" for at in range(n)]
        return frame, group, ids

    frame, group, ids = people(0)
    outcome = np.where(frame[HOSTILE[0]] > 0, HOSTILE[0], HOSTILE[1])
    clf = sl.PartialFeedbackClassifier(
        pos_label=HOSTILE[0], budget=sl.FdrBudget(alpha=0.4), random_state=0
    )
    name = HOSTILE[0]
    program = Program.create(
        url, clf, frame, outcome, sensitive_features=group, ids=ids, name=name, by=HOSTILE[1]
    )
    frame, group, ids = people(n)
    decided = program.decide(frame, sensitive_features=group, ids=ids, batch=HOSTILE[1])
    assert decided.ids.tolist() == ids
    program = Program.open(url, name, by=HOSTILE[2])
    yes = decided.ids[decided.accepted]
    program.observe(yes[1:], [HOSTILE[0]] * (yes.size - 1))
    program.override(yes[:1], False, HOSTILE[3])
    assert same(decided, program.decide(frame, sensitive_features=group, ids=ids, batch=HOSTILE[1]))
    found = verify(program.ledger, name)
    assert found.problem is None
    with program.ledger.reading(name) as reader:
        assert {entry.by for entry in reader.entries()} == {HOSTILE[1], HOSTILE[2]}
        (override,) = reader.entries(kind="override")
        assert list(reader.facts(override).overrides.reasons) == [HOSTILE[3]]


def test_a_stored_model_is_data_and_never_code(url):
    class Runs:
        def __reduce__(self):
            return exec, ("raise SystemExit('code has run')",)

    program, _, _ = started(url, algorithm_1())
    with (
        program.ledger.engine.connect().execution_options(writes=True) as connection,
        connection.begin(),
    ):
        connection.execute(sa.update(schema.payloads).values(content=pickle.dumps(Runs())))
    with pytest.raises(InputError, match=r"stored in entry 3 is not a file written by secondlook"):
        Program.open(url)
    assert "its stored state was changed" in verify(SqlLedger(url)).problem


def test_a_field_of_a_million_characters(url):
    n = 40
    words = ["a", "b"] * (n // 2)
    frame = pd.DataFrame({"x": np.linspace(-1, 1, n), "word": words})
    from sklearn.compose import make_column_transformer  # noqa: PLC0415
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415

    learner = make_pipeline(make_column_transformer(("passthrough", ["x"])), LogisticRegression())
    clf = sl.PartialFeedbackClassifier(learner=learner, random_state=0)
    program = Program.create(url, clf, frame, frame["x"].to_numpy() > -0.5)
    frame.loc[3, "word"] = "x" * 1_000_000
    program.decide(frame, batch="b")
    assert len(Program.open(url).decide(frame, batch="b")) == n
    assert verify(program.ledger).ok


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.zeros((3, 5)), "expecting 3 features"),
        ([["a", "b", "c"]], "X must be a table of numbers"),
        (np.zeros(3), "X must be a table of numbers"),
        (np.full((2, 3), np.nan), "X contains NaN or inf in 2 of 2 rows"),
        (np.zeros((0, 3)), "the batch is empty"),
    ],
)
def test_batches_that_cannot_be_are_refused_and_leave_no_trace(tmp_path, X, words):
    rng = np.random.default_rng(0)
    past = rng.normal(size=(100, 3))
    program = Program.create(
        f"sqlite:///{tmp_path}/x.db",
        sl.PartialFeedbackClassifier(random_state=0),
        past,
        past[:, 0] > 0,
    )
    before = program.checkpoint()
    with pytest.raises(ValueError, match=words):
        program.decide(X)
    assert program.checkpoint() == before
    assert program.decide(past[:10] + 1).round == 1
