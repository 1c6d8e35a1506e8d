"""Changed outcomes, overrides and erasures are named, one or several, if a hash proves them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.tampered import N_PAST, PERSON, ROW, Copy, kept
from ledger_worlds import algorithm_1, certified
from secondlook.ledger import locating, locating_told
from secondlook.ledger.base import STATES, Facts, OutcomeRows
from secondlook.ledger.chain import joined
from secondlook.ledger.kept_outcomes import remembered
from secondlook.ledger.locating import Rows
from secondlook.ledger.locating_told import Guesses, changed_told
from secondlook.ledger.sql_reader import content_parts
from small_worlds import lender_world

UNKNOWN = -9
NAMES = "SELECT person, application FROM people"
FLIP = "UPDATE outcomes SET state = CASE state WHEN 'good' THEN 'bad' ELSE 'good' END"


def per_group():
    return certified(certify="per_group")


@pytest.fixture(autouse=True)
def short_search(monkeypatch):
    """Let a search be given up sooner than it is, which is late enough for two outcomes here."""
    monkeypatch.setattr(locating, "_MOST_HASHED", 8 * 10**8)


@pytest.fixture
def our_copy(tmp_path):
    return Copy(kept(algorithm_1), tmp_path)


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
    (person, name), (other, _) = rejected
    for n, one in enumerate((person, other), start=1):
        add = f"INSERT INTO outcomes SELECT program, {number}, {one}, 'good' FROM programs"
        problem = our_copy.change(add)
        others = f", and 1 other value was changed (person {other})" if n == 2 else ""
        words = f"the outcome of application {name!r} (person {person}) was not there{others}"
        assert problem == f"{entry} outcomes were changed: {words}."


def test_added_outcomes_beside_many_changes_cannot_be(our_copy, monkeypatch):
    monkeypatch.setattr(locating, "_MOST_HASHED", 10**7)  # enough for one change
    number, entry = our_copy.entry("outcomes")
    ((person, name),) = our_copy.run(
        f"SELECT person, application FROM people WHERE accepted = 0 AND person >= {N_PAST} LIMIT 1"
    )
    add = f"INSERT INTO outcomes SELECT program, {number}, {person}, 'good' FROM programs"
    assert our_copy.run(add) == 1
    ((n,),) = our_copy.run(f"SELECT count(*) FROM outcomes WHERE entry = {number}")
    problem = our_copy.change(f"{FLIP} WHERE entry = {number}", n=n)
    why = "cannot be, since the person does not stand accepted"
    words = f"the outcome of application {name!r} (person {person}) {why}"
    assert problem == f"{entry} outcomes were changed: {words}."


def test_who_was_accepted_in_a_history_may_be_what_was_changed(our_copy):
    """No outcome is touched, so that none is said to be: decisions and outcomes share a hash."""
    _, entry = our_copy.entry("history")
    accepted = our_copy.run(
        f"SELECT person, application FROM people WHERE accepted AND person < {N_PAST} LIMIT 2"
    )
    (person, name), (other, _) = accepted
    problem = our_copy.change(
        f"UPDATE people SET accepted = 0, exploit = 0 WHERE person IN ({person}, {other})", n=2
    )
    why = "cannot be, since the person does not stand accepted"
    words = f"the outcome of person {person}, now called {name!r}, {why}"
    assert problem == f"{entry} decisions or outcomes were changed: {words}."
    decided = f"UPDATE people SET accepted = 1, exploit = 1 WHERE person IN ({person}, {other})"
    assert our_copy.change(decided, n=2) is None


def test_outcomes_that_were_added_to_a_history_are_named(our_copy):
    """Whose cannot be there is a guess, which the hash proves."""
    number, entry = our_copy.entry("history")
    rejected = our_copy.run(
        f"SELECT person FROM people WHERE NOT accepted AND person < {N_PAST} LIMIT 9"
    )
    before, names = outcomes_of(our_copy, number), dict(our_copy.run(NAMES))
    tampered(our_copy, number, {person: "good" for (person,) in rejected})
    assert our_copy.problem() == said_of(before, outcomes_of(our_copy, number), names, entry)


def test_an_outcome_that_was_given_to_nobody(our_copy, monkeypatch):
    monkeypatch.setattr(locating, "_MOST_HASHED", 10**7)  # enough for one change
    number, entry = our_copy.entry("outcomes")
    ((person, state, name),) = our_copy.run(
        f"SELECT person, state, application FROM outcomes JOIN people USING (program, person) "
        f"WHERE entry = {number} ORDER BY person DESC LIMIT 1"
    )
    change = f"UPDATE outcomes SET person = 99999 WHERE entry = {number} AND person = {person}"
    words = f"the outcome of application {name!r} (person {person}) was {state!r} and is gone"
    others = "and 1 other value was changed (person 99999)"
    assert our_copy.change(change) == f"{entry} outcomes were changed: {words}, {others}."
    add = f"INSERT INTO outcomes SELECT program, {number}, {{}}, 'bad' FROM programs"
    for nobody in (77777, 88888):
        assert our_copy.run(add.format(nobody)) == 1
    others = "and 3 other values were changed (persons 77777, 88888, 99999)"
    assert our_copy.problem() == f"{entry} outcomes were changed: {words}, {others}."
    ((n,),) = our_copy.run(f"SELECT count(*) FROM outcomes WHERE entry = {number}")
    problem = our_copy.change(f"{FLIP} WHERE entry = {number}", n=n)
    words = "the outcome of person 77777 cannot be, since nobody has that number"
    assert problem == f"{entry} outcomes were changed: {words}."


def test_many_changed_outcomes_are_not_named(our_copy):
    number, entry = our_copy.entry("outcomes")
    ((n,),) = our_copy.run(f"SELECT count(*) FROM outcomes WHERE entry = {number}")
    problem = our_copy.change(f"{FLIP} WHERE entry = {number}", n=n)
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
    words += ", and 1 other value was changed (person 6)"
    assert our_copy.change(add.format(6)) == f"{entry} overrides were changed: {words}."
    problem = our_copy.change("UPDATE overrides SET reason = 'whim', accepted = 1", n=5)
    assert problem == f"{entry} overrides were changed."


def test_an_added_erasure_is_named(our_copy):
    our_copy.erase(f"A-{ROW}")
    number, entry = our_copy.entry("erasure")
    add = f"INSERT INTO erasures SELECT program, {number}, {{}} FROM programs"
    words = "the erasure of application 'H-5' (person 5) was not there"
    assert our_copy.change(add.format(5)) == f"{entry} erasures were changed: {words}."
    words += ", and 2 other values were changed (persons 6, 7)"
    assert our_copy.run(add.format(6)) == 1
    assert our_copy.change(add.format(7)) == f"{entry} erasures were changed: {words}."
    assert our_copy.run(f"DELETE FROM erasures WHERE person = {PERSON}") == 1
    problem = our_copy.problem()  # the batch comes first, and lacks data without a reason
    assert problem.endswith(f"person {PERSON} lacks data, and no erasure says so.")


def test_an_outcome_that_is_none_is_named(our_copy):
    number, _ = our_copy.entry("outcomes")
    ((person,),) = our_copy.run(f"SELECT max(person) FROM outcomes WHERE entry = {number}")
    where = f"entry = {number} AND person = {person}"
    problem = our_copy.change(f"UPDATE outcomes SET state = 'fair' WHERE {where}")
    name = f"application 'A-{person - N_PAST}' (person {person})"
    assert problem.endswith(f"(an outcome is 'fair'): state of {name} is 'fair'.")


def outcomes_of(copy, number):
    return dict(copy.run(f"SELECT person, state FROM outcomes WHERE entry = {number}"))


def tampered(copy, number, states):
    """Give an entry other outcomes: none for people who are to have None."""
    for person, state in states.items():
        row = f"WHERE entry = {number} AND person = {person}"
        copy.run(f"DELETE FROM outcomes {row}")
        if state is not None:
            copy.run(
                f"INSERT INTO outcomes SELECT program, {number}, {person}, ? FROM programs", state
            )


def said_of(before, after, names, entry):
    """Return what is to be said of outcomes that differ."""
    other = sorted(one for one in before.keys() | after.keys() if before.get(one) != after.get(one))
    first, *others = other
    was, now = before.get(first), after.get(first)
    how = "was not there" if was is None else f"was {was!r} and is {repr(now) if now else 'gone'}"
    words = f"the outcome of application {names[first]!r} (person {first}) {how}"
    if others:
        values = "value was" if len(others) == 1 else "values were"
        named = ", ".join(map(str, others[:5])) + (" and more" if len(others) > 5 else "")
        who = f"person{'s' if len(others) > 1 else ''} {named}"
        words += f", and {len(others)} other {values} changed ({who})"
    return f"{entry} outcomes were changed: {words}."


@pytest.mark.parametrize(
    "states",
    [(None, "indeterminate"), ("other", "other")],
    ids=str,
)
def test_two_changed_outcomes_are_both_named(our_copy, states):
    number, entry = our_copy.entry("outcomes")
    before, names = outcomes_of(our_copy, number), dict(our_copy.run(NAMES))
    persons = sorted(before)[7::40][:2]
    other = {"good": "bad", "bad": "good"}
    changed = {
        person: other[before[person]] if state in ("other", before[person]) else state
        for person, state in zip(persons, states, strict=True)
    }
    tampered(our_copy, number, changed)
    assert our_copy.problem() == said_of(before, outcomes_of(our_copy, number), names, entry)
    tampered(our_copy, number, {person: before[person] for person in persons})
    assert our_copy.problem() is None


def test_all_of_a_few_outcomes_may_have_been_changed(our_copy):
    number, entry = our_copy.entry("correction")
    before, names = outcomes_of(our_copy, number), dict(our_copy.run(NAMES))
    assert len(before) == 3
    assert our_copy.run(f"{FLIP} WHERE entry = {number}") == 3
    assert our_copy.problem() == said_of(before, outcomes_of(our_copy, number), names, entry)


@pytest.mark.parametrize("make", [algorithm_1, certified])
@pytest.mark.parametrize("kind", ["history", "outcomes", "correction"])
def test_a_state_that_was_stored_later_helps_to_find_many_changes(tmp_path, make, kind):
    copy = Copy(kept(make, stored=True), tmp_path)
    number, entry = copy.entry(kind)
    before, names = outcomes_of(copy, number), dict(copy.run(NAMES))
    assert copy.run(f"{FLIP} WHERE entry = {number}") == len(before)
    after = outcomes_of(copy, number)
    if kind == "outcomes":
        # Whoever was corrected since has another outcome in the state than this entry gave.
        corrected = outcomes_of(copy, copy.entry("correction")[0])
        tampered(copy, number, {person: before[person] for person in corrected})
        after = outcomes_of(copy, number)
        assert len(after) - len(corrected) > 40
    assert copy.problem() == said_of(before, after, names, entry)


@pytest.mark.parametrize("make", [algorithm_1, certified])
def test_many_outcomes_that_are_gone_or_were_added(tmp_path, make):
    copy = Copy(kept(make, stored=True), tmp_path)
    number, entry = copy.entry("outcomes")
    before, names = outcomes_of(copy, number), dict(copy.run(NAMES))
    corrected = outcomes_of(copy, copy.entry("correction")[0])
    gone = dict.fromkeys([one for one in sorted(before) if one not in corrected][3:40:2])
    rejected = copy.run(f"SELECT person FROM people WHERE NOT accepted AND person > {PERSON}")
    tampered(copy, number, gone | {person: "good" for (person,) in rejected[:9]})
    assert copy.problem() == said_of(before, outcomes_of(copy, number), names, entry)


def test_a_state_that_was_forged_too_proves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(locating, "_MOST_HASHED", 10**7)  # enough for one change
    copy = Copy(kept(algorithm_1, stored=True), tmp_path)
    number, entry = copy.entry("outcomes")
    n = len(outcomes_of(copy, number))
    ((start,),) = copy.run("SELECT min(number) FROM entries WHERE kind = 'snapshot'")
    ((end,),) = copy.run("SELECT max(number) FROM entries WHERE kind = 'snapshot'")
    assert start < number < end
    forged = f"(SELECT content FROM payloads WHERE entry = {start}) WHERE entry = {end}"
    assert copy.run(f"UPDATE payloads SET content = {forged}") == 1
    problem = copy.change(f"{FLIP} WHERE entry = {number}", n=n)
    assert problem == f"{entry} outcomes were changed."


@given(st.data())
def test_a_few_rows_that_were_changed_are_always_found(data):
    """Whatever was done to a few outcomes: the search names just what was changed."""
    people = range(5)
    state = st.sampled_from([None, *STATES])
    was, now = (data.draw(st.tuples(*[state] * len(people))) for _ in range(2))
    before, after = ({at: one for at, one in enumerate(two) if one} for two in (was, now))
    content = joined(content_parts(Facts(outcomes=told(before)), [], [], None))
    rows = Rows(
        Facts(outcomes=told(after)),
        [],
        None,
        0,
        content,
        lambda facts: content_parts(facts, [], [], None),
    )
    guesses = Guesses(
        lambda most: [one for one in people if one not in after], dict, lambda told: []
    )
    found = changed_told(rows, guesses)
    other = [one for one in people if before.get(one) != after.get(one)]
    if not other:
        assert found is None
    else:
        assert [found.person, *found.others] == other
        assert (found.how == "was not there") == (was[other[0]] is None)


def told(states):
    persons = np.array(sorted(states), np.int64)
    return OutcomeRows(persons, [states[one] for one in persons.tolist()])


def test_a_search_is_not_begun_that_cannot_be_ended(our_copy, monkeypatch):
    number, entry = our_copy.entry("outcomes")
    before = outcomes_of(our_copy, number)
    one, two = sorted(before)[10:12]
    changed = {one: None, two: None}
    tampered(our_copy, number, changed)
    assert f"(person {one})" in our_copy.problem()
    enough = 5 * len(before) * locating_told._EACH  # for one change
    monkeypatch.setattr(locating, "_MOST_HASHED", enough)
    assert our_copy.problem() == f"{entry} outcomes were changed."
    tampered(our_copy, number, {one: before[one]})
    assert f"(person {two})" in our_copy.problem()


def test_no_more_people_are_asked_for_than_can_be_tried(monkeypatch):
    """However short the rows are, a try takes time."""
    monkeypatch.setattr(locating, "_MOST_HASHED", 30 * locating_told._EACH)
    asked, given_out = [], []

    def missing(most):
        asked.append(most)
        for person in range(10, 10 + most):
            given_out.append(person)
            yield person

    def found(lost):
        was = told({5: "good", lost: "indeterminate"})
        content = joined(content_parts(Facts(outcomes=was), [], [], None))
        facts = Facts(outcomes=told({5: "good"}))
        rows = Rows(facts, [], None, 0, content, lambda other: content_parts(other, [], [], None))
        return changed_told(rows, Guesses(missing, dict, lambda _: []))

    assert found(12).person == 12
    assert found(20) is None
    assert asked == [30 // len(STATES)] * 2
    assert len(given_out) == sum(asked)


@pytest.mark.parametrize("make", [algorithm_1, certified, per_group])
def test_what_a_classifier_remembers_is_what_it_was_told(make, rng):
    world = lender_world(0, n_history=200, n_batch=100, n_rounds=2)
    past = world.history()
    names = np.array([f"past {at}" for at in range(past.accepted.size)])
    history = {"accepted": past.accepted, "sensitive_features": past.people.group, "ids": names}
    classifier = make().fit(past.people.X, past.outcomes, **history)
    truth = dict(zip(names, np.where(past.accepted, past.outcomes, UNKNOWN), strict=True))
    for t, one in enumerate(world.batches()):
        people, outcome = one.applicants.people, one.applicants.outcome
        ids = np.array([f"{t} {at}" for at in range(100)])
        decided = classifier.decide(people.X, sensitive_features=people.group, ids=ids)
        kind = np.where(decided.accepted, rng.integers(3, size=100), UNKNOWN)
        classifier.observe(ids[kind == 0], outcome[kind == 0])
        classifier.withdraw(ids[kind == 1])
        codes = np.select([kind == 0, kind == 1, kind == 2], [outcome, -2, -1], UNKNOWN)
        truth |= dict(zip(ids, codes, strict=True))
    truth["a stranger"] = UNKNOWN
    assert {*truth.values()} == {UNKNOWN, -2, -1, 0, 1}
    asked = rng.permutation([*truth])
    assert remembered(classifier, asked).tolist() == [truth[one] for one in asked]
