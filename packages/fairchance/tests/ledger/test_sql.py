"""The status of applicants in bulk, compared with an account of single applicants."""

from __future__ import annotations

import numpy as np
import pytest

from fairchance.errors import InputError, LedgerError, UnknownIdError
from fairchance.ledger.base import DecisionRows, Facts, OutcomeRows, OverrideRows, PeopleRows
from fairchance.ledger.sql import SqlLedger

N = 400
STATES = ["good", "bad", "withdrawn"]
# Hardly two names are in the order of their numbers, and some need care in a statement.
NAMES = [
    f"{7919 * at % N:03d}" + ("'\"\\,{}\n" if at % 50 == 3 else "Zoë" * (at % 7 == 0))
    for at in range(N)
]


def decisions(t, n, rng):
    accepted, score = rng.random(n) < 0.6, rng.random(n)
    return DecisionRows(t, accepted, accepted, score, score)


def told(persons, state="good"):
    return Facts(outcomes=OutcomeRows(np.array(persons), [state] * len(persons)))


@pytest.fixture
def lived(url, rng):
    """Return a ledger with many entries, and the status of each applicant by number."""
    ledger, known = SqlLedger(url, make=True), []
    with ledger.creating("p") as writer:
        for t, some in enumerate((NAMES[:100], NAMES[100:]), 1):
            rows, n = decisions(t, len(some), rng), len(some)
            people = PeopleRows(some, [b""] * n, [None] * n)
            writer.append("batch", {}, Facts(people, rows), by="t")
            known += [
                {"name": name, "round": t, "accepted": bool(yes), "by": -1, "state": None}
                for name, yes in zip(some, rows.accepted, strict=True)
            ]
        for turn in range(6):
            pending = [at for at, one in enumerate(known) if one["state"] is None]
            who = rng.choice(pending, 25, replace=False)
            to = rng.random(25) < 0.5
            rows = OverrideRows(who, to, ["why"] * 25)
            entry = writer.append("override", {"undo": turn == 4}, Facts(overrides=rows), by="t")
            for at, yes in zip(who.tolist(), to.tolist(), strict=True):
                known[at] |= {"accepted": yes, "by": entry.number}
            for kind, has in (("outcomes", False), ("correction", True)):
                fit = [
                    at
                    for at, one in enumerate(known)
                    if one["accepted"] and (one["state"] is not None) == has
                ]
                who = rng.permutation(fit)[: 12 if has else 20]
                states = [STATES[code] for code in rng.integers(3, size=who.size)]
                writer.append(kind, {}, Facts(outcomes=OutcomeRows(who, states)), by="t")
                for at, state in zip(who.tolist(), states, strict=True):
                    known[at]["state"] = state
        gone = rng.choice(N, 30, replace=False)
        writer.append("erasure", {}, Facts(erased=gone), by="t")
        for at in gone:
            known[at]["name"] = None
    with ledger.creating("q") as writer:  # applicants with the same names and numbers
        people, rows = PeopleRows(NAMES, [b""] * N, [None] * N), decisions(7, N, rng)
        writer.append("batch", {}, Facts(people, rows), by="t")
        writer.append("outcomes", {}, told(np.flatnonzero(rows.accepted)), by="t")
        rejected = np.flatnonzero(~rows.accepted)
        rows = OverrideRows(rejected, np.ones(rejected.size, np.bool_), ["why"] * rejected.size)
        writer.append("override", {}, Facts(overrides=rows), by="t")
    return ledger, known


def choices(rng):
    """Yield applicants close together and far apart, few and many, in any order, some twice."""
    yield np.empty(0, np.int64)
    yield np.array([N - 1])
    yield np.array([0, N - 1, 0])
    yield rng.permutation(N)
    yield rng.permutation(np.arange(37, 120))
    yield np.append(rng.choice(N, 60, replace=False), [0, N - 1])
    yield rng.choice(N, 2 * N)


