"""What was changed in a ledger is named as exactly as can be known, and never more exactly."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ledger.tampered import N_BATCH, N_PAST, OTHER, PERSON, ROW, WHO, Copy, kept
from ledger.test_finite_programs import cells
from ledger.test_finite_programs import lived as lived_in_cells
from ledger_worlds import algorithm_1, certified
from secondlook.ledger import locating
from secondlook.ledger.chain import people_digests
from secondlook.ledger.proofs import ByPolicies


@pytest.fixture(params=[algorithm_1, certified])
def copy(request, tmp_path):
    return Copy(kept(request.param), tmp_path)


@pytest.fixture
def our_copy(tmp_path):
    return Copy(kept(algorithm_1), tmp_path)


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
    named = ", ".join(str(N_PAST + at) for at in range(1, 6))
    others = f"{N_BATCH - 1} other values were changed (persons {named} and more)"
    assert problem.endswith(f"{words}, and {others}.")


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
    others = f"persons {PERSON + 50}, {PERSON + 51}"
    assert problem.endswith(f", and 2 other values were changed ({others}).")


def test_two_values_of_one_person(our_copy):
    change = f"accepted = 1 - accepted, score = score / 2 WHERE person = {PERSON}"
    problem = our_copy.change(f"UPDATE people SET {change}")
    assert f": the accepted of {WHO} was " in problem
    assert problem.endswith(f", and 1 other value was changed (person {PERSON}).")


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
    assert problem.endswith(f", and 1 other value was changed (person {PERSON + 9}).")
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
    assert f": the round of {WHO} was 1 and is 7, and 1 other value was changed (" in problem
    assert problem.endswith(f" (person {PERSON + 1}).")


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
    copy = Copy((tmp_path / "cells.db").read_bytes(), tmp_path)
    assert copy.problem() is None
    person = 200 + 80 + 33  # of the second batch
    ((name,),) = copy.run(f"SELECT application FROM people WHERE person = {person}")
    problem = copy.change(f"UPDATE people SET propensity = 0.123 WHERE person = {person}")
    assert f": the propensity of application {name!r} (person {person}) was " in problem
    assert problem.endswith(" and is 0.123.")


def test_a_ledger_of_the_first_version(tmp_path):
    """It has neither thresholds nor folds, and group values have hashes of their own."""
    copy = Copy(Path(__file__).with_name("first.db").read_bytes(), tmp_path)
    assert copy.problem() is None
    flip = "UPDATE people SET accepted = 1 - accepted WHERE person IN (130, 140)"
    problem = copy.change(flip, n=2)
    place = "entry 4 (batch 'b0'): its rows of decisions were changed"
    assert problem.startswith(f"{place}: the accepted of application '130' (person 130) was ")
    assert problem.endswith(", and 1 other value was changed (person 140).")
    assert copy.change(flip, n=2) is None
    problem = copy.change("UPDATE group_values SET value = '[\"C\"]' WHERE person = 130")
    words = "the group value of person 130, now called '130', was changed"
    assert problem == f"entry 4 (batch 'b0'): {words}."
