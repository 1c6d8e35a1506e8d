"""Retention periods, holds and erasures: nothing is left of erased applicants."""

from __future__ import annotations

import io
import multiprocessing
import os
import signal
import sqlite3
import zipfile
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
import sqlalchemy as sa
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import fairchance as fc
from fairchance.errors import InputError, LedgerError, LedgerWarning, UnknownIdError
from fairchance.ledger import schema
from fairchance.ledger.base import Facts
from fairchance.ledger.program import Program
from fairchance.ledger.retention import (
    MONTHS,
    Deadlines,
    months_later,
    retention_months,
)
from fairchance.ledger.verification.walk import verify
from fairchance.methods.algorithm1.classifier import PartialFeedbackClassifier
from ledger_worlds import algorithm_1, certified, same, started

START = datetime(2031, 1, 31, 12, tzinfo=UTC)
LATER = START + timedelta(days=800)  # more than 25 months


class Clock:
    """A clock that a test sets."""

    def __init__(self, now=START):
        self.now = now

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """Replace the clock of every ledger."""
    fake = Clock()
    monkeypatch.setattr("fairchance.ledger.sql._now", fake)
    return fake


def decide(program, applicants, **options):
    people = applicants.people
    return program.decide(people.X, sensitive_features=people.group, **options)


def observe(program, batch, decided):
    accepted = decided.accepted
    program.observe(decided.ids[accepted], batch.outcome[accepted])


def test_months_later_follows_the_calendar():
    rng = np.random.default_rng(0)
    for _ in range(500):
        at = datetime(2024, 1, 1) + timedelta(minutes=int(rng.integers(0, 3_000_000)))
        months = int(rng.integers(0, 60))
        assert months_later(at, months) == pd.Timestamp(at) + pd.DateOffset(months=months)


@pytest.mark.parametrize("months", [-1, 2.5, True, "25", None, 1201])
def test_retention_periods_that_are_refused(months):
    with pytest.raises(InputError, match="retention_months"):
        retention_months({"retention_months": months})


def test_expired_applicants(url, clock):
    program, _, batches = started(url, algorithm_1(), n_batch=40, about={"retention_months": 3})
    recorded = [(START, np.arange(600))]
    for days, batch in zip((10, 28, 29, 200), batches, strict=False):
        clock.now = START + timedelta(days=days)
        recorded.append((clock.now, decide(program, batch).ids))
    over = np.concatenate([ids for at, ids in recorded if at < START + timedelta(days=200)])
    assert program.expired().tolist() == over.tolist()
    program.erase(np.arange(0, 600, 7), "over")
    held = [one for one in range(3, 650, 5) if one % 7 or one >= 600]
    program.hold(held, "a court asks")
    for days in (10, 89, 90, 99, 120, 300):
        clock.now = START + timedelta(days=days)
        over = [
            one
            for at, ids in recorded
            for one in ids.tolist()
            if pd.Timestamp(at) + pd.DateOffset(months=3) <= pd.Timestamp(clock.now)
        ]
        kept = {*held, *range(0, 600, 7)}
        assert program.expired().tolist() == [one for one in over if one not in kept]
    with program.ledger.reading("main") as reader:
        found = Deadlines.of(reader, 3).of_people(np.array([0, 599, 600, 700]))
    assert found[0] == found[1] == np.datetime64("2031-04-30T12:00")
    assert found[2] == np.datetime64("2031-05-10T12:00")


@pytest.mark.parametrize("years", [-60, -1, 100])
def test_a_wrong_clock_is_reported_and_ends_no_retention_period(url, clock, years):
    program, _, (one, *_) = started(url, algorithm_1(), n_batch=40)
    clock.now = START.replace(year=START.year + years)
    with pytest.warns(LedgerWarning, match=str(clock.now.year)):
        ids = decide(program, one).ids
    assert program.expired().size == program.summary().n_expired == 0
    with pytest.raises(InputError, match="ids"):
        program.erase(ids[:2], "over")
    clock.now = LATER
    with nullcontext() if years == -1 else pytest.warns(LedgerWarning):
        program.hold(ids[:1], "a court asks")
    over = 600 + (39 if years < 0 else 0)
    assert program.expired().size == program.summary().n_expired == over


