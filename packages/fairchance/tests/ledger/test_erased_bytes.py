"""No byte of erased applicants stays in the files of a ledger."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import psycopg
import pytest
import sqlalchemy as sa
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import fairchance as fc
from fairchance.errors import LedgerError, LedgerWarning
from fairchance.ledger import Program, SqlLedger, verify
from ledger_worlds import algorithm_1

pytestmark = pytest.mark.filterwarnings("ignore::fairchance.errors.LearningWarning")


def applicants(rng, n):
    """Return applicants with a name, a word and a number that no other applicant has."""
    longest = int(rng.choice([8, 40, 400]))
    sizes = rng.integers(4, longest, size=(n, 2))
    table = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "note": [rng.bytes(size).hex() for size in sizes[:, 0]],
            "y": rng.normal(size=n),
        }
    )
    ids = [rng.bytes(min(size, 40) + 3).hex() for size in sizes[:, 1]]
    ids = [ids, sorted(ids), sorted(ids, reverse=True)][rng.integers(3)]
    good = rng.random(n) < 1 / (1 + np.exp(-2 - 2 * table["x"].to_numpy()))
    return table, good.astype(int), rng.choice(["a", "b"], n).astype(object), ids


def traces(table, ids):
    """Return by applicant what must not be found after an erasure."""
    numbers = [value.tobytes() for value in table["y"].to_numpy()]
    words = [word.encode() for word in table["note"]]
    names = [name.encode() for name in ids]
    return dict(zip(ids, zip(names, words, numbers, strict=True), strict=True))


def files(url):
    """Return the bytes of all files of a ledger: on PostgreSQL, of its whole database."""
    place = sa.make_url(url)
    if place.get_backend_name() == "sqlite":
        path = Path(place.database)
        found = path.parent.glob(f"{path.name}*")
    else:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CHECKPOINT")
            (folder,) = connection.execute(
                "SELECT current_setting('data_directory') || '/base/' || oid FROM pg_database "
                "WHERE datname = current_database()"
            ).fetchone()
            found = Path(folder).iterdir()
    return b"\n".join(one.read_bytes() for one in found)


def life(url, seed):
    """Return a program with random batches, outcomes and overrides, and each one's traces."""
    rng = np.random.default_rng(seed)
    learner = make_pipeline(make_column_transformer(("passthrough", ["x"])), LogisticRegression())
    classifier = algorithm_1(learner=learner, group_mode="audit", strategy=fc.ScoreWeighted())
    X, good, group, ids = applicants(rng, int(rng.integers(60, 300)))
    program = Program.create(url, classifier, X, good, sensitive_features=group, ids=ids)
    marks = traces(X, ids)
    for _ in range(rng.integers(1, 7)):
        X, good, group, ids = applicants(rng, int(rng.integers(2, 150)))
        decided = program.decide(X, sensitive_features=group, ids=ids)
        marks |= traces(X, ids)
        yes = decided.accepted & (rng.random(len(ids)) < 0.8)
        if yes.any():
            program.observe(decided.ids[yes], good[yes])
        no = np.flatnonzero(~decided.accepted)[:2]
        if no.size:
            program.override(decided.ids[no], True, "by hand")
    return program, marks, rng


def erase_in_parts(program, url, marks, rng, **options):
    """Erase random applicants in several calls, and look for each of them after each call."""
    order = rng.permutation(list(marks)).tolist()
    n = [int(size) for size in rng.integers(1, 40, size=3)]
    parts = [order[: n[0]], order[n[0] : n[0] + n[1]], order[n[0] + n[1] : sum(n)]]
    kept = [mark for name in order[-10:] for mark in marks[name]]
    before, gone = files(url), []
    assert all(mark in before for mark in [*kept, *(marks[name][0] for name in order[: sum(n)])])
    for part in parts:
        program.erase(part, "asked", early=True, **options)
        gone += part
        left = files(url)
        assert [name for name in gone if any(mark in left for mark in marks[name])] == []
        assert all(mark in left for mark in kept)
    assert verify(program.ledger).ok


@pytest.mark.parametrize("seed", [13, 0])  # 13: one of the ledgers that only VACUUM cleans
def test_a_file_keeps_no_byte_of_the_erased(tmp_path, seed):
    url = f"sqlite:///{tmp_path}/ledger.db"
    program, marks, rng = life(url, seed)
    erase_in_parts(program, url, marks, rng)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100))
def test_many_files_keep_no_byte_of_the_erased(tmp_path, seed):
    test_a_file_keeps_no_byte_of_the_erased(tmp_path, seed)


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))]
)
def test_compacted_files_of_a_server_keep_no_byte_of_the_erased(url, seed):
    program, marks, rng = life(url, seed)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ANALYZE")  # remembers frequent and some other values of each column
    erase_in_parts(program, url, marks, rng, compact=True)


def test_a_reader_delays_the_end_of_an_erasure(tmp_path):
    url = f"sqlite:///{tmp_path}/ledger.db"
    program, marks, _ = life(url, 0)
    gone = [*marks][:3]
    with program.ledger.reading("main") as reader:
        number = reader.head().number
        with pytest.warns(LedgerWarning, match=r"are erased .*\(another process is reading it\)"):
            assert program.erase(gone, "asked", early=True) == 3
        with pytest.raises(LedgerError, match="another process is reading it"):
            program.ledger.compact()
        assert reader.head().number == number
        assert reader.names(np.array([0])) == gone[:1]  # as it was then
        assert gone[0].encode() in files(url)
    program.ledger.compact()
    assert not any(mark in files(url) for name in gone for mark in marks[name])


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_an_erasure_on_a_server_warns_once_that_files_keep_names(url):
    program, marks, _ = life(url, 0)
    gone = [*marks][:2]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        program.erase(gone[:1], "asked", early=True)
    assert [one.category for one in caught] == [LedgerWarning]
    assert gone[0].encode() in files(url)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program.erase(gone[1:], "asked", early=True, compact=True)
    assert not any(mark in files(url) for name in gone for mark in marks[name])


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_what_prevents_a_server_from_forgetting(url):
    program, marks, _ = life(url, 0)
    gone = [*marks][:3]
    with psycopg.connect(url) as other:
        other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        other.execute("SELECT 1")  # from here on it may ask for what is erased below
        with pytest.warns(LedgerWarning, match="another session may still read them"):
            assert program.erase(gone, "asked", early=True, compact=True) == 3
        assert gone[0].encode() in files(url)
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("CREATE ROLE clerk LOGIN")
        owner.execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO clerk")
    with pytest.raises(LedgerError, match="permission denied to vacuum"):
        SqlLedger(url.replace("postgres:@", "clerk:@")).compact()
    program.ledger.compact()
    assert not any(mark in files(url) for name in gone for mark in marks[name])
