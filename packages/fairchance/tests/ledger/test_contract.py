"""The contract of ``fairchance.ledger.base``, on SQLite and PostgreSQL."""

from __future__ import annotations

import re
import threading
from dataclasses import replace

import numpy as np
import pytest

from fairchance.errors import InputError, LedgerError, UnknownIdError
from fairchance.ledger.base import (
    DecisionRows,
    Facts,
    OutcomeRows,
    OverrideRows,
    PeopleRows,
)
from fairchance.ledger.chain import NOTHING
from fairchance.ledger.retention import held
from fairchance.ledger.sql import SqlLedger
from fairchance.ledger.verification.hashes import entry_problem
from ledger.batches import make_batch


def _outcomes(persons, states):
    return Facts(outcomes=OutcomeRows(np.array(persons), states))


def _same(left, right):
    """Return whether two tables of facts have equal values in sequences of any type."""
    if left is None or right is None:
        return left is right
    for name, value in vars(left).items():
        second = getattr(right, name)
        if name == "persons":  # numbers of applicants that were read
            continue
        if isinstance(value, np.ndarray):
            if not np.array_equal(value, second, equal_nan=value.dtype.kind == "f"):
                return False
        elif isinstance(value, list | tuple):
            if list(value) != list(second):
                return False
        elif value != second:
            return False
    return True


@pytest.fixture
def started(url):
    """Return a ledger with a program of a few entries."""
    ledger = SqlLedger(url, make=True)
    with ledger.creating("p") as writer:
        writer.append("program", {"alpha": 0.15}, Facts(payload=b"settings"), by="t")
        writer.append("batch", {"round": 1}, make_batch(0), by="t", key="b1")
        writer.append("batch", {"round": 2}, make_batch(4, round=2), by="t", key="b2")
    return ledger


def check_chain(ledger, program="p"):
    """Check every entry, and return the number of entries."""
    with ledger.reading(program) as reader:
        previous = NOTHING
        number = 0
        for number, entry in enumerate(reader.entries(), start=1):
            assert entry.number == number
            assert entry_problem(reader, entry, previous) is None
            previous = entry.hash
        assert reader.uncovered() is None
        assert reader.head().hash == previous
    return number


def test_facts_are_read_as_they_were_written(started):
    with started.reading("p") as reader:
        for key, first, round in (("b1", 0, 1), ("b2", 4, 2)):
            entry = reader.entry("batch", key)
            assert entry.says["round"] == round
            read, written = reader.facts(entry), make_batch(first, round=round)
            assert _same(read.people, written.people)
            assert _same(read.decisions, written.decisions)
            assert read.outcomes is None
            assert read.overrides is None
            assert read.erased is None
            assert read.payload is None
        (settings,) = reader.entries(kind="program")
        assert reader.facts(settings).payload == b"settings"
        assert reader.people_end() == 8
        assert reader.names(np.array([5, 0, 99])) == ["a5", "a0", None]
    assert check_chain(started) == 3


def test_missing_scores_and_applicants_without_groups(started):
    batch = make_batch(8, n=1)
    people = PeopleRows(batch.people.applications, [b""], [None], None)
    decided = DecisionRows(
        3, np.array([True]), np.array([True]), np.array([np.nan]), np.array([np.inf])
    )
    with started.writing("p") as writer:
        entry = writer.append("batch", {}, Facts(people, decided), by="t")
        read = writer.facts(entry)
        assert _same(read.people, people)
        assert _same(read.decisions, decided)
    check_chain(started)


def test_a_block_that_raises_leaves_no_trace(started):
    with started.reading("p") as reader:
        before = reader.head()

    def fail():
        with started.writing("p") as writer:
            writer.append("batch", {}, make_batch(8), by="t", key="b3")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    with started.reading("p") as reader:
        assert reader.head() == before
        assert reader.people_end() == 8
        assert reader.entry("batch", "b3") is None
    with started.writing("p") as writer:
        writer.append("batch", {}, make_batch(8), by="t", key="b3")
    assert check_chain(started) == 4


@pytest.mark.parametrize(
    ("where", "strange"), [("applications", "a\0"), ("texts", "\ud800"), ("groups", "\0")]
)
def test_invalid_text_late_in_a_large_batch(started, where, strange):
    batch = make_batch(8, n=2500)
    values = list(getattr(batch.people, where))
    values[2300] = strange
    wrong = replace(batch, people=replace(batch.people, **{where: values}))
    refused = pytest.raises(InputError)
    with refused, started.writing("p") as writer:
        writer.append("batch", {}, wrong, by="t", key="large")
    assert check_chain(started) == 3
    with started.writing("p") as writer:
        writer.append("batch", {}, batch, by="t", key="large")
    assert check_chain(started) == 4
    with started.reading("p") as reader:
        entry = reader.entry("batch", "large")
        assert _same(reader.facts(entry).people, batch.people)


