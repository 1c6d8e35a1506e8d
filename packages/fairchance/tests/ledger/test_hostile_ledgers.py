"""Damaged files, hostile text and missing rights: an error of one line, and nothing is lost."""

from __future__ import annotations

import json
import pickle
import resource
import signal

import numpy as np
import pandas as pd
import pytest
import sqlalchemy as sa
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import fairchance as fc
from fairchance.errors import InputError, LedgerError
from fairchance.ledger import Program, SqlLedger, schema, verify
from ledger.children import folder_for_others, in_a_child, without_rights
from ledger_worlds import algorithm_1, same, started

# Newer Pythons, and jax where another test has loaded it, warn of forks beside threads.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*fork:RuntimeWarning"),
]
HOSTILE = [
    "'; DROP TABLE people; --",
    '"; DELETE FROM entries; --',
    "=cmd|' /C calc'!A0",
    "%s %(x)s :x ? {x} \\",
    "ünï\u202ecode \U0001f600",
]


def program_with_text(url, ids=None):
    """Return a program whose 40 applicants have a text, a number and a group."""
    n = 40
    words = ["a", "b"] * (n // 2)
    frame = pd.DataFrame({"x": np.linspace(-1, 1, n), "word": words})
    learner = make_pipeline(make_column_transformer(("passthrough", ["x"])), LogisticRegression())
    clf = fc.PartialFeedbackClassifier(learner=learner, random_state=0)
    frame["word"] = frame["word"].astype(object)  # text of pandas' own could not be broken
    groups = pd.DataFrame({"g": words}, dtype=object)
    ids = [f"past {at}" for at in range(n)] if ids is None else ids
    good = frame["x"].to_numpy() > -0.5
    return Program.create(url, clf, frame, good, ids=ids, sensitive_features=groups), frame, groups


def test_a_file_that_cannot_be_written(tmp_path):
    program, twin, (one, *_) = started(f"sqlite:///{tmp_path}/x.db", algorithm_1())

    def read_only(connection, _record):
        connection.execute("PRAGMA query_only = ON")

    sa.event.listen(program.ledger.engine, "connect", read_only)
    group = one.people.group
    with pytest.raises(LedgerError, match=r"x\.db .*\(attempt to write a readonly database\)"):
        program.decide(one.people.X, sensitive_features=group)
    sa.event.remove(program.ledger.engine, "connect", read_only)
    assert same(
        program.decide(one.people.X, sensitive_features=group),
        twin.decide(one.people.X, sensitive_features=group),
    )


def test_a_file_that_is_no_database(tmp_path):
    (tmp_path / "x.db").write_bytes(b"not a database, but long enough to look at" * 100)
    with pytest.raises(LedgerError, match=r"could not be used \(file is not a database\)"):
        Program.open(f"sqlite:///{tmp_path}/x.db")


@pytest.mark.parametrize("room", [0, 8_000, 40_000])
def test_a_limit_on_the_size_of_files(tmp_path, room):
    program, twin, (one, *_) = started(f"sqlite:///{tmp_path}/x.db", algorithm_1())
    before = program.checkpoint()
    group = one.people.group
    largest = (tmp_path / "x.db").stat().st_size

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        # The journal begins anew, and is a file too.
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, largest))
        program.decide(one.people.X, sensitive_features=group, batch="b")

    output = in_a_child(limited)
    assert output.startswith(f"the ledger at sqlite:///{tmp_path}/x.db ")
    assert program.checkpoint() == before
    assert same(
        program.decide(one.people.X, sensitive_features=group, batch="b"),
        twin.decide(one.people.X, sensitive_features=group),
    )
    assert verify(program.ledger).ok


@pytest.fixture
def shared_folder():
    with folder_for_others() as folder:
        yield folder


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_file_or_a_folder_without_the_right_to_write(shared_folder, what):
    path = shared_folder / "x.db"
    program, twin, (one, *_) = started(f"sqlite:///{path}", algorithm_1())
    before = program.checkpoint()
    group = one.people.group
    path.chmod(0o444 if what == "file" else 0o666)
    if what == "folder":
        shared_folder.chmod(0o555)

    output = without_rights(
        lambda: program.decide(one.people.X, sensitive_features=group, batch="b")
    )
    assert str(path) in output
    path.chmod(0o644)
    shared_folder.chmod(0o755)
    assert program.checkpoint() == before
    assert same(
        program.decide(one.people.X, sensitive_features=group, batch="b"),
        twin.decide(one.people.X, sensitive_features=group),
    )