def test_applicants_who_must_be_kept_are_not_erased(url, clock):
    program, _, (one, *_) = started(url, algorithm_1(), n_batch=50)
    clock.now = START + timedelta(days=30)
    ids = decide(program, one).ids
    program.hold(ids[:2], "a court asks")
    before = program.checkpoint()
    for who, reason, options, error, words in (
        (ids[2:4], "asked", {}, InputError, "2 of 2 ids .* 2033-04-02"),
        (ids[1:4], "asked", {"early": True}, InputError, f"1 of 3 ids .*'{ids[1]}'"),
        ([10**9], "asked", {"early": True}, UnknownIdError, f"1 of 1 ids .*'{10**9}'"),
        (ids[2:4], "  ", {"early": True}, InputError, "reason"),
        (["x"], "asked", {}, InputError, "ids"),
    ):
        with pytest.raises(error, match=words):
            program.erase(who, reason, **options)
    for change, who, reason, words in (
        (program.hold, [10**9], "why", f"1 of 1 ids .*'{10**9}'"),
        (program.release, [10**9], "why", f"1 of 1 ids .*'{10**9}'"),
        (program.release, ids[1:3], "why", f"1 of 2 ids .*'{ids[2]}'"),
        (program.hold, ids[:1], "", "reason"),
        (program.release, ids[:1], "", "reason"),
    ):
        with pytest.raises(InputError, match=words):
            change(who, reason)
    program.hold([], "no applicants")
    assert program.erase([], "no applicants") == 0
    assert program.checkpoint() == before
    assert program.erase(np.repeat(ids[2:4], 2), "both asked", early=True) == 2
    with pytest.raises(UnknownIdError, match=f"1 of 1 ids .*'{ids[2]}'"):
        program.erase(ids[2:3], "again", early=True)
    program.release(ids[:2], "settled")
    clock.now = LATER
    assert program.erase(ids[:2], "over", early=True) == 2
    with program.ledger.reading("main") as reader:
        says = [entry.says for entry in reader.entries(kind="erasure")]
        held = [entry.says for entry in reader.entries(kind="hold")]
    assert [one["reason"] for one in says] == ["both asked", "over"]
    assert [one["n_early"] for one in says] == [2, 0]
    assert {one["retention_months"] for one in says} == {MONTHS}
    assert [(one["held"], one["reason"]) for one in held] == [
        (True, "a court asks"),
        (False, "settled"),
    ]
    assert held[0]["persons"] == [600, 601]
    assert verify(program.ledger).problem is None


@pytest.mark.parametrize("make", [algorithm_1, certified])
def test_a_program_continues_after_an_erasure(url, clock, make):
    program, twin, batches = started(url, make(), n_batch=100, n_rounds=6)
    waiting = Program.open(url)  # with a state in memory
    for batch in batches[:3]:
        decided = decide(program, batch)
        observe(program, batch, decided)
        observe(twin, batch, decide(twin, batch))
        decide_last = decided
    clock.now = LATER
    gone = np.concatenate([np.arange(0, 600, 6), decide_last.ids[::5]])
    assert program.erase(gone[:50], "over") == 50
    program.override(decide_last.ids[~decide_last.accepted][1:2], True, "a guarantor")
    program.erase(gone[50:], "over")
    twin.forget(gone[:50]).forget(gone[50:])
    for number, batch in enumerate(batches[3:]):
        who = (waiting, Program.open(url), program)[number]
        decided = decide(who, batch, batch=f"late {number}")
        assert same(decided, decide(twin, batch))
        observe(who, batch, decided)
        observe(twin, batch, decided)
        assert same(decided, decide(Program.open(url), batch, batch=f"late {number}"))
    program.snapshot()
    found = verify(program.ledger, relearn=True, checkpoint=program.checkpoint())
    assert found.problem is None
    assert found.n_not_repeated > 0
    assert found.n_decisions >= 3 * 100
    assert found.n_decisions + found.n_not_repeated == 6 * 100
    with pytest.raises(UnknownIdError, match="are unknown or erased, f"):
        program.observe(gone[-1:], [1])
    again = program.erase(decided.ids[:5], "asked", early=True)
    assert again == 5
    with pytest.raises(InputError, match=r"'late 2' .*5 "):
        decide(program, batches[5], batch="late 2")
    assert verify(program.ledger).problem is None


