"""What was changed in a ledger is named as exactly as can be known, and never more exactly."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ledger.lived_programs import erase
from ledger.test_finite_programs import cells
from ledger.test_finite_programs import lived as lived_in_cells
from ledger_worlds import algorithm_1, certified, started
from secondlook.ledger import locating
from secondlook.ledger.chain import people_digests
from secondlook.ledger.program import Program
from secondlook.ledger.proofs import ByPolicies
from secondlook.ledger.sql import SqlLedger
from secondlook.ledger.verifying import verify

N_PAST, N_BATCH = 600, 300
ROW = 123
PERSON = N_PAST + ROW  # of the first batch
WHO = f"application 'A-{ROW}' (person {PERSON})"
OTHER = f"person {PERSON}, now called 'A-{ROW}',"


def a_program(url, classifier):
    """Return a program of two batches, in which outcomes were told, corrected and overridden."""
    past = [f"H-{at}" for at in range(N_PAST)]
    program, _, (one, two, *_) = started(url, classifier, n_batch=N_BATCH, ids=past)
    names = np.array([f"A-{at}" for at in range(N_BATCH)])
    group = one.people.group
    decided = program.decide(one.people.X, sensitive_features=group, ids=names, batch="b1")
    yes, good = decided.ids[decided.accepted], one.outcome[decided.accepted]
    program.observe(yes[5:], good[5:])
    program.observe(yes[5:8], 1 - good[5:8])
    program.override(yes[:3], False, "fraud was found")
    names = np.array([f"B-{at}" for at in range(N_BATCH)])
    program.decide(two.people.X, sensitive_features=two.people.group, ids=names, batch="b2")
    return program


def kept_at(path, make):
    program = a_program(f"sqlite:///{path}", make())
    program.ledger.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


@pytest.fixture(scope="module", params=[algorithm_1, certified])
def whole(request, tmp_path_factory):
    return kept_at(tmp_path_factory.mktemp("whole") / "ledger.db", request.param)


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    return kept_at(tmp_path_factory.mktemp("ours") / "ledger.db", algorithm_1)


class Copy:
    """A copy of a ledger, to be tampered with."""

    def __init__(self, path, folder):
        self.path = folder / "copy.db"
        shutil.copy(path, self.path)
        self.url = f"sqlite:///{self.path}"

    def run(self, statement, *values):
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            found = connection.execute(statement, values)
            return found.fetchall() if found.description else found.rowcount

    def change(self, statement, *values, n=1):
        assert self.run(statement, *values) == n
        return self.problem()

    def problem(self, **options):
        ledger = SqlLedger(self.url)
        found = verify(ledger, **options).problem
        ledger.close()
        return found

    def erase(self, *names):
        program = Program.open(self.url)
        erase(program, names)
        program.ledger.close()

    def entry(self, kind):
        ((number, key),) = self.run(
            "SELECT number, key FROM entries WHERE kind = ? ORDER BY number LIMIT 1", kind
        )
        return number, f"entry {number} ({kind} {key!r}): its rows of"


@pytest.fixture
def copy(whole, tmp_path):
    return Copy(whole, tmp_path)


@pytest.fixture
def our_copy(ours, tmp_path):
    return Copy(ours, tmp_path)


def test_an_untouched_ledger_has_no_problem(copy):
    assert copy.problem() is None
    assert copy.problem(relearn=True) is None


CHANGED = {
    "accepted": "1 - accepted",
    "exploit": "1 - exploit",
    "score": "score / 2",
    "propensity": "coalesce(propensity, 0) + 0.25",
    "threshold": "coalesce(threshold, 0) + 0.25",
    "fold": "1 - coalesce(fold, 0)",
    "round": "7",
}
SAID = {
    "accepted": lambda one: str(bool(one)),
    "exploit": lambda one: "exploit" if one else "explore",
}


@pytest.mark.parametrize("column", CHANGED)
def test_a_changed_decision_is_named_by_its_own_application(copy, column):
    value = f"SELECT {column} FROM people WHERE person = {PERSON}"
    ((was,),) = copy.run(value)
    problem = copy.change(f"UPDATE people SET {column} = {CHANGED[column]} WHERE person = {PERSON}")
    ((now,),) = copy.run(value)
    assert was != now
    was, now = ("none" if one is None else SAID.get(column, repr)(one) for one in (was, now))
    _, batch = copy.entry("batch")
    what = "region" if column == "exploit" else column
    assert problem == f"{batch} decisions were changed: the {what} of {WHO} was {was} and is {now}."


@pytest.mark.parametrize("column", ["score", "propensity", "threshold"])
def test_a_number_that_is_gone_is_named(our_copy, column):
    ((was,),) = our_copy.run(f"SELECT {column} FROM people WHERE person = {PERSON}")
    problem = our_copy.change(f"UPDATE people SET {column} = NULL WHERE person = {PERSON}")
    assert problem.endswith(f": the {column} of {WHO} was {was!r} and is none.")


def test_the_last_bits_of_a_number(our_copy):
    problem = our_copy.change(f"UPDATE people SET score = score + 1e-12 WHERE person = {PERSON}")
    assert f": the score of {WHO} was 0." in problem


@pytest.mark.parametrize("column", ["threshold", "fold"])
def test_a_column_that_was_emptied(our_copy, column):
    everybody = f"person >= {N_PAST} AND person < {N_PAST + N_BATCH}"
    ((was,),) = our_copy.run(f"SELECT {column} FROM people WHERE person = {N_PAST}")
    problem = our_copy.change(f"UPDATE people SET {column} = NULL WHERE {everybody}", n=N_BATCH)
    words = f"the {column} of application 'A-0' (person {N_PAST}) was {was!r} and is none"
    assert problem.endswith(f"{words}, and {N_BATCH - 1} other values were changed.")


@pytest.mark.parametrize("change", ["fold = 1", "score = 0.5", "accepted = 1 - accepted"])
def test_a_history_has_flags_and_no_numbers(our_copy, change):
    _, history = our_copy.entry("history")
    for person, n in ((55, 1), (54, 2)):
        problem = our_copy.change(f"UPDATE people SET {change} WHERE person = {person}")
        column, whose = change.split(" ")[0], f"application 'H-{person}' (person {person})"
        assert f"{history} decisions were changed: the {column} of {whose} was " in problem
        assert ("other value" in problem) == (n == 2)


def test_more_than_one_change(our_copy):
    persons = PERSON, PERSON + 50, PERSON + 51
    for person in persons[1:]:
        assert our_copy.run("UPDATE people SET score = 0.5 WHERE person = ?", person) == 1
    problem = our_copy.change(f"UPDATE people SET accepted = 1 - accepted WHERE person = {PERSON}")
    assert f": the accepted of {WHO} was " in problem
    assert problem.endswith(", and 2 other values were changed.")


def test_a_later_batch(our_copy):
    person = N_PAST + N_BATCH + ROW
    problem = our_copy.change("UPDATE people SET score = 0.5 WHERE person = ?", person)
    assert problem.startswith("entry ")
    assert (
        f"(batch 'b2'): its rows of decisions were changed: the score of application 'B-{ROW}' "
        in (problem)
    )


def test_where_nothing_can_be_decided_again_flags_are_still_proved(our_copy, monkeypatch):
    def fail(self, entry):
        raise RuntimeError("no")

    monkeypatch.setattr(ByPolicies, "decide_again", fail)
    _, batch = our_copy.entry("batch")
    problem = our_copy.change(f"UPDATE people SET accepted = 1 - accepted WHERE person = {PERSON}")
    assert f"{batch} decisions were changed: the accepted of {WHO} was " in problem
    problem = our_copy.change(f"UPDATE people SET accepted = 1 - accepted WHERE person = {PERSON}")
    assert problem is None
    problem = our_copy.change(f"UPDATE people SET score = 0.5 WHERE person = {PERSON}")
    assert problem == f"{batch} decisions were changed."


def test_a_search_that_would_take_long_is_given_up(our_copy, monkeypatch):
    _, batch = our_copy.entry("batch")
    monkeypatch.setattr(ByPolicies, "decide_again", lambda self, entry: None)
    monkeypatch.setattr(locating, "_MOST_HASHED", 40 * N_BATCH * ROW)  # the one before
    problem = our_copy.change(f"UPDATE people SET accepted = 1 - accepted WHERE person = {PERSON}")
    assert problem == f"{batch} decisions were changed."
    monkeypatch.setattr(locating, "_MOST_HASHED", 40 * N_BATCH * (ROW + 1))
    assert WHO in our_copy.problem()


def test_another_machine_proves_flags_and_sees_what_comes_out_otherwise(our_copy, monkeypatch):
    """There, numbers come out with other last bits, and the hash of none of them fits."""
    decide_again = ByPolicies.decide_again

    def other_bits(self, entry):
        made = decide_again(self, entry)
        return replace(made, decided=replace(made.decided, score=made.decided.score * (1 + 1e-14)))

    monkeypatch.setattr(ByPolicies, "decide_again", other_bits)
    _, batch = our_copy.entry("batch")
    flip = f"UPDATE people SET accepted = 1 - accepted WHERE person IN ({PERSON}, {PERSON + 9})"
    problem = our_copy.change(flip, n=2)
    assert f"the accepted of {WHO} was " in problem
    assert problem.endswith(", and 1 other value was changed.")
    assert our_copy.change(flip, n=2) is None
    nearly = our_copy.change(f"UPDATE people SET score = score + 1e-12 WHERE person = {PERSON}")
    assert nearly == f"{batch} decisions were changed."
    problem = our_copy.change(f"UPDATE people SET score = score / 2 WHERE person = {PERSON}")
    words = f"the score of {OTHER} comes out otherwise than recorded"
    assert problem == f"{batch} people or decisions were changed: {words}."


def test_a_person_with_another_hash_is_not_called_the_one_of_the_draw(our_copy):
    """Features and their hash were changed together, and everybody's chance in the draw with it."""
    names = "person, application, numbers, texts, reasons, salt"
    ((person, name, numbers, *others),) = our_copy.run(
        f"SELECT {names} FROM people WHERE person = {PERSON}"
    )
    ((group, second),) = our_copy.run(
        f"SELECT value, salt FROM group_values WHERE person = {PERSON}"
    )
    forged = (np.frombuffer(numbers) + 1.5).tobytes()
    columns = [[one] for one in (person, name, forged, *others, group, second)]
    (digest,) = people_digests(*columns)
    change = f"UPDATE people SET numbers = ?, digest = ? WHERE person = {PERSON}"
    problem = our_copy.change(change, forged, digest)
    _, batch = our_copy.entry("batch")
    words = f"the score of {OTHER} comes out otherwise than recorded"
    assert problem == f"{batch} people or decisions were changed: {words}."