def test_a_ledger_that_another_writer_keeps_locked(url, monkeypatch):
    program, twin, (one, *_) = started(url, algorithm_1())
    group = one.people.group
    monkeypatch.setattr("fairchance.ledger.database.WAIT", 0.1)
    patient = Program.open(url)
    with (
        program.ledger.writing("main"),
        pytest.raises(LedgerError, match=r"could not be used \((database is locked|.*timeout)"),
    ):
        patient.decide(one.people.X, sensitive_features=group, batch="b")
    assert same(
        patient.decide(one.people.X, sensitive_features=group, batch="b"),
        twin.decide(one.people.X, sensitive_features=group),
    )
    assert verify(program.ledger).ok


@pytest.mark.parametrize("left", [0.02, 0.3, 0.6, 0.95])
def test_a_truncated_file(tmp_path, left):
    path = tmp_path / "x.db"
    program, _, (one, *_) = started(f"sqlite:///{path}", algorithm_1())
    program.decide(one.people.X, sensitive_features=one.people.group)
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(int(left * size))
    try:
        problem = verify(SqlLedger(f"sqlite:///{path}")).problem
    except LedgerError as error:
        problem = str(error)
    assert problem is not None
    assert "malformed" in problem
    assert len(problem.splitlines()) == 1
    assert path.stat().st_size <= size


def test_an_empty_file_has_no_program(tmp_path):
    (tmp_path / "x.db").touch()
    with pytest.raises(LedgerError, match=r"there is no ledger at .*x\.db; start a program there"):
        Program.open(f"sqlite:///{tmp_path}/x.db")


def test_hostile_text_is_data_everywhere(url):
    rng = np.random.default_rng(0)
    n = 60

    def people(start):
        frame = pd.DataFrame({word: rng.normal(size=n) for word in HOSTILE})
        group = pd.DataFrame({HOSTILE[0]: [HOSTILE[at % 2] for at in range(n)]})
        ids = [f"{HOSTILE[at % 5]}{start + at}".replace("\u202e", "") for at in range(n)]
        return frame, group, ids

    frame, group, ids = people(0)
    outcome = np.where(frame[HOSTILE[0]] > 0, HOSTILE[0], HOSTILE[1])
    clf = fc.PartialFeedbackClassifier(
        pos_label=HOSTILE[0], budget=fc.FdrBudget(alpha=0.4), random_state=0
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
    with pytest.raises(InputError, match=r"entry 3\b"):
        Program.open(url)
    assert "payloads" in verify(SqlLedger(url)).problem


def test_a_field_of_a_million_characters(url):
    program, frame, groups = program_with_text(url)
    frame.loc[3, "word"] = "x" * 1_000_000
    ids = [f"new {at}" for at in range(len(frame))]
    program.decide(frame, sensitive_features=groups, ids=ids, batch="b")
    again = Program.open(url).decide(frame, sensitive_features=groups, ids=ids, batch="b")
    assert len(again) == len(frame)
    assert verify(program.ledger).ok


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((3, 5)), "X must have 3 columns"),
        ([["a", "b", "c"]], "X"),
        (np.zeros(3), "X"),
        (np.full((2, 3), np.inf), "X contains inf in 2 of 2 rows"),
        (np.zeros((0, 3)), "the batch is empty"),
    ],
)
def test_invalid_batches_are_refused_and_leave_no_trace(tmp_path, X, message):
    rng = np.random.default_rng(0)
    past = rng.normal(size=(100, 3))
    program = Program.create(
        f"sqlite:///{tmp_path}/x.db",
        fc.PartialFeedbackClassifier(random_state=0),
        past,
        past[:, 0] > 0,
    )
    before = program.checkpoint()
    with pytest.raises(ValueError, match=message):
        program.decide(X)
    assert program.checkpoint() == before
    assert program.decide(past[:10] + 1).round == 1


def test_ids_that_look_alike_are_different(url, monkeypatch):
    # As older versions took them; where new ones are refused, these are still kept apart.
    monkeypatch.setattr("fairchance.ledger.answers.check_spelling", lambda _ids: None)
    program, frame, groups = program_with_text(url)
    ids = [
        "a",
        "A",
        "\u00e9",
        "e\u0301",
        "\u212b",
        "\u00c5",
        "a ",
        " a",
        "\ufeffa",
        "ß",
        "ss",
        "1",
        "01",
    ]
    n = len(ids)
    decided = program.decide(frame.tail(n), sensitive_features=groups.tail(n), ids=ids, batch="b")
    assert decided.ids.tolist() == ids
    assert decided.accepted.all()
    program.observe(["A", "e\u0301", "01"], [False, True, True])
    with program.ledger.reading("main") as reader:
        standing = reader.standing(ids)
        names = reader.names(standing.persons)
    assert names == ids
    told = dict(zip(ids, standing.states, strict=True))
    assert {one for one in ids if told[one] is not None} == {"A", "e\u0301", "01"}
    assert verify(program.ledger).ok
    again = Program.open(url).decide(
        frame.tail(n), sensitive_features=groups.tail(n), ids=ids, batch="b"
    )
    assert same(decided, again)