def test_keys_and_names_are_unique(started):
    two = make_batch(8, n=2)
    for facts, key, message in (
        (make_batch(8), "b1", r"batch 'b1'"),
        (
            make_batch(7),
            "b3",
            r"'a\d+'",
        ),
        (
            replace(two, people=PeopleRows(["z", "z"], [b"", b""], [None, None])),
            "b3",
            r"'z'",
        ),
        (
            replace(two, people=PeopleRows(["z", "z\0"], [b"", b""], [None, None])),
            "b3",
            r"NUL",
        ),
        (
            replace(two, decisions=None),
            "b3",
            r"decisions",
        ),
        (make_batch(8, n=0), "b3", r"\w"),
        (Facts(erased=np.array([], np.int64)), "b3", r"\w"),
        (
            replace(two, people=PeopleRows(["z", "y", "x"], [b""] * 2, [None] * 2)),
            "b3",
            r"applications 3, numbers 2",
        ),
    ):
        with pytest.raises(InputError, match=message), started.writing("p") as writer:
            writer.append("batch", {}, facts, by="t", key=key)
    message = "'p'"
    with pytest.raises(InputError, match=message), started.creating("p"):
        pass
    message = r"'gossip'"
    with pytest.raises(InputError, match=message), started.writing("p") as writer:
        writer.append("gossip", {}, Facts(), by="t")
    assert check_chain(started) == 3


def test_the_message_names_an_application_that_exists_already(started):
    for at, name in enumerate(["a, 1)", ")=(b, 3", "it's\n(c, 2), 4)", "\u00e9%s", "5"]):
        first, again = make_batch(100 + 9 * at, n=3), make_batch(500 + 9 * at, n=3)
        people = replace(first.people, applications=[name, *first.people.applications[1:]])
        later = replace(again.people, applications=[*again.people.applications[1:], name])
        with started.writing("p") as writer:
            writer.append("batch", {}, replace(first, people=people), by="t", key=f"{at}")
        taken = re.escape(repr(name))
        with pytest.raises(InputError, match=taken), started.writing("p") as writer:
            writer.append("batch", {}, replace(again, people=later), by="t", key=f"{at} b")


def test_programs_are_independent(started):
    with started.creating("q") as writer:
        writer.append("batch", {}, make_batch(0, n=2, seed=5), by="t", key="b1")
    assert started.programs() == ["p", "q"]
    with started.reading("q") as reader:
        assert reader.people_end() == 2
    assert check_chain(started, "q") == 1
    message = r"'r' .*'p', 'q'"
    with pytest.raises(LedgerError, match=message), started.reading("r"):
        pass


def test_outcomes_are_recorded_once_and_for_accepted_applicants_only(started):
    with started.writing("p") as writer:
        writer.append("outcomes", {}, _outcomes([4, 0], ["bad", "good"]), by="t")
    refused = (
        (
            "outcomes",
            _outcomes([1], ["good"]),
            UnknownIdError,
            r"1 of 1 .*number 1\b",
        ),
        (
            "outcomes",
            _outcomes([99], ["good"]),
            UnknownIdError,
            r"number 99\b",
        ),
        ("outcomes", _outcomes([0], ["bad"]), InputError, "number 0 "),
        ("outcomes", _outcomes([2, 2], ["bad", "bad"]), InputError, "twice"),
        ("outcomes", _outcomes([2], ["late"]), InputError, "'late'"),
        ("correction", _outcomes([2], ["bad"]), InputError, "number 2 "),
    )
    for kind, facts, error, message in refused:
        with pytest.raises(error, match=message), started.writing("p") as writer:
            writer.append(kind, {}, facts, by="t")
    with started.writing("p") as writer:
        writer.append("correction", {}, _outcomes([0], ["bad"]), by="an auditor")
        standing = writer.standing(["a4", "a0", "a2", "a1", "unknown"])
    assert standing.persons.tolist() == [4, 0, 2, 1, -1]
    assert standing.states == ["bad", "bad", None, None, None]
    assert standing.accepted.tolist() == [True, True, True, False, False]
    assert standing.round.tolist() == [2, 1, 1, 1, -1]
    assert check_chain(started) == 5


def test_an_override_changes_who_is_accepted(started):
    rows = OverrideRows(np.array([1, 0]), np.array([True, False]), ["a guarantor", "fraud"])
    with started.writing("p") as writer:
        entry = writer.append("override", {}, Facts(overrides=rows), by="a person")
        read = writer.facts(entry).overrides
        assert list(read.reasons) == ["fraud", "a guarantor"]
        writer.append("outcomes", {}, _outcomes([1], ["good"]), by="t")
    with pytest.raises(UnknownIdError), started.writing("p") as writer:
        writer.append("outcomes", {}, _outcomes([0], ["good"]), by="t")
    with started.reading("p") as reader:
        standing = reader.standing(["a0", "a1", "a2"])
    assert standing.accepted.tolist() == [False, True, True]
    assert standing.overridden.tolist() == [True, True, False]
    check_chain(started)