def test_the_status_matches_an_account_of_single_applicants(lived, rng):
    ledger, known = lived
    assert len({one["state"] for one in known}) == 4
    by_name = {one["name"]: at for at, one in enumerate(known) if one["name"] is not None}
    nobody = {"round": -1, "accepted": False, "by": -1, "state": None}
    with ledger.reading("p") as reader:
        for persons in choices(rng):
            names = [NAMES[at] for at in persons.tolist()]
            names[1:1] = ["nobody", "a\0", "\ud800"] if names else []
            places = [by_name.get(name, -1) for name in names]
            expected = [known[at] if at >= 0 else nobody for at in places]
            found = reader.standing(names)
            assert found.persons.tolist() == places
            assert found.round.tolist() == [one["round"] for one in expected]
            assert found.accepted.tolist() == [one["accepted"] for one in expected]
            assert found.overridden.tolist() == [one["by"] >= 0 for one in expected]
            assert found.states == [one["state"] for one in expected]
            some = np.append(persons, [-1, N + 5])
            expected = [known[at] if 0 <= at < N else nobody for at in some.tolist()]
            assert reader.names(some) == [one.get("name") for one in expected]
            assert reader.overridden_by(some).tolist() == [one["by"] for one in expected]


def test_outcomes_are_refused_as_an_account_of_single_applicants_says(lived, rng):
    ledger, known = lived
    for persons in map(np.unique, list(choices(rng))[1:-1]):
        for kind, has in (("outcomes", False), ("correction", True)):
            can = [known[at]["accepted"] for at in persons.tolist()]
            fit = [(known[at]["state"] is not None) == has for at in persons.tolist()]
            facts = Facts(outcomes=OutcomeRows(persons, ["good"] * persons.size))
            if all(can) and all(fit):
                continue
            message = (
                rf"{can.count(False)} of {persons.size} .* {persons[can.index(False)]}\b"
                if not all(can)
                else f"number {persons[fit.index(False)]} "
            )
            with pytest.raises(InputError, match=message), ledger.writing("p") as writer:
                writer.append(kind, {}, facts, by="t")


def written(ledger, names, *entries):
    """Look up the status and append entries, in one transaction."""
    with ledger.writing("p") as writer:
        standing = writer.standing(names)
        standing.accepted[:] = True  # a copy of the caller
        standing.states[:] = [None] * len(names)
        for kind, facts in entries:
            writer.append(kind, {}, facts, by="t")


def test_a_writer_checks_outcomes_against_its_own_entries(lived):
    ledger, known = lived
    free = [at for at, one in enumerate(known) if one["accepted"] and one["state"] is None]
    no = next(at for at, one in enumerate(known) if not one["accepted"] and one["name"])
    names, first = [NAMES[at] for at in free], ("outcomes", told(free[:1]))
    away = Facts(overrides=OverrideRows(np.array(free[:1]), np.array([False]), ["why"]))
    with pytest.raises(InputError, match=f"number {free[0]} "):
        written(ledger, names, first, first)
    with pytest.raises(UnknownIdError, match="1 of 1 "):
        written(ledger, names, ("override", away), first)
    with pytest.raises(UnknownIdError, match=f"1 of 2 applicants .* first number {no}"):
        written(ledger, names, ("outcomes", told([free[0], no])))  # one of them was looked up
    with pytest.raises(UnknownIdError, match=r"1 of 1 applicants .* first number -1"):
        written(ledger, ["nobody"], ("outcomes", told([-1])))
    with pytest.raises(UnknownIdError, match=f"1 of 1 applicants .* first number {no}"):
        written(ledger, [NAMES[no]], ("outcomes", told([no])))
    written(ledger, names, first, ("correction", told(free[:1], "bad")))


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("UPDATE people SET accepted = 2 WHERE person = 5", "2"),
        ("UPDATE people SET round = 'x' WHERE person = 5", "'x'"),
        ("UPDATE outcomes SET state = 'late' WHERE program = 1", "'late'"),
    ],
)
def test_values_that_no_ledger_writes_are_reported(lived, change, message):
    ledger, _ = lived
    with ledger.engine.begin() as connection:
        connection.exec_driver_sql(change)
    with pytest.raises(LedgerError, match=message), ledger.reading("p") as reader:
        reader.standing(NAMES)