def test_an_erasure_that_fails_erases_nothing(url, clock, monkeypatch):
    program, _, (one, *_) = started(url, algorithm_1(), n_batch=50)
    ids = decide(program, one).ids
    clock.now, before = LATER, program.checkpoint()

    def fail(*args, **options):
        raise RuntimeError("the disk is gone")

    for place in (
        "fairchance.ledger.program.Program._store_state",
        "fairchance.people.store.PeopleStore.forget",
    ):
        with monkeypatch.context() as patch:
            patch.setattr(place, fail)
            with pytest.raises(RuntimeError, match="the disk is gone"):
                program.erase(ids[:5], "over")
        assert program.checkpoint() == before
        assert np.isin(ids, program.expired()).all()
    assert program.erase(ids[:5], "over") == 5
    assert verify(program.ledger).problem is None


def dying(program, ids, die_at):
    """Erase applicants, but die at some statement."""
    left = [die_at]

    def count(*_):
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    sa.event.listen(sa.Engine, "before_cursor_execute", count)
    sa.event.listen(sa.Engine, "commit", count)
    program.erase(ids, "over")
    os._exit(0)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*fork:RuntimeWarning")
def test_killed_at_any_statement_all_are_erased_or_none(url, clock):
    program, twin, (one, *_) = started(url, algorithm_1(), n_batch=30)
    clock.now = LATER
    fork = multiprocessing.get_context("fork")
    ended, die_at, erased = False, 0, []
    while not ended:
        die_at += 2
        first = 3 * len(erased)
        child = fork.Process(target=dying, args=(program, range(first, first + 3), die_at))
        child.start()
        child.join()
        ended = child.exitcode == 0
        with program.ledger.reading("main") as reader:
            gone = [name is None for name in reader.names(np.arange(first, first + 3))]
            (newest, *_) = reader.newest_first("snapshot")
            n_erasures = sum(1 for _ in reader.entries(kind="erasure"))
            assert reader.facts(newest).payload is not None
        assert gone in ([True] * 3, [False] * 3)
        assert ended <= gone[0]
        if gone[0]:
            erased.append(first)
        assert n_erasures == len(erased)
    assert die_at > 10
    for first in erased:
        twin.forget(range(first, first + 3))
    assert same(decide(Program.open(url), one), decide(twin, one))
    assert verify(program.ledger).problem is None


WORD, NAME, GROUP = "a-word-of-their-own", "their-own-name", "a-group-of-their-own"
NUMBER = 12345.678901


def everything(url):
    """Return everything in a database, payloads unpacked."""
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    found = []
    with engine.connect() as connection:
        for table in schema.metadata.sorted_tables:
            for row in connection.execute(sa.select(table)):
                for value in row:
                    if isinstance(value, bytes) and value.startswith(b"PK\x03\x04"):  # no salt
                        with zipfile.ZipFile(io.BytesIO(value)) as archive:
                            found += [archive.read(name) for name in archive.namelist()]
                    else:
                        found.append(value if isinstance(value, bytes) else repr(value).encode())
    engine.dispose()
    return b"\n".join(found)