def test_the_newest_override_counts(started):
    with started.writing("p") as writer:
        for to, why in ((False, "fraud"), (True, "none after all")):
            rows = OverrideRows(np.array([0]), np.array([to]), [why])
            last = writer.append("override", {"undo": to}, Facts(overrides=rows), by="t")
        writer.append("outcomes", {}, _outcomes([0], ["good"]), by="t")
    with started.reading("p") as reader:
        standing = reader.standing(["a0"])
        assert reader.listed(0, 1).overrides == [(True, "none after all", last.number)]
        assert reader.overridden_by(np.array([1, 0, 99])).tolist() == [-1, last.number, -1]
        batch = reader.entry("batch", "b1")
        assert reader.awaited(batch) == [("a2", "")]
        assert reader.awaited(batch, groups=True) == [("a2", '["A"]')]
        assert [entry.says["undo"] for entry in reader.newest_first("override")] == [
            True,
            False,
        ]
        counts = reader.head_counts()
    assert (standing.accepted.tolist(), standing.states) == ([True], ["good"])
    assert counts.n[counts.override == 1].tolist() == [1]
    assert not (counts.override == 0).any()
    check_chain(started)


def test_an_erasure_deletes_personal_data_and_keeps_the_chain(started):
    with started.writing("p") as writer:
        state = writer.append("snapshot", {}, Facts(payload=b"state"), by="t")
        writer.append("erasure", {"why": "asked"}, Facts(erased=np.array([5, 0])), by="t")
    with started.reading("p") as reader:
        entry = reader.entry("batch", "b1")
        read, written = reader.facts(entry), make_batch(0)
        row = (read.people.applications, read.people.numbers, read.people.texts)
        assert [column[0] for column in row] == [None, None, None]
        assert read.people.groups[0] is None
        assert read.people.applications[1] == "a1"
        assert _same(read.decisions, written.decisions)
        assert reader.facts(state).payload is None
        assert reader.names(np.array([0, 5, 1])) == [None, None, "a1"]
    assert check_chain(started) == 5


def test_an_erasure_keeps_later_states_and_frees_the_name(started):
    with started.writing("p") as writer:
        before = writer.append("snapshot", {}, Facts(payload=b"with them"), by="t")
        policy = writer.append("policy", {}, Facts(payload=b"a model"), by="t")
        writer.append("erasure", {}, Facts(erased=np.array([2])), by="t")
        after = writer.append("snapshot", {}, Facts(payload=b"without"), by="t")
        assert writer.facts(before).payload is None
        assert writer.standing(["a2", "a3"]).persons.tolist() == [-1, 3]
    with started.reading("p") as reader:
        kept = [reader.facts(entry).payload for entry in (before, policy, after)]
        assert kept == [None, b"a model", b"without"]
    assert check_chain(started) == 7
    with started.writing("p") as writer:  # the name is free again
        people = PeopleRows(["a2"], [b""], [None], ['["A"]'])
        decided = make_batch(8, n=1).decisions
        writer.append("batch", {}, Facts(people, decided), by="t", key="b3")
        assert writer.standing(["a2"]).persons.tolist() == [8]
    check_chain(started)


def test_states_that_are_needed_no_more_are_dropped(started):
    def states() -> dict[str, bytes | None]:
        with started.reading("p") as reader:
            found = reader.entries(kind="snapshot")
            return {entry.says["says"]: reader.facts(entry).payload for entry in found}

    def store(*names: str):
        for name in names:
            with started.writing("p") as writer:
                facts = Facts(payload=name.encode())
                writer.append("snapshot", {"says": name}, facts, by="t")

    store("a", "b", "c")
    assert states() == {"a": None, "b": b"b", "c": b"c"}
    with started.writing("p") as writer:
        writer.append("erasure", {}, Facts(erased=np.array([2])), by="t")
    store("d", "e", "f", "g")
    assert states() == dict.fromkeys("abce") | {"d": b"d", "f": b"f", "g": b"g"}
    check_chain(started)


def test_the_header_of_a_hold_lists_applicants(started):
    with started.writing("p") as writer:
        for is_held, persons in ((True, [1, 4, 5]), (False, [4])):
            header = {"held": is_held, "persons": persons, "reason": "a court"}
            writer.append("hold", header, Facts(), by="t")
    with started.reading("p") as reader:
        assert held(reader).tolist() == [1, 5]
    assert check_chain(started) == 5


def test_writers_of_a_program_take_turns(started):
    n_threads, each = 4, 5
    errors: list[BaseException] = []

    def write(thread: int):
        try:
            for turn in range(each):
                with started.writing("p") as writer:
                    first = writer.people_end()
                    batch = make_batch(first, n=3)
                    writer.append("batch", {}, batch, by="t", key=f"{thread}/{turn}")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(at,)) for at in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    with started.reading("p") as reader:
        assert reader.people_end() == 8 + 3 * n_threads * each
        keys = {entry.key for entry in reader.entries(kind="batch")}
    assert keys >= {f"{at}/{turn}" for at in range(n_threads) for turn in range(each)}
    assert check_chain(started) == 3 + n_threads * each


def test_a_reader_sees_one_snapshot(started):
    with started.reading("p") as reader:
        before = reader.head()
        with started.writing("p") as writer:
            writer.append("batch", {}, make_batch(8), by="t", key="b3")
        assert reader.head() == before
        assert reader.people_end() == 8
    with started.reading("p") as reader:
        assert reader.people_end() == 12
