"""Rounds that are open: applicants are added one by one, by many processes at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sqlalchemy as sa

from fairchance.errors import InputError, KnownApplicationError, LedgerError, RoundClosedError
from fairchance.ledger import schema
from fairchance.ledger.base import Facts, OutcomeRows
from fairchance.ledger.inserts import BLOCK
from fairchance.ledger.retention import Deadlines
from fairchance.ledger.sql import SqlLedger
from fairchance.ledger.verification.hashes import entry_problem, round_problem
from ledger.batches import make_batch
from ledger.test_contract import check_chain


@pytest.fixture
def ledger(url):
    """Return a ledger whose program has one batch of four applicants, and no open round."""
    ledger = SqlLedger(url, make=True)
    with ledger.creating("p") as writer:
        writer.append("program", {"alpha": 0.15}, Facts(payload=b"settings"), by="t")
        writer.append("batch", {"round": 1}, make_batch(0), by="t", key="b1")
    yield ledger
    ledger.close()


def begin(ledger, round=2):
    with ledger.writing("p") as writer:
        return writer.begin_round(round, {"policy": 1}, Facts(), groups=True, by="t")


def close(ledger, **header):
    with ledger.writing("p") as writer:
        return writer.close_round(header, by="t")


def add(ledger, opened, first, n=1):
    batch = make_batch(first, n, round=opened.says["round"])
    return ledger.record_in_round("p", opened, batch)


def test_applicants_of_an_open_round_are_recorded_and_covered_when_it_closes(ledger):
    opened = begin(ledger)
    assert opened.kind == "round"
    receipts = [receipt for at in range(4, 8) for receipt in add(ledger, opened, at)]
    receipts += add(ledger, opened, 8, n=200)
    assert check_chain(ledger) == 3
    with ledger.reading("p") as reader:
        assert reader.open_round() == opened
        assert reader.standing(["a4", "a207"]).round.tolist() == [2, 2]
        known = reader.recorded(["a5", "nobody", "a4", "a1"])
        assert [*known.people.applications] == ["a1", "a4", "a5"]
        assert known.rounds.tolist() == [1, 2, 2]
        assert known.receipts[1:] == receipts[:2]
        assert known.people.groups is not None
        assert reader.head_counts().n.sum() == 4 + 204
    closed = close(ledger, certified=False)
    assert (closed.kind, closed.says["opened"], closed.says["round"]) == ("batch", opened.number, 2)
    assert closed.says["rows"]["n"] == 204
    assert check_chain(ledger) == 4
    with ledger.reading("p") as reader:
        assert reader.open_round() is None
        assert reader.stored_digests(closed).decisions == b"".join(receipts)
        facts = reader.facts(closed)
        assert [*facts.people.applications] == [f"a{at}" for at in range(4, 208)]
        names = [name for people, _ in reader.parts(closed, 50) for name in people.applications]
        assert names == [*facts.people.applications]
        assert [*reader.parts(opened)] == []
    with pytest.raises(RoundClosedError):
        add(ledger, opened, 300)
    with ledger.writing("p") as writer:
        writer.append("batch", {"round": 3}, make_batch(300, round=3), by="t")
    assert check_chain(ledger) == 5


def test_one_round_is_open_at_a_time_and_only_it_takes_applicants(ledger):
    opened = begin(ledger)
    with pytest.raises(InputError, match="round 2 is open"):
        begin(ledger, 3)
    with pytest.raises(InputError, match="a round is open"), ledger.writing("p") as writer:
        writer.append("batch", {"round": 3}, make_batch(4, round=3), by="t")
    with pytest.raises(InputError, match="round 2 takes its own"):
        ledger.record_in_round("p", opened, make_batch(4, round=3))
    close(ledger)
    with pytest.raises(LedgerError, match="no round"):
        close(ledger)
    second = begin(ledger, 3)
    with pytest.raises(RoundClosedError):
        add(ledger, opened, 4)
    assert add(ledger, second, 4)
    assert check_chain(ledger) == 5


def test_a_known_application_is_refused_and_nothing_else_of_the_call_recorded(ledger):
    opened = begin(ledger)
    add(ledger, opened, 4)
    for first, n in ((4, 1), (3, 3), (0, 1), (2, 150)):
        with pytest.raises(KnownApplicationError):
            add(ledger, opened, first, n)
    with ledger.reading("p") as reader:
        assert (reader.standing(["a5", "a6", "a100"]).persons == -1).all()
    add(ledger, opened, 5)
    assert close(ledger).says["rows"]["n"] == 2
    assert check_chain(ledger) == 4


def test_an_empty_round(ledger):
    opened = begin(ledger)
    closed = close(ledger)
    first = opened.says["rows"]["first"]
    assert closed.says["rows"] == {"first": first, "n": 0, "end": first, "groups": True}
    assert check_chain(ledger) == 4
    with ledger.reading("p") as reader:
        assert reader.facts(closed).people is None


def test_other_entries_while_a_round_is_open(ledger):
    opened = begin(ledger)
    add(ledger, opened, 4, n=4)
    with ledger.writing("p") as writer:
        persons = writer.standing(["a0", "a4"]).persons
        writer.append("outcomes", {}, Facts(outcomes=OutcomeRows(persons, ["good", "bad"])), by="t")
        writer.append("erasure", {"reason": "asked"}, Facts(erased=persons[:1]), by="t")
    ledger.compact()
    add(ledger, opened, 8)
    assert check_chain(ledger) == 5
    close(ledger)
    assert check_chain(ledger) == 6
    with ledger.reading("p") as reader:
        assert reader.standing(["a4", "a8"]).states == ["bad", None]


def test_imported_decisions_join_the_open_round_with_an_entry_that_names_them(ledger):
    opened = begin(ledger)
    add(ledger, opened, 4)
    with ledger.writing("p") as writer:
        receipts = writer.record_in_round(opened, make_batch(5, 3, round=2))
        persons = writer.standing(["a5", "a6", "a7"]).persons.tolist()
        writer.append("import", {"where": "branch 7", "persons": persons}, Facts(), by="t")
    add(ledger, opened, 8)
    closed = close(ledger)
    assert closed.says["rows"]["n"] == 5
    with ledger.reading("p") as reader:
        assert reader.recorded(["a5", "a6", "a7"]).receipts == receipts
    assert check_chain(ledger) == 5
    with ledger.writing("p") as writer, pytest.raises(RoundClosedError):
        writer.record_in_round(opened, make_batch(9, 1, round=2))


def test_a_writer_does_not_wait_for_the_program_on_postgresql(ledger, url):
    if url.startswith("sqlite"):
        pytest.skip("SQLite has one writer")
    opened = begin(ledger)
    with ledger.writing("p") as writer:
        persons = np.array([0])
        writer.append("outcomes", {}, Facts(outcomes=OutcomeRows(persons, ["good"])), by="t")
        add(ledger, opened, 4)
        with ledger.reading("p") as reader:
            assert reader.standing(["a4"]).persons >= 4
    assert close(ledger).says["rows"]["n"] == 1


def damaged(ledger, statement):
    """Change the database, and return what a check finds."""
    with ledger.engine.connect().execution_options(writes=True) as connection:
        connection.execute(statement)
        connection.commit()
    with ledger.reading("p") as reader:
        return reader.uncovered() or round_problem(reader)


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"round": 7}, "person 5 in table people belongs to no entry"),
        ({"numbers": b"other"}, "data of person 5"),
        ({"application": "forged"}, "data of person 5"),
        ({"application": None, "salt": None}, "person 5 has no data"),
    ],
)
def test_a_changed_row_of_an_open_round_is_found(ledger, values, found):
    opened = begin(ledger)
    with ledger.writing("p") as writer:
        writer.record_in_round(opened, make_batch(4, 3, round=2))
    change = sa.update(schema.people).where(schema.people.c.person == 5).values(values)
    assert found in damaged(ledger, change)


@pytest.mark.parametrize(
    "values", [{"closed": None}, {"opened": 1}, {"round": 9}, {"reserved": 99}]
)
def test_a_changed_row_of_rounds_is_found(ledger, values):
    add(ledger, begin(ledger), 4)
    close(ledger)
    with ledger.reading("p") as reader:
        assert reader.uncovered() is None
    found = damaged(ledger, sa.update(schema.rounds).values(values))
    assert "in table rounds differs from its entries" in found


def test_an_added_row_of_rounds_is_found(ledger):
    begin(ledger)
    last = close(ledger).number
    row = {"program": 1, "round": 19, "opened": last, "reserved": 0}
    found = damaged(ledger, sa.insert(schema.rounds).values(row))
    assert found == "round 19 in table rounds differs from its entries"


def test_threads_of_a_process_share_a_ledger(ledger):
    opened = begin(ledger)
    with ThreadPoolExecutor(4) as pool:
        receipts = [*pool.map(lambda at: add(ledger, opened, at)[0], range(4, 64))]
    with ledger.reading("p") as reader:
        stored = reader.recorded([f"a{at}" for at in range(4, 64)])
    assert {*stored.receipts} == {*receipts}
    assert close(ledger).says["rows"]["n"] == 60
    check_chain(ledger)


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_numbers_may_have_gaps(ledger, url):
    """Each connection takes a block of numbers, of which a round may leave some."""
    opened, other = begin(ledger), SqlLedger(url)
    for at in range(4, 8):
        add(ledger if at % 2 else other, opened, at)
    other.close()
    closed = close(ledger)
    persons = [4, 5, 4 + BLOCK, 5 + BLOCK]
    rows = closed.says["rows"]
    assert (rows["first"], rows["n"], rows["end"]) == (4, 4, persons[-1] + 1)
    with ledger.reading("p") as reader:
        assert reader.facts(closed).people.persons.tolist() == persons
        listed = reader.listed(rows["first"], rows["end"])
        assert listed.people.persons.tolist() == persons
        assert len(listed.outcomes) == 4
        assert Deadlines.of(reader, 0).over(reader, closed.when).tolist() == [*range(4), *persons]
    with ledger.writing("p") as writer:
        after = writer.append("batch", {"round": 3}, make_batch(100, round=3), by="t")
        writer.append("erasure", {}, Facts(erased=np.array(persons[1:3])), by="t")
    assert after.people_range.start == rows["end"]
    check_chain(ledger)
    with ledger.engine.connect() as connection:
        for table in (schema.group_values, schema.people):
            connection.execute(sa.delete(table).where(table.c.person == persons[3]))
        connection.commit()
    with ledger.reading("p") as reader:
        before = next(reader.entries(closed.number - 2)).hash
        found = entry_problem(reader, closed, before)
    assert found == "it has 3 rows of people instead of 4"


def test_a_large_round_is_read_in_parts(ledger):
    """Its last part is as it is if read at once."""
    opened = begin(ledger)
    add(ledger, opened, 4, n=250)
    closed = close(ledger)
    with ledger.reading("p") as reader:
        whole, parts = reader.stored(closed), [*reader.stored_parts(closed, 100)]
        assert [len(part.people["person"]) for part in parts] == [0, 100, 100, 50]
        for name in ("people", "group_values"):
            for column, values in getattr(whole, name).items():
                joined = [value for part in parts for value in getattr(part, name)[column]]
                assert joined == list(values)