def test_a_round_beside_another_change(our_copy):
    assert our_copy.run(f"UPDATE people SET score = 2 WHERE person = {PERSON + 1}") == 1
    problem = our_copy.change(f"UPDATE people SET round = 7 WHERE person = {PERSON}")
    assert f": the round of {WHO} was 1 and is 7, and 1 other value was changed." in problem


@pytest.mark.parametrize("column", ["accepted", "exploit", "score"])
def test_people_beside_the_erased(our_copy, column):
    our_copy.erase("A-7", "A-200")
    assert our_copy.problem() is None
    problem = our_copy.change(
        f"UPDATE people SET {column} = {CHANGED[column]} WHERE person = {PERSON}"
    )
    what = "region" if column == "exploit" else column
    assert f": the {what} of {WHO} was " in problem


def test_decisions_on_the_erased(our_copy):
    our_copy.erase(f"A-{ROW}")
    _, batch = our_copy.entry("batch")
    problem = our_copy.change(f"UPDATE people SET accepted = 1 - accepted WHERE person = {PERSON}")
    assert f"{batch} decisions were changed: the accepted of person {PERSON} was " in problem
    our_copy.run(f"UPDATE people SET accepted = 1 - accepted WHERE person = {PERSON}")
    problem = our_copy.change(f"UPDATE people SET score = 0.5 WHERE person = {PERSON}")
    assert problem == f"{batch} decisions were changed."