def test_nothing_is_left_of_the_erased(url, clock, tmp_path):
    rng = np.random.default_rng(1)

    def table(n, first):
        frame = pd.DataFrame(
            {
                "trade": rng.choice(["smith", "baker"], n).astype(object),
                "x": rng.normal(size=n),
                "y": rng.normal(size=n),
            }
        )
        ids = np.array([f"{rng.integers(10**9)}-{first + at}" for at in range(n)], object)
        group = rng.choice(["a", "b"], n).astype(object)
        frame.loc[:1, "trade"], frame.loc[:1, "y"] = WORD, NUMBER
        ids[:2] = [f"{NAME}-{first}", f"{NAME}-{first + 1}"]
        good = rng.random(n) < 1 / (1 + np.exp(-1 - 2 * frame["x"].to_numpy()))
        return frame, good.astype(int), group, ids.tolist()

    learner = make_pipeline(make_column_transformer(("passthrough", ["x"])), LogisticRegression())
    X, good, group, ids = table(300, 0)
    group[:2] = GROUP
    classifier = algorithm_1(learner=learner, group_mode="audit", strategy=fc.ScoreWeighted())
    program = Program.create(url, classifier, X, good, sensitive_features=group, ids=ids)
    gone = ids[:2]
    for first in (300, 500):
        X, good, group, ids = table(200, first)
        decided = program.decide(X, sensitive_features=group, ids=ids)
        yes = decided.accepted
        program.observe(decided.ids[yes], good[yes])
        program.snapshot()
        gone += ids[:2]
    clock.now = LATER
    marks = [WORD.encode(), NAME.encode(), np.float64(NUMBER).tobytes()]
    assert all(mark in everything(url) for mark in marks)
    program.erase(gone, "over")
    left = everything(url)
    assert not any(mark in left for mark in marks)
    if url.startswith("sqlite"):  # the files too, whatever SQLite keeps in them
        bytes_of = b"".join(one.read_bytes() for one in tmp_path.glob("ledger.db*"))
        assert b"baker" in bytes_of
        assert not any(mark in bytes_of for mark in marks)
    assert verify(program.ledger).problem is None
    # The groups are still known, but not which applicants were in them.
    with program.ledger.reading("main") as reader:
        (history,) = reader.entries(kind="history")
        assert list(reader.facts(history).people.groups[:2]) == [None, None]


def test_a_file_that_cannot_be_written_anew_is_a_warning(tmp_path, clock):
    url = f"sqlite:///{tmp_path}/ledger.db"
    program, _, _ = started(url, algorithm_1())
    clock.now = LATER

    def refuse(connection, _record):
        connection.set_authorizer(
            lambda _action, _what, how, *_: sqlite3.SQLITE_DENY if how == "TRUNCATE" else 0
        )

    sa.event.listen(program.ledger.engine, "connect", refuse)
    with pytest.warns(LedgerWarning, match=r"are erased .*not authorized"):
        assert program.erase([0], "over") == 1
    sa.event.remove(program.ledger.engine, "connect", refuse)
    assert program.standing([0]).persons.tolist() == [-1]
    program.ledger.compact()
    assert verify(program.ledger).ok
    assert not (tmp_path / "ledger.db-wal").exists()


def test_a_classifier_that_cannot_forget_cannot_erase(url, clock, monkeypatch):
    program, _, _ = started(url, algorithm_1())
    clock.now = LATER
    monkeypatch.delattr(PartialFeedbackClassifier, "forget")
    with pytest.raises(InputError, match="PartialFeedbackClassifier"):
        program.erase([0], "over")
    assert 0 in program.expired()


def test_a_state_in_memory_forgets_applicants_erased_elsewhere(url, clock):
    program, _, (one, *_) = started(url, algorithm_1(), n_batch=50)
    decide(program, one)
    other = Program.open(url)
    clock.now = LATER
    other.erase([0, 1], "over")
    for people in (program.classifier._people, other.classifier._people):
        assert people.find(np.array([0, 1, 2], np.uint64)).tolist()[:2] == [-9, -9]
        assert int(people.find(np.array([2], np.uint64))[0]) != -9


def test_without_a_stored_state_a_program_cannot_continue(url, clock):
    program, _, _ = started(url, algorithm_1(), n_batch=50)
    with program.ledger.writing("main") as writer:  # not by the program, which would store a state
        writer.append("erasure", {"reason": "by hand"}, Facts(erased=np.array([3])), by="t")
    with pytest.raises(LedgerError, match=r"entry \d \(history\)"):
        Program.open(url)