def test_a_nul_in_a_feature_is_kept(url):
    program, frame, groups = program_with_text(url)
    frame.loc[3, "word"] = "x\0y"
    ids = [f"new {at}" for at in range(len(frame))]
    program.decide(frame, sensitive_features=groups, ids=ids, batch="b")
    with program.ledger.reading("main") as reader:
        texts = reader.facts(reader.entry("batch", "b")).people.texts
    assert json.loads(texts[3]) == ["x\0y"]
    assert verify(program.ledger).ok


REFUSED = [
    ({"id": "a\0b"}, r"'a\\x00b'"),
    ({"id": "a\ud800"}, r"'a\\ud800'"),
    ({"id": "x" * 1_000_000}, r"500 .* 1,000,000 "),
    ({"batch": "a\0b"}, r"'a\\x00b'"),
    ({"batch": "\udfff"}, r"'\\udfff'"),
    ({"batch": "x" * 1_000_000}, r"500 .* 1,000,000"),
    ({"word": "a\ud800"}, r"'word' .*ud800"),
    ({"group": "\udfff"}, r"sensitive_features .*'\\udfff'"),
    ({"group": "a\0"}, r"sensitive_features"),
]


def test_text_that_a_database_would_change_is_refused(url):
    program, frame, groups = program_with_text(url)
    before = program.checkpoint()
    frame, groups = frame.head(3), groups.head(3)
    for changed, message in REFUSED:
        ids, other, others = ["p", changed.get("id", "q"), "r"], frame.copy(), groups.copy()
        other.loc[1, "word"] = changed.get("word", "a")
        others.loc[1, "g"] = changed.get("group", "b")
        with pytest.raises(InputError, match=message):
            program.decide(
                other, sensitive_features=others, ids=ids, batch=changed.get("batch", "b1")
            )
        assert program.checkpoint() == before
    ids = ["p", "q", "r"]
    assert program.decide(frame, sensitive_features=groups, ids=ids, batch="b1").round == 1
    assert verify(program.ledger).ok


def test_ids_that_cannot_be_recorded_are_unknown(url):
    program, frame, groups = program_with_text(url)
    ids = [f"new {at}" for at in range(len(frame))]
    program.decide(frame, sensitive_features=groups, ids=ids)
    with program.ledger.reading("main") as reader:
        standing = reader.standing(
            ["new 39", "new 39\0", "new 39\0x", "new 39\ud800", "x" * 1_000_000]
        )
    assert standing.persons.tolist() == [79, -1, -1, -1, -1]


def test_two_programs_in_one_ledger_are_independent(url):
    one, twin_1, first = started(url, algorithm_1(), name="one")
    two, twin_2, second = started(url, algorithm_1(), name="two", seed=1)
    for a, b in zip(first[:3], second[:3], strict=True):
        for program, twin, batch in ((one, twin_1, a), (two, twin_2, b)):
            group = batch.people.group
            decided = program.decide(batch.people.X, sensitive_features=group)
            assert same(decided, twin.decide(batch.people.X, sensitive_features=group))
            yes = decided.accepted
            program.observe(decided.ids[yes], batch.outcome[yes])
            twin.observe(decided.ids[yes], batch.outcome[yes])
    assert one.ledger.programs() == ["one", "two"]
    assert verify(one.ledger, "one").ok
    assert verify(one.ledger, "two").ok
    connection = one.ledger.engine.connect().execution_options(writes=True)
    with connection, connection.begin():
        number = sa.select(schema.programs.c.program).where(schema.programs.c.name == "two")
        changed = sa.update(schema.people).where(
            schema.people.c.program == number.scalar_subquery(), schema.people.c.person == 3
        )
        connection.execute(changed.values(personal=bytes(32)))
    assert verify(one.ledger, "one").ok
    assert "application '3' (person 3)" in verify(one.ledger, "two").problem


def test_a_conflict_with_a_row_of_no_entry_is_reported(tmp_path):
    program, _, (one, *_) = started(f"sqlite:///{tmp_path}/ledger.db", algorithm_1())
    with program.ledger.engine.begin() as connection:
        n = connection.execute(sa.select(sa.func.max(schema.people.c.person))).scalar()
        connection.execute(
            schema.people.insert().values(
                program=1, person=n + 3, personal=bytes(32), round=0, accepted=True, exploit=True
            )
        )
    with pytest.raises(InputError):
        program.decide(one.people.X, sensitive_features=one.people.group)