def test_decisions_that_are_proved_by_learning(tmp_path, rng):
    program, _ = lived_in_cells(f"sqlite:///{tmp_path}/cells.db", cells(), rng)
    program.ledger.close()
    copy = Copy(tmp_path / "cells.db", tmp_path)
    assert copy.problem() is None
    person = 200 + 80 + 33  # of the second batch
    ((name,),) = copy.run(f"SELECT application FROM people WHERE person = {person}")
    problem = copy.change(f"UPDATE people SET propensity = 0.123 WHERE person = {person}")
    assert f": the propensity of application {name!r} (person {person}) was " in problem
    assert problem.endswith(" and is 0.123.")


def test_a_ledger_of_the_first_version(tmp_path):
    """It has neither thresholds nor folds, and group values have hashes of their own."""
    copy = Copy(Path(__file__).parent / "first.db", tmp_path)
    assert copy.problem() is None
    flip = "UPDATE people SET accepted = 1 - accepted WHERE person IN (130, 140)"
    problem = copy.change(flip, n=2)
    place = "entry 4 (batch 'b0'): its rows of decisions were changed"
    assert problem.startswith(f"{place}: the accepted of application '130' (person 130) was ")
    assert problem.endswith(", and 1 other value was changed.")
    assert copy.change(flip, n=2) is None
    problem = copy.change("UPDATE group_values SET value = '[\"C\"]' WHERE person = 130")
    words = "the group value of person 130, now called '130', was changed"
    assert problem == f"entry 4 (batch 'b0'): {words}."


