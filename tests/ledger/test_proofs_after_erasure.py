"""What is left is proved beside people who were erased."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ledger.lived_programs import entries, erase, lived, lying, proved
from ledger_worlds import algorithm_1, certified
from secondlook.ledger.program import Program
from secondlook.ledger.verification.walk import verify


@pytest.mark.parametrize("make", [algorithm_1, certified])
def test_others_are_proved_beside_the_erased(place, make):
    program = lived(place, make())
    (_, before), *_ = entries(program, "batch")[1:]
    names = before.people.applications
    erase(program, [5, *names[10:13]])
    found = proved(program)
    assert found.n_decisions + found.n_not_repeated == 180
    if make is certified:  # coins are independent
        assert found.n_not_repeated == 3
    else:
        explore = ~before.decisions.exploit
        explore[10:13] = True
        assert found.n_not_repeated == explore.sum()


def test_a_batch_of_erased_people_only(place):
    program = lived(place, algorithm_1())
    _, (_, facts), *_ = entries(program, "batch")
    erase(program, facts.people.applications)
    found = proved(program)
    assert (found.n_decisions, found.n_not_repeated) == (120, 60)


@pytest.mark.parametrize("column", ["score", "exploit", "threshold", "fold"])
def test_a_lie_beside_the_erased_is_found(place, monkeypatch, column):
    def lie(header, facts):
        values = getattr(facts.decisions, column).copy()
        values[20] = ~values[20] if values.dtype == bool else values[20] + 1e-6
        values[20] += column == "fold"
        return header, replace(facts, decisions=replace(facts.decisions, **{column: values}))

    with monkeypatch.context() as patched:
        lying(patched, "batch", lie)
        program = lived(place, algorithm_1(), n_rounds=1)
    ((_, facts),) = entries(program, "batch")
    erase(program, facts.people.applications[30:32])
    what = "region" if column == "exploit" else column
    name = facts.people.applications[20]
    found = verify(program.ledger)
    assert f"the {what} of application '{name}' differs from the record" in found.problem


def test_an_erased_person_named_by_words(place):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    names = np.array([f"erased {at}" for at in range(300)])
    program = Program.create(
        place, algorithm_1(strategy=None), X[:200], X[:200, 0] > 0, ids=names[:200]
    )
    program.decide(X[200:], ids=names[200:])
    erase(program, names[210:212])
    assert proved(program).n_not_repeated >= 2
