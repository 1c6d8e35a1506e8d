"""People who were changed, are missing or are too many are named."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from ledger.lived_programs import erase
from ledger.tampered import N_BATCH, N_PAST, OTHER, PERSON, ROW, WHO, Copy, kept
from ledger_worlds import algorithm_1, started
from secondlook.ledger.verifying import verify


@pytest.fixture
def our_copy(tmp_path):
    return Copy(kept(algorithm_1), tmp_path)


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


def test_several_people_are_judged_each_by_their_own_hash(our_copy):
    persons = (PERSON, PERSON + 5, PERSON + 90)
    change = "UPDATE people SET numbers = CAST(x'00' || substr(numbers, 2) AS BLOB)"
    among = ", ".join(map(str, persons))
    problem = our_copy.change(f"{change} WHERE person IN ({among})", n=3)
    others = f"2 other people were changed (persons {persons[1]}, {persons[2]})"
    assert problem == f"entry 6 (batch 'b1'): {OTHER} was changed, and {others}."


def test_several_group_values_and_hashes(our_copy):
    ((was,),) = our_copy.run(f"SELECT value FROM group_values WHERE person = {PERSON}")
    second = N_PAST + N_BATCH - 1
    those = f"person IN ({PERSON}, {second})"
    before = dict(our_copy.run(f"SELECT person, value FROM group_values WHERE {those}"))
    problem = our_copy.change(f"UPDATE group_values SET value = '[\"C\"]' WHERE {those}", n=2)
    said = f"the group value of {WHO} was {was!r} and is '[\"C\"]'"
    assert problem.endswith(f": {said}, and 1 other person was changed (person {second}).")
    for person, value in before.items():
        our_copy.run("UPDATE group_values SET value = ? WHERE person = ?", value, person)
    assert our_copy.problem() is None
    problem = our_copy.change(f"UPDATE people SET digest = zeroblob(32) WHERE {those}", n=2)
    assert problem.endswith(
        f": the hash of {WHO} was changed, and 1 other hash was changed (person {second})."
    )
    our_copy.run(f"UPDATE people SET accepted = 1 - accepted WHERE person = {PERSON + 1}")
    assert our_copy.problem().endswith(f": {OTHER} was changed.")  # and more cannot be proved


def test_people_beside_the_erased_are_judged_too(our_copy):
    our_copy.erase("A-7", "A-200")
    change = f"UPDATE people SET application = application || '!' WHERE person > {PERSON + 170}"
    problem = our_copy.change(f"{change} AND person < {PERSON + 173}", n=2)
    first = f"person {PERSON + 171}, now called 'A-{ROW + 171}!', was changed"
    assert problem.endswith(f": {first}, and 1 other person was changed (person {PERSON + 172}).")


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