@pytest.mark.parametrize("kind", ["history", "outcomes", "correction"])
def test_a_changed_outcome_is_named(our_copy, kind):
    number, entry = our_copy.entry(kind)
    rows = our_copy.run(
        f"SELECT person, state, application FROM outcomes JOIN people USING (program, person) "
        f"WHERE entry = {number} ORDER BY person"
    )
    person, state, name = rows[len(rows) // 2]
    whose, where = (
        f"application {name!r} (person {person})",
        f"entry = {number} AND person = {person}",
    )
    other = "bad" if state == "good" else "good"
    problem = our_copy.change(f"UPDATE outcomes SET state = '{other}' WHERE {where}")
    words = f"the outcome of {whose} was {state!r} and is {other!r}"
    assert problem == f"{entry} outcomes were changed: {words}."
    problem = our_copy.change(f"DELETE FROM outcomes WHERE {where}")
    words = f"the outcome of {whose} was {state!r} and is gone"
    assert problem == f"{entry} outcomes were changed: {words}."
    back = f"INSERT INTO outcomes SELECT program, {number}, {person}, '{state}' FROM programs"
    assert our_copy.change(back) is None


def test_an_added_outcome_is_named(our_copy):
    number, entry = our_copy.entry("outcomes")
    rejected = our_copy.run(
        f"SELECT person, application FROM people WHERE accepted = 0 AND person >= {N_PAST} LIMIT 2"
    )
    for n, (person, name) in enumerate(rejected, start=1):
        add = f"INSERT INTO outcomes SELECT program, {number}, {person}, 'good' FROM programs"
        problem = our_copy.change(add)
        if n == 1:
            first = f"application {name!r} (person {person})"
            assert (
                problem == f"{entry} outcomes were changed: the outcome of {first} was not there."
            )
    why = "cannot be, since the person does not stand accepted"
    assert problem == f"{entry} outcomes were changed: the outcome of {first} {why}."


def test_an_outcome_of_nobody(our_copy):
    number, entry = our_copy.entry("outcomes")
    change = f"UPDATE outcomes SET person = 99999 WHERE entry = {number} AND person = (SELECT "
    change += f"max(person) FROM outcomes WHERE entry = {number})"
    words = "the outcome of person 99999 cannot be, since nobody has that number"
    assert our_copy.change(change) == f"{entry} outcomes were changed: {words}."


def test_many_changed_outcomes_are_not_named(our_copy):
    number, entry = our_copy.entry("outcomes")
    ((n,),) = our_copy.run(f"SELECT count(*) FROM outcomes WHERE entry = {number}")
    change = "UPDATE outcomes SET state = CASE state WHEN 'good' THEN 'bad' ELSE 'good' END "
    problem = our_copy.change(f"{change} WHERE entry = {number}", n=n)
    assert problem == f"{entry} outcomes were changed."


def test_a_changed_override_is_named(our_copy):
    number, entry = our_copy.entry("override")
    (_, (person, name), _) = our_copy.run(
        f"SELECT person, application FROM overrides JOIN people USING (program, person) "
        f"WHERE entry = {number} ORDER BY person"
    )
    where, whose = f"WHERE person = {person}", f"application {name!r} (person {person})"
    problem = our_copy.change(f"UPDATE overrides SET accepted = 1 {where}")
    words = f"the override of {whose} was False and is True"
    assert problem == f"{entry} overrides were changed: {words}."
    problem = our_copy.change(f"UPDATE overrides SET accepted = 0, reason = 'whim' {where}")
    words = f"the override of {whose} had the reason 'fraud was found' and has 'whim'"
    assert problem == f"{entry} overrides were changed: {words}."
    assert our_copy.change(f"UPDATE overrides SET reason = 'fraud was found' {where}") is None
    add = f"INSERT INTO overrides SELECT program, {number}, {{}}, 0, 'x' FROM programs"
    problem = our_copy.change(add.format(5))
    words = "the override of application 'H-5' (person 5) was not there"
    assert problem == f"{entry} overrides were changed: {words}."
    assert our_copy.change(add.format(6)) == f"{entry} overrides were changed."


def test_an_added_erasure_is_named(our_copy):
    our_copy.erase(f"A-{ROW}")
    number, entry = our_copy.entry("erasure")
    add = f"INSERT INTO erasures SELECT program, {number}, {{}} FROM programs"
    words = "the erasure of application 'H-5' (person 5) was not there"
    assert our_copy.change(add.format(5)) == f"{entry} erasures were changed: {words}."
    words = (
        "the erasure of application 'H-5' (person 5) cannot be, since the person's name is there"
    )
    assert our_copy.change(add.format(6)) == f"{entry} erasures were changed: {words}."


LONG = "x" * 500


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("numbers = x'00' || substr(numbers, 2)", f"{OTHER} was changed"),
        ("application = 'somebody'", f"person {PERSON}, now called 'somebody', was changed"),
        ("application = x'00ff'", r"now called b'\x00\xff', is"),
        ("application = 7", "now called '7', was changed"),
        (f"application = '{LONG}'", f"now called '{LONG[:47]}...{LONG[:48]}', was changed"),
        ("application = NULL", f": person {PERSON} lacks data, and no erasure says so"),
        ("salt = NULL", f": {OTHER} lacks data, and no erasure says so"),
    ],
)
def test_a_changed_person_is_named_as_now_called(our_copy, change, words):
    change = change.replace("numbers = x'00'", "numbers = CAST(x'00'").replace("2)", "2) AS BLOB)")
    problem = our_copy.change(f"UPDATE people SET {change} WHERE person = {PERSON}")
    assert problem.startswith("entry 6 (batch 'b1'): ")
    assert words in problem
    assert len(problem) < 250


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("people SET score = 'high'", f"score of {OTHER} is 'high'"),
        ("people SET accepted = 7", f"accepted of {OTHER} is 7"),
        ("people SET fold = 0.5", f"fold of {OTHER} is 0.5"),
        ("people SET numbers = 'x'", f"numbers of {OTHER} is 'x'"),
        (
            "people SET texts = CAST(x'ff' AS TEXT)",
            f"texts of person {PERSON} in people is no text",
        ),
        ("group_values SET value = x'00'", rf"value of {OTHER} is b'\x00'"),
    ],
)
def test_what_cannot_be_there_is_named(our_copy, change, words):
    problem = our_copy.change(f"UPDATE {change} WHERE person = {PERSON}")
    assert problem.startswith("entry 6 (batch 'b1'): its rows hold what cannot be there (")
    assert problem.endswith(f"): {words}.")


def test_an_outcome_that_is_none_is_named(our_copy):
    number, _ = our_copy.entry("outcomes")
    ((person,),) = our_copy.run(f"SELECT max(person) FROM outcomes WHERE entry = {number}")
    where = f"entry = {number} AND person = {person}"
    problem = our_copy.change(f"UPDATE outcomes SET state = 'fair' WHERE {where}")
    name = f"application 'A-{person - N_PAST}' (person {person})"
    assert problem.endswith(f"(an outcome is 'fair'): state of {name} is 'fair'.")


@pytest.mark.parametrize("table", ["people", "group_values"])
def test_a_missing_person_is_named(our_copy, table):
    problem = our_copy.change(f"DELETE FROM {table} WHERE person = {PERSON}")
    n = f"{N_BATCH - 1} of {N_BATCH} are there"
    assert problem.endswith(f" are missing or too many: {n}, and person {PERSON} is missing.")


UNCOVERED = {
    "INSERT INTO payloads SELECT program, 999, NULL, digest FROM payloads WHERE entry = 1": (
        "rows of payloads, and the entries cover",
        "one names entry 999, which is not there",
    ),
    "INSERT INTO payloads SELECT program, 999, content, digest FROM payloads WHERE entry = 1": (
        "rows of payloads, and the entries cover",
        "one names entry 999, which is not there",
    ),
    "INSERT INTO erasures SELECT program, 999, 5 FROM programs": (
        "rows of erasures, and the entries cover",
        "one names entry 999, which is not there",
    ),
    "INSERT INTO people SELECT program, 90000, 'x', numbers, texts, salt, digest, round, accepted, "
    "exploit, score, propensity, threshold, fold, reasons FROM people WHERE person = 5": (
        "rows of people, and the entries cover",
        "no entry covers person 90000, now called 'x'",
    ),
    "INSERT INTO group_values SELECT program, 90000, value, salt, digest FROM group_values "
    "WHERE person = 5": (
        "rows of groups, and the entries cover",
        "no entry covers person 90000",
    ),
    "INSERT INTO entries SELECT program, -1, kind, 'b3', at, \"by\", header, content, previous, "
    "hash FROM entries WHERE number = 6": (
        "rows of entries, and the entries cover",
        "entry -1 comes before the first",
    ),
}
BACK = (
    "DELETE FROM payloads WHERE entry = 999",
    "DELETE FROM erasures WHERE entry = 999",
    "DELETE FROM people WHERE person = 90000",
    "DELETE FROM group_values WHERE person = 90000",
    "DELETE FROM entries WHERE number = -1",
)


def forge(url, *statements):
    """Run SQL past all keys, as whoever owns the database can; return how many rows changed."""
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))  # which heeds no foreign keys
    else:
        import psycopg  # noqa: PLC0415

        connection = psycopg.connect(url)
        connection.execute("SET session_replication_role = replica")
    with closing(connection), connection:
        return sum(connection.execute(one).rowcount for one in statements)


def test_a_group_value_that_others_have_is_proved(our_copy):
    ((was,),) = our_copy.run(f"SELECT value FROM group_values WHERE person = {PERSON}")
    ((now,),) = our_copy.run(f"SELECT DISTINCT value FROM group_values WHERE value <> '{was}'")
    problem = our_copy.change(f"UPDATE group_values SET value = '{now}' WHERE person = {PERSON}")
    assert problem.endswith(f": the group value of {WHO} was {was!r} and is {now!r}.")
    change = f"UPDATE group_values SET value = '[\"C\"]' WHERE person = {PERSON}"
    problem = our_copy.change(change)
    assert problem.endswith(f": the group value of {WHO} was {was!r} and is '[\"C\"]'.")
    our_copy.run(f"UPDATE group_values SET value = '{was}' WHERE person = {PERSON}")
    assert our_copy.problem() is None
    (digest,) = our_copy.run(f"SELECT digest FROM people WHERE person = {PERSON}")[0]
    hashed = f"UPDATE people SET digest = ? WHERE person = {PERSON}"
    problem = our_copy.change(hashed, bytes(32))
    assert problem.endswith(f": the hash of {WHO} was changed.")
    our_copy.run(hashed, digest)
    other = our_copy.change(f"UPDATE people SET salt = ? WHERE person = {PERSON}", bytes(16))
    assert other.endswith(f": {OTHER} was changed.")


def test_what_no_entry_covers_is_found_and_named(url):
    program, _, (one, *_) = started(url, algorithm_1(), n_batch=30, n_rounds=1)
    program.decide(one.people.X, sensitive_features=one.people.group)
    program.snapshot()
    erase(program, ["3"])  # which leaves the row of the state without its content
    for statement, (what, where) in UNCOVERED.items():
        assert forge(url, statement) == 1
        problem = verify(program.ledger).problem
        assert what in problem
        assert problem.endswith(f": {where}.")
        assert forge(url, *BACK) == 1
    assert verify(program.ledger).problem is None
    if not url.startswith("sqlite"):  # where no key keeps people from being there twice
        forge(url, "INSERT INTO group_values SELECT * FROM group_values WHERE person = 620")
        words = (
            "group values are missing or too many: 31 of 30 are there, and person 620 is there 2"
        )
        assert words in verify(program.ledger).problem
    program.ledger.close()
